"""Several files of CSV, JSON lines and NumPy's are one data set."""
import csv
import json
import os
import pickle
import tracemalloc

import h5py
import numpy
import pytest
from support.range_server import serving

import fuel
from fuel import config
from fuel.datasets import (
    CSVDataset, HDF5Dataset, JSONLDataset, NPYDataset)
from fuel.datasets.source_dataset import SourceDataset
from fuel.exceptions import DamagedFileError, StateMismatchError
from fuel.schemes import (
    SequentialExampleScheme, SequentialScheme, ShuffledScheme)
from fuel.streams import DataStream
from fuel.transformers import MultiProcessing

# Rows of each file; the number of one is before that of another as text.
COUNTS = {'part-2': 700, 'part-10': 1, 'part-11': 1300}
NUM_ROWS = sum(COUNTS.values())
NAMES = ['number', 'half', 'text']


def row_of(number):
    """Return the values of a row, by name."""
    return dict(zip(NAMES, [number, number / 2, f'row "{number}",\n of'],
                    strict=True))


def write_csv(path, rows):
    """Write a table, as Python's own writer does."""
    with open(path, 'w', newline='') as file:
        writer = csv.DictWriter(file, NAMES)
        writer.writeheader()
        writer.writerows(rows)


def write_jsonl(path, rows):
    """Write an object for each row."""
    path.write_text(''.join(f'{json.dumps(row)}\n' for row in rows))


def write_npz(path, rows, save=numpy.savez):
    """Write an array for each column."""
    save(path, **{name: numpy.array([row[name] for row in rows], kind)
                  for name, kind in zip(NAMES, ('i8', 'f8', 'U30'),
                                        strict=True)})


def write_compressed(path, rows):
    """Write compressed arrays."""
    write_npz(path, rows, numpy.savez_compressed)


def write_mixed(path, rows):
    """Write arrays, compressed in the file of a single row."""
    write_npz(path, rows, numpy.savez_compressed if len(rows) == 1
              else numpy.savez)


KINDS = {
    'csv': ('csv', write_csv, CSVDataset),
    'jsonl': ('jsonl', write_jsonl, JSONLDataset),
    'npz': ('npz', write_npz, NPYDataset),
    'compressed npz': ('npz', write_compressed, NPYDataset),
    'mixed npz': ('npz', write_mixed, NPYDataset)}


@pytest.fixture(params=KINDS)
def kind(request):
    """Return ending, writer and class of a kind of files."""
    return KINDS[request.param]


@pytest.fixture
def folder(tmp_path, kind):
    """Return a folder of files whose rows are numbered."""
    ending, write, _ = kind
    first = 0
    for name, count in COUNTS.items():
        write(tmp_path / f'{name}.{ending}',
              list(map(row_of, range(first, first + count))))
        first += count
    return tmp_path


@pytest.fixture
def dataset(folder, kind):
    """Return the data set of all files, in natural order."""
    return kind[2](folder / f'*.{kind[0]}')


def paths_in(folder, kind):
    """Return the paths of the files, as text."""
    return [str(folder / f'{name}.{kind[0]}') for name in COUNTS]


def check_rows(dataset, numbers, batch):
    """Check that a batch has rows of some numbers."""
    expected = list(map(row_of, numbers))
    for source, values in zip(dataset.sources, batch, strict=True):
        assert [row[source] for row in expected] == values.tolist()


@pytest.mark.parametrize('scheme', [
    SequentialScheme(NUM_ROWS, 64), ShuffledScheme(NUM_ROWS, 100),
    SequentialExampleScheme(NUM_ROWS)])
def test_epochs_have_the_rows_of_all_files(dataset, scheme):
    """The files follow each other in each order."""
    assert NUM_ROWS == dataset.num_examples
    where = dataset.sources.index('number')
    for _ in range(2):
        seen = []
        for data in DataStream(
                dataset, iteration_scheme=scheme).get_epoch_iterator():
            batch = [numpy.array(part) for part in data]
            if isinstance(scheme, SequentialExampleScheme):
                batch = [part[numpy.newaxis] for part in batch]
            numbers = batch[where].tolist()
            check_rows(dataset, numbers, batch)
            seen += numbers
        assert list(range(NUM_ROWS)) == sorted(seen)
        assert (list(range(NUM_ROWS)) == seen) is not isinstance(
            scheme, ShuffledScheme)


@pytest.mark.parametrize('rows', [
    [0], [699, 700, 701], [701, 700, 699, 700], [2000, 0, 2000],
    slice(690, 710), slice(0, NUM_ROWS), slice(NUM_ROWS, 0, -7)])
def test_rows_are_found_across_files(dataset, rows):
    """They are found in any order, with repetitions."""
    numbers = list(range(NUM_ROWS))[rows] if isinstance(rows, slice) else rows
    check_rows(dataset, numbers, dataset.get_data(None, numbers))


def test_lists_patterns_and_folders_are_one(folder, kind, dataset):
    """`fuel.load` opens the same; a list keeps its order."""
    ending, _, cls = kind
    paths = paths_in(folder, kind)
    for other in (cls(paths), fuel.load(paths), fuel.load(folder),
                  fuel.load(folder / f'*.{ending}')):
        assert type(other) is cls
        numpy.testing.assert_array_equal(
            dataset.get_data(None, [5, 700, 1999]),
            other.get_data(None, [5, 700, 1999]))
    turned = cls(paths[::-1])
    check_rows(turned, [701], turned.get_data(None, [0]))


def test_places_of_rows_name_file_and_row(folder, kind, dataset):
    """So does the provenance of a batch."""
    paths = paths_in(folder, kind)
    for row, place in ((0, (0, 0)), (699, (0, 699)), (700, (1, 0)),
                       (701, (2, 0)), (2000, (2, 1299))):
        assert (paths[place[0]], '', place[1]) == dataset.place_of_row(row)
    text = repr(dataset)
    assert 'part-2.' in text
    assert 'part-11.' in text
    assert '3 files' in text


def test_splits_are_rows_of_all_files(folder, kind):
    """They are counted from the first row of the first file."""
    dataset = kind[2](
        paths_in(folder, kind), ('test', 'train'), sources=('number',),
        splits={'train': (0, 10), 'test': [1999, 700]}) if (
            kind[2] is NPYDataset) else kind[2](
        paths_in(folder, kind), which_sets=('test', 'train'),
        sources=('number',),
        splits={'train': (0, 10), 'test': [1999, 700]})
    assert [1999, 700, *range(10)] == dataset[:][0].tolist()


def test_pickles_and_workers_read_all_files(dataset):
    """A pickle holds paths."""
    copy = pickle.loads(pickle.dumps(dataset))
    check_rows(copy, [2000, 699], copy.get_data(None, [2000, 699]))
    assert len(pickle.dumps(dataset)) < 10_000
    stream = MultiProcessing(DataStream(
        dataset, iteration_scheme=SequentialScheme(NUM_ROWS, 300)),
        num_workers=2)
    rows = numpy.concatenate([
        batch[dataset.sources.index('number')]
        for batch in stream.get_epoch_iterator()])
    assert list(range(NUM_ROWS)) == rows.tolist()


def test_one_file_is_what_it_was(folder, kind):
    """A file given by name is that of a pattern or list of one file."""
    path, *_ = paths_in(folder, kind)
    cls = kind[2]
    alone = cls(path)
    for other in (cls([path]), cls(path.replace('-2', '-?'))):
        assert path == other.path
        assert repr(alone) == repr(other)
        assert DataStream(alone).state_dict() == DataStream(other).state_dict()


def test_files_at_urls_are_one(folder, kind, tmp_path):
    """Their options are assigned to all of them."""
    config.remote_cache_path = str(tmp_path / 'cache')
    ending, _, cls = kind
    with serving(folder) as server:
        urls = [server.url(f'{name}.{ending}') for name in COUNTS]
        server.token = 'Bearer to-ken'
        options = {'headers': {'Authorization': server.token}}
        dataset = pickle.loads(pickle.dumps(
            cls(urls, storage_options=options)))
        with pytest.raises(PermissionError, match='assign its storage_opt'):
            dataset.get_data(None, [0])
        dataset.storage_options = options
        check_rows(dataset, [2000, 3, 700], dataset.get_data(
            None, [2000, 3, 700]))
        assert urls[1] == dataset.place_of_row(700).file
        for batch in DataStream(dataset, iteration_scheme=ShuffledScheme(
                NUM_ROWS, 500)).get_epoch_iterator():
            check_rows(dataset, batch[
                dataset.sources.index('number')].tolist(), batch)


def test_changed_file_is_read_anew_by_the_next_epoch(folder, kind, dataset):
    """The present one ends in an error, and other rows are refused."""
    ending, write, _ = kind
    path = folder / f'part-11.{ending}'

    def replace(rows):
        write(folder / 'new.tmp.npz', rows)
        os.replace(folder / 'new.tmp.npz', path)

    stream = DataStream(dataset, iteration_scheme=SequentialScheme(
        NUM_ROWS, 100))
    epoch = stream.get_epoch_iterator()
    next(epoch)
    replace(list(map(row_of, range(5000, 6300))))
    others = stream.get_epoch_iterator()
    where = dataset.sources.index('number')
    assert [6299] == list(others)[-1][where].tolist()[-1:]
    with pytest.raises(DamagedFileError, match='part-11'):
        list(epoch)
    replace(list(map(row_of, range(5))))
    with pytest.raises(StateMismatchError, match='part-'):
        next(stream.get_epoch_iterator())


def test_no_file_and_no_such_file_say_so(tmp_path, kind):
    """Other formats raise the same errors."""
    ending, _, cls = kind
    with pytest.raises(FileNotFoundError, match='no file like'):
        cls(tmp_path / f'*.{ending}')
    with pytest.raises(FileNotFoundError, match='b.none'):
        cls([tmp_path / 'b.none', tmp_path / 'c.none'])
    with pytest.raises(TypeError, match='got a list'):
        cls([])
    with pytest.raises(TypeError, match=r'URLs, got 3 \(int\) in the list'):
        cls([tmp_path / f'a.{ending}', 3])


# Tables of text.

@pytest.mark.parametrize('size', range(65_536 - 60, 65_536 + 20, 13))
def test_records_at_the_borders_of_files_are_their_own(tmp_path, size):
    """The file may end anywhere, with a mark of UTF-8 and empty lines."""
    lines = [f'{number},é' for number in range(1000)]
    head = '\ufeff\r\n\r\nnumber,text\r\n'
    body = '\r\n'.join(lines)
    fill = size - len((head + body).encode())
    for name, end in (('a', ''), ('b', '\r\n\r\n')):
        (tmp_path / f'{name}.csv').write_text(
            head + body + 'x' * fill + end, encoding='utf-8', newline='')
    dataset = CSVDataset(tmp_path / '*.csv')
    assert 2000 == dataset.num_examples
    numbers, texts = dataset.get_data(None, list(range(990, 1010)))
    assert [*range(990, 1000), *range(10)] == numbers.tolist()
    assert ['é'] * 9 + ['é' + 'x' * fill] + ['é'] * 10 == texts.tolist()


def write_texts(folder, ending, *texts):
    """Write files a, b and so on; return their paths."""
    paths = [folder / f'{name}.{ending}' for name, _ in zip(
        'abc', texts, strict=False)]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    return paths


@pytest.mark.parametrize('first, second, text', [
    ('x,y\n1,2\n', 'x\n1\n', r"b.csv has no column 'y', which .*a.csv has"),
    ('x,y\n1,2\n', 'x,z\n1,2\n', r"b.csv has no column 'y'.*\['x', 'z'\]"),
    ('x\n1\n', 'x,z\n1,2\n', r"b.csv has a column 'z', and .*a.csv has none"),
    ('x,y\n1,2\n', 'y,x\n1,2\n', r'b.csv has its columns in another order'),
    ('x,y\n1,2\n', '1,2\n', r"b.csv has no column 'x'.*\['1', '2'\] in the"),
    ('1,2\n', '1,2,3\n', r'b.csv has 3 columns, but .*a.csv has 2'),
    ('x\n1\n', '', r'b.csv is empty'),
    ('x\n1\n', 'x\nno\n',
     r"'x' is text in .*b.csv, but int64 in .*a.csv: pass dtypes=\{'x': obj"),
    ('x\nno\n', 'x\n1.5\n', r"'x' is float64 in .*b.csv, but text in files"),
    ('x\n1\n', 'x\ntrue\n', r"'x' is bool in .*b.csv, but int64 in files"),
    ('x\n1\n', 'x\n2\nNA\n', r"pass missing=\('NA',\) if that stands for")])
def test_tables_that_differ_name_file_and_column(
        tmp_path, first, second, text):
    """The error says what to do."""
    with pytest.raises(ValueError, match=text):
        CSVDataset(write_texts(tmp_path, 'csv', first, second))


def test_advice_about_a_type_names_source_and_marker(tmp_path):
    """The advice names the source, wherever the marker is, and following it is
    enough."""
    paths = write_texts(tmp_path, 'csv', 'x\nNA\n', 'x\n2\n')
    with pytest.raises(ValueError, match=(
            r"'x' is int64 in .*b.csv, but text .*a.csv: pass "
            r"missing=\('NA',\) if .* or dtypes=\{'number': object\}")):
        CSVDataset(paths, {'number': 'x'})
    dataset = CSVDataset(paths, {'number': 'x'}, missing=('NA',))
    assert [True, False] == numpy.isnan(dataset[:][0]).tolist()
    dataset = CSVDataset(paths, {'number': 'x'}, {'number': object})
    assert ['NA', '2'] == dataset[:][0].tolist()


def test_error_about_a_type_names_files_that_have_cells(tmp_path):
    """A file whose column is empty is not named."""
    paths = write_texts(tmp_path, 'csv', 'x,y\n,1\n', 'x,y\n1,1\n',
                        'x,y\nno,1\n')
    with pytest.raises(ValueError, match=r'text in .*c.csv, .*as .*b.csv'):
        CSVDataset(paths)


def test_column_that_is_not_used_may_have_several_types(tmp_path):
    """Such a column is not read."""
    paths = write_texts(tmp_path, 'csv', 'x,y\n1,2\n', 'x,y\nno,3\n')
    for chosen in ({'sources': ('y',)}, {'columns': ['y']}):
        assert [2, 3] == CSVDataset(paths, **chosen)[:][0].tolist()


@pytest.mark.parametrize('empty', ['', '\n\r\n', '\ufeff'])
def test_first_table_that_is_empty_is_named(tmp_path, empty):
    """Other empty tables are named in the same way."""
    with pytest.raises(ValueError, match=r'a.csv is empty'):
        CSVDataset(write_texts(tmp_path, 'csv', empty, 'x\n1\n'))


@pytest.mark.parametrize('first, second, dtype', [
    ('x\n1\n', 'x\n1.5\n', 'f8'), ('x\n1\n', 'x\n', 'i8'),
    ('x\n""\n', 'x\n3\n', 'f8'), ('x\n2020-01-01\n',
    'x\n2020-01-01T12:00:00\n', 'M8[s]'), ('x\na\n', 'x\nb\n', 'O')])
def test_columns_have_one_type_that_holds_those_of_all_files(
        tmp_path, first, second, dtype):
    """Columns of Parquet files have such a type, too."""
    dataset = CSVDataset(
        write_texts(tmp_path, 'csv', first, second), header=True)
    assert dtype == dataset.dtypes['x'] == dataset[:][0].dtype
    assert second.count('\n') == dataset.num_examples


def test_options_of_a_table_are_for_all_its_files(tmp_path):
    """Types, columns by number, missing values and masks hold for all
    files."""
    paths = write_texts(tmp_path, 'csv', 'x;y\n1;a\n', 'x;y\n-;5\n')
    dataset = CSVDataset(
        paths, {'x': 'x', 'text': 1}, {'text': object}, delimiter=';',
        missing='-', masks=('x',))
    x, mask, text = dataset[:]
    assert ([1, 0], [True, False], ['a', '5']) == (
        x.tolist(), mask.tolist(), text.tolist())
    no_header = write_texts(tmp_path, 'csv', '1,2\n', '3,4\n5,6\n')
    assert [1, 3, 5] == CSVDataset(no_header)[:][0].tolist()
    assert ('column_0', 'column_1') == CSVDataset(no_header).sources


def test_bad_record_names_its_file_and_line(tmp_path):
    """It does not name the first file."""
    rows = 'x\n' + '1\n' * 1500
    a, b = write_texts(tmp_path, 'csv', rows, rows + 'no\n')
    dataset = CSVDataset([a, b])
    with pytest.raises(ValueError, match=r'b.csv, line 1502, column 0 \(x\)'):
        dataset.get_data(None, [2, 3000])
    a, b = write_texts(tmp_path, 'jsonl', '{"x": 1}\n' * 1500,
                       '{"x": 1}\n' * 1500 + '{"x": 1\n')
    with pytest.raises(ValueError, match='b.jsonl, line 1501'):
        JSONLDataset([a, b]).get_data(None, [0, 3000])


@pytest.mark.parametrize('second, text', [
    ('{"x": 1, "y": 1}\n',
     r"a.jsonl, line 1: there is no field 'y'.*on_missing='null'"),
    ('{}\n', r"b.jsonl, line 1: there is no field 'x'.*on_missing='null'"),
    ('{"x": "no"}\n',
     r"b.jsonl, line 1: source 'x' has \"no\", but 1 in .*a.jsonl, line 1")])
def test_json_lines_that_differ_name_file_and_field(tmp_path, second, text):
    """The error says what to do."""
    paths = write_texts(tmp_path, 'jsonl', '{"x": 1}\n', second)
    with pytest.raises(ValueError, match=text):
        JSONLDataset(paths)


def test_fields_and_types_are_those_of_all_files(tmp_path):
    """A file may be empty."""
    paths = write_texts(tmp_path, 'jsonl', '{"x": 1}\n', '',
                        '{"x": 1.5, "y": 2}\n')
    dataset = JSONLDataset(paths, on_missing='null')
    x, y = dataset[:]
    assert ('x', 'y') == dataset.sources
    assert [1., 1.5] == x.tolist()
    assert numpy.isnan(y[0])
    assert (str(paths[2]), '', 0) == dataset.place_of_row(1)


@pytest.mark.parametrize('ending', ['csv', 'jsonl', 'npz'])
def test_names_of_files_tell_the_splits(tmp_path, ending):
    """They do so in a folder and a pattern, as names of Parquet and HDF5 files
    do."""
    _, write, cls = KINDS[ending]
    for name, first in (('train-0', 0), ('train-1', 10), ('test', 20)):
        write(tmp_path / f'{name}.{ending}',
              list(map(row_of, range(first, first + 10))))
    for files in (tmp_path, tmp_path / f'*.{ending}'):
        with pytest.raises(ValueError, match="the splits 'test', 'train'"):
            fuel.load(files)
        train = fuel.load(files, 'train', sources=('number',))
        assert isinstance(train, cls)
        assert list(range(20)) == train[:][0].tolist()
        assert 30 == fuel.load(files, 'all').num_examples


def test_tables_beside_more_files_of_another_kind_are_not_the_data(tmp_path):
    """The pictures are the data; beside arrays they are left out."""
    (tmp_path / 'labels.csv').write_text('x\n1\n')
    for number in range(3):
        (tmp_path / f'{number}.png').write_bytes(b'\x89PNG')
    assert fuel.load(tmp_path).sources[0] == 'image'
    numpy.savez(tmp_path / 'x.npz', x=[1, 2])
    assert isinstance(fuel.load(tmp_path), NPYDataset)


# Arrays.

@pytest.mark.parametrize('save', [numpy.savez, numpy.savez_compressed])
def test_batches_of_several_archives_are_copied_in_one_call(tmp_path, save):
    """Batches of one archive are, too."""
    for name in 'ab':
        save(tmp_path / f'{name}.npz', x=numpy.arange(100),
             y=numpy.ones((100, 3)))
    dataset = NPYDataset(tmp_path / '*.npz')
    assert isinstance(dataset, SourceDataset)
    assert all(source.reader.direct() is not None
               for source in dataset.open_sources())


def test_compressed_arrays_are_not_all_in_memory_twice(tmp_path):
    """Only the arrays of one source are, while they become one array."""
    nbytes = 1 << 22
    for name in 'ab':
        numpy.savez_compressed(tmp_path / f'{name}.npz', **{
            source: numpy.zeros(nbytes // 2, 'u1') for source in 'stuvwxyz'})
    tracemalloc.start()
    try:
        dataset = NPYDataset(tmp_path / '*.npz')
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert nbytes == dataset.num_examples
    assert 8 * nbytes < peak < 10 * nbytes


def test_arrays_of_several_npy_files_are_one(tmp_path):
    """The arrays may be alone, or a source beside others."""
    x = numpy.random.RandomState(0).rand(30, 4, 3).astype('f4')
    numpy.save(tmp_path / 'x0.npy', x[:10])
    numpy.save(tmp_path / 'x1.npy', numpy.asfortranarray(x[10:12]))
    numpy.save(tmp_path / 'x2.npy', x[12:12])
    numpy.save(tmp_path / 'x3.npy', x[12:].astype('>f4'))
    numpy.save(tmp_path / 'y.npy', numpy.arange(30))
    alone = NPYDataset(tmp_path / 'x*.npy')
    assert ('data',) == alone.sources
    beside = NPYDataset({'x': tmp_path / 'x*.npy', 'y': tmp_path / 'y.npy'})
    for rows in (slice(0, 30), [29, 11, 10, 9, 12, 29]):
        for dataset in (alone, beside):
            found = dataset.get_data(None, rows)[0]
            numpy.testing.assert_array_equal(x[rows], found)
            assert numpy.dtype('f4') == found.dtype
    assert (str(tmp_path / 'x3.npy'), '', 2) == alone.place_of_row(14)


@pytest.mark.parametrize('other, text', [
    ({'x': [1, 2]}, r"b.npz has no array 'y', which .*a.npz has.*'x'"),
    ({'x': [1, 2], 'y': [1, 2], 'z': [1, 2]},
     r"b.npz has an array 'z', and .*a.npz has none"),
    ({'x': [1, 2], 'y': [1., 2.]},
     r"a.npz, source 'y', has int64 of shape \(\), and .*b.npz has float64"),
    ({'x': [[1], [2]], 'y': [1, 2]}, r"source 'x', .*b.npz has int64 of sha"),
    ({'x': [1], 'y': [1, 2]}, r'a.npz: all sources .* x: 3, y: 2')])
def test_archives_that_differ_name_file_and_array(tmp_path, other, text):
    """Rows of two files are never mixed."""
    first = {'x': [1, 2, 3], 'y': [1, 2]} if (
        'all sources' in text) else {'x': [1, 2], 'y': [1, 2]}
    for name, arrays in (('a', first), ('b', other)):
        numpy.savez(tmp_path / f'{name}.npz', **{
            key: numpy.array(value) for key, value in arrays.items()})
    with pytest.raises(ValueError, match=text):
        NPYDataset(tmp_path / '*.npz')


def test_array_among_archives_is_not_said_to_be_damaged(tmp_path):
    """The error names both kinds."""
    numpy.savez(tmp_path / 'a.npz', data=[1, 2])
    numpy.save(tmp_path / 'b.npy', [1, 2])
    with pytest.raises(ValueError, match=r'b.npy is a .npy file, and .*a.npz'):
        NPYDataset([tmp_path / 'a.npz', tmp_path / 'b.npy'])
    (tmp_path / 'c.npz').write_bytes(b'')
    with pytest.raises(DamagedFileError, match='c.npz'):
        NPYDataset([tmp_path / 'a.npz', tmp_path / 'c.npz'])


@pytest.mark.parametrize('x, y, error', [
    (2, 2, StateMismatchError), (2, 3, ValueError)])
def test_archives_whose_rows_have_moved_are_refused(tmp_path, x, y, error):
    """They are refused although the number of rows and the data set are the
    same."""
    def write(x, y):
        for name, x_rows, y_rows in (
                ('a', range(x), range(y)),
                ('b', range(x, 5), range(y, 5))):
            numpy.savez(tmp_path / 'new.tmp.npz', x=x_rows, y=y_rows)
            os.replace(tmp_path / 'new.tmp.npz', tmp_path / f'{name}.npz')

    write(3, 3)
    dataset = NPYDataset([tmp_path / 'a.npz', tmp_path / 'b.npz'])
    pickled = pickle.dumps(dataset)
    stream = DataStream(dataset, iteration_scheme=SequentialScheme(5, 2))
    assert [0, 1] == next(stream.get_epoch_iterator())[0].tolist()
    write(x, y)
    for _ in range(2):
        with pytest.raises(error, match=r'a.npz'):
            next(stream.get_epoch_iterator())
    if error is ValueError:
        with pytest.raises(ValueError, match=r'a.npz: all sources must have'):
            pickle.loads(pickled).get_data(None, [0])
    write(3, 3)
    assert 3 == len(list(stream.get_epoch_iterator()))


@pytest.mark.parametrize('build', [fuel.load, HDF5Dataset])
@pytest.mark.parametrize('lengths, text', [
    ([{'x': 2, 'y': 2}, {'x': 1}], r"1.h5 has no array 'y', which .*0.h5 has"),
    ([{'x': 1}, {'x': 2, 'y': 2}],
     r"1.h5' has an array 'y', and .*0.h5' has none"),
    ([{'x': 1}, {'x': 2, 'more/y': 2}, {'x': 1}],
     r"1.h5' has an array 'more/y', and .*0.h5' has none")])
def test_hdf5_files_that_differ_are_refused(tmp_path, build, lengths, text):
    """The error names both; only the chosen arrays are compared."""
    for number, counts in enumerate(lengths):
        with h5py.File(tmp_path / f'{number}.h5', 'w') as file:
            for name, count in counts.items():
                file[name] = numpy.full(count, number)
    files = str(tmp_path / '*.h5')
    with pytest.raises(ValueError, match=text):
        build(files)
    for chosen in ({'sources': ('x',)}, {'columns': ['x']}):
        with build(files, **chosen) as dataset:
            assert [number for number, counts in enumerate(lengths)
                    for _ in range(counts['x'])] == dataset[:][0].tolist()


def test_empty_array_beside_others_is_not_a_difference(tmp_path):
    """Nothing of it is lost."""
    for number in range(2):
        with h5py.File(tmp_path / f'{number}.h5', 'w') as file:
            file['x'] = [number]
            if number:
                file['empty'] = numpy.empty(0)
    for build in (fuel.load, HDF5Dataset):
        with build(str(tmp_path / '*.h5')) as dataset:
            assert [0, 1] == dataset[:][0].tolist()


@pytest.mark.parametrize(('build', 'remedy'), [
    (CSVDataset, 'make them alike, or a data set of each'),
    (NPYDataset, r"such as sources=\('x',\)"),
    (HDF5Dataset, r"such as columns=\['x'\]")])
def test_error_about_files_that_differ_says_what_to_do(
        tmp_path, build, remedy):
    """It first says what the file has, and what the first file has."""
    paths = []
    for names in ('xy', 'xyz'):
        path = tmp_path / names
        paths.append(path)
        if build is CSVDataset:
            path.write_text(','.join(names) + '\n')
        elif build is NPYDataset:
            with open(path, 'wb') as stream:
                numpy.savez(stream, **{name: [1] for name in names})
        else:
            with h5py.File(path, 'w') as file:
                file.update({name: [1] for name in names})
    with pytest.raises(ValueError, match=(
            r"xyz'? has an? \w+ 'z', and .*xy'? has none: .*, got "
            r"\['x', 'y', 'z'\] in the place of \['x', 'y'\]; .*" + remedy)):
        build(paths)


@pytest.mark.parametrize('build', [
    CSVDataset, JSONLDataset, NPYDataset, HDF5Dataset])
def test_folder_in_the_place_of_a_file_is_said_to_be_one(tmp_path, build):
    """A name without a file is an error, too."""
    with pytest.raises(IsADirectoryError, match='is a folder: name .* in it'):
        build(tmp_path)
    with pytest.raises(FileNotFoundError, match='there is no .*file .*none'):
        build(tmp_path / 'none')


def test_arrays_in_folders_that_are_listed_name_what_reads_them(tmp_path):
    """The error names the call that joins their rows."""
    for name in ('a', 'b'):
        (tmp_path / name).mkdir()
        numpy.save(tmp_path / name / 'x.npy', [1, 2])
    with pytest.raises(ValueError, match='a folder, .*list the files in it'):
        fuel.load([tmp_path / 'a', tmp_path / 'b'])
    files = [tmp_path / name / 'x.npy' for name in ('a', 'b')]
    with pytest.raises(ValueError, match=r"NPYDataset\({'x': \[...\]}\)"):
        fuel.load(files)
    assert [1, 2, 1, 2] == NPYDataset({'x': files})[:][0].tolist()


@pytest.mark.parametrize('kind', ['csv', 'jsonl', 'npz', 'npy', 'dict'])
def test_states_are_of_files_in_their_order(tmp_path, kind):
    """A row of a state is one of its file; the folder may be another."""
    def write(folder):
        folder.mkdir()
        for name, rows in ('a', [0, 1]), ('b', [2, 3]):
            path = folder / name
            path.with_suffix('.csv').write_text('x\n{}\n{}\n'.format(*rows))
            path.with_suffix('.jsonl').write_text(''.join(
                f'{json.dumps({"x": row})}\n' for row in rows))
            numpy.savez(path.with_suffix('.npz'), x=rows)
            numpy.save(path.with_suffix('.npy'), rows)

    def stream(folder, names):
        ending = 'npy' if kind == 'dict' else kind
        paths = [folder / f'{name}.{ending}' for name in names]
        paths = paths[0] if len(paths) == 1 else paths
        make = {'csv': CSVDataset, 'jsonl': JSONLDataset}.get(kind, NPYDataset)
        dataset = make({'x': paths} if kind == 'dict' else paths)
        return DataStream(dataset, iteration_scheme=SequentialScheme(
            dataset.num_examples, 1))

    for folder in 'one', 'two':
        write(tmp_path / folder)
    states = {}
    for names in 'ab', 'a':
        epoch = stream(tmp_path / 'one', names).get_epoch_iterator()
        next(epoch)
        states[names] = epoch.state_dict()
    resumed = stream(tmp_path / 'two', 'ab')
    resumed.load_state_dict(states['ab'])
    assert [1, 2, 3] == [int(x[0]) for x, in resumed.get_epoch_iterator()]
    for others in 'ba', 'aa', 'bb':
        with pytest.raises(StateMismatchError, match='data set files'):
            stream(tmp_path / 'one', others).load_state_dict(states['ab'])
    assert [True, False] == [any(
        'files' in key for key in states[names]['stream'])
        for names in ('ab', 'a')]
    resumed = stream(tmp_path / 'two', 'b')
    resumed.load_state_dict(states['a'])
    assert [3] == [int(x[0]) for x, in resumed.get_epoch_iterator()]
