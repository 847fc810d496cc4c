"""A user's parts and training loop, typed strictly: nothing is reported."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Unpack

import numpy
from numpy.typing import NDArray

from fuel.datasets import (
    MNIST,
    Dataset,
    H5PYDataset,
    IndexableDataset,
)
from fuel.schemes import IterationScheme, SequentialScheme, ShuffledScheme
from fuel.streams import AbstractDataStream, DataStream, ServerDataStream
from fuel.testing import check_dataset, check_scheme, check_stage
from fuel.transformers import (
    Batch,
    Cast,
    Flatten,
    Mapping,
    MultiProcessing,
    ScaleAndShift,
    SourcewiseTransformer,
    Transformer,
)
from fuel.transformers.image import RandomFixedSizeCrop
from fuel.transformers.options import SourcewiseOptions
from fuel.typing import DatasetLike, SchemeLike, StreamLike


class Squares(Dataset):
    """A data set that derives from Fuel's base."""

    provides_sources = ('roots', 'squares')

    def get_data(self, state: object = None,
                 request: list[int] | None = None) -> tuple[Any, ...]:
        """Return roots and their squares."""
        roots = numpy.array(request)
        return self.filter_sources((roots, roots ** 2))


class LooksLikeOne:
    """A data set that derives from nothing."""

    sources = ('letters',)
    axis_labels = None

    def open(self) -> Iterator[str]:
        """Return the state."""
        return iter('abc')

    def next_epoch(self, state: object) -> Iterator[str]:
        """Return the state of the next epoch."""
        return self.open()

    def get_data(self, state: Any = None, request: None = None
                 ) -> tuple[str]:
        """Return the next letter."""
        return (next(state),)


class Evens(IterationScheme):
    """A scheme of the user's."""

    requests_examples = True

    def get_request_iterator(self) -> Iterator[int]:
        """Return even indices."""
        return iter(range(0, 10, 2))


class Doubler(Transformer):
    """A stage of the user's."""

    def __init__(self, data_stream: AbstractDataStream) -> None:
        super().__init__(data_stream, data_stream.produces_examples)

    def transform_batch(self, batch: tuple[NDArray[Any], ...]
                        ) -> tuple[NDArray[Any], ...]:
        """Return the batch, doubled."""
        return tuple(2 * part for part in batch)


class Centred(SourcewiseTransformer):
    """A stage that works on some sources, and hands on its keywords."""

    def __init__(self, data_stream: StreamLike,
                 **kwargs: Unpack[SourcewiseOptions]) -> None:
        super().__init__(
            data_stream, data_stream.produces_examples, **kwargs)

    def transform_source_batch(self, source_batch: NDArray[Any],
                               source_name: str) -> NDArray[Any]:
        """Return the source without its mean."""
        centred: NDArray[Any] = source_batch - source_batch.mean()
        return centred


class Plain(AbstractDataStream):
    """A stream of the user's that overrides what users override."""

    sources = ('number',)

    def get_epoch_iterator(self, as_dict: bool = False) -> Any:
        """Return an iterator over a new epoch."""
        return super().get_epoch_iterator(as_dict=as_dict)

    def get_data(self, request: object = None) -> tuple[int]:
        """Return the only number."""
        return (3,)


def accepted(dataset: DatasetLike, scheme: SchemeLike,
             stream: StreamLike) -> None:
    """Take what has the members of the protocols."""


def train(model: Any) -> dict[str, Any]:
    """Read epochs, and save the position."""
    dataset = IndexableDataset({
        'features': numpy.arange(12.).reshape(6, 2),
        'targets': numpy.arange(6)})
    stream = DataStream(dataset, iteration_scheme=ShuffledScheme(6, 2))
    scaled = ScaleAndShift(stream, 1 / 255., 0, which_sources=('features',))
    cast = Cast(scaled, 'float32', which_sources='features')
    flat = Doubler(Flatten(cast, which_sources=('features',)))
    last = MultiProcessing(Mapping(flat, tuple), max_store=10)
    with last:
        epoch = last.get_epoch_iterator()
        for features, targets in epoch:
            model.train(features.mean(), targets)
        for batch in last.get_epoch_iterator(as_dict=True):
            model.train(batch['features'].mean(), batch['targets'])
        state: dict[str, Any] = epoch.state_dict()
        last.load_state_dict(state)
        for one in last.iterate_epochs():
            model.train(*next(one))
            break
    return last.state_dict()


def check(path: str) -> None:
    """Use each part where Fuel takes such a part."""
    stream = DataStream(LooksLikeOne())
    accepted(LooksLikeOne(), Evens(), stream)
    accepted(Squares(), SequentialScheme(3, 1), ServerDataStream(('x',)))
    accepted(H5PYDataset(path, ('train',)), Evens(), Doubler(stream))
    accepted(MNIST(('train',)), Evens(), DataStream(MNIST(('test',))))
    Batch(DataStream(Squares(), iteration_scheme=Evens()),
          iteration_scheme=SequentialScheme(3, 1))
    RandomFixedSizeCrop(stream, (2, 2), which_sources=('letters',))
    Centred(stream, which_sources='letters', iteration_scheme=Evens())
    check_dataset(Squares, schemes=[SequentialScheme(9, 2)])
    check_scheme(Evens, promises=['epochs'])
    check_stage(Doubler, another_process=False)
