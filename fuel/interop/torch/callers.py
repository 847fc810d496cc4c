"""Find out which library reads a stream, and refuse what would be wrong.

A loader does not show itself to its data set, but it calls it: it is one of
those whose methods are running.
"""
from __future__ import annotations

import glob
import os
import sys
import warnings
from collections.abc import Iterator
from types import FrameType
from typing import Any

from torch.utils.data import DataLoader

from fuel.epochs.pipeline import length_of
from fuel.interop.torch.ranks import RankShare
from fuel.typing import StreamLike

_FETCHER = 'torch.utils.data._utils.fetch._BaseDatasetFetcher'
_LOADER = 'torch.utils.data.dataloader.DataLoader'
_STATEFUL = ('torchdata.stateful_dataloader.stateful_dataloader.'
             'StatefulDataLoader')
_SHARD = 'accelerate.data_loader.DataLoaderShard'
_DISPATCHER = 'accelerate.data_loader.DataLoaderDispatcher'
_SAMPLER_SHARD = 'accelerate.data_loader.BatchSamplerShard'
_SKIPPING = 'accelerate.data_loader.SkipDataLoader'
_SHARDS_OF_DATASETS = ('accelerate.data_loader.IterableDatasetShard',
                       'transformers.trainer_pt_utils.IterableDatasetShard')
_TRAINER = 'transformers.trainer.Trainer'
_KERAS = ('keras.src.trainers.epoch_iterator.EpochIterator',
          ('keras.src.trainers.data_adapters.torch_data_loader_adapter.'
           'TorchDataLoaderAdapter'))
# Lightning has two names.
_LIGHTNING = ('lightning.pytorch', 'pytorch_lightning')
_PREFETCHING = tuple(f'{package}.loops.fetchers._PrefetchDataFetcher'
                     for package in _LIGHTNING)
_COMBINED = tuple(f'{package}.utilities.combined_loader.CombinedLoader'
                  for package in _LIGHTNING)
_READING = tuple(f'{package}.utilities.combined_loader._ModeIterator'
                 for package in _LIGHTNING)
_FITTING = tuple(f'{package}.loops.fit_loop._FitLoop'
                 for package in _LIGHTNING)
_EVALUATING = tuple(f'{package}.loops.evaluation_loop._EvaluationLoop'
                    for package in _LIGHTNING)
#: The classes that are looked for by name, by library and the release in
#: which they are. A test of each library holds that they are there.
CLASSES = {
    'torch 2.13': (_FETCHER, _LOADER),
    'torchdata 0.11': (_STATEFUL,),
    'accelerate 1.15': (_SHARD, _DISPATCHER, _SAMPLER_SHARD, _SKIPPING,
                        _SHARDS_OF_DATASETS[0]),
    'transformers 5.24': (_SHARDS_OF_DATASETS[1], _TRAINER),
    'keras 3.12': _KERAS,
    'lightning 2.6': tuple(
        names[0] for names in (_PREFETCHING, _COMBINED, _READING, _FITTING,
                               _EVALUATING))}


def find_caller(*names: str, method: str | None = None) -> Any:
    """Return the object whose method is running, None if there is none.

    A worker that was forked finds those of its parent too.

    Parameters
    ----------
    *names : str
        Full names of classes.  Its class is one of them, or derives from
        one; the innermost such object is found.  So nothing needs to be
        imported.
    method : str, optional
        The name of the method.  Defaults to any.
    """
    for owner in _values_of('self', method):
        if any(f'{cls.__module__}.{cls.__qualname__}' in names
               for cls in type(owner).__mro__):
            return owner
    return None


def _values_of(name: str, function: str | None = None) -> Iterator[Any]:
    """Yield the values of a variable in the functions that are running.

    `function`: the name of the function. Defaults to any.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        # Before Python 3.13 a frame keeps the objects that it was asked for,
        # such as a batch, so that others are left alone.
        if name in frame.f_code.co_varnames and (
                function in (None, frame.f_code.co_name)):
            yield frame.f_locals.get(name)
        frame = frame.f_back


def is_len_of_loader() -> bool:
    """Return whether the length of a data set is asked for by ``len()`` of a
    loader of PyTorch's own, which takes it for the number of its batches."""
    # The caller of len(), which called the __len__ that asks here.
    frame = sys._getframe(2)
    return frame.f_code.co_name == '__len__' and isinstance(
        frame.f_locals.get('self'), DataLoader)


def is_read_by_loader() -> bool:
    """Return whether a loader begins to read a data set in this process."""
    return find_caller(_FETCHER) is not None


def refuse_to_collate() -> None:
    """Raise ValueError if a loader would make batches of batches."""
    fetcher = find_caller(_FETCHER)
    if fetcher is not None and fetcher.auto_collation:
        raise ValueError(
            'the stream makes batches, and this DataLoader would make '
            'batches of them: write DataLoader(as_iterable(stream), '
            'batch_size=None); a trainer that makes the loader itself needs '
            'one that you make, or a stream of examples. If your collate_fn '
            'joins batches, write as_iterable(stream, joins_batches=True)')


def refuse_keras() -> None:
    """Raise ValueError if Keras reads a loader.

    Keras takes a batch of the loader before each pass.
    """
    if find_caller(*_KERAS) is not None:
        raise ValueError(
            'Keras begins passes over a DataLoader that it does not train on, '
            'so that epochs would be left out: pass '
            'fuel.interop.keras.BatchesDataset(stream) to fit')


def counts_passes() -> bool:
    """Return whether Accelerate's own pass counter sets the epoch, and not its
    user."""
    return find_caller(_SHARD, _DISPATCHER, method='__iter__') is not None


def refuse_to_share_again() -> None:
    """Raise ValueError if Accelerate would share a rank's part again."""
    dispatcher = find_caller(_DISPATCHER)
    shard = find_caller(*_SHARDS_OF_DATASETS)
    count = (shard.num_processes if shard is not None else 1
             if dispatcher is None else dispatcher.state.num_processes)
    if count > 1:
        raise ValueError(
            f'Accelerate would share the batches of a rank over {count} '
            'processes again, so that some are never read: as_iterable() has '
            'given each rank its part already. Prepare the loader by '
            'fuel.interop.accelerate.prepare(accelerator, loader) in the '
            'place of accelerator.prepare(loader); with a Trainer of '
            'Transformers, return that from get_train_dataloader()')


def refuse_wrong_position(data: object, rank: RankShare, is_named: bool,
                          is_resumed: bool) -> None:
    """Raise ValueError if a trainer would go on somewhere else.

    The arguments are those of the functions that it calls.
    """
    refuse_keras()
    refuse_to_skip(rank.stream, is_named, is_resumed)
    refuse_to_restart(rank.stream, is_named, is_resumed)
    refuse_other_ranks(data, rank, is_resumed)


def refuse_to_skip(stream: StreamLike, is_named: bool,
                   is_resumed: bool) -> None:
    """Raise ValueError if batches are skipped of a wrong epoch, or twice.

    `stream`: the stream that is read.
    `is_named`: whether somebody has said which epoch it is.
    `is_resumed`: whether a state was loaded, after whose batches the epoch
        goes on.
    """
    loader = find_caller(_SKIPPING, _SHARD, _DISPATCHER)
    if loader is None or not loader.skip_batches:
        return
    if is_resumed:
        raise ValueError(
            f'a state was loaded, and {loader.skip_batches} batches after it '
            'would be skipped: load no state, or skip nothing (with a '
            'Trainer of Transformers, ignore_data_skip=True)')
    if not is_named:
        raise ValueError(
            f'{loader.skip_batches} batches of an epoch would be skipped, '
            'but the number of the epoch is not known: prepare the loader by '
            'fuel.interop.accelerate.prepare(accelerator, loader), or call '
            'set_epoch(epoch) of as_iterable() before')
    length = length_of(stream)
    if length is not None and loader.skip_batches > length:
        raise ValueError(
            f'{loader.skip_batches} batches of an epoch would be skipped, '
            f'which has {length}: skip those of this epoch, and name it by '
            'set_epoch(epoch)')
    if length is None and find_caller(_TRAINER) is not None:
        raise ValueError(
            f'the Trainer would skip {loader.skip_batches} batches, those of '
            'all epochs, since the length of an epoch is not known: pass '
            'ignore_data_skip=True, and load a state of as_iterable() that '
            'you have saved by state_after()')


def refuse_other_ranks(data: object, rank: RankShare,
                       is_resumed: bool) -> None:
    """Raise ValueError if a Trainer resumes on another number of ranks.

    A Trainer skips as many batches as a rank has made steps, and other ranks
    have other batches.

    `data`: the data set of a loader.
    `rank`: the rank's share.
    `is_resumed`: whether a state was loaded, which fits any number of ranks.
    """
    trainer = find_caller(_TRAINER)
    if trainer is None or not trainer.state.global_step or is_resumed:
        return
    trained = trainer.callback_handler.train_dataloader
    if getattr(trained, 'dataset', None) is not data:
        return
    num_ranks = 1 if rank.shard is None else rank.shard.num_shards
    saved = _saved_ranks()
    if saved == num_ranks if saved else (
            _is_consistent(trainer, rank.stream)):
        return
    raise ValueError(
        f'the checkpoint was saved by {saved or "another number of"} ranks, '
        f'and there are {num_ranks} now: the Trainer would skip as many '
        'batches as a rank has made steps, which are others. Resume with as '
        'many ranks, or pass ignore_data_skip=True and load a state of '
        'as_iterable() that you have saved by state_after()')


def _saved_ranks() -> int:
    """Return the number of ranks that saved the Trainer's checkpoint that is
    resumed, 0 if it is not known."""
    for folder in _values_of('resume_from_checkpoint'):
        if isinstance(folder, (str, os.PathLike)):
            return len(glob.glob(os.path.join(
                glob.escape(os.fspath(folder)), 'rng_state*.pth')))
    return 0


def _is_consistent(trainer: Any, stream: StreamLike) -> bool:
    """Return whether a Trainer's steps and epochs fit the length of one."""
    length = length_of(stream)
    if not length:
        return True
    size = trainer.args.gradient_accumulation_steps
    epochs, steps = divmod(trainer.state.global_step, -(-length // size))
    epoch = trainer.state.epoch - epochs - steps * size / length
    return bool(abs(epoch) < .5 / length)


def warn_of_repeated_examples(count: int) -> None:
    """Warn if Accelerate repeats some of `count` examples to make the ranks
    even."""
    shard = find_caller(_SAMPLER_SHARD, _DISPATCHER)
    if shard is None:
        return
    if hasattr(shard, 'even_batches'):
        ranks = shard.num_processes
        repeats = shard.even_batches and not shard.drop_last
        size = (shard.batch_size or 1) * (1 if shard.split_batches else ranks)
    else:
        ranks = size = shard.state.num_processes
        repeats = not shard._drop_last
    if ranks > 1 and repeats and count % size:
        warnings.warn(
            f'Accelerate repeats some of {count} examples, so that {ranks} '
            'processes have as many: pass Accelerator(dataloader_config='
            'DataLoaderConfiguration(even_batches=False, dispatch_batches='
            'False)) to read each once; in an evaluation, gather_for_metrics()'
            ' leaves repeated results out', UserWarning, stacklevel=2)


def refuse_to_restart(stream: StreamLike, is_known: bool,
                      is_resumed: bool) -> None:
    """Raise ValueError if Lightning goes on with another epoch than its own.

    A `DataLoader` of PyTorch has no state, so Lightning resumes the number
    of the batch, and no data; between two epochs it restores no state, and
    takes one after the last batch for that of a whole epoch.

    `stream`: the stream that is read.
    `is_known`: whether an epoch has begun, or somebody has said which it is.
    """
    loop = find_fit_loop()
    if loop is None:
        return
    if is_resumed:
        if loop.epoch_loop.batch_progress.current.ready == length_of(stream):
            raise ValueError(
                'Lightning resumes after the last batch of an epoch, and '
                'would leave the next epoch out: use '
                'fuel.interop.lightning.DataModule')
        return
    number = loop.epoch_progress.current.processed
    if not is_known and loop.is_resuming and not loop.restarting and number:
        raise ValueError(
            f'Lightning resumes with epoch {number}, but has restored no '
            'state of the data, so that epoch 0 would be read again: use '
            'fuel.interop.torch.Loader or fuel.interop.lightning.DataModule, '
            'and a checkpoint that was saved with it')
    if is_stateful() or find_caller(_LOADER) is None:
        return
    if loop.restarting and loop.epoch_loop.batch_progress.current.ready:
        raise ValueError(
            'Lightning resumes in the middle of an epoch, but the state of '
            'this DataLoader was not saved, so that batches would come '
            "twice: use fuel.interop.lightning.DataModule, or torchdata's "
            'StatefulDataLoader, and a checkpoint that was saved with it')


def find_fit_loop() -> Any:
    """Return the loop of Lightning that reads a loader to train, or None.

    A step or a hook may read another loader by itself.
    """
    loop = find_caller(*_FITTING)
    is_for_it = loop is not None and find_caller(*_READING) is not None and (
        find_caller(*_EVALUATING) is None)
    return loop if is_for_it else None


def is_stateful() -> bool:
    """Return whether a loader reads that saves the states of workers."""
    return find_caller(_STATEFUL) is not None


def reads_ahead() -> bool:
    """Return whether a trainer holds batches back that it has read."""
    fetcher = find_caller(*_PREFETCHING)
    return find_caller(_SHARD, _DISPATCHER) is not None or (
        fetcher is not None and fetcher.length is None)


def refuse_state_ahead(stream: StreamLike) -> None:
    """Raise ValueError if Lightning saves the state of a batch too many."""
    if find_caller(*_COMBINED) is None:
        return
    if length_of(stream) is None:
        raise ValueError(
            'Lightning reads a batch ahead where the length of an epoch is '
            'not known, so the state that it saves would lose that batch: '
            'use fuel.interop.lightning.DataModule')
    loop = find_caller(*_FITTING)
    if loop is None:
        return
    progress = loop.epoch_loop.batch_progress.current
    if progress.ready != progress.processed:
        raise ValueError(
            'Lightning saves a state while a batch is trained on, which '
            'would lose that batch: use fuel.interop.lightning.DataModule, '
            'or save after the batch')
