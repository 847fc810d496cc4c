"""A training program with Chainer's own updater and trainer.

Run as a program: a folder for snapshots, a kind of iterator, the number of
iterations, and whether to resume.
"""
import json
import sys
import warnings

import numpy

with warnings.catch_warnings():
    warnings.simplefilter('ignore')
    import chainer
    from chainer import training
    from chainer.training import extensions

from fuel.datasets import IndexableDataset
from fuel.interop.chainer import (
    MultiprocessIterator,
    MultithreadIterator,
    SerialIterator,
    ShuffleOrderSampler,
    TupleDataset,
    as_dataset,
    as_iterator,
    concat_examples,
)
from fuel.schemes import ShuffledScheme
from fuel.streams import DataStream
from fuel.transformers import Cast, ScaleAndShift

N = 50


def data():
    """Return features and targets."""
    rng = numpy.random.RandomState(4)
    features = rng.randint(0, 256, (N, 6)).astype('uint8')
    return features, (features[:, 0] > features[:, 1]).astype('int32')


def sampler():
    """Return a sampler with a seed of its own."""
    return ShuffleOrderSampler(numpy.random.RandomState(11))


def examples():
    """Return a data set of Chainer's kind."""
    features, targets = data()
    return TupleDataset(features.astype('float32') / 255, targets)


def stream():
    """Return a stream of Fuel."""
    features, targets = data()
    batches = DataStream(
        IndexableDataset({'features': features, 'targets': targets}),
        iteration_scheme=ShuffledScheme(N, 8))
    batches = ScaleAndShift(batches, 1 / 255, 0, which_sources='features')
    return Cast(batches, 'float32', which_sources=('features',))


ITERATORS = {
    'serial': lambda: SerialIterator(
        examples(), 8, order_sampler=sampler()),
    'threads': lambda: MultithreadIterator(
        examples(), 8, n_threads=2, order_sampler=sampler()),
    'processes': lambda: MultiprocessIterator(
        examples(), 8, n_processes=2, order_sampler=sampler()),
    'data set of Fuel': lambda: SerialIterator(
        as_dataset(IndexableDataset({
            'x': examples()._datasets[0], 'y': data()[1]})), 8,
        order_sampler=sampler()),
    'stream of Fuel': lambda: as_iterator(stream()),
    'chainer': lambda: chainer.iterators.SerialIterator(
        examples(), 8, order_sampler=chainer.iterators.ShuffleOrderSampler(
            numpy.random.RandomState(11))),
}


class Network(chainer.Chain):
    """A small network; its first weights are always the same."""

    def __init__(self):
        super().__init__()
        rng = numpy.random.RandomState(0)
        with self.init_scope():
            self.first = chainer.links.Linear(
                6, 5, initialW=rng.randn(5, 6).astype('float32'))
            self.second = chainer.links.Linear(
                5, 2, initialW=rng.randn(2, 5).astype('float32'))

    def forward(self, x):
        """Return the scores of two classes."""
        return self.second(chainer.functions.relu(self.first(x)))


def make_trainer(folder, kind, iterations, converter=concat_examples):
    """Return a trainer with a snapshot after each fifth iteration."""
    model = chainer.links.Classifier(Network())
    optimizer = chainer.optimizers.MomentumSGD(.05)
    optimizer.setup(model)
    updater = training.StandardUpdater(
        ITERATORS[kind](), optimizer, converter=converter)
    trainer = training.Trainer(updater, (iterations, 'iteration'), folder)
    trainer.extend(extensions.snapshot(filename='snapshot'),
                   trigger=(5, 'iteration'))
    trainer.extend(extensions.Evaluator(
        SerialIterator(examples(), 8, repeat=False, shuffle=False), model),
        trigger=(1, 'epoch'))
    trainer.extend(extensions.LogReport(trigger=(1, 'epoch')))
    return trainer


def weights(trainer):
    """Return all parameters as text that is equal for equal bits."""
    model = trainer.updater.get_optimizer('main').target
    return {name: parameter.array.tobytes().hex()
            for name, parameter in sorted(model.namedparams())}


def main(folder, kind, iterations, resume):
    """Train, and print the weights."""
    trainer = make_trainer(folder, kind, int(iterations))
    if resume == 'resume':
        chainer.serializers.load_npz(f'{folder}/snapshot', trainer)
    trainer.run()
    print(json.dumps(weights(trainer)))


if __name__ == '__main__':
    main(*sys.argv[1:])
