"""A stage that makes other batches of the batches of its stream."""
from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Unpack

import numpy

from fuel.describe.source_types import SourceTypes, types_of
from fuel.epochs.epoch import Epoch
from fuel.epochs.state import Unavailable, position_of
from fuel.schemes import BatchSizeScheme, ConstantScheme
from fuel.schemes.iteration_scheme import batch_size_of
from fuel.sharding.pipeline import can_seek_rows
from fuel.streams.arguments import LabelOptions
from fuel.transformers.base import Transformer, check_count
from fuel.transformers.plans import RowPlan
from fuel.transformers.ragged import as_batch, map_elements
from fuel.transformers.source_names import labels_of
from fuel.typing import Batch, Request, SchemeLike, StreamLike
from fuel.utils.checks import not_negative
from fuel.utils.masked import concatenated
from fuel.utils.sparse import (
    count_rows, is_sparse, iterate_rows, row_of, rows_between, stack_rows)


class PartialBatch:
    """A batch of the child, and how much of it was delivered.

    `parts`: the data of each source, as arrays, lists or sparse batches.
    `length`, `used`: numbers of examples.
    """

    def __init__(self, batch: Iterable[Any], sources: Sequence[str],
                 position: object) -> None:
        batch = tuple(batch)
        check_count(batch, sources)
        names = (*sources, *range(len(sources), len(batch)))
        self.parts = [_as_rows(part, name) for part, name
                      in zip(batch, names, strict=True)]
        lengths = [count_rows(part) for part in self.parts]
        if len(set(lengths)) > 1:
            raise ValueError(
                'all sources of a batch must have the same number of '
                'examples, got ' + ', '.join(
                    f'{name}: {length}' for name, length
                    in zip(names, lengths, strict=True)))
        self.length = lengths[0] if lengths else 0
        self.used = 0
        self.position = position

    def __iter__(self) -> PartialBatch:
        return self

    def __next__(self) -> tuple[Any, ...]:
        """Return the next example, which does not keep the batch alive."""
        if self.used >= self.length:
            raise StopIteration
        example = [part[self.used] if type(part) is numpy.ndarray
                   else row_of(part, self.used) for part in self.parts]
        self.used += 1
        return tuple([part.copy() if isinstance(part, numpy.ndarray)
                      else part for part in example])

    def is_partial(self) -> bool:
        """Return whether examples are left."""
        return self.used < self.length

    def skip(self, used: int) -> None:
        """Skip examples that were delivered before."""
        if not_negative('used', used) > self.length:
            raise ValueError(
                f'{used} examples of a batch were used when the state was '
                f'saved, but now it has only {self.length}: the data have '
                'changed')
        self.used = used


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


class Cache(Transformer):
    """Makes batches of other sizes than those of its stream.

    It reads batches, typically large ones, keeps them, and returns as many
    examples as requested until all are used up. Nothing is left over at the
    end of an epoch: the last batch may be smaller than requested.

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
        returned in this epoch. It is made when it is looked at, so changing
        it has no effect; assigning to it has.

    Raises
    ------
    ValueError
        If `iteration_scheme` is no :class:`~fuel.schemes.BatchSizeScheme`.

    Notes
    -----
    Batches are read until a request is met, never more. Where the shapes of
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

    epoch_attributes = (*Transformer.epoch_attributes, '_chunks')
    _chunks: tuple[PartialBatch, ...] = ()

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
        """For each source the examples to come (list of lists)."""
        return [[example for chunk in self._chunks
                 for example in iterate_rows(rows_between(
                     chunk.parts[place], chunk.used, chunk.length))]
                for place in range(len(self._chunks[0].parts)
                                   if self._chunks else len(self.sources))]

    @cache.setter
    def cache(self, value: list[list[Any]]) -> None:
        chunk = PartialBatch(value, self.sources, Unavailable(TypeError(
            'the position of a Cache whose cache was assigned cannot be '
            'saved as plain data: pickle the epoch iterator instead')))
        self._chunks = (chunk,) if chunk.length else ()

    def start_epoch(self) -> None:
        """Set the attributes that belong to a new epoch."""
        self._chunks = ()
        super().start_epoch()

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
            How many examples to return.

        Returns
        -------
        tuple of numpy.ndarray
            Of fewer examples if there are no more.

        Raises
        ------
        ValueError
            If `request` is not a positive integer.
        StopIteration
            If there are no examples left.
        """
        size = as_size(self, request)
        missing = size - sum(
            chunk.length - chunk.used for chunk in self._chunks)
        while missing > 0:
            try:
                missing -= self._fetch()
            except StopIteration:
                if not self._chunks:
                    raise
                break
        return self._take(size)

    def _fetch(self) -> int:
        """Read a batch, and return how many examples it has."""
        position = position_of(self.child_epoch_iterator)
        chunk = PartialBatch(self._pull(), self.data_stream.sources, position)
        if chunk.length:
            self._chunks += (chunk,)
        return chunk.length

    def _take(self, size: int) -> tuple[Any, ...]:
        """Return the next examples, as many as there are up to `size`."""
        pieces: list[list[Any]] = [[] for _ in self._chunks[0].parts]
        for chunk in self._chunks:
            stop = min(chunk.length, chunk.used + size)
            for piece, part in zip(pieces, chunk.parts, strict=True):
                piece.append(
                    part[chunk.used:stop] if type(part) is numpy.ndarray
                    else rows_between(part, chunk.used, stop))
            size -= stop - chunk.used
            chunk.used = stop
        self._chunks = tuple([
            chunk for chunk in self._chunks if chunk.is_partial()])
        return tuple([join(piece) for piece in pieces])

    @property
    def can_plan(self) -> bool:
        """Whether any batch can be made without those before it (bool)."""
        return (type(self.iteration_scheme) is ConstantScheme
                and can_seek_rows(self.data_stream))

    def open_plan(self, epoch: Epoch) -> RowPlan:
        """Return what makes any batch of an epoch."""
        requests: Any = epoch.request_iterator
        return RowPlan(
            epoch.attributes['child_epoch_iterator'], requests, 0,
            partial(join_batches, sources=self.data_stream.sources))

    def num_items(self) -> None:
        """Return how many items an epoch has, None if it is not known."""
        # The stream may end before the scheme does.
        return

    def get_leftover(self) -> Any:
        """Return how many examples of the child's batch were returned."""
        return {'used': self._chunks[0].used} if self._chunks else None

    def set_leftover(self, leftover: dict[str, Any]) -> None:
        """Read the child's batch again, and leave out what was returned."""
        self._fetch()
        self._chunks[0].skip(leftover['used'])

    def get_child_position(self) -> Any:
        """Return where the child stood before the batch kept longest."""
        return self._chunks[0].position if self._chunks else None


def as_size(stage: StreamLike, request: Any) -> int:
    """Return a request for a number of examples, checked."""
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
    chunks = [PartialBatch(batch, sources, None) for batch in batches]
    return tuple([join(list(pieces)) for pieces in zip(
        *[chunk.parts for chunk in chunks], strict=True)])


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
