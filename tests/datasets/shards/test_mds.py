"""Data sets in MDS shards."""
import hashlib
import json
import os
import pickle
import re
import shutil
import struct
import sys
from decimal import Decimal

import numpy
import pytest
from numpy.testing import assert_array_equal
from PIL import Image
from support.mds_files import PACK, facts_of, shard_of, write_mds
from support.range_server import serving
from support.resuming import assert_resumes

import fuel
from fuel import config
from fuel.datasets import MDSDataset, Windows
from fuel.datasets.shards import mds_index
from fuel.exceptions import DamagedFileError, StateMismatchError
from fuel.schemes import (
    BlockShuffledScheme, SequentialScheme, ShuffledScheme)
from fuel.storage import decoded, filters
from fuel.streams import DataStream
from fuel.transformers import MultiProcessing
from fuel.utils.io_counts import io_counts

COLUMNS = {'id': ('int', 8), 'image': ('jpeg', None), 'mask': (
    'ndarray:uint16:2,3', 12), 'text': ('str', None), 'y': ('float32', 4)}
COUNTS = 4, 0, 1, 15


def sample(number):
    """Return the bytes of the columns of a sample."""
    return [struct.pack('<q', -number), b'jpeg %d\0' % number,
            numpy.full((2, 3), number, '<u2').tobytes(),
            ('ä' * (number % 4)).encode(), struct.pack('<f', number / 2)]


def check(dataset, numbers, batch):
    """Check that a batch has the samples of some numbers."""
    assert ('id', 'image', 'mask', 'text', 'y') == dataset.sources
    ids, images, masks, texts, ys = batch
    assert (numpy.int64, numpy.uint16, numpy.float32) == (
        ids.dtype, masks.dtype, ys.dtype)
    assert [-number for number in numbers] == ids.tolist()
    assert [b'jpeg %d\0' % number for number in numbers] == images.tolist()
    assert_array_equal(numpy.broadcast_to(
        numpy.array(numbers).reshape(-1, 1, 1), (len(numbers), 2, 3)), masks)
    assert ['ä' * (number % 4) for number in numbers] == texts.tolist()
    assert [number / 2 for number in numbers] == ys.tolist()
    assert all(part.flags.writeable and part.flags.c_contiguous
               for part in batch)


def write_numbered(folder, counts=COUNTS, first=0, **options):
    """Write shards of numbered samples."""
    shards = []
    for count in counts:
        shards.append(list(map(sample, range(first, first + count))))
        first += count
    return write_mds(folder, COLUMNS, shards, **options)


@pytest.fixture(params=[None, 'bz2:5', *sorted(PACK.keys() - {'bz2'})])
def folder(request, tmp_path):
    """Return a folder of twenty samples in four shards."""
    return write_numbered(tmp_path / 'set', compression=request.param,
                          hashes=['sha1', 'md5'])


@pytest.fixture
def dataset(folder):
    """Return the data set of twenty samples."""
    return MDSDataset(folder)


def test_shards_are_read_in_any_order(folder, dataset):
    """Rows may come twice; ranges and single samples are read too."""
    assert 20 == len(dataset)
    check(dataset, [19, 3, 5, 5, 0], dataset.get_data(None, [19, 3, 5, 5, 0]))
    check(dataset, range(2, 8), dataset.get_data(None, slice(2, 8)))
    one = dataset[7]
    assert (-7, b'jpeg 7\0', 'äää', 3.5) == (one[0], one[1], one[3], one[4])
    place = dataset.place_of_row(6)
    assert (1, '') == (place.row, place.part)
    assert place.file.startswith(str(folder / 'shard.00003.mds'))
    again = eval(repr(dataset), {'MDSDataset': MDSDataset})
    check(again, [2], again.get_data(None, [2]))
    check(dataset, [8], pickle.loads(pickle.dumps(dataset)).get_data(
        None, [8]))
    check(dataset, [8], MDSDataset(folder / 'index.json').get_data(None, [8]))


def test_epochs_are_shuffled_sharded_and_resumed(folder):
    """As of any rows."""
    def stream():
        return DataStream(MDSDataset(folder), iteration_scheme=ShuffledScheme(
            20, 6, rng=numpy.random.RandomState(3)))

    dataset = MDSDataset(folder)
    batches = list(stream().get_epoch_iterator())
    for batch in batches:
        check(dataset, (-batch[0]).tolist(), batch)
    assert list(range(-19, 1)) == sorted(
        number for batch in batches for number in batch[0].tolist())
    assert_resumes(stream, 1)
    for ranks in (2, 4):
        seen = []
        for rank in range(ranks):
            for batch in stream().shard(rank, ranks).get_epoch_iterator():
                check(dataset, (-batch[0]).tolist(), batch)
                seen += batch[0].tolist()
        assert list(range(-19, 1)) == sorted(seen)


def test_cache_and_checks_may_differ_when_a_state_is_loaded(folder):
    """They decide nothing about the samples."""
    state = DataStream(MDSDataset(folder), batch_size=6).state_dict()
    stream = DataStream(MDSDataset(folder, cache_bytes=10 ** 6, hashes=False),
                        batch_size=6)
    stream.load_state_dict(state)
    assert 20 == sum(len(batch[0]) for batch in stream.get_epoch_iterator())


@pytest.mark.parametrize('columns, hashes', [
    ({'text': ('str', None)}, ()), ({'y': ('int', 8)}, ('sha1',))])
def test_state_notices_swapped_shards(tmp_path, columns, hashes):
    """The sizes of samples, or hashes that the index states, tell shards
    apart."""
    def new():
        return DataStream(MDSDataset(tmp_path), batch_size=2)

    shards = [[[b'%08d' % number] for number in numbers] if hashes else [
        [b'a' * number] for number in numbers]
        for numbers in ([1, 2, 3], [3, 2, 1])]
    write_mds(tmp_path, columns, shards, hashes=hashes)
    stream = new()
    next(stream.get_epoch_iterator())
    state = stream.state_dict()
    new().load_state_dict(state)
    write_mds(tmp_path, columns, shards[::-1], hashes=hashes)
    with pytest.raises(StateMismatchError, match='the checksums of'):
        new().load_state_dict(state)


def test_workers_and_windows_read_samples(dataset):
    """A window is consecutive samples."""
    stream = MultiProcessing(DataStream(
        dataset, iteration_scheme=SequentialScheme(20, 8)))
    batches = list(stream.get_epoch_iterator())
    stream.close()
    assert list(range(0, -20, -1)) == [
        number for batch in batches for number in batch[0].tolist()]
    numbers, = Windows(dataset, 3, sources=('id',)).get_data(None, [4])
    assert [-4, -5, -6] == numbers[0].tolist()


def test_compressed_shards_are_pieces_that_are_decoded_once(tmp_path):
    """While the budget has room for them; without room, once a batch."""
    folder = write_numbered(tmp_path / 'set', compression='gz')
    dataset = MDSDataset(folder)
    io_counts.clear()
    for _ in range(2):
        list(DataStream(dataset, iteration_scheme=ShuffledScheme(
            20, 3)).get_epoch_iterator())
    assert 3 == io_counts.chunks_decoded
    assert [0] * 4 + [2] + [3] * 15 == dataset.chunk_of_examples().tolist()
    # While a data set is there, others of the same files share its cache.
    del dataset
    dataset = MDSDataset(folder, cache_bytes=3000)
    io_counts.clear()
    for batch in DataStream(dataset, iteration_scheme=(
            BlockShuffledScheme.aligned(dataset, batch_size=3, window=1))
            ).get_epoch_iterator():
        check(dataset, (-batch[0]).tolist(), batch)
    assert 3 == io_counts.chunks_decoded
    del dataset
    dataset = MDSDataset(folder, cache_bytes=0)
    io_counts.clear()
    check(dataset, [19, 0, 18, 1], dataset.get_data(None, [19, 0, 18, 1]))
    assert 2 * len(COLUMNS) == io_counts.chunks_decoded
    plain = MDSDataset(write_numbered(tmp_path / 'plain'))
    with pytest.raises(ValueError, match='not chunked'):
        plain.chunk_of_examples()


ARRAY = numpy.arange(6, dtype='<i2').reshape(2, 3)
IMAGE = Image.fromarray(numpy.arange(24, dtype='u1').reshape(2, 4, 3))


def pil(image):
    """Return an image as MDS has it."""
    mode = image.mode.encode()
    return struct.pack('<III', *image.size, len(mode)) + mode + image.tobytes()


def listed(*items, before=b''):
    """Return a list of items as MDS has it."""
    return before + struct.pack(f'<{len(items) + 1}I', len(items), *map(
        len, items)) + b''.join(items)


VALUES = {
    'bytes': (b'a\0', b'a\0'), 'str': ('äß'.encode(), 'äß'),
    'str_int': (b'-123456789012345678901', -123456789012345678901),
    'str_float': (b'.25', .25), 'str_decimal': (b'1.10', Decimal('1.10')),
    'json': (b'{"a": [1, null]}', {'a': [1, None]}),
    'jpeg': (b'jpeg', b'jpeg'), 'png': (b'png', b'png'),
    'int': (struct.pack('<q', -2), -2),
    'uint8': (b'\xff', 255), 'int8': (b'\xff', -1),
    'float16': (struct.pack('<e', .5), .5),
    'uint64': (struct.pack('<Q', 2 ** 64 - 1), 2 ** 64 - 1),
    'float64': (struct.pack('<d', .1), .1),
    'ndarray': (bytes([17, 2 << 2, 2, 3]) + ARRAY.tobytes(), ARRAY),
    'ndarray:int16': (struct.pack('<BIIH', 2 << 2 | 2, 2, 3, 7)[:-2]
                      + ARRAY.tobytes(), ARRAY),
    'ndarray:int16:2,3': (ARRAY.tobytes(), ARRAY),
    'pil': (pil(IMAGE), numpy.asarray(IMAGE).transpose(2, 0, 1)),
    'list[jpeg]': (listed(b'a', b'', b'bc', before=bytes(4)),
                   [b'a', b'', b'bc']),
    'list[png]': (listed(before=bytes(4)), []),
    'jpeg_array': (listed(b'ab', b'c'), [b'ab', b'c']),
    'jpegarray': (listed(b'ab'), [b'ab'])}
FIXED = {'int': 8, 'uint8': 1, 'int8': 1, 'float16': 2, 'uint64': 8,
         'float64': 8, 'ndarray:int16:2,3': 12}


@pytest.mark.parametrize('compression', [None, 'gz'])
def test_values_of_each_encoding(tmp_path, compression):
    """All in one sample, so that values of a fixed size lie anywhere."""
    columns = {encoding: (encoding, FIXED.get(encoding))
               for encoding in sorted(VALUES)}
    samples = [[VALUES[name][0] for name in columns]] * 2
    dataset = MDSDataset(write_mds(
        tmp_path / 'a', columns, [samples], compression=compression))
    for name, part in zip(dataset.sources, dataset.get_data(None, [1, 0]),
                          strict=True):
        expected = VALUES[name][1]
        for found in part:
            assert_array_equal(expected, found)
            assert isinstance(found, numpy.ndarray | numpy.generic) or (
                type(expected) is type(found))
        assert part.flags.writeable
    assert numpy.int16 == dataset.readers['ndarray:int16'].element_type
    assert (2, 2, 3) == dataset.readers['ndarray:int16:2,3'].shape


@pytest.mark.parametrize('mode', ['1', 'L', 'LA', 'RGBA', 'CMYK', 'I', 'F',
                                  'I;16', 'P'])
def test_images_of_pillow(tmp_path, mode):
    """They have the pixels that Pillow's own array has."""
    image = Image.new(mode, (11, 2))
    for place in range(22):
        value = place * 11 % 256
        image.putpixel((place % 11, place // 11), tuple(
            range(place, place + len(image.getbands()))) if len(
                image.getbands()) > 1 else value)
    dataset = MDSDataset(write_mds(
        tmp_path / 'a', {'x': ('pil', None)}, [[[pil(image)]]]))
    found = dataset[0][0]
    expected = numpy.asarray(image)
    if mode == '1':
        expected = expected * numpy.uint8(255)
    assert expected.dtype == found.dtype
    assert_array_equal(expected.reshape(2, 11, -1).transpose(2, 0, 1), found)


def test_zeros_need_no_bytes(tmp_path):
    """An array may have no elements, and a sample no bytes."""
    dataset = MDSDataset(write_mds(
        tmp_path / 'a', {'x': ('ndarray:float32:0,3', 0)}, [[[b'']] * 3]))
    assert (2, 0, 3) == dataset.get_data(None, [2, 0])[0].shape
    dataset = MDSDataset(write_mds(tmp_path / 'b', {'x': ('ndarray', None)}, [
        [[bytes([8, 1 << 2, 0])], [bytes([66, 0]) + struct.pack('<d', 2)]]]))
    found = dataset.get_data(None, [0, 1])[0]
    assert ((0,), (), 2) == (found[0].shape, found[1].shape, found[1])


def test_columns_splits_and_several_folders(tmp_path):
    """Splits are folders, and folders follow each other."""
    root = tmp_path / 'root'
    root.mkdir()
    write_numbered(root / 'train', [3, 2])
    write_numbered(root / 'val', [4], first=5)
    (root / 'notes').mkdir()
    dataset = MDSDataset(root, {'number': 'id'}, split='val')
    assert [-5, -8] == dataset.get_data(None, [0, 3])[0].tolist()
    both = MDSDataset([root / 'train', root / 'val'])
    check(both, [8, 0, 5], both.get_data(None, [8, 0, 5]))
    dataset = MDSDataset(root / 'train', ['id'], which_sets=('b',),
                         splits={'b': [4, 1]}, split=None)
    assert [-4, -1] == dataset.get_data(None, [0, 1])[0].tolist()
    with pytest.raises(ValueError, match=r"the splits 'train', 'val'.*split="):
        MDSDataset(root)
    with pytest.raises(ValueError, match=r"no split 'test'; .*'train', 'val'"):
        MDSDataset(root, split='test')
    with pytest.raises(ValueError, match="reads 'ids', .*did you mean 'id'"):
        MDSDataset(root / 'val', ['ids'])
    with pytest.raises(FileNotFoundError, match=r'index\.json'):
        MDSDataset(root / 'notes')
    write_mds(root / 'other', {'z': ('int', 8)}, [[[bytes(8)]]])
    with pytest.raises(ValueError, match='other.index.json has other columns'):
        MDSDataset([root / 'train', root / 'other'])


def test_load_knows_the_folder(tmp_path):
    """So it does the index, and the folders of splits."""
    root = tmp_path / 'root'
    root.mkdir()
    write_numbered(root / 'train', [3, 2])
    write_numbered(root / 'val', [4], first=5)
    for dataset in (fuel.load(root / 'train'), fuel.load(root, split='train'),
                    fuel.load(root / 'train' / 'index.json')):
        assert isinstance(dataset, MDSDataset)
        check(dataset, [4, 0], dataset.get_data(None, [4, 0]))
        assert 'ImagesFromBytes' in str(dataset)
    assert 9 == len(fuel.load(root, split='all'))
    assert 9 == len(fuel.load(root, split=['val', 'train']))
    assert 2 == len(fuel.load(root / 'val', split='some',
                              splits={'some': (1, 3)}))
    with pytest.raises(ValueError, match="the splits 'train', 'val': name"):
        fuel.load(root)
    with pytest.raises(ValueError, match="no split 'test'"):
        fuel.load(root, split='test')
    with pytest.raises(ValueError, match="no split 'test'"):
        fuel.load(root / 'val', split='test')


def change_shard(**facts):
    """Return a function that changes the facts of the second shard."""
    return lambda index: index['shards'][1].update(facts)


def raw(**facts):
    """Return the facts of a file, as they would be for the second shard."""
    return {'basename': 'shard.00001.mds', 'bytes': 200, 'hashes': {},
            **facts}


@pytest.mark.parametrize(('change', 'error'), [
    (lambda index: index.update(version=1), 'states "version": 2'),
    (lambda index: index.pop('shards'), "'shards' must be a list, got None"),
    (lambda index: index.update(shards=[7]), "shard 0: 'format' must be a s"),
    (lambda index: index.update(chunks=[], config={}), 'index of LitData'),
    (lambda index: index.update(shards=[]), 'there is no sample'),
    (change_shard(format='csv'), "only the format mds, .*got 'csv'"),
    (change_shard(version=3), 'only the format mds, version 2, .*version 3'),
    (change_shard(samples=-1), "'samples' must be a int of at least 0, got -"),
    (change_shard(samples=2.), "'samples' must be a int of at least 0"),
    (change_shard(samples=2 ** 70), 'samples do not fit into'),
    (change_shard(samples=True), "'samples' must be a int"),
    (change_shard(raw_data=None), "'raw_data' must be a dict, got None"),
    (change_shard(raw_data=raw(bytes=-5)), "'bytes' must be a int of at lea"),
    (change_shard(raw_data=raw(bytes='9')), "'bytes' must be a int of at le"),
    (change_shard(raw_data=raw(bytes=2 ** 32, basename='gone'), zip_data=raw(),
                  compression='gz'), 'at most 4294967295 bytes, .* 429496729'),
    (change_shard(raw_data=raw(basename='../shard')), 'must be in the folder'),
    (change_shard(raw_data=raw(basename='/etc/passwd')), 'must be in the fo'),
    (change_shard(raw_data=raw(basename='..\\a')), 'must be in the folder'),
    (change_shard(raw_data=raw(basename='')), 'must be in the folder'),
    (change_shard(column_names=['y']), 'one name, encoding and size for each'),
    (change_shard(column_sizes=['8'] * 5), 'one name, encoding and size for'),
    (change_shard(column_names=['a', 'b', 'c', 'd', 'd']), 'one name, encod'),
    (change_shard(column_names=['a', 'b', 'c', 'd', 'e']),
     'shard 1 has other columns than shard 0'),
    (change_shard(zip_data=raw(basename='x.br'), compression='br:11',
                  raw_data=raw(basename='gone')), "compressed with 'br'"),
    (change_shard(zip_data=raw(basename='x'), compression='snappy',
                  raw_data=raw(basename='gone')), "compressed with 'snappy'"),
    (change_shard(zip_data=raw(basename='x'), compression=None,
                  raw_data=raw(basename='gone')), "compressed with 'None'")])
def test_bad_index_is_refused(tmp_path, change, error):
    """The error names the index, and the shard in it."""
    folder = write_numbered(tmp_path / 'a', change=change)
    with pytest.raises(ValueError, match=error) as caught:
        MDSDataset(folder)
    assert 'index.json' in str(caught.value) or 'no sample' in error


@pytest.mark.parametrize('content', [
    b'', b'{', b'[' * 100_000, b'\xff\xfe', b'"text"', b'[]', b'null'])
def test_index_of_another_kind_is_refused(tmp_path, content):
    """JSON that is another document, or no JSON at all."""
    folder = write_numbered(tmp_path / 'a')
    (folder / 'index.json').write_bytes(content)
    with pytest.raises(ValueError, match=r'index\.json: '):
        MDSDataset(folder)


@pytest.mark.parametrize(('encoding', 'size', 'error'), [
    ('pkl', None, 'pickles, which may run any code'),
    ('tuple', None, "the encoding 'tuple' is not read"),
    ('int', 4, "'int' have 8 bytes, but the index states 4"),
    ('int', None, "'int' have 8 bytes, but the index states None"),
    ('str', 8, "'str' have any number of bytes, but the index states 8"),
    ('ndarray:object', None, "no arrays of the type 'object'"),
    ('ndarray:int8:2,-1', 2, "an axis cannot have the length '-1'"),
    ('ndarray:int8:9999999999,9999999999', 1, 'bytes, but the index states 1'),
    ('ndarray:int8:2', 3, 'have 2 bytes, but the index states 3')])
def test_column_that_is_not_read_is_refused(tmp_path, encoding, size, error):
    """It is named; the others may be read."""
    folder = write_mds(tmp_path / 'a', {
        'x': ('str', None), 'z': (encoding, size)},
        [[[b'text', bytes(size or 8)]]])
    with pytest.raises(ValueError, match=r"shard.00000.mds, column 'z': .*"
                       + re.escape(error)):
        MDSDataset(folder)
    assert 'text' == MDSDataset(folder, ['x'])[0][0]


def changed(content, place, *numbers):
    """Return bytes in which integers at a place are replaced."""
    new = struct.pack(f'<{len(numbers)}I', *numbers)
    return content[:place] + new + content[place + len(new):]


@pytest.mark.parametrize('compression', [None, 'gz'])
@pytest.mark.parametrize(('change', 'error'), [
    (lambda content: content[:-1], 'has|not have'),
    (lambda content: content + b'x', 'has|not have'),
    (lambda content: b'', 'has|not have'),
    (lambda content: changed(content, 0, 4), r'states \[4\] samples, but'),
    (lambda content: changed(content, 0, 2 ** 32 - 1), 'samples, but the ind'),
    # Offsets that decrease, lie in the header, or beyond the end.
    (lambda content: changed(content, 8, 4), 'sample 0: it cannot lie at'),
    (lambda content: changed(content, 4, 8), 'sample 0: it cannot lie at'),
    (lambda content: changed(content, 12, 2 ** 32 - 1), 'sample 1: it cannot'),
    (lambda content: changed(content, 16, len(content) + 1),
     'sample 2: it cannot lie at'),
    (lambda content: changed(content, 16, 2 ** 31), 'sample 2: it cannot')])
def test_damaged_shard_is_refused(tmp_path, compression, change, error):
    """The error names the shard, and the sample in it."""
    folder = tmp_path / 'a'
    folder.mkdir()
    content = shard_of(list(map(sample, range(3))),
                       [size for _, size in COLUMNS.values()])
    packed, facts = facts_of('s.mds', content, 3, COLUMNS, compression)
    (folder / 'index.json').write_text(json.dumps(
        {'version': 2, 'shards': [facts]}))
    other = facts_of('s.mds', change(content), 3, COLUMNS, compression)
    path = folder / (other[1]['zip_data'] or other[1]['raw_data'])['basename']
    path.write_bytes(packed)
    check(MDSDataset(folder), [2], MDSDataset(folder).get_data(None, [2]))
    path.write_bytes(other[0])
    if compression:
        facts['zip_data']['bytes'] = len(other[0])
        (folder / 'index.json').write_text(json.dumps(
            {'version': 2, 'shards': [facts]}))
    with pytest.raises(DamagedFileError, match=rf's\.mds.*({error})'):
        MDSDataset(folder).get_data(None, [2])


@pytest.mark.parametrize('compression', [None, 'bz2'])
@pytest.mark.parametrize('sizes', [
    (0, 0), (2 ** 32 - 1, 0), (2 ** 32 - 1, 2 ** 32 - 1), (9, 9)])
def test_sizes_that_lie_are_an_error_of_the_sample(
        tmp_path, compression, sizes):
    """It may be left out of an epoch; columns before it are read."""
    columns = {name: COLUMNS[name] for name in COLUMNS}
    samples = list(map(sample, range(20)))
    content = shard_of(samples, [size for _, size in columns.values()])
    start, = struct.unpack_from('<I', content, 4 + 4 * 7)
    folder = tmp_path / 'a'
    folder.mkdir()
    packed, facts = facts_of('s.mds', changed(content, start, *sizes), 20,
                             COLUMNS, compression)
    (folder / (facts['zip_data'] or facts['raw_data'])['basename']
     ).write_bytes(packed)
    (folder / 'index.json').write_text(json.dumps(
        {'version': 2, 'shards': [facts]}))
    dataset = MDSDataset(folder)
    with pytest.raises(ValueError, match=r's\.mds.*, sample 7, .*its sizes '
                       r'state \d+ bytes, and the sample has \d+'):
        dataset.get_data(None, [3, 7])
    stream = DataStream(dataset, batch_size=4, on_error='skip')
    assert 19 == sum(len(batch[0]) for batch in stream.get_epoch_iterator())
    assert [7] == [
        one.example for one in stream.skipped_examples().examples]
    dataset = MDSDataset(folder, ['id', 'y'])
    assert [-7] == dataset.get_data(None, [7])[0].tolist()


@pytest.mark.parametrize(('encoding', 'value', 'error'), [
    ('str', b'\xff', "'utf-8' codec can't decode"),
    ('str_int', b'1.5', 'invalid literal'), ('str_float', b'x', 'could not'),
    ('str_decimal', b'x', 'it is not a number'), ('json', b'{', 'Expecting'),
    ('json', b'[' * 100_000, 'while decoding a JSON array'),
    ('ndarray', b'', 'does not begin with a type'),
    ('ndarray', b'\7', 'does not begin with a type of array'),
    ('ndarray', bytes([8, 4 << 2 | 3, 1]), 'its shape is cut off'),
    ('ndarray', bytes([8, 1 << 2, 3, 1]), 'needs 3 bytes, and there are 1'),
    ('ndarray', bytes([66, 2 << 2 | 3]) + b'\xff' * 16, 'bytes, and there ar'),
    ('ndarray:int16', b'\4\3', 'needs 6 bytes, and there are 0'),
    ('pil', bytes(8), 'needs more than 12 bytes'),
    ('pil', struct.pack('<III', 1, 1, 3) + b'XYZ', "the mode 'XYZ'"),
    ('pil', struct.pack('<III', 2, 2, 3) + b'RGB...', 'needs 12 bytes, and'),
    ('pil', struct.pack('<III', 2 ** 31, 2 ** 31, 1) + b'L.', 'bytes, and'),
    ('pil', struct.pack('<III', 9, 1, 1) + b'1.', 'needs 2 bytes, and there'),
    ('list[png]', bytes(4), 'needs more than 8 bytes'),
    ('list[png]', struct.pack('<II', 0, 2 ** 31), 'needs more than'),
    ('jpeg_array', struct.pack('<II', 1, 9) + b'abc', 'list of 1 items nee')])
def test_damaged_value_is_an_error_of_the_sample(
        tmp_path, encoding, value, error):
    """It names shard, sample and source, and may be left out."""
    folder = write_mds(tmp_path / 'a', {'x': (encoding, None)},
                       [[[VALUES[encoding][0]]] * 20, [[value]]])
    dataset = MDSDataset(folder)
    with pytest.raises(ValueError, match=r"shard\.00001\.mds, sample 0, "
                       f"source 'x': .*{re.escape(error)}"):
        dataset.get_data(None, [20])
    stream = DataStream(dataset, batch_size=7, on_error='skip')
    assert 20 == sum(len(batch[0]) for batch in stream.get_epoch_iterator())


@pytest.mark.parametrize('compression', [None, 'gz'])
@pytest.mark.parametrize('name', ['sha1', 'md5', 'sha3_256', 'blake2b'])
def test_hashes_are_checked(tmp_path, compression, name):
    """Those of the file, and of what it decodes to."""
    def change(index):
        facts = index['shards'][1][kind]
        facts['hashes'][name] = facts['hashes'][name][::-1]

    for kind in ('zip_data', 'raw_data') if compression else ('raw_data',):
        folder = write_numbered(tmp_path / kind, [3, 3], change=change,
                                compression=compression, hashes=[name])
        with pytest.raises(DamagedFileError, match=(
                rf'shard.00001.mds.*: its {name} is .*the index states')):
            MDSDataset(folder).get_data(None, [4])
        check(MDSDataset(folder, hashes=False), [4], MDSDataset(
            folder, hashes=False).get_data(None, [4]))
        if compression:
            check(MDSDataset(folder), [2], MDSDataset(
                folder).get_data(None, [2]))


def test_hashes_are_checked_once(tmp_path):
    """The result is kept for the present state of the files."""
    config.remote_cache_path = str(tmp_path / 'cache')
    folder = write_numbered(tmp_path / 'a', [1000, 1000], hashes=['sha1'])
    nbytes = sum(path.stat().st_size for path in folder.glob('*.mds'))
    io_counts.clear()
    MDSDataset(folder)
    assert io_counts.bytes_read > nbytes
    io_counts.clear()
    check(MDSDataset(folder), [1500], MDSDataset(folder).get_data(
        None, [1500]))
    assert io_counts.bytes_read < nbytes / 2
    path = folder / 'shard.00001.mds'
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedFileError, match='its sha1 is'):
        MDSDataset(folder)


def test_hashes_of_other_packages(tmp_path, monkeypatch):
    """They are checked if the package is installed, else not."""
    def change(index):
        index['shards'][0]['raw_data']['hashes'] = {'xxh64': 'abc', 'x': 'y'}

    folder = write_numbered(tmp_path / 'a', [3], change=change)
    monkeypatch.setattr(mds_index, 'import_module', lambda name: hashlib)
    check(MDSDataset(folder), [2], MDSDataset(folder).get_data(None, [2]))
    monkeypatch.setattr(hashlib, 'xxh64', hashlib.md5, raising=False)
    with pytest.raises(DamagedFileError, match='its xxh64 is .*states .abc'):
        MDSDataset(folder)


def test_zstd_needs_a_package(tmp_path, monkeypatch):
    """It is refused with the name of the extra."""
    content = shard_of([sample(0)], [size for _, size in COLUMNS.values()])
    # A frame that states its size, with one block that is not compressed.
    size = len(content)
    frame = b'\x28\xb5\x2f\xfd\xa0' + struct.pack('<I', size) + (
        (size << 3 | 1).to_bytes(3, 'little')) + content
    _, facts = facts_of('s.mds', content, 1, COLUMNS)
    facts.update(compression='zstd:3', zip_data={
        'basename': 's.mds.zstd', 'bytes': len(frame), 'hashes': {}})
    (tmp_path / 'index.json').write_text(json.dumps(
        {'version': 2, 'shards': [facts]}))
    (tmp_path / 's.mds.zstd').write_bytes(frame)
    if filters.codes() or sys.version_info >= (3, 14):
        dataset = MDSDataset(tmp_path)
        check(dataset, [0], dataset.get_data(None, [0]))
        (tmp_path / 's.mds.zstd').write_bytes(b'x' + frame[1:])
        with pytest.raises(DamagedFileError, match=r's\.mds\.zstd cannot be'):
            MDSDataset(tmp_path).get_data(None, [0])
    monkeypatch.setattr(decoded, 'codes', frozenset)
    monkeypatch.setattr(decoded, 'find_spec', lambda name: None)
    with pytest.raises(ImportError, match='compressed with zstd, .*codecs'):
        MDSDataset(tmp_path)


def test_file_that_changes_while_in_use_is_an_error(tmp_path):
    """One with another number of samples is refused too."""
    folder = write_numbered(tmp_path / 'a')
    dataset = MDSDataset(folder)
    path = folder / 'shard.00003.mds'
    content = path.read_bytes()
    path.write_bytes(content[:200])
    with pytest.raises(DamagedFileError, match=r'shard\.00003\.mds had'):
        dataset.get_data(None, [10])
    path.write_bytes(content)
    dataset = MDSDataset(folder)
    write_numbered(tmp_path / 'b', [4, 0, 1, 14])
    for name in ('shard.00003.mds', 'index.json'):
        os.replace(tmp_path / 'b' / name, folder / name)
    with pytest.raises(StateMismatchError, match=r'shard\.00003\.mds'):
        next(DataStream(dataset, batch_size=4).get_epoch_iterator())
    shutil.rmtree(folder)
    write_numbered(folder, [*COUNTS, 3])
    with pytest.raises(StateMismatchError, match='had 20 .* now has 23'):
        next(DataStream(dataset, batch_size=4).get_epoch_iterator())
    os.remove(folder / 'shard.00000.mds')
    with pytest.raises(FileNotFoundError, match=r'shard\.00000\.mds'):
        MDSDataset(folder)


def test_missing_shard_is_not_searched_elsewhere(tmp_path):
    """A file of the same name in the data path is that of another set."""
    folder = write_numbered(tmp_path / 'a')
    config.data_path = (str(write_numbered(tmp_path / 'b', first=20)),)
    os.remove(folder / 'shard.00000.mds')
    with pytest.raises(FileNotFoundError, match=r'a.shard\.00000\.mds'):
        MDSDataset(folder)


@pytest.mark.parametrize('name', ['set', 'set/'])
@pytest.mark.parametrize('has_root', [False, True])
def test_splits_of_a_remote_folder_are_folders(tmp_path, name, has_root):
    """They are asked for by their names; other splits are rows."""
    folder = tmp_path / 'set'
    folder.mkdir()
    for number, split in enumerate(('train', 'val')):
        write_numbered(folder / split, first=100 * number)
    if has_root:
        write_numbered(folder, first=200)
    with serving(tmp_path) as server:
        url = server.url(name)
        for split in 'val', ['train'], ['val', 'train']:
            for found, wanted in zip(
                    fuel.load(url, split)[:], fuel.load(folder, split)[:],
                    strict=True):
                assert list(map(str, found)) == list(map(str, wanted))
        if has_root:
            assert 20 == len(fuel.load(url))
            assert 2 == len(fuel.load(url, 'x', splits={'x': (0, 2)}))
        error = ValueError if has_root else FileNotFoundError
        with pytest.raises(error, match='split'):
            fuel.load(url, 'test')


@pytest.mark.parametrize('compression', [None, 'gz'])
def test_remote_folder(tmp_path, compression):
    """It is read over HTTP, in any order; so is a split."""
    config.remote_cache_path = str(tmp_path / 'cache')
    write_numbered(tmp_path / 'train', hashes=['md5'],
                   compression=compression)
    with serving(tmp_path) as server:
        for dataset in (MDSDataset(server.url('train')),
                        MDSDataset(server.url('train/index.json')),
                        MDSDataset(server.url(''), split='train'),
                        fuel.load(server.url('train')),
                        fuel.load(server.url('train/index.json'))):
            assert isinstance(dataset, MDSDataset)
            check(dataset, [19, 3], dataset.get_data(None, [19, 3]))
        assert server.url('train/shard.00002.mds') == (
            dataset.place_of_row(4).file.removesuffix('.gz'))
        for batch in DataStream(dataset, iteration_scheme=ShuffledScheme(
                20, 4)).get_epoch_iterator():
            check(dataset, (-batch[0]).tolist(), batch)
