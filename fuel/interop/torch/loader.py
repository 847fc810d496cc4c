"""A `DataLoader` of PyTorch with the lengths and states of a stream."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Unpack

import torch.utils.data

from fuel.datasets.checks import refuse_dataset
from fuel.epochs.pipeline import require_one_to_one
from fuel.exceptions import StateMismatchError
from fuel.interop.torch import callers
from fuel.interop.torch.integers import INT64
from fuel.interop.torch.loader_dataset import LoaderDataset
from fuel.interop.torch.loader_pass import Pass, Workers
from fuel.interop.torch.progress import (
    LightningProgress, Progress, find_lightning)
from fuel.interop.torch.ranks import RankShare, ShardLike
from fuel.interop.torch.stream_iterable import StreamIterable
from fuel.streams.arguments import LoadOptions
from fuel.typing import Naming, State, StreamLike

_BY_SAMPLER = (
    'an iteration scheme; or give fuel.interop.torch.as_map(dataset) to a '
    "DataLoader of PyTorch's own")
# Arguments of a DataLoader that choose and batch examples. For each, the value
# that libraries pass when they copy a loader, and what to write instead.
_OF_STREAM = {
    'batch_size': (None, 'DataStream(dataset, batch_size=...)'),
    'shuffle': (False, 'DataStream(dataset, shuffle=True, ...)'),
    'sampler': (None, _BY_SAMPLER),
    'batch_sampler': (None, _BY_SAMPLER),
    'drop_last': (False, 'DataStream(dataset, batch_size=..., drop_last=True)'
                  )}


class Loader(torch.utils.data.DataLoader[Any]):
    """A `DataLoader` of PyTorch over a stream of Fuel.

    The stream chooses and batches the examples.  Each iteration is an epoch,
    which begins with its first batch.  With any number of workers,
    persistent or not, the batches and their order are those of the stream.

    Parameters
    ----------
    stream : AbstractDataStream or StreamIterable
        The stream to read.  If it is a stream of examples, the loader returns
        examples.
    num_workers : int, optional
        Number of processes that make batches.  Defaults to 0: this process
        makes them.
    pin_memory, persistent_workers : bool, optional
        As for `DataLoader`.  Default to False.
    prefetch_factor : int, optional
        Number of batches that each worker prefetches.  Defaults to 2.
    collate_fn : callable, optional
        Called with each batch, in the worker.  Defaults to None: batches
        stay as they are.
    as_dict : bool or 'nested', optional
        Whether a batch is a dict from source names to tensors instead of a
        tuple; ``'nested'``: a dict of dicts, whose keys are the parts of the
        names between slashes.  For the source ``'obs/image'``, write
        ``batch['obs']['image']``.  Defaults to False.
    targets : {'int64', 'as stored'}, optional
        The type of sources with one integer per example; see
        :func:`~fuel.interop.torch.to_torch`.  Defaults to ``'int64'``.
    which_sources : tuple of str, optional
        The sources that become tensors; other sources, such as names of
        files, stay as they are.  Defaults to all.
    shard, by, uneven
        How ranks share the stream; see
        :func:`~fuel.interop.torch.as_iterable`.
    load_options : dict, optional
        Further arguments of
        :meth:`~fuel.streams.AbstractDataStream.load_state_dict` whenever a
        state is loaded, such as ``{'accept': ('data',)}``, since frameworks
        load the state themselves.
    **options
        Further arguments of `DataLoader`, such as `multiprocessing_context`.

    Attributes
    ----------
    dataset : StreamIterable
        The data set of the loader.  Its length is the number of examples of
        all ranks together; examples that ranks repeat count once.
    batches_left : int

    Raises
    ------
    TypeError
        If `batch_size`, `shuffle`, `sampler`, `batch_sampler` or `drop_last`
        is passed, since they belong to the stream.  If ``in_order=False`` is
        passed.  If `stream` is a result of `as_iterable` that was made with
        other options.
    ValueError
        If the ranks cannot share the stream, or ``'nested'`` is passed and
        the names of the sources do not form a tree.
    fuel.exceptions.NotAStreamError
        If `stream` is a data set.

    Notes
    -----
    ``len(loader)`` is the number of batches in a whole epoch of this rank,
    also after :meth:`load_state_dict` and within a pass.
    :attr:`batches_left` is the number of batches that remain.

    Examples
    --------
    This needs the extra ``torch``.

    >>> import numpy
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.streams import DataStream
    >>> def build():
    ...     return Loader(DataStream(
    ...         IndexableDataset(numpy.arange(6)), batch_size=2, shuffle=True,
    ...         seed=1), num_workers=2)
    >>> loader = build()
    >>> len(loader), len(loader.dataset)
    (3, 6)
    >>> for data, in loader:
    ...     state = loader.state_dict()
    ...     break
    >>> loader = build()
    >>> loader.load_state_dict(state)
    >>> loader.batches_left
    2
    """

    dataset: LoaderDataset

    def __init__(self, stream: StreamLike | StreamIterable,
                 num_workers: int = 0, *, pin_memory: bool = False,
                 persistent_workers: bool = False,
                 prefetch_factor: int | None = 2,
                 collate_fn: Callable[[Any], Any] | None = None,
                 as_dict: Naming = False, targets: str = INT64,
                 which_sources: Sequence[str] | None = None,
                 shard: ShardLike = 'auto', by: str = 'batch',
                 uneven: str | None = None,
                 load_options: LoadOptions | None = None,
                 **options: Any) -> None:
        _refuse_options_of_stream(options)
        # Lightning makes a copy of a loader from its data set and from the
        # attributes that have the names of arguments.
        known = options.pop('dataset', None)
        if isinstance(stream, StreamIterable):
            known = LoaderDataset.over(stream)
            known.refuse_other_options(
                as_dict=as_dict, targets=targets,
                which_sources=which_sources, shard=shard, by=by,
                uneven=uneven, load_options=load_options)
        elif not isinstance(known, LoaderDataset):
            refuse_dataset(stream, 'Loader')
            known = LoaderDataset(
                RankShare(stream, shard, by, uneven), as_dict, which_sources,
                targets=targets, load_options=load_options)
        if num_workers > 1:
            require_one_to_one(known.whole, may_omit=True)
        self.stream = stream
        self.as_dict = known.as_dict
        self.targets = known.targets
        self.which_sources = known.which_sources
        self.shard = shard
        self.by = by
        self.uneven = uneven
        self.load_options = known.load_options
        self._pass: Pass | None = None
        self._workers = Workers()
        # Progress of Accelerate, if it reads the loader for the program.
        self._progress: Progress | None = None
        self._is_loaded = False
        super().__init__(
            known, batch_size=None, num_workers=num_workers,
            pin_memory=pin_memory, persistent_workers=persistent_workers,
            prefetch_factor=prefetch_factor if num_workers else None,
            # PyTorch's default function would search each batch for arrays.
            collate_fn=_as_it_is if collate_fn is None else collate_fn,
            **options)

    def __repr__(self) -> str:
        arguments = [repr(self.dataset)]
        if self.num_workers:
            arguments.append(f'num_workers={self.num_workers}')
        return f'Loader({", ".join(arguments)})'

    def __getstate__(self) -> dict[str, Any]:
        # Reset the state of this process; state_dict() holds the position.
        return {**vars(self), '_pass': None, '_workers': Workers(),
                '_progress': None, '_iterator': None}

    def __len__(self) -> int:
        """Return the number of batches in an epoch of this rank."""
        return len(self.dataset.stream)

    def __iter__(self) -> Iterator[Any]:
        """Return an iterator, which begins an epoch with its first batch."""
        return _Reading(self)

    @property
    def batches_left(self) -> int:
        """Number of batches left in the running pass (int).

        If no pass is running, it is the number of batches of the next pass.

        Raises
        ------
        TypeError
            If the number is not known before the epoch is over.
        """
        present = self._pass
        if present is None or present.is_over:
            return self.dataset.count_next()
        return self._left_of(present)

    def set_epoch(self, epoch: int) -> None:
        """Make the next iteration read the epoch with this number.

        Trainers call this method; see :meth:`StreamIterable.set_epoch`.

        Parameters
        ----------
        epoch : int
            Number of the epoch, from 0.
        """
        self.dataset.set_epoch(epoch)

    def state_dict(self) -> State:
        """Return the position after the last batch that the program finished.

        In a plain loop it is the position after the batch that was delivered
        last; prefetched batches do not count.  Under Lightning it is the
        position after the batch that was trained on last.  Under Accelerate,
        with :func:`fuel.interop.accelerate.prepare`, it is the position after
        the batch that the program received last.

        Returns
        -------
        dict
            Plain data ready for JSON: a state of the stream, which does not
            depend on the number of workers or ranks.

        Raises
        ------
        RuntimeError
            If another loader reads the data set of this loader.
        """
        present = self._pass
        if present is None or (
                present.is_over and self.dataset.next_start() is not None):
            return self.dataset.state_before()
        return present.state(present.used)

    def current_step(self, accumulate: int = 1) -> int:
        """Return the number of the step of the last batch that the program
        finished.

        It is the batch after which :meth:`state_dict` is the position, with
        any number of workers.

        Parameters
        ----------
        accumulate : int, optional
            Number of batches of each rank for a step.  Defaults to 1.

        Returns
        -------
        int
            See :meth:`fuel.streams.AbstractDataStream.current_step`.

        Raises
        ------
        fuel.exceptions.UnknownOrderError
            As the method of the stream does.
        RuntimeError
            If another loader reads the data set of this loader.
        """
        present = self._pass
        if present is None or (
                present.is_over and self.dataset.next_start() is not None):
            # This raises an error if another loader reads the data set.
            self.dataset.state_before()
            step: int = self.dataset.stream.current_step(accumulate)
            return step
        return present.step(accumulate)

    def load_state_dict(self, state: Mapping[str, Any],
                        **options: Unpack[LoadOptions]) -> None:
        """Make the next iteration resume from a state.

        Parameters
        ----------
        state : dict
            A state that :meth:`state_dict` returned, or any state that
            :meth:`StreamIterable.load_state_dict` accepts.  It may have been
            saved with another number of workers or ranks.
        **options
            Further arguments of
            :meth:`~fuel.streams.AbstractDataStream.load_state_dict` of the
            stream, in place of those in `load_options`.

        Raises
        ------
        fuel.exceptions.StateMismatchError
            If the state belongs to another pipeline or is damaged.
        """
        if isinstance(state, Mapping) and list(state) == ['batches']:
            # The form of the state in checkpoints of Fuel's DataModule.
            state = state['batches']
        if not isinstance(state, Mapping):
            raise StateMismatchError(
                'the state must be a dict that state_dict() returned, got '
                f'{type(state).__name__}')
        # Leave out the key that Accelerate adds.
        self.dataset.load_state_dict({
            name: value for name, value in state.items()
            if name != '_iterator_finished'}, **options)
        self._pass = None
        self._is_loaded = True

    def set_progress(self, progress: Progress) -> None:
        """Set the progress of a framework that reads this loader.

        The progress counts the batches that the framework has given to the
        program.
        """
        self._progress = progress

    def _begin(self) -> tuple[Pass, Iterator[Any]]:
        """Begin a pass; return the pass and PyTorch's iterator over it."""
        callers.refuse_keras()
        dataset, before = self.dataset, self._pass
        progress = self._progress or find_lightning()
        if progress is not None:
            progress.begin()
        if isinstance(progress, LightningProgress):
            self._load_lightning_checkpoint(progress)
        if before is not None and before.used == 0 and before.delivered:
            # Lightning has prefetched a batch and dropped the pass: begin the
            # same epoch again.
            dataset.restore(before.state(0))
        elif before is not None and not before.is_over:
            dataset.leave(before.delivered if before.used is None
                          else before.used)
        begun = Pass(dataset, progress)
        if not self.num_workers:
            with dataset.read_by_loader():
                iterator = super().__iter__()
            begun.begin_here()
        else:
            if self._iterator is None:
                self._workers = Workers()
            begun.begin_in_workers(self._workers.next_session())
            # A thread may request a state while workers start.
            self._pass = begun
            iterator = self._start_workers(begun)
        self._pass, self._is_loaded = begun, False
        return begun, iterator

    def _start_workers(self, begun: Pass) -> Iterator[Any]:
        """Return PyTorch's iterator over a pass that workers read."""
        try:
            with self.dataset.read_by_loader(self._workers.token):
                started: Iterator[Any] = super().__iter__()
        except BaseException:
            # No worker started, so the next iteration begins this epoch.
            self.dataset.restore(begun.state(0))
            self._pass = None
            self._is_loaded = True
            raise
        return started

    def _left_of(self, present: Pass) -> int:
        """Return the number of batches left in a pass."""
        if present.num_batches is None:
            raise TypeError(
                'how many batches are left of an epoch of '
                f'{type(self.dataset.stream).__name__} is not known before '
                'it is over')
        return present.num_batches - present.delivered

    def _load_lightning_checkpoint(self, progress: LightningProgress) -> None:
        """Load the loader's state from Lightning's checkpoint, if necessary.

        Lightning itself restores the state only in the middle of an epoch.
        """
        before = self._pass
        if before is not None and isinstance(
                before.progress, LightningProgress):
            if progress.repeats:
                self.dataset.restore(before.state(0))
            return
        state = None if self._is_loaded else progress.state_to_load(self)
        if progress.repeats and (self._is_loaded or state is not None):
            raise ValueError(
                'Lightning repeats the first batches of an epoch '
                '(overfit_batches), which no state holds: begin the run '
                'anew, or train on a stream of these few examples')
        if state is not None:
            self.load_state_dict(state)
        if self._is_loaded:
            if progress.begins_epoch:
                self.dataset.leave_empty_rest()
        elif progress.resumes_without_state(self.dataset.is_named()):
            raise ValueError(
                'Lightning goes on from a checkpoint that holds no state of '
                'this loader, so batches would come twice or be left out: '
                'resume from a checkpoint that was saved with a '
                'fuel.interop.torch.Loader or with '
                'fuel.interop.lightning.DataModule')


class _Reading(Iterator[Any]):
    """An iterator over an epoch of a loader, which counts the batches.

    The loader has no reference to the iterator. So the workers end when the
    program drops the iterator.
    """

    def __init__(self, loader: Loader) -> None:
        self._loader = loader
        # PyTorch's iterator, which counts the batches that it returns.
        self._iterator: Any = None
        self._pass: Pass | None = None

    def __next__(self) -> Any:
        if self._pass is None:
            self._pass, self._iterator = self._loader._begin()
        present = self._pass
        if present.is_over:
            raise StopIteration
        if self._loader.persistent_workers and (
                self._loader._pass is not present):
            raise RuntimeError(
                'the workers of this loader have begun another pass, and '
                'left this one: with persistent_workers=True a loader has '
                'one pass at a time')
        if present.progress is not None:
            present.progress.look()
        assert self._iterator is not None
        try:
            batch = next(self._iterator)
        except StopIteration:
            present.is_over = True
            self._iterator = None
            raise
        except Exception as error:
            # The error takes the place of a batch, unless a worker has died.
            present.count(self._iterator._num_yielded, error)
            raise
        present.count(self._iterator._num_yielded)
        return batch

    def __len__(self) -> int:
        """Return the number of batches left in the pass."""
        if self._pass is None:
            return self._loader.dataset.count_next()
        if self._pass.is_over:
            return 0
        return self._loader._left_of(self._pass)


def _as_it_is(batch: Any) -> Any:
    """Return a batch unchanged, since it has tensors already."""
    return batch


def _refuse_options_of_stream(options: dict[str, Any]) -> None:
    """Raise TypeError for arguments of a DataLoader that the stream sets."""
    if not options.pop('in_order', True):
        raise TypeError(
            'Loader got in_order=False, but states count batches in the order '
            'of the stream: leave in_order out')
    for name, (harmless, remedy) in _OF_STREAM.items():
        value = options.pop(name, harmless)
        if value is not None and value is not harmless:
            raise TypeError(
                f'Loader got {name}={value!r}, but the stream chooses and '
                f'batches the examples: leave {name} out, and write {remedy}')
