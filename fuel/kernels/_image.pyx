"""Windows of images, mirrored or not, and pixels turned into numbers.

Nothing here checks its arguments: ``_windows.py`` and ``_pixels.py`` do.
Images have the axes (channel, height, width), in any strides.
"""
from libc.stdint cimport int8_t, int16_t, int32_t, uint8_t, uint16_t
from libc.string cimport memcpy

cimport numpy as cnp

cnp.import_array()

ctypedef fused pixel_t:
    int8_t
    uint8_t
    int16_t
    uint16_t
    int32_t
    float
    double

ctypedef fused number_t:
    float
    double


cdef extern from *:
    """
    #include <string.h>
    #include <stdint.h>

    /* Rows of a small window: a call of memcpy for each would take longer
       than the copy, so blocks of 16 bytes are copied. The last block
       overlaps the one before. */
    static inline void fuel_copy_row(
            char *out, const char *source, Py_ssize_t size) {
        Py_ssize_t at;
        if (size < 16 || size > 256) {
            memcpy(out, source, (size_t)size);
            return;
        }
        for (at = 0; at + 16 <= size; at += 16)
            memcpy(out + at, source + at, 16);
        memcpy(out + size - 16, source + size - 16, 16);
    }

    /* The bytes from `source` backwards; eight at a
       time where the compiler can. */
    static inline void fuel_reverse_row(
            char *out, const char *source, Py_ssize_t size) {
        Py_ssize_t at = 0;
    #if defined(__GNUC__) || defined(__clang__)
        for (; at + 8 <= size; at += 8) {
            uint64_t word;
            memcpy(&word, source - at - 7, 8);
            word = __builtin_bswap64(word);
            memcpy(out + at, &word, 8);
        }
    #endif
        for (; at < size; at++)
            out[at] = source[-at];
    }
    """
    void fuel_copy_row(char *out, const char *source,
                       Py_ssize_t size) noexcept nogil
    void fuel_reverse_row(char *out, const char *source,
                          Py_ssize_t size) noexcept nogil


# The strides in bytes, from one image, channel, row and column to the next.
cdef struct Steps:
    Py_ssize_t image
    Py_ssize_t channel
    Py_ssize_t row
    Py_ssize_t column


cdef Steps steps_of(cnp.ndarray array):
    cdef Steps steps
    steps.image = cnp.PyArray_STRIDE(array, 0)
    steps.channel = cnp.PyArray_STRIDE(array, 1)
    steps.row = cnp.PyArray_STRIDE(array, 2)
    steps.column = cnp.PyArray_STRIDE(array, 3)
    return steps


cdef inline void copy_strided(
        const char *source, Py_ssize_t source_step, char *out,
        Py_ssize_t out_step, Py_ssize_t count,
        Py_ssize_t itemsize) noexcept nogil:
    """Copy one row, element by element.

    A copy of a fixed size is one instruction, aligned or not.
    """
    cdef Py_ssize_t i
    if itemsize == 1:
        for i in range(count):
            out[i * out_step] = source[i * source_step]
    elif itemsize == 2:
        for i in range(count):
            memcpy(out + i * out_step, source + i * source_step, 2)
    elif itemsize == 4:
        for i in range(count):
            memcpy(out + i * out_step, source + i * source_step, 4)
    elif itemsize == 8:
        for i in range(count):
            memcpy(out + i * out_step, source + i * source_step, 8)
    else:
        for i in range(count):
            memcpy(out + i * out_step, source + i * source_step, itemsize)


cdef void copy_window(const char *source, Steps from_, char *out, Steps to,
                      Py_ssize_t channels, Py_ssize_t height,
                      Py_ssize_t width, Py_ssize_t itemsize) noexcept nogil:
    cdef Py_ssize_t channel, row
    cdef const char *source_row
    cdef char *out_row
    cdef bint is_solid = from_.column == itemsize and to.column == itemsize
    cdef bint is_reversed = (
        itemsize == 1 and from_.column == -1 and to.column == 1)
    for channel in range(channels):
        for row in range(height):
            source_row = source + channel * from_.channel + row * from_.row
            out_row = out + channel * to.channel + row * to.row
            if is_solid:
                fuel_copy_row(out_row, source_row, width * itemsize)
            elif is_reversed:
                fuel_reverse_row(out_row, source_row, width)
            else:
                copy_strided(source_row, from_.column, out_row, to.column,
                             width, itemsize)


def first_outside(const Py_ssize_t[::1] offsets, Py_ssize_t most):
    """Return the place of the first offset that is not from 0 to `most`."""
    cdef Py_ssize_t place
    for place in range(offsets.shape[0]):
        if offsets[place] < 0 or offsets[place] > most:
            return place
    return -1


def copy_windows(cnp.ndarray images, const Py_ssize_t[::1] tops,
                 const Py_ssize_t[::1] lefts, cnp.ndarray out,
                 Py_ssize_t start, Py_ssize_t stop):
    """Copy a window of each image from `start` to `stop`.

    `tops`, `lefts`: shape (batch,), dtype intp; where each window begins.
    `out`: shape (batch, channel, rows, columns); of the dtype of `images`.
    """
    cdef Steps from_ = steps_of(images)
    cdef Steps to = steps_of(out)
    cdef const char *source = <const char *>cnp.PyArray_DATA(images)
    cdef char *target = <char *>cnp.PyArray_DATA(out)
    cdef Py_ssize_t itemsize = cnp.PyArray_ITEMSIZE(images)
    cdef Py_ssize_t channels = cnp.PyArray_DIM(out, 1)
    cdef Py_ssize_t height = cnp.PyArray_DIM(out, 2)
    cdef Py_ssize_t width = cnp.PyArray_DIM(out, 3)
    cdef Py_ssize_t i
    with nogil:
        for i in range(start, stop):
            copy_window(
                source + i * from_.image + tops[i] * from_.row
                + lefts[i] * from_.column, from_,
                target + i * to.image, to, channels, height, width, itemsize)


def copy_mirrored(cnp.ndarray images, const uint8_t[::1] mirrored,
                  cnp.ndarray out, Py_ssize_t start, Py_ssize_t stop):
    """Copy images, those that are marked with their columns reversed.

    `images`, `out`: shape (batch, channel, height, width); of one dtype.
    """
    cdef Steps forward = steps_of(images)
    cdef Steps backward = forward
    cdef Steps to = steps_of(out)
    cdef const char *source = <const char *>cnp.PyArray_DATA(images)
    cdef const char *image
    cdef char *target = <char *>cnp.PyArray_DATA(out)
    cdef Py_ssize_t itemsize = cnp.PyArray_ITEMSIZE(images)
    cdef Py_ssize_t channels = cnp.PyArray_DIM(out, 1)
    cdef Py_ssize_t height = cnp.PyArray_DIM(out, 2)
    cdef Py_ssize_t width = cnp.PyArray_DIM(out, 3)
    cdef Py_ssize_t i
    backward.column = -forward.column
    with nogil:
        for i in range(start, stop):
            image = source + i * forward.image
            if mirrored[i]:
                copy_window(image + (width - 1) * forward.column, backward,
                            target + i * to.image, to, channels, height,
                            width, itemsize)
            else:
                copy_window(image, forward, target + i * to.image, to,
                            channels, height, width, itemsize)


cdef void convert_row(const pixel_t *source, Py_ssize_t step, number_t *out,
                      Py_ssize_t count, number_t scale,
                      number_t shift) noexcept nogil:
    cdef Py_ssize_t i
    if step == sizeof(pixel_t):
        # On its own, so that the compiler uses vector instructions.
        for i in range(count):
            out[i] = <number_t>source[i] * scale + shift
    else:
        for i in range(count):
            out[i] = <number_t>(<const pixel_t *>(
                <const char *>source + i * step))[0] * scale + shift


cdef void convert_images(pixel_t pixel, number_t number, cnp.ndarray images,
                         const Py_ssize_t[::1] rows,
                         const double[::1] scales, const double[::1] shifts,
                         cnp.ndarray out, Py_ssize_t start, Py_ssize_t stop):
    # The first two arguments only choose the types.
    cdef Steps from_ = steps_of(images)
    cdef Steps to = steps_of(out)
    cdef const char *source = <const char *>cnp.PyArray_DATA(images)
    cdef char *target = <char *>cnp.PyArray_DATA(out)
    cdef Py_ssize_t channels = cnp.PyArray_DIM(out, 1)
    cdef Py_ssize_t height = cnp.PyArray_DIM(out, 2)
    cdef Py_ssize_t width = cnp.PyArray_DIM(out, 3)
    cdef Py_ssize_t i, channel, row
    if from_.column == sizeof(pixel_t) and from_.row == width * from_.column:
        # The rows follow each other in memory, so they are one long row.
        width *= height
        height = 1
    with nogil:
        for i in range(start, stop):
            for channel in range(channels):
                for row in range(height):
                    convert_row[pixel_t, number_t](
                        <const pixel_t *>(
                            source + rows[i] * from_.image
                            + channel * from_.channel + row * from_.row),
                        from_.column,
                        <number_t *>(target + i * to.image
                                     + channel * to.channel + row * to.row),
                        width, <number_t>scales[channel],
                        <number_t>shifts[channel])


cdef void convert_any(pixel_t pixel, cnp.ndarray images,
                      const Py_ssize_t[::1] rows, const double[::1] scales,
                      const double[::1] shifts, cnp.ndarray out,
                      Py_ssize_t start, Py_ssize_t stop):
    if cnp.PyArray_TYPE(out) == cnp.NPY_FLOAT32:
        convert_images[pixel_t, float](
            pixel, 0, images, rows, scales, shifts, out, start, stop)
    else:
        convert_images[pixel_t, double](
            pixel, 0, images, rows, scales, shifts, out, start, stop)


def convert(cnp.ndarray images, const Py_ssize_t[::1] rows,
            const double[::1] scales, const double[::1] shifts,
            cnp.ndarray out, Py_ssize_t start, Py_ssize_t stop):
    """Write chosen images, times a scale plus a shift, as numbers.

    `images`: shape (examples, channel, height, width); aligned, native, one of
        int8, uint8, int16, uint16, int32, float32, float64.
    `rows`: shape (batch,), dtype intp; which image each row of `out` is made
        of.
    `out`: shape (batch, channel, height, width); c-contiguous, float32 or
        float64.
    """
    cdef int kind = cnp.PyArray_TYPE(images)
    if kind == cnp.NPY_UINT8:
        convert_any[uint8_t](0, images, rows, scales, shifts, out, start,
                             stop)
    elif kind == cnp.NPY_FLOAT32:
        convert_any[float](0, images, rows, scales, shifts, out, start, stop)
    elif kind == cnp.NPY_FLOAT64:
        convert_any[double](0, images, rows, scales, shifts, out, start,
                            stop)
    elif kind == cnp.NPY_UINT16:
        convert_any[uint16_t](0, images, rows, scales, shifts, out, start,
                              stop)
    elif kind == cnp.NPY_INT16:
        convert_any[int16_t](0, images, rows, scales, shifts, out, start,
                             stop)
    elif kind == cnp.NPY_INT32:
        convert_any[int32_t](0, images, rows, scales, shifts, out, start,
                             stop)
    elif kind == cnp.NPY_INT8:
        convert_any[int8_t](0, images, rows, scales, shifts, out, start,
                            stop)
    else:
        raise TypeError(f'no conversion from {images.dtype}')
