"""Sparse batches as sparse tensors."""
import numpy
import pytest
import torch
from hypothesis import given
from scipy.sparse import csr_array
from support.sparse_rows import SparseDataset, random_csr, sparse_batches
from torch.utils.data import BatchSampler, DataLoader, SequentialSampler

from fuel.interop.torch import as_iterable, as_map, to_torch
from fuel.interop.torch.stage import DeviceCopier
from fuel.interop.torch.tensors import as_tensor
from fuel.schemes import SequentialExampleScheme, SequentialScheme
from fuel.streams import DataStream
from fuel.transformers import MultiProcessing
from fuel.utils.sparse import to_dense

# PyTorch cannot make these dense.
NOT_DENSE = (numpy.dtype('uint16'),)


def batches(rows, size=4):
    """Return a stream of sparse batches."""
    return DataStream(SparseDataset(rows), iteration_scheme=SequentialScheme(
        rows.shape[0], size))


def assert_same(rows, tensor):
    """Compare a sparse tensor with sparse rows."""
    assert tensor.layout is torch.sparse_csr
    assert tuple(rows.shape) == tuple(tensor.shape)
    if rows.data.dtype not in NOT_DENSE:
        assert numpy.array_equal(to_dense(rows), tensor.to_dense().numpy())
    torch._validate_sparse_csr_tensor_args(
        tensor.crow_indices(), tensor.col_indices(), tensor.values(),
        tensor.shape)


@given(sparse_batches())
def test_tensors_have_the_types_of_the_arrays(rows):
    """Values and indices keep their types."""
    tensor = as_tensor(rows, 'x')
    assert_same(rows, tensor)
    assert rows.data.dtype == tensor.values().numpy().dtype
    assert rows.indices.dtype == tensor.col_indices().numpy().dtype
    assert rows.indptr.dtype == tensor.crow_indices().numpy().dtype


def test_tensors_are_over_the_memory_of_the_arrays():
    """Nothing is copied."""
    rows = random_csr(4, 5)
    tensor = as_tensor(rows, 'x')
    for array, part in ((rows.data, tensor.values()),
                        (rows.indices, tensor.col_indices()),
                        (rows.indptr, tensor.crow_indices())):
        assert array.ctypes.data == part.data_ptr()


@pytest.mark.parametrize('dtype', ['float16', 'float32', 'int64'])
def test_rows_are_sorted_and_added(dtype):
    """PyTorch expects this; the batch itself is unchanged."""
    rows = csr_array((numpy.array([1, 2, 4, 8], dtype), [3, 1, 1, 0],
                      [0, 3, 4]), (2, 4))
    before = rows.indices.copy()
    tensor = as_tensor(rows, 'x')
    assert [1, 3, 0] == tensor.col_indices().tolist()
    assert [6, 1, 8] == tensor.values().tolist()
    assert dtype == str(tensor.dtype).removeprefix('torch.')
    assert numpy.array_equal(before, rows.indices)


@pytest.mark.parametrize('options', [
    {}, {'dtype': 'bfloat16'}, {'device': 'cpu'}])
def test_stage_gives_sparse_tensors_that_models_take(options):
    """Sparse data go to tensors and back, beside dense sources."""
    rows = random_csr(10, 5)
    model = torch.nn.Linear(5, 2)
    found = list(to_torch(batches(rows), **options).get_epoch_iterator())
    assert [4, 4, 2] == [len(y) for _, y in found]
    for place, (x, _) in enumerate(found):
        dense = rows.toarray()[4 * place:4 * place + 4]
        assert numpy.array_equal(dense, x.to_dense().float().numpy())
        if x.dtype is torch.float32:
            out = model(x)
            assert torch.allclose(model(torch.from_numpy(dense)), out)
            out.sum().backward()


def test_examples_are_sparse_tensors_of_one_row():
    """Their shape is (1, columns)."""
    rows = random_csr(6, 5)
    stream = to_torch(DataStream(
        SparseDataset(rows), iteration_scheme=SequentialExampleScheme(6)))
    for place, (x, y) in enumerate(stream.get_epoch_iterator()):
        assert (1, 5) == tuple(x.shape)
        assert numpy.array_equal(rows.toarray()[place], x.to_dense()[0])
        assert place == y


def test_sources_that_are_not_chosen_stay_as_they_are():
    """A sparse batch is one of SciPy then."""
    x, y = next(to_torch(
        batches(random_csr(4, 5)), which_sources=('y',)).get_epoch_iterator())
    assert isinstance(x, csr_array)
    assert isinstance(y, torch.Tensor)


@pytest.mark.parametrize('num_workers', [0, 1, 2])
@pytest.mark.parametrize('columns', [5, 3000])
def test_loaders_hand_over_sparse_tensors(num_workers, columns):
    """The workers of a loader hand them over too."""
    rows = random_csr(32, columns)
    loader = DataLoader(as_iterable(batches(rows, 8)), batch_size=None,
                        num_workers=num_workers)
    found = list(loader)
    assert 4 == len(found)
    for place, (x, y) in enumerate(found):
        assert torch.sparse_csr == x.layout
        assert numpy.array_equal(
            rows.toarray()[8 * place:8 * place + 8], x.to_dense().numpy())
        assert list(range(8 * place, 8 * place + 8)) == y.tolist()


def test_workers_of_fuel_are_read_as_well():
    """The batches are in memory that the workers share."""
    rows = random_csr(32, 3000)
    with MultiProcessing(batches(rows, 8)) as stream:
        for place, (x, _) in enumerate(to_torch(stream).get_epoch_iterator()):
            assert numpy.array_equal(
                rows.toarray()[8 * place:8 * place + 8],
                x.to_dense().numpy())


@pytest.mark.parametrize('num_workers', [0, 1])
def test_samplers_choose_batches(num_workers):
    """Batches of a map-style data set are tensors too."""
    rows = random_csr(10, 5)
    examples = as_map(SparseDataset(rows))
    sampler = BatchSampler(SequentialSampler(range(10)), 4, drop_last=False)
    found = list(DataLoader(examples, sampler=sampler, batch_size=None,
                            num_workers=num_workers))
    assert numpy.array_equal(rows.toarray(), numpy.concatenate(
        [x.to_dense().numpy() for x, _ in found]))
    assert (1, 5) == tuple(examples[3][0].shape)
    assert [(1, 5)] * 2 == [
        tuple(x.shape) for x, _ in examples.__getitems__([2, 1])]
    with pytest.raises(RuntimeError, match='custom collate_fn'):
        next(iter(DataLoader(examples, batch_size=2)))


def test_copies_to_a_device_are_of_all_parts():
    """The device has no streams of its own."""
    copier = DeviceCopier(torch.device('cpu'), False)
    tensor = as_tensor(random_csr(4, 5), 'x')
    copy, = copier.finish(copier.start((tensor,)))
    assert torch.equal(tensor.to_dense(), copy.to_dense())
