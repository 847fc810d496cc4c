"""Data sets of files whose states are kept.

Each is built by a function of a :class:`support.saved_states.Place`, in whose
folder its files are written; they are the same each time. What is here stays
as it is.
"""
import json

import h5py
import numpy
import scipy.sparse
import tables
from support.mds_files import write_mds
from support.tar_files import digits, write_tar
from support.tfrecord_files import example, write_tfrecord

from fuel import config
from fuel.datasets import (
    CIFAR10, CIFAR100, CSR, EMNIST, KMNIST, MNIST, STL10, SVHN, Adult,
    BinarizedMNIST, BinaryDataset, CalTech101Silhouettes, Categorical, CelebA,
    Constant, CSVDataset, DogsVsCats, FashionMNIST, FilesDataset, Flat,
    H5PYDataset, HDF5Dataset, IndexableDataset, Iris, JSONLDataset, MDSDataset,
    NPYDataset, Omniglot, OneBillionWord, PerRun, PerStep, Ragged, Rows, Runs,
    Scaled, TarDataset, TextFile, TFRecordDataset, Windows, YouTubeAudio,
    random_split)
from fuel.datasets.hdf5 import PytablesDataset
from fuel.datasets.imagenet import ILSVRC2010, ILSVRC2012
from fuel.datasets.vocabulary import build_vocabulary
from fuel.schemes import ComputedShuffledScheme
from fuel.streams import DataStream
from fuel.transformers import ScaleAndShift

SIZE = 24


def shuffled(dataset, size=4):
    """Return a stream of batches of a data set."""
    return DataStream(dataset, iteration_scheme=ComputedShuffledScheme(
        dataset.num_examples, size, seed=1))


def fuels_file(path, sources=('x', 'y')):
    """Write a file with splits of Fuel's own form."""
    with h5py.File(path, 'w') as file:
        for number, source in enumerate(sources):
            file[source] = numpy.arange(SIZE) + 100 * number
            file[source].dims[0].label = 'batch'
        file.attrs['split'] = H5PYDataset.create_split_array({
            'train': dict.fromkeys(sources, (0, 16)),
            'test': dict.fromkeys(sources, (16, SIZE))})
    return str(path)


def h5py_dataset(place, **arguments):
    """Return a data set of Fuel's own form."""
    return H5PYDataset(fuels_file(place.folder / 'own.hdf5'), **arguments)


def bare_dataset(place, **arguments):
    """Return a data set of a file that says nothing of splits."""
    path = place.folder / 'bare.hdf5'
    with h5py.File(path, 'w') as file:
        file['x'] = numpy.arange(SIZE)
    return H5PYDataset(str(path), **arguments)


def ragged_file(place):
    """Return a data set of Fuel's own form with images of many sizes."""
    path = place.folder / 'ragged.hdf5'
    with h5py.File(path, 'w') as file:
        array = file.create_dataset(
            'image', (8,), h5py.vlen_dtype('uint8'))
        shapes = numpy.array([(1 + number % 3, 2) for number in range(8)])
        for number, shape in enumerate(shapes):
            array[number] = numpy.arange(shape.prod()) + number
        scale = file.create_dataset('image_shapes', data=shapes, dtype='int32')
        scale.make_scale('shapes')
        array.dims[0].attach_scale(scale)
        labels = file.create_dataset(
            'image_shape_labels', data=numpy.array([b'height', b'width']))
        labels.make_scale('shape_labels')
        array.dims[0].attach_scale(labels)
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'image': (0, 8)}})
    return H5PYDataset(str(path), which_sets=('train',))


def pytables_dataset(place):
    """Return a data set of PyTables."""
    path = str(place.folder / 'tables.h5')
    with tables.open_file(path, 'w') as file:
        group = file.create_group('/', 'Data')
        file.create_array(group, 'x', numpy.arange(SIZE))
        file.create_array(group, 'y', numpy.arange(SIZE) * 2)
    return PytablesDataset(path, ('x', 'y'), start=2, stop=20)


def write_episodes(path, first=0):
    """Write episodes of different lengths, as simulators do."""
    with h5py.File(path, 'w') as file:
        for number, length in enumerate((6, 4, 7)):
            demo = file.create_group(f'data/demo_{number}')
            start = first + 100 * number
            demo['actions'] = numpy.arange(start, start + length)
            demo['obs/state'] = numpy.arange(
                2. * length).reshape(length, 2) + start
            demo['obs/more'] = numpy.arange(length + 1)
            demo['goal'] = start
            demo['label'] = f'goal {number}'
    return str(path)


def episodes(place, **arguments):
    """Return a data set of episodes in two files."""
    for number in range(2):
        write_episodes(place.folder / f'part_{number}.hdf5', 1000 * number)
    return HDF5Dataset(
        str(place.folder / 'part_*.hdf5'), {
            'action': 'actions', 'state': 'obs/state',
            'more': Rows('obs/more', start=1),
            'goal': Constant('goal')}, parts='data/demo_*', **arguments)


def cells(place, **arguments):
    """Return a data set of cells: sparse rows, categories, packed numbers."""
    path = place.folder / 'cells.hdf5'
    matrix = scipy.sparse.csr_array(
        numpy.arange(3 * SIZE).reshape(SIZE, 3) % 4)
    with h5py.File(path, 'w') as file:
        group = file.create_group('X')
        group.attrs['shape'] = matrix.shape
        group.attrs['encoding-type'] = 'csr_matrix'
        for name in ('data', 'indices', 'indptr'):
            group[name] = getattr(matrix, name)
        kind = file.create_group('obs/kind')
        kind['codes'] = (numpy.arange(SIZE) % 3).astype('i1')
        kind['categories'] = [b'a', b'b', b'c']
        file['packed'] = (numpy.arange(SIZE) - 1).astype('i2')
        file['packed'].attrs['scale_factor'] = numpy.float32(.5)
        file['packed'].attrs['add_offset'] = numpy.float32(1)
        file['packed'].attrs['_FillValue'] = numpy.int16(3)
        file['tokens'] = numpy.arange(2 * SIZE + 3)
        file['offsets'] = numpy.concatenate(
            [numpy.arange(SIZE) * 2, [2 * SIZE + 3]])
    return HDF5Dataset(str(path), {
        'x': CSR('X'), 'dense': CSR('X', dense=True),
        'kind': Categorical('obs/kind'), 'packed': Scaled('packed'),
        'tokens': Ragged('tokens', offsets='offsets')}, **arguments)


def trajectories(place):
    """Return a data set of trajectories, as simulations have them."""
    path = place.folder / 'trajectories.hdf5'
    with h5py.File(path, 'w') as file:
        file['u'] = numpy.arange(3 * 5 * 2).reshape(3, 5, 2)
        file['viscosity'] = numpy.arange(3) * 10
        file['time'] = numpy.arange(5) * .5
    return HDF5Dataset(str(path), {
        'u': Flat('u'), 'viscosity': PerRun('viscosity'),
        'time': PerStep('time')})


def many_columns(place):
    """Return a data set of more columns than a state lists one by one."""
    path = place.folder / 'wide.hdf5'
    names = [f'column_{number:02}' for number in range(20)]
    with h5py.File(path, 'w') as file:
        for number, name in enumerate(names):
            file[name] = numpy.arange(10) + number
    return HDF5Dataset(str(path), {name: Rows(name) for name in names},
                       splits={'train': list(range(8)), 'test': [8, 9]},
                       which_sets=('train',))


def csv_file(place):
    """Write a table of text."""
    path = place.folder / 'table.csv'
    path.write_text('number,weight,name,day\n' + ''.join(
        f'{row},{row / 4},{"abc"[row % 3]},2026-01-{row + 1:02}\n'
        for row in range(SIZE)), 'utf-8')
    return str(path)


def lines_file(place):
    """Write lines of JSON."""
    path = place.folder / 'lines.jsonl'
    path.write_text(''.join(json.dumps({
        'number': row, 'weight': row / 4, 'name': 'abc'[row % 3],
        'pair': [row, row + 1]}) + '\n' for row in range(SIZE)), 'utf-8')
    return str(path)


def arrays(place, name='x.npy'):
    """Write an array."""
    path = place.folder / name
    numpy.save(path, numpy.arange(2 * SIZE).reshape(SIZE, 2))
    return str(path)


def tokens(place):
    """Write numbers without a header."""
    path = place.folder / 'tokens.bin'
    numpy.arange(SIZE, dtype='<u2').tofile(path)
    return BinaryDataset(path, '<u2')


def files(place, table=''):
    """Write a folder of files by class, or with a table of its files."""
    folder = place.folder / f'files{table}'
    for row in range(SIZE):
        path = folder / 'ab'[row % 2] / f'{row:02}.png'
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b'%d' % row)
    if table:
        (folder / 'metadata.csv').write_text('file_name,n\n' + ''.join(
            [f'{"ab"[row % 2]}/{row:02}.png,{row}\n' for row in range(SIZE)]))
    return FilesDataset(folder, sources=('path', 'n')[bool(table):][:1])


def shards(place):
    """Write two shards of numbers."""
    return str(write_mds(place.folder / 'mds', {'n': ('uint32', 4)}, [
        [[number.to_bytes(4, 'little')] for number in numbers]
        for numbers in (range(10), range(10, SIZE))]))


def examples(place):
    """Write records of ``tf.train.Example``."""
    path = place.folder / 'examples.tfrecord'
    write_tfrecord(path, [example(label=[number], name=[b'%d' % number])
                          for number in range(SIZE)])
    return str(path)


def archive(place, compressed):
    """Write an archive of arrays."""
    path = place.folder / 'arrays.npz'
    save = numpy.savez_compressed if compressed else numpy.savez
    save(path, x=numpy.arange(SIZE), y=numpy.arange(SIZE) * 2.)
    return str(path)


def text(place):
    """Write lines of text, in two files."""
    paths = []
    for number in range(2):
        path = place.folder / f'text_{number}.txt'
        path.write_text(''.join(
            f'{SENTENCE[row % 6]} the row\n'
            for row in range(number, 6)), 'utf-8')
        paths.append(str(path))
    return paths


SENTENCE = ('the', 'cat', 'sat', 'on', 'the', 'mat')
WORDS = {'<S>': 0, '</S>': 1, '<UNK>': 2, 'the': 3, 'cat': 4, 'sat': 5}


def billion_words(place):
    """Return a data set of sentences in the data path."""
    folder = place.folder / '1-billion-word' / (
        'training-monolingual.tokenized.shuffled')
    folder.mkdir(parents=True)
    for number in (1, 2):
        (folder / f'news.en-0000{number}-of-00100').write_text(
            'the cat sat\n' * number + 'the dog sat\n' * 4, 'utf-8')
    set_data_path(place)
    return DataStream(OneBillionWord('training', [1, 2], WORDS))


def set_data_path(place):
    """Look for the files of built-in data sets in a folder."""
    place.stack.callback(setattr, config, 'data_path', config.data_path)
    config.data_path = [str(place.folder)]


def built_in(name, cls, *arguments, sources=('features', 'targets'),
             which_sets=('train',), **more):
    """Return a function that builds a stream of a built-in data set, whose
    file is a small one."""
    def build(place):
        fuels_file(place.folder / name, sources)
        set_data_path(place)
        dataset = cls(*arguments, which_sets, **more)
        # The file is found when the data set is made.
        return shuffled(dataset)
    return build


IMAGES = {
    'BinarizedMNIST': built_in('binarized_mnist.hdf5', BinarizedMNIST,
                               sources=('features',)),
    'CIFAR10': built_in('cifar10.hdf5', CIFAR10),
    'CIFAR100': built_in('cifar100.hdf5', CIFAR100, sources=(
        'features', 'coarse_labels', 'fine_labels')),
    'CalTech101Silhouettes': built_in(
        'caltech101_silhouettes16.hdf5', CalTech101Silhouettes, size=16),
    'CelebA': built_in('celeba_64.hdf5', CelebA, '64'),
    'DogsVsCats': built_in('dogs_vs_cats.hdf5', DogsVsCats, sources=(
        'image_features', 'targets')),
    'EMNIST': built_in('emnist_letters.hdf5', EMNIST, 'letters'),
    'FashionMNIST': built_in('fashion_mnist.hdf5', FashionMNIST),
    'ILSVRC2010': built_in('ilsvrc2010.hdf5', ILSVRC2010, sources=(
        'encoded_images', 'filenames', 'targets')),
    'ILSVRC2012': built_in('ilsvrc2012.hdf5', ILSVRC2012, sources=(
        'encoded_images', 'filenames', 'targets')),
    'KMNIST': built_in('kmnist.hdf5', KMNIST),
    'MNIST': built_in('mnist.hdf5', MNIST),
    'MNIST, subset': built_in('mnist.hdf5', MNIST, subset=slice(2, 16),
                              sources=('features', 'targets')),
    'Omniglot': built_in('omniglot.hdf5', Omniglot),
    'STL10': built_in('stl10.hdf5', STL10),
    'SVHN': built_in('svhn_format_2.hdf5', SVHN, 2),
}

PIPELINES = {
    **IMAGES,
    'Adult': built_in('adult.hdf5', Adult),
    'Iris': built_in('iris.hdf5', Iris),
    'YouTubeAudio': built_in('abc.hdf5', YouTubeAudio, 'abc',
                             sources=('features',)),
    'OneBillionWord': billion_words,
    'H5PYDataset': lambda place: shuffled(
        h5py_dataset(place, which_sets=('train',))),
    'H5PYDataset, two splits, one source': lambda place: shuffled(
        h5py_dataset(place, which_sets=('train', 'test'), sources=('y',))),
    'H5PYDataset, subset in memory': lambda place: shuffled(h5py_dataset(
        place, which_sets=('train',), subset=slice(3, 15),
        load_in_memory=True), 2),
    'H5PYDataset, given splits': lambda place: shuffled(bare_dataset(
        place, which_sets=('mine',),
        splits={'mine': [1, 4, 9, 16, 20, 21, 22]}), 2),
    'H5PYDataset, random split': lambda place: shuffled(bare_dataset(
        place, which_sets=('train',),
        splits=random_split(SIZE, {'train': .7, 'test': None}, seed=1))),
    'H5PYDataset, random split of classes': lambda place: shuffled(
        bare_dataset(place, which_sets=('train',), splits=random_split(
            SIZE, {'train': .7, 'test': None}, seed=1,
            stratify=numpy.arange(SIZE) % 5))),
    'H5PYDataset, ragged': lambda place: shuffled(ragged_file(place), 2),
    'H5PYDataset, rank': lambda place: ScaleAndShift(shuffled(h5py_dataset(
        place, which_sets=('train',)), 2), 2., 1.).shard(1, 2),
    'PytablesDataset': lambda place: shuffled(pytables_dataset(place)),
    'HDF5Dataset': lambda place: shuffled(episodes(place)),
    'HDF5Dataset, random split of runs': lambda place: shuffled(episodes(
        place, splits=random_split(
            episodes(place), {'train': .6, 'test': .4}, seed=1,
            groups='runs'), which_sets=('train',)), 2),
    'HDF5Dataset, cells': lambda place: shuffled(cells(place)),
    'HDF5Dataset, trajectories': lambda place: shuffled(
        trajectories(place)),
    'HDF5Dataset, many columns': lambda place: shuffled(
        many_columns(place), 2),
    'Runs of episodes': lambda place: shuffled(Runs(episodes(place)), 1),
    'Windows of episodes': lambda place: shuffled(Windows(
        episodes(place), 3, stride=2), 2),
    'Windows of episodes, padded': lambda place: shuffled(Windows(
        episodes(place), 3, pad='edge', pad_before=1, pad_after=1)),
    'Windows of trajectories': lambda place: shuffled(Windows(
        trajectories(place), 2), 2),
    'Runs of a subset': lambda place: shuffled(Runs(
        IndexableDataset({'x': numpy.arange(SIZE)}),
        runs={'lengths': [5, 4, 6, 9]}), 1),
    'CSVDataset': lambda place: shuffled(CSVDataset(csv_file(place))),
    'CSVDataset, columns': lambda place: shuffled(CSVDataset(
        csv_file(place), {'n': 'number', 'w': 'weight'},
        dtypes={'w': 'float32'}, missing=['NA'])),
    'CSVDataset, split': lambda place: shuffled(CSVDataset(
        csv_file(place), ['number'], which_sets=('train',),
        splits={'train': list(range(12)), 'test': list(range(12, SIZE))}),
        2),
    'JSONLDataset': lambda place: shuffled(JSONLDataset(lines_file(place))),
    'JSONLDataset, columns': lambda place: shuffled(JSONLDataset(
        lines_file(place), ['number', 'pair'], shapes={'pair': (2,)})),
    'NPYDataset': lambda place: shuffled(NPYDataset(arrays(place))),
    'NPYDataset of two': lambda place: shuffled(NPYDataset(
        {'x': arrays(place), 'y': arrays(place, 'y.npy')})),
    'NPYDataset, archive': lambda place: shuffled(
        NPYDataset(archive(place, False))),
    'NPYDataset, compressed archive': lambda place: shuffled(
        NPYDataset(archive(place, True))),
    'BinaryDataset': lambda place: shuffled(tokens(place)),
    'TarDataset': lambda place: shuffled(TarDataset(write_tar(
        place.folder / 'digits.tar', digits(count=SIZE)), ['cls', 'key'])),
    'MDSDataset': lambda place: shuffled(MDSDataset(shards(place))),
    'TFRecordDataset': lambda place: shuffled(
        TFRecordDataset(examples(place), ['label'])),
    'FilesDataset': lambda place: shuffled(files(place)),
    'FilesDataset, table': lambda place: shuffled(files(place, '_table')),
    'Windows, targets': lambda place: shuffled(Windows(
        tokens(place), 3, stride=2, targets='next'), 2),
    'TextFile': lambda place: DataStream(TextFile(text(place), WORDS)),
    'TextFile, characters': lambda place: DataStream(TextFile(
        text(place), build_vocabulary(
            text(place), level='character', preprocess=str.lower),
        bos_token=None, eos_token=None, level='character',
        preprocess=str.lower)),
    'TextFile, rank': lambda place: DataStream(
        TextFile(text(place), WORDS)).shard(1, 2),
}
