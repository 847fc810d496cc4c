"""Stages that add noise, which depends only on the seed, the epoch, and the
batch or the example."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias, Unpack

import numpy
from numpy.typing import ArrayLike, NDArray

from fuel.transformers.base import ALL
from fuel.transformers import SourcewiseTransformer
from fuel.transformers.options import NoiseOptions
from fuel.transformers.ragged import map_elements
from fuel.transformers.seeded import SeededTransformer
from fuel.typing import StreamLike
from fuel.utils.masked import (
    as_kept, is_masked, mask_of, with_mask, without_hidden)

__all__ = ['Dropout', 'GaussianNoise', 'SaltAndPepper', 'UniformNoise']

# Calls a method of a generator, by its name, for an array of a type that has
# the shape of the data.
Draw: TypeAlias = Callable[[str, Any], NDArray[Any]]


class NoiseStage(SeededTransformer, SourcewiseTransformer):
    """A stage that changes the numbers of its sources at random.

    Subclasses implement ``_apply(array, draw)``, where ``draw('random',
    dtype)`` returns numbers of a type, in the shape of the array, that the
    method ``random`` of a generator has drawn.
    """

    takes_integers = False
    takes_sparse = False
    keeps_rows = True
    keeps = ALL

    def __init__(self, data_stream: StreamLike,
                 **kwargs: Unpack[NoiseOptions]) -> None:
        super().__init__(
            data_stream, data_stream.produces_examples, **kwargs)

    def transform_source_example(self, source_example: ArrayLike,
                                 source_name: str) -> Any:
        """Return an example with noise."""
        return self._transform(source_example, self.generator(
            self._place_of(source_name)))

    def _place_of(self, source: str) -> int:
        # Each source has noise of its own.
        return list(self.data_stream.sources).index(source)

    def transform_source_batch(self, source_batch: ArrayLike,
                               source_name: str) -> Any:
        """Return a batch with noise."""
        place = self._place_of(source_name)
        batch = _as_data(source_batch)
        if isinstance(batch, list) or (batch.dtype == object and batch.ndim):
            out = batch.copy()
            for row, generator in enumerate(self.generators(
                    len(batch), place)):
                out[row] = self._transform(batch[row], generator)
            return out

        def draw(method: str, dtype: Any) -> NDArray[Any]:
            if not self._by_example:
                drawn: NDArray[Any] = self.draw_rows(
                    len(batch), lambda generator, count: getattr(
                        generator, method)((count, *batch.shape[1:]), dtype),
                    place)
                return drawn
            out = numpy.empty(batch.shape, dtype)
            # With an axis more, so that a single number is an array too.
            for row, generator in zip(
                    out[:, numpy.newaxis],
                    self.generators(len(batch), place), strict=True):
                getattr(generator, method)(dtype=dtype, out=row)
            return out

        return self._checked(batch, draw)

    def _transform(self, data: object,
                   generator: numpy.random.Generator) -> Any:
        array = _as_data(data)
        if isinstance(array, list) or array.dtype == object:
            return map_elements(
                lambda element: self._transform(element, generator), array)
        return self._checked(
            array, lambda method, dtype: getattr(generator, method)(
                array.shape, dtype))

    def _checked(self, array: NDArray[Any], draw: Draw) -> Any:
        kinds = 'fiub' if self.takes_integers else 'f'
        if array.dtype.kind not in kinds:
            raise ValueError(
                f'{type(self).__name__} needs floating-point numbers'
                f'{" or integers" * self.takes_integers}, got '
                f'{array.dtype}: put Cast before this stage')
        if is_masked(array):
            return with_mask(
                self._checked(without_hidden(array), draw), mask_of(array),
                array)
        # A single number stays a single number.
        return self._apply(array, draw)[()]

    def _apply(self, array: NDArray[Any], draw: Draw) -> Any:
        raise NotImplementedError


def _as_data(data: object) -> Any:
    """Return data as an array, or as a list if that holds arrays."""
    if isinstance(data, list) and any(
            isinstance(element, numpy.ndarray) for element in data):
        return data
    return as_kept(data)


class GaussianNoise(NoiseStage):
    """Adds normally distributed noise.

    Parameters
    ----------
    deviation : float
        The standard deviation.
    seed, draws, which_sources, iteration_scheme, axis_labels
        See :mod:`fuel.transformers`.

    Raises
    ------
    ValueError
        If `deviation` is negative; when data are requested, if they are not
        floating-point numbers.

    Notes
    -----
    Data keep their type. The noise depends only on the seed, the epoch, and
    the number of the batch or, with ``draws='example'``, the example; each
    source has noise of its own.

    Examples
    --------
    >>> import numpy
    >>> from fuel.datasets import IterableDataset
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IterableDataset([numpy.zeros(10000)]))
    >>> noisy, = next(GaussianNoise(stream, .5).get_epoch_iterator())
    >>> round(float(noisy.std()), 1)
    0.5
    """

    def __init__(self, data_stream: StreamLike, deviation: float,
                 **kwargs: Unpack[NoiseOptions]) -> None:
        if not 0 <= deviation < math.inf:
            raise ValueError('deviation must be finite and not negative, got '
                             f'{deviation!r}')
        self.deviation = float(deviation)
        super().__init__(data_stream, **kwargs)

    def _apply(self, array: NDArray[Any], draw: Draw) -> Any:
        noise = draw('standard_normal', _draw_type(array.dtype))
        noise *= noise.dtype.type(self.deviation)
        return (array + noise).astype(array.dtype, copy=False)


class UniformNoise(NoiseStage):
    """Adds uniformly distributed noise.

    Parameters
    ----------
    low, high : float
        The noise is from `low` to below `high`.
    seed, draws, which_sources, iteration_scheme, axis_labels
        See :mod:`fuel.transformers`.

    Raises
    ------
    ValueError
        If `low` is above `high`; when data are requested, if they are not
        floating-point numbers.

    Examples
    --------
    >>> import numpy
    >>> from fuel.datasets import IterableDataset
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IterableDataset([numpy.zeros(10000)]))
    >>> noisy, = next(UniformNoise(stream, -1, 1).get_epoch_iterator())
    >>> bool(-1 <= noisy.min() < -.9 < .9 < noisy.max() < 1)
    True
    """

    def __init__(self, data_stream: StreamLike, low: float, high: float,
                 **kwargs: Unpack[NoiseOptions]) -> None:
        if not -math.inf < low <= high < math.inf:
            raise ValueError('low and high must be finite, and low not above '
                             f'high, got {low!r} and {high!r}')
        self.low, self.high = float(low), float(high)
        super().__init__(data_stream, **kwargs)

    def _apply(self, array: NDArray[Any], draw: Draw) -> Any:
        noise = draw('random', _draw_type(array.dtype))
        noise *= noise.dtype.type(self.high - self.low)
        noise += noise.dtype.type(self.low)
        return (array + noise).astype(array.dtype, copy=False)


class Dropout(NoiseStage):
    """Sets numbers to zero at random, and scales up the others.

    Parameters
    ----------
    probability : float
        Probability that a number becomes zero; below 1.
    rescale : bool, optional
        Whether to divide the other numbers by ``1 - probability``, so that
        means do not change. Defaults to True.
    seed, draws, which_sources, iteration_scheme, axis_labels
        See :mod:`fuel.transformers`.

    Raises
    ------
    ValueError
        If `probability` is not from 0 to below 1; when data are requested,
        if they are not floating-point numbers.

    Examples
    --------
    >>> import numpy
    >>> from fuel.datasets import IterableDataset
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IterableDataset([numpy.ones(10000)]))
    >>> noisy, = next(Dropout(stream, .5).get_epoch_iterator())
    >>> numpy.unique(noisy), round(float(noisy.mean()), 1)
    (array([0., 2.]), 1.0)
    """

    def __init__(self, data_stream: StreamLike, probability: float,
                 rescale: bool = True, **kwargs: Unpack[NoiseOptions]) -> None:
        if not 0 <= probability < 1:
            raise ValueError('probability must be from 0 to below 1, got '
                             f'{probability!r}')
        self.probability = float(probability)
        self.rescale = rescale
        super().__init__(data_stream, **kwargs)

    def _apply(self, array: NDArray[Any], draw: Draw) -> Any:
        dropped = draw('random', numpy.float32) < self.probability
        factor = 1 / (1 - self.probability) if self.rescale else 1.
        out = numpy.multiply(array, array.dtype.type(factor))
        return numpy.where(dropped, array.dtype.type(0), out)


class SaltAndPepper(NoiseStage):
    """Sets numbers to an extreme, low or high, at random.

    Parameters
    ----------
    probability : float
        Probability that a number is changed; half of the changed numbers
        become `low`.
    low, high : float, optional
        The extremes. `low` defaults to 0; `high` defaults to the largest
        number of the type for integers, and to 1 for floating-point numbers.
    seed, draws, which_sources, iteration_scheme, axis_labels
        See :mod:`fuel.transformers`.

    Raises
    ------
    ValueError
        If `probability` is not from 0 to 1; when data are requested, if they
        are not numbers, or cannot hold `low` or `high`.

    Examples
    --------
    >>> import numpy
    >>> from fuel.datasets import IterableDataset
    >>> from fuel.streams import DataStream
    >>> image = numpy.full(10000, 100, dtype='uint8')
    >>> stream = DataStream(IterableDataset([image]))
    >>> noisy, = next(SaltAndPepper(stream, .2).get_epoch_iterator())
    >>> numpy.unique(noisy)
    array([  0, 100, 255], dtype=uint8)
    """

    takes_integers = True

    def __init__(self, data_stream: StreamLike, probability: float,
                 low: float | None = None, high: float | None = None,
                 **kwargs: Unpack[NoiseOptions]) -> None:
        if not 0 <= probability <= 1:
            raise ValueError('probability must be from 0 to 1, got '
                             f'{probability!r}')
        self.probability = float(probability)
        self.low, self.high = low, high
        super().__init__(data_stream, **kwargs)

    def _apply(self, array: NDArray[Any], draw: Draw) -> Any:
        drawn = draw('random', numpy.float32)
        low, high = _extremes(array.dtype, self.low, self.high)
        out = numpy.where(drawn < self.probability / 2, low, array)
        is_high = (drawn >= self.probability / 2) & (
            drawn < self.probability)
        return numpy.where(is_high, high, out)


def _draw_type(dtype: numpy.dtype[Any]) -> Any:
    """Return the type in which to draw noise for data of a type."""
    return numpy.float64 if dtype.itemsize > 4 else numpy.float32


def _extremes(dtype: numpy.dtype[Any], low: float | None,
              high: float | None) -> tuple[Any, Any]:
    """Check the two extremes, and return them in the type of the data."""
    if low is None:
        low = 0
    if high is None:
        high = numpy.iinfo(dtype).max if dtype.kind in 'iu' else 1
    limits = (numpy.iinfo(dtype) if dtype.kind in 'iu' else
              numpy.finfo(dtype) if dtype.kind == 'f' else None)
    for name, value in (('low', low), ('high', high)):
        if limits is not None and not limits.min <= value <= limits.max:
            raise ValueError(f'{name}={value!r} does not fit the type of the '
                             f'data, {dtype}')
    return dtype.type(low), dtype.type(high)
