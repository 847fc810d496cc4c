"""The data sets that commands know: Fuel's own, and other packages'."""
import sys
from typing import NoReturn

from fuel import config
from fuel.exceptions import ConfigurationError
from fuel.utils.extensions import Filler, find_datasets


def _give_up(program: str, error: Exception) -> NoReturn:
    text = ' '.join(str(error).split())
    print(f'{program}: {text}', file=sys.stderr)
    sys.exit(2)


def check_settings(program: str) -> None:
    """Read the configuration file; end the command if it is invalid."""
    try:
        config.load_yaml()
    except ConfigurationError as error:
        _give_up(program, error)


def registered(program: str, package: str, kind: str) -> dict[str, Filler]:
    """Return the data sets that a command knows; end it if a package is
    missing. `kind` is ``'downloaders'`` or ``'converters'``."""
    check_settings(program)
    setting = f'extra_{kind}'
    try:
        return find_datasets(package, getattr(config, setting),
                             f'all_{kind}')
    except ConfigurationError as error:
        _give_up(program, error)
    except ImportError as error:
        _give_up(program, ImportError(
            f'the setting {setting!r} ({config.origin(setting)}) names '
            f'modules that cannot be used: {error}'))
