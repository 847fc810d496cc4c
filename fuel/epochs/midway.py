"""States that are asked for while an item is being made.

A signal handler runs between any two steps of Python, and may ask for the
state of a stream whose epoch this thread is in the middle of.
"""
from __future__ import annotations

from typing import Any

from fuel.epochs.stage import stage_of
from fuel.kernels.epoch_iterator import EpochIterator, meters_in_use
from fuel.kernels.stage_reader import StageReader

ADVICE = ('a signal handler must not save a state: let it set a flag, and '
          'save in the loop, after the batch (see "Before a job is ended" in '
          'the manual, on the page about resuming)')


def refuse_midway(stream: Any, epoch: Any) -> None:
    """Refuse a state that is asked for in the middle of something.

    What workers or a server make is known at any time in which they are
    waited for, also behind stages that keep nothing.

    `epoch`: the one whose state is wanted; None if there is none.
    """
    if stage_of(stream).changing:
        raise RuntimeError(
            f'the state of {type(stream).__name__} was asked for while an '
            f'epoch begins or a state is loaded: {ADVICE}')
    meters = meters_in_use()
    name = type(stream).__name__
    while meters and stage_of(stream).meter in meters:
        stage = stage_of(stream)
        if stage.is_remote:
            if stage.is_waiting:
                return
            break
        child = None if epoch is None else epoch.attributes.get(
            'child_epoch_iterator')
        if not isinstance(child, EpochIterator) or not isinstance(
                epoch.reader, StageReader) or not stage.only_counts(epoch):
            break
        stream, epoch = child.data_stream, child.epoch
        if stage_of(stream).meter not in meters:
            break
    else:
        return
    raise RuntimeError(
        f'the state of {name} was asked for while its next item is being '
        f'made: {ADVICE}')
