"""The data sets that commands know: Fuel's own, and other packages'."""
from fuel import config
from fuel.exceptions import ConfigurationError
from fuel.utils.extensions import Filler, find_datasets


def registered(package: str, kind: str) -> dict[str, Filler]:
    """Return the data sets that a command knows, by the settings as they are
    now; `kind` is ``'downloaders'`` or ``'converters'``."""
    config.load_yaml()
    setting = f'extra_{kind}'
    try:
        return find_datasets(package, getattr(config, setting),
                             f'all_{kind}')
    except ImportError as error:
        raise ConfigurationError(
            f'the setting {setting!r} ({config.origin(setting)}) names '
            f'modules that cannot be used: {error}') from error
