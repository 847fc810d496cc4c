"""Every built-in data set: its raw form goes download, convert, fuel-info,
data set, default stream, and comes out as it went in."""
import copy
import hashlib
import os
import re
from importlib import import_module

import h5py
import numpy
import pytest
from numpy.testing import assert_array_equal
from support import raw_data
from support.faulty_server import serving

import fuel
from fuel import config
from fuel.bin import fuel_convert, fuel_download, fuel_info
from fuel.converters import all_converters
from fuel.converters.base import BadInputFile, MissingInputFiles
from fuel.downloaders import registry
from fuel.schemes import SequentialScheme
from fuel.streams import DataStream
from fuel.utils.signatures import signature_of


@pytest.fixture(params=raw_data.SETS)
def kind(request):
    """Name a data set, perhaps in one of its forms."""
    return request.param


@pytest.fixture
def made(kind, tmp_path, monkeypatch):
    """Have its raw files in ``raw``, and be in an empty folder ``data``."""
    (tmp_path / 'raw').mkdir()
    (tmp_path / 'data').mkdir()
    monkeypatch.chdir(tmp_path / 'data')
    config.data_path = [str(tmp_path / 'data')]
    return raw_data.SETS[kind].write(tmp_path / 'raw')


def convert(kind, *arguments):
    """Convert the raw files; return the name of the converted file."""
    before = set(os.listdir())
    assert 0 == fuel_convert.main([*raw_data.SETS[kind].command, '-d',
                                   '../raw', *arguments])
    name, = set(os.listdir()) - before
    return name


def open_set(kind, *splits):
    """Open the converted file."""
    raw = raw_data.SETS[kind]
    return fuel.load(raw.dataset, splits, **raw.arguments)


def assert_equal_sources(expected, found):
    """Compare a source, whose examples may differ in shape."""
    if isinstance(expected, list):
        assert len(expected) == len(found)
        for one, other in zip(expected, found, strict=True):
            assert one.dtype == other.dtype
            assert_array_equal(one, other)
    else:
        assert expected.dtype == found.dtype
        assert_array_equal(expected, found)


def test_raw_files_come_out_as_they_went_in(kind, made, capsys):
    """Each split has its examples, types and axis labels; fuel-info and the
    default stream work."""
    convert(kind)
    labels = raw_data.SETS[kind].labels
    for split, sources in made.items():
        dataset = open_set(kind, split)
        assert tuple(sorted(sources)) == dataset.sources
        batch = dataset.get_data(None, list(range(dataset.num_examples)))
        for source, found in zip(dataset.sources, batch, strict=True):
            assert_equal_sources(sources[source], found)
        for source in dataset.sources if labels else ():
            assert labels[source] == dataset.axis_labels[source]
        stream = DataStream.default_stream(
            dataset, iteration_scheme=SequentialScheme(
                dataset.num_examples, 3))
        batches = list(stream.get_epoch_iterator())
        assert dataset.num_examples == sum(len(batch[0])
                                           for batch in batches)
        stream.close()


def test_equal_input_gives_equal_bytes(kind, made):
    """The same input twice makes the same file twice."""
    name = convert(kind)
    with open(name, 'rb') as h5file:
        first = h5file.read()
    os.remove(name)
    assert name == convert(kind)
    with open(name, 'rb') as h5file:
        assert first == h5file.read()


def test_provenance_names_all_inputs(kind, made):
    """Digests of the raw files are in the converted one."""
    import json
    with h5py.File(convert(kind), 'r') as h5file:
        inputs = json.loads(h5file.attrs['fuel_convert_inputs'])
    for name, facts in inputs.items():
        with open(os.path.join('../raw', name), 'rb') as raw:
            content = raw.read()
        assert {'size': len(content), 'sha256': hashlib.sha256(
            content).hexdigest()} == facts
    assert set(inputs) == set(os.listdir('../raw'))


def test_download_from_a_mirror_verifies(kind, made, monkeypatch, capsys):
    """Files come from one's own server or folder, and are verified."""
    dataset, *options = raw_data.SETS[kind].command
    files = {}
    for name in os.listdir('../raw'):
        with open(os.path.join('../raw', name), 'rb') as raw:
            files[name] = raw.read()
    facts = copy.deepcopy(registry.registered())
    for entry in facts[dataset]['files']:
        content = files.get(entry['name'], b'')
        entry.update(size=len(content), md5=None,
                     sha256=hashlib.sha256(content).hexdigest())
    monkeypatch.setattr(registry, 'registered', lambda: facts)
    # The options of a download may depend on its form; CelebA's do not.
    options = [] if dataset in ('celeba', 'emnist') else options
    with serving(files) as server:
        assert 0 == fuel_download.main(
            [dataset, *options, '--url-prefix', server.url('ok/')])
    assert sorted(files) == sorted(os.listdir())
    for name, content in files.items():
        with open(name, 'rb') as raw:
            assert content == raw.read()
    assert 0 == fuel_download.main([dataset, *options, '--check'])
    assert len(files) == capsys.readouterr().out.count(': verified\n')
    assert 0 == fuel_download.main([dataset, *options, '--clear'])
    assert [] == os.listdir()
    assert 0 == fuel_download.main([dataset, *options, '--url-prefix',
                                    '../raw'])
    assert sorted(files) == sorted(os.listdir())
    # The downloaded files are converted, described and read.
    assert 0 == fuel_convert.main(raw_data.SETS[kind].command)
    name, = set(os.listdir()) - set(files)
    assert 0 == fuel_info.main([name, '--preview', 'preview.png'])
    assert 'Converted from' in capsys.readouterr().out
    dataset = open_set(kind, *tuple(made)[:1])
    stream = DataStream.default_stream(
        dataset, iteration_scheme=SequentialScheme(dataset.num_examples, 3))
    next(stream.get_epoch_iterator())
    stream.close()


SPOILERS = {
    'page': lambda content: raw_data.PAGE,
    'half': lambda content: content[:len(content.rstrip(b'\0')) // 2],
    'empty': lambda content: b''}


@pytest.mark.parametrize('spoil', SPOILERS)
def test_spoiled_input_leaves_the_old_file(kind, made, spoil, capsys):
    """A raw file is a page, cut short or empty: the error names a file and the
    old output is untouched."""
    name = convert(kind)
    with open(name, 'rb') as h5file:
        before = h5file.read()
    for raw_name in os.listdir('../raw'):
        path = os.path.join('../raw', raw_name)
        with open(path, 'rb') as raw:
            content = raw.read()
        with open(path, 'wb') as raw:
            raw.write(SPOILERS[spoil](content))
        if spoil == 'half' and raw_name in CUT_UNNOTICED:
            continue
        with pytest.raises(SystemExit, match='1'):
            fuel_convert.main([*raw_data.SETS[kind].command, '-d', '../raw'])
        assert 'Nothing was written' in capsys.readouterr().err
        with open(path, 'wb') as raw:
            raw.write(content)
    assert [name] == os.listdir()
    with open(name, 'rb') as h5file:
        assert before == h5file.read()


# Half of it may be whole records.
CUT_UNNOTICED = ('adult.data', 'adult.test', 'binarized_mnist_test.amat')


def test_missing_input_is_named(kind, made):
    """Any raw file that is missing is named, as an error of its kind."""
    dataset, *options = raw_data.SETS[kind].command
    from argparse import ArgumentParser
    parser = ArgumentParser()
    function = dict(all_converters)[dataset](parser)
    arguments = vars(parser.parse_args(options))
    accepted = signature_of(function).parameters
    arguments = {name: value for name, value in arguments.items()
                 if name in accepted}
    for raw_name in sorted(os.listdir('../raw')):
        os.rename(f'../raw/{raw_name}', f'../{raw_name}')
        with pytest.raises(MissingInputFiles, match=re.escape(raw_name)):
            function(directory='../raw', output_directory='.', **arguments)
        os.rename(f'../{raw_name}', f'../raw/{raw_name}')
    assert [] == os.listdir()


@pytest.mark.parametrize('kind', ['adult', 'iris'], indirect=True)
def test_missing_input_is_an_error_of_the_system_as_before(kind, made):
    """These two raised an OSError in Fuel 0.2.0."""
    for raw_name in os.listdir('../raw'):
        os.remove(f'../raw/{raw_name}')
    with pytest.raises(OSError, match='Required files missing') as caught:
        getattr(import_module(f'fuel.converters.{kind}'), f'convert_{kind}')(
            '../raw', '.')
    assert set(caught.value.filenames) == {
        file['name'] for file in registry.registered()[kind]['files']}


def test_every_data_set_has_a_miniature():
    """All sets but the two whose raw files have no single form have one."""
    assert {'one_billion_word', 'youtube_audio'} == (
        set(registry.dataset_names())
        - {raw.dataset for raw in raw_data.SETS.values()})


def test_info_prints_each_source(kind, made, capsys):
    """fuel-info knows every file that fuel-convert makes."""
    name = convert(kind)
    capsys.readouterr()
    assert 0 == fuel_info.main([name])
    assert f'Metadata for {name}' in capsys.readouterr().out


def test_files_of_another_set_are_refused(tmp_path, monkeypatch):
    """Several sets use MNIST's names: files known to be another's are not
    converted, and not replaced by a download."""
    raw_data.mnist(tmp_path)
    facts = copy.deepcopy(registry.registered())
    for entry in facts['mnist']['files']:
        content = (tmp_path / entry['name']).read_bytes()
        entry.update(size=len(content), md5=None,
                     sha256=hashlib.sha256(content).hexdigest())
    monkeypatch.setattr(registry, 'registered', lambda: facts)
    from fuel.converters.kmnist import convert_kmnist
    with pytest.raises(BadInputFile, match='file of mnist, not of kmnist'):
        convert_kmnist(str(tmp_path), str(tmp_path))
    before = (tmp_path / 'train-images-idx3-ubyte.gz').read_bytes()
    assert 1 == fuel_download.main(['kmnist', '-d', str(tmp_path)])
    assert before == (tmp_path / 'train-images-idx3-ubyte.gz').read_bytes()
    assert numpy.uint8 == MNIST_type(tmp_path)


def MNIST_type(folder):  # noqa: N802
    """Convert MNIST itself, which is not refused; return a type."""
    from fuel.converters.mnist import convert_mnist
    path, = convert_mnist(str(folder), str(folder))
    with h5py.File(path, 'r') as h5file:
        return h5file['features'].dtype
