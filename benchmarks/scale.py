"""Measure many ranks, clients, files and threads, on one machine.

    python benchmarks/scale.py [--tiny]
                               [--only ranks|clients|files|threads|model]

Prints what a simulated rank of 1,000 takes to start over 10**12 examples, and
to resume on 999; what 200 clients take from one server while some are
killed; how long 10,000 files of a server at 20 ms take to open; how long
threads wait for each other at the cache of decoded chunks; and how well the
formula of the manual's page "How far it goes" tells the seconds of a step.
"""
import contextlib
import os
import signal
import statistics
import sys
import tempfile
import threading
import time
import tracemalloc
from pathlib import Path

import h5py
import measure
import numpy

# At the end: its folders have names of other packages.
sys.path.append(str(Path(__file__).resolve().parents[1] / 'tests'))

from support.range_server import server_process

from fuel.datasets import Dataset, HDF5Dataset
from fuel.schemes import ComputedShuffledScheme
from fuel.streams import DataStream, ServerDataStream
from fuel.transformers import Mix, MultiProcessing, Transformer

EXAMPLES, BATCH = 10 ** 12, 64
# Seconds that the server of files waits before it answers.
LATENCY = .02


class Numbers(Dataset):
    """The numbers below `EXAMPLES`, which take no memory."""

    provides_sources = ('number',)
    num_examples = EXAMPLES
    example_iteration_scheme = None

    def get_data(self, state=None, request=None):
        """Return the numbers that were asked for."""
        return (numpy.asarray(request),)


class Rows(Dataset):
    """Rows of 8 KB; each holds its number, and none is kept in memory."""

    provides_sources = ('number',)
    example_iteration_scheme = None

    def __init__(self, num_examples):
        self.num_examples = num_examples
        super().__init__()

    def get_data(self, state=None, request=None):
        """Return the rows that were asked for."""
        return (numpy.repeat(numpy.array(request, 'f8')[:, None], 1024, 1),)


def numbers(seed):
    """Return a stream over all numbers, in a computed order."""
    return DataStream(Numbers(), iteration_scheme=ComputedShuffledScheme(
        EXAMPLES, BATCH, seed=seed))


def mixture():
    """Return a mixture of three such streams."""
    return Mix({name: numbers(seed) for seed, name in enumerate('abc')},
               {'a': 3, 'b': 2, 'c': 1}, seed=1)


def start_ranks(build, num_ranks, state=None):
    """Start one rank after another; return seconds and bytes of each, and
    the first batch of all."""
    seconds, nbytes, firsts = [], [], []
    for rank in range(num_ranks):
        began = time.perf_counter()
        stream = build().shard(rank, num_ranks)
        if state is not None:
            stream.load_state_dict(state)
        batch, = next(iter(stream))
        seconds.append(time.perf_counter() - began)
        firsts.append(batch)
    tracemalloc.start()
    stream = build().shard(num_ranks - 1, num_ranks)
    if state is not None:
        stream.load_state_dict(state)
    next(iter(stream))
    nbytes.append(tracemalloc.get_traced_memory()[1])
    tracemalloc.stop()
    return seconds, max(nbytes), firsts


def ranks(tiny):
    """Start ranks over more examples than fit anywhere, and resume them on
    another number of ranks."""
    count = 8 if tiny else 1000
    for name, build in (('computed order', lambda: numbers(1)),
                        ('mixture of three', mixture)):
        seconds, nbytes, firsts = start_ranks(build, count)
        whole = iter(build())
        if [batch.tolist() for batch in firsts] != [
                next(whole)[0].tolist() for _ in range(count)]:
            raise ValueError('the ranks do not share the order')
        stream = build().shard(0, count)
        epoch = iter(stream)
        for _ in range(3):
            next(epoch)
        state = stream.state_dict()
        for _ in range(2 * count):
            next(whole)
        resumed, more, firsts = start_ranks(build, count - 1, state)
        if [batch.tolist() for batch in firsts] != [
                next(whole)[0].tolist() for _ in range(count - 1)]:
            raise ValueError('a batch was lost, or came twice')
        for text, found, used in (
                (f'a rank of {count}: start and first batch', seconds,
                 nbytes),
                (f'resumed on {count - 1}', resumed, more)):
            yield (f'{name}, {text}',
                   f'{statistics.median(found) * 1e3:.1f} ms',
                   'at least 100 a second',
                   f'{max(found) * 1e3:.1f} ms at most, {used / 1e3:.0f} kB')


def consume(port, is_local, results):
    """Read the batches of an epoch; write the number of each, when it came,
    and how long it was waited for."""
    with ServerDataStream(('number',), port=port, hwm=2,
                          shared_memory=is_local) as stream:
        epoch = iter(stream)
        before = time.monotonic()
        for batch, in epoch:
            now = time.monotonic()
            os.write(results, numpy.array(
                [batch[0, 0] // 8, now, now - before]))
            before = now


def memory_of(process):
    """Return the bytes of memory of a process, its share of what others have
    too."""
    fields = dict(line.split(':', 1) for line in Path(
        f'/proc/{process}/smaps_rollup').read_text().splitlines()[1:])
    return int(fields['Pss'].split()[0]) << 10


def run_clients(count, num_batches, is_local, num_killed):
    """Have clients read an epoch together; return the numbers that came, how
    long each was waited for, the seconds from the first to the last, and the
    memory of the server."""
    stream = DataStream(Rows(8 * num_batches), batch_size=8)
    memory = 0
    with contextlib.ExitStack() as stack:
        results = stack.enter_context(tempfile.NamedTemporaryFile())
        output = os.open(results.name, os.O_WRONLY | os.O_APPEND)
        stack.callback(os.close, output)
        server, port = stack.enter_context(measure.server_of(
            stream, num_clients=count, reconnect=1.))
        running = {stack.enter_context(measure.forked(
            consume, port, is_local, output)) for _ in range(count)}
        doomed = sorted(running)[:num_killed]
        while running:
            if doomed and (os.path.getsize(results.name) // 24
                           > num_batches // 4):
                os.kill(doomed.pop(), signal.SIGKILL)
            memory = max(memory, memory_of(server))
            for client in sorted(running):
                if os.waitpid(client, os.WNOHANG)[0]:
                    running.discard(client)
            time.sleep(.02)
        found, came, waited = numpy.fromfile(results.name).reshape(-1, 3).T
    return found.astype(int), waited, came.max() - came.min(), memory


def clients(tiny):
    """Serve more and more clients, the last ones until a tenth is killed."""
    num_batches = 60 if tiny else 20000
    for is_local, name in ((True, 'local'), (False, 'TCP')):
        alone = None
        for count in (1, 4) if tiny else (1, 8, 200):
            killed = count // 10
            came, waits, seconds, memory = run_clients(
                count, num_batches, is_local, killed)
            counts = numpy.bincount(came, minlength=num_batches)
            # One that is killed may have delivered a batch and not said so.
            if counts.max() > 1 or (counts == 0).sum() > killed:
                raise ValueError(f'{(counts == 0).sum()} batches were lost, '
                                 f'{(counts > 1).sum()} came twice')
            rate = num_batches / seconds
            alone = alone or rate
            detail = (f'{rate:.0f} batches/s of 64 kB, 99 % waited less than '
                      f'{numpy.quantile(waits, .99) * 1e3:.1f} ms, server '
                      f'{memory / 1e6:.0f} MB')
            yield (f'{count} {name} clients, {killed} killed: of one client',
                   f'{rate / alone:.2f}', 'at least 0.8', detail)


def files(tiny):
    """Open many files of a server that takes long to answer."""
    count = 20 if tiny else 10000
    with tempfile.TemporaryDirectory() as folder, server_process(
            folder, '--latency', str(LATENCY)) as root:
        names = [f'{number}.hdf5' for number in range(count)]
        for number, name in enumerate(names):
            with h5py.File(Path(folder) / name, 'w') as file:
                file['x'] = numpy.full((4, 3), number, 'f4')
        for text in ('first', 'later'):
            began = time.perf_counter()
            with HDF5Dataset([root + name for name in names],
                             sources={'x': 'x'}) as dataset:
                batch, = dataset.get_data(None, [4 * count - 1])
            seconds = time.perf_counter() - began
            if batch.tolist() != [[count - 1] * 3]:
                raise ValueError(f'wrong row: {batch}')
            yield (f'{count} remote files opened, {text} time',
                   f'{seconds:.1f} s', 'at least 100 a second',
                   f'{seconds / count / LATENCY:.2f} of a request each')


def threads(tiny):
    """Read chunks that are decoded already from more and more threads."""
    num_rows, seconds = (600, .05) if tiny else (60000, 3.)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / 'rows.hdf5'
        with h5py.File(path, 'w') as file:
            file.create_dataset('x', data=numpy.random.RandomState(0).randint(
                0, 9, (num_rows, 512), 'u1'), chunks=(100, 512),
                compression='gzip', compression_opts=1)
        with HDF5Dataset(path, sources={'x': 'x'}) as dataset:
            dataset.get_data(None, slice(0, num_rows))
            alone = None
            for count in (1, 2, 8, 32):
                waits = run_threads(dataset, num_rows, count, seconds)
                rate = len(waits) / seconds
                alone = alone or rate
                detail = (f'{rate:.0f} batches/s, half took less than '
                          f'{statistics.median(waits) * 1e6:.0f} us, 99 % '
                          f'than {numpy.quantile(waits, .99) * 1e6:.0f} us')
                yield (f'{count} threads at the cache: of the rate of one',
                       f'{rate / alone:.2f}', 'at least 0.9', detail)


def run_threads(dataset, num_rows, count, seconds):
    """Return how long each batch took that so many threads have read."""
    waits, over = [], time.perf_counter() + seconds

    def read(seed):
        draw = numpy.random.RandomState(seed)
        while (began := time.perf_counter()) < over:
            dataset.get_data(None, draw.randint(0, num_rows, 64).tolist())
            waits.append(time.perf_counter() - began)

    running = [threading.Thread(target=read, args=(seed,))
               for seed in range(count)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return waits


def spend(seconds):
    """Use a processor for some time, of this thread's own."""
    over = time.thread_time() + seconds
    while time.thread_time() < over:
        pass


class Making(Transformer):
    """Takes some processor time for each batch."""

    def __init__(self, data_stream, seconds):
        super().__init__(data_stream, data_stream.produces_examples)
        self.seconds = seconds

    def transform_batch(self, batch):
        """Return the batch, later."""
        spend(self.seconds)
        return batch


def seconds_of_steps(stream, step, count):
    """Return the seconds of a step of a trainer that leaves the processors
    alone, reading included."""
    epoch = iter(stream)
    for _ in range(4):
        next(epoch)
    began = time.perf_counter()
    for _ in range(count):
        next(epoch)
        time.sleep(step)
    return (time.perf_counter() - began) / count


def expected_step(make, step, workers, cost, cores):
    """Return the seconds of a step, by the formula.

    `make`: processor seconds to make a batch.
    `step`: seconds of a step of the trainer.
    `cost`: processor seconds to send and to receive a batch.
    """
    if not workers:
        return make + step
    return max(step + cost, (make + cost) / min(workers, cores))


def model(tiny):
    """Compare the formula with what is measured."""
    count = 8 if tiny else 300
    cores = len(os.sched_getaffinity(0))

    def stream(seconds):
        return Making(DataStream(Rows(100 * count), batch_size=8), seconds)

    # Of a sleep too: it takes longer than asked for.
    with MultiProcessing(stream(0.), num_workers=1) as sent:
        cost = seconds_of_steps(sent, 0., count)
    idle = seconds_of_steps(stream(0.), .001, count) - .001
    for make, step in ((.0005, .004), (.002, .002), (.008, .002)):
        for workers in (0, 1, 2):
            made = stream(make)
            if workers:
                with MultiProcessing(made, num_workers=workers) as made:
                    found = seconds_of_steps(made, step, count)
            else:
                found = seconds_of_steps(made, step, count)
            wanted = expected_step(make, step + idle, workers, cost, cores)
            name = (f'{make * 1e3:g} ms to make, steps of {step * 1e3:g} ms, '
                    f'{workers or "no"} workers: formula')
            detail = (f'{found * 1e3:.2f} ms a step, by the formula '
                      f'{wanted * 1e3:.2f}')
            yield (name, f'{min(wanted / found, found / wanted):.2f}',
                   'at least 0.8', detail)


PARTS = {part.__name__: part for part in (
    ranks, clients, files, threads, model)}


def main(arguments=None):
    """Print the table, a row as soon as it is measured."""
    parser = measure.parser(__doc__)
    parser.add_argument('--only', choices=list(PARTS))
    options = parser.parse_args(arguments)
    print(f'{"workload":<62} {"measured":>9}  target')
    for name, part in PARTS.items():
        if options.only in (None, name):
            for text, found, target, detail in part(options.tiny):
                print(f'{text:<62} {found:>9}  {target}  ({detail})',
                      flush=True)


if __name__ == '__main__':
    main()
