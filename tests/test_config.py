"""The settings: four places for a value, and their order."""
import contextlib
import copy
import json
import logging
import os
import pickle
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fuel
from fuel import config
from fuel.bin import fuel_convert, fuel_info
from fuel.config_parser import (
    Configuration,
    ConfigurationError,
    extra_downloader_converter,
)
from fuel.datasets import IterableDataset
from fuel.server import Server
from fuel.streams import DataStream, ServerDataStream
from fuel.transformers import MultiProcessing

ROOT = Path(__file__).parents[1]


@pytest.fixture
def write_fuelrc(own_home):
    """Return a function that writes ``~/.fuelrc``."""
    def write(text, path=own_home / '.fuelrc'):
        path.write_text(text, encoding='utf-8')
        return path
    return write


@pytest.fixture
def settings():
    """Return settings like those of a user's package."""
    settings = Configuration()
    settings.add_config('batch_size', int, default='32',
                        env_var='FUEL_TEST_BATCH_SIZE')
    settings.add_config('name', str)
    return settings


def run_python(code, **environment):
    """Run code in an interpreter of its own and return what it prints."""
    return subprocess.run(
        [sys.executable, '-c', code], env={**os.environ, **environment},
        check=True, capture_output=True, text=True, timeout=60).stdout


def test_defaults_without_any_source_are_those_of_the_manual():
    """`floatX` and `data_path` have defaults."""
    os.environ.pop('FUEL_DATA_PATH')
    config = fuel.config
    assert 'float64' == config.floatX
    assert 1 == config.default_seed
    assert '' == config.local_data_path
    assert [] == config.extra_downloaders == config.extra_converters
    path, = config.data_path
    assert os.path.isabs(path)
    assert 'fuel' == os.path.basename(path)


def test_data_path_default_is_never_created(own_home):
    """Naming the default directory leaves the home directory alone."""
    os.environ.pop('FUEL_DATA_PATH')
    before = sorted(own_home.rglob('*'))
    assert fuel.config.data_path[0].startswith(str(own_home))
    assert before == sorted(own_home.rglob('*'))


@pytest.mark.parametrize('text', ['', '\n', '# nothing\n', '---\n'])
def test_file_empty_says_nothing(write_fuelrc, text):
    """An empty file is fine."""
    write_fuelrc(text)
    assert 'float64' == fuel.config.floatX


def test_precedence_each_place_hides_the_next(write_fuelrc, monkeypatch):
    """Assignment, environment, file and default have this order."""
    config = fuel.config
    assert (1, 'default') == (
        config.default_seed, config.origin('default_seed'))
    path = write_fuelrc('default_seed: 2')
    config.load_yaml()
    assert (2, f'file {path}') == (
        config.default_seed, config.origin('default_seed'))
    monkeypatch.setenv('FUEL_DEFAULT_SEED', '3')
    assert (3, 'environment variable FUEL_DEFAULT_SEED') == (
        config.default_seed, config.origin('default_seed'))
    config.default_seed = 4
    assert (4, 'assigned') == (
        config.default_seed, config.origin('default_seed'))
    del config.default_seed
    assert 3 == config.default_seed
    monkeypatch.delenv('FUEL_DEFAULT_SEED')
    assert 2 == config.default_seed


def test_import_reads_no_file(write_fuelrc):
    """A broken file is told of when a setting is read, not before,
    and the YAML parser is not loaded until then."""
    write_fuelrc('{')
    code = ('import sys, fuel\n'
            'print("yaml" in sys.modules)\n'
            'try:\n    fuel.config.floatX\n'
            'except fuel.config_parser.ConfigurationError as error:\n'
            '    print("fuelrc" in str(error))')
    assert 'False\nTrue\n' == run_python(code)


def test_file_is_read_once(write_fuelrc):
    """Later changes of the file need load_yaml."""
    write_fuelrc('floatX: float32')
    assert 'float32' == fuel.config.floatX
    write_fuelrc('floatX: float16')
    assert 'float32' == fuel.config.floatX
    fuel.config.load_yaml()
    assert 'float16' == fuel.config.floatX


def test_file_named_by_fuel_config_replaces_fuelrc(
        write_fuelrc, tmp_path, monkeypatch):
    """FUEL_CONFIG is looked up when the file is read."""
    write_fuelrc('floatX: float16')
    write_fuelrc('default_seed: 5', tmp_path / 'settings.yaml')
    monkeypatch.setenv('FUEL_CONFIG', str(tmp_path / 'settings.yaml'))
    assert ('float64', 5) == (fuel.config.floatX, fuel.config.default_seed)


def test_file_named_by_fuel_config_missing_is_logged(
        tmp_path, monkeypatch, caplog):
    """A mistyped FUEL_CONFIG does not stay unnoticed."""
    monkeypatch.setenv('FUEL_CONFIG', str(tmp_path / 'absent'))
    with caplog.at_level(logging.WARNING):
        assert 'float64' == fuel.config.floatX
    assert str(tmp_path / 'absent') in caplog.text


def test_load_yaml_forgets_the_earlier_file(write_fuelrc):
    """A key that is gone from the file is gone from the settings."""
    write_fuelrc('floatX: float32')
    fuel.config.load_yaml()
    write_fuelrc('default_seed: 3')
    fuel.config.load_yaml()
    assert ('float64', 3) == (fuel.config.floatX, fuel.config.default_seed)


def test_file_value_empty_leaves_the_default(write_fuelrc):
    """``floatX:`` without a value is as if it were not there."""
    write_fuelrc('floatX:\ndefault_seed:\n')
    assert ('float64', 1) == (fuel.config.floatX, fuel.config.default_seed)


@pytest.mark.parametrize('text, message', [
    pytest.param('flaotX: float32', "'flaotX'.*did you mean 'floatX'",
                 id='unknown key'),
    pytest.param('zzz: 1', "'zzz' is not a setting .there are: .*floatX",
                 id='unknown key without a near match'),
    pytest.param('1: 1', '1 is not a setting', id='key is not a name'),
    pytest.param('- floatX', 'content is a list', id='a list'),
    pytest.param('floatX float32', 'content is a str', id='a string'),
    pytest.param('floatX: [', 'cannot read the configuration file',
                 id='no YAML'),
])
def test_file_of_no_use_raises_naming_it(write_fuelrc, text, message):
    """The error names the file and what is wrong, at every reading."""
    path = write_fuelrc(text)
    for _ in range(2):
        with pytest.raises(ConfigurationError, match=message) as raised:
            _ = fuel.config.floatX
        assert str(path) in str(raised.value)


@pytest.mark.parametrize('text, message', [
    ('[' * 100_000, 'more than 65536 char'), ('[' * 60_000, 'nested more'),
    ('data_path: ' + '[' * 11 + ']' * 11, 'nested more than 10 deep'),
    ('{a: ' * 5000, 'nested more'),
    ('data_path: &a [x]\nextra_converters: *a', 'alias .a'),
    ('\n'.join(['a: &a0 [x, x, x, x, x, x, x, x, x]'] + [
        f'b{i}: &a{i} [{", ".join([f"*a{i - 1}"] * 9)}]'
        for i in range(1, 10)]), 'alias .a0'),
    ('default_seed: ' + '9' * 5000, 'default_seed|cannot read'),
    ('default_seed: 2001-99-99', 'cannot read'),
    ('? [a]\n: 1', 'cannot read'), ('!!python/name:os.system : 1', 'cannot'),
    ('data_path: \0', 'cannot read')])
def test_file_that_is_hostile_is_refused_at_once(write_fuelrc, text,
                                                 message):
    """Deep nesting was a RecursionError, and aliases took 20 seconds."""
    write_fuelrc(text)
    begin = time.monotonic()
    with pytest.raises(ConfigurationError, match=message):
        _ = fuel.config.default_seed
    assert time.monotonic() - begin < 5


YAML = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8)


@given(key=st.sampled_from(sorted(fuel.config.config)), value=YAML)
def test_settings_of_any_value_are_read_or_refused(key, value):
    """Any content of the file gives a setting of its type, or a
    `ConfigurationError`."""
    kinds = {'data_path': list, 'local_data_path': str, 'floatX': str,
             'server_journal': str, 'remote_cache_path': str,
             'remote_cache_bytes': (int, type(None)),
             'remote_timeout': float,
             'extra_downloaders': (list, tuple),
             'extra_converters': (list, tuple),
             'chunk_cache_bytes': (int, type(None)),
             'connect_timeout': float, 'reconnect_timeout': float,
             'stall_timeout': float, 'deadlock_timeout': float}
    with contextlib.suppress(AttributeError):
        delattr(fuel.config, key)
    setattr(fuel.config, key, value)
    try:
        found = getattr(fuel.config, key)
    except ConfigurationError:
        return
    finally:
        delattr(fuel.config, key)
    assert isinstance(found, kinds.get(key, int))
    assert not isinstance(found, bool)


@given(content=st.binary(max_size=300) | st.text(
    '[]{}:&*!|>-? \n"\'a1', max_size=100).map(str.encode))
def test_file_of_any_bytes_is_read_or_refused(content):
    """No bytes in the configuration file end in another error."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv('FUEL_CONFIG', file.name)
            with contextlib.suppress(ConfigurationError):
                Configuration().load_yaml()


def test_file_that_is_a_directory_raises(tmp_path, monkeypatch):
    """A file that cannot be opened is an error of the setting."""
    monkeypatch.setenv('FUEL_CONFIG', str(tmp_path))
    with pytest.raises(ConfigurationError, match='cannot read the conf'):
        _ = fuel.config.floatX


def test_file_not_utf8_raises(own_home):
    """Undecodable bytes are told as a setting's error."""
    (own_home / '.fuelrc').write_bytes(b'data_path: "\xff\xfe"')
    with pytest.raises(ConfigurationError, match='cannot read the conf'):
        _ = fuel.config.floatX


def test_load_yaml_failing_changes_nothing(write_fuelrc):
    """A bad file leaves the values of the good one."""
    write_fuelrc('floatX: float32')
    fuel.config.load_yaml()
    write_fuelrc('floatX: float16\nnonsense: 1')
    with pytest.raises(ConfigurationError, match='nonsense'):
        fuel.config.load_yaml()
    assert 'float32' == fuel.config.floatX


def test_setting_unknown_raises_attribute_error():
    """``hasattr`` is False, and the text names the nearest match."""
    assert not hasattr(fuel.config, 'nonsense')
    with pytest.raises(AttributeError, match="did you mean 'floatX'"):
        _ = fuel.config.floatx
    with pytest.raises(AttributeError, match="'nonsense' is not a setting"):
        fuel.config.origin('nonsense')


def test_setting_known_but_unset_raises_configuration_error(settings):
    """``hasattr`` raises for it too, since the setting exists."""
    with pytest.raises(ConfigurationError, match="'name' has no value"):
        hasattr(settings, 'name')
    assert 'not set' == settings.origin('name')


def test_setting_unset_error_names_its_variable(settings):
    """The text says every way to give a value."""
    settings.add_config('place', str, env_var='FUEL_TEST_PLACE')
    with pytest.raises(ConfigurationError, match='FUEL_TEST_PLACE or'):
        _ = settings.place


def test_type_is_applied_when_read(settings, monkeypatch):
    """It is applied to the default, the environment and the assigned value
    alike."""
    assert 32 == settings.batch_size
    monkeypatch.setenv('FUEL_TEST_BATCH_SIZE', '8')
    assert 8 == settings.batch_size
    settings.batch_size = '7'
    assert 7 == settings.batch_size


def test_value_of_no_use_raises_naming_its_origin(monkeypatch):
    """The text names the setting, the value and where it came from."""
    monkeypatch.setenv('FUEL_DEFAULT_SEED', 'abc')
    with pytest.raises(
            ConfigurationError,
            match="'default_seed' cannot be 'abc' .*FUEL_DEFAULT_SEED"):
        _ = fuel.config.default_seed
    fuel.config.floatX = 'flaot32'
    with pytest.raises(ConfigurationError, match="'flaot32' .assigned"):
        _ = fuel.config.floatX
    fuel.config.data_path = 3
    with pytest.raises(ConfigurationError, match='list of paths'):
        _ = fuel.config.data_path


def test_own_settings_read_no_file_by_themselves(settings, write_fuelrc):
    """A configuration made by a user loads the file when told to."""
    write_fuelrc('batch_size: 16')
    assert 32 == settings.batch_size
    settings.load_yaml()
    assert 16 == settings.batch_size


def test_attribute_other_can_be_set_and_deleted(settings):
    """The object takes any other attribute, as before."""
    settings.anything = [1]
    assert [1] == settings.anything
    del settings.anything
    assert not hasattr(settings, 'anything')
    with pytest.raises(AttributeError):
        del settings.anything


def test_delete_setting_without_assignment_raises(settings):
    """There is nothing to take back."""
    with pytest.raises(AttributeError, match='nothing was assigned'):
        del settings.batch_size


def test_config_attribute_shows_what_is_known(write_fuelrc):
    """Other tools look into ``config.config[name]``."""
    write_fuelrc('floatX: float32')
    setting = fuel.config.config['floatX']
    assert ('float64', 'float32', 'FUEL_FLOATX') == (
        setting['default'], setting['yaml'], setting['env_var'])
    assert 'value' not in setting
    fuel.config.floatX = 'float16'
    assert 'float16' == setting['value']


def test_dir_lists_the_settings(settings):
    """Interactive completion finds them."""
    assert {'batch_size', 'name', 'load_yaml'} <= set(dir(settings))


def test_copies_keep_the_settings(settings):
    """Copying and pickling do not trip over missing attributes."""
    settings.batch_size = 5
    for duplicate in (copy.deepcopy(settings), copy.copy(settings),
                      pickle.loads(pickle.dumps(settings))):
        assert 5 == duplicate.batch_size


@pytest.mark.parametrize('value, expected', [
    (f'a{os.pathsep}b', ['a', 'b']), (['a', 'b'], ['a', 'b']),
    (('a', Path('b')), ['a', 'b']), (Path('a'), ['a']), ('a', ['a'])])
def test_data_path_any_form_reads_as_list(value, expected):
    """A string with separators, a path or a list of them."""
    fuel.config.data_path = value
    assert expected == fuel.config.data_path
    fuel.config.data_path = fuel.config.data_path
    assert expected == fuel.config.data_path


def test_data_path_assigned_list_can_be_appended_to():
    """A list that was assigned is the one that is read."""
    fuel.config.data_path = ['a']
    fuel.config.data_path.append('b')
    assert ['a', 'b'] == fuel.config.data_path


def test_data_path_tilde_is_the_home_directory(write_fuelrc, own_home):
    """No shell expands what a file says."""
    os.environ.pop('FUEL_DATA_PATH')
    write_fuelrc(f'data_path: "~/a{os.pathsep}b"\nlocal_data_path: ~/c')
    assert [str(own_home / 'a'), 'b'] == fuel.config.data_path
    assert str(own_home / 'c') == fuel.config.local_data_path


@given(st.lists(st.text('abc./-_ ', min_size=1), min_size=1))
def test_data_path_from_environment_splits_back(paths):
    """Joining and reading gives the same directories."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv('FUEL_DATA_PATH', os.pathsep.join(paths))
        assert paths == fuel.config.data_path


@pytest.mark.parametrize('value', [
    'float32', '<f4', numpy.float32, numpy.dtype('float32')])
def test_float_x_any_form_reads_as_name(value):
    """A data type or its name."""
    fuel.config.floatX = value
    assert 'float32' == fuel.config.floatX


@pytest.mark.parametrize('value, expected', [
    ('a b', ['a', 'b']), ('a  b', ['a', '', 'b']), ('', []), ('a', ['a'])])
def test_extra_modules_string_is_split_on_single_spaces(value, expected):
    """The manual says so of the environment variables."""
    assert expected == extra_downloader_converter(value)


def test_extra_modules_list_comes_back_as_it_is():
    """It is the very same list."""
    modules = ['a', 'b']
    assert extra_downloader_converter(modules) is modules


def test_example_fuelrc_loads(monkeypatch):
    """``.fuelrc.example`` names every setting and each value is of use."""
    os.environ.pop('FUEL_DATA_PATH')
    monkeypatch.setenv('FUEL_CONFIG', str(ROOT / '.fuelrc.example'))
    fuel.config.load_yaml()
    for name in fuel.config.config:
        assert fuel.config.origin(name).startswith('file '), name
        getattr(fuel.config, name)


@pytest.mark.parametrize('key, value', [
    ('default_seed', 1.5), ('default_seed', True), ('default_seed', '1.5'),
    ('default_seed', -1), ('default_seed', 2 ** 32), ('default_seed', None),
    ('num_threads', True), ('num_threads', 2.5), ('num_threads', 0),
    ('floatX', 'int32'), ('floatX', 'complex64'), ('floatX', None),
    ('connect_timeout', True), ('data_path', {'a': 1}),
    ('data_path', ['a', 3]), ('local_data_path', 5),
    ('extra_converters', 5), ('extra_converters', [5]),
    ('shared_memory_bytes', 0), ('shared_memory_bytes', 'much'),
    ('connect_timeout', -1), ('reconnect_timeout', 'soon'),
    ('stall_timeout', float('nan')), ('deadlock_timeout', 'soon'),
    ('deadlock_timeout', True), ('remote_cache_path', 5),
    ('remote_cache_bytes', -1), ('remote_memory_bytes', None),
    ('remote_connections', 0), ('remote_timeout', 'soon')])
def test_value_of_another_kind_is_an_error(key, value):
    """The error comes when the setting is read, and names it."""
    setattr(config, key, value)
    with pytest.raises(ConfigurationError, match=key):
        getattr(config, key)


def test_settings_of_other_processes_are_what_streams_use():
    """Looked up when a stream is made, unless it is told otherwise."""
    config.shared_memory_bytes, config.stall_timeout = '4096', 'inf'
    config.connect_timeout, config.reconnect_timeout = 3, 0
    stream = DataStream(IterableDataset([1]))
    ahead = MultiProcessing(stream)
    assert (4096, float('inf')) == (ahead.max_bytes, ahead.timeout)
    ahead = MultiProcessing(stream, max_bytes=5, timeout=6)
    assert (5, 6) == (ahead.max_bytes, ahead.timeout)
    client = ServerDataStream(('x',))
    assert (3, 0, float('inf')) == (
        client.timeout, client.reconnect, client.stalled)
    client = ServerDataStream(('x',), timeout=1, reconnect=2, stalled=3)
    assert (1, 2, 3) == (client.timeout, client.reconnect, client.stalled)
    with Server(stream, port=0) as server:
        assert server.service.scheduler.pool.budget == 4096


@pytest.fixture
def no_home(monkeypatch):
    """Let nothing be known of a home directory, as for a user that only has
    a number."""
    def unknown(number):
        raise KeyError(number)

    for name in list(os.environ):
        if name == 'HOME' or name.startswith(('XDG_', 'FUEL_')):
            monkeypatch.delenv(name)
    monkeypatch.setattr('pwd.getpwuid', unknown)


@pytest.mark.parametrize('key', [
    'data_path', 'server_journal', 'remote_cache_path'])
def test_folder_in_an_unknown_home_is_an_error_that_says_what_to_set(
        key, no_home):
    """It names the variable; what is set is used."""
    with pytest.raises(ConfigurationError, match=(
            f'FUEL_{key.upper()}.*HOME is not set')) as caught:
        getattr(config, key)
    assert caught.value.__cause__ is None  # no traceback of platformdirs
    setattr(config, key, '/a')
    assert getattr(config, key) in ('/a', ['/a'])
    setattr(config, key, '~/a')
    with pytest.raises(ConfigurationError, match='write the whole path'):
        getattr(config, key)


def test_commands_without_a_home_say_what_to_set(no_home, tmp_path, capsys):
    """The error is one line; a conversion to a named folder needs no home."""
    with pytest.raises(SystemExit, match='2'):
        fuel_convert.main(['--list'])
    error = capsys.readouterr().err
    assert 'FUEL_DATA_PATH' in error
    assert error.count('\n') == 1
    (tmp_path / 'iris.csv').write_text('a,b\n1,2\n3,4\n')
    assert not fuel_convert.main([
        'csv', '-d', str(tmp_path), '-o', str(tmp_path), 'iris.csv'])
    assert 'not in the data path' in capsys.readouterr().err


def test_settings_without_a_home_are_shown(no_home, capsys, monkeypatch):
    """Those in an unknown folder have no value; wrong ones are errors."""
    assert not fuel_info.main(['--config', '--json'])
    found = json.loads(capsys.readouterr().out)
    assert set(config.config) == set(found)
    assert found['data_path'] == {'value': None, 'origin': 'default'}
    assert 'float64' == found['floatX']['value']
    monkeypatch.setenv('FUEL_NUM_THREADS', 'many')
    with pytest.raises(SystemExit, match='2'):
        fuel_info.main(['--config'])
    assert 'num_threads' in capsys.readouterr().err
