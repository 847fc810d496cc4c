cimport numpy as cnp
from libc.stdint cimport int64_t

from fuel.kernels.chunk_slots cimport Slots
from fuel.kernels.tiles cimport Tiles


cdef struct Piece:
    # NULL: the row of fill values.
    const char *source
    Py_ssize_t first
    Py_ssize_t rows
    Py_ssize_t tile


cdef class Copies:
    cdef readonly Py_ssize_t count
    cdef readonly list absent
    cdef Tiles tiles
    cdef Piece *pieces
    cdef Py_ssize_t room
    cdef cnp.ndarray out, fill
    # What must not be freed while memory is read.
    cdef object held
    cdef const char *low
    cdef const char *high
    cdef int prepare(self, Tiles tiles, Py_ssize_t room, cnp.ndarray out,
                     cnp.ndarray fill) except -1
    cdef void add(self, const char *source, Py_ssize_t first,
                  Py_ssize_t rows, Py_ssize_t tile) noexcept


cdef int check(Tiles tiles, cnp.ndarray rows, cnp.ndarray out) except -1
cdef int check_fill(Tiles tiles, cnp.ndarray fill) except -1
cdef int check_table(Tiles tiles, Py_ssize_t length) except -1
cdef int check_slots(Tiles tiles, Slots slots) except -1
cdef int plan_list(Copies copies, Tiles tiles, const char *base,
                   Py_ssize_t size, const int64_t *addresses,
                   cnp.ndarray rows, cnp.ndarray out,
                   cnp.ndarray fill) except -1
cdef int plan_range(Copies copies, Tiles tiles, const char *base,
                    Py_ssize_t size, const int64_t *addresses, tuple rows,
                    cnp.ndarray out, cnp.ndarray fill) except -1
