"""Tables of any types, against what PyArrow says of them."""
import shutil
import tempfile

import numpy
import pyarrow
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support import arrow_tables

from fuel.interop.arrow import ArrowDataset

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
        # Whatever group it is in.
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
    """In any order; or nulls that NumPy has not are an error."""
    compare(data, kind, folder)
