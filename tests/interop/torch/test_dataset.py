"""Map-style data sets of PyTorch as data sets of Fuel."""
import pickle

import numpy
import pytest
import torch
from PIL import Image
from support.torch_pipelines import (
    LABELS,
    ROWS,
    Dicts,
    Pairs,
    in_memory,
    of_dicts,
    of_pairs,
)
from torch.utils.data import (
    ConcatDataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
)

from fuel.interop.torch import TorchDataset, as_map
from fuel.schemes import SequentialScheme, ShuffledScheme
from fuel.streams import DataStream
from fuel.testing import check_dataset
from fuel.transformers import Cast, ScaleAndShift


class Pictures(Pairs):
    """Pictures of Pillow, as torchvision gives them."""

    def __getitem__(self, index):
        pixels = numpy.full((2, 3, 3), index, 'uint8')
        return Image.fromarray(pixels), index


class Batched(Pairs):
    """Pairs that are fetched in batches."""

    fetched = ()

    def __getitems__(self, indices):
        self.fetched = [*self.fetched, len(indices)]
        return [(ROWS[index], LABELS[index]) for index in indices]


@pytest.mark.parametrize('build', [in_memory, of_pairs, of_dicts])
def test_dataset_keeps_the_promises(build, another_process):
    """The promises are about requests, states, copies and other processes."""
    check_dataset(build, another_process=another_process)


@pytest.mark.parametrize('dataset', [
    TensorDataset(ROWS, LABELS), Pairs(), Batched(),
    Subset(Pairs(), range(12)), StackDataset(ROWS, LABELS),
    ConcatDataset([Subset(Pairs(), range(5)), Subset(Pairs(), range(5, 12))]),
    TensorDataset(ROWS.to(torch.bfloat16), LABELS)],
    ids=lambda dataset: type(dataset).__name__)
def test_every_map_style_dataset_is_read_alike(dataset):
    """Requests may be an example, a list, an array or a slice."""
    read = TorchDataset(dataset)
    assert 12 == read.num_examples
    assert ('features', 'targets') == read.sources
    for request in ([4, 0, 11], numpy.array([4, 0, 11]), slice(3, 6), 7):
        rows, labels = read.get_data(None, request)
        assert numpy.array_equal(ROWS[request], rows)
        assert numpy.array_equal(LABELS[request], labels)
        assert 'float32' == rows.dtype
        assert 'int64' == labels.dtype


def test_batch_is_fetched_at_once_where_that_is_possible():
    """``__getitems__`` fetches a batch, ``__getitem__`` an example."""
    pairs = Batched()
    dataset = TorchDataset(pairs)
    dataset.get_data(None, [3, 1])
    dataset.get_data(None, slice(0, 5))
    dataset.get_data(None, 2)
    assert [2, 5] == pairs.fetched


def test_compiled_reader_sees_tensors_as_they_are():
    """A `TensorDataset` is read as data in memory, without a copy of it."""
    rows = ROWS.clone()
    dataset = TorchDataset(TensorDataset(rows, LABELS))
    stream = DataStream(dataset, iteration_scheme=SequentialScheme(12, 4))
    epoch = stream.get_epoch_iterator()
    next(epoch)
    rows[4] = 77
    batch, _ = next(epoch)
    assert numpy.array_equal(numpy.full(3, 77), batch[0])
    batch[:] = 0
    assert 77 == rows[4, 0]


def test_stages_and_shuffles_work_on_it():
    """A data set of PyTorch is one like any other."""
    stream = DataStream(of_pairs(), iteration_scheme=ShuffledScheme(12, 5))
    stream = Cast(ScaleAndShift(stream, 2, 1, which_sources=('features',)),
                  'float64', which_sources=('features',))
    batches = list(stream.get_epoch_iterator())
    labels = numpy.concatenate([labels for _, labels in batches])
    rows = numpy.concatenate([rows for rows, _ in batches])
    assert sorted(LABELS.tolist()) == sorted(labels.tolist())
    assert sorted(rows[:, 0]) == sorted((ROWS[:, 0] * 2 + 1).tolist())


def test_examples_of_several_kinds_have_the_names_of_their_keys():
    """Numbers become arrays, strings and unequal shapes lists."""
    dataset = TorchDataset(Dicts())
    assert ('row', 'name', 'label', 'half', 'words') == dataset.sources
    rows, names, labels, halves, words = dataset.get_data(None, [3, 1])
    assert numpy.array_equal(ROWS[[3, 1]], rows)
    assert ['number 3', 'number 1'] == names
    assert [3, 1] == labels.tolist()
    assert [1.5, 0.5] == halves.tolist()
    assert [[0, 1, 2], [0]] == [row.tolist() for row in words]
    dataset.sources = ('label', 'name')
    assert 3 == dataset.get_data(None, 3)[0]


def test_single_part_is_named_data():
    """The part may come alone or in a tuple."""
    for dataset in (TensorDataset(ROWS), list(ROWS)):
        read = TorchDataset(dataset)
        assert ('data',) == read.sources
        assert numpy.array_equal(ROWS[[2, 1]], read.get_data(None, [2, 1])[0])


def test_pictures_become_arrays():
    """They have height, width and channels, in bytes."""
    pictures, _ = TorchDataset(Pictures()).get_data(None, [5, 6])
    assert (2, 2, 3, 3) == pictures.shape
    assert 'uint8' == pictures.dtype
    assert [5, 6] == pictures[:, 0, 0, 0].tolist()


def test_sources_may_be_restricted_and_named():
    """Their order is free; axis labels are kept."""
    dataset = TorchDataset(
        TensorDataset(ROWS, LABELS, ROWS), names=('a', 'b', 'c'),
        sources=('b', 'a'), axis_labels={'a': ('batch', 'feature')})
    labels, rows = dataset.get_data(None, [2, 1])
    assert [2, 1] == labels.tolist()
    assert numpy.array_equal(ROWS[[2, 1]], rows)
    assert {'a': ('batch', 'feature')} == dataset.axis_labels


def test_state_is_resumed_in_mid_epoch():
    """The state holds positions, and no data."""
    def build():
        return DataStream(of_pairs(), iteration_scheme=ShuffledScheme(12, 5))
    stream = build()
    epoch = stream.get_epoch_iterator()
    next(epoch)
    restored = build()
    restored.load_state_dict(stream.state_dict())
    for one, other in zip(epoch, restored.get_epoch_iterator(), strict=True):
        assert numpy.array_equal(one[0], other[0])


def test_pickle_reads_the_same():
    """The pickle holds the tensors once."""
    dataset = in_memory()
    data = pickle.dumps(dataset)
    assert len(data) < ROWS.numel() * 4 + LABELS.numel() * 8 + 3000
    copy = pickle.loads(data)
    assert numpy.array_equal(ROWS[[1]], copy.get_data(None, [1])[0])


def test_round_trip_is_the_data_set_itself():
    """The data set is wrapped for PyTorch and back."""
    dataset = TorchDataset(as_map(in_memory()))
    rows, labels = dataset.get_data(None, [9, 2])
    assert numpy.array_equal(ROWS[[9, 2]], rows)
    assert numpy.array_equal(LABELS[[9, 2]], labels)


class Stream(IterableDataset):
    def __iter__(self):
        return iter([1])


class Uneven(Pairs):
    """Pairs that have more parts now and then."""

    def __getitem__(self, index):
        return (index,) * (2 + (index == 3))


class Lacking(Pairs):
    """Pairs that lack a part now and then."""

    def __getitem__(self, index):
        return {'a': index} if index == 3 else {'a': index, 'b': index}


@pytest.mark.parametrize('build, error, text', [
    (lambda: TorchDataset(Stream()), TypeError, 'iterable-style'),
    (lambda: TorchDataset({1, 2}), TypeError, '__len__ and __getitem__'),
    (lambda: TorchDataset([]), ValueError, 'list has no examples'),
    (lambda: TorchDataset([(1, 2, 3)]), ValueError, r'has 3 parts: name'),
    (lambda: TorchDataset([(1, 2)], names='ab'), ValueError, 'the string'),
    (lambda: TorchDataset(Uneven()).get_data(None, [2, 3]), ValueError,
     'Uneven has 3 parts'),
    (lambda: TorchDataset(Lacking()).get_data(None, [3]), ValueError,
     r"lacks \['b'\]"),
    (lambda: of_pairs().get_data(None, [12]), ValueError,
     'only 12 examples'),
    (lambda: of_pairs().get_data(None, None), ValueError, 'needs a request'),
    (lambda: TorchDataset(Pairs(), sources=('lables',)), ValueError,
     'there is no source')])
def test_invalid_use_is_refused(build, error, text):
    """Each text says what was expected and what came."""
    with pytest.raises(error, match=text):
        build()
