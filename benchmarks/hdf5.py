"""Batches from HDF5 files, beside NumPy's `take`, h5py and PyTorch.

The same images are stored in several layouts. References, each in full
below: `take` on an array over the mapped file; h5py with sorted index
arrays; h5py reading chunk after chunk on one core; and, where torch is
installed, the best of four ways to use its DataLoader. Like a training loop,
each holds a batch until it has the next. Where hdf5plugin is installed,
HDF5's plug-in filters are measured too: Fuel decodes their chunks with
imagecodecs, or HDF5 does where that is missing.
"""
import contextlib
import gc
import importlib.util
import json
import mmap
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import h5py
import measure
import numpy

from fuel.datasets import H5PYDataset
from fuel.schemes import BlockShuffledScheme, SequentialScheme, ShuffledScheme
from fuel.streams import DataStream

BATCH = 128
CHUNK = 64
# Of the values, for a layout whose filter would not shrink them otherwise.
LEVELS = {'lzf': 64}
LAYOUTS = {
    'contiguous': {},
    'chunked': {'chunks': (CHUNK, 3, 32, 32)},
    'gzip': {'chunks': (CHUNK, 3, 32, 32), 'compression': 'gzip',
             'compression_opts': 1},
    'lzf': {'chunks': (CHUNK, 3, 32, 32), 'compression': 'lzf'},
}


PLUGINS = {}
with contextlib.suppress(ImportError):
    import hdf5plugin
    PLUGINS = {'blosc': hdf5plugin.Blosc(), 'blosc2': hdf5plugin.Blosc2(
                   cname='zstd'),
               'zstd': hdf5plugin.Zstd(), 'lz4': hdf5plugin.LZ4(),
               'bitshuffle': hdf5plugin.Bitshuffle()}
    LAYOUTS |= {name: {'chunks': (CHUNK, 3, 32, 32), **options}
                for name, options in PLUGINS.items()}
    LEVELS |= dict.fromkeys(PLUGINS, 64)


def images(rng, count):
    """Return noisy images that compress about as photographs do."""
    coarse = rng.uniform(0, 255, (count, 3, 4, 4)).astype('f4')
    places = numpy.linspace(0, 3, 32)
    smooth = numpy.maximum(
        0, 1 - abs(places[:, None] - numpy.arange(4))).astype('f4')
    fine = smooth @ coarse @ smooth.T
    fine += rng.normal(0, 3, fine.shape).astype('f4')
    return fine.clip(0, 255).astype('uint8')


def write_files(folder, count):
    """Write one file for each layout; return their paths."""
    paths = {name: str(Path(folder) / f'{name}.hdf5') for name in LAYOUTS}
    rng = numpy.random.RandomState(0)
    content = numpy.concatenate([
        images(rng, min(1024, count - start))
        for start in range(0, count, 1024)])
    for name, options in LAYOUTS.items():
        step = LEVELS.get(name, 1)
        with h5py.File(paths[name], 'w') as file:
            file.create_dataset('x', data=content // step * step, **options)
            file.attrs['split'] = H5PYDataset.create_split_array(
                {'train': {'x': (0, count)}})
    # Not while they are measured.
    os.sync()
    return paths


def write_ragged(path, count):
    """Write images of 2 to 12 KB, as Fuel stores what varies in shape."""
    rng = numpy.random.RandomState(0)
    with h5py.File(path, 'w') as file:
        x = file.create_dataset('x', (count,), h5py.vlen_dtype('uint8'))
        shapes = file.create_dataset('x_shapes', (count, 3), 'int32')
        names = file.create_dataset(
            'x_shape_labels', (3,), h5py.string_dtype())
        names[...] = ['channel', 'height', 'width']
        for row in range(count):
            height, width = rng.randint(26, 64, 2)
            shapes[row] = 3, height, width
            x[row] = rng.randint(0, 256, 3 * height * width, 'uint8')
        for scale, label in ((shapes, 'shapes'), (names, 'shape_labels')):
            scale.make_scale(label)
            x.dims[0].attach_scale(scale)
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'x': (0, count)}})


def orders(count, seed=1):
    """Return the batches of a shuffled epoch as index arrays."""
    order = numpy.random.RandomState(seed).permutation(count)
    return [order[start:start + BATCH] for start in range(0, count, BATCH)]


def mapped(path):
    """Return contiguous data as an array over the file."""
    with h5py.File(path, 'r') as file, open(path, 'rb') as raw:
        x = file['x']
        memory = mmap.mmap(raw.fileno(), 0, access=mmap.ACCESS_READ)
        return numpy.frombuffer(
            memory, x.dtype, x.size, x.id.get_offset()).reshape(x.shape)


def take_batches(array, batches):
    """Gather rows of an array with NumPy, as fast as it can."""
    for batch in batches:
        rows = array.take(batch, axis=0)
        yield len(rows)


def h5py_batches(dataset, batches):
    """Read as one would with h5py: by sorted index arrays."""
    for batch in batches:
        rows = dataset[numpy.sort(batch)]
        yield len(rows)


def h5py_in_order(dataset, step):
    """Read as one would with h5py in order: by slices."""
    for start in range(0, len(dataset), step):
        rows = dataset[start:start + step]
        yield len(rows)


def h5py_ragged(file, batches):
    """Read as one would with h5py rows of variable shape."""
    for batch in batches:
        rows = numpy.sort(batch)
        data, shapes = file['x'][rows], file['x_shapes'][rows]
        for place, shape in enumerate(shapes):
            data[place] = data[place].reshape(shape)
        yield len(batch)


def fuel_batches(stream):
    """Read one epoch of a stream with Fuel; its order is drawn at once."""
    return (len(batch) for batch, in stream.get_epoch_iterator())


def opened(path, **options):
    """Return a data set over a file, not yet read."""
    return H5PYDataset(path, ('train',), sources=('x',), **options)


def stream_of(dataset, scheme=ShuffledScheme):
    """Return batches of a data set."""
    return DataStream(dataset, iteration_scheme=scheme(
        dataset.num_examples, BATCH))


def rate(make, seconds):
    """Return examples a second, read for a while (or until they end).

    `make` returns an iterator over numbers of examples; only reading from
    it is timed.

    """
    count, taken = 0, 0.0
    while True:
        work = make()
        start = time.perf_counter()
        for done in work:
            count += done
            elapsed = time.perf_counter() - start
            if taken + elapsed >= seconds:
                break
        taken += time.perf_counter() - start
        if taken >= seconds:
            return count / taken


def epoch_rate(make, seconds):
    """Return examples a second over whole epochs, each made anew."""
    count, taken = 0, 0.0
    while not count or taken < seconds:
        work = make()
        start = time.perf_counter()
        count += sum(work)
        taken += time.perf_counter() - start
        del work
        gc.collect()
    return count / taken


class Reference(NamedTuple):
    """A loader that Fuel is compared to, and the ratio to reach."""

    workload: str
    target: float
    make: Callable
    # In the plot.
    name: str = ''


class Table:
    """The measurements: rows for people, examples a second for the plot."""

    def __init__(self, how):
        self.how = how
        self.rows = []
        self.rates = {}

    def add(self, candidate, *references, timed=rate, layout=None,
            name='Fuel'):
        """Let all take turns, and keep the medians.

        References do the same all the time and are measured by `rate`; the
        candidate by `timed`.

        """
        own, others = [], [[] for _ in references]
        for _ in range(self.how['rounds']):
            for reference, rates in zip(references, others, strict=True):
                rates.append(rate(reference.make, self.how['seconds']))
            own.append(timed(candidate, self.how['seconds']))
        for reference, rates in zip(references, others, strict=True):
            ratios = [mine / base
                      for mine, base in zip(own, rates, strict=True)]
            ratio = measure.Ratio(
                statistics.median(ratios), min(ratios), max(ratios))
            base = statistics.median(rates)
            self.rows.append((
                reference.workload, ratio, f'at least {reference.target}',
                f'{statistics.median(own):,.0f}', f'{base:,.0f}'))
            if reference.name:
                self.keep(layout, reference.name, base)
        if layout:
            self.keep(layout, name, statistics.median(own))

    def keep(self, layout, name, examples):
        """Keep examples a second for the plot."""
        self.rates.setdefault(layout, {})[name] = examples


def unfiltered(table, paths, count):
    """Measure layouts whose rows are in the file as they are."""
    batches = orders(count)
    array = mapped(paths['contiguous'])

    def first_epoch(layout):
        with opened(paths[layout]) as dataset:
            yield from fuel_batches(stream_of(dataset))

    for layout, times in (('contiguous', 20), ('chunked', 200)):
        with h5py.File(paths[layout], 'r') as file:
            table.add(
                lambda layout=layout: first_epoch(layout),
                Reference(f'{layout}, first shuffled epoch, of h5py',
                          times / 4, lambda x=file['x']: h5py_batches(
                              x, batches)), timed=epoch_rate)
        with opened(paths[layout]) as dataset, h5py.File(
                paths[layout], 'r') as file:
            stream, x = stream_of(dataset), file['x']
            table.add(
                lambda stream=stream: fuel_batches(stream),
                Reference(f'{layout}, shuffled, of take on a map', 0.8,
                          lambda: take_batches(array, batches), 'numpy.take'),
                Reference(f'{layout}, shuffled, of h5py', times,
                          lambda x=x: h5py_batches(x, batches), 'h5py'),
                layout=layout)
    with opened(paths['contiguous']) as dataset, h5py.File(
            paths['contiguous'], 'r') as file:
        stream = stream_of(dataset, SequentialScheme)
        table.add(lambda: fuel_batches(stream),
                  Reference('contiguous, in order, of h5py slices', 1.5,
                            lambda: h5py_in_order(file['x'], BATCH)))


def filtered(table, paths, count, layout):
    """Measure compressed chunks: the first epoch, and later ones."""
    path, batches = paths[layout], orders(count)
    array = mapped(paths['contiguous'])

    def first_epoch():
        with opened(path) as dataset:
            yield from fuel_batches(stream_of(dataset))

    def block_epoch():
        with opened(path, cache_bytes=count * 3072 // 10) as dataset:
            scheme = BlockShuffledScheme.aligned(
                dataset, BATCH, window=max(1, count // CHUNK // 25))
            yield from fuel_batches(
                DataStream(dataset, iteration_scheme=scheme))

    with h5py.File(path, 'r') as file:
        x = file['x']

        def in_order():
            return h5py_in_order(x, CHUNK)

        # Before another data set holds the decoded chunks of this file.
        table.add(
            first_epoch,
            Reference(f'{layout}, first shuffled epoch, of h5py in order',
                      1.3, in_order, 'h5py, one core, in order'),
            Reference(f'{layout}, first shuffled epoch, of h5py shuffled',
                      100, lambda: h5py_batches(x, batches), 'h5py'),
            timed=epoch_rate, layout=layout, name='Fuel, first epoch')
        table.add(
            block_epoch,
            Reference(f'{layout}, a tenth in memory, blocks, of h5py in '
                      f'order', 1.2, in_order), timed=epoch_rate)
    with opened(path) as dataset:
        stream = stream_of(dataset)
        sum(fuel_batches(stream))
        table.add(
            lambda: fuel_batches(stream),
            Reference(f'{layout}, later epochs, of take on a map', 0.7,
                      lambda: take_batches(array, batches), 'numpy.take'),
            layout=layout)


def plugin(table, paths, count, layout):
    """Measure chunks of a plug-in filter, which h5py decodes on one core: a
    first epoch, and one that decodes again into memory that it has."""
    path = paths[layout]

    def first_epoch():
        with opened(path) as dataset:
            yield from fuel_batches(stream_of(dataset, SequentialScheme))

    with h5py.File(path, 'r') as file, opened(
            path, cache_bytes=count * 3072 // 10) as dataset:
        x, stream = file['x'], stream_of(dataset, SequentialScheme)

        def in_order():
            return h5py_in_order(x, CHUNK)

        table.add(lambda: fuel_batches(stream), Reference(
            f'{layout}, a tenth in memory, in order, of h5py in order', 1.7,
            in_order), timed=epoch_rate)
    with h5py.File(path, 'r') as file:
        x = file['x']
        table.add(first_epoch, Reference(
            f'{layout}, first epoch in order, of h5py in order', 1.7,
            in_order), timed=epoch_rate)


def first_batch(path, rounds):
    """Return milliseconds until the first batch of a new data set.

    Of a copy of the file each time: the threads that decode ahead may hold
    what the data set before remembers for a while after it is closed.
    """
    taken = []
    for number in range(rounds):
        copy = shutil.copy(path, f'{path}.{number}')
        start = time.perf_counter()
        with opened(copy) as dataset:
            next(stream_of(dataset).get_epoch_iterator())
            taken.append(1000 * (time.perf_counter() - start))
        Path(copy).unlink()
    return statistics.median(taken)


def ragged(table, folder, count):
    """Measure rows of variable shape."""
    path = str(Path(folder) / 'ragged.hdf5')
    write_ragged(path, count)
    batches = orders(count)
    with opened(path) as dataset, h5py.File(path, 'r') as file:
        stream = stream_of(dataset)
        table.add(
            lambda: fuel_batches(stream),
            Reference('variable length, shuffled, of h5py and reshape', 1.0,
                      lambda: h5py_ragged(file, batches)))


def memory_of_epochs(path, count):
    """Return private memory above the budget, and its growth, in MB, over
    ten shuffled epochs with room for half of the data."""
    gc.collect()
    before = measure.private_memory()
    budget = count * 3072 // 2
    levels, peak = [], 0
    with opened(path, cache_bytes=budget) as dataset:
        scheme = BlockShuffledScheme.aligned(dataset, BATCH)
        stream = DataStream(dataset, iteration_scheme=scheme)
        for _ in range(10):
            for _ in fuel_batches(stream):
                peak = max(peak, measure.private_memory() - before)
            levels.append(measure.private_memory() - before)
    return (peak - budget) / 1e6, (levels[-1] - levels[2]) / 1e6


class TorchRows:
    """A data set for torch: rows by h5py, one or a list at a time."""

    def __init__(self, path, count, by_lists):
        self.path, self.count, self.file = path, count, None
        if by_lists:
            self.__getitems__ = self.rows

    def __len__(self):
        return self.count

    def opened(self):
        """Return the data, opened in the process that reads them."""
        if self.file is None:
            self.file = h5py.File(self.path, 'r')
        return self.file['x']

    def __getitem__(self, index):
        return self.opened()[index]

    def rows(self, indices):
        """Return several rows."""
        return list(self.opened()[numpy.sort(indices)])


def torch_rate(path, num_examples, seconds):
    """Return the best rate of four ways to use the DataLoader.

    Each of them is begun once.
    """
    import torch.utils.data
    best = 0.0
    for workers in (0, 2):
        for by_lists in (False, True):
            batches = iter(torch.utils.data.DataLoader(
                TorchRows(path, num_examples, by_lists), batch_size=BATCH,
                shuffle=True, num_workers=workers))
            # Neither starting the workers counts, nor what they had ready.
            for _ in range(1 + 2 * workers):
                next(batches)
            count, start, elapsed = 0, time.perf_counter(), 0.0
            for batch in batches:
                count += len(batch)
                elapsed = time.perf_counter() - start
                if elapsed >= seconds:
                    break
            best = max(best, count / elapsed)
            del batches
    return best


def compare_torch(table, paths, count):
    """Measure PyTorch's DataLoader, if it is installed."""
    if importlib.util.find_spec('torch') is None:
        return
    for layout in [one for one in paths if one not in PLUGINS]:
        path = paths[layout]
        found = torch_rate(path, count, table.how['seconds'])
        table.keep(layout, 'PyTorch', found)
        table.rows.append((
            f'{layout}, shuffled, PyTorch DataLoader (best of four)', '', '',
            '', f'{found:,.0f}'))


def main():
    """Print the table."""
    options = measure.options(__doc__)
    how, tiny = options.how, options.tiny
    # Half a second each, so that the whole takes less than two minutes.
    how = {**how, 'seconds': min(0.5, how['seconds'])}
    count, few = (1000, 200) if tiny else (50_000, 5000)
    table = Table(how)
    with tempfile.TemporaryDirectory() as folder:
        paths = write_files(folder, count)
        above, growth = memory_of_epochs(paths['gzip'], count)
        unfiltered(table, paths, count)
        for layout in ('gzip', 'lzf'):
            filtered(table, paths, count, layout)
        for layout in PLUGINS:
            plugin(table, paths, count, layout)
        ragged(table, folder, few)
        table.rows += [
            ('gzip, first batch of a new data set',
             f'{first_batch(paths["gzip"], how["rounds"]):.0f} ms',
             'under 100 ms', '', ''),
            ('gzip, ten epochs, memory above the budget',
             f'{above:.0f} MB', 'under 64 MB', '', ''),
            ('... and its growth from the third on', f'{growth:.0f} MB',
             'about 0', '', '')]
        compare_torch(table, paths, count)
    measure.print_table(table.rows, (
        'workload', 'measured', 'target', 'examples/s', 'reference'))
    measure.print_versions('h5py', 'torch')
    print()
    print(json.dumps({
        layout: {name: round(value) for name, value in rates.items()}
        for layout, rates in table.rates.items()}, indent=1))


if __name__ == '__main__':
    main()
