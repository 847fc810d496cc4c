"""The filters of HDF5 that no package decodes: shuffle, lzf, fletcher32.

Every function checks its buffers, then runs without the GIL.
"""
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

import numpy


def unshuffle(const uint8_t[::1] data, Py_ssize_t itemsize, result=None):
    """Undo HDF5's byte shuffle.

    Shuffled data hold the first byte of every element, then the second of
    every element, and so on; bytes beyond the last full element follow.
    `result`: an array of as many bytes to fill; default is a new one.

    Examples
    --------
    >>> unshuffle(b'acbd', 2).tobytes()
    b'abcd'
    """
    if itemsize < 1:
        raise ValueError(f'elements of {itemsize} bytes cannot be shuffled')
    cdef Py_ssize_t size = data.shape[0]
    result = room_for(size, result)
    if not size:
        return result
    cdef uint8_t[::1] out = result
    with nogil:
        if itemsize == 2:
            unshuffle_2(&data[0], &out[0], size)
        elif itemsize == 4:
            unshuffle_4(&data[0], &out[0], size)
        elif itemsize == 8:
            unshuffle_8(&data[0], &out[0], size)
        else:
            unshuffle_any(&data[0], &out[0], size, itemsize)
    return result


cdef room_for(Py_ssize_t nbytes, result):
    """Return an array to fill: a new one, or that of the caller."""
    if result is None:
        return numpy.empty(nbytes, numpy.uint8)
    if result.nbytes != nbytes:
        raise ValueError(f'there is room for {result.nbytes} bytes instead '
                         f'of {nbytes}')
    return result


# One loop for each common size, so that the compiler sees a constant.

cdef void unshuffle_2(const uint8_t *data, uint8_t *out,
                      Py_ssize_t size) noexcept nogil:
    cdef Py_ssize_t count = size // 2, place
    for place in range(count):
        out[2 * place] = data[place]
        out[2 * place + 1] = data[count + place]
    copy_rest(data, out, 2 * count, size)


cdef void unshuffle_4(const uint8_t *data, uint8_t *out,
                      Py_ssize_t size) noexcept nogil:
    cdef Py_ssize_t count = size // 4, place
    for place in range(count):
        out[4 * place] = data[place]
        out[4 * place + 1] = data[count + place]
        out[4 * place + 2] = data[2 * count + place]
        out[4 * place + 3] = data[3 * count + place]
    copy_rest(data, out, 4 * count, size)


cdef void unshuffle_8(const uint8_t *data, uint8_t *out,
                      Py_ssize_t size) noexcept nogil:
    cdef Py_ssize_t count = size // 8, place, byte
    for place in range(count):
        for byte in range(8):
            out[8 * place + byte] = data[byte * count + place]
    copy_rest(data, out, 8 * count, size)


cdef void unshuffle_any(const uint8_t *data, uint8_t *out, Py_ssize_t size,
                        Py_ssize_t itemsize) noexcept nogil:
    cdef Py_ssize_t count = size // itemsize, place, byte
    for byte in range(itemsize):
        for place in range(count):
            out[itemsize * place + byte] = data[byte * count + place]
    copy_rest(data, out, itemsize * count, size)


cdef void copy_rest(const uint8_t *data, uint8_t *out, Py_ssize_t start,
                    Py_ssize_t size) noexcept nogil:
    cdef Py_ssize_t place
    for place in range(start, size):
        out[place] = data[place]


def lzf_decode(const uint8_t[::1] data, Py_ssize_t nbytes, result=None):
    """Decode LZF.

    `result`: an array of `nbytes` bytes to fill; default is a new one.

    Examples
    --------
    >>> lzf_decode(b'\\x02abc', 3).tobytes()
    b'abc'
    """
    if nbytes < 0:
        raise ValueError(f'cannot decode to {nbytes} bytes')
    result = room_for(nbytes, result)
    cdef uint8_t[::1] out = result
    cdef Py_ssize_t written = 0
    if data.shape[0]:
        with nogil:
            written = lzf(&data[0], data.shape[0],
                          &out[0] if nbytes else NULL, nbytes)
    if written != nbytes:
        raise ValueError(f'{data.shape[0]} bytes do not decode to {nbytes} '
                         f'bytes of LZF')
    return result


cdef Py_ssize_t lzf(const uint8_t *data, Py_ssize_t size, uint8_t *out,
                    Py_ssize_t room) noexcept nogil:
    """Return the number of written bytes, -1 if the data are not valid LZF.

    A control byte below 32 precedes so many and one literal bytes.  Others
    hold a length in the top three bits (7: another byte is added) and the
    top five bits of a distance. A further byte holds the rest of it.
    """
    cdef Py_ssize_t read = 0, written = 0, length, distance, place
    cdef uint8_t control
    while read < size:
        control = data[read]
        read += 1
        if control < 32:
            length = control + 1
            if length > size - read or length > room - written:
                return -1
            for place in range(length):
                out[written + place] = data[read + place]
            read += length
        else:
            length = control >> 5
            if length == 7:
                if read >= size:
                    return -1
                length += data[read]
                read += 1
            length += 2
            if read >= size:
                return -1
            distance = ((control & 31) << 8) + data[read] + 1
            read += 1
            if distance > written or length > room - written:
                return -1
            # Byte by byte: the bytes copied may be among those written.
            for place in range(length):
                out[written + place] = out[written - distance + place]
        written += length
    return written


def fletcher32(const uint8_t[::1] data):
    """Return HDF5's Fletcher checksum of some bytes."""
    cdef Py_ssize_t size = data.shape[0]
    cdef uint32_t checksum = 0
    if size:
        with nogil:
            checksum = fletcher(&data[0], size)
    return checksum


cdef uint32_t fletcher(const uint8_t *data, Py_ssize_t size) noexcept nogil:
    cdef uint64_t low = 0, high = 0
    cdef Py_ssize_t place = 0, stop
    cdef Py_ssize_t even = size - size % 2
    # Sums of at most 2**16 words fit 64 bits; they are then reduced modulo
    # 65535, where HDF5 leaves 65535 itself, which stands for zero.
    while place < even:
        stop = min(even, place + 131072)
        while place < stop:
            low += (<uint32_t>data[place] << 8) | data[place + 1]
            high += low
            place += 2
        low = folded(low)
        high = folded(high)
    if size % 2:
        low = folded(low + (<uint32_t>data[size - 1] << 8))
        high = folded(high + low)
    return <uint32_t>((high << 16) | low)


cdef inline uint64_t folded(uint64_t total) noexcept nogil:
    """Return what is left of a sum modulo 65535, but 65535 for a multiple
    of it other than zero."""
    while total > 65535:
        total = (total & 65535) + (total >> 16)
    return total
