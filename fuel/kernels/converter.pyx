"""Conversions of elements, done while their rows are gathered."""
cimport numpy as cnp

from fuel.kernels.convert_row cimport (
    fuel_cast_uint8_double, fuel_cast_uint8_float, fuel_scale_uint8_double,
    fuel_scale_uint8_float)

import numpy

from fuel.kernels.outputs import empty

cnp.import_array()

cdef Conversion NO_CONVERSION
NO_CONVERSION.convert = NULL
NO_CONVERSION.itemsize = NO_CONVERSION.out_itemsize = 1


cdef class Converter:
    """Converts the elements of rows while they are gathered.

    `source`: as stored.
    `conversion`: type of the result, what to multiply with, and what to add.
        The arithmetic is that of doubles.
    `source`, `dtype`: of what is read, and of the result.
    """

    def __init__(self, source, conversion):
        target, scale, shift = conversion
        self.source, self.dtype = numpy.dtype(source), numpy.dtype(target)
        is_scaled = scale is not None or shift is not None
        scale = 1. if scale is None else float(scale)
        shift = 0. if shift is None else float(shift)
        if self.source != numpy.uint8 or (
                self.dtype != numpy.float32 and self.dtype != numpy.float64
                ) or not (255. * abs(scale) + abs(shift)
                          < float(numpy.finfo(self.dtype).max)):
            raise TypeError(f'{source} cannot be read as {target}')
        if self.dtype == numpy.float32:
            self.conversion.convert = (
                fuel_scale_uint8_float if is_scaled
                else fuel_cast_uint8_float)
        else:
            self.conversion.convert = (
                fuel_scale_uint8_double if is_scaled
                else fuel_cast_uint8_double)
        self.conversion.scale, self.conversion.shift = scale, shift
        self.conversion.itemsize = self.source.itemsize
        self.conversion.out_itemsize = self.dtype.itemsize

    cdef cnp.ndarray new_batch(self, int ndim, const cnp.npy_intp *shape):
        """Return a new array for the result, in a slot if one is free."""
        return empty(tuple([shape[axis] for axis in range(ndim)]), self.dtype)


def converter_of(source, conversion):
    """Return what converts elements as wanted, None if nothing does."""
    if conversion is None:
        return None
    try:
        return Converter(source, conversion)
    except TypeError:
        return None


cdef const Conversion *conversion_of(Converter converter) noexcept:
    """Return the numbers of a converter; without one, those of a copy."""
    return &NO_CONVERSION if converter is None else &converter.conversion
