"""Requests that fail are repeated; a file that changes is an error."""
import logging
import os
import socket
import time

import numpy
import pytest
from support import range_server as faults
from support.async_filesystem import ObjectFilesystem

import fuel
from fuel import config
from fuel.datasets import H5PYDataset
from fuel.exceptions import DamagedFileError
from fuel.remote import transfers
from fuel.remote.location import RemotePath
from fuel.remote.stores import filesystem_of
from fuel.schemes import ShuffledScheme
from fuel.storage.file_bytes import raw_file_at
from fuel.streams import DataStream
from fuel.testing.faults import intercept

from .conftest import NUM_EXAMPLES, make_file, read_epoch

PASSING = {
    '429': faults.status(429), '500': faults.status(500),
    '502': faults.status(502), '503': faults.status(503),
    'wait': faults.status(503, Retry_After='0'),
    'wait for a date': faults.status(
        429, Retry_After='Wed, 21 Oct 2015 07:28:00 GMT'),
    'wait for no date': faults.status(
        503, Retry_After='Mon, 01 Jan 99999999999999999999 00:00:00 GMT'),
    'reset': faults.reset, 'short': faults.short,
    'wrong range': faults.wrong_range}


@pytest.fixture
def waits():
    """Do not wait before a request is repeated; note how long it were."""
    noted = []

    def note(pause, seconds):
        noted.append(seconds)
        return pause(0)

    with intercept('remote wait', note):
        yield noted


def open_stream(url):
    """Return a stream of the file's examples."""
    return DataStream(H5PYDataset(url, ('train',)),
                      iteration_scheme=ShuffledScheme(NUM_EXAMPLES, 64))


@pytest.mark.parametrize('fault', PASSING)
def test_requests_that_failed_are_repeated(server, url, data, waits, fault):
    """Requests are repeated on opening and on reading."""
    server.plan = [PASSING[fault], PASSING[fault]]
    stream = open_stream(url)
    assert [] == server.plan
    server.plan = [PASSING[fault]] * 5
    assert list(range(NUM_EXAMPLES)) == sorted(read_epoch(stream, data))
    assert [] == server.plan
    # The client repeats some on its own, after a reset.
    assert len(waits) == 7 or (fault == 'reset' and waits)


def test_measurements_count_what_comes_and_what_failed(
        server, url, data, waits):
    """Requests that were answered, their bytes, and those made again."""
    stream = open_stream(url)
    before = stream.measurements().stages[0]
    server.plan = [faults.status(503)] * 3
    read_epoch(stream, data)
    found = stream.measurements().stages[0] - before
    assert 3 == found.retries == len(waits)
    assert found.requests > 0
    assert found.bytes_fetched >= NUM_EXAMPLES * 20 * 15


def test_waits_grow_and_heed_the_server(server, url, waits):
    """They grow up to a bound, and are partly random."""
    server.plan = [faults.status(500)] * 10 + [
        faults.status(429, Retry_After='7')]
    H5PYDataset(url, ('train',))
    assert 7 == waits[-1]
    for number, seconds in enumerate(waits[:-1]):
        longest = min(10, .1 * 2 ** number)
        assert longest / 2 <= seconds <= longest


def test_server_that_nobody_runs_is_told_once(caplog, waits, monkeypatch):
    """The warning comes after a while, without credentials, and not for each
    request."""
    monkeypatch.setattr(transfers, 'SILENT_WAIT', 0)
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        address = f'127.0.0.1:{free.getsockname()[1]}'
        config.remote_timeout = 9
        with pytest.raises(TimeoutError, match='ConnectionRefusedError'):
            H5PYDataset(f'http://me:word@{address}/a.h5', ('train',))
    record, = [record for record in caplog.records
               if record.levelno >= logging.WARNING]
    text = record.getMessage()
    assert address in text and 'word' not in text
    assert 'not opened yet' in text and 'ConnectionRefusedError' in text
    assert len(waits) > 2


def free_address():
    """Return an address of this host at which nobody listens."""
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        return '127.0.0.1', free.getsockname()[1]


@pytest.fixture
def refusing(objects, monkeypatch):
    """Let asynchronous storage refuse connections; return its address."""
    host, port = free_address()

    async def refuse(self, path, **kwargs):
        socket.create_connection((host, port))

    def begin():
        monkeypatch.setattr(objects, '_info', refuse)

    return f'{host}:{port}', begin


@pytest.mark.parametrize('scheme', ['http', 'objects'])
def test_server_that_refuses_all_connections_is_given_up_early(
        waits, refusing, scheme):
    """It is given up after ten seconds, with any file system, and not after
    the time for a server that is down for a while."""
    config.remote_timeout = 11
    address, begin = refusing
    begin()
    with pytest.raises(TimeoutError, match=(
            r'could not connect to the server in 10 seconds, in \d+ '
            r'attempts: .*ConnectionRefusedError.*; check the address')):
        raw_file_at(RemotePath(f'{scheme}://{address}/a.h5'))
    assert len(waits) > 3


def test_server_that_was_reached_before_is_waited_for(
        waits, objects, refusing):
    """The server's other files are waited for too; it may be down."""
    config.remote_timeout = 11
    address, begin = refusing
    objects.put(f'{address}/a', b'a')
    raw_file_at(RemotePath(f'objects://{address}/a'))
    begin()
    with pytest.raises(TimeoutError, match=(
            r'/b: bytes 0 to 65535 could not be fetched in 11 seconds, in \d+ '
            r'attempts: ConnectionRefusedError')):
        raw_file_at(RemotePath(f'objects://{address}/b'))


def test_requests_end_with_their_deadline(server, url, waits):
    """The error says what was tried; the next request is a new one."""
    dataset = H5PYDataset(url, ('train',))
    config.remote_timeout = .2
    server.latency = .01
    server.plan = [faults.status(503)] * 1000
    with pytest.raises(TimeoutError, match=(
            r'http://127.0.0.1:\d+/train.hdf5\?dl=1: bytes 0 to 65535 could '
            r'not be fetched in 0.2 seconds, in \d+ attempts: the server '
            r'answers 503')):
        H5PYDataset(url + '?dl=1', ('train',))
    server.plan = []
    assert 1 == len(dataset.get_data(None, [3])[0])


def test_server_that_does_not_answer_is_given_up(server, url, monkeypatch):
    """Another request is made, until the deadline."""
    monkeypatch.setattr('fuel.remote.stores.IDLE', .3)
    server.plan = [faults.silent(2)]
    began = time.monotonic()
    H5PYDataset(url, ('train',))
    assert time.monotonic() - began < 2
    assert [] == server.plan


@pytest.mark.parametrize('fault, error, text', [
    (faults.status(404), FileNotFoundError, 'there is no such file'),
    (faults.status(410), FileNotFoundError, 'there is no such file'),
    (faults.status(401), PermissionError, 'give credentials'),
    (faults.status(403), PermissionError, 'give credentials'),
    (faults.status(400), OSError, 'answers 400'),
    (faults.whole, OSError, 'not ranges of bytes')])
def test_errors_that_stay_are_raised_at_once(
        server, url, waits, fault, error, text):
    """The error has the URL and says what to do."""
    server.plan = [fault]
    with pytest.raises(error, match=r'http://127.0.0.1:\d+/train.hdf5: '
                       '.*' + text):
        H5PYDataset(url, ('train',))
    assert [] == waits


def test_error_in_the_middle_of_an_epoch_is_of_its_request(
        server, url, data, waits):
    """The next epoch goes on reading."""
    config.remote_cache_path = 'off'
    stream = open_stream(url)
    server.plan = [faults.status(403)] * 40
    with pytest.raises(PermissionError, match='train.hdf5'):
        list(stream.get_epoch_iterator())
    server.plan = []
    assert list(range(NUM_EXAMPLES)) == sorted(read_epoch(stream, data))


def test_file_that_is_not_hdf5_raises_an_error_that_says_so(folder, server):
    """The error is that of a local file."""
    (folder / 'page.hdf5').write_text('<!DOCTYPE html>' + 100 * ' ')
    with pytest.raises(OSError, match='it is an HTML page'):
        H5PYDataset(server.url('page.hdf5'), ('train',))
    (folder / 'empty.hdf5').write_bytes(b'')
    with pytest.raises(OSError, match='empty.hdf5'):
        H5PYDataset(server.url('empty.hdf5'), ('train',))


def test_file_that_was_cut_is_an_error(folder, server, data):
    """HDF5 says so when it is opened."""
    content = (folder / 'train.hdf5').read_bytes()
    (folder / 'cut.hdf5').write_bytes(content[:len(content) // 2])
    with pytest.raises(OSError, match='truncated'):
        H5PYDataset(server.url('cut.hdf5'), ('train',))


@pytest.mark.parametrize('has_etags', [True, False])
def test_file_that_changes_under_its_reader_is_an_error(
        folder, server, data, has_etags):
    """Old and new rows are never mixed; whoever opens it again has the new
    ones."""
    server.has_etags = has_etags
    os.utime(folder / 'train.hdf5', (1e9, 1e9))
    config.remote_cache_path, config.remote_memory_bytes = 'off', 0
    url = server.url('train.hdf5')
    dataset = H5PYDataset(url, ('train',), sources=('plain', 'number'))
    stream = DataStream(dataset, iteration_scheme=ShuffledScheme(
        NUM_EXAMPLES, 8))
    epoch = stream.get_epoch_iterator()
    next(epoch)
    new = make_file(folder / 'new.hdf5', seed=1)
    os.replace(folder / 'new.hdf5', folder / 'train.hdf5')
    with pytest.raises(DamagedFileError, match='changed while it was in use'):
        list(epoch)
    with pytest.raises(DamagedFileError, match='changed while it was in use'):
        dataset.get_data(None, [0])
    dataset.close(None)
    assert (new['plain'][:3] == dataset.get_data(None, [0, 1, 2])[0]).all()


def test_file_that_changed_while_it_was_closed_is_read_anew(
        folder, server, url, data):
    """Its old bytes in the cache are of no use."""
    dataset = H5PYDataset(url, ('train',), sources=('plain', 'number'))
    read_epoch(DataStream(dataset, iteration_scheme=ShuffledScheme(
        NUM_EXAMPLES, 64)), data)
    dataset.close(None)
    new = make_file(folder / 'new.hdf5', seed=1)
    os.replace(folder / 'new.hdf5', folder / 'train.hdf5')
    assert (new['plain'][[5, 3]] == dataset.get_data(None, [5, 3])[0]).all()


def test_file_of_any_file_system_that_changes_is_an_error():
    """Fsspec's own say so by the time of the change, or the like."""
    filesystem = filesystem_of('memory://changing/a', {})
    filesystem.pipe('/changing/a', b'a' * 200_000)
    config.remote_cache_path, config.remote_memory_bytes = 'off', 0
    file = raw_file_at(RemotePath('memory://changing/a'))
    assert b'aaa' == file.read(100_000, 3)
    filesystem.pipe('/changing/a', b'b' * 200_000)
    with pytest.raises(DamagedFileError, match='changed while it was in use'):
        file.read(150_000, 3)


@pytest.fixture
def objects():
    """Return asynchronous storage without objects."""
    ObjectFilesystem.objects.clear()
    ObjectFilesystem.events.clear()
    ObjectFilesystem.asked.clear()
    return ObjectFilesystem


def test_object_of_an_asynchronous_system_that_changes_is_an_error(objects):
    """The error comes at once, not seconds later; opening it again reads the
    new one."""
    config.remote_cache_path, config.remote_memory_bytes = 'off', 0
    objects.put('a/b', b'a' * 200_000)
    file = raw_file_at(RemotePath('objects://a/b'))
    assert b'aaa' == file.read(100_000, 3)
    objects.put('a/b', b'b' * 200_000)
    with pytest.raises(DamagedFileError, match='changed while it was in use'):
        file.read(150_000, 3)
    assert b'bbb' == raw_file_at(RemotePath('objects://a/b')).read(0, 3)


def test_object_that_changed_is_found_when_it_is_opened_again(objects):
    """It is found although the first one is still open, and was not read
    since."""
    config.remote_cache_path = 'off'
    objects.put('a/b', b'a' * 200_000)
    file = raw_file_at(RemotePath('objects://a/b'))
    objects.put('a/b', b'b' * 200_000)
    again = raw_file_at(RemotePath('objects://a/b'))
    assert b'bbb' == again.read(0, 3)
    assert again is not file


def test_object_that_changes_while_it_is_opened_is_an_error(objects):
    """Its first bytes are not taken for those of the state before."""
    config.remote_cache_path = 'off'
    objects.put('a/b', b'a' * 200_000)
    objects.events.append(lambda: objects.put('a/b', b'b' * 200_000))
    with pytest.raises(DamagedFileError, match='changed while it was in use'):
        raw_file_at(RemotePath('objects://a/b'))


def test_cache_on_disk_has_no_bytes_of_another_state(objects):
    """An object that is put back as it was is a new state, too."""
    objects.put('a/b', b'a' * 200_000)
    first = objects.objects['a/b']
    path = RemotePath('objects://a/b')
    file = raw_file_at(path)
    objects.put('a/b', b'b' * 200_000)
    with pytest.raises(DamagedFileError, match='changed while it was in use'):
        file.read(100_000, 3)
    del file
    objects.objects['a/b'] = first
    for _ in range(2):
        assert b'a' * 200_000 == raw_file_at(path).read(0, 200_000)


def test_object_that_becomes_shorter_is_an_error_soon(objects):
    """The failure to read beyond its end is not repeated for long."""
    config.remote_cache_path, config.remote_memory_bytes = 'off', 0
    objects.put('a/b', b'a' * 200_000)
    file = raw_file_at(RemotePath('objects://a/b'))
    objects.put('a/b', b'b' * 1000)
    with pytest.raises(DamagedFileError, match='changed while it was in use'):
        file.read(150_000, 3)


def test_reads_that_end_together_share_the_question_after_the_state(objects):
    """A request for each would be as many again."""
    config.remote_cache_path = 'off'
    objects.put('a/b', b'a' * 40_000_000)
    file = raw_file_at(RemotePath('objects://a/b'))
    objects.asked.clear()
    file.read(0, 40_000_000)
    assert objects.asked.count('info') < objects.asked.count('cat_file')


def test_errors_of_a_file_system_are_told_apart():
    """Its own errors may be transient; a wrong path or option is not."""
    config.remote_timeout = 1.5

    class Failing(type(filesystem_of('memory://a/b', {}))):
        """A file system that fails."""

        cachable = False
        protocol = 'failing'
        error = RuntimeError('out of order')

        def info(self, *args, **kwargs):
            raise self.error

    import fsspec
    fsspec.register_implementation('failing', Failing, clobber=True)
    with pytest.raises(TimeoutError, match='RuntimeError: out of order'):
        raw_file_at(RemotePath('failing://a/b'))
    Failing.error = TypeError('no such argument')
    with pytest.raises(OSError, match='TypeError: no such argument'):
        raw_file_at(RemotePath('failing://a/b'))


def test_every_kind_of_fault_in_one_epoch(server, url, data, waits):
    """Nothing is lost or repeated."""
    generator = numpy.random.RandomState(3)
    faulty = list(PASSING.values())
    config.remote_memory_bytes, config.remote_cache_path = 100_000, 'off'
    stream = open_stream(url)
    server.plan = [faulty[generator.randint(len(faulty))]
                   if generator.rand() < .5 else None for _ in range(200)]
    for _ in range(2):
        assert list(range(NUM_EXAMPLES)) == sorted(read_epoch(stream, data))
    assert waits


@pytest.mark.parametrize('name, error', [
    ('absent', FileNotFoundError), ('there/in_it', NotADirectoryError)])
def test_path_of_this_machine_that_leads_nowhere_is_asked_for_once(
        tmp_path, waits, name, error):
    """A file in the place of a folder is one tomorrow too."""
    config.remote_timeout = 2
    (tmp_path / 'there').write_bytes(b'\0')
    with pytest.raises(error, match=name):
        fuel.load(f'file://{tmp_path}/{name}')
    assert not waits
