"""Shuffles by blocks: those that are computed, and how random an order is."""
import pickle
import tracemalloc

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuel.schemes import (
    BlockShuffledScheme,
    ComputedBlockShuffledScheme,
    OrderMeasure,
    SequentialExampleScheme,
    SequentialScheme,
    ShuffledScheme,
    measure_order,
    measure_windows,
)


def order_of(scheme):
    """Return the examples of the next epoch."""
    return sum(scheme.get_request_iterator(), [])


@given(st.integers(0, 400), st.integers(1, 50), st.integers(1, 60),
       st.integers(1, 9), st.integers(0, 9))
def test_computed_blocks_visit_each_example_once(
        size, batch_size, block_size, window, seed):
    """Each example comes once, and each window has whole blocks."""
    scheme = ComputedBlockShuffledScheme(
        size, batch_size, block_size=block_size, window=window, seed=seed)
    order = order_of(scheme)
    assert list(range(size)) == sorted(order)
    step, seen = block_size * window, set()
    for start in range(0, size, step):
        blocks = {index // block_size for index in order[start:start + step]}
        assert len(blocks) <= window
        assert seen.isdisjoint(blocks)
        seen |= blocks
    assert scheme.num_blocks == len(seen)


def test_computed_blocks_of_one_block_or_one_example():
    """One window is a full shuffle; blocks of one example another."""
    for options in ({'block_size': 1, 'window': 1},
                    {'block_size': 50, 'window': 200},
                    {'block_size': 70000, 'window': 1}):
        order = order_of(ComputedBlockShuffledScheme(
            10000, 100, seed=3, **options))
        assert .9 < measure_order(SequentialScheme(order, 100)).distance < 1.1


def test_computed_blocks_of_given_indices():
    """The order is that of a number of examples."""
    indices = [3 * place + 1 for place in range(1000)]
    places, named = [order_of(ComputedBlockShuffledScheme(
        examples, 64, block_size=30)) for examples in (1000, indices)]
    assert [indices[place] for place in places] == named


def test_computed_blocks_differ_by_seed_and_epoch_only():
    """Two schemes made alike agree, epoch by epoch."""
    def make(seed):
        return ComputedBlockShuffledScheme(500, 64, block_size=30, seed=seed)

    first, second = make(5), make(5)
    epochs = [order_of(first) for _ in range(3)]
    assert epochs == [order_of(second) for _ in range(3)]
    assert epochs[0] != epochs[1] != epochs[2]
    assert epochs[0] != order_of(make(6))
    third = make(5)
    third.load_state_dict({'epoch': 2})
    assert epochs[2] == order_of(third)


def test_computed_blocks_of_a_trillion_take_no_memory():
    """An epoch starts, skips ahead and is pickled at the cost of a window."""
    tracemalloc.start()
    try:
        requests = ComputedBlockShuffledScheme(
            10 ** 12, 64, block_size=1000).get_request_iterator()
        next(requests)
        requests.advance(10 ** 12 // 64 - 3)
        pickled = pickle.dumps(requests)
        last = list(requests)
        assert tracemalloc.get_traced_memory()[1] < 10 ** 6
    finally:
        tracemalloc.stop()
    assert len(pickled) < 1000
    assert last == list(pickle.loads(pickled))


@pytest.mark.parametrize('arguments, error, text', [
    ({'examples': iter([1])}, TypeError, 'list.examples'),
    ({'block_size': 0}, ValueError, 'block_size must be a positive'),
    ({'window': 0}, ValueError, 'window must be a positive'),
    ({'seed': -1}, ValueError, 'seed must not be negative')])
def test_wrong_arguments_of_computed_blocks_are_named(
        arguments, error, text):
    """The constructor raises the error, not the first batch."""
    with pytest.raises(error, match=text):
        ComputedBlockShuffledScheme(**{
            'examples': 4, 'batch_size': 1, 'block_size': 2, **arguments})


LABELS = numpy.repeat(numpy.arange(10), 1000)


def test_windows_that_are_looked_at_beforehand_are_drawn_once(monkeypatch):
    """Any window ahead is drawn once, and the present one stays drawn."""
    drawn = []

    class Counted(numpy.random.RandomState):
        """Notes what it shuffles."""

        def shuffle(self, places):
            """Shuffle, as it would."""
            drawn.append(sorted(places.tolist()))
            super().shuffle(places)

    scheme = BlockShuffledScheme(900, 10, block_size=30, window=3)
    plain = scheme.get_request_iterator()
    requests = pickle.loads(pickle.dumps(plain))
    expected = list(plain)
    monkeypatch.setattr('numpy.random.RandomState', Counted)
    for number in range(90):
        ahead = requests.request_at(number + 50)
        assert ahead == (expected[number + 50] if number < 40 else None)
        assert expected[number] == requests.request_at(number)
    # Each once by who looks ahead, and again by who comes after it.
    assert 20 >= len(drawn)
    assert 10 == len(set(map(str, drawn)))


def test_measure_of_the_two_extremes():
    """They are the order of storage, and a true shuffle."""
    assert OrderMeasure(0., {1: pytest.approx(.999, abs=1e-3)}) == (
        measure_order(SequentialScheme(10000, 64), LABELS, lags=(1,)))
    found = measure_order(ShuffledScheme(10000, 64), LABELS)
    assert pytest.approx(1, abs=.03) == found.distance
    assert [1, 10, 100, 1000] == list(found.autocorrelation)
    assert all(abs(each) < .05 for each in found.autocorrelation.values())


def test_measure_agrees_with_plain_python():
    """It does label by label, distance by distance."""
    scheme = BlockShuffledScheme(60, 7, block_size=5, window=3)
    labels = [place // 20 for place in range(60)]
    found = measure_order(scheme, labels, lags=(2,))
    order = order_of(scheme)
    moved = sum(abs(place - index) for place, index in enumerate(order)) / 60
    assert pytest.approx(moved / ((60 ** 2 - 1) / 180)) == found.distance
    alike = sum(labels[one] == labels[other] for one, other
                in zip(order, order[2:], strict=False)) / 58
    assert pytest.approx((alike - 1 / 3) / (2 / 3)) == (
        found.autocorrelation[2])


def test_measure_leaves_the_scheme_alone():
    """Its next epoch is the one that was measured."""
    scheme, other = ShuffledScheme(50, 8), ShuffledScheme(50, 8)
    measure_order(scheme)
    assert order_of(other) == order_of(scheme)


def test_measure_of_quantities_is_their_correlation():
    """Without labels, the places themselves are the quantities."""
    values = numpy.sin(numpy.arange(400) / 20)
    found = measure_order(SequentialExampleScheme(400), values, lags=(5,))
    expected = numpy.corrcoef(values[5:], values[:-5])[0, 1]
    assert pytest.approx(expected, abs=.02) == found.autocorrelation[5]
    places = measure_order(SequentialExampleScheme(400), lags=(1, 400))
    assert [1] == list(places.autocorrelation)
    assert places.autocorrelation[1] > .98


def test_measure_of_parts_and_of_next_to_nothing():
    """Examples keep their order among those that are visited."""
    assert 0 == measure_order(SequentialScheme([5, 90, 700], 2)).distance
    for count in 0, 1:
        assert OrderMeasure(0., {}) == measure_order(
            SequentialScheme(count, 2), LABELS)
    assert 1 == measure_order(
        SequentialScheme(5, 2), [7] * 5, lags=(1,)).autocorrelation[1]
    assert 1 == measure_order(
        SequentialScheme(5, 2), [.5] * 5, lags=(1,)).autocorrelation[1]


def test_wider_windows_are_more_random():
    """Both numbers say so, up to a full shuffle."""
    found = measure_windows(10000, block_size=100, windows=(1, 4, 16, 100),
                            labels=LABELS[:, None], lags=(1,))
    alike = [each.autocorrelation[1] for each in found.values()]
    assert sorted(alike, reverse=True) == alike
    assert alike[0] > .95
    assert abs(alike[-1]) < .05


def test_labels_that_are_not_one_for_each_example_are_refused():
    """The error has the example that has none."""
    for labels in [1, 2, 3], numpy.zeros((4, 2)):
        with pytest.raises(ValueError, match='one for each example'):
            measure_order(SequentialScheme(4, 2), labels)
    with pytest.raises(ValueError, match='lags must be a positive'):
        measure_order(SequentialScheme(4, 2), lags=(0,))


def test_few_windows_are_kept_of_a_long_epoch():
    """As many are kept as the requests of a group need."""
    requests = BlockShuffledScheme(
        2 ** 17, 2 ** 9, block_size=2 ** 8, window=4).get_request_iterator()
    tracemalloc.start()
    try:
        for _ in requests:
            pass
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 2 ** 18
