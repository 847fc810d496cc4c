"""Prefetching of batches in threads of this process."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Unpack

from fuel.epochs.stage import Stage, stage_of
from fuel.transformers.options import WorkerOptions
from fuel.transformers.worker_stage import WorkerStage
from fuel.typing import StreamLike
from fuel.utils.checks import positive
from fuel.utils.threads import number_of_threads
from fuel.workers.global_random import refuse_global, sets_generators
from fuel.workers.team import Team
from fuel.workers.thread_worker import ThreadWorker


class MultiThreading(WorkerStage):
    """Prefetches batches in threads of this process.

    While the model trains on one batch, the next batches are made.  Stages
    that are declared pure run in several threads.  All other stages, and the
    data set, run in one more thread, one item after another.  Nothing is
    pickled, so functions may be lambdas.

    Parameters
    ----------
    data_stream : AbstractDataStream
        The stream to run in the threads.  Nothing else should read it.
    max_store : int, optional
        Number of batches that may be prefetched.  Each group of successive
        pure stages may work on ``2 * num_threads`` further batches.  Defaults
        to 10.
    num_threads : int, optional
        Number of threads that run pure stages.  Defaults to
        ``config.num_threads``, the number of cores.
    timeout : float, optional
        Seconds without a new batch after which the threads count as stalled.
        Defaults to ``config.stall_timeout``, 600.
    produces_examples, iteration_scheme, axis_labels
        See :class:`Transformer`.

    Raises
    ------
    ValueError
        If the generator of a stage is the global one of `numpy.random` or
        `random`, which the threads would share with the program, or if a
        `Mapping` has a `seed`; by the epoch iterator, if a stage draws from
        these generators, or seeds them, for the first batch.
    fuel.exceptions.WorkerError
        By the epoch iterator, if the threads stall.

    Notes
    -----
    The threads start when the first batch is requested and end with
    :meth:`close`, with the stream, or with this process.

    The order and the values are those of the wrapped stream.  The states are
    the same too: a state that was saved here can be loaded into the wrapped
    stream, or into a :class:`MultiProcessing` that wraps it.  When an epoch is
    left, saved or pickled, its prefetched batches are dropped: the next epoch,
    or the restored iterator, continues after the last batch that was
    delivered.  An error of a stage is raised when its batch is requested, with
    its own traceback.

    Threads help where Python waits or computes without its lock: while
    images are decoded, files are read, or NumPy works on large arrays.
    Stages in pure Python are faster in :class:`MultiProcessing`.

    Examples
    --------
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.streams import DataStream
    >>> from fuel.transformers import Mapping
    >>> stream = DataStream(IndexableDataset([1, 2, 3]), batch_size=2)
    >>> double = Mapping(
    ...     stream, lambda data: ([2 * x for x in data[0]],), pure=True)
    >>> with MultiThreading(double, num_threads=2) as ahead:
    ...     list(ahead.get_epoch_iterator())
    [([2, 4],), ([6],)]
    """

    __fuel_in_process__ = True
    unsaved_arguments = ('num_threads',)

    def __init__(self, data_stream: StreamLike, max_store: int = 10, *,
                 num_threads: int | None = None,
                 timeout: float | None = None,
                 **kwargs: Unpack[WorkerOptions]) -> None:
        refuse_global(_stages(stage_of(data_stream)))
        if sets_generators(stage_of(data_stream)):
            raise ValueError(
                'Mapping with a seed sets the global generators while its '
                'function runs, which threads would share with your program: '
                'use MultiProcessing')
        super().__init__(data_stream, 1, max_store, None, timeout, **kwargs)
        self.num_threads = number_of_threads() if num_threads is None else (
            positive('num_threads', num_threads))

    @property
    def runs_in(self) -> str:
        """The threads that read the data stream (str)."""
        return ('1 thread' if self.num_threads == 1
                else f'{self.num_threads} threads')

    def _start_team(self) -> Team:
        return Team([ThreadWorker(
            type(self.data_stream).__name__, self.data_stream,
            self.num_threads, self.max_store, self.timeout)])


def _stages(stage: Stage) -> Iterator[Stage]:
    """Yield a stage and all stages upstream of it."""
    yield stage
    for stream in stage.inputs:
        yield from _stages(stage_of(stream))
