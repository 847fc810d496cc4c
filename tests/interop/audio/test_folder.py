"""A folder of audio files becomes one HDF5 file."""
import json
import logging
import re

import h5py
import numpy
import pytest
from numpy.testing import assert_array_equal
from PIL import Image
from support.audio_files import RATE, decode, encode, waves

import fuel
from fuel.bin import fuel_convert, fuel_info
from fuel.datasets.decoders import stage_for
from fuel.describe.examples import as_curve
from fuel.describe.panels import INK
from fuel.interop.audio import AudioFromBytes
from fuel.streams import DataStream

FORMS = ('wav', 'flac', 'ogg', 'mp3')


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Be in a folder beside ``own``, with four files of each of two
    classes."""
    for label in ('dog', 'cat'):
        (tmp_path / 'own' / label).mkdir(parents=True)
        for number, form in enumerate(FORMS):
            (tmp_path / 'own' / label / f'{number}.{form}').write_bytes(encode(
                waves(number + 10 * (label == 'dog'), 3000 + number),
                form.upper()))
    (tmp_path / 'out').mkdir()
    monkeypatch.chdir(tmp_path / 'out')
    return tmp_path / 'own'


def convert(*arguments):
    """Convert the folder; return the path of the file."""
    assert 0 == fuel_convert.main(['audio_folder', '../own', *arguments])
    return 'own.hdf5'


def fail(capsys, *arguments):
    """Fail to convert; return what is said."""
    with pytest.raises(SystemExit):
        convert(*arguments)
    return capsys.readouterr().err


def test_files_are_kept_as_they_are(own, capsys):
    """Targets are numbers of classes, whose names are known."""
    path = convert()
    assert '2 classes: cat 4, dog 4' in capsys.readouterr().err
    dataset = fuel.load(path, 'train', flat_targets=True)
    assert ('cat', 'dog') == dataset.class_names
    audio, targets = dataset[0:8]
    assert [0] * 4 + [1] * 4 == targets.tolist()
    for content, name in zip(audio, sorted(own.glob('*/*')), strict=True):
        assert name.read_bytes() == content.tobytes()
    stream = AudioFromBytes(DataStream(dataset, batch_size=8), RATE,
                            which_sources='audio')
    (sounds, _), = stream
    assert [3000, 3001, 3002, 3003] * 2 == [len(sound) for sound in sounds]
    assert_array_equal(decode((own / 'cat' / '0.wav').read_bytes()),
                       sounds[0])


def test_splits_are_held_out_with_a_share_of_each_class(own):
    """Splits may also come with the folder."""
    path = convert('--hold-out', 'test=0.5', '--stratify')
    for split in ('train', 'test'):
        _, targets = fuel.load(path, split)[0:4]
        assert [0, 0, 1, 1] == sorted(targets.ravel().tolist())
    parts = own.parent / 'parts'
    parts.mkdir()
    for split in ('train', 'test'):
        own.rename(parts / split)
        own.mkdir()
        for label in ('cat', 'dog'):
            (own / label).mkdir()
            (own / label / 'a.WAV').write_bytes(encode(waves()))
    own.rename(own.parent / 'rest')
    parts.rename(own)
    path = convert()
    assert 2 == len(fuel.load(path, 'test'))
    assert 8 == len(fuel.load(path, 'train'))


def test_bad_files_are_named_or_left_out(own, capsys, caplog):
    """Bad files are handled as those of an image folder; a class keeps its
    number."""
    whole = (own / 'cat' / '1.flac').read_bytes()
    (own / 'cat' / '1.flac').write_bytes(whole[:len(whole) // 2])
    for path in (own / 'dog').iterdir():
        path.write_bytes(b'no audio')
    error = fail(capsys)
    assert '1.flac: cannot be decoded as audio (' in error
    assert '--on-error skip' in error
    with caplog.at_level(logging.WARNING):
        path = convert('--on-error', 'skip')
    assert 5 == sum('left out: ' in record.getMessage()
                    for record in caplog.records)
    _, targets = fuel.load(path, 'train')[0:3]
    assert [0, 0, 0] == targets.ravel().tolist()
    with h5py.File(path) as h5file:
        inputs = json.loads(h5file.attrs['fuel_convert_inputs'])['own']
    assert (3, 5) == (inputs['files'], inputs['left_out'])


def test_different_rates_are_told_of(own, caplog):
    """The warning says how to resample them to one rate."""
    (own / 'cat' / '0.wav').write_bytes(encode(waves(), rate=8000))
    path = convert()
    assert '16000 (7 files), 8000 (1 files)' in caplog.text
    stream = AudioFromBytes(
        DataStream(fuel.load(path, 'train'), batch_size=8), RATE,
        resample=True, which_sources='audio')
    assert 6000 == len(next(iter(stream))[0][0])


def test_folder_of_other_files_is_an_error(own, capsys):
    """The error says which files were looked for."""
    for path in own.glob('*/*'):
        path.rename(path.with_suffix('.txt'))
    assert 'No audio files in folders of classes' in fail(capsys)
    assert 'images' not in capsys.readouterr().err


def test_preview_draws_the_samples(own, capsys):
    """The table shows the source of the samples."""
    path = convert()
    assert 0 == fuel_info.main([path, '--preview', 'a.png'])
    assert 'audio' in capsys.readouterr().out
    with h5py.File(path) as h5file:
        content = h5file['audio'][0]
    curve = as_curve(content)
    assert_array_equal(decode(content), curve)
    with Image.open('a.png') as image:
        ink = numpy.asarray(image)[..., 0] == INK[0]
    assert ink.any()
    # Bytes that only begin like audio are drawn as they are.
    other = numpy.frombuffer(b'ID3 and more', 'uint8')
    assert other is as_curve(other)


def test_folder_is_read_as_it_lies_by_the_stage_that_is_printed(own):
    """Its import and its call can be pasted."""
    dataset = fuel.load(own)
    names = {'stream': DataStream(dataset, batch_size=8)}
    text = str(dataset)
    exec(re.search(r'from [\w.]+ import \w+', text)[0], names)
    stream = eval(re.search(r'decode with (.*?)[;>]', text)[1], names)
    waves_of, labels, paths = next(iter(stream))
    assert [0] * 4 + [1] * 4 == labels.tolist()
    for wave, path in zip(waves_of, paths, strict=True):
        assert_array_equal(decode((own / path).read_bytes()), wave)


@pytest.mark.parametrize('form', ['WAV', 'FLAC', 'OGG', 'AIFF'])
def test_sounds_are_known_by_their_first_bytes(form):
    """In the formats whose files begin with a name."""
    assert 'AudioFromBytes' == stage_for(encode(waves(1), form))
