"""Loops over streams, lengths of epochs, and short ways to build one."""
import importlib
import operator
import subprocess
import sys

import numpy
import pytest

from fuel.datasets import (
    HDF5Dataset, IndexableDataset, IterableDataset, Windows)
from fuel.iterator import DataIterator
from fuel.schemes import (
    ConstantScheme,
    IterationScheme,
    SequentialScheme,
    ShuffledExampleScheme,
    ShuffledScheme,
)
from fuel.streams import AbstractDataStream, DataStream
from fuel.transformers import Batch, Cast, Filter, Mapping, Transformer
from fuel.transformers.sequences import NGrams

N = 7


def build(**kwargs):
    """Return a stream of batches."""
    kwargs = kwargs or {'batch_size': 3}
    return DataStream(IndexableDataset(list(range(N))), **kwargs)


def test_each_loop_is_a_new_epoch():
    """The order is that of `get_epoch_iterator`, epoch by epoch."""
    stream = build(batch_size=3, shuffle=True)
    reference = build(iteration_scheme=ShuffledScheme(N, 3))
    for _ in range(3):
        assert list(reference.get_epoch_iterator()) == list(stream)


def test_loops_nest_and_may_be_left():
    """An inner loop does not disturb the outer one."""
    stream = build()
    seen = []
    for outer, in stream:
        for inner, in stream:
            seen.append((outer[0], inner[0]))
            if inner[0] == 3:
                break
    assert [(start, inner) for start in (0, 3, 6) for inner in (0, 3)] == seen
    assert 3 == len(list(stream))


def test_loop_after_a_state_is_the_rest_of_its_epoch():
    """The loop after that is a whole epoch."""
    stream = build(batch_size=2, shuffle=True)
    iterator = iter(stream)
    next(iterator)
    restored = build(batch_size=2, shuffle=True)
    restored.load_state_dict(stream.state_dict())
    assert list(iterator) == list(restored)
    assert 4 == len(list(restored))


def test_stages_are_looped_over():
    """A stage is a stream."""
    assert [(3,), (4,)] == list(
        DataStream(IterableDataset([1, 2, 3, 4])).apply(
            Filter, lambda data: data[0] > 2))


def test_users_own_loop_wins():
    """A stream of a script's may have had one."""
    class Own(DataStream):
        def __iter__(self):
            return iter('own')

    assert ['o', 'w', 'n'] == list(Own(IndexableDataset([1])))


def test_iterator_knows_what_is_left():
    """Progress bars show a total; it is true at its end as well."""
    iterator = iter(build().apply(Mapping, lambda data: data))
    for left in (3, 2, 1, 0):
        assert left == len(iterator) == operator.length_hint(iterator)
        assert iterator
        next(iterator, None)
    assert 0 == len(iterator)


@pytest.mark.parametrize('by', ['batch', 'example'])
def test_iterator_of_a_rank_knows_what_is_left(by):
    """It knows that of its own batches, wherever those of the others are."""
    stream = DataStream(IndexableDataset(list(range(24))), batch_size=4)
    for rank in range(3):
        iterator = iter(stream.shard(rank, 3, by=by))
        left = [len(iterator) for _ in iterator]
        assert left == list(range(len(left)))[::-1]


def test_length_of_a_resumed_epoch_is_that_of_the_rest():
    """A bar that is made then has that total."""
    stream = build()
    next(iter(stream))
    iterator = iter(stream)
    next(iterator)
    restored = build()
    restored.load_state_dict(iterator.state_dict())
    assert 2 == len(iter(restored))


class EveryOther(SequentialScheme):
    """A user's scheme, with requests of its own."""

    def get_request_iterator(self):
        """Return every other batch."""
        return iter(list(super().get_request_iterator())[::2])


class Counted(IterationScheme):
    """One that says how many there are."""

    requests_examples = False
    num_requests = 2

    def get_request_iterator(self):
        """Return two batches."""
        return iter([[0], [1]])


@pytest.mark.parametrize('iterator', [
    lambda: iter(DataStream(IterableDataset(iter('ab')))),
    lambda: iter(build().apply(Filter, lambda data: True)),
    lambda: iter(build(iteration_scheme=EveryOther(N, 2))),
    lambda: DataIterator(build(), iter([[1]]))],
    ids=['iterable', 'filter', 'scheme', 'requests'])
def test_unknown_length_is_a_type_error(iterator):
    """It is not a wrong number."""
    iterator = iterator()
    with pytest.raises(TypeError, match='is not known before it is over'):
        len(iterator)
    assert 5 == operator.length_hint(iterator, 5)
    assert iterator
    list(iterator)
    assert 0 == len(iterator)


def test_users_scheme_may_know_its_length():
    """`num_requests` gives it, beside its requests."""
    assert 2 == len(build(iteration_scheme=Counted()))
    scheme = Counted()
    scheme.num_requests = 5
    assert 5 == len(build(iteration_scheme=scheme))
    with pytest.raises(TypeError):
        len(build(iteration_scheme=EveryOther(N, 2)))


def test_iterator_of_unknown_length_makes_a_data_set():
    """Its length is NaN, as that of any iterator."""
    stream = DataStream(IterableDataset(iter('ab')))
    dataset = IterableDataset(iter(stream))
    assert numpy.isnan(dataset.num_examples)
    assert [(('a',),), (('b',),)] == list(dataset)


@pytest.mark.parametrize('arguments, scheme', [
    ({'batch_size': 3}, SequentialScheme(N, 3)),
    ({'batch_size': 3, 'shuffle': True}, ShuffledScheme(N, 3)),
    ({'shuffle': True}, ShuffledExampleScheme(N)),
    ({'batch_size': 3, 'drop_last': True}, SequentialScheme(6, 3)),
    ({'batch_size': 3, 'shuffle': True, 'drop_last': True},
     ShuffledScheme(N, 3, drop_last=True))], ids=repr)
def test_short_arguments_stand_for_a_scheme(arguments, scheme):
    """The same batches, and states that fit each other."""
    stream, reference = build(**arguments), build(iteration_scheme=scheme)
    assert len(reference) == len(stream)
    for _ in range(2):
        assert list(reference) == list(stream)


def test_drop_last_leaves_out_other_examples_each_epoch():
    """The order is shuffled; every batch is full, from the compiled reader and
    from requests alike."""
    scheme = ShuffledScheme(N, 3, drop_last=True)
    stream = DataStream(IndexableDataset(numpy.arange(N)),
                        iteration_scheme=scheme)
    again = ShuffledScheme(N, 3, drop_last=True)
    missing = set()
    for _ in range(8):
        batches = [batch.tolist() for batch, in stream]
        assert list(again.get_request_iterator()) == batches
        assert [3, 3] == [len(batch) for batch in batches]
        missing |= set(range(N)) - set(sum(batches, []))
    assert len(missing) > 2
    full = ShuffledScheme(6, 3, drop_last=True)
    assert 2 == len(list(full.get_request_iterator()))
    with pytest.warns(UserWarning, match='has no batch'):
        assert [] == list(ShuffledScheme(
            2, 3, drop_last=True).get_request_iterator())
    assert [[5, 4], [3, 2]] == list(SequentialScheme(
        iter([5, 4, 3, 2, 1]), 2, drop_last=True).get_request_iterator())


@pytest.mark.parametrize('dataset, arguments, text', [
    (IterableDataset([1]), {'batch_size': 4},
     r'Batch\(DataStream\(dataset\), iteration_scheme=ConstantScheme\(4\)'),
    (IterableDataset([1]), {'shuffle': True}, 'ShuffleBuffer'),
    (IndexableDataset([1]), {'drop_last': True}, 'needs batch_size'),
    (IndexableDataset([1]), {
        'batch_size': 1, 'iteration_scheme': SequentialScheme(1, 1)},
     'not both'),
    (IndexableDataset([1]), {'batch_size': 0}, 'batch_size')], ids=[
        'sequential', 'shuffle', 'drop', 'both', 'zero'])
def test_short_arguments_that_do_not_fit(dataset, arguments, text):
    """The text says what to write."""
    with pytest.raises(ValueError, match=text):
        DataStream(dataset, **arguments)


def test_apply_builds_a_stage_on_the_stream():
    """The stream need not be the first argument; a function works, too."""
    stream = build()
    cast = stream.apply(Cast, 'float32', which_sources='data')
    assert type(cast) is Cast
    assert cast.data_stream is stream
    sentences = DataStream(IterableDataset([[1, 2, 3]]))
    assert [([1, 2], 3)] == list(sentences.apply(NGrams, 2))
    assert (stream, 5) == stream.apply(lambda given, more: (given, more), 5)
    batches = DataStream(IterableDataset([1, 2])).apply(
        Batch, iteration_scheme=ConstantScheme(2))
    assert 1 == len(list(batches))


def test_apply_passes_the_stream_where_a_users_stage_takes_it():
    """First, whatever it is called; elsewhere by its name."""
    class First(Transformer):
        def __init__(self, stream, *args, **kwargs):
            super().__init__(stream, stream.produces_examples)

    class Later(Transformer):
        def __init__(self, factor, data_stream):
            super().__init__(data_stream, data_stream.produces_examples)
            self.factor = factor

    stream = build()
    assert stream.apply(First, 1).data_stream is stream
    later = stream.apply(Later, 3)
    assert (stream, 3) == (later.data_stream, later.factor)


def test_apply_passes_the_stream_to_a_stage_that_forwards_arguments():
    """The nearest base with arguments of its own takes it."""
    class Forwarding(NGrams):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)

    class ByName(Cast):
        def __init__(self, **kwargs):
            super().__init__(dtype='float32', **kwargs)

    class Renaming(NGrams):
        def __init__(self, sentences, *args):
            super().__init__(2, sentences, *args)

    sentences = DataStream(IterableDataset([[1, 2, 3]]))
    assert [([1, 2], 3)] == list(sentences.apply(Forwarding, 2))
    assert [([1, 2], 3)] == list(sentences.apply(Renaming))
    assert sentences is sentences.apply(ByName).data_stream


def test_no_method_is_named_after_a_stage():
    """Names such as `scale` are attributes of stages."""
    stream = build()
    for name in ('batch', 'scale', 'shift', 'cache', 'shuffle', 'map'):
        assert not hasattr(AbstractDataStream, name)
        assert not hasattr(stream, name)
        assert name not in dir(stream)


@pytest.mark.parametrize('module', [
    'fuel.datasets', 'fuel.streams', 'fuel.transformers'])
def test_completion_shows_what_is_loaded_on_demand(module):
    """The process is new, and nothing is loaded yet."""
    code = (f'import {module} as m; '
            'print(set(m.__all__) <= set(dir(m)), len(m.__all__))')
    printed = subprocess.run(
        [sys.executable, '-c', code], capture_output=True, text=True,
        check=True, timeout=60).stdout.split()
    assert ['True', str(len(importlib.import_module(
        module).__all__))] == printed


class WithoutConstructor(IterationScheme):
    """A scheme that takes no arguments."""

    requests_examples = True

    def get_request_iterator(self):
        return iter([])


@pytest.mark.parametrize('mistake, text', [
    (lambda: build(batchsize=3),
     r"DataStream takes no argument 'batchsize': did you mean 'batch_size'"),
    (lambda: Cast(build(), 'f4', which_source='data'),
     r"Cast takes no argument 'which_source': did you mean 'which_sources'"),
    (lambda: ShuffledScheme(4, 2, sorted_index=True),
     "ShuffledScheme takes no argument 'sorted_index': did you mean 'so"),
    (lambda: SequentialScheme(4, 2, shufle=1),
     "SequentialScheme takes no argument 'shufle'"),
    (lambda: ShuffledScheme(4, batchsize=2),
     "ShuffledScheme takes no argument 'batchsize': did you mean 'batch_s"),
    (lambda: ShuffledScheme(splits=3),
     "ShuffledScheme takes no argument 'splits': it takes examples, batch_s"),
    (lambda: ShuffledScheme(4),
     r"ShuffledScheme.* missing 1 required .* 'batch_size'$"),
    (lambda: WithoutConstructor(4), r'WithoutConstructor\(\) takes no arg'),
    (lambda: WithoutConstructor(size=4), 'WithoutConstructor.* takes no arg'),
    (lambda: Cast(stream=build(), dtype='f4'),
     "Cast takes no argument 'stream': did you mean 'data_stream'"),
    (lambda: IndexableDataset(indexable=[1]),
     "IndexableDataset takes no argument 'indexable': did you mean 'indexab"),
    (lambda: Windows(IndexableDataset([1]), 1, frame_stack=2),
     'mask_source, sources, axis_labels$'),
    (lambda: Windows(IndexableDataset([1]), 1, which_sets=('train',)),
     r"Windows takes no argument 'which_sets': it takes dataset"),
    (lambda: HDF5Dataset('a.h5', num_rows=3),
     r'HDF5Dataset takes no argument .*: it takes files.*follow, sources, a'),
    (lambda: DataStream(IndexableDataset([1]), SequentialScheme(1, 1)),
     r'DataStream\(dataset, iteration_scheme=SequentialScheme\(\.\.\.\)\)'),
    (lambda: DataStream(IndexableDataset([1]), 128),
     r'DataStream\(dataset, batch_size=128\)'),
    (lambda: build(iteration_scheme=6), r'DataStream\(dataset, batch_size=6'),
    (lambda: build(iteration_scheme=SequentialScheme),
     r'make one, SequentialScheme\(\.\.\.\)'),
    (lambda: build(iteration_scheme='shuffled'), "got 'shuffled'")])
def test_mistakes_when_a_stream_is_built(mistake, text):
    """The text has the user's names, and the remedy."""
    with pytest.raises(TypeError, match=text):
        mistake()


def test_other_base_of_a_users_class_gets_its_arguments():
    """Any class of several bases passes them on."""
    class Numbers(IterationScheme, tuple):
        requests_examples = True

        def get_request_iterator(self):
            return iter(self)

    assert [3, 1] == list(Numbers([3, 1]).get_request_iterator())
