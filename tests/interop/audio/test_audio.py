"""Audio files become the samples that are in them, or clear errors."""
import io
import pickle
import struct
import tracemalloc
from functools import partial

import numpy
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.signal import resample_poly
from support.audio_files import RATE, build, decode, encode, waves

from fuel.datasets import IndexableDataset
from fuel.describe.source_types import types_of
from fuel.exceptions import UndecodableAudioError
from fuel.interop import audio
from fuel.interop.audio import AudioFromBytes
from fuel.streams import DataStream
from fuel.testing import check_stream
from fuel.transformers import Padding

FORMS = ['WAV', 'FLAC', 'OGG', 'MP3', 'AIFF', 'AU', 'CAF', 'W64', 'RF64']
WHOLE = {form: encode(waves(count=16000, channels=2), form)
         for form in FORMS}
WHOLE['OPUS'] = encode(waves(count=16000, channels=2), 'OGG', subtype='OPUS')


def samples_of(file, dtype='float32'):
    """Return the samples of a file, as the library decodes them."""
    with soundfile.SoundFile(io.BytesIO(file)) as sound:
        return sound.read(dtype=dtype, always_2d=True)


@pytest.mark.parametrize('form', WHOLE)
def test_samples_are_those_of_the_library(form):
    """Samples are equal for each format, with all channels or their mean."""
    expected = samples_of(WHOLE[form])
    found = decode(WHOLE[form], channels=None)
    assert_array_equal(expected, found)
    assert ('float32', (16000, 2)) == (found.dtype, found.shape)
    found = decode(WHOLE[form], sample_rate=RATE)
    assert_allclose(expected.mean(axis=1), found, atol=1e-7)
    assert found.flags.writeable


@pytest.mark.parametrize('dtype', ['float32', 'float64', 'int16', 'int32'])
@pytest.mark.parametrize('channels', [1, 2, 3])
def test_types_are_those_of_the_library(dtype, channels):
    """The mean of integers is rounded."""
    file = encode(waves(channels=channels))
    expected = samples_of(file, dtype)
    assert_array_equal(expected, decode(file, channels=None, dtype=dtype))
    mean = expected.astype('float64').mean(axis=1)
    found = decode(file, dtype=dtype)
    assert dtype == found.dtype
    assert abs(mean - found).max() <= (.5 if dtype[0] == 'i' else 1e-6)


@pytest.mark.parametrize('form', ['WAV', 'FLAC', 'OGG', 'MP3'])
def test_long_files_are_cut(form):
    """The start of the file is kept; short files are unchanged."""
    whole = decode(WHOLE[form])
    assert_array_equal(whole[:700], decode(WHOLE[form], max_samples=700))
    assert_array_equal(whole, decode(WHOLE[form], max_samples=16001))


@given(st.sampled_from([8000, 11025, 16000, 44100, 48000]),
       st.integers(1, 3000), st.integers(1, 4000))
def test_files_of_other_rates_are_resampled(rate, count, most):
    """SciPy is the oracle; samples that are cut off have no influence."""
    file = encode(waves(count=count), 'WAV', rate, subtype='FLOAT')
    expected = waves(count=count)[:, 0] if rate == RATE else resample_poly(
        waves(count=count)[:, 0], RATE, rate)
    found = decode(file, sample_rate=RATE, resample=True)
    assert_allclose(expected, found, atol=1e-6)
    assert_allclose(expected[:most], decode(
        file, sample_rate=RATE, resample=True, max_samples=most), atol=1e-6)


def test_file_of_another_rate_is_an_error_that_says_what_to_do():
    """Resampling it, or accepting any rate, avoids the error."""
    file = encode(waves(), rate=44100)
    with pytest.raises(UndecodableAudioError, match=(
            r"the audio file of 'audio'.* has 44100 samples a "
            r"second, and sample_rate is 16000; resample=True")) as caught:
        decode(file, sample_rate=RATE)
    assert 'example 0 of the data set' in caught.value.__notes__
    assert 3000 == len(decode(file))


BAD = {
    'nothing': (b'', 'is empty'),
    'text': (b'no audio file at all', 'Format not recognised'),
    'no samples': (encode(waves(count=0)), 'it has no samples'),
    **{f'half of {form}': (file[:len(file) // 2], 'cannot be d') for form, file
       in WHOLE.items() if form not in ('CAF', 'W64', 'RF64')},
    **{f'start of {form}': (file[:50], 'cannot be d') for form, file
       in WHOLE.items()}}
# A file without its last byte has lost a sample, or a frame of them.
BAD |= {f'{form} without its last byte': (WHOLE[form][:-1], 'cut off')
        for form in ('WAV', 'AIFF', 'AU', 'OGG', 'MP3', 'OPUS')}


@pytest.mark.parametrize('name', BAD)
def test_bad_files_are_errors_that_name_the_example(name):
    """The error does not show the address of an object."""
    file, text = BAD[name]
    with pytest.raises(UndecodableAudioError, match=text) as caught:
        decode(file)
    assert 'object at 0x' not in str(caught.value)
    assert "the audio file of 'audio'" in str(caught.value)
    assert any("on_error='skip' of the DataStream" in note
               for note in caught.value.__notes__)


def test_cut_files_raise_no_error_where_nothing_is_missing():
    """The samples that are asked for are complete."""
    file = WHOLE['WAV']
    assert_array_equal(decode(file)[:700],
                       decode(file[:len(file) // 2], max_samples=700))


@pytest.mark.parametrize('size', [0xFFFFFFFF, 0x7FFFFFFF, 0x7FFFF000])
def test_lengths_that_were_not_known_raise_no_error(size):
    """Programs that write into a pipe leave the lengths unknown."""
    file = bytearray(WHOLE['WAV'])
    place = file.index(b'data') + 4
    file[4:8] = file[place:place + 4] = struct.pack('<I', size)
    assert_array_equal(decode(WHOLE['WAV']), decode(bytes(file)))


def test_bytes_after_the_samples_raise_no_error():
    """The tags of an MP3 file are such bytes."""
    for form, more in [('WAV', b'LIST\x04\0\0\0abcd'),
                       ('MP3', b'TAG' + bytes(125)), ('OGG', bytes(9))]:
        assert_array_equal(decode(WHOLE[form]), decode(WHOLE[form] + more))


def hostile_flac(count):
    """Return a FLAC file whose header claims as many samples."""
    file = bytearray(WHOLE['FLAC'])
    # The last 36 of 64 bits, after the signature and ten bytes.
    start = file.index(b'fLaC') + 8 + 10
    bits, = struct.unpack('>Q', file[start:start + 8])
    file[start:start + 8] = struct.pack('>Q', bits >> 36 << 36 | count)
    return bytes(file)


@pytest.mark.parametrize('count, text', [
    ((1 << 36) - 1, 'header claims 68719476735 samples'),
    (audio.MAX_SAMPLES, 'header claims'), (0, 'does not say how many')])
def test_claims_of_a_header_take_no_memory(count, text):
    """A header of unknown length takes no memory either."""
    tracemalloc.start()
    try:
        with pytest.raises(UndecodableAudioError, match=text):
            decode(hostile_flac(count))
        assert tracemalloc.get_traced_memory()[1] < 1 << 24
    finally:
        tracemalloc.stop()


def test_larger_claims_than_samples_are_an_error():
    """The claims are below the limit."""
    with pytest.raises(UndecodableAudioError, match='cannot be decoded'):
        decode(hostile_flac(20000))
    assert 700 == len(decode(hostile_flac((1 << 36) - 1), max_samples=700))


@pytest.mark.parametrize('rate, text', [
    (1, 'more than fuel.interop.audio.MAX_SAMPLES'),
    (2 ** 31 - 1, 'cannot be brought to')])
def test_hostile_rates_take_no_memory(rate, text):
    """The filter does not become as long as the rates are large."""
    with pytest.raises(UndecodableAudioError, match=text):
        decode(encode(waves(count=20000), rate=rate), sample_rate=RATE,
               resample=True)


def test_bad_files_are_left_out_by_the_stream():
    """They are left out of all sources, and reported with their numbers."""
    files = [encode(waves(number)) for number in range(6)]
    files[1] = files[1][:400]
    files[4] = encode(waves(), rate=8000)
    stream = AudioFromBytes(DataStream(
        IndexableDataset({'audio': files, 'number': numpy.arange(6)}),
        batch_size=3, shuffle=True, on_error='skip'),
        RATE, which_sources='audio')
    numbers = [number for _, part in stream for number in part.tolist()]
    assert [0, 2, 3, 5] == sorted(numbers)
    skipped = stream.skipped_examples()
    assert all('correct the data' not in each.error
               for each in skipped.examples)
    assert {1, 4} == {each.example for each in skipped.examples}


def test_sounds_of_hugging_face_and_arrays_of_bytes_are_decoded(tmp_path):
    """The bytes are decoded, or the file that is named."""
    file = WHOLE['FLAC']
    (tmp_path / 'a.flac').write_bytes(file)
    for form in ({'bytes': file, 'path': None},
                 {'bytes': None, 'path': str(tmp_path / 'a.flac')},
                 numpy.frombuffer(file, 'uint8'), memoryview(file)):
        assert_array_equal(decode(file), decode(form))
    with pytest.raises(UndecodableAudioError, match='cannot be read'):
        decode({'bytes': None, 'path': str(tmp_path / 'b.flac')})
    for value in (3, 'a.flac', numpy.zeros(9)):
        with pytest.raises(TypeError, match='must be bytes'):
            decode(value)


def test_sources_that_are_not_files_are_an_error_that_names_the_argument():
    """Targets of one byte are arrays of bytes, too."""
    stream = AudioFromBytes(DataStream(IndexableDataset(
        {'audio': [WHOLE['WAV']], 'targets': numpy.zeros((1, 1), 'uint8')}),
        batch_size=1))
    with pytest.raises(UndecodableAudioError, match="'targets'") as caught:
        next(iter(stream))
    assert ("which_sources names what is decoded; it is ('audio', 'targets')"
            in caught.value.__notes__)


@pytest.mark.parametrize('kwargs, text', [
    ({'sample_rate': 0}, 'sample_rate must be a positive integer'),
    ({'max_samples': -1}, 'max_samples must be a positive integer'),
    ({'channels': 'stereo'}, "channels must be 'mono' or None"),
    ({'dtype': 'uint8'}, 'dtype must be one of float32'),
    ({'resample': True}, 'needs the sample_rate'),
    ({'resample': True, 'sample_rate': 1, 'dtype': 'int16'}, 'floating'),
    ({'which_sources': 'audi'}, "did you mean 'audio'"),
    ({'num_threads': 0}, 'num_threads must be a positive integer')])
def test_bad_arguments_are_errors_at_once(kwargs, text):
    """The constructor of the stage raises them."""
    with pytest.raises(ValueError, match=text):
        decode(b'', **kwargs)


@pytest.mark.parametrize('kwargs', [{}, {'num_threads': 2}, {
    'channels': None, 'max_samples': 500, 'dtype': 'int16'}])
def test_promises_of_streams_are_kept(kwargs, another_process):
    """A state that was saved at any step is continued elsewhere."""
    check_stream(partial(build, **kwargs), another_process=another_process)


@pytest.mark.parametrize('channels, axes', [
    ('mono', ('batch', 'time')), (None, ('batch', 'time', 'channel'))])
def test_types_and_axes_are_known(channels, axes):
    """Types are known before anything is read."""
    stream = AudioFromBytes(DataStream(IndexableDataset({
        'audio': numpy.zeros((2, 9), 'uint8')}), batch_size=2),
        channels=channels)
    assert axes == stream.axis_labels['audio']
    known = types_of(stream)['audio']
    assert ('float32', (None,) * len(axes)) == (known.dtype, known.shape)


def test_batches_are_padded():
    """Batches are as long as the longest sound, and have a mask."""
    for padded, mask, numbers in Padding(build(), mask_sources='audio'):
        assert mask.shape == padded.shape == (
            len(numbers), 900 + 100 * numbers.max())
        assert (900 + 100 * numbers).tolist() == mask.sum(axis=1).tolist()


def test_stage_is_pickled():
    """The pickle names the stage as users import it."""
    stream = pickle.loads(pickle.dumps(build(max_samples=5)))
    assert AudioFromBytes is type(stream)
    assert 5 == stream.max_samples
