"""Rows of variable length equal h5py's, and damage never ends a process."""
import struct

import h5py
import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.storage_strategies import requests

from fuel.exceptions import DamagedFileError
from fuel.kernels.global_heap import find_object
from fuel.storage import choose_reader
from fuel.storage.attributes import check_attribute
from fuel.storage.global_heap import Heap

TYPES = ['u1', '<i2', '>i2', '<f4', '>f8', '?', [('a', '<i2'), ('b', 'u1')]]


def check_rows(reader, wanted, rows):
    """Compare rows with the arrays that were written."""
    found = reader.read(rows)
    if isinstance(rows, int):
        found, rows = [found], [rows]
    expected = (wanted[rows] if isinstance(rows, slice)
                else [wanted[row] for row in rows])
    assert len(expected) == len(found)
    for one, other in zip(expected, found, strict=True):
        assert one.dtype.newbyteorder('=') == other.dtype
        assert other.dtype.isnative
        assert one.tolist() == other.tolist()
        assert other.flags.writeable and other.flags.owndata


@settings(max_examples=80, deadline=None,
          suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_arrays_of_variable_length_are_read_directly(tmp_path_factory, data):
    """Any type and lengths, also of rows that were never written."""
    dtype = numpy.dtype(data.draw(st.sampled_from(TYPES)))
    lengths = data.draw(st.lists(st.sampled_from([0, 1, 5, 300, 5000, 70000]),
                                 min_size=1, max_size=12))
    options = data.draw(st.sampled_from([
        {}, {'chunks': (1,)}, {'chunks': (5,), 'maxshape': (None,)},
        {'chunks': (3,), 'compression': 'gzip', 'maxshape': (None,)},
        {'chunks': (4,), 'compression': 'lzf', 'shuffle': True,
         'maxshape': (None,)}]))
    rng = numpy.random.RandomState(0)
    rows = [rng.randint(0, 2, length).astype('u1').astype(
        dtype if dtype.names is None else 'u1') for length in lengths]
    if dtype.names is not None:
        rows = [numpy.array([(value, value) for value in row], dtype)
                for row in rows]
    path = tmp_path_factory.mktemp('ragged') / 'a.hdf5'
    with h5py.File(path, 'w', libver=data.draw(st.sampled_from(
            ['earliest', 'latest'])), userblock_size=data.draw(
                st.sampled_from([0, 512]))) as file:
        x = file.create_dataset('x', (len(rows) + 1,),
                                h5py.vlen_dtype(dtype), **options)
        for place, row in enumerate(rows):
            if data.draw(st.booleans()) and place:
                rows[place] = row[:0]
                continue
            x[place] = row
    rows.append(numpy.empty(0, dtype))
    with h5py.File(path, 'r') as file:
        reader = choose_reader(file['x'])
        assert (reader.layout.reader == 'ragged'
                or not sum(map(len, rows)))
        for _ in range(3):
            check_rows(reader, rows, data.draw(requests(len(rows))))


def test_two_axes_of_rows_of_variable_length(tmp_path):
    """Each row is then several arrays."""
    with h5py.File(tmp_path / 'a.hdf5', 'w') as file:
        x = file.create_dataset('x', (3, 2), h5py.vlen_dtype('i4'))
        for row in range(3):
            for column in range(2):
                x[row, column] = numpy.arange(row + column)
    with h5py.File(tmp_path / 'a.hdf5', 'r') as file:
        reader = choose_reader(file['x'])
        assert reader.layout.reader == 'ragged'
        found = reader.read(numpy.array([2, 0, 2]))
        assert (3, 2) == found.shape
        assert [0, 1, 2] == found[0, 1].tolist() == found[2, 1].tolist()
        found[0, 1][:] = 9
        assert [0, 1, 2] == found[2, 1].tolist()
        assert [0, 1] == reader.read(1)[1].tolist()


@pytest.mark.parametrize('encoding', ['ascii', 'utf-8'])
def test_strings_of_variable_length_equal_those_of_h5py(tmp_path, encoding):
    """They are bytes that end at the first zero."""
    texts = [b'a', b'', b'x' * 9000, b'in side', b'last']
    if encoding == 'utf-8':
        texts[0] = 'größe'.encode()
    with h5py.File(tmp_path / 'a.hdf5', 'w') as file:
        file.create_dataset('x', data=texts,
                            dtype=h5py.string_dtype(encoding))
    with h5py.File(tmp_path / 'a.hdf5', 'r') as file:
        reader = choose_reader(file['x'])
        assert reader.layout.reader == 'ragged'
        for rows in slice(None), slice(3, 1), slice(1, 4):
            assert file['x'][rows].tolist() == reader.read(rows).tolist()
        assert [b'last', b'', b'last'] == reader.read(
            numpy.array([4, 1, 4])).tolist()
        assert b'x' * 9000 == reader.read(2)
        for rows in 5, -1, numpy.array([0, 5]):
            with pytest.raises(IndexError, match="'x'.*0 to 4"):
                reader.read(rows)


@pytest.mark.parametrize('field, value, text', [
    ('count', 0, '10 bytes instead of 0'),
    ('count', 300, 'bytes instead of'),
    ('count', 2 ** 32 - 1, 'bytes instead of'),
    ('address', 2 ** 63 - 1, 'ends before'),
    ('address', 2 ** 64 - 1, 'ends before'),
    ('address', 96, 'no part of the heap'),
    ('number', 77, 'no object 77'),
    ('number', 2 ** 32 - 1, 'no object 42949')])
def test_damaged_reference_names_file_source_and_row(
        tmp_path, field, value, text):
    """HDF5 would crash, or copy what lies beside the row."""
    path = tmp_path / 'a.hdf5'
    with h5py.File(path, 'w') as file:
        x = file.create_dataset('x', (4,), h5py.vlen_dtype('u1'))
        for row in range(4):
            x[row] = numpy.arange(10)
    with h5py.File(path, 'r') as file:
        offset = file['x'].id.get_offset()
    place, form = {'count': (0, '<I'), 'address': (4, '<Q'),
                   'number': (12, '<I')}[field]
    content = bytearray(path.read_bytes())
    struct.pack_into(form, content, offset + 2 * 16 + place, value)
    path.write_bytes(content)
    with h5py.File(path, 'r') as file:
        reader = choose_reader(file['x'])
        for rows in slice(None), 2, numpy.array([3, 2, 1]):
            with pytest.raises(DamagedFileError,
                               match=f"a.hdf5, source 'x', row 2: .*{text}"):
                reader.read(rows)
        assert list(range(10)) == reader.read(3).tolist()


def heap_object(number, content, size=None):
    """Return an object of a heap as it is in the file."""
    size = len(content) if size is None else size
    return (struct.pack('<HH4xQ', number, 1, size) + content
            + bytes(-len(content) % 8))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.binary(max_size=40), max_size=8), st.data())
def test_objects_are_found_in_any_collection(contents, data):
    """Objects are found in the beginning of a collection too."""
    objects = [heap_object(number, content)
               for number, content in enumerate(contents, 1)]
    free = data.draw(st.sampled_from([0, 8, 16, 48]))
    if free >= 16:
        objects.append(heap_object(0, bytes(free - 16), free))
    collection = bytes(16) + b''.join(objects) + bytes(free * (free < 16))
    for number, content in enumerate(contents, 1):
        for whole in False, True:
            start, size = find_object(
                collection, len(collection), number, whole)
            assert content == collection[start:start + size]
        part = collection[:data.draw(st.integers(0, len(collection)))]
        found = find_object(part, len(collection), number)
        assert found in (None, (start, size))
    with pytest.raises(ValueError, match='no object 9'):
        find_object(collection, len(collection), 9)


def test_heap_object_of_nearly_all_memory_is_not_followed():
    """Places do not overflow, however large a collection says it is."""
    most = 2 ** 64 - 1
    header = (1).to_bytes(8, 'little') + (most - 39).to_bytes(8, 'little')
    with pytest.raises(ValueError, match='no object 7'):
        find_object(bytes(16) + header + bytes(64), most, 7)


@settings(max_examples=500, deadline=None)
@given(st.binary(max_size=200), st.integers(0, 2 ** 64 - 1),
       st.integers(1, 3), st.booleans())
def test_what_is_found_ends_in_its_collection(data, nbytes, number, whole):
    """Any bytes are searched in finite time."""
    try:
        found = find_object(data, nbytes, number, whole)
    except ValueError:
        return
    if found is not None:
        assert 0 < found[0] <= nbytes and found[1] <= nbytes - found[0]


@pytest.mark.parametrize('objects, text', [
    ([heap_object(1, b'hello'), heap_object(0, b'', 0)], 'object 0'),
    ([heap_object(1, b'hello'), heap_object(2, b'', 2 ** 64 - 1)],
     'object 2'),
    ([heap_object(1, b'hello'), heap_object(2, b'', 2 ** 62)], 'object 2')])
def test_damage_behind_an_object_is_found_for_hdf5(objects, text):
    """HDF5 looks at all objects: for ever, or beyond the end."""
    collection = bytes(16) + b''.join(objects) + bytes(24)
    assert (32, 5) == find_object(collection, len(collection), 1)
    with pytest.raises(ValueError, match=text):
        find_object(collection, len(collection), 1, True)


@pytest.mark.parametrize('libver', ['earliest', 'latest'])
@pytest.mark.parametrize('extra', [0, 3, 20])
def test_attributes_are_found_in_any_header(
        tmp_path, libver, extra, monkeypatch):
    """Either version of a header has one block or several; HDF5 keeps large
    numbers of attributes elsewhere, where Fuel does not look."""
    path = tmp_path / 'a.hdf5'
    with h5py.File(path, 'w', libver=libver, userblock_size=512) as file:
        x = file.create_dataset('x', (2, 3), 'f4', track_times=extra > 0)
        for number in range(extra):
            x.attrs[f'other {number}'] = numpy.arange(200)
        x.dims[0].label, x.dims[1].label = 'batch', 'größe'
        file['scale'] = numpy.arange(2)
        file['scale'].make_scale('shapes')
        x.dims[0].attach_scale(file['scale'])
    read, plain = [], Heap.read
    monkeypatch.setattr(Heap, 'read', lambda heap, *where: read.append(
        plain(heap, *where)))
    with h5py.File(path, 'r') as file:
        check_attribute(file['x'], 'DIMENSION_LABELS')
        check_attribute(file['x'], 'DIMENSION_LIST')
    expected = [b'batch', 'größe'.encode()]
    if libver == 'latest' and extra == 20:
        assert [] == read
    else:
        assert expected == read[:2]
        assert [8, 0] == list(map(len, read[2:]))


def test_attributes_of_other_types_are_refused(tmp_path):
    """A damaged type of an attribute is what HDF5 crashes on."""
    with h5py.File(tmp_path / 'a.hdf5', 'w') as file:
        x = file.create_dataset('x', (2,), 'f4')
        x.attrs['fixed'] = numpy.array([b'abc'])
        x.attrs['number'] = 5
        ragged = numpy.empty(1, object)
        ragged[0] = numpy.arange(3, dtype='i4')
        x.attrs.create('ragged', ragged, dtype=h5py.vlen_dtype('i4'))
    with h5py.File(tmp_path / 'a.hdf5', 'r') as file:
        check_attribute(file['x'], 'fixed')
        for name in 'number', 'ragged':
            with pytest.raises(ValueError, match='strings or references'):
                check_attribute(file['x'], name)


@settings(max_examples=60, deadline=None,
          suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_strings_of_variable_length_with_a_fill_value_are_read(
        tmp_path_factory, data):
    """Chunks that were never written are read too. HDF5 refuses to read them
    from a file that is not open for writing."""
    rows = data.draw(st.lists(st.none() | st.text('ab', max_size=9),
                              min_size=1, max_size=12))
    options = data.draw(st.sampled_from([
        {}, {'chunks': (2,), 'maxshape': (None,)},
        {'chunks': (3,), 'compression': 'gzip', 'maxshape': (None,)}]))
    path = tmp_path_factory.mktemp('filled') / 'a.hdf5'
    with h5py.File(path, 'w') as file:
        x = file.create_dataset('x', (len(rows),), h5py.string_dtype(),
                                fillvalue='filled', **options)
        for place, row in enumerate(rows):
            if row is not None:
                x[place] = row
    expected = [b'filled' if row is None else row.encode() for row in rows]
    with h5py.File(path, 'r') as file:
        reader = choose_reader(file['x'])
        assert expected == reader.read(slice(None)).tolist()
        order = numpy.arange(len(rows))[::-1]
        assert expected[::-1] == reader.read(order).tolist()


@pytest.mark.parametrize('dtype', ['>i2', '>f4', '>f8', '>u8', '>c8'])
def test_big_endian_rows_of_variable_length_keep_their_values(
        tmp_path, dtype):
    """They have the written values, however they are read: h5py returns them
    with swapped bytes."""
    rows = [numpy.array([1, 2, 300][:length], dtype) for length in (3, 0, 2)]
    path = tmp_path / 'a.hdf5'
    with h5py.File(path, 'w') as file:
        x = file.create_dataset('x', (3,), h5py.vlen_dtype(numpy.dtype(dtype)))
        # In the machine's order, which h5py converts as it should.
        for place, row in enumerate(rows):
            x[place] = row.astype(row.dtype.newbyteorder('='))
        reader = choose_reader(file['x'])
        assert 'h5py' == reader.layout.reader
        found = [reader.read(slice(None))]
    with h5py.File(path, 'r') as file:
        reader = choose_reader(file['x'])
        assert 'ragged' == reader.layout.reader
        found.append(reader.read(slice(None)))
    for batch in found:
        assert [row.tolist() for row in rows] == [
            row.tolist() for row in batch]


@pytest.mark.parametrize('lengths', [(2, 0, 1), (0, 0, 0), None], ids=str)
def test_empty_rows_of_fields_are_read_through_h5py(tmp_path, lengths):
    """Releases of h5py such as 3.9 cannot read such rows themselves."""
    dtype = numpy.dtype([('a', '<i2'), ('b', 'u1')])
    rows = [numpy.ones(length, dtype) for length in lengths or (0, 0, 0)]
    with h5py.File(tmp_path / 'a.hdf5', 'w') as file:
        x = file.create_dataset('x', (3, 1), h5py.vlen_dtype(dtype))
        for place, row in enumerate(rows if lengths else ()):
            x[place, 0] = row
        reader = choose_reader(file['x'])
        assert 'h5py' == reader.layout.reader
        for picked in (slice(None), slice(1, 3), [2, 0], [1, 1], [0]):
            batch = reader.read(
                picked if isinstance(picked, slice) else numpy.array(picked))
            wanted = numpy.arange(3)[picked]
            assert (len(wanted), 1) == batch.shape
            for place, row in zip(wanted, batch[:, 0], strict=True):
                assert dtype == row.dtype
                assert rows[place].tolist() == row.tolist()
        assert rows[1].tolist() == reader.read(1)[0].tolist()


def test_ragged_rows_of_some_hundred_elements_behind_a_user_block(tmp_path):
    """Objects larger than what is read of a collection at first."""
    rows = [numpy.arange(place, place + 300 + 37 * place)
            for place in range(40)]
    path = tmp_path / 'a.hdf5'
    with h5py.File(path, 'w', userblock_size=1024) as file:
        x = file.create_dataset('x', (40,), h5py.vlen_dtype('<i8'))
        for place, row in enumerate(rows):
            x[place] = row
    with h5py.File(path, 'r') as file:
        reader = choose_reader(file['x'])
        assert 'ragged' == reader.layout.reader
        whole = file['x'][...]
        check_rows(reader, rows, slice(None))
        check_rows(reader, list(whole), numpy.array([39, 0, 17, 17]))
