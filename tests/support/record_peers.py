"""Files of records by the writers of other libraries, read by their readers.

Run with ``tests`` in ``PYTHONPATH``, where the libraries are installed, it
writes the files in tests/datasets/shards/written anew; see `PEERS`. Tests
compare Fuel's rows of these files with the samples that the reader of the
library returned, which are beside them.
"""
import base64
import contextlib
import io
import json
import shutil
import sys
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy
from PIL import Image

import fuel
from fuel.schemes import ShuffledScheme
from fuel.streams import DataStream

TESTS = Path(__file__).resolve().parents[1]
WRITTEN = TESTS / 'datasets' / 'shards' / 'written'
# Number of samples of the files that are kept.
KEPT = 5


class Peer(NamedTuple):
    """A library that writes and reads files.

    `write`: takes a new folder and the number of samples.
    `read`: takes the folder, and returns the sources of each sample.
    `source`: has another value in each sample.
    """

    write: Any
    read: Any
    source: str


def plain(value):
    """Return a value as JSON has it; arrays with their types."""
    if isinstance(value, numpy.generic):
        value = value.item()
    if isinstance(value, bytes):
        return {'bytes': base64.b64encode(value).decode()}
    if isinstance(value, numpy.ndarray) and value.dtype.hasobject:
        return [plain(one) for one in value]
    if isinstance(value, numpy.ndarray):
        return {'dtype': str(value.dtype), 'shape': list(value.shape),
                **plain(value.tobytes())}
    if isinstance(value, dict):
        return {'dict': {key: plain(one) for key, one in value.items()}}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    assert value is None or type(value) in (bool, int, float, str), value
    return value


def plain_rows(names, columns):
    """Return the samples of a batch, as `plain` makes them."""
    return [dict(zip(names, map(plain, row), strict=True))
            for row in zip(*columns, strict=True)]


@contextlib.contextmanager
def installed_first():
    """Let no folder of the tests hide a library."""
    path = list(sys.path)
    sys.path[:] = [each for each in path if Path(each).resolve() != TESTS]
    try:
        yield
    finally:
        sys.path[:] = path


def stream_over(folder, sources=None):
    """Return a stream of shuffled batches of the files in a folder."""
    dataset = fuel.load(folder, sources=sources)
    return DataStream(dataset, iteration_scheme=ShuffledScheme(
        len(dataset), 3, seed=5))


def samples_of(stream, most=None):
    """Return the samples of each batch of an epoch, or of some batches."""
    return [plain_rows(stream.sources, batch) for batch in islice(
        stream.get_epoch_iterator(), most)]


def rest_of_ranks(folder, ranks, state):
    """Return what is left of an epoch for each rank."""
    shares = []
    for rank in range(ranks):
        stream = stream_over(folder).shard(rank, ranks)
        stream.load_state_dict(state)
        shares.append(samples_of(stream))
    return shares


def pixels(number, *shape):
    """Return numbers that differ from one sample to the next."""
    size = int(numpy.prod(shape))
    return (numpy.arange(size) * (number + 3) % 251).astype('u1').reshape(
        shape)


def picture(number, form):
    """Return the bytes of a small picture."""
    file = io.BytesIO()
    Image.fromarray(pixels(number, 6 + number % 3, 8, 3)).save(file, form)
    return file.getvalue()


def text(number):
    """Return a text of any length, which may be 0."""
    return f'Bild {number}: größer — 図 '[:number * 7 % 19]


# --- webdataset ------------------------------------------------------------

def write_tars(folder, count):
    """Write archives by `webdataset`, which encodes most of the values."""
    import webdataset
    with webdataset.ShardWriter(
            str(folder / 'train-%06d.tar'), maxcount=count // 2 + 1,
            verbose=0) as writer:
        for number in range(count):
            writer.write({
                '__key__': f'part.{number % 2}/{number:05}',
                'jpg': picture(number, 'JPEG'), 'cls': number,
                'seg.png': pixels(number, 4, 5), 'Txt': text(number),
                'json': {'box': [number, .5], 'name': text(number)},
                'x.npy': numpy.full((2, 3), number / 3, 'f4'),
                'y.npy': numpy.arange(number % 4, dtype='i2')})


def read_tars(folder):
    """Read archives by `webdataset`, with its own decoders."""
    import webdataset
    for sample in webdataset.WebDataset(
            sorted(map(str, folder.glob('*.tar'))), shardshuffle=False,
            empty_check=False).decode():
        sample['key'] = sample['__key__']
        yield {name: value for name, value in sample.items()
               if not name.startswith('__')}


# --- tfrecord --------------------------------------------------------------

def write_tfrecords(folder, count):
    """Write examples by `tfrecord`."""
    import tfrecord
    half = count // 2 + 1
    for place in range(2):
        writer = tfrecord.TFRecordWriter(
            str(folder / f'train-{place:05}-of-00002.tfrecord'))
        for number in range(count)[half * place:half * (place + 1)]:
            writer.write({
                'box': ([number / 3, -1.5, 2.], 'float'),
                'ids': (list(range(-number, 0))[:number % 4], 'int'),
                'image': (picture(number, 'JPEG'), 'byte'),
                'label': (number, 'int'), 'share': (number / 3, 'float'),
                'text': (text(number).encode(), 'byte'),
                'words': ([b'a', b'bc'] * (number % 3), 'byte')})
        writer.close()


def read_tfrecords(folder):
    """Read examples by `tfrecord`, where a number is an array, and a list of
    one text is the text."""
    import tfrecord
    for path in sorted(folder.iterdir()):
        for sample in tfrecord.tfrecord_loader(str(path), None):
            sample['words'] = sample['words'].tolist()
            yield {name: value[0] if name in ('label', 'share') else value
                   for name, value in sample.items()}


PEERS = {
    'webdataset': Peer(write_tars, read_tars, 'cls'),
    'tfrecord': Peer(write_tfrecords, read_tfrecords, 'label')}


def write_kept():
    """Write the files that are kept, and the samples that are in them."""
    for name, peer in PEERS.items():
        folder = WRITTEN / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        with installed_first():
            peer.write(folder, KEPT)
            samples = [{key: plain(value) for key, value in sample.items()}
                       for sample in peer.read(folder)]
        (WRITTEN / f'{name}.json').write_text(
            json.dumps(samples, indent=0, sort_keys=True) + '\n')


if __name__ == '__main__':
    write_kept()
