"""HDF5 files that are overwritten or replaced while data sets read them."""
import os
import shutil

import h5py
import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.hdf5_files import split_array

from fuel.datasets import CSVDataset, NPYDataset
from fuel.datasets.hdf5 import H5PYDataset
from fuel.exceptions import (
    DamagedFileError, FuelError, StateMismatchError)
from fuel.schemes import SequentialScheme
from fuel.streams import DataStream

# Ways to store a source, with a reader each.
STORED = {
    'contiguous': {},
    'chunked': {'chunks': (4, 3)},
    'gzip': {'chunks': (4, 3), 'compression': 'gzip'},
    'scaled': {'chunks': (4, 3), 'scaleoffset': 0},
}


def write(path, num_rows, value, stored):
    """Write a file of rows that all hold one value."""
    with h5py.File(path, 'w') as file:
        file.create_dataset(
            'x', data=numpy.full((num_rows, 3), value), **STORED[stored])
        file.attrs['split'] = split_array(
            [('train', 'x', 0, num_rows, None, True)])


def overwrite(path, num_rows, value, stored):
    """Write another file over one that stays the same inode, as cp does."""
    write(f'{path}.new', num_rows, value, stored)
    before = os.stat(path)
    shutil.copyfile(f'{path}.new', path)
    after = os.stat(path)
    if after.st_mtime_ns == before.st_mtime_ns:
        # Clocks of some file systems are coarse.
        os.utime(path, ns=(after.st_atime_ns, after.st_mtime_ns + 1))


@pytest.mark.parametrize('driver', [None, 'core', 'stdio'])
@pytest.mark.parametrize('num_rows', [60, 100, 140])
@pytest.mark.parametrize('stored', STORED)
def test_newly_opened_data_set_reads_an_overwritten_file_anew(
        tmp_path, stored, num_rows, driver):
    """While an older data set lives, the new one has the new rows."""
    path = tmp_path / 'x.hdf5'
    write(path, 100, 1, stored)
    older = H5PYDataset(path, ('train',), driver=driver)
    older.get_data(request=[0, 99])
    overwrite(path, num_rows, 2, stored)
    newer = H5PYDataset(path, ('train',), driver=driver)
    assert num_rows == newer.num_examples
    assert (newer.get_data(request=slice(0, num_rows))[0] == 2).all()
    with pytest.raises(DamagedFileError, match='x.hdf5'):
        older.get_data(request=[50])


@pytest.mark.parametrize('stored', STORED)
def test_file_overwritten_between_two_reads_of_other_chunks_raises(
        tmp_path, stored):
    """Rows read before the change do not make the rest look valid."""
    path = tmp_path / 'x.hdf5'
    write(path, 100, 1, stored)
    dataset = H5PYDataset(path, ('train',))
    dataset.get_data(request=[0])
    overwrite(path, 100, 2, stored)
    with pytest.raises(DamagedFileError, match='x.hdf5'):
        dataset.get_data(request=[90])


@pytest.mark.parametrize('stored', STORED)
def test_file_overwritten_before_its_first_read_raises(tmp_path, stored):
    """The tables of a source that was open belong to the old file."""
    path = tmp_path / 'x.hdf5'
    write(path, 100, 1, stored)
    dataset = H5PYDataset(path, ('train',))
    dataset.open()
    overwrite(path, 100, 2, stored)
    with pytest.raises(DamagedFileError, match='x.hdf5'):
        dataset.get_data(request=[90])


@pytest.mark.parametrize('stored', STORED)
def test_file_overwritten_after_all_of_it_was_read_raises(tmp_path, stored):
    """Nothing is left to read in it, and yet it is another file; the next
    epoch reads that one."""
    path = tmp_path / 'x.hdf5'
    write(path, 100, 1, stored)
    dataset = H5PYDataset(path, ('train',))
    stream = DataStream(dataset, iteration_scheme=SequentialScheme(100, 10))
    for _ in range(2):
        assert all((x == 1).all() for x, in stream.get_epoch_iterator())
    batches = stream.get_epoch_iterator()
    next(batches)
    overwrite(path, 100, 2, stored)
    with pytest.raises(DamagedFileError, match='x.hdf5'):
        next(batches)
    with pytest.raises(DamagedFileError, match='x.hdf5'):
        dataset.get_data(None, [0])
    rows = [x for x, in stream.get_epoch_iterator()]
    assert 10 == len(rows)
    assert all((x == 2).all() for x in rows)


@pytest.mark.parametrize('stored', STORED)
def test_epoch_after_a_file_was_replaced_reads_the_new_one(tmp_path, stored):
    """The epoch before it goes on in the old one."""
    path = tmp_path / 'x.hdf5'
    write(path, 100, 1, stored)
    stream = DataStream(H5PYDataset(path, ('train',)),
                        iteration_scheme=SequentialScheme(100, 10))
    batches = stream.get_epoch_iterator()
    next(batches)
    write(f'{path}.new', 100, 2, stored)
    os.replace(f'{path}.new', path)
    assert all((x == 1).all() for x, in batches)
    assert all((x == 2).all() for x, in stream.get_epoch_iterator())
    write(f'{path}.new', 90, 3, stored)
    os.replace(f'{path}.new', path)
    for _ in range(2):
        with pytest.raises(StateMismatchError, match='had 100 examples'):
            next(stream.get_epoch_iterator())


def test_what_was_decoded_in_a_changed_file_is_not_kept(tmp_path):
    """A file that is put back, with its time, is what it was; bytes that
    were read in between were another file's."""
    path = tmp_path / 'x.hdf5'
    write(path, 100, 1, 'gzip')
    content, before = path.read_bytes(), os.stat(path)
    dataset = H5PYDataset(path, ('train',))
    dataset.get_data(None, [0])
    overwrite(path, 100, 2, 'gzip')
    with pytest.raises(DamagedFileError, match='x.hdf5'):
        dataset.get_data(None, [99])
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert 1 == dataset.get_data(None, [99])[0][0, 0]


def test_closed_data_set_finds_the_rows_of_a_changed_file_again(tmp_path):
    """Opened again, it reads the new file, or says that it has other
    examples."""
    path = tmp_path / 'x.hdf5'
    write(path, 100, 1, 'gzip')
    dataset = H5PYDataset(path, ('train',))
    dataset.get_data(request=[0])
    dataset.close(None)
    overwrite(path, 100, 2, 'gzip')
    assert 2 == dataset.get_data(request=[99])[0][0, 0]
    dataset.close(None)
    overwrite(path, 120, 3, 'gzip')
    with pytest.raises(FuelError, match='had 100 examples'):
        dataset.get_data(request=[0])


def test_handle_of_the_users_on_an_overwritten_file_is_named(tmp_path):
    """HDF5 shares what it knows of a file between handles, and the user's
    is not closed: that is an error."""
    path = tmp_path / 'x.hdf5'
    write(path, 100, 1, 'gzip')
    with h5py.File(path, 'r') as handle:
        older = H5PYDataset(handle, ('train',))
        older.get_data(request=[0])
        overwrite(path, 60, 2, 'gzip')
        with pytest.raises(OSError, match=r'x\.hdf5.*close'):
            H5PYDataset(path, ('train',))
    newer = H5PYDataset(path, ('train',))
    assert 60 == newer.num_examples
    with h5py.File(path, 'r') as handle:
        overwrite(path, 4000, 3, 'gzip')
        with pytest.raises(OSError, match=r'x\.hdf5.*close'):
            H5PYDataset(path, ('train',))


ACTIONS = st.lists(st.tuples(
    st.sampled_from(['open', 'read', 'overwrite', 'replace', 'close',
                     'forget']),
    st.integers(0, 5), st.sampled_from([20, 32])), max_size=12)


@given(actions=ACTIONS, stored=st.sampled_from(sorted(STORED)))
@settings(max_examples=40, deadline=None)
def test_data_sets_of_a_changing_file_never_mix_its_contents(
        tmp_path_factory, actions, stored):
    """A new data set has the present rows; an older one those it opened,
    or an error."""
    path = tmp_path_factory.mktemp('changing') / 'x.hdf5'
    version, num_rows = 1, 20
    write(path, num_rows, version, stored)
    living = []
    for action, number, other_rows in [('open', 0, 20), *actions]:
        if action == 'open':
            dataset = H5PYDataset(path, ('train',))
            assert num_rows == dataset.num_examples
            rows, = dataset.get_data(request=slice(0, num_rows))
            assert (rows == version).all()
            living.append((dataset, version))
        elif action in ('overwrite', 'replace'):
            version, num_rows = version + 1, other_rows
            if action == 'overwrite':
                overwrite(path, num_rows, version, stored)
            else:
                write(f'{path}.new', num_rows, version, stored)
                os.replace(f'{path}.new', path)
        elif living:
            place = number % len(living)
            dataset, opened = living[place]
            if action == 'forget':
                del living[place]
            elif action == 'close':
                dataset.close(None)
                living[place] = dataset, None
            else:
                try:
                    rows, = dataset.get_data(request=[0, 19, 7])
                except FuelError:
                    continue
                if opened is None:
                    # Opened again by this read.
                    opened = version
                    living[place] = dataset, version
                assert (rows == opened).all()


@pytest.mark.parametrize('kind', ['npy', 'npz', 'csv'])
def test_overwritten_file_of_another_kind_is_read_anew(tmp_path, kind):
    """NumPy's files and CSV files know their state too."""
    path = tmp_path / f'x.{kind}'
    make = CSVDataset if kind == 'csv' else NPYDataset
    with open(path, 'wb') as file:
        content(file, kind, 100, 1)
    older = make(path)
    assert 1 == older.get_data(request=[3])[0][0]
    with open(path, 'wb') as file:
        content(file, kind, 60, 2)
    newer = make(path)
    assert 60 == newer.num_examples
    assert (newer.get_data(request=slice(0, 60))[0] == 2).all()
    with pytest.raises(DamagedFileError, match='x'):
        older.get_data(request=[0])


def content(file, kind, num_rows, value):
    """Write rows of one value into an open file."""
    rows = numpy.full(num_rows, value)
    if kind == 'npy':
        numpy.save(file, rows)
    elif kind == 'npz':
        numpy.savez(file, data=rows)
    else:
        file.write(b'a\n' + f'{value}\n'.encode() * num_rows)


def test_epoch_over_an_overwritten_file_ends_in_an_error(tmp_path):
    """Batches in the middle of an epoch are not of another file."""
    path = tmp_path / 'x.hdf5'
    write(path, 100, 1, 'contiguous')
    dataset = H5PYDataset(path, ('train',))
    batches = DataStream(
        dataset, iteration_scheme=SequentialScheme(100, 10)
    ).get_epoch_iterator()
    for _ in range(4):
        assert (next(batches)[0] == 1).all()
    overwrite(path, 100, 2, 'contiguous')
    H5PYDataset(path, ('train',)).get_data(request=[0])
    with pytest.raises(DamagedFileError, match='x.hdf5'):
        next(batches)
