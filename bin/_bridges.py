"""Read the environments in which the tests of bridges run.

A folder of tests/interop that has an ``environment.cfg`` is tested by
``bin/test --with FOLDER`` alone, in an environment of its own.  The file has
one section, ``[environment]``; all of its entries may be missing:

extras
   extras of Fuel, one a line
install
   what is installed before Fuel: the arguments of one ``pip install`` a line
sources
   packages whose source distributions are kept in the environment's folder
   ``sources``, one a line: they have programs that the tests run
python
   the only version of Python that all of it runs on, such as 3.11
pages
   pages of the manual whose examples are run with it, one a line
benchmarks
   scripts of benchmarks/ that need it, one a line

A ``constraints.txt`` beside it bounds the versions of all that is installed.
"""
import configparser
import sys
from pathlib import Path
from typing import NamedTuple

FOLDER = 'tests/interop'
FILE = 'environment.cfg'
LISTS = ('extras', 'install', 'sources', 'pages', 'benchmarks')
ENTRIES = {*LISTS, 'python'}


class Bridge(NamedTuple):
    """A bridge to another library, and the environment of its tests."""

    name: str
    folder: Path
    extras: list
    install: list
    sources: list
    pages: list
    benchmarks: list
    python: str

    @property
    def constraints(self):
        """The path of the file with bounds of versions, None without one."""
        path = self.folder / 'constraints.txt'
        return str(path) if path.exists() else None


def find_bridges(root):
    """Return the bridges that are tested by themselves, by name."""
    return {path.parent.name: read_bridge(path)
            for path in sorted(Path(root, FOLDER).glob(f'*/{FILE}'))}


def read_bridge(path):
    """Return the bridge whose environment a file describes."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(path, encoding='utf-8')
    entries = dict(parser['environment'])
    unknown = entries.keys() - ENTRIES
    if unknown:
        sys.exit(f'{path}: unknown entries {sorted(unknown)}, '
                 f'known are {sorted(ENTRIES)}')
    lines = {name: list(filter(None, entries.get(name, '').split('\n')))
             for name in LISTS}
    return Bridge(path.parent.name, path.parent, **lines,
                  python=entries.get('python', ''))


def choose(root, name):
    """Return a bridge; end with the names of all if there is none."""
    bridges = find_bridges(root)
    if name not in bridges:
        sys.exit(f'--with {name}: there is no {FOLDER}/{name}/{FILE}; '
                 f'there is one for {", ".join(bridges)}')
    return bridges[name]
