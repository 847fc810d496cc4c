"""Random histories of a server, its clients, kills and restarts, counted.

All in one process: see ``support/simulated_server.py``.
"""
import itertools
import logging
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from support.server_histories import History
from support.simulated_server import HOLD

NUMBERS = st.integers(0, 3)
TORN = st.sampled_from([b'', b'12', b'12345678 ["sent","client'])
SENDS = st.one_of(st.none(), st.integers(1, 6))


def make_machine(folder, sharing):
    """Return a state machine whose journals are in a folder."""
    numbers = itertools.count()

    class Machine(RuleBasedStateMachine):
        """A history, step by step."""

        @initialize(num_batches=st.integers(2, 14))
        def begin(self, num_batches):
            """Start a server and its first clients."""
            self.history = History(
                folder / str(next(numbers)), num_batches, sharing,
                1 if sharing == 'split' else 2)

        @rule(number=NUMBERS, times=st.integers(1, 4))
        def read(self, number, times):
            """Let a client read some batches."""
            for _ in range(times):
                self.history.read(number)

        @rule(number=NUMBERS)
        def save(self, number):
            """Let a client save its state."""
            self.history.save(number)

        @precondition(lambda self: self.history.can_start())
        @rule()
        def start(self):
            """Let another client join the epoch."""
            self.history.start()

        @rule(number=NUMBERS, received=NUMBERS)
        def kill(self, number, received):
            """Kill a client; so many of its messages still arrive."""
            self.history.kill(number, received)

        @precondition(lambda self: self.history.dead)
        @rule(number=NUMBERS)
        def resume(self, number):
            """Start the successor of a client from its saved state."""
            self.history.resume(number)

        @rule(torn=TORN, sends=SENDS)
        def kill_server(self, torn, sends):
            """Kill the server, perhaps in the middle of something."""
            self.history.kill_server(torn, sends)

        @precondition(lambda self: self.history.world.server is None)
        @rule()
        def start_server(self):
            """Start its successor."""
            self.history.start_server()

        @rule(seconds=st.sampled_from([0.1, 0.3, 1.0, HOLD + 1]))
        def pass_time(self, seconds):
            """Let some time pass, seldom more than a successor has."""
            self.history.pass_time(seconds)

        def teardown(self):
            """Count every batch when all have come to the end."""
            if hasattr(self, 'history'):
                self.history.check()
                self.history.world.kill_server()
                path = self.history.world.path
                for name in (path, path.with_suffix('.old')):
                    name.unlink(missing_ok=True)

    return Machine


@pytest.mark.timeout(3600)
@pytest.mark.parametrize('examples', [
    60, pytest.param(3334, marks=pytest.mark.full)])
@pytest.mark.parametrize('sharing', ['split', 'rank', 'all'])
def test_random_history_loses_and_repeats_nothing(
        tmp_path, sharing, examples):
    """Each batch comes once, to its client, through kills at any time."""
    logging.disable(logging.WARNING)
    try:
        run_state_machine_as_test(
            make_machine(Path(tmp_path), sharing), settings=settings(
                max_examples=examples, stateful_step_count=40, deadline=None,
                suppress_health_check=list(HealthCheck)))
    finally:
        logging.disable(logging.NOTSET)
