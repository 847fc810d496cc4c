"""Data sets in tar archives, with samples as WebDataset groups them."""
from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import isinf
from typing import Any, Unpack

import numpy
from numpy.typing import NDArray

from fuel.converters.raw.files import BadInputFile
from fuel.converters.raw.tar import BLOCK, Member, Tar, UnreadableMember
from fuel.datasets.decoders import AUDIO, IMAGES
from fuel.datasets.options import DatasetOptions
from fuel.datasets.shards.base import ShardDataset
from fuel.datasets.shards.table import (
    HeaderBlocks, RecordTable, Scanned, Texts, record_table, refuse_many)
from fuel.exceptions import DamagedFileError
from fuel.kernels.tar_headers import read_headers
from fuel.remote.location import beside
from fuel.remote.urls import StorageOptions
from fuel.storage import Reader
from fuel.storage.file_bytes import Ends, FileBytes, raw_file_at
from fuel.storage.layout import native_type
from fuel.storage.npy import npy_array, npy_header
from fuel.storage.spans import ABSENT, FieldReader, FieldType
from fuel.suggestions import did_you_mean
from fuel.utils import do_not_pickle_attributes
from fuel.utils.arguments import try_call
from fuel.utils.checks import refuse_no_dict

__all__ = ['TarDataset']

# The kind of the content of files, by the last part of their extension.
KINDS = {
    **dict.fromkeys(
        ('bmp', 'gif', 'jpeg', 'jpg', 'pbm', 'pgm', 'png', 'ppm', 'tif',
         'tiff', 'webp'), FieldType(stage=IMAGES)),
    **dict.fromkeys(
        ('aif', 'aiff', 'flac', 'mp3', 'oga', 'ogg', 'opus', 'wav'),
        FieldType(stage=AUDIO)),
    **dict.fromkeys(('text', 'transcript', 'txt'),
                    FieldType(decode=bytes.decode)),
    **dict.fromkeys(('jsn', 'json'), FieldType(decode=json.loads))}
TEXT = numpy.dtype(object)
# Kinds of files that are numbers, and their types.
NUMBERS = dict.fromkeys(
    ('cls', 'cls2', 'id', 'index', 'inx'), numpy.dtype('int64'))
# First bytes of archives that are compressed as a whole, and the command that
# decompresses them.
COMPRESSED = {b'\x1f\x8b': ('gzip', 'gunzip'), b'BZh': ('bzip2', 'bunzip2'),
              b'\xfd7zXZ\0': ('xz', 'unxz'),
              b'\x28\xb5\x2f\xfd': ('zstd', 'unzstd')}
# Most arrays of a field whose headers are read to find its type, and the bytes
# that are read of each; as many headers are read to check an index.
PROBES = 8
HEAD = 1 << 12
# The beginning of an index of DALI, most bytes of it, as of 100,000 members,
# since it is parsed in memory, and most bytes of headers before a member.
INDEX = b'v1.2 '
MOST_INDEX = 1 << 23
MOST_HEADERS = 1 << 16
# Members of archives may have any size.
ANY_SIZE = 1 << 63


def split_name(name: str) -> tuple[str, str] | None:
    """Return the key and the extension in the name of a member, as WebDataset
    splits it; None for a member that belongs to no sample.

    Examples
    --------
    >>> split_name('train/0001.seg.PNG')
    ('train/0001', 'seg.png')
    >>> split_name('README') is None
    True
    """
    folder, slash, base = name.rpartition('/')
    stem, _, extension = base.partition('.')
    # The folder takes the place of an empty stem, unless it has a dot.
    if not extension or (not stem and (
            not slash or '.' in folder.rpartition('/')[2])):
        return None
    first = name.partition('/')[0]
    if len(first) > 3 and first[:2] == first[-2:] == '__':
        return None
    return f'{folder}{slash}{stem}', extension.lower()


@do_not_pickle_attributes('readers', 'table')
class TarDataset(ShardDataset):
    """A data set in tar archives, such as those of WebDataset.

    The archives stay as they are. Members that follow each other and have one
    key are a sample. The key is the name of a member, with its folder, up to
    the first dot of its last part; the extension after that dot, in lower
    case, is the name of the field. Members without an extension, and those in
    a folder with a name like ``__this__``, are left out.

    The headers of all members are read when an archive is opened for the first
    time; their places are kept on disk. After that, only the bytes of the
    requested samples are read, in any order. On a server, an index of DALI
    beside the archive is used instead, if the headers of some members agree.

    Parameters
    ----------
    path : str, path-like or list of them
        An archive, its URL, a list of archives, or a pattern such as
        ``'data/*.tar'``. The samples of several archives follow each other;
        the files of a pattern come in natural order.
    columns : dict or list of str, optional
        A dict maps each source to an extension; a list names the extensions
        that become sources. Defaults to all extensions, sorted, and ``'key'``,
        the keys of the samples.
    missing : {'error', 'none'}, optional
        Whether a sample without one of the fields is an error (the default),
        or has None in its place.
    which_sets, splits
        As for :class:`~fuel.datasets.npy.NPYDataset`.
    storage_options : dict, optional
        For URLs, as for :class:`~fuel.datasets.hdf5.H5PYDataset`.
    dtypes : dict, optional
        Maps sources to types that replace those by the extensions: `object` is
        text, and numbers are written as text. Names of classes in ``cls`` are
        read with ``dtypes={'cls': object}``.
    **kwargs
        `sources` and `axis_labels`, as for :class:`Dataset`.

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
        If an archive is compressed, if a sample has an extension twice or
        lacks a field, if a member is a link or sparse, if a field is not what
        its extension says, or if there is no such field. The error names the
        archive and the sample or member.
    DamagedFileError
        If an archive is cut or damaged.

    Notes
    -----
    By the last part of the extension, a field is text (``txt``, ``text``,
    ``transcript``), an int64 (``cls``, ``cls2``, ``index``, ``inx``, ``id``),
    what ``json.loads`` returns (``json``,
    ``jsn``), or an array (``npy``, without pickles). Arrays of one shape are
    one array in a batch; otherwise a batch has an array for each. Other fields
    are bytes. ``print(dataset)`` shows the stages that decode images and
    sounds.

    The same key in another place of the archive is another sample. A pickle
    holds the path, not the samples.

    Examples
    --------
    >>> import io, os, tarfile, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, 'digits.tar')
    >>> with tarfile.open(path, 'w') as archive:
    ...     for name, content in [('a.cls', b'7'), ('a.txt', b'seven'),
    ...                           ('b.cls', b'9'), ('b.txt', b'nine')]:
    ...         member = tarfile.TarInfo(name)
    ...         member.size = len(content)
    ...         archive.addfile(member, io.BytesIO(content))
    >>> dataset = TarDataset(path, {'label': 'cls', 'word': 'txt'})
    >>> dataset.get_data(None, [1, 0])
    (array([9, 7]), array(['nine', 'seven'], dtype=object))
    >>> TarDataset(path).sources
    ('cls', 'txt', 'key')
    >>> folder.cleanup()
    """

    kind = 'tar'
    noun = 'sample'
    # Of older pickles too.
    dtypes: Mapping[str, numpy.dtype[Any]] | None = None

    def __init__(self, path: Any,
                 columns: Mapping[str, str] | Sequence[str] | None = None,
                 missing: str = 'error',
                 which_sets: Sequence[str] | None = None,
                 splits: Mapping[str, Any] | None = None,
                 storage_options: StorageOptions | None = None,
                 dtypes: Mapping[str, Any] | None = None,
                 **kwargs: Unpack[DatasetOptions]) -> None:
        refuse_no_dict('dtypes', dtypes, 'cls')
        if dtypes is not None:
            self.dtypes = {source: _checked_type(source, dtype)
                           for source, dtype in dtypes.items()}
        super().__init__(path, columns, missing, which_sets, splits,
                         storage_options, **kwargs)

    def _own_arguments(self) -> dict[str, Any]:
        shown = {source: dtype.name
                 for source, dtype in (self.dtypes or {}).items()}
        return {**super()._own_arguments(), 'dtypes': shown or None}

    def _make_readers(self, table: RecordTable, files: Sequence[FileBytes],
                      where: Callable[[int], str]) -> dict[str, Reader]:
        readers = super()._make_readers(table, files, where)
        # Keys are always text.
        typed = [source for source, reader in readers.items()
                 if isinstance(reader, FieldReader)]
        for source in self.dtypes or ():
            if source not in typed:
                raise ValueError(
                    f'dtypes names {source!r}, but there is no such source '
                    f'of a field: {did_you_mean(source, typed, "{} ")}these '
                    f'sources are {typed}')
        return readers

    def _find_records(self, files: Sequence[FileBytes]) -> RecordTable:
        return record_table(files, 'tar', partial(
            scan, dict(zip(files, self.shards, strict=True))))

    def _type_of_field(self, source: str, field: str, table: RecordTable,
                       files: Sequence[FileBytes]) -> FieldType:
        kind = field.rpartition('.')[2]
        dtype = (self.dtypes or {}).get(source, NUMBERS.get(kind))
        if dtype is not None:
            return FieldType(decode=bytes.decode) if dtype == TEXT else (
                FieldType(dtype, decode=partial(_number, source, dtype)))
        if kind == 'npy':
            return _type_of_arrays(field, table, files)
        return KINDS.get(kind, FieldType())


def _checked_type(source: str, given: Any) -> numpy.dtype[Any]:
    """Return the type of a source in `dtypes`."""
    # NumPy takes None for float64.
    dtype: numpy.dtype[Any] | None = None if given is None else try_call(
        None, lambda: numpy.dtype(given))
    if dtype is None or (dtype != TEXT and dtype.kind not in 'iuf'):
        raise ValueError(
            f'dtypes: source {source!r} must be object, for text, or a type '
            f'of integers or floating numbers, got {given!r:.80}')
    return dtype


def _number(source: str, dtype: numpy.dtype[Any], content: bytes) -> Any:
    """Return the number that a text states."""
    try:
        number = float(content) if dtype.kind == 'f' else int(content)
    except ValueError as error:
        problem = str(error)
    else:
        if _fits(number, dtype, content):
            return number
        problem = f'{content!r:.60} is too large for {dtype}'
    raise ValueError(
        f'{problem}: pass dtypes={{{source!r}: object}} to read it as text, '
        f'or columns=... without it')


def _fits(number: float, dtype: numpy.dtype[Any], content: bytes) -> bool:
    """Return whether a type holds a number, which a text states."""
    if dtype.kind == 'f':
        with numpy.errstate(over='ignore'):
            return not isinf(dtype.type(number)) or (
                b'inf' in content.lower())
    bits = 8 * dtype.itemsize
    first = -1 << bits - 1 if dtype.kind == 'i' else 0
    return first <= number < first + (1 << bits)


def _type_of_arrays(field: str, table: RecordTable,
                    files: Sequence[FileBytes]) -> FieldType:
    """Return the type of the arrays in a field.

    Arrays of one shape have files of one size, and some are looked at.
    """
    starts, sizes = table.fields[field]
    here = numpy.flatnonzero(starts >= 0)
    places = numpy.linspace(0, len(here) - 1, min(PROBES, len(here)))
    found = set()
    for record in here[places.astype(int)].tolist():
        head = files[table.file_of(record)].read(
            int(starts[record]), min(int(sizes[record]), HEAD))
        try:
            header = npy_header(head)
        except ValueError:
            # The error is raised where the record is read.
            continue
        found.add((native_type(header.dtype), header.shape))
    if len({dtype for dtype, _ in found}) != 1:
        return FieldType(decode=npy_array)
    (dtype, shape), *others = found
    if others or (sizes[here] != sizes[here[0]]).any():
        return FieldType(decode=partial(_array_like, dtype, None),
                         elements=dtype)
    return FieldType(dtype, shape, partial(_array_like, dtype, shape))


def _array_like(dtype: numpy.dtype[Any], shape: tuple[int, ...] | None,
                content: bytes) -> NDArray[Any]:
    """Return the array in a file; raise ValueError if it has another type, or
    another shape, than the first ones."""
    array = npy_array(content)
    if array.dtype != dtype or (shape is not None and array.shape != shape):
        of_shape = '' if shape is None else f' of shape {shape}'
        raise ValueError(
            f'the arrays are {dtype}{of_shape} by the first ones, and this '
            f'one is {array.dtype} of shape {array.shape}: leave the field '
            f'out with columns=..., or write arrays of one type and shape')
    return array


class _Stream:
    """A file as :class:`Tar` reads it."""

    def __init__(self, file: FileBytes) -> None:
        self._file, self._place = file, 0

    def seek(self, place: int, whence: int = 0) -> int:
        self._place = place
        return place

    def read(self, size: int = -1) -> bytes:
        content = self._file.read(self._place, size)
        self._place += len(content)
        return content


def _indexed(file: FileBytes,
             path: str) -> list[tuple[str, int, int]] | None:
    """Return the regular files in an archive, as the index of DALI beside it
    lists them; None if there is no index, or if it does not fit.

    DALI's wds2idx leaves out links, and states wrong places for the long names
    of GNU. So members must follow each other, and the headers of the first one
    after each size of headers, and of some others, must be those of the index.
    """
    try:
        index = raw_file_at(beside(path, '.idx'))
        rows = index.read(0, index.size) if index.size < min(
            file.size, MOST_INDEX) and (
                index.read(0, len(INDEX)) == INDEX) else b''
        words = rows.split()[2:]
        names = words[3::4]
        starts, sizes = (numpy.array([*map(int, words[place::4])], numpy.int64)
                         for place in (1, 2))
    except (OSError, ValueError, OverflowError):
        return None
    # A name with a space is several words, and other signs may be escaped.
    if len(words) % 4 or not names or b'\\' in rows or (
            (sizes < 0).any() or (sizes > file.size).any()):
        return None
    ends = starts + -(-sizes // BLOCK) * BLOCK
    before = numpy.append(0, ends[:-1])
    gaps, firsts = numpy.unique(starts - before, return_index=True)
    if gaps[-1] > MOST_HEADERS:
        return None
    found = [*zip(names, starts.tolist(), sizes.tolist(), strict=True)]
    for number in {*firsts.tolist(), *numpy.linspace(
            0, len(found) - 1, PROBES, dtype=int).tolist()}:
        place = int(before[number])
        if read_headers(file.read(place, found[number][1] - place), place,
                        file.size)[0] != [found[number]]:
            return None
    members = [(name.decode(errors='surrogateescape'), start, size)
               for name, start, size in found]
    # Others may have been added at the end.
    return None if any(_members(
        file, int(ends[-1]), members[-1][0])) else members


def _members(file: FileBytes, place: int = 0,
             before: str = '') -> Iterator[tuple[str, int, int]]:
    """Iterate over the regular files in an archive: name, address and size.

    The bytes of large members are skipped, and those of small ones are read,
    in blocks that grow.

    `place`: the address of the first header that is read.
    `before`: name of the member before, for errors.
    """
    head = file.read(0, 8)
    for magic, (name, command) in COMPRESSED.items():
        if head.startswith(magic):
            raise ValueError(
                f'{file.path} is compressed with {name}, and samples are read '
                f'at their places, in any order: decompress it with '
                f'{command}')
    blocks = HeaderBlocks(file)
    while True:
        found, after = read_headers(blocks.read(place), place, file.size)
        for content, start, length in found:
            before = content.decode(errors='surrogateescape')
            yield before, start, length
        if after == place:
            member = _next_member(file, place, before)
            if member is None:
                _check_end(file, place, before)
                return
            yield member
            before = member.name
            after = member.offset + -(-member.size // BLOCK) * BLOCK
        place = after


def _check_end(file: FileBytes, place: int, before: str) -> None:
    """Raise DamagedFileError if one block of zeros has something behind it:
    two are the end of an archive."""
    block = file.read(place, 2 * BLOCK)
    if not block[:BLOCK].strip(b'\0') and block[BLOCK:].strip(b'\0'):
        after = f', after the member {before!r}' if before else ''
        raise DamagedFileError(
            f'{file.path}{after}: there are zeros in the place of a header, '
            f'at byte {place}, and more behind them: restore it from its '
            f'origin')


def _next_member(file: FileBytes, place: int, before: str) -> Member | None:
    """Return the next regular file of an archive; None at its end.

    `place`: the address of a header.
    `before`: name of the member before, for errors.
    """
    try:
        return next(Tar(_Stream(file), file.path, place, file.size).walk(
            ANY_SIZE, is_unpacked=False), None)
    except UnreadableMember as error:
        raise ValueError(
            f'{file.path}: {error.problem}, and samples are regular files: '
            f'write the archive without it') from error
    except BadInputFile as error:
        after = f', after the member {before!r}' if before else ''
        raise DamagedFileError(
            f'{file.path}{after}: {error.problem}: restore it from its origin'
        ) from error


def scan(paths: Mapping[FileBytes, str], file: FileBytes) -> Scanned:
    """Find the samples of an archive, whose path is in `paths`.

    On a local disk, all headers are read in the time that an index takes.
    """
    members = _indexed(file, paths[file]) if file.is_remote else None
    fields: dict[str, tuple[list[int], list[int], list[int]]] = {}
    keys: list[bytes] = []
    last = None
    for name, start, size in members or _members(file):
        split = split_name(name)
        if split is None:
            continue
        key, extension = split
        if key != last:
            last = key
            keys.append(key.encode(errors='surrogateescape'))
        numbers, starts, sizes = fields.setdefault(extension, ([], [], []))
        if numbers and numbers[-1] == len(keys) - 1:
            raise ValueError(
                f'{file.path}, sample {key!r}: there are two members with the '
                f'extension {extension!r}, the second is {name!r}: '
                f'write the archive with different extensions')
        numbers.append(len(keys) - 1)
        starts.append(start)
        sizes.append(size)
    refuse_many(file.path, fields)
    return Scanned(len(keys), {
        name: _full(len(keys), *found) for name, found in fields.items()},
        Texts.of(keys))


def _full(count: int, numbers: list[int], starts: list[int],
          sizes: list[int]) -> tuple[Ends, Ends]:
    """Return the places of a field in all of `count` samples, from those in
    the samples that have it."""
    places = numpy.full(count, ABSENT, numpy.int64)
    lengths = numpy.zeros(count, numpy.int64)
    places[numbers], lengths[numbers] = starts, sizes
    return places, lengths
