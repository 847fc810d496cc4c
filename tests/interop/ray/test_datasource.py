"""Data sets of Fuel as data sets of Ray Data."""
import h5py
import numpy
import pytest
from support.sparse_rows import SparseDataset, random_csr

from fuel.datasets import H5PYDataset
from fuel.interop.ray import to_ray


@pytest.fixture
def chunked(tmp_path):
    """Return the second of two splits, whose chunks have eight rows."""
    path = tmp_path / 'data.hdf5'
    with h5py.File(path, 'w') as file:
        rows = numpy.arange(300, dtype='f4').reshape(100, 3)
        file.create_dataset('rows', data=rows, chunks=(8, 3),
                            compression='gzip')
        file['numbers'] = numpy.arange(100)
        file.attrs['split'] = H5PYDataset.create_split_array({
            'train': {'rows': (0, 60), 'numbers': (0, 60)},
            'test': {'rows': (60, 100), 'numbers': (60, 100)}})
    return H5PYDataset(path, ('test',))


@pytest.mark.timeout(300)
def test_split_is_read_in_tasks_that_end_with_chunks(chunked):
    """Tasks are in order, with schema and sizes; no chunk is read twice."""
    dataset = to_ray(chunked, rows_per_task=10)
    assert ['numbers', 'rows'] == sorted(dataset.schema().names)
    assert 40 == dataset.count()
    rows = dataset.take_all()
    assert list(range(60, 100)) == [row['numbers'] for row in rows]
    for row in rows:
        assert (row['rows'] == numpy.arange(3) + 3 * row['numbers']).all()
    from fuel.interop.ray.datasource import _Source
    tasks = _Source(chunked, 10).get_read_tasks(4)
    # The split begins in the middle of a chunk.
    assert [12, 16, 12] == [task.metadata.num_rows for task in tasks]
    assert all(task.metadata.size_bytes > 0 for task in tasks)
    with pytest.raises(ValueError, match='rows_per_task'):
        to_ray(chunked, rows_per_task=0)


def test_sparse_examples_are_made_dense_before():
    """Blocks of Ray Data are tables of arrays."""
    with pytest.raises(TypeError, match=r'ToDense\(.*\.as_dataset\(\)'):
        to_ray(SparseDataset(random_csr(6, 5)))
