"""Steps that are left out, and epochs that begin at a step."""
import json
import pickle
import random
from functools import partial
from itertools import islice

import numpy
import pytest
from support import random_orders
from support.random_orders import MOST, Build, build
from support.resuming import assert_resumes

from fuel.datasets import IndexableDataset
from fuel.exceptions import StateMismatchError, UnknownOrderError
from fuel.orders import leave_out
from fuel.schemes import ConstantScheme, ShuffledExampleScheme
from fuel.schemes.shard import Shard
from fuel.streams import DataStream
from fuel.transformers import (
    Batch,
    Cast,
    Filter,
    Mapping,
    Mix,
    MultiProcessing,
    MultiThreading,
)
from fuel.transformers.shuffling import ShuffleBuffer

pytestmark = pytest.mark.filterwarnings(
    'ignore:the streams merged', 'ignore:an epoch')


class Counting(IndexableDataset):
    """A data set that notes the rows that are read."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.read = []

    def get_data(self, state=None, request=None):
        """Return rows."""
        self.read += request
        return super().get_data(state, request)


def rows_of(item):
    """Return the rows of an item that was delivered, of its first source."""
    return numpy.atleast_1d(numpy.asarray(item[0])).tolist()


def stream_of(count=23, size=3, **kwargs):
    """Return a stream whose rows are their numbers."""
    kwargs.setdefault('shuffle', True)
    return DataStream(IndexableDataset({'y': numpy.arange(count)}),
                      batch_size=size, seed=5, **kwargs)


def examples():
    """Return a stream of examples."""
    return DataStream(IndexableDataset({'y': numpy.arange(23)}),
                      iteration_scheme=ShuffledExampleScheme(23, seed=3))


PIPELINES = {
    'stream': stream_of,
    'stage': lambda: Cast(stream_of(), 'int64'),
    'examples': examples,
    'batches of examples': lambda: Batch(examples(), ConstantScheme(3)),
    'buffer': lambda: Batch(
        ShuffleBuffer(examples(), 5, seed=1), ConstantScheme(3)),
    'mixture': lambda: Mix([stream_of(), stream_of(14, 2)], seed=1,
                           stop='last')}


def epochs_of(stream, count):
    """Return the rows of each item of some epochs."""
    return [list(map(rows_of, stream)) for _ in range(count)]


@pytest.mark.parametrize('name', PIPELINES)
def test_steps_are_left_out_and_the_others_stay_where_they_were(name):
    """Each epoch lacks the items of these steps."""
    make, generator = PIPELINES[name], random.Random(name)
    whole = epochs_of(make(), 4)
    lengths = list(map(len, whole))
    steps = set(generator.sample(range(sum(lengths[:3])), 7))
    found = epochs_of(leave_out(make(), steps), 4)
    first = 0
    for items, ours in zip(whole, found, strict=True):
        assert ours == [item for number, item in enumerate(items, first)
                        if number not in steps]
        first += len(items)


def test_steps_of_random_pipelines_are_left_out():
    """Their orders are known."""
    compared = 0
    for number in range(60):
        generator = random.Random(number)
        try:
            order = build(number).order
            if not 2 < len(order) <= MOST:
                continue
            whole = epochs_of(build(number), 2)
            steps = set(generator.sample(range(len(order)), 2))
            stream = leave_out(build(number), steps)
        except (UnknownOrderError, ValueError):
            continue
        found = epochs_of(stream, 2)
        assert found == [[item for place, item in enumerate(whole[0])
                          if place not in steps], whole[1]]
        compared += 1
    assert compared > 15


@pytest.mark.parametrize('ranks, by, uneven, accumulate', [
    (2, 'batch', 'uneven', 1), (3, 'batch', 'pad', 2), (3, 'batch', 'drop', 2),
    (3, 'example', 'uneven', 2), (2, 'example', 'pad', 3)])
def test_all_ranks_leave_out_the_same_rounds(ranks, by, uneven, accumulate):
    """No rank has an item more than without."""
    steps = [1, range(4, 6)]
    left_out = {1, 4, 5}
    numbers = []
    for rank in range(ranks):
        shard = Shard(rank, ranks, by, uneven)
        whole = epochs_of(stream_of(shard=shard), 3)
        found = epochs_of(leave_out(
            stream_of(shard=shard), steps, accumulate=accumulate), 3)
        first = 0
        for items, ours in zip(whole, found, strict=True):
            expected = [
                item for place, item in enumerate(items)
                if first + place // accumulate not in left_out]
            assert expected == ours
            rounds = stream_of(shard=Shard(0, ranks, by, uneven)).order
            first += -(-len(rounds.share(0)) // accumulate)
        numbers.append([len(items) for items in found])
    assert all(abs(one - other) <= 1 for one, other in zip(
        numbers[0], numbers[-1], strict=True))


@pytest.mark.parametrize('name', PIPELINES)
def test_length_of_an_iterator_is_that_of_what_is_delivered(name):
    """The length of the stream is that of all epochs, in which steps keep
    their numbers."""
    compared = 0
    for shard in (None, (0, 2), (1, 2), (1, 3)):
        def build(shard=shard):
            stream = PIPELINES[name]()
            return stream if shard is None else stream.shard(
                *shard, uneven='uneven')

        try:
            length = len(build())
        except (TypeError, ValueError):
            continue
        stream = leave_out(build(), [0, range(2, 4), 9])
        for _ in range(3):
            assert length == len(stream)
            iterator = stream.get_epoch_iterator()
            found = [len(iterator), *[len(iterator) for _ in iterator]]
            assert list(range(len(found)))[::-1] == found
            compared += len(found)
    assert compared > 20


def test_rows_that_are_left_out_are_not_read():
    """A stage above makes no difference, nor do ranks."""
    for ranks in (1, 2):
        dataset = Counting({'y': numpy.arange(24)})
        stream = leave_out(Mapping(DataStream(
            dataset, batch_size=3, shard=(0, ranks)), tuple), [1, 2])
        delivered = sum(map(rows_of, stream), [])
        assert sorted(delivered) == sorted(dataset.read)
        assert 24 // ranks - 6 == len(dataset.read)


@pytest.mark.parametrize('name', PIPELINES)
def test_streams_that_leave_out_steps_resume(name):
    """States and pickles name the steps."""
    make = PIPELINES[name]
    assert_resumes(lambda: leave_out(make(), [0, 2, 3, 7, range(9, 14)]))


def test_state_that_is_loaded_leaves_out_steps_from_there_on():
    """Later states name these steps, and those of earlier loads."""
    whole = epochs_of(stream_of(), 3)
    stream = stream_of()
    iterator = iter(stream)
    next(iterator)
    state = json.loads(json.dumps(stream.state_dict()))
    first = stream_of()
    first.load_state_dict(state, leave_out=[2, 9])
    assert whole[0][1:2] == list(map(rows_of, islice(iter(first), 1)))
    state = json.loads(json.dumps(first.state_dict()))
    second = stream_of()
    second.load_state_dict(state, leave_out=range(4, 6))
    expected = [[item for number, item in enumerate(items, 8 * epoch)
                 if number not in {2, 4, 5, 9} and number > 1]
                for epoch, items in enumerate(whole)]
    third = stream_of()
    third.load_state_dict(json.loads(json.dumps(second.state_dict())))
    copy = pickle.loads(pickle.dumps(third))
    for found in (second, third, copy):
        assert expected == epochs_of(found, 3)


def test_steps_that_are_left_out_already_may_be_before_the_position():
    """So a program that is restarted may keep its arguments."""
    stream, steps = stream_of(), [2, 6]
    stream.load_state_dict(stream_of().state_dict(), leave_out=steps)
    iterator = iter(stream)
    list(islice(iterator, 4))
    state = json.loads(json.dumps(stream.state_dict()))
    again = stream_of()
    again.load_state_dict(state, leave_out=steps)
    assert list(map(rows_of, iterator)) == list(map(rows_of, again))
    with pytest.raises(ValueError, match='step 1 cannot be left out'):
        stream_of().load_state_dict(state, leave_out=[1, 2])


def test_other_number_of_ranks_leaves_out_the_same_items():
    """On four ranks, rounds are as long as two steps of two ranks."""
    stream = leave_out(stream_of(24, 3, shard=(0, 2)), [2, 3])
    state = json.loads(json.dumps(stream.state_dict()))
    expected = epochs_of(leave_out(stream_of(24, 3), range(4, 8)), 2)
    for ranks in (1, 4):
        found = []
        for rank in range(ranks):
            other = stream_of(24, 3, shard=(rank, ranks))
            other.load_state_dict(state)
            found.append(epochs_of(other, 2))
        for epoch, items in enumerate(expected):
            assert sorted(map(tuple, items)) == sorted(
                tuple(item) for rank in found for item in rank[epoch])


def test_ranges_of_steps_are_those_of_single_steps():
    """They may cross epochs, have gaps or be an array."""
    whole = epochs_of(stream_of(), 3)
    for given in ([range(6, 19)], range(6, 19), numpy.arange(6, 19),
                  [range(18, 12, -1), range(6, 13, 2), range(7, 13, 2)]):
        assert [whole[0][:6], [], whole[2][3:]] == epochs_of(
            leave_out(stream_of(), given), 3)
        stream = stream_of()
        stream.load_state_dict(stream_of().state_dict(), leave_out=given)
        assert [whole[0][:6], [], whole[2][3:]] == epochs_of(stream, 3)
    stream = Filter(stream_of(), lambda data: True)
    stream.load_state_dict(stream.state_dict(), leave_out=[])
    with pytest.raises(TypeError, match=r'such as \[71\].*got 3'):
        leave_out(stream_of(), 3)


@pytest.mark.parametrize('ranks', [1, 2])
def test_ranges_that_touch_on_more_ranks_are_left_out(ranks):
    """Their rounds overlap."""
    stream = stream_of(24, 1)
    stream.load_state_dict(stream.state_dict(), leave_out=[1, 3, 4, 9])
    state = stream.state_dict()
    for rank in range(ranks):
        shard = Shard(rank, ranks)
        whole = epochs_of(stream_of(24, 1, shard=shard), 1)[0]
        other = stream_of(24, 1, shard=shard)
        other.load_state_dict(state)
        left_out = {item // ranks for item in (1, 3, 4, 9)}
        assert [item for number, item in enumerate(whole)
                if number not in left_out] == epochs_of(other, 1)[0]


class Bad(IndexableDataset):
    """A data set with a row that cannot be read."""

    def get_data(self, state=None, request=None):
        """Raise ValueError for one row."""
        if 9 in request:
            raise ValueError('bad')
        return super().get_data(state, request)


def test_bad_rows_are_left_out_of_the_item_behind_a_step():
    """The item that is made again is the one that failed."""
    def make(on_error='skip'):
        return DataStream(Bad({'y': numpy.arange(15)}), batch_size=3,
                          on_error=on_error)
    stream = leave_out(make(), [1, 2])
    assert [[0, 1, 2], [10, 11], [12, 13, 14]] == list(map(rows_of, stream))
    (skipped,) = stream.skipped_examples().examples
    assert (3, 9) == (skipped.item, skipped.example)
    stream = leave_out(make('raise'), [1, 2])
    iterator = iter(stream)
    next(iterator)
    with pytest.raises(ValueError, match='bad'):
        next(iterator)
    restored = make('raise')
    restored.load_state_dict(stream.state_dict())
    assert [[12, 13, 14]] == list(map(rows_of, restored))


def test_positions_are_extended_to_whole_steps():
    """A step takes two batches of three here."""
    whole = epochs_of(stream_of(), 2)
    stream = leave_out(stream_of(), positions=[((0, 8), (0, 9)),
                                               ((1, 0), (1, 1))],
                       accumulate=2)
    assert epochs_of(stream, 2) == [whole[0][:2] + whole[0][4:],
                                    whole[1][2:]]
    merged = leave_out(stream_of(), steps=[1], positions=[
        ((0, 2), (0, 4))])
    assert epochs_of(merged, 1) == [whole[0][2:]]


@pytest.mark.parametrize('positions, text', [
    ([((0, 3), (1, 4))], 'in one epoch'), ([((0, 3), (0, 3))], 'first below'),
    ([((0, 3), (0, 99))], 'ends before example 98')])
def test_wrong_positions_are_refused(positions, text):
    """The error names them."""
    with pytest.raises((ValueError, IndexError), match=text):
        leave_out(stream_of(), positions=positions)


def test_steps_before_the_position_are_refused():
    """They were trained."""
    stream = stream_of()
    iterator = iter(stream)
    list(islice(iterator, 3))
    state = stream.state_dict()
    for step in (0, 2):
        with pytest.raises(ValueError, match='at item 3 of epoch 0 already'):
            stream_of().load_state_dict(state, leave_out=[step])
    stream_of().load_state_dict(state, leave_out=[3])


def test_order_that_depends_on_the_data_has_no_steps():
    """The error names the stage."""
    with pytest.raises(UnknownOrderError, match='Filter'):
        leave_out(Filter(stream_of(), bool), [3])


def test_stage_above_a_stream_that_leaves_out_steps_has_no_state():
    """Its state would not name them."""
    for stage in (partial(Mapping, mapping=tuple), MultiThreading):
        stream = stage(leave_out(stream_of(), [1]))
        assert 7 == len(list(stream))
        with pytest.raises(TypeError, match='last stage of the pipeline'):
            stream.state_dict()


def test_stages_above_say_that_they_know_no_order():
    """Workers would each read the item behind one that is left out."""
    stream = Mapping(leave_out(stream_of(), [1]), tuple)
    with pytest.raises(UnknownOrderError, match='below Mapping leaves out'):
        len(stream.order)
    with pytest.raises(UnknownOrderError, match='take the last stage'):
        stream.iterate_from(step=2)
    for make in (lambda: stream, lambda: stream.data_stream):
        with pytest.raises(ValueError, match='leaves out steps, so several '
                           'workers cannot share it: let leave_out'):
            MultiProcessing(make(), num_workers=2)


def test_numbers_may_be_those_of_numpy():
    """Their states are plain data."""
    numbers = numpy.array([1, 2])
    expected = [[0, 1, 3]]
    state = stream_of().state_dict()
    loaded = stream_of()
    loaded.load_state_dict(state, leave_out=numbers)
    zero, three, nine = numpy.array([0, 3, 9])
    for stream in (loaded, leave_out(stream_of(), numbers), leave_out(
            stream_of(), positions=[((zero, three), (zero, nine))])):
        assert expected == json.loads(json.dumps(stream.state_dict()))[
            'omitted']
    restored = stream_of()
    restored.load_state_dict(state, leave_out=numpy.array([], int))
    restored.load_state_dict(state, leave_out=None)
    assert 'omitted' not in restored.state_dict()


@pytest.mark.parametrize('position, error, text', [
    (3, TypeError, r'must be the number of an epoch.*\(2, 500\), got 3'),
    ((1,), TypeError, 'must be the number of an epoch'),
    ((0, -1), ValueError, 'example must not be negative, got -1'),
    ((0, 1.5), TypeError, 'example must be an integer'),
    ((-1, 0), ValueError, 'epoch must not be negative'),
    ((0, 23), IndexError, 'ends before example 23')])
def test_positions_that_do_not_exist_are_refused(position, error, text):
    """Each error says what was expected."""
    with pytest.raises(error, match=text):
        stream_of().iterate_from(position=position)
    behind = (0, 24) if position == (0, 23) else (0, 3)
    with pytest.raises(error, match=text):
        leave_out(stream_of(), positions=[(position, behind)])


def test_steps_must_be_a_list():
    """The error shows one."""
    for ask in (lambda: leave_out(stream_of(), 3),
                lambda: stream_of().load_state_dict(
                    stream_of().state_dict(), leave_out=3)):
        with pytest.raises(TypeError, match=r'such as \[71\].* got 3'):
            ask()


def test_places_say_what_is_left_out():
    """Those of a rank do as well."""
    for make in (stream_of, lambda: stream_of(shard=(1, 2))):
        stream = leave_out(make(), [1])
        order = stream.order
        left_out = order.step(1).row.tolist()
        for row in range(23):
            (place,) = order.index(row)
            assert place.left_out == (row in left_out)
        for place in stream.order.epoch(1).index(3):
            assert not place.left_out
    share = order.share(1)
    assert {(row, place.left_out) for row in range(23)
            for place in share.index(row)} == {
                (row, row in left_out) for row in share[:].row.tolist()}


@pytest.mark.parametrize('value', [
    3, [[0, 1]], [[0, 2, 1]], [[0, 1, 2], [0, 2, 3]], [[1, 0, 2], [0, 0, 2]],
    [[0, -1, 2]], [[0, 1, True]], [[0, 0, 2 ** 63]], 'x', None])
def test_damaged_ranges_are_refused(value):
    """A state comes from somebody else."""
    state = stream_of().state_dict()
    del state['crc']
    with pytest.raises(StateMismatchError, match="field 'omitted'"):
        stream_of().load_state_dict({**state, 'omitted': value})


def test_deep_ranges_are_refused():
    """The error shows no value that cannot be shown."""
    deep = []
    for _ in range(100_000):
        deep = [deep]
    state = stream_of().state_dict()
    del state['crc']
    with pytest.raises(StateMismatchError, match="'omitted'.*too deeply"):
        stream_of().load_state_dict({**state, 'omitted': deep})


@pytest.mark.parametrize('by', ['batch', 'example'])
def test_ranks_of_a_mixture_leave_out_the_same_rounds(by):
    """Each rank reads its own rows only, as before."""
    def make(rank):
        return Mix([DataStream(dataset, batch_size=size, shuffle=True, seed=1)
                    for dataset, size in zip(datasets, (4, 16), strict=True)],
                   seed=5, stop='last').shard(rank, 2, by=by)

    datasets = [Counting({'y': numpy.arange(40)}),
                Counting({'y': numpy.arange(100, 180)})]
    for rank in range(2):
        whole = epochs_of(make(rank), 1)[0]
        for dataset in datasets:
            dataset.read.clear()
        assert whole[:1] + whole[2:] == epochs_of(
            leave_out(make(rank), [1]), 1)[0]
        assert sum(len(one.read) for one in datasets) == sum(
            map(len, whole[:1] + whole[2:]))


def test_many_ranges_are_left_out():
    """Each is found, and the others are delivered."""
    stream = leave_out(stream_of(200, 2), range(0, 100, 2))
    whole = epochs_of(stream_of(200, 2), 1)[0]
    assert whole[1::2] == epochs_of(stream, 1)[0]


def test_streams_behind_workers_leave_out_steps():
    """The items are dropped in this process."""
    whole = epochs_of(stream_of(), 2)
    expected = [[item for number, item in enumerate(items, 8 * epoch)
                 if number not in {1, 2, 9}]
                for epoch, items in enumerate(whole)]
    for make in (lambda: MultiThreading(stream_of()),
                 lambda: MultiProcessing(stream_of(), num_workers=2,
                                         start_method='fork')):
        with leave_out(make(), [1, 2, 9]) as stream:
            iterator = iter(stream)
            found = list(map(rows_of, islice(iterator, 1)))
            state = json.loads(json.dumps(stream.state_dict()))
            found += map(rows_of, iterator)
            assert expected == [found, *epochs_of(stream, 1)]
            with make() as other:
                assert whole[0][3:] == list(map(
                    rows_of, other.iterate_from(step=3)))
        plain = stream_of()
        plain.load_state_dict(state)
        assert [expected[0][1:], expected[1]] == epochs_of(plain, 2)
        with make() as other:
            other.load_state_dict(state)
            assert [expected[0][1:], expected[1]] == epochs_of(other, 2)


def test_workers_leave_out_steps_of_a_later_epoch():
    """A state says which epoch it is."""
    whole = epochs_of(stream_of(), 3)
    stream = stream_of()
    epochs_of(stream, 1)
    iterator = iter(stream)
    next(iterator)
    state = stream.state_dict()
    with MultiThreading(stream_of()) as threads:
        threads.load_state_dict(state, leave_out=[10, 17])
        assert [[*whole[1][1:2], *whole[1][3:]],
                [whole[2][0], *whole[2][2:]]] == epochs_of(threads, 2)
        assert 3 == threads.order.epoch_number


@pytest.mark.parametrize('name', PIPELINES)
def test_epochs_begin_at_any_step(name):
    """The rest of the epoch, and the epochs after it, are the same."""
    make = PIPELINES[name]
    whole = epochs_of(make(), 4)
    step = 0
    for epoch, items in enumerate(whole[:3]):
        examples = 0
        for place in range(len(items)):
            stream = make()
            found = list(map(rows_of, stream.iterate_from(step=step)))
            assert found == items[place:]
            assert epochs_of(stream, 1) == [whole[epoch + 1]]
            assert step == 0 or stream.order.epoch_number == epoch + 2
            other = make().iterate_from(position=(epoch, examples))
            assert found == list(map(rows_of, other))
            step += 1
            examples += len(items[place])


def test_ranks_begin_at_the_same_step():
    """Their state is that of the whole order."""
    for ranks, by in ((2, 'batch'), (3, 'example')):
        for rank in range(ranks):
            make = partial(stream_of, shard=Shard(rank, ranks, by))
            whole = epochs_of(make(), 3)
            per_epoch = -(-len(make().order.share(0)) // 2)
            stream = make()
            iterator = stream.iterate_from(step=per_epoch + 1, accumulate=2)
            assert list(map(rows_of, iterator)) == whole[1][2:]
            restored = make()
            restored.load_state_dict(stream.state_dict())
            assert epochs_of(restored, 1) == whole[2:]


def test_epochs_begin_at_a_step_in_the_middle_of_a_training():
    """Steps before the position are refused."""
    whole = epochs_of(stream_of(), 4)
    stream = stream_of()
    iterator = iter(stream)
    next(iterator)
    assert list(map(rows_of, stream.iterate_from(step=17))) == whole[2][1:]
    stream = stream_of()
    iterator = iter(stream)
    list(islice(iterator, 3))
    restored = stream_of()
    restored.load_state_dict(stream.state_dict())
    with pytest.raises(ValueError, match='item 2 of epoch 0 comes before the '
                       'next item of the stream, item 3 of epoch 0'):
        restored.iterate_from(step=2)
    assert list(map(rows_of, restored.iterate_from(step=4))) == whole[0][4:]
    with pytest.raises(ValueError, match='build the stream anew'):
        restored.iterate_from(step=1)
    for kwargs in ({}, {'step': 1, 'position': (0, 1)}):
        with pytest.raises(ValueError, match='either step or position'):
            restored.iterate_from(**kwargs)
    with pytest.raises(TypeError, match=r'such as \(2, 500\), got 5'):
        restored.iterate_from(position=5)


def test_mixture_that_goes_on_is_not_left_out():
    """The next epoch begins where its streams were left."""
    def make():
        return Mix([stream_of(), stream_of(14, 2)], seed=1, stop='forever',
                   epoch_size=6)
    whole = epochs_of(make(), 1)
    assert list(map(rows_of, make().iterate_from(step=2))) == whole[0][2:]
    with pytest.raises(UnknownOrderError, match='mixture goes on'):
        make().iterate_from(step=7)


def test_users_classes_may_have_the_method():
    """It is found on the class, and may be assigned."""
    class Own(DataStream):
        def __init__(self, *args, **kwargs):
            self.iterate_from = 'mine'
            super().__init__(*args, **kwargs)

    stream = Own(IndexableDataset({'y': numpy.arange(4)}), batch_size=2)
    assert 'mine' == stream.iterate_from

    class Loading(DataStream):
        def load_state_dict(self, state):
            super().load_state_dict(state)

    stream = Loading(IndexableDataset({'y': numpy.arange(4)}), batch_size=2)
    stream.load_state_dict(stream.state_dict())


def test_random_pipelines_begin_at_any_item():
    """Orders that cannot be known are refused."""
    compared = 0
    for number in range(60):
        try:
            order = build(number, Build).order
            if not 2 < len(order) <= MOST:
                continue
            whole = epochs_of(build(number, Build), 1)
        except (UnknownOrderError, ValueError):
            continue
        step = random.Random(number).randrange(len(order))
        stream = build(number, random_orders.Build)
        assert list(map(rows_of, stream.iterate_from(step=step))) == (
            whole[0][step:])
        compared += 1
    assert compared > 15


def test_state_says_all_that_is_left_out():
    """Another load does not count, but what the stream was built with
    does."""
    whole, state = epochs_of(stream_of(), 1)[0], stream_of().state_dict()
    stream = stream_of()
    for steps in ([1], [2, 3]):
        stream.load_state_dict(state, leave_out=steps)
        named = stream.state_dict()
        assert epochs_of(stream, 1)[0] == [
            item for number, item in enumerate(whole) if number not in steps]
    stream.load_state_dict(state)
    assert whole == epochs_of(stream, 1)[0]
    built = leave_out(stream_of(), [0])
    for loaded in (built, pickle.loads(pickle.dumps(built))):
        loaded.load_state_dict(state, leave_out=[5])
        loaded.load_state_dict(state)
        assert whole[1:] == epochs_of(loaded, 1)[0]
        loaded.load_state_dict(named)
        assert [whole[1], *whole[4:]] == epochs_of(loaded, 1)[0]


def test_error_names_the_step_that_was_asked_for():
    """It says how steps were counted."""
    stream = stream_of(shard=(0, 2))
    list(stream)
    with pytest.raises(ValueError, match=(
            'step 3 cannot be left out: counted with 2 ranks and '
            'accumulate=1, it begins with item 6 of epoch 0')):
        stream_of().load_state_dict(stream.state_dict(), leave_out=[7, 3])
