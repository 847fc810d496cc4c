"""Checks of what users write: data sets, schemes, stages and streams.

Each check tests promises that Fuel's own classes keep. If a promise is broken,
the check raises a :class:`BrokenPromiseError` that names the promise and what
broke it.
"""
from fuel.testing.datasets import DATASET_PROMISES, check_dataset
from fuel.testing.promises import BrokenPromiseError
from fuel.testing.replay import ReplayProcess
from fuel.testing.schemes import SCHEME_PROMISES, check_scheme
from fuel.testing.stages import STAGE_PROMISES, check_stage
from fuel.testing.streams import STREAM_PROMISES, check_stream

__all__ = [
    'DATASET_PROMISES', 'SCHEME_PROMISES', 'STAGE_PROMISES',
    'STREAM_PROMISES', 'BrokenPromiseError', 'ReplayProcess',
    'check_dataset', 'check_scheme', 'check_stage', 'check_stream']
