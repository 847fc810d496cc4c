"""Pixels of Pillow's images, without the copies that NumPy would make.

Pillow exports the memory of an image through Arrow's C data interface, whose
structures are fixed: https://arrow.apache.org/docs/format/CDataInterface.html
"""
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

cimport numpy as cnp

import numpy

from fuel.kernels.memory import empty

cnp.import_array()

cdef struct ArrowArray:
    int64_t length
    int64_t null_count
    int64_t offset
    int64_t n_buffers
    int64_t n_children
    const void **buffers
    ArrowArray **children


cdef void separate(const uint8_t *pixels, uint8_t *out, Py_ssize_t count,
                   Py_ssize_t channels) noexcept nogil:
    """Write the channels of pixels of four bytes one after the other."""
    cdef Py_ssize_t channel, i
    cdef uint8_t *plane
    for channel in range(channels):
        plane = out + channel * count
        for i in range(count):
            plane[i] = pixels[4 * i + channel]


def copy_pixels(capsule, Py_ssize_t channels, Py_ssize_t height,
                Py_ssize_t width):
    """Return the pixels of an image as an array.

    `capsule`: the ``ArrowArray`` of an image of Pillow whose channels are
        bytes.
    `channels`: 1, 3 or 4; in memory, a pixel has one byte or four.
    """
    cdef ArrowArray *array = <ArrowArray *>PyCapsule_GetPointer(
        capsule, 'arrow_array')
    cdef Py_ssize_t count = height * width
    cdef bint is_one_byte = channels == 1
    if array.length != count or array.offset != 0 or array.n_children != (
            0 if is_one_byte else 1):
        raise ValueError('not an array of the pixels of this image')
    if not is_one_byte:
        array = array.children[0]
        if array.length != 4 * count or array.offset != 0:
            raise ValueError('not four bytes for each pixel')
    if array.n_buffers != 2:
        raise ValueError('not an array of bytes')
    cdef const uint8_t *pixels = <const uint8_t *>array.buffers[1]
    cdef cnp.ndarray out = empty((channels, height, width), numpy.uint8)
    cdef uint8_t *target = <uint8_t *>cnp.PyArray_DATA(out)
    with nogil:
        if is_one_byte:
            memcpy(target, pixels, count)
        else:
            separate(pixels, target, count, channels)
    return out
