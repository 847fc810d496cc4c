"""Marks and logs of examples whose batches actors make, and in Ray Train."""
import itertools
import json
import tempfile
from pathlib import Path

import pytest
import ray
import ray.train
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer
from support.marked_pipelines import (
    BUILDERS, N, batches, check_marks, logged)

from fuel.exceptions import UnknownOrderError
from fuel.export import log_examples
from fuel.interop.ray import RayWorkers
from fuel.transformers import Filter, MarkExamples

pytestmark = pytest.mark.timeout(300)


def is_even(data):
    """Return whether Filter keeps a batch."""
    return data[0][0] % 2 == 0


@pytest.mark.parametrize('rank', [None, 1])
@pytest.mark.parametrize('workers', [1, 2])
def test_items_of_actors_have_marks_and_logs(workers, rank, tmp_path):
    """Marks are made in the actors or beside them, also after a resume."""
    def build(wrap, above, path):
        stream = wrap(RayWorkers(above(batches()), num_workers=workers))
        stream = log_examples(stream, path)
        return stream if rank is None else stream.shard(
            rank, 2, uneven='drop')

    def same(stream):
        return stream

    plain = batches() if rank is None else batches().shard(
        rank, 2, uneven='drop')
    expected = [rows.tolist() for rows, in plain]
    for number, (wrap, above) in enumerate((
            (same, MarkExamples), (MarkExamples, same))):
        path = tmp_path / f'{number}.jsonl'
        own = path if rank is None else tmp_path / f'{number}-{rank}.jsonl'
        with build(wrap, above, path) as stream:
            reading = iter(stream)
            first = check_marks(itertools.islice(reading, 2))
            state = json.loads(json.dumps(stream.state_dict()))
            next(reading)
        with build(wrap, above, path) as stream:
            stream.load_state_dict(state)
            assert expected == first + check_marks(stream)
        assert expected == logged(own)


def test_marks_of_an_order_that_depends_on_data_are_made_in_the_actor():
    """Beside it they are refused."""
    def build():
        return Filter(BUILDERS['moved'](), is_even)

    expected = check_marks(MarkExamples(build()))
    with RayWorkers(MarkExamples(build())) as stream:
        assert expected == check_marks(stream)
    with MarkExamples(RayWorkers(build())) as stream, pytest.raises(
            UnknownOrderError, match='put MarkExamples before that stage'):
        next(iter(stream))


def train(config):
    """Read the share of this worker; the second one fails once."""
    context, folder = ray.train.get_context(), Path(config['folder'])
    rank = context.get_world_rank()
    stream = log_examples(MarkExamples(BUILDERS[config['name']]()).shard(
        'auto', uneven='drop'), folder / 'log')
    checkpoint = ray.train.get_checkpoint()
    if checkpoint is not None:
        with checkpoint.as_directory() as saved:
            stream.load_state_dict(json.loads(
                (Path(saved) / f'{rank}.json').read_text()))
    for number, (rows, marks) in enumerate(stream):
        if checkpoint is None and number == 2 and rank == 1:
            raise RuntimeError('this worker fails')
        check_marks([(rows, marks)])
        with tempfile.TemporaryDirectory() as saved:
            # If a stage moves rows, each rank has a state of its own.
            (Path(saved) / f'{rank}.json').write_text(
                json.dumps(stream.state_dict()))
            ray.train.report({}, checkpoint=(
                ray.train.Checkpoint.from_directory(saved)))


@pytest.mark.parametrize('name', BUILDERS)
def test_training_that_fails_goes_on_with_marks_and_logs(name, tmp_path):
    """The log of a rank is that of a training which did not fail."""
    DataParallelTrainer(
        train, train_loop_config={'folder': str(tmp_path), 'name': name},
        scaling_config=ray.train.ScalingConfig(num_workers=2),
        run_config=ray.train.RunConfig(
            storage_path=str(tmp_path / 'runs'), failure_config=(
                ray.train.FailureConfig(max_failures=1)))).fit()
    logs = [logged(tmp_path / f'log-{rank}') for rank in range(2)]
    for rank, log in enumerate(logs):
        assert log == [rows.tolist() for rows, in BUILDERS[name]().shard(
            rank, 2, uneven='drop')]
    assert sorted(itertools.chain(*logs[0], *logs[1])) == list(range(N))
