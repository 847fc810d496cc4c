"""Slots are used again, and not while somebody looks at them."""
import pytest
from support.held_batches import build, check_epochs

from fuel.transformers import MultiProcessing


@pytest.mark.parametrize('seed', range(12))
def test_batches_of_workers_stay_as_they_are(seed, start_method):
    """Batches of any size stay, however many are kept or written to."""
    with MultiProcessing(build(seed), max_bytes=(1 << 22, 1 << 26)[seed % 2],
                         num_workers=1 + seed % 2,
                         start_method=start_method) as stream:
        check_epochs(seed, stream.get_epoch_iterator)
