"""Orders and states of pipelines, as a file keeps them.

A file has for each pipeline the items of two epochs, and the state after
three items of the second.
"""
import contextlib
import json
import math
import re
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy


class Place(NamedTuple):
    """The place where a pipeline is built: a folder for its files, and the
    stack that closes what it opens."""

    folder: Path
    stack: contextlib.ExitStack


@contextlib.contextmanager
def places():
    """Give a function that returns a new place each time."""
    with contextlib.ExitStack() as stack, \
            tempfile.TemporaryDirectory() as folder:
        def new():
            made = Path(tempfile.mkdtemp(dir=folder))
            return Place(made, stack)

        yield new
        stack.close()


def as_lists(value):
    """Return items as JSON has them, numbers with five digits."""
    if hasattr(value, 'toarray'):
        value = value.toarray()
    if isinstance(value, dict):
        return {str(key): as_lists(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_lists(part) for part in value]
    if isinstance(value, bytes):
        return value.decode('latin-1')
    if isinstance(value, float):
        # NaN is not equal to itself.
        return float(f'{value:.5g}') if math.isfinite(value) else repr(value)
    if isinstance(value, (numpy.datetime64, numpy.timedelta64)):
        return str(value)
    if isinstance(value, numpy.ndarray) and value.dtype.kind in 'mM':
        return value.astype(str).tolist()
    return as_lists(value.tolist()) if hasattr(value, 'tolist') else value


def epochs_and_state(stream):
    """Return the items of two epochs, and a state in the second."""
    first = as_lists(list(stream))
    epoch = iter(stream)
    second = [as_lists(next(epoch)) for _ in range(3)]
    state = json.loads(json.dumps(stream.state_dict()))
    return {'epochs': [first, second + as_lists(list(epoch))],
            'state': state}


def write_new(path, pipelines):
    """Add to a file the pipelines that it does not have.

    What it has stays as it is, byte for byte.
    """
    known = json.loads(path.read_text('utf-8')) if path.exists() else {}
    with places() as new_place:
        for name, build in pipelines.items():
            if name not in known:
                known[name] = epochs_and_state(build(new_place()))
    lines = ',\n'.join(f'{json.dumps(name)}: '
                       f'{json.dumps(about, separators=(",", ":"))}'
                       for name, about in known.items())
    path.write_text(f'{{{lines}}}\n', 'utf-8')


def check_orders(path, name, build):
    """Assert that a pipeline has the epochs that a file has of it."""
    with places() as new_place:
        saved = json.loads(path.read_text('utf-8'))[name]
        assert saved['epochs'] == epochs_and_state(
            build(new_place()))['epochs']


def check_rest(path, name, build):
    """Assert that a pipeline goes on where the state of a file ends."""
    with places() as new_place:
        saved = json.loads(path.read_text('utf-8'))[name]
        stream = build(new_place())
        stream.load_state_dict(saved['state'])
        assert saved['epochs'][1][3:] == as_lists(list(stream))


def names_in(*paths):
    """Return the names of all classes and columns that states speak of."""
    found = set()
    for path in paths:
        for about in json.loads(path.read_text('utf-8')).values():
            states = [about['state']]
            while states:
                state = states.pop()
                states += state.get('children', ())
                found.update(re.findall(
                    r'[A-Za-z_][\w.]*', json.dumps(state.get('stream', {}))))
    return found
