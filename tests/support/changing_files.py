"""Files of each format, in versions that every row names.

Each row of a version holds its number, in the lower bits of each element, so
it is seen at once whether rows, or parts of one, are of two versions.
"""
import csv
import functools
import gzip
import itertools
import json
import os
import shutil
import sys

import h5py
import numpy
from support.hdf5_files import split_array

from fuel.datasets import (
    CSVDataset, H5PYDataset, HDF5Dataset, JSONLDataset, NPYDataset)
from fuel.datasets.text import TextFile
from fuel.exceptions import FuelError
from fuel.schemes import (
    SequentialExampleScheme, SequentialScheme, ShuffledScheme)
from fuel.streams import DataStream

NUM_ROWS = 240
WIDTH = 40
# More than there are of a file.
VERSIONS = 1 << 16
# Of chunks.
COLUMNS = 40
CHUNK = 24


def rows_of(version):
    """Return the rows of a version, which do not shrink when compressed."""
    noise = numpy.random.RandomState(0).randint(
        0, 1 << 14, (NUM_ROWS, WIDTH)).astype('int32')
    return noise * VERSIONS + version


def write_hdf5(path, version, **options):
    """Write an HDF5 file with one source."""
    with h5py.File(path, 'w') as file:
        file.create_dataset('x', data=rows_of(version), **options)
        file.attrs['split'] = split_array(
            [('train', 'x', 0, NUM_ROWS, None, True)])


def write_parts(path, version):
    """Write rows into two groups."""
    rows = rows_of(version)
    with h5py.File(path, 'w') as file:
        file['1/x'], file['2/x'] = rows[:CHUNK], rows[CHUNK:]


def write_ragged(path, version):
    """Write rows of variable length."""
    rows = numpy.empty(NUM_ROWS, object)
    for number in range(NUM_ROWS):
        rows[number] = numpy.full(1 + number % WIDTH, version, 'int32')
    with h5py.File(path, 'w') as file:
        file.create_dataset('x', data=rows, dtype=h5py.vlen_dtype('int32'))
        file.attrs['split'] = split_array(
            [('train', 'x', 0, NUM_ROWS, None, True)])


def write_csv(path, version):
    """Write a table of numbers."""
    with open(path, 'w', newline='') as file:
        writer = csv.writer(file)
        writer.writerow([f'column{number}' for number in range(WIDTH)])
        writer.writerows(rows_of(version).tolist())


def write_json_lines(path, version):
    """Write a list of numbers into each line."""
    with open(path, 'w') as file:
        for row in rows_of(version).tolist():
            file.write(json.dumps({'x': row}) + '\n')


def write_text(path, version):
    """Write lines in which each word is the version's."""
    line = ' '.join([f'v{version:06}'] * WIDTH) + '\n'
    with open(path, 'w') as file:
        file.write(line * NUM_ROWS)


def write_packed_text(path, version):
    """Write such lines, compressed."""
    write_text(path, version)
    with open(path, 'rb') as file:
        content = file.read()
    with open(path, 'wb') as file, gzip.GzipFile(
            '', 'wb', 0, file, mtime=0) as packed:
        packed.write(content)


def write_parquet(path, version):
    """Write a Parquet file of several row groups."""
    import pyarrow.parquet
    pyarrow.parquet.write_table(
        _table(version), path, row_group_size=CHUNK, compression='none')


def write_arrow(path, version, compression=None):
    """Write an Arrow file of several record batches."""
    import pyarrow.ipc
    table = _table(version)
    options = pyarrow.ipc.IpcWriteOptions(compression=compression)
    with pyarrow.ipc.new_file(path, table.schema, options=options) as file:
        file.write_table(table, CHUNK)


def _table(version):
    import pyarrow
    rows = pyarrow.array(rows_of(version).reshape(-1))
    return pyarrow.table({'x': pyarrow.FixedSizeListArray.from_arrays(
        rows, WIDTH)})


def write_zarr(path, version, zarr_format):
    """Write a folder of chunks."""
    import zarr
    shutil.rmtree(path, ignore_errors=True)
    group = zarr.open_group(str(path), mode='w', zarr_format=zarr_format)
    group.create_array('x', data=rows_of(version), chunks=(CHUNK, COLUMNS))


def open_hdf5(path, **kwargs):
    """Return the data set of an HDF5 file."""
    return H5PYDataset(path, ('train',), **kwargs)


def open_parts(path, **kwargs):
    """Return the data set of two groups."""
    return HDF5Dataset(path, ['x'], parts='*', **kwargs)


def open_csv(path, **kwargs):
    """Return the data set of a table, with one source."""
    return CSVDataset(path, {'x': [
        f'column{number}' for number in range(WIDTH)]}, **kwargs)


def open_text(path, **kwargs):
    """Return the data set of lines."""
    return TextFile([str(path)], WORDS, bos_token=None, eos_token=None,
                    unk_token=None, **kwargs)


WORDS = {f'v{version:06}': version for version in range(20000)}


def open_arrow(path):
    """Return the data set of a Parquet or Arrow file."""
    from fuel.interop.arrow import ArrowDataset
    return ArrowDataset(path)


def open_zarr(path):
    """Return the data set of a folder of chunks."""
    from fuel.interop.zarr import ZarrDataset
    return ZarrDataset(path)


def write_npy(path, version):
    """Write an array."""
    with open(path, 'wb') as file:
        numpy.save(file, rows_of(version))


def write_npz(path, version, save=numpy.savez):
    """Write an archive of one array."""
    with open(path, 'wb') as file:
        save(file, x=rows_of(version))


def _hdf5(open_set=open_hdf5, **options):
    return functools.partial(write_hdf5, **options), open_set


# Functions that write a version, and functions that open it. These are all
# formats that Fuel reads, in files that remote file systems may have as
# well...
FILES = {
    'contiguous': _hdf5(),
    'chunked': _hdf5(chunks=(CHUNK, COLUMNS)),
    'compressed': _hdf5(chunks=(CHUNK, COLUMNS), compression='gzip'),
    'compressed, a chunk kept': _hdf5(
        functools.partial(open_hdf5, cache_bytes=CHUNK * COLUMNS * 4),
        chunks=(CHUNK, COLUMNS), compression='gzip'),
    'h5py': _hdf5(chunks=(CHUNK, COLUMNS), scaleoffset=0),
    'parts': (write_parts, open_parts),
    'ragged': (write_ragged, open_hdf5),
    'npy': (write_npy, NPYDataset),
    'npz': (write_npz, NPYDataset),
    'npz in memory': (functools.partial(
        write_npz, save=numpy.savez_compressed), NPYDataset),
    'csv': (write_csv, open_csv),
    'json lines': (write_json_lines, JSONLDataset),
    'text': (write_text, open_text),
    'packed text': (write_packed_text, open_text),
}
# ...and those of the bridges, which read local files.
TABLES = {
    'parquet': (write_parquet, open_arrow),
    'arrow': (write_arrow, open_arrow),
    'compressed arrow': (functools.partial(
        write_arrow, compression='zstd'), open_arrow),
}
FOLDERS = {
    f'zarr {number}': (functools.partial(write_zarr, zarr_format=number),
                       open_zarr) for number in (2, 3)}


def replace_file(path, new, how):
    """Put a new file into the place of one that may be in use."""
    content = new.read_bytes()
    if how == 'rename':
        os.replace(new, path)
    elif how == 'rewrite':
        # One call, so that there is no moment with half of each.
        with open(path, 'r+b', 0) as file:
            file.write(content)
            file.truncate()
    elif how == 'cut and rewrite':
        path.write_bytes(content)
    else:
        os.utime(path)


def replace_folder(path, new, how):
    """Put a new folder into the place of one that may be in use."""
    if how == 'rename':
        path.rename(f'{path}.old')
        new.rename(path)
        shutil.rmtree(f'{path}.old')
        return
    for source in new.rglob('*'):
        if source.is_file():
            replace_file(path / source.relative_to(new), source, how)


WAYS = 'rename', 'rewrite', 'cut and rewrite', 'touch'
SCHEMES = {
    'sequential': lambda: SequentialScheme(NUM_ROWS, CHUNK),
    'shuffled': lambda: ShuffledScheme(NUM_ROWS, CHUNK),
    'examples': lambda: SequentialExampleScheme(NUM_ROWS),
}


def changing_file(tmp_path, kind, seed):
    """Return a local file, or folder, of some kind that changes."""
    write, open_set = {**FILES, **TABLES, **FOLDERS}[kind]
    generator = numpy.random.RandomState(seed)
    path, new = tmp_path / 'data', tmp_path / 'new'
    suffix = {'csv': '.csv', 'packed text': '.gz'}.get(kind, '')
    path = path.with_suffix(suffix)
    put = replace_folder if kind in FOLDERS else replace_file
    written = []

    def replace(version):
        if not path.exists():
            write(path, version)
            written.append(version)
            return version
        how = WAYS[generator.randint(len(WAYS))]
        if how != 'touch':
            written.append(version)
        write(new, written[-1])
        put(path, new, how)
        return written[-1]

    return Changing(replace, lambda: open_set(path), generator)


def report(kind, changing, capsys):
    """Print what became of the epochs over a file that changed."""
    with capsys.disabled():
        sys.stdout.write(
            f'{kind}: {changing.num_between} replacements between two reads '
            f'of one epoch; {changing.num_whole} epochs of one version, '
            f'{changing.num_errors} errors\n')


# Elements of a row of remote files, so that an epoch takes several requests.
REMOTE_WIDTH, REMOTE_WIDTH_OF_TEXT = 4000, 400


def changing_object(monkeypatch, path, kind, put, url, seed, **kwargs):
    """Return a remote file that changes.

    Parameters
    ----------
    path : pathlib.Path
        Where its versions are written.
    kind : str
        One of `FILES`.
    put : callable
        Takes the path, and puts the file at it into the place of the remote
        one.
    url : str
        Of that one.

    """
    write, open_set = FILES[kind]
    monkeypatch.setitem(
        globals(), 'WIDTH', REMOTE_WIDTH_OF_TEXT
        if kind in ('csv', 'json lines') or 'text' in kind
        else REMOTE_WIDTH)

    def replace(version):
        write(path, version)
        put(path)
        return version

    return Changing(replace, lambda: open_set(url, **kwargs),
                    numpy.random.RandomState(seed))


class Changing:
    """Something that is read while it is replaced.

    `replace`: takes a version and puts it into place; returns which is there.
    `open_set`: returns the data set.
    `generator`: of NumPy; chooses the moments.
    """

    def __init__(self, replace, open_set, generator):
        self._replace = replace
        self._generator = generator
        self._versions = itertools.count(1)
        self.newest = replace(next(self._versions))
        self._open_set = open_set
        self._streams = []
        # Replacements between two reads of one epoch, and how epochs ended.
        self.num_between = self.num_whole = self.num_errors = 0

    def replace(self):
        """Put the next version into place."""
        self.newest = self._replace(next(self._versions))

    def open(self):
        """Open the data set as a stream."""
        dataset = self._open_set()
        scheme = None
        if dataset.takes_requests:
            names = sorted(SCHEMES)
            scheme = SCHEMES[names[self._generator.randint(len(names))]]()
        return DataStream(dataset, iteration_scheme=scheme)

    def read_epoch(self, stream, share):
        """Read an epoch; before some of its reads, replace what is read.

        Returns: the versions of its rows, and how many rows there were; None
            if it ended in an error.
        """
        versions, num_rows, is_batch = set(), 0, not stream.produces_examples
        num_reads = NUM_ROWS // CHUNK if is_batch else NUM_ROWS
        moments = self._generator.rand(num_reads + 1) < share / num_reads
        try:
            epoch = stream.get_epoch_iterator()
            for moment in moments:
                # Nothing was read of this epoch yet, or it may be over.
                if moment and 0 < num_rows < NUM_ROWS:
                    self.replace()
                    self.num_between += 1
                try:
                    rows, = next(epoch)
                except StopIteration:
                    break
                parts = rows if is_batch else [rows]
                num_rows += len(parts)
                versions.update(*[
                    numpy.unique(numpy.asarray(row) % VERSIONS).tolist()
                    for row in parts])
        except (FuelError, OSError):
            self.num_errors += 1
            return None
        self.num_whole += 1
        return versions, num_rows

    def check(self, num_between):
        """Read epochs until so many replacements fell into them: each is an
        error or has one version, and the next one the newest."""
        stream = self.open()
        while self.num_between < num_between:
            if self._generator.rand() < .5:
                # A new stream has decoded and fetched nothing yet.
                stream = self.open()
            found = self.read_epoch(stream, self._generator.choice([.5, 1, 4]))
            if found is not None:
                versions, num_rows = found
                assert 1 == len(versions), versions
                assert NUM_ROWS == num_rows
            if self._generator.rand() < .2:
                self.replace()
            assert ({self.newest}, NUM_ROWS) == self.read_epoch(stream, 0)
        assert self.num_whole > num_between // 4
