"""An epoch that is pickled keeps what its compiled base knows."""
import pickle

from fuel.datasets import IterableDataset
from fuel.streams import DataStream


def test_unpickled_epoch_keeps_its_position():
    """Its compiled attributes are not those of an instance's dict."""
    stream = DataStream(IterableDataset(list(range(6))))
    epoch = stream.get_epoch_iterator()
    next(epoch)
    next(epoch)
    copy = pickle.loads(pickle.dumps(epoch))
    assert 2 == copy.epoch.position
    assert epoch.state_dict() == copy.state_dict()
