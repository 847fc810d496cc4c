"""The row groups that examples lie in."""
import numpy
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from fuel.datasets import Windows
from fuel.interop.arrow import ArrowDataset
from fuel.schemes import BlockShuffledScheme
from fuel.streams import DataStream


def write(folder, number, rows, group):
    """Write a table of numbers and text; return its path."""
    path = str(folder / f'{number}.parquet')
    parquet.write_table(pyarrow.table({
        'x': numpy.arange(rows), 'name': [f'row {row}' for row in range(rows)],
        }), path, row_group_size=group)
    return path


def groups_of(paths):
    """Return the row group of each row, as pyarrow names them."""
    lengths = []
    for path in paths:
        found = parquet.ParquetFile(path).metadata
        lengths += [found.row_group(number).num_rows
                    for number in range(found.num_row_groups)]
    return numpy.arange(len(lengths)).repeat(lengths)


@settings(deadline=None, max_examples=20)
@given(st.lists(st.tuples(st.integers(1, 30), st.integers(1, 12)),
                min_size=1, max_size=3), st.data())
def test_pieces_are_the_row_groups_that_pyarrow_names(
        tmp_path_factory, tables, data):
    """They are equal for several files, numbers and text, splits and
    windows."""
    folder = tmp_path_factory.mktemp('tables')
    paths = [write(folder, number, *table)
             for number, table in enumerate(tables)]
    expected = groups_of(paths)
    rows = data.draw(st.lists(st.integers(0, len(expected) - 1), min_size=1,
                              unique=True))
    for source in 'x', 'name':
        dataset = ArrowDataset(paths, splits={'some': numpy.array(rows)},
                               which_sets=('some',))
        assert expected[rows].tolist() == (
            dataset.chunk_of_examples(source).tolist())
    windows = Windows(ArrowDataset(paths), 1, stride=2, runs='all')
    assert expected[::2].tolist() == windows.chunk_of_examples('x').tolist()


@pytest.mark.parametrize('source', ['x', 'name'])
def test_aligned_epoch_decodes_each_row_group_once(tmp_path, source):
    """The cache has room for two windows."""
    dataset = ArrowDataset(
        [write(tmp_path, number, 50, 7) for number in range(3)],
        sources=(source,), cache_bytes=2000)
    stream = DataStream(dataset, iteration_scheme=BlockShuffledScheme.aligned(
        dataset, 4, window=2))
    seen = [row for rows, in stream.get_epoch_iterator()
            for row in rows.tolist()]
    assert 150 == len(seen)
    if source == 'x':
        assert 24 == dataset.readers['x'].store.num_decoded
