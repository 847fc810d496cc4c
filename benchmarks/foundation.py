"""Streams over data in memory, beside what NumPy does with the same bytes.

Each reference is the fastest plain way of doing the same, and stands in full
beside the candidate.
"""
import json
import os
import pickle
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import h5py
import measure
import numpy

from fuel.datasets import H5PYDataset, IndexableDataset
from fuel.kernels.epoch_iterator import StageMeter, measuring_seconds
from fuel.schemes import SequentialExampleScheme, ShuffledScheme
from fuel.streams import DataStream
from fuel.transformers import (
    Cast,
    FilterSources,
    Flatten,
    Mapping,
    Rename,
    ScaleAndShift,
    Transformer,
)

BATCH = 128
IMPORTS = ('import fuel.datasets, fuel.streams, fuel.schemes, '
           'fuel.transformers')


def write_images(path, count):
    """Write an HDF5 file of random images and targets."""
    rng = numpy.random.RandomState(0)
    features = rng.randint(0, 256, (count, 3, 32, 32)).astype('uint8')
    targets = rng.randint(0, 10, (count, 1)).astype('uint8')
    with h5py.File(path, 'w') as file:
        file['features'], file['targets'] = features, targets
        file.attrs['split'] = H5PYDataset.create_split_array({
            'train': {'features': (0, count), 'targets': (0, count)}})
    return features, targets


def compare_epochs(reference, stream, how):
    """Compare whole epochs; drawing the order does not count."""
    ratios = []
    for _ in range(how['rounds'] + 1):
        taken = [0.0, 0.0]
        while min(taken) <= how['seconds']:
            epoch = stream.get_epoch_iterator()
            start = time.perf_counter()
            reference()
            middle = time.perf_counter()
            for batch in epoch:  # noqa: B007 (kept, as above)
                pass
            taken[0] += middle - start
            taken[1] += time.perf_counter() - middle
        ratios.append(taken[0] / taken[1])
    # The first round only warms up.
    ratios = ratios[1:]
    return measure.Ratio(
        statistics.median(ratios), min(ratios), max(ratios))


def orders(count):
    """Return the batches of a shuffled epoch as index arrays."""
    order = numpy.random.RandomState(1).permutation(count)
    return [order[start:start + BATCH] for start in range(0, count, BATCH)]


def shuffled_batches(dataset, features, targets, how):
    """Compare shuffled batches to one ``take`` for each source."""
    indices = orders(len(features))

    def reference():
        for index in indices:
            # The name keeps the batch until the next is there, as a training
            # loop does.
            batch = features.take(index, axis=0), targets.take(index, axis=0)
        return batch

    stream = DataStream(dataset, iteration_scheme=ShuffledScheme(
        len(features), BATCH))
    return compare_epochs(reference, stream, how)


def scaled_batches(dataset, features, targets, how):
    """Compare scaled float32 batches to one take and one multiply."""
    indices = orders(len(features))
    scale = numpy.float32(1 / 255)

    def reference():
        for index in indices:
            batch = (numpy.multiply(features.take(index, axis=0), scale,
                                    dtype='float32'),
                     targets.take(index, axis=0))
        return batch

    stream = DataStream(dataset, iteration_scheme=ShuffledScheme(
        len(features), BATCH))
    stream = Cast(
        ScaleAndShift(stream, 1 / 255, 0, which_sources=('features',)),
        'float32', which_sources=('features',))
    return compare_epochs(reference, stream, how)


def small_batches(count, with_stages, how):
    """Measure the time of a small batch, as a multiple of two takes."""
    features = numpy.random.RandomState(0).normal(size=(count, 10))
    targets = numpy.arange(count)
    order = numpy.random.RandomState(1).permutation(count)
    indices = [order[start:start + 32] for start in range(0, count, 32)]

    def reference():
        for index in indices:
            batch = features.take(index, axis=0), targets.take(index, axis=0)
        return batch

    stream = DataStream(
        IndexableDataset({'x': features, 'y': targets}),
        iteration_scheme=ShuffledScheme(count, 32))
    if with_stages:
        stream = ScaleAndShift(stream, 2., 1., which_sources=('x',))
        stream = Flatten(stream, which_sources=('x',))
        stream = Rename(Mapping(stream, tuple), {'x': 'features'})
        stream = FilterSources(stream, ('features', 'y'))
    ratio = compare_epochs(reference, stream, how)
    return f'{1 / ratio.median:.1f}'


def measuring(count, how):
    """Measure what measuring takes of a batch in memory, and of 50 us."""
    stream = DataStream(
        IndexableDataset(numpy.zeros((count, 10))), batch_size=32)
    parts = []
    for _ in range(how['rounds']):
        meter, epoch = StageMeter(), stream.get_epoch_iterator()
        item, batches = next(epoch), 0
        begin = time.perf_counter()
        for item in epoch:  # noqa: B007 (kept, as above)
            batches += 1
        passed = time.perf_counter() - begin
        # The first ones are all timed.
        measuring_seconds(meter, item, 1000)
        parts.append((
            measuring_seconds(meter, item, batches) / passed,
            measuring_seconds(meter, item, batches) / batches / 50e-6))
    return [f'{statistics.median(part):.1%}'
            for part in zip(*parts, strict=True)]


def single_examples(features, targets, how):
    """Compare single examples, the user's own, to views of rows."""
    dataset = IndexableDataset({'x': features, 'y': targets})
    stream = DataStream(dataset, iteration_scheme=SequentialExampleScheme(
        len(features)))

    def reference():
        for _ in zip(features, targets):  # noqa: B905 (as users write it)
            pass

    return compare_epochs(reference, stream, how)


class Plain(Transformer):
    """A stage as users write it."""

    def __init__(self, data_stream):
        super().__init__(data_stream, data_stream.produces_examples)

    def transform_example(self, example):
        """Return an example as it is."""
        return example


class Pure(Plain):
    """The same, which says that it depends on nothing else."""

    pure = True
    transform_example = Plain.transform_example


class Own(Pure):
    """The same, as if it were Fuel's own."""

    __module__ = 'fuel.transformers'


def stages_of_users(features, how):
    """Measure three stages of users, as multiples of three of Fuel's."""
    def stream(stage):
        return stage(stage(stage(DataStream(
            IndexableDataset({'x': features}),
            iteration_scheme=SequentialExampleScheme(len(features))))))

    own = stream(Own)

    def reference():
        for _ in own.get_epoch_iterator():
            pass

    return [f'{1 / compare_epochs(reference, stream(stage), how).median:.1f}'
            for stage in (Pure, Plain)]


class Peak:
    """The highest private memory while a block runs, in bytes."""

    def __enter__(self):
        self.before = self.bytes = measure.private_memory()
        self.done = threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def watch(self):
        """Look every millisecond."""
        while not self.done.wait(0.001):
            self.bytes = max(self.bytes, measure.private_memory())

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()
        self.bytes = max(self.bytes, measure.private_memory()) - self.before


def first_request(count, how):
    """Measure the first request of a shuffled epoch: time and memory."""
    def candidate():
        next(ShuffledScheme(count, BATCH).get_request_iterator())

    ratio = measure.compare(
        lambda: numpy.random.RandomState(1).permutation(count), candidate,
        **how)
    with Peak() as peak:
        candidate()
    return 1 / ratio.median, peak.bytes / (8 * count)


def saved_position(count):
    """Return the size of a pickle, and of a state, in mid-epoch."""
    stream = DataStream(IndexableDataset(range(count)),
                        iteration_scheme=ShuffledScheme(count, BATCH))
    epoch = stream.get_epoch_iterator()
    for _ in range(10):
        next(epoch)
    return (len(pickle.dumps((stream, epoch))),
            len(json.dumps(stream.state_dict())))


def import_time(rounds):
    """Measure importing Fuel, as a multiple of NumPy and h5py alone."""
    # As for any user, modules are compiled once and not at each start.
    environment = {name: value for name, value in os.environ.items()
                   if name != 'PYTHONDONTWRITEBYTECODE'}

    def seconds(statement):
        start = time.perf_counter()
        subprocess.run([sys.executable, '-c', statement], check=True,
                       env=environment)
        return time.perf_counter() - start

    ratios = []
    seconds(IMPORTS)
    for _ in range(rounds):
        bare = seconds('pass')
        ratios.append((seconds(IMPORTS) - bare)
                      / (seconds('import numpy, h5py') - bare))
    return statistics.median(ratios)


def main():
    """Print the table."""
    arguments = measure.options(__doc__)
    how, tiny = arguments.how, arguments.tiny
    count, many = (500, 10 ** 4) if tiny else (50_000, 10 ** 7)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / 'images.hdf5'
        features, targets = write_images(path, count)
        with H5PYDataset(path, ('train',), load_in_memory=True) as dataset:
            batches = shuffled_batches(dataset, features, targets, how)
            scaled = scaled_batches(dataset, features, targets, how)
    small = numpy.random.RandomState(0).normal(size=(count, 4))
    pure, plain = stages_of_users(small[:40_000], how)
    measured, of_slower = measuring(count, how)
    duration, memory = first_request(many, how)
    pickled, state = saved_position(many)
    measure.print_table([
        ('shuffled batches of 128 from memory, of take', batches,
         'at least 0.8'),
        ('... scaled and cast to float32, of take and multiply', scaled,
         'at least 1.2'),
        ('time of a batch of 32 x 10 floats, of two takes',
         small_batches(count, False, how), 'at most 4'),
        ('... behind five stages', small_batches(count, True, how),
         'at most 20'),
        ('measuring, of the time of a batch of 32 x 10 floats', measured,
         'at most 5%'),
        ('... of a batch that takes 50 us', of_slower, 'at most 1%'),
        ('single examples of 3 KB, of zip', single_examples(
            features, targets, how), 'at least 0.3'),
        ('single examples of 32 B, of zip', single_examples(
            small, targets, how), 'at least 0.3'),
        ('time of three pure stages of users, of the same of Fuel', pure,
         'at most 1.5'),
        ('... of three that may ask for their epoch', plain, ''),
        (f'first request of {many:.0e} shuffled, of permutation',
         f'{duration:.2f}', 'at most 1.3'),
        ('... its peak memory, of 8 B an example', f'{memory:.2f}',
         'at most 1.3'),
        ('pickle of stream and iterator in that epoch',
         f'{pickled / 1000:.1f} KB', 'under 16 KB'),
        ('state_dict in that epoch, as JSON', f'{state / 1000:.1f} KB', ''),
        ('import, of importing numpy and h5py',
         f'{import_time(1 if tiny else 15):.2f}', 'at most 1.5'),
    ])


if __name__ == '__main__':
    main()
