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
from typing import Any
from weakref import WeakKeyDictionary

import keras

from fuel.epochs.pipeline import length_of
from fuel.sharding.shard_pipeline import sharding_of
from fuel.exceptions import StateMismatchError
from fuel.transformers import MultiProcessing
from fuel.typing import Batch, EpochIterator, State, StreamLike
from fuel.utils.checks import positive
from fuel.utils.ranks import find_rank
from fuel.utils.sparse import require_plain

# As many batches may be on their way to a device before they are trained on.
_MOST_AHEAD = 8
# Keras's warning when an epoch has fewer batches than the first one.
_RAN_OUT = 'Your input ran out of data'
# The module of Keras that asks for batches.
_ADAPTER = 'keras.src.trainers.data_adapters.py_dataset_adapter'


class BatchesDataset(keras.utils.PyDataset):
    """The batches of a stream, for `fit`, `evaluate` and `predict` of Keras.

    Parameters
    ----------
    stream : AbstractDataStream
        Of batches, with one to three sources: inputs, targets and weights of
        the examples.  How many batches an epoch has must be known.
    workers : int, optional
        Number of processes that prefetch batches, if `use_multiprocessing`.
        Defaults to 1.
    use_multiprocessing : bool, optional
        Whether the stream is read by :class:`MultiProcessing
        <fuel.transformers.MultiProcessing>`.  Defaults to False: by the
        process that trains; stages use their own threads in any case.
    max_queue_size : int, optional
        Number of batches that may be prefetched.  Defaults to 10.

    Attributes
    ----------
    stream : AbstractDataStream

    Raises
    ------
    ValueError
        If the stream has examples, too many sources, or epochs of unknown
        length.

    Notes
    -----
    Each pass of Keras over the data is an epoch of the stream, in the order
    of the stream, so ``shuffle`` of `fit` has no effect: give the stream a
    :class:`~fuel.schemes.ShuffledScheme`.  Keras's own workers do not run,
    since they would keep batches from one pass to another.  A pass that Keras
    leaves, as the look at a batch by which it builds a model, is begun again.

    In distributed training each process needs its part of the stream, of
    ``stream.shard('auto')``; ``stream.shard(0, 1)`` is all of it.

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
                 max_queue_size: int = 10) -> None:
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
        if use_multiprocessing:
            positive('workers', workers)
            stream = MultiProcessing(
                stream, max_queue_size, num_workers=workers)
        self.stream: Any = stream
        self._length = length
        self._owner = os.getpid()
        self._quiet = ExitStack()
        self._is_begun = False
        self._forget()

    def _forget(self) -> None:
        # Of the epoch that is read: its iterator, the state before its first
        # batch, the number of that, and how many batches were read of it.
        self._epoch: EpochIterator[Batch] | None = None
        self._start: State | None = None
        self._first = 0
        self._taken = 0
        # The number of the iterator that Keras reads the pass by, and those of
        # earlier ones, which left batches to another one.
        self._reader: int | None = None
        self._left: set[int] = set()
        # States after the last batches, by the number of batches taken.
        self._history: deque[tuple[int, State]] | None = None

    # Keras starts no workers for these.
    @property
    def workers(self) -> int:
        """Number of Keras's workers (int), always 1."""
        return 1

    @property
    def use_multiprocessing(self) -> bool:
        """Whether Keras runs processes (bool): it does not."""
        return False

    def __len__(self) -> int:
        """Return the number of batches of an epoch."""
        return self._length

    @property
    def num_batches(self) -> int:
        """Number of batches of the pass that Keras begins (int)."""
        if not self._is_begun:
            return self._length
        # The rest of an epoch that was resumed is a shorter pass.
        self._begin_pass(_number_of_reader())
        return self._length - self._first

    def on_epoch_begin(self) -> None:
        """Begin a pass with the next batch, if Keras makes an iterator."""
        self._is_begun = True
        self._quiet.close()
        if self._first:
            # Keras warns of a short pass while it reads it.
            self._quiet.enter_context(warnings.catch_warnings())
            warnings.filterwarnings('ignore', _RAN_OUT)

    def on_epoch_end(self) -> None:
        """Leave the pass."""
        self._is_begun = False
        self._quiet.close()

    def __getitem__(self, index: int) -> Batch:
        """Return the next batch of the pass.

        The index only says that Keras wants another one.
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
        """Go back to where the last pass began, if it was not read whole."""
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
                # A new epoch is as good as one that cannot be repeated.
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
        # A state after the last batch is that after the epoch.
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
        """Refuse to read all of the data in each of several processes."""
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

        That is after the last one that Keras asked for.  During `fit`, let
        :class:`Backup` save it.

        Returns
        -------
        dict
        """
        return {'batches': self._taken % self._length,
                'shards': self._num_shards(),
                'stream': self.stream.state_dict()}

    def state_after(self, count: int) -> State:
        """Return the state after a number of batches of this epoch.

        Batches may be on their way to a device that are not trained on.

        Raises
        ------
        ValueError
            If that state is not kept any more, or not kept at all.
        """
        if count == self._taken:
            return self.state_dict()
        for taken, state in self._history or ():
            if taken == count:
                return state
        raise ValueError(
            f'the state after {count} batches is not known: {self._taken} '
            f'were asked for, and call keep_states() before the epoch; the '
            f'last {_MOST_AHEAD} are kept')

    def load_state_dict(self, state: State) -> None:
        """Go on where other batches, of a stream built alike, stood.

        The next pass is the rest of that epoch.  Pass ``initial_epoch`` to
        `fit`, so that Keras counts on.

        Raises
        ------
        fuel.exceptions.StateMismatchError
            If the state is that of another stream, or of another number of
            ranks in the middle of an epoch.
        """
        taken, shards = _checked(state, self._length)
        if taken and shards != self._num_shards():
            raise StateMismatchError(
                f'the state was saved by one of {shards} ranks in the middle '
                f'of an epoch, but there are {self._num_shards()}: go on with '
                f'{shards} to the end of the epoch, or read the stream in a '
                'loop, where a state fits any number')
        self.stream.load_state_dict(state['stream'])
        self._forget()
        self._first = self._taken = taken

    def _num_shards(self) -> int:
        shard = sharding_of(self.stream)
        return 1 if shard is None else shard.num_shards


def _checked(state: object, length: int) -> tuple[int, int]:
    """Return the numbers of batches taken and of ranks that a state has."""
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
    """Return the number of the Keras adapter that asks for a batch, None for
    another caller."""
    caller = sys._getframe(2)
    if caller.f_globals.get('__name__') != _ADAPTER:
        return None
    adapter = caller.f_locals.get('self')
    return None if adapter is None else _readers.setdefault(
        adapter, next(_numbers))
