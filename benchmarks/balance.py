"""Equal work for ranks: the cost of their batches, padding and time.

The cost of a step is that of its costliest rank, as a multiple of what no way
to share the step goes below: the mean of the ranks, or the costliest example.
Padding is what each batch needs to be as long as its longest example, as a
share of the tokens: batches that are packed need none.

Transformers has a sampler for the same, which groups examples of similar
lengths instead, since it counts padding as work.  It is measured beside Fuel
if it is installed, by ``pip install "transformers[torch]>=5.24"``.
"""
import statistics
import time

import measure
import numpy

from fuel.datasets import IndexableDataset
from fuel.schemes import SequentialExampleScheme
from fuel.schemes.shard import Shard
from fuel.sharding.asking import epoch_order
from fuel.streams import DataStream
from fuel.transformers import BalancedBatches, Batch
from fuel.transformers.balanced.parts import attention

try:
    from transformers.trainer_pt_utils import BatchRebalanceSampler
except ImportError:
    BatchRebalanceSampler = None

SIZE = 512


def lognormal(rng, count):
    """Return lengths of texts."""
    return numpy.maximum(1, rng.lognormal(5.5, 1, count)).astype(int)


def bimodal(rng, count):
    """Return the lengths of many short texts and a few long ones."""
    return numpy.where(rng.random(count) < .9, rng.integers(50, 150, count),
                       rng.integers(1500, 2500, count))


def uniform(rng, count):
    """Return lengths up to the size of a context."""
    return rng.integers(1, 2049, count)


def examples(lengths):
    """Return a stream of the numbers of the examples."""
    count = len(lengths)
    return DataStream(IndexableDataset({'number': numpy.arange(count)}),
                      iteration_scheme=SequentialExampleScheme(count))


def in_order(lengths, ranks):
    """Return the batches of each step without balancing, and no time."""
    numbers = numpy.arange(len(lengths)).reshape(-1, ranks, SIZE // ranks)
    assert next(iter(Batch(examples(lengths), batch_size=SIZE // ranks)))[
        0].tolist() == numbers[0, 0].tolist()
    return numbers.tolist(), 0.


def balanced(lengths, ranks):
    """Return Fuel's batches of each step, and the seconds that they took."""
    order = epoch_order(BalancedBatches(
        examples(lengths), lengths, batch_size=SIZE, cost='attention')).share(
            Shard(0, ranks)).inputs[0]
    start = time.perf_counter()
    steps = [order.split_step(step) for step in range(len(lengths) // SIZE)]
    seconds = time.perf_counter() - start
    return [[[step.places[place] for place in part] for part in step.parts]
            for step in steps], seconds


def rebalanced(lengths, ranks):
    """Return the batches of each step of Transformers, and the seconds."""
    found = []
    for rank in range(ranks):
        sampler = BatchRebalanceSampler(
            lengths.tolist(), SIZE, ranks, 1, shuffle=False, rank=rank)
        start = time.perf_counter()
        found.append(list(sampler))
        seconds = time.perf_counter() - start
    return list(zip(*found, strict=True)), seconds


def figures(lengths, ranks, split):
    """Return the median ratio of costs, padding and milliseconds a step."""
    steps, seconds = split(lengths, ranks)
    costs = attention(lengths)
    ratios, padded = [], 0
    for step in steps:
        loads = [costs[part].sum() for part in step]
        ratios.append(max(loads) / max(
            numpy.mean(loads), *[costs[part].max() for part in step]))
        padded += sum(lengths[part].max() * len(part) for part in step)
    return (statistics.median(ratios), padded / lengths.sum() - 1,
            1000 * seconds / len(steps))


def main():
    """Print the table."""
    tiny = measure.options(__doc__).tiny
    count = 3 if tiny else 200
    ways = [('in order', in_order), ('BalancedBatches', balanced)]
    if BatchRebalanceSampler is not None:
        ways.append(('BatchRebalanceSampler', rebalanced))
    rows, slowest = [], 0.
    for draw in (lognormal, bimodal, uniform):
        lengths = draw(numpy.random.default_rng(1), count * SIZE)
        for ranks in (4, 16):
            for name, split in ways:
                cost, padding, took = figures(lengths, ranks, split)
                is_ours = split is balanced
                slowest = max(slowest, took) if is_ours else slowest
                rows.append((
                    f'{draw.__name__}, {ranks} ranks, {name}', f'{cost:.4f}',
                    'at most 1.01' if is_ours else '', f'{padding:.1%}',
                    f'{took:.2f}' if took else ''))
    rows.append(('steps of BalancedBatches a second, the slowest',
                 f'{1000 / slowest:.0f}', 'at least 1000', '', ''))
    measure.print_table(rows, (
        f'steps of {SIZE}', 'cost', 'target', 'padding', 'ms a step'))
    measure.print_versions('transformers')


if __name__ == '__main__':
    main()
