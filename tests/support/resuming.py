"""Save a stream at every step, restore it elsewhere: the rest is equal."""
import json
import pickle
from itertools import islice

import numpy


def plain(data):
    """Return data as nested tuples that compare, types included."""
    if isinstance(data, numpy.ndarray):
        if data.dtype == object:
            return ('objects', data.shape, [plain(x) for x in data.ravel()])
        return (str(data.dtype), data.shape, data.tobytes())
    if isinstance(data, (list, tuple)):
        return (type(data).__name__, [plain(part) for part in data])
    return (type(data).__name__, data)


def epochs(stream, count):
    """Return the data of the next epochs."""
    return [[plain(data) for data in stream.get_epoch_iterator()]
            for _ in range(count)]


def assert_resumes(build, num_epochs=2):
    """Assert that a pipeline resumes exactly, from states and pickles.

    Parameters
    ----------
    build : callable
        Makes the stream anew.
    num_epochs : int, optional
        In how many epochs to save.

    """
    expected = epochs(build(), num_epochs + 1)
    for epoch in range(num_epochs):
        items = expected[epoch]
        for step in range(len(items) + 2):
            stream = build()
            for _ in range(epoch):
                list(stream.get_epoch_iterator())
            iterator = stream.get_epoch_iterator()
            taken = [plain(data) for data in islice(iterator, step)]
            assert items[:step] == taken
            # One step more than there are items: the next epoch follows.
            rest = [items[step:], *expected[epoch + 1:]][
                step == len(items) + 1:]
            state = json.loads(json.dumps(stream.state_dict()))
            restored = build()
            restored.load_state_dict(state)
            assert rest == epochs(restored, len(rest)), (epoch, step)
            copy, again = pickle.loads(pickle.dumps((stream, iterator)))
            assert list(map(plain, iterator)) == list(map(plain, again))
            assert epochs(stream, 1) == epochs(copy, 1)
