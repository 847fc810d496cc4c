"""Cuts of runs into examples (whole runs or windows), and readers of the
examples."""
from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray

from fuel.datasets.row_orders import IndexArray, pick
from fuel.datasets.rows import own
from fuel.datasets.sources import Source
from fuel.kernels.batches import Part, PlainRows, WindowRows
from fuel.storage import Reader
from fuel.storage.reader import (
    DerivedReader, Places, StoredPieces, as_objects, rows_of_ranges,
    split_ranges)

# Runs of fewer bytes on average are read together, and then copied.
SMALL_RUN = 1 << 14
# Most axes of a batch that is copied in C.
MOST_AXES = 32
# The largest number of windows: a larger number would not be exact.
MOST_ROWS = 1 << 60


class Spans(NamedTuple):
    """The places of some examples in their runs.

    `runs`: the number of the run of each example.
    `starts`: the first row of each example, counted from the first row of its
        run; negative where the example begins with padding.
    """

    runs: IndexArray
    starts: IndexArray


class Cuts:
    """The cuts of runs into examples. Each run is an example, unless a
    subclass cuts it.

    `bounds`: bounds of the runs; shape (runs + 1,).
    `stride`: number of rows from the start of an example to the start of the
        next example in its run.
    `step`: number of rows from a row of an example to the next row of the
        example.
    `first_examples`: number of the first example of each run; shape
        (runs + 1,).
    """

    stride = 1
    step = 1

    def __init__(self, bounds: IndexArray) -> None:
        self.bounds = bounds
        self.lengths = numpy.diff(bounds)
        self.first_examples = self.count()

    def count(self) -> IndexArray:
        """Return the first example of each run, and the number of examples."""
        return numpy.arange(len(self.bounds), dtype=numpy.intp)

    def find(self, examples: IndexArray) -> Spans:
        """Return the runs of examples, and their first rows in the runs."""
        return Spans(examples, numpy.zeros(len(examples), numpy.intp))

    def rows_held(self, examples: IndexArray,
                  ) -> tuple[IndexArray, IndexArray]:
        """Return the first row that each example holds, and the row after its
        last one; rows of padding do not count."""
        runs = self.find(examples).runs
        return self.bounds[runs], self.bounds[runs + 1]

    def examples_with(self, row: int) -> IndexArray:
        """Return the numbers of the examples that hold a row, in order."""
        return self._examples_with(self._run_of(row), row) if (
            self.bounds[0] <= row < self.bounds[-1]) else (
                numpy.empty(0, numpy.intp))

    def _run_of(self, row: int) -> int:
        """Return the number of the run that has a row."""
        return int(self.bounds.searchsorted(row, 'right')) - 1

    def _examples_with(self, run: int, row: int) -> IndexArray:
        """Return the numbers of the examples of a run that hold a row."""
        return numpy.array([run])

    @property
    def num_examples(self) -> int:
        """Number of examples (int)."""
        return int(self.first_examples[-1])

    def as_examples(self, places: Places) -> IndexArray:
        """Return the numbers of examples as an array; refuse a number that
        does not exist."""
        if isinstance(places, slice):
            return numpy.arange(*places.indices(self.num_examples),
                                dtype=numpy.intp)
        examples = numpy.atleast_1d(numpy.asarray(places, numpy.intp))
        if len(examples) and not (0 <= examples.min() and (
                examples.max() < self.num_examples)):
            raise IndexError(
                f'examples must lie in 0 to {self.num_examples - 1}, got '
                f'{places!r:.80}')
        return examples


class WindowCuts(Cuts):
    """The cuts of runs into windows.

    `span`: number of rows that a window spans.
    `stride`: number of rows from the start of a window to the start of the
        next.
    `before`, `after`: number of rows by which a window may begin before its
        run, and by which it may end after its run.
    `step`: number of rows from a row of a window to the next row of the
        window.
    """

    def __init__(self, bounds: IndexArray, span: int, stride: int,
                 before: int, after: int, step: int = 1) -> None:
        self.step = step
        self.span = span
        self.stride = stride
        self.before = before
        self.after = after
        super().__init__(bounds)

    def count(self) -> IndexArray:
        """See :meth:`Cuts.count`."""
        places = self.lengths - self.span + self.before + self.after
        counts = numpy.where(
            (places >= 0) & (self.lengths > 0), places // self.stride + 1, 0)
        if counts.sum(dtype=float) > MOST_ROWS:
            raise ValueError(
                f'there would be more than {MOST_ROWS} windows: pass less '
                f'padding, or a larger stride')
        return numpy.concatenate([[0], numpy.cumsum(counts)]).astype(
            numpy.intp)

    def find(self, examples: IndexArray) -> Spans:
        """See :meth:`Cuts.find`."""
        first = self.first_examples
        runs = first.searchsorted(examples, 'right') - 1
        return Spans(
            runs, (examples - first[runs]) * self.stride - self.before)

    def rows_held(self, examples: IndexArray,
                  ) -> tuple[IndexArray, IndexArray]:
        """See :meth:`Cuts.rows_held`."""
        runs, starts = self.find(examples)
        # The first row in the run that is a whole number of steps away.
        first = numpy.where(starts < 0, starts % self.step, starts)
        stop = numpy.minimum(starts + self.span, self.lengths[runs])
        # The run may end between two rows of the window.
        stop = numpy.where(
            stop > first, stop - (stop - first - 1) % self.step, first)
        begin = self.bounds[runs]
        return begin + first, begin + stop

    def _examples_with(self, run: int, row: int) -> IndexArray:
        """See :meth:`Cuts._examples_with`."""
        begin, end = self.first_examples[run:run + 2].tolist()
        # Counted from the start of the first window of the run.
        place = row - int(self.bounds[run]) + self.before
        first = max(0, -((self.span - 1 - place) // self.stride))
        numbers = numpy.arange(
            first, min(place // self.stride + 1, end - begin))
        found: IndexArray = begin + numbers[
            (place - numbers * self.stride) % self.step == 0]
        return found


class SpanReader(DerivedReader):
    """Base of the readers of examples that consist of rows of another source.

    `below`: the source that has the rows.
    `cuts`: the cuts of the runs into the examples.
    """

    #: The mean number of rows of an example.
    mean_rows = 1.
    #: The source of the data set below, if it has another name.
    origin: str | None = None

    def __init__(self, below: Source, cuts: Cuts,
                 shape: tuple[int, ...], dtype: numpy.dtype[Any]) -> None:
        super().__init__([below.reader], (cuts.num_examples, *shape), dtype)
        self.rows: Reader = below.reader
        self._cuts = cuts
        # The first row of each run, in `rows`; shape (runs,).
        self._first_rows: IndexArray = pick(below.rows, cuts.bounds[:-1])

    @abstractmethod
    def read_spans(self, spans: Spans) -> Any:
        """Return the examples at some places."""

    @abstractmethod
    def rows_of(self, spans: Spans) -> IndexArray:
        """Return the rows that examples need, one after the other."""

    def read(self, rows: Places) -> Any:
        """See :meth:`Reader.read`."""
        data = self._read_list(self._cuts.as_examples(rows))
        return data if isinstance(rows, (slice, numpy.ndarray)) else data[0]

    def _read_list(self, rows: IndexArray) -> Any:
        return self.read_spans(self._cuts.find(rows))

    def needed(self, rows: IndexArray) -> Sequence[IndexArray]:
        """See :meth:`DerivedReader.needed`."""
        return [numpy.unique(self.rows_of(self._cuts.find(rows)))]

    def pieces(self, rows: IndexArray) -> StoredPieces | None:
        """Return the pieces that the first rows of examples lie in; see
        :meth:`Reader.pieces`."""
        if not len(self.rows):
            return None
        spans = self._cuts.find(rows)
        last = numpy.maximum(self._cuts.lengths[spans.runs] - 1, 0)
        first = self._first_rows[spans.runs] + numpy.minimum(
            numpy.maximum(self._first_steps(spans), 0), last)
        # Runs without rows may begin after the last row.
        found = self.rows.pieces(numpy.minimum(first, len(self.rows) - 1))
        return found and found._replace(
            row_nbytes=found.row_nbytes * self.mean_rows)

    def _first_steps(self, spans: Spans) -> IndexArray:
        """Return the first row of each example, counted from the first row of
        its run."""
        return spans.starts

    def span(self, rows: slice | IndexArray) -> slice:
        """Return a range that contains the rows of all examples.

        It would take too long to list the rows of only some examples.
        """
        first = self._first_rows
        return slice(int(first.min()), int(
            (first + self._cuts.lengths).max())) if len(first) else slice(0, 0)


class FirstRowReader(SpanReader):
    """A source with one value for each run. Each example has the value of its
    run once."""

    def __init__(self, below: Source, cuts: Cuts) -> None:
        rows = below.reader
        super().__init__(below, cuts, rows.shape[1:], rows.dtype)

    def read_spans(self, spans: Spans) -> Any:
        """See :meth:`SpanReader.read_spans`."""
        rows = self.rows_of(spans)
        if len(rows) < len(spans.runs):
            # A run without rows has a value too, if the runs are the data
            # set's own.
            return self.rows.read_runs(spans.runs)
        return self.rows.read(rows)

    def rows_of(self, spans: Spans) -> IndexArray:
        """See :meth:`SpanReader.rows_of`."""
        has_rows = self._cuts.lengths[spans.runs] > 0
        return self._first_rows[spans.runs[has_rows]]


class RunReader(SpanReader):
    """Whole runs: arrays of different lengths in an array of objects."""

    def __init__(self, below: Source, cuts: Cuts) -> None:
        super().__init__(below, cuts, (), numpy.dtype(object))
        self.element_type = below.reader.element_type or below.reader.dtype
        self.mean_rows = float(cuts.lengths.sum()) / max(1, len(cuts.lengths))

    def read_spans(self, spans: Spans) -> Any:
        """See :meth:`SpanReader.read_spans`."""
        starts = self._first_rows[spans.runs]
        counts = self._cuts.lengths[spans.runs]
        is_small = int(counts.sum()) * self.rows.row_nbytes < (
            SMALL_RUN * len(counts))
        parts = (split_ranges(
            self.rows.read_ranges(starts, counts), counts) if is_small else [
            self.rows.read_ranges(starts[i:i + 1], counts[i:i + 1])
            for i in range(len(starts))])
        if not all(isinstance(part, numpy.ndarray) for part in parts):
            return parts
        return as_objects(parts)

    def rows_of(self, spans: Spans) -> IndexArray:
        """See :meth:`SpanReader.rows_of`."""
        counts = self._cuts.lengths[spans.runs]
        return rows_of_ranges(self._first_rows[spans.runs], counts)


class WindowReader(SpanReader):
    """Rows of windows. All windows have the same rows, counted from the start
    of the window.

    `offsets`: the rows of a window, counted from its start; shape (rows,).
    `axes`: lengths of the axes into which these rows are reshaped.
    `pad`: the value of rows outside of the run: 'edge' for the nearest row of
        the run, or 'zero'. None if all rows lie in the run.
    """

    def __init__(self, below: Source, cuts: Cuts, offsets: IndexArray,
                 axes: Sequence[int], pad: str | None) -> None:
        rows = below.reader
        super().__init__(below, cuts, (*axes, *rows.shape[1:]), rows.dtype)
        self._offsets = offsets
        self.mean_rows = float(len(offsets))
        self._axes = tuple(axes)
        self._pad = pad
        self._is_range = bool((numpy.diff(offsets) == 1).all())

    def direct(self) -> Part | None:
        """See :meth:`Reader.direct`."""
        part = self.rows.direct()
        if type(part) is not PlainRows or self._pad is not None or (
                len(self.shape) > MOST_AXES):
            return None
        return WindowRows(
            part.rows, self.shape[1:], self.dtype, self._cuts.first_examples,
            self._first_rows, self._cuts.stride, self._offsets)

    def _first_steps(self, spans: Spans) -> IndexArray:
        """See :meth:`SpanReader._first_steps`."""
        return spans.starts + int(self._offsets[0])

    def read_spans(self, spans: Spans) -> Any:
        """See :meth:`SpanReader.read_spans`."""
        count = len(spans.runs)
        steps = self._padded_steps(spans)
        if steps is None and self._is_range:
            data = self.rows.read_ranges(
                self._first_rows[spans.runs] + self._first_steps(spans),
                numpy.full(count, len(self._offsets), numpy.intp))
        else:
            data = self.rows.read(self._rows(spans, steps))
        if not isinstance(data, numpy.ndarray):
            if steps is not None and self._pad == 'zero':
                raise no_zeros(self.name, 'a list')
            return _nested(data, (count, *self._axes))
        if steps is not None and self._pad == 'zero':
            if data.dtype.hasobject:
                raise no_zeros(self.name, 'of objects')
            is_real = is_inside(steps, self._cuts.lengths[spans.runs])
            data[~is_real.ravel()] = numpy.zeros((), data.dtype)
        return data.reshape((count, *self._axes, *data.shape[1:]))

    def rows_of(self, spans: Spans) -> IndexArray:
        """See :meth:`SpanReader.rows_of`."""
        return self._rows(spans, self._padded_steps(spans))

    def _rows(self, spans: Spans, steps: IndexArray | None) -> IndexArray:
        first = self._first_rows[spans.runs]
        if steps is None:
            rows = (first + spans.starts)[:, None] + self._offsets
        else:
            last = self._cuts.lengths[spans.runs] - 1
            rows = numpy.minimum(numpy.maximum(steps, 0), last[:, None])
            rows += first[:, None]
        return rows.reshape(-1)

    def _padded_steps(self, spans: Spans) -> IndexArray | None:
        """Return the rows of windows, counted from the start of their runs;
        None if all of them lie in the runs."""
        if self._pad is None or not len(spans.runs):
            return None
        ends = spans.starts + self._offsets[-1]
        if spans.starts.min() >= 0 and (
                ends < self._cuts.lengths[spans.runs]).all():
            return None
        steps: IndexArray = spans.starts[:, None] + self._offsets
        return steps


class NextReader(WindowReader):
    """Rows of windows without the last row, or without the first row.

    `whole`: reads all rows of the windows.
    `part`: the rows of a window that this reader reads.
    `origin`: the source of the data set below.
    """

    def __init__(self, below: Source, cuts: Cuts, whole: WindowReader,
                 part: slice, origin: str) -> None:
        offsets = whole._offsets[part]
        super().__init__(below, cuts, offsets, (len(offsets),), None)
        self.whole, self.part, self.origin = whole, part, origin

    def cut(self, windows: Any) -> Any:
        """Return the rows of this reader, from all rows of the windows."""
        return own(windows[:, self.part] if isinstance(windows, numpy.ndarray)
                   else [window[self.part] for window in windows])


class MaskReader(SpanReader):
    """Masks of the rows of windows: True for a row of the run, False for
    padding."""

    def __init__(self, below: Source, name: str, cuts: Cuts,
                 offsets: IndexArray) -> None:
        super().__init__(below, cuts, offsets.shape, numpy.dtype(bool))
        self.name = name
        self._offsets = offsets

    def read_spans(self, spans: Spans) -> NDArray[numpy.bool_]:
        """See :meth:`SpanReader.read_spans`."""
        return is_inside(spans.starts[:, None] + self._offsets,
                         self._cuts.lengths[spans.runs])

    def rows_of(self, spans: Spans) -> IndexArray:
        """Return no rows."""
        return numpy.empty(0, numpy.intp)

    def pieces(self, rows: IndexArray) -> StoredPieces | None:
        """Return None: nothing is read."""
        return None

    def prefetch_budget(self, rows: slice | IndexArray) -> int | None:
        """Return None: nothing is read."""
        return None

    def fetch_budget(self, rows: slice | IndexArray) -> int | None:
        """Return None: nothing is read."""
        return None


def read_sources(readers: Sequence[SpanReader], spans: Spans) -> list[Any]:
    """Return the examples of several readers; rows that several of them need
    are read once."""
    data: list[Any] = []
    windows: dict[int, Any] = {}
    for reader in readers:
        if not isinstance(reader, NextReader):
            data.append(reader.read_spans(spans))
            continue
        key = id(reader.whole)
        if key not in windows:
            windows[key] = reader.whole.read_spans(spans)
        data.append(reader.cut(windows[key]))
    return data


def is_inside(steps: IndexArray, lengths: IndexArray) -> NDArray[numpy.bool_]:
    """Return a mask of the rows that lie in their run, of shape (windows,
    rows).

    `steps`: numbers of the rows, counted from the start of their run.
    `lengths`: the length of each window's run.
    """
    inside: NDArray[numpy.bool_] = (steps >= 0) & (steps < lengths[:, None])
    return inside


def no_zeros(source: str, kind: str) -> ValueError:
    """Return the error that a source of some kind cannot be padded with
    zeros."""
    return ValueError(
        f"pad='zero' takes sources of numbers, and {source!r} is {kind}: use "
        f"pad='edge', or leave it out with sources=...")


def _nested(flat: Sequence[Any], axes: tuple[int, ...]) -> list[Any]:
    """Return a flat list as nested lists of the given lengths."""
    if len(axes) == 1:
        return list(flat)
    size = math.prod(axes[1:])
    return [_nested(flat[start:start + size], axes[1:])
            for start in range(0, axes[0] * size, size)]
