"""The consumer's side of an actor that makes batches."""
from __future__ import annotations

import logging
import pickle
import time
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayError, RayTaskError

from fuel.epochs.state import available
from fuel.epochs.state_delta import Receipt
from fuel.exceptions import WorkerError
from fuel.interop.ray.actor import ActorReply
from fuel.interop.ray.object_leases import ObjectLeases
from fuel.transport.batches import load_batch
from fuel.workers.batch_maker import ReceivedItem
from fuel.workers.team import (
    MOMENT, EpochWorker, RemoteEpoch, pipeline_error)

log = logging.getLogger(__name__)

# Seconds between checks whether another thread closed the stream.
_POLL_SECONDS = 1.0


class ActorLostError(Exception):
    """An actor, its node or one of its results is lost."""


class ActorEpoch(RemoteEpoch):
    """One epoch of one actor, on the consumer's side.

    `options`: the options with which its actor began the epoch.
    `is_fresh`: whether a new actor can begin the epoch with these options.
    `changes`: the changes of the state from `base` to the last batch
        received.
    `asked`: the options of the last request to open the epoch.
    `answer`: a reference to the answer to that request; None once received.
    `calls`: for each batch that was requested, a reference to the batch and
        the largest number of bytes that it may have.
    `life`: number of the worker's actors that were replaced before the epoch
        was opened.
    """

    def __init__(self, number: int, options: dict[str, Any], *,
                 is_fresh: bool) -> None:
        super().__init__(number)
        self.options = options
        self.is_fresh = is_fresh
        self.changes: bytes | None = None
        self.asked = options
        self.answer: Any = None
        self.calls: deque[tuple[Any, int]] = deque()
        self.life = -1

    @property
    def reserved(self) -> int:
        """Bytes that all requested batches may have together (int)."""
        return sum(room for _, room in self.calls)

    def record_opened(self, answer: bytes, *, failed: bool) -> None:
        """Record an actor's answer to the request to open the epoch."""
        self.options, self.changes, self.answer = self.asked, None, None
        self.open(answer, failed=failed)

    def options_to_go_on(self) -> dict[str, Any]:
        """Return the options with which another actor continues.

        Raises an error if no state exists to continue from.
        """
        if self.changes is None and self.is_fresh:
            return self.options
        changes = None if self.changes is None else pickle.loads(self.changes)
        state = available(Receipt(self.base, changes).state())
        options = {**self.options, 'after': False, 'calls': (),
                   'state': state}
        if self.changes is not None and 'share' in options:
            # Skip the batches of all other workers before the next batch.
            count = options['share'][1]
            options['share'] = count - 1, count
        return options


class ActorWorker(EpochWorker[ActorEpoch]):
    """A worker of a team: an actor, which is replaced if it dies.

    `start`: function that starts an actor.
    `stalled`: seconds without an answer after which an actor counts as
        stalled.
    `max_restarts`: largest number of actors that may die one after another
        without making a batch.
    `needs`: resources that the actor needs, as text.
    `max_batches`, `max_bytes`: limits of prefetching.
    `restarts`: number of actors that were replaced.
    """

    kind = 'an actor'
    remedy = 'make a new stream there'

    def __init__(self, name: str, start: Callable[[], Any],
                 leases: ObjectLeases, *, stalled: float, max_restarts: int,
                 needs: str) -> None:
        super().__init__(name, stalled)
        self.max_batches = self.max_bytes = 1
        self.max_restarts = max_restarts
        self.needs = needs
        self.waiter = SimpleNamespace(is_waiting=False)
        self.restarts = 0
        self._start = start
        self._leases = leases
        self._deaths = 0
        # Bytes of the next batch, estimated from the batches before it.
        self._size: int | None = None
        self._actor = start()
        self._location = self._actor.locate.remote()
        self._handles = [self._actor]
        self.finalizer = weakref.finalize(self, _kill_all, self._handles)

    @property
    def location(self) -> tuple[str, int] | None:
        """Node and process of the actor; None if it has not started."""
        with suppress(RayError):
            location: tuple[str, int] = ray.get(self._location, timeout=0)
            return location
        return None

    @property
    def pid(self) -> int | None:
        """Process identifier of the actor on its node (int)."""
        location = self.location
        return None if location is None else location[1]

    def _begin(self, number: int, options: dict[str, Any]) -> ActorEpoch:
        # Give each epoch a state, so that another actor can continue it.
        options = {**options, 'follows': None}
        is_fresh = options['state'] is not None or number == 1
        epoch = ActorEpoch(number, options, is_fresh=is_fresh)
        self._ask_to_open(epoch, options)
        return epoch

    def _leave(self, epoch: ActorEpoch) -> None:
        epoch.calls.clear()
        self._actor.leave.remote(epoch.number)

    def _load(self, item: ActorReply) -> ReceivedItem:
        answer = item.answer
        assert answer is not None
        if answer.final is not None:
            return answer
        if answer.error is not None:
            return answer._replace(error=pipeline_error(answer.error))
        return answer._replace(data=load_batch(
            answer.data, self._leases.lend(item.buffers)))

    def _receive_end(self, epoch: ActorEpoch) -> None:
        """Receive the last note of an epoch, without waiting for it."""
        with suppress(RayError):
            if epoch.calls:
                reply = ray.get(epoch.calls[0][0], timeout=MOMENT)
                if reply.answer is not None and (
                        reply.answer.final is not None):
                    self.take_note(epoch, reply.answer.note)

    def _count_ready(self, epoch: ActorEpoch) -> int:
        """Return the number of requested batches that are ready."""
        asked = [reference for reference, _ in epoch.calls]
        return len(ray.wait(asked, num_returns=len(asked), timeout=0)[0]
                   ) if asked else 0

    def _wait(self, epoch: ActorEpoch, is_there: Callable[[], bool]) -> None:
        """Receive answers until a condition is true.

        Actors that die meanwhile are replaced.
        """
        while not is_there():
            if self.error is not None:
                raise self.error
            try:
                if epoch.life != self.restarts:
                    self._ask_to_open(epoch, self._options_to_go_on(epoch))
                elif epoch.answer is not None:
                    failed, answer = self._get(epoch.answer)
                    epoch.record_opened(answer, failed=failed)
                else:
                    self._receive_item(epoch)
            except ActorLostError as error:
                self._replace(epoch, error)

    def _receive_item(self, epoch: ActorEpoch) -> None:
        """Receive the next item of an epoch, unless it is too large."""
        if not epoch.calls:
            self._ask_for_more(epoch)
        reply: ActorReply = self._get(epoch.calls[0][0])
        epoch.calls.popleft()
        if reply.answer is None:
            # The batch was too large: the answers to later calls are empty
            # too. After them it is requested again, with more room.
            assert reply.size, 'the actor has left the epoch'
            self._size = reply.size
            return
        if reply.answer.data is not None:
            self._size = (reply.size if self._size is None else max(
                reply.size, (7 * self._size + reply.size) // 8))
        self._deaths = 0
        epoch.changes = reply.answer.changes
        epoch.items.append(reply)

    def _ask_to_open(self, epoch: ActorEpoch, options: dict[str, Any]) -> None:
        epoch.calls.clear()
        epoch.life = self.restarts
        epoch.asked = options
        epoch.answer = self._actor.open.remote(
            epoch.number, pickle.dumps(options))
        self._ask_for_more(epoch)

    def _ask_for_more(self, epoch: ActorEpoch) -> None:
        """Request at least one batch, and as many as there is room for."""
        epoch.num_ready = self._count_ready(epoch)
        room = self.max_bytes if self._size is None else self._size
        free = self.max_bytes - sum(
            other.reserved for other in self.epochs.values())
        # After an actor died, request one batch at a time, to find the batch
        # at which actors die.
        most = 1 if self._deaths else self.max_batches
        while not epoch.calls or (
                room <= free and len(epoch.calls) < most):
            epoch.calls.append((
                self._actor.make.remote(epoch.number, room), room))
            free -= room

    def _get(self, reference: object) -> Any:
        """Return the object of a reference, once the actor has made it."""
        deadline = time.monotonic() + self.stalled
        while not self.is_cut:
            try:
                self.waiter.is_waiting = True
                value = ray.get(reference, timeout=_POLL_SECONDS)
                self.waiter.is_waiting = False
                return value
            except GetTimeoutError:
                if time.monotonic() > deadline:
                    raise WorkerError(self._describe_stall()) from None
            except RayTaskError as error:
                raise WorkerError(
                    f'an actor of {self.name} could not send what it made: '
                    f'{error}') from error
            except RayError as error:
                raise ActorLostError(str(error)) from error
        raise WorkerError(
            f'the actors of {self.name} were ended by another thread while '
            'this one waited for a batch')

    def _options_to_go_on(self, epoch: ActorEpoch) -> dict[str, Any]:
        try:
            return epoch.options_to_go_on()
        except Exception as error:
            self.error = WorkerError(
                f'an actor of {self.name} died, and no other can go on, '
                f'since the pipeline has no state: {error}')
            raise self.error from error

    def _replace(self, epoch: ActorEpoch, error: ActorLostError) -> None:
        """Replace a lost actor by a new one."""
        self.report_anew()
        self._deaths += 1
        place = self.location
        where = '' if place is None else f' (process {place[1]} of {place[0]})'
        reason = str(error).partition('\n')[0]
        if self._deaths > self.max_restarts:
            self.error = WorkerError(
                f'{self._deaths} actors of {self.name} died one after the '
                f'other{where} before they had made batch {epoch.taken} of '
                f'their share: {error}')
            raise self.error from error.__cause__
        log.warning('an actor of %s%s was lost, and another goes on after '
                    'batch %d of its share: %s', self.name, where,
                    epoch.taken, reason)
        _kill_all(self._handles)
        self._actor = self._start()
        self._handles[:] = [self._actor]
        self._location = self._actor.locate.remote()
        self.restarts += 1

    def _describe_stall(self) -> str:
        place = self.location
        if place is None:
            everything = _in_words(ray.cluster_resources())
            return (f'an actor of {self.name} has not started for '
                    f'{self.stalled} seconds (timeout): it needs '
                    f'{self.needs}, and of {everything} '
                    f'free are {_in_words(ray.available_resources())}')
        return (f'process {place[1]} of node {place[0]}, an actor of '
                f'{self.name}, has sent nothing for {self.stalled} seconds '
                '(timeout): `ray stack` on that node shows where it is')

    def retire(self) -> None:
        """End the actor; running epochs continue with other actors."""
        self.interrupted = True
        self.close()


def _kill_all(handles: list[Any]) -> None:
    # At exit Ray, and its actors, may have ended already.
    if ray.is_initialized():
        for actor in handles:
            ray.kill(actor)


def _in_words(resources: dict[str, float]) -> str:
    return ', '.join(f'{amount:g} {name}' for name, amount
                     in sorted(resources.items())
                     if ':' not in name and not name.endswith('memory'))
