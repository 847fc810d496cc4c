"""Orders are values that say what an epoch is made of.

The oracle is the data: each row holds its number and its data set.
"""
import pickle
import subprocess
import sys
from itertools import islice

import numpy
import pytest
from support import random_orders
from support.random_orders import MOST, build

from fuel.schemes.shard import Shard
from fuel.sharding.asking import epoch_order
from fuel.sharding.made import DatasetRows, Merged
from fuel.sharding.order import UnknownOrderError


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


def can_be_read(number):
    """Return whether a pipeline has items: batches of several streams that
    stand beside each other may differ in size."""
    try:
        delivered(build(number))
    except ValueError:
        return False
    return True


def check_asked(number):
    """Compare three epochs of a pipeline with what was said before, during
    and after; return its first order."""
    plain, stream = build(number), build(number)
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


def check_share(number, ranks, by, uneven):
    """Compare what each rank delivers with its share of the order; return
    whether ranks can share it so."""
    order = epoch_order(build(number))
    if order.kind == 'none' or _is_endless(order):
        return False
    epochs = [order, *later_epochs(order).values()][:2]
    for rank in range(ranks):
        stream = build(number)
        try:
            stream = stream.shard(rank, ranks, by=by, uneven=uneven)
        except (TypeError, ValueError, NotImplementedError):
            return False
        for whole in epochs:
            ours = whole.share(Shard(rank, ranks, by, uneven))
            assert expected(
                ours, random_orders.starts_of(stream)) == delivered(stream)
    return True


def check_all(numbers):
    """Check pipelines, and their orders in another process; return how many
    of them are known, and how many shares."""
    orders, shares = [], 0
    for number in filter(can_be_read, numbers):
        order = check_asked(number)
        if order.kind != 'none':
            orders.append((order, random_orders.starts_of(build(number))))
        shares += check_share(
            number, 1 + number % 4,
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
@pytest.mark.filterwarnings('ignore:the streams merged', 'ignore:an epoch')
def test_orders_of_random_pipelines_say_what_is_delivered():
    """Before, during and after an epoch, and of each rank."""
    known, shares = check_all(range(30))
    assert known > 20
    assert shares > 5


@pytest.mark.filterwarnings('ignore:the streams merged', 'ignore:an epoch')
@pytest.mark.full
@pytest.mark.timeout(3600)
def test_orders_of_two_thousand_pipelines_say_what_is_delivered():
    """The long form."""
    known, shares = check_all(range(2000))
    assert known > 1400
    assert shares > 400
