"""Convert numbers in one pass, without an intermediate copy."""
from __future__ import annotations

from typing import Any

import numpy
from numpy.typing import DTypeLike, NDArray

from fuel.kernels import _convert
from fuel.kernels.outputs import empty

__all__ = ['scale_and_shift', 'scale_singles']

# Number of elements that NumPy converts at a time: 64 KB of doubles, which
# stay in the processor's cache.
BLOCK = 8192
SINGLE = numpy.dtype(numpy.float32)
# Classes of the dtypes that the kernel can write.
FLOATS = (type(numpy.dtype('float32')), type(numpy.dtype('float64')))


def scale_and_shift(array: NDArray[Any], scale: float, shift: float,
                    dtype: DTypeLike) -> NDArray[Any]:
    """Return ``array * scale + shift``, rounded once to `dtype`.

    The product and the sum are computed in float64, with the same results as
    in NumPy, but without a float64 copy of the array.

    `array`: booleans, integers, or floating numbers of at most 64 bits, in any
        byte order, with any strides.
    `dtype`: type of the result: booleans, integers or floating numbers. The
        result has native byte order.

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

    Returns: None if a result overflows or is not a number, or if the array is
        not an array of float32 in C order. The caller then has to compute and
        check the result itself.
    """
    target = empty(array.shape, SINGLE)
    return target if _convert.scale_singles(
        array, target, scale, shift) else None


def _as_plain(array: NDArray[Any]) -> NDArray[Any]:
    """Return the elements as a vector, in a type that the kernel can read."""
    dtype = array.dtype.newbyteorder('=')
    if dtype == numpy.float16:
        # Each float16 number is also a float32 number, so nothing is lost.
        dtype = numpy.dtype(numpy.float32)
    flat = numpy.ascontiguousarray(array, dtype).reshape(-1)
    return flat.view(numpy.uint8) if dtype.kind == 'b' else flat


def _convert_in_blocks(source: NDArray[Any], target: NDArray[Any],
                       scale: float, shift: float) -> None:
    """Convert values with NumPy, in blocks.

    It is for the values that the kernel cannot convert, or must not convert
    silently. OverflowError is raised if float64 overflows.
    """
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
