"""Tables of Arrow, Parquet files and data frames as data sets."""
from fuel.utils.extras import from_extra

with from_extra('arrow', 'pyarrow'):
    from fuel.interop.arrow.dataset import ArrowDataset, from_pandas

__all__ = ['ArrowDataset', 'from_pandas']

# Classes are pickled, and shown, under the name that users import.
ArrowDataset.__module__ = __name__
