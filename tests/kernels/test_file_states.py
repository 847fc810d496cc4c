"""Files that are changed while rows of them are copied are noticed."""
import mmap
import multiprocessing
import os
import sys
import time

import numpy
import pytest

from fuel.kernels.file_states import FileStates, file_state
from fuel.kernels.gather import MappedRows
from fuel.kernels.part_table import ALL_ROWS, PART, PartTable
from fuel.kernels.tiles import Tiles

# So many that the system is asked to tell of them.
COUNT = 12
# After this time a file that nothing is told of is looked at.
NOW_AND_THEN = .1


class Files:
    """Open files of ten bytes, and rows of all of them."""

    def __init__(self, folder, count=COUNT):
        self.paths = [folder / str(number) for number in range(count)]
        for path in self.paths:
            path.write_bytes(bytes(range(10)))
        self.descriptors = [os.open(path, os.O_RDONLY) for path in self.paths]
        self.maps = [mmap.mmap(one, 10, access=mmap.ACCESS_READ)
                     for one in self.descriptors]
        parts = numpy.zeros(count, PART)
        parts['rows'], parts['block_rows'] = 10, ALL_ROWS
        parts['file'] = parts['first_chunk'] = numpy.arange(count)
        table = PartTable([(Tiles((), (), 1), numpy.zeros((), 'u1'))], parts,
                          count, count)
        self.rows = MappedRows(table, 1000 * numpy.arange(count), [
            (1000 * number, one) for number, one in enumerate(self.maps)])
        self.watch()

    def watch(self):
        """Look at the files as they are now."""
        self.states = FileStates([
            (one, *file_state(one)) for one in self.descriptors])
        self.rows.watch(self.states)

    def read(self, *rows):
        """Read rows; return whether their files are what they were."""
        out = numpy.empty(len(rows), 'u1')
        return self.rows.copy(numpy.array(rows), out)

    def read_all(self):
        """Return, for each file, whether its rows can be read."""
        return [self.read(10 * number) for number in range(len(self.paths))]


@pytest.fixture
def files(tmp_path):
    """Make files of ten bytes."""
    made = Files(tmp_path)
    yield made
    for one in made.descriptors:
        os.close(one)


def write(path):
    """Write as long as it was."""
    with path.open('rb+') as file:
        file.write(b'x')


def cut(path):
    """Cut a file."""
    os.truncate(path, 4)


def touch(path):
    """Set the time of the last change alone."""
    os.utime(path, ns=(0, 12345))


@pytest.mark.parametrize('change', [write, cut, touch])
@pytest.mark.parametrize('later', [0, 1.2])
def test_changed_file_is_noticed_at_once(files, change, later):
    """It is noticed at the next read; rows of other files can be read on."""
    for _ in range(3):
        assert all(files.read_all())
    change(files.paths[7])
    time.sleep(later)
    assert files.read(0, 69, 80)
    for _ in range(3):
        assert not files.read(0, 70)
        assert [number != 7 for number in range(COUNT)] == files.read_all()


def test_file_that_was_open_before_is_noticed(files):
    """Opening it is not the event that is noticed."""
    with files.paths[3].open('rb+', buffering=0) as file:
        files.watch()
        assert all(files.read_all())
        time.sleep(.02)
        file.write(b'x')
        assert not files.read(30)


def test_file_that_is_written_through_a_map_is_noticed_soon(files):
    """The system tells of it nowhere, but has its time."""
    with files.paths[3].open('rb+') as file:
        memory = mmap.mmap(file.fileno(), 10)
    assert files.read(30)
    time.sleep(1.2)
    assert files.read(30)
    memory[5] = 77
    memory.flush()
    time.sleep(NOW_AND_THEN)
    assert not files.read(30)


def test_renamed_and_removed_files_go_on_being_read(files):
    """They are what they were."""
    os.rename(files.paths[0], files.paths[1])
    os.unlink(files.paths[2])
    for _ in range(3):
        assert all(files.read_all())


@pytest.mark.skipif(not hasattr(os, 'fork'), reason='needs fork')
def test_child_made_by_a_fork_notices_too(files):
    """The child takes nothing from its parent."""
    assert all(files.read_all())
    go_on = multiprocessing.get_context('fork').Event()
    has_begun = multiprocessing.get_context('fork').Event()

    def read():
        assert all(files.read_all())
        has_begun.set()
        assert go_on.wait(30)
        assert [number not in (5, 6) for number in range(COUNT)] == (
            files.read_all())

    child = multiprocessing.get_context('fork').Process(target=read)
    child.start()
    assert has_begun.wait(30)
    write(files.paths[5])
    cut(files.paths[6])
    go_on.set()
    child.join(30)
    assert 0 == child.exitcode
    assert [number not in (5, 6) for number in range(COUNT)] == (
        files.read_all())


@pytest.mark.skipif(sys.platform != 'linux', reason='asks Linux')
def test_nothing_is_left_of_watches(tmp_path):
    """Readers that come and go leave no descriptors open."""
    made = Files(tmp_path)
    assert made.states.num_watched in (0, COUNT)
    before = len(os.listdir('/proc/self/fd'))
    for number in range(1000):
        made.watch()
        if number % 100 == 0:
            assert all(made.read_all())
    assert before == len(os.listdir('/proc/self/fd'))
    del made.states
    made.rows = None
    assert before - 1 <= len(os.listdir('/proc/self/fd')) <= before
    for one in made.descriptors:
        os.close(one)


@pytest.mark.skipif(sys.platform != 'linux', reason='asks Linux')
def test_overflow_of_events_loses_no_change(files):
    """All files are checked after an overflow."""
    with open('/proc/sys/fs/inotify/max_queued_events') as file:
        most = int(file.read())
    assert all(files.read_all())
    with files.paths[4].open('rb+', buffering=0) as other:
        # Two of them in turn: equal events that follow each other are one.
        with files.paths[5].open('rb+', buffering=0) as one:
            for _ in range(most // 2 + 10):
                other.write(b'x')
                one.write(b'x')
                other.seek(0)
                one.seek(0)
    write(files.paths[9])
    assert [number not in (4, 5, 9) for number in range(COUNT)] == (
        files.read_all())


def test_wrong_arguments_are_refused(files):
    """A file that is not open, and other files."""
    with pytest.raises(OSError, match='is not open'):
        file_state(1 << 20)
    with pytest.raises(TypeError, match='stay what they are'):
        files.states.__init__([])


def test_files_that_nobody_watches_are_current(files):
    """Remote ones have checks of their own."""
    files.rows.watch(FileStates([None] * COUNT))
    write(files.paths[0])
    assert all(files.read_all())
