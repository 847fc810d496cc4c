"""TFRecord files for tests, written and parsed by the format's description."""
import struct

FLOATS, INTEGERS = struct.Struct('<f'), 2 ** 64


def crc32c(data):
    """Return the CRC-32C of bytes, bit by bit."""
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ 0x82f63b78 * (crc & 1)
    return crc ^ 0xffffffff


def masked(data):
    """Return the four bytes of the masked checksum of some data."""
    crc = crc32c(data)
    turned = (crc >> 15 | crc << 17) % 2 ** 32
    return struct.pack('<I', (turned + 0xa282ead8) % 2 ** 32)


def record(data, size=None):
    """Return a record, which may state another size than it has."""
    head = struct.pack('<Q', len(data) if size is None else size)
    return head + masked(head) + data + masked(data)


def write_tfrecord(path, payloads):
    """Write a file of records."""
    path.write_bytes(b''.join(map(record, payloads)))
    return path


def varint(number):
    """Return an integer of protobuf; a negative one has ten bytes."""
    number %= INTEGERS
    found = []
    while number > 127:
        found.append(number % 128 + 128)
        number //= 128
    return bytes([*found, number])


def field(number, content):
    """Return a field of protobuf: bytes, or an integer."""
    if isinstance(content, int):
        return varint(number * 8) + varint(content)
    return varint(number * 8 + 2) + varint(len(content)) + content


def feature(values, packed=True):
    """Return a Feature of a list of bytes, floats or integers."""
    if not values:
        return b''
    if isinstance(values[0], bytes):
        return field(1, b''.join(field(1, value) for value in values))
    is_float = isinstance(values[0], float)
    parts = [FLOATS.pack(value) if is_float else varint(value)
             for value in values]
    if packed:
        content = field(1, b''.join(parts))
    else:
        content = b''.join(
            bytes([1 * 8 + 5 * is_float]) + part for part in parts)
    return field(2 if is_float else 3, content)


def entry(name, content):
    """Return an entry of the map of features."""
    return field(1, field(1, name.encode()) + field(2, content))


def example(packed=True, **features):
    """Return a ``tf.train.Example`` of lists of values."""
    return field(1, b''.join(
        entry(name, feature(values, packed))
        for name, values in features.items()))


def fields_of(data):
    """Yield number, type and content of the fields of a message; raise
    ValueError if it is damaged."""
    while data:
        tag, data = first_varint(data)
        number, kind = divmod(tag, 8)
        if not number or kind in (3, 4, 6, 7):
            raise ValueError('a bad tag')
        if kind == 0:
            rest = first_varint(data)[1]
            content = data[:len(data) - len(rest)]
        else:
            size, data = (first_varint(data) if kind == 2
                          else ({1: 8, 5: 4}[kind], data))
            if size > len(data):
                raise ValueError('cut off')
            content, rest = data[:size], data[size:]
        yield number, kind, content
        data = rest


def first_varint(data):
    """Return an integer at the beginning of bytes, and the rest."""
    number = 0
    for place, byte in enumerate(data[:10]):
        number += byte % 128 << 7 * place
        if byte < 128:
            return number % INTEGERS, data[place + 1:]
    raise ValueError('an integer without an end')


def parsed(data):
    """Return the features of an Example, as protobuf reads them: a dict from
    names to a kind and a list of values."""
    found = {}
    for number, kind, features in fields_of(data):
        if (number, kind) == (2, 2):
            raise ValueError('a SequenceExample')
        for mark, sort, pair in (
                fields_of(features) if (number, kind) == (1, 2) else ()):
            if (mark, sort) != (1, 2):
                continue
            name, values = b'', (0, [])
            for part, form, content in fields_of(pair):
                if (part, form) == (1, 2):
                    name = content
                elif (part, form) == (2, 2):
                    values = values_of(content)
            found[name.decode()] = values
    return found


def values_of(data):
    """Return kind and values of a Feature."""
    found = 0, []
    for number, kind, content in fields_of(data):
        if kind != 2 or number > 3:
            continue
        values = []
        for mark, form, part in fields_of(content):
            if mark != 1:
                continue
            if number == 1 and form == 2:
                values.append(part)
            elif number == 2 and form in (2, 5):
                if len(part) % 4:
                    raise ValueError('floats have four bytes')
                values += [x for x, in FLOATS.iter_unpack(part)]
            elif number == 3 and form in (0, 2):
                rest = part
                while rest:
                    value, rest = first_varint(rest)
                    values.append(value - INTEGERS * (value >= INTEGERS // 2))
        found = number, [*(found[1] if found[0] == number else []), *values]
    return found
