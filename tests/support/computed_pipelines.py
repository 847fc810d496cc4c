"""Pipelines whose orders are computed, over any number of examples."""
from fuel.datasets import IndexableDataset
from fuel.schemes import ComputedShuffledExampleScheme, ConstantScheme
from fuel.streams import DataStream
from fuel.transformers import (
    Batch,
    Cache,
    Cast,
    Chain,
    Merge,
    Mix,
    Take,
    Unpack,
)


class Rowless(IndexableDataset):
    """A data set that knows only the number of its examples."""

    def __init__(self, count):
        super().__init__([0])
        self.count = count

    @property
    def num_examples(self):
        """So many."""
        return self.count


def pipelines_over(make_scheme, count):
    """Return pipelines of each stage that has a computed order.

    Parameters
    ----------
    make_scheme : callable
        Returns a scheme of batches.
    count : int
        Number of examples.
    """
    def source():
        return DataStream(Rowless(count), iteration_scheme=make_scheme())

    single = DataStream(Rowless(count), iteration_scheme=(
        ComputedShuffledExampleScheme(count, seed=1)))
    return [
        source(), Unpack(source()), Cache(source(), ConstantScheme(6)),
        Take(source(), count // 8),
        Chain([source(), source()]), Cast(source(), 'float32'),
        Merge([source(), source()], ('a', 'b')),
        Batch(single, ConstantScheme(5)), Batch(single, ConstantScheme(8)),
        Mix([source(), source()], [1, 2], stop='last'),
        Mix([source(), source()])]
