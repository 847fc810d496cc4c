"""The attribute `step_tokens` is that of the batch that was delivered."""
import pickle
import threading

import numpy
import pytest

from fuel.datasets import IndexableDataset
from fuel.exceptions import UnknownOrderError
from fuel.streams import DataStream
from fuel.transformers import (
    BalancedBatches, Batch, Cast, Chain, MarkExamples, Merge, Mix,
    MultiProcessing, MultiThreading, Padding, Take, Transformer, Unpack)
from fuel.transformers.shuffling import ShuffleBuffer

N = 26
LENGTHS = numpy.random.default_rng(8).integers(1, 40, N)
HINT = r"MarkExamples\(..., tokens='step_tokens'\)"


def balanced(**kwargs):
    """Return batches of rows, each as often as its length says."""
    return BalancedBatches(DataStream(
        IndexableDataset({'x': [numpy.full(length, row) for row, length
                                in enumerate(LENGTHS)]}),
        shuffle=True, seed=1), LENGTHS, batch_size=8, **kwargs)


def padded(stream):
    """Return a pipeline of one-to-one stages."""
    return Cast(Padding(stream), 'float32')


def marked(stream):
    """Return the tokens that MarkExamples writes into each batch."""
    return [data[-1][0] for data in MarkExamples(
        stream, 'marks', tokens='t')]


@pytest.mark.parametrize('build', [padded, lambda stream: MarkExamples(
    Cast(stream, 'float32')), lambda stream: stream])
@pytest.mark.parametrize('ranks', [None, 1, 2, 3])
def test_one_to_one_stages_have_the_tokens_of_their_input(build, ranks):
    """On each rank, over epochs, and after a pickle or a state."""
    for rank in range(ranks or 1):
        stream, other = build(balanced()), build(balanced())
        if ranks:
            stream, other = [one.shard(rank, ranks, uneven='uneven')
                             for one in (stream, other)]
        for _ in range(2):
            expected = marked(other)
            assert len(set(expected)) > 2
            assert [stream.step_tokens for _ in stream] == expected
        expected, epoch = marked(other), iter(stream)
        next(epoch)
        copy = pickle.loads(pickle.dumps(epoch))
        with pytest.raises(UnknownOrderError, match=HINT):
            _ = copy.data_stream.step_tokens
        assert [copy.data_stream.step_tokens for _ in copy] == expected[1:]
        resumed = build(balanced())
        if ranks:
            resumed = resumed.shard(rank, ranks, uneven='uneven')
        resumed.load_state_dict(stream.state_dict())
        assert [resumed.step_tokens for _ in resumed] == expected[1:]


def test_iterators_in_turns():
    """The tokens are those of the batch that was delivered last."""
    stream = padded(balanced())
    (*first, _), (*second, _) = [marked(one) for one in [balanced()] * 2]
    found = [(stream.step_tokens, stream.data_stream.step_tokens)[0]
             for epochs in [(iter(stream), iter(stream))]
             for _ in first for epoch in epochs if next(epoch)]
    assert found == [tokens for both in zip(first, second, strict=True)
                     for tokens in both]


ABOVE = {
    'MultiThreading': MultiThreading,
    'MultiThreading over Padding': lambda stream: MultiThreading(
        padded(stream)),
    'MultiProcessing': lambda stream: MultiProcessing(padded(stream)),
    'Batch': lambda stream: Batch(Unpack(stream), batch_size=3),
    'ShuffleBuffer': lambda stream: ShuffleBuffer(Unpack(stream), 5),
    'ShuffleBuffer over Chain': lambda stream: ShuffleBuffer(
        Unpack(Chain((padded(stream), padded(balanced())))), 3),
    'ShuffleBuffer over Mix': lambda stream: ShuffleBuffer(
        Unpack(Mix((padded(balanced()), padded(stream)), stop='forever')), 3),
    'Merge': lambda stream: Merge((stream, balanced()), ('a', 'b')),
    'Take': lambda stream: padded(Take(stream, 3)),
}


@pytest.mark.parametrize('name', ABOVE)
def test_they_are_refused_where_a_stage_may_read_ahead(name):
    """The error names the source that has them."""
    below = balanced()
    with ABOVE[name](below) as stream:
        epoch = iter(stream)
        for _ in range(3):
            next(epoch)
            with pytest.raises(UnknownOrderError, match=HINT):
                _ = below.step_tokens
            if isinstance(stream, Transformer):
                with pytest.raises(UnknownOrderError, match=HINT):
                    _ = stream.step_tokens
    # Read alone, they are known again.
    next(iter(below))
    assert below.step_tokens > 0


def test_another_thread_may_read_ahead():
    """So may the thread of a program, or of another library."""
    stream = padded(balanced())
    found = []
    epoch = iter(stream)

    def read():
        next(epoch)
        found.append(stream.step_tokens)

    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
    for one in stream, stream.data_stream.data_stream:
        with pytest.raises(UnknownOrderError, match='same thread'):
            _ = one.step_tokens
    next(epoch)
    assert [*found, stream.step_tokens] == marked(balanced())[:2]


def test_they_are_not_known_before_the_first_batch():
    """A sharded pipeline reads a copy of the stage."""
    below = balanced()
    ours = padded(below).shard(0, 2, uneven='uneven')
    for stream in below, ours:
        with pytest.raises(UnknownOrderError, match='outermost stream'):
            _ = stream.step_tokens
    next(iter(ours))
    assert ours.step_tokens == ours.data_stream.data_stream.step_tokens > 0
    with pytest.raises(UnknownOrderError, match=r'that shard\(\) returned'):
        _ = below.step_tokens


def test_other_pipelines_have_no_such_attribute():
    """A class of a user may have one of its own."""
    class Own(Transformer):
        """A stage that sets the attribute."""

        def __init__(self, data_stream):
            super().__init__(data_stream, False)
            self.step_tokens = 5

        def transform_batch(self, batch):
            """Return the batch."""
            return batch

    examples = DataStream(IndexableDataset({'x': numpy.arange(4)}),
                          batch_size=2)
    assert not hasattr(Cast(examples, 'float32'), 'step_tokens')
    assert Own(examples).step_tokens == 5
    assert Own(balanced()).step_tokens == 5
