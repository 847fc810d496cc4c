"""Continue the streams of a check from saved positions, in this process or in
another one."""
from __future__ import annotations

import json
import multiprocessing
import pickle
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, Self, TypeAlias

from fuel.epochs.pipeline import child_streams
from fuel.epochs.stage import stage_of
from fuel.testing.data import Frozen, freeze_all
from fuel.testing.promises import BrokenPromiseError, expect, expect_made
from fuel.testing.scripts import Main, find_main, hiding_main, import_main
from fuel.transformers.worker_stage import WorkerStage
from fuel.typing import StreamLike


def leaves(stream: StreamLike) -> list[Any]:
    """Return the streams of a pipeline that read a data set in this process.

    A stage that reads in another process, or through a server, has no such
    stream.
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
        The arguments of each call.
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
    """The items that follow a position.

    `rest`: the remaining items of the epoch.
    `following`: the items of the next epoch.
    `requests`: number of requests that reading `rest` made.
    """

    rest: list[Frozen]
    following: list[Frozen]
    requests: int


def replay(build: Callable[[], Any],
           positions: Sequence[Saved]) -> list[Followed]:
    """Return the items that follow each position, read by new pipelines."""
    return [_follow(build, saved) for saved in positions]


def _follow(build: Callable[[], Any], saved: Saved) -> Followed:
    if saved.kind == 'state':
        stream = build()
        stream.load_state_dict(json.loads(saved.payload))
        epoch = stream.get_epoch_iterator()
    else:
        stream, epoch = pickle.loads(saved.payload)
    try:
        return follow(stream, epoch)
    finally:
        stream.close()


def follow(stream: Any, epoch: Iterator[Any]) -> Followed:
    """Return the rest of a stream's epoch and the epoch after it."""
    with counted_requests(stream) as requests:
        rest = freeze_all(epoch)
    return Followed(
        rest, freeze_all(stream.get_epoch_iterator()), len(requests))


class ReplayProcess:
    """A process that resumes streams from positions saved in this process.

    The process starts when a check first needs it, which takes a second: pass
    one :class:`ReplayProcess` to several checks so that they share the
    process.  As a context manager, it ends the process at the end of its
    block.  If a script calls the check, the process runs the part of the
    script before that call.

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
    # Number of the check at which the process ended the import of the script;
    # None if it imported the whole script, or no script.
    _left_at: int | None = None

    def _start(self, main: Main) -> Connection:
        context = multiprocessing.get_context('spawn')
        connection, other = context.Pipe()
        # Not a daemon: daemons may not start worker processes.
        self.process = context.Process(target=serve, args=(
            other, multiprocessing.get_start_method(), main))
        with hiding_main(main):
            self.process.start()
        other.close()
        self._left_at = None
        return connection

    def replay(self, build: Callable[[], Any],
               positions: Sequence[Saved]) -> list[Followed]:
        """Return the items that follow each position, read in the other
        process.

        Parameters
        ----------
        build : callable
            A function that makes the stream.  It must pickle, as functions
            that are defined in modules do.
        positions : sequence of tuple

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
        main = find_main()
        if self._left_at not in (None, main.num_checks):
            # The script may have defined more since the last check.
            self.close()
        if self.connection is None:
            self.connection = self._start(main)
        self.connection.send_bytes(message)
        if not self.connection.poll(TIMEOUT):
            # A late answer would be taken for the answer to the next request.
            self.process.kill()
            self.close()
            raise BrokenPromiseError(
                f'the other process has not answered in {TIMEOUT} s.')
        try:
            followed, text, is_left = pickle.loads(
                self.connection.recv_bytes())
        except EOFError:
            self.close()
            raise BrokenPromiseError('the other process died.') from None
        self._left_at = main.num_checks if is_left else None
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


def serve(connection: Connection, start_method: str, main: Main) -> None:
    """Answer requests until the other process closes the connection."""
    # Workers start as in the caller's program, not as this process did.
    multiprocessing.set_start_method(start_method, force=True)
    is_left: bool | None = None
    while True:
        try:
            message = connection.recv_bytes()
        except EOFError:
            return
        followed, text = None, ''
        try:
            if is_left is None:
                is_left = import_main(main)
            followed = replay(*pickle.loads(message))
        except Exception:  # noqa: BLE001 (it is reported there)
            text = traceback.format_exc()
        connection.send_bytes(pickle.dumps((followed, text, is_left)))


#: Most items of an epoch; a longer epoch is taken for one that never ends.
MOST_ITEMS = 10_000

Replay: TypeAlias = Callable[
    [Callable[[], Any], Sequence[Saved]], list[Followed]]


class StreamCase:
    """A function that makes the stream to check, and the stream's epochs.

    Parameters
    ----------
    build : callable
        Makes a new stream.  All streams that it makes are equal.
    draws : bool
        Whether the stream draws random numbers while an epoch runs.
    replay : callable
        Returns the items that follow saved positions; see :func:`replay`.
    """

    def __init__(self, build: Callable[[], Any], draws: bool,
                 replay: Replay) -> None:
        self.build = build
        self.draws = draws
        self.replay = replay

    @contextmanager
    def stream(self) -> Iterator[Any]:
        """Make a stream, and close it at the end of the block."""
        stream = self.build()
        expect_made(stream, 'stream', 'get_epoch_iterator')
        try:
            yield stream
        finally:
            stream.close()

    @cached_property
    def epochs(self) -> list[list[Frozen]]:
        """The first two epochs of a stream, each read to its end."""
        with self.stream() as stream:
            return [freeze_all(up_to_end(stream.get_epoch_iterator()))
                    for _ in range(2)]

    def expect_epoch(self, expected: list[Frozen], got: list[Frozen],
                     where: str) -> None:
        """Raise an error that names the first item that is not as expected."""
        for place, pair in enumerate(zip(expected, got, strict=False)):
            expect(pair[0] == pair[1],
                   f'{where}, item {place} should be {pair[0]}, but it is '
                   f'{pair[1]}.')
        expect(len(expected) == len(got),
               f'{where}, {len(expected)} items should come, but '
               f'{len(got)} came.')


def up_to_end(epoch: Iterable[Any]) -> Iterator[Any]:
    """Yield the items of an epoch; raise an error if it does not end."""
    for place, item in enumerate(epoch):
        expect(place < MOST_ITEMS,
               f'An epoch goes on after {MOST_ITEMS} items: get_data() has to '
               'raise StopIteration at its end, or the iteration scheme has '
               'to; of a large data set, check a few examples.')
        yield item


@contextmanager
def replaying(another_process: ReplayProcess | bool) -> Iterator[Replay]:
    """Yield the function that resumes from saved positions.

    `another_process`: see :func:`~fuel.testing.check_stream`.
    """
    if isinstance(another_process, ReplayProcess):
        yield another_process.replay
    elif another_process:
        with ReplayProcess() as process:
            yield process.replay
    else:
        yield replay
