"""Vocabularies: built, saved, loaded, and never unpickled blindly."""
import collections
import gzip
import os
import pickle
import warnings

import numpy
import pytest

from fuel.datasets.text import TextFile
from fuel.datasets.vocabulary import (
    build_vocabulary,
    load_vocabulary,
    save_vocabulary,
)
from fuel.exceptions import UnknownTokenError

WORDS = {'<S>': 0, 'é': 1, 'a': 2}


@pytest.fixture
def sentences(tmp_path):
    """Return the names of two files, one of them compressed."""
    (tmp_path / 'a.txt').write_text('b a b\nc B d\n', encoding='utf-8')
    with gzip.open(tmp_path / 'b.gz', 'wt', encoding='utf-8') as file:
        file.write('c é c\n\n')
    return [str(tmp_path / 'a.txt'), tmp_path / 'b.gz']


def test_build_vocabulary_counts_and_orders(sentences):
    """The most frequent come first, equals in alphabetical order."""
    found = build_vocabulary(sentences)
    assert ['<S>', '</S>', '<UNK>', 'c', 'b', 'B', 'a', 'd', 'é'] == list(
        found.dictionary)
    assert list(range(9)) == list(found.dictionary.values())
    assert {'c': 3, 'b': 2, 'B': 1, 'a': 1, 'd': 1, 'é': 1} == found.counts
    assert (9, 0) == found[2:4]


def test_build_vocabulary_limits_leave_out_the_rare(sentences):
    """The limits are a size, a least count, and lower case."""
    found = build_vocabulary(sentences, size=5, preprocess=str.lower)
    assert {'<S>': 0, '</S>': 1, '<UNK>': 2, 'b': 3, 'c': 4} == (
        found.dictionary)
    assert (9, 3) == found[2:4]
    found = build_vocabulary(sentences, minimum_count=2, special_tokens=())
    assert {'c': 0, 'b': 1} == found.dictionary
    assert 4 == found.num_unknown


def test_build_vocabulary_of_characters(sentences):
    """White space counts inside a line."""
    found = build_vocabulary(sentences, level='character',
                             special_tokens=())
    assert {' ': 6, 'c': 3, 'b': 2, 'B': 1, 'a': 1, 'd': 1, 'é': 1} == (
        found.counts)


def test_build_vocabulary_knows_every_token_of_its_files(sentences):
    """A TextFile takes the result."""
    found = build_vocabulary(sentences)
    assert found.dictionary == TextFile(sentences, found).dictionary
    dataset = TextFile(sentences, found.dictionary, unk_token=None)
    with_markers = [sentence for sentence, in
                    dataset.get_example_stream().get_epoch_iterator()]
    assert [[0, 4, 6, 4, 1], [0, 3, 5, 7, 1], [0, 3, 8, 3, 1], [0, 1]] == (
        with_markers)


@pytest.mark.parametrize('kwargs, text', [
    ({'size': 2}, 'size must be at least 3'),
    ({'level': 'line'}, "'word' or 'character', got 'line'"),
    ({'files': 'a.txt'}, 'must be a list of names'),
    ({'special_tokens': '<UNK>'}, 'must be a tuple of tokens'),
])
def test_build_vocabulary_bad_argument_raises(sentences, kwargs, text):
    """Arguments are checked before anything is read."""
    with pytest.raises(ValueError, match=text):
        build_vocabulary(**{'files': sentences, **kwargs})
    for function in (load_vocabulary, lambda path: build_vocabulary([path])):
        with pytest.raises(FileNotFoundError, match=r"file 'none' \(looked"):
            function('none')


def test_save_vocabulary_round_trip(tmp_path):
    """A saved vocabulary is loaded again, also by a TextFile."""
    path = tmp_path / 'words.json'
    save_vocabulary(WORDS, path)
    assert WORDS == load_vocabulary(path)
    assert WORDS == TextFile(['x'], str(path), eos_token=None,
                             unk_token=None).dictionary
    with pytest.raises(ValueError, match='must end in .json'):
        save_vocabulary(WORDS, tmp_path / 'words.txt')
    with pytest.raises(ValueError, match="maps 'a' to 'b'"):
        save_vocabulary({'a': 'b'}, path)
    assert WORDS == load_vocabulary(path)


@pytest.mark.parametrize('name, content, expected', [
    ('a.json', b'{"a": 1, "\xc3\xa9": 0}', {'a': 1, 'é': 0}),
    ('a.json', b'["x", "y"]', {'x': 0, 'y': 1}),
    ('a.txt', 'x\né\n'.encode(), {'x': 0, 'é': 1}),
    # White space, and what separates lines elsewhere, may be tokens.
    ('a.txt', ' \r\n\x85\n\u2028\nx'.encode(),
     {' ': 0, '\x85': 1, '\u2028': 2, 'x': 3}),
    ('a.json', b'["x", " "]', {'x': 0, ' ': 1}),
    ('a.txt.gz', gzip.compress(b'x\ny', mtime=0), {'x': 0, 'y': 1}),
    ('a.pkl', pickle.dumps(WORDS), WORDS),
    ('a.pickle', pickle.dumps(WORDS, 0), WORDS),
    # As Python 2 pickled {'a': 1, 'b': 2L}.
    ('a.pkl', b"(dp0\nS'a'\np1\nI1\nsS'b'\np2\nL2L\ns.", {'a': 1, 'b': 2}),
])
def test_load_vocabulary_each_form(tmp_path, name, content, expected):
    """The forms are JSON, text, and plain pickles."""
    (tmp_path / name).write_bytes(content)
    assert expected == load_vocabulary(tmp_path / name)


class Evil:
    """Pickles as a call of os.mkdir."""

    def __reduce__(self):
        return os.mkdir, ('evil',)


@pytest.mark.parametrize('name, content, text', [
    ('a.pkl', pickle.dumps({'a': Evil()}), r'names (posix|nt)\.mkdir'),
    ('a.pkl', pickle.dumps(collections.OrderedDict(WORDS)),
     'collections.OrderedDict'),
    ('a.pkl', pickle.dumps(WORDS)[:-5], 'cannot be read'),
    ('a.pkl', b'text', 'cannot be read'),
    ('a.pkl', pickle.dumps({1: 2}), 'strings to integers, but maps 1 to 2'),
    ('a.pkl', pickle.dumps({'a': True}), "maps 'a' to True"),
    ('a.json', b'{"a": 1.5}', "maps 'a' to 1.5"),
    ('a.json', b'{', 'cannot be read as a vocabulary'),
    ('a.json', b'[' * 100000, 'cannot be read as a vocabulary'),
    ('a.json', b'3', 'holds 3 .int.'),
    ('a.txt', b'x\ny\nx\n', "'x' is there twice, as entry 1 and as entry 3"),
    ('a.txt', b'x\n\ny\n', "entry 2 is ''"),
    ('a.txt', b'x\n\xff\n', 'in line 2: a vocabulary must be UTF-8'),
])
def test_load_vocabulary_anything_else_is_an_error(
        tmp_path, monkeypatch, name, content, text):
    """Nothing that a file names is run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=text):
        load_vocabulary(name)
    assert not os.path.exists('evil')


def test_vocabulary_encodes_a_whole_text(sentences):
    """The text goes over lines; tokens may be given, too."""
    found = build_vocabulary(sentences)
    numbers = found.encode('b a\nno c')
    assert 'int64' == numbers.dtype
    assert [found.dictionary[token] for token in (
        'b', 'a', '<UNK>', 'c')] == numbers.tolist()
    assert numbers.tolist() == found.encode(
        iter(['b', 'a', 'no', 'c'])).tolist()
    for unk_token in (None, '<none>'):
        with pytest.raises(UnknownTokenError, match="'no' is not in"):
            found.encode('b no', unk_token=unk_token)
    letters = build_vocabulary(sentences, level='character')
    assert [letters.dictionary['b'], letters.dictionary['a']] == (
        letters.encode('ba\n').tolist())
    assert letters.encode(' b\r\n\n a \n', None).tolist() == (
        letters.encode('ba').tolist())


@pytest.mark.parametrize('level', ['word', 'character'])
@pytest.mark.parametrize('text', [
    'b a\n\n c a\n', 'b a\r\nc', 'b\rc a', 'b', '', '\n'])
@pytest.mark.parametrize('markers', [
    {}, {'bos_token': '<S>'}, {'eos_token': '</S>'},
    {'bos_token': '<S>', 'eos_token': '</S>'}], ids=list)
def test_encoded_text_is_what_a_text_file_reads(sentences, tmp_path, level,
                                                text, markers):
    """Lines are one after another, with the same tokens at their ends."""
    found = build_vocabulary(sentences, level=level)
    (tmp_path / 'text.txt').write_bytes(text.encode())
    dataset = TextFile([tmp_path / 'text.txt'], found, level=level, **{
        'bos_token': None, 'eos_token': None, **markers})
    expected = [number for line, in dataset.get_example_stream()
                for number in line]
    assert expected == found.encode(text, **markers).tolist()


def test_tokens_count_as_one_line(sentences):
    """Tokens are not split."""
    found = build_vocabulary(sentences)
    numbers = found.encode(iter(['b', 'a']), bos_token='<S>',
                           eos_token='</S>')
    assert ['<S>', 'b', 'a', '</S>'] == found.decode(numbers)
    with pytest.raises(ValueError, match="eos_token is '<END>', which is not"):
        found.encode('b', eos_token='<END>')


def test_decoded_numbers_are_the_tokens(sentences):
    """Arrays and lists of numbers will do, in one row."""
    found = build_vocabulary(sentences)
    assert ['b', '<UNK>', 'c'] == found.decode(found.encode('b no c'))
    assert ['<S>', 'b'] == found.decode([0, found.dictionary['b']])
    assert [] == found.decode([])
    with pytest.raises(ValueError, match='99 is not the number of any of the'):
        found.decode([0, 99])


@pytest.mark.parametrize('make_row', [list, tuple, numpy.array])
@pytest.mark.parametrize('lengths', [(2, 1), (0, 2), (2, 2)])
def test_batch_is_decoded_row_by_row(sentences, lengths, make_row):
    """Rows may have different lengths, as those of texts do."""
    found = build_vocabulary(sentences)
    rows = [make_row([0, found.dictionary['b']][:length])
            for length in lengths]
    batch = numpy.empty(len(rows), object)
    batch[:] = rows
    expected = [['<S>', 'b'][:length] for length in lengths]
    assert expected == found.decode(rows)
    assert expected == found.decode(batch)
    with pytest.raises(ValueError, match='99 is not the number of any of the'):
        found.decode([*rows, make_row([0, 99])])


def test_array_of_two_axes_is_decoded_row_by_row(sentences):
    """A padded batch is such an array."""
    found = build_vocabulary(sentences)
    assert [['<S>'], ['</S>']] == found.decode(numpy.array([[0], [1]]))


@pytest.mark.parametrize('counted, read, text', [
    ({}, {'preprocess': str.lower},
     'TextFile got a function preprocess, but build_vocabulary did not'),
    ({'preprocess': str.lower}, {},
     'build_vocabulary got a function preprocess, but TextFile did not'),
    ({}, {'level': 'character'}, "counted with level='word'")])
def test_text_file_warns_of_a_vocabulary_counted_otherwise(
        sentences, counted, read, text):
    """The tokens would be unknown, which nothing else shows."""
    found = build_vocabulary(sentences, **counted)
    with pytest.warns(UserWarning, match=text):
        TextFile(sentences, found, **read)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        TextFile(sentences, found.dictionary, **read)
        TextFile(sentences, build_vocabulary(sentences, **read), **read)


def test_size_without_room_for_a_token_is_warned_of(sentences):
    """The size includes the special tokens."""
    with pytest.warns(UserWarning, match='size is 3, and there are 3 special'):
        found = build_vocabulary(sentences, size=3)
    assert ['<S>', '</S>', '<UNK>'] == list(found.dictionary)
    assert 1 == len(build_vocabulary(
        sentences, size=1, special_tokens=()).dictionary)
