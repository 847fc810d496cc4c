"""The command ``fuel``, and what all commands have in common."""
import json
import os
import shutil
import socket
import subprocess
import textwrap

import h5py
import numpy
import pytest
from PIL import Image
from support import raw_data
from support.processes import run_python

import fuel
from fuel import config
from fuel.bin import (
    fuel_convert, fuel_download, fuel_info, fuel_main, fuel_server)
from fuel.bin.listing import about
from fuel.bin.preview import choose_rows, read_rows
from fuel.datasets import H5PYDataset, Iris
from fuel.version import version

COMMANDS = {'download': fuel_download, 'convert': fuel_convert,
            'info': fuel_info, 'server': fuel_server}


def run(main, arguments):
    """Return the exit status of a command, however it ends."""
    try:
        return main(arguments)
    except SystemExit as ending:
        return ending.code


@pytest.mark.parametrize('name', COMMANDS)
def test_subcommand_is_the_command(name, capsys):
    """Help, options and status are the same."""
    assert 0 == run(fuel_main.main, [name, '--help'])
    shown = capsys.readouterr().out
    assert 0 == run(COMMANDS[name].main, ['--help'])
    assert shown == capsys.readouterr().out
    assert f'usage: fuel-{name}' in shown
    assert f'examples:\n  fuel-{name} ' in shown
    assert 2 == run(fuel_main.main, [name, '--no-such-option'])


@pytest.mark.parametrize('main', [
    fuel_main.main, *(module.main for module in COMMANDS.values())])
def test_version_is_printed(main, capsys):
    """Each command prints it."""
    assert 0 == run(main, ['--version'])
    assert f'Fuel {version}\n' == capsys.readouterr().out


def test_package_is_run_as_the_command():
    """The module runs without a script on the path."""
    assert (0, f'Fuel {version}\n'.encode(), b'') == run_python(
        '-m', 'fuel', '--version')
    status, _, errors = run_python('-m', 'fuel', 'lst')
    assert 2 == status
    assert b"did you mean 'list'" in errors


def test_help_names_each_subcommand(capsys):
    """The help lists every subcommand by its name."""
    assert 0 == fuel_main.main(['--help'])
    shown = capsys.readouterr().out
    for name in [*COMMANDS, 'list', 'completion']:
        assert f'\n  {name} ' in shown


@pytest.mark.parametrize('main, arguments, meant', [
    (fuel_main.main, ['convrt'], 'convert'),
    (fuel_convert.main, ['minst'], 'mnist'),
    (fuel_convert.main, ['iris', '--compresion', 'lzf'], '--compression'),
    (fuel_download.main, ['iris', '--urlprefix', 'x'], '--url-prefix'),
    (fuel_info.main, ['--cnfig'], '--config'),
    (fuel_server.main, ['a:b', '--sharing', 'splt'], 'split'),
    (fuel_server.main, ['os:getcwdd', '--no-restart'], 'getcwd')])
def test_typo_is_met_with_the_name_that_was_meant(
        main, arguments, meant, capsys, monkeypatch, tmp_path):
    """The name is in the last words of the error."""
    monkeypatch.chdir(tmp_path)
    assert 2 == run(main, arguments)
    assert f'did you mean {meant!r}?' in capsys.readouterr().err


@pytest.mark.parametrize('arguments', [[], ['']])
def test_no_command_is_a_mistake(arguments, capsys):
    """The error has the names of all commands."""
    assert 2 == fuel_main.main(arguments)
    assert 'choose from download, convert' in capsys.readouterr().err


@pytest.mark.parametrize('shell', fuel_main.SHELLS)
def test_completion_knows_commands_and_data_sets(shell, capsys):
    """The completion is a script for the shell."""
    assert 0 == fuel_main.main(['completion', shell])
    shown = capsys.readouterr().out
    for word in ('download', 'cifar10', 'image_folder', 'fuel-convert',
                 'url-prefix', 'no-journal'):
        assert word in shown
    assert 2 == fuel_main.main(['completion', 'tcsh'])


@pytest.mark.parametrize('words, expected', [
    (['fuel', 'inf'], ['info']), (['fuel', 'download', 'cif'],
                                  ['cifar10', 'cifar100']),
    (['fuel-convert', 'image'], ['image_folder']),
    (['fuel', 'convert', 'svhn', '--outp'],
     ['--output-directory', '--output_filename', '--output-filename']),
    (['fuel-convert', 'image_folder', '--strat'], ['--stratify']),
    (['fuel-convert', 'mnist', '--strat'], []),
    (['fuel-convert', '--li'], ['--list']),
    (['fuel', 'info', 'a.hdf5', '--prev'], ['--preview'])])
def test_completion_completes_in_bash(words, expected):
    """The script itself is run."""
    bash = shutil.which('bash')
    assert bash
    script = fuel_main.completion_script('bash', ['download', 'info'])
    program = (f'{script}\nCOMP_WORDS=({" ".join(words)}); '
               f'COMP_CWORD={len(words) - 1}; _fuel; echo "${{COMPREPLY[@]}}"')
    done = subprocess.run([bash, '-c', program], capture_output=True,
                          text=True, check=True, timeout=60)
    assert expected == done.stdout.split()


def test_list_describes_and_groups(capsys):
    """Built-in sets first, each with a line about it."""
    assert 0 == run(fuel_main.main, ['list'])
    shown = capsys.readouterr().out
    built_in, own = shown.split('From files of your own:')
    assert built_in.startswith('Built-in:\n')
    assert ('\n    handwritten digits: 60,000 + 10,000 images of 1 x 28 x 28, '
            '10 classes\n') in built_in
    assert '\n    photographs, one folder for each class\n' in own
    assert 'mnist ' not in own


def test_every_data_set_is_described():
    """None is a name alone."""
    for module, package in ((fuel_convert, 'converters'),
                            (fuel_download, 'downloaders')):
        for name in module.registered(f'fuel.{package}', package):
            assert about(name), name


def test_convert_says_what_it_wrote_and_who_finds_it(
        tmp_path, monkeypatch, capsys):
    """The last line of the error stream says it; the output stays empty."""
    raw_data.iris(tmp_path)
    monkeypatch.chdir(tmp_path)
    config.data_path = [str(tmp_path / 'data' / 'fuel')]
    assert 0 == fuel_convert.main(['iris'])
    shown = capsys.readouterr()
    last = shown.err.splitlines()[-1]
    assert '' == shown.out
    assert 'iris.hdf5 (not in the data path: ' in last
    assert f'FUEL_DATA_PATH={tmp_path}, or convert with --install' in last
    config.data_path = [str(tmp_path)]
    assert 0 == fuel_convert.main(['iris'])
    assert 'where data sets find it' in capsys.readouterr().err


def test_convert_says_how_to_open_data_of_ones_own(
        tmp_path, monkeypatch, capsys):
    """No class looks for them in the data path."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'a.csv').write_text('x,y\n1,2\n3,4\n')
    assert 0 == fuel_convert.main(['csv', 'a.csv'])
    path = str(tmp_path / 'a.hdf5')
    assert f'open it by its path: fuel.load({path!r})' in (
        capsys.readouterr().err)
    assert 2 == len(fuel.load(path))


def test_install_converts_into_the_data_path(tmp_path, monkeypatch, capsys):
    """The folder is made, and the data set finds the file."""
    raw_data.iris(tmp_path)
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / 'data' / 'fuel'
    config.data_path = [str(folder)]
    assert 0 == fuel_convert.main(['iris', '--install'])
    assert ['iris.hdf5'] == os.listdir(folder)
    assert f'wrote {folder / "iris.hdf5"} (in the data path' in (
        capsys.readouterr().err)
    assert 150 == Iris(('all',)).num_examples
    assert 2 == run(fuel_convert.main, ['iris', '--install', '-o', '.'])


@pytest.mark.parametrize('option', ['--install', '--output-directory=data'])
def test_table_does_not_replace_a_built_in_data_set(
        option, tmp_path, monkeypatch, capsys):
    """The name of a built-in set is refused, installed or not."""
    raw_data.iris(tmp_path)
    monkeypatch.chdir(tmp_path)
    os.mkdir('data')
    config.data_path = ['data']
    (tmp_path / 'iris.csv').write_text('x,y\n1,2\n3,4\n')
    for step in ('missing', 'installed'):
        capsys.readouterr()
        assert 1 == run(fuel_convert.main, ['csv', 'iris.csv', option])
        shown = capsys.readouterr().err
        assert 'choose another name with -r other.hdf5' in shown, step
        assert 0 == fuel_convert.main(['iris', '--install'])
    assert "made by 'fuel-convert iris'" in shown
    assert 150 == Iris(('all',)).num_examples
    assert 0 == fuel_convert.main(['csv', 'iris.csv', option, '-r', 'other'])
    assert 2 == len(fuel.load('other', split='train'))


def test_installed_table_is_replaced_by_its_own_converter_alone(
        tmp_path, monkeypatch, capsys):
    """A table that has changed is converted again."""
    monkeypatch.chdir(tmp_path)
    config.data_path = ['data']
    (tmp_path / 'a.csv').write_text('x,y\n1,2\n3,4\n')
    assert 0 == fuel_convert.main(['csv', 'a.csv', '--install'])
    (tmp_path / 'a.csv').write_text('x,y\n1,2\n3,4\n5,6\n')
    assert 0 == fuel_convert.main(['csv', 'a.csv', '--install'])
    numpy.save('x.npy', numpy.zeros(4))
    capsys.readouterr()
    assert 1 == run(fuel_convert.main, [
        'npy', 'features=x.npy', '-r', 'a', '--install'])
    assert "a.hdf5 was made by 'fuel-convert csv'" in capsys.readouterr().err
    assert 3 == len(fuel.load('a'))


def test_install_without_a_place_is_a_mistake(tmp_path, monkeypatch, capsys):
    """A file is where the folder should be."""
    raw_data.iris(tmp_path)
    monkeypatch.chdir(tmp_path)
    config.data_path = [str(tmp_path / 'iris.data' / 'fuel')]
    assert 2 == run(fuel_convert.main, ['iris', '--install'])
    assert 'of the data path cannot be made' in capsys.readouterr().err


def test_info_of_several_files(tmp_path, capsys, monkeypatch):
    """They follow one another; JSON has a list."""
    names = [str(tmp_path / name) for name in ('a.hdf5', 'b.hdf5')]
    for name in names:
        with h5py.File(name, 'w') as h5file:
            h5file['x'] = numpy.zeros((5, 2))
    assert 0 == fuel_info.main(names)
    shown = capsys.readouterr().out
    assert shown.index('for a.hdf5') < shown.index('for b.hdf5')
    assert 2 == shown.count('none, which H5PYDataset needs')
    program = textwrap.dedent(
        shown[shown.index('    with h5py'):shown.index('Sources')])
    monkeypatch.chdir(tmp_path)
    exec(program, {'h5py': h5py, 'H5PYDataset': H5PYDataset})
    assert 5 == len(fuel.load('a.hdf5'))
    assert 0 == fuel_info.main([*names, '--json'])
    assert ['a.hdf5', 'b.hdf5'] == [
        facts['file'] for facts in json.loads(capsys.readouterr().out)]
    assert 2 == run(fuel_info.main, [*names, '--preview', 'a.png'])
    assert 2 == run(fuel_info.main, [])
    assert 'required: filename' in capsys.readouterr().err


def test_info_prints_settings_with_their_origin(monkeypatch, capsys):
    """It prints all, also those without a value."""
    monkeypatch.setenv('FUEL_NUM_THREADS', '3')
    config.default_seed = 7
    assert 0 == fuel_info.main(['--config'])
    lines = {line.split()[0]: line
             for line in capsys.readouterr().out.splitlines()}
    assert set(config.config) == set(lines)
    assert lines['num_threads'].split()[1:] == [
        '3', 'environment', 'variable', 'FUEL_NUM_THREADS']
    assert lines['default_seed'].split()[1:] == ['7', 'assigned']
    assert 0 == fuel_info.main(['--config', '--json'])
    found = json.loads(capsys.readouterr().out)
    assert {'value': 7, 'origin': 'assigned'} == found['default_seed']


STREAM = ['support.process_pipelines:build']


def test_server_on_a_busy_port_is_one_line(capsys):
    """The line says what to do about it."""
    with socket.socket() as taken:
        taken.bind(('127.0.0.1', 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert 1 == fuel_server.main([*STREAM, '--port', port,
                                      '--no-journal'])
    error = capsys.readouterr().err
    assert 1 == len(error.splitlines())
    assert 'Address already in use' in error
    assert 'choose another --port, 0 for a free one' in error


@pytest.mark.parametrize('arguments, status, text', [
    (['--status', 'foo'], 1, "cannot connect to 'foo'"),
    (['--status', 'http://localhost:1'], 1, 'such as tcp://localhost:5557'),
    (['--status', 'tcp://127.0.0.1:1', '--curve', 'nowhere'], 1,
     'make them with fuel-server keys'),
    ([*STREAM, '--curve', 'nowhere', '--no-restart'], 1,
     'make them with fuel-server keys'),
    ([*STREAM, '--port', '65536'], 2, 'expected a port, 0 to 65535')])
def test_server_bad_option_prints_usage(arguments, status, text, capsys):
    """Wrong addresses, keys and ports."""
    assert status == run(fuel_server.main, arguments)
    assert text in capsys.readouterr().err.splitlines()[-1]


def test_download_without_a_network_is_one_message(
        tmp_path, monkeypatch, capsys):
    """It is for all files of a data set: each host once, and what to do."""
    with socket.socket() as closed:
        closed.bind(('127.0.0.1', 0))
        proxy = f'http://127.0.0.1:{closed.getsockname()[1]}'
        for name in ('http_proxy', 'https_proxy'):
            monkeypatch.setenv(name, proxy)
        monkeypatch.delenv('no_proxy', raising=False)
        assert 1 == fuel_download.main(
            ['mnist', '-d', str(tmp_path), '--attempts', '1'])
    error = capsys.readouterr().err
    assert 1 == error.count('could not be downloaded')
    assert '4 files could not be downloaded' in error
    assert 1 == error.count('storage.googleapis.com')
    assert '--url-prefix' in error
    assert 'train-labels-idx1-ubyte.gz' in error
    assert [] == list(tmp_path.iterdir())


@pytest.fixture
def sorted_file(tmp_path):
    """Return a file whose images are sorted by class."""
    path = tmp_path / 'sorted.hdf5'
    targets = numpy.repeat([0, 1, 2], [50, 30, 4]).astype('uint8')
    with h5py.File(path, 'w') as h5file:
        h5file['features'] = numpy.arange(
            84, dtype='uint8').repeat(64).reshape(84, 1, 8, 8)
        h5file['targets'] = targets[:, None]
        h5file['targets'].attrs['class_names'] = json.dumps(
            ['cat', 'dog', 'owl'])
    return path


def test_preview_spreads_over_classes(sorted_file, tmp_path):
    """Equally many of each as far as there are, with their names."""
    with h5py.File(sorted_file) as h5file:
        rows, captions = choose_rows(h5file, 'features', 40)
        assert ['cat'] * 13 + ['dog'] * 13 + ['owl'] * 4 == captions
        assert rows == sorted(rows)
        assert (0, 49, 50, 79) == (rows[0], rows[12], rows[13], rows[25])
        assert rows[::-1] == [
            int(example.flat[0]) for example in read_rows(
                h5file['features'], rows[::-1])]
        spread = numpy.linspace(0, 83, 40).astype(int).tolist()
        assert (spread, []) == choose_rows(h5file, 'targets', 40)
        assert ([0, 83], []) == choose_rows(h5file, 'features', 2)
    picture = str(tmp_path / 'a.png')
    assert 0 == fuel_info.main([str(sorted_file), '--preview', picture])
    with Image.open(picture) as image:
        assert image.height > 3 * (72 + 12)
