"""Sources that are not in memory but fit there are read in order."""
import multiprocessing
import os
import subprocess
import sys
import threading
import time
import weakref

import h5py
import numpy
import pytest
from support.waiting import wait_until

from fuel.datasets import H5PYDataset
from fuel.schemes import SequentialScheme, ShuffledScheme
from fuel.storage import mapped, paging
from fuel.storage.paging import SequentialRead
from fuel.storage.mapped import one_part
from fuel.storage.file_bytes import RawFile, raw_file_at
from fuel.streams import DataStream
from fuel.utils import background

SIZE = 160000


@pytest.fixture
def path(tmp_path):
    """Write rows of a thousand bytes."""
    path = tmp_path / 'x.hdf5'
    with h5py.File(path, 'w') as file:
        file['x'] = numpy.random.RandomState(0).randint(
            0, 256, (160, 1000)).astype('u1')
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'x': (0, 160)}})
    return str(path)


@pytest.fixture
def cold(monkeypatch):
    """Let every file seem to be on the disk alone; return what is read."""
    pieces = []
    plain = RawFile.read_into

    def note(self, buffer, address):
        pieces.append((address, len(buffer)))
        return plain(self, buffer, address)

    monkeypatch.setattr(paging, 'STEP', 10000)
    monkeypatch.setattr(RawFile, 'is_resident', lambda *_: False)
    monkeypatch.setattr(RawFile, 'read_into', note)
    return pieces


def stream_of(path, scheme):
    """Return batches of the file."""
    return DataStream(H5PYDataset(path, ('train',)), iteration_scheme=scheme)


def content(path):
    """Return all rows."""
    with h5py.File(path) as file:
        return file['x'][...], file['x'].id.get_offset()


@pytest.mark.parametrize('scheme', [SequentialScheme, ShuffledScheme])
def test_all_of_it_is_read_once_in_the_background(path, cold, scheme):
    """The batches are those of the scheme."""
    rows, offset = content(path)
    epoch = stream_of(path, scheme(160, 8)).get_epoch_iterator()
    next(epoch)
    wait_until(lambda: len(cold) == 16)
    assert [(address, 10000) for address in range(
        offset, offset + SIZE, 10000)] == cold
    wanted = list(scheme(160, 8).get_request_iterator())[1:]
    for request, (batch,) in zip(wanted, epoch, strict=True):
        assert (rows[request] == batch).all()
    assert 16 == len(cold)


def test_batches_are_direct_as_soon_as_all_is_read(path, cold):
    """Nothing is waited for any more."""
    stream = stream_of(path, ShuffledScheme(160, 8))
    epoch = stream.get_epoch_iterator()
    next(epoch)
    reader = stream.dataset._access.open().reader('x')
    wait_until(lambda: not reader._paging.fetches_first)
    next(epoch)
    next(epoch)
    assert epoch.epoch.reader.is_open


class Gate:
    """A disk that reads a file in order only when it is let."""

    def __init__(self, monkeypatch, path):
        self.open = threading.Semaphore(0)
        self.rows = []
        plain, one = RawFile.read_into, RawFile.read

        def read_into(file, buffer, address):
            if str(file.path) != str(path):
                # Of a test before, whose reading has not ended.
                return plain(file, buffer, address)
            assert self.open.acquire(timeout=30)
            return plain(file, buffer, address)

        def read(file, address, nbytes):
            self.rows.append((address, nbytes))
            return one(file, address, nbytes)

        monkeypatch.setattr(paging, 'STEP', 10000)
        monkeypatch.setattr(RawFile, 'read_into', read_into)
        monkeypatch.setattr(RawFile, 'read', read)


def test_rows_are_waited_for_at_first(path, monkeypatch):
    """They are waited for only while the reading must not be disturbed."""
    monkeypatch.setattr(paging, 'UNDISTURBED', 30)
    gate = Gate(monkeypatch, path)
    reading = SequentialRead(raw_file_at(path), 0, SIZE)
    done = []

    def consume():
        reading.wait(numpy.array([5000, 15000]), 1000)
        done.append(reading.read_to)

    thread = threading.Thread(target=consume)
    thread.start()
    gate.open.release()
    wait_until(lambda: reading.read_to == 10000)
    assert thread.is_alive()
    for _ in range(15):
        gate.open.release()
    thread.join(30)
    assert not thread.is_alive()
    assert done[0] >= 16000
    assert [] == gate.rows


def test_rows_are_fetched_out_of_turn_where_that_takes_long(
        path, monkeypatch):
    """Only unread rows are fetched so; afterwards the reading has its share of
    the time again."""
    monkeypatch.setattr(paging, 'UNDISTURBED', 0.05)
    monkeypatch.setattr(paging, 'NEAR', 0)
    gate = Gate(monkeypatch, path)
    reading = SequentialRead(raw_file_at(path), 0, SIZE)
    gate.open.release()
    wait_until(lambda: reading.read_to == 10000)
    before = time.monotonic()
    reading.wait(numpy.array([90000, 5000, 50000, 9500]), 1000)
    assert [(9500, 1000), (50000, 1000), (90000, 1000)] == gate.rows
    assert reading.fetch_from > before
    assert not reading.is_fetching
    for _ in range(15):
        gate.open.release()
    wait_until(lambda: reading.is_done)


def test_disk_that_fails_is_told_by_who_reads_the_rows(path, monkeypatch):
    """The reading in the background ends without an error."""
    def fail(*_):
        raise OSError(5, 'Input/output error')

    monkeypatch.setattr(RawFile, 'read_into', fail)
    reading = SequentialRead(raw_file_at(path), 0, SIZE)
    wait_until(lambda: reading.is_done)
    reading.wait(numpy.array([0]), 1000)


def test_reading_ends_when_nobody_wants_the_source(path, monkeypatch):
    """It ends after the task that was begun."""
    monkeypatch.setattr(paging, 'STEPS', 1)
    gate = Gate(monkeypatch, path)
    reading = SequentialRead(raw_file_at(path), 0, SIZE)
    background = reading.background
    del reading
    for _ in range(3):
        gate.open.release()
    wait_until(lambda: background.is_idle)
    assert gate.open.acquire(blocking=False)


def test_next_task_is_queued_after_the_reading_is_released(
        path, monkeypatch):
    """Another thread that begins it at once does not keep the reading."""
    began, may_end = threading.Event(), threading.Event()

    def read_into(*_):
        began.set()
        assert may_end.wait(30)

    monkeypatch.setattr(paging, 'STEP', 10000)
    monkeypatch.setattr(paging, 'STEPS', 1)
    monkeypatch.setattr(RawFile, 'read_into', read_into)
    reading = SequentialRead(raw_file_at(path), 0, SIZE)
    assert began.wait(30)
    background, kept = reading.background, weakref.ref(reading)
    queued_for = []
    background.add = lambda _: queued_for.append(kept())
    del reading
    may_end.set()
    wait_until(lambda: queued_for)
    assert [None] == queued_for


@pytest.mark.skipif(not hasattr(os, 'fork'), reason='needs fork')
def test_fork_in_the_middle_of_the_reading_is_safe(path, cold, monkeypatch):
    """Parent and child both get right batches."""
    monkeypatch.setattr(paging, 'STEPS', 1)
    rows, _ = content(path)
    stream = stream_of(path, ShuffledScheme(160, 8))
    epoch = stream.get_epoch_iterator()
    next(epoch)
    wanted = list(ShuffledScheme(160, 8).get_request_iterator())[1:]

    def check():
        for request, (batch,) in zip(wanted, epoch, strict=True):
            assert (rows[request] == batch).all()

    child = multiprocessing.get_context('fork').Process(target=check)
    child.start()
    check()
    child.join(30)
    assert 0 == child.exitcode


PROGRAM = """
import atexit
import concurrent.futures.thread as pool
import sys
import time

from fuel.storage import paging
from fuel.storage.file_bytes import RawFile, raw_file_at

pieces = []


def read_into(self, buffer, address):
    # Not before the main thread waits for this one to end.
    while not pool._shutdown:
        time.sleep(0.001)
    pieces.append(address)


RawFile.read_into = read_into
paging.STEP = 1000
file = raw_file_at(sys.argv[1])
reading = paging.SequentialRead(file, 0, 160000)
atexit.register(lambda: print(len(pieces)))
"""


def test_end_of_the_process_waits_for_no_more_than_one_task(path):
    """The source was to be read to its end."""
    done = subprocess.run(
        [sys.executable, '-c', PROGRAM, path], capture_output=True, text=True,
        timeout=60, check=True)
    assert '' == done.stderr
    assert paging.STEPS == int(done.stdout)


def test_batches_come_although_no_thread_can_be_had(
        path, cold, monkeypatch):
    """Nothing is read in the background then."""
    def refuse(task):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(background, 'start', refuse)
    monkeypatch.setattr(paging, 'UNDISTURBED', 0)
    rows, _ = content(path)
    epoch = stream_of(path, SequentialScheme(160, 80)).get_epoch_iterator()
    assert (rows == numpy.concatenate([x for x, in epoch])).all()
    assert [] == cold


def test_reading_goes_on_after_somebody_failed_to_tell_of_his_end(
        path, monkeypatch):
    """Ctrl-C may stop a thread before it tells of its end."""
    monkeypatch.setattr(paging, 'UNDISTURBED', 0.01)
    monkeypatch.setattr(SequentialRead, 'is_fetching', property(
        lambda self: True, lambda self, value: None), raising=False)
    reading = SequentialRead(raw_file_at(path), 0, SIZE)
    wait_until(lambda: reading.is_done)


def test_other_threads_may_begin_an_epoch_at_any_time(path, monkeypatch):
    """The reading that one thread uses may be gone at its next look."""
    class Changing(paging.LocalPaging):
        """Of a source that is found in memory at every second look."""

        looks = 0

        @property
        def _ordered(self):
            self.looks += 1
            return self._reading if self.looks % 2 else None

        @_ordered.setter
        def _ordered(self, value):
            self._reading = value

    rows, offset = content(path)
    monkeypatch.setattr(RawFile, 'is_resident', lambda *_: False)
    monkeypatch.setattr(mapped, 'paging_of', Changing)
    reader = mapped.MappedReader(
        raw_file_at(path), 'x', one_part(
            rows.shape, rows.dtype, numpy.array([offset])))
    reader.prefetch_budget(slice(0, 160))
    for _ in range(3):
        assert (rows[[9, 3]] == reader.read(numpy.array([9, 3]))).all()


def test_source_in_memory_is_not_read(path, monkeypatch):
    """No batch waits for the source either."""
    monkeypatch.setattr(RawFile, 'is_resident', lambda *_: True)
    monkeypatch.setattr(paging, 'SequentialRead', None)
    assert 20 == len(list(stream_of(
        path, ShuffledScheme(160, 8)).get_epoch_iterator()))
