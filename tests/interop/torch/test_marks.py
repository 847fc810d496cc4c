"""Marks and logs of examples in loaders of PyTorch."""
import itertools
import json
from pathlib import Path

import pytest
import torch
from support import processes
from support.marked_pipelines import (
    BUILDERS, LENGTHS, N, balanced, batches, check_marks, logged)
from torch.utils.data import DataLoader

from fuel.export import log_examples
from fuel.interop.torch import Loader, as_iterable, to_torch
from fuel.transformers import MarkExamples

PROGRAM = Path(processes.__file__).with_name('marked_ranks.py')


def marked():
    """Return batches with marks, which several workers can make."""
    return MarkExamples(batches())


@pytest.mark.parametrize('workers', [0, 1, 2])
def test_marks_are_those_of_the_rows_on_ranks_and_workers(workers):
    """They are tensors like any other; a state of two ranks is taken up by
    three."""
    ranks = [Loader(marked(), workers, shard=(rank, 2), uneven='drop')
             for rank in range(2)]
    whole = [check_marks(loader) for loader in ranks]
    assert sorted(itertools.chain(*whole[0], *whole[1])) == list(range(N))
    assert {torch.int64} == {batch[1].dtype for batch in ranks[0]}
    first = Loader(marked(), workers, shard=(0, 2), uneven='drop')
    reading = iter(first)
    check_marks([next(reading), next(reading)])
    state = first.state_dict()
    found = []
    for rank in range(3):
        loader = Loader(marked(), workers, shard=(rank, 3), uneven='uneven')
        loader.load_state_dict(state)
        found += check_marks(loader)
    assert sorted(found) == sorted(whole[0][2:] + whole[1][2:])


@pytest.mark.parametrize('name', BUILDERS)
def test_tensors_have_the_marks_of_their_arrays(name):
    """It makes no difference which stage is above which."""
    expected = check_marks(MarkExamples(BUILDERS[name]()))
    assert expected == check_marks(to_torch(MarkExamples(BUILDERS[name]())))
    assert expected == check_marks(MarkExamples(to_torch(BUILDERS[name]())))
    assert expected[0] == to_torch(batches()).order[0].row.tolist() or (
        name != 'batches')


@pytest.mark.parametrize('workers', [0, 1])
def test_ranks_know_the_tokens_of_their_steps(workers):
    """The worker that makes a batch has the attribute; the loop has the
    source."""
    ranks = [DataLoader(as_iterable(
        balanced(), shard=(rank, 2), uneven='drop'),
                        batch_size=None, num_workers=workers)
             for rank in range(2)]
    steps = list(zip(*ranks, strict=True))
    assert N // 10 == len(steps)
    for step in steps:
        rows = torch.cat([rows for rows, _, _ in step])
        for _, _, tokens in step:
            assert {LENGTHS[rows.numpy()].sum()} == set(tokens.tolist())


@pytest.mark.parametrize('name', BUILDERS)
@pytest.mark.parametrize('workers', [0, 1])
def test_log_has_what_a_loader_delivered_and_goes_on(name, workers, tmp_path):
    """A worker reads ahead of the state, from which the log is cut."""
    def build(rank, path):
        return Loader(log_examples(to_torch(BUILDERS[name]()), path), workers,
                      shard=(rank, 2), uneven='drop')

    whole = [[rows.tolist() for rows, in build(rank, tmp_path / 'whole')]
             for rank in range(2)]
    for stop in range(1, len(whole[0])):
        path = tmp_path / f'{stop}.jsonl'
        states = []
        for rank in range(2):
            loader = build(rank, path)
            reading = iter(loader)
            list(itertools.islice(reading, stop))
            states.append(json.dumps(loader.state_dict()))
            next(reading, None)
            del reading
        for rank in range(2):
            loader = build(rank, path)
            # If a stage moves rows, each rank has a state of its own.
            loader.load_state_dict(json.loads(states[rank]))
            assert whole[rank][stop:] == [rows.tolist() for rows, in loader]
            assert whole[rank] == logged(tmp_path / f'{stop}-{rank}.jsonl')


@pytest.mark.parametrize('workers', [0, 1])
def test_log_goes_on_in_each_epoch_and_is_not_overwritten(workers, tmp_path):
    """Each epoch may have a worker of its own, and each state is found by
    reading again, which writes nothing."""
    for name in BUILDERS:
        path = tmp_path / name
        loader = Loader(log_examples(BUILDERS[name](), path), workers)
        expected = []
        for _ in range(3):
            for rows, in loader:
                expected.append(rows.tolist())
                state = loader.state_dict()
        lines = list(map(json.loads, path.read_text().splitlines()))
        assert expected == [
            [row for _, row in line['examples']] for line in lines]
        assert [(epoch, item) for epoch in range(3) for item in range(
            N // 4)] == [(line['epoch'], line['item']) for line in lines]
        before = path.read_bytes()
        with pytest.raises(FileExistsError, match='restore the state'):
            list(Loader(log_examples(BUILDERS[name](), path), workers))
        assert before == path.read_bytes()
        loader = Loader(log_examples(BUILDERS[name](), path), workers)
        loader.load_state_dict(state)
        list(loader), list(loader)
        assert path.read_bytes().startswith(before)
        assert N == len(path.read_text().splitlines())


def test_several_workers_cannot_write_a_log(tmp_path):
    """The loader says so before it starts them."""
    with pytest.raises(ValueError, match=r'ExampleLog .* num_workers=1'):
        Loader(log_examples(batches(), tmp_path / 'log'), 2)


@pytest.mark.timeout(600)
@pytest.mark.parametrize('workers', [0, 1])
def test_processes_that_are_ended_go_on_with_marks_and_logs(workers, tmp_path):
    """Two ranks, which end at any step; the sums of their tokens are those of
    the marks."""
    for most, status in ((2, 3), (3, 3), (99, 0)):
        ended = processes.end_together(processes.start_ranks(
            2, str(PROGRAM), str(tmp_path), str(workers), str(most)))
        assert [status] * 2 == [one[0] for one in ended], ended
    found = []
    for rank in range(2):
        rows = list(map(json.loads, (
            tmp_path / f'rows-{rank}').read_text().splitlines()))
        assert N // 10 == len(rows)
        assert rows == logged(tmp_path / f'log-{rank}')
        found += rows
    assert sorted(itertools.chain(*found)) == list(range(N))
