"""Every data set keeps the promises of every data set."""
from functools import partial

import numpy
import pytest
from support import pipelines

from fuel.datasets import (
    CSVDataset,
    FilesDataset,
    H5PYDataset,
    IndexableDataset,
    IterableDataset,
    JSONLDataset,
    MDSDataset,
    NPYDataset,
    Runs,
    TarDataset,
    TFRecordDataset,
    Windows,
)
from fuel.datasets.text import TextFile
from fuel.datasets.toy import Spiral, SwissRoll
from fuel.testing import DATASET_PROMISES, check_dataset

DATASETS = {
    'IndexableDataset': lambda folder: pipelines.arrays(),
    'IndexableDataset list': lambda folder: IndexableDataset(
        [[n, n] for n in range(9)]),
    'IterableDataset': lambda folder: IterableDataset(
        {'a': [1, 2, 3], 'b': numpy.arange(6.).reshape(3, 2)}),
    'H5PYDataset': lambda folder: H5PYDataset(
        folder / 'data.hdf5', ('train',), sources=('features', 'targets')),
    'H5PYDataset compressed': lambda folder: H5PYDataset(
        folder / 'data.hdf5', ('train',), sources=('gzip', 'targets')),
    'H5PYDataset ragged': lambda folder: H5PYDataset(
        folder / 'data.hdf5', ('train',), sources=('images',)),
    'H5PYDataset in memory': lambda folder: H5PYDataset(
        folder / 'data.hdf5', ('train',), load_in_memory=True,
        sources=('features', 'images')),
    'HDF5Dataset': lambda folder: pipelines.parts(folder),
    'HDF5Dataset columns': lambda folder: pipelines.columns(folder),
    'HDF5Dataset cells': lambda folder: pipelines.cells(folder),
    'HDF5Dataset dense cells': lambda folder: pipelines.cells(folder, True),
    'HDF5Dataset split': lambda folder: pipelines.parts(
        folder, splits={'train': [7, 1, 12, 3, 4, 5, 0, 9, 13]},
        which_sets=('train',)),
    'NPYDataset': lambda folder: NPYDataset(folder / 'pairs.npy'),
    'TarDataset': lambda folder: TarDataset(folder / 'digits.tar'),
    'TarDataset split': lambda folder: TarDataset(
        folder / 'digits.tar', ['cls', 'jpg'], which_sets=('train',),
        splits={'train': [7, 1, 12, 3, 4, 5, 0, 9, 13]}),
    'FilesDataset': lambda folder: FilesDataset(folder / 'files'),
    'FilesDataset table': lambda folder: FilesDataset(folder / 'named'),
    'FilesDataset split': lambda folder: FilesDataset(
        folder / 'files', which_sets=('train',),
        splits={'train': [7, 1, 12, 3, 4, 5, 0, 9, 13]}),
    'BinaryDataset': lambda folder: pipelines.tokens(folder),
    'Windows targets': lambda folder: pipelines.next_tokens(folder),
    'MDSDataset': lambda folder: MDSDataset(folder / 'mds'),
    'MDSDataset split': lambda folder: MDSDataset(
        folder / 'packed', ['id', 'text'], which_sets=('train',),
        splits={'train': [7, 1, 12, 3, 4, 5, 0, 9, 13]}),
    'TFRecordDataset': lambda folder: TFRecordDataset(
        folder / 'examples.tfrecord'),
    'TFRecordDataset split': lambda folder: TFRecordDataset(
        folder / 'examples.tfrecord', ['label', 'ids'], which_sets=('train',),
        splits={'train': [7, 1, 12, 3, 4, 5, 0, 9, 13]}),
    'CSVDataset': lambda folder: CSVDataset(folder / 'pairs.csv'),
    'JSONLDataset': lambda folder: JSONLDataset(folder / 'notes.jsonl'),
    'JSONLDataset masks': lambda folder: JSONLDataset(
        folder / 'notes.jsonl', {'both': ['meta/size', 'meta/size']},
        masks='both'),
    'CSVDataset masks': lambda folder: CSVDataset(
        folder / 'pairs.csv', masks=('a',)),
    'Windows': pipelines.windows,
    'Windows first and dense': lambda folder: Windows(
        pipelines.arrays(), 2, step=3, stride=2, first={'y': 1},
        dense=('x',)),
    'Windows compressed': lambda folder: Windows(
        pipelines.hdf5_rows(folder, ('gzip', 'targets')), 3),
    'Windows ragged': lambda folder: Windows(
        pipelines.hdf5_rows(folder, ('images', 'targets')), 3),
    'Windows parts': lambda folder: Windows(
        pipelines.columns(folder), 2, pad='edge', pad_after=1),
    'Windows list': lambda folder: Windows(IndexableDataset(
        [[n, n] for n in range(9)]), 2, pad='edge', pad_before=1),
    'Runs': pipelines.runs,
    'Runs compressed': lambda folder: Runs(
        pipelines.hdf5_rows(folder, ('gzip', 'targets')),
        runs={'lengths': [1, 2, 0, 3, 4]}),
    'Runs list': lambda folder: Runs(IndexableDataset(
        list('abcdef')), runs={'lengths': [2, 0, 1, 2, 1]}),
    'ChainerDataset': lambda folder: pipelines.chainer(),
    'ProviderDataset': lambda folder: pipelines.provided(),
    'TextFile': lambda folder: TextFile(
        [folder / '0.txt', folder / '1.txt'], pipelines.VOCABULARY),
    'Spiral': lambda folder: Spiral(num_examples=14),
    'sparse': lambda folder: pipelines.sparse(),
    'SwissRoll': lambda folder: SwissRoll(num_examples=14),
}


def build(name, folder):
    """Return a new data set; this pickles, where the functions do not."""
    return DATASETS[name](folder)


# The streams over data sets are among the pipelines.
@pytest.mark.parametrize('promise', [
    name for name in DATASET_PROMISES if name != 'streams'])
@pytest.mark.parametrize('name', DATASETS)
def test_dataset_keeps_promise(name, promise, files):
    """Fuel's own data sets keep the promises of users' data sets."""
    check_dataset(partial(build, name, files), promises=[promise])


@pytest.mark.parametrize('name', ['IndexableDataset', 'IterableDataset'])
def test_dataset_keeps_promises_of_streams(name, files, another_process):
    """With the schemes that a data set is read with by default."""
    check_dataset(partial(build, name, files),
                  another_process=another_process)
