cimport numpy as cnp
from libc.stdint cimport int64_t

from fuel.kernels.chunk_slots cimport Clock, Slots
from fuel.kernels.converter cimport Conversion
from fuel.kernels.tiles cimport Segment, Tiles


cdef enum:
    # Pieces that are found before they are copied.
    WINDOW = 128


cdef struct Request:
    # Numbers of rows counted from `first`, or NULL: all from there on.
    const cnp.npy_intp *rows
    Py_ssize_t first
    Py_ssize_t count


cdef struct Piece:
    # NULL: fill values.
    const char *source
    Py_ssize_t first
    Py_ssize_t rows
    Py_ssize_t tile


cdef struct Window:
    Piece pieces[WINDOW]
    Py_ssize_t count
    Py_ssize_t row_nbytes, stride
    bint whole
    const Segment *segments
    const Py_ssize_t *tile_starts
    const char *fill
    const Conversion *conversion
    char *out
    Py_ssize_t out_row_nbytes


cdef struct Blocks:
    # Of how many rows each is, and 1 over it: to divide takes longer.
    Py_ssize_t rows
    double inverse


cdef void gather_rows(const char *source, const cnp.npy_intp *rows,
                      Py_ssize_t count, Py_ssize_t row_nbytes,
                      const Conversion *conversion, char *out) noexcept nogil


cdef class Rows:
    cdef public bint declines
    cdef readonly Tiles tiles
    cdef readonly cnp.ndarray addresses
    cdef int64_t *places
    cdef cnp.ndarray fill
    cdef Blocks blocks
    # The file, and what `file_state` said of it; -1 if nobody watches it.
    cdef int descriptor
    cdef int64_t file_size, file_changed
    cdef bint is_current(self) noexcept nogil
    cdef int begin(self, Window *window, char *out,
                   const Conversion *conversion) except -1
    cdef bint copy_plain(self, const Request *request, char *out,
                         const Conversion *conversion) except -1
