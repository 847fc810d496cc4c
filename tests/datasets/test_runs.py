"""Whole runs, against plain slices."""
import gc
import weakref

import h5py
import numpy
import pytest
from numpy.testing import assert_array_equal
from support.runs import (
    GetDataAlone,
    joined,
    lay_out,
    rows_of_runs,
    stretches,
)
from support.sparse_rows import SparseDataset, random_csr

from fuel.datasets import (
    Constant,
    HDF5Dataset,
    IndexableDataset,
    NPYDataset,
    Runs,
    Windows,
)
from fuel.schemes import SequentialScheme
from fuel.streams import DataStream
from fuel.transformers import Cast, Padding

KINDS = 'npy', 'npz', 'hdf5', 'parts', 'memory', 'get_data'


@pytest.mark.parametrize('cases', [
    200, pytest.param(3000, marks=pytest.mark.full)])
def test_random_runs_are_slices(cases, tmp_path):
    """Any split, and any description of runs, gives the runs of a loop."""
    rng = numpy.random.RandomState(cases)
    for case in range(cases):
        kind = KINDS[case % len(KINDS)]
        lengths = rng.randint(0, 12, rng.randint(1, 8))
        count = int(lengths.sum())
        if not count:
            continue
        # Rows of a few bytes are read together, those of many one by one.
        arrays = {
            'x': rng.randint(0, 255, (count, 2, 3)).astype('uint8'),
            'y': rng.randn(count, (1, 3000)[case % 2])}
        order = [slice(0, count), slice(count // 4, count - count // 5),
                 numpy.flatnonzero(rng.randint(6, size=count))][
                     rng.randint(3 if kind in KINDS[:4] else 1)]
        rows = numpy.arange(count)[order]
        if not len(rows):
            continue
        given = lay_out(rng, lengths)
        runs = Runs(joined(kind, tmp_path, arrays, order), runs=given)
        loop = [run for _, run in stretches(rows_of_runs(lengths), rows)]
        if len(rows) == count and ('lengths' in given or 'offsets' in given):
            # Runs without rows are there where all rows are.
            loop = rows_of_runs(lengths)
        assert len(runs) == len(loop)
        chosen = rng.randint(len(loop), size=4).tolist()
        batch = runs.get_data(None, chosen)
        for part, source in zip(batch, runs.sources, strict=True):
            assert part.dtype == object and part.shape == (4,)
            for place, run in enumerate(chosen):
                wanted = arrays[source][loop[run]]
                assert part[place].dtype == wanted.dtype
                assert part[place].flags.writeable
                assert_array_equal(part[place], wanted)
        one = runs.get_data(None, chosen[0])
        assert_array_equal(one[0], arrays['x'][loop[chosen[0]]])


def test_runs_without_rows_are_examples():
    """A batch may have such runs alone."""
    for rows in (IndexableDataset({'x': numpy.zeros((3, 2)),
                                   'y': ['a', 'b', 'c']}),
                 GetDataAlone({'x': numpy.zeros((3, 2)),
                               'y': numpy.zeros(3)})):
        runs = Runs(rows, runs={'lengths': [0, 3, 0]})
        x, y = runs.get_data(None, [2, 0])
        assert [part.shape for part in x] == [(0, 2), (0, 2)]
        assert [len(part) for part in y] == [0, 0]


def test_run_does_not_keep_others_in_memory(tmp_path):
    """One that is kept is a copy of its own."""
    numpy.save(tmp_path / 'a.npy', numpy.arange(1000))
    runs = Runs(NPYDataset(tmp_path / 'a.npy'), runs={'lengths': [10] * 100})
    batch = runs.get_data(None, list(range(100)))[0]
    kept = batch[3]
    other = weakref.ref(batch[4])
    del batch
    gc.collect()
    assert other() is None and kept.base is None
    assert kept.tolist() == list(range(30, 40))


def test_texts_stay_lists():
    """A batch is a list of lists."""
    runs = Runs(IndexableDataset({'word': [
        'the', 'cat', 'sat', 'a', 'dog']}),
                runs={'offsets': [0, 3, 5]})
    assert runs[1] == (['a', 'dog'],)
    assert runs[[1, 0]] == ([['a', 'dog'], ['the', 'cat', 'sat']],)


def test_batches_of_runs_can_be_padded():
    """Other sources of variable length can be padded in the same way."""
    runs = Runs(IndexableDataset({'x': numpy.arange(5.)}),
                runs={'lengths': [2, 3]})
    stream = Padding(DataStream(
        runs, iteration_scheme=SequentialScheme(2, 2)))
    x, mask = next(stream.get_epoch_iterator())
    assert_array_equal(x, [[0, 1, 0], [2, 3, 4]])
    assert_array_equal(mask, [[1, 1, 0], [1, 1, 1]])


def test_types_of_runs_are_known():
    """The lengths of runs are not known beforehand."""
    runs = Runs(IndexableDataset({'x': numpy.zeros((4, 2), 'float32')}))
    assert runs.known_types()['x'][:2] == ('float32', (None, 2))
    assert 'x float32 (?, 2)' in repr(runs)


def test_run_lies_in_the_file_of_its_part(tmp_path):
    """Each of many files is named by its rows."""
    for number in range(12):
        with h5py.File(tmp_path / f'{number}.h5', 'w') as file:
            file['x'] = numpy.full(number % 3 + 1, number)
    runs = Runs(HDF5Dataset(str(tmp_path / '*.h5'), ['x']))
    assert [part.tolist() for part in runs[:][0]] == [
        [number] * (number % 3 + 1) for number in range(12)]
    assert [runs.provenance(run) for run in (0, 11)] == [
        (str(tmp_path / '0.h5'), 0, 0, '', 0),
        (str(tmp_path / '11.h5'), 11, 21, '', 0)]


def test_pipelines_have_the_runs_of_their_data_sets(tmp_path):
    """Rows that a stage makes lie in the runs of those that it reads."""
    numpy.save(tmp_path / 'a.npy', numpy.arange(12))
    rows = NPYDataset(tmp_path / 'a.npy', ('a',), {'a': [0, 1, 2, 4, 5, 6, 7]})
    made = Cast(DataStream(rows, iteration_scheme=SequentialScheme(7, 4)),
                'float32').as_dataset()
    assert [run.tolist() for run in Runs(made)[:][0]] == [
        [0, 1, 2], [4, 5, 6, 7]]
    made = Cast(DataStream(
        Windows(rows, 2), iteration_scheme=SequentialScheme(5, 4)),
        'float32').as_dataset()
    assert [run[:, 0].tolist() for run in Runs(made)[:][0]] == [
        [0, 1], [4, 5, 6]]
    assert Runs(made)[0][0].dtype == 'float32'


def test_demonstrations_of_robomimic(tmp_path):
    """Parts are runs in the order of their numbers; splits have whole ones;
    a split by rows cuts them."""
    with h5py.File(tmp_path / 'demos.hdf5', 'w') as file:
        for number in (0, 1, 2, 10, 11):
            file[f'data/demo_{number}/actions'] = numpy.full(
                (number + 2, 7), number)
            file[f'data/demo_{number}/obs/image'] = numpy.arange(
                number + 2, dtype='uint8')[:, None, None]
        file['mask/valid'] = numpy.array([b'demo_10', b'demo_1'])
    columns = ['actions', 'obs/image']
    valid = HDF5Dataset(tmp_path / 'demos.hdf5', columns,
                        parts='data/demo_*', splits='mask',
                        which_sets=('valid',))
    actions, image = Runs(valid)[:]
    assert [part[:, 0].tolist() for part in actions] == [[1] * 3, [10] * 12]
    assert [part.ravel().tolist() for part in image] == [
        [0, 1, 2], list(range(12))]
    windows = Windows(valid, 10, pad='edge', pad_before=9)
    assert len(windows) == len(valid) == 15
    part = HDF5Dataset(tmp_path / 'demos.hdf5', columns,
                       parts='data/demo_*', splits={'some': (3, 8)},
                       which_sets=('some',))
    assert [run[:, 0].tolist() for run in Runs(part)[:][0]] == [
        [1, 1], [2, 2, 2]]
    assert Runs(part).run_numbers.tolist() == [0, 1]


def test_runs_without_rows_have_values_of_their_own(tmp_path):
    """They are not those of the run after them; the last run has some, too."""
    path = tmp_path / 'a.h5'
    with h5py.File(path, 'w') as file:
        for number, count in enumerate([0, 3, 0, 2, 0]):
            file[f'{number}/x'] = numpy.arange(count)
            file[f'{number}/value'] = float(number)
    dataset = HDF5Dataset(path, ['x', Constant('value')], parts='*')
    runs = Runs(dataset)
    x, value = runs.get_data(None, [4, 3, 0, 1, 2])
    assert [0, 2, 0, 3, 0] == list(map(len, x))
    assert [4, 3, 0, 1, 2] == value.tolist()
    assert 4. == runs.get_data(None, 4)[1]
    stream = DataStream(runs, iteration_scheme=SequentialScheme(5, 2))
    assert [[0, 1], [2, 3], [4]] == [
        value.tolist() for _, value in stream.get_epoch_iterator()]
    assert [1, 1, 3] == Windows(dataset, 2).get_data(
        None, slice(0, 3))[1].tolist()
    # Of other runs, one without rows has no value: rows come as they are.
    others = Runs(dataset, runs={'lengths': [3, 0, 2]})
    assert [[1, 1, 1], [], [3, 3]] == [
        value.tolist() for value in others.get_data(None, [0, 1, 2])[1]]


def test_sparse_sources_are_left_out_or_refused():
    """An example of them is one row: `sources` leaves them out."""
    dataset = SparseDataset(random_csr(6, 4))
    for make in (Runs, lambda one, **more: Windows(one, 2, **more)):
        with pytest.raises(TypeError, match="source 'x' is sparse"):
            make(dataset)
        with pytest.raises(TypeError, match="source 'x' is sparse"):
            make(dataset, sources=('y', 'x'))
        made = make(dataset, sources=('y',))
        assert ('y',) == made.provides_sources
        assert [0, 1] == made.get_data(None, 0)[0][:2].tolist()
    dataset.sources = ('x',)
    with pytest.raises(TypeError, match="source 'x' is sparse"):
        Runs(dataset, sources=('y',))


@pytest.mark.parametrize(('name', 'column'), [('x', 0), ('y', 2), ('y', -1)])
def test_columns_that_no_table_has_are_refused(name, column):
    """An array of one axis has no column, and a table has no column beyond its
    last."""
    rows = IndexableDataset({
        'x': numpy.arange(4), 'y': numpy.ones((4, 2), int)})
    with pytest.raises(ValueError, match=rf'no column {column}, the shape'):
        Runs(rows, runs={'lengths': (name, column)})
