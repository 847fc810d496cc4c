"""Questions to an order: times of answers, and calls of an epoch around them.

Computed orders of 10^12 examples are asked both ways; drawn orders of a
million are asked once, and then again.
"""
import itertools
import statistics
import time

import measure
import numpy

from fuel.datasets import IndexableDataset
from fuel.schemes import (
    ComputedBlockShuffledScheme,
    ComputedShuffledExampleScheme,
    ComputedShuffledScheme,
    ConstantScheme,
    SequentialScheme,
    ShuffledScheme,
)
from fuel.streams import DataStream
from fuel.transformers import (
    BalancedBatches,
    Batch,
    Cast,
    Merge,
    Mix,
    Take,
    Unpack,
)

BATCH = 128


def stream_of(scheme, count):
    """Return a stream over many examples; none of them is read here."""
    return DataStream(IndexableDataset({'x': range(count)}),
                      iteration_scheme=scheme)


def computed(count):
    """Return pipelines whose orders are computed, by name."""
    def shuffled(part=1):
        size = count // part
        return stream_of(
            ComputedShuffledScheme(size, BATCH, seed=part), size)

    def examples(seed):
        return stream_of(
            ComputedShuffledExampleScheme(count, seed=seed), count)

    def in_windows(seed):
        return stream_of(ComputedBlockShuffledScheme(
            count, BATCH, block_size=8000, window=8, seed=seed), count)

    return {
        'sequential': stream_of(SequentialScheme(count, BATCH), count),
        'shuffled': shuffled(),
        'shuffled by blocks': stream_of(ComputedBlockShuffledScheme(
            count, BATCH, block_size=1000, seed=1), count),
        'Batch over examples': Batch(examples(1), ConstantScheme(BATCH)),
        'Mix of batches': Mix([shuffled(), shuffled(3), shuffled(5)],
                              weights=[5, 3, 2], seed=1, stop='last'),
        'Batch over Mix of examples': Batch(
            Mix([examples(1), examples(2)], weights=[5, 3], seed=1,
                stop='first'), ConstantScheme(BATCH)),
        'Merge of windows of 64,000': Merge(
            [in_windows(1), in_windows(2)], ('first', 'second')),
        'Take, Unpack, Cast': Cast(Unpack(Take(
            shuffled(), count // BATCH)), 'float32'),
        'rank 3 of 8': shuffled().shard(3, 8)}


def times(ask, questions):
    """Return the median time of an answer in microseconds, after the first,
    and the time of the first."""
    found = []
    for question in questions:
        start = time.perf_counter()
        ask(question)
        found.append((time.perf_counter() - start) * 1e6)
    return statistics.median(found[1:]), found[0]


def ask_computed(count, questions):
    """Return a row for each computed order: of items, and of places."""
    rows = []
    for name, stream in computed(count).items():
        order = stream.order
        items = [len(order) * number // (questions + 1)
                 for number in range(1, questions + 1)]
        found, first = times(lambda item, order=order: order[item], items)
        rows.append((f'order[n] of {count:.0e}, {name}',
                     f'{found:.0f} us, first {first:.0f}', 'at most 1000 us'))
        examples = [count * number // (questions + 1)
                    for number in range(1, questions + 1)]
        found, first = times(
            lambda row, order=order: order.index(row, 0), examples)
        rows.append((f'order.index(row) of {count:.0e}, {name}',
                     f'{found:.0f} us, first {first:.0f}', 'at most 1000 us'))
    return rows


def ask_drawn(count, questions):
    """Return rows for an order that is drawn once."""
    order = stream_of(ShuffledScheme(count, BATCH, seed=1), count).order
    found, first = times(lambda item: order[item], range(questions))
    again, inverse = times(order.index, range(0, count, count // questions))
    start = time.perf_counter()
    order.digest()
    seconds = time.perf_counter() - start
    return [
        (f'order[n] of {count:.0e}, drawn',
         f'{found:.0f} us, first {first / 1e3:.0f} ms', 'drawn once'),
        (f'order.index(row) of {count:.0e}, drawn',
         f'{again:.0f} us, first {inverse / 1e3:.0f} ms', 'inverted once'),
        (f'order.digest() of {count:.0e}', f'{seconds:.2f} s',
         'linear in the examples')]


def ask_balanced(count, questions, size=512):
    """Return a row for the steps of balanced batches of a mixture."""
    lengths = numpy.random.default_rng(1).lognormal(5, 1, count).astype(
        int) + 1
    stream = BalancedBatches(
        Mix([stream_of(ComputedShuffledExampleScheme(count, seed=seed), count)
             for seed in (1, 2)], weights=[5, 3], seed=1, stop='first'),
        lengths=(lengths, lengths), batch_size=size)
    order = stream.order
    found, first = times(lambda item: order[item], range(questions))
    return [(f'order[n] of BalancedBatches of {size} over Mix',
             f'{found:.0f} us, first {first:.0f}', 'at most 1000 us')]


def asked_beside(count, how):
    """Return the rate of an epoch beside which the order is asked once a
    batch, as a ratio to that of one that is not asked."""
    plain, asked = (stream_of(ShuffledScheme(
        count, BATCH, seed=1), count) for _ in range(2))

    def read():
        for _ in itertools.islice(plain, 20):
            pass

    def read_and_ask():
        order = asked.order
        for _ in itertools.islice(asked, 20):
            pass
        return order
    return measure.compare(read, read_and_ask, **how)


def main():
    """Print the table."""
    tiny = measure.parser(__doc__).parse_args().tiny
    how = measure.TINY if tiny else measure.FULL
    rows = ask_computed(10 ** 12, 5 if tiny else 200)
    rows += ask_drawn(10 ** 4 if tiny else 10 ** 6, 5 if tiny else 200)
    rows += ask_balanced(10 ** 4 if tiny else 10 ** 6, 5 if tiny else 200)
    rows.append(('20 batches of an epoch whose order is taken',
                 asked_beside(10 ** 4, how), 'at least 0.9'))
    measure.print_table(rows)
    measure.print_versions()


if __name__ == '__main__':
    main()
