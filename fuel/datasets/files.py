"""Data sets of the files in a folder."""
from __future__ import annotations

import hashlib
import io
import os
import stat
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Unpack

import numpy
from numpy.typing import NDArray

from fuel.datasets.columns.base import written_call
from fuel.datasets.decoders import AUDIO, IMAGES, decoding_texts
from fuel.datasets.file_tables import find_tables, read_tables
from fuel.datasets.folder_index import FolderIndex, folder_index
from fuel.datasets.options import DatasetOptions
from fuel.datasets.records import RecordsDataset
from fuel.datasets.runs import find_sources, stored_sources
from fuel.datasets.shards.table import TextReader
from fuel.datasets.shards.tar import KINDS
from fuel.datasets.source_dataset import RowsDataset, texts_in
from fuel.datasets.sources import RowPlaces
from fuel.datasets.splits import SPLITS, branch, name_at
from fuel.exceptions import StateMismatchError
from fuel.remote.location import LocalPath, located
from fuel.remote.urls import is_url
from fuel.storage import Reader
from fuel.storage.file_bytes import Ends
from fuel.storage.mapped import ArrayReader
from fuel.storage.reader import as_objects, no_ranges
from fuel.utils import do_not_pickle_attributes
from fuel.utils.checks import one_of
from fuel.utils.io_counts import io_counts
from fuel.utils.other_libraries import checked_path
from fuel.utils.paths import refuse_special_file
from fuel.utils.threads import map_chunks

__all__ = ['FilesDataset']

IndexArray = NDArray[numpy.intp]
# The stage that decodes the files of each source, and their extensions.
STAGES = {'image': IMAGES, 'audio': AUDIO}
ENDINGS = {source: tuple([f'.{ending}' for ending, kind in KINDS.items()
                          if kind.stage == stage])
           for source, stage in STAGES.items()}
# Most files that are left out, and classes without files, that are shown.
SHOWN = 3
# A pipe is opened without waiting for another program that writes to it.
NOT_WAITING = getattr(os, 'O_NONBLOCK', 0)
# Fewer files are read by one thread.
FEW = 8


class FilesReader(Reader):
    """Reader of whole files, as bytes.

    `index`: the index of the folder.
    `rows`: for each row, the number of its file in the index.
    `may_be_empty`: whether a file without bytes is an example.
    """

    def __init__(self, name: str, index: FolderIndex, rows: IndexArray,
                 may_be_empty: bool) -> None:
        super().__init__(index.path, name, rows.shape, numpy.dtype(object))
        self.files = (index,)
        self.stage = STAGES.get(name, '')
        self._index, self.rows = index, rows
        #: When the epoch began, in nanoseconds.
        self.began = time.time_ns()
        self._may_be_empty = may_be_empty

    def byte_ranges(self, rows: IndexArray) -> tuple[Ends, Ends]:
        """Return no ranges, since all files are local."""
        return no_ranges()

    def _read_list(self, rows: IndexArray) -> NDArray[Any]:
        self._check_list(rows)
        files = self.rows[rows].tolist()
        found = map_chunks(lambda first, stop: list(map(
            self._read_file, files[first:stop])), len(files), FEW)
        contents = [content for part in found for content in part]
        io_counts.count(bytes_read=sum(map(len, contents)))
        return as_objects(contents)

    def _read_file(self, file: int) -> bytes:
        """Return the bytes of a file that is the same as when its folder was
        listed.

        Its errors concern one example, so that they may be skipped.
        """
        index = self._index
        path = os.path.join(index.path, index.name_of(file))
        try:
            with io.FileIO(path, opener=_open) as stream:
                before = os.fstat(stream.fileno())
                if not stat.S_ISREG(before.st_mode):
                    refuse_special_file(path)
                if before.st_ino != index.inodes[file] and (
                        not index.is_same(index.folder_of(file))):
                    raise OSError(
                        f'{path!r} was replaced since its folder was listed: '
                        f'begin another epoch, which reads the new file')
                if self.began < before.st_mtime_ns <= time.time_ns():
                    raise OSError(
                        f'{path!r} was written to since the epoch began, by '
                        f'the time of its last change: begin another epoch, '
                        f'or make the data set again, to read it as it is')
                content = stream.readall()
                after = os.fstat(stream.fileno())
        except FileNotFoundError as error:
            raise FileNotFoundError(
                f'{path!r} was there when its folder was listed, and is gone: '
                f'put it back, or make the data set again') from error
        if len(content) != before.st_size or (
                after.st_mtime_ns != before.st_mtime_ns):
            raise OSError(f'{path!r} was written to while it was read: write '
                          f'to another file, and rename that')
        if not content and not self._may_be_empty:
            raise ValueError(
                f'{path!r} is empty: perhaps its download was broken off')
        return content


def _open(path: str, flags: int) -> int:
    return os.open(path, flags | NOT_WAITING)


class Paths:
    """The paths of the files of some rows.

    `index`: the index of the folder.
    `rows`: for each row, the number of its file in the index.
    `above`: the folder in which the paths begin; '' for paths in the folder.
    """

    def __init__(self, index: FolderIndex, rows: IndexArray,
                 above: str = '') -> None:
        self._index, self._rows, self._above = index, rows, above

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, row: int) -> str:
        return os.path.join(
            self._above, self._index.name_of(int(self._rows[row])))


class Arranged(NamedTuple):
    """The files of a folder by splits and classes.

    `order`: the numbers of the files, by split, class, folder and name.
    `splits`: the name of the split of each folder of the index; '' if it has
        no files, or none that belong to a split.
    `classes`: the names of the classes; () if there is one class only.
    `codes`: for each folder, the number of its class; -1 if it has no class.
    `empty`: folders beside those of classes, without files, unless the class
        has files in another split.
    """

    order: IndexArray
    splits: list[str]
    classes: tuple[str, ...]
    codes: NDArray[numpy.int64]
    empty: list[str]


def arrange(index: FolderIndex, files: IndexArray) -> Arranged:
    """Find splits and classes by the names of the folders in which files lie.

    A folder that contains only one folder is passed over. Then, if two folders
    have usual names of splits, or all have, each folder is a split. The
    folders in the splits, or else in the folder itself, are classes; those
    further down belong to the class.
    """
    bounds = files.searchsorted(index.bounds)
    used = numpy.flatnonzero(numpy.diff(bounds)).tolist()
    every = [tuple(filter(None, folder.split('/')))
             for folder in index.folders]
    paths = {number: every[number] for number in used}
    depth = branch(paths.values(), 0, SPLITS.fullmatch)
    found = {name_at(path, depth) for path in paths.values()} - {''}
    named = list(filter(SPLITS.fullmatch, found))
    splits, split_level = [''] * len(every), -1
    if len(named) > 1 or (named and len(found) == 1):
        for number, path in paths.items():
            splits[number] = name_at(path, depth)
        split_level, depth = depth, depth + 1
    depth = branch([path for path in paths.values() if len(path) >= depth],
                   depth, lambda name: False)
    class_of = {number: name_at(path, depth)
                for number, path in paths.items()}
    classes = sorted({*class_of.values()} - {''})
    known = {name: code for code, name in enumerate(classes)}
    codes = numpy.full(len(every), -1)
    codes[used] = [known.get(name, -1) for name in class_of.values()]
    in_order = sorted(used, key=lambda number: (
        splits[number], class_of[number], index.folders[number]))
    order = numpy.concatenate([
        files[bounds[number]:bounds[number + 1]] for number in in_order])
    # The folders whose folders are classes.
    above = {path[:depth] for path in paths.values() if path[depth:]}
    if len(classes) < 2:
        # The only class was passed over, at an unknown level.
        above = {path[:level] for path in paths.values()
                 for level in range(len(path)) if level != split_level
                 }.difference(paths.values())
    empty = ['/'.join(path) for path in _without_files(index, every)
             if path[:-1] in above and path[-1] not in classes]
    return Arranged(order, splits, tuple(classes) if len(classes) > 1 else (),
                    codes, empty)


def _without_files(index: FolderIndex, paths: Sequence[tuple[str, ...]],
                   ) -> list[tuple[str, ...]]:
    """Return the folders that have no files, nor have the folders in them.

    `paths`: the paths of all folders of the index.
    """
    filled = {paths[number][:level]
              for number in numpy.flatnonzero(
                  numpy.diff(index.bounds)).tolist()
              for level in range(len(paths[number]) + 1)}
    return [path for path in paths[1:] if path not in filled]


@do_not_pickle_attributes('readers')
class FilesDataset(RowsDataset):
    """A data set whose examples are the files in a folder, such as pictures or
    recordings.

    The folders are listed once; what was listed is kept on disk. Later, only
    folders that have changed are listed again. A file is opened when it is
    read.

    Parameters
    ----------
    path : str or path-like
        The folder.
    endings : sequence of str, optional
        Extensions of the files to use, such as ``('.npy',)``, in any case.
        Defaults to None: those of pictures, if there are any, else those of
        audio files, else all files.
    which_sets : tuple of str, optional
        The splits to use, concatenated in this order. Defaults to None: all
        files.
    splits : dict, optional
        As for :class:`~fuel.datasets.npy.NPYDataset`. Defaults to the splits
        that the folder has.
    follow : {'folder', 'anywhere'}, optional
        Whether links may lead out of the folder. Defaults to 'folder': such a
        link is an error.
    sources, axis_labels
        As for :class:`Dataset`.

    Attributes
    ----------
    num_examples : int
    split_names : tuple of str
        The splits that the folder has.
    categories : dict of str to tuple
        The names of the classes, as ``categories['label']``.
    class_names : tuple of str or None
        The same names.

    Raises
    ------
    FileNotFoundError
        If there is no such folder, it has no files, a folder beside those of
        classes has none, or a table names a file that is not there.
    ImportError
        If there is a ``metadata.parquet``, and PyArrow is not installed.
    ValueError
        If a link leads out of the folder, a table has no column
        ``file_name``, or a split is unknown.

    Notes
    -----
    The sources are ``image``, ``audio`` or ``file``, the bytes of a file;
    ``path``, its path in the folder; and ``label``, the number of its class,
    if there are at least two classes.

    Each folder is a class, with the files in all folders below it; the names
    are numbered in sorted order, as torchvision's ``ImageFolder`` and Hugging
    Face's ``imagefolder`` number them. All splits have the same classes. A
    file that lies in no class, such as one beside the folders of the classes,
    has the label -1; ``print(dataset)`` states how many do.

    Folders with names such as ``train``, ``test`` and ``validation`` above the
    classes are splits. If two folders have such names, the folders beside them
    are splits too.

    The files are in the order of splits, classes, folders and names. Those
    whose names begin with a dot are left out, and so is ``Thumbs.db``.

    If there is a file ``metadata.csv``, ``metadata.jsonl`` or
    ``metadata.parquet`` (which needs the extra ``arrow``) in the folder, or
    one in each split, each of its rows is an example. Its column ``file_name``
    has the path of the file, relative to the table; its other columns are
    sources, in place of ``label`` and ``path``. Files that no table names are
    left out; with `endings`, tables are ignored. The types of the columns are
    found as by
    :class:`~fuel.datasets.csv.CSVDataset`,
    :class:`~fuel.datasets.jsonl.JSONLDataset` and
    :class:`~fuel.interop.arrow.ArrowDataset`.

    The files stay those with which the data set was made. When a file is read,
    it is an error if the file is gone, was replaced since its folder was
    listed, or was written to since the epoch began; such examples can be
    skipped (``on_error='skip'``). Files that are added do not matter, but a
    copy that another process opens later refuses them. The times of files are
    compared with the clock of the computer; times in the future are ignored.
    A picture without bytes is an error too.

    Examples
    --------
    >>> import os, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> for name in ('cat/1.txt', 'cat/2.txt', 'dog/1.txt'):
    ...     path = os.path.join(folder.name, name)
    ...     os.makedirs(os.path.dirname(path), exist_ok=True)
    ...     with open(path, 'w') as file:
    ...         _ = file.write(f'This is {name}.')
    >>> dataset = FilesDataset(folder.name)
    >>> dataset.sources
    ('file', 'label', 'path')
    >>> dataset.categories['label']
    ('cat', 'dog')
    >>> dataset.get_data(None, 2)
    (b'This is dog/1.txt.', np.int64(1), 'dog/1.txt')
    >>> folder.cleanup()
    """

    unsaved_arguments = ('path', 'follow')
    instead_of: Mapping[str, str] = {
        **RowsDataset.instead_of,
        'columns': "sources=['image', 'label'] chooses sources"}
    kept_meanings: Mapping[str, str] = {
        'files': 'it is a checksum of the names of the files in the folder; '
                 'some were added, removed or renamed'}
    # A checksum of the names of the files, and the tables of them.
    _names: str | None = None
    _tables: Sequence[str] | None = None
    # The index with the files, if the folder has others now; else None.
    _index: FolderIndex | None = None

    def __init__(self, path: Any, endings: Sequence[str] | None = None,
                 which_sets: Sequence[str] | None = None,
                 splits: Mapping[str, Any] | None = None,
                 follow: str = 'folder',
                 **kwargs: Unpack[DatasetOptions]) -> None:
        given = checked_path(type(self).__name__, path)
        if is_url(given):
            raise ValueError(f'folders are of local files, got {given!r}: '
                             f'copy it, or pack the files into tar archives')
        self.path = LocalPath(given)
        self.endings = None if endings is None else tuple(
            texts_in('endings', endings, 'extensions'))
        self.follow = one_of('follow', follow, ('folder', 'anywhere'))
        self._splits = splits
        self._load_for(kwargs.get('sources'))
        try:
            super().__init__(
                which_sets, self._found if splits is None else splits,
                tuple(self.readers), **kwargs)
        except ValueError as error:
            if splits is None and isinstance(which_sets, (list, tuple)):
                self._refuse_unlisted(which_sets, error)
            raise

    def load(self) -> None:
        """List the folders that have changed, and find the files.

        The files stay those with which the data set was made.
        """
        if not os.path.isdir(located(self.path)):
            raise FileNotFoundError(f'there is no folder {self.path!r}')
        now = folder_index(located(self.path), self.follow == 'anywhere')
        opened = vars(self).get('_readers')
        before = self._index if opened is None else (
            next(iter(opened.values())).files[0])
        try:
            self._find_files(now)
            self._index = None
        except (FileNotFoundError, StateMismatchError):
            if before is None:
                raise
            self._index = before.updated(now)
            self._find_files(self._index)

    def _find_files(self, index: FolderIndex) -> None:
        """Find the files in an index; refuse other files than before."""
        tables = find_tables(index) if self.endings is None else []
        if self._tables not in (None, tables):
            raise self._has_others()
        if tables:
            table, files = read_tables(index, tables)
            source = next((source for source, endings in ENDINGS.items() if (
                index.names.end_with(endings)[files].all())), 'file')
            arranged = arrange(index, numpy.unique(files))
        else:
            source, chosen = self._choose(index)
            arranged = arrange(index, chosen)
            table, files = None, arranged.order
            if arranged.empty:
                raise FileNotFoundError(
                    f'{self.path!r} has folders without files, such as '
                    f'{", ".join(map(repr, arranged.empty[:SHOWN]))}, which '
                    f'would not count as classes: put their files there, or '
                    f'remove the folders')
        readers: dict[str, Reader] = {source: FilesReader(
            source, index, files, source not in STAGES)}
        folders = index.folder_of(files)
        categories: dict[str, tuple[Any, ...]] = {}
        if table is not None:
            categories = dict(table.categories)
            if source in table.sources:
                raise ValueError(
                    f'{tables[0]} has a column {source!r}, which is the name '
                    f'of the source with the files: rename the column')
            for name, column in find_sources(
                    table, table.sources, stored_sources(table)).items():
                readers[name] = column.reader
                if isinstance(table, RecordsDataset):
                    column.reader.files = table.records.files
        else:
            if arranged.classes:
                categories['label'] = arranged.classes
                readers['label'] = ArrayReader(
                    index.path, 'label', arranged.codes[folders], (index,))
            readers['path'] = TextReader(
                index.path, 'path', Paths(index, files), (index,))
        self._keep_names(index, files)
        self.readers, self._tables = readers, tables
        names = numpy.array(arranged.splits)[folders]
        self._found = {name: numpy.flatnonzero(names == name)
                        for name in sorted(set(arranged.splits)) if name}
        self.categories, self.class_names = categories, categories.get('label')
        self._left_out = _left_out(index, files, tables)
        self._has_classes = table is None and bool(arranged.classes)

    def renew(self) -> None:
        """List the folders again that have changed; begin an epoch."""
        super().renew()
        for reader in self.readers.values():
            if isinstance(reader, FilesReader):
                reader.began = time.time_ns()

    def _choose(self, index: FolderIndex) -> tuple[str, IndexArray]:
        """Return the name of the source, and the files that are examples."""
        given = {ending.lower() for ending in self.endings or ()}
        kinds = ENDINGS if self.endings is None else {
            next((source for source, known in ENDINGS.items()
                  if given <= {*known}), 'file'): tuple(given)}
        for source, endings in kinds.items():
            found = numpy.flatnonzero(index.names.end_with(endings))
            if len(found):
                return source, found
        if self.endings is not None or not len(index.names):
            raise FileNotFoundError(
                f'{self.path!r} has no files, nor have its folders' if (
                    not len(index.names)) else
                f'none of the {len(index.names)} files in {self.path!r} ends '
                f'with {", ".join(self.endings or ())}; there is '
                f'{index.name_of(0)!r}')
        return 'file', numpy.arange(len(index.names))

    def _refuse_unlisted(self, names: Sequence[str],
                         error: ValueError) -> None:
        """Raise ValueError if a split has files, but none that a table names.

        `error`: the error that there is no such split.
        """
        index = folder_index(located(self.path), self.follow == 'anywhere')
        tables = find_tables(index) if self.endings is None else []
        files = self._choose(index)[1]
        splits = numpy.array(arrange(index, files).splits)[
            index.folder_of(files)]
        for name in names:
            here = files[splits == name]
            if tables and name not in self._found and len(here):
                first = index.name_of(int(here[0]))
                raise ValueError(
                    f'{self.path!r}: the split {name!r} has {len(here)} '
                    f'files, such as {first!r}, but no row of '
                    f'{", ".join(tables)} names one: write a table with them '
                    f'too, or pass endings=({os.path.splitext(first)[1]!r},) '
                    f'to read files without tables') from error

    def _keep_names(self, index: FolderIndex, files: IndexArray) -> None:
        """Keep a checksum of the names of files in order; refuse files with
        other names than those that the data set had."""
        chosen = numpy.zeros(len(index.names), bool)
        chosen[files] = True
        ends = index.names.ends
        digest = hashlib.sha256(index.names.content[numpy.repeat(
            chosen, numpy.diff(ends, prepend=0))])
        digest.update(numpy.searchsorted(
            numpy.flatnonzero(chosen), files).tobytes())
        for folder, count in zip(*numpy.unique(
                index.folder_of(files), return_counts=True), strict=True):
            digest.update(f'{count} {index.folders[folder]}\0'.encode(
                'utf-8', 'surrogateescape'))
        names = digest.hexdigest()
        if self._names not in (None, names):
            raise self._has_others()
        self._names = names

    def _has_others(self) -> StateMismatchError:
        return StateMismatchError(
            f'files were added to {self.path!r}, or removed or renamed, or a '
            f'table of them was changed, since the data set was made: make it '
            f'again')

    @property
    def split_names(self) -> tuple[str, ...]:
        """Names of the splits that the folder has (tuple of str)."""
        return tuple(self._found if self._splits is None else self._splits)

    def kept_arguments(self) -> Mapping[str, object]:
        """Return the arguments that a saved state must fit, and a checksum of
        the names of the files."""
        return {**super().kept_arguments(), 'files': self._names}

    def name_reader(self) -> Reader:
        """Return a reader of the paths of the files in the folder.

        A hook for ``fuel order``, which names rows by paths.
        """
        reader: Any = next(iter(self.readers.values()))
        return TextReader(reader.path, 'path', Paths(
            reader.files[0], reader.rows), reader.files)

    def places_of_rows(self, rows: IndexArray) -> RowPlaces:
        """Return the files of rows."""
        reader: Any = next(iter(self.readers.values()))
        paths: Any = Paths(reader.files[0], reader.rows, str(self.path))
        return RowPlaces(
            paths, ('',), rows, *numpy.zeros((2, len(rows)), numpy.intp))

    def details(self) -> Sequence[str]:
        """Return the folder, the stage that decodes the files, how many files
        lie in no class or are left out, and the splits."""
        texts = self._outside_classes(), self._left_out
        return [str(self.path), *decoding_texts(self.readers, self.sources),
                *filter(None, texts), *super().details()]

    def _outside_classes(self) -> str:
        """Return a text about the examples that lie in no class; '' if there
        are none, or if there are no labels."""
        if not self._has_classes or 'label' not in self.sources:
            return ''
        labels, paths = map(self.readers.__getitem__, ('label', 'path'))
        rows = numpy.arange(self.num_stored)[self._order]
        rows = rows[labels.read(rows) < 0]
        return f'{len(rows)} in no class, with the label -1: ' + _first(
            paths.read(rows[:SHOWN]), len(rows)) if len(rows) else ''

    def __repr__(self) -> str:
        """Return the call that makes the data set."""
        return written_call(type(self).__name__, [repr(str(self.path))], {
            'endings': self.endings, 'which_sets': self.which_sets,
            'splits': self._splits, 'follow': None if (
                self.follow == 'folder') else self.follow,
            'sources': vars(self).get('_sources')})


def _left_out(index: FolderIndex, files: IndexArray,
              tables: Sequence[str]) -> str:
    """Return a text about the files that are left out; '' if there are
    none."""
    numbers = numpy.delete(numpy.arange(len(index.names)), files)
    first = [name for name in map(
        index.name_of, numbers[:SHOWN + len(tables)].tolist())
        if name not in tables][:SHOWN]
    count = len(numbers) - len(tables)
    return '' if not first else (
        f'without {count} other file{"s" * (count > 1)}: '
        f'{_first(first, count)}')


def _first(names: Iterable[str], count: int) -> str:
    """Return the first of `count` names for people to read."""
    shown = list(names)
    return ', '.join(shown) + ', ...' * (count > len(shown))
