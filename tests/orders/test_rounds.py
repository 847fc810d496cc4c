"""Rounds of ranks that do not take one item each of the whole order.

The oracle is what the iterators of all ranks deliver.
"""
import copy
import itertools
import json
import pickle

import numpy
import pytest

from fuel.datasets import IndexableDataset
from fuel.exceptions import StateMismatchError, UnknownOrderError
from fuel.orders import leave_out
from fuel.schemes import (
    ConcatenatedScheme,
    ConstantScheme,
    SequentialExampleScheme,
    SequentialScheme,
)
from fuel.schemes.shard import Shard
from fuel.streams import DataStream
from fuel.transformers import (
    BalancedBatches,
    Batch,
    Cache,
    Cast,
    Mapping,
    MarkPadding,
    Merge,
    MultiThreading,
    Unpack,
)
from fuel.transformers.shuffling import ShuffleBuffer

pytestmark = pytest.mark.filterwarnings('ignore:an epoch')


def rows_of(item):
    """Return the rows of an item that was delivered."""
    return numpy.atleast_1d(item[0]).tolist()


def epoch_of(stream):
    """Return the rows of each item of an epoch."""
    return list(map(rows_of, stream))


def split(rank, ranks=3, uneven='uneven'):
    """Return a share of batches; some are smaller than the number of
    ranks."""
    schemes = [SequentialScheme(list(range(first, stop)), size)
               for first, stop, size in [(0, 9, 4), (9, 16, 2), (16, 31, 5)]]
    return DataStream(
        IndexableDataset({'y': numpy.arange(31)}),
        iteration_scheme=ConcatenatedScheme(schemes)).shard(
            rank, ranks, by='example', uneven=uneven)


def joined(rank, ranks=3):
    """Return a share of batches that are joined from shares of batches."""
    return Cache(Batch(DataStream(
        IndexableDataset({'y': numpy.arange(16)}),
        iteration_scheme=SequentialExampleScheme(16)),
        ConstantScheme(6, num_examples=4)), ConstantScheme(4)).shard(
            rank, ranks)


def buffered(rank, ranks=3):
    """Return a share of batches whose examples are shared below."""
    return Batch(Mapping(DataStream(
        IndexableDataset({'y': numpy.arange(32)}),
        iteration_scheme=SequentialExampleScheme(32)).shard(rank, ranks),
        tuple), ConstantScheme(5))


@pytest.mark.parametrize('uneven', ['uneven', 'drop', 'pad'])
def test_round_of_several_batches_is_found(uneven):
    """Examples, steps and what is left out are found in the same rounds."""
    whole = [epoch_of(split(rank, uneven=uneven)) for rank in range(3)]
    count = len(whole[0])
    for number in range(count):
        expected = [items[:number] + items[number + 1:] for items in whole]
        if uneven == 'pad' and not number:
            with pytest.raises(ValueError, match='round 0 cannot be left out'):
                leave_out(split(0, uneven=uneven), [0])
            continue
        streams = [leave_out(split(rank, uneven=uneven), [number])
                   for rank in range(3)]
        order = streams[0].order
        held = order.step(number).row.tolist()
        repeated = {0, 1} if uneven == 'pad' and number else set()
        assert held == sorted({row for items in whole
                               for row in items[number]} - repeated)
        for row in range(31):
            (place,) = order.index(row)
            assert place.left_out == (row in held)
            for ours in (order.share(rank).index(row) for rank in range(3)):
                for place in ours:
                    assert place.left_out == (place.item == number)
        assert expected == list(map(epoch_of, streams))
        for row in held:
            assert [items[number:] for items in whole] == [
                list(map(rows_of, split(rank, uneven=uneven).iterate_from(
                    position=(0, row)))) for rank in range(3)]
            assert expected == [epoch_of(leave_out(
                split(rank, uneven=uneven),
                positions=[((0, row), (0, row + 1))])) for rank in range(3)]


def test_other_ranks_leave_out_the_same_batches_of_a_round():
    """One rank leaves out the batches that three ranks have in a round."""
    stream = leave_out(split(0), [3])
    state = json.loads(json.dumps(stream.state_dict()))
    alone = split(0, 1)
    alone.load_state_dict(state)
    assert [*range(11), *range(15, 31)] == sum(epoch_of(alone), [])


@pytest.mark.parametrize('make', [joined, buffered])
def test_steps_of_ranks_that_share_examples_are_left_out(make):
    """The items of the whole order are not those of a round."""
    whole = [epoch_of(make(rank)) for rank in range(3)]
    for number in range(len(whole[0])):
        expected = [items[:number] + items[number + 1:] for items in whole]
        streams = [leave_out(make(rank), [number]) for rank in range(3)]
        restored = make(0)
        restored.load_state_dict(json.loads(json.dumps(
            streams[0].state_dict())))
        order = restored.order
        held = {row for items in whole for row in sum(
            items[number:number + 1], [])}
        assert held == {row for row in range(32)
                        for place in order.index(row) if place.left_out}
        assert expected == list(map(epoch_of, streams))
        assert expected[0] == epoch_of(restored)
    for ask in (lambda: make(0).iterate_from(position=(0, 1)),
                lambda: leave_out(make(0), positions=[((0, 1), (0, 2))])):
        with pytest.raises(UnknownOrderError, match='name steps'):
            ask()


class Failing(IndexableDataset):
    """A data set with broken rows."""

    def get_data(self, state=None, request=None):
        """Return a row, or fail."""
        if {4, 5} & set(numpy.atleast_1d(request).tolist()):
            raise ValueError('broken')
        return super().get_data(state, request)


def delivered(stream):
    """Return the rows of an epoch, without the items that fail."""
    iterator, found = iter(stream), []
    while True:
        try:
            found.append(rows_of(next(iterator)))
        except StopIteration:
            return found
        except ValueError:
            continue


def test_failed_items_do_not_shift_what_is_left_out():
    """Items are counted by what was requested."""
    def make(**kwargs):
        return DataStream(Failing({'y': numpy.arange(12)}), **kwargs)

    scheme = SequentialExampleScheme(12)
    for stream in (make(iteration_scheme=scheme, on_error='skip'),
                   make(iteration_scheme=scheme),
                   Mapping(make(iteration_scheme=scheme), tuple)):
        cleaned = leave_out(stream, [8])
        assert cleaned.order.index(8)[0].left_out
        assert [[row] for row in range(12) if row not in (4, 5, 8)] == (
            delivered(cleaned))
    for rank in range(2):
        cleaned = leave_out(make(batch_size=2).shard(rank, 2), [2])
        assert delivered(cleaned) == [
            [[0, 1]], [[2, 3], [6, 7]]][rank]
    iterator = iter(stream := make(batch_size=2))
    for _ in range(2):
        next(iterator)
    with pytest.raises(ValueError, match='broken'):
        next(iterator)
    next(iterator)
    state = stream.state_dict()
    resumed = make(batch_size=2)
    resumed.load_state_dict(state)
    with pytest.raises(ValueError, match='comes before'):
        resumed.iterate_from(step=3)
    assert [[10, 11]] == list(map(rows_of, resumed.iterate_from(step=5)))
    with pytest.raises(ValueError, match='at item 4 of epoch 0 already'):
        make(batch_size=2).load_state_dict(state, leave_out=[3])


def test_dropped_round_is_not_left_out():
    """A state with an empty range could not be loaded."""
    def make():
        return DataStream(IndexableDataset({'y': numpy.arange(14)}),
                          batch_size=2).shard(0, 3, uneven='drop')
    stream = leave_out(make(), positions=[((0, 12), (0, 14))])
    make().load_state_dict(stream.state_dict())
    assert 2 == len(list(stream))
    assert [] == list(make().iterate_from(position=(0, 12)))


def numbers(rank, ranks):
    """Return a share of 24 items of a row."""
    return DataStream(IndexableDataset({'y': numpy.arange(24)}),
                      batch_size=1, shard=(rank, ranks))


@pytest.mark.parametrize('ranks, others', [
    (3, 2), (3, 4), (2, 3), (5, 1), (1, 4), (4, 4)])
def test_other_ranks_leave_out_each_round_with_an_item_that_is_left_out(
        ranks, others):
    """Their rounds begin where the state was saved."""
    for left_out in range(1, 8):
        stream = leave_out(numbers(0, ranks), [left_out])
        iterator = iter(stream)
        next(iterator)
        state = stream.state_dict()
        bad = range(left_out * ranks, min(24, (left_out + 1) * ranks))
        rounds = [range(first, min(24, first + others))
                  for first in range(ranks, 24, others)]
        expected = [item for items in rounds for item in items
                    if not {*items} & {*bad}]
        came, orders = [], []
        for rank in range(others):
            other = numbers(rank, others)
            other.load_state_dict(state)
            orders.append(other.order)
            came += [row for (rows,) in other for row in rows.tolist()]
        assert expected == sorted(came)
        for order in orders:
            assert [row for row in range(ranks, 24)
                    if not order.index(row)[0].left_out] == expected


@pytest.mark.parametrize('others', [2, 4])
def test_steps_of_other_ranks_begin_where_the_state_was_saved(others):
    """A round before it lacks items, and an iterator begins with any later
    one."""
    stream = numbers(0, 3)
    next(iter(stream))
    state = stream.state_dict()

    def make(rank=0):
        other = numbers(rank, others)
        other.load_state_dict(state)
        return other

    came = [[row for (rows,) in make(rank) for row in rows.tolist()]
            for rank in range(others)]
    first = -(-3 // others)
    for number, row in enumerate(came[0], first):
        assert make().order.step(number).row.tolist() == [
            rows[number - first] for rows in came
            if number - first < len(rows)]
        begun = make().iterate_from(step=number)
        assert [row for (rows,) in begun for row in rows.tolist()] == (
            came[0][number - first:])
    # The next epoch begins with a whole round.
    assert make().order.step(first + len(came[0])).row.tolist() == [
        *range(others)]


def test_rank_between_the_others_may_have_the_most_rounds():
    """Steps are counted to its end."""
    def make(rank):
        return Unpack(Cast(DataStream(
            IndexableDataset({'y': numpy.arange(20)}),
            iteration_scheme=ConcatenatedScheme([
                SequentialScheme([0, 1], 2), SequentialScheme(
                    list(range(2, 20)), 8)])).shard(rank, 4), 'int64'))

    came = [epoch_of(make(rank)) for rank in range(4)]
    assert [2, 8, 8, 2] == list(map(len, came))
    order = make(0).order
    assert [sum([items[number] for items in came if number < len(items)], [])
            for number in range(8)] == [
                order.step(number).row.tolist() for number in range(8)]
    assert 'epoch 1' in order.step(8).title


@pytest.mark.parametrize('rank, rows', [(0, [0, 1, 0]), (1, [1, 0, 1])])
def test_padding_repeats_only_examples_of_the_epoch(rank, rows):
    """An epoch of part of a batch is repeated as often as it takes."""
    stream = Batch(DataStream(
        IndexableDataset({'y': numpy.arange(13)}),
        iteration_scheme=SequentialExampleScheme(13)), ConstantScheme(
            6, num_examples=2)).shard(rank, 2, 'example', 'pad')
    assert [rows] == epoch_of(stream)
    assert rows == stream.order.share(rank)[:].row.tolist()


@pytest.mark.parametrize('uneven', ['uneven', 'pad'])
def test_state_of_the_end_of_an_epoch_has_the_rounds_of_the_epoch(uneven):
    """The last one is short, and the ranks are the same."""
    def make(rank):
        return Cache(DataStream(
            IndexableDataset({'y': numpy.arange(15)}),
            iteration_scheme=SequentialScheme(15, 5)),
            ConstantScheme(2)).shard(rank, 3, uneven=uneven)

    for rank in range(3):
        stream, loaded = make(rank), make(rank)
        iterator = iter(stream)
        for _ in make(rank).order.share(rank):
            next(iterator)
        loaded.load_state_dict(stream.state_dict())
        assert [make(rank).order.step(number) for number in range(3)] == [
            loaded.order.step(number) for number in range(3)]


@pytest.mark.parametrize('make', [
    lambda stream: stream, lambda stream: Cast(stream, 'int64')])
def test_short_round_that_was_read_is_not_read_or_left_out_again(make):
    """A state of the end of an epoch is behind its last step."""
    def ours():
        return make(DataStream(IndexableDataset(
            {'y': numpy.arange(10)}), batch_size=1)).shard(0, 4)

    iterator = iter(stream := ours())
    for _ in range(3):
        next(iterator)
    state = stream.state_dict()
    with pytest.raises(ValueError, match='at item 10 of epoch 0 already'):
        ours().load_state_dict(state, leave_out=[2])
    loaded = ours()
    loaded.load_state_dict(state, leave_out=[3])
    with pytest.raises(ValueError, match='item 10 of epoch 0: build'):
        loaded.iterate_from(step=2)
    assert [[], [[4], [8]]] == [epoch_of(loaded) for _ in range(2)]


LAYOUTS = [(1, 'batch', 'uneven'), (2, 'batch', 'pad'), (2, 'batch', 'drop'),
           (3, 'batch', 'uneven'), (4, 'batch', 'drop'), (3, 'example', 'pad'),
           (2, 'example', 'drop')]


def marked(rank, layout):
    """Return a share of 33 rows, in batches that name their repeats."""
    ranks, by, uneven = layout
    stream = MarkPadding(DataStream(
        IndexableDataset({'y': numpy.arange(33)}), batch_size=3,
        shuffle=True, seed=4))
    return stream if ranks == 1 else stream.shard(
        rank, ranks, by=by, uneven=uneven)


def real_rows(item):
    """Return the rows of an item without repeats."""
    return item[0][~item[1]].tolist()


@pytest.mark.parametrize('accumulate', [1, 2])
@pytest.mark.parametrize('layout', LAYOUTS)
@pytest.mark.parametrize('saved', LAYOUTS)
def test_steps_are_those_of_the_training_that_saved_the_state(
        saved, layout, accumulate):
    """Other ranks leave out the rounds that have their examples."""
    came = [[list(map(real_rows, stream)) for _ in range(3)]
            for stream in (marked(rank, saved) for rank in range(saved[0]))]
    steps = []
    for epoch in range(3):
        rounds = max(len(epochs[epoch]) for epochs in came)
        steps += [(epoch, {row for epochs in came for items in epochs[epoch][
            first:first + accumulate] for row in items})
            for first in range(0, rounds, accumulate)]
    stream = marked(0, saved)
    list(stream)
    next(iter(stream))
    state = json.loads(json.dumps(stream.state_dict()))
    first = [epoch for epoch, _ in steps].index(1) + 1
    for number in range(first, len(steps)):
        epoch, bad = steps[number]
        whole, found = [], []
        for loads, kept in ({}, whole), ({
                'leave_out': [number], 'accumulate': accumulate}, found):
            for rank in range(layout[0]):
                other = marked(rank, layout)
                other.load_state_dict(state, **loads)
                kept.append([list(map(real_rows, other)) for _ in range(2)])
        for later in range(2):
            pairs = [(ours[later], theirs[later])
                     for ours, theirs in zip(whole, found, strict=True)]
            # By brute force: rounds of the present ranks.
            most = max(len(ours) for ours, _ in pairs)
            left = {place for place in range(most)
                    if later + 1 == epoch and any(
                        bad & {*items} for ours, _ in pairs
                        for items in ours[place:place + 1])}
            assert [theirs for _, theirs in pairs] == [
                [items for place, items in enumerate(ours)
                 if place not in left] for ours, _ in pairs]


def test_balanced_steps_stay_left_out_on_other_ranks():
    """The number of ranks decides how many items a step has."""
    def unsharded():
        return BalancedBatches(DataStream(
            IndexableDataset({'y': numpy.arange(40),
                              'length': numpy.arange(1, 41)}),
            iteration_scheme=SequentialExampleScheme(40)), 'length',
            batch_size=8)

    def make(rank, ranks):
        return unsharded().shard(rank, ranks)

    stream = make(0, 2)
    next(iter(stream))
    state = stream.state_dict()
    stream = make(0, 2)
    stream.load_state_dict(state, leave_out=[2])
    cleaned = stream.state_dict()
    for ranks in (1, 2, 4):
        came = []
        for rank in range(ranks):
            other = make(rank, ranks)
            other.load_state_dict(cleaned)
            came += sum(map(rows_of, other), [])
        assert [*range(8, 16), *range(24, 40)] == sorted(came)
        # Loaded before it is sharded.
        whole = unsharded()
        whole.load_state_dict(cleaned)
        assert sorted(came) == sorted(sum(map(rows_of, itertools.chain(
            *[whole.shard(rank, ranks) for rank in range(ranks)])), []))
    cleaned = leave_out(unsharded(), [2])
    assert 4 == len(list(cleaned.shard(0, 1)))
    for shard in ((1, 2), (Shard(1, 2),)):
        with pytest.raises(ValueError, match='put leave_out after shard'):
            cleaned.shard(*shard)
    with pytest.raises(ValueError, match='on 2 ranks, save the state'):
        make(0, 3).load_state_dict(state, leave_out=[2])


@pytest.mark.parametrize('value', [
    3, [2, 'batch'], [0, 'batch', 'pad'], [2, 'row', 'pad'],
    [True, 'batch', 'pad'], [2, 'batch', []]])
def test_damaged_layout_is_refused(value):
    """A state comes from somebody else."""
    state = numbers(0, 2).state_dict()
    assert [2, 'batch', 'uneven'] == state['ranks']
    del state['crc']
    with pytest.raises(StateMismatchError, match="field 'ranks'"):
        numbers(0, 2).load_state_dict({**state, 'ranks': value})


@pytest.mark.parametrize('make', [
    lambda stream: stream, MultiThreading,
    lambda stream: Mapping(stream, tuple),
    lambda stream: Merge([stream, numbers(1, 3)], ['a', 'b'])])
def test_each_state_says_how_ranks_share_the_order(make):
    """The later states of an epoch are made in another way."""
    stream = make(numbers(1, 3))
    found = [stream.state_dict()]
    found += [stream.state_dict() for _ in stream]
    found.append(stream.state_dict())
    assert [[3, 'batch', 'uneven']] * 10 == [
        state['ranks'] for state in found]


@pytest.mark.parametrize('count, by', [(22, 'batch'), (22, 'example')])
def test_padding_repeats_nothing_that_is_left_out(count, by):
    """A step whose examples it repeats is refused, or marked for the loss."""
    def make(rank, uneven='pad'):
        return DataStream(
            IndexableDataset({'y': numpy.arange(count)}), batch_size=4
            ).shard(rank, 4, by, uneven)

    state = leave_out(make(0, 'uneven'), [0]).state_dict()
    for rank in range(4):
        with pytest.raises(ValueError, match="uneven='pad' repeats its"):
            leave_out(make(rank), [0])
        with pytest.raises(ValueError, match="uneven='pad' repeats its"):
            make(rank).load_state_dict(make(0).state_dict(), leave_out=[0])
        # The state was saved without padding.
        other = make(rank)
        other.load_state_dict(state)
        with pytest.raises(ValueError, match="uneven='pad' repeats its"):
            list(other)
        # Of a later epoch, and where the last round is left out as well.
        last = len(make(rank)) - 1
        leave_out(make(rank), [0, last])
        with pytest.raises(ValueError, match="uneven='pad' repeats its"):
            leave_out(make(rank), [last + 1])
    list(leave_out(MarkPadding(make(0)), [0]))


def test_padding_that_may_repeat_what_is_left_out_says_so():
    """Behind a buffer, the repeats are not those of the first items."""
    def make(mark):
        return Batch(ShuffleBuffer(mark(DataStream(
            IndexableDataset({'y': numpy.arange(24)}),
            iteration_scheme=SequentialExampleScheme(24))), 5, seed=1),
            ConstantScheme(4)).shard(0, 2, uneven='pad')
    with pytest.raises(ValueError, match='it is not known whether uneven='):
        leave_out(make(lambda stream: stream), [1])
    assert 2 == len(list(leave_out(make(MarkPadding), [1])))


@pytest.mark.parametrize('copied', [
    copy.copy, copy.deepcopy, lambda stream: pickle.loads(pickle.dumps(
        stream))])
def test_copy_leaves_out_what_the_stream_was_loaded_to_leave_out(copied):
    """Ranks share the copy, and an earlier state undoes it, as of the stream;
    what `leave_out` was asked for stays."""
    def rows(stream):
        return sum(epoch_of(stream), [])

    def make():
        return DataStream(IndexableDataset({'y': numpy.arange(8)}),
                          batch_size=2)
    start = make().state_dict()
    loaded = make()
    loaded.load_state_dict(start, leave_out=[3])
    ours = copied(loaded)
    assert [[0, 1], [2, 3]] == [rows(ours.shard(rank, 2))
                                for rank in range(2)]
    built = copied(leave_out(copied(loaded), [1]))
    with pytest.raises(ValueError, match='put leave_out after shard'):
        built.shard(0, 2)
    assert [0, 1, 4, 5] == rows(copied(built))
    for stream, expected in (ours, [*range(8)]), (built, [0, 1, *range(4, 8)]):
        stream.load_state_dict(start)
        assert expected == rows(stream)


@pytest.mark.parametrize('uneven', ['drop', 'pad', 'uneven'])
def test_single_rank_drops_or_fills_a_short_batch_of_examples(uneven):
    """Its steps are those that it takes, and so are those left out."""
    def make():
        return DataStream(
            IndexableDataset({'y': numpy.arange(11)}), batch_size=4).shard(
                0, 1, by='example', uneven=uneven)

    stream = make()
    epochs = [[(set(rows_of(item)), stream.current_step())
               for item in stream] for _ in range(2)]
    steps = [step for epoch in epochs for _, step in epoch]
    assert list(range(len(steps))) == steps
    for rows, step in epochs[0] + epochs[1]:
        assert set(stream.order.step(step).row) <= rows
    bad = len(epochs[0]) + 1
    stream = leave_out(make(), [bad])
    for epoch in epochs:
        assert [one for one in epoch if one[1] != bad] == [
            (set(rows_of(item)), stream.current_step()) for item in stream]
