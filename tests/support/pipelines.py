"""One small pipeline for each data set, scheme and stage.

The contract tests run every one of them.  A new data set, scheme or stage
joins them here.
"""
import io
import json
import random
from pathlib import Path
from unittest import mock

import h5py
import numpy
from PIL import Image
from support.mds_files import write_mds
from support.sparse_rows import SparseDataset, random_csr
from support.tar_files import digits, write_tar
from support.tfrecord_files import example, write_tfrecord

from fuel.datasets import (
    CSR,
    BinaryDataset,
    Categorical,
    Constant,
    CSVDataset,
    FilesDataset,
    H5PYDataset,
    HDF5Dataset,
    IndexableDataset,
    IterableDataset,
    JSONLDataset,
    MDSDataset,
    NPYDataset,
    PerRun,
    PerStep,
    Ragged,
    Scaled,
    Runs,
    TarDataset,
    TFRecordDataset,
    Windows,
)
from fuel.datasets.hdf5 import PytablesDataset
from fuel.datasets.text import TextFile
from fuel.datasets.toy import Spiral, SwissRoll
from fuel.interop.chainer import ChainerDataset, TupleDataset
from fuel.interop.paddle import ProviderDataset
from fuel.schemes import (
    BalancedScheme,
    BlockShuffledScheme,
    ComputedBlockShuffledScheme,
    ComputedShuffledExampleScheme,
    ComputedShuffledScheme,
    ConcatenatedScheme,
    ConstantScheme,
    SequentialExampleScheme,
    SequentialScheme,
    ShuffledExampleScheme,
    ShuffledScheme,
    WeightedScheme,
)
from fuel.streams import DataStream
from fuel.transformers import (
    BalancedBatches,
    Batch,
    Cache,
    Cast,
    Chain,
    Expand,
    Filter,
    FilterSources,
    Flatten,
    ForceFloatX,
    Mapping,
    MarkExamples,
    MarkPadding,
    Merge,
    Mix,
    MultiProcessing,
    MultiThreading,
    Padding,
    Rename,
    ScaleAndShift,
    SeededTransformer,
    SortMapping,
    Take,
    ToDense,
    Transformer,
    Unpack,
)
from fuel.transformers.defaults import ToBytes
from fuel.transformers.image import (
    CenterCrop,
    CutMix,
    ImagesFromBytes,
    MinimumImageDimensions,
    MixUp,
    Normalize,
    Random2DRotation,
    RandomFixedSizeCrop,
    RandomHorizontalFlip,
    RandomResizedCrop,
    Resize,
)
from fuel.transformers.noise import (
    Dropout,
    GaussianNoise,
    SaltAndPepper,
    UniformNoise,
)
from fuel.transformers.sequences import (
    BucketBatch,
    Chunk,
    NGrams,
    Pack,
    Window,
)
from fuel.transformers.shuffling import ShuffleBuffer
from fuel.transformers.imputation import Impute, fit_impute
from fuel.transformers.label_encoding import (
    LabelEncoding,
    fit_label_encoding,
)
from fuel.transformers.standardization import (
    Standardization,
    fit_standardization,
)
from fuel.transformers.whitening import Whitening, fit_whitening
from fuel.utils.arguments import NamedArguments

N = 14
VOCABULARY = {'<UNK>': 0, '<S>': 1, '</S>': 2, 'a': 3, 'b': 4}


def write_files(folder):
    """Write the files that the pipelines read into a folder."""
    rng = numpy.random.RandomState(7)
    with h5py.File(folder / 'data.hdf5', 'w') as file:
        file['features'] = rng.randint(0, 256, (N, 3, 2)).astype('uint8')
        file['targets'] = numpy.arange(N, dtype='uint8')[:, None]
        chosen = file.create_dataset(
            'chosen', data=numpy.array([11, 3, 7, 0, 5, 9]))
        vlen = file.create_dataset(
            'images', (N,), h5py.special_dtype(vlen=numpy.dtype('uint8')))
        shapes = numpy.array([(1 + i % 3, 2) for i in range(N)])
        for i, shape in enumerate(shapes):
            vlen[i] = rng.randint(0, 256, shape.prod()).astype('uint8')
        for name, options in (('chunked', {}), ('gzip', {
                'compression': 'gzip', 'shuffle': True})):
            file.create_dataset(
                name, data=rng.randint(0, 256, (N, 3, 2)), dtype='>i4',
                chunks=(3, 2, 2), **options)
        file['images_shapes'] = shapes
        file['images_shapes'].make_scale('shapes')
        vlen.dims[0].attach_scale(file['images_shapes'])
        three, two = ('features', 'targets', 'images'), ('features', 'targets')
        layouts = (*three, 'chunked', 'gzip')
        splits = {'train': dict.fromkeys(layouts, (0, 10)),
                  'test': dict.fromkeys(three, (10, N)),
                  'some': dict.fromkeys(two, (-1, -1, chosen.ref))}
        file.attrs['split'] = H5PYDataset.create_split_array(splits)
    with h5py.File(folder / 'parts.hdf5', 'w') as file:
        for number, length in enumerate((5, 1, 4, 4)):
            file[f'run{number}/x'] = rng.randint(
                0, 256, (length, 3, 2)).astype('uint8')
            file.create_dataset(
                f'run{number}/deep/y', data=numpy.arange(length) + number,
                chunks=(2 if length > 1 else 1,), compression='gzip')
            file[f'run{number}/name'] = f'run {number}'
            file[f'run{number}/size'] = numpy.arange(number)
            file[f'run{number}/number'] = [number]
            file[f'run{number}/steps'] = numpy.arange(9)
            file[f'run{number}/words'] = numpy.arange(2 * length)
            file[f'run{number}/ends'] = 2 * numpy.arange(length) + 1
    write_cells(folder / 'cells.hdf5')
    import tables
    with tables.open_file(str(folder / 'data.tables'), 'w') as file:
        file.create_array('/', 'x', numpy.arange(N * 2).reshape(N, 2))
    pairs = numpy.arange(N * 2, dtype='>i4').reshape(N, 2)
    numpy.save(folder / 'pairs.npy', pairs)
    numpy.arange(N, dtype='>u2').tofile(folder / 'tokens.bin')
    numpy.savez_compressed(folder / 'pairs.npz', columns=pairs.T.copy().T)
    numpy.savetxt(folder / 'pairs.csv', pairs, '%d', ',', header='a,b',
                  comments='')
    with open(folder / 'notes.jsonl', 'w') as file:
        for number, pair in enumerate(pairs.tolist()):
            json.dump({'pair': pair, 'meta': {'size': number / 4},
                       'tokens': pair[:number % 3], 'text': 'a' * number,
                       'tags': [{'is_odd': bool(number % 2)}]}, file)
            file.write('\n')
    write_tar(folder / 'digits.tar', digits(count=N))
    columns = {'id': ('int', 8), 'text': ('str', None)}
    samples = [[number.to_bytes(8, 'little'), b'a' * number]
               for number in range(N)]
    write_mds(folder / 'mds', columns, [samples[:5], samples[5:]])
    write_mds(folder / 'packed', columns, [samples[:5], samples[5:]],
              compression='gz')
    write_tfrecord(folder / 'examples.tfrecord', [
        example(label=[number], image=[b'%d' % number],
                ids=list(range(number % 3))) for number in range(N)])
    write_folders(folder)
    for number in range(2):
        (folder / f'{number}.txt').write_text('a b\nc\n\nb b a\n' * 2)


def write_folders(folder):
    """Write a folder of files by class, and one with a table of its files."""
    for number in range(N):
        for name in (f'files/{"ab"[number % 2]}/{number:02}',
                     f'named/{number}'):
            path = folder / f'{name}.png'
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b'%d' % number)
    (folder / 'named' / 'metadata.csv').write_text('n,file_name\n' + ''.join(
        [f'{number},{number}.png\n' for number in range(N)]))


def write_cells(path):
    """Write a sparse matrix, categories and packed numbers."""
    counts = random_csr(N, 12)
    with h5py.File(path, 'w') as file:
        cells = file.create_group('X')
        cells.attrs['encoding-type'] = 'csr_matrix'
        cells.attrs['shape'] = counts.shape
        cells['data'], cells['indices'] = counts.data, counts.indices
        cells['indptr'] = counts.indptr
        file['type/codes'] = numpy.arange(N, dtype='int8') % 4 - 1
        file['type/categories'] = ['a', 'b', 'c']
        file['size'] = numpy.arange(N * 2, dtype='int16').reshape(N, 2)
        file['size'].attrs['scale_factor'] = .5


def arrays():
    """Return a data set of two arrays."""
    return IndexableDataset({
        'x': numpy.arange(N * 6, dtype='uint8').reshape(N, 3, 2),
        'y': numpy.arange(N)},
        axis_labels={'x': ('batch', 'height', 'width'), 'y': ('batch',)})


def chainer():
    """Return a data set of Chainer's, of tuples, as one of Fuel."""
    return ChainerDataset(TupleDataset(
        numpy.arange(N * 2.).reshape(N, 2), list(range(N))), names=('x', 'y'))


def provided():
    """Return a data set of the entries of a provider."""
    return ProviderDataset(provider, ('x', 'y'))


def provider():
    """Return entries of a pass."""
    return ([numpy.arange(3.) + n, n] for n in range(N))


def sparse(index='int32'):
    """Return a data set of sparse rows and their numbers."""
    return SparseDataset(random_csr(N, 5, index=index))


def batches(scheme=None, dataset=None):
    """Return a stream of batches."""
    return DataStream(dataset or arrays(),
                      iteration_scheme=scheme or ShuffledScheme(N, 4))


def examples(scheme=None, dataset=None):
    """Return a stream of single examples."""
    return DataStream(dataset or arrays(), iteration_scheme=(
        scheme or ShuffledExampleScheme(N)))


def sentences():
    """Return a stream of examples of different lengths."""
    return DataStream(IterableDataset(
        {'s': [list(range(n % 5)) for n in range(N)]}))


def hdf5(folder, which, examples_=False, remote=False, **kwargs):
    """Return a stream over the HDF5 file."""
    kwargs.setdefault('sources', ('features', 'targets'))
    dataset = H5PYDataset(
        f'file://{folder}/data.hdf5' if remote else folder / 'data.hdf5',
        which, **kwargs)
    count = dataset.num_examples
    return DataStream(dataset, iteration_scheme=(
        ShuffledExampleScheme(count) if examples_
        else ShuffledScheme(count, 4)))


def hdf5_rows(folder, sources, remote=False):
    """Return a data set of ten rows of the HDF5 file."""
    return hdf5(folder, ('train',), remote=remote, sources=sources).dataset


def windows(folder):
    """Return a data set of as many windows as there are rows."""
    return Windows(
        NPYDataset(folder / 'pairs.npy'), 3, step=2, pad='edge',
        pad_before=2, pad_after=2, runs={'lengths': [6, 0, 8]},
        axis_labels={'data': ('batch', 'time', 'index')})


def tokens(folder):
    """Return a data set of the numbers in a raw file."""
    return BinaryDataset(folder / 'tokens.bin', '>u2')


def next_tokens(folder):
    """Return a data set of eleven windows with the tokens that follow."""
    return Windows(tokens(folder), 3, targets='next')


def runs(folder):
    """Return a data set of six runs of rows."""
    return Runs(NPYDataset(folder / 'pairs.npy'),
                runs={'lengths': [4, 0, 5, 1, 2, 2]})


def parts(folder, sources=('x', 'deep/y'), **kwargs):
    """Return a data set of several groups of an HDF5 file."""
    return HDF5Dataset(folder / 'parts.hdf5', sources, parts='run*', **kwargs)


def columns(folder):
    """Return a data set of values that rows share, and of ragged rows."""
    return parts(folder, [
        Ragged('words', ends='ends'), Constant('name'), Constant('size'),
        PerRun('number'), PerStep('steps')])


def cells(folder, dense=False):
    """Return a data set of rows of a sparse matrix and other columns."""
    return HDF5Dataset(folder / 'cells.hdf5', [
        CSR('X', dense=dense), Categorical('type'), Scaled('size')])


def image_file(number):
    """Return a PNG file; each has another size."""
    pixels = numpy.random.RandomState(number).randint(
        0, 256, (4 + number % 3, 5 + number % 2, 3)).astype('uint8')
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, 'PNG')
    return file.getvalue()


def images(damaged=(), **kwargs):
    """Return a stream of decoded images of different sizes."""
    files = [b'damaged' if n in damaged else image_file(n) for n in range(N)]
    return ImagesFromBytes(batches(dataset=IndexableDataset(
        {'image': files, 'number': numpy.arange(N)})),
        which_sources='image', **kwargs)


def undamaged(scheme):
    """Return a stream of flipped images, without the damaged ones."""
    files = [b'damaged' if n in (2, 5) else image_file(n) for n in range(N)]
    return RandomHorizontalFlip(ImagesFromBytes(DataStream(
        IndexableDataset({'image': files, 'number': numpy.arange(N)}),
        iteration_scheme=scheme, on_error='skip'), which_sources='image'),
        which_sources='image')


def stacked():
    """Return a stream of batches of images of one size."""
    return Resize(images(), (6, 5), 'nearest', which_sources='image')


def pairs_of_images():
    """Return a stream of batches of images and their masks."""
    pixels = numpy.random.RandomState(1).randint(
        0, 256, (N, 3, 6, 5)).astype('uint8')
    axes = 'batch', 'channel', 'height', 'width'
    return batches(dataset=IndexableDataset(
        {'image': pixels, 'mask': pixels[:, :1] // 64,
         'number': numpy.arange(N)},
        axis_labels={'image': axes, 'mask': axes, 'number': ('batch',)}))


def text(folder, **kwargs):
    """Return a stream of sentences."""
    return DataStream(TextFile(
        [folder / '0.txt', folder / '1.txt'], VOCABULARY, **kwargs))


def noise(stage, *args):
    """Return a stream with noise of a kind."""
    return stage(Cast(batches(), 'float32', which_sources=('x',)), *args,
                 which_sources=('x',))


def gaps(as_examples=False):
    """Return a stream of data with missing values."""
    x = numpy.arange(2. * N).reshape(N, 2)
    x[3], x[5, 1] = numpy.nan, numpy.nan
    return (examples if as_examples else batches)(dataset=IndexableDataset({
        'x': x, 'y': numpy.arange(N) % 4, 'y_mask': numpy.arange(N) % 3 > 0,
        'text': ['a', '', 'b', 'a', *('cde' * N)][:N]}))


def white(kind):
    """Return a stream of whitened batches."""
    return Whitening(batches(), fit_whitening(
        batches(), 'x', kind=kind), which_sources=('x',))


class Noisy(Transformer):
    """A random stage, as users write them."""

    def __init__(self, data_stream):
        super().__init__(data_stream, data_stream.produces_examples)
        self.rng = numpy.random.RandomState(5)

    def transform_example(self, example):
        """Return the example with a random number at the end."""
        return (*example[:-1], self.rng.randint(1000))

    def transform_batch(self, batch):
        """Return the batch with random numbers at the end."""
        return (*batch[:-1], self.rng.randint(1000, size=len(batch[0])))


class Running(Transformer):
    """A user's stage with something of its own to remember."""

    epoch_attributes = (*Transformer.epoch_attributes, 'total')

    def __init__(self, data_stream):
        super().__init__(data_stream, data_stream.produces_examples)

    def get_epoch_iterator(self, **kwargs):
        """Begin to count anew."""
        self.total = 0
        return super().get_epoch_iterator(**kwargs)

    def get_data(self, request=None):
        """Return the data with a number in the place of the last."""
        data = next(self.child_epoch_iterator)
        self.total += 1
        return (*data[:-1], self.total)

    def get_leftover(self):
        """Return the count."""
        return self.total

    def set_leftover(self, leftover):
        """Take up the count."""
        self.total = leftover


class Uneven(Expand):
    """Makes none, one or two items of each."""

    def expand(self, item):
        """Yield items; the second with another number at the end."""
        count = int(numpy.ravel(item[-1])[0]) % 3
        if count:
            yield tuple([part.copy() for part in item])
        if count > 1:
            yield (*item[:-1], item[-1] + 100)


class Drawn(Expand, SeededTransformer):
    """Makes two items of each, and draws their numbers."""

    def num_pieces(self, item=None):
        """Return how many pieces any item makes."""
        return 2

    def expand(self, item):
        """Return the items."""
        drawn = self.generator().integers(1000, size=2)
        return [(*[part.copy() for part in item[:-1]], item[-1] + number)
                for number in drawn]


def merged_with_itself():
    """Return a stream merged with itself: two epochs side by side."""
    stream = examples()
    return Merge((stream, Mapping(stream, double)), tuple('abcd'))


def mixed_with_itself():
    """Return a stream mixed with itself: two epochs in turn."""
    stream = examples()
    return Mix((stream, Mapping(stream, double)), [3, 1], stop='last')


def chained_with_itself():
    """Return a stream chained with itself: two epochs one by one."""
    stream = examples()
    return Chain((stream, Mapping(stream, double)))


def double(data):
    """Return twice the data."""
    return tuple(2 * part for part in data)


def double_values(data):
    """Return twice the data, by name."""
    return {name: 2 * part for name, part in data.items()}


def jitter(data):
    """Return the data with what the global generators add."""
    return (data[0] + random.random(), data[1] + numpy.random.normal())


def is_even(data):
    """Tell whether an example is kept."""
    return int(data[1]) % 2 == 0


def second(data):
    """Return what to sort by."""
    return data[1]


PIPELINES = {
    # Schemes.
    'SequentialScheme': lambda f: batches(SequentialScheme(N, 4)),
    'ShuffledScheme': lambda f: batches(ShuffledScheme(N, 4)),
    'ShuffledScheme sorted': lambda f: batches(
        ShuffledScheme(N, 4, sorted_indices=True)),
    'ShuffledScheme list': lambda f: batches(
        ShuffledScheme([3, 3, 1, 9, 2], 2)),
    'ShuffledScheme Generator': lambda f: batches(
        ShuffledScheme(N, 4, rng=numpy.random.default_rng(3))),
    'ShuffledScheme Random': lambda f: batches(
        ShuffledScheme(N, 4, rng=random.Random(3))),
    'SequentialExampleScheme': lambda f: examples(
        SequentialExampleScheme(N)),
    'ShuffledScheme dropping': lambda f: batches(
        ShuffledScheme(N, 4, drop_last=True, seed=3)),
    'ShuffledExampleScheme': lambda f: examples(),
    'BlockShuffledScheme': lambda f: batches(
        BlockShuffledScheme(N, 4, block_size=3, window=2)),
    'BlockShuffledScheme dropping': lambda f: batches(BlockShuffledScheme(
        N, 4, block_size=3, window=2, drop_last=True, seed=3)),
    'ComputedShuffledScheme': lambda f: batches(
        ComputedShuffledScheme(N, 4)),
    'ComputedShuffledExampleScheme': lambda f: examples(
        ComputedShuffledExampleScheme(N)),
    'ComputedBlockShuffledScheme': lambda f: batches(
        ComputedBlockShuffledScheme(N, 4, block_size=3, window=2)),
    'ComputedBlockShuffledScheme dropping': lambda f: batches(
        ComputedBlockShuffledScheme(
            N, 4, block_size=3, window=2, drop_last=True)),
    'WeightedScheme': lambda f: batches(WeightedScheme(range(N), 4)),
    'WeightedScheme dropping': lambda f: batches(
        WeightedScheme(range(N), 4, drop_last=True, seed=3)),
    'BalancedScheme': lambda f: batches(BalancedScheme([0, 1] * 7, 4)),
    'BalancedScheme dropping': lambda f: batches(
        BalancedScheme([0, 1] * 7, 4, drop_last=True, seed=3)),
    'ConcatenatedScheme': lambda f: batches(ConcatenatedScheme(
        [ShuffledScheme(9, 4), SequentialScheme([9, 13], 2)])),
    'ConstantScheme': lambda f: Batch(
        examples(), iteration_scheme=ConstantScheme(4, times=3)),
    'ConstantScheme dropping': lambda f: Batch(
        examples(), ConstantScheme(4, 10, drop_last=True)),
    # Data sets.
    'IterableDataset': lambda f: sentences(),
    'IterableDataset array': lambda f: DataStream(IterableDataset(
        {'a': numpy.arange(10).reshape(5, 2), 'b': 'abcde'})),
    'IndexableDataset list': lambda f: batches(
        dataset=IndexableDataset([[n, n] for n in range(N)])),
    'IndexableDataset records': lambda f: examples(
        dataset=IndexableDataset(numpy.zeros(
            N, [('a', 'i4'), ('b', '>f8')]))),
    'H5PYDataset': lambda f: hdf5(f, ('train',)),
    'H5PYDataset two splits': lambda f: hdf5(f, ('test', 'train')),
    'H5PYDataset subset': lambda f: hdf5(
        f, ('train',), subset=[1, 2, 5, 7, 8]),
    'H5PYDataset index split': lambda f: hdf5(f, ('some',)),
    'H5PYDataset flat targets': lambda f: hdf5(
        f, ('train',), flat_targets=True),
    'H5PYDataset in memory': lambda f: hdf5(
        f, ('train',), load_in_memory=True),
    'H5PYDataset vlen': lambda f: hdf5(
        f, ('train',), sources=('images', 'targets')),
    'H5PYDataset vlen in memory': lambda f: hdf5(
        f, ('train',), sources=('images',), load_in_memory=True),
    'H5PYDataset examples': lambda f: hdf5(f, ('train',), True),
    'H5PYDataset examples in memory': lambda f: hdf5(
        f, ('train',), True, load_in_memory=True),
    'H5PYDataset vlen examples': lambda f: hdf5(
        f, ('train',), True, sources=('images',)),
    'H5PYDataset chunked': lambda f: hdf5(
        f, ('train',), sources=('chunked', 'targets')),
    'H5PYDataset gzip': lambda f: hdf5(
        f, ('train',), sources=('gzip', 'targets'), cache_bytes=100),
    'H5PYDataset remote': lambda f: hdf5(f, ('train',), remote=True),
    'H5PYDataset remote gzip': lambda f: hdf5(
        f, ('train',), remote=True, sources=('gzip',)),
    'H5PYDataset remote examples': lambda f: hdf5(
        f, ('train',), True, remote=True),
    'H5PYDataset gzip examples': lambda f: hdf5(
        f, ('train',), True, sources=('gzip',)),
    'HDF5Dataset': lambda f: batches(dataset=parts(f)),
    'HDF5Dataset columns': lambda f: batches(dataset=columns(f)),
    'HDF5Dataset cells': lambda f: batches(dataset=cells(f, dense=True)),
    'HDF5Dataset sparse': lambda f: batches(dataset=cells(f)),
    'HDF5Dataset sparse examples': lambda f: examples(dataset=cells(f)),
    'HDF5Dataset examples': lambda f: examples(dataset=parts(f)),
    'NPYDataset': lambda f: batches(dataset=NPYDataset(f / 'pairs.npy')),
    'NPYDataset examples': lambda f: examples(
        dataset=NPYDataset(f / 'pairs.npy')),
    'NPYDataset compressed': lambda f: batches(
        dataset=NPYDataset(f / 'pairs.npz')),
    'TarDataset': lambda f: batches(dataset=TarDataset(f / 'digits.tar')),
    'TarDataset examples': lambda f: examples(
        dataset=TarDataset(f / 'digits.tar', ['cls', 'txt'])),
    'BinaryDataset': lambda f: batches(dataset=tokens(f)),
    'BinaryDataset examples': lambda f: examples(dataset=tokens(f)),
    'FilesDataset': lambda f: batches(dataset=FilesDataset(f / 'files')),
    'FilesDataset examples': lambda f: examples(
        dataset=FilesDataset(f / 'files')),
    'FilesDataset table': lambda f: batches(
        dataset=FilesDataset(f / 'named')),
    'MDSDataset': lambda f: batches(dataset=MDSDataset(f / 'mds')),
    'MDSDataset compressed': lambda f: batches(
        dataset=MDSDataset(f / 'packed')),
    'MDSDataset examples': lambda f: examples(dataset=MDSDataset(f / 'mds')),
    'TFRecordDataset': lambda f: batches(
        dataset=TFRecordDataset(f / 'examples.tfrecord')),
    'TFRecordDataset examples': lambda f: examples(
        dataset=TFRecordDataset(f / 'examples.tfrecord', ['label', 'ids'])),
    'CSVDataset': lambda f: batches(dataset=CSVDataset(f / 'pairs.csv')),
    'CSVDataset examples': lambda f: examples(
        dataset=CSVDataset(f / 'pairs.csv', {'x': ['a', 'b']})),
    'JSONLDataset': lambda f: batches(
        dataset=JSONLDataset(f / 'notes.jsonl')),
    'JSONLDataset masks': lambda f: batches(dataset=JSONLDataset(
        f / 'notes.jsonl', ['tokens', 'pair'], masks=('pair', 'tokens'))),
    'JSONLDataset examples': lambda f: examples(
        dataset=JSONLDataset(f / 'notes.jsonl')),
    'ChainerDataset': lambda f: batches(dataset=chainer()),
    'ChainerDataset examples': lambda f: examples(dataset=chainer()),
    'ProviderDataset': lambda f: DataStream(provided()),
    'StreamDataset': lambda f: batches(
        dataset=Cast(examples(), 'float32').as_dataset()),
    'Windows': lambda f: batches(dataset=windows(f)),
    'Windows examples': lambda f: examples(
        ShuffledExampleScheme(N), windows(f)),
    'Windows targets': lambda f: batches(
        ShuffledScheme(11, 4), next_tokens(f)),
    'Windows targets examples': lambda f: examples(
        ShuffledExampleScheme(11), next_tokens(f)),
    'Windows in memory': lambda f: batches(dataset=Windows(
        arrays(), 3, step=2, pad='zero', pad_before=2, pad_after=2)),
    'Windows of lists': lambda f: batches(dataset=Windows(
        IndexableDataset([[n, n] for n in range(N + 1)]), 2)),
    'Windows H5PYDataset': lambda f: batches(
        ShuffledScheme(7, 4), Windows(hdf5_rows(f, ('gzip', 'targets')), 4)),
    'Windows H5PYDataset vlen': lambda f: batches(
        ShuffledScheme(9, 4), Windows(hdf5_rows(f, ('images',)), 2)),
    'Windows HDF5Dataset': lambda f: batches(
        ShuffledScheme(7, 4), Windows(columns(f), 3)),
    'Runs HDF5Dataset': lambda f: examples(
        ShuffledExampleScheme(4), Runs(columns(f))),
    'Windows remote': lambda f: batches(ShuffledScheme(7, 4), Windows(
        hdf5_rows(f, ('gzip', 'targets'), remote=True), 4)),
    'Windows CSVDataset': lambda f: batches(dataset=Windows(
        CSVDataset(f / 'pairs.csv'), 3, pad='edge', pad_after=2)),
    'Windows JSONLDataset': lambda f: batches(dataset=Windows(
        JSONLDataset(f / 'notes.jsonl', ['pair', 'meta/size']), 3,
        pad='edge', pad_after=2)),
    'Windows StreamDataset': lambda f: batches(
        ShuffledScheme(N - 2, 4), Windows(
            Cast(examples(), 'float32').as_dataset(), 3)),
    'Runs': lambda f: batches(ShuffledScheme(6, 4), runs(f)),
    'Runs examples': lambda f: examples(ShuffledExampleScheme(6), runs(f)),
    'Runs in memory': lambda f: batches(ShuffledScheme(4, 3), Runs(
        arrays(), runs={'lengths': [3, 5, 5, 1]})),
    'Runs of lists': lambda f: examples(ShuffledExampleScheme(2), Runs(
        IndexableDataset(list('abcde')), runs={'offsets': [0, 2, 5]})),
    'PytablesDataset': lambda f: batches(
        dataset=PytablesDataset(str(f / 'data.tables'), ('x',))),
    'Spiral': lambda f: batches(dataset=Spiral(num_examples=N)),
    'SwissRoll': lambda f: batches(dataset=SwissRoll(num_examples=N)),
    # Stages.
    'ToBytes': lambda f: ToBytes(batches(), which_sources=('x',)),
    'Mapping': lambda f: Mapping(batches(), double),
    'Mapping add_sources': lambda f: Mapping(
        batches(), double, add_sources=('u', 'v')),
    'SortMapping': lambda f: Mapping(batches(), SortMapping(second)),
    'Mapping dict': lambda f: Mapping(
        batches(), double_values, mapping_accepts=dict),
    'SeededMapping': lambda f: Mapping(batches(), jitter, seed=3),
    'SeededMapping examples': lambda f: Mapping(
        examples(), jitter, seed=3),
    'SeededMapping by example': lambda f: Batch(Mapping(
        examples(), jitter, seed=3, draws='example'), batch_size=5),
    'Filter': lambda f: Filter(examples(), is_even),
    'Expand': lambda f: Uneven(examples()),
    'Expand batches': lambda f: Uneven(batches()),
    'Expand seed': lambda f: Drawn(examples(), seed=4),
    'Flatten': lambda f: Flatten(batches(), which_sources=('x',)),
    'Flatten examples': lambda f: Flatten(examples(), which_sources=('x',)),
    'ScaleAndShift in float32': lambda f: ScaleAndShift(
        batches(), 1 / 255, 0, dtype='float32'),
    'ScaleAndShift': lambda f: ScaleAndShift(
        batches(), 1 / 255, -1, which_sources=('x',)),
    'Cast': lambda f: Cast(batches(), 'float32'),
    'Cast fused': lambda f: Cast(
        ScaleAndShift(batches(), 1 / 255, 0), 'float32'),
    'ForceFloatX': lambda f: ForceFloatX(Cast(batches(), 'float32')),
    'Cache': lambda f: Cache(batches(), ConstantScheme(3)),
    'Cache refilled': lambda f: Cache(batches(), ConstantScheme(9)),
    'Cache ends early': lambda f: Cache(
        batches(), ConstantScheme(6, times=2)),
    'Cache of Batch': lambda f: Cache(
        Batch(Filter(examples(), is_even), ConstantScheme(3)),
        ConstantScheme(2)),
    'Batch': lambda f: Batch(examples(), ConstantScheme(4)),
    'Batch strict': lambda f: Batch(
        examples(), ConstantScheme(4), strictness=1),
    'Batch ends early': lambda f: Batch(
        sentences(), ConstantScheme(4, num_examples=10)),
    'Batch of Merge': lambda f: Batch(
        Merge((sentences(), examples()), tuple('abc')), ConstantScheme(4)),
    'BalancedBatches': lambda f: BalancedBatches(
        examples(), 1 + numpy.arange(N) % 5, batch_size=5),
    'BalancedBatches rounds': lambda f: BalancedBatches(
        examples(ShuffledExampleScheme(6), runs(f)), batch_size=4,
        cost='attention', accumulate=2),
    'BalancedBatches in order': lambda f: BalancedBatches(
        Chain((Take(examples(), 9), Unpack(batches()))),
        (numpy.arange(N) % 5, numpy.where(numpy.arange(N) == 3, 20, 2)),
        batch_size=2, accumulate=2, limit=9, too_long='alone'),
    'Unpack': lambda f: Unpack(batches()),
    'Unpack of Cache': lambda f: Unpack(Cache(batches(), ConstantScheme(6))),
    'Unpack Batch Unpack': lambda f: Unpack(
        Batch(Unpack(batches()), ConstantScheme(3))),
    'Padding': lambda f: Padding(Batch(sentences(), ConstantScheme(4))),
    'Merge': lambda f: Merge(
        (batches(), batches(SequentialScheme(N, 4))),
        ('a', 'b', 'c', 'd')),
    'Merge with itself': lambda f: merged_with_itself(),
    'Mix': lambda f: Mix((batches(), batches(SequentialScheme(N, 4))),
                         [2, 1], origin_source='from'),
    'Mix to the last': lambda f: Mix(
        {'few': examples(ShuffledExampleScheme(4)), 'many': examples()},
        [{'few': 2, 'many': 1}, {'few': 0, 'many': 1}], stop='last'),
    'Mix for ever': lambda f: Mix(
        (examples(ShuffledExampleScheme(3)), examples()), [1, 1],
        stop='forever', epoch_size=11, origin_source='from'),
    'Mix with itself': lambda f: mixed_with_itself(),
    'Batch of Mix': lambda f: Batch(
        Mix((sentences(), sentences()), seed=4), ConstantScheme(4)),
    'Chain': lambda f: Chain((batches(), batches(SequentialScheme(5, 2)))),
    'Chain with itself': lambda f: chained_with_itself(),
    'Take': lambda f: Take(batches(), 3),
    'Take all': lambda f: Take(sentences(), 99),
    'Rename': lambda f: Rename(batches(), {'x': 'z'}),
    'FilterSources': lambda f: FilterSources(batches(), ('y',)),
    'MultiProcessing': lambda f: Flatten(MultiProcessing(
        Mapping(batches(), double)), which_sources=('x',)),
    'MultiThreading': lambda f: Flatten(MultiThreading(
        Cast(Mapping(batches(), double), 'float32')), which_sources=('x',)),
    'ShuffleBuffer': lambda f: ShuffleBuffer(Unpack(batches()), 3),
    'ShuffleBuffer in order': lambda f: ShuffleBuffer(sentences(), 1),
    # Sparse batches.
    'sparse': lambda f: batches(dataset=sparse()),
    'sparse examples': lambda f: examples(dataset=sparse('int64')),
    'sparse Cast': lambda f: Cast(
        Rename(batches(dataset=sparse()), {'x': 'z'}), 'floatX'),
    'sparse Cast examples': lambda f: ForceFloatX(FilterSources(
        examples(dataset=sparse()), ('x',))),
    'sparse Mapping': lambda f: Mapping(batches(dataset=sparse()), double),
    'sparse SortMapping': lambda f: Mapping(
        batches(dataset=sparse()), SortMapping(second)),
    'sparse Filter': lambda f: Filter(examples(dataset=sparse()), is_even),
    'sparse Batch': lambda f: Batch(
        examples(dataset=sparse('int64')), ConstantScheme(4)),
    'sparse Unpack': lambda f: Unpack(batches(dataset=sparse())),
    'sparse Cache': lambda f: Cache(
        batches(dataset=sparse()), ConstantScheme(3)),
    'sparse Cache refilled': lambda f: Unpack(Cache(
        batches(dataset=sparse()), ConstantScheme(9))),
    'sparse ShuffleBuffer': lambda f: Batch(ShuffleBuffer(
        Unpack(batches(dataset=sparse())), 3), ConstantScheme(4)),
    'sparse Merge': lambda f: Merge(
        (batches(dataset=sparse()), batches(SequentialScheme(N, 4))),
        tuple('abcd')),
    'sparse Mix': lambda f: Mix(
        (batches(dataset=sparse()),
         batches(SequentialScheme(N, 4), sparse())), [2, 1]),
    'sparse MultiProcessing': lambda f: MultiProcessing(
        batches(dataset=sparse())),
    'sparse StreamDataset': lambda f: batches(
        dataset=Cast(examples(dataset=sparse()), 'float64').as_dataset()),
    'ToDense': lambda f: ToDense(
        batches(dataset=sparse()), which_sources=('x',)),
    'ToDense examples': lambda f: ToDense(examples(dataset=sparse())),
    # Shares of ranks.
    'sharded': lambda f: Cast(batches(ShuffledScheme(
        N, 2)).shard(1, 3), 'float32'),
    'ShardedScheme': lambda f: batches(ShuffledScheme(N, 2).shard(1, 3)),
    'sharded dropping': lambda f: batches(BlockShuffledScheme(
        N, 4, block_size=3, drop_last=True, seed=3)).shard(0, 2, 'example'),
    'sharded H5PYDataset': lambda f: hdf5(
        f, ('train',), True, sources=('gzip',)).shard(0, 2),
    'sharded Windows': lambda f: batches(dataset=windows(f)).shard(1, 2),
    'sharded Batch': lambda f: noise(GaussianNoise, .1).shard(
        1, 2, 'example'),
    'sharded BalancedBatches': lambda f: MarkPadding(BalancedBatches(
        examples(), 'y', batch_size=6, accumulate=2).shard(
            1, 3, uneven='pad')),
    'sharded BalancedBatches of Mix': lambda f: BalancedBatches(Mix(
        (examples(), examples()), stop='last'), 'y', batch_size=6,
        accumulate=2).shard(1, 2),
    'sharded BalancedBatches of Take': lambda f: BalancedBatches(
        Take(examples(), 11), 'y', batch_size=4, accumulate=2).shard(1, 2),
    'sharded Unpack': lambda f: Unpack(batches()).shard(1, 3, uneven='pad'),
    'sharded Cache': lambda f: Cache(batches(), ConstantScheme(3)).shard(
        0, 2, 'example', 'drop'),
    'sharded ShuffleBuffer': lambda f: ShuffleBuffer(
        examples(), 3).shard(1, 2),
    'sharded Merge': lambda f: Merge(
        (batches(), batches(SequentialScheme(N, 4))),
        tuple('abcd')).shard(0, 2),
    'sharded Filter': lambda f: Filter(examples(), is_even).shard(0, 2),
    'sharded TextFile': lambda f: text(f).shard(1, 2),
    'sharded sparse Cache': lambda f: Cache(
        batches(dataset=sparse()), ConstantScheme(5)).shard(
            1, 2, 'example', 'pad'),
    'sharded sparse Batch': lambda f: Batch(
        examples(dataset=sparse()), ConstantScheme(5)).shard(
            0, 2, 'example', 'uneven'),
    'sharded sparse Unpack': lambda f: Unpack(
        batches(dataset=sparse())).shard(1, 3, uneven='pad'),
    'sharded sparse MarkPadding': lambda f: MarkPadding(
        batches(dataset=sparse()).shard(1, 3, 'example', 'pad')),
    'MarkPadding': lambda f: MarkPadding(
        batches().shard(1, 3, uneven='pad')),
    'MarkExamples': lambda f: MarkExamples(Merge(
        (batches(), batches(SequentialScheme(N, 4))), tuple('abcd')),
        of='c'),
    'MarkExamples examples': lambda f: MarkExamples(Unpack(Cache(
        Batch(ShuffleBuffer(sentences(), 5), ConstantScheme(4)),
        ConstantScheme(3)))),
    'MarkExamples of bad records': lambda f: MarkExamples(
        undamaged(ShuffledScheme(N, 4))),
    'MarkExamples of Pack': lambda f: MarkExamples(
        Pack(text(f), 9, batch_size=2, window=3)),
    'MarkExamples of MixUp': lambda f: MarkExamples(
        MixUp(Cast(stacked(), 'float32', which_sources=('image',)), N,
              target_source='number', seed=1, probability=.5),
        partner='partner'),
    'sharded MarkExamples': lambda f: MarkExamples(Batch(
        examples(), ConstantScheme(4))).shard(1, 3, 'example', 'pad'),
    'sharded MarkExamples of Filter': lambda f: Cast(MarkExamples(
        Filter(examples(), is_even)), 'float32', which_sources=('x',)).shard(
            0, 2),
    # Images.
    'ImagesFromBytes': lambda f: images(),
    'ImagesFromBytes skipping': lambda f: images((2, 5), on_error='skip'),
    'bad records': lambda f: undamaged(ShuffledScheme(N, 4)),
    'bad records of examples': lambda f: Batch(
        undamaged(ShuffledExampleScheme(N)), ConstantScheme(3)),
    'sharded bad records': lambda f: undamaged(
        ShuffledScheme(N, 4)).shard(1, 2),
    'Unpack of bad records': lambda f: Unpack(
        undamaged(SequentialScheme(N, 4))),
    'ImagesFromBytes examples': lambda f: ImagesFromBytes(examples(
        dataset=IndexableDataset([image_file(n) for n in range(N)]))),
    'MinimumImageDimensions': lambda f: MinimumImageDimensions(
        images(), (6, 6), 'bilinear', which_sources='image'),
    'Resize': lambda f: stacked(),
    'CenterCrop': lambda f: CenterCrop(
        images(), (3, 4), which_sources='image'),
    'RandomFixedSizeCrop': lambda f: RandomFixedSizeCrop(
        stacked(), (3, 4), which_sources='image'),
    'RandomFixedSizeCrop of images': lambda f: RandomFixedSizeCrop(
        images(), (3, 4), which_sources='image'),
    'RandomFixedSizeCrop seeded': lambda f: RandomFixedSizeCrop(
        images(), (3, 4), seed=3, which_sources='image'),
    'Random2DRotation': lambda f: Random2DRotation(
        images(), which_sources='image'),
    'Random2DRotation seeded': lambda f: Random2DRotation(
        stacked(), seed=3, which_sources='image'),
    'RandomResizedCrop': lambda f: RandomResizedCrop(
        images(), (4, 4), which_sources='image'),
    'RandomResizedCrop filters': lambda f: RandomResizedCrop(
        pairs_of_images(), (4, 4), seed=2,
        resample={'image': 'bilinear', 'mask': 'nearest'},
        which_sources=('image', 'mask')),
    'MixUp': lambda f: MixUp(
        Cast(stacked(), 'float32', which_sources=('image',)), N,
        target_source='number', seed=1),
    'CutMix': lambda f: CutMix(
        stacked(), N, target_source='number', seed=1),
    'CutMix pairs': lambda f: CutMix(
        pairs_of_images(), N, target_source='number', probability=.5),
    'RandomHorizontalFlip': lambda f: RandomHorizontalFlip(
        images(), which_sources='image'),
    'RandomHorizontalFlip by example': lambda f: RandomHorizontalFlip(
        images(), which_sources='image', draws='example'),
    'RandomFixedSizeCrop by example': lambda f: RandomFixedSizeCrop(
        Cache(stacked(), ConstantScheme(3)), (5, 4), which_sources='image',
        draws='example'),
    'Normalize': lambda f: Normalize(
        stacked(), .5, .2, 1 / 255, which_sources='image'),
    # Numbers.
    'GaussianNoise': lambda f: noise(GaussianNoise, .1),
    'GaussianNoise by example': lambda f: GaussianNoise(
        Unpack(Cast(batches(), 'float32', which_sources=('x',))), .1,
        which_sources=('x',), draws='example'),
    'UniformNoise': lambda f: noise(UniformNoise, -1, 1),
    'Dropout': lambda f: noise(Dropout, .5),
    'SaltAndPepper': lambda f: noise(SaltAndPepper, .5, 0, 1),
    'Standardization': lambda f: Standardization(
        batches(), fit_standardization(batches(), 'x')),
    'Impute': lambda f: Impute(gaps(), fit_impute(gaps(), 'x', 'median')),
    'Impute masked': lambda f: Impute(gaps(), fit_impute(
        gaps(), 'y', 'most-frequent', mask='y_mask')),
    'Impute text': lambda f: Impute(gaps(True), fit_impute(
        gaps(), 'text', 'most-frequent')),
    'LabelEncoding': lambda f: LabelEncoding(
        batches(), fit_label_encoding(batches(), 'y')),
    'LabelEncoding examples': lambda f: LabelEncoding(
        examples(), fit_label_encoding(batches(), 'y')),
    'Whitening': lambda f: white('zca'),
    'Whitening components': lambda f: white('pca'),
    # Sequences and text.
    'TextFile': text,
    'TextFile batches': lambda f: Padding(Batch(
        text(f, level='character', preprocess=str.lower),
        ConstantScheme(3))),
    'Window': lambda f: Window(1, 2, 2, True, sentences()),
    'NGrams': lambda f: NGrams(2, Unpack(Batch(
        sentences(), ConstantScheme(4)))),
    'BucketBatch': lambda f: BucketBatch(text(f), 12, pool_size=5),
    'Chunk': lambda f: Chunk(sentences(), 2, target_source='next'),
    'Chunk shifted': lambda f: Chunk(
        text(f), 4, stride=3, last='shift'),
    'Pack of Chunk': lambda f: Pack(
        Chunk(text(f), 3, target_source='next'), 5, window=2),
    'Pack': lambda f: Pack(text(f), 9, window=3),
    'Pack batches': lambda f: Pack(
        Batch(sentences(), ConstantScheme(4)), 4, batch_size=2,
        too_long='split', padding_value=-1),
    # Stages as users write them.
    'Noisy': lambda f: Noisy(batches()),
    'Noisy left-overs': lambda f: Batch(
        Unpack(Noisy(batches())), ConstantScheme(3)),
    'Running': lambda f: Running(Noisy(examples())),
}

# The generator of one of their stages goes on from one epoch to the next, so
# what it draws depends on how far the epochs before it were read.
DRAWING = ('RandomFixedSizeCrop', 'RandomFixedSizeCrop of images',
           'Random2DRotation', 'Mix for ever', 'Noisy', 'Noisy left-overs',
           'Running')
# Pipelines that seed the global generators, which threads share.
REFUSED_BY_THREADS = ('SeededMapping', 'SeededMapping examples',
                      'SeededMapping by example')
DRAWING_NOTHING = [name for name in PIPELINES if name not in DRAWING]


def build(name, folder):
    """Return a new pipeline."""
    return PIPELINES[name](Path(folder))


def built_with(name, folder):
    """Return a new pipeline, and how each object was constructed: the class,
    the arguments and the keywords."""
    original, calls = NamedArguments.__new__, []

    def record(cls, *args, **kwargs):
        calls.append((cls, args, kwargs))
        return original(cls, *args, **kwargs)
    with mock.patch.object(
            NamedArguments, '__new__', staticmethod(record)):
        return build(name, folder), calls
