from collections.abc import Callable, Iterator
from typing import Any

from fuel.kernels.epoch_iterator import EpochPosition
from fuel.kernels.epoch_reader import CompiledReader
from fuel.typing import StreamLike

class ItemReader(CompiledReader):
    def explained(self, error: Exception, child: object,
                  item: object) -> Exception: ...

class StageReader(ItemReader):
    child: Iterator[Any] | None
    transform: Callable[[Any, Any], Any]
    def __init__(
        self, stage: StreamLike, child: Iterator[Any],
        transform: Callable[[Any, Any], Any]) -> None: ...

class BoundStageReader(ItemReader):
    def __init__(self, epoch: EpochPosition, stage: StreamLike,
                 method: str | None = None) -> None: ...

class OfPlainArrays:
    def __init__(self, function: Callable[[Any], Any],
                 otherwise: Callable[[Any, Any], Any],
                 as_int64: bool = ...) -> None: ...
    def __call__(self, stage: StreamLike, data: Any) -> Any: ...

def note_request(error: Exception, request: object) -> None: ...
