"""Streams of arrays in memory for workers that are not forked."""
import multiprocessing

from fuel.datasets import IndexableDataset
from fuel.schemes import SequentialScheme
from fuel.streams import DataStream


class Writing(IndexableDataset):
    """Adds one to its array, in the process that reads it, each time."""

    def get_data(self, state=None, request=None):
        """Return rows, and change all rows for those that come later."""
        rows = super().get_data(state, request)
        self.indexables[0][:] += 1
        return rows


def stream_of(array, dataset=IndexableDataset):
    """Return the stream of an array's rows in order, four at a time."""
    return DataStream(dataset({'x': array}),
                      iteration_scheme=SequentialScheme(len(array), 4))


class Locked(IndexableDataset):
    """Reads under a lock that all workers share.

    Such a lock can be pickled for a process that starts, and for it alone.
    """

    def __init__(self, indexables):
        super().__init__(indexables)
        self.lock = multiprocessing.get_context('spawn').Lock()

    def get_data(self, state=None, request=None):
        """Return rows."""
        with self.lock:
            return super().get_data(state, request)


def put_sum(examples, answer):
    """Read all examples, in another process."""
    answer.put(sum(float(x.sum()) for x, in examples))
