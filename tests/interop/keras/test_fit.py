"""Keras trains on what Fuel gives it."""
import keras
import numpy
from support.torch_pipelines import ordered
from torch.utils.data import DataLoader

from fuel.interop.torch import as_iterable


def test_backend_is_that_of_the_environment():
    """The tests run on PyTorch, which is installed with them."""
    assert 'torch' == keras.backend.backend()


def test_fit_reads_every_batch_in_order():
    """Once an epoch, from the loader over a stream."""
    seen = []

    class Recording(keras.losses.Loss):
        def call(self, y_true, y_pred):
            seen.append(keras.ops.convert_to_numpy(y_true).ravel().tolist())
            return keras.ops.mean(keras.ops.square(y_pred))
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile('sgd', Recording(), run_eagerly=True)
    # Keras tries the loss once, on numbers of its own.
    model.train_on_batch(numpy.zeros((1, 3)), numpy.zeros(1))
    seen.clear()
    model.fit(DataLoader(as_iterable(ordered()), batch_size=None),
              epochs=2, shuffle=False, verbose=0)
    expected = [numbers.tolist() for _, numbers
                in ordered().get_epoch_iterator()]
    assert numpy.concatenate(expected * 2).tolist() == [
        number for batch in seen for number in batch]
