"""Filters in Cython against their plain twins, and against HDF5."""
import contextlib

import h5py
import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuel.kernels.filters import fletcher32, lzf_decode, unshuffle


def plain_unshuffle(data, itemsize):
    """Undo the shuffle with NumPy."""
    count = len(data) // itemsize
    array = numpy.frombuffer(data, 'u1')
    head = array[:count * itemsize].reshape(itemsize, count).T.ravel()
    return numpy.concatenate([head, array[count * itemsize:]])


def plain_fletcher32(data):
    """Return the checksum with Python's integers."""
    low = high = 0
    padded = data + b'\0' * (len(data) % 2)
    for place in range(0, len(padded), 2):
        low += int.from_bytes(padded[place:place + 2], 'big')
        high += low
    return (high and (high - 1) % 65535 + 1) << 16 | (
        low and (low - 1) % 65535 + 1)


@given(data=st.binary(max_size=300), itemsize=st.integers(1, 17))
def test_unshuffle_equals_its_plain_twin(data, itemsize):
    """Data have any length, also with bytes left over."""
    assert (plain_unshuffle(data, itemsize).tobytes()
            == unshuffle(data, itemsize).tobytes())


@given(data=st.binary(max_size=600))
def test_fletcher32_equals_its_plain_twin(data):
    """Odd lengths and zeros too."""
    assert plain_fletcher32(data) == fletcher32(data)


def test_fletcher32_of_much_data_does_not_overflow():
    """Sums are reduced in time."""
    data = b'\xff' * 1_000_001
    assert plain_fletcher32(data) == fletcher32(data)


@given(data=st.binary(min_size=1, max_size=2000), repeat=st.integers(1, 40))
def test_lzf_decodes_what_hdf5_encodes(data, repeat):
    """The compressor is h5py's."""
    content = numpy.frombuffer(data * repeat, 'u1')
    with h5py.File('x', 'w', driver='core', backing_store=False) as file:
        x = file.create_dataset('x', data=content, chunks=content.shape,
                                compression='lzf')
        mask, stored = x.id.read_direct_chunk((0,))
    if not mask:
        assert (content == lzf_decode(stored, len(content))).all()


@given(data=st.binary(max_size=100), nbytes=st.integers(0, 200))
def test_lzf_of_noise_is_refused_or_has_the_size(data, nbytes):
    """Nothing is read or written outside of the buffers."""
    with contextlib.suppress(ValueError):
        assert nbytes == lzf_decode(data, nbytes).size


@pytest.mark.parametrize('data', [
    b'\x05abc', b'\x20\x00', b'\x20', b'\xe0', b'\xe0\xff', b'\x00a\x20\x05'])
def test_lzf_with_lengths_beyond_its_end_is_refused(data):
    """Literals, distances and lengths point outside."""
    with pytest.raises(ValueError, match='do not decode to 50 bytes'):
        lzf_decode(data, 50)
    with pytest.raises(ValueError, match='do not decode to 1 bytes'):
        lzf_decode(data, 1)


def test_arguments_are_checked():
    """Sizes below what makes sense."""
    with pytest.raises(ValueError, match='elements of 0 bytes'):
        unshuffle(b'abc', 0)
    with pytest.raises(ValueError, match='decode to -1 bytes'):
        lzf_decode(b'abc', -1)
