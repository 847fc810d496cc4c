"""Data sets in files of JSON lines."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack

import numpy
from numpy.typing import NDArray

from fuel.datasets.columns.part_names import fixed_files
from fuel.datasets.json_values import (
    ANYTHING, BLANK, MISSING, TEXT, Keys, ValueKinds, array_of_values,
    fields_in, find_type, in_json, integers_within, known_fields,
    parse_objects, value_at, values_at)
from fuel.datasets.options import DatasetOptions
from fuel.datasets.records import (
    SAMPLE, FirstRecords, RecordFile, RecordIndex, RecordsDataset)
from fuel.datasets.source_dataset import by_source
from fuel.datasets.times import advice_on_times, check_unit
from fuel.describe import SourceType
from fuel.remote.urls import StorageOptions
from fuel.storage.file_bytes import FileBytes
from fuel.suggestions import did_you_mean
from fuel.utils import do_not_pickle_attributes

__all__ = ['JSONLDataset']


@do_not_pickle_attributes('records')
class JSONLDataset(RecordsDataset):
    """A data set in files of JSON lines: one object in each line.

    The file is searched once for the starts of its lines; this index takes 16
    bytes of memory for each line. Then only the lines of a request are read
    and parsed. So the file may be larger than memory. To read numbers in many
    epochs, it is faster to convert the file to HDF5.

    Parameters
    ----------
    path : str, path-like or list of them
        A file in UTF-8, not compressed, its URL, a list of files, or a
        pattern such as ``'data/*.jsonl'``: its files come in natural order.
    columns : dict or list of str, optional
        A dict maps each source to a field or to a list of fields. A list names
        the fields that become sources. A field of a nested object is named by
        its path, such as ``'meta/lang'``. Several fields of numbers become the
        second axis of a batch. Defaults to all fields of the first 1000
        records of each file, with each field of a nested object as a source.
    dtypes : dict, optional
        Maps sources to types. For a source of lists, pass the type of the
        elements. `object` keeps values as ``json.loads`` returns them. A
        source that is not named has the type that fits its first 1000 values
        of each file; see the notes. Times are read from text as
        :class:`~fuel.datasets.CSVDataset` reads them.
    shapes : dict, optional
        Maps sources to the shape of their lists; None in a shape stands for
        any length. Defaults to the shape of the first 1000 lists.
    on_missing : {'raise', 'null'}, optional
        Whether a missing field of a record is an error (the default) or counts
        as null.
    masks : tuple of str, optional
        Sources that may lack values. For each of them there is another source,
        ``NAME_mask``, which is False for null. A source of integers then stays
        a source of integers: null becomes 0. It becomes False in a source of
        truth values, and an empty list or zeros in a source of lists. Defaults
        to none.
    which_sets, splits
        As for :class:`~fuel.datasets.npy.NPYDataset`; rows are counted from
        0, without empty lines.
    storage_options : dict, optional
        For a URL, as for :class:`~fuel.datasets.hdf5.H5PYDataset`.
    **kwargs
        `sources` and `axis_labels`, as for :class:`Dataset`.

    Attributes
    ----------
    num_examples : int
    storage_options : dict or None
        Options without credentials; options with credentials may be
        assigned. None for local files.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If a line is not a JSON object, lacks a field, or has a value of
        another type than its source. The error names file and line.

    Notes
    -----
    Truth values become bool and integers int64. Other numbers, and integers
    beyond int64, become float64, in which null is NaN. Text becomes an array
    of objects, in which null is None. Lists of numbers become an array with a
    further axis if the first 1000 lists have one length; otherwise they become
    an array of objects, with an array for each list. Other lists, and objects
    that are named in `columns`, are kept as ``json.loads`` returns them.

    Examples
    --------
    >>> import os, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, 'notes.jsonl')
    >>> with open(path, 'w') as file:
    ...     print('{"text": "hello", "meta": {"lang": "en", "size": 5}}',
    ...           file=file)
    ...     print('{"text": "hallo", "meta": {"lang": "de", "size": 6}}',
    ...           file=file)
    >>> JSONLDataset(path).sources
    ('text', 'meta/lang', 'meta/size')
    >>> dataset = JSONLDataset(path, {'x': 'text', 'size': 'meta/size'})
    >>> dataset.get_data(None, [1, 0])
    (array(['hallo', 'hello'], dtype=object), array([6, 5]))
    >>> folder.cleanup()
    """

    kind = 'JSON lines'

    def __init__(self, path: Any,
                 columns: Mapping[str, Any] | Sequence[str] | None = None,
                 dtypes: Mapping[str, Any] | None = None,
                 shapes: Mapping[str, Sequence[int | None]] | None = None,
                 on_missing: str = 'raise',
                 masks: Sequence[str] | str = (),
                 which_sets: Sequence[str] | None = None,
                 splits: Mapping[str, Any] | None = None,
                 storage_options: StorageOptions | None = None,
                 **kwargs: Unpack[DatasetOptions]) -> None:
        if on_missing not in ('raise', 'null'):
            raise ValueError(
                f"on_missing must be 'raise' or 'null', got {on_missing!r}")
        self.path = fixed_files('JSONLDataset', path, storage_options)
        self.on_missing = on_missing
        self.load()
        records, sample = self.records, self._sample(SAMPLE)
        self._choose(_fields(columns, sample, records.name), masks,
                     dtypes, shapes=shapes)
        self._shapes = dict(shapes or {})
        super().__init__(
            len(records.index), which_sets, splits, **kwargs)
        self._types: dict[str, SourceType] = {}
        self._find_types(dict.fromkeys(
            self._masks.get(source, source) for source in self.sources),
            sample)

    def _open(self, file: FileBytes) -> RecordFile:
        return RecordFile(
            file, RecordIndex(file, blank=BLANK), parse_objects)

    def _type_of(self, source: str) -> SourceType:
        if source not in self._types:
            self._find_types([source], self._sample(SAMPLE))
        return self._types[source]

    def _find_types(self, sources: Iterable[str],
                    sample: FirstRecords) -> None:
        """Find the types of sources by the first records; a type that the
        user passed is kept."""
        looked_at: dict[str, ValueKinds] = {}
        for source in sources:
            given = self._given_type(source)
            if given == ANYTHING.dtype:
                self._types[source] = ANYTHING
            else:
                looked_at[source] = ValueKinds()
        firsts = {source: self._first_value(source, sample)
                  for source in looked_at if f'{source}_mask' in self._masks}
        for numbers, records in sample if looked_at else ():
            for source, kinds in looked_at.items():
                values = self._values(source, numbers, records)
                kinds.add(values if source not in firsts else _present(
                    values, self._fields[source][1], firsts[source]))
        for source, kinds in looked_at.items():
            self._types[source] = self._type_by(source, kinds.found(), sample)
        floating = [source for source in looked_at
                    if source not in self._given
                    and self._types[source].dtype == float]
        for numbers, records in sample if floating else ():
            for source in floating:
                self._warn_of_rounding(source, integers_within(
                    self._values(source, numbers, records)))

    def _given_type(self, source: str) -> numpy.dtype[Any] | None:
        if source not in self._given:
            return None
        given: numpy.dtype[Any] = numpy.dtype(self._given[source])
        check_unit(given, source)
        return given

    def _first_value(self, source: str, sample: FirstRecords) -> Any:
        """Return the first value of a source that is not null."""
        is_list = self._fields[source][1]
        return next((
            value for numbers, records in sample
            for row in self._values(source, numbers, records)
            for value in (row if is_list else (row,)) if value is not None),
            None)

    def _type_by(self, source: str, found: SourceType | None,
                 sample: FirstRecords) -> SourceType:
        """Return the type of a source.

        `found`: the type of its first values; None if they are of several
            kinds.
        """
        given = self._given_type(source)
        if found is None:
            if given is None:
                raise self._several_kinds(source, sample)
            found = SourceType(given, ())
        if found == ANYTHING and self._fields[source][1]:
            raise ValueError(
                f'{self.records.name}: the fields of source {source!r} cannot '
                f'be one array: they must be numbers; make a source of each, '
                f'with columns=...')
        if source in self._shapes:
            found = found._replace(shape=tuple(self._shapes[source]))
        return found if given is None else SourceType(
            given, found.shape or ())

    def _several_kinds(self, source: str, sample: FirstRecords) -> ValueError:
        """Return the error that a source has values of several kinds."""
        values = ((number, value) for numbers, records in sample
                  for number, value in zip(
                      numbers, self._values(source, numbers, records),
                      strict=True) if value is not None)
        place, first = next(values)
        other, value = next((number, value) for number, value in values
                            if find_type([first, value]) is None)
        return ValueError(
            f'{self.records.where(other)}: source {source!r} has '
            f'{in_json(value)}, but {in_json(first)} in '
            f'{self.records.where(place, other)}, and a source has values of '
            f'one type: pass dtypes={{{source!r}: object}} to take them as '
            f'JSON has them, or leave the source out with sources=...')

    def _values(self, source: str, numbers: Iterable[int],
                records: list[Any]) -> list[Any]:
        fields, is_list = self._fields[source]
        columns = [values_at(records, keys) for keys in fields]
        for keys, values in zip(fields, columns, strict=True):
            if MISSING in values:
                self._replace_missing(source, keys, numbers, records, values)
        return (list(map(list, zip(*columns, strict=True))) if is_list
                else columns[0])

    def _replace_missing(self, source: str, keys: Keys,
                         numbers: Iterable[int], records: list[Any],
                         values: list[Any]) -> None:
        """Replace missing values by None, or raise an error about one."""
        for place, number in enumerate(numbers):
            if values[place] is not MISSING:
                continue
            if self.on_missing == 'raise':
                name = '/'.join(keys)
                known = ['/'.join(one) for one, _ in fields_in(records[place])]
                raise ValueError(
                    f'{self.records.where(number)}: there is no field '
                    f'{name!r}, which source {source!r} reads: '
                    f'{did_you_mean(name, known, "{} ")}the fields are '
                    f"{known}; pass on_missing='null' to take it as null, or "
                    f'leave the source out with sources=...')
            values[place] = None

    def _filled(self, source: str, values: Sequence[Any],
                known: SourceType) -> list[Any]:
        return _with_blanks(values, known, self._fields[source][1])

    def _array(self, source: str, values: Sequence[Any],
               known: SourceType) -> NDArray[Any]:
        return array_of_values(values, known)

    def _integers(self, values: Sequence[Any]) -> Iterable[int]:
        return integers_within(values)

    def _presence(self, source: str, numbers: Iterable[int],
                  records: list[Any]) -> NDArray[numpy.bool_]:
        values = self._values(source, numbers, records)
        if not self._fields[source][1]:
            return numpy.array([value is not None for value in values])
        return numpy.array([[value is not None for value in row]
                            for row in values])

    def _refuse(self, source: str, known: SourceType,
                numbers: NDArray[numpy.intp], values: Sequence[Any],
                records: list[Any]) -> None:
        for number, value in zip(numbers, values, strict=True):
            try:
                array_of_values([value], known)
            except (ValueError, OverflowError) as error:
                what = 'text' if known == TEXT else (
                    f'{known.dtype}' + (f' of shape {known.shape}'
                                        if known.shape else ''))
                remedy = f'pass dtypes={{{source!r}: ...}}'
                if value is not None and known.dtype is not None and (
                        known.dtype.kind == 'M'):
                    remedy = advice_on_times(source, known.dtype)
                if known.shape:
                    remedy += f' or shapes={{{source!r}: (None, ...)}}'
                if value is None or (self._fields[source][1]
                                     and None in value):
                    remedy += (
                        f', or masks=({source!r},), for a source '
                        f'{source}_mask that is False where null is')
                raise ValueError(
                    f'{self.records.where(number)}: source {source!r} is '
                    f'{what} (by its first {SAMPLE} values, but for null, or '
                    f'as given), but here {error}: {remedy}, or leave it out '
                    f'with sources=') from error


def _present(values: list[Any], is_list: bool, first: Any) -> list[Any]:
    """Return the values without missing ones.

    In lists of fields, `first` replaces each missing value.
    """
    if is_list:
        return [[first if value is None else value for value in row]
                for row in values]
    return [value for value in values if value is not None]


def _with_blanks(values: Sequence[Any], known: SourceType,
                 is_list: bool) -> list[Any]:
    """Return values with a blank in the place of null: 0, False, a list, or
    None if the type has no blank."""
    zero: Any = {'b': False, 'i': 0, 'u': 0}.get(
        'O' if known.dtype is None else known.dtype.kind)
    if is_list:
        return [[zero if value is None else value for value in row]
                for row in values]
    blank: Any = zero
    if known.shape:
        blank = [] if None in known.shape else numpy.full(
            [length or 0 for length in known.shape], zero, object).tolist()
    return [blank if value is None else value for value in values]


def _fields(columns: Mapping[str, Any] | Sequence[str] | None,
            sample: FirstRecords, path: str,
            ) -> dict[str, tuple[list[Keys], bool]]:
    """Return, for each source, the keys of its values, and whether the user
    passed a list of fields for it."""
    known = known_fields(sample.records(), path)
    if columns is None:
        columns = list(known)
        if not columns:
            raise ValueError(f'{path} has no fields in its first records')
    found = {}
    for source, wanted in by_source(columns).items():
        is_list = isinstance(wanted, list | tuple)
        found[source] = ([_keys_of(name, known, sample, path) for name in (
            wanted if is_list else [wanted])], is_list)
    return found


def _keys_of(name: object, known: Mapping[str, Keys], sample: FirstRecords,
             path: str) -> Keys:
    """Return the keys of a named field, which may hold an object."""
    if isinstance(name, str):
        if name in known:
            return known[name]
        keys = tuple(name.split('/'))
        if any(value_at(record, keys) not in (None, MISSING)
               for record in sample.records()):
            return keys
    raise ValueError(
        f'{path} has no field {name!r} in its first {sample.count} records: '
        f'{did_you_mean(name, known, "{} ")}the fields are {list(known)}')
