"""A path at which there is nothing: the error names it, and what is near."""
import os
import re

import numpy
import pytest
from support.tar_files import digits, write_tar

import fuel
from fuel.datasets import BinaryDataset, CSVDataset, TarDataset
from fuel.utils.missing_files import no_file

# A name of each kind of files, and one that is misspelled.
NAMES = {
    'train.bin': 'trian.bin', 'train.csv': 'tran.csv',
    'train.jsonl': 'trains.jsonl', 'train.txt': 'trian.txt',
    'train.npy': 'trian.npy', 'train.npz': 'trian.npz',
    'train.parquet': 'trian.parquet', 'train.arrow': 'trian.arrow',
    'train.tar': 'trian.tar', 'train.tar.gz': 'trian.tar.gz',
    'train.tfrecord': 'trian.tfrecord',
    'train.tfrecord-00000-of-00002': 'trian.tfrecord-00000-of-00002',
    'train.json': 'trian.json', 'train.jpg': 'trian.jpg',
    'train.zarr': 'trian.zarr', 'cells.h5ad': 'cell.h5ad',
    'train.h5': 'trian.h5', 'pictures/': 'picture/',
    'texts/index.json': 'text/index.json'}
EACH = pytest.mark.parametrize('name', NAMES)


def text_of(*arguments, **kwargs):
    """Return the text of the error; it speaks of no format."""
    with pytest.raises(FileNotFoundError) as caught:
        fuel.load(*arguments, **kwargs)
    text = str(caught.value)
    assert not re.search('hdf5|download', text, re.I)
    return text


def write(folder, name):
    """Write an empty file, or make a folder."""
    (folder / name).parent.mkdir(exist_ok=True)
    if name.endswith('/'):
        (folder / name).mkdir()
    else:
        (folder / name).touch()


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """Make the working folder, which is the home folder too."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('HOME', str(tmp_path))
    return tmp_path


@EACH
@pytest.mark.parametrize('where', ['', './', 'none/', '~/', '/none/'])
def test_wrong_name_is_named(name, where):
    """By itself, in a list and in braces."""
    path = where + name
    if '/' in path or '.' in path:
        kind = r'(file|folder|file or folder)'
        assert re.search(f'there is no {kind} .*{re.escape(path)!s}',
                         text_of(path))
    assert path in text_of([path])
    if not name.endswith('/'):
        braces = f'{where}{{a,b}}-{name}'
        assert re.search(f"no file '[^']*a-{re.escape(name)}', which "
                         f"'{re.escape(braces)}' names", text_of(braces))


@EACH
@pytest.mark.parametrize('where', ['', './', '~/'])
def test_misspelled_name_is_corrected(name, where, home):
    """In any folder."""
    write(home, name)
    path = where + NAMES[name]
    right = name.removesuffix('/').removesuffix('/index.json')
    assert re.search(f"did you mean (the folder )?'[^']*{re.escape(right)}'",
                     text_of(path))
    assert path in text_of(path)


@pytest.mark.parametrize('cls, name', [
    (TarDataset, 'train.tar'), (CSVDataset, 'train.csv'),
    (BinaryDataset, 'train.bin')])
def test_classes_correct_a_misspelled_name_as_load_does(cls, name, home):
    """The advice is to correct the name if none is near."""
    write(home, name)
    for path, advice in ((f'./{NAMES[name]}', f"did you mean './{name}'?"),
                         ('./a_name_of_its_own', 'correct the name')):
        with pytest.raises(FileNotFoundError, match=re.escape(
                f'{path!r} (looked in {str(home)!r}): {advice}')):
            cls(path)


def test_home_is_where_its_sign_leads(home):
    """In a list, a pattern and braces too; a file of that name comes
    first."""
    numpy.save(home / 'a.npy', [1, 2])
    numpy.save(home / 'b.npy', [3, 4])
    for name in '~/a.npy', ['~/a.npy'], '~/a*.npy':
        assert [1, 2] == fuel.load(name)[:][0].tolist()
    assert ('a', 'b') == fuel.load('~/{a,b}.npy').sources
    (home / '~').mkdir()
    numpy.save(home / '~' / 'a.npy', [5])
    assert [5] == fuel.load('~/a.npy')[:][0].tolist()


@pytest.mark.parametrize('name, meant', [
    ('{000-005}.tar', "did you mean '{000..005}.tar'?"),
    ('a-{0...5}-{x,y}.tar', "did you mean 'a-{0..5}-x.tar'?"),
    ('{a}.tar', 'or a list, {train,val}, and these do not'),
    ('{a,b.tar', 'a brace in it has no partner'),
    ('a,b}.tar', 'a brace in it has no partner')])
def test_braces_that_stand_for_nothing_are_explained(name, meant):
    """They are not a part of the name."""
    assert meant in text_of(name)


def test_folder_that_is_missing_is_named(home):
    """The first one from above, with the nearest name."""
    (home / 'tars' / 'train').mkdir(parents=True)
    assert "there is no folder 'tar', did you mean the folder 'tars'?" in (
        text_of('tar/train/0.tar'))
    assert "folder 'tars/trian', did you mean the folder 'tars/train'?" in (
        text_of('tars/trian/0.tar'))
    assert "no file like 'tar/*.tar' " in text_of('tar/*.tar')


def test_folders_of_a_pattern_are_not_missing_if_one_fits(home):
    """Only the files in them are; else no folder is like the pattern."""
    (home / 'tars' / 'train').mkdir(parents=True)
    for pattern in 'tars/*/*.tar', 'tars/**/*.tar', 'tars/tr[a]in/*.tar':
        assert text_of(pattern).endswith(f"(looked in '{home}')")
    assert ("there is no folder like 'tars/trian*', did you mean the folder "
            "'tars/train'?") in text_of('tars/trian*/*.tar')


def test_file_in_the_place_of_a_folder_is_named(home):
    """As where the path of a group in it was meant."""
    write(home, 'cells.h5')
    for path in 'cells.h5/obs', 'cells.h5/obs/a.csv', 'cells.h5/*.csv':
        assert text_of(path).endswith(
            ": 'cells.h5' is a file and not a folder")


def test_another_number_is_not_suggested(home):
    """One of several shards is missing, not misspelled; endings do not make
    names alike."""
    for name in 'x-000.tar', 'a.tar':
        write_tar(home / name, digits(0, 1))
    assert text_of('x-{000..001}.tar').endswith(
        "there is no file 'x-001.tar', which 'x-{000..001}.tar' names")
    assert str(no_file('nope.tar')) == "there is no file 'nope.tar'"


def test_type_of_numbers_says_that_a_file_is_meant(home):
    """Its name may be any."""
    write(home, 'tokens')
    assert "there is no file or folder 'token': did you mean 'tokens'?" == (
        text_of('token', dtype='uint16'))


def test_index_is_near_without_its_ending(home):
    """As Megatron names the two files."""
    for name in 'corpus.bin', 'corpus.idx':
        write(home, name)
    assert "did you mean './corpus'?" in text_of(f'.{os.sep}corpsu')
