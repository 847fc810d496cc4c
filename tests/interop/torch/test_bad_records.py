"""Workers of a DataLoader leave out the same examples."""
from itertools import islice

import pytest
from support.bad_records import of_examples, plan
from support.resuming import plain
from torch.utils.data import DataLoader

from fuel.interop.torch import as_iterable


def read(dataset, num_workers, most=None):
    """Return the batches of a loader, as arrays."""
    loader = DataLoader(dataset, batch_size=None, num_workers=num_workers)
    return [plain([part.numpy() for part in batch])
            for batch in islice(loader, most)]


@pytest.mark.parametrize('num_workers', [0, 1, 2])
@pytest.mark.parametrize('number', [1, 4])
def test_batches_are_those_of_the_stream(number, num_workers):
    """The batches of a resumed loader are those of the stream too."""
    found = plan(number)
    expected = [plain(list(batch)) for batch in found.build()]
    assert read(as_iterable(found.build()), num_workers) == expected
    dataset = as_iterable(found.build())
    assert read(dataset, num_workers, 2) == expected[:2]
    resumed = as_iterable(found.build())
    resumed.load_state_dict(dataset.state_after(2))
    assert read(resumed, num_workers) == expected[2:]


def test_several_workers_do_not_share_examples():
    """Some of the examples are left out."""
    with pytest.raises(ValueError, match="on_error='skip'|one item of each"):
        read(as_iterable(of_examples()), 2)
    assert len(read(as_iterable(of_examples()), 1)) == 5
