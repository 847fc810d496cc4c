"""Tables of any types, against what PyArrow says of them."""
import shutil
import tempfile

import numpy
import pandas
import pyarrow
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support import arrow_tables

from fuel.datasets import random_split
from fuel.interop.arrow import ArrowDataset
from fuel.schemes import BalancedScheme

KINDS = ['table', 'parquet zstd', 'file', 'file lz4', 'stream']


def compare(data, kind, folder):
    """Draw a table, and read it in an order that is drawn."""
    arrow = data.draw(arrow_tables.TYPES)
    count = data.draw(st.integers(1, 8))
    column = arrow_tables.column(data.draw, arrow, count)
    table = pyarrow.table({'number': range(count), 'x': column})
    dataset = ArrowDataset(
        arrow_tables.write(table, kind, f'{folder}/data',
                           data.draw(st.integers(1, count))),
        cache_bytes=data.draw(st.sampled_from([0, 60, 10 ** 6])),
        sources=('number', 'x'))
    expected = column.to_pylist()
    nulls = arrow_tables.has_nulls(expected)
    if isinstance(arrow, pyarrow.FixedShapeTensorType):
        # Of nulls below them PyArrow shows whatever is in memory.
        assume(not nulls)
        expected = numpy.concatenate([
            chunk.to_numpy_ndarray() for chunk in column.chunks]).tolist()
    rows = data.draw(st.lists(st.integers(0, count - 1), min_size=1))
    try:
        numbers, found = dataset.get_data(None, rows)
    except ValueError as error:
        # The nulls may be in any group.
        if nulls and "'x'" in str(error) and 'nulls, which' in str(error):
            return
        raise
    assert rows == numbers.tolist()
    reader = dataset.readers['x']
    assert (reader.dtype, (len(rows), *reader.shape[1:])) == (
        found.dtype, found.shape)
    for row, value in zip(rows, found, strict=True):
        assert arrow_tables.is_equal(value, expected[row]), (
            value, expected[row])


@pytest.fixture(scope='module')
def folder():
    """Return a folder for the files of all examples."""
    path = tempfile.mkdtemp()
    yield path
    shutil.rmtree(path)


@pytest.mark.parametrize('kind', KINDS)
@given(st.data())
def test_any_column_has_the_values_of_the_library(kind, folder, data):
    """Values are equal in any order; nulls that NumPy lacks are an error."""
    compare(data, kind, folder)


def test_categoricals_with_missing_values_have_no_class_of_them():
    """Missing values are neither drawn nor split, and a warning counts them.
    Without missing values the order is that of the values."""
    values = numpy.array(['b', None, 'a', 'b', None, 'a', 'a'], object)
    known = numpy.flatnonzero(values != None)  # noqa: E711
    series = pandas.Series(values).astype('category')
    arrow = pyarrow.array(values.tolist()).dictionary_encode()
    dataset = ArrowDataset(pyarrow.table({'kind': arrow}))
    for labels in (series, series.array, pandas.CategoricalIndex(series),
                   arrow, pyarrow.chunked_array([arrow, arrow[:0]]),
                   dataset.read_labels('kind')):
        with pytest.warns(UserWarning, match='2 of 7 labels are missing'):
            scheme = BalancedScheme(labels, 4, seed=2)
        plain = BalancedScheme(values[known].tolist(), 4, seed=2)
        assert ['a', 'b'] == list(scheme.classes)
        assert [known[batch].tolist()
                for batch in plain.get_request_iterator()] == list(
                    scheme.get_request_iterator())
        with pytest.warns(UserWarning, match='2 of 7 labels are missing'):
            splits = random_split(
                7, {'a': .5, 'b': None}, stratify=labels)
        assert sorted(numpy.concatenate(list(splits.values())).tolist()) == (
            known.tolist())
    assert list(BalancedScheme(
        series[known], 4, seed=2).get_request_iterator()) == list(
            BalancedScheme(values[known].tolist(), 4,
                           seed=2).get_request_iterator())
