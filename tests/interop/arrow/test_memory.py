"""The memory of decoded row groups and batches."""
import numpy
import pyarrow
import pyarrow.ipc
import pytest
from pyarrow import parquet

from fuel.interop.arrow import ArrowDataset

N = 3000


def table():
    """Return a wide column, and narrow ones of numbers and of lists."""
    wide = pyarrow.array(numpy.zeros(N * 1000))
    return pyarrow.table({
        'wide': pyarrow.FixedSizeListArray.from_arrays(wide, 1000),
        'number': numpy.arange(N),
        'numbers': pyarrow.array([[row, row + 1] for row in range(N)])})


def test_row_groups_are_remembered_as_they_were_decoded(tmp_path):
    """A copy would take half as long as decoding, and more memory."""
    path = str(tmp_path / 'a.parquet')
    parquet.write_table(table(), path, row_group_size=N // 3)
    dataset = ArrowDataset(path, sources=('wide', 'number'))
    before = pyarrow.total_allocated_bytes()
    _, number = dataset.get_data(None, list(range(0, N, 100)))
    assert list(range(0, N, 100)) == number.tolist()
    held = sum(dataset.readers[name].store.slots.held_nbytes
               for name in ('wide', 'number'))
    assert 8 * N * 1001 == held
    grown = pyarrow.total_allocated_bytes() - before
    assert held <= grown <= 1.1 * held


@pytest.mark.parametrize('source', ['number', 'numbers'])
@pytest.mark.parametrize('new', [pyarrow.ipc.new_file, pyarrow.ipc.new_stream])
def test_batches_of_arrow_files_keep_no_other_column(tmp_path, source, new):
    """PyArrow reads a batch with all its columns in one piece."""
    path = str(tmp_path / 'a.arrow')
    with new(path, table().schema) as writer:
        writer.write_table(table(), max_chunksize=N // 3)
    dataset = ArrowDataset(path, sources=(source,))
    before = pyarrow.total_allocated_bytes()
    dataset.get_data(None, [0, N // 2, N - 1])
    # A stream keeps the batch that it read last.
    batch = 0 if new is pyarrow.ipc.new_file else 8 * N // 3 * 1010
    assert pyarrow.total_allocated_bytes() - before <= batch + 8 * N * 10


def test_rows_of_a_table_are_remembered_in_memory_of_their_own():
    """The table's memory may be a file's, which another program can cut."""
    whole = pyarrow.concat_tables([table(), table()])
    dataset = ArrowDataset(whole, sources=('number',))
    dataset.get_data(None, [0, N])
    slots = dataset.readers['number'].store.slots
    for place in range(2):
        assert not numpy.shares_memory(
            slots[place], whole['number'].chunk(place).to_numpy())


def test_rows_of_objects_are_forgotten_before_what_was_decoded_later(tmp_path):
    """Their reader holds those in use, however often they are read."""
    path = str(tmp_path / 'a.parquet')
    parquet.write_table(table(), path, row_group_size=N // 3)
    dataset = ArrowDataset(
        path, sources=('number', 'numbers'), cache_bytes=120_000)
    number, numbers = map(dataset.readers.get, dataset.sources)
    assert [0, 1] == numbers.read(numpy.array([0]))[0].tolist()
    assert [0] == number.read(numpy.array([0])).tolist()
    assert [1, 2] == numbers.read(numpy.array([1]))[0].tolist()
    cache = number.store.cache
    held = number.store.used_bytes
    assert 8 * N // 3 == held < cache.used
    with cache.lock:
        cache.make_room(30_000)
    assert held == cache.used == number.store.used_bytes
    assert [2, 3] == numbers.read(numpy.array([2]))[0].tolist()
