"""Resizing and rotating one image, of any type, with the filters of Pillow.

Images are arrays of shape (height, width) or (channel, height, width).
Channels are independent of each other; none is treated as transparency.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy
from numpy.typing import NDArray

from fuel.kernels.memory import empty

RESIZE_FILTERS = (
    'nearest', 'box', 'bilinear', 'hamming', 'bicubic', 'lanczos')
ROTATION_FILTERS = ('nearest', 'bilinear', 'bicubic')

#: The name of a filter, or a dict from names of sources to names of filters.
Filter: TypeAlias = 'str | Mapping[str, str]'


def check_filter(resample: Filter, filters: Sequence[str],
                 sources: Sequence[str]) -> Filter:
    """Check the name of a filter, or of each source's filter; return it."""
    if isinstance(resample, Mapping):
        if resample.keys() != set(sources):
            raise ValueError(
                'resample must name the filter of each source that the stage '
                f'transforms, {tuple(sources)}, got {dict(resample)}')
        return {source: str(check_filter(name, filters, sources))
                for source, name in resample.items()}
    if resample not in filters:
        raise ValueError(
            f'resample must be one of {", ".join(map(repr, filters))}, got '
            f'{resample!r}')
    return resample


def filter_of(resample: Filter, source: str) -> str:
    """Return the name of the filter of a source."""
    return resample if isinstance(resample, str) else resample[source]


def check_size(shape: tuple[int, int]) -> None:
    """Raise ValueError if an image would have more pixels than allowed."""
    from PIL import Image
    most = Image.MAX_IMAGE_PIXELS
    if most is not None and shape[0] * shape[1] > most:
        raise ValueError(
            f'the image would have {shape[1]} x {shape[0]} pixels, more than '
            f'PIL.Image.MAX_IMAGE_PIXELS = {most}: leave images that are so '
            'narrow out with Filter, or raise that limit')


def resize_image(image: NDArray[Any], shape: tuple[int, int],
                 resample: str) -> Any:
    """Return an image with another height and width."""
    height, width = shape
    if image.shape[-2:] == (height, width):
        return image.copy()
    if resample == 'nearest':
        rows = _nearest(image.shape[-2], height)
        columns = _nearest(image.shape[-1], width)
        return image.take(rows, axis=-2).take(columns, axis=-1)
    filter_ = _constant(resample)
    return _through_pil(
        image, shape, lambda plane: plane.resize((width, height), filter_))


def rotate_image(image: NDArray[Any], angle: float, resample: str) -> Any:
    """Return an image rotated about its centre, of the same shape."""
    if resample == 'nearest' and image.dtype not in (
            numpy.uint8, numpy.float32):
        return _rotate_by_index(image, angle)
    filter_ = _constant(resample)
    return _through_pil(
        image, image.shape[-2:], lambda plane: plane.rotate(angle, filter_))


def _constant(resample: str) -> Any:
    from PIL import Image
    return getattr(Image.Resampling, resample.upper())


def _nearest(size: int, new_size: int) -> Any:
    """Return the index of the old row that is copied to each new row.

    Distances are added up one by one, as in Pillow, so that ties are rounded
    as in Pillow.
    """
    step = size / new_size
    places = numpy.full(new_size, step)
    places[:1] = step * .5
    return numpy.minimum(
        numpy.add.accumulate(places).astype(numpy.intp), size - 1)


def _rotate_by_index(image: NDArray[Any], angle: float) -> Any:
    """Rotate the coordinates of the pixels, then fetch their values."""
    from PIL import Image
    height, width = image.shape[-2:]
    places = numpy.arange(1, height * width + 1, dtype=numpy.int32)
    rotated = numpy.asarray(Image.fromarray(
        places.reshape(height, width)).rotate(angle))
    flat = image.reshape(*image.shape[:-2], height * width)
    out = flat.take(numpy.maximum(rotated, 1) - 1, axis=-1)
    out[..., rotated == 0] = numpy.zeros((), image.dtype)
    return out


def _through_pil(image: NDArray[Any], shape: tuple[int, int],
                 operation: Callable[[Any], Any]) -> Any:
    """Apply an operation of Pillow to each channel."""
    if image.dtype == numpy.uint8:
        return _apply(image, shape, operation)
    kind = image.dtype.kind
    if kind not in 'biuf':
        raise ValueError(
            f"images of {image.dtype} can only be resampled with 'nearest': "
            'cast them to a type of real numbers first')
    out = _apply(image.astype(numpy.float32), shape, operation)
    if kind == 'b':
        return out >= .5
    if kind in 'iu':
        limits = numpy.iinfo(image.dtype)
        out = numpy.rint(out.astype(numpy.float64))
        # A float64 cannot hold the largest 64-bit integers: clip as integers.
        largest = numpy.nextafter(float(limits.max) + 1, 0)
        clipped = numpy.clip(out, limits.min, min(largest, limits.max))
        return clipped.astype(image.dtype)
    return out.astype(image.dtype, copy=False)


def _apply(image: NDArray[Any], shape: tuple[int, int],
           operation: Callable[[Any], Any]) -> Any:
    """Apply an operation to an image of uint8 or float32."""
    from PIL import Image
    if image.ndim == 2:
        return numpy.array(operation(Image.fromarray(
            numpy.ascontiguousarray(image))))
    pixels = image.transpose(1, 2, 0)
    if len(image) == 3 and image.dtype == numpy.uint8 and (
            pixels.flags.c_contiguous):
        # Pixels in the order of a decoded image: Pillow processes all channels
        # at once, without a copy of its input.
        return numpy.array(
            operation(Image.fromarray(pixels))).transpose(2, 0, 1)
    out = empty((len(image), *shape), image.dtype)
    for channel, plane in enumerate(image):
        out[channel] = operation(Image.fromarray(
            numpy.ascontiguousarray(plane)))
    return out
