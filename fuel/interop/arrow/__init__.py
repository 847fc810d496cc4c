"""Tables of Arrow, Parquet files and data frames as data sets."""
from fuel.utils.extras import from_extra

with from_extra('arrow', 'pyarrow'):
    from fuel.interop.arrow.dataset import ArrowDataset, from_pandas
    from fuel.interop.arrow.hugging_face import HuggingFaceIterable

__all__ = ['ArrowDataset', 'HuggingFaceIterable', 'from_pandas']

# Classes are pickled, and shown, under the name that users import.
for _class in ArrowDataset, HuggingFaceIterable:
    _class.__module__ = __name__
