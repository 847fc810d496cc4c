"""Conversion and download, beside what the same bytes cost otherwise.

Raw files are made up, of the real sizes and about as compressible as the
real ones. Each reference is the fastest plain way, and stands in full beside
the candidate.
"""
import gzip
import hashlib
import io
import os
import pickle
import shutil
import statistics
import struct
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from pathlib import Path

import h5py
import measure
import numpy
from PIL import Image

from fuel.converters.cifar10 import convert_cifar10
from fuel.converters.ilsvrc2010 import prepare_hdf5_file, process_train_set
from fuel.converters.mnist import convert_mnist
from fuel.converters.svhn import convert_svhn_format_1
from fuel.downloaders.base import RawFile, default_downloader


class Peak:
    """Watches the private memory of this process."""

    def __enter__(self):
        self._start = self.highest = measure.private_memory()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self):
        while not self._end.wait(.002):
            self.highest = max(self.highest, measure.private_memory())

    def __exit__(self, *error):
        self._end.set()
        self._thread.join()
        self.megabytes = (self.highest - self._start) / 1e6


def seconds(work):
    """Return how long a piece of work takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def times(reference, candidate, rounds):
    """Return the candidate's time as a multiple of the reference's, as the
    two take turns, and the candidate's peak memory in megabytes."""
    reference()
    ratios = []
    with Peak() as peak:
        candidate()
    for _ in range(rounds):
        base = seconds(reference)
        ratios.append(seconds(candidate) / base)
    ratio = measure.Ratio(statistics.median(ratios), min(ratios),
                          max(ratios))
    return ratio, peak.megabytes


def write_tar(path, members, mode='w'):
    """Write an archive of (name, content) pairs."""
    with tarfile.open(path, mode) as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


def mnist(folder, share, rounds):
    """Convert MNIST; the reference decompresses the raw files."""
    rng = numpy.random.RandomState(0)
    names = []
    for name, full_count in (('train', 60000), ('t10k', 10000)):
        count = int(full_count * share)
        images = rng.randint(0, 256, (count, 28, 28)) * (
            rng.uniform(size=(count, 28, 28)) < .15)
        labels = rng.randint(0, 10, count)
        for kind, magic, array in (('images-idx3', 2051, images),
                                   ('labels-idx1', 2049, labels)):
            names.append(f'{folder}/{name}-{kind}-ubyte.gz')
            with gzip.open(names[-1], 'wb', 6) as raw:
                raw.write(struct.pack(f'>{1 + array.ndim}i', magic,
                                      *array.shape))
                raw.write(array.astype('uint8').tobytes())

    def decompress():
        for name in names:
            with gzip.open(name) as raw:
                raw.read()
    return times(decompress, lambda: convert_mnist(folder, folder), rounds)


def cifar10(folder, share, rounds):
    """Convert CIFAR-10; the reference decompresses the raw file."""
    rng = numpy.random.RandomState(0)
    rows = int(10000 * share)
    members = []
    for name in [f'data_batch_{i}' for i in range(1, 6)] + ['test_batch']:
        data = numpy.clip(rng.normal(128, 35, (rows, 3072)), 0, 255)
        members.append((f'cifar-10-batches-py/{name}', pickle.dumps(
            {'data': data.astype('uint8'),
             'labels': rng.randint(0, 10, rows).tolist()}, 2)))
    path = f'{folder}/cifar-10-python.tar.gz'
    write_tar(path, members, 'w:gz')

    def decompress():
        with gzip.open(path) as raw:
            while raw.read(1 << 20):
                pass
    return times(decompress, lambda: convert_cifar10(folder, folder), rounds)


def digit_struct(path, boxes):
    """Write a MATLAB 7.3 file about boxes, as SVHN's archives hold it."""
    with h5py.File(path, 'w', userblock_size=512) as h5file:
        refs, group = h5file.create_group('#refs#'), h5file.create_group(
            'digitStruct')
        keys = numpy.empty((len(boxes), 1), dtype=h5py.ref_dtype)
        for i, table in enumerate(boxes):
            image = refs.create_group(f'image{i}')
            for name, values in zip(('height', 'label', 'left', 'top',
                                     'width'), table.T, strict=True):
                cells = values[:, None].astype(float)
                if len(values) > 1:
                    cells = numpy.empty((len(values), 1), h5py.ref_dtype)
                    for j, value in enumerate(values):
                        cells[j, 0] = refs.create_dataset(
                            f'{name}{i}_{j}', data=[[float(value)]]).ref
                image.create_dataset(
                    name, data=cells,
                    dtype=h5py.ref_dtype if len(values) > 1 else float)
            keys[i, 0] = image.ref
        group.create_dataset('bbox', data=keys, dtype=h5py.ref_dtype)


def svhn(folder, count, rounds):
    """Convert images of whole numbers; the reference decodes them on one
    core and reads the boxes with plain h5py."""
    rng = numpy.random.RandomState(0)
    images, structs = [], []
    for split, share in (('train', .5), ('test', .25), ('extra', .25)):
        members, boxes = [], []
        for i in range(int(count * share)):
            height, width = rng.randint(30, 90), rng.randint(60, 200)
            small = rng.randint(0, 256, (height // 8 + 1, width // 8 + 1, 3))
            picture = Image.fromarray(small.astype('uint8')).resize(
                (width, height), Image.Resampling.BICUBIC)
            noise = rng.normal(0, 4, (height, width, 3))
            out = io.BytesIO()
            Image.fromarray(numpy.clip(numpy.asarray(picture) + noise, 0, 255
                                       ).astype('uint8')).save(out, 'PNG')
            members.append((f'{split}/{i + 1}.png', out.getvalue()))
            boxes.append(rng.randint(1, 10, (rng.randint(1, 4), 5)))
        images += [content for _, content in members]
        structs.append(f'{folder}/{split}.mat')
        digit_struct(structs[-1], boxes)
        members.append((f'{split}/digitStruct.mat',
                        Path(structs[-1]).read_bytes()))
        write_tar(f'{folder}/{split}.tar.gz', members, 'w:gz')

    def decode_and_read():
        for content in images:
            numpy.asarray(Image.open(io.BytesIO(content)))
        for struct_path in structs:
            with h5py.File(struct_path, 'r') as h5file:
                for key in h5file['digitStruct/bbox'][:, 0]:
                    image = h5file[key]
                    for name in ('height', 'label', 'left', 'top', 'width'):
                        values = image[name][:, 0]
                        if len(values) > 1:
                            [h5file[value][0, 0] for value in values]
    return times(decode_and_read,
                 lambda: convert_svhn_format_1(folder, folder), rounds)


def ilsvrc(folder, count, rounds):
    """Copy small images out of nested archives; the reference walks them
    with `tarfile` and reads every member."""
    rng = numpy.random.RandomState(0)
    wnids = [f'n{i:08d}' for i in range(100)]
    outer = []
    for wnid in wnids:
        path = f'{folder}/inner.tar'
        write_tar(path, [(f'{wnid}_{i}.JPEG', rng.bytes(
            rng.randint(2000, 6000))) for i in range(count // len(wnids))])
        outer.append((f'{wnid}.tar', Path(path).read_bytes()))
    path = f'{folder}/train.tar'
    write_tar(path, outer)
    count = count // len(wnids) * len(wnids)

    def walk():
        with tarfile.open(path) as archive:
            for member in archive:
                with tarfile.open(
                        fileobj=archive.extractfile(member)) as inner:
                    for image in inner:
                        inner.extractfile(image).read()

    def convert():
        with h5py.File(f'{folder}/ilsvrc.hdf5', 'w') as h5file:
            prepare_hdf5_file(h5file, count, 0, 0)
            process_train_set(h5file, path, None, count, {
                wnid: i for i, wnid in enumerate(wnids)}, shuffle_seed=1)
    with Peak() as peak:
        convert()
    return measure.compare(walk, convert, 0, rounds), peak.megabytes


SERVER = """
import functools, http.server, os, sys
class Quiet(http.server.SimpleHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def log_message(self, *args): pass
    def copyfile(self, source, out):
        out.flush()
        position, length = 0, os.fstat(source.fileno()).st_size
        while position < length:
            position += os.sendfile(self.connection.fileno(),
                                    source.fileno(), position, 1 << 24)
handler = functools.partial(Quiet, directory=sys.argv[1])
server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), handler)
print(server.server_port, flush=True)
server.serve_forever()
"""


def download(folder, size, rounds):
    """Download a file and verify it; the reference is curl, then
    sha256sum."""
    served, got = Path(folder, 'served'), Path(folder, 'got')
    served.mkdir()
    got.mkdir()
    block = os.urandom(1 << 20)
    digest = hashlib.sha256()
    with open(served / 'data.bin', 'wb') as raw:
        for _ in range(size >> 20):
            raw.write(block)
            digest.update(block)
    known = RawFile('data.bin', size=size >> 20 << 20,
                    sha256=digest.hexdigest())
    with subprocess.Popen([sys.executable, '-c', SERVER, served],
                          stdout=subprocess.PIPE, text=True) as server:
        try:
            url = f'http://127.0.0.1:{int(server.stdout.readline())}/data.bin'

            def curl():
                subprocess.run(['curl', '-s', '-o', got / 'curl.bin', url],
                               check=True)
                subprocess.run(['sha256sum', got / 'curl.bin'], check=True,
                               stdout=subprocess.DEVNULL)
                os.remove(got / 'curl.bin')

            def ours():
                default_downloader(str(got), [url], [known])
                os.remove(got / 'data.bin')
            return measure.compare(curl, ours, 0, rounds)
        finally:
            server.terminate()


def main():
    """Print the table."""
    arguments = measure.options(__doc__)
    tiny = arguments.tiny
    rounds = arguments.how['rounds']
    rows = []

    def run(work, *args):
        with tempfile.TemporaryDirectory() as folder:
            return work(folder, *args, rounds)

    for name, work in (('MNIST', mnist), ('CIFAR-10', cifar10)):
        ratio, memory = run(work, .001 if tiny else 1)
        rows += [(f'converting {name}, time of decompressing it', ratio,
                  'at most 2.5'),
                 ('... peak memory', f'{memory:.0f} MB', 'under 400 MB')]
    for count in (20, 40) if tiny else (2000, 4000):
        rows.append((
            f'converting {count} images of SVHN, time of decoding them',
            run(svhn, count)[0], 'at most 0.7'))
    for count in (100, 200) if tiny else (20000, 40000):
        ratio, memory = run(ilsvrc, count)
        rows += [(f'converting {count} small JPEGs, rate of walking', ratio,
                  'at least 0.5'),
                 ('... peak memory', f'{memory:.0f} MB', 'flat')]
    if shutil.which('curl') and shutil.which('sha256sum'):
        rows.append(('downloading 1 GB, rate of curl and sha256sum',
                     run(download, 1 << 20 if tiny else 1 << 30),
                     'at least 0.7'))
    measure.print_table(rows)


if __name__ == '__main__':
    main()
