"""Recognise cells (``.h5ad`` of all versions of AnnData) and recordings of
brains (NWB and torch_brain)."""
from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy

from fuel.datasets.columns.base import FileColumn
from fuel.datasets.columns.categorical import Categorical
from fuel.datasets.columns.csr import ARRAYS, CSR
from fuel.datasets.columns.ragged import Ragged
from fuel.datasets.columns.rows import Rows
from fuel.layouts.call import Call, LeftOutSources, calls_by_length
from fuel.layouts.seen import Seen, SeenFile
from fuel.utils.hdf5_errors import damaged

ANNDATA_LEFT_OUT = (
    "left out of 'obs', since their type does not have a row for each "
    'cell')
NWB_SPIKES = 'units/spike_times'
TORCH_BRAIN_SERIES = ('IrregularTimeSeries', 'RegularTimeSeries')


def recognise_anndata(seen: Seen) -> Call | None:
    """Recognise AnnData by the attribute of the root; in old files, by the
    tables of cells and genes."""
    file = seen.files[0]
    if file.text('encoding-type') != 'anndata' and not all(
            _is_table(file, path) for path in ('obs', 'var')):
        return None
    columns = {**_matrices(file, ['X']), **_table(file, 'obs')}
    chosen = tuple(columns)
    left_out = [name for name in file.texts('column-order', 'obs') if not any(
        f'{path}/'.startswith(f'obs/{name}/') for path in chosen)]
    # Further columns of the file, which are read only if they are chosen.
    columns |= _index(file)
    columns |= _matrices(file, [
        *[f'layers/{name}' for name in file.names('layers')],
        # The last name is that of files before AnnData 0.7.
        'raw/X', 'raw.X'])
    columns |= _embeddings(file)
    if len(seen.files) > 1:
        _check_genes(seen)
    return Call(columns, sources=chosen if chosen and (
        len(columns) > len(chosen)) else None,
        independent_rows='cells have no order',
        notes=tuple(_notes(columns, left_out)))


def _notes(columns: Collection[str], left_out: Sequence[str],
           ) -> Iterator[str]:
    """Yield notes on data that a user may expect but no source has."""
    if 'X' not in columns:
        others = [path for path in columns
                  if path.startswith(('layers/', 'raw'))]
        yield 'the file has no matrix X' + (
            f'; sources=({others[0]!r}, ...) chooses another' if others
            else '')
    if left_out:
        yield LeftOutSources(
            f'{ANNDATA_LEFT_OUT}: {", ".join(map(repr, left_out))}',
            [*left_out, *[f'obs/{name}' for name in left_out]])


def _is_table(file: SeenFile, path: str) -> bool:
    """Return whether a path is of a table in the form that is used in files
    without an attribute of the root."""
    array = file.array(path)
    return (file.text('encoding-type', path) == 'dataframe'
            or (array is not None and array.dtype.names is not None))


def _matrices(file: SeenFile, paths: list[str]) -> dict[str, FileColumn]:
    """Return the columns of dense and sparse matrices."""
    return {path: CSR(path) if file.is_group(path) else Rows(path)
            for path in paths
            if file.is_group(path) or file.array(path) is not None}


def _index(file: SeenFile) -> dict[str, FileColumn]:
    """Return a column of the names of the cells."""
    array = file.array('obs')
    if array is not None:
        return {'obs/index': Rows('obs', field='index')} if (
            'index' in (array.dtype.names or ())) else {}
    path = _index_of(file, 'obs')
    return {path: Rows(path)} if file.array(path) is not None else {}


def _index_of(file: SeenFile, table: str) -> str:
    """Return the path of the names of the rows of a table."""
    path = f'{table}/{file.text("_index", table) or "_index"}'
    return f'{path}/values' if file.is_group(path) else path


def _table(file: SeenFile, path: str) -> dict[str, FileColumn]:
    """Return a column for each column of a table, in its order."""
    array = file.array(path)
    if array is not None:
        return _fields(file, path, array.dtype)
    columns: dict[str, FileColumn] = {}
    for name in file.texts('column-order', path):
        column = f'{path}/{name}'
        if file.node(column) is None:
            raise damaged(
                f'{file.path!r}: {path!r} should have the column {name!r}, '
                f"which its attribute 'column-order' names, and has not")
        names = set(file.names(column))
        if {'values', 'mask'} <= names:
            # A nullable column.
            for part in ('values', 'mask'):
                columns[f'{column}/{part}'] = Rows(f'{column}/{part}')
        elif {'codes', 'categories'} <= names or (
                file.attribute('categories', column) is not None):
            columns[column] = Categorical(column)
        elif file.array(column) is not None:
            columns[column] = Rows(column)
    return columns


def _fields(file: SeenFile, path: str,
            dtype: numpy.dtype) -> dict[str, FileColumn]:
    """Return a column for each field of a table of a compound type."""
    return {f'{path}/{name}': Categorical(f'{path}/{name}')
            if file.node(f'uns/{name}_categories') is not None
            else Rows(path, field=name)
            for name in dtype.names or () if name != 'index'}


def _embeddings(file: SeenFile) -> dict[str, FileColumn]:
    """Return the columns below ``obsm``."""
    array = file.array('obsm')
    if array is not None:
        return _fields(file, 'obsm', array.dtype)
    columns: dict[str, FileColumn] = {}
    for name in file.names('obsm'):
        path = f'obsm/{name}'
        is_matrix = not file.is_group(path) or (
            set(ARRAYS) <= set(file.names(path)))
        columns |= (_matrices(file, [path]) if is_matrix
                    else _table(file, path))
    return columns


def _check_genes(seen: Seen) -> None:
    """Refuse files whose genes are not the same in the same order."""
    first = _genes(seen.files[0])
    for file in seen.files[1:]:
        genes = _genes(file)
        if not numpy.array_equal(first, genes):
            raise ValueError(
                f'{file.path!r} has other genes, or another order of them, '
                f'than {seen.files[0].path!r} has: a column of X would not '
                f'mean the same; write files of equal genes, such as '
                f'adata[:, genes]')


def _genes(file: SeenFile) -> numpy.ndarray:
    """Return the names of the genes."""
    array = file.array('var')
    if array is not None:
        table: numpy.ndarray = file.read('var')
        return table[(array.dtype.names or ('index',))[0]]
    names: numpy.ndarray = file.read(_index_of(file, 'var'))
    return names


def recognise_nwb(seen: Seen) -> Sequence[Call] | None:
    """Recognise NWB by the version of the format.

    An example is a sample; in a file of spikes alone, it is a unit. If series
    have different clocks, there is a call for each clock.
    """
    file = seen.files[0]
    if file.attribute('nwb_version') is None:
        return None
    columns: dict[int, dict[str, FileColumn]] = {}
    for array in file.arrays():
        group, _, name = array.path.rpartition('/')
        count = file.length(f'{group}/data')
        if count is not None and name in ('data', 'timestamps') and (
                _is_series(file, group)):
            columns.setdefault(count, {})[array.path] = Rows(array.path)
    if not columns and file.length(f'{NWB_SPIKES}_index') is not None:
        return [Call({NWB_SPIKES: Ragged(
            NWB_SPIKES, ends=f'{NWB_SPIKES}_index')})]
    return calls_by_length(columns)


def _is_series(file: SeenFile, group: str) -> bool:
    """Return whether a group is a series in time."""
    return (file.length(f'{group}/timestamps') is not None
            or file.node(f'{group}/starting_time') is not None)


def recognise_torch_brain(seen: Seen) -> Sequence[Call] | None:
    """Recognise a torch_brain file by the attributes of its root and its
    groups.

    An example is a sample. If series have different clocks, there is a call
    for each clock.
    """
    file = seen.files[0]
    if file.text('object') != 'Data':
        return None
    counts: dict[str, int] = {}
    columns: dict[int, dict[str, FileColumn]] = {}
    for array in file.arrays():
        group, _, name = array.path.rpartition('/')
        if file.text('object', group or '/') in TORCH_BRAIN_SERIES and (
                name != 'timestamp_indices_1s'):
            # The arrays of a series belong together, whatever their lengths.
            count = counts.setdefault(group, array.shape[0])
            columns.setdefault(count, {})[array.path] = Rows(array.path)
    return calls_by_length(columns)
