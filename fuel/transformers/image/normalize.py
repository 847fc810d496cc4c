"""A stage that normalizes pixels."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

import numpy
from numpy.typing import ArrayLike, DTypeLike, NDArray

from fuel.describe.source_types import SourceType
from fuel.kernels import convert_images
from fuel.transformers.dtypes import as_dtype
from fuel.transformers.image.base import (Images, ImageStage, is_stacked,
                                          map_images)
from fuel.transformers.options import ImageOptions
from fuel.typing import StreamLike


class Normalize(ImageStage):
    """Scales pixels, subtracts a mean and divides by a deviation.

    The result is ``(image * scale - mean) / deviation``, made in one pass
    over the memory.

    Parameters
    ----------
    mean : float or sequence of float, optional
        One number for all channels, or one for each channel. Defaults to 0.
    deviation : float or sequence of float, optional
        One number for all channels, or one for each channel. Defaults to 1.
    scale : float, optional
        Factor of the pixels, applied first, such as ``1 / 255``. Defaults
        to 1.
    dtype : {'floatX', 'float32', 'float64'}, optional
        Type of the results. Defaults to ``'floatX'``, the value of
        ``config.floatX`` when the stage is built.
    num_threads, produces_examples, which_sources, iteration_scheme
        See :mod:`fuel.transformers`.
    axis_labels
        See :mod:`fuel.transformers`.

    Raises
    ------
    ValueError
        If an argument is invalid; when data are requested, if an example is
        not an image, or if `mean` or `deviation` has numbers for another
        number of channels.

    Notes
    -----
    Images have the axes (channel, height, width) and are booleans, integers
    or floats. A batch keeps its form. The results are computed in `dtype`,
    with one factor and one summand for each channel.

    Examples
    --------
    >>> import numpy
    >>> from fuel.datasets import IterableDataset
    >>> from fuel.streams import DataStream
    >>> image = numpy.array([[[0, 255]]], dtype='uint8')
    >>> stream = DataStream(IterableDataset([image]))
    >>> numbers = Normalize(stream, mean=.5, deviation=.25, scale=1 / 255)
    >>> next(numbers.get_epoch_iterator())
    (array([[[-2.,  2.]]]),)
    """

    pure = True
    keeps_rows = True

    instead_of: Mapping[str, str] = {'std': 'its name is deviation=...'}

    def __init__(self, data_stream: StreamLike, mean: ArrayLike = 0.,
                 deviation: ArrayLike = 1., scale: float = 1.,
                 dtype: DTypeLike = 'floatX',
                 **kwargs: Unpack[ImageOptions]) -> None:
        self.mean = numpy.asarray(mean, dtype=numpy.float64)
        self.deviation = numpy.asarray(deviation, dtype=numpy.float64)
        self.scale = float(scale)
        if self.mean.ndim > 1 or self.deviation.ndim > 1:
            raise ValueError(
                'mean and deviation must be one number or one for each '
                f'channel, got the shapes {self.mean.shape} and '
                f'{self.deviation.shape}')
        if not (self.deviation > 0).all():
            raise ValueError('deviation must be positive, got '
                             f'{self.deviation.tolist()}')
        self.dtype = as_dtype(dtype)
        if self.dtype not in ('float32', 'float64'):
            raise ValueError('dtype must be float32 or float64, got '
                             f'{self.dtype}: put Cast behind this stage')
        super().__init__(data_stream, **kwargs)

    def type_after(self, known: SourceType, source_name: str) -> SourceType:
        """Return the type of the results."""
        return known._replace(dtype=self.dtype)

    def _transform(self, images: Images, source_name: str) -> Any:
        if is_stacked(images):
            return self._normalize(images)
        return map_images(
            lambda place: self._normalize(images[place][numpy.newaxis])[0],
            len(images), self.num_threads)

    def _normalize(self, images: NDArray[Any]) -> Any:
        channels = images.shape[1]
        for name in ('mean', 'deviation'):
            values = getattr(self, name)
            if values.ndim and len(values) != channels:
                raise ValueError(
                    f'{name} has {len(values)} numbers, but the images have '
                    f'{channels} channels: give one number or {channels}')
        return convert_images(
            images, self.scale / self.deviation, -self.mean / self.deviation,
            self.dtype, num_threads=self.num_threads)
