"""Streams under PaddlePaddle's data loader."""
from __future__ import annotations

import importlib
from collections.abc import Iterator
from itertools import islice
from typing import Any

from fuel.interop.paddle.providers import StreamProvider, as_provider
from fuel.typing import StreamLike
from fuel.utils.checks import not_negative


def as_iterable(stream: StreamLike | StreamProvider) -> Any:
    """Return a stream as an ``IterableDataset`` of PaddlePaddle.

    Parameters
    ----------
    stream : AbstractDataStream or callable
        Or what :func:`as_provider` returned.

    Returns
    -------
    paddle.io.IterableDataset
        Its items are entries. Among the workers of a ``DataLoader`` each
        entry comes once. Workers start anew with each pass and do not know
        which one it is: call its ``set_pass(number)`` before each.

    Raises
    ------
    ImportError
        If PaddlePaddle is not installed.
    """
    io: Any
    try:
        io = importlib.import_module('paddle.io')
    except ModuleNotFoundError as error:
        raise ImportError(
            'paddle.io is a part of PaddlePaddle, which is not installed: '
            'pip install paddlepaddle') from error
    provider = stream if isinstance(stream, StreamProvider) else (
        as_provider(stream))

    base: Any = io.IterableDataset

    class Entries(base):  # type: ignore[misc]
        """The entries of a stream, divided among workers."""

        def __init__(self) -> None:
            super().__init__()
            self.provider = provider
            self.number = 0

        def set_pass(self, number: int) -> None:
            """Say which pass the workers make next, from 0 on."""
            self.number = not_negative('number', number)

        def __iter__(self) -> Iterator[list[Any]]:
            info = io.get_worker_info()
            if info is None:
                return provider()
            # A worker is made for one pass: leave out those before it.
            for _ in range(self.number):
                provider.stream.get_epoch_iterator()
            return islice(provider(), info.id, None, info.num_workers)

    return Entries()
