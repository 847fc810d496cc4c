"""Children that are forked while another thread decodes a row group."""
import os
import signal
import threading

import numpy
import pyarrow
import pyarrow.feather
import pyarrow.parquet
import pytest

from fuel.interop.arrow import ArrowDataset
from fuel.interop.arrow import parts

N = 30
VALUES = numpy.arange(N) * .5


@pytest.mark.skipif(not hasattr(os, 'fork'), reason='there is no fork here')
@pytest.mark.filterwarnings('ignore:.*use of fork')
@pytest.mark.parametrize('rows_of_group', [7, N])
@pytest.mark.parametrize('kind', ['parquet', 'feather'])
def test_child_holds_no_lock_of_a_thread_it_does_not_have(
        kind, rows_of_group, tmp_path, monkeypatch):
    """The child reads the group that the thread was decoding."""
    path, table = str(tmp_path / 'data'), pyarrow.table({'value': VALUES})
    if kind == 'feather':
        pyarrow.feather.write_feather(table, path, chunksize=rows_of_group)
    else:
        pyarrow.parquet.write_table(table, path, row_group_size=rows_of_group)
    dataset = ArrowDataset(path)
    begun, may_end, parent = threading.Event(), threading.Event(), os.getpid()
    real = parts.rows_of

    def rows_of(*arguments):
        begun.set()
        assert os.getpid() != parent or may_end.wait(60)
        return real(*arguments)

    monkeypatch.setattr(parts, 'rows_of', rows_of)
    thread = threading.Thread(target=dataset.get_data, args=(None, [0]))
    thread.start()
    try:
        assert begun.wait(60)
        child = os.fork()
        if not child:
            # Ends the child, should it wait without end.
            signal.alarm(20)
            values, = dataset.get_data(None, [0, N - 1])
            os._exit(values.tolist() != VALUES[[0, N - 1]].tolist())
        assert os.waitpid(child, 0)[1] == 0
    finally:
        may_end.set()
        thread.join()
