"""The number of an epoch, as trainers tell it."""
import json

import pytest
from support.torch_pipelines import plain_epochs, shuffled
from torch.utils.data import DataLoader

from fuel.datasets import IterableDataset
from fuel.interop.torch import as_iterable
from fuel.streams import DataStream
from fuel.transformers import Filter

EPOCHS = plain_epochs(shuffled, 6)


def build(workers=0, stream=None):
    """Return an iterable, and a loader over it."""
    iterable = as_iterable(stream or shuffled())
    return iterable, DataLoader(iterable, batch_size=None,
                                num_workers=workers)


def read(loader):
    """Return the numbers in each batch of an epoch."""
    return [batch.tolist() for batch, in loader]


@pytest.mark.parametrize('workers', [0, 2])
def test_epochs_are_those_of_their_numbers(workers):
    """Epochs may be named in any order, and equal those without numbers."""
    iterable, loader = build(workers)
    for number in (0, 1, 1, 4, 0, 5, 2):
        iterable.set_epoch(number)
        assert EPOCHS[number] == read(loader)
    assert EPOCHS[3] == read(loader)


@pytest.mark.parametrize('workers', [0, 2])
def test_epoch_that_was_left_may_be_begun_again(workers):
    """Accelerate does this after a ``break``."""
    iterable, loader = build(workers)
    for _ in range(2):
        iterable.set_epoch(0)
        assert EPOCHS[0][0] == next(iter(loader))[0].tolist()
    iterable.set_epoch(1)
    assert EPOCHS[1] == read(loader)


@pytest.mark.parametrize('workers', [0, 2])
def test_number_of_an_empty_pass_is_that_of_the_next_epoch(workers):
    """Accelerate does not count a pass that has no batch."""
    iterable, loader = build(workers)
    for count, _ in enumerate(loader, 1):
        if count == len(EPOCHS[0]):
            state = iterable.state_after(count)
    iterable, loader = build(workers)
    iterable.load_state_dict(state)
    for number, expected in ((0, []), (0, EPOCHS[1]), (1, EPOCHS[2])):
        iterable.set_epoch(number)
        assert expected == read(loader)


@pytest.mark.parametrize('workers', [0, 2])
def test_first_number_after_a_state_is_that_of_its_epoch(workers):
    """A trainer may count from 0 or 1; the epochs after it follow."""
    iterable, loader = build(workers)
    read(loader)
    epoch = iter(loader)
    first = next(epoch)[0].tolist()
    state = json.loads(json.dumps(iterable.state_after(1)))
    for base in (0, 1):
        iterable, loader = build(workers)
        iterable.load_state_dict(state)
        iterable.set_epoch(base)
        assert EPOCHS[1] == [first, *read(loader)]
        iterable.set_epoch(base + 1)
        assert EPOCHS[2] == read(loader)


def test_epoch_before_what_is_known_is_refused():
    """No other epoch is read in its place."""
    iterable, loader = build()
    iterable.load_state_dict(shuffled().state_dict())
    iterable.set_epoch(3)
    with pytest.raises(ValueError, match='epoch 2 is over, and the next is '):
        iterable.set_epoch(2)
    iterable, loader = build()
    read(loader)
    with pytest.raises(ValueError, match='call set_epoch.. before the first'):
        iterable.set_epoch(0)
    with pytest.raises(ValueError, match='epoch'):
        iterable.set_epoch(-1)


def test_stream_whose_position_is_unknown_goes_on():
    """Its epochs must be named in their order."""
    class Unknown(IterableDataset):
        def open(self):
            return iter([(1,), (2,)])
    iterable, loader = build(stream=DataStream(Unknown([1, 2])))
    for number in range(2):
        iterable.set_epoch(number)
        assert [1, 2] == [int(item) for item, in loader]
    for number in (0, 4):
        with pytest.raises(TypeError, match='get_position'):
            iterable.set_epoch(number)


def test_stage_that_depends_on_the_data_is_read_up_to_the_epoch():
    """Its epochs cannot be found without the ones before."""
    def odd(batch):
        return batch[0].sum() % 2
    expected = plain_epochs(lambda: Filter(shuffled(), odd), 3)
    iterable, loader = build(stream=Filter(shuffled(), odd))
    iterable.set_epoch(2)
    assert expected[2] == read(loader)


@pytest.mark.parametrize('workers', [0, 2])
def test_reader_that_holds_batches_back_saves_those_that_were_used(workers):
    """A trainer that looks for the end in advance is such a reader."""
    iterable, loader = build(workers)
    iterable.reader_holds_back = True
    epoch = iter(loader)
    next(epoch), next(epoch)
    with pytest.raises(RuntimeError, match='may be ahead'):
        iterable.state_dict()
    for count in (0, 1):
        restored, rest = build()
        restored.load_state_dict(iterable.state_after(count))
        assert EPOCHS[0][count:] == read(rest)
    assert EPOCHS[0][2:] == read(epoch)
    assert EPOCHS[1] == read(loader)
