"""Slots of loaders are used again, and not while somebody looks at them."""
import pytest
from support.held_batches import build, check_epochs
from torch.utils.data import DataLoader

from fuel.interop.torch import as_iterable


@pytest.mark.parametrize('seed', range(8))
def test_batches_of_loaders_stay_as_they_are(seed):
    """Their size, how many are kept and what is written do not matter."""
    loader = DataLoader(
        as_iterable(build(seed)), batch_size=None, num_workers=1 + seed % 2,
        persistent_workers=seed % 3 == 0, prefetch_factor=1 + seed % 4)
    check_epochs(seed, lambda: loader)
