"""Data sets in memory, of text and built in, as programs written for Fuel
0.2.0 use them."""
import pickle
from collections import OrderedDict

import numpy
import pytest
from numpy.testing import assert_array_equal
from support.hdf5_files import write_pairs

import fuel
from fuel.datasets import (
    CIFAR10,
    CIFAR100,
    MNIST,
    SVHN,
    CalTech101Silhouettes,
    CelebA,
    Dataset,
    IndexableDataset,
    IterableDataset,
    OneBillionWord,
    TextFile,
)
from fuel.schemes import SequentialExampleScheme, SequentialScheme
from fuel.streams import DataStream
from fuel.transformers import Cast, ScaleAndShift


class Numbers(Dataset):
    """Two sources of one number each."""

    provides_sources = ('one', 'two')

    def get_data(self, state=None, request=None):
        """Return both, or those wanted."""
        return self.filter_sources((1, 2))


def test_dataset_needs_provides_sources_and_takes_some_of_them():
    """A subset of them, in any order."""
    with pytest.raises(ValueError):
        Dataset()
    with pytest.raises(ValueError):
        Numbers(sources=('three',))
    assert ('one', 'two') == Numbers().sources
    assert (2,) == Numbers(sources=('two',)).get_data()
    assert (2, 1) == Numbers(sources=('two', 'one')).get_data()
    assert type(Numbers().get_data()) is tuple


def test_dataset_default_interface_does_nothing():
    """A state of None, that is opened and closed any number of times."""
    dataset = Numbers(axis_labels={'one': ()})
    state = dataset.open()
    assert state is None
    assert dataset.next_epoch(state) is None
    assert dataset.reset(state) is None
    dataset.close(state)
    assert () == dataset.default_transformers
    assert {'one': ()} == dataset.axis_labels
    with pytest.raises(NotImplementedError):
        Dataset.get_data(dataset)


def test_example_iteration_scheme_may_be_set_on_the_class():
    """It is backed by `_example_iteration_scheme`; missing, it is an
    AttributeError."""
    with pytest.raises(AttributeError):
        Numbers().example_iteration_scheme
    with pytest.raises(AttributeError):
        Numbers().get_example_stream()

    class WithScheme(Numbers):
        _example_iteration_scheme = SequentialExampleScheme(2)

    dataset = WithScheme()
    assert dataset.example_iteration_scheme is (
        WithScheme._example_iteration_scheme)
    assert [(1, 2), (1, 2)] == list(
        dataset.get_example_stream().get_epoch_iterator())


def test_iterable_dataset_takes_iterables_of_equal_length():
    """One is called 'data', also a bare array; their order is kept."""
    dataset = IterableDataset(OrderedDict([('b', [1, 2]), ('a', 'xy')]))
    assert (('b', 'a'), 2) == (dataset.sources, dataset.num_examples)
    assert [[1, 2], 'xy'] == list(dataset.iterables)
    assert [(1, 'x'), (2, 'y')] == list(
        DataStream(dataset).get_epoch_iterator())
    assert ('data',) == IterableDataset(numpy.arange(3)).sources
    assert dataset.example_iteration_scheme is None
    with pytest.raises(ValueError):
        IterableDataset({'a': 5})
    with pytest.raises(ValueError):
        IterableDataset({'a': [1], 'b': [1, 2]})


def test_iterable_dataset_of_unknown_length_has_nan_examples():
    """An iterable without `len`."""
    class Endless:
        def __iter__(self):
            return iter(range(10))

    assert numpy.isnan(IterableDataset({'a': Endless()}).num_examples)


def test_iterable_dataset_takes_no_request():
    """The data set needs a state, whose class is called imap."""
    dataset = IterableDataset([1, 2])
    state = dataset.open()
    assert 'imap' == state.__class__.__name__
    assert (1,) == dataset.get_data(state=state)
    with pytest.raises(ValueError):
        dataset.get_data(None)
    with pytest.raises(ValueError):
        dataset.get_data(state, 0)
    state = dataset.reset(state)
    assert (1,) == dataset.get_data(state)
    dataset.close(state)


def test_indexable_dataset_gives_its_data_as_attributes():
    """The data set gives its data by request, and refuses a state."""
    x, y = numpy.arange(8).reshape(4, 2), [0, 10, 20, 30]
    dataset = IndexableDataset(OrderedDict([('x', x), ('y', y)]))
    assert_array_equal(x, dataset.x)
    assert y == dataset.y
    assert 4 == dataset.num_examples
    assert isinstance(dataset.indexables, list)
    picked = dataset.get_data(request=[2, 0])
    assert_array_equal(x[[2, 0]], picked[0])
    assert [20, 0] == picked[1]
    assert isinstance(picked[1], list)
    assert ([10, 20],) == dataset.get_data(request=slice(1, 3))[1:]
    assert dataset.open() is None
    with pytest.raises(ValueError):
        dataset.get_data(True, [0])
    with pytest.raises(ValueError):
        dataset.get_data(None, None)
    again = pickle.loads(pickle.dumps(dataset))
    assert_array_equal(x, again.x)
    with pytest.raises(ValueError):
        IndexableDataset({'x': x, 'z': [1]})
    assert ('data',) == IndexableDataset([1, 2]).sources


@pytest.mark.parametrize('start, stop, rows', [
    (None, 3, [0, 1, 2]), (2, None, [2, 3, 4, 5]), (1, 3, [1, 2])])
def test_indexable_dataset_start_and_stop_count_once(start, stop, rows):
    """For a dict and for a bare indexable."""
    for data in ({'x': list(range(6))}, list(range(6))):
        dataset = IndexableDataset(data, start=start, stop=stop)
        assert len(rows) == dataset.num_examples
        assert (rows,) == dataset.get_data(
            request=list(range(len(rows))))


@pytest.fixture
def texts(tmp_path):
    """Write two files of text."""
    for name, text in (('one', 'a b\nb  c a\n'), ('two', ' c\n')):
        (tmp_path / name).write_text(text)
    return [str(tmp_path / 'one'), str(tmp_path / 'two')]


VOCABULARY = {'<UNK>': 0, '<S>': 1, '</S>': 2, 'a': 3, 'b': 4, ' ': 5}


def test_text_file_goes_on_in_the_middle_of_a_file(texts):
    """From a pickle, at the exact line, over several files."""
    stream = DataStream(TextFile(texts, VOCABULARY))
    expected = list(stream.get_epoch_iterator())
    assert ([1, 3, 4, 2],) == expected[0]
    assert 3 == len(expected)
    for count in range(4):
        epoch = stream.get_epoch_iterator()
        seen = [next(epoch) for _ in range(count)]
        assert expected == seen + list(pickle.loads(pickle.dumps(epoch)))


def test_text_file_characters_are_those_of_the_stripped_line(texts):
    """The characters start and end with one that is not white space."""
    dataset = TextFile(texts, VOCABULARY, bos_token=None, eos_token=None,
                       level='character')
    assert [([3, 5, 4],), ([4, 5, 5, 0, 5, 3],), ([0],)] == list(
        DataStream(dataset).get_epoch_iterator())


def test_text_file_arguments_by_position(texts):
    """The old order of the parameters."""
    dataset = TextFile(texts, VOCABULARY, None, '</S>', '<UNK>', 'word',
                       str.upper, 'utf-8')
    assert ([0, 0, 2],) == next(DataStream(dataset).get_epoch_iterator())
    with pytest.raises(ValueError):
        dataset.get_data(None, [0])
    with pytest.raises(ValueError):
        TextFile(texts, VOCABULARY, level='sentence')


def test_arguments_are_checked_before_files_are_sought():
    """ValueErrors, where nothing was downloaded."""
    with pytest.raises(ValueError):
        OneBillionWord('validation', [1], {})
    with pytest.raises(ValueError):
        OneBillionWord('training', [0], {})
    with pytest.raises(ValueError):
        OneBillionWord('heldout', [50], {})
    with pytest.raises(ValueError):
        CalTech101Silhouettes(('train',), size=10)
    with pytest.raises(IOError):
        OneBillionWord('training', [1], {})


@pytest.mark.parametrize('cls, form, name', [
    (SVHN, 1, 'svhn_format_1.hdf5'), (SVHN, 2, 'svhn_format_2.hdf5'),
    (CelebA, '64', 'celeba_64.hdf5'),
    (CelebA, 'aligned_cropped', 'celeba_aligned_cropped.hdf5')])
def test_format_decides_the_name_of_the_file(
        cls, form, name, tmp_path, monkeypatch):
    """`filename` is a property; '.' is a data path."""
    with pytest.raises(IOError, match=name):
        cls(form, ('train',))
    write_pairs(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    fuel.config.data_path = '.'
    dataset = cls(form, ('train',))
    assert name == dataset.filename
    assert isinstance(cls.filename, property)
    assert 80 == dataset.num_examples


def test_mnist_is_read_from_the_data_path_into_memory(own_home):
    """Its default stream scales to the unit interval."""
    write_mnist(own_home / 'data' / 'mnist.hdf5')
    dataset = MNIST(('train',), sources=('features',))
    assert dataset.load_in_memory
    assert not MNIST(('train',), load_in_memory=False).load_in_memory
    stream = DataStream.default_stream(
        dataset, iteration_scheme=SequentialScheme(3, 3))
    assert isinstance(stream, Cast)
    assert isinstance(stream.data_stream, ScaleAndShift)
    assert (1 / 255., 0) == (stream.data_stream.scale,
                             stream.data_stream.shift)
    data, = next(stream.get_epoch_iterator())
    assert_array_equal(numpy.array([0, 51, 255]) * (1 / 255.),
                       data[:, 0, 0, 0])
    epoch = stream.get_epoch_iterator()
    assert 1 == len(list(pickle.loads(pickle.dumps(epoch))))


def write_mnist(path):
    """Write three images."""
    import h5py

    from fuel.datasets.hdf5 import H5PYDataset
    with h5py.File(path, 'w') as file:
        file['features'] = numpy.array([0, 51, 255], 'uint8').reshape(
            3, 1, 1, 1)
        file['targets'] = numpy.zeros((3, 1), 'uint8')
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'features': (0, 3), 'targets': (0, 3)}})


def test_file_names_are_replaced_on_classes(own_home, monkeypatch):
    """A property of a subclass names the file, too."""
    write_mnist(own_home / 'data' / 'mine.hdf5')
    monkeypatch.setattr(MNIST, 'filename', 'mine.hdf5')
    assert 3 == MNIST(('train',)).num_examples

    class Mine(MNIST):
        @property
        def filename(self):
            return 'mine.hdf5'

    assert 3 == Mine(('train',)).num_examples


def test_cifar_sources_and_bounds(own_home):
    """Sources in alphabetical order; a subset outside is a ValueError."""
    import h5py

    from fuel.datasets.hdf5 import H5PYDataset
    for name, labels in (('cifar10', ['targets']),
                         ('cifar100', ['fine_labels', 'coarse_labels'])):
        with h5py.File(own_home / 'data' / f'{name}.hdf5', 'w') as file:
            for source in ['features', *labels]:
                file[source] = numpy.zeros((6, 1), 'uint8')
            file.attrs['split'] = H5PYDataset.create_split_array(
                {'train': dict.fromkeys(['features', *labels], (0, 5)),
                 'test': dict.fromkeys(['features', *labels], (5, 6))})
    with pytest.raises(ValueError):
        CIFAR10(('train',), subset=slice(5, 6))
    with pytest.raises(ValueError):
        CIFAR10(('valid',))
    assert ('coarse_labels', 'features', 'fine_labels') == CIFAR100(
        ('test',)).sources
