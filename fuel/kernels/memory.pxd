cimport numpy as cnp


cdef cnp.ndarray new_array(int ndim, cnp.npy_intp *shape, cnp.dtype dtype)
