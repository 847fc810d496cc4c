"""Workers make large batches in the memory that the loader reads."""
import copy
import pickle
from multiprocessing.reduction import ForkingPickler

import h5py
import numpy
import pytest
import torch
from torch.utils.data import DataLoader

from fuel.datasets import H5PYDataset, IndexableDataset
from fuel.interop.torch import as_iterable
from fuel.interop.torch.slot_tensors import (
    SlotTensor,
    ValueTensor,
    make_sender,
)
from fuel.interop.torch.worker_batches import SharedBatches
from fuel.schemes import SequentialScheme
from fuel.streams import DataStream
from fuel.transformers import Cast, Mapping
from fuel.transport.segment import Segment

COUNT, BATCH = 44, 8
DATA = {'rows': numpy.random.RandomState(3).rand(COUNT, 40, 40),
        'numbers': numpy.arange(COUNT)}


def in_memory(path):
    """Return a data set of arrays."""
    return IndexableDataset(DATA, sources=('rows', 'numbers'))


def in_file(path):
    """Return a data set in an HDF5 file."""
    with h5py.File(path, 'w') as file:
        for name, values in DATA.items():
            file[name] = values
        file.attrs['split'] = H5PYDataset.create_split_array({
            'all': dict.fromkeys(DATA, (0, COUNT))})
    return H5PYDataset(path, ('all',), sources=('rows', 'numbers'))


def stream_of(dataset):
    """Return batches of a data set in order."""
    return DataStream(dataset, iteration_scheme=SequentialScheme(
        COUNT, BATCH))


def shared(stream, budget=1 << 24):
    """Return what reads the batches of a stream in a worker."""
    return SharedBatches(stream, stream.sources, make_sender(budget))


def read(stream):
    """Return the batches of an epoch as a worker reads them."""
    batches = shared(stream)
    iterator = stream.get_epoch_iterator()
    return [batches.read(iterator) for _ in range(COUNT // BATCH)]


@pytest.mark.parametrize('build', [in_memory, in_file])
def test_rows_are_read_into_slots(build, tmp_path):
    """Slots are used from the second batch on; their memory is not moved
    again."""
    found = read(stream_of(build(str(tmp_path / 'rows.hdf5'))))
    for number, (rows, numbers) in enumerate(found):
        part = slice(BATCH * number, BATCH * (number + 1))
        assert numpy.array_equal(DATA['rows'][part], rows)
        assert numpy.array_equal(DATA['numbers'][part], numbers)
        if number:
            assert isinstance(rows, SlotTensor)


def test_output_of_the_last_stage_is_made_in_a_slot():
    """Stages below the last one use no slot, and functions use none."""
    stream = Cast(stream_of(in_memory(None)), 'float32',
                  which_sources=('rows',))
    (first, _), *others = read(stream)
    assert not isinstance(first, torch.Tensor)
    for number, (rows, _) in enumerate(others, 1):
        part = slice(BATCH * number, BATCH * (number + 1))
        assert isinstance(rows, SlotTensor)
        assert numpy.array_equal(DATA['rows'][part].astype('float32'), rows)
    stream = Mapping(stream, lambda data: (data[0] * 2, data[1]))
    assert not any(isinstance(rows, torch.Tensor)
                   for rows, _ in read(stream))


def test_small_tensors_are_sent_by_value():
    """A loaded tensor, and what is computed of it, is an ordinary one."""
    _, numbers = read(stream_of(in_memory(None)))[1]
    assert isinstance(numbers, ValueTensor)
    for other in (numbers + 1, copy.deepcopy(numbers),
                  pickle.loads(pickle.dumps(numbers)),
                  pickle.loads(ForkingPickler.dumps(numbers))):
        assert type(other) is torch.Tensor
        assert 8 == len(other)
        other[:] = 0
    assert list(range(8, 16)) == numbers.tolist()
    batch = next(iter(DataLoader(as_iterable(stream_of(in_memory(None))),
                                 batch_size=None, num_workers=1)))
    assert [torch.Tensor] * 2 == list(map(type, batch))


class KeepingCast(Cast):
    """A stage that keeps what it returned."""

    def transform_batch(self, batch):
        self.kept, numbers = super().transform_batch(batch)
        return self.kept, numbers


class KeepingRows(IndexableDataset):
    """A data set that keeps what it returned."""

    def get_data(self, state=None, request=None):
        self.kept, numbers = super().get_data(state, request)
        return self.kept, numbers


@pytest.mark.parametrize('build', [
    lambda dataset: KeepingCast(
        stream_of(dataset), 'float32', which_sources=('rows',)), stream_of],
    ids=['stage', 'data set'])
def test_array_that_somebody_keeps_is_not_shared(build):
    """Writing into a batch does not change the array."""
    dataset = KeepingRows(DATA, sources=('rows', 'numbers'))
    stream = build(dataset)
    owner = stream if isinstance(stream, KeepingCast) else dataset
    for rows, _ in read(stream)[1:]:
        assert not isinstance(rows, torch.Tensor)
    iterator = stream.get_epoch_iterator()
    batches = shared(stream)
    batches.read(iterator)
    rows, _ = batches.read(iterator)
    expected = owner.kept.copy()
    rows[...] = -1
    assert numpy.array_equal(expected, owner.kept)


def test_memory_that_no_batch_needs_is_not_offered_again():
    """A stage whose result has another size leaves such memory."""
    class Halves(IndexableDataset):
        def get_data(self, state=None, request=None):
            rows, numbers = super().get_data(state, request)
            return rows * 2, numbers

    stream = stream_of(Halves(DATA, sources=('rows', 'numbers')))
    batches = shared(stream)
    iterator = stream.get_epoch_iterator()
    for _ in range(3):
        batches.read(iterator)
    assert not batches.expected


def part_of(number):
    """Return the rows of a batch."""
    return DATA['rows'][BATCH * number:BATCH * (number + 1)]


@pytest.mark.parametrize('part', [slice(None, 5), slice(3, None)],
                         ids=['first', 'last'])
def test_part_of_what_was_read_stays_what_it_is(part):
    """A data set that leaves examples out now and then returns such parts."""
    class Some(IndexableDataset):
        def get_data(self, state=None, request=None):
            rows, numbers = super().get_data(state, request)
            wanted = part if numbers[0] == 2 * BATCH else slice(None)
            return rows[wanted], numbers[wanted]

    found = read(stream_of(Some(DATA, sources=('rows', 'numbers'))))
    assert isinstance(found[1][0], SlotTensor)
    for number, (rows, _) in enumerate(found):
        expected = part_of(number)[part if number == 2 else slice(None)]
        assert numpy.array_equal(expected, rows)


def set_other_data(tensor):
    """Give a tensor other memory of the same size."""
    tensor.data = torch.ones_like(tensor)
    return tensor


CHANGES = {
    'axes': lambda tensor: tensor.transpose_(0, 2),
    'gradient': lambda tensor: tensor.requires_grad_(),
    'data': set_other_data,
    'size': lambda tensor: tensor.resize_(2, 40),
    'values': lambda tensor: tensor.mul_(2),
    'memory': lambda tensor: tensor.share_memory_(),
    'shape': lambda tensor: tensor.unsqueeze_(1)}


@pytest.mark.parametrize('change', CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize('source', [0, 1], ids=['large', 'small'])
def test_tensors_are_sent_as_a_function_has_changed_them(source, change):
    """Large tensors, in slots, and small ones have the changes."""
    data = DATA['rows'], DATA['rows'][:, :5]
    made = read(stream_of(IndexableDataset(
        {'large': data[0], 'small': data[1]},
        sources=('large', 'small'))))[1][source]
    assert isinstance(made, [SlotTensor, ValueTensor][source])
    expected = change(torch.tensor(
        data[source][BATCH:2 * BATCH], dtype=torch.float64))
    received = pickle.loads(ForkingPickler.dumps(change(made)))
    assert type(received) is torch.Tensor
    assert torch.equal(expected, received)
    assert expected.requires_grad == received.requires_grad
    assert copy.deepcopy(made).requires_grad == expected.requires_grad


def test_tensor_may_be_sent_again():
    """A function may return the last batch with each."""
    batches = shared(stream := stream_of(in_memory(None)))
    iterator = stream.get_epoch_iterator()
    batches.read(iterator)
    last, _ = batches.read(iterator)
    first, second = [
        pickle.loads(ForkingPickler.dumps(last)) for _ in range(2)]
    del first, last
    for number in range(2, 5):
        rows, _ = batches.read(iterator)
        received = pickle.loads(ForkingPickler.dumps(rows))
        assert numpy.array_equal(part_of(number), received)
        assert numpy.array_equal(part_of(1), second)


def test_slot_that_is_sent_meanwhile_is_not_given_again():
    """The loader's queue sends in a thread of its own, while the next batch
    is made."""
    sender = make_sender(1 << 24)
    lent = sender.lend(1 << 20)
    placement = lent.placement

    class Sent:
        def is_free(self):
            # As if the other thread ran here.
            lent.placement = placement
            sender.describe(lent)
            return True

    lent.placement = Sent()
    assert sender.lend(1 << 20).slot.number != lent.slot.number


def test_batch_is_made_where_no_slot_can_be(monkeypatch):
    """The batch is copied where too many descriptors are open."""
    def fail(size):
        raise OSError(24, 'Too many open files')

    batches = shared(stream := stream_of(in_memory(None)))
    monkeypatch.setattr(Segment, 'create', fail)
    iterator = stream.get_epoch_iterator()
    for number in range(3):
        rows, _ = batches.read(iterator)
        assert not isinstance(rows, torch.Tensor)
        assert numpy.array_equal(part_of(number), rows)


@pytest.mark.parametrize('budget, is_kept, most', [
    (1 << 24, False, 2), (1 << 24, True, 4), (1 << 18, True, 2)],
    ids=['dropped', 'kept', 'kept beyond the budget'])
def test_slot_is_used_again_when_its_batch_is_gone(budget, is_kept, most):
    """It is not used before; batches that are kept beyond the budget are
    copied."""
    stream = stream_of(in_memory(None))
    batches, iterator = shared(stream, budget), stream.get_epoch_iterator()
    batches.read(iterator)
    slots, kept = set(), []
    for number in range(1, 5):
        rows, _ = batches.read(iterator)
        slots.add(rows.lent.slot.number)
        received = pickle.loads(ForkingPickler.dumps(rows))
        assert type(received) is torch.Tensor
        assert numpy.array_equal(part_of(number), received)
        if is_kept:
            kept.append(received[1:])
        del rows, received
    assert len(slots) <= most
    if budget == 1 << 24:
        assert (len(slots) == 4) == is_kept
    for number, rows in enumerate(kept, 1):
        assert numpy.array_equal(part_of(number)[1:], rows)


def test_tensors_that_are_not_sent_keep_their_slots():
    """A user's function may have made a part of them; later batches use other
    memory."""
    stream = stream_of(in_memory(None))
    batches = shared(stream, 1 << 18)
    iterator = stream.get_epoch_iterator()
    found = [batches.read(iterator)[0] for _ in range(5)]
    assert [False, True, True, False, False] == [
        isinstance(rows, SlotTensor) for rows in found]
    for number, rows in enumerate(found):
        assert numpy.array_equal(part_of(number), rows)


@pytest.mark.parametrize('num_workers', [1, 2])
def test_batches_of_a_loader_stay_as_they_are(num_workers):
    """Batches are kept over epochs, whatever is written to others."""
    loader = DataLoader(as_iterable(stream_of(in_memory(None))),
                        batch_size=None, num_workers=num_workers,
                        persistent_workers=True)
    kept = []
    for _ in range(4):
        for number, (rows, _) in enumerate(loader):
            assert numpy.array_equal(part_of(number), rows)
            if number % 3:
                rows[...] = -1
            else:
                kept.append((number, rows))
    for number, rows in kept:
        assert numpy.array_equal(part_of(number), rows)
