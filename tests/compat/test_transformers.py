"""Transformers, as programs written for Fuel 0.2.0 use them."""
import logging
import math
import multiprocessing
import pickle
from collections import OrderedDict

import numpy
import pytest
from numpy.testing import assert_array_equal
from support.image_data import encode, pixels

import fuel
from fuel.datasets import IndexableDataset, IterableDataset
from fuel.exceptions import AxisLabelsMismatchError
from fuel.schemes import (
    ConstantScheme,
    SequentialExampleScheme,
    SequentialScheme,
    ShuffledScheme,
)
from fuel.streams import DataStream
from fuel.transformers import (
    AgnosticSourcewiseTransformer,
    AgnosticTransformer,
    BackgroundProcess,
    Batch,
    Cache,
    Cast,
    ExpectsAxisLabels,
    Filter,
    FilterSources,
    Flatten,
    ForceFloatX,
    Mapping,
    Merge,
    MultiProcessing,
    Padding,
    Rename,
    ScaleAndShift,
    SortMapping,
    SourcewiseTransformer,
    Transformer,
    Unpack,
)
from fuel.transformers.defaults import (
    ToBytes,
    rgb_images_from_encoded_bytes,
    uint8_pixels_to_floatX,
)
from fuel.transformers.image import (
    ImagesFromBytes,
    MinimumImageDimensions,
    Random2DRotation,
    RandomFixedSizeCrop,
)
from fuel.transformers.sequences import NGrams, Window

X = numpy.arange(24).reshape(6, 2, 2)
Y = numpy.arange(6)
LABELS = {'x': ('batch', 'height', 'width'), 'y': ('batch',)}


def batches(size=3, **kwargs):
    """Return a stream of batches."""
    return DataStream(
        IndexableDataset(OrderedDict([('x', X), ('y', Y)]), **kwargs),
        iteration_scheme=SequentialScheme(6, size))


def examples(**kwargs):
    """Return a stream of examples."""
    return DataStream(
        IndexableDataset(OrderedDict([('x', X), ('y', Y)]), **kwargs),
        iteration_scheme=SequentialExampleScheme(6))


def sentences():
    """Return a stream of ragged examples."""
    return DataStream(IterableDataset(
        {'x': [[1, 2, 3], [4], [], [5, 6]]}))


def epoch(stream, **kwargs):
    """Return the data of an epoch."""
    return list(stream.get_epoch_iterator(**kwargs))


# The bases.

@pytest.mark.parametrize('make', [
    lambda stream: Transformer(stream, stream.produces_examples),
    lambda stream: AgnosticTransformer(stream, stream.produces_examples),
    lambda stream: SourcewiseTransformer(stream, stream.produces_examples),
    lambda stream: AgnosticSourcewiseTransformer(
        stream, stream.produces_examples)])
def test_bases_can_be_built_and_do_nothing(make):
    """A hook that is not implemented raises NotImplementedError."""
    for stream in (batches(), examples()):
        stage = make(stream)
        assert ('x', 'y') == stage.sources
        assert stage.produces_examples is stream.produces_examples
        with pytest.raises(NotImplementedError):
            epoch(stage)


def test_transformer_between_examples_and_batches_is_not_implemented():
    """Unless `get_data` is overridden."""
    for stream in (batches(), examples()):
        stage = Transformer(stream,
                            produces_examples=not stream.produces_examples)
        with pytest.raises(NotImplementedError):
            epoch(stage)


@pytest.mark.parametrize('make', [
    lambda: Cast(batches(), 'float32'), lambda: Flatten(batches()),
    lambda: Mapping(batches(), tuple), lambda: Unpack(batches()),
    lambda: Merge([batches()], ('a', 'b')), lambda: MultiProcessing(batches()),
    lambda: NGrams(2, FilterSources(examples(), ('y',))),
    lambda: Window(0, 1, 1, True, FilterSources(examples(), ('y',)))])
def test_stages_that_pull_refuse_requests(make):
    """ValueError, before anything is read."""
    stage = make()
    with pytest.raises(ValueError):
        stage.get_data([0, 1])
    stage.close()


@pytest.mark.parametrize('make', [
    lambda: Batch(examples(), ConstantScheme(2)),
    lambda: Cache(batches(), ConstantScheme(2))])
def test_stages_that_are_asked_need_requests(make):
    """ValueError for None."""
    stage = make()
    stage.get_epoch_iterator()
    with pytest.raises(ValueError):
        stage.get_data()


# Mapping and its like.

def test_mapping_returns_a_tuple_or_a_dict():
    """A mapping can append sources."""
    stage = Mapping(batches(), lambda data: (data[1] * 2,),
                    add_sources=('double',))
    assert ('x', 'y', 'double') == stage.sources
    assert_array_equal([0, 2, 4], epoch(stage)[0][2])
    stage = Mapping(
        batches(), lambda data: OrderedDict([('z', data['y'] + 1)]),
        add_sources=('z',), mapping_accepts=dict)
    assert_array_equal([1, 2, 3], epoch(stage)[0][2])
    with pytest.raises(ValueError):
        Mapping(batches(), tuple, mapping_accepts=tuple)


def test_sort_mapping_keeps_arrays_and_lists_apart():
    """A source stays an array only if it was one."""
    def key(example):
        return example[1]
    sort = SortMapping(key, reverse=True)
    one, two, three = sort((numpy.array([1, 2, 3]), [4, 6, 5], ('a', 'b', 'c')
                            ))
    assert_array_equal([2, 3, 1], one)
    assert [6, 5, 4] == two
    assert list('bca') == list(three)
    assert (numpy.ndarray, list) == (type(one), type(two))
    assert not isinstance(three, numpy.ndarray)


def test_flatten_labels_say_feature():
    """None stays None."""
    assert ('batch', 'feature') == Flatten(
        batches(axis_labels=LABELS), which_sources=('x',)).axis_labels['x']
    assert ('feature',) == Flatten(
        examples(axis_labels=LABELS), which_sources=('x',)).axis_labels['x']
    assert Flatten(batches()).axis_labels is None
    assert (3, 4) == epoch(Flatten(batches()))[0][0].shape
    assert (4,) == epoch(Flatten(examples(), which_sources='x'))[0][0].shape


def test_which_sources_may_be_one_name():
    """In every stage that has the argument, and in users' own."""
    class Mine(AgnosticSourcewiseTransformer):
        def transform_any_source(self, source, name):
            return -source

    for make in (
            lambda **kwargs: Mine(batches(), False, **kwargs),
            lambda **kwargs: ScaleAndShift(batches(), -1, 0, **kwargs),
            lambda **kwargs: Cast(batches(), 'int8', **kwargs)):
        one, other = (epoch(make(which_sources=sources))
                      for sources in ('y', ('y',)))
        for first, second in zip(one, other, strict=True):
            assert_array_equal(first[1], second[1])
            assert_array_equal(first[0], second[0])
    assert 'float64' != epoch(ForceFloatX(batches(), which_sources='y'))[0][
        0].dtype


def test_cache_reads_no_more_than_it_must():
    """It ends exactly at the end of the data, and is empty then."""
    dataset = IndexableDataset({'x': numpy.arange(100)})
    stage = Cache(
        DataStream(dataset, iteration_scheme=SequentialScheme(100, 11)),
        ConstantScheme(7))
    sizes, total = [], []
    for data, in stage.get_epoch_iterator():
        total.extend(data.tolist())
        sizes.append(len(stage.cache[0]))
        assert isinstance(stage.cache, list)
        assert len(stage.cache) == len(stage.sources)
    assert list(range(100)) == total
    assert [4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 0, 4] == sizes[:12]
    assert 0 == sizes[-1]
    with pytest.raises(ValueError):
        Cache(batches(), SequentialScheme(6, 2))


def test_batch_is_strict_in_three_ways():
    """0 keeps the short rest, 1 drops it, 2 complains."""
    def sizes(strictness):
        return [len(data[1]) for data in Batch(
            examples(), ConstantScheme(4), strictness).get_epoch_iterator()]
    assert [4, 2] == sizes(0)
    assert [4] == sizes(1)
    with pytest.raises(ValueError):
        sizes(2)
    with pytest.raises(ValueError):
        Batch(batches(), ConstantScheme(2))
    with pytest.raises(ValueError):
        Batch(examples(), SequentialExampleScheme(3))
    stage = Batch(examples(axis_labels=LABELS), ConstantScheme(2))
    assert ('batch', 'height', 'width') == stage.axis_labels['x']
    assert ('height', 'width') == Unpack(stage).axis_labels['x']


def test_unpack_epoch_pickles():
    """In the middle of a batch."""
    iterator = Unpack(batches()).get_epoch_iterator()
    for _ in range(2):
        next(iterator)
    assert [2, 3, 4, 5] == [
        y for _, y in pickle.loads(pickle.dumps(iterator))]


# Sequences.

def test_padding_adds_masks():
    """Of `floatX`, unless told otherwise; empty sequences are fine."""
    stage = Padding(Batch(sentences(), ConstantScheme(2)))
    assert ('x', 'x_mask') == stage.sources
    (x, mask), (x2, _) = epoch(stage)
    assert [[1, 2, 3], [4, 0, 0]] == x.tolist()
    assert [[1, 1, 1], [1, 0, 0]] == mask.tolist()
    assert fuel.config.floatX == mask.dtype
    assert [[0, 0], [5, 6]] == x2.tolist()
    with pytest.warns(UserWarning, match='nothing'):
        stage = Padding(Batch(sentences(), ConstantScheme(2)),
                        mask_sources=('x', 'nothing'), mask_dtype='int8')
    assert 'int8' == epoch(stage)[0][1].dtype
    stage = Padding(Batch(sentences(), ConstantScheme(2)), mask_sources=())
    assert ('x',) == stage.sources


def test_padding_needs_equal_other_axes():
    """ValueError where sequences differ beyond their length."""
    stream = DataStream(IterableDataset(
        {'x': [[numpy.zeros((2, 3)), numpy.zeros((4, 2))]]}))
    stream.produces_examples = False
    with pytest.raises(ValueError):
        epoch(Padding(stream))


def test_windows_and_ngrams():
    """Pairs of windows; a gram has one word as its target."""
    pairs_ = epoch(Window(1, 2, 2, True, sentences()))
    assert [([1, 2], [2, 3])] == pairs_
    assert [([1, 2], 3)] == epoch(NGrams(2, sentences()))
    assert ('x', 'targets') == NGrams(2, sentences()).sources
    assert ('x', 'next') == Window(
        0, 1, 1, False, sentences(), target_source='next').sources
    assert [([2], [1]), ([3], [2]), ([6], [5])] == epoch(
        Window(-1, 1, 1, True, sentences()))
    with pytest.raises(ValueError):
        Window(0, 1, 1, True, Batch(sentences(), ConstantScheme(2)))
    with pytest.raises(ValueError):
        epoch(Window(0, 1, 1, True, examples()))


# Several streams, several sources.

def test_merge_joins_streams_for_any_number_of_epochs():
    """A tuple or a list of streams; `as_dict` too."""
    for kind in (tuple, list):
        stage = Merge(kind([batches(), batches()]), ('a', 'b', 'c', 'd'))
        for _ in range(2):
            data = epoch(stage, as_dict=True)
            assert ['a', 'b', 'c', 'd'] == list(data[0])
            assert_array_equal(data[1]['b'], data[1]['d'])
    with pytest.raises(ValueError):
        Merge([batches(), batches()], ('a', 'b'))
    with pytest.raises(ValueError):
        Merge([batches(), examples()], ('a', 'b', 'c', 'd'))


def test_merge_passes_close_reset_and_next_epoch_on():
    """To each of its streams."""
    calls = []

    class Noting(DataStream):
        def close(self):
            calls.append('close')

        def reset(self):
            calls.append('reset')

        def next_epoch(self):
            calls.append('next_epoch')

    stage = Merge([Noting(IterableDataset([1])), Noting(
        IterableDataset([2]))], ('a', 'b'))
    stage.next_epoch()
    stage.reset()
    stage.close()
    assert ['next_epoch', 'next_epoch', 'reset', 'reset', 'close',
            'close'] == calls


def test_rename_checks_names(caplog):
    """Missing, clashing and doubled ones; swaps are fine."""
    assert ('y', 'x') == Rename(batches(), {'x': 'y', 'y': 'x'}).sources
    for names in ({'z': 'w'}, {'x': 'y'}, {'x': 'q', 'y': 'q'}):
        with pytest.raises(KeyError):
            Rename(batches(), names)
    with pytest.raises(ValueError):
        Rename(batches(), {}, on_non_existent='shout')
    assert ('x', 'y') == Rename(
        batches(), {'z': 'x'}, on_non_existent='ignore').sources
    with caplog.at_level(logging.WARNING):
        Rename(batches(), {'z': 'x'}, on_non_existent='warn')
    assert 'z' in caplog.text


def test_filter_and_filter_sources():
    """The stream's own order wins; unknown names are a ValueError."""
    with pytest.warns(UserWarning, match='in the order of its stream'):
        stage = FilterSources(batches(), ['y', 'x'])
    assert ('x', 'y') == stage.sources
    assert ('y',) == FilterSources(batches(), ('y',)).sources
    with pytest.raises(ValueError):
        FilterSources(batches(), ('z',))
    stage = Filter(examples(), lambda data: data[1] % 2 == 1)
    assert [1, 3, 5] == [y for _, y in epoch(stage)]
    assert [{'x', 'y'}] * 3 == [set(data) for data in epoch(
        stage, as_dict=True)]


def test_multiprocessing_takes_a_lambda():
    """A lambda works with the start method "fork"."""
    with MultiProcessing(Mapping(batches(), lambda data: (data[1],)),
                         max_store=3) as stage:
        stage.data_stream.sources = ('y',)
        assert [[0, 1, 2], [3, 4, 5]] == [
            data[0].tolist() for data in stage.get_epoch_iterator()]


def test_background_process_gives_batches_one_after_the_other():
    """Its `main` runs in a process that the caller starts."""
    background = BackgroundProcess(batches(), max_batches=2)
    process = multiprocessing.get_context('fork').Process(
        target=background.main, daemon=True)
    process.start()
    for _, y in batches().get_epoch_iterator():
        assert_array_equal(y, background.get_next_data()[1])
    assert background.get_next_data() is StopIteration
    background.close()
    process.join()


# Labels.

def test_labels_that_cannot_be_checked_warn_once(caplog):
    """One record that reaches the root logger; a mismatch is an error."""
    stage = type('Mine', (ExpectsAxisLabels,), {})()
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            stage.verify_axis_labels(('batch',), None, 'x')
    assert ['WARNING'] == [record.levelname for record in caplog.records]
    stage.verify_axis_labels(('batch',), ('batch',), 'y')
    with pytest.raises(AxisLabelsMismatchError):
        stage.verify_axis_labels(('batch',), ('channel',), 'z')
    assert issubclass(AxisLabelsMismatchError, ValueError)


@pytest.mark.parametrize('make', [
    lambda stream: ScaleAndShift(stream, 2, 0),
    lambda stream: Cast(stream, 'float32'), ForceFloatX,
    lambda stream: Filter(stream, bool),
    lambda stream: Cache(stream, ConstantScheme(2)), MultiProcessing])
def test_labels_are_handed_on(make):
    """By the stages that change no axes."""
    stage = make(batches(axis_labels=LABELS))
    assert LABELS == stage.axis_labels
    stage.close()


# Numbers.

@pytest.mark.parametrize('dtype, scale, shift, expected', [
    ('float32', 2, 1, 'float32'), ('float32', numpy.float64(2), 1., 'float32'),
    ('uint8', 1 / 255., 0, 'float64'), ('bool', .5, 0, 'float64'),
    ('uint8', 2, 1, 'int64'), ('int16', numpy.int32(2), 0, 'int64')])
def test_scale_and_shift_types(dtype, scale, shift, expected):
    """Scalars of any kind count as Python's numbers."""
    stream = DataStream(
        IndexableDataset({'x': numpy.ones(4).astype(dtype)}),
        iteration_scheme=SequentialScheme(4, 4))
    data, = epoch(ScaleAndShift(stream, scale, shift))[0]
    assert expected == data.dtype
    assert_array_equal(
        numpy.ones(4).astype(expected) * scale + shift, data)


def test_float_x_is_settled_when_a_stage_is_built():
    """Cast by name, and ForceFloatX."""
    fuel.config.floatX = 'float32'
    stages = [Cast(batches(), 'floatX'),
              ForceFloatX(Cast(batches(), 'float64'))]
    fuel.config.floatX = 'float64'
    for stage in stages:
        assert 'float32' == epoch(stage)[0][0].dtype


def test_default_transformers_are_tuples_of_classes_and_arguments():
    """As data sets list them."""
    assert ((ScaleAndShift, [1 / 255., 0], {'which_sources': ('x',)}),
            (Cast, ['floatX'], {'which_sources': ('x',)})) == (
                uint8_pixels_to_floatX(('x',)))
    (first, _, kwargs), (second, _, _) = rgb_images_from_encoded_bytes(
        ('x',))
    assert (ToBytes, ImagesFromBytes) == (first, second)
    assert ('x',) == kwargs['which_sources']


# Images.

def image_stream(data, kind=SequentialScheme, **kwargs):
    """Return a stream of images, all in one batch or one by one."""
    scheme = (kind(len(data), len(data)) if kind is SequentialScheme
              else kind(len(data)))
    return DataStream(IndexableDataset({'x': data}, **kwargs),
                      iteration_scheme=scheme)


BYTES = numpy.frombuffer(b'abc', 'uint8')


def test_to_bytes():
    """An example becomes bytes, a batch a list."""
    data = numpy.empty(2, object)
    data[:] = [BYTES, BYTES[:1]]
    assert [([b'abc', b'a'],)] == epoch(ToBytes(image_stream(data)))
    assert (b'a',) == epoch(ToBytes(
        image_stream(data, SequentialExampleScheme)))[1]


@pytest.mark.parametrize('mode, form, channels', [
    ('RGB', 'PNG', 3), ('RGBA', 'PNG', 4), ('L', 'PNG', 1),
    ('CMYK', 'JPEG', 4)])
def test_images_from_bytes_keep_their_mode_if_asked(mode, form, channels):
    """Channel, height, width; a batch is a list."""
    shape = (5, 4) if mode == 'L' else (5, 4, channels)
    data = [encode(pixels(*shape), form, mode)]
    images, = epoch(ImagesFromBytes(image_stream(data), which_sources='x',
                                    color_mode=None))[0]
    assert isinstance(images, list)
    assert (channels, 5, 4) == images[0].shape
    images, = epoch(ImagesFromBytes(image_stream(data)))[0]
    assert (3, 5, 4) == images[0].shape


def test_images_from_bytes_need_bytes_and_keep_other_labels():
    """TypeError for arrays."""
    with pytest.raises(TypeError):
        epoch(ImagesFromBytes(image_stream([numpy.zeros(3)])))
    stream = DataStream(
        IndexableDataset({'x': [encode(pixels(2, 2))], 'y': [1]},
                         axis_labels={'x': ('batch', 'bytes'),
                                      'y': ('batch', 'index')}),
        iteration_scheme=SequentialScheme(1, 1))
    stage = ImagesFromBytes(stream, which_sources=('x',))
    assert ('batch', 'index') == stage.axis_labels['y']
    assert ('batch', 'channel', 'height', 'width') == stage.axis_labels['x']


IMAGE_LABELS = {'x': ('batch', 'channel', 'height', 'width')}


@pytest.mark.parametrize('dtype', ['uint8', 'float32', 'float64'])
def test_minimum_image_dimensions_enlarges_and_passes_on(dtype):
    """A list of images, each at least so high and wide."""
    data = [numpy.ones(shape, dtype) for shape in ((3, 2, 4), (3, 6, 6))]
    images, = epoch(MinimumImageDimensions(image_stream(
        data, axis_labels=IMAGE_LABELS), (4, 5), which_sources=('x',)))[0]
    assert isinstance(images, list)
    assert (3, 6, 6) == images[1].shape
    assert min(images[0].shape[1:]) >= 4
    assert images[0].shape[2] >= 5
    assert dtype == images[0].dtype
    with pytest.raises(ValueError):
        MinimumImageDimensions(image_stream(data), (4, 5), resample='odd')


def test_minimum_image_dimensions_needs_images_of_two_or_three_axes():
    """Others are not implemented."""
    data = [numpy.ones((1, 3, 2, 2), 'uint8')]
    with pytest.raises(NotImplementedError):
        epoch(MinimumImageDimensions(image_stream(
            data, SequentialExampleScheme), (4, 5)))


def test_random_crops_draw_columns_then_rows_for_an_array():
    """A list of images draws a row, then a column, where there is slack."""
    data = numpy.arange(4 * 2 * 7 * 6, dtype='uint8').reshape(4, 2, 7, 6)
    stage = RandomFixedSizeCrop(
        image_stream(data, axis_labels=IMAGE_LABELS), (3, 6),
        rng=numpy.random.RandomState(3), which_sources=('x',))
    rng = numpy.random.RandomState(3)
    columns, rows = rng.randint(0, 1, 4), rng.randint(0, 5, 4)
    assert_array_equal(
        numpy.stack([image[:, row:row + 3, column:column + 6]
                     for image, row, column in zip(
                         data, rows, columns, strict=True)]),
        epoch(stage)[0][0])
    stage = RandomFixedSizeCrop(
        image_stream(list(data), axis_labels=IMAGE_LABELS), (3, 6),
        rng=numpy.random.RandomState(3), which_sources=('x',))
    crops, = epoch(stage)[0]
    rng = numpy.random.RandomState(3)
    assert isinstance(crops, list)
    for image, crop in zip(data, crops, strict=True):
        row = rng.randint(0, 5)
        assert_array_equal(image[:, row:row + 3], crop)
    for shape in ((8, 6), (3, 7)):
        with pytest.raises(ValueError):
            epoch(RandomFixedSizeCrop(image_stream(
                data, axis_labels=IMAGE_LABELS), shape))
    with pytest.raises(ValueError):
        epoch(RandomFixedSizeCrop(image_stream(data[:, 0]), (3, 3)))


def test_random_rotation_draws_all_angles_in_degrees():
    """One draw, and what Pillow makes of it; the kind of batch stays."""
    from PIL import Image
    data = pixels(3, 1, 6, 6)
    stage = Random2DRotation(
        image_stream(data, axis_labels=IMAGE_LABELS),
        rng=numpy.random.RandomState(123))
    angles = numpy.random.RandomState(123).uniform(-180, 180, 3)
    expected = [numpy.asarray(Image.fromarray(image[0]).rotate(
        angle, Image.Resampling.NEAREST)) for image, angle in zip(
            data, angles, strict=True)]
    result, = epoch(stage)[0]
    assert_array_equal(numpy.stack(expected)[:, None], result)
    objects = numpy.empty(3, object)
    objects[:] = list(data)
    for kind in (list(data), objects):
        result, = epoch(Random2DRotation(
            image_stream(kind, axis_labels=IMAGE_LABELS),
            rng=numpy.random.RandomState(123)))[0]
        assert type(kind) is type(result)
        assert_array_equal(expected[1], result[1][0])
    for maximum in (0, -1, 3.2):
        with pytest.raises(ValueError):
            Random2DRotation(image_stream(data), maximum_rotation=maximum)
    assert math.pi == Random2DRotation(image_stream(data)).maximum_rotation


def test_shuffled_pipeline_is_the_same_every_time():
    """All of it follows from the default seed."""
    def run():
        stream = DataStream(
            IndexableDataset({'x': pixels(6, 3, 9, 9)},
                             axis_labels=IMAGE_LABELS),
            iteration_scheme=ShuffledScheme(6, 4))
        return epoch(Random2DRotation(RandomFixedSizeCrop(stream, (5, 5))))
    for one, other in zip(run(), run(), strict=True):
        assert_array_equal(one[0], other[0])
