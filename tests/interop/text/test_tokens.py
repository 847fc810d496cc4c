"""Texts become the tokens that the library tokenizers makes of them."""
import gzip
import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import h5py
import numpy
import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from support import token_files
from support.token_files import END, make_texts, write_json_lines

import fuel
from fuel.bin.fuel_convert import main
from fuel.converters import documents, tokens
from fuel.converters.tokens import convert_tokens
from fuel.datasets import Windows
from fuel.converters.base import BadInputFile
from fuel.schemes import ShuffledScheme
from fuel.streams import DataStream

TEXTS = make_texts(60)


@pytest.fixture(scope='module')
def trained(tmp_path_factory):
    """Return the path of a tokenizer, and the tokenizer."""
    path = tmp_path_factory.mktemp('tokenizer') / 'tokenizer.json'
    return str(path), token_files.train_tokenizer(path, TEXTS)


def documents_of(path, split='train'):
    """Return the documents of a converted file, as lists of tokens."""
    with h5py.File(path) as file:
        found, lengths = (file[f'{split}/{name}'][...] for name in (
            'tokens', 'document_lengths'))
    return [part.tolist() for part in numpy.split(
        found, lengths.cumsum()[:-1])]


def encoded(tokenizer, texts):
    """Return the tokens of each text, encoded by itself."""
    return [tokenizer.encode(text, add_special_tokens=False).ids
            for text in texts]


@pytest.mark.parametrize('piece', [1, 500, tokens.PIECE])
def test_json_lines_have_the_tokens_of_each_text(
        tmp_path, trained, monkeypatch, piece):
    """The number of texts that are encoded at once does not matter."""
    monkeypatch.setattr(tokens, 'PIECE', piece)
    write_json_lines(tmp_path / 'a.jsonl', TEXTS, 'body')
    with gzip.open(tmp_path / 'b.jsonl.gz', 'wt') as file:
        file.write('\n{"body": ""}\n' + json.dumps({'body': TEXTS[0]}))
    path, = convert_tokens(
        tmp_path, tmp_path, ['a.jsonl', 'b.jsonl.gz'], trained[0],
        field='body', end_token=END)
    end = trained[1].token_to_id(END)
    assert [[*document, end] for document in encoded(
        trained[1], [*TEXTS, TEXTS[0]])] == documents_of(path)


@pytest.mark.parametrize('documents, cut', [
    ('file', lambda text: [text]),
    ('line', lambda text: [line for line in re.split('\r?\n', text)
                           if line.strip()]),
    ('paragraph', lambda text: [part for part in re.split(
        r'(?:\r?\n[ \t]*)+(?:\r?\n)', text) if part.strip()])])
def test_texts_are_cut_into_documents(tmp_path, trained, documents, cut):
    """Documents keep their order, and the ends of lines within them."""
    texts = ['one\n\ntwo\r\nthree\r\n \n\nfour', '\n\nfive six\n\n\n',
             *(f'{text}\n' for text in TEXTS[:9])]
    names = [f'{number}.txt' for number in range(len(texts))]
    for name, text in zip(names, texts, strict=True):
        (tmp_path / name).write_bytes(text.encode())
    path, = convert_tokens(tmp_path, tmp_path, names, trained[0],
                           'out.hdf5', documents=documents)
    expected = [part for text in texts for part in cut(text)]
    if documents == 'paragraph':
        expected = [part.strip('\r\n') for part in expected]
        found = [trained[1].decode(document).strip('\r\n')
                 for document in documents_of(path)]
        assert expected == found
    else:
        assert encoded(trained[1], expected) == documents_of(path)


@given(texts=st.lists(st.text(min_size=1).filter(str.strip), min_size=1,
                      max_size=9), piece=st.integers(1, 30))
def test_any_text_comes_back(tmp_path_factory, trained, texts, piece):
    """The text may have any characters of UTF-8."""
    texts = [text.encode(errors='ignore').decode() or 'x' for text in texts]
    texts = [text for text in texts if text.strip()] or ['x']
    folder = tmp_path_factory.mktemp('any')
    write_json_lines(folder / 'a.jsonl', texts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokens, 'PIECE', piece)
        path, = convert_tokens(folder, folder, ['a.jsonl'], trained[0])
    assert texts == [trained[1].decode(document)
                     for document in documents_of(path)]


def test_documents_are_held_out_whole(tmp_path, trained):
    """Each is in one split, in the order of the file."""
    write_json_lines(tmp_path / 'a.jsonl', TEXTS)
    path, = convert_tokens(tmp_path, tmp_path, ['a.jsonl'], trained[0],
                           hold_out=[('valid', .25)], seed=3)
    train, valid = documents_of(path), documents_of(path, 'valid')
    assert 15 == len(valid)
    expected = encoded(trained[1], TEXTS)
    places = [expected.index(document) for document in train]
    assert sorted(places) == places
    assert sorted(train + valid) == sorted(expected)


def test_windows_lie_in_documents_and_resume(tmp_path, trained):
    """The file is opened by its name."""
    write_json_lines(tmp_path / 'a.jsonl', TEXTS)
    path, = convert_tokens(tmp_path, tmp_path, ['a.jsonl'], trained[0],
                           hold_out=[('valid', .1)])
    dataset = fuel.load(path, 'train')
    assert 'uint16' == dataset[[0]][0].dtype
    documents = documents_of(path)
    assert len(documents) == len(dataset.runs) - 1
    windows = Windows(dataset, 9, stride=8)
    known = [document[start:start + 9] for document in documents
             for start in range(0, len(document) - 8, 8)]
    assert known == [window.tolist() for window, in windows]
    stream = DataStream(windows, iteration_scheme=ShuffledScheme(
        len(windows), 4, seed=1))
    epoch = stream.get_epoch_iterator()
    next(epoch)
    state = stream.state_dict()
    rest = [batch.tolist() for batch, in epoch]
    again = DataStream(
        Windows(fuel.load(path, 'train'), 9, stride=8),
        iteration_scheme=ShuffledScheme(len(windows), 4, seed=1))
    again.load_state_dict(state)
    assert rest == [batch.tolist() for batch, in again.get_epoch_iterator()]


def test_tokenizer_comes_with_its_tokens(tmp_path, trained):
    """The file is enough to decode its tokens."""
    write_json_lines(tmp_path / 'a.jsonl', TEXTS)
    path, = convert_tokens(tmp_path, tmp_path, ['a.jsonl'], trained[0])
    with h5py.File(path) as file:
        stored = file['tokenizer'].asstr()[()]
    tokenizer = tokenizers.Tokenizer.from_str(stored)
    assert TEXTS[3] == tokenizer.decode(documents_of(path)[3])


@pytest.mark.parametrize('count', [1, 4])
def test_conversion_that_was_killed_goes_on(
        tmp_path, trained, monkeypatch, count):
    """The tokens there are of the same texts are not made again."""
    monkeypatch.setattr(tokens, 'PIECE', 200)
    write_json_lines(tmp_path / 'texts.jsonl', TEXTS)
    (tmp_path / 'tokenizer.json').write_bytes(Path(trained[0]).read_bytes())
    killed = subprocess.run(
        [sys.executable, token_files.__file__, str(tmp_path), str(count)],
        check=False, timeout=60, env={
            'PYTHONPATH': ':'.join(filter(None, sys.path))})
    assert -signal.SIGKILL == killed.returncode
    assert not (tmp_path / 'texts.hdf5').exists()
    encode, batches = tokens.Encoder.encode, []

    def counted(self, texts):
        batches.append(texts)
        return encode(self, texts)

    monkeypatch.setattr(tokens.Encoder, 'encode', counted)
    arguments = ['texts.jsonl'], str(tmp_path / 'tokenizer.json')
    path, = convert_tokens(tmp_path, tmp_path, *arguments)
    assert encoded(trained[1], TEXTS) == documents_of(path)
    resumed = len(batches)
    convert_tokens(tmp_path, tmp_path, *arguments)
    assert len(batches) == 2 * resumed + count
    assert ['texts.hdf5', 'texts.jsonl', 'tokenizer.json'] == sorted(
        path.name for path in tmp_path.iterdir())


def test_tokens_of_other_texts_are_not_taken(tmp_path, trained, monkeypatch):
    """Another version of the library gives another identity."""
    monkeypatch.setattr(tokens, 'PIECE', 200)
    write_json_lines(tmp_path / 'a.jsonl', TEXTS)
    with monkeypatch.context() as patch:
        patch.setattr(tokens, '_write', lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            convert_tokens(tmp_path, tmp_path, ['a.jsonl'], trained[0])
    write_json_lines(tmp_path / 'a.jsonl', TEXTS[::-1])
    path, = convert_tokens(tmp_path, tmp_path, ['a.jsonl'], trained[0])
    assert encoded(trained[1], TEXTS[::-1]) == documents_of(path)
    assert 2 == len(list(tmp_path.iterdir()))
    before = tokens.Encoder(trained[0], None).identity()
    monkeypatch.setattr(tokenizers, '__version__', '0.0')
    assert before != tokens.Encoder(trained[0], None).identity()


@pytest.mark.parametrize('content, arguments, text', [
    ('{"text": "a"}\n{"text": }\n', {}, 'line 2 is not valid JSON'),
    ('{"text": "a"}\n{"body": "b"}\n', {},
     "line 2 has no text 'text'; it has body: name another"),
    ('{"text": 3}\n', {}, "line 1 has no text 'text'"),
    ('["a"]\n', {}, 'line 1 has no text'),
    ('\n{"text": " "}\n', {}, 'there is no document'),
    (b'{"text": "\xff"}\n', {}, 'line 1 is not valid UTF-8'),
    ('{"text": "a \\ud800"}\n', {},
     'line 1 has text that is not valid UTF-8'),
    ('{"text": "a", "x": ' + '[' * 10 ** 5 + '\n', {},
     'line 1 is not valid JSON')])
def test_file_without_texts_is_refused(
        tmp_path, trained, content, arguments, text):
    """The error has its name and the line."""
    (tmp_path / 'a.jsonl').write_bytes(
        content if isinstance(content, bytes) else content.encode())
    with pytest.raises(BadInputFile, match=text) as caught:
        convert_tokens(tmp_path, tmp_path, ['a.jsonl'], trained[0],
                       **arguments)
    assert 'a.jsonl' in str(caught.value)
    assert not list(tmp_path.glob('*.hdf5'))


def test_document_that_is_too_long_is_refused(tmp_path, trained, monkeypatch):
    """It is refused before it fills the memory."""
    monkeypatch.setattr(documents, 'MAX_DOCUMENT', 1000)
    (tmp_path / 'a.txt').write_text('cat\n' * 500)
    with pytest.raises(BadInputFile, match='--documents paragraph or line'):
        convert_tokens(tmp_path, tmp_path, ['a.txt'], trained[0])


def test_line_that_is_too_long_is_refused(tmp_path, trained, monkeypatch):
    """A small file may grow when it is decompressed."""
    monkeypatch.setattr(documents, 'MAX_LINE', 1000)
    (tmp_path / 'a.txt.gz').write_bytes(gzip.compress(
        b'cat\n' + b'cat ' * 500))
    with pytest.raises(BadInputFile, match='line 2 has 1000 bytes'):
        convert_tokens(tmp_path, tmp_path, ['a.txt.gz'], trained[0])


def test_damaged_compressed_text_is_refused(tmp_path, trained):
    """Any error of the library becomes a BadInputFile."""
    content = bytearray(gzip.compress(TEXTS[0].encode()))
    content[10] = 0xff
    (tmp_path / 'a.txt.gz').write_bytes(content)
    with pytest.raises(BadInputFile, match='a.txt.gz: line 1'):
        convert_tokens(tmp_path, tmp_path, ['a.txt.gz'], trained[0])


@pytest.mark.parametrize('damage', [
    lambda content: content[:-100], lambda content: b'',
    lambda content: b'x' * 500, lambda content: content.replace(
        b'tokens.npy', b'Tokens.npy'), lambda content: content.replace(
            content[content.index(b'tokens.npy') + 140:][:8], bytes(8))])
def test_damaged_pieces_are_made_again(
        tmp_path, trained, monkeypatch, damage):
    """The pieces after a damaged one are made again too."""
    monkeypatch.setattr(tokens, 'PIECE', 200)
    write_json_lines(tmp_path / 'a.jsonl', TEXTS)
    with monkeypatch.context() as patch:
        patch.setattr(tokens, '_write', lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            convert_tokens(tmp_path, tmp_path, ['a.jsonl'], trained[0])
    piece = sorted(tmp_path.glob('.*/*.npz'))[2]
    content = piece.read_bytes()
    assert content != damage(content)
    piece.write_bytes(damage(content))
    path, = convert_tokens(tmp_path, tmp_path, ['a.jsonl'], trained[0])
    assert encoded(trained[1], TEXTS) == documents_of(path)
    assert not list(tmp_path.glob('.*'))


def test_two_conversions_to_one_output_are_refused(
        tmp_path, trained, monkeypatch):
    """The second says so, and the first goes on."""
    write_json_lines(tmp_path / 'a.jsonl', TEXTS)
    (tmp_path / 'b.txt').write_text('other')
    write = tokens._write

    def meanwhile(*arguments):
        with pytest.raises(FileExistsError, match='is writing .*a.hdf5'):
            convert_tokens(tmp_path, tmp_path, ['b.txt'], trained[0],
                           output_filename='a.hdf5')
        write(*arguments)

    monkeypatch.setattr(tokens, '_write', meanwhile)
    path, = convert_tokens(tmp_path, tmp_path, ['a.jsonl'], trained[0])
    assert encoded(trained[1], TEXTS) == documents_of(path)
    assert not list(tmp_path.glob('.*'))


@pytest.mark.skipif(sys.platform == 'win32', reason='there are no modes')
@pytest.mark.parametrize('how', ['link', 'open'])
def test_pieces_of_others_are_not_taken(tmp_path, trained, monkeypatch, how):
    """The folder of pieces has a name that others, who may write beside it,
    can guess."""
    write_json_lines(tmp_path / 'a.jsonl', TEXTS)
    convert = [tmp_path, tmp_path, ['a.jsonl'], trained[0]]
    with monkeypatch.context() as patch:
        patch.setattr(tokens, '_write', lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            convert_tokens(*convert)
    pieces, = tmp_path.glob('.*pieces*')
    assert 0o700 == pieces.stat().st_mode & 0o777
    if how == 'link':
        pieces.rename(tmp_path / 'elsewhere')
        pieces.symlink_to(tmp_path / 'elsewhere')
    else:
        pieces.chmod(0o777)
    with pytest.raises(PermissionError, match='not a folder of your own'):
        convert_tokens(*convert)
    assert list(pieces.glob('*.npz'))


def test_folder_that_is_missing_is_named(tmp_path, trained):
    """The error names the folder, and no file in it."""
    write_json_lines(tmp_path / 'a.jsonl', TEXTS)
    with pytest.raises(FileNotFoundError) as caught:
        convert_tokens(tmp_path, tmp_path / 'missing', ['a.jsonl'],
                       trained[0])
    assert 'lock' not in str(caught.value)


def test_tokens_are_not_dropped_at_random(tmp_path):
    """The tokenizer's dropout, which is for training, is not applied."""
    model = {'type': 'BPE', 'vocab': {'a': 0, 'b': 1, 'ab': 2},
             'merges': [['a', 'b']], 'dropout': .5}
    (tmp_path / 't.json').write_text(json.dumps({'model': model}))
    (tmp_path / 'a.txt').write_text('ab' * 50)
    path, = convert_tokens(
        tmp_path, tmp_path, ['a.txt'], str(tmp_path / 't.json'))
    assert [[2] * 50] == documents_of(path)


def test_tokenizer_that_cannot_encode_is_named(tmp_path):
    """The tokenizer lacks the token for unknown words."""
    model = {'type': 'WordLevel', 'vocab': {'a': 0}, 'unk_token': '?'}
    (tmp_path / 't.json').write_text(json.dumps({'model': model}))
    (tmp_path / 'a.txt').write_text('b')
    with pytest.raises(BadInputFile, match='t.json: it cannot encode'):
        convert_tokens(tmp_path, tmp_path, ['a.txt'],
                       str(tmp_path / 't.json'))


def test_output_in_a_folder_leaves_nothing_beside_it(tmp_path, trained):
    """Its pieces were in this one."""
    (tmp_path / 'out').mkdir()
    write_json_lines(tmp_path / 'a.jsonl', TEXTS)
    convert_tokens(tmp_path, tmp_path, ['a.jsonl'], trained[0],
                   output_filename='out/b.hdf5')
    assert ['a.jsonl', 'out', 'out/b.hdf5'] == sorted(
        str(path.relative_to(tmp_path)) for path in tmp_path.rglob('*'))


def test_mistakes_are_answered(tmp_path, trained):
    """Each error has a remedy."""
    write_json_lines(tmp_path / 'a.jsonl', TEXTS)
    with pytest.raises(ValueError, match='among its special_tokens'):
        convert_tokens(tmp_path, tmp_path, ['a.jsonl'], trained[0],
                       end_token='<eos>')
    with pytest.raises(ValueError, match='documents must be one of'):
        convert_tokens(tmp_path, tmp_path, ['a.jsonl'], trained[0],
                       documents='word')
    with pytest.raises(BadInputFile, match='Tokenizer.save'):
        convert_tokens(tmp_path, tmp_path, ['a.jsonl'],
                       str(tmp_path / 'a.jsonl'))


@pytest.mark.parametrize('piece', [1, tokens.PIECE])
def test_documents_without_text_are_counted(
        tmp_path, trained, monkeypatch, caplog, piece):
    """A conversion that goes on counts them too; empty lines do not count."""
    monkeypatch.setattr(tokens, 'PIECE', piece)
    write_json_lines(tmp_path / 'a.jsonl', ['', TEXTS[0], ' ', TEXTS[1], ''])
    (tmp_path / 'b.txt').write_text('\n')
    (tmp_path / 'c.txt').write_text('\n\nthe cat\n\n')
    arguments = tmp_path, tmp_path, ['a.jsonl', 'b.txt', 'c.txt'], trained[0]
    with monkeypatch.context() as patched:
        patched.setattr(tokens, '_write', lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            convert_tokens(*arguments)
    caplog.clear()
    convert_tokens(*arguments)
    assert ['left out: 4 documents without text'] == caplog.messages
    caplog.clear()
    convert_tokens(*arguments[:2], ['b.txt', 'c.txt'], trained[0],
                   documents='line')
    assert [] == caplog.messages


def test_text_within_an_object_is_named_by_its_path(tmp_path, trained):
    """JSONLDataset uses the same paths; a key with a slash is one, too."""
    (tmp_path / 'a.jsonl').write_text(
        '{"meta": {"title": "the cat"}}\n{"meta/title": "a mat"}\n')
    arguments = tmp_path, tmp_path, ['a.jsonl'], trained[0]
    path, = convert_tokens(*arguments, field='meta/title')
    assert encoded(trained[1], ['the cat', 'a mat']) == documents_of(path)
    with pytest.raises(BadInputFile, match='it has meta/title: name another'):
        convert_tokens(*arguments)


def test_progress_ends_at_the_size_of_the_texts(tmp_path, trained, capsys):
    """The unit is bytes, including those after the last document."""
    (tmp_path / 'a.txt').write_text('the cat\n\n\n\n')
    convert_tokens(tmp_path, tmp_path, ['a.txt'], trained[0],
                   documents='paragraph')
    assert 'a.hdf5: 11 of 11 bytes in ' in capsys.readouterr().out


def test_command_converts_and_tells_how_to_open(
        tmp_path, trained, monkeypatch, capsys):
    """The path is relative to the working directory."""
    monkeypatch.chdir(tmp_path)
    write_json_lines(tmp_path / 'a.jsonl', TEXTS)
    main(['tokens', 'a.jsonl', '--tokenizer', trained[0], '--hold-out',
          'valid=0.2', '-o', '.'])
    assert "fuel.load('./a.hdf5')" in ''.join(capsys.readouterr())
    assert ('train', 'valid') == fuel.load('a.hdf5').split_names
