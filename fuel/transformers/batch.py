"""Stages that make batches of examples, and examples of batches."""
from __future__ import annotations

import typing
from collections.abc import Iterator, Sequence
from typing import Any, Self

from fuel.describe.source_types import SourceTypes, types_of
from fuel.epochs.epoch import Epoch
from fuel.epochs.examples import SourceExamples, joined
from fuel.epochs.pipeline import (
    can_seek, can_seek_rows, length_of, source_examples)
from fuel.epochs.stage import stage_of
from fuel.epochs.state import position_of
from fuel.schemes import ConstantScheme
from fuel.schemes.iteration_scheme import batch_size_of
from fuel.schemes.ordered import size_requests
from fuel.schemes.requests import warn_of_no_batch
from fuel.sharding.asking import StageEpoch
from fuel.sharding.given import GivenOrder
from fuel.sharding.order import EpochOrder
from fuel.sharding.planned import read_rows_at, seek
from fuel.sharding.stage_orders import (
    OrderPlan, RowPlan, cut_order, example_order)
from fuel.streams.arguments import LabelOptions, StreamOptions
from fuel.transformers.base import check_count
from fuel.transformers.cache import as_size, examples_of
from fuel.transformers.expand import Expand
from fuel.transformers.leftovers import (
    LazyPieces, Leftover, LeftoverStage, Pieces, refused_position)
from fuel.transformers.ragged import as_batch
from fuel.transformers.source_names import (
    as_labels, labels_of, labels_of_batches)
from fuel.typing import Request, SchemeLike, StreamLike
from fuel.utils.checks import positive
from fuel.utils.overrides import covers


class BatchPlan(OrderPlan):
    """Makes a batch by its number, from a stream that can seek."""

    @staticmethod
    def fits(stream: Any) -> bool:
        """Return whether each batch can be made without the earlier ones."""
        return type(stream.iteration_scheme) is ConstantScheme and can_seek(
            stream.data_stream, forward=True)

    def make(self, parts: list[Any]) -> tuple[Any, ...]:
        """Return examples as one batch."""
        return join_examples(parts, self.sources)

    def end(self, item: int) -> None:
        """Move the stream to where the stage leaves it at the end."""
        order, child = self.order, self.children[0]
        seek(child, order.total if order.reads_all
             else order.places(self.num_items - 1).stop)
        # A mixture moves there only when its position is requested.
        position_of(child)


class Batch(LeftoverStage):
    """Makes batches of examples.

    Parameters
    ----------
    data_stream : AbstractDataStream
        Produces examples.
    iteration_scheme : BatchSizeScheme, optional
        Says how many examples make a batch.
    strictness : {0, 1, 2}, optional
        What to do if too few examples are left for the last batch: return
        the short batch (0, the default), discard it (1), or raise
        ValueError (2).
    batch_size : int, optional
        Number of examples of a batch, instead of an `iteration_scheme`.
    drop_last : bool, optional
        Leave out a last batch of fewer examples, so that all have one size:
        the same as ``strictness=1``. Defaults to False.
    axis_labels
        See :class:`~fuel.transformers.Transformer`. The axis labels default
        to those of `data_stream`, with ``'batch'`` in front.

    Raises
    ------
    TypeError
        Unless either `iteration_scheme` or `batch_size` is given.
    ValueError
        If `data_stream` produces batches, if `iteration_scheme` requests
        examples, if `strictness` has another value, or if `drop_last`
        contradicts it.

    Notes
    -----
    Each source of a batch is an array. Where the shapes of the examples
    differ, it is an array of objects, one for each example.

    Examples
    --------
    >>> from fuel.datasets import IterableDataset
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IterableDataset([1, 2, 3]))
    >>> batches = Batch(stream, batch_size=2)
    >>> list(batches.get_epoch_iterator())
    [(array([1, 2]),), (array([3]),)]
    >>> list(Batch(stream, batch_size=2, drop_last=True))
    [(array([1, 2]),)]
    """

    __fuel_plan__ = BatchPlan
    epoch_attributes = (*LeftoverStage.epoch_attributes, '_size')
    # An argument that is not kept: `strictness` says the same.
    made_into_others = ('drop_last',)
    # The number of examples of the last batch.
    _size = 0

    def __init__(self, data_stream: StreamLike,
                 iteration_scheme: SchemeLike | None = None,
                 strictness: int = 0, *, batch_size: int | None = None,
                 drop_last: bool = False,
                 **kwargs: typing.Unpack[LabelOptions]) -> None:
        if not data_stream.produces_examples:
            raise ValueError(
                'Batch makes batches of examples, but its data stream '
                f'({type(data_stream).__name__}) produces batches already: '
                'use Cache to change their size')
        if (iteration_scheme is None) == (batch_size is None):
            raise TypeError(
                'Batch needs either batch_size, such as batch_size=128, or '
                'an iteration_scheme, such as ConstantScheme(128)')
        if isinstance(iteration_scheme, int):
            raise TypeError(
                'the second argument of Batch is an iteration_scheme: for '
                f'batches of {iteration_scheme} examples write '
                f'Batch(stream, batch_size={iteration_scheme})')
        if iteration_scheme is None:
            iteration_scheme = ConstantScheme(
                positive('batch_size', batch_size))
        if iteration_scheme.requests_examples:
            raise ValueError(
                'iteration_scheme must request batch sizes, such as '
                f'ConstantScheme, but {type(iteration_scheme).__name__} '
                'requests examples')
        if strictness not in (0, 1, 2):
            raise ValueError(
                f'strictness must be 0, 1 or 2, got {strictness!r}')
        if drop_last and strictness == 2:
            raise ValueError(
                'drop_last leaves out a smaller last batch, for which '
                'strictness=2 raises an error: pass one of them')
        kwargs.setdefault('axis_labels', labels_of_batches(data_stream))
        super().__init__(
            data_stream, None, iteration_scheme=iteration_scheme, **kwargs)
        self.strictness = 1 if drop_last else strictness
        if type(iteration_scheme) is ConstantScheme:
            warn_of_no_batch(length_of(data_stream) or 0,
                             iteration_scheme.batch_size, drop_last)

    def known_types(self) -> SourceTypes:
        """Return the types of batches."""
        size = batch_size_of(self.iteration_scheme)
        return {source: known.in_batches(size) for source, known
                in types_of(self.data_stream).items()}

    def get_data(self, request: Request = None) -> tuple[Any, ...]:
        """Return a batch.

        Parameters
        ----------
        request : int
            Number of examples that it should have.

        Raises
        ------
        ValueError
            If `request` is not a positive integer; with strictness 2, if
            there are too few examples.
        StopIteration
            If there are no examples left; with strictness 1, too few.
        """
        size = as_size(self, request)
        if not self._kept:
            # If reading an example fails, the examples before it stay here.
            self._kept = (
                Leftover(position_of(self.child_epoch_iterator), []),)
        examples, asked = self._kept[0].parts, self._asked
        while len(examples) < size:
            try:
                examples.append(tuple(self._pull()))
            except StopIteration:
                self._check_last(examples, size)
                break
            if asked is not None:
                self._kept[0].note(self.child_epoch_iterator)
        if asked is not None:
            asked.last = joined(self._kept[0].examples, are_single=True)
        self._kept, self._size = (), len(examples)
        return join_examples(examples, self.data_stream.sources)

    def order_items(self, inputs: Sequence[EpochOrder], begun: StageEpoch,
                    ) -> EpochOrder:
        """Return the order of an epoch."""
        return cut_order(
            inputs[0], begun.requests(self.iteration_scheme),
            self.strictness)

    def _check_last(self, examples: list[Any], size: int) -> None:
        """Raise an error if a short last batch must not be returned."""
        if not examples or self.strictness == 1:
            raise StopIteration
        if self.strictness == 2:
            raise ValueError(
                f'a batch of {size} examples was requested, but only '
                f'{len(examples)} are left: with strictness=0 the last batch '
                'may be smaller, with strictness=1 it is left out')

    def source_examples(self, requests: Sequence[Any]) -> Any:
        """Return the examples that the last batch was made of."""
        if self._asked is not None:
            return self._asked.last
        return source_examples(self.child_epoch_iterator, self._size) if len(
            requests) == 1 else None

    def num_items(self) -> int | None:
        """Return the number of items of an epoch, None if it is not known."""
        examples, scheme = length_of(self.data_stream), self.iteration_scheme
        if examples is None or self.strictness == 2 or (
                type(scheme) is not ConstantScheme):
            return None
        count: int | None = cut_order(
            GivenOrder(0, examples), size_requests(scheme),
            self.strictness).num_items
        return count

    def get_leftover(self) -> None:
        """Return None: the examples of an unfinished batch are read again."""


def join_examples(examples: list[Any], sources: Sequence[str],
                  ) -> tuple[Any, ...]:
    """Return examples as one batch."""
    for example in examples:
        check_count(example, sources)
    return tuple([as_batch(part) for part in zip(*examples, strict=True)])


class UnpackPlan(RowPlan):
    """Makes examples of batches; reads a rank's rows of a batch at once."""

    step = 1
    # True if the stage above needs some of the examples, in any order.
    is_sought = False
    # The number of the next example that was read and not returned.
    _expected = -1
    _examples: Iterator[Any] = iter(())
    # The examples of data sets in the batch, if a stage above asks for them.
    _found: SourceExamples | None = None

    @classmethod
    def open(cls, stream: Any, epoch: Epoch) -> Self:
        """Return the plan of an epoch of a stage."""
        plan = super().open(stream, epoch)
        plan.step = epoch.step
        plan.is_sought = stage_of(stream).is_sought
        return plan

    @staticmethod
    def fits(stream: Any) -> bool:
        """Return whether each example can be made without earlier ones."""
        return can_seek_rows(stream.data_stream) and covers(
            stream, '__fuel_plan__', ('expand',))

    def read(self, item: int) -> Any:
        """Return an example."""
        part, = self.order.parts(item)
        batch, row = part.items[0], part.rows.start
        if self.is_sought:
            example, = examples_of(read_rows_at(
                self.children[0], batch, part.rows), self.sources)
            found = source_examples(
                self.children[0], 1) if self.is_asked else None
            if found is not None:
                self.examples = found.row(row)
            return example
        if item != self._expected or row < self.step:
            self._expected = -1
            self._examples = iter(examples_of(read_rows_at(
                self.children[0], batch, slice(row, None, self.step)),
                self.sources))
            if self.is_asked:
                self._found = source_examples(self.children[0], 1)
        example = next(self._examples)
        self._expected = item + self.step
        if self._found is not None:
            self.examples = self._found.row(row)
        return example


class Unpack(Expand):
    """Makes examples of batches, one by one.

    Parameters
    ----------
    data_stream : AbstractDataStream
        Produces batches.
    iteration_scheme, axis_labels
        See :class:`~fuel.transformers.Transformer`. The axis labels default
        to those of `data_stream` without the first.

    Attributes
    ----------
    data : iterator or None
        The examples of the last batch that are still to come. Advancing it
        leaves examples out.

    Raises
    ------
    ValueError
        If `data_stream` produces examples.

    Examples
    --------
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.schemes import SequentialScheme
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IndexableDataset(['a', 'b', 'c']),
    ...                     iteration_scheme=SequentialScheme(3, 2))
    >>> list(Unpack(stream).get_epoch_iterator())
    [('a',), ('b',), ('c',)]
    """

    __fuel_plan__ = UnpackPlan

    def __init__(self, data_stream: StreamLike,
                 **kwargs: typing.Unpack[StreamOptions]) -> None:
        if data_stream.produces_examples:
            raise ValueError(
                'Unpack makes examples of batches, but its data stream '
                f'({type(data_stream).__name__}) produces examples already')
        labels = labels_of(data_stream)
        if labels is not None:
            kwargs.setdefault('axis_labels', {
                source: None if part is None else as_labels(part)[1:]
                for source, part in labels.items()})
        super().__init__(data_stream, produces_examples=True, **kwargs)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if 'data' in state:
            # A pickle of Fuel 0.2.0, perhaps in the middle of an epoch.
            self.data = vars(self).pop('data')

    @property
    def data(self) -> Any:
        """The examples of the last batch that are still to come."""
        if not self._kept:
            return None
        examples = self._kept[0]
        return (examples.assigned if isinstance(examples, AssignedExamples)
                else examples)

    @data.setter
    def data(self, examples: Any) -> None:
        self._kept = () if examples is None else (
            AssignedExamples(self, examples),)

    def known_types(self) -> SourceTypes:
        """Return the types of examples."""
        return {source: known.example() for source, known
                in types_of(self.data_stream).items()}

    def expand(self, item: Any) -> LazyPieces:
        """Return the examples of a batch."""
        return examples_of(item, self.data_stream.sources)

    def source_examples(self, requests: Sequence[Any]) -> Any:
        """Return the example that was made last."""
        if not covers(self, 'source_examples', ('expand',)):
            return super().source_examples(requests)
        found = self.examples_read()
        return found and found.row(self._kept[0].used - 1)

    def order_items(self, inputs: Sequence[EpochOrder], begun: StageEpoch,
                    ) -> EpochOrder:
        """Return the order of an epoch."""
        if not covers(self, 'order_items', ('expand',)):
            return super().order_items(inputs, begun)
        return example_order(inputs[0])


class AssignedExamples(Pieces):
    """Examples that a user assigned, whose position cannot be saved."""

    def __init__(self, stage: Unpack, examples: Any) -> None:
        super().__init__(refused_position(stage, 'data'), iter(examples))
        self.assigned = examples

    def __getstate__(self) -> dict[str, Any]:
        return vars(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
