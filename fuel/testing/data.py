"""Record, compare and overwrite the data of any stream."""
from __future__ import annotations

import hashlib
import reprlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy
from numpy.typing import NDArray

from fuel.utils.masked import is_masked, mask_of
from fuel.utils.sparse import arrays_of, is_sparse


@dataclass(frozen=True)
class Frozen:
    """A record of data at one moment, to compare with later data.

    Two records are equal if the data had equal types, shapes and values.

    Parameters
    ----------
    digest : str
        Digest of types, shapes and values.
    text : str
        A short form for errors, which is not compared.
    """

    digest: str
    text: str = field(compare=False)

    def __repr__(self) -> str:
        return self.text


def freeze(data: object) -> Frozen:
    """Return a record of data that does not change when the data change."""
    return Frozen(hashlib.sha256(repr(_plain(data)).encode()).hexdigest(),
                  reprlib.repr(data))


def freeze_all(items: Iterable[object]) -> list[Frozen]:
    """Return all items of an iterable, frozen one by one."""
    return [freeze(item) for item in items]


def _plain(data: object) -> object:
    """Return data as an object whose ``repr`` shows types and all values."""
    if is_masked(data) and not data.dtype.names:
        # Masked values are undefined.
        return 'masked', data.dtype.str, _plain(mask_of(data)), _plain(
            numpy.ma.getdata(data)[~mask_of(data)])
    if isinstance(data, numpy.ndarray) and data.dtype.hasobject:
        return 'objects', data.shape, [_plain(part) for part in data.flat]
    if isinstance(data, (numpy.ndarray, numpy.generic)):
        return type(data).__name__, data.dtype.str, data.shape, data.tobytes()
    if is_sparse(data):
        return 'sparse', data.shape, [_plain(part) for part in arrays_of(data)]
    if isinstance(data, (list, tuple)):
        return type(data).__name__, [_plain(part) for part in data]
    if isinstance(data, dict):
        return 'dict', [(key, _plain(part)) for key, part in data.items()]
    return data


def arrays_in(data: object) -> Iterator[NDArray[numpy.generic]]:
    """Yield all arrays in data, such as in lists and sparse matrices."""
    if is_sparse(data):
        yield from arrays_of(data)
    elif is_masked(data):
        yield from arrays_in(numpy.ma.getdata(data))
        if numpy.ma.getmask(data) is not numpy.ma.nomask:
            yield mask_of(data)
    elif isinstance(data, numpy.ndarray):
        yield data
        if data.dtype.hasobject:
            for part in data.flat:
                yield from arrays_in(part)
    elif isinstance(data, (list, tuple)):
        for part in data:
            yield from arrays_in(part)


def overwrite(data: object) -> None:
    """Overwrite all writable parts of data with other values."""
    if is_sparse(data):
        for array in arrays_of(data):
            overwrite(array)
    elif is_masked(data):
        overwrite(numpy.ma.getdata(data))
        data[...] = numpy.ma.masked
    elif isinstance(data, numpy.ndarray):
        if data.dtype.hasobject:
            for part in data.flat:
                overwrite(part)
            data[...] = None
        else:
            data.view('u1' if data.flags.c_contiguous and data.ndim
                      and data.shape[-1] else data.dtype)[...] = 99
    elif isinstance(data, numpy.void) and data.dtype.names:
        data[data.dtype.names[0]] = 99
    elif isinstance(data, list):
        for part in data:
            overwrite(part)
        data[:] = [None] * len(data)
    elif isinstance(data, tuple):
        for part in data:
            overwrite(part)
