"""Ranks share an order exactly, whatever it is and however many they are.

The oracle is the order itself, read by one stream that is not sharded.
"""
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import sharded_pipelines as pipelines

NOISY = {'stages', 'Batch', 'Unpack', 'Cache', 'ShuffleBuffer', 'Merge',
         'Chain'}

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
    if name == 'IterableDataset' and uneven == 'pad':
        uneven = 'drop'
    plain = pipelines.build(name, count, size)
    orders = [(pipelines.rows if by == 'example' else pipelines.items)(plain)
              for _ in range(epoch + 2)]
    order, following = orders[epoch:]
    (check_split if by == 'example' else check_dealt)(
        lambda: pipelines.build(name, count, size), order, following,
        before, after, epoch, step, uneven, name in NOISY)


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
                is_noisy):
    """Each batch of all ranks together is the one of the plain order."""
    full = len(order[0]) if order else 0
    got = [pipelines.rows(stream) for stream in streams(
        build, before, epoch, by='example', uneven=uneven)]
    whole = [batch for batch in order if len(batch) == full]
    if uneven == 'uneven':
        joined = [joined_rows(parts) for parts in zip(*[
            items[:len(whole)] for items in got], strict=True)] if (
                full >= before) else whole
        assert whole == joined
        assert sorted(sum(order, [])) == sorted(
            row for items in got for part in items for row in part)
    elif len(order) > 1 and uneven == 'drop':
        assert whole == [joined_rows(parts)
                         for parts in zip(*got, strict=True)]
    elif len(order) > 1:
        joined = [joined_rows(parts) for parts in zip(*got, strict=True)]
        assert order[:-1] == joined[:-1]
        assert [full] * len(order) == list(map(len, joined))
        if not is_noisy:
            last = order[-1] + sum(order, [])
            assert last[:full] == joined[-1]
    step = min(step, max(0, len(order) - 1))
    if full < before:
        return
    seen, state = saved(
        build, before, epoch, step, pipelines.rows, by='example')
    found = [row for items in seen for part in items for row in part]
    assert sorted(sum(order[:step], [])) == sorted(found)
    rests = [(pipelines.rows(stream), pipelines.rows(stream))
             for stream in streams(
                 build, after, state=state, by='example')]
    for expected, place in ((order[step:], 0), (following, 1)):
        assert sorted(sum(expected, [])) == sorted(
            row for pair in rests for part in pair[place] for row in part)


def joined_rows(parts):
    """Return the rows of all ranks' parts of a batch."""
    return sum(parts, [])


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


@pytest.mark.parametrize('name', sorted(pipelines.PIPELINES))
def test_each_pipeline_is_shared_by_three_and_taken_up_by_two(name):
    """So that none is left to chance."""
    check(name, 23, 4, 3, 2, 1, 1, 'batch', 'uneven')
    if pipelines.PIPELINES[name][1]:
        check(name, 23, 4, 3, 2, 1, 1, 'example', 'uneven')


@pytest.mark.parametrize('before', range(1, 9))
def test_state_of_any_number_of_ranks_fits_any_other_at_each_step(before):
    """For each pair of 1 to 8."""
    for after in range(9):
        for step in range(-(-12 // before)):
            check('stages', 23, 2, before, after, 0, step, 'batch', 'uneven')
