"""Files that the program has open with swmr=True, as robomimic does."""
import contextlib
import warnings

import h5py
import numpy
import pytest
from numpy.testing import assert_array_equal
from support.hdf5_files import split_array
from support.swmr_writer import WIDTH, Writer

from fuel.datasets import H5PYDataset, HDF5Dataset
from fuel.exceptions import DamagedFileError
from fuel.schemes import ShuffledScheme
from fuel.storage import describe
from fuel.streams import DataStream

NAMES = ['plain', 'gzip']


def write_rows(path, **options):
    """Write a file of rows that hold their numbers; return them."""
    rows = numpy.arange(100)[:, None].repeat(5, axis=1)
    with h5py.File(path, 'w', **options) as file:
        file.create_dataset('plain', data=rows, chunks=(10, 5))
        file.create_dataset(
            'gzip', data=rows, chunks=(10, 5), compression='gzip')
        file.attrs['split'] = split_array([
            ('train', name, 0, 100, None, True) for name in NAMES])
    return rows


def read_epoch(dataset):
    """Read all rows in random order; return them in their own.

    Raises: AssertionError if a row is torn, or is not in its place.
    """
    batches = [numpy.stack(batch) for batch in DataStream(
        dataset, iteration_scheme=ShuffledScheme(
            dataset.num_examples, 30)).get_epoch_iterator()]
    rows = numpy.concatenate(batches, axis=1)
    assert (rows == rows[:, :, :1]).all()
    assert_array_equal(rows[0], rows[1])
    assert_array_equal(numpy.arange(dataset.num_examples),
                       numpy.sort(rows[0, :, 0]))


@pytest.mark.parametrize('options', [
    {}, {'libver': 'v108'}, {'libver': 'latest'},
    {'libver': 'latest', 'userblock_size': 512}],
    ids=['version 0', 'version 2', 'version 3', 'user block'])
def test_file_that_is_held_with_swmr_is_read_directly(tmp_path, options):
    """Files have each version of the superblock, no writer, and raise no
    warning."""
    path = str(tmp_path / 'a.hdf5')
    rows = write_rows(path, **options)
    with h5py.File(path, 'r', swmr=True) as held, h5py.File(path) as shared:
        for file in held, shared:
            assert ['mapped', 'decoded'] == [
                describe(file[name]).reader for name in NAMES]
        for dataset in (H5PYDataset(path, ('train',)),
                        H5PYDataset(held, ('train',))):
            read_epoch(dataset)
            assert_array_equal(rows[[7, 3, 7]], dataset.get_data(
                None, [7, 3, 7])[0])


def test_dataset_over_a_file_held_with_swmr_notices_a_change(tmp_path):
    """Old and new rows are not mixed, as over any other file."""
    path = str(tmp_path / 'a.hdf5')
    write_rows(path, libver='latest')
    with h5py.File(path, 'r', swmr=True):
        dataset = H5PYDataset(path, ('train',))
        read_epoch(dataset)
        epoch = DataStream(dataset, iteration_scheme=ShuffledScheme(
            100, 10)).get_epoch_iterator()
        next(epoch)
        # To open it for writing changes the flags in it.
        with Writer(path, 'a'):
            with pytest.raises(DamagedFileError, match='was written to'):
                list(epoch)


def test_file_that_is_written_with_swmr_warns_once_of_the_slow_way(tmp_path):
    """The warning names the handle and the cost; nobody is warned again."""
    path = str(tmp_path / 'a.h5')
    with Writer(path) as writer:
        writer.write(40)
        with h5py.File(path, 'r', swmr=True) as held:
            assert 'h5py' == describe(held['plain']).reader
            with pytest.warns(UserWarning, match='a hundred times') as caught:
                read_epoch(HDF5Dataset(path, NAMES))
            assert f'h5py.File({path!r}, swmr=True)' in str(caught[0].message)
            assert 1 == len(caught)
            assert __file__ == caught[0].filename
            with warnings.catch_warnings():
                warnings.simplefilter('error')
                read_epoch(HDF5Dataset(path, NAMES))


def test_no_row_is_torn_while_a_process_writes_with_swmr(tmp_path):
    """A data set stays open, or is made while rows are appended; at the end
    the file is read directly."""
    path = str(tmp_path / 'a.h5')
    with Writer(path) as writer:
        writer.write(40)
        with h5py.File(path, 'r', swmr=True):
            with pytest.warns(UserWarning, match='a hundred times'):
                first = HDF5Dataset(path, NAMES)
            writer.start()
            for _ in range(5):
                read_epoch(first)
            del first
        counts = [_read_anew(path) for _ in range(10)]
        assert sorted(counts) == counts
        writer.wait()
        writer.close()
        with h5py.File(path, 'r', swmr=True) as held:
            assert ['mapped', 'decoded'] == [
                describe(held[name]).reader for name in NAMES]
            last = HDF5Dataset(path, NAMES)
            assert 160 == last.num_examples
            read_epoch(last)


def _read_anew(path):
    """Check each row of a file that is being written, opened anew; return
    how many there are."""
    with h5py.File(path, 'r', swmr=True):
        # For a moment, one of the arrays is longer than the other.
        datasets = [HDF5Dataset(path, [name]) for name in NAMES]
        for dataset in datasets:
            count = dataset.num_examples
            rows, = dataset.get_data(None, slice(0, count))
            assert_array_equal(
                numpy.arange(count)[:, None].repeat(WIDTH, 1), rows)
        return count


def test_rows_are_right_or_an_error_when_a_process_begins_to_write(tmp_path):
    """A data set that reads directly notices a writer with SWMR, and reads
    by h5py from its next epoch on."""
    path = str(tmp_path / 'a.h5')
    with Writer(path) as writer:
        writer.write(40)
    with h5py.File(path, 'r', swmr=True):
        dataset = HDF5Dataset(path, NAMES)
        read_epoch(dataset)
        with Writer(path, 'a') as writer:
            writer.start()
            with pytest.warns(UserWarning, match='a hundred times'):
                _read_or_be_refused(dataset, 5)
            writer.wait()
            read_epoch(dataset)
            assert 40 == dataset.num_examples


def _read_or_be_refused(dataset, epochs):
    """Read epochs; some may end in the error that the file was changed."""
    for _ in range(epochs):
        with contextlib.suppress(DamagedFileError):
            read_epoch(dataset)
