"""Data sets in TFRecord files, read without TensorFlow."""
from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Unpack

import numpy
from numpy.typing import NDArray

from fuel.datasets.decoders import stage_for
from fuel.datasets.options import DatasetOptions
from fuel.datasets.shards.base import ShardDataset
from fuel.datasets.shards.table import (
    HeaderBlocks, RecordTable, Scanned, record_table)
from fuel.datasets.source_dataset import texts_in
from fuel.datasets.sources import RowPlaces
from fuel.epochs.read_options import ReadOptions
from fuel.exceptions import DamagedFileError
from fuel.kernels.tfrecord import masked_crc, parse_example
from fuel.remote.urls import StorageOptions
from fuel.schemes.requests import RequestIterator
from fuel.storage import Reader
from fuel.storage.file_bytes import FileBytes, join_files, starts_of
from fuel.storage.reader import DerivedReader, as_objects
from fuel.storage.spans import FieldType, FieldReader
from fuel.suggestions import did_you_mean
from fuel.typing import EpochReader
from fuel.utils import do_not_pickle_attributes

__all__ = ['TFRecordDataset']

IndexArray = NDArray[numpy.intp]
#: The source of records that are not examples.
RECORD = 'record'
# A record is its length, the checksum of these 8 bytes, the data, and the
# checksum of the data.
_HEAD = struct.Struct('<QI')
_CRC = 4
# Number of first records that determine the types, and of those that are read
# together.
SAMPLE, GROUP = 1000, 50
GZIP = b'\x1f\x8b'
# The kinds of lists of values, and the types of their elements.
NAMES = 'no list', 'bytes_list', 'float_list', 'int64_list'
TYPES = [numpy.dtype(name) for name in ('O', 'O', 'float32', 'int64')]
NO_VALUES: tuple[int, Any] = 0, ()


def is_tfrecord(head: bytes) -> bool:
    """Return whether a file begins with the header of a record, given its
    first bytes."""
    return len(head) >= _HEAD.size and (
        masked_crc(head[:8]) == _HEAD.unpack_from(head)[1])


def scan(file: FileBytes) -> Scanned:
    """Find the records of a file by their lengths; the checksum of the data
    counts as a part of a record.

    The checksums of the records are those of their contents. Each lies before
    the next header, and is read with it.
    """
    starts, sizes, checksums = array('q'), array('q'), bytearray()
    page, first, at, blocks = b'', 0, 0, HeaderBlocks(file)
    while at < file.size:
        if at + _HEAD.size > first + len(page):
            first = max(0, at - _CRC)
            page = blocks.read(first)
        place = at - first
        head = page[place:place + _HEAD.size]
        checksums += page[place - _CRC:place]
        if not is_tfrecord(head):
            raise _bad_header(file, len(starts), at, head)
        size = _HEAD.unpack(head)[0] + _CRC
        at += _HEAD.size
        if size > file.size - at:
            raise DamagedFileError(
                f'{file.path}, record {len(starts)}: it needs {size} bytes, '
                f'and the file ends after {file.size - at}: it was cut off, '
                f'or is still written; restore it from its origin')
        starts.append(at)
        sizes.append(size)
        at += size
    checksums += file.read(max(0, file.size - _CRC), _CRC)
    return Scanned(len(starts), {RECORD: (
        numpy.frombuffer(starts, numpy.int64),
        numpy.frombuffer(sizes, numpy.int64))},
        content=masked_crc(checksums))


def _bad_header(file: FileBytes, record: int, at: int,
                head: bytes) -> Exception:
    """Return the error about a record that does not begin as it must."""
    if not at and (head.startswith(GZIP) or (
            head[:1] == b'x' and int.from_bytes(head[:2]) % 31 == 0)):
        return ValueError(
            f'{file.path} is compressed, and records are read where they lie '
            f'in the file: decompress it, such as with gzip -d')
    what = ('the file ends in its length' if len(head) < _HEAD.size
            else 'the checksum of its length is wrong')
    return DamagedFileError(
        f'{file.path}, record {record}: {what}, at byte {at}: the file is '
        f'damaged, or no TFRecord; restore it from its origin')


def payload(content: bytes) -> memoryview:
    """Return the data of a record without their checksum, which is
    checked."""
    data = memoryview(content)[:-_CRC]
    if masked_crc(data) != int.from_bytes(content[-_CRC:], 'little'):
        raise ValueError('the checksum of its data is wrong: the record is '
                         'damaged')
    return data


class ExampleParser:
    """Parses the examples in records.

    `known`: names of the features that a record may have; None for any.
    """

    def __init__(self, known: frozenset[str] | None = None) -> None:
        self.known = known

    def __call__(self, content: bytes) -> dict[str, tuple[int, Any]]:
        """Return the features of the example in a record."""
        return parse_example(payload(content), self.known)


class Feature(NamedTuple):
    """The kind of the values of a feature, and their number in a record.

    `kind`: number of their kind in `NAMES`; 0 if not known.
    `length`: the number of values of a record; None if it varies.
    `stage`: name of the stage that decodes the value; '' if there is none.
    """

    kind: int
    length: int | None
    stage: str = ''

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the values of a record; () for an array of objects."""
        return () if self.length in (None, 1) else (int(self.length or 0),)


class FeatureReader(DerivedReader):
    """Reader of a feature of examples.

    `records`: reads the examples.
    `parser`: parses them.
    `name`: name of the source.
    `feature`: name of the feature.
    """

    def __init__(self, records: FieldReader, parser: ExampleParser, name: str,
                 feature: str, known: Feature) -> None:
        dtype = TYPES[known.kind if known.length else 0]
        super().__init__([records], (len(records), *known.shape), dtype)
        self.name = name
        self.records = records
        self.parser = parser
        self.part_bounds = records.part_bounds
        self.stage = known.stage
        if known.length is None:
            self.element_type = TYPES[known.kind]
        self._feature, self._known = feature, known

    def needed(self, rows: IndexArray) -> Sequence[IndexArray]:
        """See :meth:`DerivedReader.needed`."""
        return [rows]

    def span(self, rows: slice | IndexArray) -> slice | IndexArray:
        """See :meth:`DerivedReader.span`."""
        return rows

    def _read_list(self, rows: IndexArray) -> NDArray[Any]:
        return self.values(rows, self.records.read(rows))

    def values(self, rows: IndexArray,
               examples: NDArray[Any]) -> NDArray[Any]:
        """Return the values of the feature in examples."""
        known = self._known
        batch = numpy.empty((len(rows), *self.shape[1:]), self.dtype)
        for place, example in enumerate(examples):
            kind, found = example.get(self._feature, NO_VALUES)
            if kind and known.kind and kind != known.kind:
                raise self._refused(rows[place], f'is a {NAMES[kind]}',
                                    f'a {NAMES[known.kind]}', 'leave it out '
                                    'with columns=...')
            if known.length is not None and len(found) != known.length:
                raise self._refused(
                    rows[place], f'has {len(found)} values',
                    f'{known.length}', f'pass ragged=({self._feature!r},) '
                    f'for arrays of any length')
            if known.length == 1:
                batch[place] = found[0]
            elif known.length is None and isinstance(found, numpy.ndarray):
                batch[place] = found
            else:
                # NumPy would strip zeros from the end of bytes.
                batch[place] = found if kind > 1 else as_objects(
                    found).astype(TYPES[known.kind])
        return batch

    def _refused(self, row: int, found: str, expected: str,
                 remedy: str) -> ValueError:
        return ValueError(
            f'{self.records.where(int(row))}: feature {self._feature!r} '
            f'{found}, but {expected} in the first {SAMPLE} records: {remedy}')


def features_of(records: FieldReader) -> dict[str, Feature]:
    """Return what the features of the first records are; {} if the records
    are not examples.

    `records`: reads the bytes of records.
    """
    examples = list(_first_examples(records))
    found = {}
    for name in sorted({name for _, example in examples for name in example}):
        listed = [(example.get(name, Feature(0, 0)), number)
                  for number, example in examples]
        kinds = {one.kind: number for one, number in reversed(listed)
                 if one.kind}
        if len(kinds) > 1:
            raise ValueError(
                f'feature {name!r} must be of one kind, but is a ' + ', and a '
                .join(f'{NAMES[kind]} in {records.where(number)}'
                      for kind, number in kinds.items()))
        lengths = {one.length for one, _ in listed}
        stages = {one.stage for one, _ in listed}
        found[name] = Feature(
            next(iter(kinds), 0),
            lengths.pop() if len(lengths) == 1 and 0 not in lengths else None,
            stages.pop() if len(stages) == 1 else '')
    return found


def _first_examples(records: FieldReader,
                    ) -> Iterator[tuple[int, dict[str, Feature]]]:
    """Yield the numbers of the first records that are examples, with their
    features."""
    count, parse = min(SAMPLE, len(records)), ExampleParser()
    for first in range(0, count, GROUP):
        numbers = range(first, min(first + GROUP, count))
        for number, content in zip(numbers, records.read(
                slice(numbers.start, numbers.stop)), strict=True):
            try:
                example = parse(content)
            except ValueError:
                # The error is raised when a stage reads the record.
                continue
            yield number, {name: Feature(kind, len(values), stage_for(
                values[0]) if kind == 1 and len(values) == 1 else '')
                for name, (kind, values) in example.items()}


@do_not_pickle_attributes('readers', 'table')
class TFRecordDataset(ShardDataset):
    """A data set in TFRecord files, read without TensorFlow.

    Each record is an example. If records are ``tf.train.Example``, their
    features are the sources; otherwise the bytes of a record are the source
    ``'record'``. Only the records of a request are read.

    The first 1,000 records state the types of the features. A feature with one
    value in each of them is a number, or bytes; one with the same number of
    values in each is an array. A feature of varying length, or that some
    records lack, is an array of any length, in an array of objects. Elements
    have the types int64, float32, or object for bytes. A later record that
    differs is an error with its number. So is one with a feature that all of
    the first 1,000 lack, unless `columns` or `sources` choose the features.

    Parameters
    ----------
    path : str, path-like or list of them
        A file, its URL, a list of files, or a pattern such as
        ``'data/*.tfrecord'``. The files must not be compressed.
    columns : dict or list of str, optional
        A dict maps each source to a feature; a list names the features that
        become sources. Defaults to all features of the first 1,000 records.
    ragged : sequence of str, optional
        Features whose number of values varies in later records, although it
        does not in the first ones.
    which_sets, splits
        As for :class:`~fuel.datasets.npy.NPYDataset`.
    storage_options : dict, optional
        For URLs, as for :class:`~fuel.datasets.hdf5.H5PYDataset`.
    sources, axis_labels
        As for :class:`Dataset`.

    Attributes
    ----------
    num_examples : int
    storage_options : dict or None
        Options without credentials; options with credentials may be
        assigned. None for local files.
    readers : dict of str to Reader

    Raises
    ------
    FileNotFoundError
        If a file is missing.
    DamagedFileError
        If a file is cut off, or if the checksum of a length is wrong.
    ValueError
        If a file is compressed, if there is no such feature, or if a feature
        has several types. While reading: if the checksum of a record is
        wrong, or if a feature is not what the first records state, or all of
        them lack it; these records may be skipped.

    Notes
    -----
    Both checksums of a record are checked: that of the length when the files
    are opened, that of the data when the record is read. The places of the
    records are found once, by their lengths, and kept on disk for the present
    state of the files. A ``tf.train.SequenceExample`` comes as bytes.

    Examples
    --------
    >>> import os, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, 'numbers.tfrecord')
    >>> with open(path, 'wb') as file:  # a feature 'a' with 10 and 200
    ...     _ = file.write(bytes.fromhex(
    ...         '1000000000000000 95fbfe18'
    ...         '0a0e0a0c0a016112071a050a030ac801 0fc03f8e'))
    >>> dataset = TFRecordDataset(path)
    >>> dataset.sources
    ('a',)
    >>> dataset.get_data(None, [0])
    (array([[ 10, 200]]),)
    >>> folder.cleanup()
    """

    kind = 'TFRecord'

    def __init__(self, path: Any,
                 columns: Mapping[str, str] | Sequence[str] | None = None,
                 ragged: Sequence[str] | str = (),
                 which_sets: Sequence[str] | None = None,
                 splits: Mapping[str, Any] | None = None,
                 storage_options: StorageOptions | None = None,
                 **kwargs: Unpack[DatasetOptions]) -> None:
        self.ragged = texts_in('ragged', ragged, 'features')
        super().__init__(path, columns, 'error', which_sets, splits,
                         storage_options, **kwargs)

    def _own_arguments(self) -> dict[str, Any]:
        return {'ragged': self.ragged or None}

    def _find_records(self, files: Sequence[FileBytes]) -> RecordTable:
        return record_table(files, 'TFRecord', scan)

    def _make_readers(self, table: RecordTable, files: Sequence[FileBytes],
                      where: Callable[[int], str]) -> dict[str, Reader]:
        file = join_files(files)
        open_as = partial(
            FieldReader, file, RECORD,
            table.in_joined(RECORD, starts_of(file)), bounds=table.bounds,
            where=where)
        known = features_of(open_as(field=FieldType()))
        for name in self.ragged:
            if name not in known:
                raise ValueError(
                    f'ragged names {name!r}, but there is no such feature: '
                    f'{did_you_mean(name, known, "{} ")}the features are '
                    f'{[*known]}')
            known[name] = Feature(known[name].kind, None)
        if known:
            parser = ExampleParser(
                None if self._has_chosen() else frozenset(known))
            examples = open_as(field=FieldType(decode=parser))
            return {
                source: FeatureReader(
                    examples, parser, source, name, known[name])
                for source, name in self._columns_of(
                    table, [*known]).items()}
        records = open_as(field=FieldType(
            decode=lambda content: bytes(payload(content))))
        columns = self._columns_of(table, [RECORD])
        # A record whose checksum is wrong may be an example.
        records.read(0)
        return dict.fromkeys(columns, records)

    def _has_chosen(self) -> bool:
        """Return whether features were chosen, so that others are left
        out."""
        return self.columns is not None or self._asked is not None or (
            '_sources' in vars(self))

    def _use_sources(self) -> None:
        super()._use_sources()
        for reader in self.readers.values():
            if isinstance(reader, FeatureReader):
                reader.parser.known = None

    def make_reader(self, requests: RequestIterator | None,
                    options: ReadOptions, state: Any) -> EpochReader | None:
        """Return a reader of the rows of the files.

        This class overrides this method and `places_of_rows` together with
        `_read`, since they are not used for a subclass that overrides only
        `_read`.
        """
        return super().make_reader(requests, options, state)

    def places_of_rows(self, rows: IndexArray) -> RowPlaces:
        """Return the files of rows, and their numbers in them."""
        return super().places_of_rows(rows)

    def _read(self, rows: Any) -> tuple[Any, ...]:
        if isinstance(rows, int):
            return tuple([part[0] for part in self._read(
                slice(rows, rows + 1))])
        readers = [reader for reader in map(
            self.readers.__getitem__, self.sources) if isinstance(
                reader, FeatureReader)]
        if not readers:
            return super()._read(rows)
        if isinstance(rows, slice):
            rows = numpy.arange(*rows.indices(len(readers[0])))
        # Each record is parsed once for all sources.
        examples = readers[0].records.read(rows)
        return tuple([reader.values(rows, examples) for reader in readers])
