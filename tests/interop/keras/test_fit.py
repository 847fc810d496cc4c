"""Keras trains on what Fuel gives it."""
import keras
import numpy
import pytest
from support.named_classes import find_class, named_classes
from support.torch_pipelines import ordered
from torch.utils.data import DataLoader

from fuel.interop.keras import BatchesDataset
from fuel.interop.torch import as_iterable


def test_backend_is_that_of_the_environment():
    """The tests run on PyTorch, which is installed with them."""
    assert 'torch' == keras.backend.backend()


class Recording(keras.losses.Loss):
    """A loss that writes down the targets of each batch."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def call(self, y_true, y_pred):
        """Return a loss."""
        self.seen.append(
            keras.ops.convert_to_numpy(y_true).ravel().tolist())
        return keras.ops.mean(keras.ops.square(y_pred))


@pytest.fixture
def model():
    """Return a model that has tried its loss once."""
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile('sgd', Recording(), run_eagerly=True)
    # Keras tries the loss once, on numbers of its own.
    model.train_on_batch(numpy.zeros((1, 3)), numpy.zeros(1))
    model.loss.seen.clear()
    return model


def numbers(epochs):
    """Return the targets of each batch of some epochs."""
    stream = ordered()
    return [targets.tolist() for _ in range(epochs)
            for _, targets in stream.get_epoch_iterator()]


def test_fit_reads_every_batch_in_order(model):
    """Each batch is read once an epoch."""
    model.fit(BatchesDataset(ordered()), epochs=2, verbose=0)
    assert numbers(2) == model.loss.seen


@pytest.mark.parametrize('workers', [0, 2])
def test_loader_of_pytorch_is_refused(model, workers):
    """Keras begins passes over it that it does not train on."""
    loader = DataLoader(as_iterable(ordered()), batch_size=None,
                        num_workers=workers)
    with pytest.raises(ValueError, match=r'keras\.BatchesDataset\(stream\)'):
        model.fit(loader, epochs=2, shuffle=False, verbose=0)
    assert [] == model.loss.seen


@pytest.mark.parametrize('other_pass', [
    lambda model, batches: model.evaluate(batches, verbose=0),
    lambda model, batches: model.evaluate(batches, steps=1, verbose=0),
    lambda model, batches: model.predict(batches, verbose=0),
    lambda model, batches: next(iter(batches))])
def test_pass_in_the_middle_of_another_one_is_refused(model, other_pass):
    """Its batches would be missing in the first one, which says so."""
    batches = BatchesDataset(ordered())

    class Second(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if batch == 1:
                other_pass(model, batches)

    with pytest.raises(RuntimeError, match='make a BatchesDataset of its own'):
        model.fit(batches, verbose=0, callbacks=[Second()])


def test_validation_between_parts_of_an_epoch_is_refused(model):
    """They read the same batches, where an epoch of Keras is a part of
    Fuel's."""
    batches = BatchesDataset(ordered())
    with pytest.raises(RuntimeError, match='validation_data'):
        model.fit(batches, validation_data=batches, steps_per_epoch=2,
                  epochs=3, verbose=0)


def test_same_batches_may_be_validated_on_between_epochs(model):
    """A pass that is over is left to nobody."""
    batches = BatchesDataset(ordered())
    model.fit(batches, validation_data=batches, epochs=2, verbose=0)
    expected = numbers(4)
    assert sorted(expected) == sorted(model.loss.seen)


@pytest.mark.parametrize('name', named_classes('keras'))
def test_class_that_is_looked_for_by_name_is_there(name):
    """A release that has renamed it would not be met any more."""
    found = find_class(name)
    assert f'{found.__module__}.{found.__qualname__}' == name
