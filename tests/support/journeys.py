"""The functions of Fuel in Python that data pass on five journeys.

``python tests/support/journeys.py`` prints them as JSON. Each function is
named once, in the order in which a batch meets it first.
"""
import json
import multiprocessing
import os
import sys
import tempfile
import threading
import time

import h5py
import numpy

import fuel
from fuel.converters.iris import convert_iris
from fuel.datasets import H5PYDataset, IndexableDataset
from fuel.schemes import ShuffledScheme
from fuel.server import Server
from fuel.streams import DataStream, ServerDataStream
from fuel.transformers import (
    Mapping,
    MultiProcessing,
    ScaleAndShift,
    Transformer,
)

ROOT = os.path.dirname(fuel.__file__)
# The batch before which other processes write what they passed.
LAST = 14
passed: list[str] = []


def note(frame, event, _):
    """Note a function of Fuel that is called."""
    if event == 'call' and frame.f_code.co_filename.startswith(ROOT):
        name = frame.f_code.co_qualname
        if '<' not in name.replace('<locals>', ''):
            file = os.path.relpath(frame.f_code.co_filename, ROOT)
            passed.append(f'{file} {name}')


def trace(function, *args):
    """Return what one call passes."""
    passed.clear()
    sys.setprofile(note)
    try:
        function(*args)
    finally:
        sys.setprofile(None)
    return list(dict.fromkeys(passed))


class Between(Transformer):
    """Keeps what is passed from one batch to the next, in its process: the
    least of several, since other things may happen between two batches."""

    number = 0
    path = ''
    fewest = None

    def get_data(self, request=None):
        """Pass the batch on."""
        Between.number += 1
        found = list(dict.fromkeys(passed))
        if Between.number > 5:
            Between.fewest = min(Between.fewest or found, found, key=len)
        if Between.number == LAST:
            with open(Between.path, 'w', encoding='utf-8') as file:
                json.dump(Between.fewest, file)
        passed.clear()
        return next(self.child_epoch_iterator)


def in_memory():
    """Return a stream over arrays."""
    return DataStream(
        IndexableDataset({'x': numpy.zeros((1000, 64), 'uint8'),
                          'y': numpy.zeros((1000, 1), 'uint8')}),
        iteration_scheme=ShuffledScheme(1000, 32))


def hdf5(folder):
    """Trace a request for rows of a file."""
    path = os.path.join(folder, 'a.hdf5')
    with h5py.File(path, 'w') as file:
        file['x'] = numpy.zeros((1000, 64), 'uint8')
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'x': (0, 1000)}})
    dataset = H5PYDataset(path, ('train',))
    state = dataset.open()
    dataset.get_data(state, [5, 3])
    return trace(dataset.get_data, state, [9, 2, 7])


def stages(_):
    """Trace a batch that two stages transform."""
    epoch = Mapping(ScaleAndShift(
        in_memory(), 1 / 255., 0, which_sources=('x',)),
        tuple).get_epoch_iterator()
    for _ in range(3):
        next(epoch)
    return trace(next, epoch)


def worker(folder):
    """Trace a batch that another process of this host makes."""
    Between.path, Between.number = os.path.join(folder, 'worker'), 0
    sys.setprofile(note)
    with MultiProcessing(Between(in_memory(), produces_examples=False),
                         max_store=2, start_method='fork') as stage:
        epoch = stage.get_epoch_iterator()
        next(epoch)
        sys.setprofile(None)
        return receive(epoch)


def serve(connection):
    """Serve a stream until a message comes."""
    threading.setprofile(note)
    with Server(Between(in_memory(), produces_examples=False), 0) as server:
        connection.send(server.port)
        connection.recv()


def server(folder):
    """Trace a batch that a server makes."""
    Between.path, Between.number = os.path.join(folder, 'server'), 0
    context = multiprocessing.get_context('fork')
    mine, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs,))
    process.start()
    with ServerDataStream(('x', 'y'), False, port=mine.recv(),
                          hwm=2) as stream:
        found = receive(stream.get_epoch_iterator())
    mine.send(None)
    process.join()
    return found


def receive(epoch):
    """Return what a batch passes in both processes."""
    for _ in range(3):
        next(epoch)
    here = []
    for _ in range(LAST):
        time.sleep(.05)
        here.append(trace(next, epoch))
    with open(Between.path, encoding='utf-8') as file:
        return [*json.load(file), *min(here, key=len)]


def convert(folder):
    """Trace a conversion."""
    rows = numpy.random.RandomState(0).uniform(.1, 8, (150, 4)).round(1)
    names = ['Iris-setosa', 'Iris-versicolor', 'Iris-virginica']
    with open(os.path.join(folder, 'iris.data'), 'w',
              encoding='ascii') as file:
        for number, row in enumerate(rows):
            file.write(','.join(map(str, row)) + f',{names[number // 50]}\n')
    convert_iris(folder, folder)
    return trace(convert_iris, folder, folder)


def main():
    """Print the functions of each journey."""
    with tempfile.TemporaryDirectory() as folder:
        json.dump({journey.__name__: journey(folder) for journey in (
            hdf5, stages, worker, server, convert)}, sys.stdout)


if __name__ == '__main__':
    main()
