"""Find the number of batches that a trainer has finished with."""
from __future__ import annotations

from typing import Any, Protocol

from fuel.interop.torch import callers
from fuel.typing import State


class Delivered(Protocol):
    """Progress of a pass over a loader, as its reader sees it.

    `delivered`: number of batches that it has given.
    `is_over`: whether the end was seen.
    `num_batches`: number of its batches, None if that is not known.
    """

    delivered: int
    is_over: bool
    num_batches: int | None


class Progress(Protocol):
    """Interface to the progress of a program that a trainer reads for."""

    def begin(self) -> None:
        """Begin to count for a pass."""

    def look(self) -> None:
        """Record the position of the trainer, before a batch is read."""

    def used(self, running: Delivered) -> int | None:
        """Return the number of batches of a pass that the program has
        finished with; None if it has finished with all, and goes on with the
        next epoch."""


class LightningProgress:
    """The progress of Lightning, which saves within a step and may read in
    advance.

    `loop`: its fit loop.
    """

    def __init__(self, loop: Any) -> None:
        self._loop = loop
        self._epoch = self._trained_before = 0

    def begin(self) -> None:
        """Begin to count for a pass."""
        self._trained_before = self._num_trained
        self.look()

    def look(self) -> None:
        """Note the epoch, which is counted after its first batch is read."""
        self._epoch = self._epoch_of_loop

    @property
    def _num_trained(self) -> int:
        trained: int = self._loop.epoch_loop.batch_progress.total.processed
        return trained

    @property
    def _epoch_of_loop(self) -> int:
        number: int = self._loop.epoch_progress.current.processed
        return number

    def used(self, running: Delivered) -> int | None:
        """Return the number of batches of the pass that were trained on; None
        where Lightning trains on nothing more of it.

        After the last batch, Lightning may go on within the epoch, whose end
        it then has to see.
        """
        trained = self._num_trained - self._trained_before
        is_cut = trained != running.num_batches
        return None if trained and is_cut and self._is_over() else trained

    def _is_over(self) -> bool:
        progress = self._loop.epoch_loop.batch_progress
        done = progress.current.processed
        if done >= self._loop.max_batches or (
                progress.is_last_batch and done == progress.current.ready):
            return True
        # With more steps, Lightning goes on where these ended.
        is_cut = 0 <= self._loop.max_steps <= self._loop.epoch_loop.global_step
        return self._epoch_of_loop != self._epoch and not is_cut

    @property
    def begins_epoch(self) -> bool:
        """Whether Lightning has trained on nothing of its epoch (bool)."""
        return not self._loop.epoch_loop.batch_progress.current.ready

    @property
    def repeats(self) -> bool:
        """Whether each epoch is to have the batches of the first (bool)."""
        return bool(self._loop.trainer.overfit_batches)

    def state_to_load(self, loader: object) -> State | None:
        """Return the state of a loader in a checkpoint, once.

        Lightning loads it itself in the middle of an epoch alone.
        """
        states = self._loop._combined_loader_states_to_load
        loaders = self._loop._combined_loader
        if not states or loaders is None:
            return None
        for place, one in enumerate(loaders.flattened[:len(states)]):
            if one is loader:
                state: State | None = states[place]
                states[place] = None
                return state
        return None

    def resumes_without_state(self, is_named: bool) -> bool:
        """Return whether Lightning goes on in a checkpoint that holds no
        state of the loader.

        `is_named`: whether somebody has said which epoch is read.
        """
        loop = self._loop
        if loop.restarting:
            return bool(loop.epoch_loop.batch_progress.current.ready)
        return bool(loop.is_resuming and self._epoch_of_loop
                    and not is_named)


def find_lightning() -> LightningProgress | None:
    """Return the progress of Lightning, if it reads a loader to train."""
    loop = callers.find_fit_loop()
    return None if loop is None else LightningProgress(loop)
