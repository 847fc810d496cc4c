"""Tables say in which file a row is, and which rows a window holds.

The oracle is the data: each row holds its place, and windows are read.
"""
import pickle

import h5py
import numpy
import pytest

import fuel
from fuel.datasets import (
    CSVDataset,
    H5PYDataset,
    HDF5Dataset,
    IndexableDataset,
    IterableDataset,
    NPYDataset,
    Runs,
    Windows,
)
from fuel.schemes import (
    ComputedShuffledScheme,
    SequentialScheme,
    ShuffledScheme,
)
from fuel.streams import DataStream
from fuel.transformers import Mapping, Mix

COUNTS = [5, 1, 9]


def write_csv(path, file, rows):
    """Write the number of the file, and of each row."""
    path.write_text('number,row\n' + ''.join(
        [f'{file},{row}\n' for row in rows]))


def write_jsonl(path, file, rows):
    """Write an object for each row."""
    path.write_text(''.join(
        [f'{{"number": {file}, "row": {row}}}\n' for row in rows]))


def write_npz(path, file, rows):
    """Write two arrays."""
    numpy.savez(path, number=numpy.full(len(rows), file),
                row=numpy.array(rows))


def write_h5(path, file, rows):
    """Write two arrays in HDF5."""
    with h5py.File(path, 'w') as h5file:
        h5file['number'] = numpy.full(len(rows), file)
        h5file['row'] = numpy.array(rows)


@pytest.fixture
def folder(tmp_path):
    """Return a folder with three files of each kind."""
    for ending, write in (('csv', write_csv), ('jsonl', write_jsonl),
                          ('npz', write_npz), ('h5', write_h5)):
        for file, count in enumerate(COUNTS):
            write(tmp_path / f'{file}.{ending}', file, range(count))
    return tmp_path


def stream_of(dataset, size=4):
    """Return a shuffled stream of batches."""
    return DataStream(dataset, iteration_scheme=ShuffledScheme(
        dataset.num_examples, size, rng=numpy.random.RandomState(1)))


def check_files(stream, paths):
    """Check the table of an epoch against the data that it delivers."""
    where = [stream.sources.index(name) for name in ('number', 'row')]
    table, items = stream.order[:], list(stream)
    files, rows = (numpy.concatenate([item[place] for item in items])
                   for place in where)
    assert [paths[file] for file in files.tolist()] == table.file.tolist()
    assert rows.tolist() == table.row_of_part.tolist()
    return table


@pytest.mark.parametrize('ending', ['csv', 'jsonl', 'npz', 'h5'])
def test_rows_are_found_in_several_files(folder, ending):
    """Shares of ranks and items have the columns too."""
    paths = [str(folder / f'{file}.{ending}') for file in range(3)]
    stream = stream_of(fuel.load(folder / f'*.{ending}'))
    table = check_files(stream, paths)
    assert ['item', 'dataset', 'row', 'file', 'row_of_part'] == list(
        table.columns)
    step = stream.order.epoch(0).step(1)
    assert step.file.tolist() == table.file[4:8].tolist()
    text = repr(table)
    assert f'\nfile 2: {paths[2]}' in text
    assert paths[2] in table._repr_html_()
    assert max(map(len, text.splitlines()[:-3])) < 60
    assert table.row_of_part.tolist() == pickle.loads(
        pickle.dumps(table)).row_of_part.tolist()


@pytest.mark.parametrize('ending', ['csv', 'npz'])
def test_rows_of_splits_are_those_of_the_files(folder, ending):
    """A split chooses rows of all files, in its order."""
    paths = [str(folder / f'{file}.{ending}') for file in range(3)]
    kind = CSVDataset if ending == 'csv' else NPYDataset
    check_files(stream_of(kind(
        paths, which_sets=('b', 'a'),
        splits={'a': [14, 2, 5], 'b': (3, 8)})), paths)


def test_pipelines_as_data_sets_know_the_files(folder):
    """Their rows are those of the data set below."""
    paths = [str(folder / f'{file}.csv') for file in range(3)]
    below = CSVDataset(paths, which_sets=('a',), splits={'a': (4, 14)})
    check_files(stream_of(Mapping(
        stream_of(below, 1), lambda data: data).as_dataset()), paths)


def test_groups_are_parts(tmp_path):
    """The row is counted in the group; long names are cut where printed."""
    names = [f'recordings/of_the_first_day/demo_{part}' for part in range(3)]
    with h5py.File(tmp_path / 'x.h5', 'w') as h5file:
        for part, name in enumerate(names):
            h5file[f'{name}/part'] = numpy.full(COUNTS[part], part)
            h5file[f'{name}/row'] = numpy.arange(COUNTS[part])
    stream = stream_of(HDF5Dataset(
        tmp_path / 'x.h5', ['part', 'row'], parts=f'{names[0][:-1]}*'))
    table = stream.order[:]
    parts, rows = (numpy.concatenate(column) for column in zip(
        *stream, strict=True))
    assert [names[part] for part in parts] == table.part.tolist()
    assert rows.tolist() == table.row_of_part.tolist()
    assert {str(tmp_path / 'x.h5')} == set(table.file)
    assert '  ..._the_first_day/demo_2  ' in repr(table)


@pytest.mark.parametrize('in_memory', [False, True])
def test_splits_of_fuels_own_format(tmp_path, in_memory):
    """Each split lists rows of the file."""
    with h5py.File(tmp_path / 'x.hdf5', 'w') as h5file:
        h5file['y'] = numpy.arange(20)
        h5file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'y': (0, 12)}, 'test': {'y': (12, 20)}})
    for kwargs in ({}, {'subset': slice(2, 7)}):
        stream = stream_of(H5PYDataset(
            tmp_path / 'x.hdf5', ('test',), load_in_memory=in_memory,
            **kwargs))
        table = stream.order[:]
        assert numpy.concatenate([item[0] for item in stream]).tolist() == (
            table.row_of_part.tolist())
        assert {str(tmp_path / 'x.hdf5')} == set(table.file)


def test_columns_that_do_not_apply_are_left_out(folder):
    """Some rows of a table may be in files, and others in memory."""
    files = CSVDataset(folder / '0.csv', sources=('row',))
    memory = IndexableDataset({'row': numpy.arange(6)})
    table = Mix([stream_of(files, 2), stream_of(memory, 2)], seed=1,
                stop='last').order[:]
    is_file = table.dataset == 0
    assert {str(folder / '0.csv')} == set(table.file[is_file])
    assert {''} == set(table.file[~is_file])
    assert (table.row_of_part == numpy.where(is_file, table.row, -1)).all()
    assert f'file 0 of dataset 0: {folder / "0.csv"}' in repr(table)
    for stream in (stream_of(memory), DataStream(IterableDataset(
            {'y': range(5)}))):
        assert not {'file', 'part', 'first'} & set(stream.order[:].columns)
    with pytest.raises(AttributeError, match="no column 'file'"):
        stream_of(memory).order[:].file  # noqa: B018


def test_rows_that_a_users_class_chooses_are_not_known(folder):
    """So are those of requests that are not rows."""
    class Turned(CSVDataset):
        def get_data(self, state=None, request=None):
            return super().get_data(state, [4 - row for row in request])

    assert 'file' not in stream_of(
        Turned(folder / '0.csv')).order[:].columns
    assert 'row_of_part' in stream_of(
        CSVDataset(folder / '0.csv')).order[:].columns
    for wrong in (99, -1, 'a', None):
        table = DataStream(
            CSVDataset(folder / '0.csv'),
            iteration_scheme=SequentialScheme([0, wrong, 3], 2)).order[:]
        assert [0, wrong, 3] == table.row.tolist()
        assert [0, -1, 3] == table.row_of_part.tolist()


def windows_of(rows, generator):
    """Return a data set of random windows, and whether it pads."""
    lengths = generator.multinomial(len(rows), [.3, .1, .35, .25])
    pad = [None, 'zero'][int(generator.randint(2))]
    padding = generator.randint(6, size=2) if pad else (0, 0)
    kwargs = {} if pad else [{}, {'dense': ('x',)}, {'targets': 'next'}][
        generator.randint(3)]
    return Windows(
        IndexableDataset({'x': rows}), int(generator.randint(1, 5)),
        step=int(generator.randint(1, 4)),
        stride=int(generator.randint(1, 5)), pad=pad,
        pad_before=int(padding[0]), pad_after=int(padding[1]),
        runs={'lengths': lengths}, **kwargs)


def test_windows_say_which_rows_they_hold():
    """Each row says its number; zeros are padding."""
    generator, seen = numpy.random.RandomState(1), set()
    for _ in range(300):
        rows = numpy.arange(1, 31)
        try:
            dataset = windows_of(rows, generator)
        except ValueError:
            # No run is long enough.
            continue
        stream = stream_of(dataset)
        order = stream.order
        table = order[:]
        names = [name for name in stream.sources if name != 'mask']
        held = [{row for source in names for row in numpy.ravel(
            item[source][place]) - 1 if row >= 0}
            for item in stream.get_epoch_iterator(as_dict=True)
            for place in range(len(item[names[0]]))]
        steps = table.step if 'step' in table.columns else 1 + 0 * table.row
        slices = [slice(*one) for one in zip(*map(numpy.ndarray.tolist, (
            table.first, table.stop, steps)), strict=True)]
        assert held == [set(range(30)[one]) for one in slices]
        for row in range(31):
            places = [(place.item, place.row, place.window, place.rows)
                      for place in order.windows_with(row)]
            assert places == [
                (place // 4, place % 4, table.row[place], slices[place])
                for place in range(len(held)) if row in held[place]]
            seen.add(len(places))
    assert len(seen) > 4


@pytest.mark.parametrize('step', [1, 2, 3])
def test_padded_windows_say_their_first_and_last_rows(tmp_path, step):
    """Padding, or a run, may end between two rows of a window."""
    path = tmp_path / 'rows.npy'
    numpy.save(path, numpy.arange(1, 12))
    windows = Windows(
        NPYDataset(str(path)), 3, step=step, runs={'lengths': [7, 4]},
        pad='zero', pad_before=2 * step, pad_after=step)
    table = DataStream(windows, batch_size=windows.num_examples).order[0]
    (rows, mask), = DataStream(windows, batch_size=windows.num_examples)
    held = [one[real] - 1 for one, real in zip(rows, mask, strict=True)]
    assert table.first.tolist() == [one[0] for one in held]
    assert table.stop.tolist() == [one[-1] + 1 for one in held]
    assert table.row_of_part.tolist() == [one[0] for one in held]
    assert [windows.provenance(number).row for number in range(len(held))] == [
        one[0] for one in held]


def test_windows_with_a_row_are_found_in_long_computed_orders():
    """No epoch is gone through."""
    count = 10 ** 12
    windows = Windows(IndexableDataset({'x': range(count)}), 4, stride=2)
    order = DataStream(windows, iteration_scheme=ComputedShuffledScheme(
        windows.num_examples, 32, seed=1)).order
    places = order.windows_with(618_420_001_235)
    assert [618_420_001_232, 618_420_001_234] == sorted(
        [place.rows.start for place in places])
    for place in places:
        table = order[place.item]
        assert place.window == table.row[place.row]
        assert place.rows == slice(
            table.first[place.row], table.stop[place.row], 1)
    assert [] == order.windows_with(count)


def test_runs_say_which_rows_they_hold(folder):
    """They do in files, and below other stages and ranks."""
    runs = Runs(CSVDataset(folder / '2.csv'), runs={'lengths': [4, 0, 5]})
    stream = DataStream(runs, iteration_scheme=SequentialScheme(3, 1))
    table = stream.order[:]
    assert [(0, 4), (4, 4), (4, 9)] == list(
        zip(table.first, table.stop, strict=True))
    assert [0, 4, 4] == table.row_of_part.tolist()
    (place,) = stream.shard(0, 2).order.share(0).windows_with(6)
    assert (1, 2, slice(4, 9, 1)) == (place.item, place.window, place.rows)
    assert [] == stream.order.share(1, 2).windows_with(6)
    as_stage = DataStream(Mapping(stream, lambda data: data).as_dataset(),
                          iteration_scheme=SequentialScheme(3, 2)).order
    assert table.first.tolist() == as_stage[:].first.tolist()
    assert [1] == [place.item for place in as_stage.windows_with(8)]


def test_windows_of_an_older_pickle_say_which_rows_they_hold():
    """Their cuts lack the step."""
    windows = Windows(IndexableDataset({'x': range(9)}), 3, step=2)
    del windows._cuts.step
    order = stream_of(pickle.loads(pickle.dumps(windows))).order
    assert {0, 2, 4} == {
        place.window for place in order.windows_with(4)}


def test_questions_about_windows_name_what_is_wrong():
    """The error says what to ask instead."""
    order = stream_of(IndexableDataset({'x': numpy.arange(5)})).order
    with pytest.raises(ValueError, match=r'IndexableDataset.*order\.index'):
        order.windows_with(2)
    windows = stream_of(Windows(IndexableDataset({'x': range(5)}), 2)).order
    with pytest.raises(ValueError, match='row must not be negative'):
        windows.windows_with(-1)
    assert pickle.loads(pickle.dumps(windows))[:] == windows[:]
    with pytest.raises(ValueError, match='not known to be windows'):
        pickle.loads(pickle.dumps(windows)).windows_with(1)
