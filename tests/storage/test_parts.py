"""Sources of many parts give what NumPy gives for their rows joined."""
import concurrent.futures
import contextlib
import multiprocessing
import os
import time

import h5py
import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.storage_strategies import FILTERS, values

from fuel.exceptions import DamagedFileError
from fuel.storage import open_parts
from fuel.storage.reader import rows_of_ranges

TYPES = ['u1', '<f4', '>i4', '?', 'S3', h5py.string_dtype(),
         [('a', '<i2'), ('b', '>f4', (2,)), ('c', 'u1')],
         h5py.enum_dtype({'no': 0, 'yes': 1}, basetype='u1')]


@st.composite
def parts(draw):
    """Draw parts: their data, keywords and files; and axes, field, rows."""
    dtype = draw(st.sampled_from(TYPES))
    dtype = dtype if isinstance(dtype, numpy.dtype) else numpy.dtype(dtype)
    axes = draw(st.integers(1, 3))
    row_shape = tuple(draw(st.lists(st.integers(1, 5), max_size=2)))
    field = None
    if dtype.names and draw(st.booleans()):
        field = draw(st.sampled_from(['a', 'b', ['c', 'a']]))
    rng = numpy.random.RandomState(draw(st.integers(0, 999)))
    found = []
    for _ in range(draw(st.integers(1, 5))):
        shape = (*[draw(st.integers(0, 6)) for _ in range(axes)], *row_shape)
        content = (values(rng, shape, 'i4').astype(str).astype(object)
                   if dtype.hasobject else values(rng, shape, dtype))
        keywords = {}
        if draw(st.booleans()):
            keywords = {'chunks': tuple(
                draw(st.integers(1, max(1, length))) for length in shape),
                'maxshape': (None,) * len(shape)}
            if not dtype.hasobject:
                keywords.update(draw(st.sampled_from(FILTERS[:-1])))
        found.append((content, keywords, draw(st.integers(0, 2))))
    start, stop = [draw(st.one_of(st.none(), st.integers(-3, 3)))
                   for _ in range(2)]
    return found, dtype, {
        'field': field, 'axes': axes, 'start': start, 'stop': stop,
        'cache_bytes': draw(st.sampled_from([0, 200, 1 << 20]))}


def joined(case):
    """Return the rows of all parts after each other, and their bounds."""
    found, _, options = case
    axes, rows = options['axes'], slice(options['start'], options['stop'])
    pieces = [content[place][rows] for content, _, _ in found
              for place in numpy.ndindex(*content.shape[:axes - 1])]
    row_shape = found[0][0].shape[axes:]
    whole = numpy.concatenate([
        numpy.empty((0, *row_shape), found[0][0].dtype), *pieces])
    if options['field'] is not None:
        whole = whole[options['field']]
        whole = whole.astype(packed(whole.dtype))
    bounds = numpy.cumsum([0, *map(len, pieces)])
    return whole.astype(whole.dtype.newbyteorder('=')), bounds


def packed(dtype):
    """Return a type without gaps between its fields."""
    if dtype.names is None:
        return dtype
    return numpy.dtype([(name, dtype[name]) for name in dtype.names])


def plain(array):
    """Return values that can be compared, of text as `str`."""
    if array.dtype.hasobject:
        return [one.decode() if isinstance(one, bytes) else one
                for one in array.ravel().tolist()]
    return array.tobytes()


@settings(max_examples=200, deadline=None,
          suppress_health_check=list(HealthCheck))
@given(case=parts(), data=st.data())
def test_parts_give_what_their_rows_joined_give(tmp_path_factory, case, data):
    """Lengths, files, chunks, filters, types, fields and axes vary; rows,
    slices and ranges are read."""
    folder = tmp_path_factory.mktemp('parts')
    paths = [folder / f'{number}.hdf5' for number in range(3)]
    found, dtype, options = case
    for number, path in enumerate(paths):
        with h5py.File(path, 'w') as file:
            for place, (content, keywords, where) in enumerate(found):
                if where == number:
                    file.create_dataset(f'demo_{place}/x', data=content,
                                        dtype=dtype, **keywords)
    whole, bounds = joined(case)
    files = [h5py.File(path, 'r') for path in paths]
    try:
        reader = open_parts(
            [files[where][f'demo_{place}/x']
             for place, (_, _, where) in enumerate(found)], 'x', **options)
        assert whole.shape == reader.shape
        assert bounds.tolist() == reader.part_bounds.tolist()
        check(reader, whole, data)
    finally:
        for file in files:
            file.close()


def check(reader, whole, data):
    """Compare rows, slices and ranges of rows."""
    row = st.integers(0, max(0, len(whole) - 1))
    rows = numpy.array(data.draw(st.lists(
        row, max_size=20 if len(whole) else 0)), numpy.intp)
    assert plain(whole[rows]) == plain(reader.read(rows))
    low, high = sorted([data.draw(row), data.draw(row)])
    assert plain(whole[low:high]) == plain(reader.read(slice(low, high)))
    ranges = data.draw(st.lists(st.tuples(row, st.integers(0, 9))))
    starts = numpy.array([start for start, _ in ranges], numpy.intp)
    counts = numpy.array([min(count, len(whole) - start)
                          for start, count in ranges], numpy.intp)
    batch = reader.read_ranges(starts, counts)
    expected = numpy.concatenate([whole[:0], *[
        whole[start:start + count]
        for start, count in zip(starts, counts, strict=True)]])
    assert expected.shape == batch.shape
    assert reader.dtype == batch.dtype
    assert batch.dtype.isnative
    assert plain(expected) == plain(batch)
    for wrong in [len(whole)], [-1]:
        with pytest.raises(IndexError, match='rows must lie in'):
            reader.read(numpy.array(wrong, numpy.intp))
        with pytest.raises(IndexError, match='rows must lie in'):
            reader.read_ranges(numpy.array(wrong), numpy.array([1]))


def test_ranges_must_have_a_start_and_a_count_each():
    """Counts may be 0, and not less."""
    assert [5, 6, 0] == rows_of_ranges(
        numpy.array([5, 9, 0]), numpy.array([2, 0, 1])).tolist()
    for starts, counts in (([0, 1], [1]), ([[0]], [[1]])):
        with pytest.raises(ValueError, match='a start and a count each'):
            rows_of_ranges(numpy.array(starts), numpy.array(counts))
    with pytest.raises(ValueError, match='cannot have -1 rows'):
        rows_of_ranges(numpy.array([0]), numpy.array([-1]))


def test_parts_of_unequal_kind_are_refused(tmp_path):
    """The error names both parts."""
    with h5py.File(tmp_path / 'a.hdf5', 'w') as file:
        file['one'] = numpy.zeros((2, 3), 'f4')
        file['two'] = numpy.zeros((2, 4), 'f4')
        file['three'] = numpy.zeros((2, 3), 'f8')
        file['four'] = numpy.zeros(2, 'f4')
    with h5py.File(tmp_path / 'a.hdf5', 'r') as file:
        for other in ('two', 'three', 'four'):
            with pytest.raises(ValueError, match=f"'one'.*'{other}'"):
                open_parts([file['one'], file[other]], 'x')
        with pytest.raises(ValueError, match='2 axes, and there are 1'):
            open_parts([file['four']], 'x', axes=2)
        with pytest.raises(ValueError, match='no part'):
            open_parts([], 'x')
        for field in 'a', ['a']:
            with pytest.raises(ValueError, match='no field'):
                open_parts([file['one']], 'x', field=field)


# Of a source, each in a file of its own.
COUNT = 12


@pytest.fixture(params=[{}, {'chunks': (3, 2)}, {'compression': 'gzip'}],
                ids=['contiguous', 'chunked', 'gzip'])
def paths(tmp_path, request):
    """Write files of ten rows and more."""
    found = []
    for number in range(COUNT):
        path = tmp_path / f'{number}.hdf5'
        with h5py.File(path, 'w') as file:
            file.create_dataset('x', data=content(number), **request.param)
        found.append(path)
    return found


def content(number):
    """Return the rows of a part; each row has another number."""
    return numpy.arange(20 * number, 20 * number + 20 + 2 * number,
                        dtype='i4').reshape(-1, 2)


@contextlib.contextmanager
def opened(paths, **kwargs):
    """Open all parts; yield a reader and all rows."""
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(h5py.File(path, 'r')) for path in paths]
        yield (open_parts([file['x'] for file in files], 'x', **kwargs),
               numpy.concatenate([content(number) for number in range(COUNT)]))


def cut(path):
    """Cut a file in the middle."""
    os.truncate(path, path.stat().st_size // 2)


def overwrite(path):
    """Write other bytes in its place."""
    size = path.stat().st_size
    with path.open('rb+') as file:
        file.write(b'\x55' * size)


@pytest.mark.parametrize('change', [cut, overwrite])
def test_part_that_is_changed_while_in_use_is_an_error(paths, change):
    """The error names the file, and no wrong row is returned."""
    with opened(paths, cache_bytes=1 << 20) as (reader, whole):
        everything = numpy.arange(len(whole))
        assert whole.tolist() == reader.read(everything).tolist()
        change(paths[7])
        first, end = reader.part_bounds[7:9].tolist()
        for rows in everything, numpy.arange(first, end):
            with pytest.raises(DamagedFileError, match='7.hdf5'):
                reader.read(rows)
            with pytest.raises(DamagedFileError, match='7.hdf5'):
                reader.read_ranges(rows[:1], numpy.array([len(rows)]))
        with pytest.raises(DamagedFileError, match='7.hdf5'):
            reader.read(slice(None))
        # Rows of the other files are still what they were.
        assert whole[:first].tolist() == reader.read(
            everything[:first]).tolist()


def test_part_that_is_replaced_goes_on_being_read(paths):
    """It is read until a check finds that it is not current."""
    with opened(paths) as (reader, whole):
        assert all(file.is_current() for file in reader.files)
        new = paths[3].with_suffix('.new')
        with h5py.File(new, 'w') as file:
            file['x'] = numpy.zeros((13, 2), 'i4')
        os.replace(new, paths[3])
        assert whole.tolist() == reader.read(slice(None)).tolist()
        assert [number != 3 for number in range(COUNT)] == [
            file.is_current() for file in reader.files]


def test_part_that_ends_before_its_rows_is_named(tmp_path):
    """The error names the row in the part."""
    for number in range(3):
        with h5py.File(tmp_path / f'{number}.hdf5', 'w') as file:
            file['x'] = content(number + 5)
    path = tmp_path / '1.hdf5'
    with h5py.File(path, 'r') as file:
        offset = file['x'].id.get_offset()
    files = [h5py.File(tmp_path / f'{number}.hdf5', 'r')
             for number in range(3)]
    # HDF5 would refuse it, opened after that.
    os.truncate(path, offset + 44)
    reader = open_parts([file['x'] for file in files], 'x')
    first = int(reader.part_bounds[1])
    assert content(5).tolist() == reader.read(slice(0, first)).tolist()
    with pytest.raises(DamagedFileError, match=r"1.hdf5.*'x', row 2.*ends"):
        reader.read(numpy.array([0, first + 2]))
    for file in files:
        file.close()


def test_parts_are_read_by_threads_and_children(paths):
    """All of them see the same rows."""
    with opened(paths, cache_bytes=300) as (reader, whole):
        def read(seed):
            rng = numpy.random.RandomState(seed)
            for _ in range(200):
                rows = rng.randint(0, len(whole), 30)
                assert whole[rows].tolist() == reader.read(rows).tolist()
                starts = rng.randint(0, len(whole) - 5, 9)
                counts = rng.randint(0, 6, 9)
                assert whole[rows_of_ranges(starts, counts)].tolist() == (
                    reader.read_ranges(starts, counts).tolist())

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(read, range(4)))
        if hasattr(os, 'fork'):
            context = multiprocessing.get_context('fork')
            children = [context.Process(target=read, args=(seed,))
                        for seed in (5, 6)]
            for child in children:
                child.start()
            read(7)
            for child in children:
                child.join(60)
                assert 0 == child.exitcode


def test_parts_are_prefetched(paths):
    """Chunks of any part are prefetched, within the budget."""
    with opened(paths, cache_bytes=1 << 20) as (reader, whole):
        rows = numpy.array([5, 100, len(whole) - 1])
        budget = reader.prefetch_budget(slice(0, len(whole)))
        if budget is None:
            # It is in memory.
            return
        assert reader.prefetch(rows, 10) is None
        nbytes = reader.prefetch(rows, budget)
        assert 0 < nbytes <= budget
        deadline = time.monotonic() + 30
        while reader.store.num_decoded < 3:
            assert time.monotonic() < deadline
            time.sleep(.01)
        assert whole[rows].tolist() == reader.read(rows).tolist()
        assert 3 == reader.store.num_decoded
        starts, ends = reader.byte_ranges(rows)
        assert 3 == len(starts)
        assert (starts < ends).all()
