"""A stage that crops the middle of images."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy
from numpy.typing import NDArray

from fuel.kernels import crop_windows
from fuel.transformers.image.base import Image
from fuel.transformers.image.fixed_size import FixedSizeStage
from fuel.typing import StreamLike


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
