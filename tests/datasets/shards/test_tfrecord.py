"""Data sets in TFRecord files."""
import gzip
import pickle
import struct
import zlib

import numpy
import pytest
from numpy.testing import assert_array_equal
from support.range_server import serving
from support.resuming import assert_resumes
from support.tfrecord_files import (
    entry, example, feature, field, masked, record, write_tfrecord)

import fuel
from fuel import config
from fuel.datasets import TFRecordDataset, Windows
from fuel.datasets.shards import tfrecord
from fuel.exceptions import DamagedFileError, StateMismatchError
from fuel.remote.location import RemotePath
from fuel.schemes import ShuffledScheme, SequentialScheme
from fuel.storage.file_bytes import raw_file_at
from fuel.streams import DataStream
from fuel.transformers import MultiProcessing
from fuel.utils.io_counts import io_counts


def numbered(number):
    """Return an example whose features follow from its number."""
    return example(
        label=[number], image=[b'image %d\0' % number],
        box=[number / 2, -1., 2., 3.], words=[b'a\0'] * (number % 3),
        ids=list(range(-number, 0))[:number % 4])


def check(dataset, numbers, batch):
    """Check that a batch has the examples of some numbers."""
    assert ('box', 'ids', 'image', 'label', 'words') == dataset.sources
    boxes, ids, images, labels, words = batch
    assert (numpy.float32, numpy.int64) == (boxes.dtype, labels.dtype)
    assert_array_equal([[n / 2, -1, 2, 3] for n in numbers], boxes)
    assert list(numbers) == labels.tolist()
    assert [b'image %d\0' % n for n in numbers] == images.tolist()
    for number, some, texts in zip(numbers, ids, words, strict=True):
        assert numpy.int64 == some.dtype
        assert list(range(-number, 0))[:number % 4] == some.tolist()
        assert [b'a\0'] * (number % 3) == texts.tolist()


@pytest.fixture
def folder(tmp_path):
    """Return a folder of three files with numbered examples."""
    first = 0
    for name, count in (('a-2', 5), ('a-10', 1), ('a-11', 14)):
        write_tfrecord(tmp_path / f'{name}.tfrecord',
                       map(numbered, range(first, first + count)))
        first += count
    return tmp_path


@pytest.fixture
def dataset(folder):
    """Return the data set of twenty examples."""
    return TFRecordDataset(folder / '*.tfrecord')


def test_files_are_read_in_any_order(folder, dataset):
    """Rows may come twice; ranges and single examples are read too."""
    check(dataset, [19, 3, 5, 5, 0], dataset.get_data(None, [19, 3, 5, 5, 0]))
    check(dataset, range(4, 8), dataset.get_data(None, slice(4, 8)))
    one = dataset[7]
    assert (7, b'image 7\0', [-7, -6, -5]) == (
        one[3], one[2], one[1].tolist())
    place = dataset.place_of_row(6)
    assert (str(folder / 'a-11.tfrecord'), '', 0) == place
    again = eval(repr(dataset), {'TFRecordDataset': TFRecordDataset})
    check(again, [2], again.get_data(None, [2]))
    check(dataset, [8], pickle.loads(pickle.dumps(dataset)).get_data(
        None, [8]))


def test_tables_of_an_order_have_the_files(folder, dataset):
    """Windows have that of their first row."""
    for examples in dataset, Windows(dataset, 2):
        table = DataStream(examples, batch_size=3).order[1:3]
        assert [str(folder / 'a-2.tfrecord')] * 2 + [
            str(folder / 'a-10.tfrecord')] + [
                str(folder / 'a-11.tfrecord')] * 3 == table.file.tolist()
        assert [3, 4, 0, 0, 1, 2] == table.row_of_part.tolist()


def test_batches_belong_to_the_caller(dataset):
    """Arrays of each record may be written to."""
    for part in dataset.get_data(None, [3, 3]):
        assert part.flags.writeable
    ids = dataset.get_data(None, [3, 3])[1]
    ids[0][:] = 100
    assert [-3, -2, -1] == ids[1].tolist()


def test_epochs_are_shuffled_sharded_and_resumed(dataset):
    """As of any rows."""
    def stream():
        return DataStream(TFRecordDataset(dataset.path),
                          iteration_scheme=ShuffledScheme(
                              20, 6, rng=numpy.random.RandomState(3)))

    for _ in range(2):
        batches = list(stream().get_epoch_iterator())
        for batch in batches:
            check(dataset, batch[3].tolist(), batch)
        assert list(range(20)) == sorted(
            number for batch in batches for number in batch[3].tolist())
    assert_resumes(stream, 1)
    for ranks in (2, 4):
        seen = []
        for rank in range(ranks):
            for batch in stream().shard(rank, ranks).get_epoch_iterator():
                check(dataset, batch[3].tolist(), batch)
                seen += batch[3].tolist()
        assert list(range(20)) == sorted(seen)


def test_workers_and_windows_read_records(dataset):
    """A window is consecutive records."""
    stream = MultiProcessing(DataStream(
        dataset, iteration_scheme=SequentialScheme(20, 8)))
    batches = list(stream.get_epoch_iterator())
    stream.close()
    assert list(range(20)) == [
        number for batch in batches for number in batch[3].tolist()]
    windows = Windows(dataset, 3, sources=('label', 'box'))
    labels, boxes = windows.get_data(None, [4])
    assert [4, 5, 6] == labels[0].tolist()
    assert [2, 2.5, 3] == boxes[0][:, 0].tolist()


def test_records_are_parsed_once_for_all_sources(dataset, monkeypatch):
    """The number of sources does not matter."""
    calls = []

    def parse(content, known):
        calls.append(content)
        return parsed(content, known)

    parsed = tfrecord.parse_example
    monkeypatch.setattr(tfrecord, 'parse_example', parse)
    check(dataset, [7, 1, 3], dataset.get_data(None, [7, 1, 3]))
    assert 3 == len(calls)


def test_columns_choose_features(folder):
    """They give the sources any names."""
    path = folder / 'a-2.tfrecord'
    dataset = TFRecordDataset(path, {'x': 'image', 'y': 'label'})
    images, labels = dataset.get_data(None, [4, 1])
    assert ([b'image 4\0', b'image 1\0'], [4, 1]) == (
        images.tolist(), labels.tolist())
    with pytest.raises(ValueError, match=r"reads 'lable', .*did you mean "
                       r"'label'.*\['box', 'ids', 'image', 'label', 'words"):
        TFRecordDataset(path, ['lable'])
    with pytest.raises(ValueError, match="ragged names 'bux', .*'box'"):
        TFRecordDataset(path, ragged=['bux'])
    dataset = TFRecordDataset(path, ragged='box', sources=('box',))
    assert [[2, -1, 2, 3]] == [
        box.tolist() for box in dataset.get_data(None, [4])[0]]
    assert repr(dataset).endswith("ragged=('box',), sources=('box',))")


def test_features_that_records_lack_are_ragged(tmp_path):
    """They are empty there; a feature without a kind has any."""
    dataset = TFRecordDataset(write_tfrecord(tmp_path / 'a', [
        example(a=[1, 2], b=[.5], c=[b'x'], d=[]), example(b=[2.]),
        example(a=[3, 4], c=[]), field(1, entry('b', feature([.25])) + entry(
            'a', feature([5, 6], packed=False)))]))
    assert ('a', 'b', 'c', 'd') == dataset.sources
    found = dataset.get_data(None, slice(0, 4))
    assert [[[1, 2], [], [3, 4], [5, 6]], [[.5], [2], [], [.25]],
            [[b'x'], [], [], []], [[], [], [], []]] == [
                [value.tolist() for value in part] for part in found]
    assert ['int64', 'int64'] == [str(x.dtype) for x in found[0][:2]]
    assert ['float32'] * 4 == [str(x.dtype) for x in found[1]]
    assert numpy.int64 == dataset.readers['a'].element_type


def test_other_payloads_are_bytes(tmp_path):
    """So are examples whose lists of features would be lost."""
    for payloads in ([b'', b'ab\0', b'{"a": 1}'], [b''],
                     [example(a=[1]) + field(2, b'')] * 2):
        dataset = TFRecordDataset(write_tfrecord(tmp_path / 'a', payloads))
        assert ('record',) == dataset.sources
        assert payloads == dataset.get_data(
            None, slice(0, len(payloads)))[0].tolist()
    dataset = TFRecordDataset(
        write_tfrecord(tmp_path / 'b', [b'x']), {'text': 'record'})
    assert b'x' == dataset[0][0]
    with pytest.raises(ValueError, match='there is no record'):
        TFRecordDataset(write_tfrecord(tmp_path / 'c', []))
    assert 1 == len(TFRecordDataset([tmp_path / 'c', tmp_path / 'b']))


@pytest.mark.parametrize(('late', 'error'), [
    (example(a=[.5], b=[1, 2]), r"feature 'a' is a float_list, but a int64"),
    (example(a=[1, 2], b=[1, 2]), r"'a' has 2 values, but 1 .*ragged=\('a'"),
    (example(b=[1, 2]), r"feature 'a' has 0 values, but 1 in the first 1000"),
    (example(a=[1], b=[1]), r"feature 'b' has 1 values, but 2 "),
    (b'\x0a\x05abc', 'it is not a tf.train.Example, or is damaged')])
def test_later_record_of_another_type_is_an_error(tmp_path, late, error):
    """It names file and record; the stream may leave the record out."""
    usual = example(a=[1], b=[1, 2])
    first = write_tfrecord(tmp_path / '1', [usual] * 900)
    second = write_tfrecord(tmp_path / '2', [usual] * 250 + [late, usual])
    dataset = TFRecordDataset([first, second])
    assert [1] == dataset.get_data(None, [1151])[0].tolist()
    with pytest.raises(ValueError, match=f'2, record 250.*{error}') as caught:
        dataset.get_data(None, [3, 1150])
    assert not isinstance(caught.value, DamagedFileError)
    stream = DataStream(dataset, batch_size=100, on_error='skip')
    assert 1151 == sum(len(batch[0]) for batch in stream.get_epoch_iterator())
    assert [1150] == [
        each.example for each in stream.skipped_examples().examples]
    dataset = TFRecordDataset([first, second], ['b'], ragged=['b'])
    assert 1 == dataset.get_data(None, [3])[0][0][0]


@pytest.mark.parametrize('late', [
    example(a=[1], b=[1, 2], new=[.5]), example(a=[1], b=[1, 2], new=[]),
    # As many features as usual.
    example(a=[1], new=[b'x'])])
def test_later_record_with_another_feature_is_an_error(tmp_path, late):
    """It names file, record and feature; the stream may leave it out."""
    usual = example(a=[1], b=[1, 2])
    first = write_tfrecord(tmp_path / '1', [usual, example(a=[1])] * 450)
    second = write_tfrecord(tmp_path / '2', [usual] * 250 + [late, usual])
    dataset = TFRecordDataset([first, second])
    assert ('a', 'b') == dataset.sources
    words = "2, record 250.* has the feature 'new', which.*with columns="
    for copy in dataset, pickle.loads(pickle.dumps(dataset)):
        assert [1] == copy.get_data(None, [1151])[0].tolist()
        for request in [3, 1150], slice(1149, 1152), 1150:
            with pytest.raises(ValueError, match=words):
                copy.get_data(None, request)
    with pytest.raises(ValueError, match=words):
        Windows(dataset, 2, sources=('a',)).get_data(None, [1149])
    stream = DataStream(dataset, batch_size=100, on_error='skip')
    assert 1151 == sum(len(batch[0]) for batch in stream.get_epoch_iterator())
    assert [1150] == [
        each.example for each in stream.skipped_examples().examples]


def test_chosen_features_are_read_beside_others(tmp_path):
    """By columns or sources, also those that are assigned later."""
    path = write_tfrecord(
        tmp_path / 'a', [example(a=[1], b=[1, 2])] * 1000
        + [example(a=[2], b=[3, 4], new=[5])])
    chosen = [
        TFRecordDataset(path, ['a']), TFRecordDataset(path, {'a': 'a'}),
        TFRecordDataset(path, sources=('a',)), fuel.load(path, columns=['a'])]
    dataset = TFRecordDataset(path)
    dataset.sources = ('a',)
    for some in [*chosen, dataset]:
        for copy in some, pickle.loads(pickle.dumps(some)):
            assert [1, 2] == copy.get_data(None, [3, 1000])[0].tolist()
    with pytest.raises(ValueError, match="feature 'new'"):
        TFRecordDataset(path).get_data(None, [1000])


def test_first_records_must_agree(tmp_path):
    """The error names two of them; damaged ones do not count."""
    path = write_tfrecord(tmp_path / 'a', [
        example(a=[1])] * 3 + [example(a=[.5])])
    with pytest.raises(ValueError, match=r"feature 'a' must be of one kind, "
                       r"but is a .*float_list in .*record 3"):
        TFRecordDataset(path)
    path = write_tfrecord(tmp_path / 'b', [
        b'\x0a\x05abc', example(a=[1]), example(a=[2])])
    dataset = TFRecordDataset(path)
    assert [1, 2] == dataset.get_data(None, [1, 2])[0].tolist()
    with pytest.raises(ValueError, match='record 0.*not a tf.train.Example'):
        dataset.get_data(None, [0])


def damaged(content, place, byte):
    """Return bytes with a changed byte."""
    return content[:place] + bytes([content[place] ^ byte]
                                   ) + content[place + 1:]


WHOLE = record(example(a=[1]))


@pytest.mark.parametrize(('content', 'error'), [
    # Cut off in a length, its checksum, the data, their checksum.
    (WHOLE * 2 + WHOLE[:5], 'record 2: the file ends in its length, at byte'),
    (WHOLE[:11], 'record 0: the file ends in its length'),
    (WHOLE * 2 + WHOLE[:20], 'record 2: it needs .* ends after 8: it was cut'),
    (WHOLE + WHOLE[:-1], 'record 1: it needs .* was cut off'),
    # Lengths that lie, with right checksums.
    (WHOLE + record(b'abc', 1000), 'record 1: it needs 1004 bytes'),
    (record(b'abc', 2 ** 64 - 1), 'record 0: it needs 18446744073709551619'),
    (record(b'abc', 2 ** 63), 'record 0: it needs'),
    (WHOLE + record(b'abcdef', 2) + WHOLE, 'record 2: the checksum of its'),
    # A changed length, and a changed checksum.
    (damaged(WHOLE, 0, 1), 'record 0: the checksum of its length is wrong'),
    (WHOLE + damaged(WHOLE, 9, 128), 'record 1: the checksum of its length'),
    (b'no TFRecord at all', 'record 0: .*at byte 0: .*or no TFRecord')])
def test_damaged_file_is_refused(tmp_path, content, error):
    """The error names file and record."""
    path = tmp_path / 'a.tfrecord'
    path.write_bytes(content)
    with pytest.raises(DamagedFileError, match=f'a.tfrecord, {error}'):
        TFRecordDataset(path)


@pytest.mark.parametrize('place', [12, 13, len(WHOLE) - 1])
def test_record_with_a_wrong_checksum_is_refused_when_it_is_read(
        tmp_path, place):
    """It may be left out of an epoch."""
    path = tmp_path / 'a.tfrecord'
    path.write_bytes(WHOLE * 2 + damaged(WHOLE, place, 4) + WHOLE * 17)
    dataset = TFRecordDataset(path)
    with pytest.raises(ValueError, match='a.tfrecord, record 2, .*the '
                       'checksum of its data is wrong'):
        dataset.get_data(None, [1, 2])
    stream = DataStream(dataset, batch_size=4, on_error='skip')
    assert 19 == sum(len(batch[0]) for batch in stream.get_epoch_iterator())
    assert 1 == stream.skipped_examples().count
    path.write_bytes(damaged(WHOLE, place, 4))
    with pytest.raises(ValueError, match='record 0, .*the checksum of its d'):
        TFRecordDataset(path)


@pytest.mark.parametrize('compress', [
    gzip.compress, zlib.compress, lambda data: zlib.compress(data, 9),
    lambda data: zlib.compress(data, 1)])
def test_compressed_file_is_refused(tmp_path, compress):
    """The error says what to do."""
    path = tmp_path / 'a.tfrecord'
    path.write_bytes(compress(WHOLE))
    with pytest.raises(ValueError, match=r'compressed, .*decompress it'):
        TFRecordDataset(path)


def test_file_that_is_cut_while_in_use_is_an_error(folder, dataset):
    """One that was replaced by another number of records is refused too."""
    path = folder / 'a-11.tfrecord'
    content = path.read_bytes()
    path.write_bytes(content[:100])
    with pytest.raises(DamagedFileError, match=r'a-11.tfrecord had'):
        dataset.get_data(None, [10])
    path.write_bytes(content)
    dataset = TFRecordDataset(folder / '*.tfrecord')
    write_tfrecord(folder / 'new', map(numbered, range(13)))
    (folder / 'new').rename(path)
    stream = DataStream(dataset, batch_size=4)
    with pytest.raises(StateMismatchError, match='a-11.tfrecord'):
        next(stream.get_epoch_iterator())


@pytest.mark.parametrize('count', [10, 1000])
def test_state_notices_swapped_files(tmp_path, count):
    """Records are without keys, and all have one size here, but each has a
    checksum, for which the index on disk has one too."""
    config.remote_cache_path = str(tmp_path / 'cache')
    paths = [tmp_path / 'a', tmp_path / 'b']

    def new(*records):
        for path, numbers in zip(paths, records, strict=True):
            write_tfrecord(path, [b'%09d' % number for number in numbers])
        return again()

    def again():
        return DataStream(TFRecordDataset(paths), batch_size=7, shuffle=True,
                          seed=3)

    first, second = range(count), range(count, 2 * count)
    stream = new(first, second)
    seen = next(stream.get_epoch_iterator())[0].tolist()
    state = stream.state_dict()
    stream = again()
    stream.load_state_dict(state)
    for batch, in stream.get_epoch_iterator():
        seen += batch.tolist()
    assert [b'%09d' % number for number in range(2 * count)] == sorted(seen)
    for records in ([second, first], [first, [*second[:-1], 0]],
                    [first, [0, *second[1:]]]):
        with pytest.raises(StateMismatchError, match=(
                r"by the field 'data_id', the checksums of data set 0 \(TFR")):
            new(*records).load_state_dict(state)


def test_index_is_kept(tmp_path):
    """Large records are hopped over; later, no header is read."""
    config.remote_cache_path = str(tmp_path / 'cache')
    path = write_tfrecord(tmp_path / 'a', [bytes(10)] * 2000)
    with open(path, 'ab') as file:
        for _ in range(3):
            file.write(record(b'', 10 ** 9)[:12])
            file.truncate(file.seek(10 ** 9 + 4, 1))
    # The data of the last three, which are holes, are not read.
    io_counts.clear()
    assert 2003 == len(TFRecordDataset(path))
    assert io_counts.bytes_read < 300_000
    path_of_index, = (tmp_path / 'cache').rglob('*.npz')
    assert path_of_index.stat().st_size < 100_000
    io_counts.clear()
    assert 2003 == len(TFRecordDataset(path))
    assert io_counts.bytes_read < 60_000


def test_remote_files(folder, tmp_path):
    """They are read over HTTP, in any order."""
    config.remote_cache_path = str(tmp_path / 'cache')
    with serving(folder) as server:
        dataset = TFRecordDataset([
            server.url(f'{name}.tfrecord') for name in ('a-2', 'a-11')])
        assert 19 == len(dataset)
        check(dataset, [19, 3], dataset.get_data(None, [18, 3]))
        for batch in DataStream(dataset, iteration_scheme=ShuffledScheme(
                19, 4)).get_epoch_iterator():
            check(dataset, batch[3].tolist(), batch)


def test_large_remote_records_are_skipped(tmp_path):
    """Only what lies between small ones is read with their headers."""
    config.remote_cache_path = 'off'
    head = struct.pack('<Q', (3 << 20) - 4)
    (tmp_path / 'a').write_bytes(
        (head + masked(head) + bytes(3 << 20)) * 12 + record(b'') * 1000)
    with serving(tmp_path) as server:
        file = raw_file_at(RemotePath(server.url('a')))
        assert 1012 == tfrecord.scan(file).total
        assert server.served_bytes() < 13 * (128 << 10)
        assert len(server.log) < 16


def test_load_knows_the_content(folder):
    """The name of the file does not matter."""
    path = folder / 'train'
    (folder / 'a-2.tfrecord').rename(path)
    dataset = fuel.load(path)
    assert isinstance(dataset, TFRecordDataset)
    check(dataset, [4], dataset.get_data(None, [4]))
    (folder / 'a-10.tfrecord').rename(folder / 'validation-0.tfrecord')
    (folder / 'a-11.tfrecord').rename(folder / 'train-0.tfrecord')
    assert 14 == len(fuel.load(folder, split='train'))
    assert 15 == len(fuel.load(folder / '*.tfrecord', split='all'))
    (folder / 'b.tfrecord').write_bytes(b'abc')
    with pytest.raises(ValueError, match='begins with.*a TFRecord file are'):
        fuel.load(folder / 'b.tfrecord')
