"""A process that kills itself at a chosen moment."""
import contextlib
import functools
import json
import os
import signal
import sys
import zlib
from unittest import mock

import numpy

from fuel.testing.faults import intercept
from fuel.utils.sparse import is_sparse, iterate_rows

# Kept, since what is intercepted is as it was once nobody holds this.
ARMED = []


def arm(point, count, spare=None, only=None):
    """Let this process be killed when it comes to a point.

    Parameters
    ----------
    point : str
        One of :data:`fuel.testing.faults.POINTS`, or ``'save'``.
    count : int
        At which call there.
    spare : int, optional
        A process that is not killed, though it has the same code.
    only : int, optional
        The one process that is killed.

    Returns
    -------
    callable
        Undoes it.

    """
    calls = [0]

    def kill(function, *args, **kwargs):
        if os.getpid() == spare or only not in (None, os.getpid()):
            return function(*args, **kwargs)
        calls[0] += 1
        if calls[0] == count:
            # Before, or after it has happened.
            if count % 2:
                function(*args, **kwargs)
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*args, **kwargs)

    armed = contextlib.ExitStack()
    ARMED.append(armed)
    if point == 'save':
        armed.enter_context(mock.patch.object(
            sys.modules[__name__], 'save', functools.partial(kill, save)))
    else:
        armed.enter_context(intercept(point, kill))
    return armed.close


def save(path, fields):
    """Replace a file of JSON in one step."""
    with open(path + '.new', 'w') as file:
        json.dump(fields, file)
    os.replace(path + '.new', path)


def noted(batch):
    """Return what JSON takes of a batch: a checksum of each row of its last
    source, and one of all."""
    return [[checksum(row) for row in iterate_rows(batch[-1])],
            checksum(*batch)]


def checksum(*parts):
    """Return a checksum of bytes, types and shapes."""
    found = 0
    for part in parts:
        arrays = [part.data, part.indices, part.indptr] if is_sparse(
            part) else [numpy.asarray(part)]
        for array in arrays:
            about = f'{part.shape} {array.dtype} {array.shape}'
            found = zlib.crc32(about.encode() + array.tobytes(), found)
    return found


def consume(stream, path, num_epochs):
    """Read epochs, saving what came and the state after each batch.

    Started again, it goes on with what was saved.
    """
    seen, epoch_number = [], 0
    if os.path.exists(path):
        with open(path) as file:
            saved = json.load(file)
        seen, epoch_number = saved['seen'], saved['epoch']
        stream.load_state_dict(saved['state'])
    while epoch_number < num_epochs:
        for batch in stream.get_epoch_iterator():
            seen.append(noted(batch))
            # Looked up anew, since it may be armed.
            sys.modules[__name__].save(path, {
                'seen': seen, 'epoch': epoch_number,
                'state': stream.state_dict()})
        epoch_number += 1
        sys.modules[__name__].save(path, {
            'seen': seen, 'epoch': epoch_number,
            'state': stream.state_dict()})
