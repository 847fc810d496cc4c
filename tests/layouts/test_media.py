"""`fuel.load` opens folders of pictures and of audio files."""
import h5py
import numpy
import pytest

import fuel
from fuel.datasets import (
    CSVDataset, FilesDataset, HDF5Dataset, NPYDataset)


def write(folder, *names, content=b'x'):
    """Write files."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


@pytest.mark.parametrize('names, sources, labels', [
    (['cat/1.png', 'dog/2.jpg'], ('image', 'label', 'path'), [0, 1]),
    (['x/cat/1.flac', 'x/dog/2.WAV'], ('audio', 'label', 'path'), [0, 1]),
    (['1.webp', 'README.md', 'notes.txt'], ('image', 'path'), None)])
@pytest.mark.parametrize('split', [None, 'all'])
def test_folders_of_pictures_and_of_audio_files(
        tmp_path, names, sources, labels, split):
    """With classes and without; other files are left out."""
    dataset = fuel.load(write(tmp_path, *names), split)
    assert isinstance(dataset, FilesDataset)
    assert dataset.sources == sources
    if labels:
        assert dataset[:][1].tolist() == labels
    assert str(dataset).startswith(f'FilesDataset({str(tmp_path)!r})\n')


def test_splits_of_a_folder_are_named(tmp_path):
    """One must be chosen; all rows are there if they are asked for."""
    write(tmp_path, 'train/cat/1.png', 'train/dog/2.png', 'test/dog/3.png')
    with pytest.raises(ValueError, match="splits 'test', 'train': .*'train'"):
        fuel.load(tmp_path)
    assert fuel.load(tmp_path, 'test')[:][1].tolist() == [1]
    assert fuel.load(tmp_path, ['test', 'train'])[:][1].tolist() == [1, 0, 1]
    assert len(fuel.load(tmp_path, 'all')) == 3
    assert len(fuel.load(tmp_path / 'train')) == 2
    assert len(fuel.load(tmp_path / 'train', 'all')) == 2
    assert len(fuel.load(tmp_path, splits={'a': [0]})) == 3
    assert len(fuel.load(tmp_path, which_sets=('train',))) == 2
    with pytest.raises(ValueError, match="no split 'valid'"):
        fuel.load(tmp_path, 'valid')
    alone = write(tmp_path / 'alone', 'train/1.png')
    for split in None, 'train', 'all':
        assert len(fuel.load(alone, split)) == 1


def test_files_of_data_come_before_pictures(tmp_path):
    """Pictures beside them are left aside, as they are beside more tables of
    text."""
    write(tmp_path, 'a/1.png', 'a/2.png', 'b/3.png')
    assert isinstance(fuel.load(tmp_path), FilesDataset)
    (tmp_path / 'a' / 'x.npy').mkdir()
    assert isinstance(fuel.load(tmp_path), FilesDataset)
    with h5py.File(tmp_path / 'a.h5', 'w') as file:
        file['x'] = numpy.arange(3)
    assert isinstance(fuel.load(tmp_path), HDF5Dataset)
    folder = write(tmp_path / 'tables', '1.csv', content=b'a\n1\n')
    write(folder, '1.png')
    assert isinstance(fuel.load(folder), CSVDataset)
    write(folder, '2.png')
    assert isinstance(fuel.load(folder), FilesDataset)
    archives = write(tmp_path / 'archives', 'x/1.zip', 'x/2.zip', 'x/1.png')
    with pytest.raises(FileNotFoundError, match='unpack it'):
        fuel.load(archives)


def test_links_do_not_hide_files_of_data(tmp_path):
    """Links that lead out are refused in a folder of pictures; files of data
    are read all the same, as in a snapshot of Hugging Face's cache."""
    numpy.save(tmp_path / 'rows.npy', numpy.arange(3))
    write(tmp_path, 'picture', 'rows.csv', content=b'a\n1\n')
    for name, kind in ('rows.npy', NPYDataset), ('rows.csv', CSVDataset):
        folder = tmp_path / f'folder of {name}'
        folder.mkdir()
        (folder / name).symlink_to(tmp_path / name)
        (folder / '1.png').symlink_to(tmp_path / 'picture')
        assert isinstance(fuel.load(folder), kind)
        (folder / name).unlink()
        with pytest.raises(ValueError, match="follow='anywhere'"):
            fuel.load(folder)


def test_table_of_files_makes_a_data_set_of_files(tmp_path):
    """One picture is enough."""
    write(tmp_path, '1.png')
    (tmp_path / 'metadata.csv').write_text('file_name,n\n1.png,7\n')
    dataset = fuel.load(tmp_path)
    assert dataset.sources == ('image', 'file_name', 'n')
    assert dataset[0] == (b'x', '1.png', 7)


def test_arguments_of_the_data_set(tmp_path):
    """They are passed on; a layout is of HDF5 files."""
    write(tmp_path, 'a/1.png', 'b/1.png')
    assert fuel.load(tmp_path, sources=('label',))[:][0].tolist() == [0, 1]
    with pytest.raises(ValueError, match='layouts are of HDF5 files'):
        fuel.load(tmp_path, layout='plain')
    write(tmp_path.parent, 'elsewhere.png')
    (tmp_path / 'a' / '2.png').symlink_to(tmp_path.parent / 'elsewhere.png')
    with pytest.raises(ValueError, match="follow='anywhere'"):
        fuel.load(tmp_path)
    assert len(fuel.load(tmp_path, follow='anywhere')) == 3


def test_large_folders_of_data_are_listed_to_their_end(tmp_path, monkeypatch):
    """The first entries are examined, and then listed together with the
    rest."""
    monkeypatch.setattr('fuel.layouts.media.ENTRIES', 2)
    write(tmp_path, *[f'{number}.csv' for number in range(7)],
          content=b'a\n1\n')
    assert len(fuel.load(tmp_path)) == 7
