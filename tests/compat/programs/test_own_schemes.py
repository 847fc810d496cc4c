"""Programs whose schemes ask for what their data sets alone understand."""
import os
import pickle

import numpy
import pytest

from fuel.datasets import Dataset, IndexableDataset
from fuel.schemes import (
    BatchScheme,
    BatchSizeScheme,
    ConstantScheme,
    IterationScheme,
)
from fuel.streams import DataStream
from fuel.transformers import Mapping


class Slices(BatchScheme):
    """Asks for slices."""

    def get_request_iterator(self):
        """Return one for each batch."""
        return iter([slice(start, min(start + self.batch_size,
                                      self.num_examples))
                     for start in range(0, self.num_examples,
                                        self.batch_size)])


class Tuples(BatchScheme):
    """Asks for tuples of indices."""

    def get_request_iterator(self):
        """Return one for each batch."""
        indices = tuple(self.indices)
        return iter([indices[start:start + self.batch_size]
                     for start in range(0, len(indices), self.batch_size)])


class Pairs(IterationScheme):
    """Asks for pairs of a document and a position."""

    requests_examples = True

    def __init__(self, lengths):
        self.lengths = lengths

    def get_request_iterator(self):
        """Return each position of each document."""
        return iter([(document, position)
                     for document, length in enumerate(self.lengths)
                     for position in range(length)])


class Documents(Dataset):
    """Words of documents, asked for by pairs."""

    provides_sources = ('word',)

    def __init__(self, documents, **kwargs):
        self.documents = documents
        super(Documents, self).__init__(**kwargs)

    def get_data(self, state=None, request=None):
        """Return one word."""
        document, position = request
        return (self.documents[document][position],)


class Files(IterationScheme):
    """Asks for files by name, in a new order each epoch."""

    requests_examples = False

    def __init__(self, folder, seed):
        self.folder, self.rng = folder, numpy.random.RandomState(seed)

    def get_request_iterator(self):
        """List the folder anew."""
        names = sorted(os.listdir(self.folder))
        self.rng.shuffle(names)
        return iter(names)


class Arrays(Dataset):
    """Each file holds a batch; the state is a counter of open files."""

    provides_sources = ('x', 'name')
    example_iteration_scheme = None

    def __init__(self, folder):
        self.folder = folder
        super(Arrays, self).__init__()

    def open(self):
        """Return a state that is changed while reading."""
        return {'read': 0}

    def reset(self, state):
        """Begin again."""
        return self.open()

    def get_data(self, state=None, request=None):
        """Read a file."""
        state['read'] += 1
        return numpy.load(os.path.join(self.folder, request)), request


class Endless(BatchSizeScheme):
    """Is its own iterator, which never ends."""

    def __init__(self, size):
        self.size = size

    def get_request_iterator(self):
        """Return itself."""
        return self

    def __iter__(self):
        return self

    def __next__(self):
        return self.size


class Noise(Dataset):
    """Draws as many examples as it is asked for."""

    provides_sources = ('x',)

    def __init__(self, seed):
        self.rng = numpy.random.RandomState(seed)
        super(Noise, self).__init__()

    def get_data(self, state=None, request=None):
        """Draw them."""
        return (self.rng.normal(size=(request, 2)),)


def test_scheme_of_slices():
    """They reach the data set as they are."""
    stream = DataStream(IndexableDataset({'x': list(range(7))}),
                        iteration_scheme=Slices(7, 3))
    assert [([0, 1, 2],), ([3, 4, 5],), ([6],)] == list(
        stream.get_epoch_iterator())


def test_scheme_of_tuples():
    """They are read as lists."""
    stream = DataStream(
        IndexableDataset({'x': numpy.arange(7), 'y': list(range(7))}),
        iteration_scheme=Tuples([6, 2, 2, 0], 3))
    assert [([6, 2, 2], [6, 2, 2]), ([0], [0])] == [
        (x.tolist(), y) for x, y in stream.get_epoch_iterator()]


def test_scheme_of_pairs_over_the_users_own_data_set():
    """A data set may take any request."""
    documents = [['a', 'b'], [], ['c']]
    stream = DataStream(Documents(documents), iteration_scheme=Pairs(
        [len(document) for document in documents]))
    assert [('a',), ('b',), ('c',)] == list(stream.get_epoch_iterator())
    iterator = stream.get_epoch_iterator()
    next(iterator)
    assert [('b',), ('c',)] == list(pickle.loads(pickle.dumps(iterator)))


def test_scheme_of_file_names(tmp_path):
    """In the order of the scheme, other in each epoch, from a pickle too."""
    for number in range(5):
        numpy.save(tmp_path / f'{number}.npy', numpy.full(2, number))
    stream = DataStream(Arrays(str(tmp_path)),
                        iteration_scheme=Files(str(tmp_path), 3))
    rng, orders = numpy.random.RandomState(3), []
    for _ in range(2):
        names = [f'{number}.npy' for number in range(5)]
        rng.shuffle(names)
        orders.append(names)
    seen = []
    for _ in range(2):
        iterator = stream.get_epoch_iterator()
        seen.append([next(iterator)[1]])
        stream, iterator = pickle.loads(pickle.dumps((stream, iterator)))
        for data, name in iterator:
            assert [int(name[0])] * 2 == data.tolist()
            seen[-1].append(name)
    assert orders == seen


def test_endless_scheme_gives_as_much_as_is_taken():
    """The generator of the data set goes on."""
    stream = Mapping(DataStream(Noise(1), iteration_scheme=Endless(3)),
                     lambda data: (data[0] * 2,))
    rng = numpy.random.RandomState(1)
    for count, (batch,) in enumerate(stream.get_epoch_iterator()):
        assert (rng.normal(size=(3, 2)) * 2).tolist() == batch.tolist()
        if count == 20:
            break


@pytest.mark.parametrize('times', [1, 4])
def test_constant_scheme_ends_a_generating_data_set(times):
    """`times` makes epochs of data that never end."""
    stream = DataStream(Noise(1), iteration_scheme=ConstantScheme(
        5, times=times))
    for _ in range(2):
        assert [(5, 2)] * times == [
            batch.shape for batch, in stream.get_epoch_iterator()]
