"""Stand-ins for Blocks: its main loop, its extensions, a model in NumPy.

The loop does with a stream what Blocks' does: it keeps the iterator of the
running epoch, asks for batches by name, and is pickled whole.  Run as a
program, it trains: the path of the checkpoint, the number of epochs, and the
batch after which the process kills itself.
"""
import json
import os
import pickle
import signal
import sys

import numpy

from fuel.datasets import IndexableDataset
from fuel.schemes import SequentialScheme, ShuffledScheme
from fuel.streams import DataStream
from fuel.transformers import Cast, ScaleAndShift

N = 40


class Model:
    """A linear layer, with the gradient that Theano would derive."""

    def __init__(self):
        self.parameters = {'W': numpy.zeros((6, 2)), 'b': numpy.zeros(2)}

    def cost(self, features, targets):
        """Return the mean square error."""
        return float((self._errors(features, targets) ** 2).mean())

    def gradients(self, features, targets):
        """Return the derivative of the cost for each parameter."""
        errors = self._errors(features, targets) * 2 / len(features)
        return {'W': features.T @ errors, 'b': errors.sum(0)}

    def _errors(self, features, targets):
        return (features @ self.parameters['W'] + self.parameters['b']
                - numpy.eye(2)[targets])


class GradientDescent:
    """The algorithm: a step rule on the gradients of a model."""

    def __init__(self, model, learning_rate=.1, momentum=.9):
        self.model = model
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.velocities = {}

    def process_batch(self, batch):
        """Change the parameters by what a batch says."""
        for name, gradient in self.model.gradients(**batch).items():
            velocity = (self.momentum * self.velocities.get(name, 0)
                        - self.learning_rate * gradient)
            self.velocities[name] = velocity
            self.model.parameters[name] += velocity


class Extension:
    """Base of what the main loop calls."""

    def do(self, event, loop):
        """Be told of an event."""


class Monitoring(Extension):
    """Measures the cost on a stream of its own after each epoch, and once in
    the middle of one."""

    def __init__(self, data_stream):
        self.data_stream = data_stream

    def do(self, event, loop):
        """Go over the whole stream."""
        if event == 'after_epoch' or loop.iterations_done == 4:
            costs = [loop.algorithm.model.cost(**batch) for batch in (
                self.data_stream.get_epoch_iterator(as_dict=True))]
            loop.log.append(('validation cost', float(numpy.mean(costs))))


class Schedule(Extension):
    """Lowers the learning rate after each epoch."""

    def do(self, event, loop):
        """Multiply it."""
        if event == 'after_epoch':
            loop.algorithm.learning_rate *= .8


class Checkpoint(Extension):
    """Pickles the main loop after some batches, in one step."""

    def __init__(self, path, every_n_batches):
        self.path = path
        self.every_n_batches = every_n_batches

    def do(self, event, loop):
        """Write the file beside, and put it in its place."""
        if event == 'after_batch' and (
                loop.iterations_done % self.every_n_batches == 0):
            with open(self.path + '.part', 'wb') as file:
                pickle.dump(loop, file)
            os.replace(self.path + '.part', self.path)


class Kill(Extension):
    """Kills the process after some batch."""

    def __init__(self, after):
        self.after = after

    def do(self, event, loop):
        """End without a trace."""
        if event == 'after_batch' and loop.iterations_done == self.after:
            os.kill(os.getpid(), signal.SIGKILL)


class Stopped(Exception):  # noqa: N818 (not an error)
    """Training was interrupted."""


class StopAfter(Extension):
    """Interrupts training after some batch."""

    def __init__(self, after):
        self.after = after

    def do(self, event, loop):
        """Leave the loop as it is."""
        if event == 'after_batch' and loop.iterations_done == self.after:
            raise Stopped


class FinishAfter(Extension):
    """Ends the training after some epochs."""

    def __init__(self, epochs):
        self.epochs = epochs

    def do(self, event, loop):
        """Ask the loop to finish."""
        if event == 'after_epoch' and loop.epochs_done >= self.epochs:
            loop.is_finished = True


class MainLoop:
    """Combines an algorithm, a stream and extensions."""

    def __init__(self, algorithm, data_stream, extensions):
        self.algorithm = algorithm
        self.data_stream = data_stream
        self.extensions = extensions
        self.log = []
        self.iterations_done = self.epochs_done = 0
        self.is_finished = False
        self.epoch_iterator = None

    def run(self):
        """Train; a loop from a pickle goes on where it was."""
        while not self.is_finished:
            if self.epoch_iterator is None:
                self.epoch_iterator = self.data_stream.get_epoch_iterator(
                    as_dict=True)
            for batch in self.epoch_iterator:
                self.algorithm.process_batch(batch)
                self.iterations_done += 1
                self.log.append(('batch', batch['targets'].tolist()))
                self.tell('after_batch')
            self.epoch_iterator = None
            self.epochs_done += 1
            self.tell('after_epoch')

    def tell(self, event):
        """Call each extension."""
        for extension in self.extensions:
            extension.do(event, self)


def make_stream(scheme):
    """Return batches of float features and integer targets."""
    rng = numpy.random.RandomState(1)
    features = rng.randint(0, 256, (N, 6)).astype('uint8')
    stream = DataStream(IndexableDataset({
        'features': features,
        'targets': (features[:, 0] > 127).astype('int64')}),
        iteration_scheme=scheme)
    stream = ScaleAndShift(stream, 1 / 255., -.5, which_sources='features')
    return Cast(stream, 'float64', which_sources=('features',))


def make_loop(path, epochs, kill_after=0):
    """Return the main loop of the program."""
    return MainLoop(
        GradientDescent(Model()), make_stream(ShuffledScheme(N, 6)), [
            Schedule(), Monitoring(make_stream(SequentialScheme(N, 16))),
            FinishAfter(epochs), Checkpoint(path, 3), Kill(kill_after)])


def results(loop):
    """Return all that training decided, as plain data."""
    return {'parameters': {name: parameter.tolist() for name, parameter
                           in loop.algorithm.model.parameters.items()},
            'log': json.loads(json.dumps(loop.log)),
            'epochs': loop.epochs_done, 'iterations': loop.iterations_done}


def main(path, epochs, kill_after):
    """Train from the checkpoint, if there is one, and print the results."""
    loop = make_loop(path, int(epochs))
    if os.path.exists(path):
        with open(path, 'rb') as file:
            loop = pickle.load(file)
    loop.extensions[-1].after = int(kill_after)
    loop.run()
    print(json.dumps(results(loop)))


if __name__ == '__main__':
    main(*sys.argv[1:])
