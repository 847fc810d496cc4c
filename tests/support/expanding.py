"""Random pipelines with stages that make several items of one, and what they
give: a plain list of items and errors, made without Fuel."""
import itertools
import random

import numpy

from fuel.datasets import IndexableDataset, IterableDataset
from fuel.schemes import SequentialExampleScheme
from fuel.streams import DataStream
from fuel.transformers import (
    Batch,
    Expand,
    Filter,
    Mapping,
    SeededTransformer,
    Take,
    Unpack,
)


class PieceError(Exception):
    """A piece that cannot be made."""


def outcomes(seed, label, most, errors):
    """Return the labels of the pieces of an item; None behind the last of
    them if an error follows."""
    rng = random.Random(f'{seed}/{label}')
    made = []
    for number in range(rng.randrange(most + 1)):
        if rng.random() < errors:
            return [*made, None]
        made.append(f'{label}.{number}')
    return made


class Splits(Expand):
    """Makes pieces of each label; some of them fail."""

    def __init__(self, data_stream, table, most, errors=0., form='generator',
                 **kwargs):
        super().__init__(data_stream, **kwargs)
        self.table, self.most, self.errors = table, most, errors
        self.form = form

    def expand(self, item):
        """Return pieces in one of the forms that are taken."""
        pieces = self.make(item)
        if self.form == 'list':
            return list(pieces)
        return pieces if self.form == 'generator' else map(tuple, pieces)

    def make(self, item):
        """Yield the pieces of an item."""
        for label in outcomes(self.table, item[0], self.most, self.errors):
            if label is None:
                raise PieceError(item[0])
            yield (label,)


class DrawingSplits(Splits, SeededTransformer):
    """Adds to each label what is drawn for its item."""

    def make(self, item):
        """Yield the pieces of an item, and what was drawn."""
        for label, in super().make(item):
            yield (f'{label}:{self.generator().integers(1000)}',)


class Repeat(Expand):
    """Gives each item so many times, which is known."""

    def __init__(self, data_stream, times, **kwargs):
        super().__init__(data_stream, **kwargs)
        self.times = times

    def num_pieces(self, item=None):
        """Return how many pieces any item makes."""
        return self.times

    def expand(self, item):
        """Yield the item, numbered."""
        for number in range(self.times):
            yield (f'{item[0]}.{number}', *item[1:])


class DrawingRepeat(Repeat, SeededTransformer):
    """Adds to each label what is drawn for its item."""

    def expand(self, item):
        """Yield the item, and what was drawn."""
        for label, in super().expand(item):
            yield (f'{label}:{self.generator().integers(1000)}',)


def is_kept(data):
    """Return whether a filter keeps a label."""
    return sum(map(ord, data[0])) % 3 > 0


def mark(data):
    """Return a label, marked."""
    return (data[0] + '!',)


def mark_all(batch):
    """Return labels, marked."""
    return (numpy.array([f'{label}!' for label in batch[0]], object),)


class Plan:
    """A random pipeline of labels."""

    def __init__(self, number, errors=True):
        rng = random.Random(number)
        self.count = rng.randrange(1, 9)
        self.is_sought = rng.random() < .5
        self.stages = []
        draws = 0
        for _ in range(rng.randrange(1, 4)):
            self.stages += [
                self._other(rng) for _ in range(rng.randrange(3))]
            # Names of their own, since draws depend on the class.
            is_drawn = rng.random() < .3 and not draws
            draws += is_drawn
            self.stages.append(('split', (
                rng.random(), rng.randrange(1, 4),
                rng.choice([0, .2]) if errors else 0,
                rng.choice(['generator', 'list', 'iterator']), is_drawn)))
        self.stages += [self._other(rng) for _ in range(rng.randrange(3))]

    @staticmethod
    def _other(rng):
        name = rng.choice(['map', 'filter', 'rows', 'take', 'repeat'])
        return name, rng.randrange(1, 5) if name != 'take' else (
            rng.randrange(1, 15))

    def __repr__(self):
        return f'{self.count} {self.is_sought} {self.stages}'

    def build(self):
        """Return the pipeline."""
        labels = [f'{number}' for number in range(self.count)]
        stream = DataStream(
            IndexableDataset({'label': labels}),
            iteration_scheme=SequentialExampleScheme(self.count)) if (
                self.is_sought) else DataStream(
                    IterableDataset({'label': labels}))
        for name, argument in self.stages:
            stream = getattr(self, f'_build_{name}')(stream, argument)
        return stream

    @staticmethod
    def _build_map(stream, _):
        return Mapping(stream, mark)

    @staticmethod
    def _build_filter(stream, _):
        return Filter(stream, is_kept)

    @staticmethod
    def _build_take(stream, count):
        return Take(stream, count)

    @staticmethod
    def _build_repeat(stream, count):
        return Repeat(stream, count)

    @staticmethod
    def _build_rows(stream, size):
        return Unpack(Mapping(Batch(stream, batch_size=size), mark_all))

    @staticmethod
    def _build_split(stream, arguments):
        *arguments, is_drawn = arguments
        return (DrawingSplits if is_drawn else Splits)(stream, *arguments)

    def events(self):
        """Return the labels of an epoch, and ``(label,)`` where an error is
        raised that names it; without what is drawn."""
        events = [f'{number}' for number in range(self.count)]
        for name, argument in self.stages:
            events = list(getattr(self, f'_make_{name}')(events, argument))
        return events

    @staticmethod
    def _make_map(events, _):
        return [event + '!' if isinstance(event, str) else event
                for event in events]

    @staticmethod
    def _make_filter(events, _):
        return [event for event in events
                if not isinstance(event, str) or is_kept((event,))]

    @staticmethod
    def _make_take(events, count):
        for event in events:
            if not count:
                return
            count -= isinstance(event, str)
            yield event

    @staticmethod
    def _make_repeat(events, count):
        return itertools.chain.from_iterable(
            [f'{event}.{number}' for number in range(count)]
            if isinstance(event, str) else [event] for event in events)

    @staticmethod
    def _make_rows(events, size):
        waiting = []
        for event in events:
            if not isinstance(event, str):
                # Raised at once; the examples before it wait.
                yield event
                continue
            waiting.append(f'{event}!')
            if len(waiting) == size:
                yield from waiting
                waiting = []
        yield from waiting

    @staticmethod
    def _make_split(events, arguments):
        table, most, errors, form, _ = arguments
        for event in events:
            if not isinstance(event, str):
                yield event
                continue
            made = outcomes(table, event, most, errors)
            fails = None in made
            if not (fails and form == 'list'):
                yield from made[:-1] if fails else made
            if fails:
                yield (event,)


def read(epoch):
    """Return what an epoch gives, and the errors that it raises.

    Parameters
    ----------
    epoch : iterator

    Returns
    -------
    list

    """
    found = []
    while (event := read_one(epoch)) is not None:
        found.append(event)
    return found


def read_one(epoch):
    """Return a label, or what an error names in a tuple; None at the end."""
    try:
        label, = next(epoch)
    except StopIteration:
        return None
    except PieceError as error:
        return (error.args[0],)
    return label
