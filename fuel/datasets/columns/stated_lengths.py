"""Compare the lengths that attributes state with those of the arrays."""
from __future__ import annotations

import h5py
import numpy

from fuel.datasets.columns.parts import FileParts
from fuel.exceptions import DamagedFileError
from fuel.storage.kept_arrays import Arrays
from fuel.storage.nodes import find_at_once
from fuel.utils.hdf5_errors import naming_file

# What an attribute states that is not there, or not an integer.
UNSTATED = numpy.iinfo(numpy.int64).min


def check_stated(parts: FileParts, name: str, array: str) -> None:
    """Refuse a part whose attribute states another number of rows than it
    has; what is not an integer states nothing.

    `parts`: whose rows were counted.
    `array`: path of an array of so many rows, for the error.
    """
    def ask() -> Arrays:
        return {'stated': numpy.array([
            _stated(parts, number, name) for number in range(len(parts))])}

    def are_stated(kept: Arrays) -> bool:
        stated = kept.get('stated', numpy.empty(0))
        return stated.dtype == numpy.int64 and (
            stated.shape == (len(parts),))

    assert parts.bounds is not None
    stated = parts.files.kept(
        f'stated {name!r} {parts.digest()}', ask, are_stated)['stated']
    lengths = numpy.diff(parts.bounds)
    wrong = (stated != UNSTATED) & (stated != lengths)
    for number in numpy.flatnonzero(wrong)[:1].tolist():
        part = parts.names.names[number]
        raise contradicted_length(
            parts.path_of(number), name, part, int(stated[number]),
            f'{part}/{array}', int(lengths[number]))


def _stated(parts: FileParts, number: int, name: str) -> int:
    """Return an integer attribute of a part."""
    value = numpy.array(UNSTATED)
    with naming_file(parts.path_of(number)):
        _, above, path = parts.place_of(number)
        # To make h5py's group would take ten times as long.
        part = find_at_once(above, path) or parts.group(number).id
        key = name.encode()
        if h5py.h5a.exists(part, key):
            attribute = h5py.h5a.open(part, key)
            kind = attribute.get_type().get_class()
            if kind == h5py.h5t.INTEGER and (
                    attribute.get_space().get_simple_extent_npoints() == 1):
                attribute.read(value.reshape(attribute.shape))
    return int(value)


def contradicted_length(path: str, name: str, node: str, stated: int,
                        array: str, length: int) -> DamagedFileError:
    """Return the error that an attribute states another number of rows than
    an array has."""
    return DamagedFileError(
        f'{path!r}: {name!r} of {node!r} states {stated} rows, and {array!r} '
        f'has {length}; the file is damaged, or was partly updated: restore '
        f'it from its origin')
