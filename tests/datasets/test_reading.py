"""Examples of data sets by number, in loops, and how many there are."""
import json
import pickle

import h5py
import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from fuel.datasets import (
    CIFAR100,
    EMNIST,
    SVHN,
    Adult,
    CelebA,
    CSVDataset,
    Dataset,
    H5PYDataset,
    IndexableDataset,
    Iris,
    IterableDataset,
    NPYDataset,
    TextFile,
)
from fuel.datasets.hdf5 import PytablesDataset
from fuel.exceptions import DamagedFileError
from fuel.schemes import SequentialScheme

N = 7
ROWS = numpy.arange(2 * N).reshape(N, 2)


def indexable(folder):
    """Return a data set in memory."""
    return IndexableDataset({'x': ROWS.copy(), 'y': numpy.arange(N)})


def hdf5(folder, **kwargs):
    """Return a data set in an HDF5 file."""
    path = folder / 'data.hdf5'
    with h5py.File(path, 'w') as file:
        file['x'], file['y'] = ROWS, numpy.arange(N)
        file['y'].attrs['class_names'] = json.dumps([*'abcdefg'])
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'x': (0, N), 'y': (0, N)}})
    return H5PYDataset(path, ('train',), **kwargs)


def in_memory(folder):
    """Return a data set that was read from an HDF5 file."""
    return hdf5(folder, load_in_memory=True)


def npy(folder):
    """Return a data set in NumPy's files."""
    numpy.savez(folder / 'data.npz', x=ROWS, y=numpy.arange(N))
    return NPYDataset(folder / 'data.npz')


def csv(folder):
    """Return a data set in a CSV file."""
    numpy.savetxt(folder / 'data.csv', numpy.column_stack(
        [ROWS, numpy.arange(N)]), '%d', ',', header='a,b,y', comments='')
    return CSVDataset(folder / 'data.csv', {'x': ['a', 'b'], 'y': 'y'})


def pytables(folder):
    """Return a data set that PyTables reads."""
    import tables
    with tables.open_file(str(folder / 'data.tables'), 'w') as file:
        file.create_array('/', 'x', ROWS)
        file.create_array('/', 'y', numpy.arange(N))
    return PytablesDataset(str(folder / 'data.tables'), ('x', 'y'))


@pytest.fixture(params=[indexable, hdf5, in_memory, npy, csv, pytables])
def dataset(request, tmp_path):
    """A data set of each kind that takes indices."""
    opened = request.param(tmp_path)
    yield opened
    opened.close(None)


@pytest.mark.parametrize('index', [
    0, 3, -1, -N, numpy.int64(2), slice(2, 5), slice(None), slice(None, None,
    -2), slice(-3, None), [1, 6], [-1, 0, 0], numpy.array([4, 2]), (1, 2)],
    ids=repr)
def test_index_gives_what_numpy_gives(dataset, index):
    """The result is a tuple of one part for each source, in the order of the
    sources."""
    rows = list(index) if isinstance(index, tuple) else index
    data = dataset[index]
    assert isinstance(data, tuple)
    assert_array_equal(ROWS[rows], data[dataset.sources.index('x')])
    assert_array_equal(
        numpy.arange(N)[rows], data[dataset.sources.index('y')])


def test_empty_slice_has_no_examples(dataset):
    """The result has the type and shape of others."""
    x, y = dataset[5:5]
    assert ((0, 2), (0,)) == (numpy.shape(x), numpy.shape(y))
    assert dataset[[]][0].dtype == x.dtype


@pytest.mark.parametrize('index', [N, -N - 1, [0, N]], ids=repr)
def test_index_out_of_range_is_an_index_error(dataset, index):
    """The error names the valid range."""
    with pytest.raises(IndexError, match=f'0 to {N - 1}'):
        dataset[index]


@pytest.mark.parametrize('index, text', [
    (numpy.ones(N, bool), 'flatnonzero'), ([True] * N, 'flatnonzero'),
    (True, 'bool'), (1.5, '1.5'), ('x', "'x'"), ([[1], [2]], r'\[1\]'),
    (None, 'None')], ids=['mask', 'list', 'bool', 'float', 'text', 'nested',
                          'none'])
def test_index_of_another_kind_is_refused(dataset, index, text):
    """Masks are refused too; the error says what to write instead."""
    with pytest.raises(TypeError, match=text):
        dataset[index]


def test_length_and_loop(dataset):
    """All examples come in order, twice; a data set is true."""
    assert N == len(dataset)
    assert dataset
    for _ in range(2):
        place = dataset.sources.index('x')
        assert_array_equal(ROWS, [data[place] for data in dataset])


def test_loops_nest_and_may_be_left(dataset):
    """Each loop has a position of its own."""
    seen = []
    for outer in dataset:
        for inner in dataset:
            seen.append((int(outer[1]), int(inner[1])))
            if inner[1] == 1:
                break
        if outer[1] == 1:
            break
    assert [(0, 0), (0, 1), (1, 0), (1, 1)] == seen


def test_examples_are_copies(dataset):
    """Writing into one does not change the data set."""
    for data in (dataset[2], dataset[2:4], next(iter(dataset))):
        data[0][...] = 99
    assert_array_equal(ROWS[2:4], dataset[2:4][0])
    assert_array_equal(ROWS[0], next(iter(dataset))[0])


@given(st.data())
def test_slices_are_those_of_a_list(data):
    """Any bounds and steps give the examples that a list gives."""
    count = data.draw(st.integers(1, 9))
    index = data.draw(st.slices(count))
    values = list(range(count))
    assert values[index] == IndexableDataset(values)[index][0]


def test_sequential_data_set_is_read_in_a_loop():
    """A sequential data set takes no index; its length may be known."""
    dataset = IterableDataset({'x': [1, 2], 'y': 'ab'})
    assert [(1, 'a'), (2, 'b')] == list(dataset) == list(dataset)
    assert 2 == len(dataset)
    with pytest.raises(TypeError, match='iterate over it'):
        dataset[0]


def test_unknown_length_is_a_type_error(tmp_path):
    """`num_examples` is NaN for iterables, as before, and else None."""
    dataset = IterableDataset(iter('ab'))
    assert numpy.isnan(dataset.num_examples)
    assert dataset
    with pytest.raises(TypeError, match='IterableDataset does not know'):
        len(dataset)
    (tmp_path / 'text').write_text('a\nb\n')
    text = TextFile([str(tmp_path / 'text')], {'<UNK>': 0}, None, None,
                    level='word')
    assert text.num_examples is None
    with pytest.raises(TypeError, match='TextFile does not know'):
        len(text)
    assert [([0],), ([0],)] == list(text)


class Squares(Dataset):
    """A user's data set, which knows nothing but `get_data`."""

    provides_sources = ('roots', 'squares')

    def get_data(self, state=None, request=None):
        """Return roots and squares."""
        roots = numpy.array(request)
        return self.filter_sources((roots, roots ** 2))


class Sized(Squares):
    """One that has protocols of its own."""

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return f'number {index}'


class Opened(IterableDataset):
    """One that counts what is opened and closed."""

    opened = 0

    def open(self):
        """Count."""
        self.opened += 1
        return super().open()

    def close(self, state):
        """Count."""
        self.opened -= 1


def test_users_data_set_takes_indices():
    """Indices that need a length are refused without one."""
    dataset = Squares()
    assert (3, 9) == dataset[3]
    assert_array_equal([1, 4], dataset[[1, 2]][1])
    with pytest.raises(TypeError, match='Squares does not know'):
        dataset[-1]
    dataset.num_examples = 5
    assert (4, 16) == dataset[-1]
    assert [(n, n * n) for n in range(5)] == list(dataset)


def test_users_protocols_win():
    """A user's `__len__` and `__getitem__` are used; a loop calls
    `get_data`."""
    dataset = Sized()
    assert (4, 'number 3') == (len(dataset), dataset[3])
    assert [(n, n * n) for n in range(4)] == list(dataset)


def test_loop_closes_what_it_opened():
    """A loop that breaks closes the data set."""
    dataset = Opened([1, 2, 3])
    for _ in dataset:
        assert 1 == dataset.opened
        break
    assert 0 == dataset.opened


def test_users_get_data_is_called_for_every_index(tmp_path):
    """An override is not passed by."""
    class Negated(IndexableDataset):
        def get_data(self, state=None, request=None):
            return tuple(-part for part in super().get_data(state, request))

    dataset = Negated(numpy.arange(3))
    assert (-2,) == dataset[2]
    assert [(0,), (-1,), (-2,)] == list(dataset)


def test_class_names(tmp_path):
    """The file or the class has the names; a pickle keeps them."""
    dataset = hdf5(tmp_path)
    assert tuple('abcdefg') == dataset.class_names
    assert 'c' == dataset.class_names[dataset[2][1]]
    assert dataset.class_names == pickle.loads(
        pickle.dumps(dataset)).class_names
    assert IndexableDataset([1]).class_names is None
    assert ('setosa', 'versicolor', 'virginica') == Iris.class_names
    dataset.class_names = 'mine'
    assert 'mine' == dataset.class_names


def test_class_names_of_built_in_data_sets():
    """Files without them are of classes that have them."""
    assert ('<=50K', '>50K') == Adult.class_names
    assert 100 == len(set(CIFAR100.class_names))
    assert 20 == len(set(CIFAR100.coarse_class_names))
    assert 40 == len(set(CelebA.attribute_names))
    assert tuple('0123456789') == SVHN.class_names


@pytest.mark.parametrize('which_format, count, last', [
    ('balanced', 47, 't'), ('byclass', 62, 'z'), ('bymerge', 47, 't'),
    ('digits', 10, '9'), ('letters', 27, 'Z'), ('mnist', 10, '9')])
def test_class_names_of_emnist(own_home, which_format, count, last):
    """The class names depend on the format; the letters begin at 1."""
    path = own_home / 'data' / f'emnist_{which_format}.hdf5'
    with h5py.File(path, 'w') as file:
        file['targets'] = numpy.array([[count - 1]], 'uint8')
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'targets': (0, 1)}})
    dataset = EMNIST(which_format, ('train',))
    assert (count, last) == (
        len(dataset.class_names), dataset.class_names[dataset[0][0][0]])


@pytest.mark.parametrize('written', ['{"a": 1}', '['])
def test_damaged_class_names_are_an_error(tmp_path, written):
    """The error names the file."""
    dataset = hdf5(tmp_path)
    dataset.close(None)
    with h5py.File(tmp_path / 'data.hdf5', 'r+') as file:
        file['y'].attrs['class_names'] = written
    with pytest.raises(DamagedFileError, match='data.hdf5'):
        _ = H5PYDataset(tmp_path / 'data.hdf5', ('train',)).class_names


def test_completion_shows_sources():
    """Sources are attributes."""
    assert {'x', 'y'} <= set(dir(IndexableDataset({'x': [1], 'y': [2]})))


def test_data_set_in_the_place_of_examples_is_refused():
    """A scheme takes how many there are."""
    with pytest.raises(TypeError, match='pass its num_examples'):
        SequentialScheme(IndexableDataset([1]), 1)


def test_unknown_keyword_names_class_and_nearest():
    """The error does not name a class that the user never heard of."""
    with pytest.raises(TypeError, match=r"Squares takes no argument 'sorces'"
                       r": did you mean 'sources'\?"):
        Squares(sorces=('roots',))
