"""Scaling and shifting numbers, and the types of the results.

Numbers given as `scale` and `shift` count as Python's numbers: they do not
change the precision of the data. So

- floating (and complex) data keep their type,
- integers or booleans with a floating number give float64,
- integers or booleans with integers give int64,

and a result that does not fit raises OverflowError, with every version of
NumPy. Arrays given as `scale` or `shift` are broadcast, and follow NumPy's
rules for types.
"""
from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeAlias, TypeGuard, Unpack

import numpy
from numpy.typing import ArrayLike, DTypeLike, NDArray

from fuel.describe.source_types import SourceType
from fuel.epochs.ahead import TransformAsRead
from fuel.epochs.epoch import Epoch
from fuel.epochs.read_options import Conversion
from fuel.kernels.convert import scale_and_shift, scale_singles
from fuel.transformers.base import Transformation
from fuel.transformers.dtypes import as_dtype, cast
from fuel.transformers.options import SourcewiseOptions
from fuel.transformers.ragged import as_array, is_ragged, map_elements
from fuel.transformers.source_names import labels_of
from fuel.transformers.sourcewise import (AgnosticSourcewiseTransformer,
                                          transform_chosen)
from fuel.typing import Batch, StreamLike
from fuel.utils.masked import (
    is_masked, mask_of, masked_refusal, with_mask, without_hidden)
from fuel.utils.overrides import calls

FLOAT64 = numpy.dtype(numpy.float64)
INT64 = numpy.iinfo(numpy.int64)

#: A factor of the data, or a summand.
Operand: TypeAlias = 'int | float | complex | NDArray[Any]'
Integers: TypeAlias = 'int | NDArray[Any]'


class ScaleAndShift(AgnosticSourcewiseTransformer):
    """Multiplies sources by a number, then adds another.

    Parameters
    ----------
    shift : int or float
        The result is ``data * scale + shift``.
    dtype : dtype, optional
        Type of the results: anything that NumPy accepts as a dtype, or
        ``'floatX'`` for the value of ``config.floatX`` when the stage is
        built. The values are the same as with :class:`Cast` after this
        stage. Defaults to None: see below.
    which_sources, iteration_scheme, axis_labels
        See :mod:`fuel.transformers`.

    Raises
    ------
    TypeError
        If `scale` or `shift` is not a number or an array, or a source
        that is to be scaled does not hold numbers.

    Notes
    -----
    Without `dtype`, floating data keep their type. Integers become float64 if
    `scale` or `shift` is a float, else int64; a result that does not fit
    raises OverflowError. `dtype` chooses another type without an intermediate
    copy, and so does :class:`Cast` directly after this stage.

    `scale` and `shift` may also be arrays that broadcast with the data,
    such as one number for each feature; then types follow NumPy's rules. A
    list of examples of equal shape becomes one array. A ragged batch is
    scaled example by example: an array of objects stays an array of objects,
    and a list of arrays stays a list.

    Examples
    --------
    >>> import numpy
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.schemes import SequentialScheme
    >>> from fuel.streams import DataStream
    >>> pixels = numpy.array([0, 51, 255], dtype='uint8')
    >>> stream = DataStream(IndexableDataset(pixels),
    ...                     iteration_scheme=SequentialScheme(3, 3))
    >>> scaled = ScaleAndShift(stream, scale=1 / 255, shift=0)
    >>> next(scaled.get_epoch_iterator())
    (array([0. , 0.2, 1. ]),)
    >>> next(iter(ScaleAndShift(stream, 1 / 255, 0, dtype='float32')))
    (array([0. , 0.2, 1. ], dtype=float32),)
    """

    pure = True
    keeps_rows = True
    takes_sparse = False

    dtype: numpy.dtype[Any] | None = None

    def __init__(self, data_stream: StreamLike, scale: Operand, shift: Operand,
                 *, dtype: DTypeLike | None = None,
                 **kwargs: Unpack[SourcewiseOptions]) -> None:
        _as_operand('scale', scale)
        _as_operand('shift', shift)
        kwargs.setdefault('axis_labels', labels_of(data_stream))
        super().__init__(
            data_stream, data_stream.produces_examples, **kwargs)
        self.scale = scale
        self.shift = shift
        if dtype is not None:
            self.dtype = as_dtype(dtype)

    def type_after(self, known: SourceType,
                   source_name: str) -> SourceType | None:
        """Return the type that data have when they are scaled."""
        if self.dtype is not None:
            return known._replace(dtype=self.dtype)
        if known.dtype is None or known.dtype.kind not in 'biuf':
            return None
        if known.dtype.kind == 'f':
            return known
        return known._replace(dtype=numpy.dtype(
            numpy.int64 if self.is_integral() else FLOAT64))

    def transform_any_source(self, source_data: ArrayLike,
                             source_name: str) -> Any:
        """Return ``source_data * scale + shift``."""
        return self._scale(source_data, source_name, FLOAT64)

    def _scale(self, data: Any, source_name: str,
               dtype: numpy.dtype[Any]) -> Any:
        """Return data scaled; the result has `dtype` instead of float64."""
        scale, shift = self._operands()
        try:
            if self.dtype is None:
                return _apply(data, scale, shift, dtype)
            scaled = _apply(data, scale, shift, self.dtype if _is_plain(
                self.dtype) else FLOAT64)
            if isinstance(scaled, numpy.ndarray) and (
                    scaled.dtype == self.dtype):
                return scaled
            return (scaled.astype(self.dtype)
                    if isinstance(scaled, numpy.generic)
                    else cast(scaled, self.dtype))
        except TypeError as error:
            kind = as_array(data).dtype
            raise TypeError(
                f'{type(self).__name__} computes with numbers, but source '
                f'{source_name!r} has the dtype {kind} ({error}): name the '
                'sources to scale with which_sources=...') from error

    def is_integral(self) -> bool:
        """Return whether integers stay integers."""
        return all(map(_is_integral, self._operands()))

    def _operands(self) -> tuple[Any, Any]:
        return (_as_operand('scale', self.scale),
                _as_operand('shift', self.shift))

    @calls()
    def _transformation(self, epoch: Epoch) -> Transformation:
        sources, places = self._chosen_places()
        child = epoch.attributes['child_epoch_iterator']
        # Nothing may be scaled twice, but casting again changes nothing.
        wanted = {
            source: conversion for source, conversion
            in epoch.options.conversions.items() if conversion.scale is None}
        dtypes = {source: wanted.pop(source).dtype
                  for _, source in places if source in wanted}
        if self.dtype is not None:
            # A later Cast rounds values of this type, not the exact values.
            dtypes = {source: self.dtype for _, source in places
                      if _is_plain(self.dtype)}
        child.request_conversions({**wanted, **self._scaled(dtypes)})

        def bind() -> Transformation:
            converted = child.converted

            def transform(stage: ScaleAndShift, data: Batch) -> Batch:
                def scale(part: object, source: str) -> Any:
                    return part if source in converted else stage._scale(
                        part, source, dtypes.get(source, FLOAT64))

                return transform_chosen(stage, data, sources, places, scale)

            return transform

        return TransformAsRead(bind)

    def _scaled(self, dtypes: Mapping[str, numpy.dtype[Any]],
                ) -> dict[str, Conversion]:
        """Return conversions that scale and cast in one pass."""
        scale, shift = self._operands()
        if self.is_integral() or not (_is_real(scale) and _is_real(shift)):
            return {}
        return {source: Conversion(dtype, float(scale), float(shift))
                for source, dtype in dtypes.items()}


def _as_operand(name: str, value: object) -> Any:
    """Return any scalar as a Python number, and an array unchanged."""
    if type(value) in (int, float):
        return value
    if is_masked(value):
        raise masked_refusal(f'{name} cannot hide numbers')
    if isinstance(value, (list, tuple, numpy.ndarray)):
        array = numpy.asarray(value)
        if array.ndim:
            return array
        value = array.item()
    if isinstance(value, (numbers.Integral, numpy.bool_)):
        return int(value)
    if isinstance(value, (numbers.Real, numpy.floating)):
        return float(value)
    if isinstance(value, numbers.Complex):
        return complex(value)
    raise TypeError(f'{name} must be a number, got {value!r} '
                    f'({type(value).__name__})')


def _apply(data: Any, scale: Operand, shift: Operand,
           dtype: numpy.dtype[Any]) -> Any:
    """Return ``data * scale + shift``; see the module for types.

    `dtype`: the type of results that would otherwise be float64.
    """
    if type(data) is numpy.ndarray and data.ndim and not data.dtype.hasobject:
        return _compute(data, scale, shift, dtype)
    array = as_array(data)
    if is_ragged(array):
        return map_elements(
            lambda element: _apply(element, scale, shift, dtype), data)
    if is_masked(array):
        return with_mask(_apply(without_hidden(array), scale, shift, dtype),
                         mask_of(array), array)
    if not array.ndim:
        # The stage that requests `dtype` may leave scalars unchanged.
        dtype = FLOAT64
    # The rules for NumPy's scalars differ, and changed between versions.
    result = _compute(numpy.atleast_1d(array), scale, shift, dtype)
    if not array.ndim and result.shape == (1,):
        return result[0]
    return result


def _compute(array: NDArray[Any], scale: Operand, shift: Operand,
             dtype: numpy.dtype[Any]) -> NDArray[Any]:
    if array.dtype.char == 'f' and _is_real(scale) and _is_real(shift):
        scaled = scale_singles(array, float(scale), float(shift))
        if scaled is not None:
            return scaled
    kind = array.dtype.kind
    if kind in 'biu' and _is_integral(scale) and _is_integral(shift):
        return _compute_integers(array, scale, shift)
    if (kind in 'biu' or array.dtype == FLOAT64) and _is_real(
            scale) and _is_real(shift):
        return scale_and_shift(array, float(scale), float(shift), dtype)
    try:
        with numpy.errstate(over='raise'):
            return _compute_in_own_type(array, scale, shift)
    except FloatingPointError as error:
        raise OverflowError(
            f'x * {scale!r} + {shift!r} does not fit the type of the data, '
            f'{array.dtype} ({error}): put Cast to a larger type before '
            'this stage') from None


def _compute_in_own_type(array: NDArray[Any], scale: Operand,
                         shift: Operand) -> NDArray[Any]:
    product = array * _typed(scale, array.dtype)
    addend = _typed(shift, product.dtype)
    in_place = not isinstance(addend, numpy.ndarray) and (
        product.dtype == getattr(addend, 'dtype', object))
    result: NDArray[Any] = numpy.add(
        product, addend, out=product if in_place else None)
    return result


def _typed(number: Operand, dtype: numpy.dtype[Any]) -> Any:
    """Return a Python number in the type in which the data are computed."""
    if isinstance(number, numpy.ndarray) or dtype.kind not in 'biufc':
        return number
    if dtype.kind in 'biu':
        dtype = INT64.dtype if isinstance(number, int) else FLOAT64
    if isinstance(number, complex):
        dtype = numpy.result_type(dtype, numpy.complex64)
    with numpy.errstate(over='ignore'):
        typed = dtype.type(number)
    if math.isfinite(abs(number)) and not numpy.isfinite(typed):
        raise FloatingPointError(f'{number!r} would be infinite')
    return typed


def _is_plain(dtype: numpy.dtype[Any]) -> bool:
    """Return whether scaling can write its results directly in a type."""
    return dtype.kind in 'biuf' and dtype.itemsize <= 8


def _is_real(number: Operand) -> TypeGuard[float]:
    return isinstance(number, (int, float))


def _is_integral(number: Operand) -> TypeGuard[Integers]:
    if isinstance(number, numpy.ndarray):
        return number.dtype.kind in 'biu'
    return isinstance(number, int)


def _compute_integers(array: NDArray[Any], scale: Integers,
                      shift: Integers) -> NDArray[Any]:
    """Return ``array * scale + shift`` in int64; raise if it does not fit."""
    if _fits(_range_of_type(array.dtype), scale, shift) or _fits(
            _range_of(array), scale, shift):
        # Modulo 2 ** 64: so the result is right even if a product overflows.
        result: NDArray[Any] = (
            array.astype(numpy.int64) * _modulo(scale) + _modulo(shift))
        return result
    exact = array.astype(object) * scale + shift
    low, high = _range_of(exact)
    if low < INT64.min or high > INT64.max:
        raise OverflowError(
            f'x * {scale!r} + {shift!r} is from {low} to {high}, which does '
            'not fit int64: put Cast to float64 before this stage')
    fitting: NDArray[Any] = exact.astype(numpy.int64)
    return fitting


def _fits(extremes: tuple[int, int], scale: Integers, shift: Integers) -> bool:
    """Return whether all results fit int64, given the extremes of the data."""
    products = [extreme * factor for extreme in extremes
                for factor in _range_of(scale)]
    low, high = _range_of(shift)
    return (min(products) + low >= INT64.min
            and max(products) + high <= INT64.max)


def _range_of(operand: Integers) -> tuple[int, int]:
    if not isinstance(operand, numpy.ndarray):
        return operand, operand
    if not operand.size:
        return 0, 0
    return int(operand.min()), int(operand.max())


@lru_cache
def _range_of_type(dtype: numpy.dtype[Any]) -> tuple[int, int]:
    if dtype.kind == 'b':
        return 0, 1
    return int(numpy.iinfo(dtype).min), int(numpy.iinfo(dtype).max)


def _modulo(operand: Integers) -> Any:
    """Return integers as int64, modulo 2 ** 64."""
    if isinstance(operand, numpy.ndarray):
        return operand.astype(numpy.int64)
    return numpy.array(operand % 2 ** 64, numpy.uint64).view(numpy.int64)
