"""Data sets and pipelines of Grain that the tests of the bridge read."""
import grain
import numpy

from fuel.interop.jax import GrainDataset, GrainIterable

ROWS = numpy.arange(36, dtype='float32').reshape(12, 3)


class Source:
    """A data source of the user's own."""

    def __len__(self):
        return 12

    def __getitem__(self, index):
        return {'rows': ROWS[index], 'numbers': int(index),
                'words': f'number {index}'}


def of_source():
    """Return a data set over a data source."""
    return GrainDataset(Source(), sources=('rows', 'numbers'))


def shifted(example):
    """Return a pair of an example's row and number."""
    return example['rows'] + 1, example['numbers']


def is_kept(example):
    """Return whether an example is not the one that is left out."""
    return example['numbers'] != 5


def of_map():
    """Return a data set over a `MapDataset` of shuffled pairs."""
    return GrainDataset(grain.MapDataset.source(Source()).shuffle(
        seed=3).map(shifted))


def of_iterable():
    """Return a data set over an `IterDataset` that leaves one out."""
    return GrainIterable(grain.MapDataset.source(Source()).shuffle(
        seed=3).filter(is_kept).map(shifted).to_iter_dataset())
