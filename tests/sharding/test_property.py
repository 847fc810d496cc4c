"""Ranks share an order exactly, whatever it is and however many they are.

The oracle is the order itself, read by one stream that is not sharded.
"""
import itertools

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support import sharded_pipelines as pipelines

from fuel.schemes import IterationScheme
from fuel.streams import DataStream
from fuel.transformers import Mix, MultiProcessing

CASES = {
    'name': st.sampled_from(sorted(pipelines.PIPELINES)),
    'count': st.integers(1, 30),
    'size': st.integers(1, 8),
    'before': st.integers(1, 8),
    'after': st.integers(0, 8),
    'epoch': st.integers(0, 1),
    'step': st.integers(0, 30),
    'by': st.sampled_from(['batch', 'example']),
    'uneven': st.sampled_from(['uneven', 'drop', 'pad']),
}


def possible(name, size, before, after, by, uneven):
    """Return what of a case must be another for a pipeline to be shared."""
    if by == 'example':
        size = max(size, before, after, 5)
        if not pipelines.PIPELINES[name][1]:
            by = 'batch'
        elif name == 'Cache':
            before, after = min(before, 5), min(after, 5)
    if name in pipelines.ONLY_FORWARD and uneven == 'pad':
        uneven = 'drop'
    return size, before, after, by, uneven


def check(name, count, size, before, after, epoch, step, by, uneven):
    """Save on `before` ranks and go on on `after`; 0: not sharded."""
    size, before, after, by, uneven = possible(
        name, size, before, after, by, uneven)
    plain = pipelines.build(name, count, size)
    orders = [(pipelines.rows if by == 'example' else pipelines.items)(plain)
              for _ in range(epoch + 2)]
    order, following = orders[epoch:]
    def build():
        return pipelines.build(name, count, size)

    if by == 'example':
        check_split(build, order, following, before, after, epoch, step,
                    uneven, pipelines.full_size(name, size))
    else:
        check_dealt(build, order, following, before, after, epoch, step,
                    uneven, name in pipelines.NOISY)


def streams(build, ranks, epoch=0, state=None, **how):
    """Yield the stream of each rank, before an epoch or at a state."""
    for rank in range(ranks or 1):
        stream = build()
        if ranks:
            stream = stream.shard(rank, ranks, **how)
        for _ in range(epoch):
            list(stream)
        if state is not None:
            stream.load_state_dict(state)
        yield stream


def saved(build, ranks, epoch, step, read, **how):
    """Return what ranks read of an epoch, and the state they then have."""
    seen, states = [], []
    for stream in streams(build, ranks, epoch, **how):
        iterator = stream.get_epoch_iterator()
        seen.append(read(iterator, step))
        states.append(pipelines.through_json(stream.state_dict()))
    assert all(state == states[0] for state in states)
    return seen, states[0]


def check_dealt(build, order, following, before, after, epoch, step, uneven,
                is_noisy):
    """Every n-th item is a rank's; the rest of any epoch goes on."""
    total = len(order)
    got = [pipelines.items(stream) for stream in streams(
        build, before, epoch, uneven=uneven)]
    if uneven == 'uneven':
        assert [order[rank::before] for rank in range(before)] == got
    elif uneven == 'drop':
        rounds = total // before
        assert [order[rank:rounds * before:before]
                for rank in range(before)] == got
    else:
        rounds = -(-total // before)
        padded = [order[place % total] for place in range(rounds * before)]
        expected = [padded[rank::before] for rank in range(before)]
        if is_noisy:
            # A repeated item gets new draws.
            rounds = total // before
            got = [items[:rounds] for items in got]
            expected = [items[:rounds] for items in expected]
        assert expected == got
    step = min(step, max(0, total - 1) // before)
    seen, state = saved(build, before, epoch, step, pipelines.items)
    assert [order[rank:step * before:before]
            for rank in range(before)] == seen
    rest = order[step * before:]
    for number, stream in enumerate(streams(build, after, state=state)):
        assert rest[number::after or 1] == pipelines.items(stream)
        assert following[number::after or 1] == pipelines.items(stream)


def check_split(build, order, following, before, after, epoch, step, uneven,
                size=None):
    """Batches are split over ranks which are in step, and go on so.

    `size`: how many rows a whole batch has; None if that is not known.
    """
    got = [pipelines.rows(stream) for stream in streams(
        build, before, epoch, by='example', uneven=uneven)]
    if uneven == 'pad':
        joined = [sum(parts, []) for parts in zip(*got, strict=True)]
        assert [max(len(batch), size or before)
                for batch in order] == list(map(len, joined))
        assert order == [padded[:len(batch)] for padded, batch in zip(
            joined, order, strict=True)]
    else:
        check_steps(got, order, uneven, size or before)
    how = {'by': 'example', 'uneven': 'uneven'}
    # Short batches make a step of their own only where they are padded.
    step = min(step, *[len(pipelines.rows(stream)) for stream in streams(
        build, before, epoch, **how)])
    seen, state = saved(build, before, epoch, step, pipelines.rows, **how)
    place = check_steps(seen, order, 'stopped')
    rests = [(pipelines.rows(stream), pipelines.rows(stream))
             for stream in streams(build, after, state=state, **how)]
    for expected, parts in zip(
            (order[place:], following), zip(*rests, strict=True),
            strict=True):
        check_steps(parts, expected, 'uneven')


def check_steps(got, order, uneven, size=0):
    """Each step deals whole batches; a rank has rows of one of them.

    Returns how many batches were dealt.
    """
    count, place = len(got), 0
    steps = list(itertools.zip_longest(*got, fillvalue=[]))
    for number, parts in enumerate(steps):
        rows, first = sum(parts, []), place
        while sum(map(len, order[first:place])) < len(rows) and (
                place < len(order)):
            place += 1
        batches = order[first:place]
        assert rows == sum(batches, [])
        if uneven != 'uneven' or number + 1 < len(steps):
            assert all(parts)
        assert all(any(is_part(part, batch) for batch in batches)
                   for part in parts)
        assert all(len(batch) < count for batch in batches[:-1])
        if len(batches) == 1 and len(rows) >= count:
            assert share(rows, count) == list(parts)
    if uneven == 'uneven':
        assert place == len(order)
    elif uneven == 'drop' and place < len(order):
        *left, last = order[place:]
        assert len(last) < size
        assert all(len(batch) < count for batch in left)
    return place


def is_part(rows, batch):
    """Tell whether rows follow each other in a batch."""
    return any(rows == batch[start:start + len(rows)]
               for start in range(len(batch)))


def share(rows, count):
    """Return each rank's part of a batch."""
    return [rows[rank * len(rows) // count:(rank + 1) * len(rows) // count]
            for rank in range(count)]


@given(**CASES)
@settings(max_examples=60)
def test_each_item_comes_once_on_any_number_of_ranks(**case):
    """A state of any step on some ranks is taken up on others."""
    check(**case)


@pytest.mark.full
@pytest.mark.timeout(3600)
@given(**CASES)
@settings(max_examples=10000)
def test_each_item_comes_once_in_ten_thousand_cases(**case):
    """Ten thousand random cases give each item once."""
    check(**case)


def check_left(name, count, size, before, after, epoch, step, by, uneven):
    """Compare the length of what is left with what is read."""
    size, before, after, by, uneven = possible(
        name, size, before, after, by, uneven)

    def build():
        return pipelines.build(name, count, size)

    stream = next(streams(build, before, epoch, by=by))
    pipelines.items(stream, step)
    state = pipelines.through_json(stream.state_dict())
    for stream in streams(build, after, state=state, by=by, uneven=uneven):
        iterator = stream.get_epoch_iterator()
        try:
            left = [len(iterator)]
        except TypeError:
            continue
        left += [len(iterator) for _ in iterator]
        # The end itself makes the last length 0.
        assert left == list(range(len(left) - 1, -1, -1))


@given(**CASES)
@settings(max_examples=60)
@example(name='ShuffledScheme', count=28, size=2, before=1,
         after=2, epoch=0, step=3, by='batch', uneven='pad')
@example(name='stages', count=28, size=2, before=2,
         after=3, epoch=0, step=2, by='batch', uneven='drop')
@example(name='ShuffledScheme', count=28, size=2, before=1,
         after=3, epoch=0, step=2, by='batch', uneven='uneven')
# A batch of three of four ranks, which is dealt with the next.
@example(name='ConcatenatedScheme', count=10, size=7, before=4,
         after=0, epoch=0, step=2, by='example', uneven='pad')
@example(name='ConcatenatedScheme', count=30, size=7, before=7,
         after=6, epoch=1, step=8, by='example', uneven='pad')
def test_length_of_the_rest_is_what_is_read_on_any_number_of_ranks(**case):
    """The length is right in the middle of a round of the ranks too."""
    check_left(**case)


@pytest.mark.full
@pytest.mark.timeout(3600)
@given(**CASES)
@settings(max_examples=4000)
def test_length_of_the_rest_is_what_is_read_in_four_thousand_cases(**case):
    """Four thousand random cases have the right length."""
    check_left(**case)


class Sizes(IterationScheme):
    """A scheme of a user's, with batches of given sizes."""

    requests_examples = False

    def __init__(self, sizes):
        self.sizes = sizes

    def get_request_iterator(self):
        """Return an iterator over lists, and over the empty ones."""
        ends = list(itertools.accumulate(self.sizes))
        return iter([list(range(end - size, end)) for end, size in zip(
            ends, self.sizes, strict=True)])

    def state_dict(self):
        """Return what there is."""
        return {}

    def load_state_dict(self, state):
        """Take it up."""


def plain_sizes(sizes):
    """Return a stream of batches of given sizes."""
    return DataStream(pipelines.dataset(sum(sizes)),
                      iteration_scheme=Sizes(sizes))


def of_sizes(sizes):
    """Return a noisy stream of batches of given sizes."""
    return pipelines.noisy(plain_sizes(sizes))


def mixed_batches(parts, **how):
    """Return a noisy mixture of batches, of streams of their own sizes."""
    return pipelines.noisy(Mix([
        pipelines.noisy(pipelines.batches(count, size))
        for count, size in parts], seed=len(parts), **how))


RANKS = {'before': st.integers(1, 5), 'after': st.integers(0, 5),
         'step': st.integers(0, 12),
         'uneven': st.sampled_from(['uneven', 'drop', 'pad'])}


@given(sizes=st.lists(st.integers(0, 6), min_size=1, max_size=9), **RANKS)
@settings(max_examples=60)
def test_short_batches_between_others_keep_ranks_in_step(
        sizes, before, after, step, uneven):
    """Batches may have any size, fewer rows than ranks, or none."""
    whole = list(filter(None, sizes)) or [1]
    if uneven == 'pad' or not any(sizes):
        sizes = whole
    # A stream that is not sharded refuses an empty request, and draws are
    # those of a batch by its number.
    make = of_sizes if sizes == whole else plain_sizes
    plain = make(whole)
    orders = pipelines.rows(plain), pipelines.rows(plain)
    check_split(lambda: make(sizes), *orders, before,
                after if sizes == whole else after or 1, 0, step, uneven)


@given(parts=st.lists(st.tuples(st.integers(1, 9), st.integers(1, 6)),
                      min_size=1, max_size=3),
       stop=st.sampled_from(['first', 'last', 'forever']),
       most=st.integers(1, 12), epoch=st.integers(0, 1), **RANKS)
@settings(max_examples=25)
def test_mixtures_of_short_batches_keep_ranks_in_step(
        parts, stop, most, epoch, before, after, step, uneven):
    """The last batch of a stream that ends or begins anew may be short."""
    parts = [(count, max(size, before, after)) for count, size in parts]
    if stop == 'forever' and uneven == 'pad':
        stop = 'last'
    if uneven != 'uneven' or stop == 'first':
        size = max(size for _, size in parts)
        parts = [(count, size) for count, _ in parts]
    else:
        size = None

    def build():
        return mixed_batches(parts, stop=stop, epoch_size=most)

    plain = build()
    orders = [pipelines.rows(plain) for _ in range(epoch + 2)]
    check_split(build, *orders[epoch:], before, after, epoch, step, uneven,
                size)


def test_workers_deal_short_batches_as_one_process_does():
    """Each leaves out the steps of the other."""
    sizes = [3, 1, 4, 1, 1, 5, 2, 1]
    plain = of_sizes(sizes)
    check_split(lambda: MultiProcessing(of_sizes(sizes), num_workers=2),
                pipelines.rows(plain), pipelines.rows(plain), 3, 2, 0, 2,
                'uneven')


def test_ranks_save_the_same_state_of_a_mixture_that_has_ended():
    """A rank at the end of the order finds that a stream has ended."""
    check('ShuffleBuffer of Mix', 5, 1, 3, 6, 1, 1, 'example', 'uneven')


@pytest.mark.parametrize('name', sorted(pipelines.PIPELINES))
def test_each_pipeline_is_shared_by_three_and_taken_up_by_two(name):
    """Each pipeline has one case that is not left to chance."""
    check(name, 23, 4, 3, 2, 1, 1, 'batch', 'uneven')
    if pipelines.PIPELINES[name][1]:
        check(name, 23, 4, 3, 2, 1, 1, 'example', 'uneven')


def stages():
    """Return a pipeline of 12 batches."""
    return pipelines.build('stages', 23, 2)


@pytest.fixture(scope='module')
def plain_states():
    """The state of a stream that is not sharded, before each batch."""
    stream = stages()
    iterator = stream.get_epoch_iterator()
    return [(pipelines.through_json(stream.state_dict()), next(iterator))[0]
            for _ in range(12)]


@pytest.mark.parametrize('count', range(1, 9))
def test_state_at_each_step_is_that_of_the_whole_order(count, plain_states):
    """Each of 1 to 8 ranks has it, so any number of them can take it up. It
    also has the number of ranks, by which steps are counted."""
    for rank in range(count):
        stream = stages().shard(rank, count)
        iterator = stream.get_epoch_iterator()
        for plain in plain_states[::count]:
            state = pipelines.through_json(stream.state_dict())
            assert [count, 'batch', 'uneven'] == state.pop('ranks')
            del state['crc']
            assert {name: value for name, value in plain.items()
                    if name != 'crc'} == state
            next(iterator, None)


@pytest.mark.parametrize('count', range(9))
def test_any_number_of_ranks_goes_on_from_each_state(count, plain_states):
    """The number 0 stands for a stream that is not sharded."""
    order, following = map(pipelines.items, [whole := stages(), whole])
    for place, state in enumerate(plain_states):
        for rank, stream in enumerate(streams(stages, count, state=state)):
            assert order[place:][rank::count or 1] == pipelines.items(stream)
            if place in (0, 11):
                assert following[rank::count or 1] == pipelines.items(stream)
