"""HDF5Dataset, Runs and Windows against plain Python, on random files."""
import functools
import itertools
import pickle
import tempfile
from pathlib import Path

import numpy
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from support.layouts.comparing import as_lists
from support.layouts.random_plans import plans, write_files

from fuel.datasets import HDF5Dataset, Runs, Windows
from fuel.datasets.columns import (  # noqa: F401 - for the calls that are shown
    CSR, Categorical, Constant, Flat, PerRun, PerStep, Ragged, Rows, Scaled)

# Sources whose batches are arrays of objects, or sparse.
SPARSE, OBJECTS = ('csr',), ('text', 'ragged', 'varied')

WINDOWS = st.fixed_dictionaries({
    'length': st.integers(1, 4), 'step': st.integers(1, 2),
    'stride': st.integers(1, 3), 'pad': st.sampled_from(
        [None, None, 'edge', 'zero']),
    'pad_before': st.integers(0, 3), 'pad_after': st.integers(0, 3)}).map(
        lambda drawn: drawn if drawn['pad'] else {
            **drawn, 'pad_before': 0, 'pad_after': 0})


def take(values, rows):
    """Return some rows of a source; rows may be lists of lists."""
    if isinstance(values, numpy.ndarray):
        return values[numpy.array(rows, int)]
    return [take(values, row) if isinstance(row, list) else values[row]
            for row in rows]


def assert_same(expected, found, source):
    """Compare examples of a source, bit by bit."""
    if isinstance(expected, numpy.ndarray) and expected.dtype != object:
        assert expected.dtype == found.dtype, source
        assert expected.shape == found.shape, source
    assert as_lists(expected) == as_lists(found), source


def stretches(files):
    """Return the rows of each run that the splits have: as long as they
    follow each other."""
    bounds, rows = files.bounds, files.rows
    if rows == list(range(bounds[-1])):
        return [list(range(first, stop))
                for first, stop in itertools.pairwise(bounds)]
    found = []
    for row in rows:
        if found and row == found[-1][-1] + 1 and row not in bounds:
            found[-1].append(row)
        else:
            found.append([row])
    return found


def check_rows(files, dataset, picks):
    """Compare rows in any order, also with repetitions, and a range."""
    assert len(files.rows) == dataset.num_examples
    picked = [pick % len(files.rows) for pick in picks]
    first = min(picked)
    for request, rows in (
            (picked, [files.rows[pick] for pick in picked]),
            (slice(first, None), files.rows[first:])):
        batch = dataset.get_data(None, request)
        for source, found in zip(dataset.sources, batch, strict=True):
            assert_same(take(files.values[source], rows), found, source)


def check_windows(files, dataset, arguments):
    """Compare all windows of the runs."""
    left_out = SPARSE + OBJECTS * (arguments['pad'] == 'zero')
    sources = [source for source in dataset.sources
               if not source.startswith(left_out)]
    if not sources:
        return
    make = functools.partial(
        Windows, dataset, **arguments,
        sources=sources + ['mask'] * (arguments['pad'] is not None))
    length, step = arguments['length'], arguments['step']
    spans, reals = [], []
    for run in stretches(files):
        start = -arguments['pad_before']
        while run and (start + (length - 1) * step + 1
                       <= len(run) + arguments['pad_after']):
            places = [start + step * number for number in range(length)]
            spans.append([run[min(max(place, 0), len(run) - 1)]
                          for place in places])
            reals.append([0 <= place < len(run) for place in places])
            start += arguments['stride']
    if not spans and files.rows:
        with pytest.raises(ValueError, match='no run is long enough'):
            make()
        return
    windows = make()
    assert len(spans) == windows.num_examples
    if not spans:
        return
    everything = windows.get_data(None, slice(0, len(spans)))
    batch = dict(zip(windows.sources, everything, strict=True))
    if arguments['pad']:
        assert_same(numpy.array(reals), batch['mask'], 'mask')
    for source in sources:
        values = files.values[source]
        if source in files.once:
            expected = take(values, [span[0] for span in spans])
        else:
            expected = take(values, spans)
            if arguments['pad'] == 'zero':
                expected[~numpy.array(reals)] = numpy.zeros(
                    (), expected.dtype)
        assert_same(expected, batch[source], source)
    ends = [len(spans) - 1, 0]
    batch = windows.get_data(None, ends)
    for one, found in zip(everything, batch, strict=True):
        assert as_lists(one[ends]) == as_lists(found)


def check_runs(files, dataset):
    """Compare whole runs, and their bounds."""
    found_runs = stretches(files)
    assert dataset.runs.tolist() == [0, *numpy.cumsum(
        [len(run) for run in found_runs])]
    sources = [source for source in dataset.sources
               if not source.startswith(SPARSE)]
    if not sources:
        return
    runs = Runs(dataset, sources=sources)
    assert len(runs) == len(found_runs)
    batch = runs.get_data(None, slice(0, len(found_runs)))
    for source, found in zip(runs.sources, batch, strict=True):
        for rows, one in zip(found_runs, found, strict=True):
            if not rows:
                continue
            values = take(files.values[source], rows)
            if source in files.once:
                values = values[0]
            assert as_lists(values) == as_lists(one)


def check(plan, picks, arguments):
    """Write the files of a plan, and compare what is read of them."""
    with tempfile.TemporaryDirectory() as folder:
        files = write_files(Path(folder), plan)
        note(f'HDF5Dataset(**{files.arguments})')
        if not files.rows:
            with pytest.raises(ValueError, match='so there are no examples'):
                HDF5Dataset(**files.arguments)
            return
        dataset = HDF5Dataset(**files.arguments)
        check_rows(files, dataset, picks)
        check_runs(files, dataset)
        check_windows(files, dataset, arguments)
        for again in (pickle.loads(pickle.dumps(dataset)),
                      eval(repr(dataset))):
            check_rows(files, again, picks)
            again.close(None)
        dataset.close(None)


CASES = given(plans(), st.lists(st.integers(0, 30), min_size=1, max_size=8),
              WINDOWS)


@settings(max_examples=60)
@CASES
def test_random_files_give_what_plain_python_reads(plan, picks, arguments):
    """Parts, columns, filters, types, runs, splits and windows are random."""
    check(plan, picks, arguments)


@pytest.mark.full
@pytest.mark.timeout(1200)
@settings(max_examples=3000)
@CASES
def test_many_random_files_give_what_plain_python_reads(plan, picks,
                                                        arguments):
    """Three thousand files are read."""
    check(plan, picks, arguments)
