"""The report of a profile: text, picture, data and trace."""
from __future__ import annotations

import json
import logging
import os
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from html import escape
from typing import Any

from fuel.kernels.epoch_iterator import MOST_SPANS
from fuel.profiling.measurements import Path, Process, StageSpans
from fuel.utils.atomic_files import write_text
from fuel.utils.printing import aligned

log = logging.getLogger(__name__)

WIDTH = 640
ROW = 26
# The sentences below the bars.
LINE, COLUMNS = 18, 90
# Colours for work and waiting, which most people can distinguish, also in
# grey.
WORK, WAIT = '#3b75af', '#d8a13c'
# Added to the identifier of a process if a process in another container has
# the same identifier.
_OTHER_PID = 1 << 22


@dataclass(frozen=True)
class StageProfile:
    """Time, items and bytes of one stage.

    Attributes
    ----------
    name : str
        Class of the stage.
    depth : int
        Number of stages that read it, directly or indirectly.
    runs_in : str
        ``'this process'``, ``'2 workers'``, ``'server host:port'``.
    seconds : float
        Its own time, without the stages that it reads; summed over the
        workers. For a stage that reads batches of other processes, the time
        that it takes to receive them.
    waiting : float
        Part of `seconds` that was spent waiting for another process.
    share : float
        Fraction of the time of all stages in the same place, from 0 to 1. In
        this process, that time includes the training step.
    items : int
        Batches or examples.
    examples : int
    written : int
        Bytes of the arrays that the stage itself made, without arrays that it
        only passed on.
    processes : int
        Number of workers that share the work.
    remedy : str
        The usual remedy if this stage takes the most time.
    """

    name: str
    depth: int
    runs_in: str
    seconds: float
    waiting: float
    share: float
    items: int
    examples: int
    written: int
    processes: int = 1
    remedy: str = ''

    @property
    def examples_per_second(self) -> float:
        """Examples that the stage makes per second of its own time (float)."""
        return self.examples / self.seconds if self.seconds else float('inf')


@dataclass(frozen=True)
class Headroom:
    """Speed of training if data cost no time, and the present speed.

    Attributes
    ----------
    steps_per_second, examples_per_second : float
        Speed if each batch is loaded before its step begins.
    steps_per_second_now, examples_per_second_now : float
        Speed with the pipeline.
    factor : float
        Ratio of the first speed to the second: 1.0 if faster loading gains
        nothing. Measurements vary by some percent, so it may be slightly below
        1.
    """

    steps_per_second: float
    examples_per_second: float
    steps_per_second_now: float
    examples_per_second_now: float
    factor: float

    def __str__(self) -> str:
        return (f'If data cost nothing: {self.steps_per_second:.4g} steps/s, '
                f'{self.examples_per_second:.0f} examples/s, '
                f'{self.factor:.2f} times as many as now '
                f'({self.steps_per_second_now:.4g} steps/s)')


@dataclass(frozen=True)
class Profile:
    """Time that a pipeline took, by stage.

    Attributes
    ----------
    stages : list of StageProfile
        The outermost stage first.
    seconds : float
        Seconds from the first batch to the last, including `step_seconds`.
    step_seconds : float
        Part of `seconds` that the training step took.
    batches, examples : int
    bottleneck : str
        A sentence about the slowest stage and the usual remedy.
    skipped : int
        Number of examples that were skipped, since making them failed.
    headroom : Headroom or None
        Speed of training if data cost no time; None unless requested.
    spans : list
        Start and end of each item in each stage, which :meth:`trace`
        writes. :meth:`as_dict` leaves them out.
    """

    stages: list[StageProfile]
    seconds: float
    step_seconds: float
    batches: int
    examples: int
    bottleneck: str
    skipped: int = 0
    headroom: Headroom | None = None
    spans: list[StageSpans] = field(
        default_factory=list, repr=False, compare=False)

    @property
    def batches_per_second(self) -> float:
        """Batches per second (float)."""
        return self.batches / self.seconds if self.seconds else float('inf')

    @property
    def examples_per_second(self) -> float:
        """Examples per second (float)."""
        return self.examples / self.seconds if self.seconds else float('inf')

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain data, ready for JSON."""
        data = asdict(replace(self, spans=[]))
        del data['spans']
        return data

    def __str__(self) -> str:
        head = ('stage', 'runs in', 'seconds', 'share', 'waiting',
                'examples/s', 'written')
        return '\n'.join([
            (f'{self.batches} batches, {self.examples} examples in '
             f'{self.seconds:.3f} s: {self.examples_per_second:.0f} '
             f'examples/s{self._step()}{self._skipped()}'),
            *aligned([head, *map(_cells, self.stages)], 2),
            *self._sentences()])

    def _sentences(self) -> list[str]:
        return [self.bottleneck] + (
            [] if self.headroom is None else [str(self.headroom)])

    def _skipped(self) -> str:
        if not self.skipped:
            return ''
        return (f'; {self.skipped} examples could not be made and were left '
                'out')

    def _step(self) -> str:
        if not self.step_seconds:
            return ''
        return f'; {self.step_seconds:.3f} s of it in the training step'

    def __repr__(self) -> str:
        return f'<Profile of {self.batches} batches: {self.bottleneck}>'

    def _repr_html_(self) -> str:
        return self.svg()

    def svg(self) -> str:
        """Return a picture: a bar for each stage, waiting in another colour.

        Returns
        -------
        str
            In SVG.
        """
        longest = max((stage.seconds for stage in self.stages), default=0.)
        lines = [line for text in self._sentences()
                 for line in textwrap.wrap(text, COLUMNS)]
        height = ROW * len(self.stages) + 2 * ROW + LINE * len(lines)
        parts = [
            (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" '
             f'height="{height}" viewBox="0 0 {WIDTH} {height}" role="img" '
             'font-family="sans-serif" font-size="13" fill="currentColor">'),
            '<title>Time of each stage</title>',
            # Use the colour of the text around the picture; if the file is
            # opened by itself, use the viewer's text colour.
            ('<style>svg:root{color-scheme:light dark;color:CanvasText}'
             '</style>')]
        for place, stage in enumerate(self.stages):
            parts += _bar(stage, place * ROW + 8, longest or 1.)
        top = ROW * len(self.stages) + ROW
        for left, colour, text in ((8, WORK, 'work'), (80, WAIT, 'waiting')):
            parts += [(f'<rect x="{left}" y="{top - 11}" width="12" '
                       f'height="12" fill="{colour}"/>'),
                      f'<text x="{left + 18}" y="{top}">{text}</text>']
        parts.append(
            f'<text x="{WIDTH - 8}" y="{top}" text-anchor="end">'
            f'{self.examples_per_second:.0f} examples per second</text>')
        parts += [f'<text x="8" y="{top + LINE * number + 8}">{escape(line)}'
                  '</text>' for number, line in enumerate(lines, 1)]
        return '\n'.join([*parts, '</svg>'])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the picture, the text or the data.

        Parameters
        ----------
        path : str
            A path with the extension ``.svg`` for the picture, ``.txt`` for
            the text that `print` shows, or ``.json`` for the data of
            :meth:`as_dict`.

        Raises
        ------
        ValueError
            If the path has another extension.
        """
        name = os.fspath(path)
        ending = os.path.splitext(name)[1].lower()
        forms: dict[str, Callable[[], str]] = {
            '.svg': self.svg, '.txt': lambda: f'{self}\n',
            '.json': lambda: json.dumps(self.as_dict(), indent=1) + '\n'}
        if ending not in forms:
            raise ValueError(
                f'a profile is saved as {", ".join(forms)}, by the ending of '
                f'the path, and {name!r} has none of these')
        write_text(name, forms[ending]())

    def trace(self, path: str | os.PathLike[str]) -> None:
        """Write a trace: when, and in which thread, each stage made each item.

        Perfetto (https://ui.perfetto.dev) and chrome://tracing open the file.
        They show a row for each thread of each process, with a span for each
        item, named after its stage. The first 200,000 spans are kept. Stages
        in a server, or on a machine with another clock, are left out; the time
        that the consumer waits for them is shown.

        Parameters
        ----------
        path : str
            Path of the file, which has the trace event format of Chrome
            (JSON).

        Raises
        ------
        ValueError
            If the profile has no spans.
        """
        if not self.spans:
            raise ValueError(
                'this profile has no spans to trace: make one with '
                'fuel.profile(stream)')
        name, trace = os.fspath(path), as_trace(self.spans)
        counts = trace['otherData']
        if counts['spans_left_out']:
            log.warning('%s: %d spans after the first ones were left out',
                        name, counts['spans_left_out'])
        if counts['spans_of_other_machines']:
            log.warning('%s: %d spans of other machines, whose clocks differ, '
                        'were left out', name,
                        counts['spans_of_other_machines'])
        write_text(name, json.dumps(trace, separators=(',', ':')) + '\n')


def _cells(stage: StageProfile) -> tuple[str, ...]:
    rate = '' if not stage.seconds else f'{stage.examples_per_second:.0f}'
    return ('  ' * stage.depth + stage.name, stage.runs_in,
            f'{stage.seconds:.3f}', f'{stage.share:.0%}',
            f'{stage.waiting:.3f}', rate, f'{stage.written / 1e6:.1f} MB')


def _bar(stage: StageProfile, top: int, longest: float) -> list[str]:
    left, room = 230, WIDTH - 350
    wait = stage.waiting / longest * room
    work = max(0., stage.seconds - stage.waiting) / longest * room
    x = 8 + 10 * stage.depth
    label = f'{stage.seconds:.3f} s, {stage.share:.0%}'
    return [
        f'<text x="{x}" y="{top + 14}">{escape(stage.name)}</text>',
        _rectangle(left, top, work, WORK),
        _rectangle(left + work, top, wait, WAIT),
        (f'<text x="{left + work + wait + 6:.1f}" y="{top + 14}">{label}'
         '</text>')]


def _rectangle(left: float, top: int, width: float, colour: str) -> str:
    return (f'<rect x="{left:.1f}" y="{top + 3}" width="{width:.1f}" '
            f'height="15" fill="{colour}"/>')


def as_trace(noted: Sequence[StageSpans]) -> dict[str, Any]:
    """Return spans as a trace, ready for JSON.

    `noted`: spans, the consumer's first.
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
    """Return a distinct number for each process, the consumer's first."""
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
    """Yield events that set the names and the order of processes and
    threads."""
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
