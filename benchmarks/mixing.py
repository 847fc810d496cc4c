"""Mixing streams, packing sequences and computing orders.

Each reference is the fastest plain way of doing the same, or what is mixed
by itself, and stands in full beside the candidate.
"""
import time

import measure
import numpy

from fuel.datasets import IndexableDataset
from fuel.datasets.base import Dataset
from fuel.kernels.draws import draw_order
from fuel.schemes import (
    ComputedBlockShuffledScheme,
    ComputedShuffledScheme,
    SequentialScheme,
    ShuffledExampleScheme,
    ShuffledScheme,
)
from fuel.streams import DataStream
from fuel.transformers import Mix
from fuel.transformers.sequences import Pack

LENGTH = 2048
BATCH = 128
# Sequences that are read at once, and rows of a batch.
AT_ONCE, ROWS = 1000, 8


def pictures(count, size, examples=False):
    """Return a stream of shuffled float32 vectors and targets."""
    dataset = IndexableDataset({
        'x': numpy.zeros((count, size), 'float32'), 'y': numpy.arange(count)})
    return DataStream(dataset, iteration_scheme=(
        ShuffledExampleScheme(count) if examples
        else ShuffledScheme(count, BATCH)))


def mixed(count, size, how, examples=False):
    """Compare two streams that are mixed by weights to one as long."""
    one = pictures(count, size, examples)
    # As many examples, in the same memory, and no stream ends much earlier.
    mix = Mix([pictures(count * share // 4, size, examples)
               for share in (3, 1)], [3, 1], stop='last')

    def reference():
        for batch in one.get_epoch_iterator():  # noqa: B007 (kept)
            pass

    def candidate():
        for batch in mix.get_epoch_iterator():  # noqa: B007 (kept)
            pass

    return measure.compare(reference, candidate, **how)


class Given(Dataset):
    """Sequences in memory, which are handed out as they are."""

    provides_sources = ('tokens',)

    def __init__(self, sequences):
        super().__init__()
        self.sequences = sequences

    def get_data(self, state=None, request=None):
        """Return some of them, not copied."""
        return ([self.sequences[index] for index in request],)


def sequences(count):
    """Return sequences of 10 to 500 tokens."""
    rng = numpy.random.RandomState(0)
    return [rng.randint(0, 50000, length).astype('int32')
            for length in rng.randint(10, 501, count)]


def packing(tokens, how, copied):
    """Compare packing to copying batches of sequences behind each other.

    Both read the same stream, whose data set copies the sequences if
    `copied`; the copy alone is without segments and positions.
    """
    dataset = (IndexableDataset({'tokens': tokens}) if copied
               else Given(tokens))
    stream = DataStream(dataset, iteration_scheme=SequentialScheme(
        len(tokens), AT_ONCE))
    packed = Pack(stream, LENGTH, batch_size=ROWS)

    def reference():
        for batch, in stream.get_epoch_iterator():
            row = numpy.concatenate(batch)
        return row

    def candidate():
        for batch in packed.get_epoch_iterator():  # noqa: B007 (kept)
            pass

    ratio = measure.compare(reference, candidate, **how)
    return ratio, 1 - packed.report.padding_share


def rate_of_a_core(work, seconds):
    """Return how often work was done in a second of this process's time."""
    count, start = 0, time.process_time()
    while True:
        work()
        count += 1
        elapsed = time.process_time() - start
        if elapsed > seconds:
            return count / elapsed


def drawn(count, how):
    """Return how many million indices a second are stored and shuffled."""
    rng = numpy.random.RandomState(1)
    return rate_of_a_core(lambda: draw_order(rng._bit_generator, count),
                          how['seconds']) * count / 10 ** 6


def computed(scheme, how, count):
    """Return how many million indices a second a scheme computes."""
    requests = scheme.get_request_iterator()

    def read():
        if requests.next_compact() is None or (
                requests.position >= count):
            requests.position = 0

    return rate_of_a_core(
        read, how['seconds']) * scheme.batch_size / 10 ** 6


def main():
    """Print the table."""
    options = measure.options(__doc__)
    how, tiny = options.how, options.tiny
    count = 2000 if tiny else 10 ** 5
    rows = []
    for size, examples, what, target in (
            (784, False, 'batches of 128 x 784', 'at least 0.9'),
            (10, False, 'batches of 128 x 10', ''),
            (784, True, 'examples of 784', '')):
        rows.append((f'two streams mixed by weights, {what}, of one stream',
                     str(mixed(count, size, how, examples)), target))
    tokens = sequences(count)
    for copied, what in ((True, 'of a list'), (False, 'not copied before')):
        ratio, share = packing(tokens, how, copied)
        work = (f'{count:,} sequences of 10-500 packed into {LENGTH}, '
                f'{what}, of copying them')
        rows.append((work, str(ratio), 'at least 0.5'))
    rows.append(('share of the rows that is filled', f'{share:.1%}',
                 'at least 95%'))
    size = 10 ** 4 if tiny else 10 ** 9
    for name, scheme, target in (
            ('computed permutation', ComputedShuffledScheme(
                size, 1024), 'at least 10'),
            ('computed permutation by blocks', ComputedBlockShuffledScheme(
                size, 1024, block_size=1000, window=64), '')):
        rows.append((f'{name}, million indices a second a core',
                     f'{computed(scheme, how, size // 1024):.1f}', target))
    rows.append(('stored permutation, million indices a second a core',
                 f'{drawn(10 ** 4 if tiny else 10 ** 7, how):.1f}',
                 'at least 30'))
    measure.print_table(rows)


if __name__ == '__main__':
    main()
