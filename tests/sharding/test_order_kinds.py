"""Each stage and scheme has an order of a kind, or a reason for none."""
import collections
import itertools
import pickle
import random
import sys

import numpy
import pytest
from support.computed_pipelines import pipelines_over
from support.sharded_pipelines import PIPELINES, batches, dataset, examples

from fuel.datasets import IndexableDataset, IterableDataset
from fuel.schemes import (
    ComputedBlockShuffledScheme,
    ComputedShuffledScheme,
    ConcatenatedScheme,
    ConstantScheme,
    IterationScheme,
    SequentialExampleScheme,
    SequentialScheme,
    ShuffledExampleScheme,
    ShuffledScheme,
)
from fuel.schemes.shard import Shard
from fuel.sharding.asking import epoch_order
from fuel.sharding.made import (
    DatasetRows, Joined, Merged, batch_of, cut_rows, example_ids, num_rows)
from fuel.sharding.order import UnknownOrderError
from fuel.streams import DataStream
from fuel.transformers import (
    Batch,
    Cache,
    Chain,
    Filter,
    Mapping,
    Merge,
    Mix,
    MultiProcessing,
    Take,
    Transformer,
    Unpack,
)
from fuel.transformers.sequences import BucketBatch
from fuel.transformers.shuffling import ShuffleBuffer

Rows = DatasetRows

KINDS = {
    'SequentialScheme': 'computed', 'ComputedShuffledScheme': 'computed',
    'IterableDataset': 'computed', 'Mix in order': 'computed',
    'ShuffleBuffer': 'replayed', 'ShuffleBuffer of Mix': 'replayed',
    'Mix for ever': 'replayed', 'Batch of Mix for ever': 'replayed'}


@pytest.mark.parametrize('name', sorted(PIPELINES))
def test_order_of_each_pipeline_is_of_its_kind(name):
    """The order of a scheme that draws from a generator is drawn."""
    order = epoch_order(PIPELINES[name][0](23, 4))
    assert KINDS.get(name, 'drawn') == order.kind


def over(scheme, count=9):
    """Return a stream of a data set."""
    return DataStream(dataset(count), iteration_scheme=scheme)


class Halves(IterationScheme):
    """A user's scheme, without the hooks for states."""

    requests_examples = False

    def get_request_iterator(self):
        """Return an iterator over two batches."""
        return iter([[0, 1], [2, 3]])


class Resumed(Halves):
    """A user's scheme that draws from a generator of all modules."""

    def get_request_iterator(self):
        """Yield batches, drawn one by one."""
        for _ in range(3):
            yield [random.randrange(9), int(numpy.random.randint(9))]

    def state_dict(self):
        """Return nothing."""
        return {}

    def load_state_dict(self, state):
        """Take up nothing."""


class Doubled(Transformer):
    """A user's stage with a get_data of its own."""

    def get_data(self, request=None):
        """Return two items as one."""
        first, = next(self.child_epoch_iterator)
        second, = next(self.child_epoch_iterator)
        return (first + second,)


class Asking(DataStream):
    """A user's stream with requests of its own."""

    def get_data(self, request=None):
        """Return another row than was requested."""
        return super().get_data(request + 1)


class Shuffler:
    """A generator that can shuffle a list, and cannot be copied."""

    def shuffle(self, indices):
        """Reverse a list."""
        indices.reverse()


def as_it_is(item):
    """Return an item."""
    return item


NONE = {
    'Filter': (lambda: Filter(examples(9), bool), 'the stage Filter'),
    'get_data': (lambda: Doubled(
        batches(9, 2), produces_examples=False), 'the stage Doubled'),
    'stream': (lambda: Asking(
        dataset(9), iteration_scheme=SequentialExampleScheme(8)),
        'Asking has a get_data of its own'),
    'BucketBatch': (lambda: BucketBatch(
        examples(9), 5, 'x'), 'the stage BucketBatch'),
    'user': (lambda: over(Halves()), 'Halves lacks the hooks'),
    'user below': (lambda: Take(Chain([over(Halves()), batches(9, 2)]), 3),
                   'Halves lacks the hooks'),
    'once': (lambda: over(SequentialScheme(iter([1, 2]), 2)),
             'SequentialScheme are an iterator'),
    'shuffle': (lambda: over(ShuffledScheme(9, 2, rng=Shuffler())),
                'draws from a Shuffler'),
    'system': (lambda: over(
        ShuffledScheme(9, 2, rng=random.SystemRandom())),
        'draws from a SystemRandom'),
    'part': (lambda: over(ConcatenatedScheme(
        [SequentialScheme(4, 2), Halves()])), 'Halves lacks the hooks'),
    'rows': (lambda: Unpack(Mapping(batches(9, 2), as_it_is)),
             'a batch of Mapping has is not known'),
    'Cache': (lambda: Cache(Mapping(batches(9, 2), as_it_is),
                            ConstantScheme(2)), 'a batch of Mapping'),
    'Mix': (lambda: Mix([DataStream(IterableDataset(iter('abc')))]),
            "the stream '0' of the Mix"),
}


@pytest.mark.parametrize('name', sorted(NONE))
def test_order_that_is_not_known_says_which_stage_and_why(name):
    """The order exists all the same; reading an item raises the reason."""
    make, reason = NONE[name]
    order = epoch_order(make())
    assert order.kind == 'none'
    assert reason in order.reason
    with pytest.raises(UnknownOrderError, match='.') as error:
        order[0]
    assert order.reason == str(error.value)


def test_order_of_what_cannot_be_copied_is_known_while_it_runs():
    """The epoch holds what was drawn."""
    stream = over(ShuffledScheme(5, 2, rng=Shuffler()))
    epoch = iter(stream)
    assert list(epoch_order(stream)) == [
        Rows(0, [4, 3]), Rows(0, [2, 1]), Rows(0, [0])]
    del epoch


def test_asking_leaves_the_generators_of_all_modules_alone():
    """A user's scheme may draw from them."""
    random.seed(3)
    numpy.random.seed(3)
    stream = over(Resumed())
    before = random.getstate(), numpy.random.get_state()[1].tolist()
    order = epoch_order(stream)
    said = [made.rows for made in order]
    assert before == (random.getstate(),
                      numpy.random.get_state()[1].tolist())
    assert said == [batch.tolist() for _, batch in stream]
    assert order.kind == 'replayed'


def test_stages_on_rows_of_batches_of_any_size_are_replayed():
    """The sizes of all batches before are added up."""
    stream = Cache(Chain([batches(5, 2), batches(7, 3)]), ConstantScheme(4))
    order = epoch_order(stream)
    assert order.kind == 'replayed'
    assert [4, 4, 4] == [num_rows(made) for made in order]
    assert len(order) == 3


def test_rows_of_an_unknown_number_of_batches_are_counted_as_they_come():
    """The last of them may be short, and is found at the end."""
    stream = Cache(Batch(Unpack(over(Resumed())), ConstantScheme(4)),
                   ConstantScheme(3))
    order = epoch_order(stream)
    assert [3, 3] == [num_rows(made) for made in order]
    assert 6 == sum(len(batch) for _, batch in stream)


def test_share_of_items_that_were_counted_is_counted_anew():
    """The number of all items is not that of a share's."""
    def build():
        return Batch(Unpack(over(Resumed())), ConstantScheme(2))

    order = epoch_order(build())
    assert order.count_to(9) == 3
    shares = [order.share(Shard(rank, 2)) for rank in range(2)]
    assert [share.count_to(9) for share in shares] == [2, 1]
    for share in shares:
        with pytest.raises(IndexError):
            share[2]


def test_items_say_the_numbers_of_data_sets_in_the_order_of_the_pipeline():
    """One that is read twice has one number."""
    first, second = dataset(4), dataset(4)
    stream = Merge([
        DataStream(one, iteration_scheme=SequentialExampleScheme(4))
        for one in (first, second, first)], ['a', 'b', 'c', 'd', 'e', 'f'])
    assert epoch_order(stream)[2] == Merged((
        Rows(0, 2), Rows(1, 2), Rows(0, 2)))
    assert epoch_order(Batch(stream, ConstantScheme(3)))[0] == Merged((
        Rows(0, [0, 1, 2]), Rows(1, [0, 1, 2]), Rows(0, [0, 1, 2])))


def test_rows_of_joined_parts_are_cut_across_their_borders():
    """An item of several parts is cut like one."""
    made = Joined((Rows(0, [1, 2, 3]), Rows(1, range(4))))
    assert cut_rows(made, slice(2, 5)) == Joined((
        Rows(0, [3]), Rows(1, range(2))))
    assert cut_rows(made, slice(1, 3)) == Rows(0, [2, 3])
    assert example_ids(cut_rows(made, slice(2, 4))) == [(0, 3), (1, 0)]
    assert num_rows(made) == 7
    assert batch_of([Rows(0, 4), Rows(0, 1), Rows(1, 2)]) == Joined((
        Rows(0, [4, 1]), Rows(1, [2])))


@pytest.mark.parametrize('count', [10 ** 3, 10 ** 12])
def test_item_of_a_computed_order_needs_as_many_calls_wherever_it_is(count):
    """The last of 10^12 examples is found like the first."""
    makers = [
        lambda: SequentialScheme(count, 4),
        lambda: ComputedShuffledScheme(count, 4, seed=1),
        lambda: ComputedBlockShuffledScheme(count, 4, block_size=100, seed=1)]
    for stream in itertools.chain.from_iterable(
            [pipelines_over(make, count) for make in makers]):
        order = epoch_order(stream)
        assert order.kind == 'computed'
        last = len(order) - 1
        order[0], order[last]
        few, more = calls(order, 1), calls(order, last)
        # The last may be of another stream.
        assert more <= few + 25, stream
        assert more <= 80, stream


def calls(order, item):
    """Return how many calls of Fuel's Python an item needs."""
    return calls_of(lambda: order[item]).total()


def calls_of(function):
    """Return how many calls of each of Fuel's modules a function needs."""
    found = collections.Counter()

    def look(frame, event, _):
        name = frame.f_globals['__name__']
        if event == 'call' and name.startswith('fuel.'):
            found[name] += 1

    sys.setprofile(look)
    try:
        function()
    finally:
        sys.setprofile(None)
    return found


def test_drawn_order_holds_no_permutation_before_it_is_asked():
    """The pickle holds none either; the length is known without one."""
    stream = over(ShuffledExampleScheme(10 ** 6), 10 ** 6)
    order = epoch_order(stream)
    assert len(order) == 10 ** 6
    assert len(pickle.dumps(order)) < 10 ** 4
    assert not order.draws._drawn
    order[3]
    assert len(pickle.dumps(order)) < 10 ** 4


def test_order_of_a_running_epoch_shares_its_permutation():
    """No second one is drawn, nor held."""
    stream = over(ShuffledExampleScheme(1000), 1000)
    epoch = iter(stream)
    order = epoch_order(stream)
    assert order.requests.order.whole() is (
        epoch.epoch.request_iterator.order.whole())


def test_earlier_epochs_are_known_of_computed_orders_alone():
    """The state of the generator of a drawn order is gone."""
    computed = over(ComputedShuffledScheme(9, 2, seed=4))
    first = list(epoch_order(computed))
    list(computed)
    later = epoch_order(computed)
    assert list(later.epoch(-1)) == first
    assert list(later.epoch(-1).epoch(1)) == list(later)
    epoch = iter(computed)
    assert list(epoch_order(computed).epoch(-1)) == first
    del epoch
    with pytest.raises(IndexError, match='before the first'):
        later.epoch(-2)
    drawn = batches(9, 2)
    list(drawn)
    with pytest.raises(UnknownOrderError, match='ShuffledScheme drew'):
        epoch_order(drawn).epoch(-1)


def test_order_is_that_of_a_state_that_was_loaded():
    """The order is that of the epoch that goes on, and of the next one."""
    def build():
        return ShuffleBuffer(Unpack(batches(20, 3)), 5, seed=2)

    stream = build()
    list(stream)
    epoch = iter(stream)
    expected = epoch_order(stream)
    for _ in range(4):
        next(epoch)
    resumed = build()
    resumed.load_state_dict(stream.state_dict())
    order = epoch_order(resumed)
    assert list(expected) == list(order)
    assert list(expected.epoch(1)) == list(order.epoch(1))


def test_mixture_that_began_anew_before_a_state_is_known_from_there_on():
    """A state does not say where its streams stood as the epoch began."""
    def build():
        return Mix([batches(6, 2), batches(4, 2)], stop='forever',
                   epoch_size=20, seed=1)

    stream = build()
    expected = list(epoch_order(stream))
    for _ in itertools.islice(epoch := iter(stream), 12):
        pass
    assert expected == list(epoch_order(stream))
    resumed = build()
    resumed.load_state_dict(stream.state_dict())
    order = epoch_order(resumed)
    assert expected[12:] == [order[item] for item in range(12, 20)]
    with pytest.raises(UnknownOrderError, match='before number 12'):
        order[3]
    del epoch


def test_epoch_that_was_read_to_its_end_keeps_how_a_mixture_in_it_began():
    """The streams have begun anew since, and what they drew is gone."""
    def build():
        mixed = Mix([Unpack(batches(6, 2)), Unpack(batches(4, 2))],
                    stop='forever', epoch_size=20, seed=1)
        return Chain([ShuffleBuffer(mixed, 5, seed=2), examples(9)])

    stream = build()
    expected = list(epoch_order(stream))
    epoch = iter(stream)
    list(itertools.islice(epoch, 25))
    assert expected == list(epoch_order(stream))
    copied = pickle.loads(pickle.dumps(epoch))
    assert expected == list(epoch_order(copied.data_stream))
    list(epoch)
    later = list(epoch_order(stream))
    assert later != expected
    epoch = iter(stream)
    list(itertools.islice(epoch, 25))
    assert later == list(epoch_order(stream))


def test_order_of_a_mixture_is_not_made_unless_it_is_asked_for():
    """A stream that begins anew records where generators stand, no more."""
    stream = Mix([batches(6, 2), batches(4, 2)], stop='forever',
                 epoch_size=20, seed=1)
    list(stream)
    found = calls_of(lambda: list(stream))
    assert sum(stream.restarts.values()) > 5
    assert not found['fuel.sharding.asking']
    assert found['fuel.sharding.draws'] < 30


def test_order_of_workers_is_that_of_the_stream_they_run():
    """The same holds in the middle of their epoch, and after it."""
    plain = batches(9, 2)
    expected = [list(epoch_order(plain)), list(epoch_order(plain).epoch(1))]
    with MultiProcessing(batches(9, 2), num_workers=2) as stream:
        assert expected[0] == list(epoch_order(stream))
        epoch = iter(stream)
        next(epoch)
        assert expected[0] == list(epoch_order(stream))
        list(epoch)
        del epoch
        assert expected[1] == list(epoch_order(stream))


def test_share_of_what_is_read_in_order_is_taken_at_its_source():
    """Batches are made of a rank's examples then."""
    scheme = ConcatenatedScheme([
        ShuffledExampleScheme(9), SequentialExampleScheme(4)])
    stream = Batch(over(scheme), ConstantScheme(3))
    for rank in range(2):
        share = epoch_order(stream).share(Shard(rank, 2))
        ours = stream.shard(rank, 2)
        assert [made.rows for made in share] == [
            batch.tolist() for _, batch in ours]


def test_share_of_several_streams_that_ranks_cannot_share_is_refused():
    """The error says that ranks cannot share it."""
    stream = Chain([over(ConcatenatedScheme([SequentialScheme(4, 2)]))] * 2)
    with pytest.raises(UnknownOrderError, match='ranks cannot share'):
        epoch_order(stream).share(Shard(0, 2))


def test_ranks_share_schemes_that_draw_from_one_generator():
    """The order is that of one process that reads all of it."""
    def build():
        rng = numpy.random.RandomState(5)
        return Merge([over(ShuffledScheme(12, 3, rng=rng), 12)
                      for _ in range(2)], tuple('abcd'))

    whole = [batch[3].tolist() for batch in build()]
    for rank in range(2):
        assert whole[rank::2] == [
            batch[3].tolist() for batch in build().shard(rank, 2)]


def test_last_batch_of_fewer_examples_that_was_requested_is_read_by_a_rank():
    """With strictness=1, a short batch that was requested is not left out."""
    stream = Batch(examples(20), ConstantScheme(6, num_examples=20),
                   strictness=1)
    sizes = [len(batch[1]) for batch in stream]
    assert [6, 6, 6, 2] == sizes
    assert sizes[1::2] == [
        len(batch[1]) for batch in stream.shard(1, 2)]


def test_order_of_rows_of_a_mixture_without_an_end_is_asked_at_once():
    """Its batches differ in size, and are not added up to an end."""
    stream = Batch(Unpack(Mix(
        [DataStream(IndexableDataset({'y': numpy.arange(9)}),
                    iteration_scheme=SequentialScheme(9, size))
         for size in (2, 3)],
        stop='forever', seed=1)), ConstantScheme(4))
    order, epoch = epoch_order(stream), iter(stream)
    for item in range(9):
        expected, = next(epoch)
        assert expected.tolist() == [
            row for _, row in example_ids(order[item])]
