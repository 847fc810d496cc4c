"""Functions that converters are built from.

Each function ``convert_*`` reads the raw files in the folder `directory`,
writes one HDF5 file `output_filename` (by default named after the data set)
to the folder `output_directory`, and returns a tuple with the path of that
file. It raises `MissingInputFiles` if a raw file is missing, and
`BadInputFile` if a raw file is damaged or is another file. Its own docstring
describes the content of the HDF5 file and its other arguments.
"""
import functools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import accumulate
from typing import Any, TypeVar

import h5py
import numpy

from fuel.converters.output import (IMAGES, LABELS, ConvertedFile, Layout,
                                    Pieces, converted_file, create_source,
                                    label_axes, write_names, write_rows)
from fuel.converters.raw.files import BadInputFile, Folder, require_files
from fuel.datasets.hdf5 import H5PYDataset
from fuel.exceptions import MissingInputFiles
from fuel.utils.checks import positive
from fuel.utils.extensions import Filler, filler_of
from fuel.utils.progress import Bar, progress

__all__ = ['BadInputFile', 'Converter', 'Filler', 'MissingInputFiles',
           'Pieces', 'check_exists', 'converted_file', 'create_source',
           'fill_hdf5_file', 'filler_of', 'label_axes', 'progress_bar',
           'write_file', 'write_splits']

# Names of HDF5's own filters; plug-ins have numbers, or objects of hdf5plugin.
COMPRESSIONS = 'gzip', 'lzf', 'szip'
# Function that is called with all arguments of its parser as keywords
# (`directory`, ...), and returns the paths of the files that it wrote.
Converter = Callable[..., tuple[str, ...]]
F = TypeVar('F', bound=Callable[..., Any])
# Split, source, array, and a comment that may be left out.
Part = tuple[Any, ...]


def check_exists(required_files: Iterable[str]) -> Callable[[F], F]:
    """Make a converter check first that its raw files exist.

    Parameters
    ----------
    required_files : iterable of str
        Names of the files that must be in the folder which the converter
        gets as its first argument, `directory`.

    Returns
    -------
    callable
        A decorator. The decorated converter raises `MissingInputFiles` if a
        file is missing or is a folder.

    Examples
    --------
    >>> @check_exists(required_files=['no-such-file.gz'])
    ... def convert(directory, output_directory):
    ...     return ()
    >>> convert('.', '.')
    Traceback (most recent call last):
        ...
    fuel.exceptions.MissingInputFiles: Required files missing: ...
    """
    names = list(required_files)

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def checked(directory: Folder, *args: object,
                    **kwargs: object) -> object:
            require_files(directory, names)
            return function(directory, *args, **kwargs)
        return checked  # type: ignore[return-value]
    return decorate


def _as_part(part: Iterable[Any]) -> Part:
    """Check the data of one source and split, and return them; lists become
    arrays."""
    part = tuple(part)
    if not 3 <= len(part) <= 4:
        raise ValueError(
            'expected (split, source, array) or (split, source, array, '
            f'comment), got {len(part)} elements, starting with {part[:2]}')
    split, source, array, *comment = part
    if not hasattr(array, 'dtype'):
        array = numpy.asarray(array)
    if not array.shape:
        raise ValueError(f'source {source!r} of split {split!r} is a scalar; '
                         f'its first axis should count examples')
    if array.dtype.kind == 'U':
        raise TypeError(
            f'source {source!r} of split {split!r} is of type {array.dtype}, '
            f"which HDF5 does not have: pass array.astype('S') if its text "
            f'is ASCII, else array.astype(h5py.string_dtype())')
    return split, source, array, *comment


def _check_lengths(data: list[Part]) -> None:
    lengths: dict[str, dict[str, int]] = {}
    for split, source, array, *_ in data:
        if source in lengths.setdefault(split, {}):
            raise ValueError(f'source {source!r} is given twice for split '
                             f'{split!r}')
        lengths[split][source] = len(array)
    for split, sources in lengths.items():
        if len(set(sources.values())) > 1:
            raise ValueError(
                f'sources of split {split!r} must have the same number of '
                f'examples, got {sources}')


def _check_arrays(source: str, parts: list[Part]) -> None:
    for name, kind in (('type', [str(part[2].dtype) for part in parts]),
                       ('shape of an example',
                        [str(part[2].shape[1:]) for part in parts])):
        if len(set(kind)) > 1:
            found = {part[0]: value
                     for part, value in zip(parts, kind, strict=True)}
            raise ValueError(f'the {name} of source {source!r} must be the '
                             f'same in all splits, got {found}')


def fill_hdf5_file(h5file: h5py.File, data: Iterable[Iterable[Any]], *,
                   chunk_rows: int | None = None,
                   compression: str | None = None,
                   compression_level: int | None = None) -> None:
    """Fill an HDF5 file so that `H5PYDataset` can read it.

    Parameters
    ----------
    h5file : h5py.File
        A file open for writing.
    data : iterable of tuple
        One tuple for each pair of split and source: ``(split, source,
        array)`` or ``(split, source, array, comment)``. `array` is an array
        of shape ``(examples, ...)``, a list, or an object with such a
        `shape`, a `dtype` and a method ``write(dataset, start)``. The splits
        of a source follow each other on axis 0 in the order given. A
        memory-mapped array or an `h5py.Dataset` is copied piece by piece.
    chunk_rows : int, optional
        Number of examples in a chunk. Defaults to the option of
        ``fuel-convert``. Without that option, there are chunks of about 256 KB
        if there is a compression. Otherwise there are no chunks, since data
        without chunks are the fastest to read.
    compression : str, optional
        HDF5 filter: ``'gzip'`` or ``'lzf'``. Defaults to the option of
        ``fuel-convert``, else to none.
    compression_level : int, optional
        Level of gzip, 0 to 9.

    Raises
    ------
    ValueError
        If the sources of a split differ in length; if the arrays of a source
        differ in type or in the shape of an example; if there are no arrays
        or one is a scalar; or if there is no such filter or level.
    TypeError
        If `chunk_rows` is not an integer, or an array has a text type of
        NumPy.

    Examples
    --------
    >>> import h5py, numpy
    >>> with h5py.File('doctest.hdf5', 'w', driver='core',
    ...                backing_store=False) as h5file:
    ...     fill_hdf5_file(h5file, (
    ...         ('train', 'x', numpy.zeros((3, 2))),
    ...         ('test', 'x', numpy.ones((1, 2)), 'made up')))
    ...     h5file['x'].shape
    (4, 2)
    """
    chosen = (h5file.layout if isinstance(h5file, ConvertedFile)
              else Layout())
    if chunk_rows is not None:
        chosen = replace(chosen, chunk_rows=positive('chunk_rows',
                                                     chunk_rows))
    if compression is not None:
        if isinstance(compression, str) and compression not in COMPRESSIONS:
            raise ValueError(f'compression must be one of {COMPRESSIONS}, '
                             f'got {compression!r}')
        chosen = replace(chosen, compression=compression)
    if compression_level is not None:
        if not chosen.compression:
            raise ValueError(
                f"compression_level needs a compression, such as "
                f"compression='gzip', got {compression_level!r} without one")
        chosen = replace(chosen, compression_level=compression_level)
    _fill(h5file, [_as_part(part) for part in data], chosen)


def _fill(h5file: h5py.File, data: list[Part], layout: Layout) -> None:
    if not data:
        raise ValueError('there must be at least one (split, source, array) '
                         'to fill an HDF5 file with, got none')
    _check_lengths(data)
    sources = {source: [part for part in data if part[1] == source]
               for source in sorted({part[1] for part in data})}
    for source, parts in sources.items():
        _check_arrays(source, parts)
    splits: dict[str, dict[str, Part]] = {part[0]: {} for part in data}
    for source, parts in sources.items():
        first = parts[0][2]
        dataset = create_source(
            h5file, source,
            (sum(len(part[2]) for part in parts), *first.shape[1:]),
            first.dtype, layout)
        start = 0
        for split, _, array, *comment in parts:
            stop = start + len(array)
            if hasattr(array, 'write'):
                array.write(dataset, start)
            else:
                write_rows(dataset, start, array)
            splits[split][source] = (start, stop, None, *comment)
            start = stop
    write_splits(h5file, splits)


def write_splits(h5file: h5py.File,
                 splits: Mapping[str, Mapping[str, tuple[Any, ...]]]) -> None:
    """Write into a file which rows of each source belong to each split.

    Parameters
    ----------
    h5file : h5py.File
        A file open for writing.
    splits : mapping
        For each split and each of its sources a tuple ``(start, stop)``. It
        may also have a reference to indices, and after this a comment; see
        `H5PYDataset.create_split_array`.
    """
    h5file.attrs['split'] = H5PYDataset.create_split_array(splits)


def consecutive(counts: Mapping[str, int], sources: Iterable[str]
                ) -> dict[str, dict[str, tuple[int, int]]]:
    """Return splits for `write_splits`: consecutive ranges of rows, the same
    in all sources.

    `counts`: number of examples of each split.
    """
    names = list(sources)
    return {split: dict.fromkeys(names, (stop - count, stop))
            for (split, count), stop in zip(
                counts.items(), accumulate(counts.values()), strict=True)}


def progress_bar(name: str, maxval: object, prefix: str = 'Converting',
                 in_bytes: bool = False) -> AbstractContextManager[Bar]:
    """Show the progress of a conversion: a bar on a terminal, elsewhere two
    lines.

    Parameters
    ----------
    name : str
        Name of the file that is converted.
    maxval : int
        Number of steps.
    prefix : str, optional
        The task. Default ``'Converting'``.
    in_bytes : bool, optional
        Whether a step is a byte. Default False.

    Returns
    -------
    context manager
        Yields a bar with a method ``update(value)``.
    """
    return progress(f'{prefix} {name}', maxval, in_bytes, in_lines=True)


def write_file(directory: Folder, filename: str, inputs: Iterable[str],
               data: Iterable[Iterable[Any]],
               labels: Mapping[str, Sequence[str]],
               names: Mapping[str, Mapping[
                   str, Sequence[Any] | Mapping[str, Any]]] | None = None
               ) -> tuple[str]:
    """Write a whole converted file.

    Parameters
    ----------
    directory : path-like
        The folder of the file.
    filename : str
        Name of the file.
    inputs : iterable of str
        Paths of the raw files; see `converted_file`.
    data : iterable of tuple
        Splits, sources and arrays; see `fill_hdf5_file`.
    labels : mapping of str to sequence of str
        Labels of the axes of each source; see `label_axes`.
    names : mapping, optional
        A mapping from the name of an attribute, such as ``'class_names'``, to
        a dict from sources to the names in this attribute of the source.
        Default: none.

    Returns
    -------
    tuple of str
        The path of the file.
    """
    with converted_file(directory, filename, inputs) as h5file:
        fill_hdf5_file(h5file, data)
        for kind, sources in (names or {}).items():
            write_names(h5file, kind, sources)
        label_axes(h5file, labels)
    return (os.path.join(directory, filename),)


def write_image_file(directory: Folder, filename: str, inputs: Iterable[str],
                     splits: Iterable[tuple[str, Any, Any]]) -> tuple[str]:
    """Write a whole converted file of images and classes; see `write_file`.

    `splits`: tuples of a split's name, its features and its targets.
    """
    return write_file(
        directory, filename, inputs,
        (part for split, features, targets in splits for part in (
            (split, 'features', features), (split, 'targets', targets))),
        {'features': IMAGES, 'targets': LABELS})
