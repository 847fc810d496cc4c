"""Every scheme keeps the promises of every scheme."""
import random

import numpy
import pytest

from fuel.schemes import (
    BalancedScheme,
    BlockShuffledScheme,
    ComputedBlockShuffledScheme,
    ConcatenatedScheme,
    ConstantScheme,
    SequentialExampleScheme,
    SequentialScheme,
    ShuffledExampleScheme,
    ShuffledScheme,
    WeightedScheme,
    cross_validation,
)
from fuel.testing import SCHEME_PROMISES, check_scheme

SCHEMES = {
    'SequentialScheme': lambda: SequentialScheme(14, 4),
    'SequentialScheme list': lambda: SequentialScheme([3, 3, 1, 9], 3),
    'SequentialScheme array': lambda: SequentialScheme(numpy.arange(7), 3),
    'ShuffledScheme': lambda: ShuffledScheme(14, 4),
    'ShuffledScheme sorted': lambda: ShuffledScheme(
        14, 4, sorted_indices=True),
    'ShuffledScheme Generator': lambda: ShuffledScheme(
        14, 4, rng=numpy.random.default_rng(3)),
    'ShuffledScheme Random': lambda: ShuffledScheme(
        14, 4, rng=random.Random(3)),
    'SequentialExampleScheme': lambda: SequentialExampleScheme(9),
    'ShuffledExampleScheme': lambda: ShuffledExampleScheme([4, 2, 8]),
    'BlockShuffledScheme': lambda: BlockShuffledScheme(
        14, 4, block_size=3, window=2),
    'ComputedBlockShuffledScheme': lambda: ComputedBlockShuffledScheme(
        14, 4, block_size=3, window=2),
    'WeightedScheme': lambda: WeightedScheme(range(1, 9), 4),
    'BalancedScheme': lambda: BalancedScheme([0, 1] * 7, 4),
    'ConcatenatedScheme': lambda: ConcatenatedScheme(
        [ShuffledScheme(9, 4), SequentialScheme([9, 13], 2)]),
    'ConstantScheme': lambda: ConstantScheme(4, times=3),
    'ConstantScheme of examples': lambda: ConstantScheme(4, 10),
    'ConstantScheme endless': lambda: ConstantScheme(4),
    'cross_validation': lambda: next(cross_validation(
        SequentialExampleScheme, 12, 3))[0],
}


@pytest.mark.parametrize('promise', SCHEME_PROMISES)
@pytest.mark.parametrize('name', SCHEMES)
def test_scheme_keeps_promise(name, promise):
    """Fuel's own schemes keep the promises of users' schemes."""
    check_scheme(SCHEMES[name], promises=[promise])
