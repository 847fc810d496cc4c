"""Sparse batches in stages: the same as dense ones, or a clear error."""
import io
import pickle
import random

import numpy
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array
from support.sparse_rows import (SparseDataset, assert_same_rows, random_csr,
                                 sparse_batches)

import fuel
from fuel.datasets import IndexableDataset, IterableDataset, Runs, Windows
from fuel.profiling import profile
from fuel.schemes import (ConstantScheme, SequentialExampleScheme,
                          SequentialScheme, ShuffledScheme)
from fuel.server import Server
from fuel.streams import DataStream, ServerDataStream
from fuel.transformers import (Batch, Cache, Cast, Chain, Filter,
                               FilterSources, Flatten, ForceFloatX, Mapping,
                               Merge, Mix, MultiProcessing, Padding, Rename,
                               ScaleAndShift, SortMapping, Take, ToDense,
                               Unpack)
from fuel.transformers.defaults import ToBytes
from fuel.transformers.image import ImagesFromBytes, Resize
from fuel.transformers.label_encoding import (LabelEncoding,
                                              LabelEncodingParameters,
                                              fit_label_encoding)
from fuel.transformers.noise import (Dropout, GaussianNoise, SaltAndPepper,
                                     UniformNoise)
from fuel.transformers.sequences import (BucketBatch, Chunk, NGrams, Pack,
                                         Window)
from fuel.transformers.shuffling import ShuffleBuffer
from fuel.transformers.standardization import (Standardization,
                                               fit_standardization)
from fuel.transformers.whitening import Whitening, fit_whitening
from fuel.transport.batches import dump_batch, load_batch
from fuel.utils.sparse import is_sparse, make_csr, to_dense
from fuel.wire import decode, encode

N = 10


def batches(rows=None, scheme=None):
    """Return a stream of sparse batches."""
    rows = random_csr(N, 5) if rows is None else rows
    return DataStream(SparseDataset(rows), iteration_scheme=(
        scheme or SequentialScheme(rows.shape[0], 4)))


def examples(rows=None):
    """Return a stream of sparse examples."""
    rows = random_csr(N, 5) if rows is None else rows
    return DataStream(SparseDataset(rows), iteration_scheme=(
        SequentialExampleScheme(rows.shape[0])))


def vectors(scheme=None):
    """Return the stream with the dense rows."""
    return DataStream(IndexableDataset(
        {'x': random_csr(N, 5).toarray(), 'y': numpy.arange(N)}),
        iteration_scheme=scheme or SequentialScheme(N, 4))


def parameters(stream, fit):
    """Return parameters of a stage, fitted to the dense rows."""
    return stream, fit(vectors(), 'x')


REFUSING = {
    'ScaleAndShift': lambda: ScaleAndShift(batches(), 2, 0),
    'ScaleAndShift examples': lambda: ScaleAndShift(examples(), 2, 0),
    'Cast of ScaleAndShift': lambda: Cast(
        ScaleAndShift(batches(), 2., 0), 'float32'),
    'Flatten': lambda: Flatten(batches()),
    'Flatten examples': lambda: Flatten(examples()),
    'Padding': lambda: Padding(batches()),
    'ToBytes': lambda: ToBytes(batches()),
    'ToBytes examples': lambda: ToBytes(examples()),
    'ImagesFromBytes': lambda: ImagesFromBytes(batches()),
    'Resize': lambda: Resize(examples(), (2, 2)),
    'GaussianNoise': lambda: GaussianNoise(batches(), 1),
    'UniformNoise': lambda: UniformNoise(examples(), 0, 1),
    'Dropout': lambda: Dropout(batches(), .5),
    'SaltAndPepper': lambda: SaltAndPepper(batches(), .5, 0, 1),
    'Standardization': lambda: Standardization(
        *parameters(batches(), fit_standardization)),
    'Standardization examples': lambda: Standardization(
        *parameters(examples(), fit_standardization)),
    'Whitening': lambda: Whitening(*parameters(batches(), fit_whitening)),
    'LabelEncoding': lambda: LabelEncoding(
        batches(), LabelEncodingParameters('x', (1, 2))),
    'Window': lambda: Window(0, 1, 1, True, FilterSources(
        examples(), ('x',))),
    'NGrams': lambda: NGrams(2, FilterSources(examples(), ('x',))),
    'Chunk': lambda: Chunk(examples(), 2),
    'BucketBatch': lambda: BucketBatch(examples(), 9),
    'Pack': lambda: Pack(examples(), 4),
    'Pack batches': lambda: Pack(batches(), 4),
}


@pytest.mark.parametrize('name', REFUSING)
def test_stage_that_needs_arrays_says_how_to_make_them(name):
    """Named by its name, and the source by its own."""
    stage = REFUSING[name]()
    with pytest.raises(TypeError, match=(
            r"does not take sparse data, but source 'x' .* "
            r"ToDense\(stream, which_sources=\('x',\)\)")) as caught:
        next(stage.get_epoch_iterator())
    assert str(caught.value).startswith(name.split()[-1] if (
        'Cast of' in name) else name.split()[0])


@pytest.mark.parametrize('fit', [
    fit_standardization, fit_whitening, fit_label_encoding])
@pytest.mark.parametrize('stream', [batches, examples])
def test_functions_that_fit_say_how_to_make_arrays(fit, stream):
    """The stages say the same."""
    with pytest.raises(TypeError, match=r'Fitting .* ToDense\(stream'):
        fit(stream(), 'x')


def test_stages_leave_other_sources_alone():
    """Sparse ones pass through stages that transform others."""
    stage = ScaleAndShift(batches(), 2, 1, which_sources=('y',))
    x, y = next(stage.get_epoch_iterator())
    assert_same_rows(random_csr(N, 5).toarray()[:4], x)
    assert_array_equal([1, 3, 5, 7], y)


@pytest.mark.parametrize('dtype', ['float32', 'float16', 'int8', 'bool'])
def test_to_dense_makes_arrays_of_the_same_type(dtype):
    """Batches become matrices, examples vectors, which share no memory."""
    rows = random_csr(N, 5, dtype)
    dense = rows.toarray() if dtype != 'float16' else to_dense(rows)
    stage = ToDense(batches(rows), which_sources='x')
    assert ('batch', 'feature') == stage.axis_labels['x']
    found = list(stage.get_epoch_iterator())
    assert [(4, 5), (4, 5), (2, 5)] == [x.shape for x, _ in found]
    assert_array_equal(dense, numpy.concatenate([x for x, _ in found]))
    for x, _ in [*found, *ToDense(examples(rows)).get_epoch_iterator()]:
        assert type(x) is numpy.ndarray
        assert dtype == x.dtype
        assert x.flags.writeable
    assert_array_equal(dense, [x for x, _ in ToDense(
        examples(rows)).get_epoch_iterator()])


def test_to_dense_adds_what_is_stored_twice():
    """SciPy does the same."""
    rows = csr_array(([1., 2., 4.], [1, 1, 0], [0, 2, 3]), (2, 2))
    assert_array_equal([[0, 3], [4, 0]], next(ToDense(
        batches(rows)).get_epoch_iterator())[0])


def test_to_dense_passes_other_data_through():
    """Dense data of a named source pass, too."""
    stage = ToDense(vectors(), which_sources=('x', 'y'))
    for expected, found in zip(vectors(), stage, strict=True):
        assert_array_equal(expected[0], found[0])
        assert_array_equal(expected[1], found[1])
    with pytest.raises(ValueError, match='nothing'):
        ToDense(batches(), which_sources=('nothing',))


def test_descriptions_say_what_is_sparse():
    """They show the shape that dense data would have."""
    text = str(ToDense(Cast(Batch(Unpack(batches()), batch_size=3),
                            'float64', which_sources=('x',))))
    assert [line.strip().partition(';')[0] for line in text.splitlines()] == [
        'ToDense: x float64 (3, 5) [batch, feature], y int64 (3,) [batch]',
        ('Cast: x sparse float64 (3, 5) [batch, feature], '
         'y int64 (3,) [batch]'),
        ('Batch: x sparse float32 (3, 5) [batch, feature], '
         'y int64 (3,) [batch]'),
        'Unpack: x sparse float32 (5,) [feature], y int64 ()',
        ('DataStream: x sparse float32 (4, 5) [batch, feature], '
         'y int64 (4,) [batch]'),
        'SparseDataset: x sparse float32 (5,) [feature], y int64 ()']
    dataset = SparseDataset(random_csr(N, 20000))
    assert 'x sparse float32 (20000,)' in str(dataset)


def test_data_set_gives_rows():
    """Requests are for one, several, no, and all rows in order."""
    rows = random_csr(N, 5)
    dataset = SparseDataset(rows)
    dense = rows.toarray()
    assert_same_rows(dense[3:4], dataset[3][0], rows)
    assert_same_rows(dense[[7, 1]], dataset[[7, 1]][0], rows)
    assert_same_rows(dense[2:5], dataset[2:5][0], rows)
    assert_same_rows(dense[:0], dataset[:0][0], rows)
    for place, (x, y) in enumerate(dataset):
        assert_same_rows(dense[place:place + 1], x, rows)
        assert place == y


@pytest.mark.parametrize('build', [
    lambda dataset: Windows(dataset, 3), Runs,
    lambda dataset: Runs(dataset, runs={'lengths': [4, 6]})])
def test_runs_and_windows_are_of_dense_rows(build):
    """The types need not be known before the rows are read."""
    with pytest.raises(TypeError, match=r'ToDense\(.*\.as_dataset\(\)'):
        build(SparseDataset(random_csr(N, 5)))

    class Unknown(SparseDataset):
        def known_types(self):
            return {}

    with pytest.raises(TypeError, match=r'ToDense\(.*\.as_dataset\(\)'):
        build(Unknown(random_csr(N, 5)))[0]
    dense = build(ToDense(batches()).as_dataset())[0]
    assert numpy.array_equal(random_csr(N, 5).toarray()[:len(dense[1])],
                             dense[0])
    assert len(build(SparseDataset(random_csr(N, 5), sources=('y',)))[0]) == 1


def test_rows_in_memory_are_refused_by_indexable():
    """The error says which data set to use."""
    with pytest.raises(TypeError, match='the column CSR'):
        IndexableDataset({'x': random_csr(N, 5)})


def test_examples_of_different_columns_make_no_batch():
    """The numbers of columns are in the error."""
    stream = Batch(DataStream(IterableDataset(
        {'x': [csr_array((1, 3)), csr_array((1, 4))]})), batch_size=2)
    with pytest.raises(ValueError, match='of 3 and of 4 columns'):
        next(stream.get_epoch_iterator())


def test_unequal_sources_are_counted_without_len():
    """The rows of the sparse one count."""
    stream = Unpack(Mapping(batches(), lambda data: (data[0], data[1][:2])))
    with pytest.raises(ValueError, match='x: 4, y: 2'):
        next(stream.get_epoch_iterator())


@pytest.mark.parametrize('dtype', ['S3', 'O', 'M8[s]'])
def test_sparse_batches_are_cast_to_numbers_alone(dtype):
    """SciPy has no others."""
    with pytest.raises(TypeError, match='sparse batches hold numbers'):
        next(Cast(batches(), dtype, which_sources=(
            'x',)).get_epoch_iterator())


def test_casts_of_sparse_batches():
    """They are cast to a type, to floatX, and to floatX if floating."""
    rows = random_csr(N, 5, 'float64', 'int64')
    fuel.config.floatX = 'float32'
    try:
        for stage in (Cast(batches(rows), 'floatX'),
                      ForceFloatX(batches(rows))):
            x, _ = next(stage.get_epoch_iterator())
            assert numpy.dtype('float32') == x.data.dtype
            assert numpy.dtype('int64') == x.indices.dtype
            assert_array_equal(rows.toarray()[:4], x.toarray())
        x, _ = next(ForceFloatX(batches(
            random_csr(N, 5, 'int16'))).get_epoch_iterator())
        assert numpy.dtype('int16') == x.data.dtype
    finally:
        del fuel.config.floatX


def test_images_that_are_left_out_take_their_sparse_rows_with_them():
    """The sources of a shortened batch fit together."""
    from PIL import Image
    file = io.BytesIO()
    Image.new('L', (2, 2)).save(file, 'png')

    def add_images(data):
        return ([b'damaged', *[file.getvalue()] * 3],)

    stream = Mapping(batches(scheme=SequentialScheme(4, 4)), add_images,
                     add_sources=('image',))
    x, y, image = next(ImagesFromBytes(
        stream, on_error='skip', which_sources=('image',),
    ).get_epoch_iterator())
    assert_same_rows(random_csr(N, 5).toarray()[1:4], x)
    assert_array_equal([1, 2, 3], y)
    assert len(image) == 3


def test_errors_name_the_example():
    """The batch has no length."""
    def fail(data):
        raise ValueError('no')

    with pytest.raises(ValueError, match='no') as caught:
        next(Mapping(batches(), fail).get_epoch_iterator())
    assert 'examples [0, 1, 2, 3] of the data set' in str(
        caught.value.__notes__)


def test_profile_counts_examples_and_bytes():
    """The bytes are those of the three arrays."""
    rows = random_csr(N, 5)
    stage = Cast(batches(rows), 'float64', which_sources=('x',))
    top, bottom = profile(stage, 3, warm_up=0).stages
    assert top.examples == bottom.examples == N
    assert rows.data.nbytes * 2 == top.written
    assert bottom.written > rows.data.nbytes + rows.indices.nbytes


def doubled(data):
    """Return an item with its rows doubled, as SciPy does not do it for all
    types of values and of indices."""
    x, *others = data
    x = make_csr(2 * x.data, x.indices, x.indptr, x.shape) if is_sparse(
        x) else 2 * x
    return (x, *others)


def by_number(data):
    """Return what to sort by."""
    return -int(data[1])


def is_kept(data):
    """Tell whether an example is kept."""
    return int(data[1]) % 3 != 0


# The stages of a chain for batches and for examples, and their results.
OF_BATCHES = [
    lambda s, d: Cast(s, 'float32', which_sources=('x',)),
    lambda s, d: Cast(s, 'int16', which_sources=('x',)),
    lambda s, d: ForceFloatX(s),
    lambda s, d: Rename(Rename(s, {'x': 'z'}), {'z': 'x'}),
    lambda s, d: FilterSources(s, ('x', 'y')),
    lambda s, d: Mapping(s, doubled),
    lambda s, d: Mapping(s, SortMapping(by_number)),
    lambda s, d: Cache(s, ConstantScheme(d.randint(1, 5))),
    lambda s, d: Unpack(s),
    lambda s, d: Take(s, d.randint(1, 4)),
    lambda s, d: Chain((s, s)),
    lambda s, d: Mix((s, s), [2, 1], seed=3, stop='last'),
    lambda s, d: FilterSources(
        Merge((s, s), ('x', 'y', 'a', 'b')), ('x', 'b')).apply(
            Rename, {'b': 'y'}),
]
OF_EXAMPLES = [
    OF_BATCHES[0], OF_BATCHES[2], OF_BATCHES[5], OF_BATCHES[9],
    OF_BATCHES[10], OF_BATCHES[11], OF_BATCHES[12],
    lambda s, d: Filter(s, is_kept),
    lambda s, d: Batch(s, batch_size=d.randint(1, 5)),
    lambda s, d: ShuffleBuffer(s, d.randint(1, 5), seed=7),
]


def chain(stream, seed):
    """Return a stream with some stages, the same for the same seed."""
    draw = random.Random(seed)
    for _ in range(draw.randint(1, 5)):
        stages = OF_EXAMPLES if stream.produces_examples else OF_BATCHES
        stream = draw.choice(stages)(stream, draw)
    return stream


def through_memory(item):
    """Return an item as it comes out of shared memory."""
    description, buffers = dump_batch(item, 64)
    return load_batch(description, [buffer.copy() for buffer in buffers])


def over_the_wire(item):
    """Return an item as it comes from a server."""
    items, buffers = encode(item)
    return decode(items, [bytes(buffer) for buffer in buffers])


def assert_same_epoch(dense, sparse, rows):
    """Compare items of dense rows with those of sparse ones."""
    for expected, found in zip(dense, sparse, strict=True):
        assert is_sparse(found[0])
        assert found[0].indices.dtype.isnative
        assert rows.indices.dtype == found[0].indices.dtype
        x = numpy.atleast_2d(expected[0])
        assert x.dtype == found[0].data.dtype
        assert_same_rows(x, found[0])
        assert_array_equal(expected[1], found[1])


@given(sparse_batches(2), st.integers(0, 10 ** 6), st.sampled_from([
    tuple, through_memory, over_the_wire, lambda item: pickle.loads(
        pickle.dumps(item))]))
def test_chains_of_stages_do_what_they_do_to_dense_rows(rows, seed, carry):
    """Chains of sparse and dense rows give the same values."""
    count = rows.shape[0]
    scheme = ShuffledScheme(count, 1 + seed % 4, seed=seed)
    dense = chain(DataStream(IndexableDataset(
        {'x': to_dense(rows), 'y': numpy.arange(count)}),
        iteration_scheme=scheme), seed)
    sparse = chain(batches(rows, ShuffledScheme(
        count, 1 + seed % 4, seed=seed)), seed)
    assert_same_epoch(dense.get_epoch_iterator(), map(
        carry, sparse.get_epoch_iterator()), rows)


@given(sparse_batches(2), st.integers(0, 10 ** 6), st.integers(0, 6))
def test_chains_are_continued(rows, seed, step):
    """They are, from the state after any item."""
    def build():
        return chain(batches(rows), seed)

    expected = list(build().get_epoch_iterator())
    assume(step < len(expected))
    stream = build()
    epoch = stream.get_epoch_iterator()
    for _ in zip(range(step), epoch, strict=False):
        pass
    state = epoch.state_dict()
    other = build()
    other.load_state_dict(state)
    rest = list(other.get_epoch_iterator())
    for one, two in zip(expected[step:], rest, strict=True):
        assert_same_rows(to_dense(one[0]), two[0], one[0])


@pytest.mark.parametrize('index', ['int32', 'int64'])
@pytest.mark.parametrize('columns', [5, 3000])
@pytest.mark.parametrize('where', ['worker', 'workers', 'server', 'memory'])
def test_processes_hand_over_sparse_batches(where, columns, index):
    """Small ones and such as lie in shared memory."""
    rows = random_csr(64, columns, index=index)
    stream = batches(rows, SequentialScheme(64, 16))
    expected = [rows.toarray()[start:start + 16]
                for start in range(0, 64, 16)]
    if where in ('worker', 'workers'):
        with MultiProcessing(stream, num_workers=(
                1 + (where == 'workers'))) as remote:
            found = list(remote.get_epoch_iterator())
    else:
        with Server(stream, port=0) as server, ServerDataStream(
                ('x', 'y'), produces_examples=False, port=server.port,
                shared_memory=where == 'memory') as remote:
            found = list(remote.get_epoch_iterator())
    for one, (x, _) in zip(expected, found, strict=True):
        assert_same_rows(one, x, rows)
        x.data[:] = 1
        x.indices[:] = 0
