"""The packages that Fuel requires, and those that each extra brings."""
import configparser
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Packages by the names that they are imported under, where these differ.
IMPORTED_AS = {'PIL': 'pillow', 'progressbar': 'progressbar2',
               'sklearn': 'scikit-learn', 'yaml': 'pyyaml', 'zmq': 'pyzmq'}


@cache
def settings():
    """Return the settings in ``setup.cfg``."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / 'setup.cfg', encoding='utf-8')
    return parser


def lines_of(text):
    """Return the requirements of a setting."""
    return [line.strip() for line in text.splitlines()
            if line.strip() and not line.startswith('#')]


def names_of(requirements):
    """Return the names of packages, without versions and extras."""
    return {re.match(r'[\w.-]+', line)[0].lower() for line in requirements}


def direct():
    """Return the requirements of a plain installation."""
    return lines_of(settings()['options']['install_requires'])


@cache
def extras():
    """Return the requirements of each extra."""
    return {name: lines_of(text) for name, text in settings()[
        'options.extras_require'].items()}


def brought_by(extra):
    """Return packages that those of an extra need themselves."""
    return {'ray': {'pandas', 'pyarrow'}, 'jax': {'absl'}}.get(extra, set())
