"""Programs written for Fuel 0.2.0 work with the converters, downloaders and
commands."""
import importlib
import io
import json
import os
from argparse import ArgumentParser

import h5py
import numpy
import pytest
from support import raw_data

from fuel import exceptions
from fuel.bin import fuel_convert, fuel_download, fuel_info
from fuel.converters import (
    binarized_mnist,
    celeba,
    ilsvrc2010,
    ilsvrc2012,
)
from fuel.converters.base import check_exists
from fuel.converters.base import progress_bar as converting
from fuel.downloaders import all_downloaders
from fuel.downloaders.base import Options, default_downloader
from fuel.downloaders.base import progress_bar as downloading


def test_errors_of_files_are_in_the_module_of_errors():
    """`MissingInputFiles` and `NeedURLPrefix` have one home and the old
    import paths."""
    for name, module in (('MissingInputFiles', 'fuel.converters.base'),
                         ('NeedURLPrefix', 'fuel.downloaders.base')):
        error = getattr(exceptions, name)
        assert error is getattr(importlib.import_module(module), name)
        assert issubclass(error, exceptions.FuelError)


def test_missing_input_files_holds_the_names_asked_for(tmp_path):
    """The error names files without their folder, and shows the folder."""
    @check_exists(required_files=['a.gz', 'b.gz'])
    def convert(directory):
        raise AssertionError('must not be called')

    with pytest.raises(exceptions.MissingInputFiles) as caught:
        convert(str(tmp_path))
    assert ['a.gz', 'b.gz'] == caught.value.filenames
    assert str(tmp_path) in str(caught.value)
    with pytest.raises(exceptions.MissingInputFiles) as caught:
        ilsvrc2012.prepare_metadata.__globals__['_test_tar'](str(tmp_path))
    assert ['ILSVRC2012_img_test.tar'] == caught.value.filenames


EXTRA = """
def fill_subparser(subparser):
    return print

all_converters = all_downloaders = (('iris', fill_subparser),)
"""


@pytest.mark.parametrize('command, setting', [
    (fuel_convert, 'CONVERTERS'), (fuel_download, 'DOWNLOADERS')])
def test_extra_data_set_named_like_a_built_in_one_is_an_error_line(
        tmp_path, monkeypatch, capsys, command, setting):
    """A package cannot take the place of a built-in data set silently."""
    name = f'extra_iris_{setting.lower()}'
    (tmp_path / f'{name}.py').write_text(EXTRA)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv(f'FUEL_EXTRA_{setting}', name)
    for arguments in ['iris'], ['--list']:
        with pytest.raises(SystemExit, match='2'):
            command.main(arguments)
        error = capsys.readouterr().err
        assert 1 == error.count('\n')
        for part in ': names conflict: ', "'iris'", name, 'fuel.':
            assert part in error


@pytest.mark.parametrize('kind', [
    {}, {'fmt': '%d'}, {'fmt': '%.3f', 'delimiter': '\t'},
    {'header': 'zeros and ones'}])
def test_binarized_mnist_reads_what_savetxt_writes(tmp_path, kind):
    """Any way to write a zero or a one as a number is read."""
    images = numpy.random.default_rng(0).integers(0, 2, (3, 784))
    for split in ('train', 'valid', 'test'):
        numpy.savetxt(tmp_path / f'binarized_mnist_{split}.amat', images,
                      **kind)
    path, = binarized_mnist.convert_binarized_mnist(
        str(tmp_path), str(tmp_path))
    with h5py.File(path) as h5file:
        assert h5file['features'].dtype == 'uint8'
        numpy.testing.assert_array_equal(
            h5file['features'][...].reshape(9, 784), [*images] * 3)


@pytest.mark.parametrize('text', ['2', 'nan', '1e999', '0.5', '-1', 'x'])
def test_binarized_mnist_refuses_other_numbers(tmp_path, text):
    """A number that is neither zero nor one is an error."""
    for split in ('train', 'valid', 'test'):
        (tmp_path / f'binarized_mnist_{split}.amat').write_text(
            ' '.join(['1.0'] * 783 + [text]))
    with pytest.raises(ValueError, match='all 0 or 1'):
        binarized_mnist.convert_binarized_mnist(str(tmp_path), str(tmp_path))


@pytest.mark.parametrize('module, year', [(ilsvrc2010, 2010),
                                          (ilsvrc2012, 2012)])
def test_ilsvrc_children_are_padded_with_minus_one(module, year):
    """Their type holds the largest identifier, 1,676."""
    meta = io.BytesIO(raw_data.meta_mat(f'ILSVRC{year}_ID', [1, 2, 3], year))
    found = module.read_metadata_mat_file(meta)
    synsets = found[0] if year == 2010 else found
    assert [1, 300, 1676] == synsets['children'][3].tolist()
    assert (synsets['children'][0] == -1).all()


@pytest.mark.parametrize('module, unlabelled', [
    (ilsvrc2010, ()), (ilsvrc2012, ('test',))])
def test_ilsvrc_create_splits_gives_the_borders(module, unlabelled):
    """`create_splits` describes the file that `prepare_hdf5_file` makes."""
    splits = module.create_splits(5, 3, 2)
    borders = {'train': (0, 5), 'valid': (5, 8), 'test': (8, 10)}
    assert list(borders) == list(splits)
    for split, sources in splits.items():
        names = {'encoded_images', 'filenames', 'targets'}
        assert set(sources) == names - (
            {'targets'} if split in unlabelled else set())
        assert set(sources.values()) == {borders[split]}
    with h5py.File('x.hdf5', 'w', driver='core',
                   backing_store=False) as h5file:
        module.prepare_hdf5_file(h5file, 5, 3, 2)
        assert {(row['split'].decode(), row['source'].decode()): (
            row['start'], row['stop']) for row in h5file.attrs['split']
            if row['available']} == {
                (split, source): borders for split, sources in splits.items()
                for source, borders in sources.items()}


def test_celeba_downloads_attributes_first():
    """The order of `urls` and `filenames` is that of Fuel 0.2.0."""
    parser = ArgumentParser()
    dict(all_downloaders)['celeba'](parser)
    arguments = parser.parse_args([])
    assert ['list_attr_celeba.txt', 'img_align_celeba.zip'] == (
        arguments.filenames)
    assert 2 == len(arguments.urls)


def test_celeba_borders_are_fixed_but_for_the_end(tmp_path, monkeypatch):
    """The end of the test split, and of the file, is `NUM_EXAMPLES` when the
    converter is called."""
    raw_data.celeba(tmp_path)
    monkeypatch.setattr(celeba, 'NUM_EXAMPLES', raw_data.CELEBA)
    path, = celeba.convert_celeba('64', str(tmp_path), str(tmp_path))
    with h5py.File(path) as h5file:
        assert {'train': (0, 162770), 'valid': (162770, 182637),
                'test': (182637, raw_data.CELEBA)} == {
            row['split'].decode(): (row['start'], row['stop'])
            for row in h5file.attrs['split']}
        assert raw_data.CELEBA == len(h5file['features'])


@pytest.mark.parametrize('name, options', [
    (name, []) for name, _ in all_downloaders])
def test_downloader_defaults_are_plain_text(name, options):
    """`numpy.testing.assert_equal` compares them as texts and lists."""
    parser = ArgumentParser()
    dict(all_downloaders)[name](parser)
    defaults = {key: parser.get_default(key) for key in ('urls', 'filenames')}
    for key, values in defaults.items():
        for value in values or ():
            assert type(value) in (str, type(None)), (key, value)


def test_default_downloader_knows_built_in_files_by_plain_names(tmp_path):
    """A name and address of a built-in data set are enough to refuse what
    is not the file."""
    folder = tmp_path / 'mirror'
    folder.mkdir()
    (folder / 'iris.data').write_bytes(b'not the flowers')
    parser = ArgumentParser()
    dict(all_downloaders)['iris'](parser)
    with pytest.raises(OSError, match='expected 4551 bytes'):
        default_downloader(str(tmp_path), parser.get_default('urls'),
                           parser.get_default('filenames'),
                           options=Options(mirror=str(folder)))


def test_default_downloader_takes_a_file_of_ones_own_by_a_known_name(
        tmp_path):
    """A file of the user's own may have the name of a built-in one."""
    (tmp_path / 'iris.data').write_bytes(b'my own flowers')
    default_downloader(str(tmp_path / 'raw'),
                       [(tmp_path / 'iris.data').as_uri()], ['iris.data'])
    assert b'my own flowers' == (tmp_path / 'raw/iris.data').read_bytes()


@pytest.mark.parametrize('bar, word', [(downloading, 'Downloading'),
                                       (converting, 'Converting')])
@pytest.mark.parametrize('maxval', [10, None])
def test_progress_off_a_terminal_is_two_lines(capsys, bar, word, maxval):
    """One line at the start and one at the end, whatever comes between."""
    with bar('a.bin', maxval) as shown:
        start = capsys.readouterr().out
        for value in range(10):
            shown.update(value)
        assert '' == capsys.readouterr().out
    end = capsys.readouterr()
    for text in (start, end.out):
        assert text.startswith(f'{word} a.bin')
        assert 1 == text.count('\n')
        assert text.endswith('\n')
    assert '' == end.err


def test_progress_off_a_terminal_says_where_it_stopped(capsys):
    """The last line of a task that failed does not look like success."""
    with pytest.raises(OSError, match='gone'), converting('a', 10) as bar:
        bar.update(4)
        raise OSError('gone')
    *_, end = capsys.readouterr().out.splitlines()
    assert end.startswith('Converting a: stopped')
    assert '4' in end


def test_commands_that_print_data_print_nothing_else(tmp_path, monkeypatch,
                                                     capsys):
    """The output of fuel-info and of ``--check`` can be parsed."""
    monkeypatch.chdir(tmp_path)
    raw_data.iris(tmp_path)
    assert 0 == fuel_convert.main(['iris'])
    capsys.readouterr()
    assert 0 == fuel_info.main(['iris.hdf5', '--json'])
    json.loads(capsys.readouterr().out)
    fuel_download.main(['iris', '--check'])
    assert 1 == capsys.readouterr().out.count('\n')


def test_attributes_of_a_converted_file_are_text(tmp_path, monkeypatch):
    """A program that prints them shows no ``b'...'``."""
    monkeypatch.chdir(tmp_path)
    raw_data.iris(tmp_path)
    assert 0 == fuel_convert.main(['iris', '-r', 'süß.hdf5'])
    with h5py.File('süß.hdf5') as h5file:
        for name, value in (
                ('fuel_convert_command', "fuel-convert iris -r 'süß.hdf5'"),
                ('fuel_convert_version', '0.2'),
                ('h5py_interface_version', '0.3')):
            found = h5file.attrs[name]
            assert (str, value) == (type(found), found)
            kind = h5py.check_string_dtype(h5file.attrs.get_id(name).dtype)
            assert kind.length is None


def test_lazy_property_factory_returns_getter_and_setter():
    """The two functions make a property."""
    from fuel.utils import lazy_property_factory

    class Squares:
        getter, setter = lazy_property_factory('values')
        values = property(getter, setter)

        def load(self):
            self.values = [0, 1, 4]

    squares = Squares()
    assert [0, 1, 4] == squares.values
    squares.values = [9]
    assert [9] == squares.values


def test_multiple_paths_parser_splits_paths():
    """It is the parser of the setting `data_path`."""
    from fuel.config_parser import multiple_paths_parser
    home = os.path.expanduser('~')
    assert ['/a', os.path.join(home, 'b')] == multiple_paths_parser(
        os.pathsep.join(['/a', '~/b']))
    assert ['/a', '/c'] == multiple_paths_parser(['/a', '/c'])


def test_get_lock_takes_what_it_took(tmp_path):
    """`min_wait`, `max_wait` and `verbosity` are accepted."""
    from fuel.utils.lock import get_lock, release_lock
    get_lock(str(tmp_path), timeout=5, min_wait=.1, max_wait=1., verbosity=0)
    release_lock()


def test_names_of_raw_files_are_those_of_before():
    """Scripts make and check folders of raw files by these constants."""
    splits = ('train', 'valid', 'test')
    assert [f'binarized_mnist_{split}.amat' for split in splits] == [
        binarized_mnist.TRAIN_FILE, binarized_mnist.VALID_FILE,
        binarized_mnist.TEST_FILE] == list(binarized_mnist.ALL_FILES)
    assert ['img_align_celeba.zip', 'list_attr_celeba.txt'] == list(
        celeba.DATASET_FILES)
    assert 'celeba_64.hdf5' == celeba.OUTPUT_FILENAME.format('64')
    assert ('ILSVRC2010_test_ground_truth.txt',
            'ILSVRC2010_devkit-1.0.tar.gz') == ilsvrc2010.PUBLIC_FILES
    assert (*(f'ILSVRC2010_images_{split}.tar' for split in (
        'train', 'val', 'test')), 'patch_images.tar') == ilsvrc2010.IMAGE_TARS
