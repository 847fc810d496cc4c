"""A position saved at any step is taken up exactly, in another process."""
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from support import pipelines

TESTS = Path(pipelines.__file__).parents[1]

# Whichever test is the first does the work of all: minutes on a busy machine.
pytestmark = pytest.mark.timeout(300)


def save_at_each_step(name, folder):
    """Yield what is saved at each step of an epoch, and what follows.

    The steps are: nothing handed out; each item; all handed out but
    ``StopIteration`` not raised; ``StopIteration`` raised.
    """
    with pipelines.build(name, folder) as stream:
        total = len(list(stream.get_epoch_iterator()))
    for step in range(total + 2):
        with pipelines.build(name, folder) as stream:
            calls = pipelines.count_requests(stream)
            epoch = stream.get_epoch_iterator()
            for _ in range(step):
                next(epoch, None)
            for leaf in pipelines.leaves(stream):
                del leaf.dataset.get_data
            saved = [('state', json.dumps(stream.state_dict())),
                     ('pickle', pickle.dumps((stream, epoch)))]
            calls = pipelines.count_requests(stream)
            rest = [pipelines.digest(data) for data in epoch]
            count = len(calls)
            following = [pipelines.digest(data)
                         for data in stream.get_epoch_iterator()]
            if step == total + 1:
                third = [pipelines.digest(data)
                         for data in stream.get_epoch_iterator()]
        for kind, payload in saved:
            expected = rest, following, count
            if kind == 'state' and step == total + 1:
                # A stream whose epoch is over begins the next.
                expected = following, third, None
            yield (name, kind, payload), (step, total, *expected)


@pytest.fixture(scope='module')
def taken_up(files, tmp_path_factory):
    """Save each pipeline at each step, and take all up in one new process.

    Returns
    -------
    dict
        For each pipeline and kind a list of (expected, followed).

    """
    folder = tmp_path_factory.mktemp('state')
    saved, expected = zip(*[
        item for name in pipelines.PIPELINES
        for item in save_at_each_step(name, files)], strict=True)
    (folder / 'saved').write_bytes(pickle.dumps(saved))
    subprocess.run(
        [sys.executable, '-W', 'error', '-m', 'support.take_up', files,
         folder / 'saved', folder / 'results'],
        check=True, timeout=250,
        env={**os.environ, 'PYTHONPATH': os.pathsep.join(
            [str(TESTS), *filter(None, sys.path)])})
    followed = pickle.loads((folder / 'results').read_bytes())
    results = {}
    for (name, kind, _), wanted, got in zip(
            saved, expected, followed, strict=True):
        results.setdefault((name, kind), []).append((wanted, got))
    return results


@pytest.mark.parametrize('kind', ['state', 'pickle'])
@pytest.mark.parametrize('name', pipelines.PIPELINES)
def test_position_is_taken_up_exactly_in_a_new_process(
        taken_up, name, kind):
    """The rest of the epoch and the whole next one are equal."""
    for (step, total, *wanted, _), (*got, _) in taken_up[name, kind]:
        where = f'{name} saved at step {step} of {total}'
        assert wanted[0] == got[0], f'{where}: the rest of the epoch'
        assert wanted[1] == got[1], f'{where}: the next epoch'


@pytest.mark.parametrize('kind', ['state', 'pickle'])
@pytest.mark.parametrize('name', pipelines.PIPELINES)
def test_position_is_taken_up_without_reading_again(taken_up, name, kind):
    """No more is read than the rest needs, and one batch a left-over."""
    for (step, total, _, _, wanted), (_, _, got) in taken_up[name, kind]:
        if wanted is not None:
            assert got <= wanted + 2, f'saved at step {step} of {total}'


@pytest.mark.parametrize('name', pipelines.PIPELINES)
def test_state_is_plain_and_small(name, files):
    """A state holds counts and generators, never data."""
    with pipelines.build(name, files) as stream:
        epoch = stream.get_epoch_iterator()
        next(epoch)
        state = stream.state_dict()
        assert json.loads(json.dumps(state)) == state
        assert len(json.dumps(state)) < 20000


@pytest.mark.parametrize('name', pipelines.PIPELINES)
def test_state_survives_being_restored_and_saved_again(name, files):
    """At every step from one fresh pipeline to the next."""
    with pipelines.build(name, files) as stream:
        expected = [pipelines.digest(data)
                    for data in stream.get_epoch_iterator()]
    assert len(expected) > 1
    found, state = [], None
    for _ in expected:
        with pipelines.build(name, files) as stream:
            if state is not None:
                stream.load_state_dict(state)
                assert state == stream.state_dict()
            found.append(pipelines.digest(next(stream.get_epoch_iterator())))
            state = stream.state_dict()
    assert expected == found
    with pipelines.build(name, files) as stream:
        stream.load_state_dict(state)
        assert [] == list(stream.get_epoch_iterator())
