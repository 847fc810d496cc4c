"""Random layouts: parts, runs, columns, filters, types, splits and windows,
against a plain Python oracle."""
import h5py
import numpy
import pytest

from fuel.datasets import (
    CSR, Categorical, Constant, HDF5Dataset, PerRun, Ragged, Rows, Runs,
    Windows)
from support.layouts.comparing import as_lists

FILTERS = ({}, {'chunks': True}, {'chunks': True, 'compression': 'gzip'},
           {'chunks': True, 'compression': 'lzf', 'shuffle': True})
TYPES = ('u1', '<i2', '>i4', '<f4', '>f8', '?', 'S4')
BRIEF, FULL = 60, 3000


class Layout:
    """A random file, how it is opened, and what must come out.

    Attributes
    ----------
    values : dict of list
        For each source its rows.
    bounds : list of int
        Of the runs.

    """

    def __init__(self, seed, folder):
        self.rng = numpy.random.default_rng(seed)
        self.has_groups = self.rng.random() < .6
        self.num_parts = int(self.rng.integers(1, 7))
        self.lengths = self.rng.integers(0, 9, self.num_parts).tolist()
        if not sum(self.lengths):
            self.lengths[-1] = 3
        self.count = sum(self.lengths)
        self.values, self.columns, self.stored = {}, {}, []
        for number in range(self.rng.integers(1, 5)):
            self.add_column(f's{number}' if self.rng.random() < .5
                            else f'deep/s{number}')
        if not any(isinstance(column, (str, Rows, CSR, Categorical, Ragged))
                   for column in self.columns.values()):
            self.add_rows('rows')
        self.add_runs()
        self.write(folder)

    def add_column(self, name):
        """Add a column of a random kind."""
        kinds = (self.add_rows, self.add_rows, self.add_field, self.add_csr,
                 self.add_categorical, self.add_ragged, self.add_constant)
        kinds[self.rng.integers(len(kinds))](name)

    def numbers(self, count, shape=(), dtype=None):
        """Return random data of a random type."""
        dtype = numpy.dtype(dtype or TYPES[self.rng.integers(len(TYPES))])
        found = self.rng.integers(65, 91, (count, *shape))
        if dtype.kind == 'S':
            return found.astype('S2').astype(dtype)
        return (found % 2 if dtype.kind == 'b' else found).astype(dtype)

    def options(self):
        """Return a random filter, for arrays that are not empty."""
        return FILTERS[self.rng.integers(len(FILTERS))]

    def put(self, part, name, array, options=None):
        """Note an array of a part."""
        self.stored.append((part, name, array, (
            self.options() if options is None else options)
            if array.ndim and array.size else {}))

    def add_rows(self, name):
        """Rows of an array, or what is left of them."""
        shape = tuple(self.rng.integers(1, 4, self.rng.integers(0, 3)))
        dtype = TYPES[self.rng.integers(len(TYPES))]
        start = int(self.rng.integers(0, 2))
        stop = -1 if self.rng.random() < .3 else None
        more, rows = start + (stop is not None), []
        for part, length in enumerate(self.lengths):
            array = self.numbers(length + more, shape, dtype)
            self.put(part, name, array)
            rows += list(array[start:stop].astype(
                array.dtype.newbyteorder('=')))
        self.columns[name] = Rows(name, start=start or None, stop=stop)
        self.values[name] = rows

    def add_field(self, name):
        """A field of a compound array."""
        kind = numpy.dtype([('a', '<i2'), ('b', '>f4', (2,)), ('c', 'u1')])
        rows = []
        for part, length in enumerate(self.lengths):
            array = numpy.zeros(length, kind)
            array['b'] = self.rng.integers(0, 9, (length, 2))
            self.put(part, name, array)
            rows += list(array['b'].astype('f4'))
        self.columns[name] = Rows(name, field='b')
        self.values[name] = rows

    def add_csr(self, name):
        """A sparse matrix, of the same columns in all parts."""
        self.values[name] = []
        for part, length in enumerate(self.lengths):
            dense = self.rng.integers(0, 3, (length, 6)).astype('f4')
            places = [numpy.flatnonzero(row) for row in dense]
            indptr = numpy.cumsum([0, *map(len, places)])
            indices = numpy.concatenate([*places, []]).astype('i4')
            data = numpy.concatenate([dense[row, place] for row, place in
                                      enumerate(places)] + [[]])
            self.put(part, f'{name}/data', data.astype('f4'))
            self.put(part, f'{name}/indices', indices)
            self.put(part, f'{name}/indptr', indptr)
            self.stored.append((part, name, (length, 6), None))
            self.values[name] += list(dense)
        self.columns[name] = CSR(name)

    def add_categorical(self, name):
        """Codes whose names differ from part to part."""
        united, rows = [], []
        for part, length in enumerate(self.lengths):
            names = self.rng.permutation(
                ['a', 'b', 'c', 'd'])[:self.rng.integers(1, 5)].tolist()
            codes = self.rng.integers(-1, len(names), length).astype('i1')
            self.put(part, f'{name}/codes', codes)
            self.put(part, f'{name}/categories',
                     numpy.array(names, object), {})
            united += [one for one in names if one not in united]
            rows += [united.index(names[code]) if code >= 0 else -1
                     for code in codes.tolist()]
        self.columns[name] = Categorical(name)
        self.values[name] = rows

    def add_ragged(self, name):
        """Examples of different lengths."""
        rows = []
        for part, length in enumerate(self.lengths):
            counts = self.rng.integers(0, 4, length)
            values = self.numbers(int(counts.sum()), (), '<f4')
            self.put(part, f'{name}/values', values)
            self.put(part, f'{name}/lengths', counts)
            ends = numpy.cumsum(counts)
            rows += [values[end - count:end] for end, count in zip(
                ends, counts, strict=True)]
        self.columns[name] = Ragged(f'{name}/values',
                                    lengths=f'{name}/lengths')
        self.values[name] = rows

    def add_constant(self, name):
        """A value for each part."""
        self.values[name] = []
        for part, length in enumerate(self.lengths):
            value = self.numbers(1, (2,), '<i4')[0]
            self.put(part, name, value, {})
            self.values[name] += [value] * length
        self.columns[name] = Constant(name)

    def add_runs(self):
        """Runs by one of the ways to say them, and a value for each."""
        self.runs, kinds = None, ['parts', 'lengths', 'ends', 'all']
        kind = kinds[self.rng.integers(len(kinds))]
        starts = numpy.cumsum(self.lengths) - self.lengths
        self.bounds = [*starts.tolist(), self.count]
        if kind == 'all':
            self.runs, self.bounds = 'all', [0, self.count]
        if kind in ('lengths', 'ends'):
            self.runs, self.bounds = {kind: 'run'}, []
            counts = []
            for part, (length, start) in enumerate(zip(
                    self.lengths, starts.tolist(), strict=True)):
                cuts = sorted(self.rng.integers(0, length + 1, 2).tolist())
                if kind == 'ends':
                    cuts = sorted({*cuts} - {0, length})
                bounds = [0, *cuts, length] if length or kind == 'lengths' \
                    else [0]
                counts.append(len(bounds) - 1)
                lengths = numpy.diff(bounds)
                ends = numpy.zeros(length, bool)
                ends[[bound - 1 for bound in bounds[1:-1] if bound]] = True
                self.put(part, 'run', lengths if kind == 'lengths' else ends,
                         {})
                self.bounds += [start + bound for bound in bounds[:-1]]
            self.bounds.append(self.count)
            if kind == 'lengths':
                rows = []
                for part, count in enumerate(counts):
                    values = self.numbers(count, (), '<i8')
                    self.put(part, 'of_run', values)
                    rows += values.tolist()
                self.columns['of_run'] = PerRun('of_run')
                self.values['of_run'] = [
                    row for row, length in zip(
                        rows, numpy.diff(self.bounds), strict=True)
                    for _ in range(length)]

    def write(self, folder):
        """Write parts as groups of a file, or as files."""
        places = []
        for part in range(self.num_parts):
            # Names whose natural order is not that of text.
            number = 8 + part
            places.append((folder / 'all.h5', f'data/part_{number}/')
                          if self.has_groups
                          else (folder / f'part_{number}.h5', ''))
        for path in {path for path, _ in places}:
            with h5py.File(path, 'w') as file:
                for part, (own, prefix) in enumerate(places):
                    if own == path:
                        self.write_part(file, part, prefix)
        self.files = (str(folder / 'all.h5') if self.has_groups
                      else str(folder / 'part_*.h5'))
        self.parts = 'data/part_*' if self.has_groups else None

    def write_part(self, file, part, prefix):
        """Write the arrays of a part."""
        for number, name, array, options in self.stored:
            if number != part:
                continue
            if options is None:
                file[f'{prefix}{name}'].attrs.update({
                    'encoding-type': 'csr_matrix', 'shape': array})
            else:
                file.create_dataset(f'{prefix}{name}', data=array, **options)

    def open(self, **kwargs):
        """Return the data set."""
        return HDF5Dataset(self.files, self.columns, parts=self.parts,
                           runs=self.runs, **kwargs)


def assert_rows(values, rows, found):
    """Compare rows of a source."""
    assert as_lists([numpy.asarray(values[row]) for row in rows]) == (
        as_lists(found.toarray() if hasattr(found, 'toarray') else found))


def check(seed, folder):
    """Read a random layout in every way, and compare."""
    layout = Layout(seed, folder)
    rng, count, values = layout.rng, layout.count, layout.values
    dataset = layout.open()
    assert count == dataset.num_examples
    assert layout.bounds == dataset.runs.tolist()
    for rows in (numpy.arange(count), rng.integers(0, count, 5),
                 rng.permutation(count)):
        batch = dataset.get_data(None, rows)
        for source, found in zip(dataset.sources, batch, strict=True):
            assert_rows(values[source], rows, found)
    kept = numpy.flatnonzero(rng.random(count) < .7)
    # A row is left out if a column that begins later has its next row
    # elsewhere; without such columns all are kept.
    starts = {column.first_row for column in layout.columns.values()
              if column.counts_rows}
    if len(kept) and len(starts) == 1:
        split = layout.open(splits={'a': kept}, which_sets=('a',))
        rows = rng.permutation(len(kept))
        for source, found in zip(split.sources, split.get_data(None, rows),
                                 strict=True):
            assert_rows(values[source], kept[rows], found)
        check_windows(split, kept, layout, rng)
        split.close(None)
    check_windows(dataset, numpy.arange(count), layout, rng)
    dataset.close(None)


def check_windows(dataset, rows, layout, rng):
    """Compare windows and runs with slices of lists."""
    of_row = numpy.searchsorted(layout.bounds, rows, 'right') - 1
    stretches, first = [], 0
    for place in range(1, len(rows) + 1):
        if place == len(rows) or rows[place] != rows[place - 1] + 1 or (
                of_row[place] != of_row[place - 1]):
            stretches.append(rows[first:place].tolist())
            first = place
    length, step = int(rng.integers(1, 4)), int(rng.integers(1, 3))
    stride = int(rng.integers(1, 3))
    expected = [stretch[start:start + (length - 1) * step + 1:step]
                for stretch in stretches
                for start in range(0, len(stretch) - (length - 1) * step,
                                   stride)]
    dense = [source for source, column in layout.columns.items()
             if not isinstance(column, (CSR, Constant, PerRun, Ragged))]
    if not dense:
        return
    windows = Windows(dataset, length, step=step, stride=stride,
                      sources=dense) if not any(
                          isinstance(column, (CSR, Ragged))
                          for column in layout.columns.values()) else None
    if windows is None:
        return
    assert len(expected) == len(windows)
    if expected:
        order = rng.permutation(len(expected))
        for source, found in zip(windows.sources, windows.get_data(
                None, order), strict=True):
            assert as_lists([[numpy.asarray(layout.values[source][row])
                              for row in expected[place]]
                             for place in order]) == as_lists(found)
    runs = Runs(dataset, sources=dense)
    whole = [stretch for stretch in stretches if stretch]
    if len(whole) == len(runs) and whole:
        for source, found in zip(runs.sources, runs.get_data(
                None, slice(0, len(runs))), strict=True):
            assert as_lists([[numpy.asarray(layout.values[source][row])
                              for row in stretch]
                             for stretch in whole]) == as_lists(found)


@pytest.mark.parametrize('first', range(0, BRIEF, 20))
def test_random_layouts(first, tmp_path):
    """What comes out is what a loop in Python finds."""
    run(range(first, first + 20), tmp_path)


@pytest.mark.full
@pytest.mark.parametrize('first', range(BRIEF, FULL, 490))
def test_many_random_layouts(first, tmp_path):
    """The same, of other seeds."""
    run(range(first, first + 490), tmp_path)


def run(seeds, folder):
    """Check layouts; a failure names its seed."""
    for seed in seeds:
        own = folder / str(seed)
        own.mkdir()
        try:
            check(seed, own)
        except Exception as error:
            error.add_note(f'random layout of seed {seed}')
            raise
