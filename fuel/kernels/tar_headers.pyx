"""Headers of tar archives, for members that are plain files."""
from libc.stdint cimport int64_t
from libc.string cimport memchr, memcmp

cdef enum:
    BLOCK = 512
    MOST = 1 << 16
    ZERO = 48
    SPACE = 32


def read_headers(const unsigned char[::1] block, int64_t start,
                 int64_t limit):
    """Return the members whose headers are in some bytes of an archive.

    The members follow each other. The first one that is neither a plain file
    nor a folder ends them, as does a header that is damaged, or has one of the
    rarer forms: those are left to `fuel.converters.raw.tar`.

    `block`: the bytes, from the header of a member on.
    `start`: the address of the bytes in the archive.
    `limit`: the size of the archive; the bytes of the members lie before it.
    Returns: a list of the name, the address and the size of each file, and the
        address of the header after them.

    Examples
    --------
    >>> import tarfile
    >>> info = tarfile.TarInfo('a.txt')
    >>> info.size = 3
    >>> archive = info.tobuf() + b'abc' + bytes(1533)
    >>> read_headers(archive, 0, len(archive))
    ([(b'a.txt', 512, 3)], 1024)
    """
    cdef int64_t length = block.shape[0], place = 0, after, size
    cdef const unsigned char *header
    cdef list found = []
    cdef bytes name
    cdef char kind
    while True:
        # `after`: the end of the headers of the member at `place`. `name`: the
        # name in those before the last one.
        after, name = place, b''
        while True:
            if after + BLOCK > length:
                return found, start + place
            header = &block[after]
            after += BLOCK
            size = _size_of(header)
            kind = <char>header[156]
            if size < 0:
                return found, start + place
            if kind != b'x' and kind != b'L':
                break
            if size > length - after or size > MOST:
                return found, start + place
            name = (_path_of(&block[0] + after, size, name) if kind == b'x'
                    else _text(&block[0] + after, size) or None)
            if name is None:
                return found, start + place
            after += _rounded(size)
        if not name:
            name = _name_of(header)
        if kind == b'5':
            place = after
            continue
        if ((kind != b'0' and kind != b'\0' and kind != b'7')
                or name.endswith(b'/') or start + after + size > limit):
            return found, start + place
        found.append((name, start + after, size))
        place = after + _rounded(size)


cdef int64_t _rounded(int64_t size) noexcept:
    return (size + BLOCK - 1) // BLOCK * BLOCK


cdef int64_t _octal(const unsigned char *field, int length) noexcept:
    """Return a number in octal digits; -1 for any other form."""
    cdef int64_t value = 0
    cdef int place = 0, first
    while place < length and field[place] == b' ':
        place += 1
    first = place
    while place < length and b'0' <= field[place] <= b'7':
        value = value * 8 + field[place] - ZERO
        place += 1
    if place == first:
        return -1
    while place < length and field[place] == b' ':
        place += 1
    return value if place == length or not field[place] else -1


cdef int64_t _size_of(const unsigned char *header) noexcept:
    """Return the size in a header; -1 if the header is not sound, or has
    another form."""
    # Its own field counts as spaces.
    cdef int64_t total = 8 * SPACE
    cdef int place
    for place in range(148):
        total += header[place]
    for place in range(156, BLOCK):
        total += header[place]
    return _octal(header + 124, 12) if _octal(
        header + 148, 8) == total else -1


cdef bytes _text(const unsigned char *start, int64_t length):
    """Return bytes up to the first zero."""
    cdef const void *end = memchr(start, 0, length)
    if end != NULL:
        length = <const unsigned char *>end - start
    return (<const char *>start)[:length]


cdef bytes _name_of(const unsigned char *header):
    """Return the name in a header."""
    cdef bytes name = _text(header, 100)
    if header[345] and memcmp(header + 257, b'ustar\0', 6) == 0:
        return _text(header + 345, 155) + b'/' + name
    return name


cdef bytes _path_of(const unsigned char *content, int64_t length,
                    bytes name):
    """Return the path that an extended header sets, or else `name`; None if
    the header is not sound, or says more about the bytes of the file."""
    cdef int64_t place = 0, first, stop
    cdef const void *equals
    while place < length and content[place]:
        stop, first = 0, place
        while first < length and first - place < 8 and (
                b'0' <= content[first] <= b'9'):
            stop = stop * 10 + content[first] - ZERO
            first += 1
        stop += place
        if not first + 1 < stop <= length or content[first] != b' ' or (
                content[stop - 1] != b'\n'):
            return None
        first += 1
        equals = memchr(content + first, b'=', stop - first)
        if equals == NULL or _begins(
                content + first, stop - first, b'size=') or _begins(
                content + first, stop - first, b'GNU.sparse.'):
            return None
        if _begins(content + first, stop - first, b'path='):
            name = (<const char *>content)[first + 5:stop - 1]
            if not name:
                return None
        place = stop
    return name


cdef bint _begins(const unsigned char *text, int64_t length, bytes start):
    cdef int64_t count = len(start)
    return length >= count and memcmp(text, <const char *>start, count) == 0
