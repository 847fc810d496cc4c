"""Remote files: epochs over HTTP, from the cache, and beside shards.

    python benchmarks/remote.py [--size MB] [--rate BYTES] [--tiny]
                                [--only epochs|latency|cache|shards]

Reads files of 1 GB (or of the given size) from a server on loopback that has
20 ms of latency and sends 50 MB/s at most, and prints how fast that is beside
a plain download at that rate, and how little the latency of requests matters;
the second epoch beside one of the local file; the memory that it takes; and
what remote_shards.py finds.
"""
import argparse
import contextlib
import gc
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import h5py
import numpy

# At the end: its folders have names of other packages.
sys.path.append(str(Path(__file__).resolve().parents[1] / 'tests'))

from support.range_server import server_process

from fuel import config
from fuel.datasets import H5PYDataset
from fuel.schemes import BlockShuffledScheme, ShuffledScheme
from fuel.streams import DataStream

ROW = 3072
BATCH = 128
# Rows in a chunk: a megabyte, and of compressed chunks rather more.
CHUNK = {'unfiltered': 341, 'gzip': 1024}
WINDOW = {'unfiltered': 16, 'gzip': 8}
MB = 1 << 20
# Seconds that a server waits before it answers.
LATENCIES = (0., .005, .02, .05)
# So that no epoch finds what another one fetched.
NUMBERS = itertools.count()


def make_file(path, kind, nbytes):
    """Write a file of examples of 3 KB; compressed ones shrink by half."""
    num_rows = nbytes // ROW
    generator = numpy.random.RandomState(0)
    options = {'compression': 'gzip', 'compression_opts': 1} if (
        kind == 'gzip') else {}
    with h5py.File(path, 'w') as file:
        rows = file.create_dataset(
            'x', (num_rows, ROW), 'uint8', chunks=(CHUNK[kind], ROW),
            **options)
        step = 16 * CHUNK[kind]
        for start in range(0, num_rows, step):
            count = min(step, num_rows - start)
            rows[start:start + count] = generator.randint(
                0, 16 if kind == 'gzip' else 256, (count, ROW))
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'x': (0, num_rows)}})


def download(url):
    """Return the seconds of a plain download in one connection."""
    began = time.perf_counter()
    with urllib.request.urlopen(url) as reply:
        buffer = bytearray(1 << 16)
        while reply.readinto(buffer):
            pass
    return time.perf_counter() - began


def scheme_of(name, dataset, kind):
    """Return a shuffle of a data set."""
    if name == 'full':
        return ShuffledScheme(dataset.num_examples, BATCH)
    return BlockShuffledScheme.aligned(dataset, BATCH, window=WINDOW[kind])


def epoch(dataset, scheme):
    """Return the seconds of an epoch."""
    stream = DataStream(dataset, iteration_scheme=scheme)
    began = time.perf_counter()
    count = sum(len(rows) for rows, in stream.get_epoch_iterator())
    seconds = time.perf_counter() - began
    assert count == dataset.num_examples
    return seconds


def used_memory():
    """Return the bytes of memory that are this process's alone."""
    fields = dict(line.split(':') for line in Path(
        '/proc/self/status').read_text().splitlines())
    return 1024 * sum(int(fields[name].split()[0])
                      for name in ('RssAnon', 'RssShmem'))


class Peak:
    """The largest amount of memory in a block, above that before it."""

    def __enter__(self):
        import threading
        self._over = threading.Event()
        self._before = used_memory()
        self.nbytes = 0
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        return self

    def _look(self):
        while not self._over.wait(.02):
            self.nbytes = max(self.nbytes, used_memory() - self._before)

    def __exit__(self, *error):
        self._over.set()
        self._thread.join()


@contextlib.contextmanager
def caches(shuffle, size, is_on_disk=True):
    """Have empty caches; those of a full shuffle hold the whole file.

    Where decoded chunks do not fit, a full shuffle decodes nearly all of them
    for each batch, of a local file as well: no order to read a large file in.
    """
    with tempfile.TemporaryDirectory() as folder:
        config.remote_cache_path = folder if is_on_disk else 'off'
        if shuffle == 'full':
            # Bytes as they are, and decoded.
            config.remote_memory_bytes = 2 * size
            config.chunk_cache_bytes = 3 * size
        try:
            yield
        finally:
            config.remote_memory_bytes = 64 * MB
            config.chunk_cache_bytes = 96 * MB


def fresh(url):
    """Return another name of a file, which no cache knows."""
    return f'{url}?version={next(NUMBERS)}'


def row(name, value, target, detail=''):
    """Print a line of the table."""
    print(f'{name:<58} {value:>8} {target:>8}  {detail}', flush=True)


def first_epoch(url, shuffle, kind):
    """Return the data set, and the seconds to open it and of an epoch."""
    began = time.perf_counter()
    dataset = H5PYDataset(fresh(url), ('train',))
    scheme = scheme_of(shuffle, dataset, kind)
    return dataset, time.perf_counter() - began + epoch(dataset, scheme)


def latencies(folder, kind, size, rate):
    """Measure the first epoch of a file from servers of one rate that take
    longer and longer to answer."""
    for cached, where in ((True, 'disk cache'), (False, 'memory alone')):
        seconds = []
        for latency in LATENCIES:
            with caches('hierarchical', size, cached), server_process(
                    folder, '--latency', str(latency), '--rate', str(rate),
                    ) as root:
                dataset, taken = first_epoch(
                    f'{root}{kind}.hdf5', 'hierarchical', kind)
                seconds.append(taken)
                dataset.close(None)
                del dataset
                gc.collect()
        row(f'{kind}, {where}: slowest of the fastest, by latency',
            f'{min(seconds) / max(seconds):.2f}', '0.90', ', '.join(
                f'{latency * 1e3:g} ms {size / taken / 1e6:.0f} MB/s'
                for latency, taken in zip(LATENCIES, seconds, strict=True)))


def first_epochs(url, kind, seconds, size):
    """Measure first epochs, of a download that takes some seconds."""
    for shuffle, cached in itertools.product(
            ('hierarchical', 'full'), (True, False)):
        with caches(shuffle, size, cached):
            with Peak() as peak:
                dataset, taken = first_epoch(url, shuffle, kind)
            budget = config.chunk_cache_bytes + (
                0 if cached else config.remote_memory_bytes)
            counts = dataset._access.current.raw.counts
            where = 'disk cache' if cached else 'memory alone'
            row(f'{kind}, {shuffle} shuffle, {where}: of a download',
                f'{seconds / taken:.2f}', '0.85',
                f'{counts.requests} requests, {counts.nbytes / MB:.0f} MB '
                f'of {size / MB:.0f}')
            row('    memory above the budget (MB)',
                f'{(peak.nbytes - budget) / MB:.0f}', '64',
                f'{peak.nbytes / MB:.0f} MB of {budget / MB:.0f}')
            dataset.close(None)
            del dataset
            gc.collect()


def decoding_epoch(dataset, scheme):
    """Return the seconds of an epoch that finds no chunk decoded."""
    dataset.close(None)
    dataset.get_data(None, [0])
    return epoch(dataset, scheme)


def second_epochs(url, path, kind):
    """Measure epochs out of the cache beside those of the local file."""
    for shuffle in ('hierarchical', 'full'):
        with caches(shuffle, os.path.getsize(path)):
            remote = H5PYDataset(fresh(url), ('train',))
            local = H5PYDataset(path, ('train',))
            epoch(remote, scheme_of(shuffle, remote, kind))
            # Between epochs, unfiltered files stay open, with their pages.
            read = decoding_epoch if kind == 'gzip' else epoch
            ratios = []
            for _ in range(5):
                here = read(local, scheme_of(shuffle, remote, kind))
                there = read(remote, scheme_of(shuffle, remote, kind))
                ratios.append(here / there)
            row(f'{kind}, {shuffle} shuffle, from the cache: of local',
                f'{numpy.median(ratios):.2f}', '0.90',
                f'{min(ratios):.2f} to {max(ratios):.2f}')


def main(arguments=None):
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--size', type=float, default=1024.,
                        help='of each file, in MB')
    parser.add_argument('--rate', type=float, default=50e6)
    parser.add_argument('--latency', type=float, default=.02)
    parser.add_argument('--only', choices=[
        'epochs', 'latency', 'cache', 'shards'])
    parser.add_argument('--tiny', action='store_true',
                        help='only see whether it runs')
    options = parser.parse_args(arguments)
    if options.tiny:
        options.size, options.rate, options.latency = 4, 1e9, .001
    config.chunk_cache_bytes = 96 * MB
    config.remote_memory_bytes = 64 * MB
    folder = Path(tempfile.mkdtemp())
    try:
        row('workload', 'measured', 'at least')
        if options.only != 'shards':
            measure(options, folder)
        if options.only in (None, 'shards'):
            compare_shards(options)
    finally:
        shutil.rmtree(folder)
        for name in ('chunk_cache_bytes', 'remote_memory_bytes',
                     'remote_cache_path'):
            with contextlib.suppress(AttributeError):
                delattr(config, name)


def measure(options, folder):
    """Make the files, and run each part."""
    slow = ['--latency', str(options.latency), '--rate', str(options.rate)]
    for kind in CHUNK:
        path = folder / f'{kind}.hdf5'
        make_file(path, kind, int(options.size * MB))
        size = os.path.getsize(path)
        with server_process(folder, *slow) as root:
            if options.only in (None, 'epochs'):
                seconds = download(f'{root}{kind}.hdf5')
                first_epochs(f'{root}{kind}.hdf5', kind, seconds, size)
        gc.collect()
        if options.only in (None, 'latency'):
            latencies(folder, kind, size, options.rate)
        if options.only in (None, 'cache'):
            with server_process(folder) as root:
                second_epochs(f'{root}{kind}.hdf5', path, kind)


def compare_shards(options):
    """Print the rows of shards, whose libraries run in their own processes."""
    sys.stdout.flush()
    subprocess.run(
        [sys.executable, Path(__file__).with_name('remote_shards.py'),
         *(f'--{name}={getattr(options, name)}'
           for name in ('size', 'rate', 'latency')), '--no-header'],
        check=True)


if __name__ == '__main__':
    main()
