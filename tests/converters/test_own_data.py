"""One's own data: folders of images, tables, arrays."""
import contextlib
import hashlib
import io
import json
import logging
import os
import sys
import threading
import time

import h5py
import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from PIL import Image
from support import raw_data

import fuel
from fuel.bin import fuel_convert, fuel_info
from fuel.bin.fuel_convert import count_classes
from fuel.datasets import H5PYDataset
from fuel.datasets.npy import NPYDataset
from fuel.exceptions import DamagedFileError
from fuel.storage.npy import read_npy_header
from fuel.utils.extras import how_to_install


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Be in an empty folder, beside an empty folder ``own``."""
    (tmp_path / 'own').mkdir()
    (tmp_path / 'out').mkdir()
    monkeypatch.chdir(tmp_path / 'out')
    return tmp_path / 'own'


def convert(*arguments):
    """Convert files in ``../own``."""
    assert 0 == fuel_convert.main([*arguments, '-d', '../own'])


def fail(capsys, *arguments):
    """Fail to convert; return what is said."""
    with pytest.raises(SystemExit):
        fuel_convert.main([*arguments, '-d', '../own'])
    return capsys.readouterr().err


def load(path, split, source):
    """Return all examples of a source, through `H5PYDataset`."""
    with H5PYDataset(path, (split,), sources=(source,)) as dataset:
        return dataset.get_data(None, list(range(dataset.num_examples)))[0]


def write_images(folder, seed=0, sizes=((6, 5),), kinds=('PNG',)):
    """Write three images of each of two classes; return them by class."""
    rng = numpy.random.RandomState(seed)
    found = {}
    for name in ('dog', 'cat'):
        (folder / name).mkdir(parents=True)
        for i in range(3):
            kind = kinds[i % len(kinds)]
            image = raw_data.bytes_of(rng, *sizes[i % len(sizes)], 3)
            content = raw_data.encode(image, kind)
            (folder / name / f'{i}.{kind.lower()}').write_bytes(content)
            found.setdefault(name, []).append(raw_data.decoded(content))
    (folder / 'readme.txt').write_text('not an image')
    return found


def test_images_of_one_size_become_an_array(here):
    """Classes are numbered in alphabetical order, and named."""
    images = write_images(here, kinds=('PNG', 'JPEG'))
    convert('image_folder')
    expected = numpy.array(images['cat'] + [images['dog'][i]
                                            for i in range(3)])
    order = [0, 1, 2]
    found = load('own.hdf5', 'train', 'features')
    assert expected.shape == found.shape
    # 0.png, 1.jpeg, 2.png: the names sort as they were made.
    assert_array_equal(expected[order], found[:3])
    assert_array_equal(raw_data.column([0, 0, 0, 1, 1, 1]),
                       load('own.hdf5', 'train', 'targets'))
    with h5py.File('own.hdf5', 'r') as h5file:
        assert ['cat', 'dog'] == json.loads(
            h5file['targets'].attrs['class_names'])


def test_images_of_different_sizes_become_ragged(here):
    """Shapes are kept; the file works with `H5PYDataset`."""
    images = write_images(here, sizes=((6, 5), (4, 9)))
    convert('image_folder')
    found = load('own.hdf5', 'train', 'features')
    for expected, image in zip(images['cat'] + images['dog'], found,
                               strict=True):
        assert_array_equal(expected, image)


def test_folder_one_level_too_high_is_questioned(here, caplog, capsys):
    """It would be one class, with which nothing can be learnt."""
    write_images(here / 'pictures')
    convert('image_folder')
    warned, = [record.message for record in caplog.records
               if 'one class' in record.message]
    assert ('all images are of one class, pictures, whose folder has the '
            'folders cat, dog: did you mean '
            f'{os.path.join("../own", "pictures")}?') == warned
    assert capsys.readouterr().err.splitlines()[-1].endswith(
        ': 1 class: pictures 6')
    caplog.clear()
    assert 0 == fuel_convert.main(['image_folder', '../own/pictures'])
    assert not [record for record in caplog.records
                if 'one class' in record.message]
    assert capsys.readouterr().err.splitlines()[-1].endswith(
        ': 2 classes: cat 3, dog 3')


@pytest.mark.parametrize('place', ['only', 'only/part', ''])
def test_single_class_is_not_questioned(place, here, caplog):
    """There is no warning if it clearly is one."""
    write_images(here / 'only')
    for name in ('dog', 'cat'):
        folder = here / 'only' / name
        for image in folder.iterdir():
            if place == 'only':
                image.rename(here / 'only' / f'{name}{image.name}')
            elif name == 'cat' and not place:
                (here / 'b').mkdir(exist_ok=True)
                image.rename(here / 'b' / image.name)
            elif place == 'only/part':
                (here / place).mkdir(exist_ok=True)
                image.rename(here / place / f'{name}{image.name}')
    convert('image_folder')
    assert 'did you mean' not in caplog.text


def test_damaged_image_is_named_without_an_object_in_memory(here, capsys):
    """Pillow's text has an address, different in each run."""
    write_images(here)
    image = here / 'cat' / '1.png'
    image.write_bytes(b'no image' * 9)
    error = fail(capsys, 'image_folder', '--size', '4x4')
    assert ('1.png: cannot be decoded as an image (it is not an image, or'
            in error)
    assert ' at 0x' not in error


def test_table_with_many_classes_is_summed_up(here, capsys):
    """The last line stays a line."""
    (here / 'a.csv').write_text('x,kind\n' + ''.join(
        f'1,k{number % 12}\n' for number in range(13)))
    convert('csv', 'a.csv', '--target', 'kind')
    assert capsys.readouterr().err.splitlines()[-1].endswith(
        ': 12 classes of 1 to 2 examples')


def test_class_names_are_printed_as_text(here, capsys):
    """No name moves the cursor of a terminal, or fills it."""
    (here / 'a.csv').write_text(f'x,kind\n1,\x1b[2Jdog\n1,{"k" * 99}\n')
    convert('csv', 'a.csv', '--target', 'kind')
    assert capsys.readouterr().err.endswith(
        f": 2 classes: '\\x1b[2Jdog' 1, {'k' * 80} 1\n")


def test_classes_without_names_are_not_counted(tmp_path):
    """The file was written all the same."""
    with h5py.File(tmp_path / 'a.hdf5', 'w') as h5file:
        h5file['targets'] = [0, 2]
        h5file['targets'].attrs['class_names'] = '["cat", "dog"]'
    assert '' == count_classes(tmp_path / 'a.hdf5')


def test_images_may_be_resized_and_grey(here):
    """Size and colours are chosen on the command line."""
    write_images(here, sizes=((6, 5), (4, 9)))
    convert('image_folder', '--size', '7x3', '--color-mode', 'L')
    assert (6, 1, 7, 3) == load('own.hdf5', 'train', 'features').shape


@pytest.mark.parametrize('arguments', [
    ['elsewhere'], ['elsewhere', '--size', '4'],
    ['--size', '4', 'elsewhere'], ['-d', 'elsewhere']], ids=' '.join)
def test_folder_of_images_may_be_named_alone(here, arguments, monkeypatch):
    """It is named with or without -d; a size of one number makes squares."""
    write_images(here / 'elsewhere')
    monkeypatch.chdir(here)
    assert 0 == fuel_convert.main(['image_folder', *arguments])
    size = (4, 4) if '--size' in arguments else (6, 5)
    assert size == load('elsewhere.hdf5', 'train', 'features').shape[2:]


def test_images_in_folders_of_splits_keep_them(here):
    """Folders named train, val and test are splits."""
    for seed, name in enumerate(('train', 'val', 'test')):
        write_images(here / name, seed)
    convert('image_folder')
    with h5py.File('own.hdf5', 'r') as h5file:
        assert ('train', 'valid', 'test') == H5PYDataset.get_all_splits(
            h5file)
    assert (3 * 2, 3, 6, 5) == load('own.hdf5', 'valid', 'features').shape


def test_hold_out_splits_all_sources_alike(here):
    """Held-out examples are random, repeatable, and in no other split."""
    rng = numpy.random.RandomState(0)
    x, y = rng.uniform(size=(50, 3)), numpy.arange(50)
    numpy.save(here / 'x.npy', x)
    numpy.save(here / 'y.npy', y)
    found = []
    for seed in ('1', '1', '2'):
        convert('npy', 'features=x.npy', 'targets=y.npy', '--hold-out',
                'test=0.2', '--hold-out', 'valid=0.1', '--seed', seed)
        rows = {split: load('data.hdf5', split, 'targets')
                for split in ('train', 'valid', 'test')}
        assert [35, 5, 10] == [len(part) for part in rows.values()]
        assert sorted(numpy.concatenate(list(rows.values()))) == list(y)
        for split, part in rows.items():
            assert_array_equal(x[part], load('data.hdf5', split, 'features'))
        found.append(rows['test'].tolist())
    assert found[0] == found[1] != found[2]


def test_hold_out_of_so_many_examples(here, capsys):
    """Integers are numbers of examples, which are met exactly."""
    numpy.save(here / 'x.npy', numpy.arange(50))
    numpy.save(here / 'y.npy', numpy.arange(50) % 3)
    convert('npy', 'features=x.npy', 'targets=y.npy', '--stratify',
            '--hold-out', 'test=7', '--hold-out', 'valid=1')
    assert [42, 1, 7] == [
        len(load('data.hdf5', split, 'targets'))
        for split in ('train', 'valid', 'test')]
    for text in ('test=0', 'test=50'):
        assert text in fail(
            capsys, 'npy', 'features=x.npy', '--hold-out', text)
    convert('npy', 'features=x.npy', '--hold-out', 'test=1')
    assert [49, 1] == [len(load('data.hdf5', split, 'features'))
                       for split in ('train', 'test')]


def test_npy_with_splits_and_axes(here):
    """Files may name their splits, and sources their axes."""
    a, b = numpy.zeros((4, 2), 'float32'), numpy.ones((3, 2), 'float32')
    numpy.save(here / 'a.npy', a)
    numpy.save(here / 'b.npy', b)
    convert('npy', 'train:features=a.npy', 'test:features=b.npy', '--axes',
            'features=batch,feature')
    with H5PYDataset('data.hdf5', ('test',)) as dataset:
        assert ('batch', 'feature') == dataset.axis_labels['features']
    assert_array_equal(b, load('data.hdf5', 'test', 'features'))


@pytest.mark.parametrize('arguments, text', [
    (['x.txt'], 'expected SOURCE=FILE'),
    (['train:x.npy'], 'expected SOURCE=FILE'),
    (['huge=huge.npy'], 'array of numbers in a .npy'),
    (['features=none.npy'], 'none.npy'),
    (['features=pickled.npy'], 'array of numbers in a .npy'),
    (['features=page.npy'], 'web page'),
    (['a=x.npy', 'b=short.npy'], 'as many examples'),
    (['a=x.npy', 'test:b=x.npy'], 'as many examples'),
    (['a=x.npy', '--axes', 'a=batch'], 'a label for each'),
    (['a=x.npy', '--hold-out', 'test=1.5'], 'something like test=0.2'),
    (['a=x.npy', '--hold-out', 'train=0.5'], 'cannot hold out')])
def test_npy_bad_input_is_explained(here, capsys, arguments, text):
    """A mistake says what was expected; nothing is written."""
    numpy.save(here / 'x.npy', numpy.zeros((4, 2)))
    numpy.save(here / 'short.npy', numpy.zeros((3, 2)))
    numpy.save(here / 'pickled.npy', numpy.array([{}]), allow_pickle=True)
    (here / 'page.npy').write_bytes(raw_data.PAGE)
    (here / 'huge.npy').write_bytes((here / 'x.npy').read_bytes().replace(
        b'(4, 2), }', b'(%d,), }' % 10 ** 30).ljust(300))
    assert text in fail(capsys, 'npy', *arguments)
    assert [] == list((here.parent / 'out').iterdir())


TABLE = ('width,height,colour,kind\n1,2.5,red,b\n3,4,green,a\n'
         '5,6,red,b\n')


def test_csv_becomes_features_and_targets(here):
    """Text of the target becomes classes; other text one-hot columns."""
    (here / 'table.csv').write_text(TABLE)
    convert('csv', 'table.csv', '--target', 'kind', '--one-hot')
    assert_array_equal([[1, 2.5, 0, 1], [3, 4, 1, 0], [5, 6, 0, 1]],
                       load('table.hdf5', 'train', 'features'))
    assert_array_equal([[1], [0], [1]],
                       load('table.hdf5', 'train', 'targets'))
    with h5py.File('table.hdf5', 'r') as h5file:
        assert ['a', 'b'] == json.loads(
            h5file['targets'].attrs['class_names'])
        assert ['width', 'height', 'colour=green', 'colour=red'] == (
            json.loads(h5file['features'].attrs['column_names']))


@pytest.mark.parametrize('fill, statistic', [
    ('mean', numpy.nanmean), ('median', numpy.nanmedian)])
@pytest.mark.parametrize('options', [[], ['--stratify', '--target', 'kind']])
def test_csv_with_gaps_is_filled_as_the_training_split_says(
        here, fill, statistic, options):
    """NumPy computes the same mean and median; text takes the most frequent
    value."""
    rng = numpy.random.RandomState(0)
    x = rng.normal(size=(40, 2)).round(3)
    x[rng.uniform(size=x.shape) < .3] = numpy.nan
    kinds = rng.choice(['a', 'b'], 40)
    texts = rng.choice(['red', 'blue', ''], 40)
    (here / 'table.csv').write_text('number,x,y,colour,kind\n' + ''.join(
        ','.join([str(number), *('' if value != value else str(value)
                                 for value in row), text, kind]) + '\n'
        for number, (row, text, kind) in enumerate(
            zip(x, texts, kinds, strict=True))))
    convert('csv', 'table.csv', '--one-hot', '--hold-out', 'test=0.25',
            '--fill', fill, *options)
    found = numpy.concatenate([load('table.hdf5', split, 'features')
                               for split in ('train', 'test')])
    rows = found[:, 0].astype(int)
    train = rows[:30]
    expected = numpy.where(numpy.isnan(x), statistic(x[train], axis=0), x)
    numpy.testing.assert_allclose(expected[rows], found[:, 1:3])
    words = [text for text in texts[train].tolist() if text]
    most = max(sorted(set(words)), key=words.count)
    with h5py.File('table.hdf5') as h5file:
        names = json.loads(h5file['features'].attrs['column_names'])
        filled = json.loads(h5file['features'].attrs['fill_values'])
    assert ['number', 'x', 'y', 'colour=blue', 'colour=red'] == names[:5]
    for row, text in zip(found, texts[rows], strict=True):
        assert row[names.index(f'colour={text or most}')] == 1
    assert most == filled['colour']
    numpy.testing.assert_allclose(
        statistic(x[train], axis=0), [filled['x'], filled['y']])


def test_csv_truth_values_are_ones_and_zeros(here):
    """They are not classes; gaps are filled."""
    (here / 'table.csv').write_text(
        'x,ok,kind\n1,true,a\n2,False,b\n3,TRUE,a\n4,,b\n')
    convert('csv', 'table.csv', '--target', 'kind', '--fill', 'mean')
    assert [1, 0, 1, 1] == load('table.hdf5', 'train', 'features')[
        :, 1].tolist()


def test_csv_gaps_take_a_value_that_is_given(here, capsys):
    """Numbers take a number; a target with gaps stays an error."""
    (here / 'table.csv').write_text('x,y,kind\n1, ,a\n,2,\n')
    error = fail(capsys, 'csv', 'table.csv', '--ignore', 'kind')
    assert "'x' has no value in 1 of 2" in error
    assert 'choose --fill, such as --fill median' in error
    convert('csv', 'table.csv', '--ignore', 'kind', '--fill', '-1.5')
    assert [[1, -1.5], [-1.5, 2]] == load(
        'table.hdf5', 'train', 'features').tolist()
    capsys.readouterr()
    os.remove('table.hdf5')
    for arguments, text in (
            (['--ignore', 'kind', '--fill', 'none'],
             "--fill none is not a valid value for 'x', which holds numbers"),
            (['--target', 'kind', '--fill', '0'], "'kind' has no value"),
            (['--ignore', 'kind', '--fill', 'mean', '--hold-out', 'test=0.5',
              '--seed', '1'], 'has no value in any of 1 examples')):
        assert text in fail(capsys, 'csv', 'table.csv', *arguments)
    assert [] == list((here.parent / 'out').iterdir())


def test_csv_without_header_names_columns_by_number(here):
    """The file has another delimiter, no header, and numbers as targets."""
    (here / 'table.csv').write_text('1;2;9\n3;4;8\n')
    convert('csv', 'table.csv', '--no-header', '--delimiter', ';',
            '--target', '2', '--ignore', '0', '--dtype', 'float32')
    found = load('table.hdf5', 'train', 'features')
    assert numpy.dtype('float32') == found.dtype
    assert_array_equal([[2], [4]], found)
    assert_array_equal([[9], [8]], load('table.hdf5', 'train', 'targets'))


@pytest.mark.parametrize('content, arguments, text', [
    (TABLE, [], "column 'colour' does not hold numbers"),
    (TABLE, ['--target', 'size'], "no column 'size'; it has width, height"),
    ('a,b\n1,2\n3\n', [], 'expected 2 fields in line 3, got 1'),
    ('a,b\n\n\n1,2\n\n3\n', [], 'expected 2 fields in line 6, got 1'),
    ('a,b\n', [], 'no examples'), ('', [], 'empty'),
    ('a,a\n1,2\n', [], 'one name'),
    ('a,b\n1,2\n', ['--delimiter', '::'], 'one character'),
    (f'a,b\n1,{10 ** 30}\n', ['--target', 'b'], 'more than 64 bits'),
    (raw_data.PAGE.decode(), [], 'web page')])
def test_csv_bad_input_is_explained(here, capsys, content, arguments, text):
    """The row or column is named; nothing is written."""
    (here / 'table.csv').write_text(content)
    assert text in fail(capsys, 'csv', 'table.csv', *arguments)
    assert [] == list((here.parent / 'out').iterdir())


def test_image_folder_bad_input_is_explained(here, capsys):
    """The errors name an empty folder, and a damaged image."""
    assert 'No images in folders' in fail(capsys, 'image_folder')
    error = fail(capsys, 'csv', 'none.csv')
    assert 'fuel-download' not in error
    assert 'Look at the name' in error
    write_images(here)
    (here / 'cat' / '1.png').write_bytes(raw_data.PAGE)
    error = fail(capsys, 'image_folder')
    assert '1.png' in error
    assert 'Mend the file, or leave out a few' in error
    assert 'fuel-download' not in error
    assert [] == list((here.parent / 'out').iterdir())


def test_images_that_cannot_be_decoded_are_left_out(here, capsys, caplog):
    """Their labels are left out, too; a list shows them."""
    images = write_images(here)
    (here / 'cat' / '1.png').write_bytes(raw_data.PAGE)
    content = (here / 'dog' / '0.png').read_bytes()
    (here / 'dog' / '0.png').write_bytes(content[:len(content) // 2])
    with caplog.at_level(logging.WARNING):
        convert('image_folder', '--on-error', 'skip')
    found = load('own.hdf5', 'train', 'features')
    assert numpy.array_equal(found, [
        images['cat'][0], images['cat'][2], *images['dog'][1:]])
    targets = load('own.hdf5', 'train', 'targets')
    assert [0, 0, 1, 1] == targets.ravel().tolist()
    assert [name in record.getMessage() for name, record in zip(
        ('1.png', '0.png'), caplog.records, strict=True)] == [True, True]
    capsys.readouterr()
    fuel_info.main([str(here.parent / 'out' / 'own.hdf5')])
    assert f'{here.name} (4 files, 2 left out)' in capsys.readouterr().out


def test_class_whose_images_are_left_out_keeps_its_number(here):
    """Else those of the others would differ from folder to folder."""
    images = write_images(here)
    for path in (here / 'cat').iterdir():
        path.write_bytes(b'')
    convert('image_folder', '--on-error', 'skip')
    assert [[1]] * len(images['dog']) == load(
        'own.hdf5', 'train', 'targets').tolist()


def test_a_folder_without_an_image_that_can_be_decoded_is_an_error(
        here, capsys):
    """Leaving out is for a few."""
    write_images(here)
    for path in here.rglob('*.png'):
        path.write_bytes(b'')
    error = fail(capsys, 'image_folder', '--on-error', 'skip')
    assert '6 of 6 images cannot be decoded, and at most 5' in error
    assert [] == list((here.parent / 'out').iterdir())


def test_image_folder_notes_the_digest_of_its_files(here):
    """That of what ``sha256sum`` prints of the images, sorted by name."""
    write_images(here)
    convert('image_folder', '--hold-out', 'test=0.3')
    names = sorted(str(path.relative_to(here)) for path in here.rglob('*.png'))
    lines = [hashlib.sha256((here / name).read_bytes()).hexdigest() +
             f'  {name}\n' for name in names]
    with h5py.File(f'{here.name}.hdf5') as h5file:
        assert {here.name: {
            'files': len(names),
            'size': sum((here / name).stat().st_size for name in names),
            'sha256': hashlib.sha256(''.join(lines).encode()).hexdigest()}
        } == json.loads(h5file.attrs['fuel_convert_inputs'])


@pytest.mark.parametrize('names, text', [
    (['eins', 'zwei', 'drü'], 'class names   0: drü, 1: eins, 2: zwei\n'),
    ([f'n{i:05d}' for i in range(20000)],
     '11: n00011, and 19988 more\n')])
def test_fuel_info_shows_names(here, capsys, names, text):
    """It shows those of classes and columns; any number of them fits."""
    (here / 'table.csv').write_text('x,kind\n' + ''.join(
        f'{i},{name}\n' for i, name in enumerate(names)))
    convert('csv', 'table.csv', '--target', 'kind')
    assert 0 == fuel_info.main(['table.hdf5'])
    out = capsys.readouterr().out
    assert text in out
    assert 'features  column names  0: x\n' in out
    assert 0 == fuel_info.main(['table.hdf5', '--json'])
    facts = json.loads(capsys.readouterr().out)['sources']['targets']
    assert {'class_names': sorted(names)} == facts['names']


def test_npy_file_alone_names_its_source(here):
    """``features.npy`` is the source features."""
    numpy.save(here / 'features.npy', numpy.eye(3))
    convert('npy', 'features.npy')
    assert_array_equal(numpy.eye(3), load('data.hdf5', 'train', 'features'))


def test_image_of_more_than_eight_bits_is_refused(here, capsys):
    """Pillow would make white of nearly all of its greys."""
    (here / 'a').mkdir()
    Image.fromarray(numpy.full((4, 4), 30000, 'uint16')).save(
        here / 'a' / '0.png')
    assert 'more bits' in fail(capsys, 'image_folder')


def test_image_bomb_is_refused(here, capsys, monkeypatch):
    """A header that claims a huge image ends in an error that names it."""
    write_images(here)
    monkeypatch.setattr(Image, 'MAX_IMAGE_PIXELS', 5)
    assert '0.png' in fail(capsys, 'image_folder')


@pytest.mark.parametrize('content, arguments, text', [
    ('x,y\n1,3.5\n2,\n3,1.5\n', ['--target', 'y'],
     "'y' has no value in 1 of 3 examples, the first of them number 1, f"),
    ('x,y\n11,a\n,b\n12,c\n', ['--target', 'y', '--one-hot'],
     "'x' has no value in 1 of 3 examples, the first of them number 1, f"),
    ('x,y\n1,a\n2,"b\n3,a\n4,b\n', ['--target', 'y'], 'not a table'),
    ('x\n1_0\n', [], "'1_0'"),
    ('1.5,2\n3,4\n', [], '--no-header'),
    ('x;y\n1,5;2\n', [], "separated by ',' (--delimiter)")])
def test_csv_does_not_guess(here, capsys, content, arguments, text):
    """Data that look like other data are refused. Numbers with gaps would
    become classes, an open quotation mark would swallow examples, an example
    would become the names of columns."""
    (here / 'table.csv').write_text(content)
    assert text in fail(capsys, 'csv', 'table.csv', *arguments)


def test_csv_target_with_underscores_is_text(here):
    """Python would read the class 1_2 as the number 12."""
    (here / 'table.csv').write_text('x,y\n1,1_2\n2,3\n')
    convert('csv', 'table.csv', '--target', 'y')
    with h5py.File('table.hdf5', 'r') as h5file:
        assert ['1_2', '3'] == json.loads(
            h5file['targets'].attrs['class_names'])


def test_csv_columns_may_have_whole_numbers_for_names(here):
    """Pixels often have such names."""
    (here / 'table.csv').write_text('0,1\n0.5,2\n')
    convert('csv', 'table.csv')
    assert_array_equal([[.5, 2]], load('table.hdf5', 'train', 'features'))


@pytest.mark.parametrize('content', [
    '5.1,3.5,setosa\n6,3,other\n', '0,1\n0,2\n1,2\n'])
def test_csv_first_line_that_is_not_a_header_is_refused(here, capsys, content):
    """An option says that the first line is a header or an example."""
    (here / 'a.csv').write_text(content)
    error = fail(capsys, 'csv', 'a.csv', '--one-hot')
    assert 'choose --no-header or --header' in error
    for option, number in (('--header', 0), ('--no-header', 1)):
        convert('csv', 'a.csv', '--one-hot', option)
        assert number + content.count('\n') - 1 == len(
            load('a.hdf5', 'train', 'features'))


def test_csv_index_of_pandas_is_left_out(here, caplog):
    """The column without a name is left out; as a target it is named."""
    (here / 'a.csv').write_text(',x,y\n7,1,2\n8,3,4\n')
    convert('csv', 'a.csv')
    assert [[1, 2], [3, 4]] == load('a.hdf5', 'train', 'features').tolist()
    assert 'left out: the first column, which has no name' in caplog.text
    convert('csv', 'a.csv', '--target', 'index')
    assert [[7], [8]] == load('a.hdf5', 'train', 'targets').tolist()


@pytest.mark.parametrize('options', [[], ['--one-hot'], ['--target', 'x']])
def test_csv_marks_of_missing_values_are_not_classes(here, capsys, options):
    """"NA" beside numbers is an error until --missing names it."""
    (here / 'a.csv').write_text('x,y\n4,1\nNA,2\n6,3\n?,3\n')
    error = fail(capsys, 'csv', 'a.csv', *options)
    assert "choose --missing NA --missing '?' if" in error
    convert('csv', 'a.csv', '--missing', 'NA', '--missing', '?', '--fill',
            'mean')
    assert [4, 5, 6, 5] == load('a.hdf5', 'train', 'features')[:, 0].tolist()


@pytest.mark.parametrize('options', [['--missing', '--'], ['--missing=--']])
def test_csv_dashes_can_stand_for_missing_values(here, capsys, options):
    """The error advises so; argparse takes them for the end of options."""
    (here / 'a.csv').write_text('x,y\n4,1\n--,2\n6,3\n-,3\n')
    assert 'choose --missing -- --missing - if' in fail(
        capsys, 'csv', 'a.csv', '--target', 'y')
    convert('csv', 'a.csv', *options, '--missing', '-', '--fill', 'mean',
            '--target', 'y')
    assert [4, 5, 6, 5] == load('a.hdf5', 'train', 'features')[:, 0].tolist()
    convert('csv', *options, '--missing=-', '--fill', 'mean', 'a.csv')
    assert [4, 5, 6, 5] == load('a.hdf5', 'train', 'features')[:, 0].tolist()


def test_csv_times_are_not_classes(here, capsys):
    """A column for each day would not be a useful feature."""
    (here / 'a.csv').write_text('x,y\n2024-01-02,1\n2024-01-03,2\n')
    assert "'x' holds times: choose --ignore" in fail(
        capsys, 'csv', 'a.csv', '--one-hot')


def test_csv_tab_can_be_typed(here):
    """It is typed as a backslash and a t."""
    (here / 'table.csv').write_text('a\tb\n1\t2\n')
    convert('csv', 'table.csv', '--delimiter', r'\t')
    assert_array_equal([[1, 2]], load('table.hdf5', 'train', 'features'))


def test_npy_source_with_a_slash_is_refused(here, capsys):
    """HDF5 would make a group of it, which no data set can read."""
    numpy.save(here / 'x.npy', numpy.eye(3))
    assert "'a/b'" in fail(capsys, 'npy', 'a/b=x.npy')


def test_images_beside_splits_with_classes_are_refused(here, capsys):
    """Else the splits would silently become classes."""
    write_images(here / 'train')
    (here / 'test').mkdir()
    (here / 'test' / '0.png').write_bytes(
        (here / 'train' / 'cat' / '0.png').read_bytes())
    assert 'beside them images in test' in fail(capsys, 'image_folder')


def test_folders_without_images_beside_splits_do_no_harm(here):
    """Folders of annotations are such folders."""
    write_images(here / 'train')
    write_images(here / 'test', seed=1)
    (here / 'annotations').mkdir()
    convert('image_folder')
    with H5PYDataset('own.hdf5', ('test',)) as dataset:
        assert 6 == dataset.num_examples


def test_splits_without_any_image_are_missing_files(here, capsys):
    """They do not raise an error of Python."""
    (here / 'train' / 'cat').mkdir(parents=True)
    assert 'No images' in fail(capsys, 'image_folder')


def test_images_in_no_class_are_told_of(here, caplog):
    """They are left out, but not without a word."""
    write_images(here / 'train')
    (here / 'train' / 'loose.png').write_bytes(b'')
    convert('image_folder')
    assert 'loose.png' in caplog.text


def test_size_beyond_reason_is_refused(here, capsys):
    """The error comes before memory runs out."""
    write_images(here)
    assert 'pixels' in fail(capsys, 'image_folder', '--size', '99999x99999')


def test_missing_output_folder_asks_for_no_download(here, capsys):
    """Nothing can be downloaded for one's own data."""
    numpy.save(here / 'x.npy', numpy.eye(3))
    text = fail(capsys, 'npy', 'x.npy', '-r', 'no/x.hdf5')
    assert 'create it first' in text
    assert 'fuel-download' not in text


def test_command_with_spaces_can_be_run_again(here, capsys):
    """It is kept as a shell reads it."""
    (here / 'my table.csv').write_text('a\n1\n')
    convert('csv', 'my table.csv')
    assert 0 == fuel_info.main(['my table.hdf5'])
    assert "fuel-convert csv 'my table.csv' -d ../own" in (
        capsys.readouterr().out)


def test_files_without_image_suffix_are_logged(here, caplog):
    """An unknown extension may be that of images; hidden files are not."""
    write_images(here)
    convert('image_folder')
    assert 'left out' not in caplog.text
    folder = next(path for path in here.iterdir() if path.is_dir())
    for name, text in (('a.heic', '1 file beside the images, '),
                       ('b.txt', '2 files beside the images, such as '),
                       ('.hidden', '2 files beside the images, such as ')):
        (folder / name).write_bytes(b'')
        caplog.clear()
        convert('image_folder')
        assert text in caplog.text
    assert 'a.heic' in caplog.text


def test_image_folder_with_a_pipe_is_refused(here, capsys):
    """A reader of a pipe would wait for ever."""
    write_images(here)
    os.mkfifo(here / 'cat' / '1.png.jpg')
    begin = time.monotonic()
    assert 'got a pipe' in fail(capsys, 'image_folder')
    os.remove(here / 'cat' / '1.png.jpg')
    os.mkfifo(here / 'cat' / '9.png')
    assert 'got a pipe' in fail(capsys, 'image_folder', '--size', '4x4')
    assert time.monotonic() - begin < 20


@pytest.mark.parametrize('name', ['adult.data', 'iris.data'])
def test_raw_file_that_is_a_pipe_is_refused(here, capsys, name):
    """A pipe is refused also where a converter opens its file at once."""
    os.mkfifo(here / name)
    assert 'got a pipe' in fail(capsys, name.partition('.')[0])


def test_csv_one_hot_of_many_texts_is_refused(here, capsys, monkeypatch):
    """60,000 different texts asked for 27 GB; others need what they fill."""
    (here / 'a.csv').write_text('name,x\n' + ''.join(
        f'n{i},1\n' for i in range(60_000)))
    error = fail(capsys, 'csv', 'a.csv', '--one-hot')
    assert "'name' has 60000 different texts" in error
    assert '28800000000 bytes' in error
    (here / 'b.csv').write_text('name,x\nb,1\na,2\nb,3\n')
    convert('csv', 'b.csv', '--one-hot')
    assert [[0, 1, 1], [1, 0, 2], [0, 1, 3]] == load(
        'b.hdf5', 'train', 'features').tolist()


@pytest.mark.parametrize('num_texts, is_told', [(20, False), (21, True)])
def test_csv_one_hot_of_names_is_told(here, caplog, num_texts, is_told):
    """Nearly as many columns as rows, which generalise to nothing."""
    (here / 'a.csv').write_text('my name,x\n' + ''.join(
        f'n{i % num_texts},1\n' for i in range(41)))
    convert('csv', 'a.csv', '--one-hot')
    assert is_told == (
        "'my name' has 21 different texts in 41 examples" in caplog.text
        and "choose --ignore 'my name'" in caplog.text)
    assert is_told == bool(caplog.messages)


def test_csv_long_cells_are_read(here, capsys):
    """Longer than Python's parser takes by itself, and not shown whole."""
    text = 'x' * 200_000
    (here / 'a.csv').write_text(f'text,y\n{text},2\nshort,4\n')
    error = fail(capsys, 'csv', 'a.csv')
    assert "'text' does not hold numbers" in error
    assert len(error) < 1000
    convert('csv', 'a.csv', '--target', 'text')
    assert [[1], [0]] == load('a.hdf5', 'train', 'targets').tolist()


def npy(header, version=(1, 0), length=None):
    """Return a ``.npy`` file with a header of any bytes."""
    size = len(header) if length is None else length
    return (b'\x93NUMPY' + bytes(version) + size.to_bytes(
        2 if version == (1, 0) else 4, 'little') + header)


HEADER = "{{'descr': {}, 'fortran_order': {}, 'shape': {}, }}"
HEADERS = [
    HEADER.format("'<f8'", False, shape) for shape in (
        '(-1,)', '(-2, -3)', '(True,)', '(10 ** 9,)', '(1e9,)', '()', '3',
        f'({2 ** 62},)', f'({2 ** 64},)', '((1,),)', 'None')] + [
    HEADER.format(kind, False, '(1,)') for kind in (
        "'O'", "'<U3'", "[('a', 'O')]", '[]', "'V'", "('<f8', (10 ** 9,))",
        "'" + 'f8,' * 500 + "'", '{}', '5', "[('a', '<f8')]", "b'x'",
        "'no such type'", "[('a', '<f8'), ('a', '<f8')]")] + [
    '(' * 3000, '[' * 90 + ']' * 90, '{' + "'a': " * 500, '1' * 5000, '',
    '\0' * 20, "{'descr': '<f8'}", "'" * 3, '-' * 4000 + '1', 'x' * 60_000,
    "__import__('os')", "{'descr': '<f8', 'fortran_order': 5, 'shape': (1,)}"]


@pytest.mark.parametrize('header', HEADERS, ids=range(len(HEADERS)))
@pytest.mark.parametrize('version', [(1, 0), (2, 0), (3, 0), (9, 9)])
def test_npy_hostile_header_is_one_line(here, capsys, header, version):
    """No header ends in a traceback, by the command or the data set."""
    (here / 'x.npy').write_bytes(npy(header.encode(), version) + bytes(8))
    begin = time.monotonic()
    error = fail(capsys, 'npy', 'x.npy')
    assert 1 == error.count('\n')
    assert 'expected an array of numbers in a .npy file' in error
    with contextlib.suppress(ValueError, DamagedFileError):
        NPYDataset(str(here / 'x.npy')).get_data(None, [0])
    assert time.monotonic() - begin < 10


@settings(max_examples=150, deadline=3000)
@given(header=st.text('{}()[]\'":,-*.<|>fiuSVO0123456789 desc shape',
                      max_size=80),
       keep=st.booleans(), length=st.none() | st.integers(0, 2 ** 16 - 1))
def test_npy_any_header_is_an_array_or_an_error(header, keep, length):
    """Any header gives an array of the file's bytes, or a ValueError."""
    text = HEADER.format("'<f8'", False, header) if keep else header
    content = npy(text.encode(), length=length) + bytes(64)
    try:
        shape, _, kind = read_npy_header(io.BytesIO(content))
    except ValueError:
        return
    assert all(isinstance(n, int) and n >= 0 for n in shape)
    assert isinstance(kind, numpy.dtype)


def test_converters_use_as_many_threads_as_configured(here, monkeypatch):
    """`config.num_threads` bounds the threads that decode images."""
    from fuel.converters import image_folder
    write_images(here)
    used = set()
    decode = image_folder.decode_image

    def noted(*arguments, **named):
        if threading.get_ident() not in used:
            used.add(threading.get_ident())
            # The first image of each thread waits for those of the others.
            together.wait(30)
        return decode(*arguments, **named)

    monkeypatch.setattr(image_folder, 'decode_image', noted)
    for count in (1, 3):
        used.clear()
        together = threading.Barrier(count)
        fuel.config.num_threads = count
        convert('image_folder')
        assert count == len(used)


def test_stratified_hold_out_has_its_share_of_each_class(here):
    """Tables, folders of images and arrays have it alike."""
    (here / 'table.csv').write_text('x,kind\n' + ''.join(
        f'{n},{"rare" if n % 5 == 0 else "often"}\n' for n in range(40)))
    assert 0 == fuel_convert.main([
        'csv', 'table.csv', '--target', 'kind', '--hold-out', 'test=0.25',
        '--stratify', '-d', str(here)])
    with h5py.File('table.hdf5') as file:
        targets = H5PYDataset(file, ('test',), load_in_memory=True)[:][1]
    assert [8, 2] == numpy.bincount(numpy.ravel(targets)).tolist()
    numpy.save('targets.npy', numpy.repeat([0, 1], [8, 4]))
    numpy.save('x.npy', numpy.arange(12))
    assert 0 == fuel_convert.main([
        'npy', 'x.npy', 'targets.npy', '--hold-out', 'test=0.5',
        '--stratify'])
    targets = H5PYDataset('data.hdf5', ('test',))[:][0]
    assert [4, 2] == numpy.bincount(targets).tolist()


def test_audio_folder_without_its_library_names_the_extra(
        here, capsys, monkeypatch):
    """The error is one line, and comes before anything is read."""
    monkeypatch.setitem(sys.modules, 'soundfile', None)
    monkeypatch.delitem(sys.modules, 'fuel.interop.audio', raising=False)
    error = fail(capsys, 'audio_folder')
    assert f'soundfile is not installed: {how_to_install("audio")}' in error
    assert 'Traceback' not in error
