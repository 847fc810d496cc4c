"""The log of examples has a line for each item, also after crashes."""
import json
import pickle
from itertools import islice

import numpy
import pytest
from support import processes

from fuel.datasets import IndexableDataset, IterableDataset
from fuel.exceptions import StateMismatchError
from fuel.export import log_examples
from fuel.schemes import ConstantScheme
from fuel.streams import DataStream
from fuel.transformers import (
    Batch, Cache, Filter, Mapping, MarkExamples, Mix, MultiProcessing,
    MultiThreading, Transformer)
from fuel.transformers.image import MixUp
from fuel.transformers.sequences import Pack
from fuel.transformers.shuffling import ShuffleBuffer

N = 14


def numbers(number=0):
    """Return a stream of examples that hold their data set and row."""
    return DataStream(IndexableDataset({'x': numpy.stack(
        [numpy.full(N, number), numpy.arange(N)], axis=1)}),
        shuffle=True, seed=number)


def is_kept(data):
    """Return whether an example is kept."""
    return data[0][1] % 3 > 0


def mixed():
    """Return a stream whose position is in all of its stages."""
    return Cache(Batch(ShuffleBuffer(Filter(Mix(
        (numbers(), numbers(1)), stop='last'), is_kept), 4),
        batch_size=3), ConstantScheme(2))


def lines_of(path):
    """Return the lines of a log."""
    return list(map(json.loads, path.read_text().splitlines()))


def test_each_item_has_a_line_with_what_its_rows_hold(tmp_path):
    """The data are as they are without the log."""
    path = tmp_path / 'log.jsonl'
    stream, plain = log_examples(mixed(), path), mixed()
    assert stream.sources == plain.sources
    expected = []
    for epoch in range(2):
        for item, ((rows,), (same,)) in enumerate(
                zip(stream, plain, strict=True)):
            assert rows.tolist() == same.tolist()
            expected.append({'epoch': epoch, 'item': item,
                             'examples': rows.tolist()})
    assert expected == lines_of(path)


def test_a_restored_stream_cuts_the_log_back(tmp_path):
    """Wherever a state was saved, and however far the run went on."""
    whole = tmp_path / 'whole'
    stream = log_examples(mixed(), whole)
    lengths = [len(list(stream)) for _ in range(3)]
    for epoch in range(2):
        for step in range(lengths[epoch] + 2):
            path = tmp_path / f'{epoch}-{step}.jsonl'
            stream = log_examples(mixed(), path)
            for _ in range(epoch):
                list(stream)
            iterator = stream.get_epoch_iterator()
            list(islice(iterator, step))
            state = json.loads(json.dumps(stream.state_dict()))
            copy = pickle.dumps(iterator)
            list(iterator)
            list(stream)
            # As if the process had been killed while it wrote.
            with open(path, 'a') as file:
                file.write('{"epoch": 7')
            restored = log_examples(mixed(), path)
            restored.load_state_dict(state)
            for _ in range(epoch + (step > lengths[epoch]), 3):
                list(restored)
            assert whole.read_bytes() == path.read_bytes()
            if step < lengths[epoch]:
                list(pickle.loads(copy))
                assert lines_of(whole)[:sum(lengths[:epoch + 1])] == (
                    lines_of(path))


def test_each_rank_has_a_file(tmp_path):
    """A state of one rank is taken up by the others."""
    for by, uneven in (('batch', 'drop'), ('example', 'pad')):
        def build(rank, name, by=by, uneven=uneven):
            return log_examples(
                Batch(numbers(), batch_size=4), tmp_path / name).shard(
                    rank, 2, by, uneven)

        for rank in range(2):
            stream = build(rank, by)
            rows = [data.tolist() for data, in stream]
            assert rows == [line['examples'] for line in lines_of(
                tmp_path / f'{by}-{rank}')]
            stream = build(rank, f'{by} again')
            next(iter(stream))
            if not rank:
                state = stream.state_dict()
            next(iter(stream))
        for rank in range(2):
            stream = build(rank, f'{by} again')
            stream.load_state_dict(state)
            list(stream)
            assert (tmp_path / f'{by}-{rank}').read_bytes() == (
                tmp_path / f'{by} again-{rank}').read_bytes()


def test_lines_of_ranks_can_be_joined(tmp_path):
    """They name the rank; a log of an older version is continued."""
    def build(rank, ranks=4):
        return log_examples(DataStream(
            IndexableDataset({'x': numpy.arange(N)}), batch_size=2),
            tmp_path / 'log').shard(rank, ranks, uneven='uneven')

    for rank in range(4):
        stream, path = build(rank), tmp_path / f'log-{rank}'
        iterator = iter(stream)
        next(iterator)
        state = stream.state_dict()
        list(iterator)
        path.write_text(path.read_text().replace(f'"rank": {rank}, ', ''))
        assert 'rank' not in lines_of(path)[0]
        resumed = build(rank)
        resumed.load_state_dict(state)
        list(resumed)
        list(resumed)
    joined = [line for rank in range(4)
              for line in lines_of(tmp_path / f'log-{rank}')]
    assert 4 == sum('rank' not in line for line in joined)
    assert [[[0, row] for row in range(first, first + 2)]
            for first in range(0, N, 2)] == [
        line['examples'] for line in sorted(
            (line for line in joined if line['epoch']),
            key=lambda line: (line['item'], line['rank']))]


def heads_of(path):
    """Return the numbers of the epochs and items of a log's lines."""
    return [(line['epoch'], line['item']) for line in lines_of(path)]


def test_two_epochs_at_once_have_their_own_numbers(tmp_path):
    """The state of the first restores its number."""
    path = tmp_path / 'log'
    stream = log_examples(numbers(), path)
    first, second = [stream.get_epoch_iterator() for _ in range(2)]
    for iterator in (first, second, first, second):
        next(iterator)
    assert [(0, 0), (1, 0), (0, 1), (1, 1)] == heads_of(path)
    state = first.state_dict()
    next(second)
    restored = log_examples(numbers(), path)
    restored.load_state_dict(state)
    list(restored)
    assert [(0, 0), (1, 0), (0, 1), (1, 1), *[
        (0, item) for item in range(2, N)]] == heads_of(path)
    next(iter(restored))
    assert (1, 0) == heads_of(path)[-1]


@pytest.mark.parametrize('saver', [0, 2])
def test_ranks_with_fewer_items_take_up_a_state(saver, tmp_path):
    """Their files have other numbers of lines than that of its rank."""
    def build(rank, name):
        return log_examples(Batch(numbers(), batch_size=2), tmp_path / (
            name)).shard(rank, 3)

    streams = [build(rank, 'whole') for rank in range(3)]
    assert [3, 2, 2] == [len(list(stream)) for stream in streams]
    for stream in streams:
        list(stream)
    for stop in range(3):
        name = f'again {stop}'
        streams = [build(rank, name) for rank in range(3)]
        for stream in streams:
            list(stream if stop == 2 else islice(stream, stop + 1))
        state = streams[saver].state_dict()
        for stream in streams:
            list(islice(stream, 2))
        for rank in range(3):
            stream = build(rank, name)
            stream.load_state_dict(state)
            for _ in range(1 + (stop < 2)):
                list(stream)
            assert (tmp_path / f'whole-{rank}').read_bytes() == (
                tmp_path / f'{name}-{rank}').read_bytes()


def test_other_numbers_of_ranks_take_up_a_log(tmp_path):
    """Time and again, without gaps or doubles; the numbers rise, and the files
    of ranks that are no more are cut, too."""
    def build(rank, ranks):
        return log_examples(Batch(numbers(), batch_size=1), tmp_path / (
            'log')).shard(rank, ranks)

    state = build(0, 2).state_dict()
    for ranks in 2, 4, 4, 3:
        # The second time is as if the first had been killed.
        for _ in range(2):
            streams = [build(rank, ranks) for rank in range(ranks)]
            for stream in streams:
                stream.load_state_dict(state)
            iterators = list(map(iter, streams))
            list(map(next, iterators))
            saved = streams[-1].state_dict()
            for iterator in iterators:
                next(iterator, None)
        state = saved
    stream = build(0, 1)
    stream.load_state_dict(state)
    list(stream)
    logs = [tmp_path / f'log-{rank}' for rank in range(4)]
    assert [[0, row] for row in range(N)] == sorted([
        row for log in logs for line in lines_of(log)
        for row in line['examples']])
    for log in logs:
        assert heads_of(log) == sorted(set(heads_of(log)))


def test_files_of_ranks_that_are_gone_are_cut(tmp_path):
    """The files of a run that saved nothing are cut, too; other logs are
    kept."""
    def build(rank, ranks, name='log.jsonl'):
        stream = log_examples(Batch(numbers(), batch_size=1), tmp_path / name)
        return stream.shard(rank, ranks) if ranks else stream

    def run(ranks, state, most):
        streams = [build(rank, ranks) for rank in range(ranks or 1)]
        for stream in streams:
            if state is not None:
                stream.load_state_dict(state)
        for stream in streams:
            list(islice(stream, most))
        return streams[0].state_dict()

    kept = tmp_path / 'log-9.jsonl'
    list(build(0, 0, kept.name))
    before = kept.read_bytes()
    # Two items of each of two ranks, then a run of three that is lost.
    for first, lost in ((2, 3), (3, 1), (2, 0), (1, 4)):
        for path in tmp_path.glob('log*'):
            if path != kept:
                path.unlink()
        state = run(first, None, 2)
        run(lost, state, 2)
        run(first, state, N)
        found = [row for path in tmp_path.glob('log*') if path != kept
                 for line in lines_of(path) for row in line['examples']]
        assert [[0, row] for row in range(N)] == sorted(found)
        assert before == kept.read_bytes()


def test_file_of_a_rank_that_gets_none_of_the_rest_is_cut(tmp_path):
    """A killed run had written what another rank gets now."""
    def run(state, ranks, most=None):
        for rank in range(ranks):
            stream = log_examples(DataStream(IndexableDataset(
                numpy.arange(13)), batch_size=4), tmp_path / 'log').shard(
                    rank, ranks, by='example')
            if state is not None:
                stream.load_state_dict(state)
            list(islice(stream, most))
            list(stream if most is None else ())
        return stream.state_dict()

    state = run(None, 1, 3)
    run(state, 1, 1)
    run(state, 2)
    found = [row for rank in range(2)
             for line in lines_of(tmp_path / f'log-{rank}')
             for _, row in line['examples'] if line['epoch'] == 0]
    assert list(range(13)) == sorted(found)


@pytest.mark.parametrize(('size', 'counts'), [(2, [3, 2]), (N, [1, 0])])
def test_a_rank_that_has_not_written_knows_no_number(size, counts, tmp_path):
    """Its state has not that of the rank whose state it has taken up."""
    def build(rank):
        return log_examples(Batch(numbers(), batch_size=size), tmp_path / (
            'log')).shard(rank, 3)

    streams = [build(rank) for rank in (0, 2)]
    assert counts == [len(list(stream)) for stream in streams]
    state = streams[0].state_dict()
    list(streams[0])
    stream = build(2)
    stream.load_state_dict(state)
    iterator = stream.get_epoch_iterator()
    if not counts[1]:
        list(iterator)
    state = stream.state_dict()
    for rank, count in zip((2, 0), counts[::-1], strict=True):
        stream = build(rank)
        stream.load_state_dict(state)
        list(stream)
        assert not count or [(epoch, item) for epoch in range(
            2 + (not counts[1])) for item in range(count)] == heads_of(
                tmp_path / f'log-{rank}')


def test_log_that_was_begun_behind_a_state_is_cut_to_nothing(tmp_path):
    """As if a state had been taken to another machine."""
    path = tmp_path / 'log'
    stream = log_examples(numbers(), path)
    list(islice(stream, 3))
    state = stream.state_dict()
    path.unlink()
    for _ in range(2):
        restored = log_examples(numbers(), path)
        restored.load_state_dict(state)
        iterator = iter(restored)
        list(islice(iterator, 8))
        later = restored.state_dict()
        assert [(0, item) for item in range(3, 11)] == heads_of(path)
    next(iterator)
    restored = log_examples(numbers(), path)
    restored.load_state_dict(later)
    list(restored)
    assert [(0, item) for item in range(3, N)] == heads_of(path)


def test_steps_that_are_left_out_have_no_line(tmp_path):
    """The others keep their numbers, and nothing else is read."""
    path, read = tmp_path / 'log', []

    def note(data):
        read.append(data[0][:, 1].tolist())
        return data

    def build():
        return log_examples(Mapping(DataStream(
            IndexableDataset({'x': numpy.stack(
                [numpy.zeros(N, int), numpy.arange(N)], axis=1)}),
            batch_size=2), note), path)

    stream = build()
    next(iter(stream))
    restored = build()
    restored.load_state_dict(stream.state_dict(), leave_out=[2, 3, 5])
    list(restored)
    lines = lines_of(path)
    assert [0, 1, 4, 6] == [line['item'] for line in lines]
    assert read == [[row for _, row in line['examples']] for line in lines]


def test_several_workers_cannot_write_one_log(tmp_path):
    """Each would have some of the lines."""
    stream = log_examples(DataStream(IndexableDataset(
        numpy.arange(N)), batch_size=2), tmp_path / 'log')
    with pytest.raises(ValueError, match='put it behind MultiProcessing'):
        MultiProcessing(stream, num_workers=2)


def test_a_log_is_not_overwritten(tmp_path):
    """Only a state says that what is there belongs to this run."""
    path = tmp_path / 'log'
    stream = log_examples(numbers(), path)
    next(iter(stream))
    first = path.read_bytes()
    with pytest.raises(FileExistsError, match='restore the state'):
        next(iter(log_examples(numbers(), path)))
    list(stream)
    state = stream.state_dict()
    path.write_bytes(first)
    restored = log_examples(numbers(), path)
    restored.load_state_dict(state)
    with pytest.raises(ValueError, match='has 1 lines, but'):
        next(iter(restored))
    assert first == path.read_bytes()
    with pytest.raises(StateMismatchError):
        log_examples(numbers(), path).load_state_dict(
            {**state, 'leftover': None, 'epoch': 'nothing'})


def fail(data):
    """Raise an error for some examples."""
    if data[0][1] % 5 == 2:
        raise ValueError
    return data


def test_examples_that_are_skipped_are_in_no_line(tmp_path):
    """Batches of single examples are full without them, also after a
    resume."""
    def build(name):
        return log_examples(Batch(Mapping(DataStream(IndexableDataset(
            {'x': numpy.stack([numpy.zeros(N, int), numpy.arange(N)], 1)}),
            shuffle=True, seed=3, on_error='skip'), fail), batch_size=3),
            tmp_path / name)

    whole = [rows.tolist() for rows, in build('whole')]
    assert [len(rows) for rows in whole] == [3, 3, 3, 2]
    assert whole == [line['examples'] for line in lines_of(tmp_path / 'whole')]
    for stop in range(5):
        stream = build(f'{stop}')
        iterator = stream.get_epoch_iterator()
        list(islice(iterator, stop))
        state = stream.state_dict()
        list(iterator)
        restored = build(f'{stop}')
        restored.load_state_dict(state)
        assert whole[stop:] == [rows.tolist() for rows, in restored]
        assert lines_of(tmp_path / 'whole') == lines_of(tmp_path / f'{stop}')


class Sums(Transformer):
    """A stage of a user's, which reads two items for each."""

    def __init__(self, data_stream):
        super().__init__(data_stream, True)

    def get_data(self, request=None):
        """Return the sum of two examples."""
        first, second = next(self.child_epoch_iterator), next(
            self.child_epoch_iterator)
        return (first[0] + second[0],)


def test_examples_of_an_item_are_listed_if_rows_are_not_known(tmp_path):
    """The line names the stage."""
    rows = [data[0].tolist() for data in numbers()]
    list(log_examples(Mapping(Batch(numbers(), batch_size=7), tuple),
                      tmp_path / 'mapped'))
    assert [{'epoch': 0, 'item': item, 'of_item': 'Mapping',
             'examples': rows[7 * item:][:7]} for item in range(2)] == (
                 lines_of(tmp_path / 'mapped'))
    list(log_examples(Sums(numbers()), tmp_path / 'sums'))
    assert [{'epoch': 0, 'item': item, 'of_item': 'Sums',
             'examples': rows[2 * item:][:2]} for item in range(7)] == (
                 lines_of(tmp_path / 'sums'))


def test_packed_and_mixed_rows_have_all_their_examples(tmp_path):
    """A list for each packed row, and the partners beside the rows."""
    sequences = DataStream(IterableDataset(
        {'x': [[row] * (1 + row % 3) for row in range(N)]}))
    for tokens, *_ in log_examples(
            Pack(sequences, 4, batch_size=2), tmp_path / 'packed'):
        line = lines_of(tmp_path / 'packed')[-1]['examples']
        assert [sorted(set(row.tolist())) for row in tokens] == [
            sorted({0, *[row for _, row in entry]}) if 0 in tokens[place]
            else sorted({row for _, row in entry})
            for place, entry in enumerate(line)]
    pairs = DataStream(IndexableDataset(
        {'x': numpy.zeros((N, 1), 'float32'), 'y': numpy.arange(N)}),
        batch_size=7)
    mixed_rows = list(MarkExamples(
        MixUp(pairs, N, target_source='y', seed=1), partner='other'))
    list(log_examples(MixUp(pairs, N, target_source='y', seed=1),
                      tmp_path / 'mixed'))
    assert [(marks.tolist(), partners.tolist())
            for *_, marks, partners in mixed_rows] == [
                (line['examples'], line['partners'])
                for line in lines_of(tmp_path / 'mixed')]


def test_workers_and_threads_are_logged_from_outside_and_inside(tmp_path):
    """The lines are those of the items that were delivered."""
    def build():
        return Batch(numbers(), batch_size=4)

    list(log_examples(build(), tmp_path / 'plain'))
    for place, run in enumerate((MultiProcessing, MultiThreading)):
        with log_examples(run(build()), tmp_path / f'{place}') as stream:
            list(stream)
        with run(log_examples(build(), tmp_path / f'in {place}')) as stream:
            list(stream)
        for name in f'{place}', f'in {place}':
            assert (tmp_path / 'plain').read_bytes() == (
                tmp_path / name).read_bytes()


RUN = """
import json, os, sys
import numpy
from fuel.datasets import IndexableDataset
from fuel.export import log_examples
from fuel.streams import DataStream
from fuel.transformers import Batch, Unpack
from fuel.transformers.shuffling import ShuffleBuffer

folder, most = sys.argv[1], int(sys.argv[2])
stream = log_examples(Batch(ShuffleBuffer(DataStream(IndexableDataset(
    numpy.arange(40)), shuffle=True), 5), batch_size=3), folder + '/log')
state = folder + '/state'
if os.path.exists(state):
    with open(state) as file:
        stream.load_state_dict(json.load(file))
for step, batch in enumerate(stream):
    if step % 4 == 3:
        with open(state + '.new', 'w') as file:
            json.dump(stream.state_dict(), file)
        os.replace(state + '.new', state)
    if step == most:
        os._exit(3)
"""


def test_processes_that_end_at_any_step_leave_one_log(tmp_path):
    """It is that of a process which was not ended."""
    status, *_ = processes.run_python('-c', RUN, str(tmp_path), '99')
    assert status == 0
    whole = (tmp_path / 'log').read_bytes()
    for name in 'log', 'state':
        (tmp_path / name).unlink()
    for most in (5, 1, 4, 6, 0, 99):
        processes.run_python('-c', RUN, str(tmp_path), str(most))
    assert whole == (tmp_path / 'log').read_bytes()
