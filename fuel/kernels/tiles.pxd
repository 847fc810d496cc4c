cdef struct Segment:
    Py_ssize_t in_row
    Py_ssize_t in_chunk
    Py_ssize_t nbytes


cdef class Tiles:
    cdef readonly Py_ssize_t num_tiles, row_nbytes
    # From one row of a chunk to the next.
    cdef readonly Py_ssize_t stride
    # True if a row is one segment at the start of the chunk's row and fills
    # it, so that neighbours in a chunk are neighbours in the batch.
    cdef readonly bint whole
    cdef Segment *segments
    cdef Py_ssize_t *tile_starts
    cdef list divide(self, tuple row, tuple tile, Py_ssize_t itemsize,
                     list fields)
    cdef int keep(self, list tiles) except -1
