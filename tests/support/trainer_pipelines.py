"""Pipelines of the programs that train with other libraries' trainers.

They are run by path, in processes of their own: what they import is beside
them, and no folder of the tests hides a library of the same name.
"""
import json
import os
import sys

import numpy

from fuel.datasets import IndexableDataset
from fuel.schemes import ShuffledScheme
from fuel.streams import DataStream

EXAMPLES = 65
BATCH = 4


def build(examples=EXAMPLES):
    """Return a stream of shuffled batches, by default 17 of 65 examples."""
    return DataStream(
        IndexableDataset({
            'features': numpy.zeros((examples, 2), 'float32'),
            'numbers': numpy.arange(examples)}),
        iteration_scheme=ShuffledScheme(examples, BATCH))


def epochs(count):
    """Return the numbers in each batch of some epochs."""
    stream = build()
    return [[numbers.tolist() for _, numbers in stream.get_epoch_iterator()]
            for _ in range(count)]


class Log:
    """A file with a line for each batch that a rank has trained on.

    Each line is on the disk before the next batch, so that a process which
    is killed leaves all of them.
    """

    def __init__(self, folder, rank):
        self.path = os.path.join(folder, f'rank{rank}.jsonl')

    def write(self, epoch, numbers):
        """Add a batch of an epoch."""
        with open(self.path, 'a') as file:
            file.write(json.dumps([epoch, numbers.tolist()]) + '\n')


def read_log(folder, rank):
    """Return the epoch and the numbers of each batch of a rank."""
    with open(os.path.join(folder, f'rank{rank}.jsonl')) as file:
        return [tuple(json.loads(line)) for line in file]


def options():
    """Return the options of a program: a JSON object, its argument."""
    return json.loads(sys.argv[1])
