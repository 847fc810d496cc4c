"""A network trained on real data, interrupted, and shared over processes."""
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from support import processes
from support.torch_pipelines import ordered, plain_epochs, shuffled
from torch.utils.data import DataLoader

from fuel.interop.torch import as_iterable

# Each process imports PyTorch, which takes long on a busy machine.
pytestmark = pytest.mark.timeout(600)

EXAMPLE = Path(__file__).parents[3] / 'examples' / 'digits_pytorch.py'


def run(command, *arguments, **variables):
    """Run the example to its end, and return what it printed."""
    done = subprocess.run(
        [sys.executable, *command, EXAMPLE, *arguments],
        env=processes.environment(**variables), capture_output=True,
        text=True, check=False, timeout=280)
    assert 0 == done.returncode, done.stderr
    return done.stdout


def weights(output):
    """Return the checksums of the weights that the ranks printed."""
    return re.findall(r'weights ([0-9a-f]{16})', output)


def test_training_that_is_killed_ends_with_the_same_weights(tmp_path):
    """SIGKILL ends it in mid-epoch, with workers; it resumes in a new process
    without."""
    whole = run([], tmp_path / 'whole.pt', '--epochs', '3')
    path = tmp_path / 'killed.pt'
    with subprocess.Popen(
            [sys.executable, EXAMPLE, path, '--epochs', '3', '--workers', '2'],
            env=processes.environment(), stdout=subprocess.PIPE,
            text=True) as process:
        for line in process.stdout:
            if line.startswith('epoch 1, step 10'):
                os.kill(process.pid, signal.SIGKILL)
                break
    resumed = run([], path, '--epochs', '3')
    assert 'resumed in epoch 1' in resumed
    assert weights(whole) == weights(resumed)
    accuracy, = re.findall(r'accuracy ([\d.]+)', resumed)
    assert float(accuracy) > 0.8


def test_ranks_of_torchrun_train_one_network(tmp_path):
    """The ranks take turns with batches; one process resumes their state."""
    path = tmp_path / 'ranks.pt'
    launcher = ['-m', 'torch.distributed.run', '--standalone',
                '--nproc-per-node', '2']
    ranks = weights(run(launcher, path, '--epochs', '1',
                        OMP_NUM_THREADS='1'))
    assert 2 == len(ranks)
    assert 1 == len(set(ranks))
    # After 10 of 12 steps of two ranks, 4 of 24 batches are left.
    saved = torch.load(path, weights_only=True)['loader']
    assert 20 == json.loads(saved['stream'])['position']


@pytest.mark.parametrize('num_workers', [0, 2])
@pytest.mark.parametrize('uneven, lengths', [
    ('uneven', [4, 3]), ('drop', [3, 3]), ('pad', [4, 4])])
def test_ranks_and_workers_share_an_epoch(num_workers, uneven, lengths):
    """No batch comes twice, unless asked for; the order is the stream's."""
    ranks = [DataLoader(
        as_iterable(shuffled(), shard=(rank, 2), uneven=uneven),
        batch_size=None, num_workers=num_workers) for rank in range(2)]
    for epoch in plain_epochs(shuffled, 2):
        found = [[batch.tolist() for batch, in loader] for loader in ranks]
        assert lengths == list(map(len, found))
        assert epoch[:6] == [
            batch for pair in zip(*found, strict=False) for batch in pair][:6]
        if uneven != 'drop':
            assert epoch[6] == found[0][3]


@pytest.mark.parametrize('saving, loading', [(2, 1), (1, 2)])
def test_state_of_ranks_is_that_of_the_whole_order(saving, loading):
    """Any number of ranks, and of workers, goes on."""
    expected = plain_epochs(shuffled, 1)[0]
    iterable = as_iterable(shuffled(), shard=(0, saving), uneven='uneven')
    epoch = iter(DataLoader(iterable, batch_size=None, num_workers=2))
    for _ in range(4 // saving):
        next(epoch)
    state = iterable.state_after(4 // saving)
    found = []
    for rank in range(loading):
        restored = as_iterable(shuffled(), shard=(rank, loading),
                               uneven='uneven')
        restored.load_state_dict(state)
        found += [batch.tolist() for batch, in DataLoader(
            restored, batch_size=None, num_workers=rank)]
    assert sorted(expected[4:]) == sorted(found)


def test_rank_is_that_of_the_launcher(monkeypatch):
    """A stream that is sharded already, or None, overrides it."""
    monkeypatch.setenv('RANK', '1')
    monkeypatch.setenv('WORLD_SIZE', '2')
    expected = plain_epochs(ordered, 1)[0]
    first = [rows.tolist() for rows, _ in as_iterable(ordered())]
    assert expected[1::2] == first
    assert 'as_iterable(DataStream, shard=(1, 2))' == repr(
        as_iterable(ordered()))
    assert 4 == len(list(as_iterable(ordered(), shard=None)))
    sharded = ordered().shard(0, 2)
    assert expected[::2] == [rows.tolist() for rows, _ in as_iterable(sharded)]
    with pytest.raises(ValueError, match='sharded already'):
        as_iterable(sharded, shard=(0, 2))


@pytest.mark.parametrize('num_workers', [0, 2])
def test_rank_that_is_told_late_is_found_by_the_iteration(
        monkeypatch, num_workers):
    """Trainers set the rank when they start, after their data were built."""
    iterable = as_iterable(ordered())
    monkeypatch.setenv('RANK', '1')
    monkeypatch.setenv('WORLD_SIZE', '2')
    loader = DataLoader(iterable, batch_size=None, num_workers=num_workers)
    assert plain_epochs(ordered, 1)[0][1::2] == [
        rows.tolist() for rows, _ in loader]
    assert 'as_iterable(DataStream, shard=(1, 2))' == repr(iterable)


@pytest.mark.parametrize('num_workers', [0, 1])
def test_rank_that_changes_is_refused(monkeypatch, num_workers):
    """Each would read what the other has read."""
    iterable = as_iterable(shuffled())
    assert 7 == len(iterable)
    monkeypatch.setenv('RANK', '1')
    monkeypatch.setenv('WORLD_SIZE', '7')
    loader = DataLoader(iterable, batch_size=None, num_workers=num_workers)
    with pytest.raises(ValueError, match='rank 0 of 1, but now .* 1 of 7'):
        list(loader)


def test_batches_that_cannot_be_shared_evenly_are_refused():
    """No rank waits for the others for ever."""
    with pytest.raises(ValueError, match=(
            r'7 batches.*by 2 ranks.*"drop".*shard=None')):
        as_iterable(shuffled(), shard=(0, 2))
    halves = [as_iterable(shuffled(), shard=(rank, 2), by='example')
              for rank in range(2)]
    for one, other, batch in zip(*halves, plain_epochs(shuffled, 1)[0],
                                 strict=True):
        assert batch == one[0].tolist() + other[0].tolist()
