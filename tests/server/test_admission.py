"""Admission decides, and carries nothing out."""
import pytest

from fuel.exceptions import StateMismatchError
from fuel.server.admission import (
    Admission,
    Begin,
    Continue,
    Join,
    Refuse,
    ReportEnd,
    SetAside,
    Wait,
)
from fuel.server.attendance import Joiner
from fuel.server.connections import ClientConnection
from fuel.server.dispatch import ServedEpoch
from fuel.server.ledger import Ledger
from fuel.server.position import ClientPosition
from fuel.wire.index_sets import IndexSet


class World:
    """The clients of an admission, which no scheduler listens to."""

    def __init__(self, num_clients=1):
        self.connections = {}
        self.refused_state = None
        self.admission = Admission(
            self.connections, 'split', num_clients, hold=30.0,
            clock=lambda: 0.0, check_state=self.check_state)

    def check_state(self, state):
        """Refuse one state."""
        if state == self.refused_state:
            raise StateMismatchError('not ours')

    def ask(self, client, position=None):
        """Let a client ask to join; return its connection."""
        connection = ClientConnection(
            client.encode(), {'client': client, 'hwm': 3}, 3)
        self.connections[connection.identity] = connection
        connection.join = 1
        self.admission.joiners.append(Joiner(connection, 1, position))
        return connection

    def decide(self):
        """Return the decisions, as if each had been carried out."""
        return list(self.admission.decisions())

    def begin(self, client, number=1):
        """Let a client be in an epoch."""
        epoch = ServedEpoch(Ledger(number), lambda item: None)
        epoch.join(self.ask(client))
        self.admission.joiners.clear()
        self.admission.on_begun(self.admission.run, epoch)
        return epoch


def position(run, epoch, client='a', *, is_over=False, state=None, done=(),
             is_loaded=False):
    """Return what a client sends when it comes back."""
    return ClientPosition(run, epoch, client, is_over, 0, state,
                          IndexSet([(index, index + 1) for index in done]),
                          is_loaded=is_loaded)


@pytest.mark.parametrize('is_loaded, others, expected', [
    (True, False, (3, {'x': 1}, True)), (False, False, (5, None, True)),
    (True, True, (5, None, True))])
def test_end_of_an_earlier_epoch_is_followed_by_the_next(
        is_loaded, others, expected):
    """It does if a client that is alone has gone back to it."""
    world = World()
    run = world.admission.run
    epoch = world.begin('a', 4)
    if others:
        epoch.join(world.ask('b'))
        epoch.leave('b')
        world.admission.joiners.clear()
    epoch.leave('a')
    world.ask('a', position(run, 2, is_over=True, state={'x': 1},
                            is_loaded=is_loaded))
    begin, = world.decide()
    assert (begin.run, begin.is_adopted, begin.start) == (run, False, 0)
    assert (begin.number, begin.state, begin.after) == expected


def test_end_of_an_earlier_epoch_without_a_state_is_refused():
    """A client that goes on with the next epoch needs no such state."""
    for epoch, kind in (3, Begin), (2, Refuse):
        world = World()
        world.begin('b', 4).leave('b')
        world.connections.clear()
        world.ask('a', position(world.admission.run, epoch + 1, is_over=True,
                                is_loaded=True))
        decision, = world.decide()
        assert isinstance(decision, kind)
    assert 'cannot go back' in str(decision.error)


def test_first_client_begins_the_first_epoch():
    """It continues nothing."""
    world = World()
    first = world.ask('a')
    assert [Begin(Join(first), world.admission.run, 1, False, 0, None, False)
            ] == world.decide()
    assert world.admission.epoch is None
    assert not world.admission.joiners


def test_client_waits_for_the_others():
    """The client stays among the joiners until the others are there."""
    world = World(num_clients=2)
    first = world.ask('a')
    assert [Wait(Joiner(first, 1, None))] == world.decide()
    assert [Joiner(first, 1, None)] == world.admission.joiners
    world.ask('b')
    decision = next(world.admission.decisions())
    assert isinstance(decision, Begin)
    assert first is decision.first.connection


def test_client_joins_the_epoch_that_others_read():
    """It keeps the batches that it delivered, if it was in the epoch
    before."""
    world = World()
    epoch = world.begin('a')
    epoch.ledger.send('a', 0)
    second = world.ask('b')
    again = world.ask('c', position(world.admission.run, 1, 'a', done=[0]))
    assert [Join(again, 'a', IndexSet([(0, 1)])), Join(second)] == (
        world.decide())
    assert ['a'] == list(epoch.members)


def test_client_with_made_up_batches_is_refused():
    """The others are decided about all the same."""
    world = World()
    world.begin('a')
    liar = world.ask('b', position(world.admission.run, 1, 'a', done=[7]))
    honest = world.ask('c')
    refusal, other = world.decide()
    assert isinstance(refusal, Refuse)
    assert liar is refusal.connection
    assert 'names batch 7' in str(refusal.error)
    assert Join(honest) == other


def test_client_of_an_epoch_that_is_left_behind_is_sent_away():
    """A client is sent away if its epoch is over for the others."""
    world = World()
    world.begin('a', number=3)
    late = world.ask('b', position(
        world.admission.run, 2, 'b', state={'a': 1}))
    assert [ReportEnd(late)] == world.decide()


@pytest.mark.parametrize(('run', 'refused', 'kind'), [
    ('former', None, Continue), ('another', None, SetAside),
    ('former', {'a': 1}, SetAside)], ids=[
        'named', 'of another run', 'state that the pipeline refuses'])
def test_first_client_decides_whether_the_journal_is_continued(
        run, refused, kind):
    """It does if it names the run, and the pipeline can load the states."""
    world = World()
    world.refused_state = refused
    ledger = Ledger(1)
    ledger.begin_at(0, {'a': 1})
    world.admission.found = 'former', ledger
    world.ask('a', position(run, 1, is_over=True))
    assert isinstance(next(world.admission.decisions()), kind)
    assert world.admission.found is None
