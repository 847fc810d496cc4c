"""`fuel.load` opens files of other formats, told by their content."""
import gzip
import os
import tracemalloc

import h5py
import numpy
import pytest
from support.layouts import miniature_named
from support.range_server import serving

import fuel
from fuel.datasets import (
    CSVDataset, HDF5Dataset, JSONLDataset, NPYDataset, TextFile)
from fuel.exceptions import UnknownLayoutError
from fuel.layouts.formats import format_of, is_zarr
from fuel.remote.location import as_path

X = numpy.arange(12.).reshape(6, 2)


def rows(dataset):
    """Return all rows of the first source."""
    return dataset.get_data(None, slice(0, dataset.num_examples))[0]


def test_files_far_below_a_folder_are_named(tmp_path):
    """The error lists the folders if there is more than one way down."""
    for name in ('pen', 'door'):
        folder = tmp_path / 'sets' / name / 'human' / 'data'
        folder.mkdir(parents=True)
        numpy.save(folder / 'x.npy', numpy.arange(3))
    with pytest.raises(FileNotFoundError, match=(
            'folders further down have: .*/door/human/data.*/pen/human/data')):
        fuel.load(tmp_path / 'sets')


@pytest.mark.parametrize('name', ['x.npy', 'x.h5', 'x.csv', 'x'])
def test_arrays_of_numpy_are_told_by_their_first_bytes(tmp_path, name):
    """The end of the name does not matter."""
    path = tmp_path / name
    with open(path, 'wb') as stream:
        numpy.save(stream, X)
    dataset = fuel.load(path)
    assert isinstance(dataset, NPYDataset)
    numpy.testing.assert_array_equal(rows(dataset), X)
    assert '<NPYDataset: ' in repr(dataset)


def test_archives_and_lists_of_numpys_arrays(tmp_path):
    """Sources have the names of arrays, or of files."""
    numpy.savez(tmp_path / 'both.npz', x=X, y=numpy.arange(6))
    for name in ('x', 'y'):
        numpy.save(tmp_path / f'{name}.npy', X)
    for files in (tmp_path / 'both.npz', str(tmp_path / '*.npy'),
                  [tmp_path / 'x.npy', tmp_path / 'y.npy']):
        dataset = fuel.load(files)
        assert ({'x', 'y'}, 6) == ({*dataset.sources}, dataset.num_examples)
    some = fuel.load(tmp_path / 'both.npz', 'train', sources=('y',),
                     splits={'train': (0, 4)})
    assert (('y',), 4) == (some.sources, some.num_examples)
    assert 6 == fuel.load(tmp_path / 'both.npz', 'all').num_examples


@pytest.mark.parametrize('name, delimiter', [
    ('x.csv', ','), ('x.tsv', '\t'), ('x.CSV', ',')])
def test_tables_of_text_are_told_by_the_name(tmp_path, name, delimiter):
    """The case of letters does not matter."""
    path = tmp_path / name
    text = '\n'.join([delimiter.join('ab'), *[
        delimiter.join(map(str, row)) for row in X.tolist()]]) + '\n'
    path.write_text(text)
    dataset = fuel.load(path)
    assert isinstance(dataset, CSVDataset)
    assert ('a', 'b') == dataset.sources
    numpy.testing.assert_array_equal(rows(dataset), X[:, 0])


@pytest.mark.parametrize('name', ['x.jsonl', 'x.NDJSON'])
def test_json_lines_are_told_by_the_name(tmp_path, name):
    """The arguments of their class work, and splits."""
    path = tmp_path / name
    path.write_text('{"a": 1, "b": {"c": "x"}}\n' * 3)
    dataset = fuel.load(path)
    assert isinstance(dataset, JSONLDataset)
    assert ('a', 'b/c') == dataset.sources
    part = fuel.load(path, 'train', columns={'y': 'b/c'},
                     splits={'train': (0, 2)})
    assert ['x', 'x'] == rows(part).tolist()


@pytest.mark.parametrize('begin', ['', '{', '  {', 'a,{'])
def test_long_first_line_of_csv_is_read_only_if_it_may_be_json(
        tmp_path, begin):
    """A file without a line end does not cost its own memory."""
    path = tmp_path / 'x.csv'
    path.write_text(begin + 'x' * (1 << 22))
    tracemalloc.start()
    try:
        assert 'csv' == format_of(str(path))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (peak < 1 << 20) is ('{' != begin.strip())


@pytest.mark.parametrize('begin', ['', '\ufeff', '  '])
@pytest.mark.parametrize('end', ['', '\n', '\n{"a": "y"}\n'])
@pytest.mark.parametrize('length', [1, 4096 - 10, 4096, 10_000])
def test_json_lines_called_csv_are_found_by_a_line_of_any_length(
        tmp_path, begin, end, length):
    """The object may be longer than what is read at first."""
    path = tmp_path / 'x.csv'
    path.write_text(f'{begin}{{"a": "{"x" * length}"}}{end}')
    assert 'jsonl' == format_of(str(path))


def test_text_takes_the_arguments_of_its_class(tmp_path):
    """The error of a wrong argument names the class."""
    path = str(tmp_path / 'x.txt')
    with open(path, 'w') as one, gzip.open(f'{path}.gz', 'wt') as other:
        for stream in (one, other):
            stream.write('one two\nthree\n')
    words = {'one': 0, 'two': 1, 'three': 2, '<UNK>': 3, '<S>': 4, '</S>': 5}
    for files in (path, f'{path}.gz', [path, f'{path}.gz']):
        dataset = fuel.load(files, dictionary=words)
        assert isinstance(dataset, TextFile)
        example = next(iter(dataset.get_example_stream().get_epoch_iterator()))
        assert [4, 0, 1, 5] == list(example[0])
    with pytest.raises(TypeError, match='TextFile'):
        fuel.load(path, dictionary={}, which_set='train')


@pytest.mark.parametrize('block', [512, 1024, 4096])
def test_hdf5_after_a_user_block(tmp_path, block):
    """MATLAB writes such a block."""
    path = str(tmp_path / 'x.dat')
    with h5py.File(path, 'w', userblock_size=block) as file:
        file['x'] = X
    assert 'hdf5' == format_of(path)
    numpy.testing.assert_array_equal(rows(fuel.load(path)), X)


@pytest.mark.parametrize('name, content, words', [
    ('x.h5', b'not HDF5 at all', 'is not an HDF5 file'),
    ('x.bin', b'something', 'no format that is known'),
    ('x.bin', b'\xff' * 64, 'no format that is known'),
    ('x.bin', b'\xff' * 4, 'no format that is known'),
    ('x.csv.gz', b'\x1f\x8b compressed', 'decompress it'),
    ('x.jsonl.gz', b'\x1f\x8b compressed', 'decompress it'),
    ('x.json', b'{"x": 1}   ', 'json.load'),
    ('x.pkl', b'\x80\x04pickled', 'numpy.savez'),
    ('x.tfrecord', b'recordrecord', 'TFRecord'),
    ('x.zip', b'PK\3\4 no archive', 'no format that is known'),
    ('x.h5', b'', 'is empty: perhaps it is still written'),
    ('x.bin', b'', 'is empty: perhaps it is still written'),
    ('x.png', b'\x89PNG\r\n\x1a\n',
     r"FilesDataset\('FOLDER'\) reads a folder of pictures"),
    ('x.mp3', b'ID3\4\0\0\0\0',
     r"FilesDataset\('FOLDER'\) reads a folder of audio files"),
    ('x.mp4', b'\0\0\0\x18ftyp', 'video is not read by Fuel'),
    ('x.xlsx', b'PK\3\4sheet', 'read it with pandas.read_excel, and pass the'),
    ('x.tar.gz', b'\x1f\x8barchive', 'unpack it'),
    ('x.safetensors', b'\1\0\0\0\0\0\0\0', 'safetensors.numpy.load_file'),
    ('x.dat', b'<!DOCTYPE html>', 'may be a web page: take the address')])
def test_other_files_are_refused_with_what_was_seen(
        tmp_path, name, content, words):
    """The error names the file and shows its first bytes."""
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ValueError, match=words) as caught:
        fuel.load(path)
    assert str(path) in str(caught.value)
    assert not content or repr(content[:8]) in str(caught.value)


def test_layouts_are_of_hdf5(tmp_path):
    """A layout for other formats is an error."""
    numpy.save(tmp_path / 'x.npy', X)
    with pytest.raises(ValueError, match="format 'npy'.*layout='plain'"):
        fuel.load(tmp_path / 'x.npy', layout='plain')


def test_folders_are_splits(tmp_path):
    """One of them by its name, all of them without."""
    for split, count in (('train', 4), ('valid', 2)):
        (tmp_path / split).mkdir()
        for number in range(2):
            with h5py.File(tmp_path / split / f'{number}.h5', 'w') as file:
                file['x'] = numpy.full(count, number)
    assert 12 == fuel.load(tmp_path).num_examples
    assert 12 == fuel.load(tmp_path, 'all').num_examples
    assert 8 == fuel.load(tmp_path, 'train').num_examples
    assert 12 == fuel.load(tmp_path, ['train', 'valid']).num_examples
    assert ['train', 'valid'] == sorted(fuel.load(tmp_path).split_names)
    with pytest.raises(ValueError, match="no folder 'test'.*'train', 'valid'"):
        fuel.load(tmp_path, 'test')
    several = str(tmp_path / 'train' / '*.h5')
    assert [0] * 4 + [1] * 4 == rows(fuel.load(several)).tolist()


def test_folder_of_splits_is_listed_once(tmp_path, monkeypatch):
    """Listing takes a while where a server has the files."""
    for split in ('train', 'valid'):
        (tmp_path / split).mkdir()
        with h5py.File(tmp_path / split / 'x.h5', 'w') as file:
            file['x'] = X
    listed = []

    def scandir(folder, scandir=os.scandir):
        listed.append(os.path.relpath(folder, tmp_path))
        return scandir(folder)

    monkeypatch.setattr(os, 'scandir', scandir)
    with fuel.load(tmp_path, 'train') as dataset:
        numpy.testing.assert_array_equal(X, rows(dataset))
    assert ['.', 'train', 'valid'] == sorted(listed)


@pytest.mark.parametrize('name, text', [
    ('x.csv', 'v\n1\n2\n'), ('x.jsonl', '{"v": 1}\n{"v": 2}\n')])
def test_values_that_folders_tell_are_not_lost_in_silence(
        tmp_path, name, text):
    """Tables without columns for them cause a warning; the folder itself does
    not."""
    for value in (1, 2):
        (tmp_path / f'k={value}').mkdir()
        (tmp_path / f'k={value}' / name).write_text(text)
    with pytest.warns(UserWarning, match='such as .k=1., have values'):
        assert [1, 2] * 2 == rows(fuel.load(tmp_path)).tolist()
    assert [1, 2] == rows(fuel.load(tmp_path / 'k=1')).tolist()


def test_urls_are_opened_as_files_are(tmp_path):
    """HDF5 that is recognised, arrays of NumPy's, and tables of text."""
    numpy.save(tmp_path / 'x.npy', X)
    (tmp_path / 'x.csv').write_text('x\n' + '\n'.join(
        map(str, X[:, 0].tolist())))
    with h5py.File(tmp_path / 'x.h5', 'w') as file:
        file['x'] = X
    with serving(tmp_path) as server:
        for name, cls, expected in (
                ('x.npy', NPYDataset, X), ('x.h5', HDF5Dataset, X),
                ('x.csv', CSVDataset, X[:, 0])):
            dataset = fuel.load(server.url(name))
            assert isinstance(dataset, cls)
            numpy.testing.assert_array_equal(rows(dataset), expected)
            dataset.close(None)
        with pytest.raises(FileNotFoundError, match='nothere.csv'):
            fuel.load(server.url('nothere.csv'))


def test_url_of_a_download_is_opened_as_a_file(tmp_path):
    """Its name has no ending, and nothing but the file is asked for."""
    with h5py.File(tmp_path / '12345', 'w') as file:
        file['x'] = X
    with serving(tmp_path) as server:
        dataset = fuel.load(server.url('12345?download=1'))
        numpy.testing.assert_array_equal(rows(dataset), X)
        dataset.close(None)
        assert {'/12345?download=1'} == {path for path, *_ in server.log}


@pytest.mark.parametrize('content, expected', [
    ('{"zarr_format": 2}', True), ('<html>There is no such page.', False)])
def test_zarr_store_at_a_url_has_an_object_of_json(
        content, expected, tmp_path):
    """Servers answer with a page where there is no file. What follows the
    question mark of the URL follows it in that of a file."""
    (tmp_path / 'data').mkdir()
    (tmp_path / 'data' / '.zgroup').write_text(content)
    with serving(tmp_path) as server:
        assert expected is is_zarr(as_path(server.url('data?download=1')))
        assert server.log[-1][0] == '/data/.zgroup?download=1'


def test_folder_at_a_url_is_an_error_with_advice(tmp_path):
    """It is not listed, unless an index of MDS is in it."""
    (tmp_path / 'data').mkdir()
    with serving(tmp_path) as server:
        for name in 'data', 'data/', 'none':
            with pytest.raises(FileNotFoundError, match=(
                    f'{name}: .* not listed: .* braces')):
                fuel.load(server.url(name))
        with pytest.raises(FileNotFoundError) as caught:
            fuel.load(server.url('data/x.tar'))
        assert 'listed' not in str(caught.value)


def test_files_of_several_formats_or_layouts_are_refused(tmp_path):
    """The error names two files that differ."""
    numpy.save(tmp_path / 'x.npy', numpy.arange(3))
    miniature_named('h5ad').write(tmp_path, numpy.random.default_rng(1))
    with pytest.raises(ValueError, match=(
            r"cells\.h5ad' has 'hdf5', and .*x\.npy' has 'npy'")):
        fuel.load(tmp_path)
    (tmp_path / 'x.npy').unlink()
    miniature_named('robomimic').write(tmp_path, numpy.random.default_rng(1))
    with pytest.raises(ValueError, match=(
            r"not of one layout: .*cells\.h5ad' has .*'obs'.*"
            r"low_dim\.hdf5' has 'data', 'mask'; load those")):
        fuel.load(tmp_path)


def test_files_without_rows_say_so(tmp_path):
    """The error does not speak of splits: there are none."""
    path = str(tmp_path / 'x.h5')
    with h5py.File(path, 'w') as file:
        file['x'] = numpy.zeros((0, 3))
    with pytest.raises(ValueError, match=r"x\.h5': 'x' has no rows"):
        fuel.load(path, columns=['x'])


def test_arrays_of_one_name_are_not_lost(tmp_path):
    """The arrays of the splits have one name, and cannot be sources beside
    each other."""
    for split, count in (('train', 4), ('test', 3)):
        (tmp_path / split).mkdir()
        numpy.save(tmp_path / split / 'x.npy', numpy.arange(count))
    with pytest.raises(ValueError, match=r'x.npy.*have one name: load'):
        fuel.load(tmp_path)
    with pytest.raises(ValueError, match='have one name'):
        fuel.load(sorted(tmp_path.glob('*/x.npy')))
    assert (4, 3) == tuple(len(fuel.load(tmp_path, split))
                           for split in ('train', 'test'))


def test_folder_of_one_split_has_that_split(tmp_path):
    """It has it with and without its name, such as where only one was
    downloaded."""
    folder = tmp_path / 'fluid' / 'data' / 'train'
    folder.mkdir(parents=True)
    for number in range(2):
        with h5py.File(folder / f'{number}.h5', 'w') as file:
            file['x'] = numpy.arange(3)
    for given in (tmp_path, tmp_path / 'fluid' / 'data'):
        for split in ('train', ['train'], None, 'all'):
            assert 6 == len(fuel.load(given, split))
        with pytest.raises(ValueError, match="no split 'test'"):
            fuel.load(given, 'test')
    assert 6 == len(fuel.load(folder))


@pytest.mark.parametrize('name, text', [
    ('x.mp4', r"It has '.*x\.mp4': video is not read by Fuel: extract"),
    ('x.txt', r"It has '.*x\.txt': \.txt is text, .*fuel\.load\(PATH\)"),
    ('x.unknown', r"It has '.*x\.unknown': give other data to Indexable"),
    ('.hidden', 'it is empty$')])
@pytest.mark.parametrize('below', ['', 'cat'])
def test_folder_of_other_files_says_what_reads_them(
        tmp_path, name, text, below):
    """The error names the reader of the commonest files, at any depth."""
    folder = tmp_path / 'files'
    (folder / below).mkdir(parents=True)
    (folder / below / name).write_bytes(b'something')
    with pytest.raises(FileNotFoundError, match=text.format(folder)):
        fuel.load(folder)


def test_table_of_numbers_and_text_is_opened(tmp_path):
    """Each column is a source of its own type."""
    (tmp_path / 'mixed.csv').write_text(
        'name,age,city\nann,3,Rome\nbob,,Paris\n')
    dataset = fuel.load(tmp_path / 'mixed.csv')
    assert ('name', 'age', 'city') == dataset.sources
    name, age, city = dataset[:]
    assert ['ann', 'bob'] == name.tolist()
    assert ['Rome', 'Paris'] == city.tolist()
    assert 3 == age[0] and numpy.isnan(age[1])


def test_splits_of_text_are_in_the_names_of_files(tmp_path):
    """They are not joined in silence; other names are of no split."""
    words = {'one': 0, '<UNK>': 1, '<S>': 2, '</S>': 3}
    for split, count in ('train', 3), ('val', 2):
        (tmp_path / f'{split}.txt').write_text('one\n' * count)
    files = f'{tmp_path}/{{train,val}}.txt'
    with pytest.raises(ValueError, match="has the splits 'train', 'val'"):
        fuel.load(files, dictionary=words)
    for split, count in ('train', 3), ('val', 2), ('all', 5):
        dataset = fuel.load(files, split, dictionary=words)
        assert count == len(list(dataset.get_example_stream()))
    (tmp_path / 'x.txt').write_text('one\n')
    with pytest.raises(ValueError, match=(
            r"x\.txt': there is no split 'val': the data have no splits")):
        fuel.load(tmp_path / 'x.txt', 'val', dictionary=words)


def test_text_without_a_vocabulary_names_the_file(tmp_path):
    """The error also names the function that counts one."""
    path = tmp_path / 'x.txt'
    path.write_text('one two\n')
    with pytest.raises(TypeError, match=(
            r"TextFile needs a dictionary of the tokens in '.*x\.txt'.*"
            r'build_vocabulary\(files\)')):
        fuel.load(path)


def test_file_of_empty_arrays_is_said_to_have_no_rows(tmp_path):
    """The error has their names and shapes."""
    with h5py.File(tmp_path / 'x.h5', 'w') as file:
        file['x'], file['y'] = numpy.empty((0, 3)), numpy.empty(0, int)
    with pytest.raises(UnknownLayoutError, match=(
            r"Its arrays have no rows: 'x' float64 \(0, 3\), 'y' int64 ")):
        fuel.load(tmp_path / 'x.h5')
