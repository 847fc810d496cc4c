"""Data sets: the interface to data on disk and in memory."""
from fuel.datasets.base import Dataset, IndexableDataset, IterableDataset

__all__ = ['Dataset', 'IndexableDataset', 'IterableDataset']
