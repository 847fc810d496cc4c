"""What a pipeline spends most of its time on, and what usually helps."""
from __future__ import annotations

from collections.abc import Iterator, Sequence

from fuel.describe.pipeline import HERE, ask
from fuel.epochs.stage import stage_of
from fuel.profiling.report import StageProfile
from fuel.setting_types import cores
from fuel.utils.overrides import covers

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
    'MultiProcessing': 'more workers, num_workers=..., where there are cores '
                       'for them, or less to send: smaller types, which '
                       'stages behind it convert',
    'MultiThreading': f'more threads, num_threads=..., or {WORKERS}',
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
             step_seconds: float, factor: float = 1.) -> str:
    """Return the bottleneck in a sentence.

    `factor`: how many times as fast training was found to be with data that
        cost nothing, if that was measured.
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
