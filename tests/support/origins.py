"""The table of what each format is opened from, as the manual has it."""
import re
from pathlib import Path

import h5py
import numpy
import pytest

import fuel

from support.range_server import serving
from support.tar_files import write_tar

ORIGINS = ('path', 'list', 'pattern', 'folder', 'URL')
# Two files are opened as the answer says; 'one' and 'no' are errors.
TABLE = {
    'HDF5': ('yes', 'rows', 'rows', 'rows', 'yes'),
    'npy': ('yes', 'sources', 'sources', 'sources', 'yes'),
    'npz': ('yes', 'rows', 'rows', 'rows', 'yes'),
    'CSV': ('yes', 'rows', 'rows', 'rows', 'yes'),
    'JSON lines': ('yes', 'rows', 'rows', 'rows', 'yes'),
    'Parquet': ('yes', 'rows', 'rows', 'rows', 'yes'),
    'Arrow': ('yes', 'rows', 'rows', 'rows', 'yes'),
    'tar': ('yes', 'rows', 'rows', 'rows', 'yes'),
    'Zarr': ('yes', 'one', 'one', 'no', 'yes')}
ENDINGS = {'HDF5': 'h5', 'JSON lines': 'jsonl'}
ROWS = [3, 1, 2, 0]
MANUAL = Path(__file__).parents[2] / 'docs' / 'your_data.rst'


def cells(*formats):
    """Return the cells of some formats, for a test that takes three
    arguments."""
    return [pytest.param(name, origin, answer, id=f'{name}-{origin}')
            for name in formats
            for origin, answer in zip(ORIGINS, TABLE[name], strict=True)]


def table_of_manual():
    """Return the table that the manual has."""
    text = MANUAL.read_text('utf-8')
    table = text.partition('.. _your-data-origins:')[2]
    head, *rows = [re.split(' {2,}', line.strip())
                   for line in table.split('\n\n')[1].splitlines()
                   if not line.startswith('=')]
    assert ['format', *ORIGINS] == head
    return {name: tuple(answers) for name, *answers in rows}


def write_hdf5(path):
    """Write a source x."""
    with h5py.File(path, 'w') as file:
        file['x'] = ROWS


WRITERS = {
    'HDF5': write_hdf5,
    'npy': lambda path: numpy.save(path, ROWS),
    'npz': lambda path: numpy.savez(path, x=ROWS),
    'CSV': lambda path: path.write_text(
        '\n'.join(['x', *map(str, ROWS)]) + '\n'),
    'JSON lines': lambda path: path.write_text(
        ''.join(f'{{"x": {row}}}\n' for row in ROWS)),
    'tar': lambda path: write_tar(path, [
        (f'{place}.cls', b'%d' % row) for place, row in enumerate(ROWS)])}


def check_origin(folder, write, name, origin, answer):
    """Open files of a format, and look at what comes of them.

    Parameters
    ----------
    folder : pathlib.Path
    write : callable
        Writes a file or store of four rows at a path.
    name, origin, answer : str
        A cell of the table.

    """
    ending = ENDINGS.get(name, name.lower())
    (folder / 'data').mkdir()
    one, other = [folder / 'data' / f'{stem}.{ending}' for stem in 'ab']
    write(one)
    if answer == 'one':
        assert ROWS == rows_of(name, origin, folder / 'data', [one])
    if answer == 'yes':
        assert ROWS == rows_of(name, origin, folder / 'data', [one])
        return
    write(other)
    found = [one, other]
    if answer == 'rows':
        assert [*ROWS, *ROWS] == rows_of(name, origin, folder / 'data', found)
    elif answer == 'sources':
        assert ('a', 'b') == opened(
            origin, folder / 'data', found, ending).sources
    elif answer == 'one':
        with pytest.raises(ValueError, match='reads one file, got 2; .*: '
                                             'load each by itself'):
            opened(origin, folder / 'data', found, ending)
    else:
        assert answer == 'no'
        with pytest.raises(FileNotFoundError, match=(
                'when the files are named, as in fuel.load'
                '|load it by its own path')):
            opened(origin, folder / 'data', found, ending)


def opened(origin, folder, paths, ending):
    """Return the data set of files from an origin on this machine."""
    return fuel.load({'path': paths[0], 'list': paths, 'folder': folder,
                      'pattern': folder / f'*.{ending}'}[origin])


def rows_of(name, origin, folder, paths):
    """Return the rows of the source of files from any origin; samples of
    archives have keys too."""
    if origin != 'URL':
        dataset = opened(origin, folder, paths, ENDINGS.get(
            name, name.lower()))
        rows, *_ = dataset[:]
        return rows.tolist()
    with serving(folder) as server:
        dataset = fuel.load(server.url(paths[0].name))
        rows, *_ = dataset[:]
        with pytest.raises(ValueError, match='list the URLs'):
            fuel.load(server.url('*'))
        return rows.tolist()
