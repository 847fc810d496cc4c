"""PaddlePaddle's data providers and readers, without PaddlePaddle."""
import itertools
import json
import sys

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.processes import run_python

from fuel.datasets import IndexableDataset, IterableDataset
from fuel.exceptions import StateMismatchError
from fuel.interop.paddle import (
    ProviderDataset,
    as_iterable,
    as_provider,
    batch,
    buffered,
    chain,
    compose,
    firstn,
    map_readers,
    minibatches,
    shuffle,
    to_feed,
    train,
)
from fuel.schemes import ConstantScheme, SequentialScheme, ShuffledScheme
from fuel.streams import DataStream
from fuel.testing import check_dataset
from fuel.transformers import Batch

N = 7


def stream(scheme=None):
    """Return a stream of images and labels."""
    rng = numpy.random.RandomState(0)
    return DataStream(IndexableDataset({
        'pixel': rng.rand(N, 2, 3), 'label': numpy.arange(N)[:, None]}),
        iteration_scheme=scheme or ShuffledScheme(N, 3))


def labels(entries):
    """Return the second columns."""
    return [entry[1] for entry in entries]


def test_provider_returns_single_entries_of_the_next_pass():
    """An entry is a list with a column for each source, in their order."""
    provider = as_provider(stream())
    assert ('pixel', 'label') == provider.sources
    first, second = list(provider()), list(provider())
    assert N == len(first) == len(second)
    for entry in first:
        assert type(entry) is list
        pixel, label = entry
        assert ('float32', (6,)) == (pixel.dtype, pixel.shape)
        assert type(label) is int
    assert set(range(N)) == set(labels(first)) == set(labels(second))
    expected = stream()
    for entries in (first, second):
        epoch = expected.get_epoch_iterator()
        assert labels(entries) == [
            int(one) for batch_ in epoch for one in batch_[1].ravel()]


def test_provider_is_called_with_or_without_the_number_of_the_pass():
    """The document has both."""
    provider = as_provider(stream())
    assert N == len(list(provider(0))) == len(list(provider(pass_index=1)))


def test_provider_of_examples_passes_them_through():
    """Such examples need not be unpacked."""
    examples = DataStream(IterableDataset({'a': [1, 2], 'b': [.5, 1.]}))
    entries = list(as_provider(examples)())
    assert [[1, [.5]], [2, [1.]]] == [
        [a, b.tolist()] for a, b in entries]


@pytest.mark.parametrize('part, column', [
    (numpy.float64(.5), numpy.array([.5], 'float32')),
    (numpy.zeros((2, 2), 'float16'), numpy.zeros(4, 'float32')),
    (numpy.ones((2, 1), 'uint8'), numpy.ones(2, 'float32')),
    (numpy.int8(3), 3), (numpy.array([3]), 3), (True, 1), (5, 5),
    (numpy.array([3, 4]), [3, 4]), ([3, 4], [3, 4]), ([3], [3]), ([], []),
    ([.5, 1.5], numpy.array([.5, 1.5], 'float32')),
])
def test_data_become_columns(part, column):
    """A column is a float32 array of one dimension, an integer or a list of
    them."""
    entry, = as_provider(DataStream(IterableDataset({'a': [part]})))()
    assert type(entry[0]) is type(column)
    if isinstance(column, numpy.ndarray):
        assert (column.dtype, column.tolist()) == (
            entry[0].dtype, entry[0].tolist())
    else:
        assert column == entry[0]


@pytest.mark.parametrize('part', [
    'text', b'bytes', None, 1j, [[1], [2, 3]], ['a']])
def test_data_that_are_not_a_column_are_refused(part):
    """The error names the source."""
    provider = as_provider(DataStream(IterableDataset({'words': [part]})))
    with pytest.raises(TypeError, match="source 'words' is not a column"):
        list(provider())


def test_state_of_a_provider_resumes_in_the_middle_of_a_pass():
    """The next entry follows, also within a batch of the stream."""
    whole = as_provider(stream())
    expected = labels(itertools.chain(whole(), whole()))
    for done in range(N + 1):
        provider = as_provider(stream())
        entries = provider()
        for _ in range(done):
            next(entries)
        state = json.loads(json.dumps(provider.state_dict()))
        resumed = as_provider(stream())
        resumed.load_state_dict(state)
        assert expected == expected[:done] + labels(
            itertools.chain(resumed(), resumed()))


# A provider as a data set.

def squares():
    """Return a fresh iterable of entries."""
    return ([numpy.array([n, -n], 'float32'), n ** 2, list(range(n % 3))]
            for n in range(9))


def dataset():
    """Return a data set of a provider."""
    return ProviderDataset(squares, ('x', 'square', 'words'))


def test_provider_is_a_data_set_that_starts_anew_each_epoch():
    """Names for its columns are given."""
    batches = Batch(DataStream(dataset()), ConstantScheme(4))
    for _ in range(2):
        epoch = list(batches.get_epoch_iterator(as_dict=True))
        assert [4, 4, 1] == [len(each['square']) for each in epoch]
        assert [n ** 2 for n in range(9)] == sum(
            (each['square'].tolist() for each in epoch), [])
        assert (4, 2) == epoch[0]['x'].shape
    only = ProviderDataset(squares, ('x', 'square', 'words'),
                           sources=('square',))
    assert (4,) == list(DataStream(only).get_epoch_iterator())[2]


def test_provider_as_a_data_set_keeps_the_promises_of_data_sets():
    """The promises are about states, pickles, ownership and threads."""
    check_dataset(dataset, another_process=False)


def test_generator_in_a_lambda_is_a_provider():
    """Custom providers are written in this way."""
    def images(path):
        for number in range(3):
            yield [numpy.full(4, number, 'float32'), number]

    epochs = DataStream(ProviderDataset(
        lambda: images('/a/file'), ('image', 'label')))
    for _ in range(2):
        assert [0, 1, 2] == [
            label for _, label in epochs.get_epoch_iterator()]


def test_endless_provider_is_read_as_far_as_wanted():
    """Online learning never ends."""
    endless = ProviderDataset(
        lambda: ([n] for n in itertools.count()), ('n',))
    assert numpy.isnan(endless.num_examples)
    epoch = DataStream(endless).get_epoch_iterator()
    assert [(0,), (1,), (2,)] == list(itertools.islice(epoch, 3))


@pytest.mark.parametrize('provider, error, text', [
    (lambda: 5, TypeError, 'must return an iterable'),
    (lambda: [[1]], ValueError, 'entry 0 of the data provider'),
    (lambda: [[1, 2], 3], ValueError, 'entry 1 of the data provider'),
])
def test_provider_that_returns_something_else_is_refused(
        provider, error, text):
    """The error is raised when it is read."""
    with pytest.raises(error, match=text):
        list(DataStream(ProviderDataset(
            provider, ('a', 'b'))).get_epoch_iterator())


def test_arguments_of_a_provider_data_set_are_checked():
    """The constructor raises the errors."""
    with pytest.raises(TypeError, match='function without arguments'):
        ProviderDataset([[1]], ('a',))
    for names in ('ab', ()):
        with pytest.raises(ValueError, match='tuple with a name'):
            ProviderDataset(squares, names)
    with pytest.raises(ValueError, match='takes the state'):
        dataset().get_data(None, [1])


def test_provider_that_returns_one_iterator_twice_is_refused():
    """The second pass would be empty, silently."""
    iterator = iter([[1], [2]])
    passes = DataStream(ProviderDataset(lambda: iterator, ('a',)))
    assert 2 == len(list(passes.get_epoch_iterator()))
    with pytest.raises(ValueError, match='an earlier pass has read'):
        list(passes.get_epoch_iterator())


# The call that trains.

@given(st.integers(0, 9), st.integers(1, 5))
def test_minibatches_are_lists_of_entries(count, size):
    """The last one may be shorter, and the end raises no error."""
    entries = [[n] for n in range(count)]
    found = list(minibatches(lambda: entries, size))
    assert entries == sum(found, [])
    assert all(len(each) == size for each in found[:-1])
    assert all(1 <= len(each) <= size for each in found)


def test_training_has_mapping_batch_size_and_passes():
    """The provider knows of none of them."""
    seen = []
    train(as_provider(stream(SequentialScheme(N, 3))), ['image', 'label'],
          5, 2, lambda entries, mapping: seen.append(
              (labels(entries), mapping)))
    mapping = {'image': 0, 'label': 1}
    assert [([0, 1, 2, 3, 4], mapping), ([5, 6], mapping)] * 2 == seen


def test_training_passes_the_number_of_the_pass_to_who_takes_it():
    """The document's sample takes it."""
    passes = []

    def provider(pass_index):
        passes.append(pass_index)
        return [[1]]

    train(provider, ['a'], 1, 3, lambda *_: None)
    assert [0, 1, 2] == passes
    train(lambda: [[1]], ['a'], 1, 2, lambda *_: None)


def test_mapping_may_name_columns_by_number():
    """The order is free, and columns may be left out."""
    seen = []
    train(lambda: [[1, 2, 3]], {'c': 2, 'a': 0}, 1, 1,
          lambda entries, mapping: seen.append(to_feed(entries, mapping)))
    assert {'c': [3], 'a': [1]} == {
        layer: part.tolist() for layer, part in seen[0].items()}


def test_feed_has_arrays_and_sequences_by_layer():
    """Columns of one shape are stacked."""
    feed = to_feed([[numpy.zeros(2, 'float32'), 1, [1, 2]],
                    [numpy.ones(2, 'float32'), 0, [3]]], ['x', 'y', 'words'])
    assert ('float32', (2, 2)) == (feed['x'].dtype, feed['x'].shape)
    assert [1, 0] == feed['y'].tolist()
    assert [[1, 2], [3]] == feed['words']


@pytest.mark.parametrize('mapping, entries, error, text', [
    (['a'], [[1, 2]], ValueError, 'an entry has 2'),
    (['a', 'b', 'c'], [[1, 2]], ValueError, 'an entry has 2'),
    ({'a': 4}, [[1, 2]], ValueError, 'an entry has 2'),
    (['a'], [5], ValueError, 'an entry has None'),
    ('ab', [[1, 2]], ValueError, 'mapping must be'),
    ([], [[]], ValueError, 'mapping must be'),
    (['a', 'a'], [[1, 2]], ValueError, 'twice'),
    ({'a': -1}, [[1]], ValueError, "the column of 'a'"),
])
def test_mapping_that_does_not_fit_is_refused(mapping, entries, error, text):
    """No layer is fed with a wrong column."""
    with pytest.raises(error, match=text):
        train(lambda: entries, mapping, 1, 1, lambda *_: None)


@pytest.mark.parametrize('size', [0, -1])
def test_batch_size_and_passes_are_checked(size):
    """They are checked as all counts are."""
    with pytest.raises(ValueError, match='batch_size'):
        train(squares, 'abc', size, 1, print) if size > 0 else list(
            minibatches(squares, size))
    with pytest.raises(ValueError, match='total_pass'):
        train(squares, ['a'], 1, -1, print)


# Readers.

def numbers(count):
    """Return a reader of numbers."""
    return lambda: iter(range(count))


def test_readers_are_mapped_side_by_side():
    """Each call is a pass."""
    reader = map_readers(lambda a, b: (a, b), numbers(3), lambda: 'abc')
    for _ in range(2):
        assert [(0, 'a'), (1, 'b'), (2, 'c')] == list(reader())


def test_shuffled_reader_gives_each_entry_once_in_another_order():
    """The order depends on the seed and the pass."""
    reader = shuffle(numbers(50), 20, seed=3)
    passes = [list(reader()) for _ in range(2)]
    assert list(range(50)) == sorted(passes[0]) == sorted(passes[1])
    assert passes[0] != passes[1] != list(range(50))
    assert passes[0] == list(shuffle(numbers(50), 20, seed=3)())
    assert passes[0] != list(shuffle(numbers(50), 20, seed=4)())


def test_readers_are_chained():
    """A reader may be chained with itself."""
    reader = numbers(2)
    assert [0, 1, 0, 1, 9] == list(chain(reader, reader, lambda: [9])())
    shuffled = shuffle(numbers(9), 5, seed=1)
    once = list(shuffled())
    again = list(chain(shuffled, shuffled)())
    assert sorted(once * 2) == sorted(again)


def test_composed_reader_has_the_columns_of_all():
    """Tuples are columns, any other object is one column."""
    reader = compose(lambda: [(1, 2), (3, 4)], lambda: [[5], [6]], numbers(2))
    assert [(1, 2, [5], 0), (3, 4, [6], 1)] == list(reader())
    with pytest.raises(ValueError, match='different lengths'):
        list(compose(numbers(2), numbers(3))())
    with pytest.warns(UserWarning, match='different lengths'):
        assert [(0, 0), (1, 1)] == list(compose(
            numbers(2), numbers(3), check_alignment=False)())


def test_first_entries_are_taken_of_an_endless_reader():
    """No more of them are read."""
    read = []

    def endless():
        for n in itertools.count():
            read.append(n)
            yield n

    assert [0, 1, 2] == list(firstn(endless, 3)())
    assert [0, 1, 2] == read
    assert [] == list(firstn(endless, 0)())
    assert [0, 1] == list(firstn(numbers(2), 5)())


def test_buffered_reader_reads_in_another_process():
    """The entries stay the same, and their order."""
    reader = buffered(lambda: ((n, numpy.full(3, n)) for n in range(20)), 5)
    for _ in range(2):
        entries = list(reader())
        assert list(range(20)) == [n for n, _ in entries]
        assert [n * 3 for n in range(20)] == [x.sum() for _, x in entries]
    reader.close()


def test_batches_are_lists_of_entries_of_any_kind():
    """Entries stay as they are, and a short last list may be left out."""
    entries = [(n, numpy.arange(n), 'x' * n) for n in range(5)]
    for drop_last, sizes in ((False, [2, 2, 1]), (True, [2, 2])):
        found = list(batch(lambda: entries, 2, drop_last)())
        assert sizes == list(map(len, found))
        for (n, array, text), got in zip(entries, sum(found, []),
                                         strict=False):
            assert (n, array.tolist(), text) == (
                got[0], got[1].tolist(), got[2])
    assert [[[0, 1], [2, 3]], [[4]]] == list(
        batch(batch(numbers(5), 2), 2)())


def decorated():
    """Return a reader with every decorator but the background one."""
    reader = chain(map_readers(str, shuffle(numbers(20), 6, seed=2)),
                   lambda: 'abc')
    return batch(firstn(compose(reader, reader), 21), 4)


def test_state_of_a_provider_may_be_accepted_with_other_data():
    """By the argument of the stream that the error names; the stream's next
    state needs no acceptance."""
    def provider(dtype):
        return as_provider(DataStream(
            IndexableDataset({'x': numpy.arange(N, dtype=dtype)}),
            iteration_scheme=SequentialScheme(N, 3)))
    saved = provider('int16')
    entries = saved()
    for _ in range(2):
        next(entries)
    state = json.loads(json.dumps(saved.state_dict()))
    other = provider('int64')
    with pytest.raises(StateMismatchError, match=(
            r"pass accept=\('data',\) to load_state_dict of the stream")):
        other.load_state_dict(state)
    with pytest.warns(UserWarning, match='saved with other data'):
        other.load_state_dict(state, accept=('data',))
    accepted = other.state_dict()
    rest = [*other()]
    assert [2, 3, 4, 5, 6] == [int(entry[0]) for entry in rest]
    again = provider('int64')
    again.load_state_dict(accepted)
    assert rest == [*again()]


def test_position_of_decorated_readers_resumes():
    """Decorated readers are one pipeline, with one state, as plain data."""
    whole = decorated()
    expected = [*whole(), *whole()]
    for done in range(7):
        reader = decorated()
        entries = reader()
        for _ in range(done):
            next(entries)
        state = json.loads(json.dumps(reader.state_dict()))
        resumed = decorated()
        resumed.load_state_dict(state)
        assert expected == [*expected[:done], *resumed(), *resumed()]


def test_provider_of_a_stream_can_be_decorated():
    """Its entries are lists of columns."""
    reader = batch(as_provider(stream(SequentialScheme(N, 3))), 4)
    assert [[0, 1, 2, 3], [4, 5, 6]] == [labels(each) for each in reader()]


def test_decorated_reader_is_a_provider():
    """A data set and the training call take it."""
    reader = map_readers(lambda n: [n, -n], numbers(4))
    assert [(0, 0), (1, -1)] == list(itertools.islice(DataStream(
        ProviderDataset(reader, ('a', 'b'))).get_epoch_iterator(), 2))


@pytest.mark.parametrize('make, error, text', [
    (lambda: shuffle(numbers(3), 0), ValueError, 'buf_size'),
    (lambda: buffered(numbers(3), 0), ValueError, 'size'),
    (lambda: batch(numbers(3), 0), ValueError, 'batch_size'),
    (lambda: firstn(numbers(3), -1), ValueError, 'count'),
    (lambda: chain([1, 2]), TypeError, 'function without arguments'),
    (lambda: chain(), ValueError, 'at least one stream'),
])
def test_decorator_refuses_arguments(make, error, text):
    """The call raises the error."""
    with pytest.raises(error, match=text):
        make()


def test_loader_needs_paddle(monkeypatch):
    """The error says what to install."""
    monkeypatch.setitem(sys.modules, 'paddle', None)
    monkeypatch.setitem(sys.modules, 'paddle.io', None)
    with pytest.raises(ImportError, match='pip install paddlepaddle'):
        as_iterable(stream())


def test_bridges_import_without_the_other_library():
    """Importing Fuel's side loads nothing heavy."""
    status, output, errors = run_python('-c', (
        'import sys, fuel.interop.paddle\n'
        'print(sorted({"paddle", "chainer", "torch"} & set(sys.modules)))'))
    assert (0, b'[]') == (status, output.strip()), errors
