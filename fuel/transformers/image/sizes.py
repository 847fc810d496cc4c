"""Stages that give images a fixed or a minimum height and width."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy
from numpy.typing import NDArray

from fuel.describe.source_types import SourceType
from fuel.epochs.stage import stage_of
from fuel.kernels import crop_windows
from fuel.transformers.image.base import (
    IMAGE_AXES, Image, Images, ImageStage, as_shape, map_images, new_stack)
from fuel.transformers.image.resampling import (
    RESIZE_FILTERS, Filter, check_filter, check_size, filter_of, resize_image)
from fuel.transformers.options import ImageOptions
from fuel.transformers.source_names import as_labels
from fuel.typing import StreamLike


class FixedSizeStage(ImageStage):
    """A stage that gives all images one height and width.

    A batch becomes one array, whatever form it had. Subclasses implement
    ``_prepare(count, source_name)``, which returns what `_write` needs (such
    as random numbers), and ``_write(place, image, prepared, out)``.
    """

    shape_argument = 'shape'

    def __init__(self, data_stream: StreamLike, shape: Sequence[int],
                 **kwargs: Unpack[ImageOptions]) -> None:
        self.shape = as_shape(self.shape_argument, shape)
        super().__init__(data_stream, **kwargs)

    def type_after(self, known: SourceType, source_name: str) -> SourceType:
        """Return the type of images of the fixed size."""
        return with_size(known, self.shape)

    def _transform(self, images: Images, source_name: str) -> Any:
        out = new_stack(images, self.shape)
        prepared = self._prepare(len(images), source_name)
        map_images(
            lambda place: self._write(
                place, images[place], prepared, out[place]),
            len(images), self.num_threads)
        return out

    def _prepare(self, count: int, source_name: str) -> Any:
        return None

    def _write(self, place: int, image: Image, prepared: Any,
               out: NDArray[Any]) -> None:
        raise NotImplementedError


class Resize(FixedSizeStage):
    """Resizes images to a fixed height and width.

    Parameters
    ----------
    shape : (int, int)
        Height and width. Proportions are not kept; to keep them, use
        :class:`MinimumImageDimensions` with ``shrink=True`` and
        :class:`CenterCrop` instead.
    resample : str or dict, optional
        The filter: ``'nearest'``, ``'box'``, ``'bilinear'`` (the default),
        ``'hamming'``, ``'bicubic'`` or ``'lanczos'``; a dict has the filter
        of each source, such as ``{'image': 'bilinear', 'mask': 'nearest'}``.
    num_threads, produces_examples, which_sources, iteration_scheme
        See :mod:`fuel.transformers`.
    axis_labels
        See :mod:`fuel.transformers`.

    Raises
    ------
    ValueError
        If `shape` or `resample` is invalid; when a batch is requested, if
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
                 resample: Filter = 'bilinear',
                 **kwargs: Unpack[ImageOptions]) -> None:
        super().__init__(data_stream, shape, **kwargs)
        self.resample = check_filter(
            resample, RESIZE_FILTERS, self.which_sources)

    def _prepare(self, count: int, source_name: str) -> str:
        return filter_of(self.resample, source_name)

    def _write(self, place: int, image: Image, prepared: str,
               out: NDArray[Any]) -> None:
        out[...] = resize_image(image, self.shape, prepared)


class CenterCrop(FixedSizeStage):
    """Crops the middle of images to a fixed height and width.

    Parameters
    ----------
    window_shape : (int, int)
        Height and width.
    num_threads, produces_examples, which_sources, iteration_scheme
        See :mod:`fuel.transformers`.
    axis_labels
        See :mod:`fuel.transformers`.

    Raises
    ------
    ValueError
        If `window_shape` is invalid; when data are requested, if an image
        is smaller, or if the images of a batch differ in channels or type.

    Notes
    -----
    If opposite margins cannot be equal, the top or the left margin is one
    pixel smaller. A batch becomes one array.

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
                 **kwargs: Unpack[ImageOptions]) -> None:
        super().__init__(data_stream, window_shape, **kwargs)

    @property
    def window_shape(self) -> tuple[int, int]:
        """Height and width of the results."""
        return self.shape

    def _write(self, place: int, image: Image, prepared: None,
               out: NDArray[Any]) -> None:
        rows, columns = slack_of(image, self.shape, f'image {place}')
        copy_window(image, rows // 2, columns // 2, out)


def slack_of(image: Image, window: tuple[int, int],
             which: str) -> tuple[int, int]:
    """Return by how many rows and columns an image exceeds the window."""
    rows, columns = (size - wanted for size, wanted in zip(
        image.shape[-2:], window, strict=True))
    if rows < 0 or columns < 0:
        raise ValueError(
            f'{which} has the shape {image.shape}, which is smaller than '
            f'window_shape {window}: choose a smaller window, or put '
            'MinimumImageDimensions before this stage')
    return rows, columns


def with_size(known: SourceType, size: tuple[int, int]) -> SourceType:
    """Return the type of images that were given a height and a width."""
    return known._replace(shape=None if known.shape is None else (
        *known.shape[:-2], *size))


def copy_window(image: Image, top: int, left: int, out: NDArray[Any]) -> None:
    """Copy a window of an image into an array of the same type."""
    image = image.astype(out.dtype, copy=False)
    crop_windows(image[numpy.newaxis], [top], [left],
                 out=out[numpy.newaxis])


class MinimumImageDimensions(ImageStage):
    """Enlarges images that are too small, keeping their proportions.

    Parameters
    ----------
    minimum_shape : (int, int)
        Least height and least width of the results. Images that are large
        enough pass through unchanged, unless `shrink` is True.
    resample : str or dict, optional
        The filter: ``'nearest'`` (the default), ``'box'``, ``'bilinear'``,
        ``'hamming'``, ``'bicubic'`` or ``'lanczos'``; a dict has the filter
        of each source.
    shrink : bool, optional
        Whether images that are larger are made smaller, to the least height
        or the least width. With ``(256, 256)`` the shorter side of each image
        then is 256. Defaults to False.
    num_threads, produces_examples, which_sources, iteration_scheme
        See :mod:`fuel.transformers`.
    axis_labels
        See :mod:`fuel.transformers`.

    Raises
    ------
    ValueError
        If `minimum_shape` or `resample` is invalid; when data are
        requested, if an image is so narrow that it would have more than
        ``PIL.Image.MAX_IMAGE_PIXELS`` afterwards.
    NotImplementedError
        When data are requested, if an image does not have two or three
        axes.

    Notes
    -----
    Images have the axes (height, width) or (channel, height, width), any
    type, and any number of channels. Types other than uint8 are resampled
    in float32, except with ``'nearest'``, which only moves pixels. A batch
    becomes a list of images, whatever form it had.

    Examples
    --------
    >>> import numpy
    >>> from fuel.datasets import IterableDataset
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IterableDataset([numpy.array([[[1, 2]]])]))
    >>> image, = next(MinimumImageDimensions(
    ...     stream, (2, 2)).get_epoch_iterator())
    >>> image
    array([[[1, 1, 2, 2],
            [1, 1, 2, 2]]])
    """

    pure = True
    keeps_rows = True
    # Nothing is kept of the chosen sources; the others keep their types.
    keeps = frozenset[str]()

    def __init__(self, data_stream: StreamLike, minimum_shape: Sequence[int],
                 resample: Filter = 'nearest', shrink: bool = False,
                 **kwargs: Unpack[ImageOptions]) -> None:
        self.minimum_shape = as_shape('minimum_shape', minimum_shape)
        self.shrink = bool(shrink)
        super().__init__(data_stream, **kwargs)
        self.resample = check_filter(
            resample, RESIZE_FILTERS, self.which_sources)

    def transform_source_example(self, source_example: Image,
                                 source_name: str) -> Any:
        """Return an image that is large enough."""
        example = numpy.asarray(source_example)
        self._verify_image((), [example], source_name)
        return self._scale(example, filter_of(self.resample, source_name))

    def transform_source_batch(self, source_batch: Images,
                               source_name: str) -> list[Any]:
        """Return a list of images that are large enough."""
        images = [numpy.asarray(image) for image in source_batch]
        self._verify_image(('batch',), images, source_name)
        resample = filter_of(self.resample, source_name)
        return map_images(
            lambda place: self._scale(images[place], resample), len(images),
            self.num_threads)

    def _verify_image(self, before: tuple[str, ...], images: list[Image],
                      source: str) -> None:
        """Check the axis labels of a source.

        The labels may name a channel even if images have no channel axis.
        """
        axes = images[0].ndim if images else 3
        labels = stage_of(self.data_stream).labels
        if axes == 2 and as_labels(labels.get(source)) == (
                *before, *IMAGE_AXES):
            axes = 3
        self._verify((*before, *IMAGE_AXES[-axes:]), source, images)

    def _scale(self, image: Image, resample: str) -> Any:
        if image.ndim not in (2, 3):
            raise NotImplementedError(
                'images must have the axes (height, width) or (channel, '
                f'height, width), got the shape {image.shape}')
        shape = scaled(image.shape[-2:], self.minimum_shape, self.shrink)
        if shape == image.shape[-2:]:
            return image
        check_size(shape)
        return resize_image(image, shape, resample)


def scaled(shape: tuple[int, int], minimum: tuple[int, int],
           shrink: bool) -> tuple[int, int]:
    """Return the smallest shape of at least `minimum`, of equal proportions.

    `shrink`: False returns a shape that is large enough unchanged.
    """
    height, width = shape
    least_height, least_width = minimum
    if not height or not width:
        raise ValueError(f'an image without pixels, of the shape {shape}, '
                         'cannot be resized')
    if not shrink and height >= least_height and width >= least_width:
        return height, width
    # Computed in integers, since a rounded factor could be a pixel off.
    if least_height * width >= least_width * height:
        return least_height, -(-width * least_height // height)
    return -(-height * least_width // width), least_width
