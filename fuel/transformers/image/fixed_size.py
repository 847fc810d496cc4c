"""Base of the stages that give all images one height and width."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from fuel.describe.source_types import SourceType
from fuel.transformers.image.base import (Image, Images, ImageStage, as_shape,
                                          map_images, new_stack)
from fuel.typing import StreamLike


class FixedSizeStage(ImageStage):
    """A stage that gives all images one height and width.

    A batch becomes one array, whatever form it had. Subclasses implement
    ``_prepare(count)``, which returns what `_write` needs (such as random
    numbers), and ``_write(place, image, prepared, out)``.
    """

    shape_argument = 'shape'

    def __init__(self, data_stream: StreamLike, shape: Sequence[int],
                 **kwargs: Any) -> None:
        self.shape = as_shape(self.shape_argument, shape)
        super().__init__(data_stream, **kwargs)

    def type_after(self, known: SourceType, source_name: str) -> SourceType:
        """Return the type of images of the fixed size."""
        shape = None if known.shape is None else (
            *known.shape[:-2], *self.shape)
        return known._replace(shape=shape)

    def _transform(self, images: Images) -> Any:
        out = new_stack(images, self.shape)
        prepared = self._prepare(len(images))
        map_images(
            lambda place: self._write(
                place, images[place], prepared, out[place]),
            len(images), self.num_threads)
        return out

    def _prepare(self, count: int) -> Any:
        return None

    def _write(self, place: int, image: Image, prepared: NDArray[Any],
               out: NDArray[Any]) -> None:
        raise NotImplementedError
