"""Plain batches of HDF5 files come by one call, and only those."""
import copy
import os
import pickle
import sys

import h5py
import numpy
import pytest
from numpy.testing import assert_array_equal

from fuel.datasets import H5PYDataset
from fuel.datasets.epoch_readers import direct_batches
from fuel.epochs.read_options import Conversion, ReadOptions
from fuel.exceptions import DamagedFileError
from fuel.schemes import (
    SequentialScheme,
    ShuffledExampleScheme,
    ShuffledScheme,
)
from fuel.streams import DataStream
from fuel.transformers import Cast, ScaleAndShift

X = numpy.arange(400, dtype='int16').reshape(100, 4)
Y = numpy.arange(100, dtype='uint8').reshape(100, 1)
REQUEST = numpy.array([9, 3, 3, 59])
LAYOUTS = {
    'contiguous': {},
    'chunked': {'chunks': (7, 4)},
    'gzip': {'chunks': (7, 4), 'compression': 'gzip'},
}


def write(path, splits=None, x=X, **options):
    """Write two sources; `options` are those of the first."""
    with h5py.File(path, 'w') as file:
        file.create_dataset('x', data=x, **options)
        file['y'] = Y
        file.attrs['split'] = H5PYDataset.create_split_array(
            splits or {'train': {'x': (0, 60), 'y': (0, 60)},
                       'test': {'x': (60, 100), 'y': (60, 100)}})
    return str(path)


@pytest.fixture
def path(tmp_path):
    """Write a file of two splits."""
    return write(tmp_path / 'x.hdf5')


def is_direct(dataset):
    """Tell whether a batch comes without the data set's own reading."""
    dataset.get_data(None, REQUEST % dataset.num_examples)
    direct = dataset._direct
    return direct is not None and direct.read(
        REQUEST % dataset.num_examples) is not None


@pytest.mark.parametrize('layout', LAYOUTS)
def test_batches_of_plain_layouts_are_direct(tmp_path, layout):
    """Batches are direct from the second one on, in any split."""
    path = write(tmp_path / 'x.hdf5', **LAYOUTS[layout])
    for split, first in (('train', 0), ('test', 60)):
        with H5PYDataset(path, (split,)) as dataset:
            assert is_direct(dataset)
            rows = REQUEST % dataset.num_examples
            for _ in range(2):
                x, y = dataset.get_data(None, rows)
                assert_array_equal(X[rows + first], x)
                assert_array_equal(Y[rows + first], y)
                x[...], y[...] = 0, 0


@pytest.mark.parametrize('x', [
    X.astype('>i2'), numpy.array([b'a', b'bc'] * 50, 'O')], ids=str)
def test_other_types_are_not_direct(tmp_path, x):
    """Types that need more than copying are not direct."""
    options = {'dtype': h5py.string_dtype()} if x.dtype == 'O' else {}
    path = write(tmp_path / 'x.hdf5', x=x, **options)
    with H5PYDataset(path, ('train',)) as dataset:
        assert not is_direct(dataset)
        assert_array_equal(x[REQUEST], dataset.get_data(None, REQUEST)[0])


def test_scattered_splits_are_direct(tmp_path):
    """Their rows are looked up on the way."""
    path = write(tmp_path / 'x.hdf5')
    with h5py.File(path, 'a') as file:
        file['order'] = numpy.arange(1, 100, 2)
        order = file['order'].ref
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'x': (0, 50, order), 'y': (0, 50, order)}})
    with H5PYDataset(path, ('train',)) as dataset:
        rows = REQUEST % 50
        assert is_direct(dataset)
        assert_array_equal(X[1::2][rows], dataset.get_data(None, rows)[0])


def test_other_sources_are_read_when_they_are_asked_for(path):
    """The source that was direct before is forgotten."""
    with H5PYDataset(path, ('train',), sources=('x',)) as dataset:
        assert is_direct(dataset)
        dataset.sources = ('y', 'x')
        y, x = dataset.get_data(None, REQUEST)
        assert_array_equal(Y[REQUEST], y)
        assert_array_equal(X[REQUEST], x)


@pytest.mark.parametrize('made', [
    copy.copy, copy.deepcopy, lambda dataset: pickle.loads(
        pickle.dumps(dataset))], ids=['copy', 'deepcopy', 'pickle'])
def test_copies_have_sources_of_their_own(path, made):
    """A shallow copy reads from the same open file."""
    with H5PYDataset(path, ('train',), sources=('x',)) as dataset:
        assert is_direct(dataset)
        with made(dataset) as other:
            for names, rows in ((('y',), Y), (('x',), X)):
                other.sources = names
                assert is_direct(other)
                for read, wanted in ((dataset, X), (other, rows)):
                    data, = read.get_data(None, REQUEST)
                    assert_array_equal(wanted[REQUEST], data)


def test_sources_changed_by_another_thread_count(path, monkeypatch):
    """Sources may change while the way to read the old ones is chosen."""
    def interrupted(*args, **kwargs):
        monkeypatch.undo()
        dataset.sources = ('y',)
        return direct_batches(*args, **kwargs)

    with H5PYDataset(path, ('train',), sources=('x',)) as dataset:
        monkeypatch.setattr('fuel.datasets.source_dataset.direct_batches',
                            interrupted)
        dataset.get_data(None, REQUEST)
        data, = dataset.get_data(None, REQUEST)
        assert_array_equal(Y[REQUEST], data)


def test_data_loaded_later_are_read_from_memory(path):
    """The file may change then."""
    dataset = H5PYDataset(path, ('train',))
    assert is_direct(dataset)
    dataset.load_in_memory = True
    dataset.load()
    dataset.close(None)
    os.remove(path)
    assert_array_equal(X[REQUEST], dataset.get_data(None, REQUEST)[0])


def test_closed_data_sets_open_the_new_file(path, tmp_path):
    """A file that took the place of the old one is read after close()."""
    dataset = H5PYDataset(path, ('train',))
    assert is_direct(dataset)
    other = write(tmp_path / 'other.hdf5', x=X + 1)
    os.replace(other, path)
    assert_array_equal(X[REQUEST], dataset.get_data(None, REQUEST)[0])
    dataset.close(None)
    assert_array_equal(X[REQUEST] + 1, dataset.get_data(None, REQUEST)[0])
    dataset.close(None)


def test_subclasses_that_read_in_their_own_way_do_so_for_every_batch(path):
    """Each of the hooks that a subclass may override."""
    class Doubled(H5PYDataset):
        def _out_of_memory_get_data(self, state=None, request=None):
            data, shapes = super()._out_of_memory_get_data(state, request)
            return [part * 2 for part in data], shapes

    with Doubled(path, ('train',)) as dataset:
        for _ in range(3):
            assert_array_equal(
                X[REQUEST] * 2, dataset.get_data(None, REQUEST)[0])


def test_handles_of_the_user_are_read_as_long_as_they_are_open(path):
    """Afterwards the path leads to the file, which may be another."""
    with h5py.File(path, 'r') as handle:
        dataset = H5PYDataset(handle, ('train',))
        assert not is_direct(dataset)
    os.replace(write(path + '2', x=X + 1), path)
    assert_array_equal(X[REQUEST] + 1, dataset.get_data(None, REQUEST)[0])
    dataset.close(None)


def test_wrong_requests_are_refused_as_before(path):
    """The reader that is not direct raises the error."""
    with H5PYDataset(path, ('train',)) as dataset:
        assert is_direct(dataset)
        for wrong in ([60], [-1]):
            with pytest.raises(ValueError, match='from 0 to 59'):
                dataset.get_data(None, numpy.array(wrong))
        with pytest.raises(ValueError, match='boolean'):
            dataset.get_data(None, numpy.ones(60, bool))


def epoch_of(dataset, scheme=None):
    """Return an epoch iterator in the middle of a shuffled epoch."""
    epoch = DataStream(
        dataset, iteration_scheme=scheme or ShuffledScheme(60, 8)
    ).get_epoch_iterator()
    next(epoch)
    next(epoch)
    return epoch


def rows_left(scheme=None):
    """Return what `epoch_of` leaves to read."""
    requests = list((scheme or ShuffledScheme(60, 8)).get_request_iterator())
    return [X[batch].tolist() for batch in requests[2:]]


def test_epochs_go_on_when_the_file_was_closed(path):
    """A closed stream holds no file, although its iterator lives."""
    dataset = H5PYDataset(path, ('train',), sources=('x',))
    epoch = epoch_of(dataset)
    assert epoch.epoch.reader.is_open
    dataset.close(None)
    assert rows_left() == [x.tolist() for x, in epoch]


def test_epoch_does_not_go_on_in_a_file_changed_while_it_was_closed(path):
    """A closed stream holds no file, so anybody may write to it; the rows
    that were read may be none of those that follow."""
    dataset = H5PYDataset(path, ('train',), sources=('x',))
    epoch = epoch_of(dataset)
    dataset.close(None)
    with h5py.File(path, 'a') as file:
        file.attrs['unused'] = 0
    with pytest.raises(DamagedFileError, match='while an epoch read it'):
        list(epoch)
    assert 60 == sum(
        x.size // x.shape[-1] for x, in dataset.get_example_stream(
            ).get_epoch_iterator())


def test_sources_changed_in_the_middle_of_an_epoch_count(path):
    """The next batch has the new sources."""
    with H5PYDataset(path, ('train',), sources=('x',)) as dataset:
        epoch = epoch_of(dataset)
        dataset.sources = ('y', 'x')
        expected = rows_left()
        for (y, x), wanted in zip(epoch, expected, strict=True):
            assert wanted == x.tolist()
            assert (x[:, 0] // 4 == y[:, 0]).all()


def test_positions_in_the_middle_of_direct_batches_are_exact(path):
    """Batches that were read without asking count like others."""
    scheme = SequentialScheme(60, 8)
    with H5PYDataset(path, ('train',), sources=('x',)) as dataset:
        stream = DataStream(dataset, iteration_scheme=scheme)
        epoch = stream.get_epoch_iterator()
        for number in range(8):
            state = epoch.state_dict()
            assert number == state['position'] == state['requested']
            assert number == epoch.request_iterator.position
            again = DataStream(dataset, iteration_scheme=scheme)
            again.load_state_dict(state)
            assert [X[start:min(60, start + 8)].tolist()
                    for start in range(number * 8, 60, 8)] == [
                x.tolist() for x, in again.get_epoch_iterator()]
            next(epoch)
        with pytest.raises(StopIteration):
            next(epoch)
        assert 'finished' == stream.state_dict()['epoch']


def test_batches_of_any_size_may_be_asked_for(path):
    """A batch size beyond a machine integer is accepted."""
    with H5PYDataset(path, ('train',), sources=('x',)) as dataset:
        stream = DataStream(
            dataset, iteration_scheme=SequentialScheme(60, 2 ** 64))
        (x,), = stream.get_epoch_iterator()
        assert_array_equal(X[:60], x)


def test_batches_for_dicts_are_dicts(path):
    """Every batch is one."""
    with H5PYDataset(path, ('train',)) as dataset:
        stream = DataStream(
            dataset, iteration_scheme=SequentialScheme(60, 8))
        for batch in stream.get_epoch_iterator(as_dict=True):
            assert {'x', 'y'} == batch.keys()


def test_single_examples_are_read_many_at_a_time(path, monkeypatch):
    """Single examples are read like rows of batches after the first one."""
    asked = []
    read = H5PYDataset._read

    def note(self, positions):
        asked.append(numpy.size(positions))
        return read(self, positions)

    monkeypatch.setattr(H5PYDataset, '_read', note)
    with H5PYDataset(path, ('train',), sources=('x',)) as dataset:
        stream = DataStream(
            dataset, iteration_scheme=ShuffledExampleScheme(60))
        order = list(ShuffledExampleScheme(60).get_request_iterator())
        assert X[order].tolist() == [
            x.tolist() for x, in stream.get_epoch_iterator()]
        assert [1, 59] == asked


def test_damage_in_the_middle_of_an_epoch_is_told(path):
    """The batch before it was good, this one is not handed out."""
    dataset = H5PYDataset(path, ('train',), sources=('x',))
    epoch = epoch_of(dataset, SequentialScheme(60, 8))
    os.utime(path, ns=(0, 0))
    with pytest.raises(DamagedFileError, match='written to') as caught:
        next(epoch)
    assert any('item 2 of the epoch' in note
               for note in caught.value.__notes__)
    dataset.close(None)


def test_part_that_is_remembered_is_not_read_ahead(tmp_path):
    """Chunks that no example of the split lies in are never needed."""
    path = write(tmp_path / 'x.hdf5', chunks=(10, 4), compression='gzip')
    with H5PYDataset(path, ('train',), sources=('x',)) as dataset:
        stream = DataStream(dataset, iteration_scheme=ShuffledScheme(60, 8))
        list(stream.get_epoch_iterator())
        epoch = stream.get_epoch_iterator()
        next(epoch)
        next(epoch)
        assert epoch.epoch.reader.is_open
        assert 8 == len(list(epoch)) + 2


@pytest.mark.parametrize('layout', [
    {}, {'chunks': (7, 4)}, {'chunks': (7, 3)},
    {'chunks': (7, 4), 'compression': 'gzip'},
    {'chunks': (7, 3), 'compression': 'gzip'}])
@pytest.mark.parametrize('scale, shift', [(1 / 255, -.5), (-3, 7)])
def test_conversions_from_the_file_have_the_same_bits(
        tmp_path, layout, scale, shift):
    """The bits are those of a stage, for unwritten rows as well."""
    pixels = numpy.random.RandomState(0).randint(0, 256, (100, 4)).astype('u1')
    path = tmp_path / 'x.hdf5'
    with h5py.File(path, 'w') as file:
        x = file.create_dataset('x', (100, 4), 'u1', fillvalue=9, **layout)
        x[:70] = pixels[:70]
        pixels[70:] = 9
        file['y'] = Y
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'x': (0, 100), 'y': (0, 100)}})
    expected = (pixels * float(scale) + float(shift)).astype('f4')
    for examples in range(10, 100), list(range(99, -1, -1)):
        for as_dict in False, True:
            with H5PYDataset(path, ('train',)) as dataset:
                stream = Cast(ScaleAndShift(
                    DataStream(dataset, iteration_scheme=SequentialScheme(
                        examples, 9)), scale, shift, which_sources=('x',)),
                    'float32', which_sources=('x',))
                for _ in range(2):
                    position = 0
                    for batch in stream.get_epoch_iterator(as_dict=as_dict):
                        x, y = (batch['x'], batch['y']) if as_dict else batch
                        rows = examples[position:position + 9]
                        position += len(x)
                        assert x.dtype == numpy.float32
                        assert x.flags.writeable
                        assert (expected[list(rows)] == x).all()
                        assert (Y[list(rows)] == y).all()
                    assert len(examples) == position


def test_conversions_follow_sources_that_are_changed(tmp_path):
    """A conversion would apply to other sources in the middle of an epoch."""
    path = write(tmp_path / 'y.hdf5', x=X.astype('u1'))
    with H5PYDataset(path, ('train',)) as dataset:
        reader = dataset.open_epoch(
            SequentialScheme(60, 10).get_request_iterator(),
            ReadOptions({'x': Conversion(numpy.dtype('f4'), 2., None)}))
        reader.read()
        reader.read()
        assert {'x'} == reader.converted
        dataset.sources = ('y', 'x')
        y, x = reader.read()
        assert not reader.converted
        assert 'uint8' == y.dtype == x.dtype


def test_an_epoch_begins_in_few_calls(path):
    """The first batch is included, since epochs may be short."""
    with H5PYDataset(path, ('train',)) as dataset:
        stream = DataStream(
            dataset, iteration_scheme=ShuffledScheme(60, 10))
        assert min(calls_of_an_epoch(stream) for _ in range(4)) <= 120


def calls_of_an_epoch(stream):
    """Return how many functions are called up to the first batch."""
    called = []

    def note(frame, event, _):
        if event == 'call':
            called.append(frame)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        epoch = stream.get_epoch_iterator()
        next(epoch)
    finally:
        sys.setprofile(before)
    assert 5 == len(list(epoch))
    return len(called)


def test_uint8_images_are_converted_while_they_are_gathered(path, tmp_path):
    """The reader says so from the first batch on."""
    path = write(tmp_path / 'y.hdf5', x=X.astype('u1'))
    with H5PYDataset(path, ('train',), sources=('x',)) as dataset:
        scheme = SequentialScheme(60, 10)
        options = ReadOptions({'x': Conversion(numpy.dtype('f4'), .5, 1.)})
        reader = dataset.open_epoch(scheme.get_request_iterator(), options)
        for number in range(6):
            batch, = reader.read()
            assert {'x'} == reader.converted
            assert (X[10 * number:10 * number + 10] * .5 + 1 == batch).all()
        with pytest.raises(StopIteration):
            reader.read()
        assert not reader.converted
