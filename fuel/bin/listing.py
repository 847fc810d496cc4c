"""The list of data sets: how large, under which terms, and there or not."""
import argparse
import os
from collections.abc import Iterable, Sequence

from fuel import config
from fuel.downloaders.registry import dataset_facts, dataset_names, raw_files

__all__ = ['add_list_option']

HEADER = ('DATASET', 'RAW FILES', 'HERE', 'CONVERTED', 'TERMS')


def add_list_option(parser: argparse.ArgumentParser,
                    datasets: Iterable[str]) -> None:
    """Add ``--list`` to the parser of a command."""
    parser.add_argument(
        '--list', action=_List, nargs=0, datasets=tuple(datasets),
        dest=argparse.SUPPRESS, default=argparse.SUPPRESS,
        help='list the data sets: size of the raw files, whether they are in '
        'the current folder, whether converted files are in the data path, '
        'and terms of use')


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
        rows = [HEADER, *(_row(name) for name in self._datasets)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            print('  '.join(cell.ljust(width) for cell, width in
                            zip(row, widths, strict=True)).rstrip())
        parser.exit(0)


def _row(name: str) -> tuple[str, ...]:
    if name not in dataset_names():
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
    """Return a number of bytes as people write it.

    Examples
    --------
    >>> human_size(4551)
    '4.6 kB'
    """
    if size < 1000:
        return f'{size:.0f} B'
    units = ['kB', 'MB', 'GB', 'TB']
    size /= 1000
    while size >= 1000 and len(units) > 1:
        size /= 1000
        units.pop(0)
    return f'{size:.1f} {units[0]}'
