"""Threads of one owner run its tasks, and end before a fork."""
import os
import threading
import time

import pytest
from support.waiting import wait_until

from fuel.utils.crew import Crew
from fuel.utils.threads import map_chunks

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def crew():
    """Return a crew of three."""
    crew = Crew(3, 'crew-of-tests')
    yield crew
    crew.close()
    assert names() == []


def names():
    """Return the names of the threads of crews."""
    return [thread.name for thread in threading.enumerate()
            if thread.name.startswith('crew-of-tests')]


def meet(crew):
    """Let three tasks wait for one another."""
    barrier, met = threading.Barrier(3), []
    for _ in range(3):
        crew.submit(lambda: met.append(barrier.wait(20)))
    wait_until(lambda: len(met) == 3)


def test_tasks_run_at_the_same_time(crew):
    """As many run as there are threads, which start with the first ones."""
    assert names() == []
    for _ in range(5):
        meet(crew)
    assert len(names()) == 3


def test_one_thread_runs_tasks_in_their_order():
    """Tasks may give others."""
    crew, done = Crew(1, 'crew-of-tests'), []

    def more(number):
        done.append(number)
        if number < 50:
            crew.submit(lambda: more(number + 1))

    crew.submit(lambda: more(0))
    wait_until(lambda: len(done) == 51)
    assert done == [*range(51)]
    assert len(names()) == 1
    crew.close()
    crew.submit(lambda: done.append(None))
    assert (names(), len(done)) == ([], 51)


@pytest.mark.parametrize('most', [0, 1])
def test_as_many_threads_as_the_process_may_have_are_enough(
        crew, monkeypatch, most):
    """If it may have none, a task is refused, and the crew can be closed."""
    start, done = threading.Thread.start, []

    def start_some(thread):
        if len(names()) >= most:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, 'start', start_some)
    if most == 0:
        for _ in range(2):
            with pytest.raises(RuntimeError, match='start new thread'):
                crew.submit(lambda: done.append(None))
        monkeypatch.undo()
    for number in range(5):
        crew.submit(lambda number=number: done.append(number))
    wait_until(lambda: len(done) == 5)
    assert {*range(5)} == {*done}


def test_tasks_wait_where_no_thread_starts_after_a_fork(crew, monkeypatch):
    """The fork raises nothing, and the tasks are kept."""
    done = []
    assert crew.pause(time.monotonic())
    crew.submit(lambda: done.append(1))

    def refuse(thread):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, 'start', refuse)
        crew.resume()
        with pytest.raises(RuntimeError, match='start new thread'):
            crew.start_threads()
    assert crew.is_halted
    crew.start_threads()
    wait_until(lambda: done)
    assert not crew.is_halted


def test_tasks_that_have_not_begun_wait_for_the_end_of_a_fork(crew):
    """Those that have begun end before it, and no thread is left then."""
    begun, go_on, done = [], threading.Event(), []

    def task(number):
        begun.append(number)
        go_on.wait(20)
        done.append(number)

    for number in range(6):
        crew.submit(lambda number=number: task(number))
    wait_until(lambda: len(begun) == 3)
    threading.Timer(0.2, go_on.set).start()
    child = os.fork()
    if not child:
        os._exit((len(begun), len(done)) != (3, 3) or bool(names()))
    assert os.waitpid(child, 0)[1] == 0
    wait_until(lambda: len(done) == 6)
    assert sorted(done) == [*range(6)]


def test_fork_in_a_task_waits_for_nobody(crew):
    """It would wait for itself."""
    statuses = []

    def fork():
        child = os.fork()
        if not child:
            os._exit(5)
        statuses.append(os.waitpid(child, 0)[1] >> 8)

    begin = time.monotonic()
    crew.submit(fork)
    wait_until(lambda: statuses)
    assert statuses == [5]
    assert time.monotonic() - begin < 4


def test_a_thread_that_is_late_for_a_fork_goes_on(crew, monkeypatch):
    """Its crew has as many threads as before."""
    monkeypatch.setattr('fuel.utils.crew._JOIN_SECONDS', 0.05)
    go_on, done = threading.Event(), []
    for _ in range(3):
        crew.submit(lambda: (go_on.wait(20), done.append(1)))
    wait_until(lambda: len(names()) == 3)
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    crew.submit(lambda: done.append(2))
    go_on.set()
    wait_until(lambda: len(done) == 4)
    meet(crew)


@pytest.mark.parametrize('is_started', [False, True])
def test_crew_is_whole_after_an_interrupted_start_of_a_thread(
        crew, monkeypatch, is_started):
    """A Ctrl-C before or after the start of the thread does no harm."""
    monkeypatch.setattr('fuel.utils.crew._START_SECONDS', 0.3)
    start = threading.Thread.start

    def interrupted(thread):
        if is_started:
            start(thread)
        raise KeyboardInterrupt

    done = []
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, 'start', interrupted)
        with pytest.raises(KeyboardInterrupt):
            crew.submit(lambda: done.append(1))
    crew.start_threads()
    wait_until(lambda: done)
    meet(crew)
    crew.close()
    wait_until(lambda: not names())


def test_crew_is_closed_at_once_after_an_interrupted_start(crew, monkeypatch):
    """A thread has an identifier before another one can join it."""
    start = threading.Thread.start

    def interrupted(thread):
        def interrupt():
            raise KeyboardInterrupt

        def set_late(set_begun=thread._started.set):
            time.sleep(.2)
            set_begun()

        thread._started.wait, thread._started.set = interrupt, set_late
        start(thread)

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, 'start', interrupted)
        with pytest.raises(KeyboardInterrupt):
            crew.submit(lambda: None)
    crew.close()
    assert not names()


@pytest.mark.parametrize('is_nested', [False, True])
def test_tasks_of_a_nested_crew_use_no_more_threads(is_nested):
    """Their own calls run where they are."""
    crew, found = Crew(1, 'crew-of-tests', is_nested=is_nested), []
    barrier = threading.Barrier(2)

    def chunk(start, stop):
        if not is_nested:
            barrier.wait(20)
        return threading.get_ident()

    crew.submit(lambda: found.append(
        set(map_chunks(chunk, 2, num_threads=2))))
    wait_until(lambda: found)
    assert len(found[0]) == (1 if is_nested else 2)
    crew.close()
