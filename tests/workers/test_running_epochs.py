"""Epochs of one stream that are made side by side."""
import pickle
import threading

import numpy
import pytest

from fuel.datasets import IndexableDataset
from fuel.streams import DataStream
from fuel.transport.channel import Channel, Message
from fuel.workers.batch_maker import RunningEpochs
from fuel.workers.producer import Kind, Producer


def numbers(count=4):
    """Return a stream of the numbers from 0, one in each batch."""
    return DataStream(IndexableDataset({'x': numpy.arange(count)}),
                      batch_size=1)


@pytest.fixture
def epochs():
    """Return the running epochs of a stream, whose items are numbers."""
    return RunningEpochs(numbers(), lambda batch: (int(batch[0][0]), ()))


def made(epochs, number):
    """Return the rest of an epoch: its numbers.

    Parameters
    ----------
    epochs : RunningEpochs
    number : int

    Returns
    -------
    list of int

    """
    found = []
    while epochs.get(number) is not None:
        item = epochs.make(number)
        if not item.is_end:
            found.append(item.description)
    return found


def test_the_epoch_that_was_made_last_comes_last(epochs):
    """Each epoch has its turn."""
    for number in (1, 2, 3):
        epochs.open(number)
    epochs.postpone(1)
    assert [2, 3, 1] == [number for number, _ in epochs.in_turn()]
    epochs.leave(3)
    assert [2, 1] == [number for number, _ in epochs.in_turn()]


def test_an_epoch_that_ends_is_removed(epochs):
    """Its iterator is let go of, and other epochs go on."""
    epochs.open(1)
    epochs.open(2)
    assert [0, 1, 2, 3] == made(epochs, 1)
    assert [2] == [number for number, _ in epochs.in_turn()]
    assert [0, 1, 2, 3] == made(epochs, 2)


@pytest.mark.parametrize('follows, begins_at', [
    ((1, 4), 'where the stream stands'), ((1, 3), 'state'), (None, 'state')])
def test_an_epoch_that_follows_all_that_was_made_loads_no_state(
        epochs, monkeypatch, follows, begins_at):
    """The stream stands there; otherwise it goes back."""
    state = epochs.open(1).base
    made(epochs, 1)
    loaded = []
    load = DataStream.__fuel_stage__.load
    monkeypatch.setattr(
        DataStream.__fuel_stage__, 'load',
        lambda stage, state: loaded.append(state) or load(stage, state))
    epochs.open(2, state=state, after=True, follows=follows)
    assert [state] * (begins_at == 'state') == loaded
    assert [0, 1, 2, 3] == made(epochs, 2)


def test_an_item_without_room_comes_next(epochs):
    """The item was made, and is not ahead of the user yet."""
    maker = epochs.open(1)
    epochs.count_delivered(1, 0)
    maker.waiting = epochs.make(1)
    assert 0 == maker.num_ahead
    assert 0 == epochs.make(1).description
    assert 1 == maker.num_ahead
    epochs.count_delivered(1, 1)
    assert 0 == maker.num_ahead
    assert [1, 2, 3] == made(epochs, 1)


def test_an_epoch_that_cannot_begin_is_not_there(epochs):
    """Its consumer gets the error; others begin."""
    failed, _ = epochs.open_for_another(1, pickle.dumps({'calls': ['none']}))
    assert failed
    assert epochs.get(1) is None
    failed, state = epochs.open_for_another(2, pickle.dumps({}))
    assert not failed
    assert 0 == pickle.loads(state)['position']


def test_an_epoch_that_is_left_before_it_begins_is_not_made():
    """Messages are handled in their order, also after a long step."""
    consumer, producer = map(Channel, Channel.pair())
    options = pickle.dumps({})
    consumer.send(*[Message(kind, number, payload=options)
                    for kind, number in ((Kind.OPEN, 1), (Kind.LEAVE, 1),
                                         (Kind.OPEN, 2))])
    thread = threading.Thread(
        target=Producer(numbers(), producer, 10, 1 << 20).run)
    thread.start()
    found = []
    while not found or found[-1] != (Kind.END, 2):
        message = consumer.receive(20)
        assert message is not None
        found.append((message.kind, message.epoch))
    consumer.close()
    thread.join()
    producer.close()
    assert (Kind.ITEM, 2) in found
    assert (Kind.ITEM, 1) not in found
