"""Workers are killed, stopped and starved at random, and so is their owner.

Whatever happens, no batch is lost, repeated or wrong, nothing is left, and
nobody waits longer than the timeout.
"""
import os
import random
import sys

import pytest
from support.worker_faults import Trial, endure
from support.worker_owner import METHODS

SEED = int(os.environ.get('FUEL_TEST_SEED', '0')) or random.SystemRandom(
    ).randrange(2 ** 31)
# Of the long form.
SECONDS = float(os.environ.get('FUEL_TEST_WORKER_FAULTS', '60'))

pytestmark = pytest.mark.skipif(
    sys.platform != 'linux', reason='finds processes in /proc')


@pytest.mark.timeout(200)
@pytest.mark.parametrize('method', METHODS)
def test_faults_lose_and_repeat_no_batch(method):
    """Workers started by any method lose and repeat no batch."""
    trial = Trial(SEED, method, 1)
    assert trial.run() == '', str(trial.plan)


@pytest.mark.full
@pytest.mark.timeout(SECONDS + 200)
def test_faults_for_a_long_time_lose_and_repeat_no_batch():
    """Random pipelines with faults lose and repeat no batch."""
    assert endure(SECONDS, SEED) == {}
