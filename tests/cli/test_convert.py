"""The command ``fuel-convert``."""
import os

import h5py
import pytest
import raw_data
from processes import run_python

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
        return {name: value.decode() for name, value in h5file.attrs.items()
                if isinstance(value, bytes)}


def test_convert_iris_writes_provenance(iris):
    """The file tells by what it was made, as bytes."""
    assert 0 == main(['iris'])
    found = attributes('iris.hdf5')
    assert 'fuel-convert iris' == found['fuel_convert_command']
    assert '0.2' == found['fuel_convert_version']
    assert '0.3' == found['h5py_interface_version']
    assert '"iris.data"' in found['fuel_convert_inputs']


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
    """R59, A9: a mistake ends with usage and what to do, not a traceback."""
    with pytest.raises(SystemExit, match='2'):
        main(arguments)
    error = capsys.readouterr().err
    assert 'usage: fuel-convert' in error
    assert text in error


def test_convert_bad_input_leaves_the_old_file(iris, capsys):
    """R57: the previous output is untouched."""
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
        assert (0, b'', b'') == run_python(
            '-m', 'fuel.bin.fuel_convert', 'iris', PYTHONHASHSEED=seed)
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

all_converters = (('own', fill_subparser), ('iris', fill_subparser))
"""


@pytest.mark.parametrize('dataset', ['own', 'iris'])
def test_convert_other_packages_are_found(iris, monkeypatch, dataset):
    """A package named by FUEL_EXTRA_CONVERTERS adds data sets, or takes the
    place of Fuel's own; its files are tagged too."""
    name = f'extra_converters_{dataset}'
    (iris / f'{name}.py').write_text(PACKAGE)
    monkeypatch.syspath_prepend(str(iris))
    monkeypatch.setenv('FUEL_EXTRA_CONVERTERS', name)
    assert 0 == main([dataset])
    assert f'fuel-convert {dataset}' == attributes('own.hdf5')[
        'fuel_convert_command']


def test_convert_package_without_registry_is_named(iris, monkeypatch):
    """A module that lacks `all_converters` is an error that says so."""
    monkeypatch.setenv('FUEL_EXTRA_CONVERTERS', 'colorsys')
    with pytest.raises(ImportError, match="'colorsys'.*'all_converters'"):
        main(['iris'])
