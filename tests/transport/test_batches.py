"""Batches as a description and memory: what arrives is what was sent."""
import pickle

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.random_arrays import ARRAYS

from fuel.transport.batches import dump_batch, load_batch


def across(batch, small=100):
    """Return a batch as the other process gets it."""
    description, buffers = dump_batch(batch, small)
    return load_batch(memoryview(description),
                      [bytearray(buffer) for buffer in buffers])


@given(st.lists(ARRAYS, max_size=4), st.sampled_from([0, 1, 100, 10 ** 6]))
def test_tuples_of_arrays_arrive_as_they_are(parts, small):
    """Arrays of every type and size arrive, in buffers or descriptions."""
    found = across(tuple(parts), small)
    assert type(found) is tuple
    assert len(found) == len(parts)
    for part, expected in zip(found, parts, strict=True):
        assert part.dtype == expected.dtype
        assert part.shape == expected.shape
        assert part.tobytes() == expected.tobytes()
        assert part.flags.writeable or not part.size
        assert not numpy.shares_memory(part, expected)


@pytest.mark.parametrize('part', [
    numpy.arange(60.).reshape(6, 10).T, numpy.arange(60.)[::2],
    numpy.frombuffer(bytes(800)), numpy.array([[1], None], object),
    [numpy.arange(100.)], 'text', 7, None,
    numpy.ma.masked_array([1., 2.], [True, False])],
    ids=lambda part: type(part).__name__)
def test_other_parts_arrive_by_pickle(part):
    """Arrays of any layout arrive equal and writable."""
    found, = across((part,))
    assert type(found) is type(part)
    numpy.testing.assert_equal(found, part)
    if isinstance(found, numpy.ndarray):
        assert found.flags.writeable


def test_an_array_that_stands_twice_arrives_once():
    """The array arrives once, as from a pickle."""
    array = numpy.arange(100.)
    first, second = across((array, array))
    assert first is second
    assert (first == array).all()


@pytest.mark.parametrize('batch', [[], (), {}, numpy.arange(1000.), None])
def test_batch_that_is_not_a_tuple_keeps_its_type(batch):
    """Lists stay lists, and an array alone stays an array."""
    numpy.testing.assert_equal(across(batch), batch)
    assert type(across(batch)) is type(batch)


def test_descriptions_of_like_batches_are_alike():
    """The same types and shapes are described once."""
    first = dump_batch((numpy.zeros((100, 100)), numpy.zeros(3)))[0]
    second = dump_batch((numpy.ones((100, 100)), numpy.zeros(3)))[0]
    assert first == second
    assert first[:1] != pickle.dumps(None)[:1]
