from collections.abc import Iterator
from typing import Any

class PendingItem:
    is_asked: bool
    is_over: bool
    held: tuple[Any, Exception | None, Any] | None
    receipt: Any
    def claim(self) -> None: ...

class PrefetchBuffer:
    items: Iterator[Any] | None
    taken: int
    pending_item: PendingItem | None

class BufferedIterator:
    epoch: Any
    def __iter__(self) -> Any: ...
    def __next__(self) -> Any: ...
