"""Data sets in MDS shards, which Mosaic's Streaming writes."""
from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Unpack

import numpy
from numpy.typing import NDArray

from fuel.datasets.columns.part_names import as_list
from fuel.datasets.options import DatasetOptions
from fuel.datasets.shards.base import ShardDataset
from fuel.datasets.shards.mds_index import (
    Columns, ShardFile, are_hashed, check_hashes, index_path, read_index)
from fuel.datasets.shards.mds_reader import ColumnReader, sample_ends
from fuel.datasets.shards.mds_values import type_of_column
from fuel.datasets.shards.table import RecordTable, Scanned, record_table
from fuel.datasets.source_dataset import as_budget
from fuel.exceptions import DamagedFileError
from fuel.remote.urls import StorageOptions
from fuel.storage import Reader
from fuel.storage.decoded import DECOMPRESS, DecodedFile, decoded_files
from fuel.storage.file_bytes import FileBytes, join_files, starts_of
from fuel.utils import do_not_pickle_attributes

__all__ = ['MDSDataset']

SAMPLE = 'sample'


@do_not_pickle_attributes('readers', 'table')
class MDSDataset(ShardDataset):
    """A data set in shards of the format MDS, which Mosaic's Streaming writes.

    The sources are the columns. A value is read where it lies in its shard; a
    compressed shard is decoded as a whole, and cached. Numbers and arrays of a
    fixed shape come as arrays, text as `str`, files of images and audio as
    bytes, images of Pillow as arrays of shape ``(channel, height, width)``,
    and other values as Python objects.

    Parameters
    ----------
    path : str, path-like or list of them
        The folder of the shards, the file ``index.json`` in it, or a URL of
        one of them; of several, the samples follow each other.
    columns : dict or list of str, optional
        A dict maps each source to a column; a list names the columns that
        become sources. Defaults to all columns.
    split : str, optional
        The folder in `path` that has the index, such as ``'train'``.
    cache_bytes : int, optional
        The largest number of bytes of decoded shards. Defaults to a budget
        that all files share, ``config.chunk_cache_bytes``.
    hashes : bool, optional
        Whether to check the hashes that the index states. Defaults to True.
        See the notes.
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
    ValueError
        If the index is of another format, or names a compression or an
        encoding that is not read, such as pickles (``pkl``). While reading: if
        a value is damaged; these samples may be skipped.
    DamagedFileError
        If a shard does not have the size, the number of samples, or a hash
        that the index states, or if samples do not lie in it.
    ImportError
        If shards are compressed with zstd, and the package for it is missing.

    Notes
    -----
    Compressions are zstd, gz and bz2. Hashes are those of ``hashlib``, and
    with the package xxhash those called ``xxh``; others are not checked. A
    compressed shard is checked when it is decoded for the first time. For
    other shards of local files, all bytes are read when the data set is made;
    this is done once for the present state of the files. Uncompressed remote
    shards are not hashed, since not all of their bytes may be needed.

    Examples
    --------
    >>> import json, os, struct, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> shard = struct.pack('<IIII', 2, 16, 24, 32) + struct.pack('<qq', 5, 7)
    >>> with open(os.path.join(folder.name, 'shard.00000.mds'), 'wb') as file:
    ...     _ = file.write(shard)
    >>> facts = {'format': 'mds', 'version': 2, 'samples': 2,
    ...          'column_names': ['y'], 'column_encodings': ['int'],
    ...          'column_sizes': [8], 'compression': None, 'zip_data': None,
    ...          'raw_data': {'basename': 'shard.00000.mds', 'bytes': 32,
    ...                       'hashes': {}}}
    >>> with open(os.path.join(folder.name, 'index.json'), 'w') as file:
    ...     json.dump({'version': 2, 'shards': [facts]}, file)
    >>> MDSDataset(folder.name).get_data(None, [1, 0])
    (array([7, 5]),)
    >>> folder.cleanup()
    """

    kind = 'MDS'
    noun = SAMPLE
    unsaved_arguments = ('cache_bytes', 'hashes')

    def __init__(self, path: Any,
                 columns: Mapping[str, str] | Sequence[str] | None = None,
                 split: str | None = None,
                 cache_bytes: int | None = None,
                 hashes: bool = True,
                 which_sets: Sequence[str] | None = None,
                 splits: Mapping[str, Any] | None = None,
                 storage_options: StorageOptions | None = None,
                 **kwargs: Unpack[DatasetOptions]) -> None:
        self.split = split
        self.cache_bytes = as_budget(cache_bytes)
        self.hashes = hashes
        super().__init__(path, columns, 'error', which_sets, splits,
                         storage_options, **kwargs)

    def _own_arguments(self) -> dict[str, Any]:
        return {'split': self.split, 'cache_bytes': self.cache_bytes,
                'hashes': None if self.hashes else False}

    def kept_checksums(self) -> Sequence[str]:
        """Return a checksum of the sizes of the samples, and what the index
        states about the bytes of the shards."""
        found = super().kept_checksums()
        return found and [*found, *[
            f'{one.nbytes} {one.content_nbytes} '
            f'{sorted(one.content_hashes.items())}' for one in self._facts]]

    def _find_shards(self) -> Sequence[str]:
        self._facts: list[ShardFile] = []
        columns: Columns | None = None
        for path in as_list(self.path):
            index = index_path(path, self.split)
            shards, found = read_index(index)
            if columns is not None and found not in (None, columns):
                raise ValueError(f'{index} has other columns than '
                                 f'{as_list(self.path)[0]}: {found}, and '
                                 f'{columns}')
            columns = columns or found
            self._facts += shards
        if columns is None or not any(one.samples for one in self._facts):
            raise ValueError(f'{as_list(self.path)[0]}: there is no sample')
        self._columns = columns
        return [one.path for one in self._facts]

    def _open_shards(self, files: list[FileBytes]) -> list[FileBytes]:
        facts, columns, checks = self._facts, self._columns, self.hashes
        for file, one in zip(files, facts, strict=True):
            if file.size != one.nbytes:
                raise DamagedFileError(
                    f'{file.path} has {file.size} bytes, but the index states '
                    f'{one.nbytes}: it was cut off, or is that of another '
                    f'index; restore it from its origin')
        numbers = [number for number, one in enumerate(facts)
                   if one.compression]
        checked: set[int] = set()

        def decode(place: int) -> NDArray[numpy.uint8]:
            number = numbers[place]
            content = _decoded(files[number], facts[number], columns,
                               checks and number not in checked)
            checked.add(number)
            return content

        packed = decoded_files(
            [files[number] for number in numbers],
            [facts[number].content_nbytes for number in numbers],
            decode, self.cache_bytes) if numbers else []
        opened: list[Any] = list(files)
        for number, file in zip(numbers, packed, strict=True):
            opened[number] = file
        return opened

    def _find_records(self, files: Sequence[FileBytes]) -> RecordTable:
        facts = {id(file): one for file, one in zip(
            files, self._facts, strict=True)}
        columns, checks = self._columns, self.hashes and are_hashed(
            self._facts)

        def scan(file: FileBytes) -> Scanned:
            one = facts[id(file)]
            if isinstance(file, DecodedFile):
                # The places of samples are known when it is decoded.
                return Scanned(one.samples, {SAMPLE: (
                    numpy.zeros(one.samples, numpy.int64),
                    numpy.zeros(one.samples, numpy.int64))})
            if checks and not file.is_remote:
                _check(file.read(0, file.size), one.hashes, file.path)
            ends = sample_ends(file.read, file.size, one.samples, columns,
                               file.path)
            return Scanned(one.samples, {
                SAMPLE: (ends[:-1], numpy.diff(ends))})

        known = hashlib.sha256(repr((
            self._columns, self._facts)).encode()).hexdigest()
        return record_table(files, f'MDS {checks} {known}', scan)

    def _make_readers(self, table: RecordTable, files: Sequence[FileBytes],
                      where: Callable[[int], str]) -> dict[str, Reader]:
        file, columns = join_files(files), self._columns
        spans = table.in_joined(SAMPLE, starts_of(file))
        readers: dict[str, Reader] = {}
        for source, name in self._columns_of(table, columns.names).items():
            number = columns.names.index(name)
            try:
                field = type_of_column(columns.encodings[number],
                                       columns.sizes[number])
            except ValueError as error:
                raise ValueError(
                    f'{self.shards[0]}, column {name!r}: {error}; columns=... '
                    f'names the columns to read') from error
            readers[source] = ColumnReader(
                file, source, spans, field, table.bounds, where, columns,
                number)
        return readers


def _decoded(file: FileBytes, one: ShardFile, columns: Columns,
             checks: bool) -> NDArray[numpy.uint8]:
    """Return the content of a compressed shard."""
    stored = file.read(0, file.size)
    file.check()
    if checks:
        _check(stored, one.hashes, file.path)
    try:
        content = numpy.frombuffer(DECOMPRESS[one.compression](
            stored, one.content_nbytes), numpy.uint8)
    except (ValueError, EOFError) as error:
        raise DamagedFileError(
            f'{file.path} cannot be decoded: {error}; restore it from its '
            f'origin') from error
    if len(content) != one.content_nbytes:
        raise DamagedFileError(
            f'{file.path}: its content does not have the '
            f'{one.content_nbytes} bytes that the index states')
    if checks:
        _check(content, one.content_hashes, f'{file.path}, decoded')
    sample_ends(lambda start, size: content[start:start + size].tobytes(),
                len(content), one.samples, columns, file.path)
    return content


def _check(content: Any, hashes: Mapping[str, str], where: str) -> None:
    """Raise DamagedFileError if bytes have other hashes than the index
    states."""
    try:
        check_hashes(content, hashes, where)
    except ValueError as error:
        raise DamagedFileError(
            f'{error}: restore the file from its origin') from error
