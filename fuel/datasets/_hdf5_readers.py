"""Reading rows of one HDF5 data set: any order, any repetition."""
from __future__ import annotations

import functools
from typing import Any, Protocol, TypeAlias

import h5py
import numpy
from numpy.typing import NDArray

from fuel.kernels import native, take

# Absolute rows of a source: one, a range of them, or a list in any order.
Rows: TypeAlias = int | slice | NDArray[numpy.intp]

# A list that covers at least this part of its range is picked from the
# whole range, since HDF5 needs longer to select rows than to read them.
_DENSE = 0.5
# Rows that HDF5 is given to select at once: its time grows faster than
# their number.
_SELECTION = 1000


class SourceReader(Protocol):
    """What reads the rows of one source."""

    def read(self, rows: Rows) -> Any:
        """Return rows as the caller's own.

        Parameters
        ----------
        rows : int, slice or array of intp
            Absolute rows, all of them within the source; an array has any
            order and may repeat rows.

        Returns
        -------
        numpy.ndarray or scalar
            Writable, in native byte order; one example for an int.

        """


def open_reader(dataset: Any, source: str) -> SourceReader:
    """Return what reads the rows of an HDF5 data set.

    Parameters
    ----------
    dataset : h5py.Dataset
    source : str
        The source's name, for the error text.

    Returns
    -------
    SourceReader

    Raises
    ------
    ValueError
        If `dataset` has no rows to read: a group or a scalar.

    """
    if not isinstance(dataset, h5py.Dataset):
        raise ValueError(
            f'source {source!r} is an HDF5 {type(dataset).__name__.lower()}, '
            'which has no rows; a subclass of H5PYDataset that overrides '
            'load and _out_of_memory_get_data may read it')
    if not dataset.shape:
        raise ValueError(
            f'source {source!r} is a scalar; its first axis should count '
            'examples')
    if isinstance(h5py.check_vlen_dtype(dataset.dtype), numpy.dtype):
        return _VariableLengthReader(dataset)
    return _Reader(dataset)


class _Reader:
    """Reads rows of fixed shape, or strings."""

    def __init__(self, dataset: h5py.Dataset) -> None:
        self._dataset = dataset

    def read(self, rows: Rows) -> Any:
        """Return rows as the caller's own; see :class:`SourceReader`."""
        if not isinstance(rows, numpy.ndarray):
            return self._own(self._dataset[rows])
        if (rows[1:] > rows[:-1]).all():
            return self._read_increasing(rows)
        unique, places = numpy.unique(rows, return_inverse=True)
        return copy_objects(take(self._read_increasing(unique), places))

    def _read_increasing(self, rows: NDArray[numpy.intp]) -> NDArray[Any]:
        first, last = int(rows[0]), int(rows[-1])
        length = last - first + 1
        if len(rows) >= _DENSE * length:
            data: NDArray[Any] = self._own(self._dataset[first:last + 1])
            return data if len(rows) == length else take(data, rows - first)
        parts: list[NDArray[Any]] = [
            self._own(self._dataset[rows[start:start + _SELECTION]])
            for start in range(0, len(rows), _SELECTION)]
        return parts[0] if len(parts) == 1 else numpy.concatenate(parts)

    def _own(self, data: Any) -> Any:
        return native(data) if isinstance(data, numpy.ndarray) else data


class _VariableLengthReader(_Reader):
    """Reads rows that are arrays of different lengths."""

    def __init__(self, dataset: h5py.Dataset) -> None:
        super().__init__(dataset)
        self._swapped = (
            not h5py.check_vlen_dtype(dataset.dtype).isnative
            and _h5py_forgets_byte_order())

    def _own(self, data: Any) -> Any:
        if data.dtype != object:
            return self._own_element(data)
        # A plain object array, without h5py's note of the elements' type.
        result = numpy.empty(len(data), dtype=object)
        for place, element in enumerate(data):
            result[place] = self._own_element(element)
        return result

    def _own_element(self, element: NDArray[Any]) -> NDArray[Any]:
        return element.byteswap() if self._swapped else native(element)


def copy_objects(array: NDArray[Any]) -> NDArray[Any]:
    """Replace the arrays in an array of objects by copies of them.

    Parameters
    ----------
    array : numpy.ndarray
        Changed in place, if its dtype is object.

    Returns
    -------
    numpy.ndarray
        `array`.

    """
    if array.dtype == object:
        for place, element in enumerate(array):
            if isinstance(element, numpy.ndarray):
                array[place] = element.copy()
    return array


@functools.cache
def _h5py_forgets_byte_order() -> bool:
    """Whether h5py returns big-endian elements of variable length as they
    are in the file, under a native type (h5py 3.16 does)."""
    foreign = numpy.dtype(numpy.int16).newbyteorder('S')
    with h5py.File('probe', 'w', driver='core', backing_store=False) as file:
        file.create_dataset('x', (1,), dtype=h5py.vlen_dtype(foreign))
        file['x'][0] = numpy.array([1], dtype=numpy.int16)
        return int(file['x'][0][0]) != 1
