from fuel.kernels.tiles cimport Segment
from libc.stdint cimport int32_t


cdef struct Kind:
    Py_ssize_t num_tiles, stride
    bint whole
    const Segment *segments
    const Py_ssize_t *tile_starts
    # A row of fill values.
    const char *fill


cdef struct Part:
    # Of the rows of the source, and what is added to the number of one of
    # them to have that of a row of the array.
    Py_ssize_t first, shift
    # Rows of a chunk, and 1 over it: to divide takes longer.
    Py_ssize_t block_rows
    double inverse
    Py_ssize_t first_chunk
    # Bytes of its chunks before the first row.
    Py_ssize_t offset
    const Kind *kind
    Py_ssize_t file


cdef struct Table:
    # One more than there are: it begins where the last one ends.
    const Part *parts
    # For each 2 ** shift rows the part that the first of them lies in.
    const int32_t *buckets
    int shift
    Py_ssize_t num_rows


cdef class PartTable:
    cdef readonly Py_ssize_t num_rows, num_parts, num_chunks, num_files
    cdef readonly Py_ssize_t row_nbytes
    cdef readonly object kinds
    cdef Part *parts
    cdef Kind *_kinds
    cdef int32_t *buckets
    cdef Table table
    cdef int fill_kinds(self) except -1
    cdef int fill_parts(self, object parts) except -1
    cdef int fill_buckets(self) except -1


cdef inline const Part *part_of(const Table *table, Py_ssize_t row,
                                const Part *last) noexcept nogil:
    """Return the part of a row of the source.

    `last`: the part of another row, which is often the same.
    """
    cdef Py_ssize_t low, high, middle
    if last.first <= row < last[1].first:
        return last
    low = table.buckets[row >> table.shift]
    high = table.buckets[(row >> table.shift) + 1]
    while low < high:
        middle = (low + high + 1) >> 1
        if table.parts[middle].first <= row:
            low = middle
        else:
            high = middle - 1
    return table.parts + low


cdef inline Py_ssize_t block_of(const Part *part,
                                Py_ssize_t row) noexcept nogil:
    """Return ``row // part.block_rows`` of a row below 2 ** 52."""
    cdef Py_ssize_t block = <Py_ssize_t>(row * part.inverse)
    # One too many or too few, where rounding decided.
    if block * part.block_rows > row:
        return block - 1
    if row - block * part.block_rows >= part.block_rows:
        return block + 1
    return block
