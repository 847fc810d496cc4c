"""Credentials are in no error, state, pickle, log or representation."""
import json
import logging
import multiprocessing
import pickle
import traceback

import numpy
import pytest
from support import range_server as faults
from support.processes import put_example

from fuel import config
from fuel.datasets import (
    CSVDataset, H5PYDataset, JSONLDataset, NPYDataset, TextFile)
from fuel.remote.location import RemotePath, as_path
from fuel.remote.urls import Secrets, public_options, shown
from fuel.schemes import SequentialExampleScheme, ShuffledScheme
from fuel.streams import DataStream

from .conftest import NUM_EXAMPLES, make_file

SECRETS = ['pass-word', 'sig-nature', 'to-ken']
OPTIONS = {'client_kwargs': {'headers': {'X-Token': 'Bearer to-ken'}}}


def secret_url(server):
    """Return a URL with credentials of two kinds."""
    return server.url('train.hdf5').replace(
        '//', '//user:pass-word@') + '?X-Amz-Signature=sig-nature&raw=1'


def check_hidden(*texts):
    """Check that no secret is in any text."""
    for text in texts:
        for secret in SECRETS:
            assert secret not in str(text), text


def test_nothing_shows_credentials(server, data, cache, caplog):
    """Paths, texts, states, pickles, logs and the cache hide them."""
    caplog.set_level(logging.DEBUG)
    dataset = H5PYDataset(secret_url(server), ('train',),
                          storage_options=OPTIONS)
    stream = DataStream(dataset, iteration_scheme=ShuffledScheme(
        NUM_EXAMPLES, 64))
    epoch = stream.get_epoch_iterator()
    next(epoch)
    opened = dataset._access.current
    check_hidden(
        dataset.path, repr(dataset), dataset.storage_options,
        opened.file.filename, repr(opened.raw), repr(opened.file),
        json.dumps(stream.state_dict()), pickle.dumps(dataset),
        pickle.dumps(stream), pickle.dumps(epoch), caplog.text,
        *(path.read_text() for path in cache.glob('*/state.json')))
    assert 'raw=1' in dataset.path


@pytest.mark.parametrize('fault', [
    faults.status(403), faults.status(404), faults.status(503),
    faults.reset, faults.whole, faults.short])
def test_errors_show_no_credentials(server, data, caplog, fault):
    """The causes of an error, as a traceback prints them, show none either."""
    caplog.set_level(logging.DEBUG)
    config.remote_timeout = .3
    server.plan = [fault] * 100
    with pytest.raises(OSError, match='train.hdf5') as caught:
        H5PYDataset(secret_url(server), ('train',), storage_options=OPTIONS)
    check_hidden(caught.value, repr(caught.value), caplog.text, ''.join(
        traceback.format_exception(caught.value)))


def test_credentials_are_given_to_the_server(server, data):
    """An error asks for them if a pickle has none."""
    server.token = 'Bearer to-ken'
    url = server.url('train.hdf5')
    options = {'headers': {'Authorization': server.token}}
    dataset = H5PYDataset(url, ('train',), storage_options=options)
    assert 1 == len(dataset.get_data(None, [3])[0])
    copy = pickle.loads(pickle.dumps(dataset))
    with pytest.raises(PermissionError, match='assign its storage_options'):
        copy.get_data(None, [3])
    copy.storage_options = options
    assert 1 == len(copy.get_data(None, [3])[0])


WRITERS = {
    CSVDataset: ('a.csv', lambda path: path.write_text('x\n1\n2\n')),
    JSONLDataset: ('a.jsonl', lambda path: path.write_text(
        '{"x": 1}\n{"x": 2}\n')),
    NPYDataset: ('a.npy', lambda path: numpy.save(path, [1, 2])),
    TextFile: ('a.txt', lambda path: path.write_text('one\ntwo\n'))}


@pytest.mark.parametrize('build', WRITERS)
def test_credentials_are_assigned_to_data_sets_of_other_formats(
        build, folder, server):
    """They are assigned as to HDF5 files, and are in no text or pickle."""
    name, write = WRITERS[build]
    write(folder / name)
    server.token = 'Bearer to-ken'
    options = {'headers': {'Authorization': server.token}}
    url = server.url(name) + '?X-Amz-Signature=sig-nature'

    def make(files, **kwargs):
        return build([files], {'one': 1, 'two': 2}, None, None, None,
                     **kwargs) if build is TextFile else build(files, **kwargs)

    def rows(dataset):
        return [int(numpy.ravel(x)[0]) for x, in DataStream(
            dataset, **({} if build is TextFile else {'iteration_scheme':
            SequentialExampleScheme(2)})).get_epoch_iterator()]

    dataset = make(url, storage_options={**options, 'max_redirects': 5})
    assert [1, 2] == rows(dataset)
    assert {'max_redirects': 5} == dataset.storage_options
    copy = pickle.loads(pickle.dumps(dataset))
    assert {'max_redirects': 5} == copy.storage_options
    with pytest.raises(PermissionError, match='assign its storage_options'):
        rows(copy)
    copy.storage_options = {}
    with pytest.raises(PermissionError):
        rows(copy)
    copy.storage_options = options
    assert [1, 2] == rows(copy)
    check_hidden(copy.storage_options, vars(copy), repr(copy),
                 pickle.dumps(copy), json.dumps(DataStream(
                     copy).state_dict()))
    local = make(str(folder / name))
    assert local.storage_options is None
    with pytest.raises(AttributeError, match='on this machine'):
        local.storage_options = options


@pytest.mark.parametrize('method', ['fork', 'spawn'])
def test_processes_that_are_started_are_given_credentials(
        server, data, method):
    """Started processes are this program, going on elsewhere."""
    server.token = 'Bearer to-ken'
    dataset = H5PYDataset(
        server.url('train.hdf5'), ('train',), sources=('number',),
        storage_options={'headers': {'Authorization': server.token}})
    context = multiprocessing.get_context(method)
    results = context.Queue()
    process = context.Process(target=put_example, args=[dataset, results])
    process.start()
    assert (data['number'][3] == results.get(timeout=60)).all()
    process.join()
    results.close()
    results.join_thread()


def test_paths_of_other_data_sets_show_none(folder, server):
    """Each keeps the URL apart from its text."""
    (folder / 'a.csv').write_text('x,y\n1,2\n')
    (folder / 'a.txt').write_text('x\n')
    make_file(folder / 'train.hdf5')
    numpy.save(folder / 'a.npy', numpy.arange(6))
    root = server.url('').replace('//', '//user:pass-word@')
    for dataset in (
            CSVDataset(root + 'a.csv', storage_options=OPTIONS),
            NPYDataset(root + 'a.npy', storage_options=OPTIONS),
            TextFile([root + 'a.txt'], {'x': 0}, None, None, None,
                     storage_options=OPTIONS)):
        check_hidden(vars(dataset), pickle.dumps(dataset))


@pytest.mark.parametrize('url, text', [
    ('s3://bucket/a', 's3://bucket/a'),
    ('https://a:b@h/p?token=1', 'https://***@h/p?token=***'),
    ('https://h/p?abc', 'https://h/p?***'),
    ('simplecache::https://a@h/p#x', 'simplecache::https://***@h/p'),
    ('https://h/p?version=3', 'https://h/p?version=3')])
def test_urls_are_shown_without_credentials(url, text):
    """A part that is not known to be public is hidden."""
    assert text == shown(url)
    assert text == as_path(url) == str(RemotePath(url))


def test_options_that_are_known_to_be_public_are_kept():
    """Numbers and truth values are kept too."""
    assert {'anon': True, 'endpoint_url': 'http://h', 'client_kwargs': {
        'region_name': 'eu'}} == public_options({
            'anon': True, 'endpoint_url': 'http://u:p@h', 'key': 'k',
            'secret': 's', 'client_kwargs': {
                'region_name': 'eu', 'aws_secret_access_key': 'x'}})


def test_secrets_are_hidden_in_any_text():
    """Secrets are those of the URL, plain and quoted, and of the options."""
    secrets = Secrets('https://user:pa%2Fss@h/p?sig=abcd%3D', {
        'token': 'tokentoken', 'list': [b'bytesbytes', 5]})
    check = secrets.hide('user pa/ss pa%2Fss abcd= abcd%3D tokentoken '
                         'bytesbytes')
    assert {'***'} == set(check.split())
