"""Loops of Ray Train, whose workers have a share each."""
import json
import tempfile
from pathlib import Path

import h5py
import numpy
import pytest
import ray
import ray.train
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

from fuel.datasets import H5PYDataset
from fuel.interop.ray import map_batches, to_ray
from fuel.schemes import ShuffledScheme
from fuel.streams import DataStream
from fuel.transformers import ScaleAndShift

NUM_EXAMPLES = 90
pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def path(tmp_path):
    """Return the path of an HDF5 file."""
    path = tmp_path / 'train.hdf5'
    with h5py.File(path, 'w') as file:
        file['x'] = numpy.arange(NUM_EXAMPLES)
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'x': (0, NUM_EXAMPLES)}})
    return path


def fit(loop, config, folder, **kwargs):
    """Run a loop in two workers."""
    DataParallelTrainer(
        loop, train_loop_config=config,
        scaling_config=ray.train.ScalingConfig(num_workers=2),
        run_config=ray.train.RunConfig(
            storage_path=str(folder), failure_config=(
                ray.train.FailureConfig(max_failures=1))), **kwargs).fit()


def write(folder, name, value):
    """Write a value into a file that nobody wrote before."""
    with open(Path(folder) / name, 'x') as file:
        json.dump(value, file)


def read(folder, pattern):
    """Return the values of the files of some names, by name."""
    return {path.name: json.loads(path.read_text())
            for path in sorted(Path(folder).glob(pattern))}


def train_and_resume(config):
    """Read the share of this worker; the second one fails once."""
    context = ray.train.get_context()
    stream = DataStream(
        H5PYDataset(config['path'], ('train',)), shard='auto',
        iteration_scheme=ShuffledScheme(NUM_EXAMPLES, 5))
    checkpoint = ray.train.get_checkpoint()
    life = 0 if checkpoint is None else 1
    if checkpoint is not None:
        with checkpoint.as_directory() as folder:
            stream.load_state_dict(json.loads(
                (Path(folder) / 'state.json').read_text()))
    for number, (batch,) in enumerate(stream.get_epoch_iterator()):
        if number == 3 and not life and context.get_world_rank() == 1:
            raise RuntimeError('this worker fails')
        write(config['folder'],
              f'batch-{life}-{context.get_world_rank()}-{number}',
              batch.tolist())
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / 'state.json').write_text(
                json.dumps(stream.state_dict()))
            # All workers are here before any goes on.
            ray.train.report(
                {}, checkpoint=ray.train.Checkpoint.from_directory(folder)
                if context.get_world_rank() == 0 else None)


def test_each_worker_has_its_share_and_goes_on(path, tmp_path):
    """A stream with shard='auto' continues after a failure as well."""
    fit(train_and_resume, {'path': str(path), 'folder': str(tmp_path)},
        tmp_path / 'runs')
    before = read(tmp_path, 'batch-0-*')
    after = read(tmp_path, 'batch-1-*')
    # Of three batches the state was saved; who was first may have read on.
    kept = [batch for name, batch in before.items()
            if int(name.rpartition('-')[2]) < 3]
    assert 6 == len(kept)
    assert 12 == len(after)
    assert list(range(NUM_EXAMPLES)) == sorted(
        sum(kept + list(after.values()), []))


def train_on_shard_of_ray(config):
    """Read what Ray Data gives this worker."""
    rows = []
    for batch in ray.train.get_dataset_shard('train').iter_batches(
            batch_size=8):
        rows += batch['x'].tolist()
    write(config['folder'],
          f'rows-{ray.train.get_context().get_world_rank()}', rows)


def test_workers_share_what_stages_make_in_ray_data(path, tmp_path):
    """Ray's own shards divide them."""
    dataset = map_batches(
        to_ray(H5PYDataset(path, ('train',)), rows_per_task=10),
        lambda stream: ScaleAndShift(stream, 2, 1))
    fit(train_on_shard_of_ray, {'folder': str(tmp_path)}, tmp_path / 'runs',
        datasets={'train': dataset})
    rows = read(tmp_path, 'rows-*')
    assert 2 == len(rows)
    assert [2 * number + 1 for number in range(NUM_EXAMPLES)] == sorted(
        sum(rows.values(), []))
