"""A remote file beside shards of other libraries, from the same server.

    python benchmarks/remote_shards.py [--size MB] [--rate BYTES]
                                       [--settings N] [--only LIBRARY ...]
                                       [--tiny]

Writes the same examples as an HDF5 file without a filter and as shards of
WebDataset, LitData and Mosaic's streaming, and prints how fast Fuel reads its
first epoch beside the fastest of them, at a limited rate and at none. Each
library is measured in a process of its own, after the same warm-up, with
shards of two sizes and up to two workers; at the limited rate, with those N
settings that were the fastest without a limit. What is not installed is left
out, and listed:

    pip install ".[remote]" torch webdataset litdata mosaicml-streaming

WebDataset reads a URL through curl. LitData and Mosaic download whole shards
and have no class for plain web servers, so each is given one here.
"""
import argparse
import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import h5py
import numpy
from measure import print_versions
from remote import BATCH, MB, ROW, caches, fresh, make_file, row, scheme_of
from support.range_server import server_process

from fuel import config
from fuel.datasets import H5PYDataset
from fuel.streams import DataStream

WORKERS = (0, 1, 2)
# Megabytes of a shard: a small one, and what two of the libraries default to.
SHARDS = (8, 64)
ROUNDS = 3
# Megabytes that each process reads first, to import and connect everything.
WARM_SIZE = 4
SHUFFLED = 1000


def fetch(url, path):
    """Download a file as a whole; it appears when it is complete."""
    part = f'{path}.part{os.getpid()}'
    with urllib.request.urlopen(url) as reply, open(part, 'wb') as file:
        shutil.copyfileobj(reply, file, 1 << 20)
    os.replace(part, path)


class Fuel:
    """An HDF5 file, in a shuffle by blocks, cached on disk or in memory."""

    module = 'fuel'
    settings = tuple({'on_disk': on_disk} for on_disk in (True, False))

    @staticmethod
    def write(rows, folder, setting):
        """Link to the file of the rows."""
        Path(folder).mkdir()
        os.link(rows.file.filename, Path(folder) / 'rows.hdf5')

    @staticmethod
    def batches(url, names, cache, setting):
        """Return the batches of an epoch."""
        if setting['on_disk']:
            config.remote_cache_path = cache
        dataset = H5PYDataset(fresh(url + 'rows.hdf5'), ('train',))
        stream = DataStream(dataset, iteration_scheme=scheme_of(
            'hierarchical', dataset, 'unfiltered'))
        for rows, in stream.get_epoch_iterator():
            yield rows
        dataset.close(None)


def settings_of_shards():
    """Return what is tried of a library that has shards."""
    return tuple({'shard': shard, 'workers': workers}
                 for shard in SHARDS for workers in WORKERS)


class WebDataset:
    """Tar files, read from their beginning to their end."""

    module = 'webdataset'
    settings = settings_of_shards()

    @staticmethod
    def write(rows, folder, setting):
        """Write a member of a tar file for each row."""
        import webdataset
        Path(folder).mkdir()
        with webdataset.ShardWriter(
                f'{folder}/%05d.tar', maxsize=setting['shard'] * MB,
                verbose=0) as writer:
            for number, example in enumerate(rows):
                writer.write({'__key__': f'{number:09d}',
                              'bin': example.tobytes()})

    @staticmethod
    def batches(url, names, cache, setting):
        """Return the batches of an epoch."""
        import webdataset
        dataset = webdataset.WebDataset(
            [url + name for name in names], shardshuffle=len(names),
            empty_check=False).shuffle(SHUFFLED).to_tuple('bin').map(
                lambda parts: numpy.frombuffer(parts[0], 'uint8')).batched(
                    BATCH, collation_fn=numpy.stack)
        return iter(webdataset.WebLoader(
            dataset, batch_size=None, num_workers=setting['workers']))


class LitData:
    """Shards that are downloaded as a whole and read at random."""

    module = 'litdata'
    settings = settings_of_shards()

    @staticmethod
    def write(rows, folder, setting):
        """Write rows as arrays."""
        from litdata.streaming.cache import Cache
        Path(folder).mkdir()
        cache = Cache(str(folder), chunk_bytes=setting['shard'] * MB)
        for number, example in enumerate(rows):
            cache[number] = example
        cache.done()
        cache.merge()

    @staticmethod
    def batches(url, names, cache, setting):
        """Return the batches of an epoch."""
        from litdata import StreamingDataLoader, StreamingDataset
        from litdata.streaming.downloader import (
            Downloader,
            register_downloader,
        )
        from litdata.streaming.resolver import Dir

        class Web(Downloader):
            """Downloads shards from a web server."""

            def download_file(self, remote_filepath, local_filepath):
                if not os.path.exists(local_filepath):
                    fetch(remote_filepath, local_filepath)

        register_downloader('http://', Web, overwrite=True)
        return iter(StreamingDataLoader(
            StreamingDataset(Dir(path=cache, url=url.rstrip('/')),
                             shuffle=True, drop_last=False),
            batch_size=BATCH, num_workers=setting['workers'],
            collate_fn=numpy.stack))


class Mosaic:
    """Shards of MDS, which are downloaded as a whole."""

    module = 'streaming'
    settings = settings_of_shards()

    @staticmethod
    def write(rows, folder, setting):
        """Write rows as arrays of a fixed shape."""
        from streaming import MDSWriter
        with MDSWriter(out=str(folder), columns={'x': f'ndarray:uint8:{ROW}'},
                       size_limit=setting['shard'] * MB) as writer:
            for example in rows:
                writer.write({'x': example})

    @staticmethod
    def batches(url, names, cache, setting):
        """Return the batches of an epoch."""
        from streaming import StreamingDataset
        from streaming.base.storage import download
        from streaming.base.util import clean_stale_shared_memory
        from torch.utils.data import DataLoader

        class Web(download.CloudDownloader):
            """Downloads shards from a web server."""

            @staticmethod
            def _client_identifier():
                return 'http'

            def clean_up(self):
                pass

            def _download_file_impl(self, remote, local, timeout):
                fetch(remote, local)

        clean_stale_shared_memory()
        download.DOWNLOADER_MAPPINGS['http'] = Web
        return iter(DataLoader(
            StreamingDataset(remote=url.rstrip('/'), local=cache,
                             batch_size=BATCH, shuffle=True,
                             num_canonical_nodes=1),
            batch_size=BATCH, num_workers=setting['workers'],
            collate_fn=lambda examples: numpy.stack(
                [example['x'] for example in examples])))


LIBRARIES = {'Fuel': Fuel, 'WebDataset': WebDataset, 'LitData': LitData,
             'Mosaic': Mosaic}


def write(library, setting, source, folder):
    """Write the rows of an HDF5 file, and those of the warm-up."""
    for path in source:
        with h5py.File(path) as file:
            LIBRARIES[library].write(
                file['x'], Path(folder) / Path(path).stem, setting)


def seconds_of_epoch(library, setting, url, names, expected):
    """Return the seconds of an epoch with no cache, opening included."""
    with caches('hierarchical', 0, False), (
            tempfile.TemporaryDirectory()) as cache:
        began = time.perf_counter()
        found = [0, 0]
        for batch in LIBRARIES[library].batches(url, names, cache, setting):
            found[0] += len(batch)
            found[1] += int(batch[:, 0].sum())
        seconds = time.perf_counter() - began
    if found != expected:
        raise ValueError(f'{library} read {found}, which is not {expected}')
    return seconds


def measure(library, tries, server, expected, rounds):
    """Return the median seconds of an epoch with each setting.

    `tries`: settings, the name of the folder of their shards, and the names
        of these, by part.
    """
    medians = []
    for setting, folder, names in tries:
        seconds = [seconds_of_epoch(
            library, setting, f'{server}{folder}/{part}/', names[part],
            expected[part]) for part in ('warm', *['rows'] * rounds)]
        medians.append(statistics.median(seconds[1:]))
    return medians


def in_process(**job):
    """Do a job in a process of its own; return what it prints last."""
    run = subprocess.run(
        [sys.executable, __file__, '--job', json.dumps(job)], text=True,
        capture_output=True, timeout=1800, check=False,
        env={**os.environ, 'TOKENIZERS_PARALLELISM': 'false'})
    if run.returncode:
        raise RuntimeError(run.stderr.strip().rpartition('\n')[2])
    return json.loads(run.stdout.splitlines()[-1])


def do_job(job):
    """Do what `in_process` was asked for."""
    task = {'write': write, 'measure': measure}[job.pop('task')]
    print(json.dumps(task(**job)))


def contents(path):
    """Return the number of rows of a file, and a sum of some bytes."""
    with h5py.File(path) as file:
        return [len(file['x']), int(file['x'][:, 0].sum())]


class Place:
    """The folder of one library's shards of one size, and their names."""

    def __init__(self, root, library, setting, sources):
        self.name = f'{library}-{setting.get("shard", 0)}'
        self.folder = Path(root) / self.name
        if not self.folder.exists():
            self.folder.mkdir()
            in_process(task='write', library=library, setting=setting,
                       source=list(map(str, sources.values())),
                       folder=str(self.folder))
        self.names = {part: sorted(os.listdir(self.folder / part))
                      for part in sources}


def written(library, root, sources):
    """Return the settings of a library, with the places of its shards."""
    module = LIBRARIES[library].module
    if importlib.util.find_spec(module) is None:
        raise ImportError(f'{module} is not installed')
    return [(setting, Place(root, library, setting, sources))
            for setting in LIBRARIES[library].settings]


def fastest(places, expected, server, rounds):
    """Measure settings; return those of each library, the fastest first.

    `places`: lists of settings with their places, by library.
    `server`: the URL of its root.
    """
    found = {}
    for library, chosen in places.items():
        try:
            seconds = in_process(
                task='measure', library=library, server=server,
                expected=expected, rounds=rounds, tries=[
                    (setting, place.name, place.names)
                    for setting, place in chosen])
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            if library == 'Fuel':
                raise
            row(f'    without {library}', '', '', error)
            continue
        found[library] = sorted(
            zip(seconds, range(len(seconds)), strict=True))
    return found


def described(places, found, nbytes):
    """Return the best result of each library as a text."""
    texts = []
    for library, results in found.items():
        seconds, number = results[0]
        texts.append(f'{library} {nbytes / seconds / 1e6:.0f} MB/s ' + str(
            places[library][number][0]).replace("'", ''))
    return '; '.join(texts)


def print_rows(options, root):
    """Measure all, and print a row for each rate."""
    size = int(options.size * MB)
    sources = {'rows': root / 'rows.hdf5', 'warm': root / 'warm.hdf5'}
    make_file(sources['rows'], 'unfiltered', size)
    make_file(sources['warm'], 'unfiltered', WARM_SIZE * MB)
    expected = {part: contents(path) for part, path in sources.items()}
    places = {}
    # Fuel is the first of them.
    for name in filter(options.only.__contains__, LIBRARIES):
        try:
            places[name] = written(name, root, sources)
        except (ImportError, RuntimeError) as error:
            row(f'    without {name}', '', '', error)
    nbytes = expected['rows'][0] * ROW
    latency = ['--latency', str(options.latency)]
    with server_process(root, *latency) as server:
        free = fastest(places, expected, server, ROUNDS)
    chosen = {name: [places[name][number] for _, number in results[
        :options.settings]] for name, results in free.items()}
    with server_process(root, *latency, '--rate',
                        str(options.rate)) as server:
        limited = fastest(chosen, expected, server, 1)
    for text, target, tried, found in (
            (f'at {options.rate / 1e6:.0f} MB/s', '0.95', chosen, limited),
            ('at no limit', '1.50', places, free)):
        mine, *others = (results[0][0] for results in found.values())
        row(f'first epoch {text}, of the best of shards',
            f'{min(others) / mine:.2f}' if others else 'alone', target,
            described(tried, found, nbytes))
    row('    LitData, Mosaic: with a downloader for HTTP made here', '', '')


def main(arguments=None):
    """Print the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--size', type=float, default=1024., help='in MB')
    parser.add_argument('--rate', type=float, default=50e6)
    parser.add_argument('--latency', type=float, default=.02)
    parser.add_argument('--settings', type=int, default=2,
                        help='tried at the limited rate')
    parser.add_argument('--only', nargs='*', choices=list(LIBRARIES),
                        default=list(LIBRARIES), metavar='LIBRARY',
                        help='measure these alone: %(choices)s')
    parser.add_argument('--tiny', action='store_true',
                        help='only see whether it runs')
    parser.add_argument('--no-header', action='store_true',
                        help=argparse.SUPPRESS)
    parser.add_argument('--job', type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    options.only.append('Fuel')
    if options.job is not None:
        do_job(options.job)
        return
    if options.tiny:
        options.size, options.rate, options.latency = 8, 1e9, .001
    if not options.no_header:
        row('workload', 'measured', 'at least')
    with tempfile.TemporaryDirectory() as folder:
        print_rows(options, Path(folder))
    if not options.no_header:
        print_versions('torch', 'webdataset', 'litdata',
                       'mosaicml-streaming')


if __name__ == '__main__':
    main()
