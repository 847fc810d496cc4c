"""Commands and other data sets take URLs."""
import gzip
import io
import json

import fsspec
import h5py
import numpy
import pytest

from fuel import config
from fuel.bin import fuel_convert, fuel_info
from fuel.datasets import CSVDataset, H5PYDataset, NPYDataset, TextFile
from fuel.datasets.hdf5 import epoch_cost
from fuel.exceptions import ConfigurationError
from fuel.schemes import (BlockShuffledScheme, SequentialScheme,
                          ShuffledScheme)
from fuel.storage.file_bytes import raw_file_at
from fuel.streams import DataStream
from fuel.utils.cache import cache_dataset

from .conftest import NUM_EXAMPLES


def test_info_describes_a_url_as_the_file(folder, url, data, capsys):
    """Name and size as well."""
    fuel_info.main([str(folder / 'train.hdf5'), '--json'])
    local = json.loads(capsys.readouterr().out)
    fuel_info.main([url, '--json'])
    assert local == json.loads(capsys.readouterr().out)


def test_info_tells_what_an_epoch_costs(folder, server, url, capsys):
    """The costs are told before the data are fetched."""
    fuel_info.main([url, '--batch-size', '64', '--window', '2'])
    text = capsys.readouterr().out
    for scheme in ('sequential', 'hierarchical', 'full shuffle'):
        assert scheme in text
    assert 'and more for ragged' in text
    assert server.served_bytes() < (folder / 'train.hdf5').stat().st_size


def test_costs_are_those_of_the_epoch(folder, server):
    """The bytes are counted; each is fetched once where they stay."""
    rows = numpy.random.RandomState(1).randint(
        0, 255, (6000, 1000)).astype('uint8')
    with h5py.File(folder / 'x.hdf5', 'w') as file:
        file.create_dataset('x', data=rows, chunks=(100, 1000),
                            compression='gzip')
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'x': (0, 6000)}})
    config.remote_cache_path = 'off'
    dataset = H5PYDataset(server.url('x.hdf5'), ('train',))
    size = (folder / 'x.hdf5').stat().st_size
    for scheme in (SequentialScheme(6000, 100), ShuffledScheme(6000, 100),
                   BlockShuffledScheme(6000, 100, block_size=100)):
        assert epoch_cost(dataset, scheme).nbytes <= size
    raw = dataset._access.open().raw
    dataset.open_sources()
    before = raw.counts.nbytes
    for _ in DataStream(dataset, iteration_scheme=ShuffledScheme(
            6000, 100)).get_epoch_iterator():
        pass
    fetched = raw.counts.nbytes - before
    cost = epoch_cost(dataset, ShuffledScheme(6000, 100))
    assert abs(cost.nbytes - fetched) < 2 ** 18
    little = epoch_cost(dataset, ShuffledScheme(6000, 100), 1 << 20)
    some = epoch_cost(dataset, BlockShuffledScheme(
        6000, 100, block_size=1000, window=1), 4 << 20)
    assert little.nbytes > 10 * cost.nbytes > 5 * some.nbytes


@pytest.mark.parametrize('arguments, text', [
    (['--storage-options', '3'], 'expected a JSON object'),
    (['--batch-size', '0'], 'must be at least 1')])
def test_info_refuses_other_arguments(url, capsys, arguments, text):
    """The error says what the arguments should be."""
    with pytest.raises(SystemExit):
        fuel_info.main([url, *arguments])
    assert text in capsys.readouterr().err


def test_info_of_a_local_file_has_no_costs(folder, data, capsys):
    """Only requests have costs."""
    with pytest.raises(SystemExit):
        fuel_info.main([str(folder / 'train.hdf5'), '--batch-size', '3'])
    assert 'cost no requests' in capsys.readouterr().err


def test_converted_file_is_sent_to_object_storage(tmp_path, monkeypatch):
    """The whole file is sent; the data set is then read from there."""
    (tmp_path / 'iris.data').write_text(
        '5.1,3.5,1.4,0.2,Iris-setosa\n' * 50
        + '6.1,3.5,1.4,0.2,Iris-versicolor\n' * 50
        + '7.1,3.5,1.4,0.2,Iris-virginica\n' * 50)
    assert 0 == fuel_convert.main([
        'iris', '-d', str(tmp_path), '-o', 'memory://sent/there'])
    dataset = H5PYDataset('memory://sent/there/iris.hdf5', ('all',))
    assert 150 == dataset.num_examples


def test_upload_that_fails_leaves_what_was_there(
        tmp_path, monkeypatch, capsys):
    """The command says that nothing was written."""
    filesystem = fsspec.filesystem('memory')
    filesystem.pipe('/kept/iris.hdf5', b'as it was')
    (tmp_path / 'iris.data').write_text(
        '5.1,3.5,1.4,0.2,Iris-setosa\n' * 150)

    def fail(*args):
        raise RuntimeError('the network is gone')

    monkeypatch.setattr('shutil.copyfileobj', fail)
    with pytest.raises(SystemExit):
        fuel_convert.main(['iris', '-d', str(tmp_path),
                           '-o', 'memory://kept'])
    assert 'nothing was written' in capsys.readouterr().err
    assert b'as it was' == filesystem.cat('/kept/iris.hdf5')


@pytest.mark.parametrize('name, pack', [('a.txt', bytes), ('a.txt.gz',
                                                           gzip.compress)])
def test_text_is_read_from_urls(folder, server, name, pack):
    """It may be compressed; a position is resumed there."""
    (folder / name).write_bytes(pack(b'a b\nb a\n' * 5000))
    (folder / 'v.json').write_text('{"a": 1, "b": 2}')
    text = TextFile([server.url(name)], server.url('v.json'), None, None,
                    None)
    stream = DataStream(text)
    epoch = stream.get_epoch_iterator()
    first = [next(epoch) for _ in range(4001)]
    state = stream.state_dict()
    rest = list(epoch)
    assert [([1, 2],), ([2, 1],)] * 5000 == first + rest
    stream = DataStream(TextFile([server.url(name)], {'a': 1, 'b': 2}, None,
                                 None, None))
    stream.load_state_dict(state)
    assert rest == list(stream.get_epoch_iterator())


def test_text_that_is_missing_is_an_error(server):
    """The error has the URL."""
    text = TextFile([server.url('none.txt')], {'<UNK>': 0}, None, None)
    with pytest.raises(FileNotFoundError, match='none.txt'):
        text.open()


def test_csv_is_read_from_a_url(folder, server):
    """Records far from each other are asked for at once."""
    lines = ''.join(f'{i},{i / 2}\n' for i in range(20_000))
    (folder / 'a.csv').write_text('x,y\n' + lines)
    dataset = CSVDataset(server.url('a.csv'))
    x, y = dataset.get_data(None, [19_999, 3])
    assert [19_999, 3] == x.tolist() and [9999.5, 1.5] == y.tolist()


@pytest.mark.parametrize('order', ['C', 'F'])
def test_numpy_files_are_read_from_urls(folder, server, order):
    """Either order of elements is read."""
    rows = numpy.asarray(numpy.arange(60_000).reshape(-1, 6), order=order)
    numpy.save(folder / 'a.npy', rows)
    dataset = NPYDataset({'rows': server.url('a.npy')})
    seen = [part for part, in DataStream(
        dataset, iteration_scheme=ShuffledScheme(
            len(rows), 100)).get_epoch_iterator()]
    found = numpy.concatenate(seen)
    assert (rows == found[found[:, 0].argsort()]).all()


@pytest.mark.parametrize('save', [numpy.savez, numpy.savez_compressed])
def test_numpy_archives_are_read_from_urls(folder, server, save):
    """Compressed ones into memory."""
    save(folder / 'a.npz', x=numpy.arange(9000.), y=numpy.arange(9000))
    dataset = NPYDataset(server.url('a.npz'))
    x, y = dataset.get_data(None, [8999, 5])
    assert [8999, 5] == x.tolist() == y.tolist()


def test_whole_copy_of_a_remote_file(folder, server, tmp_path):
    """It is made once for each state of the file."""
    (folder / 'a').write_bytes(b'abc' * 100_000)
    with pytest.raises(ConfigurationError, match='local_data_path'):
        cache_dataset(server.url('a'))
    config.local_data_path = str(tmp_path / 'copies')
    copy = cache_dataset(server.url('a'))
    with open(copy, 'rb') as file:
        assert b'abc' * 100_000 == file.read()
    count = server.served_bytes()
    assert copy == cache_dataset(server.url('a'))
    assert server.served_bytes() - count <= 2 ** 16
    (folder / 'a').write_bytes(b'xyz')
    with open(cache_dataset(server.url('a')), 'rb') as file:
        assert b'xyz' == file.read()


def test_stream_of_a_remote_file_is_one_of_bytes(folder, server):
    """Any reader of files takes it."""
    content = numpy.random.RandomState(0).bytes(300_000)
    (folder / 'a').write_bytes(content)
    from fuel.remote.location import RemotePath
    with raw_file_at(RemotePath(server.url('a'))).open() as stream:
        assert stream.readable() and stream.seekable()
        assert content == stream.read()
        assert 299_990 == stream.seek(-10, io.SEEK_END) == stream.tell()
        assert content[-10:] == stream.read(20) and b'' == stream.read(1)
        stream.seek(5)
        assert 8 == stream.seek(3, io.SEEK_CUR)
        assert content[8:10] == stream.read(2)
        with pytest.raises(ValueError, match='negative'):
            stream.seek(-1)


def test_number_of_examples_is_known(url, data):
    """Each of the fixtures' files has the right number."""
    assert NUM_EXAMPLES == H5PYDataset(url, ('train',)).num_examples
