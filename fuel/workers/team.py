"""Several workers that make the batches of an epoch in turn."""
from __future__ import annotations

from typing import Any

from fuel.exceptions import WorkerError
from fuel.kernels.prefetch_buffer import PendingItem
from fuel.workers.worker import Receipt, RemoteEpoch, Worker


class TeamEpoch:
    """One epoch of a team, on the consumer's side.

    Attributes
    ----------
    parts : list of RemoteEpoch
        One for each worker.
    handed : int
        How many batches and errors were handed to the user.
    finished : bool

    """

    def __init__(self, number: int, parts: list[RemoteEpoch]) -> None:
        self.number = number
        self.parts = parts
        self.handed = 0
        self.finished = False

    def has_begun(self) -> bool:
        """Tell whether its state is known."""
        return self.last().has_begun()

    def note(self, receipt: Receipt) -> None:
        """Remember how the state changed with what was handed out."""
        receipt.epoch.note(receipt)
        self.handed = sum(part.handed for part in self.parts)

    def last(self, is_over: bool = False) -> RemoteEpoch:
        """Return the part that what was handed out last came from."""
        if is_over:
            return next(part for part in self.parts if part.finished)
        return self.parts[max(0, self.handed - 1) % len(self.parts)]


class Team:
    """Workers that each make one batch of several.

    Parameters
    ----------
    skip : callable
        Takes an epoch iterator and how many items to leave out.

    """

    def __init__(self, workers: list[Worker], skip: Any) -> None:
        self.workers = workers
        self.skip = skip

    @property
    def pid(self) -> Any:
        """Process identifiers of the workers (list of int)."""
        return [worker.pid for worker in self.workers]

    def is_usable(self) -> bool:
        """Tell whether epochs can be begun with these workers."""
        return all(worker.is_usable() for worker in self.workers)

    @property
    def interrupted(self) -> bool:
        """Whether one of them was given up after an interrupt (bool)."""
        return any(worker.interrupted for worker in self.workers)

    @property
    def error(self) -> WorkerError | None:
        """What the first that is given up was given up for, if any is."""
        return next((worker.error for worker in self.workers
                     if worker.error is not None), None)

    def begin(self, **options: Any) -> TeamEpoch:
        """Begin an epoch in every worker; see :meth:`Worker.begin`."""
        # Each has made other batches ahead, so each goes back.
        options.pop('left', None)
        options.pop('handed', None)
        parts = [
            worker.begin(**options, turn=(place, len(self.workers), self.skip))
            for place, worker in enumerate(self.workers)]
        return TeamEpoch(parts[0].number, parts)

    def leave(self, epoch: TeamEpoch) -> None:
        """Stop reading an epoch."""
        for worker, part in zip(self.workers, epoch.parts, strict=True):
            worker.leave(part)

    def state(self, epoch: TeamEpoch, is_over: bool) -> Any:
        """Return the state of an epoch after what was handed out."""
        part = epoch.last(is_over)
        return self.workers[epoch.parts.index(part)].state(part, is_over)

    def take(self, epoch: TeamEpoch, pending_item: PendingItem) -> None:
        """Let the next batch of an epoch be held; see :meth:`Worker.take`."""
        if epoch.finished:
            raise StopIteration
        place = sum(part.taken for part in epoch.parts) % len(self.workers)
        try:
            self.workers[place].take(epoch.parts[place], pending_item)
        except StopIteration:
            epoch.finished = True
            raise
    def cut(self) -> None:
        """Let a thread that waits for a batch stop."""
        for worker in self.workers:
            worker.cut()

    def close(self) -> None:
        """End the workers."""
        for worker in self.workers:
            worker.close()
