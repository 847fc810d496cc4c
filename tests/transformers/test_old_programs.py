"""Attributes, names and return formats that programs for 0.2.0 rely on."""
import warnings

import numpy
import pytest
from numpy.testing import assert_array_equal
from support.image_data import as_objects, batches, examples, first, pixels

import fuel.exceptions
import fuel.streams
import fuel.transformers
import fuel.transformers.image
from fuel.datasets import IndexableDataset, IterableDataset
from fuel.schemes import (
    ConstantScheme,
    SequentialExampleScheme,
    SequentialScheme,
)
from fuel.streams import DataStream
from fuel.transformers import (
    Batch,
    Cache,
    Cast,
    Filter,
    FilterSources,
    Flatten,
    Mapping,
    Merge,
    MultiProcessing,
    Padding,
    Rename,
    ScaleAndShift,
    Transformer,
    Unpack,
)
from fuel.transformers.image import (
    MinimumImageDimensions,
    RandomFixedSizeCrop,
)
from fuel.transformers.sequences import NGrams, Window


def rows(count=4, **kwargs):
    """Return a stream of batches of two sources."""
    return DataStream(IndexableDataset(
        {'x': numpy.arange(count * 2.).reshape(count, 2),
         'y': numpy.arange(count)}),
        iteration_scheme=SequentialScheme(count, 2), **kwargs)


# Sources

def test_as_dict_with_fewer_sources_than_data_leaves_the_rest_out():
    """Scripts hide labels by setting `sources`."""
    stream = rows()
    stream.sources = ('x',)
    batch = next(stream.get_epoch_iterator(as_dict=True))
    assert ['x'] == list(batch)
    assert_array_equal([[0, 1], [2, 3]], batch['x'])
    # A tuple stays whole.
    assert 2 == len(next(stream.get_epoch_iterator()))


def test_as_dict_with_more_sources_than_data_raises():
    """Nothing can be put under the last names."""
    stream = rows()
    stream.sources = ('x', 'y', 'z')
    with pytest.raises(ValueError, match=r'2 items for the 3 sources'):
        next(stream.get_epoch_iterator(as_dict=True))


@pytest.mark.parametrize('build, sources', [
    (lambda stream: Flatten(stream), ('x',)),
    (lambda stream: ScaleAndShift(stream, 1, 0), ('x',)),
    (lambda stream: Cast(stream, 'float64'), ('x',)),
    (lambda stream: Rename(stream, {'x': 'z'}), ('z',)),
    (lambda stream: FilterSources(stream, ('x',)), ('x',)),
    (lambda stream: Filter(stream, lambda data: True), ('x',)),
    (lambda stream: Cache(
        stream, iteration_scheme=ConstantScheme(2)), ('x',)),
    (lambda stream: Batch(
        Unpack(stream), iteration_scheme=ConstantScheme(2)), ('x',)),
    (lambda stream: Mapping(
        stream, lambda data: (data[0] + 1,), add_sources=('z',)),
        ('x', 'z')),
    (lambda stream: Mapping(
        stream, lambda data: {'z': data['x'] + 1}, add_sources=('z',),
        mapping_accepts=dict), ('x', 'z')),
    (lambda stream: Merge((stream, rows()), ('x', 'z', 'y')),
        ('x', 'z', 'y')),
    (lambda stream: Padding(stream, mask_dtype='int8'), ('x', 'x_mask')),
])
def test_stage_over_hidden_sources_gives_what_it_names(build, sources):
    """No data of a hidden source pass under the name of another."""
    shown = FilterSources(rows(), ('x',))
    hidden = rows()
    hidden.sources = ('x',)
    assert sources == tuple(build(hidden).sources)
    for found, expected in zip(
            build(hidden).get_epoch_iterator(as_dict=True),
            build(shown).get_epoch_iterator(as_dict=True), strict=True):
        assert list(sources) == list(found)
        for source in sources:
            assert_array_equal(expected[source], found[source])


def test_padding_mask_sources_unknown_name_is_ignored_with_a_warning():
    """The warning names the nearest source; labels have no such mask."""
    data = IndexableDataset({'x': [[1, 2], [3]]},
                            axis_labels={'x': ('batch', 'time')})
    stream = DataStream(data, iteration_scheme=SequentialScheme(2, 2))
    with pytest.warns(UserWarning, match="did you mean 'x'") as caught:
        padded = Padding(stream, mask_sources=['xx', 'x'])
    assert __file__ == caught[0].filename
    assert ('x', 'x_mask') == padded.sources
    assert {'x', 'x_mask'} == set(padded.axis_labels)
    values, mask = next(padded.get_epoch_iterator())
    assert [[1, 2], [3, 0]] == values.tolist()
    assert [[1, 1], [1, 0]] == mask.tolist()
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        assert ('x', 'x_mask') == Padding(stream, mask_sources='x').sources


# Lists of images

def expected_crops(images, shape, seed):
    """Return crops with a row, then a column drawn for each image."""
    rng, crops = numpy.random.RandomState(seed), []
    for image in images:
        slack = [size - window for size, window in zip(
            image.shape[1:], shape, strict=True)]
        top, left = [rng.randint(0, room + 1) if room else 0
                     for room in slack]
        crops.append(image[:, top:top + shape[0], left:left + shape[1]])
    return crops


@pytest.mark.parametrize('form', [
    list, as_objects, numpy.stack], ids=['list', 'objects', 'array'])
def test_minimum_dimensions_any_batch_gives_a_list_for_crops_behind(form):
    """Row and column of each crop are drawn image by image."""
    images = [pixels(3, 9, 11, seed=n) for n in range(5)]
    big = first(MinimumImageDimensions(batches(form(images)), (7, 7)))
    assert type(big) is list
    crops = first(RandomFixedSizeCrop(
        MinimumImageDimensions(batches(form(images)), (7, 7)), (4, 5),
        rng=numpy.random.RandomState(3)))
    assert type(crops) is list
    for a, b in zip(expected_crops(images, (4, 5), 3), crops, strict=True):
        assert_array_equal(a, b)


def test_crop_of_an_array_draws_all_columns_then_all_rows():
    """A batch in one array stays one."""
    images = pixels(5, 3, 9, 11)
    crops = first(RandomFixedSizeCrop(
        batches(images), (4, 5), rng=numpy.random.RandomState(3)))
    rng = numpy.random.RandomState(3)
    lefts, tops = rng.randint(0, 7, 5), rng.randint(0, 6, 5)
    assert isinstance(crops, numpy.ndarray)
    for image, crop, top, left in zip(images, crops, tops, lefts,
                                      strict=True):
        assert_array_equal(image[:, top:top + 4, left:left + 5], crop)


@pytest.mark.parametrize('stage, scale, shift, dtype', [
    pytest.param(lambda stream: Cast(stream, 'float32'), 1, 0, 'float32',
                 id='Cast'),
    pytest.param(lambda stream: ScaleAndShift(stream, 2, 1), 2, 1, 'int64',
                 id='ScaleAndShift-integers'),
    pytest.param(lambda stream: ScaleAndShift(stream, 2., 1), 2, 1, 'float64',
                 id='ScaleAndShift-floats'),
    pytest.param(lambda stream: Cast(ScaleAndShift(stream, 2., 1), 'float32'),
                 2, 1, 'float32', id='ScaleAndShift-Cast'),
])
def test_list_of_equal_shapes_becomes_one_array_behind_a_cast(
        stage, scale, shift, dtype):
    """A list of unequal shapes stays a list."""
    images = [pixels(3, 9, 11, seed=n) for n in range(3)]
    stacked = first(stage(MinimumImageDimensions(batches(images), (7, 7))))
    assert dtype == stacked.dtype
    assert (3, 3, 9, 11) == stacked.shape
    unequal = [*images[:2], pixels(3, 8, 11)]
    listed = first(stage(MinimumImageDimensions(batches(unequal), (7, 7))))
    assert type(listed) is list
    assert [dtype] * 3 == [image.dtype for image in listed]
    for a, b in zip(unequal, listed, strict=True):
        assert_array_equal(scale * a.astype(int) + shift, b)


def test_lists_of_images_are_the_users_own():
    """Writing into one changes neither the others nor the data set."""
    for form, crop in [(as_objects, True), (numpy.stack, True),
                       (as_objects, False), (numpy.stack, False)]:
        stream = MinimumImageDimensions(batches(form(
            [pixels(3, 9, 11, seed=n) for n in range(4)]), 2), (7, 7))
        if crop:
            stream = RandomFixedSizeCrop(stream, (9, 11))
        first_epoch = []
        for images, in stream.get_epoch_iterator():
            for image in images:
                assert image.flags.writeable
                first_epoch.append(image.copy())
                image[...] = 255
        again = [image for images, in stream.get_epoch_iterator()
                 for image in images]
        for a, b in zip(first_epoch, again, strict=True):
            assert_array_equal(a, b)


def test_lists_of_images_stay_lists_through_workers():
    """The worker sends one array for each image."""
    images = [pixels(3, 9 + n, 11, seed=n) for n in range(4)]
    stage = MinimumImageDimensions(batches(images, 2), (10, 10))
    expected = list(stage.get_epoch_iterator())
    with MultiProcessing(MinimumImageDimensions(
            batches(images, 2), (10, 10)), start_method='fork') as workers:
        found = list(workers.get_epoch_iterator())
    for (a,), (b,) in zip(expected, found, strict=True):
        assert type(a) is type(b) is list
        for one, other in zip(a, b, strict=True):
            assert_array_equal(one, other)
            assert other.flags.writeable


@pytest.mark.parametrize('labels', [
    ('channel', 'height', 'width'), ('height', 'width')])
def test_minimum_dimensions_takes_images_without_a_channel(labels):
    """The labels need not name a channel."""
    image, = first(MinimumImageDimensions(batches(
        [pixels(3, 4)], labels=('batch', *labels)), (6, 8)))
    assert (6, 8) == image.shape
    assert (6, 8) == first(MinimumImageDimensions(
        examples([pixels(3, 4)], labels), (6, 8))).shape
    with pytest.raises(fuel.exceptions.AxisLabelsMismatchError):
        first(MinimumImageDimensions(examples(
            [pixels(3, 4)], ('width', 'height')), (6, 8)))


# Attributes and names

def test_unpack_data_gives_the_examples_to_come():
    """It is None before the first, and leaves out what is read of it."""
    unpack = Unpack(rows(6))
    assert unpack.data is None
    epoch = unpack.get_epoch_iterator()
    assert unpack.data is None
    assert 0 == next(epoch)[1]
    assert 1 == next(unpack.data)[1]
    assert 2 == next(epoch)[1]
    restored = Unpack(rows(6))
    restored.load_state_dict(unpack.state_dict())
    assert [3, 4, 5] == [
        number for _, number in restored.get_epoch_iterator()]


def test_unpack_data_assigned_in_get_data_are_handed_out():
    """A subclass may fetch its own batches."""
    class Twice(Unpack):
        def get_data(self, request=None):
            if not self.data:
                self.data = iter([next(self.child_epoch_iterator)] * 2)
            for example in self.data:
                return example
            self.data = None
            return self.get_data()

    epoch = Twice(rows()).get_epoch_iterator()
    found = [next(epoch)[1].tolist()]
    with pytest.raises(TypeError, match='get_leftover'):
        epoch.state_dict()
    found.extend(data[1].tolist() for data in epoch)
    assert [[0, 1]] * 2 + [[2, 3]] * 2 == found


@pytest.mark.parametrize('build', [
    lambda stream: Window(0, 2, 1, False, stream),
    lambda stream: NGrams(2, stream)])
def test_window_sentence_and_index_show_where_it_stands(build):
    """They show the present sequence, and the start of the next window in
    it."""
    stage = build(DataStream(IterableDataset([[1, 2, 3, 4], [5, 6, 7]])))
    assert (0, 0) == (len(stage.sentence), stage.index)
    epoch = stage.get_epoch_iterator()
    next(epoch)
    assert ([1, 2, 3, 4], 1) == (stage.sentence, stage.index)
    next(epoch)
    next(epoch)
    assert ([5, 6, 7], 1) == (stage.sentence, stage.index)
    stage.get_epoch_iterator()
    assert (0, 0) == (len(stage.sentence), stage.index)


def test_window_goes_on_where_a_pickle_of_0_2_0_or_an_assignment_says():
    """These hold the sentence, and the index of the next window."""
    stage = Window(0, 2, 1, False, DataStream(IterableDataset([[9, 9, 9]])))
    old = Window.__new__(Window)
    old.__setstate__({**stage.__getstate__(),
                      'sentence': [1, 2, 3, 4], 'index': 1})
    assert ([1, 2, 3, 4], 1) == (old.sentence, old.index)
    assert ([2, 3], [4]) == old.get_data()
    stage.get_epoch_iterator()
    stage.sentence = [5, 6, 7, 8]
    assert ([5, 6], [7]) == stage.get_data()
    assert 1 == stage.index
    stage.index = 0
    assert ([5, 6], [7]) == stage.get_data()
    stage.index = 2
    # The next sentence follows.
    assert ([9, 9], [9]) == stage.get_data()
    with pytest.raises(StopIteration):
        stage.get_data()


def test_names_that_modules_of_stages_also_have():
    """Scripts import them from there."""
    assert fuel.transformers.AbstractDataStream is (
        fuel.streams.AbstractDataStream)
    assert fuel.transformers.AxisLabelsMismatchError is (
        fuel.exceptions.AxisLabelsMismatchError)
    for name in ('SourcewiseTransformer', 'ExpectsAxisLabels'):
        assert getattr(fuel.transformers.image, name) is (
            getattr(fuel.transformers, name))
    assert 'fuel.streams' == fuel.streams.AbstractDataStream.__module__


# StopIteration

class Stopping(Transformer):
    """A stage whose hooks raise StopIteration at the second item."""

    def transform_example(self, example):
        """Return the example, but not the second."""
        if example[0] == 1:
            raise StopIteration
        return example

    def transform_batch(self, batch):
        """Return the batch, but not the second."""
        if batch[1][0] == 2:
            raise StopIteration
        return batch


def stop_at_second(data):
    """Return the data, but not the second."""
    if data[-1].flat[0] == 2:
        raise StopIteration
    return data


@pytest.mark.parametrize('stage, name', [
    (lambda: Mapping(rows(6), stop_at_second), 'Mapping'),
    (lambda: Mapping(rows(6), stop_at_second, add_sources=('a', 'b')),
     'Mapping'),
    (lambda: Filter(rows(6), stop_at_second),
     'the predicate of the stage Filter'),
    (lambda: Stopping(rows(6), False), 'transform_batch of the stage Stop'),
    (lambda: Stopping(DataStream(IndexableDataset(numpy.arange(3)),
     iteration_scheme=SequentialExampleScheme(3)), True),
     'transform_example of the stage Stopping')])
def test_stop_iteration_in_a_users_function_is_an_error(stage, name):
    """It would end the epoch after two of the batches."""
    if 'Filter' in name:
        kept = stage()
        kept.predicate = lambda data: stop_at_second(data) is not None
        epoch = kept.get_epoch_iterator()
    else:
        epoch = stage().get_epoch_iterator()
    next(epoch)
    with pytest.raises(RuntimeError, match=name) as caught:
        next(epoch)
    assert isinstance(caught.value.__cause__, StopIteration)
    # The epoch goes on behind it.
    next(epoch)


def test_stop_iteration_of_the_child_in_a_hook_ends_the_epoch():
    """A hook may read on: what it meets there is the end."""
    class Pairs(Transformer):
        def transform_batch(self, batch):
            return (*batch, *next(self.child_epoch_iterator))

    assert 1 == len(list(Pairs(rows(6), False).get_epoch_iterator()))


def test_stop_iteration_in_a_stages_own_get_data_ends_the_epoch():
    """That is how a stage says so."""
    class First(Transformer):
        def get_data(self, request=None):
            data = next(self.child_epoch_iterator)
            if data[1][0] == 2:
                raise StopIteration
            return data

    assert 1 == len(list(First(rows(6), False).get_epoch_iterator()))


# Ownership

def test_cache_examples_of_pieces_share_no_memory_with_the_childs_batch():
    """A script may keep the child's batch and write into it."""
    seen = []

    def keep(data):
        seen.extend(data)
        return data

    ragged = as_objects([numpy.full(1 + n % 3, n) for n in range(9)])
    cache = Cache(Mapping(DataStream(
        IndexableDataset({'x': ragged, 'y': numpy.arange(9)}),
        iteration_scheme=SequentialScheme(9, 3)), keep),
        iteration_scheme=ConstantScheme(4))
    for example, number in cache.get_epoch_iterator():
        for part in seen:
            for row in part:
                assert not any(numpy.shares_memory(row, own)
                               for own in example)
            assert not numpy.shares_memory(part, number)


def test_cache_examples_of_lists_share_no_memory_with_the_childs_batch():
    """A batch that is a list of arrays is copied, too."""
    seen = []

    def as_list(data):
        batch = [numpy.full(1 + n % 3, n) for n in data[0]]
        seen.extend(batch)
        return (batch,)

    cache = Cache(Mapping(DataStream(
        IndexableDataset({'x': numpy.arange(9)}),
        iteration_scheme=SequentialScheme(9, 3)), as_list),
        iteration_scheme=ConstantScheme(4))
    for batch, in cache.get_epoch_iterator():
        assert not any(numpy.shares_memory(row, own)
                       for row in seen for own in batch)
