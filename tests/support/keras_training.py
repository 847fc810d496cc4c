"""Training with Keras that records what it is trained on.

As a program it trains one network on a part of the data, and may be killed.
"""
import contextlib
import hashlib
import json
import os
import sys

import keras
import numpy

from fuel.datasets import IndexableDataset
from fuel.interop.keras import Backup, BatchesDataset
from fuel.schemes import ShuffledScheme
from fuel.streams import DataStream

COUNT, BATCH = 65, 8


def open_stream(count=COUNT):
    """Return a stream whose targets are the numbers of its examples."""
    numbers = numpy.arange(count)
    return DataStream(
        IndexableDataset({
            'features': (numbers[:, None] / [3, 7, 11]).astype('float32'),
            'targets': numbers.astype('float32')}),
        iteration_scheme=ShuffledScheme(count, BATCH))


def numbers_of(stream, epochs=1):
    """Return the numbers of a stream's examples, batch after batch."""
    return [targets.tolist() for _ in range(epochs)
            for _, targets in stream.get_epoch_iterator()]


class Recorded(keras.Sequential):
    """A network that records the targets of each batch."""

    def __init__(self):
        super().__init__([keras.layers.Dense(1)])
        self.seen = []

    def train_step(self, data):
        """Record, and train."""
        self.seen.append(data[1].tolist())
        return super().train_step(data)

    def test_step(self, data):
        """Record, and evaluate."""
        self.seen.append(data[1].tolist())
        return super().test_step(data)


def build(is_built=True):
    """Return a network that begins alike each time."""
    keras.utils.set_random_seed(3)
    model = Recorded()
    model.compile(keras.optimizers.Adam(1e-3), 'mse', run_eagerly=True)
    if is_built:
        model.build((None, 3))
    return model


def weights_of(model):
    """Return a digest of the weights."""
    return hashlib.sha256(b''.join(
        numpy.ascontiguousarray(array).tobytes()
        for array in model.get_weights())).hexdigest()


class Stop(keras.callbacks.Callback):
    """Ends a run after so many batches, as if it were killed."""

    def __init__(self, after, end):
        super().__init__()
        self.left = after
        self.end = end

    def on_train_batch_end(self, batch, logs=None):
        """Count the batch."""
        self.left -= 1
        if not self.left:
            self.end()


def train(folder, epochs, save_freq, stop_after=0, stream=None):
    """Train up to an epoch, and return the network and what it was given."""
    if stream is None:
        stream = open_stream()
    batches = BatchesDataset(stream)
    model = build()
    callbacks = [Backup(batches, folder, save_freq)]
    if stop_after:
        def end():
            raise KeyboardInterrupt
        callbacks.append(Stop(stop_after, end))
    with contextlib.suppress(KeyboardInterrupt):
        model.fit(batches, epochs=epochs, callbacks=callbacks, verbose=0)
    return model


def main(folder, stop_after):
    """Train on this rank's part, and print what it was."""
    stream = open_stream().shard('auto', uneven='uneven')
    batches = BatchesDataset(
        stream, workers=2, use_multiprocessing=True)
    model = build()
    callbacks = [Backup(batches, os.path.join(
        folder, os.environ['RANK']), save_freq=1)]
    if stop_after:
        callbacks.append(Stop(stop_after, lambda: (
            report(model), os.kill(os.getpid(), 9))))
    model.fit(batches, epochs=3, callbacks=callbacks, verbose=0)
    report(model)


def report(model):
    """Print what a network was trained on."""
    sys.stdout.write(json.dumps({
        'seen': model.seen, 'weights': weights_of(model)}) + '\n')
    sys.stdout.flush()


if __name__ == '__main__':
    main(sys.argv[1], int(sys.argv[2]))
