"""Crop or mirror the images of a batch, of any data type."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy
from numpy.typing import ArrayLike, NDArray

import fuel.kernels._image as _image
from fuel.kernels.outputs import empty
from fuel.kernels.rows import native
from fuel.utils.threads import map_chunks

__all__ = ['crop_windows', 'mirror_images']

# Least number of bytes that each thread copies. One core nearly fills the
# bandwidth of the memory: on two cores, batches of 1 MB took 1.8 times as long
# as on one, and batches of 16 MB took the same time.
MIN_BYTES = 8 << 20


def crop_windows(images: NDArray[Any], tops: ArrayLike, lefts: ArrayLike,
                 shape: Sequence[int] | None = None,
                 out: NDArray[Any] | None = None,
                 num_threads: int | None = None) -> Any:
    """Copy one window of each image of a batch.

    `images`: shape (batch, channel, height, width); any dtype, any strides; it
        may be read-only.
    `tops`, `lefts`: shape (batch,); the first row and the first column of each
        window.
    `shape`: height and width of the windows. Not needed with `out`.
    `out`: the array to write to, of shape (batch, channel, rows, columns) and
        of the dtype of `images`. Default is a new array in native byte order.

    Examples
    --------
    >>> images = numpy.arange(16).reshape(1, 1, 4, 4)
    >>> crop_windows(images, [1], [2], (2, 2))
    array([[[[ 6,  7],
             [10, 11]]]])
    """
    images = as_batch_of_images(images)
    if out is None:
        if shape is None:
            raise ValueError('crop_windows needs the shape of the windows '
                             '(height, width), or an array to write to')
        rows, columns = shape
        written = empty(
            (len(images), images.shape[1], rows, columns), images.dtype)
    else:
        _check_out(out, images)
        written = out
        rows, columns = out.shape[2:]
    row_offsets = _as_offsets(
        'row', tops, len(images), images.shape[2] - rows)
    column_offsets = _as_offsets(
        'column', lefts, len(images), images.shape[3] - columns)
    if is_movable(images.dtype):
        map_chunks(
            lambda start, stop: _image.copy_windows(
                images, row_offsets, column_offsets, written, start, stop),
            len(images), _min_images(written), num_threads)
    else:
        for i, (top, left) in enumerate(zip(
                row_offsets, column_offsets, strict=True)):
            written[i] = images[i, :, top:top + rows, left:left + columns]
    return native(written) if out is None else out


def mirror_images(images: NDArray[Any], mirrored: ArrayLike,
                  num_threads: int | None = None) -> Any:
    """Copy a batch of images, some of them with left and right exchanged.

    `images`: shape (batch, channel, height, width); any dtype, any strides; it
        may be read-only.
    `mirrored`: shape (batch,); whether to mirror each image.
    Returns: a new array, in native byte order.

    Examples
    --------
    >>> images = numpy.array([[[[1, 2, 3]]], [[[4, 5, 6]]]])
    >>> mirror_images(images, [True, False]).reshape(2, 3)
    array([[3, 2, 1],
           [4, 5, 6]])
    """
    images = as_batch_of_images(images)
    marks = numpy.ascontiguousarray(mirrored, dtype=bool)
    if marks.shape != images.shape[:1]:
        raise ValueError(
            f'mirrored must say for each of the {len(images)} images whether '
            f'to mirror it, got the shape {marks.shape}')
    out = empty(images.shape, images.dtype)
    if is_movable(images.dtype):
        map_chunks(
            lambda start, stop: _image.copy_mirrored(
                images, marks.view(numpy.uint8), out, start, stop),
            len(images), _min_images(out), num_threads)
    else:
        out[...] = images
        out[marks] = images[marks][..., ::-1]
    return native(out)


def is_movable(dtype: numpy.dtype[Any]) -> bool:
    """Return whether elements of a type may be copied as bytes.

    Returns: False for objects and for types that own memory elsewhere.
    """
    return dtype.kind in 'biufcmMSUV' and not dtype.hasobject


def as_batch_of_images(images: ArrayLike) -> Any:
    """Return images as an array; raise ValueError unless it has four axes."""
    images = numpy.asarray(images)
    if images.ndim != 4:
        raise ValueError(
            'a batch of images must have the axes (batch, channel, height, '
            f'width), got the shape {images.shape}')
    return images


def _check_out(out: NDArray[Any], images: NDArray[Any]) -> None:
    if not isinstance(out, numpy.ndarray) or out.dtype != images.dtype:
        raise ValueError(
            f'out must be an array of the dtype of the images, '
            f'{images.dtype}, got '
            f'{out.dtype if isinstance(out, numpy.ndarray) else type(out)}')
    if out.ndim != 4 or out.shape[:2] != images.shape[:2]:
        raise ValueError(
            f'out must have the shape {(*images.shape[:2], "rows", "columns")}'
            f' for images of the shape {images.shape}, got {out.shape}')
    if not out.flags.writeable:
        raise ValueError('out must be writable')
    if numpy.may_share_memory(out, images):
        raise ValueError('out must not share memory with the images')


def _as_offsets(axis: str, offsets: ArrayLike, n_images: int,
                most: int) -> Any:
    """Return the offsets of windows on one axis, checked.

    `most`: the largest offset at which a window is inside of its image.
    """
    if most < 0:
        raise ValueError(
            f'the windows are larger than the images by {-most} {axis}s: '
            'choose smaller windows, or enlarge the images first '
            '(MinimumImageDimensions)')
    array = numpy.asarray(offsets)
    if array.shape != (n_images,) or (
            array.dtype.kind not in 'iu' and n_images):
        raise ValueError(
            f'there must be one integer {axis} for each of the {n_images} '
            f'windows, got {array.dtype} of shape {array.shape}')
    checked = numpy.ascontiguousarray(array, dtype=numpy.intp)
    place = _image.first_outside(checked, most)
    if place >= 0:
        raise ValueError(
            f'the window of image {place} begins at {axis} {array[place]}, '
            f'but must begin from 0 to {most} to stay inside')
    return checked


def _min_images(out: NDArray[Any]) -> int:
    """Return the least number of images that each thread copies."""
    each: int = max(1, out.nbytes // max(1, len(out)))
    return max(1, MIN_BYTES // each)
