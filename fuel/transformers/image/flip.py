"""A stage that flips images at random."""
from __future__ import annotations

from typing import Any

import numpy

from fuel.transformers.base import ALL
from fuel.kernels import mirror_images
from fuel.transformers.image.base import Images, ImageStage, is_stacked
from fuel.transformers.seeded import SeededTransformer
from fuel.typing import StreamLike


class RandomHorizontalFlip(SeededTransformer, ImageStage):
    """Exchanges left and right in some of the images, at random.

    Parameters
    ----------
    probability : float, optional
        That an image is flipped. Defaults to 0.5.
    seed, num_threads, **kwargs
        See :mod:`fuel.transformers`.

    Raises
    ------
    ValueError
        If `probability` is not from 0 to 1; when data are asked for, if
        something is no image.

    Notes
    -----
    Images have the axes (channel, height, width) and any type. A batch
    keeps its form. What is drawn depends on the seed, the epoch and the
    number of the batch alone; sources of one stage get the same draws, so
    an image and its mask stay aligned.

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
                 **kwargs: Any) -> None:
        if not 0 <= probability <= 1:
            raise ValueError('probability must be from 0 to 1, got '
                             f'{probability!r}')
        self.probability = probability
        super().__init__(data_stream, **kwargs)

    def _transform(self, images: Images) -> Any:
        flipped = self.draw_rows(len(images), lambda generator, total: (
            generator.random(total))) < self.probability
        if is_stacked(images):
            return mirror_images(images, flipped, self.num_threads)
        return [mirror_images(image[numpy.newaxis], [mark])[0]
                for image, mark in zip(images, flipped, strict=True)]
