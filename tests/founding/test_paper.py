"""The paper on Blocks and Fuel, point by point: what it says that Fuel does.

The main loop of its second section is in tests/interop/test_blocks.py.
"""
import itertools
import json
import pickle
from pathlib import Path

import h5py
import numpy
import picklable_itertools
import pytest
from PIL import Image
from support import blocks
from support.processes import run_python

from fuel.bin import fuel_convert, fuel_info
from fuel.datasets import (
    CSVDataset,
    Dataset,
    H5PYDataset,
    IndexableDataset,
    IterableDataset,
    NPYDataset,
)
from fuel.datasets.text import TextFile
from fuel.downloaders.base import default_downloader
from fuel.schemes import (
    SequentialExampleScheme,
    SequentialScheme,
    ShuffledScheme,
    WeightedScheme,
    cross_validation,
)
from fuel.server import Server
from fuel.streams import DataStream, ServerDataStream
from fuel.transformers import Flatten, MultiProcessing, Transformer
from fuel.transformers.image import RandomFixedSizeCrop
from fuel.transformers.sequences import NGrams

ROWS = numpy.arange(24, dtype='uint8').reshape(12, 2)


@pytest.fixture
def hdf5(tmp_path):
    """Return the path of a file as the paper describes it."""
    path = tmp_path / 'data.hdf5'
    with h5py.File(path, 'w') as file:
        file['features'], file['targets'] = ROWS, numpy.arange(12) % 3
        file['features'].dims[0].label = 'batch'
        file['features'].dims[1].label = 'feature'
        file['targets'].dims[0].label = 'batch'
        file.attrs['split'] = H5PYDataset.create_split_array({
            'train': {'features': (0, 8), 'targets': (0, 8)},
            'test': {'features': (8, 12)}})
    return path


# 3: a common interface, and users' own data sets.

def test_many_formats_have_one_interface(hdf5, tmp_path):
    """Arrays, HDF5, NumPy's files, CSV: one scheme, one stream, one result."""
    numpy.save(tmp_path / 'rows.npy', ROWS[:8])
    numpy.savetxt(tmp_path / 'rows.csv', ROWS[:8], '%d', ',')
    datasets = [
        IndexableDataset(ROWS[:8]), NPYDataset(tmp_path / 'rows.npy'),
        H5PYDataset(hdf5, ('train',), sources=('features',)),
        CSVDataset(tmp_path / 'rows.csv', {'data': [0, 1]}, header=False)]
    found = []
    for dataset in datasets:
        stream = DataStream(dataset, iteration_scheme=ShuffledScheme(8, 3))
        found.append([batch.tolist()
                      for batch, in stream.get_epoch_iterator()])
        stream.close()
    assert [found[0]] * 4 == found


def test_new_data_set_is_a_method():
    """Users write what returns the data of a request."""
    class Primes(Dataset):
        provides_sources = ('prime',)

        def get_data(self, state=None, request=None):
            return (numpy.array([2, 3, 5, 7])[request],)

    stream = DataStream(Primes(), iteration_scheme=SequentialScheme(4, 2))
    assert [[2, 3], [5, 7]] == [
        batch.tolist() for batch, in stream.get_epoch_iterator()]


# 3.1: ways to iterate.

def test_iteration_is_sequential_or_shuffled():
    """In minibatches, each example once."""
    for scheme, is_sorted in ((SequentialScheme(12, 5), True),
                              (ShuffledScheme(12, 5), False)):
        stream = DataStream(IndexableDataset(numpy.arange(12)),
                            iteration_scheme=scheme)
        batches = [batch.tolist() for batch, in stream.get_epoch_iterator()]
        assert [5, 5, 2] == list(map(len, batches))
        order = sum(batches, [])
        assert list(range(12)) == sorted(order)
        assert is_sorted == (order == list(range(12)))


def test_data_are_in_memory_or_not(hdf5):
    """With the same result."""
    found = []
    for in_memory in (False, True):
        dataset = H5PYDataset(hdf5, ('train',), load_in_memory=in_memory)
        features, targets = dataset.get_data(dataset.open(), [5, 2])
        found.append((features.tolist(), targets.tolist()))
        dataset.close(None)
    assert found[0] == found[1] == ([[10, 11], [4, 5]], [2, 2])


def test_examples_are_resampled():
    """By cross-validation, and by bootstrapping: drawing with replacement."""
    folds = list(cross_validation(SequentialExampleScheme, 12, 4))
    valid = [list(scheme.get_request_iterator()) for _, scheme in folds]
    assert list(range(12)) == sorted(sum(valid, []))
    for (train, _), held_out in zip(folds, valid, strict=True):
        assert set(range(12)) - set(held_out) == set(
            train.get_request_iterator())
    sample = sum(WeightedScheme(
        numpy.ones(12), 4).get_request_iterator(), [])
    assert 12 == len(sample)
    assert len(set(sample)) < 12


# 3.1: preprocessing on the way.

def test_images_are_cropped_at_random():
    """Each crop is a part of its image."""
    images = numpy.arange(2 * 3 * 9 * 9).reshape(2, 3, 9, 9).astype('uint8')
    stream = RandomFixedSizeCrop(DataStream(
        IndexableDataset({'image': images},
                         axis_labels={'image': ('batch', 'channel', 'height',
                                                'width')}),
        iteration_scheme=SequentialScheme(2, 2)), (4, 4),
        which_sources=('image',))
    crops, = next(stream.get_epoch_iterator())
    for image, crop in zip(images, crops, strict=True):
        assert any(
            numpy.array_equal(image[:, y:y + 4, x:x + 4], crop)
            for y, x in itertools.product(range(6), repeat=2))


def test_n_grams_are_made_of_text_files(tmp_path):
    """From words to pairs of context and target."""
    (tmp_path / 'text').write_text('a b c\nb a\n')
    words = {'<UNK>': 0, '<S>': 1, '</S>': 2, 'a': 3, 'b': 4, 'c': 5}
    stream = NGrams(2, DataStream(TextFile([tmp_path / 'text'], words)))
    found = [(list(context), target)
             for context, target in stream.get_epoch_iterator()]
    assert [([1, 3], 4), ([3, 4], 5), ([4, 5], 2), ([1, 4], 3),
            ([4, 3], 2)] == found


def test_steps_are_chained_and_users_write_their_own():
    """One method makes a stage."""
    class Double(Transformer):
        def __init__(self, data_stream):
            super().__init__(data_stream, data_stream.produces_examples)

        def transform_batch(self, batch):
            return tuple(2 * part for part in batch)

    stream = DataStream(IndexableDataset(ROWS.reshape(12, 1, 2)),
                        iteration_scheme=SequentialScheme(12, 12))
    chained, = next(Double(Double(Flatten(stream))).get_epoch_iterator())
    assert (4 * ROWS).tolist() == chained.tolist()


def test_all_operations_can_run_in_another_process():
    """By TCP sockets, and by shared memory on the same host."""
    def stream():
        return Flatten(DataStream(
            IndexableDataset({'rows': ROWS.reshape(12, 1, 2)}),
            iteration_scheme=ShuffledScheme(12, 5)))

    expected = [rows.tolist() for rows, in stream().get_epoch_iterator()]
    with MultiProcessing(stream(), start_method='fork') as parallel:
        assert expected == [
            rows.tolist() for rows, in parallel.get_epoch_iterator()]
    with Server(stream(), port=0) as server:
        with ServerDataStream(('rows',), False, port=server.port) as client:
            assert expected == [
                rows.tolist() for rows, in client.get_epoch_iterator()]


# 3.2: the format.

def test_file_says_which_sources_there_are(hdf5):
    """The file also names the sources of a split."""
    with h5py.File(hdf5) as file:
        assert {'features', 'targets'} == set(
            H5PYDataset.get_all_sources(file))
        assert ('features', 'targets') == H5PYDataset.get_provided_sources(
            file, 'train')
        assert ('features',) == H5PYDataset.get_provided_sources(
            file, 'test')


def test_file_says_how_sources_are_split(hdf5):
    """The test set here has no labels."""
    with h5py.File(hdf5) as file:
        assert {'train', 'test'} == set(H5PYDataset.get_all_splits(file))
    train, test = (H5PYDataset(hdf5, (name,)) for name in ('train', 'test'))
    assert (8, ('features', 'targets')) == (
        train.num_examples, train.provides_sources)
    assert (4, ('features',)) == (test.num_examples, test.provides_sources)


def test_file_says_what_axes_mean(hdf5):
    """As labels of each source's dimensions."""
    dataset = H5PYDataset(hdf5, ('train',))
    assert ('batch', 'feature') == tuple(dataset.axis_labels['features'])
    assert ('batch',) == tuple(dataset.axis_labels['targets'])


def test_all_data_are_in_one_file(hdf5):
    """That other programs read."""
    with h5py.File(hdf5) as file:
        assert ROWS.tolist() == file['features'][...].tolist()


def test_interface_does_not_depend_on_the_format():
    """A data set with another backend goes with all other parts."""
    lines = IterableDataset({'line': ['a', 'b', 'c']})
    with MultiProcessing(DataStream(lines), start_method='fork') as stream:
        assert [('a',), ('b',), ('c',)] == list(stream.get_epoch_iterator())


# 3.3: downloads and conversion.

def test_commands_know_the_data_sets_of_the_paper(capsys):
    """Among others MNIST, CIFAR-10 and ImageNet."""
    for command in ('download', 'convert'):
        status, output, errors = run_python('-c', (
            f'import sys; from fuel.bin.fuel_{command} import main; '
            'sys.exit(main(["--help"]))'))
        assert 0 == status, errors
        for name in (b'mnist', b'cifar10'):
            assert name in output


def test_download_is_a_command_that_verifies(tmp_path):
    """Here from a folder, with a digest that must fit."""
    (tmp_path / 'origin').mkdir()
    (tmp_path / 'origin' / 'raw').write_bytes(b'raw data')
    default_downloader(str(tmp_path / 'here'), [None], ['raw'],
                       url_prefix=str(tmp_path / 'origin'))
    assert b'raw data' == (tmp_path / 'here' / 'raw').read_bytes()


def test_converted_file_says_how_it_was_made(tmp_path, capsys):
    """The command and the versions, which another command shows."""
    folder = tmp_path / 'digits'
    for name in ('zero', 'one'):
        (folder / name).mkdir(parents=True)
        Image.new('L', (2, 2)).save(folder / name / 'a.png')
    output = tmp_path / 'out'
    output.mkdir()
    status = fuel_convert.main([
        'image_folder', '-d', str(folder), '-o', str(output)])
    assert not status
    path, = output.glob('*.hdf5')
    with h5py.File(path) as file:
        attributes = dict(file.attrs)
    assert 'fuel-convert image_folder' in str(
        attributes['fuel_convert_command'])
    assert {'fuel_convert_version', 'h5py_interface_version'} <= set(
        attributes)
    capsys.readouterr()
    assert not fuel_info.main([str(path)])
    assert 'fuel-convert image_folder' in capsys.readouterr().out


# 4: serialization.

def test_iterators_of_python_pickle_in_schemes_and_data_sets():
    """The paper's own picklable ones, and plain lists and ranges."""
    scheme = SequentialExampleScheme(picklable_itertools.chain(
        [3, 1], range(2)))
    requests = scheme.get_request_iterator()
    assert 3 == next(requests)
    assert [1, 0, 1] == list(pickle.loads(pickle.dumps(requests)))


def test_pass_is_serialized_in_the_middle_and_resumed():
    """By pickle and as plain data, in another process too."""
    stream = blocks.make_stream(ShuffledScheme(blocks.N, 6))
    epoch = stream.get_epoch_iterator()
    next(epoch)
    text = json.dumps(stream.state_dict())
    pickled = pickle.loads(pickle.dumps(epoch))
    resumed = blocks.make_stream(ShuffledScheme(blocks.N, 6))
    resumed.load_state_dict(json.loads(text))
    expected = [targets.tolist() for _, targets in epoch]
    assert expected == [targets.tolist() for _, targets in pickled]
    assert expected == [targets.tolist()
                        for _, targets in resumed.get_epoch_iterator()]


def test_interruption_does_not_change_the_result_of_training(tmp_path):
    """Killed in mid-epoch, and resumed in a process of its own."""
    path = str(tmp_path / 'loop.pkl')
    whole = blocks.make_loop(str(tmp_path / 'whole.pkl'), 2)
    whole.run()
    for kill_after in (10, 0):
        _, output, errors = run_python(
            blocks.__file__, path, '2', str(kill_after))
    assert blocks.results(whole) == json.loads(output), errors


# 5: documentation.

def test_manual_has_a_page_for_each_task():
    """With a reference of all public names."""
    docs = Path(__file__).parents[2] / 'docs'
    for page in ('overview', 'built_in_datasets', 'your_data', 'extending',
                 'resuming', 'server', 'api/index', 'migration'):
        assert (docs / f'{page}.rst').exists()
