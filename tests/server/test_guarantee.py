"""Each row of the guarantee in the manual, for each way of sharing."""
import json
from contextlib import suppress

import numpy
import pytest
from support.simulated_server import HOLD, World

from fuel.datasets import IterableDataset
from fuel.exceptions import StateMismatchError
from fuel.streams import DataStream
from fuel.transformers import Transformer

COUNT = 12
SHARING = pytest.mark.parametrize('sharing', ['split', 'rank', 'all'])


def begin(tmp_path, sharing, journal=True, **kwargs):
    """Return a world, and two clients that have read three batches each."""
    world = World(tmp_path / 'journal' if journal else None, COUNT, sharing,
                  num_clients=2, **kwargs)
    clients = [world.add_client(rank=rank) for rank in range(2)]
    for client in clients:
        client.next()
    while min(len(client.history) for client in clients) < 3:
        for client in clients:
            if len(client.history) < 3:
                client.next()
    world.server.run()
    return world, *clients


def finish(world, *clients):
    """Let clients read to the end of the epoch."""
    for _ in range(100):
        moved = [client.next() for client in clients]
        if all(client.has_ended for client in clients):
            return
        if not any(moved):
            world.pass_time(1)
    pytest.fail('the epoch does not end')


def numbers(*clients):
    """Return the examples that clients got in the first epoch, sorted."""
    return sorted(number for client in clients
                  for epoch, number in client.history if epoch == 1)


def assert_once(world, *clients):
    """Check that each got what is its own, once."""
    everything = list(range(COUNT))
    if world.sharing == 'all':
        for client in clients:
            assert everything == numbers(client)
    else:
        assert everything == numbers(*clients)


@SHARING
@pytest.mark.parametrize('more', [0, 2])
def test_killed_client_with_a_successor_in_time_loses_nothing(
        tmp_path, sharing, more):
    """Batches that a client read after its saved state are sent again."""
    world, one, other = begin(tmp_path, sharing)
    saved = one.save()
    for _ in range(more):
        one.next()
    one.kill()
    finish_some(world, other)
    world.pass_time(HOLD / 2)
    successor = world.add_client(saved, rank=0)
    finish(world, successor, other)
    assert_once(world, successor, other)


def finish_some(world, client):
    """Let a client read as far as it comes alone."""
    for _ in range(COUNT):
        client.next()
    world.server.run()


@SHARING
def test_second_successor_from_the_same_state_loses_nothing(
        tmp_path, sharing):
    """The first was killed, too, before it saved a state of its own, after
    it had connected to a server that was started again."""
    world, one, other = begin(tmp_path, sharing)
    saved = one.save()
    one.next()
    one.kill(received=5)
    successor = world.add_client(saved, rank=0)
    successor.next()
    world.kill_server()
    world.start_server()
    other.next()
    successor.next()
    successor.kill(received=5)
    second = world.add_client(saved, rank=0)
    finish(world, second, other)
    assert_once(world, second, other)


def test_new_client_of_the_rank_of_a_killed_one_gets_what_it_left(tmp_path):
    """It gets them when the time for the killed client's successor is over."""
    world, one, other = begin(tmp_path, 'rank')
    one.kill(received=5)
    new_client = world.add_client(rank=0)
    finish(world, new_client, other)
    assert_once(world, one, new_client, other)


@SHARING
def test_server_killed_twice_around_a_successor_loses_nothing(
        tmp_path, sharing):
    """The second server does not keep the killed client's batches for another
    successor."""
    world, one, other = begin(tmp_path, sharing)
    saved = one.save()
    one.kill()
    world.kill_server()
    world.start_server()
    other.next()
    successor = world.add_client(saved, rank=0)
    successor.next()
    world.kill_server()
    world.start_server()
    for _ in range(COUNT):
        for client in (successor, other):
            client.next()
    assert world.now < HOLD
    assert successor.has_ended
    assert other.has_ended
    assert_once(world, successor, other)


@SHARING
def test_successor_after_the_deadline_gets_what_was_lost(tmp_path, sharing):
    """The others are still in the epoch."""
    world, one, other = begin(tmp_path, sharing)
    saved = one.save()
    one.next()
    one.kill(received=5)
    world.pass_time(HOLD + 1)
    other.next()
    successor = world.add_client(saved, rank=0)
    finish(world, successor, other)
    assert_once(world, successor, other)


def assert_few_twice(world, *clients):
    """Check that each got what is its own, and at most `hwm` twice."""
    everything = set(range(COUNT))
    if world.sharing == 'all':
        for client in clients:
            assert everything == set(numbers(client))
    else:
        assert everything == set(numbers(*clients))
    for got in ([numbers(client) for client in clients]
                if world.sharing == 'all' else [numbers(*clients)]):
        assert len(got) - COUNT <= (
            # Its batches are for nobody else.
            world.hwm if world.sharing == 'split' else 0)


@SHARING
def test_late_successor_repeats_at_most_what_was_not_acknowledged(
        tmp_path, sharing):
    """Its acknowledgement died with the client, and another got the batch."""
    world, one, other = begin(tmp_path, sharing)
    one.next()
    saved = one.save()
    one.kill(received=0)
    world.pass_time(HOLD + 1)
    finish_some(world, other)
    successor = world.add_client(saved, rank=0)
    finish(world, successor, other)
    assert_few_twice(world, successor, other)


@SHARING
def test_late_successor_after_the_server_died_too_repeats_as_few(
        tmp_path, sharing):
    """Server and client killed; the client's successor comes too late."""
    world, one, other = begin(tmp_path, sharing)
    one.next()
    saved = one.save()
    one.next()
    one.kill(received=0)
    world.kill_server()
    world.start_server()
    other.next()
    world.pass_time(HOLD + 1)
    finish_some(world, other)
    successor = world.add_client(saved, rank=0)
    finish(world, successor, other)
    assert_few_twice(world, successor, other)


@SHARING
def test_successor_after_the_next_epoch_began_has_lost_what_was_not_saved(
        tmp_path, sharing):
    """It joins the epoch that follows, and nothing comes twice."""
    world, one, other = begin(tmp_path, sharing)
    saved = one.save()
    one.next()
    lost = set(numbers(one)) - {number for _, number in saved[1]}
    one.kill(received=5)
    world.pass_time(HOLD + 1)
    # The batches of a rank are for nobody else than a client of that rank.
    others = [other, *(
        [world.add_client(rank=0)] if sharing == 'rank' else [])]
    finish(world, *others)
    for client in others:
        client.next_epoch()
    if sharing != 'rank':
        others.append(world.add_client(rank=0))
    others[1].next()
    for client in others:
        assert client.next()
    successor = world.add_client(saved, rank=0)
    successor.next()
    assert successor.has_ended
    if sharing == 'all':
        assert numbers(successor) == sorted(number for _, number in saved[1])
        assert numbers(other) == list(range(COUNT))
        return
    got = numbers(successor, *others)
    assert set(range(COUNT)) - set(got) == lost
    assert len(set(got)) == len(got)


@SHARING
def test_killed_client_that_saved_nothing_loses_what_it_delivered(
        tmp_path, sharing):
    """The other clients, or one of the same rank, get all the rest."""
    world, one, other = begin(tmp_path, sharing)
    one.kill()
    world.pass_time(HOLD + 1)
    others = [other]
    if sharing == 'rank':
        finish_some(world, other)
        assert not other.has_ended
        others.append(world.add_client(rank=0))
    finish(world, *others)
    if sharing == 'all':
        assert list(range(COUNT)) == numbers(other)
        return
    assert list(range(COUNT)) == numbers(one, *others)


@SHARING
def test_killed_server_loses_nothing(tmp_path, sharing):
    """It continues from its journal, also twice."""
    world, one, other = begin(tmp_path, sharing)
    for torn in (b'', b'00000000 ["sen'):
        world.kill_server(torn)
        world.start_server()
        one.next()
        other.next()
    finish(world, one, other)
    assert_once(world, one, other)


@SHARING
def test_killed_server_and_client_lose_nothing(tmp_path, sharing):
    """The batches that only the dead client knew of are in the journal."""
    world, one, other = begin(tmp_path, sharing)
    saved = one.save()
    one.next()
    one.next()
    one.kill(received=1)
    finish_some(world, other)
    world.kill_server()
    world.start_server()
    if not other.has_ended:
        other.next()
    successor = world.add_client(saved, rank=0)
    finish(world, successor, other)
    assert_once(world, successor, other)


@SHARING
def test_successor_does_not_get_batches_of_one_that_has_finished(
        tmp_path, sharing):
    """One client killed, the other finished, then the server killed."""
    world, one, other = begin(tmp_path, sharing)
    saved = one.save()
    one.kill(received=5)
    world.pass_time(HOLD + 1)
    finish_some(world, other)
    # The epoch lasts as long as batches of some rank are left.
    assert other.has_ended == (sharing != 'rank')
    world.kill_server()
    world.start_server()
    successor = world.add_client(saved, rank=0)
    finish(world, successor, other)
    assert_once(world, successor, other)


@SHARING
def test_server_without_a_journal_loses_nothing(tmp_path, sharing):
    """It repeats what one client delivered, but for another alone."""
    world, one, other = begin(tmp_path, sharing, journal=False)
    before = set(numbers(one, other))
    world.kill_server()
    world.start_server()
    one.next()
    other.next()
    finish(world, one, other)
    if sharing != 'split':
        assert_once(world, one, other)
        return
    got = numbers(one, other)
    assert set(range(COUNT)) == set(got)
    assert {number for number in got if got.count(number) > 1} <= before
    for client in (one, other):
        assert len(set(numbers(client))) == len(numbers(client))


@pytest.mark.parametrize('sharing', ['split', 'rank'])
def test_server_without_a_journal_loses_nothing_after_any_history(sharing):
    """Clients have any progress, and come back in any order; nobody gets a
    batch twice, and the next epoch is whole."""
    for seed in range(30):
        rng = numpy.random.RandomState(seed)
        world = World(None, COUNT, sharing, num_clients=2,
                      hwm=int(rng.choice([1, 3])))
        clients = [world.add_client(rank=rank) for rank in range(2)]
        for _ in range(rng.randint(2, 16)):
            clients[rng.randint(2)].next()
        world.kill_server()
        world.start_server()
        for _ in range(100):
            for client in [clients[place] for place in rng.permutation(2)]:
                if client.has_ended and client.session.epoch == 1:
                    client.next_epoch()
                client.next()
            if all(client.has_ended and client.session.epoch == 2
                   for client in clients):
                break
            world.pass_time(1)
        else:
            pytest.fail('the second epoch does not end')
        for client in clients:
            assert len(set(client.history)) == len(client.history)
        got = [each for client in clients for each in client.history]
        everything = {(epoch, number) for epoch in (1, 2)
                      for number in range(COUNT)}
        assert everything == set(got)
        repeated = {each for each in got if got.count(each) > 1}
        assert not repeated if sharing == 'rank' else all(
            epoch == 1 for epoch, _ in repeated)


def test_client_behind_the_first_to_come_back_without_a_journal(tmp_path):
    """With 'all', the batches in between cannot be made again."""
    world = World(None, COUNT, 'all', num_clients=2)
    one, other = (world.add_client() for _ in range(2))
    one.next()
    other.next()
    for _ in range(5):
        if len(one.history) < 3:
            one.next()
    assert (3, 1) == (len(one.history), len(other.history))
    between = set(numbers(one)) - set(numbers(other))
    world.kill_server()
    world.start_server()
    one.next()
    finish(world, one, other)
    assert list(range(COUNT)) == numbers(one)
    assert between == set(range(COUNT)) - set(numbers(other))
    assert len(set(numbers(other))) == len(numbers(other))


def test_sole_client_of_a_server_without_a_journal_repeats_nothing(tmp_path):
    """Its position says it all."""
    world = World(None, COUNT)
    client = world.add_client()
    for _ in range(5):
        client.next()
    world.kill_server()
    world.start_server()
    finish(world, client)
    assert list(range(COUNT)) == numbers(client)


class Stateless(Transformer):
    """A stage of a user's, on a child whose position nobody can tell."""

    def get_data(self, request=None):
        """Do what the class says."""
        return next(self.numbers)

    def get_epoch_iterator(self, **kwargs):
        """Begin again."""
        self.numbers = ((number,) for number in range(COUNT))
        return self.numbers


def stateless():
    """Return a stream that cannot tell its position."""
    return Stateless(DataStream(IterableDataset([1])), produces_examples=True)


@SHARING
def test_pipeline_without_states_loses_what_was_not_saved(tmp_path, sharing):
    """Batches delivered after the saved state are lost."""
    world, one, other = begin(tmp_path, sharing, make_stream=stateless)
    saved = one.save()
    one.next()
    lost = set(numbers(one)) - {number for _, number in saved[1]}
    one.kill(received=9)
    finish_some(world, other)
    successor = world.add_client(saved, rank=0)
    finish(world, successor, other)
    everything = set(range(COUNT))
    if sharing == 'all':
        assert numbers(other) == sorted(everything)
        assert numbers(successor) == sorted(everything - lost)
    else:
        assert numbers(successor, other) == sorted(everything - lost)


@SHARING
def test_pipeline_without_states_begins_again_when_its_server_is_killed(
        tmp_path, sharing):
    """Nothing is lost, and what was delivered comes again."""
    world, one, other = begin(tmp_path, sharing, make_stream=stateless)
    before = {client: numbers(client) for client in (one, other)}
    world.kill_server()
    world.start_server()
    finish(world, one, other)
    everything = list(range(COUNT))
    if sharing == 'all':
        for client in (one, other):
            assert numbers(client) == sorted(before[client] + everything)
    else:
        assert numbers(one, other) == sorted(
            before[one] + before[other] + everything)


def test_new_run_is_never_mistaken_for_a_dead_one(tmp_path, caplog):
    """The first client names no run: the journal is set aside, and the
    others are refused, not served from another order."""
    world, one, _ = begin(tmp_path, 'split')
    world.kill_server()
    world.num_clients = 1
    world.start_server()
    new_client = world.add_client()
    new_client.next()
    assert 'a new run begins' in caplog.text
    assert (tmp_path / 'journal.old').exists()
    with pytest.raises(StateMismatchError, match='serves run'):
        one.next()
    finish(world, new_client)
    assert list(range(COUNT)) == numbers(new_client)


@pytest.mark.parametrize('journal', [True, False])
@pytest.mark.parametrize(('sharing', 'num_clients', 'text'), [
    ('rank', 3, 'num_clients=2.*num_clients=3.*Start the server as it was'),
    ('rank', 1, 'num_clients=1'), ('split', 2, 'not shared by rank')])
def test_epoch_goes_on_for_no_other_number_of_ranks(
        tmp_path, journal, sharing, num_clients, text):
    """It is refused, not given to others once more, and can be continued."""
    world, *clients = begin(tmp_path, 'rank', journal)
    world.kill_server()
    world.sharing, world.num_clients = sharing, num_clients
    world.start_server()
    for client in clients:
        with pytest.raises(StateMismatchError, match=text):
            client.next()
    saved = [client.save() for client in clients]
    world.kill_server()
    world.sharing, world.num_clients = 'rank', 2
    world.start_server()
    successors = [world.add_client(state, rank)
                  for rank, state in enumerate(saved)]
    finish(world, *successors)
    assert_once(world, *successors)


def test_epoch_goes_on_when_another_number_of_clients_shall_begin(tmp_path):
    """The server waits for that number only when clients share by rank."""
    world, *clients = begin(tmp_path, 'split')
    world.kill_server()
    world.num_clients = 5
    world.start_server()
    finish(world, *clients)
    assert_once(world, *clients)


def begin_and_restart(tmp_path):
    """Return a world whose server was killed and started again, its client
    that has read three batches, and the run that it was in."""
    world = World(tmp_path / 'journal', COUNT)
    one = world.add_client()
    for _ in range(3):
        one.next()
    run = world.server.admission.run
    world.kill_server()
    world.start_server()
    return world, one, run


def test_run_of_like_servers_is_not_continued_for_a_new_client(tmp_path):
    """It is only continued for one that names it, however alike the servers
    are."""
    world, _, run = begin_and_restart(tmp_path)
    new_client = world.add_client()
    new_client.next()
    assert run != world.server.admission.run
    assert (tmp_path / 'journal.old').exists()
    finish(world, new_client)
    assert list(range(COUNT)) == numbers(new_client)


FORGED = {
    'floor': {'floor': 10 ** 6}, 'done': {'done': [[0, 10 ** 6]]},
    'future': {'done': [[0, 3], [COUNT - 1, COUNT]]},
    'index': {'index': 10 ** 6}, 'epoch': {'epoch': 10 ** 6},
    'later epoch': {'epoch': 2}, 'run': {'run': 'another'},
    'state': {'state': {'epoch': 'banana'}},
    'client': {'client': 'client 2'}, 'text': {'done': 'all'},
    'boolean': {'epoch': True}, 'ranges': {'done': [[5, 1]]},
    'run of another type': {'run': 5}}


@SHARING
@pytest.mark.parametrize('name', FORGED)
def test_forged_position_affects_nobody_else(tmp_path, sharing, name):
    """It is refused, or is one that the client could have; the other
    client gets its batches all the same."""
    world, one, other = begin(tmp_path, sharing)
    state, history, ended = one.save()
    one.kill(received=9)
    forger = world.add_client(
        ({**json.loads(json.dumps(state)), **FORGED[name]}, history, ended),
        rank=0)
    refusal = None
    try:
        for _ in range(3):
            forger.next()
    except StateMismatchError as error:
        refusal = str(error)
    if name not in ('floor', 'index', 'state', 'client'):
        assert refusal is not None
    if name in ('done', 'future', 'text', 'ranges'):
        assert "'done'" in refusal
    forger.kill()
    successor = world.add_client((state, history, ended), rank=0)
    finish(world, successor, other)
    assert set(range(COUNT)) - set(numbers(successor, other)) <= set(
        numbers(forger))
    assert len(numbers(other)) == len(set(numbers(other)))
    if sharing == 'all':
        assert_once(world, other)


def test_random_positions_are_refused_or_possible(tmp_path):
    """Never another error than one that names what is wrong."""
    rng = numpy.random.RandomState(5)
    world, one, other = begin(tmp_path, 'split')
    state, history, ended = one.save()
    one.kill(received=9)
    values = [None, -1, 0, 1, 5, 10 ** 9, 2 ** 70, 2.5, True, 'x', [], {},
              [[0, 1]], [[1]], [[0, 2 ** 60]], {'epoch': 'running'}]
    for _ in range(200):
        forged = dict(state)
        forged[rng.choice(sorted(state))] = values[rng.randint(len(values))]
        client = world.add_client((forged, history, ended), rank=0)
        with suppress(StateMismatchError):
            client.next()
        client.kill()
    world.pass_time(HOLD + 1)
    finish(world, other)
    assert len(numbers(other)) == len(set(numbers(other)))


def test_client_that_is_ahead_of_a_successor_knows_where_that_stands():
    """The successor makes the server go back to states which the other client
    has forgotten; without a journal its state alone says where to go on."""
    world = World(None, 60, num_clients=2)
    one, other = [world.add_client() for _ in range(2)]
    while min(len(one.history), len(other.history)) < 2:
        one.next()
        other.next()
    early, fronts = one.save(), []
    for _ in range(9):
        one.next()
        other.next()
        world.server.run()
    one.kill(received=5)
    successor = world.add_client(early)
    for _ in range(12):
        other.next()
        successor.next()
        world.server.run()
        saved, _, _ = other.save()
        fronts.append(saved['floor'])
        if len(fronts) > 1 and fronts[-1] < fronts[-2]:
            break
    assert fronts != sorted(fronts)
    states = other.save(), successor.save()
    for client in (other, successor):
        client.kill()
    world.kill_server()
    world.start_server()
    other, successor = map(world.add_client, states)
    finish(world, other, successor)
    assert set(range(60)) == set(numbers(other, successor))


@pytest.mark.parametrize('gap', [0, 1])
def test_new_client_waits_for_the_successor_of_one_that_was_just_killed(gap):
    """Both were probably started again together: they share the epoch."""
    world = World(None, COUNT)
    one = world.add_client()
    for _ in range(3):
        one.next()
    saved = one.save()
    one.kill()
    world.pass_time(gap)
    new_client = world.add_client()
    for _ in range(3):
        new_client.next()
    assert not new_client.history
    successor = world.add_client(saved)
    finish(world, successor, new_client)
    assert_once(world, successor, new_client)


def test_new_client_does_not_wait_long_for_a_successor():
    """If no other client is alive, it begins the next epoch."""
    world = World(None, COUNT)
    one = world.add_client()
    for _ in range(3):
        one.next()
    one.kill()
    new_client = world.add_client()
    new_client.next()
    assert not new_client.history
    world.pass_time(3)
    new_client.next()
    assert [2] == [epoch for epoch, _ in new_client.history]


def test_state_of_a_later_epoch_than_the_clients_that_came_back_is_refused():
    """All were dead for too long; the first to come back decides."""
    world = World(None, COUNT)
    one, other = world.add_client(), world.add_client()
    one.next()
    early = one.save()
    finish(world, one, other)
    other.next_epoch()
    for _ in range(3):
        other.next()
    later = other.save()
    assert {1, 2} == {epoch for epoch, _ in later[1]}
    for client in (one, other):
        client.kill()
    world.pass_time(HOLD + 1)
    successor = world.add_client(early)
    successor.next()
    assert [1, 1] == [epoch for epoch, _ in successor.history]
    late = world.add_client(later)
    with pytest.raises(StateMismatchError, match=(
            'is of epoch 2, but the clients that came back first went on '
            'from epoch 1: load states that were saved together')):
        late.next()
    finish(world, successor)
    assert list(range(COUNT)) == numbers(successor)


def test_client_that_names_the_run_comes_before_one_that_does_not(tmp_path):
    """Both connect at once to a server that was started again: the run goes
    on."""
    world, one, run = begin_and_restart(tmp_path)
    new_client = world.add_client()
    world.clients.reverse()
    new_client.link = world.server.greet(new_client)
    new_client.join_number = 1
    new_client.report(type='join', join=1, resume=None)
    one.next()
    assert run == world.server.admission.run
    new_client.kill()
    finish(world, one)
    assert_once(world, one)
