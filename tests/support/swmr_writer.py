"""A process that writes an HDF5 file with SWMR while others read it."""
import contextlib

from support.processes import start_python

WIDTH = 300

WRITER = f"""
import sys
import h5py, numpy

path, mode = sys.argv[1:]
with h5py.File(path, mode, libver='latest') as file:
    for name, options in (
            ('plain', dict()), ('gzip', dict(compression='gzip'))):
        if name not in file:
            file.create_dataset(
                name, (0, {WIDTH}), 'i8', chunks=(16, {WIDTH}),
                maxshape=(None, {WIDTH}), **options)
    file.swmr_mode = True
    print('writes', flush=True)

    def write(rows):
        for name in 'plain', 'gzip':
            old = len(file[name])
            file[name].resize(old + rows, axis=0)
            file[name][old:] = numpy.arange(old, old + rows)[:, None]
            file[name].flush()

    for line in sys.stdin:
        if line.startswith('go on'):
            print('goes on', flush=True)
            for _ in range(40):
                write(3)
        else:
            write(int(line))
        print('done', flush=True)
"""


class Writer:
    """A process that appends rows. Each row holds its number.

    `mode`: ``'w'`` or ``'a'``, of the file.
    """

    def __init__(self, path, mode='w'):
        # HDF5's lock would keep a writer from a file that is being read.
        self._process = start_python(
            '-c', WRITER, str(path), mode, HDF5_USE_FILE_LOCKING='FALSE',
            stdin=True)
        self._hear()

    def write(self, rows):
        """Append rows, and wait until they are in the file."""
        self._say(str(rows))
        self._hear()

    def start(self):
        """Begin to append rows, three at a time."""
        self._say('go on')
        self._hear()

    def wait(self):
        """Wait until the rows of `start` are written."""
        self._hear()

    def close(self):
        """Close the file, and end the process."""
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait(100)
        for stream in self._process.stdout, self._process.stderr:
            stream.close()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def _say(self, text):
        self._process.stdin.write(f'{text}\n'.encode())
        self._process.stdin.flush()

    def _hear(self):
        if not self._process.stdout.readline():
            raise AssertionError(self._process.stderr.read().decode())
