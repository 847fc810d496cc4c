"""Stages that give all images one height and width."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy
from numpy.typing import NDArray

from fuel.describe.source_types import SourceType
from fuel.kernels import crop_windows
from fuel.transformers.image.base import (
    Image, Images, ImageStage, as_shape, map_images, new_stack)
from fuel.transformers.image.resampling import (
    RESIZE_FILTERS, check_filter, resize_image)
from fuel.typing import StreamLike


class FixedSizeStage(ImageStage):
    """A stage that gives all images one height and width.

    A batch becomes one array, whatever form it had. Subclasses implement
    ``_prepare(count)``, which returns what `_write` needs (such as random
    numbers), and ``_write(place, image, prepared, out)``.
    """

    shape_argument = 'shape'

    def __init__(self, data_stream: StreamLike, shape: Sequence[int],
                 **kwargs: Any) -> None:
        self.shape = as_shape(self.shape_argument, shape)
        super().__init__(data_stream, **kwargs)

    def type_after(self, known: SourceType, source_name: str) -> SourceType:
        """Return the type of images of the fixed size."""
        shape = None if known.shape is None else (
            *known.shape[:-2], *self.shape)
        return known._replace(shape=shape)

    def _transform(self, images: Images) -> Any:
        out = new_stack(images, self.shape)
        prepared = self._prepare(len(images))
        map_images(
            lambda place: self._write(
                place, images[place], prepared, out[place]),
            len(images), self.num_threads)
        return out

    def _prepare(self, count: int) -> Any:
        return None

    def _write(self, place: int, image: Image, prepared: NDArray[Any],
               out: NDArray[Any]) -> None:
        raise NotImplementedError


class Resize(FixedSizeStage):
    """Resizes images to a fixed height and width.

    Parameters
    ----------
    shape : (int, int)
        Height and width. Proportions are not kept; for that, put
        :class:`MinimumImageDimensions` and :class:`CenterCrop` in its place.
    resample : str, optional
        The filter: ``'nearest'``, ``'box'``, ``'bilinear'`` (the default),
        ``'hamming'``, ``'bicubic'`` or ``'lanczos'``.
    num_threads, **kwargs
        See :mod:`fuel.transformers`.

    Raises
    ------
    ValueError
        If `shape` or `resample` is invalid; when a batch is asked for, if
        its images differ in channels or type.

    Notes
    -----
    Images have the axes (channel, height, width). A batch becomes one array
    of the axes (batch, channel, height, width), of the type of the images.

    Examples
    --------
    >>> import numpy
    >>> from fuel.datasets import IterableDataset
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IterableDataset([numpy.ones((3, 4, 6))]))
    >>> image, = next(Resize(stream, (2, 2)).get_epoch_iterator())
    >>> image.shape
    (3, 2, 2)
    """

    pure = True
    keeps_rows = True

    def __init__(self, data_stream: StreamLike, shape: Sequence[int],
                 resample: str = 'bilinear', **kwargs: Any) -> None:
        self.resample = check_filter(resample, RESIZE_FILTERS)
        super().__init__(data_stream, shape, **kwargs)

    def _write(self, place: int, image: Image, prepared: NDArray[Any],
               out: NDArray[Any]) -> None:
        out[...] = resize_image(image, self.shape, self.resample)


class CenterCrop(FixedSizeStage):
    """Crops the middle of images to a fixed height and width.

    Parameters
    ----------
    window_shape : (int, int)
        Height and width.
    num_threads, **kwargs
        See :mod:`fuel.transformers`.

    Raises
    ------
    ValueError
        If `window_shape` is invalid; when data are asked for, if an image
        is smaller, or if the images of a batch differ in channels or type.

    Notes
    -----
    Where the margins cannot be equal, that above and that on the left are
    one pixel smaller. A batch becomes one array.

    Examples
    --------
    >>> import numpy
    >>> from fuel.datasets import IterableDataset
    >>> from fuel.streams import DataStream
    >>> image = numpy.arange(12).reshape(1, 3, 4)
    >>> stream = DataStream(IterableDataset([image]))
    >>> next(CenterCrop(stream, (1, 2)).get_epoch_iterator())
    (array([[[5, 6]]]),)
    """

    pure = True
    keeps_rows = True
    shape_argument = 'window_shape'

    def __init__(self, data_stream: StreamLike, window_shape: Sequence[int],
                 **kwargs: Any) -> None:
        super().__init__(data_stream, window_shape, **kwargs)

    @property
    def window_shape(self) -> tuple[int, int]:
        """Height and width of the results."""
        return self.shape

    def _write(self, place: int, image: Image, prepared: NDArray[Any],
               out: NDArray[Any]) -> None:
        rows, columns = (size - window for size, window in zip(
            image.shape[1:], self.shape, strict=True))
        if rows < 0 or columns < 0:
            raise ValueError(
                f'image {place} has the shape {image.shape}, which is '
                f'smaller than window_shape {self.shape}: choose a smaller '
                'window, or put MinimumImageDimensions before this stage')
        copy_window(image, rows // 2, columns // 2, out)


def copy_window(image: Image, top: int, left: int, out: NDArray[Any]) -> None:
    """Copy a window of an image into an array of the same type."""
    image = image.astype(out.dtype, copy=False)
    crop_windows(image[numpy.newaxis], [top], [left],
                 out=out[numpy.newaxis])
