"""The usual remedy for each kind of stage that takes most of the time."""
from __future__ import annotations

from fuel.describe.pipeline import try_method
from fuel.epochs.stage import stage_of
from fuel.setting_types import cores
from fuel.utils.overrides import covers

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


def remedy(stream: object) -> str:
    """Return the usual remedy for a stage that takes most of the time.

    It names threads and workers only if there are several cores.
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
    layout = ' '.join(map(str, try_method(dataset, 'details', ())))
    if 'chunks' in layout:
        return ('smaller chunks, or none, suit a random order (fuel-convert '
                '--chunk-rows), BlockShuffledScheme reads chunk by chunk, '
                'and load_in_memory=True reads them once')
    if 'in memory' in layout or (
            not layout and try_method(dataset, 'has_rows_at_hand')
            and covers(dataset, 'takes_requests', ('get_data',))):
        return ('the rows are copied at memory speed, so smaller types, or '
                'fewer sources, help')
    if getattr(dataset, 'takes_requests', None):
        return ('load_in_memory=True, where there is room, or a faster disk '
                f'helps; else use {WORKERS}')
    return ('the data set is read one example at a time: convert it to HDF5, '
            f'or use {WORKERS}')
