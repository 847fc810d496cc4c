"""Pipelines with marks that loaders of other libraries read.

Their rows hold the number of the example, so a test sees whether a mark is
that of its row. This is a module of its own so that other processes can
import it.
"""
import json
from pathlib import Path

import numpy

from fuel.datasets import IndexableDataset
from fuel.streams import DataStream
from fuel.transformers import BalancedBatches, Batch, MarkExamples, Unpack
from fuel.transformers.shuffling import ShuffleBuffer

N = 40
LENGTHS = numpy.random.default_rng(4).integers(1, 30, N)


def batches():
    """Return a stream of shuffled batches."""
    return DataStream(IndexableDataset({'x': numpy.arange(N)}), batch_size=4,
                      shuffle=True, seed=1)


def moved():
    """Return batches whose rows come from several batches."""
    return Batch(ShuffleBuffer(Unpack(batches()), 5), batch_size=4)


def balanced():
    """Return batches that ranks share by their lengths, with the tokens of
    their steps."""
    return MarkExamples(BalancedBatches(
        Unpack(batches()), LENGTHS, batch_size=10), tokens='tokens')


BUILDERS = {build.__name__: build for build in (batches, moved)}
# Ranks share them so, to make the parts of global arrays.
SPLIT_BY = {'batches': 'example', 'moved': 'batch'}


def check_marks(items):
    """Assert that items of rows and marks fit; return the rows of each."""
    found = []
    for rows, marks, *_ in items:
        assert [[0, row] for row in rows.tolist()] == marks.tolist()
        found.append(rows.tolist())
    return found


def logged(path):
    """Return the rows of each item of a log, whose numbers must rise by
    one."""
    lines = list(map(json.loads, Path(path).read_text().splitlines()))
    assert list(range(len(lines))) == [line['item'] for line in lines], lines
    return [[row for _, row in line['examples']] for line in lines]
