"""Rows of a request as pieces of memory, copied or converted into a batch.

Some pieces are found before they are copied, so that the processor fetches
what comes next. Rows that follow each other are one piece.
"""
cimport numpy as cnp
from libc.string cimport memcpy

from fuel.kernels.converter cimport Conversion
from fuel.kernels.copy_row cimport (
    AHEAD, FAR_AHEAD, fuel_copy_row, fuel_copy_segment, fuel_prefetch)
from fuel.kernels.part_table cimport Kind
from fuel.kernels.tiles cimport Segment


cdef inline void put(const Conversion *conversion, char *out,
                     const char *source, Py_ssize_t nbytes, bint is_row,
                     const char *coming) noexcept nogil:
    """Copy or convert elements that lie together in both places."""
    if conversion.convert != NULL:
        conversion.convert(source, out, nbytes // conversion.itemsize,
                           conversion.scale, conversion.shift, coming)
    elif is_row:
        fuel_copy_row(out, source, nbytes, coming)
    else:
        # Several rows are one copy: twice as fast.
        memcpy(out, source, nbytes)


cdef void copy_segments(const Window *window, const Piece *piece,
                        const char *coming) noexcept nogil:
    """Copy the segments of a tile, of each of its rows, as they are."""
    cdef const Kind *kind = piece.kind
    cdef const Segment *segment
    cdef const Segment *first = kind.segments + kind.tile_starts[piece.tile]
    cdef Py_ssize_t place, row
    cdef Py_ssize_t count = (kind.segments + kind.tile_starts[piece.tile + 1]
                             - first)
    cdef const char *source = piece.source
    cdef char *out = window.out + piece.first * window.out_row_nbytes
    for row in range(piece.rows):
        for place in range(count):
            segment = first + place
            fuel_prefetch(coming + segment.in_chunk)
            fuel_copy_segment(out + segment.in_row,
                              source + segment.in_chunk, segment.nbytes)
        source += kind.stride
        out += window.out_row_nbytes


cdef void put_segments(const Window *window,
                       const Piece *piece) noexcept nogil:
    """Convert the segments of a tile, of each of its rows, or fill them."""
    cdef const Segment *segment
    cdef const Kind *kind = piece.kind
    cdef const Conversion *conversion = window.conversion
    cdef const char *source
    cdef Py_ssize_t row, place, start
    for row in range(piece.rows):
        for place in range(kind.tile_starts[piece.tile],
                           kind.tile_starts[piece.tile + 1]):
            segment = kind.segments + place
            start = segment.in_row
            if conversion.convert != NULL:
                start = start // conversion.itemsize * conversion.out_itemsize
            source = kind.fill + segment.in_row
            if piece.source != NULL:
                source = (piece.source + row * kind.stride
                          + segment.in_chunk)
            put(conversion, window.out + (piece.first + row)
                * window.out_row_nbytes + start, source, segment.nbytes,
                False, source)


cdef void put_pieces(Window *window) noexcept nogil:
    """Copy all pieces of a window, which is empty then."""
    cdef const Piece *piece
    cdef const char *coming
    cdef const char *far
    cdef Py_ssize_t place, last = window.count - 1
    for place in range(window.count):
        piece = window.pieces + place
        coming = window.pieces[min(place + AHEAD, last)].source
        far = window.pieces[min(place + FAR_AHEAD, last)].source
        if far != NULL:
            fuel_prefetch(far)
            fuel_prefetch(far + window.row_nbytes - 1)
        if not piece.kind.whole or piece.source == NULL:
            if piece.source != NULL and window.conversion.convert == NULL:
                copy_segments(window, piece, coming if coming != NULL
                              else piece.source)
            else:
                put_segments(window, piece)
            continue
        put(window.conversion,
            window.out + piece.first * window.out_row_nbytes, piece.source,
            piece.rows * window.row_nbytes, piece.rows == 1 and window.by_lines,
            coming if coming != NULL else piece.source)
    window.count = 0


cdef void gather_rows(const char *source, const cnp.npy_intp *rows,
                      Py_ssize_t count, Py_ssize_t row_nbytes,
                      const Conversion *conversion, char *out) noexcept nogil:
    """Gather rows of an array whose numbers are known to be right."""
    cdef Request request
    cdef Cursor cursor
    cdef Py_ssize_t place, run
    cdef Py_ssize_t out_row_nbytes = (
        row_nbytes // conversion.itemsize * conversion.out_itemsize)
    request.rows = rows
    request.lengths = NULL
    request.count = count
    cursor.place = 0
    while cursor.place < count:
        place = cursor.place
        run = length_of_run(&request, &cursor, count)
        put(conversion, out + place * out_row_nbytes,
            source + rows[place] * row_nbytes, run * row_nbytes, run == 1,
            source + rows[min(place + AHEAD, count - 1)] * row_nbytes)
        cursor.place += run
