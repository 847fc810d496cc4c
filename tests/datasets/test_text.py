"""Text files: reading, compression, encodings, positions, errors."""
import bz2
import gzip
import json
import lzma
import os
import pickle
import re

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.resuming import assert_resumes

from fuel import config
from fuel.datasets import text_files
from fuel.datasets.billion import OneBillionWord
from fuel.datasets.text import TextFile
from fuel.exceptions import (DamagedFileError, StateMismatchError,
                             UnknownTokenError)
from fuel.schemes import ConstantScheme
from fuel.streams import DataStream
from fuel.transformers import Batch, Padding

WORDS = {'<UNK>': 0, '<S>': 1, '</S>': 2, 'this': 3, 'is': 4, 'a': 5,
         'sentence': 6, 'another': 7, 'one': 8, 'é': 9}
PLAIN = {'bos_token': None, 'eos_token': None}
OPENERS = {'': open, '.gz': gzip.open, '.bz2': bz2.open, '.xz': lzma.open}


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a text file and returns its name."""
    def write_file(name, text, encoding='utf-8'):
        path = tmp_path / name
        opener = OPENERS[path.suffix if path.suffix in OPENERS else '']
        with opener(path, 'wb') as file:
            file.write(text if isinstance(text, bytes)
                       else text.encode(encoding))
        return str(path)
    return write_file


def read(dataset):
    """Return all sentences of an epoch."""
    return [sentence for sentence, in
            DataStream(dataset).get_epoch_iterator()]


def test_text_file_words_become_numbers_with_markers(write):
    """Sentences are lists of integers between the two markers."""
    path = write('a.txt', 'this is a sentence\nthis another one\n')
    assert [[1, 3, 4, 5, 6, 2], [1, 3, 7, 8, 2]] == read(
        TextFile([path], WORDS))
    assert [[3, 4, 5, 6], [3, 7, 8]] == read(
        TextFile([path], WORDS, **PLAIN, unk_token=None))


def test_text_file_characters_are_those_of_the_stripped_line(write):
    """White space inside a line counts, around it not."""
    path = write('a.txt', '  ab a \n\nb')
    letters = {'a': 0, 'b': 1, ' ': 2, '<UNK>': 3}
    assert [[0, 1, 2, 0], [], [1]] == read(
        TextFile([path], letters, **PLAIN, level='character'))


def test_text_file_preprocess_gets_lines_with_their_ends(write):
    """The last line has an end only if the file has one."""
    seen = []

    def note(line):
        seen.append(line)
        return line.lower()

    paths = [write('a.txt', 'THIS\r\nis'), write('b.txt', 'A\n')]
    assert [[3], [4], [5]] == read(
        TextFile(paths, WORDS, **PLAIN, preprocess=note))
    assert {'THIS\n', 'is', 'A\n'} == set(seen)


@pytest.mark.parametrize('suffix', sorted(OPENERS))
@pytest.mark.parametrize('encoding', [None, 'utf-8', 'latin-1', 'utf-16'])
def test_text_file_compressed_words_are_known(
        write, suffix, encoding):
    """Compressed text is decoded before words are looked up."""
    path = write('a.txt' + suffix, 'é a\nb\n', encoding or 'utf-8')
    dataset = TextFile([path], WORDS, **PLAIN, encoding=encoding)
    assert [[9, 5], [0]] == read(dataset)
    # The encoding is kept by a pickle.
    assert [[9, 5], [0]] == read(pickle.loads(pickle.dumps(dataset)))


@pytest.mark.parametrize('suffix', sorted(OPENERS))
@pytest.mark.parametrize('encoding', ['utf-8', 'utf-16'])
def test_text_file_resumes_at_the_exact_line(
        write, suffix, encoding, monkeypatch):
    """It resumes at every line of several files, with small and large
    blocks."""
    paths = [write(f'{i}.txt{suffix}', text, encoding) for i, text in
             enumerate(['this is\na\n\nsentence\n', '', 'another one',
                        'é\r\nthis\r\n'])]
    assert_resumes(lambda: DataStream(TextFile(
        paths, WORDS, encoding=encoding)))
    for block in (1, 5):
        monkeypatch.setattr(text_files, 'BLOCK', block)
        assert_resumes(lambda: DataStream(TextFile(
            paths, WORDS, encoding=encoding)), num_epochs=1)


def test_text_file_state_does_not_depend_on_the_block_size(
        write, monkeypatch):
    """A state saved with one size of block is taken up with another."""
    path = write('a.txt', ''.join(f'{i}\n' for i in range(50)))
    vocabulary = {str(i): i for i in range(50)}

    def build():
        return DataStream(TextFile([path], vocabulary, **PLAIN,
                                   unk_token=None))

    for saved_with, taken_up_with in [(7, 100), (100, 7)]:
        monkeypatch.setattr(text_files, 'BLOCK', saved_with)
        stream = build()
        epoch = stream.get_epoch_iterator()
        for _ in range(30):
            next(epoch)
        state = json.loads(json.dumps(stream.state_dict()))
        monkeypatch.setattr(text_files, 'BLOCK', taken_up_with)
        restored = build()
        restored.load_state_dict(state)
        assert [([i],) for i in range(30, 50)] == list(
            restored.get_epoch_iterator())


@given(st.lists(st.text(st.characters(
    exclude_categories=['Cs'], exclude_characters='\r\n'), max_size=8)),
    st.booleans(), st.integers(1, 30),
    st.sampled_from(['utf-8', 'utf-16', 'utf-32-be']))
def test_text_file_any_text_is_split_as_python_splits_it(
        tmp_path_factory, lines, ends, block, encoding):
    """Lines end at line feeds alone, whatever other characters say."""
    text = '\n'.join(lines) + '\n' * ends
    path = tmp_path_factory.mktemp('text') / 'a.txt'
    path.write_bytes(text.encode(encoding))
    expected = text.split('\n')
    if not expected[-1]:
        expected.pop()
    seen = []
    dataset = TextFile([path], {'<UNK>': 0}, **PLAIN, encoding=encoding,
                       preprocess=lambda line: seen.append(line) or line)
    before, text_files.BLOCK = text_files.BLOCK, block
    try:
        sentences = read(dataset)
    finally:
        text_files.BLOCK = before
    assert [[0] * len(line.split()) for line in expected] == sentences
    assert expected == [line.removesuffix('\n') for line in seen]


def test_text_file_several_epochs_and_iterators(write):
    """Each epoch starts anew; two iterators do not disturb each other."""
    stream = DataStream(TextFile(
        [write('a.txt', 'a\nis\none\n')], WORDS, **PLAIN))
    expected = [([5],), ([4],), ([8],)]
    one, other = stream.get_epoch_iterator(), stream.get_epoch_iterator()
    assert expected[0] == next(one)
    assert expected == list(other)
    assert expected[1:] == list(one)
    assert expected == list(stream.get_epoch_iterator())
    abandoned = stream.get_epoch_iterator()
    next(abandoned)
    stream.reset()
    assert expected == list(stream.get_epoch_iterator())
    stream.close()


def test_text_file_examples_are_the_callers_own(write):
    """Writing into a sentence changes no other."""
    stream = DataStream(TextFile([write('a.txt', 'a\na\n')], WORDS))
    for _ in range(2):
        for sentence, in stream.get_epoch_iterator():
            assert [1, 5, 2] == sentence
            sentence[:] = [0]


def test_text_file_batches_are_padded(write):
    """The usual pipeline makes numbers, batches and padding."""
    stream = Padding(Batch(DataStream(TextFile(
        [write('a.txt', 'a\nthis is one\n\n')], WORDS, **PLAIN)),
        iteration_scheme=ConstantScheme(2)))
    (first, mask), (second, _) = stream.get_epoch_iterator()
    assert [[5, 0, 0], [3, 4, 8]] == first.tolist()
    assert [[1, 0, 0], [1, 1, 1]] == mask.tolist()
    assert (1, 0) == second.shape


def test_text_file_subclass_with_own_get_data_is_asked(write):
    """Reading ahead does not bypass a subclass."""
    class Reversed(TextFile):
        def get_data(self, state=None, request=None):
            sentence, = super().get_data(state, request)
            return sentence[::-1],

    assert [[2, 4, 3, 1], [2, 5, 1]] == read(Reversed(
        [write('a.txt', 'this is\na\n')], WORDS))


# -- errors

def test_text_file_unknown_token_names_file_and_line(write):
    """Sentences before it are handed out; reading can go on behind it."""
    path = write('a.txt', 'a\nis\nthis what one\na\n')
    epoch = DataStream(TextFile([path], WORDS, **PLAIN, unk_token=None)
                       ).get_epoch_iterator()
    assert [([5],), ([4],)] == [next(epoch), next(epoch)]
    with pytest.raises(UnknownTokenError, match=re.escape(
            f"{path}, line 3: 'what' is not in the dictionary of 10")):
        next(epoch)
    assert [([5],)] == list(epoch)
    assert issubclass(UnknownTokenError, KeyError)


@pytest.mark.parametrize('encoding', ['utf-8', 'ascii'])
def test_text_file_undecodable_bytes_name_file_and_line(
        write, encoding, monkeypatch):
    """The lines before are handed out, whatever the size of the blocks."""
    path = write('a.txt', b'a\nis\none\xff\na\n')
    for block in (1, 1000):
        monkeypatch.setattr(text_files, 'BLOCK', block)
        epoch = DataStream(TextFile([path], WORDS, encoding=encoding, **PLAIN)
                           ).get_epoch_iterator()
        assert [([5],), ([4],)] == [next(epoch), next(epoch)]
        for _ in range(2):
            with pytest.raises(ValueError, match=(
                    rf'a.txt, in line 3: the bytes .* are not {encoding}')):
                next(epoch)


@pytest.mark.parametrize('encoding, wrong', [
    ('utf-16', b'\x00\xdc'), ('utf-32', b'\xff\xff\xff\xff'),
    ('shift_jis', b'\xff'), ('gb18030', b'\xff'), ('utf-7', b'\xff')])
@pytest.mark.parametrize('block', [1, 7, 1000])
def test_text_file_undecodable_wide_text_names_file_and_line(
        write, encoding, wrong, block, monkeypatch):
    """Asked again it is an error again: nothing behind it is lost
    silently, though examples are read ahead."""
    monkeypatch.setattr(text_files, 'BLOCK', block)
    first, second = 'a\nis\r\na\rone'.encode(encoding), 'a\n' * 100
    mark = ''.encode(encoding)
    path = write('a.txt', first + wrong
                 + second.encode(encoding).removeprefix(mark))
    dataset = TextFile([path], WORDS, encoding=encoding)
    epoch = DataStream(dataset).get_epoch_iterator()
    message = f'a.txt, in line 4: the bytes .* are not {encoding}'
    with pytest.raises(ValueError, match=message):
        list(epoch)
    with pytest.raises(ValueError, match=message):
        next(epoch)


@pytest.mark.parametrize('encoding', ['utf-16', 'utf-32'])
def test_text_file_without_a_byte_order_mark_is_not_empty(
        write, encoding):
    """The codec's error is of another class, and raised only once."""
    path = write('a.txt', b'this is plain text\n')
    with pytest.raises(ValueError, match='a.txt, in line 1: the bytes'):
        read(TextFile([path], WORDS, encoding=encoding))


@pytest.mark.parametrize('suffix', ['.gz', '.bz2', '.xz'])
def test_text_file_cut_archive_is_an_error_that_names_it(write, suffix):
    """A file that was not copied completely is not a shorter text."""
    path = write('a.txt' + suffix, 'a\n' * 10000 + 'is one\n')
    with open(path, 'rb') as file:
        content = file.read()
    with open(path, 'wb') as file:
        file.write(content[:-12])
    with pytest.raises(DamagedFileError, match='a.txt.*cut or damaged'):
        read(TextFile([path], WORDS))
    with open(path, 'wb') as file:
        file.write(b'this is plain text')
    with pytest.raises(DamagedFileError, match='after line 0'):
        read(TextFile([path], WORDS))


@pytest.mark.parametrize('suffix, why', [
    ('.gz', 'CRC check failed'), ('.bz2', 'Invalid data stream'),
    ('.xz', 'Corrupt input data')])
def test_text_file_damaged_archive_says_so_each_time(write, suffix, why):
    """Reading on behind the damage would call the file cut."""
    path = write('a.txt' + suffix, 'a\n' * 10000 + 'is one\n')
    with open(path, 'r+b') as file:
        file.seek(-6, 2)
        byte = file.read(1)[0]
        file.seek(-6, 2)
        file.write(bytes([byte ^ 1]))
    epoch = DataStream(TextFile([path], WORDS)).get_epoch_iterator()
    for _ in range(2):
        with pytest.raises(DamagedFileError, match=why):
            list(epoch)


def test_text_file_shortened_since_the_state_was_saved_is_an_error(write):
    """A position behind the end of a file is not silently the end."""
    path = write('a.txt', 'a\nis\none\na\n')
    stream = DataStream(TextFile([path], WORDS))
    epoch = stream.get_epoch_iterator()
    for _ in range(3):
        next(epoch)
    state = stream.state_dict()
    epoch = stream = None
    write('a.txt', 'a\n')
    stream = DataStream(TextFile([path], WORDS))
    stream.load_state_dict(state)
    with pytest.raises(DamagedFileError, match='fewer lines than when'):
        next(stream.get_epoch_iterator())


@pytest.mark.parametrize('start', [3, 12, 10 ** 9])
@pytest.mark.parametrize('name, encoding', [
    ('a.txt', None), ('a.txt.gz', None), ('a.txt.bz2', None),
    ('a.txt', 'utf-16'), ('a.txt.xz', 'utf-16')])
def test_text_file_position_where_no_line_begins_is_an_error(
        write, name, encoding, start):
    """The rest of the file, or the next file, is not read instead."""
    text = 'a\nis\none\na\n'
    path = write(name, text.encode(encoding) if encoding else text)
    dataset = TextFile([path, write('b.txt', 'a\n')], WORDS,
                       encoding=encoding)
    with pytest.raises((ValueError, DamagedFileError),
                       match=f'a.txt.* no line that begins at {start}'):
        next(dataset.open_at(
            {'file': 0, 'start': start, 'line': 2, 'used': 0}))


def test_text_file_position_at_the_end_of_a_file_is_before_the_next(write):
    """The last line need not end in a line feed."""
    paths = [write('a.txt', 'a\nis'), write('b.txt', 'one\n')]
    dataset = TextFile(paths, WORDS)
    position = dataset.open_at({'file': 0, 'start': 4, 'line': 2, 'used': 0})
    assert read(TextFile(paths[1:], WORDS)) == [
        sentence for sentence, in position]


def test_state_behind_the_end_of_a_text_file_is_refused(write):
    """Loading it raises an error that names the field and the file."""
    path = write('a.txt', 'a\nis\n')
    stream = DataStream(TextFile([path], WORDS))
    next(stream.get_epoch_iterator())
    state = stream.state_dict()
    state['dataset']['start'] = 10 ** 6
    del state['crc']
    with pytest.raises(StateMismatchError, match="'dataset'.*a.txt has 5"):
        stream.load_state_dict(state)


def test_text_file_missing_file_is_named(write):
    """All files are looked for before any is read."""
    paths = [write('a.txt', 'a\n'), 'missing.txt']
    with pytest.raises(FileNotFoundError, match="text file 'missing.txt'"):
        DataStream(TextFile(paths, WORDS))


@pytest.mark.parametrize('kwargs, text', [
    ({'files': 'a.txt'}, r"list of names.*write \['a.txt'\]"),
    ({'files': []}, 'at least one text file'),
    ({'level': 'sentence'}, "level must be 'word' or 'character'"),
    ({'bos_token': '<BOS>'}, "bos_token is '<BOS>'.*bos_token=None"),
    ({'eos_token': '<EOS>'}, "eos_token is '<EOS>', which is not among"),
    ({'dictionary': {'a': 1}}, "bos_token is '<S>'"),
    ({'unk_token': 'x'}, "unk_token is 'x'"),
    ({'dictionary': 5}, 'must map tokens to integers'),
])
def test_text_file_bad_argument_raises_at_once(kwargs, text):
    """Arguments are checked before any file is looked for."""
    with pytest.raises(ValueError, match=text):
        TextFile(**{'files': ['a.txt'], 'dictionary': WORDS, **kwargs})
    with pytest.raises(LookupError, match='unknown encoding: klingon'):
        TextFile(['a.txt'], WORDS, encoding='klingon')


def test_text_file_preprocess_that_returns_no_string_is_named(write):
    """The error names the function that is to be mended."""
    path = write('a.txt', 'a b')
    with pytest.raises(TypeError, match='preprocess must return a string'):
        read(TextFile([path], WORDS, preprocess=str.split))


def test_text_file_takes_no_requests(write):
    """Text is read in order."""
    dataset = TextFile([write('a.txt', 'a\n')], WORDS)
    state = dataset.open()
    for arguments in ((state, [0]), (None, None)):
        with pytest.raises(ValueError, match='reads sentences in order'):
            dataset.get_data(*arguments)
    assert ([1, 5, 2],) == dataset.get_data(state)
    with pytest.raises(StopIteration):
        dataset.get_data(state)
    dataset.close(state)
    dataset.close(None)


@pytest.mark.parametrize('encoding', ['utf-8', 'utf-16'])
def test_text_file_of_one_endless_line_is_an_error(
        write, monkeypatch, encoding):
    """The line is not read into memory whole, however small compressed."""
    monkeypatch.setattr(text_files, 'LONGEST_LINE', 1 << 17)
    path = write('a.gz', 'a\n' + 'a ' * (1 << 20), encoding)
    epoch = DataStream(TextFile(
        [path], WORDS, encoding=encoding)).get_epoch_iterator()
    assert ([1, 5, 2],) == next(epoch)
    with pytest.raises(DamagedFileError, match=r'a.gz, in line 2: it is lon'):
        next(epoch)


@pytest.mark.parametrize('encoding', ['utf-8', 'utf-16'])
@pytest.mark.parametrize('block', [1, 2, 3, 7])
def test_text_file_carriage_returns_end_lines_in_every_block(
        write, monkeypatch, encoding, block):
    """A carriage return alone ends a line, without reading on."""
    monkeypatch.setattr(text_files, 'BLOCK', block)
    path = write('a.txt', 'a\r\na a\r\ra a a\r' * 3 + 'a', encoding)
    assert [1, 2, 0, 3] * 3 + [1] == [
        len(sentence) for sentence in read(TextFile(
            [path], WORDS, **PLAIN, encoding=encoding))]
    monkeypatch.setattr(text_files, 'BLOCK', 100 * block)
    monkeypatch.setattr(text_files, 'LONGEST_LINE', 1000)
    path = write('b.txt', 'a\r' * 5000, encoding)
    assert 5000 == len(read(TextFile([path], WORDS, encoding=encoding)))


# -- OneBillionWord

def test_one_billion_word_reads_its_partitions(own_home):
    """The files are found in the data path."""
    folder = own_home / 'data' / '1-billion-word'
    for name, number in (('training', 3), ('heldout', 0)):
        sub = folder / f'{name}-monolingual.tokenized.shuffled'
        sub.mkdir(parents=True)
        file = (f'news.en-{number:05d}-of-00100' if name == 'training'
                else f'news.en.heldout-{number:05d}-of-00050')
        (sub / file).write_text(f'{"a " * (number + 1)}\n')
    assert config.data_path == [str(own_home / 'data')]
    assert [[1, 5, 5, 5, 5, 2]] == read(
        OneBillionWord('training', [3], WORDS))
    assert [[1, 5, 2]] == read(
        OneBillionWord('heldout', [numpy.int64(0)], WORDS))


@pytest.mark.parametrize('which_set, partitions, text', [
    ('test', [1], "'training' or 'heldout', got 'test'"),
    ('training', [0], 'from 1 to 99, got 0'),
    ('training', [1, 100], 'from 1 to 99, got 100'),
    ('heldout', [50], 'from 0 to 49, got 50'),
    ('heldout', [1.5], 'from 0 to 49, got 1.5'),
])
def test_one_billion_word_bad_arguments_come_before_files(
        which_set, partitions, text):
    """Arguments are checked before the files are looked for."""
    with pytest.raises(ValueError, match=text):
        OneBillionWord(which_set, partitions, WORDS)


def test_one_billion_word_missing_files_are_an_os_error():
    """A file that is nowhere in the data path is named."""
    with pytest.raises(OSError, match='news.en-00001-of-00100'):
        OneBillionWord('training', [1], WORDS)


@pytest.mark.parametrize('name', ['a.txt', 'a.txt.gz'])
@pytest.mark.parametrize('how', ['overwritten', 'replaced'])
def test_epoch_over_a_text_that_changes_has_the_lines_of_one(
        tmp_path, name, how):
    """An overwritten file is an error; a replaced one is read to its end.
    The next epoch has the new lines."""
    def write(path, word):
        # Of one length, compressed or not, and longer than a block.
        content = f'{word}\n'.encode() * 100_000
        path.write_bytes(
            gzip.compress(content, 0) if name.endswith('.gz') else content)

    write(tmp_path / name, 'a')
    stream = DataStream(TextFile(
        [str(tmp_path / name)], {'a': 0, 'b': 1}, bos_token=None,
        eos_token=None, unk_token=None))
    epoch = stream.get_epoch_iterator()
    assert ([0],) == next(epoch)
    if how == 'overwritten':
        write(tmp_path / name, 'b')
        with pytest.raises(DamagedFileError, match='would be mixed'):
            list(epoch)
    else:
        write(tmp_path / 'new', 'b')
        os.replace(tmp_path / 'new', tmp_path / name)
        assert [([0],)] * 99_999 == list(epoch)
    assert [([1],)] * 100_000 == list(stream.get_epoch_iterator())
