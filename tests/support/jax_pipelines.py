"""Pipelines that the tests of the bridge to JAX read.

They are in a module of their own so that other processes can import them.
"""
import jax
import numpy
from jax.sharding import NamedSharding, PartitionSpec

from fuel.datasets import IndexableDataset
from fuel.interop.jax import to_jax
from fuel.schemes import SequentialScheme, ShuffledScheme
from fuel.streams import DataStream


def over_mesh():
    """Return the sharding of the first axis over eight devices."""
    return NamedSharding(
        jax.make_mesh((8,), ('batch',)), PartitionSpec('batch'))


def replicated(stream):
    """Return a stage whose arrays are on all devices."""
    return to_jax(stream, NamedSharding(over_mesh().mesh, PartitionSpec()))


def shuffled(num_examples=20, batch_size=3):
    """Return a stream of shuffled batches of numbers, in seven batches."""
    return DataStream(IndexableDataset(numpy.arange(num_examples)),
                      iteration_scheme=ShuffledScheme(
                          num_examples, batch_size))


def ordered(num_examples=32, batch_size=16):
    """Return a stream of batches in order, of two sources."""
    return DataStream(IndexableDataset({
        'rows': numpy.arange(num_examples * 3.).reshape(num_examples, 3),
        'numbers': numpy.arange(num_examples)}),
        iteration_scheme=SequentialScheme(num_examples, batch_size))
