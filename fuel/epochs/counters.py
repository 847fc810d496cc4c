"""Stages of whose state nothing but two numbers changes within an epoch.

Most pipelines have no others: no stage keeps something from one batch to the
next, or draws at random.  Then two numbers a stage say where it stands.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from fuel.epochs.epoch import Epoch


class Counter(NamedTuple):
    """A stage that only counts, its epoch and the iterator that it reads."""

    stream: Any
    epoch: Epoch
    child: Any


class Count(NamedTuple):
    """How many items were delivered, and how many reads were made."""

    position: int
    requested: int


def find_counters(stream: Any, epoch: Epoch) -> list[Counter] | None:
    """Return the stages of a pipeline, the last one first; None if there is
    one that does not only count."""
    counters: list[Counter] = []
    only_counts = stream._only_counts(epoch)
    while only_counts:
        child = epoch.attributes.get('child_epoch_iterator')
        counters.append(Counter(stream, epoch, child))
        if child is None:
            return counters
        only_counts = getattr(child, 'only_counts', bool)()
        stream, epoch = child.data_stream, child.epoch
    return None


def count(counters: Sequence[Counter]) -> list[Count] | None:
    """Return where the stages are; None if more than that changed."""
    counts: list[Count] = []
    for _, epoch, child in counters:
        if epoch.failed or epoch.skipped or (
                not epoch.finished and epoch.attributes.get(
                    'child_epoch_iterator') is not child):
            return None
        counts.append(Count(epoch.position, epoch.requested))
    return counts
