"""Files of several splits are not read as one table in silence."""
import pickle

import pyarrow
import pyarrow.parquet
import pytest

import fuel
from fuel.bin import fuel_convert, fuel_info
from fuel.interop.arrow import ArrowDataset

ROWS = {'train': [1, 2, 3], 'test': [7, 8]}
NAMES = {
    'folders': '{}/0.parquet',
    'folders below': 'data/en/{}/0.parquet',
    'hub': '{}-00000-of-00001.parquet',
    'hub below': 'data/{}-00000-of-00001-0123456789abcdef.parquet',
    'files': '{}.parquet'}


@pytest.fixture(params=NAMES, ids=list(NAMES))
def folder(request, tmp_path):
    """Return a folder whose files have other columns in each split."""
    for split, rows in ROWS.items():
        path = tmp_path / 'pets' / NAMES[request.param].format(split)
        path.parent.mkdir(parents=True, exist_ok=True)
        pyarrow.parquet.write_table(
            pyarrow.table({'x': rows, split: rows}), path)
    return tmp_path / 'pets'


def test_splits_of_a_folder_must_be_named(folder):
    """The loader and the class ask for a name; others are refused."""
    what = "pets' has the splits ('train', 'test'|'test', 'train'): name one "
    with pytest.raises(ValueError, match=f"{what}.*split='train'"):
        fuel.load(folder)
    with pytest.raises(ValueError, match=rf"{what}.*which_sets=\('train',\)"):
        ArrowDataset(folder)
    with pytest.raises(ValueError, match="'valid'.*'test'.*'train'"):
        fuel.load(folder, 'valid')
    with pytest.raises(ValueError, match="no split 'valid'"):
        ArrowDataset(folder, ['x'], which_sets=('valid',))
    for build in (lambda name: fuel.load(folder, name),
                  lambda name: ArrowDataset(folder, which_sets=(name,))):
        for split, rows in ROWS.items():
            dataset = pickle.loads(pickle.dumps(build(split)))
            assert ('x', split) == dataset.sources
            assert rows == dataset[:][0].tolist()


def test_several_and_all_splits_are_read(folder):
    """Their order is that of the names."""
    columns = ['x']
    for names in (['train', 'test'], ['test', 'train']):
        expected = [row for name in names for row in ROWS[name]]
        for dataset in (fuel.load(folder, names, columns=columns),
                        ArrowDataset(folder, columns, which_sets=names)):
            assert expected == dataset[:][0].tolist()
    assert [1, 2, 3, 7, 8] == sorted(
        fuel.load(folder, 'all', columns=columns)[:][0].tolist())
    rows = ArrowDataset(folder, columns, splits={'one': [0]})
    assert 5 == rows.num_examples


@pytest.mark.parametrize('name', ['hub', 'files'])
def test_pattern_of_several_splits_is_refused(tmp_path, name):
    """A list of the files is what its writer says it is."""
    for split, rows in ROWS.items():
        pyarrow.parquet.write_table(
            pyarrow.table({'x': rows}),
            tmp_path / NAMES[name].format(split))
    pattern = str(tmp_path / '*.parquet')
    with pytest.raises(ValueError, match=r"\*.parquet' has the splits"):
        fuel.load(pattern)
    with pytest.raises(ValueError, match="fits no file of a split 'valid'"):
        fuel.load(pattern, 'valid')
    assert ROWS['test'] == fuel.load(pattern, 'test')[:][0].tolist()
    assert ROWS['train'] == fuel.load(
        str(tmp_path / 'train*.parquet'))[:][0].tolist()
    for given, split in ((sorted(tmp_path.iterdir()), None),
                         (pattern, 'all')):
        assert 5 == len(fuel.load(given, split))


def test_conversion_of_several_splits_says_so(tmp_path, caplog):
    """A shell makes one list of them."""
    for split, rows in ROWS.items():
        pyarrow.parquet.write_table(
            pyarrow.table({'x': rows}),
            tmp_path / f'{split}-00000-of-00001.parquet')
    convert = ['parquet', '-o', str(tmp_path), '-r', 'a.hdf5']
    files = sorted(map(str, tmp_path.glob('*.parquet')))
    assert not fuel_convert.main([*convert, files[0]])
    assert 'splits' not in caplog.text
    assert not fuel_convert.main([*convert, *files])
    assert 'files of the splits test, train become one' in caplog.text


def test_files_that_are_not_splits_are_one_table(tmp_path):
    """The names may say anything but a split."""
    for name in ('a/train_x', 'a/train_y', 'b/2023', 'b/test', 'c/x=1/0',
                 'c/x=2/0'):
        path = tmp_path / f'{name}.parquet'
        path.parent.mkdir(parents=True, exist_ok=True)
        pyarrow.parquet.write_table(pyarrow.table({'y': [1, 2]}), path)
    for folder in 'abc':
        assert 4 == len(fuel.load(tmp_path / folder))
        assert 4 == len(ArrowDataset(tmp_path / folder))


def test_folder_that_hugging_face_saved_has_its_splits(
        tmp_path, hugging_face, capsys):
    """The splits may have any names."""
    hugging_face.DatasetDict({
        name: hugging_face.Dataset.from_dict({'x': rows})
        for name, rows in (('red', [1, 2]), ('blue', [3]))
    }).save_to_disk(tmp_path / 'saved')
    with pytest.raises(ValueError, match="has the splits 'blue', 'red'"):
        ArrowDataset(tmp_path / 'saved')
    with pytest.raises(ValueError, match="has the splits 'blue', 'red'"):
        fuel.load(tmp_path / 'saved')
    assert [1, 2] == fuel.load(tmp_path / 'saved', 'red')[:][0].tolist()
    assert [3] == ArrowDataset(
        tmp_path / 'saved', which_sets=('blue',))[:][0].tolist()
    assert 0 == fuel_info.main([str(tmp_path / 'saved')])
    assert '3 examples' in capsys.readouterr().out
