"""Files whose columns differ are refused, or only some are looked at."""
import pickle

import pyarrow
import pyarrow.feather
import pyarrow.parquet
import pytest

import fuel
from fuel.interop.arrow import ArrowDataset

MORE = {'x': [1, 2], 'y': [3, 4]}
LESS = {'x': [5]}


def write(folder, kind, *tables):
    """Write files, and return a pattern of them."""
    for number, table in enumerate(tables):
        path = folder / f'{number}.{kind}'
        (pyarrow.parquet.write_table if kind == 'parquet' else
         pyarrow.feather.write_feather)(pyarrow.table(table), path)
    return folder / f'*.{kind}'


@pytest.mark.parametrize('kind', ['parquet', 'arrow'])
@pytest.mark.parametrize('tables, text', [
    ((MORE, LESS), r"1\.\w+ has no column 'y', which \S*0\.\w+ has"),
    ((LESS, MORE), r"1\.\w+ has a column 'y', and \S*0\.\w+ has none"),
    ((LESS, LESS, MORE), r"2\.\w+ has a column 'y', and \S*0\.\w+ has none")])
def test_files_with_other_columns_are_refused(tmp_path, kind, tables, text):
    """The error names both, whichever comes first."""
    files = write(tmp_path, kind, *tables)
    for build in (fuel.load, ArrowDataset):
        for data in (files, tmp_path, sorted(tmp_path.iterdir())):
            with pytest.raises(ValueError, match=text):
                build(data)


@pytest.mark.parametrize('chosen', [{'sources': ('x',)}, {'columns': ['x']}])
def test_only_columns_that_are_chosen_are_looked_at(tmp_path, chosen):
    """Other columns may differ in either order of the files, and after a
    pickle."""
    for name, tables in (('a', (MORE, LESS)), ('b', (LESS, MORE))):
        (tmp_path / name).mkdir()
        files = write(tmp_path / name, 'parquet', *tables)
        dataset = pickle.loads(pickle.dumps(fuel.load(files, **chosen)))
        assert [row for table in tables for row in table['x']
                ] == dataset[:][0].tolist()


def test_missing_file_is_named_with_where_it_was_looked_for(tmp_path):
    """It is named alone and in a list."""
    path = tmp_path / 'none.parquet'
    for data in (path, [write(tmp_path, 'parquet', LESS), path]):
        with pytest.raises(FileNotFoundError, match=(
                'no Parquet or Arrow file .*none.parquet.*looked in')):
            ArrowDataset(data)
