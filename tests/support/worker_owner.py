"""Pipelines that are read by workers to their end, whatever happens."""
import json
import os
import random
import sys
import time
from pathlib import Path

import h5py
import numpy

from fuel.datasets import H5PYDataset, IndexableDataset
from fuel.exceptions import WorkerError
from fuel.schemes import SequentialScheme, ShuffledScheme
from fuel.streams import DataStream
from fuel.transformers import (
    AgnosticTransformer, Cast, MultiProcessing, ScaleAndShift)
from fuel.transformers.noise import GaussianNoise
from support import killing

METHODS = ['fork', 'forkserver', 'spawn']
NUM_ROWS = 320
# The timeout of the workers, and what an epoch may wait beyond it: a look, an
# answer, the time that a fault lasts, and a machine that does other things.
TIMEOUT = 6.
LIMIT = TIMEOUT + 14.
# Exit status of an owner whose workers raised an error.
ENDED_BY_ERROR = 3

# The program of an owner.
OWNER = """
import sys
from support import worker_owner
if __name__ == '__main__':
    worker_owner.own(sys.argv[1], sys.argv[2], int(sys.argv[3]),
                     sys.argv[4], int(sys.argv[5]))
"""


class Slow(AgnosticTransformer):
    """Takes its time, and nothing else."""

    one_to_one = True

    def __init__(self, data_stream, seconds):
        super().__init__(data_stream, data_stream.produces_examples)
        self.seconds = seconds

    def transform_any(self, data):
        """Do what the class says."""
        time.sleep(self.seconds)
        return data


class Drift(AgnosticTransformer):
    """Adds a random number: its draws depend on those before."""

    def __init__(self, data_stream, seed):
        super().__init__(data_stream, data_stream.produces_examples)
        self.rng = numpy.random.RandomState(seed)

    def transform_any(self, data):
        """Do what the class says."""
        return (data[0] + self.rng.uniform(), *data[1:])


def write_files(folder):
    """Write the rows that the pipelines read: 2.5 MiB, in two files."""
    rows = numpy.random.default_rng(4).normal(
        size=(NUM_ROWS, 2048)).astype('f4')
    numpy.save(Path(folder) / 'rows.npy', rows)
    with h5py.File(Path(folder) / 'rows.hdf5', 'w') as file:
        file['rows'] = rows
        file.create_dataset('packed', data=rows[:, :300], chunks=(16, 300),
                            compression='gzip')
        file.attrs['split'] = H5PYDataset.create_split_array({
            'all': dict.fromkeys(('rows', 'packed'), (0, NUM_ROWS))})


def open_rows(kind, folder):
    """Return the data set of a kind."""
    path = str(Path(folder) / 'rows.')
    if kind == 'HDF5':
        return H5PYDataset(path + 'hdf5', ('all',))
    rows = numpy.load(path + 'npy', 'r' if kind == 'map' else None)
    return IndexableDataset({'rows': rows,
                             'numbers': numpy.arange(NUM_ROWS)})


class Plan:
    """Pipeline and workers of one trial, drawn from a seed."""

    def __init__(self, seed, method=None, num_epochs=None):
        rng = self.rng = random.Random(seed)
        self.seed = seed
        drawn = rng.choice(METHODS)
        self.method = method or drawn
        self.kind = rng.choice(['memory', 'memory', 'map', 'HDF5'])
        self.num_workers = rng.randint(1, 3)
        drawn = rng.randint(2, 4)
        self.num_epochs = num_epochs or drawn
        self.max_store = rng.choice([1, 2, 5, 20])
        self.batch_size = rng.randint(7, 24)
        self.is_shuffled = rng.random() < 0.7
        self.seconds = rng.choice([0, 0.003, 0.02])
        self.pause = rng.choice([0, 0.002, 0.02])
        self.stages = rng.sample(
            ['cast', 'scale', 'noise', 'drift'], rng.randint(0, 3))
        self.num_faults = rng.randint(1, 2 * self.num_epochs)

    def __str__(self):
        return (f'seed {self.seed}: {self.method}, {self.num_workers} workers,'
                f' {self.kind}, {self.stages}')

    def build(self, folder):
        """Return the stream that the workers read."""
        dataset = open_rows(self.kind, folder)
        name = dataset.sources[0]
        scheme = ShuffledScheme if self.is_shuffled else SequentialScheme
        stream = DataStream(
            dataset, iteration_scheme=scheme(NUM_ROWS, self.batch_size))
        for stage in self.stages:
            if stage == 'cast':
                stream = Cast(stream, 'f8', which_sources=(name,))
            elif stage == 'scale':
                stream = ScaleAndShift(stream, 2, 1, which_sources=(name,))
            elif stage == 'noise':
                stream = GaussianNoise(stream, 0.5, which_sources=(name,),
                                       seed=self.seed)
            elif self.num_workers == 1:
                stream = Drift(stream, self.seed % 1000)
        return Slow(stream, self.seconds)

    def put_workers(self, folder):
        """Return the stream, read by workers."""
        return MultiProcessing(
            self.build(folder), self.max_store, num_workers=self.num_workers,
            start_method=self.method, timeout=TIMEOUT)


def own(folder, path, seed, method, num_epochs):
    """Read epochs to their end, whatever happens to the workers.

    After an error the same stream goes on, or another one, or another
    process: from the state that was saved last.
    """
    plan = Plan(seed, method, num_epochs)
    stream = plan.put_workers(folder)
    if not os.path.exists(path):
        killing.save(path, {'seen': [], 'epoch': 0, 'waited': 0.,
                            'state': stream.state_dict()})
    while True:
        try:
            read(stream, path, plan)
        except WorkerError as error:
            with open(path + '.errors', 'a') as file:
                file.write(json.dumps(str(error)) + '\n')
        else:
            stream.close()
            return
        how = random.choice(['same', 'other', 'end'])
        if how == 'end':
            sys.exit(ENDED_BY_ERROR)
        if how == 'other':
            stream.close()
            stream = plan.put_workers(folder)


def read(stream, path, plan):
    """Read from the saved state on, saving after each batch."""
    saved = json.loads(Path(path).read_text())
    stream.load_state_dict(saved['state'])
    while saved['epoch'] < plan.num_epochs:
        epoch = stream.get_epoch_iterator()
        while True:
            begin = time.monotonic()
            try:
                batch = next(epoch, None)
            finally:
                # An error that comes too late is noted too.
                saved['waited'] = max(saved['waited'],
                                      time.monotonic() - begin)
                if saved['waited'] > LIMIT:
                    killing.save(path + '.late', saved['waited'])
            if batch is None:
                break
            saved['seen'].append(killing.noted(batch)[1])
            killing.save(path, {**saved, 'state': stream.state_dict()})
            time.sleep(plan.pause)
        saved['epoch'] += 1
        killing.save(path, {**saved, 'state': stream.state_dict()})
