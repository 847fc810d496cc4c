"""Tables of Parquet beside files, by PyArrow's writer: `to_pydict` says what
they have."""
import datetime
import json
import pickle

import pyarrow
import pytest
from pyarrow import parquet

import fuel
from fuel.datasets import FilesDataset
from fuel.exceptions import DamagedFileError, StateMismatchError
from fuel.interop.arrow import ArrowDataset
from fuel.streams import DataStream

NAMES = ['2.png', 'b/1.png', 'a/1.png', './2.png', 'a/3.png']
CLASSES = {'kind': {'_type': 'ClassLabel', 'names': ['cat', 'dog']}}
TABLE = pyarrow.table({
    'weight': pyarrow.array([.5, None, 2, 3, 4], 'float32'),
    'file_name': pyarrow.array(NAMES).dictionary_encode(),
    'age': pyarrow.array(range(5), 'int16'),
    'text': ['a', '', None, 'größer', 'e'],
    'box': pyarrow.array([[1, 2], [3, 4], [5, 6], [7, 8], [9, 0]],
                         pyarrow.list_(pyarrow.int64(), 2)),
    'ids': [[1], [], [2, 3], [4], [5]], 'kind': [0, 1, 1, 0, 1],
    'day': [datetime.date(2024, 2, day) for day in range(1, 6)],
}).replace_schema_metadata(
    {'huggingface': json.dumps({'info': {'features': CLASSES}})})


def write(folder, table=TABLE, name='metadata.parquet', **options):
    """Write files, each with its own path as content, and a table."""
    for file in NAMES:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(file.removeprefix('./'))
    parquet.write_table(table, folder / name, **options)
    return folder


def columns(dataset, rows=slice(0, 5)):
    """Return some rows of all sources."""
    return dict(zip(dataset.sources, [
        one.tolist() for one in dataset.get_data(None, rows)], strict=True))


@pytest.mark.parametrize('group', [1, 2, 9])
def test_rows_of_the_table_are_the_examples(tmp_path, group):
    """In groups of rows; the columns have the types that Arrow has."""
    dataset = fuel.load(write(tmp_path, row_group_size=group))
    assert isinstance(dataset, FilesDataset)
    assert ('image', *TABLE.column_names) == dataset.sources
    found = columns(dataset)
    assert [name.removeprefix('./').encode() for name in NAMES] == found.pop(
        'image')
    assert [.5, 2, 3, 4] == [one for one in found.pop('weight') if one == one]
    found['ids'] = [one.tolist() for one in found['ids']]
    assert TABLE.drop(['weight']).to_pydict() == found
    types = dataset.known_types()
    assert ['float32', 'int16', 'datetime64[D]'] == [
        types[name].dtype for name in ('weight', 'age', 'day')]
    assert {'kind': ('cat', 'dog')} == dataset.categories
    assert columns(pickle.loads(pickle.dumps(dataset)))['age'] == found['age']
    for image, name, age in DataStream(FilesDataset(
            tmp_path, sources=('image', 'file_name', 'age')), batch_size=2,
            shuffle=True, seed=3):
        assert image.tolist() == [
            one.removeprefix('./').encode() for one in name]
        assert name.tolist() == [NAMES[one] for one in age]


def test_each_split_may_have_a_table(tmp_path):
    """The paths are relative to the table; all tables are of one kind."""
    for split, age in ('train', 1), ('test', 2):
        write(tmp_path / split, TABLE.slice(age))
    dataset = fuel.load(tmp_path, 'train')
    assert ('test', 'train') == dataset.split_names
    assert {b'b/1.png', b'a/3.png', b'2.png', b'a/1.png'} == {*columns(
        dataset, slice(0, 4))['image']}
    assert NAMES[1:] == columns(dataset, slice(0, 4))['file_name']
    (tmp_path / 'train' / 'metadata.parquet').unlink()
    (tmp_path / 'train' / 'metadata.csv').write_text('file_name\n2.png\n')
    with pytest.raises(ValueError, match='tables of two kinds'):
        fuel.load(tmp_path, 'train')


def test_table_that_was_changed_is_read_by_the_next_epoch(tmp_path):
    """If it has as many rows as before."""
    ages = FilesDataset(write(tmp_path), sources=('age',))
    stream = DataStream(ages, batch_size=5)
    next(iter(stream))
    age = TABLE.column_names.index('age')
    write(tmp_path, TABLE.set_column(
        age, 'age', pyarrow.array(range(10, 15), 'int16')))
    assert [10, 11, 12, 13, 14] == next(iter(stream))[0].tolist()
    write(tmp_path, TABLE.slice(1))
    with pytest.raises(StateMismatchError):
        next(iter(stream))


def test_tables_that_do_not_fit_are_refused(tmp_path):
    """The error names the table, and the row."""
    write(tmp_path, TABLE.drop(['file_name']))
    with pytest.raises(ValueError, match=(
            r"metadata\.parquet: a table of files has a column 'file_name', "
            ".* are 'weight', 'age', 'text'.*: rename the column")):
        FilesDataset(tmp_path)
    write(tmp_path)
    (tmp_path / 'a' / '3.png').unlink()
    with pytest.raises(FileNotFoundError, match=(
            r"metadata\.parquet, row 4: there is no file 'a/3\.png'")):
        FilesDataset(tmp_path)
    write(tmp_path, TABLE.slice(0, 0))
    with pytest.raises(ValueError, match=r'metadata\.parquet has no rows'):
        FilesDataset(tmp_path)
    (tmp_path / 'metadata.parquet').write_bytes(b'PAR1 and no more')
    with pytest.raises(DamagedFileError, match=r'metadata\.parquet'):
        fuel.load(tmp_path)


def test_other_tables_beside_files_are_the_data(tmp_path):
    """As before, a folder with a table of another name holds tables."""
    dataset = fuel.load(write(tmp_path, name='train.parquet'))
    assert isinstance(dataset, ArrowDataset)


def test_nulls_are_an_error_with_the_file(tmp_path):
    """As in other tables; the column may be left out."""
    folder = write(tmp_path, TABLE.append_column(
        'rank', pyarrow.array([1, None, 3, 4, 5])))
    with pytest.raises(ValueError, match=(
            r"metadata\.parquet: column 'rank' .* 1 nulls, .* sources=")):
        fuel.load(folder)[:]
    assert 5 == len(fuel.load(folder, sources=['image', 'age'])[:][1])
