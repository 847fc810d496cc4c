"""Readers give what plain h5py gives, whatever the file is like."""
import itertools
import os
import struct

import h5py
import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.storage_strategies import (
    datasets,
    expected,
    requests,
    values,
    write,
)

from fuel.exceptions import DamagedFileError
from fuel.storage import chunk_table, choose_reader
from fuel.storage.mapped import MappedReader
from fuel.storage.file_bytes import RawFile

LIBRARIES = ['earliest', 'latest']


def check_rows(reader, dataset, rows):
    """Compare rows with those of h5py, and see that they are the user's."""
    wanted = expected(dataset, rows)
    found = reader.read(rows)
    assert wanted.dtype == found.dtype
    assert wanted.shape == found.shape
    assert wanted.tobytes() == found.tobytes() or (wanted == found).all()
    assert found.dtype.isnative
    if isinstance(found, numpy.ndarray) and found.ndim:
        assert found.flags.owndata or found.base.flags.owndata
        assert found.flags.writeable
        assert found.flags.aligned
        assert found.flags.c_contiguous


def check_any_file(path, data, number):
    """Write a random file and read random rows of it."""
    keywords, content = data.draw(datasets())
    num_rows = keywords['shape'][0]
    written = data.draw(st.sampled_from([
        [slice(None)], [], [slice(0, num_rows // 2)],
        [slice(num_rows // 2, num_rows)]]))
    target = path / f'{next(number)}.hdf5'
    write(target, keywords, content, written,
          data.draw(st.sampled_from(LIBRARIES)),
          data.draw(st.sampled_from([0, 512])),
          data.draw(st.lists(st.integers(0, 5), max_size=3)))
    cache_bytes = data.draw(st.sampled_from([0, 100, 1000, 1 << 20]))
    mode = data.draw(st.sampled_from(['r', 'r', 'r', 'a']))
    driver = data.draw(st.sampled_from([None, None, None, 'core', 'stdio']))
    with h5py.File(target, mode, driver=driver) as file:
        reader = choose_reader(file['x'], cache_bytes)
        assert (mode == 'r' and driver is None) or (
            reader.layout.reader == 'h5py')
        for _ in range(4):
            check_rows(reader, file['x'], data.draw(requests(num_rows)))
    os.unlink(target)


@settings(max_examples=250, deadline=None,
          suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_reader_of_any_file_gives_what_h5py_gives(tmp_path_factory, data):
    """Layouts, types, filters and requests are combined in all ways."""
    check_any_file(tmp_path_factory.getbasetemp(), data, NUMBERS)


@pytest.mark.full
@settings(max_examples=3000, deadline=None,
          suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_reader_of_any_file_gives_what_h5py_gives_full(
        tmp_path_factory, data):
    """The same test runs much longer."""
    check_any_file(tmp_path_factory.getbasetemp(), data, NUMBERS)


NUMBERS = itertools.count()


def test_readers_are_chosen_by_layout(tmp_path):
    """Plain layouts are read directly, the others through h5py."""
    data = numpy.arange(24.).reshape(6, 4)
    with h5py.File(tmp_path / 'a.hdf5', 'w') as file:
        file['contiguous'] = data
        file['big_endian'] = data.astype('>f8')
        file.create_dataset('chunked', data=data, chunks=(4, 3))
        file.create_dataset('gzip', data=data, chunks=(4, 3),
                            compression='gzip')
        file['text'] = ['a', 'b']
        file['scalar'] = 3
        file.create_dataset('empty', shape=(0, 3), dtype='u1')
        file.create_dataset('unwritten', shape=(3, 3), dtype='u1')
        file['odd'] = numpy.zeros((3, 2), numpy.dtype(('f4', (2,))))
    kinds = {}
    with h5py.File(tmp_path / 'a.hdf5', 'r') as file:
        for name in file:
            if file[name].shape:
                reader = choose_reader(file[name])
                kinds[name] = reader.layout.reader
    assert {
        'contiguous': 'mapped', 'big_endian': 'mapped', 'chunked': 'mapped',
        'gzip': 'decoded', 'text': 'ragged', 'empty': 'h5py',
        'unwritten': 'h5py', 'odd': 'mapped'} == kinds


def test_file_open_for_writing_is_read_through_h5py(tmp_path):
    """The reader sees rows that HDF5 has not written yet."""
    with h5py.File(tmp_path / 'a.hdf5', 'w') as file:
        file.create_dataset('x', data=numpy.arange(6), chunks=(2,))
        reader = choose_reader(file['x'])
        file['x'][2] = 77
        assert 'writing' in reader.layout.obstacle
        assert [77, 0] == reader.read(numpy.array([2, 0])).tolist()
        # The same process may ask for a second handle to read only.
        with h5py.File(tmp_path / 'a.hdf5', 'r') as second:
            again = choose_reader(second['x'])
            assert again.layout.reader == 'h5py'
            assert 77 == again.read(2)


def test_files_of_other_drivers_are_read_through_h5py(tmp_path):
    """A core file has no bytes on disk to speak of."""
    with h5py.File(tmp_path / 'a.hdf5', 'w') as file:
        file['x'] = numpy.arange(4)
    with h5py.File(tmp_path / 'a.hdf5', 'r', driver='core') as file:
        reader = choose_reader(file['x'])
        assert 'driver' in reader.layout.obstacle
        assert [3, 3] == reader.read(numpy.array([3, 3])).tolist()
    with open(tmp_path / 'a.hdf5', 'rb') as raw, h5py.File(raw) as file:
        reader = choose_reader(file['x'])
        assert reader.layout.reader == 'h5py'
        assert [3, 2] == reader.read(numpy.array([3, 2])).tolist()


def test_virtual_external_and_compact_data_are_read(tmp_path):
    """Layouts without bytes of their own in the file go through h5py, but
    for virtual ones."""
    data = numpy.arange(12, dtype='i4').reshape(6, 2)
    with h5py.File(tmp_path / 'source.hdf5', 'w') as file:
        file['x'] = data
    with h5py.File(tmp_path / 'a.hdf5', 'w') as file:
        layout = h5py.VirtualLayout(shape=(6, 2), dtype='i4')
        layout[:] = h5py.VirtualSource(
            str(tmp_path / 'source.hdf5'), 'x', shape=(6, 2))
        file.create_virtual_dataset('virtual', layout)
        file.create_dataset(
            'external', data=data,
            external=[(str(tmp_path / 'raw'), 0, h5py.h5f.UNLIMITED)])
        compact = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        compact.set_layout(h5py.h5d.COMPACT)
        space = h5py.h5s.create_simple((6, 2))
        created = h5py.h5d.create(
            file.id, b'compact', h5py.h5t.NATIVE_INT32, space, compact)
        h5py.Dataset(created)[...] = data
    rows = numpy.array([5, 0, 5, 2])
    with h5py.File(tmp_path / 'a.hdf5', 'r') as file:
        for name in ('virtual', 'external', 'compact'):
            reader = choose_reader(file[name])
            assert name == reader.layout.storage
            assert reader.layout.reader == (
                'virtual' if name == 'virtual' else 'h5py')
            assert data[rows].tolist() == reader.read(rows).tolist()


def test_variable_length_rows_repeat_as_objects_of_their_own(tmp_path):
    """Duplicates work; writing into one copy leaves the other."""
    with h5py.File(tmp_path / 'a.hdf5', 'w') as file:
        x = file.create_dataset('x', (5,), h5py.vlen_dtype('u1'))
        for row in range(5):
            x[row] = numpy.full(row + 1, row, 'u1')
    with h5py.File(tmp_path / 'a.hdf5', 'r') as file:
        reader = choose_reader(file['x'])
        batch = reader.read(numpy.array([3, 0, 3]))
        assert [[3] * 4, [0], [3] * 4] == [row.tolist() for row in batch]
        batch[0][:] = 9
        assert [3] * 4 == batch[2].tolist()


def test_rows_out_of_range_are_refused(tmp_path):
    """Every reader checks the rows, and says which source it is."""
    with h5py.File(tmp_path / 'a.hdf5', 'w') as file:
        file['mapped'] = numpy.arange(5)
        file.create_dataset('decoded', data=numpy.arange(5),
                            compression='gzip')
        file['h5py'] = ['a'] * 5
    with h5py.File(tmp_path / 'a.hdf5', 'r') as file:
        for name in file:
            reader = choose_reader(file[name])
            for rows in (numpy.array([1, 5]), numpy.array([-1]), 5, -1):
                with pytest.raises(IndexError, match=f"'{name}'.*0 to 4"):
                    reader.read(rows)


def test_chunk_that_skipped_a_filter_is_read(tmp_path):
    """Each chunk has a mask of its own."""
    data = numpy.arange(8, dtype='<i4')
    with h5py.File(tmp_path / 'a.hdf5', 'w') as file:
        x = file.create_dataset('x', data=data, chunks=(4,), shuffle=True,
                                compression='gzip', fletcher32=True)
        plain = numpy.arange(100, 104, dtype='<i4').tobytes()
        x.id.write_direct_chunk((4,), plain, 0b111)
        shuffled = numpy.frombuffer(plain, 'u1').reshape(4, 4).T.tobytes()
        x.id.write_direct_chunk((0,), shuffled, 0b110)
    with h5py.File(tmp_path / 'a.hdf5', 'r') as file:
        reader = choose_reader(file['x'])
        assert reader.layout.reader == 'decoded'
        assert file['x'][...].tolist() == reader.read(slice(None)).tolist()
        assert [103, 101] == reader.read(numpy.array([7, 1])).tolist()


def test_data_set_that_became_smaller_is_read(tmp_path):
    """Chunks beyond the present shape stay in no one's way."""
    with h5py.File(tmp_path / 'a.hdf5', 'w', libver='latest') as file:
        for name, options in (('x', {}), ('y', {'compression': 'gzip'})):
            x = file.create_dataset(
                name, data=numpy.arange(60).reshape(20, 3), chunks=(3, 2),
                maxshape=(None, None), **options)
            x.resize((7, 2))
    with h5py.File(tmp_path / 'a.hdf5', 'r') as file:
        for name in ('x', 'y'):
            reader = choose_reader(file[name])
            assert reader.layout.reader != 'h5py'
            assert (file[name][...] == reader.read(slice(None))).all()


def test_rows_beyond_four_gibibytes_are_read(tmp_path):
    """Addresses and offsets have 64 bits; the file is sparse."""
    with h5py.File(tmp_path / 'a.hdf5', 'w') as file:
        x = file.create_dataset(
            'x', (5 << 20, 1024), 'u1', fillvalue=None)
        x.id.get_create_plist()
        x[0] = 1
        x[-1] = 2
        y = file.create_dataset('y', (4, 2), 'u1', chunks=(2, 2))
        y[...] = 3
    with h5py.File(tmp_path / 'a.hdf5', 'r') as file:
        reader = choose_reader(file['x'])
        assert reader.layout.reader == 'mapped'
        last = len(reader) - 1
        batch = reader.read(numpy.array([last, 0, 1000]))
        assert [2, 1, 0] == batch[:, 5].tolist()
        assert 3 == choose_reader(file['y']).read(3)[0]


def test_enums_and_booleans_keep_their_type(tmp_path):
    """Enumerations come as their integers, booleans as booleans."""
    kinds = h5py.enum_dtype({'cat': 0, 'dog': 1}, basetype='i1')
    with h5py.File(tmp_path / 'a.hdf5', 'w') as file:
        file.create_dataset('enum', data=[1, 0, 1], dtype=kinds)
        file['bool'] = numpy.array([True, False, True])
    with h5py.File(tmp_path / 'a.hdf5', 'r') as file:
        for name in file:
            reader = choose_reader(file[name])
            assert reader.layout.reader == 'mapped'
            found = reader.read(numpy.array([2, 1]))
            assert file[name].dtype == found.dtype
            assert [1, 0] == found.astype(int).tolist()


def test_many_chunks_are_listed_in_one_pass(tmp_path, monkeypatch):
    """Asking for one chunk at a time would take quadratic time."""
    with h5py.File(tmp_path / 'a.hdf5', 'w') as file:
        file.create_dataset('x', data=numpy.arange(20000), chunks=(1,))
    with h5py.File(tmp_path / 'a.hdf5', 'r') as file:
        reader = choose_reader(file['x'])
        rows = numpy.random.RandomState(0).permutation(20000)
        assert (rows == reader.read(rows)).all()


@pytest.mark.parametrize('most', [0, 2000])
def test_chunks_are_listed_by_old_versions_too(tmp_path, monkeypatch, most):
    """Only few chunks are listed: HDF5 before 1.12.3 needs quadratic time."""
    monkeypatch.setattr(chunk_table, 'MOST_CHUNKS_SEARCHED', most)
    monkeypatch.setattr(chunk_table, 'can_iterate', lambda dataset: False)
    with h5py.File(tmp_path / 'a.hdf5', 'w') as file:
        file.create_dataset('x', data=numpy.arange(20), chunks=(3,))
    with h5py.File(tmp_path / 'a.hdf5', 'r') as file:
        reader = choose_reader(file['x'])
        assert reader.layout.reader == ('mapped' if most else 'h5py')
        assert [19, 3, 3] == reader.read(numpy.array([19, 3, 3])).tolist()


@pytest.mark.parametrize('options', [
    {}, {'chunks': (64, 1000)}, {'chunks': (64, 300)},
    {'chunks': (64, 1000), 'compression': 'lzf'}])
def test_large_batches_on_several_threads_are_right(tmp_path, options):
    """Batches above the size from which threads share the copying."""
    data = values(numpy.random.RandomState(0), (20000, 1000), 'u1')
    with h5py.File(tmp_path / 'a.hdf5', 'w') as file:
        file.create_dataset('x', data=data, **options)
    rows = numpy.random.RandomState(1).randint(0, 20000, 15000)
    with h5py.File(tmp_path / 'a.hdf5', 'r') as file:
        reader = choose_reader(file['x'])
        assert (data[rows] == reader.read(rows)).all()
        assert (data[5:] == reader.read(slice(5, None))).all()


def test_data_set_resized_while_in_use_is_read_as_it_is_now(tmp_path):
    """Rows that were added are there; those that are gone are an error,
    never a shorter batch."""
    with h5py.File(tmp_path / 'a.hdf5', 'w') as file:
        x = file.create_dataset('x', data=numpy.arange(20), maxshape=(None,),
                                chunks=(4,))
        reader = choose_reader(x)
        x.resize((30,))
        x[20:] = 7
        assert [7, 19] == reader.read(numpy.array([29, 19])).tolist()
        assert [7] * 3 == reader.read(slice(27, 30)).tolist()
        x.resize((10,))
        for rows in (numpy.array([1, 19]), numpy.arange(5, 15), 15,
                     slice(5, 15), slice(None), slice(15, 5, -1)):
            with pytest.raises(IndexError, match="'x': rows must lie in 0 to "
                               '9, got 1.; there were 20 rows when'):
                reader.read(rows)
        assert [1, 9] == reader.read(numpy.array([1, 9])).tolist()
        assert [8, 9] == reader.read(slice(8, 10)).tolist()
        assert not reader.read(slice(3, 3)).size


@pytest.mark.parametrize('options', [
    {}, {'chunks': (5, 8, 1)}, {'chunks': (5, 8, 1), 'compression': 'gzip'}])
def test_rows_without_elements_are_read(tmp_path, options):
    """They have the shape (8, 0), in any order; an index out of range is an
    error."""
    path = tmp_path / 'a.hdf5'
    if options:
        options['maxshape'] = (None, 8, None)
    with h5py.File(path, 'w') as file:
        file.create_dataset('x', (100, 8, 0), 'f4', **options)
    with h5py.File(path, 'r') as file:
        reader = choose_reader(file['x'])
        for rows in (numpy.array([90, 3, 3, 50]), numpy.array([7]),
                     numpy.arange(0, 100, 30), slice(2, 90), slice(3, 3),
                     numpy.empty(0, numpy.intp), 99):
            check_rows(reader, file['x'], rows)
        for rows in numpy.array([3, 100]), numpy.array([-1]), 100:
            with pytest.raises(IndexError, match="'x': rows must lie in 0 to"):
                reader.read(rows)


@pytest.mark.parametrize('options', [
    {}, {'chunks': (7, 3)}, {'chunks': (7, 3), 'compression': 'gzip'}])
@pytest.mark.parametrize('kind', [
    'fewer bits', 'bits with an offset', 'spaces', 'nulls'])
def test_odd_types_give_the_values_of_h5py(tmp_path, kind, options):
    """Integers that leave bits of their bytes free, strings that are padded
    in Fortran's way: HDF5 has to convert them."""
    values_ = numpy.arange(60).reshape(20, 3)
    path = tmp_path / 'a.hdf5'
    with h5py.File(path, 'w') as file:
        if kind in ('spaces', 'nulls'):
            stored = h5py.h5t.C_S1.copy()
            stored.set_size(6)
            stored.set_strpad(h5py.h5t.STR_SPACEPAD if kind == 'spaces'
                              else h5py.h5t.STR_NULLPAD)
            data = numpy.char.add(b'a ', values_.astype('S2')).astype('S6')
        else:
            stored = h5py.h5t.STD_I16LE.copy()
            stored.set_precision(9)
            stored.set_offset(5 if kind == 'bits with an offset' else 0)
            data = values_.astype('<i2') - 30
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        if options:
            properties.set_chunk(options['chunks'])
            if 'compression' in options:
                properties.set_deflate(4)
        dataset = h5py.Dataset(h5py.h5d.create(
            file.id, b'x', stored, h5py.h5s.create_simple((20, 3)),
            properties))
        dataset[...] = data
    with h5py.File(path, 'r') as file:
        reader = choose_reader(file['x'])
        assert data.tolist() == file['x'][...].tolist()
        for rows in slice(None), numpy.array([19, 3, 3, 0]), 7:
            check_rows(reader, file['x'], rows)


@pytest.mark.parametrize('compression', [None, 'gzip'])
def test_shape_made_smaller_in_the_header_alone_is_read(
        tmp_path, compression):
    """The index then lists chunks that no row is in."""
    path = tmp_path / 'a.hdf5'
    with h5py.File(path, 'w') as file:
        file.create_dataset(
            'x', data=numpy.arange(777 * 4).reshape(777, 4), chunks=(10, 4),
            compression=compression, maxshape=(None, 4))
    content = path.read_bytes()
    # The length of the first axis, then that of the second.
    before = struct.pack('<QQ', 777, 4)
    assert 1 == content.count(before)
    path.write_bytes(content.replace(before, struct.pack('<QQ', 333, 4)))
    with h5py.File(path, 'r') as file:
        reader = choose_reader(file['x'])
        assert 333 == len(reader) == len(file['x'])
        assert reader.layout.reader != 'h5py'
        for rows in slice(None), numpy.array([332, 0, 100]), 332:
            check_rows(reader, file['x'], rows)
        with pytest.raises(IndexError, match='0 to 332'):
            reader.read(numpy.array([333]))


def test_disk_error_of_one_of_several_threads_raises(tmp_path, monkeypatch):
    """Any part of the batch may fail; the other threads succeed."""
    path = tmp_path / 'a.hdf5'
    nbytes = 3 * MappedReader.THREADS_FROM
    with h5py.File(path, 'w') as file:
        file['x'] = numpy.ones((nbytes >> 16, 1 << 16), 'u1')
    # A failing disk changes neither size nor time.
    monkeypatch.setattr(RawFile, 'check', lambda self: None)
    monkeypatch.setenv('FUEL_NUM_THREADS', '3')
    for remaining in .9, .5, .1:
        with h5py.File(path, 'r') as file:
            reader = choose_reader(file['x'])
            os.truncate(path, int(remaining * nbytes))
            for rows in slice(None), numpy.arange(len(reader))[::-1]:
                with pytest.raises(DamagedFileError, match='disk could not'):
                    reader.read(rows)
            del reader
        os.truncate(path, nbytes + (1 << 16))
