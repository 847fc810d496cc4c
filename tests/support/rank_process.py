"""A process that is one of several ranks, as a launcher starts it.

It reads a line for each step, and answers with the examples that it got and
the state that it would save.
"""
import json
import sys

import numpy

from fuel.datasets import IndexableDataset
from fuel.schemes import ShuffledScheme
from fuel.streams import DataStream
from fuel.transformers import Cast, MultiProcessing

COUNT = 60


def build(workers=0):
    """Return the stream of all ranks."""
    dataset = IndexableDataset({
        'x': numpy.arange(COUNT * 3.).reshape(COUNT, 3),
        'number': numpy.arange(COUNT)})
    stream = Cast(DataStream(
        dataset, iteration_scheme=ShuffledScheme(COUNT, 3)), 'float32',
        which_sources=('x',))
    return MultiProcessing(stream, num_workers=workers) if workers else stream


def serve(workers, saved):
    """Do a step for each line that comes."""
    with build(workers).shard('auto') as stream:
        if saved:
            stream.load_state_dict(json.loads(saved))
        epoch = stream.get_epoch_iterator()
        for _ in sys.stdin:
            batch = next(epoch, None)
            sys.stdout.write(json.dumps([
                None if batch is None else batch[1].tolist(),
                stream.state_dict()]) + '\n')
            sys.stdout.flush()


if __name__ == '__main__':
    serve(int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else '')
