"""Data sets of windows over the runs of another data set."""
from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy

from fuel.datasets.checks import refuse_paths
from fuel.datasets.dataset import Dataset
from fuel.datasets.row_orders import IndexArray
from fuel.datasets.run_bounds import RunsGiven
from fuel.datasets.run_readers import (
    MOST_ROWS, Cuts, FirstRowReader, MaskReader, NextReader, SpanReader,
    WindowCuts, WindowReader, no_zeros)
from fuel.datasets.runs import RunDataset, StoredSources
from fuel.datasets.sources import Source, lengths_vary
from fuel.describe import SourceType, SourceTypes
from fuel.describe.source_types import types_of
from fuel.storage import Reader
from fuel.suggestions import did_you_mean
from fuel.typing import AxisLabels, DatasetLike
from fuel.utils.checks import not_negative, one_of, positive

__all__ = ['Windows']

# The sources of a data set of one source, with targets.
PAIR = ('inputs', 'targets')


class Windows(RunDataset):
    """A data set whose examples are windows over the runs of another data set.

    Parameters
    ----------
    dataset : Dataset
        A data set with random access.
    length : int
        Number of rows in a window.
    runs : dict or str, optional
        As for :class:`Runs`. A window lies in one run.
    step : int, optional
        Distance from each row of a window to the next row of the window.
        Defaults to 1.
    stride : int, optional
        Distance from the start of a window to the start of the next window, in
        rows. Defaults to 1.
    pad : {'edge', 'zero'}, optional
        The value of rows outside of the run: the nearest row of the run, or
        zeros. Defaults to None: windows lie inside of their runs.
    pad_before, pad_after : int, optional
        Number of rows by which the first window of a run may begin before the
        run, and by which the last window may end after it. Default to 0.
    short : {'drop', 'error'}, optional
        Whether a run that is too short for a window is left out or is an
        error. It is always an error if all runs are too short. Defaults to
        'drop'.
    first : dict of str to int, optional
        Maps sources to numbers of rows: for such a source, only this number of
        rows is read at the start of each window.
    dense : sequence of str, optional
        Sources that are read with the rows between the steps, into an array of
        shape ``(length, step, ...)``. A window then spans ``length * step``
        rows. `dense` cannot be used with padding.
    targets : {'next'}, optional
        With 'next', an example has two sources for training a model that
        predicts the next row: ``inputs``, the `length` rows of a window, and
        ``targets``, the row that follows each of them in the window. A window
        then spans one row more. If there are several sources, each NAME
        becomes ``NAME_inputs`` and ``NAME_targets``, except those in `first`
        and those with one value for each run. `targets` cannot be used with
        padding or `dense`. Defaults to None.
    mask_source : str, optional
        If there is padding, the name of the source that says which rows are
        real. Defaults to ``'mask'``.
    sources, axis_labels : optional
        As for :class:`Dataset`.

    Attributes
    ----------
    num_examples : int
    runs : numpy.ndarray, shape (runs + 1,)
        Bounds of the windows of each run.
    run_numbers : numpy.ndarray, shape (num_examples,)
        The number of the run of each window, among the runs of the argument
        `runs`, or of ``dataset.runs`` by default.

    Raises
    ------
    TypeError
        If the data set is read in order, if a chosen source is sparse, or if
        a count is not an integer.
    ValueError
        If a count is out of range, a source is unknown, a row lies outside
        of all runs, no run is long enough for a window, or one is too short
        and `short` is 'error'. With `targets`, if the rows of a source are
        arrays of different lengths.

    Notes
    -----
    An example has the shape ``(length, ...)`` in each source. The source
    `mask_source`, of shape ``(length,)``, is True where a row is real; there
    is one mask for all sources. If a source has one value for each run, a
    window has that value once.

    A run of t rows has windows that begin at its rows ``-pad_before``,
    ``-pad_before + stride``, ... up to ``t - ((length - 1) * step + 1) +
    pad_after``.

    Examples
    --------
    >>> import numpy
    >>> from fuel.datasets import IndexableDataset
    >>> rows = IndexableDataset({'x': numpy.arange(10)})
    >>> windows = Windows(rows, 3, runs={'lengths': [6, 4]}, step=2)
    >>> windows.get_data(None, [0, 1])
    (array([[0, 2, 4],
           [1, 3, 5]]),)
    >>> padded = Windows(rows, 3, runs={'lengths': [6, 4]}, stride=3,
    ...                  pad='edge', pad_after=2)
    >>> padded.get_data(None, [3])
    (array([[9, 9, 9]]), array([[ True, False, False]]))
    >>> blocks = Windows(rows, 4, stride=4, targets='next')
    >>> blocks.sources
    ('inputs', 'targets')
    >>> blocks.get_data(None, 1)
    (array([4, 5, 6, 7]), array([5, 6, 7, 8]))
    """

    # The default is that of older pickles.
    targets: str | None = None

    def __init__(self, dataset: DatasetLike, length: int, *,
                 runs: RunsGiven | None = None, step: int = 1,
                 stride: int = 1, pad: str | None = None,
                 pad_before: int = 0, pad_after: int = 0,
                 short: str = 'drop', first: Mapping[str, int] | None = None,
                 dense: Sequence[str] = (), targets: str | None = None,
                 mask_source: str = 'mask',
                 sources: Sequence[str] | None = None,
                 axis_labels: AxisLabels | None = None) -> None:
        refuse_paths(dataset, type(self).__name__)
        self.length = positive('length', length)
        self.step = positive('step', step)
        self.stride = positive('stride', stride)
        self.pad = one_of('pad', pad, (None, 'edge', 'zero'))
        self.pad_before = not_negative('pad_before', pad_before)
        self.pad_after = not_negative('pad_after', pad_after)
        if pad is None and (pad_before or pad_after):
            raise ValueError(
                "pad_before and pad_after need a value for the rows outside "
                "of the run: pass pad='edge' or pad='zero'")
        self.short = one_of('short', short, ('drop', 'error'))
        self.targets = one_of('targets', targets, (None, 'next'))
        self.mask_source = mask_source
        if first is not None and not isinstance(first, Mapping):
            raise TypeError(
                f'first must be a dict from sources to how many rows are read '
                f"of each, as in {{'image': 1}}, got {first!r}")
        self.first = dict(first or {})
        self.dense = (dense,) if isinstance(dense, str) else tuple(dense)
        self._check_choices(dataset.sources)
        if runs is None and isinstance(dataset, Dataset) and (
                dataset.independent_rows):
            warnings.warn(
                f'the rows of this data set are independent examples, not '
                f'steps of a run, so that windows join unrelated rows: '
                f'{dataset.independent_rows}; where they are '
                f"steps, pass runs='all'", stacklevel=2)
        super().__init__(dataset, runs, sources, axis_labels)

    def _check_choices(self, provided: Sequence[str]) -> None:
        """Refuse arguments that do not fit the sources, or each other."""
        for name, chosen in (('first', self.first), ('dense', self.dense)):
            for source in chosen:
                if source not in provided:
                    raise ValueError(
                        f'{name}: there is no source {source!r}'
                        f'{did_you_mean(source, provided, " ({})")}; the '
                        f'sources are {tuple(provided)}')
        for source, count in self.first.items():
            if positive(f'first[{source!r}]', count) > self.length:
                raise ValueError(
                    f'first[{source!r}] must be at most the length, '
                    f'{self.length}, got {count}')
            if source in self.dense:
                raise ValueError(
                    f'the source {source!r} is in both first and dense')
        if self.dense and self.pad is not None:
            raise ValueError(
                'dense cannot be used with pad, since padded rows have no '
                'steps between them: leave out pad, or dense')
        if self.targets and (self.dense or self.pad is not None):
            raise ValueError(
                f"targets='next' cannot be used with "
                f"{'dense' if self.dense else 'pad'}: leave out one of them")
        if self.pad is not None and self.mask_source in provided:
            raise ValueError(
                f'there is a source {self.mask_source!r} already: name the '
                f'one that says which rows are real, '
                f"mask_source='is_real'")

    @property
    def runs(self) -> IndexArray:
        """Bounds of the windows of each run (array of int)."""
        return self._cuts.first_examples

    def known_types(self) -> SourceTypes:
        """Return types and shapes of the sources."""
        known = {name: self._type_of(source, of_row)
                 for source, of_row in types_of(self.dataset).items()
                 for name in self._names_of(source)}
        if self.pad is not None:
            known[self.mask_source] = SourceType(
                numpy.dtype(bool), (self.length,))
        return known

    def _type_of(self, source: str, of_row: SourceType) -> SourceType:
        if of_row.shape is None or source in self._once:
            return of_row
        return SourceType(
            of_row.dtype, (*self._rows_of(source)[1], *of_row.shape))

    def kept_arguments(self) -> Mapping[str, object]:
        """Return the arguments that a saved state must fit, by name."""
        # Older states do not have `targets`.
        more = ('targets',) if self.targets else ()
        return {**super().kept_arguments(), **{
            name: getattr(self, name) for name in (
                'length', 'step', 'stride', 'pad', 'pad_before', 'pad_after',
                'first', 'dense', 'mask_source', *more)}}

    def find_lengths(self) -> IndexArray:
        """Return the number of rows of each window."""
        return numpy.full(self.num_examples, self.length, numpy.intp)

    def find_cuts(self) -> Cuts:
        """Return how the runs are cut into the windows."""
        # An older pickle lacks the step of the cuts.
        vars(self._cuts).setdefault('step', self._step_of_cuts())
        return self._cuts

    def _step_of_cuts(self) -> int:
        """Return the distance between the rows that a window holds."""
        return 1 if self.dense else self.step

    def _cut(self, bounds: IndexArray) -> Cuts:
        span = (self.length * self.step if self.dense
                else (self.length - (not self.targets)) * self.step + 1)
        if max(span, self.stride, self.pad_before, self.pad_after) > MOST_ROWS:
            raise ValueError(
                f'windows span {span} rows with stride {self.stride}, and '
                f'padding is {self.pad_before} before and {self.pad_after} '
                f'after runs: each must be at most {MOST_ROWS}')
        return WindowCuts(
            bounds, span, self.stride, self.pad_before, self.pad_after,
            self._step_of_cuts())

    def _find_readers(self, stored: StoredSources) -> None:
        super()._find_readers(stored)
        # Rows that cannot be in windows are the cause of runs of few rows.
        self._refuse_short_runs(self._cuts)

    def _refuse_short_runs(self, cuts: Any) -> None:
        """Raise ValueError if all runs are too short for a window, or if
        `short` is 'error' and one is."""
        span = cuts.span
        without = numpy.flatnonzero(numpy.diff(cuts.first_examples) == 0)
        if len(without) == len(cuts.lengths) and cuts.bounds[-1]:
            padding = self.pad_before + self.pad_after
            raise ValueError(
                f'no run is long enough for a window of {span} rows: the '
                f'longest of {len(cuts.lengths)} has {cuts.lengths.max()}, '
                f'and padding is {padding}; pass shorter windows, more '
                f'padding, or other runs=...')
        if self.short == 'error' and len(without):
            raise ValueError(
                f'run {without[0]} has {cuts.lengths[without[0]]} rows, too '
                f'few for a window of {span}: pass shorter windows, more '
                f"padding, or short='drop' to leave out the {len(without)} "
                f'runs that are too short')

    def _rows_of(self, source: str) -> tuple[IndexArray, tuple[int, ...]]:
        """Return the rows of a window that are read for a source, counted from
        the start of the window, and the lengths of the axes into which they
        are reshaped."""
        if source in self.dense:
            axes = self.length, self.step
            return numpy.arange(self.length * self.step, dtype=numpy.intp), (
                axes)
        count = self.first.get(source, self.length)
        return numpy.arange(count, dtype=numpy.intp) * self.step, (count,)

    def _make_reader(self, source: str, below: Source) -> SpanReader:
        if source in self._once:
            return FirstRowReader(below, self._cuts)
        if self.pad == 'zero' and (
                self._chosen is None or source in self._chosen):
            known = types_of(self.dataset).get(source, SourceType(None)).dtype
            # The type of data in memory may be unknown: zeros are then refused
            # when the data are read.
            if (known is not None or below.reader.files) and (
                    below.reader.dtype.hasobject):
                raise no_zeros(source, 'of objects')
        return WindowReader(
            below, self._cuts, *self._rows_of(source), self.pad)

    def _make_readers(self, source: str,
                      below: Source) -> dict[str, SpanReader]:
        if not self.targets or source in self.first or source in self._once:
            return super()._make_readers(source, below)
        paired = [name for name in self._below if (
            name not in self.first and name not in self._once)]
        names = PAIR if len(paired) == 1 else (
            f'{source}_inputs', f'{source}_targets')
        if self._chosen is None or not {*names}.isdisjoint(self._chosen):
            self._refuse_ragged(source, below.reader)
        self._made = {**self._made, source: names}
        offsets = numpy.arange(self.length + 1, dtype=numpy.intp) * self.step
        whole = WindowReader(
            below, self._cuts, offsets, (len(offsets),), None)
        return {name: NextReader(below, self._cuts, whole, part, source)
                for name, part in zip(
                    names, (slice(-1), slice(1, None)), strict=True)}

    def _refuse_ragged(self, source: str, reader: Reader) -> None:
        """Raise ValueError if the rows of a source are arrays of different
        lengths, whose elements have no targets."""
        if not lengths_vary(reader):
            return
        dataset, remedy = self.dataset, ''
        while isinstance(dataset, RunDataset):
            dataset = dataset.dataset
            remedy = (f'make the windows of the {type(dataset).__name__} that '
                      f'{type(self.dataset).__name__} reads; ')
        remedy += getattr(dataset, 'single_rows', '') or (
            "leave out targets='next', and read windows of one row more, "
            'which have the rows that follow too')
        raise ValueError(
            f"targets='next' makes a target of the row that follows, and the "
            f'rows of source {source!r} are arrays of different lengths, not '
            f'single items: {remedy}')

    def _added_readers(self, first: Source) -> dict[str, SpanReader]:
        if self.pad is None:
            return {}
        offsets = numpy.arange(self.length, dtype=numpy.intp) * self.step
        return {self.mask_source: MaskReader(
            first, self.mask_source, self._cuts, offsets)}

    def _find_labels(self) -> AxisLabels | None:
        known = super()._find_labels()
        if known is None or self.pad is None:
            return known
        return {**known, self.mask_source: ('batch', 'time')}

    def _label(self, source: str, labels: Sequence[str]) -> Sequence[str]:
        found = super()._label(source, labels)
        if source in self.dense and len(found) > len(labels):
            return (*found[:2], 'step', *found[2:])
        return found

    def details(self) -> Sequence[str]:
        """Return the length of the windows, and the details of the data set
        below."""
        return [f'windows of {self.length}', *super().details()]
