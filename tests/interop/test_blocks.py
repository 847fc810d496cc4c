"""Blocks' main loop, extensions and checkpoints over streams of Fuel."""
import json
import pickle
import signal

import pytest
from support import blocks
from support.processes import run_python


@pytest.fixture(scope='module')
def uninterrupted(tmp_path_factory):
    """Return what training without an interruption ends with."""
    loop = blocks.make_loop(
        str(tmp_path_factory.mktemp('whole') / 'loop.pkl'), 3)
    loop.run()
    return blocks.results(loop)


def test_main_loop_trains(uninterrupted):
    """The cost falls in three epochs of seven batches."""
    assert (3, 21) == (uninterrupted['epochs'], uninterrupted['iterations'])
    costs = [value for name, value in uninterrupted['log']
             if name == 'validation cost']
    assert 4 == len(costs)
    assert costs[-1] < costs[0]
    for epoch in range(3):
        batches = [value for name, value in uninterrupted['log']
                   if name == 'batch'][7 * epoch:7 * epoch + 7]
        assert blocks.N == sum(map(len, batches))


def test_killed_training_ends_with_the_same_parameters(
        tmp_path, uninterrupted):
    """It is killed twice in the middle of an epoch, and resumed in new
    processes."""
    path = str(tmp_path / 'loop.pkl')
    for kill_after in (5, 17, 0):
        status, output, errors = run_python(
            blocks.__file__, path, '3', str(kill_after))
        assert (-signal.SIGKILL if kill_after else 0) == status, errors
    assert uninterrupted == json.loads(output)


@pytest.mark.parametrize('stop', range(1, 22))
def test_checkpoint_after_any_batch_resumes_exactly(
        stop, tmp_path, uninterrupted):
    """It resumes at the ends of epochs too, with any pickle protocol."""
    loop = blocks.make_loop(str(tmp_path / 'loop.pkl'), 3)
    loop.extensions.append(blocks.StopAfter(stop))
    with pytest.raises(blocks.Stopped):
        loop.run()
    del loop.extensions[-1]
    protocol = stop % (pickle.HIGHEST_PROTOCOL + 1)
    resumed = pickle.loads(pickle.dumps(loop, protocol))
    resumed.run()
    assert uninterrupted == blocks.results(resumed)
