"""Columns of integers and truth values with nulls, told by masks."""
import numpy
import pyarrow
import pyarrow.ipc
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuel.interop.arrow import ArrowDataset

ROWS = st.lists(st.tuples(
    st.none() | st.integers(-2 ** 63, 2 ** 63 - 1), st.none() | st.booleans(),
    st.none() | st.floats(allow_nan=False), st.none() | st.text(max_size=2)),
    min_size=1, max_size=12)
TYPES = {'i': pyarrow.int64(), 'b': pyarrow.bool_(), 'f': pyarrow.float64(),
         't': pyarrow.string()}


def table_of(rows, encode):
    """Return a table of rows; integers may be encoded."""
    columns = {name: pyarrow.array(column, TYPES[name])
               for name, column in zip('ibft', zip(*rows, strict=True),
                                       strict=True)}
    if encode:
        columns['i'] = columns['i'].dictionary_encode()
    return pyarrow.table(columns)


def write(table, path, kind):
    """Write a table as a file of some kind."""
    if kind == 'parquet':
        pyarrow.parquet.write_table(table, path, row_group_size=3)
        return path
    new = pyarrow.ipc.new_file if kind == 'arrow' else pyarrow.ipc.new_stream
    with new(path, table.schema) as file:
        file.write_table(table.combine_chunks(), len(table))
    return path


@settings(suppress_health_check=list(HealthCheck), max_examples=60)
@given(rows=ROWS, encode=st.booleans(), kind=st.sampled_from(
    ['table', 'parquet', 'arrow', 'stream']), data=st.data())
def test_masks_tell_where_values_are(tmp_path_factory, rows, encode, kind,
                                     data):
    """Integers keep their digits for any request."""
    table = table_of(rows, encode)
    source = table if kind == 'table' else write(
        table, tmp_path_factory.getbasetemp() / 'masks', kind)
    dataset = ArrowDataset(source, masks=tuple('ibft'))
    assert [name for one in 'ibft' for name in (one, f'{one}_mask')] == [
        *dataset.sources]
    request = data.draw(st.lists(
        st.integers(0, len(rows) - 1), min_size=1, max_size=5))
    found = dict(zip(dataset.sources, dataset[request], strict=True))
    for place, name in enumerate('ibft'):
        wanted = [rows[row][place] for row in request]
        there = found[f'{name}_mask']
        assert there.dtype == bool
        assert [value is not None for value in wanted] == there.tolist()
        assert [value for value in wanted if value is not None] == (
            found[name][there].tolist())
        blanks = found[name][~there]
        if name in 'ib':
            assert not blanks.any()
            assert found[name].dtype == numpy.dtype(
                'int64' if name == 'i' else bool)
        elif name == 'f':
            assert numpy.isnan(blanks).all()


def test_several_columns_have_one_mask():
    """The mask has an axis for the columns."""
    table = pyarrow.table({'a': [1, None, 3], 'b': [None, 5, 6]})
    dataset = ArrowDataset(table, {'x': ['a', 'b']}, masks='x')
    x, there = dataset[:]
    assert [[1, 0], [0, 5], [3, 6]] == x.tolist()
    assert [[True, False], [False, True], [True, True]] == there.tolist()
    assert (2,) == dataset.known_types()['x_mask'].shape
    with pytest.raises(ValueError, match="masks names 'a', but there is no"):
        ArrowDataset(table, {'x': ['a', 'b']}, masks=('a',))


@pytest.mark.parametrize('column', [
    pyarrow.array([[1, None], [3]]),
    pyarrow.array([[1, None], [3, 4]], pyarrow.list_(pyarrow.int64(), 2)),
    pyarrow.array([[1, 2], None], pyarrow.list_(pyarrow.int64(), 2)),
    pyarrow.array([[True, None], [False]])])
def test_nulls_in_lists_are_an_error_with_another_remedy(column):
    """A mask of rows does not tell which elements are missing."""
    for masks in ((), ('a',)):
        dataset = ArrowDataset(
            pyarrow.table({'a': column}), sources=('a',), masks=masks)
        with pytest.raises(ValueError, match=(
                'write the column without nulls, since masks= does not mark '
                'nulls in lists')):
            dataset.get_data(None, [0, 1])
    floats = ArrowDataset(pyarrow.table({'a': [[1., None]]}))
    numpy.testing.assert_array_equal(
        floats.get_data(None, [0])[0][0], [1, numpy.nan])
