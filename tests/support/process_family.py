"""The processes of one program, whoever adopted them."""
import contextlib
import os
import select
import signal
import subprocess
import sys
import uuid
from pathlib import Path
from typing import NamedTuple


class Process(NamedTuple):
    """A process of a trial, which no other can be mistaken for.

    `role`: owner, worker, server or tracker.
    """

    pid: int
    role: str
    descriptor: int

    def is_gone(self):
        """Return whether it has ended."""
        return bool(select.select([self.descriptor], [], [], 0)[0])

    def send(self, number):
        """Send a signal, unless the process is gone."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.descriptor, number)


class Family:
    """The owner, and all processes that came of it, whoever adopted them.

    `memory`: inode numbers of the segments that they were seen to have.
    """

    def __init__(self):
        self.mark = f'TRIAL_MARK={uuid.uuid4()}'
        self.owner = None
        self.memory = set()

    def start_owner(self, script, arguments, errors, **variables):
        """Start the owner, or another one, with variables of its own."""
        name, _, value = self.mark.partition('=')
        self.owner = subprocess.Popen(
            [sys.executable, '-c', script, *map(str, arguments)],
            stdin=subprocess.DEVNULL, stderr=errors, env={
                **os.environ, 'PYTHONPATH': os.pathsep.join(sys.path),
                **variables, name: value})

    def pids(self):
        """Return the processes that are there."""
        found = []
        for pid in filter(str.isdigit, os.listdir('/proc')):
            with contextlib.suppress(OSError):
                if self.mark.encode() in Path(
                        f'/proc/{pid}/environ').read_bytes().split(b'\0'):
                    found.append(int(pid))
        return found

    @contextlib.contextmanager
    def processes(self):
        """Yield the processes, and note their segments."""
        found = []
        try:
            for pid in self.pids():
                with contextlib.suppress(OSError):
                    descriptor = os.pidfd_open(pid)
                    found.append(Process(pid, '', descriptor))
                    found[-1] = Process(pid, self.role(pid), descriptor)
                self.memory |= segments_of(pid)
            # One that has no role was gone before it was known.
            yield [process for process in found if process.role]
        finally:
            for process in found:
                os.close(process.descriptor)

    def describe(self):
        """Return the state and the command of each process."""
        found = []
        for pid in self.pids():
            with contextlib.suppress(OSError):
                status = Path(f'/proc/{pid}/status').read_text()
                command = Path(f'/proc/{pid}/cmdline').read_text()
                wait = Path(f'/proc/{pid}/wchan').read_text()
                found.append((pid, self.role(pid), status.split(
                    'State:')[1][:8].strip(), wait, command[:200]))
        return found

    def role(self, pid):
        """Return what a process is; '' if it is none of ours any more."""
        if pid not in self.pids():
            return ''
        command = Path(f'/proc/{pid}/cmdline').read_bytes()
        if pid == self.owner.pid:
            return 'owner'
        if b'resource_tracker' in command:
            return 'tracker'
        status = Path(f'/proc/{pid}/status').read_text()
        parent = int(status.split('PPid:')[1].split()[0])
        if b'multiprocessing.forkserver' in command and (
                parent == self.owner.pid):
            return 'server'
        return 'worker'


def segments_of(pid):
    """Return the inode numbers of the segments that a process has."""
    found = set()
    with contextlib.suppress(OSError):
        for line in Path(f'/proc/{pid}/maps').read_text().splitlines():
            if 'memfd:fuel-segment' in line:
                found.add(int(line.split()[4]))
        for path in Path(f'/proc/{pid}/fd').iterdir():
            with contextlib.suppress(OSError):
                if 'memfd:fuel-segment' in os.readlink(path):
                    found.add(path.stat().st_ino)
    return found
