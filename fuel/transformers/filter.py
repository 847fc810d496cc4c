"""Stages that leave out items."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Unpack

from fuel.epochs.pipeline import length_of, source_examples
from fuel.sharding.asking import StageEpoch
from fuel.sharding.order import EpochOrder
from fuel.sharding.stage_orders import OrderPlan, TakenOrder
from fuel.streams.arguments import StreamOptions
from fuel.transformers.base import ALL, Transformer
from fuel.transformers.source_names import item_of
from fuel.typing import Request, StreamLike
from fuel.utils.checks import not_negative, takes_one
from fuel.utils.overrides import is_own


class Filter(Transformer):
    """Keeps the examples or batches that fulfil a condition.

    Parameters
    ----------
    predicate : callable
        Takes a tuple with the data of each source, and returns whether to
        keep them.
    iteration_scheme, axis_labels
        See :mod:`fuel.transformers`.

    Examples
    --------
    >>> from fuel.datasets import IterableDataset
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IterableDataset([1, 2, 3, 4]))
    >>> even = Filter(stream, lambda data: data[0] % 2 == 0)
    >>> list(even.get_epoch_iterator())
    [(2,), (4,)]
    """

    one_to_one = False
    keeps = ALL

    def __init__(self, data_stream: StreamLike,
                 predicate: Callable[[Any], Any],
                 **kwargs: Unpack[StreamOptions]) -> None:
        if is_own(type(self)):
            takes_one('predicate', predicate,
                      lambda: item_of(data_stream))
        super().__init__(
            data_stream, data_stream.produces_examples, **kwargs)
        self.predicate = predicate

    def get_data(self, request: Request = None) -> Any:
        """Return the next data that fulfil the condition.

        See :meth:`~fuel.transformers.Transformer.get_data`.
        """
        self._refuse(request)
        while True:
            data = self._pull()
            try:
                if self.predicate(data):
                    return data
            except StopIteration as error:
                raise self._explained(
                    error, self.child_epoch_iterator, data,
                    'the predicate') from error
            except (AttributeError, TypeError, ValueError) as error:
                error.add_note(
                    f'the predicate of {type(self).__name__} gets '
                    f'{item_of(self.data_stream)}, and returns whether to '
                    'keep all of it'
                    + ('' if self.produces_examples else '; examples are '
                       'left out where they come, before Batch'))
                raise

    def source_examples(self, requests: Sequence[Any]) -> Any:
        """Return the examples of the last item, which were read last."""
        return source_examples(
            self.child_epoch_iterator, 1) if len(requests) == 1 else None


class TakePlan(OrderPlan):
    """Makes an item by its number, from a stream that can seek."""

    # If each rank took `count` items, the ranks together would take more.
    is_needed = True


class Take(Transformer):
    """Takes the first items of each epoch, and leaves out the rest.

    Parameters
    ----------
    data_stream : AbstractDataStream
    count : int
        Number of batches or examples, whichever the stream produces.
    iteration_scheme, axis_labels
        See :class:`~fuel.transformers.Transformer`.

    Examples
    --------
    >>> from fuel.datasets import IterableDataset
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IterableDataset('abc'))
    >>> list(Take(stream, 2).get_epoch_iterator())
    [('a',), ('b',)]
    """

    __fuel_plan__ = TakePlan
    epoch_attributes = (*Transformer.epoch_attributes, '_taken')
    _taken = 0
    keeps = ALL

    def __init__(self, data_stream: StreamLike, count: int,
                 **kwargs: Unpack[StreamOptions]) -> None:
        super().__init__(data_stream, data_stream.produces_examples, **kwargs)
        self.count = not_negative('count', count)

    def start_epoch(self) -> None:
        """Set the attributes that belong to a new epoch."""
        self._taken = 0
        super().start_epoch()

    def get_data(self, request: Request = None) -> Any:
        """Return the next item; raise StopIteration after `count` items.

        See :meth:`~fuel.transformers.Transformer.get_data`.
        """
        self._refuse(request)
        if self._taken >= self.count:
            raise StopIteration
        data = self._pull()
        self._taken += 1
        return data

    def source_examples(self, requests: Sequence[Any]) -> Any:
        """Return the examples of the last items; they were read last."""
        return source_examples(self.child_epoch_iterator, len(requests))

    def order_items(self, inputs: Sequence[EpochOrder], begun: StageEpoch,
                    ) -> EpochOrder:
        """Return the order of an epoch."""
        return TakenOrder(inputs[0], self.count)

    def get_leftover(self) -> int:
        """Return the number of items taken."""
        return self._taken

    def set_leftover(self, leftover: int) -> None:
        """Restore the number of items taken."""
        self._taken = not_negative('taken', leftover)

    def num_items(self) -> int | None:
        """Return the number of items of an epoch, None if it is not known."""
        length = length_of(self.data_stream)
        return None if length is None else min(length, self.count)
