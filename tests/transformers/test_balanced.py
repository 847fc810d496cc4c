"""BalancedBatches: the work of a step, split evenly over ranks."""
import itertools
import json
import pickle
import subprocess
import sys
from functools import partial

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuel.datasets import (
    IndexableDataset, IterableDataset, Runs, Windows)
from fuel.exceptions import StateMismatchError
from fuel.schemes import (
    ComputedShuffledExampleScheme,
    ConcatenatedScheme,
    SequentialExampleScheme,
    ShuffledExampleScheme,
    ShuffledScheme,
)
from fuel.schemes.shard import Shard
from fuel.sharding.asking import epoch_order
from fuel.sharding.made import example_ids
from fuel.streams import DataStream
from fuel.transformers import (
    BalancedBatches,
    Chain,
    Filter,
    Mapping,
    MarkExamples,
    MarkPadding,
    Merge,
    Mix,
    MultiProcessing,
    Rename,
    Take,
    Unpack,
)
from fuel.transformers.balanced.parts import (
    attention, balance, balance_within, linear, longest_first, waited)
from fuel.transformers.noise import GaussianNoise
from fuel.transformers.shuffling import ShuffleBuffer

# Rows of a data set differ from those of the one before by as much.
APART = 1000
N = 23


def data(count=N, first=0, seed=0):
    """Return a data set of numbers, and of lengths."""
    rng = numpy.random.default_rng([count, first, seed])
    return IndexableDataset({
        'number': first + numpy.arange(count),
        'length': rng.integers(0, 40, count)})


def stream_of(count=N, first=0, scheme=ShuffledExampleScheme):
    """Return a stream of examples."""
    return DataStream(data(count, first), iteration_scheme=scheme(count))


def unpacked(count=N, first=0):
    """Return a stream of examples that are read in batches."""
    return Unpack(DataStream(data(count, first),
                             iteration_scheme=ShuffledScheme(count, 4)))


def same(example):
    """Return an example as it came."""
    return example


# By name: a stream of single examples, whose order is known.
STREAMS = {
    'shuffled': stream_of,
    'in order': lambda: stream_of(scheme=SequentialExampleScheme),
    'computed': lambda: stream_of(scheme=ComputedShuffledExampleScheme),
    'subset': lambda: DataStream(data(), iteration_scheme=(
        ShuffledExampleScheme(range(3, 20)))),
    'mapped': lambda: Mapping(stream_of(), same),
    'Unpack': unpacked,
    'Take': lambda: Take(stream_of(), 19),
    'Take of Unpack': lambda: Take(Mapping(unpacked(), same), 19),
    'Chain': lambda: Chain((stream_of(9), stream_of(14, APART))),
    'Chain of Take': lambda: Chain((
        Take(unpacked(9), 5), stream_of(14, APART))),
    'Mix': lambda: Mix((stream_of(9), stream_of(14, APART)), [2, 1],
                       stop='last'),
    'Mix to the first': lambda: Mix(
        (stream_of(9), stream_of(14, APART)), [1, 2]),
    'Mix for ever': lambda: Mix((stream_of(4), stream_of(14, APART)), [1, 1],
                                stop='forever', epoch_size=21),
    'Mix of Take': lambda: Mix(
        (Take(stream_of(9), 7), unpacked(14, APART)), [1, 2], stop='last'),
    'Merge': lambda: Merge((stream_of(), Rename(stream_of(N, APART), {
        'number': 'other', 'length': 'another'})),
        ('number', 'length', 'other', 'another')),
    'ShuffleBuffer': lambda: ShuffleBuffer(unpacked(), 5, seed=3),
    'ConcatenatedScheme': lambda: DataStream(data(), iteration_scheme=(
        ConcatenatedScheme([ShuffledExampleScheme(9),
                            SequentialExampleScheme(range(9, 20))]))),
}
# They cannot go back to the start of an epoch, and why.
ONWARD = {'Mix for ever': 'cannot go back', 'ConcatenatedScheme': 'in order'}


def balanced(name, size, accumulate=1, **kwargs):
    """Return balanced batches of a stream."""
    return BalancedBatches(STREAMS[name](), 'length', batch_size=size,
                           accumulate=accumulate, **kwargs)


def numbers(items):
    """Return the numbers of the examples of batches."""
    return [item[0].tolist() for item in items]


def plain_steps(name, size):
    """Return the numbers and lengths of each step, as they are read."""
    examples = [(int(example[0]), int(example[1]))
                for example in STREAMS[name]()]
    return [examples[start:start + size]
            for start in range(0, len(examples), size)]


def rounds_of(ranks):
    """Return the batches of each round, of the ranks that have one."""
    return [[batch for batch in one if batch is not None]
            for one in itertools.zip_longest(*ranks)]


def in_steps(rounds, accumulate, steps, num_ranks):
    """Return the examples of each step, given the rounds of all ranks."""
    found = []
    for step in steps:
        count = min(accumulate, max(1, len(step) // num_ranks))
        found.append([one for batches in rounds[:count] for batch in batches
                      for one in batch])
        rounds = rounds[count:]
    assert not rounds
    return found


SIZES = st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(0, 6))


@pytest.mark.parametrize('name', STREAMS)
@settings(max_examples=10)
@given(SIZES, st.sampled_from(['linear', 'attention']))
def test_steps_have_the_examples_of_the_plain_order(name, sizes, cost):
    """Each once, with as many rounds on each rank and no empty batch; those
    of a batch are in the plain order, and the step's tokens are known."""
    num_ranks, accumulate, more = sizes
    size = num_ranks * accumulate + more
    steps = plain_steps(name, size)
    place = {number: (step, place) for step, examples in enumerate(steps)
             for place, (number, _) in enumerate(examples)}
    ranks = []
    for rank in range(num_ranks):
        stream = balanced(name, size, accumulate, cost=cost).shard(
            rank, num_ranks, uneven='uneven')
        ranks.append([])
        for batch in stream:
            ranks[-1].append(batch[0].tolist())
            if name != 'Mix for ever':
                step, _ = place[ranks[-1][-1][0]]
                assert stream.step_tokens == sum(
                    length for _, length in steps[step])
                assert ranks[-1][-1] == sorted(
                    ranks[-1][-1], key=place.__getitem__)
            assert len(batch[0]) == len(batch[1]) > 0
    found = in_steps(rounds_of(ranks), accumulate, steps, num_ranks)
    assert [sorted(step) for step in found] == [
        sorted(number for number, _ in step) for step in steps]
    counts = list(map(len, ranks))
    short = len(steps[-1]) < num_ranks
    assert max(counts) - min(counts) == short
    if not short:
        assert len(balanced(name, size, accumulate).shard(
            0, num_ranks)) == counts[0] if name in (
                'shuffled', 'Take', 'Chain', 'mapped', 'Merge') else True


@pytest.mark.parametrize('name', STREAMS)
@settings(max_examples=7)
@given(SIZES, st.sampled_from(['drop', 'pad']))
def test_what_the_last_step_lacks(name, sizes, uneven):
    """It is left out, or filled with examples of the start, and marked."""
    num_ranks, accumulate, more = sizes
    size = num_ranks * accumulate + more
    steps = plain_steps(name, size)
    if uneven == 'pad' and name in ONWARD:
        with pytest.raises(ValueError, match=ONWARD[name]):
            balanced(name, size).shard(0, num_ranks, uneven='pad')
        return
    ranks, marks = [], []
    for rank in range(num_ranks):
        items = list(MarkPadding(balanced(name, size, accumulate).shard(
            rank, num_ranks, uneven=uneven)))
        ranks.append(numbers(items))
        marks.append([item[-1].tolist() for item in items])
    short = len(steps[-1]) % size
    if short and uneven == 'drop':
        steps = steps[:-1]
        assert not any(sum(sum(marks, []), []))
    elif short:
        plain = sum(steps, [])
        steps[-1] = steps[-1] + [
            plain[place % len(plain)] for place in range(size - short)]
        assert sum(sum(sum(marks, []), [])) == size - short
    assert len(set(map(len, ranks))) == 1
    found = in_steps(rounds_of(ranks), accumulate, steps, num_ranks)
    assert [sorted(step) for step in found] == [
        sorted(number for number, _ in step) for step in steps]


@pytest.mark.parametrize('name', STREAMS)
@settings(max_examples=3)
@given(SIZES, st.data())
def test_order_says_what_comes(name, sizes, drawn):
    """Of all ranks and of each; asking changes nothing."""
    num_ranks, accumulate, more = sizes
    size = num_ranks * accumulate + more
    uneven = drawn.draw(st.sampled_from(['uneven', 'drop']))

    def ids(order):
        return [[row + (0 if dataset == 0 else APART)
                 for dataset, row in example_ids(made)] for made in order]

    for rank in range(num_ranks):
        stream = balanced(name, size, accumulate)
        order = epoch_order(stream).share(Shard(
            rank, num_ranks, uneven=uneven))
        order = pickle.loads(pickle.dumps(order))
        ours = stream.shard(rank, num_ranks, uneven=uneven)
        found = ids(order)
        assert len(order) == len(found)
        of_all = epoch_order(ours)
        whole = ids(of_all)
        assert whole[rank::num_ranks] == found
        assert numbers(ours) == found
        marked = MarkExamples(balanced(name, size, accumulate)).shard(
            rank, num_ranks, uneven=uneven)
        assert [item[0].tolist() for item in marked] == found
        for item in marked:
            marks = item[-1].reshape(len(item[0]), -1)[:, :2]
            assert (marks @ [APART, 1]).tolist() == item[0].tolist()
        for number in {*found[0], 4, APART + 3} if found else ():
            dataset, row = divmod(number, APART)
            if name == 'Merge' and dataset:
                # Rows of the other streams are not in the numbers.
                continue
            assert list(of_all.places_of(dataset, row)) == [
                (item, offset) for item, rows in enumerate(whole)
                for offset, one in enumerate(rows) if one == number]


@pytest.mark.parametrize('name', STREAMS)
@settings(max_examples=3)
@given(SIZES)
def test_resumes_at_each_item(name, sizes):
    """From states and from pickles, and so does the next epoch."""
    num_ranks, accumulate, more = sizes
    size = num_ranks * accumulate + more

    def build():
        return balanced(name, size, accumulate).shard(
            num_ranks - 1, num_ranks, uneven='drop')

    stream = build()
    iterator = stream.get_epoch_iterator()
    states, pickles = [], []
    found = []
    for _ in itertools.count():
        states.append(json.dumps(stream.state_dict()))
        pickles.append(pickle.dumps(iterator))
        try:
            found.append(next(iterator)[0].tolist())
        except StopIteration:
            break
    following = numbers(stream)
    for place, (state, pickled) in enumerate(
            zip(states, pickles, strict=True)):
        again = build()
        again.load_state_dict(json.loads(state))
        # It is the same state before anything is read.
        assert json.dumps(again.state_dict()) == state
        assert numbers(again) == found[place:]
        assert numbers(again) == following
        assert numbers(pickle.loads(pickled)) == found[place:]


@pytest.mark.parametrize('name', STREAMS)
@pytest.mark.parametrize('accumulate', [1, 2])
def test_stream_that_is_not_sharded(name, accumulate):
    """It has the rounds of one rank, resumes at each, and so do ranks."""
    def build():
        return balanced(name, 6, accumulate)

    steps = plain_steps(name, 6)
    stream = build()
    iterator = stream.get_epoch_iterator()
    states, pickles, found = [], [], []
    while True:
        states.append(json.dumps(stream.state_dict()))
        pickles.append(pickle.dumps(iterator))
        try:
            found.append(next(iterator)[0].tolist())
        except StopIteration:
            break
    assert [sorted(one) for one in in_steps(
        [[batch] for batch in found], accumulate, steps, 1)] == [
            sorted(number for number, _ in step) for step in steps]
    following = numbers(stream)
    for place, (state, pickled) in enumerate(
            zip(states, pickles, strict=True)):
        again = build()
        again.load_state_dict(json.loads(state))
        assert numbers(again) == found[place:]
        assert numbers(again) == following
        assert numbers(pickle.loads(pickled)) == found[place:]
    ours = balanced(name, 6, 1).shard(0, 2, uneven='drop')
    ours.load_state_dict(json.loads(states[accumulate]))
    assert numbers(ours) == numbers(
        balanced(name, 6, 1).shard(0, 2, uneven='drop'))[1:]
    again = build()
    again.load_state_dict(json.loads(json.dumps(ours.state_dict())))
    assert numbers(again) == following or name == 'Mix for ever'


def test_state_of_other_steps_is_refused():
    """Of another size, cost or lengths; another accumulate is none."""
    state = json.loads(json.dumps(balanced('shuffled', 6).state_dict()))
    for other in (balanced('shuffled', 7),
                  balanced('shuffled', 6, cost='attention'),
                  balanced('shuffled', 6, limit=100),
                  BalancedBatches(stream_of(), [1] * N, batch_size=6)):
        with pytest.raises(StateMismatchError):
            other.load_state_dict(state)
    balanced('shuffled', 6, 2).load_state_dict(state)


@pytest.mark.parametrize('name', STREAMS)
@settings(max_examples=5)
@given(SIZES, SIZES, st.data())
def test_other_ranks_resume_where_a_step_begins(name, sizes, others, drawn):
    """With other rounds as well; within a step it is refused."""
    num_ranks, accumulate, more = sizes
    other_ranks, other_rounds, other_more = others
    size = max(num_ranks * accumulate + more,
               other_ranks * other_rounds + other_more)
    steps = plain_steps(name, size)
    full = len(steps) - bool(len(steps[-1]) % size)
    ours = balanced(name, size, accumulate).shard(
        0, num_ranks, uneven='drop')
    iterator = ours.get_epoch_iterator()
    count = drawn.draw(st.integers(0, full * accumulate))
    for _ in range(count):
        next(iterator)
    state = json.loads(json.dumps(ours.state_dict()))
    step, number = divmod(count, accumulate)

    def build(rank):
        return balanced(name, size, other_rounds).shard(
            rank, other_ranks, uneven='drop')

    if number and (num_ranks, accumulate) != (other_ranks, other_rounds):
        with pytest.raises(StateMismatchError, match='end of a step'):
            stream = build(0)
            stream.load_state_dict(state)
            next(iter(stream))
        return
    if number:
        return
    ranks = []
    for rank in range(other_ranks):
        stream = build(rank)
        stream.load_state_dict(state)
        ranks.append(numbers(stream))
    found = in_steps(
        rounds_of(ranks), other_rounds, steps[step:full], other_ranks)
    assert [sorted(one) for one in found] == [
        sorted(number for number, _ in one) for one in steps[step:full]]
    # The first ranks take it up again after another step.
    stream = build(0)
    stream.load_state_dict(state)
    iterator = stream.get_epoch_iterator()
    if step < full:
        for _ in range(other_rounds):
            next(iterator)
        back = balanced(name, size, accumulate).shard(
            0, num_ranks, uneven='drop')
        back.load_state_dict(json.loads(json.dumps(stream.state_dict())))
        assert numbers(back) == numbers(balanced(
            name, size, accumulate).shard(0, num_ranks, uneven='drop'))[
                (step + 1) * accumulate:]


def lognormal(rng, count):
    """Return lengths of texts."""
    return numpy.maximum(1, rng.lognormal(5.5, 1, count)).astype(int)


def bimodal(rng, count):
    """Return the lengths of many short texts and a few long ones."""
    return numpy.where(rng.random(count) < .9, rng.integers(50, 150, count),
                       rng.integers(1500, 2500, count))


def loads_of(parts, costs):
    """Return the cost of each part."""
    return [sum(costs[place] for place in part) for part in parts]


@pytest.mark.parametrize(('draw', 'cost'), [
    (lognormal, linear), (bimodal, linear), (lognormal, attention),
    (bimodal, attention)])
@pytest.mark.parametrize('rounds', [1, 2])
@pytest.mark.parametrize(('ranks', 'size'), [(4, 512), (16, 512), (4, 128)])
def test_cost_is_within_a_hundredth_of_the_least(
        ranks, size, rounds, draw, cost):
    """Over 200 steps, at 32 examples a rank and more."""
    rng, ratios = numpy.random.default_rng(5), []
    for _ in range(200):
        costs = cost(draw(rng, size)).tolist()
        parts = balance(costs, ranks, rounds)
        loads = numpy.reshape(loads_of(parts, costs), (rounds, ranks))
        ratios.append(loads.max(1).sum() / max(sum(costs) / ranks, *costs))
    assert numpy.median(ratios) <= 1.01


COSTS = st.lists(st.integers(0, 50) | st.integers(0, 2000), min_size=12,
                 max_size=40).map(partial(map, float)).map(list)


@given(COSTS, st.integers(1, 4), st.integers(1, 3))
def test_never_worse_than_longest_first(costs, ranks, rounds):
    """Neither the costliest part, nor the cost of ranks that wait."""
    parts = balance(costs, ranks, rounds)
    assert sorted(itertools.chain(*parts)) == list(range(len(costs)))
    assert len(parts) == ranks * rounds
    assert all(part and part == sorted(part) for part in parts)
    plain = loads_of(longest_first(costs, [0.] * len(parts)), costs)
    loads = loads_of(parts, costs)
    assert max(loads) <= max(plain) + 1e-9
    ends = numpy.reshape(loads, (rounds, ranks)).max(1)
    assert waited(parts, costs, ranks) == (ends.sum(), ends.max())
    best = numpy.reshape(sorted(plain), (rounds, ranks)).max(1).sum()
    assert ends.sum() <= best + 1e-9


def all_loads(costs, count):
    """Yield the costs of all ways to make some parts, none of them empty."""
    # The first example may be in any part.
    for owners in itertools.product(
            [0], *[range(count)] * (len(costs) - 1)):
        if len(set(owners)) == count:
            loads = [0.] * count
            for cost, owner in zip(costs, owners, strict=True):
                loads[owner] += cost
            yield loads


@settings(max_examples=25)
@given(st.sampled_from([(2, 1), (3, 1), (4, 1), (2, 2)]), st.data())
def test_cost_is_near_that_of_the_best_of_all_ways(shape, drawn):
    """At most 1.34 times as much, as of longest first."""
    ranks, rounds = shape
    count = ranks * rounds
    costs = drawn.draw(st.lists(
        st.integers(1, 30), min_size=count, max_size=7).map(
            partial(map, float)).map(list))
    total, most = waited(balance(costs, ranks, rounds), costs, ranks)
    found = list(all_loads(costs, count))
    assert most <= 1.34 * min(map(max, found))
    assert total <= 1.34 * min(
        sum(sorted(loads)[ranks - 1::ranks]) for loads in found)


def test_long_example_does_not_leave_ranks_waiting():
    """A round with one has more of the others, and the other rounds less."""
    costs = [10.] + [1.] * 10
    parts = balance(costs, 2, 2)
    assert [sorted(loads) for loads in numpy.reshape(
        loads_of(parts, costs), (2, 2)).tolist()] == [[9, 10], [0, 1]] or (
            waited(parts, costs, 2)[0] <= 11)


@given(st.lists(st.integers(0, 30), min_size=12, max_size=30),
       st.integers(1, 4), st.integers(1, 3), st.integers(10, 120))
def test_limit_of_tokens(lengths, ranks, rounds, limit):
    """No part exceeds it, unless it is of one example."""
    costs = attention(numpy.array(lengths)).tolist()
    parts = balance_within(costs, lengths, limit, ranks, rounds)
    if parts is None:
        # A tenth more room would have been enough for any way.
        assert sum(lengths) * 2 > limit * ranks * rounds or (
            max(lengths) > limit)
        return
    assert sorted(itertools.chain(*parts)) == list(range(len(lengths)))
    assert len(parts) == ranks * rounds
    for part in parts:
        assert len(part) == 1 or sum(
            lengths[place] for place in part) <= limit
        assert part


def lengths_given(lengths, size, **kwargs):
    """Return balanced batches of as many examples as there are lengths."""
    count = len(lengths)
    return BalancedBatches(DataStream(
        IndexableDataset({'number': numpy.arange(count)}),
        iteration_scheme=SequentialExampleScheme(count)), lengths,
        batch_size=size, **kwargs)


def test_example_beyond_the_limit():
    """It is named; or it is a batch of its own."""
    lengths = [3, 4, 90, 2, 5, 6, 7, 1]
    stream = lengths_given(lengths, 8, accumulate=2, limit=20)
    with pytest.raises(ValueError, match=(
            'example 2 of the data set, in step 0, has the length 90')):
        next(iter(stream.shard(1, 2)))
    stream = lengths_given(
        lengths, 8, accumulate=2, limit=20, too_long='alone')
    found = [numbers(stream.shard(rank, 2)) for rank in range(2)]
    assert [2] in sum(found, [])
    assert all(sum(lengths[one] for one in batch) <= 20
               for batch in sum(found, []) if batch != [2])
    with pytest.raises(ValueError, match=(
            'the 8 examples of step 0 have 118 tokens, and no way was found '
            'to put them into 1 rounds of 2 ranks with at most 20')):
        next(iter(lengths_given(
            lengths, 8, limit=20, too_long='alone').shard(0, 2)))


def test_costs():
    """Of attention, with a divisor, and of a function of lengths."""
    lengths = [1000, 400, 300, 300, 200, 200, 100]

    def split(cost):
        return sorted(numbers(lengths_given(lengths, 7, cost=cost).shard(
            rank, 2))[0] for rank in range(2))

    def squared(found):
        assert found.tolist() == lengths
        return found ** 2

    assert split('linear') == [[0, 4, 6], [1, 2, 3, 5]]
    assert split('attention') == [[0], [1, 2, 3, 4, 5, 6]]
    assert split(('attention', 1e9)) == [[0, 5], [1, 2, 3, 4, 6]]
    assert split(squared) == [[0], [1, 2, 3, 4, 5, 6]]
    assert split(('attention', numpy.float32(1e9))) == split(
        ('attention', numpy.int64(10 ** 9))) == split(('attention', 1e9))
    assert attention(numpy.array([1000]), 500).tolist() == [3000]
    for cost, match in (
            ('square', "'linear', 'attention'"), (('attention', 0), 'divisor'),
            (numpy.arange(7), "'linear', 'attention'"),
            (lambda found: [[1], [2, 3]], 'a number for each of 7 lengths'),
            (lambda found: found[:-1], 'a number for each of 7 lengths'),
            (lambda found: -found, 'not negative'),
            (lambda found: found * numpy.nan, 'finite'),
            (lambda found: found.astype(str), 'a number for each')):
        with pytest.raises(ValueError, match=match):
            split(cost)


def test_cost_may_work_in_place():
    """The tokens and the limit are those of the lengths."""
    def fewer(lengths):
        lengths //= 10
        return lengths

    stream = lengths_given([40, 30, 20, 10], 4, cost=fewer).shard(0, 2)
    next(iter(stream))
    assert stream.step_tokens == 100
    with pytest.raises(ValueError, match='has the length 40, and limit is 4'):
        next(iter(lengths_given(
            [40, 30, 20, 10], 4, cost=fewer, limit=4).shard(0, 2)))


def test_lengths_of_runs_and_windows():
    """They are known without reading."""
    rows = IndexableDataset({'x': numpy.arange(20)})
    runs = Runs(rows, runs={'lengths': [1, 9, 2, 5, 3]})
    stream = BalancedBatches(DataStream(
        runs, iteration_scheme=SequentialExampleScheme(5)), batch_size=5)
    ours = [stream.shard(rank, 2) for rank in range(2)]
    assert sorted(sum(map(len, batch[0][0])) for batch in (
        list(one) for one in ours)) == [10, 10]
    assert [one.step_tokens for one in ours] == [20, 20]
    windows = Windows(rows, 4)
    stream = BalancedBatches(DataStream(
        windows, iteration_scheme=SequentialExampleScheme(len(windows))),
        batch_size=len(windows))
    next(iter(stream))
    assert stream.step_tokens == 4 * len(windows)


class OneSource(IndexableDataset):
    """A data set that reads one source at a time."""

    def get_data(self, state=None, request=None):
        """Return the examples of a request."""
        assert len(self.sources) == 1
        return super().get_data(state, request)


def test_column_of_lengths_is_read_alone():
    """No other source is read, and the column may be left out of batches."""
    dataset = OneSource({
        'number': numpy.arange(6), 'length': numpy.arange(6)[:, None]})
    BalancedBatches(DataStream(
        dataset, iteration_scheme=SequentialExampleScheme(6)), 'length',
        batch_size=6)


def test_trained_tokens_are_counted_instead():
    """Of a column, or an array."""
    lengths = numpy.arange(1, 8)
    for trained in (numpy.arange(7) % 3, 'trained'):
        stream = BalancedBatches(DataStream(
            IndexableDataset({'number': numpy.arange(7),
                              'trained': numpy.arange(7) % 3}),
            iteration_scheme=SequentialExampleScheme(7)), lengths,
            batch_size=4, trained=trained).shard(1, 2)
        assert [stream.step_tokens for _ in stream] == [3, 3]


def test_several_data_sets_have_lengths_each():
    """In the order in which the pipeline has them."""
    def stream(lengths):
        return BalancedBatches(
            Chain((stream_of(4, 0, SequentialExampleScheme),
                   stream_of(3, APART, SequentialExampleScheme))), lengths,
            batch_size=7)

    ours = stream((numpy.arange(4), numpy.array([10, 20, 30])))
    next(iter(ours))
    assert ours.step_tokens == 66
    with pytest.raises(ValueError, match='one array for each of the 2 data'):
        stream(numpy.arange(4))
    with pytest.raises(ValueError, match='one length for each of the 3 rows'):
        stream((numpy.arange(4), numpy.arange(4)))


@pytest.mark.parametrize(('lengths', 'match'), [
    (None, 'are not runs of rows'), ('nothing', 'nothing'),
    ([1, 2], 'one length for each of the 23 rows, got 2'),
    (numpy.arange(23.), 'must be integers'),
    (numpy.zeros((23, 2), int), 'must be integers'),
    ([1] * 22 + [-3], 'row 22 has the length -3'),
    (numpy.full(23, 2 ** 63, 'uint64'), 'row 0 has the length 9223'),
    ([1] * 22 + [2 ** 60], 'row 22 has the length 1152'),
    ([[1], [2, 3]] + [[4]] * 21, 'must be integers'),
    (numpy.ma.masked_array([1] * 23, [False] * 5 + [True] + [False] * 17),
     'row 5 has no length')])
def test_wrong_lengths_are_refused(lengths, match):
    """When the stage is made."""
    with pytest.raises(ValueError, match=match):
        BalancedBatches(stream_of(), lengths, batch_size=4)


def test_wrong_arguments_are_refused():
    """With what to do."""
    for build, match in (
            (lambda: BalancedBatches(DataStream(
                data(), batch_size=4), 'length', batch_size=4), 'put Unpack'),
            (lambda: BalancedBatches(
                stream_of().shard(0, 2), 'length', batch_size=4),
             'shard BalancedBatches instead'),
            (lambda: BalancedBatches(Filter(stream_of(), same), 'length',
                                     batch_size=4), 'stage Filter'),
            (lambda: BalancedBatches(MultiProcessing(Filter(
                stream_of(), same)), 'length', batch_size=4), 'Filter'),
            (lambda: balanced('shuffled', 3, 4), 'at least|are too few for 1'),
            (lambda: balanced('shuffled', 7, 2).shard(0, 4),
             'use batch_size=8 or more'),
            (lambda: balanced('shuffled', 8).shard(0, 2, 'example'),
             "by='batch'"),
            (lambda: epoch_order(balanced('shuffled', 8)).share(
                Shard(0, 2, 'example')), "by='batch'"),
            (lambda: balanced('shuffled', 8, limit=0), 'limit'),
            (lambda: balanced('shuffled', 8, too_long='cut'), 'too_long')):
        with pytest.raises(ValueError, match=match):
            build()
    with pytest.raises(TypeError, match='batch_size'):
        BalancedBatches(stream_of(), 'length')


def test_stream_of_unknown_length_is_refused():
    """When it is read."""
    stream = BalancedBatches(DataStream(IterableDataset(
        {'x': iter(range(9))})), numpy.ones(9, int), batch_size=3)
    with pytest.raises(ValueError, match='how many examples an epoch has'):
        next(iter(stream))


def test_ranks_are_warned_of_an_uneven_end(monkeypatch):
    """If the last step has too few examples for all."""
    monkeypatch.setattr('fuel.sharding.shard_pipeline.ranks_wait',
                        lambda num_shards: True)
    with pytest.warns(UserWarning, match='cannot be shared evenly'):
        Mapping(balanced('shuffled', 10), same).shard(0, 4)
    balanced('shuffled', 7).shard(0, 2)
    balanced('shuffled', 10).shard(0, 4, uneven='drop')


def test_stages_above_resume_on_other_ranks():
    """Their draws are by the numbers of items of all ranks."""
    def build(rank, ranks, rounds):
        return GaussianNoise(Mapping(
            balanced('shuffled', 6, rounds), as_floats), 1., seed=2).shard(
                rank, ranks, uneven='drop')

    first = [list(build(rank, 2, 2)) for rank in range(2)]
    assert first[0][0][0].tolist() != first[1][0][0].tolist()
    stream = build(0, 2, 2)
    iterator = stream.get_epoch_iterator()
    for _ in range(2):
        next(iterator)
    state = json.loads(json.dumps(stream.state_dict()))
    assert len(list(iterator)) == 4
    again = build(1, 2, 2)
    again.load_state_dict(state)
    for wanted, got in zip(first[1][2:], again, strict=True):
        for one, other in zip(wanted, got, strict=True):
            assert numpy.array_equal(one, other)
    other = build(0, 3, 1)
    other.load_state_dict(state)
    assert len(list(other)) == 2


def as_floats(batch):
    """Return a batch of floats."""
    return tuple(part.astype(float) for part in batch)


class Counting(IndexableDataset):
    """A data set that records what is read of it."""

    read = ()

    def get_data(self, state=None, request=None):
        """Return the examples of a request."""
        Counting.read += tuple(numpy.ravel(request).tolist())
        return super().get_data(state, request)


def counted(count=N):
    """Return a data set of numbers, and of lengths, that are counted."""
    rng = numpy.random.default_rng(count)
    return Counting({'number': numpy.arange(count),
                     'length': rng.integers(0, 40, count)})


@pytest.mark.parametrize('build', [
    lambda: DataStream(counted(), shuffle=True),
    lambda: Take(DataStream(counted(), shuffle=True), 19),
    lambda: Mapping(Unpack(DataStream(
        counted(), batch_size=4, shuffle=True)), same),
    lambda: Chain((Take(DataStream(counted(), shuffle=True), 9),
                   DataStream(counted(), shuffle=True))),
    lambda: Mix((Take(DataStream(counted(), shuffle=True), 9),
                 DataStream(counted(), shuffle=True)), stop='last')])
def test_rank_reads_its_own_examples_alone(build):
    """Each once, also those of a stage that is not one-to-one."""
    for rank in range(3):
        stream = BalancedBatches(build(), 'length', batch_size=7,
                                 accumulate=2).shard(rank, 3, uneven='drop')
        Counting.read = ()
        found = numbers(stream)
        assert sorted(Counting.read) == sorted(sum(found, []))


PROGRAM = """
import json, sys
from test_balanced import balanced, numbers
name, size, rounds, rank, ranks, uneven = json.loads(sys.argv[1])
stream = balanced(name, size, rounds).shard(rank, ranks, uneven=uneven)
stream.load_state_dict(json.loads(sys.argv[2]))
print(json.dumps(numbers(stream)))
"""


@pytest.mark.parametrize('name', ['shuffled', 'Mix for ever', 'Chain of Take'])
def test_resumes_in_a_new_process(name, request):
    """Within a step, and on other ranks at a step's start."""
    def resumed(state, *arguments):
        found = subprocess.run(
            [sys.executable, '-c', PROGRAM, json.dumps(arguments),
             json.dumps(state)], cwd=request.path.parent, check=True,
            capture_output=True, text=True)
        return json.loads(found.stdout)

    stream = balanced(name, 8, 3).shard(1, 2, uneven='drop')
    iterator = stream.get_epoch_iterator()
    states, found = [stream.state_dict()], []
    for batch in iterator:
        found.append(batch[0].tolist())
        states.append(stream.state_dict())
    assert resumed(states[2], name, 8, 3, 1, 2, 'drop') == found[2:]
    ours = [resumed(states[3], name, 8, 1, rank, 4, 'drop')
            for rank in range(4)]
    steps = plain_steps(name, 8)
    assert [sorted(step) for step in in_steps(
        rounds_of(ours), 1, steps[1:2], 4)] == [
            sorted(number for number, _ in steps[1])]


class Broken(IndexableDataset):
    """A data set some of whose examples cannot be read."""

    def get_data(self, state=None, request=None):
        """Return an example, or raise an error."""
        if request in (3, 4, 11):
            raise OSError(f'no example {request}')
        return super().get_data(state, request)


def test_reading_goes_on_after_an_example_that_fails():
    """Once it has raised its error, also after a resume."""
    def build():
        return BalancedBatches(DataStream(
            Broken({'number': numpy.arange(14)}),
            iteration_scheme=SequentialExampleScheme(14)),
            numpy.arange(14) % 5, batch_size=6, accumulate=2)

    def read(stream, iterator):
        found, errors, states = [], [], []
        while True:
            states.append((len(found), len(errors),
                           json.dumps(stream.state_dict())))
            try:
                found.append(next(iterator)[0].tolist())
            except OSError as error:
                errors.append(str(error))
            except StopIteration:
                return found, errors, states

    stream = build()
    found, errors, states = read(stream, stream.get_epoch_iterator())
    assert sorted(sum(found, [])) == [
        number for number in range(14) if number not in (3, 4, 11)]
    assert sorted(errors) == [f'no example {one}' for one in (11, 3, 4)]
    for count, failed, state in states:
        again = build()
        again.load_state_dict(json.loads(state))
        rest, more, _ = read(again, again.get_epoch_iterator())
        assert rest == found[count:]
        assert more == errors[failed:]


def test_batch_of_which_all_examples_are_left_out():
    """The rank says so, since it cannot have a round less than the others."""
    for size, match in (6, None), (2, 'which make .* all were left out by'):
        ranks = [BalancedBatches(DataStream(
            Broken({'number': numpy.arange(12)}),
            iteration_scheme=SequentialExampleScheme(12), on_error='skip',
            max_skipped=3), numpy.ones(12, int), batch_size=size).shard(
                rank, 2) for rank in range(2)]
        if match is None:
            assert sorted(sum(sum(map(numbers, ranks), []), [])) == [
                number for number in range(12) if number not in (3, 4, 11)]
        else:
            with pytest.raises(ValueError, match=match):
                list(map(list, ranks))
