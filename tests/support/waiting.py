"""Waiting for what another thread or process does."""
import time


def wait_until(condition, what='what is waited for', seconds=30):
    """Return when a condition holds; fail if it does not in time.

    Nothing here depends on how long something takes: the limit only ends a
    test that would hang.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f'{what} did not happen'
        time.sleep(0.002)
