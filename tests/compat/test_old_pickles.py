"""Pickles that Fuel 0.2.0 made load, and give the data they gave.

The files in ``pickles/`` were made by Fuel 0.2.0 with Python 3.8 and NumPy
1.19, with the protocols 2 and 4, over ``pickles/data.hdf5``: six examples of
`x`, two numbers each, counting from 0, and of `y`, the example's number.
"""
import pathlib
import pickle
import warnings

import numpy
import pytest
from numpy.testing import assert_array_equal

from fuel.datasets import IndexableDataset, IterableDataset
from fuel.exceptions import StateMismatchError
from fuel.iterator import DataIterator
from fuel.schemes import SequentialScheme, ShuffledScheme
from fuel.streams import DataStream, ServerDataStream
from fuel.transformers import (
    Cast,
    FilterSources,
    ForceFloatX,
    Merge,
    Rename,
    ScaleAndShift,
)
from fuel.transformers.image import (
    ImagesFromBytes,
    MinimumImageDimensions,
    RandomFixedSizeCrop,
)
from fuel.transformers.sequences import NGrams
from fuel.utils import Subset

PICKLES = pathlib.Path(__file__).parent / 'pickles'

each_protocol = pytest.mark.parametrize('protocol', [2, 4])


@pytest.fixture(autouse=True)
def beside_the_file(monkeypatch):
    """Work where the old pickles were made: they name the file alone."""
    monkeypatch.chdir(PICKLES)


def load(name, protocol):
    """Load one of the old pickles."""
    with warnings.catch_warnings():
        # picklable_itertools warns of the pkg_resources that it imports.
        warnings.simplefilter('ignore')
        return pickle.loads((PICKLES / f'{name}.p{protocol}.pkl').read_bytes())


def as_lists(epoch):
    """Return the data of an epoch as nested lists."""
    return [[part.tolist() for part in batch] for batch in epoch]


@each_protocol
def test_old_scheme_gives_the_order_it_gave(protocol):
    """A shuffled scheme goes on with its own generator."""
    scheme = load('scheme', protocol)
    same = ShuffledScheme(6, 2, rng=numpy.random.RandomState(1))
    for _ in range(3):
        assert (list(same.get_request_iterator())
                == list(scheme.get_request_iterator()))
    assert (6, 2) == (scheme.num_examples, scheme.batch_size)


@each_protocol
def test_old_subset_has_the_examples_it_had(protocol):
    """Its attributes, and what it does to a request."""
    subset = load('subset', protocol)
    assert [0, 2, 4] == subset.list_or_slice
    assert [0, 2, 4] == subset.get_list_representation()
    assert (3, 6, True) == (subset.num_examples,
                            subset.original_num_examples, subset.is_list)
    assert [4, 0] == subset[[2, 0]]
    assert isinstance(pickle.loads(pickle.dumps(subset)), Subset)


@each_protocol
def test_old_stream_in_memory_gives_the_batches_it_gave(protocol):
    """The data are in the pickle."""
    stream = load('indexable_stream', protocol)
    assert isinstance(stream.dataset, IndexableDataset)
    assert [[[2, 1]], [[4, 0]], [[3, 5]]] == as_lists(
        stream.get_epoch_iterator())
    assert stream.state_dict()['epoch'] == 'finished'
    assert 6 == stream.dataset.num_examples
    assert [5, 0] == stream.dataset.get_data(None, [5, 0])[0].tolist()


@each_protocol
@pytest.mark.parametrize('name', ['h5py_dataset', 'h5py_dataset_in_memory'])
def test_old_hdf5_data_set_gives_the_data_it_gave(name, protocol):
    """It reads the file again, by path, when it is asked for data."""
    dataset = load(name, protocol)
    assert ('x', 'y') == dataset.sources == dataset.provides_sources
    assert dataset.load_in_memory is name.endswith('memory')
    first, count = {'h5py_dataset': (1, 4)}.get(name, (0, 6))
    state = dataset.open()
    x, y = dataset.get_data(state, [3, 1])
    rows = numpy.array([first + 3, first + 1])
    assert_array_equal(numpy.stack([2 * rows, 2 * rows + 1], axis=1), x)
    assert_array_equal(rows, y)
    assert_array_equal(first + numpy.arange(3),
                       dataset.get_data(state, slice(0, 3))[1])
    assert count == dataset.num_examples == dataset.subsets[0].num_examples
    dataset.close(state)
    examples = list(dataset.get_example_stream().get_epoch_iterator())
    assert count == len(examples)
    again = pickle.loads(pickle.dumps(dataset))
    assert_array_equal(x, again.get_data(None, [3, 1])[0])


def test_old_hdf5_data_set_loads_without_its_file(tmp_path, monkeypatch):
    """Loading touches no file; reading names the one that is missing."""
    monkeypatch.chdir(tmp_path)
    for name in ('h5py_dataset', 'h5py_dataset_in_memory'):
        dataset = load(name, 4)
        assert 'data.hdf5' == dataset.path
        with pytest.raises(FileNotFoundError, match=r'data\.hdf5'):
            dataset.get_data(None, [0])


def test_old_hdf5_data_set_finds_its_file_in_the_data_path(
        tmp_path, monkeypatch):
    """As those of today do, where the file has moved."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('FUEL_DATA_PATH', str(PICKLES))
    assert [4] == load('h5py_dataset', 2).get_data(None, [3])[1].tolist()


@each_protocol
def test_old_cast_over_hdf5_gives_the_batches_it_gave(protocol):
    """Rows 1 to 4 of the file, halved, as float32."""
    stream = load('cast_stream', protocol)
    batches = list(stream.get_epoch_iterator())
    assert [[[[1, 1.5], [2, 2.5]], [1, 2]],
            [[[3, 3.5], [4, 4.5]], [3, 4]]] == as_lists(batches)
    assert 'float32' == stream.dtype == batches[0][0].dtype
    state = stream.state_dict()
    stream.load_state_dict(state)
    assert 2 == len(list(stream.get_epoch_iterator()))


@each_protocol
def test_old_iterator_goes_on_in_the_middle_of_its_epoch(protocol):
    """A stream and its iterator, pickled together after one batch."""
    stream, iterator = load('stream_and_iterator_after_one_batch', protocol)
    assert [[[[3, 3.5], [4, 4.5]], [3, 4]]] == as_lists(iterator)
    with pytest.raises(StopIteration):
        next(iterator)
    assert 2 == len(list(stream.get_epoch_iterator()))


@each_protocol
def test_old_iterator_pickles_again(protocol):
    """A job that was resumed once is saved again, in the same epoch."""
    pair = load('stream_and_iterator_after_one_batch', protocol)
    _, iterator = pickle.loads(pickle.dumps(pair))
    assert 1 == len(list(iterator))


def test_old_iterator_says_why_it_has_no_plain_state():
    """Its requests came out of a pickle; the next epoch has a state."""
    stream, iterator = load('stream_and_iterator_after_one_batch', 4)
    with pytest.raises(TypeError, match='pickle the epoch iterator'):
        iterator.state_dict()
    list(iterator)
    list(stream.get_epoch_iterator())
    assert stream.state_dict()['epoch'] == 'finished'


# An old pickle of a stage holds only the attributes that its constructor set
# at that time. Remove the others from a new one.
def make_old(stage, *names):
    """Remove attributes that an old release did not have."""
    for name in names:
        vars(stage).pop(name, None)
    return pickle.loads(pickle.dumps(stage))


def stream_of(**sources):
    """Return a stream of two batches."""
    return DataStream(IndexableDataset(sources),
                      iteration_scheme=SequentialScheme(4, 2))


@pytest.mark.parametrize('stage, names', [
    (lambda stream: ImagesFromBytes(stream, which_sources='x'),
     ['num_threads', 'shrink_to', 'on_error', 'num_skipped']),
    (lambda stream: RandomFixedSizeCrop(stream, (2, 2), which_sources='x'),
     ['num_threads', 'stack']),
    (lambda stream: MinimumImageDimensions(
        stream, (2, 2), which_sources='x'), ['num_threads']),
    (lambda stream: Merge([stream], ('x', 'y')), ['strict'])],
    ids=['ImagesFromBytes', 'RandomFixedSizeCrop', 'MinimumImageDimensions',
         'Merge'])
def test_old_stage_gets_the_defaults_of_newer_arguments(stage, names):
    """An argument that a stage has taken on since has its default."""
    new = stage(stream_of(x=numpy.zeros((4, 1, 3, 3)), y=numpy.arange(4)))
    expected = {name: getattr(new, name) for name in names}
    old = make_old(new, *names)
    assert expected == {name: getattr(old, name) for name in names}


def test_old_server_stream_gets_the_defaults_of_newer_arguments():
    """Those that 0.2.0 had keep the values they had."""
    new = ServerDataStream(('x',), False, host='there', port=9, hwm=3)
    names = ['rank', 'timeout', 'reconnect', 'stalled', 'shared_memory',
             'curve', '_axis_labels']
    expected = {name: vars(new)[name] for name in names}
    vars(new)['axis_labels'] = None
    old = make_old(new, *names)
    assert expected == {name: getattr(old, name) for name in names}
    assert ('there', 9, 3, ('x',)) == (
        old.host, old.port, old.hwm, old.sources)
    new = ServerDataStream(('x',), False, axis_labels={'x': ('batch',)})
    assert {'x': ('batch',)} == pickle.loads(pickle.dumps(new)).axis_labels


@pytest.mark.parametrize('cls', [Cast, ForceFloatX])
def test_old_cast_keeps_the_name_of_its_type(cls):
    """It is looked up again."""
    arguments = ['float32'] if cls is Cast else []
    stage = cls(stream_of(x=numpy.zeros(4)), *arguments)
    stage.dtype = 'float32'
    data, = next(pickle.loads(pickle.dumps(stage)).get_epoch_iterator())
    assert numpy.float32 == data.dtype


def test_old_source_selection_is_read_from_the_names_it_gave():
    """FilterSources and Rename held the sources that come out."""
    for stage, name in (
            (FilterSources(stream_of(x=[1] * 4, y=[2] * 4), ('y',)),
             '_kept'),
            (Rename(stream_of(x=[1] * 4, y=[2] * 4), {'x': 'z'}), '_names')):
        expected = stage.sources
        data = next(stage.get_epoch_iterator())
        vars(stage)['_sources'] = expected
        old = make_old(stage, name)
        assert expected == old.sources
        assert data == next(old.get_epoch_iterator())


def test_old_source_selection_without_names_says_what_to_do():
    """One error says what the pickle holds, and what can be loaded."""
    stage = FilterSources(stream_of(x=[1] * 4, y=[2] * 4), ('y',))
    with pytest.raises(StateMismatchError, match='a FilterSources of another '
                       'release.*run the code that made it'):
        make_old(stage, '_kept')


def test_old_iterator_of_windows_goes_on_in_the_middle_of_a_sequence():
    """The stage held the sequence, and where the next window begins."""
    stream = DataStream(IterableDataset([[1, 2, 3, 4, 5], [6, 7, 8, 9]]))
    child = stream.get_epoch_iterator()
    sequence, = next(child)
    stage = NGrams.__new__(NGrams)
    stage.__setstate__({
        **vars(NGrams(2, stream)), 'sentence': sequence, 'index': 1,
        'child_epoch_iterator': child})
    iterator = DataIterator.__new__(DataIterator)
    iterator.__setstate__({'data_stream': stage, 'request_iterator': None,
                           'as_dict': False})
    assert [([2, 3], 4), ([3, 4], 5), ([6, 7], 8), ([7, 8], 9)] == list(
        pickle.loads(pickle.dumps(iterator)))


def test_new_pickle_keeps_what_its_stage_lacks():
    """A user's stage that skips every constructor gains no attribute."""
    stage = pickle.loads(pickle.dumps(WithoutInit(
        stream_of(x=numpy.arange(4)))))
    assert {'data_stream'} == set(vars(stage))
    assert_array_equal([0, 1], next(stage.get_epoch_iterator())[0])


class WithoutInit(ScaleAndShift):
    """A stage that calls no constructor of Fuel."""

    produces_examples = False
    axis_labels = None
    scale, shift = 1, 0
    which_sources = ('x',)

    def __init__(self, data_stream):
        self.data_stream = data_stream


@pytest.mark.parametrize('module, name', [
    ('fuel.schemes.iterator_requests', 'ConcatenatedRequests'),
    ('fuel.sharding.first_epochs', 'FirstEpochs'),
    ('fuel.schemes.iterator_requests', 'CountedRequests'),
    ('fuel.schemes.iterator_requests', 'OneShotBatches'),
    ('fuel.schemes.sampling_requests', 'BlockOrder'),
    ('fuel.schemes.sampling_requests', 'draw_balanced'),
    ('fuel.schemes.sampling_requests', 'draw_weighted'),
    ('fuel.storage.file_access', 'FileAccess'),
    ('fuel.storage.file_access', 'RemoteAccess'),
    ('fuel.transformers.mixture.position', 'Mixture'),
    ('fuel.transformers.mixture.weights', 'MixtureWeights')])
def test_pickles_of_former_modules_load(module, name):
    """They find the class or function in its present module."""
    found = pickle.loads(f'c{module}\n{name}\n.'.encode())
    assert name == found.__name__
    assert module != found.__module__
