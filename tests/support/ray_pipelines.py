"""Pipelines that the tests of the bridge to Ray run in actors.

They are in a module of their own so that the actors can import them.
"""
import os
import signal
from pathlib import Path

import numpy

from fuel.datasets import IndexableDataset
from fuel.interop.ray import RayWorkers
from fuel.schemes import ShuffledScheme
from fuel.streams import DataStream
from fuel.transformers import AgnosticTransformer, ScaleAndShift, Transformer

# So many float64 make a batch of two rows that is in the object store.
WIDTH = 20_000


class OneToOne(AgnosticTransformer):
    """A stage that several actors can share."""

    one_to_one = True

    def __init__(self, data_stream):
        super().__init__(data_stream, data_stream.produces_examples)


class DyingOnce(OneToOne):
    """Kills its process at an example, unless a file is there."""

    def __init__(self, data_stream, number, path):
        super().__init__(data_stream)
        self.number, self.path = number, Path(path)

    def transform_any(self, data):
        """Do what the class says."""
        if self.number in data[1] and not self.path.exists():
            self.path.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return data


class Dying(OneToOne):
    """Kills its process at an example, again and again."""

    def transform_any(self, data):
        """Do what the class says."""
        if 7 in data[1]:
            os.kill(os.getpid(), signal.SIGKILL)
        return data


class Failing(OneToOne):
    """Raises an error at an example."""

    def transform_any(self, data):
        """Do what the class says."""
        if 7 in data[1]:
            raise ValueError('number 7 is unlucky')
        return data


class Unloadable(OneToOne):
    """Can be pickled and not be unpickled."""

    def __setstate__(self, state):
        """Do what the class says."""
        raise OSError('the tape is not mounted')


class Hiding(Transformer):
    """May keep something between batches that nobody can save."""

    def __init__(self, data_stream):
        super().__init__(data_stream, produces_examples=False)

    def get_data(self, request=None):
        """Do what the class says."""
        return next(self.child_epoch_iterator)


class Ahead(OneToOne):
    """Records how many batches were made and not taken yet.

    `folder`: each batch that was made is a file, and the largest number of
        those that were not taken too.
    """

    def __init__(self, data_stream, folder):
        super().__init__(data_stream)
        self.folder = Path(folder)

    def transform_any(self, data):
        """Do what the class says."""
        taken = len(list(self.folder.glob('taken-*')))
        (self.folder / f'made-{data[1][0]}').touch()
        made = len(list(self.folder.glob('made-*')))
        (self.folder / f'ahead-{made - taken}').touch()
        return data


def numbers(num_examples=40, width=3, batch_size=2):
    """Return a stream of shuffled batches of rows, and their numbers."""
    rows = numpy.arange(num_examples * width, dtype='f8')
    return ScaleAndShift(DataStream(
        IndexableDataset({'rows': rows.reshape(num_examples, width),
                          'numbers': numpy.arange(num_examples)}),
        iteration_scheme=ShuffledScheme(num_examples, batch_size)),
        2, 1, which_sources=('rows',))


def one_actor():
    """Return a small stream that one actor makes."""
    return RayWorkers(numbers(10), resources={'CPU': 0})


def two_actors():
    """Return a small stream that two actors make."""
    return RayWorkers(numbers(10), num_workers=2, resources={'CPU': 0})


def frozen(batches):
    """Return batches as lists."""
    return [[part.tolist() for part in batch] for batch in batches]


def epochs_of(stream, count=1):
    """Return the batches of some epochs, as lists."""
    return [frozen(stream.get_epoch_iterator()) for _ in range(count)]
