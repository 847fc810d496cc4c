from typing import Any

HEADER_NBYTES: int

def find_object(data: Any, nbytes: int, number: int,
                whole: bool = ...) -> tuple[int, int] | None: ...
