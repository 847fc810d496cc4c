"""The pool of threads: order, errors, nesting, forks."""
import multiprocessing
import os
import sys
import threading
import weakref
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuel import config
from fuel.utils import threads as threads_
from fuel.utils.threads import (
    map_chunks, number_of_threads, users_lines_first)


@given(st.integers(0, 50), st.integers(1, 10), st.integers(1, 9))
def test_map_chunks_any_size_covers_the_range_in_order(
        n_items, minimum, threads):
    """The chunks are the range, whatever the number of threads."""
    chunks = map_chunks(lambda start, stop: (start, stop), n_items, minimum,
                        threads)
    items = [i for start, stop in chunks for i in range(start, stop)]
    assert list(range(n_items)) == items
    assert all(stop - start >= min(minimum, n_items)
               for start, stop in chunks)


def test_map_chunks_two_threads_run_at_once():
    """Two chunks that wait for each other both end."""
    barrier = threading.Barrier(2, timeout=30)

    def meet(start, stop):
        if start in (0, 1):
            barrier.wait()
        return threading.get_ident()

    assert len(set(map_chunks(meet, 8, num_threads=2))) == 2


@pytest.mark.parametrize('threads', [1, 2, 5])
def test_map_chunks_several_failures_raises_the_first(threads):
    """The error is that of the first failing chunk of the range."""
    def fail(start, stop):
        for i in range(start, stop):
            if i >= 7:
                time.sleep(0.02 * (20 - i) / 20)
                raise ValueError(f'item {i}')

    for _ in range(20):
        with pytest.raises(ValueError, match='item 7'):
            map_chunks(fail, 20, num_threads=threads)


def test_map_chunks_nested_does_not_wait_for_itself():
    """A chunk may itself use the pool."""
    def inner(start, stop):
        return stop - start

    def outer(start, stop):
        return sum(sum(map_chunks(inner, 10, num_threads=4))
                   for _ in range(start, stop))

    assert 1000 == sum(map_chunks(outer, 100, num_threads=4))


def test_map_chunks_from_many_threads_completes():
    """Several callers share the pool and each get their own results."""
    results = {}

    def call(number):
        results[number] = [
            i for part in map_chunks(
                lambda start, stop: list(range(start, stop)), 40,
                num_threads=3) for i in part]

    callers = [threading.Thread(target=call, args=(i,)) for i in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert {i: list(range(40)) for i in range(8)} == results


def pool_threads():
    """Return the live threads of the pool."""
    return [thread for thread in threading.enumerate()
            if thread.name.startswith('fuel')]


def work_in_child(connection):
    """Use the pool in a child process; send what it gave."""
    before = len(pool_threads())
    connection.send((before, map_chunks(
        lambda start, stop: stop - start, 8, num_threads=2)))


@pytest.mark.skipif(not hasattr(os, 'fork'), reason='no fork on this system')
def test_map_chunks_around_a_fork_works_in_both_processes():
    """The threads end before the fork; each side makes new ones."""
    map_chunks(lambda start, stop: stop - start, 8, num_threads=2)
    assert pool_threads()
    context = multiprocessing.get_context('fork')
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=work_in_child, args=(sender,))
    child.start()
    assert not pool_threads()
    assert [1] * 8 == map_chunks(
        lambda start, stop: stop - start, 8, num_threads=2)
    assert receiver.poll(60)
    assert (0, [1] * 8) == receiver.recv()
    child.join(60)
    assert child.exitcode == 0
    receiver.close()
    sender.close()


@pytest.mark.skipif(not hasattr(os, 'fork'), reason='no fork on this system')
@pytest.mark.timeout(30)
def test_fork_follows_one_that_ctrl_c_has_interrupted():
    """Before the threads could start again: it took the lock for good."""
    threads_.before_fork()
    child = multiprocessing.get_context('fork').Process(
        target=number_of_threads)
    child.start()
    child.join()
    assert child.exitcode == 0
    found = []
    other = threading.Thread(daemon=True, target=lambda: found.extend(
        map_chunks(lambda start, stop: stop - start, 8, num_threads=2)))
    other.start()
    other.join(10)
    assert [1] * 8 == found


def test_number_of_threads_default_is_the_cores_of_the_process():
    """The setting has a default, and is checked."""
    assert number_of_threads() >= 1
    config.num_threads = 3
    assert 3 == number_of_threads()
    config.num_threads = 0
    with pytest.raises(ValueError, match='at least 1 thread'):
        number_of_threads()


def test_map_chunks_one_thread_never_makes_a_pool():
    """With one thread everything runs in the caller."""
    threads_.before_fork()
    threads_.after_fork_in_parent()
    me = threading.get_ident()
    assert {me} == set(map_chunks(
        lambda start, stop: threading.get_ident(), 10, num_threads=1))
    assert not pool_threads()


@pytest.mark.parametrize('entry, is_shown', [
    ('  File "/home/me/train.py", line 3 in load', True),
    ('  File "/home/me/train.py", line ??? in load', True),
    ('  File "/home/me/train.py", line 3, in load', True),
    ('  File "/home/me/tr\nain.py", line 3, in load', False),
    ('  File ???, line 3 in load', False),
    ('  File "/home/me/train.py"', False)])
def test_users_lines_first_unknown_entry_is_left_out(entry, is_shown):
    """Faulthandler writes question marks for what it does not know."""
    own = '  File "/home/me/main.py", line 9 in main'
    stack = f'Current thread (most recent call first):\n{entry}\n{own}\n'
    shown = [entry] if is_shown else []
    assert '\n'.join([
        'Your code, the last call first:', *shown, own, 'All of it:', stack,
        ]) == users_lines_first(stack, is_newest_first=True)


def test_users_lines_first_without_known_entries_is_the_stack():
    """Nothing is put before entries that cannot be read."""
    stack = '  File "/home/me/train.py"\n'
    assert stack == users_lines_first(stack, is_newest_first=True)


def test_work_that_is_done_is_let_go():
    """The pool may hold what it worked for until it has something else."""
    class Work:
        def __call__(self, start, stop):
            held.append(sys._getframe(1).f_locals['self'])
            return start

    held, work = [], Work()
    known = weakref.ref(work)
    assert [0, 1, 2, 3] == map_chunks(work, 4, num_threads=2)
    del work
    assert held
    assert known() is None
