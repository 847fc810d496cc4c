"""State of a stream at run time, which is not pickled."""
from __future__ import annotations

import copy
import operator
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from fuel.epochs.accepted import Accepted
from fuel.epochs.omitted import Omitted
from fuel.epochs.past import Past, with_epoch
from fuel.epochs.state import RUNNING, SchemeStart
from fuel.epochs.epoch import Epoch
from fuel.kernels.epoch_iterator import EpochIterator
from fuel.kernels.epoch_iterator import StageMeter, leave_frames
from fuel.typing import State
from fuel.utils.forks import Step, at_fork, each_at_fork


class KnownSources(NamedTuple):
    """The sources of a stream, as they were found last.

    `origins`: pairs of an object from which the sources come and the sources
        that it had. These sources may change without an assignment to a
        stream of Fuel's.
    """

    sources: Any
    origins: tuple[tuple[Any, Any], ...]


#: The name under which a stream keeps its stage among its attributes.
KEPT_STAGE = '__fuel_kept__'


class Runtime:
    """Base of a stage: the state of a stream at run time.

    `stream`: the stream, held weakly, since it keeps its stage.
    `lock`: held while the attributes of the stream are used.
    `epoch`: the epoch that was made last.
    `holders`: the epochs that still have a data set's state.
    `pending`: the state that the next epoch iterator restores.
    `past`: the epochs that were begun before the stream was copied or
        unpickled.
    `omitted`: the items of all epochs that are left out.
    `built_omitted`: those of them that no state that was loaded names.
    `accepted`: the differences that were accepted when states were loaded.
    `fingerprint`: the description that a saved state must fit, as it was made
        for the last state.
    `changing`: whether an epoch begins, or a state is loaded, at the moment.
    `meter`: measures the items of all epochs.
    `changes`: number of assignments to attributes of the stream or of streams
        below it.
    `known_sources`: the sources of the stream, kept until an attribute is
        assigned on the stream or on a stream that it reads.
    `readers`: the stages of streams whose sources come from this one.
    `measured`: the last measurement of the pipeline that ends with this
        stage. `measuring` guards it, and is never held while data are read.
    """

    __slots__ = (
        '__weakref__',
        '_find_stream',
        'accepted',
        'built_omitted',
        'changes',
        'changing',
        'epoch',
        'fingerprint',
        'holders',
        'iterator',
        'known_sources',
        'lock',
        'measured',
        'measuring',
        'meter',
        'omitted',
        'past',
        'pending',
        'readers',
        'start',
    )
    # Implemented in C, since it is used all the time.
    stream: Any = property(operator.methodcaller('_find_stream'))

    def __init__(self, stream: object) -> None:
        try:
            self._find_stream: Callable[[], Any] = weakref.ref(stream)
        except TypeError:
            # A foreign stream whose class declares slots.
            self._find_stream = lambda: stream
        self.lock = threading.RLock()
        self.epoch: Epoch | None = None
        self.iterator: weakref.ref[Any] | None = None
        self.start: SchemeStart | Exception | None = None
        self.holders: list[tuple[weakref.ref[Any], Epoch]] = []
        self.pending: State | None = None
        self.past: Past = ''
        self.omitted: Omitted = ()
        self.built_omitted: Omitted = ()
        self.accepted: Accepted = ()
        self.fingerprint: Any = None
        self.meter = StageMeter()
        self.measured: Any = None
        self.measuring = threading.Lock()
        self.changing = False
        self.changes = 0
        self.known_sources: KnownSources | None = None
        self.readers: weakref.WeakSet[Runtime] | None = None
        _all.add(self)

    def begin_in_child(self) -> None:
        """Replace the lock, which a thread of the parent may have held, and
        reset the meter."""
        self.lock = threading.RLock()
        self.meter.clear()
        self.changing = False
        self.measured = None
        self.measuring = threading.Lock()

    def depend_on(self, stages: Iterable[Runtime]) -> None:
        """Let the kept sources be dropped when other stages' sources
        change."""
        with lock_of_sources:
            for stage in stages:
                if stage.readers is None:
                    stage.readers = weakref.WeakSet()
                stage.readers.add(self)

    def keep_sources(self, known: KnownSources, changes: int) -> None:
        """Keep the sources of the stream, unless its attributes were assigned
        since.

        `changes`: value of the attribute `changes` when they were found.
        """
        with lock_of_sources:
            if changes == self.changes:
                self.known_sources = known

    def forget(self) -> None:
        """Drop the kept sources of the stream, and of streams that read
        it."""
        with lock_of_sources:
            self.changes += 1
            self.known_sources = None
            readers, self.readers = list(self.readers or ()), None
        for reader in readers:
            reader.forget()

    @contextmanager
    def change(self) -> Iterator[None]:
        """Return a context in which no state can be saved, for example by a
        signal handler."""
        with self.lock:
            before, self.changing = self.changing, True
            try:
                yield
            finally:
                self.changing = before

    def __reduce__(self) -> Any:
        # A stream that pickles its attributes itself keeps only this.
        return copy.copy, (self.to_pickle(
            self.pending or self.past_epochs()) or None,)

    def to_pickle(self, kept: Any) -> Any:
        """Return what a pickle of the stream has of its stage.

        `kept`: the pending state, or the epochs that were begun.
        """
        if kept is None or self.omitted or self.accepted or (
                self.built_omitted):
            return kept, self.omitted, self.accepted, self.built_omitted
        return kept

    @contextmanager
    def showing(self, epoch: Epoch) -> Iterator[None]:
        """Return a context in which the stream has the attributes of an
        epoch."""
        with self.lock:
            self.show(epoch)
            try:
                yield
            finally:
                self.take_over(epoch)

    def show(self, epoch: Epoch) -> None:
        """Make the stream show the attributes of an epoch."""
        vars(self.stream).update(epoch.attributes)

    def take_over(self, epoch: Epoch) -> None:
        """Copy the attributes of the stream into an epoch."""
        shown = vars(self.stream)
        epoch.attributes = attributes = {}
        for key in getattr(self.stream, 'epoch_attributes', ()):
            if key in shown:
                attributes[key] = shown[key]

    def past_epochs(self, is_over: bool = True) -> Past:
        """Return the epochs that have begun, or that a pending state says
        have begun.

        `is_over`: whether the epoch that was made last counts.
        """
        if self.pending is not None:
            return self.pending.get('past')
        if self.epoch is None:
            return self.past
        last = self.epoch
        return last.past if not is_over else with_epoch(
            last.past, None if last.finished else last.position)

    def resumed(self) -> State | None:
        """Return the pending state of a running epoch; None if there is no
        such state."""
        if self.pending is not None and self.pending['epoch'] == RUNNING:
            return self.pending
        return None

    def hold(self, epoch: Epoch, iterator: EpochIterator) -> None:
        """Hold an epoch as long as its iterator exists."""
        self.holders.append((weakref.ref(iterator), epoch))

    def release_left(self) -> list[Epoch]:
        """Drop the held epochs that are finished or abandoned; return
        them."""
        running, left = [], []
        for reference, epoch in self.holders:
            if epoch.finished or reference() is None:
                left.append(epoch)
            else:
                running.append((reference, epoch))
        self.holders = running
        return left

    def is_left(self) -> bool:
        """Return whether the epoch that was made last is finished or
        abandoned."""
        return (self.epoch is not None and (
            self.epoch.finished
            or self.iterator is None or self.iterator() is None))


#: Held while kept sources are set or dropped; never while a stream's own code
#: runs.
lock_of_sources = threading.RLock()


def _renew_lock() -> None:
    """Replace the lock, which a thread of the parent may have held."""
    global lock_of_sources
    lock_of_sources = threading.RLock()


_all = each_at_fork(Step.OWNERSHIP, in_child=Runtime.begin_in_child)
at_fork(Step.OWNERSHIP, in_child=leave_frames)
at_fork(Step.OWNERSHIP, in_child=_renew_lock)
