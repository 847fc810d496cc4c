"""The command ``fuel-order``."""
import json
import os
import sys

import numpy
import pytest
from support.tar_files import write_tar

from fuel.bin.fuel_order import main
from fuel.datasets import IndexableDataset
from fuel.schemes import ShuffledScheme
from fuel.streams import DataStream
from fuel.transformers import Mix

MODULE = """
import numpy
from fuel.datasets import IndexableDataset, NPYDataset, Windows
from fuel.schemes import ShuffledScheme
from fuel.streams import DataStream
from fuel.transformers import Filter, Mix

def build_stream():
    return DataStream(IndexableDataset({'y': numpy.arange(10)}),
                      iteration_scheme=ShuffledScheme(10, 3, seed=1))

class Declaring(DataStream):
    order = 'mine'

def build_declaring():
    stream = build_stream()
    return Declaring(stream.dataset, iteration_scheme=stream.iteration_scheme)

def build_endless():
    return Mix([build_stream(), build_stream()], seed=1, stop='forever')

def build_rows():
    return DataStream(NPYDataset('x.npy'), batch_size=2)

def build_windows(step=1):
    windows = Windows(NPYDataset('x.npy'), 3, step=step)
    return DataStream(windows, batch_size=2)

def build_steps():
    return build_windows(2)

def build_named(**kwargs):
    rows = {'x': numpy.arange(5), 'key': list('vwxyz'), **kwargs}
    return DataStream(IndexableDataset(rows), batch_size=2)

def build_numbered():
    return build_named(key=['003', '1', 'x', 'x', '0'])

def build_files(**kwargs):
    import fuel
    return DataStream(fuel.load('pets', **kwargs), batch_size=2)

def build_val():
    return build_files(split='val', sources=['label'])

def build_table():
    return build_files(split='val', sources=['image'])

def build_tar():
    import fuel
    dataset = fuel.load('a.tar', columns={'label': 'cls'})
    return DataStream(dataset, batch_size=2)

def build_filtered():
    return Filter(build_stream(), lambda data: True)
"""


def build_stream():
    """Return the stream of the module."""
    return DataStream(IndexableDataset({'y': numpy.arange(10)}),
                      iteration_scheme=ShuffledScheme(10, 3, seed=1))


@pytest.fixture
def ask(tmp_path, monkeypatch, capsys):
    """Return a function that calls the command in a folder with a module, and
    returns its status, output and errors."""
    (tmp_path / 'ordered.py').write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, 'path', [*sys.path])
    monkeypatch.delitem(sys.modules, 'ordered', raising=False)

    def call(*args, function='build_stream'):
        try:
            status = main([f'ordered:{function}', *map(str, args)])
        except SystemExit as error:
            status = error.code
        return status, *capsys.readouterr()
    return call


def test_answers_are_those_of_the_attribute_order(ask):
    """Steps, items and places are printed."""
    order = build_stream().order
    assert (0, f'{order!r}\n', '') == ask()
    assert (0, f'{order[2]!r}\n', '') == ask('--item', 2)
    assert (0, f'{order[2]!r}\n', '') == ask(
        '--item', 2, function='build_declaring')
    assert (0, f'{order.epoch(3)[1]!r}\n', '') == ask(
        '--item', 1, '--epoch', 3)
    shared = build_stream().shard(0, 2, uneven='uneven').order
    assert (0, f'{shared.step(5, 2)!r}\n', '') == ask(
        '--step', 5, '--ranks', 2, '--accumulate', 2)
    (place,) = order.epoch(1).index(7)
    text = f'epoch 1, item {place.item}, row {place.row}, step'
    assert (0, f'{text} {4 + place.item}\n', '') == ask(
        '--row', 7, '--epoch', 1)
    assert (0, f'{text} {2 + place.item // 3}\n', '') == ask(
        '--row', 7, '--epoch', 1, '--accumulate', 3)
    assert (0, 'it does not come in this epoch\n', '') == ask(
        '--row', order[1].row[0], '--stop', 1)


def test_digests_are_those_of_the_attribute_order(ask):
    """With or without ranks; epochs without an end need a stop."""
    order = build_stream().order
    first, fourth = order.digest(), order.epoch(3).digest()
    assert first != fourth
    assert (0, f'{first}\n', '') == ask('--digest')
    assert (0, f'{fourth}\n', '') == ask('--digest', '--epoch', 3, '--json')
    assert (0, f'{fourth}\n', '') == ask(
        '--digest', '--epoch', 3, '--ranks', 2)
    assert (0, f'{order.digest(0, 4)}\n', '') == ask('--digest', '--stop', 4)
    status, printed, errors = ask('--digest', function='build_endless')
    assert (2, '') == (status, printed)
    assert 'pass stop' in errors
    status, printed, _ = ask('--digest', '--stop', 4, function='build_endless')
    assert 0 == status
    assert printed.strip().isdecimal()


def test_epochs_without_an_end_are_searched_to_an_item(ask):
    """An error asks for the argument."""
    stream = build_stream()
    order = Mix([stream, build_stream()], seed=1, stop='forever').order
    places = order.index(7, 1, 30)
    assert len(places) > 2
    assert (0, ''.join(
        [f'epoch 0, item {place.item}, row {place.row}, '
         f'step {place.item}\n'
         for place in places]), '') == ask(
        '--row', 7, '--dataset', 1, '--stop', 30, function='build_endless')
    assert (0, f'{order[:3]!r}\n', '') == ask(
        '--stop', 3, function='build_endless')
    assert order[:3].row.tolist() == json.loads(ask(
        '--stop', 3, '--json', function='build_endless')[1])['row']
    for question in (('--row', 7, '--dataset', 1), ('--json',)):
        status, out, error = ask(*question, function='build_endless')
        assert (2, '') == (status, out)
        assert 'pass stop' in error


def test_windows_and_files_are_printed(ask, tmp_path):
    """Rows of windows are a range, in steps if they have some."""
    numpy.save(tmp_path / 'x.npy', numpy.arange(9))
    _, out, _ = ask('--item', 1, function='build_windows')
    assert out.splitlines()[1:] == [
        'item  dataset  row  first  stop  file  row_of_part',
        '   1        0    2      2     5     0            2',
        '   1        0    3      3     6     0            3',
        'dataset 0: Windows', 'file 0: x.npy']
    first = 'epoch 0, item 0, row 0: window 0, rows 0 to'
    assert [f'{first} 2, step 0',
            'epoch 0, item 0, row 1: window 1, rows 1 to 3, step 0'] == (
        ask('--windows-with', 1, function='build_windows')[1].splitlines())
    second = 'epoch 0, item 1, row 0: window 2, rows 2 to 6 in steps of 2'
    assert [f'{first} 4 in steps of 2, step 0', f'{second}, step 1'] == ask(
        '--windows-with', 2, function='build_steps')[1].splitlines()
    status, out, _ = ask(
        '--windows-with', 3, '--stop', 1, '--json', function='build_windows')
    assert [{'epoch': 0, 'item': 0, 'row': 1, 'left_out': False, 'window': 1,
             'optimizer_step': 0, 'first': 1, 'stop': 4,
             'step': 1}] == json.loads(out)
    status, _, error = ask('--windows-with', 3)
    assert 2 == status
    assert 'order.index(row)' in error


def test_answers_are_printed_as_json(ask):
    """All rows are."""
    order = build_stream().order
    status, printed, _ = ask('--json')
    assert 0 == status
    assert order[:].row.tolist() == json.loads(printed)['row']
    _, printed, _ = ask('--json', '--row', 7)
    assert [{**place._asdict(), 'optimizer_step': place.item}
            for place in order.index(7)] == json.loads(printed)


def test_state_says_which_epochs_were_left(ask, tmp_path):
    """Without it, each epoch counts with all its items."""
    stream = build_stream()
    for iterator in (iter(stream), iter(stream)):
        next(iterator)
    del iterator
    list(stream)
    (tmp_path / 'state.json').write_text(json.dumps(stream.state_dict()))
    assert (0, f'{stream.order.step(3)!r}\n', '') == ask(
        '--state', 'state.json', '--step', 3)
    assert ask('--step', 3) != ask('--state', 'state.json', '--step', 3)


@pytest.mark.parametrize('uneven', ['drop', 'pad'])
def test_ranks_share_as_the_arguments_say(ask, uneven):
    """Places name the rank."""
    order = build_stream().shard(0, 3, uneven=uneven).order
    assert (0, f'{order.step(1)!r}\n', '') == ask(
        '--ranks', 3, '--uneven', uneven, '--step', 1)
    for row in range(10):
        (place,) = order.index(row)
        rank = order[place.item].rank[place.row]
        step = place.item // 3
        found = '' if rank < 0 else f', step {step}'
        assert (f'epoch 0, item {place.item}, row {place.row}, rank {rank}'
                f'{found}\n' == ask('--row', row, '--ranks', 3,
                                    '--uneven', uneven)[1])


def test_places_name_the_file(ask, tmp_path):
    """A data set in files has one for each row."""
    numpy.save(tmp_path / 'x.npy', numpy.arange(9))
    assert 'epoch 0, item 2, row 1, file x.npy, step 2\n' == ask(
        '--row', 5, function='build_rows')[1]


def test_row_may_be_named_by_its_key(ask):
    """A text that is the number of a row is this number."""
    first = 'epoch 0, item 0, row 0, step 0\n'
    assert (0, first, '') == ask('--row', 'v', function='build_named')
    assert (0, first, '') == ask('--row', '0', function='build_named')
    assert (0, first, '') == ask('--row', '003', function='build_numbered')
    assert (0, 'epoch 0, item 0, row 1, step 0\n', '') == ask(
        '--row', '1', function='build_numbered')
    both = [f'epoch 0, item 1, row {row}, step 1\n' for row in range(2)]
    assert (0, ''.join(both), '') == ask(
        '--row', 'x', function='build_numbered')


def test_row_may_be_named_by_the_path_of_its_file(ask, tmp_path):
    """Of a split too, and if the source is not in use."""
    for split in 'train', 'val':
        for name in 'a/1', 'b/2', 'b/3':
            path = tmp_path / 'pets' / split / f'{name}.png'
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b'x')
    file = os.path.join('pets', 'val/b/3.png')
    assert (0, f'epoch 0, item 1, row 0, file {file}, step 1\n', '') == ask(
        '--row', 'val/b/3.png', function='build_val')
    status, printed, _ = ask(
        '--row', 'val/b/3.png', '--json', function='build_val')
    assert (0, [{'epoch': 0, 'item': 1, 'row': 0, 'left_out': False,
                 'optimizer_step': 1, 'file': file}]) == (
                     status, json.loads(printed))
    status, _, error = ask('--row', 'train/b/3.png', function='build_val')
    assert 2 == status
    assert ("data set 0 (FilesDataset) has 3 rows, and the path of none is "
            "'train/b/3.png'; that of row 0 is 'val/a/1.png'") in error


def test_row_may_be_named_where_names_are_not_a_source(ask, tmp_path):
    """The keys of an archive, and the paths of files that a table names."""
    write_tar(tmp_path / 'a.tar', [
        (f'x/{number:04}.cls', b'7') for number in range(4)])
    status, printed, _ = ask('--row', 'x/0003', function='build_tar')
    assert (0, 'epoch 0, item 1, row 1, file a.tar, step 1\n') == (
        status, printed)
    for split in 'train', 'val':
        folder = tmp_path / 'pets' / split
        folder.mkdir(parents=True)
        for number in range(3):
            (folder / f'{number}.png').write_bytes(b'x')
        (folder / 'metadata.csv').write_text('file_name\n2.png\n1.png\n')
    for path, row in ('val/2.png', 0), ('val/1.png', 1):
        status, printed, _ = ask('--row', path, function='build_table')
        assert 0 == status
        assert printed.startswith(f'epoch 0, item 0, row {row}, file ')
    assert "path of none is 'val/0.png'" in ask(
        '--row', 'val/0.png', function='build_table')[2]


@pytest.mark.parametrize('row, text', [
    ('10', 'has 10 rows, numbered from 0: there is no row 10'),
    ('-1', 'there is no row -1'),
    ('x', "got 'x': data set 0 (IndexableDataset) has no source 'key' or ")])
def test_row_that_is_not_there_is_named(ask, row, text):
    """The error says how many rows there are."""
    status, out, error = ask(f'--row={row}')
    assert (2, '') == (status, out)
    assert text in error


def test_json_has_the_rank_of_a_row(ask):
    """As the text has it."""
    _, printed, _ = ask('--row', 7, '--ranks', 3, '--json')
    (place,) = build_stream().shard(0, 3).order.index(7)
    assert place.item == json.loads(printed)[0]['rank']


def test_states_in_a_checkpoint_are_named(ask, tmp_path):
    """At any depth; fields of lists are numbers."""
    stream = build_stream()
    state = stream.state_dict()
    (tmp_path / 'ck.json').write_text(json.dumps(
        {'format': 1, 'run': {'loaders': [state, 3]}, 'other': state}))
    (tmp_path / 'many.json').write_text(json.dumps([state] * 5))
    for name, text in (
            ('ck.json', ' has ck.json:run:loaders:0, ck.json:other: pass '),
            ('ck.json:run', 'pass --state ck.json:run:loaders:0'),
            ('ck.json:run:loaders:1', 'ck.json:run:loaders:1: a state must'),
            ('ck.json:run:loaders:2',
             "ck.json:run:loaders has no field '2', only 0, 1"),
            ('ck.json:run:loaders:1:a', "1 has no field 'a'"),
            ('many.json', 'has many.json:0, many.json:1, many.json:2, ...: '),
            ('gone.json:a:b', 'gone.json is not a JSON file')):
        status, out, error = ask('--state', name)
        assert (2, '') == (status, out)
        assert text in error
    assert (0, f'{stream.order!r}\n', '') == ask(
        '--state', 'ck.json:run:loaders:0')


def test_state_may_be_a_field_of_a_checkpoint(ask, tmp_path):
    """The error about the whole file says how to name the field."""
    stream = build_stream()
    list(stream)
    (tmp_path / 'state.json').write_text(json.dumps(
        {'epoch': 1, 'stream': stream.state_dict()}))
    assert (0, f'{stream.order!r}\n', '') == ask(
        '--state', 'state.json:stream')
    for name, text in (
            ('state.json', 'pass --state state.json:stream'),
            ('state.json:step', "no field 'step', only epoch, stream")):
        status, out, error = ask('--state', name)
        assert (2, '') == (status, out)
        assert text in error


@pytest.mark.parametrize('args, text', [
    (['--item', '4'], 'has 4 items'),
    (['--step', '-1'], 'expected a number, from 0 on'),
    (['--ranks', '0'], 'positive number'),
    (['--state', 'gone.json'], 'gone.json is not a JSON file with a state'),
    (['--state', 'ordered.py'], 'ordered.py is not a JSON file'),
    (['--state', 'other.json'], 'other.json: a state must be a dict'),
    (['--step', '1', '--item', '1'], 'not allowed with'),
    (['--step', '1', '--epoch', '1'], 'steps are counted over all epochs'),
    (['--digest', '--item', '1'], 'not allowed with'),
    (['--digest', '--stop', '11'], 'has 10 examples'),
    (['--row', '1', '--dataset', '2'], 'dataset must be from 0 to 0')])
def test_mistakes_are_named(ask, args, text, tmp_path):
    """They exit with the status of a usage error."""
    (tmp_path / 'other.json').write_text('[]')
    status, printed, errors = ask(*args)
    assert (2, '') == (status, printed)
    assert text in errors
    assert 'Traceback' not in errors


def test_order_that_depends_on_the_data_is_named(ask):
    """The error names the stage."""
    status, printed, errors = ask('--item', 1, function='build_filtered')
    assert (2, '') == (status, printed)
    assert 'Filter' in errors


def test_row_in_an_epoch_without_steps_has_none(ask):
    """More ranks than batches get none of them, in any epoch."""
    for epoch in 0, 3:
        status, printed, errors = ask(
            '--row', 3, '--ranks', 8, '--uneven', 'drop', '--epoch', epoch,
            '--json')
        assert (0, '') == (status, errors)
        place, = json.loads(printed)
        assert (-1, None) == (place['rank'], place['optimizer_step'])
