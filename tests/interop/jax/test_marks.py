"""Marks and logs of examples in arrays of JAX and in loaders of Grain."""
import itertools
import json
from pathlib import Path

import grain
import numpy
import pytest
from support import processes
from support.marked_pipelines import (
    BUILDERS, N, SPLIT_BY, check_marks, logged)

from fuel.export import log_examples
from fuel.interop.jax import as_iter_dataset, to_jax
from fuel.transformers import MarkExamples

PROGRAM = Path(processes.__file__).with_name('marked_jax_process.py')


@pytest.mark.parametrize('name', BUILDERS)
def test_arrays_have_the_marks_of_their_rows(name):
    """A batch is copied in advance; its marks are not those of the next."""
    expected = check_marks(MarkExamples(BUILDERS[name]()))
    for stream in (to_jax(MarkExamples(BUILDERS[name]())),
                   MarkExamples(to_jax(BUILDERS[name]()))):
        assert expected == check_marks(stream)
        reading = iter(stream)
        check_marks(itertools.islice(reading, 3))
        state = json.loads(json.dumps(stream.state_dict()))
        left = check_marks(reading)
        stream.load_state_dict(state)
        assert left == check_marks(stream)


@pytest.mark.parametrize('name', BUILDERS)
@pytest.mark.parametrize('above', [False, True])
def test_log_has_what_was_delivered_and_goes_on(name, above, tmp_path):
    """It is cut back to the batch that was not copied in advance."""
    def build(rank, path):
        stream = BUILDERS[name]()
        return (log_examples(to_jax(stream), path) if above else to_jax(
            log_examples(stream, path))).shard(rank, 2, uneven='drop')

    for rank in range(2):
        whole = [rows.tolist() for rows, in build(rank, tmp_path / 'whole')]
        stream = build(rank, tmp_path / 'log')
        list(itertools.islice(stream, 2))
        state = stream.state_dict()
        stream = build(rank, tmp_path / 'log')
        stream.load_state_dict(state)
        assert whole[2:] == [rows.tolist() for rows, in stream]
        assert whole == logged(tmp_path / f'log-{rank}')


@pytest.mark.parametrize('workers', [0, 1, 2])
def test_workers_of_grain_have_marks_and_logs(workers, tmp_path):
    """Each of several is a rank, with a log of its own."""
    def build():
        dataset = as_iter_dataset(log_examples(
            MarkExamples(BUILDERS['batches']()), tmp_path / 'log'))
        options = grain.multiprocessing.MultiprocessingOptions(workers)
        return dataset.mp_prefetch(options) if workers else dataset

    reading = iter(build())
    found = check_marks(itertools.islice(reading, 3))
    state = reading.get_state()
    left = check_marks(reading)
    again = iter(build())
    again.set_state(state)
    assert left == check_marks(again)
    assert sorted(itertools.chain(*found, *left)) == list(range(N))
    logs = [logged(path) for path in sorted(tmp_path.glob('log*'))]
    assert max(workers, 1) == len(logs)
    assert found + left == [
        rows for turn in itertools.zip_longest(*logs) for rows in turn if rows]


@pytest.mark.timeout(300)
@pytest.mark.parametrize('name', BUILDERS)
def test_processes_that_are_ended_go_on_with_marks_and_logs(name, tmp_path):
    """Each has the marks of its part of a global array, and logs them."""
    for most, status in ((2, 3), (5, 3), (99, 0)):
        address = processes.free_address()
        ended = processes.end_together([processes.start_python(
            str(PROGRAM), address, '2', str(number), str(tmp_path), name,
            str(most), JAX_PLATFORMS='cpu',
            XLA_FLAGS='--xla_force_host_platform_device_count=2')
            for number in range(2)])
        assert [status] * 2 == [one[0] for one in ended], ended
    found = []
    for number in range(2):
        mine = []
        for line in (tmp_path / f'rows-{number}').read_text().splitlines():
            rows, marks = map(json.loads(line).__getitem__, (0, 1))
            mine.append(check_marks([tuple(
                numpy.concatenate(parts) for parts in (rows, marks))])[0])
        assert mine == logged(tmp_path / f'log-{number}')
        assert mine == [rows.tolist() for rows, in BUILDERS[name]().shard(
            number, 2, SPLIT_BY[name], 'drop')]
        found += itertools.chain(*mine)
    assert sorted(found) == list(range(N))
