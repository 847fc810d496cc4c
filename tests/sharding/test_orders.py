"""Orders are values that say what an epoch is made of.

The oracle is the data: each row holds its number and its data set.
"""
import pickle
import random
import subprocess
import sys
from contextlib import suppress
from functools import partial
from itertools import islice

import numpy
import pytest
from support import random_orders
from support.random_orders import MOST, build, can_be_read

from fuel.datasets import IndexableDataset
from fuel.schemes import (
    ComputedShuffledScheme, ConstantScheme, SequentialScheme, ShuffledScheme)
from fuel.schemes.shard import Shard
from fuel.sharding.asking import epoch_order
from fuel.sharding.made import DatasetRows, Merged
from fuel.sharding.order import RankOrder, UnknownOrderError
from fuel.streams import DataStream
from fuel.transformers import Cache, Chain, Mix, MultiThreading, Take


def columns(made, starts):
    """Return what the sources of an item hold that is made of these rows.

    `starts`: what the first row of each data set holds.
    """
    if isinstance(made, DatasetRows):
        return [(numpy.asarray(made.rows) + starts[made.dataset]).tolist()]
    parts = [columns(part, starts) for part in made.parts]
    if isinstance(made, Merged):
        return sum(parts, [])
    return [sum(column, []) for column in zip(*parts, strict=True)]


def expected(order, starts):
    """Return what an epoch delivers that has an order."""
    return [columns(made, starts) for made in islice(order, MOST)]


def delivered(stream, most=MOST):
    """Return what an epoch delivers."""
    return [[numpy.asarray(part).tolist() for part in item]
            for item in islice(stream, most)]


def known_from(order, starts):
    """Return the first item that is known, and what an epoch delivers from
    there on."""
    first, found = 0, []
    for item in range(MOST):
        try:
            found.append(columns(order[item], starts))
        except IndexError:
            break
        except UnknownOrderError:
            first = item + 1
    return first, found


def state_of(stream):
    """Return the state of a stream, None if it has none."""
    try:
        return stream.state_dict()
    except (TypeError, ValueError):
        return None


def check_asked(make):
    """Compare three epochs of a pipeline with what was said before, during
    and after; return its first order.

    `make`: returns the pipeline, a new one each time.
    """
    plain, stream = make(), make()
    first, starts = epoch_order(stream), random_orders.starts_of(stream)
    later = later_epochs(first)
    for epoch in range(3):
        before = epoch_order(stream)
        theirs, ours = iter(plain), iter(stream)
        during, found, whole = [], [], []
        for item in range(MOST):
            if item in (0, 2, 9, 25):
                during.append((item, epoch_order(stream)))
                assert state_of(plain) == state_of(stream)
            whole += delivered(theirs, 1)
            found += delivered(ours, 1)
            if len(whole) == item:
                break
        # An epoch that nobody reads is over.
        del theirs, ours
        assert whole == found
        if before.kind == 'none':
            assert before.reason
            continue
        assert expected(before, starts) == whole
        if epoch in later:
            assert expected(later[epoch], starts) == whole
        for item, order in during:
            if item < len(whole):
                start, known = known_from(order, starts)
                assert start <= item
                assert known == whole[start:]
    return first


def check_resumed(make, count):
    """Compare what is left of an epoch with what is said of its state.

    `count`: how many items were read before.
    """
    stream = make()
    epoch = iter(stream)
    delivered(epoch, count)
    state = state_of(stream)
    if state is None or state['epoch'] != 'running':
        return
    resumed, starts = make(), random_orders.starts_of(stream)
    resumed.load_state_dict(state)
    order = epoch_order(resumed)
    if order.kind != 'none':
        first, known = known_from(order, starts)
        assert first <= count
        rest = delivered(resumed, MOST - count)
        assert known[count - first:] == rest


def check_untouched(make, number):
    """Ask a pipeline 100 times, and compare two epochs with those of one that
    is not asked."""
    plain, stream, choose = make(), make(), random.Random(number)
    moments = sorted(choose.choices(range(2 * MOST), k=100))
    for epoch in range(2):
        theirs, ours = iter(plain), iter(stream)
        for item in range(MOST):
            while moments and moments[0] <= epoch * MOST + item:
                moments.pop(0)
                ask(stream, choose)
            expected = delivered(theirs, 1)
            assert expected == delivered(ours, 1)
            assert state_of(plain) == state_of(stream)
            if not expected:
                break
        del theirs, ours
    for _ in moments:
        ask(stream, choose)
    assert delivered(plain) == delivered(stream)


def ask(stream, choose):
    """Ask for items of a pipeline, and of its later epochs."""
    order = epoch_order(stream)
    if choose.random() < .5:
        order = pickle.loads(pickle.dumps(order))
    with suppress(UnknownOrderError, IndexError):
        order = order.epoch(choose.randint(0, 2))
        for item in choose.choices(range(MOST), k=3):
            order[item]


def later_epochs(order):
    """Return the orders of two further epochs, as far as they are known."""
    if order.kind == 'none' or _is_endless(order):
        return {}
    try:
        return {count: order.epoch(count) for count in (1, 2)}
    except UnknownOrderError:
        # A mixture in it never ends.
        return {}


def _is_endless(order):
    return order.num_items is not None and len(order) > MOST


def check_share(make, ranks, by, uneven):
    """Compare what each rank delivers with its share of the order; return
    whether ranks can share it so."""
    order = epoch_order(make())
    if order.kind == 'none' or _is_endless(order):
        return False
    epochs = [order, *later_epochs(order).values()][:2]
    for rank in range(ranks):
        stream = make()
        try:
            stream = stream.shard(rank, ranks, by=by, uneven=uneven)
        except (TypeError, ValueError, NotImplementedError):
            return False
        for whole in epochs:
            ours = whole.share(Shard(rank, ranks, by, uneven))
            assert expected(
                ours, random_orders.starts_of(stream)) == delivered(stream)
    return True


def check_all(numbers, builder):
    """Check pipelines, and their orders in another process; return how many
    of them are known, and how many shares."""
    orders, shares = [], 0
    for number in numbers:
        make = partial(build, number, builder)
        if not can_be_read(make):
            continue
        order = check_asked(make)
        if order.kind != 'none':
            orders.append((order, random_orders.starts_of(make())))
        check_resumed(make, number % 11)
        shares += check_share(
            make, 1 + number % 4,
            'example' if number % 3 == 0 else 'batch',
            ['uneven', 'drop', 'pad'][number // 4 % 3])
    assert in_another_process(orders) == [
        expected(*order) for order in orders]
    return len(orders), shares


PROGRAM = """
import pickle, sys
sys.path.insert(0, {folder!r})
sys.path.insert(0, {tests!r})
from sharding.test_orders import expected
orders = pickle.load(sys.stdin.buffer)
sys.stdout.buffer.write(pickle.dumps([
    expected(*order) for order in orders]))
"""


def in_another_process(orders):
    """Return what orders say in another process."""
    program = PROGRAM.format(
        folder=sys.path[0],
        tests=str(random_orders.__file__).rsplit('support', 1)[0])
    answer = subprocess.run(
        [sys.executable, '-c', program], input=pickle.dumps(orders),
        capture_output=True, check=True)
    return pickle.loads(answer.stdout)


# Streams that stand beside each other may differ in length.
pytestmark = pytest.mark.filterwarnings(
    'ignore:the streams merged', 'ignore:an epoch')
BUILDERS = pytest.mark.parametrize(
    'builder', [random_orders.Build, random_orders.Tangled])


@pytest.mark.parametrize(('builder', 'fewest', 'fewest_shares'), [
    (random_orders.Build, 20, 5), (random_orders.Tangled, 20, 1)])
def test_orders_of_random_pipelines_say_what_is_delivered(
        builder, fewest, fewest_shares):
    """Orders hold before, during and after an epoch, for each rank."""
    known, shares = check_all(range(30), builder)
    assert known > fewest
    assert shares > fewest_shares


@pytest.mark.parametrize(('builder', 'fewest', 'fewest_shares'), [
    (random_orders.Build, 1400, 400), (random_orders.Tangled, 1400, 60)])
@pytest.mark.full
@pytest.mark.timeout(3600)
def test_orders_of_two_thousand_pipelines_say_what_is_delivered(
        builder, fewest, fewest_shares):
    """Orders of two thousand random pipelines are right."""
    known, shares = check_all(range(2000), builder)
    assert known > fewest
    assert shares > fewest_shares


@BUILDERS
def test_epoch_that_was_asked_delivers_what_one_delivers_that_was_not(
        builder):
    """Asking draws from nothing that an epoch draws from."""
    for number in range(6):
        check_untouched(partial(build, number, builder), number)


@BUILDERS
@pytest.mark.full
@pytest.mark.timeout(3600)
def test_asking_three_hundred_pipelines_changes_nothing(builder):
    """Three hundred pipelines deliver the same after they were asked."""
    for number in range(300):
        make = partial(build, number, builder)
        if can_be_read(make):
            check_untouched(make, number)


def test_order_of_a_mixture_is_known_after_a_stage_found_its_end():
    """A Cache finds the end when it asks for one batch too many."""
    inputs = [DataStream(
        IndexableDataset({'y': numpy.arange(start, start + 8)}),
        iteration_scheme=ShuffledScheme(8, size)) for start, size in (
            (0, 2), (100, 3))]
    stream = Mix([Cache(inputs[0], ConstantScheme(2)), inputs[1]],
                 stop='forever', epoch_size=9, seed=1)
    for _ in range(3):
        epoch = stream.get_epoch_iterator()
        orders, delivered = [epoch_order(stream)], []
        for item, in epoch:
            delivered.append([item.tolist()])
            orders.append(epoch_order(stream))
        # The last is that of the next epoch.
        assert [delivered] * 9 == [
            expected(order, [0, 100]) for order in orders[:9]]


def test_next_order_is_not_known_where_an_epoch_elsewhere_was_left():
    """Its items are not those of the next one."""
    stream = MultiThreading(DataStream(
        IndexableDataset({'y': numpy.arange(8)}),
        iteration_scheme=ShuffledScheme(8, 2)))
    epoch = stream.get_epoch_iterator()
    first = [item.tolist() for item, in islice(epoch, 2)]
    assert first == [item for item, in expected(epoch_order(stream), [0])][:2]
    del epoch
    with pytest.raises(UnknownOrderError, match='MultiThreading was left'):
        epoch_order(stream).make(0)
    epoch = stream.get_epoch_iterator()
    order = epoch_order(stream)
    assert [[item.tolist()] for item, in epoch] == expected(order, [0])


def mixed_batches():
    """Return the order of a mixture of batches of two sizes."""
    return epoch_order(Mix([DataStream(
        IndexableDataset({'y': numpy.arange(count)}),
        iteration_scheme=ShuffledScheme(count, size))
        for count, size in ((40, 1), (80, 16))], seed=5, stop='last'))


def test_items_of_an_uneven_share_are_counted_once(monkeypatch):
    """Each question about an item would go through the epoch otherwise."""
    dealt, deal = [], RankOrder.deal

    def count(order, first):
        dealt.append(first)
        return deal(order, first)
    share = mixed_batches().share(Shard(1, 2, 'example'))
    monkeypatch.setattr(RankOrder, 'deal', count)
    items = [share[item] for item in range(len(share))]
    assert len(items) > 10
    assert len(dealt) < 3 * len(items)


def test_next_epoch_of_an_uneven_share_has_steps_of_its_own():
    """They begin at other items than those of the epoch before."""
    whole, shard = mixed_batches(), Shard(1, 2, 'example')
    share = whole.share(shard)
    for epoch in range(4):
        assert list(whole.epoch(epoch).share(shard)) == list(
            share.epoch(epoch))


def test_later_epochs_are_drawn_from_the_one_asked_for_last(monkeypatch):
    """Each number of steps, or epoch in turn, would draw all those before."""
    drawn, draw = [], ShuffledScheme.get_request_iterator
    whole = mixed_batches()
    later = [list(whole.epoch(epoch)) for epoch in (20, 3)]
    monkeypatch.setattr(
        ShuffledScheme, 'get_request_iterator',
        lambda scheme: drawn.append(1) or draw(scheme))
    whole = mixed_batches()
    found = [list(whole.epoch(epoch)) for epoch in range(21)]
    # Of each stream in it, once; the next draws are those of a copy.
    assert len(drawn) <= 4 * 21
    assert later == [found[20], found[3]]


def test_epochs_before_of_a_mixture_that_goes_on_are_not_known():
    """Each of its streams began in the middle of an epoch."""
    stream = Mix([DataStream(
        IndexableDataset({'y': numpy.arange(8)}),
        iteration_scheme=SequentialScheme(8, 2))], stop='forever',
        epoch_size=5)
    delivered = [list(map(str, stream)) for _ in range(2)]
    assert delivered[0] != delivered[1]
    with pytest.raises(UnknownOrderError, match='not known where it began'):
        epoch_order(stream).epoch(-1)


def test_far_epoch_of_a_scheme_that_is_read_twice_after_a_load():
    """It draws for both streams in each epoch."""
    def make():
        stream = DataStream(
            IndexableDataset({'y': numpy.arange(8)}),
            iteration_scheme=ComputedShuffledScheme(8, 3, seed=1))
        return Chain([stream, Take(stream, 2)])
    stream = make()
    came = [[rows.tolist() for rows, in stream] for _ in range(4)]
    saved, loaded = make(), make()
    iterator = iter(saved)
    next(iterator)
    loaded.load_state_dict(saved.state_dict())
    for stream in (saved, loaded):
        order = epoch_order(stream)
        assert came == [[list(made.rows) for made in order.epoch(number)]
                        for number in range(4)]
    list(loaded)
    last = make()
    running = iter(loaded)
    next(running)
    last.load_state_dict(loaded.state_dict())
    with pytest.raises(UnknownOrderError, match='several streams share'):
        epoch_order(last).epoch(-1)
