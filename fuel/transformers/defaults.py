"""The usual stages for common kinds of data.

Data sets name them as their `default_transformers`: tuples of a class, a
list of arguments and a dict of keyword arguments.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Unpack

import numpy

from fuel.transformers import Cast, ScaleAndShift, SourcewiseTransformer
from fuel.transformers.options import SourcewiseOptions
from fuel.transformers.source_names import labels_of
from fuel.typing import StreamLike

__all__ = ['ToBytes', 'rgb_images_from_encoded_bytes',
           'uint8_pixels_to_floatX']


class ToBytes(SourcewiseTransformer):
    """Converts arrays to bytes, such as files that were stored as uint8.

    Parameters
    ----------
    which_sources, iteration_scheme, axis_labels
        See :class:`~fuel.transformers.SourcewiseTransformer`. The axis labels
        of the chosen sources default to ``('batch', 'bytes')`` or
        ``('bytes',)``.

    Notes
    -----
    An example becomes bytes, a batch a list of bytes.

    Examples
    --------
    >>> import numpy
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.schemes import SequentialScheme
    >>> from fuel.streams import DataStream
    >>> letters = numpy.frombuffer(b'fuel', dtype='uint8').reshape(2, 2)
    >>> stream = DataStream(IndexableDataset(letters),
    ...                     iteration_scheme=SequentialScheme(2, 2))
    >>> next(ToBytes(stream).get_epoch_iterator())
    ([b'fu', b'el'],)
    """

    pure = True
    keeps_rows = True
    takes_sparse = False
    takes_masked = False
    # Nothing is kept of the chosen sources; the others keep their types.
    keeps = frozenset[str]()

    def __init__(self, stream: StreamLike, *,
                 produces_examples: bool | None = None,
                 **kwargs: Unpack[SourcewiseOptions]) -> None:
        if produces_examples is None:
            produces_examples = stream.produces_examples
        chosen = self._select(stream, kwargs.get('which_sources'))
        labels = ('bytes',) if stream.produces_examples else (
            'batch', 'bytes')
        kwargs.setdefault('axis_labels', {
            **dict.fromkeys(stream.sources), **(labels_of(stream) or {}),
            **dict.fromkeys(chosen, labels)})
        super().__init__(stream, produces_examples, **kwargs)

    def transform_source_example(self, source_example: object,
                                 source_name: str) -> bytes:
        """Return an example as bytes."""
        return _to_bytes(source_example)

    def transform_source_batch(self, source_batch: Iterable[object],
                               source_name: str) -> list[bytes]:
        """Return a batch as a list of bytes."""
        return [_to_bytes(example) for example in source_batch]


def _to_bytes(example: object) -> bytes:
    if isinstance(example, bytes):
        return example
    return numpy.asarray(example).tobytes()


def uint8_pixels_to_floatX(  # noqa: N802 - a name of old
        which_sources: Sequence[str] | str) -> Any:
    """Return stages that scale pixels of 0 to 255 to floatX of 0 to 1.

    Returns
    -------
    tuple
        For `default_transformers` of a data set.

    Examples
    --------
    >>> [stage for stage, _, _ in uint8_pixels_to_floatX(('features',))]
    [<class 'fuel.transformers.ScaleAndShift'>, \
<class 'fuel.transformers.Cast'>]
    """
    return (
        (ScaleAndShift, [1 / 255., 0], {'which_sources': which_sources}),
        (Cast, ['floatX'], {'which_sources': which_sources}))


def rgb_images_from_encoded_bytes(which_sources: Sequence[str] | str) -> Any:
    """Return stages that decode encoded images to colour images.

    Parameters
    ----------
    which_sources : tuple of str
        Sources whose examples are the bytes of image files, as uint8.

    Returns
    -------
    tuple
        For `default_transformers` of a data set.

    Examples
    --------
    >>> stages = rgb_images_from_encoded_bytes(('encoded_images',))
    >>> [stage.__name__ for stage, _, _ in stages]
    ['ToBytes', 'ImagesFromBytes']
    """
    # Only here, since most data sets have no encoded images.
    from fuel.transformers.image import ImagesFromBytes
    return ((ToBytes, [], {'which_sources': which_sources}),
            (ImagesFromBytes, [], {'which_sources': which_sources}))
