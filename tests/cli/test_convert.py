"""The command ``fuel-convert``."""
import os

import h5py
import pytest
from support import raw_data
from support.processes import run_python

from fuel.bin import fuel_convert, fuel_download, fuel_info
from fuel.converters.staging import convert_staged
from fuel.bin.fuel_convert import main


@pytest.fixture
def iris(tmp_path, monkeypatch):
    """Be in a folder that has ``iris.data``."""
    raw_data.iris(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def attributes(path):
    """Return the attributes of a file's root as text."""
    with h5py.File(path, 'r') as h5file:
        return {name: value for name, value in h5file.attrs.items()
                if isinstance(value, str)}


def test_convert_iris_writes_provenance(iris):
    """The file records the command and versions, as text."""
    assert 0 == main(['iris'])
    found = attributes('iris.hdf5')
    assert 'fuel-convert iris' == found['fuel_convert_command']
    assert '0.2' == found['fuel_convert_version']
    assert '0.3' == found['h5py_interface_version']
    assert '"iris.data"' in found['fuel_convert_inputs']


def test_convert_says_that_a_raw_file_is_not_the_original(iris, capsys):
    """The registry has the size and the digest of the original."""
    raw = iris / 'iris.data'
    text = raw.read_text().rstrip('\n')
    raw.write_text(text)
    assert 0 == main(['iris'])
    assert (f'fuel-convert: not the original iris.data ({len(text)} bytes '
            'instead of 4551): ') in capsys.readouterr().err
    # As many bytes, but others.
    raw.write_text(text + '\n' * (4551 - len(text)))
    assert 0 == main(['iris'])
    assert 'not the original iris.data (another SHA-256): ' in (
        capsys.readouterr().err)


@pytest.mark.parametrize('name, expected', [
    ('a', 'a.hdf5'), ('a.hdf5', 'a.hdf5'), ('a.h5', 'a.h5'),
    ('a.hdf', 'a.hdf'), ('a.b', 'a.b.hdf5')])
def test_convert_output_filename_gets_an_extension(iris, name, expected):
    """The extension is added unless there is one of HDF5."""
    (iris / 'out').mkdir()
    assert 0 == main(['iris', '-o', 'out', '--output_filename', name])
    assert [expected] == os.listdir('out')


def test_convert_layout_options_reach_the_file(iris):
    """Chunks and compression are asked for on the command line."""
    assert 0 == main(['iris', '--chunk-rows', '32', '--compression',
                      'gzip:1'])
    with h5py.File('iris.hdf5', 'r') as h5file:
        assert ((32, 4), 'gzip', 1) == (
            h5file['features'].chunks, h5file['features'].compression,
            h5file['features'].compression_opts)


@pytest.mark.parametrize('arguments, text', [
    ([], 'usage: fuel-convert'),
    (['no-such-set'], 'invalid choice'),
    (['iris', '-o', 'nowhere'], "does not exist: 'nowhere'"),
    (['mnist'], 'Did you forget to run fuel-download mnist?'),
    (['iris', '-d', 'nowhere'], 'Did you forget to run fuel-download iris?'),
    (['iris', '--compression', 'zip'], 'expected lzf, gzip'),
    (['iris', '--chunk-rows', '0'], 'expected a positive number')])
def test_convert_user_mistakes_print_usage(iris, capsys, arguments, text):
    """A mistake ends with usage and what to do, not a traceback."""
    with pytest.raises(SystemExit, match='2'):
        main(arguments)
    error = capsys.readouterr().err
    assert 'usage: fuel-convert' in error
    assert text in error


def test_convert_bad_input_leaves_the_old_file(iris, capsys):
    """The previous output is untouched."""
    assert 0 == main(['iris'])
    before = (iris / 'iris.hdf5').read_bytes()
    (iris / 'iris.data').write_bytes(raw_data.PAGE)
    with pytest.raises(SystemExit, match='1'):
        main(['iris'])
    assert 'web page' in capsys.readouterr().err
    assert before == (iris / 'iris.hdf5').read_bytes()
    assert ['iris.data', 'iris.hdf5'] == sorted(os.listdir(iris))


def test_convert_with_any_hash_seed_gives_equal_bytes(iris):
    """The order of sets of strings does not reach the file."""
    found = set()
    for seed in ('1', '2'):
        assert (0, b'') == run_python(
            '-m', 'fuel.bin.fuel_convert', 'iris', PYTHONHASHSEED=seed)[:2]
        found.add((iris / 'iris.hdf5').read_bytes())
    assert 1 == len(found)


PACKAGE = """
import os
import h5py

def convert_own(directory, output_directory, output_filename='own.hdf5'):
    path = os.path.join(output_directory, output_filename)
    with h5py.File(path, 'w') as h5file:
        h5file['x'] = [1, 2]
    return (path,)

def fill_subparser(subparser):
    return convert_own

all_converters = (('own', fill_subparser),)
"""


def test_convert_other_packages_are_found(iris, monkeypatch, capsys):
    """A package named by FUEL_EXTRA_CONVERTERS adds data sets; its files are
    tagged too, and it chooses their layout."""
    (iris / 'extra_converters_own.py').write_text(PACKAGE)
    monkeypatch.syspath_prepend(str(iris))
    monkeypatch.setenv('FUEL_EXTRA_CONVERTERS', 'extra_converters_own')
    assert 0 == main(['own'])
    assert 'fuel-convert own' == attributes('own.hdf5')[
        'fuel_convert_command']
    with pytest.raises(SystemExit, match='1'):
        main(['own', '--compression', 'lzf'])
    assert 'extra_converters_own chooses the layout' in (
        capsys.readouterr().err)


def test_convert_package_without_registry_is_named(iris, monkeypatch,
                                                   capsys):
    """A module that lacks `all_converters` is an error that says so."""
    monkeypatch.setenv('FUEL_EXTRA_CONVERTERS', 'colorsys')
    with pytest.raises(SystemExit, match='2'):
        main(['iris'])
    assert "'colorsys', named by" in capsys.readouterr().err


def test_convert_missing_package_names_setting_and_origin(monkeypatch,
                                                          capsys):
    """The error is one line, without a traceback."""
    monkeypatch.setenv('FUEL_EXTRA_CONVERTERS', 'no.such')
    with pytest.raises(SystemExit, match='2'):
        main(['my'])
    error = capsys.readouterr().err
    assert 1 == error.count('\n')
    for part in ("fuel-convert: the setting 'extra_converters'",
                 'environment variable FUEL_EXTRA_CONVERTERS', "'no'"):
        assert part in error


def test_convert_to_a_file_name_as_folder_hints_at_r(iris, capsys):
    """An example is ``fuel-convert iris -o foo.hdf5``."""
    with pytest.raises(SystemExit, match='2'):
        main(['iris', '-o', 'foo.hdf5'])
    assert "'foo.hdf5'; use -r for a file name" in capsys.readouterr().err


FAILING = PACKAGE.replace('[1, 2]', '[1, 2]\n        raise ValueError("bad")')


def test_convert_other_package_failing_leaves_the_old_file(
        iris, monkeypatch, capsys):
    """A converter that opens its file in place, as the manual's does."""
    (iris / 'own.hdf5').write_bytes(b'good')
    (iris / 'extra_failing.py').write_text(FAILING)
    monkeypatch.syspath_prepend(str(iris))
    monkeypatch.setenv('FUEL_EXTRA_CONVERTERS', 'extra_failing')
    before = sorted(os.listdir(iris))
    with pytest.raises(SystemExit, match='1'):
        main(['own'])
    assert 'bad' in capsys.readouterr().err
    assert b'good' == (iris / 'own.hdf5').read_bytes()
    assert before == [name for name in sorted(os.listdir(iris))
                      if name != '__pycache__']


def test_convert_other_package_gives_paths_where_files_are(iris):
    """The paths of a foreign converter are final; links are followed."""
    (iris / 'sub').mkdir()
    (iris / 'real.hdf5').write_bytes(b'old')
    os.chmod(iris / 'real.hdf5', 0o640)
    os.symlink(iris / 'real.hdf5', iris / 'sub' / 'a.hdf5')
    seen = []

    def convert(directory, output_directory, output_filename):
        path = os.path.join(output_directory, output_filename)
        for name in (path, str(iris / 'elsewhere')):
            with open(name, 'wb') as file:
                file.write(b'new')
        return path, str(iris / 'elsewhere')

    paths = convert_staged(convert, {
        'directory': '.', 'output_directory': str(iris),
        'output_filename': 'sub/a.hdf5'}, lambda paths: seen.extend(paths))
    assert (str(iris / 'sub' / 'a.hdf5'), str(iris / 'elsewhere')) == paths
    assert os.path.dirname(seen[0]).startswith(str(iris / 'sub' / '.fuel-'))
    assert b'new' == (iris / 'real.hdf5').read_bytes()
    assert 0o640 == os.stat(iris / 'real.hdf5').st_mode & 0o777
    assert ['a.hdf5'] == os.listdir(iris / 'sub')


@pytest.mark.parametrize('content, text', [
    ('no_such_key: 1', "'no_such_key' is not a setting"),
    ('data_path: [', 'cannot read the configuration file')])
@pytest.mark.parametrize('command, arguments', [
    (fuel_convert, ['iris']), (fuel_download, ['iris']),
    (fuel_info, ['iris.hdf5'])])
def test_bad_configuration_file_is_one_line(own_home, capsys, command,
                                            arguments, content, text):
    """Each of the three commands exits with the status of a usage error."""
    (own_home / '.fuelrc').write_text(content)
    with pytest.raises(SystemExit, match='2'):
        command.main(arguments)
    error = capsys.readouterr().err
    assert 1 == error.count('\n')
    assert text in error
    assert '.fuelrc' in error
