"""Several epoch iterators of one stream do not disturb each other."""
import threading

import pytest
from support import pipelines


def epochs_of(name, folder, count):
    """Return the digests of some epochs, one after the other."""
    with pipelines.build(name, folder) as stream:
        return [[pipelines.digest(data)
                 for data in stream.get_epoch_iterator()]
                for _ in range(count)]


@pytest.mark.parametrize('name', pipelines.DRAWING_NOTHING)
def test_two_interleaved_epochs_are_both_whole(name, files):
    """In turns two iterators give what they give alone."""
    expected = epochs_of(name, files, 2)
    with pipelines.build(name, files) as stream:
        first = stream.get_epoch_iterator()
        second = stream.get_epoch_iterator()
        seen = [], []
        for _ in range(max(map(len, expected)) + 1):
            for epoch, digests in zip((first, second), seen, strict=True):
                for data in epoch:
                    digests.append(pipelines.digest(data))
                    break
        assert expected == list(seen)


@pytest.mark.parametrize('name', pipelines.DRAWING_NOTHING)
def test_two_epochs_in_two_threads_are_both_whole(name, files):
    """Two threads may each have an iterator of one stream."""
    expected = epochs_of(name, files, 2)
    with pipelines.build(name, files) as stream:
        epochs = [stream.get_epoch_iterator() for _ in range(2)]
        seen = [[], []]

        def read(place):
            seen[place] += [pipelines.digest(data)
                            for data in epochs[place]]

        threads = [threading.Thread(target=read, args=(place,))
                   for place in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert expected == seen


@pytest.mark.parametrize('name', pipelines.DRAWING_NOTHING)
def test_an_abandoned_epoch_leaves_nothing_behind(name, files):
    """After leaving an epoch the next one is whole."""
    expected = epochs_of(name, files, 2)[1]
    with pipelines.build(name, files) as stream:
        next(stream.get_epoch_iterator())
        assert expected == [pipelines.digest(data)
                            for data in stream.get_epoch_iterator()]


@pytest.mark.parametrize('name', pipelines.DRAWING_NOTHING)
def test_states_of_interleaved_epochs_are_their_own(name, files):
    """Even when one has come to its end and the other has not."""
    expected = epochs_of(name, files, 2)
    with pipelines.build(name, files) as stream:
        first = stream.get_epoch_iterator()
        for _ in expected[0]:
            next(first)
        second = stream.get_epoch_iterator()
        next(second)
        states = first.state_dict(), second.state_dict()
    for state, rest in zip(states, ([], expected[1][1:]), strict=True):
        with pipelines.build(name, files) as stream:
            stream.load_state_dict(state)
            assert rest == [pipelines.digest(data)
                            for data in stream.get_epoch_iterator()]
