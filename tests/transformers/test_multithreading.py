"""`MultiThreading` gives what the stream itself would give, made ahead."""
import gc
import json
import logging
import operator
import os
import pickle
import random
import textwrap
import threading
import time
import traceback
from contextlib import suppress

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import pipelines, processes
from support.interrupting import collect
from support.process_pipelines import Noise, Slow, build_bad
from support.resuming import assert_resumes
from support.waiting import wait_until

import fuel
from fuel.datasets import IndexableDataset
from fuel.epochs.stage import stage_of
from fuel.exceptions import WorkerError
from fuel.schemes import SequentialScheme, ShuffledScheme
from fuel.streams import DataStream
from fuel.testing.data import freeze
from fuel.transformers import (
    Batch,
    Cast,
    Chain,
    Mapping,
    MultiProcessing,
    MultiThreading,
    Take,
    Transformer,
    Unpack,
)
from fuel.transformers.noise import GaussianNoise
from fuel.transformers.shuffling import ShuffleBuffer

pytestmark = pytest.mark.timeout(60)

N = 20


@pytest.fixture(scope='module')
def files(tmp_path_factory):
    """Return a folder with the files of the pipelines."""
    folder = tmp_path_factory.mktemp('files')
    pipelines.write_files(folder)
    return folder


@pytest.fixture
def ahead():
    """Return a maker of streams that are closed at the end."""
    made = []

    def make(stream, num_threads=2, **kwargs):
        made.append(MultiThreading(
            stream, num_threads=num_threads, **kwargs))
        return made[-1]

    yield make
    for stream in made:
        stream.close()
    assert own_threads() == []


def twice(data):
    """Return twice the only source."""
    return 2 * data[0],


def own_threads():
    """Return the threads that belong to such streams."""
    return [thread.name for thread in threading.enumerate()
            if thread.name.startswith('fuel-')]


def numbers(size=2, shuffled=True):
    """Return batches of floating-point numbers."""
    scheme = ShuffledScheme if shuffled else SequentialScheme
    return DataStream(IndexableDataset({'x': numpy.arange(float(N))}),
                      iteration_scheme=scheme(N, size))


def pure(stream, function):
    """Return a stage of a function of one array that threads may call."""
    return Mapping(stream, lambda data: (function(data[0]),), pure=True)


class Raised:
    """An error, equal to another one with the same text and notes.

    The note of its examples may be missing where the stream below was read to
    its end before.
    """

    def __init__(self, error):
        self.said = type(error), str(error)
        notes = [note for note in getattr(error, '__notes__', ())
                 if 'in stage MultiThreading' not in note]
        self.examples = [note for note in notes if 'of the data set' in note]
        self.notes = [note for note in notes if 'of the data set' not in note]

    def __eq__(self, other):
        return isinstance(other, Raised) and (self.said, self.notes) == (
            other.said, other.notes) and (
                self.examples == other.examples
                or not self.examples or not other.examples)

    def __hash__(self):
        return hash(self.said)

    def __repr__(self):
        return f'{self.said} {self.examples} {self.notes}'


def outcome(epoch):
    """Return the next item, or what was raised in its place."""
    try:
        return freeze(next(epoch))
    except StopIteration:
        return None
    except Exception as error:  # noqa: BLE001
        return Raised(error)


@pytest.mark.pipelines(besides=pipelines.REFUSED_BY_THREADS)
def test_every_pipeline_has_the_same_items_and_states(pipeline, files, ahead):
    """They are equal at each step, and in the epochs after it."""
    plain, threads = pipelines.build(pipeline, files), ahead(
        pipelines.build(pipeline, files))
    for _ in range(2):
        one, other = plain.get_epoch_iterator(), threads.get_epoch_iterator()
        for _ in range(12):
            assert outcome(one) == outcome(other)
            assert plain.state_dict() == json.loads(
                json.dumps(threads.state_dict()))
        del one, other


def fail_at(bad):
    """Return a function that fails for batches with one of some numbers."""
    def check(array):
        if set(bad) & set(numpy.ravel(array).tolist()):
            raise ArithmeticError(f'bad: {array.tolist()}')
        return array
    return check


STAGES = {
    'cast': lambda stream, _: Cast(stream, 'float32'),
    'pure': lambda stream, _: pure(stream, lambda x: x + 0),
    'pure and slow': lambda stream, _: pure(stream, nap),
    'pure and bad': lambda stream, bad: pure(stream, fail_at(bad)),
    'in order': lambda stream, _: Mapping(stream, lambda data: data),
    'in order and bad': lambda stream, bad: Mapping(
        stream, lambda data: (fail_at(bad)(data[0]),)),
    'noise': lambda stream, _: Noise(stream),
    'seeded': lambda stream, _: GaussianNoise(stream, 1.),
    'batch': lambda stream, _: Batch(Unpack(stream), batch_size=3),
    'buffer': lambda stream, _: Batch(
        ShuffleBuffer(Unpack(stream), 5), batch_size=2),
    'take': lambda stream, _: Take(stream, 6),
}


def nap(array):
    """Take a while, each array another."""
    time.sleep(0.002 * (int(numpy.sum(array)) % 3))
    return array


@given(names=st.lists(st.sampled_from(sorted(STAGES)), max_size=5),
       bad=st.sets(st.integers(0, N - 1), max_size=2),
       num_threads=st.integers(1, 4), max_store=st.sampled_from([1, 2, 10]),
       size=st.integers(1, 4), step=st.integers(0, 12))
def test_random_pipelines_are_the_same_also_where_they_fail(
        names, bad, num_threads, max_store, size, step):
    """Their states fit the stream itself, and the reverse."""
    def build():
        stream = numbers(size)
        for name in names:
            stream = STAGES[name](stream, bad)
        return stream

    def threads():
        return MultiThreading(
            build(), max_store, num_threads=num_threads)

    plain = build()
    with threads() as stream, threads() as restored:
        one, other = plain.get_epoch_iterator(), stream.get_epoch_iterator()
        for _ in range(step):
            assert outcome(one) == outcome(other)
            assert plain.state_dict() == stream.state_dict()
        state = json.loads(json.dumps(stream.state_dict()))
        again = build()
        again.load_state_dict(state)
        restored.load_state_dict(state)
        streams = plain, stream, again, restored
        epochs = [one, other, again.get_epoch_iterator(),
                  restored.get_epoch_iterator()]
        if state['epoch'] == 'finished':
            # The restored ones begin the next epoch.
            epochs[:2] = [each.get_epoch_iterator() for each in streams[:2]]
        for _ in range(14):
            expected, *found = map(outcome, epochs)
            assert found == [expected] * 3
        # The next epoch, too, after one that was left.
        del one, other, epochs
        epochs = [each.get_epoch_iterator() for each in streams]
        for _ in range(3):
            expected, *found = map(outcome, epochs)
            assert found == [expected] * 3


@pytest.mark.parametrize('taken', [0, 1, 4])
def test_states_go_from_threads_to_processes_and_back(taken, ahead):
    """Both have the states of the stream that they read."""
    def build():
        return Cast(Noise(numbers()), 'float32')

    plain, threads = build(), ahead(build())
    one, other = plain.get_epoch_iterator(), threads.get_epoch_iterator()
    for _ in range(taken):
        assert outcome(one) == outcome(other)
    with MultiProcessing(build(), start_method='fork') as forked:
        forked.load_state_dict(threads.state_dict())
        epoch = forked.get_epoch_iterator()
        assert outcome(one) == outcome(epoch) == outcome(other)
        back = ahead(build())
        back.load_state_dict(forked.state_dict())
    epoch = back.get_epoch_iterator()
    for _ in range(8):
        assert outcome(one) == outcome(epoch)


@pytest.mark.parametrize('taken', range(0, 11, 2))
def test_epoch_that_is_left_is_followed_by_the_next(taken, ahead):
    """Items made ahead do not count."""
    plain, threads = Noise(numbers()), ahead(
        pure(Noise(numbers()), numpy.copy))
    for _ in range(3):
        one, other = plain.get_epoch_iterator(), threads.get_epoch_iterator()
        for _ in range(taken):
            assert outcome(one) == outcome(other)
        del one, other


def test_stage_that_ends_early_leaves_the_streams_below_where_they_are(
        ahead):
    """The stages below it could prefetch beyond the end."""
    def build():
        return Take(Cast(Noise(numbers()), 'float32'), 3)

    plain, threads = build(), ahead(build())
    for _ in range(3):
        one, other = plain.get_epoch_iterator(), threads.get_epoch_iterator()
        for _ in range(4):
            assert outcome(one) == outcome(other)
            assert plain.state_dict() == threads.state_dict()


def test_stage_above_resumes_behind_the_end(ahead):
    """It has items left when the threads have none."""
    def build():
        first, second = [DataStream(
            IndexableDataset(list(range(size))), batch_size=1, shuffle=True)
            for size in (3, 2)]
        return Batch(Unpack(Chain([ahead(first), second])), batch_size=2)

    assert_resumes(build)


class Remembering(Transformer):
    """Keeps a list of what it has read, and shows it to states."""

    epoch_attributes = (*Transformer.epoch_attributes, 'seen')

    def __init__(self, data_stream):
        super().__init__(data_stream, False)

    def start_epoch(self):
        """Begin anew."""
        super().start_epoch()
        self.seen = []

    def get_data(self, request=None):
        """Return the next batch."""
        data = next(self.child_epoch_iterator)
        self.seen.append(float(data[0][0]))
        return data

    def get_leftover(self):
        """Return the list itself, which goes on to grow."""
        return self.seen

    def set_leftover(self, leftover):
        """Take up a list."""
        self.seen = leftover


def test_states_are_of_the_moment_when_an_item_was_read(ahead):
    """A state does not change with the stage's later changes."""
    plain, threads = Remembering(numbers()), ahead(
        pure(Remembering(numbers()), nap))
    one, other = plain.get_epoch_iterator(), threads.get_epoch_iterator()
    for _ in range(N // 2):
        assert outcome(one) == outcome(other)
        assert plain.state_dict() == threads.state_dict()['children'][0] | {
            field: plain.state_dict()[field] for field in (
                'crc', 'data_id', 'order_id', 'past')}


def test_ranks_share_the_order(ahead):
    """A rank's threads read its share alone."""
    found = []
    for rank in range(2):
        share = ahead(pure(numbers(), lambda x: x)).shard(rank, 2)
        found += [x.tolist() for x, in share.get_epoch_iterator()]
        share.close()
    expected = [x.tolist() for x, in numbers().get_epoch_iterator()]
    assert sorted(found) == sorted(expected)


def test_pure_stages_run_at_the_same_time(ahead):
    """As many run as there are threads, however deep in the pipeline."""
    barrier = threading.Barrier(3)

    def meet(array):
        with suppress(threading.BrokenBarrierError):
            barrier.wait(20)
        return array

    stream = Noise(pure(Mapping(numbers(1), tuple), meet))
    expected = list(Noise(numbers(1)).get_epoch_iterator())
    # The last ones of an epoch would wait for others.
    found = ahead(Take(stream, 18), 3).get_epoch_iterator()
    for (one,), (other,) in zip(expected, found, strict=False):
        assert (one == other).all()
    assert not barrier.broken
    barrier.abort()


class Watched:
    """Counts how often it is called, and at the same time."""

    def __init__(self, seconds=0.001):
        self.seconds = seconds
        self.calls = self.now = self.most = 0
        self.lock = threading.Lock()
        self.seen = []

    def __call__(self, data):
        """Return the data as they are."""
        with self.lock:
            self.calls += 1
            self.now += 1
            self.most = max(self.most, self.now)
            self.seen.append(data[0].tolist())
        time.sleep(self.seconds)
        with self.lock:
            self.now -= 1
        return data


def test_other_stages_run_one_after_another_and_in_order(ahead):
    """A function that does not say that it is pure, and its data set."""
    below, above, pure_one = Watched(), Watched(), Watched(0.02)
    stream = Mapping(Mapping(
        Mapping(numbers(1), below), pure_one, pure=True), above)
    expected = [x.tolist() for x, in numbers(1).get_epoch_iterator()]
    list(ahead(stream, 4).get_epoch_iterator())
    assert below.seen == above.seen == expected
    assert (below.most, above.most) == (1, 1)
    assert 1 < pure_one.most <= 4
    assert sorted(pure_one.seen) == sorted(expected)


def test_no_more_is_made_than_there_is_room_for(ahead):
    """Those that wait, and twice as many as threads in work."""
    read, made = Watched(0), Watched(0.05)
    stream = Mapping(Mapping(numbers(1), read), made, pure=True)
    epoch = ahead(stream, 2, max_store=3).get_epoch_iterator()
    next(epoch)
    wait_until(lambda: read.calls >= 4)
    time.sleep(0.5)
    assert 4 <= made.calls <= read.calls <= 1 + 3 + 2 * 2
    assert len(list(epoch)) == N - 1


def test_error_comes_in_its_turn_with_its_traceback(ahead):
    """The items before it are delivered, and those after it follow."""
    stream = Cast(pure(numbers(1, False), check_five), 'int')
    epoch = ahead(stream).get_epoch_iterator()
    assert [next(epoch)[0].item() for _ in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(ZeroDivisionError) as caught:
        next(epoch)
    assert 'in check_five' in ''.join(
        traceback.format_exception(caught.value))
    assert caught.value.__notes__ == [
        'example 5 of the data set', 'in stage Mapping, item 5 of the epoch',
        'in stage Cast, item 5 of the epoch',
        'in stage MultiThreading, item 5 of the epoch']
    assert [item.item() for item, in epoch] == [*range(6, N)]


def check_five(array):
    """Fail for one number."""
    return array + (1 // 0 if 5 in array else 0)


def test_error_of_a_data_set_comes_in_its_turn(ahead):
    """It is read ahead, too."""
    plain, other = build_bad(), ahead(pure(build_bad(), lambda x: x))
    one, other = plain.get_epoch_iterator(), other.get_epoch_iterator()
    for _ in range(8):
        expected, found = outcome(one), outcome(other)
        if isinstance(expected, Raised):
            assert found.said == expected.said
            assert found.notes[:len(expected.notes)] == expected.notes
        else:
            assert expected == found


@pytest.mark.parametrize('is_pure', [False, True])
@pytest.mark.parametrize('error', [SystemExit, KeyboardInterrupt])
def test_what_would_end_a_thread_is_an_error(ahead, is_pure, error):
    """Nobody waits for a thread that is gone."""
    def end(data):
        raise error

    epoch = ahead(Mapping(
        numbers(), end, pure=is_pure)).get_epoch_iterator()
    with pytest.raises((RuntimeError, WorkerError),
                       match=error.__name__) as caught:
        next(epoch)
    assert isinstance(caught.value.__cause__, error)


def test_epoch_goes_on_where_no_thread_can_be_started(ahead, monkeypatch):
    """An item that has none is made by who waits for it."""
    start, refused = threading.Thread.start, []

    def start_some(thread):
        if thread.name.endswith('-pure-0') and len(refused) < 3:
            refused.append(thread)
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, 'start', start_some)
    epoch = ahead(Mapping(DataStream(
        IndexableDataset(numpy.arange(10)),
        iteration_scheme=SequentialScheme(10, 1)), twice, pure=True),
        timeout=20).get_epoch_iterator()
    assert [*range(0, 20, 2)] == [int(data[0]) for data, in epoch]
    assert len(refused) == 3


def test_threads_that_did_not_start_after_a_fork_start_when_they_are_needed(
        ahead, monkeypatch):
    """The process may have had as many as it may."""
    stream = ahead(pure(numbers(shuffled=False), numpy.negative), timeout=20,
                   max_store=1)
    epoch = stream.get_epoch_iterator()
    begin = [int(next(epoch)[0][0]) for _ in range(3)]
    crews = [stage_of(stream).team.workers[0]._producer.in_order,
             stage_of(stream).team.workers[0]._producer.in_any_order]
    gate = threading.Event()
    crews[0].submit(lambda: gate.wait(20))
    threading.Timer(0.2, gate.set).start()
    for crew in crews:
        assert crew.pause(time.monotonic() + 20)
    crews[0].submit(int)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, 'start', refuse_to_start)
        for crew in crews:
            crew.resume()
    assert own_threads() == []
    assert [*range(0, -N, -2)] == begin + [
        int(data[0]) for data, in epoch]


def refuse_to_start(thread):
    """Do what Python does where there are too many."""
    raise RuntimeError("can't start new thread")


def test_stop_iteration_of_a_function_ends_no_epoch(ahead):
    """It ends none without threads either."""
    epoch = ahead(pure(numbers(), lambda x: next(iter(())))
                  ).get_epoch_iterator()
    with pytest.raises(RuntimeError, match='raised StopIteration'):
        next(epoch)


@pytest.mark.parametrize('draw', [
    random.random, lambda: numpy.random.uniform(), lambda: random.seed(5),
    lambda: numpy.random.seed(5)])
@pytest.mark.parametrize('is_pure', [False, True])
def test_stage_that_draws_from_the_global_generators_is_refused(
        draw, is_pure, ahead):
    """The threads' timing would decide who draws first."""
    def function(data):
        draw()
        return data

    # The tests may begin with the same seed, which would change nothing.
    random.random()
    numpy.random.uniform()
    stream = ahead(Mapping(numbers(), function, pure=is_pure))
    for _ in range(2):
        epoch = stream.get_epoch_iterator()
        for _ in range(2):
            with pytest.raises(ValueError, match='numpy.random or random'):
                next(epoch)


@pytest.mark.parametrize('generator', [
    random.random.__self__, numpy.random.get_state.__self__])
def test_global_generator_of_a_stage_is_refused_at_once(generator):
    """One of a scheme is refused, too."""
    stage = Noise(numbers())
    stage.rng = generator
    with pytest.raises(ValueError, match='of Noise is that of numpy.random'):
        MultiThreading(Cast(stage, 'float32'))
    stream = numbers()
    stream.iteration_scheme.rng = generator
    with pytest.raises(ValueError, match='generator of DataStream'):
        MultiThreading(stream)


def test_program_may_draw_while_threads_work(ahead):
    """It draws before the first batch, and after it."""
    stream = ahead(Slow(numbers(), 0.005))
    epoch = stream.get_epoch_iterator()
    for _ in range(10):
        numpy.random.uniform(), random.random()
        next(epoch)
    with pytest.raises(StopIteration):
        next(epoch)


def test_threads_end_with_the_stream():
    """Close, a with statement, and the collector end them."""
    stream = MultiThreading(pure(numbers(), nap), num_threads=3)
    epoch = stream.get_epoch_iterator()
    assert own_threads() == []
    next(epoch)
    assert 2 <= len(own_threads()) <= 4
    stream.close()
    assert own_threads() == []
    # The next item follows the last delivered one.
    assert len(list(stream.get_epoch_iterator())) == N // 2
    del stream, epoch
    gc.collect()
    assert own_threads() == []
    with MultiThreading(pure(numbers(), nap)) as stream:
        next(iter(stream))
    assert own_threads() == []


PROGRAM = """
    import sys, time
    from fuel.datasets import IndexableDataset
    from fuel.streams import DataStream
    from fuel.transformers import Mapping, MultiThreading
    def nap(data):
        time.sleep(0.05)
        return data
    numbers = DataStream(IndexableDataset(list(range(999))), batch_size=1)
    stream = MultiThreading(Mapping(numbers, nap, pure={pure}), 500)
    epoch = stream.get_epoch_iterator()
    next(epoch)
    print('ended', flush=True)
    {end}
"""


@pytest.mark.parametrize('is_pure', [False, True])
@pytest.mark.parametrize('end, status', [
    ('pass', 0), ('sys.exit(3)', 3), ('del stream, epoch', 0)])
def test_interpreter_ends_while_threads_work(tmp_path, end, status, is_pure):
    """It ends at once, and prints nothing."""
    path = tmp_path / 'program.py'
    path.write_text(textwrap.dedent(PROGRAM).format(pure=is_pure, end=end))
    begin = time.monotonic()
    assert processes.run_python(str(path)) == (status, b'ended\n', b'')
    assert time.monotonic() - begin < 30


def test_ctrl_c_at_any_time_loses_nothing(ahead):
    """A loop that goes on has each item once."""
    def slow(array):
        time.sleep(0.003)
        return array

    dataset = IndexableDataset({'x': numpy.arange(400)})
    stream = ahead(pure(DataStream(
        dataset, iteration_scheme=SequentialScheme(400, 1)), slow),
        max_store=2)
    epoch = stream.get_epoch_iterator()
    first = map(operator.itemgetter(0), map(operator.itemgetter(0), epoch))

    def check(seen):
        assert [*range(len(seen))] == list(map(int, seen))

    found = collect(first, check, 3)
    assert [*range(400)] == list(map(int, found))


def test_child_of_a_fork_makes_threads_of_its_own(ahead):
    """Those of the parent go on, and no lock stays taken."""
    stream = ahead(pure(Slow(numbers(1), 0.001), nap), max_store=2)
    expected = [x.tolist() for x, in numbers(1).get_epoch_iterator()]
    epoch = stream.get_epoch_iterator()
    found = [next(epoch)[0].tolist()]
    for _ in range(5):
        child = os.fork()
        if not child:
            status = 1
            try:
                assert own_threads() == []
                with pytest.raises(WorkerError, match='its child'):
                    next(epoch)
                assert len(list(stream.get_epoch_iterator())) == N
                stream.close()
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        found.append(next(epoch)[0].tolist())
    found += [x.tolist() for x, in epoch]
    assert found == expected


def test_forks_while_a_stage_takes_long_are_told(ahead, monkeypatch, caplog):
    """The fork waits for a while, and no longer."""
    monkeypatch.setattr('fuel.utils.crew._JOIN_SECONDS', 0.1)
    begun, go_on = threading.Event(), threading.Event()
    stream = ahead(Mapping(numbers(), lambda data: (
        begun.set(), go_on.wait(20), data)[-1]))
    epoch = stream.get_epoch_iterator()
    thread = threading.Thread(target=next, args=(epoch,))
    thread.start()
    begun.wait(20)
    caplog.set_level(logging.WARNING)
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    go_on.set()
    thread.join()
    assert 'forks while threads of fuel-Mapping run' in caplog.text


@pytest.mark.parametrize('is_pure', [False, True])
def test_threads_that_make_nothing_are_told_with_their_stacks(
        ahead, is_pure):
    """The error comes after `timeout` seconds."""
    go_on = threading.Event()

    def hang(data):
        go_on.wait(20)
        return data

    epoch = ahead(Mapping(numbers(), hang, pure=is_pure),
                  timeout=0.3).get_epoch_iterator()
    with pytest.raises(WorkerError, match=r'(?s)0\.3 seconds.*in hang'):
        next(epoch)
    go_on.set()
    # It was only slow.
    assert len(list(epoch)) == N // 2


def test_close_by_another_thread_ends_the_wait(ahead):
    """A reader that waits for a batch gets an error."""
    begun, go_on = threading.Event(), threading.Event()
    stream = ahead(Mapping(numbers(), lambda data: (
        begun.set(), go_on.wait(20), data)[-1]))
    errors = []

    def read():
        try:
            next(stream.get_epoch_iterator())
        except WorkerError as error:
            errors.append(str(error))

    thread = threading.Thread(target=read)
    thread.start()
    begun.wait(20)
    threading.Timer(0.3, go_on.set).start()
    stream.close()
    thread.join()
    assert 'closed by another thread' in errors[0]


def test_text_and_pickle(ahead):
    """It says where stages run, and a pickle has no threads."""
    stream = ahead(Cast(numbers(), 'float32'), 2)
    assert 'in 2 threads\n' in repr(stream)
    assert 'in 1 thread\n' in repr(MultiThreading(numbers(), num_threads=1))
    assert MultiThreading(numbers()).num_threads == fuel.config.num_threads
    epoch = stream.get_epoch_iterator()
    head = [next(epoch), next(epoch)]
    copy = pickle.loads(pickle.dumps(epoch))
    rest = [x.tolist() for x, in epoch]
    assert len(head) + len(rest) == N // 2
    assert [x.tolist() for x, in copy] == rest
    copy.data_stream.close()


def test_profile_says_what_the_stages_took(ahead):
    """Stages that run at once count their work, not their waiting."""
    def slow(array):
        time.sleep(0.004)
        return array

    stream = ahead(Cast(pure(Mapping(
        numbers(1), lambda data: data), slow), 'float32'))
    before = stream.state_dict()
    profile = fuel.profile(stream, batches=30, warm_up=0)
    assert stream.state_dict() == before
    assert [(stage.name, stage.runs_in) for stage in profile.stages] == [
        ('MultiThreading', '2 threads'), ('Cast', '2 threads'),
        ('Mapping(<lambda>)', '2 threads'),
        ('Mapping(<lambda>)', '2 threads'), ('DataStream', '2 threads')]
    found = profile.stages[2]
    assert found.seconds > 0.9 * 0.004 * 30
    assert found.share > 0.7
    # An epoch that was running is measured, and goes on.
    epoch = stream.get_epoch_iterator()
    head = [next(epoch)[0].item() for _ in range(3)]
    stream.measurements()
    rest = [x.item() for x, in epoch]
    stages = stream.measurements().interval.stages
    assert sorted(head + rest) == [*range(N)]
    assert stages[2].work_seconds >= 0.9 * 0.004 * len(rest) / 2


@pytest.mark.parametrize('draws', [False, True])
def test_program_may_draw_after_an_error_of_threads_that_are_late(draws):
    """A stage that is late is not taken for one that draws; one that draws
    is found at the next batch."""
    begun, go_on = threading.Event(), threading.Event()

    def wait(batch):
        begun.set()
        assert go_on.wait(20)
        return batch if not draws else (batch[0] + random.random(),)

    stream = DataStream(IndexableDataset(numpy.arange(8)), batch_size=2)
    with MultiThreading(Mapping(stream, wait), timeout=0.3) as ahead:
        epoch = iter(ahead)
        with pytest.raises(WorkerError, match='have made nothing'):
            next(epoch)
        assert begun.wait(20)
        random.random()
        go_on.set()
        if not draws:
            assert [0, 1, 2, 3, 4, 5, 6, 7] == [
                number for batch, in epoch for number in batch]
            return
        with pytest.raises(ValueError, match='draws from numpy.random'):
            list(epoch)


@pytest.mark.parametrize('num_threads', [1, 3])
def test_stages_above_rows_that_are_left_out_run_in_threads(num_threads):
    """The rest of a batch is made again, and passes all of them."""
    stream = DataStream(IndexableDataset(numpy.arange(40)), batch_size=4,
                        on_error='skip', max_skipped=40)
    for number in 3, 5, 7:
        stream = Cast(Mapping(stream, fails_at(number), pure=True), 'float64')
    with MultiThreading(stream, num_threads=num_threads) as ahead:
        for _ in range(2):
            assert [row for row in range(40) if row % 9 not in {3, 5, 7}] == [
                row for batch, in ahead for row in batch.tolist()]


def fails_at(number):
    """Return a function that fails for rows that leave a remainder of 9."""
    def check(batch):
        if (batch[0] % 9 == number).any():
            raise ValueError('a bad row')
        return batch
    return check
