"""An index of parts as arrays that can be kept, and back.

What comes back may have been made by any program. It leads to no byte beyond
the end of a file, and is right of the first and the last part.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import h5py
import numpy
from numpy.typing import NDArray

from fuel.kernels.gather import OUTSIDE
from fuel.storage.file_bytes import FileBytes
from fuel.storage.kept_arrays import Arrays
from fuel.storage.part_index import PartIndex, array_kind

# Attributes of an index, with their types.
KEPT: Mapping[str, str] = {
    'file': 'int64', 'kind': 'int64', 'shape': 'int64',
    'chunk_shape': 'int64', 'is_chunked': 'bool', 'first_chunks': 'int64',
    'addresses': 'int64', 'sizes': 'int64', 'masks': 'uint32'}
# Of an array, and of its chunks.
OF_ARRAYS = ('shape', 'chunk_shape', 'is_chunked')
OF_CHUNKS = ('addresses', 'sizes', 'masks')


def index_arrays(index: PartIndex, files: Sequence[FileBytes]) -> Arrays:
    """Return what makes the same index again; nothing where HDF5 reads some
    arrays, or one lies in another file than `files`.

    It is asked for before anything is divided.
    """
    numbers = {file: number for number, file in enumerate(files)}
    if index.obstacle or any(
            file not in numbers for file in index.open_files()):
        return {}
    places = numpy.array([numbers[file] for file in index.open_files()])
    # One array of each kind, of which the kind is asked again.
    _, first = numpy.unique(index.kind, return_index=True)
    return {name: getattr(index, name) for name in KEPT} | {
        'file': places[index.file], 'examples': first}


def restored_index(arrays: Arrays, files: Sequence[FileBytes],
                   datasets: Sequence[h5py.Dataset]) -> PartIndex | None:
    """Return the index that some arrays were made of; None if they are not
    sound, or HDF5 says something else of the first or last array."""
    if not _are_sound(arrays, files, len(datasets)):
        return None
    kinds = [array_kind(datasets[int(array)]) for array in arrays['examples']]
    if any(kind.layout.obstacle or kind.stored != kinds[0].stored
           for kind in kinds):
        return None
    index = PartIndex.of(datasets, files, kinds, {
        name: arrays[name] for name in KEPT})
    if not _are_whole(index):
        return None
    ends = [0, len(datasets) - 1]
    now = PartIndex([datasets[array] for array in ends])
    is_same = not now.obstacle and all(
        _is_like(index, array, now, number)
        for number, array in enumerate(ends))
    return index if is_same else None


def _is_like(index: PartIndex, array: int, now: PartIndex,
             number: int) -> bool:
    """Return whether two indexes say the same of an array."""
    mine = slice(*index.first_chunks[array:array + 2].tolist())
    other = slice(*now.first_chunks[number:number + 2].tolist())
    return (
        index.files[int(index.file[array])] is now.files[
            int(now.file[number])]
        and index.kind_of(array).stored == now.kind_of(number).stored
        and all(numpy.array_equal(
            getattr(index, name)[array], getattr(now, name)[number])
            for name in OF_ARRAYS)
        and all(numpy.array_equal(
            getattr(index, name)[mine], getattr(now, name)[other])
            for name in OF_CHUNKS))


def _are_whole(index: PartIndex) -> bool:
    """Return whether chunks that went through no filters have all of their
    bytes."""
    nbytes = index.chunk_shape.astype(float).prod(axis=1) * (
        index.kinds[0].stored.itemsize)
    is_plain = numpy.array([not kind.layout.filters for kind in index.kinds])
    numbers = numpy.repeat(
        numpy.arange(len(index.file)), numpy.diff(index.first_chunks))
    is_cut = (index.sizes < nbytes[numbers]) & (index.addresses >= 0)
    return bool((nbytes < 2. ** 62).all()) and not (
        is_cut & is_plain[index.kind[numbers]]).any()


def _are_sound(arrays: Arrays, files: Sequence[FileBytes],
               count: int) -> bool:
    """Return whether arrays can be an index of some files: whether they fit
    each other, and nothing lies beyond the end of a file."""
    if {*KEPT, 'examples'} - arrays.keys() or any(
            arrays[name].dtype != dtype for name, dtype in KEPT.items()):
        return False
    file, kind, first, examples = (
        arrays[name] for name in ('file', 'kind', 'first_chunks', 'examples'))
    limits = ((file, len(files)), (kind, len(examples)), (examples, count))
    if not _have_shapes(arrays, count) or any(
            len(one) and not 0 <= one.min() <= one.max() < limit
            for one, limit in limits):
        return False
    shape, chunk_shape = arrays['shape'], arrays['chunk_shape']
    grid = numpy.where(
        arrays['is_chunked'][:, None],
        -(-shape // numpy.maximum(chunk_shape, 1)), 1).prod(axis=1)
    if (first[0] != 0 or first[-1] != len(arrays['addresses'])
            or shape.min() < 0 or chunk_shape.min() < 0
            or (numpy.diff(first) != grid).any()
            or (chunk_shape != shape)[~arrays['is_chunked']].any()):
        return False
    return _are_inside(arrays['addresses'], arrays['sizes'], numpy.repeat(
        numpy.array([one.size for one in files], numpy.int64)[file],
        numpy.diff(first)))


def _have_shapes(arrays: Arrays, count: int) -> bool:
    """Return whether the arrays of an index have the shapes that fit."""
    shape = arrays['shape'].shape
    wanted = {
        'file': (count,), 'kind': (count,), 'is_chunked': (count,),
        'first_chunks': (count + 1,), 'chunk_shape': shape,
        **dict.fromkeys(OF_CHUNKS, arrays['addresses'].shape)}
    return (len(shape) == 2 and shape[0] == count
            and arrays['addresses'].ndim == arrays['examples'].ndim == 1
            and arrays['examples'].dtype.kind == 'i'
            and all(arrays[name].shape == one
                    for name, one in wanted.items()))


def _are_inside(addresses: NDArray[Any], sizes: NDArray[Any],
                ends: NDArray[Any]) -> bool:
    """Return whether chunks lie before the end of their files."""
    stops = numpy.where(addresses >= 0, addresses + sizes, 0)
    return bool((addresses >= OUTSIDE).all() and (sizes >= 0).all()
                and (stops >= 0).all() and (stops <= ends).all())
