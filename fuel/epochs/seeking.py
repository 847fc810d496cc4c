"""Decides whether items of a pipeline can be skipped or sought unread.

An item can be skipped where each stage makes one item of one; it can be sought
where the requests are known by their numbers too.
"""
from __future__ import annotations

from collections.abc import Sequence

from fuel.epochs.stage import Stage, stage_of
from fuel.schemes.iteration_scheme import (
    batch_size_of, chooses_examples, is_random_access, num_requests_of)
from fuel.typing import SchemeLike, StreamLike

# The consequence for stages that workers run, and remedies.
_NOT_SHARED = 'so several workers cannot share it'
_NOT_SHARED_INSTEAD = ('put it behind MultiProcessing', 'use num_workers=1')


# Of single examples that a stream may leave out.
_LEAVES_OUT = (
    "a stream of examples with on_error='skip' leaves out some",
    ['let the data stream make batches, by its batch_size'])


def require_one_to_one(stream: StreamLike, consequence: str = _NOT_SHARED,
                     instead: Sequence[str] = _NOT_SHARED_INSTEAD) -> None:
    """Refuse a pipeline if some items cannot be made by themselves."""
    stage = stage_of(stream)
    leaves_out = (stage.dataset is not None and stage.most_skipped > 0
                  and stage.stream.produces_examples)
    if leaves_out or not stage.one_to_one:
        reason, remedies = (why_not_one_to_one(stage)
                            if not leaves_out else _LEAVES_OUT)
        ways = ', or '.join([*remedies, *instead])
        raise ValueError(f'{reason}, {consequence}{ways and f": {ways}"}')
    for child in stage.inputs:
        require_one_to_one(child, consequence, instead)


def is_skippable(stream: StreamLike) -> bool:
    """Return whether items of a pipeline can be skipped without reading."""
    stage = stage_of(stream)
    return stage.one_to_one and all(map(is_skippable, stage.inputs))


def why_not_one_to_one(stage: Stage) -> tuple[str, list[str]]:
    """Return the reason, and what removes it."""
    if stage.dataset is not None:
        return (f'the stream {stage.name} over '
                f'{type(stage.dataset).__name__} is read in order'), [
                    'give it an iteration scheme']
    if stage.generator is not None:
        return (f'what the stage {stage.name} draws depends on the batches '
                'before'), [
                    'give it seed= instead', 'use a stage that takes seed=']
    # Batches of examples, which a data set can make as well.
    makes_batches = not stage.stream.produces_examples and any(
        child.produces_examples for child in stage.inputs)
    return (f'the stage {stage.name} does not make one item of each that it '
            'reads, or keeps things from one item to the next'), (
        ['let the data stream make batches, by its batch_size']
        if makes_batches else [])


def can_seek(stream: StreamLike, forward: bool = False) -> bool:
    """Return whether an epoch can go to any of its items at once; if
    `forward`, whether it can to those that follow."""
    waiting = [stream]
    while waiting:
        stage = stage_of(waiting.pop())
        if not stage.one_to_one:
            return False
        if stage.dataset is not None:
            # Not how many are left out before an example.
            if not _is_known(stage.scheme) or (
                    stage.most_skipped and stage.stream.produces_examples):
                return False
            continue
        inputs = stage.inputs
        if not inputs or not (forward or stage.goes_back):
            return False
        waiting += inputs
    return True


def batch_size_below(stream: StreamLike) -> int | None:
    """Return the size of the batches of a stream if some of their rows can
    be read without the others; else None."""
    stage = stage_of(stream)
    if stage.stream.produces_examples or stage.reads_several or (
            stage.most_skipped or not can_seek(stream)):
        return None
    if stage.dataset is not None:
        return batch_size_of(stage.scheme)
    return (batch_size_below(stage.inputs[0]) if stage.keeps_rows
            else None)


def can_seek_rows(stream: StreamLike) -> bool:
    """Return whether an epoch can give some rows of any of its batches."""
    return batch_size_below(stream) is not None


def _is_known(scheme: SchemeLike | None) -> bool:
    """Return whether any request of a scheme is known by its number."""
    return (is_random_access(scheme) and chooses_examples(scheme)
            and num_requests_of(scheme) is not None)
