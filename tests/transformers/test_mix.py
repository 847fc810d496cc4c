"""Mix: several streams in one, by weights."""
import contextlib
import itertools
import json
import math
import pickle

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuel.datasets import IndexableDataset, IterableDataset
from fuel.sharding import planned
from fuel.sharding.order import ENDLESS
from fuel.epochs.pipeline import skip
from fuel.exceptions import StateMismatchError
from fuel.schemes import (
    ComputedShuffledScheme,
    ConstantScheme,
    SequentialExampleScheme,
    SequentialScheme,
    ShuffledExampleScheme,
)
from fuel.schemes.mixing import (
    BLOCK, CHUNK, MixingRequests, MixtureWeights, as_thresholds)
from fuel.streams import DataStream
from fuel.transformers import Batch, Filter, Mapping, Mix, MultiProcessing
from fuel.transformers.shuffling import ShuffleBuffer


def numbers(place, count):
    """Return a stream of ``(place, 0), (place, 1), ...``."""
    return DataStream(
        IndexableDataset({'x': [(place, item) for item in range(count)]}),
        iteration_scheme=SequentialExampleScheme(count))


def pictures(count, size=4):
    """Return a stream of batches."""
    return DataStream(IndexableDataset({'x': numpy.arange(count)}),
                      iteration_scheme=SequentialScheme(count, size))


class Slow(Mix):
    """A mixture whose items are read by `get_data`, in Python."""

    def get_data(self, request=None):
        """Return the next item."""
        return super().get_data(request)

    def get_leftover(self):
        """Return the counters: nothing else is kept."""
        return super().get_leftover()


def points(seed, epoch, weights):
    """Yield the points of an epoch, without end."""
    requests = MixingRequests(numpy.array(weights), seed, epoch, math.inf)
    return (requests.request_at(number)[1] for number in itertools.count())


def choose(weights, point):
    """Return the stream of a point, from the shares themselves."""
    total, below = math.fsum(weights), 0.
    for place, weight in enumerate(weights):
        below += weight
        if weight and point < below / total * 2 ** 62:
            return place
    return max(place for place, weight in enumerate(weights) if weight)


def expected_epoch(lengths, weights, stop, size, seed):
    """Return the first epoch of a mixture of numbered items, as in a book."""
    left, given_ = [*weights], [0] * len(lengths)
    items = []
    for point in points(seed, 0, weights):
        if len(items) == size:
            break
        while True:
            place = choose(left, point)
            if given_[place] < lengths[place]:
                break
            if stop == 'first':
                return items
            if stop == 'forever':
                given_[place] = 0
                continue
            left[place] = 0
            if not any(left):
                return items
        items.append((place, given_[place]))
        given_[place] += 1
    return items


LENGTHS = st.lists(st.integers(1, 40), min_size=1, max_size=5)
STOPS = st.sampled_from(['first', 'last', 'forever'])
SEEDS = st.integers(0, 2 ** 31)


@st.composite
def mixtures(draw):
    """Return lengths, weights, when to stop, how long, and a seed."""
    lengths = draw(LENGTHS)
    weights = draw(st.lists(
        st.integers(0, 4).map(float), min_size=len(lengths),
        max_size=len(lengths)).filter(any))
    stop = draw(STOPS)
    size = draw(st.integers(1, 150) if stop == 'forever'
                else st.none() | st.integers(1, 60))
    return lengths, weights, stop, size, draw(SEEDS)


def build(case, cls=Mix):
    """Return the mixture of a case."""
    lengths, weights, stop, size, seed = case
    return cls([numbers(*pair) for pair in enumerate(lengths)], weights,
               stop=stop, epoch_size=size, seed=seed)


def items_of(epoch):
    """Return the numbered items of an epoch."""
    return [tuple(item) for item, in epoch]


@given(mixtures(), st.sampled_from([Mix, Slow]))
def test_mix_is_what_the_points_choose(case, cls):
    """The compiled reader and the general road agree with plain Python."""
    stream = build(case, cls)
    expected = expected_epoch(*case)
    assert expected == items_of(stream.get_epoch_iterator())
    assert [sum(place == number for place, _ in expected)
            for number in range(len(case[0]))] == list(
        stream.taken.values())


@given(mixtures(), st.data())
def test_skipping_items_equals_reading_them(case, data):
    """Items are skipped in one go or in two, over the ends of streams and
    their restarts."""
    expected = items_of(build(case).get_epoch_iterator())
    read = data.draw(st.integers(0, len(expected)))
    first = data.draw(st.integers(0, len(expected) - read))
    second = data.draw(st.integers(0, len(expected) + 5))
    stream = build(case)
    assert stream.one_to_one
    epoch = stream.get_epoch_iterator()
    for _ in range(read):
        next(epoch)
    skip(epoch, first)
    skip(epoch, second)
    assert expected[read + first + second:] == items_of(epoch)


@given(mixtures(), st.data())
def test_position_is_exact_over_epochs(case, data):
    """It is plain data, at any step of any epoch."""
    stream = build(case)
    whole = [items_of(stream.get_epoch_iterator()) for _ in range(3)]
    number = data.draw(st.integers(0, 1))
    step = data.draw(st.integers(0, len(whole[number])))
    stream = build(case)
    for _ in range(number):
        items_of(stream.get_epoch_iterator())
    epoch = stream.get_epoch_iterator()
    for _ in range(step):
        next(epoch)
    restored = build(case)
    restored.load_state_dict(json.loads(json.dumps(stream.state_dict())))
    epoch = restored.get_epoch_iterator()
    if step:
        next(epoch, None)
        restored.load_state_dict(json.loads(json.dumps(
            stream.state_dict())))
        epoch = restored.get_epoch_iterator()
    assert whole[number][step:] == items_of(epoch)
    assert whole[number + 1] == items_of(restored.get_epoch_iterator())


def in_turn(ranks):
    """Return the items of all ranks, a round after the other."""
    epochs = [stream.get_epoch_iterator() for stream in ranks]
    found = []
    while True:
        count = len(found)
        for epoch in epochs:
            found += items_of(itertools.islice(epoch, 1))
        if len(found) == count:
            return found


def read_in_order(case):
    """Return the mixture of a case, whose streams cannot skip."""
    lengths, weights, stop, size, seed = case
    return Mix([Filter(numbers(*pair), bool) for pair in enumerate(lengths)],
               weights, stop=stop, epoch_size=size, seed=seed)


@given(mixtures(), st.integers(1, 5), st.integers(1, 5), st.integers(0, 30),
       st.sampled_from([build, read_in_order]))
def test_ranks_share_the_order_and_any_number_resumes(
        case, before, after, step, make):
    """Each item comes once, from the state of any one rank at any step."""
    expected = items_of(make(case).get_epoch_iterator())
    assert expected == in_turn(
        [make(case).shard(rank, before) for rank in range(before)])
    step = min(step, len(expected) // before)
    states = []
    for rank in range(before):
        stream = make(case).shard(rank, before)
        epoch = stream.get_epoch_iterator()
        items_of(itertools.islice(epoch, step))
        states.append(json.loads(json.dumps(stream.state_dict())))
    assert all(state == states[0] for state in states)
    ranks = [make(case).shard(rank, after) for rank in range(after)]
    for stream in ranks:
        stream.load_state_dict(states[-1])
    assert expected[step * before:] == in_turn(ranks)


@given(mixtures(), st.integers(1, 5))
def test_ranks_may_drop_the_last_round(case, count):
    """Each rank then has as many items."""
    expected = items_of(build(case).get_epoch_iterator())
    ranks = [build(case).shard(rank, count, uneven='drop')
             for rank in range(count)]
    assert expected[:len(expected) // count * count] == in_turn(ranks)


@pytest.mark.parametrize('share', [
    {'uneven': 'pad'}, {'by': 'example'}])
def test_shares_of_streams_in_order_are_refused_by_the_streams_name(share):
    """The error has the allowed shares, and the remedy."""
    mixed = Mix({'whole': pictures(8),
                 'filtered': Filter(pictures(8), bool)})
    with pytest.raises(ValueError, match=(
            "the stream 'filtered', whose items can only be read in order.*"
            "uneven='uneven' or 'drop'.*behind the mixture")):
        mixed.shard(0, 2, **share)


def test_mixture_that_cannot_go_back_is_not_padded():
    """Its streams may be in another epoch at the end."""
    mixed = Mix([pictures(8)], stop='forever', epoch_size=3)
    for stream in mixed, Batch(
            Mix([numbers(0, 8)], stop='forever', epoch_size=3),
            iteration_scheme=ConstantScheme(2)):
        with pytest.raises(ValueError, match="Mix with stop='forever' cann"):
            stream.shard(0, 2, uneven='pad')


@pytest.mark.parametrize('streams, text', [
    (lambda: [pictures(8, 4), pictures(8, 2)],
     'split batches of 2 examples over num_shards=3'),
    (lambda: [Mix([pictures(8)]), pictures(8)], 'the batches of Mix'),
    (lambda: [Slow([pictures(8)]), pictures(8)],
     "the stream '0', whose items"),
    (lambda: [numbers(0, 4)], 'Mix gives single examples'),
])
def test_batches_that_cannot_be_split_are_refused(streams, text):
    """A mixture with only some such batches is refused, too."""
    with pytest.raises(ValueError, match=text):
        Mix(streams(), stop='last').shard(0, 3, by='example')


def test_rank_of_a_mixture_reads_only_its_own_rows():
    """It does not read those of the others, nor the rest of its own
    batches."""
    class Counting(IndexableDataset):
        def get_data(self, state=None, request=None):
            read.extend(numpy.atleast_1d(request).tolist())
            return super().get_data(state, request)

    def build(by):
        def stream(offset):
            data = Counting({'x': numpy.arange(30)})
            scheme = SequentialScheme if by == 'example' \
                else SequentialExampleScheme
            return DataStream(data, iteration_scheme=scheme(
                range(offset, offset + 15), *[3] * (by == 'example')))
        mixed = Mix([stream(0), stream(15)], stop='last')
        return mixed if by == 'example' else Batch(
            mixed, iteration_scheme=ConstantScheme(3))

    for by in 'batch', 'example':
        read = []
        expected = sorted(list(part) for batch in build(by)
                          for part in batch)
        read = []
        found = [[part.tolist() for batch in build(by).shard(rank, 3, by=by)
                  for part in batch] for rank in range(3)]
        assert sorted(read) == list(range(30))
        if by == 'batch':
            assert expected == sorted(sum(found, []))
        else:
            assert expected == sorted(
                sum(parts, []) for parts in zip(*found, strict=True))


def test_ranks_of_a_stream_mixed_with_itself():
    """Its copies stay one stream."""
    def twice():
        stream = DataStream(IndexableDataset(list(range(9))),
                            iteration_scheme=ShuffledExampleScheme(9))
        return Mix([stream, stream], stop='last')

    expected = list(twice().get_epoch_iterator())
    assert expected[::2] == list(twice().shard(0, 2).get_epoch_iterator())
    assert expected[1::2] == list(twice().shard(1, 2).get_epoch_iterator())


@pytest.mark.parametrize('stop', ['first', 'last'])
@pytest.mark.parametrize('others', [
    lambda: Mix([numbers(1, 4)], stop='forever', seed=2),
    lambda: numbers(1, 4)], ids=['endless', 'with an end'])
def test_ranks_share_mixtures_of_what_never_ends(stop, others):
    """Nobody counts to the end of a stream that has none."""
    def build():
        return Mix([Mix([numbers(0, 3)], stop='forever', seed=1), others()],
                   stop=stop, seed=3)

    def taken(stream, count):
        return list(itertools.islice(stream.get_epoch_iterator(), count))

    expected = taken(build(), 15)
    for rank in range(3):
        assert expected[rank::3] == taken(build().shard(rank, 3), 5)


@given(mixtures(), st.integers(1, 12), st.integers(1, 3))
def test_mixture_goes_to_any_of_its_items(case, size, count):
    """It goes forward and back, over the ends of its streams."""
    if case[2] == 'forever':
        case = [*case[:2], 'last', *case[3:]]
    plain = ShuffleBuffer(build(case), size)
    ranks = [ShuffleBuffer(build(case), size).shard(rank, count)
             for rank in range(count)]
    for _ in range(2):
        assert items_of(plain.get_epoch_iterator()) == in_turn(ranks)


@given(mixtures())
def test_number_of_items_is_known(case):
    """It is known before items are made, also where the first stream that ends
    ends it."""
    if case[2] == 'forever' and case[3] is None:
        return
    epoch = build(case).get_epoch_iterator()
    assert planned.items_of(epoch) == len(items_of(epoch))


def test_requests_that_are_advanced_by_hand_are_left_out():
    """The items of the streams that they choose are left out, too."""
    case = [20, 20], [2., 1.], 'last', None, 1
    expected = items_of(build(case).get_epoch_iterator())
    epoch = build(case).get_epoch_iterator()
    next(epoch)
    epoch.request_iterator.advance(3)
    assert expected[4:] == items_of(epoch)


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=6),
       st.integers(0, 10 * CHUNK), st.integers(0, 3 * CHUNK), SEEDS)
def test_counts_are_those_of_the_points(weights, start, count, seed):
    """A range may begin and end anywhere in blocks and chunks."""
    requests = MixingRequests(numpy.array(weights), seed, 2, math.inf)
    thresholds = as_thresholds(requests.weights)
    chosen = [int(numpy.searchsorted(
        thresholds, requests.request_at(number)[1], side='right'))
        for number in range(start, start + count)]
    assert [chosen.count(place) for place in range(len(weights))] == (
        requests.counts(start, start + count, thresholds).tolist())


def test_counts_of_a_long_range_are_found_at_once():
    """They are 10**12 items away from the beginning, between two counts of
    part."""
    weights = numpy.array([.25, .75])
    requests = MixingRequests(weights, 1, 0, math.inf)
    thresholds = as_thresholds(weights)
    start = 10 ** 12
    parts = [requests.counts(start + begin, start + begin + 5000, thresholds)
             for begin in (0, 5000)]
    assert (parts[0] + parts[1]).tolist() == requests.counts(
        start, start + 10000, thresholds).tolist()
    assert (requests.counts(0, start + 5000, thresholds) + parts[1]).tolist(
        ) == requests.counts(0, start + 10000, thresholds).tolist()
    assert abs(requests.counts(0, start, thresholds)
               - start * weights).max() < 20
    requests.advance(start)
    assert requests.request_at(start) == next(requests)


@pytest.mark.timeout(30)
def test_stream_that_hardly_any_point_chooses_ends_no_mixture():
    """It would have its last item after all that are counted."""
    endless = Mix([numbers(1, 3)], stop='forever')
    mixture = Mix([numbers(0, 99), endless], [1e-18, 1.], stop='first')
    assert ENDLESS == planned.items_of(mixture.get_epoch_iterator())


@pytest.mark.timeout(30)
def test_a_rank_of_more_items_than_could_be_counted_begins_at_once():
    """The items are the rank's part of the whole order."""
    def build():
        return Mix([DataStream(
            IndexableDataset(range(10 ** 12)),
            iteration_scheme=ComputedShuffledScheme(10 ** 12, 2, seed=seed))
            for seed in range(3)], [3, 2, 1], seed=1)

    whole = items_of(itertools.islice(build().get_epoch_iterator(), 12))
    for rank in range(4):
        part = iter(build().shard(rank, 4))
        assert whole[rank::4] == items_of(itertools.islice(part, 3))


def test_every_block_holds_what_the_weights_say():
    """Counts agree to within one item and a little, also for small weights and
    in sum."""
    weights = numpy.array([.7, .2, .09, .01])
    requests = MixingRequests(weights, 1, 0, math.inf)
    thresholds = as_thresholds(weights)
    for block in range(200):
        counts = requests.counts(
            block * BLOCK, (block + 1) * BLOCK, thresholds)
        assert (abs(counts - BLOCK * weights) < 1.01).all()
    for count in 10 ** 3, 10 ** 5, 10 ** 7:
        counts = requests.counts(0, count, thresholds)
        assert (abs(counts - count * weights) < 4).all()


def test_order_within_a_block_is_random():
    """No stream is more likely at one place of a block than at another."""
    requests = MixingRequests(numpy.ones(2), 1, 0, math.inf)
    halves = numpy.array([requests.request_at(number)[1] < 2 ** 61
                          for number in range(400 * BLOCK)])
    # 400 draws of probability 1/2 at each place: 5 standard deviations.
    sums = halves.reshape(-1, BLOCK).sum(axis=0)
    assert (abs(sums - 200) < 5 * 10).all()
    # Neighbours are a little less often of one stream: without replacement.
    same = (halves[1:] == halves[:-1]).mean()
    assert .44 < same < .50


def test_choices_never_change():
    """The order for a seed is part of what users publish."""
    stream = Mix([numbers(place, 1000) for place in range(3)], [5, 3, 1],
                 seed=7, epoch_size=24)
    epochs = [''.join(str(item[0]) for item, in stream.get_epoch_iterator())
              for _ in range(2)]
    assert ['010102001010021001110010',
            '001020210111000011100011'] == epochs


def test_equal_weights_are_the_default():
    """Another seed gives another order."""
    orders = []
    for seed in 1, 2:
        stream = Mix([numbers(place, 500) for place in range(2)],
                     epoch_size=256, seed=seed)
        orders.append(items_of(stream.get_epoch_iterator()))
        assert all(abs(count - 128) <= 4 for count in stream.taken.values())
    assert orders[0] != orders[1]


def test_mixture_for_ever_goes_on_in_the_next_epoch():
    """The rest of a long stream is read too."""
    stream = Mix([numbers(0, 5), numbers(1, 100)], stop='forever',
                 epoch_size=20)
    seen, restarts = [], 0
    for _ in range(12):
        seen += items_of(stream.get_epoch_iterator())
        restarts += stream.restarts['0']
    assert [item for place, item in seen if place] == [
        number % 100 for number in range(sum(p for p, _ in seen))]
    assert [item for place, item in seen if not place] == [
        number % 5 for number in range(sum(not p for p, _ in seen))]
    assert (sum(not p for p, _ in seen) - 1) // 5 == restarts
    assert 0 == stream.restarts['1']


def test_mixture_for_ever_begins_anew_after_it_was_reset():
    """A reset, a close and next_epoch all begin the mixture anew."""
    for method in 'reset', 'close', 'next_epoch':
        stream = Mix([numbers(0, 50)], stop='forever', epoch_size=3)
        items_of(stream.get_epoch_iterator())
        getattr(stream, method)()
        assert [(0, 0), (0, 1), (0, 2)] == items_of(
            stream.get_epoch_iterator())


def test_two_epochs_for_ever_at_once_are_each_their_own():
    """The second does not go on with the iterators of the first."""
    stream = Mix([numbers(0, 50)], stop='forever')
    first, second = [stream.get_epoch_iterator() for _ in range(2)]
    assert [next(first), next(second), next(first)] == [
        ((0, 0),), ((0, 0),), ((0, 1),)]


def test_pickled_stream_goes_on_for_ever():
    """It does with its iterator, or after the epoch."""
    stream = Mix([numbers(0, 50)], stop='forever', epoch_size=4)
    items_of(stream.get_epoch_iterator())
    for copy in stream, pickle.loads(pickle.dumps(stream)):
        assert [(0, n) for n in range(4, 8)] == items_of(
            copy.get_epoch_iterator())


def test_state_between_endless_epochs_of_a_stream_mixed_with_itself():
    """Each of the two goes on where it stood."""
    def twice():
        stream = numbers(0, 30)
        return Mix({'a': stream, 'b': stream}, stop='forever', epoch_size=10,
                   origin_source='from')

    stream = twice()
    list(stream.get_epoch_iterator())
    restored = twice()
    restored.load_state_dict(json.loads(json.dumps(stream.state_dict())))
    assert list(stream.get_epoch_iterator()) == list(
        restored.get_epoch_iterator())


def test_weights_by_epoch():
    """They are a list, whose last stays, or a function; also by name."""
    def from_function(epoch):
        return {'a': 1, 'b': min(epoch, 2)}

    listed = [[1, 0], [1, 1], {'b': 2, 'a': 1}]
    taken = []
    for weights in listed, from_function:
        stream = Mix({'a': numbers(0, 99), 'b': numbers(1, 99)}, weights,
                     stop='forever', epoch_size=64)
        taken.append([])
        for _ in range(4):
            items_of(stream.get_epoch_iterator())
            taken[-1].append(stream.taken['b'])
    assert taken[0] == taken[1]
    assert 0 == taken[0][0]
    assert 31 <= taken[0][1] <= 33
    assert all(42 <= count <= 44 for count in taken[0][2:])


def test_curriculum_is_restored_in_its_epoch():
    """The number of the epoch is part of the state."""
    def stream():
        return Mix([numbers(0, 99), numbers(1, 99)], [[1, 0], [0, 1]],
                   stop='forever', epoch_size=3)

    first = stream()
    list(first.get_epoch_iterator())
    second = stream()
    second.load_state_dict(first.state_dict())
    assert [(1, 0), (1, 1), (1, 2)] == items_of(second.get_epoch_iterator())


def test_state_of_other_weights_is_refused():
    """A function of the same name that returns other weights is refused."""
    weights = [1, 2]

    def current(epoch):
        return weights

    def stream():
        return Mix([numbers(0, 9), numbers(1, 9)], current)

    epoch = stream().get_epoch_iterator()
    next(epoch)
    state = epoch.state_dict()
    weights = [2, 1]
    restored = stream()
    restored.load_state_dict(state)
    with pytest.raises(StateMismatchError, match='the weights of the epoch'):
        restored.get_epoch_iterator()


@pytest.mark.parametrize(('field', 'value'), [
    ('taken', [1]), ('taken', [-1, 0]), ('taken', ['1', 0]),
    ('restarts', [0.5, 0]), ('ended', [0, 0]), ('ended', None)])
def test_damaged_counters_are_refused(field, value):
    """The error names the field of the stage."""
    epoch = Mix([numbers(0, 9), numbers(1, 9)]).get_epoch_iterator()
    next(epoch)
    state = epoch.state_dict()
    del state['crc']
    state['leftover'][field] = value
    restored = Mix([numbers(0, 9), numbers(1, 9)])
    restored.load_state_dict(state)
    with pytest.raises(StateMismatchError, match='leftover'):
        restored.get_epoch_iterator()


def test_origin_names_the_stream_of_each_example():
    """An example has a number, a batch an array of it."""
    mixed = Mix([pictures(8), pictures(4, 2)], stop='last',
                origin_source='from', seed=1)
    assert ('x', 'from') == mixed.sources
    found = [(len(batch), origin.tolist(), origin.dtype)
             for batch, origin in mixed.get_epoch_iterator()]
    assert sorted(found) == [
        (2, [1, 1], numpy.int64)] * 2 + [(4, [0] * 4, numpy.int64)] * 2
    examples = Mix([numbers(0, 3)], origin_source='from')
    assert [0, 0, 0] == [origin for _, origin
                         in examples.get_epoch_iterator()]


def test_origin_comes_after_the_sources_that_are_shown():
    """A stream whose `sources` were shortened hides the rest."""
    pairs = DataStream(IterableDataset({'x': [1], 'y': [2]}))
    pairs.sources = ('x',)
    mixed = Mix([pairs], origin_source='from')
    assert [{'x': 1, 'from': 0}] == list(
        mixed.get_epoch_iterator(as_dict=True))


def test_length_is_known_where_it_does_not_depend_on_the_order():
    """All items of all streams, or the size of an epoch."""
    streams = [numbers(0, 5), numbers(1, 7)]
    assert 12 == len(Mix(streams, stop='last'))
    assert 9 == len(Mix(streams, stop='last', epoch_size=9))
    assert 30 == len(Mix(streams, stop='forever', epoch_size=30))
    for unknown in (Mix(streams), Mix(streams, stop='forever'),
                    Mix(streams, [0, 1], stop='last'),
                    Mix(streams, lambda epoch: [1, 1], stop='last'),
                    Mix([Filter(numbers(0, 5), bool)], stop='last')):
        with pytest.raises(TypeError, match='length of an epoch'):
            len(unknown)


def test_labels_are_those_that_the_streams_share():
    """Labels that differ between streams are left out."""
    def labelled(labels):
        return DataStream(
            IndexableDataset({'x': numpy.zeros((4, 2)), 'y': range(4)},
                             axis_labels=labels),
            iteration_scheme=SequentialScheme(4, 2))

    one = {'x': ('batch', 'width'), 'y': ('batch',)}
    other = {'x': ('batch', 'time'), 'y': ('batch',)}
    assert {'y': ('batch',)} == Mix(
        [labelled(one), labelled(other)]).axis_labels
    assert Mix([labelled(one), labelled(None)]).axis_labels is None
    assert other == Mix([labelled(one)], axis_labels=other).axis_labels


def test_types_are_those_that_the_streams_share():
    """Types that differ between streams are left out."""
    def typed(dtype):
        return DataStream(IndexableDataset(
            {'x': numpy.zeros((4, 2), dtype), 'y': numpy.arange(4)}),
            iteration_scheme=SequentialScheme(4, 2))

    assert {'x', 'y'} == set(Mix([typed('f4'), typed('f4')]).known_types())
    assert {'y'} == set(Mix([typed('f4'), typed('f8')]).known_types())


def test_failed_item_counts_as_taken():
    """Workers that share an epoch agree on the next item."""
    def fail_at_two(data):
        if data[0][1] == 2:
            raise ValueError('damaged')
        return data

    def stream(cls):
        return cls([Mapping(numbers(0, 5), fail_at_two), numbers(1, 5)],
                   stop='last', seed=3)

    for cls in Mix, Slow:
        mixed = stream(cls)
        epoch = mixed.get_epoch_iterator()
        seen, failures = [], 0
        while True:
            try:
                seen.append(tuple(next(epoch)[0]))
            except ValueError:
                failures += 1
                restored = stream(cls)
                restored.load_state_dict(mixed.state_dict())
                rest = items_of(restored.get_epoch_iterator())
            except StopIteration:
                break
        assert 1 == failures
        assert sorted(seen) == [
            (p, n) for p in range(2) for n in range(5) if (p, n) != (0, 2)]
        assert rest == seen[-len(rest):]
        assert {'0': 5, '1': 5} == mixed.taken


def test_workers_share_a_mixture():
    """Each makes every second item; the order is that of one process."""
    def stream():
        return Mix([pictures(40), pictures(24, 2), pictures(8)], [3, 2, 1],
                   stop='last', origin_source='from', seed=5)

    expected = [[part.tolist() for part in batch]
                for batch in stream().get_epoch_iterator()]
    with MultiProcessing(stream(), num_workers=2) as workers:
        assert expected == [[part.tolist() for part in batch]
                            for batch in workers.get_epoch_iterator()]


def share_of_rank(rank, **share):
    """Return the share of one of two ranks; some batches have one row."""
    return Mix([pictures(7, 2), pictures(10, 3)], stop='last', seed=1).shard(
        rank, 2, **share)


@pytest.mark.parametrize('rank', [0, 1])
@pytest.mark.parametrize('share', [
    {'by': by, 'uneven': uneven} for by in ('batch', 'example')
    for uneven in ('uneven', 'drop', 'pad')], ids=lambda share: '-'.join(
        share.values()))
def test_items_of_a_rank_are_left_out(rank, share):
    """Workers leave items out so: those of other ranks do not count."""
    expected = items_of(share_of_rank(rank, **share).get_epoch_iterator())
    assert len(expected) > 3
    for first in range(2):
        epoch = share_of_rank(rank, **share).get_epoch_iterator()
        found = []
        with contextlib.suppress(StopIteration):
            skip(epoch, first)
            while True:
                found += items_of([next(epoch)])
                skip(epoch, 1)
        assert expected[first::2] == found


@pytest.mark.parametrize('make', [
    lambda: Mix([pictures(7, 2), pictures(10, 3)], stop='last', seed=1),
    lambda: pictures(7, 2), lambda: numbers(0, 9)],
    ids=['mixture', 'batches', 'examples'])
@pytest.mark.parametrize('uneven', ['uneven', 'drop', 'pad'])
@pytest.mark.parametrize('rank', [0, 1])
def test_length_is_what_is_left_for_the_rank(make, uneven, rank):
    """It is exact at each item of the epoch, up to the last."""
    stream = make().shard(rank, 2, uneven=uneven)
    left, epoch = [], stream.get_epoch_iterator()
    with contextlib.suppress(StopIteration):
        while True:
            left.append(len(epoch))
            next(epoch)
    assert left == list(range(len(stream), -1, -1))


@pytest.mark.parametrize('by', ['batch', 'example'])
def test_workers_share_the_mixture_of_a_rank(by):
    """Workers share a rank's mixture, also from a state in mid-epoch."""
    expected = items_of(share_of_rank(0, by=by).get_epoch_iterator())
    with MultiProcessing(share_of_rank(0, by=by), num_workers=2) as workers:
        epoch = workers.get_epoch_iterator()
        found = items_of([next(epoch), next(epoch)])
        state = epoch.state_dict()
        assert expected == found + items_of(epoch)
    with MultiProcessing(share_of_rank(0, by=by), num_workers=3) as workers:
        workers.load_state_dict(state)
        assert expected[2:] == items_of(workers.get_epoch_iterator())


def test_streams_of_unknown_length_cannot_be_skipped():
    """Their items have to be read."""
    filtered = Filter(numbers(0, 9), bool)
    assert not Mix([numbers(0, 9), filtered]).one_to_one
    assert not Slow([numbers(0, 9)]).one_to_one


def test_shuffled_stream_is_shuffled_anew_when_it_restarts():
    """It goes on to its next epoch."""
    few = DataStream(IndexableDataset({'x': numpy.arange(50)}),
                     iteration_scheme=ShuffledExampleScheme(50))
    order = [int(x) for x, in Mix(
        [few], stop='forever', epoch_size=100).get_epoch_iterator()]
    assert sorted(order[:50]) == sorted(order[50:]) == list(range(50))
    assert order[:50] != order[50:]


@pytest.mark.parametrize('cls', [Mix, Slow])
def test_empty_stream_cannot_be_mixed_for_ever(cls):
    """It is named, instead of a search without end."""
    stream = cls({'good': numbers(0, 3), 'empty': numbers(1, 0)},
                 stop='forever')
    with pytest.raises(ValueError, match="the stream 'empty' is empty"):
        for _ in zip(range(100), stream.get_epoch_iterator(), strict=False):
            pass
    epoch = stream.get_epoch_iterator()
    skip(epoch, 100)
    with pytest.raises(ValueError, match="the stream 'empty' is empty"):
        next(epoch)


WRONG = {
    'negative': ([1, -1], "from 0 on, but the one of 'b' is -1.0"),
    'nan': ([float('nan'), 1], "the one of 'a' is nan"),
    'infinite': ([float('inf'), 1], "the one of 'a' is inf"),
    'zero': ([0, 0], r"weights are all 0: .* \('a', 'b'\)"),
    'too few': ([1], 'weights must be 2 numbers, one for each'),
    'too many': ([1, 2, 3], 'weights must be 2 numbers'),
    'none': ([], 'weights must be 2 numbers'),
    'no numbers': (['x', 'y'], 'weights must be numbers'),
    'tiny': ([1e-300, 1], "'a' is so small beside the others"),
    'unknown name': ({'a': 1, 'b': 1, 'bb': 2}, 'no such stream: did you'),
    'missing name': ({'a': 1}, "'b' is missing: give it 0"),
    'an epoch': ([[1, 2], [0, 0]], 'weights of epoch 1 are all 0'),
}


@pytest.mark.parametrize('case', WRONG)
def test_wrong_weights_are_refused(case):
    """The constructor raises an error with the streams' names."""
    weights, text = WRONG[case]
    with pytest.raises(ValueError, match=text):
        Mix({'a': numbers(0, 3), 'b': numbers(1, 3)}, weights)


def test_wrong_weights_of_a_function_are_refused():
    """The begin of the epoch raises an error with its number."""
    stream = Mix([numbers(0, 3)], lambda epoch: [1 - epoch])
    list(stream.get_epoch_iterator())
    with pytest.raises(ValueError, match='weights of epoch 1 are all 0'):
        stream.get_epoch_iterator()


@pytest.mark.parametrize(('arguments', 'error', 'text'), [
    ({'stop': 'never'}, ValueError, "stop must be 'first', 'last' or"),
    ({'epoch_size': 0}, ValueError, 'epoch_size must be a positive'),
    ({'epoch_size': 1.5}, TypeError, 'epoch_size must be a positive'),
    ({'seed': -1}, ValueError, 'seed must not be negative'),
    ({'seed': 1.5}, TypeError, 'seed must be an integer'),
    ({'origin_source': 'x'}, ValueError, "cannot be 'x', which")])
def test_wrong_arguments_are_refused(arguments, error, text):
    """The error names the argument."""
    with pytest.raises(error, match=text):
        Mix([numbers(0, 3)], **arguments)


def test_streams_that_do_not_fit_are_refused():
    """The error names the streams and the remedy."""
    other = DataStream(IterableDataset({'y': [1]}))
    with pytest.raises(ValueError, match=(
            r"'a' has \('x',\) and 'b' has \('y',\): put Rename")):
        Mix({'a': numbers(0, 3), 'b': other})
    with pytest.raises(ValueError, match=(
            "'0' produces examples and '1' batches: put Batch")):
        Mix([numbers(0, 3), pictures(4)])
    with pytest.raises(ValueError, match='at least one stream'):
        Mix([])


def test_weights_need_not_add_up():
    """Their proportions count, however large they are."""
    names = ('a', 'b')
    expected = MixtureWeights([1, 3], names).at(0)
    for scale in 1e-200, 7, 1e300:
        found = MixtureWeights([scale, 3 * scale], names).at(5)
        assert numpy.allclose(expected, found)
