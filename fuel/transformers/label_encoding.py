"""Label encoding: replace names of classes by integers."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy
from numpy.typing import DTypeLike, NDArray

from fuel.exceptions import UnknownTokenError
from fuel.streams.arguments import StreamOptions
from fuel.transformers.fitted import (FittedParameters, FittedStage,
                                      as_elements, batches_of, chosen_source)
from fuel.transformers.source_names import check_known
from fuel.typing import StreamLike
from fuel.utils.masked import is_masked, mask_of, with_mask

__all__ = ['LabelEncoding', 'LabelEncodingParameters', 'fit_label_encoding']


@dataclass(frozen=True)
class LabelEncodingParameters(FittedParameters):
    """Names of the classes that :func:`fit_label_encoding` found.

    Attributes
    ----------
    source : str
        The source that the encoding was fitted to.
    class_names : tuple of (str or int)
        The names in sorted order; the place of a name is its number.
    """

    _kind = 'label encoding'
    class_names: tuple[str | int, ...]

    def __post_init__(self) -> None:
        """Raise ValueError unless there are names, all distinct, and each a
        text or an integer."""
        if not self.class_names or len(set(self.class_names)) < len(
                self.class_names) or not all(
                isinstance(name, (str, int)) for name in self.class_names):
            raise ValueError('class_names must be at least one string or '
                             'integer, all distinct, got '
                             f'{self.class_names!r:.200}')

    @classmethod
    def _build(cls, found: Mapping[str, Any]) -> LabelEncodingParameters:
        return cls(str(found['source']), tuple(found['class_names']))


def fit_label_encoding(
        data_stream: StreamLike, source: str | None = None, *,
        which_sources: Sequence[str] | str | None = None
        ) -> LabelEncodingParameters:
    """Collect the classes of a source in one epoch of a stream.

    Parameters
    ----------
    data_stream : AbstractDataStream
        The training data. Classes are text, bytes in UTF-8, or integers, or
        some of each: 1 and '1' are two classes.
    source : str, optional
        The source to fit to. Defaults to 'targets'.
    which_sources : str or tuple of str, optional
        Another name of the argument `source`: it names one source.

    Returns
    -------
    LabelEncodingParameters

    Examples
    --------
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IndexableDataset(
    ...     {'targets': ['dog', 'cat', 'dog']}), batch_size=2)
    >>> parameters = fit_label_encoding(stream)
    >>> parameters.class_names
    ('cat', 'dog')
    >>> list(LabelEncoding(stream, parameters))
    [(array([1, 0]),), (array([1]),)]
    """
    source = chosen_source(source, which_sources, 'targets')
    check_known('source', (source,), data_stream.sources)
    found: set[str | int] = set()
    for part in batches_of(data_stream, source, 'Fitting label encoding'):
        elements = as_elements(part)
        found.update(map(_as_name, (
            elements.compressed() if is_masked(elements)
            else elements.ravel()).tolist()))
    if not found:
        raise ValueError(f'the stream has no examples of {source!r} to learn '
                         'classes from, or all are masked')
    return LabelEncodingParameters(
        source, tuple(sorted(found, key=lambda name: (
            isinstance(name, str), name))))


def _as_name(element: object) -> str | int:
    if isinstance(element, numpy.generic):
        # An element of an array of objects, or of a list.
        element = element.item()
    if isinstance(element, bytes):
        return element.decode('utf-8')
    if isinstance(element, (str, int)):
        return element
    raise ValueError('classes are text, bytes or integers, got '
                     f'{element!r:.80} ({type(element).__name__})')


class LabelEncoding(FittedStage):
    """Replaces names of classes by their numbers.

    Parameters
    ----------
    data_stream : AbstractDataStream
    parameters : LabelEncodingParameters or str
        From :func:`fit_label_encoding`, or the file they were saved in.
    unknown : int, optional
        The number that replaces a class that the training data did not have.
        Defaults to None: such a class is an error.
    dtype : dtype, optional
        Type of the numbers, int64 by default.
    which_sources : tuple of str, optional
        Defaults to the source that the parameters were fitted to.
    iteration_scheme, axis_labels
        See :class:`~fuel.transformers.SourcewiseTransformer`. The axis
        labels default to those of `data_stream`.

    Raises
    ------
    fuel.exceptions.UnknownTokenError
        By the epoch iterator, for an unknown class.
    """

    pure = True
    keeps_rows = True
    _parameters_class = LabelEncodingParameters
    _fit = 'fit_label_encoding'

    def __init__(self, data_stream: StreamLike,
                 parameters: LabelEncodingParameters | str | None = None,
                 unknown: int | None = None, dtype: DTypeLike = 'int64',
                 which_sources: Sequence[str] | str | None = None,
                 **kwargs: Unpack[StreamOptions]) -> None:
        super().__init__(data_stream, parameters, numpy.dtype(dtype),
                         which_sources, **kwargs)
        self.unknown = unknown
        self._numbers = {name: number for number, name
                         in enumerate(self.parameters.class_names)}

    def _as_array(self, data: Any) -> NDArray[Any]:
        return as_elements(data)

    def _transform_kept(self, batch: NDArray[Any]) -> Any:
        if not is_masked(batch):
            return self._transform(batch)
        # Masked values are not classes.
        numbers = numpy.zeros(batch.shape, self.dtype)
        numbers[~mask_of(batch)] = self._transform(batch.compressed())
        return with_mask(numbers, mask_of(batch), batch)

    def _transform(self, batch: NDArray[Any]) -> NDArray[Any]:
        numbers = list(map(self._number, batch.ravel().tolist()))
        return numpy.array(numbers, self.dtype).reshape(batch.shape)

    def _number(self, element: object) -> int:
        name = _as_name(element)
        number = self._numbers.get(name, self.unknown)
        if number is None:
            names = self.parameters.class_names
            raise UnknownTokenError(
                f'the class {name!r} was not there when the encoding was '
                f'fitted to {self.parameters.source!r}, which has '
                f'{len(names)} classes such as {names[0]!r}: fit it to all '
                'classes, or pass unknown=-1')
        return number
