"""A queue of a stream's batches, filled by a process of the caller's."""
from __future__ import annotations

import os

from fuel import config
from fuel.epochs.pipeline import skip
from fuel.transport.channel import Channel, check_shared_memory
from fuel.typing import Batch, StreamLike
from fuel.utils.checks import positive
from fuel.workers.producer import run_worker
from fuel.workers.team import Team, WorkerSession
from fuel.workers.worker import Worker


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
        run_worker(self.data_stream, theirs, self._consumer, self.max_batches,
                   config.shared_memory_bytes)

    def get_next_data(self) -> Batch | type[StopIteration]:
        """Return the next batch.

        Returns
        -------
        tuple or type
            The class :class:`StopIteration`, which is not raised, at the end
            of an epoch; the next call begins another.

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
            self._team = Team([worker], skip)
        team = self._team
        if self._session is None:
            self._session = WorkerSession()
            self._session.begin(team)
        try:
            return self._session.take(lambda: team)
        except StopIteration:
            self._session = None
            return StopIteration

    def close(self) -> None:
        """End :meth:`main`."""
        for end in self._ends:
            end.close()
        if self._team is not None:
            self._team.close()
