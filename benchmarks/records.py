"""Measure tar archives of samples, and folders of files, beside plain reads.

    python benchmarks/records.py [--tiny] [--peer webdataset]

Prints how long the index of an archive of 100,000 members takes, in a file of
10 GB with holes, and later, with the bytes that are read and the memory; and
the rate of shuffled members beside `os.preadv` of the same ranges into one
buffer. Also how long the index of a folder of 200,000 files in 1,000 folders
takes beside `os.listdir` of the same folders, sorted, and later; and the rate
of shuffled files, and of records of TFRecord and MDS, beside plain reads.
With ``--peer webdataset``, which reads in order, its rate too.
"""
import importlib.util
import io
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
import timeit
from pathlib import Path

import measure
import numpy

from fuel import config
from fuel.datasets import (
    FilesDataset, MDSDataset, TarDataset, TFRecordDataset)
from fuel.kernels.tfrecord import masked_crc
from fuel.streams import DataStream

BATCH = 64
MB = 1 << 20
# Opens an archive, and prints seconds, bytes read, and bytes of memory.
OPEN = """
import json, resource, sys, time
from fuel import config
from fuel.datasets import TarDataset
from fuel.utils.io_counts import io_counts

def bytes_read():
    with open('/proc/self/io') as file:
        return int(file.readline().split()[1])

TarDataset(sys.argv[1])
config.remote_cache_path = sys.argv[3]
before, began = bytes_read(), time.perf_counter()
dataset = TarDataset(sys.argv[2])
print(json.dumps([
    time.perf_counter() - began, bytes_read() - before,
    resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    len(dataset)]))
"""


def add(archive, name, content):
    """Add a member with an extended header, as WebDataset writes it."""
    info = tarfile.TarInfo(name)
    info.size, info.mtime = len(content), 1700000000.25
    archive.addfile(info, io.BytesIO(content))


def write_holes(path, count, nbytes):
    """Write an archive whose members are holes of the file."""
    with open(path, 'wb') as file:
        for number in range(count):
            info = tarfile.TarInfo(f'train/{number:08}.jpg')
            info.size, info.mtime = nbytes, 1700000000.25
            file.write(info.tobuf(tarfile.PAX_FORMAT))
            file.seek(-(-nbytes // 512) * 512, os.SEEK_CUR)
        file.write(bytes(1024))


def index(folder, tiny):
    """Return the rows of the table about the index."""
    path, small = folder / 'holes.tar', folder / 'small.tar'
    count = 2000 if tiny else 100_000
    write_holes(path, count, 104_000)
    write_holes(small, 1, 10)
    rows = []
    for name, most in (('first', '3 s'), ('later', '0.2 s')):
        done = subprocess.run(
            [sys.executable, '-c', OPEN, str(small), str(path),
             str(folder / 'cache')], check=True, capture_output=True,
            text=True)
        seconds, nbytes, memory, found = json.loads(done.stdout)
        if found != count:
            raise ValueError(f'{found} of {count} members were found')
        read = f', {nbytes / MB:.1f} MB read' * (name == 'later')
        rows.append((
            f'index of {count} members, {name}',
            f'{seconds:.2f} s{read}, {memory / MB:.0f} MB of memory',
            f'at most {most}{", 4 MB" * bool(read)}, 200 MB'))
    os.unlink(path)
    return rows


def write_shards(folder, tiny):
    """Write four archives of files of random sizes; return their paths."""
    rng = random.Random(0)
    paths = [str(folder / f'{number}.tar') for number in range(4)]
    for path in paths:
        with tarfile.open(path, 'w') as archive:
            for number in range(20 if tiny else 2500):
                key = f'{Path(path).stem}/{number:06}'
                add(archive, f'{key}.cls', b'%d' % (number % 1000))
                add(archive, f'{key}.jpg', rng.randbytes(
                    rng.randint(8_000, 30_000)))
    return paths


def write_records(folder, tiny):
    """Write shards of TFRecord and of MDS; return a dict from their names to
    their paths, the data set, and the field with the places."""
    rng = random.Random(0)
    plain, mds = [], folder / 'mds'
    mds.mkdir()
    facts = []
    for number in range(4):
        records = [rng.randbytes(rng.randint(8_000, 30_000))
                   for _ in range(20 if tiny else 2500)]
        plain.append(str(folder / f'{number}.tfrecord'))
        with open(plain[-1], 'wb') as file:
            for record in records:
                size = struct.pack('<Q', len(record))
                for part in (size, record):
                    file.write(part)
                    file.write(struct.pack('<I', masked_crc(part)))
        ends = numpy.cumsum([4 * len(records) + 8, *[
            4 + len(record) for record in records]])
        path = mds / f'shard.{number:05}.mds'
        path.write_bytes(numpy.array([len(records), *ends], '<u4').tobytes()
                         + b''.join(struct.pack('<I', len(record)) + record
                                    for record in records))
        facts.append({
            'format': 'mds', 'version': 2, 'samples': len(records),
            'column_names': ['jpg'], 'column_encodings': ['jpeg'],
            'column_sizes': [None], 'compression': None, 'zip_data': None,
            'raw_data': {'basename': path.name, 'hashes': {},
                         'bytes': path.stat().st_size}})
    (mds / 'index.json').write_text(json.dumps(
        {'version': 2, 'shards': facts}))
    dataset = MDSDataset(mds)
    return {'TFRecord': (plain, TFRecordDataset(plain), 'record'),
            'MDS': (dataset.shards, dataset, 'sample')}


def plain_reads(paths, dataset, field='jpg'):
    """Return a function that reads the records in a random order into one
    buffer."""
    bounds, (starts, sizes) = dataset.table.bounds, dataset.table.fields[field]
    files = numpy.repeat([os.open(path, os.O_RDONLY) for path in paths],
                         numpy.diff(bounds))
    buffer = memoryview(bytearray(int(sizes.max())))

    def read():
        order = numpy.random.permutation(len(starts))
        for file, start, size in zip(
                files[order].tolist(), starts[order].tolist(),
                sizes[order].tolist(), strict=True):
            os.preadv(file, [buffer[:size]], start)

    return read


def epochs(dataset):
    """Return a function that reads a shuffled epoch."""
    stream = DataStream(dataset, batch_size=BATCH, shuffle=True)

    def read():
        for _ in stream.get_epoch_iterator():
            pass

    return read


def webdataset_in_order(paths):
    """Return a function that reads an epoch with WebDataset, in order."""
    import webdataset
    dataset = webdataset.WebDataset(
        paths, shardshuffle=False, empty_check=False).to_tuple('jpg').batched(
            BATCH, collation_fn=list)

    def read():
        for _ in dataset:
            pass

    return read


def members(folder, options):
    """Return the rows of the table about members."""
    paths = write_shards(folder, options.tiny)
    dataset = TarDataset(paths, ['jpg'])
    reference = plain_reads(paths, dataset)
    rows = [('shuffled members, of os.preadv', str(measure.compare(
        reference, epochs(dataset), **options.how)), 'at least 0.77')]
    for name, found in write_records(folder, options.tiny).items():
        rows.append((f'shuffled records of {name}, of os.preadv', str(
            measure.compare(plain_reads(*found), epochs(found[1]),
                            **options.how)), ''))
    if options.peer and importlib.util.find_spec(options.peer):
        rows.append((f'{options.peer} in order, of os.preadv', str(
            measure.compare(reference, webdataset_in_order(paths),
                            **options.how)), ''))
    return rows


def write_folders(folder, folders, files, content=b''):
    """Write folders of files; return the paths of the folders."""
    paths = [folder / f'class{number:04}' for number in range(folders)]
    for path in paths:
        path.mkdir(parents=True)
        for number in range(files):
            (path / f'img_{number * 7919 % 100_003:06}.jpg').write_bytes(
                content)
        # Folders that were changed just now are listed again.
        os.utime(path, ns=(10 ** 18, 10 ** 18))
    os.utime(folder, ns=(10 ** 18, 10 ** 18))
    return paths


def of_folders(folder, tiny, how):
    """Return the rows of the table about folders."""
    many, few = folder / 'many', folder / 'few'
    paths = write_folders(many, *((10, 200) if tiny else (1000, 200)))
    cache = folder / 'cache' / 'indexes'

    def listed():
        return [sorted(os.listdir(path)) for path in paths]

    def first():
        shutil.rmtree(cache, ignore_errors=True)
        return FilesDataset(many)

    ratio = measure.compare(listed, first, **how)
    later = min(timeit.repeat(lambda: FilesDataset(many), number=1, repeat=5))
    count = len(FilesDataset(many))
    names = [path / name for path in write_folders(
        few, 10, 20 if tiny else 500, random.Random(0).randbytes(20_000))
             for name in sorted(os.listdir(path))]

    def plain():
        for place in numpy.random.permutation(len(names)).tolist():
            with open(names[place], 'rb', 0) as file:
                file.read()

    return [
        (f'first index of {count} files, of os.listdir, sorted', str(ratio),
         'at least 0.5'),
        (f'index of {count} files, later', f'{later:.3f} s',
         'at most 0.2 s'),
        ('shuffled files, of open and read', str(measure.compare(
            plain, epochs(FilesDataset(few, sources=('image',))), **how)), '')]


def main():
    """Print the table."""
    parser = measure.parser(__doc__)
    parser.add_argument('--peer', choices=['webdataset'])
    options = parser.parse_args()
    options.how = measure.TINY if options.tiny else measure.FULL
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config.remote_cache_path = str(folder / 'cache')
        began = time.perf_counter()
        rows = [*index(folder, options.tiny), *members(folder, options),
                *of_folders(folder, options.tiny, options.how)]
        measure.print_table(rows)
        print(f'in {time.perf_counter() - began:.0f} s')
    measure.print_versions('webdataset')


if __name__ == '__main__':
    main()
