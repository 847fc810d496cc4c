"""Data sets of files that were named relative to a folder."""
import copy
import pickle

import numpy
import pytest

from fuel.datasets import CSVDataset, JSONLDataset, NPYDataset, TextFile
from fuel.streams import DataStream

KINDS = ['csv', 'jsonl', 'npy', 'npz', 'dict', 'txt']


def write(folder, kind, number):
    """Write a file of some kind that holds a number."""
    folder.mkdir(exist_ok=True)
    path = folder / f'data.{"npy" if kind == "dict" else kind}'
    if kind in ('npy', 'dict'):
        numpy.save(path, [number] * 3)
    elif kind == 'npz':
        numpy.savez(path, a=[number] * 3)
    else:
        line = {'csv': '{}', 'jsonl': '{{"a": {}}}', 'txt': 'w{}'}[kind]
        path.write_text('a\n' * (kind == 'csv') + (
            line.format(number) + '\n') * 3)


def open_relative(kind):
    """Return a data set of a file in the current folder."""
    if kind in ('csv', 'jsonl'):
        return {'csv': CSVDataset, 'jsonl': JSONLDataset}[kind](
            f'data.{kind}')
    if kind == 'txt':
        return TextFile(['data.txt'], {'w1': 1, 'w2': 2, '<UNK>': 0},
                        bos_token=None, eos_token=None)
    return NPYDataset({'a': 'data.npy'} if kind == 'dict'
                      else f'data.{kind}')


def number_in(dataset):
    """Return the number that a data set reads, from its first example."""
    stream = DataStream(dataset) if isinstance(dataset, TextFile) else (
        DataStream(dataset, batch_size=1))
    value, = next(iter(stream))
    return int(numpy.ravel(value)[0])


@pytest.mark.parametrize('copied', [
    lambda dataset: pickle.loads(pickle.dumps(dataset)), copy.deepcopy])
@pytest.mark.parametrize('kind', KINDS)
def test_data_set_reads_its_own_file_from_another_folder(
        tmp_path, monkeypatch, kind, copied):
    """The own file is read, whatever lies under the name there."""
    here, there = tmp_path / 'here', tmp_path / 'there'
    write(here, kind, 1)
    write(there, kind, 2)
    monkeypatch.chdir(here)
    dataset = open_relative(kind)
    found = copied(dataset)
    monkeypatch.chdir(there)
    assert [1, 1] == [number_in(found), number_in(dataset)]
    assert [1, 1] == [number_in(copied(found)), number_in(copied(dataset))]
    if kind != 'txt':
        assert repr(dataset) == repr(found) == repr(open_relative(kind))
        name = {'a': 'data.npy'} if kind == 'dict' else f'data.{kind}'
        assert name == dataset.path == found.path
    assert 2 == number_in(open_relative(kind))


@pytest.mark.parametrize('kind', ['csv', 'jsonl', 'npy'])
def test_epoch_from_another_folder_finds_that_the_file_was_replaced(
        tmp_path, monkeypatch, kind):
    """The new file is that of the same place."""
    here, there = tmp_path / 'here', tmp_path / 'there'
    write(here, kind, 1)
    write(there, kind, 2)
    monkeypatch.chdir(here)
    dataset = open_relative(kind)
    monkeypatch.chdir(there)
    (here / f'data.{kind}').unlink()
    write(here, kind, 10)
    assert 10 == number_in(dataset)


@pytest.mark.parametrize('kind', ['csv', 'jsonl', 'npy'])
def test_pickle_whose_file_is_gone_is_read_from_here_or_the_data_path(
        tmp_path, monkeypatch, own_home, kind):
    """The folder may not exist on another machine."""
    here, there = tmp_path / 'here', tmp_path / 'there'
    write(here, kind, 1)
    monkeypatch.chdir(here)
    pickled = pickle.dumps(open_relative(kind))
    (here / f'data.{kind}').rename(tmp_path / 'kept')
    there.mkdir()
    monkeypatch.chdir(there)
    with pytest.raises(FileNotFoundError, match='data'):
        number_in(pickle.loads(pickled))
    write(own_home / 'data', kind, 3)
    assert 3 == number_in(pickle.loads(pickled))
    write(there, kind, 2)
    assert 2 == number_in(pickle.loads(pickled))


@pytest.mark.parametrize('kind', ['csv', 'jsonl', 'npy'])
def test_state_of_a_relative_path_is_that_of_before(
        tmp_path, monkeypatch, kind):
    """Names in states stay as given."""
    write(tmp_path, kind, 1)
    monkeypatch.chdir(tmp_path)

    def state():
        stream = DataStream(open_relative(kind), batch_size=1)
        next(iter(stream))
        return stream.state_dict()

    assert str(tmp_path) not in repr(state())
