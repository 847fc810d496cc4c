"""Gathering from maps and chunks against a plain twin in NumPy."""
import math

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuel.kernels.chunk_slots import Clock, Slots
from fuel.kernels.gather import MISSING, OUTSIDE, DecodedRows, MappedRows
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
    """Chunks in any order in the file; lists, and ranges of rows."""
    data, chunk_shape, missing, rows = case
    chunks, content = cut(data, chunk_shape, missing)
    addresses = numpy.full(len(chunks), MISSING, numpy.int64)
    memory = b'head'
    for number in numpy.random.RandomState(seed).permutation(len(chunks)):
        if chunks[number] is not None:
            addresses[number] = len(memory)
            memory += chunks[number].tobytes()
    tiles = Tiles(data.shape[:-1], chunk_shape, data.shape[-1])
    fill = numpy.zeros(data.shape[1:], 'u1')
    mapped = MappedRows(tiles, addresses, fill, memory)
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
    """What is remembered is copied, the rest is listed, then copied chunk
    by chunk."""
    data, chunk_shape, missing, rows = case
    chunks, content = cut(data, chunk_shape, missing)
    tiles = Tiles(data.shape[:-1], chunk_shape, data.shape[-1])
    slots = Slots(len(chunks), tiles.chunk_nbytes)
    for number, chunk in enumerate(chunks):
        if number not in absent:
            slots[number] = chunk
    fill = numpy.zeros(data.shape[1:], 'u1')
    clock = Clock()
    decoded = DecodedRows(
        tiles, [MISSING if chunk is None else 0 for chunk in chunks], fill,
        slots, clock)
    wanted = rows
    if is_range:
        rows = numpy.arange(rows.min(initial=0), rows.max(initial=-1) + 1)
        wanted = (int(rows[0]), int(rows[-1]) + 1) if len(rows) else (0, 0)
    out = numpy.empty((len(rows), *data.shape[1:]), 'u1')
    for chunk, places in decoded.copy(wanted, out):
        assert slots[chunk] is None
        decoded.copy_chunk(chunk, chunks[chunk], wanted, places, out)
    assert content[rows].tolist() == out.tolist()
    blocks = set((rows // chunk_shape[0]).tolist())
    assert {number // tiles.num_tiles for number in numpy.flatnonzero(
        slots.last_used == clock.time)} == blocks


def test_wrong_arguments_are_refused():
    """What a kernel could read or write outside of."""
    tiles = Tiles((4, 2), (2, 2), 1)
    memory, addresses = bytes(8), numpy.array([0, 4], numpy.int64)
    fill, out = numpy.zeros(2, 'u1'), numpy.empty((1, 2), 'u1')
    one = numpy.array([0])
    slots = Slots(2, 4)

    def copy(rows=one, out=out, fill=fill, addresses=addresses, begin=0,
             end=None):
        DecodedRows(tiles, addresses, fill, slots, Clock()).copy(
            numpy.array([0]), numpy.empty((1, 2), 'u1'))
        return MappedRows(tiles, addresses, fill, memory).copy(
            rows, out, begin, end)

    for rows in (numpy.array([4]), numpy.array([-1])):
        with pytest.raises(IndexError, match='0 to 3'):
            copy(rows)
        with pytest.raises(IndexError, match='0 to 3'):
            DecodedRows(tiles, addresses, fill, slots, Clock()).copy(
                rows, out)
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
    with pytest.raises(ValueError, match='2 chunks, but 1 slots'):
        DecodedRows(tiles, addresses, fill, Slots(1, 4), Clock())
    with pytest.raises(ValueError, match='chunks of 4 bytes, but slots of 3'):
        DecodedRows(tiles, addresses, fill, Slots(2, 3), Clock())
    rows = DecodedRows(tiles, addresses, fill, slots, Clock())
    for chunk, places, error, text in [
            (0, [1], IndexError, 'place 1 of 1'),
            (0, [-1], IndexError, 'place -1 of 1'),
            (1, [0], IndexError, 'another chunk'),
            (-1, [0], IndexError, 'chunk -1 of 2'),
            (2, [0], IndexError, 'chunk 2 of 2')]:
        with pytest.raises(error, match=text):
            rows.copy_chunk(chunk, numpy.zeros(4, 'u1'), one, places, out)
    with pytest.raises(ValueError, match='must have 4 bytes'):
        rows.copy_chunk(0, numpy.zeros(3, 'u1'), one, [0], out)
    with pytest.raises(ValueError, match='cannot hold'):
        Tiles((4, 2), (2,), 1)
    with pytest.raises(ValueError, match='are empty'):
        Tiles((4, 0), (2, 1), 1)
    with pytest.raises(ValueError, match='too many segments'):
        Tiles((4, 300000), (4, 1), 1)
    for shape, chunk_shape in (
            ((2 ** 60, 16), (2 ** 60, 16)), ((4, 2 ** 32, 2 ** 32), (1, 1, 1)),
            ((4, 2), (2 ** 32, 2 ** 32)), ((2 ** 63, 1), (1, 1))):
        with pytest.raises(ValueError, match='no memory holds'):
            Tiles(shape, chunk_shape, 1)


def test_slots_take_nothing_but_decoded_chunks():
    """The kernels rely on it."""
    slots = Slots(2, 4)
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
