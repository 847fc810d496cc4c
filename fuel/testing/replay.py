"""Continue saved positions in another process, and report what follows."""
from __future__ import annotations

import json
import multiprocessing
import pickle
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, Self

from fuel.epochs.pipeline import child_streams
from fuel.epochs.stage import stage_of
from fuel.testing.data import Frozen, freeze_all
from fuel.testing.promises import BrokenPromiseError
from fuel.transformers.worker_stage import WorkerStage
from fuel.typing import StreamLike


def leaves(stream: StreamLike) -> list[Any]:
    """Return the streams over data sets that are read in this process.

    A stage that reads in another process, or through a server, has none.
    """
    if isinstance(stream, WorkerStage):
        return []
    if stage_of(stream).dataset is not None:
        return [stream]
    # A stream may be merged with itself.
    return list(dict.fromkeys(
        leaf for child in child_streams(stream) for leaf in leaves(child)))


@contextmanager
def counted_requests(stream: StreamLike) -> Iterator[list[object]]:
    """Count the calls of the data sets' ``get_data`` during the block.

    Yields
    ------
    list
        As many items as there were calls.
    """
    calls: list[object] = []

    def counted(get_data: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            calls.append(args)
            return get_data(*args, **kwargs)
        return wrapper

    datasets = {id(leaf.dataset): leaf.dataset for leaf in leaves(stream)}
    for dataset in datasets.values():
        dataset.get_data = counted(dataset.get_data)
    try:
        yield calls
    finally:
        for dataset in datasets.values():
            del dataset.get_data


#: Seconds to wait for the other process.
TIMEOUT = 100


class Saved(NamedTuple):
    """A position: a state as JSON, or a pickled stream and iterator."""

    kind: str
    payload: bytes


class Followed(NamedTuple):
    """What followed a position: rest of the epoch, next one, requests."""

    rest: list[Frozen]
    following: list[Frozen]
    requests: int


def replay(build: Callable[[], Any],
           positions: Sequence[Saved]) -> list[Followed]:
    """Continue from each of some positions with a pipeline built anew."""
    return [_follow(build, saved) for saved in positions]


def _follow(build: Callable[[], Any], saved: Saved) -> Followed:
    if saved.kind == 'state':
        stream = build()
        stream.load_state_dict(json.loads(saved.payload))
        epoch = stream.get_epoch_iterator()
    else:
        stream, epoch = pickle.loads(saved.payload)
    try:
        with counted_requests(stream) as requests:
            rest = freeze_all(epoch)
        return Followed(
            rest, freeze_all(stream.get_epoch_iterator()), len(requests))
    finally:
        stream.close()


class ReplayProcess:
    """Another process that continues from positions saved in this one.

    It starts when it is first needed, which takes a second: pass one to
    several checks so that they share it.  It is a context manager, and ends
    with its block.

    Examples
    --------
    >>> from functools import partial
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.schemes import SequentialScheme
    >>> from fuel.streams import DataStream
    >>> from fuel.testing import check_stream
    >>> build = partial(DataStream, IndexableDataset([1, 2, 3]),
    ...                 iteration_scheme=SequentialScheme(3, 2))
    >>> with ReplayProcess() as process:
    ...     check_stream(build, another_process=process)
    """

    connection: Connection | None = None

    def _start(self) -> Connection:
        context = multiprocessing.get_context('spawn')
        connection, other = context.Pipe()
        # No daemon: those may have no worker processes of their own.
        self.process = context.Process(target=serve, args=(
            other, multiprocessing.get_start_method()))
        self.process.start()
        other.close()
        return connection

    def replay(self, build: Callable[[], Any],
               positions: Sequence[Saved]) -> list[Followed]:
        """Continue from positions there, and return what followed.

        Parameters
        ----------
        build : callable
            Makes the stream.  It must pickle, as functions of modules do.

        Raises
        ------
        TypeError
            If `build` does not pickle.
        BrokenPromiseError
            If a position cannot be continued, or the process dies.
        """
        try:
            message = pickle.dumps((build, list(positions)))
        except Exception as error:
            raise TypeError(
                f'{build!r} must pickle to be called in another process: '
                'define it in a module, or pass another_process=False'
            ) from error
        if self.connection is None:
            self.connection = self._start()
        self.connection.send_bytes(message)
        if not self.connection.poll(TIMEOUT):
            # Its answer, if it comes, is not that to the next question.
            self.process.kill()
            self.close()
            raise BrokenPromiseError(
                f'the other process has not answered in {TIMEOUT} s.')
        try:
            followed, text = pickle.loads(
                self.connection.recv_bytes())
        except EOFError:
            self.close()
            raise BrokenPromiseError('the other process died.') from None
        if text:
            raise BrokenPromiseError(
                f'In another process it ended with an error:\n{text}')
        result: list[Followed] = followed
        return result

    def close(self) -> None:
        """End the process; another one starts if it is needed again."""
        if self.connection is None:
            return
        self.connection.close()
        self.connection = None
        self.process.join(10)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def serve(connection: Connection, start_method: str) -> None:
    """Answer until the other side closes the connection."""
    # Workers start as in the caller's program, not as this process did.
    multiprocessing.set_start_method(start_method, force=True)
    while True:
        try:
            message = connection.recv_bytes()
        except EOFError:
            return
        followed, text = None, ''
        try:
            followed = replay(*pickle.loads(message))
        except Exception:  # noqa: BLE001 (it is reported there)
            text = traceback.format_exc()
        connection.send_bytes(pickle.dumps((followed, text)))
