"""A pass over a loader: its first state, its progress and its workers."""
from __future__ import annotations

import itertools
from contextlib import suppress
from types import TracebackType

from torch._utils import ExceptionWrapper

from fuel.epochs.stage import stage_of
from fuel.epochs.state import of_stream
from fuel.epochs.state import FINISHED
from fuel.interop.torch.epoch_register import Session, items_left
from fuel.interop.torch.loader_dataset import LoaderDataset
from fuel.interop.torch.progress import Progress
from fuel.interop.torch.share import Share
from fuel.typing import State


_tokens = itertools.count(1)


class Workers:
    """The worker processes of a loader, which may serve several passes.

    `token`: identifier that all these workers share.
    """

    def __init__(self) -> None:
        # Negative, so that it differs from the seeds of PyTorch's loaders.
        self.token = -next(_tokens)
        # An integer, since it is pickled with the loader; itertools.count is
        # not.
        self._num_sessions = 0

    def next_session(self) -> Session:
        """Return the session of the next pass."""
        self._num_sessions += 1
        return Session(self.token, self._num_sessions - 1)


class Pass:
    """One pass over a loader.

    `delivered`: number of batches that were delivered to the reader.
    `is_over`: whether the reader has reached the end of the pass.
    `progress`: the progress of a trainer that reads the loader; None if no
        trainer does.
    `start`: the state of the stream at the beginning of the pass.
    `num_batches`: number of batches of the pass; None if it is not known.
    """

    def __init__(self, dataset: LoaderDataset,
                 progress: Progress | None) -> None:
        self._dataset = dataset
        self.progress = progress
        self._share: Share | None = None
        self.start: State | None = None
        self.num_batches: int | None = None
        self.delivered = self._num_errors = 0
        self.is_over = False

    def begin_here(self) -> None:
        """Begin an epoch that this process reads itself."""
        self._share = self._dataset.open_here(self.progress is not None)
        self.num_batches = items_left(self._share.iterator)
        # If the stream cannot save its position, state() raises the error.
        with suppress(TypeError):
            self.start = self._share.iterator.state_dict()

    def begin_in_workers(self, session: Session) -> None:
        """Begin an epoch that workers read."""
        self.start, self.num_batches = self._dataset.begin_session(session)

    def count(self, given: int, error: Exception | None = None) -> None:
        """Count a batch, or an error in the place of a batch.

        `given`: number of batches that PyTorch's iterator has returned.
        """
        if self._share is not None:
            self.delivered = self._share.taken
            return
        self._num_errors += error is not None and _was_sent(
            error.__traceback__)
        # Like `taken`, this counts a batch that Ctrl-C has dropped, as soon as
        # another batch follows.
        self.delivered = given + self._num_errors

    @property
    def used(self) -> int | None:
        """Number of batches that the program has finished (int).

        It is None if the program has finished all batches and has read the
        end of the epoch.
        """
        if self.progress is not None:
            return self.progress.used(self)
        return None if self.is_over else self.delivered

    def step(self, accumulate: int) -> int:
        """Return the step of the last batch that the program has finished."""
        if self._share is not None and self.progress is None:
            iterator = self._share.iterator
            stage = stage_of(iterator.data_stream)
            if stage.epoch is iterator.epoch:
                step: int = stage.stream.current_step(accumulate)
                return step
        assert self.start is not None
        return self._dataset.step_from(self.start, self.used, accumulate)

    def state(self, count: int | None) -> State:
        """Return the state after a number of batches.

        `count`: None for the state after the end of the epoch.
        """
        if self._share is not None:
            state: State = self._share.iterator.state_dict()
            is_over = state['epoch'] == FINISHED
            if count == (None if is_over else self._share.taken):
                return of_stream(state)
            # A batch was interrupted, or a trainer has read ahead.
        assert self.start is not None
        return self._dataset.state_from(self.start, count)


def _was_sent(traceback: TracebackType | None) -> bool:
    """Return whether a worker sent an error in the place of a batch."""
    code = None
    while traceback is not None:
        code = traceback.tb_frame.f_code
        traceback = traceback.tb_next
    return code is ExceptionWrapper.reraise.__code__
