"""What was measured of a pipeline, and what it says of the bottleneck."""
from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

from fuel.describe.pipeline import HERE, ask
from fuel.epochs.stage import stage_of
from fuel.setting_types import cores
from fuel.utils.atomic_files import write_text
from fuel.utils.overrides import covers

WIDTH = 640
ROW = 26
# The sentence below the bars.
LINE, COLUMNS = 18, 90
# Colours that are told apart by most, also in grey: work and waiting.
WORK, WAIT = '#3b75af', '#d8a13c'


@dataclass(frozen=True)
class StageProfile:
    """What one stage took.

    Attributes
    ----------
    name : str
        Class of the stage.
    depth : int
        How many stages read it.
    runs_in : str
        ``'this process'``, ``'2 workers'``, ``'server host:port'``.
    seconds : float
        Its own time, without that of the stages that it reads; summed over
        the workers. For what comes from other processes, the time that was
        spent in taking batches.
    waiting : float
        How much of that was waiting for another process, in seconds.
    share : float
        Part of the time of all stages in the same place, from 0 to 1; in
        this process the training step counts, too.
    items : int
        Batches or examples.
    examples : int
    written : int
        Bytes of the arrays that the stage made anew; the others it passed
        on.
    processes : int
        How many workers share the work.
    remedy : str
        What usually helps if this stage takes the most time.
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
        """How many examples the stage makes in its own time (float)."""
        return self.examples / self.seconds if self.seconds else float('inf')


@dataclass(frozen=True)
class Profile:
    """Where the time of a pipeline went.

    Attributes
    ----------
    stages : list of StageProfile
        The outermost first.
    seconds : float
        From the first batch to the last, with `step_seconds`.
    step_seconds : float
        How much of it the training step took.
    batches, examples : int
    bottleneck : str
        What the pipeline spends most of its time on, and what usually
        helps, in a sentence.
    skipped : int
        How many examples were left out, since they could not be made.
    """

    stages: list[StageProfile]
    seconds: float
    step_seconds: float
    batches: int
    examples: int
    bottleneck: str
    skipped: int = 0

    @property
    def examples_per_second(self) -> float:
        """How many examples came per second (float)."""
        return self.examples / self.seconds if self.seconds else float('inf')

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain data, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        head = ('stage', 'runs in', 'seconds', 'share', 'waiting',
                'examples/s', 'written')
        rows = [head, *(_cells(stage) for stage in self.stages)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ['  '.join(
            cell.ljust(width) if place < 2 else cell.rjust(width)
            for place, (cell, width) in enumerate(
                zip(row, widths, strict=True))).rstrip() for row in rows]
        return '\n'.join([
            (f'{self.batches} batches, {self.examples} examples in '
             f'{self.seconds:.3f} s: {self.examples_per_second:.0f} '
             f'examples/s{self._step()}{self._skipped()}'),
            *lines, self.bottleneck])

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
        sentence = textwrap.wrap(self.bottleneck, COLUMNS)
        height = ROW * len(self.stages) + 2 * ROW + LINE * len(sentence)
        parts = [
            (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" '
             f'height="{height}" viewBox="0 0 {WIDTH} {height}" role="img" '
             'font-family="sans-serif" font-size="13">'),
            '<title>Time of each stage</title>',
            f'<rect width="{WIDTH}" height="{height}" fill="white"/>']
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
                  '</text>' for number, line in enumerate(sentence, 1)]
        return '\n'.join([*parts, '</svg>'])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the picture, the text or the data.

        Parameters
        ----------
        path : str
            Ends in ``.svg`` for the picture, in ``.txt`` for the text that
            `print` shows, in ``.json`` for what :meth:`as_dict` returns.

        Raises
        ------
        ValueError
            If it ends otherwise.
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


# A smaller share of the time in waiting for data, and they are no
# bottleneck.
IDLE = .1
# Workers that could make so many times the batches that come are not what
# is waited for.
SPARE = 4.
WORKERS = 'worker processes, MultiProcessing(stream, num_workers=...)'
MORE_WORKERS = 'more workers, num_workers=..., where there are cores for them'
ONE_CORE = ('another core: this process may run on one only, which workers '
            'would share with it')
_THREADS = 'raise config.num_threads, '

_DIRECT = ('put it right on the DataStream, where the conversion is done '
           'while the data are read')
_REMEDIES = {
    'Mapping': 'let its function work on whole arrays, take the stages of '
               f'fuel.transformers.image for images, or use {WORKERS}',
    'Cast': f'{_DIRECT}, or leave it out',
    'ScaleAndShift': _DIRECT,
    'ForceFloatX': _DIRECT,
    'ImagesFromBytes': f'{_THREADS}decode to a smaller size with shrink_to, '
                       f'or use {WORKERS}',
    'AudioFromBytes': f'{_THREADS}decode less with max_samples, '
                      f'or use {WORKERS}',
    'Batch': 'read batches from the data set directly, with batch_size= '
             'instead of single examples',
    'Unpack': 'keep the batches whole, and let stages work on them',
}
_GENERAL = f'use {WORKERS}'

Place = Iterator[tuple[StageProfile, list[StageProfile]]]


def remedy(stream: object) -> str:
    """Return what usually helps if a stage takes the most time.

    Threads and workers compute on other cores, if there are any.
    """
    usual = _usual_remedy(stream)
    if cores() > 1:
        return usual
    for part, instead in ((f'{_THREADS}or ', ''), (_THREADS, ''),
                          (WORKERS, ONE_CORE)):
        usual = usual.replace(part, instead)
    return usual


def _usual_remedy(stream: object) -> str:
    dataset = stage_of(stream).dataset
    if dataset is not None:
        return _remedy_of_reading(dataset)
    if getattr(stream, 'shrink_to', None) is not None:
        return f'{_THREADS}or use {WORKERS}'
    return _REMEDIES.get(type(stream).__name__, _GENERAL)


def _remedy_of_reading(dataset: object) -> str:
    layout = ' '.join(map(str, ask(dataset, 'details', ())))
    if 'chunks' in layout:
        return ('smaller chunks, or none, suit a random order (fuel-convert '
                '--chunk-rows), BlockShuffledScheme reads chunk by chunk, '
                'and load_in_memory=True reads them once')
    if 'in memory' in layout or (
            not layout and ask(dataset, 'has_rows_at_hand')
            and covers(dataset, 'takes_requests', ('get_data',))):
        return ('the rows are copied at memory speed, so smaller types, or '
                'fewer sources, help')
    if getattr(dataset, 'takes_requests', None):
        return ('load_in_memory=True, where there is room, or a faster disk '
                f'helps; else use {WORKERS}')
    return ('the data set is read one example at a time: convert it to HDF5, '
            f'or use {WORKERS}')


def sentence(stages: Sequence[StageProfile], seconds: float,
             step_seconds: float) -> str:
    """Return the bottleneck in a sentence."""
    if not stages or not seconds or not stages[0].items:
        return 'There were no batches to measure.'
    reading = seconds - step_seconds
    if step_seconds and reading < IDLE * seconds:
        return (f'The training step takes {step_seconds / seconds:.0%} of '
                'the time; the data are there when it asks for them.')
    found = _of_the_data(stages, seconds, reading)
    if step_seconds > reading:
        return (f'The training step takes {step_seconds / seconds:.0%} of '
                f'the time, so faster data would help little. Next, {found}')
    return found


def _of_the_data(stages: Sequence[StageProfile], seconds: float,
                 reading: float) -> str:
    """Return the bottleneck of the data alone, in parts of the whole time."""
    readers, worst = _find_worst(stages)
    if not readers:
        return f'{worst.name} takes {worst.share:.0%} of the time: ' + (
            worst.remedy)
    waiting = f'{min(1., readers[0].waiting / seconds):.0%} of the time'
    if worst is readers[-1]:
        return (f'{worst.name} waits {waiting} for the {worst.runs_in}, '
                'whose stages were not measured: profile their stream in the '
                'process that runs it')
    spare = _spare(readers[0], stages, reading)
    if spare > SPARE:
        return (f'{readers[0].name} waits {waiting} for the '
                f'{readers[0].runs_in}, which could make {spare:.0f} times as '
                'many batches: sending them takes longer than making them, '
                'so do the work in this process, or more of it there')
    return (f'{worst.name} takes {worst.share:.0%} of the time in '
            f'{worst.runs_in}, and {waiting} is spent in waiting for that: '
            f'{worst.remedy}')


def _find_worst(stages: Sequence[StageProfile]
                ) -> tuple[list[StageProfile], StageProfile]:
    """Return the stage that all wait for, and those that wait, outer first.

    Where the stage that takes longest waits for other processes, it is
    looked for among the stages that they run.
    """
    readers: list[StageProfile] = []
    place, here = HERE, list(stages)
    while True:
        worst, inner = max(stages_in(place, here),
                           key=lambda found: found[0].seconds)
        if worst.runs_in == place:
            return readers, worst
        readers.append(worst)
        if not any(stage.seconds for stage in inner):
            return readers, worst
        place, here = worst.runs_in, inner


def stages_in(place: str, stages: list[StageProfile]) -> Place:
    """Yield the stages of one place, with those that each reads elsewhere."""
    while stages:
        stage, *stages = stages
        end = 0
        if stage.runs_in != place:
            depths = [other.depth > stage.depth for other in stages]
            end = [*depths, False].index(False)
        yield stage, stages[:end]
        stages = stages[end:]


def _spare(reader: StageProfile, stages: Sequence[StageProfile],
           reading: float) -> float:
    """Return how many times as many batches a reader's workers could make."""
    inner = next(inner for stage, inner in stages_in(HERE, list(stages))
                 if stage is reader)
    busy = sum(stage.seconds
               for stage, _ in stages_in(reader.runs_in, inner))
    made = inner[0].items
    if not busy or not made:
        return 0.
    rate = reader.processes * made / busy
    if reader.runs_in.startswith('server'):
        # Other clients may get the others.
        rate *= min(1., reader.items / made)
    return rate * reading / reader.items if reader.items else 0.
