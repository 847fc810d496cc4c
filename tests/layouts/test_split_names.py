"""HDF5 files that are called as splits are not joined in silence."""
import pickle

import h5py
import numpy
import pytest

import fuel
from fuel.bin import fuel_info

ROWS = {'train': [1, 2, 3], 'test': [7, 8]}


def write(path, rows):
    """Write rows, and return the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, 'w') as file:
        file['x'] = numpy.array(rows)
        file['y'] = numpy.array(rows) * 2.
    return path


@pytest.fixture(params=['{}.h5', '{}_0.h5', 'below/{}.h5'])
def folder(request, tmp_path):
    """Return a folder with a file for each split."""
    for split, rows in ROWS.items():
        write(tmp_path / 'cells' / request.param.format(split), rows)
    return tmp_path / 'cells'


def test_splits_of_hdf5_files_must_be_named(folder, capsys):
    """An error names them, one is read by its name, and `all` reads every row,
    as in Parquet files."""
    for files in folder, f'{next(folder.rglob("*.h5")).parent}/*.h5':
        with pytest.raises(ValueError, match=(
                "has the splits 'test', 'train': name one or more, such as "
                "split='train'; split='all' takes all rows")):
            fuel.load(files)
        for split, rows in ROWS.items():
            for more in {}, {'columns': ['x']}:
                dataset = pickle.loads(pickle.dumps(
                    fuel.load(files, split, **more)))
                assert rows == dataset[:][0].tolist()
        for names in (['train', 'test'], ['test', 'train']):
            assert [row for name in names for row in ROWS[name]] == (
                fuel.load(files, names)[:][0].tolist())
        assert [1, 2, 3, 7, 8] == sorted(
            fuel.load(files, 'all')[:][0].tolist())
        with pytest.raises(ValueError, match="no split 'valid'; the splits "):
            fuel.load(files, 'valid')
    assert 0 == fuel_info.main([str(folder)])
    shown = capsys.readouterr().out
    assert '5 examples' in shown and 'train' in shown.partition('Splits')[2]


def test_splits_may_come_in_any_ordered_form(folder, tmp_path):
    """All rows too; but a set has no order, and no names are a mistake."""
    for split, rows in ROWS.items():
        (tmp_path / f'{split}.csv').write_text(
            '\n'.join(['x', *map(str, rows)]))
    for files in folder, f'{tmp_path}/{{train,test}}.csv':
        for names in ['test', 'train'], ('test', 'train'):
            for given in names, iter(names):
                assert [7, 8, 1, 2, 3] == fuel.load(
                    files, given)[:][0].tolist()
        for given in ['all'], ('all',), {'all'}:
            assert [1, 2, 3, 7, 8] == sorted(
                fuel.load(files, given)[:][0].tolist())
        with pytest.raises(ValueError, match='split must .* got a set'):
            fuel.load(files, {'train', 'test'})
        with pytest.raises(ValueError, match='split must name at least one'):
            fuel.load(files, [])
    assert [1, 2, 3] == fuel.load(tmp_path / 'train.csv', ('all',))[:][
        0].tolist()


def test_hdf5_files_of_other_names_are_joined(tmp_path):
    """One that is not called as a split is makes all files plain parts; so
    does a list, in which each file is named, or `splits`."""
    paths = [write(tmp_path / f'{name}.h5', rows)
             for name, rows in ROWS.items()]
    assert [1, 2, 3, 7, 8] == fuel.load(list(map(str, paths)))[:][0].tolist()
    assert [7, 1] == fuel.load(tmp_path, 'a', splits={
        'a': [0, 2]})[:][0].tolist()
    write(tmp_path / 'other.h5', [9])
    assert [9, 7, 8, 1, 2, 3] == fuel.load(tmp_path)[:][0].tolist()
    with pytest.raises(ValueError, match=(
            "no split 'train': neither the data nor the argument splits=")):
        fuel.load(tmp_path, 'train')


def test_only_hdf5_file_is_the_split_of_its_name(tmp_path):
    """The split may be left out; another one is an error."""
    write(tmp_path / 'train.h5', [4, 5])
    for split in None, 'train', 'all':
        assert [4, 5] == fuel.load(tmp_path, split)[:][0].tolist()
    with pytest.raises(ValueError, match="no split 'test'"):
        fuel.load(tmp_path, 'test')


def test_splits_in_files_come_before_their_names(tmp_path):
    """Files of robomimic have lists of their demonstrations."""
    for name, lists in ('train', {'valid': [b'demo_1']}), (
            'test', {'valid': [b'demo_2']}):
        with h5py.File(tmp_path / f'{name}.hdf5', 'w') as file:
            for number in range(3):
                demo = file.create_group(f'data/demo_{number}')
                demo.attrs['num_samples'] = 2
                demo['actions'] = numpy.full((2, 7), number)
            for split, demos in lists.items():
                file[f'mask/{split}'] = numpy.array(demos)
    assert 12 == len(fuel.load(tmp_path))
    found = fuel.load(tmp_path, 'valid')
    assert [2, 2, 1, 1] == found[:][0][:, 0].tolist()


def test_listed_hdf5_files_are_split_if_a_split_is_asked_for(tmp_path):
    """So are braces and a single file."""
    paths = [write(tmp_path / f'{name}.h5', rows)
             for name, rows in ROWS.items()]
    for files in paths, f'{tmp_path}/{{train,test}}.h5', paths[1]:
        assert ROWS['test'] == fuel.load(files, 'test')[:][0].tolist()
    with pytest.raises(ValueError, match=r"no split 'dev'.*'train', 'test'"):
        fuel.load(paths, 'dev')
