"""Orders of pipelines whose parts draw from one generator or scheme."""
import numpy
import pytest
from support.random_orders import Drawing
from support.sharded_pipelines import batches, dataset

from fuel.schemes import (
    ComputedShuffledScheme, IterationScheme, SequentialScheme, ShuffledScheme)
from fuel.schemes.shard import Shard
from fuel.sharding.asking import epoch_order
from fuel.sharding.order import UnknownOrderError
from fuel.streams import DataStream
from fuel.transformers import Chain, Merge, Mix, Take, Unpack


def shuffled(rng, count=9):
    """Return a stream that draws from a generator."""
    return DataStream(dataset(count), iteration_scheme=ShuffledScheme(
        count, 2, rng=rng))


def forever(*streams, most=12):
    """Return a mixture that begins streams anew."""
    return Mix(streams, stop='forever', epoch_size=most, seed=3)


def rows(stream):
    """Return the rows that an epoch delivers."""
    return [batch[-1].tolist() for batch in stream]


def said(order):
    """Return the rows that an order says."""
    return [list(made.rows) for made in order]


def test_mixtures_that_draw_from_one_generator_have_no_order():
    """Their streams begin anew as either is read."""
    rng = numpy.random.RandomState(2)
    mixtures = [forever(shuffled(rng), batches(4, 2)) for _ in range(2)]
    order = epoch_order(Chain(mixtures))
    assert order.kind == 'none'
    assert 'ShuffledScheme of DataStream' in order.reason
    assert 'draw from one generator' in order.reason


def test_mixture_in_a_mixture_that_draws_from_one_generator_has_no_order():
    """The outer one begins streams anew between items of the inner one."""
    rng = numpy.random.RandomState(2)
    inner = forever(shuffled(rng))
    assert epoch_order(forever(inner, shuffled(rng))).kind == 'none'
    inner = forever(shuffled(rng), shuffled(rng))
    stream = forever(inner, batches(4, 2))
    order = epoch_order(stream)
    assert order.kind == 'replayed'
    assert said(order) == rows(stream)


def test_streams_of_one_mixture_may_draw_from_one_generator():
    """The mixture begins its streams anew in a known order."""
    rng = numpy.random.RandomState(2)
    stream = forever(shuffled(rng, 6), shuffled(rng, 4), most=20)
    order = epoch_order(stream)
    later = order.epoch(1)
    assert said(order) == rows(stream)
    assert said(later) == rows(stream)


def test_ranks_begin_streams_that_share_a_generator_anew_in_turn():
    """A rank that skips others' items gets its share of one process's."""
    def build():
        rng = numpy.random.RandomState(2)
        return forever(shuffled(rng, 6), shuffled(rng, 4), most=40)

    whole = rows(build())
    for rank in range(8):
        stream = build().shard(rank, 8)
        epoch = iter(stream)
        found = [next(epoch)[-1].tolist() for _ in range(4)]
        order = epoch_order(stream)
        assert said(order) == whole
        found += [batch[-1].tolist() for batch in epoch]
        assert found == whole[rank::8]


def test_next_epoch_of_what_a_mixture_draws_beside_is_not_known():
    """Its generator stands then where the mixture leaves it."""
    rng = numpy.random.RandomState(2)
    stream = Chain([forever(shuffled(rng)), shuffled(rng)])
    for _ in range(2):
        order = epoch_order(stream)
        with pytest.raises(UnknownOrderError, match='draw from one gener'):
            order.epoch(1)
        assert said(order) == rows(stream)


def test_next_epoch_of_what_a_stage_draws_beside_is_not_known():
    """The stage draws for each item."""
    rng = numpy.random.RandomState(2)
    stream = Drawing(shuffled(rng), False, rng=rng)
    for _ in range(2):
        order = epoch_order(stream)
        with pytest.raises(UnknownOrderError, match='the stage Drawing'):
            order.epoch(1)
        assert said(order) == rows(stream)
    assert epoch_order(forever(stream)).kind == 'none'


class Lazy(IterationScheme):
    """A user's scheme that draws while its requests are read."""

    requests_examples = False

    def __init__(self, rng):
        self.rng = rng

    def get_request_iterator(self):
        """Yield batches, drawn one by one."""
        for _ in range(4):
            yield self.rng.randint(9, size=2).tolist()

    def state_dict(self):
        """Return where the generator stands."""
        return {'rng': self.rng.get_state(legacy=False)}

    def load_state_dict(self, state):
        """Put it there."""
        self.rng.set_state(state['rng'])


def test_next_epoch_of_requests_that_are_drawn_one_by_one_is_not_known():
    """The present one is not either, if others draw in between."""
    rng = numpy.random.RandomState(2)
    stream = DataStream(dataset(9), iteration_scheme=Lazy(rng))
    for _ in range(2):
        order = epoch_order(stream)
        with pytest.raises(UnknownOrderError, match='Lazy of DataStream dr'):
            order.epoch(1)
        assert said(order) == rows(stream)
    assert epoch_order(Chain([stream, shuffled(rng)])).kind == 'none'


def test_scheme_of_two_streams_counts_the_epochs_of_both():
    """The order counts both, and so do ranks that share the pipeline."""
    def build():
        scheme = ComputedShuffledScheme(9, 2, seed=4)
        return Chain([DataStream(dataset(9), iteration_scheme=scheme)
                      for _ in range(2)])

    stream = build()
    order = epoch_order(stream)
    later = order.epoch(1)
    assert order[7].rows == rows(build())[7]
    share = said(order.share(Shard(1, 2)))
    assert share == rows(build().shard(1, 2)) == rows(build())[1::2]
    assert said(order) == rows(stream)
    assert said(later) == rows(stream)


def test_mixture_that_is_read_twice_has_no_order():
    """Only the first of its epochs goes on where it stands."""
    mixed = forever(batches(9, 2))
    order = epoch_order(Chain([mixed, mixed]))
    assert order.kind == 'none'
    assert 'Mix goes on in the next epoch' in order.reason


def test_taken_items_of_a_stream_of_unknown_length_end():
    """The order ends where the epoch does."""
    stream = Take(DataStream(dataset(9), iteration_scheme=Lazy(
        numpy.random.RandomState(2))), 3)
    assert said(epoch_order(stream)) == rows(stream)


@pytest.mark.filterwarnings('ignore:the streams merged')
def test_merged_items_of_a_stream_of_unknown_length_end_with_the_other():
    """The order ends where the epoch does."""
    examples = DataStream(dataset(4), iteration_scheme=SequentialScheme(4, 2))
    lazy = DataStream(dataset(9), iteration_scheme=Lazy(
        numpy.random.RandomState(2)))
    stream = Merge([lazy, examples], ['a', 'b', 'c', 'd'])
    order = epoch_order(Unpack(stream))
    said_items = list(iter(order))
    assert len(said_items) == len(list(Unpack(stream))) == 4
