"""The places of an example are those at which a scan of the order finds it."""
import itertools
import pickle
from functools import partial

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import pipelines, random_orders
from support.random_orders import Repeated
from support.computed_pipelines import pipelines_over
from support.sharded_pipelines import batches, dataset, examples

from fuel.datasets import IterableDataset
from fuel.schemes import (
    BalancedScheme,
    BlockShuffledScheme,
    ComputedBlockShuffledScheme,
    ComputedShuffledExampleScheme,
    ComputedShuffledScheme,
    ConcatenatedScheme,
    ConstantScheme,
    IterationScheme,
    SequentialExampleScheme,
    SequentialScheme,
    ShuffledScheme,
    WeightedScheme,
)
from fuel.schemes.requests import BatchRequests
from fuel.schemes.shard import Shard
from fuel.sharding.asking import epoch_order
from fuel.sharding.made import DatasetRows, Joined, example_ids
from fuel.sharding.order import ENDLESS, RankOrder, UnknownOrderError
from fuel.streams import DataStream
from fuel.transformers import (
    Batch, Cache, Chain, Mapping, Merge, Mix, Take, Unpack)
from fuel.transformers.shuffling import ShuffleBuffer

# So many items are scanned of an order that may have no end.
MOST = 60
# Examples that no pipeline has.
ABSENT = (0, -1), (0, 10 ** 6), (0, 2 ** 70), (0, 'a'), (0, .5), (99, 0)

pytestmark = pytest.mark.filterwarnings(
    'ignore:the streams merged', 'ignore:an epoch')


def rows_of(made):
    """Return the examples of an item, each with the number of its row.

    The rows of all merged streams count.
    """
    if isinstance(made, DatasetRows):
        return set(enumerate(example_ids(made)))
    found, first = set(), 0
    for part in made.parts:
        found |= {(first + row, example) for row, example in rows_of(part)}
        if isinstance(made, Joined):
            first += len(example_ids(part))
    return found


def scanned(order):
    """Return the places of each example, in order, from a scan."""
    found = {}
    for item, made in enumerate(itertools.islice(order, MOST)):
        for offset, example in sorted(rows_of(made)):
            found.setdefault(example, []).append((item, offset))
    return found


def has_end(order):
    """Return whether an order ends among the items that are scanned."""
    return order.ends and order.count_to(ENDLESS) <= MOST


def places(order, stop, example):
    """Return the places of an example before an item."""
    return list(itertools.takewhile(
        lambda place: place.item < stop, order.places_of(*example, stop)))


def check(order):
    """Compare the places of each example with a scan; return whether they are
    known."""
    found = scanned(order)
    asked = [*found, *ABSENT]
    try:
        # In small steps first, since what is found is kept.
        for stop in (0, 1, 5):
            for example in asked[-12:]:
                assert places(order, stop, example) == [
                    place for place in found.get(example, [])
                    if place[0] < stop]
        said = {example: list(order.places_of(*example)) if has_end(order)
                else places(order, MOST, example) for example in asked}
    except UnknownOrderError as error:
        if 'the stage does not say that it keeps rows' not in str(error):
            raise
        return False
    assert said == {example: found.get(example, []) for example in asked}
    return True


def check_shares(order, most=3):
    """Compare the places in the shares of up to three ranks; return how many
    shares there are."""
    count = 0
    for ranks, by, uneven in itertools.product(
            range(1, most + 1), ('batch', 'example'),
            ('uneven', 'drop', 'pad')):
        for rank in range(ranks):
            try:
                ours = order.share(Shard(rank, ranks, by, uneven))
                list(itertools.islice(ours, MOST))
            except ValueError:
                # Ranks cannot share it so.
                continue
            count += check(ours)
    return count


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """A folder with the files of the pipelines."""
    found = tmp_path_factory.mktemp('places')
    pipelines.write_files(found)
    return found


@pytest.mark.parametrize('name', sorted(pipelines.PIPELINES))
def test_places_in_each_pipeline_are_those_of_a_scan(name, folder):
    """In the whole order, in that of the next epoch, and in shares."""
    order = epoch_order(pipelines.build(name, folder))
    if order.kind == 'none':
        with pytest.raises(UnknownOrderError) as error:
            order.places_of(0, 0)
        assert str(error.value) == order.reason
        return
    if check(order) and has_end(order):
        check_shares(order)


def check_random(numbers, builder):
    """Check random pipelines; return how many of them have known places, and
    how many shares."""
    known = shares = 0
    for number in numbers:
        make = partial(random_orders.build, number, builder)
        order = epoch_order(make())
        if order.kind == 'none' or not random_orders.can_be_read(make) or (
                not check(order)):
            continue
        known += 1
        if has_end(order):
            shares += check_shares(order, 1 + number % 3)
    return known, shares


@pytest.mark.parametrize('builder', [
    random_orders.Build, random_orders.Tangled])
def test_places_in_random_pipelines_are_those_of_a_scan(builder):
    """Their stages stand above each other."""
    known, shares = check_random(range(24), builder)
    assert known > 10
    assert shares > 50


@pytest.mark.parametrize('builder', [
    random_orders.Build, random_orders.Tangled])
@pytest.mark.full
@pytest.mark.timeout(3600)
def test_places_in_two_thousand_pipelines_are_those_of_a_scan(builder):
    """Places are right in two thousand random pipelines."""
    known, shares = check_random(range(2000), builder)
    assert known > 1200
    assert shares > 10000


class Listed(IterationScheme):
    """A user's scheme, whose requests are only made in order."""

    requests_examples = False

    def __init__(self, rows):
        self.rows = rows

    def get_request_iterator(self):
        """Return an iterator over batches of growing size."""
        rows = list(self.rows)
        starts = [0, 1, 3, 6, 10, 15, 21, len(rows)]
        return iter([rows[start:stop] for start, stop in (
            itertools.pairwise(starts)) if start < len(rows)])

    def state_dict(self):
        """Return nothing."""
        return {}

    def load_state_dict(self, state):
        """Take up nothing."""


class Rows(Repeated):
    """Makes examples of each batch."""

    def __init__(self, data_stream, times):
        super().__init__(data_stream, times, produces_examples=True)


def over(scheme, count=40):
    """Return a stream of a data set."""
    return DataStream(dataset(count), iteration_scheme=scheme)


class Reversed(BatchRequests):
    """Requests of a user, in another order than those of the base class."""

    def _request(self, position):
        """Return a request backwards."""
        return super()._request(position)[::-1]


class ReversedScheme(SequentialScheme):
    """A user's scheme with requests of its own."""

    def get_request_iterator(self):
        """Return an iterator over requests."""
        return Reversed(self.indices, self.batch_size)

    random_access = True
    state_dict = Listed.state_dict
    load_state_dict = Listed.load_state_dict


REPEATING = [3, 1, 3, 7, 7, 7, 0, 2, 3, 39]
SCHEMES = {
    'repeating': lambda: SequentialScheme(REPEATING, 3),
    'repeating examples': lambda: SequentialExampleScheme(REPEATING),
    'repeating, shuffled': lambda: ShuffledScheme(REPEATING, 4, seed=2),
    'repeating, sorted': lambda: ShuffledScheme(
        REPEATING, 4, seed=2, sorted_indices=True),
    'repeating, computed': lambda: ComputedShuffledScheme(
        REPEATING, 4, seed=2, drop_last=True),
    'far apart': lambda: SequentialScheme([39, 5, 20], 2),
    'range': lambda: SequentialScheme(range(38, 3, -5), 3),
    'range, shuffled': lambda: ShuffledScheme(range(5, 30, 4), 3, seed=1),
    'blocks': lambda: BlockShuffledScheme(
        40, 6, block_size=[3, 10, 11, 30], window=2, seed=4),
    'computed blocks': lambda: ComputedBlockShuffledScheme(
        range(39, -1, -1), 6, block_size=7, window=2, seed=4),
    'computed examples': lambda: ComputedShuffledExampleScheme(40, seed=4),
    'weighted': lambda: WeightedScheme(
        range(40), 7, num_examples=60, seed=1),
    'balanced': lambda: BalancedScheme(
        [row % 3 for row in range(40)], 7, num_examples=50, seed=1),
    'joined': lambda: ConcatenatedScheme([
        ShuffledScheme(9, 4, seed=1), SequentialScheme(REPEATING, 3)]),
    'user': lambda: ReversedScheme(40, 6),
    'listed': lambda: Listed(REPEATING * 2),
    'joined with listed': lambda: ConcatenatedScheme([
        SequentialScheme(REPEATING, 3), Listed(REPEATING)]),
}


@pytest.mark.parametrize('name', sorted(SCHEMES))
def test_places_of_examples_that_repeat_or_are_left_out(name):
    """The index of an example may come twice in an item."""
    stream = over(SCHEMES[name]())
    assert check(epoch_order(stream))
    check_shares(epoch_order(stream))
    if not stream.produces_examples:
        for stage in (Unpack(stream), Cache(stream, ConstantScheme(4))):
            assert check(epoch_order(stage))
            check_shares(epoch_order(stage))
    epoch = iter(stream)
    next(epoch)
    assert check(epoch_order(stream))


def test_places_of_keys_other_than_integers():
    """The scheme of a user's data set may request any key."""
    keys = ['b', 'a', 'c', 'a', ('a', 1), 2, 2.0]
    order = epoch_order(over(SequentialScheme(keys, 2)))
    assert check(order)
    assert [(0, 1), (1, 1)] == list(order.places_of(0, 'a'))
    assert [(2, 1), (3, 0)] == list(order.places_of(0, numpy.int8(2)))


def mixed(**how):
    """Return a mixture of batches of several sizes."""
    return Mix([batches(7, 2), batches(40, 3), batches(5, 5)], [2, 3, 1],
               seed=3, **how)


def test_places_in_a_mixture_are_those_in_each_epoch_of_its_streams():
    """A stream that begins anew has another order each time."""
    stream = mixed(stop='forever', epoch_size=50)
    for _ in range(3):
        order = epoch_order(stream)
        assert check(order)
        assert len(list(order.places_of(0, 3))) > 1
        assert check(order.epoch(1))
        list(itertools.islice(stream, 50))


def test_places_in_a_mixture_without_an_end_have_no_end():
    """They are computed as they are asked for."""
    order = epoch_order(mixed(stop='forever'))
    assert check(order)
    found = list(itertools.islice(order.places_of(0, 3), 60))
    for item, offset in found[::9]:
        assert (0, 3) == example_ids(order[item])[offset]
    assert sorted(found) == found


def test_places_before_a_state_of_a_mixture_are_not_known():
    """Streams have begun anew since."""
    stream = mixed(stop='forever', epoch_size=50)
    epoch = iter(stream)
    list(itertools.islice(epoch, 40))
    resumed = mixed(stop='forever', epoch_size=50)
    resumed.load_state_dict(stream.state_dict())
    with pytest.raises(UnknownOrderError, match='before number 40'):
        epoch_order(resumed).places_of(0, 3)


def test_places_in_part_of_an_order_without_an_end():
    """The part is all that is searched for an example that it lacks."""
    endless = mixed(stop='forever')
    for stream in (
            Take(endless, 20), Merge([endless, batches(30, 2)], tuple('abcd')),
            Batch(Unpack(endless), ConstantScheme(3, num_examples=50)),
            Mix([endless, batches(30, 2)], stop='last', epoch_size=30),
            ShuffleBuffer(Unpack(Take(Chain(
                [endless, batches(4, 2)]), 15)), 4),
            Take(Repeated(endless, 3), 20)):
        order = epoch_order(stream)
        assert check(order)
        assert [] == list(order.places_of(0, 6000))


@pytest.mark.parametrize('size', [1, 2, 7, 50])
def test_places_behind_a_buffer_of_shuffled_examples(size):
    """Each is computed from the examples nearby."""
    stream = ShuffleBuffer(examples(40), size, seed=1)
    for _ in range(2):
        assert check(epoch_order(stream))
        list(stream)
    endless = ShuffleBuffer(
        Unpack(mixed(stop='forever')), size, seed=1)
    assert check(epoch_order(endless))


def test_places_of_rows_that_a_stage_may_change_are_not_known():
    """The stage is named; other data sets are not concerned."""
    changed = Mapping(batches(9, 2), list)
    order = epoch_order(Chain([changed, batches(9, 3)]))
    for part in (order, order.share(Shard(0, 2))):
        with pytest.raises(UnknownOrderError, match='a batch of Mapping has'):
            list(part.places_of(0, 3))
        assert scanned(part).get((1, 3), []) == list(part.places_of(1, 3))


def test_places_in_an_order_without_known_end():
    """Places that need no scan are found."""
    def given():
        return DataStream(IterableDataset(iter(range(9))))

    assert [(7, 0)] == list(epoch_order(given()).places_of(0, 7))
    order = epoch_order(Batch(given(), ConstantScheme(2)))
    assert [(3, 1)] == list(order.places_of(0, 7))
    assert [(3, 0)] == list(
        RankOrder(order, Shard(1, 2, 'example')).places_of(0, 7))
    chained = epoch_order(Chain([given(), given()]))
    assert [(7, 0)] == list(chained.places_of(0, 7))
    assert [] == list(chained.places_of(1, 7))
    # The steps of ranks take several batches.
    shared = epoch_order(mixed(stop='forever')).share(
        Shard(0, 2, 'example'))
    with pytest.raises(UnknownOrderError, match='no known end'):
        list(shared.places_of(0, 3))
    assert check(shared)


def test_pickle_and_order_of_the_next_epoch_hold_no_places():
    """The places of a scan, or of a sorted index, belong to one epoch."""
    for scheme in (ShuffledScheme(1000, 4, seed=1), Listed(range(1000))):
        order = epoch_order(over(scheme, 1000))
        before = len(pickle.dumps(order))
        first = [list(order.places_of(0, row)) for row in range(1000)]
        assert len(pickle.dumps(order)) <= before + 100
        copied = pickle.loads(pickle.dumps(order))
        assert first == [list(copied.places_of(0, row)) for row in range(1000)]
        assert check(order.epoch(1))


def test_places_in_a_padded_share_are_those_of_its_epoch():
    """The examples that are repeated differ from epoch to epoch."""
    order = epoch_order(batches(14, 4))
    for by in ('batch', 'example'):
        share = order.share(Shard(2, 3, by, 'pad'))
        assert check(share)
        assert check(share.epoch(1))
        assert check(share)


def test_places_of_pieces_that_are_made_of_several_rows():
    """The rows of each piece follow each other in a batch of pieces."""
    stream = Batch(Rows(batches(9, 3), 2), ConstantScheme(4))
    order = epoch_order(stream)
    assert [12, 6] == [len(example_ids(made)) for made in order]
    assert check(order)
    assert check(order.share(Shard(1, 2)))


def test_scan_that_failed_is_begun_anew():
    """The places that it found before are not taken for all."""
    order = epoch_order(over(Listed(REPEATING)))
    make = order.make
    order.make = lambda item: 1 / 0 if item else make(item)
    with pytest.raises(ZeroDivisionError):
        list(order.places_of(0, 39))
    order.make = make
    assert check(order)


COUNT = 10 ** 12
HUGE = {
    'sequential': lambda: SequentialScheme(COUNT, 4),
    'shuffled': lambda: ComputedShuffledScheme(COUNT, 4, seed=1),
    'range': lambda: ComputedShuffledScheme(
        range(COUNT - 1, -1, -1), 4, seed=1, drop_last=True),
    'blocks': lambda: ComputedBlockShuffledScheme(
        COUNT - 3, 4, block_size=100, seed=1),
    'huge windows': lambda: ComputedBlockShuffledScheme(
        COUNT, 4, block_size=10 ** 5, window=10 ** 3, seed=1),
}


@pytest.mark.parametrize('name', sorted(HUGE))
def test_places_among_very_many_examples_are_computed(name):
    """A row is where the order says, in each stage and share."""
    streams = pipelines_over(HUGE[name], COUNT)
    for stream in [*streams, Batch(streams[1], ConstantScheme(7))]:
        order = epoch_order(stream)
        wholes = [order, order.share(Shard(2, 3))]
        if order.batch_size is not None:
            wholes.append(RankOrder(order, Shard(1, 2, 'example', 'pad')))
        for whole in wholes:
            count = len(whole)
            for item in (0, 1, count // 3, count - 2):
                made = whole[item]
                for offset, example in rows_of(made):
                    assert (item, offset) in list(whole.places_of(*example))


@given(st.integers(1, 120), st.integers(1, 9), st.integers(1, 5),
       st.integers(0, 99))
def test_places_in_shuffled_blocks_are_those_of_a_scan(
        size, block_size, window, seed):
    """The last block and the last window may be shorter."""
    order = epoch_order(over(ComputedBlockShuffledScheme(
        size, 1, block_size=block_size, window=window, seed=seed), size))
    for item, made in enumerate(order):
        (example,) = example_ids(made)
        assert [(item, 0)] == list(order.places_of(*example))
