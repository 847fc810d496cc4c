"""Stages of users are read in C, with the attributes of the epoch or, if they
are declared pure, without; what comes is what their `get_data` gives."""
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuel.datasets import IndexableDataset
from fuel.exceptions import StateMismatchError
from fuel.kernels.stage_reader import BoundStageReader, StageReader
from fuel.schemes import ShuffledExampleScheme, ShuffledScheme
from fuel.streams import DataStream
from fuel.testing import BrokenPromiseError, check_stage
from fuel.transformers import (
    AgnosticTransformer,
    Cast,
    Expand,
    Mapping,
    SeededTransformer,
    SourcewiseTransformer,
    Transformer,
)

COUNT = 10


def source(examples=False):
    """Return a shuffled stream of two sources."""
    scheme = (ShuffledExampleScheme(COUNT) if examples
              else ShuffledScheme(COUNT, 3))
    return DataStream(IndexableDataset({
        'x': numpy.arange(COUNT * 2.).reshape(COUNT, 2),
        'y': numpy.arange(COUNT)}), iteration_scheme=scheme)


class Stage(Transformer):
    """The base of the stages below."""

    def __init__(self, data_stream):
        super().__init__(data_stream, data_stream.produces_examples)


class Plain(Stage):
    def transform_example(self, example):
        return (*example[:-1], example[-1] + 1)

    transform_batch = transform_example


class Pure(Plain):
    pure = True
    transform_example = transform_batch = Plain.transform_example


class Generated(Stage):
    pure = True

    def transform_example(self, example):
        return (2 * part for part in example)

    transform_batch = transform_example


class Positioned(Stage):
    """It asks for what belongs to the epoch."""

    def transform_example(self, example):
        position = self.child_epoch_iterator.epoch.position
        return (*example[:-1], example[-1] * 0 + position)

    transform_batch = transform_example


class Counting(Stage):
    """A stage whose counter belongs to the epoch."""

    epoch_attributes = (*Transformer.epoch_attributes, 'number')

    def get_epoch_iterator(self, **kwargs):
        self.number = 0
        return super().get_epoch_iterator(**kwargs)

    def transform_example(self, example):
        self.number += 1
        return (*example[:-1], example[-1] * 0 + self.number)

    transform_batch = transform_example


class Sources(SourcewiseTransformer):
    pure = True

    def __init__(self, data_stream):
        super().__init__(data_stream, data_stream.produces_examples,
                         which_sources=data_stream.sources[:1])

    def transform_source_example(self, source_example, source_name):
        return -source_example

    def transform_source_batch(self, source_batch, source_name):
        return -source_batch


class Failing(Stage):
    def transform_example(self, example):
        if numpy.ravel(example[0])[0] % 6 == 4:
            raise ArithmeticError('four')
        return example

    transform_batch = transform_example


class PureFailing(Failing):
    pure = True
    transform_example = transform_batch = Failing.transform_example


STAGES = {cls.__name__: cls for cls in (
    Plain, Pure, Generated, Positioned, Counting, Sources, Failing,
    PureFailing)}
# Those whose state is counts alone.
RESUMABLE = sorted(STAGES.keys() - {'Counting'})


def by_get_data(stage):
    """Return a stage that is read by calls of its `get_data`."""
    stage.get_data = type(stage).get_data.__get__(stage)
    return stage


def build(names, examples, wrap=lambda stage: stage):
    """Return stages over a stream."""
    stream = source(examples)
    for name in names:
        stream = wrap(STAGES[name](stream))
    return stream


def take(epoch, count=100):
    """Return the next items as plain data; an error is one of them."""
    found = []
    while len(found) < count:
        try:
            found.append([numpy.asarray(part).tolist()
                          for part in next(epoch)])
        except ArithmeticError as error:
            # The numbers of the examples are not known by all `get_data`.
            found.append([note for note in error.__notes__
                          if note.startswith('in stage')])
        except StopIteration:
            break
    return found


@given(st.lists(st.sampled_from(sorted(STAGES)), min_size=1, max_size=4),
       st.booleans())
def test_items_and_errors_are_those_of_get_data(names, examples):
    """They are for any pipeline, with the notes of each error."""
    assert take(build(names, examples, by_get_data).get_epoch_iterator()) == (
        take(build(names, examples).get_epoch_iterator()))


@given(st.lists(st.sampled_from(RESUMABLE), min_size=1, max_size=3),
       st.booleans(), st.integers(0, COUNT + 1))
def test_state_and_pickle_go_on_on_either_road(names, examples, steps):
    """A state of one road is taken up by the other, behind errors too."""
    stream = build(names, examples)
    epoch = stream.get_epoch_iterator()
    is_over = len(take(epoch, steps)) < steps
    state, copy = stream.state_dict(), pickle.dumps(epoch)
    rest = take(epoch)
    # A state of an epoch that is over goes on with the next one.
    expected = take(stream.get_epoch_iterator()) if is_over else rest
    for wrap in by_get_data, lambda stage: stage:
        restored = build(names, examples, wrap)
        restored.load_state_dict(state)
        assert expected == take(restored.get_epoch_iterator())
    assert rest == take(pickle.loads(copy))


def reader_of(stage):
    """Return the type of the reader of an epoch."""
    epoch = stage.get_epoch_iterator()
    next(epoch)
    return type(epoch.epoch.reader)


class TakenBack(Pure):
    def __init__(self, data_stream):
        super().__init__(data_stream)
        self.pure = False


class OwnMethod(Pure):
    def transform_batch(self, batch):
        return (*batch[:-1], batch[-1] + 5)


class OwnCast(Cast):
    def transform_any_source(self, source_data, source_name):
        return source_data + 7


@pytest.mark.parametrize('build, reader', [
    (Pure, StageReader), (Sources, StageReader), (Generated, StageReader),
    (Plain, BoundStageReader), (Counting, BoundStageReader),
    (OwnMethod, BoundStageReader), (TakenBack, BoundStageReader),
    (lambda stream: OwnCast(stream, 'float32'), BoundStageReader),
    (lambda stream: Cast(stream, 'float32'), StageReader),
    (lambda stream: Mapping(stream, tuple), BoundStageReader)])
def test_purity_is_declared_and_never_concluded(build, reader):
    """It does not hold for methods that were overridden since."""
    assert reader is reader_of(build(source()))


def test_overridden_method_of_a_pure_class_is_called():
    """It is overridden in a subclass, on an instance, and below another pure
    method."""
    assert set(range(5, COUNT + 5)) == {
        number for _, data in OwnMethod(source()).get_epoch_iterator()
        for number in data.tolist()}
    stage = Pure(source())
    stage.transform_batch = lambda batch: (batch[1] * 0,)
    assert all(not any(data) for data, in stage.get_epoch_iterator())

    class Batches(AgnosticTransformer):
        pure = True

        def __init__(self, data_stream):
            super().__init__(data_stream, data_stream.produces_examples)

        def transform_any(self, data):
            raise AssertionError('of examples')

        def transform_batch(self, batch):
            return (batch[1] * 0 + 3,)
    assert {3} == {number for data, in Batches(source()).get_epoch_iterator()
                   for number in data.tolist()}


@pytest.mark.parametrize('base', [Plain, Pure])
def test_attributes_of_users_may_have_any_name(base):
    """Names that the library asks its own objects for are allowed, too."""
    expected = take(base(source()).get_epoch_iterator())

    class Named(base):
        transform_example = transform_batch = Plain.transform_example

        def __init__(self, data_stream):
            super().__init__(data_stream)
            for name in ('length', 'position', 'inputs', 'plan', 'open',
                         'restore', 'traits', 'pure', 'reader', 'names',
                         'num_items', 'start_epoch', 'kept_arguments',
                         'keeps', 'keeps_rows', 'lock', 'shard', 'state',
                         'method', 'attributes', 'skipped', 'bypassed'):
                setattr(self, name, f'my {name}')

    stage = Named(source())
    epoch = stage.get_epoch_iterator()
    assert expected[:2] == take(epoch, 2)
    restored = Named(source())
    restored.load_state_dict(stage.state_dict())
    assert expected[2:] == take(restored.get_epoch_iterator())
    assert 'my position' == stage.position


def test_epochs_in_several_threads_keep_their_own_attributes():
    """The stage shows those of the epoch whose item is made."""
    stage = Counting(source(examples=True))
    found = []

    def read(epoch):
        found.append([int(number) for _, number in epoch])

    threads = [threading.Thread(target=read, args=(epoch,)) for epoch in [
        stage.get_epoch_iterator() for _ in range(4)]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [list(range(1, COUNT + 1))] * 4 == found


class Impure(Stage):
    pure = True
    number = 0

    def transform_example(self, example):
        self.number += 1
        return (*example[:-1], example[-1] + self.number)

    transform_batch = transform_example


class Shared(Stage):
    """It has one buffer for all threads."""

    pure = True

    def transform_example(self, example):
        self.kept = example[-1]
        return (*example[:-1], self.kept * 1)

    transform_batch = transform_example


class Asking(Positioned):
    pure = True
    transform_example = transform_batch = Positioned.transform_example


def test_check_stage_finds_a_false_declaration():
    """It reads in another order, in two threads, and without an epoch."""
    for stage in Pure, Sources, Generated, Plain:
        check_stage(stage, promises=['pure'])
    with pytest.raises(BrokenPromiseError, match='in another order'):
        check_stage(Impure, promises=['pure'])
    with pytest.raises(BrokenPromiseError, match='in two threads'):
        check_stage(Shared, promises=['pure'])
    with pytest.raises((BrokenPromiseError, AttributeError)):
        check_stage(Asking, promises=['pure'])


def test_attributes_of_a_class_that_cannot_be_called_are_not_hooks():
    """An attribute of another meaning does not disturb the stage."""
    class Named(Plain):
        num_items = start_epoch = kept_arguments = keeps = 7

    stage = Named(source())
    expected = take(Plain(source()).get_epoch_iterator())
    assert expected == take(stage.get_epoch_iterator())
    assert len(Plain(source())) == len(stage)
    restored = Named(source())
    restored.load_state_dict(stage.state_dict())


@pytest.mark.parametrize('is_of_class', [False, True])
def test_names_of_fuels_own_stages_are_free(is_of_class):
    """Ranks share a stage whatever its attributes are called."""
    names = ('can_plan', 'open_plan', 'resume_plan', 'count_items', 'has_plan',
             'split_size', 'can_go_back', 'is_sought', 'counts_all_items',
             'passes_items_on', 'draws_by_seed', 'warn_of_empty_epoch',
             'request_conversions', 'plan', 'order')

    class Named(Plain):
        def __init__(self, data_stream):
            super().__init__(data_stream)
            if not is_of_class:
                vars(self).update({name: f'my {name}' for name in names})

    if is_of_class:
        for name in names:
            setattr(Named, name, f'my {name}')
    def labels(kind, share=None):
        stage = Cast(kind(source()), 'float32', which_sources=('x',))
        return [batch[-1].tolist() for batch in (
            stage if share is None else stage.shard(*share))]

    batches = labels(Plain)
    assert batches == labels(Named)
    assert [batches[::2], batches[1::2]] == [
        labels(Named, (rank, 2)) for rank in range(2)]


class Doubled(Transformer):
    """Gives each item twice."""

    epoch_attributes = (*Transformer.epoch_attributes, 'item')
    keeps = frozenset({'dtype'})

    def __init__(self, data_stream, factor=1):
        super().__init__(data_stream, data_stream.produces_examples)
        self._given = factor

    def start_epoch(self):
        """Wait: others begin an epoch meanwhile."""
        self.item = None
        time.sleep(.01)
        super().start_epoch()

    def num_items(self):
        """Return twice as many."""
        return 2 * len(self.data_stream)

    def kept_arguments(self):
        """Return the factor under its name."""
        return {**super().kept_arguments(), 'factor': self._given}

    def get_data(self, request=None):
        """Return an item that was read before, or the next."""
        item, self.item = self.item, None
        if item is None:
            item = self.item = next(self.child_epoch_iterator)
        return item

    def get_leftover(self):
        """Return nothing: asked for after a second item alone."""


def test_hook_tells_the_number_of_items():
    """The stages above, the iterator and descriptions use it."""
    stage = Doubled(source())
    count = 2 * len(source())
    assert count == len(stage) == len(Plain(stage)) == len(list(stage))
    epoch = stage.get_epoch_iterator()
    next(epoch)
    assert count - 1 == len(epoch)
    assert f'{count} batches' in str(stage)


def test_hook_tells_what_a_state_must_fit():
    """An argument that is kept under another name."""
    state = Doubled(source(), 3).state_dict()
    Doubled(source(), 3).load_state_dict(state)
    with pytest.raises(StateMismatchError, match='factor was 3, but'):
        Doubled(source(), 4).load_state_dict(state)


def test_epochs_that_begin_in_several_threads_have_attributes_of_their_own():
    """They begin one after another."""
    stage = Doubled(source())
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(
            lambda _: take(stage.get_epoch_iterator()), range(8)))
    for items in found:
        assert items[::2] == items[1::2]
        assert list(range(COUNT)) == sorted(
            number for _, numbers in items[::2] for number in numbers)


def test_types_that_a_stage_says_it_keeps_are_known():
    """They are those of the stream below, as far as they are kept."""
    below = source().known_types()
    assert {'x', 'y'} == below.keys()
    assert Doubled(source()).known_types() == {
        name: known._replace(shape=None) for name, known in below.items()}


class Forgets(Stage):
    """Changes the data in place, and returns nothing."""

    def transform_batch(self, batch):
        batch[0][:] = 0


class PureForgets(Forgets):
    pure = True
    transform_batch = Forgets.transform_batch


class ForgetsData(Stage):
    def get_data(self, request=None):
        next(self.child_epoch_iterator)


@pytest.mark.parametrize('stage', [Forgets, PureForgets, ForgetsData])
@pytest.mark.parametrize('below', [False, True])
def test_none_from_a_stage_is_refused_for_each_item(stage, below):
    """None would be an item, or an error of the stage above."""
    stream = stage(source())
    epoch = (Plain(stream) if below else stream).get_epoch_iterator()
    for _ in range(4):
        with pytest.raises(TypeError, match=(
                rf'stage {stage.__name__} returned None, where a tuple of 2 '
                r"is expected, .* sources \('x', 'y'\)")):
            next(epoch)
    assert list(epoch) == []


@pytest.mark.parametrize('base', [
    Transformer, AgnosticTransformer, SourcewiseTransformer, Expand, Mapping,
    SeededTransformer])
def test_stage_that_calls_no_constructor_of_its_base_is_told_to(base):
    """The error comes when an epoch begins, if the stage then lacks an
    attribute."""
    class Unset(base):
        def __init__(self, stream):
            self.stream = stream

    with pytest.raises(AttributeError, match=(
            r"'Unset' object has no attribute .*: let __init__ of the class "
            r'call super\(\).__init__\(data_stream, \.\.\.\)')):
        next(iter(Unset(source())))


def test_error_in_a_property_of_a_stage_is_its_own():
    """It tells what is missing there."""
    class Broken(Plain):
        @property
        def data_stream(self):
            return self.dataset.stream

        @data_stream.setter
        def data_stream(self, stream):
            self.dataset = ()

    with pytest.raises(AttributeError,
                       match="'tuple' object has no attribute 'stream'$"):
        Broken(source()).start_epoch()
