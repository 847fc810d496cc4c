"""Real processes share an epoch, also when one is killed."""
import json
import signal
import subprocess
import sys
from contextlib import ExitStack, contextmanager

import pytest
from support import rank_process
from support.processes import environment


@contextmanager
def ranks(count, workers, state=None):
    """Start processes as torchrun does, and end those that are left."""
    with ExitStack() as stack:
        started = []
        for rank in range(count):
            process = stack.enter_context(subprocess.Popen(
                [sys.executable, rank_process.__file__, str(workers),
                 *([] if state is None else [json.dumps(state)])],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                env=environment(RANK=str(rank), WORLD_SIZE=str(count))))
            stack.callback(process.kill)
            started.append(process)
        yield started


def step(processes):
    """Let each rank do a step; return what each answers."""
    for process in processes:
        process.stdin.write('\n')
        process.stdin.flush()
    return [json.loads(process.stdout.readline()) for process in processes]


def take(processes, seen, steps):
    """Do steps, add the examples to those seen, and return the state."""
    for _ in range(steps):
        answers = step(processes)
        states = [state for _, state in answers]
        assert all(state == states[0] for state in states)
        seen += [number for batch, _ in answers for number in batch or ()]
        if any(batch is None for batch, _ in answers):
            return None
    return states[0]


@pytest.mark.timeout(110)
@pytest.mark.parametrize('workers', [
    0, pytest.param(2, marks=pytest.mark.full)])
def test_three_ranks_go_on_where_one_of_four_was_killed(workers):
    """Each example of the epoch comes exactly once."""
    seen = []
    with ranks(4, workers) as processes:
        saved = take(processes, seen, 2)
        # A step that nobody saves: one rank is killed in the middle of it.
        processes[2].send_signal(signal.SIGKILL)
        assert -signal.SIGKILL == processes[2].wait(20)
        assert len(step(processes[:2])) == 2
    assert 24 == len(seen)
    with ranks(3, workers, saved) as processes:
        assert take(processes, seen, 4) is not None
        # 12 batches are left, so the epoch is over for all three.
        assert [None] * 3 == [batch for batch, _ in step(processes)]
    assert sorted(seen) == list(range(rank_process.COUNT))
