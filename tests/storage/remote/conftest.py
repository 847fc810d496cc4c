"""A server on loopback, the files it serves, and a cache of each test."""
import gc
import itertools
import shutil

import h5py
import numpy
import pytest
from support.range_server import serving

from fuel import config
from fuel.datasets import H5PYDataset
from fuel.remote import location

NUM_EXAMPLES = 600
# Of each test's file, so that none is known from another test.
NUMBERS = itertools.count()


@pytest.fixture
def folder(tmp_path):
    """Return the folder that is served."""
    path = tmp_path / 'served'
    path.mkdir()
    return path


@pytest.fixture
def server(folder):
    """Serve the folder."""
    with serving(folder) as running:
        yield running


@pytest.fixture(autouse=True)
def cache(tmp_path):
    """Cache on disk in a folder of the test."""
    config.remote_cache_path = str(tmp_path / 'cache')
    config.remote_timeout = 20
    # A file that an earlier test has left open, such as in a traceback, is
    # not that of this test: asking for its state would be a request more.
    location._files.clear()
    # The collector frees objects of h5py in any thread, which waits for
    # h5py's lock then. A thread of the server must not: it would not answer
    # to who has that lock. So this thread does it, for the objects of the
    # test, which are all young.
    gc.disable()
    yield tmp_path / 'cache'
    gc.enable()
    gc.collect(0)


def make_file(path, num_examples=NUM_EXAMPLES, seed=0):
    """Write an HDF5 file with a source of each layout; return the data."""
    generator = numpy.random.RandomState(seed)
    rows = generator.randint(0, 255, (num_examples, 20, 15)).astype('uint8')
    with h5py.File(path, 'w') as file:
        file['plain'] = rows
        file.create_dataset('chunked', data=rows + 1, chunks=(64, 20, 15))
        file.create_dataset('tiled', data=rows + 2, chunks=(50, 7, 15))
        file.create_dataset('gzip', data=rows // 8, chunks=(50, 20, 15),
                            compression='gzip', shuffle=True)
        file.create_dataset('big', data=rows.astype('>i4'))
        file.create_dataset('scale', data=rows[:, 0, 0].astype('int16'),
                            chunks=(100,), scaleoffset=0)
        ragged = file.create_dataset(
            'ragged', (num_examples,), h5py.vlen_dtype('int32'))
        for number in range(num_examples):
            ragged[number] = numpy.arange(number % 7)
        file['number'] = numpy.arange(num_examples)
        names = list(file)
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': dict.fromkeys(names, (0, num_examples))})
        return {name: file[name][...] for name in names}


@pytest.fixture(scope='session')
def original(tmp_path_factory):
    """Return the path of an HDF5 file, and its sources."""
    path = tmp_path_factory.mktemp('original') / 'train.hdf5'
    return path, make_file(path)


@pytest.fixture
def data(folder, original):
    """Have ``train.hdf5`` in the folder; return its sources."""
    path, sources = original
    shutil.copyfile(path, folder / 'train.hdf5')
    return sources


@pytest.fixture
def url(server, data):
    """Return the URL of ``train.hdf5``."""
    return server.url('train.hdf5')


def check_batch(data, sources, batch):
    """Check that a batch has the rows that its numbers say."""
    numbers = batch[sources.index('number')]
    for source, part in zip(sources, batch, strict=True):
        if source == 'ragged':
            for number, row in zip(numbers, part, strict=True):
                assert numpy.array_equal(data['ragged'][number], row)
        else:
            assert numpy.array_equal(data[source][numbers], part)
            assert part.flags.writeable
            assert part.dtype.isnative


def read_epoch(stream, data):
    """Read and check an epoch; return the numbers of its examples."""
    sources = stream.sources
    seen = []
    for batch in stream.get_epoch_iterator():
        check_batch(data, sources, batch)
        seen += batch[sources.index('number')].tolist()
        for part in batch:
            # It is the user's.
            part[...] = 0
    return seen
