"""PytablesDataset, over files that PyTables writes."""
import pickle

import numpy
import pytest
import tables
from numpy.testing import assert_array_equal
from support.processes import run_python

from fuel.datasets.hdf5 import PytablesDataset
from fuel.schemes import ShuffledScheme
from fuel.streams import DataStream


@pytest.fixture
def path(tmp_path):
    """Write 20 pairs and a ragged array."""
    path = str(tmp_path / 'tables.hdf5')
    with tables.open_file(path, 'w') as file:
        file.create_array('/', 'X', numpy.arange(40).reshape(20, 2))
        file.create_array('/', 'y', numpy.arange(20) * 10)
        file.create_array('/', 'short', numpy.arange(5))
        file.create_earray('/', 'big', obj=numpy.arange(20, dtype='>i4'))
        file.create_table('/', 'table', obj=numpy.array(
            [(row, row / 2) for row in range(20)],
            dtype=[('a', '>i2'), ('b', '>f8')]))
        ragged = file.create_vlarray('/', 'ragged', tables.Int64Atom())
        for length in range(20):
            ragged.append(numpy.arange(length))
    return path


@pytest.fixture
def grouped(tmp_path):
    """Write the same names into groups, as files for Fuel 0.2.0 were."""
    path = str(tmp_path / 'grouped.hdf5')
    with tables.open_file(path, 'w') as file:
        for group, factor in (('Data', 1), ('Other', 100)):
            file.create_group('/', group)
            file.create_array(f'/{group}', 'X',
                              factor * numpy.arange(40).reshape(20, 2))
            file.create_array(f'/{group}', 'y', factor * numpy.arange(20))
        file.create_array('/Other', 'alone', numpy.arange(20))
        file.create_array('/', 'y', -numpy.arange(20))
        file.create_array('/', 'top', -2 * numpy.arange(20))
    return path


@pytest.fixture
def dataset(path):
    """Open rows 4 to 13."""
    dataset = PytablesDataset(path, ('X', 'y'), start=4, stop=14)
    yield dataset
    dataset.close_file()


def test_pytablesdataset_has_the_rows_between_start_and_stop(dataset):
    """Requests count from `start`."""
    assert dataset.start == 4
    assert dataset.stop == 14
    assert dataset.num_examples == 10
    assert dataset.sources == ('X', 'y')
    assert [node.name for node in dataset.nodes] == ['X', 'y']
    features, targets = dataset.get_data(None, slice(2, 5))
    assert features.tolist() == [[12, 13], [14, 15], [16, 17]]
    assert targets.tolist() == [60, 70, 80]
    assert dataset.get_data(None, slice(None, None, 4))[1].tolist() == [
        40, 80, 120]


@pytest.mark.parametrize('request_', [
    [3, 0, 3], numpy.array([9, 1], dtype='uint8'), [0]], ids=repr)
def test_pytablesdataset_lists_give_rows_in_order(dataset, request_):
    """Lists have any order, and may repeat rows."""
    rows = 4 + numpy.array(request_, dtype=int)
    assert_array_equal(rows * 10, dataset.get_data(None, request_)[1])


@pytest.mark.parametrize('request_, text', [
    (True, 'a slice or a list of integers, got True'),
    (3, 'a slice or a list of integers, got 3'), (None, 'got None'),
    ([10], 'only 10 examples'), ([-1], 'from the end'),
    ([], 'at least one example'), (slice(5, 11), 'only 10 examples'),
    (slice(-3, None), 'negative'), ([True], 'flatnonzero'),
    (slice(0, 2.5), 'expected stop to be an integer')], ids=repr)
def test_pytablesdataset_other_requests_raise_valueerror(
        dataset, request_, text):
    """Only slices and lists of rows are valid requests."""
    with pytest.raises(ValueError, match=text):
        dataset.get_data(None, request_)


def test_pytablesdataset_stop_defaults_to_the_end(path):
    """Without `start` and `stop` all rows are used."""
    dataset = PytablesDataset(path, ('y',))
    assert (dataset.start, dataset.stop) == (0, 20)
    stream = DataStream(
        dataset, iteration_scheme=ShuffledScheme(dataset.num_examples, 6))
    rows = numpy.concatenate(
        [batch for batch, in stream.get_epoch_iterator()])
    assert sorted(rows.tolist()) == list(range(0, 200, 10))
    dataset.close_file()


def test_pytablesdataset_offers_no_stream_of_examples(path):
    """The class refuses the integers that such a stream would ask for."""
    dataset = PytablesDataset(path, ('y',))
    with pytest.raises(AttributeError, match='PytablesDataset does not '
                       'provide an example iteration scheme'):
        dataset.get_example_stream()
    dataset.close_file()


def test_pytablesdataset_missing_file_says_where_it_looked(tmp_path):
    """The error names the function that finds files in the data path."""
    with pytest.raises(FileNotFoundError, match='no file .*nope.hdf5.*'
                       r"find_in_data_path\('nope.hdf5'\)"):
        PytablesDataset(str(tmp_path / 'nope.hdf5'), ('y',))


def test_pytablesdataset_unknown_node_gets_the_nearest(path):
    """The error suggests a node and lists all of them."""
    with pytest.raises(ValueError, match="no node 'yy' .*did you mean 'y'.*"
                       "it has the nodes .*'y'"):
        PytablesDataset(path, ('yy',))


def test_pytablesdataset_names_a_group_without_nodes(tmp_path):
    """The error does not list nodes of an empty group."""
    path = str(tmp_path / 'empty.hdf5')
    with tables.open_file(path, 'w') as file:
        file.create_group('/', 'Empty')
    with pytest.raises(ValueError, match="no node 'y' in 'Empty' of .*; it "
                       'has no nodes$'):
        PytablesDataset(path, ('y',), data_node='Empty')


def test_pytablesdataset_sources_may_have_other_names_in_the_file(path):
    """`sources_in_file` names the nodes."""
    dataset = PytablesDataset(path, ('features', 'targets'),
                              sources_in_file=('X', 'y'))
    assert dataset.get_data(None, [1])[0].tolist() == [[2, 3]]
    assert dataset.sources == ('features', 'targets')
    dataset.close_file()


@pytest.mark.parametrize('arguments, kwargs, expected', [
    ((('y',),), {}, [0, 1, 2]),
    ((('y',), 4, 14), {}, [4, 5, 6]),
    ((('y',), 0, None, 'Other'), {}, [0, 100, 200]),
    ((('t',), 2, 9, 'Other', ('y',)), {}, [200, 300, 400]),
    ((('alone',),), {'data_node': 'Other'}, [0, 1, 2]),
    ((('y',),), {'data_node': '/Other'}, [0, 100, 200]),
    ((('y',),), {'data_node': '/'}, [0, -1, -2])], ids=repr)
def test_pytablesdataset_reads_the_nodes_below_data_node(
        grouped, arguments, kwargs, expected):
    """`data_node` is 'Data' unless given, the fifth argument by position."""
    dataset = PytablesDataset(grouped, *arguments, **kwargs)
    assert expected == dataset.get_data(None, slice(0, 3))[0].tolist()
    dataset.close_file()
    again = pickle.loads(pickle.dumps(dataset))
    assert expected == again.get_data(None, [0, 1, 2])[0].tolist()
    again.close_file()


def test_pytablesdataset_falls_back_to_the_root_only_by_default(
        path, grouped):
    """Nodes are sought in the root if there is no default group, or if the
    group lacks one of them; never if a group was named."""
    for file, source in ((path, 'y'), (grouped, 'top')):
        dataset = PytablesDataset(file, (source,))
        assert abs(dataset.get_data(None, [1])[0].item()) in {10, 2}
        dataset.close_file()
    with pytest.raises(ValueError, match="no node 'top' in 'Data' of .*"
                       "it has the nodes 'X', 'y'"):
        PytablesDataset(grouped, ('top',), data_node='Data')
    with pytest.raises(ValueError, match="no group 'Dota' in .*'Data'"):
        PytablesDataset(grouped, ('y',), data_node='Dota')
    with pytest.raises(ValueError, match="no node 'yy' in the root"):
        PytablesDataset(path, ('yy',))


def test_pytablesdataset_data_are_the_users_own(dataset):
    """Overwriting a batch changes nothing that comes later."""
    for request in (slice(0, 3), [2, 0]):
        expected = dataset.get_data(None, request)[0].copy()
        dataset.get_data(None, request)[0][...] = -1
        assert_array_equal(expected, dataset.get_data(None, request)[0])


@pytest.mark.parametrize('name', ['X', 'y', 'big', 'table'])
def test_pytablesdataset_reads_all_kinds_of_nodes(path, name):
    """Arrays of any rank and tables; what comes back is native."""
    with tables.open_file(path) as file:
        everything = file.get_node('/', name)[:]
    dataset = PytablesDataset(path, (name,), start=3)
    for request in ([4, 1, 4, 16], [2], slice(1, 9, 3)):
        data, = dataset.get_data(None, request)
        assert_array_equal(everything[3:][request], data)
        assert data.dtype.isnative
    dataset.close_file()


def test_pytablesdataset_reads_ragged_arrays(path):
    """A node of rows of different lengths gives a list of arrays."""
    dataset = PytablesDataset(path, ('ragged',), start=2)
    batch, = dataset.get_data(None, slice(0, 3))
    assert [row.tolist() for row in batch] == [[0, 1], [0, 1, 2],
                                               [0, 1, 2, 3]]
    batch, = dataset.get_data(None, [1, 0])
    assert [len(row) for row in batch] == [3, 2]
    dataset.close_file()


def test_pytablesdataset_reloads_nodes_after_unpickling(dataset):
    """A pickle holds no file; `nodes` is opened when it is read."""
    again = pickle.loads(pickle.dumps(dataset))
    assert '_nodes' not in vars(again)
    assert [node.name for node in again.nodes] == ['X', 'y']
    assert again.get_data(None, [0])[1].tolist() == [40]
    again.close_file()


def test_pytablesdataset_close_file_closes_and_reading_opens_again(path):
    """Closing twice is harmless."""
    dataset = PytablesDataset(path, ('y',))
    file = dataset.h5file
    dataset.close_file()
    dataset.close_file()
    assert not file.isopen
    assert dataset.get_data(None, [2])[0].tolist() == [20]
    file = dataset.h5file
    assert file.isopen
    del dataset
    assert not file.isopen


@pytest.mark.parametrize('kwargs, text', [
    ({'sources': 'X'}, r"'X': write \('X',\)"),
    ({'sources': ('X', 'nothing')}, "there is no node 'nothing'"),
    ({'sources': ('X', 'short')}, "different lengths.*'short': 5"),
    ({'sources': ('X',), 'stop': 21}, 'within the 20 rows.* stop 21'),
    ({'sources': ('X',), 'start': 20}, 'start 20'),
    ({'sources': ('X',), 'start': -1}, 'start -1'),
    ({'sources': ('X',), 'sources_in_file': ('X', 'y')},
     'one node for each of sources')])
def test_pytablesdataset_wrong_arguments_raise_valueerror(
        path, kwargs, text):
    """Bad names and bounds are refused, and no file stays open."""
    with pytest.raises(ValueError, match=text):
        PytablesDataset(path, **kwargs)
    assert not list(tables.file._open_files.get_handlers_by_name(path))


def test_pytables_is_imported_only_where_it_is_used():
    """`import fuel.datasets.hdf5` does not import PyTables."""
    code = ('import sys, fuel.datasets.hdf5; '
            'assert "tables" not in sys.modules')
    status, _, errors = run_python('-c', code)
    assert status == 0, errors
