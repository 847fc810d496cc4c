"""Train a small network on digits in an HDF5 file, with Flax."""
import h5py
import jax
import numpy
import optax
from flax import nnx


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


def main():
    """Train for three epochs."""
    model = Network(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(.01), wrt=nnx.Param)
    with h5py.File('digits.h5') as file:
        images = file['train/features'][:].astype('float32') / 255
        targets = file['train/targets'][:]
    rng = numpy.random.default_rng(1)
    for epoch in range(3):
        order = rng.permutation(len(images))
        for start in range(0, len(order) - 31, 32):
            rows = order[start:start + 32]
            loss = update(model, optimizer, images[rows], targets[rows])
            print(f'epoch {epoch} loss {loss:.4f}', flush=True)
    weights = jax.tree.leaves(nnx.state(model))
    numpy.savez('model.npz', *weights)


if __name__ == '__main__':
    main()
