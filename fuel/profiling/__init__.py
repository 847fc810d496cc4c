"""Where the time of a pipeline goes, stage by stage."""
from fuel.profiling.meter import profile
from fuel.profiling.report import Profile, StageProfile

__all__ = ['Profile', 'StageProfile', 'profile']

# Pickles and error texts name the public path.
Profile.__module__ = StageProfile.__module__ = __name__
