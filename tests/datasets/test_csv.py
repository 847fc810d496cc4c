"""Data sets in CSV files."""
import csv
import os
import pickle
import re
import warnings

import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.fuel_calls import count_calls
from support.processes import count_in_little_memory

import fuel
from fuel.bin import fuel_convert
from fuel.datasets.csv import CSVDataset
from fuel.exceptions import DamagedFileError, StateMismatchError
from fuel.schemes import ShuffledScheme
from fuel.streams import DataStream

TEXTS = st.text(st.characters(exclude_categories=['Cs', 'Cc'])
                | st.sampled_from(['\n', '"', ',', ';']), max_size=5)


@settings(suppress_health_check=list(HealthCheck))
@given(rows=st.lists(st.tuples(
    st.integers(-2 ** 63, 2 ** 63 - 1),
    st.floats(allow_nan=False), TEXTS), min_size=1, max_size=20),
    delimiter=st.sampled_from(',;\t'), newline=st.sampled_from(['\n', '\r\n']),
    data=st.data())
def test_rows_equal_what_the_csv_module_wrote(
        tmp_path_factory, rows, delimiter, newline, data):
    """Cells have quotes, delimiters and line breaks; any request is made."""
    path = tmp_path_factory.getbasetemp() / 'any.csv'
    with open(path, 'w', newline='', encoding='utf-8') as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator=newline)
        writer.writerow(['number', 'real', 'text'])
        writer.writerows(rows)
    dataset = CSVDataset(path, delimiter=delimiter, dtypes={'text': object})
    assert len(rows) == dataset.num_examples
    row = st.integers(0, len(rows) - 1)
    low, high = sorted([data.draw(row), data.draw(row)])
    for request in (slice(low, high + 1),
                    data.draw(st.lists(row, min_size=1, max_size=10))):
        wanted = (rows[request] if isinstance(request, slice)
                  else [rows[one] for one in request])
        found = dataset.get_data(None, request)
        assert wanted == list(zip(*map(list, found), strict=True))
    assert rows[low] == dataset.get_data(None, low)


def test_columns_of_text_and_of_numbers_in_one_source_warn(tmp_path):
    """The warning on construction names the numbers that come as strings."""
    path = tmp_path / 'mixed.csv'
    path.write_text('size,width,kind,empty\n1,2.5,cat,\n2,3,dog,\n')
    columns = ['size', 'width', 'kind', 'empty']
    with pytest.warns(UserWarning, match=(
            r"mixed.csv: source 'features' has columns of text, \['kind'\], "
            r"so the numbers of its columns \['size', 'width'\] come as "
            r"strings too.*dtypes={'features': object}")) as caught:
        dataset = CSVDataset(path, {'features': columns})
    assert __file__ == caught[0].filename
    assert ['2', '3', 'dog', ''] == dataset[1][0].tolist()
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        CSVDataset(path, {'features': columns}, dtypes={'features': object})
        CSVDataset(path, {'features': columns[:2], 'targets': columns[2:]})
        CSVDataset(path)


@pytest.fixture
def path(tmp_path):
    """Return the path of a small table."""
    target = tmp_path / 'table.csv'
    target.write_text(
        'a,b,c,kind\n'
        '1,0.5,,"x, y"\n'
        '2,1,3,z\n'
        '\n'
        '3,nan,4,"two\nlines"\n'
        '4,1e3,5.5,""\n', encoding='utf-8')
    return target


def test_types_and_header_are_detected(path):
    """They are integers, floats with empty cells, and text."""
    dataset = CSVDataset(path)
    assert ('a', 'b', 'c', 'kind') == dataset.sources
    assert 4 == dataset.num_examples
    a, b, c, kind = dataset.get_data(None, [3, 0, 2])
    assert (a.dtype, a.tolist()) == (numpy.int64, [4, 1, 3])
    numpy.testing.assert_array_equal([1000, 0.5, numpy.nan], b)
    numpy.testing.assert_array_equal([5.5, numpy.nan, 4], c)
    assert ['', 'x, y', 'two\nlines'] == kind.tolist()


def test_columns_become_sources_of_given_types(path):
    """Several columns are the second axis; names or numbers."""
    dataset = CSVDataset(
        path, {'x': ['a', 2], 'y': 'kind'}, {'x': 'float32'})
    x, y = dataset.get_data(None, slice(1, 3))
    assert (x.dtype, x.tolist()) == (numpy.float32, [[2, 3], [3, 4]])
    assert ['z', 'two\nlines'] == y.tolist()
    x, y = dataset.get_data(None, 1)
    assert ([2, 3], 'z') == (x.tolist(), y)


@given(st.lists(st.tuples(
    st.datetimes(), st.booleans(), st.dates() | st.none()),
    min_size=1, max_size=9))
@settings(suppress_health_check=list(HealthCheck))
def test_times_and_truth_values_are_detected(tmp_path_factory, rows):
    """Values in the form of the standard library are detected."""
    path = tmp_path_factory.getbasetemp() / 'times.csv'
    path.write_text('when,ok,day\n' + ''.join(
        f'{when.isoformat()},{ok},{day or ""}\n' for when, ok, day in rows))
    when, ok, day = CSVDataset(path)[:]
    assert [when for when, _, _ in rows] == when.astype(
        'datetime64[us]').tolist()
    assert 'M' == when.dtype.kind
    assert (bool, [ok for _, ok, _ in rows]) == (ok.dtype, ok.tolist())
    days = [day for _, _, day in rows]
    if any(days):
        assert 'datetime64[D]' == day.dtype
        assert days == day.tolist()
    else:
        assert [''] * len(days) == day.tolist()


@pytest.mark.parametrize('text', [
    '"a\nx",b\n1,2\n', '\n"a\nx",b\n1,2\n'])
def test_byte_order_mark_is_not_part_of_a_cell(tmp_path, text):
    """The mark neither hides a quote nor makes a line of an empty one."""
    path = tmp_path / 'cells.csv'
    path.write_text(text, encoding='utf-8-sig')
    assert ('a\nx', 'b') == CSVDataset(path).sources


@pytest.mark.parametrize('cells, dtype', [
    (['2024-02-29', '2024-02-29 12:30'], 'datetime64[s]'),
    (['2024-02-30'], object), (['2024-2-3'], object), (['today'], object),
    (['2024-01-01', 'x'], object), (['true', 'no'], object),
    (['TRUE', 'False'], bool), (['true', ''], object), (['1', '0'], 'int64'),
    (['2024', '2023'], 'int64')])
def test_what_looks_like_a_time_or_truth_value(tmp_path, cells, dtype):
    """A type is detected only if all cells have it."""
    path = tmp_path / 'cells.csv'
    path.write_text('a,b\n' + ''.join(f'{cell},x\n' for cell in cells))
    assert numpy.dtype(dtype) == CSVDataset(path).dtypes['a']


@pytest.mark.parametrize('cell, dtype, text', [
    ('today', 'datetime64[D]', "line 3.*'today' is not a valid datetime64"),
    ('2024-01-01T12:30', 'datetime64[D]', 'line 3'),
    ('2024-13-01', 'datetime64[s]', 'line 3'),
    ('9999-01-01', 'datetime64[ns]', 'line 3')])
def test_cells_that_are_not_times_are_told(tmp_path, cell, dtype, text):
    """No cell is cut, and none becomes the current time."""
    path = tmp_path / 'cells.csv'
    path.write_text(f'a,b\n2024-01-01,1\n{cell},2\n')
    with pytest.raises(ValueError, match=text):
        CSVDataset(path, dtypes={'a': dtype})[:]
    path.write_text('a,b\n2024-01-01T12:30+02:00,1\n2024-01-01 00:00Z,2\n')
    times = CSVDataset(path, dtypes={'a': 'datetime64[s]'})[:][0]
    assert ['2024-01-01T10:30:00', '2024-01-01T00:00:00'] == [
        str(time) for time in times]


@pytest.mark.parametrize('fine', ['2024-01-01T00:00:00.123456789',
                                  '2024-01-01T00:00:00.000000000'])
def test_time_outside_of_the_range_is_told_beside_a_fine_one(tmp_path, fine):
    """NumPy parses both in the unit of the finer one, and says nothing."""
    path = tmp_path / 'cells.csv'
    path.write_text(f'a\n{fine}\n0001-01-01\n')
    with pytest.raises(ValueError, match="line 3.*'0001-01-01'"):
        CSVDataset(path, dtypes={'a': 'datetime64[ns]'})[:]
    path.write_text(f'a\n{fine}\n1969-12-31T23:59:59.9\n\n')
    times, = CSVDataset(path, dtypes={'a': 'datetime64[ns]'})[:]
    assert [fine, '1969-12-31T23:59:59.900000000'] == times.astype(
        str).tolist()


@pytest.mark.parametrize('text', ['{},\n,x\n', '{},\n1.5,x\n'])
@pytest.mark.parametrize('number', [2 ** 53 + 1, -2 ** 60 - 1, 10 ** 400])
def test_integers_that_floats_round_warn(tmp_path, text, number):
    """A column with missing or fractional cells is read as float64."""
    path = tmp_path / 'ids.csv'
    path.write_text('id,b\n' + text.format(number))
    with pytest.warns(UserWarning, match=(
            f"source 'id' is float64, .* hold {str(number)[:25]}")) as caught:
        CSVDataset(path)
    assert __file__ == caught[0].filename
    path.write_text('id,b\n' + text.format(2 ** 53))
    assert 2. ** 53 == CSVDataset(path)[0][0]


def test_masks_tell_where_cells_are(tmp_path):
    """Integers with gaps keep their digits."""
    path = tmp_path / 'gaps.csv'
    path.write_text('n,x,b,t\n9007199254740993,,,a\n ,2.5,true,\n')
    dataset = CSVDataset(path, masks=('n', 'b', 't'), dtypes={'b': bool})
    assert ('n', 'n_mask', 'x', 'b', 'b_mask', 't', 't_mask') == (
        dataset.sources)
    n, there, x, b, _, _, text = dataset[:]
    assert (numpy.int64, [9007199254740993, 0]) == (n.dtype, n.tolist())
    assert (bool, [True, False]) == (there.dtype, there.tolist())
    assert (2.5, [False, True], [True, False]) == (
        x[1], b.tolist(), text.tolist())
    path.write_text('n,x\n1,\n ,2.5\n')
    dataset = CSVDataset(path, {'both': ['n', 'x']}, masks='both')
    assert {'both': (2,), 'both_mask': (2,)} == {
        source: known.shape for source, known
        in dataset.known_types().items()}
    both, there = dataset[:]
    assert [[True, False], [False, True]] == there.tolist()
    assert numpy.isnan(both[0, 1])
    with pytest.raises(ValueError, match="masks names 'q'"):
        CSVDataset(path, masks=('q',))


def test_files_without_header_or_quotes(tmp_path):
    """Columns are numbered; quotes may be ordinary characters."""
    path = tmp_path / 'plain.csv'
    path.write_bytes(b'\xef\xbb\xbf1;true;5"\n2;0;6"')
    dataset = CSVDataset(path, delimiter=';', quote=None, header=False,
                         dtypes={'column_1': bool, 'column_0': 'u1'})
    numbers, truths, texts = dataset.get_data(None, [1, 0])
    assert (numbers.dtype, numbers.tolist()) == (numpy.uint8, [2, 1])
    assert [False, True] == truths.tolist()
    assert ['6"', '5"'] == texts.tolist()


def test_splits_are_ranges_or_lists(path):
    """Splits are given as for other files."""
    dataset = CSVDataset(path, which_sets=('b', 'a'),
                         splits={'a': (0, 2), 'b': [3]})
    assert [4, 1, 2] == dataset.get_data(None, slice(0, 3))[0].tolist()


def test_stream_resumes_and_pickles(path):
    """A pickle holds the path; the state, the position."""
    def build():
        return DataStream(CSVDataset(path, {'a': 'a'}),
                          iteration_scheme=ShuffledScheme(4, 1))

    stream = build()
    epoch = stream.get_epoch_iterator()
    next(epoch)
    resumed = build()
    resumed.load_state_dict(stream.state_dict())
    copy = pickle.loads(pickle.dumps(epoch))
    for parts in zip(epoch, copy, resumed.get_epoch_iterator(), strict=True):
        assert 1 == len({int(part[0]) for part, in parts})


def test_pickle_with_fewer_attributes_loads(path):
    """An earlier Fuel pickled such a data set."""
    dataset = CSVDataset(path, {'a': 'a', 'pair': ['a', 'a']}, masks=('a',))
    state = dataset.__getstate__()
    del state['_fields'], state['_types']
    former = CSVDataset.__new__(CSVDataset)
    former.__setstate__(state)
    assert dataset.known_types() == former.known_types()
    for part, same in zip(dataset.get_data(None, [1, 0]),
                          former.get_data(None, [1, 0]), strict=True):
        assert part.tolist() == same.tolist()


def test_file_larger_than_what_is_kept_is_read_by_records(tmp_path):
    """A batch costs its own lines, not the file."""
    path = tmp_path / 'long.csv'
    with open(path, 'w', encoding='ascii') as file:
        file.write('n,text\n')
        for number in range(20000):
            file.write(f'{number},{"x" * (number % 97)}\n')
    dataset = CSVDataset(path)
    rows = numpy.random.RandomState(0).randint(0, 20000, 300)
    n, text = dataset.get_data(None, rows)
    assert rows.tolist() == n.tolist()
    assert (rows % 97).tolist() == [len(one) for one in text]
    assert len(pickle.dumps(dataset)) < 3000


def test_file_changed_while_in_use_is_an_error(path):
    """Old and new records are not mixed."""
    dataset = CSVDataset(path)
    with open(path, 'a', encoding='ascii') as file:
        file.write('5,5,5,5\n')
    with pytest.raises(DamagedFileError, match='table.csv had'):
        dataset.get_data(None, [0])


@pytest.mark.parametrize('content', [
    'a,b,c,kind\n', 'a,b,c,kind\n"' + 'x' * 100, '\xff' * 200])
def test_change_that_cannot_be_parsed_is_told_as_a_change(path, content):
    """The error does not call it a mistake in the file."""
    dataset = CSVDataset(path)
    path.write_text(content, encoding='latin-1')
    with pytest.raises(DamagedFileError, match='table.csv had'):
        dataset.get_data(None, [3, 1])


@pytest.mark.parametrize('text, options, message', [
    ('a,b\n1,2\n3\n', {}, 'line 3: 2 cells are expected.*got 1'),
    ('a,b\n1,2\n"3,4\n', {}, 'line 3: a quoted cell begins'),
    ('a\n1\n300\n', {'dtypes': {'a': 'u1'}},
     r"line 3, column 0 \(a\): '300' is not a valid uint8"),
    ('a\n1\nmaybe\n', {'dtypes': {'a': bool}},
     "line 3.*'maybe' is not a valid bool"),
    ('a,b\n1,2\n,3\n', {'dtypes': {'a': int}},
     r"line 3.*'' is not a valid int64.*masks=\('a',\), for a source a_mask"),
    ('a,b\n1,2\n', {'columns': ['c']}, r"no column 'c'; .*\['a', 'b'\]"),
    ('a\n1\n\xe9\n', {'encoding': 'ascii'}, 'line 3: .*ascii'),
    ('', {}, 'is empty'),
    ('a,b\n', {}, 'no records'),
    ('a,a\n1,2\n', {}, 'two columns have one name'),
    ('a,b\n1,2\n', {'columns': {'x': 'c'}}, r"no column 'c'; .*\['a', 'b'\]"),
    ('a,a\n1,2\n', {'columns': {'x': 'a'}}, "2 columns 'a'; .*number"),
    ('a,b\n1,2\n', {'columns': {'x': 2}}, 'no column 2'),
    ('a,b\n1,2\n', {'dtypes': {'c': int}}, "names 'c'"),
    ('a,b\n1,2\n', {'which_sets': ('t',)}, "no split 't'"),
])
def test_wrong_files_are_told_with_file_and_line(
        tmp_path, text, options, message):
    """The error is raised on opening or on reading."""
    path = tmp_path / 'wrong.csv'
    path.write_text(text, encoding='utf-8')
    with pytest.raises(ValueError, match=message):
        CSVDataset(path, **options).get_data(None, [1, 0])
    with pytest.raises(ValueError, match=r'wrong\.csv|names|split'):
        CSVDataset(path, **options).get_data(None, [1, 0])


def test_cell_that_belies_the_first_ones_is_told(tmp_path):
    """The type was found by the first thousand."""
    path = tmp_path / 'late.csv'
    path.write_text('a\n' + '1\n' * 1000 + 'x\n', encoding='ascii')
    dataset = CSVDataset(path)
    with pytest.raises(ValueError, match=r"late\.csv, line 1002, column 0 "
                       r"\(a\): 'x' is not a valid int64.*pass dtypes=\{'a'"):
        dataset.get_data(None, [1000, 3])


def test_missing_file_is_told(tmp_path):
    """The error is FileNotFoundError."""
    with pytest.raises(FileNotFoundError, match=(
            'there is no CSV file .*none.csv')):
        CSVDataset(os.fspath(tmp_path / 'none.csv'))


def test_quotes_inside_of_cells_and_separators_of_unicode_are_text(tmp_path):
    """No record is cut, and none is lost, as the csv module has it."""
    path = tmp_path / 'a.csv'
    path.write_text(
        'a,b\n1,5" pipe\n2,z" k\n3,x\u2028y\n4,z\x0bw\n5,p\x85q\n'
        '6,"two\nlines, 3"" wide"\n7,1_000\n', encoding='utf-8', newline='')
    dataset = CSVDataset(path)
    numbers, texts = dataset.get_data(None, slice(None))
    assert [*range(1, 8)] == numbers.tolist()
    assert ['5" pipe', 'z" k', 'x\u2028y', 'z\x0bw', 'p\x85q',
            'two\nlines, 3" wide', '1_000'] == texts.tolist()


@pytest.mark.parametrize('text, options, message', [
    ('a,b\n1,2\r3,4\n', {}, 'line 2: a record begins'),
    ('a,b\n1,"x\n2"",y" z\n3,4\n', {}, 'line 2'),
    ('a,b\n1,"x\nend", 5" z\n3,4\n6,7"\n', {}, 'line 2'),
    ('a,b\n1,no\n3,longer\n', {'dtypes': {'b': 'U2'}},
     r"line 3, column 1 \(b\): 'longer' is not a valid <U2"),
    ('a,b\n1,no\n3,longer\n', {'dtypes': {'b': 'S2'}},
     r"line 3, column 1 \(b\): 'longer' is not a valid"),
    ('a,b\n1_0,2\n', {'dtypes': {'a': 'float32'}},
     "'1_0' is not a valid float32"),
])
def test_nothing_is_cut_or_lost_in_silence(tmp_path, text, options, message):
    """The error names the file and the line."""
    path = tmp_path / 'a.csv'
    path.write_text(text, newline='')
    with pytest.raises(ValueError, match=message):
        CSVDataset(path, **options).get_data(None, slice(None))


def test_file_larger_than_the_memory_allowed(tmp_path):
    """Memory holds only the starts of records, and the records of a
    request."""
    path = tmp_path / 'large.csv'
    row = ','.join(['0.123456'] * 255)
    with path.open('w') as file:
        for start in range(0, 32768, 256):
            file.writelines(f'{number},{row}\n'
                            for number in range(start, start + 256))
    assert path.stat().st_size > 70 << 20
    status, output, errors = count_in_little_memory(
        'CSVDataset', path, columns={'number': 0, 'x': [1, 255]})
    assert (status, output) == (0, b'3840\n'), errors


def test_list_of_columns_makes_a_source_of_each(tmp_path):
    """The list works as for JSON lines."""
    path = tmp_path / 'table.csv'
    path.write_text('a,b,c\n1,2,3\n4,5,6\n')
    dataset = CSVDataset(path, columns=['c', 'a'])
    assert ('c', 'a') == dataset.sources
    assert [[3, 6], [1, 4]] == [part.tolist() for part in dataset[:]]
    assert ('b',) == CSVDataset(path, columns='b').sources


@pytest.mark.parametrize('text, sources, rows', [
    (',age,income\n0,1.0,4.0\n1,2.0,5.0\n', ('index', 'age', 'income'), 2),
    (',kind\n0,cat\n1,dog\n', ('index', 'kind'), 2),
    (',0,1\n0,1.5,2\n1,2.5,3\n', ('index', '0', '1'), 2),
    ('0,1\n0.5,2\n', ('0', '1'), 1),
    (',index\n0,7\n', ('column_0', 'index'), 1),
    ('a,,2021\n1,2,3\n', ('a', 'column_1', '2021'), 1),
    ('0,1\n0,2\n1,2\n', ('column_0', 'column_1'), 3),
    ('NA,1\n2,3\n4,5\n', ('column_0', 'column_1'), 3),
    ('a,,b\nx,y,z\n', ('column_0', 'column_1', 'column_2'), 2),
    ('5.1,setosa\n6,other\n', ('column_0', 'column_1'), 2),
])
@pytest.mark.filterwarnings('ignore')
def test_header_is_found_where_cells_are_empty_or_numbers(
        tmp_path, text, sources, rows):
    """Headers of pandas are found; a first line of values is an example."""
    path = tmp_path / 'any.csv'
    path.write_text(text)
    dataset = CSVDataset(path)
    assert (sources, rows) == (dataset.sources, dataset.num_examples)
    dataset.renew()
    assert rows == len(dataset[:][0])


@pytest.mark.parametrize('text, warns', [
    ('5.1,unknown\n4.9,3.0\n', True), ('0,1\n0.5,2\n', True),
    (',0,1\n0,1.5,2\n', False), ('a,b\n1,2\n', False),
    ('1,2\n3,4\n', False)])
def test_header_that_may_be_an_example_warns(tmp_path, text, warns):
    """The example would be lost; an explicit argument gives no warning."""
    path = tmp_path / 'any.csv'
    path.write_text(text)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        dataset = CSVDataset(path)
        assert dataset.num_examples == len(dataset[:][0])
        for header in (True, False):
            CSVDataset(path, header=header, dtypes=dict.fromkeys(
                CSVDataset(path, header=header).sources, object))
    messages = [str(one.message) for one in caught]
    assert warns == any('header=False if it is an' in one
                        for one in messages)
    assert len(messages) == warns


@pytest.mark.parametrize('cells, options, expected', [
    (['4.0', ' NA', '6.0'], " missing=('NA',) if", [4, None, 6]),
    (['4', 'n/a', '?'], r"missing=('n/a', '?') if", [4, None, None]),
    (['2024-01-02', 'null'], " missing=('null',) if",
     ['2024-01-02', None]),
    (['true', 'NA'], " missing=('NA',) and masks=('x',) if", [True, False]),
])
def test_marks_of_missing_values_warn_and_are_named(
        tmp_path, cells, options, expected):
    """A column is text for them alone, and has its type without them."""
    path = tmp_path / 'gaps.csv'
    path.write_text('x,y\n' + ''.join(f'{cell},1\n' for cell in cells))
    with pytest.warns(UserWarning, match=(
            f"column 'x' is text because of .*{re.escape(options)}.*"
            r"dtypes=\{'x': object\}")) as caught:
        CSVDataset(path)
    assert __file__ == caught[0].filename
    assert cells == CSVDataset(path, dtypes={'x': object})[:][0].tolist()
    markers = [cell.strip() for cell in cells
               if cell.strip() in ('NA', 'n/a', '?', 'null')]
    dataset = CSVDataset(path, missing=markers,
                         masks='x' if expected[0] is True else ())
    found = dataset[:][0]
    for one, value in zip(found, expected, strict=True):
        assert (one != one if value is None
                else str(value) == str(one) or value == one)
    if expected[0] is True:
        assert [True, False] == dataset[:][1].tolist()


@pytest.mark.parametrize('cells, markers', [
    (['nan', 'true'], ('nan',)),
    (['1', 'nan', 'NA', '2'], ('nan', 'NA')),
    (['2024-02-29', 'nan'], ('nan',))], ids=str)
@pytest.mark.parametrize('length', [1, 300000], ids=['short', 'long'])
def test_markers_of_long_and_short_records_are_the_same(
        tmp_path, cells, markers, length):
    """Few records of many bytes are looked at together, and 'nan' alone is a
    number."""
    path = tmp_path / 'x.csv'
    path.write_text('x,y\n' + ''.join(
        f'{cell},{"a" * length}\n' for cell in cells))
    with pytest.warns(UserWarning, match="'x' is text") as caught:
        CSVDataset(path)
    assert f'pass missing={markers}' in str(caught[0].message)


def test_marks_later_than_the_first_cells_are_told(tmp_path):
    """The error names the argument, which makes NaN of them."""
    path = tmp_path / 'late.csv'
    path.write_text('a\n' + '1.5\n' * 1000 + 'NA\n')
    dataset = CSVDataset(path)
    with pytest.raises(ValueError, match=r"pass missing=\('NA',\), if"):
        dataset.get_data(None, [1000])
    assert numpy.isnan(
        CSVDataset(path, missing='NA').get_data(None, [1000])[0])


def test_integer_of_thousands_of_digits_is_infinite(tmp_path):
    """Python makes no integer of it; a warning says that it is rounded."""
    path = tmp_path / 'a.csv'
    path.write_text(f'x,y\n1,2\n{"9" * 5000},3\n')
    with pytest.warns(UserWarning, match="'x' is float64.*9{25} exactly"):
        dataset = CSVDataset(path)
    assert [1, numpy.inf] == dataset[:][0].tolist()


def test_long_cells_are_read(tmp_path):
    """Longer than Python's parser takes by itself, whose limit stays."""
    path, limit = tmp_path / 'a.csv', csv.field_size_limit()
    text = 'x' * (limit + 1)
    path.write_text(f'text,y\n{text},2\n"{text},\n",3\nshort,4\n')
    texts, numbers = CSVDataset(path)[:]
    assert [text, f'{text},\n', 'short'] == texts.tolist()
    assert [2, 3, 4] == numbers.tolist()
    assert limit == csv.field_size_limit()


def test_state_that_says_of_no_missing_texts_is_taken_up(tmp_path):
    """Such a state is of an earlier Fuel. A data set with missing texts
    refuses it."""
    path = tmp_path / 'numbers.csv'
    path.write_text('x\n1\n2\nNA\n')

    def build(**arguments):
        return DataStream(CSVDataset(
            path, dtypes={'x': object}, **arguments), batch_size=1)

    stream = build()
    next(iter(stream))
    state = stream.state_dict()
    del state['crc'], state['stream']['data set missing']
    resumed = build()
    resumed.load_state_dict(state)
    assert 2 == len(list(resumed.get_epoch_iterator()))
    with pytest.raises(StateMismatchError, match='missing'):
        build(missing='NA').load_state_dict(state)


@pytest.mark.parametrize('number', [2 ** 53 + 1, -2 ** 60 - 1])
def test_integers_that_floats_round_warn_behind_the_first_records(
        tmp_path, number):
    """The warning comes once, on reading, unless the type was given."""
    path = tmp_path / 'ids.csv'
    path.write_text('id,b\n' + '0.5,x\n' * 1000 + f'{number},x\n')
    dataset = CSVDataset(path)
    with pytest.warns(UserWarning, match=(
            f"source 'id' is float64, .* hold {number} exactly")) as caught:
        dataset.get_data(None, [1000])
    assert (1, __file__) == (len(caught), caught[0].filename)
    given = CSVDataset(path, dtypes={'id': float})
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        given.get_data(None, [1000])
        dataset.get_data(None, [999, 1000])


def test_bad_records_among_the_first_are_left_to_the_stage(tmp_path):
    """Types come of the records that can be parsed and have all cells."""
    path = tmp_path / 'bad.csv'
    rows = [f'{number},"x"' for number in range(500)]
    rows[7], rows[300] = '7,"x"y', 'one, more,2'
    path.write_text('a,b\n' + '\n'.join(rows) + '\n')
    dataset = CSVDataset(path)
    assert numpy.int64 == dataset.dtypes['a']
    stream = DataStream(dataset, batch_size=10, on_error='skip')
    assert [number for number in range(500) if number not in (7, 300)] == [
        number for a, _ in stream for number in a.tolist()]
    with pytest.raises(ValueError, match=r'bad\.csv, line 9: '):
        dataset.get_data(None, [6, 7])
    path.write_text('a,b\n1,2\n' + '7,"x"y\n' * 3)
    with pytest.raises(ValueError, match=r'bad\.csv, line 3: '):
        CSVDataset(path)


@pytest.mark.parametrize('mark', [b'', b'\xef\xbb\xbf'])
@pytest.mark.parametrize('ending', ['csv', 'tsv'])
def test_json_lines_under_the_name_of_a_table_are_recognised(
        tmp_path, mark, ending):
    """The function `load` recognises them by content; the class does not."""
    path = tmp_path / f'rows.{ending}'
    path.write_bytes(mark + b'{"a": 1, "b": "x"}\n{"a": 2, "b": "y"}\n')
    a, b = fuel.load(path)[:]
    assert ([1, 2], ['x', 'y']) == (a.tolist(), b.tolist())
    with pytest.raises(ValueError, match='holds JSON lines.*JSONLDataset'):
        CSVDataset(path)
    with pytest.raises(SystemExit):
        fuel_convert.main(['csv', str(path), '-o', str(tmp_path)])
    for text in ('{a},{b}\n1,2\n', '{"a"},{"b"}\n1,2\n', '{}\n1\n'):
        path.write_text(text.replace(',', ',' if ending == 'csv' else '\t'))
        assert 1 == fuel.load(path, header=True).num_examples


def test_cells_are_converted_by_columns(tmp_path):
    """A thousand rows call as many functions as forty."""
    counts = []
    for rows in (40, 1000):
        path = tmp_path / f'{rows}.csv'
        path.write_text('number,value,text,truth,time,gaps\n' + ''.join(
            f'{row},{row / 3},text {row},true,2024-02-29,{row % 2 or ""}\n'
            for row in range(rows)))
        dataset, opening = count_calls(lambda path=path: CSVDataset(path))
        batch, reading = count_calls(lambda dataset=dataset, rows=rows: (
            dataset.get_data(None, list(range(0, rows, 2)))))
        assert [rows // 2] * 6 == list(map(len, batch))
        counts.append((len(opening), len(reading)))
    (opening, reading), (opening_more, reading_more) = counts
    assert opening_more < opening + 100
    assert reading_more < reading + 100


def test_file_that_could_not_be_compared_is_compared_again(tmp_path):
    """Each epoch compares it: rows of other columns are not read."""
    path, new = tmp_path / 'a.csv', tmp_path / 'new.csv'

    def write(content):
        new.write_bytes(content)
        os.replace(new, path)

    write(b'x,y\n1,2\n3,4\n')
    stream = DataStream(CSVDataset(path), batch_size=2)
    assert [[1, 3], [2, 4]] == [
        part.tolist() for part in next(stream.get_epoch_iterator())]
    write(b'y,\xff\n1,2\n3,4\n')
    for _ in range(3):
        with pytest.raises(ValueError, match='a.csv, line 1'):
            next(stream.get_epoch_iterator())
    write(b'y,x\n1,2\n3,4\n')
    for _ in range(3):
        with pytest.raises(StateMismatchError, match='had the columns'):
            next(stream.get_epoch_iterator())
    write(b'x,y\n5,6\n7,8\n')
    assert [[5, 7], [6, 8]] == [
        part.tolist() for part in next(stream.get_epoch_iterator())]


@pytest.mark.parametrize('encoding', ['utf-16', 'utf-16-le', 'utf-32-be'])
def test_encoding_whose_lines_end_otherwise_is_refused(tmp_path, encoding):
    """The error has the command that converts the file."""
    path = tmp_path / 'x.csv'
    path.write_bytes('a,t\n1,\xe9\n2,\xf6\n'.encode(encoding))
    with pytest.raises(ValueError, match=f'iconv -f {encoding} -t utf-8'):
        CSVDataset(path, encoding=encoding)


def test_error_of_another_encoding_names_the_argument(tmp_path):
    """The argument makes the records readable."""
    path = tmp_path / 'x.csv'
    path.write_bytes('a,t\n1,\xe9\n2,\xf6\n'.encode('latin-1'))
    with pytest.raises(ValueError, match='line 2: .*encoding of the file as '):
        CSVDataset(path)
    assert ['\xe9', '\xf6'] == CSVDataset(path, encoding='latin-1')[:][
        1].tolist()


def test_digits_after_zeros_stay_as_text_if_asked_for(tmp_path):
    """The digits are integers by default, as the manual says."""
    path = tmp_path / 'x.csv'
    path.write_text('zip\n01234\n00501\n')
    assert [1234, 501] == CSVDataset(path)[:][0].tolist()
    assert ['01234', '00501'] == CSVDataset(
        path, dtypes={'zip': object})[:][0].tolist()
