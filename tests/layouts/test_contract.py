"""Data sets of each layout keep what all data sets promise."""
import json
from functools import partial
from pathlib import Path

import numpy
import pytest
from support.layouts import MINIATURES
from support.layouts.comparing import as_lists, stream_over
from support.processes import start_python

import fuel
from fuel.datasets import (
    HDF5Dataset, PerRun, Runs, Windows, random_split)
from fuel.exceptions import StateMismatchError
from fuel.schemes import SequentialScheme, ShuffledScheme
from fuel.server import Server
from fuel.streams import DataStream, ServerDataStream
from fuel.testing import check_dataset
from fuel.testing.datasets import DATASET_PROMISES
from fuel.transformers import MultiProcessing

TESTS = Path(__file__).parents[1]
EACH = pytest.mark.parametrize('miniature', MINIATURES, ids=str)
RESUME = """
import json, sys
sys.path.append(sys.argv[1])
import fuel
from support.layouts.comparing import as_lists, stream_over
for line in sys.stdin:
    files, state = json.loads(line)
    dataset = fuel.load(files)
    stream = stream_over(dataset)
    stream.load_state_dict(state)
    batches = [as_lists(batch) for batch in stream.get_epoch_iterator()]
    dataset.close(None)
    print(json.dumps(batches), flush=True)
"""


@pytest.fixture
def written(miniature, tmp_path):
    """Return the files of a layout."""
    return miniature.write(tmp_path, numpy.random.default_rng(2))


@EACH
def test_promises_are_kept(written):
    """The data set keeps the promises that fuel.testing checks."""
    keep_promises(written, [name for name in DATASET_PROMISES
                            if name != 'streams'])


@pytest.mark.full
@EACH
def test_promises_of_streams_are_kept(written):
    """Streams that read it keep the promises that fuel.testing checks."""
    keep_promises(written, ['streams'])


def keep_promises(written, promises):
    """Check promises with a few large batches."""
    count = fuel.load(written.files).num_examples
    check_dataset(partial(fuel.load, written.files), another_process=False,
                  promises=promises, schemes=[
                      ShuffledScheme(count, count // 3 + 1, seed=1)])


@EACH
def test_shuffled_batches_have_the_rows_of_the_file(written):
    """The order is that of the scheme."""
    dataset = fuel.load(written.files)
    order = [numpy.array(request) for request in ShuffledScheme(
        dataset.num_examples, 4, seed=3).get_request_iterator()]
    batches = list(stream_over(dataset).get_epoch_iterator())
    assert len(order) == len(batches)
    for rows, batch in zip(order, batches, strict=True):
        for source, found in zip(dataset.sources, batch, strict=True):
            expected = written.values[source]
            expected = [expected[row] for row in rows] if isinstance(
                expected, list) else expected[rows]
            assert as_lists(expected) == as_lists(found)
    dataset.close(None)


@pytest.fixture(scope='module')
def resume():
    """Return a function that continues an epoch in another process: of the
    files, from the state."""
    process = start_python('-c', RESUME, str(TESTS), stdin=True)

    def continued(files, state):
        process.stdin.write(json.dumps([files, state]).encode() + b'\n')
        process.stdin.flush()
        line = process.stdout.readline()
        assert line, process.stderr.read()
        return json.loads(line)

    yield continued
    process.communicate()
    assert 0 == process.returncode


@EACH
def test_epochs_resume_in_another_process(written, resume):
    """They resume exactly in their middle; the shares of two ranks are the
    epoch."""
    dataset = fuel.load(written.files)
    stream = stream_over(dataset)
    whole = [as_lists(batch) for batch in stream.get_epoch_iterator()]
    stream = stream_over(dataset)
    epoch = stream.get_epoch_iterator()
    first = [as_lists(next(epoch)) for _ in range(2)]
    assert whole == first + resume(written.files, stream.state_dict())
    shares = [[as_lists(batch) for batch in stream_over(
        dataset).shard(rank, 2).get_epoch_iterator()] for rank in range(2)]
    assert whole == [batch for pair in zip(*shares, strict=False)
                     for batch in pair] + shares[0][len(shares[1]):]
    dataset.close(None)


@EACH
def test_workers_and_a_server_give_the_same_batches(written):
    """The batches come through other processes."""
    dataset = fuel.load(written.files)
    whole = [as_lists(batch)
             for batch in stream_over(dataset).get_epoch_iterator()]
    workers = MultiProcessing(stream_over(dataset), num_workers=2)
    assert whole == [as_lists(batch)
                     for batch in workers.get_epoch_iterator()]
    with (Server(stream_over(dataset), port=0) as server,
          ServerDataStream(dataset.sources, port=server.port) as client):
        assert whole == [as_lists(batch)
                         for batch in client.get_epoch_iterator()]
    dataset.close(None)


WITH_RUNS = pytest.mark.parametrize('miniature', [
    one for one in MINIATURES if one.layout in (
        'robomimic', 'aloha', 'minari', 'd4rl', 'stable_worldmodel',
        'the_well', 'makani', 'netcdf', 'molecules')], ids=str)


def rows_of_windows(dataset):
    """Return the rows of all windows of two rows, by their numbers in the
    files."""
    windows = Windows(dataset, 2)
    return {row + step for row in (windows.provenance(example).row
                                   for example in range(len(windows)))
            for step in range(2)}


@WITH_RUNS
def test_windows_of_splits_share_no_row(written):
    """Splits by rows, parts and whole runs share no values either."""
    whole = fuel.load(written.files)
    count = whole.num_examples
    half = count // 2
    rows = numpy.random.default_rng(3).permutation(count)
    for given in ({'a': (0, half), 'b': (half, count)},
                  {'a': sorted(rows[:half].tolist()),
                   'b': sorted(rows[half:].tolist())}):
        parts = [fuel.load(written.files, name, splits=given)
                 for name in ('a', 'b')]
        found = [rows_of_windows(part) if len(Windows(part, 2)) else set()
                 for part in parts]
        assert not found[0] & found[1]
        for part, chosen in zip(parts, given.values(), strict=True):
            wanted = set(range(*chosen) if isinstance(chosen, tuple)
                         else chosen)
            assert rows_of_windows(part) <= wanted
    for name, wanted in written.splits.items():
        part = fuel.load(written.files, name)
        # Those in folders have files of their own.
        first = 0 if part.split_names else min(wanted)
        assert {row + first for row in rows_of_windows(part)} <= {*wanted}
        for source, found in zip(part.sources, part.get_data(
                None, slice(0, len(part))), strict=True):
            assert as_lists(written.values[source][wanted]) == as_lists(found)
    if len(whole.runs) > 2:
        shares = random_split(whole, {'a': .5, 'b': .5}, groups='runs')
        found = [fuel.load(written.files, name, splits=shares)
                 for name in ('a', 'b')]
        assert count == sum(len(part) for part in found)
        assert not rows_of_windows(found[0]) & rows_of_windows(found[1])
    whole.close(None)


@WITH_RUNS
def test_states_of_other_columns_splits_or_runs_are_refused(written):
    """A resumed training does not read something else."""
    dataset = fuel.load(written.files)
    count = dataset.num_examples
    state = over(dataset).state_dict()
    _, *others = dataset.sources
    columns = dataset.columns
    changed = [
        fuel.load(written.files, 'a', splits={'a': (0, count - 1)}),
        fuel.load(written.files, 'a', splits={
            'a': [*range(1, count), 0]})]
    if others:
        changed.append(fuel.load(written.files, sources=others))
        first, second = dataset.sources[:2]
        changed.append(HDF5Dataset(
            dataset.files, {**columns, first: columns[second]},
            parts=dataset.parts, sources=dataset.sources))
    if len(dataset.runs) > 2 and not any(
            isinstance(column, PerRun) for column in columns.values()):
        changed.append(HDF5Dataset(
            dataset.files, columns, parts=dataset.parts, runs='all',
            sources=dataset.sources))
    for other in changed:
        with pytest.raises(StateMismatchError):
            over(other).load_state_dict(state)
    windows = over(Windows(dataset, 2)).state_dict()
    for other in (Windows(dataset, 3), Windows(dataset, 2, stride=2),
                  Windows(changed[0], 2), Runs(dataset)):
        with pytest.raises(StateMismatchError):
            over(other).load_state_dict(windows)
    over(Windows(fuel.load(written.files), 2)).load_state_dict(windows)
    over(fuel.load(written.files)).load_state_dict(state)


def over(dataset):
    """Return a stream of batches in order, whatever their number."""
    return DataStream(dataset, iteration_scheme=SequentialScheme(
        list(range(7)), 2))
