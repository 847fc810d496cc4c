"""Options that the stages of an epoch request of the data set's reader."""
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
    """Options that stages request of the reader of a data set.

    A reader that converts a source names this source in its attribute
    ``converted``. The stages convert the other sources themselves.

    Attributes
    ----------
    conversions : mapping of str to Conversion
        The requested conversions, by the names of the data set's sources.
    """

    conversions: Mapping[str, Conversion] = {}
