"""Open a data set by its name or its files, and download it on request."""
from __future__ import annotations

import os
import shutil
from argparse import ArgumentError
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from importlib import import_module
from typing import Any

import numpy

from fuel.config_parser import config
from fuel.datasets.built_in import BuiltInDataset
from fuel.datasets.columns.part_names import Files, is_pattern
from fuel.datasets.dataset import Dataset
from fuel.datasets.splits import ALL, names_of
from fuel.downloaders.registry import registered
from fuel.exceptions import MissingInputFiles
from fuel.layouts.formats import ENDINGS, without_number
from fuel.layouts.opening import open_files, open_own
from fuel.remote.urls import is_url
from fuel.suggestions import did_you_mean
from fuel.storage.token_index import is_stem
from fuel.utils.checks import in_order
from fuel.utils.extensions import Filler, NotingParser, find_datasets
from fuel.utils.lockfile import LockFile
from fuel.utils.missing_files import near, no_file
from fuel.utils.other_libraries import class_for, short_repr
from fuel.utils.paths import (
    expand_home, find_in_data_path, refuse_special_file)
from fuel.utils.signatures import parameters_of

__all__ = ['load']

EXTENSIONS = ('.hdf5', '.hdf', '.h5')
# Seconds to wait for another process that downloads the same data set.
TIMEOUT = 24 * 3600.
# Arguments of built-in data sets on which the names of their files depend.
NAMING = ('which_format', 'size')


def load(name: Files,
         split: str | Sequence[str] | None = None, *,
         layout: str | None = None, download: bool = False,
         url_prefix: str | None = None, **kwargs: Any) -> Dataset:
    """Open a data set by its name or its files, and return it.

    Parameters
    ----------
    name : str, path-like or list of them
        Name of a built-in data set, as ``fuel-download --list`` shows it, such
        as ``'mnist'``, or name of a converted file in the data path.  It may
        also be files that are read as they are: a file, a URL, a pattern such
        as ``'data/*.h5'`` or ``'train-{000..146}.tar'``, a folder, or a list
        of files; ``~`` at the start is the home folder.  The layout of HDF5
        files from other programs is recognised by their contents; see
        :doc:`/hdf5_layouts`.  Subfolders of a folder are its splits.  Files
        other than ``.npy`` are splits if all have names of splits:
        ``train.h5`` and ``test.h5``, or ``train-00000-of-00001.parquet``.
        Parquet and Arrow files are found at any depth, and folders named
        ``name=value`` become columns; see
        :class:`~fuel.interop.arrow.ArrowDataset`.  Files that contain only
        numbers are read if the argument ``dtype`` is passed, such as
        ``fuel.load('train.bin', dtype='uint16')``; see
        :class:`~fuel.datasets.BinaryDataset`.  A folder of pictures or audio
        files has their bytes, and their classes; see
        :class:`~fuel.datasets.FilesDataset`.
    split : str or sequence of str, optional
        The split to use, or several splits; ``'all'`` means all rows.
        Defaults to None: the only split of a file in Fuel's own format, or of
        files with names of splits; all rows of other files.
    layout : str, optional
        The layout of HDF5 files, such as ``'anndata'``.  Defaults to None: the
        layout is recognised.
    download : bool, optional
        Whether to download a built-in data set that is not in the data path,
        verify it, and convert it into the first folder of the data path.
        Defaults to False.
    url_prefix : str, optional
        A folder, or the start of a URL, from which all raw files are fetched.
    **kwargs
        Arguments of the data set, such as ``which_format=2`` of
        :class:`~fuel.datasets.SVHN`, ``sources``, ``storage_options`` or
        ``load_in_memory``.  For files in Fuel's own format,
        ``flat_targets=True`` makes targets of the shape (batch,) instead of
        (batch, 1).  For HDF5 files with a known layout, an argument replaces
        the layout's argument of the same name.  The name of a source in
        ``columns`` stands for the column of that source.

    Returns
    -------
    Dataset
        The data set.  ``DataStream(dataset, batch_size=128)`` makes a stream
        of it.  If the layout of HDF5 files was recognised, ``print(dataset)``
        shows a call of :class:`~fuel.datasets.HDF5Dataset` that opens them,
        ready to copy.

    Raises
    ------
    FileNotFoundError
        If the data path has no such file; the text says how to get it.
    ValueError
        If there are several splits and none is named, if there is no such
        split, or if files have no known format.
    AmbiguousLayoutError
        If files can be opened in several ways, which the text lists.
    UnknownLayoutError
        (A ValueError.) If HDF5 files have no known layout.
    TypeError
        If the data set does not accept an argument, if both `split` and
        `which_sets` are given, or if `name` is an object with data.

    Examples
    --------
    >>> import fuel, os, tempfile, h5py
    >>> from fuel.datasets import H5PYDataset
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, 'numbers.hdf5')
    >>> with h5py.File(path, 'w') as file:
    ...     file['x'] = [4, 5, 6]
    ...     file.attrs['split'] = H5PYDataset.create_split_array(
    ...         {'train': {'x': (0, 2)}, 'test': {'x': (2, 3)}})
    >>> len(fuel.load(path, split='train', load_in_memory=True))
    2
    >>> folder.cleanup()
    """
    if split is not None and 'which_sets' in kwargs:
        raise TypeError(
            f'split and which_sets are one argument: pass split={split!r} or '
            f'which_sets={kwargs["which_sets"]!r}, not both')
    split = _checked_split(split)
    try:
        return _load(name, split, layout, download, url_prefix, kwargs)
    except (OSError, TypeError, ValueError) as error:
        if kwargs:
            from fuel.layouts.arguments import refuse_misspelled
            refuse_misspelled(kwargs, NAMING, error)
        raise


def _checked_split(split: Any) -> str | list[str] | None:
    """Return the argument `split`; several names as a list, unless 'all' is
    the only one."""
    if split is None or isinstance(split, str):
        return split
    # The keys of a dict are names too, but its rows would be left out.
    if isinstance(split, (bytes, Mapping)) or not isinstance(split, Iterable):
        raise TypeError(
            f'split must be the name of a split, or several, got '
            f'{split!r:.80}: pass the splits of random_split as splits=')
    in_order('split', split)
    names = list(split)
    if not names:
        raise ValueError(
            "split must name at least one split, got none: 'all' takes all "
            'rows')
    return ALL if names == [ALL] else names


def _load(name: Files, split: str | Sequence[str] | None, layout: str | None,
          download: bool, url_prefix: str | None,
          kwargs: dict[str, Any]) -> Dataset:
    """See `load`."""
    if not isinstance(name, (str, bytes, os.PathLike)):
        return open_files(_as_list(name), split, layout, kwargs)
    path = os.fsdecode(name)
    if _is_path(expand_home(path)):
        return open_files(path, split, layout, kwargs)
    if layout is not None:
        raise ValueError(
            f'layout={layout!r} is for files, and there is none {path!r}')
    try:
        return _load_by_name(path, split, download, url_prefix, kwargs)
    except FileNotFoundError:
        home = expand_home(path)
        if not os.path.exists(home) and not is_stem(home):
            raise
    return open_files(path, split, layout, kwargs)


def _as_list(names: object) -> list[str | os.PathLike[str]]:
    """Return paths as a list; raise TypeError for other values."""
    if isinstance(names, (Sequence, Iterator, AbstractSet, numpy.ndarray)):
        found = list(names)
        others = [one for one in found
                  if not isinstance(one, (str, bytes, os.PathLike))]
        if not others:
            return found
        given = f'a {type(names).__name__} with {short_repr(others[0])}'
    else:
        given = short_repr(names)
    raise TypeError(
        f'name must be that of a data set, a path, URL or pattern of files, '
        f'or a list of paths, got {given}: {class_for(names)}')


def _is_path(name: str) -> bool:
    """Return whether a name refers to files, and not to a data set."""
    if is_url(name) or is_pattern(name):
        return True
    has_form = bool(os.path.dirname(name) or os.path.splitext(name)[1])
    return has_form and os.path.exists(name)


def _is_like_path(name: str) -> bool:
    """Return whether a name can only be meant as that of files; HDF5 files
    may also lie in the data path."""
    low = without_number(name.lower())
    return not low.endswith(EXTENSIONS) and (
        low.endswith(ENDINGS) or not {'/', os.sep, '{', '}', '~'}.isdisjoint(
            name))


def _load_by_name(path: str, split: str | Sequence[str] | None,
                  download: bool, url_prefix: str | None,
                  kwargs: dict[str, Any]) -> Dataset:
    """Open a built-in data set, or a file in the data path, and return it."""
    key = os.path.basename(path).lower().replace('-', '_').replace(' ', '_')
    # A path with a folder is that of a file there, and of nothing else.
    in_folder = bool(os.path.dirname(path))
    cls = None if in_folder else _class_of(key)
    if cls is not None and 'size' in parameters_of(cls):
        kwargs.setdefault('size', parameters_of(cls)['size'].default)
    filename = _filename(key, cls, kwargs)
    # A file of the user is found as it is called, too.
    names = [] if in_folder else [filename] if cls is not None else [
        _filename(path, cls, kwargs), filename]
    for candidate in names:
        with suppress(FileNotFoundError):
            found = find_in_data_path(candidate)
            break
    else:
        refuse_special_file(expand_home(path))
        if 'dtype' in kwargs or _is_like_path(path):
            raise no_file(expand_home(path), path)
        if in_folder or not download:
            raise FileNotFoundError(_how_to_get(
                key, path, filename, split, kwargs))
        found = _download(key, filename, kwargs, url_prefix)
    if cls is None:
        return open_files(found, split, None, kwargs)
    return open_own(found, cls, split, kwargs)


def _class_of(key: str) -> type[BuiltInDataset] | None:
    """Return the class of a built-in data set.

    The result is None for another name, and for a data set that is not a
    `BuiltInDataset` in files with fixed names.
    """
    facts = registered().get(key)
    if facts is None or not facts['outputs']:
        return None
    module, _, name = facts['class'].partition('.')
    cls: type[Dataset] = getattr(
        import_module(f'fuel.datasets.{module}'), name)
    return cls if issubclass(cls, BuiltInDataset) else None


def _filename(key: str, cls: type[BuiltInDataset] | None,
              kwargs: Mapping[str, Any]) -> str:
    """Return the name of the file that has a data set."""
    if cls is None:
        return key if key.lower().endswith(EXTENSIONS) else f'{key}.hdf5'
    needed = [name for name in NAMING if name in parameters_of(cls)]
    for name in needed:
        if name not in kwargs:
            raise TypeError(
                f'{cls.__name__} has several files: pass {name}=..., '
                f'as in fuel.load({key!r}, {name}=...)')
    return cls.filename_for(*(kwargs[name] for name in needed))


def _how_to_get(key: str, name: str, filename: str,
                split: str | Sequence[str] | None,
                kwargs: Mapping[str, Any]) -> str:
    """Return the text of the error that a file was not found, with advice."""
    folders = ', '.join(map(repr, config.data_path))
    text = f'{filename!r} was not found in the data path, {folders}'
    for path in (name + extension for extension in EXTENSIONS):
        if os.path.isfile(path):
            return (f'{text}, but here is {path}: did you mean '
                    f'fuel.load({path!r})?')
    if key.endswith(EXTENSIONS):
        where = expand_home(name)
        hint = near(where) if os.path.isdir(
            os.path.dirname(where) or '.') else ''
        known, _ = os.path.splitext(key)
        if os.path.dirname(name):
            text = (f'a path with a folder is not looked for in the data '
                    f'path, {folders}')
        if hint or os.path.dirname(name) or known not in _fillers(
                'converters'):
            return (f'there is no file {name!r}, and {text}'
                    f'{": " * bool(hint)}{hint}')
        key = name = known
    if key in _fillers('converters') and key in _fillers('downloaders'):
        return f'{text}: {_way_to_get(key, name, split, kwargs)}'
    hint = near(name, only_folders=True) or did_you_mean(
        key, _fillers('converters')) or 'fuel-download --list shows those'
    return (f'{text}, and {name!r} is not a data set that Fuel can download; '
            f'{hint}')


def _way_to_get(key: str, name: str, split: str | Sequence[str] | None,
                kwargs: Mapping[str, Any]) -> str:
    """Return a text about the call, or the commands, that download a built-in
    data set."""
    facts = registered().get(key)
    cls = _class_of(key)
    if facts is not None and cls is None:
        return (f'"fuel-download {key}" and "fuel-convert {key}" make what '
                f'fuel.datasets.{facts["class"].rpartition(".")[2]} reads')
    known = (facts and facts['splits']) or ()
    named = names_of(split)
    if known and (not named or not {*known, ALL}.issuperset(named)):
        split = next(iter(known))
    options = {} if cls is None else parameters_of(cls)
    kept = ''.join([
        f'{option}={kwargs[option]!r}, ' for option in NAMING
        if option in options and option in kwargs
        and kwargs[option] != options[option].default])
    return (f'fuel.load({name!r}, split={split!r}, {kept}download=True) '
            f'downloads and converts it')


def _fillers(kind: str) -> Mapping[str, Any]:
    """Return a dict from names to functions that set up downloaders or
    converters."""
    return find_datasets(f'fuel.{kind}', getattr(config, f'extra_{kind}'),
                         f'all_{kind}')


def _download(key: str, filename: str, kwargs: Mapping[str, Any],
              url_prefix: str | None) -> str:
    """Download and convert a data set; return the path of its file."""
    from fuel.converters.output import OutputFolder
    from fuel.converters.staging import convert, made_by
    from fuel.downloaders.base import Options
    for kind in ('downloaders', 'converters'):
        if key not in _fillers(kind):
            raise FileNotFoundError(_how_to_get(
                key, key, filename, None, kwargs))
    folder = os.path.abspath(os.path.expanduser(config.data_path[0]))
    raw = os.path.join(folder, f'.raw-{key}')
    os.makedirs(folder, exist_ok=True)
    with LockFile(os.path.join(folder, f'.load-{key}.lock')).held(TIMEOUT):
        with suppress(FileNotFoundError):
            # Another process was faster.
            return find_in_data_path(filename)
        os.makedirs(raw, exist_ok=True)
        make, argv, options = _command(_fillers('converters')[key], kwargs)
        fetch, _, arguments = _command(_fillers('downloaders')[key], kwargs)
        if url_prefix is not None:
            arguments['options'] = Options(mirror=url_prefix)
        fetch(directory=raw, clear=False, **arguments)
        try:
            paths = convert(make, {'directory': raw, **options},
                            OutputFolder(folder, attributes=made_by(
                                [key, *argv])))
        except MissingInputFiles as error:
            raise FileNotFoundError(f'{error}. {error.advice or ""}'
                                    ) from error
        shutil.rmtree(raw, ignore_errors=True)
    for path in paths:
        if os.path.basename(path) == filename:
            return path
    return find_in_data_path(filename)


def _command(fill: Filler, kwargs: Mapping[str, Any]
             ) -> tuple[Callable[..., Any], list[str], dict[str, Any]]:
    """Return the function that a command would call, the command's arguments,
    and the function's arguments.

    Positional arguments of the command, such as a format, get the values of
    the data set's arguments with the same names.
    """
    parser = NotingParser(exit_on_error=False)
    function = fill(parser)
    argv = [str(kwargs[name]) for name in parser.positional if name in kwargs]
    try:
        return function, argv, vars(parser.parse_args(argv))
    except ArgumentError as error:
        raise ValueError(str(error)) from error
