"""Small shuffled batches of other formats, beside those of HDF5.

Two columns of 50,000 rows are all in memory after the first epoch:
the reference reads the same batches of 32 from a contiguous HDF5 file. First
epochs over 200 MB, shuffled by blocks, beside the time of pyarrow and zarr to
decode the files on all cores. Parquet needs pyarrow, Zarr zarr.
"""
import itertools
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor

import h5py
import measure
import numpy

from fuel.datasets import HDF5Dataset, NPYDataset
from fuel.schemes import BlockShuffledScheme, ShuffledScheme
from fuel.streams import DataStream

BATCH = 32
WIDTH = 16
# First epochs are measured over larger files: opening them counts little.
LARGE_BATCH = 128
LARGE_WIDTH = 128


def write_whole(folder, x, y):
    """Write two columns as HDF5 and NumPy do; return how each is opened.

    Parameters
    ----------
    folder : str
    x, y : numpy.ndarray

    Returns
    -------
    datasets : dict of callable
        By the name of the format.

    """
    def path(name):
        return os.path.join(folder, name)

    with h5py.File(path('a.h5'), 'w') as file:
        file['x'], file['y'] = x, y
    numpy.savez_compressed(path('a.npz'), x=x, y=y)
    return {'HDF5': lambda: HDF5Dataset(path('a.h5'), ['x', 'y']),
            'compressed npz': lambda: NPYDataset(path('a.npz'))}


def write_groups(folder, x, y, group):
    """Write two columns in groups of rows; return how each format is opened.

    Parameters
    ----------
    folder : str
    x, y : numpy.ndarray
    group : int
        Rows of a row group, and of a chunk.

    Returns
    -------
    datasets, decoders : dict of callable
        By the name of the format. A decoder decodes all, on all cores.

    """
    def path(name):
        return os.path.join(folder, name)

    datasets, decoders = {}, {}
    try:
        import pyarrow.parquet

        from fuel.interop.arrow import ArrowDataset
        pyarrow.parquet.write_table(pyarrow.table({
            'x': pyarrow.FixedSizeListArray.from_arrays(
                x.reshape(-1), x.shape[1]), 'y': y}),
            path('a.parquet'), row_group_size=group)
        datasets['Parquet'] = lambda: ArrowDataset(path('a.parquet'))
        decoders['Parquet'] = lambda: pyarrow.parquet.read_table(
            path('a.parquet'))
    except ImportError:
        print('pyarrow is not installed: Parquet is not measured')
    try:
        import zarr

        from fuel.interop.zarr import ZarrDataset
        root = zarr.open_group(path('a.zarr'), mode='w')
        for name, array in (('x', x), ('y', y)):
            root.create_array(name, data=array,
                              chunks=(group, *array.shape[1:]))
        datasets['Zarr'] = lambda: ZarrDataset(path('a.zarr'))

        def decode():
            arrays = [found for _, found in zarr.open_group(
                path('a.zarr'), mode='r').arrays()]
            with ThreadPoolExecutor() as pool:
                list(pool.map(
                    lambda work: work[0][work[1]:work[1] + group],
                    itertools.product(arrays, range(0, len(x), group))))

        decoders['Zarr'] = decode
    except ImportError:
        print('zarr is not installed: Zarr is not measured')
    return datasets, decoders


def epoch(dataset, scheme):
    """Read an epoch of a data set.

    Parameters
    ----------
    dataset : Dataset
    scheme : IterationScheme

    """
    for _ in DataStream(dataset, iteration_scheme=scheme,
                        ).get_epoch_iterator():
        pass


def main():
    """Print the table."""
    options = measure.options(__doc__)
    count, group = (2000, 500) if options.tiny else (50_000, 5000)
    rng = numpy.random.RandomState(0)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        columns = rng.rand(count, WIDTH).astype('f4'), numpy.arange(count)
        openers = {**write_whole(folder, *columns),
                   **write_groups(folder, *columns, group)[0]}
        datasets = {name: opener() for name, opener in openers.items()}
        shuffled = ShuffledScheme(count, BATCH)
        for name, dataset in datasets.items():
            if name != 'HDF5':
                rows.append((
                    f'{name}, rows in memory, of HDF5',
                    str(measure.compare(
                        lambda: epoch(datasets['HDF5'], shuffled),
                        lambda dataset=dataset: epoch(dataset, shuffled),
                        **options.how)), 'at least 0.9'))
        datasets.clear()
        count, group = (2000, 500) if options.tiny else (400_000, 20_000)
        openers, decoders = write_groups(
            folder, rng.rand(count, LARGE_WIDTH).astype('f4'),
            numpy.arange(count), group)
        blocks = BlockShuffledScheme(count, LARGE_BATCH, block_size=group,
                                     window=2)
        for name, decode in decoders.items():
            rows.append((
                f'{name}, first epoch by blocks, of decoding on all cores',
                str(measure.compare(
                    decode, lambda name=name: epoch(openers[name](), blocks),
                    **options.how)), 'at least 0.8'))
    measure.print_table(rows)
    measure.print_versions('h5py', 'pyarrow', 'zarr')


if __name__ == '__main__':
    main()
