from collections.abc import Iterator
from typing import Any

class Handover:
    is_asked: bool
    is_over: bool
    held: tuple[Any, Exception | None, Any] | None
    receipt: Any
    def claim(self) -> None: ...

class Buffer:
    items: Iterator[Any] | None
    taken: int
    handover: Handover | None

class BufferedIterator:
    epoch: Any
    def __iter__(self) -> Any: ...
    def __next__(self) -> Any: ...
