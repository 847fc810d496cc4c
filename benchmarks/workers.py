"""Workers over arrays in memory, by each way to have them, and threads.

    python benchmarks/workers.py [--workers 8] [--tiny] [--only threads]

Each way is measured in a process of its own: the seconds to the first batch,
the memory that all processes need beside the arrays (proportional set size,
so that what is shared counts once; Linux only), and the rate of batches.
Beside it: as many interpreters that only import Fuel, and workers that are
forked, which share all that there is; threads; and a server.

Then the rate of a stage in threads, and in as many processes, of its rate
without, which takes turns with theirs.
"""
import argparse
import contextlib
import io
import json
import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path

import measure
import numpy
from PIL import Image

from fuel.datasets import IndexableDataset
from fuel.schemes import ShuffledScheme
from fuel.streams import DataStream, ServerDataStream
from fuel.transformers import Mapping, MultiProcessing, MultiThreading
from fuel.transformers.image import ImagesFromBytes

SHAPE, BATCH = (3, 32, 32), 256
METHODS = 'fork', 'forkserver', 'spawn'
# They are of one process, however many workers there are.
OTHERS = 'threads', 'server'


def pipeline(num_bytes):
    """Return shuffled batches of 786 KB of images in memory."""
    count = num_bytes // int(numpy.prod(SHAPE))
    images = numpy.random.default_rng(0).integers(
        0, 256, (count, *SHAPE), dtype='u1')
    return DataStream(IndexableDataset({'features': images}),
                      iteration_scheme=ShuffledScheme(count, BATCH))


def memory_of(pids):
    """Return the memory of processes, what they share counted once."""
    total = 0
    for pid in pids:
        lines = Path(f'/proc/{pid}/smaps_rollup').read_text().splitlines()
        total += sum(int(line.split()[1]) * 1024 for line in lines
                     if line.startswith('Pss:'))
    return total


def descendants(pid):
    """Return the identifiers of a process and of all that it started."""
    found = [pid]
    for parent in found:
        children = Path(f'/proc/{parent}/task/{parent}/children').read_text()
        found.extend(map(int, children.split()))
    return found


@contextlib.contextmanager
def elsewhere(method, stream, workers):
    """Yield a stream whose batches are made in one way or another."""
    if method == 'server':
        with measure.server_of(stream) as (_, port), ServerDataStream(
                stream.sources, port=port) as served:
            yield served
        return
    with (MultiThreading(stream, num_threads=workers)
          if method == 'threads' else MultiProcessing(
              stream, num_workers=workers, start_method=method)) as ahead:
        yield ahead


def measure_method(method, workers, num_bytes, seconds):
    """Return what one way to start workers takes."""
    stream = pipeline(num_bytes)
    before = memory_of([os.getpid()])
    start = time.perf_counter()
    with elsewhere(method, stream, workers) as ahead:
        epoch = ahead.get_epoch_iterator()
        next(epoch)
        first = time.perf_counter() - start
        # Until each worker has read some of the data.
        for _ in range(2 * workers):
            next(epoch)
        memory = memory_of(descendants(os.getpid())) - before

        def read():
            nonlocal epoch
            batch = next(epoch, None)
            if batch is None:
                epoch = ahead.get_epoch_iterator()
                batch = next(epoch)
            return batch

        return {'first': first, 'memory': memory,
                'rate': measure.rate(read, seconds)}


def in_own_process(method, workers, num_bytes, seconds):
    """Measure one way in a process that started nothing before."""
    done = subprocess.run(
        [sys.executable, __file__, '--measure', method, '--workers',
         str(workers), '--bytes', str(num_bytes), '--seconds', str(seconds)],
        stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout)


def interpreters(count):
    """Return the seconds in which interpreters import Fuel, side by side."""
    start = time.perf_counter()
    started = [subprocess.Popen([sys.executable, '-c', 'import fuel.streams'])
               for _ in range(count)]
    for process in started:
        process.wait()
    return time.perf_counter() - start


def decode_in_turn(batch):
    """Return the images of a batch, decoded one after another."""
    return ([numpy.asarray(Image.open(io.BytesIO(file)))
             for file in batch[0]],)


def compute(batch):
    """Return a batch after some work of NumPy."""
    return (numpy.tanh(numpy.sqrt(batch[0] + 1)),)


def count_in_python(batch):
    """Return a batch after some work in pure Python."""
    for _ in range(60000):
        pass
    return batch


def stages():
    """Yield texts, and makers of streams that have one stage with work."""
    rng = numpy.random.default_rng(0)
    smooth = rng.integers(0, 256, (64, 9, 9, 3), dtype='u1')
    files = []
    for pixels in smooth:
        file = io.BytesIO()
        Image.fromarray(pixels).resize((256, 256)).save(file, 'JPEG')
        files.append(file.getvalue())

    def stream(data, size):
        return DataStream(
            IndexableDataset({'x': data}),
            iteration_scheme=ShuffledScheme(len(data), size))

    yield 'decodes JPEG files, of Fuel', lambda: ImagesFromBytes(
        stream(files, 16))
    yield 'decodes JPEG files, one after another', lambda: Mapping(
        stream(files, 16), decode_in_turn, pure=True)
    numbers = rng.random((64, 50000), 'f4')
    yield 'computes with NumPy', lambda: Mapping(
        stream(numbers, 8), compute, pure=True)
    yield 'runs in pure Python', lambda: Mapping(
        stream(numbers[:, :10], 4), count_in_python, pure=True)
    large = rng.integers(0, 256, (1024, 76800), dtype='u1')
    yield 'passes batches of 19 MB on', lambda: Mapping(
        stream(large, 256), tuple, pure=True)


def reader_of(stream):
    """Return a function that reads a batch, in as many epochs as it takes."""
    epochs = stream.iterate_epochs()
    epoch = iter(())

    def read():
        nonlocal epoch
        batch = next(epoch, None)
        while batch is None:
            epoch = next(epochs)
            batch = next(epoch, None)

    return read


def measure_stages(options):
    """Yield rows of rates in threads and processes, of those without."""
    wanted = {'decodes JPEG files, one after another': 'at least 1.5',
              'computes with NumPy': 'at least 1.5'}
    for text, build in stages():
        rows = []
        for kind in MultiThreading, MultiProcessing:
            number = {'num_threads' if kind is MultiThreading
                      else 'num_workers': 2}
            with kind(build(), 8, **number) as ahead:
                rows.append(measure.compare(
                    reader_of(build()), reader_of(ahead), **options))
        yield (f'{text}: 2 threads', str(rows[0]), wanted.get(text, ''))
        yield ('  2 processes', str(rows[1]), '')


def measure_methods(arguments, sizes):
    """Return the rows of the ways to start processes."""
    methods = [method for method in METHODS
               if method in multiprocessing.get_all_start_methods()]
    found = {method: in_own_process(method, *sizes)
             for method in (*methods, *OTHERS)}
    rows = [(f'{arguments.workers} interpreters that import Fuel',
             f'{interpreters(arguments.workers):.2f} s', '')]
    once, rate = 'at most 1.25 of the arrays', 'at least 0.95'
    wanted = {'fork': ('at most 0.14 s', 'at most 173 MiB', ''),
              'forkserver': ('at most 1.5 s', once, rate),
              'spawn': ('at most 2.5 s', once, rate),
              **dict.fromkeys(OTHERS, ('', '', ''))}
    for method, values in found.items():
        first, memory, rate = wanted[method]
        rows += [
            (f'{method}: first batch', f"{values['first']:.2f} s", first),
            ('  memory beside the arrays',
             (f"{values['memory'] / (1 << 20):.0f} MiB, "
              f"{values['memory'] / arguments.bytes:.2f} of the arrays"),
             memory),
            ('  batches a second', f"{values['rate']:.0f}", '')]
        if 'fork' in found and method in METHODS[1:]:
            rows.append(('  rate, of the rate of forked workers',
                         f"{values['rate'] / found['fork']['rate']:.2f}",
                         rate))
    return rows


def main():
    """Print the table."""
    parser = measure.parser(__doc__)
    parser.add_argument('--workers', type=int, default=8)
    parser.add_argument('--bytes', type=int, default=1 << 30)
    parser.add_argument('--seconds', type=float, default=5.0)
    parser.add_argument('--only', choices=('methods', 'threads'))
    parser.add_argument('--measure', help=argparse.SUPPRESS,
                        choices=METHODS + OTHERS)
    arguments = parser.parse_args()
    if arguments.tiny:
        arguments.workers, arguments.bytes = 2, 4 << 20
        arguments.seconds = 0.0
    sizes = arguments.workers, arguments.bytes, arguments.seconds
    if arguments.measure:
        print(json.dumps(measure_method(arguments.measure, *sizes)))
        return
    rows = [] if arguments.only == 'threads' else measure_methods(
        arguments, sizes)
    if arguments.only != 'methods':
        rows += measure_stages(
            measure.TINY if arguments.tiny else measure.FULL)
    measure.print_table(rows)


if __name__ == '__main__':
    main()
