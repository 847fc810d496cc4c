from collections.abc import Callable, Iterable
from typing import Any

from fuel.typing import Batch, EpochReader

class RequestPosition:
    position: int
    step: int
    offset: int
    limit: int

class CompiledReader:
    requests: Any
    fallback: EpochReader
    def __init__(
        self, requests: RequestPosition, fallback: EpochReader) -> None: ...
    def read(self) -> Batch: ...
    def skip(self, count: int) -> None: ...
    def close(self) -> None: ...

class PrefetchReader(CompiledReader):
    def fill(self, items: Iterable[Batch]) -> None: ...
    def drop(self) -> None: ...
    def prefetch(self) -> None: ...

class IndexReader(CompiledReader):
    converted: frozenset[str]

class ArrayReader(IndexReader):
    def __init__(
        self, requests: RequestPosition, fallback: EpochReader,
        collections: list[Any], owner: object, attributes: tuple[str, ...],
        own: Callable[[Any], Any], **kwargs: Any) -> None: ...
    def is_current(self) -> bool: ...

def is_readable(part: object) -> bool: ...
def new_object(cls: type) -> Any: ...
