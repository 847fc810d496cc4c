"""The choice of a reader."""
from __future__ import annotations

import logging

import h5py

from fuel.storage.chunk_cache import default_budget
from fuel.storage.decoded import DecodedReader
from fuel.storage.h5py_reader import H5PYReader
from fuel.storage.layout import discover
from fuel.storage.mapped import map_dataset
from fuel.storage.ragged import RaggedReader
from fuel.storage.reader import Reader

logger = logging.getLogger(__name__)


def choose_reader(dataset: h5py.Dataset, cache_bytes: int | None = None,
                  ) -> Reader:
    """Return the fastest reader that a data set's storage allows.

    `dataset`: at least one axis. Its file must stay open while it is read; the
        direct readers survive its end, but HDF5's lock on it does not.
    `cache_bytes`: how many bytes of decoded chunks may be remembered for this
        file, by all its readers in this process together; the largest number
        that one of them asked for counts. The default is the setting
        ``chunk_cache_bytes``.

    Examples
    --------
    >>> import h5py, numpy, os, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, 'a.hdf5')
    >>> with h5py.File(path, 'w') as file:
    ...     file['x'] = numpy.arange(5)
    >>> with h5py.File(path, 'r') as file:
    ...     choose_reader(file['x']).read(numpy.array([4, 0, 4]))
    array([4, 0, 4])
    >>> folder.cleanup()
    """
    layout = discover(dataset)
    try:
        if layout.reader == 'mapped':
            return map_dataset(dataset, layout)
        budget = default_budget() if cache_bytes is None else cache_bytes
        if layout.reader == 'ragged':
            return RaggedReader(dataset, layout, budget)
        if layout.reader == 'decoded':
            return DecodedReader(dataset, layout, budget)
    except ValueError as error:
        layout = layout._replace(obstacle=str(error))
    logger.debug('%s, source %s is read through h5py: %s',
                 dataset.file.filename, dataset.name, layout.obstacle)
    return H5PYReader(dataset, layout)
