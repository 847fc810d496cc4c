"""Ranks share an order exactly, whatever it is and however many they are.

The oracle is the order itself, read by one stream that is not sharded.
"""
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import sharded_pipelines as pipelines

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


def check(name, count, size, before, after, epoch, step, by, uneven):
    """Save on `before` ranks and go on on `after`; 0: not sharded."""
    if by == 'example':
        size = max(size, before, after, 5)
        if not pipelines.PIPELINES[name][1]:
            by = 'batch'
        elif name == 'Cache':
            before, after = min(before, 5), min(after, 5)
    if name in pipelines.ONLY_FORWARD and uneven == 'pad':
        uneven = 'drop'
    plain = pipelines.build(name, count, size)
    orders = [(pipelines.rows if by == 'example' else pipelines.items)(plain)
              for _ in range(epoch + 2)]
    order, following = orders[epoch:]
    def build():
        return pipelines.build(name, count, size)

    if by == 'example':
        check_split(build, order, following, before, after, epoch, step,
                    uneven, 5 if name == 'Cache' else size)
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
            # What is drawn for a repeated item is drawn anew.
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
                size):
    """Each batch of all ranks together is the one of the plain order."""
    got = [pipelines.rows(stream) for stream in streams(
        build, before, epoch, by='example', uneven=uneven)]
    if uneven == 'uneven':
        assert [shares(order, rank, before) for rank in range(before)] == got
    elif uneven == 'drop':
        whole = [batch for batch in order if len(batch) == size]
        assert [shares(whole, rank, before) for rank in range(before)] == got
    else:
        joined = [sum(parts, []) for parts in zip(*got, strict=True)]
        assert [size] * len(order) == list(map(len, joined))
        assert order == [padded[:len(batch)] for padded, batch in zip(
            joined, order, strict=True)]
    step = min(step, max(0, len(order) - 1))
    if any(len(batch) < before for batch in order[:step]):
        # Ranks without a row of it are a batch ahead.
        return
    seen, state = saved(
        build, before, epoch, step, pipelines.rows, by='example')
    assert [shares(order[:step], rank, before)
            for rank in range(before)] == seen
    rests = [(pipelines.rows(stream), pipelines.rows(stream))
             for stream in streams(build, after, state=state, by='example')]
    for expected, place in ((order[step:], 0), (following, 1)):
        assert [shares(expected, rank, after or 1)
                for rank in range(after or 1)] == [
                    pair[place] for pair in rests]


def shares(batches, rank, count):
    """Return a rank's rows of each batch of which it has any."""
    parts = [batch[rank * len(batch) // count:
                   (rank + 1) * len(batch) // count] for batch in batches]
    return [part for part in parts if part]


@given(**CASES)
@settings(max_examples=60)
def test_each_item_comes_once_on_any_number_of_ranks(**case):
    """Saved at any step on some, and taken up on others."""
    check(**case)


@pytest.mark.full
@pytest.mark.timeout(3600)
@given(**CASES)
@settings(max_examples=10000)
def test_each_item_comes_once_in_ten_thousand_cases(**case):
    """The long form."""
    check(**case)


@pytest.mark.parametrize('count, size, before, after', [
    (2, 1, 1, 2), (4, 3, 3, 2), (7, 4, 4, 0)])
def test_batches_between_of_which_a_rank_has_no_row_are_counted(
        count, size, before, after):
    """What is drawn behind a mixture is that of the plain order."""
    check('Mix of batches', count, size, before, after, 0, 0, 'example',
          'uneven')


def test_ranks_save_the_same_state_of_a_mixture_that_has_ended():
    """A rank at the end of the order finds that a stream has ended."""
    check('ShuffleBuffer of Mix', 5, 1, 3, 6, 1, 1, 'example', 'uneven')


@pytest.mark.parametrize('name', sorted(pipelines.PIPELINES))
def test_each_pipeline_is_shared_by_three_and_taken_up_by_two(name):
    """So that none is left to chance."""
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
    """On each of 1 to 8 ranks, so any number of them can take it up."""
    for rank in range(count):
        stream = stages().shard(rank, count)
        iterator = stream.get_epoch_iterator()
        for state in plain_states[::count]:
            assert state == pipelines.through_json(stream.state_dict())
            next(iterator, None)


@pytest.mark.parametrize('count', range(9))
def test_any_number_of_ranks_goes_on_from_each_state(count, plain_states):
    """0: a stream that is not sharded."""
    order, following = map(pipelines.items, [whole := stages(), whole])
    for place, state in enumerate(plain_states):
        for rank, stream in enumerate(streams(stages, count, state=state)):
            assert order[place:][rank::count or 1] == pipelines.items(stream)
            if place in (0, 11):
                assert following[rank::count or 1] == pipelines.items(stream)
