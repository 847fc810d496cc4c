"""Pipelines that the tests of the bridge to PyTorch read.

They are in a module of their own so that other processes can import them.
"""
import numpy
import torch
from torch.utils.data import Dataset, TensorDataset

from fuel.datasets import IndexableDataset
from fuel.interop.torch import TorchDataset, to_torch
from fuel.schemes import (
    SequentialScheme,
    ShuffledExampleScheme,
    ShuffledScheme,
)
from fuel.streams import DataStream
from fuel.transformers import ScaleAndShift

ROWS = torch.arange(36, dtype=torch.float32).reshape(12, 3)
LABELS = torch.arange(12) % 4


class Pairs(Dataset):
    """Pairs, computed one at a time."""

    def __len__(self):
        return 12

    def __getitem__(self, index):
        return ROWS[index], LABELS[index]


class Dicts(Pairs):
    """Dicts of several kinds of values."""

    def __getitem__(self, index):
        return {'row': ROWS[index], 'name': f'number {index}',
                'label': index % 4, 'half': index / 2,
                'words': torch.arange(index)}


class Frames(Dataset):
    """Frames of a file, as programs read them, fetched batch by batch."""

    def __init__(self, path, opener):
        self.path, self.opener = path, opener
        self.frames = None

    def __len__(self):
        return 40

    def __getitem__(self, index):
        return self.__getitems__([index])[0]

    def __getitems__(self, indices):
        if self.frames is None:
            self.frames = self.opener(self.path, 'r')['obs/frame']
        # h5py wants rows in order.
        order = numpy.argsort(indices)
        rows = self.frames[numpy.asarray(indices)[order]]
        return list(rows[numpy.argsort(order)])


def in_memory():
    """Return a data set over tensors."""
    return TorchDataset(TensorDataset(ROWS, LABELS))


def of_pairs():
    """Return a data set over a class of the user's own."""
    return TorchDataset(Pairs())


def of_dicts():
    """Return a data set whose examples are dicts."""
    return TorchDataset(Dicts(), sources=('words', 'label'))


def shuffled(num_examples=20, batch_size=3):
    """Return a stream of shuffled batches of numbers, in seven batches."""
    return DataStream(IndexableDataset(numpy.arange(num_examples)),
                      iteration_scheme=ShuffledScheme(
                          num_examples, batch_size))


def scaled():
    """Return a stream with a stage above shuffled batches."""
    return ScaleAndShift(shuffled(), 2, 1)


def ordered():
    """Return a stream of batches in order, of two sources."""
    return DataStream(IndexableDataset({
        'rows': numpy.arange(60.).reshape(20, 3),
        'numbers': numpy.arange(20)}),
        iteration_scheme=SequentialScheme(20, 6))


def examples():
    """Return a stream of shuffled examples."""
    return DataStream(IndexableDataset(numpy.arange(11)),
                      iteration_scheme=ShuffledExampleScheme(11))


def copied_ahead(stream):
    """Return a stage that copies to a device, which holds no data."""
    return to_torch(stream, device='meta')


def plain_epochs(build, count):
    """Return the numbers of each batch of some epochs of a stream."""
    stream = build()
    return [[batch[0].tolist() for batch in stream.get_epoch_iterator()]
            for _ in range(count)]
