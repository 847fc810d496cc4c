cimport numpy as cnp

from fuel.kernels.converter cimport Converter


cdef bint is_plain(cnp.ndarray array)
cdef cnp.ndarray take_plain(cnp.ndarray array, cnp.ndarray indices,
                            Converter converter)
