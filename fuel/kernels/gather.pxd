cimport numpy as cnp
from libc.stdint cimport int64_t

from fuel.kernels.converter cimport Conversion
from fuel.kernels.file_states cimport FileStates
from fuel.kernels.part_table cimport PartTable
from fuel.kernels.pieces cimport Request, Window


cdef class Rows:
    cdef public bint declines
    cdef readonly PartTable table
    cdef readonly cnp.ndarray addresses
    cdef int64_t *places
    cdef FileStates states
    cdef int begin(self, Window *window, char *out, Py_ssize_t count,
                   const Conversion *conversion) except -1
    cdef unsigned char *none_used(self) except NULL
    cdef bint copy_plain(self, const Request *request, char *out,
                         const Conversion *conversion) except -1
