"""Batches from a disk, when nothing of the file is in memory.

Each time is that of a fresh file, in a process of its own, after the file's
pages were dropped; the ways to read take turns in random order. The ways are
Fuel; Fuel without what it does for cold files, so that rows are copied out of
the map as if the file were in memory; and, of a contiguous source, `take` on
the mapped file, and the same after one ordered read of the file. Where a
control group can be made (on Linux, by root), shuffled batches are timed with
a limit on memory of a third of the file, too.
"""
import argparse
import contextlib
import itertools
import mmap
import multiprocessing
import os
import random
import statistics
import tempfile
import time
from pathlib import Path

import h5py
import measure
import numpy

from fuel.datasets import H5PYDataset
from fuel.schemes import SequentialScheme, ShuffledScheme
from fuel.storage.file_bytes import RawFile
from fuel.streams import DataStream

BATCH = 128
ROW = 3072
# Rows of a chunk.
CHUNK = 64
GROUPS = Path('/sys/fs/cgroup')
PLAIN = 'fuel, plain reads'


def write_file(path, count, layout):
    """Write a source of bytes that no disk can compress."""
    rng = numpy.random.default_rng(0)
    with h5py.File(path, 'w') as file:
        x = file.create_dataset(
            'x', (count, ROW), 'uint8',
            chunks=(min(CHUNK, count), ROW) if layout == 'chunked' else None)
        for start in range(0, count, 4096):
            x[start:start + 4096] = rng.integers(
                0, 256, (min(4096, count - start), ROW), 'uint8')
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'x': (0, count)}})
    # Pages that are not on the disk yet stay in memory.
    with open(path, 'rb') as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def plain(path):
    """Return an array over the mapped file."""
    with h5py.File(path, 'r') as file:
        offset, shape = file['x'].id.get_offset(), file['x'].shape
    with open(path, 'rb') as file:
        memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    size = shape[0] * shape[1]
    return numpy.frombuffer(memory, 'u1', size, offset).reshape(shape)


def by_take(path, order):
    """Yield batches of `take` on the mapped file."""
    rows = plain(path)
    places = numpy.arange(len(rows))
    if order == 'shuffled':
        numpy.random.RandomState(1).shuffle(places)
    for start in range(0, len(places), BATCH):
        yield rows.take(places[start:start + BATCH], axis=0)


def after_ordered_read(path, order):
    """Yield batches of `take` after one ordered read of the file."""
    with open(path, 'rb', buffering=0) as file:
        buffer = bytearray(8 << 20)
        while file.readinto(buffer):
            pass
    yield from by_take(path, order)


def by_fuel(path, order):
    """Yield batches of a stream."""
    dataset = H5PYDataset(path, ('train',))
    scheme = ShuffledScheme if order == 'shuffled' else SequentialScheme
    stream = DataStream(dataset, iteration_scheme=scheme(
        dataset.num_examples, BATCH))
    for batch, in stream.get_epoch_iterator():
        yield batch
    stream.close()


def by_plain_fuel(path, order):
    """Yield batches of a stream that takes the file for one in memory."""
    RawFile.is_resident = lambda *_: True
    yield from by_fuel(path, order)


WAYS = {'fuel': by_fuel, PLAIN: by_plain_fuel, 'plain mapping': by_take,
        'ordered read first': after_ordered_read}


def rate(way, options, layout, order, group=''):
    """Return the examples a second of one way over a fresh file, in a new
    process."""
    seconds = options.seconds if group else 1e9
    receiver, sender = multiprocessing.Pipe(duplex=False)

    def time_it():
        if group:
            Path(group, 'cgroup.procs').write_text(str(os.getpid()))
        count, start = 0, time.perf_counter()
        for batch in WAYS[way](path, order):
            count += len(batch)
            if time.perf_counter() - start > seconds:
                break
        sender.send(count / (time.perf_counter() - start))

    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = str(Path(folder) / 'x.hdf5')
        write_file(path, (options.megabytes << 20) // ROW, layout)
        child = multiprocessing.get_context('fork').Process(target=time_it)
        child.start()
        sender.close()
        found = receiver.recv()
        child.join()
    return found


@contextlib.contextmanager
def limited(nbytes):
    """Lend a control group with a limit on memory; '' if none can be made."""
    new = (GROUPS / 'cgroup.controllers').exists()
    group = (GROUPS if new else GROUPS / 'memory') / f'fuel-{os.getpid()}'
    try:
        group.mkdir()
    except OSError:
        yield ''
        return
    try:
        (group / ('memory.max' if new else 'memory.limit_in_bytes')
         ).write_text(str(nbytes))
    except OSError:
        group.rmdir()
        yield ''
        return
    try:
        yield str(group)
    finally:
        group.rmdir()


def ratios(references, options, layout, order, group=''):
    """Return Fuel's speed as multiples of each reference's, a list of one for
    each round."""
    found = {name: [] for name in references}
    for _ in range(options.rounds):
        ways = [*references, 'fuel']
        random.shuffle(ways)
        speeds = {name: rate(name, options, layout, order, group)
                  for name in ways}
        for name in references:
            found[name].append(speeds['fuel'] / speeds[name])
    return found


def rows_of(found, where):
    """Return rows of the table, and how often Fuel was the faster one."""
    return [(f'{where}, to {name}', measure.Ratio(
        statistics.median(each), min(each), max(each)),
        f'{sum(ratio > 1 for ratio in each)} of {len(each)}', 'at least 1')
        for name, each in found.items()]


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--tiny', action='store_true')
    parser.add_argument('--megabytes', type=int, default=512)
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--folder', help='on the disk to measure')
    parser.add_argument('--seconds', type=float, default=3.)
    parser.add_argument('--only', action='append', choices=WAYS,
                        help='ways to compare Fuel with')
    options = parser.parse_args()
    if options.tiny:
        options.megabytes, options.rounds, options.seconds = 1, 1, 0.1
    wanted = options.only or [*WAYS]
    rows = []
    for layout, order in itertools.product(
            ('contiguous', 'chunked'), ('shuffled', 'in order')):
        # There is no map of the rows of chunks.
        ways = [name for name in wanted if name != 'fuel' and (
            name == PLAIN or layout == 'contiguous')]
        rows += rows_of(ratios(ways, options, layout, order),
                        f'{layout}, {order}')
    # Python with its packages takes some of the memory itself.
    limit = max(128 << 20, options.megabytes * (1 << 20) // 3)
    with limited(limit) as group:
        where = 'contiguous, three times the memory'
        rows += rows_of(ratios(
            [name for name in wanted if name in (PLAIN, 'plain mapping')],
            options, 'contiguous', 'shuffled', group), where) if group else [
                (where, 'no control group can be made here', '', '')]
    measure.print_table(rows, ('benchmark', 'ratio', 'faster', 'target'))


if __name__ == '__main__':
    main()
