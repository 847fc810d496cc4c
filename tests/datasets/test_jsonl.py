"""Data sets in files of JSON lines."""
import json
import math
import os
import pickle
import warnings

import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from support.processes import count_in_little_memory
from support.range_server import serving

from fuel.datasets import JSONLDataset
from fuel.exceptions import DamagedFileError
from fuel.schemes import ShuffledScheme
from fuel.streams import DataStream
from fuel.transformers import MultiProcessing, Padding

INTEGERS = st.integers(-2 ** 63, 2 ** 63 - 1)
FLOATS = st.floats(allow_nan=False)
TEXTS = st.text(st.characters(exclude_categories=['Cs']), max_size=5)
# Values of a key in all records.
KINDS = st.sampled_from([
    INTEGERS, FLOATS, FLOATS | st.integers(-100, 100), st.booleans(), TEXTS,
    TEXTS | st.none(), FLOATS | st.none(),
    st.lists(INTEGERS, min_size=2, max_size=2), st.lists(FLOATS, max_size=3),
    st.lists(TEXTS, max_size=2),
    st.lists(st.lists(st.booleans(), min_size=2, max_size=2), max_size=2),
    st.lists(st.none() | INTEGERS | st.dictionaries(TEXTS, TEXTS),
             max_size=2)])
KEYS = st.text('abc', min_size=1, max_size=2)
DOCUMENTS = st.recursive(
    st.dictionaries(KEYS, KINDS, min_size=1, max_size=3),
    lambda kinds: st.dictionaries(KEYS, KINDS | kinds, min_size=1,
                                  max_size=3), max_leaves=4)


def records_of(kinds):
    """Return a strategy for records whose keys hold these kinds."""
    return st.fixed_dictionaries({
        key: records_of(kind) if isinstance(kind, dict) else kind
        for key, kind in kinds.items()})


def looked_up(record, path):
    """Return what is at a path of a record."""
    for key in path.split('/'):
        record = record[key]
    return record


def plain(value):
    """Return a value as JSON has it."""
    return value.tolist() if hasattr(value, 'tolist') else value


def agree(expected, found):
    """Return whether a value is that of a document; null may be NaN."""
    found = plain(found)
    if isinstance(expected, list):
        return (isinstance(found, list) and len(expected) == len(found)
                and all(map(agree, expected, found)))
    if expected is None:
        return found is None or math.isnan(found)
    # A column of numbers has one type, and null among them makes it floating.
    if isinstance(found, float) and type(expected) is int:
        return float(expected) == found
    return expected == found and isinstance(expected, bool) == isinstance(
        found, bool)


@pytest.mark.filterwarnings('ignore:.* does not hold ')
@settings(suppress_health_check=list(HealthCheck))
@given(kinds=DOCUMENTS, newline=st.sampled_from(['\n', '\r\n', '\n \n\n']),
       ascii_only=st.booleans(), mark=st.booleans(), data=st.data())
def test_rows_equal_what_the_json_module_loads(
        tmp_path_factory, kinds, newline, ascii_only, mark, data):
    """Fields lie at any depth and are of any kind; any request is made."""
    path = tmp_path_factory.getbasetemp() / 'any.jsonl'
    rows = data.draw(st.lists(records_of(kinds), min_size=1, max_size=8))
    with open(path, 'w', newline='', encoding=(
            'utf-8-sig' if mark else 'utf-8')) as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=ascii_only) + newline)
    dataset = JSONLDataset(path)
    assert len(rows) == dataset.num_examples
    row = st.integers(0, len(rows) - 1)
    low, high = sorted([data.draw(row), data.draw(row)])
    for request in (slice(low, high + 1),
                    data.draw(st.lists(row, min_size=1, max_size=10))):
        wanted = (rows[request] if isinstance(request, slice)
                  else [rows[one] for one in request])
        for source, found in zip(dataset.sources, dataset.get_data(
                None, request), strict=True):
            assert all(map(agree, [looked_up(one, source) for one in wanted],
                           found)), source
    for source, found in zip(dataset.sources, dataset.get_data(None, low),
                             strict=True):
        assert agree(looked_up(rows[low], source), found), source


@pytest.fixture
def path(tmp_path):
    """Return the path of a few records."""
    target = tmp_path / 'notes.jsonl'
    target.write_text(''.join(json.dumps(record) + '\n' for record in [
        {'n': 1, 'x': 0.5, 'ok': True, 'text': 'a', 'pair': [1, 2],
         'tokens': [5], 'meta': {'lang': 'en', 'size': None}},
        {'n': 2, 'x': 1, 'ok': False, 'text': None, 'pair': [3, 4],
         'tokens': [6, 7], 'meta': {'lang': 'de', 'size': 3}},
        {'n': 3, 'x': None, 'ok': True, 'text': 'c\n', 'pair': [5, 6],
         'tokens': [], 'meta': None}]))
    return target


def test_types_are_detected(path):
    """They are numbers, truth values, text, and lists of one length and of
    several."""
    dataset = JSONLDataset(path)
    assert ('n', 'x', 'ok', 'text', 'pair', 'tokens', 'meta/lang',
            'meta/size') == dataset.sources
    n, x, ok, text, pair, tokens, language, size = dataset.get_data(
        None, [2, 0])
    assert (n.dtype, n.tolist()) == (numpy.int64, [3, 1])
    assert_array_equal([numpy.nan, .5], x)
    assert (ok.dtype, ok.tolist()) == (bool, [True, True])
    assert ['c\n', 'a'] == text.tolist()
    assert (pair.dtype, pair.tolist()) == (numpy.int64, [[5, 6], [1, 2]])
    assert [[], [5]] == [part.tolist() for part in tokens]
    assert {numpy.dtype('int64')} == {part.dtype for part in tokens}
    assert [None, 'en'] == language.tolist()
    assert numpy.isnan(size).all()


def test_fields_become_sources_of_given_types(path):
    """Several are the second axis; objects may be had as they are."""
    dataset = JSONLDataset(
        path, {'both': ['n', 'x'], 't': 'tokens', 'all': 'meta',
               'pair': 'pair'},
        dtypes={'both': 'float32', 't': 'int16', 'pair': object})
    both, tokens, everything, pair = dataset.get_data(None, slice(0, 2))
    assert (both.dtype, both.tolist()) == (numpy.float32, [[1, .5], [2, 1]])
    assert [numpy.int16] * 2 == [part.dtype for part in tokens]
    assert {'lang': 'en', 'size': None} == everything[0]
    assert [1, 2] == pair[0]
    assert ('n', 'meta/size') == JSONLDataset(
        path, ['n', 'meta/size']).sources


def test_shapes_of_lists_may_be_given(path):
    """Lists of the first records may have one length by chance."""
    pair, = JSONLDataset(path, ['pair'], shapes={
        'pair': (None,)}).get_data(None, [0, 1])
    assert [[1, 2], [3, 4]] == [part.tolist() for part in pair]
    padded, mask = next(iter(Padding(DataStream(JSONLDataset(
        path, ['tokens']), batch_size=2))))
    assert ([[5, 0], [6, 7]], [[1, 0], [1, 1]]) == (
        padded.tolist(), mask.tolist())


def test_times_are_read_as_such(tmp_path):
    """A type `datetime64` reads texts as times; zones become UTC."""
    path = tmp_path / 'times.jsonl'
    path.write_text('{"t": "2024-02-29"}\n{"t": null}\n'
                    '{"t": "2024-02-29T01:30:00+02:00"}\n'
                    '{"t": "2024-02-29T01:30:00Z"}\n')
    times, = JSONLDataset(path, dtypes={'t': 'datetime64[m]'})[:]
    assert_array_equal(numpy.array([
        '2024-02-29T00:00', 'NaT', '2024-02-28T23:30', '2024-02-29T01:30'],
        'datetime64[m]'), times)


def test_keys_that_hold_a_slash(tmp_path):
    """Are named by it; two fields of one name are refused."""
    path = tmp_path / 'slashes.jsonl'
    path.write_text('{"a/b": 1, "c": {"d/e": 2}}\n')
    assert ([1], [2]) == tuple(map(list, JSONLDataset(path)[:]))
    path.write_text('{"a/b": 1, "a": {"b": 2}}\n')
    with pytest.raises(ValueError, match="two fields are called 'a/b'"):
        JSONLDataset(path)


def test_what_comes_back_is_the_callers_own(tmp_path):
    """Changing a value does not change repeated records or other sources."""
    path = tmp_path / 'own.jsonl'
    path.write_text('{"a": {"b": [{"c": 1}]}, "l": [1, 2]}\n')
    dataset = JSONLDataset(path, ['a', 'a/b', 'l'], shapes={'l': (None,)})
    first, second, lists = dataset.get_data(None, [0, 0])
    first[0]['b'][0]['c'] = second[0][0]['c'] = lists[0][0] = 9
    assert 1 == first[1]['b'][0]['c'] == second[1][0]['c'] == lists[1][0]


def test_missing_fields_may_be_null(tmp_path):
    """A field may be missing with `on_missing='null'`."""
    path = tmp_path / 'gaps.jsonl'
    path.write_text('{"a": 1, "b": {"c": "x"}}\n{"b": {}}\n{"a": 2}\n')
    a, c = JSONLDataset(path, on_missing='null')[:]
    assert_array_equal([1, numpy.nan, 2], a)
    assert ['x', None, None] == c.tolist()
    with pytest.raises(ValueError, match=(
            r"gaps\.jsonl, line 2: there is no field 'a', which source 'a' "
            r"reads: .*on_missing='null'")):
        JSONLDataset(path)
    # A field that is not used may be missing.
    path.write_text('{"a": 1, "b": 2}\n{"a": 2}\n')
    assert [1, 2] == JSONLDataset(path, sources=('a',))[:][0].tolist()


@given(rows=st.lists(st.tuples(
    st.none() | INTEGERS, st.none() | st.booleans(),
    st.none() | st.lists(st.integers(0, 9), max_size=2), st.none() | FLOATS),
    min_size=1, max_size=9))
@settings(suppress_health_check=list(HealthCheck))
def test_masks_tell_where_values_are(tmp_path_factory, rows):
    """Integers with gaps keep their digits, and truth values stay truth
    values."""
    path = tmp_path_factory.getbasetemp() / 'masks.jsonl'
    path.write_text(''.join(json.dumps(dict(
        zip('ibtf', row, strict=True))) + '\n' for row in rows))
    dataset = JSONLDataset(path, masks=tuple('ibtf'), dtypes={
        'i': int, 'b': bool, 't': int, 'f': float}, shapes={'t': (None,)})
    assert ('i', 'i_mask', 'b', 'b_mask', 't', 't_mask', 'f', 'f_mask') == (
        dataset.sources)
    blanks = [0, False, [], None]
    columns = zip(dataset[:][::2], dataset[:][1::2], zip(
        *rows, strict=True), blanks, strict=True)
    for values, mask, column, blank in columns:
        assert [value is not None for value in column] == mask.tolist()
        assert mask.dtype == bool
        assert all(agree(blank if value is None else value, found)
                   for value, found in zip(column, values, strict=True))


def test_integers_that_floats_round_warn(tmp_path):
    """Integers beside nulls are read as floats, in lists too."""
    path = tmp_path / 'ids.jsonl'
    for value in ('{}', '[{}, 1]'):
        path.write_text(
            f'{{"id": {value}}}\n'.replace('{}', str(2 ** 53 + 1))
            + f'{{"id": {value}}}\n'.replace('{}', 'null'))
        with pytest.warns(UserWarning, match="'id' is float64, ") as caught:
            JSONLDataset(path)
        assert __file__ == caught[0].filename


def test_types_of_sources_with_masks_are_detected(tmp_path):
    """The values that are there decide the types."""
    path = tmp_path / 'gaps.jsonl'
    path.write_text('{"n": null, "b": null, "m": 1, "p": [1, 2]}\n'
                    '{"n": 9007199254740993, "b": true, "m": null}\n')
    both = {'both': ['n', 'm'], 'n': 'n', 'b': 'b', 'p': 'p'}
    dataset = JSONLDataset(path, both, masks=('both', 'n', 'b', 'p'),
                           on_missing='null')
    rows = dict(zip(dataset.sources, dataset[:], strict=True))
    assert [0, 9007199254740993] == rows['n'].tolist()
    assert (bool, [False, True]) == (rows['b'].dtype, rows['b'].tolist())
    assert [[1, 2], [0, 0]] == rows['p'].tolist()
    assert [[False, True], [True, False]] == rows['both_mask'].tolist()
    assert (numpy.int64, [[0, 1], [9007199254740993, 0]]) == (
        rows['both'].dtype, rows['both'].tolist())
    assert bool == dataset.known_types()['n_mask'].dtype
    only, = JSONLDataset(path, both, masks='n', on_missing='null',
                         sources=('n_mask',))[:]
    assert [False, True] == only.tolist()
    with pytest.raises(ValueError, match="masks names 'q', but there is no"):
        JSONLDataset(path, both, masks=('q',), on_missing='null')
    with pytest.raises(ValueError, match='a source n_mask already'):
        JSONLDataset(path, {'n': 'n', 'n_mask': 'b'}, masks=('n',))


@pytest.mark.parametrize('second, options, message', [
    ('{"a": 1', {}, r'line 3: invalid JSON: .* at character \d'),
    ('{"a": 1} {"a": 2}', {}, 'line 3: invalid JSON: Extra data'),
    ('[1]', {}, 'line 3: each line must hold one object.*got a list'),
    *[(f'{{"x": {start * count}1{end * count}}}', {},
       'line 3: it is nested more than 200 levels deep')
      for start, end in ('[]', ('{"y": ', '}'))
      for count in (200, 450, 900, 10 ** 5)],
    ('{"a": "\xff"}', {}, "line 3: 'utf-8' codec can't decode"),
    ('{"b": 1}', {}, "line 3: there is no field 'a'"),
    ('{"a": "x"}', {}, ("line 3: source 'a' has \"x\", but 1 in line 1, .*"
     r"dtypes=\{'a': object\}")),
    ('{"a": null}', {'dtypes': {'a': int}},
     "line 3: source 'a' is int64 .*but here it is null"),
    ('{"a": 300}', {'dtypes': {'a': 'u1'}}, 'line 3: .*300 is outside of'),
    ('{"a": -1}', {'dtypes': {'a': 'u8'}}, 'line 3: .*-1 is outside of'),
    ('{"a": 18446744073709551616}', {'dtypes': {'a': int}},
     'line 3: .*outside of int64'),
    ('{"a": 1.5}', {'dtypes': {'a': int}}, 'line 3: .*1.5 is a number'),
    ('{"a": true}', {'dtypes': {'a': float}}, 'line 3: .*true is a truth'),
    ('{"a": 2}', {'columns': ['b']}, r"no field 'b' .*the fields are \['a'"),
    ('{"a": 2}', {'columns': ['a/b']}, "no field 'a/b'"),
    ('{"a": 2}', {'dtypes': {'b': int}}, "dtypes names 'b'"),
    ('{"a": 2}', {'shapes': {'b': (1,)}}, "shapes names 'b'"),
    ('{"a": 2}', {'on_missing': 'nan'}, "on_missing must be 'raise'"),
    ('{"a": 2}', {'which_sets': ('t',)}, "no split 't'"),
    ('{"a": 2, "t": "x"}', {'columns': {'x': ['t', 'a']},
                            'on_missing': 'null'}, 'must be numbers')])
def test_wrong_lines_are_told_with_file_and_line(
        tmp_path, second, options, message):
    """The error is raised on opening or on reading."""
    path = tmp_path / 'wrong.jsonl'
    path.write_text(f'{{"a": 1}}\n\n{second}\n', encoding='latin-1')
    with pytest.raises(ValueError, match=message) as caught:
        JSONLDataset(path, **options).get_data(None, [1, 0])
    assert 'line 3' not in message or (
        f'{path}, line 3: ' in str(caught.value))


@pytest.mark.parametrize('broken', [
    ('{"a": 1}, {"a": [2', '3]}'), ('{"a": 1} {"a": 2}',), ('{"a": [1',),
    ('{"a": 1}, null, {"a": 2}',), ('[1]',), ('1',), ('\ufeff{"a": 1}',)])
def test_each_line_is_an_object_by_itself(tmp_path, broken):
    """Lines that would be right together are refused."""
    path = tmp_path / 'joined.jsonl'
    path.write_text('\n'.join([*['{"a": 1}'] * 1000, *broken, '{"a": 3}']),
                    encoding='utf-8')
    dataset = JSONLDataset(path)
    with pytest.raises(ValueError, match='line 1001: .*must hold one object'):
        dataset.get_data(None, list(range(998, dataset.num_examples)))
    a, = dataset.get_data(None, [dataset.num_examples - 1, 0, 0])
    assert [3, 1, 1] == a.tolist()


@pytest.mark.parametrize('first, later, message', [
    ('1', '"x"', (r"line 1001: source 'a' is int64 \(by its first 1000 .*"
     r"\"x\" is text: pass dtypes=\{'a'")),
    ('"x"', '1', "line 1001: source 'a' is text .*1 is an integer"),
    ('[1, 2]', '[1, 2, 3]', (
        r"line 1001: source 'a' is int64 of shape \(2,\) .*\[1, 2, 3\] has "
        r"the shape \(3,\), and not \(2,\): .*shapes=\{'a': \(None, ")),
    ('[[1, 2]]', '[[1], [2, 3]]', 'has lists of different lengths'),
    ('[1, 2]', '7', '7 is an integer, and no list'),
    ('[1, 2]', 'null', 'here it is null')])
def test_value_that_belies_the_first_ones_is_told(
        tmp_path, first, later, message):
    """The type was found by the first thousand."""
    path = tmp_path / 'late.jsonl'
    path.write_text(f'{{"a": {first}}}\n' * 1000 + f'{{"a": {later}}}\n')
    dataset = JSONLDataset(path)
    with pytest.raises(ValueError, match=message):
        dataset.get_data(None, [1000, 3])


@pytest.mark.parametrize('text', ['', '\n \t\r\n'])
def test_file_without_records(tmp_path, text):
    """Is an error, as are a missing and a compressed one."""
    path = tmp_path / 'none.jsonl'
    path.write_text(text)
    with pytest.raises(ValueError, match=r'none\.jsonl is empty'):
        JSONLDataset(path)
    with pytest.raises(FileNotFoundError, match='no JSON lines file .*gone'):
        JSONLDataset(os.fspath(tmp_path / 'gone.jsonl'))
    path.rename(tmp_path / 'none.jsonl.gz')
    with pytest.raises(ValueError, match='is compressed.*decompress it'):
        JSONLDataset(tmp_path / 'none.jsonl.gz')
    (tmp_path / 'bare.jsonl').write_text('{}\n')
    with pytest.raises(ValueError, match='has no fields'):
        JSONLDataset(tmp_path / 'bare.jsonl')


def test_stream_resumes_and_pickles(path):
    """A pickle holds the path; the state, the position."""
    def build():
        return DataStream(JSONLDataset(path, ['n']),
                          iteration_scheme=ShuffledScheme(3, 1))

    stream = build()
    epoch = stream.get_epoch_iterator()
    next(epoch)
    resumed = build()
    resumed.load_state_dict(stream.state_dict())
    copy = pickle.loads(pickle.dumps(epoch))
    for parts in zip(epoch, copy, resumed.get_epoch_iterator(), strict=True):
        assert 1 == len({int(part[0]) for part, in parts})
    assert len(pickle.dumps(JSONLDataset(path))) < 3000


def test_workers_and_urls_give_the_same(path, tmp_path):
    """Each opens the file by itself."""
    expected = [n.tolist() for n, in DataStream(
        JSONLDataset(path, ['n']), batch_size=2)]
    with serving(tmp_path) as server:
        for where in (path, server.url(path.name)):
            stream = DataStream(JSONLDataset(where, ['n']), batch_size=2)
            assert expected == [n.tolist() for n, in MultiProcessing(stream)]


def test_file_changed_while_in_use_is_an_error(path):
    """Old and new records are not mixed."""
    dataset = JSONLDataset(path)
    with open(path, 'a', encoding='ascii') as file:
        file.write('{"n": 4}\n')
    with pytest.raises(DamagedFileError, match=r'notes\.jsonl had'):
        dataset.get_data(None, [0])


def test_file_larger_than_the_memory_allowed(tmp_path):
    """Memory holds only the starts of records, and the records of a
    request."""
    path = tmp_path / 'large.jsonl'
    row = ', '.join(['0.123456'] * 255)
    with path.open('w') as file:
        for number in range(32768):
            file.write(f'{{"number": {number}, "x": [{row}]}}\n')
    assert path.stat().st_size > 70 << 20
    status, output, errors = count_in_little_memory(
        'JSONLDataset', path)
    assert (status, output) == (0, b'3840\n'), errors


def test_null_among_truth_values_names_the_masks(tmp_path):
    """The null may be among the first records, which decide the type."""
    path = tmp_path / 'a.jsonl'
    path.write_text('{"a": true}\n{"a": null}\n')
    dataset = JSONLDataset(path)
    with pytest.raises(ValueError, match=(
            r"line 2: source 'a' is bool \(by its first 1000 values, but for "
            r"null, .*it is null: pass .*masks=\('a',\), for a source a_mask"
            )):
        dataset[:]
    a, there = JSONLDataset(path, masks='a')[:]
    assert ([True, False], [True, False]) == (a.tolist(), there.tolist())


@pytest.mark.parametrize('broken', [
    '{"a": 1', '[1]', '\xff', '{"a": 1}}', '[' * 300 + ']' * 300])
@pytest.mark.parametrize('options', [{}, {'dtypes': {'a': 'float32'}}])
def test_broken_lines_among_the_first_are_left_to_the_stage(
        tmp_path, broken, options):
    """Types come of the lines that can be parsed."""
    path = tmp_path / 'broken.jsonl'
    lines = [f'{{"a": {number}}}' for number in range(500)]
    lines[7] = lines[499] = broken
    path.write_text('\n'.join(lines) + '\n', encoding='latin-1')
    dataset = JSONLDataset(path, **options)
    assert options.get('dtypes', {'a': 'int64'})['a'] == (
        dataset.known_types()['a'].dtype)
    stream = DataStream(dataset, batch_size=10, on_error='skip')
    numbers = [number for a, in stream for number in a.tolist()]
    assert [number for number in range(499) if number != 7] == numbers
    with pytest.raises(ValueError, match=r'broken\.jsonl, line 8: '):
        dataset.get_data(None, [6, 7])


def test_file_of_mostly_broken_lines_is_refused(tmp_path):
    """A file whose first line is broken is refused too."""
    path = tmp_path / 'broken.jsonl'
    path.write_text('{"a": 1}\n' * 4 + 'x\n' * 4)
    assert 8 == JSONLDataset(path).num_examples
    for text, line in (('{"a": 1}\n' * 4 + 'x\n' * 5, 5),
                       ('x\n' + '{"a": 1}\n' * 900, 1)):
        path.write_text(text)
        with pytest.raises(ValueError, match=f'line {line}: invalid JSON'):
            JSONLDataset(path)


@pytest.mark.parametrize('value', ['{}', '[{}, 1]', '[[{}], [1]]'])
def test_integers_that_floats_round_warn_behind_the_first_records(
        tmp_path, value):
    """The warning comes once, on reading, unless the type was given."""
    path = tmp_path / 'ids.jsonl'
    later = value.replace('{}', str(2 ** 53 + 1))
    path.write_text(
        f'{{"id": {value}}}\n'.replace('{}', '0.5') * 1000
        + f'{{"id": {later}}}\n')
    dataset = JSONLDataset(path)
    with pytest.warns(UserWarning, match=(
            "'id' is float64, .*9007199254740993 exactly")) as caught:
        dataset.get_data(None, [1000])
    assert (1, __file__) == (len(caught), caught[0].filename)
    given = JSONLDataset(path, dtypes={'id': float})
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        given.get_data(None, [1000])
        dataset.get_data(None, [999, 1000])


@pytest.mark.parametrize('large', [
    2 ** 63 + 1, -2 ** 63 - 1, [2 ** 63 + 1], [[2 ** 64], [-1]]])
def test_integers_beyond_int64_are_floating_numbers(tmp_path, large):
    """Rounded integers give a warning, as in CSV."""
    small = numpy.zeros(numpy.shape(large), int).tolist()
    path = tmp_path / 'x.jsonl'
    path.write_text(''.join(
        json.dumps({'x': value}) + '\n' for value in (large, small)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        found, = JSONLDataset(path)[:]
    assert numpy.dtype('f8') == found.dtype
    assert numpy.array([large, small], float).tolist() == found.tolist()
    assert (2 ** 64 not in numpy.ravel(numpy.array(large, object))) == any(
        'x' in str(one.message) for one in caught)
