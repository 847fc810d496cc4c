"""Pipelines of all stages, schemes and data sets, whose states are kept.

Each is built by a function of a :class:`support.saved_states.Place`. What is
here stays as it is, since the file has what it gave: a new stage gets a new
pipeline.
"""
import functools
import operator

import numpy
import scipy.sparse

from fuel.datasets import Dataset, IndexableDataset, IterableDataset
from fuel.datasets.toy import Spiral, SwissRoll
from fuel.schemes import (
    BalancedScheme, BatchScheme, ComputedBlockShuffledScheme,
    ComputedShuffledExampleScheme, ComputedShuffledScheme,
    ConcatenatedScheme, ConstantScheme, SequentialExampleScheme,
    SequentialScheme, ShuffledExampleScheme, ShuffledScheme, WeightedScheme,
    cross_validation)
from fuel.server import Server
from fuel.streams import DataStream, ServerDataStream
from fuel.transformers import (
    AgnosticSourcewiseTransformer, BalancedBatches, Batch, Cache, Cast, Chain,
    Filter, FilterSources, Flatten, ForceFloatX, Mapping, MarkExamples,
    MarkPadding, Merge, Mix, MultiProcessing, MultiThreading, Padding, Rename,
    ScaleAndShift, SeededTransformer, SortMapping, Take, ToDense,
    Transformer, Unpack)
from fuel.transformers.defaults import ToBytes
from fuel.transformers.image import (
    CenterCrop, CutMix, ImagesFromBytes, MinimumImageDimensions, MixUp,
    Normalize, Random2DRotation, RandomResizedCrop, Resize)
from fuel.transformers.imputation import (
    Impute, ImputeParameters, fit_impute)
from fuel.transformers.label_encoding import (
    LabelEncoding, LabelEncodingParameters, fit_label_encoding)
from fuel.transformers.noise import (
    Dropout, GaussianNoise, SaltAndPepper, UniformNoise)
from fuel.transformers.sequences import (
    BucketBatch, Chunk, NGrams, Pack, Window)
from fuel.transformers.shuffling import ShuffleBuffer
from fuel.transformers.standardization import (
    Standardization, StandardizationParameters, fit_standardization)
from fuel.transformers.whitening import Whitening, WhiteningParameters

SIZE = 24
IMAGE = ('image',)


def numbers(scheme=None, size=SIZE, **arguments):
    """Return a stream of numbers."""
    return DataStream(IndexableDataset({'x': numpy.arange(size)}),
                      iteration_scheme=scheme, **arguments)


def examples(seed=1, size=SIZE):
    """Return a stream of single examples."""
    return numbers(ComputedShuffledExampleScheme(size, seed=seed), size)


def batches(size=4, seed=1):
    """Return a stream of batches."""
    return numbers(ComputedShuffledScheme(SIZE, size, seed=seed))


def documents(size=SIZE):
    """Return a stream of sequences of different lengths, read in order."""
    return DataStream(IterableDataset({'words': [
        list(range(start, start + 1 + start % 7)) for start in range(size)]}))


def sought_documents(seed=1):
    """Return a stream of sequences of different lengths, shuffled."""
    return DataStream(IndexableDataset({'words': [
        numpy.arange(start, start + 1 + start % 7)
        for start in range(SIZE)]}),
        iteration_scheme=ComputedShuffledExampleScheme(SIZE, seed=seed))


def measured(seed=1):
    """Return a stream of batches of numbers, classes and names."""
    return DataStream(IndexableDataset({
        'x': numpy.arange(2. * SIZE).reshape(SIZE, 2) % 7,
        'y': numpy.arange(SIZE) % 3,
        'name': numpy.array(['cat', 'dog', 'emu'])[numpy.arange(SIZE) % 3]}),
        iteration_scheme=ComputedShuffledScheme(SIZE, 4, seed=seed))


def gaps():
    """Return a stream of batches of numbers, every fifth is missing."""
    values = numpy.arange(float(SIZE))
    values[::5] = numpy.nan
    return DataStream(IndexableDataset({'x': values}),
                      iteration_scheme=ComputedShuffledScheme(
                          SIZE, 4, seed=1))


def images(size=12, side=3, batch=2, dtype='uint8'):
    """Return batches of images, and their classes."""
    pixels = (numpy.arange(size * 3 * side * side) * 7 % 251).astype(
        dtype).reshape(size, 3, side, side)
    return DataStream(IndexableDataset(
        {'image': pixels, 'targets': numpy.arange(size) % 3},
        axis_labels={'image': ('batch', 'channel', 'height', 'width'),
                     'targets': ('batch',)}),
        iteration_scheme=ComputedShuffledScheme(size, batch, seed=1))


def as_sparse(batch):
    """Return sparse rows of numbers."""
    return (scipy.sparse.csr_array(
        numpy.add.outer(numpy.asarray(batch[0]), numpy.arange(3)) % 4),)


def bitmaps():
    """Return batches of image files: 2 x 2 pixels, as PPM."""
    files = numpy.empty(12, object)
    files[:] = [numpy.frombuffer(
        b'P6 2 2 255\n' + bytes(range(12 * number, 12 * number + 12)),
        numpy.uint8) for number in range(12)]
    return DataStream(IndexableDataset({'file': files}),
                      iteration_scheme=ComputedShuffledScheme(12, 2, seed=1))


def is_even(example):
    """Tell whether the number of an example is even."""
    return example[0] % 2 == 0


def twice(example):
    """Return twice a number."""
    return (2 * example[0],)


def plus(count, example):
    """Return a number and a sum."""
    return (example[0] + count,)


def refuse_multiples_of_5(example):
    """Raise an error for some examples."""
    if example[0] % 5 == 0:
        raise ValueError('a multiple of five')
    return example


def two_epochs(epoch):
    """Return weights that an epoch decides."""
    return [1 + epoch, 1]


class Halved(Transformer):
    """A user's stage of examples or batches."""

    def transform_example(self, example):
        """Return half of an example."""
        return tuple(part // 2 for part in example)

    def transform_batch(self, batch):
        """Return half of a batch."""
        return tuple(numpy.asarray(part) // 2 for part in batch)


class Pairs(Transformer):
    """A user's stage that reads as the hooks of 0.2.0 let it."""

    def __init__(self, data_stream, **kwargs):
        super().__init__(data_stream, produces_examples=True, **kwargs)

    def get_data(self, request=None):
        """Return the sum of two examples."""
        one, other = next(self.child_epoch_iterator), next(
            self.child_epoch_iterator)
        return (one[0] + other[0],)

    def get_leftover(self):
        """Return nothing: no example is kept."""

    def set_leftover(self, leftover):
        """Take up nothing."""


class Negative(AgnosticSourcewiseTransformer):
    """A user's stage of sources."""

    def __init__(self, data_stream, **kwargs):
        super().__init__(data_stream, data_stream.produces_examples, **kwargs)

    def transform_any_source(self, source_data, _):
        """Return the negative of a source."""
        return -numpy.asarray(source_data)


class Jitter(SeededTransformer):
    """A user's stage that draws."""

    produces_examples = True

    def __init__(self, data_stream, **kwargs):
        super().__init__(data_stream, True, **kwargs)

    def transform_example(self, example):
        """Return an example with noise."""
        return (int(example[0] + self.generator().integers(100)),)


class Squares(Dataset):
    """A user's data set."""

    provides_sources = ('x',)
    num_examples = SIZE
    example_iteration_scheme = SequentialExampleScheme(SIZE)

    def get_data(self, state=None, request=None):
        """Return the squares of some numbers."""
        return (numpy.square(request),)


class EverySecond(BatchScheme):
    """A user's scheme."""

    def get_request_iterator(self):
        """Return the batches of every second example."""
        indices = list(self.indices)[::2]
        return iter([indices[start:start + self.batch_size] for start
                     in range(0, len(indices), self.batch_size)])

    def state_dict(self):
        """Return nothing: each epoch has the same order."""
        return {}

    def load_state_dict(self, state):
        """Take up nothing."""


def served(place):
    """Return a client of a server."""
    server = Server(batches(), port=0)
    server.start()
    place.stack.callback(server.stop)
    client = ServerDataStream(('x',), port=server.port, timeout=20,
                              produces_examples=False)
    place.stack.callback(client.close)
    return client


def worked(cls, **arguments):
    """Return a function that builds a pipeline with workers."""
    def build(place):
        stream = cls(Mapping(batches(3), twice), **arguments)
        place.stack.callback(stream.close)
        return stream
    return build


def fitted_standardization():
    """Return a stage that is fitted anew."""
    return Standardization(measured(), fit_standardization(
        measured(), 'x'))


def fitted_imputation():
    """Return a stage that is fitted anew."""
    return Impute(gaps(), fit_impute(gaps(), 'x', strategy='mean'))


def fitted_labels():
    """Return a stage that is fitted anew."""
    return LabelEncoding(measured(), fit_label_encoding(measured(), 'name'))


def mixture(stop='first', **arguments):
    """Return a mixture of two streams of different lengths."""
    return Mix({'a': examples(1), 'b': examples(2, 12)},
               weights={'a': 2, 'b': 1}, stop=stop, seed=1, **arguments)


def gathered(build):
    """Return a function of a place that builds what needs none."""
    return lambda place: build()


PIPELINES = {name: gathered(build) for name, build in {
    # Schemes.
    'SequentialScheme': lambda: numbers(SequentialScheme(SIZE, 5)),
    'SequentialExampleScheme': lambda: numbers(
        SequentialExampleScheme(SIZE)),
    'ShuffledExampleScheme': lambda: numbers(
        ShuffledExampleScheme(SIZE, rng=numpy.random.default_rng(1))),
    'ShuffledScheme, sorted': lambda: numbers(ShuffledScheme(
        SIZE, 5, rng=numpy.random.default_rng(1), sorted_indices=True,
        drop_last=True)),
    'ShuffledScheme, some examples': lambda: numbers(ShuffledScheme(
        list(range(0, SIZE, 2)), 3, rng=numpy.random.default_rng(1))),
    'ShuffledScheme, many examples': lambda: numbers(ShuffledScheme(
        [*range(5, SIZE)], 3, rng=numpy.random.default_rng(1))),
    'WeightedScheme, without replacement': lambda: numbers(WeightedScheme(
        numpy.arange(1, SIZE + 1), 4, num_examples=20, replacement=False,
        rng=numpy.random.default_rng(1))),
    'BalancedScheme, names': lambda: numbers(BalancedScheme(
        ['cat', 'dog', 'emu'] * 8, 6, rng=numpy.random.default_rng(1))),
    'ConcatenatedScheme': lambda: numbers(ConcatenatedScheme([
        SequentialScheme(12, 4), ComputedShuffledScheme(
            range(12, SIZE), 5, seed=1)])),
    'cross_validation': lambda: numbers(next(cross_validation(
        SequentialScheme, SIZE, 4, batch_size=4))[0]),
    'EverySecond': lambda: numbers(EverySecond(SIZE, 3)),
    'ComputedBlockShuffledScheme, rank': lambda: numbers(
        ComputedBlockShuffledScheme(
            SIZE, 3, block_size=3, window=2, seed=1)).shard(0, 2),
    'ComputedShuffledScheme, by example, pad': lambda: batches(5).shard(
        2, 3, by='example', uneven='pad'),
    'ComputedShuffledScheme, uneven': lambda: batches(2).shard(1, 3),
    'SequentialScheme, drop': lambda: numbers(
        SequentialScheme(SIZE, 1)).shard(0, 5, uneven='drop'),
    # Data sets in memory, and streams.
    'IterableDataset': lambda: DataStream(IterableDataset(
        {'x': list(range(9))})),
    'StreamDataset': lambda: DataStream(
        Mapping(batches(), twice).as_dataset(),
        iteration_scheme=ComputedShuffledScheme(SIZE, 5, seed=2)),
    'Spiral': lambda: DataStream(
        Spiral(12, classes=2, seed=1),
        iteration_scheme=ComputedShuffledScheme(12, 3, seed=1)),
    'SwissRoll': lambda: DataStream(
        SwissRoll(12, seed=1),
        iteration_scheme=ComputedShuffledScheme(12, 3, seed=1)),
    'Squares': lambda: DataStream(
        Squares(), iteration_scheme=ComputedShuffledScheme(SIZE, 4, seed=1)),
    'DataStream, skips': lambda: Mapping(DataStream(
        IndexableDataset({'x': numpy.arange(SIZE)}),
        iteration_scheme=ComputedShuffledExampleScheme(SIZE, seed=1),
        on_error='skip'), refuse_multiples_of_5),
    # Stages of values.
    'Cast': lambda: Cast(measured(), 'float32', which_sources=('y',)),
    'ForceFloatX': lambda: ForceFloatX(FilterSources(
        measured(), ('x', 'y'))),
    'ScaleAndShift': lambda: ScaleAndShift(
        measured(), .5, 1, which_sources=('x', 'y')),
    'Flatten': lambda: Flatten(images(side=2)),
    'ToDense': lambda: ToDense(Mapping(batches(), as_sparse)),
    'FilterSources': lambda: FilterSources(measured(), ('x', 'name')),
    'Rename': lambda: Rename(measured(), {'x': 'z'}),
    'MarkPadding': lambda: MarkPadding(batches(2)).shard(2, 3, uneven='pad'),
    'BalancedBatches': lambda: BalancedBatches(
        examples(), numpy.arange(SIZE) % 7 + 1, batch_size=6,
        accumulate=2).shard(1, 2),
    'MarkExamples': lambda: MarkExamples(Batch(
        ShuffleBuffer(examples(), 7, seed=1), batch_size=5)),
    'SortMapping': lambda: Mapping(
        Batch(documents(), batch_size=5), SortMapping(operator.itemgetter(0))),
    'Mapping, partial': lambda: Mapping(
        examples(), functools.partial(plus, 3)),
    'Mapping, drawn': lambda: Mapping(examples(), twice, seed=1),
    'Mapping, chain': lambda: Mapping(Mapping(Mapping(
        batches(), twice), tuple), twice, pure=True),
    'Standardization': lambda: Standardization(
        measured(), StandardizationParameters(
            'x', (1., 2.), (2., 4.), (2,), SIZE)),
    'Standardization, fitted': fitted_standardization,
    'Impute': lambda: Impute(gaps(), ImputeParameters(
        'x', 'constant', (7.,), (), None, SIZE, 5)),
    'Impute, fitted': fitted_imputation,
    'LabelEncoding': lambda: LabelEncoding(
        measured(), LabelEncodingParameters('name', ('cat', 'dog', 'emu'))),
    'LabelEncoding, fitted': fitted_labels,
    'Whitening': lambda: Whitening(measured(), WhiteningParameters(
        'pca', numpy.array([1., 2.]), numpy.array([[2., 0.], [0., 1.]]),
        (2,), {'source': 'x'})),
    'Halved': lambda: Halved(batches(), produces_examples=False),
    'Halved, examples': lambda: Halved(examples(), produces_examples=True),
    'Pairs': lambda: Pairs(examples()),
    'Negative': lambda: Negative(batches()),
    'Jitter': lambda: Jitter(examples(), seed=1),
    # Images and noise.
    'CenterCrop': lambda: CenterCrop(images(), (2, 2), which_sources=IMAGE),
    'MinimumImageDimensions': lambda: MinimumImageDimensions(
        images(side=2), (2, 2), which_sources=IMAGE),
    'Normalize': lambda: Normalize(
        images(side=2), mean=[1, 2, 3], deviation=[1, 2, 4], scale=.5,
        which_sources=IMAGE),
    'Resize': lambda: Resize(
        images(side=2), (4, 4), resample='nearest', which_sources=IMAGE),
    'Random2DRotation': lambda: Random2DRotation(
        images(), seed=1, which_sources=IMAGE),
    'RandomResizedCrop': lambda: RandomResizedCrop(
        images(), (2, 2), resample='nearest', seed=1, which_sources=IMAGE),
    'ImagesFromBytes': lambda: ImagesFromBytes(bitmaps()),
    'ImagesFromBytes, skips': lambda: ImagesFromBytes(
        bitmaps(), on_error='skip'),
    'MixUp': lambda: MixUp(Cast(
        images(side=2), 'float64', which_sources=('image',)), 3, seed=1),
    'CutMix': lambda: CutMix(images(), 3, seed=1),
    'Dropout': lambda: Dropout(
        measured(), .5, which_sources=('x',), seed=1),
    'GaussianNoise': lambda: GaussianNoise(
        measured(), 1., which_sources=('x',), seed=1),
    'SaltAndPepper': lambda: SaltAndPepper(
        measured(), .5, which_sources=('x',), seed=1),
    'UniformNoise': lambda: UniformNoise(
        measured(), 0., 1., which_sources=('x',), seed=1),
    'GaussianNoise, by example': lambda: GaussianNoise(
        measured(), 1., which_sources=('x',), seed=1).shard(
            1, 2, by='example'),
    'ToBytes': lambda: ToBytes(bitmaps()),
    # Sequences.
    'NGrams': lambda: NGrams(3, documents()),
    'Padding, sought': lambda: Padding(
        Batch(sought_documents(), batch_size=4)),
    'Chunk, sought': lambda: Chunk(sought_documents(), 3),
    'Window, sought': lambda: Window(1, 2, 2, False, sought_documents()),
    'BucketBatch, sought': lambda: BucketBatch(
        sought_documents(), 20, pool_size=8, seed=1),
    'Pack, sought': lambda: Pack(
        sought_documents(), 6, batch_size=2, window=4, too_long='split'),
    'Pack, cut': lambda: Pack(sought_documents(), 5, too_long='cut'),
    # Examples and batches.
    'Batch, drop_last': lambda: Batch(
        examples(), batch_size=5, drop_last=True),
    'Batch, constant scheme': lambda: Batch(
        examples(), iteration_scheme=ConstantScheme(5, num_examples=20)),
    'Batch, not strict': lambda: Batch(
        documents(), batch_size=5, strictness=0),
    'Cache, rest': lambda: Cache(batches(7), ConstantScheme(5)),
    'Unpack, in order': lambda: Unpack(
        Batch(documents(), batch_size=5)),
    'Unpack of batches of Unpack': lambda: Unpack(Batch(Unpack(
        batches(5)), batch_size=4)),
    'Filter of examples': lambda: Filter(examples(), is_even),
    'Take': lambda: Take(examples(), 17),
    'Chain of three': lambda: Chain([
        Take(examples(1), 4), examples(2, 9), Take(examples(3), 5)]),
    'Merge of batches': lambda: Merge(
        [batches(seed=1), batches(seed=2)], ('x', 'y')),
    'Mix, weights of each epoch': lambda: Mix(
        [examples(1), examples(2)], weights=two_epochs, seed=1,
        origin_source='origin'),
    'Mix, last': lambda: mixture('last'),
    'Mix, forever': lambda: mixture('forever', epoch_size=30),
    'Mix of pipelines': lambda: Batch(Mix([
        Mapping(Take(examples(1), 20), twice), Filter(examples(2), is_even)],
        seed=1), batch_size=3),
    'ShuffleBuffer, documents': lambda: ShuffleBuffer(
        documents(), 5, seed=2),
    # Shares of ranks.
    'Batch, rank': lambda: Batch(examples(), batch_size=3).shard(1, 2),
    'Batch, by example': lambda: Batch(
        examples(), batch_size=5).shard(0, 2, by='example'),
    'Batch, rank in order': lambda: Batch(
        documents(), batch_size=3).shard(1, 2),
    'Cache, rank': lambda: Cache(batches(7), ConstantScheme(3)).shard(1, 2),
    'Unpack, rank': lambda: Unpack(batches(5)).shard(1, 3),
    'Filter, rank': lambda: Batch(
        Filter(examples(), is_even), batch_size=1).shard(1, 2),
    'Take, rank': lambda: Take(examples(), 17).shard(1, 2, uneven='pad'),
    'Chain, rank': lambda: Chain(
        [examples(1, 5), examples(2, 9)]).shard(1, 2),
    'Merge, rank': lambda: Merge(
        [examples(1), examples(2)], ('x', 'y')).shard(1, 2),
    'Mix, rank': lambda: mixture().shard(0, 2),
    'Mix, last, rank': lambda: mixture('last').shard(1, 2),
    'Mix, forever, rank': lambda: mixture(
        'forever', epoch_size=30).shard(1, 2),
    'Mix of pipelines, rank': lambda: Batch(Mix([
        Mapping(Take(examples(1), 20), twice), examples(2)], seed=1),
        batch_size=2).shard(1, 2),
    'ShuffleBuffer, rank': lambda: ShuffleBuffer(
        examples(), 5, seed=1).shard(1, 2),
    'BucketBatch, rank': lambda: BucketBatch(
        sought_documents(), 10, pool_size=6, seed=1).shard(1, 2),
    'Pack, rank': lambda: Pack(sought_documents(), 8).shard(1, 2),
    'Chunk, rank': lambda: Chunk(sought_documents(), 2).shard(1, 2),
    'IterableDataset, rank': lambda: DataStream(IterableDataset(
        {'x': list(range(15))})).shard(1, 2),
}.items()}
PIPELINES.update({
    # Workers.
    'MultiProcessing': worked(MultiProcessing),
    'MultiProcessing, two workers': worked(MultiProcessing, num_workers=2),
    'MultiThreading': worked(MultiThreading, num_threads=2),
    'ServerDataStream': served,
})
