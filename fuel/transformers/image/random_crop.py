"""Stages that crop images at random places.

All random numbers are drawn before any thread starts.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Unpack

import numpy
from numpy.typing import NDArray

from fuel.describe.source_types import SourceType
from fuel.kernels import crop_windows
from fuel.kernels.memory import empty
from fuel.transformers.image.base import (
    BATCH_AXES, IMAGE_AXES, Image, Images, ImageStage, as_shape,
    check_image, images_of, is_stacked, map_images, new_stack)
from fuel.transformers.image.sizes import (
    FixedSizeStage, copy_window, slack_of, with_size)
from fuel.transformers.seeded import (
    RandomTransformer, SeededTransformer, draw_integers)
from fuel.transformers.image.resampling import (
    RESIZE_FILTERS, Filter, check_filter, filter_of, resize_image)
from fuel.transformers.options import ImageOptions, RandomImageOptions
from fuel.transformers.ragged import at_place
from fuel.typing import RandomGenerator, StreamLike


class RandomFixedSizeCrop(RandomTransformer, ImageStage):
    """Crops images to a fixed size, each at a random place.

    Parameters
    ----------
    window_shape : (int, int)
        Height and width of the crops.
    stack : bool, optional
        Whether to return the crops of a list of images as one array.
        Defaults to False: as a list.
    rng : numpy.random.RandomState, optional
        The source of random numbers. A :class:`numpy.random.Generator` or a
        :class:`random.Random` is accepted too. Default is a new
        ``RandomState(config.default_seed)``, unless there is a `seed`.
    seed : int, optional
        Used instead of `rng`. The draws for a batch then depend only on the
        seed, the epoch and the number of the batch, so that workers and
        ranks can share the stage.
    draws : {'item', 'example'}, optional
        See :class:`~fuel.transformers.SeededTransformer`. ``'example'`` draws
        by the seed, whose default is ``config.default_seed``.
    num_threads, produces_examples, which_sources, iteration_scheme
        See :mod:`fuel.transformers`.
    axis_labels
        See :mod:`fuel.transformers`.

    Raises
    ------
    ValueError
        If `window_shape` is invalid, or both `rng` and `seed` are given;
        when data are requested, if an image is smaller than the window, or
        is not an image.

    Notes
    -----
    Images have the axes (channel, height, width) and any type. A batch in one
    array becomes one array. A list, or an array of objects, becomes a list,
    unless `stack` is True.

    With an `rng`, the order of the draws depends on the form of a batch. For
    one array, the columns of all windows are drawn first, then the rows. For
    a list, row and column are drawn image by image; a value is not drawn if
    only one is possible. With a `seed`, the draws do not depend on the form
    of a batch, and all sources of the stage get the same draws.

    Examples
    --------
    >>> import numpy
    >>> from fuel.datasets import IterableDataset
    >>> from fuel.streams import DataStream
    >>> image = numpy.arange(16).reshape(1, 4, 4)
    >>> stream = DataStream(IterableDataset([image, image]))
    >>> crops = RandomFixedSizeCrop(
    ...     stream, (2, 2), rng=numpy.random.RandomState(0))
    >>> for crop, in crops.get_epoch_iterator():
    ...     print(crop.tolist())
    [[[1, 2], [5, 6]]]
    [[[1, 2], [5, 6]]]
    """

    keeps_rows = True

    def __init__(self, data_stream: StreamLike, window_shape: Sequence[int],
                 stack: bool = False, rng: RandomGenerator | None = None,
                 seed: int | None = None, draws: str = 'item',
                 **kwargs: Unpack[ImageOptions]) -> None:
        self.window_shape = as_shape('window_shape', window_shape)
        self.stack = stack
        super().__init__(data_stream, rng=rng, seed=seed, draws=draws,
                         **kwargs)

    def type_after(self, known: SourceType, source_name: str) -> SourceType:
        """Return the type of images of the size of the window."""
        return with_size(known, self.window_shape)

    def transform_source_example(self, source_example: Image,
                                 source_name: str) -> Any:
        """Return a random window of an image."""
        self._verify(IMAGE_AXES, source_name, [source_example])
        image = check_image(source_example)
        top, left = self._draw_one(image, 'the image', self._draw_places(1))
        return crop_windows(
            image[numpy.newaxis], [top], [left], self.window_shape)[0]

    def transform_source_batch(self, source_batch: Images,
                               source_name: str) -> Any:
        """Return a random window of each image."""
        self._verify(BATCH_AXES, source_name, source_batch)
        images = images_of(source_batch)
        shares = self._draw_places(len(images))
        if is_stacked(source_batch):
            rows, columns = slack_of(
                images[0], self.window_shape, 'each image') if len(
                    images) else (0, 0)
            if self.draws_by_seed:
                tops, lefts = (shares * (rows + 1, columns + 1)).astype(int).T
            else:
                lefts = draw_integers(self.rng, columns, len(images))
                tops = draw_integers(self.rng, rows, len(images))
            return crop_windows(images, tops, lefts, self.window_shape,
                                num_threads=self.num_threads)
        offsets = []
        for place, image in enumerate(images):
            try:
                offsets.append(self._draw_one(
                    image, f'image {place} of the batch', shares[place:]))
            except ValueError as error:
                at_place(error, place)
                raise
        return self._crop_each(images, offsets)

    def _draw_places(self, count: int) -> Any:
        """Draw the positions of windows, as fractions of their ranges.

        With an `rng` nothing is drawn here: the positions are drawn later.
        """
        return self._draw_shares(count, 2) if self.draws_by_seed else ()

    def _crop_each(self, images: list[Any],
                   offsets: list[tuple[int, int]]) -> Any:
        """Return windows of images of different sizes."""
        out = new_stack(images, self.window_shape) if self.stack else [
            empty((len(image), *self.window_shape),
                  image.dtype.newbyteorder('=')) for image in images]

        def crop(place: int) -> None:
            copy_window(images[place], *offsets[place], out[place])

        map_images(crop, len(images), self.num_threads)
        return out

    def _draw_one(self, image: Image, which: str,
                  shares: Any) -> tuple[int, int]:
        """Draw the position of an image's window."""
        rows, columns = slack_of(image, self.window_shape, which)
        if self.draws_by_seed:
            top, left = shares[0]
            return int(top * (rows + 1)), int(left * (columns + 1))
        top = int(draw_integers(self.rng, rows)) if rows else 0
        left = int(draw_integers(self.rng, columns)) if columns else 0
        return top, left


class RandomResizedCrop(SeededTransformer, FixedSizeStage):
    """Cuts random parts out of images and resizes them to a fixed size.

    The usual augmentation for classifying photographs: parts of various
    sizes and proportions.

    Parameters
    ----------
    shape : (int, int)
        Height and width of the results.
    scale : (float, float), optional
        Least and largest fraction of the area of an image that a part has.
        Defaults to (0.08, 1).
    ratio : (float, float), optional
        Least and largest ratio of the width of a part to its height. Defaults
        to (3/4, 4/3).
    resample : str or dict, optional
        The filter, or a dict with the filter of each source, as for
        :class:`Resize`. Defaults to ``'bilinear'``.
    seed, draws, num_threads, produces_examples
        See :mod:`fuel.transformers`.
    which_sources, iteration_scheme
        See :mod:`fuel.transformers`.
    axis_labels
        See :mod:`fuel.transformers`.

    Raises
    ------
    ValueError
        If an argument is invalid; when a batch is requested, if its images
        differ in channels or type.

    Notes
    -----
    The draws depend only on the seed, the epoch, and the number of the batch
    or, with ``draws='example'``, the example.
    Sources of one stage get the same draws, so an image and its mask stay
    aligned. Ten parts are tried for each image; if none fits into the image,
    the largest part with an allowed ratio is cut from the middle.

    Examples
    --------
    >>> import numpy
    >>> from fuel.datasets import IterableDataset
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IterableDataset([numpy.ones((3, 40, 60))]))
    >>> crops = RandomResizedCrop(stream, (8, 8), seed=5)
    >>> next(crops.get_epoch_iterator())[0].shape
    (3, 8, 8)
    """

    keeps_rows = True
    # Nothing is kept of the chosen sources; the others keep their types.
    keeps = frozenset[str]()

    def __init__(self, data_stream: StreamLike, shape: Sequence[int],
                 scale: Sequence[float] = (.08, 1.),
                 ratio: Sequence[float] = (3 / 4, 4 / 3),
                 resample: Filter = 'bilinear',
                 **kwargs: Unpack[RandomImageOptions]) -> None:
        self.scale = _as_range('scale', scale, 1)
        self.ratio = _as_range('ratio', ratio, math.inf)
        super().__init__(data_stream, shape, **kwargs)
        self.resample = check_filter(
            resample, RESIZE_FILTERS, self.which_sources)

    def _prepare(self, count: int, source_name: str) -> Any:
        return filter_of(self.resample, source_name), self._draw_shares(
            count, 10, 4)

    def _write(self, place: int, image: Image, prepared: Any,
               out: NDArray[Any]) -> None:
        resample, draws = prepared
        top, left, height, width = choose_part(
            image.shape[1], image.shape[2], self.scale, self.ratio,
            draws[place])
        part = image[:, top:top + height, left:left + width]
        out[...] = resize_image(part, self.shape, resample)


def choose_part(height: int, width: int, scale: tuple[float, float],
                ratio: tuple[float, float],
                draws: NDArray[Any]) -> tuple[int, int, int, int]:
    """Choose a part of an image: its top, left, height and width."""
    logs = math.log(ratio[0]), math.log(ratio[1])
    for for_area, for_ratio, for_top, for_left in draws.tolist():
        area = height * width * (
            scale[0] + for_area * (scale[1] - scale[0]))
        proportion = math.exp(logs[0] + for_ratio * (logs[1] - logs[0]))
        rows = round(math.sqrt(area / proportion))
        columns = round(math.sqrt(area * proportion))
        if 0 < rows <= height and 0 < columns <= width:
            return (int(for_top * (height - rows + 1)),
                    int(for_left * (width - columns + 1)), rows, columns)
    proportion = min(max(width / height, ratio[0]), ratio[1])
    rows = min(height, max(1, round(width / proportion)))
    columns = min(width, max(1, round(height * proportion)))
    return (height - rows) // 2, (width - columns) // 2, rows, columns


def _as_range(name: str, values: Sequence[float],
              most: float) -> tuple[float, float]:
    try:
        low, high = map(float, values)
    except (TypeError, ValueError):
        low = high = math.nan
    if not 0 < low <= high <= most:
        limit = '' if math.isinf(most) else f' of at most {most}'
        raise ValueError(f'{name} must be two positive numbers{limit}, the '
                         f'least first, got {values!r}')
    return low, high
