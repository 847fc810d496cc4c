"""Convert pixels to numbers: gather, convert, scale and shift at once."""
from __future__ import annotations

from typing import Any

import numpy
from numpy.typing import ArrayLike, DTypeLike, NDArray

import fuel.kernels._image as _image
from fuel.kernels.outputs import empty
from fuel.kernels.rows import as_indices
from fuel.kernels.windows import as_batch_of_images
from fuel.utils.threads import map_chunks

__all__ = ['convert_images']

# The types that the kernel reads. Data of other types are converted first.
PIXELS = frozenset(map(numpy.dtype, (
    'int8', 'uint8', 'int16', 'uint16', 'int32', 'float32', 'float64')))
NUMBERS = (numpy.dtype('float32'), numpy.dtype('float64'))

# Least number of bytes that each thread writes. One core nearly fills the
# bandwidth of the memory: on two cores, batches of 1 MB took 1.8 times as long
# as on one, and batches of 16 MB took the same time.
MIN_BYTES = 8 << 20


def convert_images(images: NDArray[Any], scale: ArrayLike, shift: ArrayLike,
                   dtype: DTypeLike = 'float32',
                   indices: list[int] | NDArray[Any] | None = None,
                   num_threads: int | None = None) -> Any:
    """Return images as numbers, ``images[indices] * scale + shift``.

    Rows are chosen, converted, scaled and shifted in one pass over the
    memory. They are computed in `dtype`, with two roundings: the result is
    ``images[indices].astype(dtype) * dtype(scale) + dtype(shift)``.

    `images`: shape (examples, channel, height, width); booleans, integers or
        floats, in any strides; it may be read-only.
    `indices`: indices of the images to convert, in this order. An index may
        occur several times. Default is all images.

    Examples
    --------
    >>> images = numpy.array([0, 255], 'uint8').reshape(2, 1, 1, 1)
    >>> convert_images(images, 1 / 255, -.5, 'float64', [1, 0]).ravel()
    array([ 0.5, -0.5])
    """
    images = as_batch_of_images(images)
    dtype = numpy.dtype(dtype)
    if dtype not in NUMBERS:
        raise ValueError('images can be converted to float32 or float64, got '
                         f'{dtype}; use Cast for other types')
    if images.dtype.kind not in 'biuf':
        raise ValueError('only booleans, integers and floats can be '
                         f'converted, got images of {images.dtype}')
    if indices is None:
        rows = numpy.arange(len(images))
    else:
        rows = as_indices(indices, len(images))
    if not _is_readable(images):
        images, rows = _as_readable(images, rows, dtype)
    scales = _per_channel('scale', scale, images.shape[1])
    shifts = _per_channel('shift', shift, images.shape[1])
    out = empty((len(rows), *images.shape[1:]), dtype)
    image_bytes = out.nbytes // max(1, len(out))
    map_chunks(
        lambda start, stop: _image.convert(
            images, rows, scales, shifts, out, start, stop),
        len(out), max(1, MIN_BYTES // max(1, image_bytes)), num_threads)
    return out


def _is_readable(images: NDArray[Any]) -> bool:
    return (images.dtype in PIXELS and images.dtype.isnative
            and images.flags.aligned)


def _as_readable(images: NDArray[Any], rows: NDArray[Any] | None,
                 dtype: numpy.dtype[Any]) -> tuple[Any, Any]:
    """Return the chosen images in a type that the kernel reads.

    The second value has their indices in the new array.
    """
    chosen = images[rows]
    known = chosen.dtype.newbyteorder('=')
    return (chosen.astype(known if known in PIXELS else dtype),
            numpy.arange(len(chosen)))


def _per_channel(name: str, values: ArrayLike, channels: int) -> Any:
    array = numpy.asarray(values, dtype=numpy.float64)
    if array.ndim > 1 or (array.ndim == 1 and len(array) != channels):
        raise ValueError(
            f'{name} must be one number or one for each of the {channels} '
            f'channels, got the shape {array.shape}')
    return numpy.ascontiguousarray(numpy.broadcast_to(array, channels))
