"""States of decoded audio that were saved before 1.0.0 are taken up.

See ``tests/compat/test_states.py``. What the file has is never changed; a new
pipeline is added by running this file, with ``tests`` in ``PYTHONPATH``.
"""
import io
import wave
from pathlib import Path

import numpy
import pytest
from support import saved_states

from fuel.datasets import IndexableDataset
from fuel.interop.audio import AudioFromBytes
from fuel.schemes import ComputedShuffledScheme
from fuel.streams import DataStream

STATES = Path(__file__).with_name('states.json')


def recording(number):
    """Return a short file of 16 bits, as WAV."""
    file = io.BytesIO()
    with wave.open(file, 'wb') as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(numpy.arange(
            number, number + 4, dtype='<i2').tobytes())
    return numpy.frombuffer(file.getvalue(), numpy.uint8)


def recordings():
    """Return batches of files."""
    files = numpy.empty(12, object)
    files[:] = [recording(number) for number in range(12)]
    return DataStream(IndexableDataset({'audio': files}),
                      iteration_scheme=ComputedShuffledScheme(12, 2, seed=1))


PIPELINES = {
    'AudioFromBytes': lambda place: AudioFromBytes(
        recordings(), dtype='int16'),
    'AudioFromBytes, all channels': lambda place: AudioFromBytes(
        recordings(), channels=None, dtype='int16'),
}


@pytest.mark.parametrize('name', PIPELINES)
def test_orders_are_those_of_1_0(name):
    """The first and the second epoch have the recorded orders."""
    saved_states.check_orders(STATES, name, PIPELINES[name])


@pytest.mark.parametrize('name', PIPELINES)
def test_state_of_1_0_goes_on_with_the_next_item(name):
    """The pipeline that loads the state is built anew."""
    saved_states.check_rest(STATES, name, PIPELINES[name])


if __name__ == '__main__':
    saved_states.write_new(STATES, PIPELINES)
