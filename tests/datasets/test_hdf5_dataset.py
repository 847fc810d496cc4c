"""Data sets in HDF5 files of any layout."""
import json
import os
import pickle
import re

import h5py
import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from fuel.datasets import (
    Flat, H5PYDataset, HDF5Dataset, Rows, Runs, Windows)
from fuel.exceptions import DamagedFileError, StateMismatchError
from fuel.schemes import SequentialScheme, ShuffledScheme
from fuel.streams import DataStream
from fuel.transformers import Cast

LENGTHS = [3 + number for number in range(12)]


@pytest.fixture
def demos(tmp_path):
    """Return a file with a group for each of twelve demonstrations."""
    path = tmp_path / 'demos.hdf5'
    with h5py.File(path, 'w') as file:
        for number, length in enumerate(LENGTHS):
            demo = file.create_group(f'data/demo_{number}')
            demo.attrs['num_samples'] = length
            demo.attrs['model'] = f'<model {number}>'
            steps = numpy.arange(length)
            demo['actions'] = steps[:, None] + [100. * number, .5]
            demo.create_dataset(
                'obs/image', data=steps[:, None, None].astype('u1')
                + numpy.full((2, 2), number, 'u1'), compression='gzip')
            demo['obs/note'] = [f'é{number}'] * length
        file['mask/train'] = numpy.array([b'demo_10', b'demo_2', b'demo_1'])
        file['mask/valid'] = numpy.array([b'demo_11'])
    return path


class Negative(HDF5Dataset):
    """Has a reading of its own."""

    def _read(self, rows):
        return tuple([-part for part in super()._read(rows)])


def test_reading_of_a_subclass_is_that_of_epochs(demos):
    """A subclass may override methods that only data sets of Fuel have."""
    dataset = Negative(demos, ['actions'], parts='data/demo_*')
    expected = -demo_data('actions', range(12), demos)
    stream = DataStream(dataset, iteration_scheme=SequentialScheme(
        dataset.num_examples, 7))
    for _ in range(2):
        assert_array_equal(expected, numpy.concatenate(
            [part for part, in stream.get_epoch_iterator()]))
    runs = DataStream(Runs(dataset), iteration_scheme=SequentialScheme(12, 5))
    assert_array_equal(expected, numpy.concatenate([
        run for part, in runs.get_epoch_iterator() for run in part]))


def demo_data(name, numbers, path):
    """Return the rows of some demonstrations."""
    with h5py.File(path) as file:
        return numpy.concatenate([
            file[f'data/demo_{number}/{name}'][()] for number in numbers])


def write(path, **arrays):
    """Write arrays, with slashes for two underscores, and return the path."""
    with h5py.File(path, 'w') as file:
        for name, array in arrays.items():
            file[name.replace('__', '/')] = array
    return path


def test_parts_of_unusual_names_are_found(tmp_path):
    """Names have long numbers, unusual digits, or bytes that are not text."""
    names = ['demo_1', 'demo_\u00b2', 'demo_\udcff', f'demo_{"9" * 5000}']
    path = tmp_path / 'demos.hdf5'
    with h5py.File(path, 'w') as file:
        for number, name in enumerate(names):
            group = file.create_group(name.encode('utf-8', 'surrogateescape'))
            group['x'] = [number]
    dataset = HDF5Dataset(path, ['x'], parts='demo_*')
    assert {0, 1, 2, 3} == {*dataset.get_data(None, [0, 1, 2, 3])[0].tolist()}
    # A number of one digit before that of many.
    assert [0, 3] == [one for one in dataset.get_data(
        None, [0, 1, 2, 3])[0].tolist() if one in (0, 3)]


def test_parts_come_in_natural_order(demos):
    """The part demo_2 comes before demo_10."""
    dataset = HDF5Dataset(demos, ['actions', 'obs/image'],
                          parts='data/demo_*')
    assert sum(LENGTHS) == dataset.num_examples
    actions, images = dataset.get_data(None, slice(0, sum(LENGTHS)))
    assert_array_equal(demo_data('actions', range(12), demos), actions)
    assert_array_equal(demo_data('obs/image', range(12), demos), images)
    assert images.flags.writeable


def test_default_columns_are_all_arrays_of_the_common_length(demos):
    """The first part decides, at any depth."""
    dataset = HDF5Dataset(demos, parts='data/*')
    assert ('actions', 'obs/image', 'obs/note') == dataset.sources
    assert 'é2' == dataset.get_data(None, 7)[2]


def test_arrays_of_several_lengths_are_refused_by_default(tmp_path):
    """Such arrays are not examples of one data set; some may be chosen."""
    path = write(tmp_path / 'a.h5', x=numpy.zeros(5), y=numpy.zeros((5, 2)),
                 grid__lat=numpy.zeros(3), scalar=4.)
    with pytest.raises(ValueError, match=r"several lengths.*of 3: "
                       r"'grid/lat'; of 5: 'x', 'y'\): name the arrays that "
                       r"are .*columns=\[...\]"):
        HDF5Dataset(path)
    assert ('y', 'x') == HDF5Dataset(path, ['y', 'x']).sources
    chosen = HDF5Dataset(path, sources=('y',))
    assert ('x', 'y') == chosen.provides_sources
    assert ('y',) == chosen.sources


def test_file_without_rows_is_refused(tmp_path):
    """Scalars and empty arrays are not examples."""
    path = write(tmp_path / 'a.h5', scalar=4., empty=numpy.zeros((0, 3)))
    with pytest.raises(ValueError, match='has no arrays with an example'):
        HDF5Dataset(path)


def test_mapping_renames_and_sources_choose_and_order(demos):
    """The names in the file stay in the repr."""
    dataset = HDF5Dataset(
        demos, {'image': 'obs/image', 'action': Rows('actions')},
        parts='data/demo_*', sources=('action', 'image'))
    assert ('action', 'image') == dataset.sources
    assert ('image', 'action') == dataset.provides_sources
    action, _ = dataset.get_data(None, [0])
    assert [[0., .5]] == action.tolist()
    dataset.sources = ('image',)
    image, = dataset.get_data(None, [0])
    assert (1, 2, 2) == image.shape


def test_column_that_is_not_asked_for_is_opened_later(tmp_path):
    """The column may even be missing, which is an error when it is read."""
    path = write(tmp_path / 'a.h5', x=numpy.arange(4), y=numpy.arange(3))
    dataset = HDF5Dataset(path, ['x', 'y', 'z'], sources=('x',))
    assert 4 == dataset.num_examples
    dataset.sources = ('y',)
    with pytest.raises(ValueError, match="'x' has 4 and 'y' has 3"):
        dataset.get_data(None, [0])
    dataset.sources = ('z',)
    with pytest.raises(ValueError, match="has no array 'z'"):
        dataset.get_data(None, [0])


@pytest.mark.parametrize(('make', 'text'), [
    (lambda path: HDF5Dataset(path, ['action'], parts='data/demo_*'),
     r"demo_0' has no array 'action' \(did you mean 'actions'\?\)"),
    (lambda path: HDF5Dataset(path, ['obs'], parts='data/demo_*'),
     "'obs' is a group, and has no rows; it has 'obs/image', 'obs/note'"),
    (lambda path: HDF5Dataset(path, ['actions'], parts='data/episode_*'),
     "has no group 'data/episode_\\*'; it has 'data', 'mask'"),
    (lambda path: HDF5Dataset(path, ['actions'], parts=''),
     'parts must be a pattern of groups'),
    (lambda path: HDF5Dataset(path, ['actions', 'actions'], parts='data/*'),
     'a column is there twice'),
    (lambda path: HDF5Dataset(path, [], parts='data/*'),
     'at least one column is needed'),
    (lambda path: HDF5Dataset(path, {'x': 3}, parts='data/*'),
     "got 'x': 3"),
    (lambda path: HDF5Dataset([]), 'at least one file is needed'),
    (lambda path: HDF5Dataset(path, ['actions'], missing='ignore'),
     "missing must be 'error' or 'skip', got 'ignore'"),
    (lambda path: HDF5Dataset(path, ['actions'], follow='me'),
     "follow must be 'folder' or 'anywhere'"),
    (lambda path: HDF5Dataset(path, ['actions'], sources=('image',),
                              parts='data/*'), "there is no source 'image'"),
    (lambda path: HDF5Dataset(path, ['actions'], sources='actions'),
     'sources must be a tuple of names'),
    (lambda path: HDF5Dataset(path, ['actions'], parts='data/*',
                              splits={'a': ['demo_12']}, which_sets=('a',)),
     r"split 'a': there is no part 'demo_12'; .* 'demo_9', ... 'demo_11'"),
    (lambda path: HDF5Dataset(path, ['actions'], parts='data/*',
                              splits={'a': ['dem_1']}, which_sets=('a',)),
     r"there is no part 'dem_1' \(did you mean 'demo_1'"),
    (lambda path: HDF5Dataset(path, ['actions'], parts='data/*',
                              sources=('action', 'actions')),
     r"'action': did you mean 'actions'"),
    (lambda path: HDF5Dataset(path, ['image'], parts='data/*'),
     r"no array 'image' \(did you mean 'obs/image'"),
    (lambda path: HDF5Dataset(path, ['next/image'], parts='data/*'),
     r"no array 'next/image'; it has"),
    (lambda path: HDF5Dataset(path, ['actions'], parts='data/*',
                              splits={'a': (99, 3)}, which_sets=('a',)),
     r'the first and where it ends, got \(99, 3\)'),
    (lambda path: HDF5Dataset(path, ['actions'], parts='data/*',
                              splits='masks'),
     "has no group 'masks' of lists"),
    (lambda path: HDF5Dataset(path, ['actions'], parts='data/*', splits=3),
     'splits must be a dict'),
    (lambda path: HDF5Dataset(path, ['actions'], parts='data/*',
                              splits='mask', which_sets=('test',)),
     r"no split 'test'; the splits are \('train', 'valid'\)"),
    (lambda path: HDF5Dataset(path, ['actions'], parts='data/*',
                              splits='mask', which_sets='train'),
     'must be a tuple of split names'),
])
def test_mistake_is_explained(demos, make, text):
    """The error says what was expected, what came, and where."""
    with pytest.raises(ValueError, match=text):
        make(demos)


def test_fields_are_named_where_an_array_is_wanted(tmp_path):
    """Errors of columns, sources and numeric stages name the fields."""
    jets = numpy.zeros(4, [('pt', 'f4'), ('mass', 'f8')])
    path = write(tmp_path / 'jets.h5', jets=jets)
    words = r"'jets/pt' \(did you mean Rows\('jets', field='pt'\)"
    with pytest.raises(ValueError, match=words):
        HDF5Dataset(path, ['jets/pt'])
    with pytest.raises(ValueError, match=words):
        HDF5Dataset(path, sources=('jets/pt',))
    stream = Cast(DataStream(HDF5Dataset(path), batch_size=2), 'float32')
    with pytest.raises(TypeError, match=(
            r"'jets' is an array of records, which cannot be cast to float32: "
            r".* Rows\('jets', field='pt'\)")):
        next(stream.get_epoch_iterator())


def test_split_of_data_without_any_is_explained(tmp_path):
    """The error says what to write, and which file has that name."""
    paths = [write(tmp_path / f'jets_{name}.h5', x=numpy.arange(10))
             for name in ('test', 'train')]
    with pytest.raises(ValueError, match=(
            r"jets_test.h5': there is no split 'train': neither the data nor "
            r"the argument splits= defines any split.*"
            r"splits=\{'train': \(0, 8\)\}.*splits=random_split\(")):
        HDF5Dataset(paths[0], which_sets=('train',))
    assert 8 == len(HDF5Dataset(paths[0], which_sets=('train',),
                                splits={'train': (0, 8)}))
    with pytest.raises(ValueError, match=r"jets_test.h5' and 1 more: there is "
                       r"no split.*splits=\{'train': \['jets_train.h5'\]\}"):
        HDF5Dataset(paths, which_sets=('train',))
    with pytest.raises(ValueError, match=r"no split 'trian' \(did you mean "
                       r"'train'\?\); the splits are \('train',\)"):
        HDF5Dataset(paths, which_sets=('trian',),
                    splits={'train': ['jets_train.h5']})


def test_file_of_fuels_own_is_refused(tmp_path):
    """The error names the class that reads it, and a split."""
    path = write(tmp_path / 'own.hdf5', x=numpy.arange(4))
    with h5py.File(path, 'a') as file:
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'valid': {'x': (0, 4)}})
    with pytest.raises(ValueError, match=r"H5PYDataset\('.*own.hdf5', "
                       r"\('valid',\)\)"):
        HDF5Dataset(path)


def test_missing_file_and_pattern_without_files_are_errors(tmp_path):
    """The place that was searched is named."""
    with pytest.raises(FileNotFoundError, match='no.h5'):
        HDF5Dataset(tmp_path / 'no.h5')
    with pytest.raises(FileNotFoundError, match=r'no file like .*/\*.h5'):
        HDF5Dataset(tmp_path / '*.h5')


@pytest.fixture
def years(tmp_path):
    """Return a folder with a file for each of three years."""
    for number, length in enumerate([4, 2, 3]):
        write(tmp_path / f'{9 + number}.h5',
              fields=numpy.arange(length) + 10. * number)
    return tmp_path


def test_files_follow_each_other(years):
    """The order is that of a list, or the natural order of a pattern."""
    dataset = HDF5Dataset(years / '*.h5', ['fields'])
    assert [0, 1, 2, 3, 10, 11, 20, 21, 22] == dataset.get_data(
        None, slice(0, 9))[0].tolist()
    assert [0, 4, 6, 9] == dataset.runs.tolist()
    turned = HDF5Dataset([years / '11.h5', years / '9.h5'], runs='all')
    assert [20, 21, 22, 0, 1, 2, 3] == turned.get_data(
        None, slice(0, 7))[0].tolist()
    assert [0, 7] == turned.runs.tolist()


def test_splits_may_name_files(years):
    """A part that is a file is called by its name."""
    dataset = HDF5Dataset(
        str(years / '*.h5'), ['fields'], which_sets=('test', 'train'),
        splits={'train': ['9.h5'], 'test': ['11.h5', str(years / '10.h5')]})
    assert [20, 21, 22, 10, 11, 0, 1, 2, 3] == dataset.get_data(
        None, slice(0, 9))[0].tolist()
    assert [0, 3, 5, 9] == dataset.runs.tolist()


def test_splits_of_a_group_name_parts_in_natural_order(demos):
    """The order of names in a file says nothing."""
    dataset = HDF5Dataset(demos, ['actions'], parts='data/demo_*',
                          splits='mask', which_sets=('train',))
    assert ('train', 'valid') == dataset.split_names
    assert_array_equal(demo_data('actions', [1, 2, 10], demos),
                       dataset.get_data(None, slice(0, 4 + 5 + 13))[0])
    assert [0, 4, 9, 22] == dataset.runs.tolist()


def test_splits_of_a_group_may_be_rows_or_masks(tmp_path):
    """Each file has its own."""
    paths = [
        write(tmp_path / 'a.h5', x=numpy.arange(4), split__train=[2, 0],
              split__test=[False, True, False, True]),
        write(tmp_path / 'b.h5', x=numpy.arange(10, 13), split__train=[1])]
    for which, rows in (('train', [2, 0, 11]), ('test', [1, 3])):
        dataset = HDF5Dataset(
            paths, ['x'], splits='split', which_sets=(which,))
        assert rows == dataset.get_data(
            None, slice(0, len(rows)))[0].tolist()
    dataset.close(None)
    with h5py.File(paths[1], 'a') as file:
        file['split/train'][...] = 3
    with pytest.raises(ValueError, match="split 'train' of .*b.h5.* has the "
                       'row 3, and the rows are 0 to 2'):
        HDF5Dataset(paths, ['x'], splits='split', which_sets=('train',))
    with h5py.File(paths[1], 'a') as file:
        file['split/odd'] = [.5]
    with pytest.raises(ValueError, match="split 'odd' of .*float64"):
        HDF5Dataset(paths, ['x'], splits='split', which_sets=('odd',))


def test_splits_of_a_category_are_called_by_its_names(tmp_path):
    """Each file has codes of its own; a missing value is in no split."""
    paths = [write(tmp_path / name, x=numpy.arange(3) + first,
                   obs__split__codes=numpy.array(codes, 'i1'),
                   obs__split__categories=names)
             for name, first, codes, names in (
                 ('a.h5', 0, [1, 0, -1], [b'test', b'train']),
                 ('b.h5', 3, [0, 0, 1], [b'train', b'valid']))]
    rows = {}
    for name in ('test', 'train', 'valid'):
        dataset = HDF5Dataset(paths, ['x'], splits='obs/split',
                              which_sets=(name,))
        assert ('test', 'train', 'valid') == dataset.split_names
        rows[name] = dataset[:][0].tolist()
    assert {'test': [1], 'train': [0, 3, 4], 'valid': [5]} == rows


def test_category_of_old_files_is_splits_too(tmp_path):
    """In AnnData 0.7, an array of codes refers to its names."""
    path = write(tmp_path / 'a.h5', x=numpy.arange(4),
                 obs__split=numpy.array([1, -1, 0, 1], 'i1'),
                 obs____categories__split=[b'test', b'train'])
    with pytest.raises(ValueError, match=(
            "no group 'obs/split' of .*, nor such a column of categories")):
        HDF5Dataset(path, ['x'], splits='obs/split')
    with h5py.File(path, 'r+') as file:
        file.move('obs/categories/split', 'obs/__categories/split')
        file['obs/split'].attrs['categories'] = file[
            'obs/__categories/split'].ref
    dataset = HDF5Dataset(path, ['x'], splits='obs/split',
                          which_sets=('train',))
    assert ('test', 'train') == dataset.split_names
    assert [0, 3] == dataset[:][0].tolist()


def test_path_that_begins_with_a_part_is_told_from_one_in_it(demos):
    """The error shows the path in the part, and the argument `sources`."""
    for path in ('data/demo_0/actions', 'data/demo_11/actions'):
        with pytest.raises(ValueError, match=(
                "paths begin in each part: write 'actions'; .* "
                r"sources=\('actions',\)")):
            HDF5Dataset(demos, [path], parts='data/demo_*')


def test_arrays_of_numbers_that_are_not_rows_are_not_splits(tmp_path):
    """A group of them alone is refused at once."""
    path = write(tmp_path / 'a.h5', x=numpy.arange(3),
                 obs__depth=numpy.ones(3))
    with pytest.raises(ValueError, match=(
            "the group 'obs' has no list of rows or parts, but 'depth'")):
        HDF5Dataset(path, ['x'], splits='obs')


@pytest.mark.parametrize('splits', [
    {'train': [0, 160], 'test': [160, 199]},
    {'test': [150, 199], 'train': [0, 100]}, {'train': [0, 160]}])
def test_ranges_as_lists_are_refused(splits, tmp_path):
    """JSON turns tuples into lists; the error says what to write."""
    path = write(tmp_path / 'a.h5', x=numpy.arange(199))
    name, (start, stop) = next(iter(splits.items()))
    for found in (splits, json.loads(json.dumps(splits))):
        with pytest.raises(ValueError, match=re.escape(
                f'write {name!r}: ({start}, {stop}), a tuple')):
            HDF5Dataset(path, splits=found, which_sets=(name,))
    two = {**splits, name: numpy.array([start, stop - 1])}
    assert [start, stop - 1] == HDF5Dataset(
        path, splits=two, which_sets=(name,))[:][0].tolist()


@pytest.mark.parametrize('splits', [
    {'a': [3, 5]}, {'a': [0, 1], 'b': [2, 3]}, {'a': [0, 9], 'b': [4, 12]},
    {'a': [18, 2], 'b': [3, 19]}, {'a': [0, 12], 'b': [12, 15, 19]},
    {'a': [0, 12], 'b': (12, 19)}])
def test_lists_of_two_rows_are_rows(splits, tmp_path):
    """Two numbers that cannot be a range, or make a short one, are rows."""
    path = write(tmp_path / 'a.h5', x=numpy.arange(20))
    assert splits['a'] == HDF5Dataset(
        path, splits=splits, which_sets=('a',))[:][0].tolist()


def test_splits_cut_runs(tmp_path):
    """Into the longest stretches of following rows of one run."""
    path = write(tmp_path / 'a.h5', x=numpy.arange(10), ep_len=[4, 6])
    dataset = HDF5Dataset(
        path, ['x'], runs={'lengths': 'ep_len'},
        splits={'train': [0, 1, 3, 4, 5, 8]}, which_sets=('train',))
    assert [0, 2, 3, 5, 6] == dataset.runs.tolist()
    whole = HDF5Dataset(path, runs={'lengths': 'ep_len'}, sources=('x',))
    assert [0, 4, 10] == whole.runs.tolist()
    assert ('x',) == whole.provides_sources


def test_windows_and_runs_lie_in_parts(years, tmp_path):
    """Windows know their file; an array need not be a source to end runs."""
    dataset = HDF5Dataset(years / '*.h5', ['fields'])
    windows = Windows(dataset, 2)
    assert [[0, 1], [1, 2], [2, 3], [10, 11], [20, 21], [21, 22]] == (
        windows.get_data(None, slice(0, 6))[0].tolist())
    assert (str(years / '10.h5'), 1, 4, '', 0) == windows.provenance(3)
    path = write(tmp_path / 'flat.h5', x=numpy.arange(5),
                 done=[False, True, False, False, True])
    flat = HDF5Dataset(path, ['x'], splits={'a': (1, 5)}, which_sets=('a',))
    runs = Runs(flat, runs={'ends': 'done'})
    assert [[1], [2, 3, 4]] == [
        run.tolist() for run in runs.get_data(None, [0, 1])[0]]
    with pytest.raises(ValueError, match="has no array 'gone'"):
        Runs(flat, runs={'ends': 'gone'})


def test_examples_know_their_group_and_the_row_in_it(demos):
    """Each split, windows, runs, and windows of windows know them."""
    dataset = HDF5Dataset(demos, ['actions'], parts='data/demo_*',
                          splits='mask', which_sets=('train',))
    windows = Windows(dataset, 2)
    with h5py.File(demos) as file:
        for made in (windows, Runs(dataset), Windows(windows, 1)):
            for number in range(len(made)):
                found = made.provenance(number)
                first = numpy.ravel(made[number][0])[0]
                assert str(demos) == found.file
                assert first == numpy.ravel(file[found.part]['actions'][
                    found.row_of_part])[0]
        assert {windows.provenance(number).part
                for number in range(len(windows))} > {'data/demo_2'}


def test_runs_without_rows_say_where_the_next_ones_begin(tmp_path):
    """An empty run after all rows has its place too."""
    path = tmp_path / 'a.h5'
    with h5py.File(path, 'w') as file:
        for name, count in zip('abcd', (3, 0, 2, 0), strict=True):
            file[f'{name}/x'] = numpy.arange(count)
    runs = Runs(HDF5Dataset(path, ['x'], parts='*'))
    assert [(0, 'a', 0), (1, 'c', 0), (2, 'c', 0), (3, 'd', 0)] == [
        (found.run, found.part, found.row_of_part) for found in map(
            runs.provenance, range(len(runs)))]


@pytest.mark.parametrize('kwargs, text', [
    ({'runs': {'length': 'num'}}, "runs must be 'all' or one of"),
    ({'runs': 'al'}, "runs must be 'all' or one of"),
    ({'runs': {'lengths': 'gone'}}, "has no array 'gone'"),
    ({'runs': {'ends': ('actions', 'gone')}}, "has no array 'gone'"),
    ({'splits': {'a': 'demo_1'}, 'which_sets': ('a',)},
     r"names of parts, got 'demo_1': write \['demo_1'\]"),
    ({'columns': [None]}, 'got None: None')], ids=str)
def test_mistake_is_told_when_the_data_set_is_made(demos, kwargs, text):
    """The error is not raised when runs or splits are first asked for."""
    with pytest.raises(ValueError, match=text):
        HDF5Dataset(demos, **{'columns': ['actions'], **kwargs},
                    parts='data/demo_*')


@pytest.mark.parametrize('name', ['start', 'stop', 'axis'])
@pytest.mark.parametrize('value', [1.5, 'a', True])
def test_rows_are_counted_by_integers(name, value):
    """NumPy's become plain ones, which can be pasted."""
    with pytest.raises(TypeError, match=rf"^{name} of Rows\('x'\) must be "):
        Rows('x', **{name: value})
    assert f"Rows('x', {name}=1)" == repr(Rows('x', **{name: numpy.int8(1)}))


def test_attributes_of_runs(demos, years):
    """The attributes are those of the group or the file of a run."""
    dataset = HDF5Dataset(demos, ['actions'], parts='data/demo_*',
                          splits='mask', which_sets=('train',))
    assert [4, 5, 13] == dataset.run_attributes('num_samples')
    assert '<model 10>' == dataset.run_attributes('model')[-1]
    with pytest.raises(ValueError, match="demo_1' has no attribute 'num'; "
                       "it has 'model', 'num_samples'"):
        dataset.run_attributes('num')
    joined = HDF5Dataset(years / '*.h5', ['fields'], runs='all')
    with pytest.raises(ValueError, match='rows 0 to 9 goes through several'):
        joined.run_attributes('num')


def test_part_without_an_array_is_an_error_or_left_out(demos):
    """A part that is left out is not in a split either."""
    with h5py.File(demos, 'a') as file:
        del file['data/demo_2/obs/image']
    with pytest.raises(ValueError, match="demo_2' has no array 'obs/image'.*"
                       "missing='skip' leaves out"):
        HDF5Dataset(demos, ['actions', 'obs/image'], parts='data/demo_*')
    dataset = HDF5Dataset(
        demos, ['actions', 'obs/image'], parts='data/demo_*',
        missing='skip', splits='mask', which_sets=('train',))
    assert_array_equal(demo_data('actions', [1, 10], demos),
                       dataset.get_data(None, slice(0, 17))[0])
    with pytest.raises(ValueError, match='none of the 12 parts has all'):
        HDF5Dataset(demos, ['actions', 'x'], parts='data/*', missing='skip')


def test_columns_of_unequal_rows_in_a_part_are_refused(tmp_path):
    """Columns with the same total of rows are refused too."""
    path = write(tmp_path / 'a.h5', a__x=numpy.zeros(3), a__y=numpy.zeros(2),
                 b__x=numpy.zeros(2), b__y=numpy.zeros(3))
    with pytest.raises(ValueError, match="group 'a': all columns must have "
                       "the same number of rows, but 'x' has 3 and 'y' has 2"):
        HDF5Dataset(path, ['x', 'y'], parts='*')


@pytest.mark.parametrize('other', [numpy.zeros((2, 3)), numpy.zeros(2, 'f4')])
def test_parts_of_unequal_types_or_shapes_are_refused(tmp_path, other):
    """The error names both parts."""
    path = write(tmp_path / 'a.h5', a__x=numpy.zeros((2, 2)), b__x=other)
    with pytest.raises(ValueError, match="'a/x' has float64 of shape "
                       r"\(2,\).*'b/x' has"):
        HDF5Dataset(path, ['x'], parts='*')


def test_rows_without_a_twin_in_the_split_are_left_out(tmp_path):
    """The next observation of another split's row would leak; that after
    the last step belongs to it."""
    path = tmp_path / 'a.h5'
    with h5py.File(path, 'w') as file:
        for number in range(2):
            file[f'e{number}/o'] = 10 * number + numpy.arange(6)
            file[f'e{number}/a'] = 10 * number + numpy.arange(5)

    def build(**kwargs):
        return HDF5Dataset(path, {
            'o': Rows('o', stop=-1), 'next': Rows('o', start=1), 'a': 'a'},
            parts='e*', **kwargs)

    assert 10 == build().num_examples
    some = build(splits={'train': [0, 1, 3, 4, 6, 7, 9]},
                 which_sets=('train',))
    o, after, a = some.get_data(None, slice(0, some.num_examples))
    assert [0, 3, 4, 11, 14] == a.tolist() == o.tolist()
    assert (o + 1).tolist() == after.tolist()
    parts = build(splits={'train': ['e1']}, which_sets=('train',))
    assert 5 == parts.num_examples
    with pytest.raises(ValueError, match='no row of the splits .* is left'):
        build(splits={'train': [0, 2]}, which_sets=('train',))


@pytest.mark.parametrize('axis', [0, 1])
def test_no_split_has_rows_of_another_that_are_counted_from_the_end(
        tmp_path, axis):
    """A start that is counted from the end depends on the part's length."""
    path, lengths = tmp_path / 'a.h5', [6, 9, 7, 5]
    with h5py.File(path, 'w') as file:
        for number, count in enumerate(lengths):
            rows = 100 * number + numpy.arange(count)
            file[f'e{number}/o'] = rows[:, None] if axis == 0 else rows[None]
            file[f'e{number}/a'] = rows[:5]
    columns = {'o': Rows('o', axis=axis, stop=5),
               'last': Rows('o', axis=axis, start=-5), 'a': 'a'}

    def numbers_in(split, splits):
        with HDF5Dataset(path, columns, parts='e*', splits=splits,
                         which_sets=(split,)) as dataset:
            data = dataset.get_data(None, slice(0, len(dataset)))
        assert (data[0].ravel() == data[2]).all()
        after = numpy.array(lengths)[data[2] // 100] - 5
        assert (data[1].ravel() == data[2] + after).all()
        return {*data[0].ravel().tolist()}, {*data[1].ravel().tolist()}

    rng = numpy.random.default_rng(4)
    for _ in range(20):
        order = rng.permutation(20)
        splits = {'a': numpy.sort(order[:13]), 'b': numpy.sort(order[13:])}
        (here, after), (there, later) = [
            numbers_in(name, splits) for name in splits]
        assert not here & later
        assert not after & there
    # Of the part whose rows are the same from the end nothing is left out.
    assert 5 == len(numbers_in('a', {'a': ['e3']})[0])


def test_repr_is_the_call_that_makes_the_data_set(demos):
    """The call can be pasted; print tells more."""
    path = repr(str(demos))
    calls = [call.replace('PATH', path) for call in (
        """HDF5Dataset(PATH, ['actions'], parts='data/demo_*', \
splits='mask', which_sets=('train',))""",
        """HDF5Dataset([PATH], {'x': 'actions', 'y': Rows('obs/image', \
start=0)}, parts='data/demo_*', runs='all', sources=('y',), missing='skip', \
follow='anywhere', cache_bytes=99)""",
        """HDF5Dataset(PATH, ['actions'], parts='data/demo_*', \
splits={'a': [3, 4], 'b': (0, 2)})""")]
    for call in calls:
        assert call == repr(eval(call))
    dataset = HDF5Dataset(demos, ['actions'], parts='data/demo_*',
                          splits={'a': numpy.arange(1000) % 3})
    assert "splits={'a': <1000 rows>}" in repr(dataset)
    text = str(eval(calls[0]))
    assert text.startswith(calls[0])
    assert 'actions float64 (2,); 22 examples' in text
    assert '12 parts; has splits train, valid; splits train' in text


def test_pickle_holds_paths_and_no_data(demos):
    """Rows that files name are not in the pickle either."""
    dataset = HDF5Dataset(demos, ['actions'], parts='data/demo_*',
                          splits='mask', which_sets=('train',))
    content = pickle.dumps(dataset)
    assert len(content) < 1200
    copy = pickle.loads(content)
    assert 22 == copy.num_examples
    assert_array_equal(dataset.get_data(None, [21, 0])[0],
                       copy.get_data(None, [21, 0])[0])
    assert repr(dataset) == repr(copy)
    assert dataset.kept_arguments() == copy.kept_arguments()


def test_closed_data_set_opens_its_files_again(demos):
    """Others may write to the files while the data set is closed."""
    dataset = HDF5Dataset(demos, ['actions'], parts='data/demo_*')
    before = dataset.get_data(None, [5])[0]
    dataset.close(None)
    dataset.close(None)
    with h5py.File(demos, 'a') as file:
        file['more'] = 1
    assert_array_equal(before, dataset.get_data(None, [5])[0])


def stream_of(dataset):
    """Return a stream of shuffled batches."""
    return DataStream(dataset, iteration_scheme=ShuffledScheme(
        dataset.num_examples, 5, seed=1))


@pytest.mark.parametrize(('changed', 'what'), [
    ({'columns': ['more']}, 'columns'), ({'runs': 'all'}, 'runs'),
    ({'splits': {'train': (1, 11)}}, 'splits'),
    ({'columns': [Rows('actions', start=0)]}, 'columns')])
def test_state_of_another_column_run_or_split_is_refused(
        tmp_path, changed, what):
    """Its position would be that of other data."""
    path = tmp_path / 'a.h5'
    with h5py.File(path, 'w') as file:
        for number in range(3):
            for name in 'actions', 'more':
                file[f'{number}/{name}'] = numpy.arange(4)
    given = {'columns': {'x': 'actions'}, 'parts': '*', 'which_sets': (
        'train',), 'splits': {'train': (0, 10)}}
    stream = stream_of(HDF5Dataset(path, **given))
    next(stream.get_epoch_iterator())
    state = stream.state_dict()
    same = stream_of(HDF5Dataset(path, **given))
    same.load_state_dict(state)
    if isinstance(changed.get('columns'), list):
        changed = {'columns': {'x': changed['columns'][0]}}
    other = stream_of(HDF5Dataset(path, **{**given, **changed}))
    with pytest.raises(StateMismatchError, match=what):
        other.load_state_dict(state)
        next(other.get_epoch_iterator())


def test_state_fits_the_same_files_elsewhere(years, tmp_path_factory):
    """Only names below their common folder are compared."""
    folder = tmp_path_factory.mktemp('elsewhere')
    stream = stream_of(HDF5Dataset(years / '*.h5', ['fields']))
    next(stream.get_epoch_iterator())
    state = stream.state_dict()
    for path in years.iterdir():
        os.link(path, folder / path.name)
    moved = stream_of(HDF5Dataset(folder / '*.h5', ['fields']))
    moved.load_state_dict(state)
    os.rename(folder / '10.h5', folder / '010.h5')
    renamed = stream_of(HDF5Dataset(folder / '*.h5', ['fields']))
    with pytest.raises(StateMismatchError, match='files'):
        renamed.load_state_dict(state)
        next(renamed.get_epoch_iterator())


def replace(path, **arrays):
    """Put another file in the place of one."""
    write(f'{path}.new', **arrays)
    os.replace(f'{path}.new', path)


def test_replaced_file_is_read_in_the_next_epoch(tmp_path):
    """The file must have as many rows of the same types in the same parts."""
    path = write(tmp_path / 'a.h5', a__x=numpy.arange(4), b__x=[8, 9],
                 mask__train=[b'b'])
    dataset = HDF5Dataset(path, ['x'], parts='?', splits='mask',
                          which_sets=('train',))
    stream = DataStream(dataset, iteration_scheme=SequentialScheme(2, 2))
    assert [[8, 9]] == [x.tolist() for x, in stream.get_epoch_iterator()]
    replace(path, a__x=numpy.arange(4), b__x=[6, 7], mask__train=[b'b'])
    assert [[6, 7]] == [x.tolist() for x, in stream.get_epoch_iterator()]
    for arrays, text in [
            ({'a__x': numpy.arange(5), 'b__x': [6, 7]}, 'had 6 examples'),
            ({'a__x': numpy.arange(3), 'b__x': [6, 7, 8]}, 'other parts'),
            ({'a__x': numpy.arange(4.), 'b__x': [6., 7]}, 'float64'),
            ({'a__x': numpy.arange(4), 'b__x': [6, 7],
              'mask__train': [b'a']}, 'other splits')]:
        replace(path, **{'mask__train': [b'b'], **arrays})
        with pytest.raises(StateMismatchError, match=text):
            next(stream.get_epoch_iterator())


@pytest.mark.parametrize('parts', [None, 'run_*'])
def test_one_of_several_files_that_has_other_rows_is_named(tmp_path, parts):
    """The error says how many it had itself, and names no other file."""
    group = '' if parts is None else 'run_1__'
    paths = [write(tmp_path / f'{number}.h5', **{
        f'{group}x': numpy.arange(4 + number)}) for number in range(3)]
    dataset = HDF5Dataset(paths, ['x'], parts=parts)
    stream = DataStream(dataset, iteration_scheme=SequentialScheme(15, 4))
    replace(paths[1], **{f'{group}x': numpy.arange(9)})
    with pytest.raises(StateMismatchError, match=(
            "1.h5' had 5 examples .* now has 9")):
        next(stream.get_epoch_iterator())


def test_file_written_to_in_use_is_an_error(tmp_path):
    """No wrong row is returned."""
    path = write(tmp_path / 'a.h5', x=numpy.arange(1000))
    dataset = HDF5Dataset(path)
    dataset.get_data(None, [999])
    os.truncate(path, 3000)
    with pytest.raises(DamagedFileError):
        dataset.get_data(None, [999])


def test_soft_links_are_followed_and_broken_ones_passed_over(tmp_path):
    """A circle of links is an error."""
    path = write(tmp_path / 'a.h5', real__x=numpy.arange(4))
    with h5py.File(path, 'a') as file:
        file['soft'] = h5py.SoftLink('/real/x')
        file['real/near'] = h5py.SoftLink('./x')
        file['broken'] = h5py.SoftLink('/nothing')
        file['gone'] = h5py.ExternalLink('gone.h5', '/x')
    assert ('real/near', 'real/x', 'soft') == HDF5Dataset(path).sources
    with pytest.raises(FileNotFoundError, match=r'gone.h5'):
        HDF5Dataset(path, ['gone'])
    with h5py.File(path, 'a') as file:
        file['one'] = h5py.SoftLink('/two')
        file['two'] = h5py.SoftLink('/one')
    with pytest.raises(ValueError, match='leads in a circle'):
        HDF5Dataset(path, ['one'])


def test_external_links_stay_in_the_folder(tmp_path):
    """A file from elsewhere could name any file of the machine."""
    (tmp_path / 'data').mkdir()
    write(tmp_path / 'secret.h5', x=numpy.arange(4))
    write(tmp_path / 'data' / 'other.h5', x=numpy.arange(4))
    path = tmp_path / 'data' / 'a.h5'
    with h5py.File(path, 'w') as file:
        file['near'] = h5py.ExternalLink('other.h5', '/x')
        file['far'] = h5py.ExternalLink('../secret.h5', '/x')
        file['by_way'] = h5py.SoftLink('/far')
    assert [3, 0] == HDF5Dataset(path, ['near']).get_data(
        None, [3, 0])[0].tolist()
    for name in 'far', 'by_way':
        with pytest.raises(ValueError, match=r'secret.h5.*lies outside of '
                           r"the folder.*follow='anywhere'"):
            HDF5Dataset(path, [name])
    dataset = HDF5Dataset(path, ['far', 'by_way'], follow='anywhere')
    assert [3] == dataset.get_data(None, [3])[1].tolist()


@pytest.fixture
def virtual(tmp_path):
    """Return the path of a file whose rows lie in another, and of that."""
    (tmp_path / 'data').mkdir()
    other = write(tmp_path / 'data' / 'other.h5', x=numpy.arange(6))
    path = tmp_path / 'data' / 'virtual.h5'

    def make(name='other.h5'):
        layout = h5py.VirtualLayout((6,), 'i8')
        layout[:] = h5py.VirtualSource(name, 'x', (6,))
        with h5py.File(path, 'w') as file:
            file.create_virtual_dataset('x', layout, fillvalue=-1)
        return path

    return make, other


def test_virtual_rows_lie_in_files_of_the_folder(tmp_path, virtual):
    """HDF5 follows names to anywhere, and gives fill values for what is not
    there."""
    make, other = virtual
    assert [5, 0] == HDF5Dataset(make()).get_data(None, [5, 0])[0].tolist()
    os.rename(other, tmp_path / 'gone.h5')
    with pytest.raises(FileNotFoundError, match=r'virtual.h5.*other.h5'):
        HDF5Dataset(make())
    with pytest.raises(ValueError, match=r'gone.h5.*outside of the folder'):
        HDF5Dataset(make('../gone.h5'))
    dataset = HDF5Dataset(make('../gone.h5'), follow='anywhere')
    assert [3] == dataset.get_data(None, [3])[0].tolist()


def test_raw_data_elsewhere_are_refused(tmp_path, monkeypatch):
    """The bytes of such an array are in another file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'secret').write_bytes(bytes(range(8)))
    (tmp_path / 'data').mkdir()
    with h5py.File(tmp_path / 'data' / 'a.h5', 'w') as file:
        file.create_dataset('x', (8,), 'u1', external=[('secret', 0, 8)])
    with pytest.raises(ValueError, match=r"secret', which lies outside"):
        HDF5Dataset('data/a.h5')
    dataset = HDF5Dataset('data/a.h5', follow='anywhere')
    assert [7, 1] == dataset.get_data(None, [7, 1])[0].tolist()


def test_file_without_parts_is_an_error_or_left_out(tmp_path):
    """A file is left out like a part that lacks an array."""
    paths = [write(tmp_path / 'a.h5', y=numpy.arange(4)),
             write(tmp_path / 'b.h5', run_1__x=numpy.arange(3))]
    with pytest.raises(ValueError, match=r"a.h5' has no group 'run_\*'; it "
                       "has 'y'"):
        HDF5Dataset(paths, ['x'], parts='run_*')
    assert 3 == HDF5Dataset(
        paths, ['x'], parts='run_*', missing='skip').num_examples
    with pytest.raises(ValueError, match="no file has a group 'jump_"):
        HDF5Dataset(paths, ['x'], parts='jump_*', missing='skip')


@pytest.mark.skipif(not hasattr(os, 'fork'), reason='no fork here')
def test_forked_child_opens_the_files_itself(tmp_path):
    """The child also opens the file of a source that only h5py reads."""
    path = tmp_path / 'a.h5'
    with h5py.File(path, 'w') as file:
        file.create_dataset('x', data=numpy.arange(100), chunks=(10,),
                            scaleoffset=0)
    dataset = HDF5Dataset(path)
    dataset.get_data(None, [4])
    parent = dataset.readers
    read, write_end = os.pipe()
    child = os.fork()
    if not child:
        rows = dataset.get_data(None, [7, 99])[0].tolist()
        is_new = dataset.readers is not parent
        os.write(write_end, f'{rows} {is_new}'.encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert b'[7, 99] True' == os.read(read, 99)
    os.close(read)
    os.close(write_end)
    assert [5] == dataset.get_data(None, [5])[0].tolist()
    assert dataset.readers is parent


def test_text_becomes_str_and_bytes_stay(tmp_path):
    """The text has variable length, and the bytes fixed length."""
    path = write(tmp_path / 'a.h5', free=['é', 'bc'],
                 fixed=numpy.array([b'abc', b'd']))
    free, fixed = HDF5Dataset(path, ['free', 'fixed']).get_data(
        None, [1, 0])
    assert ['bc', 'é'] == free.tolist()
    assert [b'd', b'abc'] == fixed.tolist()
    assert numpy.dtype('S3') == fixed.dtype


@settings(suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_rows_equal_those_of_h5py(tmp_path_factory, data):
    """Parts of any lengths and storage, any request."""
    path = tmp_path_factory.getbasetemp() / 'any.h5'
    lengths = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=6))
    dtype = data.draw(st.sampled_from(['u1', '>i4', '<f8', '?', 'S3']))
    path.unlink(missing_ok=True)
    with h5py.File(path, 'w') as file:
        for number, length in enumerate(lengths):
            values = numpy.random.RandomState(number).randint(
                0, 99, (length, 2)).astype(dtype)
            file.create_dataset(f'{number}/x', data=values, **data.draw(
                st.sampled_from([{}, {'chunks': (1, 2)},
                                 {'chunks': (length, 1), 'shuffle': True},
                                 {'chunks': (1, 1), 'compression': 'gzip'},
                                 {'maxshape': (None, 2)}])))
    with h5py.File(path) as file:
        whole = numpy.concatenate([
            file[f'{number}/x'][()] for number in range(len(lengths))])
    dataset = HDF5Dataset(path, parts='*')
    row = st.integers(0, sum(lengths) - 1)
    for request in (data.draw(row), data.draw(
            st.lists(row, min_size=1, max_size=9)), slice(0, len(whole))):
        found, = dataset.get_data(None, request)
        wanted = whole[request].astype(whole.dtype.newbyteorder('='))
        assert wanted.dtype == found.dtype
        assert_array_equal(wanted, found)
    assert numpy.cumsum([0, *lengths]).tolist() == dataset.runs.tolist()
    dataset.close(None)


def test_axes_have_the_labels_of_the_files(tmp_path):
    """Each used source has them, unless others are given."""
    path = tmp_path / 'labels.h5'
    with h5py.File(path, 'w') as file:
        file['x'], file['y'] = numpy.zeros((4, 3, 2)), numpy.zeros(4)
        for axis, label in enumerate(('run', 'time', 'channel')):
            file['x'].dims[axis].label = label
    found = HDF5Dataset(path, ['x', 'y'])
    assert {'x': ('batch', 'time', 'channel'), 'y': None} == found.axis_labels
    assert ('batch', 'run', 'time') == HDF5Dataset(
        path, [Rows('x', axis=-1)]).axis_labels['x']
    assert ('batch', 'channel') == HDF5Dataset(
        path, [Flat('x')]).axis_labels['x']
    assert HDF5Dataset(path, ['y']).axis_labels is None
    assert HDF5Dataset(path, axis_labels={}).axis_labels == {}
    other = tmp_path / 'wrong.h5'
    with h5py.File(other, 'w') as file:
        file['x'] = numpy.zeros((4, 3))
        file['x'].attrs['DIMENSION_LABELS'] = ['run']
    with pytest.raises(DamagedFileError,
                       match=r"wrong\.h5.*'x'.*1 labels"):
        HDF5Dataset(other, ['x'])
    assert 4 == len(HDF5Dataset(other, ['x'], axis_labels={}))
