"""The rows of data sets that are in the items of a pipeline.

They are found without asking Fuel: one row of a data set is changed, and what
the pipeline delivers then differs where the row is.
"""
import io

import numpy
from PIL import Image

from support.resuming import plain


class _Changing:
    """Changes one row of what a data set gives, in one source."""

    def get_data(self, state=None, request=None):
        """Return data in which the row is another one."""
        data = list(super().get_data(state, request))
        wanted, source = self.changed_row, self.changed_source
        if request is None:
            # The states that were used are kept, so each has its own key.
            kept = self.counts.setdefault(id(state), [state, 0])
            request, kept[1] = kept[1], kept[1] + 1
        if isinstance(request, (list, numpy.ndarray)):
            for place, row in enumerate(request):
                if row == wanted:
                    data[source] = with_row(data[source], place)
        elif request == wanted:
            data[source] = changed(data[source])
        return tuple(data)

    def __reduce_ex__(self, protocol):
        plain_one = object.__new__(type(self).__mro__[2])
        plain_one.__dict__.update(vars(self))
        return change_row, (plain_one, self.changed_row, self.changed_source)


def change_row(dataset, row, source):
    """Let a data set give another row in the place of one.

    `source`: number of the source that differs.
    """
    kind = type(dataset)
    dataset.__class__ = type(kind.__name__, (_Changing, kind), {
        'takes_requests': getattr(kind, 'takes_requests', None)})
    dataset.changed_row, dataset.changed_source = row, source
    dataset.counts = {}
    return dataset


def with_row(part, place):
    """Return a source with another row at a place."""
    if hasattr(part, 'toarray'):
        dense = part.toarray()
        dense[place] += 1
        return type(part)(dense)
    part = part.copy()
    part[place] = changed(part[place])
    return part


def changed(value):
    """Return another value that passes the same stages in the same way."""
    if hasattr(value, 'toarray'):
        return type(value)(value.toarray() + 1)
    if isinstance(value, bytes):
        try:
            pixels = numpy.asarray(Image.open(io.BytesIO(value)))
        except OSError:
            # An image that is damaged stays so.
            return value if value == b'damaged' else value + b'z'
        file = io.BytesIO()
        Image.fromarray(255 - pixels).save(file, 'PNG')
        return file.getvalue()
    if isinstance(value, str):
        return value + 'z'
    if isinstance(value, (list, tuple)):
        return type(value)(map(changed, value))
    if isinstance(value, dict):
        return {name: changed(one) for name, one in value.items()}
    if isinstance(value, numpy.void):
        copied = value.copy()
        for name in value.dtype.names:
            copied[name] = changed(value[name])
        return copied
    if isinstance(value, numpy.ndarray) and value.dtype == object:
        copied = numpy.empty_like(value)
        copied[...] = list(map(changed, value))
        return copied
    if isinstance(value, (bool, numpy.bool_)):
        return not value
    if getattr(value, 'dtype', None) == numpy.uint8:
        return 255 - value
    return value + 1


def rows_of(item, is_example):
    """Return the rows of an item, each as what compares."""
    if is_example:
        return [plain(tuple(map(_dense, item)))]
    return [plain(row) for row in zip(*map(_dense, item), strict=True)]


def _dense(part):
    return part.toarray() if hasattr(part, 'toarray') else part


def delivered(stream, epochs):
    """Return the rows of each item of some epochs."""
    return [[rows_of(item, stream.produces_examples) for item in stream]
            for _ in range(epochs)]


def trace(make, datasets_of, epochs, count):
    """Return what epochs deliver: for each item the examples in each row.

    `make`: makes the stream anew.
    `datasets_of`: returns the data sets of a stream.
    `count`: number of rows of each data set.
    """
    stream = make()
    whole = delivered(stream, epochs)
    found = [[[set() for _ in item] for item in epoch] for epoch in whole]
    for number, dataset in enumerate(datasets_of(stream)):
        source = next((place for place, name in enumerate(dataset.sources)
                       if name in stream.sources), 0)
        for row in range(count):
            other = make()
            change_row(datasets_of(other)[number], row, source)
            ours = delivered(other, epochs)
            for one, two, rows in zip(
                    _joined(whole), _joined(ours), _joined(found),
                    strict=True):
                for was, now, examples in zip(one, two, rows, strict=True):
                    if was != now:
                        examples.add((number, row))
    return found


def _joined(epochs):
    return [item for epoch in epochs for item in epoch]
