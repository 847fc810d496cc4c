"""Objects in a collection of HDF5's global heap.

A collection is a header of 16 bytes and objects, each with a header of 16
bytes: number, count of references, size. Sizes are rounded up to eight
bytes. Number 0 is what is free; its size counts its header.
"""
from libc.stdint cimport uint8_t, uint16_t, uint64_t
from libc.string cimport memcpy

HEADER_NBYTES = 16


def find_object(const uint8_t[::1] data, uint64_t nbytes, uint64_t number,
                bint whole=False):
    """Find an object of a collection.

    `whole`: check all objects, also those after it. Defaults to False.
    Returns: where the object starts in the collection, and its size; it ends
        inside of the collection. None if that takes more than `data`.

    Examples
    --------
    >>> collection = (bytes(16) + b'\\1\\0' + bytes(6) + b'\\5' + bytes(7)
    ...               + b'hello\\0\\0\\0')
    >>> find_object(collection, 40, 1)
    (32, 5)
    >>> collection[32:32 + 5]
    b'hello'
    """
    cdef uint64_t place = 16, size, room, start = 0, length = 0
    cdef uint64_t end = data.shape[0]
    cdef uint16_t found
    # `place` never exceeds `nbytes` once it is in the loop; sums of it could
    # overflow, differences cannot.
    while place <= nbytes and nbytes - place >= 16:
        if end < 16 or place > end - 16:
            return None
        memcpy(&found, &data[place], 2)
        memcpy(&size, &data[place + 8], 8)
        room = nbytes - place - (16 if found else 0)
        if size > room or (not found and size < 16):
            raise ValueError(
                f'object {found} of its heap, of {size} bytes, does not fit '
                f'its collection, which has {room} left')
        if found and found == number:
            start, length = place + 16, size
            if not whole:
                break
        size = ((size + 7) & ~<uint64_t>7) + (16 if found else 0)
        place = nbytes if size > nbytes - place else place + size
    if not start:
        raise ValueError(f'its heap has no object {number}')
    return start, length
