"""Thousands of epochs of one stream keep no more than a hundred did."""
import gc
import multiprocessing
import os
import threading
import weakref

import h5py
import numpy
import pytest

from fuel.datasets import H5PYDataset, IndexableDataset
from fuel.schemes import ConstantScheme
from fuel.streams import DataStream
from fuel.transformers import (
    Batch, Cache, Mapping, Mix, MultiProcessing, MultiThreading, Unpack)
from fuel.transformers.shuffling import ShuffleBuffer

SIZE, BATCH = 12, 4


def as_it_is(batch):
    """Return a batch."""
    return batch


def in_memory():
    """Return a stream of an array."""
    return DataStream(IndexableDataset({'x': numpy.arange(SIZE)}),
                      batch_size=BATCH, shuffle=True)


def of_a_file(folder):
    """Return a stream of a file."""
    path = folder / 'numbers.hdf5'
    with h5py.File(path, 'w') as file:
        file['x'] = numpy.arange(SIZE)
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'x': (0, SIZE)}})
    return DataStream(H5PYDataset(path, which_sets=('train',)),
                      batch_size=BATCH, shuffle=True)


STREAMS = {
    'file': of_a_file,
    'share of a file': lambda folder: of_a_file(folder).shard(1, 2),
    'stages': lambda folder: Batch(ShuffleBuffer(Unpack(Cache(
        Mapping(in_memory(), as_it_is), ConstantScheme(3))), 5), batch_size=4),
    'mixture': lambda folder: Mix(
        [in_memory(), in_memory()], weights=[2, 1], stop='forever',
        epoch_size=4).shard(0, 2),
    'threads': lambda folder: MultiThreading(
        Mapping(of_a_file(folder), as_it_is), num_threads=2),
    'workers': lambda folder: MultiProcessing(
        Mapping(of_a_file(folder), as_it_is))}


def read(stream, number):
    """Read an epoch to its end, leave it, or go on with its state."""
    epoch = stream.get_epoch_iterator()
    next(epoch)
    if number % 3 == 0:
        return
    if number % 3 == 1:
        stream.load_state_dict(stream.state_dict())
        epoch = stream.get_epoch_iterator()
    for _ in epoch:
        pass


def held():
    """Return how many files are open, and how much else there is."""
    gc.collect()
    return {'files': len(os.listdir('/proc/self/fd')),
            'threads': threading.active_count(),
            'processes': len(multiprocessing.active_children()),
            'objects': len(gc.get_objects())}


@pytest.mark.parametrize('count', [
    300, pytest.param(10_000, marks=pytest.mark.full)])
@pytest.mark.parametrize('name', STREAMS)
def test_many_epochs_keep_what_a_hundred_keep(name, count, tmp_path):
    """Epochs that are read, left and resumed leave no file, thread, process
    or object behind."""
    with STREAMS[name](tmp_path) as stream:
        for number in range(100):
            read(stream, number)
        first = held()
        for number in range(100, count):
            read(stream, number)
        last = held()
    # Between the two, an epoch may have been left or read.
    more = {kind: last[kind] - first[kind] for kind in first}
    assert more['files'] <= 0
    assert more['threads'] <= 1
    assert more['processes'] <= 0
    assert more['objects'] <= 100


@pytest.mark.parametrize('build', [
    lambda stream: stream, lambda stream: Mapping(stream, as_it_is)])
def test_epoch_that_is_left_after_its_state_was_saved_is_let_go_of(build):
    """The epoch is freed at once, since files may be open."""
    stream = build(in_memory())
    dataset = weakref.ref(stream.dataset if isinstance(
        stream, DataStream) else stream.data_stream.dataset)
    epoch = stream.get_epoch_iterator()
    gc.disable()
    try:
        for _ in range(2):
            next(epoch)
            epoch.state_dict()
            stream.state_dict()
        del stream, epoch
        assert dataset() is None
    finally:
        gc.enable()
