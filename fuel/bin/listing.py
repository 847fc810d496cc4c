"""The data sets that commands know, and the list of their sizes, their terms
of use, and their files on disk."""
import argparse
import os
from collections.abc import Callable, Iterable, Mapping, Sequence

from fuel import config
from fuel.bin.commands import CommandParser
from fuel.converters import OWN
from fuel.downloaders.registry import dataset_facts, dataset_names, raw_files
from fuel.exceptions import ConfigurationError
from fuel.utils.extensions import Filler, find_datasets
from fuel.utils.printing import aligned

HEADER = ('DATASET', 'RAW FILES', 'HERE', 'CONVERTED', 'TERMS')


def registered(package: str, kind: str) -> dict[str, Filler]:
    """Return a mapping from the data sets that a command knows, with the
    current settings, to the functions that fill their parsers.

    `kind`: ``'downloaders'`` or ``'converters'``.
    """
    config.load_yaml()
    setting = f'extra_{kind}'
    try:
        return find_datasets(package, getattr(config, setting),
                             f'all_{kind}')
    except ImportError as error:
        raise ConfigurationError(
            f'the setting {setting!r} ({config.origin(setting)}) names '
            f'modules that cannot be used: {error}') from error


def add_datasets(parser: CommandParser, datasets: Mapping[str, Filler],
                 verb: str,
                 add_arguments: Callable[[CommandParser], None]) -> None:
    """Add the option ``--list``, and a subcommand with the common arguments
    for each data set."""
    parser.add_argument(
        '--list', action=_List, nargs=0, datasets=tuple(datasets),
        dest=argparse.SUPPRESS, default=argparse.SUPPRESS,
        help='list the data sets: size of the raw files, whether they are in '
        'the current folder, whether converted files are in the data path, '
        'and terms of use')
    subparsers = parser.add_subparsers(
        dest='which_dataset', metavar='DATASET', required=True,
        help='one of ' + ', '.join(datasets))
    for name, fill_subparser in datasets.items():
        subparser = subparsers.add_parser(
            name, help=about(name) or f'{verb} {name}',
            description=about(name) or None)
        add_arguments(subparser)
        subparser.set_defaults(func=fill_subparser(subparser))


class _List(argparse.Action):
    """Prints the list and ends the command."""

    def __init__(self, option_strings: Sequence[str], dest: str,
                 datasets: Iterable[str], default: str, nargs: int,
                 help: str) -> None:  # noqa: A002 - argparse names it
        super().__init__(option_strings, dest, nargs, default=default,
                         help=help)
        self._datasets = datasets

    def __call__(self, parser: argparse.ArgumentParser,
                 *args: object) -> None:
        rows = {name: _row(name) for name in self._datasets}
        header, *lines = aligned([HEADER, *rows.values()])
        line_of = dict(zip(rows, lines, strict=True))
        for title, names in _grouped(rows).items():
            print(f'{title}:\n{header}')
            for name in names:
                print(line_of[name])
                if text := about(name):
                    print(f'    {text}')
        parser.exit(0)


def about(name: str) -> str:
    """Return a description of a data set in one line; empty if unknown."""
    if name in dataset_names():
        return str(dataset_facts(name)['about'])
    return OWN.get(name, '')


def _grouped(names: Iterable[str]) -> dict[str, list[str]]:
    """Return a mapping from the titles of groups to the names of their data
    sets."""
    groups: dict[str, list[str]] = {
        'Built-in': [], 'From files of your own': [],
        'From other packages': []}
    for name in names:
        groups['Built-in' if name in dataset_names()
               else 'From files of your own' if name in OWN
               else 'From other packages'].append(name)
    return {title: names for title, names in groups.items() if names}


def _row(name: str) -> tuple[str, ...]:
    if name not in dataset_names() or not raw_files(name):
        return name, *['-'] * (len(HEADER) - 1)
    facts = dataset_facts(name)
    return (name, _raw_size(name), _here(name), _converted(facts['outputs']),
            facts['terms'] or 'unknown')


def _raw_size(name: str) -> str:
    sizes = [file.size for file in raw_files(name)]
    known = sum(size or 0 for size in sizes)
    if not known:
        return 'unknown'
    return human_size(known) + (' or more' if None in sizes else '')


def _here(name: str) -> str:
    files = raw_files(name)
    there = sum(os.path.isfile(file) for file in files)
    return f'{there} of {len(files)}' if there else 'no'


def _converted(outputs: Iterable[str]) -> str:
    found = [name for name in outputs
             if any(os.path.exists(os.path.join(folder, name))
                    for folder in [os.curdir, *config.data_path])]
    return ', '.join(found) or 'no'


def human_size(size: float) -> str:
    """Return a number of bytes as text, with a unit.

    Examples
    --------
    >>> human_size(4551)
    '4.6 kB'
    """
    if size < 1000:
        return f'{size:.0f} B'
    for unit in ('kB', 'MB', 'GB'):
        size /= 1000
        if size < 1000:
            return f'{size:.1f} {unit}'
    return f'{size / 1000:.1f} TB'
