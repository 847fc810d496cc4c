"""A stage that resizes images to a fixed size."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from fuel.transformers.image.base import Image
from fuel.transformers.image.fixed_size import FixedSizeStage
from fuel.transformers.image.resampling import (RESIZE_FILTERS, check_filter,
                                                resize_image)
from fuel.typing import StreamLike


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
