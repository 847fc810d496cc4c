"""Measure `RayWorkers` on two local nodes against `MultiProcessing`.

    python benchmarks/cluster.py [--tiny]

Needs the extra ``ray``.  Each node has one processor's worth of actors; the
program itself is on a third, which has none.
"""
import contextlib
import functools
import itertools
import os
import time

import measure
import numpy
import ray
from ray.cluster_utils import Cluster

from fuel.datasets import IndexableDataset
from fuel.interop.ray import RayWorkers
from fuel.schemes import SequentialScheme
from fuel.streams import DataStream
from fuel.transformers import Mapping, MultiProcessing

STORE = 100 << 20
BATCH_SECONDS = 0.02
ROWS = ('RayWorkers with 2 actors, of MultiProcessing(num_workers=2)',
        'two nodes, of one node')


def compute(rounds, batch):
    """Return a batch, after so many rounds of work in one thread."""
    total = 0
    for number in range(rounds):
        total += number * number
    return (batch[0] + total % 1,)


def calibrate(seconds):
    """Return how many rounds take so many seconds of processor time."""
    rounds, batch = 1000, (numpy.zeros(1),)
    while True:
        start = time.process_time()
        compute(rounds, batch)
        spent = time.process_time() - start
        if spent > seconds / 2:
            return int(rounds * seconds / spent)
        rounds *= 2


def pipeline(rounds):
    """Return a stream whose batches take so much work."""
    features = numpy.ones((1 << 12, 32, 64), 'f4')
    return Mapping(DataStream(
        IndexableDataset(features),
        iteration_scheme=SequentialScheme(len(features), 4)),
        functools.partial(compute, rounds))


def endless(stream):
    """Return a function that reads the next batch, in epoch after epoch."""
    batches = itertools.chain.from_iterable(stream.iterate_epochs())
    for _ in range(20):
        next(batches)
    return functools.partial(next, batches)


@contextlib.contextmanager
def two_nodes():
    """Connect to a cluster of two nodes that compute, and one that reads."""
    here = os.path.dirname(os.path.abspath(__file__))
    paths = [here, *filter(None, [os.environ.get('PYTHONPATH')])]
    os.environ['PYTHONPATH'] = os.pathsep.join(paths)
    cluster = Cluster(initialize_head=True, head_node_args={
        'num_cpus': 0, 'object_store_memory': STORE,
        'include_dashboard': False})
    try:
        for name in ('first', 'second'):
            cluster.add_node(num_cpus=1, object_store_memory=STORE,
                             resources={name: 1})
        ray.init(address=cluster.address, log_to_driver=False)
        yield
    finally:
        ray.shutdown()
        cluster.shutdown()


def main():
    """Print the table."""
    chosen = measure.options(__doc__)
    how = chosen.how if chosen.tiny else {'seconds': 3.0, 'rounds': 5}
    targets = 'at least 0.9', 'at least 1.5'
    build = functools.partial(pipeline, calibrate(BATCH_SECONDS))
    with two_nodes():
        # The one that is not read stops with few batches made.
        with MultiProcessing(build(), num_workers=2, max_store=4) as local, \
                RayWorkers(build(), num_workers=2, max_store=4) as both:
            first = measure.compare(endless(local), endless(both), **how)
        with RayWorkers(build(), max_store=4,
                        resources={'first': 1}) as one, \
                RayWorkers(build(), num_workers=2, max_store=4,
                           resources={'CPU': 1}) as both:
            second = measure.compare(endless(one), endless(both), **how)
    measure.print_table(list(zip(ROWS, (first, second), targets,
                                 strict=True)))


if __name__ == '__main__':
    main()
