"""Number the epochs of a stream that the workers of data loaders read.

A new worker process does not know how many epochs were read before it, and all
workers of a loader must read the same epoch. So they share a file: the first
worker begins the next epoch, and records in the file where the epoch starts.
"""
from __future__ import annotations

import json
import os
import weakref
from contextlib import AbstractContextManager, ExitStack, suppress
from itertools import islice
from typing import Any, NamedTuple

from fuel.epochs.epoch import reading_again
from fuel.epochs.past import with_epoch
from fuel.epochs.pipeline import (
    require_one_to_one, rounds_of, skip_delivered)
from fuel.epochs.stage import stage_of
from fuel.epochs.state import RUNNING
from fuel.interop.torch.callers import counts_passes
from fuel.streams.order import leave_out_more
from fuel.typing import EpochIterator, State, StreamLike
from fuel.utils.lockfile import LockFile
from fuel.utils.atomic_files import scratch_folder
from fuel.workers.batch_maker import open_epoch

# Most seconds to wait while another worker begins the epoch.
_BEGIN_SECONDS = 600
_POLL_SECONDS = 0.005
# Number of epochs in the record; several loaders may read at the same time.
_MOST_EPOCHS = 16


class Session(NamedTuple):
    """Identifier of a pass of a loader; all workers of the pass share it.

    `seed`: number that the loader draws for its workers.
    `number`: number of epochs that these workers began before this pass.
    """

    seed: int
    number: int


class EpochRegister:
    """The record of begun epochs, in a file that several processes share."""

    def __init__(self, record: dict[str, Any] | None = None) -> None:
        self._stack = ExitStack()
        self.folder = self._stack.enter_context(
            scratch_folder('fuel-epochs-'))
        weakref.finalize(self, _remove, self._stack, os.getpid())
        self._write(record or {
            'pending': None, 'epochs': [], 'number': 0, 'origin': None})

    @classmethod
    def at(cls, folder: str) -> EpochRegister:
        """Return a register that uses the folder of another process."""
        register = cls.__new__(cls)
        register.folder = folder
        return register

    @property
    def _path(self) -> str:
        return os.path.join(self.folder, 'epochs.json')

    def read(self) -> dict[str, Any]:
        """Return the record as plain data."""
        with open(self._path, encoding='ascii') as file:
            record: dict[str, Any] = json.load(file)
        return record

    def _write(self, record: dict[str, Any]) -> None:
        new = f'{self._path}.{os.getpid()}'
        with open(new, 'w', encoding='ascii') as file:
            json.dump(record, file)
        os.replace(new, self._path)

    def _locked(self) -> AbstractContextManager[None]:
        return LockFile(os.path.join(self.folder, 'lock')).held(
            _BEGIN_SECONDS, _POLL_SECONDS)

    def load(self, state: State) -> None:
        """Make the next epoch start from a state."""
        with self._locked():
            self._write({**self.read(), 'pending': state, 'number': None,
                         'origin': None})

    def has_begun(self, session: Session, worker: int) -> bool:
        """Return whether another worker has begun the epoch of a session."""
        return _find(self.read()['epochs'], session, worker) is not None

    def is_named(self) -> bool:
        """Return whether the number of the next epoch is known."""
        return self.read()['origin'] is not None

    def is_resumed(self) -> bool:
        """Return whether the next iteration resumes from a state."""
        record = self.read()
        return record['pending'] is not None and record['number'] is None

    def next_start(self) -> State | None:
        """Return the state that was set as the start of the next epoch; None
        if no state was set."""
        start: State | None = self.read()['pending']
        return start

    def set_epoch(self, stream: StreamLike, number: int) -> None:
        """Make the next epoch the epoch with this number, counted from 0.

        The first number that is set after a state was loaded is the number of
        the epoch that resumes from the state.
        """
        with self._locked():
            record = self.read()
            if number < (record['number'] or 0) and counts_passes():
                # Accelerate does not count epochs left before their end.
                return
            if record['number'] is None:
                record['number'] = number
            if record['origin'] is None:
                record['origin'] = {
                    'number': record['number'],
                    'state': _state_or_none(stream, record['pending'])}
            if number < record['number']:
                _leave_empty(stream, record, number)
            if number != record['number']:
                record['pending'] = self._start_of(stream, record, number)
                record['number'] = number
            self._write(record)

    def _start_of(self, stream: Any, record: dict[str, Any],
                  number: int) -> State:
        """Load the state from which an epoch starts, and return the state."""
        first, after = record['number'], None
        state = record['pending']
        if number < first:
            first, state = _before(record, number)
        elif state is None and record['epochs']:
            after = record['epochs'][-1]
        with reading_again():
            iterator = _open(stream, state, after)
            for _ in range(number - first):
                # Read the whole epoch: the random numbers of the next epoch
                # may depend on it.
                skip_items(iterator, None)
                iterator = _open(stream)
            state = iterator.state_dict()
        stream.load_state_dict(state)
        return state

    def leave(self, count: int | None) -> None:
        """Record how many items of the epoch that was begun last have been
        delivered; None, the default, means all."""
        with self._locked():
            record = self.read()
            if record['epochs']:
                record['epochs'][-1]['delivered'] = count
                self._write(record)

    @property
    def last(self) -> dict[str, Any] | None:
        """The record of the epoch that was begun last, or None (dict)."""
        epochs: list[dict[str, Any]] = self.read()['epochs']
        return epochs[-1] if epochs else None

    def begin_here(self, stream: StreamLike,
                   reads_ahead: bool = False) -> EpochIterator[Any]:
        """Begin the next epoch in the process of the loader.

        `reads_ahead`: whether the reader is ahead of the program. Then states
            before the last item may be requested.
        """
        with self._locked():
            record = self.read()
            if not (record['epochs'] or reads_ahead):
                # The stream itself holds the position.
                self._write({**record, 'pending': None, **_counted(record)})
                return _open(stream)
            return self._begin(stream, record, None, None)

    def begin_session(self, stream: StreamLike, session: Session
                      ) -> tuple[EpochIterator[Any], State]:
        """Begin an epoch before its workers start.

        Returns: an iterator over the whole epoch, and the state from which
            the epoch starts.
        """
        with self._locked():
            iterator = self._begin(stream, self.read(), session, None)
        return iterator, iterator.state_dict()

    def begin_share(self, stream: StreamLike, session: Session, worker: int
                    ) -> EpochIterator[Any]:
        """Begin the epoch of a session, or join workers that have begun it."""
        with self._locked():
            record = self.read()
            epoch = _find(record['epochs'], session, worker)
            if epoch is None:
                return self._begin(stream, record, session, worker)
            epoch['workers'].append(worker)
            self._write(record)
        return _open(stream, epoch['state'])

    def resume_share(self, stream: StreamLike, session: Session, worker: int,
                     state: State) -> EpochIterator[Any]:
        """Resume a worker's part of an epoch from a saved state.

        If the state was saved at the end of the epoch, the iterator reads the
        next epoch.
        """
        iterator = _open(stream, state)
        with self._locked():
            record = self.read()
            epoch = _find(record['epochs'], session, worker)
            if epoch is None:
                record['epochs'].append(_entry(session, worker, state))
                record.update(pending=None, number=None, origin=None)
            else:
                epoch['workers'].append(worker)
            self._write(record)
        return iterator

    def _begin(self, stream: StreamLike, record: dict[str, Any],
               session: Session | None, worker: int | None
               ) -> EpochIterator[Any]:
        """Begin the next epoch, and record the state from which it starts."""
        state, epochs = record['pending'], record['epochs']
        iterator = _open(stream, state, epochs[-1] if (
            state is None and epochs) else None)
        record['epochs'] = [*record['epochs'], _entry(
            session, worker, iterator.state_dict(), record['number']
            )][-_MOST_EPOCHS:]
        self._write({**record, 'pending': None, **_counted(record)})
        return iterator


def _open(stream: StreamLike, state: State | None = None,
          after: dict[str, Any] | None = None) -> EpochIterator[Any]:
    """Return an iterator over the next epoch.

    `state`: the state from which it starts.
    `after`: in place of `state`, the entry of the epoch before.
    """
    if after is not None:
        state = after['state']
    if state is not None:
        # Another process may have loaded it, while this one kept the stream.
        leave_out_more(stream, state, None, 1)
    iterator: EpochIterator[Any] = open_epoch(stream, state)
    if after is None or state is None or state['epoch'] != RUNNING:
        return iterator
    # Others have read the epoch of this iterator.
    left: Any = iterator
    count, epoch = after.get('delivered'), stage_of(stream).epoch
    delivered = None if count is None or epoch is None else (
        state['position'] + epoch.step * rounds_of(left, count))
    if _goes_on(stream):
        with reading_again():
            skip_items(left, count)
    iterator = open_epoch(stream)
    epoch = stage_of(stream).epoch
    if epoch is not None:
        epoch.past = with_epoch(state.get('past'), delivered)
    return iterator


def _goes_on(stream: StreamLike) -> bool:
    """Return whether the next epoch goes on behind the items of this one, as
    that of a mixture without end does."""
    stage = stage_of(stream)
    return not stage.goes_back or any(map(_goes_on, stage.inputs))


def _entry(session: Session | None, worker: int | None,
           state: State, number: int | None = None) -> dict[str, Any]:
    return {'session': session, 'pid': os.getpid(), 'workers': [worker],
            'state': state, 'number': number}


def _counted(record: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a record that change when an epoch begins."""
    number = record['number']
    # If no epoch was numbered before, there is no earlier epoch to return to.
    return {'number': None if number is None else number + 1,
            'origin': record['origin'] or {'number': number, 'state': None}}


def _state_or_none(stream: Any, pending: State | None) -> State | None:
    """Return the state from which the next epoch starts.

    The result is None if the stream cannot save its position.
    """
    if pending is not None:
        return pending
    with suppress(TypeError):
        state: State = stream.state_dict()
        return state
    return None


def _before(record: dict[str, Any], number: int) -> tuple[int, State]:
    """Return the number and the first state of an epoch to start from.

    It is the epoch `number` if the record has its state, otherwise the first
    epoch whose number is known.
    """
    for known in [*reversed(record['epochs']), record['origin']]:
        if known['state'] is not None and known['number'] == number:
            return number, known['state']
    origin = record['origin']
    if origin['state'] is None or number < origin['number']:
        raise ValueError(
            f'epoch {number} is over, and the next is epoch '
            f'{record["number"]}: to go back, call set_epoch() before the '
            'first epoch, of a stream that can save its position, or load a '
            'state')
    return origin['number'], origin['state']


def _leave_empty(stream: StreamLike, record: dict[str, Any],
                 number: int) -> None:
    """Give `number` to the next epoch if epoch `number` has no batches left.

    After resuming at the end of an epoch, the pass over the rest of the epoch
    has no batches.  Trainers do not count such a pass, and would repeat it
    without end.
    """
    epochs = record['epochs']
    last = epochs[-1] if epochs else record['origin']
    if last['number'] != number or last['state'] is None:
        return
    with reading_again():
        is_empty = next(_open(stream, last['state']), None) is None
    if is_empty:
        for epoch in epochs:
            epoch['number'] = None
        record.update(pending=None, number=number, origin={
            'number': number, 'state': None})


def _find(epochs: list[dict[str, Any]], session: Session,
          worker: int) -> dict[str, Any] | None:
    """Return the epoch that other workers of a session have begun, or None.

    Two loaders that run one after the other may have the same seed. So an
    epoch that this worker has read, or whose first worker has ended, belongs
    to another loader.
    """
    return next((
        epoch for epoch in reversed(epochs)
        if epoch['session'] == list(session)
        and worker not in epoch['workers'] and is_alive(epoch['pid'])), None)


def is_alive(pid: int) -> bool:
    """Return whether a process runs; True if that cannot be known."""
    if os.name == 'nt':
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _remove(stack: ExitStack, owner: int) -> None:
    """Remove the folder, unless this is a forked child of its owner."""
    if os.getpid() == owner:
        stack.close()


def skip_items(iterator: Any, count: int | None) -> None:
    """Skip items of an epoch, without making them if possible.

    `count`: number of items; None for all items and the end.

    Raises: ValueError if fewer items are left.
    """
    left = _count_left(iterator)
    if left is None:
        # The stream is not one-to-one, or its length is not known.
        taken = sum(1 for _ in islice(iterator, count))
        if count is not None and taken < count:
            raise _beyond(count, taken)
        return
    if count is not None and count > left:
        raise _beyond(count, left)
    skip_delivered(iterator, left if count is None else count)
    if count is None:
        for _ in iterator:
            pass


def _count_left(iterator: Any) -> int | None:
    """Return the number of items that can be skipped; None if unknown."""
    try:
        require_one_to_one(iterator.data_stream, may_omit=True)
    except ValueError:
        return None
    return items_left(iterator)


def items_left(iterator: Any) -> int | None:
    """Return the number of items left in an epoch; None if unknown."""
    try:
        return len(iterator)
    except TypeError:
        return None


def _beyond(count: int, left: int) -> ValueError:
    return ValueError(
        f'there is no state after {count} batches of this pass, which has '
        f'{left}: count them from 1 in each epoch, and after each resume, as '
        'enumerate(loader, 1) does')
