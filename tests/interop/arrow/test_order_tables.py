"""Tables of orders are data frames of pandas."""
import numpy
import pandas
import pyarrow
import pyarrow.parquet

import fuel
from fuel.datasets import IndexableDataset
from fuel.interop.arrow import ArrowDataset
from fuel.streams import DataStream


def test_rows_of_parquet_are_named_by_file(tmp_path):
    """Those of a table in memory have no file."""
    for file, count in enumerate([3, 5, 1]):
        pyarrow.parquet.write_table(pyarrow.table({
            'file': [file] * count, 'row': range(count)}),
            tmp_path / f'{file}.parquet')
    dataset = fuel.load(tmp_path / '*.parquet')
    stream = DataStream(dataset, batch_size=2, shuffle=True, seed=1)
    table, items = stream.order[:], list(stream)
    files, rows = map(numpy.concatenate, zip(*items, strict=True))
    assert [str(tmp_path / f'{file}.parquet') for file in files] == (
        table.file.tolist())
    assert rows.tolist() == table.row_of_part.tolist()
    frame = table.to_pandas()
    assert table.file.tolist() == frame['file'].tolist()
    memory = DataStream(ArrowDataset(pyarrow.table({'x': [1, 2]})),
                        batch_size=2)
    assert 'file' not in memory.order[:].columns


def test_table_of_an_order_is_a_data_frame():
    """The columns keep their names, types and values."""
    stream = DataStream(IndexableDataset({'y': numpy.arange(10)}),
                        batch_size=3, shuffle=True, shard=(0, 2))
    table = stream.order[:]
    frame = table.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert ['item', 'rank', 'dataset', 'row'] == list(frame.columns)
    assert {'int64'} == set(map(str, frame.dtypes))
    assert table.row.tolist() == frame['row'].tolist()
    assert frame.groupby('rank')['row'].count().tolist() == [6, 4]
