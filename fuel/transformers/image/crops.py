"""Minimum size, random crop and random rotation, with the draws of old.

What is drawn, and in which order, is public: results depend on it. All is
drawn before any thread starts.
"""
from __future__ import annotations

import math
from typing import Any

import numpy

from fuel.config_parser import config
from fuel.kernels import crop_windows, draws
from fuel.kernels.memory import empty
from fuel.transformers.image.base import (
    BATCH_AXES,
    IMAGE_AXES,
    ImageStage,
    as_shape,
    at_place,
    check_image,
    images_of,
    in_form_of,
    is_stacked,
    map_images,
    new_stack,
)
from fuel.transformers.source_names import as_labels
from fuel.transformers.image.resampling import (
    RESIZE_FILTERS,
    ROTATION_FILTERS,
    check_filter,
    check_size,
    resize_image,
    rotate_image,
)


class MinimumImageDimensions(ImageStage):
    """Enlarges images that are too small, keeping their proportions.

    Parameters
    ----------
    data_stream : AbstractDataStream
    minimum_shape : (int, int)
        The height and the width that every image has at least afterwards.
        Images that are large enough pass through as they are.
    resample : str, optional
        The filter: ``'nearest'`` (the default), ``'box'``, ``'bilinear'``,
        ``'hamming'``, ``'bicubic'`` or ``'lanczos'``.
    num_threads : int, optional
        Default is ``config.num_threads``.
    **kwargs
        `which_sources` and others; see
        :class:`~fuel.transformers.SourcewiseTransformer`.

    Raises
    ------
    ValueError
        If `minimum_shape` or `resample` is of no use; when data are asked
        for, if an image is so narrow that it would have more than
        ``PIL.Image.MAX_IMAGE_PIXELS`` afterwards.
    NotImplementedError
        When data are asked for, if an image has other than two or three
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

    def __init__(self, data_stream: Any, minimum_shape: Any,
                 resample: str = 'nearest', **kwargs: Any) -> None:
        self.minimum_shape = as_shape('minimum_shape', minimum_shape)
        self.resample = check_filter(resample, RESIZE_FILTERS)
        super().__init__(data_stream, **kwargs)

    def transform_source_example(self, source_example: Any,
                                 source_name: str) -> Any:
        """Return an image that is large enough."""
        example = numpy.asarray(source_example)
        self._verify_image((), example.ndim, source_name)
        return self._enlarge(example)

    def transform_source_batch(self, source_batch: Any,
                               source_name: str) -> list[Any]:
        """Return a list of images that are large enough."""
        images = [numpy.asarray(image) for image in source_batch]
        self._verify_image(
            ('batch',), images[0].ndim if images else 3, source_name)
        return map_images(
            lambda place: self._enlarge(images[place]), len(images),
            self.num_threads)

    def _verify_image(self, before: tuple[str, ...], axes: int,
                      source: str) -> None:
        """Check labels, which may name a channel that images lack."""
        labels = (getattr(self.data_stream, 'axis_labels', None) or {})
        if axes == 2 and as_labels(labels.get(source)) == (
                *before, *IMAGE_AXES):
            axes = 3
        self._verify((*before, *IMAGE_AXES[-axes:]), source)

    def _enlarge(self, image: Any) -> Any:
        if image.ndim not in (2, 3):
            raise NotImplementedError(
                'images must have the axes (height, width) or (channel, '
                f'height, width), got the shape {image.shape}')
        shape = enlarged(image.shape[-2:], self.minimum_shape)
        if shape == image.shape[-2:]:
            return image
        check_size(shape)
        return resize_image(image, shape, self.resample)


def enlarged(shape: tuple[int, int],
             minimum: tuple[int, int]) -> tuple[int, int]:
    """Return the smallest similar shape that is at least the minimum.

    Examples
    --------
    >>> enlarged((10, 20), (15, 15))
    (15, 30)

    """
    height, width = shape
    least_height, least_width = minimum
    if not height or not width:
        raise ValueError(f'an image without pixels, of the shape {shape}, '
                         'cannot be enlarged')
    if height >= least_height and width >= least_width:
        return height, width
    # In whole numbers: a rounded factor can be a pixel off.
    if least_height * width >= least_width * height:
        return least_height, -(-width * least_height // height)
    return -(-height * least_width // width), least_width


def draw_integers(rng: Any, slack: int, count: int | None = None) -> Any:
    """Draw integers from 0 to `slack`, as the old stages did."""
    if type(rng) is numpy.random.RandomState and count is not None:
        return draws.draw_integers(rng._bit_generator, slack, count)
    if hasattr(rng, 'randint') and hasattr(rng, 'get_state'):
        return rng.randint(0, slack + 1, count)
    if hasattr(rng, 'integers'):
        return rng.integers(0, slack + 1, count)
    if count is None:
        return rng.randrange(slack + 1)
    return numpy.array([rng.randrange(slack + 1) for _ in range(count)], int)


def draw_uniform(rng: Any, most: float, count: int | None = None) -> Any:
    """Draw numbers from ``-most`` to `most`; see :func:`draw_integers`."""
    if count is None or hasattr(rng, 'get_state') or hasattr(
            rng, 'integers'):
        return rng.uniform(-most, most, *(() if count is None else (count,)))
    return numpy.array([rng.uniform(-most, most) for _ in range(count)])


def default_rng(rng: Any) -> Any:
    """Return a generator: the one given, or one with the default seed."""
    if rng is None:
        return numpy.random.RandomState(config.default_seed)
    return rng


class RandomFixedSizeCrop(ImageStage):
    """Crops images to a fixed size, each at a random place.

    Parameters
    ----------
    data_stream : AbstractDataStream
    window_shape : (int, int)
        Height and width of the crops.
    stack : bool, optional
        Whether to return the crops of a list of images as one array.
        Defaults to False: they are a list.
    rng : numpy.random.RandomState, optional
        Where random numbers come from. A :class:`numpy.random.Generator` or
        a :class:`random.Random` will do. Default is a new
        ``RandomState(config.default_seed)``.
    num_threads : int, optional
        Default is ``config.num_threads``.
    **kwargs
        `which_sources` and others; see
        :class:`~fuel.transformers.SourcewiseTransformer`.

    Raises
    ------
    ValueError
        If `window_shape` is of no use; when data are asked for, if an image
        is smaller than the window, or no image.

    Notes
    -----
    Images have the axes (channel, height, width) and any type. A batch in
    one array becomes one array; the columns of all windows are drawn first,
    then the rows. A list, or an array of objects, becomes a list; row and
    column are drawn image by image, and nothing where there is no choice.

    Examples
    --------
    >>> import numpy
    >>> from fuel.datasets import IterableDataset
    >>> from fuel.streams import DataStream
    >>> image = numpy.arange(16).reshape(1, 4, 4)
    >>> stream = DataStream(IterableDataset([image, image]))
    >>> crops = RandomFixedSizeCrop(
    ...     stream, (2, 2), rng=numpy.random.RandomState(0))
    >>> for crop, in crops.get_epoch_iterator():
    ...     print(crop.tolist())
    [[[1, 2], [5, 6]]]
    [[[1, 2], [5, 6]]]

    """

    def __init__(self, data_stream: Any, window_shape: Any,
                 stack: bool = False, rng: Any = None,
                 **kwargs: Any) -> None:
        self.window_shape = as_shape('window_shape', window_shape)
        self.stack = stack
        self.rng = default_rng(rng)
        super().__init__(data_stream, **kwargs)

    def transform_source_example(self, source_example: Any,
                                 source_name: str) -> Any:
        """Return a random window of an image."""
        self._verify(IMAGE_AXES, source_name)
        image = check_image(source_example)
        top, left = self._draw_one(image, 'the image')
        return crop_windows(
            image[numpy.newaxis], [top], [left], self.window_shape)[0]

    def transform_source_batch(self, source_batch: Any,
                               source_name: str) -> Any:
        """Return a random window of each image."""
        self._verify(BATCH_AXES, source_name)
        images = images_of(source_batch)
        if is_stacked(source_batch):
            rows, columns = self._slack(images[0], 'each image') if len(
                images) else (0, 0)
            lefts = draw_integers(self.rng, columns, len(images))
            tops = draw_integers(self.rng, rows, len(images))
            return crop_windows(images, tops, lefts, self.window_shape,
                                num_threads=self.num_threads)
        offsets = []
        for place, image in enumerate(images):
            try:
                offsets.append(self._draw_one(
                    image, f'image {place} of the batch'))
            except ValueError as error:
                at_place(error, place)
                raise
        return self._crop_each(images, offsets)

    def _crop_each(self, images: list[Any],
                   offsets: list[tuple[int, int]]) -> Any:
        """Return windows of images of different sizes."""
        out = new_stack(images, self.window_shape) if self.stack else [
            empty((len(image), *self.window_shape),
                  image.dtype.newbyteorder('=')) for image in images]

        def crop(place: int) -> None:
            top, left = offsets[place]
            image = images[place].astype(out[place].dtype, copy=False)
            crop_windows(image[numpy.newaxis], [top], [left],
                         out=out[place][numpy.newaxis])

        map_images(crop, len(images), self.num_threads)
        return out

    def _slack(self, image: Any, which: str) -> tuple[int, int]:
        """Return how many rows and columns an image has too many."""
        rows = image.shape[-2] - self.window_shape[0]
        columns = image.shape[-1] - self.window_shape[1]
        if rows < 0 or columns < 0:
            raise ValueError(
                f'{which} has the shape {image.shape}, which is smaller than '
                f'window_shape {self.window_shape}: choose a smaller window, '
                'or put MinimumImageDimensions before this stage')
        return rows, columns

    def _draw_one(self, image: Any, which: str) -> tuple[int, int]:
        rows, columns = self._slack(image, which)
        top = int(draw_integers(self.rng, rows)) if rows else 0
        left = int(draw_integers(self.rng, columns)) if columns else 0
        return top, left


class Random2DRotation(ImageStage):
    """Rotates images about their centre, each by a random angle.

    Parameters
    ----------
    data_stream : AbstractDataStream
    maximum_rotation : float, optional
        The largest angle, in radians, in either direction. Defaults to pi.
    resample : {'nearest', 'bilinear', 'bicubic'}, optional
        The filter.
    rng : numpy.random.RandomState, optional
        Where random numbers come from; see :class:`RandomFixedSizeCrop`.
    num_threads : int, optional
        Default is ``config.num_threads``.
    **kwargs
        `which_sources` and others; see
        :class:`~fuel.transformers.SourcewiseTransformer`.

    Raises
    ------
    ValueError
        If `maximum_rotation` is not above 0 and at most pi, or `resample`
        is not known; when data are asked for, if something is no image.

    Notes
    -----
    Images have the axes (channel, height, width), keep their shape and
    type, and are zero where nothing was. Types other than uint8 are
    resampled in float32, except with ``'nearest'``.

    Examples
    --------
    >>> import numpy
    >>> from fuel.datasets import IterableDataset
    >>> from fuel.streams import DataStream
    >>> image = numpy.arange(1, 10).reshape(1, 3, 3)
    >>> stream = DataStream(IterableDataset([image]))
    >>> rotated, = next(Random2DRotation(
    ...     stream, rng=numpy.random.RandomState(6)).get_epoch_iterator())
    >>> rotated
    array([[[6, 9, 8],
            [3, 5, 7],
            [2, 1, 4]]])

    """

    def __init__(self, data_stream: Any, maximum_rotation: float = math.pi,
                 resample: str = 'nearest', rng: Any = None,
                 **kwargs: Any) -> None:
        if not 0 < maximum_rotation <= math.pi:
            raise ValueError(
                'maximum_rotation must be an angle in radians, above 0 and '
                f'at most pi, got {maximum_rotation!r}')
        self.maximum_rotation = maximum_rotation
        self.resample = check_filter(resample, ROTATION_FILTERS)
        self.rng = default_rng(rng)
        super().__init__(data_stream, **kwargs)

    def transform_source_example(self, source_example: Any,
                                 source_name: str) -> Any:
        """Return an image, rotated."""
        self._verify(IMAGE_AXES, source_name)
        image = check_image(source_example)
        return rotate_image(
            image, float(draw_uniform(self.rng, self._most())), self.resample)

    def transform_source_batch(self, source_batch: Any,
                               source_name: str) -> Any:
        """Return a batch of images, rotated."""
        self._verify(BATCH_AXES, source_name)
        images = images_of(source_batch)
        angles = draw_uniform(self.rng, self._most(), len(images))
        return in_form_of(source_batch, map_images(
            lambda place: rotate_image(
                images[place], float(angles[place]), self.resample),
            len(images), self.num_threads))

    def _most(self) -> float:
        """Return the largest angle in degrees."""
        return float(numpy.rad2deg(self.maximum_rotation))
