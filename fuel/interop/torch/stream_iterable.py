"""Iterate over the epochs of a stream in the loaders of PyTorch."""
from __future__ import annotations

import multiprocessing
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing import context
from typing import Any, Unpack

from torch.utils.data import IterableDataset, get_worker_info

from fuel import config
from fuel.describe.source_types import types_of
from fuel.epochs.epoch import reading_again
from fuel.epochs.pipeline import require_one_to_one
from fuel.epochs.state import (
    is_share_state, of_stream, read_share_state)
from fuel.epochs.state import FINISHED
from fuel.exceptions import StateMismatchError
from fuel.interop.torch import callers
from fuel.interop.torch.epoch_register import (
    EpochRegister, Session, skip_items)
from fuel.interop.torch.integers import (
    AS_STORED, INT64, as_int64, checked_targets, num_axes, request_int64)
from fuel.interop.torch.ranks import RankShare
from fuel.interop.torch.sent_data import received, send
from fuel.interop.torch.share import (
    Share, is_loader_state, read_loader_state)
from fuel.interop.torch.worker_batches import SharedBatches
from fuel.interop.torch.slot_tensors import SlotSender, make_sender
from fuel.interop.torch.tensors import as_tensors, expect_sparse
from fuel.iterator import checked_naming
from fuel.iterator import as_dict as name_sources
from fuel.streams.arguments import LoadOptions, checked_load_options
from fuel.transformers.source_names import as_names, check_known
from fuel.typing import Batch, EpochIterator, Naming, State
from fuel.utils.checks import not_negative


class StreamIterable(IterableDataset[Any]):
    """An iterable-style data set of PyTorch over a stream of Fuel.

    :func:`as_iterable` makes it.  Each iteration is an epoch.  Workers of a
    `DataLoader` take turns: of `n` workers, worker `w` makes the batches
    ``w``, ``w + n``, and so on.  All workers read the same epoch, whether
    they are persistent or started again for each epoch.

    Attributes
    ----------
    stream : AbstractDataStream
    as_dict : bool or 'nested'
    which_sources : tuple of str or None
    joins_batches : bool
    targets : str
    load_options : dict
    reader_holds_back : bool
        Without workers: whether the reader holds batches back.  Then states
        before the last batch read may be requested.

    Notes
    -----
    torchdata's `StatefulDataLoader` saves and restores the position through
    :meth:`state_dict` and :meth:`load_state_dict`.  PyTorch's own
    `DataLoader` may have prefetched batches in its queue; with it,
    :meth:`state_after` returns the position after the batches that the
    program has used.
    """

    # Pickles of earlier versions lack these attributes.
    targets = AS_STORED
    load_options: LoadOptions = LoadOptions()

    def __init__(self, share: RankShare, as_dict: Naming = False,
                 which_sources: Sequence[str] | None = None,
                 joins_batches: bool = False, targets: str = INT64,
                 load_options: LoadOptions | None = None) -> None:
        if which_sources is not None:
            which_sources = as_names('which_sources', which_sources)
            check_known('which_sources', which_sources, share.whole.sources)
        expect_sparse(types_of(share.whole))
        self._rank = share
        self.as_dict = checked_naming(as_dict, share.whole)
        self.targets = checked_targets(targets)
        self.load_options = checked_load_options(load_options)
        self.which_sources = which_sources
        self.joins_batches = bool(joins_batches)
        self.reader_holds_back = False
        self._register = EpochRegister()
        self._clear()

    @property
    def stream(self) -> Any:
        """The stream, or this rank's part of it (AbstractDataStream)."""
        return self._rank.stream

    def _clear(self) -> None:
        # State of this process, which other processes do not share.
        self._share: Share | None = None
        self._sender: SlotSender | None = None
        self._resumed: State | None = None
        self._begun = 0
        self._reads_ahead = False
        # True if a loader has read this data set in this process.
        self._is_in_loader = False
        self._pid = os.getpid()

    def _clear_after_fork(self) -> None:
        if self._pid != os.getpid():
            self._clear()

    def __repr__(self) -> str:
        arguments = [type(self._rank.whole).__name__]
        if self.as_dict:
            arguments.append(f'as_dict={self.as_dict!r}')
        if self.which_sources is not None:
            arguments.append(f'which_sources={self.which_sources}')
        arguments += ['joins_batches=True'] * self.joins_batches
        if self.targets != INT64:
            arguments.append(f'targets={self.targets!r}')
        shard = self._rank.shard
        if shard is not None and shard.num_shards > 1:
            arguments.append(f'shard={tuple(shard[:2])}')
        return f'as_iterable({", ".join(arguments)})'

    def __getstate__(self) -> dict[str, Any]:
        state = {**vars(self), '_rank': send(self._rank),
                 '_share': None, '_sender': None,
                 '_resumed': None, '_begun': 0,
                 '_reads_ahead': False}
        # A worker that is not forked shares the register; any other copy has
        # a register of its own.
        state['_register'] = (
            self._register.folder if context.get_spawning_popen() is not None
            else self._register.read())
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._rank = received(state['_rank'])
        register = state['_register']
        self._register = (EpochRegister.at(register)
                          if isinstance(register, str)
                          else EpochRegister(register))
        self._clear()

    def __len__(self) -> int:
        """Return the number of items in an epoch.

        Raises: TypeError if the number is not known.
        """
        count = len(self.stream)
        if not callers.is_len_of_loader():
            self._warn_of_length(count)
        return count

    def _warn_of_length(self, count: int) -> None:
        """Warn if a program may take the length for the number of examples."""
        if self.stream.produces_examples or not (
                self._is_in_loader or self._register.last is not None):
            return
        warnings.warn(
            f'len(loader.dataset) of a loader over as_iterable(stream) is '
            f'the number of batches, {count}, and not of examples: use '
            'fuel.interop.torch.Loader(stream), whose data set has the '
            'number of examples, or write len(loader) for the batches',
            UserWarning, stacklevel=3)

    def __iter__(self) -> Iterator[Any]:
        """Return an iterator over an epoch, or this worker's part of it."""
        self._clear_after_fork()
        self._rank.check_world()
        if not (self.stream.produces_examples or self.joins_batches):
            callers.refuse_to_collate()
        info = get_worker_info()
        if info is None:
            self._check_position()
            self._is_in_loader |= callers.is_read_by_loader()
            self._share = Share(self._begin_here, self._read)
            return self._share
        if info.num_workers > 1:
            require_one_to_one(self.stream, may_omit=True)
        session = self.session_of_worker()
        if not self._register.has_begun(session, info.id):
            self._check_position()
        self._begun += 1
        resumed, self._resumed = self._resumed, None
        self._share = (self._begin(session, info.id, info.num_workers)
                       if resumed is None
                       else self._resume(session, resumed))
        _end_without_parent()
        return self._share

    def session_of_worker(self) -> Session:
        """Return the session of this pass, which all its workers share."""
        info = get_worker_info()
        assert info is not None
        return Session(info.seed - info.id, self._begun)

    def _check_position(self) -> None:
        """Raise ValueError if a trainer would resume at a wrong position."""
        callers.refuse_wrong_position(
            self, self._rank, self._register.is_named(),
            self._register.is_resumed())

    def set_epoch(self, epoch: int) -> None:
        """Make the next iteration read the epoch with this number.

        Trainers call this method, so that a resumed run has the order of its
        epoch.  If it is not called, each iteration reads the epoch after the
        last one.

        Parameters
        ----------
        epoch : int
            Number of the epoch, from 0.  The first number that is set after
            :meth:`load_state_dict` is the number of the epoch that resumes.

        Raises
        ------
        ValueError
            If the epoch is before the first known epoch, or if Accelerate
            would divide this rank's part again or skip wrong batches.

        Examples
        --------
        This needs the extra ``torch``.

        >>> import numpy
        >>> from fuel.datasets import IndexableDataset
        >>> from fuel.schemes import ShuffledScheme
        >>> from fuel.streams import DataStream
        >>> def build():
        ...     return as_iterable(DataStream(
        ...         IndexableDataset(numpy.arange(4)),
        ...         iteration_scheme=ShuffledScheme(4, 4)))
        >>> batches = build()
        >>> for epoch in range(3):
        ...     print(next(iter(batches)))
        (tensor([3, 2, 0, 1]),)
        >>> batches = build()
        >>> batches.set_epoch(2)
        >>> next(iter(batches))
        (tensor([1, 2, 0, 3]),)
        """
        self._clear_after_fork()
        callers.refuse_to_share_again()
        resumed = self._register.is_resumed()
        callers.refuse_to_skip(self.stream, True, resumed)
        self._register.set_epoch(self.stream, not_negative('epoch', epoch))

    def _begin_here(self) -> EpochIterator[Any]:
        # Only when the first item is read is it known whether a trainer reads
        # ahead.
        self._reads_ahead = self.reader_holds_back or callers.reads_ahead()
        return self._with_targets(
            self._register.begin_here(self.stream, self._reads_ahead))

    def _with_targets(self, epoch: EpochIterator[Any]) -> EpochIterator[Any]:
        """Return an epoch after requesting that it reads targets as int64."""
        if self.targets == INT64:
            request_int64(epoch, self.stream, self.which_sources)
        return epoch

    def _begin(self, session: Session, worker: int, count: int) -> Share:
        # Open the epoch now, so that the register records every worker.
        epoch = self._with_targets(
            self._register.begin_share(self.stream, session, worker))
        return Share(lambda: epoch, self._worker_reader(), worker, count)

    def _resume(self, session: Session, state: State) -> Share:
        worker, stream = state['worker'], state['stream']
        ended = stream if stream['epoch'] == FINISHED else None
        epoch = self._with_targets(self._register.resume_share(
            self.stream, session, worker, stream))
        return Share(lambda: epoch, self._worker_reader(), worker,
                     state['num_workers'], state['taken'], ended)

    def _read(self, iterator: EpochIterator[Batch]) -> Any:
        return self._convert(self._next_batch(iterator))

    def _next_batch(self, iterator: EpochIterator[Batch]) -> Batch:
        """Return the next data, with targets converted to their type."""
        data = next(iterator)
        if self.targets != INT64:
            return data
        chosen = self.which_sources
        return as_int64(data, num_axes(self.stream), [
            chosen is None or source in chosen
            for source in self.stream.sources])

    def _worker_reader(self) -> Callable[[EpochIterator[Batch]], Any]:
        """Return a function that reads the items of an epoch in a worker."""
        if self._sender is None and not self.stream.produces_examples:
            self._sender = make_sender(config.shared_memory_bytes)
        if self._sender is None:
            # The worker sends examples, or cannot send slots.
            return self._read
        batches = SharedBatches(
            self.stream, self.stream.sources if self.which_sources is None
            else self.which_sources, self._sender, self._next_batch)
        return lambda iterator: self._convert(batches.read(iterator))

    def _convert(self, data: Batch) -> Any:
        tensors = as_tensors(data, self.stream, self.which_sources)
        return name_sources(
            self.stream, tensors, self.as_dict) if self.as_dict else tensors

    def state_dict(self) -> State:
        """Return the state of this process, as plain data ready for JSON.

        `StatefulDataLoader` calls this method in each worker.

        Returns
        -------
        dict

        Raises
        ------
        RuntimeError
            If workers read the stream, and this process is not one of them:
            workers may be ahead of the batches that the program has used.
        """
        self._clear_after_fork()
        share = self._share_here()
        if share is not None:
            if get_worker_info() is None:
                callers.refuse_state_ahead(self.stream)
            return share.state()
        if get_worker_info() is None and self._register.last is not None:
            raise RuntimeError(
                'workers of a DataLoader, or a trainer, read the batches, and '
                'may be ahead of the batches that were used: save '
                'state_after(count), with the number of batches that this '
                'pass of the loader has delivered, or let torchdata.'
                'stateful_dataloader.StatefulDataLoader save its state_dict()')
        return of_stream(self.stream.state_dict())

    def state_after(self, count: int | None = None) -> State:
        """Return the stream's state after a number of batches of this pass.

        Call this method in the process of the loader, since workers are ahead
        of the batches that the program has used.

        Parameters
        ----------
        count : int, optional
            Number of batches that the loader's last iterator has delivered.
            It counts from 1 in each epoch and after each resume.  0: the
            state before the first batch; None: after the end of the epoch.

        Returns
        -------
        dict
            A state of the stream, which does not depend on the number of
            workers.  Pass it to :meth:`load_state_dict`, or to
            `load_state_dict` of an equal stream.

        Raises
        ------
        ValueError
            If no epoch has begun, this pass has fewer batches, or this
            process itself reads the stream and has read another number of
            batches.

        Examples
        --------
        This needs the extra ``torch``.

        >>> import numpy
        >>> from torch.utils.data import DataLoader
        >>> from fuel.datasets import IndexableDataset
        >>> from fuel.schemes import ShuffledScheme
        >>> from fuel.streams import DataStream
        >>> def build():
        ...     return as_iterable(DataStream(
        ...         IndexableDataset(numpy.arange(6)),
        ...         iteration_scheme=ShuffledScheme(6, 2)))
        >>> batches = build()
        >>> loader = DataLoader(batches, batch_size=None, num_workers=2)
        >>> for step, (data,) in enumerate(loader, 1):
        ...     state = batches.state_after(step)
        ...     print(data)
        ...     break
        tensor([2, 1])
        >>> restored = build()
        >>> restored.load_state_dict(state)
        >>> for data, in DataLoader(restored, batch_size=None):
        ...     print(data)
        tensor([4, 0])
        tensor([3, 5])
        """
        if count is not None:
            count = not_negative('count', count)
        share = self._share_here()
        if share is not None:
            return of_stream(self._state_here(share, count))
        epoch = self._register.last
        if epoch is None:
            raise ValueError(
                'no epoch has begun, so no batches can have been delivered')
        return of_stream(self._advanced(epoch['state'], count))

    def _share_here(self) -> Share | None:
        """Return the share that this process reads; None if there is none.

        The result is also None if the reader is ahead of the program.
        """
        share = self._share
        if share is None or self._reads_ahead or not (
                share.has_begun or get_worker_info() is not None):
            return None
        return share

    def _state_here(self, share: Share, count: int | None) -> State:
        """Return the state of the epoch that this process reads.

        Raises: ValueError unless `count` is the number of batches read.
        """
        state: State = share.iterator.state_dict()
        is_over = state['epoch'] == FINISHED
        if count != (None if is_over else share.taken):
            remedy = '' if is_over else str(share.taken)
            raise ValueError(
                f'this process has read {share.taken} batches of the epoch '
                f'itself{" and its end" * is_over}, so the state after '
                f'{"its end" if count is None else count} is not at hand: '
                f'save state_after({remedy})')
        return state

    def _advanced(self, state: State, count: int | None) -> State:
        """Return the state of the stream `count` items after a state."""
        with reading_again():
            return self._iterator_after(state, count).state_dict()

    def _iterator_after(self, state: State, count: int | None,
                        ) -> EpochIterator[Any]:
        """Return an iterator of the stream `count` items after a state, while
        items are read again."""
        self.stream.load_state_dict(state)
        iterator: EpochIterator[Any] = self.stream.get_epoch_iterator()
        skip_items(iterator, count)
        return iterator

    def load_state_dict(self, state: Mapping[str, Any],
                        **options: Unpack[LoadOptions]) -> None:
        """Make the next iteration resume from a state.

        Parameters
        ----------
        state : dict
            A state of the stream, from :meth:`state_after` or from the
            stream's `state_dict`; a result of :meth:`state_dict`; or the
            state of a whole `StatefulDataLoader`.  The number of workers may
            differ, unless it is the state of a single worker.
        **options
            Further arguments of
            :meth:`~fuel.streams.AbstractDataStream.load_state_dict` of the
            stream, in place of those in `load_options`.

        Raises
        ------
        fuel.exceptions.StateMismatchError
            If the state belongs to another pipeline, is damaged, or belongs
            to a single worker and the number of workers differs.
        """
        merged: LoadOptions = {**self.load_options, **options}
        self.restore(state, **merged)

    def restore(self, state: Mapping[str, Any],
                **options: Unpack[LoadOptions]) -> None:
        """Make the next iteration resume from a state, which may be of this
        run, without `load_options`."""
        self._clear_after_fork()
        if is_loader_state(state):
            share, count = read_loader_state(state)
            self._load(share['stream'], options, count)
        elif is_share_state(state):
            self._load_share(read_share_state(state), options)
        else:
            self._load(dict(state), options)

    def _load_share(self, state: State, options: LoadOptions) -> None:
        info = get_worker_info()
        here = (0, 0) if info is None else (info.id, info.num_workers)
        there = state['worker'], state['num_workers']
        if there != here:
            raise StateMismatchError(
                f'the state was saved by {_as_worker(*there)}, but this '
                f'is {_as_worker(*here)}: use as many workers as then, or '
                'give the state of the whole loader to load_state_dict() of '
                'as_iterable(), which goes on with any number')
        if info is None:
            self._load(state['stream'], options)
        else:
            self._resumed = {
                **state, 'stream': self._loaded(state['stream'], options)}

    def _load(self, state: State, options: LoadOptions, count: int = 0,
              ) -> None:
        if count:
            accept: LoadOptions = {}
            if 'accept' in options:
                accept['accept'] = options['accept']
            state = self._advanced(self._loaded(state, accept), count)
        state = self._loaded(state, options)
        self._share = None
        self._register.load(state)

    def _loaded(self, state: State, options: LoadOptions) -> State:
        """Load a state into the stream; return it with what the options have
        accepted and left out."""
        self.stream.load_state_dict(state, **options)
        found: State = self.stream.state_dict() if options else state
        return found


def _end_without_parent() -> None:
    """End this worker if the process that started it has died."""
    # PyTorch's worker would take its present parent for that process, and
    # would wait forever for the present parent to end.
    parent = multiprocessing.parent_process()
    if parent is not None and not (
            os.getppid() == parent.pid if _is_forked() else parent.is_alive()):
        raise SystemExit(1)


def _is_forked() -> bool:
    """Return whether this process is a fork of the one that started it."""
    process = multiprocessing.current_process()
    # The first method of the list is the platform's default.
    method = multiprocessing.get_start_method(allow_none=True) or (
        multiprocessing.get_all_start_methods()[0])
    return isinstance(process, context.ForkProcess) or (
        isinstance(process, context.Process) and method == 'fork')


def _as_worker(worker: int, count: int) -> str:
    return (f'worker {worker} of {count}' if count
            else 'a process without workers')
