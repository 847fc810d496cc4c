"""The parts that every converter is built from."""
import hashlib
import json
import os
import time

import h5py
import numpy
import pytest
from support.processes import run_python

from fuel.converters.base import (
    MissingInputFiles,
    Pieces,
    check_exists,
    converted_file,
    fill_hdf5_file,
    label_axes,
)
from fuel.converters.output import Layout, OutputFolder

X = numpy.arange(24, dtype='uint8').reshape(6, 2, 2)
Y = numpy.arange(6, dtype='int16')[:, None]


@pytest.fixture
def h5file():
    """Open a file in memory."""
    with h5py.File('test.hdf5', 'w', driver='core',
                   backing_store=False) as opened:
        yield opened


def split_rows(h5file):
    """Return the split attribute as {(split, source): (start, stop, ...)}."""
    return {(row['split'].decode(), row['source'].decode()):
            (int(row['start']), int(row['stop']), bool(row['available']),
             row['comment'].decode())
            for row in h5file.attrs['split']}


def test_fill_hdf5_file_joins_splits_in_the_order_given(h5file):
    """Splits follow one another; what is missing is not available."""
    fill_hdf5_file(h5file, (
        ('train', 'x', X[:4]), ('train', 'y', Y[:4], 'made up'),
        ('test', 'x', X[4:])))
    numpy.testing.assert_array_equal(X, h5file['x'][...])
    numpy.testing.assert_array_equal(Y[:4], h5file['y'][...])
    assert ('uint8', 'int16') == (h5file['x'].dtype, h5file['y'].dtype)
    assert {('train', 'x'): (0, 4, True, '.'),
            ('train', 'y'): (0, 4, True, 'made up'),
            ('test', 'x'): (4, 6, True, '.'),
            ('test', 'y'): (0, 0, False, '.')} == split_rows(h5file)


def test_fill_hdf5_file_takes_the_tuples_in_any_order(h5file):
    """The order of sources does not matter, nor that it is an iterator."""
    fill_hdf5_file(h5file, iter([
        ('train', 'y', Y[:4]), ('test', 'x', X[4:]), ('train', 'x', X[:4]),
        ('test', 'y', Y[4:])]))
    numpy.testing.assert_array_equal(
        numpy.concatenate([X[4:], X[:4]]), h5file['x'][...])
    rows = split_rows(h5file)
    assert (0, 2, True, '.') == rows['test', 'x']
    assert (4, 6, True, '.') == rows['test', 'y']


@pytest.mark.parametrize('data, text', [
    ([('a', 'x', X), ('a', 'y', Y[:3])], "split 'a' must have the same"),
    ([('a', 'x', X), ('b', 'x', X.astype('int8'))],
     "type of source 'x' must be the same"),
    ([('a', 'x', X), ('b', 'x', X[:, :1])],
     "shape of an example of source 'x' must be the same"),
    ([('a', 'x', X), ('a', 'x', X)], "'x' is given twice for split 'a'")])
def test_fill_hdf5_file_unequal_parts_raise(h5file, data, text):
    """Lengths within a split, types and shapes within a source agree."""
    with pytest.raises(ValueError, match=text):
        fill_hdf5_file(h5file, data)
    assert not list(h5file)


def test_fill_hdf5_file_writes_pieces(h5file):
    """Arrays in pieces need not be joined first."""
    fill_hdf5_file(h5file, [('a', 'x', Pieces([X[:1], X[1:1], X[1:4]])),
                            ('b', 'x', X[4:])])
    numpy.testing.assert_array_equal(X, h5file['x'][...])


def test_pieces_of_different_shapes_raise():
    """Pieces of one source agree."""
    with pytest.raises(ValueError, match='agree in type and shape'):
        Pieces([X, Y])


def test_fill_hdf5_file_follows_the_layout_of_the_file(tmp_path):
    """A converted file has the layout of the folder it is written to; the
    arguments of `fill_hdf5_file` count more."""
    folder = OutputFolder(str(tmp_path), Layout(4, 'lzf'), {'made': 'today'})
    with converted_file(folder, 'a.hdf5') as h5file:
        fill_hdf5_file(h5file, [('a', 'x', X)], chunk_rows=3,
                       compression='gzip', compression_level=7)
        fill_hdf5_file(h5file, [('a', 'y', X)])
    with h5py.File(tmp_path / 'a.hdf5') as h5file:
        assert [((3, 2, 2), 'gzip', 7), ((4, 2, 2), 'lzf', None)] == [
            (h5file[name].chunks, h5file[name].compression,
             h5file[name].compression_opts) for name in 'xy']
        assert 'today' == h5file.attrs['made']


def test_fill_hdf5_file_without_a_layout_is_contiguous(h5file):
    """A file that the user opened has the layout that is asked for."""
    fill_hdf5_file(h5file, [('a', 'x', X)])
    assert h5file['x'].chunks is None
    fill_hdf5_file(h5file, [('a', 'y', X)], chunk_rows=2)
    assert (2, 2, 2) == h5file['y'].chunks


@pytest.mark.parametrize('options, text', [
    ({'chunk_rows': 0}, 'positive integer, got 0'),
    ({'chunk_rows': 1.5}, r'positive integer, got 1.5 \(float'),
    ({'chunk_rows': 'a'}, r"positive integer, got 'a' \(str"),
    ({'compression': 'zip'}, "one of .'gzip', 'lzf'.*, got 'zip'"),
    ({'compression_level': 3}, "needs a compression, .*'gzip', got 3"),
    ({'compression': 'gzip', 'compression_level': 10}, '10')])
def test_fill_hdf5_file_refuses_senseless_layouts(h5file, options, text):
    """The error shows the value."""
    with pytest.raises((TypeError, ValueError), match=text):
        fill_hdf5_file(h5file, [('a', 'x', X)], **options)


def test_compressed_sources_have_chunks_of_whole_rows(h5file):
    """Chunks hold whole rows, unlike h5py's; empty sources have none."""
    wide = numpy.zeros((300, 40, 100), 'u1')
    fill_hdf5_file(h5file, [('a', 'wide', wide), ('b', 'none', wide[:0]),
                            ('c', 'flat', wide[:, :0])], compression='gzip')
    assert [(65, 40, 100), None, None] == [
        h5file[name].chunks for name in ('wide', 'none', 'flat')]


@pytest.mark.parametrize('options', [
    {}, {'chunk_rows': 7}, {'compression': 'gzip', 'chunk_rows': 7}])
def test_arrays_on_disk_are_copied_by_whole_chunks(
        tmp_path, monkeypatch, options):
    """The same arrays give the same bytes, from wherever they come, and
    however much is written at once."""
    data = numpy.random.RandomState(0).randint(0, 9, (100, 5))
    numpy.save(tmp_path / 'x.npy', data)
    mapped = numpy.load(tmp_path / 'x.npy', mmap_mode='r')
    contents = []
    with h5py.File(tmp_path / 'x.hdf5', 'w') as source:
        source['x'] = data
        for array, nbytes in ((data, 1 << 20), (mapped, 1000),
                              (source['x'], 1000), (data.tolist(), 1)):
            monkeypatch.setattr(
                'fuel.converters.output.PIECE_NBYTES', nbytes)
            with h5py.File(tmp_path / 'a.hdf5', 'w') as file:
                fill_hdf5_file(file, [('a', 'x', array), ('b', 'x', array)],
                               **options)
                assert (numpy.vstack([data, data]) == file['x'][...]).all()
            contents.append((tmp_path / 'a.hdf5').read_bytes())
    assert 4 == len(contents) and 1 == len(set(contents))


@pytest.mark.skipif(not os.path.exists('/proc/self/status'),
                    reason='memory is measured in /proc')
def test_large_arrays_are_copied_in_bounded_memory(tmp_path):
    """The source of another file is 16 times as large as a block."""
    status, out, errors = run_python('-c', """
import sys, h5py, numpy
from fuel.converters import output
from fuel.converters.base import fill_hdf5_file
def peak():
    with open('/proc/self/status') as lines:
        return next(int(line.split()[1]) for line in lines
                    if line.startswith('VmHWM'))
output.PIECE_NBYTES = 4 << 20
with h5py.File(sys.argv[1] + '/x.hdf5', 'w') as file:
    x = file.create_dataset('x', (64, 1 << 20), 'u1')
    x[0] = 1
with h5py.File(sys.argv[1] + '/x.hdf5') as source, h5py.File(
        sys.argv[1] + '/a.hdf5', 'w') as file:
    before = peak()
    fill_hdf5_file(file, [('a', 'x', source['x'])])
    print(peak() - before < 24 << 10, file['x'][0, 0])
""", str(tmp_path))
    assert (0, b'', b'True 1\n') == (status, errors, out)


def test_check_exists_missing_files_raise(tmp_path):
    """All missing files are named; a folder is not a file."""
    calls = []

    @check_exists(required_files=['a', 'b', 'c'])
    def convert(directory, extra=1):
        """Convert."""
        calls.append((directory, extra))

    (tmp_path / 'a').write_text('')
    (tmp_path / 'b').mkdir()
    with pytest.raises(MissingInputFiles, match='missing') as caught:
        convert(str(tmp_path))
    assert ['b', 'c'] == caught.value.filenames
    assert not isinstance(caught.value, OSError)
    (tmp_path / 'b').rmdir()
    (tmp_path / 'b').write_text('')
    (tmp_path / 'c').write_text('')
    convert(directory=str(tmp_path), extra=2)
    assert [(str(tmp_path), 2)] == calls
    assert 'convert' == convert.__name__


def write(folder, content=X, inputs=()):
    """Convert `content` to ``a.hdf5``."""
    with converted_file(str(folder), 'a.hdf5', inputs) as h5file:
        fill_hdf5_file(h5file, [('a', 'x', content)])
        label_axes(h5file, {'x': ('batch', 'height', 'width')})


class BadArray(Pieces):
    """Fails when it is written."""

    def __init__(self):
        super().__init__([X])

    def write(self, dataset, start):
        """Write a part, then fail."""
        dataset[:1] = X[:1]
        raise RuntimeError('bad input')


def test_converted_file_failing_leaves_the_old_one(tmp_path):
    """Bad input does not destroy what was there before."""
    (tmp_path / 'a.hdf5').write_bytes(b'old')
    with pytest.raises(RuntimeError, match='bad input'):
        write(tmp_path, BadArray())
    assert ['a.hdf5'] == os.listdir(tmp_path)
    assert b'old' == (tmp_path / 'a.hdf5').read_bytes()


def test_converted_file_of_equal_input_has_equal_bytes(tmp_path):
    """No time, name or order of a set gets into the file."""
    write(tmp_path)
    first = (tmp_path / 'a.hdf5').read_bytes()
    time.sleep(1.1)
    write(tmp_path)
    assert first == (tmp_path / 'a.hdf5').read_bytes()


def test_converted_file_tells_its_inputs(tmp_path):
    """Sizes and digests of the raw files are written into the file."""
    raw = tmp_path / 'raw'
    raw.write_bytes(b'abc')
    write(tmp_path, inputs=[str(raw)])
    with h5py.File(tmp_path / 'a.hdf5', 'r') as h5file:
        assert {'raw': {'size': 3, 'sha256':
                        hashlib.sha256(b'abc').hexdigest()}} == json.loads(
            h5file.attrs['fuel_convert_inputs'])
        assert ['batch', 'height', 'width'] == [
            dim.label for dim in h5file['x'].dims]


@pytest.mark.parametrize('data, text', [
    ((), 'at least one .*split, source, array.*got none'),
    ([('train', 'x')], "got 2 elements, starting with .'train', 'x'.")])
def test_fill_hdf5_file_without_arrays_says_what_it_takes(data, text):
    """Nothing is written."""
    with h5py.File('none.hdf5', 'w', driver='core',
                   backing_store=False) as h5file:
        with pytest.raises(ValueError, match=text):
            fill_hdf5_file(h5file, data)
        assert [] == list(h5file)


@pytest.mark.parametrize('array, error, text', [
    (numpy.float64(3), ValueError, "'x' of split 'train' is a scalar"),
    (['no', 'ja'], TypeError, "'x' of split 'train' .*<U2.*string_dtype")])
def test_fill_hdf5_file_refuses_what_hdf5_has_no_rows_or_type_for(
        h5file, array, error, text):
    """The error has the source, and what to do."""
    with pytest.raises(error, match=text):
        fill_hdf5_file(h5file, [('train', 'x', array)])


@pytest.mark.parametrize('kind', ['S', h5py.string_dtype()])
def test_fill_hdf5_file_takes_text_as_it_advises(h5file, kind):
    """Text is bytes, or strings of HDF5."""
    fill_hdf5_file(h5file, [
        ('train', 'x', numpy.array(['no', 'ja']).astype(kind))])
    assert [b'no', b'ja'] == list(h5file['x'][...])


def test_fill_hdf5_file_takes_lists():
    """They become arrays."""
    with h5py.File('lists.hdf5', 'w', driver='core',
                   backing_store=False) as h5file:
        fill_hdf5_file(h5file, [('train', 'x', [[1, 2], [3, 4]])])
        assert [[1, 2], [3, 4]] == h5file['x'][...].tolist()
