"""MarkExamples names the tokens of the step that each row belongs to."""
import itertools
from functools import partial

import numpy
import pytest

from fuel.datasets import IndexableDataset
from fuel.exceptions import UnknownOrderError
from fuel.schemes import ConstantScheme, SequentialExampleScheme
from fuel.server import Server
from fuel.streams import DataStream, ServerDataStream
from fuel.testing import ReplayProcess, check_stream
from fuel.transformers import (
    BalancedBatches, Batch, Cache, Chain, Filter, Mapping, MarkExamples,
    Merge, Mix, MultiProcessing, MultiThreading, Rename, Transformer, Unpack)
from fuel.transformers.image import MixUp
from fuel.transformers.sequences import Pack
from fuel.transformers.shuffling import ShuffleBuffer

N = 26
LENGTHS = numpy.random.default_rng(8).integers(1, 40, N)
TRAINED = LENGTHS // 3


@pytest.fixture(scope='module')
def another_process():
    """Return the process in which saved positions are continued."""
    with ReplayProcess() as process:
        yield process


def rows(seed=1, **parts):
    """Return single examples with the numbers of their rows."""
    return DataStream(IndexableDataset({'x': numpy.arange(N), **parts}),
                      shuffle=True, seed=seed)


def balanced(size=8, seed=1, **kwargs):
    """Return batches of the numbers of rows, split by their lengths."""
    return BalancedBatches(rows(seed), LENGTHS, batch_size=size, **kwargs)


def half():
    """Return a rank's share of batches."""
    return balanced(accumulate=2).shard(1, 2)


def moved():
    """Return batches with rows of several steps."""
    return Batch(ShuffleBuffer(Unpack(balanced()), 5), batch_size=3)


@pytest.mark.parametrize('uneven', ['drop', 'pad', 'uneven'])
@pytest.mark.parametrize('trained', [None, TRAINED])
def test_the_tokens_are_those_of_all_ranks_and_rounds(uneven, trained):
    """A step's tokens are summed over what all ranks got in its rounds."""
    counts = LENGTHS if trained is None else trained
    for ranks, accumulate in itertools.product((1, 2, 3), (1, 2)):
        streams = [MarkExamples(balanced(
            accumulate=accumulate, trained=trained), tokens='step_tokens',
            ).shard(rank, ranks, uneven=uneven) for rank in range(ranks)]
        for _ in range(2):
            rounds = list(itertools.zip_longest(*streams))
            assert len(rounds) > 2
            for first in range(0, len(rounds), accumulate):
                items = [item for items in rounds[first:first + accumulate]
                         for item in items if item]
                total = sum(counts[rows].sum() for rows, _, _ in items)
                for rows, _, tokens in items:
                    assert tokens.dtype == numpy.int64
                    assert tokens.tolist() == [total] * len(rows)


def total_of(row, **kwargs):
    """Return the tokens of the step of a row, from a whole epoch."""
    (step,) = [rows for rows, in balanced(**kwargs) if row in rows]
    return LENGTHS[step].sum()


def is_odd(data):
    """Return whether Filter keeps a row."""
    return data[0] % 2 == 1


ABOVE = {
    'Unpack': Unpack,
    'Batch': lambda stream: Batch(Unpack(stream), batch_size=5),
    'ShuffleBuffer': lambda stream: Batch(
        ShuffleBuffer(Unpack(stream), 11), batch_size=3),
    'Cache': lambda stream: Cache(stream, ConstantScheme(3)),
    'Filter': lambda stream: Filter(Unpack(stream), is_odd),
    'Mapping': lambda stream: Mapping(Unpack(stream), tuple),
    'Chain': lambda stream: Unpack(Chain((stream,))),
    'Rename': lambda stream: Rename(stream, {'x': 'y'}),
    'MultiThreading': MultiThreading,
    'MultiProcessing': lambda stream: MultiProcessing(Unpack(stream)),
    'shares': lambda stream: Batch(
        Unpack(stream), batch_size=4).shard(1, 2, uneven='uneven'),
}


@pytest.mark.parametrize('name', ABOVE)
def test_the_tokens_move_with_the_rows(name):
    """They are the same if they are marked below the stage or above it."""
    expected = {row: total_of(row) for row in range(N)}
    with ABOVE[name](MarkExamples(balanced(), tokens='t')) as stream:
        below = list(map(list, stream))
    with MarkExamples(ABOVE[name](balanced()), tokens='t') as stream:
        above = list(map(list, stream))
    assert len(above) == len(below) > 2
    for items in zip(above, below, strict=True):
        for rows, example, tokens in items:
            assert numpy.shape(rows) == numpy.shape(tokens)
            assert numpy.reshape(rows, (-1, 1)).tolist() == (
                example[..., 1:].reshape(-1, 1).tolist())
            assert numpy.ravel(tokens).tolist() == [
                expected[row] for row in numpy.ravel(rows)]


def test_a_server_sends_the_tokens():
    """They are a source like any other there."""
    expected = [tokens.tolist() for *_, tokens in MarkExamples(
        balanced(), tokens='t')]
    with Server(MarkExamples(balanced(), tokens='t'), port=0) as server:
        client = ServerDataStream(('x', 'example', 't'), port=server.port)
        assert expected == [tokens.tolist() for *_, tokens in client]


def test_streams_that_are_mixed_and_merged_have_their_own_tokens():
    """With those of the stream that `of` names, also beside other merges."""
    sizes = {'a': 8, 'b': 5}

    def build(of):
        return Unpack(balanced(sizes[of], ord(of)))

    for of in 'ab':
        merged, again = [Merge((rows(), build('a'), build('b')), tuple(
            'cab')) for _ in range(2)]
        for stream in merged, Batch(ShuffleBuffer(again, 5), batch_size=4):
            marked = MarkExamples(stream, of=of, tokens='t')
            for item in marked:
                data = dict(zip(marked.sources, item, strict=True))
                assert numpy.ravel(data['t']).tolist() == [
                    total_of(row, size=sizes[of], seed=ord(of))
                    for row in numpy.ravel(data[of])]
    mixed = Mix([build('a'), build('b')], stop='last')
    for item in MarkExamples(Batch(mixed, batch_size=4), tokens='t'):
        for row, (number, _), count in zip(*item, strict=True):
            of = 'ab'[number]
            assert count == total_of(row, size=sizes[of], seed=ord(of))


@pytest.mark.parametrize('build', [balanced, half, moved])
def test_tokens_go_on_from_each_state_in_another_process(
        build, another_process):
    """All promises of streams are kept."""
    check_stream(partial(_marked, build), another_process=another_process)


def _marked(build):
    return MarkExamples(build(), tokens='t')


class Reversed(Transformer):
    """A stage that knows its examples, but not their steps."""

    keeps_rows = True

    def source_examples(self, requests):
        """Return the rows of the data set only."""
        found = super().source_examples(requests)
        return type(found)(found.indices)

    def transform_batch(self, batch):
        """Return the batch."""
        return batch


def test_tokens_are_refused_without_steps():
    """The text says where to put the stage, before anything is read."""
    examples = rows()
    with pytest.raises(ValueError, match='none above DataStream: put Mark'):
        MarkExamples(Batch(examples, batch_size=2), tokens='t')
    with pytest.raises(ValueError, match='none above DataStream'):
        MarkExamples(Mix((Unpack(balanced()), examples)), tokens='t')
    with pytest.raises(ValueError, match='none above DataStream'):
        MarkExamples(Merge((Unpack(balanced()), examples), ('a', 'b')),
                     of='b', tokens='t')
    with pytest.raises(ValueError, match='between BalancedBatches and Pack'):
        MarkExamples(Pack(Mapping(Unpack(balanced()), tuple), 9), tokens='t')
    with pytest.raises(ValueError, match='tokens must be a new name'):
        MarkExamples(balanced(), tokens='example')
    with pytest.raises(UnknownOrderError, match='over BalancedBatches'):
        next(iter(MarkExamples(Reversed(balanced(), False), tokens='t')))


def test_mixed_rows_have_the_tokens_of_their_own_step():
    """Not those of the partner, which are the same in the batch of a step."""
    pairs = BalancedBatches(DataStream(IndexableDataset(
        {'x': numpy.zeros((N, 2), 'float32'), 'y': numpy.arange(N)}),
        iteration_scheme=SequentialExampleScheme(N)), LENGTHS, batch_size=8)
    mixed = MixUp(pairs, N, target_source='y', seed=1)
    assert [LENGTHS[first:first + 8].sum() for first in range(0, N, 8)] == [
        *map(set.pop, [set(tokens.tolist()) for *_, tokens in MarkExamples(
            mixed, partner='p', tokens='t')])]
