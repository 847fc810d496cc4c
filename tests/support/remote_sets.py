"""Data sets of remote files, for the checks that run in another process."""
import h5py
import numpy

from fuel import config
from fuel.datasets import H5PYDataset

NUM_EXAMPLES = 10


def write_set(path):
    """Write a source of each kind of reader."""
    rows = numpy.arange(NUM_EXAMPLES * 6).reshape(NUM_EXAMPLES, 3, 2)
    with h5py.File(path, 'w') as file:
        file['plain'] = rows
        file.create_dataset('gzip', data=rows.astype('>i4'),
                            chunks=(3, 3, 2), compression='gzip')
        ragged = file.create_dataset(
            'ragged', (NUM_EXAMPLES,), h5py.vlen_dtype('int32'))
        for number in range(NUM_EXAMPLES):
            ragged[number] = numpy.arange(number % 4)
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': dict.fromkeys(file, (0, NUM_EXAMPLES))})


def open_set(url, folder, memory):
    """Return the data set of such a file.

    Parameters
    ----------
    url : str
    folder : str
        Of the cache on disk, or ``'off'``.
    memory : int
        Bytes that are kept in memory.
    """
    config.remote_cache_path = folder
    config.remote_memory_bytes = memory
    return H5PYDataset(url, ('train',))
