"""Files of records by the writers of other libraries, read by their readers.

Run as ``record_peers.py [FOLDER COUNT [NAME ...]]``, with ``tests`` in
``PYTHONPATH``, where the libraries are installed, it writes files of each
library in `PEERS` into a folder with its name, and beside that the samples
that the reader of the library returns. Without arguments, it writes those that
are kept in tests/datasets/shards/written.
"""
import base64
import csv
import importlib
import importlib.util
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
from decimal import Decimal
from functools import partial
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
COUNT = 5


class Peer(NamedTuple):
    """A library that writes and reads files.

    `write`: takes a new folder and the number of samples.
    `read`: takes the folder, and returns the sources of each sample.
    `source`: has another value in each sample.
    `options`: of `fuel.load`.
    """

    write: Any
    read: Any
    source: str
    options: Any = None


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
    if isinstance(value, Decimal):
        return {'decimal': str(value)}
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


def pixels_of(image):
    """Return the pixels of an image, with its channels first."""
    return numpy.moveaxis(numpy.atleast_3d(image), 2, 0)


def text(number):
    """Return a text of any length, which may be 0."""
    return f'Bild {number}: größer — 図 '[:number * 7 % 19]


# --- webdataset ------------------------------------------------------------

def write_tars(folder, count):
    """Write archives by `webdataset`, which encodes most of the values, and
    their indexes by `wids`, and by DALI's `wds2idx` if it is there."""
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
    paths = sorted(map(str, folder.glob('*.tar')))
    index = str(folder / 'set.json')
    for arguments in (['create', '-n', 'peers', '-o', index, *paths],
                      ['update', '--nodir', index]):
        subprocess.run([sys.executable, '-m', 'wids.wids_index', *arguments],
                       check=True)
    (folder / 'set.json.bak').unlink()
    if importlib.util.find_spec('wds2idx'):
        for path in paths:
            with importlib.import_module('wds2idx').IndexCreator(
                    path, path.replace('.tar', '.idx'), False) as creator:
                creator.create_index()


def read_tars(folder):
    """Read archives by `webdataset`, with its own decoders."""
    import webdataset
    for sample in webdataset.WebDataset(
            sorted(map(str, folder.glob('*.tar'))), shardshuffle=False,
            empty_check=False).decode():
        sample['key'] = sample['__key__']
        yield {name: value for name, value in sample.items()
               if not name.startswith('__')}


# --- Streaming -------------------------------------------------------------

MDS_COLUMNS = {
    'amount': 'str_int', 'any': 'ndarray', 'data': 'bytes',
    'half': 'float16', 'image': 'jpeg', 'label': 'int', 'mask': 'png',
    'meta': 'json', 'parts': 'list[pil]', 'photo': 'pil',
    'price': 'str_decimal', 'rows': 'ndarray:int32',
    'share': 'str_float', 'text': 'str', 'tiny': 'uint8',
    'vector': 'ndarray:float32:2,2'}
MODES = 'RGB', 'L', 'RGBA', 'F', 'I'


def import_streaming():
    """Return `streaming`, which needs torchvision."""
    importlib.import_module('support.torchvision_operators')
    return importlib.import_module('streaming')


def write_mds(folder, count, **options):
    """Write shards by `streaming`."""
    streaming = import_streaming()
    with streaming.MDSWriter(
            out=str(folder), columns=MDS_COLUMNS,
            size_limit=700 * count, progress_bar=False, **options) as writer:
        for number in range(count):
            image = Image.open(io.BytesIO(picture(number, 'JPEG')))
            # Its files are written by the library.
            mask = Image.fromarray(pixels(number, 4, 5))
            writer.write({
                'amount': (-7) ** number, 'data': bytes([number]),
                'any': numpy.full((number % 3 + 1, 2), number, 'f8'),
                'half': numpy.float16(number / 8), 'image': image,
                'label': number, 'mask': mask,
                'meta': {'name': text(number), 'no': None, 'n': [number]},
                'parts': [Image.fromarray(pixels(one, 2, 3, 3))
                          for one in range(number % 3 + 1)],
                'photo': Image.fromarray(pixels(number, 3, 4, 3)).convert(
                    MODES[number % len(MODES)]),
                'price': Decimal(f'{number}.50'),
                'rows': numpy.arange(number % 4 * 2 + 2, dtype='i4').reshape(
                    -1, 2), 'share': number / 3, 'text': text(number),
                'tiny': numpy.uint8(number),
                'vector': numpy.full((2, 2), number / 3, 'f4')})


def read_mds(folder):
    """Read shards by `streaming`, which takes files of images as bytes if the
    index says so."""
    streaming = import_streaming()
    with tempfile.TemporaryDirectory() as name:
        shutil.copytree(folder, name, dirs_exist_ok=True)
        index = Path(name, 'index.json')
        facts = json.loads(index.read_text())
        for shard in facts['shards']:
            shard['column_encodings'] = [
                'bytes' if encoding in ('jpeg', 'png') else encoding
                for encoding in shard['column_encodings']]
        index.write_text(json.dumps(facts))
        for sample in streaming.StreamingDataset(
                local=name, batch_size=1, shuffle=False):
            yield {**sample, 'photo': pixels_of(sample['photo']),
                   'parts': list(map(pixels_of, sample['parts']))}


# --- tfrecord and TensorFlow -----------------------------------------------

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


def write_examples(folder, count):
    """Write examples by TensorFlow, some of them without a feature."""
    import tensorflow
    train = tensorflow.train
    with tensorflow.io.TFRecordWriter(str(folder / 'a.tfrecord')) as writer:
        for number in range(count):
            features = {
                'box': train.Feature(float_list=train.FloatList(
                    value=[number / 3, -1.5])),
                'image': train.Feature(bytes_list=train.BytesList(
                    value=[picture(number, 'PNG')])),
                'label': train.Feature(int64_list=train.Int64List(
                    value=[-number])),
                'words': train.Feature(bytes_list=train.BytesList(
                    value=[b'a\0', b''] * (number % 3)))}
            if number % 2:
                features['ids'] = train.Feature(
                    int64_list=train.Int64List(value=range(number)))
            writer.write(train.Example(features=train.Features(
                feature=features)).SerializeToString())


def read_examples(folder):
    """Read examples by TensorFlow; a feature that is missing is empty."""
    import tensorflow
    kinds = tensorflow.int64, tensorflow.float32, tensorflow.string
    spec = {
        'box': tensorflow.io.FixedLenFeature((2,), kinds[1]),
        'ids': tensorflow.io.RaggedFeature(kinds[0]),
        'image': tensorflow.io.FixedLenFeature((), kinds[2]),
        'label': tensorflow.io.FixedLenFeature((), kinds[0]),
        'words': tensorflow.io.RaggedFeature(kinds[2])}
    for record in tensorflow.data.TFRecordDataset(
            sorted(map(str, folder.iterdir()))):
        yield {name: value.numpy() for name, value in
               tensorflow.io.parse_single_example(record, spec).items()}


# --- folders of files ------------------------------------------------------

def write_classes(folder, count):
    """Write pictures into a folder for each class, for the readers of
    torchvision and Hugging Face, which write none themselves."""
    for number in range(count):
        place = folder / ('cat', 'dog', 'Elk')[number % 3]
        place.mkdir(exist_ok=True)
        form = ('JPEG', 'PNG')[number % 2]
        (place / f'{number}.{form}').write_bytes(picture(number, form))


def read_classes(folder):
    """Read pictures by torchvision."""
    importlib.import_module('support.torchvision_operators')
    found = importlib.import_module('torchvision.datasets').ImageFolder(
        folder, loader=lambda path: Path(path).read_bytes())
    for (path, _), (image, label) in zip(found.samples, found, strict=True):
        yield {'image': image, 'label': label,
               'path': Path(path).relative_to(folder).as_posix()}


def write_table(folder, count, is_parquet=False):
    """Write pictures, and a table that names them."""
    (folder / 'images').mkdir()
    rows = []
    for number in range(count):
        (folder / 'images' / f'{number}.png').write_bytes(
            picture(number, 'PNG'))
        rows.append({'file_name': f'images/{number}.png', 'age': number,
                     'weight': number / 4, 'text': f'a, "{text(number)}"'})
    if is_parquet:
        pyarrow = importlib.import_module('pyarrow')
        importlib.import_module('pyarrow.parquet').write_table(
            pyarrow.Table.from_pylist(rows[::-1]),
            folder / 'metadata.parquet', row_group_size=7)
        return
    with (folder / 'metadata.csv').open(
            'w', newline='', encoding='utf-8') as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows[::-1])


def read_imagefolder(folder):
    """Read pictures by Hugging Face's `imagefolder`."""
    os.environ.update(HF_HUB_OFFLINE='1', HF_DATASETS_OFFLINE='1')
    datasets = importlib.import_module('datasets')
    with tempfile.TemporaryDirectory() as name:
        found = datasets.load_dataset(
            'imagefolder', data_dir=str(folder), split='train',
            cache_dir=name)
        for sample in found.cast_column('image', datasets.Image(decode=False)):
            path = Path(sample['image']['path'])
            # The sources that Fuel gives besides.
            other = 'path' if 'label' in sample else 'file_name'
            yield {**sample, 'image': path.read_bytes(),
                   other: path.relative_to(folder).as_posix()}


PEERS = {
    'webdataset': Peer(write_tars, read_tars, 'cls'),
    'mds': Peer(partial(write_mds, hashes=['sha1', 'xxh64']), read_mds,
                'label'),
    'mds_gz': Peer(partial(write_mds, compression='gz', hashes=['md5']),
                   read_mds, 'label'),
    'mds_zstd': Peer(partial(write_mds, compression='zstd'), read_mds,
                     'label'),
    'tfrecord': Peer(write_tfrecords, read_tfrecords, 'label'),
    'tensorflow': Peer(write_examples, read_examples, 'label'),
    'torchvision': Peer(write_classes, read_classes, 'path'),
    'imagefolder': Peer(write_classes, read_imagefolder, 'path'),
    'imagefolder_table': Peer(write_table, read_imagefolder, 'age'),
    'imagefolder_parquet': Peer(partial(write_table, is_parquet=True),
                                read_imagefolder, 'age')}
# Fuel needs an extra for the others.
KEPT = [name for name in PEERS
        if name not in ('mds_zstd', 'imagefolder_parquet')]


def write(name, folder, count):
    """Write files into a new folder, and their samples beside it."""
    peer = PEERS[name]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    peer.write(folder, count)
    samples = [{key: plain(value) for key, value in sample.items()}
               for sample in peer.read(folder)]
    folder.with_name(f'{name}.json').write_text(
        json.dumps(samples, indent=0, sort_keys=True) + '\n')


def main(folder=WRITTEN, count=COUNT, *names):
    """Write files of some libraries, or of all; see above."""
    # Its folder `datasets` would hide the library of this name.
    sys.path.sort(key=lambda path: Path(path).resolve() == TESTS)
    for name in names or KEPT:
        write(name, Path(folder) / name, int(count))


if __name__ == '__main__':
    main(*sys.argv[1:])
