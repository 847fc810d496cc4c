"""Columns of HDF5 files: what becomes a source, and how it is read."""
import pickle

import h5py
import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array, csr_matrix, vstack
from support.sparse_rows import assert_same_rows, random_csr

from fuel.datasets import (
    CSR,
    Categorical,
    Constant,
    Flat,
    HDF5Dataset,
    PerRun,
    PerStep,
    Ragged,
    Rows,
    Runs,
    Scaled,
)
from fuel.datasets.columns.readers import RangesReader
from fuel.exceptions import DamagedFileError
from fuel.schemes import SequentialScheme, ShuffledScheme
from fuel.streams import DataStream


def write(path, **arrays):
    """Write arrays, with slashes for two underscores, and return the path."""
    with h5py.File(path, 'w') as file:
        for name, array in arrays.items():
            file[name.replace('__', '/')] = array
    return path


def write_csr(path, matrix, group='X', shape=None, kind='csr_matrix',
              index_type=None, **options):
    """Write a sparse matrix as AnnData does."""
    with h5py.File(path, 'a') as file:
        node = file.create_group(group)
        node.attrs['encoding-type'] = kind
        node.attrs['shape'] = matrix.shape if shape is None else shape
        for name in 'data', 'indices', 'indptr':
            array = getattr(matrix, name)
            if name == 'indices' and index_type is not None:
                array = array.astype(index_type)
            node.create_dataset(name, data=array, **(
                {} if name == 'indptr' else options))
    return path


def read_all(dataset):
    """Return all examples of the only source."""
    return dataset.get_data(None, slice(0, dataset.num_examples))[0]


def test_paths_name_arrays_and_columns_are_shown_as_written():
    """The repr can be pasted."""
    for text in ("Rows('a')", "Rows('a', field='pt', start=1)",
                 "Rows('a', axis=-1, ragged=True)", "CSR('X')",
                 "CSR('layers/raw', dense=True)", "Categorical('obs/type')",
                 "Categorical('obs/type', names='uns/names')",
                 "Scaled('t2m')", "Flat('x', axes=3)"):
        column = eval(text)
        assert text == repr(column)
        assert column == pickle.loads(pickle.dumps(column))
        assert column != Rows('b')


# Sparse rows.

INDEX_TYPES = ['int32', 'int64', 'uint8', 'uint16']


@settings(suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_sparse_rows_equal_those_of_scipy(tmp_path_factory, data):
    """Any types, storage and request, in one file or several."""
    folder = tmp_path_factory.getbasetemp()
    dtype = data.draw(st.sampled_from(['f4', '>f4', 'f8', 'i2', 'u1']))
    index_type = data.draw(st.sampled_from(INDEX_TYPES))
    options = data.draw(st.sampled_from([
        {}, {'chunks': (3,)}, {'chunks': (2,), 'compression': 'gzip'}]))
    matrices = [
        random_csr(data.draw(st.integers(1, 6)), 50, seed=seed)
        for seed in range(data.draw(st.integers(1, 3)))]
    paths = []
    for number, matrix in enumerate(matrices):
        paths.append(folder / f'{number}.h5')
        paths[-1].unlink(missing_ok=True)
        matrix.data = matrix.data.astype(dtype)
        write_csr(paths[-1], matrix, index_type=index_type,
                  **(options if matrix.nnz > 2 else {}))
    whole = numpy.concatenate([matrix.toarray() for matrix in matrices])
    sparse = HDF5Dataset(paths, [CSR('X')])
    dense = HDF5Dataset(paths, [CSR('X', dense=True)])
    row = st.integers(0, len(whole) - 1)
    for request in (data.draw(st.lists(row, min_size=1, max_size=9)),
                    slice(0, len(whole))):
        found, = sparse.get_data(None, request)
        assert isinstance(found, csr_array)
        assert numpy.dtype(dtype).newbyteorder('=') == found.dtype
        assert found.indices.dtype == found.indptr.dtype == (
            'int64' if index_type == 'int64' else 'int32')
        found.check_format(full_check=True)
        assert_array_equal(whole[request], found.toarray())
        assert_array_equal(whole[request], dense.get_data(None, request)[0])
    number = data.draw(row)
    example, = sparse.get_data(None, number)
    assert (1, 50) == example.shape
    assert_array_equal(whole[number], example.toarray()[0])
    assert_array_equal(whole[number], dense.get_data(None, number)[0])
    for dataset in sparse, dense:
        assert ((50,) == dataset.known_types()['X'].shape)
        dataset.close(None)


@pytest.mark.parametrize('rows', [[3], [0, 39], [7, 7, 8, 20]])
def test_all_chunks_of_sparse_rows_are_fetched(rows, tmp_path):
    """The byte ranges are those of all elements of the rows."""
    matrix = csr_matrix(numpy.random.default_rng(0).integers(0, 3, (40, 50)))
    path = write_csr(tmp_path / 'a.h5', matrix, chunks=(7,),
                     compression='gzip')
    elements = numpy.concatenate([
        numpy.arange(*matrix.indptr[row:row + 2]) for row in rows])
    needed = set()
    for name in 'X/data', 'X/indices':
        reader = HDF5Dataset(path, [name]).readers[name]
        needed.update(zip(*reader.byte_ranges(elements), strict=True))
    found = HDF5Dataset(path, [CSR('X')]).readers['X'].byte_ranges(
        numpy.array(rows))
    assert needed == set(zip(*found, strict=True))


def test_order_of_columns_in_a_row_stays(tmp_path):
    """The columns may be unsorted, and a row may be empty."""
    matrix = csr_matrix((numpy.array([1., 2., 3.]), numpy.array([4, 0, 2]),
                         numpy.array([0, 2, 2, 3])), shape=(3, 5))
    path = write_csr(tmp_path / 'a.h5', matrix)
    found = read_all(HDF5Dataset(path, [CSR('X')]))
    assert [4, 0, 2] == found.indices.tolist()
    assert [0, 2, 2, 3] == found.indptr.tolist()


def test_matrix_of_old_files_is_read(tmp_path):
    """Attributes had other names before AnnData 0.7."""
    matrix = random_csr(4, 9, seed=1)
    path = write_csr(tmp_path / 'a.h5', matrix)
    with h5py.File(path, 'a') as file:
        attributes = file['X'].attrs
        attributes['h5sparse_format'] = 'csr'
        attributes['h5sparse_shape'] = attributes['shape']
        del attributes['shape'], attributes['encoding-type']
    assert_same_rows(matrix.toarray(), read_all(
        HDF5Dataset(path, [CSR('X')])), matrix)


@pytest.mark.parametrize('group', ['X', 'layers/counts'])
def test_matrix_by_columns_is_refused(tmp_path, group):
    """The error has the remedy."""
    path = write_csr(tmp_path / 'a.h5', random_csr(9, 4, seed=1).T.tocsc(),
                     group, kind='csc_matrix')
    place = 'X' if group == 'X' else r"layers\['counts'\]"
    with pytest.raises(ValueError, match=rf'stored by columns \(CSC\).*adata'
                       rf'\.{place} = adata\.{place}\.tocsr\(\)'):
        HDF5Dataset(path, [CSR(group)])


def test_matrix_by_columns_that_does_not_say_so_is_refused(tmp_path):
    """Its indptr fits the columns alone."""
    matrix = random_csr(9, 4, seed=1)
    path = write_csr(tmp_path / 'a.h5', matrix, shape=(4, 9))
    with h5py.File(path, 'a') as file:
        del file['X'].attrs['encoding-type']
    with pytest.raises(ValueError, match='stored by columns'):
        HDF5Dataset(path, [CSR('X')])


def test_group_and_array_that_are_not_a_sparse_matrix_are_refused(tmp_path):
    """The error names the column that reads it."""
    path = write(tmp_path / 'a.h5', x=numpy.zeros((3, 2)),
                 g__x=numpy.zeros(3))
    with pytest.raises(ValueError, match=r"array, which Rows\('x'\) reads"):
        HDF5Dataset(path, [CSR('x')])
    with pytest.raises(ValueError, match=(
            'not a group of the arrays data, ind')):
        HDF5Dataset(path, [CSR('g')])
    write_csr(tmp_path / 'b.h5', random_csr(3, 4, seed=1))
    with pytest.raises(ValueError, match=r"'X' is a group.*CSR\('X'\) reads"):
        HDF5Dataset(tmp_path / 'b.h5', ['X'])
    with h5py.File(tmp_path / 'b.h5', 'a') as file:
        del file['X'].attrs['shape']
    with pytest.raises(ValueError, match="should have an attribute 'shape'"):
        HDF5Dataset(tmp_path / 'b.h5', [CSR('X')])


def test_files_of_other_columns_are_refused(tmp_path):
    """The error names both files."""
    paths = [write_csr(tmp_path / f'{width}.h5', random_csr(3, width, seed=1))
             for width in (4, 5)]
    with pytest.raises(ValueError, match=r'4.h5 has 4, and .*5.h5 has 5'):
        HDF5Dataset(paths, [CSR('X')])


@pytest.mark.parametrize(('name', 'change', 'text'), [
    ('indptr', lambda array: array[::-1], 'should go from 0 to'),
    ('indptr', lambda array: array * 2, 'should go from 0 to'),
    ('indptr', lambda array: array[[0, 2, 1, 3]], 'row 1 begins at'),
    ('indptr', lambda array: array[:-1], 'should have 3 rows'),
    ('indptr', lambda array: array + .4, 'integers in one axis'),
    ('indptr', lambda array: array * [1, numpy.nan, 1, 1],
     'integers in one axis'),
    ('indptr', lambda array: array[:, None], 'integers in one axis'),
    ('data', lambda array: array[:-1], 'values and'),
])
def test_damaged_offsets_are_refused(tmp_path, name, change, text):
    """The error is raised when the file is opened."""
    path = write_csr(tmp_path / 'a.h5', random_csr(3, 40, seed=1, density=.4))
    with h5py.File(path, 'a') as file:
        array = file['X'][name][()]
        del file['X'][name]
        file['X'][name] = change(array)
    with pytest.raises(DamagedFileError, match=rf'a.h5.*{text}'):
        HDF5Dataset(path, [CSR('X')])


@pytest.mark.parametrize(('name', 'change', 'text'), [
    ('data', lambda array: array[:, None], 'data should be numbers in one'),
    ('data', lambda array: array.astype('S'), 'data should be numbers in one'),
    ('indices', lambda array: array[:, None], 'indices should be integers'),
    ('indices', lambda array: array * 1., 'indices should be integers'),
])
def test_group_that_is_not_a_matrix_is_refused(tmp_path, name, change, text):
    """The reader would make rows of other bytes."""
    path = write_csr(tmp_path / 'a.h5', random_csr(3, 40, seed=1, density=.4))
    with h5py.File(path, 'a') as file:
        array = file['X'][name][()]
        del file['X'][name]
        file['X'][name] = change(array)
    with pytest.raises(ValueError, match=rf'a.h5.*{text}'):
        HDF5Dataset(path, [CSR('X')])


@pytest.mark.parametrize('shape', [
    [3, -40], [3., 40.], [3, numpy.nan], numpy.array([3, 2 ** 64 - 1], 'u8'),
    [3], 'wide'], ids=str)
def test_shapes_of_no_matrix_are_refused(tmp_path, shape):
    """Two numbers of rows and columns, which there can be."""
    path = write_csr(tmp_path / 'a.h5', random_csr(3, 40, seed=1, density=.4))
    with h5py.File(path, 'a') as file:
        file['X'].attrs['shape'] = shape
    with pytest.raises(ValueError, match='a.h5.*two whole numbers'):
        HDF5Dataset(path, [CSR('X')])


@pytest.mark.parametrize('dtype', ['i1', 'i2'])
def test_negative_columns_of_short_types_are_errors(tmp_path, dtype):
    """There are as many columns as an unsigned number of the type counts."""
    path = write_csr(tmp_path / 'a.h5', random_csr(
        3, 70000, seed=1, density=1e-4))
    with h5py.File(path, 'a') as file:
        count = len(file['X/indices'])
        del file['X/indices']
        file['X/indices'] = numpy.full(count, -1, dtype)
    dataset = HDF5Dataset(path, [CSR('X')])
    with pytest.raises(DamagedFileError, match='an element in column -1, and'):
        dataset.get_data(None, [0, 1, 2])


@pytest.mark.parametrize('column', [-1, 40, 1 << 30])
def test_element_beyond_the_columns_is_an_error(tmp_path, column):
    """The error names the file and the row, of several files too."""
    matrix = random_csr(3, 40, seed=1, density=.4)
    paths = [write_csr(tmp_path / f'{name}.h5', matrix) for name in 'ab']
    with h5py.File(paths[1], 'a') as file:
        file['X/indices'][file['X/indptr'][1]] = column
    dataset = HDF5Dataset(paths, [CSR('X')])
    dataset.get_data(None, [0, 3, 5])
    with pytest.raises(DamagedFileError, match=r"b.h5, source 'X', row 1: it "
                       rf'has an element in column {column}, and there are'):
        dataset.get_data(None, [5, 4, 0])
    # Rows that are known to be right hide no other, and none is forgiven.
    dataset.get_data(None, [0, 3, 5])
    with pytest.raises(DamagedFileError, match='row 1: it has an element'):
        dataset.get_data(None, [0, 3, 4])


@pytest.mark.parametrize('options', [{}, {'compression': 'gzip'}])
def test_made_batches_of_an_epoch_are_read_in_c(
        tmp_path, monkeypatch, options):
    """The rows may be compressed: they are decoded first. The errors are those
    of a request."""
    matrices = [random_csr(6, 40, seed=seed, density=.4) for seed in (1, 2)]
    paths = [write_csr(tmp_path / f'{seed}.h5', matrix, **options)
             for seed, matrix in enumerate(matrices)]
    whole, called = vstack(matrices).tocsr(), []
    splits = {'a': [11, *range(1, 11)], 'b': (2, 9)}
    read = RangesReader._read_list
    monkeypatch.setattr(RangesReader, '_read_list', (
        lambda *args: called.append(1) or read(*args)))
    for which, rows in (('a', splits['a']), ('b', range(2, 9))):
        dataset = HDF5Dataset(
            paths, [CSR('X'), Ragged('X/data', offsets='X/indptr')],
            splits=splits, which_sets=(which,))
        stream = DataStream(dataset, iteration_scheme=SequentialScheme(
            [*range(1, len(rows)), 0], 3))
        list(stream.get_epoch_iterator())
        called.clear()
        start = 1
        for sparse, ragged in stream.get_epoch_iterator():
            wanted = whole[[rows[place % len(rows)] for place in range(
                start, min(start + 3, len(rows) + 1))]]
            start += 3
            assert_array_equal(wanted.toarray(), sparse.toarray())
            sparse.check_format(full_check=True)
            assert_array_equal(wanted.data, numpy.concatenate(ragged))
        assert not called
        dataset.close(None)
    with h5py.File(paths[1], 'a') as file:
        file['X/indices'][-1] = 40
    epoch = DataStream(HDF5Dataset(paths, [CSR('X')]),
                       iteration_scheme=SequentialScheme(12, 3)
                       ).get_epoch_iterator()
    assert 3 == len(list(zip(range(3), epoch, strict=False)))
    with pytest.raises(DamagedFileError, match='1.h5.*row 5: it has') as info:
        next(epoch)
    assert any('item 3 of the epoch' in note for note in info.value.__notes__)


def test_rows_that_were_right_are_checked_in_another_version(tmp_path):
    """A row is checked anew for each version of its file."""
    path = write_csr(tmp_path / 'a.h5', random_csr(3, 40, seed=1, density=.4))
    with h5py.File(path, 'r') as file:
        indices = file['X/indices']
        place, dtype = indices.id.get_offset(), indices.dtype
    dataset = HDF5Dataset(path, [CSR('X')])
    dataset.get_data(None, [0, 1, 2])
    with open(path, 'r+b') as file:
        file.seek(place)
        file.write(numpy.array(40, dtype).tobytes())
    with pytest.raises(DamagedFileError, match='was written to while'):
        dataset.get_data(None, [0, 1, 2])
    stream = DataStream(dataset, iteration_scheme=ShuffledScheme(3, 3))
    with pytest.raises(DamagedFileError, match='an element in column 40'):
        next(stream.get_epoch_iterator())


def test_stream_of_sparse_batches_reads_ahead(tmp_path):
    """The data are compressed, and too large to be remembered whole."""
    matrix = random_csr(200, 300, density=.1)
    path = write_csr(tmp_path / 'a.h5', matrix, chunks=(500,),
                     compression='gzip')
    dataset = HDF5Dataset(path, [CSR('X')], cache_bytes=10000)
    stream = DataStream(dataset, iteration_scheme=ShuffledScheme(200, 16))
    total = sum(batch.sum() for batch, in stream.get_epoch_iterator())
    assert total == pytest.approx(matrix.sum())


# Categories.

def write_categories(path, codes, names, group='obs/type'):
    """Write a categorical column as AnnData does."""
    with h5py.File(path, 'a') as file:
        file[f'{group}/codes'] = numpy.array(codes, 'int8')
        file[f'{group}/categories'] = names
    return path


def test_categories_are_codes_and_names(tmp_path):
    """Missing is -1."""
    path = write_categories(tmp_path / 'a.h5', [1, -1, 0], ['é', 'b'])
    dataset = HDF5Dataset(path, [Categorical('obs/type')])
    codes = read_all(dataset)
    assert [1, -1, 0] == codes.tolist()
    assert numpy.dtype('int8') == codes.dtype
    assert {'obs/type': ('é', 'b')} == dataset.categories


def test_categories_of_several_files_are_united(tmp_path):
    """Names are in the order met; a code means one name in every split."""
    paths = [write_categories(tmp_path / 'a.h5', [1, -1, 0], ['x', 'y']),
             write_categories(tmp_path / 'b.h5', [0, 1, 1, -1], ['z', 'x'])]
    dataset = HDF5Dataset(paths, {'type': Categorical('obs/type')})
    assert {'type': ('x', 'y', 'z')} == dataset.categories
    assert [1, -1, 0, 2, 0, 0, -1] == read_all(dataset).tolist()
    assert [0, -1, 1] == dataset.get_data(None, [4, 6, 0])[0].tolist()
    split = HDF5Dataset(paths, {'type': Categorical('obs/type')}, splits={
        'test': (3, 5)}, which_sets=('test',))
    assert dataset.categories == split.categories
    assert [2, 0] == read_all(split).tolist()


@pytest.mark.parametrize(('count', 'dtype'), [
    (128, 'int8'), (129, 'int16'), (32769, 'int32')])
def test_codes_have_the_smallest_type(tmp_path, count, dtype):
    """The smallest type that holds all names is chosen."""
    path = write(tmp_path / 'a.h5', codes=numpy.array([count - 1, -1]),
                 names=numpy.arange(count))
    dataset = HDF5Dataset(path, {'x': Categorical('codes', names='names')})
    codes = read_all(dataset)
    assert [count - 1, -1] == codes.tolist()
    assert numpy.dtype(dtype) == codes.dtype
    assert count - 1 == dataset.categories['x'][-1]


def test_names_may_be_given(tmp_path):
    """The names may be given for an array of codes."""
    path = write(tmp_path / 'a.h5', digit=numpy.array([0, 1], 'u1'))
    column = Categorical('digit', names=['zero', 'one'])
    dataset = HDF5Dataset(path, [column])
    assert {'digit': ('zero', 'one')} == dataset.categories
    assert [0, 1] == read_all(dataset).tolist()


def test_categories_of_old_files_are_read(tmp_path):
    """Before AnnData 0.8 an attribute leads to the names, before 0.7 they
    are in another group and the codes in a table."""
    path = write(tmp_path / 'a.h5', obs__type=numpy.array([1, 0], 'i1'))
    with h5py.File(path, 'a') as file:
        file['obs/__categories/type'] = ['x', 'y']
        file['obs/type'].attrs['categories'] = file[
            'obs/__categories/type'].ref
    dataset = HDF5Dataset(path, [Categorical('obs/type')])
    assert {'obs/type': ('x', 'y')} == dataset.categories
    path = write(tmp_path / 'b.h5', obs=numpy.array(
        [(1, 2.), (0, 3.)], [('type', 'i1'), ('score', 'f4')]),
        uns__type_categories=['x', 'y'])
    dataset = HDF5Dataset(path, [
        Categorical('obs/type'), Rows('obs', field='score')])
    assert {'obs/type': ('x', 'y')} == dataset.categories
    codes, score = dataset.get_data(None, [1, 0])
    assert [0, 1] == codes.tolist()
    assert [3., 2.] == score.tolist()


def test_damaged_categories_are_errors(tmp_path):
    """The errors name the file, and the row in it."""
    paths = [write_categories(tmp_path / 'a.h5', [0, 0], ['x']),
             write_categories(tmp_path / 'b.h5', [0, 1], ['x'])]
    dataset = HDF5Dataset(paths, [Categorical('obs/type')])
    with pytest.raises(DamagedFileError, match=r"b.h5, source 'obs/type', row "
                       '1: it has the code 1, and there are 1 categories'):
        dataset.get_data(None, [0, 3, 1])
    one = HDF5Dataset(paths[1], [Categorical('obs/type')])
    with pytest.raises(DamagedFileError, match='row 1: it has the code 1'):
        read_all(one)
    twice = write_categories(tmp_path / 'c.h5', [0, 1], ['x', 'x'])
    with pytest.raises(DamagedFileError, match=r'c.h5.*is there twice'):
        HDF5Dataset(twice, [Categorical('obs/type')])


def test_column_without_names_is_refused(tmp_path):
    """The error says how to name them."""
    path = write(tmp_path / 'a.h5', x=numpy.arange(3), y=numpy.zeros(3),
                 g__z=numpy.zeros(3))
    with pytest.raises(ValueError, match=r'there are no names .*names=...'):
        HDF5Dataset(path, [Categorical('x')])
    with pytest.raises(ValueError, match='must be integers, got float64'):
        HDF5Dataset(path, [Categorical('y', names=['a'])])
    with pytest.raises(ValueError, match="'g' should be an array of codes"):
        HDF5Dataset(path, [Categorical('g')])


# Packed numbers.

def write_packed(path, array, **attributes):
    """Write an array as netCDF packs it."""
    with h5py.File(path, 'w') as file:
        file['t'] = array
        for name, value in attributes.items():
            file['t'].attrs[name] = numpy.atleast_1d(value)
    return path


STORED = numpy.array([[0, 5], [-32767, 100]], 'int16')


@pytest.mark.parametrize(('attributes', 'dtype', 'wanted'), [
    ({'scale_factor': .5, 'add_offset': 10.}, 'float64',
     [[10, 12.5], [-16373.5, 60]]),
    ({'scale_factor': numpy.float32(.5), '_FillValue': numpy.int16(-32767)},
     'float32', [[0, 2.5], [numpy.nan, 50]]),
    ({'add_offset': numpy.float32(1)}, 'float32', [[1, 6], [-32766, 101]]),
    ({'_FillValue': numpy.int16(5)}, 'float32',
     [[0, numpy.nan], [-32767, 100]]),
    ({'missing_value': [5., 100.], 'scale_factor': 2.}, 'float64',
     [[0, numpy.nan], [-65534, numpy.nan]]),
    *[({'_FillValue': value}, 'int16', STORED.tolist())
      for value in (1e20, numpy.inf, -numpy.inf, .5)],
    ({}, 'int16', STORED.tolist()),
])
def test_packed_numbers_are_unpacked(tmp_path, attributes, dtype, wanted):
    """The type is that which NumPy makes of both; missing numbers are NaN."""
    path = write_packed(tmp_path / 'a.nc', STORED, **attributes)
    dataset = HDF5Dataset(path, [Scaled('t')])
    found = read_all(dataset)
    assert_array_equal(numpy.array(wanted, dtype), found)
    assert numpy.dtype(dtype) == found.dtype
    assert dtype == dataset.known_types()['t'].dtype
    example, = dataset.get_data(None, 1)
    assert_array_equal(numpy.array(wanted, dtype)[1], example)


def test_each_file_has_its_own_packing(tmp_path):
    """Files of one variable have a packing each."""
    paths = [write_packed(tmp_path / 'a.nc', STORED, scale_factor=2.,
                          _FillValue=numpy.int16(5)),
             write_packed(tmp_path / 'b.nc', STORED, scale_factor=3.,
                          add_offset=1.)]
    found, = HDF5Dataset(paths, [Scaled('t')]).get_data(None, [2, 0, 3, 2])
    assert_array_equal([[1, 16], [0, numpy.nan], [-98300, 301], [1, 16]],
                       found)


def test_numbers_without_a_fill_value_in_floats(tmp_path):
    """A NaN in the file stays NaN."""
    array = numpy.array([1e20, 2, numpy.nan], 'f4')
    path = write_packed(tmp_path / 'a.nc', array, _FillValue=1e20)
    assert_array_equal([numpy.nan, 2, numpy.nan], read_all(
        HDF5Dataset(path, [Scaled('t')])))


def test_odd_packing_is_refused(tmp_path):
    """Text is not scaled, nor is a scale for each column known."""
    path = write_packed(tmp_path / 'a.nc', numpy.array([b'a', b'b']))
    with pytest.raises(ValueError, match='must have numbers to be scaled'):
        HDF5Dataset(path, [Scaled('t')])
    path = write_packed(tmp_path / 'b.nc', STORED, scale_factor=[1., 2.])
    with pytest.raises(ValueError, match="'scale_factor' should be a number"):
        HDF5Dataset(path, [Scaled('t')])


# Several axes that count rows.

def test_first_axes_become_one(tmp_path):
    """Each index of the first one is a run."""
    arrays = [numpy.arange(24).reshape(2, 3, 4), numpy.arange(8).reshape(
        1, 2, 4)]
    paths = [write(tmp_path / f'{number}.h5', x=array, y=array[..., 0])
             for number, array in enumerate(arrays)]
    dataset = HDF5Dataset(paths, {'y': Flat('y'), 'x': Flat('x')})
    assert 8 == dataset.num_examples
    assert [0, 3, 6, 8] == dataset.runs.tolist()
    y, x = dataset.get_data(None, [7, 0, 4])
    assert [4, 0, 16] == y.tolist()
    assert_array_equal(numpy.concatenate([
        array.reshape(-1, 4) for array in arrays])[[7, 0, 4]], x)
    files = HDF5Dataset(paths, [Flat('x')], splits={'b': ['1.h5']},
                        which_sets=('b',))
    assert_array_equal(arrays[1][0], read_all(files))
    joined = HDF5Dataset(paths, [Flat('x')], runs='all')
    assert [0, 8] == joined.runs.tolist()
    three = HDF5Dataset(paths, [Flat('x', axes=3)])
    assert 32 == three.num_examples
    assert [0, 4, 8] == three.runs[:3].tolist()


def test_columns_that_divide_parts_otherwise_are_refused(tmp_path):
    """Equal sums are not enough."""
    path = write(tmp_path / 'a.h5', x=numpy.zeros((2, 3)),
                 y=numpy.zeros((3, 2)))
    with pytest.raises(ValueError, match="'y' must have as many rows for each "
                       "index of its first axes as 'x' has"):
        HDF5Dataset(path, [Flat('x'), Flat('y')])
    with pytest.raises(ValueError, match='at least 1, got 0'):
        Flat('x', axes=0)


# Fields.

def test_fields_of_a_table_are_read(tmp_path):
    """One is plain, several are such a type."""
    table = numpy.array([(1, 2., b'a'), (3, 4., b'b')], [
        ('n', '>i2'), ('pt', '<f4'), ('tag', 'S1')])
    path = write(tmp_path / 'a.h5', jets=table)
    dataset = HDF5Dataset(path, {
        'all': 'jets', 'pt': Rows('jets', field='pt'),
        'two': Rows('jets', field=['tag', 'n'])})
    whole, pt, two = dataset.get_data(None, [1, 0])
    assert ('n', 'pt', 'tag') == whole.dtype.names
    assert [4., 2.] == pt.tolist()
    assert numpy.dtype('f4') == pt.dtype
    assert [(b'b', 3), (b'a', 1)] == two.tolist()
    with pytest.raises(ValueError, match="'jets' has no field 'weight'; it "
                       "has 'n', 'pt', 'tag'"):
        HDF5Dataset(path, [Rows('jets', field='weight')])


# Rows along other axes, ragged rows, and text of several widths.

@pytest.mark.parametrize('options', [
    {}, {'chunks': (2, 1, 3)}, {'chunks': (2, 2, 2), 'compression': 'gzip'}])
@pytest.mark.parametrize('axis', [0, 1, 2, -1, -3])
@pytest.mark.parametrize('dtype', ['>f4', 'i8'])
def test_another_axis_may_count_rows(tmp_path, options, axis, dtype):
    """MATLAB writes such arrays, in any storage."""
    array = numpy.arange(24).reshape(2, 3, 4).astype(dtype)
    path = tmp_path / 'a.h5'
    with h5py.File(path, 'w') as file:
        file.create_dataset('x', data=array, **options)
    wanted = numpy.moveaxis(array, axis, 0)
    for cache_bytes in (None, 0):
        dataset = HDF5Dataset(path, [Rows('x', axis=axis)],
                              cache_bytes=cache_bytes)
        assert len(wanted) == dataset.num_examples
        assert wanted.shape[1:] == dataset.known_types()['x'].shape
        for request in ([1, 0, 1], slice(0, 2)):
            found, = dataset.get_data(None, request)
            assert_array_equal(wanted[request], found)
            assert found.dtype.isnative
            found[...] = -1
        assert_array_equal(wanted[1], dataset.get_data(None, 1)[0])


def test_rows_along_an_axis_may_be_cut_and_have_fields(tmp_path):
    """Each of several files is cut alike."""
    table = numpy.array([[(n, -n) for n in range(5)]], [
        ('a', 'i4'), ('b', 'i8')])
    paths = [write(tmp_path / f'{name}.h5', x=table) for name in 'ab']
    dataset = HDF5Dataset(paths, {
        'all': Rows('x', axis=1, start=1, stop=-1),
        'b': Rows('x', field='b', axis=1, start=1, stop=-1),
        'two': Rows('x', field=['b', 'a'], axis=1, start=1, stop=-1)})
    whole, b, two = dataset.get_data(None, slice(0, 6))
    assert [1, 2, 3, 1, 2, 3] == whole['a'][:, 0].tolist()
    assert [-1, -2, -3, -1, -2, -3] == b[:, 0].tolist()
    assert (-3, 3) == two[2, 0].item()
    with pytest.raises(ValueError, match=r"a.h5: 'x' has 2 axes, and none is "
                       'number 2'):
        HDF5Dataset(paths, [Rows('x', axis=2)])
    other = write(tmp_path / 'c.h5', x=numpy.zeros((3, 4)))
    with pytest.raises(ValueError, match=r'a.h5 has .*c.h5 has float64'):
        HDF5Dataset([paths[0], other], [Rows('x', axis=1)])


def test_parts_may_differ_in_other_axes_where_rows_are_ragged(tmp_path):
    """A batch is an array of arrays."""
    path = tmp_path / 'a.h5'
    shapes = {'2': (3, 2, 3), '10': (2, 4, 3)}
    with h5py.File(path, 'w') as file:
        for name, shape in shapes.items():
            file.create_dataset(f'{name}/x', data=numpy.arange(
                numpy.prod(shape)).reshape(shape), dtype='>f4')
    with pytest.raises(ValueError, match='all parts must have rows of one'):
        HDF5Dataset(path, ['x'], parts='*')
    dataset = HDF5Dataset(path, [Rows('x', ragged=True)], parts='*')
    rows, = dataset.get_data(None, [4, 0])
    assert numpy.dtype(object) == rows.dtype
    assert_array_equal(numpy.arange(12, 24).reshape(4, 3), rows[0])
    assert_array_equal(numpy.arange(6).reshape(2, 3), rows[1])
    assert numpy.dtype('f4') == rows[0].dtype
    rows[0][...] = 0
    assert 23 == dataset.get_data(None, 4)[0].max()
    assert 'f4' == dataset.known_types()['x'].dtype


def test_text_of_unequal_widths_has_the_widest(tmp_path):
    """The text has a fixed length."""
    paths = [write(tmp_path / f'{width}.h5',
                   x=numpy.array([b'a' * width, b'b'])) for width in (2, 5)]
    found = read_all(HDF5Dataset(paths))
    assert [b'aa', b'b', b'aaaaa', b'b'] == found.tolist()
    assert numpy.dtype('S5') == found.dtype


# Examples of different lengths.

@pytest.mark.parametrize('kind', ['offsets', 'ends', 'lengths', 'table'])
def test_ragged_examples_are_ranges_of_rows(tmp_path, kind):
    """Some may be empty; of several files."""
    lengths = [[3, 0, 2], [1]]
    paths = []
    for number, counts in enumerate(lengths):
        ends = numpy.cumsum(counts)
        paths.append(write(
            tmp_path / f'{number}.h5',
            x=(10 * number + numpy.arange(sum(counts)))[:, None],
            ends=ends, offsets=numpy.concatenate([[0], ends]),
            lengths=numpy.array(counts, 'i4'),
            table=numpy.stack([counts, counts], 1)))
    column = (Ragged('x', lengths=('table', 1)) if kind == 'table'
              else Ragged('x', **{kind: kind}))
    dataset = HDF5Dataset(paths, [column])
    assert 4 == dataset.num_examples
    assert [0, 3, 4] == dataset.runs.tolist()
    found, = dataset.get_data(None, [3, 2, 1, 0, 2])
    assert [[10], [3, 4], [], [0, 1, 2], [3, 4]] == [
        one[:, 0].tolist() for one in found]
    found[1][...] = 0
    assert [3, 4] == found[4][:, 0].tolist()
    assert (2, 1) == dataset.get_data(None, 2)[0].shape
    assert (None, 1) == dataset.known_types()['x'].shape


@pytest.mark.parametrize(('given', 'bounds', 'text'), [
    ('offsets', [0, 3, 2, 5], r'from row \[3\] to \[2\] for example 1'),
    ('offsets', [0, 3, 6], r'to \[6\] for example 1, and .* has 5 rows'),
    ('offsets', [-1, 3, 5], r'from row \[3\]'),
    ('ends', [2, 1, 5], r'from row \[2\] to \[1\] for example 1'),
    ('lengths', [2, -1, 4], r'from row \[2\] to \[1\]'),
    ('lengths', [2, 4], r'to \[6\]')])
def test_damaged_bounds_are_refused(tmp_path, given, bounds, text):
    """The error is raised when the file is opened."""
    path = write(tmp_path / 'a.h5', x=numpy.arange(5), b=bounds)
    with pytest.raises(DamagedFileError, match=rf'a.h5.*{text}'):
        HDF5Dataset(path, [Ragged('x', **{given: 'b'})])


def test_bounds_that_are_none_are_refused(tmp_path):
    """Bounds of another type or shape, or without a name, are refused."""
    path = write(tmp_path / 'a.h5', x=numpy.arange(5), b=[.5],
                 table=numpy.zeros((2, 2), int))
    with pytest.raises(ValueError, match='lengths must be integers in one'):
        HDF5Dataset(path, [Ragged('x', lengths='b')])
    with pytest.raises(ValueError, match='there is no such column'):
        HDF5Dataset(path, [Ragged('x', lengths=('table', 2))])
    with pytest.raises(ValueError, match='one of offsets, ends and lengths, '
                       'got none'):
        Ragged('x')
    with pytest.raises(ValueError, match='got offsets, ends'):
        Ragged('x', offsets='a', ends='b')


# Values that rows share.

@pytest.fixture
def configurations(tmp_path):
    """Return a file of molecules: a value each, and rows of atoms."""
    path = tmp_path / 'a.h5'
    with h5py.File(path, 'w') as file:
        for number, count in ((2, 3), (10, 1), (1, 2)):
            group = file.create_group(f'c/{number}')
            group['positions'] = numpy.full((count, 3), number)
            group['cell'] = numpy.eye(3) * number
            group['energy'] = float(number)
            group['name'] = f'é{number}'
            group['kinds'] = numpy.arange(count)
    return path


def test_constant_is_the_value_of_the_part(configurations):
    """It is a scalar, an array, a text, or one of arrays of different
    shapes."""
    dataset = HDF5Dataset(configurations, [
        'positions', *map(Constant, ['energy', 'cell', 'name', 'kinds'])],
        parts='c/*')
    positions, energy, cell, name, kinds = dataset.get_data(
        None, [5, 0, 2, 4])
    assert [10, 1, 2, 2] == positions[:, 0].tolist() == energy.tolist()
    assert_array_equal(numpy.eye(3) * 10, cell[0])
    assert ['é10', 'é1', 'é2', 'é2'] == name.tolist()
    assert [[0], [0, 1], [0, 1, 2], [0, 1, 2]] == [
        one.tolist() for one in kinds]
    kinds[2][...] = 7
    assert [0, 1, 2] == kinds[3].tolist()
    example = dataset.get_data(None, 5)
    assert 10. == example[1]
    assert 'é10' == example[3]
    types = dataset.known_types()
    assert ((3, 3), None) == (types['cell'].shape, types['kinds'].shape)
    assert dataset.readers['energy'].is_per_run
    joined = HDF5Dataset(configurations, ['positions', Constant('energy')],
                         parts='c/*', runs='all')
    assert not joined.readers['energy'].is_per_run


def test_values_of_unequal_types_and_without_rows_are_refused(
        configurations):
    """The error names both parts; values alone count no rows."""
    with pytest.raises(ValueError, match='none of them counts rows'):
        HDF5Dataset(configurations, [Constant('energy')], parts='c/*')
    alone = HDF5Dataset(
        configurations, [Constant('energy'), 'positions'], parts='c/*',
        sources=('energy',))
    assert [1, 1, 2, 2, 2, 10] == read_all(alone).tolist()
    alone.close(None)
    with h5py.File(configurations, 'a') as file:
        del file['c/2/energy']
        file['c/2/energy'] = 'None'
    with pytest.raises(ValueError, match="group 'c/1' has float64, and .*"
                       "group 'c/2' has object"):
        HDF5Dataset(configurations, ['positions', Constant('energy')],
                    parts='c/*')
    with pytest.raises(ValueError, match="'c' is a group, and no array"):
        HDF5Dataset(configurations, ['c/1/positions', Constant('c')])


def test_rows_of_runs_and_steps_are_repeated(tmp_path):
    """Files of The Well have such values: the time is that of the step, a
    scalar that of the trajectory."""
    paths = []
    for number, (runs, steps) in enumerate([(2, 3), (3, 2)]):
        paths.append(write(
            tmp_path / f'{number}.h5', field=numpy.zeros((runs, steps, 4)),
            time=number + numpy.arange(steps) / 10,
            force=100 * number + numpy.arange(runs)[:, None]))
    dataset = HDF5Dataset(paths, [
        PerStep('time'), PerRun('force'), Flat('field')])
    assert 12 == dataset.num_examples
    time, force, _ = dataset.get_data(None, slice(0, 12))
    assert [0, .1, .2, 0, .1, .2, 1, 1.1, 1, 1.1, 1, 1.1] == time.tolist()
    assert [0, 0, 0, 1, 1, 1, 100, 100, 101, 101, 102, 102] == (
        force[:, 0].tolist())
    time, force, _ = dataset.get_data(None, [11, 4])
    assert [1.1, .1] == time.tolist()
    assert [102, 1] == force[:, 0].tolist()
    assert dataset.readers['force'].is_per_run
    assert_array_equal([102], dataset.get_data(None, 10)[1])


def test_rows_of_runs_that_files_name(tmp_path):
    """Empty runs have a row too."""
    path = write(tmp_path / 'a.h5', x=numpy.arange(5), n=[2, 0, 3],
                 goal=[7, 8, 9], few=[1, 2])
    dataset = HDF5Dataset(path, ['x', PerRun('goal')],
                          runs={'lengths': 'n'})
    assert [7, 7, 9, 9, 9] == dataset.get_data(
        None, slice(0, 5))[1].tolist()
    with pytest.raises(ValueError, match="a.h5: 'few' should have a row for "
                       'each of 3 runs, and has 2'):
        HDF5Dataset(path, ['x', PerRun('few')], runs={'lengths': 'n'})
    with pytest.raises(ValueError, match="a.h5: 'few' should have a row for "
                       'each step of a run, and has 2, but a run has 3'):
        HDF5Dataset(path, ['x', PerStep('few')], runs={'lengths': 'n'})


def test_runs_without_rows_have_values_of_their_own(tmp_path):
    """Runs at the borders of parts have them too."""
    path = tmp_path / 'a.h5'
    with h5py.File(path, 'w') as file:
        for number, lengths in enumerate([[2, 0], [0, 3], [0]]):
            part = file.create_group(f'{number}')
            part.attrs['n'] = number
            part['x'] = numpy.arange(sum(lengths))
            part['lengths'] = lengths
            part['goal'] = 10 * number + numpy.arange(len(lengths))
            part['name'] = f'part {number}'
    dataset = HDF5Dataset(path, ['x', PerRun('goal'), Constant('name')],
                          parts='*', runs={'lengths': 'lengths'})
    assert [0, 2, 2, 2, 5, 5] == dataset.runs.tolist()
    assert [0, 0, 1, 1, 2] == dataset.run_attributes('n')
    assert [0, 0, 11, 11, 11] == dataset.get_data(
        None, slice(0, 5))[1].tolist()
    runs = numpy.array([4, 1, 2, 3])
    assert [20, 1, 10, 11] == dataset.readers['goal'].read_runs(
        runs).tolist()
    assert ['part 2', 'part 0', 'part 1', 'part 1'] == dataset.readers[
        'name'].read_runs(runs).tolist()


def test_trajectories_without_steps_are_of_their_own_part(tmp_path):
    """Values belong to their runs or parts, also to empty ones."""
    paths = []
    for number, steps in enumerate((0, 2)):
        paths.append(str(tmp_path / f'{number}.h5'))
        with h5py.File(paths[-1], 'w') as file:
            file['x'] = numpy.zeros((1, steps, 3))
            file['of_run'] = [10. * number]
            file['of_part'] = 7 + number
            file.attrs['name'] = f'file {number}'
    dataset = HDF5Dataset(paths, [
        Flat('x'), PerRun('of_run'), Constant('of_part')])
    assert [0, 0, 2] == dataset.runs.tolist()
    assert ['file 0', 'file 1'] == dataset.run_attributes('name')
    _, of_run, of_part = Runs(dataset).get_data(None, [0, 1])
    assert [0., 10.] == of_run.tolist()
    assert [7, 8] == of_part.tolist()


@pytest.mark.parametrize('build, text', [
    (lambda: Categorical(Rows('obs', field='kind')),
     r"path of Categorical .* got Rows\('obs', field='kind'\), a column"),
    (lambda: Rows(3), 'path of Rows must be the path'),
    (lambda: Rows(''), 'path of Rows must be the path'),
    (lambda: Flat(None), 'path of Flat must be the path'),
    (lambda: Rows('x', field=Rows('a')), r"field of Rows\('x'\)"),
    (lambda: Rows('x', ragged='yes'), 'ragged of Rows must be True or False'),
    (lambda: CSR('x', dense=1), 'dense of CSR must be True or False'),
    (lambda: Categorical('x', names=Rows('a')), 'names of Categorical'),
    (lambda: Categorical('x', names=3), 'names of Categorical'),
    (lambda: Ragged('x', offsets=Rows('a')), 'offsets of Ragged must be'),
    (lambda: Ragged(Rows('x'), ends='a'), 'values of Ragged must be'),
    (lambda: Ragged('x', lengths=('a', 'b')), r"lengths of Ragged\('x'\)"),
    (lambda: PerRun(Rows('x')), 'path of PerRun must be')])
def test_columns_check_their_arguments_when_they_are_made(build, text):
    """The error is not raised on opening, as if the file were damaged."""
    with pytest.raises(TypeError, match=text):
        build()


@pytest.mark.parametrize('error', [
    AttributeError('a'), TypeError('t'), NameError('n')])
def test_mistake_of_a_program_is_not_called_damage(tmp_path, error):
    """Errors that h5py raises of damaged files have these classes, too."""
    class Mistaken(Rows):
        def open(self, parts, name):
            raise error

    path = tmp_path / 'a.h5'
    with h5py.File(path, 'w') as file:
        file['x'] = numpy.arange(3)
    with pytest.raises(type(error)) as caught:
        HDF5Dataset(str(path), [Mistaken('x')])
    assert error is caught.value
