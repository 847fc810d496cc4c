"""The promised length, requests and pickles of each stream."""
import pickle

import pytest
from support import pipelines

from fuel.epochs.fingerprint import encoded_fingerprint
from fuel.epochs.pipeline import child_streams
from fuel.epochs.stage import stage_of
from fuel.streams import DataStream

# The number of items is not known before they are made.
UNKNOWN_LENGTH = (
    'Expand', 'Expand batches',
    'Filter', 'Cache', 'Cache refilled', 'Cache ends early',
    'Cache of Batch', 'Unpack', 'Unpack of Cache', 'Unpack Batch Unpack',
    'ShuffleBuffer', 'BalancedBatches in order', 'ImagesFromBytes skipping',
    'bad records of examples', 'Unpack of bad records',
    'ProviderDataset', 'TextFile', 'TextFile batches', 'Window', 'NGrams',
    'BucketBatch', 'Chunk', 'Chunk shifted', 'Pack', 'Pack batches',
    'Pack of Chunk', 'Mix', 'Mix to the last', 'Batch of Mix',
    'Noisy left-overs', 'Running', 'sharded Unpack', 'sharded Cache',
    'MarkExamples examples', 'MarkExamples of Pack',
    'sharded MarkExamples of Filter',
    'sharded Filter', 'sharded TextFile', 'sparse Filter', 'sparse Cache',
    'sparse Cache refilled', 'sparse Unpack', 'sparse ShuffleBuffer',
    'sparse Mix', 'sharded sparse Batch', 'sharded sparse Cache',
    'sharded sparse Unpack', 'RandomFixedSizeCrop by example',
    'GaussianNoise by example')


@pytest.mark.parametrize('name', pipelines.PIPELINES)
def test_length_is_right_where_it_is_known(name, files):
    """A stream that cannot know says so."""
    with pipelines.build(name, files) as stream:
        if name in UNKNOWN_LENGTH:
            with pytest.raises(TypeError, match='not known'):
                len(stream)
        else:
            assert len(list(stream.get_epoch_iterator())) == len(stream)


@pytest.mark.parametrize('name', [
    name for name in pipelines.PIPELINES if name != 'Running'])
def test_stage_refuses_requests_unless_it_has_a_scheme(name, files):
    """Stages that are pulled take none; Batch and Cache need one."""
    with pipelines.build(name, files) as stream:
        if isinstance(stream, DataStream):
            return
        stream.get_epoch_iterator()
        request = 3 if stream.iteration_scheme is None else None
        with pytest.raises(ValueError, match='takes no requests|as request'):
            stream.get_data(request)


def fingerprints(stream):
    """Return the fingerprints of all stages of a pipeline."""
    return [encoded_fingerprint(stage_of(stream))[1](),
            *map(fingerprints, child_streams(stream))]


@pytest.mark.parametrize('name', ['Rename', 'ShuffledScheme', 'Padding'])
def test_pickled_stream_has_the_fingerprint_of_the_one_it_came_from(
        name, files):
    """Arguments that it does not keep are not added as new ones."""
    with pipelines.build(name, files) as stream:
        copy = pickle.loads(pickle.dumps(stream))
        assert fingerprints(stream) == fingerprints(copy)
