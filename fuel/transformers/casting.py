"""Stages that change the dtype of data."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy
from numpy.typing import ArrayLike, DTypeLike

from fuel.describe.source_types import SourceType
from fuel.epochs.epoch import Epoch
from fuel.epochs.read_options import Conversion
from fuel.suggestions import sources_of_fields
from fuel.transformers.base import Transformation
from fuel.transformers.dtypes import as_dtype, cast
from fuel.transformers.options import SourcewiseOptions
from fuel.transformers.ragged import is_ragged, map_elements
from fuel.transformers.scaling import ScaleAndShift
from fuel.transformers.source_names import as_tuple_of_names, labels_of
from fuel.transformers.sourcewise import AgnosticSourcewiseTransformer
from fuel.typing import StreamLike
from fuel.utils.overrides import calls
from fuel.utils.sparse import is_sparse


class _Caster(AgnosticSourcewiseTransformer):
    """Base of the stages that change types.

    When an epoch is opened, they request data of their type from the stream
    that they read, so that no batch of another type is made.
    """

    def __init__(self, data_stream: StreamLike, dtype: DTypeLike,
                 **kwargs: Unpack[SourcewiseOptions]) -> None:
        kwargs.setdefault('axis_labels', labels_of(data_stream))
        super().__init__(
            data_stream, data_stream.produces_examples, **kwargs)
        self.dtype = as_dtype(dtype)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        # Fuel 0.2.0 kept the name of a type.
        self.dtype = as_dtype(self.dtype)

    @calls('transform_any_source')
    def _transformation(self, epoch: Epoch) -> Transformation:
        if self.dtype.kind in 'biuf' and self.dtype.itemsize <= 8:
            epoch.attributes['child_epoch_iterator'].request_conversions(
                dict.fromkeys(self._wanted(), Conversion(self.dtype)))
        return super()._transformation(epoch)

    def _wanted(self) -> Sequence[str]:
        """Return the sources that are cast whatever dtype they have."""
        return ()


class Cast(_Caster):
    """Casts sources to a dtype.

    Parameters
    ----------
    dtype : dtype
        Anything that NumPy accepts as a dtype, or ``'floatX'`` for the value
        of ``fuel.config.floatX`` when the stage is built.
    which_sources, iteration_scheme, axis_labels
        See :mod:`fuel.transformers`.

    Attributes
    ----------
    dtype : numpy.dtype

    Raises
    ------
    TypeError
        If NumPy has no such dtype.

    Notes
    -----
    Data that have the dtype already are returned unchanged. A time becomes
    the number of its units, such as days or seconds, since 1970; NaT becomes
    NaN in a floating dtype, and is an error in an integer dtype. A list of
    examples of equal shape becomes one array. The examples of a ragged batch
    are cast one by one: an array of objects stays an array of objects, and a
    list of arrays stays a list.

    Examples
    --------
    >>> import numpy
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.schemes import SequentialScheme
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IndexableDataset(numpy.arange(3)),
    ...                     iteration_scheme=SequentialScheme(3, 3))
    >>> next(Cast(stream, dtype='float32').get_epoch_iterator())
    (array([0., 1., 2.], dtype=float32),)
    """

    pure = True
    keeps_rows = True

    # Defined here, since errors name the class that defines the constructor.
    def __init__(self, data_stream: StreamLike, dtype: DTypeLike,
                 **kwargs: Unpack[SourcewiseOptions]) -> None:
        super().__init__(data_stream, dtype, **kwargs)

    def _wanted(self) -> Sequence[str]:
        wanted: Sequence[str] = as_tuple_of_names(self.which_sources)
        return wanted

    def type_after(self, known: SourceType, source_name: str) -> SourceType:
        """Return the type that the data are cast to, and their shape."""
        return known._replace(dtype=self.dtype)

    def transform_any_source(self, source_data: ArrayLike,
                             source_name: str) -> Any:
        """Return the data as an array of the type."""
        try:
            return cast(source_data, self.dtype)
        except (TypeError, ValueError) as error:
            fields = source_data.dtype.names if isinstance(
                source_data, numpy.ndarray) else None
            if fields:
                raise TypeError(
                    f'source {source_name!r} is an array of records, which '
                    f'cannot be cast to {self.dtype}: name other sources to '
                    f'cast, which_sources=(...), or '
                    f'{sources_of_fields(source_name, fields)}') from error
            if numpy.asarray(source_data).dtype.kind in 'mM':
                raise ValueError(f'source {source_name!r}: {error}') from error
            text = _first_text(source_data)
            if text is None or self.dtype.kind not in 'biuf':
                raise
            others = tuple(source for source in as_tuple_of_names(
                self.which_sources) if source != source_name)
            raise ValueError(
                f'{error}: source {source_name!r} holds text, such as '
                f'{text!r:.60}, which is not a valid {self.dtype}: '
                + (f'name the sources to cast, which_sources={others}, or '
                   if others else '')
                + 'make numbers of class names with LabelEncoding') from error


def _first_text(data: Any) -> str | None:
    """Return the first text in data, None if the first item is not text."""
    while not isinstance(data, str):
        if not isinstance(data, (list, tuple, numpy.ndarray)):
            return None
        items = data.flat if isinstance(data, numpy.ndarray) else data
        if not len(items):
            return None
        data = items[0]
    return str(data)


class ForceFloatX(_Caster):
    """Casts floating arrays to floatX, and leaves other data unchanged.

    Parameters
    ----------
    which_sources, iteration_scheme, axis_labels
        See :mod:`fuel.transformers`.

    Attributes
    ----------
    dtype : numpy.dtype
        The value of ``fuel.config.floatX`` when the stage was built.

    Examples
    --------
    >>> import numpy, fuel
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.schemes import SequentialScheme
    >>> from fuel.streams import DataStream
    >>> dataset = IndexableDataset({'x': numpy.ones(2), 'y': [1, 2]})
    >>> stream = DataStream(dataset, iteration_scheme=SequentialScheme(2, 2))
    >>> fuel.config.floatX = 'float32'
    >>> next(ForceFloatX(stream).get_epoch_iterator())
    (array([1., 1.], dtype=float32), [1, 2])
    >>> del fuel.config.floatX
    """

    pure = True
    keeps_rows = True

    def __init__(self, data_stream: StreamLike,
                 **kwargs: Unpack[SourcewiseOptions]) -> None:
        super().__init__(data_stream, 'floatX', **kwargs)

    def _wanted(self) -> Sequence[str]:
        # Data that were scaled by a number other than an integer are floating.
        scaled = self.data_stream
        if not isinstance(scaled, ScaleAndShift) or scaled.is_integral():
            return ()
        chosen = as_tuple_of_names(scaled.which_sources)
        return [source for source in as_tuple_of_names(self.which_sources)
                if source in chosen]

    def type_after(self, known: SourceType, source_name: str) -> SourceType:
        """Return floatX for floating arrays."""
        is_floating = known.dtype is not None and known.dtype.kind == 'f'
        return known._replace(dtype=self.dtype) if is_floating else known

    def transform_any_source(self, source_data: ArrayLike,
                             source_name: str) -> Any:
        """Return the data, as floatX if they are a floating array."""
        if is_sparse(source_data):
            is_floating = source_data.data.dtype.kind == 'f'
            return cast(source_data, self.dtype) if is_floating \
                else source_data
        if not isinstance(source_data, numpy.ndarray):
            return source_data
        if is_ragged(source_data):
            return map_elements(
                lambda element: self.transform_any_source(
                    element, source_name), source_data)
        if source_data.dtype.kind != 'f':
            return source_data
        return cast(source_data, self.dtype)
