"""The calls that data sets of shards and folders print can be pasted."""
import os
import pickle
import time

import numpy
import pytest
from numpy.testing import assert_array_equal
from support.mds_files import write_mds
from support.range_server import serving
from support.tar_files import digits, write_tar
from support.tfrecord_files import example, write_tfrecord

import fuel
from fuel.datasets import TarDataset
from fuel.datasets.columns.base import written_call
from fuel.datasets.columns.part_names import written_files


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Write data of each kind into the working directory, and return it."""
    monkeypatch.chdir(tmp_path)
    for split in 'train', 'val':
        for number in range(4):
            os.makedirs(f'pets/{split}/{"ab"[number % 2]}', exist_ok=True)
            with open(f'pets/{split}/{"ab"[number % 2]}/{number}.png',
                      'wb') as file:
                file.write(b'%d' % number)
            write_tar(f'a-{split}-{number:03}.tar', digits(50 * number, 50))
            write_tfrecord(tmp_path / f'a-{split}-{number}.tfrecord', [
                example(x=[number * 10 + row]) for row in range(3)])
        (tmp_path / 'mds').mkdir(exist_ok=True)
        write_mds(tmp_path / 'mds' / split, {'x': ('int', 8)}, [
            [(numpy.int64(row + (split == 'val')).tobytes(),)
             for row in range(3)]])
    return tmp_path


def pasted(dataset):
    """Return the data set that the printed call makes."""
    call, *_ = str(dataset).splitlines()
    names = {}
    exec(f'from fuel.datasets import *\npasted = {call}', names)
    return names['pasted']


@pytest.mark.parametrize('call, shown', [
    ("'a-train-*.tar'", "TarDataset('a-train-*.tar', ['cls', "),
    ("'a-*.tar', 'val'", "TarDataset('a-val-{000..003}.tar', ['cls', "),
    ("'a-{train,val}-*.tar', 'all'", "TarDataset('a-{train,val}-*.tar', ["),
    ("'a-{train,val}-00{0..1}.tar', 'all', columns={'y': 'cls'}",
     "TarDataset('a-{train,val}-00{0..1}.tar', {'y': 'cls'})"),
    ("['a-val-000.tar', 'a-train-003.tar']",
     "TarDataset(['a-val-000.tar', 'a-train-003.tar'], "),
    ("'a-val-000.tar', missing='none', sources=['cls']",
     "'txt', 'key'], missing='none', sources=['cls'])"),
    ("'a-train-*.tar', 'b', splits={'a': range(110), 'b': range(9)}",
     "splits={'a': (0, 110), 'b': range(0, 9)})"),
    ("'a-train-*.tar', 'b', splits={'b': numpy.arange(10, 180)}",
     "which_sets=('b',), splits={'b': (10, 180)})"),
    ("'a-train-*.tfrecord'",
     "TFRecordDataset('a-train-*.tfrecord', ['x'])"),
    ("'a-*.tfrecord', 'val', ragged=['x']",
     "TFRecordDataset('a-val-{0..3}.tfrecord', ['x'], ragged=['x'])"),
    ("'mds', 'val'", "MDSDataset('mds/val/index.json', ['x'])"),
    ("'mds', 'all'", "MDSDataset(['mds/"),
    ("'pets', 'val'", "FilesDataset('pets', which_sets=('val',))"),
    ("'pets', 'all', sources=['label']",
     "FilesDataset('pets', sources=['label'])"),
    ("'pets', 'part', splits={'part': [3, 1]}",
     "FilesDataset('pets', which_sets=('part',), splits={'part': [3, 1]})")])
def test_pasted_call_has_the_same_rows(here, call, shown):
    """Of all sources; the call is the one that the user would write."""
    dataset = eval(f'fuel.load({call})', {'fuel': fuel, 'numpy': numpy})
    assert shown in str(dataset)
    again = pasted(dataset)
    assert str(dataset) == str(again)
    assert dataset.sources == again.sources
    for part, other in zip(dataset[:], again[:], strict=True):
        assert_array_equal(part, other)


def test_the_call_of_a_pickle_has_the_pattern(here):
    """It is the call of the data set that was pickled."""
    dataset = fuel.load('a-train-*.tar')
    assert repr(dataset) == repr(pickle.loads(pickle.dumps(dataset)))


def test_braces_of_urls_are_printed_without_credentials(here):
    """The password of a URL stays out of the call."""
    with serving(here) as server:
        url = server.url('a-train-{000..001}.tar').replace(
            'http://', 'http://me:secret@')
        text = repr(TarDataset(url))
    assert 'a-train-{000..001}.tar' in text
    assert 'secret' not in text


@pytest.mark.parametrize('paths, shown', [
    (['8.tar', '9.tar', '10.tar'], '{8..10}.tar'),
    (['08', '09', '10', '12'], ['{08..10}', '12']),
    (['a/0-of-3', 'a/1-of-3', 'a/2-of-3', 'b/0'], ['a/{0..2}-of-3', 'b/0']),
    (['a1b1', 'a2b2', 'a3b3'], ['a1b1', 'a2b2', 'a3b3']),
    (['9', '8'], ['9', '8']), (['1', '1'], ['1', '1']),
    (['98', '99', '0100'], ['{98..99}', '0100']),
    (['099', '100', '0101'], ['{099..100}', '0101']),
    (['{1,2}-1', '{1,2}-2'], ['{1,2}-1', '{1,2}-2']),
    (['a'], 'a'), (['a', 'a1'], ['a', 'a1'])])
def test_numbered_paths_are_written_with_braces(paths, shown):
    """If their numbers grow by one, and braces stand for the same paths."""
    assert shown == written_files(paths, None)


def test_paths_without_braces_are_written_in_linear_time():
    """A slice of all further paths for each path took many times as long."""
    paths = [f'a-{2 * number}.tar' for number in range(120_000)]
    begin = time.process_time()
    assert paths == written_files(paths, None)
    assert time.process_time() - begin < 5


@pytest.mark.parametrize('rows, shown', [
    (list(range(5, 205)), '(5, 205)'), (range(300), '(0, 300)'),
    (numpy.arange(101), '(0, 101)'), ([0, 1], '[0, 1]'),
    ([*range(200), 7], '<201 rows>'), (numpy.ones(200, bool), '<200 rows>'),
    (list(map(str, range(200))), '<200 rows>')])
def test_rows_that_follow_each_other_are_written_as_a_range(rows, shown):
    """Other long lists are shortened."""
    assert written_call('f', (), {'splits': {'a': rows}}) == (
        f"f(splits={{'a': {shown}}})")
