"""A stage that enlarges images to a minimum size."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from fuel.epochs.stage import stage_of
from fuel.transformers.image.base import (IMAGE_AXES, Image, Images,
                                          ImageStage, as_shape, map_images)
from fuel.transformers.image.resampling import (RESIZE_FILTERS, check_filter,
                                                check_size, resize_image)
from fuel.transformers.source_names import as_labels
from fuel.typing import StreamLike


class MinimumImageDimensions(ImageStage):
    """Enlarges images that are too small, keeping their proportions.

    Parameters
    ----------
    minimum_shape : (int, int)
        The height and the width that every image has at least afterwards.
        Images that are large enough pass through as they are.
    resample : str, optional
        The filter: ``'nearest'`` (the default), ``'box'``, ``'bilinear'``,
        ``'hamming'``, ``'bicubic'`` or ``'lanczos'``.
    num_threads, **kwargs
        See :mod:`fuel.transformers`.

    Raises
    ------
    ValueError
        If `minimum_shape` or `resample` is invalid; when data are asked
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

    pure = True
    keeps_rows = True
    # Of other sources all that is known stays.
    keeps = frozenset[str]()

    def __init__(self, data_stream: StreamLike, minimum_shape: Sequence[int],
                 resample: str = 'nearest', **kwargs: Any) -> None:
        self.minimum_shape = as_shape('minimum_shape', minimum_shape)
        self.resample = check_filter(resample, RESIZE_FILTERS)
        super().__init__(data_stream, **kwargs)

    def transform_source_example(self, source_example: Image,
                                 source_name: str) -> Any:
        """Return an image that is large enough."""
        example = numpy.asarray(source_example)
        self._verify_image((), [example], source_name)
        return self._enlarge(example)

    def transform_source_batch(self, source_batch: Images,
                               source_name: str) -> list[Any]:
        """Return a list of images that are large enough."""
        images = [numpy.asarray(image) for image in source_batch]
        self._verify_image(('batch',), images, source_name)
        return map_images(
            lambda place: self._enlarge(images[place]), len(images),
            self.num_threads)

    def _verify_image(self, before: tuple[str, ...], images: list[Image],
                      source: str) -> None:
        """Check labels, which may name a channel that images lack."""
        axes = images[0].ndim if images else 3
        labels = stage_of(self.data_stream).labels
        if axes == 2 and as_labels(labels.get(source)) == (
                *before, *IMAGE_AXES):
            axes = 3
        self._verify((*before, *IMAGE_AXES[-axes:]), source, images)

    def _enlarge(self, image: Image) -> Any:
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
    """Return the smallest similar shape that is at least the minimum."""
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
