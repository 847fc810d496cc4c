"""Programs whose objects only look like Fuel's, and tools that look into
streams."""
import pickle

import numpy
from numpy.testing import assert_array_equal

from fuel.datasets import IndexableDataset
from fuel.schemes import ConstantScheme, SequentialScheme, ShuffledScheme
from fuel.streams import AbstractDataStream, DataStream
from fuel.transformers import (
    Batch,
    FilterSources,
    Mapping,
    Merge,
    Rename,
    Unpack,
)


class Walk:
    """Looks like a data set: no base class, a state that changes."""

    sources = ('position', 'step')
    axis_labels = None

    def __init__(self, seed):
        self.seed = seed

    def open(self):
        """Return a generator's state and a place."""
        return [numpy.random.RandomState(self.seed), 0.]

    def next_epoch(self, state):
        """Go on with the generator, from the origin."""
        return [state[0], 0.]

    def reset(self, state):
        """Begin again."""
        return self.open()

    def close(self, state):
        """Do nothing."""

    def get_data(self, state=None, request=None):
        """Walk as many steps as are asked for."""
        steps = state[0].normal(size=request)
        positions = state[1] + numpy.cumsum(steps)
        state[1] = positions[-1]
        return positions, steps


def walk(seed=2):
    """Return the stream of the program."""
    return DataStream(Walk(seed), iteration_scheme=ConstantScheme(
        4, times=3))


def test_look_alike_is_streamed():
    """Its state goes through each epoch, and on to the next."""
    rng = numpy.random.RandomState(2)
    stream = walk()
    for _ in range(2):
        steps = [step for _, part in stream.get_epoch_iterator()
                 for step in part]
        assert_array_equal(rng.normal(size=12), steps)


def test_look_alike_goes_on_from_a_pickle():
    """The state is pickled with the iterator."""
    expected = [part.tolist() for part, _ in walk().get_epoch_iterator()]
    stream = walk()
    iterator = stream.get_epoch_iterator()
    next(iterator)
    stream, iterator = pickle.loads(pickle.dumps((stream, iterator)))
    assert expected[1:] == [part.tolist() for part, _ in iterator]


class Alternate(AbstractDataStream):
    """A stream of the user's own: takes turns over others."""

    def __init__(self, streams):
        super(Alternate, self).__init__()
        self.streams = streams
        self.produces_examples = streams[0].produces_examples
        self.sources = streams[0].sources

    def get_data(self, request=None):
        """Take from the next one."""
        self.turn += 1
        return next(self.iterators[self.turn % len(self.iterators)])

    def get_epoch_iterator(self, **kwargs):
        """Start all of them."""
        self.turn = -1
        self.iterators = [
            stream.get_epoch_iterator() for stream in self.streams]
        return super(Alternate, self).get_epoch_iterator(**kwargs)

    def close(self):
        """Close all of them."""
        for stream in self.streams:
            stream.close()

    def reset(self):
        """Reset all of them."""
        for stream in self.streams:
            stream.reset()


def numbers(start, size=2):
    """Return a stream of four numbers."""
    return DataStream(
        IndexableDataset({'x': numpy.arange(start, start + 4)}),
        iteration_scheme=SequentialScheme(4, size))


def test_stream_of_the_users_own_runs_under_stages():
    """For several epochs."""
    stream = Mapping(Alternate([numbers(0), numbers(10)]),
                     lambda data: (data[0] + 1,))
    for _ in range(2):
        assert [[1, 2], [11, 12], [3, 4], [13, 14]] == [
            data.tolist() for data, in stream.get_epoch_iterator()]
    stream.close()


def describe(stream):
    """A tool: walks down a pipeline, and returns what it found."""
    names = []
    while True:
        names.append(type(stream).__name__)
        if hasattr(stream, 'data_streams'):
            stream = stream.data_streams[0]
        elif hasattr(stream, 'data_stream'):
            stream = stream.data_stream
        else:
            break
    scheme = stream.iteration_scheme
    return (names, scheme.batch_size, scheme.num_examples,
            list(scheme.indices), stream.dataset.num_examples)


def test_tool_walks_down_a_pipeline():
    """Through stages, to the scheme and the data set."""
    stream = FilterSources(Rename(Merge(
        (numbers(0, 3), numbers(5, 3)), ('a', 'b')), {'a': 'c'}), ('c',))
    assert (['FilterSources', 'Rename', 'Merge', 'DataStream'], 3, 4,
            [0, 1, 2, 3], 4) == describe(stream)


def test_sources_hidden_by_assignment_stay_hidden_in_dicts():
    """A program without labels sets `sources` on the stream."""
    stream = DataStream(
        IndexableDataset({'x': [1, 2], 'y': [3, 4]}),
        iteration_scheme=ShuffledScheme(2, 2))
    stream.sources = ('x',)
    batch = next(stream.get_epoch_iterator(as_dict=True))
    assert ['x'] == list(batch)


def test_batches_are_unpacked_and_batched_anew():
    """Another size of batch than the data set's."""
    stream = Batch(Unpack(numbers(0, 3)), ConstantScheme(
        batch_size=2, num_examples=4))
    assert [[0, 1], [2, 3]] == [
        data.tolist() for data, in stream.get_epoch_iterator()]


def test_several_epochs_as_a_loop_over_iterate_epochs():
    """The oldest way to write a training loop."""
    stream, seen = numbers(0), []
    for number, epoch in enumerate(stream.iterate_epochs()):
        seen.append([data.tolist() for data, in epoch])
        if number == 2:
            break
    assert [[[0, 1], [2, 3]]] * 3 == seen
