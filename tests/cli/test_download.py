"""The command ``fuel-download``."""
import os

import pytest
from support.faulty_server import serving
from support.processes import run_python

from fuel.bin.fuel_download import main
from fuel.downloaders.base import raw_files

# Fisher's measurements as the UCI file has them are needed for its digest;
# any other content is refused.
WRONG = b'5.1,3.5,1.4,0.2,Iris-setosa\n'


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Be in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize('arguments, text', [
    ([], 'usage: fuel-download'), (['no-such-set'], 'invalid choice')])
def test_download_user_mistakes_print_usage(capsys, arguments, text):
    """`args` count, and a mistake ends with usage."""
    with pytest.raises(SystemExit, match='2'):
        main(arguments)
    assert text in capsys.readouterr().err


def test_download_wrong_content_is_refused(here, capsys):
    """A download with another digest never gets the final name."""
    with serving({'iris.data': WRONG}) as server:
        assert 1 == main(['iris', '--url-prefix', server.url('ok')])
    error = capsys.readouterr().err
    assert 'expected 4551 bytes' in error
    assert [] == os.listdir(here)


def test_download_clear_deletes(here):
    """The raw files go, others stay."""
    for file in raw_files('mnist'):
        (here / file).write_bytes(b'')
    (here / 'other').write_bytes(b'')
    assert 0 == main(['mnist', '--clear'])
    assert ['other'] == os.listdir(here)


def test_download_check_and_clear_exclude_each_other(here, capsys):
    """Nothing is deleted by somebody who wants to look."""
    (here / 'iris.data').write_bytes(WRONG)
    with pytest.raises(SystemExit, match='2'):
        main(['iris', '--check', '--clear'])
    assert 'choose one of --check and --clear' in capsys.readouterr().err
    assert ['iris.data'] == os.listdir()


def test_download_check_tells_what_is_there(here, capsys):
    """Each file is missing, wrong or verified."""
    assert 1 == main(['iris', '--check'])
    assert 'iris.data: missing' in capsys.readouterr().out
    (here / 'iris.data').write_bytes(WRONG)
    assert 1 == main(['iris', '--check', '-d', str(here)])
    assert 'iris.data: wrong: expected 4551 bytes, got 28' in (
        capsys.readouterr().out)


PACKAGE = """
from fuel.downloaders.base import default_downloader

def fill_default(subparser):
    subparser.set_defaults(urls=['http://x.invalid/a'], filenames=['a.bin'])
    return default_downloader

def own(directory, clear):
    print('own', clear)

def fill_own(subparser):
    return own

all_downloaders = (('default', fill_default), ('own', fill_own))
"""


def test_download_other_packages_are_found(here, monkeypatch, capsys):
    """Downloaders of another package get what they got in Fuel 0.2.0, and
    those built on `default_downloader` what came later as well."""
    (here / 'extra_downloads.py').write_text(PACKAGE)
    monkeypatch.syspath_prepend(str(here))
    monkeypatch.setenv('FUEL_EXTRA_DOWNLOADERS', 'extra_downloads')
    assert 0 == main(['own', '--clear'])
    assert 'own True\n' == capsys.readouterr().out
    with serving({'a.bin': b'abc'}) as server:
        assert 0 == main(['default', '-P', server.url('ok'), '-d', 'raw'])
    assert b'abc' == (here / 'raw' / 'a.bin').read_bytes()


def test_download_needs_only_what_it_uses():
    """No HDF5, image or scientific package is imported."""
    code = ('import sys, fuel.bin.fuel_download as f\n'
            'try: f.main(["mnist", "--help"])\n'
            'except SystemExit: pass\n'
            'heavy = {"h5py", "scipy", "PIL", "tables", "zmq"}\n'
            'print(sorted(heavy & set(sys.modules)))')
    status, out, error = run_python('-c', code)
    assert (0, b'') == (status, error)
    assert out.endswith(b'\n[]\n')


def test_download_folder_that_cannot_be_made_is_told_first(here, capsys):
    """The error comes before any request to a server."""
    (here / 'file').write_bytes(b'')
    with pytest.raises(SystemExit, match='2'):
        main(['iris', '-d', 'file/raw'])
    assert ("directory 'file/raw' cannot be made: Not a directory"
            in capsys.readouterr().err)


@pytest.mark.parametrize('option, value, text', [
    ('--url-prefix', '/no/such/folder', 'expected a folder that exists'),
    ('--url-prefix', 'ftp://example.org/', 'such as https://'),
    ('--jobs', '0', 'from 1 on'), ('--attempts', '-1', 'from 1 on'),
    ('--timeout', '-1', 'above 0'), ('--timeout', 'nan', 'above 0')])
def test_download_option_out_of_range_is_explained(here, capsys, option,
                                                   value, text):
    """The error comes before any request."""
    with pytest.raises(SystemExit) as error:
        main(['iris', option, value])
    assert 2 == error.value.code
    assert text in capsys.readouterr().err
