"""Workers, threads and servers keep the promises of every stream."""
import pickle
from functools import partial

import pytest
from support import elsewhere, pipelines

from fuel.testing import STREAM_PROMISES, check_stream
from fuel.testing.data import freeze_all

# Batches, left-overs and draws; then examples, decoded chunks, no requests.
NAMES = ('ShuffledScheme', 'Cache of Batch', 'Noisy left-overs',
         'sparse Cache', 'ShuffledExampleScheme', 'H5PYDataset gzip',
         'TextFile')

# Epochs are the server's: two iterators of a client that are read at once are
# two clients, which share an epoch, and what was never read was never begun.
OF_ONE_PROCESS = {'interleaved epochs', 'threads', 'closing',
                  'pickle in another process', 'iterator alone',
                  'stream alone'}


@pytest.fixture(autouse=True)
def end_servers():
    """End the servers that a test has started."""
    with elsewhere.SERVERS:
        yield


@pytest.mark.parametrize('promise', STREAM_PROMISES)
@pytest.mark.pipelines(*NAMES)
def test_worker_keeps_promise(pipeline, promise, files, another_process):
    """A stream in a worker keeps its promises in all its operations."""
    check_stream(partial(elsewhere.in_worker, pipeline, files),
                 promises=[promise], draws=pipeline in pipelines.DRAWING,
                 another_process=another_process)


@pytest.mark.parametrize('promise', STREAM_PROMISES)
@pytest.mark.pipelines(*NAMES, 'Cast', 'ImagesFromBytes')
def test_threads_keep_promise(pipeline, promise, files, another_process):
    """A stream whose stages run ahead in threads keeps its promises."""
    check_stream(partial(elsewhere.in_threads, pipeline, files),
                 promises=[promise], draws=pipeline in pipelines.DRAWING,
                 another_process=another_process)


@pytest.mark.full
@pytest.mark.parametrize('promise', STREAM_PROMISES)
def test_workers_keep_promise(promise, files, another_process):
    """Several of them, as one."""
    check_stream(partial(elsewhere.in_workers, 'ShuffledScheme', files),
                 promises=[promise], another_process=another_process)


@pytest.mark.parametrize('promise', [
    promise for promise in STREAM_PROMISES if promise not in OF_ONE_PROCESS])
@pytest.mark.pipelines(*NAMES)
def test_server_keeps_promise(pipeline, promise, files, another_process):
    """A client keeps its promises, also if it reconnects."""
    check_stream(partial(elsewhere.behind_server, pipeline, files),
                 promises=[promise], draws=pipeline in pipelines.DRAWING,
                 another_process=another_process)


@pytest.mark.parametrize('saved', ['both', 'iterator', 'state'])
@pytest.mark.pipelines(*NAMES)
def test_client_that_is_saved_and_closed_is_continued(pipeline, saved, files):
    """At each step, by another client of the same server."""
    with elsewhere.behind_server(pipeline, files) as client:
        expected = [freeze_all(client.get_epoch_iterator())
                    for _ in range(2)]
    for step in range(1, len(expected[0]) + 1):
        with elsewhere.behind_server(pipeline, files) as client:
            epoch = client.get_epoch_iterator()
            for _ in range(step):
                next(epoch)
            kept = pickle.dumps({
                'both': (client, epoch), 'iterator': epoch,
                'state': None if saved != 'state' else client.state_dict(),
            }[saved])
        kept = pickle.loads(kept)
        if saved == 'state':
            client.load_state_dict(kept)
            epoch = client.get_epoch_iterator()
        else:
            epoch = kept if saved == 'iterator' else kept[1]
        assert expected[0][step:] == freeze_all(epoch)
        with epoch.data_stream as client:
            assert expected[1] == freeze_all(client.get_epoch_iterator())


@pytest.mark.parametrize('count', [1, 2, 5])
@pytest.mark.pipelines(*NAMES)
def test_client_can_be_closed_at_any_time(pipeline, count, files):
    """A client closed twice goes on with the next epoch."""
    with elsewhere.behind_server(pipeline, files) as client:
        expected = [freeze_all(client.get_epoch_iterator())
                    for _ in range(2)]
    client = elsewhere.behind_server(pipeline, files)
    epoch = client.get_epoch_iterator()
    for _ in range(count):
        next(epoch, None)
    for _ in range(2):
        client.close()
    with client:
        again = freeze_all(client.get_epoch_iterator())
    if pipeline not in pipelines.DRAWING:
        assert expected[1] == again
