"""Transformer and the bases that derive from it."""
import itertools

import numpy
import pytest

from fuel.datasets import IndexableDataset, IterableDataset
from fuel.iterator import DataIterator
from fuel.schemes import (
    ConstantScheme,
    SequentialExampleScheme,
    SequentialScheme,
)
from fuel.streams import AbstractDataStream, DataStream
from fuel.transformers import (
    AgnosticSourcewiseTransformer,
    AgnosticTransformer,
    Batch,
    Chain,
    Cache,
    Cast,
    Flatten,
    ForceFloatX,
    Mapping,
    ScaleAndShift,
    SourcewiseTransformer,
    Take,
    Transformer,
    Unpack,
)
from fuel.transformers.defaults import ToBytes
from fuel.transformers.noise import GaussianNoise


def pairs(scheme=SequentialExampleScheme, *args, **kwargs):
    """Return a stream over four pairs of numbers."""
    dataset = IndexableDataset({
        'features': numpy.array([1, 2, 3, 4]),
        'targets': numpy.array([-1, 1, -1, 1])}, **kwargs)
    return DataStream(dataset, iteration_scheme=scheme(4, *args))


def plain(epoch):
    """Return an epoch as lists that compare."""
    return [[numpy.asarray(part).tolist() for part in data]
            for data in epoch]


class Minus(AgnosticSourcewiseTransformer):
    """A user's stage that changes signs."""

    def __init__(self, data_stream, produces_examples, **kwargs):
        super().__init__(data_stream, produces_examples,
                         axis_labels=data_stream.axis_labels, **kwargs)

    def transform_any_source(self, source_data, source_name):
        """Return the data with the other sign."""
        return -source_data


class Doubler(Transformer):
    """The manual's example, which works in place."""

    def __init__(self, data_stream, **kwargs):
        super().__init__(
            data_stream=data_stream,
            produces_examples=data_stream.produces_examples, **kwargs)

    def transform_example(self, example):
        """Return the example with its features doubled in place."""
        if 'features' in self.sources:
            example = list(example)
            index = self.sources.index('features')
            example[index] *= 2
            example = tuple(example)
        return example

    transform_batch = transform_example


@pytest.mark.parametrize('scheme, expected', [
    ((SequentialExampleScheme,), [[2, -1], [4, 1], [6, -1], [8, 1]]),
    ((SequentialScheme, 3), [[[2, 4, 6], [-1, 1, -1]], [[8], [1]]]),
])
def test_transformer_in_place_does_not_change_the_data_set(scheme, expected):
    """A stage that works in place leaves the data set as it is."""
    stream = Doubler(pairs(*scheme))
    for _ in range(2):
        assert expected == plain(stream.get_epoch_iterator())
    rows = IndexableDataset(numpy.arange(4).reshape(2, 2))
    rows_stream = DataStream(
        rows, iteration_scheme=SequentialExampleScheme(2))
    for _ in range(2):
        for row, in Mapping(
                rows_stream, lambda data: data).get_epoch_iterator():
            numpy.multiply(row, 100, out=row)
    assert [[0, 1], [2, 3]] == rows.indexables[0].tolist()


@pytest.mark.parametrize('cls', [
    Transformer, AgnosticTransformer, SourcewiseTransformer,
    AgnosticSourcewiseTransformer])
@pytest.mark.parametrize('scheme, method', [
    ((SequentialExampleScheme,), 'example'), ((SequentialScheme, 2), 'batch')])
def test_base_without_method_raises_when_used(cls, scheme, method):
    """Each base can be built, and names the method it lacks."""
    data_stream = pairs(*scheme)
    stream = cls(data_stream,
                 produces_examples=data_stream.produces_examples)
    with pytest.raises(NotImplementedError,
                       match=f'transform_(source_)?(any|{method})'):
        next(stream.get_epoch_iterator())


@pytest.mark.parametrize('examples', [True, False])
def test_mismatch_of_examples_and_batches_raises(examples):
    """The mismatch is raised before the data stream is read."""
    data_stream = pairs() if not examples else pairs(SequentialScheme, 2)
    stream = Doubler(data_stream)
    stream.produces_examples = examples
    epoch = stream.get_epoch_iterator()
    with pytest.raises(NotImplementedError, match='produces (exam|batch)'):
        next(epoch)
    assert 0 == stream.child_epoch_iterator.epoch.position


def test_request_raises():
    """A stage that reads in order says so."""
    with pytest.raises(ValueError, match=r'takes no requests, got \[0\]'):
        Doubler(pairs()).get_data([0])


def test_produces_examples_must_be_told():
    """Nothing is guessed, as before."""
    with pytest.raises(ValueError, match='produces_examples'):
        _ = Transformer(pairs()).produces_examples


def test_produces_examples_may_be_a_class_attribute():
    """Subclasses in the wild say so once and for all."""
    class Batches(AgnosticTransformer):
        produces_examples = False

        def transform_any(self, data):
            return data

    stream = Batches(pairs(SequentialScheme, 4))
    assert [[[1, 2, 3, 4], [-1, 1, -1, 1]]] == plain(
        stream.get_epoch_iterator())


def test_sources_assigned_before_the_constructor_stay():
    """Scripts do so."""
    class Named(Doubler):
        def __init__(self, data_stream):
            self.sources = ['features', 'labels']
            super().__init__(data_stream)

    stream = Named(pairs())
    assert ['features', 'labels'] == stream.sources
    assert {'features': 2, 'labels': -1} == next(
        stream.get_epoch_iterator(as_dict=True))


def test_sources_may_be_a_property_without_setter():
    """A subclass of any stage may define them so."""
    class Renamed(ScaleAndShift):
        @property
        def sources(self):
            return tuple(name + '!' for name in self.data_stream.sources)

    stream = Renamed(pairs(), 2, 0)
    assert ('features!', 'targets!') == stream.sources
    assert {'features!': 2, 'targets!': -2} == next(
        stream.get_epoch_iterator(as_dict=True))


def test_subclass_may_skip_every_constructor():
    """The attributes that constructors set have defaults on the classes."""
    class Bare(AgnosticSourcewiseTransformer):
        def __init__(self, data_stream):
            self.data_stream = data_stream
            self.produces_examples = True

        def transform_any_source(self, source_data, source_name):
            return -source_data

    stream = Bare(pairs())
    assert ('features', 'targets') == stream.sources
    assert stream.axis_labels is None
    assert [[-1, 1], [-2, -1], [-3, 1], [-4, -1]] == plain(
        stream.get_epoch_iterator())
    assert stream.state_dict()


def test_get_data_may_be_overridden():
    """It reads child_epoch_iterator, and is re-entrant all the same."""
    class Pairwise(Transformer):
        def get_data(self, request=None):
            first = next(self.child_epoch_iterator)
            second = next(self.child_epoch_iterator)
            return [first[0], second[0]]

    stream = Pairwise(pairs(), produces_examples=True)
    one, other = stream.get_epoch_iterator(), stream.get_epoch_iterator()
    assert [([1, 2], [1, 2]), ([3, 4], [3, 4])] == list(
        zip(one, other, strict=True))
    with pytest.raises(TypeError, match='Pairwise.*get_leftover'):
        stream.get_epoch_iterator().state_dict()


@pytest.mark.parametrize('make, expected', [
    (list, list), (tuple, tuple), (iter, tuple),
    (lambda data: (part for part in data), tuple)])
def test_transform_may_return_any_sequence(make, expected):
    """Lists stay lists; iterators are read out."""
    class Any(AgnosticTransformer):
        def transform_any(self, data):
            return make(data)

    example = next(Any(pairs(), True).get_epoch_iterator())
    assert type(example) is expected
    assert [1, -1] == list(example)


def test_child_may_be_any_iterator():
    """A data stream in the wild returns a generator."""
    class Counting(AbstractDataStream):
        sources = ('number',)
        produces_examples = True

        def get_epoch_iterator(self, **kwargs):
            return ((number,) for number in itertools.count())

    stream = Mapping(Counting(), lambda data: (data[0] * 2,))
    epoch = stream.get_epoch_iterator()
    assert [(0,), (2,)] == list(itertools.islice(epoch, 2))
    with pytest.raises(TypeError, match='generator has no position'):
        epoch.state_dict()


class Lookalike:
    """An object with a stream's interface, derived from no class of Fuel."""

    sources = ('number',)
    axis_labels = None
    produces_examples = False

    def get_epoch_iterator(self, as_dict=False):
        """Return an iterator over two batches."""
        self.count = 0
        return DataIterator(self)

    def get_data(self, request=None):
        """Return a batch."""
        if self.count == 2:
            raise StopIteration
        self.count += 1
        return ([self.count, 10 * self.count],)


class Unsure(IterableDataset):
    """A data set whose position cannot be told at present."""

    def get_position(self, state):
        """Raise."""
        raise RuntimeError('ask again later')


@pytest.mark.parametrize('build, reason', [
    (Lookalike, 'derive the class from AbstractDataStream'),
    (lambda: Batch(DataStream(Unsure([1, 10, 2, 20])), ConstantScheme(2)),
     'ask again later')])
def test_streams_without_a_position_are_read_all_the_same(build, reason):
    """Only a request for a state raises an error."""
    assert [[[1, 10]], [[2, 20]]] == plain(
        Mapping(build(), lambda data: data).get_epoch_iterator())
    unpack = Unpack(build())
    assert [[1], [10], [2], [20]] == plain(unpack.get_epoch_iterator())
    cache = Cache(build(), ConstantScheme(3))
    assert [[[1, 10, 2]], [[20]]] == plain(cache.get_epoch_iterator())
    epoch = unpack.get_epoch_iterator()
    next(epoch)
    with pytest.raises((TypeError, RuntimeError), match=reason):
        epoch.state_dict()


def test_stages_hand_on_close_reset_and_next_epoch():
    """They are passed on because they concern the data set."""
    called = []

    class Noting(AbstractDataStream):
        produces_examples = True
        sources = ()

        def get_data(self, request=None):
            raise StopIteration

        def close(self):
            called.append('close')

        def reset(self):
            called.append('reset')

        def next_epoch(self):
            called.append('next_epoch')

    with Mapping(Mapping(Noting(), None), None) as stream:
        stream.reset()
        stream.next_epoch()
    assert ['reset', 'next_epoch', 'close'] == called


class Halves(Transformer):
    """A stage of a user's that gives each batch in two parts."""

    def get_data(self, request=None):
        raise StopIteration

    def __len__(self):
        return 2 * len(self.data_stream)


def test_length_of_a_users_stage_is_that_of_stages_above_it():
    """The length is known if the user's stage knows it."""
    halves = Halves(pairs(SequentialScheme, 2), False)
    for stage in (Mapping(halves, None), ToBytes(halves), Take(halves, 9)):
        assert 2 * len(halves.data_stream) == len(stage)
    assert 3 * len(halves.data_stream) == len(
        Chain((halves.data_stream, halves)))
    endless = DataStream(IterableDataset(iter([1])))
    with pytest.raises(TypeError, match='epoch of Mapping is not known'):
        len(Mapping(Halves(endless, True), None))


def test_length_is_that_of_the_data_stream():
    """A stage that returns one item for each has its stream's length."""
    assert 4 == len(Doubler(pairs()))
    assert 2 == len(Doubler(Doubler(pairs(SequentialScheme, 3))))

    class Other(Doubler):
        def get_data(self, request=None):
            return ()

    with pytest.raises(TypeError, match='not known'):
        len(Other(pairs()))


def test_error_names_stage_item_and_source():
    """Users see where to look."""
    class Fails(AgnosticSourcewiseTransformer):
        def transform_any_source(self, source_data, source_name):
            return 1 // 0

    stream = Fails(pairs(), True, which_sources=('targets',))
    with pytest.raises(ZeroDivisionError) as raised:
        next(stream.get_epoch_iterator())
    assert ["in source 'targets'", 'example 0 of the data set',
            'in stage Fails, item 0 of the epoch'
            ] == raised.value.__notes__


# Sourcewise

@pytest.mark.parametrize('build', [
    lambda stream, which: ScaleAndShift(stream, 2, 0, which_sources=which),
    lambda stream, which: Cast(stream, 'float64', which_sources=which),
    lambda stream, which: Flatten(stream, which_sources=which),
    lambda stream, which: ForceFloatX(stream, which_sources=which),
    lambda stream, which: ToBytes(stream, which_sources=which),
    lambda stream, which: Minus(stream, True, which_sources=which),
    lambda stream, which: GaussianNoise(
        Cast(stream, 'float64'), 1, which_sources=which),
])
def test_which_sources_bare_string_is_that_one_source(build):
    """Other sources pass through, also one whose name is part of it."""
    def stream():
        return DataStream(IndexableDataset(
            {'feat': numpy.arange(3), 'features': numpy.arange(3)},
            axis_labels={'feat': ('batch',), 'features': ('batch',)}),
            iteration_scheme=SequentialExampleScheme(3))

    bare, tuple_ = build(stream(), 'features'), build(
        stream(), ('features',))
    assert ('features',) == bare.which_sources == tuple_.which_sources
    assert bare.axis_labels == tuple_.axis_labels
    found = list(bare.get_epoch_iterator())
    assert found == list(tuple_.get_epoch_iterator())
    assert [0, 1, 2] == [feat for feat, _ in found]
    with pytest.raises(ValueError, match="did you mean 'features'"):
        build(stream(), 'feature')


def test_which_sources_string_on_a_class_is_that_one_source():
    """A user's stage may name its source as a class attribute."""
    class Negative(AgnosticSourcewiseTransformer):
        which_sources = 'features'

        def __init__(self, data_stream):
            AgnosticTransformer.__init__(self, data_stream, True)
            self.which_sources = 'targets'

        def transform_any_source(self, source_data, source_name):
            return -source_data

    assert (1, 1) == next(Negative(pairs()).get_epoch_iterator())


def test_unknown_name_in_which_sources_raises():
    """A misspelt name is an error."""
    with pytest.raises(ValueError, match="did you mean 'features'"):
        ScaleAndShift(pairs(), 2, 0, which_sources=('feature',))
    with pytest.raises(ValueError, match='which_sources must be a tuple'):
        ScaleAndShift(pairs(), 2, 0, which_sources=3)


def test_no_sources_means_none():
    """An empty tuple is not the same as None."""
    assert [[1, -1]] == plain(itertools.islice(ScaleAndShift(
        pairs(), 5, 0, which_sources=()).get_epoch_iterator(), 1))


def test_too_few_sources_raise():
    """Nothing passes under another's name."""
    class Short(AgnosticTransformer):
        def transform_any(self, data):
            return data[:1]

    stream = ScaleAndShift(Short(pairs(), True), 2, 0)
    with pytest.raises(ValueError, match='data of 2 sources.*but 1 came'):
        next(stream.get_epoch_iterator())


def test_examples_and_batches_go_to_their_own_methods():
    """A sourcewise stage may treat them differently."""
    class Naming(SourcewiseTransformer):
        def transform_source_example(self, source_example, source_name):
            return 'example', source_name

        def transform_source_batch(self, source_batch, source_name):
            return 'batch', source_name

    for data_stream, kind in [(pairs(), 'example'),
                              (pairs(SequentialScheme, 2), 'batch')]:
        stream = Naming(data_stream, data_stream.produces_examples)
        assert ((kind, 'features'), (kind, 'targets')) == next(
            stream.get_epoch_iterator())


def test_agnostic_sourcewise_methods_agree():
    """They agree when scripts call them directly."""
    class Negative(AgnosticSourcewiseTransformer):
        def transform_any_source(self, source_data, source_name):
            return -source_data

    stage = Negative(pairs(), True)
    assert -1 == stage.transform_source_example(1, 'targets')
    assert -1 == stage.transform_source_batch(1, 'targets')
    assert (-1, -2) == stage.transform_any((1, 2))


def test_stage_over_iterable_data_set():
    """A stream without a scheme produces examples."""
    stream = ScaleAndShift(DataStream(IterableDataset([1, 2])), 2, 1)
    assert [[3], [5]] == plain(stream.get_epoch_iterator())
