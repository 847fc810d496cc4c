"""Check attributes of variable length before HDF5 reads them."""
from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import h5py
import numpy
from numpy.typing import NDArray

from fuel.storage.file_bytes import FileBytes, raw_file
from fuel.storage.global_heap import REFERENCE, Heap, addressing
from fuel.storage.layout import obstacle_of_file
from fuel.utils.hdf5_errors import naming_file

CONTINUATION = 0x10
ATTRIBUTE = 0x0C
SHARED = 2
# Types of values that are stored in the attribute itself.
PLAIN_CLASSES = (h5py.h5t.INTEGER, h5py.h5t.FLOAT, h5py.h5t.ENUM,
                 h5py.h5t.REFERENCE)
# The largest number of blocks that are read: no valid object has so many, but
# the blocks of a damaged object may lead in circles.
MOST_BLOCKS = 1000


class HeaderMessage(NamedTuple):
    """An entry of an object's header."""

    kind: int
    flags: int
    content: bytes


def check_attribute(dataset: h5py.Dataset | h5py.Group, name: str) -> None:
    """Raise ValueError if an attribute's values of variable length are not in
    the file.

    If they are not, HDF5 crashes the process or waits for ever. An attribute
    is not checked if only HDF5 can read the file, for example because the file
    is open for writing, or if its object has very many attributes.
    """
    handle = h5py.h5i.get_file_id(dataset.id)
    base, usual = addressing(handle)
    attribute = h5py.h5a.open(dataset.id, name.encode())
    itemsize = _itemsize(attribute.get_type(), name)
    if not itemsize or not usual or obstacle_of_file(dataset):
        return
    file = raw_file(dataset)
    # `h5o.get_info` would read the chunks too, and may crash there.
    low, high = h5py.h5g.get_objinfo(dataset.id).objno
    address = high << 32 | low
    count = int(numpy.prod(attribute.shape, dtype=object))
    references = _references(file, base, address, name, count)
    if references is None:
        return
    heap = Heap(file, base, for_hdf5=True)
    for length, place, number in references.tolist():
        try:
            heap.read(place, number, length * itemsize)
        except ValueError as error:
            raise ValueError(f'attribute {name!r}: {error}') from error


def read_text(node: h5py.Dataset | h5py.Group, name: str) -> str | None:
    """Return an attribute as text, None if there is none."""
    if name not in node.attrs:
        return None
    check_attribute(node, name)
    value = node.attrs[name]
    if isinstance(value, str):
        # h5py escapes bytes that are not valid UTF-8.
        value = value.encode('utf8', 'surrogateescape')
    return (value.decode('utf8', 'replace') if isinstance(value, bytes)
            else str(value))


def read_attribute(node: h5py.Dataset | h5py.Group, name: str) -> Any:
    """Return an attribute of numbers, text or references; None if there is
    none."""
    if name not in node.attrs:
        return None
    kind = h5py.h5a.open(node.id, name.encode()).get_type().get_class()
    if kind not in PLAIN_CLASSES:
        check_attribute(node, name)
    return node.attrs[name]


def _itemsize(kind: h5py.h5t.TypeID, name: str) -> int:
    """Return the number of bytes of an element, for an attribute with values
    of variable length; return 0 for strings of fixed length.

    HDF5 also crashes on types that it does not expect, so only the types of
    axis labels and of lists of dimension scales are allowed.

    Raises: ValueError for any other type.
    """
    if kind.get_class() == h5py.h5t.STRING:
        return int(kind.is_variable_str())
    if (kind.get_class() == h5py.h5t.VLEN
            and kind.get_super().equal(h5py.h5t.STD_REF_OBJ)):
        return int(kind.get_super().get_size())
    raise ValueError(f'attribute {name!r} should be strings or references')


def _references(file: FileBytes, base: int, address: int, name: str,
                count: int) -> NDArray[numpy.void] | None:
    """Return the references to the heap that are stored as an attribute's
    values; None if the attribute is not in the object's header."""
    for message in _messages(file, base, address):
        if message.kind != ATTRIBUTE or message.flags & SHARED:
            continue
        found, value = _attribute(message.content)
        if found == name.encode():
            if len(value) < count * REFERENCE.itemsize:
                raise ValueError(
                    f'attribute {name!r} has {len(value)} bytes, too few for '
                    f'{count} values')
            return numpy.frombuffer(value, REFERENCE, count)
    return None


def _messages(file: FileBytes, base: int,
              address: int) -> Iterator[HeaderMessage]:
    """Yield the entries of an object's header, in either version of the
    format."""
    start = base + address
    head = file.read(start, 16)
    if head[:4] == b'OHDR':
        flags = head[5]
        skip = 6 + bool(flags & 0x20) * 16 + bool(flags & 0x10) * 4
        width = 1 << (flags & 3)
        size = int.from_bytes(file.read(start + skip, width), 'little')
        layout, margins = ('<BHB2x' if flags & 4 else '<BHB'), (4, 8)
        blocks = [(start + skip + width, size)]
    elif len(head) == 16:
        layout, margins = '<HHB3x', (0, 0)
        blocks = [(start + 16, int.from_bytes(head[8:12], 'little'))]
    else:
        return
    for number, (place, size) in enumerate(blocks):
        if number == MOST_BLOCKS:
            raise ValueError('the header of its object leads in circles')
        data = file.read(place, min(size, max(0, file.size - place)))
        for message in _split(data, layout):
            yield message
            if message.kind == CONTINUATION and len(message.content) >= 16:
                there, length = struct.unpack_from('<QQ', message.content)
                blocks.append((min(base + there, file.size) + margins[0],
                               max(0, length - margins[1])))


def _split(data: bytes, layout: str) -> Iterator[HeaderMessage]:
    """Yield the entries of a block of a header."""
    head = struct.calcsize(layout)
    place = 0
    while place + head <= len(data):
        kind, size, flags = struct.unpack_from(layout, data, place)
        place += head
        yield HeaderMessage(kind, flags, data[place:place + size])
        place += size


def _attribute(content: bytes) -> tuple[bytes, bytes]:
    """Return the name and value from a header's entry for an attribute."""
    if len(content) < 8:
        return b'', b''
    version = content[0]
    sizes = struct.unpack_from('<HHH', content, 2)
    place = 9 if version == 3 else 8
    name = content[place:place + sizes[0]].partition(b'\0')[0]
    for size in sizes:
        # The first version pads each part to a multiple of 8 bytes.
        place += -(-size // 8) * 8 if version == 1 else size
    return name, content[place:]


LABELS = 'DIMENSION_LABELS'
SCALES = 'DIMENSION_LIST'
NAME = 'NAME'
CLASS_NAMES = 'class_names'


def axis_labels(node: object) -> tuple[str, ...] | None:
    """Return the labels of the axes of a source; None if the node is not an
    array."""
    if not isinstance(node, h5py.Dataset):
        return None
    with naming_file(node.file.filename, _name(node)):
        labels = own_labels(node)
        shapes = scale(node, 'shapes')
        if shapes is None:
            return labels
        names = scale(node, 'shape_labels')
        if names is None:
            return labels + ('',) * int(shapes.shape[1])
        return labels + tuple(map(_text, names[...].tolist()))


def class_names(h5file: h5py.File,
                sources: Sequence[str]) -> tuple[str, ...] | None:
    """Return the names of classes in a file, None if there are none.

    The names of the source 'targets' are preferred.
    """
    for source in sorted(sources, key=lambda name: name != 'targets'):
        node = h5file[source]
        with naming_file(h5file.filename, source):
            written = (read_text(node, CLASS_NAMES)
                       if isinstance(node, h5py.Dataset) else None)
            if written is None:
                continue
            names = json.loads(written)
            if not isinstance(names, list):
                raise ValueError(f'the attribute {CLASS_NAMES!r} must hold '
                                 'a list of names as JSON')
            return tuple(map(str, names))
    return None


def own_labels(dataset: h5py.Dataset) -> tuple[str, ...]:
    """Return the labels of a data set's axes; '' for an axis without a
    label."""
    if LABELS not in dataset.attrs:
        return ('',) * int(dataset.ndim)
    check_attribute(dataset, LABELS)
    labels = tuple(map(_text, dataset.attrs[LABELS]))
    if len(labels) != dataset.ndim:
        raise ValueError(f'there are {len(labels)} labels for '
                         f'{dataset.ndim} axes')
    return labels


def labels_of_batch(labels: Sequence[str]) -> tuple[str, ...] | None:
    """Return the axis labels of a batch, from the axis labels of the source's
    array; None if no axis has a label, or if an axis other than the first has
    none."""
    if not any(labels) or not all(labels[1:]):
        return None
    return 'batch', *labels[1:]


def scale(node: object, name: str) -> h5py.Dataset | None:
    """Return the dimension scale called `name` on the first axis of an array;
    None if there is none."""
    if not isinstance(node, h5py.Dataset) or not node.shape:
        return None
    with naming_file(node.file.filename, _name(node)):
        if SCALES not in node.attrs:
            return None
        check_attribute(node, SCALES)
        for reference in node.attrs[SCALES][0]:
            found = node.file[reference] if reference else None
            if found is None or NAME not in found.attrs or (
                    _text(found.attrs[NAME]) != name):
                continue
            if not isinstance(found, h5py.Dataset):
                raise ValueError(
                    f'its dimension scale {name!r} is not an array')
            return found
    return None


def _name(dataset: h5py.Dataset) -> str:
    return str(dataset.name).lstrip('/')


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode('utf8', 'surrogateescape')
    return str(value)
