"""The tokens of the step whose batch a pipeline has delivered last."""
from __future__ import annotations

import threading
from typing import Any

from fuel.epochs.stage import Stage, stage_of
from fuel.exceptions import UnknownOrderError
from fuel.typing import StreamLike


class StepCount:
    """The tokens of the step to which the last batch of an epoch belongs.

    `is_passed`: whether batches are delivered later than they are made, or
        joined: a stage that is not one-to-one reads them.
    """

    is_passed = False
    _found: tuple[int, int] | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Threads have other numbers in another process.
        return {'is_passed': self.is_passed}

    def set(self, tokens: int) -> None:
        """Set the tokens of the batch that was made now."""
        self._found = tokens, threading.get_ident()

    def get(self) -> int | None:
        """Return the tokens; None if the batch may not be the delivered
        one."""
        if self._found is None or self.is_passed:
            return None
        tokens, thread = self._found
        # Another thread may read ahead.
        return tokens if thread == threading.get_ident() else None


def step_tokens_of(stream: StreamLike) -> Any:
    """Return the tokens of the step to which the last batch of a stream
    belongs, or the attribute `step_tokens` that a user has assigned.

    Raises: UnknownOrderError if the batch that was made last may not be the
        one that was delivered, AttributeError if no BalancedBatches is read.
    """
    own = vars(stream)
    if 'step_tokens' in own:
        return own['step_tokens']
    stage = stage_of(stream)
    is_known = stage.epoch is not None and (
        stage.epoch.step_count is not None)
    # Several iterators may read in turns: the last batch counts.
    found = _counted(stage).get() if is_known else None
    if found is not None:
        return found
    if not _is_balanced(stage):
        raise AttributeError(
            f'{stage.name} has no step_tokens, since it reads no '
            'BalancedBatches', name='step_tokens', obj=stream)
    raise UnknownOrderError(
        f'step_tokens of {stage.name} is not known: it is that of the '
        'last batch that this very object has made, if the same thread '
        'reads it, and all stages above BalancedBatches make an item of '
        'one item and read nothing ahead. Ask the outermost stream that '
        'is iterated, such as the one that shard() returned; elsewhere, '
        'as over workers, read the source that '
        "MarkExamples(..., tokens='step_tokens') adds")


def _counted(stage: Stage) -> StepCount:
    """Return the count of the batch that was made last, below one-to-one
    stages."""
    while '_step_count' not in vars(stage.stream):
        stage = stage_of(stage.inputs[0])
    found: StepCount = vars(stage.stream)['_step_count']
    return found


def _is_balanced(stage: Stage) -> bool:
    """Return whether a stage, or a stage below it, counts tokens of steps."""
    return any('_step_count' in vars(base)
               for base in type(stage.stream).__mro__) or any(
                   _is_balanced(stage_of(one)) for one in stage.inputs)
