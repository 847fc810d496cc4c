"""Answers of a server that lies: never wrong bytes, never without bounds."""
import gzip
import itertools
import os
import sys

import pytest
from support import range_server as faults
from support.range_server import answering, serving
from support.waiting import wait_until

from fuel import config
from fuel.datasets import H5PYDataset
from fuel.exceptions import DamagedFileError
from fuel.remote.location import RemotePath
from fuel.schemes import ShuffledScheme
from fuel.storage.file_bytes import raw_file_at
from fuel.streams import DataStream
from fuel.testing.faults import intercept

from .conftest import NUM_EXAMPLES, read_epoch

# Of pieces of an endless answer, and of how many a reader may take.
PIECE, MOST_PIECES = 1 << 16, 1 << 10


def range_header(first, last, size):
    """Return the header of the range that was asked for."""
    return f'bytes {first}-{min(last, size - 1)}/{size}'


def endless(handler):
    """Yield pieces until the reader has had enough."""
    for number in range(MOST_PIECES + 1):
        handler.server.most_pieces = number
        yield bytes(PIECE)


# Each has bytes, but not those that were asked for.
WRONG = {
    'first bytes of the range': answering(
        206, bytes(100), Content_Length='100', Content_Range=(
            lambda first, last, size: f'bytes {first}-{first + 99}/{size}')),
    'bytes after the range': answering(
        206, bytes(1 << 17), Content_Length=str(1 << 17), Content_Range=(
            lambda first, last, size:
            f'bytes {first}-{first + (1 << 17) - 1}/{size}')),
    'more bytes than it says': answering(
        206, bytes(1 << 21), Content_Length=str(1 << 21),
        Content_Range=range_header),
    'fewer bytes than it says': answering(
        206, bytes(10), Content_Length='10', Content_Range=range_header),
    'another range': answering(
        206, bytes(10), Content_Length='10', Content_Range=(
            lambda first, last, size: f'bytes {first + 5}-{first + 14}/{size}'
        )),
    'backward range': answering(
        206, bytes(10), Content_Length='10', Content_Range=(
            lambda first, last, size: f'bytes {last}-{first}/{size}')),
    'endless body': answering(206, endless, Content_Range=range_header),
    'no such range': answering(
        416, Content_Length='0', Content_Range=(
            lambda first, last, size: f'bytes */{size}'))}
REFUSED = {
    'page': (answering(200, b'<html>', Content_Length='6',
                       Content_Type='text/html'), 'whole files only'),
    'no range': (answering(206, b'1234', Content_Length='4'),
                 'does not say which'),
    'range of words': (answering(
        206, b'1234', Content_Length='4', Content_Range='bytes some'),
        'does not say which'),
    'negative range': (answering(
        206, b'1234', Content_Length='4', Content_Range='bytes -4--1/9'),
        'does not say which'),
    'unknown size': (answering(
        206, b'1234', Content_Length='4', Content_Range='bytes 0-3/*'),
        'does not say which'),
    'enormous number': (answering(
        206, b'1234', Content_Length='4',
        Content_Range='bytes 0-3/' + '9' * 5000), 'does not say which|failed'),
    'enormous file': (answering(
        206, bytes(1 << 16), Content_Length=str(1 << 16),
        Content_Range=f'bytes 0-65535/{10 ** 18}'), 'which no file has'),
    'negative length': (answering(
        206, b'1234', Content_Length='-4', Content_Range=range_header),
        'the request failed'),
    'compressed body': (answering(
        206, gzip.compress(bytes(1 << 16)), Content_Encoding='gzip',
        Content_Range=range_header), 'compresses'),
    'file of this machine': (faults.status(
        302, Location='file:///etc/passwd'), 'redirects from http to file'),
    'nowhere': (faults.status(302, Location='gopher://h/a'),
                'redirects from http to gopher'),
    'no address': (faults.status(302, Location='http://[::1'),
                   'invalid address'),
    'no port': (faults.status(302, Location='http://h:99999/a'),
                'invalid address'),
    'itself': (faults.status(307, Location=''), 'more than 5 times')}


@pytest.fixture(autouse=True)
def waits():
    """Repeat requests at once."""
    with intercept('remote wait', lambda pause, seconds: pause(0)):
        yield


@pytest.mark.parametrize('place', ['disk', 'memory'])
def test_wrong_bytes_are_never_taken(server, url, data, place):
    """Wrong bytes are fetched again, and each example is what it was."""
    if place == 'memory':
        config.remote_cache_path = 'off'
    for number, name in enumerate(WRONG):
        server.plan = [WRONG[name]]
        stream = DataStream(
            H5PYDataset(f'{url}?version={number}', ('train',)),
            iteration_scheme=ShuffledScheme(NUM_EXAMPLES, 64))
        assert [] == server.plan, name
        server.plan = [WRONG[name]] * 4
        assert list(range(NUM_EXAMPLES)) == sorted(
            read_epoch(stream, data)), name
        assert [] == server.plan, name
    # Bytes that nobody wants are not read to their end.
    assert 0 < server.most_pieces < MOST_PIECES


def test_answers_that_make_no_sense_are_refused(server, url):
    """The error names the file, and comes at once."""
    config.remote_timeout = 2
    for answer, text in REFUSED.values():
        server.plan = [answer] * 10
        with pytest.raises(OSError, match=f'train.hdf5: .*({text})'):
            H5PYDataset(url, ('train',))
        assert len(server.plan) > 3, text


def test_etag_that_differs_each_time_is_a_file_that_changes(server, url):
    """Nothing of one state is mixed with that of another."""
    numbers = itertools.count()

    def changing(handler):
        descriptor, size, _, changed = handler.server.content('train.hdf5')
        handler.answer((descriptor, size, f'"{next(numbers)}"', changed),
                       *handler.wanted_range())
        return True

    server.plan = [changing] * 1000
    config.remote_cache_path = 'off'
    with pytest.raises(DamagedFileError, match='changed while it was in use'):
        H5PYDataset(url, ('train',)).get_data(None, [3])


def test_etag_that_cannot_be_sent_is_compared(server, url):
    """A header with a control character would be refused by the client."""
    def odd(handler):
        descriptor, size, _, changed = handler.server.content('train.hdf5')
        handler.answer((descriptor, size, '"a\x01b"', changed),
                       *handler.wanted_range())
        return True

    server.plan = [odd] * 1000
    config.remote_cache_path = 'off'
    if sys.flags.dev_mode:
        # Then aiohttp itself refuses such an answer.
        with pytest.raises(OSError, match='the request failed'):
            H5PYDataset(url, ('train',), sources=('number',))
        return
    dataset = H5PYDataset(url, ('train',), sources=('number',))
    assert 1 == len(dataset.get_data(None, [3])[0])
    assert not any('If-Match' in headers for *_, headers in server.log)


def test_file_that_moved_is_read_there(server, url, data):
    """It is on the same server, and needs the same credentials."""
    server.token = 'Bearer to-ken'
    # Each request is made twice.
    server.plan = [faults.status(302, Location='/train.hdf5'), None] * 100
    dataset = H5PYDataset(
        server.url('moved.hdf5'), ('train',), sources=('number',),
        storage_options={'headers': {'Authorization': server.token}})
    assert 1 == len(dataset.get_data(None, [3])[0])


@pytest.mark.parametrize('user, options', [
    ('', {'headers': {'Authorization': 'Bearer to-ken', 'X-Key': 'to-ken'}}),
    ('user:to-ken@', {'client_kwargs': {
        'headers': {'X-Key': 'to-ken'}, 'cookies': {'session': 'to-ken'}}})],
    ids=['of requests', 'of sessions'])
def test_other_host_is_not_given_credentials(
        folder, server, data, user, options):
    """Credentials are for the server of the URL alone."""
    with serving(folder) as other:
        # Another port is another origin.
        server.plan = [faults.status(
            302, Location=other.url('train.hdf5'))] * 1000
        file = raw_file_at(RemotePath(server.url('train.hdf5').replace(
            '//', f'//{user}'), options))
        content = (folder / 'train.hdf5').read_bytes()
        assert content == b''.join(file.read(place, 1 << 16) for place in (
            range(0, file.size, 1 << 16)))
        assert 'to-ken' in str([headers for *_, headers in server.log])
        for *_, headers in other.log:
            assert not {'Authorization', 'X-Key', 'Cookie'} & {*headers}


def test_error_of_a_redirect_shows_no_credentials(server, url, data):
    """The address may have been signed."""
    server.plan = [faults.status(
        302, Location='file:///a?X-Amz-Signature=sig-nature')] * 9
    with pytest.raises(OSError, match='redirects from http') as caught:
        H5PYDataset(url, ('train',))
    assert 'sig-nature' not in str(caught.value)


def test_descriptors_and_connections_end_with_the_file(
        server, url, data, cache):
    """They end after faults as well; one connection waits for other
    requests."""
    config.remote_connections = 1
    port = f':{server.server_address[1]:04X}'

    def connections():
        # Those to the server: its own ends are in this process too.
        with open('/proc/self/net/tcp', encoding='ascii') as lines:
            rows = [line.split() for line in lines]
        inodes = [f'socket:[{row[9]}]' for row in rows if port in row[2]]
        return sum(descriptors(inode) for inode in inodes)

    def descriptors(text):
        # Of what was opened here: other tests' may end at any time.
        return sum(text in os.path.realpath(f'/proc/self/fd/{name}')
                   for name in os.listdir('/proc/self/fd'))

    for number in range(5):
        server.plan = [WRONG['endless body'], WRONG['another range']] * 3
        # Nothing of it is in the cache.
        dataset = H5PYDataset(f'{url}?version={number}', ('train',))
        dataset.get_data(None, [3, 500])
        assert [] == server.plan
        assert descriptors(str(cache)) and connections()
        dataset.close(None)
        del dataset
        assert not descriptors(str(cache))
        wait_until(lambda: connections() <= 1, 'the end of connections')
