"""One pass over a loader: its beginning, its progress and its workers."""
from __future__ import annotations

import itertools
from contextlib import suppress
from types import TracebackType

from torch._utils import ExceptionWrapper

from fuel.epochs.state import of_stream
from fuel.epochs.state import FINISHED
from fuel.interop.torch.epoch_register import Session, items_left
from fuel.interop.torch.loader_dataset import LoaderDataset
from fuel.interop.torch.progress import Progress
from fuel.interop.torch.share import Share
from fuel.typing import State


_tokens = itertools.count(1)


class Workers:
    """The worker processes of a loader, which stay for one pass or several.

    `token`: their common identifier.
    """

    def __init__(self) -> None:
        # The seeds of PyTorch's loaders are not negative.
        self.token = -next(_tokens)
        # A loader is pickled with it, and counters of itertools are not.
        self._num_sessions = 0

    def next_session(self) -> Session:
        """Return the session of the pass that begins."""
        self._num_sessions += 1
        return Session(self.token, self._num_sessions - 1)


class Pass:
    """One pass over a loader.

    `delivered`: number of batches that it has given to its reader.
    `is_over`: whether its reader has seen the end.
    `progress`: that of a trainer which reads it, if one does.
    `start`: the state of the stream at its beginning.
    `num_batches`: number of its batches, None if that is not known.
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
        """Begin the epoch that this process reads itself."""
        self._share = self._dataset.open_here(self.progress is not None)
        self.num_batches = items_left(self._share.iterator)
        # Of a stream that cannot save its position, state() says why.
        with suppress(TypeError):
            self.start = self._share.iterator.state_dict()

    def begin_in_workers(self, session: Session) -> None:
        """Begin the epoch that workers read."""
        self.start, self.num_batches = self._dataset.begin_session(session)

    def count(self, given: int, error: Exception | None = None) -> None:
        """Count a batch, or the error that replaces one.

        `given`: number of batches that PyTorch's iterator has given.
        """
        if self._share is not None:
            self.delivered = self._share.taken
            return
        self._num_errors += error is not None and _was_sent(
            error.__traceback__)
        # Like `taken`, with one that Ctrl-C has dropped, once others follow.
        self.delivered = given + self._num_errors

    @property
    def used(self) -> int | None:
        """With how many batches the program has finished; None: with all,
        and with the end of the epoch (int)."""
        if self.progress is not None:
            return self.progress.used(self)
        return None if self.is_over else self.delivered

    def state(self, count: int | None) -> State:
        """Return the state after a number of batches; None: after the end."""
        if self._share is not None:
            state: State = self._share.iterator.state_dict()
            is_over = state['epoch'] == FINISHED
            if count == (None if is_over else self._share.taken):
                return of_stream(state)
            # An interrupted batch, or one that a trainer has read ahead.
        assert self.start is not None
        return self._dataset.state_from(self.start, count)


def _was_sent(traceback: TracebackType | None) -> bool:
    """Return whether an error was raised by a worker, for a batch."""
    code = None
    while traceback is not None:
        code = traceback.tb_frame.f_code
        traceback = traceback.tb_next
    return code is ExceptionWrapper.reraise.__code__
