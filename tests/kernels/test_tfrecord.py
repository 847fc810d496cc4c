"""Checksums and examples of TFRecord, by the format's description."""
import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.tfrecord_files import (
    crc32c, entry, example, feature, field, masked, parsed, varint)

from fuel.kernels.tfrecord import masked_crc, parse_example

FEATURES = st.one_of(
    st.lists(st.binary(max_size=3), max_size=3),
    st.lists(st.floats(width=32, allow_nan=False), max_size=5),
    st.lists(st.integers(-2 ** 63, 2 ** 63 - 1), max_size=5))


def plain(found):
    """Return parsed features with lists instead of arrays."""
    return {name: (kind, [*(values.tolist() if isinstance(
        values, numpy.ndarray) else values)])
        for name, (kind, values) in found.items()}


def result(parse, content):
    """Return the features in bytes, as text; 'refused' if there is an
    error."""
    try:
        return repr(plain(parse(bytes(content))))
    except ValueError:
        return 'refused'


@pytest.mark.parametrize(('data', 'expected'), [
    # The examples of RFC 3720, B.4, and the usual check value.
    (b'123456789', 0xe3069283), (bytes(32), 0x8a9136aa),
    (b'\xff' * 32, 0x62a8ab43), (bytes(range(32)), 0x46dd794e)])
def test_checksum_is_that_of_the_standard(data, expected):
    """TFRecord turns it by 15 bits and adds a constant."""
    assert expected == crc32c(data)
    turned = (expected >> 15 | expected << 17) % 2 ** 32
    assert (turned + 0xa282ead8) % 2 ** 32 == masked_crc(data)


@given(st.binary(max_size=40), st.integers(0, 7))
def test_checksum_of_any_bytes(data, first):
    """Their number and their place in memory do not matter."""
    wanted = int.from_bytes(masked(data[first:]), 'little')
    assert wanted == masked_crc(memoryview(data)[first:])


@given(st.dictionaries(st.text('ab é', max_size=2), FEATURES, max_size=4),
       st.frozensets(st.text('ab é', max_size=2)))
def test_features_that_are_not_known_are_refused(features, known):
    """The error names one of them."""
    content = example(**features)
    if features.keys() <= known:
        assert repr(plain(parse_example(content))) == repr(
            plain(parse_example(content, known)))
    else:
        first = next(name for name in features if name not in known)
        with pytest.raises(ValueError, match=f'the feature {first!r}, '):
            parse_example(content, known)


@given(st.dictionaries(st.text('ab é', max_size=2), FEATURES, max_size=4),
       st.booleans())
def test_features_are_those_that_were_written(features, packed):
    """Lists are packed or not, and may be empty."""
    content = field(1, b''.join(
        entry(name, feature(values, packed))
        for name, values in features.items()))
    kinds = {bytes: 1, float: 2, int: 3}
    expected = {name: (kinds[type(values[0])] if values else 0, values)
                for name, values in features.items()}
    assert expected == plain(parse_example(content))
    assert expected == parsed(content)


def test_types_of_values():
    """Arrays have the types of the lists."""
    found = parse_example(example(a=[1.5, 2.], b=[-1, 7], c=[b'x\0']))
    assert numpy.float32 == found['a'][1].dtype
    assert numpy.int64 == found['b'][1].dtype
    assert (1, [b'x\0']) == found['c']


WHOLE = example(a=[1, -1], b=[b'xy'], c=[.5])


@pytest.mark.parametrize(('content', 'expected'), [
    (b'', {}),
    # Unknown fields of each type, at each level.
    (field(9, b'abc') + field(10, 300) + b'\x59' + bytes(8) + b'\x65'
     + bytes(4) + example(a=[3]), {'a': (3, [3])}),
    (field(1, field(7, 5) + entry('a', field(4, b'zz') + feature([3]))),
     {'a': (3, [3])}),
    (field(1, field(1, field(2, feature([3])) + field(5, b'')
                    + field(1, b'a'))), {'a': (3, [3])}),
    # A pair without a key, and one without a value.
    (field(1, field(1, field(2, feature([3]))) + field(1, field(1, b'b'))),
     {'': (3, [3]), 'b': (0, [])}),
    # Of two values the last counts; lists of one value are joined.
    (field(1, entry('a', feature([1])) + entry('a', feature([2.]))),
     {'a': (2, [2.])}),
    (field(1, entry('a', feature([b'x']) + feature([1, 2]) + feature([3]))),
     {'a': (3, [1, 2, 3])}),
    (field(1, entry('a', feature([b'x']) + feature([b'y']))),
     {'a': (1, [b'x', b'y'])}),
    (example(a=[1]) + example(b=[2]), {'a': (3, [1]), 'b': (3, [2])}),
    # Packed and unpacked values in one list.
    (field(1, entry('a', field(3, field(1, b'\1\2') + field(1, 3)))),
     {'a': (3, [1, 2, 3])}),
    # An empty list has a kind.
    (field(1, entry('a', field(2, b''))), {'a': (2, [])}),
    # Bits beyond the 64th are dropped, as protobuf does.
    (field(1, entry('a', field(3, field(1, b'\xff' * 9 + b'\x7f')))),
     {'a': (3, [-1])})])
def test_odd_examples_are_read(content, expected):
    """They are what protobuf allows."""
    assert expected == plain(parse_example(content))
    assert expected == parsed(content)


@pytest.mark.parametrize('value', [b'x', 5, .5])
def test_list_in_many_pieces_is_read_in_linear_time(value):
    """A hostile record of a megabyte would take hours if all values were
    copied for each piece."""
    pieces = 200_000
    content = field(1, entry('a', feature([value]) * pieces))
    (_, found), = parse_example(content).values()
    assert [value] * pieces == [*found]


@pytest.mark.parametrize('content', [
    b'\x0a', b'\x0a\x05abc', b'\x0a' + b'\xff' * 9 + b'\x01',
    b'\x0a' + b'\xff' * 11, b'\x00\x01', b'\x0b', b'\x0f', b'hello',
    field(1, b'\x0a\x7f'), field(1, entry('a', b'\x0a\x7f')),
    field(1, entry('a', field(3, b'\x0a\x7f'))),
    field(1, entry('a', field(3, field(1, b'\xff')))),
    field(1, entry('a', field(3, field(1, b'\xff' * 10 + b'\1')))),
    field(1, entry('a', field(2, field(1, b'123')))),
    field(1, field(1, field(1, b'\xff'))), varint(2 ** 64 - 1),
    # A SequenceExample: its lists would be lost.
    example(a=[1]) + field(2, b'')])
def test_damaged_examples_are_refused(content):
    """Lengths that lie, integers without an end, text that is none."""
    for parse in (parse_example, parsed):
        assert 'refused' == result(parse, content)


@given(st.data())
def test_any_bytes_are_read_as_by_the_description(data):
    """Bytes of an example are changed, cut out or put in."""
    content = bytearray(WHOLE)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content)))
        content[place:place + data.draw(st.integers(0, 2))] = data.draw(
            st.binary(max_size=2))
    assert result(parsed, content) == result(parse_example, content)
