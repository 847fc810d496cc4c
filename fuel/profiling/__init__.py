"""Measure the time that each stage of a pipeline takes."""
from fuel.profiling.measurements import Measurements, StageMeasurements
from fuel.profiling.profiler import profile
from fuel.profiling.report import Headroom, Profile, StageProfile

__all__ = ['Headroom', 'Measurements', 'Profile', 'StageMeasurements',
           'StageProfile', 'profile']

# Pickles and error texts name the public path.
for _public in (
        Headroom, Measurements, Profile, StageMeasurements, StageProfile):
    _public.__module__ = __name__
