"""Ranks that share an epoch, beside one stream that has it all.

The reference of the first rows is the same stream, not sharded, batch for
batch: ranks do not pay for what others read.
"""
import json
import tempfile
import time
from itertools import islice
from pathlib import Path

import measure
import numpy
from foundation import write_images

from fuel.datasets import H5PYDataset, IndexableDataset
from fuel.schemes import ShuffledExampleScheme, ShuffledScheme
from fuel.streams import DataStream
from fuel.transformers import Cast, FilterSources, Rename, ScaleAndShift
from fuel.transformers.image import RandomFixedSizeCrop

BATCH = 128
RANKS = 4


def compare_ranks(build, how, ranks=range(RANKS)):
    """Return a batch's speed on the slowest rank, without drawing orders."""
    ratios = []
    for rank in ranks:
        whole, share = build(), build().shard(rank, RANKS)
        found = []
        for _ in range(how['rounds'] + 1):
            seconds, batches = [0., 0.], [0, 0]
            while min(seconds) <= how['seconds']:
                for place, stream in enumerate((whole, share)):
                    # Of both as many, so that both begin as often.
                    epoch = islice(stream.get_epoch_iterator(), len(share))
                    start = time.perf_counter()
                    for batch in epoch:  # noqa: B007 (kept, as in a loop)
                        batches[place] += 1
                    seconds[place] += time.perf_counter() - start
            found.append(batches[1] / seconds[1] * seconds[0] / batches[0])
        found = sorted(found[1:] or found)
        ratios.append(measure.Ratio(
            found[len(found) // 2], found[0], found[-1]))
    return min(ratios)


def state_cost(build, num_stages, how, ranks=RANKS):
    """Return the microseconds of a state after each batch, for a stage."""
    stream = build().shard(0, ranks) if ranks else build()
    costs = []
    for _ in range(how['rounds']):
        spent = count = 0
        for _ in stream.get_epoch_iterator():
            start = time.process_time()
            stream.state_dict()
            spent += time.process_time() - start
            count += 1
        costs.append(spent / count)
    return f'{sorted(costs)[len(costs) // 2] / num_stages * 1e6:.0f}'


class Counting(IndexableDataset):
    """Counts the examples that are read."""

    count = 0

    def get_data(self, state=None, request=None):
        """Read examples."""
        self.count += len(request)
        return super().get_data(state, request)


def resume(count):
    """Return the seconds to the first batch on another number of ranks.

    And how many examples were read for it, of those of one batch.
    """
    data = numpy.arange(count)

    def build():
        return DataStream(Counting(data),
                          iteration_scheme=ShuffledScheme(count, BATCH))

    stream = build().shard(1, RANKS)
    epoch = stream.get_epoch_iterator()
    next(epoch)
    epoch.request_iterator.advance(count // BATCH // 2 // RANKS * RANKS)
    epoch.epoch.position = epoch.request_iterator.position
    text = json.dumps(stream.state_dict())
    start = time.perf_counter()
    other = build().shard(2, 3)
    other.load_state_dict(json.loads(text))
    next(other.get_epoch_iterator())
    return time.perf_counter() - start, other.dataset.count / BATCH


def main():
    """Print the table."""
    arguments = measure.options(__doc__)
    how, tiny = arguments.how, arguments.tiny
    count, many = (2000, 10 ** 4) if tiny else (50_000, 10 ** 7)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / 'images.hdf5'
        features, targets = write_images(path, count)

        def in_memory():
            return DataStream(
                IndexableDataset({'x': features, 'y': targets}),
                iteration_scheme=ShuffledScheme(count, BATCH))

        def small():
            return DataStream(IndexableDataset(
                {'x': numpy.ones((count, 10)), 'y': targets}),
                iteration_scheme=ShuffledScheme(count, 32))

        def examples():
            return DataStream(
                IndexableDataset({'x': features, 'y': targets}),
                iteration_scheme=ShuffledExampleScheme(count))

        def staged():
            stream = ScaleAndShift(in_memory(), 1 / 255, 0,
                                   which_sources=('x',))
            stream = Cast(stream, 'float32', which_sources=('x',))
            return FilterSources(Rename(stream, {'x': 'z'}), ('z', 'y'))

        def drawing():
            labels = {'image': ('batch', 'channel', 'height', 'width')}
            return RandomFixedSizeCrop(DataStream(
                IndexableDataset({'image': features}, axis_labels=labels),
                batch_size=BATCH), (24, 24))

        def in_order():
            return Rename(DataStream(
                IndexableDataset({'x': features, 'y': targets}),
                batch_size=BATCH), {'x': 'z'})

        with H5PYDataset(path, ('train',)) as dataset:
            from_file = compare_ranks(lambda: DataStream(
                dataset, iteration_scheme=ShuffledScheme(count, BATCH)), how)
        seconds, batches = resume(many)
        measure.print_table([
            ("a batch of one of 4 ranks from memory, of the whole stream's",
             compare_ranks(in_memory, how), 'at least 0.95'),
            ('... from a contiguous HDF5 file', from_file, 'at least 0.95'),
            ('... of 32 x 10 floats', compare_ranks(small, how, [1]), ''),
            ('... behind four stages', compare_ranks(staged, how, [1]), ''),
            ('... a single example', compare_ranks(examples, how, [1]), ''),
            ('state_dict after a batch, of five stages, microseconds a stage',
             state_cost(staged, 5, how), 'at most 50, with a RandomState'),
            ('... of two stages, one drawing from a RandomState',
             state_cost(drawing, 2, how, 0), 'at most 50'),
            ('... of two stages without a RandomState',
             state_cost(in_order, 2, how), 'at most 20'),
            (f'first batch of {many:.0e} resumed in the middle on 3 ranks',
             f'{seconds:.2f} s', 'at most 1 s'),
            ('... examples read for it, of those of a batch',
             f'{batches:.0f}', 'at most 1')])


if __name__ == '__main__':
    main()
