"""Arguments that are given to `fuel.load` in the place of those that a layout
has: the others stay."""
import pickle

import h5py
import numpy
import pytest
from support import processes
from support.layouts import MINIATURES, miniature_named
from support.layouts.comparing import as_lists

import fuel
from fuel.datasets import Flat, HDF5Dataset, Rows, Runs, Windows
from fuel.exceptions import AmbiguousLayoutError

KNOWN = [one for one in MINIATURES if one.layout != 'plain']


def written(name, folder):
    """Write a miniature and return its files."""
    return miniature_named(name).write(
        folder, numpy.random.default_rng(4)).files


@pytest.mark.parametrize('miniature', KNOWN, ids=str)
def test_columns_by_name_are_those_of_the_layout(miniature, tmp_path):
    """They keep its runs, parts and splits, in the given order; `sources` and
    the layout's name give the same."""
    files = miniature.write(tmp_path, numpy.random.default_rng(4)).files
    whole = fuel.load(files)
    rows = whole.dataset if isinstance(whole, Runs) else whole
    counting = [name for name in whole.sources
                if rows.columns[name].counts_rows][:1]
    names = [*counting, *[name for name in reversed(whole.sources)
                          if name not in counting][:1]]
    expected = fuel.load(files, sources=names)
    for more in ({}, {'layout': miniature.layout}):
        found = fuel.load(files, columns=names, **more)
        assert tuple(names) == found.sources
        assert type(expected) is type(found)
        assert as_lists(expected[:]) == as_lists(found[:])
        if not isinstance(found, Runs):
            assert expected.runs.tolist() == found.runs.tolist()
            assert expected.split_names == found.split_names
        found.close(None)


def test_columns_may_be_renamed_and_others(tmp_path):
    """A name of the layout, a path and a column, beside each other."""
    files = written('Minari', tmp_path)
    dataset = fuel.load(files, columns={
        'next': 'next_observations/position', 'a': 'actions',
        'first': Rows('rewards')})
    whole = fuel.load(files)
    for name, source in (('next', 'next_observations/position'),
                         ('a', 'actions'), ('first', 'rewards')):
        assert whole.columns[source] == dataset.columns[name]
    assert whole.runs.tolist() == dataset.runs.tolist()
    assert ('actions',) == fuel.load(files, columns='actions').sources
    with pytest.raises(ValueError, match='there twice'):
        fuel.load(files, columns=['actions', 'actions'])
    with pytest.raises(ValueError, match="no array 'action' .*'actions'"):
        fuel.load(files, columns=['action'])


def test_runs_and_parts_alone_are_replaced(tmp_path):
    """The columns and splits of the layout stay."""
    files = written('robomimic', tmp_path)
    whole = fuel.load(files)
    one = fuel.load(files, 'train', runs='all')
    assert whole.sources == one.sources
    assert whole.split_names == one.split_names == ('train', 'valid')
    assert [0, *whole.runs[-1:]] == fuel.load(
        files, runs='all').runs.tolist()
    some = fuel.load(files, parts='data/demo_1*')
    assert (whole.sources, whole.split_names) == (
        some.sources, some.split_names)
    assert 3 == len(some.runs) - 1


def test_parts_where_the_layout_has_none_are_all_there_is(tmp_path):
    """Its arrays are in none of them."""
    files = written('D4RL', tmp_path)
    dataset = fuel.load(files, parts='infos', columns=['qpos'])
    assert ([0, 60], ('qpos',)) == (dataset.runs.tolist(), dataset.sources)


def test_columns_of_an_ambiguous_file_say_which_are_meant(tmp_path):
    """The ways to open the file differ in nothing else."""
    files = written('NWB', tmp_path)
    with h5py.File(files, 'r+') as file:
        file['acquisition/eye/data'] = numpy.zeros((7, 2))
        file['acquisition/eye/timestamps'] = numpy.arange(7.)
    with pytest.raises(AmbiguousLayoutError):
        fuel.load(files)
    with pytest.raises(AmbiguousLayoutError):
        fuel.load(files, runs='all')
    assert 7 == len(fuel.load(files, columns=['acquisition/eye/data']))


def test_columns_of_matlab_keep_their_axis(tmp_path):
    """The arrays need not have an axis in common."""
    files = written('MATLAB', tmp_path)
    with h5py.File(files, 'r+') as file:
        file['z'] = numpy.zeros((2, 9))
        file['z'].attrs['MATLAB_class'] = numpy.bytes_('double')
    assert (9, 2) == fuel.load(files, columns=['z'])[:][0].shape


def test_two_layouts_of_other_runs_are_told_apart(tmp_path):
    """Given runs decide between the layouts."""
    files = written('D4RL', tmp_path)
    with h5py.File(files, 'r+') as file:
        file['ep_len'], file['ep_offset'] = [25, 35], [0, 25]
    with pytest.raises(AmbiguousLayoutError, match="'stable_worldmodel'"):
        fuel.load(files, columns=['actions'])
    assert [0, 25, 60] == fuel.load(
        files, columns=['actions'], runs={'lengths': 'ep_len'}).runs.tolist()


def test_columns_of_plain_files_are_read_as_they_are(tmp_path):
    """No layout has a sign, also where there are weights of a model."""
    path = written('nested', tmp_path)
    with h5py.File(path, 'r+') as file:
        file.attrs['keras_version'] = '3'
    dataset = fuel.load(path, columns=['images'])
    assert repr(HDF5Dataset(path, ['images'])) == repr(dataset)
    with pytest.raises(ValueError, match="no layout 'd4rl'"):
        fuel.load(path, columns=['images'], layout='d4rl')


@pytest.mark.parametrize('name, advice', [
    ('PDEBench', r'Flat\(path\)'), ('h5ad dense', 'cells have no order'),
    ('MultimodalUniverse', 'objects have no order')])
def test_windows_over_independent_rows_give_a_warning(
        name, advice, tmp_path, recwarn):
    """A pickled data set warns too; given runs do not."""
    dataset = fuel.load(written(name, tmp_path))
    sources = [dataset.sources[-1]]
    Windows(dataset, 2, runs='all', sources=sources)
    assert not recwarn
    for one in (dataset, pickle.loads(pickle.dumps(dataset))):
        with pytest.warns(UserWarning, match=advice):
            Windows(one, 2, sources=sources)


def test_flat_makes_steps_of_solutions(tmp_path, recwarn):
    """A window lies in one of them."""
    path = written('PDEBench', tmp_path)
    windows = Windows(HDF5Dataset(path, [Flat('tensor')]), 3)
    with h5py.File(path) as file:
        tensor = file['tensor'][()]
    assert 6 * 3 == len(windows)
    numpy.testing.assert_array_equal(windows[4:5][0], tensor[1:2, 1:4])
    assert not recwarn


@pytest.mark.parametrize('name', [
    'r.bin', 'a.csv', 'none.tar', 'none', '*.x', ['a.csv'], 'mnist'])
@pytest.mark.parametrize('argument, meant', [
    ('dtpye', 'dtype'), ('layot', 'layout'), ('colums', 'columns'),
    ('downlaod', 'download'), ('wich_format', 'which_format')])
def test_misspelled_argument_is_named(
        name, argument, meant, tmp_path, monkeypatch):
    """Another error, such as that of a missing type, is not its cause."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'r.bin').write_bytes(b'abcdefgh')
    (tmp_path / 'a.csv').write_text('x\n1\n')
    hint = f".*did you mean '{meant}"
    if 'a.csv' in name and meant == 'which_format':
        # The class is known, and does not take it.
        hint = ': it takes path'
    with pytest.raises(TypeError, match=f"no argument '{argument}'{hint}"):
        fuel.load(name, **{argument: 'x'})


def test_argument_of_one_kind_of_data_is_not_called_unknown(tmp_path):
    """Another error is the cause."""
    with pytest.raises(FileNotFoundError, match='there is no file'):
        fuel.load(tmp_path / 'a.csv', delimiter=';')


FAIL = """
import sys
import fuel
before = {*sys.modules}
try:
    fuel.load(sys.argv[1], sources=('none',))
except ValueError:
    assert not [name for name in {*sys.modules} - before if 'interop' in name]
else:
    raise AssertionError('no error')
"""


def test_error_for_another_reason_imports_no_other_data_set(tmp_path):
    """Arguments that are known need no list of those of all classes.  An error
    in such an import would keep the first error, and the files of its frames.
    """
    path = tmp_path / 'a.h5'
    with h5py.File(path, 'w') as file:
        file['x'] = numpy.zeros(3)
    status, _, errors = processes.run_python('-c', FAIL, str(path))
    assert 0 == status, errors.decode()
