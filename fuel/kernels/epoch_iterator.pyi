from typing import Any

from fuel.typing import EpochReader

class PendingItem:
    is_asked: bool
    is_over: bool
    held: tuple[Any, Exception | None, Any] | None
    receipt: Any
    def claim(self) -> None: ...

class EpochPosition:
    position: int
    step: int
    reader: EpochReader | None
    pending_item: PendingItem | None

class EpochIterator:
    epoch: Any
    as_dict: bool
    def __iter__(self) -> Any: ...
    def __next__(self) -> Any: ...
