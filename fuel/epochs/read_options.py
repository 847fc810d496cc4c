"""Options of an epoch that its stages agree on with the data set."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy

__all__ = ['Conversion', 'ReadOptions']


class Conversion(NamedTuple):
    """A conversion of one source that is done while its data are read.

    Attributes
    ----------
    dtype : numpy.dtype
        Type of the result.
    scale, shift : float or None
        The result is ``data * scale + shift``, computed in doubles and
        rounded once.  None if the data are only cast.
    """

    dtype: numpy.dtype[Any]
    scale: float | None = None
    shift: float | None = None


class ReadOptions(NamedTuple):
    """Wishes of the stages that read an epoch of a data set.

    A reader that fulfils one names the source in its attribute
    ``converted``; the stages do what is left.

    Attributes
    ----------
    conversions : mapping of str to Conversion
        By names of the data set's sources.
    """

    conversions: Mapping[str, Conversion] = {}
