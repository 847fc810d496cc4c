"""An image pipeline: encoded files of any size, enlarged, cropped, scaled."""
import io

import numpy
from numpy.testing import assert_array_equal
from PIL import Image

from fuel.datasets import IndexableDataset
from fuel.schemes import (
    SequentialExampleScheme,
    SequentialScheme,
    ShuffledScheme,
)
from fuel.streams import DataStream
from fuel.transformers import (
    AgnosticSourcewiseTransformer,
    Cast,
    Flatten,
    ScaleAndShift,
    SourcewiseTransformer,
)
from fuel.transformers.image import (
    ImagesFromBytes,
    MinimumImageDimensions,
    Random2DRotation,
    RandomFixedSizeCrop,
)

SHAPES = [(9, 12), (4, 20), (10, 10), (3, 3), (16, 5), (8, 8)]


def files():
    """Return pictures, and what they are encoded as."""
    rng = numpy.random.RandomState(4)
    pictures = [rng.randint(256, size=(3, *shape)).astype('uint8')
                for shape in SHAPES]
    encoded = []
    for picture in pictures:
        buffer = io.BytesIO()
        Image.fromarray(picture.transpose(1, 2, 0)).save(buffer, 'PNG')
        encoded.append(buffer.getvalue())
    return pictures, encoded


def enlarge(picture, height, width):
    """Enlarge a picture by Pillow, as the stage is said to."""
    old_height, old_width = picture.shape[1:]
    if old_height >= height and old_width >= width:
        return picture
    factor = max(height / old_height, width / old_width)
    size = (int(round(old_width * factor)), int(round(old_height * factor)))
    image = Image.fromarray(picture.transpose(1, 2, 0))
    return numpy.asarray(image.resize(
        size, Image.Resampling.NEAREST)).transpose(2, 0, 1)


def pipeline(scheme, window=(8, 8), seed=9):
    """Return the stream of the program."""
    _, encoded = files()
    dataset = IndexableDataset(
        {'image': encoded, 'label': numpy.arange(len(encoded))},
        axis_labels={'image': ('batch', 'bytes'), 'label': ('batch',)})
    stream = ImagesFromBytes(
        DataStream(dataset, iteration_scheme=scheme),
        which_sources=('image',), color_mode='RGB')
    stream = MinimumImageDimensions(stream, window,
                                    which_sources=('image',))
    stream = RandomFixedSizeCrop(
        stream, window, rng=numpy.random.RandomState(seed),
        which_sources=('image',))
    return ScaleAndShift(
        Cast(stream, 'float32', which_sources=('image',)),
        1 / 128., -1, which_sources=('image',))


def crop(picture, rng):
    """Cut a window: the row is drawn, then the column."""
    slack = [side - 8 for side in picture.shape[1:]]
    row, column = (rng.randint(0, part + 1) if part else 0 for part in slack)
    return picture[:, row:row + 8, column:column + 8]


def test_pipeline_gives_arrays_that_follow_from_the_seed():
    """One 4-d array a batch, each crop as drawn by hand."""
    pictures, _ = files()
    rng = numpy.random.RandomState(9)
    expected = [crop(enlarge(picture, 8, 8), rng) for picture in pictures]
    batches = list(pipeline(SequentialScheme(6, 4)).get_epoch_iterator())
    assert [(4, 3, 8, 8), (2, 3, 8, 8)] == [
        image.shape for image, _ in batches]
    result = numpy.concatenate([image for image, _ in batches])
    assert 'float32' == result.dtype
    scaled = numpy.stack(expected).astype('float32')
    assert_array_equal(scaled * numpy.float32(1 / 128.) - 1, result)


def test_pipeline_of_examples_draws_the_same():
    """One image at a time."""
    one = [image for image, _ in pipeline(
        SequentialExampleScheme(6)).get_epoch_iterator()]
    batches = [image for batch, _ in pipeline(
        SequentialScheme(6, 4)).get_epoch_iterator() for image in batch]
    assert_array_equal(batches, one)


def test_pipeline_shuffled_twice_is_the_same():
    """The whole program depends on its seeds alone."""
    def run():
        stream = Flatten(Random2DRotation(
            pipeline(ShuffledScheme(6, 3)), maximum_rotation=.3,
            which_sources=('image',)), which_sources=('image',))
        return [(label.tolist(), image) for _ in range(2)
                for image, label in stream.get_epoch_iterator()]
    for one, other in zip(run(), run(), strict=True):
        assert one[0] == other[0]
        assert_array_equal(one[1], other[1])


class SubtractPixelMean(SourcewiseTransformer):
    """A user's stage in the middle: works on lists and on arrays."""

    def __init__(self, data_stream, mean, **kwargs):
        super(SubtractPixelMean, self).__init__(
            data_stream, data_stream.produces_examples, **kwargs)
        self.mean = numpy.asarray(mean, 'float32')[:, None, None]

    def transform_source_example(self, example, _):
        """Subtract from one image."""
        return example.astype('float32') - self.mean

    def transform_source_batch(self, batch, name):
        """Subtract from each."""
        return [self.transform_source_example(image, name)
                for image in batch]


class ToBGR(AgnosticSourcewiseTransformer):
    """Another: reverses the channels of whatever comes."""

    def __init__(self, data_stream, **kwargs):
        super(ToBGR, self).__init__(
            data_stream, data_stream.produces_examples, **kwargs)

    def transform_any_source(self, source, _):
        """Reverse, image by image if it is a list."""
        if isinstance(source, list):
            return [image[::-1] for image in source]
        return source[..., ::-1, :, :]


def test_stages_of_users_get_lists_of_arrays_in_the_middle():
    """From the stages that make images of different size."""
    pictures, encoded = files()
    dataset = IndexableDataset({'image': encoded})
    stream = SubtractPixelMean(ToBGR(ImagesFromBytes(DataStream(
        dataset, iteration_scheme=SequentialScheme(6, 6)))), [1, 2, 3])
    images, = next(stream.get_epoch_iterator())
    assert isinstance(images, list)
    for picture, image in zip(pictures, images, strict=True):
        assert_array_equal(
            picture[::-1].astype('float32')
            - numpy.float32([1, 2, 3])[:, None, None], image)
