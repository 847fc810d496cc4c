"""Data sets in raw files of numbers."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy

from fuel.datasets.columns.base import written_call
from fuel.datasets.columns.part_names import (
    as_list, fixed_files, written_files)
from fuel.datasets.columns.readers import RangesReader
from fuel.datasets.file_rows import FileRowsDataset
from fuel.datasets.options import DatasetOptions
from fuel.datasets.row_orders import IndexArray
from fuel.datasets.run_bounds import cut_runs
from fuel.datasets.text_files import check_is_file
from fuel.remote.urls import StorageOptions
from fuel.storage import Reader
from fuel.storage.file_bytes import FileBytes, raw_files_at
from fuel.storage.raw_arrays import open_raw
from fuel.storage.token_index import (
    files_of_tokens, indexes_beside, open_tokens)
from fuel.utils import do_not_pickle_attributes
from fuel.utils.arguments import try_call
from fuel.utils.checks import one_of

__all__ = ['BinaryDataset']


@do_not_pickle_attributes('readers', 'documents')
class BinaryDataset(FileRowsDataset):
    """A data set in raw files of numbers, such as the tokens of a text.

    The files are memory-mapped, so only the rows of a request are read. There
    is one source, ``'data'``.

    Parameters
    ----------
    path : str, path-like or list of them
        A file, its URL, a list of files, or a pattern such as
        ``'train_*.bin'``. The rows of several files follow each other; the
        files of a pattern come in natural order.
    dtype : dtype, optional
        The type of a row: ``'uint16'`` for the tokens of nanoGPT,
        ``'(3, 96, 96)u1'`` for images. Defaults to None: the files have the
        header of llm.c, which states the type and the number of tokens, or
        an index of Megatron.
    which_sets, splits, storage_options
        As for :class:`~fuel.datasets.npy.NPYDataset`.
    rows : {'sequences', 'tokens'}, optional
        What a row is if the files have an index of Megatron: a sequence of
        tokens, or one token. Defaults to 'sequences'. Without an index,
        'tokens' is an error, since `dtype` states what a row is.
    sources, axis_labels
        As for :class:`Dataset`.

    Attributes
    ----------
    num_examples : int
    readers : dict of str to Reader

    Raises
    ------
    FileNotFoundError
        If a file is missing.
    ValueError
        If a file is empty, if its size is not a multiple of the size of a
        row, if `dtype` is missing or differs from that in a header or an
        index, or if a split is unknown or out of range. With
        ``rows='tokens'``, if there is no index, or if sequences do not follow
        each other in the file.
    DamagedFileError
        If a file has another size than its header or its index states, or if
        an index is not one of Megatron, version 1.

    Notes
    -----
    A header is recognised by its first number, also if `dtype` is given.
    Returned arrays are in native byte order; ``dtype='>u2'`` reads a file in
    the other order.

    Megatron writes ``corpus.idx`` beside ``corpus.bin``; either name, or
    ``'corpus'``, may be passed. The index states the type, and each example
    is a sequence of tokens, in the order of the index; lengths vary. With
    ``rows='tokens'``, each example is one token, in the order of the file.
    The documents of the index are :attr:`runs`, so
    :class:`~fuel.datasets.Runs` has whole documents, each of them an array of
    sequences or an array of tokens, and no window goes from one document to
    the next. Modes in the index are not used. Without the index beside it,
    the file has only tokens.

    For next-token training, make windows of tokens; see
    :class:`~fuel.datasets.Windows`.

    Examples
    --------
    >>> import numpy, os, tempfile
    >>> from fuel.datasets import BinaryDataset, Windows
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, 'train.bin')
    >>> numpy.arange(10, dtype='uint16').tofile(path)
    >>> tokens = BinaryDataset(path, dtype='uint16')
    >>> tokens.get_data(None, [9, 0])
    (array([9, 0], dtype=uint16),)
    >>> blocks = Windows(tokens, 4, stride=4, targets='next')
    >>> blocks.sources
    ('inputs', 'targets')
    >>> blocks.get_data(None, 1)
    (array([4, 5, 6, 7], dtype=uint16), array([5, 6, 7, 8], dtype=uint16))
    >>> tokens.close(None)
    >>> folder.cleanup()
    """

    path: str | list[str]
    # Bounds of the documents among all rows; None without an index.
    documents: IndexArray | None
    # The defaults are those of older pickles.
    rows: str = 'sequences'
    _splits: Mapping[str, Any] | None = None
    single_rows = ("pass rows='tokens' to BinaryDataset or fuel.load, so that "
                   'each row is one token')

    def __init__(self, path: Any, dtype: Any = None,
                 which_sets: Sequence[str] | None = None,
                 splits: Mapping[str, Any] | None = None,
                 storage_options: StorageOptions | None = None, *,
                 rows: str = 'sequences',
                 **kwargs: Unpack[DatasetOptions]) -> None:
        self.rows = one_of('rows', rows, ('sequences', 'tokens'))
        files = files_of_tokens(as_list(fixed_files(
            type(self).__name__, path, storage_options)))
        self.path = files if len(files) > 1 else files[0]
        self.dtype = None if dtype is None else numpy.dtype(dtype)
        self._splits = splits
        self.load()
        super().__init__(which_sets, splits, **kwargs)

    def load(self) -> None:
        """Open the files."""
        paths = as_list(self.path)
        for path in paths:
            check_is_file(path, 'raw')
        indexes = indexes_beside(paths)
        if self.rows == 'tokens' and not indexes:
            # A missing file on a server has no index either.
            raw_files_at(paths)
            raise ValueError(
                f"rows='tokens' is for files with an index of Megatron, and "
                f'there is none beside {paths[0]}: restore the index, whose '
                f'name ends in .idx, or pass dtype=... instead, so that each '
                f'row is a number of this type')
        find = _tokens if self.rows == 'tokens' else _sequences
        reader, documents = find(paths, indexes, self.dtype) if indexes else (
            open_raw(paths, 'data', self.dtype), None)
        self.readers: dict[str, Reader] = {'data': reader}
        self.documents = documents

    def kept_arguments(self) -> Mapping[str, object]:
        """Return the arguments that a saved state must fit, by name."""
        kept = dict(super().kept_arguments())
        if self.rows == 'sequences':
            # Older states do not have `rows`.
            del kept['rows']
        return kept

    @property
    def runs(self) -> IndexArray | None:
        """The bounds of the documents that an index states: document i has
        the examples from ``runs[i]`` to ``runs[i + 1] - 1`` (array of shape
        (documents + 1,), dtype intp), or None without an index.

        If splits are used, each run is a stretch of consecutive rows of one
        document, as long as possible.
        """
        found = self.find_uncut_runs()
        return None if found is None else found[0]

    def find_uncut_runs(self) -> tuple[IndexArray, IndexArray] | None:
        """Return the bounds of the documents, and the number of each among
        those of all rows; None without an index."""
        return None if self.documents is None else cut_runs(
            self.documents, self._order)

    def __repr__(self) -> str:
        """Return the call that makes the data set, if an index states the
        type."""
        if self.documents is None:
            return super().__repr__()
        return written_call(
            type(self).__name__, [repr(written_files(self.path, None))],
            {'rows': self.rows if self.rows != 'sequences' else None,
             'which_sets': self.which_sets, 'splits': self._splits,
             'storage_options': try_call(
                 None, lambda: self.storage_options) or None,
             'sources': vars(self).get('_sources')})


def _sequences(paths: Sequence[str], indexes: Sequence[FileBytes],
               dtype: Any) -> tuple[Reader, IndexArray]:
    """Return a reader of the sequences that indexes find in files, and the
    bounds of the documents."""
    tokens, starts, stops, ends = open_tokens(paths, 'data', indexes, dtype)
    bounds = numpy.cumsum([0, *map(len, starts)], dtype=numpy.intp)
    reader = RangesReader(
        [tokens], (int(bounds[-1]),), numpy.dtype(object),
        numpy.concatenate(starts), numpy.concatenate(stops), bounds,
        lambda part: paths[part])
    # An index that was written again is noticed as other tokens are.
    reader.files = (*reader.files, *indexes)
    reader.element_type = tokens.dtype
    return reader, numpy.concatenate(
        [bounds[:1], *map(numpy.add, bounds, ends)])


def _tokens(paths: Sequence[str], indexes: Sequence[FileBytes],
            dtype: Any) -> tuple[Reader, IndexArray]:
    """Return a reader of the tokens of files, and the bounds of the documents
    that indexes state."""
    tokens, starts, stops, ends = open_tokens(paths, 'data', indexes, dtype)
    bounds = [numpy.zeros(1, numpy.intp)]
    for index, first, begin, end, documents in zip(
            indexes, tokens.part_bounds, starts, stops, ends,
            strict=False):
        wanted = first + numpy.concatenate([[0], numpy.cumsum(end - begin)])
        wrong = (begin != wanted[:-1]) & (end > begin)
        if wrong.any():
            place = int(wrong.argmax())
            raise ValueError(
                f'{index.path}: the sequences do not follow each other in '
                f'the file of tokens, since sequence {place} begins at token '
                f'{begin[place] - first} and not at '
                f'{wanted[place] - first}: leave out '
                f"rows='tokens', or write both files again in one order")
        bounds.append(wanted[documents])
    tokens.files = (*tokens.files, *indexes)
    return tokens, numpy.concatenate(bounds)
