"""Where the time of a pipeline goes, stage by stage."""
from fuel.profiling.measurements import Measurements, StageMeasurements
from fuel.profiling.meter import profile
from fuel.profiling.report import Profile, StageProfile

__all__ = ['Measurements', 'Profile', 'StageMeasurements', 'StageProfile',
           'profile']

# Pickles and error texts name the public path.
for _public in Measurements, Profile, StageMeasurements, StageProfile:
    _public.__module__ = __name__
