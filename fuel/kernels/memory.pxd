cimport numpy as cnp


cdef cnp.ndarray new_array(int ndim, cnp.npy_intp *shape, cnp.dtype dtype)


cdef class RecentArrays:
    cdef cnp.ndarray older, newer
    cdef cnp.ndarray new_array(self, int ndim, cnp.npy_intp *shape,
                               cnp.dtype dtype)
