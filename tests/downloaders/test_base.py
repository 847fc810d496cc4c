"""The public functions of `fuel.downloaders.base`."""
import hashlib
import importlib
import io
import os
import random
from argparse import ArgumentParser

import pytest
from support.faulty_server import serving

from fuel.downloaders import base
from fuel.downloaders.base import (
    DownloadError,
    NeedURLPrefix,
    Options,
    RawFile,
    default_downloader,
    download,
    ensure_directory_exists,
    filename_from_url,
    progress_bar,
)

CONTENT = random.Random(0).randbytes(300_001)
KNOWN = {'size': len(CONTENT),
         'sha256': hashlib.sha256(CONTENT).hexdigest()}


@pytest.fixture
def server():
    """Serve one file, ``data.bin``."""
    with serving({'data.bin': CONTENT, '': CONTENT}) as running:
        yield running


@pytest.fixture
def waits():
    """Wait for nothing, and note how long one would have waited."""
    slept = []
    return slept, Options(sleep=slept.append, read_timeout=20., backoff=.5)


def fetch(server, folder, path, known=True, **kwargs):
    """Download ``data.bin`` by a path that names a fault."""
    name = RawFile('data.bin', **KNOWN) if known else 'data.bin'
    default_downloader(str(folder), [server.url(path + '/data.bin')], [name],
                       **kwargs)
    return (folder / 'data.bin').read_bytes()


class Reply:
    """No more of a reply than Fuel may use."""

    def __init__(self, content, headers, status=None):
        self.content = content
        self.headers = headers
        self.status = status

    def raise_for_status(self):
        """Complain if the test asks for it."""
        if self.status:
            raise self.status

    def iter_content(self, size):
        """Hand out the content in pieces."""
        stream = io.BytesIO(self.content)
        return iter(lambda: stream.read(7), b'')


class Requests:
    """Stands for the module `requests`."""

    def __init__(self, *args):
        self.reply = Reply(*args)

    def get(self, url, **kwargs):
        """Answer any request."""
        assert kwargs['stream']
        assert kwargs['timeout']
        return self.reply


@pytest.mark.parametrize('length', [{'content-length': 20},
                                    {'content-length': '20'},
                                    {'content-length': 'many'}, {}])
def test_download_from_a_minimal_reply_writes_all(monkeypatch, length):
    """A reply needs only headers, iter_content and raise_for_status, and a
    handle no name."""
    monkeypatch.setattr(base, 'requests', Requests(b'x' * 20, length))
    handle = io.BytesIO()
    download('http://a/b', handle)
    assert b'x' * 20 == handle.getvalue()


def test_download_with_a_nameless_handle_works(server, tmp_path):
    """``file_handle.name`` may be None."""
    class Nameless(io.BytesIO):
        name = None
    handle = Nameless()
    download(server.url('ok/data.bin'), handle)
    assert CONTENT == handle.getvalue()


@pytest.mark.parametrize('fault', ['404', '500'])
def test_download_of_an_error_page_writes_nothing(server, fault):
    """The status is looked at before anything is written."""
    handle = io.BytesIO()
    with pytest.raises(DownloadError, match=fault):
        download(server.url(fault + '/data.bin'), handle)
    assert b'' == handle.getvalue()


def test_download_with_encoding_unpacks(server):
    """A packed body may be longer than its Content-Length says."""
    handle = io.BytesIO()
    download(server.url('gzip/data.bin'), handle)
    assert CONTENT == handle.getvalue()


@pytest.mark.parametrize('header, expected', [
    ('attachment; filename="a.txt"', 'a.txt'),
    ('filename=a.txt', 'a.txt'),
    ("attachment; filename*=UTF-8''a%20b.txt", 'a b.txt'),
    ('attachment; filename="../../pwned.txt"', 'pwned.txt'),
    ('attachment; filename="/etc/passwd"', 'passwd'),
    ('attachment; filename="..\\\\..\\\\a.txt"', 'a.txt'),
    ('attachment; filename="C:a.txt"', 'a.txt'),
    ('attachment; filename=".."', 'd'),
    ('attachment; filename="a/"', 'd'),
    ('attachment; filename="a\x00b"', 'ab'),
    ('attachment', 'd')])
def test_filename_from_header_is_a_bare_name(monkeypatch, header, expected):
    """A name that a server sends is never used as a path."""
    monkeypatch.setattr(base, 'requests', Requests(
        b'', {'Content-Disposition': header}))
    assert expected == filename_from_url('http://a/b/c/d?e=f')


def test_filename_without_header_is_the_end_of_the_path(server):
    """Without Content-Disposition the address names the file."""
    assert 'data.bin' == filename_from_url(server.url('ok/data.bin?x=1'))


def test_ensure_directory_exists_makes_parents(tmp_path):
    """All folders on the way are created; it may be there already."""
    folder = tmp_path / 'a' / 'b'
    ensure_directory_exists(str(folder))
    ensure_directory_exists(str(folder))
    assert folder.is_dir()


def test_ensure_directory_exists_with_file_in_the_way_raises(tmp_path):
    """A file in the way is an OSError."""
    (tmp_path / 'a').write_text('')
    with pytest.raises(OSError, match='a'):
        ensure_directory_exists(str(tmp_path / 'a'))


def test_progress_bar_on_a_terminal_says_downloading(monkeypatch):
    """The line starts with "Downloading"; too large a value is cut."""
    class Terminal(io.StringIO):
        def isatty(self):
            return True
    # It remembers the output there is when it is imported.
    importlib.import_module('progressbar')
    screen = Terminal()
    monkeypatch.setattr('sys.stdout', screen)
    for maxval in (10, None):
        with progress_bar('a.bin', maxval) as bar:
            bar.update(5)
            bar.update(1024)
    assert screen.getvalue().lstrip('\r').startswith('Downloading a.bin')


@pytest.mark.parametrize('known', [True, False])
def test_default_downloader_saves_under_the_name(server, tmp_path, known):
    """The bytes are those of the server; nothing else is left."""
    assert CONTENT == fetch(server, tmp_path, 'ok', known)
    assert ['data.bin'] == os.listdir(tmp_path)


def test_default_downloader_creates_the_folder(server, tmp_path):
    """The folder need not exist."""
    assert CONTENT == fetch(server, tmp_path / 'a' / 'b', 'ok')


def test_default_downloader_without_name_asks_the_server(server, tmp_path):
    """A name of None is that of Content-Disposition; the caller's list
    stays as it was."""
    names = [None]
    default_downloader(str(tmp_path), [server.url('named/data.bin')], names)
    assert [None] == names
    assert CONTENT == (tmp_path / 'named.bin').read_bytes()


def test_default_downloader_hostile_name_stays_inside(server, tmp_path):
    """'../../pwned.txt' is written into the folder, as 'pwned.txt'."""
    folder = tmp_path / 'a' / 'b'
    default_downloader(str(folder), [server.url('hostile/data.bin')], [None])
    assert ['pwned.txt'] == os.listdir(folder)
    assert ['a'] == os.listdir(tmp_path)


def test_default_downloader_without_any_name_raises(server, tmp_path):
    """An address without a path names no file."""
    with pytest.raises(ValueError, match='no file name can be found'):
        default_downloader(str(tmp_path), [server.url('ok/')], [None])


def test_default_downloader_prefix_completes_missing_addresses(
        server, tmp_path):
    """None among the addresses means prefix and name."""
    default_downloader(str(tmp_path), [None], ['data.bin'],
                       url_prefix=server.url('ok/'))
    assert CONTENT == (tmp_path / 'data.bin').read_bytes()


def test_default_downloader_prefix_may_be_a_folder(tmp_path):
    """A folder of one's own serves as well as an address."""
    source = tmp_path / 'with space'
    source.mkdir()
    (source / 'a#b.bin').write_bytes(CONTENT)
    default_downloader(str(tmp_path / 'out'), [None], ['a#b.bin'],
                       url_prefix=str(source))
    assert CONTENT == (tmp_path / 'out' / 'a#b.bin').read_bytes()


def test_default_downloader_without_prefix_downloads_nothing(
        server, tmp_path):
    """The missing prefix is noticed before any file is downloaded."""
    with pytest.raises(NeedURLPrefix, match='b.bin has no public address'):
        default_downloader(str(tmp_path),
                           [server.url('ok/data.bin'), None],
                           ['data.bin', 'b.bin'])
    assert [] == os.listdir(tmp_path)
    assert [] == server.requests


def test_default_downloader_clear_deletes(tmp_path):
    """Files and their unfinished pieces go. Missing ones are ignored, and no
    server is asked."""
    for name in ('a', 'a.part', 'c'):
        (tmp_path / name).write_text('')
    default_downloader(str(tmp_path), ['http://x/a', 'http://x/b'],
                       ['a', 'b'], clear=True)
    assert ['c'] == os.listdir(tmp_path)


def test_default_downloader_clear_without_name_uses_the_address(tmp_path):
    """Deleting a file that is there needs no network."""
    (tmp_path / 'a').write_text('')
    default_downloader(str(tmp_path), ['http://x/a'], [None], clear=True)
    assert [] == os.listdir(tmp_path)


def test_default_downloader_lengths_differ_raises(tmp_path):
    """Each address has a name."""
    with pytest.raises(ValueError, match='as many file names as addresses'):
        default_downloader(str(tmp_path), ['http://x/a'], [])


def test_default_downloader_verified_file_is_not_fetched(server, tmp_path):
    """A complete, valid file is not fetched."""
    fetch(server, tmp_path, 'ok')
    before = os.stat(tmp_path / 'data.bin').st_mtime_ns
    fetch(server, tmp_path, 'ok')
    assert 1 == len(server.requests)
    assert before == os.stat(tmp_path / 'data.bin').st_mtime_ns


def test_default_downloader_wrong_file_is_replaced(server, tmp_path):
    """An invalid file is fetched again."""
    (tmp_path / 'data.bin').write_bytes(b'wrong')
    assert CONTENT == fetch(server, tmp_path, 'ok')


def test_default_downloader_many_files_at_once(server, tmp_path):
    """Several files come at once, and one failure does not stop others."""
    names = [f'{i}.bin' for i in range(6)]
    server.files.update({name: name.encode() for name in names})
    del server.files['3.bin']
    with pytest.raises(DownloadError, match='3.bin could not be downloaded'):
        default_downloader(
            str(tmp_path), [server.url('ok/' + name) for name in names],
            names)
    names.remove('3.bin')
    assert names == sorted(os.listdir(tmp_path))
    assert all(name.encode() == (tmp_path / name).read_bytes()
               for name in names)


def test_options_mirror_takes_the_place_of_addresses(server, tmp_path):
    """With a mirror no other address is asked."""
    default_downloader(str(tmp_path), ['http://nowhere.invalid/x'],
                       [RawFile('data.bin', **KNOWN)],
                       options=Options(mirror=server.url('ok')))
    assert CONTENT == (tmp_path / 'data.bin').read_bytes()


def test_mirrors_are_tried_in_order(server, tmp_path, waits):
    """The next address is asked when one is of no use."""
    known = RawFile('data.bin', [
        server.url(f'{path}/data.bin') for path in (
            '404', 'page', 'wrong', 'ok', 'never')], **KNOWN)
    default_downloader(str(tmp_path), [known.urls[0]], [known],
                       options=waits[1])
    assert CONTENT == (tmp_path / 'data.bin').read_bytes()
    assert ['404', 'page', 'wrong', 'ok'] == [
        path.split('/')[1] for path, _ in server.requests]


@pytest.mark.parametrize('name', ['iris', 'mnist'])
def test_fill_subparser_sets_names_and_addresses(name):
    """Each data set names its files, an address for each, and the default
    downloader itself."""
    from fuel.downloaders import all_downloaders
    parser = ArgumentParser()
    function = dict(all_downloaders)[name](parser)
    arguments = parser.parse_args([])
    assert default_downloader is function
    assert len(arguments.urls) == len(arguments.filenames)
    assert all(url.startswith('https://') for url in arguments.urls)


def test_svhn_downloader_calls_the_default_one(monkeypatch):
    """With these keywords, looked up in the module."""
    from fuel.downloaders import svhn
    calls = []
    monkeypatch.setattr(svhn, 'default_downloader',
                        lambda **kwargs: calls.append(kwargs))
    svhn.svhn_downloader(1, 'folder', clear=True)
    svhn.svhn_downloader(2, 'folder')
    prefix = 'http://ufldl.stanford.edu/housenumbers/'
    assert [{'directory': 'folder', 'urls': [None] * 3, 'clear': clear,
             'url_prefix': prefix, 'filenames': [
                 f'{split}{ending}' for split in ('train', 'test', 'extra')]}
            for ending, clear in (('.tar.gz', True), ('_32x32.mat', False))
            ] == calls
    with pytest.raises(ValueError, match='got 3'):
        svhn.svhn_downloader(3, 'folder')


def test_silhouettes_downloader_checks_the_size(tmp_path):
    """There are two sizes."""
    from fuel.downloaders.caltech101_silhouettes import silhouettes_downloader
    with pytest.raises(ValueError, match='got 20'):
        silhouettes_downloader(20, directory=str(tmp_path))
    name = 'caltech101_silhouettes_16_split1.mat'
    (tmp_path / name).write_bytes(b'')
    silhouettes_downloader(16, directory=str(tmp_path), clear=True)
    assert [] == os.listdir(tmp_path)


@pytest.mark.parametrize('name', ['ilsvrc2010', 'ilsvrc2012'])
def test_ilsvrc_needs_a_prefix(tmp_path, name):
    """Registered users only: their address is asked for."""
    from fuel.downloaders import all_downloaders
    parser = ArgumentParser()
    function = dict(all_downloaders)[name](parser)
    arguments = parser.parse_args([])
    assert default_downloader is function
    assert arguments.url_prefix is None
    with pytest.raises(NeedURLPrefix, match=name.upper()):
        default_downloader(str(tmp_path), arguments.urls,
                           arguments.filenames)
    assert [] == os.listdir(tmp_path)


def test_registry_holds_only_what_can_be_true():
    """Digests are hexadecimal and of their length, sizes positive,
    addresses web addresses, https before http; names are bare."""
    import re

    from fuel.downloaders.registry import dataset_names, raw_files
    for dataset in dataset_names():
        for file in raw_files(dataset):
            assert os.path.basename(file) == file
            assert file.size is None or file.size > 0
            for digest, length in ((file.sha256, 64), (file.md5, 32)):
                assert digest is None or re.fullmatch(
                    f'[0-9a-f]{{{length}}}', digest), file
            schemes = [url.split(':')[0] for url in file.urls]
            assert sorted(schemes, reverse=True) == schemes
            assert {'https', 'http'} >= set(schemes)


def test_youtube_audio_clear_and_names(tmp_path):
    """Missing files are ignored; an identifier must not be a path."""
    from fuel.downloaders.youtube_audio import download as download_audio
    download_audio(str(tmp_path), 'abc', clear=True)
    (tmp_path / 'abc.m4a').write_bytes(b'')
    download_audio(str(tmp_path), 'abc', clear=True)
    assert [] == os.listdir(tmp_path)
    with pytest.raises(ValueError, match='identifier of a video'):
        download_audio(str(tmp_path), '../abc')


def test_encrypted_addresses_come_first(tmp_path, monkeypatch):
    """Of every file that has an address, SVHN's as well, whose prefix is as
    it always was."""
    from fuel.downloaders import svhn
    from fuel.downloaders.registry import dataset_names, raw_files
    for dataset in dataset_names():
        for file in raw_files(dataset):
            assert not file.urls or file.urls[0].startswith('https://')
    asked = []

    def fetch_nothing(get, sources, known, *args):
        asked.append([source.split(':')[0] for source in sources])
    monkeypatch.setattr(base, 'fetch', fetch_nothing)
    svhn.svhn_downloader(2, str(tmp_path))
    assert [['https', 'http']] * 3 == asked


def test_youtube_audio_goes_where_it_should(tmp_path, monkeypatch):
    """The name of a folder is not used as a template."""
    import sys
    import types

    from fuel.downloaders import youtube_audio

    class YoutubeDL:
        def __init__(self, settings):
            self.template = settings['outtmpl']['default']

        def __enter__(self):
            return self

        def __exit__(self, *error):
            pass

        def download(self, addresses):
            with open(self.template % {'id': 'wrong'}, 'wb') as file:
                file.write(b'sound')
    module = types.ModuleType('yt_dlp')
    module.YoutubeDL = YoutubeDL
    module.utils = types.SimpleNamespace(DownloadError=RuntimeError)
    monkeypatch.setitem(sys.modules, 'yt_dlp', module)
    folder = tmp_path / '100%(id)s'
    youtube_audio.download(str(folder), 'abc')
    assert ['abc.m4a'] == os.listdir(folder)
