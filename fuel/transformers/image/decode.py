"""A stage that decodes images."""
from __future__ import annotations

import io
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Unpack

import numpy

from fuel.describe.source_types import SourceType, SourceTypes
from fuel.exceptions import UndecodableImageError
from fuel.kernels.pillow import copy_pixels
from fuel.epochs.epoch import Epoch
from fuel.epochs.pipeline import length_of, name_examples
from fuel.transformers.decoding import DecodingStage
from fuel.transformers.image.base import IMAGE_AXES, as_shape
from fuel.transformers.image.orientation import (
    SWAPPED, orientation, turned_upright)
from fuel.transformers.options import ImageOptions
from fuel.transformers.ragged import pick_examples
from fuel.typing import Batch, EpochReader, Request, StreamLike
from fuel.utils.checks import truth

if TYPE_CHECKING:
    import PIL.Image

logger = logging.getLogger(__name__)

# Number of channels of the modes in which Pillow stores one or four bytes for
# each pixel.
CHANNELS_OF_BYTES = {'L': 1, 'P': 1, 'RGB': 3, 'RGBA': 4, 'CMYK': 4}

# Modes whose pixels are numbers of more than 8 bits begin with these letters.
DEEP = 'I', 'F'

# Types and channels of the images of some modes; '' for that of each file.
TYPES = {'': (None, None), 'RGB': (numpy.dtype('uint8'), 3),
         'L': (numpy.dtype('uint8'), 1), '1': (numpy.dtype(bool), 1),
         'I': (numpy.dtype('int32'), 1), 'F': (numpy.dtype('float32'), 1),
         **dict.fromkeys(('I;16', 'I;16B', 'I;16L', 'I;16N'), (
             numpy.dtype('uint16'), 1))}

# Stands for an image that cannot be decoded.
UNDECODABLE = object()


class ImagesFromBytes(DecodingStage):
    """Decodes images, such as JPEG and PNG files, on all cores.

    Parameters
    ----------
    data_stream : AbstractDataStream
        Its examples are the bytes of image files, in any format that Pillow
        reads itself. EPS is refused, since Pillow runs another program for
        it. An array of bytes, as an HDF5 file stores it, is accepted too.
        An image in the form of Hugging Face, ``{'bytes': ..., 'path': ...}``,
        is read from the bytes, or from the file if there are no bytes.
    color_mode : str or None, optional
        The mode of Pillow to convert images to, such as ``'RGB'`` (the
        default) or ``'L'`` for grey. None keeps the mode of each file:
        palette images then give indices of colours. Values above 255, as
        grey images of 16 bits have, become 255 in modes of 8 bits, and a
        warning is logged for the first such image, by each worker process;
        None keeps them, and so does ``'I'``.
    shrink_to : (int, int), optional
        Height and width that the images will be shrunk to later. A JPEG that
        is at least twice as large is decoded at a half, a quarter or an
        eighth of its size, which is much faster, but never below
        `shrink_to`. Default is None: full size.
    upright : bool, optional
        Whether to rotate images by the orientation in their EXIF data, which
        phones write, as ``fuel-convert image_folder`` and Hugging Face do.
        `shrink_to` is then the size of the rotated image. Defaults to None:
        pixels stay as they are stored, and a warning is logged for the first
        image that is not upright.
    on_error : {'raise', 'skip'}, optional
        Deprecated: give ``on_error='skip'`` to the
        :class:`~fuel.streams.DataStream`, which covers all stages, keeps a
        limit and is shared by workers. Here, with ``'skip'``, an example
        whose image cannot be decoded is left out of all sources, a warning
        is logged, and `num_skipped` counts it. Default is ``'raise'``.
    num_threads : int, optional
        Number of threads that decode. Default is ``config.num_threads``.
    produces_examples, which_sources, iteration_scheme, axis_labels
        See :class:`~fuel.transformers.SourcewiseTransformer`. The axis labels
        of the chosen sources default to (batch, channel, height, width).

    Attributes
    ----------
    num_skipped : int
        Number of undecodable images that were left out.

    Raises
    ------
    ValueError
        If `color_mode` or `on_error` is not known.
    fuel.exceptions.UndecodableImageError
        When a batch is requested, if an image cannot be decoded: the file is
        cut off, is not an image, or has more pixels than
        ``PIL.Image.MAX_IMAGE_PIXELS``.
    TypeError
        When a batch is requested, if it does not hold bytes.

    Notes
    -----
    An image becomes an array with the axes (channel, height, width), uint8
    unless its mode has more bits; a batch becomes a list of such arrays. An
    image with one channel has the channel axis too. The result does not depend
    on the number of threads. Pillow rotates TIFF files for any value of
    `upright`.

    Examples
    --------
    >>> import io, numpy
    >>> from PIL import Image
    >>> from fuel.datasets import IterableDataset
    >>> from fuel.streams import DataStream
    >>> file = io.BytesIO()
    >>> Image.new('RGB', (4, 3), 'red').save(file, 'PNG')
    >>> stream = DataStream(IterableDataset({'image': [file.getvalue()]}))
    >>> image, = next(ImagesFromBytes(stream).get_epoch_iterator())
    >>> image.shape, image[:, 0, 0]
    ((3, 3, 4), array([255,   0,   0], dtype=uint8))
    """

    # Declared again, since this class overrides get_data.
    keeps_rows = True
    noun = 'image'
    undecodable = UndecodableImageError
    num_skipped = 0
    upright: bool | None = None
    # The kept rows of the last batch; None if no row was left out.
    _good: list[int] | None = None

    def __init__(self, data_stream: StreamLike, color_mode: str | None = 'RGB',
                 shrink_to: Sequence[int] | None = None,
                 on_error: str = 'raise', upright: bool | None = None,
                 **kwargs: Unpack[ImageOptions]) -> None:
        super().__init__(data_stream, IMAGE_AXES, **kwargs)
        if color_mode is not None:
            _check_mode(color_mode)
        if on_error not in ('raise', 'skip'):
            raise ValueError("on_error must be 'raise' or 'skip', got "
                             f'{on_error!r}')
        self.color_mode = color_mode
        self.shrink_to = None if shrink_to is None else as_shape(
            'shrink_to', shrink_to)
        self.on_error = on_error
        self.upright = upright if upright is None else truth(
            'upright', upright)

    @property
    def one_to_one(self) -> bool:
        """Whether an item is made of exactly one item of the input (bool)."""
        return self.on_error == 'raise'

    @property
    def pure(self) -> bool:
        """Whether nothing is kept from one item to the next (bool)."""
        return self.on_error == 'raise'

    def open_reader(self, epoch: Epoch) -> EpochReader | None:
        """Return a reader of an epoch that replaces :meth:`get_data`.

        See :meth:`~fuel.transformers.Transformer.open_reader`.
        """
        return super().open_reader(epoch) if self.pure else None

    def get_data(self, request: Request = None) -> Any:
        """Return the next example or batch, decoded.

        See :meth:`~fuel.transformers.Transformer.get_data`.
        """
        while True:
            data = super().get_data(request)
            if self.on_error == 'raise':
                return data
            # Not by an assignment, which would look for changes of sources.
            vars(self)['_good'] = None
            data = self._leave_out(data)
            if data is not None:
                return data

    def source_examples(self, requests: Sequence[Any]) -> Any:
        """Return the examples of the last items, without those left out."""
        found = super().source_examples(requests)
        return found if found is None or self._good is None else (
            found.pick(self._good))

    def known_types(self) -> SourceTypes:
        """Return the known types of each source.

        The size of a batch is not known if images may be skipped.
        """
        types = super().known_types()
        if self.on_error != 'skip' or self.produces_examples:
            return types
        return {source: known.example().in_batches(None)
                for source, known in types.items()}

    def type_after(self, known: SourceType, source_name: str) -> SourceType:
        """Return the type of images, whose sizes are not known."""
        dtype, channels = TYPES.get(
            self.color_mode or '', (numpy.dtype('uint8'), None))
        image = (channels, None, None)
        return SourceType(dtype, image if (
            self.produces_examples) else (None, *image))

    def _decode(self, file: object, which: str) -> Any:
        try:
            return super()._decode(file, which)
        except UndecodableImageError:
            if self.on_error == 'skip':
                return UNDECODABLE
            raise

    def _decode_file(self, file: bytes | bytearray | memoryview) -> Any:
        return decode_image(
            file, self.color_mode, self.shrink_to, bool(self.upright),
            self._warn_of if self.upright is None else None,
            None if '_warned_of_bits' in vars(self) else self._warn_of_bits)

    def _warn_of(self, number: int) -> None:
        """Warn once that an image is not upright."""
        self._warn_once(
            '_warned_of_orientation',
            'an image is not upright: its EXIF data name the orientation '
            '%d, and %s leaves pixels as they are stored; pass '
            'upright=True to turn such images, or upright=False', number,
            type(self).__name__)

    def _warn_of_bits(self, mode: str, highest: float) -> None:
        """Warn once that values of an image do not fit into bytes."""
        self._warn_once(
            '_warned_of_bits',
            'an image has the mode %r and values up to %s, and color_mode=%r '
            'of %s replaces values above 255 by 255: pass color_mode=None to '
            "keep the values of each file, or color_mode='I' to make all "
            'images grey, of 32 bits', mode, highest, self.color_mode,
            type(self).__name__)

    def _warn_once(self, key: str, text: str, *parts: object) -> None:
        """Log a warning, unless one was logged under this key."""
        # Several threads decode, and only the value of one of them is kept.
        # Not by an assignment, which would look for changes of sources.
        mine = object()
        if vars(self).setdefault(key, mine) is mine:
            logger.warning(text, *parts)

    def _why(self, error: Exception) -> str:
        # Pillow's own text names an object in memory.
        return ('it is not an image, or Pillow cannot read its format'
                if type(error).__name__ == 'UnidentifiedImageError'
                else str(error))

    def _leave_out(self, data: Batch) -> Any:
        """Return data without undecodable images; None if none is left."""
        chosen = [part for source, part in zip(
            self.data_stream.sources, data, strict=True)
            if source in self.which_sources]
        if self.produces_examples:
            number = sum(part is UNDECODABLE for part in chosen)
            self._count(number, 'an example', data, [0])
            return None if number else data
        is_good = [all(image is not UNDECODABLE for image in images)
                   for images in zip(*chosen, strict=True)]
        if all(is_good):
            return data
        good = [place for place, fine in enumerate(is_good) if fine]
        bad = [place for place, fine in enumerate(is_good) if not fine]
        self._count(len(bad), f'a batch of {len(is_good)}', data, bad)
        vars(self)['_good'] = good
        if not good:
            return None
        return tuple([pick_examples(part, good) for part in data])

    def _count(self, bad: int, where: str, data: Batch,
               places: list[int]) -> None:
        if bad:
            self.num_skipped += bad
            which = name_examples(
                self.child_epoch_iterator, data, places)
            logger.warning(
                '%s left out %d undecodable image(s) of %s; %d so far%s',
                type(self).__name__, bad, where, self.num_skipped,
                f': {which}' if which else '')

    def num_items(self) -> int | None:
        """Return the number of items of an epoch, None if it is not known."""
        if self.on_error == 'skip' or self.iteration_scheme is not None:
            return None
        return length_of(self.data_stream)


def _check_mode(color_mode: str) -> None:
    from PIL import Image
    if color_mode not in Image.MODES:
        raise ValueError(
            f'color_mode must be None or a mode of Pillow ('
            f'{", ".join(Image.MODES)}), got {color_mode!r}')


def decode_image(file: bytes | bytearray | memoryview,
                 color_mode: str | None = 'RGB',
                 shrink_to: tuple[int, int] | None = None,
                 upright: bool = False,
                 warn_of: Callable[[int], object] | None = None,
                 warn_of_bits: Callable[[str, float], object] | None = None,
                 ) -> Any:
    """Decode an image file, and return it as an array.

    `warn_of`: called with the orientation of an image that is not upright.
    `warn_of_bits`: called with the mode and the highest value of an image
        whose values do not fit into `color_mode`.
    """
    from PIL import Image
    with Image.open(io.BytesIO(file)) as image:
        most = Image.MAX_IMAGE_PIXELS
        if most is not None and image.width * image.height > most:
            raise ValueError(
                f'it has {image.width} x {image.height} pixels, more than '
                f'PIL.Image.MAX_IMAGE_PIXELS = {most}, and may be a '
                'decompression bomb; raise that limit if it is not')
        if image.format == 'EPS':
            raise ValueError(
                'it is an EPS file, a program that an interpreter would '
                'have to run; convert such files first')
        turned = orientation(image) if upright or (
            warn_of is not None and 'exif' in image.info) else 1
        if turned != 1 and warn_of is not None:
            warn_of(turned)
            turned = 1
        if shrink_to is not None:
            if turned in SWAPPED:
                shrink_to = shrink_to[::-1]
            # Only JPEG can be decoded at a smaller size; others ignore this.
            image.draft(None, shrink_to[::-1])
        if color_mode is None or image.mode == color_mode:
            return _to_array(turned_upright(image, turned))
        if warn_of_bits is not None and image.mode.startswith(DEEP) and (
                not color_mode.startswith(DEEP)):
            highest = numpy.asarray(image).max()
            if highest > 255:
                warn_of_bits(image.mode, highest)
        return _to_array(turned_upright(image.convert(color_mode), turned))


def _to_array(image: PIL.Image.Image) -> Any:
    """Return the pixels of an image as an array with three axes."""
    # Pillow turns a TIFF file when it reads it, which may change its size.
    image.load()
    channels = CHANNELS_OF_BYTES.get(image.mode)
    if channels is not None and hasattr(image, '__arrow_c_array__'):
        try:
            _, capsule = image.__arrow_c_array__()
            return copy_pixels(capsule, channels, image.height, image.width)
        except ValueError:
            # Pillow keeps large images in several pieces of memory.
            pass
    pixels = numpy.array(image)
    pixels = pixels.astype(pixels.dtype.newbyteorder('='), copy=False)
    if pixels.ndim == 2:
        return pixels[numpy.newaxis]
    return numpy.ascontiguousarray(pixels.transpose(2, 0, 1))
