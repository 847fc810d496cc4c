"""Fuel's own format of HDF5 files: the ``split`` attribute, and the sources.

The attribute says which rows of each source belong to a split. The functions
here make it and read it.
"""
from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any, NamedTuple, TypeAlias

import h5py
import numpy

from fuel.datasets.row_orders import (
    Order, RowsOf, concatenate, length, same, simplify)
from fuel.datasets.splits import order_of_splits, refuse_unknown_splits
from fuel.describe.source_types import SourceType
from fuel.storage.attributes import read_attribute, read_text
from fuel.suggestions import did_you_mean
from fuel.utils.checks import in_order
from fuel.utils.hdf5_errors import names_file

#: For each split and source: start, stop, perhaps indices and a comment.
Splits: TypeAlias = Mapping[str, Mapping[str, Sequence[Any]]]
# Names of the scales with the shapes of examples of variable length, and the
# labels of their axes.
SHAPES = ('shapes', 'shape_labels')
# Name of the attribute with the sizes and checksums of the raw files.
INPUTS_ATTRIBUTE = 'fuel_convert_inputs'


def split_array(split_dict: Splits) -> Any:
    """Make the value of the attribute ``split``; see `H5PYDataset`."""
    for split, content in split_dict.items():
        if not isinstance(content, Mapping):
            raise ValueError(
                f'split {split!r} must map names of sources to (start, '
                f'stop), got {content!r}: write {{{split!r}: '
                f"{{'features': {content!r}}}}}")
    if not any(split_dict.values()):
        raise ValueError(
            'split_dict must map split names to sources, such as '
            "{'train': {'features': (0, 8)}}, got " + repr(split_dict))
    sources = sorted({source for split in split_dict.values()
                      for source in split})
    rows = [_row(split, source, content.get(source))
            for split, content in split_dict.items() for source in sources]
    array = numpy.zeros(len(rows), dtype=[
        ('split', numpy.array([row[0] for row in rows]).dtype),
        ('source', numpy.array([row[1] for row in rows]).dtype),
        ('start', numpy.int64),
        ('stop', numpy.int64),
        ('indices', h5py.ref_dtype),
        ('available', numpy.bool_),
        ('comment', numpy.array([row[6] for row in rows]).dtype)])
    for place, row in enumerate(rows):
        array[place] = row
    return array


def _row(split: str, source: str,
         content: Sequence[Any] | None) -> tuple[Any, ...]:
    names = split.encode('utf8'), source.encode('utf8')
    if content is None:
        return (*names, 0, 0, h5py.Reference(), False, b'.')
    if not isinstance(content, Sequence) or not 2 <= len(content) <= 4:
        raise ValueError(
            f'expected (start, stop), (start, stop, indices) or (start, '
            f'stop, indices, comment) for source {source!r} in split '
            f'{split!r}, got {content!r}')
    start, stop, indices, comment = (*content, None, None)[:4]
    for border in (start, stop):
        if not isinstance(border, Integral):
            raise ValueError(
                f'start and stop of source {source!r} in split {split!r} '
                f'must be integers, got {content!r}')
    if not indices and not 0 <= start <= stop:
        raise ValueError(
            f'source {source!r} in split {split!r} must start at 0 or later '
            f'and stop no earlier than it starts, got {content!r}')
    # NumPy and HDF5 disagree on empty strings, so none is ever written.
    return (*names, start, stop, indices or h5py.Reference(), True,
            (comment or '.').encode('utf8'))


class Part(NamedTuple):
    """An entry of the ``split`` attribute, of one source in one split."""

    split: str
    source: str
    start: int
    stop: int
    indices: Any
    available: bool


def read_parts(h5file: h5py.File) -> list[Part]:
    """Return the entries of a file's ``split`` attribute, in its order."""
    if 'split' not in h5file.attrs:
        raise ValueError(
            f"{h5file.filename!r} has no attribute 'split', which says what "
            "the splits are; set it with file.attrs['split'] = "
            'H5PYDataset.create_split_array(...); fuel-info prints how')
    array = h5file.attrs['split']
    fields = ('split', 'source', 'start', 'stop', 'indices', 'available')
    names = getattr(getattr(array, 'dtype', None), 'names', None) or ()
    missing = [field for field in fields if field not in names]
    if missing:
        raise ValueError(
            f"the attribute 'split' of {h5file.filename!r} has no field "
            f'{missing[0]!r}; make it with H5PYDataset.create_split_array')
    return [_read_part(row) for row in numpy.atleast_1d(array)]


def _read_part(row: Any) -> Part:
    return Part(_text(row['split']), _text(row['source']),
                int(_scalar(row['start'])), int(_scalar(row['stop'])),
                _scalar(row['indices']), bool(_scalar(row['available'])))


def _scalar(value: Any) -> Any:
    if isinstance(value, numpy.ndarray):
        return value.reshape(()).item()
    return value


def _text(value: Any) -> str:
    value = _scalar(value)
    return value.decode('utf8') if isinstance(value, bytes) else str(value)


@names_file
def all_splits(h5file: h5py.File) -> tuple[str, ...]:
    """Return the names of all splits, in the order of the attribute."""
    return tuple(dict.fromkeys(part.split for part in read_parts(h5file)))


@names_file
def all_sources(h5file: h5py.File) -> tuple[str, ...]:
    """Return the names of all sources, in alphabetical order."""
    return tuple(sorted({part.source for part in read_parts(h5file)}))


@names_file
def provided_sources(h5file: h5py.File, split: str) -> tuple[str, ...]:
    """Return the sources that a split has, in alphabetical order."""
    return tuple(sorted({part.source for part in read_parts(h5file)
                         if part.split == split and part.available}))


def checked_names(names: object, argument: str = 'which_sets',
                  kind: str = 'split') -> tuple[str, ...]:
    """Return names of splits, or sources, as a tuple."""
    if isinstance(names, (str, bytes)):
        raise ValueError(
            f'{argument} must be a tuple of {kind} names, got the string '
            f'{names!r}: write ({names!r},)')
    if not isinstance(names, Iterable):
        raise ValueError(
            f'{argument} must be a tuple of {kind} names, got {names!r}; '
            f'H5PYDataset.get_all_{kind}s(file) returns the {kind}s of a '
            f'file')
    in_order(argument, names)
    checked = tuple(names)
    if not checked:
        raise ValueError(
            f'{argument} must name at least one {kind}, got {names!r}')
    return checked


@names_file
def check_splits(h5file: h5py.File, which_sets: Iterable[str]) -> None:
    """Raise ValueError for the first name that is not a split of the file."""
    refuse_unknown_splits(
        which_sets, all_splits(h5file), repr(h5file.filename))


@names_file
def stored_rows(h5file: h5py.File, which_sets: Sequence[str],
                sources: Sequence[str]) -> list[RowsOf]:
    """Return the rows of each source, split after split."""
    check_splits(h5file, which_sets)
    parts = read_parts(h5file)
    orders: dict[str, list[Order]] = {source: [] for source in sources}
    for split in which_sets:
        found = _orders_of_split(h5file, parts, split, sources)
        _check_lengths(h5file, split, {s: found[s] for s in sources})
        # The loop is not over `sources`, which may name a source twice.
        for source, order in orders.items():
            order.append(found[source])
    return [RowsOf(concatenate(orders[source]),
                   _num_rows(h5file, source, parts)) for source in sources]


def _orders_of_split(h5file: h5py.File, parts: list[Part], split: str,
                     sources: Sequence[str]) -> dict[str, Order]:
    """Return the rows of a split's sources, paired by position.

    If all sources of the split have the same list of indices, the rows are
    read in ascending order. Otherwise the rows of the sources are paired in
    the order of the indices, and that order is kept. All sources of the split
    are compared, so that the order does not depend on the requested sources.
    """
    members = {part.source: part for part in parts
               if part.split == split and part.available}
    for source in sources:
        if source not in members:
            hint = did_you_mean(source, members, ' ({})')
            raise ValueError(
                f'split {split!r} of {h5file.filename!r} has no source '
                f'{source!r}{hint}')
    if not any(part.indices for part in members.values()):
        return {source: _range_of(h5file, members[source], parts)
                for source in sources}
    orders = {source: _order_of(h5file, part, parts)
              for source, part in members.items()}
    first, *rest = orders.values()
    if all(same(first, other) for other in rest):
        shared = first if isinstance(first, slice) else numpy.unique(first)
        return dict.fromkeys(orders, shared)
    return orders


def _order_of(h5file: h5py.File, part: Part, parts: list[Part]) -> Order:
    if not part.indices:
        return _range_of(h5file, part, parts)
    indices = h5file[part.indices][...]
    where = f'the indices of {_describe(h5file, part)}'
    if indices.ndim != 1 or indices.dtype.kind not in 'iu':
        raise ValueError(
            f'{where} should be a one-dimensional data set of integers, not '
            f'of shape {indices.shape} and type {indices.dtype}')
    num_rows = _num_rows(h5file, part.source, parts)
    wrong = indices[(indices < 0) | (indices >= num_rows)]
    if len(wrong):
        raise ValueError(f'{where} hold {wrong[0]}, but the source has rows '
                         f'0 to {num_rows - 1}')
    return simplify(indices.astype(numpy.intp))


def _range_of(h5file: h5py.File, part: Part, parts: list[Part]) -> slice:
    num_rows = _num_rows(h5file, part.source, parts)
    if not 0 <= part.start <= part.stop <= num_rows:
        raise ValueError(
            f'{_describe(h5file, part)} has rows {part.start} to '
            f'{part.stop}, but the source has {num_rows} rows')
    return slice(part.start, part.stop)


def _describe(h5file: h5py.File, part: Part) -> str:
    return (f'source {part.source!r} in split {part.split!r} of '
            f'{h5file.filename!r}')


def _num_rows(h5file: h5py.File, source: str, parts: list[Part]) -> int:
    node = h5file.get(source)
    if isinstance(node, h5py.Dataset) and node.shape:
        return int(node.shape[0])
    if isinstance(node, h5py.Group):
        # The number of rows of a group is known only to the subclass that
        # reads it.
        return max(_end(h5file, part) for part in parts
                   if part.source == source and part.available)
    raise ValueError(
        f'{h5file.filename!r} should have a data set {source!r} with one row '
        f"for each example, since its attribute 'split' names it; it has "
        f'{node!r}')


def _end(h5file: h5py.File, part: Part) -> int:
    if part.indices:
        return int(h5file[part.indices][...].max(initial=-1)) + 1
    return part.stop


def _check_lengths(h5file: h5py.File, split: str,
                   orders: Mapping[str, Order]) -> None:
    lengths = {source: length(order) for source, order in orders.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(
            f'the sources of split {split!r} of {h5file.filename!r} have '
            'different lengths, so their examples are not pairs: '
            + ', '.join(f'{source!r} has {n}'
                        for source, n in lengths.items()))


@names_file
def plain_sources(h5file: h5py.File,
                  wanted: Sequence[str]) -> tuple[str, ...]:
    """Return the sources of a file that does not name splits: the arrays of
    one length in the root group, in alphabetical order.

    `wanted`: names of arrays. If arrays differ in length, the length of one of
        these is chosen.
    """
    if 'split' in h5file.attrs:
        raise ValueError(
            f"{h5file.filename!r} has the attribute 'split', which says what "
            f'the splits are: leave out splits=, and name some of '
            f'{all_splits(h5file)} as which_sets')
    lengths: dict[int, list[str]] = {}
    names = list(h5file)
    # Names that h5py cannot decode.
    strange = [name for name in names if isinstance(name, bytes)]
    if strange:
        raise ValueError(
            f'{h5file.filename!r}: the name {strange[0]!r} is not UTF-8, so '
            'it cannot be that of a source')
    for name in sorted(names):
        node = h5file.get(name)
        if isinstance(node, h5py.Dataset) and node.shape and (
                _text(read_attribute(node, 'NAME')) not in SHAPES):
            lengths.setdefault(len(node), []).append(name)
    for names in lengths.values():
        if len(lengths) == 1 or {*wanted} & {*names}:
            return tuple(names)
    if not lengths:
        raise ValueError(
            f'{h5file.filename!r} has no arrays in its root group; '
            f'HDF5Dataset reads those of other groups')
    raise ValueError(
        f'the arrays of {h5file.filename!r} have different lengths, so their '
        f'rows are not examples: ' + '; '.join(
            f'{", ".join(map(repr, names))} {length}'
            for length, names in sorted(lengths.items()))
        + '; choose those of one length with sources=')


def given_rows(h5file: h5py.File, splits: Mapping[str, Any],
               which_sets: Sequence[str],
               sources: Sequence[str]) -> list[RowsOf]:
    """Return the rows of each source, for splits that the user defines.

    `which_sets`: the splits to use; empty for all rows.
    """
    lengths = [len(h5file[source]) for source in sources]
    return [RowsOf(order_of_splits(splits, which_sets or None, length),
                   length) for length in lengths]


class Summary(NamedTuple):
    """Types of the sources of a file, how they are stored, and the checksums
    of the raw files from which the file was converted."""

    types: dict[str, SourceType]
    layout: str
    # Older pickles have none.
    checksums: tuple[str, ...] = ()


@names_file
def target_columns(h5file: h5py.File,
                   sources: Sequence[str]) -> tuple[str, ...]:
    """Return the sources of the shape (n, 1) that hold targets.

    They are named 'targets', or their second axis is labelled 'index'.
    """
    nodes = {source: h5file[source] for source in sources}
    return tuple(
        source for source, node in nodes.items()
        if isinstance(node, h5py.Dataset) and node.shape[1:] == (1,)
        and (source == 'targets' or node.dims[1].label == 'index'))


@names_file
def summarize(h5file: h5py.File, sources: Sequence[str],
              flat: Sequence[str] = ()) -> Summary:
    """Return the summary of some sources of a file.

    `flat`: sources whose rows lose their axis of one element.
    """
    types, layouts = {}, {}
    for source in sources:
        node = h5file[source]
        if not isinstance(node, h5py.Dataset):
            continue
        is_ragged = node.dtype.hasobject
        vlen = h5py.check_vlen_dtype(node.dtype)
        # Text and bytes of variable length have no type of NumPy.
        dtype = vlen if isinstance(vlen, numpy.dtype) else node.dtype
        types[source] = SourceType(
            dtype.newbyteorder('='), () if source in flat
            else None if is_ragged else node.shape[1:])
        layouts[source] = _layout(node)
    return Summary(types, ', '.join(
        f'{source} {layout}' for source, layout in layouts.items())
        if len({*layouts.values()}) > 1 else next(
            iter(layouts.values()), ''), _checksums(h5file))


def _checksums(h5file: h5py.File) -> tuple[str, ...]:
    """Return the checksums of the raw files, which may have other names."""
    text = read_text(h5file, INPUTS_ATTRIBUTE)
    if text is None:
        return ()
    try:
        found = json.loads(text)
        return tuple(sorted([str(one['sha256']) for one in found.values()]))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        # Somebody else has written it.
        return (text,)


def _layout(node: h5py.Dataset) -> str:
    """Return the storage of a source: contiguous or chunks, and filters."""
    if node.chunks is None:
        return 'contiguous'
    packed = f', {node.compression}' if node.compression else ''
    return f'chunks of {node.chunks[0]}{packed}'
