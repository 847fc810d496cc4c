"""Random HDF5 data sets and requests, shared by the tests of storage."""
from pathlib import Path

import h5py
import numpy
from hypothesis import strategies as st

TYPES = [
    'u1', '<i2', '>i2', '<u4', '>i8', '<f4', '>f4', '<f8', '>f8', '<f2',
    '<c8', '>c16', '?', 'S3', 'S1', 'g',
    [('a', '<i2'), ('b', '>f4')],
    [('a', 'u1'), ('b', '?'), ('c', 'S2')],
    h5py.enum_dtype({'no': 0, 'yes': 1, 'perhaps': 49}, basetype='>i2'),
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
    if dtype.subdtype is not None:
        # NumPy before 2 warns where it casts to such a type.
        element, inner = dtype.subdtype
        return values(rng, (*shape, *inner), element)
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
    shape = (draw(st.integers(0, 40)), *shape[1:])
    dtype = numpy.dtype(draw(st.sampled_from(types)))
    rng = numpy.random.RandomState(draw(st.integers(0, 1000)))
    data = values(rng, shape, dtype)
    keywords = {'shape': shape, 'dtype': dtype}
    storage = draw(st.sampled_from(
        ['chunked'] * 4 + ['contiguous'] * 3 + ['compact', 'external']))
    if storage == 'compact':
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        properties.set_layout(h5py.h5d.COMPACT)
        keywords['dcpl'] = properties
    elif storage == 'external':
        keywords['external'] = 'raw'
    elif storage == 'chunked':
        keywords['chunks'] = tuple(
            draw(st.integers(1, max(1, length))) for length in shape)
        options = dict(draw(st.sampled_from(FILTERS)))
        if 'scaleoffset' in options and (
                dtype.kind not in 'iu' or dtype.metadata):
            options = {}
        keywords.update(options)
        if not shape[0] or draw(st.booleans()):
            keywords['maxshape'] = (None,) * len(shape)
            if draw(st.booleans()):
                # Chunks may be larger than the data set.
                keywords['chunks'] = tuple(
                    draw(st.integers(1, 2 * length + 1)) for length in shape)
        if dtype.kind in 'iuf' and draw(st.booleans()):
            keywords['fillvalue'] = 7
    return keywords, data


@st.composite
def requests(draw, num_rows):
    """Draw a request for rows: an int, a slice or an array."""
    if not num_rows:
        return draw(st.sampled_from([
            slice(None), slice(0, 0), numpy.empty(0, numpy.intp)]))
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
          userblock_size=0, unfiltered=()):
    """Write a file with some rows of a data set ``x``; its chunks in
    `unfiltered` skip all filters."""
    keywords = dict(keywords)
    if 'external' in keywords:
        raw = Path(path).with_suffix('.raw')
        raw.write_bytes(b'')
        keywords['external'] = [(str(raw), 0, h5py.h5f.UNLIMITED)]
    with h5py.File(path, 'w', libver=libver,
                   userblock_size=userblock_size) as file:
        file.create_dataset('before', data=numpy.arange(3, dtype='u1'))
        dataset = file.create_dataset('x', **keywords)
        for rows in written:
            dataset[rows] = data[rows]
        if not {'compression', 'shuffle', 'fletcher32'} & set(keywords):
            return
    # Opened again: HDF5 has chunks in its cache.
    with h5py.File(path, 'r+') as file:
        chunks = [file['x'].id.get_chunk_info(number)
                  for number in range(file['x'].id.get_num_chunks())]
        nbytes = numpy.prod(file['x'].chunks) * file['x'].dtype.itemsize
        for number in sorted(set(unfiltered)):
            # HDF5 forgets the mask of a chunk whose size stays the same.
            if number < len(chunks) and chunks[number].size != nbytes:
                _write_unfiltered(
                    file['x'], chunks[number].chunk_offset, data)


def _write_unfiltered(dataset, corner, data):
    """Write a chunk again, with a mask that says that it skipped the
    filters."""
    count = dataset.id.get_create_plist().get_nfilters()
    part = data[tuple(slice(start, start + length) for start, length in
                      zip(corner, dataset.chunks, strict=True))]
    whole = numpy.zeros(dataset.chunks, part.dtype)
    whole[tuple(map(slice, part.shape))] = part
    dataset.id.write_direct_chunk(
        corner, whole.tobytes(), (1 << count) - 1)


def expected(dataset, rows):
    """Return rows as plain h5py reads them, in native byte order."""
    whole = dataset[...]
    if isinstance(rows, numpy.ndarray) and not rows.size:
        result = whole[:0]
    else:
        result = whole[rows]
    return result.astype(result.dtype.newbyteorder('='))
