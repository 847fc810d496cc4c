"""What a pipeline spends most of its time on, and what usually helps."""
from __future__ import annotations

from typing import Any

from fuel.profiling.report import StageProfile

# Less than this share of the time in waiting for data, and they are no
# bottleneck.
IDLE = .1

_REMEDIES = {
    'Mapping': 'let its function work on whole arrays, or run it in worker '
               'processes, MultiProcessing(stream, num_workers=...)',
    'Cast': 'put it right on the DataStream, where the conversion is done '
            'while the data are read, or leave it out',
    'ScaleAndShift': 'put it, and Cast, right on the DataStream, where the '
                     'conversion is done while the data are read',
    'ForceFloatX': 'put it right on the DataStream, where the conversion is '
                   'done while the data are read',
    'ImagesFromBytes': 'raise config.num_threads, decode to a smaller size '
                       'with shrink_to, or use worker processes, '
                       'MultiProcessing(stream, num_workers=...)',
    'Batch': 'read batches from the data set directly, with batch_size= '
             'instead of single examples',
    'Unpack': 'keep the batches whole, and let stages work on them',
}
_GENERAL = ('run the stages in worker processes, '
            'MultiProcessing(stream, num_workers=...)')


def sentence(stages: list[StageProfile], streams: list[Any],
             seconds: float, step_seconds: float) -> str:
    """Return the bottleneck in a sentence.

    `streams`: those of the stages, in the same order.
    """
    if not stages or not seconds or not stages[0].items:
        return 'There were no batches to measure.'
    reading = seconds - step_seconds
    if step_seconds and reading < IDLE * seconds:
        return (f'The training step takes {step_seconds / seconds:.0%} of '
                'the time; the data are there when it asks for them.')
    outer = stages[0]
    if outer.runs_in.startswith('server'):
        return (f'{outer.name} waits {_share(outer.waiting, reading)} of the '
                f'time for the {outer.runs_in}: profile the stream that is '
                'served, in the process that serves it, or raise hwm')
    remote = [stage for stage in stages if stage.waiting]
    inside = [(stage, stream) for stage, stream in zip(
        stages, streams, strict=True) if not stage.waiting]
    if not inside:
        return f'{outer.name} takes all of the time'
    if remote:
        # Where there are workers, what they do counts.
        places = {remote[0].runs_in}
        inside = [pair for pair in inside
                  if pair[0].runs_in in places] or inside
    worst, stream = max(inside, key=lambda pair: pair[0].seconds)
    text = f'{worst.name} takes {worst.share:.0%} of the time'
    if remote:
        waiting = _share(remote[0].waiting, reading)
        return (f'{text} in {worst.runs_in}, and {waiting} of the time is '
                f'spent in waiting for them: {_remedy(worst, stream, True)}')
    return f'{text}: {_remedy(worst, stream, False)}'


def _share(part: float, whole: float) -> str:
    return f'{min(1., part / whole) if whole else 0.:.0%}'


def _remedy(stage: StageProfile, stream: object, in_worker: bool) -> str:
    dataset = getattr(stream, 'dataset', None)
    if dataset is not None:
        return _reading(dataset)
    cls = stage.name.partition('(')[0]
    if in_worker:
        found = _REMEDIES.get(cls, '')
        more = 'use more workers, num_workers=...'
        if 'MultiProcessing' in found or not found:
            return more
        return f'{found}, or {more}'
    return _REMEDIES.get(cls, _GENERAL)


def _reading(dataset: object) -> str:
    """Return what helps where reading takes longest."""
    layout = ' '.join(map(str, getattr(dataset, 'details', list)()))
    if 'chunks' in layout:
        return ('smaller chunks, or none, suit a random order (fuel-convert '
                '--chunk-rows), BlockShuffledScheme reads chunk by chunk, '
                'and load_in_memory=True reads them once')
    if 'in memory' in layout:
        return ('the rows are copied at memory speed, so smaller types, or '
                'fewer sources, help')
    if getattr(dataset, 'takes_requests', None):
        return ('load_in_memory=True, where there is room, a faster disk, or '
                'worker processes, MultiProcessing(stream)')
    return ('the data set is read one example at a time: convert it to HDF5, '
            'or prefetch in a worker process, MultiProcessing(stream)')
