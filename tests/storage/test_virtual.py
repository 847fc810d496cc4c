"""Virtual data sets give what HDF5 gives, or an error where it gives less."""
import itertools

import h5py
import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuel.datasets import HDF5Dataset
from fuel.exceptions import DamagedFileError
from fuel.storage import choose_reader, open_parts
from fuel.storage.mapped import DirectReader

NUMBERS = itertools.count()


@settings(max_examples=100, deadline=None,
          suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_virtual_rows_are_those_of_hdf5(tmp_path_factory, data):
    """Pieces lie in any order, in one file or in other virtual ones, and rows
    are left out."""
    folder = tmp_path_factory.mktemp('virtual')
    rng = numpy.random.RandomState(data.draw(st.integers(0, 99)))
    names = []
    for number in range(data.draw(st.integers(1, 4))):
        count = data.draw(st.integers(1, 9))
        name = folder / f'{number}.hdf5'
        with h5py.File(name, 'w') as file:
            keywords = data.draw(st.sampled_from([
                {}, {'chunks': (1, 3)}, {'compression': 'gzip'}]))
            file.create_dataset('a/x', data=rng.randint(
                0, 99, (count, 3)).astype('i4'), **keywords)
        names.append((name.name, count))
    for level in range(data.draw(st.integers(1, 3))):
        pieces = []
        for _ in range(data.draw(st.integers(1, 5))):
            name, count = data.draw(st.sampled_from(names))
            low = data.draw(st.integers(0, count - 1))
            pieces.append((name, count, low, data.draw(
                st.integers(low + 1, count))))
        total = sum(high - low for _, _, low, high in pieces)
        layout = h5py.VirtualLayout((total, 3), 'i4')
        place = 0
        for name, count, low, high in pieces:
            source = h5py.VirtualSource(name, 'a/x', (count, 3))
            layout[place:place + high - low] = source[low:high]
            place += high - low
        path = folder / f'v{level}.hdf5'
        with h5py.File(path, 'w') as file:
            file.create_virtual_dataset('a/x', layout, fillvalue=-1)
        names.append((path.name, total))
    start, stop = [data.draw(st.one_of(st.none(), st.integers(-4, 4)))
                   for _ in range(2)]
    with h5py.File(path, 'r') as file, h5py.File(
            folder / '0.hdf5', 'r') as other:
        whole = file['a/x'][...]
        reader = choose_reader(file['a/x'])
        assert isinstance(reader, DirectReader)
        assert whole.tolist() == reader.read(slice(None)).tolist()
        assert [0, len(whole)] == reader.part_bounds.tolist()
        several = [other['a/x'], file['a/x'], other['a/x']]
        reader = open_parts(several, 'x', start=start, stop=stop)
        expected = [one[start:stop] for one in several]
        assert numpy.cumsum([0, *map(len, expected)]).tolist() == (
            reader.part_bounds.tolist())
        rows = numpy.array(data.draw(st.lists(st.integers(
            0, max(0, len(reader) - 1)), max_size=20 * (len(reader) > 0))),
            numpy.intp)
        assert numpy.concatenate(expected)[rows].tolist() == (
            reader.read(rows).tolist())


def virtual(path, name='source.hdf5', shape=(4, 2), dtype='i4', key=None):
    """Write a virtual data set of one source; return its path."""
    layout = h5py.VirtualLayout(shape, dtype)
    source = h5py.VirtualSource(name, 'x', (4, 2))
    if key is None:
        layout[:] = source
    else:
        layout[key] = source[key]
    with h5py.File(path, 'w') as file:
        file.create_virtual_dataset('x', layout, fillvalue=7)
    return path


@pytest.fixture
def source(tmp_path):
    """Write a data set of four rows."""
    path = tmp_path / 'source.hdf5'
    with h5py.File(path, 'w') as file:
        file['x'] = numpy.arange(8, dtype='i4').reshape(4, 2)
    return path


@pytest.mark.parametrize('options', [
    {'shape': (5, 2), 'key': slice(0, 4)},
    {'key': (slice(None), slice(0, 1))}, {'dtype': 'f8'},
    {'key': slice(0, 4, 2)}], ids=str)
def test_others_than_whole_rows_are_read_by_hdf5(tmp_path, source, options):
    """Rows that lie nowhere, columns, other types, and every second row."""
    path = virtual(tmp_path / 'v.hdf5', **options)
    with h5py.File(path, 'r') as file:
        for reader in (choose_reader(file['x']),
                       open_parts([file['x']], 'x')):
            assert not isinstance(reader, DirectReader)
            assert file['x'][...].tolist() == reader.read(
                slice(None)).tolist()
    source.unlink()
    with h5py.File(path, 'r') as file:
        for read in choose_reader, lambda one: open_parts([one], 'x'):
            with pytest.raises(FileNotFoundError, match='v.hdf5.*source.hdf5'):
                read(file['x'])


@pytest.mark.parametrize('how', ['file', 'data set', 'rows'])
def test_missing_sources_are_errors(tmp_path, source, how):
    """HDF5 gives fill values in their place."""
    path = virtual(tmp_path / 'v.hdf5')
    if how == 'file':
        source.unlink()
    else:
        with h5py.File(source, 'w') as file:
            if how == 'rows':
                file['x'] = numpy.zeros((3, 2), 'i4')
    with h5py.File(path, 'r') as file:
        for read in choose_reader, lambda one: open_parts([one], 'x'):
            with pytest.raises(FileNotFoundError if how == 'file'
                               else ValueError, match='v.hdf5.*source.hdf5'):
                read(file['x'])


@pytest.mark.parametrize('key', [
    slice(0, 4), (slice(0, 4), slice(0, 1))], ids=['rows', 'columns'])
@pytest.mark.parametrize('names', [
    ['.'], ['a.hdf5'], ['b.hdf5', 'a.hdf5']], ids=str)
def test_virtual_sets_that_lead_in_a_circle_are_refused(
        tmp_path, names, key):
    """HDF5 follows them until the stack is full, which ends the process."""
    path = virtual(tmp_path / 'a.hdf5', names[0], key=key)
    if len(names) > 1:
        virtual(tmp_path / names[0], names[1], key=key)
    with h5py.File(path, 'r') as file:
        for read in choose_reader, lambda one: open_parts([one], 'x'):
            with pytest.raises(ValueError, match=r'a.*\.hdf5.*circle'):
                read(file['x'])
    with pytest.raises((ValueError, DamagedFileError), match='circle'):
        HDF5Dataset(path, ['x'])


def test_a_missing_data_set_is_an_error_where_hdf5_reads(tmp_path, source):
    """HDF5 gives fill values in its place."""
    path = virtual(tmp_path / 'v.hdf5', key=(slice(None), slice(0, 1)))
    with h5py.File(source, 'w') as file:
        file['y'] = 1
    with h5py.File(path, 'r') as file:
        for read in choose_reader, lambda one: open_parts([one], 'x'):
            with pytest.raises(ValueError, match='v.hdf5.*source.hdf5'):
                read(file['x'])


@pytest.mark.parametrize('kind', ['virtual', 'external', 'link'])
def test_what_a_source_leads_to_lies_in_the_folder_too(tmp_path, kind):
    """A file from elsewhere could name one through another."""
    folder = tmp_path / 'folder'
    folder.mkdir()
    secret = tmp_path / 'source.hdf5'
    with h5py.File(secret, 'w') as file:
        file['x'] = numpy.arange(8, dtype='i4').reshape(4, 2)
    inner = folder / 'inner.hdf5'
    if kind == 'virtual':
        virtual(inner, '../source.hdf5')
    else:
        with h5py.File(inner, 'w') as file:
            if kind == 'link':
                file['x'] = h5py.ExternalLink('../source.hdf5', 'x')
            else:
                file.create_dataset('x', (4, 2), 'i4', external=[
                    (str(secret), 0, 32)])
    path = virtual(folder / 'outer.hdf5', 'inner.hdf5')
    with pytest.raises((ValueError, DamagedFileError), match='outside'):
        HDF5Dataset(path, ['x'])
    if kind == 'virtual':
        dataset = HDF5Dataset(path, ['x'], follow='anywhere')
        assert [[0, 1]] == dataset.get_data(None, [0])[0].tolist()


def test_many_mappings_open_what_they_lead_to_once(tmp_path, source):
    """Opening all levels at once would take as many files as rows to the power
    of the levels."""
    count, levels = 60, 5
    with h5py.File(source, 'w') as file:
        file['x'] = numpy.arange(count)
    for level in range(levels):
        layout = h5py.VirtualLayout((count,), int)
        there = h5py.VirtualSource(
            f'{level - 1}.hdf5' if level else source.name, 'x', (count,))
        for row in range(count):
            layout[row:row + 1] = there[count - 1 - row:count - row]
        with h5py.File(tmp_path / f'{level}.hdf5', 'w') as file:
            file.create_virtual_dataset('x', layout)
    with h5py.File(tmp_path / f'{levels - 1}.hdf5', 'r') as file:
        reader = choose_reader(file['x'])
        assert isinstance(reader, DirectReader)
        assert len(reader.files) == 1
        assert [*range(count)][::-1] == reader.read(slice(None)).tolist()


def numbered(path, name):
    """Write a virtual data set of a file for each two of its six rows."""
    unlimited = h5py.h5s.UNLIMITED
    space = h5py.h5s.create_simple((6, 2), (unlimited, 2))
    space.select_hyperslab((0, 0), (unlimited, 1), (2, 1), (2, 2))
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_virtual(
        space, name, b'x', h5py.h5s.create_simple((2, 2)))
    with h5py.File(path, 'w', libver='latest') as file:
        h5py.h5d.create(
            file.id, b'x', h5py.h5t.NATIVE_INT32, h5py.h5s.create_simple(
                (6, 2), (unlimited, 2)), properties)


def test_numbered_sources_are_read(tmp_path):
    """HDF5 reads them, and looks for as many as there are."""
    for number in range(3):
        with h5py.File(tmp_path / f's{number}.hdf5', 'w') as file:
            file['x'] = numpy.full((2, 2), number, 'i4')
    numbered(tmp_path / 'v.hdf5', b's%b.hdf5')
    dataset = HDF5Dataset(tmp_path / 'v.hdf5', ['x'])
    assert [0, 0, 1, 1, 2, 2] == dataset.get_data(
        None, [*range(6)])[0][:, 0].tolist()
    dataset.close(None)
    del dataset
    virtual(tmp_path / 's2.hdf5', 'v.hdf5')
    with pytest.raises((ValueError, DamagedFileError), match='circle'):
        HDF5Dataset(tmp_path / 'v.hdf5', ['x'])


@pytest.mark.parametrize('how', ['removed', 'replaced'])
@pytest.mark.parametrize('is_read', [False, True])
def test_sources_that_change_are_errors_where_hdf5_reads(
        tmp_path, source, how, is_read):
    """HDF5 gives fill values, or rows of the new file."""
    path = virtual(tmp_path / 'v.hdf5', key=(slice(None), slice(0, 1)))
    with h5py.File(path, 'r') as file:
        readers = [choose_reader(file['x']), open_parts([file['x']], 'x')]
        assert [[2, 7]] == readers[0].read(slice(1, 2)).tolist()
        if is_read:
            readers[1].read(slice(1, 2))
        source.unlink()
        if how == 'replaced':
            with h5py.File(source, 'w') as other:
                other['x'] = numpy.ones((4, 2), 'i4')
        for reader in readers[:1 + is_read]:
            with pytest.raises(DamagedFileError, match='source.hdf5 was'):
                reader.read(slice(0, 4))
