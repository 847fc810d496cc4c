"""A training framework: a main loop, extensions, checkpoints, monitoring.

It does what such frameworks did: it keeps the stream and the iterator of the
running epoch, pickles both in the middle of an epoch, and goes over a second
stream to measure.
"""
import pathlib
import pickle

import numpy
import pytest
from support.processes import run_python

from fuel.datasets import IndexableDataset
from fuel.schemes import SequentialScheme, ShuffledScheme
from fuel.streams import DataStream
from fuel.transformers import Cast, Flatten, Mapping, ScaleAndShift


class GradientDescent:
    """Fits a line, and remembers which batches it saw."""

    def __init__(self, step):
        self.step = step
        self.weights = numpy.zeros(4, 'float32')
        self.seen = []

    def process_batch(self, batch):
        """Take one step."""
        error = batch['features'].dot(self.weights) - batch['targets'][:, 0]
        self.weights -= self.step * batch['features'].T.dot(error)
        self.seen.append(batch['targets'][:, 0].tolist())


class Checkpoint:
    """Saves the loop every few batches."""

    def __init__(self, path, every, protocol=2):
        self.path, self.every, self.protocol = path, every, protocol

    def after_batch(self, loop):
        """Save, with everything that the loop holds."""
        if loop.iterations % self.every == 0:
            with open(self.path, 'wb') as file:
                pickle.dump(loop, file, self.protocol)

    def after_epoch(self, loop):
        """Do nothing."""


class Monitoring:
    """Measures on a stream of its own after each epoch, and in the middle of
    one."""

    def __init__(self, data_stream):
        self.data_stream = data_stream
        self.values = []

    def after_batch(self, loop):
        """Measure in the middle too."""
        if loop.iterations == 2:
            self.after_epoch(loop)

    def after_epoch(self, loop):
        """Go over the whole stream."""
        total = 0
        for batch in self.data_stream.get_epoch_iterator(as_dict=True):
            total += batch['targets'].sum()
        self.values.append(float(total))


class MainLoop:
    """Iterates over epochs, so that a pickle goes on where it was."""

    def __init__(self, algorithm, data_stream, extensions):
        self.algorithm = algorithm
        self.data_stream = data_stream
        self.extensions = extensions
        self.iterations = self.epochs = 0
        self.epoch_iterator = None

    def run(self, num_epochs, stop_at=None):
        """Run up to a number of epochs, or of batches."""
        while self.epochs < num_epochs:
            if self.epoch_iterator is None:
                self.epoch_iterator = self.data_stream.get_epoch_iterator(
                    as_dict=True)
            while True:
                try:
                    batch = next(self.epoch_iterator)
                except StopIteration:
                    break
                self.algorithm.process_batch(batch)
                self.iterations += 1
                for extension in self.extensions:
                    extension.after_batch(self)
                if self.iterations == stop_at:
                    return
            self.epochs += 1
            self.epoch_iterator = None
            for extension in self.extensions:
                extension.after_epoch(self)


def flip(data):
    """Return the features with their columns in reverse."""
    features, targets = data
    return features[:, ::-1], targets


def make_stream(scheme):
    """Return the pipeline of the program."""
    rng = numpy.random.RandomState(0)
    dataset = IndexableDataset({
        'features': rng.randint(256, size=(30, 2, 2)).astype('uint8'),
        'targets': numpy.arange(30)[:, None]})
    stream = Flatten(DataStream.default_stream(
        dataset, iteration_scheme=scheme), which_sources=('features',))
    stream = ScaleAndShift(stream, 1 / 255., -.5, which_sources='features')
    return Mapping(Cast(stream, 'float32', which_sources=('features',)),
                   flip)


def make_loop(path, protocol=2):
    """Return the whole program."""
    return MainLoop(
        GradientDescent(.01), make_stream(ShuffledScheme(30, 7)),
        [Checkpoint(path, 1, protocol),
         Monitoring(make_stream(SequentialScheme(30, 10)))])


@pytest.mark.parametrize('protocol', [0, 2, pickle.HIGHEST_PROTOCOL])
@pytest.mark.parametrize('stop_at', [1, 4, 5, 7, 10])
def test_training_goes_on_from_a_checkpoint_as_if_it_never_stopped(
        tmp_path, stop_at, protocol):
    """After any batch: the same batches in the same order, same weights."""
    whole = make_loop(str(tmp_path / 'whole'))
    whole.run(3)
    path = str(tmp_path / 'loop.pkl')
    make_loop(path, protocol).run(3, stop_at=stop_at)
    with open(path, 'rb') as file:
        loop = pickle.load(file)
    assert stop_at == loop.iterations
    loop.run(3)
    assert whole.algorithm.seen == loop.algorithm.seen
    assert whole.algorithm.weights.tolist() == loop.algorithm.weights.tolist()
    assert whole.extensions[1].values == loop.extensions[1].values
    assert [435.] * 4 == loop.extensions[1].values


def test_training_goes_on_in_another_process(tmp_path):
    """The classes of the program are in its own module there."""
    path = tmp_path / 'loop.pkl'
    whole = make_loop(str(tmp_path / 'whole'))
    whole.run(2)
    make_loop(str(path)).run(2, stop_at=3)
    code = ('import pickle, sys\n'
            'sys.path.insert(0, sys.argv[2])\n'
            'with open(sys.argv[1], "rb") as file: loop = pickle.load(file)\n'
            'loop.run(2)\n'
            'print(loop.algorithm.seen)')
    tests = pathlib.Path(__file__).parents[2]
    status, output, errors = run_python('-c', code, str(path), str(tests))
    assert (0, f'{whole.algorithm.seen}\n'.encode()) == (
        status, output), errors
