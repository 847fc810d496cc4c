"""Batches made ahead of their use, in processes of their own."""
from __future__ import annotations

import logging
import multiprocessing
import os
import pickle
import weakref
from contextlib import suppress
from typing import Any

from fuel import config
from fuel.epochs.epoch import Epoch
from fuel.epochs.pipeline import child_streams, check_one_to_one, skip
from fuel.epochs.runtime import runtime_of
from fuel.epochs.state import FINISHED, RUNNING, state_between_epochs
from fuel.kernels.prefetch_buffer import PendingItem
from fuel.streams import AbstractDataStream
from fuel.transformers.base import Transformer
from fuel.transport import Channel
from fuel.utils.checks import positive
from fuel.workers.producer import serve
from fuel.workers.team import Team, TeamEpoch
from fuel.workers.worker import RemoteEpoch, Worker

log = logging.getLogger(__name__)

# Seconds that another thread has to finish with a batch when the stream is
# closed.
_WAIT = 0.1


class Feed(PendingItem):
    """What one epoch iterator reads: an epoch of a worker.

    Attributes
    ----------
    worker : Worker or None
        None before the first batch is asked for after unpickling.
    remote : RemoteEpoch or None
    start : dict
        How the epoch was begun, or is to be: arguments of `begin`.

    """

    def __init__(self, worker: Worker | Team | None,
                 remote: RemoteEpoch | TeamEpoch | None,
                 start: dict[str, Any]) -> None:
        self.worker: Any = worker
        self.remote: Any = remote
        self.start = start

    def give(self) -> Any:
        """Return the next batch of the worker, or raise its next error.

        If Ctrl-C keeps it from the user, the next call gives the same.
        """
        if self.held is None:
            self.note_handed()
            try:
                self.worker.take(self.remote, self)
            except StopIteration:
                if not self.is_asked:
                    self.is_over = True
                raise
        assert self.held is not None
        data, error, _ = self.held
        if not self.is_asked:
            self.claim()
        if error is not None:
            raise error
        return data

    def note_handed(self) -> None:
        """Count what the user has got since the last time."""
        if self.receipt is not None:
            self.remote.note(self.receipt)
            self.receipt = None

    def must_connect(self) -> bool:
        """Tell whether another worker has to go on with the epoch."""
        return self.worker is None or (
            self.held is None and self.worker.interrupted)

    def continuation(self) -> dict[str, Any]:
        """Return how another worker has to begin."""
        if self.remote is None:
            return self.start
        self.note_handed()
        if not self.remote.has_begun():
            return self.start
        state = self.state()
        if isinstance(state, Exception):
            state.add_note(str(self.worker.error))
            raise state
        return {'resume': state}

    def state(self) -> Any:
        """Return the wrapped stream's state, as far as handed out."""
        if self.remote is None:
            return self.start['resume']
        self.note_handed()
        state = self.worker.state(self.remote, self.is_over)
        if isinstance(state, Exception) and not self.remote.has_begun():
            return self.start.get('resume', state)
        return state

    def last_state(self) -> Any:
        """Return the state that an epoch comes after; None if unknown."""
        state = self.state()
        if not isinstance(state, Exception):
            return state
        return None if self.remote.has_begun() else self.start.get('after')

    def is_connected(self) -> bool:
        """Tell whether a running worker makes the epoch."""
        return self.worker is not None and self.worker.is_usable()

    def leave(self) -> None:
        """Tell the worker that nobody reads the epoch any more."""
        if self.worker is not None and self.remote is not None:
            self.worker.leave(self.remote)

    def __reduce__(self) -> Any:
        state = self.state()
        if isinstance(state, Exception):
            raise state
        return Feed, (None, None, {'resume': state})


class MultiProcessing(Transformer):
    """Makes batches ahead of their use, in another process.

    While the model trains on one batch, the next are made.  They come
    through shared memory, so that large arrays are not copied.

    Parameters
    ----------
    data_stream : AbstractDataStream
        What to run in the worker process.
    max_store : int, optional
        How many batches may wait to be handed out.  Defaults to 100.
    num_workers : int, optional
        How many processes share the work.  Defaults to 1.  The values stay
        the same bit for bit, so each stage must make one item of one, and
        what it draws must not depend on the items before.
    start_method : str, optional
        ``'fork'``, ``'spawn'`` or ``'forkserver'``.  Defaults to None: the
        process's default; if the stream cannot be pickled for that, fork,
        where there is one.
    max_bytes : int, optional
        How many bytes of shared memory the batches may take, which
        shortens the queue of large batches.  Defaults to
        ``config.shared_memory_bytes``, 1 GiB.
    timeout : float, optional
        Seconds without a new batch after which the worker counts as
        stalled.  Defaults to ``config.stall_timeout``, 600; ``math.inf``
        waits as long as the worker lives.
    **kwargs
        Arguments of :class:`Transformer`.

    Raises
    ------
    fuel.exceptions.WorkerError
        By the epoch iterator, if the worker process dies or stalls.  What
        the pipeline itself raises is raised here too, with the worker's
        traceback.

    Notes
    -----
    The worker starts with the first epoch iterator and ends with
    :meth:`close`, with the stream, or with this process, however that ends.

    The order and the values are those of the wrapped stream.  What was made
    ahead when an epoch is left, saved or pickled never happened: the next
    epoch, or the restored iterator, starts from what was handed out.

    Examples
    --------
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.schemes import SequentialScheme
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IndexableDataset([1, 2, 3]),
    ...                     iteration_scheme=SequentialScheme(3, 2))
    >>> with MultiProcessing(stream, start_method='fork') as ahead:
    ...     list(ahead.get_epoch_iterator())
    [([1, 2],), ([3],)]

    """

    epoch_attributes = ('feed',)
    feed: Feed

    def __init__(self, data_stream: Any, max_store: int = 100, *,
                 num_workers: int = 1,
                 start_method: str | None = None,
                 max_bytes: int | None = None,
                 timeout: float | None = None, **kwargs: Any) -> None:
        if max_bytes is None:
            max_bytes = config.shared_memory_bytes
        positive('max_store', max_store)
        positive('max_bytes', max_bytes)
        positive('num_workers', num_workers)
        if num_workers > 1:
            check_one_to_one(data_stream)
        if start_method is not None:
            multiprocessing.get_context(start_method)
        kwargs.setdefault('axis_labels', data_stream.axis_labels)
        if kwargs.get('iteration_scheme') is None:
            # A stage of the user's may not know; then this one does not.
            with suppress(ValueError):
                kwargs.setdefault('produces_examples',
                                  data_stream.produces_examples)
        super().__init__(data_stream, **kwargs)
        self.max_store = max_store
        self.num_workers = num_workers
        self.start_method = start_method
        self.max_bytes = max_bytes
        self.timeout: float = (
            config.stall_timeout if timeout is None else timeout)
        # State of the wrapped stream that the next epoch comes after.
        self._after: Any = None
        self._calls: tuple[str, ...] = ()

    def get_epoch_iterator(self, as_dict: bool = False) -> Any:
        """Return an iterator over a new epoch of the worker.

        See :meth:`~fuel.streams.AbstractDataStream.get_epoch_iterator`.
        """
        with runtime_of(self).lock:
            self.feed = self._open_feed()
            return AbstractDataStream.get_epoch_iterator(self, as_dict)

    def get_data(self, request: Any = None) -> Any:
        """Return the next batch that the worker made."""
        if request is not None:
            raise ValueError(
                'MultiProcessing takes no requests, since its batches were '
                f'made before; got {request!r}')
        if 'feed' not in vars(self):
            self.feed = self._open_feed()
        feed = self.feed
        if feed.must_connect():
            self._connect(feed)
        return feed.give()

    def _open_feed(self) -> Feed:
        """Begin the epoch that comes next."""
        runtime = runtime_of(self)
        pending = runtime.pending
        if pending is not None and pending['epoch'] == RUNNING:
            feed = Feed(None, None, {'resume': pending['children'][0]})
            self._connect(feed)
            return feed
        last = vars(runtime.epoch).get('feed') if runtime.epoch else None
        if pending is not None:
            after = pending['children'][0]
        else:
            after = self._get_after(last)
        self._leave_idle_feeds()
        worker = self._get_worker()
        left = {}
        if last is not None and last.worker is worker:
            last.note_handed()
            left = {'left': last.remote.number, 'handed': last.remote.handed}
        calls = self._calls
        remote = worker.begin(after=after, calls=calls, **left)
        self._after, self._calls = None, ()
        if after is None and last is not None:
            after = last.last_state()
        return Feed(worker, remote, {'after': after, 'calls': calls})

    def _get_after(self, last: Feed | None) -> Any:
        """Return the state that the next epoch comes after, if known.

        The worker needs it if it has worked ahead, or is a new one.
        """
        if last is None:
            return self._after
        if not runtime_of(self).is_left() and last.is_connected():
            return None
        return last.last_state()

    def _connect(self, feed: Feed) -> None:
        """Let a feed go on, in another worker, where its user is."""
        start = feed.continuation()
        worker = self._get_worker()
        remote = worker.begin(**start)
        feed.worker, feed.remote, feed.start = worker, remote, start

    def _get_worker(self) -> Worker | Team:
        """Return a running worker, started if there is none."""
        worker: Worker | Team | None = vars(self).get('_worker')
        if worker is None or not worker.is_usable():
            if worker is not None:
                worker.close()
            worker = self._start()
            self._worker = worker
        return worker

    def _start(self) -> Worker | Team:
        context, count = self._get_context(), self.num_workers
        workers = [
            Worker.start(self.data_stream, context,
                         -(-self.max_store // count),
                         self.max_bytes // count, self.timeout)
            for _ in range(count)]
        return workers[0] if count == 1 else Team(workers, skip)

    def _get_context(self) -> Any:
        """Return the multiprocessing context in which the worker starts."""
        context = multiprocessing.get_context(self.start_method)
        if context.get_start_method() == 'fork':
            return context
        culprit = _find_unpicklable(self.data_stream)
        if culprit is None:
            return context
        stage, error = culprit
        told = (f'the stage {stage} cannot be pickled for a worker process '
                f'started by {context.get_start_method()!r} ({error})')
        if (self.start_method is None
                and 'fork' in multiprocessing.get_all_start_methods()):
            log.warning('%s: forking instead', told)
            return multiprocessing.get_context('fork')
        raise TypeError(
            f'{told}: use functions defined at the top level of a module '
            "instead of lambdas, or start_method='fork'") from error

    def _leave_idle_feeds(self) -> None:
        """Leave the epochs that nobody reads any more."""
        runtime = runtime_of(self)
        running = []
        for reference, epoch in runtime.holders:
            if epoch.finished or reference() is None:
                vars(epoch)['feed'].leave()
            else:
                running.append((reference, epoch))
        runtime.holders = running

    def _adopt_epoch(self, epoch: Epoch, iterator: Any) -> None:
        super()._adopt_epoch(epoch, iterator)
        # A finished epoch lets go of its attributes, but not of this.
        vars(epoch)['feed'] = epoch.attributes.get('feed')
        epoch.pending_item = vars(epoch)['feed']
        runtime_of(self).holders.append((weakref.ref(iterator), epoch))

    def _child_positions(self) -> list[Any]:
        return [self.feed.state()] if 'feed' in vars(self) else []

    def _state_of(self, epoch: Epoch) -> dict[str, Any]:
        if not epoch.finished:
            return super()._state_of(epoch)
        return self._between(FINISHED, vars(epoch)['feed'].state())

    def _state_between_epochs(self, epoch: str) -> dict[str, Any]:
        last = runtime_of(self).epoch
        feed = None if last is None else vars(last).get('feed')
        return self._between(
            epoch, self._after if feed is None else feed.state())

    def _between(self, kind: str, child: Any) -> dict[str, Any]:
        """Return the state of a stream none of whose epochs is running."""
        if isinstance(child, Exception):
            raise child
        state = state_between_epochs(self, kind)
        if child is not None:
            # The wrapped stream's copy in this process never moves.
            state['children'] = [child]
        return state

    def _load_checked(self, state: dict[str, Any]) -> None:
        # The wrapped stream runs in the worker, and so it is loaded there.
        with runtime_of(self).lock:
            runtime_of(self).pending = state

    def reset(self) -> None:
        """Let the wrapped stream start afresh with the next epoch."""
        self._calls += ('reset',)

    def next_epoch(self) -> None:
        """Switch the wrapped stream to the next epoch."""
        self._calls += ('next_epoch',)

    def close(self) -> None:
        """End the worker process; batches that were handed out stay.

        A thread that waits for a batch gets an error.
        """
        lock = runtime_of(self).lock
        while not lock.acquire(timeout=_WAIT):
            worker = vars(self).get('_worker')
            if worker is not None:
                worker.cut()
        try:
            epoch = runtime_of(self).epoch
            if epoch is not None:
                # The next epoch iterator comes after what was handed out.
                vars(epoch)['feed'].state()
            worker = vars(self).pop('_worker', None)
            if worker is not None:
                worker.close()
        finally:
            lock.release()
        self.data_stream.close()

    def __getstate__(self) -> dict[str, Any]:
        with runtime_of(self).lock:
            state = super().__getstate__()
            state.pop('_worker', None)
            epoch = runtime_of(self).epoch
            feed = None if epoch is None else vars(epoch).get('feed')
            if feed is not None:
                after = feed.state()
                if not isinstance(after, Exception):
                    state['_after'] = after
            return state


class BackgroundProcess:
    """A stream's batches in a queue, made by another process.

    Parameters
    ----------
    data_stream : AbstractDataStream
        What to read from.
    max_batches : int
        How many batches may wait in the queue.

    Notes
    -----
    :meth:`main` must run in another process, which the caller starts; it
    ends with this process, or with :meth:`close`.
    :class:`MultiProcessing` does all of that, and is a stream.

    Examples
    --------
    >>> import multiprocessing
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.schemes import SequentialScheme
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IndexableDataset([1, 2, 3]),
    ...                     iteration_scheme=SequentialScheme(3, 2))
    >>> background = BackgroundProcess(stream, 5)
    >>> process = multiprocessing.get_context('fork').Process(
    ...     target=background.main, daemon=True)
    >>> process.start()
    >>> background.get_next_data()
    ([1, 2],)
    >>> background.close()
    >>> process.join()

    """

    def __init__(self, data_stream: Any, max_batches: int) -> None:
        positive('max_batches', max_batches)
        self.data_stream = data_stream
        self.max_batches = max_batches
        self._consumer = os.getpid()
        self._ends: Any = Channel.pair()
        self._worker: Worker | None = None
        self._feed: Feed | None = None

    def main(self) -> None:
        """Make batches until the consumer is gone."""
        ours, theirs = self._ends
        ours.close()
        serve(self.data_stream, theirs, self._consumer, self.max_batches,
              config.shared_memory_bytes)

    def get_next_data(self) -> Any:
        """Return the next batch.

        Raises
        ------
        StopIteration
            At the end of an epoch; the next call begins another.
        fuel.exceptions.WorkerError
            If the process that should run :meth:`main` is gone.

        """
        if self._worker is None:
            ours, theirs = self._ends
            theirs.close()
            self._worker = Worker(type(self.data_stream).__name__, ours,
                                  config.shared_memory_bytes,
                                  config.stall_timeout)
        if self._feed is None:
            self._feed = Feed(self._worker, self._worker.begin(), {})
        try:
            return self._feed.give()
        except StopIteration:
            self._feed = None
            raise

    def close(self) -> None:
        """Let :meth:`main` end."""
        for end in self._ends:
            end.close()
        if self._worker is not None:
            self._worker.close()


def _find_unpicklable(stream: Any) -> tuple[str, Exception] | None:
    """Return the stage that cannot be pickled, and why; None if all can."""
    try:
        pickle.dumps(stream)
    except Exception as error:  # noqa: BLE001 - pickling runs any code
        for child in child_streams(stream):
            found = _find_unpicklable(child)
            if found is not None:
                return found
        return type(stream).__name__, error
    return None
