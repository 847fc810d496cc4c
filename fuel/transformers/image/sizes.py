"""Stages that give images a fixed height and width."""
from __future__ import annotations

import math
from typing import Any

import numpy

from fuel.kernels import crop_windows
from fuel.transformers.image.base import (
    BATCH_AXES,
    IMAGE_AXES,
    ImageStage,
    as_shape,
    check_image,
    images_of,
    map_images,
    new_stack,
)
from fuel.transformers.image.resampling import (
    RESIZE_FILTERS,
    check_filter,
    resize_image,
)
from fuel.transformers.seeded import SeededStage


class FixedSizeStage(ImageStage):
    """A stage that gives all images one height and width.

    A batch becomes one array, whatever form it had. Subclasses implement
    ``_prepare(count)``, which returns what `_write` needs (such as random
    numbers), and ``_write(place, image, prepared, out)``.

    Parameters
    ----------
    shape : (int, int)
        Height and width of the results.
    **kwargs
        `which_sources`, `num_threads` and others.

    """

    shape_argument = 'shape'

    def __init__(self, data_stream: Any, shape: Any, **kwargs: Any) -> None:
        self.shape = as_shape(self.shape_argument, shape)
        super().__init__(data_stream, **kwargs)

    def transform_source_example(self, source_example: Any,
                                 source_name: str) -> Any:
        """Return an image of the fixed size."""
        self._verify(IMAGE_AXES, source_name)
        return self._transform([check_image(source_example)])[0]

    def transform_source_batch(self, source_batch: Any,
                               source_name: str) -> Any:
        """Return a batch of images of the fixed size, in one array."""
        self._verify(BATCH_AXES, source_name)
        return self._transform(images_of(source_batch))

    def _transform(self, images: Any) -> Any:
        out = new_stack(images, self.shape)
        prepared = self._prepare(len(images))
        map_images(
            lambda place: self._write(
                place, images[place], prepared, out[place]),
            len(images), self.num_threads)
        return out

    def _prepare(self, count: int) -> Any:
        return None

    def _write(self, place: int, image: Any, prepared: Any,
               out: Any) -> None:
        raise NotImplementedError


class Resize(FixedSizeStage):
    """Resizes images to a fixed height and width.

    Parameters
    ----------
    data_stream : AbstractDataStream
    shape : (int, int)
        Height and width. Proportions are not kept; for that, put
        :class:`MinimumImageDimensions` and :class:`CenterCrop` in its place.
    resample : str, optional
        The filter: ``'nearest'``, ``'box'``, ``'bilinear'`` (the default),
        ``'hamming'``, ``'bicubic'`` or ``'lanczos'``.
    num_threads : int, optional
        Default is ``config.num_threads``.
    **kwargs
        `which_sources` and others; see
        :class:`~fuel.transformers.SourcewiseTransformer`.

    Raises
    ------
    ValueError
        If `shape` or `resample` is of no use; when a batch is asked for, if
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

    def __init__(self, data_stream: Any, shape: Any,
                 resample: str = 'bilinear', **kwargs: Any) -> None:
        self.resample = check_filter(resample, RESIZE_FILTERS)
        super().__init__(data_stream, shape, **kwargs)

    def _write(self, place: int, image: Any, prepared: Any,
               out: Any) -> None:
        out[...] = resize_image(image, self.shape, self.resample)


class CenterCrop(FixedSizeStage):
    """Crops the middle of images to a fixed height and width.

    Parameters
    ----------
    data_stream : AbstractDataStream
    window_shape : (int, int)
        Height and width.
    num_threads : int, optional
        Default is ``config.num_threads``.
    **kwargs
        `which_sources` and others; see
        :class:`~fuel.transformers.SourcewiseTransformer`.

    Raises
    ------
    ValueError
        If `window_shape` is of no use; when data are asked for, if an image
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

    shape_argument = 'window_shape'

    def __init__(self, data_stream: Any, window_shape: Any,
                 **kwargs: Any) -> None:
        super().__init__(data_stream, window_shape, **kwargs)

    @property
    def window_shape(self) -> tuple[int, int]:
        """Height and width of the results."""
        return self.shape

    def _write(self, place: int, image: Any, prepared: Any,
               out: Any) -> None:
        rows, columns = (size - window for size, window in zip(
            image.shape[1:], self.shape, strict=True))
        if rows < 0 or columns < 0:
            raise ValueError(
                f'image {place} has the shape {image.shape}, which is '
                f'smaller than window_shape {self.shape}: choose a smaller '
                'window, or put MinimumImageDimensions before this stage')
        copy_window(image, rows // 2, columns // 2, out)


def copy_window(image: Any, top: int, left: int, out: Any) -> None:
    """Copy a window of an image into an array of the same type."""
    image = image.astype(out.dtype, copy=False)
    crop_windows(image[numpy.newaxis], [top], [left],
                 out=out[numpy.newaxis])


class RandomResizedCrop(SeededStage, FixedSizeStage):
    """Cuts random parts out of images and resizes them to a fixed size.

    The usual augmentation for classifying photographs: parts of various
    sizes and proportions.

    Parameters
    ----------
    data_stream : AbstractDataStream
    shape : (int, int)
        Height and width of the results.
    scale : (float, float), optional
        Least and largest part of the area. Defaults to (0.08, 1).
    ratio : (float, float), optional
        Least and largest ratio of width to height. Defaults to (3/4, 4/3).
    resample : str, optional
        The filter, as for :class:`Resize`. Defaults to ``'bilinear'``.
    seed : int, optional
        Default is ``config.default_seed``.
    num_threads : int, optional
        Default is ``config.num_threads``.
    **kwargs
        `which_sources` and others; see
        :class:`~fuel.transformers.SourcewiseTransformer`.

    Raises
    ------
    ValueError
        If an argument is of no use; when a batch is asked for, if its images
        differ in channels or type.

    Notes
    -----
    What is drawn depends on the seed, the epoch and the number of the batch
    alone. Sources of one stage get the same draws, so an image and its mask
    stay aligned. Ten parts are tried for each image; if none lies inside,
    the largest in the middle that has an allowed ratio is taken.

    Examples
    --------
    >>> import numpy
    >>> from fuel.datasets import IterableDataset
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IterableDataset([numpy.ones((3, 40, 60))]))
    >>> crops = RandomResizedCrop(stream, (8, 8), seed=5)
    >>> next(crops.get_epoch_iterator())[0].shape
    (3, 8, 8)

    """

    def __init__(self, data_stream: Any, shape: Any,
                 scale: Any = (.08, 1.), ratio: Any = (3 / 4, 4 / 3),
                 resample: str = 'bilinear', **kwargs: Any) -> None:
        self.scale = _as_range('scale', scale, 1)
        self.ratio = _as_range('ratio', ratio, math.inf)
        self.resample = check_filter(resample, RESIZE_FILTERS)
        super().__init__(data_stream, shape, **kwargs)

    def _prepare(self, count: int) -> Any:
        return self.generator().random((count, 10, 4))

    def _write(self, place: int, image: Any, prepared: Any,
               out: Any) -> None:
        top, left, height, width = choose_part(
            image.shape[1], image.shape[2], self.scale, self.ratio,
            prepared[place])
        part = image[:, top:top + height, left:left + width]
        out[...] = resize_image(part, self.shape, self.resample)


def choose_part(height: int, width: int, scale: tuple[float, float],
                ratio: tuple[float, float],
                draws: Any) -> tuple[int, int, int, int]:
    """Choose a part of an image.

    Parameters
    ----------
    height, width : int
        Of the image.
    scale, ratio : (float, float)
        See :class:`RandomResizedCrop`.
    draws : numpy.ndarray, shape (tries, 4)
        From 0 to 1.

    """
    logs = math.log(ratio[0]), math.log(ratio[1])
    for for_area, for_ratio, for_top, for_left in draws.tolist():
        area = height * width * (
            scale[0] + for_area * (scale[1] - scale[0]))
        proportion = math.exp(logs[0] + for_ratio * (logs[1] - logs[0]))
        rows = round(math.sqrt(area / proportion))
        columns = round(math.sqrt(area * proportion))
        if 0 < rows <= height and 0 < columns <= width:
            return (int(for_top * (height - rows + 1)),
                    int(for_left * (width - columns + 1)), rows, columns)
    proportion = min(max(width / height, ratio[0]), ratio[1])
    rows = min(height, max(1, round(width / proportion)))
    columns = min(width, max(1, round(height * proportion)))
    return (height - rows) // 2, (width - columns) // 2, rows, columns


def _as_range(name: str, values: Any, most: float) -> tuple[float, float]:
    try:
        low, high = map(float, values)
    except (TypeError, ValueError):
        low = high = math.nan
    if not 0 < low <= high <= most:
        limit = '' if math.isinf(most) else f' of at most {most}'
        raise ValueError(f'{name} must be two positive numbers{limit}, the '
                         f'least first, got {values!r}')
    return low, high
