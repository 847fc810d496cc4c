"""Whole runs, against plain slices."""
import gc
import weakref

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

from fuel.datasets import IndexableDataset, NPYDataset, Runs
from fuel.schemes import SequentialScheme
from fuel.streams import DataStream
from fuel.transformers import Padding

KINDS = 'npy', 'npz', 'hdf5', 'memory', 'get_data'


@pytest.mark.parametrize('cases', [
    200, pytest.param(3000, marks=pytest.mark.full)])
def test_random_runs_are_slices(cases, tmp_path):
    """Whatever the split, and what says where they lie."""
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
                     rng.randint(3 if kind in KINDS[:3] else 1)]
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
    """Also where a batch has none but these."""
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
    """As those of other sources of variable length."""
    runs = Runs(IndexableDataset({'x': numpy.arange(5.)}),
                runs={'lengths': [2, 3]})
    stream = Padding(DataStream(
        runs, iteration_scheme=SequentialScheme(2, 2)))
    x, mask = next(stream.get_epoch_iterator())
    assert_array_equal(x, [[0, 1, 0], [2, 3, 4]])
    assert_array_equal(mask, [[1, 1, 0], [1, 1, 1]])


def test_types_of_runs_are_known():
    """But for their lengths."""
    runs = Runs(IndexableDataset({'x': numpy.zeros((4, 2), 'float32')}))
    assert runs.known_types()['x'] == ('float32', (None, 2))
    assert 'x float32 (?, 2)' in repr(runs)
