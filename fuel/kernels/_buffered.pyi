from collections.abc import Iterator
from typing import Any

class Buffer:
    items: Iterator[Any] | None
    taken: int

class BufferedIterator:
    epoch: Any
    def __iter__(self) -> Any: ...
    def __next__(self) -> Any: ...
