"""Stages that flip and rotate images at random."""
from __future__ import annotations

import math
from typing import Any, Unpack

import numpy

from fuel.kernels import mirror_images
from fuel.transformers.base import ALL
from fuel.transformers.image.base import (
    Images, ImageStage, is_stacked, map_images)
from fuel.transformers.seeded import (
    RandomTransformer, SeededTransformer, draw_uniform)
from fuel.transformers.image.resampling import (
    ROTATION_FILTERS, Filter, check_filter, filter_of, rotate_image)
from fuel.transformers.options import ImageOptions, RandomImageOptions
from fuel.typing import RandomGenerator, StreamLike


class RandomHorizontalFlip(SeededTransformer, ImageStage):
    """Exchanges left and right in some of the images, at random.

    Parameters
    ----------
    probability : float, optional
        Probability that an image is flipped. Defaults to 0.5.
    seed, draws, num_threads, produces_examples
        See :mod:`fuel.transformers`.
    which_sources, iteration_scheme
        See :mod:`fuel.transformers`.
    axis_labels
        See :mod:`fuel.transformers`.

    Raises
    ------
    ValueError
        If `probability` is not from 0 to 1; when data are requested, if an
        example is not an image.

    Notes
    -----
    Images have the axes (channel, height, width) and any type. A batch
    keeps its form. The draws depend only on the seed, the epoch, and the
    number of the batch or, with ``draws='example'``, the example; sources of
    one stage get the same draws, so an image and its mask stay aligned.

    Examples
    --------
    >>> import numpy
    >>> from fuel.datasets import IterableDataset
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IterableDataset([numpy.array([[[1, 2, 3]]])]))
    >>> next(RandomHorizontalFlip(stream, 1.).get_epoch_iterator())
    (array([[[3, 2, 1]]]),)
    """

    keeps_rows = True
    keeps = ALL

    def __init__(self, data_stream: StreamLike, probability: float = .5,
                 **kwargs: Unpack[RandomImageOptions]) -> None:
        if not 0 <= probability <= 1:
            raise ValueError('probability must be from 0 to 1, got '
                             f'{probability!r}')
        self.probability = probability
        super().__init__(data_stream, **kwargs)

    def _transform(self, images: Images, source_name: str) -> Any:
        flipped = self._draw_shares(len(images)) < self.probability
        if is_stacked(images):
            return mirror_images(images, flipped, self.num_threads)
        return [mirror_images(image[numpy.newaxis], [mark])[0]
                for image, mark in zip(images, flipped, strict=True)]


class Random2DRotation(RandomTransformer, ImageStage):
    """Rotates images about their centre, each by a random angle.

    Parameters
    ----------
    maximum_rotation : float, optional
        The largest angle, in radians, in either direction. Defaults to pi.
    resample : {'nearest', 'bilinear', 'bicubic'} or dict, optional
        The filter; a dict has the filter of each source. Defaults to
        ``'nearest'``.
    rng : numpy.random.RandomState, optional
        The source of random numbers; see :class:`RandomFixedSizeCrop`.
    seed : int, optional
        Used instead of `rng`; see :class:`RandomFixedSizeCrop`.
    draws : {'item', 'example'}, optional
        See :class:`RandomFixedSizeCrop`.
    num_threads, produces_examples, which_sources, iteration_scheme
        See :mod:`fuel.transformers`.
    axis_labels
        See :mod:`fuel.transformers`.

    Raises
    ------
    ValueError
        If `maximum_rotation` is not above 0 and at most pi, `resample` is
        not known, or both `rng` and `seed` are given; when data are
        requested, if an example is not an image.

    Notes
    -----
    Images have the axes (channel, height, width), keep their shape and
    type, and are zero outside the rotated image. Types other than uint8 are
    resampled in float32, except with ``'nearest'``. With a `seed`, sources of
    one stage get the same draws.

    Examples
    --------
    >>> import numpy
    >>> from fuel.datasets import IterableDataset
    >>> from fuel.streams import DataStream
    >>> image = numpy.arange(1, 10).reshape(1, 3, 3)
    >>> stream = DataStream(IterableDataset([image]))
    >>> rotated, = next(Random2DRotation(
    ...     stream, rng=numpy.random.RandomState(6)).get_epoch_iterator())
    >>> rotated
    array([[[6, 9, 8],
            [3, 5, 7],
            [2, 1, 4]]])
    """

    keeps_rows = True
    keeps = ALL

    def __init__(self, data_stream: StreamLike,
                 maximum_rotation: float = math.pi,
                 resample: Filter = 'nearest',
                 rng: RandomGenerator | None = None, seed: int | None = None,
                 draws: str = 'item',
                 **kwargs: Unpack[ImageOptions]) -> None:
        if not 0 < maximum_rotation <= math.pi:
            raise ValueError(
                'maximum_rotation must be an angle in radians, above 0 and '
                f'at most pi, got {maximum_rotation!r}')
        self.maximum_rotation = maximum_rotation
        super().__init__(data_stream, rng=rng, seed=seed, draws=draws,
                         **kwargs)
        self.resample = check_filter(
            resample, ROTATION_FILTERS, self.which_sources)

    def _transform(self, images: Images, source_name: str) -> Any:
        angles = self._draw_angles(len(images))
        resample = filter_of(self.resample, source_name)
        return map_images(
            lambda place: rotate_image(
                images[place], float(angles[place]), resample),
            len(images), self.num_threads)

    def _draw_angles(self, count: int) -> Any:
        """Draw the angles of `count` images, in degrees."""
        most = float(numpy.rad2deg(self.maximum_rotation))
        if not self.draws_by_seed:
            return draw_uniform(self.rng, most, count)
        if self._by_example:
            return most * (2 * self._draw_shares(count) - 1)
        return self.draw_rows(count, lambda generator, total: (
            generator.uniform(-most, most, total)))
