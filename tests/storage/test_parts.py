"""Sources of many parts give what NumPy gives for their rows joined."""
import h5py
import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.storage_strategies import FILTERS, values

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
    """Lengths, files, chunks, filters, types, fields and axes; rows, slices
    and ranges of rows."""
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
