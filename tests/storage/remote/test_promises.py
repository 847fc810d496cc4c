"""Data sets of remote files keep what Fuel promises of every data set."""
from functools import partial

import pytest
from support.remote_sets import NUM_EXAMPLES, open_set, write_set

from fuel.schemes import ShuffledScheme
from fuel.testing import ReplayProcess, check_dataset


@pytest.fixture(scope='module')
def another_process():
    """Run another process for all checks."""
    with ReplayProcess() as process:
        yield process


@pytest.mark.parametrize('schemes', [
    [ShuffledScheme(NUM_EXAMPLES, 3)],
    pytest.param(None, marks=pytest.mark.full)], ids=['shuffled', 'all'])
@pytest.mark.parametrize('place', ['disk', 'little memory'])
def test_remote_data_set_keeps_its_promises(
        folder, server, cache, another_process, place, schemes):
    """The promises are about ownership, each example once, states at every
    step, and other processes."""
    write_set(folder / 'set.hdf5')
    build = partial(open_set, server.url('set.hdf5'), *(
        ('off', 4096) if place == 'little memory' else (
            str(cache), 64 << 20)))
    check_dataset(build, schemes=schemes, another_process=another_process)
