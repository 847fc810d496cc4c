"""Stages on sequences."""
from fuel.transformers.bucketing import BucketBatch
from fuel.transformers.window import NGrams, Window

__all__ = ['BucketBatch', 'NGrams', 'Window']

# Classes are pickled, and shown, under the name that users import.
for _name in __all__:
    globals()[_name].__module__ = __name__
