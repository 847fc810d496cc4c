"""The base of data sets whose records lie in shards."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Never, Unpack

import numpy
from numpy.typing import NDArray

from fuel.datasets.columns.base import written_call
from fuel.datasets.columns.part_names import (
    as_list, fixed_files, shown_paths, written_files)
from fuel.datasets.decoders import decoding_texts
from fuel.datasets.file_rows import FileRowsDataset
from fuel.datasets.options import DatasetOptions
from fuel.datasets.shards.table import RecordTable, TextReader
from fuel.datasets.source_dataset import by_source
from fuel.datasets.text_files import check_is_file
from fuel.remote.urls import StorageOptions
from fuel.storage import Reader
from fuel.storage.file_bytes import (
    FileBytes, files_of, join_files, raw_files_at, starts_of)
from fuel.storage.spans import FieldType, FieldReader
from fuel.suggestions import did_you_mean
from fuel.utils.arguments import try_call

IndexArray = NDArray[numpy.intp]
#: Name of the source with the keys of records.
KEY = 'key'


def where_in(table: RecordTable, paths: Sequence[str], noun: str,
             record: int) -> str:
    """Return file and key, or number, of a record for errors."""
    number = table.file_of(record)
    name = (repr(table.keys[record]) if table.keys is not None
            else record - int(table.bounds[number]))
    return f'{paths[number]}, {noun} {name}'


def refuse_absent(where: Callable[[int], str], table: RecordTable,
                  field: str, record: int) -> Never:
    """Raise ValueError about a record without a field."""
    if table.is_scattered(record):
        raise ValueError(
            f'{where(record)}: it has no field {field!r} where its members '
            f'begin, and others with this key lie elsewhere in the file: '
            f'write the archive again, with the members of a sample one after '
            f'the other, as tar --sort=name does for files in a folder')
    raise ValueError(
        f'{where(record)}: it has no field {field!r}, which others have: pass '
        f"missing='none' to have None in its place, or leave the field out "
        f'with columns=...')


class ShardDataset(FileRowsDataset):
    """Base of the data sets whose records lie in shards.

    Subclasses implement `_find_records` and `_type_of_field`.

    Parameters
    ----------
    path : str, path-like or list of them
        A file, its URL, a list of files, or a pattern such as
        ``'data/*.tar'``.
    columns : dict or list of str, optional
        A dict maps each source to a field; a list names the fields that become
        sources. Defaults to all fields, sorted by name, and the key.
    missing : {'error', 'none'}, optional
        Whether a record without a field is an error (the default), or has None
        in its place.
    which_sets, splits
        As for :class:`~fuel.datasets.npy.NPYDataset`.
    storage_options : dict, optional
        For a URL, as for :class:`~fuel.datasets.hdf5.H5PYDataset`.
    **kwargs
        `sources` and `axis_labels`, as for :class:`Dataset`.
    """

    #: The kind of the files, for errors.
    kind: ClassVar[str]
    #: Word for a record, for errors.
    noun: ClassVar[str] = 'record'
    path: str | list[str]
    #: The files that have the records.
    shards: Sequence[str]
    #: The places of the fields in the files.
    table: RecordTable
    # The files for the text of the call; None in older pickles.
    _written: str | list[str] | None = None

    def __init__(self, path: Any,
                 columns: Mapping[str, str] | Sequence[str] | None = None,
                 missing: str = 'error',
                 which_sets: Sequence[str] | None = None,
                 splits: Mapping[str, Any] | None = None,
                 storage_options: StorageOptions | None = None,
                 **kwargs: Unpack[DatasetOptions]) -> None:
        if missing not in ('error', 'none'):
            raise ValueError(
                f"missing must be 'error' or 'none', got {missing!r}")
        self.path = fixed_files(type(self).__name__, path, storage_options)
        self._written = written_files(path, storage_options)
        self.missing = missing
        self._splits = splits
        self.columns = columns if columns is None else by_source(columns)
        self._load_for(kwargs.get('sources'))
        super().__init__(which_sets, splits, tuple(self.readers), **kwargs)

    def load(self) -> None:
        """Open the files, and find their records."""
        self.shards = self._find_shards()
        for path in self.shards:
            check_is_file(path, self.kind)
        files = self._open_shards(raw_files_at(self.shards))
        table = self._find_records(files)
        where = partial(where_in, table, self.shards, self.noun)
        readers = self._make_readers(table, files, where)
        for file in files:
            file.check()
        self.readers, self.table = readers, table
        self._check_absent(vars(self).get('_sources') or self._asked)

    def _make_readers(self, table: RecordTable, files: Sequence[FileBytes],
                      where: Callable[[int], str]) -> dict[str, Reader]:
        """Return the reader of each source.

        `where`: returns a text that names a record, for errors.
        """
        file = join_files(files)
        refuse = partial(refuse_absent, where, table) if (
            self.missing == 'error') else None
        readers: dict[str, Reader] = {}
        known = [*table.fields]
        if KEY not in known and table.keys is not None:
            known.append(KEY)
        for source, field in self._columns_of(table, known).items():
            if field == KEY and field not in table.fields:
                assert table.keys is not None
                readers[source] = TextReader(
                    file.path, KEY, table.keys, files_of(file), table.bounds)
            else:
                readers[source] = FieldReader(
                    file, source, table.in_joined(field, starts_of(file)),
                    self._type_of_field(source, field, table, files),
                    table.bounds, where, refuse and partial(refuse, field))
        return readers

    def _find_shards(self) -> Sequence[str]:
        """Return the paths of the files that have the records."""
        return as_list(self.path)

    def _open_shards(self, files: list[FileBytes]) -> list[FileBytes]:
        """Return the files in which the records lie."""
        return files

    def _find_records(self, files: Sequence[FileBytes]) -> RecordTable:
        """Return the places of the records in the files."""
        raise NotImplementedError

    def _type_of_field(self, source: str, field: str, table: RecordTable,
                       files: Sequence[FileBytes]) -> FieldType:
        """Return what the bytes of the field of a source are."""
        raise NotImplementedError

    def _columns_of(self, table: RecordTable,
                    known: Sequence[str]) -> dict[str, str]:
        """Return a dict from the sources to the fields that they read.

        `known`: the names of all fields.
        """
        if not len(table):
            raise ValueError(
                f'{", ".join(shown_paths(as_list(self.path)))}: there is no '
                f'{self.noun}')
        chosen = (dict(zip(known, known, strict=True))
                  if self.columns is None else dict(self.columns))
        for source, field in chosen.items():
            if field not in known:
                raise ValueError(
                    f'columns: source {source!r} reads {field!r}, but there '
                    f'is no such field: '
                    f'{did_you_mean(field, known, "{} ")}the fields are '
                    f'{known}')
        return chosen

    def _check_absent(self, sources: Sequence[str] | None) -> None:
        """Raise ValueError if a record lacks the field of a source."""
        for source, reader in self.readers.items():
            if isinstance(reader, FieldReader) and (
                    sources is None or source in sources):
                reader.check_absent()

    def _use_sources(self) -> None:
        super()._use_sources()
        self._check_absent(self.sources)

    def name_reader(self) -> Reader | None:
        """Return a reader of the keys of the records; None without keys.

        A hook for ``fuel order``, which names rows by keys.
        """
        reader, keys = next(iter(self.readers.values())), self.table.keys
        return keys if keys is None else TextReader(
            reader.path, KEY, keys, reader.files, self.table.bounds)

    def kept_checksums(self) -> Sequence[str]:
        """Return a checksum of the keys of the records, of the sizes of their
        fields and, if known, of their contents; none before the shards are
        opened."""
        table: RecordTable | None = vars(self).get('_table')
        return () if table is None else [table.checksum]

    def details(self) -> Sequence[str]:
        """Return the files, the splits, and the stages that decode fields."""
        return [*super().details(),
                *decoding_texts(self.readers, self.sources)]

    def _own_arguments(self) -> dict[str, Any]:
        """Return the arguments of this class alone; None for a default."""
        return {'missing': self.missing if self.missing != 'error' else None}

    def __repr__(self) -> str:
        """Return the call that makes the data set."""
        columns = dict(zip(self.readers, self.readers, strict=True)) if (
            self.columns is None) else self.columns
        shown: Any = [*columns] if all(
            source == field for source, field in columns.items()) else columns
        options = try_call(None, lambda: self.storage_options)
        files = self._written or written_files(self.path, None)
        return written_call(
            type(self).__name__, [repr(files), repr(shown)],
            {**self._own_arguments(),
             'which_sets': self.which_sets, 'splits': self._splits,
             'storage_options': options or None,
             'sources': vars(self).get('_sources')})
