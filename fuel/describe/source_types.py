"""Types and shapes of sources that are known before data are read."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple, TypeAlias

import numpy

from fuel.epochs.stage import stage_of
from fuel.schemes.iteration_scheme import shard_of


class SourceType(NamedTuple):
    """Type and shape of one source of an example or a batch.

    Parameters
    ----------
    dtype : numpy.dtype or None
        Type of the data; None if it is not known.
    shape : tuple of (int or None), optional
        Length of each axis.  The length is None if it is not known, or
        differs from item to item.  Defaults to None: not even the number of
        axes is known.
    is_sparse : bool, optional
        Whether the data are sparse.  The shape is then the shape of the same
        data as a dense array, ``(columns,)`` for an example.  Defaults to
        False.
    """

    dtype: numpy.dtype[Any] | None
    shape: tuple[int | None, ...] | None = None
    is_sparse: bool = False

    def in_batches(self, size: int | None) -> SourceType:
        """Return the type of batches whose examples have this type."""
        shape = None if self.shape is None else (size, *self.shape)
        return self._replace(shape=shape)

    def example(self) -> SourceType:
        """Return the type of the examples in batches of this type."""
        return self._replace(shape=self.shape and self.shape[1:])

    def kept(self, keeps: AbstractSet[str]) -> SourceType | None:
        """Return the type downstream of a stage that keeps some properties.

        `keeps`: the properties that the stage keeps, such as ``'dtype'`` and
            ``'shape'``.

        Returns: None if neither dtype nor shape is known.
        """
        dtype = self.dtype if 'dtype' in keeps else None
        shape = self.shape if 'shape' in keeps else None
        # Not `dtype == None`: NumPy takes None for float64 in comparisons.
        return (None if dtype is None and shape is None
                else self._replace(dtype=dtype, shape=shape))

    def in_part(self, part: Callable[[int], slice]) -> SourceType:
        """Return the type of a rank's part of batches of this type.

        `part`: function that takes the number of rows of a batch, and returns
            the slice with the rows of the rank.
        """
        if not self.shape or self.shape[0] is None:
            return self
        rows = part(self.shape[0])
        return self.example().in_batches(rows.stop - rows.start)


#: A mapping from names of sources to types; sources of unknown type are left
#: out.
SourceTypes: TypeAlias = 'Mapping[str, SourceType]'


def type_of_rows(rows: object) -> SourceType | None:
    """Return the type of an array's examples; None for other objects."""
    if isinstance(rows, numpy.ndarray) and rows.ndim:
        shape = None if rows.dtype.hasobject else rows.shape[1:]
        return SourceType(rows.dtype.newbyteorder('='), shape)
    return None


def types_of(stream: Any) -> SourceTypes:
    """Return the known types of the sources of a stream.

    If ranks split each batch, the lengths of batches are those of the rank's
    parts.
    """
    types: SourceTypes = getattr(stream, 'known_types', dict)()
    stage = stage_of(stream)
    shard = stage.own_shard or shard_of(stage.scheme)
    if shard is None or not shard.splits:
        return types
    return {source: known.in_part(shard.part)
            for source, known in types.items()}
