"""Random files of parts, and what a data set over them must hold.

A plan says what is in the files; what it draws is small, so that Hypothesis
finds a small one that fails. Rows, runs and splits are worked out here in the
plainest way.
"""
from typing import NamedTuple

import h5py
import numpy
from hypothesis import strategies as st

from fuel.datasets.columns import (
    CSR, Categorical, Constant, Flat, PerRun, PerStep, Ragged, Rows, Scaled)

DTYPES = ('uint8', '<f4', '>i2', '>f8', 'bool', 'int64')
FILTERS = ({}, {'chunks': True}, {'compression': 'gzip'},
           {'compression': 'lzf', 'shuffle': True},
           {'compression': 'gzip', 'shuffle': True, 'fletcher32': True})
# Columns with a row for each row of the data set, and those with others.
KINDS = ('plain', 'field', 'fields', 'later', 'axis', 'text', 'bytes',
         'category', 'csr', 'dense', 'scaled', 'ragged', 'varied')
SHARED = ('constant', 'per run', 'per step')
RUNS = (None, 'all', 'lengths', 'offsets', 'ends', 'numbers')


class Plan(NamedTuple):
    """A drawn content of files.

    `seed`: of their values.
    `groups`: whether parts are groups of the files, else the files.
    `files`: for each file, the shape of its parts: (rows,), or
        (trajectories, steps) where first axes are flattened.
    `sources`: kind, dtype, row shape, filters and chunk length of each.
    `runs`: how they are told apart.
    `splits`: what is given, by name.
    `which_sets`: those that are used, None for all rows.
    """

    seed: int
    groups: bool
    files: list
    sources: list
    runs: str | None
    splits: dict
    which_sets: list | None

    @property
    def parts(self):
        """The shapes of all parts."""
        return [part for file in self.files for part in file]


@st.composite
def plans(draw):
    """Draw a plan of at least one row."""
    groups, is_flat = draw(st.booleans()), draw(st.sampled_from([0, 0, 0, 1]))
    part = st.tuples(*[st.integers(0, 4)] * 2) if is_flat else st.tuples(
        st.integers(0, 6))
    parts = st.lists(part, min_size=1, max_size=4 if groups else 1)
    files = draw(st.lists(parts, min_size=1, max_size=3).filter(
        lambda files: sum(numpy.prod(part) for file in files
                          for part in file)))
    kinds = st.sampled_from(KINDS + ('flat', 'flat') * is_flat)
    source = st.tuples(
        kinds, st.sampled_from(DTYPES),
        st.sampled_from([(), (1,), (3,), (2, 2)]),
        st.sampled_from(FILTERS), st.integers(1, 4))
    sources = draw(st.lists(source, min_size=1, max_size=3))
    if is_flat:
        sources.append(draw(source.map(lambda one: ('flat', *one[1:]))))
    runs = draw(st.sampled_from(RUNS))
    # A run of several parts has no row in one of them.
    shared = SHARED[:1] if runs == 'all' else SHARED
    sources += draw(st.lists(source.flatmap(lambda one: st.sampled_from(
        shared).map(lambda kind: (kind, *one[1:]))), max_size=2))
    count = int(sum(numpy.prod(part) for file in files for part in file))
    row = st.integers(0, count - 1)
    names = [f'part_{number}' for number in PART_NUMBERS]
    chosen = {
        'range': st.tuples(row, row).map(
            lambda pair: (min(pair), max(pair) + 1)),
        # Two could be meant as a range.
        'list': st.lists(row, min_size=1, max_size=8, unique=True).filter(
            lambda rows: len(rows) != 2)}
    splits = draw(st.dictionaries(st.sampled_from(['train', 'valid']),
                                  st.one_of(*chosen.values()), max_size=2))
    if groups and len(files) == 1 and draw(st.booleans()):
        known = [name for name, shape in zip(names, files[0], strict=False)
                 if numpy.prod(shape)]
        splits['parts'] = draw(st.lists(
            st.sampled_from(known), min_size=1, unique=True))
    return Plan(draw(st.integers(0, 2 ** 20)), groups, files, sources,
                runs, splits,
                draw(st.none() | st.lists(
                    st.sampled_from([*splits]), min_size=1,
                    unique=True)) if splits else None)


# In natural order, which HDF5 does not have.
PART_NUMBERS = (2, 9, 10, 100)


class Files(NamedTuple):
    """Files that were written, and the arguments to open them.

    `values`: for each source an array, or list, of the rows of all parts.
    `bounds`: of the runs.
    `rows`: the rows of the splits, in the order of the examples.
    `once`: the sources that have one value for each run.
    """

    arguments: dict
    values: dict
    bounds: list
    rows: list
    once: list


def write_files(folder, plan):
    """Write the files of a plan."""
    rng = numpy.random.default_rng(plan.seed)
    paths, places = [], []
    for number, parts in enumerate(plan.files):
        path = folder / f'{number}.h5'
        paths.append(str(path))
        with h5py.File(path, 'w') as file:
            if plan.groups:
                # Not in their order.
                for name in reversed(PART_NUMBERS[:len(parts)]):
                    file.create_group(f'in/part_{name}')
        places += [(path, f'in/part_{PART_NUMBERS[place]}'
                    if plan.groups else '/') for place in range(len(parts))]
    lengths = [cut(rng, shape, plan) for shape in plan.parts]
    columns, values = {}, {}
    for number, (kind, dtype, shape, filters, chunk) in enumerate(
            plan.sources):
        name = f'{kind.replace(" ", "_")}_{number}' + '/x' * (number % 2)
        source = Source(name, kind, numpy.dtype(dtype), shape, filters, chunk)
        made = []
        for part, (place, runs) in enumerate(
                zip(places, lengths, strict=True)):
            with h5py.File(place[0], 'r+') as file:
                made.append(WRITERS[kind](
                    file[place[1]], source, rng, plan.parts[part], runs))
        for source_name, column, rows in JOINS[kind](source, made, lengths):
            columns[source_name] = column
            values[source_name] = rows
    for place, runs in zip(places, lengths, strict=True):
        with h5py.File(place[0], 'r+') as file:
            write_runs(file[place[1]], plan.runs, runs, rng)
    given = {'ends': ('terminals', 'timeouts')}.get(plan.runs, 'of_runs')
    arguments = {
        'files': str(folder / '*.h5') if plan.seed % 2 else paths,
        'columns': columns,
        'parts': 'in/part_*' if plan.groups else None,
        'runs': plan.runs if plan.runs in (None, 'all') else {
            plan.runs: given},
        'splits': plan.splits or None, 'which_sets': plan.which_sets}
    counts = [sum(runs) for runs in lengths]
    bounds = [0, *numpy.cumsum([run for runs in lengths for run in runs])]
    if plan.runs == 'all':
        bounds = [0, sum(counts)]
    # Unless a run goes through several parts.
    is_once = {*numpy.cumsum(counts).tolist()} <= {*bounds}
    once = [source for source, column in columns.items() if isinstance(
        column, (Constant, PerRun) if is_once else PerRun)]
    rows = find_rows(plan, counts, any(
        kind == 'later' for kind, *_ in plan.sources))
    return Files(arguments, values, [int(one) for one in bounds], rows, once)


def cut(rng, shape, plan):
    """Return the lengths of the runs of a part."""
    count = int(numpy.prod(shape))
    if plan.runs is None:
        return [shape[1]] * shape[0] if len(shape) > 1 else [count]
    if plan.runs == 'all':
        return [count]
    lengths = []
    while sum(lengths) < count:
        lengths.append(int(rng.integers(
            plan.runs in ('ends', 'numbers'), count - sum(lengths) + 1)))
    return lengths


def write_runs(group, kind, lengths, rng):
    """Write what says where the runs of a part are."""
    count = sum(lengths)
    if kind == 'lengths':
        group['of_runs'] = numpy.array(lengths, 'i4')
    elif kind == 'offsets':
        group['of_runs'] = numpy.array([0, *numpy.cumsum(lengths)], 'i8')
    elif kind == 'numbers':
        group['of_runs'] = numpy.repeat(
            rng.permutation(len(lengths)), lengths)
    elif kind == 'ends':
        ends = numpy.cumsum(lengths, dtype=int) - 1
        # The end of the last run need not be marked.
        ends = ends[:len(ends) - rng.integers(2)]
        marks = numpy.zeros((2, count), bool)
        marks[rng.integers(0, 2, len(ends)), ends] = True
        group['terminals'], group['timeouts'] = marks


def find_rows(plan, counts, has_later):
    """Return the rows of the splits that are used."""
    if plan.which_sets is None:
        return list(range(sum(counts)))
    bounds = [0, *numpy.cumsum(counts).tolist()]
    rows = []
    for name in plan.which_sets:
        for one in ([plan.splits[name]] if isinstance(
                plan.splits[name], tuple) else plan.splits[name]):
            if isinstance(one, tuple):
                rows += range(*one)
            elif isinstance(one, str):
                part = PART_NUMBERS.index(int(one.split('_')[1]))
                rows += range(bounds[part], bounds[part + 1])
            else:
                rows.append(one)
    # The next row is read too, and is not of another split.
    return [row for row in rows if not has_later or row + 1 in rows
            or row + 1 in bounds]


class Source(NamedTuple):
    """A source to be written."""

    name: str
    kind: str
    dtype: numpy.dtype
    shape: tuple
    filters: dict
    chunk: int


def random_rows(rng, count, source):
    """Return rows of a source's type and shape."""
    return rng.integers(0, 100, (count, *source.shape)).astype(source.dtype)


def write_array(group, name, array, source):
    """Write an array with a source's filters and chunks."""
    filters = dict(source.filters)
    if filters and array.size:
        filters['chunks'] = (min(source.chunk, len(array)), *array.shape[1:])
    elif not array.size:
        filters = {}
    group.create_dataset(name, data=array, **filters)
    return array


def native(array):
    """Return an array in native byte order."""
    return array.astype(array.dtype.newbyteorder('='))


def joined(arrays):
    """Return the rows of all parts as one array."""
    return native(numpy.concatenate(arrays))


def plain(group, source, rng, shape, runs):
    """Write one row for each row."""
    return write_array(group, source.name, random_rows(
        rng, int(numpy.prod(shape)), source), source)


def later(group, source, rng, shape, runs):
    """Write one row more than there are."""
    return write_array(group, source.name, random_rows(
        rng, int(numpy.prod(shape)) + 1, source), source)


def flat(group, source, rng, shape, runs):
    """Write rows in two axes."""
    rows = random_rows(rng, int(numpy.prod(shape)), source)
    write_array(group, source.name,
                rows.reshape(*shape, *source.shape), source)
    return rows


def compound(group, source, rng, shape, runs):
    """Write a table of three columns."""
    rows = random_rows(rng, int(numpy.prod(shape)), source)
    table = numpy.zeros(len(rows), [
        ('a', 'i1'), ('b', source.dtype, source.shape), ('c', '>f4')])
    table['a'], table['b'] = rng.integers(0, 9, len(rows)), rows
    table['c'] = rng.random(len(rows))
    return write_array(group, source.name, table, source)


def last_axis(group, source, rng, shape, runs):
    """Write rows along the last axis."""
    rows = random_rows(rng, int(numpy.prod(shape)), source)
    group[source.name] = numpy.moveaxis(rows, 0, -1)
    return rows


def text(group, source, rng, shape, runs):
    """Write text of variable length."""
    rows = numpy.array([f'é{one}' for one in rng.integers(
        0, 1000, int(numpy.prod(shape)))], object)
    group.create_dataset(source.name, data=rows, dtype=h5py.string_dtype())
    return rows


def fixed_text(group, source, rng, shape, runs):
    """Write text of a width that differs from part to part."""
    rows = rng.integers(0, 1000, int(numpy.prod(shape))).astype(
        f'S{rng.integers(3, 6)}')
    group[source.name] = rows
    return rows


def category(group, source, rng, shape, runs):
    """Write codes of names, which differ from part to part."""
    names = [f'kind {one}' for one in rng.permutation(5)[:rng.integers(1, 5)]]
    codes = rng.integers(-1, len(names), int(numpy.prod(shape)))
    group[f'{source.name}/codes'] = codes.astype('i1')
    group[f'{source.name}/categories'] = numpy.array(names, object)
    return codes, names


def csr(group, source, rng, shape, runs):
    """Write sparse rows of six columns, unsorted."""
    rows = numpy.zeros((int(numpy.prod(shape)), 6), source.dtype)
    values, indices, indptr = [], [], [0]
    for row in rows:
        columns = rng.permutation(6)[:rng.integers(0, 5)]
        row[columns] = rng.integers(1, 100, len(columns))
        values.append(row[columns])
        indices.append(columns)
        indptr.append(indptr[-1] + len(columns))
    below = group.create_group(source.name)
    below.attrs.update({'encoding-type': 'csr_matrix', 'shape': rows.shape})
    for name, parts, dtype in (('data', values, source.dtype),
                               ('indices', indices, 'i4')):
        write_array(below, name, numpy.concatenate(
            [numpy.zeros(0, dtype), *parts]).astype(dtype), source)
    below['indptr'] = numpy.array(indptr, 'i8')
    return native(rows)


def scaled(group, source, rng, shape, runs):
    """Write numbers in two bytes, some of them missing."""
    stored = rng.integers(-9, 9, (int(numpy.prod(shape)), 2)).astype('i2')
    write_array(group, source.name, stored, source)
    group[source.name].attrs.update({
        'scale_factor': numpy.array([.25]), '_FillValue': numpy.int16(-9),
        'add_offset': numpy.array([float(rng.integers(0, 3))])})
    values = stored * .25 + group[source.name].attrs['add_offset'][0]
    values[stored == -9] = numpy.nan
    return values


def ragged(group, source, rng, shape, runs):
    """Write rows of different lengths, one after the other."""
    lengths = rng.integers(0, 4, int(numpy.prod(shape)))
    values = write_array(group, source.name, random_rows(
        rng, int(lengths.sum()), source), source)
    group[f'of_{source.name}'] = lengths
    ends = numpy.cumsum(lengths)
    return [native(values[end - length:end])
            for end, length in zip(ends, lengths, strict=True)]


def varied(group, source, rng, shape, runs):
    """Write rows whose width differs from part to part."""
    rows = rng.integers(0, 100, (int(numpy.prod(shape)), rng.integers(
        1, 4))).astype(source.dtype)
    return list(native(write_array(group, source.name, rows, source)))


def constant(group, source, rng, shape, runs):
    """Write one value for the part."""
    value = random_rows(rng, 1, source)[0]
    group[source.name] = value
    return [native(numpy.asarray(value))] * int(numpy.prod(shape))


def per_run(group, source, rng, shape, runs):
    """Write a row for each run."""
    return numpy.repeat(write_array(group, source.name, random_rows(
        rng, len(runs), source), source), runs, axis=0)


def per_step(group, source, rng, shape, runs):
    """Write a row for each step of the longest run, and one more."""
    rows = write_array(group, source.name, random_rows(
        rng, max(runs, default=0) + 1, source), source)
    return numpy.concatenate([rows[:0], *[rows[:run] for run in runs]])


WRITERS = {
    'plain': plain, 'field': compound, 'fields': compound, 'later': later,
    'axis': last_axis, 'text': text, 'bytes': fixed_text,
    'category': category, 'csr': csr, 'dense': csr, 'scaled': scaled,
    'ragged': ragged, 'varied': varied, 'flat': flat, 'constant': constant,
    'per run': per_run, 'per step': per_step}


def simply(column):
    """Return how a source of one column is made of its parts."""
    def join(source, made, lengths):
        return [(source.name, column(source.name), joined(made))]
    return join


def as_list(column):
    """Return how a source of objects is made of its parts."""
    def join(source, made, lengths):
        return [(source.name, column(source.name),
                 [row for rows in made for row in rows])]
    return join


def join_later(source, made, lengths):
    """Make two sources, of each row and the next."""
    return [(source.name, Rows(source.name, stop=-1),
             joined([rows[:-1] for rows in made])),
            (f'next_{source.name}', Rows(source.name, start=1),
             joined([rows[1:] for rows in made]))]


def join_fields(source, made, lengths):
    """Make sources of one field and of two."""
    tables = numpy.concatenate(made)
    if source.kind == 'field':
        return [(source.name, Rows(source.name, field='b'),
                 native(tables['b']))]
    fields = numpy.zeros(len(tables), [
        ('c', 'f4'), ('a', 'i1')])
    for name in fields.dtype.names:
        fields[name] = tables[name]
    return [(source.name, Rows(source.name, field=['c', 'a']), fields)]


def join_categories(source, made, lengths):
    """Unite names in the order met."""
    names, codes = [], []
    for part_codes, part_names in made:
        names += [name for name in part_names if name not in names]
        codes += [-1 if code < 0 else names.index(part_names[code])
                  for code in part_codes]
    return [(source.name, Categorical(source.name), numpy.array(codes, 'i1'))]


def join_stacked(source, made, lengths):
    """Join values of one shape."""
    rows = [row for rows in made for row in rows]
    return [(source.name, Constant(source.name), numpy.stack(rows))]


JOINS = {
    'plain': simply(Rows), 'field': join_fields, 'fields': join_fields,
    'later': join_later, 'axis': simply(lambda name: Rows(name, axis=-1)),
    'text': simply(Rows), 'bytes': simply(Rows), 'category': join_categories,
    'csr': simply(CSR), 'dense': simply(lambda name: CSR(name, dense=True)),
    'scaled': simply(Scaled),
    'ragged': as_list(lambda name: Ragged(name, lengths=f'of_{name}')),
    'varied': as_list(lambda name: Rows(name, ragged=True)),
    'flat': simply(Flat), 'constant': join_stacked,
    'per run': simply(PerRun), 'per step': simply(PerStep)}
