"""Stages that make none, one or several items of each item below."""
import copy
import json
import pickle
import re
import zlib
from collections.abc import Sequence
from functools import partial
from itertools import chain

import numpy
import pytest
from support.expanding import (
    DrawingRepeat,
    DrawingSplits,
    PieceError,
    Plan,
    Repeat,
    read,
    read_one,
)
from support.resuming import assert_resumes

from fuel.datasets import IndexableDataset
from fuel.exceptions import BadRecordsError, StateMismatchError
from fuel.schemes import (
    ConstantScheme,
    SequentialExampleScheme,
    ShuffledExampleScheme,
    ShuffledScheme,
)
from fuel.streams import DataStream
from fuel.testing import ReplayProcess, check_stage
from fuel.testing.replay import Saved
from fuel.transformers import (
    Batch,
    Chain,
    Expand,
    Mapping,
    Mix,
    MultiProcessing,
    SeededTransformer,
    Take,
    Unpack,
)
from fuel.transformers.shuffling import ShuffleBuffer


def numbers(count=4, **kwargs):
    """Return a stream of numbers, read in order."""
    return DataStream(
        IndexableDataset(list(range(count))),
        iteration_scheme=SequentialExampleScheme(count), **kwargs)


class Countdown(Expand):
    """Makes of each number as many pieces."""

    def expand(self, item):
        for number in range(item[0], 0, -1):
            yield (number,)


class Halves(Expand):
    """Makes two batches of each, or examples of one."""

    def expand(self, item):
        if self.produces_examples:
            return [item, copy.deepcopy(item)]
        half = (len(item[0]) + 1) // 2
        return [tuple([part[:half].copy() for part in item]),
                tuple([part[half:].copy() for part in item])]


class Pieces(Expand):
    """A stage whose pieces are those that a function returns."""

    def __init__(self, data_stream, function):
        super().__init__(data_stream)
        self.make = function

    def expand(self, item):
        return self.make(item)


def of_function(function, stream=None):
    """Return a stage whose `expand` is a function of the item."""
    return Pieces(numbers() if stream is None else stream, function)


# Pieces

def test_items_make_none_one_or_several():
    """They keep their order in each epoch."""
    stream = Countdown(numbers())
    assert stream.sources == ('data',)
    assert stream.produces_examples
    for _ in range(2):
        assert [1, 2, 1, 3, 2, 1] == [number for number, in stream]


@pytest.mark.parametrize('make', [
    lambda item: [item] * 2,
    lambda item: (item, item),
    lambda item: iter([item, item]),
    lambda item: (item for _ in range(2)),
    lambda item: (list(item) for _ in range(2)),
    lambda item: (iter(item) for _ in range(2))],
    ids=['list', 'tuple', 'iterator', 'generator', 'lists', 'iterators'])
def test_any_iterable_of_pieces_is_taken(make):
    """A piece is a tuple or a list of parts, or an iterator over them."""
    assert [0, 0, 1, 1] == [
        number for number, in of_function(make, numbers(2))]


class OwnSequence(Sequence):
    """Pieces of a user's class, made when they are asked for."""

    def __init__(self, item):
        self.item, self.asked = item, []

    def __len__(self):
        return 3

    def __getitem__(self, number):
        self.asked.append(number)
        return (f'{self.item[0]}.{number}',)


def test_sequence_is_asked_by_number_and_not_for_pieces_delivered():
    """A resume goes straight to the next one."""
    made = []

    def make(item):
        made.append(OwnSequence(item))
        return made[-1]

    stream = of_function(make, numbers(2))
    epoch = stream.get_epoch_iterator()
    assert ('0.0',) == next(epoch)
    assert ('0.1',) == next(epoch)
    state = stream.state_dict()
    again = of_function(make, numbers(2))
    again.load_state_dict(state)
    assert list(epoch) == list(again)
    assert [0, 1, 2] == made[0].asked
    assert [2] == made[2].asked


@pytest.mark.parametrize('make, error, text', [
    (lambda item: None, TypeError,
     'expand of Pieces must return the pieces.*yield'),
    (lambda item: 3, TypeError, r'got 3 \(int\)'),
    (lambda item: item, TypeError, 'a piece of Pieces must be a tuple'),
    (lambda item: [None], TypeError, 'got None'),
    (lambda item: next(iter(())), RuntimeError,
     'expand of the stage Pieces raised StopIteration'),
    (lambda item: (next(iter(())) for _ in range(1)), RuntimeError,
     'generator raised StopIteration')])
def test_object_that_is_not_a_piece_is_refused(make, error, text):
    """The error says what to write instead."""
    with pytest.raises(error, match=text):
        next(of_function(make).get_epoch_iterator())


def test_expand_must_be_written():
    """The error says what is missing."""
    with pytest.raises(NotImplementedError, match='does not implement exp'):
        next(Expand(numbers()).get_epoch_iterator())


def test_requests_are_refused():
    """The stage reads in order."""
    stage = Countdown(numbers())
    stage.get_epoch_iterator()
    with pytest.raises(ValueError, match='takes no requests, got 3'):
        stage.get_data(3)


def test_kind_of_the_pieces_is_that_of_the_stream_unless_it_is_given():
    """Batches may become examples, and the reverse."""
    batches = partial(DataStream, IndexableDataset(numpy.arange(4)),
                      batch_size=2)
    assert not Expand(batches()).produces_examples
    assert Expand(batches(), True).produces_examples
    assert not Expand(numbers(), False).produces_examples


# Epochs, states and errors

@pytest.mark.parametrize('build', [Countdown, Halves, partial(Repeat, times=3),
                                   partial(DrawingRepeat, times=2)])
def test_stage_of_a_user_resumes_from_states_and_pickles(build):
    """Two epochs, at each step."""
    assert_resumes(lambda: build(numbers(5)))


def test_stage_of_a_user_keeps_all_promises():
    """Those of stages, and of streams."""
    with ReplayProcess() as process:
        check_stage(Halves, another_process=process)


def test_epochs_at_once_have_pieces_of_their_own():
    """So has one that begins when another was left."""
    stream = Countdown(numbers())
    first, second = stream.get_epoch_iterator(), stream.get_epoch_iterator()
    assert [next(first), next(first), next(second)] == [(1,), (2,), (1,)]
    assert [1, 3, 2, 1] == [number for number, in first]
    assert [1, 2, 1, 3, 2, 1] == [number for number, in stream]
    assert [2, 1, 3, 2, 1] == [number for number, in second]


def test_attributes_of_an_epoch_are_those_of_all_bases():
    """A subclass may name its own alone."""
    class Counted(Countdown):
        epoch_attributes = ('count',)

        def start_epoch(self):
            self.count = 0
            super().start_epoch()

        def expand(self, item):
            self.count += 1
            return [(item[0], self.count)]

    stream = Counted(numbers(3))
    one, two = stream.get_epoch_iterator(), stream.get_epoch_iterator()
    assert [(0, 1), (1, 2)] == [next(one), next(one)]
    assert [(0, 1), (1, 2), (2, 3)] == list(two)
    assert [(2, 3)] == list(one)


def failing(item):
    """Yield pieces of a number; the second of 1 fails."""
    for number in range(3):
        if (item[0], number) == (1, 1):
            raise PieceError('1.1')
        yield (f'{item[0]}.{number}',)


def test_error_counts_as_one_item_and_the_next_item_follows():
    """A state that is taken after it goes on behind it."""
    stream = of_function(failing, numbers(3))
    epoch = stream.get_epoch_iterator()
    for expected in '0.0', '0.1', '0.2', '1.0':
        assert (expected,) == next(epoch)
    with pytest.raises(PieceError) as raised:
        next(epoch)
    assert 'example 1 of the data set' in raised.value.__notes__
    assert ('in stage Pieces, item 4 of the epoch'
            in raised.value.__notes__)
    again = of_function(failing, numbers(3))
    again.load_state_dict(stream.state_dict())
    assert [('2.0',), ('2.1',), ('2.2',)] == list(again) == list(epoch)


def test_pickle_holds_what_a_generator_has_left_and_its_error():
    """The iterator that was pickled goes on as well."""
    epoch = of_function(failing, numbers(3)).get_epoch_iterator()
    for expected in '0.0', '0.1', '0.2', '1.0':
        again = pickle.loads(pickle.dumps(epoch))
        assert (expected,) == next(epoch) == next(again)
    again = pickle.loads(pickle.dumps(epoch))
    for each in epoch, again:
        with pytest.raises(PieceError, match='1.1'):
            next(each)
        assert ('2.0',) == next(each)


def test_state_for_an_item_that_makes_fewer_pieces_is_refused():
    """It does not go on at another item."""
    stream = of_function(lambda item: ((i,) for i in range(5)))
    epoch = stream.get_epoch_iterator()
    for _ in range(4):
        next(epoch)
    for count, text in ((2, 'now it has only 2'), (0, 'it is empty now')):
        changed = of_function(
            lambda item, count=count: ((i,) for i in range(count)))
        changed.load_state_dict(stream.state_dict())
        with pytest.raises(StateMismatchError, match=text):
            changed.get_epoch_iterator()


# Draws

class Jitter(Expand, SeededTransformer):
    """Three pieces of each item, and a draw for each piece."""

    def expand(self, item):
        rng = self.generator()
        for _ in range(3):
            yield (item[0], int(rng.integers(1000)))


def test_draws_are_those_of_a_seeded_stage_that_makes_one_of_one():
    """The seed, the epoch and the number of the item below decide them."""
    class Plain(SeededTransformer):
        def transform_example(self, example):
            return (example[0], self.generator().integers(1000, size=3))

    Plain.__name__ = 'Jitter'
    plain, stage = Plain(numbers(), True, seed=5), Jitter(numbers(), seed=5)
    for _ in range(2):
        expected = [(number, draw) for number, draws in plain
                    for draw in draws.tolist()]
        assert expected == list(stage)
    assert_resumes(lambda: Jitter(numbers(), seed=5))


@pytest.mark.parametrize('count', [2, 3])
def test_ranks_draw_what_one_process_draws(count):
    """Those that share the items, and those that share the pieces."""
    def shuffled():
        return DataStream(IndexableDataset(list(range(7))),
                          iteration_scheme=ShuffledExampleScheme(7))

    whole = list(Jitter(shuffled(), seed=3))
    ranks = [list(Jitter(shuffled(), seed=3).shard(rank, count))
             for rank in range(count)]
    assert sorted(whole) == sorted(chain.from_iterable(ranks))
    assert ranks[1][:3] == whole[3:6]
    pieces = list(DrawingRepeat(shuffled(), 3, seed=3))
    for rank in range(count):
        assert pieces[rank::count] == list(
            DrawingRepeat(shuffled(), 3, seed=3).shard(rank, count))


@pytest.mark.parametrize('stage', [
    lambda: Jitter(numbers(), seed=2), lambda: ShuffleBuffer(numbers(), 3),
    lambda: ShuffleBuffer(numbers(), 3, seed=2)])
def test_workers_refuse_a_stage_with_a_seed_for_what_it_makes(stage):
    """It draws by its seed already, and is told what others are told."""
    name = type(stage()).__name__
    for build in (stage, lambda: Mapping(stage(), list)):
        with pytest.raises(ValueError, match=(
                f'the stage {name} does not make one item of each that it '
                'reads, .*: put it behind MultiProcessing')) as caught:
            MultiProcessing(build(), num_workers=2)
        assert 'seed' not in str(caught.value)


def test_order_of_bases_that_would_lose_a_state_is_refused():
    """The class says so when it is written."""
    with pytest.raises(TypeError, match=re.escape(
            'Expand must come before SeededTransformer among the bases of '
            'Wrong, so that a state holds the left-overs of both: '
            'class Wrong(Expand, SeededTransformer)')):
        type('Wrong', (SeededTransformer, Expand), {})


def test_state_of_a_stage_that_draws_in_order_is_refused():
    """Its pieces could not be made again; it says what to derive from."""
    class Drawing(Expand):
        def __init__(self, data_stream):
            super().__init__(data_stream)
            self.rng = numpy.random.RandomState(1)

        def expand(self, item):
            yield (self.rng.randint(10),)

    stream = Drawing(numbers())
    assert 4 == len(list(stream))
    next(stream.get_epoch_iterator())
    with pytest.raises(TypeError, match='Expand and SeededTransformer'):
        stream.state_dict()
    with pytest.raises(ValueError, match='give it seed='):
        stream.shard(0, 2)


# Counts and ranks

def test_number_of_pieces_gives_a_length():
    """None is known where the stage does not say so."""
    assert 12 == len(Repeat(numbers(), 3)) == len(list(Repeat(numbers(), 3)))
    with pytest.raises(TypeError, match='length of an epoch'):
        len(Countdown(numbers()))


@pytest.mark.parametrize('made, text', [
    (lambda: [1], 'says that the item makes 2 pieces, but expand makes 1'),
    (lambda: [1, 2, 3], 'but expand makes 3'),
    (lambda: iter([1]), 'but expand makes 1'),
    (lambda: iter([1, 2, 3]), 'but expand makes more')])
def test_another_number_of_pieces_than_was_said_is_refused(made, text):
    """Nothing is left out silently."""
    class Wrong(Repeat):
        def expand(self, item):
            found = made()
            pieces = [(piece,) for piece in found]
            return pieces if isinstance(found, list) else iter(pieces)

    for stream in Wrong(numbers(), 2), Wrong(numbers(), 2).shard(1, 2):
        with pytest.raises(ValueError, match=text):
            list(stream)
        if 'more' in text or 'makes 3' in text:
            break


@pytest.mark.parametrize('uneven', ['uneven', 'drop', 'pad'])
@pytest.mark.parametrize('count', [2, 3, 5])
def test_ranks_share_the_pieces_where_their_number_is_known(count, uneven):
    """They share the pieces of any item, and a state is that of the whole
    order."""
    def build():
        return Repeat(numbers(3), 3)

    whole = list(build())
    total = len(whole)
    for rank in range(count):
        ours = build().shard(rank, count, uneven=uneven)
        expected = whole[rank::count]
        if uneven == 'drop':
            expected = expected[:total // count]
        if uneven == 'pad' and len(expected) < -(-total // count):
            expected = [*expected, whole[(
                rank + len(expected) * count) % total]]
        assert len(ours) == len(expected)
        assert expected == list(ours)
    ours = build().shard(0, count)
    epoch = ours.get_epoch_iterator()
    assert whole[:1] == [next(epoch)]
    alone = build()
    alone.load_state_dict(ours.state_dict())
    assert whole[count:] == list(alone)


def test_ranks_share_the_items_where_the_number_of_pieces_is_not_known():
    """Each has a state of its own."""
    streams = [Countdown(numbers(6)).shard(rank, 2) for rank in range(2)]
    assert [[2, 1, 4, 3, 2, 1], [1, 3, 2, 1, 5, 4, 3, 2, 1]] == [
        [number for number, in stream] for stream in streams]
    next(streams[0].get_epoch_iterator())
    with pytest.raises(StateMismatchError):
        Countdown(numbers(6)).load_state_dict(streams[0].state_dict())
    with pytest.raises(ValueError, match="use by='batch'"):
        Countdown(numbers(6)).shard(0, 2, by='example')


@pytest.mark.parametrize('build', [
    lambda stream: Batch(stream, ConstantScheme(4)),
    lambda stream: Take(stream, 9),
    lambda stream: Chain([stream, numbers(5)]),
    lambda stream: Mix({'a': stream, 'b': numbers(5)}, seed=1)])
def test_ranks_share_what_is_made_of_a_stage_that_makes_one_of_each(build):
    """Its items are as many as those below, though num_pieces is not known."""
    class Same(Expand):
        one_to_one = True

        def expand(self, item):
            yield item

    whole = list(map(str, build(numbers(10))))
    assert [whole[::2], whole[1::2]] == [
        list(map(str, build(Same(numbers(10))).shard(rank, 2)))
        for rank in range(2)]


def test_overridden_expand_is_not_bypassed_by_ranks():
    """Those of Unpack read rows alone, unless a subclass changes them."""
    class Negative(Unpack):
        def expand(self, item):
            for number, in super().expand(item):
                yield (-number,)

    def build():
        return Negative(DataStream(
            IndexableDataset(numpy.arange(8)),
            iteration_scheme=ShuffledScheme(8, 3)))

    whole = [int(number) for number, in build()]
    assert min(whole) == -7
    ranks = [[int(number) for number, in build().shard(rank, 2)]
             for rank in range(2)]
    assert sorted(whole) == sorted(chain.from_iterable(ranks))


# Examples that fail, left out

def skipping(function, count=6, batch_size=None, **kwargs):
    """Return a stage over a stream that leaves out examples."""
    data = IndexableDataset(numpy.arange(count))
    return of_function(function, DataStream(
        data, on_error='skip', **(
            {'batch_size': batch_size} if batch_size
            else {'iteration_scheme': SequentialExampleScheme(count)}),
        **kwargs))


def test_item_that_fails_is_left_out_with_all_of_its_pieces():
    """Those that could be made are left out, too."""
    stream = skipping(failing)
    expected = [f'{item}.{number}' for item in (0, 2, 3, 4, 5)
                for number in range(3)]
    for _ in range(2):
        assert expected == [label for label, in stream]
        skipped = stream.skipped_examples()
        assert 1 == skipped.count
        assert (3, 1, 'Pieces', 'PieceError: 1.1') == skipped.examples[0]
    assert_resumes(lambda: skipping(failing))
    assert_resumes(lambda: Batch(skipping(failing), batch_size=4))
    assert_resumes(lambda: Mapping(skipping(failing), tuple))


def test_ranks_leave_out_items_with_all_of_their_pieces():
    """The one that reads it does."""
    found = [[label for label, in skipping(failing).shard(rank, 2)]
             for rank in range(2)]
    assert [[f'{item}.{number}' for item in items for number in range(3)]
            for items in ([0, 2, 4], [3, 5])] == found
    # Ranks that leave out items know no piece by its number.
    assert [[('0.0',), ('0.1',), ('2.0',), ('2.1',)],
            [('1.0',), ('1.1',)]] == [
        list(Repeat(numbers(3, on_error='skip'), 2).shard(rank, 2))
        for rank in range(2)]


def test_batch_that_fails_counts_as_its_examples():
    """They are named, and more than may be are an error."""
    def split(item):
        if 4 in item[0]:
            raise PieceError('four')
        yield (item[0][:1],)
        yield (item[0][1:],)

    stream = skipping(split, 9, 3)
    assert [0, 6] == [int(part[0]) for part, in stream][::2]
    skipped = stream.skipped_examples()
    assert [3, 4, 5] == [each.example for each in skipped.examples]
    with pytest.raises(BadRecordsError, match='3 examples of the epoch'):
        list(skipping(split, 9, 3, max_skipped=2))


# Random pipelines

def without_draws(event):
    """Return what an epoch gave, without what was drawn."""
    if isinstance(event, tuple):
        return tuple(map(without_draws, event))
    return re.sub(r':\d+', '', event)


def check_plan(plan):
    """Check one pipeline, from each state that is saved of it."""
    stream = plan.build()
    epochs = [read(stream.get_epoch_iterator()) for _ in range(2)]
    if not any(name == 'split' and arguments[-1]
               for name, arguments in plan.stages):
        assert [plan.events()] * 2 == epochs
    for number, expected in enumerate(epochs):
        for step in range(len(expected) + 1):
            stream = plan.build()
            for _ in range(number):
                read(stream.get_epoch_iterator())
            epoch = stream.get_epoch_iterator()
            assert expected[:step] == [read_one(epoch) for _ in range(step)]
            restored = plan.build()
            restored.load_state_dict(json.loads(json.dumps(
                stream.state_dict())))
            assert expected[step:] == read(
                restored.get_epoch_iterator()), (plan, number, step)
            again_stream, again = pickle.loads(pickle.dumps((stream, epoch)))
            assert expected[step:] == read(epoch) == read(again)
            del again_stream


@pytest.mark.parametrize('number', range(40))
def test_random_pipeline_gives_what_plain_python_gives(number):
    """Results are equal from any state and pickle on, with errors among the
    items."""
    check_plan(Plan(number))


@pytest.mark.full
@pytest.mark.parametrize('first', range(40, 2440, 25))
def test_2400_random_pipelines_give_what_plain_python_gives(first):
    """It runs the short test's comparison."""
    for number in range(first, first + 25):
        check_plan(Plan(number))


@pytest.mark.full
def test_random_pipelines_go_on_in_another_process():
    """They resume from the states and pickles of all steps."""
    with ReplayProcess() as process:
        for number in range(60):
            plan = Plan(number, errors=False)
            expected = list(plan.build())
            saved, rests = [], []
            for step in range(len(expected)):
                stream = plan.build()
                epoch = stream.get_epoch_iterator()
                for _ in range(step):
                    next(epoch)
                saved += [Saved('state', json.dumps(
                    stream.state_dict()).encode()),
                    Saved('pickle', pickle.dumps((stream, epoch)))]
                rests += [len(expected) - step] * 2
            assert rests == [len(each.rest) for each in process.replay(
                plan.build, saved)]


@pytest.mark.parametrize('number', range(30))
def test_random_counts_and_ranks_share_what_plain_python_gives(number):
    """Items or pieces, each once, and draws that do not depend on ranks."""
    rng = numpy.random.RandomState(number)
    count, times, ranks = (int(rng.randint(low, high)) for low, high in (
        (1, 9), (0, 4), (1, 5)))
    labels = [f'{place}' for place in range(count)]

    def source():
        return DataStream(IndexableDataset({'label': labels}),
                          iteration_scheme=SequentialExampleScheme(count))

    whole = list(DrawingRepeat(source(), times, seed=number))
    assert [f'{label}.{place}' for label in labels
            for place in range(times)] == [
                without_draws(label) for label, in whole]
    for rank in range(ranks):
        assert whole[rank::ranks] == list(DrawingRepeat(
            source(), times, seed=number).shard(rank, ranks))
    table = zlib.crc32(bytes(number))
    items = list(DrawingSplits(source(), table, 3, seed=number))
    found = [list(DrawingSplits(source(), table, 3, seed=number).shard(
        rank, ranks)) for rank in range(ranks)]
    for rank, ours in enumerate(found):
        assert ours == [
            (label,) for label, in items
            if int(label.partition('.')[0]) % ranks == rank]
