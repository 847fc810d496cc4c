"""A stream's batches as a data set of Keras."""
from __future__ import annotations

import itertools
import operator
import os
import sys
import warnings
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any, Unpack
from weakref import WeakKeyDictionary

import keras

from fuel.epochs.pipeline import length_of, omits
from fuel.sharding.shard_pipeline import sharding_of
from fuel.exceptions import StateMismatchError
from fuel.streams.arguments import LoadOptions, checked_load_options
from fuel.transformers import MultiProcessing
from fuel.typing import Batch, EpochIterator, State, StreamLike
from fuel.utils.checks import positive
from fuel.utils.ranks import find_rank
from fuel.utils.sparse import require_plain

# Most batches that Keras reads before they are trained on.
_MOST_AHEAD = 8
# Keras's warning when an epoch has fewer batches than the first one.
_RAN_OUT = 'Your input ran out of data'
# The module of Keras that requests batches.
_ADAPTER = 'keras.src.trainers.data_adapters.py_dataset_adapter'


class BatchesDataset(keras.utils.PyDataset):
    """The batches of a stream, for `fit`, `evaluate` and `predict` of Keras.

    Parameters
    ----------
    stream : AbstractDataStream
        A stream of batches, with one to three sources: inputs, targets and
        weights of the examples.  The number of batches in an epoch must be
        known.
    workers : int, optional
        Number of processes that prefetch batches, if `use_multiprocessing`
        is true.  Defaults to 1.
    use_multiprocessing : bool, optional
        Whether :class:`MultiProcessing <fuel.transformers.MultiProcessing>`
        reads the stream.  Defaults to False: the process that trains reads
        it.  Stages use their own threads in both cases.
    max_queue_size : int, optional
        Number of batches that may be prefetched.  Defaults to 10.
    load_options : dict, optional
        Further arguments of
        :meth:`~fuel.streams.AbstractDataStream.load_state_dict` whenever a
        state is loaded, such as ``{'accept': ('data',)}``, since
        :class:`Backup` loads the state itself.

    Attributes
    ----------
    stream : AbstractDataStream

    Raises
    ------
    ValueError
        If the stream has examples, too many sources, or epochs of unknown
        length, or leaves out steps.

    Notes
    -----
    Each pass of Keras over the data is an epoch of the stream, in the order
    of the stream.  So ``shuffle`` of `fit` has no effect: give the stream a
    :class:`~fuel.schemes.ShuffledScheme`.  Keras's own workers do not run,
    since they would keep batches from one pass to the next.  If Keras leaves
    a pass before its end, such as the pass from which it takes a batch to
    build a model, the next pass begins again with the same first batch.

    In distributed training give each process its part of the stream,
    ``stream.shard('auto')``, or the whole stream, ``stream.shard(0, 1)``.

    Examples
    --------
    This needs the extra ``keras``.

    >>> import numpy
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.schemes import ShuffledScheme
    >>> from fuel.streams import DataStream
    >>> batches = BatchesDataset(DataStream(IndexableDataset({
    ...     'features': numpy.ones((6, 2)), 'targets': numpy.arange(6)}),
    ...     iteration_scheme=ShuffledScheme(6, 4)))
    >>> len(batches)
    2
    >>> [targets.tolist() for _, targets in batches]
    [[2, 1, 4, 0], [3, 5]]
    """

    def __init__(self, stream: StreamLike, workers: int = 1,
                 use_multiprocessing: bool = False,
                 max_queue_size: int = 10,
                 load_options: LoadOptions | None = None) -> None:
        super().__init__(max_queue_size=max_queue_size)
        length = length_of(stream)
        if stream.produces_examples:
            raise ValueError(
                f'{type(stream).__name__} produces examples, and Keras trains '
                'on batches: apply the stage Batch')
        if not 1 <= len(stream.sources) <= 3:
            raise ValueError(
                'Keras takes inputs, targets and weights of examples, but '
                f'{type(stream).__name__} has the sources '
                f'{tuple(stream.sources)}: choose some with FilterSources')
        if length is None:
            raise ValueError(
                f'how many batches an epoch of {type(stream).__name__} has is '
                'not known, and Keras must know it: use shards by batch, or '
                "with uneven='pad'; or read the stream in a loop, with "
                'train_on_batch')
        if omits(stream):
            raise _omits()
        if use_multiprocessing:
            positive('workers', workers)
            stream = MultiProcessing(
                stream, max_queue_size, num_workers=workers)
        self.load_options = checked_load_options(load_options)
        self.stream: Any = stream
        self._length = length
        self._owner = os.getpid()
        self._quiet = ExitStack()
        self._is_begun = False
        self._forget()

    def _forget(self) -> None:
        # For the present epoch: its iterator, the state before its first
        # batch, the number of that batch, and the number of batches read.
        self._epoch: EpochIterator[Batch] | None = None
        self._start: State | None = None
        self._first = 0
        self._taken = 0
        # The number of the adapter through which Keras reads the pass, and the
        # numbers of the adapters whose passes were ended by another adapter.
        self._reader: int | None = None
        self._left: set[int] = set()
        # Pairs of a number of batches taken and the state after them.
        self._history: deque[tuple[int, State]] | None = None

    # With these values Keras starts no workers.
    @property
    def workers(self) -> int:
        """Number of Keras's workers (int), always 1."""
        return 1

    @property
    def use_multiprocessing(self) -> bool:
        """Whether Keras runs processes (bool), always False."""
        return False

    def __len__(self) -> int:
        """Return the number of batches of an epoch."""
        return self._length

    @property
    def num_batches(self) -> int:
        """Number of batches in the pass that Keras begins (int)."""
        if not self._is_begun:
            return self._length
        # A pass over the rest of a resumed epoch has fewer batches.
        self._begin_pass(_number_of_reader())
        return self._length - self._first

    def on_epoch_begin(self) -> None:
        """Mark that Keras begins a pass."""
        self._is_begun = True
        self._quiet.close()
        if self._first:
            # Hide Keras's warning of a pass that has fewer batches.
            self._quiet.enter_context(warnings.catch_warnings())
            warnings.filterwarnings('ignore', _RAN_OUT)

    def on_epoch_end(self) -> None:
        """Mark that Keras has ended the pass."""
        self._is_begun = False
        self._quiet.close()

    def __getitem__(self, index: int) -> Batch:
        """Return the next batch of the pass.

        Batches come in the order of the stream, whatever the index is.
        """
        if not 0 <= operator.index(index) < self._length:
            raise IndexError(
                f'there are {self._length} batches, so none has number '
                f'{index}')
        if self._owner != os.getpid():
            raise RuntimeError(
                'the batches are those of another process: give workers and '
                'use_multiprocessing to BatchesDataset, which makes '
                'processes of its own')
        self._is_begun = False
        reader = _number_of_reader()
        if self._epoch is None:
            self._reader = reader
        if reader in self._left:
            raise RuntimeError(
                'another pass over these batches, as of evaluate, predict or '
                'validation_data, has begun before this one was over: make a '
                'BatchesDataset of its own for it, over a stream of its own')
        return self._read()

    def __iter__(self) -> Iterator[Batch]:
        """Iterate over the batches of a pass."""
        self._begin_pass(None)
        for _ in range(self._length - self._first):
            yield self[0]

    def _begin_pass(self, reader: int | None) -> None:
        """Begin a pass; repeat the last pass if it was not read to its end."""
        if self._reader is not None and self._first < (
                self._taken) < self._length:
            self._left.add(self._reader)
        self._reader = reader
        if reader is not None:
            self._left.discard(reader)
        if self._taken == self._length:
            self._epoch = None
            self._first = self._taken = 0
        elif self._taken > self._first:
            self._epoch = None
            self._taken = self._first
            if self._start is None:
                # The stream has no state, so the next epoch is read instead.
                self._first = self._taken = 0
            else:
                self.stream.load_state_dict(self._start)

    def _read(self) -> Batch:
        if self._taken == self._length:
            self._begin_pass(self._reader)
        if self._epoch is None:
            self._check_rank()
            if self._history is not None:
                self._history.clear()
            self._start = None
            with suppress(TypeError):
                self._start = self.stream.state_dict()
            self._epoch = self.stream.get_epoch_iterator()
        batch: Batch | None = next(self._epoch, None)
        for part, source in zip(batch or (), self.stream.sources,
                                strict=False):
            require_plain(part, source, 'BatchesDataset')
        self._taken += 1
        # Read the end too: a state after the last batch begins a new epoch.
        if batch is None or (self._taken == self._length
                             and next(self._epoch, None) is not None):
            raise RuntimeError(
                f'an epoch of {type(self.stream).__name__} has '
                f'{"fewer" if batch is None else "more"} batches than the '
                f'{self._length} that it has by its length')
        if self._history is not None:
            self._history.append((self._taken, self.state_dict()))
        return batch

    def _check_rank(self) -> None:
        """Raise ValueError if several processes train and the stream is not
        sharded."""
        found = find_rank()
        if found.num_ranks > 1 and sharding_of(self.stream) is None:
            raise ValueError(
                f'{found.source} says that {found.num_ranks} processes train '
                'together, and each would read the whole stream: give each '
                "its part with stream.shard('auto', ...), or all of it with "
                'stream.shard(0, 1)')

    def keep_states(self) -> None:
        """Keep the states after the last batches, for :meth:`state_after`."""
        self._history = deque(maxlen=_MOST_AHEAD)

    def state_dict(self) -> State:
        """Return the state of the batches, as plain data ready for JSON.

        Its position is after the last batch that Keras has read.  During
        `fit`, let :class:`Backup` save the state.

        Returns
        -------
        dict
        """
        return {'batches': self._taken % self._length,
                'shards': self._num_shards(),
                'stream': self.stream.state_dict()}

    def state_after(self, count: int) -> State:
        """Return the state after a number of batches of this epoch.

        Keras may have read more batches than it has trained on.

        Raises
        ------
        ValueError
            If the state was not kept, or was dropped since.
        """
        if count == self._taken:
            return self.state_dict()
        for taken, state in self._history or ():
            if taken == count:
                return state
        raise ValueError(
            f'the state after {count} batches is not known (batches read so '
            f'far: {self._taken}): call keep_states() before the epoch, which '
            f'keeps the states after the last {_MOST_AHEAD} batches')

    def load_state_dict(self, state: State,
                        **options: Unpack[LoadOptions]) -> None:
        """Resume from a state of a `BatchesDataset` over an equal stream.

        The next pass reads the rest of the epoch.  Pass ``initial_epoch`` to
        `fit`, so that Keras continues to count.

        Parameters
        ----------
        state : dict
        **options
            Further arguments of
            :meth:`~fuel.streams.AbstractDataStream.load_state_dict` of the
            stream, in place of those in `load_options`.

        Raises
        ------
        ValueError
            If steps are to be left out: Keras takes all epochs to have
            equally many batches.
        fuel.exceptions.StateMismatchError
            If the state belongs to another stream, or was saved in the middle
            of an epoch by another number of ranks.
        """
        taken, shards = _checked(state, self._length)
        if taken and shards != self._num_shards():
            raise StateMismatchError(
                f'the state was saved by one of {shards} ranks in the middle '
                f'of an epoch, but there are {self._num_shards()}: go on with '
                f'{shards} to the end of the epoch, or read the stream in a '
                'loop, where a state fits any number')
        merged: LoadOptions = {**self.load_options, **options}
        if merged.get('leave_out') is not None:
            raise _omits()
        self.stream.load_state_dict(state['stream'], **merged)
        self._forget()
        self._first = self._taken = taken

    def _num_shards(self) -> int:
        shard = sharding_of(self.stream)
        return 1 if shard is None else shard.num_shards


def _omits() -> ValueError:
    """Return the error that steps cannot be left out."""
    return ValueError(
        'Keras takes all epochs to have equally many batches, so '
        'BatchesDataset leaves out no steps: train in a loop, with '
        'train_on_batch')


def _checked(state: object, length: int) -> tuple[int, int]:
    """Check a state; return its numbers of batches taken and of ranks."""
    if isinstance(state, dict) and {'batches', 'shards', 'stream'} == set(
            state) and isinstance(state['stream'], dict):
        taken, shards = state['batches'], state['shards']
        if (type(taken) is int and type(shards) is int
                and 0 <= taken < length and shards > 0):
            return taken, shards
    raise StateMismatchError(
        'the state is not that of a BatchesDataset of '
        f'{length} batches: load one that its state_dict() returned')


_readers: WeakKeyDictionary[object, int] = WeakKeyDictionary()
_numbers = itertools.count()


def _number_of_reader() -> int | None:
    """Return the number of the Keras adapter that requests a batch.

    The result is None if another object requests it.
    """
    caller = sys._getframe(2)
    if caller.f_globals.get('__name__') != _ADAPTER:
        return None
    adapter = caller.f_locals.get('self')
    return None if adapter is None else _readers.setdefault(
        adapter, next(_numbers))
