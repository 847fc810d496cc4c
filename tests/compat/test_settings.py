"""Settings, as programs written for Fuel 0.2.0 use them."""
import os

import pytest

import fuel
from fuel.config_parser import (
    Configuration,
    ConfigurationError,
    extra_downloader_converter,
)


def test_extra_modules_are_split_at_single_spaces():
    """A list is returned as it is."""
    assert ['a.b', 'c'] == extra_downloader_converter('a.b c')
    assert ['a.b', 'c'] == extra_downloader_converter(['a.b', 'c'])


def test_a_default_is_converted_when_it_is_read():
    """The type is applied at each read, to the default too."""
    calls = []

    def kind(value):
        calls.append(value)
        return int(value)

    settings = Configuration()
    settings.add_config('number', kind, default='1')
    assert [] == calls
    assert 1 == settings.number == settings.number
    assert ['1', '1'] == calls


def test_an_assigned_value_wins_over_environment_file_and_default(
        monkeypatch, tmp_path):
    """Then the environment, read at the time, then the file."""
    settings = Configuration()
    settings.add_config('number', int, default=1, env_var='OUR_NUMBER')
    assert 1 == settings.number
    path = tmp_path / 'rc'
    path.write_text('number: 2\n')
    monkeypatch.setenv('FUEL_CONFIG', str(path))
    settings.load_yaml()
    assert 2 == settings.number
    monkeypatch.setenv('OUR_NUMBER', '3')
    assert 3 == settings.number
    settings.number = '4'
    assert 4 == settings.number
    monkeypatch.setenv('OUR_NUMBER', '5')
    assert 4 == settings.number


def test_load_yaml_reads_the_file_that_is_named_at_that_moment(
        monkeypatch, tmp_path):
    """`FUEL_CONFIG` is looked up by the call."""
    settings = Configuration()
    settings.add_config('word', str, default='none')
    for word in ('one', 'two'):
        path = tmp_path / word
        path.write_text(f'word: {word}\n')
        monkeypatch.setenv('FUEL_CONFIG', str(path))
        settings.load_yaml()
        assert word == settings.word


def test_unknown_and_unset_settings_raise_different_errors():
    """`hasattr` hides the first, and must not hide the second."""
    settings = Configuration()
    settings.add_config('known', str)
    with pytest.raises(AttributeError):
        settings.unknown
    assert not hasattr(settings, 'unknown')
    with pytest.raises(ConfigurationError) as caught:
        settings.known
    assert not isinstance(caught.value, AttributeError)
    with pytest.raises(ConfigurationError):
        hasattr(settings, 'known')


def test_any_other_attribute_can_be_set_and_deleted():
    """Scripts keep things of their own there."""
    fuel.config.of_my_own = [1]
    assert [1] == fuel.config.of_my_own
    del fuel.config.of_my_own
    assert not hasattr(fuel.config, 'of_my_own')


def test_data_path_reads_as_a_list_and_takes_strings_and_lists():
    """The list that was read before can be set again."""
    fuel.config.data_path = os.pathsep.join(['/one', '/two'])
    before = fuel.config.data_path
    assert ['/one', '/two'] == before
    fuel.config.data_path = ['/three']
    assert ['/three'] == fuel.config.data_path
    fuel.config.data_path = before
    assert ['/one', '/two'] == fuel.config.data_path


def test_defaults_are_those_of_the_manual(monkeypatch):
    """`floatX` and `data_path` had none, which nobody can lean on."""
    monkeypatch.delenv('FUEL_DATA_PATH')
    assert 1 == fuel.config.default_seed
    assert '' == fuel.config.local_data_path
    assert 'float64' == fuel.config.floatX
    assert isinstance(fuel.config.data_path, list)
    assert [] == list(fuel.config.extra_downloaders)
    assert [] == list(fuel.config.extra_converters)


@pytest.mark.parametrize('name, variable, text, value', [
    ('data_path', 'FUEL_DATA_PATH', f'/a{os.pathsep}/b', ['/a', '/b']),
    ('local_data_path', 'FUEL_LOCAL_DATA_PATH', '/local', '/local'),
    ('floatX', 'FUEL_FLOATX', 'float32', 'float32'),
    ('default_seed', 'FUEL_DEFAULT_SEED', '7', 7),
    ('extra_downloaders', 'FUEL_EXTRA_DOWNLOADERS', 'a b.c', ['a', 'b.c']),
    ('extra_converters', 'FUEL_EXTRA_CONVERTERS', 'd', ['d'])])
def test_each_setting_has_its_environment_variable(
        monkeypatch, name, variable, text, value):
    """The names that are in people's shell scripts."""
    monkeypatch.setenv(variable, text)
    assert value == getattr(fuel.config, name)


def test_settings_can_be_listed_by_name():
    """Some tools look into `config.config`."""
    assert {'data_path', 'default_seed', 'floatX', 'local_data_path',
            'extra_downloaders', 'extra_converters'} <= set(
                fuel.config.config)
    assert fuel.config.config['default_seed']
