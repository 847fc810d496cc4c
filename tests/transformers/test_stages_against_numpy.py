"""Every public stage against plain NumPy, on random data, saved at each step.

The data come as arrays, arrays of objects, lists of arrays and lists, of
several types, with and without axis labels.
"""
import io
import json
import math
from types import SimpleNamespace

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from support.image_data import as_objects
from support.resuming import plain

import fuel.transformers
import fuel.transformers.image
import fuel.transformers.noise
import fuel.transformers.sequences
from fuel.datasets import IndexableDataset
from fuel.schemes import (
    ConstantScheme,
    SequentialExampleScheme,
    SequentialScheme,
    ShuffledExampleScheme,
    ShuffledScheme,
)
from fuel.streams import DataStream
from fuel.transformers import (
    Batch,
    Cache,
    Cast,
    Filter,
    FilterSources,
    Flatten,
    ForceFloatX,
    Mapping,
    Merge,
    Padding,
    Rename,
    ScaleAndShift,
    SortMapping,
    Unpack,
)
from fuel.transformers.defaults import ToBytes
from fuel.transformers.image import (
    CenterCrop,
    ImagesFromBytes,
    MinimumImageDimensions,
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
from fuel.transformers.sequences import BucketBatch, NGrams, Window
from fuel.transformers.shuffling import ShuffleBuffer
from fuel.transformers.whitening import Whitening, WhiteningParameters
from fuel.utils.checks import as_regular

DTYPES = ['float32', 'float64', 'int64', 'uint8', 'bool']
FORMS = ['array', 'equal objects', 'objects', 'arrays', 'lists']
LABELS = [None, {}, {'x': ('batch',)}, {'x': 'batch', 'y': 'batch'},
          {'x': None, 'y': ('batch',)}]


# The data

def numbers(seed, shape, dtype):
    """Return small numbers, which all types hold."""
    values = numpy.random.RandomState(seed).randint(0, 5, shape)
    return values.astype(dtype)


def source_of(form, dtype, axes, count, seed):
    """Return examples in a form that a data set may have them in."""
    lengths = [1 + (seed + place * 7) % 3 for place in range(count)]
    if form in ('array', 'equal objects'):
        lengths = [2] * count
    parts = [numbers(seed + place, (length, *[2] * (axes - 1)), dtype)
             for place, length in enumerate(lengths)]
    if form == 'array':
        return numpy.stack(parts)
    if form == 'lists':
        return [part.tolist() for part in parts]
    return parts if form == 'arrays' else as_objects(parts)


@st.composite
def cases(draw, forms=FORMS, dtypes=DTYPES, examples=(False, True),
          labels=LABELS, make=source_of, axes=(1, 2, 3)):
    """Draw a stream that can be built anew, and what it gives."""
    count, seed = draw(st.integers(1, 7)), draw(st.integers(0, 99))
    size = draw(st.integers(1, 4))
    x = make(draw(st.sampled_from(forms)), draw(st.sampled_from(dtypes)),
             draw(st.sampled_from(axes)), count, seed)
    y = numpy.arange(count)
    by_example = draw(st.sampled_from(examples))
    shuffled = draw(st.booleans())
    axis_labels = draw(st.sampled_from(labels))

    def build():
        cls = (ShuffledExampleScheme if shuffled else SequentialExampleScheme
               ) if by_example else (
                   ShuffledScheme if shuffled else SequentialScheme)
        scheme = cls(count) if by_example else cls(count, size)
        if shuffled:
            scheme.rng = numpy.random.RandomState(seed)
        dataset = IndexableDataset({'x': x, 'y': y}, axis_labels=axis_labels)
        return DataStream(dataset, iteration_scheme=scheme)

    requests = list(build().iteration_scheme.get_request_iterator())
    return SimpleNamespace(
        build=build, by_example=by_example, labels=axis_labels,
        items=[(pick(x, request), pick(y, request)) for request in requests])


def pick(part, request):
    """Return the data of a request, as plain NumPy gives them."""
    if isinstance(part, numpy.ndarray):
        return part[request]
    return part[request] if isinstance(request, int) else [
        part[place] for place in request]


def gather(values):
    """Return examples as one batch: stacked if their shapes agree."""
    try:
        stacked = as_regular(values)
    except ValueError:
        return as_objects(values)
    return as_objects(values) if stacked.dtype == object or len(
        {numpy.shape(value) for value in values}) > 1 else stacked


def check(case, build, expected):
    """Check an epoch, and one that is saved and restored at each step."""
    expected = [plain(item) for item in expected]
    stage = build(case.build())
    assert expected == [plain(item) for item in stage.get_epoch_iterator()]
    assert all(len(stage.sources) == len(item[1]) for item in expected)
    state, found = build(case.build()).state_dict(), []
    while len(found) <= len(expected):
        stage = build(case.build())
        stage.load_state_dict(json.loads(json.dumps(state)))
        iterator = stage.get_epoch_iterator()
        try:
            found.append(plain(next(iterator)))
        except StopIteration:
            break
        state = iterator.state_dict()
    assert expected == found


def changed(items, function):
    """Return items with a function applied to the first source."""
    return [(function(x), y) for x, y in items]


# Numbers

def of_numbers(function, data):
    """Apply a function of arrays to data of any form."""
    if isinstance(data, numpy.ndarray) and data.dtype != object:
        return function(data)
    if isinstance(data, numpy.ndarray):
        return as_objects([function(value) for value in data])
    batch = gather(data)
    if batch.dtype != object:
        return function(numpy.array(data))
    values = [function(numpy.asarray(value)) for value in data]
    return values if any(
        isinstance(value, numpy.ndarray) for value in data) else (
            as_objects(values))


@given(cases(), st.sampled_from(['float32', 'float64', 'int64', 'uint8']))
def test_cast_equals_astype(case, dtype):
    """It does in each form of the data."""
    check(case, lambda stream: Cast(stream, dtype, which_sources='x'),
          changed(case.items, lambda x: of_numbers(
              lambda array: array.astype(dtype), x)))


@given(cases())
def test_force_float_x_casts_floating_arrays_alone(case):
    """Lists and other types pass through."""
    def force(data):
        if not isinstance(data, numpy.ndarray):
            return data
        return of_numbers(lambda array: array.astype('float64')
                          if array.dtype.kind == 'f' else array, data)

    check(case, ForceFloatX, changed(case.items, force))


@given(cases(), st.sampled_from([(2, 1), (.5, 0), (3, -1.5)]))
def test_scale_and_shift_equals_arithmetic(case, operands):
    """Floating data keep their type, others become 64 bits wide."""
    scale, shift = operands
    integral = isinstance(scale, int) and isinstance(shift, int)

    def compute(array):
        wide = array.astype('int64' if integral else 'float64')
        if array.dtype.kind == 'f':
            wide = array
        return (wide * wide.dtype.type(scale) + wide.dtype.type(shift))

    check(case, lambda stream: ScaleAndShift(
        stream, scale, shift, which_sources='x'),
        changed(case.items, lambda x: of_numbers(compute, x)))


@given(cases(), st.sampled_from([(2, 1), (.5, 0), (3, -1.5)]),
       st.sampled_from(['float32', 'float64']))
def test_cast_behind_scale_and_shift_equals_both(case, operands, dtype):
    """The result is the same in one pass or two."""
    scale, shift = operands
    direct = [(x, y) for x, y in ScaleAndShift(
        case.build(), scale, shift, which_sources='x').get_epoch_iterator()]
    check(case, lambda stream: Cast(ScaleAndShift(
        stream, scale, shift, which_sources='x'), dtype, which_sources='x'),
        changed(direct, lambda x: of_numbers(
            lambda array: array.astype(dtype), x)))


@given(cases())
def test_flatten_equals_reshape(case):
    """Each example of a ragged batch is flattened for itself."""
    def flatten(data):
        if case.by_example:
            return numpy.asarray(data).ravel()
        if isinstance(data, list):
            batch = gather(data)
            if batch.dtype != object:
                return batch.reshape(len(batch), -1)
        elif data.dtype != object:
            return data.reshape(len(data), -1)
        return of_numbers(numpy.ravel, data)

    check(case, lambda stream: Flatten(stream, which_sources='x'),
          changed(case.items, flatten))


@given(cases(forms=['array', 'objects', 'arrays'], dtypes=['float32']),
       st.sampled_from([
           lambda stream: GaussianNoise(stream, 0, which_sources='x'),
           lambda stream: UniformNoise(stream, 0, 0, which_sources='x'),
           lambda stream: SaltAndPepper(stream, 0, which_sources='x'),
           lambda stream: Dropout(stream, 0, which_sources='x')]))
def test_noise_of_no_strength_changes_nothing(case, build):
    """Values and forms stay."""
    check(case, build, case.items)


@given(cases(forms=['array'], axes=(1,)), st.sampled_from(
    ['pca', 'zca']))
def test_whitening_equals_a_product(case, kind):
    """The data without the mean are multiplied by the matrix."""
    mean, matrix = numpy.array([1., 2.]), numpy.array([[2., 1.], [0., 3.]])
    parameters = WhiteningParameters(
        kind, mean, matrix, (2,), {'source': 'x'})
    check(case, lambda stream: Whitening(stream, parameters),
          changed(case.items, lambda x: (x - mean) @ matrix))


# Sources

@given(cases())
def test_stages_that_move_sources_leave_the_data_alone(case):
    """Names, order and copies of sources."""
    check(case, lambda stream: Rename(stream, {'x': 'y', 'y': 'x'}),
          case.items)
    check(case, lambda stream: FilterSources(stream, ['y']),
          [(y,) for _, y in case.items])
    check(case, lambda stream: Merge(
        (stream, FilterSources(case.build(), ['y'])), ('a', 'b', 'c')),
        [(x, y, y) for x, y in case.items])


@given(cases())
def test_mapping_equals_the_function(case):
    """Results replace the data, follow them, or are named."""
    check(case, lambda stream: Mapping(stream, lambda data: data[::-1]),
          [(y, x) for x, y in case.items])
    check(case, lambda stream: Mapping(
        stream, lambda data: (data[1] + 1,), add_sources=('z',)),
        [(x, y, y + 1) for x, y in case.items])
    check(case, lambda stream: Mapping(
        stream, lambda data: {'z': data['y'] * 2}, add_sources=('z',),
        mapping_accepts=dict), [(x, y, y * 2) for x, y in case.items])


@given(cases(examples=(False,)))
def test_sort_mapping_equals_sorted(case):
    """The last number is compared first."""
    def sort(x, y):
        order = sorted(range(len(y)), key=lambda place: -y[place])
        return (x[order] if isinstance(x, numpy.ndarray)
                else [x[place] for place in order]), y[order]

    check(case, lambda stream: Mapping(stream, SortMapping(
        lambda example: example[1], reverse=True)),
        [sort(x, y) for x, y in case.items])


@given(cases())
def test_filter_equals_a_condition(case):
    """Batches and examples are left out as a whole."""
    check(case, lambda stream: Filter(
        stream, lambda data: numpy.sum(data[1]) % 2 == 0),
        [(x, y) for x, y in case.items if numpy.sum(y) % 2 == 0])


# Batches

def examples_of(case):
    """Return the examples of the batches of a case."""
    return [(x[place], y[place]) for x, y in case.items
            for place in range(len(y))]


def batches_of(examples, size):
    """Return examples in batches."""
    return [tuple(gather(list(part)) for part in zip(
        *examples[start:start + size], strict=True))
        for start in range(0, len(examples), size)]


@given(cases(examples=(True,)), st.integers(1, 5))
def test_batch_equals_stacking(case, size):
    """The last batch may be smaller."""
    check(case, lambda stream: Batch(stream, ConstantScheme(size)),
          batches_of(case.items, size))


@given(cases(examples=(False,)), st.integers(1, 5))
def test_unpack_gives_each_example_and_cache_other_batches(case, size):
    """They take batches of arrays, of objects and of lists."""
    check(case, Unpack, examples_of(case))
    form = case.items[0][0]
    if isinstance(form, numpy.ndarray) and form.dtype == object:
        examples = examples_of(case)
        expected = [(as_objects([x for x, _ in examples[i:i + size]]),
                     numpy.array([y for _, y in examples[i:i + size]]))
                    for i in range(0, len(examples), size)]
    else:
        expected = batches_of(examples_of(case), size)
    check(case, lambda stream: Cache(stream, ConstantScheme(size)), expected)


@given(cases(examples=(False,), axes=(1, 2)))
def test_padding_equals_zeros_behind_each_sequence(case):
    """The mask says where there are data."""
    def pad(x):
        longest = max(map(len, x))
        values = [numpy.asarray(part) for part in x]
        padded = numpy.stack([numpy.concatenate([part, numpy.zeros(
            (longest - len(part), *part.shape[1:]), part.dtype)])
            for part in values])
        return padded, numpy.array([
            [1] * len(part) + [0] * (longest - len(part)) for part in x],
            'int8')

    check(case, lambda stream: Padding(
        stream, mask_sources=('x',), mask_dtype='int8'),
        [(*pad(x), y) for x, y in case.items])


@given(cases(examples=(True,), labels=[None, {}]), st.integers(3, 9))
def test_bucket_batch_equals_sorting_by_length(case, budget):
    """A batch has as many of one length as fit the budget."""
    batches = []
    for example in sorted(case.items, key=lambda item: len(item[0])):
        if not batches or len(example[0]) * (1 + len(batches[-1])) > budget:
            batches.append([])
        batches[-1].append(example)
    check(case, lambda stream: BucketBatch(stream, budget, shuffle=False),
          [batches_of(batch, len(batch))[0] for batch in batches])


@given(cases(examples=(True,)), st.integers(1, 9))
def test_shuffle_buffer_gives_each_example_once(case, size):
    """A restored one continues its order."""
    def build(stream):
        return ShuffleBuffer(stream, size)

    found = list(build(case.build()).get_epoch_iterator())
    order = sorted(range(len(found)), key=lambda place: found[place][1])
    check(case, build, found)
    assert [plain(item) for item in sorted(
        case.items, key=lambda item: item[1])] == [
            plain(found[place]) for place in order]


@pytest.mark.filterwarnings('ignore:an epoch of')
@given(cases(examples=(True,)), st.integers(-1, 2),
       st.integers(1, 2), st.integers(1, 2), st.booleans())
def test_window_equals_slices(case, offset, source, target, overlapping):
    """Both windows lie inside of the sequence."""
    distance = offset if overlapping else offset + source
    pairs = [(x[i:i + source], x[i + distance:i + distance + target])
             for x, _ in case.items
             for i in range(max(0, -distance), len(x) + 1)
             if i + source <= len(x) and i + distance + target <= len(x)]

    check(case, lambda stream: Window(
        offset, source, target, overlapping, FilterSources(stream, ['x'])),
        pairs)
    if (offset, target, overlapping) == (0, 1, False):
        check(case, lambda stream: NGrams(
            source, FilterSources(stream, ['x'])),
            [(x, following[0]) for x, following in pairs])


# Images

IMAGE_LABELS = [None, {}, {'x': ('batch', 'channel', 'height', 'width')}]


def images_of(form, dtype, axes, count, seed):
    """Return images of equal or of different sizes."""
    rng = numpy.random.RandomState(seed)
    shapes = [(3, 4, 6) if form == 'array' else (3, *rng.randint(4, 8, 2))
              for _ in range(count)]
    parts = [rng.randint(0, 256, shape).astype(dtype) for shape in shapes]
    if form == 'array':
        return numpy.stack(parts)
    return parts if form == 'arrays' else as_objects(parts)


def image_cases(dtypes=('uint8', 'float32', 'int64')):
    """Return a strategy of streams of images."""
    return cases(['array', 'objects', 'arrays'], list(dtypes),
                 labels=IMAGE_LABELS, make=images_of)


def each_image(case, function, form='same'):
    """Return the items of a case with a function applied to each image."""
    def apply(x):
        if case.by_example:
            return function(x)
        images = [function(image) for image in x]
        if form == 'list' or (form == 'crop' and not (
                isinstance(x, numpy.ndarray) and x.dtype != object)):
            return images
        if form == 'stack' or (
                isinstance(x, numpy.ndarray) and x.dtype != object):
            return numpy.stack(images)
        return as_objects(images) if isinstance(
            x, numpy.ndarray) else images

    return changed(case.items, apply)


def nearest(image, height, width):
    """Return an image resized to the nearest pixels, as Pillow does it."""
    indices = numpy.arange(image[0].size, dtype='int32').reshape(
        image.shape[1:])
    places = numpy.asarray(Image.fromarray(indices).resize(
        (width, height), Image.Resampling.NEAREST)).ravel()
    return image.reshape(3, -1)[:, places].reshape(3, height, width)


@given(image_cases())
def test_image_sizes_equal_indexing(case):
    """Images are enlarged, resized and cut out of the middle."""
    def enlarge(image, least=1):
        scale = max(7 / image.shape[1], 7 / image.shape[2], least)
        height, width = (round(size * scale, 9) for size in image.shape[1:])
        return image if scale == 1 else nearest(
            image, math.ceil(height), math.ceil(width))

    def resize(image):
        return enlarge(image, 0)

    def crop(image):
        top, left = (image.shape[1] - 3) // 2, (image.shape[2] - 4) // 2
        return image[:, top:top + 3, left:left + 4]

    check(case, lambda stream: MinimumImageDimensions(
        stream, (7, 7), which_sources='x'),
        each_image(case, enlarge, 'list'))
    check(case, lambda stream: MinimumImageDimensions(
        stream, (7, 7), shrink=True, which_sources='x'),
        each_image(case, resize, 'list'))
    check(case, lambda stream: Resize(
        stream, (5, 3), 'nearest', which_sources='x'),
        each_image(case, lambda image: nearest(image, 5, 3), 'stack'))
    check(case, lambda stream: CenterCrop(
        stream, (3, 4), which_sources='x'),
        each_image(case, crop, 'stack'))


@given(image_cases(), st.integers(0, 9))
def test_random_crop_equals_the_draws_of_old(case, seed):
    """Columns, then rows of an array are drawn; row, then column of single
    images."""
    rng = numpy.random.RandomState(seed)

    def cut(image, top, left):
        return image[:, top:top + 3, left:left + 3]

    def one(image):
        top, left = [rng.randint(0, size - 3 + 1) if size > 3 else 0
                     for size in image.shape[1:]]
        return cut(image, top, left)

    if case.by_example or not isinstance(
            case.items[0][0], numpy.ndarray) or (
            case.items[0][0].dtype == object):
        expected = each_image(case, one, 'crop')
    else:
        expected = []
        for x, y in case.items:
            lefts = rng.randint(0, x.shape[3] - 3 + 1, len(x))
            tops = rng.randint(0, x.shape[2] - 3 + 1, len(x))
            expected.append((numpy.stack(list(map(
                cut, x, tops, lefts))), y))
    check(case, lambda stream: RandomFixedSizeCrop(
        stream, (3, 3), which_sources='x',
        rng=numpy.random.RandomState(seed)), expected)


@given(image_cases(['uint8']), st.integers(0, 9))
def test_random_rotation_equals_pillow(case, seed):
    """Each image has one angle, in degrees."""
    rng = numpy.random.RandomState(seed)
    angles = iter([angle for _, y in case.items for angle in numpy.atleast_1d(
        rng.uniform(-90, 90, None if case.by_example else len(y)))])

    def rotate(image):
        angle = float(next(angles))
        return numpy.stack([numpy.asarray(
            Image.fromarray(plane).rotate(angle)) for plane in image])

    check(case, lambda stream: Random2DRotation(
        stream, math.pi / 2, which_sources='x',
        rng=numpy.random.RandomState(seed)), each_image(case, rotate))


@given(image_cases())
def test_certain_flips_and_whole_crops_equal_indexing(case):
    """The draws make no difference here."""
    for probability, step in ((0, 1), (1, -1)):
        check(case, lambda stream, p=probability: RandomHorizontalFlip(
            stream, p, which_sources='x'),
            each_image(case, lambda image, s=step: image[:, :, ::s]))
    whole = RandomResizedCrop(case.build(), (5, 5), which_sources='x')
    for x, _ in whole.get_epoch_iterator():
        assert (3, 5, 5) == x.shape[-3:]


@given(image_cases(['uint8', 'float32', 'int64']))
def test_normalize_equals_arithmetic(case):
    """There is one number for each channel."""
    mean, deviation = numpy.array([1., 2., 4.]), numpy.array([2., 4., 8.])
    check(case, lambda stream: Normalize(
        stream, mean, deviation, .5, which_sources='x'),
        each_image(case, lambda image: image * (.5 / deviation)[
            :, None, None] - (mean / deviation)[:, None, None]))


def encode(image):
    """Return an image as a PNG file."""
    file = io.BytesIO()
    Image.fromarray(image.transpose(1, 2, 0)).save(file, 'PNG')
    return file.getvalue()


@given(image_cases(['uint8']))
def test_bytes_become_the_images_that_they_were_made_of(case):
    """They are stored as arrays of bytes."""
    def as_files(stream):
        return Mapping(stream, lambda data: (
            numpy.frombuffer(encode(data[0]), 'uint8') if case.by_example
            else as_objects([numpy.frombuffer(encode(image), 'uint8')
                             for image in data[0]]), data[1]))

    check(case, lambda stream: ToBytes(as_files(stream), which_sources='x'),
          changed(case.items, lambda x: encode(x) if case.by_example
                  else [encode(image) for image in x]))
    check(case, lambda stream: ImagesFromBytes(ToBytes(
        as_files(stream), which_sources='x'), which_sources='x'),
        each_image(case, lambda image: image, 'list'))


@pytest.mark.parametrize('module', [
    fuel.transformers, fuel.transformers.image, fuel.transformers.noise,
    fuel.transformers.sequences])
def test_every_public_stage_is_held_against_numpy(module):
    """A new stage joins this file; bases, processes, and stages that choose
    items, put them together or mix them, have files of their own."""
    elsewhere = {
        'BalancedBatches', 'Chain', 'Chunk', 'CutMix', 'MarkExamples',
        'MarkPadding', 'Mix',
        'MixUp', 'Pack', 'PackingReport', 'Take', 'ToDense',
        'AgnosticSourcewiseTransformer', 'AgnosticTransformer',
        'BackgroundProcess', 'Expand', 'ExpectsAxisLabels', 'MultiProcessing',
        'MultiThreading',
        'SeededTransformer', 'SourcewiseTransformer', 'Transformer'}
    assert set(module.__all__) - elsewhere <= globals().keys()
