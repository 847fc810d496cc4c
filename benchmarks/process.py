"""Streams that run in another process, beside a bare ring of memory.

The ring is the least that such a thing can cost: a process writes the same
batches straight into a few slots of shared memory, and two semaphores say
which are full and which are free.  Where PyTorch is installed, its
``DataLoader`` with two workers makes the same batches too.
"""
import importlib.util
import multiprocessing
import os
import time
from contextlib import contextmanager
from mmap import mmap

import measure
import numpy
import zmq

from fuel.datasets import IndexableDataset
from fuel.schemes import ShuffledScheme
from fuel.server import Server
from fuel.streams import DataStream, ServerDataStream
from fuel.transformers import Cast, MultiProcessing, Transformer

BATCH, SHAPE, SLOTS = 256, (3, 32, 32), 8
FORK = multiprocessing.get_context('fork')


def images(count):
    """Return random images."""
    return numpy.random.RandomState(0).randint(
        0, 256, (count, *SHAPE)).astype('uint8')


def pipeline(features):
    """Return shuffled batches of 3.1 MB, cast to float32."""
    return Cast(DataStream(
        IndexableDataset({'features': features}),
        iteration_scheme=ShuffledScheme(len(features), BATCH)), 'float32')


@contextmanager
def ring(features, size=BATCH):
    """Yield a function that reads one batch of float32 of a bare ring."""
    order = numpy.random.RandomState(1).permutation(len(features))
    indices = [order[start:start + size]
               for start in range(0, len(order) - size + 1, size)]
    memory = mmap(-1, SLOTS * size * int(numpy.prod(SHAPE)) * 4)
    slots = numpy.frombuffer(memory, 'f4').reshape(SLOTS, size, *SHAPE)
    full, free = FORK.Semaphore(0), FORK.Semaphore(SLOTS)

    def produce():
        for turn in range(10 ** 9):
            free.acquire()
            chosen, slot = indices[turn % len(indices)], slots[turn % SLOTS]
            if features.dtype == slot.dtype:
                features.take(chosen, axis=0, out=slot, mode='clip')
            else:
                numpy.copyto(slot, features.take(chosen, axis=0),
                             casting='unsafe')
            full.release()

    process = FORK.Process(target=produce, daemon=True)
    process.start()
    turns = iter(range(10 ** 9))

    def read():
        full.acquire()
        value = slots[next(turns) % SLOTS, 0, 0, 0, 0]
        free.release()
        return value

    yield read
    process.kill()
    process.join()


def endless(stream):
    """Return a function that reads one batch after another."""
    def batches():
        while True:
            yield from stream.get_epoch_iterator()
    iterator = batches()
    return lambda: next(iterator)[0].flat[0]


@contextmanager
def loader(features):
    """Yield a function that reads one batch of a DataLoader."""
    import torch
    from torch.utils.data import DataLoader, Dataset, RandomSampler

    class Images(Dataset):
        def __len__(self):
            return len(features)

        def __getitem__(self, index):
            return torch.from_numpy(features[index]).float()

    images = Images()
    # One epoch without end, so that no worker is started while time is taken.
    batches = iter(DataLoader(
        images, BATCH, num_workers=2,
        sampler=RandomSampler(images, num_samples=BATCH * 10 ** 6)))
    yield lambda: next(batches)[0, 0, 0, 0]


def serve_in_process(stream, pipe):
    """Serve a stream and tell the port."""
    server = Server(stream, port=0)
    server.start()
    pipe.send(server.port)
    pipe.recv()
    server.stop()


@contextmanager
def server_of(stream):
    """Yield the port of a server in another process."""
    ours, theirs = FORK.Pipe()
    process = FORK.Process(target=serve_in_process, args=(stream, theirs))
    process.start()
    theirs.close()
    yield ours.recv()
    ours.send(None)
    process.join()
    ours.close()


def push(port, size, pipe):
    """Push messages of one size without copying, for ever."""
    with zmq.Context() as context, context.socket(zmq.PUSH) as socket:
        socket.sndhwm = 10
        socket.linger = 0
        pipe.send(socket.bind_to_random_port('tcp://127.0.0.1'))
        data = numpy.ones(size, 'u1')
        while True:
            socket.send(data, copy=False)


@contextmanager
def pull(size):
    """Yield a function that receives one message."""
    ours, theirs = FORK.Pipe()
    process = FORK.Process(target=push, args=(0, size, theirs), daemon=True)
    process.start()
    with zmq.Context() as context, context.socket(zmq.PULL) as socket:
        socket.rcvhwm = 10
        socket.connect(f'tcp://127.0.0.1:{ours.recv()}')
        yield lambda: socket.recv(copy=False)
        socket.linger = 0
    process.kill()
    process.join()
    ours.close()
    theirs.close()


class Ready(Transformer):
    """Returns the same small array again and again."""

    def __init__(self, data_stream, pause=0.0):
        super().__init__(data_stream, produces_examples=False)
        self.pause = pause
        self.array = numpy.zeros(10)

    def transform_batch(self, batch):
        """Return the array after a pause."""
        if self.pause:
            time.sleep(self.pause)
        return (self.array,)


class Unwritten(Transformer):
    """Returns arrays over memory that nobody writes again.

    The bare socket sends such memory without a copy.  An array that the
    stage itself holds would be copied first.
    """

    def __init__(self, data_stream, array):
        super().__init__(data_stream, produces_examples=False)
        self.memory = array.tobytes()
        self.shape, self.dtype = array.shape, array.dtype

    def transform_batch(self, batch):
        """Return another array over the memory."""
        return (numpy.frombuffer(self.memory, self.dtype).reshape(
            self.shape),)


def ready(count, pause=0.0):
    """Return a stream of `count` ready batches."""
    return Ready(numbers(count), pause)


def numbers(count):
    """Return a stream of `count` tiny batches."""
    return DataStream(IndexableDataset(numpy.arange(count)),
                      iteration_scheme=ShuffledScheme(count, 1))


def answer(pipe):
    """Answer 100 bytes with 100 bytes."""
    with zmq.Context() as context, context.socket(zmq.REP) as socket:
        socket.linger = 0
        pipe.send(socket.bind_to_random_port('tcp://127.0.0.1'))
        while True:
            socket.send(socket.recv())


def latency(how):
    """Compare ``next()`` with ``hwm=1`` to a REQ/REP round trip."""
    ours, theirs = FORK.Pipe()
    process = FORK.Process(target=answer, args=(theirs,), daemon=True)
    process.start()
    with server_of(ready(10 ** 6)) as port, \
            ServerDataStream(('x',), port=port, hwm=1) as client, \
            zmq.Context() as context, context.socket(zmq.REQ) as socket:
        socket.connect(f'tcp://127.0.0.1:{ours.recv()}')

        def ask():
            socket.send(bytes(100))
            return socket.recv()
        ratio = measure.compare(endless(client), ask, **how)
        socket.linger = 0
    process.kill()
    process.join()
    ours.close()
    theirs.close()
    return ratio


def overlap(steps, stream):
    """Return how long steps of 10 ms take, of the steps alone."""
    epoch = stream.get_epoch_iterator()
    next(epoch)
    start = time.perf_counter()
    for _ in range(steps):
        time.sleep(0.01)
    alone = time.perf_counter() - start
    start = time.perf_counter()
    for _ in range(steps):
        next(epoch)
        time.sleep(0.01)
    return (time.perf_counter() - start) / alone


def memory_of(pid):
    """Return the bytes of memory of a process that do not map a file."""
    with open(f'/proc/{pid}/status') as file:
        fields = dict(line.split(':', 1) for line in file)
    return 1024 * sum(int(fields[name].split()[0])
                      for name in ('RssAnon', 'RssShmem'))


def growth(stream, batches):
    """Return by how much both sides grow in the second half (bytes)."""
    read = endless(stream)
    read()
    # The queue is full once, so that every slot it needs is there.
    time.sleep(1)
    pids = [os.getpid()]

    def total():
        return sum(map(memory_of, pids))
    for _ in range(batches // 2):
        read()
    pids.extend(stream.worker_pids)
    before = total()
    for _ in range(batches // 2):
        read()
    return total() - before


def main():
    """Print the table."""
    arguments = measure.options(__doc__)
    how, tiny = arguments.how, arguments.tiny
    # About as many as CIFAR-10 has: the ring's order is drawn beforehand, so
    # that of an epoch should not be drawn every few batches either.
    features = images(2 * BATCH if tiny else 200 * BATCH)
    steps, many = (5, 20) if tiny else (500, 10_000)
    rows = []
    with ring(features) as read, \
            MultiProcessing(pipeline(features)) as stream:
        rows.append(('MultiProcessing, of a bare ring',
                     measure.compare(read, endless(stream), **how),
                     'at least 0.6'))
    with server_of(pipeline(features)) as port, ring(features) as read, \
            ServerDataStream(('features',), port=port) as stream:
        rows.append(('local server, of a bare ring',
                     measure.compare(read, endless(stream), **how),
                     'at least 0.5'))
    if importlib.util.find_spec('torch') is not None:
        with loader(features) as read, \
                MultiProcessing(pipeline(features)) as stream:
            rows.append(('MultiProcessing, of a DataLoader with 2 workers',
                         measure.compare(read, endless(stream), **how),
                         'at least 10'))
        with server_of(pipeline(features)) as port, \
                loader(features) as read, \
                ServerDataStream(('features',), port=port) as stream:
            rows.append(('local server, of a DataLoader with 2 workers',
                         measure.compare(read, endless(stream), **how),
                         'at least 6'))
    batch = numpy.ones((BATCH, *SHAPE), 'f4')
    with server_of(Unwritten(numbers(10 ** 6), batch)) as port, \
            pull(batch.nbytes) as read, ServerDataStream(
                ('features',), port=port, shared_memory=False) as stream:
        rows.append(('frames over TCP, of bare PUSH/PULL',
                     measure.compare(read, endless(stream), **how),
                     'at least 0.8'))
    with MultiProcessing(ready(2 * steps + 10, 0.005)) as stream:
        rows.append((f'5 ms pipeline, {steps} steps of 10 ms, of the steps',
                     f'{overlap(steps, stream):.3f}', 'at most 1.03'))
    with server_of(ready(2 * steps + 10, 0.005)) as port, \
            ServerDataStream(('x',), port=port) as stream:
        rows.append(('... from a server',
                     f'{overlap(steps, stream):.3f}', 'at most 1.03'))
    rows.append(('REQ/REP round trips in one next() with hwm=1',
                 latency(how), 'at most 5'))
    with MultiProcessing(pipeline(features), max_store=20) as stream:
        rows.append((f'memory that {many // 2} more batches add',
                     f'{growth(stream, many) / 1e6:.2f} MB', 'under 1 MB'))
    measure.print_table(rows)


if __name__ == '__main__':
    main()
