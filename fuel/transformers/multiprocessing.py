"""Prefetching of batches in other processes."""
from __future__ import annotations

import logging
import multiprocessing
import os
import sys
from typing import Any, Unpack

from fuel import config
from fuel.epochs.pipeline import child_streams
from fuel.transformers.options import WorkerOptions
from fuel.transformers.worker_stage import WorkerStage
from fuel.transport.channel import Channel, check_shared_memory
from fuel.transport.shared_pickle import SharedPickle
from fuel.typing import Batch, StreamLike
from fuel.utils.checks import positive
from fuel.utils.forks import warned_of_jax
from fuel.workers.global_random import Generators
from fuel.workers.producer import run_worker
from fuel.workers.team import Team, WorkerSession
from fuel.workers.worker import Worker

log = logging.getLogger(__name__)


class MultiProcessing(WorkerStage):
    """Prefetches batches in other processes.

    While the model trains on one batch, the next batches are made.  They are
    passed through shared memory, so that large arrays are not copied.

    Parameters
    ----------
    data_stream : AbstractDataStream
        The stream to run in the worker process.
    max_store : int, optional
        Number of batches that may be prefetched.  Defaults to 100.
    num_workers : int, optional
        Number of processes that share the work.  Defaults to 1.  The values
        stay the same bit for bit, so each stage must be one-to-one, and its
        draws must not depend on earlier items.
    start_method : str, optional
        ``'fork'``, ``'spawn'`` or ``'forkserver'``.  Defaults to None: the
        default of the process, or, for a stream that cannot be pickled,
        ``'fork'`` if the system has it.
    max_bytes : int, optional
        Bytes of shared memory that the batches may take.  If batches are
        large, fewer of them are prefetched.  Defaults to
        ``config.shared_memory_bytes``, 1 GiB.
    timeout : float, optional
        Seconds without a new batch after which the worker counts as
        stalled.  Defaults to ``config.stall_timeout``, 600; ``math.inf``
        waits as long as the worker lives.
    produces_examples, iteration_scheme, axis_labels
        See :class:`Transformer`.

    Raises
    ------
    NotImplementedError
        If the system cannot share memory between processes: Windows.
    fuel.exceptions.WorkerError
        By the epoch iterator, if the worker process dies or stalls, or if it
        waits for a lock or a thread without a time limit and has done nothing
        for ``config.deadlock_timeout`` seconds (30 by default).  An error
        that the pipeline itself raises is raised here too, with the worker's
        traceback.

    Notes
    -----
    The worker starts with the first epoch iterator and ends with
    :meth:`close`, with the stream, or with this process, however that ends.

    The order and the values are those of the wrapped stream.  When an epoch
    is left, saved or pickled, its prefetched batches are dropped: the next
    epoch, or the restored iterator, continues after the last batch that was
    delivered.

    Workers that are not forked receive the pickled stream.  They share one
    copy of its arrays of 1 MiB or more, and map memory-mapped files again.
    If a worker, or this process after the start, writes into an array, the
    other processes do not see it.

    The global generators, `numpy.random` and `random`, begin in the first
    worker with the states that they have in this process when the worker
    starts.  In each other worker they begin with other states, which are
    derived from these.  So the values that a function of yours draws from the
    global generators depend on the number of workers; the draws of a
    :class:`SeededTransformer` do not.

    Examples
    --------
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.schemes import SequentialScheme
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IndexableDataset([1, 2, 3]),
    ...                     iteration_scheme=SequentialScheme(3, 2))
    >>> with MultiProcessing(stream, start_method='fork') as parallel:
    ...     list(parallel.get_epoch_iterator())
    [([1, 2],), ([3],)]
    """

    unsaved_arguments = ('start_method',)

    def __init__(self, data_stream: StreamLike, max_store: int = 100, *,
                 num_workers: int = 1,
                 start_method: str | None = None,
                 max_bytes: int | None = None,
                 timeout: float | None = None,
                 **kwargs: Unpack[WorkerOptions]) -> None:
        check_shared_memory('MultiProcessing')
        if start_method is not None:
            multiprocessing.get_context(start_method)
        super().__init__(data_stream, num_workers, max_store, max_bytes,
                         timeout, **kwargs)
        self.start_method = start_method

    def _start_team(self) -> Team:
        context, pickled = self._get_context()
        name, count = type(self.data_stream).__name__, self.num_workers
        generators = [self._next_generators() for _ in range(count)]
        with warned_of_jax(context.get_start_method()):
            workers = [
                Worker.start(
                    name, (self.data_stream, each) if pickled is None
                    else None, context, -(-self.max_store // count),
                    self.max_bytes // count, self.timeout)
                for each in generators]
        if pickled is not None:
            # Written while the processes start, which takes longer.
            pickled.write()
            for worker, each in zip(workers, generators, strict=True):
                worker.send_stream(pickled, each)
            pickled.close_descriptor()
        return Team(workers)

    def _next_generators(self) -> Generators:
        # A single worker, even a later one, draws what this process would.
        return (self._generators.next() if self.num_workers > 1
                else Generators.here(0))

    def _get_context(self) -> tuple[Any, SharedPickle | None]:
        """Return the context of the workers, and the pickled stream.

        The pickled stream is None if the workers are forked.
        """
        context = multiprocessing.get_context(self.start_method)
        method = context.get_start_method()
        if method == 'fork':
            return context, None
        try:
            pickled = SharedPickle(self.data_stream)
        except Exception as error:  # noqa: BLE001 - pickling runs any code
            stage, cause = _find_unpicklable(self.data_stream, error)
            reason = (f'the stage {stage} cannot be pickled for a worker '
                      f'process started by {method!r} ({cause})')
            if (self.start_method is None
                    and 'fork' in multiprocessing.get_all_start_methods()):
                log.warning('%s: forking instead', reason)
                return multiprocessing.get_context('fork'), None
            raise TypeError(
                f'{reason}: use functions defined at the top level of a '
                "module instead of lambdas, or start_method='fork'",
            ) from cause
        if method == 'forkserver':
            _preload_in_fork_server()
        return context, pickled


def _preload_in_fork_server() -> None:
    """Preload NumPy, h5py and Fuel in the fork server, once for all workers.

    A fork server that runs already does not change.
    """
    from multiprocessing import forkserver
    known = getattr(forkserver._forkserver, '_preload_modules', ['__main__'])
    # Other frameworks start threads, which a fork does not copy.
    wanted = ['numpy', 'h5py', *(
        name for name in sys.modules if name.startswith('fuel.')
        and not name.startswith('fuel.interop'))]
    multiprocessing.set_forkserver_preload(
        [*known, *(name for name in wanted if name not in known)])


def _find_unpicklable(stream: object, error: Exception,
                      ) -> tuple[str, Exception]:
    """Return the innermost stage that cannot be pickled, and why."""
    for child in child_streams(stream):
        try:
            SharedPickle(child)
        except Exception as cause:  # noqa: BLE001 - pickling runs any code
            return _find_unpicklable(child, cause)
    return type(stream).__name__, error


class BackgroundProcess:
    """A stream's batches in a queue, made by another process.

    Parameters
    ----------
    data_stream : AbstractDataStream
        The stream to read from.
    max_batches : int
        Number of batches that may wait in the queue.

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

    def __init__(self, data_stream: StreamLike, max_batches: int) -> None:
        check_shared_memory('BackgroundProcess')
        positive('max_batches', max_batches)
        self.data_stream = data_stream
        self.max_batches = max_batches
        self._consumer = os.getpid()
        self._ends = Channel.pair()
        self._team: Team | None = None
        self._session: WorkerSession | None = None

    def main(self) -> None:
        """Make batches until the consumer is gone."""
        ours, theirs = self._ends
        ours.close()
        run_worker(theirs, self._consumer, self.max_batches,
                   config.shared_memory_bytes, (self.data_stream, None))

    def get_next_data(self) -> Batch | type[StopIteration]:
        """Return the next batch.

        Returns
        -------
        tuple or type
            The batch, or at the end of an epoch the class
            :class:`StopIteration`, which is not raised. The next call begins
            another epoch.

        Raises
        ------
        fuel.exceptions.WorkerError
            If the process that should run :meth:`main` is gone.
        """
        if self._team is None:
            ours, theirs = self._ends
            theirs.close()
            worker = Worker(type(self.data_stream).__name__, ours,
                            config.shared_memory_bytes,
                            config.stall_timeout)
            self._team = Team([worker])
        if self._session is None:
            self._session = WorkerSession()
            self._session.begin(self._team)
        try:
            return self._session.read()
        except StopIteration:
            self._session = None
            return StopIteration

    def close(self) -> None:
        """End :meth:`main`."""
        for end in self._ends:
            end.close()
        if self._team is not None:
            self._team.close()
