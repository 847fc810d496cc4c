"""Types of columns, and of one column in several files."""
import datetime
import subprocess
import sys
import textwrap

import numpy
import polars
import pyarrow
import pyarrow.parquet
import pytest

from fuel.interop.arrow import ArrowDataset


def rows(data, **kwargs):
    """Return all rows of the only source."""
    dataset = ArrowDataset(data, **kwargs)
    found, = dataset.get_data(None, slice(0, dataset.num_examples))
    return found


def files(folder, *columns):
    """Write columns into files of their own, of a column 'x'."""
    for number, column in enumerate(columns):
        pyarrow.parquet.write_table(
            pyarrow.table({'x': column}), folder / f'{number}.parquet')
    return folder


@pytest.mark.parametrize('shape, axes', [
    ([2, 3], [1, 0]), ([2, 3, 4], [0, 2, 1]), ([2, 3, 4], [2, 1, 0]),
    ([2, 3, 4], [1, 0, 2])])
@pytest.mark.parametrize('names', [None, True])
def test_tensors_have_the_axes_of_their_permutation(shape, axes, names):
    """The axes are those of PyArrow's own arrays."""
    size = int(numpy.prod(shape))
    arrow = pyarrow.fixed_shape_tensor(
        pyarrow.int32(), shape, permutation=axes,
        dim_names=list('abc')[:len(shape)] if names else None)
    column = pyarrow.ExtensionArray.from_storage(
        arrow, pyarrow.FixedSizeListArray.from_arrays(
            pyarrow.array(numpy.arange(3 * size, dtype='int32')), size))
    found = rows(pyarrow.table({'x': column}))
    expected = column.to_numpy_ndarray()
    assert (expected.shape, expected.dtype) == (found.shape, found.dtype)
    assert (expected == found).all()


def test_permutation_with_two_meanings_is_refused():
    """PyArrow writes, and reads, those of three axes in turn by another rule
    than the format's, and does not get back what it wrote."""
    images = numpy.arange(48).reshape(2, 4, 3, 2).transpose(0, 3, 1, 2)
    column = pyarrow.FixedShapeTensorArray.from_numpy_ndarray(images)
    data = pyarrow.table({'x': column, 'y': [1, 2]})
    assert [1, 2] == rows(data, sources=('y',)).tolist()
    with pytest.raises(ValueError, match="'x' has tensors with the permu"):
        rows(data, sources=('x',))
    straight = pyarrow.FixedShapeTensorArray.from_numpy_ndarray(
        numpy.ascontiguousarray(images))
    assert (images == rows(pyarrow.table({'x': straight}))).all()


def test_booleans_of_eight_bits_are_booleans():
    """They are not the stored integers; this holds in lists too."""
    column = pyarrow.ExtensionArray.from_storage(
        pyarrow.bool8(), pyarrow.array([1, 0, 5], pyarrow.int8()))
    found = rows(pyarrow.table({'x': column}))
    assert (numpy.dtype(bool), [True, False, True]) == (
        found.dtype, found.tolist())
    pair = pyarrow.FixedSizeListArray.from_arrays(column[:2], 2)
    assert [[True, False]] == rows(pyarrow.table({'x': pair})).tolist()


@pytest.mark.parametrize('dtype', [
    polars.Categorical, polars.Enum(['a', 'b']), polars.String])
def test_categories_of_polars_are_what_they_stand_for(dtype):
    """Their text is of a type that PyArrow does not decode."""
    frame = polars.DataFrame({'x': polars.Series(
        ['b', 'a', None, 'b'], dtype=dtype)})
    assert ['b', 'a', None, 'b'] == rows(frame).tolist()


def test_dictionary_may_have_as_many_values_as_its_numbers_count():
    """A null is none of them."""
    words = [f'{n}' for n in range(128)]
    column = pyarrow.DictionaryArray.from_arrays(
        pyarrow.array([127, None, 0], pyarrow.int8()), words)
    assert ['127', None, '0'] == rows(pyarrow.table({'x': column})).tolist()


def test_columns_may_be_a_list_of_names():
    """Each is a source, in that order; a text is one name."""
    data = pyarrow.table({'a': [1, 2], 'b': [3, 4], 'c': [5, 6]})
    dataset = ArrowDataset(data, columns=['c', 'a'])
    assert ('c', 'a') == dataset.sources
    assert [[6], [2]] == [part.tolist()
                          for part in dataset.get_data(None, [1])]
    assert ('b',) == ArrowDataset(data, columns='b').sources
    with pytest.raises(ValueError, match="no column 'd'"):
        ArrowDataset(data, columns=['d'])
    with pytest.raises(ValueError, match='twice'):
        ArrowDataset(data, columns=['a', 'a'])


@pytest.mark.parametrize('first, second, dtype', [
    ('int32', 'int64', 'int64'), ('uint8', 'int8', 'int16'),
    ('int32', 'float32', 'float64'), ('int16', 'float32', 'float32'),
    ('float16', 'float64', 'float64'), ('uint32', 'int32', 'int64')])
def test_numbers_of_several_types_become_one_that_holds_them(
        first, second, dtype, tmp_path):
    """All values are exact, whichever file comes first."""
    for order in ((first, second), (second, first)):
        found = rows(files(tmp_path, *(
            pyarrow.array([1, 2], each) for each in order)))
        assert (dtype, [1, 2, 1, 2]) == (found.dtype, found.tolist())


@pytest.mark.parametrize('first, second', [
    ('int64', 'float64'), ('uint64', 'int64'), ('int64', 'float32'),
    ('int32', 'bool'), ('int32', 'string'),
    (pyarrow.timestamp('us'), pyarrow.timestamp('ms')),
    (pyarrow.list_(pyarrow.int8()), pyarrow.list_(pyarrow.int16()))])
def test_types_that_no_type_holds_exactly_are_refused(
        first, second, tmp_path):
    """The error says that no type holds them."""
    files(tmp_path, *(pyarrow.array([None], each)
                      for each in (first, second)))
    with pytest.raises(ValueError, match=r'no type holds.*one schema'):
        ArrowDataset(tmp_path)


def test_forms_of_text_and_lists_are_one_type(tmp_path):
    """The forms have the same rows."""
    found = rows(files(
        tmp_path, pyarrow.array(['a']), pyarrow.array(
            ['b'], pyarrow.large_string()),
        pyarrow.array(['c']).dictionary_encode()))
    assert ['a', 'b', 'c'] == found.tolist()


def test_file_of_nulls_has_the_type_of_the_others(tmp_path):
    """Nulls are NaN among floats and None among objects; among integers they
    are an error."""
    nulls = pyarrow.nulls(2)
    floats = rows(files(tmp_path, nulls, pyarrow.array([.5])))
    assert floats.dtype == 'float64'
    assert ['nan', 'nan', '0.5'] == [str(each) for each in floats]
    assert [None, None, 'a'] == rows(files(
        tmp_path, nulls, pyarrow.array(['a']))).tolist()
    dataset = ArrowDataset(files(tmp_path, nulls, pyarrow.array([7, 8])))
    assert dataset.get_data(None, [3])[0].tolist() == [8]
    with pytest.raises(ValueError, match="'x'.*2 nulls"):
        dataset.get_data(None, [0])


def test_times_of_a_zone_keep_it():
    """They are objects; times in UTC are NumPy's."""
    times = pyarrow.array([0, 3600], pyarrow.timestamp('s'))
    found = rows(pyarrow.table({'x': times.cast(pyarrow.timestamp(
        's', 'Europe/Berlin'))}))
    assert found.dtype == object
    assert datetime.timedelta(hours=1) == found[0].utcoffset()
    assert found[0].timestamp() == 0
    found = rows(pyarrow.table({'x': times.cast(pyarrow.timestamp(
        's', 'UTC'))}))
    assert ('datetime64[s]', 3600) == (found.dtype, found[1].astype(int))


def test_nulls_outside_a_slice_do_not_matter():
    """A null before the beginning of a slice raises no error."""
    lists = pyarrow.array([[None], [1, 2], [3]]).slice(1)
    assert [[1, 2], [3]] == [
        row.tolist() for row in rows(pyarrow.table({'x': lists}))]


def test_nulls_of_a_dictionary_that_no_row_has_do_not_matter():
    """Only nulls that rows refer to make integers impossible."""
    values = pyarrow.array([None, 7], pyarrow.int16())
    for place, expected in ((1, 7), (0, None)):
        column = pyarrow.DictionaryArray.from_arrays(
            pyarrow.array([place], pyarrow.int8()), values)
        if expected:
            assert [expected] == rows(pyarrow.table({'x': column})).tolist()
        else:
            with pytest.raises(ValueError, match="'x'.*1 nulls"):
                rows(pyarrow.table({'x': column}))


def test_two_columns_of_one_name_are_refused():
    """Neither of them can be chosen."""
    data = pyarrow.table([[1], [2]], names=['x', 'x'])
    with pytest.raises(ValueError, match="has 2 columns 'x'"):
        ArrowDataset(data)


def test_columns_beside_two_of_one_name_are_read():
    """The two columns are not read."""
    data = pyarrow.table([[1], [2], [3]], names=['x', 'x', 'y'])
    assert [3] == ArrowDataset(data, ['y'])[:][0].tolist()


def test_numbers_are_read_without_pandas():
    """PyArrow would ask pandas for their types."""
    found = subprocess.run([sys.executable, '-c', textwrap.dedent("""
        import sys

        class WithoutPandas:
            def find_spec(self, name, path=None, target=None):
                if name == 'pandas':
                    raise ModuleNotFoundError(name)

        sys.meta_path.insert(0, WithoutPandas())
        import pyarrow
        from fuel.interop.arrow import ArrowDataset
        table = pyarrow.table({
            name: pyarrow.array([1], name) for name in (
                'int8', 'uint64', 'float16', 'float32', 'float64')})
        print(*[rows.dtype for rows in ArrowDataset(
            table, columns=table.column_names).get_data(None, [0])])
        """)], check=True, capture_output=True, text=True)
    assert 'float16 float32 float64 int8 uint64' == ' '.join(
        sorted(found.stdout.split()))
