"""Open files by their format, HDF5 files by their layout, and folders whose
subfolders are splits."""
from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import partial
from importlib import import_module
from typing import Any

from fuel.datasets.columns.opening import refuse_other_arrays
from fuel.datasets.columns.part_names import (
    MAGIC, Files, as_files, expand, without_braces)
from fuel.datasets.dataset import Dataset
from fuel.datasets.hdf5 import H5PYDataset
from fuel.datasets.hdf5_dataset import HDF5Dataset
from fuel.datasets.splits import (
    ALL, files_by_name, first_of, must_name_splits, names_of, no_split,
    refuse_unknown_splits, shards_by_name)
from fuel.layouts.call import Call, LeftOutSources
from fuel.layouts.folders import FolderFiles, as_pattern
from fuel.layouts.formats import SHARD_NUMBER, format_of, is_zarr
from fuel.layouts.mds import choose_indexes, find_indexes, indexes_at_url
from fuel.layouts.media import Entries, are_in
from fuel.layouts.recognition import (
    PLAIN, find_call, find_known_call, seen_files)
from fuel.remote.urls import is_url
from fuel.storage.open_files import open_with_h5py
from fuel.storage.token_index import is_stem
from fuel.utils.missing_files import no_file
from fuel.utils.paths import expand_home
from fuel.utils.warn import warn_user

logger = logging.getLogger(__name__)

# The class that reads each format, and further arguments of the class.
CLASSES: dict[str, tuple[str, str, dict[str, Any]]] = {
    'binary': ('fuel.datasets.binary', 'BinaryDataset', {}),
    'npy': ('fuel.datasets.npy', 'NPYDataset', {}),
    'npz': ('fuel.datasets.npy', 'NPYDataset', {}),
    'csv': ('fuel.datasets.csv', 'CSVDataset', {}),
    'tsv': ('fuel.datasets.csv', 'CSVDataset', {'delimiter': '\t'}),
    'jsonl': ('fuel.datasets.jsonl', 'JSONLDataset', {}),
    'text': ('fuel.datasets.text', 'TextFile', {}),
    'tfrecord': ('fuel.datasets.shards.tfrecord', 'TFRecordDataset', {}),
    'parquet': ('fuel.interop.arrow', 'ArrowDataset', {}),
    'arrow': ('fuel.interop.arrow', 'ArrowDataset', {}),
    'mds': ('fuel.datasets.shards.mds', 'MDSDataset', {}),
    'tar': ('fuel.datasets.shards.tar', 'TarDataset', {}),
    'zarr': ('fuel.interop.zarr', 'ZarrDataset', {})}
# Formats whose files may have the name of a split in their names.
TABLES = ('arrow', 'binary', 'csv', 'jsonl', 'npz', 'parquet', 'tar',
          'text', 'tfrecord', 'tsv')
# Arguments that a recogniser finds. One that the user passes replaces it.
EXPLICIT = ('columns', 'parts', 'runs')
NO_ARGUMENTS: Mapping[str, Any] = {}
# Advice for errors: the argument that names one of several splits.
HOW_TO_SPLIT = "split={}; split='all' takes all rows"

Split = str | Sequence[str] | None


def open_files(files: Files, split: Split, layout: str | None,
               kwargs: dict[str, Any]) -> Dataset:
    """Return the data set in files, of any format and layout.

    `files`: a path, URL, pattern or folder, or a list of files.
    """
    listed: Sequence[str | os.PathLike[str]] = [files] if isinstance(
        files, (str, os.PathLike)) else files
    given = list(map(os.fsdecode, listed))
    at_home = list(map(expand_home, given))
    try:
        return _open_files(at_home if listed is files else at_home[0],
                           split, layout, kwargs)
    except FileNotFoundError as error:
        # Thousands of files are not looked for unless one is missing.
        missing = find_missing(given)
        if missing is None:
            raise
        raise missing from error


def find_missing(files: Sequence[str]) -> FileNotFoundError | None:
    """Return the error about the first of the local files that is missing;
    None if none is.

    `files`: paths, which may have ``~`` or braces; patterns are passed over.
    """
    for given in files:
        for path in [] if is_url(given) or MAGIC.search(given) else (
                without_braces(expand_home(given))):
            if not os.path.lexists(path) and not is_stem(path):
                return no_file(path, given)
    return None


def _open_files(files: Files, split: Split, layout: str | None,
                kwargs: dict[str, Any]) -> Dataset:
    """See `open_files`."""
    named, asked = files, split
    if isinstance(files, (str, os.PathLike)) and os.path.isdir(files) and (
            not is_zarr(os.fsdecode(files))):
        folder = os.fsdecode(files)
        with closing(Entries()) as entries:
            if are_in(folder, entries, kwargs):
                _refuse_layout(layout, folder, 'files')
                return _open_media(folder, split, kwargs)
            found = FolderFiles(folder, names_of(split), entries)
        indexes = {} if found.has_data else find_indexes(folder)
        if indexes:
            files, split = choose_indexes(
                folder, indexes, split, HOW_TO_SPLIT)
        elif found.are_tables():
            return _open_tables(found.folder, split, layout, kwargs)
        else:
            files, split, kwargs = _of_folder(found, split, kwargs)
    # The names of files do not matter in the split of a folder.
    is_chosen = asked is not None and split is None
    given = as_files(files, kwargs.get('storage_options'))
    paths = expand(given)
    kind, chosen = _format_and_indexes(paths, split, kwargs)
    if not is_chosen:
        chosen = chosen or _of_splits(files, paths, split, kind, kwargs)
    if chosen:
        files = given = paths = chosen
        split = None
    if kind == 'wids':
        _refuse_layout(layout, paths[0], kind)
        return _open_listed(paths, split, kwargs)
    if kind != 'hdf5':
        _refuse_layout(layout, paths[0], kind)
        # The call of shards that is printed has a pattern as it was passed.
        return _open_format(kind, paths if kind not in (
            'tar', 'tfrecord') else [files] if isinstance(
                files, (str, os.PathLike)) else files, split, kwargs)
    with seen_files(given, kwargs.get('storage_options'),
                    kwargs.get('follow', 'folder')) as seen:
        if 'split' in seen.files[0].attribute_names() and layout is None:
            return _open_own(paths, split, kwargs)
        explicit = [name for name in EXPLICIT if name in kwargs]
        if explicit:
            known = find_known_call(seen, layout, explicit)
            if known is None or known.splits is None:
                split, kwargs = _of_names(named, paths, split, kwargs)
            # The arrays of a layout without parts are not below parts.
            if known is None or (known.parts is None
                                 and kwargs.get('parts') is not None):
                return _open_split(partial(HDF5Dataset, given), split, kwargs)
            return _open_split(known.open, split, kwargs)
        name, call = find_call(seen, layout, names_of(split))
        for note in call.notes:
            logger.info('%s, of the layout %s: %s', given, name, note)
        _refuse_left_out(call, kwargs.get('sources'))
        if name == PLAIN and call.parts is None and (
                kwargs.get('sources') is None):
            refuse_other_arrays(seen.linked, [call.splits] if isinstance(
                call.splits, str) else [])
        if call.splits is None and not call.split:
            split, kwargs = _of_names(named, paths, split, kwargs)
        return _open_split(call.open, None if call.split else split, kwargs)


def _refuse_layout(layout: str | None, path: str, kind: str) -> None:
    """Raise ValueError if a layout is passed for files of another format than
    HDF5."""
    if layout is not None:
        raise ValueError(
            f'layouts are of HDF5 files, and {path!r} has the format '
            f'{kind!r}: leave out layout={layout!r}')


def _open_listed(paths: Sequence[str], split: Split,
                 kwargs: dict[str, Any]) -> Dataset:
    """Return the data set in the archives that indexes of wids list."""
    from fuel.datasets.shards.base import ShardDataset
    from fuel.layouts.wids import check_shards, shards_of_wids
    shards, stated = zip(*[
        each for path in paths for each in shards_of_wids(path)], strict=True)
    dataset = _open_format('tar', shards, split, kwargs)
    assert isinstance(dataset, ShardDataset)
    check_shards(dataset, stated)
    return dataset


def _open_media(folder: str, split: Split,
                kwargs: dict[str, Any]) -> Dataset:
    """Return the data set of the pictures or the audio files in a folder."""
    from fuel.datasets.files import FilesDataset
    dataset = _open_split(partial(FilesDataset, folder), split, kwargs)
    assert isinstance(dataset, FilesDataset)
    names = dataset.split_names
    if split is None and not {'splits', 'which_sets'} & kwargs.keys() and (
            len(names) > 1):
        raise must_name_splits(repr(folder), names, HOW_TO_SPLIT)
    return dataset


def _open_tables(folder: str, split: Split, layout: str | None,
                 kwargs: dict[str, Any]) -> Dataset:
    """Return the data set in a folder of Parquet or Arrow files."""
    _refuse_layout(layout, folder, 'parquet')
    tables = import_module('fuel.interop.arrow.files')
    located = tables.paths_of(folder, kwargs.get('storage_options'))
    names = names_of(split)
    by_split = {} if 'splits' in kwargs else tables.tables_by_split(
        folder, located, names or None, HOW_TO_SPLIT)
    if by_split and names and (names != (ALL,) or ALL in by_split):
        refuse_unknown_splits(names, by_split, repr(folder))
        located = [each for name in names for each in by_split[name]]
        split = None
    return _open_format('parquet', located, split, kwargs)


def _refuse_left_out(call: Call, sources: object) -> None:
    """Raise ValueError if the user requests a source that a layout leaves
    out."""
    for source in sources if isinstance(sources, (list, tuple)) else ():
        for note in call.notes:
            if (isinstance(note, LeftOutSources) and source in note.sources
                    and source not in call.columns):
                raise ValueError(
                    f'there is no source {source!r}: it is {note}; to read '
                    f'it all the same, name its column in the call {call!r}')


def _format_of_all(paths: Sequence[str],
                   kwargs: Mapping[str, Any] = NO_ARGUMENTS) -> str:
    """Return the format of files; one file of each extension is examined.

    `kwargs`: arguments of the data set.
    """
    first = {os.path.splitext(SHARD_NUMBER.sub('', str(path)))[1]: path
             for path in reversed(paths)}
    is_raw = bool({'dtype', 'rows'} & kwargs.keys())
    kinds = {path: format_of(path, is_raw)
             for path in first.values()}
    kind = kinds[paths[0]]
    for path, other in kinds.items():
        if other != kind:
            raise ValueError(
                f'all files must have one format, but {paths[0]!r} has '
                f'{kind!r}, and {path!r} has {other!r}: load them by '
                f'themselves')
    return kind


def _format_and_indexes(paths: Sequence[str], split: Split,
                        kwargs: dict[str, Any]) -> tuple[str, list[str]]:
    """Return the format of files, and the indexes of splits of MDS that are
    folders of a folder at a URL."""
    try:
        kind = _format_of_all(paths, kwargs)
    except TimeoutError:
        raise
    except (OSError, ValueError):
        # There may be nothing at the URL of a folder, or a web page.
        found = indexes_at_url(paths, split)
        if not found:
            raise
        return 'mds', found
    return kind, indexes_at_url(paths, split) if (
        kind == 'mds' and 'splits' not in kwargs) else []


def _of_folder(found: FolderFiles, split: Split, kwargs: dict[str, Any],
               ) -> tuple[Files, Split, dict[str, Any]]:
    """Return the files of a folder, the splits that remain to be chosen, and
    the arguments of the data set."""
    names = names_of(split)
    folder, by_split = found.folder, found.by_split()
    every = [path for paths in by_split.values() for path in paths]
    # A folder that is asked for is the split, whatever its files are called.
    by_name = {} if names and by_split.keys() >= {*names} else _by_name(
        every, folder, names, _format_of_all(every, kwargs), kwargs)
    _warn_of_folder_values(every, folder)
    if '' in by_split and not by_name:
        return as_pattern(by_split['']), split, kwargs
    if 'splits' in kwargs:
        return every, split, kwargs
    by_split = by_name or by_split
    more = {'splits': by_split, **kwargs} if (
        _format_of_all(every) == 'hdf5') else kwargs
    if not names and by_name:
        raise _several(folder, by_name)
    if not names or (names == (ALL,) and ALL not in by_split):
        return every, None, more
    for name in names:
        if name not in by_split:
            raise no_split(name, by_split, f'{folder!r}' if by_name else (
                f'{folder!r} has no folder {name!r}'))
    if more is not kwargs:
        # All files, so that a category has one code in all splits.
        return every, names, more
    if len(names) == 1:
        return as_pattern(by_split[names[0]]), None, kwargs
    return [path for name in names for path in by_split[name]], None, kwargs


def _warn_of_folder_values(paths: Sequence[str], folder: str) -> None:
    """Warn if the names of folders, such as ``year=2024``, hold values that do
    not become a source.

    HDF5 files in such folders contain the values too, so there is no warning.
    """
    named = [below for path in paths if '=' in (
        below := os.path.dirname(os.path.relpath(path, folder)))]
    if named and _format_of_all(paths) != 'hdf5':
        warn_user(
            f'the folders of {folder!r}, such as {named[0]!r}, have values '
            f'in their names that are not a source of the data set: write '
            f'them into the files too, or convert these to Parquet, where '
            f'such folders are columns')


def _of_splits(files: Files, paths: list[str], split: Split, kind: str,
               kwargs: dict[str, Any]) -> list[str]:
    """Return the tables or shards of a split, by their names; an empty list if
    the names do not matter.

    Files that the user listed are all read if no split is requested.
    """
    is_pattern = isinstance(files, (str, os.PathLike))
    if split is None and not (is_pattern and len(paths) > 1):
        return []
    names = names_of(split)
    by_name = _by_name(paths, _root_of(files, paths), names, kind, kwargs)
    if not by_name or (names == (ALL,) and ALL not in by_name):
        return []
    if not names:
        raise _several(str(files), by_name)
    for name in names:
        if name not in by_name:
            raise no_split(name, by_name, (
                f'{str(files)!r} fits no file of a split {name!r}')
                if is_pattern and len(paths) > 1 else first_of(paths))
    return [path for name in names for path in by_name[name]]


def _root_of(files: Files, paths: Sequence[str]) -> str:
    """Return a folder that all files lie in: the one that was passed, that
    above the signs of a pattern, or their common folder."""
    if isinstance(files, (str, os.PathLike)):
        where = os.fsdecode(files)
        if os.path.isdir(where):
            return where
        if MAGIC.search(where) and '{' not in where:
            return MAGIC.split(where)[0].rpartition(os.sep)[0]
    return os.path.commonpath([
        os.path.dirname(os.path.abspath(path)) for path in paths])


def _of_names(files: Files, paths: Sequence[str], split: Split,
              kwargs: dict[str, Any]) -> tuple[Split, dict[str, Any]]:
    """Return the split and the arguments for HDF5 files that do not define
    splits; the names of the files in a folder may define them."""
    by_name = {} if 'splits' in kwargs else named_splits(
        files, paths, split is not None)
    if split is None and len(by_name) > 1:
        raise _several(str(files), by_name)
    names = names_of(split)
    is_asked_for = names and by_name.keys() >= set(names)
    if names != (ALL,) and (len(by_name) > 1 or is_asked_for):
        kwargs = {'splits': by_name, **kwargs}
    return split, kwargs


def named_splits(files: Files, paths: Sequence[str],
                 is_asked_for: bool = False) -> dict[str, list[str]]:
    """Return a dict from splits to their files. The splits are in the names of
    the files in a folder, or of the files that match a pattern.

    The result is empty for a file, or files that the user listed, unless a
    split is asked for.
    """
    is_list = not isinstance(files, (str, os.PathLike)) or (
        list(paths) == [os.fsdecode(files)])
    return {} if is_list and not is_asked_for else files_by_name(
        paths, _root_of(files, paths))


def _by_name(paths: Sequence[str], root: str,
             names: Sequence[str], kind: str,
             kwargs: dict[str, Any]) -> dict[str, list[str]]:
    """Return a dict from splits to the tables or shards that have the split in
    their names.

    The result is empty for other files, and if all files are of one split and
    the user did not request any.
    """
    if kind not in TABLES or 'splits' in kwargs:
        return {}
    wanted = set(names)
    found = files_by_name(paths, root)
    if kind in ('tar', 'tfrecord') and len(found) < 2 and (
            wanted != {ALL} and not (wanted and found.keys() >= wanted)):
        found = shards_by_name(paths, wanted)
    return found if len(found) > 1 or wanted - {ALL, *found} or (
        wanted and found.keys() >= wanted) else {}


def _several(files: str, by_name: dict[str, list[str]]) -> ValueError:
    return must_name_splits(repr(files), by_name, HOW_TO_SPLIT)


def _open_own(paths: Sequence[str], split: Split,
              kwargs: dict[str, Any]) -> Dataset:
    """Return the data set in a file of Fuel's own format."""
    if len(paths) > 1:
        raise ValueError(
            f'{paths[0]!r} is in the format of H5PYDataset, which reads one '
            f'file, got {len(paths)} files')
    return open_own(paths[0], H5PYDataset, split, kwargs, paths[0])


def open_own(path: str, build: Any, split: Split, kwargs: dict[str, Any],
             *arguments: Any) -> Dataset:
    """Return a data set of splits of a file in Fuel's own format.

    `build`: takes the arguments and `which_sets`; returns the data set.
    """
    if split is None:
        split = kwargs.get('which_sets')
    if split is None or split == ALL:
        with open_with_h5py(path, storage_options=kwargs.get(
                'storage_options')) as h5file:
            splits = H5PYDataset.get_all_splits(h5file)
        if split == ALL and ALL not in splits:
            split = splits
        elif split is None:
            if len(splits) != 1:
                raise ValueError(
                    f'{os.path.basename(path)} has the splits {splits}: name '
                    f'one or more, such as split={splits[0]!r}')
            split = splits
    dataset: Dataset = build(
        *arguments, **{**kwargs, 'which_sets': names_of(split)})
    return dataset


def _open_split(build: Any, split: Split, kwargs: dict[str, Any]) -> Dataset:
    """Return a data set with the rows of splits, or by default all rows.

    `build`: takes `kwargs` and `which_sets`; returns the data set.
    """
    if split is None or split == ALL:
        dataset: Dataset = build(**kwargs)
        if split is None or not isinstance(dataset, HDF5Dataset) or (
                ALL not in dataset.split_names):
            return dataset
        dataset.close(None)
    chosen: Dataset = build(which_sets=names_of(split), **kwargs)
    return chosen


def _open_format(kind: str, paths: Sequence[Any],
                 split: Split, kwargs: dict[str, Any]) -> Dataset:
    """Return the data set in files that are not HDF5."""
    module, name, more = CLASSES[kind]
    data: Any = list(paths) if len(paths) > 1 or kind == 'text' else paths[0]
    if kind == 'npy' and len(paths) > 1:
        data = {os.path.splitext(os.path.basename(path))[0]: path
                for path in paths}
        if len(data) < len(paths):
            raise ValueError(
                f'several .npy files are sources by their names, and two of '
                f'{", ".join(map(repr, paths))} have one name: load those of '
                f'each split by themselves, as in split=..., or list those of '
                f'each source, NPYDataset({{{next(iter(data))!r}: [...]}}), '
                f'where their rows follow each other')
    elif kind == 'zarr' and len(paths) > 1:
        raise ValueError(
            f'{name} reads one file, got {len(paths)}; the first is '
            f'{paths[0]!r}: load each by itself, and put their streams into '
            f'Chain or Mix, of fuel.transformers')
    if split is not None and split != ALL:
        if kind == 'text':
            raise no_split(names_of(split)[0], (), f'{data[0]!r}')
        more = {**more, 'which_sets': names_of(split)}
    dataset: Dataset = getattr(import_module(module), name)(
        data, **{**more, **kwargs})
    return dataset
