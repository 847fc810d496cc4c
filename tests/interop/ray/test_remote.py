"""Actors that read a remote file: both roads past one machine at once."""
from functools import partial

import pytest
from support.range_server import serving
from support.ray_pipelines import epochs_of
from support.remote_sets import NUM_EXAMPLES, open_set, write_set

from fuel.interop.ray import RayWorkers
from fuel.schemes import ShuffledScheme
from fuel.streams import DataStream
from fuel.testing import STREAM_PROMISES, check_stream
from fuel.transformers import FilterSources

# Each stream that is made starts actors, so most are for long runs.
SHORT = ('ownership', 'plain state')


@pytest.fixture(scope='module')
def url(tmp_path_factory):
    """Serve a file with a source of each kind; return its URL."""
    folder = tmp_path_factory.mktemp('served')
    write_set(folder / 'set.hdf5')
    with serving(folder) as server:
        yield server.url('set.hdf5')


def batches(url, folder):
    """Return a stream of shuffled batches of the file."""
    return DataStream(open_set(url, folder, 64 << 20),
                      iteration_scheme=ShuffledScheme(NUM_EXAMPLES, 3))


def in_actors(url, folder):
    """Return the same stream, made by two actors."""
    return RayWorkers(batches(url, folder), num_workers=2,
                      resources={'CPU': 0})


@pytest.mark.parametrize('promise', [
    promise if promise in SHORT else pytest.param(
        promise, marks=pytest.mark.full) for promise in STREAM_PROMISES])
@pytest.mark.timeout(600)
def test_stream_of_remote_file_keeps_promise(
        url, tmp_path, promise, another_process):
    """The promises are about ownership, states at every step, and each example
    once."""
    check_stream(partial(in_actors, url, str(tmp_path)), promises=[promise],
                 another_process=another_process)


def test_actors_read_the_values_of_the_file(url, tmp_path):
    """Each epoch keeps the order of the stream."""
    regular = ('gzip', 'plain')
    expected = epochs_of(FilterSources(batches(url, 'off'), regular), 2)
    with in_actors(url, str(tmp_path)) as stream:
        assert expected == epochs_of(FilterSources(stream, regular), 2)
    for epoch in expected:
        rows = [row for batch in epoch for row in batch[0]]
        assert NUM_EXAMPLES == len({str(row) for row in rows}) == len(rows)
