from typing import Any, TypeVar

from fuel.typing import EpochReader

_Iterator = TypeVar('_Iterator', bound=EpochIterator)

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
    attributes: dict[str, Any]
    skipped: set[int]

class EpochIterator:
    epoch: Any
    as_dict: bool
    # Those of its subclass, DataIterator, which this module cannot import.
    data_stream: Any
    def only_counts(self) -> bool: ...
    def get_position(self) -> Any: ...
    def present_state(self) -> Any: ...
    def __iter__(self) -> Any: ...
    def __next__(self) -> Any: ...

def next_in_c(cls: type[_Iterator]) -> type[_Iterator]: ...
