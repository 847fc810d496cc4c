"""H5PYDataset against plain h5py and NumPy, on random files."""
import io
import pickle
from typing import Any, NamedTuple

import h5py
import numpy
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from support.hdf5_files import NEW_FORM, OLD_FORM, split_array, write_ragged

from fuel.datasets.hdf5 import H5PYDataset

LAYOUTS = st.sampled_from([
    {}, {'chunks': True}, {'chunks': True, 'compression': 'gzip'},
    {'chunks': True, 'shuffle': True, 'compression': 'lzf'}])
DTYPES = st.sampled_from(['uint8', '<f4', '>i2', '>f8', 'bool', 'int64'])


class Case(NamedTuple):
    """A file's content, and what a data set over it should hold."""

    file: bytes
    which_sets: tuple
    sources: tuple
    subset: Any
    # For each source, its examples in order.
    expected: dict

    def __repr__(self):
        return (f'<{len(self.file)} bytes, which_sets={self.which_sets}, '
                f'sources={self.sources}, subset={self.subset}>')


def make_source(draw, file, name, num_rows):
    """Write a random source; return its rows."""
    seed = draw(st.integers(0, 2 ** 20))
    rng = numpy.random.RandomState(seed)
    if name.startswith('ragged'):
        rows = [rng.randint(0, 100, (2, length)) for length in
                rng.randint(0, 4, num_rows)]
        dtype = draw(st.sampled_from(['uint8', '>i4', '<f4']))
        write_ragged(file, name, rows, dtype)
        return [row.astype(numpy.dtype(dtype).newbyteorder('='))
                for row in rows]
    dtype = numpy.dtype(draw(DTYPES))
    shape = (num_rows, *draw(st.sampled_from([(), (1,), (3,), (2, 2)])))
    data = rng.randint(0, 100, shape).astype(dtype)
    file.create_dataset(name, data=data, **draw(LAYOUTS))
    return data.astype(dtype.newbyteorder('='))


def make_split(draw, file, split, sources, num_rows):
    """Draw one split; return its entries and the order of each source.

    The order is worked out here in the plainest way: lists of Python
    integers.
    """
    entries, orders = [], {}
    kind = draw(st.sampled_from(['ranges', 'one list', 'lists']))
    count = draw(st.integers(1, num_rows))
    shared = draw(st.lists(st.integers(0, num_rows - 1), min_size=count,
                           max_size=count))
    for source in sources:
        start, indices = 0, None
        if kind == 'ranges':
            start = draw(st.integers(0, num_rows - count))
            orders[source] = list(range(start, start + count))
        elif kind == 'one list':
            indices = orders[source] = shared
        else:
            indices = orders[source] = draw(st.permutations(shared))
        ref = None
        if indices is not None:
            name = f'indices_{split}_{source}'
            file[name] = numpy.array(indices)
            ref = file[name].ref
        entries.append((split, source, start, start + count, ref, True))
    lists = list(orders.values())
    if kind != 'ranges' and all(order == lists[0] for order in lists):
        orders = dict.fromkeys(sources, sorted(set(lists[0])))
    return entries, orders


@st.composite
def cases(draw):
    """Draw a file and how it is opened."""
    num_rows = draw(st.integers(1, 12))
    names = draw(st.lists(st.sampled_from(['a', 'b', 'c', 'ragged']),
                          min_size=1, max_size=3, unique=True))
    splits = ['train', 'valid', 'test'][:draw(st.integers(1, 3))]
    memory = io.BytesIO()
    entries, orders = [], {}
    with h5py.File(memory, 'w') as file:
        rows = {name: make_source(draw, file, name, num_rows)
                for name in names}
        for split in splits:
            new, orders[split] = make_split(draw, file, split, names,
                                            num_rows)
            entries += new
        file.attrs['split'] = split_array(
            entries, draw(st.sampled_from([NEW_FORM, OLD_FORM])))
    which_sets = tuple(draw(st.lists(st.sampled_from(splits), min_size=1,
                                     max_size=4)))
    chosen = tuple(draw(st.permutations(names)))
    chosen = chosen[:draw(st.integers(1, len(chosen)))]
    picked = {name: [index for split in which_sets
                     for index in orders[split][name]] for name in chosen}
    count = len(picked[chosen[0]])
    subset = draw(st.none() | st.lists(
        st.integers(0, count - 1), min_size=1) | st.builds(
            slice, st.integers(0, count - 1), st.none()))
    positions = (range(count) if subset is None else
                 sorted(set(subset)) if isinstance(subset, list) else
                 range(count)[subset])
    expected = {name: [rows[name][picked[name][position]]
                       for position in positions] for name in chosen}
    return Case(memory.getvalue(), which_sets, chosen, subset, expected)


def requests(num_examples):
    """Draw an integer, a slice, a list or an index array."""
    index = st.integers(0, num_examples - 1)
    indices = st.lists(index, min_size=1, max_size=20)
    slices = st.tuples(index, index, st.integers(1, 3)).map(
        lambda parts: slice(min(parts[:2]), max(parts[:2]) + 1, parts[2]))
    return st.one_of(
        index, index.map(numpy.int16), slices, indices,
        indices.map(numpy.array),
        indices.map(lambda some: numpy.array(some, dtype='uint16')))


def check(dataset, case, request):
    """Compare an answer with the plain rows, twice, writing in between."""
    for _ in range(2):
        data = dataset.get_data(None, request)
        assert len(data) == len(case.sources)
        for source, found in zip(case.sources, data, strict=True):
            rows = case.expected[source]
            if isinstance(request, (int, numpy.integer)):
                wanted, examples = [rows[request]], [found]
            elif isinstance(request, slice):
                wanted, examples = rows[request], found
            else:
                wanted, examples = [rows[index] for index in request], found
            assert len(examples) == len(wanted)
            for one, other in zip(wanted, examples, strict=True):
                assert_array_equal(one, other)
                assert numpy.asarray(one).dtype == numpy.asarray(other).dtype
                if isinstance(other, numpy.ndarray):
                    other[...] = 1


@given(case=cases(), data=st.data())
def test_h5pydataset_equals_plain_rows(tmp_path_factory, case, data):
    """On disk, in memory and after pickling, every request gives exactly
    the rows that the split attribute says."""
    path = tmp_path_factory.mktemp('random') / 'x.hdf5'
    path.write_bytes(case.file)
    num_examples = len(case.expected[case.sources[0]])
    some = data.draw(st.lists(requests(num_examples), min_size=1,
                              max_size=4))
    sort_indices = data.draw(st.booleans())
    for load_in_memory in (False, True):
        dataset = H5PYDataset(
            path, case.which_sets, subset=case.subset, sources=case.sources,
            load_in_memory=load_in_memory, sort_indices=sort_indices)
        assert dataset.num_examples == num_examples
        for request in some:
            check(dataset, case, request)
        dataset.close(None)
        again = pickle.loads(pickle.dumps(dataset))
        for request in some:
            check(again, case, request)
        again.close(None)


@given(case=cases())
def test_subsets_are_sorted_views_of_the_rows(tmp_path_factory, case):
    """`subsets` holds each row once, ascending, whatever the order."""
    path = tmp_path_factory.mktemp('random') / 'x.hdf5'
    path.write_bytes(case.file)
    dataset = H5PYDataset(path, case.which_sets, subset=case.subset,
                          sources=case.sources)
    with h5py.File(path) as file:
        for source, subset in zip(case.sources, dataset.subsets, strict=True):
            rows = subset.get_list_representation()
            assert rows == sorted(set(rows))
            assert subset.original_num_examples == len(file[source])
            if source != 'ragged':
                have = {row.tobytes() for row in case.expected[source]}
                assert have == {numpy.asarray(file[source][row]).astype(
                    case.expected[source][0].dtype).tobytes()
                    for row in rows}
