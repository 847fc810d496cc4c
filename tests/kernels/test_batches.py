"""Batches by one call, against NumPy; and what is declined."""
import math
import os
import threading
from types import SimpleNamespace

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.kernel_rows import decoded_rows, map_rows

from fuel.exceptions import DamagedFileError
from fuel.kernels.batches import (
    Batches, BatchReader, PlainRows, RangeRows, WindowRows)
from fuel.kernels.epoch_reader import RequestPosition
from fuel.kernels.gather import MISSING, OUTSIDE
from fuel.kernels.file_states import FileStates, file_state

MOST = 1 << 20


@st.composite
def stored(draw):
    """Draw rows, how many lie in a chunk, and a request."""
    num_rows = draw(st.integers(1, 400))
    shape = draw(st.sampled_from([(), (1,), (3, 2), (100,)]))
    dtype = draw(st.sampled_from(['u1', 'i2', 'f8', 'S3']))
    itemsize = numpy.dtype(dtype).itemsize
    data = numpy.random.RandomState(draw(st.integers(0, 99))).randint(
        1, 127, (num_rows, math.prod(shape) * itemsize)).astype(
            'u1').view(dtype).reshape(num_rows, *shape)
    first = draw(st.integers(0, num_rows - 1))
    request = draw(st.lists(
        st.integers(0, num_rows - first - 1), min_size=1, max_size=300))
    if draw(st.booleans()):
        request = range(num_rows - first)
    return (data, draw(st.integers(1, 500)), first,
            numpy.array(request, numpy.intp))


def chunks_of(data, block_rows):
    """Return chunks of so many rows as bytes, the last one filled up."""
    row = data[:1].nbytes
    chunks = []
    for start in range(0, len(data), block_rows):
        part = data[start:start + block_rows].tobytes()
        chunks.append(numpy.frombuffer(
            part.ljust(block_rows * row, b'x'), 'u1'))
    return chunks


def mapped(data, block_rows, seed=0):
    """Return rows in chunks that lie in any order in a map."""
    chunks = chunks_of(data, block_rows)
    addresses = numpy.empty(len(chunks), numpy.int64)
    memory = b'head'
    for number in numpy.random.RandomState(seed).permutation(len(chunks)):
        addresses[number] = len(memory)
        memory += chunks[number].tobytes()
    return map_rows(
        data.shape, (block_rows, *data.shape[1:]), data.itemsize, addresses,
        numpy.zeros(data.shape[1:], data.dtype), memory)


def remembered(data, block_rows):
    """Return rows in decoded chunks, and the slots."""
    chunks = chunks_of(data, block_rows)
    return decoded_rows(
        data.shape, (block_rows, *data.shape[1:]), data.itemsize,
        numpy.zeros(len(chunks)), numpy.zeros(data.shape[1:], data.dtype),
        chunks)


def batches(data, *sources, first=0):
    """Return batches of sources that all hold the same rows."""
    return Batches(
        [(PlainRows(rows, data.shape[1:], data.dtype), first)
         for rows in sources],
        len(data) - first, MOST, None)


@given(case=stored(), seed=st.integers(0, 99))
def test_batches_equal_those_of_numpy(case, seed):
    """They are read from a map, and from decoded chunks."""
    data, block_rows, first, request = case
    direct = batches(data, mapped(data, block_rows, seed),
                     remembered(data, block_rows)[0], first=first)
    expected = data[first:][request]
    for batch in direct.read(request):
        assert expected.dtype == batch.dtype
        assert expected.tolist() == batch.tolist()
        assert batch.flags.owndata
        assert batch.flags.writeable


@given(block_rows=st.integers(1, 10 ** 6), row=st.integers(0, 10 ** 12))
def test_the_block_of_a_row_is_found_without_dividing(block_rows, row):
    """It is found for a row of any number, in blocks of any length."""
    num_blocks = row // block_rows + 1
    if num_blocks > 10 ** 5:
        block_rows = row // 10 ** 5 + 1
        num_blocks = row // block_rows + 1
    place, inside = divmod(row, block_rows)
    # Only the end of the one chunk that counts is in the memory.
    addresses = numpy.full(num_blocks, OUTSIDE, numpy.int64)
    memory = bytes([7])
    if inside == 0:
        addresses[place] = 0
        direct = Batches([(PlainRows(
            map_rows((row + 1, 1), (block_rows, 1), 1, addresses,
                     numpy.zeros(1, 'u1'), memory), (1,),
            numpy.dtype('u1')), 0)], row + 1, MOST, None)
        assert [[7]] == direct.read(numpy.array([row]))[0].tolist()
        for other in (row - 1, row - block_rows):
            if other >= 0:
                assert direct.read(numpy.array([other])) is None


@pytest.mark.parametrize('request_', [
    [0, 1], (0, 1), 0, slice(0, 2), None, range(2),
    numpy.array([], numpy.intp), numpy.array([0, 10]), numpy.array([-1]),
    numpy.array([[0]]), numpy.array([0, 1], 'i4'), numpy.array([0.]),
    numpy.array([0, 1], '>i8'), numpy.arange(4)[::2],
    numpy.array([True, False]),
    numpy.frombuffer(b'0' + bytes(8), 'u1')[1:].view(numpy.intp),
], ids=repr)
def test_requests_that_are_not_plain_are_declined(request_):
    """The way that knows all cases answers them."""
    data = numpy.arange(10, dtype='u1').reshape(10, 1)
    direct = batches(data, mapped(data, 10))
    assert direct.read(request_) is None
    assert [[9]] == direct.read(numpy.array([9]))[0].tolist()


def test_large_batches_are_left_to_several_threads():
    """One byte more than allowed is too much."""
    data = numpy.zeros((10, 100), 'u1')
    direct = Batches([(PlainRows(mapped(data, 10), (100,), data.dtype), 0)],
                     10, 500, None)
    assert direct.read(numpy.zeros(5, numpy.intp)) is not None
    assert direct.read(numpy.zeros(6, numpy.intp)) is None


@pytest.mark.parametrize('nbytes', [24575, 24576, 30001])
def test_long_rows_of_large_batches_equal_those_of_numpy(nbytes):
    """Long rows are copied in another way than those of small batches."""
    data = numpy.random.RandomState(0).randint(
        0, 256, (40, nbytes), numpy.uint8)
    part = PlainRows(mapped(data, 1), (nbytes,), data.dtype)
    direct = Batches([(part, 0)], len(data), 8 << 20, None)
    for count in (1, 170, 171, 200):
        request = numpy.random.RandomState(count).randint(0, 40, count)
        batch, = direct.read(request)
        assert (data[request] == batch).all()


@pytest.mark.parametrize('address', [OUTSIDE, 9, 1 << 62])
def test_chunks_that_are_not_in_the_file_are_declined(address):
    """Others of the same source are not."""
    rows = map_rows((4, 2), (2, 2), 1, numpy.array([0, address]),
                    numpy.zeros(2, 'u1'), bytes(range(12)))
    direct = Batches([(PlainRows(rows, (2,), numpy.dtype('u1')), 0)], 4,
                     MOST, None)
    assert [[2, 3]] == direct.read(numpy.array([1]))[0].tolist()
    assert direct.read(numpy.array([1, 2])) is None


@pytest.mark.parametrize('missing', [False, True])
def test_rows_in_several_tiles_are_put_together(missing):
    """Those that were never written have fill values."""
    fill = numpy.full(4, 9, 'u1')
    addresses = numpy.array([0, MISSING if missing else 4])
    chunks = [numpy.arange(4, dtype='u1'),
              None if missing else numpy.arange(4, 8, dtype='u1')]
    shapes = (2, 4), (2, 2), 1, addresses, fill
    expected = [[2, 3, 9, 9], [0, 1, 9, 9]] if missing else [
        [2, 3, 6, 7], [0, 1, 4, 5]]
    for source in (map_rows(*shapes, bytes(range(8))),
                   decoded_rows(*shapes, chunks)[0]):
        direct = Batches([(PlainRows(
            source, (4,), numpy.dtype('u1')), 0)], 2, MOST, None)
        assert expected == direct.read(numpy.array([1, 0]))[0].tolist()


def test_chunks_that_are_not_remembered_are_declined():
    """The chunks that such a request needs count as used all the same."""
    data = numpy.arange(6, dtype='u1')
    rows, slots = remembered(data, 2)
    direct = batches(data, rows)
    assert [5, 0] == direct.read(numpy.array([5, 0]))[0].tolist()
    assert [1, 0, 1] == slots.last_used.tolist()
    slots[1] = None
    assert direct.read(numpy.array([0, 2, 4])) is None
    assert 2 == slots.last_used[1]
    assert [4, 0] == direct.read(numpy.array([4, 0]))[0].tolist()


def test_sources_can_decline_for_a_time():
    """Their pages are fetched in another way then."""
    data = numpy.arange(6, dtype='u1')
    rows = mapped(data, 6)
    direct = batches(data, rows)
    rows.declines = True
    assert direct.read(numpy.array([0])) is None
    rows.declines = False
    assert [0] == direct.read(numpy.array([0]))[0].tolist()


@pytest.mark.parametrize('change', ['cut', 'written'])
def test_files_that_were_changed_are_declined(tmp_path, change):
    """A changed file is declined also where its bytes could be read."""
    path = tmp_path / 'rows'
    path.write_bytes(bytes(range(100)))
    with path.open('rb+') as file:
        rows = map_rows((100, 1), (100, 1), 1, numpy.zeros(1, numpy.int64),
                        numpy.zeros(1, 'u1'), path.read_bytes())
        with pytest.raises(ValueError, match='1 files, but the states of 0'):
            rows.watch(FileStates([]))
        rows.watch(FileStates([
            (file.fileno(), *file_state(file.fileno()))]))
        direct = Batches([(PlainRows(rows, (1,), numpy.dtype('u1')), 0)], 100,
                         MOST, None)
        assert [[99]] == direct.read(numpy.array([99]))[0].tolist()
        if change == 'cut':
            file.truncate(50)
        else:
            os.utime(path, ns=(0, 12345))
        assert direct.read(numpy.array([99])) is None
        assert direct.read(numpy.array([0])) is None


@given(case=stored(), data=st.data())
def test_examples_may_be_rows_in_any_order(case, data):
    """Each source has others; rows that do not exist are declined."""
    values, block_rows, first, request = case
    orders = [numpy.array(data.draw(st.permutations(range(len(values)))))
              for _ in range(2)]
    sources = [mapped(values, block_rows), mapped(values, block_rows),
               remembered(values, block_rows)[0],
               mapped(values, block_rows)]
    starts = [orders[0], orders[0].astype('i4'), orders[1], first]
    parts = [(PlainRows(rows, values.shape[1:], values.dtype), start)
             for rows, start in zip(sources, starts, strict=True)]
    direct = Batches(parts, len(values) - first, MOST, None)
    for batch, start in zip(direct.read(request), starts, strict=True):
        rows = request + first if start is first else start[request]
        assert values[rows].tolist() == batch.tolist()
    wrong = numpy.full(len(values), len(values))
    direct = Batches([(parts[0][0], wrong)], len(values), MOST, None)
    assert direct.read(request) is None
    with pytest.raises(ValueError, match='in an order of 1 rows'):
        Batches([(parts[0][0], numpy.array([0]))], 2, MOST, None)


def test_wrong_arguments_are_refused():
    """Arguments that would make a kernel leave its buffers are refused."""
    data = numpy.zeros((4, 2), 'u1')
    rows = mapped(data, 2)
    for shape, dtype in (((3,), 'u1'), ((2,), 'u2'), ((), 'u1')):
        with pytest.raises(ValueError, match='1 rows of 2 bytes do not hold'):
            PlainRows(rows, shape, numpy.dtype(dtype))
    with pytest.raises(ValueError, match='do not hold'):
        PlainRows(mapped(numpy.zeros((1, 8), 'u1'), 1), (),
                  numpy.dtype('O'))
    with pytest.raises(ValueError, match='too many axes'):
        PlainRows(rows, (1,) * 32, numpy.dtype('u2'))


def test_chunks_that_are_forgotten_meanwhile_are_not_overwritten():
    """Their memory may be used again only when no batch is copied of it."""
    data = numpy.repeat(numpy.arange(64, dtype='u1'), 4096).reshape(64, -1)
    rows, slots = remembered(data, 1)
    direct = batches(data, rows)
    chunks = list(slots)
    stop = threading.Event()

    def forget():
        rng = numpy.random.RandomState(0)
        while not stop.is_set():
            number = rng.randint(64)
            slots[number] = None
            slots[number] = chunks[number].copy()

    thread = threading.Thread(target=forget)
    thread.start()
    try:
        answered = 0
        rng = numpy.random.RandomState(1)
        for _ in range(2000):
            request = rng.randint(0, 64, 64)
            batch = direct.read(request)
            if batch is not None:
                answered += 1
                assert (request[:, None] == batch[0]).all()
    finally:
        stop.set()
        thread.join()
    assert answered


class Requests(RequestPosition):
    """Requests in a given order, which a reader does not extend."""

    requests_examples = False

    def __init__(self, order, batch_size, position):
        self.order, self.batch_size = order, batch_size
        self.position = position

    def plain_order(self):
        return self.order


class NoBatch:
    """The reader in place of the compiled one."""

    def read(self):
        raise StopIteration


def read_all(owner, order, batch_size, position):
    """Return the batches that a compiled reader reads by itself."""
    reader = BatchReader(Requests(order, batch_size, position), NoBatch(),
                         owner)
    reader.is_open = True
    return list(iter_until_stop(reader))


def iter_until_stop(reader):
    """Yield what a reader reads."""
    while True:
        try:
            batch, = reader.read()
        except StopIteration:
            return
        yield batch.tolist()


@given(num_rows=st.integers(1, 300), batch_size=st.integers(1, 310),
       data=st.data())
def test_batches_of_an_epoch_are_the_parts_of_its_order(
        num_rows, batch_size, data):
    """They are from any batch on, for every kind of order."""
    values = numpy.arange(1, num_rows + 1, dtype='i4')
    owner = SimpleNamespace(_direct=batches(values, mapped(values, 7)))
    start = data.draw(st.integers(0, num_rows - 1))
    order = data.draw(st.sampled_from([
        numpy.random.RandomState(0).permutation(num_rows).astype('u4'),
        numpy.random.RandomState(0).randint(0, num_rows, 500),
        range(start, num_rows), range(num_rows - 1, -1, -2),
        list(range(start, num_rows))]))
    parts = [values[list(order[place:place + batch_size])].tolist()
             for place in range(0, len(order), batch_size)]
    position = data.draw(st.integers(0, len(parts) + 2))
    assert parts[position:] == read_all(owner, order, batch_size, position)


def test_epoch_goes_on_where_a_batch_was_declined():
    """That one is still to come, as soon as it can be read."""
    values = numpy.arange(8, dtype='u1')
    rows, slots = remembered(values, 2)
    owner = SimpleNamespace(_direct=batches(values, rows))
    chunk, slots[2] = slots[2], None
    assert [[0, 1], [2, 3]] == read_all(owner, range(8), 2, 0)
    slots[2] = chunk
    direct, owner._direct = owner._direct, None
    assert [] == read_all(owner, range(8), 2, 2)
    owner._direct = direct
    assert [[4, 5], [6, 7]] == read_all(owner, range(8), 2, 2)


def test_wrong_orders_are_declined():
    """The kernel reads nothing outside of the order and the rows."""
    values = numpy.arange(8, dtype='u1')
    owner = SimpleNamespace(_direct=batches(values, mapped(values, 8)))
    for order in (range(7, 10), numpy.array([0, 8], 'u4'),
                  numpy.array([0, -1]), [0, 'a'], [2 ** 70], [True]):
        assert [] == read_all(owner, order, 9, 0)
    assert [] == read_all(owner, range(8), 2, -1)


@given(num_rows=st.integers(1, 50), block_rows=st.integers(1, 9),
       tiles=st.integers(1, 3), data=st.data())
def test_what_is_expected_is_what_the_rows_lie_in(
        num_rows, block_rows, tiles, data):
    """Each chunk comes once, without those that the file does not have."""
    count = -(-num_rows // block_rows) * tiles
    here = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    there = data.draw(st.sets(st.integers(0, count - 1)))
    source, slots = decoded_rows(
        (num_rows, tiles), (block_rows, 1), 1, numpy.where(here, 0, MISSING),
        numpy.zeros(tiles, 'u1'), [
            numpy.zeros(block_rows, 'u1') if chunk in there else None
            for chunk in range(count)])
    for time in (5, 6):
        rows = data.draw(st.lists(st.integers(0, num_rows - 1)))
        most = data.draw(st.integers(0, count)) * block_rows
        wanted = {row // block_rows * tiles + tile
                  for row in rows for tile in range(tiles)}
        wanted = {chunk for chunk in wanted if here[chunk]}
        before = slots.last_used.copy()
        found, absent = source.expect(
            numpy.array(rows, numpy.intp), most, time)
        assert len(wanted) * block_rows == found
        if found > most:
            assert [] == absent
            assert (before == slots.last_used).all()
        else:
            assert sorted(wanted - there) == sorted(absent)
            assert wanted == set(numpy.flatnonzero(
                slots.last_used == time).tolist())


@st.composite
def windows(draw):
    """Draw rows, bounds of windows, where runs begin, stride and offsets."""
    data, block_rows, _, _ = draw(stored())
    offsets = draw(st.one_of(
        st.integers(1, 5).map(range),
        st.lists(st.integers(0, 9), min_size=1, max_size=5)))
    stride = draw(st.integers(1, 3))
    bounds = numpy.unique([0, len(data), *draw(st.lists(
        st.integers(0, len(data)), max_size=5))])
    rooms = numpy.diff(bounds) - max(offsets)
    counts = numpy.maximum(0, -(-rooms // stride))
    firsts = numpy.concatenate([[0], numpy.cumsum(counts)])
    return data, block_rows, firsts, bounds[:-1], stride, numpy.array(offsets)


@given(case=windows(), first=st.integers(0, 3), seed=st.integers(0, 99))
def test_windows_equal_those_of_numpy(case, first, seed):
    """They are read from a map, and from decoded chunks; none of them is left
    out."""
    data, block_rows, firsts, first_rows, stride, offsets = case
    count = int(firsts[-1]) - first
    if count < 1:
        return
    parts = [(WindowRows(rows, (len(offsets), *data.shape[1:]), data.dtype,
                         firsts, first_rows, stride, offsets), first)
             for rows in (mapped(data, block_rows),
                          remembered(data, block_rows)[0])]
    direct = Batches(parts, count, len(offsets) * MOST, None)
    request = numpy.random.RandomState(seed).permutation(count)
    runs = firsts.searchsorted(request + first, 'right') - 1
    starts = first_rows[runs] + (request + first - firsts[runs]) * stride
    for batch in direct.read(request):
        assert (data[starts[:, None] + offsets] == batch).all()
        assert batch.flags.owndata and batch.flags.writeable


def test_windows_that_are_not_there_are_declined():
    """They are of no run, beyond the rows, or too large."""
    data = numpy.arange(10, dtype='u1')
    rows, runs = mapped(data, 10), numpy.array([0])
    part = WindowRows(rows, (2,), data.dtype, numpy.array([0, 12]), runs, 1,
                      numpy.arange(2))
    direct = Batches([(part, 0)], 20, 6, None)
    assert [[8, 9]] == direct.read(numpy.array([8]))[0].tolist()
    for request in ([9], [11], [12], [0, 1, 2, 3]):
        assert direct.read(numpy.array(request)) is None
    with pytest.raises(ValueError, match='2 rows of 1 bytes do not hold'):
        WindowRows(rows, (3,), data.dtype, numpy.array([0, 9]), runs, 1,
                   numpy.arange(2))
    with pytest.raises(ValueError, match='1 runs, but the first examples'):
        WindowRows(rows, (2,), data.dtype, numpy.array([0]), runs, 1,
                   numpy.arange(2))


@given(case=stored(), lengths=st.lists(st.integers(0, 9), min_size=1))
def test_ranges_equal_those_of_numpy(case, lengths):
    """There are several sources of rows, and examples without rows."""
    data, block_rows, _, _ = case
    starts = numpy.array([
        min(7 * place % len(data), len(data) - min(length, len(data)))
        for place, length in enumerate(lengths)])
    stops = starts + numpy.minimum(lengths, len(data))
    made = []
    parts = [PlainRows(rows, data.shape[1:], data.dtype)
             for rows in (mapped(data, block_rows),
                          remembered(data, block_rows)[0])]
    direct = Batches([(RangeRows(
        parts, starts, stops, lambda *found: made.append(found) or 'made'),
        1)], len(lengths) - 1, MOST, None)
    request = numpy.arange(len(lengths) - 1)[::-1].copy()
    if not request.size:
        return
    assert ('made',) == direct.read(request)
    (found, counts, examples), = made
    assert (request + 1 == examples).all()
    assert (stops - starts)[examples].tolist() == counts.tolist()
    rows = numpy.concatenate([
        data[starts[place]:stops[place]] for place in examples])
    for array in found:
        assert (rows == array).all() and array.flags.owndata


def test_ranges_that_are_not_there_are_declined():
    """Ranges that cannot be made into an example are declined, too."""
    data = numpy.arange(10, dtype='u1')
    starts, stops = numpy.array([0, 5, 8, 9, 3]), numpy.array([4, 7, 11, 8, 4])

    def make(found, counts, examples):
        if counts[0] == 1:
            raise DamagedFileError('it is damaged')
        return found[0]

    part = PlainRows(mapped(data, 10), (), data.dtype)
    direct = Batches([(RangeRows([part], starts, stops, make), 0)], 9, 7,
                     None)
    assert [5, 6, 0, 1, 2, 3] == direct.read(numpy.array([1, 0]))[0].tolist()
    for request in ([2], [3], [4], [5], [0, 0]):
        assert direct.read(numpy.array(request)) is None
    with pytest.raises(ValueError, match='5 ranges begin, and 4 end'):
        RangeRows([part], starts, stops[1:], make)
    with pytest.raises(TypeError, match='ranges of plain rows'):
        RangeRows([None], starts, stops, make)
