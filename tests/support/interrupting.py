"""Ctrl-C at random moments, and a loop that goes on after each."""
import random
import signal
from contextlib import contextmanager


@contextmanager
def alarms():
    """Let Ctrl-C come when a timer says so; give what sets the timer."""
    def come(*_):
        raise KeyboardInterrupt

    def set_timer(seconds):
        signal.setitimer(signal.ITIMER_REAL, seconds)

    previous = signal.signal(signal.SIGALRM, come)
    try:
        yield set_timer
    finally:
        set_timer(0)
        signal.signal(signal.SIGALRM, previous)


def collect(numbers, check, seed):
    """Return all of an iterator, whatever number of interrupts come.

    Parameters
    ----------
    numbers : iterator
        Made of nothing but C functions over an epoch iterator. So is the
        loop: what it gets is in the list before another signal is handled.
    check : callable
        Called after each interrupt with what has come so far.
    seed : int

    """
    seen = []
    rng = random.Random(seed)
    with alarms() as interrupt_in:
        while True:
            try:
                interrupt_in(rng.uniform(0.01, 0.05))
                seen.extend(numbers)
                interrupt_in(0)
            except KeyboardInterrupt:
                check(seen)
            else:
                return seen
