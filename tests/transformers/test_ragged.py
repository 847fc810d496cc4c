"""Ragged data pass through the general stages unchanged."""
import numpy
import pytest
from numpy.testing import assert_array_equal
from support.image_data import as_objects, encode, pixels

from fuel.datasets import IndexableDataset
from fuel.schemes import (
    ConstantScheme,
    SequentialExampleScheme,
    SequentialScheme,
)
from fuel.streams import DataStream
from fuel.transformers import (
    Batch,
    Cache,
    FilterSources,
    Mapping,
    Merge,
    MultiProcessing,
    Rename,
    Unpack,
)
from fuel.transformers.image import (
    ImagesFromBytes,
    Normalize,
    RandomFixedSizeCrop,
)

# The first two have equal shapes, so that a batch of them is one array.
ARRAYS = [pixels(1, 2, 3), pixels(1, 2, 3, seed=1), pixels(1, 4, 3),
          pixels(3, 2, 2), pixels(1, 1, 1)]


def by_batch(form, size=2):
    """Return a stream of ragged batches."""
    return DataStream(
        IndexableDataset({'image': form(ARRAYS), 'number': numpy.arange(5)}),
        iteration_scheme=SequentialScheme(5, size))


def by_example(form):
    """Return a stream of examples of different shapes."""
    return DataStream(
        IndexableDataset({'image': form(ARRAYS), 'number': numpy.arange(5)}),
        iteration_scheme=SequentialExampleScheme(5))


STAGES = {
    'Batch': lambda form: Batch(
        by_example(form), iteration_scheme=ConstantScheme(2)),
    'Unpack': lambda form: Unpack(by_batch(form)),
    'Unpack, Batch': lambda form: Batch(
        Unpack(by_batch(form)), iteration_scheme=ConstantScheme(3)),
    'Cache': lambda form: Cache(
        by_batch(form), iteration_scheme=ConstantScheme(3)),
    'Mapping': lambda form: Mapping(by_batch(form), lambda data: data),
    'FilterSources': lambda form: FilterSources(
        by_batch(form), ('image', 'number')),
    'Rename': lambda form: Rename(by_batch(form), {'number': 'index'}),
    'Merge': lambda form: FilterSources(Merge(
        (by_batch(form), by_batch(form)),
        ('image', 'number', 'image_2', 'number_2')), ('image', 'number')),
    'MultiProcessing': lambda form: MultiProcessing(by_batch(form)),
}


@pytest.mark.parametrize('form', [list, as_objects])
@pytest.mark.parametrize('name', sorted(STAGES))
def test_general_stage_hands_ragged_images_on(name, form):
    """Every image comes out as it went in, with its number."""
    with STAGES[name](form) as stream:
        found = {}
        for data in stream.get_epoch_iterator():
            rows = [data] if stream.produces_examples else zip(
                *data, strict=True)
            for image, number in rows:
                found[int(number)] = image
    assert list(range(5)) == sorted(found)
    for number, image in found.items():
        assert_array_equal(ARRAYS[number], image)
        assert ARRAYS[number].dtype == image.dtype


def test_image_stages_work_in_another_process():
    """The threads of a stage are made anew in a process that was forked."""
    files = [encode(pixels(20 + n, 24, 3, seed=n)) for n in range(8)]

    def build():
        stream = DataStream(IndexableDataset({'image': files}),
                            iteration_scheme=SequentialScheme(8, 4))
        stream = ImagesFromBytes(stream, num_threads=2)
        stream = RandomFixedSizeCrop(stream, (16, 16), stack=True,
                                     num_threads=2)
        return Normalize(stream, .5, .5, 1 / 255)

    # The pool has threads when the process is made.
    expected = [batch for batch, in build().get_epoch_iterator()]
    with MultiProcessing(build()) as stream:
        found = [batch for batch, in stream.get_epoch_iterator()]
    assert_array_equal(expected, found)
