"""What there is to tell of a data set's storage."""
from __future__ import annotations

from dataclasses import dataclass

import h5py

from fuel.storage.layout import discover


@dataclass(frozen=True)
class Description:
    """How a data set is stored, in words and numbers.

    Attributes
    ----------
    storage : str
        ``'contiguous'``, ``'chunked'``, ``'compact'``, ``'virtual'`` or
        ``'external'``.
    chunk_shape : tuple of int or None
        None unless chunked.
    filters : tuple of str
        Such as ``('shuffle', 'gzip 4')``, in the order in which they were
        applied.
    stored_nbytes, decoded_nbytes : int
        Bytes in the file, and of the array that comes out. Without the
        elements' own memory where they have variable length.
    reader : str
        ``'mapped'``, ``'ragged'``, ``'decoded'`` or ``'h5py'``: how Fuel
        reads it.
    obstacle : str
        Why it is read through h5py; empty if it is not.
    """

    storage: str
    chunk_shape: tuple[int, ...] | None
    filters: tuple[str, ...]
    stored_nbytes: int
    decoded_nbytes: int
    reader: str
    obstacle: str

    def __str__(self) -> str:
        parts = [self.storage]
        if self.chunk_shape is not None:
            parts[0] += f' {self.chunk_shape}'
        parts.append(' + '.join(self.filters) or 'no filter')
        parts.append(f'{self.stored_nbytes} bytes stored, '
                     f'{self.decoded_nbytes} decoded')
        parts.append(f'read by h5py: {self.obstacle}' if self.obstacle
                     else f'read directly ({self.reader})')
        return ', '.join(parts)


def describe(dataset: h5py.Dataset) -> Description:
    """Tell how a data set is stored and how Fuel would read it.

    Returns
    -------
    Description
        ``str`` of it is one line for people.

    Examples
    --------
    >>> import h5py, numpy, os, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, 'a.hdf5')
    >>> with h5py.File(path, 'w') as file:
    ...     x = file.create_dataset('x', data=numpy.zeros((6, 4)),
    ...                             chunks=(2, 4))
    >>> with h5py.File(path, 'r') as file:
    ...     print(describe(file['x']))
    chunked (2, 4), no filter, 192 bytes stored, 192 decoded, read \
directly (mapped)
    >>> folder.cleanup()
    """
    layout = discover(dataset)
    size = dataset.size or 0
    return Description(
        layout.storage, layout.chunk_shape,
        tuple(one.description for one in layout.filters),
        int(dataset.id.get_storage_size()), size * dataset.dtype.itemsize,
        layout.reader, layout.obstacle)
