"""Find the number of batches that a trainer has finished."""
from __future__ import annotations

from typing import Any, Protocol

from fuel.interop.torch import callers
from fuel.typing import State


class Delivered(Protocol):
    """Interface to the reader's progress in a pass over a loader.

    `delivered`: number of batches that were delivered to the reader.
    `is_over`: whether the reader has reached the end of the pass.
    `num_batches`: number of batches of the pass; None if it is not known.
    """

    delivered: int
    is_over: bool
    num_batches: int | None


class Progress(Protocol):
    """Interface to the progress of a program whose trainer reads a loader."""

    def begin(self) -> None:
        """Begin to count the batches of a pass."""

    def look(self) -> None:
        """Record the position of the trainer, before a batch is read."""

    def used(self, running: Delivered) -> int | None:
        """Return the number of batches of a pass that the program has
        finished.

        The result is None if the program continues with the next epoch.
        """


class LightningProgress:
    """The progress of Lightning.

    Lightning may save a state within a step, and may read batches in advance.

    `loop`: the fit loop of Lightning.
    """

    def __init__(self, loop: Any) -> None:
        self._loop = loop
        self._epoch = self._trained_before = 0

    def begin(self) -> None:
        """Begin to count the batches of a pass."""
        self._trained_before = self._num_trained
        self.look()

    def look(self) -> None:
        """Record the number of Lightning's epoch before a batch is read.

        Lightning sets the number only after it has read the first batch.
        """
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
        """Return the number of batches of the pass that were trained on.

        The result is None if Lightning trains on no further batch of the
        pass. After the last batch of the pass, the result is the number and
        not None, since Lightning may still have to read the end of the epoch.
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
        # With a larger max_steps, Lightning continues within the epoch.
        is_cut = 0 <= self._loop.max_steps <= self._loop.epoch_loop.global_step
        return self._epoch_of_loop != self._epoch and not is_cut

    @property
    def begins_epoch(self) -> bool:
        """Whether Lightning has begun no step of its epoch yet (bool)."""
        return not self._loop.epoch_loop.batch_progress.current.ready

    @property
    def repeats(self) -> bool:
        """Whether all epochs repeat the batches of the first one (bool)."""
        return bool(self._loop.trainer.overfit_batches)

    def state_to_load(self, loader: object) -> State | None:
        """Return the state of a loader in a checkpoint; None on later calls.

        Lightning itself loads the state only in the middle of an epoch.
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
        """Return whether Lightning resumes without a state of the loader.

        The caller has loaded no state. The result is True if Lightning resumes
        in the middle of an epoch, or if it resumes between two epochs and the
        number of the epoch was not set.

        `is_named`: whether the number of the epoch was set.
        """
        loop = self._loop
        if loop.restarting:
            return bool(loop.epoch_loop.batch_progress.current.ready)
        return bool(loop.is_resuming and self._epoch_of_loop
                    and not is_named)


def find_lightning() -> LightningProgress | None:
    """Return the progress of Lightning, if it reads a loader to train.

    Otherwise the result is None.
    """
    loop = callers.find_fit_loop()
    return None if loop is None else LightningProgress(loop)
