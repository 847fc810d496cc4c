"""Values of JSON documents: find them by keys, find their types, and convert
them to arrays.

The type of a source is a :class:`SourceType`. For text, its shape is ``()``
and its dtype `object`. For lists of any length, the shape is ``(None,)``. For
values that are kept as ``json.loads`` returns them, the shape is None.
"""
from __future__ import annotations

import codecs
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import accumulate, chain, pairwise
from typing import IO, Any, TypeAlias

import numpy
from numpy.typing import NDArray

from fuel.datasets.rows import own
from fuel.datasets.times import as_times
from fuel.describe import SourceType

#: The keys that lead to a value.
Keys: TypeAlias = tuple[str, ...]
TEXT = SourceType(numpy.dtype(object), ())
ANYTHING = SourceType(numpy.dtype(object), None)
# Types of the values that an element of a kind of dtype may have.
ALLOWED: dict[str, tuple[type, ...]] = {
    'b': (bool,), 'i': (int,), 'u': (int,), 'f': (int, float, type(None)),
    'c': (int, float, type(None)), 'M': (str, type(None)), 'U': (str,),
    'S': (str,), 'O': (str, type(None))}
NAMES = {bool: 'a truth value', int: 'an integer', float: 'a number',
         str: 'text', list: 'a list', dict: 'an object', type(None): 'null'}
# Far below Python's limit of recursion.
MOST_LEVELS = 200
TOO_DEEP = (f'it is nested more than {MOST_LEVELS} levels deep, and no deeper '
            f'values are read: write it flatter, or as text')
# Most axes of an example: all releases of NumPy have arrays of 32 axes, and
# one of them is the axis of the batch.
MOST_AXES = 31
# First bytes of a line that are read to see whether it may be an object.
HEAD = 4096
# White space between two objects of JSON.
BLANK = b' \t\r\n'
BLANKS = BLANK.decode()
DECODER = json.JSONDecoder()
# Stands for the value of a key that an object lacks.
MISSING = object()


def parse_object(content: bytes) -> dict[str, Any]:
    """Return the JSON object in one line.

    Raises: ValueError if the line does not hold an object.
    """
    try:
        found = json.loads(content.decode('utf-8'))
    except json.JSONDecodeError as error:
        raise ValueError(
            f'invalid JSON: {error.msg}, at character {error.pos + 1} of the '
            f'line: each line must hold one object, {{...}}') from error
    except RecursionError as error:
        raise ValueError(TOO_DEEP) from error
    # There are at least as many brackets as levels.
    if content.count(b'[') + content.count(b'{') > MOST_LEVELS:
        _check_levels(found)
    if not isinstance(found, dict):
        raise ValueError(f'each line must hold one object, {{...}}, got '
                         f'{NAMES[type(found)]}')
    return found


def parse_objects(contents: Sequence[bytes]) -> list[dict[str, Any]]:
    """Return the JSON objects in some lines; faster than one call for each.

    Raises: ValueError if a line is bad. For a single line, it is the error of
        `parse_object`.
    """
    if len(contents) == 1:
        return [parse_object(contents[0])]
    texts = [content.decode('utf-8').strip(BLANKS) for content in contents]
    try:
        decoded = list(map(DECODER.raw_decode, texts))
    except RecursionError as error:
        raise ValueError(TOO_DEEP) from error
    found = [value for value, _ in decoded]
    if not {dict}.issuperset(map(type, found)) or (
            [end for _, end in decoded] != list(map(len, texts))):
        raise ValueError('each line must hold one object, {...}')
    for value, content in zip(found, contents, strict=True):
        # There are at least as many brackets as levels.
        if content.count(b'[') + content.count(b'{') > MOST_LEVELS:
            _check_levels(value)
    return found


def is_object(line: bytes) -> bool:
    """Return whether a line is a JSON object that has fields."""
    line = line.removeprefix(codecs.BOM_UTF8).strip()
    if not (line.startswith(b'{') and line.endswith(b'}')):
        return False
    try:
        return bool(parse_object(line))
    except ValueError:
        return False


def begins_with_object(stream: IO[bytes]) -> bool:
    """Return whether the first line of a file is a JSON object with fields.

    A long line is read whole only if it begins with a brace.
    """
    head = stream.readline(HEAD)
    if not head.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b'{'):
        return False
    return is_object(head if head.endswith(b'\n')
                     else head + stream.readline())


def _check_levels(value: Any) -> None:
    """Raise a ValueError if a value is nested too deeply."""
    levels, level = 0, [value]
    while level := [each for part in level if isinstance(part, (dict, list))
                    for each in (part.values() if isinstance(part, dict)
                                 else part)]:
        levels += 1
        if levels > MOST_LEVELS:
            raise ValueError(TOO_DEEP)


def fields_in(record: Mapping[str, Any], above: Keys = (),
           ) -> list[tuple[Keys, Any]]:
    """Return the keys and the value of each field in an object.

    A nested object is replaced by its own fields, unless it is empty.

    `above`: the keys that lead to the object.
    """
    found: list[tuple[Keys, Any]] = []
    for key, value in record.items():
        if isinstance(value, dict) and value:
            found += fields_in(value, (*above, key))
        else:
            found.append(((*above, key), value))
    return found


def known_fields(records: Iterable[Any], path: str) -> dict[str, Keys]:
    """Return a dict from the names of the fields in records to their keys.

    Raises: ValueError if two fields have one name.
    """
    known: dict[str, Keys] = {}
    with_values: set[str] = set()
    for record in records:
        for keys, value in fields_in(record):
            name = '/'.join(keys)
            if known.setdefault(name, keys) != keys:
                raise ValueError(
                    f'{path}: two fields are called {name!r}, that of the '
                    f'keys {list(known[name])} and that of {list(keys)}')
            if not (value is None or value == {}):
                with_values.add(name)
    within = {'/'.join(keys[:end]) for keys in known.values()
              for end in range(1, len(keys))}
    # Null in the place of a nested object is not a field.
    return {name: keys for name, keys in known.items()
            if name in with_values or name not in within}


def value_at(record: Any, keys: Keys) -> Any:
    """Return the value that keys lead to in an object, or `MISSING`.

    If the value of a key before the last is null, the result is None.
    """
    return values_at([record], keys)[0]


def values_at(records: Sequence[Any], keys: Keys) -> list[Any]:
    """Return the value that keys lead to in each object; see `value_at`."""
    found = records
    for key in keys:
        found = [None if one is None else one.get(key, MISSING)
                 if isinstance(one, dict) else MISSING for one in found]
    return list(found)


class ValueKinds:
    """Finds the type of values that are added in parts; see `find_type`."""

    def __init__(self) -> None:
        self._kinds: set[type] = set()
        # Types of the elements of lists, and the shapes of the lists.
        self._elements: set[type] = set()
        self._shapes: set[tuple[int, ...]] = set()
        self._ndim = 0
        self._has_empty = self._is_uneven = False

    def add(self, values: Iterable[Any]) -> None:
        """Add further values, which the type must fit too."""
        values = list(values)
        kinds = _kinds_of(values)
        self._kinds |= kinds
        if list in kinds and not self._is_uneven:
            self._add_lists([one for one in values if type(one) is list])

    def _add_lists(self, values: list[list[Any]]) -> None:
        elements = _kinds_of(list(chain.from_iterable(values)))
        if list in elements:
            for value in values:
                if not self._is_uneven:
                    self._add_list(value)
            return
        self._elements |= elements
        self._ndim = max(self._ndim, 1)
        lengths = set(map(len, values))
        self._has_empty |= 0 in lengths
        self._shapes.update((length,) for length in lengths if length)

    def _add_list(self, value: list[Any]) -> None:
        ndim = _depth(value)
        self._ndim = max(self._ndim, ndim)
        try:
            shape = _shape_of(value, ndim, self._elements)
        except ValueError:
            self._is_uneven = True
            return
        if shape[-1]:
            self._shapes.add(shape)
        else:
            self._has_empty = True

    def found(self) -> SourceType | None:
        """Return the narrowest type that fits the values; None if they are
        of several kinds."""
        kinds = self._kinds - {type(None)}
        if kinds == {list}:
            return self._type_of_lists() or ANYTHING
        if kinds == {dict}:
            return ANYTHING
        dtype = _type_of_kinds(self._kinds)
        return None if dtype is None else SourceType(dtype, ())

    def _type_of_lists(self) -> SourceType | None:
        """Return the type of lists of numbers; None if they have other
        elements, or nested lists of different lengths."""
        if self._is_uneven or self._ndim > MOST_AXES or any(
                len(shape) != self._ndim for shape in self._shapes):
            return None
        if not self._shapes:
            return SourceType(
                numpy.dtype('float64'), (None,) * self._ndim)
        dtype = _type_of_kinds(self._elements)
        if dtype is None or dtype.hasobject:
            return None
        shape = tuple([lengths.pop() if len(lengths) == 1 else None
                       for lengths in map(set, zip(
                           *self._shapes, strict=True))])
        return SourceType(
            dtype, (None, *shape[1:]) if self._has_empty else shape)


def _kinds_of(values: Sequence[Any]) -> set[type]:
    """Return the types of values.

    An integer beyond int64 counts as a floating number too, as in CSV.
    """
    kinds = set(map(type, values))
    if int in kinds:
        integers = values if kinds == {int} else [
            value for value in values if type(value) is int]
        if min(integers) < -1 << 63 or max(integers) >= 1 << 63:
            kinds.add(float)
    return kinds


def integers_within(values: Iterable[Any]) -> Iterator[int]:
    """Yield the integers among values and in nested lists."""
    for value in values:
        if isinstance(value, list):
            yield from integers_within(value)
        elif type(value) is int:
            yield value


def find_type(values: Iterable[Any]) -> SourceType | None:
    """Return the narrowest type that fits the values; None if they are of
    several kinds."""
    kinds = ValueKinds()
    kinds.add(values)
    return kinds.found()


def _type_of_kinds(kinds: AbstractSet[type]) -> numpy.dtype[Any] | None:
    """Return the dtype for scalars of some types; None if no dtype fits."""
    if kinds <= {str, type(None)}:
        return TEXT.dtype
    if kinds - {type(None)} == {bool}:
        return numpy.dtype(bool)
    if kinds <= {int, float, type(None)}:
        return numpy.dtype('int64' if kinds == {int} else 'float64')
    return None


def _shape_of(value: list[Any], ndim: int,
              kinds: set[type]) -> tuple[int, ...]:
    """Return the shape of nested lists, and add the types of their elements to
    the set `kinds`; see `nested_elements`."""
    shape, level = [len(value)], value
    for _ in range(ndim - 1):
        lengths = set(map(len, level)) if (
            set(map(type, level)) <= {list}) else {0, 1}
        if len(lengths) > 1:
            raise ValueError('its parts are not lists of one length')
        shape.append(lengths.pop() if lengths else 0)
        level = list(chain.from_iterable(level))
    kinds |= _kinds_of(level)
    return tuple(shape)


def _depth(value: Any) -> int:
    """Return the number of axes of nested lists; only their first elements are
    examined."""
    axes = 0
    while isinstance(value, list):
        axes += 1
        value = value[0] if value else None
    return axes


def nested_elements(value: Any, ndim: int,
                    ) -> tuple[list[Any], tuple[int, ...]]:
    """Return the elements of nested lists, and the shape of the lists.

    `ndim`: number of axes.

    Raises: ValueError if the lists have fewer axes, or if two lists of one
        level have different lengths.
    """
    if not isinstance(value, list):
        raise ValueError('it is null' if value is None else
                         f'{in_json(value)} is {NAMES[type(value)]}, and no '
                         'list')
    if ndim == 1:
        return value, (len(value),)
    parts = [nested_elements(part, ndim - 1) for part in value]
    shapes = {shape for _, shape in parts}
    if len(shapes) > 1:
        raise ValueError(f'{in_json(value)} has lists of different lengths')
    below = shapes.pop() if shapes else (0,) * (ndim - 1)
    return (list(chain.from_iterable(elements for elements, _ in parts)),
            (len(value), *below))


def array_of_values(values: Sequence[Any], known: SourceType) -> NDArray[Any]:
    """Return values of a type as an array, with one row for each value.

    Raises: ValueError or OverflowError if a value is not of the type.
    """
    if known.shape is None:
        return _objects(map(own, values))
    if not known.shape:
        return _elements(values, known.dtype)
    even = None if None in known.shape else _flattened(values, known.shape)
    if even is not None:
        batch: NDArray[Any] = _elements(even, known.dtype).reshape(
            len(values), *known.shape)
        return batch
    parts = [_list_of(value, known.shape) for value in values]
    flat = _elements(
        list(chain.from_iterable(elements for elements, _ in parts)),
        known.dtype)
    if None not in known.shape:
        return flat.reshape(len(values), *known.shape)
    borders = pairwise(accumulate(
        [len(elements) for elements, _ in parts], initial=0))
    return _objects(
        flat[start:stop].reshape(shape).copy()
        for (start, stop), (_, shape) in zip(borders, parts, strict=True))


def _flattened(values: Sequence[Any], shape: Iterable[int | None],
               ) -> list[Any] | None:
    """Return the elements of nested lists that all have the given shape; None
    if one has another shape."""
    level = list(values)
    for length in shape:
        if not ({list}.issuperset(map(type, level))
                and {length}.issuperset(map(len, level))):
            return None
        level = list(chain.from_iterable(level))
    return level


def _list_of(value: Any, expected: tuple[int | None, ...],
             ) -> tuple[list[Any], tuple[int, ...]]:
    """Return the elements of nested lists, and the shape of the lists.

    `expected`: the shape that they must have; None stands for any length.
    """
    elements, shape = nested_elements(value, len(expected))
    if not shape[0]:
        shape = (0, *[length or 0 for length in expected[1:]])
    if any(length not in (None, there) for length, there in zip(
            expected, shape, strict=True)):
        raise ValueError(
            f'{in_json(value)} has the shape {shape}, and not {expected}')
    return elements, shape


def _objects(values: Iterable[Any]) -> NDArray[Any]:
    parts = list(values)
    batch = numpy.empty(len(parts), object)
    for place, part in enumerate(parts):
        batch[place] = part
    return batch


def _elements(values: Sequence[Any],
              dtype: numpy.dtype[Any] | None) -> NDArray[Any]:
    """Return scalars as an array."""
    if dtype is None:
        raise TypeError('the type of the values is not known')
    allowed = ALLOWED.get(dtype.kind, ())
    if not set(map(type, values)).issubset(allowed):
        wrong = next(value for value in values
                     if type(value) not in allowed)
        raise ValueError('it is null' if wrong is None else
                         f'{in_json(wrong)} is {NAMES[type(wrong)]}')
    if dtype.kind == 'O':
        return _objects(values)
    if dtype.kind in 'iu' and len(values):
        info = numpy.iinfo(dtype)
        for value in (min(values), max(values)):
            if not info.min <= value <= info.max:
                raise OverflowError(f'{value} is outside of {dtype}')
    if dtype.kind in 'US' and dtype.itemsize and len(values):
        room = dtype.itemsize // numpy.dtype(f'{dtype.kind}1').itemsize
        longest = max(values, key=len)
        if len(longest) > room:
            raise ValueError(f'{in_json(longest)} is longer')
    if dtype.kind == 'M':
        return as_times(values, dtype)
    return numpy.array(values, dtype)


def in_json(value: Any) -> str:
    """Return a value in JSON, shortened if it is long."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f'{text[:57]}...'
