"""Random pipelines whose rows hold their numbers and data sets."""
import itertools
import random

import numpy

from fuel.datasets import IndexableDataset, IterableDataset
from fuel.schemes import (
    BalancedScheme,
    BlockShuffledScheme,
    ComputedBlockShuffledScheme,
    ComputedShuffledExampleScheme,
    ComputedShuffledScheme,
    ConcatenatedScheme,
    ConstantScheme,
    IterationScheme,
    SequentialExampleScheme,
    SequentialScheme,
    ShuffledExampleScheme,
    ShuffledScheme,
    WeightedScheme,
)
from fuel.streams import DataStream
from fuel.transformers import (
    Batch,
    Cache,
    Cast,
    Chain,
    Expand,
    Merge,
    Mix,
    Rename,
    Take,
    Unpack,
)
from fuel.transformers.seeded import RandomTransformer
from fuel.transformers.shuffling import ShuffleBuffer

# Rows of a data set differ from those of the one before by as much.
APART = 1000
# So many items are read of an epoch that may never end.
MOST = 40


class Drawing(RandomTransformer):
    """A stage that draws for each item, and changes nothing."""

    keeps_rows = True

    def shown(self, data, drawn):
        """Return data that were drawn for."""
        return data

    def transform_example(self, example):
        """Return an example, and draw."""
        return self.shown(example, self.generator().random() if (
            self.draws_by_seed) else self.rng.random_sample())

    def transform_batch(self, batch):
        """Return a batch, and draw."""
        count = len(batch[0])
        return self.shown(batch, self.draw_rows(
            count, lambda generator, size: generator.random(size)) if (
                self.draws_by_seed) else self.rng.random_sample(count))


class Shown(Drawing):
    """A stage that adds what it draws."""

    def shown(self, data, drawn):
        """Return data, with what was drawn added."""
        return tuple([numpy.asarray(part) + drawn for part in data])


class Repeated(Expand):
    """A stage that gives each item so many times."""

    def __init__(self, data_stream, times, **kwargs):
        super().__init__(data_stream, **kwargs)
        self.times = times

    def num_pieces(self, item=None):
        """Return how many times."""
        return self.times

    def expand(self, item):
        """Return the item, so many times."""
        return [item] * self.times


class Counted(Repeated):
    """A stage that does not say before how often it does."""

    def num_pieces(self, item=None):
        """Return how many times an item is given."""
        return None if item is None else self.times


class Sizes(IterationScheme):
    """A user's scheme: batches of given sizes, shuffled in its own way."""

    requests_examples = False

    def __init__(self, sizes, seed):
        self.sizes = sizes
        self.generators = {'order': random.Random(seed)}

    def get_request_iterator(self):
        """Yield batches of rows in an order that is drawn."""
        rows = list(range(sum(self.sizes)))
        self.generators['order'].shuffle(rows)
        ends = list(itertools.accumulate(self.sizes))
        return iter([rows[end - size:end] for end, size in zip(
            ends, self.sizes, strict=True)])

    def state_dict(self):
        """Return the state of the generator."""
        version, words, gauss = self.generators['order'].getstate()
        return {'state': [version, list(words), gauss]}

    def load_state_dict(self, state):
        """Take up the state of the generator."""
        version, words, gauss = state['state']
        self.generators['order'].setstate((version, tuple(words), gauss))


class Build:
    """Builds one random pipeline; the same number makes the same one."""

    drawing = Drawing

    def __init__(self, number):
        self.random = random.Random(number)
        self.num_datasets = 0
        # The number of parts that draw from one generator, or are read again.
        self.num_shared = 0
        self.shared = numpy.random.RandomState(number)

    def pipeline(self):
        """Return a pipeline of examples or batches."""
        return self.random.choice([self.batches, self.examples])(
            self.random.randint(1, 3))

    def _dataset(self, count, kind=IndexableDataset):
        start = APART * self.num_datasets
        self.num_datasets += 1
        rows = numpy.arange(start, start + count)
        dataset = kind(
            {'y': rows if kind is IndexableDataset else rows.tolist()})
        dataset.first = start
        return dataset

    def _rng(self):
        """Return a generator of its own, or one that schemes share."""
        if self.random.random() < .4:
            self.num_shared += 1
            return self.shared
        return numpy.random.RandomState(self.random.randint(0, 99))

    def _batch_scheme(self, count, size):
        choose, seed = self.random, self.random.randint(0, 99)
        # A repeated row must not hide that another is missing.
        rows = choose.choice([count, list(range(count - 1, -1, -1))])
        make = {
            SequentialScheme: lambda: SequentialScheme(rows, size),
            ShuffledScheme: lambda: ShuffledScheme(
                rows, size, rng=self._rng(), drop_last=choose.random() < .2,
                sorted_indices=choose.random() < .2),
            BlockShuffledScheme: lambda: BlockShuffledScheme(
                count, size, block_size=3, window=2, rng=self._rng()),
            WeightedScheme: lambda: WeightedScheme(
                numpy.arange(1., count + 1), size, rng=self._rng()),
            BalancedScheme: lambda: BalancedScheme(
                [row % 2 for row in range(count)], size, rng=self._rng()),
            ComputedShuffledScheme: lambda: ComputedShuffledScheme(
                rows, size, seed=seed),
            ComputedBlockShuffledScheme: lambda: ComputedBlockShuffledScheme(
                count, size, block_size=2, window=3, seed=seed),
            Sizes: lambda: Sizes(
                [choose.randint(1, 4) for _ in range(count // 4)] or [1],
                seed)}
        kind = choose.choice([*make, ConcatenatedScheme])
        if kind is ConcatenatedScheme:
            return ConcatenatedScheme([
                self._batch_scheme(count, size) for _ in range(2)])
        return make[kind]()

    def _example_scheme(self, count):
        rows = self.random.choice([count, list(range(count))])
        return self.random.choice([
            lambda: SequentialExampleScheme(rows),
            lambda: ShuffledExampleScheme(rows, rng=self._rng()),
            lambda: ComputedShuffledExampleScheme(
                rows, seed=self.random.randint(0, 99)),
            lambda: ConcatenatedScheme([
                SequentialExampleScheme(rows),
                ShuffledExampleScheme(rows, rng=self._rng())])])()

    def _count(self):
        return self.random.randint(4, 25)

    def _plain(self, stream):
        """Return a stream with a stage that changes nothing, or none."""
        return self.random.choice([
            lambda: stream,
            lambda: stream,
            lambda: Cast(stream, 'int64'),
            lambda: self.drawing(stream, stream.produces_examples, seed=3),
            lambda: self.drawing(stream, stream.produces_examples,
                                 rng=numpy.random.RandomState(3))])()

    def batches(self, depth):
        """Return a pipeline of batches."""
        if not depth:
            count, size = self._count(), self.random.randint(2, 6)
            return self._plain(DataStream(
                self._dataset(count),
                iteration_scheme=self._batch_scheme(count, size)))
        size = self.random.randint(1, 6)
        return self._plain(self.random.choice([
            lambda: self.batches(depth - 1),
            lambda: Batch(self.examples(depth - 1), ConstantScheme(size)),
            lambda: Batch(self.examples(depth - 1), ConstantScheme(
                size, num_examples=self.random.randint(1, 20)),
                strictness=self.random.randint(0, 1)),
            lambda: Cache(self.batches(depth - 1), ConstantScheme(size)),
            lambda: self._several(self.batches, depth)])())

    def examples(self, depth):
        """Return a pipeline of examples."""
        if not depth:
            count = self._count()
            if self.random.random() < .2:
                return self._plain(DataStream(
                    self._dataset(count, IterableDataset)))
            return self._plain(DataStream(
                self._dataset(count),
                iteration_scheme=self._example_scheme(count)))
        return self._plain(self.random.choice([
            lambda: self.examples(depth - 1),
            lambda: Unpack(self.batches(depth - 1)),
            lambda: ShuffleBuffer(
                self.examples(depth - 1), self.random.randint(1, 7),
                seed=self.random.randint(0, 9)),
            lambda: self._several(self.examples, depth)])())

    def _several(self, make, depth):
        """Return a stage that reads one stream or several."""
        choose = self.random

        def streams(count):
            return [make(choose.randint(0, depth - 1)) for _ in range(count)]

        def alike(count):
            found = streams(count)
            width = min(len(stream.sources) for stream in found)
            # Those of a mixture have the same sources.
            return [stream for stream in found
                    if len(stream.sources) == width]

        def named(found):
            names = [f's{place}' for place in range(len(found[0].sources))]
            return [Rename(stream, dict(zip(
                stream.sources, names, strict=True))) for stream in found]

        def merged():
            found = streams(2)
            return Merge(found, [f's{place}' for place in range(sum(
                len(stream.sources) for stream in found))])

        def mixed():
            found = named(alike(choose.randint(1, 3)))
            weights = [choose.randint(1, 3) for _ in found]
            return Mix(found, weights, seed=choose.randint(0, 9),
                       stop=choose.choice(['first', 'last', 'forever']),
                       epoch_size=choose.choice([None, 5, 12, 30]))

        return choose.choice([
            merged, mixed, mixed, lambda: Chain(named(alike(2))),
            lambda: Take(make(depth - 1), choose.randint(0, 9))])()


class Shareable(Build):
    """Builds pipelines that ranks can share: no stage draws from an rng, and
    each scheme has a generator of its own."""

    def _rng(self):
        return numpy.random.RandomState(self.random.randint(0, 99))

    def _plain(self, stream):
        return self.random.choice([
            lambda: stream,
            lambda: Cast(stream, 'int64'),
            lambda: Drawing(stream, stream.produces_examples, seed=3)])()


class Tangled(Build):
    """Builds pipelines whose parts draw from what others draw from, or are
    read twice."""

    def __init__(self, number):
        super().__init__(number)
        self.made = []

    def _repeated(self, stream):
        """Return a stream with a stage that makes pieces, or none."""
        chance = self.random.random()
        if chance < .15:
            return Repeated(stream, self.random.randint(0, 3))
        return Counted(stream, 2) if chance < .17 else stream

    def pipeline(self):
        """Return a stage that reads several streams, and one behind it."""
        make = self.random.choice([self.batches, self.examples])
        stream = self._several(make, self.random.randint(1, 3))
        if not stream.produces_examples or self.random.random() < .5:
            return stream
        return ShuffleBuffer(stream, self.random.randint(1, 7), seed=2)

    def _rng(self):
        if self.random.random() < .8:
            self.num_shared += 1
            return self.shared
        return super()._rng()

    def _plain(self, stream):
        stream = self._repeated(super()._plain(stream))
        if self.random.random() < .1:
            self.num_shared += 1
            stream = self.drawing(
                stream, stream.produces_examples, rng=self.shared)
        self.made.append(stream)
        return stream

    def _again(self, single, new):
        """Return a stream that is read already, or a new one."""
        alike = [stream for stream in self.made
                 if stream.produces_examples == single]
        if alike and self.random.random() < .15:
            self.num_shared += 2
            return self.random.choice(alike)
        return new()

    def batches(self, depth):
        """Return a pipeline of batches."""
        return self._again(False, lambda: super(Tangled, self).batches(depth))

    def examples(self, depth):
        """Return a pipeline of examples."""
        return self._again(True, lambda: super(Tangled, self).examples(depth))


class Showing(Tangled):
    """Builds such pipelines, whose rows show what stages draw, and whose
    streams may share schemes."""

    drawing = Shown

    def __init__(self, number):
        super().__init__(number)
        self.schemes = []

    def _shared_scheme(self, count, new):
        """Return a scheme that another stream has, or a new one."""
        alike = [scheme for rows, scheme in self.schemes if rows == count]
        if alike and self.random.random() < .5:
            self.num_shared += 2
            return self.random.choice(alike)
        scheme = new()
        self.schemes.append((count, scheme))
        return scheme

    def _count(self):
        return self.random.choice([4, 7, 12, 20])

    def _batch_scheme(self, count, size):
        return self._shared_scheme((count, True), lambda: super(
            Showing, self)._batch_scheme(count, size))

    def _example_scheme(self, count):
        return self._shared_scheme((count, False), lambda: super(
            Showing, self)._example_scheme(count))


def build(number, builder=Build):
    """Return a random pipeline; the same number makes the same one."""
    return builder(number).pipeline()


def can_be_read(make):
    """Return whether a pipeline has items: batches of several streams that
    stand beside each other may differ in size."""
    try:
        list(itertools.islice(make(), MOST))
    except ValueError:
        return False
    return True


def starts_of(stream):
    """Return what the first row holds of each data set of a pipeline."""
    # Each data set has another one.
    return list(dict.fromkeys(_starts(stream)))


def _starts(stream):
    if hasattr(stream, 'dataset'):
        return [stream.dataset.first]
    inputs = getattr(stream, 'data_streams', None) or [stream.data_stream]
    return sum(map(_starts, inputs), [])
