cimport numpy as cnp

from fuel.kernels.converter cimport Conversion
from fuel.kernels.part_table cimport Kind


cdef enum:
    # Pieces that are found before they are copied.
    WINDOW = 128


cdef struct Request:
    # Numbers of rows counted from `first`, or NULL: all from there on.
    const cnp.npy_intp *rows
    # Number of rows from each of them on, or NULL: that one alone.
    const cnp.npy_intp *lengths
    Py_ssize_t first
    # Of all rows.
    Py_ssize_t count


cdef struct Cursor:
    # In the batch, in `Request.rows`, and in a range of rows.
    Py_ssize_t place, number, done


cdef struct Piece:
    # NULL: fill values.
    const char *source
    Py_ssize_t first
    Py_ssize_t rows
    Py_ssize_t tile
    const Kind *kind


cdef struct Window:
    Piece pieces[WINDOW]
    Py_ssize_t count
    Py_ssize_t row_nbytes
    const Conversion *conversion
    char *out
    Py_ssize_t out_row_nbytes
    # True if a row is copied line by line, see `fuel_copy_row`.
    bint by_lines


cdef void put_pieces(Window *window) noexcept nogil


cdef void gather_rows(const char *source, const cnp.npy_intp *rows,
                      Py_ssize_t count, Py_ssize_t row_nbytes,
                      const Conversion *conversion, char *out) noexcept nogil


cdef inline Py_ssize_t row_at(const Request *request,
                              const Cursor *cursor) noexcept nogil:
    """Return the row that belongs to a place of the batch."""
    if request.rows == NULL:
        return request.first + cursor.place
    return request.first + request.rows[cursor.number] + cursor.done


cdef inline Py_ssize_t length_of_run(
        const Request *request, const Cursor *cursor,
        Py_ssize_t most) noexcept nogil:
    """Return how many rows from a place on, up to `most`, are neighbours."""
    cdef Py_ssize_t run = 1, place = cursor.place
    most = min(most, request.count - place)
    if request.rows == NULL:
        return most
    if request.lengths != NULL:
        return min(most, request.lengths[cursor.number] - cursor.done)
    while (run < most
           and request.rows[place + run] == request.rows[place] + run):
        run += 1
    return run


cdef inline void skip_empty(const Request *request,
                            Cursor *cursor) noexcept nogil:
    """Go to the next range that has rows."""
    while (cursor.place < request.count
           and request.lengths[cursor.number] == cursor.done):
        cursor.number += 1
        cursor.done = 0


cdef inline void advance(const Request *request, Cursor *cursor,
                         Py_ssize_t rows) noexcept nogil:
    """Go on by so many rows, which are no more than one run."""
    cursor.place += rows
    if request.lengths == NULL:
        cursor.number = cursor.place
        return
    cursor.done += rows
    skip_empty(request, cursor)


cdef inline void go_to(const Request *request, Cursor *cursor,
                       Py_ssize_t place) noexcept nogil:
    """Go to a place of the batch."""
    cdef Py_ssize_t rows
    cursor.place = cursor.number = place
    cursor.done = 0
    if request.lengths != NULL:
        cursor.place = cursor.number = 0
        skip_empty(request, cursor)
        while cursor.place < place:
            rows = min(place - cursor.place, request.lengths[cursor.number])
            advance(request, cursor, rows)


cdef inline void add(Window *window, const char *source, Py_ssize_t first,
                     Py_ssize_t rows, Py_ssize_t tile,
                     const Kind *kind) noexcept nogil:
    """Add rows of a chunk."""
    cdef Piece *piece
    if window.count == WINDOW:
        put_pieces(window)
    piece = window.pieces + window.count
    piece.source = source
    piece.first = first
    piece.rows = rows
    piece.tile = tile
    piece.kind = kind
    window.count += 1
