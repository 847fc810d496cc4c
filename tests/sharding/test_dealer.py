"""One dealer gives ranks their share of orders, sought or read in order."""
from itertools import islice

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuel.datasets import IndexableDataset, IterableDataset
from fuel.epochs.pipeline import length_of, skip
from fuel.schemes import IterationScheme, SequentialExampleScheme
from fuel.schemes.requests import RequestIterator
from fuel.schemes.shard import Shard
from fuel.streams import DataStream
from fuel.transformers import Filter, Mapping, Mix, MultiProcessing

NUM_EXAMPLES = 200


class Sized(IterationScheme):
    """Batches of given sizes, read in order."""

    requests_examples = False

    def __init__(self, sizes):
        self.sizes = sizes

    def get_request_iterator(self):
        first = 0
        for size in self.sizes:
            yield list(range(first, first + size))
            first += size


class SizedRequests(RequestIterator):
    """The same batches, known by their numbers."""

    def __init__(self, sizes):
        self.sizes = sizes
        self.num_requests = len(sizes)

    def _request(self, position):
        first = sum(self.sizes[:position])
        return list(range(first, first + self.sizes[position]))


class Sought(Sized):
    def get_request_iterator(self):
        return SizedRequests(self.sizes)


def shared(scheme, rank, num_shards, **kwargs):
    """Return a rank's stream of numbers."""
    return DataStream(IndexableDataset(numpy.arange(NUM_EXAMPLES)),
                      iteration_scheme=scheme).shard(
                          rank, num_shards, **kwargs)


def lists(items):
    """Return the numbers of batches as lists."""
    return [batch.tolist() for batch, in items]


def numbers(count, first=0):
    """Return a stream of numbers that is read in order."""
    return DataStream(IterableDataset(range(first, first + count)))


def outcomes(stream, most=8):
    """Return items and names of errors, up to the end of an epoch."""
    epoch, found = stream.get_epoch_iterator(), []
    for _ in range(most):
        try:
            found.append(next(epoch)[0])
        except StopIteration:
            break
        except Exception as error:  # noqa: BLE001 (its name is wanted)
            found.append(type(error).__name__)
    return found


@given(st.lists(st.integers(1, 9), max_size=12), st.integers(1, 5),
       st.integers(0, 4), st.sampled_from([Sized, Sought]))
def test_split_batches_are_dealt_once_after_any_skip(
        sizes, num_shards, skipped, scheme):
    """Each example comes once, and skipped steps are those not read."""
    whole = [lists(shared(scheme(sizes), rank, num_shards, by='example'))
             for rank in range(num_shards)]
    steps = min(map(len, whole))
    dealt = sorted(number for batches in whole for batch in batches
                   for number in batch)
    assert dealt == list(range(sum(sizes)))
    if skipped > steps:
        return
    for rank, batches in enumerate(whole):
        epoch = shared(scheme(sizes), rank, num_shards,
                       by='example').get_epoch_iterator()
        skip(epoch, skipped)
        assert lists(epoch) == batches[skipped:]


def test_ranks_are_padded_behind_an_empty_batch():
    """Rows come from the first batch that has any."""
    assert lists(shared(Sized([0, 3, 2]), 0, 2, by='example',
                        uneven='pad')) == [[0], [0], [3]]


def test_ranks_cannot_be_padded_from_empty_batches():
    """An error says so; the loop would never end."""
    with pytest.raises(ValueError, match="uneven='pad'"):
        lists(shared(Sized([0, 0]), 0, 2, by='example', uneven='pad'))


@pytest.mark.parametrize('sizes', [[1] * 600, [5, 1] * 100])
@pytest.mark.parametrize('uneven', ['uneven', 'pad'])
def test_few_requests_of_other_ranks_are_kept(sizes, uneven):
    """An epoch of any length keeps as many as a short one."""
    requests = Sized(sizes).shard(
        2, 3, by='example', uneven=uneven).get_request_iterator()
    for _ in islice(requests, 150):
        pass
    assert len(requests.dealer.order._kept) <= 5


class FailsOnce:
    """An iterator over batches that fails once and goes on."""

    number, has_failed = 0, False

    def __iter__(self):
        return self

    def __next__(self):
        if self.number == 5 and not self.has_failed:
            self.has_failed = True
            raise OSError('the disk is slow')
        if self.number == 20:
            raise StopIteration
        self.number += 1
        return [self.number - 1]


class Failing(IterationScheme):
    requests_examples = False

    def get_request_iterator(self):
        return FailsOnce()


@pytest.mark.parametrize('rank', [0, 1])
def test_epoch_goes_on_where_requests_failed_while_they_were_skipped(rank):
    """The next round begins with the request that failed."""
    epoch = shared(Failing(), rank, 2).get_epoch_iterator()
    with pytest.raises(OSError, match='slow'):
        skip(epoch, 4)
    assert lists(islice(epoch, 2)) == [[5 + rank], [7 + rank]]


class Thousands(Mix):
    def get_data(self, request=None):
        return (super().get_data(request)[0] * 1000,)


class FailsAlways(Mix):
    def get_data(self, request=None):
        raise RuntimeError


def test_ranks_call_the_get_data_of_a_users_mixture_in_order():
    """Each rank gets its share of what one process gets."""
    def build(cls):
        return cls([numbers(6), numbers(6, 100)], seed=1)

    whole = outcomes(build(Mix), 12)
    for rank in range(2):
        assert outcomes(build(Thousands).shard(rank, 2)) == [
            1000 * item for item in whole[rank::2]]
        assert outcomes(build(FailsAlways).shard(rank, 2), 2) == [
            'RuntimeError'] * 2


@pytest.mark.parametrize('num_shards', [1, 2])
def test_each_rank_gets_the_error_of_a_mixture_that_cannot_go_on(num_shards):
    """None ends its epoch as if there were no more items."""
    def build():
        return Mix([numbers(6), Filter(numbers(3), lambda data: False)],
                   seed=1, stop='forever', epoch_size=9)

    for rank in range(num_shards):
        assert 'ValueError' in outcomes(build().shard(rank, num_shards))


def test_nothing_is_skipped_behind_the_end_of_a_rank():
    """A finished epoch has let go of its streams."""
    epoch = Mix([numbers(6), numbers(6, 100)], seed=1).shard(
        0, 2).get_epoch_iterator()
    assert len(list(epoch)) == 6
    skip(epoch, 2)
    assert list(epoch) == []


class Foreign:
    """A stream that has the members of StreamLike alone."""

    sources, produces_examples = ('numbers',), True

    def get_epoch_iterator(self, **kwargs):
        return iter([(0,), (1,)])

    def close(self):
        pass

    reset = next_epoch = close


def test_foreign_stream_means_something_else_by_sharding():
    """Only Fuel's streams take shares."""
    foreign = Foreign()
    foreign.sharding = Shard(0, 2)
    assert list(Mapping(foreign, lambda data: data)) == [(0,), (1,)]


class Three(MultiProcessing):
    def __len__(self):
        return 3


def test_length_of_workers_over_a_foreign_stream_is_asked():
    """The class of the workers' stage is Fuel's."""
    assert length_of(Three(Foreign())) == 3


def test_foreign_streams_are_mixed_for_ever():
    """Nothing is asked of iterators that are not Fuel's."""
    mixed = Mix([Foreign(), Foreign()], seed=1, stop='forever', epoch_size=9)
    assert len(list(mixed)) == 9


class Uncopied(IterationScheme):
    """A scheme that cannot be copied."""

    requests_examples = True

    def get_request_iterator(self):
        return iter([0, 1])

    def __deepcopy__(self, memo):
        raise TypeError('it holds a lock')

    __copy__ = __reduce_ex__ = __deepcopy__


def test_streams_that_cannot_be_copied_are_mixed_for_ever():
    """A record that nobody asks for must not fail."""
    streams = [DataStream(IndexableDataset([0, 1]),
                          iteration_scheme=Uncopied()) for _ in range(2)]
    mixed = Mix(streams, seed=1, stop='forever', epoch_size=9)
    assert len(list(mixed)) == 9


def failing_at(bad):
    """Return a function that fails for one number."""
    def fail(example):
        if example[0] == bad:
            raise ValueError
        return example
    return fail


@given(st.integers(1, 12), st.integers(1, 4), st.data(),
       st.sampled_from(['indices', 'in order']))
def test_errors_and_records_on_ranks_name_the_example_that_failed(
        count, num_shards, data, kind):
    """The last round may be short."""
    bad = data.draw(st.integers(0, count - 1))

    def build(**kwargs):
        stream = DataStream(
            IndexableDataset(numpy.arange(count)),
            iteration_scheme=SequentialExampleScheme(count),
            **kwargs) if kind == 'indices' else numbers(count)
        return Mapping(stream, failing_at(bad)).shard(
            bad % num_shards, num_shards)

    with pytest.raises(ValueError) as raised:  # noqa: PT011 (notes matter)
        list(build())
    assert f'example {bad} of the data set' in raised.value.__notes__
    if kind == 'indices' and bad % num_shards + num_shards < count:
        stream = build(on_error='skip', max_skipped=1)
        list(stream)
        assert [one.example for one in stream.skipped_examples().examples] == [
            bad]
