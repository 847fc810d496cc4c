"""Streams whose batches actors of a cluster make."""
import os
import pickle
import signal
import time
from functools import partial

import numpy
import pytest
import ray
from support import ray_pipelines
from support.ray_pipelines import WIDTH, epochs_of, frozen, numbers
from support.sparse_rows import SparseDataset, assert_same_rows, random_csr

import fuel
from fuel.epochs.stage import stage_of
from fuel.exceptions import WorkerError
from fuel.interop.ray import RayWorkers
from fuel.schemes import SequentialScheme
from fuel.streams import DataStream
from fuel.testing import STREAM_PROMISES, check_stream
from fuel.transformers import Mapping, Take

# Each stream that is made starts actors, so most are for long runs.
SHORT = ('ownership', 'plain state', 'interleaved epochs', 'threads',
         'closing')


@pytest.mark.parametrize('promise', [
    promise if promise in SHORT else pytest.param(
        promise, marks=pytest.mark.full) for promise in STREAM_PROMISES])
@pytest.mark.parametrize('build', [
    ray_pipelines.two_actors,
    pytest.param(ray_pipelines.one_actor, marks=pytest.mark.full)],
    ids=['two', 'one'])
@pytest.mark.timeout(600)
def test_stream_keeps_promise(build, promise, another_process):
    """The promises are about epochs, states, pickles and other processes."""
    check_stream(build, promises=[promise], another_process=another_process)


def test_actors_make_the_values_of_the_stream_in_its_order():
    """Actors of both nodes do in each epoch."""
    expected = epochs_of(numbers(), 3)
    with RayWorkers(numbers(), num_workers=3) as stream:
        assert expected == epochs_of(stream, 3)
        assert 2 == len(set(stream.worker_nodes))
        assert 0 == stream.num_restarts


def test_sparse_batches_come_as_they_are():
    """Large batches go through the object store."""
    for columns in (5, WIDTH):
        rows = random_csr(16, columns)
        stream = DataStream(SparseDataset(rows),
                            iteration_scheme=SequentialScheme(16, 4))
        with RayWorkers(stream) as remote:
            found = [x for x, _ in remote.get_epoch_iterator()]
        assert 4 == len(found)
        for place, x in enumerate(found):
            assert_same_rows(
                rows.toarray()[4 * place:4 * place + 4], x, rows)


def slow(batch):
    """Take long, whatever the machine does."""
    time.sleep(.01)
    return batch


def test_stages_are_measured_in_the_actors():
    """They stand below the stage that waits for them, and take no longer than
    a profile."""
    expected = epochs_of(numbers())
    with RayWorkers(Mapping(numbers(), slow), num_workers=2) as stream:
        iterator = stream.get_epoch_iterator()
        profile = fuel.profile(stream, batches=20)
        assert expected == [frozen(iterator)]
    assert ['RayWorkers', 'Mapping(slow)'] == [
        stage.name for stage in profile.stages[:2]]
    assert ['2 Ray actors'] * len(profile.stages) == [
        stage.runs_in for stage in profile.stages]
    assert profile.stages[1].items >= 20
    assert profile.bottleneck.startswith('Mapping(slow) takes ')
    assert 'use more workers' in profile.bottleneck
    # Each actor is a process with spans of its own.
    made = [each for each in profile.spans if each.name == 'Mapping(slow)']
    assert 2 == len({each.process for each in made})
    assert {(0, 0)} == {each.path for each in made}
    assert {profile.spans[0].process.clock} == {
        each.process.clock for each in made}
    assert 20 <= sum(len(each.spans) for each in made)


def test_functions_of_the_script_are_sent_to_the_actors():
    """Ray sends functions by value."""
    factor = 3

    def scaled():
        return Mapping(numbers(), lambda batch: (batch[0] * factor, batch[1]))

    with RayWorkers(scaled(), num_workers=2) as stream:
        assert epochs_of(scaled()) == epochs_of(stream)


def drawn(batch):
    """Return a number of the global generator in the place of the data."""
    return numpy.random.random(1), batch[1]


def test_actors_draw_each_their_own_from_the_global_generators():
    """A replacement draws its own too; a seed of this process fixes all."""
    def draw():
        numpy.random.seed(1)
        with RayWorkers(Mapping(numbers(), drawn), num_workers=2) as stream:
            epoch = iter(stream)
            found = [next(epoch)[0][0] for _ in range(2)]
            os.kill(stream.worker_pids[1], signal.SIGKILL)
            return found + [number[0] for number, _ in epoch]

    numbers_drawn = draw()
    assert len(numbers_drawn) == len(set(numbers_drawn)) > 4
    assert draw()[:2] == numbers_drawn[:2]


def test_state_is_continued_by_any_number_of_actors():
    """A state of each step is also continued by the stream itself, and
    back."""
    plain = numbers(12)
    [first, second] = epochs_of(numbers(12), 2)
    with RayWorkers(numbers(12), num_workers=2) as source, \
            RayWorkers(numbers(12), num_workers=3) as other:
        epoch = source.get_epoch_iterator()
        for step in range(len(first) + 1):
            state = source.state_dict()
            for target in (other, plain):
                target.load_state_dict(state)
                assert first[step:] + second == frozen(
                    batch for _ in range(2)
                    for batch in target.get_epoch_iterator())
            if step < len(first):
                assert first[step] == frozen([next(epoch)])[0]
        plain.load_state_dict(state)
        state = plain.state_dict()
        other.load_state_dict(state)
        assert epochs_of(plain) == epochs_of(other)


def test_pickled_stream_goes_on_where_it_was():
    """It starts actors of its own."""
    [expected] = epochs_of(numbers())
    with RayWorkers(numbers(), num_workers=2) as stream:
        epoch = stream.get_epoch_iterator()
        assert expected[:5] == frozen(next(epoch) for _ in range(5))
        copy = pickle.loads(pickle.dumps(epoch))
        assert expected[5:] == frozen(copy)
        assert expected[5:] == frozen(epoch)
        copy.data_stream.close()


def kill_one(stream):
    """Kill the process of an actor."""
    os.kill(stream.worker_pids[0], signal.SIGKILL)


@pytest.mark.parametrize('num_workers', [1, 2])
@pytest.mark.timeout(300)
def test_actor_that_is_killed_is_replaced(num_workers):
    """Nothing is lost, nothing is repeated, and states go on."""
    expected = epochs_of(numbers(80, WIDTH), 2)
    with RayWorkers(numbers(80, WIDTH), num_workers=num_workers,
                    max_bytes=4_000_000) as stream:
        read = []
        for number, batch in enumerate(stream.get_epoch_iterator()):
            read.append([part.tolist() for part in batch])
            if number in (3, 20):
                kill_one(stream)
                state = stream.state_dict()
        assert expected[0] == read
        assert stream.num_restarts >= 1
        assert expected[1:] == epochs_of(stream)
        stream.load_state_dict(state)
        assert expected[0][21:] == frozen(stream.get_epoch_iterator())


def test_batch_at_which_an_actor_dies_once_comes(tmp_path):
    """The actor that replaces it makes that batch."""
    died = tmp_path / 'died'
    expected = epochs_of(numbers(), 2)
    with RayWorkers(ray_pipelines.DyingOnce(numbers(), 7, died),
                    num_workers=2) as stream:
        assert expected == epochs_of(stream, 2)
        assert died.exists()
        assert 1 == stream.num_restarts


@pytest.mark.timeout(580)
@pytest.mark.parametrize(('num_batches', 'width'), [
    (40, WIDTH), pytest.param(10_000, 3, marks=pytest.mark.full)],
    ids=['large', 'many'])
def test_node_that_dies_is_left_for_another(
        cluster, spare_node, num_batches, width):
    """Its actors start again where there is room, after what came."""
    expected = epochs_of(numbers(2 * num_batches, width), 2)
    with RayWorkers(numbers(2 * num_batches, width), num_workers=2,
                    max_bytes=8_000_000, resources={'spare': 1}) as stream:
        read = []
        for number, batch in enumerate(stream.get_epoch_iterator()):
            read.append([part.tolist() for part in batch])
            if number == num_batches // 4:
                assert {spare_node.node_id} == set(stream.worker_nodes)
                other = cluster.add_node(
                    num_cpus=0, object_store_memory=100 << 20,
                    resources={'spare': 2})
                cluster.remove_node(spare_node, allow_graceful=False)
        assert num_batches == len(read)
        assert expected[0] == read
        assert 2 == stream.num_restarts
        assert {other.node_id} == set(stream.worker_nodes)
        assert expected[1:] == epochs_of(stream)
    cluster.remove_node(other)


@pytest.mark.timeout(580)
@pytest.mark.parametrize('num_batches', [
    300, pytest.param(10_000, marks=pytest.mark.full)])
def test_batches_are_counted_while_actors_are_killed(num_batches):
    """Each comes once, in its order."""
    plain = [batch[1].tolist() for batch in numbers(
        2 * num_batches).get_epoch_iterator()]
    with RayWorkers(numbers(2 * num_batches), num_workers=2) as stream:
        read = []
        for batch in stream.get_epoch_iterator():
            read.append(batch[1].tolist())
            if len(read) % (num_batches // 3) == 1:
                kill_one(stream)
        assert num_batches == len(read)
        assert plain == read
        assert stream.num_restarts >= 3


def is_in_object_store(array):
    """Return whether the memory of an array is that of Ray's store."""
    with open('/proc/self/maps', encoding='ascii') as mappings:
        for line in mappings:
            start, stop = (int(end, 16) for end in line.split()[0].split('-'))
            if start <= array.ctypes.data < stop:
                return 'plasma' in line
    return False


def test_batches_of_the_same_node_are_not_copied():
    """Batches lie in the store, and may be written there."""
    expected = epochs_of(numbers(10, WIDTH))[0]
    with RayWorkers(numbers(10, WIDTH)) as stream:
        for number, batch in enumerate(stream.get_epoch_iterator()):
            assert is_in_object_store(batch[0])
            assert expected[number][0] == batch[0].tolist()
            batch[0][...] = -1
        assert (-1 == batch[0]).all()


def test_batches_that_are_kept_are_copied_beyond_half_the_budget():
    """A reader that keeps all batches does not fill the store."""
    nbytes = 2 * WIDTH * 8
    expected = epochs_of(numbers(24, WIDTH))[0]
    with RayWorkers(numbers(24, WIDTH), max_bytes=8 * nbytes) as stream:
        kept = list(stream.get_epoch_iterator())
        assert [True] * 4 + [False] * 8 == [
            is_in_object_store(batch[0]) for batch in kept]
        assert expected == frozen(kept)
        del kept
        epoch = stream.get_epoch_iterator()
        assert is_in_object_store(next(epoch)[0])


@pytest.mark.parametrize(('max_bytes', 'max_store', 'most'), [
    (16 * WIDTH * 8, 100, 4), (1 << 30, 6, 6), (1, 100, 2)],
    ids=['bytes', 'batches', 'one at least'])
def test_prefetching_is_bounded(tmp_path, max_bytes, max_store, most):
    """Bytes and number of batches are limits; one more is delivered."""
    with RayWorkers(ray_pipelines.Ahead(numbers(60, WIDTH), tmp_path),
                    num_workers=2, max_bytes=max_bytes,
                    max_store=max_store) as stream:
        for number, _ in enumerate(stream.get_epoch_iterator()):
            (tmp_path / f'taken-{number}').touch()
    ahead = {int(path.name.rpartition('-')[2])
             for path in tmp_path.glob('ahead-*')}
    assert 30 == number + 1
    # Each actor made one more batch, which had no room.
    assert max(ahead) <= most + 1 + 2


def test_error_has_the_traceback_of_the_actor():
    """The batches after it come."""
    plain = ray_pipelines.Failing(numbers())
    with RayWorkers(ray_pipelines.Failing(numbers()),
                    num_workers=2) as stream:
        outcomes = []
        for source in (plain, stream):
            read = []
            epoch = source.get_epoch_iterator()
            while len(read) < 20:
                try:
                    read.append(next(epoch)[1].tolist())
                except ValueError as error:
                    read.append(str(error))
                    caught = error
            outcomes.append(read)
        assert outcomes[0] == outcomes[1]
        assert 'in transform_any' in str(caught.__cause__)
        assert 'ray_pipelines.py' in str(caught.__cause__)


def test_stream_that_does_not_unpickle_says_so():
    """The error is the one that its class raises on the node."""
    with RayWorkers(ray_pipelines.Unloadable(numbers())) as stream, \
            pytest.raises(OSError, match='the tape is not mounted'):
        next(stream.get_epoch_iterator())


@pytest.mark.timeout(300)
def test_actors_that_die_again_and_again_are_given_up():
    """The text says where, and a new epoch tries again."""
    with RayWorkers(ray_pipelines.Dying(numbers()),
                    max_restarts=1) as stream:
        for batches in epochs_of(numbers(), 2):
            [number] = [number for number, batch in enumerate(batches)
                        if 7 in batch[1]]
            epoch = stream.get_epoch_iterator()
            assert batches[:number] == frozen(
                next(epoch) for _ in range(number))
            with pytest.raises(WorkerError, match=(
                    '2 actors of Dying died one after the other .* before '
                    f'they had made batch {number} of their share')):
                next(epoch)


def test_actor_of_a_stream_without_states_is_not_replaced():
    """Without a state, the next batch is not known."""
    with RayWorkers(ray_pipelines.Hiding(numbers()), max_store=2) as stream:
        epoch = stream.get_epoch_iterator()
        next(epoch)
        kill_one(stream)
        with pytest.raises(WorkerError, match='the pipeline has no state'):
            list(epoch)


def test_actor_that_gets_no_resources_is_reported():
    """The error names the needed and the free resources."""
    with RayWorkers(numbers(), resources={'CPU': 1, 'anvil': 2},
                    timeout=1) as stream, \
            pytest.raises(WorkerError, match=(
                r'has not started for 1 seconds .* 1 CPU, 2 anvil, .*'
                r'free are .* CPU')):
        next(stream.get_epoch_iterator())


def test_actors_are_scaled_between_epochs():
    """Their number grows and shrinks; remaining actors are kept."""
    expected = epochs_of(numbers(), 4)
    with RayWorkers(numbers()) as stream:
        assert expected[:1] == epochs_of(stream)
        kept = stream.worker_pids
        stream.scale(3)
        assert expected[1:2] == epochs_of(stream)
        assert kept == stream.worker_pids[:1]
        assert 3 == len(stream.worker_pids)
        stream.scale(2)
        assert expected[2:3] == epochs_of(stream)
        assert kept == stream.worker_pids[:1]
        assert 2 == len(stream.worker_pids)


@pytest.mark.parametrize('num_workers', [1, 3])
def test_epoch_that_is_read_while_another_is_scaled_goes_on(num_workers):
    """The remaining actors continue the epoch."""
    expected = epochs_of(numbers(), 1)[0]
    with RayWorkers(numbers(), num_workers=2) as stream:
        epoch = stream.get_epoch_iterator()
        read = frozen(next(epoch) for _ in range(7))
        stream.scale(num_workers)
        next(stream.get_epoch_iterator())
        assert expected == read + frozen(epoch)


def test_actors_that_stay_make_an_epoch_once():
    """They keep nothing of what they made for it with those that ended."""
    with RayWorkers(numbers(), num_workers=2) as stream:
        epoch = stream.get_epoch_iterator()
        next(epoch)
        stream.scale(1)
        other = stream.get_epoch_iterator()
        next(other)
        next(epoch)
        [actor] = stage_of(stream).get_team().actors
        assert 2 == len(actor.epochs)


def test_arguments_are_checked():
    """Errors are raised before any actor starts."""
    for options in ({'num_workers': 0}, {'max_store': 0}, {'max_bytes': -1},
                    {'max_restarts': -1}, {'resources': {'CPU': -1}},
                    {'resources': {'CPU': '1'}}):
        with pytest.raises((TypeError, ValueError)):
            RayWorkers(numbers(), **options)
    with pytest.raises(ValueError, match='so several workers'):
        RayWorkers(Unshared(numbers()), num_workers=2)
    stream = RayWorkers(Unshared(numbers()))
    with pytest.raises(ValueError, match='so several workers'):
        stream.scale(2)
    with pytest.raises(ValueError, match='RayWorkers takes no requests'):
        stream.get_data([1])


class Unshared(ray_pipelines.OneToOne):
    """Keeps something from one item to the next."""

    one_to_one = False


def test_actors_end_with_the_stream():
    """Their processes are gone."""
    stream = RayWorkers(Take(numbers(), 3))
    assert 3 == len(epochs_of(stream)[0])
    [actor] = stage_of(stream).get_team().actors
    stream.close()
    with pytest.raises(ray.exceptions.RayActorError):
        ray.get(actor._actor.locate.remote(), timeout=30)
    assert [] == stream.worker_pids


def test_stream_shows_where_it_runs():
    """The description names the actors."""
    stream = RayWorkers(numbers(), num_workers=2)
    assert '2 Ray actors' == stream.runs_in
    assert ('rows', 'numbers') == stream.sources
    assert 20 == len(stream)
    assert numpy.dtype('f8') == next(iter(
        partial(stream.get_epoch_iterator)()))[0].dtype
    stream.close()
