"""Audio files, and streams that decode them.

They live in a module of their own, so that other processes can import it.
"""
import io

import numpy
import soundfile

from fuel.datasets import IndexableDataset
from fuel.interop.audio import AudioFromBytes
from fuel.streams import DataStream

RATE = 16000


def waves(seed=0, count=3000, channels=1):
    """Return noise of the shape (time, channel), from -0.5 to 0.5."""
    return numpy.random.default_rng(seed).uniform(
        -.5, .5, (count, channels)).astype('float32')


def encode(samples, form='WAV', rate=RATE, **kwargs):
    """Return an audio file."""
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format=form, **kwargs)
    return file.getvalue()


def decode(file, **kwargs):
    """Return what a stream decodes a file to."""
    stream = AudioFromBytes(
        DataStream(IndexableDataset({'audio': [file]}), batch_size=1),
        **kwargs)
    (audio, ), = next(stream.get_epoch_iterator())
    return audio


def build(**kwargs):
    """Return a stream of shuffled batches of files of several formats."""
    forms = ['WAV', 'FLAC', 'OGG', 'MP3']
    files = [encode(waves(number, 900 + 100 * number, 2), forms[number % 4])
             for number in range(10)]
    return AudioFromBytes(
        DataStream(IndexableDataset(
            {'audio': files, 'number': numpy.arange(10)}),
            batch_size=3, shuffle=True),
        RATE, which_sources='audio', **kwargs)
