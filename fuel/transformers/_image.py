"""The cropping function of Fuel 0.2.0, under its old name."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from fuel.kernels import crop_windows

__all__ = ['window_batch_bchw']


def window_batch_bchw(batch: NDArray[Any], height_offsets: Sequence[int],
                      width_offsets: Sequence[int], out: NDArray[Any]) -> None:
    """Copy one window of each image of a batch.

    `height_offsets`, `width_offsets`: shape (batch,); the first row and the
        first column of each window.
    `out`: the array to write to, of shape (batch, channel, rows, columns) and
        of the dtype of `batch`.

    Examples
    --------
    >>> import numpy
    >>> batch = numpy.arange(9).reshape(1, 1, 3, 3)
    >>> out = numpy.empty((1, 1, 2, 2), batch.dtype)
    >>> window_batch_bchw(batch, [1], [0], out)
    >>> out
    array([[[[3, 4],
             [6, 7]]]])
    """
    crop_windows(batch, height_offsets, width_offsets, out=out)
