"""The interface to data, and data sets over objects in memory."""
from fuel.datasets.dataset import Dataset
from fuel.datasets.indexable import IndexableDataset
from fuel.datasets.iterable import IterableDataset, imap

__all__ = ['Dataset', 'IndexableDataset', 'IterableDataset']

# Classes are pickled, and shown, under the name that users import.
for _class in (Dataset, IndexableDataset, IterableDataset, imap):
    _class.__module__ = __name__
