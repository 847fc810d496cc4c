"""Data sets in MDS shards, which Mosaic's Streaming writes."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Unpack

import numpy
from numpy.typing import NDArray

from fuel.datasets.columns.part_names import as_list
from fuel.datasets.options import DatasetOptions
from fuel.datasets.shards.base import ShardDataset
from fuel.datasets.shards.mds_index import (
    Columns, ShardFile, index_path, read_index)
from fuel.datasets.shards.mds_values import type_of_column
from fuel.datasets.shards.table import RecordTable, Scanned, record_table
from fuel.datasets.source_dataset import as_budget
from fuel.exceptions import DamagedFileError
from fuel.kernels.spans import fill_rows
from fuel.remote.location import fixed_path
from fuel.remote.urls import StorageOptions
from fuel.storage import Reader
from fuel.storage.decoded import DecodedFile, decoded_files
from fuel.storage.file_bytes import Ends, FileBytes, join_files, starts_of
from fuel.storage.reader import StoredPieces, part_numbers
from fuel.storage.spans import FieldReader, FieldType
from fuel.utils import do_not_pickle_attributes
from fuel.utils.background import Background
from fuel.utils.io_counts import io_counts

__all__ = ['MDSDataset']

IndexArray = NDArray[numpy.intp]
SAMPLE = 'sample'


class ColumnReader(FieldReader):
    """Reader of a column of samples.

    A sample has the sizes of the columns whose size varies, and then the
    values of all columns. In a compressed shard, the places of the samples are
    only known when it is decoded.

    `spans`: the spans of whole samples; in a compressed shard, the start of
        the file.
    `columns`: all columns of the samples.
    `number`: number of the column.
    """

    def __init__(self, file: FileBytes, name: str, spans: tuple[Ends, Ends],
                 field: FieldType, bounds: IndexArray,
                 where: Callable[[int], str], columns: Columns,
                 number: int) -> None:
        super().__init__(file, name, spans, field, bounds, where)
        self._columns = columns
        before, after = columns.sizes[:number], columns.sizes[number + 1:]
        self._size = columns.sizes[number]
        self._before = columns.head + sum(size or 0 for size in before)
        self._after = sum(size or 0 for size in after)
        # Number of columns of varying size before and after this one.
        self._varying = before.count(None), after.count(None)
        self._packed = {
            number: one for number, one in enumerate(self.files)
            if isinstance(one, DecodedFile)}
        self._background = Background()

    def prefetch_budget(self, rows: slice | IndexArray) -> int | None:
        """See :meth:`Reader.prefetch_budget`."""
        if not self._packed:
            return super().prefetch_budget(rows)
        first = next(iter(self._packed.values()))
        return first.decoded.store.cache.budget // 2

    def prefetch(self, rows: IndexArray, budget: int,
                 ahead: Any = None) -> int | None:
        """Decode the shards of rows in the background; prefetch other rows."""
        if not self._packed:
            return super().prefetch(rows, budget)
        absent = [self._packed[number] for number in numpy.unique(
            part_numbers(self.part_bounds, rows)).tolist()
            if number in self._packed and not self._packed[number].is_decoded]
        nbytes = sum(one.size for one in absent)
        if nbytes > budget:
            return None
        self._background.add(*[one.decode for one in absent])
        return nbytes

    def pieces(self, rows: IndexArray) -> StoredPieces | None:
        """See :meth:`Reader.pieces`; a compressed shard is a piece."""
        if not self._packed:
            return super().pieces(rows)
        total = sum(one.size for one in self._packed.values())
        return StoredPieces(part_numbers(self.part_bounds, rows), True, True,
                            total / len(self))

    def _read_list(self, rows: IndexArray) -> NDArray[Any]:
        self._check_list(rows)
        numbers = part_numbers(self.part_bounds, rows)
        shards = numpy.unique(numbers).tolist() if self._packed else []
        if len(shards) < 2:
            return self._read_part(rows, numbers)
        # Each shard is decoded once, even if none of them can be cached.
        batch = numpy.empty((len(rows), *self.shape[1:]), self.dtype)
        for shard in shards:
            here = numpy.flatnonzero(numbers == shard)
            batch[here] = self._read_part(rows[here], numbers[here])
        return batch

    def _read_part(self, rows: IndexArray,
                   numbers: IndexArray) -> NDArray[Any]:
        """Return rows; those of compressed shards are all in one of them.

        `numbers`: the number of the shard of each row.
        """
        starts, sizes = self._starts[rows], self._sizes[rows]
        with self._fetched(starts, sizes):
            if len(rows) and int(numbers[0]) in self._packed:
                starts, sizes = self._decoded_spans(rows, int(numbers[0]))
            starts, sizes = self._find(rows, numbers, starts, sizes)
            if self._size is None:
                contents = self._read_spans(numbers, starts, sizes)
            else:
                found = self._fill(rows, numbers, starts, self._size)
        self._check_files(numbers)
        if self._size is None:
            self._refuse_lost(rows, contents, sizes)
            return self._values(rows, contents)
        return found.view(self.field.dtype).reshape(
            len(rows), *self.shape[1:]).astype(self.dtype, copy=False)

    def _decoded_spans(self, rows: IndexArray,
                       number: int) -> tuple[Ends, Ends]:
        """Return the spans of samples of a compressed shard."""
        first, stop = self.part_bounds[number:number + 2].tolist()
        ends = self._packed[number].memory[
            4:4 * (stop - first + 2)].view('<u4').astype(numpy.int64)
        starts = ends[rows - first]
        return (starts + self._origins[number],
                ends[rows - first + 1] - starts)

    def _find(self, rows: IndexArray, numbers: IndexArray, starts: Ends,
              sizes: Ends) -> tuple[Ends, Ends]:
        """Return the spans of the column, from those of the samples."""
        before, after = self._varying
        if self._size is not None:
            lengths = numpy.full_like(sizes, self._size)
            if not before:
                return starts + self._before, lengths
            if not after:
                return starts + sizes - self._after - lengths, lengths
        heads = self._fill(rows, numbers, starts, self._columns.head).view(
            '<u4').astype(numpy.int64)
        needed = heads.sum(1) + self._columns.fixed
        is_bad = needed != sizes
        if is_bad.any():
            place = int(is_bad.argmax())
            raise ValueError(
                f'{self._place_of(int(rows[place]))}: its sizes state '
                f'{needed[place]} bytes, and the sample has {sizes[place]}: '
                f'it is damaged')
        if self._size is None:
            lengths = heads[:, before].copy()
        return starts + self._before + heads[:, :before].sum(1), lengths

    def _fill(self, rows: IndexArray, numbers: IndexArray, starts: Ends,
              size: int) -> NDArray[numpy.uint8]:
        """Return the bytes of spans of equal size, a row for each."""
        found = numpy.empty((len(rows), size), numpy.uint8)
        bad = -1
        if self._is_plain:
            bad = fill_rows(self._descriptors[numbers],
                            starts - self._origins[numbers], found)
            io_counts.count(bytes_read=found.nbytes)
        else:
            for place, start in enumerate(starts.tolist()):
                if self._file.read_into(found[place].data, start) < size:
                    bad = place
        if bad >= 0:
            self._check_files(numbers)
            raise self._cut_off(int(rows[bad]), size)
        return found


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
            f'{one.stored.nbytes} {one.content.nbytes} '
            f'{sorted(one.content.hashes.items())}' for one in self._facts]]

    def _find_shards(self) -> Sequence[str]:
        facts: list[ShardFile] = []
        for path in map(fixed_path, as_list(self.path)):
            index = index_path(path, self.split)
            found = read_index(index)
            if facts and found and facts[0].columns != found[0].columns:
                raise ValueError(
                    f'{index} has other columns than {as_list(self.path)[0]}: '
                    f'{found[0].columns}, and {facts[0].columns}')
            facts += found
        if not any(one.samples for one in facts):
            raise ValueError(f'{as_list(self.path)[0]}: there is no sample')
        self._facts = facts
        return [one.path for one in facts]

    def _open_shards(self, files: list[FileBytes]) -> list[FileBytes]:
        facts, checks, checked = self._facts, self.hashes, set[int]()
        for file, one in zip(files, facts, strict=True):
            if file.size != one.stored.nbytes:
                raise DamagedFileError(
                    f'{file.path} has {file.size} bytes, but the index states '
                    f'{one.stored.nbytes}: it was cut off, or is that of '
                    f'another index; restore it from its origin')
        if not any(one.compression for one in facts):
            return files

        def decode(number: int) -> NDArray[numpy.uint8]:
            file = files[number]
            stored = file.read(0, file.size)
            file.check()
            content = facts[number].decoded(
                stored, checks and number not in checked)
            checked.add(number)
            return content

        contents = decoded_files(files, [one.content.nbytes for one in facts],
                                 decode, self.cache_bytes)
        return [content if one.compression else file for file, content, one
                in zip(files, contents, facts, strict=True)]

    def _find_records(self, files: Sequence[FileBytes]) -> RecordTable:
        facts = dict(zip(files, self._facts, strict=True))
        checks = self.hashes and any(one.is_hashed for one in self._facts)

        def scan(file: FileBytes) -> Scanned:
            one = facts[file]
            if one.compression:
                # The places of samples are known when it is decoded.
                starts = sizes = numpy.zeros(one.samples, numpy.int64)
            else:
                if checks and not file.is_remote:
                    one.stored.check_hashes(
                        file.read(0, file.size), file.path)
                ends = one.ends(file.read(0, one.head))
                starts, sizes = ends[:-1], numpy.diff(ends)
            return Scanned(one.samples, {SAMPLE: (starts, sizes)})

        return record_table(files, f'MDS {checks} {self._facts}', scan)

    def _make_readers(self, table: RecordTable, files: Sequence[FileBytes],
                      where: Callable[[int], str]) -> dict[str, Reader]:
        file, columns = join_files(files), self._facts[0].columns
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
