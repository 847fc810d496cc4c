"""Shuffled batches of Zarr arrays, beside Zarr's own read.

The reference reads the rows of the same batches, each in sorted order, which
is the fastest for it: ``array.oindex[rows]``. Needs Zarr.
"""
import os
import tempfile

import measure
import numpy
import zarr

from fuel.interop.zarr import ZarrDataset
from fuel.schemes import ShuffledScheme
from fuel.streams import DataStream

BATCH = 128


def main():
    """Print the table."""
    options = measure.options(__doc__)
    count = 1000 if options.tiny else 20_000
    number = 2 if options.tiny else 10
    rng = numpy.random.RandomState(0)
    images = rng.randint(0, 9, (count, 3, 16, 16)).astype('uint8')
    order = rng.permutation(count)[:BATCH * number].tolist()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'data.zarr')
        group = zarr.open_group(path, mode='w')
        group.create_array('images', data=images, chunks=(500, 3, 16, 16))
        array = zarr.open_group(path, mode='r')['images']

        def library():
            for start in range(0, len(order), BATCH):
                array.oindex[numpy.sort(order[start:start + BATCH])]

        def read(dataset):
            stream = DataStream(dataset, iteration_scheme=ShuffledScheme(
                order, BATCH))
            for _ in stream.get_epoch_iterator():
                pass

        warm = ZarrDataset(path)
        rows.append((
            'shuffled batches, decoded rows fit in the cache',
            str(measure.compare(library, lambda: read(warm), **options.how)),
            'at least 0.9'))
        rows.append((
            f'the same, opened anew for each {number} batches',
            str(measure.compare(library, lambda: read(ZarrDataset(path)),
                                **options.how)), 'at least 0.9'))
    measure.print_table(rows)


if __name__ == '__main__':
    main()
