"""Records of TFRecord: their checksums, and the features of an Example.

All lengths in a record are checked before they are used.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from itertools import chain

import numpy

# Kinds of lists, as they are numbered in a Feature.
cdef enum:
    BYTES = 1
    FLOATS = 2
    INTEGERS = 3

# Types of fields of protobuf.
cdef enum:
    VARINT = 0
    EIGHT_BYTES = 1
    MESSAGE = 2
    FOUR_BYTES = 5

DAMAGED = 'it is not a tf.train.Example, or is damaged'
# The checksum of each byte, followed by 0 to 7 zeros.
cdef uint32_t[8][256] TABLES


cdef void fill_tables() noexcept:
    cdef uint32_t crc
    cdef int byte, bit, zeros
    for byte in range(256):
        crc = byte
        for bit in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
        TABLES[0][byte] = crc
    for zeros in range(1, 8):
        for byte in range(256):
            crc = TABLES[zeros - 1][byte]
            TABLES[zeros][byte] = crc >> 8 ^ TABLES[0][crc & 0xff]


fill_tables()


cdef inline uint32_t number(const uint8_t *data) noexcept nogil:
    return (data[0] | <uint32_t>data[1] << 8 | <uint32_t>data[2] << 16
            | <uint32_t>data[3] << 24)


def masked_crc(const uint8_t[::1] data):
    """Return the masked CRC-32C of bytes, as TFRecord stores it.

    Examples
    --------
    >>> hex(masked_crc(b'123456789'))
    '0xc78ab0e5'
    """
    cdef Py_ssize_t left = data.shape[0]
    cdef const uint8_t *at = &data[0] if left else NULL
    cdef uint32_t crc = 0xffffffff, more
    with nogil:
        while left >= 8:
            crc ^= number(at)
            more = number(at + 4)
            crc = (TABLES[7][crc & 0xff] ^ TABLES[6][crc >> 8 & 0xff]
                   ^ TABLES[5][crc >> 16 & 0xff] ^ TABLES[4][crc >> 24]
                   ^ TABLES[3][more & 0xff] ^ TABLES[2][more >> 8 & 0xff]
                   ^ TABLES[1][more >> 16 & 0xff] ^ TABLES[0][more >> 24])
            at += 8
            left -= 8
        while left > 0:
            crc = crc >> 8 ^ TABLES[0][(crc ^ at[0]) & 0xff]
            at += 1
            left -= 1
        crc = ~crc
        crc = (crc >> 15 | crc << 17) + <uint32_t>0xa282ead8
    return crc


cdef struct Field:
    # A field of a message of protobuf: its number and type, and its content.
    uint64_t number
    int kind
    const uint8_t *start
    const uint8_t *end


cdef const uint8_t *next_varint(const uint8_t *at, const uint8_t *end,
                                uint64_t *value) except NULL:
    """Read an integer; return the place after it."""
    cdef int shift = 0
    value[0] = 0
    while at < end and shift < 70:
        value[0] |= <uint64_t>(at[0] & 0x7f) << shift
        if at[0] < 0x80:
            return at + 1
        at += 1
        shift += 7
    raise ValueError(DAMAGED)


cdef const uint8_t *next_field(const uint8_t *at, const uint8_t *end,
                               Field *field) except NULL:
    """Read a field; return the place after it."""
    cdef uint64_t tag, size = 0
    field.start = at = next_varint(at, end, &tag)
    field.number, field.kind = tag >> 3, tag & 7
    if field.kind == VARINT:
        at = next_varint(at, end, &tag)
    elif field.kind == MESSAGE:
        field.start = at = next_varint(at, end, &size)
    elif field.kind == EIGHT_BYTES:
        size = 8
    elif field.kind == FOUR_BYTES:
        size = 4
    else:
        field.number = 0
    if not field.number or size > <uint64_t>(end - at):
        raise ValueError(DAMAGED)
    field.end = at + size
    return field.end


def parse_example(const uint8_t[::1] record, frozenset known=None):
    """Return the features of a serialised ``tf.train.Example``.

    `known`: names of the features that it may have; None for any.

    Returns: a dict from the name of each feature to a pair. The first is the
        kind of its list: 1 bytes, 2 floats, 3 integers, 0 if it has none. The
        second has the values: a list of bytes, or an array of dtype float32
        or int64; () if there is no list.

    Raises: ValueError if the record is not such an example, is damaged, or has
        a feature that is not known.

    Examples
    --------
    >>> parse_example(bytes.fromhex('0a0e0a0c0a016112071a050a030ac801'))
    {'a': (3, array([ 10, 200]))}
    """
    cdef Field field
    cdef const uint8_t *at = &record[0] if record.shape[0] else NULL
    cdef const uint8_t *end = at + record.shape[0]
    cdef dict found = {}
    while at < end:
        at = next_field(at, end, &field)
        if field.kind != MESSAGE:
            continue
        if field.number == 1:
            add_features(field.start, field.end, found, known)
        elif field.number == 2:
            raise ValueError('it is a tf.train.SequenceExample, or not an '
                             'example')
    return found


cdef int add_features(const uint8_t *at, const uint8_t *end,
                      dict found, frozenset known) except -1:
    """Add the entries of a map of features to a dict."""
    cdef Field entry, part
    cdef const uint8_t *place
    cdef bytes name
    cdef str text
    cdef tuple values
    while at < end:
        at = next_field(at, end, &entry)
        if entry.number != 1 or entry.kind != MESSAGE:
            continue
        name, values, place = b'', (0, ()), entry.start
        while place < entry.end:
            place = next_field(place, entry.end, &part)
            if part.kind != MESSAGE:
                continue
            if part.number == 1:
                name = bytes_of(part)
            elif part.number == 2:
                values = values_of(part)
        text = name.decode()
        if known is not None and text not in known:
            raise ValueError(
                f'it has the feature {text!r}, which the first records lack: '
                f'choose the features with columns=..., which leaves out all '
                f'others')
        found[text] = values
    return 0


cdef bytes bytes_of(Field field):
    return (<const char *>field.start)[:field.end - field.start]


cdef tuple values_of(Field feature):
    """Return the kind and the values of a Feature."""
    cdef Field part
    cdef const uint8_t *at = feature.start
    cdef uint64_t kind = 0
    # A message in several pieces has the values of all of them.
    cdef list pieces = []
    while at < feature.end:
        at = next_field(at, feature.end, &part)
        if part.kind != MESSAGE or part.number > 3:
            continue
        if part.number != kind:
            kind, pieces = part.number, []
        pieces.append(bytes_in(part) if kind == BYTES else
                      floats_in(part) if kind == FLOATS else
                      integers_in(part))
    if len(pieces) < 2:
        return kind, pieces[0] if pieces else ()
    return kind, (list(chain.from_iterable(pieces)) if kind == BYTES
                  else numpy.concatenate(pieces))


cdef list bytes_in(Field lists):
    cdef Field part
    cdef const uint8_t *at = lists.start
    cdef list values = []
    while at < lists.end:
        at = next_field(at, lists.end, &part)
        if part.number == 1 and part.kind == MESSAGE:
            values.append(bytes_of(part))
    return values


cdef floats_in(Field lists):
    """Return the values of a list of floats, which may be packed."""
    cdef Field part
    cdef const uint8_t *at = lists.start
    cdef Py_ssize_t count = 0, size
    # No number takes less than four bytes.
    values = numpy.empty((lists.end - lists.start) // 4, '<f4')
    cdef uint8_t[::1] out = values.view(numpy.uint8)
    while at < lists.end:
        at = next_field(at, lists.end, &part)
        size = part.end - part.start
        if part.number == 1 and part.kind in (MESSAGE, FOUR_BYTES) and size:
            if size % 4:
                raise ValueError(f'a list of floats has {size} bytes')
            memcpy(&out[4 * count], part.start, size)
            count += size // 4
    return values[:count].astype(numpy.float32)


cdef integers_in(Field lists):
    """Return the values of a list of integers, which may be packed."""
    cdef Field part
    cdef const uint8_t *at = lists.start
    cdef const uint8_t *place
    cdef uint64_t value
    cdef Py_ssize_t count = 0
    # No number takes less than one byte.
    values = numpy.empty(lists.end - lists.start, numpy.int64)
    cdef int64_t[::1] out = values
    while at < lists.end:
        at = next_field(at, lists.end, &part)
        if part.number != 1 or part.kind not in (MESSAGE, VARINT):
            continue
        place = part.start
        while place < part.end:
            place = next_varint(place, part.end, &value)
            out[count] = <int64_t>value
            count += 1
    return values[:count].copy()
