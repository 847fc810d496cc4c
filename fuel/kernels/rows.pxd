cimport numpy as cnp


cdef bint is_plain(cnp.ndarray array)
cdef cnp.ndarray take_plain(cnp.ndarray array, cnp.ndarray indices)
