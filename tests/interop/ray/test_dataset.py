"""Data sets of Ray Data as data sets of Fuel."""
import numpy
import pytest
import ray.data

from fuel.interop.ray import RayDataset
from fuel.schemes import ShuffledScheme
from fuel.streams import DataStream


@pytest.fixture(scope='module')
def dataset(cluster):
    """Return a data set of several blocks."""
    return RayDataset(ray.data.range(100, override_num_blocks=7).map_batches(
        lambda batch: {**batch, 'half': batch['id'] / 2}),
        sources=('half', 'id'))


@pytest.mark.timeout(300)
def test_rows_are_read_in_any_order(dataset):
    """An example, list, array or slice may cross blocks."""
    assert 100 == dataset.num_examples
    for request in ([99, 0, 50, 51, 0], numpy.array([3, 1]), slice(10, 60)):
        half, number = dataset.get_data(None, request)
        assert (numpy.arange(100)[request] == number).all()
        assert (number / 2 == half).all()
        half[...] = -1
    assert (3.5, 7) == dataset.get_data(None, 7)
    for request in (None, [100]):
        with pytest.raises(ValueError, match='request|out of'):
            dataset.get_data(None, request)
    with pytest.raises(ValueError, match='has no examples'):
        RayDataset(ray.data.range(10).limit(0))


@pytest.mark.timeout(300)
def test_epochs_shards_and_states_are_those_of_any_stream(dataset):
    """Each rank reads its share, and a state goes on."""
    def build():
        return DataStream(dataset, iteration_scheme=ShuffledScheme(100, 10))
    epochs = [[batch[1].tolist() for batch in epoch]
              for _, epoch in zip(range(2), build().iterate_epochs(),
                                  strict=False)]
    assert epochs[0] != epochs[1]
    for epoch in epochs:
        assert list(range(100)) == sorted(sum(epoch, []))
    shards = [[number for batch in build().shard(rank, 2).get_epoch_iterator()
               for number in batch[1].tolist()] for rank in range(2)]
    assert list(range(100)) == sorted(sum(shards, []))
    stream, other = build(), build()
    epoch = stream.get_epoch_iterator()
    for _ in range(4):
        next(epoch)
    other.load_state_dict(stream.state_dict())
    assert epochs[0][4:] == [
        batch[1].tolist() for batch in other.get_epoch_iterator()]
