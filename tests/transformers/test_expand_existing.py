"""The stages that stand on Expand do what they did before."""
import json

import numpy
import pytest

from fuel.datasets import IndexableDataset, IterableDataset
from fuel.schemes import SequentialExampleScheme
from fuel.streams import DataStream
from fuel.transformers import (
    Expand, Mapping, SeededTransformer, Transformer, Unpack)
from fuel.transformers.sequences import Chunk, NGrams, Window


def numbers(count=6):
    """Return a stream of examples."""
    return DataStream(IndexableDataset(numpy.arange(count) * 10),
                      iteration_scheme=SequentialExampleScheme(count))


def outcomes(stream, most=20):
    """Return items and names of errors, up to the end of an epoch."""
    epoch, found = stream.get_epoch_iterator(), []
    for _ in range(most):
        try:
            found.append(next(epoch))
        except StopIteration:
            break
        except (ValueError, KeyboardInterrupt) as error:
            found.append(type(error).__name__)
    return found


class Handing:
    """A mixin that hands on what the stage keeps."""

    def get_leftover(self):
        return super().get_leftover()

    def set_leftover(self, leftover):
        super().set_leftover(leftover)


class HandingUnpack(Handing, Unpack):
    pass


def test_mixin_in_front_may_hand_on_what_a_stage_keeps():
    """A user's class need not know that the stage stands on Expand."""
    def build():
        return HandingUnpack(DataStream(
            IndexableDataset(numpy.arange(6)), batch_size=3))

    stream = build()
    epoch = stream.get_epoch_iterator()
    next(epoch)
    other = build()
    other.load_state_dict(stream.state_dict())
    assert list(other) == list(epoch)


class Tails(NGrams):
    """Bigrams in the manner of Fuel 0.2.0, and the last item alone."""

    def get_data(self, request=None):
        while self.index >= len(self.sentence):
            self.sentence, = next(self.child_epoch_iterator)
            self.index = 0
        found = self.sentence[self.index:self.index + 2]
        self.index += 1
        return found, self.index


def test_index_of_a_window_is_what_was_assigned():
    """It may lie beyond the last window."""
    stream = Tails(2, DataStream(IterableDataset([[0, 1, 2], [10, 11]])))
    assert list(stream) == [
        ([0, 1], 1), ([1, 2], 2), ([2], 3), ([10, 11], 1), ([11], 2)]
    window = Window(0, 2, 2, False, DataStream(IterableDataset([[0, 1]])))
    for index in (99, -1):
        window.sentence, window.index = [0, 1, 2], index
        assert window.index == index


class Breaking(list):
    """A sequence that fails, or is interrupted, where it is cut at 1."""

    error = ValueError

    def __getitem__(self, place):
        if isinstance(place, slice) and place.start == 1:
            raise self.error
        return super().__getitem__(place)


class Interrupted(Breaking):
    times = 0

    def __getitem__(self, place):
        if isinstance(place, slice) and place.start == 1:
            self.times += 1
            if self.times == 1:
                raise KeyboardInterrupt
        return list.__getitem__(self, place)


def test_chunks_behind_one_that_fails_come():
    """The error stands in the place of one chunk."""
    stream = Chunk(DataStream(IterableDataset(
        [Breaking([0, 1, 2]), [10]])), 1)
    assert outcomes(stream) == [([0],), 'ValueError', ([2],), ([10],)]


def test_chunk_that_was_interrupted_comes_next():
    """Ctrl-C loses none."""
    stream = Chunk(DataStream(IterableDataset(
        [Interrupted([0, 1, 2]), [10]])), 1)
    assert outcomes(stream) == [
        ([0],), 'KeyboardInterrupt', ([1],), ([2],), ([10],)]


class Stopped(Expand):
    """A generator that is interrupted once."""

    times = 0

    def expand(self, item):
        yield item
        self.times += 1
        if self.times == 1:
            raise KeyboardInterrupt
        yield item


def test_generator_that_was_interrupted_ends_its_item():
    """The next item comes, and a state goes on with it, too."""
    stream = Stopped(DataStream(IterableDataset(range(3))))
    epoch = stream.get_epoch_iterator()
    assert next(epoch) == (0,)
    with pytest.raises(KeyboardInterrupt):
        next(epoch)
    other = Stopped(DataStream(IterableDataset(range(3))))
    other.times = 1
    other.load_state_dict(stream.state_dict())
    assert list(other) == list(epoch) == [(1,), (1,), (2,), (2,)]


def test_sequence_that_cannot_be_cut_is_left_out_whole():
    """None of its chunks is delivered with ``on_error='skip'``."""
    dataset = IndexableDataset(
        {'x': [[0, 1], Breaking([2, 3, 4]), [5]]})
    stream = Chunk(DataStream(
        dataset, iteration_scheme=SequentialExampleScheme(3),
        on_error='skip'), 1)
    assert outcomes(stream) == [([0],), ([1],), ([5],)]
    assert stream.skipped_examples().count == 1


class Spoilt(Expand):
    """Makes three pieces; one of a ten is not a tuple."""

    def expand(self, item):
        yield item
        yield item if item[0] != 10 else 10
        yield item


def test_item_with_a_piece_that_is_not_a_tuple_is_left_out_whole():
    """The piece that came before it is left out, too."""
    stream = Spoilt(DataStream(
        IndexableDataset(numpy.arange(3) * 10),
        iteration_scheme=SequentialExampleScheme(3), on_error='skip'))
    assert [int(item) for item, in stream] == [0, 0, 0, 20, 20, 20]


class Twice(Expand):
    """Says how many pieces there are by a number of NumPy."""

    count = numpy.int64(2)

    def num_pieces(self, item=None):
        return self.count

    def expand(self, item):
        return [item, item]


def test_number_of_pieces_may_be_one_of_numpy():
    """A state is plain data on each rank."""
    stream = Twice(numbers()).shard(1, 2)
    next(stream.get_epoch_iterator())
    json.dumps(stream.state_dict())


@pytest.mark.parametrize('count', [-1, 2.5])
def test_number_of_pieces_that_is_not_a_count_is_refused(count):
    """The error names the method and the class."""
    stream = Twice(numbers())
    stream.count = count
    with pytest.raises((TypeError, ValueError), match='num_pieces of Twice'):
        len(stream)


class Counting(Transformer):
    """Keeps a number, which is not a dict."""

    def get_leftover(self):
        return 7

    def set_leftover(self, leftover):
        pass


class CountingTwice(Twice, Counting):
    pass


def test_leftover_behind_expand_must_be_a_dict():
    """The error says so where the state is saved."""
    stream = CountingTwice(numbers())
    next(stream.get_epoch_iterator())
    with pytest.raises(TypeError, match='a dict or None'):
        stream.state_dict()


class Drawing(Expand, SeededTransformer):
    """Draws a number for each item."""

    def expand(self, item):
        yield (int(item[0]), float(self.generator().random()))

    def _get_sources(self):
        return 'x', 'drawn'


def without_tens(item):
    """Fail for one example."""
    if item[0] == 10:
        raise ValueError
    return item


@pytest.mark.parametrize('num_shards', [1, 2])
def test_draws_of_items_are_those_without_an_example_left_out_below(
        num_shards):
    """They are on any number of ranks."""
    def build(on_error):
        return Drawing(Mapping(DataStream(
            IndexableDataset(numpy.arange(5) * 10),
            iteration_scheme=SequentialExampleScheme(5), on_error=on_error),
            without_tens if on_error == 'skip' else tuple), seed=1)

    drawn = dict(build('raise'))
    for rank in range(num_shards):
        stream = build('skip').shard(rank, num_shards)
        found = list(stream)
        assert found
        assert all(drawn[number] == value for number, value in found)


def test_seeded_stage_before_expand_is_refused():
    """A state would lack what Expand keeps."""
    with pytest.raises(TypeError, match='Expand must come before'):
        type('Wrong', (SeededTransformer, Expand), {})
