"""Data sets of Fuel under the samplers of PyTorch."""
import pickle

import h5py
import numpy
import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    RandomSampler,
    Subset,
    WeightedRandomSampler,
    random_split,
)

from fuel.datasets import H5PYDataset, IndexableDataset, IterableDataset
from fuel.interop.torch import MapStyleDataset, as_map

NUMBERS = numpy.arange(20)
ROWS = numpy.arange(60.0, dtype='float32').reshape(20, 3)


@pytest.fixture
def in_file(tmp_path):
    """Return a data set in an HDF5 file."""
    path = tmp_path / 'rows.hdf5'
    with h5py.File(path, 'w') as file:
        file['rows'], file['numbers'] = ROWS, NUMBERS
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'rows': (0, 20), 'numbers': (0, 20)}})
    return H5PYDataset(path, ('train',), sources=('rows', 'numbers'))


def in_memory():
    """Return a data set in memory."""
    return IndexableDataset({'rows': ROWS, 'numbers': NUMBERS})


def test_index_gives_an_example():
    """Negative indices count from the end, as in any sequence."""
    examples = as_map(in_memory())
    assert 20 == len(examples)
    for index in (0, 7, 19, -1, -20):
        row, number = examples[index]
        assert numpy.array_equal(ROWS[index], row)
        assert NUMBERS[index] == number


@pytest.mark.parametrize('indices', [
    [4, 2, -1], numpy.array([4, 2, -1]), torch.tensor([4, 2, -1]),
    slice(2, 9, 3)])
def test_several_indices_give_a_batch(indices):
    """Indices may be lists, arrays, tensors and slices."""
    rows, numbers = as_map(in_memory())[indices]
    assert numpy.array_equal(ROWS[indices], rows)
    assert numpy.array_equal(NUMBERS[indices], numbers)


@pytest.mark.parametrize('index', [20, -21, [3, 20]])
def test_index_out_of_range_is_refused(index):
    """The error is that which ends sequences."""
    with pytest.raises(IndexError, match=r'IndexableDataset has 20'):
        as_map(in_memory())[index]
    assert 20 == len(list(as_map(in_memory())))


def test_dataset_without_a_length_is_refused():
    """The text says which bridge takes it."""
    with pytest.raises(TypeError, match=r'use as_iterable\(\)'):
        as_map(IterableDataset(iter([1, 2])))


@pytest.mark.parametrize('num_workers', [0, 2])
@pytest.mark.parametrize('build', ['in_file', 'in_memory'])
def test_loader_with_a_sampler_gives_every_example_once(
        build, num_workers, request):
    """Data are in a file and in memory, read here and in workers."""
    dataset = (in_memory() if build == 'in_memory'
               else request.getfixturevalue(build))
    examples = as_map(dataset)
    # Opened before the fork too.
    examples[0]
    generator = torch.Generator().manual_seed(3)
    loader = DataLoader(examples, batch_size=8, shuffle=True,
                        generator=generator, num_workers=num_workers)
    for _ in range(2):
        batches = list(loader)
        assert [8, 8, 4] == [len(numbers) for _, numbers in batches]
        numbers = torch.cat([numbers for _, numbers in batches])
        assert NUMBERS.tolist() == sorted(numbers.tolist())
        assert NUMBERS.tolist() != numbers.tolist()
        rows = torch.cat([rows for rows, _ in batches])
        assert torch.equal(rows, torch.from_numpy(ROWS)[numbers])
    examples.close()


def test_batch_of_a_loader_is_read_in_one_request():
    """The loader may collate, or the sampler may yield lists."""
    requests = []

    class Recording(IndexableDataset):
        def get_data(self, state=None, request=None):
            requests.append(request)
            return super().get_data(state, request)
    examples = as_map(Recording({'rows': ROWS, 'numbers': NUMBERS}))
    collated = list(DataLoader(examples, batch_size=8))
    assert [list(range(8)), list(range(8, 16)), list(range(16, 20))] \
        == requests
    whole = list(DataLoader(examples, batch_size=None, sampler=BatchSampler(
        range(20), 8, drop_last=False)))
    assert requests[:3] == requests[3:]
    for one, other in zip(collated, whole, strict=True):
        assert torch.equal(one[0], other[0])
        assert torch.equal(one[1], other[1])


def test_examples_as_dicts_are_collated_by_name():
    """A batch is then a dict of tensors."""
    examples = as_map(in_memory(), as_dict=True)
    assert ['rows', 'numbers'] == list(examples[0])
    batch, *_ = DataLoader(examples, batch_size=4)
    assert torch.equal(torch.arange(4), batch['numbers'])


def test_torch_utilities_take_it():
    """Splits, subsets and weighted samplers take it."""
    examples = as_map(in_memory())
    first, second = random_split(
        examples, [15, 5], generator=torch.Generator().manual_seed(0))
    seen = [int(number) for part in (first, second) for _, number in part]
    assert list(range(20)) == sorted(seen)
    loader = DataLoader(Subset(examples, [5, 6]), batch_size=2)
    assert [[5, 6]] == [numbers.tolist() for _, numbers in loader]
    weights = torch.zeros(20)
    weights[3] = 1
    loader = DataLoader(examples, batch_size=5, sampler=WeightedRandomSampler(
        weights, 5))
    assert [[3] * 5] == [numbers.tolist() for _, numbers in loader]
    assert [] == examples.__getitems__([])


def test_pickle_opens_its_file_again(in_file):
    """The pickle holds the path, not the handle."""
    examples = as_map(in_file)
    examples[0]
    copy = pickle.loads(pickle.dumps(examples))
    assert numpy.array_equal(ROWS[11], copy[11][0])
    assert "as_map(H5PYDataset of 20 examples, sources=('rows', 'numbers'))" \
        == repr(copy)


def test_random_sampler_over_batches_repeats_with_its_generator():
    """The order is the sampler's, and nothing of Fuel draws."""
    examples = as_map(in_memory())

    def draw():
        generator = torch.Generator().manual_seed(5)
        sampler = BatchSampler(
            RandomSampler(examples, generator=generator), 6, drop_last=True)
        return [numbers.tolist() for _, numbers in DataLoader(
            examples, sampler=sampler, batch_size=None)]
    assert draw() == draw()
    assert [6, 6, 6] == list(map(len, draw()))


def test_example_that_a_subclass_changes_is_in_batches():
    """`DataLoader` asks for several at once."""
    class Doubled(MapStyleDataset):
        """Augments an example, as users do."""

        def __getitem__(self, index):
            rows, number = super().__getitem__(index)
            return rows, number * 2

    (_, numbers), *_ = DataLoader(Doubled(in_memory()), batch_size=3)
    assert [0, 2, 4] == numbers.tolist()
