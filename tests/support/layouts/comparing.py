"""Batches of layouts as plain data, to be compared between processes."""
import numpy
from scipy import sparse

from fuel.schemes import ShuffledScheme
from fuel.streams import DataStream


def stream_over(dataset, **kwargs):
    """Return a stream of shuffled batches of four."""
    return DataStream(dataset, iteration_scheme=ShuffledScheme(
        dataset.num_examples, 4, seed=3), **kwargs)


def as_lists(value):
    """Return data as plain lists, to be compared and written as JSON."""
    if sparse.issparse(value):
        value = value.toarray()
    if isinstance(value, numpy.generic):
        return as_lists(numpy.array([value]))[0]
    if isinstance(value, numpy.ndarray):
        if value.dtype.names is not None:
            return [as_lists(value[name]) for name in value.dtype.names]
        if value.dtype.kind == 'S':
            value = value.astype('U')
        if value.dtype.kind == 'f':
            value = value.astype('f8').view('i8')
        value = value.tolist()
    return [as_lists(one) for one in value] if isinstance(
        value, (list, tuple)) else value
