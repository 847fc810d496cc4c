"""Files of tables that are replaced while epochs read them."""
import json
import os
import pickle

import pyarrow
import pytest
from pyarrow import parquet
from support.changing_files import TABLES, changing_file, report

from fuel.exceptions import StateMismatchError
from fuel.interop.arrow import ArrowDataset
from fuel.schemes import SequentialScheme
from fuel.streams import DataStream


@pytest.mark.parametrize('kind', TABLES)
def test_epochs_over_a_changing_file_have_one_version(tmp_path, kind):
    """An epoch may end in an error; the next one has the newest version."""
    changing_file(tmp_path, kind, 1).check(3)


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize('seed', [1, 2])
@pytest.mark.parametrize('kind', TABLES)
def test_many_epochs_over_a_changing_file_have_one_version(
        tmp_path, capsys, kind, seed):
    """Two reads of one epoch see two hundred replacements between them."""
    changing = changing_file(tmp_path, kind, seed)
    changing.check(200)
    report(kind, changing, capsys)


def replace(path, table):
    """Rename a new file onto a name."""
    parquet.write_table(table, f'{path}.new')
    os.replace(f'{path}.new', path)


def test_files_whose_rows_have_moved_are_refused(tmp_path):
    """Files with as many rows in all are refused: a split's rows are by
    file."""
    paths = [str(tmp_path / name) for name in ('train', 'test')]

    def write(*lengths):
        for path, length in zip(paths, lengths, strict=True):
            replace(path, pyarrow.table({'name': [
                os.path.basename(path)] * length}))

    write(5, 3)
    dataset = ArrowDataset(paths, which_sets=('train',), splits={
        'train': (0, 5), 'test': (5, 8)})
    pickled = pickle.dumps(dataset)
    stream = DataStream(dataset, iteration_scheme=SequentialScheme(5, 5))
    assert [['train'] * 5] == [
        names.tolist() for names, in stream.get_epoch_iterator()]
    write(3, 5)
    for _ in range(2):
        with pytest.raises(StateMismatchError, match='train.* had 5'):
            next(stream.get_epoch_iterator())
    with pytest.raises(StateMismatchError, match='train.* had 5'):
        pickle.loads(pickled).get_data(None, [0])
    assert paths[1] == dataset.place_of_row(5).file
    write(5, 3)
    for one in dataset, pickle.loads(pickled):
        assert ['train'] * 5 == one.get_data(None, slice(0, 5))[0].tolist()


def test_file_whose_numbers_stand_for_other_classes_is_refused(tmp_path):
    """The numbers would be taken for classes that the data set had."""
    path = str(tmp_path / 'a.parquet')

    def write(*names):
        replace(path, pyarrow.table({'label': [0, 1]}).replace_schema_metadata(
            {'huggingface': json.dumps({'info': {'features': {'label': {
                '_type': 'ClassLabel', 'names': names}}}})}))

    write('cat', 'dog')
    stream = DataStream(ArrowDataset(path), batch_size=2)
    assert 1 == len(list(stream.get_epoch_iterator()))
    write('dog', 'cat')
    for _ in range(2):
        with pytest.raises(StateMismatchError, match='other names'):
            next(stream.get_epoch_iterator())
        assert {'label': ('cat', 'dog')} == stream.dataset.categories
    write('cat', 'dog')
    assert 1 == len(list(stream.get_epoch_iterator()))
