"""From a folder of photographs to a trained model.

    python examples/photographs.py [FOLDER]

Without a folder, scikit-learn's 1797 handwritten digits are written as PNG
files, one folder for each class, which is how photographs of your own may lie
on the disk.
"""
import sys
import tempfile
from pathlib import Path

import numpy
from numpy.typing import NDArray
from PIL import Image

from fuel.bin import fuel_convert
from fuel.datasets import H5PYDataset
from fuel.streams import DataStream
from fuel.transformers import Flatten, ScaleAndShift

Floats = NDArray[numpy.float64]
NUM_EPOCHS = 20
LEARNING_RATE = 0.5


def write_digits(folder: Path) -> None:
    """Write scikit-learn's digits as pictures, a folder for each class."""
    from sklearn.datasets import load_digits
    digits = load_digits()
    for number, (image, target) in enumerate(
            zip(digits.images, digits.target, strict=True)):
        place = folder / f'digit-{target}'
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray((image * 15.9).astype('uint8')).save(
            place / f'{number:04}.png')


def convert(folder: Path, output: Path) -> Path:
    """Convert the pictures to one HDF5 file, a fifth of each class held
    out."""
    status = fuel_convert.main([
        'image_folder', '-d', str(folder), '-o', str(output),
        '-r', 'photographs', '--color-mode', 'L', '--size', '8x8',
        '--hold-out', 'test=0.2', '--stratify'])
    if status:
        sys.exit(status)
    return output / 'photographs.hdf5'


def open_stream(path: Path, split: str, shuffle: bool) -> Flatten:
    """Return batches of rows of numbers between 0 and 1, and classes."""
    dataset = H5PYDataset(str(path), which_sets=(split,))
    stream = DataStream(dataset, batch_size=64, shuffle=shuffle)
    scaled = ScaleAndShift(stream, 1 / 255, 0, which_sources=('features',))
    return Flatten(scaled, which_sources=('features',))


class Softmax:
    """Multinomial logistic regression, trained by gradient descent."""

    def __init__(self, num_features: int, num_classes: int) -> None:
        self.weights = numpy.zeros((num_features, num_classes))
        self.biases = numpy.zeros(num_classes)

    def probabilities(self, features: Floats) -> Floats:
        """Return one row for each example, one column for each class."""
        scores = features @ self.weights + self.biases
        scores = numpy.exp(scores - scores.max(axis=1, keepdims=True))
        result: Floats = scores / scores.sum(axis=1, keepdims=True)
        return result

    def update(self, features: Floats, targets: NDArray[numpy.int64]) -> None:
        """Take one step down the gradient of the cross-entropy."""
        error = self.probabilities(features)
        error[numpy.arange(len(targets)), targets] -= 1
        self.weights -= LEARNING_RATE * features.T @ error / len(targets)
        self.biases -= LEARNING_RATE * error.mean(axis=0)


def train(path: Path) -> float:
    """Train on the split 'train'; return the accuracy on 'test'."""
    stream = open_stream(path, 'train', shuffle=True)
    features, targets = next(iter(stream))
    names = H5PYDataset(str(path), which_sets=('train',)).class_names or ()
    model = Softmax(features.shape[1], len(names))
    for _ in range(NUM_EPOCHS):
        for features, targets in stream:
            model.update(features, targets[:, 0])
    right = [model.probabilities(features).argmax(axis=1) == targets[:, 0]
             for features, targets in open_stream(path, 'test', False)]
    return float(numpy.concatenate(right).mean())


def main() -> None:
    """Convert, train, and print how well that worked."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, 'digits')
        if sys.argv[1:]:
            folder = Path(sys.argv[1])
        else:
            write_digits(folder)
        path = convert(folder, Path(scratch))
        print(f'accuracy on the photographs held out: {train(path):.3f}')


if __name__ == '__main__':
    main()
