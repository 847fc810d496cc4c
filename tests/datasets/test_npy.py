"""Data sets in ``.npy`` and ``.npz`` files."""
import os
import pickle
import random
import zipfile
from pathlib import Path

import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.testing import assert_array_equal
from support.fuel_calls import calls_of_batches

import fuel
from fuel.datasets import IndexableDataset
from fuel.datasets.npy import NPYDataset
from fuel.exceptions import DamagedFileError, StateMismatchError
from fuel.schemes import SequentialScheme, ShuffledScheme
from fuel.storage import npy
from fuel.storage.mapped import MappedReader
from fuel.streams import DataStream
from fuel.transformers import Mapping, ScaleAndShift

TYPES = st.sampled_from([
    'u1', '<i2', '>i4', '<f4', '>f8', '?', 'S3', '<U2', '>U2', '<c8', '<M8[s]',
    [('a', '<i2'), ('b', '>f4')]])


@settings(suppress_health_check=list(HealthCheck))
@given(data=st.data(), kind=st.sampled_from(['npy', 'npz', 'compressed']),
       by_columns=st.booleans())
def test_rows_equal_those_of_numpy(tmp_path_factory, data, kind, by_columns):
    """Types, shapes, orders in memory, kinds of files and requests vary."""
    array = data.draw(arrays.arrays(
        data.draw(TYPES), data.draw(arrays.array_shapes(max_side=6))))
    if by_columns:
        array = numpy.asfortranarray(array)
    path = str(tmp_path_factory.getbasetemp() / 'any.npy' if kind == 'npy'
               else tmp_path_factory.getbasetemp() / 'any.npz')
    if kind == 'npy':
        numpy.save(path, array)
    elif kind == 'npz':
        numpy.savez(path, data=array)
    else:
        numpy.savez_compressed(path, data=array)
    dataset = NPYDataset(path)
    assert len(array) == dataset.num_examples
    row = st.integers(0, len(array) - 1)
    low, high = sorted([data.draw(row), data.draw(row)])
    for request in (data.draw(row), slice(low, high + 1),
                    data.draw(st.lists(row, min_size=1, max_size=20))):
        found, = dataset.get_data(None, request)
        wanted = array[request]
        wanted = wanted.astype(wanted.dtype.newbyteorder('='))
        assert wanted.dtype == found.dtype
        assert wanted.shape == found.shape
        assert wanted.tobytes() == found.tobytes()
        if isinstance(found, numpy.ndarray) and found.ndim:
            assert found.flags.writeable
            assert found.flags.aligned


@pytest.fixture
def folder(tmp_path):
    """Return a folder with images and their labels."""
    numpy.save(tmp_path / 'images.npy', numpy.arange(80).reshape(20, 2, 2))
    numpy.save(tmp_path / 'labels.npy', numpy.arange(20, dtype='u1'))
    return tmp_path


def test_files_become_sources_and_splits_are_ranges_or_lists(folder):
    """Sets come after each other in the order asked for."""
    dataset = NPYDataset(
        {'x': folder / 'images.npy', 'y': str(folder / 'labels.npy')},
        ('odd', 'end'), {'odd': [3, 1, 1], 'end': (18, 20), 'all': slice(20)})
    assert ('x', 'y') == dataset.sources
    assert 5 == dataset.num_examples
    x, y = dataset.get_data(None, slice(0, 5))
    assert [3, 1, 1, 18, 19] == y.tolist()
    assert [12, 4, 4, 72, 76] == x[:, 0, 0].tolist()


def test_written_batches_leave_the_file_alone(folder):
    """A returned batch is the user's own."""
    stream = DataStream(NPYDataset(folder / 'images.npy'),
                        iteration_scheme=ShuffledScheme(20, 3))
    total = 0
    for batch, in stream.get_epoch_iterator():
        total += batch.sum()
        batch[...] = -1
    assert sum(range(80)) == total
    assert total == sum(
        batch.sum() for batch, in stream.get_epoch_iterator())


def test_stream_resumes_and_pickles(folder):
    """The state holds no data; a pickle holds the path."""
    def build():
        return DataStream(NPYDataset(folder / 'labels.npy'),
                          iteration_scheme=ShuffledScheme(20, 3))

    stream = build()
    epoch = stream.get_epoch_iterator()
    next(epoch)
    resumed = build()
    resumed.load_state_dict(stream.state_dict())
    copy = pickle.loads(pickle.dumps(epoch))
    for parts in zip(epoch, copy, resumed.get_epoch_iterator(), strict=True):
        assert 1 == len({part.tobytes() for part, in parts})
    big = numpy.zeros(10 ** 6)
    numpy.save(folder / 'big.npy', big)
    assert len(pickle.dumps(NPYDataset(folder / 'big.npy'))) < 2000


def test_arrays_by_columns_with_long_rows_are_read(folder, monkeypatch):
    """Too many columns for the kernel are read into memory."""
    array = numpy.asfortranarray(numpy.arange(6000).reshape(2, 3000))
    numpy.save(folder / 'wide.npy', array)

    def refuse(*_, **__):
        raise ValueError('a row falls into too many segments')

    monkeypatch.setattr(npy, 'MappedReader', refuse)
    dataset = NPYDataset(folder / 'wide.npy')
    assert (array[1] == dataset.get_data(None, 1)[0]).all()


def test_cut_file_is_refused_when_opened(folder):
    """The header says how long the array is."""
    os.truncate(folder / 'images.npy', 300)
    with pytest.raises(DamagedFileError, match=r"images.npy, source 'data': "
                       r'the array needs 640 bytes .* has 300'):
        NPYDataset(folder / 'images.npy')


def test_file_cut_while_in_use_is_an_error(folder):
    """The process does not crash, and no wrong row is returned."""
    dataset = NPYDataset(folder / 'images.npy')
    dataset.get_data(None, [19])
    os.truncate(folder / 'images.npy', 300)
    with pytest.raises(DamagedFileError, match='has 300 now'):
        dataset.get_data(None, [19])


@pytest.mark.parametrize('compressed', [False, True])
def test_damaged_archive_is_refused(folder, compressed):
    """It is cut, or changed inside a compressed entry."""
    save = numpy.savez_compressed if compressed else numpy.savez
    save(folder / 'a.npz', x=numpy.arange(5000))
    content = (folder / 'a.npz').read_bytes()
    (folder / 'a.npz').write_bytes(content[:len(content) // 2])
    with pytest.raises(DamagedFileError, match=r'a\.npz'):
        NPYDataset(folder / 'a.npz')
    if compressed:
        middle = len(content) // 2
        (folder / 'a.npz').write_bytes(
            content[:middle] + b'\xff' * 40 + content[middle + 40:])
        with pytest.raises(DamagedFileError, match="a.npz, source 'x': "):
            NPYDataset(folder / 'a.npz')


@pytest.mark.parametrize('make, error, text', [
    (lambda f: NPYDataset(f / 'none.npy'), FileNotFoundError,
     'there is no NPY file .*none.npy'),
    (lambda f: NPYDataset({}), ValueError, 'at least one file'),
    (lambda f: NPYDataset({'x': f / 'images.npy', 'y': f / 'short.npy'}),
     ValueError, 'x: 20, y: 3'),
    (lambda f: NPYDataset(f / 'text.npy'), ValueError, 'is not a .npy file'),
    (lambda f: NPYDataset(f / 'text.npz'), ValueError, 'is not a .npz file'),
    (lambda f: NPYDataset({'x': f / 'empty.npz'}), ValueError,
     "empty.npz, source 'x': .*pass its path alone"),
    (lambda f: NPYDataset(f / 'objects.npy'), ValueError, 'Python objects'),
    (lambda f: NPYDataset(f / 'scalar.npy'), ValueError, 'a scalar'),
    (lambda f: NPYDataset(f / 'empty.npz'), ValueError, 'no arrays'),
    (lambda f: NPYDataset(f / 'images.npy', 'train'), ValueError,
     'must be a tuple'),
    (lambda f: NPYDataset(f / 'images.npy', ('a',), {'b': (0, 1)}),
     ValueError, "no split 'a'.*'b'"),
    (lambda f: NPYDataset(f / 'images.npy', ()), ValueError, 'at least one'),
    (lambda f: NPYDataset(f / 'images.npy', ('a',), {'a': (0, 21)}),
     ValueError, "split 'a' must be rows within the 20"),
    (lambda f: NPYDataset(f / 'images.npy', ('a',), {'a': [20]}),
     ValueError, "split 'a': .*20"),
    (lambda f: NPYDataset(f / 'images.npy', ('a',), {'a': []}),
     ValueError, "split 'a' is empty"),
    (lambda f: NPYDataset(f / 'images.npy').get_data(None, [20]),
     ValueError, '20'),
    (lambda f: NPYDataset(f / 'images.npy').get_data(None, slice(0, 30)),
     ValueError, '30'),
])
def test_wrong_files_and_arguments_are_refused(folder, make, error, text):
    """The error names the file, and what was expected."""
    numpy.save(folder / 'short.npy', numpy.arange(3))
    numpy.save(folder / 'objects.npy', numpy.array([None, 1], object))
    numpy.save(folder / 'scalar.npy', numpy.array(3))
    numpy.savez(folder / 'empty.npz')
    for name in 'text.npy', 'text.npz':
        (folder / name).write_text('1,2,3\n')
    with pytest.raises(error, match=text):
        make(folder)


def epoch_of(dataset, **kwargs):
    """Return an epoch of batches of seven in a shuffled order."""
    return DataStream(dataset, iteration_scheme=ShuffledScheme(
        dataset.num_examples, 7), **kwargs).get_epoch_iterator()


@pytest.fixture
def pairs(tmp_path):
    """Return the path of a file with two plain arrays."""
    path = tmp_path / 'pairs.npz'
    numpy.savez(path, x=numpy.arange(300, dtype='u1').reshape(100, 3),
                y=numpy.arange(100))
    return path


def test_batches_of_an_epoch_are_those_of_requests(pairs, monkeypatch):
    """All are copied in C, the first one too."""
    dataset = NPYDataset(pairs, ('a',), {'a': (10, 90)})
    expected = [dataset.get_data(None, request) for request
                in ShuffledScheme(80, 7).get_request_iterator()]
    calls = []
    read = MappedReader.read
    monkeypatch.setattr(MappedReader, 'read', lambda reader, rows: (
        calls.append(reader.name), read(reader, rows))[1])
    got = list(epoch_of(dataset))
    assert not calls
    for batch, same in zip(got, expected, strict=True):
        for part, other in zip(batch, same, strict=True):
            assert part.dtype == other.dtype
            assert_array_equal(part, other)
            assert part.flags.owndata
            assert part.flags.writeable


def test_sources_chosen_in_the_middle_of_an_epoch_are_read(pairs):
    """The next batch has them, as `get_data` would."""
    dataset = NPYDataset(pairs)
    requests = ShuffledScheme(100, 7).get_request_iterator()
    epoch = epoch_of(dataset)
    for sources in (('x', 'y'), ('x', 'y'), ('y', 'x'), ('y',), ('y', 'x')):
        dataset.sources = sources
        for _ in range(2):
            expected = dataset.get_data(None, next(requests))
            got = next(epoch)
            for part, other in zip(got, expected, strict=True):
                assert_array_equal(part, other)


def test_data_set_pickled_in_the_middle_of_an_epoch_reads_on(pairs):
    """Its files are opened again."""
    epoch = epoch_of(NPYDataset(pairs))
    for _ in range(3):
        next(epoch)
    again = pickle.loads(pickle.dumps(epoch))
    for (x, y), (first, second) in zip(epoch, again, strict=True):
        assert_array_equal(x, first)
        assert_array_equal(y, second)


def test_scaling_of_batches_from_a_file_has_the_same_bits(pairs):
    """One pass gives the bits of two."""
    scheme = ShuffledScheme(100, 7)
    fused = ScaleAndShift(
        DataStream(NPYDataset(pairs), iteration_scheme=scheme),
        1 / 3., -.1, which_sources=('x',))
    apart = ScaleAndShift(
        Mapping(DataStream(NPYDataset(pairs), iteration_scheme=ShuffledScheme(
            100, 7)), tuple), 1 / 3., -.1, which_sources=('x',))
    for (x, _), (other, _) in zip(
            fused.get_epoch_iterator(), apart.get_epoch_iterator(),
            strict=True):
        assert x.dtype == other.dtype
        assert x.tobytes() == other.tobytes()


def test_file_that_changes_in_the_middle_of_an_epoch_raises(tmp_path):
    """The epoch does not mix rows of the two files."""
    path = tmp_path / 'x.npy'
    numpy.save(path, numpy.arange(1000.))
    epoch = epoch_of(NPYDataset(path))
    for _ in range(3):
        next(epoch)
    with open(path, 'r+b') as file:
        file.truncate(4000)
    with pytest.raises(DamagedFileError, match='x.npy'):
        list(epoch)


@pytest.mark.parametrize('again', ['another epoch', 'make the data set'])
def test_rows_of_a_file_that_changed_are_an_error_that_says_what_helps(
        again, tmp_path):
    """The error stays, outside of an epoch, until an epoch begins or a new
    data set is made."""
    path = tmp_path / 'x.npy'
    numpy.save(path, numpy.zeros(1000))
    dataset = NPYDataset(path)
    list(epoch_of(dataset))
    numpy.save(path, numpy.ones(1000))
    with pytest.raises(DamagedFileError, match=again):
        dataset[:2]
    if again == 'another epoch':
        list(epoch_of(dataset))
    else:
        dataset = NPYDataset(path)
    assert_array_equal(dataset[:2][0], [1, 1])


def test_archive_that_lacks_a_source_later_is_told(tmp_path):
    """The error is raised when the next epoch begins."""
    path = tmp_path / 'data.npz'
    numpy.savez(path, x=numpy.arange(9), y=numpy.arange(9))
    dataset = NPYDataset(path)
    list(epoch_of(dataset))
    numpy.savez(tmp_path / 'new.npz', x=numpy.arange(9))
    os.replace(tmp_path / 'new.npz', path)
    with pytest.raises(
            StateMismatchError, match=r"source 'y' when.*now has \['x'\]"):
        next(epoch_of(dataset))


@pytest.mark.parametrize('save', [numpy.savez, numpy.savez_compressed])
def test_any_damage_of_an_archive_is_an_error_that_names_it(save, tmp_path):
    """Damage may be in the directory, headers, checksums or content."""
    path = str(tmp_path / 'data.npz')
    save(path, a=numpy.arange(60).reshape(20, 3), b=numpy.arange(20.))
    content = Path(path).read_bytes()
    draw, refused = random.Random(0), 0
    for number in range(250):
        place = draw.choice([draw.randrange(len(content)),
                             len(content) - 1 - draw.randrange(200)])
        damaged = bytearray(content)
        if number % 10:
            damaged[place] ^= 1 << draw.randrange(8)
        else:
            del damaged[place:]
        Path(path).write_bytes(damaged)
        try:
            NPYDataset(path).get_data(None, slice(0, 20))
        except (DamagedFileError, ValueError) as error:
            if path not in str(error):
                raise
            refused += 1
    assert refused > 100


@pytest.mark.parametrize('save', [numpy.savez, numpy.savez_compressed])
@pytest.mark.parametrize('length', [b'18', b'22'])
def test_array_of_another_length_than_its_entry_is_refused(
        save, length, tmp_path):
    """Its header may be damaged where the rest is whole."""
    path = tmp_path / 'data.npz'
    save(path, a=numpy.arange(20))
    with zipfile.ZipFile(path) as archive:
        kind = archive.infolist()[0].compress_type
        content = archive.read('a.npy').replace(b'(20,)', b'(%b,)' % length)
    with zipfile.ZipFile(path, 'w', kind) as archive:
        archive.writestr('a.npy', content)
    with pytest.raises(DamagedFileError, match="source 'a'"):
        NPYDataset(str(path))


@pytest.mark.parametrize('rows', [
    numpy.zeros((9, 2), 'float32'), numpy.zeros((9, 3))])
def test_file_of_other_types_is_refused(tmp_path, rows):
    """The file has as many examples, but of another type or shape."""
    path = tmp_path / 'x.npy'
    numpy.save(path, numpy.zeros((9, 2)))
    dataset = NPYDataset(path)
    list(epoch_of(dataset))
    numpy.save(tmp_path / 'new.npy', rows)
    os.replace(tmp_path / 'new.npy', path)
    for _ in range(2):
        with pytest.raises(StateMismatchError,
                           match='had examples of float64, shape .2,.'):
            next(epoch_of(dataset))


@pytest.mark.parametrize('save', [numpy.savez, numpy.savez_compressed])
def test_batches_of_archives_call_no_python(tmp_path, save):
    """Compressed archives, which are in memory, call none either."""
    x, y = numpy.arange(80.).reshape(40, 2), numpy.arange(40, dtype='>i4')
    save(tmp_path / 'a.npz', x=x, y=y.astype('i4'))
    assert [] == calls_of_batches(NPYDataset(tmp_path / 'a.npz'), [x, y], 4)


@pytest.mark.parametrize('number', [1, 2])
@pytest.mark.parametrize('save', [numpy.savez, numpy.savez_compressed])
def test_archive_written_to_in_use_is_an_error(tmp_path, save, number):
    """The error is raised for data in memory too; a new epoch has new rows."""
    paths = [tmp_path / f'{one}.npz' for one in range(number)]
    for path in paths:
        save(path, x=numpy.arange(8))
    dataset = NPYDataset(paths)
    stream = DataStream(dataset, iteration_scheme=SequentialScheme(
        len(dataset), 4))
    epoch = stream.get_epoch_iterator()
    next(epoch)
    save(paths[0], x=numpy.arange(8) + 8)
    for read in (lambda: list(epoch), lambda: dataset[2],
                 lambda: dataset.get_data(None, slice(0, 2))):
        with pytest.raises(DamagedFileError, match='0.npz'):
            read()
    assert [8, 9, 10, 11] == next(stream.get_epoch_iterator())[0].tolist()


@pytest.mark.parametrize('save', [numpy.savez, numpy.savez_compressed])
@pytest.mark.parametrize('other, text', [
    (numpy.float64(3), r"source 'other': a scalar has no examples; "),
    (numpy.array([{}, {1}] * 2, object),
     "source 'other': arrays of Python objects"),
    (numpy.array(['cat', 'dog']), 'sources must have .* other: 2')])
def test_array_that_is_not_a_source_is_passed_over(
        tmp_path, save, other, text):
    """The error of the default names the sources that can be read."""
    x, y = numpy.arange(12.).reshape(4, 3), numpy.arange(4)
    for name in 'ab':
        save(tmp_path / f'{name}.npz', x=x, other=other, y=y)
    for build in (NPYDataset, fuel.load):
        for files in ('a.npz', '?.npz'):
            with pytest.raises(ValueError, match=text) as caught:
                build(str(tmp_path / files))
            assert "sources=('x', 'y') reads" in str(caught.value)
            dataset = pickle.loads(pickle.dumps(build(
                str(tmp_path / files), sources=('y', 'x'))))
            count = 4 if files == 'a.npz' else 8
            assert (count, ('y', 'x')) == (len(dataset), dataset.sources)
            assert_array_equal(x[3], dataset[count - 1][1])
    with pytest.raises(ValueError, match='other'):
        NPYDataset(tmp_path / 'a.npz', sources=('x', 'other'))


def test_arrays_that_are_asked_for_are_alike_in_all_archives(tmp_path):
    """Others may lack, differ, or have other rows in each file."""
    numpy.savez(tmp_path / 'a.npz', x=[1, 2], z=[1, 2, 3], w=[1, 2], v=[1, 2])
    numpy.savez(tmp_path / 'b.npz', x=[3, 4], z=[4], w=[1., 2.], u=[1, 2])
    dataset = NPYDataset(tmp_path / '?.npz', sources=('x',))
    assert ('x',) == dataset.provides_sources
    assert [1, 2, 3, 4] == dataset[:][0].tolist()
    for source, text in (('z', 'b.npz: all sources|a.npz: all sources'),
                         ('w', 'rows of one type'),
                         ('v', "no array 'v'"), ('u', "no source 'u'")):
        with pytest.raises(ValueError, match=text):
            NPYDataset(tmp_path / '?.npz', sources=('x', source))


def test_checksum_of_an_archive_is_checked_where_it_is_read_whole(tmp_path):
    """Mapped rows come as the file has them, as the manual says."""
    x = numpy.random.default_rng(0).random((3000, 4))
    for name, save in (('mapped', numpy.savez),
                       ('compressed', numpy.savez_compressed)):
        path = tmp_path / f'{name}.npz'
        save(path, x=x)
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 255
        path.write_bytes(content)
    found = NPYDataset(tmp_path / 'mapped.npz')[:][0]
    assert 1 == numpy.count_nonzero(found != x)
    with pytest.raises(DamagedFileError, match='compressed.npz'):
        NPYDataset(tmp_path / 'compressed.npz')[:]


def test_data_set_without_examples_says_so():
    """Counted from the end, too."""
    for number in (-1, 0, 3):
        with pytest.raises(IndexError, match='has no examples, and so none'):
            IndexableDataset([])[number]
