"""Find the library that reads a stream, and refuse uses that would be wrong.

A data set gets no reference to its loader. But the loader calls the data set,
so a method of the loader is on the call stack.
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
#: Names of the classes that are searched for, by library and release. Tests
#: check that each library has them.
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
    """Return the innermost object of the given classes on the call stack.

    One of its methods is running.  The result is None if there is no such
    object.  A forked worker finds objects on its parent's call stack too.

    Parameters
    ----------
    *names : str
        Full names of the classes.  Objects of derived classes are found too.
        Names are given, so that the classes need not be imported.
    method : str, optional
        The name of the method.  Defaults to any.
    """
    for owner in _values_of('self', method):
        if any(f'{cls.__module__}.{cls.__qualname__}' in names
               for cls in type(owner).__mro__):
            return owner
    return None


def _values_of(name: str, function: str | None = None) -> Iterator[Any]:
    """Yield the values of a variable in the functions on the call stack.

    `function`: name of the functions. Defaults to None: all functions.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        # Read no other variables: before Python 3.13 a frame keeps the
        # values of variables that were read, such as a batch.
        if name in frame.f_code.co_varnames and (
                function in (None, frame.f_code.co_name)):
            yield frame.f_locals.get(name)
        frame = frame.f_back


def is_len_of_loader() -> bool:
    """Return whether PyTorch's own loader computes its length.

    Such a loader takes the length of its data set for the number of batches.
    """
    # The frame of the loader's __len__. It called __len__ of the data set,
    # which called this function.
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
    """Return whether Accelerate sets the epoch from its own counter."""
    return find_caller(_SHARD, _DISPATCHER, method='__iter__') is not None


def refuse_to_share_again() -> None:
    """Raise ValueError if Accelerate would divide a rank's part again."""
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
    """Raise ValueError if a trainer would resume at a wrong position.

    The arguments are those of the functions that this function calls.
    """
    refuse_keras()
    refuse_to_skip(rank.stream, is_named, is_resumed)
    refuse_to_restart(rank.stream, is_named, is_resumed)
    refuse_other_ranks(data, rank, is_resumed)


def refuse_to_skip(stream: StreamLike, is_named: bool,
                   is_resumed: bool) -> None:
    """Raise ValueError if Accelerate would skip the wrong batches.

    They are wrong if they are of another epoch, or if a loaded state has
    skipped them already.

    `stream`: the stream that is read.
    `is_named`: whether the number of the epoch was set.
    `is_resumed`: whether the epoch resumes from a state.
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

    A Trainer skips one batch for each step that a rank has made. With another
    number of ranks, a rank has other batches.

    `data`: the data set of a loader.
    `rank`: the share of this rank.
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
        f'but there are {num_ranks} now: the Trainer would skip '
        'the wrong batches, since it skips a batch for each step that a rank '
        'has made, and a rank has other batches now. Resume with as many '
        'ranks as before, or pass ignore_data_skip=True and load a state of '
        'as_iterable() that you have saved by state_after()')


def _saved_ranks() -> int:
    """Return the number of ranks that saved the checkpoint being resumed.

    The checkpoint is one of a Trainer. The result is 0 if the number is not
    known.
    """
    for folder in _values_of('resume_from_checkpoint'):
        if isinstance(folder, (str, os.PathLike)):
            return len(glob.glob(os.path.join(
                glob.escape(os.fspath(folder)), 'rng_state*.pth')))
    return 0


def _is_consistent(trainer: Any, stream: StreamLike) -> bool:
    """Return whether a Trainer's steps and epochs fit the stream's length."""
    length = length_of(stream)
    if not length:
        return True
    size = trainer.args.gradient_accumulation_steps
    epochs, steps = divmod(trainer.state.global_step, -(-length // size))
    epoch = trainer.state.epoch - epochs - steps * size / length
    return bool(abs(epoch) < .5 / length)


def warn_of_repeated_examples(count: int) -> None:
    """Warn if Accelerate repeats examples, so that ranks have equally many.

    `count`: number of examples of the data set.
    """
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
    """Raise ValueError if Lightning would resume at wrong data.

    A `DataLoader` of PyTorch has no state, so Lightning restores the number
    of the batch, but not the position in the data. Between two epochs,
    Lightning restores no state of a loader. It treats a state that was saved
    after the last batch of an epoch as a state after the epoch.

    `stream`: the stream that is read.
    `is_known`: whether an epoch has begun, or the number of the epoch was
        set.
    `is_resumed`: whether the epoch resumes from a state.
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

    The result is None if a step or a hook reads another loader itself.
    """
    loop = find_caller(*_FITTING)
    is_for_it = loop is not None and find_caller(*_READING) is not None and (
        find_caller(*_EVALUATING) is None)
    return loop if is_for_it else None


def is_stateful() -> bool:
    """Return whether a `StatefulDataLoader` reads; it saves states."""
    return find_caller(_STATEFUL) is not None


def reads_ahead() -> bool:
    """Return whether a trainer reads batches before the program uses them."""
    fetcher = find_caller(*_PREFETCHING)
    return find_caller(_SHARD, _DISPATCHER) is not None or (
        fetcher is not None and fetcher.length is None)


def refuse_state_ahead(stream: StreamLike) -> None:
    """Raise ValueError if Lightning saves a state that is a batch ahead."""
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
