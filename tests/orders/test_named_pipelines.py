"""Each named pipeline says which examples it delivers, and delivers them.

The oracle changes one row of a data set, and looks where the items that come
then differ; see `support.traced`.
"""
import itertools
import json
from functools import partial
from pathlib import Path

import pytest
from support import pipelines, traced
from support.pipelines import N

from fuel.epochs.pipeline import datasets_of
from fuel.epochs.stage import stage_of
from fuel.exceptions import UnknownOrderError
from fuel.export import log_examples
from fuel.schemes.shard import Shard

pytestmark = pytest.mark.filterwarnings(
    'ignore:the streams merged', 'ignore:an epoch')

UNCOUNTED = 'how many items an epoch has is not known before it is over'
# Pipelines whose order is not known before the data are read, and the reason.
REFUSING = {
    **dict.fromkeys([
        'ProviderDataset', 'TextFile', 'TextFile batches',
        'sharded TextFile'], UNCOUNTED),
    **dict.fromkeys([
        'Filter', 'Cache of Batch', 'sparse Filter', 'sharded Filter',
        'sharded MarkExamples of Filter'], 'the stage Filter does not make '
        'one item of each that it reads'),
    **dict.fromkeys(['Expand', 'Expand batches'], 'the stage Uneven makes '
                    'pieces of each item, and how many is not known'),
    **dict.fromkeys(['Chunk', 'Chunk shifted', 'Pack of Chunk'], 'the stage '
                    'Chunk makes pieces of each item'),
    **dict.fromkeys(['Pack', 'Pack batches', 'MarkExamples of Pack'],
                    'the stage Pack does not make one item of each'),
    'ImagesFromBytes skipping': 'the stage ImagesFromBytes does not make one',
    'Window': 'the stage Window makes pieces of each item',
    'NGrams': 'the stage NGrams makes pieces of each item',
    'BucketBatch': 'the stage BucketBatch does not make one item of each',
    'Noisy left-overs': 'how many rows a batch of Noisy has is not known',
    'Running': 'the stage Running does not make one item of each'}
# A change of a row does not show everywhere: rows are empty, are replaced, or
# are mixed with little of another.
UNSEEN = {
    'IterableDataset', 'JSONLDataset masks', 'TFRecordDataset', 'Runs',
    'Runs examples',
    'Batch ends early', 'Batch of Merge', 'BalancedBatches rounds',
    'Padding', 'Batch of Mix', 'Take all', 'ShuffleBuffer in order',
    'sharded TextFile', 'MarkExamples examples', 'MarkExamples of Pack',
    'MarkExamples of MixUp', 'MixUp', 'CutMix', 'CutMix pairs', 'Dropout',
    'SaltAndPepper', 'Impute', 'Impute masked', 'Impute text', 'TextFile',
    'TextFile batches', 'BucketBatch', 'Chunk shifted', 'Pack of Chunk',
    'Pack', 'Pack batches',
    # A function moves rows from one item to the next.
    'Noisy left-overs'}
# Examples that cannot be read are left out, and the order is that of the
# requests: its items count them.
SKIPPED = {(0, 2), (0, 5)}
SKIPPING = {'bad records', 'bad records of examples', 'sharded bad records',
            'Unpack of bad records', 'MarkExamples of bad records'}
# No seed leads to the epochs before: the generator was given, or one scheme
# draws for two epochs of a stream in each epoch.
NO_PAST = {'ShuffledScheme Generator', 'ShuffledScheme Random',
           'Merge with itself', 'Mix with itself', 'Chain with itself'}


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """A folder with the files of the pipelines."""
    found = tmp_path_factory.mktemp('named')
    pipelines.write_files(found)
    return found


def ask_all(order):
    """Ask every question of an order."""
    count = len(order)
    assert count
    return (order[0], order[count - 1], order[0:2], order[:], order.step(0),
            order.step(count, 2), order.epoch(1)[0], order.index(3, 0),
            order.digest())


@pytest.mark.parametrize('name', pipelines.PIPELINES)
def test_order_answers_or_its_reason_is_listed(name, folder):
    """None that is listed answers, and no other refuses."""
    order = pipelines.build(name, folder).order
    if name in REFUSING:
        with pytest.raises(UnknownOrderError, match=REFUSING[name]):
            ask_all(order)
    else:
        ask_all(order)


def test_few_pipelines_refuse():
    """Each that does exists."""
    assert len(REFUSING) <= 30
    assert REFUSING.keys() | UNSEEN | SKIPPING | NO_PAST <= (
        pipelines.PIPELINES.keys())


def same(came, claimed, name):
    """Return whether what came is what is claimed."""
    return came <= claimed if name in UNSEEN else came == claimed


def is_row_of(example, came, name):
    """Return whether a row is of the example of a table or log.

    Of merged streams, that of the first is named.
    """
    return same({one for one in came if one[0] == example[0]}, {example},
                name) or {example} < came


def check_order(order, items, epoch, name):
    """Compare an order's answers with the examples of each row of the items
    that came in an epoch."""
    assert epoch == order.epoch_number
    tables = list(order)
    listed = list(map(list, tables))
    assert list(order[:]) == sum(listed, [])
    assert list(order[1:3]) == sum(listed[1:3], [])
    if name in SKIPPING:
        assert [{example} for example in order[:]
                if example not in SKIPPED] == sum(items, [])
        return
    assert len(order) == len(items)
    for examples, rows in zip(listed, items, strict=True):
        (place, *_) = order.index(examples[0][1], examples[0][0])
        if place.row is None:
            assert same(set.union(*rows), set(examples), name)
        else:
            assert all(itertools.starmap(partial(is_row_of, name=name), zip(
                examples, rows, strict=True)))
    check_index(order, items, name)


def check_index(order, items, name):
    """Compare the places of each example with those at which it came."""
    for example in itertools.product(range(len(order[0].names)), range(N)):
        places = [(place.item, place.row)
                  for place in order.index(example[1], example[0])]
        came = [(item, place) for item, rows in enumerate(items)
                for place, examples in enumerate(rows) if example in examples]
        if None in dict(places).values():
            came = dict.fromkeys((item, None) for item, _ in came)
        if name in UNSEEN:
            assert set(came) <= set(places)
        else:
            assert list(came) == places


def share_of(order, shard, rank):
    """Return the order of a rank."""
    return order.share(rank) if shard.num_shards > 1 else order


@pytest.mark.pipelines
def test_orders_and_logs_say_what_named_pipelines_deliver(
        pipeline, folder, tmp_path):
    """So do steps, and orders of epochs that are to come or are over."""
    make = partial(pipelines.build, pipeline, folder)
    epochs = traced.trace(make, datasets_of, 2, N)
    rows = sum(sum(epochs, []), [])
    assert sum(map(bool, rows)) > len(rows) / 2
    check_log(log_examples(make(), tmp_path / 'log.jsonl'), epochs, pipeline)
    if pipeline not in REFUSING:
        check_orders(make(), epochs, pipeline)


def check_orders(stream, epochs, pipeline):
    """Compare a stream's orders with two epochs that came."""
    shard = stage_of(stream).shard or Shard(0, 1)

    def own(order):
        return share_of(order, shard, shard.rank)

    first = own(stream.order)
    check_order(first, epochs[0], 0, pipeline)
    if not first.goes_on:
        check_order(own(stream.order.epoch(1)), epochs[1], 1, pipeline)
        check_steps(stream.order, shard)
    list(stream)
    check_order(own(stream.order), epochs[1], 1, pipeline)
    running = iter(stream)
    next(running)
    check_order(own(stream.order), epochs[1], 1, pipeline)
    if pipeline in NO_PAST or first.goes_on:
        with pytest.raises(UnknownOrderError, match='of an epoch before'):
            stream.order.epoch(0)
    else:
        assert own(stream.order.epoch(0))[:] == first[:]


def check_steps(order, shard):
    """Compare the steps of two items with the items of two epochs."""
    number = 0
    for epoch in range(2):
        whole = order.epoch(epoch)
        shares = [list(map(list, share_of(whole, shard, rank)))
                  for rank in range(shard.num_shards)]
        rest = list(whole[:])
        for start in range(0, max(map(len, shares)), 2):
            table = order.step(number, 2)
            for rank, items in enumerate(shares):
                found = list(table) if len(shares) == 1 else [
                    example for example, one in zip(
                        table, table.rank, strict=True) if one == rank]
                expected = sum(items[start:start + 2], [])
                # Examples that are repeated, to pad, are left out.
                assert found == expected or (
                    shard.uneven == 'pad' and set(found) < set(expected))
            for example in table:
                rest.remove(example)
            number += 1
        assert not rest or shard.uneven == 'drop'


def check_log(stream, epochs, pipeline):
    """Compare a log with two epochs that came.

    An item whose rows are not known has the examples of the item.
    """
    for _ in epochs:
        list(stream)
    lines = map(json.loads, Path(
        stream.rank_path).read_text('utf-8').splitlines())
    for line, rows in zip(lines, sum(epochs, []), strict=True):
        if 'of_item' in line:
            assert same(set.union(*rows), set(map(tuple, line['examples'])),
                        pipeline)
            continue
        partners = line.get('partners', [None] * len(rows))
        for entry, partner, came in zip(
                line['examples'], partners, rows, strict=True):
            if isinstance(entry[0], list) or partner is not None:
                assert same(came, {tuple(pair) for pair in (
                    entry if partner is None else [entry, partner])},
                    pipeline)
            else:
                assert is_row_of(tuple(entry), came, pipeline)
