"""The base of the stages for images: forms of batches, and threads.

A batch of images is an array of shape (batch, channel, height, width), or,
if sizes differ, a list or an array of objects with one image each. Stages
return a batch in the form in which they received it.
"""
from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeGuard, Unpack

import numpy
from numpy.typing import NDArray

from fuel.epochs.stage import stage_of
from fuel.kernels.outputs import empty
from fuel.transformers.axis_labels import ExpectsAxisLabels
from fuel.transformers.options import SourcewiseOptions
from fuel.transformers.ragged import at_place, map_places
from fuel.transformers.source_names import as_labels, labels_of
from fuel.transformers.sourcewise import SourcewiseTransformer
from fuel.typing import StreamLike
from fuel.utils.checks import positive

IMAGE_AXES = ('channel', 'height', 'width')
BATCH_AXES = ('batch', *IMAGE_AXES)
# Number of channels of an image: grey, colour, colour with transparency.
COLOURS = (1, 3, 4)

#: An image with the axes (channel, height, width).
Image: TypeAlias = 'NDArray[Any]'

#: A batch of images: one array, or one array for each image.
Images: TypeAlias = 'NDArray[Any] | Sequence[NDArray[Any]]'


class ImageStage(SourcewiseTransformer, ExpectsAxisLabels):
    """A stage on images with the axes (channel, height, width).

    Subclasses implement :meth:`_transform`, or the methods that call it.
    """

    unsaved_arguments = ('num_threads',)
    takes_sparse = False
    takes_masked = False

    def __init__(self, data_stream: StreamLike, num_threads: int | None = None,
                 *, produces_examples: bool | None = None,
                 **kwargs: Unpack[SourcewiseOptions]) -> None:
        if produces_examples is None:
            produces_examples = data_stream.produces_examples
        kwargs.setdefault('axis_labels', labels_of(data_stream))
        super().__init__(data_stream, produces_examples, **kwargs)
        self.num_threads = None if num_threads is None else positive(
            'num_threads', num_threads)

    def transform_source_example(self, source_example: Any,
                                 source_name: str) -> Any:
        """Return an image, transformed."""
        self._verify(IMAGE_AXES, source_name, [source_example])
        return self._transform(
            check_image(source_example)[numpy.newaxis], source_name)[0]

    def transform_source_batch(self, source_batch: Any,
                               source_name: str) -> Any:
        """Return a transformed batch of images, in the form of the given one.

        Stages that give all images one size return one array.
        """
        self._verify(BATCH_AXES, source_name, source_batch)
        result = self._transform(images_of(source_batch), source_name)
        return (in_form_of(source_batch, result)
                if isinstance(result, list) else result)

    def _transform(self, images: Images, source_name: str) -> Any:
        """Return checked images transformed, as one array or as a list."""
        raise NotImplementedError

    def _verify(self, axes: tuple[str, ...], source: str,
                images: Images) -> None:
        """Check the axis labels of a source.

        Without labels, warn of images that look transposed.
        """
        labels = stage_of(self.data_stream).labels
        is_first = source not in vars(self).get('_verified_sources', ())
        self.verify_axis_labels(axes, labels.get(source), source)
        if is_first and as_labels(labels.get(source)) is None:
            shape = getattr(next(iter(images), None), 'shape', ())
            if has_channels_last(shape):
                warnings.warn(
                    f'the images of source {source!r} have the shape {shape}, '
                    'which looks like (height, width, channel), but '
                    f'{type(self).__name__} takes the axes for (channel, '
                    'height, width): transpose the images, or give the '
                    'data set axis_labels if the shape is right',
                    stacklevel=2)


def has_channels_last(shape: tuple[int, ...]) -> bool:
    """Return whether the last axis, not the first, seems to be the channel."""
    return len(shape) == 3 and shape[2] in COLOURS and min(
        shape[:2]) > max(COLOURS)


def as_shape(name: str, shape: Sequence[int]) -> tuple[int, int]:
    """Check a height and a width, and return them."""
    try:
        height, width = shape
        return positive(name, height), positive(name, width)
    except (TypeError, ValueError):
        raise ValueError(f'{name} must be two positive integers, (height, '
                         f'width), got {shape!r}') from None


def is_stacked(batch: Images) -> TypeGuard[NDArray[Any]]:
    """Return whether a batch is one array, not one array for each image."""
    return isinstance(batch, numpy.ndarray) and batch.dtype != object


def check_image(image: object, where: str = 'an image') -> Any:
    """Return an image; raise ValueError unless it has three axes."""
    if not isinstance(image, numpy.ndarray) or image.ndim != 3:
        got = (f'the shape {image.shape}' if isinstance(image, numpy.ndarray)
               else f'{image!r:.60} ({type(image).__name__})')
        raise ValueError(
            f'{where} must be an array with the axes (channel, height, '
            f'width), got {got}')
    return image


def images_of(batch: Images) -> Any:
    """Check the images of a batch, and return them as an array or a list."""
    if is_stacked(batch):
        if batch.ndim != 4:
            raise ValueError(
                'a batch of images must be an array with the axes (batch, '
                'channel, height, width), or a list of arrays with the axes '
                f'(channel, height, width); got the shape {batch.shape}: '
                'name the sources with images, which_sources=(...)')
        return batch
    place = 0
    try:
        for place, image in enumerate(batch):
            check_image(image, f'image {place} of a batch')
    except ValueError as error:
        at_place(error, place)
        raise
    return list(batch)


def in_form_of(batch: Images, images: list[Any]) -> Any:
    """Return images in the form of the batch that they were made of."""
    if is_stacked(batch):
        return numpy.stack(images) if images else batch.copy()
    if not isinstance(batch, numpy.ndarray):
        return images
    out = numpy.empty(len(images), object)
    for place, image in enumerate(images):
        out[place] = image
    return out


def map_images(function: Callable[[int], Any], count: int,
               num_threads: int | None) -> list[Any]:
    """Call a function for each place of a batch, on several threads."""
    return map_places(function, count, num_threads, 'image')


def new_stack(images: Images, shape: tuple[int, int]) -> Any:
    """Return an empty array for images that will have equal shapes."""
    if not len(images):
        return numpy.empty((0, 0, *shape), numpy.uint8)
    channels, dtype = len(images[0]), images[0].dtype
    for place, image in enumerate(images):
        if (len(image), image.dtype) != (channels, dtype):
            raise at_place(ValueError(
                'images must have one number of channels and one type to be '
                f'stacked: image 0 has {channels} of {dtype}, but image '
                f'{place} has {len(image)} of {image.dtype}; ImagesFromBytes '
                "makes them alike with color_mode='RGB'"), place)
    return empty((len(images), channels, *shape), dtype.newbyteorder('='))
