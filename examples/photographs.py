"""From a folder of photographs to a trained network
=================================================

A folder of JPEG files becomes one HDF5 file, which a stream reads in shuffled
and augmented batches. A small network, written in NumPy, learns from them; any
other framework takes its place.
"""
# %%
# The folder
# ----------
#
# One folder for each class is all that is needed. To have one without a
# download, the two photographs in scikit-learn (by danielbuechele and
# vultilion, CC BY 2.0) are cut into tiles: the network is to recognise which
# photograph a tile is from.

import sys
import tempfile
from pathlib import Path

import numpy
from numpy.typing import NDArray
from PIL import Image
from sklearn.datasets import load_sample_images

import fuel
from fuel.bin import fuel_convert
from fuel.streams import AbstractDataStream, DataStream
from fuel.transformers import Cast, Flatten, ScaleAndShift
from fuel.transformers.image import (CenterCrop, RandomFixedSizeCrop,
                                     RandomHorizontalFlip)

scratch = tempfile.TemporaryDirectory()


def write_tiles(folder: Path, size: int = 32) -> None:
    """Cut photographs into tiles, in a folder for each photograph."""
    photographs = load_sample_images()
    for path, pixels in zip(photographs.filenames, photographs.images,
                            strict=True):
        place = folder / Path(path).stem
        place.mkdir(parents=True)
        for top in range(0, pixels.shape[0] - size, size):
            for left in range(0, pixels.shape[1] - size, size):
                tile = pixels[top:top + size, left:left + size]
                Image.fromarray(tile).save(place / f'{top:03}-{left:03}.jpg')


if sys.argv[1:]:
    folder = Path(sys.argv[1])  # photographs of your own
else:
    folder = Path(scratch.name, 'photographs')
    write_tiles(folder)
for place in sorted(folder.iterdir()):
    print(place.name, len(list(place.iterdir())))

# %%
# Converting
# ----------
#
# Thousands of small files are slow to read at random. One HDF5 file holds them
# all, with the number and the name of each class. A fifth of each class is
# held out as the split 'test'. In a shell, the command is ``fuel-convert
# image_folder -d photographs --size 32x32 --hold-out test=0.2 --stratify``.

status = fuel_convert.main([
    'image_folder', '-d', str(folder), '-o', scratch.name,
    '--output-filename', 'photographs.hdf5', '--size', '32x32',
    '--hold-out', 'test=0.2', '--stratify'])
if status:
    sys.exit(status)
path = Path(scratch.name, 'photographs.hdf5')

# %%
# The data set
# ------------
#
# A data set describes itself, in a notebook with the first images:

train_set = fuel.load(path, split='train', load_in_memory=True)
test_set = fuel.load(path, split='test', load_in_memory=True)
train_set

# %%
# ``dataset[0]`` is the first example, a tuple in the order of ``sources``.
# ``targets`` has an axis of length 1, so a batch of them is a column of the
# shape (32, 1). ``targets[:, 0]`` below makes a row of it.

features, targets = train_set[0]
print(train_set.sources, features.shape, features.dtype,
      train_set.class_names[targets[0]])

# %%
# The stream
# ----------
#
# For training, each tile is cropped at a random place and flipped at random,
# anew in each epoch. For the test, the middle is taken. The pixels stay
# ``uint8`` until ``ScaleAndShift`` makes numbers between -0.5 and 0.5 of them,
# which would be ``float64`` without ``Cast``.


def open_stream(training: bool) -> AbstractDataStream:
    """Return batches of rows of numbers, and their classes."""
    stream: AbstractDataStream
    if training:
        stream = DataStream(train_set, batch_size=32, shuffle=True)
        stream = RandomFixedSizeCrop(stream, (28, 28),
                                     draws='example',
                                     which_sources='features')
        stream = RandomHorizontalFlip(stream, draws='example',
                                      which_sources='features')
    else:
        stream = DataStream(test_set, batch_size=32)
        stream = CenterCrop(stream, (28, 28), which_sources='features')
    stream = ScaleAndShift(stream, 1 / 255, -0.5, which_sources='features')
    stream = Cast(stream, 'float32', which_sources='features')
    return Flatten(stream, which_sources='features')


stream = open_stream(training=True)
stream

# %%
# The network
# -----------
#
# One hidden layer, trained by gradient descent on the cross-entropy.

Floats = NDArray[numpy.float32]


class Network:
    """A layer of rectified units and a softmax."""

    def __init__(self, inputs: int, hidden: int, classes: int) -> None:
        rng = numpy.random.default_rng(1)
        self.weights = [
            rng.normal(0, rows ** -0.5, (rows, columns)).astype('float32')
            for rows, columns in ((inputs, hidden), (hidden, classes))]

    def forward(self, features: Floats) -> tuple[Floats, Floats]:
        """Return the hidden layer, and the probabilities of the classes."""
        hidden = numpy.maximum(features @ self.weights[0], 0)
        scores = hidden @ self.weights[1]
        scores = numpy.exp(scores - scores.max(axis=1, keepdims=True))
        return hidden, scores / scores.sum(axis=1, keepdims=True)

    def update(self, features: Floats, targets: NDArray[numpy.uint8],
               rate: float = 0.05) -> float:
        """Take one step down the gradient; return the loss."""
        hidden, probabilities = self.forward(features)
        rows = numpy.arange(len(targets))
        loss = float(-numpy.log(probabilities[rows, targets]).mean())
        error = probabilities.copy()
        error[rows, targets] -= 1
        error *= rate / len(targets)
        back = (error @ self.weights[1].T) * (hidden > 0)
        self.weights[1] -= hidden.T @ error
        self.weights[0] -= features.T @ back
        return loss


# %%
# Training
# --------
#
# Each loop over the stream is one epoch, in a new order.

model = Network(3 * 28 * 28, 64, len(train_set.class_names))
for epoch in range(20):
    losses = [model.update(features, targets[:, 0])
              for features, targets in stream]
    if epoch % 5 == 4:
        print(f'epoch {epoch + 1:2}: loss {numpy.mean(losses):.3f}')

right = [model.forward(features)[1].argmax(axis=1) == targets[:, 0]
         for features, targets in open_stream(training=False)]
print(f'accuracy on the photographs held out: '
      f'{numpy.concatenate(right).mean():.3f}')

# %%
# What takes the time
# -------------------
#
# ``fuel.profile`` measures each stage:

fuel.profile(stream, batches=100)

# %%
# Where to go on: :doc:`/images` shows what each stage does to a picture,
# :doc:`/resuming` continues a run that was killed, :doc:`/pytorch` delivers
# tensors (``to_torch(stream)``), and :ref:`profiling` explains the table
# above.

train_set.close(None)
test_set.close(None)
scratch.cleanup()
# sphinx_gallery_thumbnail_path = 'pictures/crop.png'
