"""Tables of the places at which the fields of records lie in files.

A table is made once, by a scan of the files, and kept on disk for the present
state of the files. Since any program could have written what is kept, it is
checked before it is used.
"""
from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray

from fuel.remote.location import ask_all
from fuel.storage import Reader
from fuel.storage.file_bytes import Ends, FileBytes, is_remote
from fuel.storage.linked_files import FEWEST_KEPT, kept_arrays, keep_arrays
from fuel.storage.part_index import Arrays
from fuel.storage.reader import as_objects, no_ranges
from fuel.storage.spans import ABSENT
from fuel.utils.threads import map_chunks

IndexArray = NDArray[numpy.intp]


# For reading headers: bytes of the smallest and of the largest block, and the
# gap up to which the next block is larger.
LOCAL_READS = 1 << 12, 1 << 20, 0
REMOTE_READS = 1 << 16, 1 << 22, 1 << 20
# Most fields: a table has a place for each field of each record.
MOST_FIELDS = 1000


def refuse_many(path: str, fields: Collection[str]) -> None:
    """Raise ValueError if there are so many fields that they must be parts of
    other names."""
    if len(fields) > MOST_FIELDS:
        shown = ', '.join(map(repr, sorted(fields)[:3]))
        raise ValueError(
            f'{path}: there are more than {MOST_FIELDS} fields, such as '
            f'{shown}; in an archive, the name of a file is that of the '
            f'record up to the first dot, and the rest is the field: rename '
            f'the files, or unpack the archive')


class Texts:
    """A list of texts that takes little memory, such as the keys of records.

    `content`: the texts in UTF-8, one after the other.
    `ends`: the end of each text in `content`.
    """

    def __init__(self, content: NDArray[numpy.uint8], ends: Ends) -> None:
        self.content, self.ends = content, ends

    @classmethod
    def of(cls, texts: Sequence[bytes]) -> Texts:
        """Return the texts of a list, each in UTF-8."""
        return cls(numpy.frombuffer(b''.join(texts), numpy.uint8),
                   numpy.cumsum([len(text) for text in texts], dtype='int64'))

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, number: int) -> str:
        first = int(self.ends[number - 1]) if number else 0
        # Names in archives may have any bytes.
        return self.content[first:int(self.ends[number])].tobytes().decode(
            errors='surrogateescape')


class TextReader(Reader):
    """Reader of texts that are in memory, such as the keys of records.

    `texts`: the text of each row, by its number.
    `files`: the files that the texts are from.
    `bounds`: the first row of each file, and the number of rows; None if there
        is one file.
    """

    def __init__(self, path: str, name: str, texts: Any,
                 files: Sequence[Any],
                 bounds: IndexArray | None = None) -> None:
        super().__init__(path, name, (len(texts),), numpy.dtype(object))
        self.files = tuple(files)
        if bounds is not None:
            self.part_bounds = bounds
        self._texts = texts

    def byte_ranges(self, rows: IndexArray) -> tuple[Ends, Ends]:
        """Return no ranges, since the texts are in memory."""
        return no_ranges()

    def _read_list(self, rows: IndexArray) -> NDArray[Any]:
        self._check_list(rows)
        return as_objects(list(map(self._texts.__getitem__, rows.tolist())))


class Scanned(NamedTuple):
    """The records of one file.

    `total`: number of records.
    `fields`: for each field, the address of its bytes in the file, and the
        number of these bytes, for each record; the address is `ABSENT` in a
        record without the field.
    `keys`: the keys of the records; None if they have no keys.
    `content`: a checksum of the contents; 0 if none is known.
    """

    total: int
    fields: Mapping[str, tuple[Ends, Ends]]
    keys: Texts | None = None
    content: int = 0


class HeaderBlocks:
    """Reads a file from header to header, in blocks that grow while headers
    lie near each other: the bytes between them are skipped, or read."""

    def __init__(self, file: FileBytes) -> None:
        self._least, self._most, self._near = (
            REMOTE_READS if file.is_remote else LOCAL_READS)
        self._file, self._size, self._stop = file, 0, 0

    def read(self, place: int) -> bytes:
        """Return the bytes at a place behind those of the last call."""
        file = self._file
        is_near = 0 < self._size and place <= self._stop + self._near
        self._size = max(self._least, min(
            2 * self._size, self._most) if is_near else 0)
        self._stop = place + self._size
        if is_near and is_remote(file) and self._stop < file.size:
            # The next block comes while this one is looked at.
            file.request(
                numpy.array([place, self._stop]), numpy.array([
                    self._stop, min(self._stop + 2 * self._size, file.size)]))
        return file.read(place, self._size)


#: Finds the records of a file.
Scan = Callable[[FileBytes], Scanned]


class RecordTable:
    """The places of the fields of records in several files.

    `bounds`: the first record of each file, and the number of records.
    `names`: the names of the fields.
    `spans`: shape (fields, 2, records); addresses and sizes of the fields, as
        in :class:`Scanned`. Addresses are those in each file.
    `keys`: the keys of the records; None if they have no keys.
    `contents`: a checksum of the contents of each file, or 0.
    """

    def __init__(self, bounds: IndexArray, names: Sequence[str], spans: Ends,
                 keys: Texts | None, contents: Ends) -> None:
        self.bounds, self.keys, self.contents = bounds, keys, contents
        self.spans = spans
        self.fields = dict(zip(names, spans, strict=True))

    def __len__(self) -> int:
        return int(self.bounds[-1])

    def file_of(self, record: int) -> int:
        """Return the number of the file that has a record."""
        return int(self.bounds.searchsorted(record, 'right')) - 1

    def is_scattered(self, record: int) -> bool:
        """Return whether another record of a file has the same key."""
        if self.keys is None:
            return False
        key, number = self.keys[record], self.file_of(record)
        return any(self.keys[other] == key for other in range(
            *self.bounds[number:number + 2].tolist()) if other != record)

    @cached_property
    def checksum(self) -> str:
        """A checksum of the keys of the records, of the sizes of their fields
        and of their contents, if known, but not of the places in the files."""
        # Needed only when a state is saved or loaded.
        from hashlib import blake2b
        digest = blake2b(json.dumps([*self.fields]).encode(), digest_size=16)
        for starts, sizes in self.fields.values():
            digest.update(
                numpy.where(starts == ABSENT, ABSENT, sizes).tobytes())
        if self.keys is not None:
            digest.update(self.keys.ends.tobytes())
            digest.update(self.keys.content.tobytes())
        if self.contents.any():
            digest.update(self.contents.tobytes())
        return digest.hexdigest()

    def in_joined(self, name: str, origins: Ends) -> tuple[Ends, Ends]:
        """Return the places of a field by their addresses in the files joined
        into one.

        `origins`: the address of the first byte of each file.
        """
        starts, sizes = self.fields[name]
        shift = numpy.repeat(origins, numpy.diff(self.bounds))
        return numpy.where(starts >= 0, starts + shift, ABSENT), sizes


def record_table(files: Sequence[FileBytes], key: str,
                 scan: Scan) -> RecordTable:
    """Return the table of the records in files, kept or made now.

    `key`: what the table depends on besides the files, such as the format.
    `scan`: finds the records of one file. Several threads call it.
    """
    kept = kept_arrays(files, f'records of {key}')
    table = None if kept is None else _restored(kept, files)
    if table is None:
        has_remote = any(file.is_remote for file in files)
        found = ask_all(scan, files) if has_remote else [
            one for chunk in map_chunks(
                lambda first, stop: [scan(file) for file in files[first:stop]],
                len(files)) for one in chunk]
        refuse_many(files[0].path, {
            name for one in found for name in one.fields})
        table = _joined(found)
        for file in files:
            file.check()
        if has_remote or len(table) >= FEWEST_KEPT:
            keep_arrays(files, f'records of {key}', _arrays(table))
    return table


def _joined(found: Sequence[Scanned]) -> RecordTable:
    """Return the table of the records of several files."""
    bounds = numpy.cumsum([0, *[one.total for one in found]], dtype=numpy.intp)
    names = sorted({name for one in found for name in one.fields})
    spans = numpy.zeros((len(names), 2, bounds[-1]), numpy.int64)
    spans[:, 0] = ABSENT
    fields = dict(zip(names, spans, strict=True))
    for one, first in zip(found, bounds.tolist(), strict=False):
        for name, places in one.fields.items():
            fields[name][:, first:first + one.total] = places
    keys = None
    if all(one.keys is not None for one in found):
        every: list[Any] = [one.keys for one in found]
        lengths = numpy.cumsum([0, *[len(one.content) for one in every]])
        keys = Texts(
            numpy.concatenate([one.content for one in every]),
            numpy.concatenate([one.ends + shift for one, shift in zip(
                every, lengths.tolist(), strict=False)]))
    return RecordTable(
        bounds, names, spans, keys,
        numpy.array([one.content for one in found], numpy.int64))


def _arrays(table: RecordTable) -> dict[str, NDArray[Any]]:
    """Return the arrays from which :func:`_restored` makes a table."""
    names = json.dumps([*table.fields]).encode()
    arrays: dict[str, NDArray[Any]] = {
        'bounds': table.bounds.astype(numpy.int64),
        'contents': table.contents, 'spans': table.spans,
        'names': numpy.frombuffer(names, numpy.uint8)}
    if table.keys is not None:
        arrays['keys'] = table.keys.content
        arrays['key_ends'] = table.keys.ends
    return arrays


def _restored(arrays: Arrays,
              files: Sequence[FileBytes]) -> RecordTable | None:
    """Return the table from which :func:`_arrays` made arrays; None if the
    arrays are not sound."""
    try:
        bounds = _checked(arrays['bounds'], len(files) + 1)
        contents = _checked(arrays['contents'], len(files))
        count = int(bounds[-1])
        _require(bounds[0] == 0 and (numpy.diff(bounds) >= 0).all())
        stops = numpy.repeat([file.size for file in files],
                             numpy.diff(bounds))
        names = json.loads(arrays['names'].tobytes())
        spans = _checked(arrays['spans'], len(names), 2, count)
        starts, sizes = spans[:, 0], spans[:, 1]
        _require((starts >= ABSENT).all() and (sizes >= 0).all()
                 and (sizes <= stops - starts).all()
                 and all(isinstance(name, str) for name in names))
        keys = None
        if 'keys' in arrays:
            ends = _checked(arrays['key_ends'], count)
            content = arrays['keys']
            _require(content.dtype == 'uint8' and content.ndim == 1
                     and (numpy.diff(ends, prepend=0) >= 0).all()
                     and (not count or ends[-1] == len(content)))
            keys = Texts(content, ends)
    except (KeyError, ValueError, TypeError):
        return None
    return RecordTable(
        bounds.astype(numpy.intp), names, spans, keys, contents)


def _checked(array: NDArray[Any], *shape: int) -> Ends:
    _require(array.dtype == 'int64' and array.shape == shape)
    return array


def _require(is_sound: Any) -> None:
    if not is_sound:
        raise ValueError
