"""Errors and logs tell which example of the data set they are about."""
import io
import json
import pickle

import numpy
import pytest
from PIL import Image

from fuel.datasets import IndexableDataset, IterableDataset
from fuel.exceptions import UndecodableImageError
from fuel.schemes import (
    ConstantScheme,
    IterationScheme,
    ShuffledExampleScheme,
    ShuffledScheme,
)
from fuel.streams import DataStream
from fuel.transformers import (
    Batch,
    Cache,
    FilterSources,
    Mapping,
    MultiProcessing,
    Rename,
    SortMapping,
)
from fuel.transformers.image import (
    CenterCrop,
    ImagesFromBytes,
    RandomFixedSizeCrop,
    RandomHorizontalFlip,
    RandomResizedCrop,
)

COUNT, BAD = 300, 213


def encode(height):
    """Return a PNG file."""
    file = io.BytesIO()
    Image.new('L', (6, height)).save(file, 'PNG')
    return file.getvalue()


FILES = [encode(6)] * COUNT
FILES[BAD] = b'no image'


def notes_of(stream, error=UndecodableImageError):
    """Return the notes of the error that an epoch ends with."""
    with pytest.raises(error) as caught:
        list(stream.get_epoch_iterator())
    return caught.value.__notes__


def shuffled(batch_size=128):
    """Return a stream of batches of files, one of them bad."""
    return DataStream(IndexableDataset({'image': FILES}),
                      iteration_scheme=ShuffledScheme(COUNT, batch_size))


def in_order():
    """Return a stream of the files in order."""
    return DataStream(IterableDataset({'image': FILES}))


@pytest.mark.parametrize('make', [
    shuffled,
    lambda: DataStream(IndexableDataset({'image': FILES}),
                       iteration_scheme=ShuffledExampleScheme(COUNT)),
    in_order,
    lambda: Batch(in_order(), iteration_scheme=ConstantScheme(32)),
    lambda: Batch(DataStream(
        IndexableDataset({'image': FILES}),
        iteration_scheme=ShuffledExampleScheme(COUNT)),
        iteration_scheme=ConstantScheme(32)),
    lambda: Rename(shuffled(), {'image': 'picture'}),
    lambda: FilterSources(shuffled(), ('image',)),
    lambda: Mapping(in_order(), tuple),
])
def test_error_of_a_stage_names_the_example_of_the_data_set(make):
    """The number is right in any order, and by any way of reading."""
    notes = notes_of(ImagesFromBytes(make()))
    assert f'example {BAD} of the data set' in notes
    assert 1 == sum('of the data set' in note for note in notes)


@pytest.mark.parametrize('save', [
    lambda stream: json.loads(json.dumps(stream.state_dict())), None])
def test_error_names_the_example_after_resuming(save):
    """The request that is looked up is one of the resumed epoch."""
    stream = ImagesFromBytes(shuffled(1))
    epoch = stream.get_epoch_iterator()
    next(epoch)
    if save is None:
        epoch = pickle.loads(pickle.dumps(epoch))
    else:
        state, stream = save(stream), ImagesFromBytes(shuffled(1))
        stream.load_state_dict(state)
        epoch = stream.get_epoch_iterator()
    with pytest.raises(UndecodableImageError) as caught:
        list(epoch)
    assert f'example {BAD} of the data set' in caught.value.__notes__


@pytest.mark.parametrize('stage', [
    CenterCrop, RandomFixedSizeCrop, RandomHorizontalFlip,
    RandomResizedCrop])
def test_error_of_each_image_stage_names_the_example(stage):
    """Its place in the batch is known to the stage alone."""
    images = numpy.empty(20, object)
    images[:] = [numpy.zeros((1, 6, 6), 'uint8')] * 20
    images[13] = numpy.zeros((6, 6), 'uint8')
    stream = DataStream(IndexableDataset({'image': images}),
                        iteration_scheme=ShuffledScheme(20, 8))
    shape = () if stage is RandomHorizontalFlip else ((4, 4),)
    assert 'example 13 of the data set' in notes_of(
        stage(stream, *shape), ValueError)
    if shape and stage is not RandomResizedCrop:
        images[13] = numpy.zeros((1, 3, 6), 'uint8')
        assert 'example 13 of the data set' in notes_of(
            stage(stream, *shape), ValueError)
    if stage is RandomResizedCrop:
        images[0] = images[13] = numpy.zeros((1, 6, 6), 'uint8')
        images[13] = numpy.zeros((3, 6, 6), 'uint8')
        assert any('of the data set' in note for note in notes_of(
            stage(stream, *shape), ValueError))


def test_error_of_a_whole_batch_names_its_examples():
    """A stage that does not know the place tells what it had read."""
    stream = DataStream(
        IndexableDataset({'image': numpy.zeros((8, 1, 3, 3))}),
        iteration_scheme=ShuffledScheme(8, 4))
    asked = next(ShuffledScheme(8, 4).get_request_iterator())
    assert f'among the examples {asked} of the data set' in notes_of(
        RandomFixedSizeCrop(stream, (4, 4)), ValueError)


def test_error_of_a_large_batch_names_the_first_of_its_examples():
    """It does not list hundreds of numbers."""
    stream = DataStream(
        IndexableDataset({'image': numpy.zeros((80, 1, 3, 3))}),
        iteration_scheme=ShuffledScheme(80, 64))
    asked = next(ShuffledScheme(80, 64).get_request_iterator())
    assert (f'among the examples {asked[:10]} and 54 others of the data set'
            in notes_of(RandomFixedSizeCrop(stream, (4, 4)), ValueError))


def test_error_behind_a_users_function_names_all_that_it_got():
    """A function on batches may have sorted them."""
    files = [encode(6), encode(7), b'', encode(3)]
    stream = Mapping(DataStream(
        IndexableDataset({'image': files}),
        iteration_scheme=ShuffledScheme(4, 4, rng=numpy.random.RandomState(
            1))), SortMapping(lambda example: len(example[0])))
    asked = next(ShuffledScheme(4, 4, rng=numpy.random.RandomState(
        1)).get_request_iterator())
    assert f'among the examples {asked} of the data set' in notes_of(
        ImagesFromBytes(stream))


class _Own(IterationScheme):
    """A scheme whose iterator cannot be asked again."""

    requests_examples = False

    def get_request_iterator(self):
        return iter([[0, BAD]])


@pytest.mark.parametrize('make', [
    lambda: Cache(shuffled(20), iteration_scheme=ConstantScheme(7)),
    lambda: DataStream(IndexableDataset({'image': FILES}),
                       iteration_scheme=_Own()),
])
def test_error_names_no_example_where_it_is_not_known(make):
    """No number is better than a wrong one."""
    notes = notes_of(ImagesFromBytes(make()))
    assert not any('of the data set' in note for note in notes)


def test_error_from_a_worker_names_the_example():
    """The notes are pickled with the error."""
    with MultiProcessing(ImagesFromBytes(shuffled())) as workers:
        notes = notes_of(workers)
    assert f'example {BAD} of the data set' in notes
