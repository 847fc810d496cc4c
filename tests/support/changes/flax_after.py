"""Train a small network on digits in an HDF5 file, with Flax."""
import os
import pickle

import jax
import numpy
import optax
from flax import nnx

import fuel
from fuel.interop.jax import to_jax
from fuel.streams import DataStream
from fuel.transformers import ScaleAndShift


class Network(nnx.Module):
    """Two layers."""

    def __init__(self, rngs):
        self.first = nnx.Linear(64, 32, rngs=rngs)
        self.second = nnx.Linear(32, 10, rngs=rngs)

    def __call__(self, images):
        """Return the scores of the classes."""
        images = images.reshape(len(images), -1)
        return self.second(nnx.relu(self.first(images)))


def loss_of(model, images, targets):
    """Return the mean cross entropy."""
    return optax.softmax_cross_entropy_with_integer_labels(
        model(images), targets).mean()


@nnx.jit
def update(model, optimizer, images, targets):
    """Take one step; return the loss."""
    loss, slope = nnx.value_and_grad(loss_of)(model, images, targets)
    optimizer.update(model, slope)
    return loss


def open_stream():
    """Return batches of images and classes, on the device."""
    stream = DataStream(fuel.load('digits.h5', 'train'), batch_size=32,
                        shuffle=True, seed=1, drop_last=True)
    return to_jax(ScaleAndShift(stream, 1 / 255, 0, dtype='float32',
                                which_sources='features'))


def main():
    """Train for three epochs."""
    model = Network(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(.01), wrt=nnx.Param)
    stream, first = open_stream(), 0
    if os.path.exists('checkpoint'):
        with open('checkpoint', 'rb') as file:
            first, state, position = pickle.load(file)
        nnx.update((model, optimizer), state)
        stream.load_state_dict(position)
    for epoch in range(first, 3):
        for images, targets in stream:
            loss = update(model, optimizer, images, targets)
            with open('checkpoint.new', 'wb') as file:
                pickle.dump((epoch, jax.device_get(nnx.state(
                    (model, optimizer))), stream.state_dict()), file)
            os.replace('checkpoint.new', 'checkpoint')
            print(f'epoch {epoch} loss {loss:.4f}', flush=True)
    weights = jax.tree.leaves(nnx.state(model))
    numpy.savez('model.npz', *weights)


if __name__ == '__main__':
    main()
