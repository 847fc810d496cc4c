"""Gathering from maps and chunks against a plain twin in NumPy."""
import math

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.kernel_rows import decoded_rows, map_rows, part, table

from fuel.kernels.chunk_slots import Clock, Slots
from fuel.kernels.gather import MISSING, OUTSIDE, DecodedRows, MappedRows
from fuel.kernels.part_table import ALL_ROWS, PART, PartTable
from fuel.kernels.tiles import Tiles


def grid_of(shape, chunk_shape):
    """Return how many chunks there are along each axis."""
    return [-(-length // part)
            for length, part in zip(shape, chunk_shape, strict=True)]


@st.composite
def stored(draw):
    """Draw an array, how it is cut in chunks, and which are missing."""
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=3)))
    chunk_shape = tuple(draw(st.integers(1, 7)) for _ in shape)
    itemsize = draw(st.sampled_from([1, 2, 3, 8]))
    data = numpy.random.RandomState(draw(st.integers(0, 99))).randint(
        1, 256, (*shape, itemsize)).astype('u1')
    grid = grid_of(shape, chunk_shape)
    missing = draw(st.sets(st.integers(0, math.prod(grid) - 1)))
    rows = draw(st.lists(st.integers(0, shape[0] - 1), max_size=20))
    return data, chunk_shape, missing, numpy.array(rows, numpy.intp)


def cut(data, chunk_shape, missing):
    """Return the chunks as bytes, and the data with zeros for missing
    ones."""
    chunks, content = [], data.copy()
    shape = data.shape[:-1]
    grid = grid_of(shape, chunk_shape)
    for number, place in enumerate(numpy.ndindex(*grid)):
        where = tuple(slice(index * part, (index + 1) * part)
                      for index, part in zip(
                          place, chunk_shape, strict=True))
        if number in missing:
            content[where] = 0
            chunks.append(None)
            continue
        whole = numpy.full((*chunk_shape, data.shape[-1]), 99, 'u1')
        part = data[where]
        whole[tuple(map(slice, part.shape))] = part
        chunks.append(whole.reshape(-1))
    return chunks, content


@given(case=stored(), seed=st.integers(0, 99))
def test_mapped_rows_equal_those_of_numpy(case, seed):
    """Chunks lie in any order in the file; lists, and ranges of rows, are
    read."""
    data, chunk_shape, missing, rows = case
    chunks, content = cut(data, chunk_shape, missing)
    addresses = numpy.full(len(chunks), MISSING, numpy.int64)
    memory = b'head'
    for number in numpy.random.RandomState(seed).permutation(len(chunks)):
        if chunks[number] is not None:
            addresses[number] = len(memory)
            memory += chunks[number].tobytes()
    mapped = map_rows(data.shape[:-1], chunk_shape, data.shape[-1], addresses,
                      numpy.zeros(data.shape[1:], 'u1'), memory)
    out = numpy.empty((len(rows), *data.shape[1:]), 'u1')
    assert mapped.copy(rows, out)
    assert content[rows].tolist() == out.tolist()
    if len(rows):
        start, stop = int(rows.min()), int(rows.max()) + 1
        for wanted in (start, stop), numpy.arange(start, stop):
            out = numpy.empty((stop - start, *data.shape[1:]), 'u1')
            middle = (stop - start) // 2
            assert mapped.copy(wanted, out, middle)
            assert mapped.copy(wanted, out, 0, middle)
            assert content[start:stop].tolist() == out.tolist()


@given(case=stored(), absent=st.sets(st.integers(0, 50)),
       is_range=st.booleans())
def test_decoded_rows_equal_those_of_numpy(case, absent, is_range):
    """Remembered chunks are copied; the others are listed, and then copied one
    by one."""
    data, chunk_shape, missing, rows = case
    chunks, content = cut(data, chunk_shape, missing)
    clock = Clock()
    decoded, slots = decoded_rows(
        data.shape[:-1], chunk_shape, data.shape[-1],
        [MISSING if chunk is None else 0 for chunk in chunks],
        numpy.zeros(data.shape[1:], 'u1'), [
            None if number in absent else chunk
            for number, chunk in enumerate(chunks)], clock)
    num_tiles = math.prod(grid_of(data.shape[1:-1], chunk_shape[1:]))
    wanted = rows
    if is_range:
        rows = numpy.arange(rows.min(initial=0), rows.max(initial=-1) + 1)
        wanted = (int(rows[0]), int(rows[-1]) + 1) if len(rows) else (0, 0)
    out = numpy.empty((len(rows), *data.shape[1:]), 'u1')
    found, are_current = decoded.copy(wanted, out)
    assert are_current
    for chunk, pieces in found:
        assert slots[chunk] is None
        decoded.copy_chunk(chunk, chunks[chunk], pieces, out)
    assert content[rows].tolist() == out.tolist()
    blocks = set((rows // chunk_shape[0]).tolist())
    assert {number // num_tiles for number in numpy.flatnonzero(
        slots.last_used == clock.time)} == blocks


def test_wrong_arguments_are_refused():
    """Arguments that would make a kernel leave its buffers are refused."""
    fill, out = numpy.zeros(2, 'u1'), numpy.empty((1, 2), 'u1')
    memory, addresses = bytes(8), numpy.array([0, 4], numpy.int64)
    one = numpy.array([0])
    slots = Slots([4, 4])

    def make(addresses=addresses, fill=fill, slots=slots):
        return DecodedRows(table((4, 2), (2, 2), 1, fill), addresses, slots,
                           Clock())

    def copy(rows=one, out=out, fill=fill, addresses=addresses, begin=0,
             end=None):
        make(addresses, fill).copy(one, numpy.empty((1, 2), 'u1'))
        return map_rows((4, 2), (2, 2), 1, addresses, fill, memory).copy(
            rows, out, begin, end)

    for rows in (numpy.array([4]), numpy.array([-1])):
        with pytest.raises(IndexError, match='0 to 3'):
            copy(rows)
        with pytest.raises(IndexError, match='0 to 3'):
            make().copy(rows, out)
        with pytest.raises(IndexError, match='0 to 3'):
            copy((rows, one + 1))
    for rows in (3, 5), (-1, 0), (2, 1):
        with pytest.raises(IndexError, match=f'0 to 3, got {rows[0]} to'):
            copy(rows)
    with pytest.raises(ValueError, match='intp'):
        copy(numpy.array([0], 'i2'))
    with pytest.raises(ValueError, match='do not fit'):
        copy(out=numpy.empty((2, 2), 'u1'))
    with pytest.raises(ValueError, match='do not fit'):
        copy(out=numpy.empty((1, 4), 'u1')[:, ::2])
    with pytest.raises(ValueError, match='fill value'):
        copy(fill=numpy.zeros(3, 'u1'))
    with pytest.raises(ValueError, match='2 chunks, but a table of 1'):
        copy(addresses=addresses[:1])
    for begin, end in (0, 7), (-1, 1), (1, 0):
        with pytest.raises(ValueError, match=f'rows {begin} to {end} of 1'):
            copy(begin=begin, end=end)
    for address in (OUTSIDE, 5, 1 << 62, -7):
        with pytest.raises(LookupError) as caught:
            copy(numpy.array([2]),
                 addresses=numpy.array([0, address], numpy.int64))
        assert 1 == caught.value.args[0]
    for starts, lengths, text in (
            ([0], [1, 1], '1 ranges with 2 lengths'),
            ([0], [2], 'range 0 has 2 rows: there is room for 1'),
            ([0, 0], [1, 1 << 62], 'range 1 has'),
            ([0, 0], [-1, 2], 'range 0 has -1 rows'),
            ([0], [0], 'do not fit')):
        with pytest.raises(ValueError, match=text):
            copy((numpy.array(starts), numpy.array(lengths)))
    with pytest.raises(ValueError, match='2 chunks, but 1 slots'):
        make(slots=Slots([4]))
    with pytest.raises(ValueError, match='chunk 1 needs 4 bytes, and its sl'):
        make(slots=Slots([4, 3]))
    rows = make()
    whole = numpy.zeros(4, 'u1')
    for chunk, piece, text in [
            (0, (1, 1, 0), 'place 1 of 1'),
            (0, (-1, 1, 0), 'place -1 of 1'),
            (0, (0, 2, 0), 'place 0 of 1'),
            (0, (0, 0, 0), 'place 0 of 1'),
            (0, (0, 1, -1), '0 to 3'),
            (0, (0, 1, 4), '0 to 3'),
            (1, (0, 1, 0), 'another chunk'),
            (-1, (0, 1, 0), 'chunk -1 of 2'),
            (2, (0, 1, 0), 'chunk 2 of 2')]:
        with pytest.raises(IndexError, match=text):
            rows.copy_chunk(chunk, whole, [piece], out)
    with pytest.raises(IndexError, match='another chunk'):
        rows.copy_chunk(0, whole, [(0, 2, 1)], numpy.empty((2, 2), 'u1'))
    with pytest.raises(ValueError, match='must have 4 bytes'):
        rows.copy_chunk(0, whole[:3], [(0, 1, 0)], out)
    with pytest.raises(ValueError, match='plain'):
        rows.copy_chunk(0, whole, [(0, 1, 0)],
                        numpy.empty((2, 4), 'u1')[:, ::2])
    with pytest.raises(ValueError, match='intp'):
        rows.expect(numpy.array([0], 'i2'), 9, 9)
    for row in -1, 4, 2 ** 62:
        with pytest.raises(IndexError, match='0 to 3'):
            rows.expect(numpy.array([row]), 9, 9)


def test_tiles_that_cannot_be_are_refused():
    """Too many, or too large, tiles are refused, too."""
    with pytest.raises(ValueError, match='cannot hold'):
        Tiles((2,), (), 1)
    with pytest.raises(ValueError, match='are empty'):
        Tiles((0,), (1,), 1)
    with pytest.raises(ValueError, match='too many segments'):
        Tiles((300000,), (1,), 1)
    with pytest.raises(ValueError, match='too many segments'):
        Tiles((40000,), (40000,), 8, [(0, 1), (4, 2)])
    for row_shape, tile_shape in (
            ((2 ** 32, 2 ** 32), (1, 1)), ((2,), (2 ** 63,))):
        with pytest.raises(ValueError, match='no memory holds'):
            Tiles(row_shape, tile_shape, 1)
    for field in (-1, 1), (0, 9), (7, 2), (3, 0):
        with pytest.raises(ValueError, match='there are no bytes'):
            Tiles((2,), (2,), 8, [field])


def test_parts_that_cannot_be_are_refused():
    """Parts outside the chunks, of an unknown kind or file, are refused."""
    tiles, fill = Tiles((2,), (2,), 1), numpy.zeros(2, 'u1')

    def make(num_chunks=2, kinds=((tiles, fill),), **others):
        return PartTable(list(kinds), part(**{
            'rows': 4, 'block_rows': 2, **others}), num_chunks)

    assert 4 == make().num_rows
    for others in ({'num_chunks': 1}, {'skip': 1}, {'first_chunk': 1},
                   {'rows': 5}):
        with pytest.raises(ValueError, match='chunks, but part 0 has'):
            make(**others)
    for others in ({'skip': -1}, {'rows': -1}, {'offset': -1}, {'kind': 1},
                   {'kind': -1}, {'file': 1}, {'file': -1},
                   {'block_rows': 0}, {'first_chunk': -1},
                   {'rows': ALL_ROWS + 1}):
        with pytest.raises(ValueError, match='part 0 cannot be'):
            make(**others)
    with pytest.raises(ValueError, match='some `PART`'):
        PartTable([(tiles, fill)], numpy.zeros(0, PART), 2)
    with pytest.raises(ValueError, match='some `PART`'):
        PartTable([(tiles, fill)], numpy.zeros((1, 7), 'i8'), 2)
    with pytest.raises(ValueError, match='no kinds'):
        make(kinds=())
    with pytest.raises(ValueError, match='one size'):
        make(kinds=((tiles, fill), (Tiles((3,), (3,), 1),
                                    numpy.zeros(3, 'u1'))))
    one = make()
    with pytest.raises(ValueError, match='2 chunks, but a table of 1'):
        MappedRows(one, [0], [(0, bytes(8))])
    with pytest.raises(ValueError, match='1 files, but 0 maps'):
        MappedRows(one, [0, 4], [])
    # Rows that would begin in a chunk and end after it.
    for address, offset in (0, 5), (4, 1), (-4, 0):
        rows = MappedRows(make(offset=offset, rows=2), [address, 0],
                          [(0, bytes(8))])
        with pytest.raises(LookupError):
            rows.copy((0, 2), numpy.empty((2, 2), 'u1'))


@st.composite
def several_parts(draw):
    """Draw the rows of parts in maps, in chunks of any length, and what is
    needed to find them."""
    kinds = [Tiles((3,), (tile,), 1) for tile in (3, 2, 1)]
    memories = [b'', b'head', bytes(70)]
    parts = numpy.zeros(draw(st.integers(1, 12)), PART)
    rows, addresses = [], []
    rng = numpy.random.RandomState(draw(st.integers(0, 99)))
    for one in parts:
        kind, file = draw(st.integers(0, 2)), draw(st.integers(0, 2))
        skip, count = draw(st.integers(0, 4)), draw(st.integers(0, 9))
        block_rows = draw(st.integers(1, 6))
        tile = 3 - kind
        data = rng.randint(1, 256, (skip + count, 3)).astype('u1')
        offset = draw(st.integers(0, 3))
        for name, value in {
                'rows': count, 'skip': skip, 'block_rows': block_rows,
                'first_chunk': len(addresses), 'offset': offset,
                'kind': kind, 'file': file}.items():
            one[name] = value
        for start in range(0, skip + count, block_rows):
            for column in range(0, 3, tile):
                piece = data[start:start + block_rows, column:column + tile]
                chunk = numpy.zeros((block_rows, tile), 'u1')
                chunk[:len(piece), :piece.shape[1]] = piece
                addresses.append((file, len(memories[file])))
                memories[file] += bytes(offset) + chunk.tobytes()
        rows.append(data[skip:])
    return kinds, parts, memories, addresses, numpy.concatenate(rows)


@given(case=several_parts(), data=st.data())
def test_rows_of_many_parts_equal_those_of_numpy(case, data):
    """They lie in any files; lists, ranges of rows, and pieces of a batch are
    read."""
    kinds, parts, memories, addresses, content = case
    starts = [0, 1 << 20, 3 << 20]
    fill = numpy.zeros(3, 'u1')
    made = PartTable([(tiles, fill) for tiles in kinds], parts,
                     len(addresses), 3)
    mapped = MappedRows(
        made, [starts[file] + place for file, place in addresses],
        list(zip(starts, memories, strict=True)))
    assert len(content) == made.num_rows
    if not len(content):
        return
    row = st.integers(0, len(content) - 1)
    rows = numpy.array(data.draw(st.lists(row, max_size=300)), numpy.intp)
    out = numpy.empty((len(rows), 3), 'u1')
    assert mapped.copy(rows, out)
    assert content[rows].tolist() == out.tolist()
    first = numpy.array(data.draw(st.lists(row, max_size=30)), numpy.intp)
    counts = numpy.array([data.draw(st.integers(0, len(content) - start))
                          for start in first.tolist()], numpy.intp)
    expected = numpy.concatenate([fill[None][:0], *[
        content[start:start + count]
        for start, count in zip(first, counts, strict=True)]])
    out = numpy.empty(expected.shape, 'u1')
    middle = data.draw(st.integers(0, len(out)))
    assert mapped.copy((first, counts), out, middle)
    assert mapped.copy((first, counts), out, 0, middle)
    assert expected.tolist() == out.tolist()


@given(case=several_parts(), data=st.data())
def test_chunks_of_rows_are_named_once_and_in_their_order(case, data):
    """All those that a row lies in; a row that is not there has none."""
    kinds, parts, _, addresses, content = case
    made = PartTable([(tiles, numpy.zeros(3, 'u1')) for tiles in kinds],
                     parts, len(addresses), 3)
    places = [(one, row) for one in parts for row in range(one['rows'])]
    rows = data.draw(st.lists(st.integers(0, len(content) - 1), max_size=60)
                     if len(content) else st.just([]))
    expected = set()
    for one, row in map(places.__getitem__, rows):
        count = kinds[one['kind']].num_tiles
        block = (row + one['skip']) // one['block_rows']
        first = int(one['first_chunk'] + block * count)
        expected.update(range(first, first + count))
    assert sorted(expected) == made.chunks_of(
        numpy.array(rows, numpy.intp)).tolist()
    for row in (-1, len(content)):
        with pytest.raises(IndexError, match=f'no row {row}'):
            made.chunks_of(numpy.array([*rows, row]))


def test_slots_take_nothing_but_decoded_chunks():
    """The kernels rely on it."""
    slots = Slots([4, 4])
    slots[1] = numpy.arange(4, dtype='u1')
    assert [None, [0, 1, 2, 3]] == [
        chunk if chunk is None else chunk.tolist() for chunk in slots]
    with pytest.raises(ValueError, match='must have 4 bytes, got 3'):
        slots[0] = numpy.zeros(3, 'u1')
    with pytest.raises(ValueError, match='must have 4 bytes'):
        slots[0] = numpy.zeros(8, 'u1')[::2]
    with pytest.raises(TypeError, match='must be an array'):
        slots[0] = b'1234'
    for place in (-1, 2):
        with pytest.raises(IndexError, match='of 2'):
            slots[place] = None
        with pytest.raises(IndexError, match='of 2'):
            slots[place]
