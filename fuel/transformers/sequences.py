"""Stages on sequences."""
from fuel.transformers.bucketing import BucketBatch
from fuel.transformers.sequence_stage import Chunk
from fuel.transformers.packing import Pack
from fuel.transformers.packing.epoch import PackingReport
from fuel.transformers.window import NGrams, Window

__all__ = [
    'BucketBatch', 'Chunk', 'NGrams', 'Pack', 'PackingReport', 'Window']

# Classes are pickled, and shown, under the name that users import.
for _name in __all__:
    globals()[_name].__module__ = __name__
