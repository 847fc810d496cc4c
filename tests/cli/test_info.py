"""The command ``fuel-info``."""
import json
import os
import subprocess
import sys

import h5py
import numpy
import pytest
from PIL import Image
from support import raw_data

from fuel.bin import fuel_convert, fuel_info, preview
from fuel.bin.preview import preview_file
from fuel.datasets import H5PYDataset
from fuel.describe import examples, panels

BLOCK = """
Metadata for iris.hdf5
======================

The command used to generate this file is

    fuel-convert iris

Relevant versions are

    H5PYDataset      0.3
    fuel.converters  0.2
"""


def test_info_prints_the_old_block_first(tmp_path, monkeypatch, capsys):
    """The block is text, never b'...'."""
    raw_data.iris(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert 0 == fuel_convert.main(['iris'])
    assert 0 == fuel_info.main(['iris.hdf5'])
    out = capsys.readouterr().out
    assert out.startswith(BLOCK)
    assert "b'" not in out


def test_info_of_an_untagged_file_says_unknown(tmp_path, capsys):
    """A file of one's own need not have been made by fuel-convert."""
    with h5py.File(tmp_path / 'a.hdf5', 'w') as h5file:
        h5file['x'] = [1]
    assert 0 == fuel_info.main([str(tmp_path / 'a.hdf5')])
    assert 'unknown' in capsys.readouterr().out


@pytest.mark.parametrize('content', [None, b'', raw_data.PAGE])
def test_info_of_no_hdf5_file_is_an_error(tmp_path, capsys, content):
    """`args` count; the file is named."""
    path = tmp_path / 'a.hdf5'
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SystemExit, match='2'):
        fuel_info.main([str(path)])
    assert 'a.hdf5' in capsys.readouterr().err


@pytest.fixture
def converted(tmp_path, monkeypatch):
    """Be in a folder with three converted files."""
    (tmp_path / 'raw').mkdir()
    monkeypatch.chdir(tmp_path)
    for kind in ('svhn_1', 'dogs_vs_cats', 'ilsvrc2012', 'iris'):
        raw_data.SETS[kind].write(tmp_path / 'raw')
        fuel_convert.main([*raw_data.SETS[kind].command, '-d', 'raw'])
    return tmp_path


def test_info_as_json_tells_everything(converted, capsys):
    """Splits, sources, layout and inputs are plain data."""
    assert 0 == fuel_info.main(['dogs_vs_cats.hdf5', '--json'])
    facts = json.loads(capsys.readouterr().out)
    assert 'fuel-convert dogs_vs_cats -d raw' == facts['command']
    assert {'H5PYDataset': '0.3', 'fuel.converters': '0.2'} == (
        facts['versions'])
    assert {'train': 10, 'test': 6} == {
        name: split['examples'] for name, split in facts['splits'].items()}
    assert ['image_features'] == list(facts['splits']['test']['sources'])
    source = facts['sources']['image_features']
    assert ([16], ['batch', 'channel', 'height', 'width']) == (
        source['shape'], source['axes'])
    assert 'uint8, variable length' == source['type']
    assert 2 == len(facts['inputs'])


def test_info_says_between_which_sizes_images_are(converted, capsys):
    """Lengths of axes are those of the smallest and the largest example."""
    with H5PYDataset('dogs_vs_cats.hdf5', ('train', 'test'),
                     sources=('image_features',)) as dataset:
        shapes = numpy.array([image.shape for image in dataset[:][0]])
    least, greatest = shapes.min(axis=0), shapes.max(axis=0)
    assert (least[1:] < greatest[1:]).all()
    assert 0 == fuel_info.main(['dogs_vs_cats.hdf5'])
    assert (f'batch, channel 3, height {least[1]} to {greatest[1]}, '
            f'width {least[2]} to {greatest[2]}  ') in capsys.readouterr().out
    assert 0 == fuel_info.main(['dogs_vs_cats.hdf5', '--json'])
    source = json.loads(capsys.readouterr().out)['sources']['image_features']
    assert {'least': least.tolist(), 'greatest': greatest.tolist()} == (
        source['shapes of examples'])


@pytest.mark.parametrize('shapes, labels, text', [
    ([(2, 3), (1, 6)], None, '  (2,)  ?, ? 1 to 2, ? 3 to 6  '),
    ([(4, 1), (2, 2)], ('height', 'width'),
     '?, height 2 to 4, width 1 to 2  '),
    ([(4, 1), (4, 1)], ('height',), '?, height 4, ? 1  '),
    ([], None, '  (0,)  no axis labels  ')])
def test_info_of_examples_of_different_shape(tmp_path, capsys, shapes, labels,
                                             text):
    """Neither labels nor examples need be there."""
    path = str(tmp_path / 'a.hdf5')
    with h5py.File(path, 'w') as h5file:
        source = h5file.create_dataset('x', (len(shapes),),
                                       h5py.vlen_dtype('uint8'))
        for i, shape in enumerate(shapes):
            source[i] = numpy.zeros(numpy.prod(shape), 'uint8')
        h5file['shapes'] = numpy.array(shapes, 'int32').reshape(-1, 2)
        h5file['shapes'].make_scale('shapes')
        source.dims[0].attach_scale(h5file['shapes'])
        if labels is not None:
            h5file['labels'] = numpy.array(labels, 'S6')
            h5file['labels'].make_scale('shape_labels')
            source.dims[0].attach_scale(h5file['labels'])
        h5file.attrs['split'] = H5PYDataset.create_split_array(
            {'all': {'x': (0, len(shapes))}})
    assert 0 == fuel_info.main([path])
    assert text in capsys.readouterr().out


def test_info_as_text_tells_layout_and_sizes(tmp_path, monkeypatch, capsys):
    """Chunks and filters are those of the file."""
    raw_data.iris(tmp_path)
    monkeypatch.chdir(tmp_path)
    fuel_convert.main(['iris', '--chunk-rows', '50', '--compression',
                       'gzip:3'])
    assert 0 == fuel_info.main(['iris.hdf5'])
    out = ' '.join(capsys.readouterr().out.split())
    assert 'all 150 examples features, targets' in out
    assert ('features float32 (150, 4) batch, feature chunks of 50 x 4, '
            'gzip 3, decoded 2.') in out
    assert 'iris.data 4.' in out


def test_info_reads_split_fields_of_shape_one(tmp_path, capsys):
    """Files with fields of the shape (1,) exist."""
    with h5py.File(tmp_path / 'a.hdf5', 'w') as h5file:
        h5file['x'] = numpy.zeros((5, 2))
        row = numpy.zeros(1, dtype=[
            ('split', 'S5'), ('source', 'S1'), ('start', 'int64', (1,)),
            ('stop', 'int64', (1,)), ('indices', h5py.ref_dtype),
            ('available', bool, (1,)), ('comment', 'S1')])
        row['split'], row['source'], row['stop'] = b'train', b'x', 5
        row['available'], row['indices'] = True, h5py.Reference()
        h5file.attrs['split'] = row
    assert 0 == fuel_info.main([str(tmp_path / 'a.hdf5')])
    assert 'train  5 examples  x' in capsys.readouterr().out


@pytest.mark.parametrize('name', ['svhn_format_1', 'dogs_vs_cats',
                                  'ilsvrc2012', 'iris'])
def test_info_preview_draws_something(converted, name, capsys):
    """Images of any kind become a contact sheet, numbers a plot."""
    assert 0 == fuel_info.main([f'{name}.hdf5', '--preview', 'out.png'])
    with Image.open('out.png') as image:
        assert len(set(image.getdata() if not hasattr(
            image, 'get_flattened_data') else
            image.get_flattened_data())) > 2


def test_info_preview_of_odd_sources_works(tmp_path, capsys):
    """Empty sources, text, one number, no number: nothing is too odd."""
    path = str(tmp_path / 'a.hdf5')
    with h5py.File(path, 'w') as h5file:
        h5file['empty'] = numpy.zeros((0, 3))
        h5file['text'] = ['a', 'b']
        h5file['one'] = [7]
        h5file['scalar'] = 3
        h5file['nan'] = numpy.full((2, 4), numpy.nan)
        h5file['floats'] = numpy.random.RandomState(0).normal(
            size=(3, 1, 8, 8))
        h5file.create_group('group')
    assert 0 == fuel_info.main([path, '--preview',
                                str(tmp_path / 'out.png')])
    assert 'floats' in capsys.readouterr().out


def test_info_tells_how_large_sources_of_any_length_are(tmp_path, capsys):
    """Sources have shapes or none, chunks, packing and text: the bytes that
    references lead to count."""
    rows = [numpy.arange(100 * i, dtype='int16') for i in range(10)]
    path = str(tmp_path / 'a.hdf5')
    kind = h5py.vlen_dtype(numpy.dtype('int16'))
    layouts = {'plain': {}, 'chunks': {'chunks': (3,)},
               'packed': {'chunks': (4,), 'compression': 'gzip'}}
    with h5py.File(path, 'w', userblock_size=512) as h5file:
        for name, layout in layouts.items():
            source = h5file.create_dataset(name, (10,), kind, **layout)
            for i, row in enumerate(rows):
                source[i] = row
        h5file.create_dataset('unwritten', (10,), kind)
        h5file['text'] = ['ä' * 500] * 4
    assert 0 == fuel_info.main([path, '--json'])
    sources = json.loads(capsys.readouterr().out)['sources']
    with h5py.File(path) as h5file:
        for name in layouts:
            assert 9000 + h5file[name].id.get_storage_size() == (
                sources[name]['size'])
    assert 0 == sources['unwritten']['size']
    assert 4000 + 4 * 16 == sources['text']['size']


def test_info_with_strange_notes_is_an_error(tmp_path, capsys):
    """Notes that are not a list of inputs are named; nothing crashes."""
    for number, note in enumerate(['[1]', '{', '{"a": 1}']):
        path = str(tmp_path / f'{number}.hdf5')
        with h5py.File(path, 'w') as h5file:
            h5file['x'] = [1]
            h5file.attrs['fuel_convert_inputs'] = note
        with pytest.raises(SystemExit, match='2'):
            fuel_info.main([path])


@pytest.mark.parametrize('node', ['/', 'targets'])
def test_info_of_a_damaged_attribute_is_an_error(tmp_path, node):
    """A damaged size is an error, not a hang; invalid UTF-8 is replaced."""
    path = tmp_path / 'a.hdf5'
    name = 'fuel_convert_command' if node == '/' else 'class_names'
    with h5py.File(path, 'w') as h5file:
        h5file['targets'] = numpy.zeros((2, 1), 'u1')
        h5file[node].attrs[name] = '["cats", "dogs"]'
    raw = path.read_bytes()
    path.write_bytes(raw.replace(b'cats', b'ca\xffs'))
    assert 'ca\ufffds' in run_info(path).stdout
    # The size of the first object of the heap.
    size = raw.index(b'GCOL') + 24
    path.write_bytes(raw[:size] + b'\xff' + raw[size + 1:])
    found = run_info(path)
    assert 2 == found.returncode
    assert str(path) in found.stderr
    assert f'attribute {name!r}' in found.stderr


def run_info(path):
    """Run ``fuel-info`` in a process of its own."""
    command = f'from fuel.bin.fuel_info import main; main([{str(path)!r}])'
    return subprocess.run(
        [sys.executable, '-c', command], capture_output=True, text=True,
        encoding='utf8', env={**os.environ, 'PYTHONIOENCODING': 'utf8'},
        timeout=60, check=False)


def test_preview_draws_text_as_text(tmp_path, monkeypatch):
    """Text is never b'...'; curves keep their extremes; bombs stay bytes."""
    assert 'a, ä' == examples.shown_text(numpy.array([b'a', 'ä'.encode()]))
    assert 'ä' == examples.shown_text('ä'.encode())
    curve = numpy.zeros(10 ** 6)
    curve[5], curve[7] = 3, -2
    thin = panels.thinned(curve)
    assert (-2, 3) == (thin.min(), thin.max())
    assert len(thin) < 3 * panels.WIDTH
    monkeypatch.setattr(examples, 'MAX_PIXELS', 10)
    path = str(tmp_path / 'a.hdf5')
    with h5py.File(path, 'w') as h5file:
        image = raw_data.jpeg(numpy.random.RandomState(0))
        source = h5file.create_dataset(
            'x', (1,), h5py.vlen_dtype(numpy.dtype('uint8')))
        source[0] = image
    with h5py.File(path) as h5file:
        assert examples.as_image(h5file['x'][0]) is None


def test_preview_draws_a_picture_of_each_long_curve():
    """All are on one scale, each with its lowest and highest numbers."""
    quiet, loud = numpy.zeros(panels.LONG), numpy.zeros(panels.LONG - 1)
    loud[:2] = 5, -5
    panel = numpy.asarray(picture_of([quiet, loud], ['a', 'b']))
    side, margin = panels.THUMBNAIL, panels.MARGIN
    first, second = [
        panel[:side, left:left + side, 0] == panels.INK[0]
        for left in (margin, 2 * margin + side)]
    assert [1] * side == first.sum(axis=0).tolist()
    assert side == second[:, 0].sum()
    assert [1] * (side - 1) == second[:, 1:].sum(axis=0).tolist()
    # A short one is drawn over the others, and nothing is drawn of none.
    short = picture_of([quiet, loud, loud[:9]])
    assert panels.PLOT_HEIGHT == short.height
    assert panels.PLOT_HEIGHT == picture_of([]).height


def picture_of(*arguments):
    """Return what is drawn of the examples of a source."""
    return panels.picture_of(panels.Panel('x', *arguments))


def test_preview_draws_a_bar_for_each_number():
    """There are as many bars as examples, as high as their numbers."""
    numbers = list(numpy.array([[0], [4], [2]], 'float32'))
    assert ': 0 to 4' == examples.numbers_in(numbers)
    assert not examples.numbers_in([numpy.array(b'a')])
    ink = numpy.asarray(picture_of(numbers))[..., 0] == panels.INK[0]
    heights = ink.sum(axis=0)
    drawn = heights[heights > 0]
    assert 3 == (numpy.diff((heights > 0).astype(int)) == 1).sum()
    assert drawn.min() < 4
    assert drawn.max() > .9 * (panels.PLOT_HEIGHT - 2 * panels.MARGIN)


def test_preview_counts_all_of_a_column_of_integers(tmp_path, monkeypatch):
    """Examples that are drawn evenly by the classes of another source do not
    count; numbers that are too large, or not integers, have no counts."""
    rng = numpy.random.RandomState(0)
    targets = (rng.rand(3000) < .05).astype('uint8')
    with h5py.File(tmp_path / 'x.hdf5', 'w') as h5file:
        h5file['targets'] = targets[:, None]
        h5file['targets'].attrs['class_names'] = json.dumps(['cat', 'dog'])
        h5file['fine_labels'] = targets * 7
        h5file['ranks'] = numpy.arange(3000)
        h5file['means'] = numpy.sort(rng.rand(3000))
        h5file['kind'] = ['a', 'b'] * 1500
    zeros, ones = numpy.bincount(targets).tolist()
    with h5py.File(tmp_path / 'x.hdf5') as h5file:
        found = {panel.name: panel for panel in preview_file(h5file).panels}
        assert [('cat', zeros), ('dog', ones)] == found['targets'].counts
        assert 'counts of all 3000: 0 to 1' == found['targets'].title
        assert [('0', zeros), ('7', ones)] == found['fine_labels'].counts
        assert {150} == {count for _, count in found['ranks'].counts}
        assert 'counts of all 3000: 0 to 2999' == found['ranks'].title
        assert not found['means'].counts and not found['kind'].counts
        monkeypatch.setattr(preview, 'MOST_BYTES', 2999)
        for panel in preview_file(h5file).panels:
            assert not panel.counts
            assert ' of 3000' in panel.title
            assert panels.picture_of(panel).size


def test_info_of_a_missing_file_is_plain_text(tmp_path, capsys):
    """It has no numbers of errors and no words of HDF5."""
    with pytest.raises(SystemExit, match='2'):
        fuel_info.main([str(tmp_path / 'nope.hdf5')])
    error = capsys.readouterr().err
    assert f"there is no file '{tmp_path / 'nope.hdf5'}'\n" in error
    assert 'rrno' not in error


def test_info_of_a_misspelled_name_names_the_nearest(
        tmp_path, monkeypatch, capsys):
    """By itself and in braces, as fuel.load does."""
    monkeypatch.chdir(tmp_path)
    for name in 'train.tar', 'trains.hdf5':
        (tmp_path / name).touch()
    for name, hint in (
            ('trian.tar', "'trian.tar': did you mean 'train.tar'?"),
            ('train.hdf5', "'train.hdf5': did you mean 'trains.hdf5'?"),
            ('{train.tar', "'{train.tar': a brace in it has no partner"),
            ('{trian,test}.tar', "'trian.tar', which '{trian,test}.tar' nam")):
        with pytest.raises(SystemExit, match='2'):
            fuel_info.main([name])
        assert f'there is no file {hint}' in capsys.readouterr().err


@pytest.mark.parametrize('picture, text', [
    ('out.xyz', 'such as .png'), ('no/out.png', 'No such file')])
def test_preview_that_cannot_be_saved_is_named(tmp_path, capsys, picture,
                                               text):
    """The error says what to do about it."""
    with h5py.File(tmp_path / 'x.hdf5', 'w') as h5file:
        h5file['x'] = numpy.zeros((2, 3))
    with pytest.raises(SystemExit):
        fuel_info.main([str(tmp_path / 'x.hdf5'), '--preview',
                        str(tmp_path / picture)])
    err = capsys.readouterr().err
    assert 'cannot draw into' in err
    assert text in err


def test_info_of_an_empty_folder_says_that_it_is_one(tmp_path, capsys):
    """HDF5's own words say nothing of folders."""
    with pytest.raises(SystemExit, match='2'):
        fuel_info.main([str(tmp_path)])
    assert (f'{str(tmp_path)!r} has no files of data, nor have its folders'
            in capsys.readouterr().err)


@pytest.fixture
def sorted_by_class(tmp_path):
    """Return a compressed file whose examples are sorted by class."""
    path = tmp_path / 'sorted.hdf5'
    with h5py.File(path, 'w') as h5file:
        h5file.create_dataset('x', data=numpy.zeros((640, 8), 'uint8'),
                              chunks=(10, 8), compression='gzip')
        h5file['y'] = numpy.repeat(numpy.arange(8), 80)[:, None]
        h5file['many'] = numpy.zeros((640, 3))
        h5file.attrs['split'] = H5PYDataset.create_split_array({
            'train': dict.fromkeys(('x', 'y', 'many'), (0, 480)),
            'test': dict.fromkeys(('x', 'y', 'many'), (480, 640))})
    return str(path)


def test_info_measures_shuffles_by_window(sorted_by_class, capsys):
    """They are a table, whose last line is a full shuffle of the split."""
    assert 0 == fuel_info.main([sorted_by_class, '--shuffle', 'y'])
    out = capsys.readouterr().out
    table = out[out.index('Shuffled by blocks'):].splitlines()
    assert ['window', 'examples', 'distance', 'lag', '1', 'lag', '10',
            'lag', '100'] == table[2].split()
    rows = [line.split() for line in table[3:7]]
    assert [['1', '10'], ['4', '40'], ['16', '160'], ['48', '480']] == [
        row[:2] for row in rows]
    alike = [float(row[3]) for row in rows]
    assert alike == sorted(alike, reverse=True)
    assert 'a true shuffle gives 1' in out


def test_info_measures_shuffles_of_other_splits_and_blocks(
        sorted_by_class, capsys):
    """JSON has them, too."""
    assert 0 == fuel_info.main([sorted_by_class, '--json', '--shuffle', 'y',
                                '--split', 'test', '--block-size', '20'])
    found = json.loads(capsys.readouterr().out)['shuffle']
    assert [(1, 20), (4, 80), (8, 160)] == [
        (row['window'], row['examples']) for row in found]
    assert {'1', '10', '100'} == set(found[0]['autocorrelation'])


@pytest.mark.parametrize('arguments, text', [
    (['--shuffle', 'z'], "'z'"),
    (['--shuffle', 'y', '--split', 'none'], "'none'"),
    (['--shuffle', 'many'], 'labels must be one for each example'),
    (['--shuffle', 'y', '--block-size', '0'], 'block_size must be a posi')])
def test_info_says_why_shuffles_cannot_be_measured(
        sorted_by_class, capsys, arguments, text):
    """There is no traceback."""
    with pytest.raises(SystemExit, match='2'):
        fuel_info.main([sorted_by_class, *arguments])
    assert text in capsys.readouterr().err


def test_preview_of_audio_without_its_library_says_what_to_install(
        monkeypatch):
    """It does so instead of drawing a curve of bytes."""
    monkeypatch.setitem(sys.modules, 'soundfile', None)
    monkeypatch.delitem(sys.modules, 'fuel.interop.audio', raising=False)
    found = examples.as_curve(numpy.frombuffer(b'fLaC\0\0', 'uint8'))
    assert 'audio file, 6 bytes (soundfile is not installed' in str(found)
    image = numpy.arange(20, dtype='uint8')
    assert image is examples.as_curve(image)
