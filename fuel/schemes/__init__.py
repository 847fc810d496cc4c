"""Iteration schemes: which examples to visit, and in which order."""
from fuel.schemes.computed import (
    ComputedBlockShuffledScheme, ComputedShuffledExampleScheme,
    ComputedShuffledScheme)
from fuel.schemes.iteration_scheme import (
    BatchScheme, BatchSizeScheme, IndexScheme, IterationScheme, ShardedScheme)
from fuel.schemes.ordered import (
    ConcatenatedScheme, ConstantScheme, SequentialExampleScheme,
    SequentialScheme, ShuffledExampleScheme, ShuffledScheme, cross_validation)
from fuel.schemes.order_measure import (OrderMeasure, measure_order,
                                        measure_windows)
from fuel.schemes.sampling import (BalancedScheme, BlockShuffledScheme,
                                   WeightedScheme)
from fuel.schemes.shard import Shard

__all__ = [
    'BalancedScheme', 'BatchScheme', 'BatchSizeScheme',
    'BlockShuffledScheme', 'ComputedBlockShuffledScheme',
    'ComputedShuffledExampleScheme', 'ComputedShuffledScheme',
    'ConcatenatedScheme', 'ConstantScheme', 'IndexScheme', 'IterationScheme',
    'OrderMeasure', 'SequentialExampleScheme', 'SequentialScheme', 'Shard',
    'ShardedScheme', 'ShuffledExampleScheme', 'ShuffledScheme',
    'WeightedScheme', 'cross_validation', 'measure_order',
    'measure_windows']

# Classes are pickled, and shown, under the name that users import.
for _name in __all__:
    globals()[_name].__module__ = __name__
