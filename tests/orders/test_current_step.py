"""The step of the batch that was delivered last, and that of an item."""
import pickle
import random
from itertools import islice

import numpy
import pytest

from fuel.datasets import IndexableDataset
from fuel.exceptions import UnknownOrderError
from fuel.orders import leave_out
from fuel.schemes import ConstantScheme, ShuffledExampleScheme
from fuel.streams import DataStream
from fuel.transformers import (
    Batch, Cast, Filter, Mapping, Mix, MultiProcessing, MultiThreading)
from fuel.transformers.shuffling import ShuffleBuffer


def stream_of(count=59, size=3, **kwargs):
    """Return a stream whose rows are their numbers."""
    return DataStream(IndexableDataset({'y': numpy.arange(count)}),
                      batch_size=size, shuffle=True, seed=5, **kwargs)


def examples(**kwargs):
    """Return a stream of examples."""
    return DataStream(IndexableDataset({'y': numpy.arange(59)}),
                      iteration_scheme=ShuffledExampleScheme(59, seed=3),
                      **kwargs)


def refuse(data):
    """Raise an error for some rows."""
    if 7 in numpy.atleast_1d(data[0]):
        raise ValueError('7')
    return data


PIPELINES = {
    'stream': stream_of,
    'stage': lambda: Cast(stream_of(), 'int64'),
    'batches of examples': lambda: Batch(examples(), ConstantScheme(3)),
    'buffer': lambda: Batch(
        ShuffleBuffer(examples(), 5, seed=1), ConstantScheme(3)),
    'mixture': lambda: Mix([stream_of(), stream_of(24, 2)], seed=1,
                           stop='last'),
    'threads': lambda: MultiThreading(
        Cast(stream_of(), 'int64'), num_threads=2),
    'threads above': lambda: Cast(MultiThreading(
        stream_of(), num_threads=2), 'int64'),
    'examples that fail': lambda: Mapping(examples(on_error='skip'), refuse),
    'batches without some': lambda: Mapping(
        stream_of(on_error='skip'), refuse)}


# Ranks cannot divide these batches by their examples.
INDIVISIBLE = 'buffer', 'examples that fail', 'batches without some'


def rows_of(item):
    """Return the rows of an item, in ascending order."""
    return sorted(numpy.atleast_1d(item[0]).tolist())


def may_be_left_out(stream, step, accumulate):
    """Return whether padding does not repeat an example of a step."""
    try:
        leave_out(stream, [step], accumulate=accumulate)
    except ValueError as error:
        if "uneven='pad' repeats" not in str(error):
            raise
        return False
    return True


@pytest.mark.parametrize('ranks, accumulate', [
    (None, 1), (None, 3), ((2, 'batch', 'uneven'), 1),
    ((3, 'batch', 'drop'), 2), ((2, 'example', 'uneven'), 3),
    ((2, 'batch', 'pad'), 2)])
@pytest.mark.parametrize('name', PIPELINES)
def test_it_is_the_step_that_has_the_batch(name, ranks, accumulate):
    """Epochs are left, steps are left out, and a new process goes on."""
    def make(rank=0):
        stream = PIPELINES[name]()
        return stream if ranks is None else stream.shard(
            rank, ranks[0], *ranks[1:])

    def check(stream, item):
        table = stream.order.step(
            stream.current_step(accumulate), accumulate)
        rows = table.row.tolist()
        missing = set(rows_of(item)) - set(rows)
        # Repeats, to pad, are left out of a step.
        assert not missing or (
            'pad' in str(ranks) and table.row.size < (
                accumulate * ranks[0] * 3))

    generator = random.Random(f'{name} {ranks} {accumulate}')
    rank = 0 if ranks is None else generator.randrange(ranks[0])
    if name in INDIVISIBLE and 'example' in (ranks or ()):
        with pytest.raises(ValueError, match="use by='batch'"):
            make(rank)
        return
    stream = make(rank)
    most = len(stream.order)
    steps = range(most // 3 // accumulate) if most > 20 else [1]
    steps = [step for step in steps
             if may_be_left_out(stream, step, accumulate)]
    stream = leave_out(stream, generator.sample(
        steps, min(2, len(steps))), accumulate=accumulate)
    assert steps or 'pad' in str(ranks)
    assert stream.current_step(accumulate) == -1
    found = []
    for count in None, 2, 4:
        iterator = iter(stream)
        for item in islice(iterator, count):
            check(stream, item)
            found.append(stream.current_step(accumulate))
        if count == 4:
            saved = stream.state_dict()
            copied = pickle.loads(pickle.dumps(iterator))
            rest = []
            for item in iterator:
                check(stream, item)
                rest.append(stream.current_step(accumulate))
        del iterator
        if 'threads' not in name:
            # Their next epoch is not known once one is left.
            assert stream.current_step(accumulate) >= found[-1]
    assert found == sorted(found)
    resumed = make(rank)
    resumed.load_state_dict(saved)
    again = []
    assert resumed.current_step(accumulate) == found[-1]
    for item in resumed:
        check(resumed, item)
        again.append(resumed.current_step(accumulate))
    assert again == rest
    stream = copied.data_stream
    assert [stream.current_step(accumulate) for _ in copied] == rest


def test_it_is_unknown_where_the_order_is():
    """Items that workers leave out are not counted."""
    left_out = Cast(MultiThreading(Mapping(
        examples(on_error='skip'), refuse)), 'int64')
    for stream, reason in (
            (Filter(examples(), lambda data: True), 'Filter'),
            (left_out, 'workers of MultiThreading')):
        iterator = iter(stream)
        next(iterator)
        with pytest.raises(UnknownOrderError, match=reason):
            stream.current_step()
        stream.close()


def test_iterators_of_processes_count_what_they_deliver():
    """Their workers are ahead; an epoch begins at a step."""
    stream = MultiProcessing(examples(), num_workers=2)
    iterator = stream.iterate_from(step=70)
    order = stream.order
    for step in range(70, 75):
        assert next(iterator)[0] == order.step(step).row
        assert stream.current_step() == step
        assert stream.current_step(4) == 15 + (step - 59) // 4
    stream.close()


def test_older_states_do_not_say_it():
    """They have no numbers of epochs."""
    stream = stream_of()
    iterator = iter(stream)
    next(iterator)
    state = stream.state_dict()
    for name in 'past', 'crc':
        del state[name]
    resumed = stream_of()
    resumed.load_state_dict(state)
    with pytest.raises(UnknownOrderError, match='older version'):
        resumed.current_step()


@pytest.mark.parametrize('accumulate', [1, 3])
@pytest.mark.parametrize('ranks, by, uneven', [
    (1, 'batch', 'uneven'), (3, 'batch', 'uneven'), (3, 'batch', 'drop'),
    (2, 'example', 'pad')])
def test_each_item_has_the_step_in_which_it_is(ranks, by, uneven, accumulate):
    """Items that are dropped, or that come after an epoch was left, have
    none."""
    stream = stream_of().shard(ranks - 1, ranks, by, uneven)
    next(iter(stream))
    list(stream)
    order = stream.order
    for epoch, items in (0, 1 if by == 'example' else ranks), (1, 20), (4, 20):
        ours = order.epoch(epoch)
        for item in range(20):
            step = ours.step_of(item, accumulate)
            if item < (items // ranks * ranks if uneven == 'drop' else items):
                assert set(ours[item].row) <= set(
                    order.step(step, accumulate).row)
            else:
                assert step is None
            own = ours.share(0).step_of(item, accumulate)
            if own is not None:
                assert set(ours.share(0)[item].row) <= set(
                    order.step(own, accumulate).row)


def test_item_of_ranks_that_share_examples_has_no_step():
    """The order of a rank says the steps of its own."""
    order = Batch(ShuffleBuffer(examples(), 5, seed=1),
                  ConstantScheme(3)).shard(0, 2).order
    with pytest.raises(UnknownOrderError, match='order.share'):
        order.step_of(1)
    assert order.share(1).step_of(3, 2) == 1
