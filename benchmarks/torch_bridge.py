"""Fuel in PyTorch's loaders, beside PyTorch's own ways.

The references: the bare stream; a `DataLoader` whose sampler yields batches
of indices into tensors, PyTorch's fastest; a `Dataset` that reads an HDF5
file with h5py, an example at a time, in two workers, as most people write
it; a training loop that slices shuffled tensors in memory; the bare ring of
``process.py``, the least that a worker's batches can cost; a `DataLoader`
whose worker makes a number in the place of each batch, the least that one of
its workers can cost. Needs PyTorch and scikit-learn; processor seconds are
measured on Linux.
"""
import os
import statistics
import tempfile
import time
import warnings
from functools import partial
from pathlib import Path

import h5py
import measure
import numpy
import torch
from process import ring
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    TensorDataset,
)

from fuel.datasets import H5PYDataset, IndexableDataset
from fuel.interop.torch import Loader, as_iterable, to_torch
from fuel.schemes import ShuffledScheme
from fuel.streams import DataStream
from fuel.transformers import MultiProcessing

BATCH, SHAPE = 128, (3, 32, 32)


class InFile(Dataset):
    """Examples of an HDF5 file, read one at a time."""

    def __init__(self, path):
        self.path, self.file = path, None
        with h5py.File(path) as file:
            self.length = len(file['features'])

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        if self.file is None:
            self.file = h5py.File(self.path)
        return (self.file['features'][index],
                int(self.file['targets'][index]))


def arrays(count):
    """Return random images and labels."""
    random = numpy.random.RandomState(0)
    return {'features': random.rand(count, *SHAPE).astype('float32'),
            'targets': random.randint(0, 10, count)}


def stream_of(dataset):
    """Return shuffled batches of a data set."""
    return DataStream(dataset, iteration_scheme=ShuffledScheme(
        dataset.num_examples, BATCH))


def read_stream(stream):
    """Read an epoch of a stream."""
    for _ in stream.get_epoch_iterator():
        pass


def read_loader(loader):
    """Read an epoch of a loader."""
    for _ in loader:
        pass


def write_file(path, data, **options):
    """Write images in chunks of a few, or contiguously."""
    with h5py.File(path, 'w') as file:
        for source, values in data.items():
            file.create_dataset(source, data=values, **(
                options if values.ndim > 1 else {}))
        file.attrs['split'] = H5PYDataset.create_split_array({
            'train': {source: (0, len(values))
                      for source, values in data.items()}})


def in_memory(count, how):
    """Return the rows of streams over arrays in memory."""
    data = arrays(count)
    bare = partial(read_stream, stream_of(IndexableDataset(data)))
    loader = DataLoader(as_iterable(stream_of(IndexableDataset(data))),
                        batch_size=None)
    tensors = TensorDataset(*map(torch.from_numpy, data.values()))
    sampled = [DataLoader(tensors, batch_size=BATCH, shuffle=True),
               DataLoader(_Indexed(tensors), batch_size=None,
                          sampler=BatchSampler(
                              RandomSampler(tensors), BATCH, False))]
    best = max(sampled, key=lambda one: measure.rate(
        partial(read_loader, one), how['seconds'] / 5))
    return [
        ('as_iterable, no workers, of the bare stream',
         measure.compare(bare, partial(read_loader, loader), **how),
         'at least 0.8'),
        ("as_iterable, no workers, of DataLoader's best",
         measure.compare(partial(read_loader, best),
                         partial(read_loader, loader), **how),
         'at least 4'),
        ('to_torch on the CPU, of the bare stream',
         measure.compare(bare, partial(read_stream, to_torch(
             stream_of(IndexableDataset(data)))), **how),
         'at least 0.95')]


class _Indexed(Dataset):
    """Tensors that are indexed by a whole batch at once."""

    def __init__(self, dataset):
        self.tensors = dataset.tensors

    def __getitem__(self, indices):
        return tuple([tensor[indices] for tensor in self.tensors])


def in_files(count, how):
    """Return the rows of streams over HDF5 files, with one worker."""
    data, rows = arrays(count), []
    with tempfile.TemporaryDirectory() as folder:
        for name, options, target in [
                ('contiguous', {}, 20),
                ('gzip', {'compression': 'gzip',
                          'chunks': (BATCH // 4, *SHAPE)}, 50)]:
            path = os.path.join(folder, f'{name}.hdf5')
            write_file(path, data, **options)
            loader = DataLoader(
                as_iterable(stream_of(H5PYDataset(path, ('train',)))),
                batch_size=None, num_workers=1, persistent_workers=True)
            reference = DataLoader(InFile(path), batch_size=BATCH,
                                   shuffle=True, num_workers=2,
                                   persistent_workers=True)
            rows.append((
                f'{name} HDF5, one worker, of h5py in two',
                measure.compare(partial(read_loader, reference),
                                partial(read_loader, loader), **how),
                f'at least {target}'))
            if name == 'contiguous':
                rows += of_a_ring(data['features'], loader, reference, how)
    return rows


def of_a_ring(features, loader, reference, how):
    """Return rows of what one worker can reach, and what Fuel's does."""
    numbers = DataLoader(Numbers(len(features) // BATCH), batch_size=None,
                         num_workers=1, persistent_workers=True)
    with ring(features, BATCH) as read:
        def read_ring():
            for _ in range(len(features) // BATCH):
                torch.from_numpy(numpy.asarray(read()))

        return [('... a bare ring of the arrays in memory, of h5py in two',
                 measure.compare(partial(read_loader, reference), read_ring,
                                 **how), 'the limit'),
                ('... a number in the place of each batch, of h5py in two',
                 measure.compare(partial(read_loader, reference), partial(
                     read_loader, numbers), **how), "DataLoader's limit"),
                ('... one worker, of the bare ring', measure.compare(
                    read_ring, partial(read_loader, loader), **how),
                 'at least 0.8')]


class Numbers(IterableDataset):
    """A number in the place of each batch."""

    def __init__(self, count):
        self.count = count

    def __iter__(self):
        return iter(range(self.count))


def of_loader(count, how):
    """Return the rows of Fuel's own loader beside PyTorch's over a stream."""
    data, rows = arrays(count), []
    for size in (8, BATCH, 1024):
        for workers in (0, 2):
            loaders = [
                make(DataStream(IndexableDataset(data), iteration_scheme=(
                    ShuffledScheme(count, size))), workers)
                for make in (_plain_loader, _own_loader)]
            name = f'{workers} workers, batches of {size}'
            rows.append((f'Loader, {name}, of as_iterable', measure.compare(
                *[partial(read_loader, one) for one in loaders], **how),
                'at least 1'))
    return rows


def _plain_loader(stream, workers):
    return DataLoader(as_iterable(stream), batch_size=None,
                      num_workers=workers, persistent_workers=workers > 0)


def _own_loader(stream, workers):
    return Loader(stream, workers, persistent_workers=workers > 0)


def processor_seconds():
    """Return the processor seconds of this process and its children."""
    children = Path('/proc/self/task').glob('*/children')
    ticks = 0
    for child in ' '.join(path.read_text() for path in children).split():
        fields = Path('/proc', child, 'stat').read_text().rpartition(')')[2]
        ticks += sum(map(int, fields.split()[11:13]))
    return time.process_time() + ticks / os.sysconf('SC_CLK_TCK')


def processor_time(count, how):
    """Return the row of what a batch of two workers takes of processors."""
    tensors = TensorDataset(*map(torch.from_numpy, arrays(count).values()))
    loader = DataLoader(
        _Indexed(tensors), batch_size=None, num_workers=2,
        persistent_workers=True,
        sampler=BatchSampler(RandomSampler(tensors), BATCH, False))
    epochs = max(1, round(how['seconds'] * 20))
    with MultiProcessing(stream_of(IndexableDataset(arrays(count))),
                         num_workers=2) as stream:
        spent = {}
        for _ in range(1 + how['rounds']):
            for name, read in (('Fuel', partial(read_stream, stream)),
                               ('PyTorch', partial(read_loader, loader))):
                before = processor_seconds()
                for _ in range(epochs):
                    read()
                spent.setdefault(name, []).append(
                    processor_seconds() - before)
    # The first epochs start the workers.
    ratios = [ours / theirs if theirs else float('nan') for ours, theirs in
              zip(spent['Fuel'][1:], spent['PyTorch'][1:], strict=True)]
    return ("processor seconds of MultiProcessing, of DataLoader's best",
            measure.Ratio(statistics.median(ratios), min(ratios),
                          max(ratios)), 'at most 0.6')


def training(how):
    """Return the row of a training loop over digits."""
    pixels, labels = load_digits(return_X_y=True)
    pixels = (pixels / 16).astype('float32')
    stream = to_torch(DataStream(
        IndexableDataset({'features': pixels, 'targets': labels}),
        iteration_scheme=ShuffledScheme(len(labels), BATCH)))
    tensors = torch.from_numpy(pixels), torch.from_numpy(labels)

    def model():
        torch.manual_seed(0)
        network = nn.Sequential(nn.Linear(64, 256), nn.ReLU(),
                                nn.Linear(256, 10))
        return network, torch.optim.SGD(network.parameters(), lr=0.1)

    def update(network, optimizer, features, targets):
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(features), targets).backward()
        optimizer.step()

    def of_tensors(network, optimizer):
        order = torch.randperm(len(labels))
        for start in range(0, len(labels), BATCH):
            chosen = order[start:start + BATCH]
            update(network, optimizer, tensors[0][chosen],
                   tensors[1][chosen])

    def of_stream(network, optimizer):
        for features, targets in stream.get_epoch_iterator():
            update(network, optimizer, features, targets)
    return ('training loop of digits, of one over tensors', measure.compare(
        partial(of_tensors, *model()), partial(of_stream, *model()), **how),
        'at least 0.97')


def main():
    """Print the table."""
    arguments = measure.options(__doc__)
    torch.set_num_threads(1)
    warnings.filterwarnings('ignore', 'This DataLoader will create')
    count = 256 if arguments.tiny else 10000
    measure.print_table([
        *in_memory(count, arguments.how), *of_loader(count, arguments.how),
        training(arguments.how),
        processor_time(count, arguments.how),
        *in_files(256 if arguments.tiny else 2000, arguments.how)])
    measure.print_versions('h5py', 'torch')


if __name__ == '__main__':
    main()
