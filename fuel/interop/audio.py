"""Decode audio files with the library soundfile."""
from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, NoReturn, Unpack

import numpy
from numpy.typing import DTypeLike

from fuel.describe.source_types import SourceType
from fuel.exceptions import UndecodableAudioError
from fuel.transformers.decoding import DecodingStage
from fuel.transformers.dtypes import as_dtype
from fuel.transformers.options import ThreadedOptions
from fuel.typing import StreamLike
from fuel.utils.checks import positive
from fuel.utils.extras import from_extra

with from_extra('audio', 'soundfile'):
    import soundfile

__all__ = ['AudioFromBytes']

# Most samples of a decoded file, in all channels together. There is a limit
# since the header of a file of one kilobyte can claim hours of samples.
MAX_SAMPLES = 1 << 28
# Most steps of the filter that resamples; common rates need a few hundred.
_MOST_STEPS = 1 << 17
# In scipy's filter, a sample of the slower rate depends on this many samples
# on each side.
_REACH = 10
# Number of samples in a block, if a file is decoded without keeping its
# samples.
_BLOCK = 1 << 22
# Types that libsndfile decodes to.
_DTYPES = ('float32', 'float64', 'int16', 'int32')
# A line in which libsndfile reports less data than a header claims. Lines
# about the whole file (RIFF, FORM) are excluded, since the length of the whole
# file says nothing about the samples.
_CUT = re.compile(r'\s*(?!RIFF|FORM)\S.*: (\d+) \(should be (\d+)\)')
# This length, or a larger one, means that the length was not known when the
# header was written.
_UNKNOWN = 0x7FFF0000
# The number of frames that libsndfile returns if a header states no number.
_NO_COUNT = (1 << 63) - 1


class AudioFromBytes(DecodingStage):
    """Decodes audio files, such as WAV, FLAC, Ogg and MP3.

    Parameters
    ----------
    data_stream : AbstractDataStream
        Its examples are the bytes of audio files, in any format that the
        library soundfile reads, or arrays of these bytes, as an HDF5 file
        stores them. An example may also be an ``Audio`` of Hugging Face,
        ``{'bytes': ..., 'path': ...}``: its bytes are decoded, or the file at
        its path if it has no bytes.
    sample_rate : int, optional
        The number of samples per second of all files. A file of another rate
        is an error, unless `resample` is true. Defaults to None: files may
        have any rate, and downstream stages do not know the rate.
    resample : bool, optional
        Whether files of another rate are resampled to `sample_rate`, by
        :func:`scipy.signal.resample_poly`. Defaults to False.
    channels : 'mono' or None, optional
        ``'mono'``, the default, takes the mean of all channels, and an
        example has the shape ``(time,)``. None keeps the channels, and the
        shape is ``(time, channel)``.
    max_samples : int, optional
        Largest number of samples of each channel in an example. Of a longer
        file only the start is decoded. Defaults to None: all samples.
    dtype : dtype, optional
        With ``'float32'``, the default, and ``'float64'``, numbers are from
        -1 to 1. With ``'int16'`` and ``'int32'``, they use the whole range of
        the type. ``'floatX'`` means ``config.floatX``.
    num_threads : int, optional
        Number of threads that decode. Default is ``config.num_threads``.
    produces_examples, which_sources, iteration_scheme, axis_labels
        As for :class:`~fuel.transformers.SourcewiseTransformer`. The axis
        labels of the chosen sources default to (batch, time) or (batch, time,
        channel).

    Raises
    ------
    ValueError
        If an argument has a value that is not listed above, or `resample` is
        given without `sample_rate` or with an integer `dtype`.
    fuel.exceptions.UndecodableAudioError
        When a batch is read, if a file cannot be decoded: it is not an audio
        file, is cut off, has no samples, has another rate than
        `sample_rate`, or has more than ``fuel.interop.audio.MAX_SAMPLES``
        samples in all channels, 2 ** 28. A stream with ``on_error='skip'``
        leaves the example out.
    TypeError
        When a batch is read, if an example does not hold bytes.

    See Also
    --------
    fuel.transformers.Padding : Pads a batch to one array, with a mask.

    Notes
    -----
    A batch becomes a list of arrays. The result does not depend on the
    number of threads. A file that is cut off is an error if its format stores
    the length. Most formats do, but an MP3 file without a header does not.

    Examples
    --------
    This needs the extra ``audio``.

    >>> import io, numpy, soundfile
    >>> from fuel.datasets import IterableDataset
    >>> from fuel.streams import DataStream
    >>> file = io.BytesIO()
    >>> soundfile.write(file, numpy.zeros((8000, 2)), 16000, format='FLAC')
    >>> stream = DataStream(IterableDataset({'audio': [file.getvalue()]}))
    >>> audio, = next(AudioFromBytes(stream, 16000).get_epoch_iterator())
    >>> audio.shape, audio.dtype
    ((8000,), dtype('float32'))
    """

    noun = 'audio file'
    undecodable = UndecodableAudioError

    def __init__(self, data_stream: StreamLike,
                 sample_rate: int | None = None, *, resample: bool = False,
                 channels: Literal['mono'] | None = 'mono',
                 max_samples: int | None = None,
                 dtype: DTypeLike = 'float32',
                 **kwargs: Unpack[ThreadedOptions]) -> None:
        if channels not in ('mono', None):
            raise ValueError(
                f"channels must be 'mono' or None, got {channels!r}")
        super().__init__(data_stream, ('time',) if channels else (
            'time', 'channel'), **kwargs)
        self.sample_rate = None if sample_rate is None else positive(
            'sample_rate', sample_rate)
        self.channels = channels
        self.max_samples = None if max_samples is None else positive(
            'max_samples', max_samples)
        self.dtype = as_dtype(dtype)
        if self.dtype not in _DTYPES:
            raise ValueError(f'dtype must be one of {", ".join(_DTYPES)}, '
                             f'got {self.dtype}; put Cast behind this stage')
        self.resample = bool(resample)
        if self.resample and (sample_rate is None or self.dtype.kind == 'i'):
            raise ValueError(
                'resample needs the sample_rate to bring files to, and '
                f'floating numbers; got sample_rate={sample_rate!r} and '
                f'dtype={self.dtype}')

    def type_after(self, known: SourceType, source_name: str) -> SourceType:
        """Return the type of the samples; their number is not known."""
        shape: tuple[int | None, ...] = (None,) if self.channels else (
            None, None)
        return SourceType(self.dtype, shape if self.produces_examples
                          else (None, *shape))

    def _decode_file(self, file: bytes | bytearray | memoryview) -> Any:
        with soundfile.SoundFile(io.BytesIO(file)) as sound:
            up, down = self._ratio(sound.samplerate)
            samples = _read(sound, file, self.dtype, self.max_samples and (
                math.ceil(self.max_samples * down / up)
                + (up != down) * _REACH * math.ceil(max(up, down) / up)))
        if self.channels == 'mono':
            samples = _mono(samples)
        if up != down:
            samples = _resampled(samples, up, down)
        return samples if self.max_samples is None else (
            samples[:self.max_samples])

    def _ratio(self, rate: int) -> tuple[int, int]:
        """Return the factors by which a file is upsampled and downsampled.

        `rate`: the number of samples per second of the file.
        """
        if self.sample_rate in (None, rate):
            return 1, 1
        assert self.sample_rate is not None
        if not self.resample:
            raise ValueError(
                f'it has {rate} samples a second, and sample_rate is '
                f'{self.sample_rate}; resample=True brings all to one rate')
        common = math.gcd(self.sample_rate, rate)
        up, down = self.sample_rate // common, rate // common
        if max(up, down) > _MOST_STEPS:
            raise ValueError(
                f'its {rate} samples a second cannot be brought to '
                f'{self.sample_rate}')
        return up, down

    def _why(self, error: Exception) -> str:
        return _why(error)


def _why(error: Exception) -> str:
    # str() of an error of libsndfile shows the file object and its address.
    return str(error.error_string) if isinstance(
        error, soundfile.LibsndfileError) else str(error)


@contextmanager
def _opened(file: bytes) -> Iterator[Any]:
    """Open an audio file; turn its errors into `UndecodableAudioError`."""
    try:
        with soundfile.SoundFile(io.BytesIO(file)) as sound:
            yield sound
    except (ValueError, soundfile.LibsndfileError) as error:
        raise UndecodableAudioError(_why(error).rstrip('.')) from error


def probe(file: bytes) -> int:
    """Decode all of an audio file, and return its samples per second."""
    with _opened(file) as sound:
        _check_end(sound, file)
        block = numpy.empty((
            max(1, min(sound.frames, _BLOCK // sound.channels)),
            sound.channels), 'float32')
        left = sound.frames
        while left:
            count = len(sound.read(out=block[:left]))
            left -= count
            if not count:
                _raise_cut(sound.frames - left, sound.frames)
        return int(sound.samplerate)


def first_samples(file: bytes, most: int) -> Any:
    """Return the first samples of an audio file, as the mean of its channels.

    `most`: the largest number of samples to return.
    """
    with _opened(file) as sound:
        return _mono(_read(sound, file, numpy.dtype('float32'), most))


def _read(sound: Any, file: bytes | bytearray | memoryview,
          dtype: numpy.dtype[Any], most: int | None) -> Any:
    """Return the samples of an opened file, of shape (time, channel).

    `most`: the largest number of samples of each channel to read; None for
        all samples.
    """
    count = sound.frames if most is None else min(most, sound.frames)
    if count == sound.frames:
        _check_end(sound, file)
    if count * sound.channels > MAX_SAMPLES:
        raise ValueError(
            f'its header claims {sound.frames} samples of {sound.channels} '
            f'channel(s), and more than fuel.interop.audio.MAX_SAMPLES = '
            f'{MAX_SAMPLES} are not decoded; raise that limit if the '
            f'file is not hostile, or pass max_samples')
    samples = sound.read(out=numpy.empty((count, sound.channels), dtype))
    if len(samples) < count:
        _raise_cut(len(samples), sound.frames)
    return samples


def _raise_cut(count: int, claimed: int) -> NoReturn:
    raise ValueError(f'it is cut off after {count} of {claimed} samples')


def _check_end(sound: Any, file: bytes | bytearray | memoryview) -> None:
    """Raise ValueError if a file is cut off, is empty or states no length.

    If a file is cut off, libsndfile itself raises no error, and reads the
    samples that are left.
    """
    if sound.format == 'OGG':
        content = bytes(file)
        page = content[content.rfind(b'OggS'):]
        # Byte 26 of a page is the number of its segments. The lengths of the
        # segments follow.
        count = page[26] if len(page) > 26 else 255
        if len(page) < 27 + count + sum(page[27:27 + count]):
            raise ValueError('it is cut off within its last page')
    for line in sound.extra_info.splitlines():
        found = _CUT.fullmatch(line)
        if found and int(found[2]) < int(found[1]) < _UNKNOWN:
            raise ValueError(f'it is cut off: {found[2]} bytes of samples are '
                             f'there, and its header says {found[1]}')
    if not sound.frames:
        raise ValueError('it has no samples')
    if sound.frames == _NO_COUNT:
        raise ValueError('its header does not say how many samples it has; '
                         'encode it anew')


def _mono(samples: Any) -> Any:
    """Return the mean of all channels."""
    if samples.shape[1] == 1:
        return samples[:, 0]
    if samples.dtype.kind == 'i':
        return numpy.rint(samples.mean(axis=1)).astype(samples.dtype)
    return samples.mean(axis=1, dtype=samples.dtype)


def _resampled(samples: Any, up: int, down: int) -> Any:
    from scipy.signal import resample_poly
    if len(samples) * up // down * math.prod(
            samples.shape[1:]) > MAX_SAMPLES:
        raise ValueError(
            f'{len(samples)} samples would be {len(samples) * up // down} at '
            f'sample_rate, and more than fuel.interop.audio.MAX_SAMPLES = '
            f'{MAX_SAMPLES} are not made; pass max_samples')
    return resample_poly(samples, up, down, axis=0)
