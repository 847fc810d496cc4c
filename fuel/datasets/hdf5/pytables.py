"""Data sets in HDF5 files that PyTables reads."""
from __future__ import annotations

import os
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy
from numpy.typing import NDArray

from fuel.datasets.base import Dataset
from fuel.datasets.rows import as_rows, is_batch, own
from fuel.kernels import take
from fuel.suggestions import did_you_mean
from fuel.typing import AxisLabels, Batch
from fuel.utils import do_not_pickle_attributes
from fuel.utils.checks import in_order
from fuel.utils.extras import from_extra

if TYPE_CHECKING:
    import tables


class _Default(str):
    """A default that differs in type from an equal name passed by the
    caller."""

    __slots__ = ()


_DEFAULT_NODE = _Default('Data')


@do_not_pickle_attributes('nodes', 'h5file')
class PytablesDataset(Dataset):
    """A data set in an HDF5 file, read with PyTables.

    PyTables is the extra ``pytables``.

    Parameters
    ----------
    path : str
        The file.
    sources : tuple of str
        Names of the sources, and of the nodes below `data_node` unless
        `sources_in_file` is given.
    start : int, optional
        First row to use. Defaults to 0.
    stop : int, optional
        Row after the last one to use. Defaults to None: to the end.
    data_node : str, optional
        Group that holds the nodes; ``'/'`` is the root. Defaults to
        ``'Data'``, and to the root if that group lacks one of the nodes.
    sources_in_file : tuple of str, optional
        Names of the nodes, in the order of `sources`.
    axis_labels : dict, optional
        Maps sources to tuples of strings. Defaults to None.

    Attributes
    ----------
    path : str
    data_node : str
    start, stop : int
    num_examples : int
    nodes : list of tables.Node
        One for each source; opened again when read after unpickling.
    h5file : tables.File

    Raises
    ------
    ImportError
        If PyTables is not installed: it is Fuel's extra ``pytables``.
    FileNotFoundError
        If there is no such file.
    ValueError
        If `start` and `stop` do not lie within the nodes, or the name of a
        group or node is unknown.

    Notes
    -----
    Requests are slices and lists (or arrays) of integers. Returned arrays
    belong to the caller. PyTables is not thread-safe.
    """

    #: The group of nodes; the root in old pickles, which do not name it.
    data_node = '/'
    takes_requests = True
    unsaved_arguments = ('path',)

    def __init__(self, path: str, sources: Sequence[str], start: int = 0,
                 stop: int | None = None, data_node: str = _DEFAULT_NODE,
                 sources_in_file: Sequence[str] | None = None,
                 axis_labels: AxisLabels | None = None) -> None:
        for names in (sources, sources_in_file):
            if isinstance(names, str):
                raise ValueError('sources must be a tuple of names, got the '
                                 f'string {names!r}: write ({names!r},)')
            in_order('sources', names)
        self.path = path
        self.data_node = data_node
        self.provides_sources = tuple(sources)
        self.sources_in_file = tuple(sources_in_file or sources)
        if len(self.sources_in_file) != len(self.provides_sources):
            raise ValueError(
                'sources_in_file must name one node for each of sources, '
                f'{self.provides_sources}, got {self.sources_in_file}')
        super().__init__(axis_labels=axis_labels)
        self.open_file(path)
        num_rows = self._num_rows()
        self.start = start
        self.stop = num_rows if stop is None else stop
        if not 0 <= self.start < self.stop <= num_rows:
            self.close_file()
            raise ValueError(
                f'start and stop must lie within the {num_rows} rows of '
                f'{path!r}, got start {start} and stop {stop}')
        self.num_examples = self.stop - self.start

    def open_file(self, path: str) -> None:
        """Open a file and find the nodes in it."""
        with from_extra('pytables', 'tables'):
            import tables

        if not os.path.exists(path):
            raise FileNotFoundError(
                f'there is no file {os.path.abspath(path)!r}; a file in the '
                'data path is given as '
                f'find_in_data_path({os.path.basename(path)!r})')
        h5file = tables.open_file(path, mode='r')
        try:
            self.nodes = self._find_nodes(h5file)
        except ValueError:
            h5file.close()
            raise
        self.h5file = h5file
        # PyTables keeps a file open until it is closed explicitly.
        self._closing = weakref.finalize(self, h5file.close)

    def _find_nodes(self, h5file: tables.File) -> list[tables.Node]:
        """Find and return the nodes of the sources."""
        nodes = {source: _join(self.data_node, source)
                 for source in self.sources_in_file}
        missing = [source for source, node in nodes.items()
                   if node not in h5file]
        if missing and isinstance(self.data_node, _Default):
            self.data_node = '/'
            return self._find_nodes(h5file)
        if missing:
            raise ValueError(_no_such_node(
                h5file, self.data_node, missing[0]))
        self.data_node = str(self.data_node)
        return [h5file.get_node(nodes[source])
                for source in self.sources_in_file]

    def load(self) -> None:
        """Open the file again, after unpickling."""
        self.open_file(self.path)

    def close_file(self) -> None:
        """Close the file; reading from it opens it again."""
        self._closing()
        for name in ('_nodes', '_h5file'):
            vars(self).pop(name, None)

    def _num_rows(self) -> int:
        lengths = {source: int(node.nrows) for source, node in
                   zip(self.sources_in_file, self.nodes, strict=True)}
        if len(set(lengths.values())) > 1:
            self.close_file()
            raise ValueError(
                f'the nodes of {self.path!r} have different lengths, so '
                f'their rows are not pairs: {lengths}')
        return next(iter(lengths.values()))

    def get_data(self, state: object = None,
                 request: object = None) -> Batch:
        """Return the examples of a request.

        Parameters
        ----------
        request : slice, list of int or integer numpy.ndarray
            Which examples, counted from `start`.

        Returns
        -------
        tuple
            One array for each of `sources`.

        Raises
        ------
        ValueError
            If the request is of another kind, empty, negative or out of
            range.
        """
        if not (isinstance(request, slice) or is_batch(request)):
            raise ValueError(
                'a request must be a slice or a list of integers, got '
                f'{request!r} ({type(request).__name__})')
        rows = as_rows(request, self.num_examples)
        if isinstance(rows, slice):
            start, stop, step = rows.indices(self.num_examples)
            data = [own(node[start + self.start:stop + self.start:step])
                    for node in self.nodes]
        else:
            data = [_pick(node, rows + self.start) for node in self.nodes]
        return self.filter_sources(data)


def _join(group: str, name: str) -> str:
    """Return the path of a node; a name may itself be a path of groups."""
    return '/'.join(['', *f'{group}/{name}'.strip('/').split('/')])


def _no_such_node(h5file: tables.File, group: str, name: str) -> str:
    """Return an error text that lists the existing nodes."""
    path, wanted, place = h5file.filename, name, f'{group!r} of'
    if group.strip('/') == '':
        group, place = '/', 'the root of'
    elif _join('', group) not in h5file:
        group, wanted = '/', group
    known = list(h5file.get_node(_join('', group))._v_children)
    hint = did_you_mean(wanted, known, ' ({})')
    what = (f'node {name!r} in {place}' if wanted == name
            else f'group {wanted!r} in')
    nodes = f'the nodes {", ".join(map(repr, known))}' if known else 'no nodes'
    return f'there is no {what} {path!r}{hint}; it has {nodes}'


def _pick(node: tables.Node, rows: NDArray[numpy.intp],
          ) -> NDArray[Any] | list[NDArray[Any]]:
    """Read rows in any order and with repetitions, unlike PyTables."""
    import tables

    if isinstance(node, tables.VLArray):
        return [own(node[row]) for row in rows.tolist()]
    unique, places = numpy.unique(rows, return_inverse=True)
    if isinstance(node, tables.Table):
        return take(node.read_coordinates(unique), places)
    # With several axes, a list alone would select points.
    several = (...,) * (node.ndim > 1)
    return take(node[unique.tolist(), *several], places)


# Pickled, and shown, under the name that users import.
PytablesDataset.__module__ = __package__
