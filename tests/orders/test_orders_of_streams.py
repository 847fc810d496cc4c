"""`stream.order` says which examples each item of an epoch is made of.

The oracle is the data: each row holds its number and its data set.
"""
import copy
import json
import pickle
import random
import sys
from contextlib import suppress
from functools import partial
from itertools import islice

import numpy
import pytest
from support import random_orders
from support.random_orders import MOST, build

from fuel.datasets import IndexableDataset, IterableDataset
from fuel.exceptions import StateMismatchError, UnknownOrderError
from fuel.orders import ExamplePlace
from fuel.schemes import (
    ComputedShuffledScheme,
    SequentialScheme,
    ShuffledScheme,
)
from fuel.schemes.shard import Shard
from fuel.streams import DataStream
from fuel.transformers import (
    Filter,
    Mapping,
    Merge,
    Mix,
    MultiProcessing,
    MultiThreading,
)

pytestmark = pytest.mark.filterwarnings(
    'ignore:the streams merged', 'ignore:an epoch')
BUILDERS = [random_orders.Build, random_orders.Tangled]


def rows_of(item):
    """Return the rows of an item that was delivered, of its first source."""
    return numpy.atleast_1d(numpy.asarray(item[0])).tolist()


def said(table, starts):
    """Return what the rows of a table hold."""
    return [starts[dataset] + row for dataset, row in table]


def known_order(stream):
    """Return the order of a stream, None if it is not known or never ends."""
    order = stream.order
    try:
        return order if len(order) <= MOST else None
    except UnknownOrderError:
        return None


def stream_of(count=10, size=3, **kwargs):
    """Return a stream whose rows are their numbers."""
    return DataStream(IndexableDataset({'y': numpy.arange(count)}),
                      batch_size=size, **kwargs)


@pytest.mark.parametrize('builder', BUILDERS)
def test_tables_say_what_random_pipelines_deliver(builder):
    """Tables hold for each epoch, from before it begins to its last item."""
    known = 0
    for number in range(40):
        stream = build(number, builder)
        starts = random_orders.starts_of(stream)
        for epoch in range(3):
            before = known_order(stream)
            if before is None:
                break
            try:
                table = before[:]
            except UnknownOrderError:
                # A mixture below it goes on where it was left.
                break
            iterator, found = iter(stream), []
            try:
                found += islice(iterator, 2)
                during = stream.order
                found += iterator
            except ValueError:
                # Parts that stand beside each other differ in size.
                break
            assert len(before) == len(found)
            assert before.epoch_number == epoch
            assert said(table, starts) == sum(map(rows_of, found), [])
            assert [said(one, starts) for one in before] == list(
                map(rows_of, found))
            if len(found) > 2:
                assert during.epoch_number == epoch
                assert said(during[-1], starts) == rows_of(found[-1])
            known += 1
    assert known > 40


@pytest.mark.parametrize('by', ['batch', 'example'])
@pytest.mark.parametrize('uneven', ['uneven', 'drop'])
def test_column_rank_names_the_rank_that_gets_a_row(by, uneven):
    """An example that `drop` leaves out has the rank -1."""
    shared = 0
    for number in range(80):
        for ranks in (1, 2, 3):
            streams = []
            try:
                for rank in range(ranks):
                    stream = build(number)
                    streams.append(stream.shard(
                        rank, ranks, by=by, uneven=uneven))
                delivered = [sum(map(rows_of, islice(one, MOST)), [])
                             for one in streams]
            except (TypeError, ValueError, NotImplementedError):
                continue
            order = known_order(build(number).shard(
                0, ranks, by=by, uneven=uneven))
            if order is None:
                continue
            starts = random_orders.starts_of(build(number))
            table = order[:]
            for rank, found in enumerate(delivered):
                share = order.share(rank)
                assert found == said(share[:], starts)
                assert set(share[:].rank.tolist()) <= {rank}
                if 'rank' in table.columns:
                    assert found == [row for row, one in zip(
                        said(table, starts), table.rank.tolist(),
                        strict=True) if one == rank]
                    shared += 1
    assert shared > 10


def trained(make, ranks, accumulate, stops):
    """Return the streams of all ranks after a training, and the examples of
    each of its steps.

    `stops`: for each epoch, how many rounds are trained; None for all.
    """
    streams = [make(rank) for rank in range(ranks)]
    steps = []
    for stop in stops:
        iterators = list(map(iter, streams))
        rounds = []
        while stop is None or len(rounds) < stop:
            items = [list(islice(one, 1)) for one in iterators]
            if not any(items):
                break
            rounds.append([(rank, row) for rank, found in enumerate(items)
                           for item in found for row in rows_of(item)])
        steps += [sorted(sum(rounds[first:first + accumulate], []))
                  for first in range(0, len(rounds), accumulate)]
    return streams, steps


@pytest.mark.parametrize('accumulate', [1, 2, 3])
@pytest.mark.parametrize('ranks, by', [
    (1, 'batch'), (2, 'batch'), (3, 'example'), (3, 'batch')])
@pytest.mark.parametrize('scheme', [
    lambda: ShuffledScheme(22, 3, seed=5),
    lambda: ShuffledScheme(22, 4),
    lambda: ComputedShuffledScheme(22, 3, seed=1),
    lambda: SequentialScheme(22, 5),
    lambda: ShuffledScheme(22, 4, drop_last=True)])
def test_steps_are_those_of_a_training(ranks, by, accumulate, scheme):
    """Epochs that were left count as far as they were trained; each rank says
    the same, as does a stream that loads the state."""
    generator = random.Random(f'{ranks} {by} {accumulate}')
    stops = [*[generator.choice([None, 1, 2, 3]) for _ in range(5)], None]

    def make(rank):
        return DataStream(
            IndexableDataset({'y': numpy.arange(22)}),
            iteration_scheme=scheme(), shard=Shard(rank, ranks, by))

    streams, steps = trained(make, ranks, accumulate, stops)
    restored = make(ranks - 1)
    restored.load_state_dict(json.loads(json.dumps(streams[0].state_dict())))
    for stream in [*streams, restored]:
        order = stream.order
        assert order.epoch_number == len(stops)
        for number, expected in enumerate(steps):
            table = order.step(number, accumulate)
            found = table.row.tolist()
            held = table.rank.tolist() if ranks > 1 else [0] * len(found)
            assert expected == sorted(zip(held, found, strict=True))


def test_steps_to_come_are_those_of_a_training():
    """They are known before the first epoch."""
    order = stream_of(shuffle=True, seed=3).shard(0, 2).order
    _, steps = trained(lambda rank: stream_of(shuffle=True, seed=3).shard(
        rank, 2), 2, 2, [None] * 4)
    for number, expected in enumerate(steps):
        table = order.step(number, 2)
        assert expected == sorted(zip(
            table.rank.tolist(), table.row.tolist(), strict=True))


def test_steps_of_a_mixture_whose_epochs_differ_in_length():
    """Each epoch is counted."""
    def make(rank=0):
        return Mix([stream_of(9, 2, shuffle=True, seed=4),
                    stream_of(9, 2, shuffle=True, seed=5)],
                   seed=2, stop='first')
    _, steps = trained(make, 1, 2, [None] * 5)
    order = make().order
    assert len({len(order.epoch(number)) for number in range(5)}) > 1
    for number, expected in enumerate(steps):
        assert [row for _, row in expected] == sorted(
            order.step(number, 2).row.tolist())


def test_earlier_epochs_are_drawn_again_from_the_seed():
    """Not if the generator was given, or has drawn for something else."""
    for kwargs in ({'seed': 9}, {}):
        stream = stream_of(shuffle=True, **kwargs)
        epochs = [sum(map(rows_of, stream), []) for _ in range(4)]
        iterator = iter(stream)
        next(iterator)
        for number, expected in enumerate(epochs):
            assert expected == stream.order.epoch(number)[:].row.tolist()
    rng = numpy.random.RandomState(9)
    for scheme in (ShuffledScheme(10, 3, rng=rng),
                   ShuffledScheme(10, 3, seed=9)):
        stream = DataStream(stream_of().dataset, iteration_scheme=scheme)
        list(stream)
        scheme.rng.random_sample()
        list(stream)
        with pytest.raises(UnknownOrderError, match='seed does not lead'):
            stream.order.epoch(0)


def test_earlier_epochs_of_computed_orders_are_known():
    """Stages above do not matter."""
    stream = Mapping(DataStream(
        IndexableDataset({'y': numpy.arange(10)}),
        iteration_scheme=ComputedShuffledScheme(10, 4, seed=1)), tuple)
    stream.keeps_rows = True
    epochs = [list(map(rows_of, stream)) for _ in range(3)]
    assert epochs == [[table.row.tolist() for table in stream.order.epoch(
        number)] for number in range(3)]


def test_order_that_depends_on_the_data_names_the_stage():
    """The error says by what the examples are known, too."""
    stream = Filter(stream_of(), lambda data: True)
    assert 'Filter' in repr(stream.order)
    for ask in (len, list, lambda order: order[0],
                lambda order: order.step(0), lambda order: order.epoch(1),
                lambda order: order.index(0)):
        with pytest.raises(UnknownOrderError, match='Filter.*MarkExamples'):
            ask(stream.order)


def test_index_finds_all_places_of_an_example():
    """Several data sets have numbers."""
    stream = stream_of(shuffle=True, seed=1)
    places = stream.order.index(7)
    assert [7] == [stream.order[place.item].row[place.row]
                   for place in places]
    assert places[0].epoch == 0
    mixed = Mix([stream_of(4, 2), stream_of(6, 2)], seed=1, stop='last')
    with pytest.raises(ValueError, match=r'2 data sets: pass dataset, one of '
                       r'0 \(IndexableDataset\), 1'):
        mixed.order.index(5)
    (place,) = mixed.order.index(5, dataset=1)
    assert (1, 5) in list(mixed.order[place.item])
    assert mixed.order.index(5, dataset=0) == []
    with pytest.raises(ValueError, match='from 0 to 1, got 2'):
        mixed.order.index(5, dataset=2)
    assert isinstance(place, ExamplePlace)


def test_epoch_without_end_is_searched_to_an_item():
    """The search would not end otherwise."""
    def make():
        return Mix([stream_of(), stream_of(14, 2)], seed=1, stop='forever')
    for order in (make().order, make().order.share(0, 2)):
        with pytest.raises(ValueError, match='no known end.*pass stop'):
            order.index(3, 0)
        places = order.index(3, 0, stop=30)
        assert places == [place for place in order.index(3, 0, stop=60)
                          if place.item < 30]
        assert len(places) > 1
    order = stream_of().order
    assert order.index(7) == order.index(7, stop=numpy.int64(3))
    assert [] == order.index(7, stop=2)
    with pytest.raises(ValueError, match='stop must not be negative'):
        order.index(7, stop=-1)


def test_questions_about_all_items_need_an_end():
    """They would not return."""
    endless = Mix([stream_of(), stream_of(14, 2)], seed=1,
                  stop='forever').order
    for ask in (lambda: endless[:], lambda: endless[-1:], endless.digest):
        with pytest.raises(ValueError, match='no known end.*pass stop'):
            ask()
    assert 2 == len({*endless[3:5].item.tolist()})
    unknown = DataStream(IterableDataset({'y': iter(range(5))})).order
    for ask in (lambda: unknown[:], unknown.digest, lambda: list(unknown)):
        with pytest.raises(UnknownOrderError, match='how many items'):
            ask()
    order = stream_of().order
    with pytest.raises(ValueError, match='must not be below start, 5, got 3'):
        order.digest(5, 3)
    with pytest.raises(ValueError, match='stop must not be negative'):
        order.digest(0, -1)


def test_far_epochs_of_computed_orders_are_found_at_once():
    """The epochs between are not made, also while an epoch is running."""
    def make():
        return Merge([DataStream(
            IndexableDataset({'y': numpy.arange(23)}),
            iteration_scheme=ComputedShuffledScheme(23, 4, seed=seed))
            for seed in (1, 2)], ('a', 'b'))
    stream = make()
    delivered = [list(map(rows_of, stream)) for _ in range(5)]
    stream = make()
    for _ in range(3):
        iterator = iter(stream)
        for _ in range(2):
            assert delivered == [
                [table.row.tolist() for table in stream.order.epoch(epoch)]
                for epoch in range(5)]
            list(islice(iterator, 4))
        list(iterator)
    assert 23 == len({*stream.order.epoch(10 ** 15)[:].row.tolist()})


def test_iterator_that_is_not_fuels_has_no_order():
    """A generator may change what is delivered."""
    class Own(Mapping):
        def get_epoch_iterator(self, as_dict=False):
            yield from list(super().get_epoch_iterator(as_dict=as_dict))[1:]

    with pytest.raises(UnknownOrderError, match='makes no DataIterator'):
        len(Own(stream_of(), tuple).order)

    class Listed(Mapping):
        def get_epoch_iterator(self, as_dict=False):
            return iter(list(super().get_epoch_iterator(as_dict=as_dict)))

    with pytest.raises(TypeError, match='return a DataIterator, got list'):
        Listed(stream_of(), tuple).iterate_from(step=1)


def test_steps_of_a_share_are_those_of_its_ranks():
    """The share may be of other ranks than the stream."""
    order, share = (stream_of().shard(0, 4).order,
                    stream_of().order.share(1, 4))
    for number in range(3):
        assert order.step(number) == share.step(number)
    assert order.epoch(1).step(2) == share.epoch(1).step(2)


def test_order_of_a_stream_behind_workers():
    """The epochs are counted in this process."""
    for stream in (MultiThreading(stream_of(shuffle=True, seed=1)),
                   MultiProcessing(stream_of(shuffle=True, seed=1),
                                   num_workers=2, start_method='fork')):
        with stream:
            epochs = [list(map(rows_of, stream)) for _ in range(2)]
            state = json.loads(json.dumps(stream.state_dict()))
            assert 2 == stream.order.epoch_number
            assert epochs == [[table.row.tolist() for table in
                               stream.order.epoch(number)]
                              for number in range(2)]
        plain = stream_of(shuffle=True, seed=1)
        plain.load_state_dict(state)
        assert 2 == plain.order.epoch_number


def test_users_classes_may_have_the_attribute():
    """One assigns it in its constructor, one has it in its class."""
    class Assigning(DataStream):
        def __init__(self, *args, **kwargs):
            self.order = 'mine'
            super().__init__(*args, **kwargs)

    class Declaring(DataStream):
        order = 'mine'

    for cls in (Assigning, Declaring):
        stream = cls(IndexableDataset({'y': numpy.arange(4)}), batch_size=2)
        assert 'mine' == stream.order
        assert 'mine' == stream.shard(0, 2).order
        assert [[0, 1], [2, 3]] == list(map(rows_of, stream))


def test_pickled_streams_keep_the_number_of_the_epoch():
    """So do orders that are pickled."""
    stream = stream_of(shuffle=True, seed=1)
    list(stream)
    copied = pickle.loads(pickle.dumps(stream))
    assert 1 == copied.order.epoch_number
    assert stream.order[:] == copied.order[:]
    assert stream.order[:] == pickle.loads(pickle.dumps(stream.order))[:]
    assert stream.order[:] != stream.order.epoch(2)[:]
    iterator = iter(copied)
    next(iterator)
    assert 1 == copied.order.epoch_number
    assert 2 == pickle.loads(pickle.dumps(copied)).order.epoch_number


def test_ranks_save_the_same_epochs():
    """They do at any place of an epoch, also at its end."""
    streams = [stream_of(11, 2).shard(rank, 4) for rank in range(4)]
    for _ in range(2):
        for stream in streams:
            list(stream)
        assert 1 == len({stream.state_dict()['past'] for stream in streams})


def test_state_that_lacks_the_epochs_loads():
    """The number of its epoch is not known then, and stays so."""
    stream, restored = stream_of(shuffle=True, seed=1), stream_of(
        shuffle=True, seed=1)
    iterator = iter(stream)
    next(iterator)
    state = stream.state_dict()
    del state['past'], state['crc']
    restored.load_state_dict(state)
    assert list(map(rows_of, restored)) == list(map(rows_of, iterator))
    assert restored.order.epoch_number is None
    assert 'past' not in restored.state_dict()
    for copied in (pickle.loads(pickle.dumps(restored)), copy.copy(restored),
                   restored.shard(0, 1)):
        assert copied.order.epoch_number is None
    for ask in (lambda order: order.step(0), lambda order: order.epoch(0)):
        with pytest.raises(UnknownOrderError, match='older version'):
            ask(restored.order)
    assert 4 == len(restored.order)


@pytest.mark.parametrize('value', [
    3, None, ['all'], 'all*', '*3', 'all all*x', ' all', 'all ', 'x',
    '1' * 3000, '-1', 'all*-1', 'all\n', 'all*' + '9' * 18, '\u0663',
    'all*\u0663', 'all*0', '007', numpy.arange(2)])
def test_damaged_epochs_are_refused(value):
    """A state comes from somebody else."""
    stream = stream_of()
    state = stream.state_dict()
    del state['crc']
    with pytest.raises(StateMismatchError, match="field 'past'"):
        stream.load_state_dict({**state, 'past': value})


def test_a_state_stays_small_over_many_epochs():
    """Of many epochs that were left, only later numbers of items are kept."""
    stream, generator = stream_of(100, 1), random.Random(1)
    for _ in range(2000):
        iterator = iter(stream)
        for _ in range(generator.randrange(9)):
            next(iterator)
    list(iterator)
    assert len(stream.state_dict()['past']) <= 2000
    stream.load_state_dict(stream.state_dict())
    assert 2000 == stream.order.epoch_number
    with pytest.raises(UnknownOrderError, match='were dropped'):
        stream.order.step(0)


def test_wrong_numbers_are_refused():
    """Each error says what exists."""
    order = stream_of().order
    with pytest.raises(IndexError, match='4 items, numbered from 0; there is '
                       'no item 4'):
        order[4]
    with pytest.raises(IndexError, match='no item -5'):
        order[-5]
    for ask in (order.epoch, order.step):
        with pytest.raises(ValueError, match='-1'):
            ask(-1)
    with pytest.raises(ValueError, match='accumulate'):
        order.step(0, 0)
    with pytest.raises(ValueError, match='rank 0 already'):
        order.share(0, 2).share(0, 2)
    with pytest.raises(IndexError, match='epoch 0 has no items'):
        stream_of(0).order.step(3)


def test_tables_show_themselves():
    """Long ones show their ends."""
    table = stream_of(30, 10).order[:]
    assert [
        'items 0 to 2 of 3 in epoch 0: 30 examples', 'item  dataset  row',
        '   0        0    0'] == repr(table).splitlines()[:3]
    assert ['   2        0   29', 'dataset 0: IndexableDataset'] == repr(
        table).splitlines()[-2:]
    assert 14 == len(repr(table).splitlines())
    assert '<td' in table._repr_html_()
    assert 30 == len(table)
    with pytest.raises(AttributeError, match="no column 'rank'.*'row'"):
        table.rank  # noqa: B018
    assert (0, 0) == next(iter(table))
    empty = stream_of().order[2:2]
    assert 0 == len(empty)
    assert 'no items of 4' in repr(empty)


def test_data_frames_need_pandas(monkeypatch):
    """The error names the package; the frames are tested where it is."""
    monkeypatch.setitem(sys.modules, 'pandas', None)
    with pytest.raises(ModuleNotFoundError) as raised:
        stream_of().order[:].to_pandas()
    assert ['to_pandas() needs pandas: pip install pandas'] == (
        raised.value.__notes__)


def test_order_of_data_read_in_order():
    """The n-th example is the n-th that the data set gives."""
    stream = DataStream(IterableDataset({'y': range(5)}))
    assert 5 == len(stream.order)
    assert [0, 1, 2, 3, 4] == stream.order[:].row.tolist()


def test_asking_changes_nothing():
    """Every question leaves the stream as it is."""
    make = next(partial(build, number) for number in range(9, 99)
                if len(known_order(build(number)) or ()) > 3)
    plain, stream = make(), make()
    for _ in range(3):
        ours = []
        for item in stream:
            ours.append(rows_of(item))
            order = stream.order
            repr(order)
            list(islice(order, 3))
            with suppress(UnknownOrderError, IndexError):
                order.step(5)
        assert ours == list(map(rows_of, plain))
    assert plain.state_dict() == stream.state_dict()


def test_steps_are_not_counted_over_any_number_of_epochs():
    """A state comes from somebody else, and may name any number."""
    stream = Mix([stream_of(9, 2), stream_of(9, 2)], seed=2, stop='first')
    state = stream.state_dict()
    del state['crc']
    stream.load_state_dict({**state, 'past': 'all*90000000000'})
    with pytest.raises(UnknownOrderError, match='90000000000 epochs'):
        stream.order.step(5)


def test_far_epochs_are_not_drawn(monkeypatch):
    """Forward and back, a number of epochs would take for ever; so would
    steps of epochs of different lengths."""
    monkeypatch.setattr('fuel.sharding.far_epochs.MOST_DRAWN', 6)
    monkeypatch.setattr('fuel.orders.steps.MOST_DRAWN', 6)
    stream = stream_of(shuffle=True, seed=9)
    order = stream.order
    assert 10 == len(order.epoch(6)[:])
    with pytest.raises(UnknownOrderError, match='drawing 999994 epochs'):
        order.epoch(10 ** 6)
    with pytest.raises(UnknownOrderError, match='at most 6 are drawn'):
        order.step(10 ** 15)
    state = stream.state_dict()
    del state['crc']
    stream.load_state_dict({**state, 'past': 'all*90000000000'})
    with pytest.raises(UnknownOrderError, match='drawing 80000000000 epochs'):
        stream.order.epoch(8 * 10 ** 10)
    mixed = Mix([stream_of(9, 2, shuffle=True, seed=4),
                 stream_of(9, 2, shuffle=True, seed=5)], seed=2, stop='first')
    with pytest.raises(UnknownOrderError, match='differ in length'):
        mixed.order.step(10 ** 15)


def test_wrong_data_sets_and_examples_are_refused():
    """Each error says what was expected."""
    order = stream_of().order
    with pytest.raises(TypeError, match="dataset must be .*, got 'a'"):
        order.index(1, dataset='a')
    for first, stop in ((-5, 3), (3, 3), (4, 2)):
        with pytest.raises(ValueError, match=f'got {first} to {stop - 1}'):
            order.items_of_examples(first, stop)
    with pytest.raises(ValueError, match='accumulate'):
        order.items_of_examples(0, 1, 0)


def test_title_of_a_slice_names_its_step():
    """Items that are left out are not named."""
    assert 'items 0 to 2 in steps of 2 of 4' in repr(stream_of().order[::2])
    assert 'items 3 to 0 in steps of -1 of 4' in repr(
        stream_of().order[::-1])


def test_order_that_was_assigned_may_be_deleted():
    """Then the attribute is the order of the stream again."""
    stream = stream_of()
    stream.order = 'mine'
    assert 'mine' == pickle.loads(pickle.dumps(stream)).order
    del stream.order
    assert 4 == len(stream.order)
