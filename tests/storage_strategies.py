"""Random HDF5 data sets and requests, shared by the tests of storage."""
import h5py
import numpy
from hypothesis import strategies as st

TYPES = [
    'u1', '<i2', '>i2', '<u4', '>i8', '<f4', '>f4', '<f8', '>f8', '<f2',
    '<c8', '>c16', '?', 'S3', 'S1', 'g',
    [('a', '<i2'), ('b', '>f4')],
    [('a', 'u1'), ('b', '?'), ('c', 'S2')],
    {'names': ['a', 'b'], 'formats': ['u1', '<i4'], 'offsets': [0, 4],
     'itemsize': 12},
]
FILTERS = [
    {}, {'compression': 'gzip', 'compression_opts': 1},
    {'compression': 'gzip', 'compression_opts': 9}, {'compression': 'lzf'},
    {'shuffle': True}, {'fletcher32': True},
    {'compression': 'gzip', 'shuffle': True},
    {'compression': 'lzf', 'shuffle': True},
    {'compression': 'gzip', 'shuffle': True, 'fletcher32': True},
    {'compression': 'lzf', 'fletcher32': True},
    {'shuffle': True, 'fletcher32': True}, {'scaleoffset': 0},
]


def values(rng, shape, dtype):
    """Return random values of any plain type, compressible ones."""
    dtype = numpy.dtype(dtype)
    if dtype.names is not None:
        result = numpy.zeros(shape, dtype)
        for name in dtype.names:
            result[name] = values(rng, shape, dtype[name])
        return result
    numbers = rng.randint(0, 50, shape)
    if dtype.kind == 'b':
        return numbers % 2 == 0
    if dtype.kind == 'c':
        return (numbers + 1j * numbers[::-1]).astype(dtype)
    return numbers.astype(dtype)


@st.composite
def datasets(draw, types=TYPES):
    """Draw how to create a data set: ``(keywords, data)``."""
    shape = tuple(draw(st.lists(
        st.integers(1, 9), min_size=1, max_size=3)))
    shape = (draw(st.integers(1, 40)), *shape[1:])
    dtype = numpy.dtype(draw(st.sampled_from(types)))
    rng = numpy.random.RandomState(draw(st.integers(0, 1000)))
    data = values(rng, shape, dtype)
    keywords = {'shape': shape, 'dtype': dtype}
    if draw(st.booleans()):
        keywords['chunks'] = tuple(
            draw(st.integers(1, length)) for length in shape)
        options = dict(draw(st.sampled_from(FILTERS)))
        if 'scaleoffset' in options and dtype.kind not in 'iu':
            options = {}
        keywords.update(options)
        if draw(st.booleans()):
            keywords['maxshape'] = (None,) * len(shape)
            if draw(st.booleans()):
                # Chunks may be larger than the data set.
                keywords['chunks'] = tuple(
                    draw(st.integers(1, 2 * length)) for length in shape)
        if dtype.kind in 'iuf' and draw(st.booleans()):
            keywords['fillvalue'] = 7
    return keywords, data


@st.composite
def requests(draw, num_rows):
    """Draw a request for rows: an int, a slice or an array."""
    kind = draw(st.sampled_from(['int', 'slice', 'step', 'list', 'run']))
    row = st.integers(0, num_rows - 1)
    if kind == 'int':
        return draw(row)
    if kind == 'list':
        rows = draw(st.lists(row, max_size=50))
        return numpy.array(rows, numpy.intp)
    low, high = sorted([draw(row), draw(row)])
    if kind == 'run':
        return numpy.arange(low, high + 1, dtype=numpy.intp)
    if kind == 'step':
        return slice(low, high + 1, draw(st.integers(1, 4)))
    return slice(low, high + 1)


def write(path, keywords, data, written, libver='earliest',
          userblock_size=0):
    """Write a file with a data set ``x`` of which some rows are written."""
    with h5py.File(path, 'w', libver=libver,
                   userblock_size=userblock_size) as file:
        file.create_dataset('before', data=numpy.arange(3, dtype='u1'))
        dataset = file.create_dataset('x', **keywords)
        for rows in written:
            dataset[rows] = data[rows]


def expected(dataset, rows):
    """Return rows as plain h5py reads them, in native byte order."""
    whole = dataset[...]
    if isinstance(rows, numpy.ndarray) and not rows.size:
        result = whole[:0]
    else:
        result = whole[rows]
    return result.astype(result.dtype.newbyteorder('='))
