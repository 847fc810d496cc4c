"""Count what a pipeline reads from its data sets."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fuel.epochs.pipeline import child_streams
from fuel.epochs.stage import stage_of
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
