from collections.abc import Callable, Iterator
from typing import Any

from fuel.kernels.epoch_reader import CompiledReader

class StageReader(CompiledReader):
    child: Iterator[Any] | None
    def __init__(
        self, stage: Any, child: Iterator[Any],
        transform: Callable[[Any, Any], Any]) -> None: ...
