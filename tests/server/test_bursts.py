"""Bursts of foreign peers neither end a server nor delay its clients."""
import os

import pytest
from support.endurance import NUM_BATCHES, endure
from support.raw_peers import BURSTS

# In the long form, for each kind of burst.
SECONDS = float(os.environ.get('FUEL_TEST_BURSTS', '60'))


def check(outcome):
    """Assert that nobody noticed anything."""
    assert outcome.status is None
    assert not outcome.errors
    assert outcome.epochs, 'a batch was lost, or repeated'
    assert outcome.batches == outcome.epochs * NUM_BATCHES
    assert outcome.growth < 200


@pytest.mark.parametrize('kinds', [(*BURSTS, 'greet', 'send_pings'),
                                   ('encrypted',) * 3],
                         ids=['plain', 'encrypted'])
def test_bursts_end_no_server_and_lose_no_batch(kinds):
    """They do if libzmq listens itself: its queue for a peer is full."""
    check(endure(kinds, 3, num_threads=2))


@pytest.mark.full
@pytest.mark.timeout(SECONDS + 200)
@pytest.mark.parametrize('seed', [1, 2])
@pytest.mark.parametrize('kind', [*BURSTS, 'encrypted'])
def test_bursts_of_a_kind_delay_no_client(kind, seed):
    """No batch comes later than two seconds after it was asked for."""
    outcome = endure([kind] * 3, SECONDS, seed, 5, 4)
    check(outcome)
    assert outcome.delay < 2
