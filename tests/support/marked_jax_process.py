"""A process that is one of several of JAX, with two devices of its own.

It prints the rows and the marks of its parts of each batch, and ends before a
batch without a word; started again, it goes on from the state.
"""
import json
import os
import sys
from pathlib import Path

import jax
from jax.experimental import multihost_utils
from jax.sharding import NamedSharding, PartitionSpec
from marked_pipelines import BUILDERS, SPLIT_BY

from fuel.export import log_examples
from fuel.interop.jax import to_jax
from fuel.transformers import MarkExamples


def run(address, count, number, folder, name, most):
    """Read an epoch as process `number` of `count`."""
    jax.distributed.initialize(address, count, number)
    mesh = jax.make_mesh((jax.device_count(),), ('batch',))
    stream = to_jax(log_examples(
        MarkExamples(BUILDERS[name]()), folder / 'log').shard(
            'auto', by=SPLIT_BY[name], uneven='drop'),
        NamedSharding(mesh, PartitionSpec('batch')))
    state, first = folder / f'state-{number}', 0
    if state.exists():
        first, saved = json.loads(state.read_text())
        stream.load_state_dict(saved)
    with open(folder / f'rows-{number}', 'a') as file:
        for step, (rows, marks) in enumerate(stream, first):
            assert not marks.is_fully_addressable
            assert (len(rows), 2) == marks.shape
            file.write(json.dumps([
                [part.data.tolist() for part in array.addressable_shards]
                for array in (rows, marks)]) + '\n')
            state.write_text(json.dumps((step + 1, stream.state_dict())))
            multihost_utils.sync_global_devices(f'step {step}')
            if step + 1 == most:
                file.flush()
                (folder / f'ended-{most}-{number}').touch()
                # Process 0 holds what the others need to end.
                while not (folder / f'ended-{most}-{count - 1}').exists():
                    pass
                os._exit(3)


if __name__ == '__main__':
    run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]),
        sys.argv[5], int(sys.argv[6]))
