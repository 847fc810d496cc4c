"""Data streams: a data set read in the order of an iteration scheme."""
from typing import TYPE_CHECKING, Any

from fuel.streams.base import AbstractDataStream
from fuel.streams.dataset_stream import DataStream

if TYPE_CHECKING:
    from fuel.client.stream import ServerDataStream

__all__ = [
    'AbstractDataStream', 'DataStream',
    'ServerDataStream']

# Classes are pickled, and shown, under the name that users import.
AbstractDataStream.__module__ = DataStream.__module__ = __name__


def __getattr__(name: str) -> Any:
    # The client needs ZeroMQ, which most programs do not.
    if name == 'ServerDataStream':
        from fuel.client.stream import ServerDataStream
        return ServerDataStream
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')


def __dir__() -> list[str]:
    # Include the names that are loaded on demand.
    return sorted({*globals(), *__all__})
