"""Imputation: replace missing values by values fitted to training data."""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Unpack

import numpy
from numpy.typing import DTypeLike, NDArray

from fuel.epochs.epoch import Epoch
from fuel.streams.arguments import StreamOptions
from fuel.transformers.base import Transformation
from fuel.transformers.column_statistics import (
    Mean, Median, MostFrequent, missing_in)
from fuel.transformers.fitted import (
    FittedParameters, FittedStage, batches_of_sources, chosen_source,
    mask_name)
from fuel.transformers.ragged import as_matrix
from fuel.transformers.source_names import check_known
from fuel.typing import Batch, StreamLike
from fuel.utils.masked import as_kept, is_masked, without_hidden
from fuel.utils.overrides import ITEM_METHODS, calls

__all__ = ['Impute', 'ImputeParameters', 'fit_impute']

STRATEGIES = ('mean', 'median', 'most-frequent')
CONSTANT = 'constant'


@dataclass(frozen=True)
class ImputeParameters(FittedParameters):
    """Replacements of missing values, which :func:`fit_impute` returns.

    Attributes
    ----------
    source : str
        The source that the replacements were fitted to.
    strategy : str
        The method of fitting; 'constant' if a value was given.
    fill : tuple of (float, int, bool or str)
        The replacements, in the order of the elements of an array of `shape`.
    shape : tuple of int
        Shape of an example; empty if there is one value for all elements.
    mask : str or None
        The source that is false where a value is missing.
    num_examples, num_missing : int
        Number of examples, and number of elements without a value.
    """

    _kind = 'imputation'
    strategy: str
    fill: tuple[Any, ...]
    shape: tuple[int, ...]
    mask: str | None
    num_examples: int
    num_missing: int

    def __post_init__(self) -> None:
        """Raise ValueError unless `fill` has finite numbers or texts, as many
        as fit `shape`."""
        if len(self.fill) != math.prod(self.shape) or not all(
                isinstance(value, (str, bool, int))
                or (isinstance(value, float) and math.isfinite(value))
                for value in self.fill):
            raise ValueError(
                f'expected {math.prod(self.shape)} finite numbers or texts '
                f'for the shape {self.shape}, got {self.fill!r:.200}')

    def fill_in(self, batch: NDArray[Any], there: Any = None,
                dtype: DTypeLike | None = None) -> NDArray[Any]:
        """Return a batch in which missing values are replaced.

        Parameters
        ----------
        batch : numpy.ndarray
        there : numpy.ndarray, optional
            The mask of the batch, false where a value is missing.
        dtype : dtype, optional
            Type of the result. Defaults to the type of the batch.

        Returns
        -------
        numpy.ndarray
            The batch itself if nothing is missing.
        """
        shape = self.shape
        if shape and batch.shape[1:] != shape:
            raise ValueError(
                f'imputation was fitted to examples of the shape {shape}, '
                f'but a batch of {batch.dtype} has the shape {batch.shape}')
        _refuse_times(self.source, batch)
        missing = missing_in(batch, there)
        if is_masked(batch):
            batch = without_hidden(batch)
        if dtype is not None:
            if batch.dtype.kind == 'f':
                # Integers have no NaN.
                batch = numpy.where(missing, batch.dtype.type(0), batch)
            batch = batch.astype(dtype)
        if not missing.any():
            return batch
        return numpy.where(missing, self._fill_of(batch), batch)

    def _fill_of(self, batch: NDArray[Any]) -> NDArray[Any]:
        """Return the replacements in the type of a batch."""
        values: list[Any] = list(self.fill)
        if batch.dtype.kind == 'S' or (batch.dtype.hasobject and any(
                isinstance(value, bytes) for value in batch.flat)):
            values = [value.encode('utf-8') if isinstance(value, str)
                      else value for value in values]
        is_number = batch.dtype.kind in 'biufc'
        # NumPy would convert a list of large and small integers to float64.
        fill = numpy.array(values, object if (
            is_number or batch.dtype.hasobject) else None)
        if is_number:
            given = fill
            try:
                with numpy.errstate(all='ignore'):
                    fill = given.astype(batch.dtype)
            except OverflowError:
                are_held = False
            else:
                are_held = bool((
                    numpy.isfinite(fill) if batch.dtype.kind in 'fc'
                    else fill == given).all())
            if not are_held:
                raise ValueError(
                    f'source {self.source!r} has {batch.dtype}, '
                    f'which cannot hold the values {values!r:.80} that '
                    f"replace missing ones: pass dtype='float64', or fit "
                    f'another strategy')
        return fill.reshape(self.shape)

    @classmethod
    def _build(cls, found: Mapping[str, Any]) -> ImputeParameters:
        return cls(
            str(found['source']), str(found['strategy']),
            tuple(found['fill']), tuple(map(int, found['shape'])),
            None if found['mask'] is None else str(found['mask']),
            int(found['num_examples']), int(found['num_missing']))


def _refuse_times(source: str, batch: NDArray[Any]) -> None:
    """Raise an error if a source has dates or times."""
    if batch.dtype.kind in 'mM':
        raise ValueError(
            f'source {source!r} has {batch.dtype}, but only missing numbers, '
            f'truth values and text can be replaced: convert the source to '
            f'numbers before, and NaT to NaN, with a function in Mapping')


def fit_impute(
        data_stream: StreamLike, source: str | None = None,
        strategy: str = 'mean', *, value: float | str | None = None,
        mask: str | None = None,
        which_sources: Sequence[str] | str | None = None,
        ) -> ImputeParameters:
    """Fit the replacements of missing values in one epoch of a stream.

    Missing values are NaN, None, empty text, the values that the mask of a
    masked array hides, and the values for which the source `mask` is false.

    Parameters
    ----------
    data_stream : AbstractDataStream
        The training data: batches or examples, all of one shape.
    source : str, optional
        The source to fit to. Defaults to the first.
    strategy : {'mean', 'median', 'most-frequent'}, optional
        The replacement of missing values of each element of an example: the
        mean, the median or the most frequent of the values that are not
        missing. If several values are equally frequent, it is the least of
        them. With 'median' all numbers are kept in memory, and with
        'most-frequent' each distinct value is kept. Text has neither mean nor
        median. Defaults to 'mean'.
    value : float, int or str, optional
        One replacement for all elements, instead of a strategy. Then the
        stream is not read.
    mask : str, optional
        A source that is false or 0 where `source` has no value. Integers and
        booleans need a mask, since none of their values means missing.
        Defaults to ``NAME_mask`` of the source ``NAME``, such as
        ``'age_mask'``, if the stream has it.
    which_sources : str or tuple of str, optional
        Another name of the argument `source`: it names one source.

    Returns
    -------
    ImputeParameters

    Raises
    ------
    ValueError
        If an element has no value in any example, if examples differ in
        shape, if the source has dates, or if it has no numbers and the
        strategy is a mean or a median.

    Examples
    --------
    >>> import numpy
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.streams import DataStream
    >>> rows = numpy.array([[1., numpy.nan], [3., 10.], [numpy.nan, 30.]])
    >>> stream = DataStream(IndexableDataset({'x': rows}), batch_size=3)
    >>> parameters = fit_impute(stream)
    >>> parameters.fill, parameters.num_missing
    ((2.0, 20.0), 2)
    >>> next(iter(Impute(stream, parameters)))[0].tolist()
    [[1.0, 20.0], [3.0, 10.0], [2.0, 30.0]]
    """
    source = chosen_source(source, which_sources, data_stream.sources[0])
    if mask is None and mask_name(source) in data_stream.sources:
        mask = mask_name(source)
    sources = (source,) if mask is None else (source, mask)
    check_known('source', (source,), data_stream.sources)
    check_known('mask', sources[1:], data_stream.sources)
    if value is not None:
        return ImputeParameters(source, CONSTANT, (value,), (), mask, 0, 0)
    if strategy not in STRATEGIES:
        raise ValueError(
            f'strategy must be one of {STRATEGIES}, got {strategy!r}; a '
            f'value of your own is given as value=...')
    statistic = {'mean': Mean, 'median': Median}.get(
        strategy, MostFrequent)()
    count, num_missing, shape = 0, 0, None
    for part, *masks in batches_of_sources(
            data_stream, sources, 'Fitting imputation'):
        batch = as_kept(part)
        if shape is not None and batch.shape[1:] != shape:
            raise ValueError(
                f'source {source!r} must have examples of one shape to be '
                f'imputed: the first has the shape {shape}, a later one '
                f'{batch.shape[1:]}')
        shape = batch.shape[1:]
        _refuse_times(source, batch)
        missing = missing_in(batch, *masks)
        if statistic.is_numeric and batch.dtype.kind not in 'iuf':
            raise ValueError(
                f'source {source!r} must have numbers for a {strategy}, but '
                f"has {batch.dtype}: use strategy='most-frequent' or value=")
        if is_masked(batch):
            batch = without_hidden(batch)
        statistic.add(as_matrix(batch), as_matrix(missing))
        count += len(batch)
        num_missing += int(missing.sum())
    if shape is None:
        raise ValueError(f'the stream has no examples of {source!r} to learn '
                         'values from')
    fill = statistic.result()
    for place, found in enumerate(fill):
        if found is None or (
                isinstance(found, float) and not math.isfinite(found)):
            element = numpy.unravel_index(place, shape)
            where = f' at {[*map(int, element)]}' if shape else ''
            raise ValueError(
                f'source {source!r} has no value{where} in any of {count} '
                f'examples, or infinite ones: leave it out, or give a value '
                f'with value=...')
    return ImputeParameters(
        source, strategy, tuple(fill), shape, mask, count, num_missing)


class Impute(FittedStage):
    """Replaces missing values by values that were fitted before.

    Parameters
    ----------
    data_stream : AbstractDataStream
    parameters : ImputeParameters or str
        From :func:`fit_impute`, or the file they were saved in.
    dtype : dtype, optional
        Type of the results. Defaults to None: the type of the data.
    which_sources : tuple of str, optional
        Defaults to the source that the parameters were fitted to.
    **kwargs
        See :class:`~fuel.transformers.SourcewiseTransformer`. The axis
        labels default to those of `data_stream`.

    Raises
    ------
    ValueError
        By the epoch iterator, if examples have another shape than at fitting,
        or if their type cannot hold a replacement. For example, an integer
        type cannot hold a mean of 0.5.

    Notes
    -----
    The source of a mask does not change, so that a model can know which
    values were missing. Masked arrays become plain arrays.
    """

    pure = True
    keeps_rows = True
    fills_missing = True
    _parameters_class = ImputeParameters
    _fit = 'fit_impute'

    def __init__(self, data_stream: StreamLike,
                 parameters: ImputeParameters | str | None = None,
                 dtype: DTypeLike | None = None,
                 which_sources: Sequence[str] | str | None = None,
                 **kwargs: Unpack[StreamOptions]) -> None:
        super().__init__(
            data_stream, parameters, dtype, which_sources, **kwargs)
        if self.parameters.mask is not None:
            check_known('mask', (self.parameters.mask,), data_stream.sources)

    def _transform_sources(self, data: Batch,
                           transform: Callable[..., Any]) -> Any:
        mask = self.parameters.mask
        if mask is not None:
            transform = partial(
                transform,
                there=data[list(self.data_stream.sources).index(mask)])
        return super()._transform_sources(data, transform)

    @calls(*ITEM_METHODS)
    def _transformation(self, epoch: Epoch) -> Transformation:
        if self.parameters.mask is None:
            return super()._transformation(epoch)
        return (type(self).transform_example if self.produces_examples
                else type(self).transform_batch)

    def transform_source_example(self, source_example: Any, source_name: str,
                                 there: Any = None) -> Any:
        """Return an example in which missing values are filled.

        `there`: the example of the mask.
        """
        is_text = source_example is None or isinstance(
            source_example, (str, bytes))
        batch: NDArray[Any] = numpy.empty(
            (1, *numpy.shape(source_example)), object if (
                is_text) else numpy.asarray(source_example).dtype)
        if is_masked(source_example):
            batch = source_example[numpy.newaxis]
        else:
            batch[0] = source_example
        return self._transform(batch, None if there is None else (
            as_kept(there)[numpy.newaxis]))[0]

    def transform_source_batch(self, source_batch: Any, source_name: str,
                               there: Any = None) -> Any:
        """Return a batch in which missing values are filled.

        `there`: the batch of the mask.
        """
        return self._transform(as_kept(source_batch), there)

    def _transform(self, batch: NDArray[Any],
                   there: Any = None) -> NDArray[Any]:
        filled: NDArray[Any] = self.parameters.fill_in(
            batch, there, self.dtype)
        return filled
