"""Programs with transformers of their own, in the ways they were written."""
import pickle

import numpy
import pytest
from numpy.testing import assert_array_equal

from fuel.datasets import IndexableDataset, IterableDataset
from fuel.schemes import (
    ConstantScheme,
    SequentialExampleScheme,
    SequentialScheme,
)
from fuel.streams import DataStream
from fuel.transformers import (
    AgnosticSourcewiseTransformer,
    Batch,
    FilterSources,
    Mapping,
    Padding,
    SourcewiseTransformer,
    Transformer,
    Unpack,
)


@pytest.fixture(params=['compiled', 'get_data'], autouse=True)
def road(request, monkeypatch):
    """Read stages in C where they can be, or by their `get_data` alone."""
    if request.param == 'get_data':
        monkeypatch.setattr(Transformer, 'open_reader', lambda *_: None)


def batches():
    """Return a stream of two batches."""
    return DataStream(
        IndexableDataset({'x': numpy.arange(8.).reshape(4, 2),
                          'y': [0, 1, 2, 3]}),
        iteration_scheme=SequentialScheme(4, 2))


def epoch(stream):
    """Return the data of an epoch as nested lists."""
    return [[numpy.asarray(part).tolist() for part in data]
            for data in stream.get_epoch_iterator()]


class OneHot(Transformer):
    """Calls no constructor at all, and keeps what it needs by hand."""

    produces_examples = False
    iteration_scheme = None
    axis_labels = None

    def __init__(self, data_stream, classes):
        self.data_stream = data_stream
        self.classes = classes

    def get_data(self, request=None):
        """Pull, and replace the labels; a list comes back."""
        if request is not None:
            raise ValueError
        x, y = next(self.child_epoch_iterator)
        return [x, numpy.eye(self.classes)[y]]


class AddLengths(Transformer):
    """Has a property `sources` without a setter, and returns a generator."""

    def __init__(self, data_stream, **kwargs):
        super(AddLengths, self).__init__(
            data_stream, produces_examples=False, **kwargs)

    @property
    def sources(self):
        """One more than the stream has, as a list."""
        return list(self.data_stream.sources) + ['length']

    def transform_batch(self, batch):
        """Give the parts one by one."""
        def parts():
            yield from batch
            yield numpy.full(len(batch[0]), len(batch[0]))
        return parts()


class Swap(Transformer):
    """Sets `sources` before it calls the constructor."""

    def __init__(self, data_stream):
        self.sources = tuple(reversed(data_stream.sources))
        super(Swap, self).__init__(
            data_stream, data_stream.produces_examples)

    def transform_batch(self, batch):
        """Return the sources in reverse."""
        return tuple(reversed(batch))


class Centre(AgnosticSourcewiseTransformer):
    """The usual kind."""

    def __init__(self, stream, mean, **kwargs):
        super(Centre, self).__init__(
            stream, stream.produces_examples, **kwargs)
        self.mean = mean

    def transform_any_source(self, source, _):
        """Subtract the mean."""
        return numpy.asarray(source) - self.mean


class Halves(Transformer):
    """Makes two batches of one: it keeps what is left for the next call."""

    def __init__(self, data_stream):
        super(Halves, self).__init__(data_stream, produces_examples=False)
        self.rest = None

    def get_data(self, request=None):
        """Return the rest of a batch, or the first half of the next."""
        if self.rest is not None:
            rest, self.rest = self.rest, None
            return rest
        batch = next(self.child_epoch_iterator)
        half = len(batch[0]) // 2
        self.rest = tuple(part[half:] for part in batch)
        return tuple(part[:half] for part in batch)


class Sum(SourcewiseTransformer):
    """Sums batches, and leaves examples to the error of the base."""

    def __init__(self, stream, **kwargs):
        super(Sum, self).__init__(
            stream, produces_examples=False, **kwargs)

    def transform_source_batch(self, batch, name):
        """Sum over each example."""
        return numpy.asarray(batch).reshape(len(batch), -1).sum(axis=1)


def test_stage_without_a_constructor_pulls_from_its_child():
    """For any number of epochs, and pickled."""
    stage = OneHot(batches(), 4)
    assert ('x', 'y') == tuple(stage.sources)
    expected = [[[[0, 1], [2, 3]], [[1, 0, 0, 0], [0, 1, 0, 0]]],
                [[[4, 5], [6, 7]], [[0, 0, 1, 0], [0, 0, 0, 1]]]]
    for _ in range(2):
        assert expected == epoch(stage)
    assert expected == epoch(pickle.loads(pickle.dumps(stage)))
    iterator = stage.get_epoch_iterator()
    next(iterator)
    _, again = pickle.loads(pickle.dumps((stage, iterator)))
    assert_array_equal(expected[1][1], next(again)[1])


def test_stage_with_a_property_for_sources_gives_dicts():
    """Of what its generator yields."""
    data = next(AddLengths(batches()).get_epoch_iterator(as_dict=True))
    assert ['x', 'y', 'length'] == list(data)
    assert [2, 2] == data['length'].tolist()
    stage = FilterSources(AddLengths(batches()), ('length',))
    assert [[[2, 2]], [[2, 2]]] == epoch(stage)


def test_stages_of_users_stack_with_those_of_fuel():
    """In any order."""
    stage = Sum(Centre(Swap(batches()), 1, which_sources=('y',)),
                which_sources='x')
    assert ('y', 'x') == stage.sources
    assert [[[-1, 0], [1, 5]], [[1, 2], [9, 13]]] == epoch(stage)
    stage = Batch(Unpack(stage), ConstantScheme(3))
    assert [[[-1, 0, 1], [1, 5, 9]], [[2], [13]]] == epoch(stage)


def test_stage_with_left_overs_pickles_with_its_iterator():
    """A stage's own attributes are pickled with the stage."""
    stage = Halves(batches())
    assert [[0], [1], [2], [3]] == [y for _, y in epoch(stage)]
    iterator = stage.get_epoch_iterator()
    next(iterator)
    stage, iterator = pickle.loads(pickle.dumps((stage, iterator)))
    assert [[1], [2], [3]] == [list(data[1]) for data in iterator]


def test_batch_stage_refuses_examples():
    """With the error that such programs caught."""
    stream = DataStream(IndexableDataset({'x': [1, 2]}),
                        iteration_scheme=SequentialExampleScheme(2))
    with pytest.raises(NotImplementedError):
        list(Sum(stream).get_epoch_iterator())


class PaddingWithLengths(Padding):
    """Adds the lengths of one source to what Padding returns."""

    def __init__(self, data_stream, count, **kwargs):
        super(PaddingWithLengths, self).__init__(data_stream, **kwargs)
        self.count = count

    @property
    def sources(self):
        """Those of the base, and one."""
        sources = list(super(PaddingWithLengths, self).sources)
        return tuple(sources + [self.count + '_lengths'])

    def transform_batch(self, batch):
        """Count before padding."""
        index = self.data_stream.sources.index(self.count)
        lengths = numpy.array([len(part) for part in batch[index]])
        return super(PaddingWithLengths, self).transform_batch(
            batch) + (lengths,)


def test_padding_can_be_derived_from():
    """Its sources and its batches."""
    stream = Batch(DataStream(IterableDataset(
        {'words': [[1, 2, 3], [4], [5, 6]]})), ConstantScheme(2))
    stage = PaddingWithLengths(stream, 'words', mask_dtype='uint8')
    assert ('words', 'words_mask', 'words_lengths') == stage.sources
    (words, mask, lengths), (_, _, last) = stage.get_epoch_iterator()
    assert [[1, 2, 3], [4, 0, 0]] == words.tolist()
    assert [3, 1] == lengths.tolist() == mask.sum(axis=1).tolist()
    assert [2] == last.tolist()


def test_mapping_functions_return_what_they_like():
    """Lists, tuples of lists, generators."""
    for function in (lambda data: [data[0], [1, 2]],
                     lambda data: (data[0].tolist(), (1, 2)),
                     lambda data: (part for part in (data[0], [1, 2]))):
        stage = Mapping(batches(), function)
        assert [[[[0, 1], [2, 3]], [1, 2]], [[[4, 5], [6, 7]], [1, 2]]
                ] == epoch(stage)
