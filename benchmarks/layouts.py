"""HDF5 files of other people's layouts, beside their loaders and the limit.

    python benchmarks/layouts.py [--tiny]

Each workload is read from a generated file. The reference that is the limit
does the same with what is in memory, or in a map of the file; the other ones
are what the field uses: loops over h5py, AnnData in backed mode and Lance
where they are installed.
"""
import contextlib
import importlib.util
import mmap
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

import h5py
import measure
import numpy
from scipy import sparse

import fuel
from fuel import config
from fuel.datasets import HDF5Dataset, Rows, Windows
from fuel.schemes import BlockShuffledScheme, ShuffledScheme
from fuel.streams import DataStream

# At the end: its folders have names of other packages.
sys.path.append(str(Path(__file__).resolve().parents[1] / 'tests'))

from support.range_server import server_process

BATCH = 128
CELLS = 64
LENGTH, STEP = 4, 5
FRAME = 96, 96, 3
# Rows of an episode.
EPISODE = 200
GROUPS = """
import resource, sys, time
import fuel
from fuel.datasets import HDF5Dataset
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.perf_counter()
dataset = HDF5Dataset(sys.argv[1], ['actions', 'rewards'], parts='data/*')
seconds = time.perf_counter() - start
print(seconds, resource.getrusage(
    resource.RUSAGE_SELF).ru_maxrss - before, len(dataset))
"""


def has(name):
    """Return whether a package is installed."""
    return importlib.util.find_spec(name) is not None


def shuffled(count, size):
    """Return index arrays of shuffled batches."""
    order = numpy.random.RandomState(1).permutation(count)
    return [order[start:start + size]
            for start in range(0, count - size + 1, size)]


def mapped(array):
    """Return a contiguous array as an array over its file."""
    with open(array.file.filename, 'rb') as raw:
        memory = mmap.mmap(raw.fileno(), 0, access=mmap.ACCESS_READ)
    return numpy.frombuffer(memory, array.dtype, array.size,
                            array.id.get_offset()).reshape(array.shape)


class Epochs:
    """Does a piece of work at a time, over and over: a batch of an epoch."""

    def __init__(self, begin):
        self.begin, self.items = begin, iter(())

    def __call__(self):
        """Do the next batch; it is held until the one after it."""
        found = next(self.items, None)
        if found is None:
            self.items = iter(self.begin())
            found = next(self.items)
        self.held = found


def over(dataset, size, scheme=ShuffledScheme):
    """Return what begins an epoch of a stream."""
    stream = DataStream(dataset, iteration_scheme=scheme(
        dataset.num_examples, size))
    return stream.get_epoch_iterator


class Table:
    """Rows of results: what was measured of what, and what is wanted."""

    def __init__(self, how):
        self.how, self.rows = how, []

    def compare(self, name, wanted, reference, candidate):
        """Measure the speed of a batch, as a multiple of a reference's."""
        ratio = measure.compare(Epochs(reference), Epochs(candidate),
                                **self.how)
        self.rows.append((name, str(ratio), f'at least {wanted}'))

    def add(self, name, measured, wanted):
        """Note another result."""
        self.rows.append((name, measured, wanted))


def plain(table, folder, count):
    """Compare a nested array, and the same in three hundred files."""
    array = numpy.random.RandomState(0).randint(
        0, 256, (count, 3072)).astype('u1')
    path = folder / 'nested.h5'
    with h5py.File(path, 'w') as file:
        file['obs/image'] = array
    files = max(2, min(300, count // 2))
    bounds = numpy.linspace(0, count, files + 1).astype(int)
    many = [folder / f'part_{number}.h5' for number in range(files)]
    for number, one in enumerate(many):
        with h5py.File(one, 'w') as file:
            file['image'] = array[bounds[number]:bounds[number + 1]]
    batches = shuffled(count, BATCH)
    with h5py.File(path) as file:
        memory = mapped(file['obs/image'])
        dataset = fuel.load(path)
        name = 'nested array, shuffled 128'
        table.compare(f'{name}, of take on a map', .85, lambda: (
            memory.take(rows, axis=0) for rows in batches),
            over(dataset, BATCH))
        table.compare(f'{name}, of h5py', 5, lambda: (
            file['obs/image'][numpy.sort(rows)] for rows in batches),
            over(dataset, BATCH))
    several = HDF5Dataset([str(one) for one in many], ['image'])
    table.compare(f'{files} files, shuffled 128, of the same in one', .9,
                  over(dataset, BATCH), over(several, BATCH))
    with contextlib.ExitStack() as stack:
        arrays = [stack.enter_context(h5py.File(one))['image']
                  for one in many]

        def by_h5py():
            for rows in batches:
                parts = numpy.searchsorted(bounds, rows, 'right') - 1
                yield numpy.stack([
                    arrays[part][row - bounds[part]]
                    for part, row in zip(parts, rows, strict=True)])

        table.compare('... of h5py', 5, by_h5py, over(several, BATCH))
    several.close(None)
    dataset.close(None)


def write_cells(path, matrix, **options):
    """Write a sparse matrix as AnnData does."""
    cells, genes = matrix.shape
    with h5py.File(path, 'w') as file:
        file.attrs.update({
            'encoding-type': 'anndata', 'encoding-version': '0.1.0'})
        x = file.create_group('X')
        x.attrs.update({'encoding-type': 'csr_matrix',
                        'encoding-version': '0.1.0', 'shape': matrix.shape})
        for name in ('data', 'indices', 'indptr'):
            x.create_dataset(name, data=getattr(matrix, name), **options)
        for name, count in (('obs', cells), ('var', genes)):
            frame = file.create_group(name)
            frame.attrs.update({
                'encoding-type': 'dataframe', 'encoding-version': '0.2.0',
                '_index': '_index', 'column-order': numpy.array([], 'f8')})
            frame['_index'] = numpy.array(
                [f'{number}' for number in range(count)], object)
            frame['_index'].attrs.update({
                'encoding-type': 'string-array', 'encoding-version': '0.2.0'})
        for name in ('layers', 'obsm', 'obsp', 'uns', 'varm', 'varp'):
            file.create_group(name).attrs.update({
                'encoding-type': 'dict', 'encoding-version': '0.1.0'})


def cells_of(count, genes, values):
    """Return random counts, with about so many values a row."""
    rng = numpy.random.default_rng(0)
    lengths = rng.integers(values // 2, values * 3 // 2, count)
    indptr = numpy.concatenate([[0], numpy.cumsum(lengths)])
    return sparse.csr_array((
        rng.integers(1, 9, indptr[-1]).astype('f4'),
        rng.integers(0, genes, indptr[-1]).astype('i4'),
        indptr.astype('i8')), (count, genes))


def backed(path, batches):
    """Read as one would with AnnData: rows of a file, sorted."""
    import anndata
    cells = anndata.read_h5ad(path, backed='r')
    for rows in batches:
        yield cells.X[numpy.sort(rows)]


def taken(matrix, batches):
    """Take rows of a sparse matrix in memory by SciPy."""
    for rows in batches:
        yield matrix[rows]


def single_cells(table, folder, count, genes, values):
    """Compare sparse rows, plain and compressed."""
    matrix = cells_of(count, genes, values)
    plain_path, packed_path = folder / 'cells.h5ad', folder / 'packed.h5ad'
    write_cells(plain_path, matrix)
    write_cells(packed_path, matrix, compression='gzip', compression_opts=1)
    start = time.perf_counter()
    dataset = fuel.load(plain_path)
    next(over(dataset, CELLS)())
    table.add('CSR, first shuffled batch after fuel.load',
              f'{time.perf_counter() - start:.3f} s', 'at most 0.5 s')
    batches = shuffled(count, CELLS)
    table.compare('CSR, shuffled 64, of SciPy in memory', .8,
                  lambda: taken(matrix, batches), over(dataset, CELLS))
    if has('anndata'):
        table.compare('... of AnnData backed', 20,
                      lambda: backed(plain_path, batches),
                      over(dataset, CELLS))
    dataset.close(None)

    def first_epoch():
        with contextlib.closing(Closed(fuel.load(packed_path))) as opened:
            stream = DataStream(
                opened.dataset, iteration_scheme=BlockShuffledScheme(
                    opened.dataset.num_examples, CELLS, block_size=512))
            yield from stream.get_epoch_iterator()

    seconds = decoded_on_all_cores(packed_path)
    start = time.perf_counter()
    rows = sum(batch.shape[0] for batch, in first_epoch())
    elapsed = time.perf_counter() - start
    table.add('CSR, gzip, first epoch of blocks, of decoding on all cores',
              f'{seconds / elapsed:.2f} ({rows / elapsed:,.0f} rows a second)',
              'at least 0.8')
    if has('anndata'):
        start = time.perf_counter()
        some = sum(rows.shape[0] for rows in backed(
            packed_path, batches[:max(1, len(batches) // 100)]))
        rate = some / (time.perf_counter() - start)
        table.add('... of AnnData backed', f'{rows / elapsed / rate:.0f}',
                  'at least 20')


class Closed:
    """A data set that is closed by :func:`contextlib.closing`."""

    def __init__(self, dataset):
        self.dataset = dataset

    def close(self):
        """Close the data set."""
        self.dataset.close(None)


def decoded_on_all_cores(path):
    """Return seconds of reading and decoding all chunks of a matrix, in as
    many threads as there are cores."""
    from concurrent.futures import ThreadPoolExecutor

    import deflate
    with h5py.File(path) as file, open(path, 'rb') as raw:
        chunks = []
        for name in ('data', 'indices', 'indptr'):
            array = file['X'][name]
            size = array.chunks[0] * array.dtype.itemsize
            chunks += [(array.id.get_chunk_info(number), size)
                       for number in range(array.id.get_num_chunks())]
        memory = mmap.mmap(raw.fileno(), 0, access=mmap.ACCESS_READ)

    def decode(chunk):
        info, size = chunk
        return len(deflate.zlib_decompress(
            memory[info.byte_offset:info.byte_offset + info.size], size))

    start = time.perf_counter()
    with ThreadPoolExecutor() as pool:
        assert sum(pool.map(decode, chunks, chunksize=16))
    return time.perf_counter() - start


def frames(table, folder, count, how):
    """Compare windows of frames."""
    array = numpy.random.RandomState(0).randint(
        0, 256, (count, *FRAME)).astype('u1')
    lengths = numpy.full(count // EPISODE, EPISODE)
    for name, options in (('contiguous', {}), ('chunks (1, ...)', {
            'chunks': (1, *FRAME)})):
        path = folder / f'{name[:6]}.h5'
        with h5py.File(path, 'w') as file:
            file.create_dataset('pixels', data=array, **options)
            file['ep_len'] = lengths
            file['ep_offset'] = numpy.cumsum(lengths) - lengths
        windows = Windows(fuel.load(path), LENGTH, step=STEP)
        with h5py.File(path) as file:
            pixels = file['pixels']
            compare_frames(table, f'windows 4, step 5, {name}', windows,
                           pixels, array if options else mapped(pixels))
        windows.close(None)
    if has('lance'):
        lance_windows(table, folder, array, path, lengths)
    over_http(table, folder, path, how)


def compare_frames(table, title, windows, pixels, memory):
    """Compare windows with slices of a map, and with those of h5py."""
    starts = first_rows(numpy.full(len(pixels) // EPISODE, EPISODE))
    batches = shuffled(len(starts), 32)
    steps = numpy.arange(0, LENGTH * STEP, STEP)
    epochs = over(windows, 32)
    for name, array in (('a loop of slices of a map', memory),
                        ('h5py', pixels)):
        table.compare(
            f'{title}, of {name}', .8 if array is memory else 25, lambda: (
                numpy.stack([array[row:row + LENGTH * STEP:STEP]  # noqa: B023
                             for row in starts[batch]])
                for batch in batches), epochs)
    table.compare(f'{title}, of one index array of a map', .8, lambda: (
        memory[starts[batch][:, None] + steps] for batch in batches), epochs)


def first_rows(lengths):
    """Return the first row of each window."""
    span = (LENGTH - 1) * STEP + 1
    starts = numpy.cumsum(lengths) - lengths
    return numpy.concatenate([
        numpy.arange(start, start + length - span + 1)
        for start, length in zip(starts, lengths, strict=True)])


def lance_windows(table, folder, array, path, lengths):
    """Compare windows of frames that lie in a table of Lance's."""
    import lance
    import pyarrow
    flat = pyarrow.FixedSizeListArray.from_arrays(
        pyarrow.array(array.ravel()), int(numpy.prod(FRAME)))
    rows = lance.write_dataset(
        pyarrow.table({'pixels': flat}), folder / 'frames.lance')
    starts = first_rows(lengths)
    windows = Windows(fuel.load(path), LENGTH, step=STEP)

    def taken_rows():
        for batch in shuffled(len(starts), 32):
            places = (starts[batch][:, None] + numpy.arange(
                0, LENGTH * STEP, STEP)).ravel()
            found = rows.take(places)['pixels'].combine_chunks()
            yield found.flatten().to_numpy(zero_copy_only=False).reshape(
                len(batch), LENGTH, *FRAME)

    table.compare('windows 4, step 5, of Lance', 8, taken_rows,
                  over(windows, 32))
    windows.close(None)


def over_http(table, folder, path, how):
    """Compare windows of a file on a server with 20 ms of latency."""
    rate = 50e6
    config.remote_cache_path = 'off'
    with server_process(folder, '--latency', '.02', '--rate',
                        str(rate)) as root:
        url = f'{root}{path.name}'
        windows = Windows(fuel.load(url), LENGTH, step=STEP)
        batches = 2 if how['rounds'] == 1 else 60
        nbytes, start = 0, time.perf_counter()
        for batch in islice(over(windows, 32)(), batches):
            nbytes += batch[0].nbytes
        elapsed = time.perf_counter() - start
        table.add('windows over HTTP, 20 ms, of bytes at line rate',
                  f'{nbytes / elapsed / rate:.2f}', 'at least 0.8')
        windows.close(None)
        if has('aiohttp'):
            ratio = batches / elapsed / by_fsspec(url, 1)
            table.add('... of h5py over fsspec', f'{ratio:.0f}',
                      'at least 100')


def by_fsspec(url, batches):
    """Return batches a second of windows that h5py reads by fsspec."""
    import fsspec
    start = time.perf_counter()
    with fsspec.open(url) as stream, h5py.File(stream) as file:
        starts = first_rows(file['ep_len'][:])
        for batch in shuffled(len(starts), 32)[:batches]:
            numpy.stack([file['pixels'][row:row + LENGTH * STEP:STEP]
                         for row in starts[batch]])
    return batches / (time.perf_counter() - start)


def tracks(table, folder, count):
    """Compare a field of forty tracks of a jet."""
    kind = numpy.dtype([(f'p{number}', 'f4') for number in range(6)])
    array = numpy.random.RandomState(0).random_sample(
        (count, 40 * 6)).astype('f4').view(kind)
    path = folder / 'jets.h5'
    with h5py.File(path, 'w') as file:
        file['tracks'] = array
    batches = shuffled(count, BATCH)
    dataset = HDF5Dataset(path, [Rows('tracks', field='p2')])
    with h5py.File(path) as file:
        memory = mapped(file['tracks'])['p2']
        table.compare(
            'a field of 40 tracks, shuffled 128, of NumPy on a map', .8,
            lambda: (memory[rows] for rows in batches), over(dataset, BATCH))
        table.compare('... of h5py', 5, lambda: (
            file['tracks'].fields('p2')[numpy.sort(rows)]
            for rows in batches), over(dataset, BATCH))
    dataset.close(None)


def groups(table, folder, count):
    """Compare the opening of a file of very many groups."""
    path = folder / 'groups.h5'
    with h5py.File(path, 'w', libver='latest') as file:
        for number in range(count):
            demo = file.create_group(f'data/demo_{number}')
            demo['actions'] = numpy.zeros((2, 3), 'f4')
            demo['rewards'] = numpy.zeros(2, 'f4')
    start = time.perf_counter()
    with h5py.File(path) as file:
        for name in file['data']:
            for array in ('actions', 'rewards'):
                found = file['data'][name][array]
                assert found.shape
                assert found.id.get_offset()
    walk = time.perf_counter() - start
    found = [subprocess.run(
        [sys.executable, '-c', GROUPS, str(path)], check=True, text=True,
        capture_output=True).stdout.split() for _ in range(2)]
    table.add(f'{count:,} groups, first opening, of a walk with h5py',
              f'{float(found[0][0]) / walk:.2f}', 'at most 1.2')
    table.add('... later openings', f'{float(found[1][0]):.2f} s',
              'at most 0.2 s')
    table.add('... memory of these', f'{float(found[1][1]) / 1024:.0f} MB',
              'at most 50 MB')


def main():
    """Print the table."""
    options = measure.options(__doc__)
    how, tiny = options.how, options.tiny
    # Half a second each, so that the whole takes few minutes.
    how = {**how, 'seconds': min(0.5, how['seconds'])}
    table = Table(how)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plain(table, folder, 300 if tiny else 60000)
        single_cells(table, folder, *(
            (300, 50, 8) if tiny else (50000, 20000, 1400)))
        frames(table, folder, 400 if tiny else 20000, how)
        tracks(table, folder, 300 if tiny else 100000)
        groups(table, folder, 1200 if tiny else 100000)
    measure.print_table(table.rows)


if __name__ == '__main__':
    main()
