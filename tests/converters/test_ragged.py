"""Examples of a shape each, as converters write them."""
import h5py
import numpy
import pytest

from fuel.converters.images import create_ragged, write_ragged
from fuel.converters.output import write_arrays
from fuel.datasets import H5PYDataset


@pytest.mark.parametrize('shapes', [
    [(2, 3), (2, 3), (2, 3)], [(2, 3)], [(2, 3), (3, 2)], [(0, 4)],
    [(1, 1), (1, 1)], [(2, 3), (4, 5)]])
@pytest.mark.parametrize('start', [0, 3])
def test_ragged_batch_of_equal_lengths_is_written(tmp_path, shapes,
                                                      start):
    """A last batch of equal lengths, or of one element, is read back."""
    path = tmp_path / 'a.hdf5'
    images = [numpy.arange(a * b, dtype='uint8').reshape(a, b)
              for a, b in shapes]
    stop = start + len(images)
    with h5py.File(path, 'w') as h5file:
        source = create_ragged(h5file, 'images', stop, 'uint8',
                               ('height', 'width'), 'shapes', 'labels',
                               'int32')
        write_ragged(source, start, images)
        h5file.attrs['split'] = H5PYDataset.create_split_array(
            {'all': {'images': (start, stop)}})
    with H5PYDataset(path, ('all',)) as data_set:
        found, = data_set.get_data(request=slice(0, len(images)))
    assert shapes == [image.shape for image in found]
    for expected, image in zip(images, found, strict=True):
        assert (expected == image).all()


def test_ragged_rows_of_equal_lengths_are_written_anywhere(tmp_path):
    """Rows are given one by one."""
    with h5py.File(tmp_path / 'a.hdf5', 'w') as h5file:
        source = h5file.create_dataset('x', (4,), h5py.vlen_dtype('int32'))
        write_arrays(source, numpy.array([3, 0]), [numpy.array([1, 2]),
                                                   numpy.array([3, 4])])
        write_arrays(source, numpy.array([2]), [numpy.array([5])])
        assert [[3, 4], [], [5], [1, 2]] == [
            row.tolist() for row in source[...]]
