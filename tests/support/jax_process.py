"""A process that is one of several of JAX, with two devices of its own.

It prints what it has of each batch, what all processes compute of the whole
batch, and the state after the first of them.
"""
import json
import sys

import jax
import numpy
from jax.sharding import NamedSharding, PartitionSpec

from fuel.datasets import IndexableDataset
from fuel.interop.jax import to_jax
from fuel.schemes import ShuffledScheme
from fuel.streams import DataStream

COUNT, BATCH = 35, 8


def build():
    """Return the stream of all processes."""
    return DataStream(IndexableDataset({
        'rows': numpy.arange(COUNT * 3.).reshape(COUNT, 3),
        'numbers': numpy.arange(COUNT)}),
        iteration_scheme=ShuffledScheme(COUNT, BATCH))


def run(address, count, number):
    """Read an epoch as process `number` of `count`."""
    jax.distributed.initialize(address, count, number)
    mesh = jax.make_mesh((jax.device_count(),), ('batch',))
    rows = NamedSharding(mesh, PartitionSpec('batch'))
    total = jax.jit(lambda array: array.sum(),
                    out_shardings=NamedSharding(mesh, PartitionSpec()))
    stream = to_jax(build().shard('auto', by='example', uneven='drop'), rows)
    found, state = [], None
    for features, numbers in stream.get_epoch_iterator():
        assert not features.is_fully_addressable
        found.append({
            'shape': features.shape,
            'mine': [part.data.tolist()
                     for part in numbers.addressable_shards],
            'sum': float(total(features))})
        state = state or stream.state_dict()
    sys.stdout.write(json.dumps({
        'devices': jax.device_count(), 'batches': found,
        'state': state}) + '\n')


if __name__ == '__main__':
    run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
