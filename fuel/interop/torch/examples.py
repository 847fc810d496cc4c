"""Count the examples that all ranks read in an epoch."""
from __future__ import annotations

from fuel.epochs.readers import known_length
from fuel.epochs.pipeline import length_of
from fuel.epochs.stage import Stage, stage_of
from fuel.schemes.iteration_scheme import ShardedScheme, num_examples_of
from fuel.transformers.batch import Unpack
from fuel.transformers.cache import Cache
from fuel.transformers.several import Chain
from fuel.transformers.shuffling import ShuffleBuffer
from fuel.typing import StreamLike


def count_examples(stream: StreamLike) -> int | None:
    """Return the number of examples in an epoch of all ranks; None if unknown.

    Examples that ranks repeat count once. Examples that ranks leave out count
    too.
    """
    stage = stage_of(stream)
    if stage.dataset is not None:
        return _count_chosen(stage)
    inputs = stage.inputs
    if isinstance(stream, Chain):
        counts = [count_examples(one) for one in inputs]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None
    if not inputs:
        return None
    if stage.one_to_one or isinstance(
            stream, (Cache, ShuffleBuffer, Unpack)):
        return count_examples(inputs[0])
    if stage.shard is not None:
        return None
    if stream.produces_examples:
        return length_of(stream)
    # Batches of examples.
    if len(inputs) == 1 and inputs[0].produces_examples:
        return count_examples(inputs[0])
    return None


def _count_chosen(stage: Stage) -> int | None:
    """Return the number of examples that a stage's scheme chooses.

    Without a scheme, it is the number of the data set's examples.
    """
    scheme = stage.scheme
    if isinstance(scheme, ShardedScheme):
        scheme = scheme.scheme
    if scheme is None:
        return known_length(stage.dataset)
    count = num_examples_of(scheme)
    if isinstance(count, int):
        return count
    return None
