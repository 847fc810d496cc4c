"""Chainer's iterators on Fuel's engine, without Chainer."""
import copy
import json
import os
import pickle
import signal
from functools import partial

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.chainer_sets import Failing, Sampler, Slow
from support.chainer_snapshots import restore, snapshot
from support.processes import run_python

from fuel.datasets import IndexableDataset, IterableDataset
from fuel.exceptions import StateMismatchError, WorkerError
from fuel.interop.chainer import (
    Iterator,
    MultiprocessIterator,
    MultithreadIterator,
    OrderSampler,
    SerialIterator,
    ShuffleOrderSampler,
    as_dataset,
    as_iterator,
    concat_examples,
)
from fuel.schemes import ConstantScheme, SequentialScheme, ShuffledScheme
from fuel.streams import DataStream
from fuel.transformers import (
    Batch,
    Filter,
    MultiProcessing,
    Transformer,
    Unpack,
)

KINDS = {
    'serial': SerialIterator,
    'threads': partial(MultithreadIterator, n_threads=3),
    'processes': partial(MultiprocessIterator, n_processes=2),
}
FAST = ['serial', 'threads']


class Reference:
    """The interface in twenty lines, as the document words it."""

    def __init__(self, n, batch_size, repeat, rng=None):
        self.n, self.batch_size, self.repeat = n, batch_size, repeat
        self.rng, self.done, self.previous = rng, 0, None
        self.is_new_epoch = False
        self.orders = [self.draw()]

    def draw(self):
        return (numpy.arange(self.n) if self.rng is None
                else self.rng.permutation(self.n)).tolist()

    def next(self):
        stop = self.done + self.batch_size
        if not self.repeat:
            stop = min(stop, self.n)
        if stop == self.done:
            raise StopIteration
        while len(self.orders) * self.n <= stop:
            self.orders.append(self.draw())
        self.previous, epoch = self.done / self.n, self.done // self.n
        batch = sum(self.orders, [])[self.done:stop]
        self.done = stop
        self.is_new_epoch = self.done // self.n > epoch
        return batch


@given(st.integers(1, 9), st.integers(1, 12), st.booleans(), st.booleans(),
       st.sampled_from(FAST), st.integers(1, 9))
def test_iterator_goes_over_the_data_set_sweep_after_sweep(
        n, batch_size, repeat, shuffle, kind, steps):
    """Batches, attributes and values are right for any size, order and end."""
    seed = numpy.random.RandomState
    expected = Reference(n, batch_size, repeat, seed(5) if shuffle else None)
    iterator = KINDS[kind](list(range(n)), batch_size, repeat, **(
        {'order_sampler': ShuffleOrderSampler(seed(5))} if shuffle
        else {'shuffle': False}))
    assert (0, 0., None, False) == (
        iterator.epoch, iterator.epoch_detail,
        iterator.previous_epoch_detail, iterator.is_new_epoch)
    for _ in range(steps):
        try:
            batch = expected.next()
        except StopIteration:
            for _ in range(2):
                with pytest.raises(StopIteration):
                    iterator.next()
            break
        assert batch == next(iterator)
        assert expected.done // n == iterator.epoch
        assert expected.done % n == iterator.current_position
        assert expected.done / n == pytest.approx(iterator.epoch_detail)
        assert expected.previous == pytest.approx(
            iterator.previous_epoch_detail)
        assert expected.is_new_epoch == iterator.is_new_epoch


@pytest.mark.parametrize('kind', KINDS)
def test_iterator_has_the_attributes_of_the_interface(kind):
    """An iterator is a context manager too, and can be finalized twice."""
    with KINDS[kind](list(range(7)), 3, shuffle=False) as iterator:
        assert isinstance(iterator, Iterator)
        assert iter(iterator) is iterator
        assert (3, True, False) == (
            iterator.batch_size, iterator.repeat, iterator.shuffle)
        assert [0, 1, 2] == iterator.next()
        iterator.finalize()
        iterator.finalize()
        assert [3, 4, 5] == iterator.next()
        assert 'over 7 examples' in repr(iterator)


@pytest.mark.parametrize('kind', KINDS)
def test_iterator_is_reset_to_its_first_batch(kind):
    """Nothing remains of the sweep before."""
    with KINDS[kind](list(range(7)), 3, shuffle=False) as iterator:
        iterator.next()
        iterator.reset()
        assert (0, None) == (iterator.epoch, iterator.previous_epoch_detail)
        assert [0, 1, 2] == iterator.next()


def test_iterator_shuffles_unless_told_otherwise():
    """The order is that of the default seed; two give the same."""
    batches = [SerialIterator(list(range(20)), 20).next() for _ in range(2)]
    assert batches[0] == batches[1] != list(range(20))
    assert list(range(20)) == sorted(batches[0])
    assert batches[0] == SerialIterator(
        list(range(20)), 20, shuffle=True).next()


def test_sampler_gets_the_last_order_and_the_position():
    """The first call gets the numbers of the examples, and 0."""
    seen = []

    def backwards(order, position):
        seen.append((order.tolist(), position))
        order[:] = order[::-1].copy()
        return order

    iterator = SerialIterator('abcd', 3, order_sampler=backwards)
    assert [['d', 'c', 'b'], ['a', 'a', 'b']] == [
        iterator.next(), iterator.next()]
    assert [([0, 1, 2, 3], 0), ([3, 2, 1, 0], 3)] == seen


def test_sampler_may_leave_out_and_repeat_examples():
    """Its order is what a sweep is."""
    iterator = SerialIterator(
        'abcd', 3, repeat=False, order_sampler=lambda order, place: [2, 2])
    assert [['c', 'c']] == list(iterator)
    assert 1. == iterator.epoch_detail


@pytest.mark.parametrize('order, text', [
    ([0, 4], 'from 0 to 3'), ([-1], 'from 0'), ([.5], 'integers'),
    ([[0]], 'one-dimensional'), (None, 'one-dimensional')])
def test_sampler_with_a_wrong_order_is_refused(order, text):
    """It is refused before an example is read."""
    with pytest.raises(ValueError, match=text):
        SerialIterator('abcd', 2, order_sampler=lambda *_: order)


def test_sampler_that_changes_the_size_of_a_sweep_is_refused():
    """The position would mean something else."""
    iterator = SerialIterator(
        'abcd', 2, order_sampler=lambda order, place: order[1:])
    iterator.next()
    with pytest.raises(ValueError, match='as many indices each time'):
        iterator.next()
    with pytest.raises(NotImplementedError, match='__call__'):
        OrderSampler()(numpy.arange(2), 0)


@pytest.mark.parametrize('kind', KINDS)
@pytest.mark.parametrize('options, error, text', [
    ({'shuffle': True, 'order_sampler': ShuffleOrderSampler()},
     ValueError, 'cannot both be given'),
    ({'batch_size': 0}, ValueError, 'batch_size'),
    ({'batch_size': 2.}, TypeError, 'batch_size'),
    ({'dataset': []}, ValueError, 'without examples'),
])
def test_iterator_refuses_arguments(kind, options, error, text):
    """The error names the argument."""
    with pytest.raises(error, match=text):
        KINDS[kind](**{'dataset': [1], 'batch_size': 1, **options})


def test_numbers_of_helpers_are_checked():
    """They are checked as all counts are."""
    with pytest.raises(ValueError, match='n_threads'):
        MultithreadIterator([1], 1, n_threads=0)
    for name in ('n_processes', 'shared_mem', 'maxtasksperchild'):
        with pytest.raises(ValueError, match=name):
            MultiprocessIterator([1], 1, **{name: 0})
    with pytest.raises(ValueError, match='n_prefetch'):
        MultiprocessIterator([1], 1, n_prefetch=-1)


@pytest.mark.parametrize('kind', KINDS)
def test_empty_data_set_has_no_batches(kind):
    """Without repetition, the end comes at once."""
    iterator = KINDS[kind]([], 3, repeat=False)
    assert [] == list(iterator)
    assert 0. == iterator.epoch_detail


def draw(iterator, count):
    """Return the next batches, and what the iterator says of each."""
    return [(iterator.next(), iterator.epoch, iterator.epoch_detail,
             iterator.previous_epoch_detail, iterator.is_new_epoch)
            for _ in range(count)]


def build(kind, seed=3):
    """Return an iterator over seven examples."""
    return KINDS[kind](list(range(7)), 3, order_sampler=ShuffleOrderSampler(
        numpy.random.RandomState(seed)))


@pytest.mark.parametrize('writer, reader', [
    ('serial', 'serial'), ('threads', 'threads'), ('processes', 'processes'),
    ('serial', 'processes'), ('processes', 'threads')])
def test_snapshot_resumes_with_the_very_next_batch(writer, reader):
    """It resumes after any batch, also in another kind of iterator."""
    with build('serial') as plain:
        expected = draw(plain, 12)
    iterator = build(writer)
    for done in range(6):
        saved = snapshot(iterator)
        resumed = restore(build(reader, seed=99), saved)
        if done:
            assert expected[done - 1][1:] == (
                resumed.epoch, resumed.epoch_detail,
                resumed.previous_epoch_detail, resumed.is_new_epoch)
        assert expected[done:done + 4] == draw(resumed, 4)
        resumed.finalize()
        assert expected[done:done + 1] == draw(iterator, 1)
    iterator.finalize()


@pytest.mark.parametrize('kind', KINDS)
def test_iterator_that_has_run_takes_up_a_snapshot(kind):
    """Prefetched batches are dropped."""
    iterator = build(kind)
    draw(iterator, 2)
    saved = snapshot(iterator)
    expected = draw(iterator, 5)
    assert expected == draw(restore(iterator, saved), 5)
    iterator.finalize()


def test_writing_a_snapshot_keeps_what_was_prefetched():
    """Processes are not started anew for it."""
    iterator = build('processes')
    iterator.next()
    pids = iterator._stream.worker_pids
    snapshot(iterator)
    iterator.next()
    assert pids == iterator._stream.worker_pids
    iterator.finalize()


def test_snapshot_has_what_changes_and_nothing_else():
    """It has position, order and generator, but not the batch size."""
    saved = snapshot(build('serial'))
    assert {'current_position', 'epoch', 'is_new_epoch', 'order',
            'previous_epoch_detail', 'generators',
            'generators_size'} == set(saved)
    assert 'order' not in snapshot(SerialIterator([1], 1, shuffle=False))


def test_snapshot_of_chainer_itself_is_taken():
    """Chainer's snapshot has no generator; old ones have less."""
    iterator = build('serial')
    draw(iterator, 2)
    saved = snapshot(iterator)
    for name in ('generators', 'generators_size', 'previous_epoch_detail'):
        del saved[name]
    saved['_order'] = saved.pop('order')
    resumed = restore(build('serial', seed=9), saved)
    assert iterator.next()[0] == resumed.next()[0]
    assert pytest.approx(6 / 7) == resumed.previous_epoch_detail


@pytest.mark.parametrize('name, value, text', [
    ('current_position', 7, "'current_position' of the snapshot is 7"),
    ('current_position', -1, 'at least 0'),
    ('epoch', -3, 'at least 0'),
    ('order', numpy.arange(5), "no 'order' of 7"),
    ('order', numpy.arange(7) + 1, "no 'order' of 7"),
    ('generators_size', 2 ** 40, 'more than a state'),
    ('generators', 'no JSON', 'cannot be read'),
    ('generators', '[]', '0 generators'),
    ('generators', '[{"kind": "random.Random", "state": 1}]', 'same kind'),
])
def test_damaged_snapshot_is_refused_and_changes_nothing(name, value, text):
    """The error names the damaged part."""
    saved = snapshot(build('serial'))
    if isinstance(value, str):
        saved['generators_size'] = numpy.array(len(value))
        value = numpy.frombuffer(value.encode(), numpy.uint8)
    saved[name] = numpy.array(value)
    iterator = build('serial')
    with pytest.raises(StateMismatchError, match=text):
        restore(iterator, saved)
    assert draw(build('serial'), 6) == draw(iterator, 6)


def test_snapshot_without_shuffling_does_not_fit_one_with():
    """The order is missing."""
    saved = snapshot(SerialIterator(list(range(7)), 3, shuffle=False))
    with pytest.raises(StateMismatchError, match="no 'order'"):
        restore(build('serial'), saved)


CODE = """
import json, sys
import numpy
from support.chainer_snapshots import restore, snapshot
from fuel.interop.chainer import MultiprocessIterator, ShuffleOrderSampler

iterator = MultiprocessIterator(list(range(7)), 3, n_processes=2,
    order_sampler=ShuffleOrderSampler(numpy.random.RandomState(3)))
if sys.argv[2] != '0':
    with numpy.load(sys.argv[1]) as saved:
        restore(iterator, dict(saved))
print(json.dumps([iterator.next() for _ in range(3)]), flush=True)
numpy.savez(sys.argv[1], **snapshot(iterator))
import os, signal
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_killed_training_goes_on_in_a_new_process(tmp_path):
    """It goes on from a snapshot on disk, with processes of its own."""
    tests = os.path.dirname(os.path.dirname(__file__))
    seen = []
    for run in range(2):
        status, output, errors = run_python(
            '-c', f'import sys; sys.path.insert(0, {tests!r})\n{CODE}',
            str(tmp_path / 'saved.npz'), str(run))
        assert -signal.SIGKILL == status, errors
        seen += json.loads(output)
    assert [batch for batch, *_ in draw(build('serial'), 6)] == seen


@pytest.mark.parametrize('kind', KINDS)
def test_iterator_can_be_copied_and_pickled(kind):
    """Each goes on by itself, as evaluators of Chainer need."""
    iterator = build(kind)
    draw(iterator, 2)
    others = [copy.copy(iterator), pickle.loads(pickle.dumps(iterator))]
    expected = draw(iterator, 5)
    for other in others:
        assert expected == draw(other, 5)
        other.finalize()
    iterator.finalize()


@pytest.mark.parametrize('kind', KINDS)
def test_error_of_the_data_set_is_raised_and_the_batch_left_out(kind):
    """The error has its request; the next batch follows."""
    with KINDS[kind](Failing(), 2, shuffle=False) as iterator:
        assert [0, 1] == iterator.next()
        with pytest.raises(ValueError, match='no such image') as caught:
            iterator.next()
        assert any('[2, 3]' in note for note in caught.value.__notes__)
        assert [4, 5] == iterator.next()
        assert 6 == iterator.current_position


@pytest.mark.parametrize('kind', KINDS)
def test_data_set_that_stops_does_not_end_the_iteration(kind):
    """A StopIteration of the data set would look like the last batch."""
    with KINDS[kind](Failing(StopIteration()), 4,
                     shuffle=False) as iterator:
        with pytest.raises(RuntimeError, match='Failing raised StopIter'):
            iterator.next()
        assert [4, 5, 6, 7] == iterator.next()


def test_killed_worker_loses_no_batch():
    """A killed worker is one error, and other processes make the batch."""
    iterator = MultiprocessIterator(
        list(range(100)), 2, shuffle=False, n_processes=1, n_prefetch=0)
    assert [0, 1] == iterator.next()
    os.kill(iterator._stream.worker_pids[0], signal.SIGKILL)
    place = 2
    with pytest.raises(WorkerError):
        for _ in range(10):
            assert [place, place + 1] == iterator.next()
            place += 2
    assert [place, place + 1] == iterator.next()
    iterator.finalize()


SAMPLERS = {
    'generator': lambda: ShuffleOrderSampler(numpy.random.RandomState(3)),
    'module': lambda: ShuffleOrderSampler(numpy.random),
    'bound method': lambda: Sampler().drawn,
    'in place': lambda: Sampler().in_place,
    'plain': lambda: Sampler.backwards,
}


@pytest.mark.parametrize('kind', ['threads', 'processes'])
@pytest.mark.parametrize('sampler', SAMPLERS)
@pytest.mark.parametrize('n, size, repeat', [
    (7, 3, True), (7, 3, False), (3, 8, True), (4, 2, True), (3, 8, False)])
def test_any_sampler_gives_the_batches_of_a_serial_iterator(
        kind, sampler, n, size, repeat):
    """The sampler is called once a sweep, whatever it holds, or copied."""
    found = []
    for each in ('serial', kind):
        numpy.random.seed(5)
        with KINDS[each](list(range(n)), size, repeat,
                         order_sampler=SAMPLERS[sampler]()) as iterator:
            found.append([(next(iterator, None), iterator.epoch_detail,
                           iterator.is_new_epoch) for _ in range(6)])
    assert found[0] == found[1]


@pytest.mark.parametrize('kind', KINDS)
def test_sampler_is_called_when_its_sweep_begins(kind):
    """The order may depend on the training, such as in a curriculum."""
    sampler = Sampler()
    sampler.largest = 2
    with KINDS[kind](list(range(6)), 3,
                     order_sampler=sampler.easy_first) as iterator:
        assert [0, 1, 0] == iterator.next()
        sampler.largest = 100
        assert [[1, 0, 1], [0, 1, 0]] == [iterator.next(), iterator.next()]


@pytest.mark.parametrize('kind', KINDS)
def test_error_of_a_sampler_loses_no_batch(kind):
    """The sampler is called again for the batch that needed it."""
    calls = []

    def turn():
        calls.append(1)
        if len(calls) == 2:
            raise OSError('no order today')

    numpy.random.seed(5)
    with KINDS[kind](list(range(4)), 3,
                     order_sampler=Sampler(turn).in_place) as iterator:
        first = iterator.next()
        with pytest.raises(OSError, match='no order today'):
            iterator.next()
        assert .75 == iterator.epoch_detail
        assert [0, 1, 2, 3] == sorted(first + iterator.next()[:1])


@pytest.mark.parametrize('kind', KINDS)
def test_snapshot_resumes_with_a_sampler_that_draws_globally(kind):
    """The order was drawn in time; the user restores the global generator."""
    def make():
        return KINDS[kind](list(range(7)), 3,
                           order_sampler=Sampler().drawn)

    numpy.random.seed(5)
    with make() as iterator:
        for _ in range(4):
            saved, state = snapshot(iterator), numpy.random.get_state()
            expected = draw(iterator, 4)
            with make() as resumed:
                restore(resumed, saved)
                numpy.random.set_state(state)
                assert expected == draw(resumed, 4)


def test_generator_of_a_sampler_that_others_draw_from_is_an_error():
    """Batches were made in advance in another order."""
    with MultiprocessIterator(list(range(50)), 50,
                              n_processes=1) as iterator:
        iterator.next()
        iterator.order_sampler.random_state.rand()
        with pytest.raises(RuntimeError, match='gave another order'):
            for _ in range(2):
                iterator.next()


@pytest.mark.parametrize('kind', KINDS)
def test_size_of_batches_may_change(kind):
    """The next batch has the new size."""
    with KINDS[kind](list(range(7)), 2, shuffle=False) as iterator:
        assert [0, 1] == iterator.next()
        iterator.batch_size = 4
        assert [2, 3, 4, 5] == iterator.next()
        assert 4 == iterator.batch_size


def test_finalized_processes_are_not_reset():
    """Chainer does not support it either."""
    iterator = MultiprocessIterator([1], 1)
    iterator.reset()
    other = copy.copy(iterator)
    iterator.finalize()
    with pytest.raises(NotImplementedError, match='finalized'):
        iterator.reset()
    other.reset()
    other.finalize()


def test_slow_data_set_is_warned_of():
    """The warning comes after `dataset_timeout` seconds for a batch."""
    with MultiprocessIterator(Slow(), 1, shuffle=False, n_processes=1,
                              dataset_timeout=1e-3) as iterator:
        with pytest.warns(MultiprocessIterator.TimeoutWarning,
                          match='Slow took'):
            assert [0] == iterator.next()
        iterator.dataset_timeout = None
        assert [1] == iterator.next()


@pytest.mark.parametrize('kind', KINDS)
def test_iterator_reads_a_data_set_of_fuel_in_requests(kind):
    """A batch is one request, and its arrays need not be stacked again."""
    data = numpy.arange(20.).reshape(10, 2)
    dataset = as_dataset(IndexableDataset({'x': data,
                                           'y': numpy.arange(10)}))
    with KINDS[kind](dataset, 4, shuffle=False) as iterator:
        x, y = concat_examples(iterator.next())
        assert numpy.array_equal(data[:4], x)
        assert [0, 1, 2, 3] == y.tolist()


# Streams.

def stream(count=7, **kwargs):
    """Return a stream of shuffled batches."""
    return DataStream(IndexableDataset({
        'x': numpy.arange(count * 2).reshape(count, 2),
        'y': numpy.arange(count)}), iteration_scheme=ShuffledScheme(
            count, 3, **kwargs))


def unknown_length():
    """Return a stream that does not know how long it is."""
    return Batch(Filter(Unpack(stream()), keeps), ConstantScheme(2))


def keeps(example):
    """Tell whether an example is kept."""
    return example[1] != 4


STREAMS = {
    'plain': stream,
    'unknown length': unknown_length,
    'processes': lambda: MultiProcessing(stream()),
    'processes, unknown length': lambda: Batch(
        Filter(Unpack(MultiProcessing(stream())), keeps), ConstantScheme(2)),
}


def numbers(batches):
    """Return the numbers of the examples."""
    return [[int(example[1]) for example in batch] for batch in batches]


@pytest.mark.parametrize('name', STREAMS)
def test_stream_is_an_iterator_of_chainer(name):
    """Its batches are lists of examples, and its epochs sweeps."""
    plain = STREAMS[name]()
    expected, ends = [], []
    for epoch in (plain.get_epoch_iterator() for _ in range(3)):
        expected += [batch[1].tolist() for batch in epoch]
        ends.append(len(expected))
    with as_iterator(STREAMS[name]()) as iterator:
        assert (0, 0., None, False) == (
            iterator.epoch, iterator.epoch_detail,
            iterator.previous_epoch_detail, iterator.is_new_epoch)
        details = [iterator.epoch_detail]
        for number, batch in enumerate(expected, 1):
            assert [batch] == numbers([iterator.next()])
            assert (number in ends) == iterator.is_new_epoch
            assert sum(number >= end for end in ends) == iterator.epoch
            assert details[-1] == iterator.previous_epoch_detail
            details.append(iterator.epoch_detail)
            assert details[-2] <= details[-1]
        assert 3. == iterator.epoch_detail
    plain.close()


@pytest.mark.parametrize('name', STREAMS)
def test_stream_ends_after_one_epoch_if_not_repeated(name):
    """The iterator stays at its end."""
    with as_iterator(STREAMS[name](), repeat=False) as iterator:
        batches = list(iterator)
        assert (1, True) == (iterator.epoch, iterator.is_new_epoch)
        assert [] == list(iterator)
    expected = set(range(7)) - ({4} if 'unknown' in name else set())
    assert expected == set(sum(numbers(batches), []))


@pytest.mark.parametrize('name', STREAMS)
def test_snapshot_of_a_stream_resumes_with_the_very_next_batch(name):
    """It resumes after any batch; prefetched batches are read again."""
    with as_iterator(STREAMS[name]()) as iterator:
        expected = numbers(iterator.next() for _ in range(11))
    with as_iterator(STREAMS[name]()) as iterator:
        for done in range(5):
            saved = snapshot(iterator)
            with as_iterator(STREAMS[name]()) as resumed:
                restore(resumed, saved)
                for attribute in ('epoch', 'epoch_detail', 'is_new_epoch',
                                  'previous_epoch_detail'):
                    assert getattr(iterator, attribute) == getattr(
                        resumed, attribute)
                assert expected[done:done + 4] == numbers(
                    resumed.next() for _ in range(4))
            iterator.next()


def test_snapshot_of_another_stream_is_refused():
    """The pipeline's own check refuses it."""
    saved = snapshot(as_iterator(stream()))
    with pytest.raises(StateMismatchError, match='num_examples'):
        restore(as_iterator(stream(8)), saved)


def test_arrays_of_a_stream_are_not_copied():
    """They are copied only if the list of examples was changed."""
    iterator = as_iterator(stream())
    batch = iterator.next()
    x, _ = concat_examples(batch)
    assert numpy.shares_memory(x, batch[0][0])
    batch.reverse()
    reversed_, _ = concat_examples(batch)
    assert numpy.array_equal(x[::-1], reversed_)
    assert not numpy.shares_memory(x, reversed_)
    batch = as_iterator(stream(), as_dict=True).next()
    named = concat_examples(batch)
    assert ['x', 'y'] == list(named)
    assert numpy.shares_memory(named['x'], batch[0]['x'])
    assert type(pickle.loads(pickle.dumps(batch))) is list


def test_stream_of_examples_needs_a_batch_size():
    """One of batches has its own."""
    examples = DataStream(IterableDataset([1, 2, 3]))
    assert [[(1,), (2,)], [(3,)]] == list(
        as_iterator(examples, batch_size=2, repeat=False))
    with pytest.raises(ValueError, match='batch_size must be given'):
        as_iterator(examples)
    with pytest.raises(ValueError, match='produces batches already'):
        as_iterator(stream(), batch_size=2)


def test_batch_size_is_that_of_the_scheme():
    """The size is that of the last batch if no stage says one."""
    assert 3 == as_iterator(MultiProcessing(stream())).batch_size

    class Own(Transformer):
        """Makes batches of a size that no scheme says."""

        produces_examples = False

        def get_data(self, request=None):
            return ([1, 2, 3],)

    iterator = as_iterator(Own(DataStream(IterableDataset([0]))))
    assert 0 == iterator.batch_size
    assert [(1,), (2,), (3,)] == iterator.next()
    assert 3 == iterator.batch_size


def test_stream_without_batches_is_refused():
    """The stream could be repeated for ever; once it just ends."""
    empty = Filter(DataStream(IterableDataset([1, 2])), lambda example: False)
    with pytest.raises(ValueError, match='has no batch'):
        as_iterator(empty, batch_size=2).next()
    assert [] == list(as_iterator(empty, batch_size=2, repeat=False))


def test_reset_starts_the_next_epoch():
    """The counts start again from 0."""
    iterator = as_iterator(stream())
    iterator.next()
    iterator.reset()
    assert (0, 0., None) == (iterator.epoch, iterator.epoch_detail,
                             iterator.previous_epoch_detail)
    assert set(range(7)) == set(sum(numbers(
        iterator.next() for _ in range(3)), []))
    assert iterator.is_new_epoch


def test_error_of_a_batch_read_ahead_comes_with_its_turn():
    """The batch before it is delivered first."""
    def fail(example):
        if example[1] == 6:
            raise ValueError('example 6')
        return True

    batches = Batch(Filter(Unpack(DataStream(
        IndexableDataset({'x': numpy.arange(8), 'y': numpy.arange(8)}),
        iteration_scheme=SequentialScheme(8, 4))), fail), ConstantScheme(2))
    iterator = as_iterator(batches)
    assert [[0, 1], [2, 3], [4, 5]] == numbers(
        iterator.next() for _ in range(3))
    with pytest.raises(ValueError, match='example 6'):
        iterator.next()
