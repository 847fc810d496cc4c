"""A process that takes too long prints where all its threads are.

pytest-timeout does that for the process that runs the tests; this is for
those that they start. It is not a timer of faulthandler's, which reads stacks
while they change: that has crashed processes that were only busy.
"""
import os
import signal
import sys
import threading
import traceback

# Before the test is ended, and its processes with it.
SECONDS = 50

_are_armed = True


def print_stacks(*_):
    """Print the stack of every thread on the standard error."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for identifier, frame in sys._current_frames().items():
        stack = ''.join(traceback.format_stack(frame))
        os.write(2, f'process {os.getpid()} is still there, thread '
                    f'{names.get(identifier)}:\n{stack}'.encode())


def arm(seconds=SECONDS):
    """Print the stacks of this process after some time."""
    signal.signal(signal.SIGALRM, print_stacks)
    signal.setitimer(signal.ITIMER_REAL, seconds)


def arm_forks(seconds=SECONDS):
    """Print those of every process that this one forks from now on."""
    os.register_at_fork(after_in_child=lambda: arm(
        seconds if _are_armed else 0))


def spare_forks():
    """Leave those alone that this process forks from now on.

    The timer goes on in a program that a fork runs, and ends it.
    """
    global _are_armed
    _are_armed = False
