"""The example of many ranks trains, is killed, and goes on with others."""
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from support.processes import environment, run_python

SCRIPT = Path(__file__).parents[2] / 'examples' / 'many_ranks.py'


def seen(folder, first, last):
    """Return the examples that ranks saw in some steps, by epoch."""
    found = {}
    for path in sorted(folder.glob('seen-*.json')):
        if first < int(path.name.split('-')[1]) <= last:
            epoch, numbers = json.loads(path.read_text())
            found.setdefault(epoch, []).extend(numbers)
    return found


def ranks_of(launcher):
    """Return the processes that a launcher has started."""
    text = Path(f'/proc/{launcher}/task/{launcher}/children').read_text()
    return [int(pid) for pid in text.split()]


@pytest.mark.skipif(sys.platform != 'linux', reason='looks into /proc')
@pytest.mark.timeout(110)
def test_ranks_are_killed_and_three_go_on_for_four(tmp_path):
    """Each example of an epoch comes once, up to an incomplete round."""
    with subprocess.Popen(
            [sys.executable, SCRIPT, '--launch', '4', '--folder', tmp_path],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env=environment()) as process:
        started = []
        try:
            for line in process.stdout:
                started = started or ranks_of(process.pid)
                if line.startswith('step 4,'):
                    break
            # The others notice that a partner is gone.
            os.kill(started[2], signal.SIGKILL)
            assert process.wait(60) != 0
        finally:
            process.kill()
            for pid in started:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
    step = json.loads((tmp_path / 'checkpoint.json').read_text())['step']
    assert 4 <= step < 25
    before = seen(tmp_path, 0, step)
    for path in tmp_path.glob('seen-*.json'):
        path.unlink()
    status, output, errors = run_python(
        SCRIPT, '--launch', '3', '--folder', tmp_path)
    assert 0 == status, errors.decode()
    *_, last, done = output.decode().splitlines()
    assert done.startswith('done after')
    assert float(last.split()[-1]) < .1
    after = seen(tmp_path, step, 10 ** 4)
    first = before[0] + after[0]
    assert len(first) == len(set(first))
    # The rest of 100 batches, in rounds of three.
    assert (100 - 4 * step) // 3 * 3 * 48 == len(after[0])
    assert 99 * 48 == len(set(after[1])) == len(after[1])
