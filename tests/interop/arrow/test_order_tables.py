"""Tables of orders are data frames of pandas."""
import numpy
import pandas

from fuel.datasets import IndexableDataset
from fuel.streams import DataStream


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
