"""Readers of fields of records that lie at any places in files."""
from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple, Never

import numpy
from numpy.typing import NDArray

from fuel.exceptions import DamagedFileError
from fuel.kernels.spans import read_spans
from fuel.storage.file_bytes import (
    Ends, FileBytes, RawFile, files_of, is_local, is_remote, starts_of)
from fuel.storage.paging import paging_of
from fuel.storage.reader import (
    Reader, no_ranges, part_numbers, request_missing)
from fuel.utils.io_counts import io_counts

IndexArray = NDArray[numpy.intp]
#: The start of a field that a record does not have.
ABSENT = -1
OBJECT = numpy.dtype(object)


class FieldType(NamedTuple):
    """The type of the values of a field, and how bytes become values.

    `dtype`: type of a value; object for bytes, text and lists, and for arrays
        of different shapes.
    `shape`: shape of a value.
    `decode`: takes bytes and returns the value; it raises ValueError for
        bytes that are not such a value. None if the bytes are the value:
        those of `dtype`, or any bytes.
    `stage`: name of the stage that decodes the values, such as
        ``ImagesFromBytes``; '' if there is none.
    `elements`: type of the elements of arrays of different shapes; None for
        other values.
    """

    dtype: numpy.dtype[Any] = OBJECT
    shape: tuple[int, ...] = ()
    decode: Callable[[bytes], Any] | None = None
    stage: str = ''
    elements: numpy.dtype[Any] | None = None

    def value(self, content: bytes) -> Any:
        """Return the value of bytes."""
        if self.decode is not None:
            return self.decode(content)
        return content if self.dtype.hasobject else numpy.frombuffer(
            content, self.dtype).reshape(self.shape)

    def as_object(self) -> FieldType:
        """Return the type of the same values as objects, for a field that
        some records lack: there, the value is None."""
        return self if self.dtype.hasobject else FieldType(decode=self.value)


class FieldReader(Reader):
    """Reader of a field of records, whose bytes may lie at any places.

    `file`: the file, or several files as one.
    `spans`: the start of the field in each record, and the number of its
        bytes; the start is `ABSENT` in a record without the field.
    `bounds`: the first record of each file, and the number of records.
    `where`: takes the number of a record and returns a text that names it, for
        errors.
    `refuse_absent`: takes the number of a record without the field, and raises
        an error; None if the value of such a record is None.
    """

    def __init__(self, file: FileBytes, name: str, spans: tuple[Ends, Ends],
                 field: FieldType, bounds: IndexArray,
                 where: Callable[[int], str],
                 refuse_absent: Callable[[int], Never] | None = None,
                 ) -> None:
        starts, sizes = spans
        here = starts >= 0
        if refuse_absent is None and not here.all():
            field = field.as_object()
        super().__init__(file.path, name, (len(starts), *field.shape),
                         field.dtype)
        self.files = files_of(file)
        self.field = field
        self.element_type = field.elements
        self.stage = field.stage
        self.part_bounds = bounds
        self._file = file
        self._remote = file if is_remote(file) else None
        self._starts, self._sizes = starts, sizes
        self.where = where
        self._refuse_absent = refuse_absent
        self._origins = starts_of(file)
        # Files that are decoded as a whole have no descriptor.
        self._descriptors = numpy.array([
            one.state[0] for one in self.files if isinstance(one, RawFile)])
        self._is_plain = len(self._descriptors) == len(self.files)
        self._paging = paging_of(file) if self._remote is not None or (
            is_local(file) and self._is_plain) else None
        self._extent = (int(starts[here].min()),
                        int((starts + sizes)[here].max()),
                        int(sizes[here].sum())) if here.any() else None

    def check_absent(self) -> None:
        """Refuse the first record without the field, unless its value is
        None."""
        is_absent = self._starts < 0
        if self._refuse_absent is not None and is_absent.any():
            self._refuse_absent(int(is_absent.argmax()))

    def prefetch_budget(self, rows: slice | IndexArray) -> int | None:
        """See :meth:`Reader.prefetch_budget`."""
        if self._extent is None or self._paging is None:
            return None
        return self._paging.begin(*self._extent)

    def prefetch(self, rows: IndexArray, budget: int,
                 ahead: Any = None) -> int | None:
        """See :meth:`Reader.prefetch`."""
        starts, sizes = self._spans(rows)
        nbytes = int(sizes.sum())
        if nbytes > budget:
            return None
        if self._paging is not None:
            self._paging.prefetch(starts, sizes)
        return nbytes

    def byte_ranges(self, rows: IndexArray) -> tuple[Ends, Ends]:
        """See :meth:`Reader.byte_ranges`."""
        starts, sizes = self._spans(rows)
        if self._paging is None or not len(starts):
            return no_ranges()
        return self._paging.widen(starts, sizes)

    def fetch_budget(self, rows: slice | IndexArray) -> int | None:
        """See :meth:`Reader.fetch_budget`."""
        self.prefetch_budget(rows)
        if self._remote is None or self._paging is None or (
                not self._paging.fetches_first):
            return None
        return self._remote.prefetch_budget()

    def fetch(self, rows: IndexArray, budget: int) -> int | None:
        """See :meth:`Reader.fetch`."""
        assert self._remote is not None
        return request_missing(self._remote, self.byte_ranges(rows), budget)

    def _spans(self, rows: IndexArray) -> tuple[Ends, Ends]:
        """Return the spans of the rows that have the field."""
        starts, sizes = self._starts[rows], self._sizes[rows]
        here = starts >= 0
        return (starts, sizes) if here.all() else (starts[here], sizes[here])

    def _read_list(self, rows: IndexArray) -> NDArray[Any]:
        self._check_list(rows)
        return self._values(rows, self._contents(rows))

    def _values(self, rows: IndexArray,
                contents: list[bytes | None]) -> NDArray[Any]:
        """Return the values of rows from their bytes."""
        if self.field.decode is None and self.dtype.hasobject:
            return numpy.array(contents, object)
        batch = numpy.empty((len(rows), *self.shape[1:]), self.dtype)
        value = self.field.value
        for place, content in enumerate(contents):
            try:
                batch[place] = None if content is None else value(content)
            # Text may be nested too deeply, and numbers may be too large.
            except (ValueError, OverflowError, RecursionError) as error:
                raise ValueError(
                    f'{self._place_of(int(rows[place]))}: {error}'
                ) from error
        return batch

    def _contents(self, rows: IndexArray) -> list[bytes | None]:
        """Return the bytes of rows; None for a row without the field.

        Raises: DamagedFileError if a file was changed or cut.
        """
        starts, sizes = self._starts[rows], self._sizes[rows]
        here = starts >= 0
        if self._refuse_absent is not None and not here.all():
            self._refuse_absent(int(rows[here.argmin()]))
        numbers = part_numbers(self._origins, starts)
        if not here.all():
            numbers[~here], sizes = 0, numpy.where(here, sizes, -1)
        with self._fetched(starts[here], sizes[here]):
            contents = self._read_spans(numbers, starts, sizes)
        self._check_files(numbers[here])
        self._refuse_lost(rows, contents, sizes)
        return contents

    def _fetched(self, starts: Ends, sizes: Ends,
                 ) -> contextlib.AbstractContextManager[None]:
        """Return a context in which spans are fetched, if they must be."""
        if self._paging is None or not self._paging.fetches_first:
            return contextlib.nullcontext()
        return self._paging.fetched(starts, sizes)

    def _read_spans(self, numbers: IndexArray, starts: Ends,
                    sizes: Ends) -> list[bytes | None]:
        """Return the bytes of spans; None for a negative size, and for a span
        that cannot be read in full.

        `numbers`: the number of the file of each span.
        """
        if self._is_plain:
            io_counts.count(bytes_read=int(sizes[sizes > 0].sum()))
            return read_spans(self._descriptors[numbers],
                              starts - self._origins[numbers], sizes)
        return [None if size < 0 else self._read_span(start, size)
                for start, size in zip(
                    starts.tolist(), sizes.tolist(), strict=True)]

    def _read_span(self, start: int, size: int) -> bytes | None:
        content = self._file.read(start, size)
        return content if len(content) == size else None

    def _check_files(self, numbers: IndexArray) -> None:
        """Raise DamagedFileError if one of some files was changed."""
        for number in {*numbers.tolist()}:
            self.files[number].check()

    def _refuse_lost(self, rows: IndexArray, contents: list[bytes | None],
                     sizes: Ends) -> None:
        """Raise DamagedFileError if a span of rows was not read in full."""
        if contents.count(None) > (sizes < 0).sum():
            lost = next(place for place, content in enumerate(contents)
                        if content is None and sizes[place] >= 0)
            raise self._cut_off(int(rows[lost]), int(sizes[lost]))

    def _cut_off(self, row: int, size: int) -> DamagedFileError:
        return DamagedFileError(
            f'{self._place_of(row)}: {size} bytes cannot be read: the disk or '
            f'the file is damaged')

    def _place_of(self, row: int) -> str:
        return f'{self.where(row)}, source {self.name!r}'
