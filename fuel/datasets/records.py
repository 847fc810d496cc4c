"""Records of a text file: where they are, and data sets over them."""
from __future__ import annotations

import codecs
import csv
import itertools
import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import numpy
from numpy.typing import NDArray

from fuel.datasets.columns.part_names import (
    as_list, files_in_order, shown_paths)
from fuel.datasets.epoch_readers import VersionedData
from fuel.datasets.sources import RowPlaces, places_in_files
from fuel.datasets.rows import check_same_length
from fuel.datasets.source_dataset import SplitDataset, masks_of, with_masks
from fuel.datasets.text_files import COMPRESSIONS, check_is_file
from fuel.describe import SourceType, SourceTypes
from fuel.epochs.read_options import ReadOptions
from fuel.epochs.readers import PrefetchedExamples
from fuel.remote.location import WithStorageOptions
from fuel.remote.urls import file_name
from fuel.schemes.requests import IndexRequests, RequestIterator
from fuel.storage.file_bytes import (
    FileBytes, files_of, is_remote, join_files, raw_files_at, starts_of)
from fuel.typing import EpochReader
from fuel.utils.checks import refuse_no_dict
from fuel.utils.warn import warn_user

#: For each source, the places of its values in a record, and whether there may
#: be several values, which make an axis.
Fields: TypeAlias = Mapping[str, tuple[Sequence[Any], bool]]

# Records at most so many bytes apart are read with one call.
NEAR = 1 << 12
# Number of records that determine the types, and the header of a table.
SAMPLE = 1000
# Bytes of the records that are parsed at a time, unless one record is longer:
# parsed records take up to forty times as much memory.
GROUP = 1 << 18
TEXT = numpy.dtype(object)
# The largest limit that Python's parser accepts on all systems.
LONGEST = 2 ** 31 - 1
# Floating numbers hold all integers up to `EXACT`, and none above `LARGEST`.
EXACT, LARGEST = 1 << 53, 1 << 1023


def first_rounded(numbers: Iterable[int]) -> int | None:
    """Return the first integer that a floating number does not hold exactly;
    None if floating numbers hold all of the integers."""
    return next((number for number in numbers if abs(number) > EXACT and (
        abs(number) > LARGEST or int(float(number)) != number)), None)


class RecordIndex:
    """Index of the records of a text file, made in one pass.

    A record is a line, or several where a quoted cell holds line breaks;
    empty lines do not count. The index takes 16 bytes a record.

    The records of several files are numbered consecutively. The end of each
    file has a number too.

    `raw`: one file, or several joined into one.
    `quote`, `delimiter`: the two characters, if cells may be quoted.
    `blank`: the bytes that an empty line may consist of.
    `files`: the files in `raw`.
    `starts`: the starts of records, and the end of each file.
    `lines`: the number of each record's first line, from 1; 0 for an end.
    `firsts`: the number of each file's first record.
    `counts`: number of records of each file.
    """

    def __init__(self, raw: FileBytes, quote: str | None = None,
                 delimiter: str = ',', blank: bytes = b'\r\n') -> None:
        starts, lines = array('q'), array('q')
        self.files = files_of(raw)
        self._mark = quote, delimiter, blank
        firsts = []
        for file, address in zip(
                self.files, starts_of(raw).tolist(), strict=True):
            firsts.append(len(lines))
            self._find(file, address, starts, lines)
        self.starts = numpy.frombuffer(starts, numpy.int64)
        self.lines = numpy.frombuffer(lines, numpy.int64)
        self.firsts = numpy.array(firsts)
        self.counts = numpy.diff([*firsts, len(lines)]) - 1

    def _find(self, raw: FileBytes, address: int, starts: array[int],
              lines: array[int]) -> None:
        """Add the records of a file; its first byte is at `address`."""
        quote, delimiter, blank = self._mark
        position, number, is_open = 0, 0, False
        mark = quote.encode() if quote else None
        with raw.open() as file:
            # Some programs mark a file as UTF-8.
            mark_of_utf8 = codecs.BOM_UTF8
            if file.read(len(mark_of_utf8)) == mark_of_utf8:
                position = len(mark_of_utf8)
            file.seek(position)
            for line in file:
                number += 1
                if not is_open and line.strip(blank):
                    starts.append(address + position)
                    lines.append(number)
                if quote and mark and line.count(mark) % 2:
                    is_open = not is_open and _stays_open(
                        line, quote, delimiter)
                position += len(line)
        if is_open:
            raise ValueError(
                f'{raw.path}, line {lines[-1]}: a quoted cell begins here and '
                f'does not end; if the file does not quote, pass quote=None')
        starts.append(address + position)
        lines.append(0)

    def __len__(self) -> int:
        return int(self.counts.sum())

    def file_of(self, records: Any) -> Any:
        """Return, for each record, the number of its file."""
        return self.firsts.searchsorted(records, 'right') - 1

    def numbers_of(self, rows: Any, skipped: int) -> Any:
        """Return the record number of each row, counted over all files.

        `skipped`: number of records before the first row of each file.
        """
        bounds = numpy.cumsum(self.counts - skipped)
        # Each file adds its skipped records, and the end of the file before.
        return rows + skipped + (skipped + 1) * bounds.searchsorted(
            rows, 'right')


@contextmanager
def long_cells(length: int) -> Iterator[None]:
    """Let Python's csv parser accept cells of up to `length` characters.

    The parser's limit guards against a quotation mark that is never closed,
    which is an error without the limit too. All threads share the limit: if
    two threads change it at the same time, the greater value may remain.
    """
    limit = csv.field_size_limit()
    csv.field_size_limit(min(max(length, limit), LONGEST))
    try:
        yield
    finally:
        csv.field_size_limit(limit)


def _stays_open(line: bytes, quote: str, delimiter: str) -> bool:
    """Return whether a quoted cell begins in a line, and does not end there;
    the line has an odd number of quotes."""
    if not (quote.isascii() and delimiter.isascii()):
        return True
    try:
        with long_cells(len(line)):
            for _ in csv.reader([line.decode('latin-1')], delimiter=delimiter,
                                quotechar=quote, strict=True):
                pass
    except csv.Error as error:
        return 'unexpected end' in str(error)
    return False


class RecordFile:
    """The records of a text file, or of several.

    `file`: one file, or several joined into one; checked after each read.
    `name`: name of the files, for errors.
    `parse`: takes the bytes of some records and returns the records. If it
        raises a ValueError, it is called again for each record separately, and
        the error about the first bad record names the file and the line.
    """

    def __init__(self, file: FileBytes, index: RecordIndex,
                 parse: Callable[[Sequence[bytes]], list[Any]]) -> None:
        self.file = file
        self.files = index.files
        self.name = file.path if len(self.files) == 1 else ', '.join(
            shown_paths([one.path for one in self.files]))
        self.index = index
        self._parse = parse

    def where(self, record: int, known: int | None = None) -> str:
        """Return file and line of a record for errors; only the line if the
        record `known` is in the same file."""
        file, line = self.index.file_of(record), self.index.lines[record]
        if known is not None and self.index.file_of(known) == file:
            return f'line {line}'
        return f'{self.files[file].path}, line {line}'

    def line(self, record: int) -> bytes:
        """Return the bytes of a record."""
        start, stop = self.index.starts[record:record + 2].tolist()
        return self.file.read(start, stop - start)

    def records(self, records: NDArray[numpy.intp]) -> list[Any]:
        """Return some records, in the order of `records`."""
        unique, places = numpy.unique(records, return_inverse=True)
        try:
            found = self._read(unique)
        except ValueError:
            # If the file was changed, the change is the reason of the error.
            self.file.check()
            raise
        self.file.check()
        return [found[place] for place in places.tolist()]

    def groups(self, first: int, stop: int) -> Iterator[tuple[int, int]]:
        """Yield the start and end of groups of a file's records. A group has
        at most `GROUP` bytes, or is one record."""
        starts = self.index.starts
        while first < stop:
            last = int(starts.searchsorted(starts[first] + GROUP, 'right')) - 1
            last = min(max(last, first + 1), stop)
            yield first, last
            first = last

    def _read(self, unique: NDArray[numpy.intp]) -> list[Any]:
        """Return some records, in the order of the file."""
        found: list[Any] = []
        runs = list(self._runs(unique))
        starts = self.index.starts
        if is_remote(self.file):
            # Request all ranges of bytes before waiting for the first.
            self.file.request(
                starts[unique[[first for first, _ in runs]]],
                starts[unique[[last - 1 for _, last in runs]] + 1],
                is_urgent=True)
        begins, ends = starts[unique].tolist(), starts[unique + 1].tolist()
        contents: list[bytes] = []
        first_pending, nbytes = 0, 0
        for first, last in runs:
            start = begins[first]
            if contents and nbytes + ends[last - 1] - start > GROUP:
                found += self._parsed(unique[first_pending:first], contents)
                contents, first_pending, nbytes = [], first, 0
            content = self.file.read(start, ends[last - 1] - start)
            contents += [content[begin - start:end - start] for begin, end in
                         zip(begins[first:last], ends[first:last],
                             strict=True)]
            nbytes += len(content)
        return found + self._parsed(unique[first_pending:], contents)

    def _parsed(self, records: NDArray[numpy.intp],
                contents: list[bytes]) -> list[Any]:
        """Return some records, parsed from their bytes."""
        try:
            return self._parse(contents)
        except ValueError:
            found = []
            for record, content in zip(
                    records.tolist(), contents, strict=True):
                try:
                    found += self._parse([content])
                except ValueError as error:
                    raise ValueError(
                        f'{self.where(record)}: {error}') from error
            return found

    def _runs(self, records: NDArray[numpy.intp],
              ) -> Iterator[tuple[int, int]]:
        """Yield ranges of records that lie near each other in a file."""
        index = self.index
        are_far = (index.starts[records[1:]]
                   - index.starts[records[:-1] + 1]) > NEAR
        if len(self.files) > 1:
            are_far |= numpy.diff(index.file_of(records)) > 0
        borders = [0, *(numpy.flatnonzero(are_far) + 1).tolist(),
                   len(records)]
        yield from itertools.pairwise(borders)


class FirstRecords:
    """The first records of each file, parsed in groups, so that memory holds
    one group at a time.

    Records that cannot be parsed are left out: their errors are raised when a
    stage reads them.

    `count`: as an argument, the largest number of records to read from each
        file; as an attribute, the number of records to read from all files
        together.
    """

    def __init__(self, records: RecordFile, count: int) -> None:
        # Number of first records of each file, and the groups of the records.
        self._counts = numpy.minimum(records.index.counts, count)
        self._borders: dict[int, list[tuple[int, int]]] = {}
        self.count = int(self._counts.sum())
        if not self.count:
            raise ValueError(f'{records.file.path} is empty')
        self._records = records
        self._kept: tuple[list[int], list[Any]] | None = None

    def groups(self, skipped: int = 0,
               ) -> Iterator[tuple[list[int], list[Any]]]:
        """Yield groups of records: their numbers, and the records.

        `skipped`: number of records to leave out at the start of each file.

        Raises: ValueError if the first record is bad, or if more than half of
            the records are bad.
        """
        if skipped not in self._borders:
            firsts = self._records.index.firsts
            self._borders[skipped] = list(itertools.chain.from_iterable(map(
                self._records.groups, (firsts + skipped).tolist(),
                (firsts + self._counts).tolist())))
        borders = self._borders[skipped]
        if not skipped and len(borders) == 1:
            if self._kept is None:
                self._kept = self._group(*borders[0], [])
            borders = []
            yield self._kept
        bad: list[ValueError] = []
        for first, last in borders:
            yield self._group(first, last, bad)

    __iter__ = groups

    def _group(self, first: int, last: int, bad: list[ValueError],
               ) -> tuple[list[int], list[Any]]:
        """Return records, and add the errors of bad records to a list."""
        found = self._read(first, last, bad)
        if 2 * len(bad) > self.count:
            raise bad[0]
        return found

    @cached_property
    def first(self) -> Any:
        """The first record; its error is raised if it is bad."""
        return self._records.records(numpy.zeros(1, numpy.intp))[0]

    def records(self) -> Iterator[Any]:
        """Return an iterator over the records."""
        return itertools.chain.from_iterable(
            records for _, records in self)

    def _read(self, first: int, last: int, bad: list[ValueError],
              ) -> tuple[list[int], list[Any]]:
        numbers = numpy.arange(first, last)
        try:
            return numbers.tolist(), self._records.records(numbers)
        except ValueError as error:
            if last == 1:
                raise
            if last - first == 1:
                bad.append(error)
                return [], []
        parts = [self._read(number, number + 1, bad)
                 for number in numbers.tolist()]
        return ([number for numbers, _ in parts for number in numbers],
                [record for _, records in parts for record in records])


def types_of_fields(fields: Fields, dtypes: Mapping[str, numpy.dtype[Any]],
                    ) -> dict[str, SourceType]:
    """Return the types of sources whose fields have one value each."""
    return {source: SourceType(dtype, (len(fields[source][0]),) if (
        fields[source][1]) else ()) for source, dtype in dtypes.items()}


class RecordsDataset(SplitDataset, WithStorageOptions):
    """Base of the data sets over the records of text files.

    A source is made of one field of each record, or of several fields of one
    type. Subclasses set `path`, call `load`, then `_choose`, and implement
    their format in `_open`, `_type_of`, `_values`, `_filled`, `_array`,
    `_integers`, `_presence` and `_refuse`.

    `path`: path of a file, or a list of paths of several files.
    `kind`: the kind of the files, for errors.
    `header`: whether the first record of a file holds the names of columns.
    """

    records: RecordFile
    path: str | list[str]
    kind: ClassVar[str]
    header = False
    _fields: Fields
    # Sources by the names of their masks.
    _masks: Mapping[str, str] = {}
    # Types of the sources that are not masks, and whose types were found.
    _types: dict[str, SourceType]
    # Types that the user passed.
    _given: Mapping[str, Any] = {}
    unsaved_arguments: tuple[str, ...] = ('path', 'storage_options')

    def _choose(self, fields: Fields, masks: Sequence[str] | str,
                dtypes: Mapping[str, Any] | None,
                **given: Mapping[str, Any] | None) -> None:
        """Set the sources, and the types that the user passed.

        `given`: further arguments by name, each a dict from sources or None.
        """
        self._fields = fields
        self._masks = masks_of(masks, fields)
        self.provides_sources = with_masks(fields, self._masks)
        for name, argument in {'dtypes': dtypes, **given}.items():
            refuse_no_dict(name, argument, next(iter(fields)))
            for source in argument or ():
                if source not in fields:
                    raise ValueError(f'{name} names {source!r}, but the '
                                     f'sources are {tuple(fields)}')
        self._given = dict(dtypes or {})

    def load(self) -> None:
        """Open the files and find their records."""
        paths = self.path if isinstance(self.path, list) else [self.path]
        for path in paths:
            check_is_file(path, self.kind)
            if os.path.splitext(file_name(path))[1] in COMPRESSIONS:
                raise ValueError(
                    f'{path} is compressed, and {type(self).__name__} reads '
                    f'records where they lie in the file: decompress it')
        file = join_files(raw_files_at(paths))
        self.records = self._open(file)
        # Sources about which a warning was given.
        self._rounded: set[str] = set()
        file.check()

    def __setstate__(self, state: dict[str, Any]) -> None:
        if '_columns' in state and '_fields' not in state:
            # A pickle of a CSVDataset that had fewer attributes.
            fields = state['_columns']
            state = {**state, '_fields': fields,
                     '_types': types_of_fields(fields, state['dtypes'])}
        vars(self).update(state)

    def _open(self, file: FileBytes) -> RecordFile:
        """Return the records of an open file, or of several joined files."""
        raise NotImplementedError

    def _sample(self, count: int) -> FirstRecords:
        """Return the first records of each file."""
        return FirstRecords(self.records, count)

    def kept_arguments(self) -> Mapping[str, object]:
        """Return the arguments that a saved state must fit; if there are
        several files, also their names in order."""
        return {**super().kept_arguments(), **files_in_order(self.path)}

    def details(self) -> Sequence[str]:
        """Return the files and the splits."""
        return [*shown_paths(as_list(self.path)), *super().details()]

    def make_reader(self, requests: RequestIterator | None,
                    options: ReadOptions, state: Any) -> EpochReader | None:
        """Return a reader that refuses files which change during an epoch."""
        if requests is None:
            return None
        if requests.is_random_access and (
                requests.position - requests.num_skipped < requests.step):
            # Nothing was read.
            self.renew()
        reader = VersionedData(self, requests, lambda: self.records)
        if isinstance(requests, IndexRequests):
            return PrefetchedExamples(requests, reader)
        return reader

    def places_of_rows(self, rows: NDArray[numpy.intp]) -> RowPlaces:
        """Return the files of rows, and their numbers in them."""
        counts = self.records.index.counts - self.header
        return places_in_files(
            as_list(self.path), numpy.cumsum([0, *counts]), rows)

    def _open_anew(self) -> None:
        vars(self).pop('_records', None)

    def renew(self) -> None:
        """Open the files again if one was changed or replaced."""
        before = self.records
        if before.file.is_current():
            return
        try:
            self.load()
            for path, count, now in zip(
                    as_list(self.path), before.index.counts.tolist(),
                    self.records.index.counts.tolist(), strict=True):
                check_same_length(path, count, now)
            self._check_renewed()
        except BaseException:
            self.records = before
            raise

    def _check_renewed(self) -> None:
        """Raise StateMismatchError if the files have other columns."""

    def _read(self, rows: int | slice | NDArray[numpy.intp],
              ) -> tuple[Any, ...]:
        if isinstance(rows, int):
            return tuple([
                part[0] for part in self._read(slice(rows, rows + 1))])
        if isinstance(rows, slice):
            rows = numpy.arange(
                *rows.indices(self.num_stored), dtype=numpy.intp)
        numbers = self.records.index.numbers_of(rows, self.header) if (
            isinstance(self.path, list)) else rows + self.header
        found = self._find(numbers)
        return tuple([
            self._presence(self._masks[source], numbers, found)
            if source in self._masks
            else self._convert(source, numbers, found)
            for source in self.sources])

    def _find(self, numbers: NDArray[numpy.intp]) -> list[Any]:
        """Return the records with the given numbers."""
        return self.records.records(numbers)

    def known_types(self) -> SourceTypes:
        """Return the types of the sources that are known so far."""
        masks = types_of_fields(self._fields, dict.fromkeys(
            self._masks.values(), numpy.dtype(bool)))
        return {**self._types, **{
            mask: masks[source] for mask, source in self._masks.items()}}

    def _convert(self, source: str, numbers: NDArray[numpy.intp],
                 records: list[Any]) -> NDArray[Any]:
        """Return a source of records as a batch; `numbers` are their
        numbers."""
        known = self._type_of(source)
        values = self._values(source, numbers, records)
        if f'{source}_mask' in self._masks:
            values = self._filled(source, values, known)
        try:
            batch = self._array(source, values, known)
        except (ValueError, OverflowError):
            self._refuse(source, known, numbers, values, records)
            raise
        if known.dtype == float and source not in self._given:
            numbers = numpy.concatenate([*map(numpy.ravel, batch)]) if (
                batch.dtype.hasobject) else batch
            if (abs(numbers) >= EXACT).any():
                self._warn_of_rounding(source, self._integers(values))
        return batch

    def _warn_of_rounding(self, source: str, numbers: Iterable[int]) -> None:
        """Warn once if a source of float64, a type that the user did not pass,
        does not hold integers exactly, such as identifiers."""
        if source in self._rounded:
            return
        number = first_rounded(numbers)
        if number is not None:
            self._rounded.add(source)
            warn_user(
                f'{self.records.name}: source {source!r} is float64, since '
                f'values are missing, not whole or beyond int64, and does '
                f'not hold '
                f'{number!s:.25} exactly: pass masks=({source!r},) if '
                f'values are missing, or dtypes={{{source!r}: ...}}')

    def _type_of(self, source: str) -> SourceType:
        """Return the type of a source."""
        return self._types[source]

    def _values(self, source: str, numbers: Iterable[int],
                records: list[Any]) -> Sequence[Any]:
        """Return the values of a source in records with the given numbers."""
        raise NotImplementedError

    def _filled(self, source: str, values: Sequence[Any],
                known: SourceType) -> Sequence[Any]:
        """Return values in which missing values are replaced."""
        raise NotImplementedError

    def _array(self, source: str, values: Sequence[Any],
               known: SourceType) -> NDArray[Any]:
        """Return values as a batch.

        Raises: ValueError or OverflowError if a value is not of the type.
        """
        raise NotImplementedError

    def _integers(self, values: Sequence[Any]) -> Iterable[int]:
        """Return the integers among values that may be rounded."""
        raise NotImplementedError

    def _presence(self, source: str, numbers: Iterable[int],
                  records: list[Any]) -> NDArray[numpy.bool_]:
        """Return a mask that is False for the missing values of a source."""
        raise NotImplementedError

    def _refuse(self, source: str, known: SourceType,
                numbers: NDArray[numpy.intp], values: Sequence[Any],
                records: list[Any]) -> None:
        """Raise an error that names the first value of a wrong type."""
        raise NotImplementedError
