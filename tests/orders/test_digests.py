"""Digests of orders, which no release may change."""
import random

import numpy
import pytest
from support.random_orders import MOST, Build, Tangled, build

from fuel.datasets import IndexableDataset
from fuel.exceptions import UnknownOrderError
from fuel.schemes import (
    BalancedScheme,
    BlockShuffledScheme,
    ComputedBlockShuffledScheme,
    ComputedShuffledExampleScheme,
    ComputedShuffledScheme,
    ConcatenatedScheme,
    ConstantScheme,
    SequentialExampleScheme,
    SequentialScheme,
    ShuffledExampleScheme,
    ShuffledScheme,
    WeightedScheme,
)
from fuel.streams import DataStream
from fuel.transformers import Batch, Mix, Unpack
from fuel.transformers.shuffling import ShuffleBuffer

COUNT = 1000
SCHEMES = {
    'sequential': lambda: SequentialScheme(COUNT, 7),
    'sequential examples': lambda: SequentialExampleScheme(COUNT),
    'shuffled': lambda: ShuffledScheme(COUNT, 7, seed=3),
    'shuffled, sorted': lambda: ShuffledScheme(
        COUNT, 7, seed=3, sorted_indices=True),
    'shuffled, generator': lambda: ShuffledScheme(
        COUNT, 7, rng=numpy.random.default_rng(3)),
    'shuffled examples': lambda: ShuffledExampleScheme(COUNT, seed=3),
    'blocks': lambda: BlockShuffledScheme(
        COUNT, 7, block_size=16, window=4, seed=3),
    'computed': lambda: ComputedShuffledScheme(COUNT, 7, seed=3),
    'computed examples': lambda: ComputedShuffledExampleScheme(COUNT, seed=3),
    'computed blocks': lambda: ComputedBlockShuffledScheme(
        COUNT, 7, block_size=16, window=4, seed=3),
    'weighted': lambda: WeightedScheme(
        numpy.arange(1., COUNT + 1), 7, seed=3),
    'balanced': lambda: BalancedScheme(
        [row % 3 for row in range(COUNT)], 6, seed=3),
    'concatenated': lambda: ConcatenatedScheme([
        SequentialScheme(COUNT, 7), ShuffledScheme(COUNT, 5, seed=3)])}


def stream_of(scheme):
    """Return a stream of a scheme."""
    return DataStream(IndexableDataset({'y': numpy.arange(COUNT)}),
                      iteration_scheme=scheme)


STAGES = {
    'buffer': lambda: ShuffleBuffer(stream_of(
        SequentialExampleScheme(COUNT)), 50, seed=3),
    'mixture': lambda: Mix([stream_of(SequentialScheme(COUNT, 7)), stream_of(
        SequentialScheme(COUNT, 5))], [2, 1], seed=3),
    'batches': lambda: Batch(stream_of(ShuffledExampleScheme(COUNT, seed=3)),
                             ConstantScheme(7)),
    'unpacked': lambda: Unpack(stream_of(SequentialScheme(COUNT, 7)))}
PIPELINES = {**{name: (lambda make=make: stream_of(make()))
                for name, make in SCHEMES.items()}, **STAGES}

# The digests of the first two epochs. A release that changes one of these
# orders breaks the states of its users.
FROZEN = {
    'sequential': (
        2_201_368_212_703_488_465,
        2_201_368_212_703_488_465),
    'sequential examples': (
        2_201_368_212_703_488_465,
        2_201_368_212_703_488_465),
    'shuffled': (
        7_615_744_791_583_120_510,
        11_679_435_625_209_367_888),
    'shuffled, sorted': (
        12_965_679_586_214_180_937,
        13_101_204_346_630_893_638),
    'shuffled, generator': (
        1_853_587_341_598_177_588,
        8_215_203_806_634_872_184),
    'shuffled examples': (
        7_615_744_791_583_120_510,
        11_679_435_625_209_367_888),
    'blocks': (
        8_041_068_075_166_791_658,
        10_697_120_553_692_769_106),
    'computed': (
        1_853_587_341_598_177_588,
        13_756_094_262_310_265_880),
    'computed examples': (
        1_853_587_341_598_177_588,
        13_756_094_262_310_265_880),
    'computed blocks': (
        5_636_731_182_882_419_642,
        4_504_354_777_028_890_695),
    'weighted': (
        10_188_788_839_952_933_883,
        14_501_884_776_840_686_478),
    'balanced': (
        4_648_764_057_882_566_369,
        6_592_506_093_736_318_138),
    'concatenated': (
        4_662_683_494_254_508_347,
        3_525_619_926_315_524_991),
    'buffer': (
        8_854_363_939_753_663_509,
        1_475_085_519_758_140_816),
    'mixture': (
        13_351_069_796_926_054_825,
        11_241_096_460_448_553_771),
    'batches': (
        7_615_744_791_583_120_510,
        11_679_435_625_209_367_888),
    'unpacked': (
        2_201_368_212_703_488_465,
        2_201_368_212_703_488_465),
    'large': 7_330_977_957_854_256_450}


@pytest.mark.parametrize('name', PIPELINES)
def test_no_release_changes_an_order(name):
    """Frozen digests of two epochs are those of today."""
    order = PIPELINES[name]().order
    assert FROZEN[name] == (order.digest(), order.epoch(1).digest())


def test_large_computed_orders_do_not_change():
    """They are computed by another function than those of few examples."""
    order = DataStream(
        IndexableDataset({'y': range(10 ** 12)}),
        iteration_scheme=ComputedShuffledScheme(10 ** 12, 10, seed=3)).order
    assert FROZEN['large'] == order.digest(10 ** 11, 10 ** 11 + 1000)


def expected_digest(ids, start=0):
    """Return the digest of examples, computed with Python's integers."""
    def mix(x):
        x = (x + 0x9E3779B97F4A7C15) % 2 ** 64
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2 ** 64
        x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2 ** 64
        return x ^ (x >> 31)
    return sum(mix(mix(mix(row) + dataset) + place)
               for place, (dataset, row) in enumerate(ids, start)) % 2 ** 64


@pytest.mark.filterwarnings('ignore:the streams merged', 'ignore:an epoch')
@pytest.mark.parametrize('builder', [Build, Tangled])
def test_digests_of_random_pipelines(builder):
    """Digests add up, and are those of the table of the order."""
    known = 0
    for number in range(40):
        order = build(number, builder).order
        try:
            if len(order) > MOST:
                continue
            ids = list(order[:])
        except UnknownOrderError:
            continue
        generator = random.Random(number)
        cut, stop = sorted(generator.randrange(len(ids) + 1)
                           for _ in range(2))
        assert expected_digest(ids) == order.digest()
        assert expected_digest(ids[cut:stop], cut) == order.digest(cut, stop)
        assert order.digest() == (
            order.digest(0, cut) + order.digest(cut)) % 2 ** 64
        known += 1
    assert known > 15


def test_ranks_have_the_digest_of_the_whole_order():
    """Padding and dropping do not matter."""
    for uneven in ('uneven', 'drop', 'pad'):
        for rank in range(3):
            stream = stream_of(ShuffledScheme(COUNT, 7, seed=3)).shard(
                rank, 3, uneven=uneven)
            assert FROZEN['shuffled'][0] == stream.order.digest()
    with pytest.raises(ValueError, match='order of rank 1'):
        stream.order.share(1).digest()


def test_digest_beyond_the_end_is_refused():
    """The error says how many examples there are."""
    order = stream_of(SequentialScheme(10, 3)).order
    assert 0 == order.digest(10)
    with pytest.raises(IndexError, match='10 examples, so example 10'):
        order.digest(0, 11)
    for start in (0, 10, 11, 50):
        with pytest.raises(IndexError, match='10 examples, so example 59'):
            order.digest(start, 60)


@pytest.mark.parametrize('scheme', [
    SequentialScheme(10, 3), SequentialExampleScheme(10),
    ConcatenatedScheme([SequentialScheme(6, 3), SequentialScheme(4, 2)]),
    SequentialScheme(0, 3)])
def test_digest_that_begins_beyond_the_end_is_refused(scheme):
    """For any sizes of batches; the range that begins at the end is empty."""
    order = stream_of(scheme).order
    count = len(list(order[:]))
    assert 0 == order.digest(count) == order.digest(count, count)
    for start in (count + 1, count + 50):
        with pytest.raises(IndexError, match=(
                f'has {count} examples.*range from {start} on is beyond its '
                f'end: start may be at most {count}')):
            order.digest(start)
        with pytest.raises(IndexError, match=f'has {count} examples'):
            order.digest(start, start)


def test_rows_that_are_not_integers_have_digests():
    """Their text is hashed."""
    def digest(rows):
        return DataStream(
            IndexableDataset({'y': numpy.arange(4)}),
            iteration_scheme=SequentialExampleScheme(rows)).order.digest()
    assert digest(['a', 'b']) != digest(['b', 'a'])
    assert digest(['a', 'b']) == digest(list(numpy.array(['a', 'b'])))
