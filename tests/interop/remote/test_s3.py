"""Objects in S3, over its protocol."""
import contextlib
import io
import json
import pickle
import socket
import sys

import h5py
import numpy
import pytest
from support.changing_files import changing_object

from fuel import config
from fuel.bin import fuel_convert, fuel_info
from fuel.datasets import CSVDataset, H5PYDataset, NPYDataset, TextFile
from fuel.exceptions import DamagedFileError
from fuel.remote.location import RemotePath
from fuel.remote.local_copies import upload
from fuel.schemes import BlockShuffledScheme, ShuffledScheme
from fuel.streams import DataStream

NUM_EXAMPLES = 1500


@pytest.fixture
def rows(client, bucket):
    """Put ``train.hdf5`` into the bucket; return its examples."""
    return put_file(client, bucket, 0)


def put_file(client, bucket, seed):
    """Put a file of examples into a bucket; return them."""
    rows = numpy.random.RandomState(seed).randint(
        0, 255, (NUM_EXAMPLES, 1000)).astype('uint8')
    content = io.BytesIO()
    with h5py.File(content, 'w') as file:
        file['plain'] = rows
        file.create_dataset('gzip', data=rows // 8, chunks=(100, 1000),
                            compression='gzip')
        file['number'] = numpy.arange(NUM_EXAMPLES)
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': dict.fromkeys(file, (0, NUM_EXAMPLES))})
    client.put_object(Bucket=bucket, Key='data/train.hdf5',
                      Body=content.getvalue())
    return rows


@pytest.fixture
def url(bucket, rows):
    """Return the URL of the file."""
    return f's3://{bucket}/data/train.hdf5'


@pytest.mark.parametrize('shuffle', ['full', 'hierarchical'])
@pytest.mark.parametrize('where', ['disk', 'memory', 'little memory'])
def test_epochs_have_the_values_of_the_file(
        url, rows, options, shuffle, where):
    """Each example comes once."""
    if where != 'disk':
        config.remote_cache_path = 'off'
    if where == 'little memory':
        config.remote_memory_bytes = config.chunk_cache_bytes = 300_000
    dataset = H5PYDataset(url, ('train',), storage_options=options)
    scheme = (ShuffledScheme(NUM_EXAMPLES, 100) if shuffle == 'full' else
              BlockShuffledScheme.aligned(dataset, 100, window=3))
    stream = DataStream(dataset, iteration_scheme=scheme)
    for _ in range(2):
        seen = []
        for packed, numbers, plain in stream.get_epoch_iterator():
            assert (rows[numbers] == plain).all()
            assert (rows[numbers] // 8 == packed).all()
            seen += numbers.tolist()
        assert list(range(NUM_EXAMPLES)) == sorted(seen)


def test_object_that_is_replaced_is_an_error(client, bucket, url, options):
    """The ETag shows it; opened again, it is the new object."""
    config.remote_cache_path, config.remote_memory_bytes = 'off', 0
    dataset = H5PYDataset(url, ('train',), storage_options=options,
                          sources=('plain',))
    dataset.get_data(None, [0])
    new = put_file(client, bucket, 1)
    with pytest.raises(DamagedFileError, match='changed while it was in use'):
        dataset.get_data(None, [1400])
    dataset.close(None)
    assert (new[[1400]] == dataset.get_data(None, [1400])[0]).all()


@pytest.mark.parametrize('kind', ['contiguous', 'compressed', 'text'])
@pytest.mark.parametrize('cache', ['on', 'off'])
@pytest.mark.parametrize('count', [1, pytest.param(200, marks=[
    pytest.mark.full, pytest.mark.timeout(1800)])])
def test_epochs_over_a_changing_object_have_one_version(
        client, bucket, options, tmp_path, monkeypatch, capsys, cache, kind,
        count):
    """An epoch may end in an error; the next one has the newest version."""
    if cache == 'off':
        config.remote_cache_path, config.remote_memory_bytes = 'off', 0
    changing = changing_object(
        monkeypatch, tmp_path / 'new', kind, lambda path: client.put_object(
            Bucket=bucket, Key='changing', Body=path.read_bytes()),
        f's3://{bucket}/changing', 1, storage_options=options)
    changing.check(count)
    if count > 1:
        with capsys.disabled():
            sys.stdout.write(
                f'{kind}, S3, cache {cache}: {changing.num_between} '
                f'replacements between two reads of one epoch\n')


@pytest.mark.parametrize('name', ['bucket/none', 'none/none'])
def test_missing_object_is_an_error(bucket, options, name):
    """It is the error of a missing file."""
    with pytest.raises(FileNotFoundError, match='there is no such file'):
        H5PYDataset('s3://' + name.replace('bucket', bucket), ('train',),
                    storage_options=options)


def test_credentials_are_in_no_pickle(url, options):
    """Credentials are assigned where a pickle is loaded."""
    dataset = H5PYDataset(url, ('train',), storage_options=options)
    pickled = pickle.dumps(dataset)
    for secret in (options['key'], options['secret']):
        assert secret.encode() not in pickled
    copy = pickle.loads(pickled)
    copy.storage_options = options
    assert 1 == len(copy.get_data(None, [3])[0])


def test_converted_file_is_sent(client, bucket, options, tmp_path, capsys,
                                monkeypatch):
    """The command `fuel-info` describes it."""
    monkeypatch.setenv('AWS_ACCESS_KEY_ID', options['key'])
    monkeypatch.setenv('AWS_SECRET_ACCESS_KEY', options['secret'])
    monkeypatch.setenv('AWS_ENDPOINT_URL', options['endpoint_url'])
    (tmp_path / 'iris.data').write_text(
        '5.1,3.5,1.4,0.2,Iris-setosa\n' * 150)
    assert 0 == fuel_convert.main([
        'iris', '-d', str(tmp_path), '-o', f's3://{bucket}/sets'])
    assert 0 == fuel_info.main([
        f's3://{bucket}/sets/iris.hdf5', '--json'])
    assert 150 == json.loads(capsys.readouterr().out)[
        'splits']['all']['examples']


def test_large_file_is_sent_in_parts(client, bucket, options, tmp_path):
    """The parts are joined when all were sent."""
    content = numpy.random.RandomState(0).bytes(40 << 20)
    (tmp_path / 'large').write_bytes(content)
    upload(tmp_path / 'large', RemotePath(f's3://{bucket}/large', options))
    reply = client.get_object(Bucket=bucket, Key='large')
    # As the tag of an object in parts ends.
    assert reply['ETag'].strip('"').endswith('-3')
    assert content == reply['Body'].read()


def test_upload_that_fails_leaves_what_was_there(
        client, bucket, options, tmp_path, monkeypatch):
    """No parts that cost money are left."""
    client.put_object(Bucket=bucket, Key='kept', Body=b'as it was')
    (tmp_path / 'large').write_bytes(bytes(40 << 20))

    def fail(source, target, length):
        target.write(source.read(20 << 20))
        raise RuntimeError('the network is gone')

    monkeypatch.setattr('shutil.copyfileobj', fail)
    with pytest.raises(OSError, match='nothing was written'):
        upload(tmp_path / 'large', RemotePath(
            f's3://{bucket}/kept', options))
    assert b'as it was' == client.get_object(
        Bucket=bucket, Key='kept')['Body'].read()
    assert not client.list_multipart_uploads(Bucket=bucket).get('Uploads')


def test_other_data_sets_are_read(client, bucket, options):
    """Text, CSV and NumPy's files are read."""
    array = io.BytesIO()
    numpy.save(array, numpy.arange(60).reshape(-1, 6))
    for key, content in (('a.txt', b'a b\n'), ('a.csv', b'x,y\n1,2\n'),
                         ('a.npy', array.getvalue())):
        client.put_object(Bucket=bucket, Key=key, Body=content)
    root = f's3://{bucket}/'
    text = TextFile([root + 'a.txt'], {'a': 0, 'b': 1}, None, None, None,
                    storage_options=options)
    assert [([0, 1],)] == list(DataStream(text).get_epoch_iterator())
    table = CSVDataset(root + 'a.csv', storage_options=options)
    assert [[1], [2]] == [part.tolist() for part in table.get_data(None, [0])]
    rows = NPYDataset(root + 'a.npy', storage_options=options)
    assert [[54, 55, 56, 57, 58, 59]] == rows.get_data(None, [9])[0].tolist()


def test_endpoint_that_never_answers_a_connection_is_given_up_early(
        monkeypatch):
    """The client's own attempts do not hide that there was no connection."""
    monkeypatch.setattr('fuel.remote.transfers.CONNECT_TIMEOUT', 3)
    monkeypatch.setattr('fuel.remote.stores.IDLE', 2.5)
    config.remote_timeout = 8
    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(socket.socket())
        listening.bind(('127.0.0.1', 0))
        listening.listen(0)
        address = listening.getsockname()
        # Its queue is full, and further requests to connect are dropped.
        for _ in range(3):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(address)
        with pytest.raises(TimeoutError, match=(
                'could not connect to the server in 3 seconds.*'
                'ConnectTimeoutError')):
            H5PYDataset('s3://never-reached/a', ('train',), storage_options={
                'key': 'a', 'secret': 'b',
                'endpoint_url': f'http://127.0.0.1:{address[1]}',
                'config_kwargs': {'connect_timeout': 1}})
