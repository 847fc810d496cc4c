"""The settings of Fuel, which :doc:`/configuration` lists.

Each setting has up to four values; the first of these that exists is used:

1. the value that the program assigned, ``fuel.config.floatX = 'float32'``;
2. the environment variable, ``FUEL_FLOATX=float32``;
3. the configuration file, ``~/.fuelrc`` or the file that the environment
   variable ``FUEL_CONFIG`` names, ``floatX: float32``;
4. the default.

The file is read when a setting is first needed, not on import.
"""
from __future__ import annotations

import logging
import os
import reprlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from fuel.exceptions import ConfigurationError
from fuel.setting_types import (
    at_least, cache_folder_or_off, cores, directory_or_off,
    extra_downloader_converter, float_type, multiple_paths_parser,
    path_parser, required, seconds, seconds_or_off)
from fuel.suggestions import did_you_mean

__all__ = ['Configuration', 'ConfigurationError', 'config',
           'extra_downloader_converter', 'multiple_paths_parser']

logger = logging.getLogger(__name__)

DEFAULT_FILE = '~/.fuelrc'
# Limits of a configuration file: characters, and levels of nested lists.
MAX_FILE = 1 << 16
MAX_DEPTH = 10

# From this similarity on, a name is probably a misspelt setting.
NEARLY = .85

# Stands for "no value"; None may be a value.
NOT_SET = object()


class Configuration:
    """A set of settings, each with up to four values.

    Settings are read and assigned as attributes. Deleting a setting removes
    the assigned value. Other attributes may be assigned, read and deleted as
    on an ordinary object.

    Parameters
    ----------
    load_on_first_use : bool, optional
        Whether to read the configuration file when a setting first needs it.
        By default, only `load_yaml` reads it.

    Examples
    --------
    >>> settings = Configuration()
    >>> settings.add_config('batch_size', int, default='32')
    >>> settings.batch_size
    32
    >>> settings.batch_size = 64
    >>> settings.batch_size, settings.origin('batch_size')
    (64, 'assigned')
    """

    _settings: dict[str, dict[str, Any]]
    _must_load: bool
    _file: str

    def __init__(self, load_on_first_use: bool = False) -> None:
        self.__dict__.update(
            _settings={}, _must_load=load_on_first_use, _file='')

    @property
    def config(self) -> dict[str, dict[str, Any]]:
        """A dict from the name of each setting to its type and values.

        The values are dicts with ``type`` and, if they exist, ``default``,
        ``yaml``, ``env_var`` and ``value`` (the assigned value)."""
        self._load_if_needed()
        return self._settings

    def add_config(self, key: str, type_: Callable[[Any], Any],
                   default: object = NOT_SET,
                   env_var: str | None = None) -> None:
        """Add a setting.

        Parameters
        ----------
        key : str
            Its name: the attribute, and the key in the file.
        type_ : callable
            A function such as ``int``, which is called with the assigned or
            found value and returns the setting's value. It is called when the
            setting is read, also for the default.
        default : object, optional
            Used when nothing else gives a value. Without it, reading the
            setting before it has a value is an error.
        env_var : str, optional
            The environment variable that overrides the file. It is looked
            up whenever the setting is read.
        """
        setting: dict[str, Any] = {'type': type_}
        if env_var is not None:
            setting['env_var'] = env_var
        if default is not NOT_SET:
            setting['default'] = default
        self._settings[key] = setting

    def load_yaml(self) -> None:
        """Read the configuration file.

        This is the file that the environment variable ``FUEL_CONFIG`` names
        now, or ``~/.fuelrc`` without the variable. Its values replace those of
        a file that was read before. A missing file counts as an empty one.

        Raises
        ------
        ConfigurationError
            If the file cannot be read, is not a YAML mapping, or has a key
            that is not a setting. Nothing is changed then.
        """
        path = os.path.expanduser(
            os.environ.get('FUEL_CONFIG') or DEFAULT_FILE)
        values = _read_mapping(path)
        for key in values:
            if key not in self._settings:
                raise ConfigurationError(
                    f'{path}: {key!r} is not a setting'
                    f'{self._suggestion(str(key))}; remove or correct it')
        for key, setting in self._settings.items():
            # An empty value, `data_path:`, leaves the setting alone.
            if values.get(key) is None:
                setting.pop('yaml', None)
            else:
                setting['yaml'] = values[key]
        self.__dict__.update(_must_load=False, _file=path)

    def origin(self, key: str) -> str:
        """Return the source of a setting's value.

        Parameters
        ----------
        key : str
            The name of a setting.

        Returns
        -------
        str
            ``'assigned'``, ``'environment variable FUEL_...'``, ``'file
            ...'``, ``'default'`` or ``'not set'``.

        Raises
        ------
        AttributeError
            If there is no such setting.
        """
        return self._find(key)[1]

    def __getattr__(self, key: str) -> Any:
        # Python calls this only for names that are not ordinary attributes.
        value, origin = self._find(key)
        setting = self._settings[key]
        if value is NOT_SET:
            raise ConfigurationError(self._how_to_set(key))
        try:
            return setting['type'](value)
        except RuntimeError:
            raise ConfigurationError(
                f'{self._how_to_set(key)}. Its default is in the home '
                f'directory, which is not known here: HOME is not set, and '
                f'the user has no name') from None
        except (TypeError, ValueError, OverflowError) as error:
            raise ConfigurationError(
                f'the setting {key!r} cannot be {reprlib.repr(value)} '
                f'({origin}): {error}') from error

    def __setattr__(self, key: str, value: object) -> None:
        if key in self._settings:
            self._settings[key]['value'] = value
        else:
            hint = did_you_mean(key, self._settings, '{}', NEARLY)
            if hint and not key.startswith('_'):
                warnings.warn(
                    f'config.{key} is not a setting, so assigning it changes '
                    f'nothing in Fuel: {hint}', stacklevel=2)
            super().__setattr__(key, value)

    def __delattr__(self, key: str) -> None:
        if key not in self._settings:
            super().__delattr__(key)
        elif self._settings[key].pop('value', NOT_SET) is NOT_SET:
            raise AttributeError(
                f'nothing was assigned to the setting {key!r}, so there is '
                f'nothing to delete')

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._settings})

    def __repr__(self) -> str:
        # Do not read the configuration file.
        found = []
        for key, setting in vars(self).get('_settings', {}).items():
            env_var = setting.get('env_var')
            if 'value' in setting:
                found.append(f'{key}={setting["value"]!r:.40} (assigned)')
            elif env_var is not None and env_var in os.environ:
                found.append(f'{key}={os.environ[env_var]!r:.40} ({env_var})')
        rest = len(vars(self).get('_settings', {})) - len(found)
        return f'<{type(self).__name__}: ' + ', '.join([
            *found, f'{rest} settings from the file or by default>'])

    def _find(self, key: str) -> tuple[Any, str]:
        """Return a setting's value, before its type is applied, and the
        value's origin."""
        # The first test serves copy and pickle, which look for special
        # methods on an object that has no attributes yet.
        if key == '_settings' or key not in self._settings:
            settings = '' if key == '_settings' else self._suggestion(key)
            raise AttributeError(f'{key!r} is not a setting{settings}')
        setting = self._settings[key]
        if 'value' in setting:
            return setting['value'], 'assigned'
        env_var = setting.get('env_var')
        if env_var is not None and env_var in os.environ:
            return os.environ[env_var], f'environment variable {env_var}'
        self._load_if_needed()
        if 'yaml' in setting:
            return setting['yaml'], f'file {self._file}'
        if 'default' in setting:
            return setting['default'], 'default'
        return NOT_SET, 'not set'

    def _load_if_needed(self) -> None:
        if self._must_load:
            self.load_yaml()

    def _suggestion(self, key: str) -> str:
        """Return the part of an error text that names the nearest match."""
        names = ', '.join(sorted(self._settings))
        return (did_you_mean(key, self._settings, ' ({})')
                or (f' (there are: {names})' if names else ''))

    def _how_to_set(self, key: str) -> str:
        """Return the error text for a setting that has no value."""
        env_var = self._settings[key].get('env_var')
        variable = f', set the environment variable {env_var}' if (
            env_var) else ''
        return (f'the setting {key!r} has no value and no default: add it '
                f'to {DEFAULT_FILE}{variable} or assign config.{key}')


def _read_mapping(path: str) -> Mapping[Any, Any]:
    """Return the mapping in a YAML file; an empty one if it is missing or
    empty."""
    if not os.path.exists(path):
        if os.environ.get('FUEL_CONFIG'):
            logger.warning(
                'FUEL_CONFIG names %s, which does not exist', path)
        return {}
    try:
        with open(path, encoding='utf-8') as file:
            values = _parse(file.read(MAX_FILE + 1))
    except (OSError, ValueError, TypeError, OverflowError) as error:
        raise ConfigurationError(
            f'cannot read the configuration file {path}: {error}'
        ) from error
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        raise ConfigurationError(
            f'{path} should hold lines such as "floatX: float32", but its '
            f'content is a {type(values).__name__}: {reprlib.repr(values)}')
    return values


def _parse(text: str) -> object:
    """Parse a YAML text; raise ValueError for one that would take long to
    parse."""
    import yaml
    if len(text) > MAX_FILE:
        raise ValueError(f'it has more than {MAX_FILE} characters')
    depth = 0
    try:
        # Events are read lazily: a hundred thousand brackets would take hours.
        for event in yaml.parse(text, yaml.SafeLoader):
            depth += (isinstance(event, yaml.CollectionStartEvent)
                      - isinstance(event, yaml.CollectionEndEvent))
            if depth > MAX_DEPTH:
                raise ValueError(f'it is nested more than {MAX_DEPTH} deep')
            if isinstance(event, yaml.AliasEvent):
                raise ValueError('write the value in the place of the alias '
                                 f'*{event.anchor}')
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(error) from error


#: The settings of this process.
config = Configuration(load_on_first_use=True)

for _key, _type, _default in (
        ('data_path', multiple_paths_parser, None),
        ('local_data_path', path_parser, ''),
        ('default_seed', at_least(0, 'a seed', required, 2 ** 32 - 1), 1),
        ('floatX', float_type, 'float64'),
        ('num_threads', at_least(1, 'thread is', cores), None),
        ('extra_downloaders', extra_downloader_converter, []),
        ('extra_converters', extra_downloader_converter, []),
        ('chunk_cache_bytes', at_least(0, 'bytes are', lambda: None), None),
        ('shared_memory_bytes', at_least(1, 'byte is', required), 2 ** 30),
        ('connect_timeout', seconds, 60.),
        ('reconnect_timeout', seconds, 30.),
        ('stall_timeout', seconds, 600.),
        ('deadlock_timeout', seconds_or_off, 30.),
        ('server_journal', directory_or_off, None),
        ('remote_cache_path', cache_folder_or_off, None),
        ('remote_cache_bytes', at_least(0, 'bytes are', lambda: None), None),
        ('remote_memory_bytes', at_least(0, 'bytes are', required), 2 ** 28),
        ('remote_connections', at_least(1, 'connection is', required), 16),
        ('remote_timeout', seconds, 120.)):
    config.add_config(_key, _type, _default, f'FUEL_{_key.upper()}')
