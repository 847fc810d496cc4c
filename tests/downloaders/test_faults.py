"""Faults of servers and disks: nothing but a verified file ever stands under
the final name."""
import gzip
import hashlib
import os
import random
import signal
import threading

import pytest
from faulty_server import serving
from processes import start_python

from fuel.downloaders.base import (DownloadError, Options, RawFile,
                                   default_downloader, use_options)

CONTENT = random.Random(1).randbytes(3_200_003)
KNOWN = {'size': len(CONTENT),
         'sha256': hashlib.sha256(CONTENT).hexdigest()}
OLD = b'what was there before'


@pytest.fixture
def server():
    """Serve one file, ``data.bin``."""
    with serving({'data.bin': CONTENT}) as running:
        yield running


@pytest.fixture
def slept():
    """Wait for nothing, and note how long one would have waited."""
    waits = []
    with use_options(Options(sleep=waits.append, read_timeout=20.)):
        yield waits


@pytest.fixture
def folder(tmp_path):
    """Have an older file under the final name."""
    (tmp_path / 'data.bin').write_bytes(OLD)
    return tmp_path


def fetch(server, folder, path, known=KNOWN):
    """Download ``data.bin`` by a path that names a fault."""
    default_downloader(str(folder), [server.url(path + '/data.bin')],
                       [RawFile('data.bin', **known)])
    return (folder / 'data.bin').read_bytes()


# path, known, text of the error, number of requests
FAILURES = [
    ('404', {}, '404', 1),
    ('404', KNOWN, '404', 1),
    ('500', {}, r'500 .*\(after 3 attempts\)', 3),
    ('page', {}, 'web page', 1),
    ('page', KNOWN, 'expected 3200003 bytes', 1),
    ('redirect', {}, 'web page', 2),
    ('redirect', KNOWN, 'expected 3200003 bytes', 2),
    ('stall', KNOWN, r'broke off.*\(after 3 attempts\)', 3),
    ('short', KNOWN, 'expected 3200003 bytes, the server offers 3200002', 1),
    ('long', KNOWN, 'expected 3200003 bytes, got more', 1),
    ('wrong', KNOWN, 'expected sha256', 1),
    ('wrong', {'md5': hashlib.md5(CONTENT).hexdigest()}, 'expected md5', 1),
    ('cut/0', KNOWN, r'broke off.*\(after 3 attempts\)', 3)]


@pytest.mark.parametrize('path, known, text, requests', FAILURES)
def test_fault_leaves_the_old_file(server, folder, slept, path, known, text,
                                   requests):
    """R46, R47, R49: an error tells what came, and the file under the final
    name is what it was."""
    patience = .3 if path == 'stall' else 20.
    with (use_options(Options(sleep=slept.append, read_timeout=patience)),
          pytest.raises(DownloadError, match=text)):
        fetch(server, folder, path, known)
    assert OLD == (folder / 'data.bin').read_bytes()
    assert requests == len(server.requests)
    assert path in ('stall',) or ['data.bin'] == os.listdir(folder)


def test_retries_wait_twice_as_long_each_time(server, folder, slept):
    """Retries are bounded and back off."""
    with pytest.raises(DownloadError, match='500'):
        fetch(server, folder, '500')
    assert [.5, 1.] == slept


@pytest.mark.parametrize('eighths', range(1, 8))
def test_cut_at_each_eighth_is_resumed(server, folder, slept, eighths):
    """R47: a transfer that breaks off goes on where it was, with Range."""
    assert CONTENT == fetch(server, folder, f'cutonce/{eighths}')
    ranges = [headers.get('Range') for _, headers in server.requests]
    assert [None, f'bytes={len(CONTENT) * eighths // 8}-'] == ranges
    assert ['data.bin'] == os.listdir(folder)


def test_server_that_always_cuts_gets_there(server, folder, slept):
    """An attempt that makes progress is not one in vain."""
    assert CONTENT == fetch(server, folder, 'cut/1')
    assert len(server.requests) in (8, 9)


@pytest.mark.parametrize('known', [KNOWN, {}])
def test_server_without_ranges_restarts(server, folder, slept, known):
    """A server that ignores Range sends the whole file again."""
    assert CONTENT == fetch(server, folder, 'norange', known)
    assert 2 == len(server.requests)


@pytest.mark.parametrize('path', ['gzip', 'nolength', 'mislabelled'])
def test_unusual_but_right_replies_are_understood(server, folder, slept,
                                                  path):
    """R50: packed for the way, of unknown length, or said to be packed
    although it is not: the file comes out right."""
    assert CONTENT == fetch(server, folder, path)


def test_packed_file_said_to_be_packed_for_the_way(server, folder, slept):
    """Many servers say of a ``.gz`` file that gzip is for the way only."""
    packed = gzip.compress(CONTENT[:9999], mtime=0)
    server.files['data.bin'] = packed
    assert packed == fetch(server, folder, 'mislabelled', {
        'sha256': hashlib.sha256(packed).hexdigest()})


def test_piece_of_another_file_is_thrown_away(server, folder, slept):
    """A piece that does not belong to the file costs a second download."""
    (folder / 'data.bin.part').write_bytes(b'not of this file')
    assert CONTENT == fetch(server, folder, 'ok')
    assert ['data.bin'] == os.listdir(folder)


@pytest.mark.parametrize('known', [KNOWN, {}])
def test_piece_that_is_too_long_is_thrown_away(server, folder, slept, known):
    """A piece longer than the file is no piece of it (status 416)."""
    (folder / 'data.bin.part').write_bytes(CONTENT + b'more')
    assert CONTENT == fetch(server, folder, 'ok', known)


def test_complete_piece_is_not_fetched(server, folder, slept):
    """A run that was killed just before the renaming needs no bytes."""
    (folder / 'data.bin.part').write_bytes(CONTENT)
    assert CONTENT == fetch(server, folder, 'ok')
    assert [] == server.requests


SCRIPT = """
import sys
from fuel.downloaders.base import RawFile, default_downloader
default_downloader(sys.argv[1], [sys.argv[2]], [
    RawFile('data.bin', size=int(sys.argv[3]), sha256=sys.argv[4])])
"""


def start_process(server, folder, path):
    """Download in another process."""
    return start_python('-c', SCRIPT, str(folder),
                        server.url(path + '/data.bin'), str(KNOWN['size']),
                        KNOWN['sha256'])


def test_kill_in_the_middle_is_resumed_by_a_second_run(server, folder):
    """What a killed process got is not fetched again."""
    process = start_process(server, folder, 'slow')
    assert server.half_sent.wait(30)
    part = folder / 'data.bin.part'
    half = len(CONTENT) // 2
    while part.stat().st_size < half - (1 << 20):
        assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert OLD == (folder / 'data.bin').read_bytes()
    got = part.stat().st_size
    assert got
    assert CONTENT == fetch(server, folder, 'ok')
    assert f'bytes={got}-' == server.requests[-1][1]['Range']


def test_two_processes_at_once_fetch_once(server, folder):
    """The second waits for the first, and finds the file verified."""
    first = start_process(server, folder, 'slow')
    assert server.half_sent.wait(30)
    second = start_process(server, folder, 'slow')
    threading.Timer(.3, server.go_on.set).start()
    for process in (first, second):
        assert b'' == process.communicate(timeout=60)[1]
        assert 0 == process.returncode
    assert CONTENT == (folder / 'data.bin').read_bytes()
    assert ['data.bin'] == os.listdir(folder)
    assert 1 == len(server.requests)


def test_two_threads_at_once_fetch_once(server, folder):
    """The same within a process."""
    threads = [threading.Thread(target=fetch, args=(server, folder, 'ok'))
               for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert CONTENT == (folder / 'data.bin').read_bytes()
    assert 1 == len(server.requests)


def test_disk_that_is_too_small_is_noticed_before(server, folder, slept,
                                                  monkeypatch):
    """The space needed is compared with what is free."""
    import shutil
    monkeypatch.setattr(shutil, 'disk_usage', lambda path: type(
        'usage', (), {'free': 1000}))
    with pytest.raises(DownloadError, match='3200003 bytes are needed, 1000'):
        fetch(server, folder, 'ok')
    assert OLD == (folder / 'data.bin').read_bytes()
    assert ['data.bin'] == os.listdir(folder)


INTERRUPTED = """
import os, signal, sys, threading
from fuel.downloaders.base import default_downloader
signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Timer(.7, os.kill, [os.getpid(), signal.SIGINT]).start()
default_downloader(sys.argv[1], sys.argv[2:], ['a.bin', 'b.bin'])
"""


def test_interrupt_ends_all_downloads(server, folder):
    """Ctrl-C does not wait until other files are complete."""
    server.files['data.bin'] = CONTENT * 2
    process = start_python('-c', INTERRUPTED, str(folder),
                           server.url('trickle/data.bin'),
                           server.url('trickle/data.bin'))
    error = process.communicate(timeout=60)[1]
    assert b'KeyboardInterrupt' in error
    assert not server.ended.is_set()
    assert {'data.bin', 'a.bin.part', 'b.bin.part', 'a.bin.part.origin',
            'b.bin.part.origin'} >= set(os.listdir(folder))


def test_full_disk_is_an_error_that_says_so(server, folder):
    """A write that fails half-way leaves the old file, and what was got for
    a second run."""
    limited = ('import resource, signal\n'
               'signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n'
               'resource.setrlimit(resource.RLIMIT_FSIZE, (10**6, 10**6))\n')
    process = start_python(
        '-c', limited + SCRIPT, str(folder), server.url('ok/data.bin'),
        str(KNOWN['size']), KNOWN['sha256'])
    error = process.communicate(timeout=60)[1]
    assert 1 == process.returncode
    assert b'data.bin could not be written: [Errno 27]' in error
    assert OLD == (folder / 'data.bin').read_bytes()
    assert 0 < (folder / 'data.bin.part').stat().st_size <= 10 ** 6
    assert CONTENT == fetch(server, folder, 'ok')
    assert ['data.bin'] == os.listdir(folder)


def test_file_that_changes_is_not_pieced_together(server, folder, slept):
    """Without a digest, If-Range keeps two states of a file apart."""
    assert CONTENT[::-1] == fetch(server, folder, 'changing', {})
    assert '"first"' == server.requests[1][1]['If-Range']
    assert ['data.bin'] == os.listdir(folder)


@pytest.mark.parametrize('known', [KNOWN, {}])
def test_piece_of_another_address(server, folder, slept, known):
    """A piece from another address is continued only if the digest will
    tell whether the two fit."""
    other = server.url('cut/4/data.bin')
    with (use_options(Options(attempts=1, sleep=slept.append)),
          pytest.raises(DownloadError, match='broke off')):
        server.files['data.bin'] = CONTENT[::-1]
        default_downloader(str(folder), [other.replace('cut/4', 'cutonce/4')],
                           [RawFile('data.bin', **known)])
    server.files['data.bin'] = CONTENT
    assert CONTENT == fetch(server, folder, 'ok', known)
    assert ['data.bin'] == os.listdir(folder)


def test_file_of_another_length_is_not_pieced_together(server, folder, slept):
    """Without a digest and a tag, at least the length must agree."""
    server.files['data.bin'] = b'x' * 1000
    with (use_options(Options(attempts=1, sleep=slept.append)),
          pytest.raises(DownloadError, match='broke off')):
        fetch(server, folder, 'cutonce/4', {})
    server.files['data.bin'] = CONTENT
    assert CONTENT == fetch(server, folder, 'cutonce/4', {})
    assert ['data.bin'] == os.listdir(folder)


@pytest.mark.parametrize('path', ['ok', 'cutonce/3', '404'])
def test_system_without_locks_works(server, folder, slept, monkeypatch,
                                    path):
    """Where there is no fcntl an open file cannot be renamed or removed."""
    from fuel.downloaders import _transfer
    monkeypatch.setattr(_transfer, 'fcntl', None)

    def refuse_open_files(function):
        def checked(*paths):
            open_paths = {os.path.realpath(f'/proc/self/fd/{fd}')
                          for fd in os.listdir('/proc/self/fd')}
            assert os.path.realpath(paths[0]) not in open_paths
            return function(*paths)
        return checked
    for name in ('replace', 'remove'):
        monkeypatch.setattr(os, name, refuse_open_files(getattr(os, name)))
    if path == '404':
        with pytest.raises(DownloadError, match='404'):
            fetch(server, folder, path)
    else:
        assert CONTENT == fetch(server, folder, path)
    assert ['data.bin'] == os.listdir(folder)


class Reply:
    """A reply whose body arrives in given pieces."""

    def __init__(self, pieces):
        self.headers = {}
        self.pieces = pieces

    def raise_for_status(self):
        """Report no error."""

    def iter_content(self, size):
        """Iterate over the pieces."""
        return iter(self.pieces)


@pytest.mark.parametrize('pieces', [
    [b'<!DOC', b'TYPE html><p>Log in'], [b'<', b'HTML>'],
    [b' ' * 100, b'<html>'], [b'\xef\xbb\xbf<!doctype html>']])
def test_page_that_comes_in_pieces_is_refused(folder, slept, monkeypatch,
                                              pieces):
    """R46: a page is known by its first bytes, however these arrive."""
    monkeypatch.setattr('fuel.downloaders.base.requests.get',
                        lambda url, **kwargs: Reply(pieces))
    with pytest.raises(DownloadError, match='got a web page'):
        default_downloader(str(folder), ['http://localhost/data.bin'],
                           ['data.bin'])
    assert os.listdir(folder) == ['data.bin']
    assert (folder / 'data.bin').read_bytes() == OLD


def test_page_left_by_an_earlier_run_is_replaced(server, folder):
    """A piece that is a page is not continued for good, but begun again."""
    (folder / 'data.bin.part').write_bytes(b'<html>' + CONTENT[6:90_000])
    assert fetch(server, folder, 'ok', {}) == CONTENT
