"""Loader workers that are not forked share one copy of the arrays."""
import gc
import multiprocessing
import os
import pickle
import sys
from contextlib import suppress
from pathlib import Path

import numpy
import pytest
from support.shared_arrays import Locked, put_sum, stream_of
from torch.utils.data import DataLoader
from torchdata.stateful_dataloader import StatefulDataLoader

from fuel.datasets import IndexableDataset
from fuel.interop.torch import as_iterable, as_map
from fuel.interop.torch.sent_data import Sent
from fuel.transport.shared_pickle import SHARED_BYTES

ROWS = 64
METHOD = 'forkserver'

pytestmark = pytest.mark.skipif(sys.platform != 'linux', reason='asks Linux')


def segments(pid):
    """Return the segments that a process maps privately: their number, and the
    KiB that are a copy of its own."""
    found, number = {}, None
    for line in Path(f'/proc/{pid}/smaps').read_text().splitlines():
        fields = line.split()
        if '-' in fields[0] and not fields[0].endswith(':'):
            number = (fields[4] if 'fuel-segment' in line
                      and fields[1] == 'rw-p' else None)
        elif number is not None and fields[0] == 'Anonymous:':
            found[number] = found.get(number, 0) + int(fields[1])
    return found


def is_held(numbers):
    """Return whether this process holds one of these segments open."""
    gc.collect()
    held = set()
    for descriptor in os.listdir('/proc/self/fd'):
        with suppress(OSError):
            held.add(str(os.fstat(int(descriptor)).st_ino))
    return not held.isdisjoint(numbers)


@pytest.mark.parametrize('cls, steps', [
    (DataLoader, [0, 1000]), (StatefulDataLoader, [0])])
def test_workers_of_a_pass_share_one_segment(cls, steps):
    """The next pass sends what the arrays hold then."""
    array = numpy.zeros((ROWS, 2 * SHARED_BYTES // 8 // ROWS))
    array[:, 0] = numpy.arange(ROWS)
    loader = cls(as_iterable(stream_of(array, Locked)), batch_size=None,
                 num_workers=2, multiprocessing_context=METHOD)
    for step in steps:
        array[:, 1] = step
        batches = iter(loader)
        # One of each worker.
        begun = [next(batches)[0], next(batches)[0]]
        mapped = [segments(worker.pid) for worker in batches._workers]
        assert len(mapped[0]) == 1
        assert mapped[0] == mapped[1]
        assert set(mapped[0].values()) == {0}
        rows = numpy.concatenate(
            [*begun, *(batch for batch, in batches)])
        assert rows[:, 0].tolist() == list(range(ROWS))
        assert (rows[:, 1] == step).all()
        assert is_held(mapped[0])
    # torchdata's loader keeps its last pass.
    del batches, loader
    assert not is_held(mapped[0])


def test_workers_that_read_examples_share_one_segment():
    """They read a map-style data set."""
    array = numpy.arange(2. * SHARED_BYTES).reshape(ROWS, -1)
    examples = as_map(IndexableDataset({'x': array}))
    batches = iter(DataLoader(examples, 8, num_workers=2,
                              multiprocessing_context=METHOD))
    begun = [next(batches)[0], next(batches)[0]]
    mapped = [segments(worker.pid) for worker in batches._workers]
    assert len(mapped[0]) == 1
    assert mapped[0] == mapped[1]
    assert (numpy.concatenate([*begun, *(batch for batch, in batches)])
            == array).all()


def test_process_without_a_loader_gets_its_data():
    """`multiprocessing` itself starts such a process."""
    context = multiprocessing.get_context('spawn')
    array = numpy.ones((4, SHARED_BYTES // 8))
    answer = context.Queue()
    process = context.Process(
        target=put_sum,
        args=(as_map(IndexableDataset({'x': array})), answer))
    process.start()
    assert answer.get(timeout=60) == array.size
    process.join()
    answer.close()


def test_pickle_for_anything_else_holds_the_data():
    """Such a pickle can be kept in a file."""
    array = numpy.ones((4, SHARED_BYTES // 8))
    pickled = pickle.dumps(as_map(IndexableDataset({'x': array})))
    assert len(pickled) > array.nbytes
    assert Sent.__name__.encode() not in pickled
    assert (pickle.loads(pickled)[:][0] == array).all()
