"""Shuffled batches of Parquet files, beside PyArrow's own read.

The reference reads the rows of the same batches, each in sorted order, which
is the fastest for it: ``pyarrow.dataset.dataset(path).take(rows)``. Needs
PyArrow.
"""
import os
import tempfile

import measure
import numpy
import pyarrow
import pyarrow.dataset
import pyarrow.parquet

from fuel.interop.arrow import ArrowDataset
from fuel.schemes import ShuffledScheme
from fuel.streams import DataStream

BATCH = 128


def write(path, count, width):
    """Write features and targets, compressed, in ten row groups."""
    rng = numpy.random.RandomState(0)
    features = rng.randint(0, 99, count * width).astype('float32')
    pyarrow.parquet.write_table(pyarrow.table({
        'features': pyarrow.FixedSizeListArray.from_arrays(
            pyarrow.array(features), width),
        'targets': rng.randint(0, 9, count)}), path,
        row_group_size=count // 10)


def batches(count, number):
    """Return the first batches of a shuffled order."""
    order = numpy.random.RandomState(1).permutation(count)
    return [order[BATCH * place:BATCH * (place + 1)]
            for place in range(number)]


def ratio(path, count, number, how, **kwargs):
    """Return the speed of Fuel as a multiple of PyArrow's."""
    rows = batches(count, number)
    table = pyarrow.dataset.dataset(path)
    dataset = ArrowDataset(path, **kwargs)

    def library():
        for batch in rows:
            taken = table.take(pyarrow.array(numpy.sort(batch)))
            taken['targets'].to_numpy()
            taken['features'].combine_chunks().flatten().to_numpy()

    def fuel():
        examples = numpy.concatenate(rows)
        stream = DataStream(dataset, iteration_scheme=ShuffledScheme(
            examples.tolist(), BATCH))
        for _ in stream.get_epoch_iterator():
            pass

    return measure.compare(library, fuel, **how)


def cold_ratio(path, count, number, how):
    """Return the same of data sets that are opened each time."""
    rows = batches(count, number)

    def library():
        for batch in rows:
            pyarrow.dataset.dataset(path).take(
                pyarrow.array(numpy.sort(batch)))

    def fuel():
        dataset = ArrowDataset(path)
        for batch in rows:
            dataset.get_data(None, batch)
        dataset.close(None)

    return measure.compare(library, fuel, **how)


def main():
    """Print the table."""
    options = measure.options(__doc__)
    count, width = (1000, 8) if options.tiny else (50_000, 128)
    number = 2 if options.tiny else 20
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'data.parquet')
        write(path, count, width)
        rows = [
            ('shuffled batches, decoded rows fit in the cache',
             ratio(path, count, number, options.how), 'at least 0.9'),
            ('the same, opened anew for each 20 batches',
             cold_ratio(path, count, number, options.how), 'at least 0.9'),
            ('shuffled batches, cache of three row groups',
             ratio(path, count, 2, options.how,
                   cache_bytes=count * (4 * width + 8) // 3),
             '(random rows of a file larger than the cache)')]
    measure.print_table([(name, str(value), target)
                         for name, value, target in rows])


if __name__ == '__main__':
    main()
