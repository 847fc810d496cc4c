"""Faults of servers and disks: nothing but a verified file ever stands under
the final name."""
import gzip
import hashlib
import io
import os
import random
import signal
import threading

import pytest
from support.faulty_server import serving
from support.processes import start_python
from support.waiting import wait_until

from fuel.downloaders.errors import SlowError
from fuel.downloaders.replies import within
from fuel.downloaders.base import (
    DownloadError,
    Options,
    RawFile,
    default_downloader,
    download,
)

CONTENT = random.Random(1).randbytes(3_200_003)
KNOWN = {'size': len(CONTENT),
         'sha256': hashlib.sha256(CONTENT).hexdigest()}
OLD = b'what was there before'
# Seconds that a program would have waited between attempts.
WAITS = []


@pytest.fixture
def server():
    """Serve one file, ``data.bin``."""
    with serving({'data.bin': CONTENT}) as running:
        yield running


@pytest.fixture
def slept():
    """Wait for nothing, and note how long one would have waited."""
    WAITS.clear()
    return WAITS


@pytest.fixture
def folder(tmp_path):
    """Have an older file under the final name."""
    (tmp_path / 'data.bin').write_bytes(OLD)
    return tmp_path


def choose(**chosen):
    """Return options with which nobody waits."""
    return Options(**{'sleep': WAITS.append, 'read_timeout': 20., **chosen})


def fetch(server, folder, path, known=KNOWN, **chosen):
    """Download ``data.bin`` by a path that names a fault."""
    default_downloader(str(folder), [server.url(path + '/data.bin')],
                       [RawFile('data.bin', **known)],
                       options=choose(**chosen))
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
    ('short', KNOWN, 'expected 3200003 bytes, this file has 3200002', 1),
    ('long', KNOWN, 'expected 3200003 bytes, got more', 1),
    ('wrong', KNOWN, 'expected sha256', 1),
    ('wrong', {'md5': hashlib.md5(CONTENT).hexdigest()}, 'expected md5', 1),
    ('cut/0', KNOWN, r'broke off.*\(after 3 attempts\)', 3)]


@pytest.mark.parametrize('path, known, text, requests', FAILURES)
def test_fault_leaves_the_old_file(server, folder, slept, path, known, text,
                                   requests):
    """An error tells what came, and the file under the final
    name is what it was."""
    patience = .3 if path == 'stall' else 20.
    with pytest.raises(DownloadError, match=text):
        fetch(server, folder, path, known, read_timeout=patience)
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
    """A transfer that breaks off goes on where it was, with Range."""
    assert CONTENT == fetch(server, folder, f'cutonce/{eighths}')
    ranges = [headers.get('Range') for _, headers in server.requests]
    assert [None, f'bytes={len(CONTENT) * eighths // 8}-'] == ranges
    assert ['data.bin'] == os.listdir(folder)


def test_server_that_always_cuts_gets_there(server, folder, slept):
    """An attempt that makes progress does not count as a failure."""
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
    """Packed for the way, of unknown length, or said to be packed
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
    """A piece longer than the file is fetched anew (status 416)."""
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
    """A second run fetches only bytes that the killed process did not get."""
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
    assert (b'data.bin is being downloaded by another process or thread: '
            b'waiting for it\n') == second.stderr.readline()
    server.go_on.set()
    for process in (first, second):
        assert b'' == process.communicate(timeout=60)[1]
    assert 0 == first.returncode == second.returncode
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
    with pytest.raises(DownloadError, match='broke off'):
        server.files['data.bin'] = CONTENT[::-1]
        default_downloader(str(folder), [other.replace('cut/4', 'cutonce/4')],
                           [RawFile('data.bin', **known)],
                           options=choose(attempts=1))
    server.files['data.bin'] = CONTENT
    assert CONTENT == fetch(server, folder, 'ok', known)
    assert ['data.bin'] == os.listdir(folder)


def test_file_of_another_length_is_not_pieced_together(server, folder, slept):
    """Without a digest and a tag, at least the length must agree."""
    server.files['data.bin'] = b'x' * 1000
    with pytest.raises(DownloadError, match='broke off'):
        fetch(server, folder, 'cutonce/4', {}, attempts=1)
    server.files['data.bin'] = CONTENT
    assert CONTENT == fetch(server, folder, 'cutonce/4', {})
    assert ['data.bin'] == os.listdir(folder)


def test_file_that_grows_under_its_tag_is_not_pieced_together(
        server, folder, slept):
    """A server may give two states of a file one tag; not one length."""
    assert CONTENT * 2 == fetch(server, folder, 'growing', {})
    assert [False, True, False] == [
        'Range' in headers for _, headers in server.requests]
    assert ['data.bin'] == os.listdir(folder)


@pytest.mark.parametrize('path', ['ok', 'cutonce/3', '404'])
def test_system_without_locks_works(server, folder, slept, monkeypatch,
                                    path):
    """An open file cannot be renamed or removed on systems without fcntl."""
    from fuel.downloaders import transfer
    monkeypatch.setattr(transfer, 'fcntl', None)

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
    """A page is known by its first bytes, however these arrive."""
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


def test_server_that_crawls_is_given_up(server, folder):
    """Progress of a few bytes is none: nobody waits for ever."""
    with pytest.raises(DownloadError, match='only . bytes came'):
        fetch(server, folder, 'crawl', slow_seconds=.3)
    assert OLD == (folder / 'data.bin').read_bytes()
    assert Options.attempts == len(server.requests)


@pytest.mark.parametrize('path, text', [
    ('crawlhead', 'there was no answer in'),
    ('crawlpacked', 'only 0 bytes came'), ('crawlchunk', 'only 4 bytes came')])
def test_server_that_crawls_without_content_is_given_up(
        server, folder, path, text):
    """The rate limit holds even if each byte comes in time."""
    with pytest.raises(DownloadError, match=text):
        fetch(server, folder, path, {}, slow_seconds=.3, connect_timeout=.2,
              read_timeout=10., attempts=2)
    assert OLD == (folder / 'data.bin').read_bytes()
    assert 2 == len(server.requests)


def test_name_from_a_server_that_crawls_is_given_up(server, tmp_path):
    """A request for a name ends, even if the server's answer never does."""
    from fuel.downloaders.base import filename_from_url
    slow = Options(slow_seconds=.2, connect_timeout=.2)
    with pytest.raises(DownloadError, match='no answer'):
        filename_from_url(server.url('crawlhead/data.bin'), options=slow)
    with pytest.raises(DownloadError, match='only 0 bytes'):
        download(server.url('crawlpacked/data.bin'), io.BytesIO(),
                 options=slow)


def test_redirect_with_an_endless_body_is_followed(server, folder, slept):
    """Nothing of it is read: it would fill the memory."""
    assert CONTENT == fetch(server, folder, 'endlessredirect')


def test_result_that_comes_too_late_is_dropped():
    """Nobody else would close it."""
    late, dropped = threading.Event(), threading.Event()
    with pytest.raises(SlowError, match='no answer'):
        within(.05, lambda: late.wait(30), lambda result: dropped.set())
    late.set()
    assert dropped.wait(30)


def test_error_that_looks_like_a_time_out_is_the_works_own():
    """It is raised as it is."""
    def fail():
        raise TimeoutError('of its own')
    with pytest.raises(TimeoutError, match='of its own'):
        within(30, fail, print)


def test_server_that_crawls_is_read_if_slow_rate_allows(server, folder):
    """The caller chooses the smallest rate."""
    server.files['data.bin'] = b'abcdefgh'
    assert b'abcdefgh' == fetch(server, folder, 'crawl', {}, slow_seconds=.1,
                                slow_rate=1)


def test_confirmation_page_is_confirmed(server, folder, slept, monkeypatch):
    """Of hosts that are known to ask, also in the middle of a file; no page
    sends the client anywhere else."""
    from fuel.downloaders import replies
    with pytest.raises(DownloadError, match='this file has 2'):
        fetch(server, folder, 'confirm')
    monkeypatch.setattr(replies, 'HOSTS', {('http', '127.0.0.1')})
    (folder / 'data.bin.part').write_bytes(CONTENT[:1000])
    assert CONTENT == fetch(server, folder, 'confirm')
    path, headers = server.requests[-1]
    assert '/confirm/data.bin?id=a%26b&confirm=t' == path
    assert 'bytes=1000-' == headers['Range']
    (folder / 'data.bin').unlink()
    with pytest.raises(DownloadError, match='this file has 1'):
        fetch(server, folder, 'confirm/elsewhere')


@pytest.mark.parametrize('page', [
    b'', b'<form id="download-form">', b'<form id="download-form" action="">',
    b'<form id="download-form" action="https://drive.google.com.evil/">',
    b'<form id="download-form" action="http://drive.google.com/">',
    b'<form action="https://drive.google.com/">'])
def test_confirmation_page_of_another_kind_is_a_page(page):
    """Whoever made it, it leads only to the host itself, encrypted."""
    from fuel.downloaders.replies import confirmed_address

    class Reply:
        url = 'https://drive.google.com/uc?id=1'
        headers = {'Content-Type': 'text/html'}  # noqa: RUF012

        def iter_content(self, size):
            return iter([page] if page else [])
    assert confirmed_address(Reply()) is None


def zipped(members):
    """Return a zip archive."""
    import zipfile
    out = io.BytesIO()
    with zipfile.ZipFile(out, 'w', zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def test_member_of_an_archive_takes_the_place_of_a_file(server, folder,
                                                        slept):
    """The archive replaces a missing file; it may come in two pieces."""
    server.files['all.zip'] = zipped({'data.bin': CONTENT, 'b': b''})
    default_downloader(
        str(folder), [None], [RawFile('data.bin', [
            server.url('404/data.bin'),
            server.url('cutonce/4/all.zip#data.bin')], **KNOWN)],
        url_prefix=server.url('404/'))
    assert CONTENT == (folder / 'data.bin').read_bytes()
    assert ['data.bin'] == os.listdir(folder)


@pytest.mark.parametrize('content, known, text', [
    (zipped({'b': b''}), KNOWN, 'no sound archive'),
    (b'no archive', KNOWN, 'no sound archive'),
    (zipped({'data.bin': CONTENT[:-1]}), KNOWN, r'expected \d+ bytes, got'),
    (zipped({'data.bin': CONTENT + bytes(10 ** 7)}), KNOWN, 'expected'),
    (zipped({'data.bin': CONTENT}), {},
     'cannot be verified: its size and a digest must both be known')])
def test_archive_without_the_right_member_is_refused(server, folder, slept,
                                                     content, known, text):
    """Nothing but the file gets its name, and no more is unpacked."""
    server.files['all.zip'] = content
    with pytest.raises(DownloadError, match=text):
        default_downloader(str(folder), [server.url('ok/all.zip#data.bin')],
                           [RawFile('data.bin', **known)])
    assert OLD == (folder / 'data.bin').read_bytes()
    assert ['data.bin'] == os.listdir(folder)


def test_archive_that_does_not_come_leaves_no_file(server, folder, slept):
    """An empty one would look as if there were a piece to go on from."""
    with pytest.raises(DownloadError, match=(
            r'\(--url-prefix, url_prefix in Python\)')):
        default_downloader(str(folder), [server.url('404/all.zip#data.bin')],
                           [RawFile('data.bin', **KNOWN)])
    assert ['data.bin'] == os.listdir(folder)


@pytest.mark.parametrize('path, text', [
    ('http://127.0.0.1:9/data.bin', 'there is no connection: [^(]*refused'),
    ('http://no-such-host.invalid/data.bin',
     r'there is no connection: [^()<>]*\(after'),
    ('file:///no/such/data.bin', 'data.bin: there is no such file')])
def test_errors_are_in_plain_words(folder, slept, path, text):
    """No names of classes, pools or objects."""
    with pytest.raises(DownloadError, match=text) as raised:
        default_downloader(str(folder), [path], ['data.bin'])
    assert 'object at' not in str(raised.value)
    assert 'Pool' not in str(raised.value)


def test_local_file_of_another_length_is_refused(folder, tmp_path, slept):
    """The error speaks of a file, not of a server."""
    source = tmp_path / 'mirror'
    source.mkdir()
    (source / 'data.bin').write_bytes(b'x')
    with pytest.raises(DownloadError) as raised:
        default_downloader(str(folder), [None],
                           [RawFile('data.bin', **KNOWN)],
                           options=choose(mirror=str(source)))
    assert 'this file has 1' in str(raised.value)
    assert 'server' not in str(raised.value)


def test_unfinished_file_removed_by_another_is_ignored(server, folder,
                                                       slept):
    """Another program may remove an unfinished file at any time."""
    from fuel.downloaders import transfer
    with transfer.locked_part(str(folder / 'a.part'), 'a', choose()):
        os.remove(folder / 'a.part')
    assert ['data.bin'] == os.listdir(folder)


def test_name_outlives_a_power_cut(server, folder, slept, monkeypatch):
    """The folder is flushed once the file has its name."""
    from fuel.downloaders import transfer
    flushed = []
    monkeypatch.setattr(
        transfer, 'flush_folder', lambda path: flushed.append(
            (path, (folder / 'data.bin').read_bytes())))
    fetch(server, folder, 'ok')
    assert [(str(folder), CONTENT)] == flushed


FULL = """
import os, sys
from fuel.bin import fuel_convert
from fuel.downloaders.base import default_downloader
def report(error):
    print(os.listdir(sys.argv[1]), open('data.bin').read(),
          open('data.hdf5').read(), error)
os.chdir(sys.argv[1])
for name in ('data.bin', 'data.hdf5'):
    with open(name, 'w') as file:
        file.write('old')
try:
    default_downloader('.', [sys.argv[2]], ['data.bin'])
except OSError as error:
    report(error)
os.remove('data.bin.part')
os.remove('data.bin.part.origin')
try:
    fuel_convert.main(['npy', 'x.npy', '-d', sys.argv[3]])
except SystemExit:
    report('')
"""


def test_disk_that_is_full_keeps_what_is_there(server, tmp_path):
    """A real disk of one megabyte, for a download and for a conversion."""
    import subprocess
    import sys

    import numpy
    from support.processes import environment, on_small_disk
    small = tmp_path / 'small'
    private = on_small_disk(small, 'size=1m')
    numpy.save(tmp_path / 'x.npy', numpy.zeros(10 ** 6))
    done = subprocess.run(
        [*private, sys.executable, '-c', FULL, str(small),
         server.url('nolength/data.bin'), str(tmp_path)],
        env=environment(), capture_output=True, text=True, check=False,
        timeout=60)
    download, conversion = (
        line.rstrip() for line in done.stdout.splitlines()
        if not line.startswith(('Downloading', 'Converting')))
    assert 'old old data.bin could not be written: [Errno 28]' in download
    assert "'data.bin.part'" in download
    assert conversion.endswith(' old old')
    assert 'part' not in conversion
    assert 'no room on the disk' in done.stderr
    assert 'needs at least 8000000 bytes' in done.stderr


def test_download_flushes_before_it_replaces(server, folder, slept,
                                             monkeypatch):
    """The bytes are on the disk before the name stands for them."""
    calls = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, 'fsync', lambda descriptor: (
        calls.append(os.path.isdir(f'/proc/self/fd/{descriptor}')),
        fsync(descriptor)))
    monkeypatch.setattr(os, 'replace', lambda source, target: (
        calls.append('replace'), replace(source, target)))
    fetch(server, folder, 'ok')
    assert [False, 'replace', True] == calls


def test_file_without_digest_or_validator_is_fetched_anew(server, folder,
                                                          slept, caplog):
    """Nobody could say whether two pieces are of one state of the file; the
    digest of what came is reported."""
    server.files['data.bin'] = CONTENT[::-1]
    with pytest.raises(DownloadError, match='broke off'):
        fetch(server, folder, 'cutonce/4', {}, attempts=1)
    server.files['data.bin'] = CONTENT
    caplog.clear()
    assert CONTENT == fetch(server, folder, 'cutonce/4', {})
    assert [None, None] == [headers.get('Range')
                            for _, headers in server.requests]
    assert hashlib.sha256(CONTENT).hexdigest() in caplog.text


def test_file_that_changes_in_one_download_is_whole(server, folder, slept):
    """Between two attempts of one run, at the same size."""
    server.files['data.bin'] = CONTENT[::-1]
    slept_before = WAITS.append

    def change(seconds):
        slept_before(seconds)
        server.files['data.bin'] = CONTENT
    default_downloader(str(folder), [server.url('cutonce/4/data.bin')],
                       ['data.bin'], options=choose(sleep=change))
    assert CONTENT == (folder / 'data.bin').read_bytes()


def test_piece_with_damaged_metadata_is_fetched_anew(server, folder, slept):
    """Any content of the file beside an unfinished one is survived."""
    for text in ('', '[]', '{}', 'null', '5', '{"validator": 5}', '\0',
                 '{"source": {}, "validator": []}'):
        (folder / 'data.bin.part').write_bytes(b'x' * 1000)
        (folder / 'data.bin.part.origin').write_text(text)
        assert CONTENT == fetch(server, folder, 'ok', {})
    assert ['data.bin'] == os.listdir(folder)


def test_second_download_says_that_it_waits(server, folder, caplog):
    """It names the file, and goes on when the first has finished."""
    first = start_process(server, folder, 'slow')
    assert server.half_sent.wait(30)
    thread = threading.Thread(target=fetch, args=(server, folder, 'slow'))
    thread.start()
    wait_until(lambda: 'data.bin is being downloaded by another process'
               in caplog.text)
    server.go_on.set()
    thread.join(30)
    assert b'' == first.communicate(timeout=60)[1]
    assert 1 == len(server.requests)


def test_second_download_does_not_wait_for_ever(server, folder):
    """A second download raises if the first one makes no progress."""
    first = start_process(server, folder, 'slow')
    assert server.half_sent.wait(30)
    first.send_signal(signal.SIGSTOP)
    try:
        with pytest.raises(DownloadError, match='made no progress for 1 sec'):
            fetch(server, folder, 'ok', patience=1.)
    finally:
        first.kill()
        first.communicate()
    assert OLD == (folder / 'data.bin').read_bytes()
