"""The command ``fuel-info`` of files of other people."""
import json
import os

import h5py
import numpy
import pytest
from PIL import Image
from scipy import sparse
from support.layouts import MINIATURES, miniature_named
from support.mds_files import write_mds

import fuel
from fuel.bin import fuel_info, layouts
from fuel.describe import panels, samples
from fuel.describe.examples import as_image
from fuel.layouts import opening
from fuel.layouts.recognition import find_call


def status_of(arguments):
    """Return the exit status of the command."""
    try:
        return fuel_info.main(arguments)
    except SystemExit as error:
        return error.code


def test_info_shows_what_is_recognised(tmp_path, capsys):
    """It shows the layout, the call, runs, splits, storage, and what is left
    out; JSON has the same."""
    robomimic, netcdf = [
        miniature_named(name).write(
            tmp_path, numpy.random.default_rng(1)).files
        for name in ('robomimic', 'netCDF')]
    assert 0 == fuel_info.main([robomimic, netcdf])
    shown = capsys.readouterr().out
    for text in ('robomimic; fuel.load opens it as', repr(fuel.load(netcdf)),
                 '57 examples, 12 runs', '8 examples, 1 run\n',
                 'train  15 examples', 'valid  10 examples',
                 'gzip 4, decoded 144 B',
                 "Left out, since their first dimension is another one: 'land'"
                 ):
        assert text in shown
    assert 0 == fuel_info.main([netcdf, '--json'])
    facts = json.loads(capsys.readouterr().out)['layout']
    assert ('netcdf', 8, 1) == tuple(
        facts[name] for name in ('name', 'examples', 'runs'))
    assert [3, 4] == facts['sources']['t2m']['shape']


@pytest.mark.parametrize('miniature', MINIATURES, ids=str)
def test_preview_draws_what_is_recognised(miniature, tmp_path, monkeypatch):
    """It draws examples of each source of the data set, also of a folder."""
    drawn = []

    def picture_of(panel):
        drawn.append(panel.examples)
        return made(panel)

    made = panels.picture_of
    monkeypatch.setattr(panels, 'picture_of', picture_of)
    files = miniature.write(tmp_path, numpy.random.default_rng(1)).files
    files = files if isinstance(files, str) else str(tmp_path)
    picture = str(tmp_path / 'a.png')
    assert 0 == fuel_info.main([files, '--preview', picture])
    with fuel.load(files) as dataset, Image.open(picture) as image:
        assert image.height > 16 * len(dataset.sources)
        for expected, examples in zip(dataset[0], drawn, strict=True):
            numpy.testing.assert_array_equal(
                expected.toarray()[0] if sparse.issparse(expected)
                else expected, examples[0])


def test_preview_of_what_is_not_recognised(tmp_path, capsys):
    """It draws the arrays of the root; without any, an error says why."""
    path, picture = str(tmp_path / 'a.h5'), str(tmp_path / 'a.png')
    with h5py.File(path, 'w') as file:
        file['deep/x'] = numpy.zeros(3)
        file['deep/y'] = numpy.zeros(4)
    assert 2 == status_of([path, '--preview', picture])
    error = capsys.readouterr().err
    assert 'no examples to draw' in error
    assert 'several ways' in error
    with h5py.File(path, 'r+') as file:
        file['z'] = numpy.zeros(5)
    assert 0 == fuel_info.main([path, '--preview', picture])
    assert 'not recognised' in capsys.readouterr().out
    with Image.open(picture) as image:
        assert image.height < 2 * panels.PLOT_HEIGHT


@pytest.mark.parametrize('shape, is_one', [
    ((9, 8, 3), True), ((3, 9, 8), True), ((1, 9, 8), True),
    ((9, 8, 1), True), ((9, 8), True), ((9, 8, 5), False)])
def test_images_are_drawn_with_channels_first_or_last(shape, is_one):
    """Files of other programs have them so."""
    image = as_image(numpy.arange(
        numpy.prod(shape)).reshape(shape).astype('u1'))
    assert is_one == (image is not None)
    if is_one:
        assert (8, 9) == image.size


def test_preview_of_large_examples_is_of_fewer(tmp_path, monkeypatch):
    """A preview of large examples draws as few as fit into memory."""
    monkeypatch.setattr(samples, 'MOST_BYTES', 3000)
    numpy.save(tmp_path / 'x.npy', numpy.arange(5000.).reshape(50, 100))
    with fuel.load(str(tmp_path / 'x.npy')) as dataset:
        shown = dataset.preview()
    assert [0, 24, 49] == shown.numbers
    assert [0, 2400, 4900] == [
        example[0] for example in shown.panels[0].examples]


@pytest.mark.parametrize('arguments', [[], ['--preview', 'a.png']])
@pytest.mark.parametrize('is_folder', [False, True])
def test_info_recognises_once_and_closes_all(
        is_folder, arguments, tmp_path, monkeypatch, capsys):
    """A layout is recognised once for all of its splits."""
    monkeypatch.chdir(tmp_path)
    path = miniature_named('The Well' if is_folder else 'robomimic').write(
        tmp_path, numpy.random.default_rng(1)).files
    if not is_folder:
        with h5py.File(path, 'r+') as file:
            file['mask/none'] = numpy.zeros(0, 'S8')
    rows = {split: fuel.load(path, split=split).num_examples
            for split in ('train', 'valid')}
    calls = []
    monkeypatch.setattr(layouts, 'find_call', lambda seen: (
        calls.append(seen.given) or find_call(seen)))
    monkeypatch.setattr(opening, 'find_call', None)
    assert 0 == fuel_info.main([path, '--json', *arguments])
    assert 1 == len(calls)
    # Files of other tests may be open too.
    opened = map(h5py.h5f.get_name, h5py.h5f.get_obj_ids(
        h5py.h5f.OBJ_ALL, h5py.h5f.OBJ_FILE | h5py.h5f.OBJ_LOCAL))
    assert not [name for name in opened
                if os.fsdecode(name).startswith(str(tmp_path))]
    facts = json.loads(capsys.readouterr().out)['layout']
    assert rows.items() <= facts['splits'].items()
    assert is_folder or 0 == facts['splits']['none']


def test_info_of_a_text_says_what_is_needed(tmp_path, capsys):
    """There is no traceback."""
    (tmp_path / 'a.txt').write_text('hello')
    (tmp_path / 'a.csv').write_text('x,y\n1,2\n')
    assert 2 == status_of([str(tmp_path / 'a.txt')])
    assert 'needs a dictionary' in capsys.readouterr().err
    path = str(tmp_path / 'a.csv')
    assert 0 == fuel_info.main([path, '--preview', str(tmp_path / 'a.png')])
    assert f'fuel.load({path!r})' in capsys.readouterr().out


def test_info_says_why_nothing_is_recognised(tmp_path, capsys):
    """The output names the ways to open a file that is not recognised."""
    path = str(tmp_path / 'two.h5')
    with h5py.File(path, 'w') as file:
        file['train_x'], file['test_x'] = numpy.zeros(8), numpy.zeros(4)
    assert 0 == fuel_info.main([path])
    shown = capsys.readouterr().out
    assert 'not recognised' in shown
    assert f"HDF5Dataset({path!r}, {{'x': 'test_x'}})" in shown
    assert 'H5PYDataset' not in shown


def test_info_says_that_cells_have_no_matrix(tmp_path, capsys):
    """The file may have others."""
    path = miniature_named('h5ad').write(
        tmp_path, numpy.random.default_rng(1)).files
    with h5py.File(path, 'r+') as file:
        del file['X']
    assert 0 == fuel_info.main([path])
    shown = capsys.readouterr().out
    assert ("The file has no matrix X; sources=('layers/scaled', ...) "
            'chooses another') in shown


def test_info_of_folders_and_other_formats(tmp_path, capsys):
    """The command describes everything that fuel.load opens."""
    (tmp_path / 'fluid').mkdir()
    well = miniature_named('The Well').write(
        tmp_path / 'fluid', numpy.random.default_rng(1)).files
    numpy.save(tmp_path / 'x.npy', numpy.zeros((3, 2)))
    assert 0 == fuel_info.main([well, str(tmp_path / 'x.npy')])
    shown = capsys.readouterr().out
    assert '19 examples, 4 runs' in shown
    assert 'the_well; fuel.load opens it as' in shown
    assert 'train  10 examples' in shown
    assert 'NPYDataset; fuel.load opens it as' in shown
    (tmp_path / 'x.csv').write_text('n,text\n1,a\n2,b\n')
    assert 0 == fuel_info.main([str(tmp_path / 'x.csv')])
    assert '    n     int64  ()\n    text  text' in capsys.readouterr().out
    (tmp_path / 'empty').mkdir()
    assert 2 == status_of([str(tmp_path / 'empty')])
    assert 'has no files of data' in capsys.readouterr().err


def test_info_of_a_layout_that_is_refused_fails(tmp_path, capsys):
    """It fails as for a file that cannot be opened, with the remedy."""
    files = miniature_named('h5ad').write(
        tmp_path, numpy.random.default_rng(1)).files
    with h5py.File(files, 'r+') as file:
        file['X'].attrs['encoding-type'] = 'csc_matrix'
    assert 2 == status_of([files])
    assert 'adata.X.tocsr()' in capsys.readouterr().err


def test_info_opens_folders_of_files_and_raw_numbers(tmp_path, capsys):
    """A folder of pictures, a folder of MDS shards, and numbers whose type is
    passed."""
    (tmp_path / 'pets' / 'cat').mkdir(parents=True)
    Image.new('RGB', (2, 2)).save(tmp_path / 'pets' / 'cat' / '0.png')
    write_mds(tmp_path / 'shards', {'t': ('str', None)}, [[[b'a'], [b'b']]])
    tokens = tmp_path / 'tokens.bin'
    numpy.arange(7, dtype='uint16').tofile(tokens)
    for name, kind, examples, source in (
            ('pets', 'FilesDataset', 1, 'image  bytes'),
            ('shards', 'MDSDataset', 2, 't  text')):
        assert 0 == fuel_info.main([str(tmp_path / name)])
        shown = capsys.readouterr().out
        for text in (f'{kind}; fuel.load opens it as',
                     f'{examples} examples', source):
            assert text in shown
    assert 0 == fuel_info.main([str(tokens), '--dtype', 'uint16'])
    shown = capsys.readouterr().out
    assert f"fuel.load({str(tokens)!r}, dtype='uint16')" in shown
    assert '7 examples' in shown and 'data  uint16' in shown
    assert 2 == status_of([str(tokens)])
    assert 2 == status_of([str(tokens), '--dtype', 'uint61'])
