"""Tables of Arrow of any types, and what PyArrow itself says they hold."""
import functools
import math

import numpy
import pyarrow
import pyarrow.compute
import pyarrow.ipc
import pyarrow.parquet
from hypothesis import reject
from hypothesis import strategies as st

INTEGERS = [f'{sign}int{bits}' for sign in ('', 'u') for bits in (8, 16, 32,
                                                                  64)]
TIMES = [pyarrow.timestamp('ms'), pyarrow.timestamp('us', 'UTC'),
         pyarrow.timestamp('s', 'Europe/Berlin'), pyarrow.duration('us'),
         pyarrow.date32(), pyarrow.date64(), pyarrow.time32('ms'),
         pyarrow.time64('us')]
TEXT = [pyarrow.string(), pyarrow.large_string(), pyarrow.string_view()]
BYTES = [pyarrow.binary(), pyarrow.large_binary(), pyarrow.binary_view(),
         pyarrow.binary(2)]
LEAVES = {
    **{pyarrow.type_for_alias(name): st.integers(
        *(int(end) for end in (numpy.iinfo(name).min, numpy.iinfo(name).max)))
       for name in INTEGERS},
    pyarrow.float16(): st.sampled_from([0., -1.5, 2048.]),
    pyarrow.float32(): st.floats(width=32, allow_nan=False),
    pyarrow.float64(): st.floats(allow_nan=False),
    pyarrow.bool_(): st.booleans(), pyarrow.null(): st.none(),
    pyarrow.decimal128(6, 2): st.decimals(-99, 99, places=2),
    # Milliseconds of a day for dates of 64 bits.
    **{arrow: st.integers(0, 9999).map(
        lambda n, arrow=arrow: n * 86400000 if arrow == pyarrow.date64()
        else n) for arrow in TIMES},
    **dict.fromkeys(TEXT, st.text(max_size=4)),
    **dict.fromkeys(BYTES, st.binary(min_size=2, max_size=2)),
}
# Types that no column of Parquet can have.
EXTENSIONS = [pyarrow.bool8(), pyarrow.uuid(),
              *(pyarrow.fixed_shape_tensor(pyarrow.int16(), [2, 3], **order)
                for order in ({}, {'permutation': [1, 0]},
                              {'dim_names': ['C', 'H']})),
              pyarrow.fixed_shape_tensor(
                  pyarrow.float32(), [1, 2, 3], permutation=[2, 1, 0])]


def _nested(types):
    return st.one_of(
        st.sampled_from([pyarrow.list_, pyarrow.large_list,
                         pyarrow.list_view]).flatmap(
                             lambda make: types.map(make)),
        types.map(lambda each: pyarrow.list_(each, 2)),
        st.tuples(types, types).map(lambda pair: pyarrow.struct(
            [('a', pair[0]), ('b', pair[1])])),
        types.map(lambda each: pyarrow.map_(pyarrow.string(), each)))


TYPES = st.one_of(
    st.recursive(st.sampled_from(list(LEAVES)), _nested, max_leaves=3),
    st.sampled_from(EXTENSIONS),
    st.sampled_from([*TEXT, pyarrow.int16(), pyarrow.float64(),
                     pyarrow.timestamp('ms')]).flatmap(
        lambda value: st.sampled_from(['int8', 'uint32', 'int64']).map(
            lambda index: pyarrow.dictionary(
                pyarrow.type_for_alias(index), value))))


@functools.cache
def values(arrow, nulls):
    """Return a strategy of Python's values of a type."""
    kinds = pyarrow.types
    if isinstance(arrow, pyarrow.BaseExtensionType):
        return values(arrow.storage_type, nulls)
    if kinds.is_dictionary(arrow):
        return values(arrow.value_type, nulls)
    if kinds.is_map(arrow):
        found = st.lists(st.tuples(st.text(max_size=2), values(
            arrow.item_type, nulls)), max_size=2)
    elif kinds.is_struct(arrow):
        found = st.fixed_dictionaries({
            field.name: values(field.type, nulls) for field in arrow})
    elif kinds.is_fixed_size_list(arrow):
        found = st.lists(values(arrow.value_type, nulls),
                         min_size=arrow.list_size, max_size=arrow.list_size)
    elif kinds.is_nested(arrow):
        found = st.lists(values(arrow.value_type, nulls), max_size=3)
    elif kinds.is_fixed_size_binary(arrow):
        found = st.binary(min_size=arrow.byte_width,
                          max_size=arrow.byte_width)
    else:
        found = LEAVES[arrow]
    return st.one_of(st.none(), found) if nulls else found


def column(draw, arrow, count):
    """Return a column of a type, in chunks that are slices of longer ones."""
    nulls = draw(st.booleans())
    chunks = []
    while count:
        length = draw(st.integers(1, count))
        before, after = draw(st.integers(0, 2)), draw(st.integers(0, 2))
        rows = draw(st.lists(values(arrow, nulls), min_size=(
            before + length + after), max_size=before + length + after))
        chunks.append(_array(rows, arrow).slice(before, length))
        count -= length
    return pyarrow.chunked_array(chunks, arrow)


def _array(rows, arrow):
    """Return an array of a type, of Python's values."""
    if isinstance(arrow, pyarrow.BaseExtensionType):
        return pyarrow.ExtensionArray.from_storage(
            arrow, _array(rows, arrow.storage_type))
    if pyarrow.types.is_dictionary(arrow):
        # With values that no row has.
        return pyarrow.DictionaryArray.from_arrays(
            pyarrow.array([None if row is None else place for place, row
                           in enumerate(rows)], arrow.index_type),
            _array([*rows, *rows[::-1]], arrow.value_type))
    return pyarrow.array(rows, arrow)


def write(table, kind, path, group):
    """Write a table in a format; return what a data set is made of."""
    if kind == 'table':
        return table
    kind, _, codec = kind.partition(' ')
    try:
        if kind == 'parquet':
            pyarrow.parquet.write_table(
                table, path, row_group_size=group,
                compression=codec or 'none')
            return path
        make = pyarrow.ipc.new_file if kind == 'file' else (
            pyarrow.ipc.new_stream)
        with make(path, table.schema, options=pyarrow.ipc.IpcWriteOptions(
                compression=codec or None,
                emit_dictionary_deltas=kind == 'stream')) as writer:
            writer.write_table(table, max_chunksize=group)
    except (pyarrow.ArrowException, OSError):
        # Not every format has every type, or replaced dictionaries.
        reject()
    return path


def has_nulls(rows):
    """Return whether there are nulls in values, or below them."""
    if isinstance(rows, (list, tuple)):
        return any(map(has_nulls, rows))
    return rows is None


def is_equal(found, expected):
    """Compare a row of Fuel with PyArrow's value."""
    if isinstance(found, numpy.ndarray):
        return (len(found) == len(expected)
                and all(map(is_equal, found, expected)))
    if isinstance(found, (numpy.datetime64, numpy.timedelta64)):
        if expected is None:
            return numpy.isnat(found)
        if getattr(expected, 'tzinfo', None):
            expected = expected.replace(tzinfo=None)
        return found == type(found)(expected)
    if isinstance(found, (float, numpy.floating)) and math.isnan(found):
        return expected is None
    if isinstance(found, numpy.generic):
        found = found.item()
    return type(found) is type(expected) and found == expected
