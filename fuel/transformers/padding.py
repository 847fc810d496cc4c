"""Stages that pad sequences, and that mark the examples that ranks repeat."""
from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack

from numpy.typing import DTypeLike

from fuel.describe.source_types import SourceType, SourceTypes, types_of
from fuel.epochs.pipeline import child_streams
from fuel.epochs.stage import stage_of
from fuel.kernels import pad_sequences
from fuel.sharding.planned import padding_of
from fuel.streams.arguments import StreamOptions
from fuel.transformers.base import Transformer, check_count
from fuel.transformers.dtypes import as_dtype
from fuel.transformers.source_names import (
    as_labels, as_names, as_tuple_of_names, check_known, labels_of)
from fuel.typing import Batch, StreamLike
from fuel.utils.sparse import count_rows, require_dense


class Padding(Transformer):
    """Pads the sequences of a batch with zeros, and makes masks.

    Each padded source is followed by its mask, an additional source: ``x`` is
    followed by ``x_mask``, for example. A mask is one where there are data,
    and zero where there is padding.

    Parameters
    ----------
    data_stream : AbstractDataStream
        Produces batches.
    mask_sources : tuple of str or str, optional
        The sources to pad. A bare string is the name of one source. Names
        that `data_stream` does not have are ignored with a warning. Defaults
        to all.
    mask_dtype : dtype, optional
        Type of the masks. Defaults to ``'floatX'``, the value of
        ``fuel.config.floatX`` when the stage is built.
    iteration_scheme, axis_labels
        See :class:`~fuel.transformers.Transformer`. The axis labels default
        to those of `data_stream`; a mask has the first two labels of its
        source.

    Attributes
    ----------
    mask_sources : tuple of str
    mask_dtype : numpy.dtype

    Raises
    ------
    ValueError
        If `data_stream` produces examples.

    Notes
    -----
    Sequences may be lists or arrays, and may be empty. All their dimensions
    but the first, the length, must be equal. The type of a padded batch can
    hold all of its sequences. If ranks share the rows of batches, each rank
    pads its rows to the longest of its own sequences; see :doc:`/ranks`.

    Examples
    --------
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.schemes import SequentialScheme
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IndexableDataset({'x': [[1, 2], [3]]}),
    ...                     iteration_scheme=SequentialScheme(2, 2))
    >>> padded = Padding(stream)
    >>> padded.sources
    ('x', 'x_mask')
    >>> next(padded.get_epoch_iterator())
    (array([[1, 2],
           [3, 0]]), array([[1., 1.],
           [1., 0.]]))
    """

    pure = True
    takes_masked = False
    # The rows of a rank may need fewer zeros than the whole batch.
    keeps_rows = True

    def __init__(self, data_stream: StreamLike,
                 mask_sources: Sequence[str] | str | None = None,
                 mask_dtype: DTypeLike | None = None,
                 **kwargs: Unpack[StreamOptions]) -> None:
        if data_stream.produces_examples:
            raise ValueError(
                'Padding needs batches, but its data stream '
                f'({type(data_stream).__name__}) produces examples: put '
                'Batch between them')
        if mask_sources is None:
            mask_sources = data_stream.sources
        else:
            mask_sources = as_names(
                'mask_sources', as_tuple_of_names(mask_sources))
            _warn_of_unknown(mask_sources, data_stream.sources)
        labels = labels_of(data_stream)
        if labels is not None:
            kwargs.setdefault('axis_labels', {**labels, **{
                source + '_mask': None if labels.get(source) is None
                else (as_labels(labels[source]) or ())[:2]
                for source in mask_sources
                if source in data_stream.sources}})
        super().__init__(data_stream, produces_examples=False, **kwargs)
        self.mask_sources = mask_sources
        self.mask_dtype = as_dtype(
            'floatX' if mask_dtype is None else mask_dtype)

    def _get_sources(self) -> tuple[str, ...]:
        return tuple([
            name for source in self.data_stream.sources
            for name in ((source, source + '_mask')
                         if source in self.mask_sources else (source,))])

    def known_types(self) -> SourceTypes:
        """Return the types of padded data and of masks."""
        found = dict(types_of(self.data_stream))
        for source in self.mask_sources:
            found.pop(source, None)
            found[f'{source}_mask'] = SourceType(
                self.mask_dtype, (None, None))
        return found

    def transform_batch(self, batch: Batch) -> tuple[Any, ...]:
        """Return a batch with sources padded, each followed by its mask."""
        sources = self.data_stream.sources
        check_count(batch, sources)
        data: list[Any] = []
        for source, part in zip(sources, batch, strict=False):
            if source not in self.mask_sources:
                data.append(part)
                continue
            require_dense(part, source, type(self).__name__)
            try:
                data.extend(pad_sequences(part, self.mask_dtype))
            except Exception as error:
                error.add_note(f'in source {source!r}')
                raise
        return tuple(data)


def _warn_of_unknown(names: Iterable[str], sources: Iterable[str]) -> None:
    """Warn of names of sources that a stream does not have."""
    try:
        check_known('mask_sources', names, sources)
    except ValueError as error:
        warnings.warn(f'{error}; it is ignored', stacklevel=3)


class MarkPadding(Transformer):
    """Marks the examples that a rank repeats, in a source of booleans.

    If ranks share an order with ``uneven='pad'``, some ranks repeat examples
    from the start of an epoch at its end. Leave the marked examples out of
    losses and scores.

    Parameters
    ----------
    data_stream : AbstractDataStream
    source : str, optional
        Name of the new source, which comes last: a boolean for each example
        of a batch, True if it is a repetition. Defaults to ``'is_padding'``.
    iteration_scheme, axis_labels
        See :class:`~fuel.transformers.Transformer`. The axis labels default
        to those of `data_stream`.

    Raises
    ------
    ValueError
        If there is a source of that name, if an upstream stage prefetches, or
        if an upstream stage that is not one-to-one reads a rank's share.

    Examples
    --------
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IndexableDataset([1, 2, 3]), batch_size=1)
    >>> marked = MarkPadding(stream.shard(1, 2, uneven='pad'))
    >>> list(marked.get_epoch_iterator())
    [([2], array([False])), ([1], array([ True]))]
    """

    __fuel_marks__ = True
    one_to_one = True
    keeps_rows = True

    def __init__(self, data_stream: StreamLike, source: str = 'is_padding',
                 **kwargs: Unpack[StreamOptions]) -> None:
        if source in data_stream.sources:
            raise ValueError(
                f'source must be a new name, but {source!r} is one of '
                f'{tuple(data_stream.sources)}')
        _check_process(data_stream)
        labels: Mapping[str, Any] | None = labels_of(data_stream)
        if labels is not None:
            kwargs.setdefault('axis_labels', {
                **labels, source: (() if data_stream.produces_examples
                                   else ('batch',))})
        super().__init__(data_stream, data_stream.produces_examples,
                         **kwargs)
        self.source = source

    def _get_sources(self) -> tuple[str, ...]:
        return (*self.data_stream.sources, self.source)

    def transform_example(self, example: Batch) -> Batch:
        """Return an example with its mark."""
        return (*example, padding_of(self.child_epoch_iterator, None))

    def transform_batch(self, batch: Batch) -> Batch:
        """Return a batch with a mark for each example."""
        return (*batch, padding_of(
            self.child_epoch_iterator, count_rows(batch[0])))


def _check_process(stream: StreamLike) -> None:
    stage = stage_of(stream)
    if stage.passes_items_on:
        raise ValueError(
            f'MarkPadding cannot see which examples {type(stream).__name__} '
            'repeats, since that prefetches: put it before that stage')
    if stage.depends_on_data and stage.shard_of_inputs is not None:
        raise ValueError(
            f'MarkPadding cannot see which examples {type(stream).__name__} '
            'makes of those that are repeated: put it before that stage')
    for child in child_streams(stream):
        _check_process(child)
