"""NumPy's masked arrays in every stage: as the table of the manual says."""
import copy
import multiprocessing
import pickle
import re

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy import ma
from PIL import Image
from support.listed_stages import (
    CLASSES, LISTED, ROOT, STAGES, line_of, rows_of_table)

import fuel
from fuel.datasets import (IndexableDataset, IterableDataset, Runs, Windows,
                           random_split)
from fuel.schemes import (BalancedScheme, ConstantScheme,
                          SequentialExampleScheme, ShuffledExampleScheme,
                          ShuffledScheme)
from fuel.server import Server
from fuel.streams import DataStream, ServerDataStream
from fuel.testing.data import arrays_in, freeze, overwrite
from fuel.transformers import (BackgroundProcess, BalancedBatches, Batch,
                               Cache, Cast, Chain,
                               Filter, FilterSources, Flatten, ForceFloatX,
                               Mapping, MarkExamples, MarkPadding, Merge, Mix,
                               MultiProcessing, MultiThreading, Padding,
                               Rename, ScaleAndShift, SortMapping,
                               SourcewiseTransformer, Take, ToDense, Unpack)
from fuel.transformers.defaults import ToBytes, uint8_pixels_to_floatX
from fuel.transformers.image import (CenterCrop, CutMix, ImagesFromBytes,
                                     MinimumImageDimensions, MixUp, Normalize,
                                     Random2DRotation, RandomFixedSizeCrop,
                                     RandomHorizontalFlip, RandomResizedCrop,
                                     Resize)
from fuel.transformers.imputation import Impute, ImputeParameters, fit_impute
from fuel.transformers.label_encoding import (LabelEncoding,
                                              LabelEncodingParameters,
                                              fit_label_encoding)
from fuel.transformers.noise import (Dropout, GaussianNoise, SaltAndPepper,
                                     UniformNoise)
from fuel.transformers.sequences import (BucketBatch, Chunk, NGrams, Pack,
                                         Window)
from fuel.transformers.shuffling import ShuffleBuffer
from fuel.transformers.standardization import (Standardization,
                                               StandardizationParameters,
                                               fit_standardization)
from fuel.transformers.whitening import (Whitening, WhiteningParameters,
                                         fit_whitening)
from fuel.wire import encode

N = 12
REMEDY = r'mask.*Impute and fit_impute.*numpy\.ma\.filled'

# The table of the manual


def table():
    """Return the names in each row of the table, by its first cell."""
    return {head.split(',')[0]: set(re.findall(r'`(\w+)`', cell))
            for head, cell in rows_of_table(
                'your_data', '.. _masked_arrays:')}


def takes_masked(name, known):
    """Return whether neither a class nor one of its bases refuses masks."""
    return not any([False] == known[one][1] for one in line_of(name, known)
                   if one in known)


@pytest.mark.parametrize('name', STAGES)
def test_stage_of_the_api_index_is_in_the_table(name):
    """It is in the one row that agrees with its declaration."""
    rows = [row for row, names in table().items() if name in names]
    assert 1 == len(rows)
    if name != 'ServerDataStream':
        assert (rows[0] != 'is refused') == takes_masked(name, CLASSES)
    stage = globals().get(name)
    if 'Transformer' in line_of(name, CLASSES) and stage is not None:
        assert stage.takes_masked == takes_masked(name, CLASSES)


def test_functions_of_the_api_index_are_in_the_table():
    """With the stages there are functions that fit or make them."""
    page = (ROOT / 'docs' / 'api' / 'transformers.rst').read_text('utf-8')
    functions = {name for name in re.findall(
        r'^   \S+\.(\w+)$', page, re.MULTILINE) if name[0].islower()}
    assert {'fit_impute', 'uint8_pixels_to_floatX'} < functions
    assert functions <= set().union(*table().values())
    assert set().union(*table().values()) <= LISTED


# The data

def hidden(seed=0, shape=(N, 3), dtype='float64', share=.3):
    """Return a masked array with something else under the mask."""
    rng = numpy.random.RandomState(seed)
    mask = rng.rand(*shape) < share
    return ma.masked_array(rng.randint(1, 9, shape).astype(dtype), mask=mask)


def batches(x, size=5, **others):
    """Return a stream of batches of a source ``x``."""
    return DataStream(IndexableDataset({'x': x, **others}), batch_size=size)


def examples(x, **others):
    """Return a stream of examples of a source ``x``."""
    return DataStream(IndexableDataset({'x': x, **others}),
                      iteration_scheme=SequentialExampleScheme(len(x)))


def items(stream):
    """Return what a stream gives of its first source."""
    with stream:
        return [data[0] for data in stream.get_epoch_iterator()]


def assert_equal_masked(expected, found):
    """Compare types, masks, and what is not hidden."""
    assert isinstance(found, ma.MaskedArray)
    assert expected.dtype == found.dtype
    assert expected.shape == found.shape
    mask = ma.getmaskarray(expected)
    assert numpy.array_equal(mask, ma.getmaskarray(found))
    assert numpy.array_equal(ma.getdata(expected)[~mask],
                             ma.getdata(found)[~mask])


MEANS = StandardizationParameters('x', (1., 2., 3.), (2., 4., 8.), (3,), 9)
CLASS_NAMES = LabelEncodingParameters('x', tuple(range(300)))


def whitening(kind):
    """Return parameters in which each component depends on all numbers."""
    matrix = numpy.array([[1., 2, 3], [4, 5, 6], [7, 8, 1]])
    return WhiteningParameters(
        kind, numpy.zeros(3), matrix, (3,), {'source': 'x'})


# Stages that keep a mask, each as a function of the data.
KEPT = {
    'Cast': lambda x: Cast(batches(x), 'float32'),
    'ForceFloatX': lambda x: ForceFloatX(batches(x.astype('float32'))),
    'ScaleAndShift': lambda x: ScaleAndShift(batches(x), .5, 1),
    'ScaleAndShift by integers': lambda x: ScaleAndShift(
        batches(x.astype('int32')), 3, 1),
    'ScaleAndShift by arrays': lambda x: ScaleAndShift(
        batches(x), numpy.arange(1, 4), [1., 2., 3.]),
    'ScaleAndShift to a type': lambda x: ScaleAndShift(
        batches(x.astype('uint8')), .5, 1, dtype='float32'),
    'ScaleAndShift of examples': lambda x: ScaleAndShift(
        examples(x), .5, 1),
    'Cast behind ScaleAndShift': lambda x: Cast(ScaleAndShift(
        batches(x.astype('uint8')), .5, 1), 'float32'),
    'Flatten': lambda x: Flatten(batches(x[:, None])),
    'Flatten of examples': lambda x: Flatten(examples(x[:, None])),
    'ToDense': lambda x: ToDense(batches(x)),
    'Standardization': lambda x: Standardization(batches(x), MEANS),
    'Standardization of examples': lambda x: Standardization(
        examples(x), MEANS),
    'LabelEncoding': lambda x: LabelEncoding(
        batches(x.astype('int64')), CLASS_NAMES),
    'LabelEncoding of examples': lambda x: LabelEncoding(
        examples(x[:, 0].astype('int64')), CLASS_NAMES),
    'Whitening': lambda x: Whitening(batches(x), whitening('zca')),
    'Whitening by PCA': lambda x: Whitening(batches(x), whitening('pca')),
    'Whitening of examples': lambda x: Whitening(
        examples(x), whitening('pca')),
    'Dropout': lambda x: Dropout(batches(x), .5, seed=1),
    'GaussianNoise': lambda x: GaussianNoise(batches(x), .5, seed=1),
    'GaussianNoise of examples': lambda x: GaussianNoise(
        examples(x[:, 0]), .5, seed=1),
    'SaltAndPepper': lambda x: SaltAndPepper(batches(x), .5, seed=1),
    'UniformNoise': lambda x: UniformNoise(
        batches(x), -1, 1, seed=1),
    'BucketBatch': lambda x: BucketBatch(
        examples(x), 9, pool_size=N, length_source='x', seed=1),
    'Chunk': lambda x: Chunk(examples(x), 2),
    'NGrams': lambda x: NGrams(2, examples(x)),
    'Window': lambda x: Window(1, 2, 2, True, examples(x)),
    'FilterSources': lambda x: FilterSources(batches(x, y=x), ('x',)),
    'Rename': lambda x: Rename(batches(x), {'x': 'y'}),
    'Merge': lambda x: Merge((batches(x), batches(x)), ('x', 'y')),
    'MarkExamples': lambda x: MarkExamples(batches(x)),
    'MarkPadding': lambda x: MarkPadding(batches(x)),
    'Batch': lambda x: Batch(examples(x), batch_size=5),
    'BalancedBatches': lambda x: BalancedBatches(
        examples(x), numpy.arange(len(x)), batch_size=5, accumulate=2),
    'Batch of single values': lambda x: Batch(
        examples(x[:, 0].astype('int16')), batch_size=5),
    'Batch of one after the other': lambda x: Batch(
        DataStream(IterableDataset({'x': x[:, 0]})), batch_size=5),
    'Unpack': lambda x: Unpack(batches(x)),
    'Unpack of single values': lambda x: Unpack(
        batches(x[:, 0].astype('int16'))),
    'Cache': lambda x: Cache(batches(x), ConstantScheme(4)),
    'Take': lambda x: Take(batches(x), 2),
    'Chain': lambda x: Chain((batches(x), batches(x))),
    'Mix': lambda x: Mix((batches(x), batches(x)), (1, 1), seed=1),
    'ShuffleBuffer': lambda x: ShuffleBuffer(examples(x), 5, seed=1),
    'MultiProcessing': lambda x: MultiProcessing(batches(x)),
    'MultiProcessing of large batches': lambda x: MultiProcessing(
        Cast(batches(x.repeat(3000, axis=1)), 'float32')),
    'MultiThreading': lambda x: MultiThreading(Cast(batches(x), 'f4'), 2),
    'MultiProcessing of examples': lambda x: MultiProcessing(
        examples(x[:, 0])),
    'DataStream': batches,
    'DataStream of examples': examples,
    'DataStream of single values': lambda x: examples(x[:, 0]),
    'DataStream in another order': lambda x: DataStream(
        IndexableDataset({'x': x}), iteration_scheme=ShuffledScheme(N, 5)),
    'uint8_pixels_to_floatX': lambda x: DataStream(IndexableDataset(
        {'x': x.astype('uint8')}), batch_size=5).apply(
            ScaleAndShift, *uint8_pixels_to_floatX('x')[0][1]),
}
# They set some of the numbers that are hidden, too.
OVERWRITING = ('Dropout', 'SaltAndPepper')


def test_all_that_the_table_says_is_kept_is_tested():
    """A stage that joins the table joins these tests."""
    given = {name.split(' ')[0] for name in KEPT}
    assert table()['is kept'] - {'BackgroundProcess', 'RayWorkers'} == given
    assert {'Impute'} == table()['is filled']
    assert {'fit_impute', 'fit_standardization', 'fit_whitening',
            'fit_label_encoding', 'random_split', 'BalancedScheme'} == (
                table()['says what is missing'])


@pytest.mark.parametrize('name', KEPT)
def test_mask_is_kept_where_results_depend_on_what_is_hidden(name):
    """If other numbers are under the mask, plain results differ only there,
    and masked ones nowhere."""
    x = hidden()
    other = ma.masked_array(numpy.where(x.mask, x.data + 9, x.data),
                            mask=x.mask)
    # In the order of the first one.
    fuel.config.default_seed = 7
    try:
        found, again, plain, changed = (
            items(KEPT[name](data)) for data in (x, other, x.data, other.data))
    finally:
        del fuel.config.default_seed
    assert len(found) == len(plain) > 1
    hides = False
    for masked, same, values, others in zip(
            found, again, plain, changed, strict=True):
        assert_equal_masked(masked, same)
        mask = ma.getmaskarray(masked)
        expected = numpy.asarray(values)
        assert (expected.dtype, expected.shape) == (
            masked.dtype, masked.shape)
        if name in OVERWRITING:
            assert not (~mask & (values != others)).any()
        else:
            assert numpy.array_equal(values != others, mask)
        assert numpy.array_equal(expected[~mask], masked.data[~mask])
        hides |= mask.any()
    assert hides


def image_batches(x=None, **options):
    """Return a stream of batches of masked images."""
    x = hidden(shape=(4, 3, 8, 8)) if x is None else x
    return DataStream(IndexableDataset(
        {'x': x, 'targets': numpy.zeros(4, int)}, axis_labels={
            'x': ('batch', 'channel', 'height', 'width'),
            'targets': ('batch',)}, **options), batch_size=2)


def ragged(x):
    """Return the rows of an array as an array of objects."""
    rows = numpy.empty(len(x), object)
    for place, row in enumerate(x):
        rows[place] = row[:1 + place % 3]
    return rows


def on_images(stage, *arguments, **options):
    """Return a stage over masked images."""
    return lambda: stage(image_batches(), *arguments, which_sources=('x',),
                         **options)


REFUSED = {
    'Padding': lambda: Padding(batches(hidden())),
    'Padding of ragged batches': lambda: Padding(batches(ragged(hidden()))),
    'Padding of lists': lambda: Padding(batches(list(hidden()))),
    'Pack': lambda: Pack(examples(hidden()), 5),
    'CenterCrop': on_images(CenterCrop, (3, 3)),
    'CutMix': lambda: CutMix(image_batches(), 3, seed=1),
    'ImagesFromBytes': lambda: ImagesFromBytes(
        batches(hidden(dtype='uint8'))),
    'MinimumImageDimensions': on_images(MinimumImageDimensions, (9, 9)),
    'MinimumImageDimensions of lists': lambda: MinimumImageDimensions(
        batches(list(hidden(shape=(4, 3, 8, 8)))), (9, 9)),
    'MixUp': lambda: MixUp(image_batches(), 3, seed=1),
    'MixUp of targets': lambda: MixUp(batches(
        numpy.zeros((N, 2)), targets=hidden(shape=(N,), dtype='int64')),
        10, seed=1),
    'Normalize': on_images(Normalize, [0.] * 3, [1.] * 3),
    'Normalize of objects': lambda: Normalize(batches(
        ragged(hidden(shape=(4, 3, 8, 8)))), 0., 1.),
    'Random2DRotation': on_images(Random2DRotation, seed=1),
    'RandomFixedSizeCrop': on_images(RandomFixedSizeCrop, (3, 3), seed=1),
    'RandomHorizontalFlip': on_images(RandomHorizontalFlip, seed=1),
    'RandomResizedCrop': on_images(RandomResizedCrop, (3, 3), seed=1),
    'Resize': on_images(Resize, (3, 3)),
    'ToBytes': lambda: ToBytes(batches(hidden(dtype='uint8'))),
    'ToBytes of examples': lambda: ToBytes(examples(hidden(dtype='uint8'))),
}
BRIDGES = {
    'AudioFromBytes', 'ToTorch', 'to_torch', 'as_iterable', 'as_map',
    'ToJax', 'to_jax', 'as_source', 'BatchesDataset', 'to_ray',
    'map_batches', 'concat_examples', 'as_provider', 'to_feed'}


def test_all_that_the_table_says_is_refused_is_tested():
    """Bridges have tests of their own, and so do servers and splits."""
    given = {name.split(' ')[0] for name in REFUSED}
    assert table()['is refused'] - BRIDGES - {
        'rgb_images_from_encoded_bytes', 'ServerDataStream', 'Runs'} == given


@pytest.mark.parametrize('name', REFUSED)
def test_stage_that_cannot_keep_a_mask_names_the_remedy(name):
    """The error names it, whether something is hidden or not."""
    with pytest.raises(TypeError, match=REMEDY):
        items(REFUSED[name]())


def test_image_stage_takes_other_sources_that_are_masked():
    """Only those that it changes must be plain."""
    y = hidden(shape=(4,))
    stream = Resize(DataStream(IndexableDataset(
        {'x': numpy.zeros((4, 1, 5, 5), 'uint8'), 'y': y}), batch_size=4),
        (3, 3), which_sources=('x',))
    (_, found), = stream
    assert_equal_masked(y, found)


def test_user_stage_says_that_it_takes_no_masked_arrays():
    """Fuel's own stages have that attribute, too."""
    class Doubler(SourcewiseTransformer):
        takes_masked = False

        def transform_source_batch(self, batch, source):
            return 2 * batch

    with pytest.raises(TypeError, match='Doubler cannot keep the mask of'):
        items(Doubler(batches(hidden()), False))
    Doubler.takes_masked = True
    found = items(Doubler(batches(hidden()), False))
    assert_equal_masked(2 * hidden(), ma.concatenate(found))


def test_functions_get_masked_arrays():
    """Batches and examples are masked; functions that sort or filter keep
    masks."""
    x = hidden()
    assert_equal_masked(x[:5] + 1, items(Mapping(
        batches(x), lambda data: (data[0] + 1,)))[0])
    kept = items(Filter(examples(x), lambda data: data[0].mask.any()))
    assert [place for place in range(N) if x.mask[place].any()] == [
        next(place for place in range(N) if freeze(row) == freeze(x[place]))
        for row in kept]
    y = numpy.arange(N)[::-1]
    found = items(Mapping(batches(x, size=N, y=y), SortMapping(
        lambda example: example[1])))
    assert_equal_masked(x[::-1], found[0])


def test_masked_files_of_images_are_refused():
    """Encoded images are bytes."""
    file = numpy.frombuffer(encoded(), 'uint8')
    stream = ImagesFromBytes(batches(file[None]))
    assert (3, 2, 2) == items(stream)[0][0].shape
    with pytest.raises(TypeError, match='ImagesFromBytes cannot keep'):
        items(ImagesFromBytes(batches(ma.masked_array(file[None]))))


def encoded():
    """Return the file of a small grey image."""
    from io import BytesIO
    file = BytesIO()
    Image.fromarray(numpy.zeros((2, 2), 'uint8')).save(file, 'PNG')
    return file.getvalue()


# Data sets

def test_single_value_of_a_masked_array_keeps_its_type():
    """A hidden value keeps its type, too."""
    x = ma.masked_array(numpy.array([1, 2, 3], 'int16'), mask=[0, 1, 0])
    for dataset in (IndexableDataset({'x': x}), IterableDataset({'x': x})):
        state = dataset.open()
        found = [dataset.get_data(
            state, place if state is None else None)[0] for place in range(3)]
        assert [('int16', ())] * 3 == [
            (one.dtype, one.shape) for one in found]
        assert [1, None, 3] == [one.tolist() for one in found]


def test_rows_of_a_masked_array_are_the_caller_s():
    """Values and mask of the data set stay what they were."""
    x = hidden()
    before = freeze(x)
    dataset = IndexableDataset({'x': x})
    for request in ([0, 3, 5], slice(1, 4), 2):
        part, = dataset.get_data(request=request)
        assert_equal_masked(x[request], part)
        for array in arrays_in(part):
            assert not numpy.may_share_memory(array, x.data)
        overwrite(part)
    assert before == freeze(x)
    assert_equal_masked(x[2:7], IndexableDataset(x, 2, 7)[:][0])


def test_epochs_of_overwritten_batches_are_equal():
    """Nothing that a stage hands out is kept by it."""
    for build in (lambda: batches(hidden()), lambda: Cache(
            batches(hidden()), ConstantScheme(4)), lambda: Batch(
                examples(hidden()), batch_size=4)):
        stream = build()
        epochs = []
        for _ in range(2):
            epochs.append([])
            for data in stream.get_epoch_iterator():
                epochs[-1].append(freeze(data))
                overwrite(data)
        assert epochs[0] == epochs[1]


def test_hidden_elements_of_a_list_make_a_masked_array():
    """`numpy.ma.masked` in it stands for one that is missing."""
    stream = batches([1, ma.masked, 3, ma.masked], 4)
    assert ma.masked is items(stream)[0][1]
    for build in (lambda: Cast(stream, 'float32'), lambda: Cast(
            Batch(Unpack(stream), batch_size=4), 'float32')):
        assert_equal_masked(ma.masked_array(
            numpy.array([1, 0, 3, 0], 'f4'), mask=[0, 1, 0, 1]),
            items(build())[0])


def test_runs_and_windows_keep_masks():
    """Whole runs, and windows of them."""
    x = hidden()
    dataset = IndexableDataset({'x': x, 'run': numpy.repeat([0, 1, 2], 4)})
    runs = Runs(dataset, runs={'numbers': 'run'}, sources=('x',))
    assert_equal_masked(x[4:8], runs[1][0])
    windows = Windows(dataset, 3, runs={'numbers': 'run'}, sources=('x',))
    found = windows[[0, 1, 2]][0]
    assert_equal_masked(ma.stack([x[0:3], x[1:4], x[4:7]]), found)


def test_hidden_numbers_of_runs_are_refused():
    """A hidden number does not tell its run."""
    y = ma.masked_array(numpy.repeat([0, 1], 6), mask=[1] + [0] * 11)
    dataset = IndexableDataset({'x': numpy.arange(12), 'y': y})
    for numbers in ('y', y):
        with pytest.raises(TypeError, match=r'numpy\.ma\.filled'):
            Runs(dataset, runs={'numbers': numbers})


def test_hidden_classes_are_left_out():
    """They are left out of splits by class, and of balanced batches, which
    warn of them."""
    y = ma.masked_array(numpy.repeat([0, 1], 6), mask=[1] + [0] * 11)
    dataset = IndexableDataset({'x': numpy.arange(12), 'y': y})
    with pytest.warns(UserWarning, match='missing'):
        split = random_split(
            dataset, {'train': .5, 'test': .5}, stratify='y')
    assert set(range(1, 12)) == set(split['train']) | set(split['test'])
    with pytest.warns(UserWarning, match='missing'):
        scheme = BalancedScheme(y, 4)
    assert 0 not in {place for request in scheme.get_request_iterator()
                     for place in request}


# Values

def test_what_is_hidden_is_not_computed_with():
    """It may be no number, too large a one, or a time that is missing."""
    def found(values, stage, *arguments):
        x = ma.masked_array(values, mask=[0, 1])
        with numpy.errstate(all='raise'):
            return items(stage(batches(x), *arguments))[0].tolist()

    largest = 2 ** 63 - 1
    assert [3, None] == found(numpy.array([1, largest]), ScaleAndShift, 2, 1)
    assert [1, None] == found(numpy.array([1, numpy.nan]), Cast, 'int32')
    assert [1, None] == found(numpy.array([1, 1e300]), Cast, 'float32')
    assert [2, None] == found(numpy.array(['2', 'no']), Cast, 'int64')
    assert [2, None] == found(
        numpy.array([2, None], object), Cast, 'float32')
    assert [1, None] == found(
        numpy.array([1, 'NaT'], 'datetime64[s]'), Cast, 'int64')
    assert [1, None] == found(
        numpy.array(['b', 'unknown']), LabelEncoding,
        LabelEncodingParameters('x', ('a', 'b')))


def test_array_that_has_its_type_is_passed_on():
    """It is not copied, as plain ones are not."""
    given = []
    stream = Cast(Mapping(batches(hidden()), lambda data: (
        given.append(data[0]) or data)), 'float64')
    assert all(map(lambda one, other: one is other, given, items(stream)))


def test_fill_value_is_kept_if_the_type_holds_it():
    """One that was set; others are NumPy's."""
    x = hidden(dtype='int64')
    x.fill_value = -1
    for build in (lambda: Cast(batches(x), 'float32'), lambda: ScaleAndShift(
            batches(x), 2, 0), lambda: Cache(batches(x), ConstantScheme(3)),
            lambda: Batch(examples(x), batch_size=3)):
        assert {-1} == {part.fill_value for part in items(build())}
    assert {1e20} == {part.fill_value for part in items(
        Cast(batches(hidden(dtype='int64')), 'float32'))}


def test_hidden_scale_is_refused():
    """A scale with masked values is refused."""
    for operands in ((ma.masked_array([1., 2., 3.]), 0), (1, ma.masked)):
        with pytest.raises(TypeError, match=r'numpy\.ma\.filled'):
            ScaleAndShift(batches(hidden()), *operands)


def test_ragged_batches_keep_masks():
    """Each example has its own, in arrays of objects and in lists."""
    x = hidden()
    for rows in (ragged(x), list(ragged(x))):
        for stage, expected in (
                (lambda stream: Cast(stream, 'f4'), lambda row: row.astype(
                    'f4')), (lambda stream: ScaleAndShift(
                        stream, 2, 1), lambda row: 2 * row + 1),
                (Flatten, lambda row: row)):
            found = [row for part in items(stage(batches(rows)))
                     for row in part]
            assert N == len(found)
            for one, row in zip(rows, found, strict=True):
                assert_equal_masked(expected(one), row)


# Fits

def test_fit_impute_counts_what_is_hidden():
    """It is in no mean, and is filled; the result is a plain array."""
    x = hidden()
    x.data[x.mask] = -9999
    for stream in (batches(x), examples(x)):
        parameters = fit_impute(stream)
        assert parameters.num_missing == x.mask.sum()
        assert numpy.allclose(x.mean(axis=0), parameters.fill, rtol=1e-12)
        found = items(Impute(stream, parameters))
        assert {numpy.ndarray} == set(map(type, found))
        expected = numpy.where(x.mask, x.mean(axis=0), x.data)
        assert numpy.allclose(expected, numpy.concatenate(
            found).reshape(x.shape), rtol=1e-12)
    assert ma.median(x, axis=0).tolist() == list(
        fit_impute(batches(x), strategy='median').fill)


def test_impute_fills_integers_text_and_single_values():
    """A value that only the mask hides is filled."""
    numbers = ma.masked_array([1, -9, 2, 2], mask=[0, 1, 0, 0])
    words = ma.masked_array(['a', 'x', 'b', 'b'], mask=[0, 1, 0, 0])
    for x in (numbers, words):
        for stream in (batches(x), examples(x)):
            parameters = fit_impute(stream, strategy='most-frequent')
            assert (x[2],) == parameters.fill
            assert 1 == parameters.num_missing
            found = items(Impute(stream, parameters))
            assert not any(isinstance(part, ma.MaskedArray) for part in found)
            assert [x[0], x[2], x[2], x[2]] == numpy.hstack(found).tolist()


def test_impute_takes_a_mask_nan_and_a_source_of_masks():
    """A value is missing if any of them says so."""
    x = ma.masked_array([1., -9., numpy.nan, 4., 7.], mask=[0, 1, 0, 0, 0])
    stream = batches(x, x_mask=numpy.array([True, True, True, False, True]))
    parameters = fit_impute(stream)
    assert (3, (4.,)) == (parameters.num_missing, parameters.fill)
    assert [1, 4, 4, 4, 7] == items(Impute(stream, parameters))[0].tolist()


def test_impute_makes_plain_arrays_where_nothing_is_hidden():
    """A stage behind it gets one kind of array."""
    parameters = ImputeParameters('x', 'constant', (0.,), (), None, 0, 0)
    for x in (ma.masked_array(numpy.ones(3)), ma.masked_array(
            numpy.ones(3), mask=False)):
        found, = items(Impute(batches(x), parameters))
        assert numpy.ndarray is type(found)


@pytest.mark.parametrize('fit', [fit_standardization, fit_whitening])
@pytest.mark.parametrize('build', [batches, examples])
def test_hidden_number_is_an_error_of_fits(fit, build):
    """It is an error as NaN is; masked arrays that hide nothing are numbers as
    any."""
    x = hidden(share=0)
    assert repr(fit(build(x.data))) == repr(fit(build(x)))
    x[7, 2] = ma.masked
    with pytest.raises(ValueError, match='hidden .* example 7 .*Impute'):
        fit(build(x))


def test_hidden_label_is_not_a_class():
    """A hidden label has no number either."""
    x = ma.masked_array(['b', '?', 'a', 'b'], mask=[0, 1, 0, 0])
    values = ['b', ma.masked, 'a', 'b']
    for stream in (batches(x, 2), examples(x), batches(values, 2),
                   examples(values)):
        parameters = fit_label_encoding(stream, 'x')
        assert ('a', 'b') == parameters.class_names
        found = items(LabelEncoding(stream, parameters))
        assert [1, None, 0, 1] == ma.hstack(found).tolist()


# Between processes and hosts

def test_server_refuses_masked_arrays():
    """The client's error names the remedy."""
    for value in (hidden(), ragged(hidden()), list(hidden()), [ma.masked]):
        with pytest.raises(TypeError, match=r'mask.*numpy\.ma\.filled'):
            encode((value,))
    with Server(batches(hidden())) as server, ServerDataStream(
            ('x',), produces_examples=False, port=server.port) as stream:
        with pytest.raises(Exception, match=r'numpy\.ma\.filled'):
            next(stream.get_epoch_iterator())


def test_background_process_keeps_masks():
    """It is not a stream, and waits for another process."""
    x = hidden()
    background = BackgroundProcess(batches(x), 2)
    process = multiprocessing.get_context('fork').Process(
        target=background.main, daemon=True)
    process.start()
    assert_equal_masked(x[:5], background.get_next_data()[0])
    background.close()
    process.join(60)


def test_masked_rows_are_pickled_and_copied():
    """A data set, a batch, and a hidden value are pickled."""
    dataset = IndexableDataset({'x': hidden(shape=(N,), dtype='int16')})
    again = pickle.loads(pickle.dumps(dataset))
    for place in range(N):
        one, other = dataset[place][0], again[place][0]
        assert freeze(one) == freeze(other) == freeze(copy.deepcopy(one))


# Pipelines against numpy.ma

TYPES = ['int16', 'int64', 'float32', 'float64']


@st.composite
def pipelines(draw):
    """Draw a stream of masked arrays, and what numpy.ma makes of them."""
    count = draw(st.integers(1, 13))
    x = hidden(draw(st.integers(0, 999)), (count, 2, 2), draw(
        st.sampled_from(TYPES)), draw(st.sampled_from([0, .3, 1])))
    if draw(st.booleans()):
        x = x[:, 0, 0]
    if not draw(st.integers(0, 4)):
        # Without an array for the mask, though hidden values may come.
        x = ma.masked_array(x.data)
    order = numpy.arange(count)
    in_examples, kind = draw(st.booleans()), draw(st.integers(0, 2))
    data = {'x': x, 'place': order}
    if kind == 0:
        stream = DataStream(IterableDataset(data))
        in_examples = True
    else:
        scheme = (None if kind == 1 else ShuffledExampleScheme(count)
                  if in_examples else ShuffledScheme(count, draw(
                      st.integers(1, 5))))
        stream = (examples(x, place=order) if in_examples else batches(
            x, draw(st.integers(1, 5)), place=order)) if scheme is None else (
                DataStream(IndexableDataset(data), iteration_scheme=scheme))
    for _ in range(draw(st.integers(0, 5))):
        step = draw(st.sampled_from([
            'cast', 'scale', 'flatten', 'form', 'rearrange', 'pass', 'merge']))
        if step == 'cast':
            dtype = draw(st.sampled_from(TYPES))
            stream, x = Cast(stream, dtype, which_sources='x'), x.astype(dtype)
        elif step == 'scale':
            scale, shift = draw(st.sampled_from(
                [(2, 1), (.5, 1), (1, -.5), (3, 0)]))
            dtype = draw(st.sampled_from([None, 'float32', 'float64']))
            stream = ScaleAndShift(stream, scale, shift, dtype=dtype,
                                   which_sources='x')
            if x.dtype.kind == 'i':
                x = x.astype('int64' if isinstance(scale * shift, int)
                             else 'float64')
            x = x * x.dtype.type(scale) + x.dtype.type(shift)
            x = x if dtype is None else x.astype(dtype)
        elif step == 'flatten':
            if x.ndim == 1 and in_examples:
                continue
            stream = Flatten(stream, which_sources='x')
            x = x.reshape(count, -1)
        elif step == 'form':
            stream = Batch(stream, batch_size=draw(st.integers(1, 5))) if (
                in_examples) else Unpack(stream)
            in_examples = not in_examples
        elif step == 'rearrange':
            stream = ShuffleBuffer(stream, 4, seed=1) if in_examples else (
                Cache(stream, ConstantScheme(draw(st.integers(1, 5)))))
        elif step == 'pass':
            stream = draw(st.sampled_from([
                lambda stream: Rename(stream, {'place': 'place'}),
                lambda stream: Mapping(stream, lambda data: data),
                lambda stream: FilterSources(stream, ('x', 'place')),
                ToDense, lambda stream: MultiThreading(stream, 1)]))(stream)
        else:
            stream = Merge((FilterSources(stream, ('x', 'place')),),
                           ('x', 'place'))
    return stream, x, in_examples


def check_pipeline(case):
    """Compare all that a stream gives with numpy.ma."""
    stream, x, in_examples = case
    parts, places = [], []
    with stream:
        for part, place in stream.get_epoch_iterator():
            assert isinstance(part, ma.MaskedArray)
            parts.append(part[None] if in_examples else part)
            places.append(numpy.atleast_1d(place))
    places = numpy.concatenate(places)
    assert sorted(places) == list(range(len(x)))
    assert_equal_masked(x[places], ma.concatenate(parts))


@given(pipelines())
def test_pipelines_do_what_numpy_ma_does(case):
    """Types, masks and values are equal, in batches and in examples."""
    check_pipeline(case)


@pytest.mark.full
@settings(max_examples=3000)
@given(pipelines())
def test_many_pipelines_do_what_numpy_ma_does(case):
    """The same test runs more often."""
    check_pipeline(case)
