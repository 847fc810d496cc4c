"""Random splits: whole, repeatable, with shares of each class."""
import json
import pickle
import warnings
from fractions import Fraction

import h5py
import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.runs import rows_of_runs, stretches

from fuel.datasets import (
    Categorical, H5PYDataset, HDF5Dataset, IndexableDataset, Runs, Windows,
    random_split)
from fuel.datasets.random_splits import held_out
from fuel.datasets.splits import ExampleSplits
from fuel.schemes import BalancedScheme, SequentialScheme, ShuffledScheme
from fuel.streams import DataStream
from fuel.transformers import Cast


@given(st.integers(2, 60), st.floats(.2, .8), st.integers(0, 5))
def test_random_split_is_a_partition(count, share, seed):
    """Every example is in one split, equal seeds give equal splits."""
    shares = {'train': None, 'test': share}
    if not 0 < round(count * share) < count:
        return
    found = random_split(count, shares, seed=seed)
    assert ['train', 'test'] == list(found)
    assert list(range(count)) == sorted(numpy.concatenate(
        list(found.values())).tolist())
    assert round(count * share) == len(found['test'])
    again = random_split(count, shares, seed=seed)
    assert all(numpy.array_equal(found[name], again[name]) for name in found)


@given(st.lists(st.sampled_from('abc'), min_size=8, max_size=60))
def test_stratified_split_has_its_share_of_each_class(classes):
    """The share is right to the nearest example."""
    if not any(round(classes.count(name) * .25) for name in 'abc'):
        return
    found = random_split(len(classes), {'train': None, 'test': .25},
                         seed=0, stratify=classes)
    for name in set(classes):
        there = sum(classes[row] == name for row in found['test'])
        assert round(classes.count(name) * .25) == there


def test_random_split_of_a_data_set():
    """Labels may be named as a source; the settings have the default seed."""
    dataset = IndexableDataset({'x': numpy.arange(10),
                                'y': numpy.array([0, 1] * 5)[:, None]})
    found = random_split(dataset, {'a': .6, 'b': .4}, stratify='y')
    assert [3, 3] == numpy.bincount(dataset[found['a']][1].ravel()).tolist()
    assert {5} == {len(rows) for rows in random_split(
        dataset, {'a': .5, 'b': .5}).values()}


def drawn_counts(rng, count, num_splits):
    """Return random counts of splits that add up, and their shares. One share
    may be None."""
    cuts = numpy.sort(rng.permutation(count - 1)[:num_splits - 1] + 1)
    counts = dict(zip('abcde', numpy.diff([0, *cuts, count]).tolist(),
                      strict=False))
    shares = dict(counts)
    if rng.randint(2):
        shares['abcde'[rng.randint(num_splits)]] = None
    if not any(share and share > 1 for share in shares.values()):
        return None
    return counts, shares


@pytest.mark.parametrize('cases', [
    150, pytest.param(3000, marks=pytest.mark.full)])
def test_counts_are_met_exactly_also_in_strata(cases):
    """No split is an example away from its exact share of a class, and of
    two splits those with the largest remainders are rounded up."""
    rng = numpy.random.RandomState(cases)
    for seed in range(cases):
        num_splits = rng.randint(2, 6)
        count = rng.randint(num_splits + 2, 80)
        drawn = drawn_counts(rng, count, num_splits)
        if drawn is None:
            continue
        counts, shares = drawn
        classes = rng.randint(rng.randint(1, 9), size=count).tolist()
        stratify = [None, classes][seed % 3 > 0]
        found = random_split(count, shares, seed=seed, stratify=stratify)
        assert counts == {name: len(rows) for name, rows in found.items()}
        assert list(range(count)) == sorted(numpy.concatenate(
            list(found.values())).tolist())
        again = random_split(count, shares, seed=seed, stratify=stratify)
        assert all((found[name] == again[name]).all() for name in found)
        if stratify is None:
            continue
        up, down = [], []
        for kind in set(classes):
            for name, rows in found.items():
                exact = Fraction(classes.count(kind) * counts[name], count)
                there = [classes[row] for row in rows].count(kind)
                assert abs(there - exact) < 1
                if num_splits == 2 and name == 'a':
                    (up if there > exact else down).append(exact % 1)
        assert not up or not down or min(up) >= max(down)


@pytest.mark.parametrize('cases', [
    100, pytest.param(2500, marks=pytest.mark.full)])
def test_counts_of_runs_are_the_nearest_whole_runs(cases):
    """The runs are cut where the numbers that they have so far come nearest;
    each split that has another number is named by a warning."""
    rng = numpy.random.RandomState(cases)
    for seed in range(cases):
        lengths = rng.randint(1, 9, rng.randint(4, 20)).tolist()
        count, num_splits = sum(lengths), rng.randint(2, 5)
        drawn = drawn_counts(rng, count, num_splits)
        if drawn is None:
            continue
        counts, shares = drawn
        rows = IndexableDataset({'x': numpy.arange(count)})
        rows.runs = numpy.cumsum([0, *lengths])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter('always')
            found = random_split(rows, shares, seed=seed, groups='runs')
        order = numpy.random.RandomState(seed).permutation(
            len(lengths)).tolist()
        names = [name for name in shares if shares[name] is not None]
        names += [name for name in shares if shares[name] is None]
        wanted = start = 0
        for place, name in enumerate(names):
            wanted += counts[name]
            left = num_splits - place - 1
            stop = len(order) if not left else min(
                range(start + 1, len(order) - left + 1), key=lambda stop:
                abs(sum(lengths[run] for run in order[:stop]) - wanted))
            assert sorted(order[start:stop]) == sorted({
                int(run) for run in numpy.searchsorted(
                    rows.runs, found[name], 'right') - 1})
            start = stop
        missed = [name for name, share in shares.items()
                  if share not in (None, len(found[name]))]
        assert bool(missed) == len(caught)
        for name in missed:
            assert (f'{name!r} has {len(found[name])} in the place of '
                    f'{shares[name]}') in str(caught[0].message)


def test_counts_equal_shares_of_the_same_size():
    """Equal seeds draw the same examples, NumPy's integers are integers, and
    1 by itself is the share of all."""
    shares = random_split(100, {'a': None, 'b': .2, 'c': .3}, seed=1)
    counts = random_split(
        100, {'a': None, 'b': numpy.int64(20), 'c': 30}, seed=1)
    assert all((shares[name] == counts[name]).all() for name in shares)
    assert [7] == [len(rows) for rows in random_split(7, {'a': 1}).values()]
    assert [1, 2] == [len(rows) for rows in random_split(
        3, {'a': 1, 'b': 2}).values()]


def test_counts_with_missing_classes_are_of_the_others():
    """Examples without a class are in no split."""
    with pytest.raises(ValueError, match=(
            'add up to 5, and there are 3 examples to split, since the '
            'class of 2 is missing')):
        random_split(5, {'a': 2, 'b': 3}, stratify=[0, -1, 1, -1, 0],
                     missing=-1)
    found = random_split(5, {'a': None, 'b': 2}, stratify=[0, -1, 1, -1, 0],
                         missing=-1)
    assert [1, 2] == [len(rows) for rows in found.values()]


@pytest.mark.parametrize('shares, text', [
    ({'a': 6, 'b': 3}, 'add up to 9, and there are 10 .*None for the rest'),
    ({'a': 10, 'b': None}, 'add up to 10, .* none is left for the rest'),
    ({'a': 11}, 'add up to 11'),
    ({'a': 9, 'b': .1}, 'or all must be positive integers'),
    ({'a': 10, 'b': 0}, 'or all must be positive integers'),
    ({'a': 9., 'b': 1.}, 'or all must be positive integers'),
    ({'a': 9, 'b': True}, 'or all must be positive integers'),
    ({'a': 8, 'b': None, 'c': None}, 'one must be None'),
    ({'a': 1, 'b': None}, 'one of them above 1: .* integer of 1 is a share')],
    ids=['sum', 'rest', 'more', 'mixed', 'zero', 'floats', 'truth', 'rests',
         'one'])
def test_counts_that_cannot_be_are_refused(shares, text):
    """The text says why, with groups too."""
    with pytest.raises(ValueError, match=text):
        random_split(10, shares)
    rows = IndexableDataset({'x': numpy.arange(10)})
    rows.runs = numpy.arange(11)
    with pytest.raises(ValueError, match=text):
        random_split(rows, shares, groups='runs')


def write_cells(path, codes):
    """Write codes of categories as AnnData does, and return the path."""
    with h5py.File(path, 'w') as file:
        file['x'] = numpy.arange(len(codes))
        file['kind/codes'] = numpy.array(codes, 'int8')
        file['kind/categories'] = ['B', 'T']
    return path


def test_codes_of_missing_categories_are_not_a_class(tmp_path):
    """Missing codes are in no split, are not drawn, and are counted by a
    warning. A plain array has the class -1, unless `missing` says
    otherwise."""
    codes = [0, -1, 1, 1, -1, 0, 1, -1, 0, 1, 1, 1]
    path = write_cells(tmp_path / 'x.h5', codes)
    dataset = HDF5Dataset(path, ['x', Categorical('kind')], splits={
        'late': (1, 12)}, which_sets=('late',))
    late = numpy.array(codes[1:])
    labels = dataset.read_labels('kind')
    assert labels.mask.tolist() == (late < 0).tolist()
    assert labels.data.tolist() == late.tolist()
    shares = {'a': .5, 'b': None}
    with pytest.warns(UserWarning, match='3 of 11 labels are missing'):
        splits = random_split(dataset, shares, stratify='kind', seed=3)
    found = numpy.concatenate(list(splits.values()))
    assert sorted(found.tolist()) == numpy.flatnonzero(late >= 0).tolist()
    assert [1, 3] == numpy.bincount(late[splits['a']]).tolist()
    with pytest.warns(UserWarning, match='3 of 11 labels are missing'):
        scheme = BalancedScheme(labels, 4)
    assert 8 == scheme.num_examples
    assert 11 == sum(map(len, random_split(
        11, shares, stratify=late).values()))
    same = random_split(11, shares, stratify=late, missing=-1, seed=3)
    assert all((same[name] == splits[name]).all() for name in shares)
    with pytest.raises(ValueError, match='all 11 examples lack a class'):
        random_split(11, shares, stratify=[-1] * 11, missing=-1)


def test_labels_without_missing_ones_are_plain(tmp_path):
    """None among objects is missing; a source that is not one of codes may
    be negative."""
    path = write_cells(tmp_path / 'x.h5', [0, 1, 1])
    labels = HDF5Dataset(path, [Categorical('kind')]).read_labels('kind')
    assert type(labels) is numpy.ndarray
    dataset = IndexableDataset({
        'y': numpy.array([-1, 1, -1]),
        'z': numpy.array(['a', None, 'a'], object)})
    assert type(dataset.read_labels('y')) is numpy.ndarray
    assert [False, True, False] == dataset.read_labels('z').mask.tolist()
    with pytest.raises(ValueError, match='x'):
        dataset.read_labels('x')


@pytest.mark.parametrize('examples, shares, stratify, text', [
    (10, {'a': .5, 'b': .4}, None, 'add up to 1'),
    (10, {'a': 1.5}, None, 'add up to 1'),
    (10, {'a': None, 'b': None}, None, 'add up to 1'),
    (10, {}, None, 'add up to 1'),
    (3, {'a': None, 'b': .01}, None, "'b' would be empty"),
    (3, {'a': None, 'b': .5}, [0, 1], 'one class for each of the 3'),
    (3, {'a': None, 'b': .5}, 'y', 'the data set must be given'),
    (9, {'a': None, 'b': .2}, numpy.arange(9) / 7,
     'each of the 9 classes is 0.2, and that .*1 of 9 .*numpy.digitize'),
    (IndexableDataset([1, 2]), {'a': None, 'b': .5}, 'y', "no source 'y'")],
    ids=['sum', 'large', 'rests', 'none', 'empty', 'classes', 'number',
         'floats', 'source'])
def test_random_split_that_cannot_be(examples, shares, stratify, text):
    """The text says why."""
    with pytest.raises(ValueError, match=text):
        random_split(examples, shares, stratify=stratify)


@pytest.mark.parametrize('kind', [numpy.int64, numpy.uint8, numpy.int16])
def test_number_of_examples_may_be_an_integer_of_numpy(kind):
    """The splits are those of Python's."""
    shares = {'a': .5, 'b': None}
    found, expected = (random_split(count, shares, seed=3)
                       for count in (kind(10), 10))
    assert [found[name].tolist() for name in shares] == [
        expected[name].tolist() for name in shares]
    found = random_split(10, {'a': kind(3), 'b': None}, seed=3)
    assert [3, 7] == [len(rows) for rows in found.values()]
    with pytest.raises(ValueError, match='int.* has none'):
        random_split(kind(10), shares, groups='runs')


@pytest.mark.parametrize('classes', [None, [0, 1, 1]])
def test_one_example_can_be_held_out(classes):
    """Numbers of examples are numbers, also if none is above 1."""
    found = held_out(3, [('test', 1)], 0, classes)
    assert {'train': 2, 'test': 1} == {
        name: len(rows) for name, rows in found.items()}
    found = held_out(3, [('test', 1), ('valid', 1)], 0, classes)
    assert [0, 1, 2] == sorted(numpy.concatenate(
        list(found.values())).tolist())
    assert {'train', 'test', 'valid'} == set(found)
    with pytest.raises(ValueError, match=(
            'test=1 of 1 .*add up to 1, .* none is left for the rest')):
        held_out(1, [('test', 1)], 0)


def test_shares_without_names_are_refused():
    """The text shows a dict."""
    with pytest.raises(TypeError, match=r'a dict .*got \(0.8, 0.2\)'):
        random_split(10, (.8, .2))


@pytest.mark.parametrize('shares, text', [
    ([('test', .1)], r"hold out test=0.1 of 3 examples: the split 'test'"),
    ([('test', 1.5)], 'hold out test=1.5 of 3 examples: shares must'),
    ([('train', .5)], 'names of their own'),
    ([('a', .3), ('a', .3)], 'names of their own')])
def test_what_cannot_be_held_out_is_named(shares, text):
    """The error shows what was asked for."""
    with pytest.raises(ValueError, match=text):
        held_out(3, shares, 0)


def test_held_out_examples_are_not_trained_on():
    """If none are held out, all are in the split 'train'."""
    found = held_out(10, [('test', .3), ('valid', .2)], seed=1)
    assert {'train': 5, 'test': 3, 'valid': 2} == {
        name: len(rows) for name, rows in found.items()}
    assert list(range(10)) == sorted(numpy.concatenate(
        list(found.values())).tolist())
    assert list(range(4)) == held_out(4, None, 0)['train'].tolist()
    found = held_out(10, [('test', 3), ('valid', 2)], seed=1)
    assert [5, 3, 2] == [len(rows) for rows in found.values()]


@given(st.lists(st.integers(0, 9), min_size=2, max_size=30),
       st.floats(.1, .9), st.integers(0, 5))
def test_split_of_runs_has_whole_runs(lengths, share, seed):
    """Each split has one at least, and its share to the nearest run."""
    rows = IndexableDataset({'x': numpy.arange(sum(lengths))})
    rows.runs = numpy.concatenate([[0], numpy.cumsum(lengths)])
    if sum(length > 0 for length in lengths) < 2:
        return
    found = random_split(rows, {'train': None, 'test': share}, seed=seed,
                         groups='runs')
    assert ['train', 'test'] == list(found)
    numbers = numpy.repeat(numpy.arange(len(lengths)), lengths)
    train, test = (set(numbers[found[name]]) for name in ('train', 'test'))
    assert train and test and not train & test
    assert list(range(len(rows))) == sorted(numpy.concatenate(
        list(found.values())).tolist())
    assert all((numpy.diff(part) > 0).all() for part in found.values())
    away = abs(len(found['test']) - share * len(rows))
    assert away <= max(lengths)
    again = random_split(rows, {'train': None, 'test': share}, seed=seed,
                         groups='runs')
    assert all(numpy.array_equal(found[name], again[name]) for name in found)


def test_split_of_windows_has_no_row_twice():
    """Windows of one run overlap, and lie in one split."""
    windows = Windows(IndexableDataset({'x': numpy.arange(60)}), 4,
                      runs={'lengths': [10] * 6})
    splits = random_split(windows, {'a': .5, 'b': .3, 'c': None},
                          groups='runs')
    assert [21, 14, 7] == [len(part) for part in splits.values()]
    rows = [set(windows[part][0].ravel()) for part in splits.values()]
    assert not (rows[0] & rows[1] or rows[0] & rows[2] or rows[1] & rows[2])


OVER_CUT_RUNS = {
    'rows': lambda rows: rows,
    'windows': lambda rows: Windows(rows, 2, pad='edge', pad_after=1),
    'windows of windows': lambda rows: Windows(
        Windows(rows, 1), 1, sources=('x',)),
    'runs': Runs,
    'pipeline': lambda rows: Cast(DataStream(
        Windows(rows, 1), iteration_scheme=SequentialScheme(
            rows.num_examples, 4)), 'int32').as_dataset(),
}


@pytest.mark.parametrize('cases', [
    40, pytest.param(500, marks=pytest.mark.full)])
@pytest.mark.parametrize('kind', OVER_CUT_RUNS)
def test_run_that_a_split_has_cut_is_in_one_set(cases, kind, tmp_path):
    """All examples are in one set each, whatever is left of a run. Whole runs
    are drawn as they lie."""
    path = rows_of(tmp_path / 'x.h5', 60)
    rng = numpy.random.RandomState(cases)
    for seed in range(cases):
        lengths = numpy.diff(numpy.sort(numpy.concatenate(
            [[0, 60], rng.randint(61, size=rng.randint(2, 9))])))
        rows = [numpy.flatnonzero(rng.randint(4, size=60)),
                rng.permutation(60)[:rng.randint(2, 61)],
                numpy.arange(*numpy.sort(rng.permutation(61)[:2]))][seed % 3]
        run_of = numpy.repeat(numpy.arange(len(lengths)), lengths)
        count = len(set(run_of[rows].tolist()))
        dataset = OVER_CUT_RUNS[kind](opened(
            path, runs={'lengths': lengths}, splits={'some': rows},
            which_sets=('some',)))
        if count < 2:
            with pytest.raises(ValueError, match='1 runs cannot be split'):
                random_split(dataset, {'a': .5, 'b': None}, groups='runs')
            continue
        share = rng.uniform(.1, .9)
        found = random_split(dataset, {'a': None, 'b': share}, seed=seed,
                             groups='runs')
        firsts = [[int(numpy.ravel(dataset[int(row)][0])[0])
                   for row in part] for part in found.values()]
        sets = [set(run_of[part].tolist()) for part in firsts]
        assert all(sets) and not sets[0] & sets[1]
        assert sorted(numpy.concatenate(list(found.values())).tolist()) == (
            list(range(len(dataset))))
        left = stretches(rows_of_runs(lengths), rows)
        if len(left) == count and kind == 'rows':
            # As they were drawn before runs that are cut were joined.
            sizes = [len(of_run) for _, of_run in left]
            order = numpy.random.RandomState(seed).permutation(count)
            ends = numpy.cumsum(numpy.array(sizes)[order])
            stop = abs(ends - share * ends[-1]).argmin() + 1
            chosen = order[:min(max(stop, 1), count - 1)]
            assert sets[1] == {left[run][0] for run in chosen}


def test_stretches_of_one_run_cannot_be_split(tmp_path):
    """The text says that a split cut it; lengths that say they are runs of
    their own are believed."""
    part = opened(rows_of(tmp_path / 'x.h5'), which_sets=('some',), splits={
        'some': [*range(4, 8), *range(20, 24)]})
    windows = Windows(part, 2, runs='all')
    with pytest.raises(ValueError, match='1 runs .*cut them into 2 pieces'):
        random_split(windows, {'a': .5, 'b': .5}, groups='runs')
    windows = Windows(part, 2, runs={'lengths': [4, 4]})
    assert [3, 3] == [len(part) for part in random_split(
        windows, {'a': .5, 'b': .5}, groups='runs').values()]


def test_stretches_of_one_run_are_neighbours(tmp_path):
    """A split of whole stretches of runs by examples gives a warning."""
    part = opened(rows_of(tmp_path / 'x.h5'), which_sets=('some',), splits={
        'some': [0, 1, 3, 4, 12, 13]}, runs={'lengths': 'lengths'})
    for dataset in (part, Runs(part), Windows(part, 2)):
        with pytest.warns(UserWarning, match='lie in 2 runs'):
            random_split(dataset, {'a': .5, 'b': .5})


def test_random_split_by_rows_of_runs_warns():
    """The number of examples in the place of the data set says it is meant;
    one run is none to be split, and whole runs are examples."""
    rows = IndexableDataset({'x': numpy.arange(60)})
    windows = Windows(rows, 4, runs={'lengths': [30, 30]})
    with pytest.warns(UserWarning, match=r"Windows lie in 2 runs.*'runs'"):
        random_split(windows, {'a': .5, 'b': .5})
    random_split(len(windows), {'a': .5, 'b': .5})
    random_split(Windows(rows, 4), {'a': .5, 'b': .5})
    random_split(Runs(rows, runs={'lengths': [30, 30]}), {'a': .5, 'b': .5})


@pytest.mark.parametrize(('lengths', 'kwargs', 'text'), [
    (None, {}, 'IndexableDataset has none'),
    ([10], {}, '1 runs cannot be split into 2 sets'),
    ([5, 5], {'groups': 'rows'}, "groups must be 'runs'"),
    ([5, 5], {'stratify': 'x'}, "stratify='x'")])
def test_split_of_runs_that_cannot_be(lengths, kwargs, text):
    """The text says why."""
    rows = IndexableDataset({'x': numpy.arange(10)})
    if lengths:
        rows = Windows(rows, 1, runs={'lengths': lengths})
    with pytest.raises(ValueError, match=text):
        random_split(rows, {'a': .5, 'b': .5}, **{'groups': 'runs', **kwargs})


def rows_of(path, count=40):
    """Write runs of ten rows, and return the path."""
    with h5py.File(path, 'w') as file:
        file['x'], file['lengths'] = numpy.arange(count), [10] * (count // 10)
    return path


def opened(path, **kwargs):
    """Return the data set in a file of runs."""
    return HDF5Dataset(path, ['x'], **kwargs)


@pytest.mark.parametrize('make, counted', [
    (lambda rows: Windows(rows, 3, runs={'lengths': [10] * 4}),
     'examples of Windows'),
    (lambda rows: Runs(rows, runs={'lengths': [10] * 4}), 'examples of Runs'),
    (lambda rows: opened(rows.files, splits={'late': (20, 40)},
                         which_sets=('late',)),
     r"examples of the splits \('late',\)")],
    ids=['windows', 'runs', 'splits'])
def test_numbers_of_other_examples_are_not_splits(make, counted, tmp_path):
    """Numbers of runs or windows would be other rows, and in several splits.
    They are refused, pickled or not; a scheme takes them."""
    path = str(rows_of(tmp_path / 'x.h5'))
    examples = make(opened(path))
    splits = random_split(
        len(examples), {'train': None, 'valid': .5}, seed=1)
    assert len(opened(path, splits=splits, which_sets=['train']))
    splits = random_split(
        examples, {'train': None, 'valid': .5}, seed=1,
        groups='runs' if isinstance(examples, Windows) else None)
    for found in (splits, pickle.loads(pickle.dumps(splits))):
        for use in (opened, H5PYDataset):
            with pytest.raises(ValueError, match=counted):
                use(path, splits=found, which_sets=['train'],
                    sources=['x'])
    assert json.dumps({name: rows.tolist() for name, rows in splits.items()})
    assert list(ShuffledScheme(splits['train'], 2).get_request_iterator())


def test_numbers_of_rows_are_splits(tmp_path):
    """The numbers are those of a data set of all rows."""
    path = str(rows_of(tmp_path / 'x.h5'))
    splits = random_split(
        opened(path, runs={'lengths': 'lengths'}), {'a': None, 'b': .5},
        groups='runs')
    found = [opened(path, splits=splits, which_sets=[name])[:][0].tolist()
             for name in splits]
    assert [*range(40)] == sorted(found[0] + found[1])


def test_former_module_of_splits_is_loaded_from_pickles():
    """Pickles of random splits name the module that had their class."""
    assert ExampleSplits is pickle.loads(
        b'cfuel.datasets.given_splits\nExampleSplits\n.')
