"""Workers that are forked where JAX is loaded come with one warning."""
import warnings

import jax
import pytest

from fuel.datasets import IndexableDataset
from fuel.schemes import SequentialScheme
from fuel.streams import DataStream
from fuel.transformers import MultiProcessing

BATCHES = [([1, 2],), ([3],)]


def read_epoch(start_method):
    """Return the batches that two workers make, and the warnings."""
    # JAX warns as soon as it has devices.
    jax.devices()
    stream = DataStream(IndexableDataset([1, 2, 3]),
                        iteration_scheme=SequentialScheme(3, 2))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        with MultiProcessing(stream, num_workers=2,
                             start_method=start_method) as ahead:
            batches = list(ahead.get_epoch_iterator())
    return batches, [
        (warning.category, str(warning.message)) for warning in caught]


def test_forked_workers_are_warned_of_once():
    """The warning names the remedy."""
    batches, ((category, text),) = read_epoch('fork')
    assert batches == BATCHES
    assert category is RuntimeWarning
    assert "start_method='forkserver'" in text
    assert "if __name__ == '__main__':" in text


@pytest.mark.parametrize('method', ['forkserver', 'spawn'])
def test_other_workers_are_not_warned_of(method):
    """Other workers do not copy the process."""
    assert read_epoch(method) == (BATCHES, [])
