"""Data sets by their names, found or made."""
import ast
import hashlib
import multiprocessing
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import h5py
import pytest
from numpy.testing import assert_array_equal
from support import raw_data
from support.faulty_server import serving

import fuel.datasets
from fuel.datasets import CalTech101Silhouettes, H5PYDataset, MNIST, SVHN
from fuel.downloaders import registry
from fuel.downloaders.base import DownloadError
from fuel.utils.extensions import NotingParser


@pytest.fixture
def data_path(tmp_path):
    """An empty data path."""
    fuel.config.data_path = str(tmp_path / 'data')
    return tmp_path / 'data'


@pytest.fixture
def publish(tmp_path, monkeypatch):
    """Write raw files of a data set, and let the registry know them."""
    def write(name, **kwargs):
        folder = tmp_path / 'raw'
        folder.mkdir()
        expected = getattr(raw_data, name)(folder, **kwargs)
        facts = {**registry.registered()}
        facts[name] = {**facts[name], 'files': [{
            'name': path.name, 'size': path.stat().st_size, 'urls': [
                f'https://example.invalid/{path.name}'],
            'sha256': hashlib.sha256(path.read_bytes()).hexdigest()}
            for path in sorted(folder.iterdir())]}
        monkeypatch.setattr(registry, 'registered', lambda: facts)
        return folder, expected
    return write


def test_load_downloads_converts_and_opens(data_path, publish, capsys):
    """A second call finds the file; each step has one bar, and no raw file is
    left."""
    folder, expected = publish('mnist')
    with pytest.raises(FileNotFoundError, match='download=True'):
        fuel.load('mnist', split='train')
    dataset = fuel.load('mnist', split='train', download=True,
                        url_prefix=str(folder))
    assert type(dataset) is MNIST
    assert_array_equal(expected['train']['features'], dataset[:][0])
    assert ('mnist.hdf5',) == tuple(
        name for name in os.listdir(data_path) if not name.startswith('.'))
    assert [] == [name for name in os.listdir(data_path)
                  if name.startswith('.raw')]
    printed = capsys.readouterr().out
    assert 1 == printed.count('Downloading 4 files: 0')
    test = fuel.load('MNIST', 'test', sources=('targets',))
    assert_array_equal(expected['test']['targets'], test[:][0])
    both = fuel.load('mnist', ('train', 'test'))
    assert len(dataset) + len(test) == len(both)
    with h5py.File(data_path / 'mnist.hdf5') as file:
        assert 'fuel-convert mnist' == file.attrs['fuel_convert_command']


def test_load_with_a_format(data_path, publish):
    """The argument of the class is that of the commands."""
    folder, expected = publish('caltech101_silhouettes', size=28)
    dataset = fuel.load('caltech101-silhouettes', 'valid', download=True,
                        url_prefix=str(folder))
    assert type(dataset) is CalTech101Silhouettes
    assert_array_equal(expected['valid']['features'], dataset[:][0])
    with pytest.raises(TypeError, match='pass which_format=...'):
        fuel.load('emnist', 'train')
    with pytest.raises(FileNotFoundError, match='emnist_letters.hdf5'):
        fuel.load('emnist', 'train', which_format='letters')
    with pytest.raises(ValueError, match='invalid choice'):
        fuel.load('emnist', 'train', which_format='x', download=True)


def test_name_of_a_file_that_a_class_replaces_is_taken(
        data_path, monkeypatch):
    """A replaced name holds where arguments complete the name otherwise."""
    monkeypatch.setattr(SVHN, 'filename', 'streets.hdf5')
    monkeypatch.setattr(MNIST, 'filename', 'digits.hdf5')
    with pytest.raises(FileNotFoundError, match=r"'streets\.hdf5' was not"):
        fuel.load('svhn', 'train', which_format=2)
    with pytest.raises(FileNotFoundError, match=r"'digits\.hdf5' was not"):
        fuel.load('mnist', 'train')


def test_positional_arguments_of_a_command_are_noted():
    """They are in the order in which they are given, and in groups too."""
    parser = NotingParser(exit_on_error=False)
    parser.add_argument('which_format', type=int)
    parser.add_argument('--quiet', action='store_true')
    group = parser.add_argument_group('of the size')
    group.add_argument('size', type=int)
    group.add_argument('--scale')
    assert ['which_format', 'size'] == parser.positional
    assert 28 == parser.parse_args(['2', '28', '--scale', '3']).size


def test_wrong_raw_file_is_not_converted(data_path, publish):
    """Nothing that looks like the data set is left."""
    folder, _ = publish('mnist')
    path = folder / 't10k-images-idx3-ubyte.gz'
    path.write_bytes(path.read_bytes()[:-1] + b'x')
    with pytest.raises(DownloadError, match='sha256|bytes'):
        fuel.load('mnist', 'train', download=True, url_prefix=str(folder))
    assert not (data_path / 'mnist.hdf5').exists()


def _load(data_path, url, results):
    fuel.config.data_path = data_path
    dataset = fuel.load('mnist', 'train', download=True, url_prefix=url)
    results.put(len(dataset))


def test_several_processes_download_once(data_path, publish):
    """The others wait, and find the file."""
    folder, _ = publish('mnist')
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    context = multiprocessing.get_context('fork')
    results = context.Queue()
    with serving(files) as server:
        processes = [context.Process(target=_load, args=(
            str(data_path), server.url('ok'), results)) for _ in range(3)]
        for process in processes:
            process.start()
        assert [12] * 3 == [results.get(timeout=60) for _ in processes]
        for process in processes:
            process.join(30)
        assert len(files) == len(server.requests)


def write(path):
    """Write a file of two splits."""
    with h5py.File(path, 'w') as file:
        file['x'] = [4, 5, 6]
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'x': (0, 2)}, 'test': {'x': (2, 3)}})


def test_load_of_a_users_file(data_path):
    """It is loaded by its path, or by its name in the data path."""
    data_path.mkdir()
    write(data_path / 'mine.hdf5')
    for name in (data_path / 'mine.hdf5', 'mine', 'mine.hdf5'):
        dataset = fuel.load(name, 'test')
        assert type(dataset) is H5PYDataset
        assert (6,) == dataset[0]
    with pytest.raises(ValueError, match=r"\('train', 'test'\): name one"):
        fuel.load('mine')
    with pytest.raises(ValueError, match="'valid'"):
        fuel.load('mine', 'valid')
    with pytest.raises(TypeError, match="did you mean 'load_in_memory'"):
        fuel.load('mine', 'train', load_in_memry=True)


def test_file_of_a_user_has_any_name_in_the_data_path(data_path):
    """Capitals, spaces and hyphens count; else it is found as data sets
    are."""
    data_path.mkdir()
    for name in 'My-Data 1', 'other':
        write(data_path / f'{name}.hdf5')
    for name in 'My-Data 1', 'My-Data 1.hdf5', 'Other', b'other':
        assert (6,) == fuel.load(name, 'test')[0]


@pytest.mark.parametrize('folder', ['none/', './', '../', '/none/', '~/'])
@pytest.mark.parametrize('name', ['mine', 'mine.hdf5', 'mnist', 'MNIST.hdf5'])
def test_path_with_a_folder_is_not_that_of_a_file_in_the_data_path(
        folder, name, data_path):
    """Another file of the name is not opened in silence."""
    data_path.mkdir()
    for one in 'mine', 'mnist':
        write(data_path / f'{one}.hdf5')
    with pytest.raises(FileNotFoundError, match='there is no '):
        fuel.load(f'{folder}{name}', 'test')


def test_which_sets_names_the_splits_of_fuels_own_files(tmp_path):
    """As `split` does."""
    path = tmp_path / 'mine.hdf5'
    write(path)
    for names in ('test',), ['test']:
        assert (6,) == fuel.load(path, which_sets=names)[0]


def test_bytes_are_not_the_name_of_a_split(data_path):
    """The error has what was passed, and not its first byte."""
    with pytest.raises(TypeError, match="name of a split.*got b'train'"):
        fuel.load('mnist', b'train')


def test_load_of_a_misspelt_path_names_the_nearest_file(
        data_path, tmp_path, monkeypatch):
    """The error has the folder that was searched, as it was given."""
    (tmp_path / 'mine').mkdir()
    monkeypatch.chdir(tmp_path / 'mine')
    write(tmp_path / 'mine' / 'digits.hdf5')
    for folder in ('', '../mine/', f'{tmp_path}/mine/'):
        text = (f"there is no file '{folder}digit.hdf5', .* path, .*: "
                f"did you mean '{folder}digits.hdf5'")
        with pytest.raises(FileNotFoundError, match=text):
            fuel.load(f'{folder}digit.hdf5', 'train')
    with pytest.raises(FileNotFoundError, match="data path, '[^']*'$"):
        fuel.load('none/x.hdf5')


def test_load_of_a_misspelt_folder_names_the_nearest(
        data_path, tmp_path, monkeypatch):
    """The error is that of a file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'gray_scott').mkdir()
    for folder in ('', f'{tmp_path}/'):
        with pytest.raises(FileNotFoundError, match=(
                f"did you mean the folder '{folder}gray_scott'")):
            fuel.load(f'{folder}gray_scot')


def test_load_of_the_file_of_a_data_set_says_how_to_get_it(
        data_path, tmp_path, monkeypatch):
    """It does as for its name; a folder is not the data path."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=re.escape(
            "fuel.load('mnist', split='train', download=True) downloads")):
        fuel.load('mnist.hdf5', 'train')
    with pytest.raises(FileNotFoundError, match="data path, '[^']*'$"):
        fuel.load('mine/mnist.hdf5', 'train')


@pytest.mark.parametrize('arguments, kwargs, call', [
    (('mnist',), {}, "fuel.load('mnist', split='train', download=True)"),
    (('iris',), {}, "fuel.load('iris', split='all', download=True)"),
    (('omniglot', 'train'), {},
     "fuel.load('omniglot', split='background', download=True)"),
    (('mnist', ['train', 'test']), {},
     "fuel.load('mnist', split=['train', 'test'], download=True)"),
    (('mnist', 'all'), {}, "fuel.load('mnist', split='all', download=True)"),
    (('emnist',), {'which_format': 'letters', 'sources': ('targets',)},
     "split='train', which_format='letters', download=True)"),
    (('caltech101_silhouettes', 'test'), {'size': 16},
     "silhouettes', split='test', size=16, download=True)"),
    (('one_billion_word',), {},
     '"fuel-convert one_billion_word" make what fuel.datasets.OneBillionWord'),
    (('csv',), {}, "'csv' is not a data set that Fuel can download")])
def test_remedy_for_a_missing_data_set_is_a_call_that_works(
        data_path, arguments, kwargs, call):
    """It names a split that there is, and the arguments that choose a
    file."""
    with pytest.raises(FileNotFoundError, match=re.escape(call)):
        fuel.load(*arguments, **kwargs)


@pytest.mark.parametrize('name, text', [
    ('mnst', "did you mean 'mnist'"), ('qqqq', 'fuel-download --list')])
def test_unknown_name(data_path, name, text):
    """The text has the nearest one, or says where all are."""
    for download in (False, True):
        with pytest.raises(FileNotFoundError, match=text):
            fuel.load(name, 'train', download=download)


def test_split_is_given_once():
    """`which_sets` is the same argument."""
    with pytest.raises(TypeError, match=r"split='train' or which_sets=\('a'"):
        fuel.load('mnist', 'train', which_sets=('a',))


def test_data_set_without_an_address(data_path):
    """A set that only its owners distribute is not downloaded."""
    with pytest.raises(Exception, match='no public address'):
        fuel.load('ilsvrc2012', 'train', download=True)


def test_load_costs_nothing_before_it_is_used():
    """`import fuel` loads no data sets; completion shows the name."""
    code = ('import sys, fuel; print("load" in dir(fuel), any(name in '
            'sys.modules for name in ("h5py", "fuel.loading", "requests")))')
    printed = subprocess.run([sys.executable, '-c', code], check=True,
                             capture_output=True, text=True, timeout=60)
    assert 'True False' == printed.stdout.strip()


def test_pipelines_load_no_package_that_only_some_need():
    """Packages for notebooks, writing, processes and buckets are imported by
    the functions that use them."""
    code = ('import h5py, numpy, sys; before = set(sys.modules); '
            'import fuel.datasets, fuel.schemes, fuel.streams, '
            'fuel.transformers; print(*sorted({"argparse", '
            '"asyncio", "bz2", "fsspec", "hashlib", "html", '
            '"multiprocessing", "numpy.random", "pathlib", "requests", '
            '"ssl", "sysconfig", "tempfile", "yaml", "zmq"}'
            ' & set(sys.modules) - before))')
    printed = subprocess.run([sys.executable, '-c', code], check=True,
                             capture_output=True, text=True, timeout=60)
    assert '' == printed.stdout.strip()


@pytest.mark.parametrize('name', ['fuel', 'fuel.datasets',
                                  'fuel.transformers'])
def test_completion_shows_what_is_loaded_on_demand_and_no_imports(name):
    """They are tested in a fresh interpreter; each name can be read."""
    code = (f'import {name} as module\nfor one in dir(module):\n'
            '    getattr(module, one); print(one)')
    shown = set(subprocess.run(
        [sys.executable, '-c', code], capture_output=True, text=True,
        check=True, timeout=60).stdout.split())
    assert set(import_module(name).__all__) <= shown
    assert not {'Any', 'TYPE_CHECKING', 'import_module', 'plans'} & shown
    expected = {'fuel': 'load', 'fuel.datasets': 'vocabulary',
                'fuel.transformers': 'sequences'}
    assert expected[name] in shown


def test_registry_knows_the_class_of_each_data_set():
    """`fuel.datasets` has each of them, in its own module."""
    for name in registry.dataset_names():
        module, _, cls = registry.dataset_facts(name)['class'].partition('.')
        found = getattr(fuel.datasets, cls)
        assert f'fuel.datasets.{module}' == found.__module__
        assert cls in fuel.datasets.__all__
        assert cls in dir(fuel.datasets)
        assert getattr(fuel.datasets, module) is sys.modules[found.__module__]
    with pytest.raises(AttributeError, match="no attribute 'NIST'"):
        _ = fuel.datasets.NIST


def test_type_checkers_see_each_class_of_the_registry():
    """They read the imports that are made for them alone."""
    tree = ast.parse(Path(fuel.datasets.__file__).read_text('utf-8'))
    guard, = (node for node in tree.body if isinstance(node, ast.If))
    seen = {(node.module.rpartition('.')[2], alias.asname)
            for node in guard.body for alias in node.names}
    assert seen >= {tuple(facts['class'].split('.'))
                    for facts in registry.registered().values()}


@pytest.mark.parametrize('kind', ['downloaders', 'converters'])
def test_package_has_each_data_set_of_the_registry(kind):
    """Its modules are loaded when they are asked for."""
    package = import_module(f'fuel.{kind}')
    fillers = dict(getattr(package, f'all_{kind}'))
    assert set(registry.dataset_names()) <= set(fillers)
    assert sorted(fillers) == list(fillers)
    assert package.mnist.fill_subparser is not None
    assert {f'all_{kind}', 'mnist'} <= set(dir(package))
    with pytest.raises(AttributeError, match="no attribute 'nist'"):
        _ = package.nist
