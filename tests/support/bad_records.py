"""Pipelines in which some examples fail, and what they should give."""
import random

import numpy

from fuel.datasets import IndexableDataset
from fuel.schemes import (
    BlockShuffledScheme,
    SequentialExampleScheme,
    SequentialScheme,
    ShuffledExampleScheme,
    ShuffledScheme,
)
from fuel.streams import DataStream
from fuel.transformers import (
    Batch,
    Cast,
    Mapping,
    ScaleAndShift,
    SeededTransformer,
)


class DamagedDataset(IndexableDataset):
    """Cannot read some of its examples."""

    def __init__(self, *args, damaged=(), **kwargs):
        super().__init__(*args, **kwargs)
        self.damaged = frozenset(damaged)

    def get_data(self, state=None, request=None):
        """Return examples, or raise OSError."""
        if not self.damaged.isdisjoint(numpy.atleast_1d(request).tolist()):
            raise OSError(f'a record of {request} is damaged')
        return super().get_data(state, request)


class Spoiling:
    """A function that changes its data in place, and fails for some."""

    def __init__(self, bad=()):
        self.bad = frozenset(bad)

    def __call__(self, data):
        """Return data with one added to the values, or raise ValueError."""
        numbers, values, *rest = data
        if isinstance(values, numpy.ndarray):
            values += 1
        else:
            values = values + 1
        found = self.bad.intersection(numpy.atleast_1d(numbers).tolist())
        if found:
            raise ValueError(f'cannot make {sorted(found)}')
        return (numbers, values, *rest)


class Refusing:
    """Fails in another way."""

    def __init__(self, bad):
        self.bad = bad

    def __call__(self, batch):
        """Return a batch, or raise KeyError."""
        if not self.bad.isdisjoint(batch[0].tolist()):
            raise KeyError('two')
        return batch


class Noise(SeededTransformer):
    """Draws for each row by its own generator, and for all at once."""

    unsaved_arguments = ('bad',)

    def __init__(self, data_stream, bad=(), **kwargs):
        super().__init__(
            data_stream, data_stream.produces_examples, **kwargs)
        self.bad = frozenset(bad)

    def transform_example(self, example):
        """Return an example with noise."""
        number, value = example
        return number, value + self.generator().random()

    def transform_batch(self, batch):
        """Return a batch with noise."""
        numbers, values = batch
        if not self.bad.isdisjoint(numbers.tolist()):
            raise ValueError(f'no noise for {numbers}')
        count = len(numbers)
        each = numpy.array([generator.random() for generator
                            in self.generators(count)])
        return numbers, values + each + self.draw_rows(
            count, lambda generator, n: generator.permutation(n), 7)


def source(size, damaged=()):
    """Return a data set of numbers, and values of them."""
    numbers = numpy.arange(size)
    return DamagedDataset({'number': numbers, 'value': numbers * 10.},
                          damaged=damaged)


class Plan:
    """A random pipeline of batches, and the examples that fail in it.

    `bad`: for the data set, and for each failing stage, which they are.
    """

    def __init__(self, seed, size=23, most_bad=5):
        draw = random.Random(seed)
        self.size = size
        self.batch_size = draw.choice([3, 4, 5])
        self.scheme = draw.choice(
            [SequentialScheme, ShuffledScheme, BlockShuffledScheme])
        self.stages = [draw.choice(['pure', 'plain', 'noise', 'scale', 'cast'])
                       for _ in range(draw.randrange(1, 5))]
        bad = draw.sample(range(size), draw.randrange(1, most_bad))
        places = ['dataset', *[place for place, stage in enumerate(self.stages)
                               if stage in ('pure', 'plain', 'noise')]]
        self.bad = {}
        for example in bad:
            self.bad.setdefault(draw.choice(places), set()).add(example)

    @property
    def all_bad(self):
        """The examples that fail anywhere."""
        return set().union(*self.bad.values())

    def build(self, faults=True, **kwargs):
        """Return the pipeline; without `faults`, nothing of it fails."""
        bad = self.bad if faults else {}
        options = ({'block_size': 4} if self.scheme is BlockShuffledScheme
                   else {})
        kwargs.setdefault('on_error', 'skip')
        kwargs.setdefault('max_skipped', 20 if kwargs['on_error'] == 'skip'
                          else None)
        stream = DataStream(
            source(self.size, bad.get('dataset', ())),
            iteration_scheme=self.scheme(
                self.size, self.batch_size, **options), **kwargs)
        for place, stage in enumerate(self.stages):
            function = Spoiling(bad.get(place, ()))
            if stage in ('pure', 'plain'):
                stream = Mapping(stream, function, pure=stage == 'pure')
            elif stage == 'noise':
                stream = Noise(stream, bad.get(place, ()), seed=place)
            elif stage == 'scale':
                stream = ScaleAndShift(stream, .5, 1., which_sources='value')
            else:
                stream = Cast(stream, 'float32', which_sources='value')
        return stream

    def expected(self, share=None):
        """Return what is left of the batches that come without faults."""
        stream = self.build(faults=False)
        if share is not None:
            stream = stream.shard(*share)
        return [self.rest_of(batch) for batch in stream]

    def rest_of(self, batch):
        """Return the rows of a batch that do not fail."""
        good = [number not in self.all_bad for number in batch[0].tolist()]
        return tuple([part[numpy.array(good)] for part in batch])

    def keeps_all_batches(self):
        """Return whether something is left of each batch of two epochs."""
        stream = self.build(faults=False)
        return all(len(self.rest_of(batch)[0])
                   for _ in range(3) for batch in stream)


def plan(number):
    """Return a plan of whose batches something is left."""
    seed = number * 1000
    while True:
        found = Plan(seed)
        if found.keeps_all_batches():
            return found
        seed += 1


def build(number):
    """Return the pipeline of a plan."""
    return plan(number).build()


def examples(bad=(), shuffle=True, size=23, **kwargs):
    """Return a pipeline of examples, put into batches at last."""
    scheme = ShuffledExampleScheme if shuffle else SequentialExampleScheme
    kwargs.setdefault('max_skipped', 20)
    stream = DataStream(source(size, set(bad) & {3, 4}),
                        iteration_scheme=scheme(size), on_error='skip',
                        **kwargs)
    stream = Noise(Mapping(stream, Spoiling(bad)), seed=3)
    return Batch(stream, batch_size=4)


def of_examples(bad=(3, 8, 9)):
    """Return a pipeline of examples in which some fail."""
    return examples(bad)
