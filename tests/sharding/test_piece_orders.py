"""Orders of stages that make several items of one."""
import numpy
import pytest
from support.random_orders import Counted, Repeated
from support.sharded_pipelines import batches, examples

from fuel.datasets import IndexableDataset
from fuel.schemes import ConstantScheme, SequentialExampleScheme
from fuel.schemes.shard import Shard
from fuel.sharding.asking import epoch_order
from fuel.sharding.made import DatasetRows, Joined, example_ids
from fuel.sharding.order import UnknownOrderError
from fuel.streams import DataStream
from fuel.transformers import (
    Batch, Cache, Chain, Expand, Mix, Take, Unpack)
from fuel.transformers.shuffling import ShuffleBuffer


def rows(stream):
    """Return the rows that the items of an epoch are made of."""
    return [numpy.atleast_1d(item[1]).tolist() for item in stream]


def said(order):
    """Return the rows that an order says."""
    return [[row for _, row in example_ids(made)] for made in order]


class Rows(Repeated):
    """Makes as many examples of each batch, by taking its first rows."""

    def __init__(self, data_stream, times):
        super().__init__(data_stream, times, produces_examples=True)

    def expand(self, item):
        """Yield rows."""
        for row in range(self.times):
            yield tuple(part[row] for part in item)


@pytest.mark.parametrize('times', [0, 1, 3])
def test_piece_is_made_of_its_item_where_the_number_of_pieces_is_known(times):
    """The items may be examples, batches, or shuffled examples."""
    for below in (examples(9), batches(9, 2),
                  ShuffleBuffer(examples(9), 4, seed=1)):
        stream = Repeated(below, times)
        order = epoch_order(stream)
        later = order.epoch(1)
        assert len(order) == len(stream)
        assert said(order) == rows(stream)
        assert said(later) == rows(stream)


def test_pieces_of_examples_are_batched_and_shared_by_ranks():
    """Pieces have an order as the items of other stages do."""
    def build():
        return Batch(Repeated(examples(9), 2), ConstantScheme(4))

    order = epoch_order(build())
    assert said(order) == rows(build())
    for rank in range(2):
        assert said(order.share(Shard(rank, 2))) == rows(
            build().shard(rank, 2))


def test_piece_of_a_batch_is_made_of_all_of_its_rows():
    """No stage can cut them, since it is not known which of them it has."""
    stream = Rows(batches(9, 3), 2)
    order = epoch_order(stream)
    assert order.is_single
    assert len(order) == len(list(stream)) == 6
    assert order[0] == order[1]
    assert len(example_ids(order[0])) == 3
    batched = epoch_order(Batch(stream, ConstantScheme(2)))
    assert len(example_ids(batched[0])) == 6
    reason = 'which rows a piece of Rows has is not known'
    cut = epoch_order(Cache(Batch(stream, ConstantScheme(2)),
                            ConstantScheme(3)))
    assert cut.kind == 'none'
    assert reason in cut.reason
    with pytest.raises(UnknownOrderError, match=reason):
        order.size(0)


def test_pieces_of_several_data_sets_are_batched():
    """Parts of them follow each other."""
    below = Cache(Chain([batches(4, 2), batches(4, 2)]), ConstantScheme(3))
    order = epoch_order(Batch(Rows(below, 1), ConstantScheme(3)))
    assert isinstance(order[0], Joined)
    assert {dataset for dataset, _ in example_ids(order[0])} == {0, 1}
    assert all(isinstance(part, DatasetRows | Joined)
               for part in order[0].parts)


class Words(Expand):
    """Makes pieces without saying how many."""

    def expand(self, item):
        """Return the item."""
        return [item]


class FirstRow(Unpack):
    """A user's stage that has pieces of its own."""

    def expand(self, item):
        """Return the first row alone."""
        return [tuple(part[0] for part in item)]


@pytest.mark.parametrize('make', [
    lambda: Words(examples(9)), lambda: Counted(examples(9), 2),
    lambda: FirstRow(batches(9, 2)), lambda: Take(Words(examples(9)), 3)])
def test_pieces_whose_number_depends_on_the_item_have_no_order(make):
    """The stage and what it may say are named."""
    order = epoch_order(make())
    assert order.kind == 'none'
    assert 'how many is not known before it is read' in order.reason
    assert 'the stage ' in order.reason


def test_order_of_pieces_without_an_end_can_be_mixed():
    """Their number does not fit an integer of the machine."""
    def source(start):
        return DataStream(
            IndexableDataset({'y': numpy.arange(start, start + 6)}),
            iteration_scheme=SequentialExampleScheme(6))

    endless = Mix([source(0), source(100)], stop='forever', seed=1)
    stream = Mix([Repeated(endless, 2), source(200)], stop='forever',
                 epoch_size=9, seed=2)
    order = epoch_order(stream)
    assert [int(item) for item, in stream] == [
        100 * dataset + int(row)
        for item in range(9) for dataset, row in example_ids(order[item])]
