"""Conversions of numbers that need one pass and no copy on the way."""
from __future__ import annotations

from typing import Any

import numpy
from numpy.typing import DTypeLike, NDArray

from fuel.kernels import _convert
from fuel.kernels.outputs import empty

__all__ = ['scale_and_shift', 'scale_singles']

# Elements converted at a time where NumPy does it: 64 KB of doubles, which
# stay in the processor's cache.
BLOCK = 8192
SINGLE = numpy.dtype(numpy.float32)
# Classes of the types that the kernel writes.
FLOATS = (type(numpy.dtype('float32')), type(numpy.dtype('float64')))


def scale_and_shift(array: NDArray[Any], scale: float, shift: float,
                    dtype: DTypeLike) -> NDArray[Any]:
    """Return ``array * scale + shift``, rounded once to another type.

    The product and the sum are those of doubles, as NumPy computes them;
    but no copy of the array in doubles is made.

    `array`: booleans, integers, or floating numbers of at most 64 bits, in any
        byte order, with any strides.
    `dtype`: of the result, in native byte order: booleans, integers or
        floating numbers.

    Examples
    --------
    >>> pixels = numpy.array([0, 128, 255], dtype='uint8')
    >>> scale_and_shift(pixels, 1 / 255, -0.5, 'float32')
    array([-0.5       ,  0.00196078,  0.5       ], dtype=float32)
    """
    if dtype.__class__ in FLOATS:
        target = empty(array.shape, dtype)
        if _convert.scale_and_shift(array, target, scale, shift):
            return target
    dtype = numpy.dtype(dtype).newbyteorder('=')
    for given in (array.dtype, dtype):
        if given.kind not in 'biuf' or given.itemsize > 8:
            raise TypeError(
                'only booleans, integers and floating numbers of up to 64 '
                f'bits can be scaled and shifted here, got {given}')
    source = _as_plain(array)
    target = empty(array.shape, dtype)
    flat = target.reshape(-1)
    if dtype.char not in 'fd' or not _convert.scale_and_shift(
            source, flat, scale, shift):
        _convert_in_blocks(source, flat, scale, shift)
    return target


def scale_singles(array: NDArray[Any], scale: float, shift: float,
                  ) -> NDArray[Any] | None:
    """Return ``array * scale + shift`` of float32, computed in float32.

    None where it needs a closer look: where a result overflows or is not a
    number, or the array is not one of float32 in C order.
    """
    target = empty(array.shape, SINGLE)
    return target if _convert.scale_singles(
        array, target, scale, shift) else None


def _as_plain(array: NDArray[Any]) -> NDArray[Any]:
    """Return the elements in a row, in a type that the kernel reads."""
    dtype = array.dtype.newbyteorder('=')
    if dtype == numpy.float16:
        # Every half is a single, so nothing is lost.
        dtype = numpy.dtype(numpy.float32)
    flat = numpy.ascontiguousarray(array, dtype).reshape(-1)
    return flat.view(numpy.uint8) if dtype.kind == 'b' else flat


def _convert_in_blocks(source: NDArray[Any], target: NDArray[Any],
                       scale: float, shift: float) -> None:
    """Convert with NumPy the values that the kernel cannot, or must not
    convert silently."""
    for start in range(0, len(source), BLOCK):
        block = source[start:start + BLOCK].astype(numpy.float64)
        try:
            with numpy.errstate(over='raise'):
                block *= scale
                block += shift
        except FloatingPointError:
            raise OverflowError(
                f'x * {scale!r} + {shift!r} is too large for float64, for '
                f'some of the values from {source.min()} to {source.max()}'
            ) from None
        target[start:start + BLOCK] = block
