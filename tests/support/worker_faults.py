"""Workers, their fork server and their owner under faults at random moments.

As a program, ``python -m support.worker_faults SECONDS SEED`` runs trials
one after another and prints what came of each.
"""
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from support import killing
from support.process_family import Family, segments_of
from support.worker_owner import (
    ENDED_BY_ERROR, LIMIT, OWNER, Plan, write_files)

# Seconds without a batch or an error after which a trial is stuck.
STUCK = 90.
# Seconds in which all processes of a trial end after their owner.
END = 15.


class Trial:
    """A plan that is carried out, with faults.

    `drawn`: arguments of the plan.
    """

    def __init__(self, *drawn):
        self.plan = Plan(*drawn)
        self.rng = random.Random(self.plan.seed + 1)
        self.family = Family()
        self.faults = []
        self.errors = []

    def run(self):
        """Return what is wrong; '' if nothing is."""
        # The path of a fork server's socket has a limit.
        with tempfile.TemporaryDirectory(prefix='fuel-', dir='/tmp') as folder:
            write_files(folder)
            os.mkdir(f'{folder}/tmp')
            self.path = f'{folder}/saved'
            before = set(os.listdir('/dev/shm'))
            try:
                wrong = self.carry_out(folder) or self.find_rests(
                    folder, before)
            finally:
                with self.family.processes() as processes:
                    for process in processes:
                        process.send(signal.SIGKILL)
                self.family.owner.wait()
            errors = Path(folder, 'stderr').read_text()
            if os.path.exists(self.path + '.errors'):
                self.errors = [json.loads(line) for line in Path(
                    self.path + '.errors').read_text().splitlines()]
        if 'Traceback' in errors and not wrong:
            wrong = 'something was printed'
        return wrong and f'{wrong}\n{self.faults}\n{self.errors}\n{errors}'

    def carry_out(self, folder):
        """Run owners until one comes to the end; return what is wrong."""
        expected, stream = [], self.plan.build(folder)
        for _ in range(self.plan.num_epochs):
            expected += [killing.noted(batch)[1]
                         for batch in stream.get_epoch_iterator()]
        arguments = (folder, self.path, self.plan.seed, self.plan.method,
                     self.plan.num_epochs)
        with open(f'{folder}/stderr', 'w') as errors:
            while True:
                self.begun = time.time()
                self.family.start_owner(OWNER, arguments, errors,
                                        TMPDIR=f'{folder}/tmp')
                status = self.disturb()
                if status is None:
                    return f'stuck for {STUCK} s'
                if status == 0:
                    break
                if status not in (-signal.SIGKILL, ENDED_BY_ERROR):
                    return f'the owner ended with {status}'
        seen = json.loads(Path(self.path).read_text())['seen']
        if seen != expected:
            place = next((n for n, pair in enumerate(zip(
                seen, expected, strict=False)) if pair[0] != pair[1]), -1)
            return (f'{len(seen)} batches instead of {len(expected)}, the '
                    f'first other one is number {place}')
        if os.path.exists(self.path + '.late'):
            return f'waited {Path(self.path + ".late").read_text()} s'
        return ''

    def disturb(self):
        """Let faults happen until the owner ends; return how it did."""
        owner, count = self.family.owner, self.num_seen()
        # In the other case the faults begin while processes start.
        if self.rng.random() < 0.7:
            while owner.poll() is None and self.num_seen() == count and (
                    time.time() - self.begun < STUCK):
                time.sleep(0.02)
        while owner.poll() is None:
            if len(self.faults) < self.plan.num_faults:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    owner.wait(self.rng.uniform(0.02, 0.9))
                if owner.poll() is None:
                    self.inject()
                continue
            with contextlib.suppress(subprocess.TimeoutExpired):
                owner.wait(1)
            if time.time() - self.last_change() > STUCK:
                return None
        return owner.returncode

    def num_seen(self):
        """Return how many batches were saved."""
        with contextlib.suppress(FileNotFoundError):
            return len(json.loads(Path(self.path).read_text())['seen'])
        return 0

    def last_change(self):
        """Return when an owner began, or a batch or an error came, last."""
        return max([self.begun, *(
            os.path.getmtime(path) for path in (
                self.path, self.path + '.errors') if os.path.exists(path))])

    def inject(self):
        """Let one fault happen to one process."""
        rng = self.rng
        kind = rng.choice(['kill', 'kill', 'stop', 'stop', 'starve',
                           'kill owner', 'kill server'])
        role = kind.split()[1] if ' ' in kind else 'worker'
        with self.family.processes() as processes:
            chosen = [process for process in processes
                      if process.role == role]
            if not chosen:
                return
            process = rng.choice(chosen)
            self.faults.append(f'{kind} {process.pid}')
            if kind.startswith('kill'):
                process.send(signal.SIGKILL)
            elif kind == 'stop':
                self.stop(process)
            else:
                starve(process.pid, rng.uniform(0.1, 2))

    def stop(self, process):
        """Stop a process for a while, which may be longer than it has."""
        seconds = (3 * LIMIT if self.rng.random() < 0.2
                   else self.rng.uniform(0.02, 1.5))
        process.send(signal.SIGSTOP)
        end = time.monotonic() + seconds
        while time.monotonic() < end and not process.is_gone() and (
                self.family.owner.poll() is None):
            time.sleep(0.02)
        process.send(signal.SIGCONT)

    def find_rests(self, folder, shared_before):
        """Return what is left though the owner is gone; '' if nothing is."""
        end = time.monotonic() + END
        while self.family.pids():
            if time.monotonic() > end:
                return f'processes are left: {self.family.describe()}'
            time.sleep(0.02)
        left = [path for path in Path(folder, 'tmp').rglob('*')
                if path.is_file()]
        shared = [name for name in set(os.listdir('/dev/shm')) - shared_before
                  if 'fuel' in name]
        owners = [pid for pid in map(int, filter(
            str.isdigit, os.listdir('/proc')))
            if segments_of(pid) & self.family.memory]
        if left or shared or owners:
            return f'left: files {left}, {shared}, segments in {owners}'
        return ''


def starve(pid, seconds):
    """Let a process have next to no processor for a while."""
    first = min(os.sched_getaffinity(0))
    busy = [subprocess.Popen([sys.executable, '-c', 'while True: pass'])
            for _ in range(2)]
    try:
        with contextlib.suppress(ProcessLookupError):
            for process in busy:
                os.sched_setaffinity(process.pid, {first})
            everywhere = os.sched_getaffinity(pid)
            os.sched_setaffinity(pid, {first})
            os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))
            time.sleep(seconds)
            os.sched_setscheduler(pid, os.SCHED_OTHER, os.sched_param(0))
            os.sched_setaffinity(pid, everywhere)
    finally:
        for process in busy:
            process.kill()
            process.wait()


def endure(seconds, seed, report=print):
    """Run trials for some time; return what is wrong, by trial."""
    wrong, end = {}, time.monotonic() + seconds
    rng = random.Random(seed)
    while time.monotonic() < end:
        trial = Trial(rng.randrange(2 ** 31))
        begin = time.monotonic()
        text = trial.run()
        report(f'{time.strftime("%X")} {trial.plan}: '
               f'{text or "well"}, {", ".join(trial.faults)}, '
               f'{[error[:110] for error in trial.errors]}, '
               f'{time.monotonic() - begin:.1f} s', flush=True)
        if text:
            wrong[trial.plan.seed] = text
    return wrong


if __name__ == '__main__':
    sys.exit('\n'.join(endure(float(sys.argv[1]), int(sys.argv[2])).values()))
