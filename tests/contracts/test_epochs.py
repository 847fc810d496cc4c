"""What an epoch looks like from outside: its names, its end, its length."""
import pytest
from support import pipelines

from fuel.streams import DataStream

# How many items there are is not known before they were made.
UNKNOWN_LENGTH = (
    'Filter', 'Cache', 'Cache refilled', 'Cache ends early',
    'Cache of Batch', 'Unpack', 'Unpack of Cache', 'Unpack Batch Unpack',
    'MultiProcessing', 'ShuffleBuffer', 'ImagesFromBytes skipping',
    'TextFile', 'TextFile batches', 'Window', 'NGrams', 'BucketBatch',
    'Noisy left-overs', 'Running')


@pytest.mark.parametrize('name', pipelines.PIPELINES)
def test_epoch_as_dict_has_the_same_data(name, files):
    """Under the names of the sources, in their order."""
    with pipelines.build(name, files) as stream:
        expected = [pipelines.digest(tuple(data))
                    for data in stream.get_epoch_iterator()]
    with pipelines.build(name, files) as stream:
        found = []
        for data in stream.get_epoch_iterator(as_dict=True):
            assert list(stream.sources) == list(data)
            found.append(pipelines.digest(tuple(data.values())))
    assert expected == found


@pytest.mark.parametrize('name', pipelines.PIPELINES)
def test_epoch_that_ended_stays_ended(name, files):
    """It does not begin anew."""
    with pipelines.build(name, files) as stream:
        epoch = stream.get_epoch_iterator()
        for _ in epoch:
            pass
        for _ in range(2):
            with pytest.raises(StopIteration):
                next(epoch)


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
