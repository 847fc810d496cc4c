"""Types of Fuel's arguments and results: protocols and aliases.

Your classes need not derive from Fuel's: an object with the members of a
protocol is accepted wherever the protocol is named.

"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import (Any, Literal, Protocol, TypeAlias, TypeVar, cast,
                    overload, runtime_checkable)

import numpy
from numpy.typing import NDArray

__all__ = [
    'ArrayWriter', 'AxisLabels', 'Batch', 'DatasetLike', 'EpochIterator',
    'EpochReader',
    'Indices', 'NamedBatch', 'Naming', 'RandomGenerator', 'Request',
    'SchemeLike', 'Sources', 'State', 'StreamLike']

#: An example or a batch, as a tuple or a dict.
Item_co = TypeVar('Item_co', covariant=True)

#: Names of sources, in the order in which their data come.
Sources: TypeAlias = tuple[str, ...]

#: The data of one request: a batch or an example for each source.
Batch: TypeAlias = tuple[Any, ...]

#: The data of one request as a dict from source names to data, which
#: ``as_dict=True`` requests.
NamedBatch: TypeAlias = dict[str, Any]

#: The form of the data. It is True for a dict from source names to data,
#: ``'nested'`` for a dict of dicts, whose keys are the parts of the names
#: between slashes, and False for a tuple.
Naming: TypeAlias = "bool | Literal['nested']"

#: The examples to read, as a list of indices, an index array or a slice.
Indices: TypeAlias = 'Sequence[int] | NDArray[numpy.integer[Any]] | slice'

#: The index of an example, or indices of several examples. An iteration scheme
#: of the user's own may request any object that the data set accepts.
Request: TypeAlias = 'int | Indices | object'

#: A saved position, as plain data that can be written as JSON.
State: TypeAlias = dict[str, Any]

#: A mapping from source names to the names of the axes. The value is None for
#: a source whose axes are not known.
AxisLabels: TypeAlias = 'Mapping[str, Sequence[str] | None]'


@runtime_checkable
class RandomGenerator(Protocol):
    """A generator of random numbers that shuffles in place.

    Instances of :class:`numpy.random.RandomState`,
    :class:`numpy.random.Generator` and :class:`random.Random` are such
    generators.
    """

    def shuffle(self, x: Any, /) -> None:
        """Shuffle a list or an array in place."""


@runtime_checkable
class SchemeLike(Protocol):
    """An iteration scheme: chooses the examples of an epoch and their
    order."""

    @property
    def requests_examples(self) -> bool:
        """True if each request is for an example, False if it is for a
        batch."""

    def get_request_iterator(self) -> Iterator[Any]:
        """Return an iterator over the requests of a new epoch."""


@runtime_checkable
class DatasetLike(Protocol):
    """Data that a :class:`~fuel.streams.DataStream` can read."""

    @property
    def sources(self) -> Sequence[str]:
        """Names of the sources, in the order of their data."""

    def open(self) -> Any:
        """Return a state of the data set, to be passed to `get_data`."""

    def next_epoch(self, state: Any, /) -> Any:
        """Return the state with which the next epoch begins."""

    def get_data(self, state: Any = None, request: Any = None) -> Any:
        """Return the data of one request."""


@runtime_checkable
class StreamLike(Protocol):
    """A stream of examples or batches, separated into epochs."""

    @property
    def sources(self) -> Sequence[str]:
        """Names of the sources, in the order of their data."""

    @property
    def produces_examples(self) -> bool:
        """True if the stream produces examples, False if it produces
        batches."""

    def get_epoch_iterator(self, as_dict: bool = False) -> Iterator[Any]:
        """Return an iterator over the data of a new epoch."""

    def get_data(self, request: Any = None) -> Any:
        """Return the data of one request."""


class EpochIterator(Protocol[Item_co]):
    """An iterator over the data of one epoch, whose position can be saved."""

    def __iter__(self) -> EpochIterator[Item_co]: ...

    def __next__(self) -> Item_co: ...

    def state_dict(self) -> State:
        """Return the state of the iterator, as plain data."""


class GetEpochIterator(Protocol):
    """The signature of ``get_epoch_iterator``."""

    @overload
    def __call__(self, as_dict: Literal[False] = ...
                 ) -> EpochIterator[Batch]: ...

    @overload
    def __call__(self, as_dict: Literal[True]
                 ) -> EpochIterator[NamedBatch]: ...

    @overload
    def __call__(self, as_dict: bool = ...) -> EpochIterator[Any]: ...


class EpochMethod(Protocol):
    """A method of a stream that is a :class:`GetEpochIterator`.

    It exists for Pyright, which compares the attribute of a class with a
    protocol's method without calling `__get__`.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Iterator[Any]: ...

    @overload
    def __get__(self, stream: None, owner: type, /
                ) -> Callable[..., EpochIterator[Any]]: ...

    @overload
    def __get__(self, stream: object, owner: type, /
                ) -> GetEpochIterator: ...


def returns_epochs(method: Callable[..., object]) -> EpochMethod:
    """Declare for type checkers that a method is a :class:`GetEpochIterator`,
    and return the method unchanged."""
    return cast(EpochMethod, method)


class EpochReader(Protocol):
    """Reads the data of one epoch in the order of its requests."""

    def read(self) -> Batch:
        """Return the data of the next request.

        Raises
        ------
        StopIteration
            If there are no more requests.
        """

    def skip(self, count: int) -> None:
        """Skip requests without reading their data."""

    def close(self) -> None:
        """Release the reader's resources, such as prefetched chunks."""


class ArrayWriter(Protocol):
    """An array on disk or in memory, to which rows are written.

    An :class:`h5py.Dataset` and a NumPy array are such arrays.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis."""

    @property
    def dtype(self) -> numpy.dtype[Any]:
        """Type of the elements."""

    def __setitem__(self, key: Any, value: Any, /) -> None: ...
