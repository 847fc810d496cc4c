"""Spans of files, each read into a bytes object or a row of an array."""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc

cdef extern from *:
    """
    #ifdef _WIN32
    /* There is no positional read: no span can be read. */
    static int64_t fuel_read_at(int descriptor, char *out, int64_t nbytes,
                                int64_t address) { return -1; }
    #else
    #include <errno.h>
    #include <unistd.h>
    /* The number of bytes that were read; fewer than `nbytes` at the end of
       the file, and after an error. */
    static int64_t fuel_read_at(int descriptor, char *out, int64_t nbytes,
                                int64_t address)
    {
        int64_t total = 0;
        while (total < nbytes) {
            ssize_t found = pread(descriptor, out + total, nbytes - total,
                                  address + total);
            if (found < 0 && errno == EINTR) {
                continue;
            }
            if (found <= 0) {
                break;
            }
            total += found;
        }
        return total;
    }
    #endif
    """
    int64_t fuel_read_at(int descriptor, char *out, int64_t nbytes,
                         int64_t address) noexcept nogil


def read_spans(const int64_t[::1] descriptors, const int64_t[::1] addresses,
               const int64_t[::1] sizes):
    """Return the bytes of spans, in the order in which they are given.

    `descriptors`: the open file of each span.
    `addresses`, `sizes`: where each span begins in its file, and the number
        of its bytes. A span of a negative size is left out.
    Returns: a list with the bytes of each span, or None in the place of a
        span that is left out, or that cannot be read in full.

    Examples
    --------
    >>> import numpy, tempfile
    >>> with tempfile.TemporaryFile(buffering=0) as file:
    ...     _ = file.write(b'abcdef')
    ...     read_spans(numpy.full(3, file.fileno()), numpy.array([4, 1, 5]),
    ...                numpy.array([2, 3, 2]))
    [b'ef', b'bcd', None]
    """
    cdef Py_ssize_t count = sizes.shape[0], place
    cdef list found = [None] * count
    cdef char **places
    cdef bytes content
    if descriptors.shape[0] != count or addresses.shape[0] != count:
        raise ValueError('descriptors, addresses and sizes differ in length')
    places = <char **>malloc((count + 1) * sizeof(char *))
    if places == NULL:
        raise MemoryError
    try:
        for place in range(count):
            places[place] = NULL
            if sizes[place] >= 0:
                content = PyBytes_FromStringAndSize(NULL, sizes[place])
                places[place] = PyBytes_AS_STRING(content)
                found[place] = content
        with nogil:
            for place in range(count):
                if places[place] != NULL and fuel_read_at(
                        <int>descriptors[place], places[place], sizes[place],
                        addresses[place]) == sizes[place]:
                    places[place] = NULL
        for place in range(count):
            if places[place] != NULL:
                found[place] = None
    finally:
        free(places)
    return found


def fill_rows(const int64_t[::1] descriptors, const int64_t[::1] addresses,
              uint8_t[:, ::1] rows):
    """Read a span of each file into a row of an array.

    `descriptors`, `addresses`: as for :func:`read_spans`.
    Returns: the number of the first row that cannot be read in full; -1 if
        there is none.

    Examples
    --------
    >>> import numpy, tempfile
    >>> rows = numpy.empty((2, 2), numpy.uint8)
    >>> with tempfile.TemporaryFile(buffering=0) as file:
    ...     _ = file.write(b'abcdef')
    ...     fill_rows(numpy.full(2, file.fileno()), numpy.array([4, 1]), rows)
    -1
    >>> rows.tobytes()
    b'efbc'
    """
    cdef Py_ssize_t size = rows.shape[1], place
    if not (descriptors.shape[0] == addresses.shape[0] == rows.shape[0]):
        raise ValueError('descriptors, addresses and rows differ in length')
    if size:
        with nogil:
            for place in range(rows.shape[0]):
                if fuel_read_at(<int>descriptors[place],
                                <char *>&rows[place, 0], size,
                                addresses[place]) != size:
                    with gil:
                        return place
    return -1
