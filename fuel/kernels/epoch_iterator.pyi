from types import TracebackType
from typing import Any, TypeVar

from fuel.typing import EpochReader, Naming

_Iterator = TypeVar('_Iterator', bound=EpochIterator)

SHORT: float
PERIOD: int
MOST_SPANS: int

class StageMeter:
    items: int
    examples: int
    bytes: int
    written: int
    timed: int
    restarts: int
    counts_rows: bool
    is_placed: bool
    is_exact: bool
    spans: list[tuple[int, int, int, int]] | None
    spans_below: list[Any]
    num_left_out: int
    reports: dict[object, list[Any]]
    cause: tuple[int, ...] | None
    owner: StageMeter | None
    @property
    def work_seconds(self) -> float: ...
    @property
    def input_seconds(self) -> float: ...
    @property
    def room_seconds(self) -> float: ...
    @property
    def awaited_seconds(self) -> float: ...
    @property
    def consumer_seconds(self) -> float: ...
    def clear(self) -> None: ...
    def place(
        self, counts_rows: bool, inputs: tuple[StageMeter, ...]) -> None: ...
    def begin_epoch(self) -> None: ...
    def stalls_by(
        self, stage: StageMeter,
    ) -> tuple[float, dict[tuple[int, ...], float]]: ...
    def count_room(self, seconds: float) -> None: ...
    def credit(self, thread: int, begin: int, end: int) -> None: ...
    def take_spans(self) -> tuple[
        list[tuple[int, int, int, int]], list[Any], int]: ...

class MeasuredItem:
    place: int
    def begin(self, item: object) -> None: ...
    def count(self, item: object) -> None: ...

class Waiting:
    def __init__(self, *, is_told: bool = False) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        traceback: TracebackType | None) -> None: ...

def now() -> int: ...
def last_wait() -> tuple[StageMeter | None, float]: ...
def meters_in_use() -> list[StageMeter]: ...
def take_note(
    key: object, path: tuple[int, ...] | None, seconds: float,
    report: list[Any] | None,
    spans: list[Any] | None = None) -> bool: ...
def measuring_seconds(
    meter: StageMeter, item: object, count: int) -> float: ...
def leave_frames() -> None: ...

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
    meter: StageMeter

class EpochIterator:
    epoch: Any
    as_dict: Naming
    # Those of its subclass, DataIterator, which this module cannot import.
    data_stream: Any
    def only_counts(self) -> bool: ...
    def get_position(self) -> Any: ...
    def present_state(self) -> Any: ...
    def __iter__(self) -> Any: ...
    def __next__(self) -> Any: ...

def next_in_c(cls: type[_Iterator]) -> type[_Iterator]: ...
