"""Files in folders, made by hand; `sorted` and `os.walk` say their order."""
import csv
import io
import json
import os
import pickle
import re
import sys
import threading
import time

import numpy
import pytest
from numpy.testing import assert_array_equal
from PIL import Image

import fuel
from fuel.config_parser import config
from fuel.datasets import FilesDataset, folder_index
from fuel.exceptions import BadRecordsError, StateMismatchError
from fuel.schemes import (
    ConcatenatedScheme, SequentialScheme, ShuffledScheme)
from fuel.streams import DataStream
from fuel.transformers import MultiProcessing
from fuel.transformers.image import ImagesFromBytes


def write(folder, *names):
    """Write files, each with its own path as content."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.fsencode(name))
    return folder


def settle(folder):
    """Set old times, as of a folder that was made yesterday."""
    for where, _, _ in os.walk(folder):
        os.utime(where, ns=(10 ** 18, 10 ** 18))


def rows(dataset):
    """Return all rows of all sources."""
    data = dataset.get_data(None, slice(0, dataset.num_examples))
    return dict(zip(dataset.sources, [one.tolist() for one in data],
                    strict=True))


def of_torchvision(folder, endings):
    """Return paths and labels of ImageFolder of torchvision 0.21, whose
    `make_dataset` this is."""
    classes = sorted(entry.name for entry in os.scandir(folder)
                     if entry.is_dir())
    return classes, [
        (os.path.relpath(os.path.join(root, one), folder), label)
        for label, name in enumerate(classes)
        for root, _, names in sorted(os.walk(
            os.path.join(folder, name), followlinks=True))
        for one in sorted(names) if one.lower().endswith(endings)]


TREES = {
    'plain': ['cat/1.png', 'cat/10.png', 'cat/2.png', 'dog/1.png'],
    'deep': ['b/x/1.png', 'b/x-y/2.png', 'b/x/z/3.png', 'b/0.png', 'a/9.jpg',
             'B/1.png', 'ä/1.png', 'a b/1.png', 'b/X/1.png'],
    'mixed': ['a/1.JPG', 'a/1.txt', 'a/2.jpeg', 'b/c.Png', 'b/notes.md',
              'README.md']}


@pytest.mark.parametrize('tree', TREES)
@pytest.mark.parametrize('split', ['', 'train'])
def test_order_and_labels_are_those_of_torchvision(tmp_path, tree, split):
    """Below a split too, with or without naming it."""
    names = [os.path.join(split, name) for name in TREES[tree]]
    dataset = FilesDataset(write(tmp_path, *names))
    classes, expected = of_torchvision(
        tmp_path / split, ('.png', '.jpg', '.jpeg'))
    found = rows(dataset)
    assert dataset.sources == ('image', 'label', 'path')
    assert dataset.categories == {'label': tuple(classes)}
    assert dataset.class_names == tuple(classes)
    assert [(os.path.relpath(path, split) if split else path, label)
            for path, label in zip(found['path'], found['label'],
                                   strict=True)] == expected
    assert found['image'] == list(map(os.fsencode, found['path']))
    assert dataset.known_types()['label'].dtype == 'int64'
    assert dataset.category_names('label', numpy.array([1, -1])).tolist() == [
        classes[1], None]


def test_splits_are_folders_above_the_classes(tmp_path):
    """Labels are the same in all splits, also if one of them lacks a class;
    files that lie in no class have the label -1."""
    write(tmp_path, *[f'data/{name}' for name in (
        'train/cat/1.png', 'train/dog/1.png', 'train/dog/2.png',
        'valid/dog/3.png', 'test/4.png', 'extra/emu/5.png')])
    dataset = FilesDataset(tmp_path)
    assert dataset.split_names == ('extra', 'test', 'train', 'valid')
    assert dataset.class_names == ('cat', 'dog', 'emu')
    expected = {'train': [0, 1, 1], 'valid': [1], 'test': [-1], 'extra': [2]}
    for split, labels in expected.items():
        part = FilesDataset(tmp_path, which_sets=(split,))
        assert rows(part)['label'] == labels
        assert {path.split('/')[1] for path in rows(part)['path']} == {split}
    both = FilesDataset(tmp_path, which_sets=('valid', 'train'))
    assert rows(both)['label'] == [1, 0, 1, 1]
    with pytest.raises(ValueError, match=r"no split 'dev'.*'extra', 'test'"):
        FilesDataset(tmp_path, which_sets=('dev',))
    own = FilesDataset(tmp_path, which_sets=('a',), splits={'a': [5, 0]})
    assert rows(own)['label'] == [1, 2]
    assert own.split_names == ('a',)


def test_examples_in_no_class_are_printed(tmp_path):
    """Those of the splits in use, while their labels are in use."""
    write(tmp_path, 'train/a/1.png', 'train/b/1.png', 'train/0.png',
          *[f'test/{number}.png' for number in range(5)])
    for split, text in (
            ('train', '1 in no class, with the label -1: train/0.png'),
            ('test', '5 in no class, with the label -1: test/0.png, ')):
        dataset = FilesDataset(tmp_path, which_sets=(split,))
        assert f'; {text}' in str(dataset)
        dataset.sources = ('image', 'path')
        assert 'no class' not in str(dataset)
    assert '; 6 in no class' in str(FilesDataset(tmp_path))
    some = FilesDataset(tmp_path, which_sets=('a',), splits={'a': [6, 7]})
    assert 'no class' not in str(some)
    assert rows(some)['label'] == [0, 1]


def test_a_column_of_a_table_is_not_the_number_of_a_class(tmp_path):
    """A label of -1 is a value like others there."""
    write(tmp_path, '1.png')
    table(tmp_path / 'metadata.csv', [
        {'file_name': '1.png', 'label': -1, 'path': 'x'}])
    assert 'no class' not in str(FilesDataset(tmp_path))


@pytest.mark.parametrize('names, splits, classes', [
    (['1.png', '2.png'], (), None),
    (['only/1.png', 'only/2.png'], (), None),
    (['images/a/1.png', 'images/b/1.png'], (), ('a', 'b')),
    (['train/1.png', 'test/2.png'], ('test', 'train'), None),
    (['x/test/1.png', 'x/test/2.png'], ('test',), None),
    (['train/images/1.png', 'test/images/2.png'], ('test', 'train'), None),
    (['bus/1.png', 'car/1.png', 'train/1.png'], (), ('bus', 'car', 'train')),
    (['0.png', 'train/1.png', 'test/2.png'], ('test', 'train'), None),
    (['0.png', 'a/1.png', 'b/2.png'], (), ('a', 'b')),
    (['a/1.png', 'b/2.png', 'docs/notes.txt'], (), ('a', 'b')),
    (['a/1.png', 'docs/notes.txt'], (), None)])
def test_splits_and_classes_by_the_names_of_folders(
        tmp_path, names, splits, classes):
    """Names of splits count if two folders have them, or all."""
    dataset = FilesDataset(write(tmp_path, *names))
    assert (dataset.split_names, dataset.class_names) == (splits, classes)
    assert ('label' in dataset.sources) == (classes is not None)


def test_kinds_of_files(tmp_path):
    """Pictures come before audio files, and these before all others."""
    write(tmp_path, 'a/1.txt', 'b/2.txt')
    assert FilesDataset(tmp_path).sources == ('file', 'label', 'path')
    write(tmp_path, 'a/1.wav', 'b/2.FLAC')
    dataset = FilesDataset(tmp_path)
    assert rows(dataset)['audio'] == [b'a/1.wav', b'b/2.FLAC']
    assert "decode with AudioFromBytes(stream, which_sources=('audio',))" in (
        str(dataset))
    assert 'without 2 other files' in str(dataset)
    write(tmp_path, 'a/1.png')
    dataset = FilesDataset(tmp_path)
    assert dataset.sources == ('image', 'path')
    assert "ImagesFromBytes(stream, which_sources=('image',))" in str(dataset)
    some = FilesDataset(tmp_path, endings=('.TXT', '.flac'))
    assert rows(some)['file'] == [b'a/1.txt', b'b/2.FLAC', b'b/2.txt']
    for ending in '.wav', '.WAV':
        assert rows(FilesDataset(tmp_path, endings=[ending]))['audio'] == [
            b'a/1.wav']
    assert eval(repr(some)).num_examples == 3
    with pytest.raises(FileNotFoundError, match=(
            r"none of the 5 files .* ends with \.npy; there is 'a/1\.png'")):
        FilesDataset(tmp_path, endings=['.npy'])


def test_files_that_are_left_out_are_shown(tmp_path):
    """The first of them, without a table of the files."""
    write(tmp_path, '1.png', '2.txt')
    assert 'without 1 other file: 2.txt' in str(FilesDataset(tmp_path))
    write(tmp_path, '3.txt', '4.txt', '5.txt')
    assert 'without 4 other files: 2.txt, 3.txt, 4.txt, ...' in str(
        FilesDataset(tmp_path))
    (tmp_path / 'metadata.csv').write_text('file_name\n1.png\n3.txt\n')
    assert 'without 3 other files: 2.txt, 4.txt, 5.txt' in str(
        FilesDataset(tmp_path))
    (tmp_path / 'metadata.csv').write_text(
        'file_name\n1.png\n2.txt\n3.txt\n4.txt\n5.txt\n')
    assert 'without' not in str(FilesDataset(tmp_path))


@pytest.mark.parametrize('names, empty', [
    (['cat/1.png', 'dog/2.png'], 'bird'),
    (['cat/1.png', 'dog/2.png'], 'bird/young'),
    (['cat/1.png'], 'dog'), (['cat/young/1.png'], 'dog'),
    (['x/cat/1.png', 'x/dog/1.png'], 'x/bird'),
    (['train/cat/1.png', 'train/dog/2.png', 'test/dog/3.png'], 'test/bird'),
    (['train/cat/1.png', 'test/cat/3.png'], 'train/bird')])
def test_classes_without_files_are_refused(tmp_path, names, empty):
    """As by torchvision; else other classes would have other numbers."""
    (write(tmp_path, *names) / empty).mkdir(parents=True)
    (tmp_path / empty / '.DS_Store').touch()
    with pytest.raises(FileNotFoundError, match=(
            f"folders without files, such as '{empty.partition('/young')[0]}'"
            ".*put their files there, or remove")):
        FilesDataset(tmp_path)


@pytest.mark.parametrize('names, empty', [
    (['train/cat/1.png', 'train/dog/2.png', 'test/dog/3.png'], 'test/cat'),
    (['train/cat/1.png', 'train/dog/2.png'], 'test'),
    (['cat/1.png', 'dog/2.png'], 'cat/old'), (['1.png', '2.png'], 'old'),
    (['x/cat/1.png', 'x/dog/2.png'], 'old')])
def test_other_folders_may_be_empty(tmp_path, names, empty):
    """Such as a class that another split has."""
    before = rows(FilesDataset(write(tmp_path, *names)))
    (tmp_path / empty).mkdir()
    assert rows(FilesDataset(tmp_path)) == before


def test_names_that_are_left_out(tmp_path):
    """Hidden files and folders, and those of operating systems."""
    write(tmp_path, 'a/.x', '.git/b', 'a/Thumbs.db', 'desktop.ini', 'a/b',
          '.DS_Store', 'a/-', 'a/!')
    assert rows(FilesDataset(tmp_path))['path'] == ['a/!', 'a/-', 'a/b']


@pytest.mark.parametrize('make, error, words', [
    (lambda f: FilesDataset(f / 'no'), FileNotFoundError, 'no folder .*no'),
    (lambda f: FilesDataset(f / 'x'), FileNotFoundError, 'there is no folder'),
    (lambda f: FilesDataset(f / 'empty'), FileNotFoundError,
     'has no files, nor have its folders'),
    (lambda f: FilesDataset('https://a.example/x'), ValueError, 'local files'),
    (lambda f: FilesDataset(f, '.png'), FileNotFoundError, r'ends with \.png'),
    (lambda f: FilesDataset(f, [1]), ValueError, 'list of extensions'),
    (lambda f: FilesDataset(f, follow='no'), ValueError, "'anywhere'"),
    (lambda f: FilesDataset(f, columns=['image']), TypeError, 'sources='),
    (lambda f: FilesDataset([f]), TypeError, 'FilesDataset'),
    (lambda f: FilesDataset(f, sources=('image',)), ValueError, "'image'"),
    (lambda f: FilesDataset(f).get_data(None, [1]), ValueError, '1')])
def test_wrong_folders_and_arguments_are_refused(
        tmp_path, make, error, words):
    """The error says what was expected."""
    write(tmp_path, 'x', 'empty/.hidden')
    with pytest.raises(error, match=words):
        make(tmp_path)


def test_names_that_are_not_utf_8(tmp_path):
    """Their bytes are kept, as `os.fsdecode` keeps them."""
    names = [b'\xff\xfe.png', 'ü.png'.encode(), 'u\u0308.png'.encode()]
    try:
        for name in names:
            with open(os.path.join(os.fsencode(tmp_path), name), 'wb') as file:
                file.write(name)
    except OSError:
        pytest.skip('the file system refuses such names')
    found = rows(FilesDataset(tmp_path))
    assert found['path'] == sorted(map(os.fsdecode, names))
    assert found['image'] == list(map(os.fsencode, found['path']))


def test_links(tmp_path):
    """Those within the folder are followed, others if it is asked for."""
    write(tmp_path, 'in/a/1.png', 'in/b/2.png', 'out/3.png')
    folder = tmp_path / 'in'
    (folder / 'c').symlink_to(folder / 'a')
    (folder / 'b' / 'same.png').symlink_to('2.png')
    dataset = FilesDataset(folder)
    assert rows(dataset)['image'] == [
        b'in/a/1.png', b'in/b/2.png', b'in/b/2.png', b'in/a/1.png']
    assert rows(dataset)['label'] == [0, 1, 1, 2]
    link = folder / 'b' / '3.png'
    link.symlink_to(tmp_path / 'out' / '3.png')
    for target in (tmp_path / 'out' / '3.png', tmp_path / 'none'):
        link.unlink()
        link.symlink_to(target)
        with pytest.raises(ValueError, match=(
                r"3\.png' is a link that leads out .*follow='anywhere'")):
            FilesDataset(folder)
    link.unlink()
    link.symlink_to(tmp_path / 'out' / '3.png')
    assert b'out/3.png' in rows(FilesDataset(
        folder, follow='anywhere'))['image']
    link.unlink()
    (folder / 'b' / 'd').symlink_to(tmp_path / 'out')
    with pytest.raises(ValueError, match=r"b/d' is a link that leads out"):
        FilesDataset(folder)
    assert len(FilesDataset(folder, follow='anywhere')) == 5


@pytest.mark.parametrize('target', ['.', '..', 'in/a', 'up'])
def test_links_that_lead_back_are_refused(tmp_path, target):
    """Following them would not end."""
    write(tmp_path, 'in/a/1.png')
    os.symlink(tmp_path / target if target in ('in/a', '..') else
               tmp_path if target == 'up' else target,
               tmp_path / 'in' / 'a' / 'x')
    with pytest.raises(OSError, match='leads back to'):
        FilesDataset(tmp_path / 'in', follow='anywhere')


def read_error(dataset, row):
    """Return the text of the error that reading a row raises."""
    with pytest.raises((OSError, ValueError)) as caught:
        dataset.get_data(None, [row])
    assert not isinstance(caught.value, BadRecordsError)
    return str(caught.value)


def test_files_that_cannot_be_read(tmp_path):
    """They are errors with their names when they are read, not before."""
    write(tmp_path, *[f'{number}.png' for number in range(8)])
    os.unlink(tmp_path / '1.png')
    os.mkfifo(tmp_path / '1.png')
    os.unlink(tmp_path / '2.png')
    os.symlink('nowhere', tmp_path / '2.png')
    (tmp_path / '3.png').write_bytes(b'')
    dataset = FilesDataset(tmp_path)
    os.unlink(tmp_path / '4.png')
    write(tmp_path, 'new')
    os.replace(tmp_path / 'new', tmp_path / '5.png')
    os.unlink(tmp_path / '6.png')
    os.mkdir(tmp_path / '6.png')
    for row, words in ((1, r"1\.png' must be a regular file.*FIFO"),
                       (2, r"2\.png' was there when .* is gone"),
                       (3, r"3\.png' is empty"),
                       (4, r"4\.png' was there when .* is gone"),
                       (5, r"5\.png' was replaced since .*another epoch"),
                       (6, r'6\.png')):
        assert re.search(words, read_error(dataset, row))
    stream = DataStream(dataset, iteration_scheme=SequentialScheme(8, 4),
                        on_error='skip')
    dataset.renew = lambda: None
    assert [image.tolist() for image, _ in stream.get_epoch_iterator()] == [
        [b'0.png'], [b'7.png']]
    assert stream.skipped_examples().count == 6


def test_empty_files_of_any_kind_are_examples(tmp_path):
    """Only pictures and audio files need bytes."""
    (tmp_path / 'a').write_bytes(b'')
    assert rows(FilesDataset(tmp_path))['file'] == [b'']


def test_file_that_grows_while_it_is_read(tmp_path, monkeypatch):
    """Half of two versions is not an example."""
    write(tmp_path, 'a')
    dataset = FilesDataset(tmp_path)
    fstat = os.fstat

    def change(descriptor):
        status = fstat(descriptor)
        with open(tmp_path / 'a', 'ab') as file:
            file.write(b'more')
        return status

    monkeypatch.setattr(os, 'fstat', change)
    assert "a' was written to while it was read" in read_error(dataset, 0)


def test_epochs_follow_the_folder(tmp_path):
    """A file that was replaced is read by the next epoch; files that are not
    examples do not count. A copy from before refuses other files."""
    write(tmp_path, 'a/1.png', 'a/2.png', 'b/3.png')
    dataset = FilesDataset(tmp_path)
    stream = DataStream(dataset, iteration_scheme=SequentialScheme(3, 3))
    list(stream.get_epoch_iterator())
    (tmp_path / 'new').write_bytes(b'changed')
    os.replace(tmp_path / 'new', tmp_path / 'a' / '2.png')
    write(tmp_path, 'a/log.txt', 'c/log.txt')
    (image, _, _), = stream.get_epoch_iterator()
    assert image.tolist() == [b'a/1.png', b'changed', b'b/3.png']
    copied = pickle.dumps(dataset)
    os.rename(tmp_path / 'a' / '2.png', tmp_path / 'b' / '2.png')
    with pytest.raises(StateMismatchError, match='added to .* renamed'):
        pickle.loads(copied).get_data(None, [0])


def add(folder):
    """Add a file, a class, an empty folder and a table."""
    write(folder, 'a/0.png', 'c/4.png')
    (folder / 'd').mkdir()
    table(folder / 'metadata.csv', [{'file_name': 'a/0.png'}])


def rename(folder):
    """Rename the file 2.png, the only one of its class."""
    os.rename(folder / 'b' / '2.png', folder / 'a' / '9.png')


def remove(folder):
    """Remove the file 2.png with its folder."""
    os.unlink(folder / 'b' / '2.png')
    os.rmdir(folder / 'b')


@pytest.mark.parametrize('change', [add, rename, remove])
def test_data_set_keeps_the_files_with_which_it_was_made(tmp_path, change):
    """All later epochs read them, also in copies and in processes; one that is
    gone is an error with its name, or is skipped."""
    names = ['a/1.png', 'b/2.png', 'x/3.png']
    dataset = FilesDataset(write(tmp_path, *names))
    stream, skipping = [DataStream(
        dataset, iteration_scheme=SequentialScheme(3, size), on_error=on_error)
        for size, on_error in ((1, 'raise'), (3, 'skip'))]
    list(stream.get_epoch_iterator())
    change(tmp_path)
    there = [name for name in names if (tmp_path / name).exists()]
    for _ in range(2):
        epoch = stream.get_epoch_iterator()
        if len(there) < len(names):
            next(epoch)
            with pytest.raises(FileNotFoundError, match=(
                    r"b/2\.png' was there .* is gone: put it back")):
                next(epoch)
        (tmp_path / 'new').write_bytes(b'new')
        os.replace(tmp_path / 'new', tmp_path / 'x' / '3.png')
        expected = [(name, names.index(name)) for name in there]
        for each in skipping, skipping.apply(
                MultiProcessing, num_workers=2), skipping.apply(
                MultiProcessing, num_workers=2, start_method='spawn'):
            (_, labels, paths), = each.get_epoch_iterator()
            assert [*zip(paths, labels, strict=True)] == expected
            each.close()
    copied = pickle.loads(pickle.dumps(dataset))
    assert copied.get_data(None, [2, 0])[0].tolist() == [b'new', b'a/1.png']
    if len(there) < len(names):
        write(tmp_path, names[1])
        assert len(list(stream.get_epoch_iterator())) == 3
        assert rows(dataset)['path'] == names


def test_rows_of_a_table_stay_without_one_of_its_files(tmp_path):
    """The error comes when the file is read; another list in the table is
    refused."""
    write(tmp_path, '1.png', '2.png')
    table(tmp_path / 'metadata.csv', [
        {'file_name': name, 'n': 3} for name in ('2.png', '1.png')])
    dataset = FilesDataset(tmp_path)
    stream = DataStream(dataset, iteration_scheme=SequentialScheme(2, 2),
                        on_error='skip')
    os.unlink(tmp_path / '2.png')
    for _ in range(2):
        assert [image.tolist() for image, _, _ in (
            stream.get_epoch_iterator())] == [[b'1.png']]
    table(tmp_path / 'metadata.csv', [
        {'file_name': name, 'n': 3} for name in ('1.png', '1.png')])
    with pytest.raises(StateMismatchError, match='table of them was changed'):
        list(stream.get_epoch_iterator())


def test_file_that_is_overwritten_in_an_epoch(tmp_path):
    """It is an error by its time; the next epoch reads the new file. A time in
    the future says nothing."""
    write(tmp_path, *[f'{number}.png' for number in range(3)])
    late = time.time_ns() + 10 ** 15
    os.utime(tmp_path / '1.png', ns=(late, late))
    stream = DataStream(FilesDataset(tmp_path),
                        iteration_scheme=SequentialScheme(3, 1))
    for content in b'first', b'second':
        epoch = stream.get_epoch_iterator()
        next(epoch)
        (tmp_path / '2.png').write_bytes(content)
        now = time.time_ns()
        os.utime(tmp_path / '2.png', ns=(now, now))
        assert next(epoch)[0].tolist() == [b'1.png']
        with pytest.raises(OSError, match=(
                r"2\.png' was written to since the epoch began.*another")):
            next(epoch)
        assert list(stream.get_epoch_iterator())[2][0].tolist() == [content]


def test_state_belongs_to_the_names_of_the_files(tmp_path):
    """The folder may be moved; files may not be renamed."""
    def stream(folder):
        dataset = FilesDataset(folder)
        return DataStream(dataset, iteration_scheme=ShuffledScheme(
            dataset.num_examples, 2, seed=1))

    names = ['a/1.png', 'a/2.png', 'b/3.png', 'b/4.png', 'b/5.png']
    first = stream(write(tmp_path / 'x', *names))
    epoch = first.get_epoch_iterator()
    next(epoch)
    rest = [batch[2].tolist() for batch in epoch]
    first = stream(tmp_path / 'x')
    next(first.get_epoch_iterator())
    state = first.state_dict()
    moved = stream(write(tmp_path / 'y', *names, 'a/notes.txt'))
    moved.load_state_dict(state)
    assert [batch[2].tolist() for batch in moved.get_epoch_iterator()] == rest
    with pytest.raises(StateMismatchError, match=(
            r'data set files was .*\): it is a checksum of the names of the '
            'files in the folder; some were added, removed or renamed')):
        stream(write(tmp_path / 'z', *names[:-1], 'b/6.png')
               ).load_state_dict(state)


@pytest.fixture
def listed(monkeypatch, tmp_path_factory):
    """Return a list of the folders that are listed, with a cache of its
    own."""
    config.remote_cache_path = str(tmp_path_factory.mktemp('cache'))
    monkeypatch.setattr(folder_index, 'FEWEST_KEPT', 1)
    found = []
    scandir = os.scandir

    def note(path):
        if isinstance(path, str):
            found.append(os.path.basename(path))
        return scandir(path)

    monkeypatch.setattr(os, 'scandir', note)
    yield found
    del config.remote_cache_path


def test_only_changed_folders_are_listed_again(tmp_path, listed):
    """A folder may be removed, or have new folders."""
    write(tmp_path, 'a/1.png', 'b/2.png', 'c/d/3.png')
    settle(tmp_path)

    listed.clear()
    FilesDataset(tmp_path)
    assert sorted(listed) == sorted(
        ['a', 'b', 'c', 'd', tmp_path.name])
    listed.clear()
    FilesDataset(tmp_path)
    assert listed == []
    write(tmp_path, 'b/0.png')
    os.utime(tmp_path / 'b', ns=(10 ** 18, 10 ** 18 + 1))
    listed.clear()
    assert rows(FilesDataset(tmp_path))['path'] == [
        'a/1.png', 'b/0.png', 'b/2.png', 'c/d/3.png']
    assert listed == ['b']
    write(tmp_path, 'c/d/e/4.png')
    os.unlink(tmp_path / 'a' / '1.png')
    os.rmdir(tmp_path / 'a')
    listed.clear()
    assert rows(FilesDataset(tmp_path))['path'] == [
        'b/0.png', 'b/2.png', 'c/d/3.png', 'c/d/e/4.png']
    assert sorted(listed) == ['d', 'e', tmp_path.name]


def test_folder_that_may_still_change_is_listed_again(tmp_path, listed):
    """Its time may stay the same."""
    write(tmp_path, 'a/1.png')
    settle(tmp_path)
    now = time.time_ns()
    os.utime(tmp_path / 'a', ns=(now, now))
    FilesDataset(tmp_path)
    write(tmp_path, 'a/2.png')
    os.utime(tmp_path / 'a', ns=(now, now))
    assert len(FilesDataset(tmp_path)) == 2


def test_kept_index_that_is_not_sound_is_made_again(
        tmp_path, listed, monkeypatch):
    """Any program may have written it."""
    write(tmp_path, 'a/1.png', 'b/2.png')
    settle(tmp_path)
    kept = []
    monkeypatch.setattr(folder_index, 'keep_arrays', lambda *given: (
        kept.append(given[2])))
    FilesDataset(tmp_path)
    arrays = kept[-1]

    def changed(name, value):
        return {**arrays, name: value}

    content = arrays['names'].copy()
    content[1] = ord('/')
    hidden = arrays['names'].copy()
    hidden[0] = ord('.')
    above = numpy.frombuffer(b'..\0b\0', numpy.uint8)
    for other in (
            changed('names', content), changed('names', hidden),
            changed('names', arrays['names'][:-1]),
            changed('name_ends', arrays['name_ends'] + 1),
            changed('name_ends', arrays['name_ends'][:0]),
            changed('bounds', arrays['bounds'][::-1]),
            changed('bounds', arrays['bounds'] * 2),
            changed('inodes', arrays['inodes'][:1]),
            changed('inodes', arrays['inodes'].astype(float)),
            changed('identities', arrays['identities'][:, :3]),
            changed('folders', above),
            {name: arrays[name] for name in arrays if name != 'bounds'}):
        monkeypatch.setattr(
            folder_index, 'kept_arrays', lambda *_, other=other: other)
        listed.clear()
        assert rows(FilesDataset(tmp_path))['path'] == ['a/1.png', 'b/2.png']
        assert listed
    monkeypatch.setattr(folder_index, 'kept_arrays', lambda *_: arrays)
    listed.clear()
    assert rows(FilesDataset(tmp_path))['path'] == ['a/1.png', 'b/2.png']
    assert not listed


def test_thousands_of_files_leave_no_descriptor_open(tmp_path):
    """Batches are read by several threads, in any order."""
    names = [f'{number % 7}/{number:04}.txt' for number in range(3000)]
    dataset = FilesDataset(write(tmp_path, *names))
    before = len(os.listdir('/proc/self/fd')) if os.path.isdir(
        '/proc/self/fd') else 0
    stream = DataStream(dataset, iteration_scheme=ShuffledScheme(
        3000, 64, seed=3))
    seen = [(content, label, path) for batch in stream.get_epoch_iterator()
            for content, label, path in zip(*batch, strict=True)]
    assert sorted(path for _, _, path in seen) == sorted(names)
    assert all(content.decode() == path and int(path[0]) == label
               for content, label, path in seen)
    if before:
        assert len(os.listdir('/proc/self/fd')) <= before + 2
    assert dataset.place_of_row(5)[0] == str(
        tmp_path / rows(dataset)['path'][5])


def test_table_of_an_order_numbers_the_files(tmp_path):
    """Each file has one number, that of its row in the data set."""
    dataset = FilesDataset(write(tmp_path, 'a/0', 'a/1', 'b/2'))
    scheme = ConcatenatedScheme([SequentialScheme([2, 1], 2),
                                 SequentialScheme([2], 2)])
    table = DataStream(dataset, iteration_scheme=scheme).order[:]
    paths = [str(tmp_path / name) for name in ('a/0', 'a/1', 'b/2')]
    assert table.file.tolist() == [paths[2], paths[1], paths[2]]
    assert [line for line in repr(table).splitlines() if line.startswith(
        'file')] == [f'file 1: {paths[1]}', f'file 2: {paths[2]}']


def test_threads_read_at_once(tmp_path):
    """One data set serves several."""
    dataset = FilesDataset(write(tmp_path, *map(str, range(100, 200))))
    wrong = []

    def read(seed):
        for row in numpy.random.RandomState(seed).randint(0, 100, 200):
            content, path = dataset.get_data(None, [int(row)])
            if content[0].decode() != path[0] or path[0] != str(100 + row):
                wrong.append(row)

    threads = [threading.Thread(target=read, args=(seed,))
               for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def picture(number):
    """Return the pixels of a picture, and its file as PNG."""
    pixels = numpy.random.RandomState(number).randint(
        0, 256, (3, 5 + number % 3, 4)).astype('uint8')
    file = io.BytesIO()
    Image.fromarray(pixels.transpose(1, 2, 0)).save(file, 'PNG')
    return pixels, file.getvalue()


def test_pictures_are_decoded_by_the_stage_that_is_shown(tmp_path):
    """The pixels are those that Pillow wrote."""
    for number in range(10):
        (tmp_path / 'ab'[number % 2]).mkdir(exist_ok=True)
        (tmp_path / 'ab'[number % 2] / f'{number}.png').write_bytes(
            picture(number)[1])
    dataset = FilesDataset(tmp_path)
    stream = DataStream(dataset, iteration_scheme=ShuffledScheme(
        10, 4, seed=2))
    call = re.search('decode with (.*?)[;>]', str(dataset))[1]
    decoded = eval(call, {'ImagesFromBytes': ImagesFromBytes,
                          'stream': stream})
    seen = 0
    for images, labels, paths in decoded.get_epoch_iterator():
        for image, label, path in zip(images, labels, paths, strict=True):
            number = int(path[2:-4])
            assert_array_equal(image, picture(number)[0])
            assert label == number % 2
            seen += 1
    assert seen == 10


def table(path, records):
    """Write a table of files, as CSV or as JSON lines."""
    with open(path, 'w', newline='', encoding='utf-8') as file:
        if path.suffix == '.csv':
            writer = csv.DictWriter(file, list(records[0]))
            writer.writeheader()
            writer.writerows(records)
        else:
            file.writelines(f'{json.dumps(record)}\n' for record in records)


@pytest.mark.parametrize('ending', ['csv', 'jsonl'])
def test_table_beside_the_files_has_the_sources(tmp_path, ending):
    """Its rows are the examples, in its order; a file may come twice."""
    write(tmp_path, '0001.png', 'a/2.png', '3.png', 'unnamed.png')
    table(tmp_path / f'metadata.{ending}', [
        {'text': 'ein Ä', 'size': 3, 'file_name': '3.png'},
        {'text': 'two', 'size': 4, 'file_name': 'a/2.png'},
        {'text': 'one', 'size': 5, 'file_name': '0001.png'},
        {'text': 'again', 'size': 6, 'file_name': './3.png'}])
    dataset = FilesDataset(tmp_path)
    assert dataset.sources == ('image', 'text', 'size', 'file_name')
    assert rows(dataset) == {
        'image': [b'3.png', b'a/2.png', b'0001.png', b'3.png'],
        'text': ['ein Ä', 'two', 'one', 'again'], 'size': [3, 4, 5, 6],
        'file_name': ['3.png', 'a/2.png', '0001.png', './3.png']}
    assert dataset.known_types()['size'].dtype == 'int64'
    assert dataset.class_names is None
    stream = DataStream(dataset, iteration_scheme=ShuffledScheme(
        4, 3, seed=1))
    for image, text, size, name in stream.get_epoch_iterator():
        assert {'3.png': 'ein Ä', 'a/2.png': 'two', '0001.png': 'one',
                './3.png': 'again'}[name[0]] == text[0]
        assert image[0].decode() == os.path.normpath(name[0])
        assert size.dtype == 'int64'
    copied = pickle.loads(pickle.dumps(dataset))
    assert rows(copied) == rows(dataset)
    assert len(FilesDataset(tmp_path, ('.png',))) == 4
    assert 'label' not in FilesDataset(tmp_path, ('.png',)).sources


def test_labels_of_a_table_have_no_names(tmp_path):
    """They are not the numbers of the folders in which the files lie."""
    write(tmp_path, 'cat/1.png', 'dog/2.png')
    table(tmp_path / 'metadata.csv', [{'file_name': 'cat/1.png', 'label': 7},
                                      {'file_name': 'dog/2.png', 'label': 0}])
    dataset = FilesDataset(tmp_path)
    assert rows(dataset)['label'] == [7, 0]
    assert (dataset.categories, dataset.class_names) == ({}, None)


def test_each_split_may_have_a_table(tmp_path):
    """So may the folder that has the splits."""
    write(tmp_path, 'train/1.wav', 'train/2.wav', 'test/1.wav')
    table(tmp_path / 'train' / 'metadata.csv', [
        {'file_name': '2.wav', 'n': 2}, {'file_name': '1.wav', 'n': 1}])
    table(tmp_path / 'test' / 'metadata.csv', [
        {'file_name': '1.wav', 'n': 3}])
    for _ in range(2):
        dataset = FilesDataset(tmp_path, which_sets=('train',))
        assert dataset.sources[0] == 'audio'
        assert rows(dataset)['audio'] == [b'train/2.wav', b'train/1.wav']
        assert rows(dataset)['n'] == [2, 1]
        assert dataset.split_names == ('test', 'train')
        for split in 'train', 'test':
            (tmp_path / split / 'metadata.csv').unlink(missing_ok=True)
        table(tmp_path / 'metadata.csv', [
            {'file_name': 'train/2.wav', 'n': 2},
            {'file_name': 'test/1.wav', 'n': 3},
            {'file_name': 'train/1.wav', 'n': 1}])


@pytest.mark.parametrize('where', ['train/', ''])
def test_a_split_that_no_table_names_is_refused_with_the_way_to_read_it(
        tmp_path, where):
    """The files are there, so the error says why they are not read."""
    write(tmp_path, 'train/1.png', 'test/2.PNG', 'test/3.png')
    table(tmp_path / where / 'metadata.csv', [
        {'file_name': '1.png' if where else 'train/1.png', 'n': 7}])
    assert rows(fuel.load(tmp_path, 'train'))['n'] == [7]
    with pytest.raises(ValueError, match=(
            "the split 'test' has 2 files, such as 'test/2.PNG', but no row "
            f"of {where}metadata.csv names one: .* pass "
            r"endings=\('\.PNG',\)")):
        fuel.load(tmp_path, 'test')
    assert rows(fuel.load(tmp_path, 'test', endings=('.PNG',)))['path'] == [
        'test/2.PNG', 'test/3.png']
    for wrong in ('tset',), ('train', 'tset'), 5, 'test', ():
        with pytest.raises(ValueError, match='no split|which_sets must'):
            FilesDataset(tmp_path, which_sets=wrong)


@pytest.mark.parametrize('records, words', [
    ([{'file_name': 'no.png', 'n': 1}],
     r"metadata\.csv, row 0: there is no file 'no\.png' beside it"),
    ([{'file_name': '1.png'}, {'file_name': '../secret'}],
     r"row 1: there is no file '\.\./secret'"),
    ([{'file_name': '/etc/hosts'}], "there is no file '/etc/hosts'"),
    ([{'name': '1.png'}], "a table of files has a column 'file_name'"),
    ([{'file_name': '1.png', 'image': 2}],
     "has a column 'image', which is the name")])
def test_tables_that_do_not_fit_are_refused(tmp_path, records, words):
    """The error names the table and the row."""
    write(tmp_path, 'x/1.png', 'secret')
    table(tmp_path / 'x' / 'metadata.csv', records)
    with pytest.raises((FileNotFoundError, ValueError), match=words):
        FilesDataset(tmp_path / 'x')
    table(tmp_path / 'x' / 'metadata.jsonl', records)
    with pytest.raises(ValueError, match='tables of two kinds'):
        FilesDataset(tmp_path / 'x')


def test_table_that_was_changed_is_read_by_the_next_epoch(tmp_path):
    """Its file is one of those that the epoch reads."""
    write(tmp_path, '1.png', '2.png')
    table(tmp_path / 'metadata.csv', [{'file_name': '1.png', 'n': 1},
                                      {'file_name': '2.png', 'n': 2}])
    dataset = FilesDataset(tmp_path, sources=('n',))
    stream = DataStream(dataset, iteration_scheme=SequentialScheme(2, 2))
    assert [n.tolist() for n, in stream.get_epoch_iterator()] == [[1, 2]]
    table(tmp_path / 'metadata.csv', [{'file_name': '1.png', 'n': 10},
                                      {'file_name': '2.png', 'n': 20}])
    assert [n.tolist() for n, in stream.get_epoch_iterator()] == [[10, 20]]


@pytest.mark.parametrize('ending', ['csv', 'jsonl'])
def test_table_without_names_of_files_lists_its_columns(tmp_path, ending):
    """The error does not speak of arguments that nobody passed."""
    write(tmp_path, '1.png')
    table(tmp_path / f'metadata.{ending}', [{'filename': '1.png', 'n': 1}])
    with pytest.raises(ValueError, match=(
            "a table of files has a column 'file_name', .* are 'filename', "
            "'n': rename the column")) as caught:
        FilesDataset(tmp_path)
    assert 'dtypes' not in str(caught.value)


def test_missing_file_of_a_table_has_a_remedy(tmp_path):
    """The error says what to do about the row."""
    write(tmp_path, '1.png')
    table(tmp_path / 'metadata.csv', [{'file_name': '2.png', 'n': 1}])
    with pytest.raises(FileNotFoundError, match=(
            r"row 0: there is no file '2\.png' beside it: restore the file, "
            'or delete the row')):
        FilesDataset(tmp_path)


def test_table_of_parquet_names_the_extra_that_reads_it(
        tmp_path, monkeypatch):
    """The error says which file needs it."""
    write(tmp_path, '1.png', 'metadata.parquet')
    for name in [name for name in sys.modules if name.startswith(
            ('fuel.interop.arrow', 'pyarrow'))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, 'pyarrow', None)
    for load in FilesDataset, fuel.load:
        with pytest.raises(ImportError, match=(
                r'metadata\.parquet: pyarrow is not installed: .*arrow')):
            load(tmp_path)
    table(tmp_path / 'metadata.csv', [{'file_name': '1.png'}])
    with pytest.raises(ValueError, match='tables of two kinds'):
        FilesDataset(tmp_path)
