# cython: language_level=3
"""A file for HDF5 in which no write ever fails.

HDF5 cannot close a file whose last changes do not reach the disk: it ends the
process. So each write reports success. This is compiled because Ctrl-C may
interrupt Python code between any two steps, also on its first.
"""
import io
import os

DEF PAGE = 4096
# Data, never what HDF5 must read again to close the file.
DEF LARGE = 1 << 20


cdef class Sink:
    """A file that remembers the first error instead of raising it.

    What is written after it is kept in memory, for HDF5 to find it again,
    unless it is large.

    `path`: an existing file, which is emptied.
    `error`: why a write failed.
    `end`: bytes that the file has, or would have.
    """

    cdef public object error
    cdef readonly object end
    cdef object _path, _file, _position
    cdef dict _pages

    def __init__(self, path):
        self._path = path
        self._file = io.FileIO(path, 'r+')
        self._file.truncate(0)
        self._position = self.end = 0
        self._pages = {}
        self.error = None

    def __repr__(self):
        return self._path

    def seek(self, offset, whence=os.SEEK_SET):
        """Go to a byte, counted from the start or the end."""
        self._position = offset + (self.end if whence == os.SEEK_END else 0)
        return self._position

    def tell(self):
        """Return the position."""
        return self._position

    def read(self, size):
        """Return bytes from the position on, zeros where there are none."""
        data = bytearray(size)
        self.readinto(data)
        return bytes(data)

    def readinto(self, data):
        """Fill a buffer from the position on, with zeros beyond the end."""
        view = memoryview(data).cast('B')
        start, stop = self._position, self._position + len(view)
        self._read(start, view)
        for number in range(start // PAGE, -(-stop // PAGE)):
            if number in self._pages:
                low, high = _common(number, start, stop)
                view[low - start:high - start] = self._pages[number][
                    low - number * PAGE:high - number * PAGE]
        self._position = stop
        return len(view)

    def write(self, data):
        """Write a buffer at the position, or seem to."""
        view = memoryview(data).cast('B')
        if self.error is None:
            try:
                self._write(view)
            except BaseException as error:
                self.error = error
        if self.error is not None and len(view) < LARGE:
            self._keep(view)
        self._position += len(view)
        self.end = max(self.end, self._position)
        return len(view)

    def truncate(self, size):
        """Change the length of the file."""
        self.end = size
        if self.error is None:
            try:
                self._file.truncate(size)
            except BaseException as error:
                self.error = error

    def flush(self):
        """Do nothing: there is no buffer."""

    def close(self):
        """Bring what was written to the disk, and let go of the file."""
        try:
            if self.error is None:
                os.fsync(self._file.fileno())
        except OSError as error:
            self.error = error
        finally:
            self._file.close()

    def _read(self, start, view):
        self._file.seek(start)
        while len(view):
            count = self._file.readinto(view)
            if not count:
                view[:] = bytes(len(view))
            view = view[count or len(view):]

    def _write(self, view):
        self._file.seek(self._position)
        while len(view):
            view = view[self._file.write(view):]

    def _keep(self, view):
        start, stop = self._position, self._position + len(view)
        for number in range(start // PAGE, -(-stop // PAGE)):
            if number not in self._pages:
                page = bytearray(PAGE)
                self._read(number * PAGE, memoryview(page))
                self._pages[number] = page
            low, high = _common(number, start, stop)
            self._pages[number][low - number * PAGE:high - number * PAGE] = (
                view[low - start:high - start])


def _common(number, start, stop):
    """Return the part of a page that lies between two bytes."""
    return max(number * PAGE, start), min((number + 1) * PAGE, stop)
