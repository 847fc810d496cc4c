"""A stage that changes the size of batches."""
from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Unpack

import numpy

from fuel.describe.source_types import SourceTypes, types_of
from fuel.epochs.examples import joined
from fuel.epochs.pipeline import can_seek_rows
from fuel.epochs.state import position_of
from fuel.schemes import BatchSizeScheme, ConstantScheme
from fuel.schemes.iteration_scheme import batch_size_of
from fuel.sharding.asking import StageEpoch
from fuel.sharding.order import EpochOrder
from fuel.sharding.stage_orders import RowPlan, row_order
from fuel.streams.arguments import LabelOptions
from fuel.transformers.base import check_count
from fuel.transformers.leftovers import (
    LazyPieces, Leftover, LeftoverStage, refused_position)
from fuel.transformers.ragged import as_batch, map_elements
from fuel.transformers.source_names import labels_of
from fuel.typing import Batch, Request, SchemeLike, StreamLike
from fuel.utils.masked import concatenated
from fuel.utils.sparse import (
    count_rows, is_sparse, iterate_rows, row_of, rows_between, stack_rows)


def batch_rows(batch: Iterable[Any],
            sources: Sequence[str]) -> tuple[list[Any], int]:
    """Return the data of each source of a batch, and its number of examples.

    The data of a source are an array, a list or a sparse batch.
    """
    batch = tuple(batch)
    check_count(batch, sources)
    names = (*sources, *range(len(sources), len(batch)))
    parts = [_as_rows(part, name) for part, name
             in zip(batch, names, strict=True)]
    lengths = [count_rows(part) for part in parts]
    if len(set(lengths)) > 1:
        raise ValueError(
            'all sources of a batch must have the same number of '
            'examples, got ' + ', '.join(
                f'{name}: {length}' for name, length
                in zip(names, lengths, strict=True)))
    return parts, lengths[0] if lengths else 0


def examples_of(batch: Iterable[Any], sources: Sequence[str]) -> LazyPieces:
    """Return the examples of a batch, which are made on demand.

    Arrays are copied, so that an example does not keep the batch alive.
    """
    parts, size = batch_rows(batch, sources)
    return LazyPieces(partial(_example_at, parts), size)


def _example_at(parts: list[Any], number: int) -> tuple[Any, ...]:
    example = []
    for part in parts:
        row = (part[number] if type(part) is numpy.ndarray
               else row_of(part, number))
        example.append(row.copy() if isinstance(row, numpy.ndarray) else row)
    return tuple(example)


def _as_rows(part: Iterable[Any], source: object) -> Any:
    if isinstance(part, list) or is_sparse(part) or (
            isinstance(part, numpy.ndarray) and part.ndim):
        return part
    try:
        return list(part)
    except TypeError:
        raise ValueError(
            f'source {source!r} of a batch must have one item for each '
            f'example, got {part!r:.80} ({type(part).__name__})') from None


class CachePlan(RowPlan):
    """Makes a batch by its number, from rows that can be read separately."""

    @staticmethod
    def fits(stream: Any) -> bool:
        """Return whether each batch can be made without the earlier ones."""
        return type(stream.iteration_scheme) is ConstantScheme and (
            can_seek_rows(stream.data_stream))

    def make(self, parts: list[Any]) -> Batch:
        """Return rows of batches as one batch."""
        return join_batches(parts, self.sources)


class Cache(LeftoverStage):
    """Makes batches of another size from the batches of its stream.

    It reads batches, typically large ones, keeps them, and returns as many
    examples as requested until all are used up. No example is left out at
    the end of an epoch: the last batch may be smaller than requested.

    Parameters
    ----------
    data_stream : AbstractDataStream
        Produces batches, of any size.
    iteration_scheme : BatchSizeScheme
        Says how many examples to return.
    axis_labels
        See :mod:`fuel.transformers`.

    Attributes
    ----------
    cache : list of lists
        For each source a list of the examples that were read, but not yet
        returned in this epoch. Each access makes new lists, so changing them
        has no effect. Assigning to `cache` has an effect.

    Raises
    ------
    ValueError
        If `iteration_scheme` is not a
        :class:`~fuel.schemes.BatchSizeScheme`.

    Notes
    -----
    The stage reads no more batches than a request needs. If the shapes of
    examples differ, the batch is an array of objects.

    Examples
    --------
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.schemes import ConstantScheme, SequentialScheme
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IndexableDataset(list(range(8))),
    ...                     iteration_scheme=SequentialScheme(8, 5))
    >>> cache = Cache(stream, iteration_scheme=ConstantScheme(3))
    >>> for batch, in cache.get_epoch_iterator():
    ...     print(batch, cache.cache)
    [0 1 2] [[3, 4]]
    [3 4 5] [[6, 7]]
    [6 7] [[]]
    """

    __fuel_plan__ = CachePlan
    _kept: tuple[Leftover, ...] = ()

    def __init__(self, data_stream: StreamLike, iteration_scheme: SchemeLike,
                 **kwargs: Unpack[LabelOptions]) -> None:
        if not isinstance(iteration_scheme, BatchSizeScheme):
            raise ValueError(
                'iteration_scheme must be a BatchSizeScheme, such as '
                f'ConstantScheme, got {type(iteration_scheme).__name__}')
        kwargs.setdefault('axis_labels', labels_of(data_stream))
        super().__init__(
            data_stream, None, iteration_scheme=iteration_scheme, **kwargs)

    @property
    def cache(self) -> list[list[Any]]:
        """For each source, the examples not yet returned (list of lists)."""
        return [[example for chunk in self._kept
                 for example in iterate_rows(rows_between(
                     chunk.parts[place], chunk.used, chunk.size))]
                for place in range(len(self._kept[0].parts)
                                   if self._kept else len(self.sources))]

    @cache.setter
    def cache(self, value: list[list[Any]]) -> None:
        chunk = Leftover(refused_position(self, 'cache'),
                         *batch_rows(value, self.sources))
        self._kept = (chunk,) if chunk.size else ()

    def known_types(self) -> SourceTypes:
        """Return the types of batches of another size."""
        size = batch_size_of(self.iteration_scheme)
        return {source: known.example().in_batches(size) for source, known
                in types_of(self.data_stream).items()}

    def get_data(self, request: Request = None) -> tuple[Any, ...]:
        """Return a batch.

        Parameters
        ----------
        request : int
            Number of examples to return.

        Returns
        -------
        tuple of numpy.ndarray
            The data of each source, with fewer examples than requested if
            no more are left.

        Raises
        ------
        ValueError
            If `request` is not a positive integer.
        StopIteration
            If there are no examples left.
        """
        size = as_size(self, request)
        missing = size - sum(
            chunk.size - chunk.used for chunk in self._kept)
        while missing > 0:
            try:
                missing -= self._keep_next()
            except StopIteration:
                if not self._kept:
                    raise
                break
        return self._take(size)

    def _keep_next(self) -> int:
        """Read a batch, and return how many examples it has."""
        position = position_of(self.child_epoch_iterator)
        chunk = Leftover(
            position, *batch_rows(self._pull(), self.data_stream.sources))
        if self._asked is not None:
            chunk.note(self.child_epoch_iterator)
        if chunk.size:
            self._kept += (chunk,)
        return chunk.size

    def _take(self, size: int) -> tuple[Any, ...]:
        """Return the next `size` examples, or fewer if no more are kept."""
        pieces: list[list[Any]] = [[] for _ in self._kept[0].parts]
        examples: list[Any] = []
        for chunk in self._kept:
            stop = min(chunk.size, chunk.used + size)
            for piece, part in zip(pieces, chunk.parts, strict=True):
                piece.append(
                    part[chunk.used:stop] if type(part) is numpy.ndarray
                    else rows_between(part, chunk.used, stop))
            if chunk.examples is not None and chunk.used < stop:
                found, = chunk.examples
                examples.append(found and found.rows(slice(chunk.used, stop)))
            size -= stop - chunk.used
            chunk.used = stop
        self._kept = tuple([
            chunk for chunk in self._kept if chunk.used < chunk.size])
        if self._asked is not None:
            self._asked.last = joined(examples)
        return tuple([join(piece) for piece in pieces])

    def order_items(self, inputs: Sequence[EpochOrder], begun: StageEpoch,
                    ) -> EpochOrder:
        """Return the order of an epoch."""
        return row_order(
            inputs[0], begun.requests(self.iteration_scheme))

    def num_items(self) -> None:
        """Return the number of items of an epoch, None if it is not known."""
        # The stream may end before the scheme does.
        return


def as_size(stage: StreamLike, request: Any) -> int:
    """Check a request for a number of examples, and return the number."""
    try:
        size = operator.index(request)
    except TypeError:
        size = 0
    if size < 1 or isinstance(request, (bool, numpy.bool_)):
        raise ValueError(
            f'{type(stage).__name__} needs a positive number of examples as '
            f'request, got {request!r}: use a BatchSizeScheme such as '
            'ConstantScheme') from None
    return size


def join_batches(batches: Iterable[Batch], sources: Sequence[str]) -> Batch:
    """Return several batches as one new batch."""
    return tuple([join(list(pieces)) for pieces in zip(
        *[batch_rows(batch, sources)[0] for batch in batches], strict=True)])


def join(pieces: list[Any]) -> Any:
    """Return parts of batches as one new array, or sparse batch."""
    if all(isinstance(piece, numpy.ndarray) for piece in pieces) and len(
            {piece.shape[1:] for piece in pieces}) == 1:
        joined = concatenated(pieces)
        return map_elements(_copied, joined) if joined.dtype == object \
            else joined
    if all(map(is_sparse, pieces)):
        return stack_rows(pieces)
    return as_batch([
        _copied(example) for piece in pieces
        for example in iterate_rows(piece)])


def _copied(example: object) -> object:
    return example.copy() if isinstance(example, numpy.ndarray) else example
