"""Folders of tables: which files are read, and what their folders tell."""
import itertools
import os
import pickle
import re
import shutil

import pyarrow
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet
import pytest

import fuel
from fuel.exceptions import StateMismatchError
from fuel.interop.arrow import ArrowDataset
from fuel.streams import DataStream


def write(path, values, module=pyarrow.parquet):
    """Write a column 'v', and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    (module.write_feather if module is pyarrow.feather
     else module.write_table)(pyarrow.table({'v': values}), str(path))


def test_columns_of_the_folders_are_sources(tmp_path):
    """They have the types and values that PyArrow finds."""
    write(tmp_path / 'year=2020' / 'kind=a%20b' / 'x.parquet', [1, 2])
    write(tmp_path / 'year=2021' / 'kind=c' / 'x.parquet', [3])
    write(tmp_path / 'year=2021' / 'kind=__HIVE_DEFAULT_PARTITION__'
          / 'x.feather', [4], pyarrow.feather)
    dataset = pickle.loads(pickle.dumps(ArrowDataset(tmp_path)))
    assert ('v', 'year', 'kind') == dataset.sources
    values, years, kinds = dataset.get_data(None, slice(0, 4))
    assert [1, 2, 4, 3] == values.tolist()
    assert ('int32', [2020, 2020, 2021, 2021]) == (
        years.dtype, years.tolist())
    assert ['a b', 'a b', None, 'c'] == kinds.tolist()
    (tmp_path / 'year=2021' / 'kind=__HIVE_DEFAULT_PARTITION__'
     / 'x.feather').unlink()
    expected = pyarrow.dataset.dataset(
        tmp_path, partitioning='hive').to_table()
    found = ArrowDataset(tmp_path).get_data(None, slice(0, 3))
    assert expected.to_pydict() == dict(zip(
        dataset.sources, [part.tolist() for part in found], strict=True))
    with pytest.raises(ValueError, match="'kind'.*1 nulls|plain numbers"):
        ArrowDataset(tmp_path, {'both': ['v', 'kind']})


@pytest.mark.parametrize('ignored', [
    '_temporary/0/x.parquet', '.hidden/x.parquet', 'a/_x.parquet',
    'a/.x.parquet', '_delta_log/x.parquet', 'a/notes.txt'])
def test_files_that_the_library_ignores_are_not_read(ignored, tmp_path):
    """A writer that was ended left them behind, or they are hidden."""
    write(tmp_path / 'a' / 'x.parquet', [1])
    write(tmp_path / ignored, [2])
    assert [1] == ArrowDataset(tmp_path).get_data(
        None, slice(0, 1))[0].tolist()
    assert 1 == ArrowDataset(tmp_path).num_examples


def test_folder_of_ignored_files_has_none(tmp_path):
    """It is an error, as for an empty folder; a file that is named alone is
    read."""
    path = tmp_path / '_temporary' / 'x.parquet'
    write(path, [1])
    with pytest.raises(FileNotFoundError, match='no file that ends in'):
        ArrowDataset(tmp_path)
    assert 1 == ArrowDataset(path).num_examples


def test_column_in_the_file_and_in_its_folder_is_refused(tmp_path):
    """It is not known which of the two values is right."""
    path = tmp_path / 'v=3' / 'x.parquet'
    write(path, [1])
    with pytest.raises(ValueError, match="'v' is both in the file"):
        ArrowDataset(tmp_path)
    assert 1 == ArrowDataset([path]).num_examples


def test_value_of_a_folder_is_the_one_it_has_now(tmp_path):
    """A file keeps its version where its folder is renamed, or has two names
    in two folders: its own rows may be shared, what the folder tells not."""
    pyarrow.parquet.write_table(
        pyarrow.table({'v': range(4)}), str(tmp_path / 'x'), row_group_size=2)
    first, second = tmp_path / 'a', tmp_path / 'b'
    (first / 'year=2020').mkdir(parents=True)
    (tmp_path / 'x').rename(first / 'year=2020' / 'x.parquet')
    before = ArrowDataset(first)
    assert [2020, 2020] == before.get_data(None, [0, 3])[1].tolist()
    (first / 'year=2020').rename(first / 'year=2021')
    assert [2021, 2021] == ArrowDataset(first).get_data(
        None, [0, 3])[1].tolist()
    (second / 'kind=c').mkdir(parents=True)
    os.link(first / 'year=2021' / 'x.parquet', second / 'kind=c/x.parquet')
    assert ['c', 'c'] == ArrowDataset(second).get_data(
        None, [0, 3])[1].tolist()
    assert [2020, 2020] == before.get_data(None, [0, 3])[1].tolist()


def test_patterns_are_files_in_natural_order(tmp_path):
    """A pattern may stand alone or in a list."""
    for number in (10, 2, 1):
        write(tmp_path / f'part-{number}.parquet', [number])
    write(tmp_path / 'other.parquet', [0])
    for files in (tmp_path / 'part-*.parquet',
                  [tmp_path / 'part-?.parquet', tmp_path / 'part-1?.parquet']):
        dataset = pickle.loads(pickle.dumps(ArrowDataset(files)))
        assert [1, 2, 10] == dataset[:][0].tolist()
    with pytest.raises(FileNotFoundError, match='no file like'):
        ArrowDataset(tmp_path / '*.arrow')
    with pytest.raises(ValueError, match='list the URLs'):
        ArrowDataset('https://127.0.0.1:1/*.parquet')


@pytest.fixture(params=['files', 'folders', 'values', 'values below',
                        'files and folders', 'folders of others'])
def folder(request, tmp_path):
    """Return a folder of tables, with the rows of each file."""
    names = {
        'files': ['part-1', 'part-2', 'part-10'],
        'folders': ['a/1', 'a/2', 'a/10', 'b/1'],
        'values': ['year=2023/p', 'year=2024/p'],
        'values below': ['year=2/month=1/p', 'year=2/month=10/p',
                         'year=10/month=2/p'],
        'files and folders': ['part-1', 'part-2', 'sub/part-1', 'sub/part-2'],
        'folders of others': ['a/b/x', 'c/d/x']}[request.param]
    for number, name in reversed([*enumerate(names)]):
        write(tmp_path / 'all' / f'{name}.parquet', [number] * (number + 1))
    return tmp_path / 'all'


def test_loader_and_class_read_a_folder_alike(folder):
    """Both read the same files in natural order, with the columns of their
    folders."""
    loaded, made = fuel.load(folder), ArrowDataset(folder)
    count = len({*folder.rglob('*.parquet')})
    assert [number for number in range(count) for _ in range(number + 1)
            ] == loaded[:][0].tolist()
    assert loaded.sources == made.sources
    assert [rows.tolist() for rows in loaded[:]] == [
        rows.tolist() for rows in made[:]]


def test_values_of_folders_are_columns_of_the_loader(tmp_path):
    """They are columns in the folder of the requested split."""
    for split, year in itertools.product(('train', 'test'), (2023, 2024)):
        write(tmp_path / split / f'year={year}' / 'p.parquet', [year])
    with pytest.raises(ValueError, match="has the splits 'test', 'train'"):
        fuel.load(tmp_path)
    for dataset in (fuel.load(tmp_path, 'test'),
                    ArrowDataset(tmp_path, which_sets=('test',))):
        assert ('v', 'year') == dataset.sources
        assert [[2023, 2024]] * 2 == [rows.tolist() for rows in dataset[:]]
    assert 4 == len(fuel.load(tmp_path, 'all'))


def test_folders_can_be_asked_for_as_splits(tmp_path):
    """Their names may be any."""
    for name, value in (('red', 1), ('blue', 2)):
        write(tmp_path / 'data' / name / 'x.parquet', [value])
    for names in (('red',), ('red', 'blue'), ('blue', 'red')):
        expected = [{'red': 1, 'blue': 2}[name] for name in names]
        for dataset in (fuel.load(tmp_path, names),
                        ArrowDataset(tmp_path, which_sets=names)):
            assert expected == dataset[:][0].tolist()
    assert [2, 1] == fuel.load(tmp_path)[:][0].tolist()
    for call in (lambda: fuel.load(tmp_path, 'green'),
                 lambda: ArrowDataset(tmp_path, which_sets=('green',))):
        with pytest.raises(ValueError, match="no split 'green'.*'red'"):
            call()


def test_state_of_files_in_another_order_is_refused(tmp_path):
    """Its rows are others; in another folder they are the same."""
    for number in (1, 2, 10):
        write(tmp_path / 'a' / f'part-{number}.parquet', [number] * 4)
    files = [tmp_path / 'a' / f'part-{number}.parquet'
             for number in (1, 10, 2)]
    by_path = DataStream(ArrowDataset(files), batch_size=3)
    next(iter(by_path))
    state = by_path.state_dict()
    for dataset in (fuel.load(tmp_path / 'a'), ArrowDataset(tmp_path / 'a')):
        with pytest.raises(StateMismatchError, match='data set files was'):
            DataStream(dataset, batch_size=3).load_state_dict(state)
    shutil.copytree(tmp_path / 'a', tmp_path / 'b')
    moved = DataStream(ArrowDataset([
        tmp_path / 'b' / file.name for file in files]), batch_size=3)
    moved.load_state_dict(state)
    assert [1, 10, 10] == next(iter(moved))[0].tolist()


def test_many_files_are_shown_by_the_first_and_the_last(tmp_path):
    """Files of other formats are shown in the same way."""
    for number in (1, 2, 10):
        write(tmp_path / f'part-{number}.parquet', [number])
    assert re.search(r'part-1\.parquet to \S*part-10\.parquet, 3 files',
                     repr(ArrowDataset(tmp_path)))
