"""A trace: when each stage made which item, in which process and thread.

In the trace event format of Chrome, which Perfetto opens. All processes of a
machine have one clock; what comes from another machine is left out.
"""
from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, Literal, NamedTuple, TypeAlias

from fuel.kernels.epoch_iterator import MOST_SPANS
from fuel.profiling.measurements import Path

#: Number of the item, and begin and end in nanoseconds; the number is -1 for
#: an error, or the end of the epoch, in the place of an item.
Span: TypeAlias = tuple[int, int, int]
# Processes of two containers may have the same number: one gets another.
_OTHER_PID = 1 << 22


class Process(NamedTuple):
    """A process among those of several machines.

    `clock`: those with the same one have the same time.
    `token`: tells it from others that have the same `pid`, elsewhere.
    """

    clock: str
    pid: int
    token: str


class StageSpans(NamedTuple):
    """What a stage did in one thread.

    `path`: where the stage is; see :class:`StageMeasurements`.
    `name`: of the stage; of what the consumer did.
    `kind`: ``'wait'`` and ``'step'`` are the consumer's.
    `thread`: native identifier.
    `thread_name`: empty where the thread has ended.
    `num_left_out`: how many spans more there were.
    """

    path: Path
    name: str
    kind: Literal['stage', 'wait', 'step']
    process: Process
    thread: int
    thread_name: str
    spans: list[Span]
    num_left_out: int = 0


def this_process() -> Process:
    """Return which process this is."""
    return _process(os.getpid())


@cache
def _process(pid: int) -> Process:
    clock = platform.node()
    with suppress(OSError):
        # Containers of one machine share its clock, unless they have an
        # offset of their own.
        with open('/proc/sys/kernel/random/boot_id', encoding='ascii') as file:
            clock = file.read().strip()
        clock += os.readlink('/proc/self/ns/time')
    return Process(clock, pid, os.urandom(8).hex())


def as_trace(noted: Sequence[StageSpans]) -> dict[str, Any]:
    """Return spans as a trace, ready for JSON.

    `noted`: those of the consumer first.
    """
    here = noted[0].process
    known = [each for each in noted if each.process.clock == here.clock]
    events = sorted(
        ((begin, -end, number, item) for number, each in enumerate(known)
         for item, begin, end in each.spans))
    origin = events[0][0] if events else 0
    pids = _pids(known)
    spans = []
    for begin, minus_end, number, item in events[:MOST_SPANS]:
        each = known[number]
        spans.append({
            'name': each.name, 'cat': each.kind, 'ph': 'X',
            'ts': (begin - origin) / 1e3, 'dur': (-minus_end - begin) / 1e3,
            'pid': pids[each.process], 'tid': each.thread,
            'args': {'item': item} if item >= 0 else {}})
    return {
        'traceEvents': [*_rows(known, pids), *spans],
        'displayTimeUnit': 'ms',
        'otherData': {
            'spans_left_out': len(events) - len(spans) + sum(
                each.num_left_out for each in noted),
            'spans_of_other_machines': sum(
                len(each.spans) for each in noted) - len(events)}}


def _pids(noted: Sequence[StageSpans]) -> dict[Process, int]:
    """Return the number of each process, the consumer's first."""
    pids: dict[Process, int] = {}
    for each in noted:
        if each.process not in pids:
            pid = each.process.pid
            while pid in pids.values():
                pid += _OTHER_PID
            pids[each.process] = pid
    return pids


def _rows(noted: Sequence[StageSpans],
          pids: dict[Process, int]) -> Iterator[dict[str, Any]]:
    """Yield the names of processes and threads, and in which order they
    are shown."""
    names = {each.path: each.name for each in noted}
    counts: dict[Path, int] = {}
    for place, (process, pid) in enumerate(pids.items()):
        inside = [each for each in noted if each.process == process]
        reader = min((each.path for each in inside), key=len)[:-1]
        counts[reader] = counts.get(reader, 0) + 1
        yield from _row('process', pid, 0, place, (
            f'{names.get(reader, "workers")}: worker {counts[reader]}'
            if reader else 'training'))
        threads = {each.thread: each.thread_name for each in inside
                   if each.spans}
        # The main thread first.
        order = sorted(threads, key=lambda thread: (
            thread != process.pid, thread))
        for number, thread in enumerate(order):
            yield from _row('thread', pid, thread, number,
                            threads[thread] or 'thread')


def _row(kind: str, pid: int, thread: int, place: int,
         name: str) -> Iterator[dict[str, Any]]:
    for about, value in ('name', name), ('sort_index', place):
        yield {'name': f'{kind}_{about}', 'ph': 'M', 'pid': pid,
               'tid': thread, 'args': {about: value}}
