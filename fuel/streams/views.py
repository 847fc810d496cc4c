"""Streams as data sets: what makes one is registered by `fuel.datasets`."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

_makers: list[Callable[[Any], Any]] = []


def register(maker: Callable[[Any], Any]) -> None:
    """Let a class make the data sets of streams."""
    _makers[:] = [maker]


class Viewable:
    """Base of the streams that can be looked at by number."""

    def as_dataset(self) -> Any:
        """Return the data set of what the pipeline makes of each example.

        It has the examples of the data set at its bottom, in their order,
        and takes a number, a slice or a list of numbers; the stages are
        applied to what is asked for. So it goes where a data set goes: under
        a stream of another scheme, or to a loader that indexes.

        Returns
        -------
        StreamDataset

        Raises
        ------
        ValueError
            If a stage does not make one item of one, or draws from an
            `rng`.
        TypeError
            If the data set is read in order.

        Examples
        --------
        >>> import numpy
        >>> from fuel.datasets import IndexableDataset
        >>> from fuel.streams import DataStream
        >>> from fuel.transformers import ScaleAndShift
        >>> stream = ScaleAndShift(DataStream(
        ...     IndexableDataset(numpy.arange(5.)), batch_size=2), 10., 1.)
        >>> scaled = stream.as_dataset()
        >>> len(scaled), scaled[[4, 0]]
        (5, (array([41.,  1.]),))
        """
        if not _makers:
            raise TypeError(
                f'{type(self).__name__} reads no data set of Fuel: put the '
                'data into one of fuel.datasets')
        return _makers[0](self)
