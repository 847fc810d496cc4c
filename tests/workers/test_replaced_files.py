"""Files that are replaced between the epochs of workers."""
import os

import h5py
import numpy
import pytest

import fuel
from fuel.streams import DataStream
from fuel.transformers import MultiProcessing


def write(path, start):
    """Write the numbers from `start` on to a file, in place of another."""
    other = path.with_name(f'other{path.suffix}')
    numbers = numpy.arange(start, start + 8)
    if path.suffix == '.npy':
        numpy.save(other, numbers)
    elif path.suffix == '.csv':
        other.write_text('\n'.join(['x', *map(str, numbers)]))
    else:
        with h5py.File(other, 'w') as file:
            file['x'] = numbers
    os.replace(other, path)


@pytest.mark.parametrize('ending', ['npy', 'csv', 'h5'])
@pytest.mark.parametrize('num_workers, ranks', [(2, 1), (3, 1), (2, 2)])
def test_each_worker_opens_a_replaced_file(
        ending, num_workers, ranks, tmp_path):
    """A worker that skips the first batches, which others make, does too."""
    path = tmp_path / f'x.{ending}'
    write(path, 0)
    stream = MultiProcessing(DataStream(
        fuel.load(path), batch_size=1, shuffle=True, seed=1).shard(0, ranks),
        num_workers=num_workers)
    for start in 0, 100, 200:
        write(path, start)
        found = {int(batch[0][0]) for batch in stream}
        assert len(found) == 8 // ranks
        assert found <= set(range(start, start + 8))


def test_epoch_from_a_step_opens_a_replaced_file(tmp_path):
    """Nothing was read of it."""
    write(tmp_path / 'x.npy', 0)
    stream = DataStream(fuel.load(tmp_path / 'x.npy'), batch_size=2)
    list(stream)
    write(tmp_path / 'x.npy', 100)
    assert [[104, 105], [106, 107]] == [
        batch.tolist() for batch, in stream.iterate_from(step=6)]
