"""Files of JSON lines as HDF5 files."""
import json
import random
import re

import h5py
import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import fuel
from fuel.bin import fuel_convert
from fuel.datasets import JSONLDataset

RECORDS = [
    {'n': 1, 'x': .5, 'ok': True, 'pair': [1, 2], 'tokens': [5],
     'kind': 'b', 'meta': {'lang': 'en', 'size': None}, 'tags': ['x']},
    {'n': 2, 'x': 1, 'ok': False, 'pair': [3, 4], 'tokens': [6, 7],
     'kind': 'a', 'meta': {'lang': 'd\xe9', 'size': 3}, 'tags': []},
    {'n': 3, 'x': 2.5, 'ok': True, 'pair': [5, 6], 'tokens': [],
     'kind': 'b', 'meta': {'lang': None, 'size': 4}, 'tags': []}]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Be in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(records, name='notes.jsonl'):
    """Write a file of JSON lines."""
    with open(name, 'w', encoding='utf-8') as file:
        for record in records:
            print(json.dumps(record), file=file)


def convert(*arguments):
    """Convert the file; return the data set of a split."""
    assert 0 == fuel_convert.main(['jsonl', 'notes.jsonl', *arguments])
    return fuel.load('notes.hdf5', split='all')


def test_fields_become_sources_of_their_types(here):
    """Nested ones too; text is UTF-8, and lists keep their lengths."""
    write(RECORDS)
    dataset = convert('--ignore', 'tags')
    assert {'n', 'x', 'ok', 'pair', 'tokens', 'kind', 'meta_lang',
            'meta_size', 'meta_size_mask'} == {*dataset.sources}
    found = dict(zip(dataset.sources, dataset[:], strict=True))
    assert (numpy.int64, numpy.float64, bool) == tuple(
        found[name].dtype for name in ('n', 'x', 'ok'))
    assert [1, 2, 3] == found['n'].tolist()
    assert [[1, 2], [3, 4], [5, 6]] == found['pair'].tolist()
    assert [[5], [6, 7], []] == [part.tolist() for part in found['tokens']]
    assert ['en', 'd\xe9', ''] == [
        text.decode() for text in found['meta_lang']]
    assert [0, 3, 4] == found['meta_size'].tolist()
    assert [False, True, True] == found['meta_size_mask'].tolist()


def test_target_and_sources_are_chosen(here, capsys):
    """Classes are numbered in alphabetical order, and named."""
    write(RECORDS)
    dataset = convert('--source', 'features=n,x', '--source',
                      'lang=meta/lang', '--target', 'kind')
    assert 'notes.hdf5' in capsys.readouterr().err
    features, lang, targets = (dict(zip(
        dataset.sources, dataset[:], strict=True))[name]
        for name in ('features', 'lang', 'targets'))
    assert [[1, .5], [2, 1], [3, 2.5]] == features.tolist()
    assert b'en' == lang[0]
    assert [[1], [0], [1]] == targets.tolist()
    assert ('a', 'b') == dataset.class_names
    numbers = convert('--source', 'x', '--target', 'n')
    assert [[1], [2], [3]] == dict(zip(
        numbers.sources, numbers[:], strict=True))['targets'].tolist()


def most_frequent(values):
    """Return the least of the most frequent values."""
    return min(values, key=lambda value: (-values.count(value), value))


def with_gaps(seed):
    """Return random records with gaps; the first has none."""
    rng = random.Random(seed)
    kinds = {'i': lambda: rng.randint(-9, 9), 'f': lambda: rng.gauss(0, 9),
             'b': lambda: rng.random() < .5, 't': lambda: rng.choice(
                 ['', 'a', 'b']),
             'l': lambda: [1] * rng.randint(0, 2)}
    return [{'n': n, **{
        name: kind() if not n or rng.random() < .7 else None
        for name, kind in kinds.items()}} for n in range(40)]


@pytest.mark.parametrize('fill', ['mean', 'median', 'most-frequent'])
@pytest.mark.parametrize('seed', range(3))
def test_missing_values_are_filled_as_the_training_split_says(
        here, fill, seed):
    """Values of the test split do not count; lists stay as they are."""
    rows = with_gaps(seed)
    write(rows)
    convert('--hold-out', 'test=0.25', '--seed', str(seed), '--fill',
            fill).close(None)
    dataset = fuel.load('notes.hdf5', split='train', sources=('n',))
    train = dataset[:][0].tolist()
    assert 30 == len(train)
    dataset.close(None)
    everything = fuel.load('notes.hdf5', split='all')
    found = dict(zip(everything.sources, everything[:], strict=True))
    everything.close(None)
    assert {*'ifbtln'} == {*found}
    statistic = {'mean': numpy.mean, 'median': numpy.median}
    for name in 'ifbt':
        present = [rows[n][name] for n in train
                   if rows[n][name] not in (None, '')]
        wanted = (statistic[fill](present) if name in 'if' and (
            fill in statistic) else most_frequent(present))
        for n, value in zip(found['n'], plain(found[name]), strict=True):
            given_ = rows[n][name]
            expected = wanted if given_ in (None, '') else given_
            assert value == (pytest.approx(expected, abs=1e-9) if isinstance(
                expected, float) else expected)
    for n, value in zip(found['n'], plain(found['l']), strict=True):
        assert (rows[n]['l'] or []) == value


def test_missing_values_may_be_given(here, capsys):
    """The value fits all of them, and the file keeps it."""
    write([{'i': None, 'x': 1.5}, {'i': 3, 'x': None}])
    found = convert('--fill', '-1')
    assert [[-1, 3], [1.5, -1]] == [part.tolist() for part in found[:]]
    assert ('int64', 'float64') == tuple(part.dtype for part in found[:])
    with h5py.File('notes.hdf5') as h5file:
        assert [-1] == json.loads(h5file['i'].attrs['fill_values'])
    found.close(None)
    assert 'float64' == convert('--fill', '.5')[:][0].dtype
    capsys.readouterr()
    for fill, text in (('none', "--fill none is not a valid value for 'i'"),
                       ('nan', 'finite')):
        with pytest.raises(SystemExit):
            fuel_convert.main(['jsonl', 'notes.jsonl', '--fill', fill])
        assert text in capsys.readouterr().err


@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(rows=st.lists(st.tuples(
    st.integers(-2 ** 63, 2 ** 63 - 1), st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=['Cs'],
                          exclude_characters='\0'), max_size=4),
    st.lists(st.integers(0, 9), max_size=3)), min_size=4, max_size=30),
    seed=st.integers(0, 9))
def test_splits_hold_the_rows_of_the_file(here, rows, seed):
    """Each row is once in one split."""
    write([dict(zip('nfts', row, strict=True)) for row in rows])
    assert 0 == fuel_convert.main([
        'jsonl', 'notes.jsonl', '--hold-out', 'test=0.25', '--seed',
        str(seed)])
    found = []
    for split in ('train', 'test'):
        dataset = fuel.load('notes.hdf5', split=split)
        values = dict(zip(dataset.sources, dataset[:], strict=True))
        found += zip(*(plain(values[name]) for name in 'nfts'),
                     strict=True)
        dataset.close(None)
    assert sorted(map(repr, rows)) == sorted(map(repr, found))


def plain(values):
    """Return values as JSON has them."""
    return [value.tolist() if hasattr(value, 'tolist') else
            value.decode() if isinstance(value, bytes) else value
            for value in values]


def test_same_share_of_every_class_is_held_out(here):
    """The target decides the class."""
    write([{'x': n, 'kind': 'rare' if n % 5 == 0 else 'often'}
           for n in range(40)])
    convert('--target', 'kind', '--hold-out', 'test=0.25', '--stratify')
    targets = fuel.load('notes.hdf5', split='test', sources=('targets',))[:]
    assert [8, 2] == numpy.bincount(numpy.ravel(targets)).tolist()


@pytest.mark.parametrize('records, arguments, text', [
    (RECORDS, [], "source 'tags' has values such as \\['x'\\]"),
    ([{'a': None}], [], "source 'a' has no value in any example"),
    ([{'a': 1}, {'b': 1}], [], "line 2: there is no field 'a'"),
    ([{'a': 1}, {'a': 'x'}], [], "line 2: source 'a' has \"x\""),
    ([{'a': [[1], [2]]}, {'a': [[1]]}], [], "source 'a' has values such as"),
    ([{'a': 1}], ['--ignore', 'b'], "no field 'b' to leave out"),
    ([{'a': 1}], ['--ignore', 'a'], 'no field is left'),
    ([{'a': 1}], ['--source', 'x=b'], "no field 'b'"),
    ([{'a': 1}], ['--source', '=a'], 'expected SOURCE=COLUMN'),
    ([{'a': 1}, {'a': None}], ['--target', 'a'],
     'no value in 1 of 2 records, the first of them number 1, from 0'),
    ([{'a': {'b': [1]}}], ['--target', 'a'],
     'neither text nor numbers, such as'),
    ([{'a_b': 1, 'a': {'b': 1}}], [], "two fields would be .*'a_b'"),
    ([{'targets': 1, 'a': 2}], ['--target', 'a'], "two sources 'targets'"),
    ([{'a': 1}], ['--stratify'], 'needs a source called targets')])
def test_bad_input_is_explained(here, capsys, records, arguments, text):
    """The error has the line or the field; nothing is written."""
    write(records)
    with pytest.raises(SystemExit):
        fuel_convert.main(['jsonl', 'notes.jsonl', *arguments])
    error = capsys.readouterr().err
    assert re.search(text, error), error
    assert ['notes.jsonl'] == [path.name for path in here.iterdir()]


def test_fields_that_are_missing_may_be_null(here):
    """They are null in the data set, too."""
    write([{'a': 1.5, 'b': 'x'}, {'c': 2}])
    found = convert('--on-missing', 'null', '--ignore', 'c')
    assert_array_equal([1.5, numpy.nan], found[:][0])
    assert [b'x', b''] == [*found[:][1]]
    assert ('a', 'b', 'c') == JSONLDataset(
        'notes.jsonl', on_missing='null').sources


def test_fields_that_begin_late_are_told(here, caplog):
    """They are left out, as those of no value are without a word."""
    write([{'a': 1, 'b': {'c': 2}}] * 1000 + [
        {'a': 2, 'b': None, 'd': {'e': 'x'}, 'f': None, 'g': {}, 'h': 1}])
    with pytest.raises(SystemExit):
        convert('--ignore', 'f')
    dataset = convert('--ignore', 'h', '--on-missing', 'null')
    assert {'a', 'b_c', 'b_c_mask'} == {*dataset.sources}
    assert caplog.messages == [
        ("left out: field 'd/e', which has no value in the first 1000 "
         'records')]


@pytest.mark.parametrize('text', ['a\0b', '\ud800'])
def test_text_that_hdf5_does_not_store_is_refused(here, capsys, text):
    """The error has the name of its source."""
    write([{'a': 'x', 'b': 1}, {'a': text, 'b': 2}])
    with pytest.raises(SystemExit):
        convert()
    assert f"source 'a' has values such as {text!r}" in capsys.readouterr().err
    assert [1, 2] == convert('--ignore', 'a')[:][0].tolist()
