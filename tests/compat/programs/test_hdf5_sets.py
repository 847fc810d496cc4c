"""Programs with data sets of their own over HDF5 files."""
import os
import pickle

import h5py
import numpy
import pytest
from numpy.testing import assert_array_equal

import fuel
from fuel.converters.base import fill_hdf5_file
from fuel.datasets import H5PYDataset, IndexableDataset
from fuel.schemes import SequentialScheme, ShuffledScheme, cross_validation
from fuel.streams import DataStream
from fuel.transformers import Cast, ScaleAndShift
from fuel.transformers.defaults import uint8_pixels_to_floatX
from fuel.utils import do_not_pickle_attributes, find_in_data_path


class Speech(H5PYDataset):
    """Reads transcripts as text, and shifts the sound by a mean of its own.

    The mean is read in `load`, which runs again after unpickling.
    """

    filename = 'speech.hdf5'

    def __init__(self, which_sets, normalize=True, **kwargs):
        self.normalize = normalize
        self.mean = 0
        super(Speech, self).__init__(
            file_or_path=find_in_data_path(self.filename),
            which_sets=which_sets, **kwargs)
        self.mean = self.read_mean()

    def read_mean(self):
        """Read an attribute of the file."""
        with h5py.File(find_in_data_path(self.filename), 'r') as file:
            return file.attrs['mean']

    def get_data(self, state=None, request=None):
        """Change what the base class reads."""
        data = list(super(Speech, self).get_data(state, request))
        for index, source in enumerate(self.sources):
            if source == 'sound' and self.normalize:
                data[index] = numpy.array(
                    [sound - self.mean for sound in data[index]],
                    dtype=object)
            elif source == 'text':
                data[index] = [
                    ''.join(map(chr, text)) for text in data[index]]
        return tuple(data)


@pytest.fixture
def speech(own_home):
    """Write four recordings of different length."""
    path = own_home / 'data' / 'speech.hdf5'
    sounds = [numpy.arange(length, dtype='float32')
              for length in (5, 2, 7, 3)]
    texts = ['one', 'two', 'three', 'x']
    with h5py.File(path, 'w') as file:
        for name, data, dtype in (
                ('sound', sounds, 'float32'),
                ('text', [numpy.frombuffer(text.encode(), 'uint8')
                          for text in texts], 'uint8')):
            source = file.create_dataset(
                name, (4,), dtype=h5py.special_dtype(
                    vlen=numpy.dtype(dtype)))
            source[...] = numpy.array(data, dtype=object)
            shapes = file.create_dataset(
                name + '_shapes', (4, 1), dtype='int32')
            shapes[...] = [[len(part)] for part in data]
            shapes.make_scale('shapes')
            source.dims[0].attach_scale(shapes)
        file.attrs['mean'] = 2.
        file.attrs['split'] = H5PYDataset.create_split_array({
            'train': {'sound': (0, 3), 'text': (0, 3)},
            'valid': {'sound': (3, 4), 'text': (3, 4)}})
    return sounds, texts


@pytest.mark.parametrize('load_in_memory', [False, True])
def test_data_set_that_overrides_get_data_sees_every_batch(
        speech, load_in_memory):
    """In order, shuffled, by examples, pickled."""
    sounds, texts = speech
    dataset = Speech(('train',), load_in_memory=load_in_memory)
    for scheme in (SequentialScheme(3, 2), ShuffledScheme(3, 2)):
        stream = DataStream(dataset, iteration_scheme=scheme)
        again = pickle.loads(pickle.dumps(stream))
        for each in (stream, again, stream):
            seen = [(text, sound.tolist())
                    for batch in each.get_epoch_iterator()
                    for sound, text in zip(*batch, strict=True)]
            assert sorted((text, (sound - 2).tolist()) for sound, text in zip(
                sounds[:3], texts, strict=False)) == sorted(seen)


def convert(path):
    """Write a file of 12 images, as a converter of the user's own did."""
    rng = numpy.random.RandomState(0)
    features = rng.randint(256, size=(12, 3, 4, 4)).astype('uint8')
    targets = numpy.arange(12, dtype='uint8')[:, None]
    with h5py.File(path, mode='w') as file:
        fill_hdf5_file(file, (
            ('train', 'features', features[:8]),
            ('train', 'targets', targets[:8]),
            ('test', 'features', features[8:], 'a comment')))
        for i, label in enumerate(('batch', 'channel', 'height', 'width')):
            file['features'].dims[i].label = label
        for i, label in enumerate(('batch', 'index')):
            file['targets'].dims[i].label = label
        file.flush()
    return features, targets


class Pictures(H5PYDataset):
    """A thin class over a file, as the manual's Iris."""

    filename = 'pictures.hdf5'
    default_transformers = uint8_pixels_to_floatX(('features',))

    def __init__(self, which_sets, **kwargs):
        kwargs.setdefault('load_in_memory', True)
        super(Pictures, self).__init__(
            file_or_path=find_in_data_path(self.filename),
            which_sets=which_sets, **kwargs)


def test_training_and_validation_sets_by_subset(own_home):
    """A default stream of each, labels and all."""
    features, targets = convert(own_home / 'data' / 'pictures.hdf5')
    train = Pictures(('train',), subset=slice(0, 6))
    valid = Pictures(('train',), subset=slice(6, 8))
    test = Pictures(('test',), load_in_memory=False)
    assert (6, 2, 4) == (train.num_examples, valid.num_examples,
                         test.num_examples)
    assert ('features',) == test.sources
    stream = DataStream.default_stream(
        train, iteration_scheme=SequentialScheme(
            examples=train.num_examples, batch_size=4))
    assert ('batch', 'channel', 'height', 'width') == stream.axis_labels[
        'features']
    total = numpy.concatenate(
        [x for x, _ in stream.get_epoch_iterator()])
    assert_array_equal(features[:6] * (1 / 255.), total)
    stream = DataStream.default_stream(
        valid, iteration_scheme=SequentialScheme(2, 2))
    assert_array_equal(targets[6:8], next(stream.get_epoch_iterator())[1])
    train.default_transformers = ()
    assert isinstance(DataStream.default_stream(
        train, iteration_scheme=SequentialScheme(6, 3)), DataStream)


def test_the_same_stream_trains_and_is_monitored(own_home):
    """One iterator runs while another goes over all."""
    _, targets = convert(own_home / 'data' / 'pictures.hdf5')
    stream = DataStream.default_stream(
        Pictures(('train',), load_in_memory=False),
        iteration_scheme=SequentialScheme(8, 3))
    seen = []
    for _, y in stream.get_epoch_iterator():
        seen.extend(y[:, 0].tolist())
        assert 8 == sum(len(y) for _, y in stream.get_epoch_iterator())
    assert targets[:8, 0].tolist() == seen


def test_cross_validation_over_a_file(own_home):
    """Schemes of each fold, over one data set."""
    convert(own_home / 'data' / 'pictures.hdf5')
    dataset = Pictures(('train',), sources=('targets',))
    seen = []
    for train, valid in cross_validation(
            SequentialScheme, dataset.num_examples, 4, batch_size=3):
        rows = [[row for batch, in DataStream(
            dataset, iteration_scheme=scheme).get_epoch_iterator()
            for row in batch[:, 0].tolist()] for scheme in (train, valid)]
        assert list(range(8)) == sorted(rows[0] + rows[1])
        seen += rows[1]
    assert list(range(8)) == seen


@do_not_pickle_attributes('indexables')
class Generated(IndexableDataset):
    """Data too large to pickle, made again from a seed."""

    provides_sources = ('x', 'y')

    def __init__(self, seed, **kwargs):
        self.seed = seed
        super(Generated, self).__init__(self.make(), **kwargs)

    def make(self):
        """Make the data."""
        rng = numpy.random.RandomState(self.seed)
        return {'x': rng.normal(size=(1000, 10)), 'y': numpy.arange(1000)}

    def load(self):
        """Make them again."""
        data = self.make()
        self.indexables = [data[source] for source in self.sources]


def test_generated_data_are_not_in_the_pickle():
    """Data of a generator are made again, equal, by an unpickled stream."""
    stream = DataStream(Generated(3), iteration_scheme=ShuffledScheme(
        1000, 300))
    iterator = stream.get_epoch_iterator()
    next(iterator)
    content = pickle.dumps((stream, iterator))
    assert len(content) < 40000
    _, again = pickle.loads(content)
    for mine, other in zip(iterator, again, strict=True):
        assert_array_equal(mine[0], other[0])
        assert_array_equal(mine[1], other[1])


def test_settings_assigned_by_a_script_count_at_once(tmp_path, monkeypatch):
    """`data_path`, `floatX` and `default_seed`, in the script itself."""
    convert(tmp_path / 'pictures.hdf5')
    with pytest.raises(IOError):
        Pictures(('train',))
    fuel.config.data_path = os.pathsep.join([str(tmp_path), '/nowhere'])
    fuel.config.floatX = 'float32'
    fuel.config.default_seed = 11
    scheme = ShuffledScheme(8, 8)
    expected = list(range(8))
    numpy.random.RandomState(11).shuffle(expected)
    stream = DataStream.default_stream(
        Pictures(('train',)), iteration_scheme=scheme)
    x, y = next(stream.get_epoch_iterator())
    assert 'float32' == x.dtype
    assert expected == y[:, 0].tolist()
    assert isinstance(stream, Cast)
    assert isinstance(stream.data_stream, ScaleAndShift)
