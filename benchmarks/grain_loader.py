"""Fuel beside Grain, on the same arrays and the same HDF5 file.

Both deliver shuffled batches of 128 images of 3 KB. The reference is the best
of four ways to use Grain: batches made of its map or of its iterator, without
threads or with 16. Needs Grain.
"""
import os
import tempfile
from functools import partial

import grain
import h5py
import measure
import numpy

from fuel.datasets import H5PYDataset, IndexableDataset
from fuel.streams import DataStream

BATCH, SHAPE = 128, (3, 32, 32)


class Examples:
    """Examples of arrays, or of an HDF5 file, by their number."""

    def __init__(self, features, targets):
        self.features, self.targets = features, targets

    def __len__(self):
        return len(self.targets)

    def __getitem__(self, index):
        return self.features[index], self.targets[index]


def read(batches):
    """Read an epoch."""
    for _ in batches:
        pass


def in_grain(source, num_threads, batch_map):
    """Return batches of an epoch of Grain."""
    examples = grain.MapDataset.source(source).shuffle(seed=1)
    options = grain.ReadOptions(
        num_threads=num_threads, prefetch_buffer_size=0 if not num_threads
        else num_threads if batch_map else BATCH)
    if batch_map:
        return examples.batch(BATCH).to_iter_dataset(options)
    return examples.to_iter_dataset(options).batch(BATCH)


def ratio(source, dataset, how):
    """Return the speed of Fuel as a multiple of Grain's best."""
    stream = DataStream(dataset, batch_size=BATCH, shuffle=True)
    best = max((in_grain(source, threads, batch_map)
                for threads in (0, 16) for batch_map in (False, True)),
               key=lambda one: measure.rate(partial(read, one),
                                            how['seconds'] / 5))
    return measure.compare(partial(read, best), partial(read, stream), **how)


def main():
    """Print the table."""
    arguments = measure.options(__doc__)
    count = 256 if arguments.tiny else 5000
    random = numpy.random.RandomState(0)
    data = {'features': random.randint(0, 256, (count, *SHAPE), 'uint8'),
            'targets': random.randint(0, 10, count)}
    rows = [('arrays in memory', ratio(
        Examples(**data), IndexableDataset(data), arguments.how),
        'at least 10')]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'images.hdf5')
        with h5py.File(path, 'w') as file:
            for source, values in data.items():
                file[source] = values
            file.attrs['split'] = H5PYDataset.create_split_array({
                'train': dict.fromkeys(data, (0, count))})
        with h5py.File(path) as file:
            rows.append(('contiguous HDF5 file, of h5py in Grain', ratio(
                Examples(file['features'], data['targets']),
                H5PYDataset(path, ('train',)), arguments.how), 'at least 10'))
    measure.print_table(rows)
    measure.print_versions('h5py', 'grain')


if __name__ == '__main__':
    main()
