"""Measure two ways of doing the same work side by side, as a ratio.

Absolute numbers mean little on shared machines.  So the reference (what the
machine can do, or what one would otherwise write) and the candidate take
turns in one process, at least a second each, five times; the median of the
ratios and their spread are what counts.
"""
import argparse
import contextlib
import os
import platform
import signal
import statistics
import time
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

FULL = {'seconds': 1.0, 'rounds': 5}
TINY = {'seconds': 0.0, 'rounds': 1}


class Ratio(NamedTuple):
    """Speed of the candidate, as a multiple of that of the reference."""

    median: float
    low: float
    high: float

    def __str__(self):
        return f'{self.median:.2f} ({self.low:.2f}-{self.high:.2f})'


def rate(work, seconds):
    """Return how often a piece of work was done in a second.

    Parameters
    ----------
    work : callable
        Done at least once, until `seconds` have passed.
    seconds : float

    Returns
    -------
    float

    """
    count = 0
    start = time.perf_counter()
    while True:
        work()
        count += 1
        elapsed = time.perf_counter() - start
        if elapsed >= seconds:
            return count / elapsed


def compare(reference, candidate, seconds=1.0, rounds=5):
    """Return the speed of `candidate` as a multiple of `reference`'s.

    Parameters
    ----------
    reference, candidate : callable
        Each does the same work once.
    seconds : float, optional
        How long each is measured in a round.  Defaults to 1.
    rounds : int, optional
        Defaults to 5.

    Returns
    -------
    Ratio

    """
    reference()
    candidate()
    ratios = []
    for _ in range(rounds):
        base = rate(reference, seconds)
        ratios.append(rate(candidate, seconds) / base)
    return Ratio(statistics.median(ratios), min(ratios), max(ratios))


def private_memory():
    """Return the bytes of memory of this process that do not map a file.

    Returns
    -------
    int
        ``RssAnon + RssShmem``; Linux only.

    """
    fields = dict(line.split(':', 1) for line in
                  Path('/proc/self/status').read_text().splitlines())
    return sum(int(fields[name].split()[0]) * 1024
               for name in ('RssAnon', 'RssShmem'))


@contextlib.contextmanager
def forked(work, *arguments):
    """Run a function in another process, which is killed in the end.

    Parameters
    ----------
    work : callable
    *arguments
        Of `work`.

    Yields
    ------
    int
        The identifier of the process.

    """
    child = os.fork()
    if not child:
        code = 1
        try:
            work(*arguments)
            code = 0
        finally:
            os._exit(code)
    try:
        yield child
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


@contextlib.contextmanager
def server_of(stream, **kwargs):
    """Serve a stream in another process.

    Parameters
    ----------
    stream : fuel.streams.AbstractDataStream
    **kwargs
        Arguments of :class:`fuel.server.Server`.

    Yields
    ------
    process, port : int

    """
    read, write = os.pipe()

    def serve():
        from fuel.server import Server
        server = Server(stream, port=0, **kwargs)
        server.start()
        os.write(write, server.address.rpartition(':')[2].encode())
        signal.pause()

    with forked(serve) as process:
        os.close(write)
        port = int(os.read(read, 20))
        os.close(read)
        yield process, port


def print_table(rows, header=('workload', 'measured', 'target')):
    """Print rows of text as a table.

    Parameters
    ----------
    rows : list of tuple of str
    header : tuple of str, optional

    """
    table = [header, *rows]
    widths = [max(len(str(row[column])) for row in table)
              for column in range(len(header))]
    for number, row in enumerate(table):
        print('  '.join(str(cell).ljust(width) for cell, width in
                        zip(row, widths, strict=True)).rstrip())
        if number == 0:
            print('  '.join('-' * width for width in widths))


def print_versions(*libraries):
    """Print with which versions the table above was measured.

    Parameters
    ----------
    *libraries : str
        Names of distributions, beside Python and NumPy.  Those that are
        not installed were not measured, and are left out.

    """
    found = [f'Python {platform.python_version()}']
    for name in ('numpy', *libraries):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found.append(f'{name} {metadata.version(name)}')
    print(', '.join(found))


def parser(description):
    """Return the parser of a benchmark's command line, with ``--tiny``.

    Parameters
    ----------
    description : str

    Returns
    -------
    argparse.ArgumentParser

    """
    found = argparse.ArgumentParser(
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument('--tiny', action='store_true',
                       help='run everything once, at a tiny size')
    return found


def options(description):
    """Return the options of a benchmark's command line.

    Parameters
    ----------
    description : str

    Returns
    -------
    argparse.Namespace
        ``tiny`` (bool) and ``how``, the arguments of :func:`compare`.

    """
    arguments = parser(description).parse_args()
    arguments.how = TINY if arguments.tiny else FULL
    return arguments
