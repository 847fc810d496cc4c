"""Messages with sparse batches that come damaged: an error or a sound batch,
and never the end of the server."""
import os
import random
import time

import numpy
import pytest
from scipy.sparse import issparse
from support.damaging_proxy import RELAYS, Damage, damaging_proxy
from support.sparse_rows import SparseDataset, assert_same_rows, random_csr

from fuel.exceptions import ServerError, StateMismatchError
from fuel.schemes import SequentialScheme
from fuel.server import Server
from fuel.streams import DataStream, ServerDataStream

SEED = int(os.environ.get('FUEL_TEST_SEED', '0')) or random.SystemRandom(
    ).randrange(2 ** 32)
NUM_ROWS, SIZE = 60, 4
# A batch of them is sent through memory, if that is shared.
ROWS = random_csr(NUM_ROWS, 9000)

pytestmark = pytest.mark.timeout(900)


def check_sound(batch):
    """Fail unless the parts of a batch fit together."""
    assert len(batch) == 2
    for part in batch:
        if issparse(part):
            part.check_format(full_check=True)
            assert part.toarray().shape == part.shape
        else:
            assert numpy.array(part).tolist() == part.tolist()


def read_damaged(port, how, shared_memory, damage):
    """Read epochs through a proxy, until an error comes."""
    with damaging_proxy(port, how, damage) as number, ServerDataStream(
            ('x', 'y'), port=number, timeout=1, reconnect=0, stalled=2,
            shared_memory=shared_memory) as client:
        try:
            for _ in range(20):
                for batch in client.get_epoch_iterator():
                    check_sound(batch)
        except (ServerError, StateMismatchError):
            # The second where what was damaged is the state to continue at.
            return
    pytest.fail(f'{damage.count} damages were no error')


def check_served(port):
    """Fail unless a server gives an epoch as it is."""
    with ServerDataStream(('x', 'y'), port=port, timeout=10) as client:
        # Finish the epoch that others may have begun.
        list(client.get_epoch_iterator())
        batches = list(client.get_epoch_iterator())
    assert list(range(NUM_ROWS)) == [
        number for _, numbers in batches for number in numbers.tolist()]
    for rows, numbers in batches:
        assert_same_rows(ROWS[numbers].toarray(), rows, ROWS)


@pytest.mark.parametrize('count', [
    4, pytest.param(150, marks=pytest.mark.full)])
@pytest.mark.parametrize('shared_memory', [True, False],
                         ids=['memory', 'bytes only'])
@pytest.mark.parametrize('how', RELAYS)
def test_damaged_messages_are_errors_or_sound_batches(
        how, shared_memory, count):
    """Both directions are damaged, in single frames and in all that ZeroMQ
    sends; decoding takes a limited time, and others are served."""
    stream = DataStream(SparseDataset(ROWS), iteration_scheme=(
        SequentialScheme(NUM_ROWS, SIZE)))
    with Server(stream, port=0) as server:
        for number in range(count):
            print(f'FUEL_TEST_SEED={SEED}, {number}')  # noqa: T201
            start = time.monotonic()
            read_damaged(server.port, how, shared_memory,
                         Damage(SEED + number, 15))
            assert time.monotonic() - start < 30
        check_served(server.port)
