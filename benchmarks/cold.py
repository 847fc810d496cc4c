"""Shuffled batches from a disk, when nothing of the file is in memory.

Each way is timed in a process of its own, after the file's pages were
dropped: Fuel, `take` on the mapped file, and the same after one ordered read
of the file. Where a control group can be made (on Linux, by root), the three
are repeated with a limit on memory of a third of the file.
"""
import argparse
import contextlib
import json
import mmap
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import h5py
import measure
import numpy

from fuel.datasets import H5PYDataset
from fuel.schemes import ShuffledScheme
from fuel.streams import DataStream

BATCH = 128
ROW = 3072
GROUPS = Path('/sys/fs/cgroup')


def write_file(path, count):
    """Write a contiguous source of bytes that no disk can compress."""
    rng = numpy.random.default_rng(0)
    with h5py.File(path, 'w') as file:
        x = file.create_dataset('x', (count, ROW), 'uint8')
        for start in range(0, count, 4096):
            x[start:start + 4096] = rng.integers(
                0, 256, (min(4096, count - start), ROW), 'uint8')
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'x': (0, count)}})
    with open(path, 'rb') as file:
        os.fsync(file.fileno())


def drop(path):
    """Take the file's pages out of memory."""
    with open(path, 'rb') as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def plain(path):
    """Return an array over the mapped file."""
    with h5py.File(path, 'r') as file:
        offset, shape = file['x'].id.get_offset(), file['x'].shape
    with open(path, 'rb') as file:
        memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    size = shape[0] * shape[1]
    return numpy.frombuffer(memory, 'u1', size, offset).reshape(shape)


def by_take(path):
    """Yield batches of `take` on the mapped file."""
    rows = plain(path)
    order = numpy.random.RandomState(1).permutation(len(rows))
    for start in range(0, len(order), BATCH):
        yield rows.take(order[start:start + BATCH], axis=0)


def after_ordered_read(path):
    """Yield batches of `take` after one ordered read of the file."""
    with open(path, 'rb', buffering=0) as file:
        buffer = bytearray(8 << 20)
        while file.readinto(buffer):
            pass
    yield from by_take(path)


def by_fuel(path):
    """Yield batches of a stream."""
    dataset = H5PYDataset(path, ('train',))
    stream = DataStream(dataset, iteration_scheme=ShuffledScheme(
        dataset.num_examples, BATCH))
    for batch, in stream.get_epoch_iterator():
        yield batch
    stream.close()


WAYS = {'plain mapping': by_take, 'ordered read first': after_ordered_read,
        'fuel': by_fuel}


def time_one(way, path, seconds, group):
    """Print how many examples a second one way gives, as JSON."""
    if group:
        Path(group, 'cgroup.procs').write_text(str(os.getpid()))
    drop(path)
    count, start = 0, time.perf_counter()
    for batch in WAYS[way](path):
        count += len(batch)
        if time.perf_counter() - start > seconds:
            break
    print(json.dumps(count / (time.perf_counter() - start)))


def rate(way, path, seconds, group=''):
    """Return the examples a second of one way, in a new process."""
    done = subprocess.run(
        [sys.executable, __file__, '--way', way, '--path', path, '--seconds',
         str(seconds), '--group', group],
        capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


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


def ratios(path, references, rounds, seconds, group=''):
    """Return Fuel's speed as a multiple of each reference's."""
    found = {name: [] for name in references}
    for _ in range(rounds):
        speeds = {name: rate(name, path, seconds, group)
                  for name in (*references, 'fuel')}
        for name in references:
            found[name].append(speeds['fuel'] / speeds[name])
    return [measure.Ratio(statistics.median(each), min(each), max(each))
            for each in found.values()]


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--tiny', action='store_true')
    parser.add_argument('--megabytes', type=int, default=512)
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--folder', help='on the disk to measure')
    parser.add_argument('--way')
    parser.add_argument('--path')
    parser.add_argument('--seconds', type=float, default=3.)
    parser.add_argument('--group', default='')
    options = parser.parse_args()
    if options.way:
        time_one(options.way, options.path, options.seconds, options.group)
        return
    if options.tiny:
        options.megabytes, options.rounds, options.seconds = 1, 1, 0.1
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = str(Path(folder) / 'x.hdf5')
        write_file(path, (options.megabytes << 20) // ROW)
        first, second = ratios(
            path, ('plain mapping', 'ordered read first'), options.rounds,
            1e9)
        rows = [('fits in memory, to plain mapping', first, 'at least 1'),
                ('fits in memory, to one ordered read first', second,
                 'at least 1')]
        # Python with its packages takes some of the memory itself.
        limit = max(128 << 20, options.megabytes * (1 << 20) // 3)
        name = 'three times the memory, to plain mapping'
        with limited(limit) as group:
            if group:
                third, = ratios(path, ('plain mapping',), options.rounds,
                                options.seconds, group)
                rows.append((name, third, 'at least 4'))
            else:
                rows.append((name, 'no control group can be made here',
                             'at least 4'))
        measure.print_table(rows)


if __name__ == '__main__':
    main()
