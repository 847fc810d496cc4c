"""The bottleneck: the stage that a loop waits for, and what to do about it."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from fuel.describe.pipeline import HERE
from fuel.profiling.report import StageProfile

# If a smaller share of the time is spent waiting for data, data are not the
# bottleneck.
IDLE = .1
# Workers are not the bottleneck if they could make this many times as many
# batches as are read.
SPARE = 4.


def with_shares(stages: list[StageProfile], step_seconds: float = 0.,
                place: str = HERE) -> list[StageProfile]:
    """Return the stages, each with its share of the time of all stages in the
    same place.

    `step_seconds`: seconds of the training step, which runs in the same place.
    """
    found = list(stages_in(place, stages))
    seconds = step_seconds + sum(stage.seconds for stage, _ in found)
    shared = []
    for stage, inner in found:
        share = stage.seconds / seconds if seconds else 0.
        shared += [replace(stage, share=share),
                   *with_shares(inner, place=stage.runs_in)]
    return shared


def describe_bottleneck(stages: Sequence[StageProfile], seconds: float,
                        step_seconds: float, factor: float = 1.) -> str:
    """Return a sentence about the bottleneck.

    `factor`: measured speed of training with data that cost no time, relative
        to the present speed; 1 if it was not measured.
    """
    if not stages or not seconds or not stages[0].items:
        return 'There were no batches to measure.'
    reading = seconds - step_seconds
    if step_seconds and reading < IDLE * seconds:
        return (f'The training step takes {step_seconds / seconds:.0%} of '
                'the time; the data are there when it asks for them.')
    found = _of_the_data(stages, seconds, reading)
    # Workers that use the cores slow the step down, too.
    if step_seconds > reading and factor < 1 + IDLE:
        return (f'The training step takes {step_seconds / seconds:.0%} of '
                f'the time, so faster data would help little. Next, {found}')
    return found


def _of_the_data(stages: Sequence[StageProfile], seconds: float,
                 reading: float) -> str:
    """Return a sentence about the bottleneck among the stages, with shares of
    the whole time."""
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
    """Return the stages that wait, outermost first, and the stage that they
    wait for.

    If the slowest stage waits for other processes, the search continues among
    the stages in those processes.
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


def stages_in(place: str, stages: list[StageProfile],
              ) -> Iterator[tuple[StageProfile, list[StageProfile]]]:
    """Yield the stages of one place, each with the stages that it reads in
    other places."""
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
    """Return the greatest rate at which a reader's workers can make batches,
    relative to the present rate; 0 if unknown."""
    inner = next(inner for stage, inner in stages_in(HERE, list(stages))
                 if stage is reader)
    busy = sum(stage.seconds
               for stage, _ in stages_in(reader.runs_in, inner))
    made = inner[0].items
    if not busy or not made:
        return 0.
    rate = reader.processes * made / busy
    if reader.runs_in.startswith('server'):
        # Other clients may get a part of the batches.
        rate *= min(1., reader.items / made)
    return rate * reading / reader.items if reader.items else 0.
