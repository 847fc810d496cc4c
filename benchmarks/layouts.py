"""Batches from HDF5 files in layouts of others, beside what they use.

    python benchmarks/layouts.py [--only NAME] [--tiny]

Each layout is written as its community writes it, and read as it lies. Beside
it: the limit (NumPy over a map of the file, SciPy in memory, zlib on all
cores, a plain download), loops over h5py, and, where they are installed,
AnnData and Lance. Like a training loop, each holds a batch until it has the
next.
"""
import contextlib
import functools
import gc
import importlib.util
import multiprocessing
import os
import resource
import statistics
import sys
import tempfile
import time
import types
import urllib.request
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from unittest import mock

import h5py
import measure
import numpy
from hdf5 import (
    Reference, Table, epoch_rate, h5py_batches, take_batches)
from scipy.sparse import _sparsetools, csr_array

# For this alone: its folders have names of other packages.
sys.path.append(str(Path(__file__).resolve().parents[1] / 'tests'))
from support.range_server import server_process

sys.path.pop()

import fuel
from fuel import config
from fuel.datasets import CSR, HDF5Dataset, Rows, Windows
from fuel.schemes import BlockShuffledScheme, ShuffledScheme
from fuel.storage import open_hdf5
from fuel.storage.filters import inflate
from fuel.storage.hdf5_file import HDF5Array
from fuel.streams import DataStream
from fuel.utils.sparse import count_rows, make_csr

BATCH = 128
CELLS = 64
WINDOW, STEP = 4, 5
OFFSETS = numpy.arange(WINDOW) * STEP
# Rows of an episode.
EPISODE = 200
FRAME = (96, 96, 3)
GENES = 20_000
PARTS = {'a': (5, 2), 'obs/x': (5,)}


def read(stream):
    """Read one epoch of a stream of one source with Fuel."""
    return (count_rows(batch) for batch, in stream.get_epoch_iterator())


def stream_of(dataset, batch=BATCH):
    """Return shuffled batches of a data set."""
    return DataStream(dataset, iteration_scheme=ShuffledScheme(
        dataset.num_examples, batch))


def orders(count, batch=BATCH):
    """Return the batches of a shuffled epoch as index arrays."""
    order = numpy.random.RandomState(1).permutation(count)
    return [order[start:start + batch] for start in range(0, count, batch)]


def mapped(path, name):
    """Return a contiguous array as one over the file."""
    with h5py.File(path, 'r') as file:
        array = file[name]
        return numpy.memmap(path, array.dtype, 'r', array.id.get_offset(),
                            array.shape).view(numpy.ndarray)


def plain(table, folder, sizes):
    """Measure one array in a group, and the same in many files."""
    count, parts = sizes['images'], sizes['files']
    images = numpy.random.RandomState(0).randint(
        0, 256, (count, 3, 32, 32), 'uint8')
    path = folder / 'nested.h5'
    with h5py.File(path, 'w') as file:
        file['obs/image'] = images
    for number, rows in enumerate(numpy.array_split(images, parts)):
        with h5py.File(folder / f'part_{number}.h5', 'w') as file:
            file['obs/image'] = rows
    array, batches = mapped(path, 'obs/image'), orders(count)
    one = stream_of(HDF5Dataset(path))
    many = stream_of(HDF5Dataset(folder / 'part_*.h5'))
    with h5py.File(path, 'r') as file:
        table.add(
            lambda: read(one),
            Reference('nested array, shuffled, of take on a map', 0.85,
                      lambda: take_batches(array, batches)),
            Reference('nested array, shuffled, of h5py', 20,
                      lambda: h5py_batches(file['obs/image'], batches)))
    with contextlib.ExitStack() as files:
        arrays = [files.enter_context(h5py.File(folder / f'part_{number}.h5'))[
            'obs/image'] for number in range(parts)]
        bounds = numpy.cumsum([0, *map(len, arrays)])

        def by_h5py():
            for batch in batches:
                places = bounds.searchsorted(batch, 'right') - 1
                rows = numpy.stack([
                    arrays[part][row - bounds[part]]
                    for part, row in zip(places, batch, strict=True)])
                yield len(rows)

        table.add(
            lambda: read(many),
            Reference(f'{parts} files, shuffled, of one file', 0.9,
                      lambda: read(one)),
            Reference(f'{parts} files, shuffled, of h5py', 5, by_h5py))


def tracks(table, folder, sizes):
    """Measure a field of tables of 40 rows."""
    count = sizes['jets']
    names = ['pt', 'eta', 'phi', *(f'field_{number}' for number in range(17))]
    dtype = numpy.dtype([(name, 'f4') for name in names] + [('valid', '?')])
    path = folder / 'jets.h5'
    with h5py.File(path, 'w') as file:
        rows = numpy.zeros((count, 40), dtype)
        rows['pt'] = numpy.random.RandomState(0).rand(count, 40)
        file['tracks'] = rows
    field, batches = mapped(path, 'tracks')['pt'], orders(count)

    def of_map():
        for batch in batches:
            rows = field[batch]
            yield len(rows)

    stream = stream_of(HDF5Dataset(path, [Rows('tracks', field='pt')]))
    with h5py.File(path, 'r') as file:
        table.add(
            lambda: read(stream),
            Reference('field of tracks, shuffled, of a field of a map', 0.8,
                      of_map),
            Reference('field of tracks, shuffled, of h5py', 1,
                      lambda: h5py_batches(
                          file['tracks'].fields('pt'), batches)))


def write_cells(path, count, values, **options):
    """Write a sparse matrix as AnnData does."""
    rng = numpy.random.RandomState(0)
    lengths = rng.randint(values - values // 5, values + values // 5, count)
    bounds = numpy.concatenate([[0], lengths.cumsum()])
    widest = lengths.max()
    with h5py.File(path, 'w') as file:
        file.attrs.update({
            'encoding-type': 'anndata', 'encoding-version': '0.1.0'})
        matrix = file.create_group('X')
        matrix.attrs.update({'encoding-type': 'csr_matrix',
                             'encoding-version': '0.1.0',
                             'shape': (count, GENES)})
        for name, dtype in (('data', 'f4'), ('indices', 'i4')):
            matrix.create_dataset(name, bounds[-1:], dtype, maxshape=(None,),
                                  **options)
        matrix['indptr'] = bounds.astype('i4')
        for start in range(0, count, 1000):
            these = lengths[start:start + 1000]
            places = slice(bounds[start], bounds[start + len(these)])
            columns = rng.randint(1, GENES * 3 // 2 // widest, (
                len(these), widest)).cumsum(axis=1) - 1
            columns = columns[numpy.arange(widest) < these[:, None]]
            matrix['indices'][places] = columns
            matrix['data'][places] = numpy.log1p(
                rng.geometric(.6, len(columns)))
        for name, rows in (('obs', count), ('var', GENES)):
            frame = file.create_group(name)
            frame.attrs.update({
                'encoding-type': 'dataframe', 'encoding-version': '0.2.0',
                '_index': '_index', 'column-order': numpy.array([], 'f8')})
            frame['_index'] = [f'{name}_{row}' for row in range(rows)]
            frame['_index'].attrs.update({
                'encoding-type': 'string-array',
                'encoding-version': '0.2.0'})


def anndata_rows(path, batches):
    """Return the reference of AnnData, where it is installed."""
    if importlib.util.find_spec('anndata') is None:
        return
    import anndata
    matrix = anndata.read_h5ad(path, backed='r').X

    def work():
        for batch in batches:
            rows = matrix[numpy.sort(batch)]
            yield rows.shape[0]

    yield work


def unchecked(data, indices, indptr, batches):
    """Take rows of a sparse matrix with SciPy, which does not check them."""
    for batch in batches:
        lengths = indptr[batch + 1] - indptr[batch]
        bounds = numpy.concatenate([[0], lengths.cumsum()]).astype('i4')
        values = numpy.empty(bounds[-1], 'f4')
        columns = numpy.empty(bounds[-1], 'i4')
        _sparsetools.csr_row_index(
            len(batch), batch.astype('i4'), indptr, indices, data, columns,
            values)
        rows = make_csr(values, columns, bounds, (len(batch), GENES))
        yield rows.shape[0]


def cells(table, folder, sizes):
    """Measure rows of a sparse matrix in memory's order."""
    path, count = folder / 'cells.h5ad', sizes['cells']
    write_cells(path, count, sizes['values'])
    os.sync()
    batches = orders(count, CELLS)
    taken = []
    for _ in range(table.how['rounds']):
        began = time.perf_counter()
        dataset = fuel.load(path)
        next(stream_of(dataset, CELLS).get_epoch_iterator())
        taken.append(time.perf_counter() - began)
        dataset.close(None)
    table.rows.append((
        'CSR, first shuffled batch after fuel.load',
        f'{max(taken):.2f} s', 'under 0.5 s', '', ''))
    with h5py.File(path, 'r') as file:
        memory = csr_array(
            tuple(file['X'][name][()]
                  for name in ('data', 'indices', 'indptr')),
            shape=(count, GENES))

    stream = stream_of(HDF5Dataset(path, [CSR('X')]), CELLS)
    table.add(
        lambda: read(stream),
        Reference('CSR, shuffled, of rows in memory, not checked', 0.8,
                  lambda: unchecked(memory.data, memory.indices,
                                    memory.indptr, batches)),
        *(Reference('CSR, shuffled, of AnnData backed', 20, work)
          for work in anndata_rows(path, batches)))


def decode_all(array, use):
    """Decode all chunks of an array on all cores, give each with its place
    to a function, and yield how many there are."""
    nbytes = array.chunks[0] * array.dtype.itemsize
    places = [array.id.get_chunk_info(number).chunk_offset
              for number in range(array.id.get_num_chunks())]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for _ in pool.map(lambda place: use(*place, inflate(
                array.id.read_direct_chunk(place)[1], nbytes)), places):
            yield len(places)


def decoded_alone(path, count):
    """Decode a sparse matrix, and nothing else."""
    with h5py.File(path, 'r') as file:
        for array in (file['X/data'], file['X/indices']):
            for chunks in decode_all(array, lambda *_: None):
                yield count / 2 / chunks


def decoded_and_taken(path, batches):
    """Decode a sparse matrix into arrays, then take rows of them."""
    arrays = []

    def keep(place, chunk):
        rows = arrays[-1][place:]
        rows[:len(chunk) // rows.itemsize] = numpy.frombuffer(
            chunk, rows.dtype)[:len(rows)]

    with h5py.File(path, 'r') as file:
        for array in (file['X/data'], file['X/indices']):
            arrays.append(numpy.empty(array.shape, array.dtype))
            sum(decode_all(array, keep))
        yield sum(unchecked(*arrays, file['X/indptr'][()], batches))


def compressed_cells(table, folder, sizes):
    """Measure the first epoch of a compressed sparse matrix."""
    path, count = folder / 'gzip.h5ad', sizes['cells'] // 4
    write_cells(path, count, sizes['values'], compression='gzip')

    def by_blocks():
        return BlockShuffledScheme(count, CELLS, block_size=256, window=8)

    batches = list(map(numpy.array, by_blocks().get_request_iterator()))

    def first_epoch():
        dataset = HDF5Dataset(path, [CSR('X')])
        yield from read(DataStream(dataset, iteration_scheme=by_blocks()))
        dataset.close(None)

    table.add(
        first_epoch,
        Reference('CSR, gzip, first epoch by blocks, of decoding', 0.8,
                  lambda: decoded_alone(path, count)),
        Reference('CSR, gzip, first epoch by blocks, of decoding and taking',
                  0.8, lambda: decoded_and_taken(path, batches)),
        *(Reference('CSR, gzip, first epoch by blocks, of AnnData', 20, work)
          for work in anndata_rows(path, orders(count, CELLS))),
        timed=epoch_rate)


def write_steps(path, count, chunks):
    """Write frames of episodes."""
    rng = numpy.random.RandomState(0)
    with h5py.File(path, 'w') as file:
        pixels = file.create_dataset(
            'pixels', (count, *FRAME), 'uint8', chunks=chunks)
        for start in range(0, count, 1000):
            stop = min(count, start + 1000)
            pixels[start:stop] = rng.randint(
                0, 256, (stop - start, *FRAME), 'uint8')
        file['ep_len'] = numpy.full(count // EPISODE, EPISODE)


def windows_of(path):
    """Return windows over the frames of a file."""
    return Windows(HDF5Dataset(path, ['pixels'], runs={'lengths': 'ep_len'}),
                   WINDOW, step=STEP)


def starts_of(count):
    """Return the first rows of all windows, in order."""
    inside = EPISODE - (WINDOW - 1) * STEP
    return (numpy.arange(0, count, EPISODE)[:, None]
            + numpy.arange(inside)).ravel()


def h5py_windows(pixels, batches):
    """Read row after row: slices with steps take far longer."""
    for batch in batches:
        rows = numpy.stack([pixels[row] for start in batch
                            for row in start + OFFSETS])
        yield len(rows) // WINDOW


def lance_windows(folder, array):
    """Return what reads windows with Lance, where it is installed."""
    if importlib.util.find_spec('lance') is None:
        return
    import lance
    import pyarrow
    path, width = str(folder / 'steps.lance'), int(numpy.prod(FRAME))

    def pieces():
        for start in range(0, len(array), 1000):
            yield pyarrow.record_batch([pyarrow.FixedSizeListArray.from_arrays(
                pyarrow.array(array[start:start + 1000].ravel()), width)],
                ['pixels'])

    lance.write_dataset(
        pieces(), path, schema=next(pieces()).schema, mode='overwrite')
    stored = lance.dataset(path)

    def work(batches):
        for batch in batches:
            rows = (batch[:, None] + OFFSETS).ravel()
            column = stored.take(rows).column(0).combine_chunks()
            rows = column.flatten().to_numpy().reshape(
                len(batch), WINDOW, *FRAME)
            yield len(rows)

    yield work


def windows(table, folder, sizes):
    """Measure windows of frames, beside those of a map."""
    count = sizes['steps']
    paths = {'contiguous': folder / 'steps.h5', 'chunks (1, ...)':
             folder / 'chunked.h5'}
    write_steps(paths['contiguous'], count, None)
    write_steps(paths['chunks (1, ...)'], count, (1, *FRAME))
    os.sync()
    array = mapped(paths['contiguous'], 'pixels')
    starts, lance = starts_of(count), [*lance_windows(folder, array)]

    def of_map(batches):
        for batch in batches:
            rows = array.take(batch[:, None] + OFFSETS, axis=0)
            yield len(rows)

    for layout, path in paths.items():
        dataset = windows_of(path)
        assert dataset.num_examples == len(starts)
        for batch in (CELLS, 8):
            batches = [starts[places] for places in orders(
                len(starts), batch)]
            name = f'windows, {layout}, batches of {batch}, of'
            stream = stream_of(dataset, batch)
            with h5py.File(path, 'r') as file:
                table.add(
                    functools.partial(read, stream),
                    Reference(f'{name} a map', 0.8,
                              functools.partial(of_map, batches)),
                    Reference(f'{name} h5py', 25, functools.partial(
                        h5py_windows, file['pixels'], batches)),
                    *(Reference(f'{name} Lance', 8, functools.partial(
                        work, batches)) for work in lance))


def remote_windows(table, folder, sizes):
    """Measure windows over HTTP, beside a plain download."""
    count = sizes['remote']
    path = folder / 'remote.h5'
    write_steps(path, count, (1, *FRAME))
    slow = ['--latency', '.02', '--rate', str(sizes['rate'])]
    starts, ratios, rates = starts_of(count), [], []
    few = orders(len(starts), 4)[:2]
    with server_process(folder, *slow) as root:
        url = f'{root}{path.name}'
        for number in range(min(3, table.how['rounds'])):
            began = time.perf_counter()
            urllib.request.urlretrieve(url, folder / 'copy.h5')
            download = time.perf_counter() - began
            # Another name, for which nothing is cached.
            began = time.perf_counter()
            dataset = windows_of(f'{url}?version={number}')
            assert sum(read(stream_of(dataset, CELLS))) == len(starts)
            taken = time.perf_counter() - began
            dataset.dataset.close(None)
            ratios.append(download / taken)
            rates.append(len(starts) / taken)
        table.rows.append((
            'windows over HTTP, first epoch, of a download', measure.Ratio(
                statistics.median(ratios), min(ratios), max(ratios)),
            'at least 0.8', f'{statistics.median(rates):,.0f}', ''))
        if importlib.util.find_spec('aiohttp') and importlib.util.find_spec(
                'fsspec'):
            import fsspec
            with fsspec.open(url) as raw, h5py.File(raw, 'r') as file:
                began = time.perf_counter()
                done = sum(h5py_windows(file['pixels'], few))
                other = done / (time.perf_counter() - began)
            table.rows.append((
                'windows over HTTP, first epoch, of h5py over fsspec',
                f'{statistics.median(rates) / other:.0f}', 'at least 100',
                f'{statistics.median(rates):,.0f}', f'{other:,.0f}'))


def write_groups(path, count):
    """Write a file of many groups."""
    with h5py.File(path, 'w', libver='latest') as file:
        for number in range(count):
            for name, shape in PARTS.items():
                file[f'data/demo_{number}/{name}'] = numpy.full(shape, number)


def walk(path):
    """Return the seconds in which h5py looks at each array."""
    began = time.perf_counter()
    with h5py.File(path, 'r') as file:
        for group in file['data'].values():
            for name in PARTS:
                assert group[name].shape[0] == 5
    return time.perf_counter() - began


def open_groups(path, cache):
    """Return the seconds of an opening, and by how many bytes it raised the
    most memory that the process had."""
    config.remote_cache_path = cache
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.perf_counter()
    dataset = HDF5Dataset(path, list(PARTS), parts='data/demo_*')
    taken = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak
    assert dataset.get_data(None, [5])[1] == [1]
    return taken, peak * 1024


def in_new_process(function, *arguments):
    """Return what a function returns in a process of its own."""
    with ProcessPoolExecutor(
            1, multiprocessing.get_context('spawn')) as processes:
        return processes.submit(function, *arguments).result()


def groups(table, folder, sizes):
    """Measure the opening of a file of many groups."""
    path, cache = str(folder / 'groups.h5'), str(folder / 'cache')
    write_groups(path, sizes['groups'])
    first, _ = in_new_process(open_groups, path, cache)
    walked = in_new_process(walk, path)
    later, nbytes = zip(*(in_new_process(open_groups, path, cache)
                          for _ in range(table.how['rounds'])), strict=True)
    name = f'{sizes["groups"]:,} groups'
    table.rows += [
        (f'{name}, first opening, of a walk with h5py',
         f'{first / walked:.2f}', 'at most 1.2', '', ''),
        (f'{name}, later openings', f'{statistics.median(later):.2f} s',
         'under 0.2 s', '', ''),
        ('... and memory', f'{max(nbytes) / 1e6:.0f} MB', 'under 50 MB', '',
         '')]


class Frames:
    """Frames of a file, fetched batch by batch, as PyTorch's loaders do."""

    def __init__(self, opener, path):
        self.frames = opener(path, 'r')['obs/image']

    def __len__(self):
        return len(self.frames)

    def __getitems__(self, indices):
        order = numpy.argsort(indices)
        # h5py wants rows in order.
        rows = self.frames[numpy.asarray(indices)[order]]
        return list(rows[numpy.argsort(order)])


def write_demos(path, count):
    """Write demonstrations of robomimic."""
    with h5py.File(path, 'w') as file:
        file.create_group('data').attrs.update({
            'env_args': '{}', 'total': count})
        for number in range(count // EPISODE):
            demo = file.create_group(f'data/demo_{number}')
            demo.attrs['num_samples'] = EPISODE
            demo['actions'] = numpy.random.rand(EPISODE, 7)
            demo['obs/image'] = numpy.random.randint(
                0, 256, (EPISODE, 84, 84, 3), 'uint8')


def robomimic(path, count):
    """Return robomimic's module, and what makes its loader."""
    write_demos(path, count)
    module = importlib.import_module('robomimic.utils.dataset')
    return module, lambda: module.SequenceDataset(
        str(path), ('image',), ('actions',), hdf5_cache_mode=None,
        load_next_obs=False, frame_stack=2, seq_length=10)


def stable_worldmodel(path, count):
    """Return stable-worldmodel's module, and what makes its loader."""
    name = 'stable_worldmodel'
    # The package itself imports simulators.
    found, package = importlib.util.find_spec(name), types.ModuleType(name)
    if found is None:
        raise ImportError(f'there is no module {name}')
    package.__path__ = found.submodule_search_locations
    sys.modules[name] = package
    module = importlib.import_module(f'{name}.data.formats.hdf5')
    write_steps(path, count, (1, *FRAME))
    with h5py.File(path, 'r+') as file:
        file['ep_offset'] = numpy.arange(0, count, EPISODE)
        file['action'] = numpy.random.rand(count, 2)
    return module, lambda: module.HDF5Dataset(
        path=str(path), num_steps=WINDOW, frameskip=STEP)


def salt(path, count):
    """Return salt's module, and what makes its loader of 500 jets a time."""
    module = importlib.import_module('salt.data.datasets')
    names = [f'field_{number}' for number in range(20)]
    with h5py.File(path, 'w') as file:
        for name, shape in (('jets', (count,)), ('tracks', (count, 40))):
            file.create_dataset(name, data=numpy.zeros(shape, [
                *((field, 'f4') for field in names), ('valid', '?')]),
                compression='lzf')

    class Jets(module.SaltDataset):
        def __len__(self):
            return super().__len__() // 100

        def __getitem__(self, number):
            return super().__getitem__(slice(100 * number, 100 * number + 100))

    return module, lambda: Jets(
        path, None, {'jets': names[:2], 'tracks': names[:12]}, 'fit')


def loaded(module, make, file):
    """Yield the examples of a loader in an order of its own."""
    with mock.patch.object(module, 'h5py', types.SimpleNamespace(
            File=file, Dataset=(h5py.Dataset, HDF5Array))):
        loader = make()
        for place in numpy.random.RandomState(1).permutation(len(loader)):
            assert loader[int(place)]
            yield 1


def others(table, folder, sizes):
    """Measure loaders of others that read by `open_hdf5`, beside themselves.

    Those that are not installed are left out.
    """
    count = sizes['steps']
    for layout, options in (('contiguous', {}), ('gzip', {
            'chunks': (16, 96, 96, 3), 'compression': 'gzip'})):
        path = folder / f'{layout}.h5'
        with h5py.File(path, 'w') as file:
            file.create_dataset('obs/image', data=numpy.random.randint(
                0, 64, (count // 8, *FRAME), 'uint8'), **options)

        def fetched(opener, path=path):
            frames = Frames(opener, path)
            for batch in orders(len(frames)):
                yield len(frames.__getitems__(batch))

        table.add(
            functools.partial(fetched, open_hdf5),
            Reference(f'Dataset with __getitems__, {layout}, of h5py', 5,
                      functools.partial(fetched, h5py.File)))
    # Salt computes more than it reads.
    for write, target in ((robomimic, 5), (stable_worldmodel, 5), (salt, 2)):
        name = write.__name__
        try:
            module, make = write(folder / f'{name}.h5', count // 2)
        except ImportError as error:
            print(f'{name} is left out: {error}')
            continue
        table.add(
            functools.partial(loaded, module, make, open_hdf5),
            Reference(f'loader of {name}, of itself over h5py', target,
                      functools.partial(loaded, module, make, h5py.File)))


ALL = (plain, tracks, cells, compressed_cells, windows, remote_windows,
       groups, others)
FULL = {'images': 50_000, 'files': 300, 'jets': 20_000, 'cells': 50_000,
        'values': 1400, 'steps': 20_000, 'remote': 4000, 'rate': 50e6,
        'groups': 100_000}
TINY = {'images': 600, 'files': 6, 'jets': 300, 'cells': 300, 'values': 50,
        'steps': 400, 'remote': 200, 'rate': 1e9, 'groups': 200}


def main():
    """Print the table."""
    parser = measure.parser(__doc__)
    parser.add_argument('--only', choices=[one.__name__ for one in ALL])
    options = parser.parse_args()
    how = measure.TINY if options.tiny else measure.FULL
    table = Table({**how, 'seconds': min(0.5, how['seconds'])})
    for one in ALL:
        if options.only not in (None, one.__name__):
            continue
        with tempfile.TemporaryDirectory() as folder:
            config.remote_cache_path = folder
            with contextlib.ExitStack() as stack:
                stack.callback(delattr, config, 'remote_cache_path')
                one(table, Path(folder), TINY if options.tiny else FULL)
            gc.collect()
    measure.print_table(table.rows, (
        'workload', 'measured', 'target', 'examples/s', 'reference'))


if __name__ == '__main__':
    main()
