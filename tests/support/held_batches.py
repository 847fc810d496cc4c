"""Keep, change and leave batches of epochs, over and over."""
import random

import numpy

from fuel.datasets import IndexableDataset
from fuel.schemes import SequentialScheme, ShuffledScheme
from fuel.streams import DataStream
from fuel.transformers import Cast


class PartsOfRows(IndexableDataset):
    """A data set that returns a part of what was read, now and then."""

    PARTS = (slice(None), slice(None, 1), slice(-1, None),
             slice(None, None, 2))

    def get_data(self, state=None, request=None):
        """Return examples, fewer than were asked for."""
        part = self.PARTS[sum(request) % 4]
        return tuple(rows[part] for rows in super().get_data(state, request))


class KeptRows(IndexableDataset):
    """A data set that keeps what it returned last, which stays as it is."""

    kept = ()

    def get_data(self, state=None, request=None):
        """Return examples."""
        for rows, values in self.kept:
            assert numpy.array_equal(rows, values)
        data = super().get_data(state, request)
        self.kept = [(rows, rows.copy()) for rows in data]
        return data


def build(seed):
    """Return a stream of batches of some size, from one of several data
    sets; the same one for the same seed."""
    draw = random.Random(seed)
    count = draw.randint(1, 40)
    rows = numpy.random.RandomState(seed).rand(
        count, draw.choice([1, 700, 3000])) * 200
    kind = draw.choice([IndexableDataset, PartsOfRows, KeptRows])
    dataset = kind(
        {'rows': rows.astype(draw.choice(['f8', 'u1', '>f4', '?'])),
         'numbers': numpy.arange(count)}, sources=('rows', 'numbers'))
    scheme = draw.choice([SequentialScheme, ShuffledScheme])
    stream = DataStream(dataset, iteration_scheme=scheme(
        count, draw.choice([1, 4, 7, count])))
    return (Cast(stream, 'float64', which_sources=('rows',))
            if draw.random() < .3 else stream)


def check_epochs(seed, open_epoch, num_epochs=3):
    """Compare epochs with those of a plain stream, whatever becomes of their
    batches; and what was kept of them, at the end.

    `open_epoch`: returns an iterator of the batches of `build(seed)`.
    """
    draw = random.Random(~seed)
    most = draw.choice([0, 1, 3, 50])
    plain, held = build(seed), []
    for _ in range(num_epochs):
        expected = list(plain.get_epoch_iterator())
        last = draw.choice([len(expected), draw.randint(0, len(expected))])
        batches = iter(open_epoch())
        for rows, numbers in expected[:last]:
            found, other = next(batches)
            assert numpy.array_equal(rows, numpy.asarray(found))
            assert numpy.array_equal(numbers, numpy.asarray(other))
            values = rows.copy()
            if draw.random() < .3:
                found[...] = 0
                values[...] = 0
            part = slice(draw.randint(0, 1), None)
            held.append((values[part], found[part]))
            del found
            while len(held) > most:
                held.pop(draw.randrange(len(held)))
        if last == len(expected):
            assert next(batches, None) is None
        del batches
    for values, found in held:
        assert numpy.array_equal(values, numpy.asarray(found))
