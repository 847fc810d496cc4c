"""Streams of Fuel under PaddlePaddle's own data loader."""
import numpy
import paddle
import pytest

from fuel.datasets import IndexableDataset
from fuel.interop.paddle import (
    ProviderDataset,
    as_iterable,
    as_provider,
    shuffle,
)
from fuel.schemes import ShuffledScheme
from fuel.streams import DataStream

# Its loader warns of what it uses itself.
pytestmark = pytest.mark.filterwarnings('ignore')

N = 23


def stream():
    """Return a stream of features and targets."""
    features = numpy.random.RandomState(3).rand(N, 4).astype('float32')
    return DataStream(IndexableDataset({
        'features': features, 'targets': numpy.arange(N)[:, None]}),
        iteration_scheme=ShuffledScheme(N, 5))


def orders(count):
    """Return the targets of the first epochs of the stream."""
    epochs = stream()
    return [[int(target) for _, targets in epochs.get_epoch_iterator()
             for target in targets.ravel()] for _ in range(count)]


def test_loader_makes_tensors_of_entries():
    """Each pass keeps the order of the stream."""
    loader = paddle.io.DataLoader(as_iterable(stream()), batch_size=4)
    for expected in orders(2):
        seen = []
        for features, targets in loader:
            assert 'float32' in str(features.dtype)
            assert 4 == features.shape[1]
            assert len(targets) <= 4
            seen += targets.numpy().ravel().tolist()
        assert expected == seen


@pytest.mark.parametrize('workers', [1, 2, 3])
def test_workers_share_a_pass(workers):
    """Each entry comes once, and each pass has another order."""
    dataset = as_iterable(stream())
    loader = paddle.io.DataLoader(dataset, batch_size=1, num_workers=workers)
    passes = []
    for number in range(2):
        dataset.set_pass(number)
        passes.append([targets.numpy().item() for _, targets in loader])
    for seen, expected in zip(passes, orders(2), strict=True):
        assert list(range(N)) == sorted(seen)
        if workers == 1:
            assert expected == seen
    assert passes[0] != passes[1]


def test_number_of_a_pass_is_checked():
    """It is checked as all counts are."""
    with pytest.raises(ValueError, match='number'):
        as_iterable(as_provider(stream())).set_pass(-1)


def test_network_trains_on_a_provider():
    """The loss falls, and a second run gives the same weights."""
    found = []
    for _ in range(2):
        paddle.seed(1)
        network = paddle.nn.Linear(4, 1)
        optimizer = paddle.optimizer.SGD(
            .05, parameters=network.parameters())
        losses = []
        loader = paddle.io.DataLoader(as_iterable(stream()), batch_size=8)
        for _ in range(5):
            for features, _ in loader:
                loss = ((network(features) - features.sum(
                    1, keepdim=True)) ** 2).mean()
                loss.backward()
                optimizer.step()
                optimizer.clear_grad()
                losses.append(float(loss))
        assert losses[-1] < losses[0] / 2
        found.append(network.weight.numpy().tobytes())
    assert found[0] == found[1]


def test_data_set_of_paddle_is_a_provider():
    """Its items become examples of a data set of Fuel."""
    class Squares(paddle.io.IterableDataset):
        def __iter__(self):
            for n in range(9):
                yield numpy.array([n], 'float32'), n ** 2

    squares = Squares()
    entries = DataStream(ProviderDataset(
        lambda: iter(squares), ('root', 'square')))
    for _ in range(2):
        assert [n ** 2 for n in range(9)] == [
            square for _, square in entries.get_epoch_iterator()]


def test_decorators_do_what_paddle_s_do():
    """Results are equal, except for the order of a shuffle buffer."""
    reader = shuffle(lambda: range(9), 4)
    assert sorted(paddle.reader.shuffle(lambda: range(9), 4)()) == sorted(
        reader())
    from fuel.interop import paddle as bridge
    readers = [lambda: [(1, 2), (3, 4), (5, 6)], lambda: 'abc']
    for make in (
            lambda module: module.map_readers(lambda a, b: (b, a), *readers),
            lambda module: module.chain(*readers),
            lambda module: module.compose(*readers),
            lambda module: module.firstn(readers[0], 2),
            lambda module: module.buffered(readers[0], 2)):
        assert list(make(paddle.reader)()) == list(make(bridge)())
    for drop_last in (False, True):
        assert list(paddle.batch(readers[0], 2, drop_last)()) == list(
            bridge.batch(readers[0], 2, drop_last)())
