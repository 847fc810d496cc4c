"""Read the training data of fitted stages, and save their parameters."""
from __future__ import annotations

import json
import math
import operator
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any, ClassVar, Self, Unpack

import numpy
from numpy.typing import DTypeLike, NDArray

from fuel.describe.source_types import SourceType
from fuel.epochs.stage import stage_of
from fuel.streams.arguments import StreamOptions
from fuel.transformers.dtypes import as_dtype
from fuel.transformers.source_names import as_tuple_of_names, labels_of
from fuel.transformers.sourcewise import SourcewiseTransformer
from fuel.typing import StreamLike
from fuel.utils.arguments import PlainArgument
from fuel.utils.atomic_files import write_text
from fuel.utils.masked import (
    as_kept, holds_masked, is_masked, mask_of, plain_values, stack_kept,
    with_mask, without_hidden)
from fuel.utils.progress import progress
from fuel.utils.sparse import require_dense, row_of

FORMAT = 1
# Single examples are gathered into batches of this size to be fitted.
GATHERED = 256


def batches_of(data_stream: StreamLike, source: str,
               label: str) -> Iterator[Any]:
    """Yield the batches of a source in one epoch.

    Single examples are gathered into batches. Empty batches are left out. If
    reading takes long, the progress is shown, with the text `label`.
    """
    for part, in batches_of_sources(data_stream, (source,), label):
        yield part


def batches_of_sources(data_stream: StreamLike, sources: Sequence[str],
                       label: str) -> Iterator[tuple[Any, ...]]:
    """Yield the batches of the given sources, as :func:`batches_of` does."""
    known = list(data_stream.sources)
    places = [known.index(source) for source in sources]
    items = data_stream.get_epoch_iterator()
    try:
        count: int | None = len(items)  # type: ignore[arg-type]
    except TypeError:
        count = None
    gathered: list[tuple[Any, ...]] = []
    with progress(label, count, delay=True) as bar:
        for item in items:
            bar.advance(1)
            parts = tuple([item[place] for place in places])
            for part, source in zip(parts, sources, strict=True):
                require_dense(part, source, label)
            if not data_stream.produces_examples:
                # An empty batch may have another shape and dtype.
                if len(parts[0]):
                    yield parts
                continue
            gathered.append(parts)
            if len(gathered) == GATHERED:
                yield _stacked(gathered)
                gathered.clear()
    if gathered:
        yield _stacked(gathered)


def _stacked(examples: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    return tuple(map(_stack, zip(*examples, strict=True)))


def _stack(parts: Sequence[Any]) -> NDArray[Any]:
    """Return examples as a batch; texts are kept in an array of objects.

    An array of a text dtype would convert numbers to text, and would lose null
    characters at the end of texts.
    """
    if any(isinstance(part, (str, bytes)) for part in parts):
        return as_elements(parts)
    return stack_kept(parts)


def as_elements(data: object) -> NDArray[Any]:
    """Return data as an array of unchanged elements.

    Data that are not an array become an array of objects.
    """
    if isinstance(data, numpy.ndarray):
        return data
    if not holds_masked(data):
        return numpy.array(data, object)
    examples: Any = data
    masked: NDArray[Any] = with_mask(
        numpy.array(plain_values(examples), object),
        numpy.array(list(map(mask_of, examples))))
    return masked


def numbers_of(data_stream: StreamLike, source: str, fitted: str,
               done: str) -> Iterator[NDArray[Any]]:
    """Yield the batches of a source as arrays of finite numbers, checked.

    `fitted`, `done`: words for the texts of errors, such as 'whitening' and
        'whitened'.
    """
    count, shape = 0, None
    mask = mask_name(source)
    has_mask = mask in data_stream.sources and not _is_filled(
        data_stream, source)
    batches = (
        (as_kept(part), *masks) for part, *masks in batches_of_sources(
            data_stream, (source, mask) if has_mask else (source,),
            f'Fitting {fitted}'))
    for part, *masks in batches:
        batch = _without_mask(part, source, count, done)
        if batch.dtype.kind not in 'biuf':
            found = _first_text(chain(
                [batch], (later for later, *_ in batches)), count)
            raise ValueError(
                f'source {source!r} must have numbers to be {done}, but has '
                f'{batch.dtype}{found}: choose another with source=...')
        if shape is not None and batch.shape[1:] != shape:
            raise ValueError(
                f'source {source!r} must have examples of one shape to be '
                f'{done}: the first has the shape {shape}, a later one '
                f'{batch.shape[1:]}')
        shape = batch.shape[1:]
        if not numpy.isfinite(batch).all():
            raise ValueError(
                f'source {source!r} has numbers that are not finite'
                f'{_first(batch, count, _is_not_finite)}: leave such '
                'examples out, with Filter, or put numbers in the place of '
                'missing ones, with Impute and fit_impute')
        if masks and not numpy.all(masks[0]):
            raise ValueError(
                f'source {source!r} has values that are missing'
                f'{_first(numpy.asarray(masks[0]), count, operator.not_)} of '
                f'{mask!r}: put numbers in their place, with Impute and '
                f'fit_impute, before it is {done}; or leave out {mask!r}, '
                f'with FilterSources, if it means something else')
        yield batch
        count += len(batch)


def _without_mask(batch: NDArray[Any], source: str, count: int,
                  done: str) -> NDArray[Any]:
    """Return a batch as a plain array; raise if a mask hides numbers."""
    if not is_masked(batch):
        return batch
    mask = mask_of(batch)
    if mask.any():
        raise ValueError(
            f'source {source!r} has numbers that are hidden by the mask of a '
            f'masked array{_first(mask, count, operator.truth)}: put others '
            f'in their place, with Impute and fit_impute, before it is '
            f'{done}, or leave such examples out, with Filter')
    plain: NDArray[Any] = numpy.ma.getdata(batch)
    return plain


def mask_name(source: str) -> str:
    """Return the name of the mask that is false where values are missing."""
    return f'{source}_mask'


def _is_filled(data_stream: StreamLike, source: str) -> bool:
    """Return whether a stage replaces the missing values of a source."""
    if isinstance(data_stream, FittedStage) and data_stream.fills_missing and (
            source in data_stream.which_sources):
        return True
    return any(_is_filled(stream, source)
               for stream in stage_of(data_stream).inputs)


def _first_text(batches: Iterable[NDArray[Any]], count: int) -> str:
    """Describe the first element that is not a number, '' if all are numbers.

    Such an element makes the whole column text.
    """
    for batch in batches:
        found = _first(batch, count, _is_not_a_number)
        if found:
            return found
        count += len(batch)
    return ''


def _first(batch: NDArray[Any], count: int,
           is_wrong: Callable[[Any], bool]) -> str:
    """Describe the first wrong element and its place, '' if none is wrong."""
    for place in numpy.ndindex(batch.shape):
        element = batch.item(place)
        if is_wrong(element):
            column = (f', at {place[1] if len(place) == 2 else place[1:]}'
                      if len(place) > 1 else '')
            return (f', first {element!r:.60} in example '
                    f'{count + place[0]} of the epoch{column}')
    return ''


def _is_not_a_number(element: Any) -> bool:
    try:
        float(element)
    except (TypeError, ValueError):
        return True
    return False


def _is_not_finite(element: Any) -> bool:
    return not math.isfinite(element)


@dataclass(frozen=True)
class FittedParameters(PlainArgument):
    """Base of parameters that are saved as JSON."""

    # Kind of the parameters, which a loaded file must name.
    _kind: ClassVar[str]
    source: str

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the parameters as JSON; replace an old file in one step."""
        text = json.dumps(
            {'fuel': self._kind, 'format': FORMAT, **asdict(self)},
            sort_keys=True, indent=1)
        write_text(path, f'{text}\n')

    def plain(self) -> Mapping[str, object]:
        """Return the values that a saved state must match.

        They are rounded, since processors differ in the last digits. Counts,
        such as the number of examples, are left out.
        """
        return {name: _rounded(value) for name, value in asdict(self).items()
                if not name.startswith('num_')}

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Load parameters that :meth:`save` saved.

        Raises
        ------
        ValueError
            If the file holds anything else.
        """
        name = os.fspath(path)
        try:
            with open(name, encoding='utf-8') as file:
                found = json.load(file)
            if found['fuel'] != cls._kind or found['format'] != FORMAT:
                raise ValueError(f'it holds {found["fuel"]!r}, format '
                                 f'{found["format"]!r}')
            return cls._build(found)
        except FileNotFoundError:
            raise
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise ValueError(
                f'{name} does not hold the parameters of {cls._kind}, format '
                f'{FORMAT}: {error}') from error

    @classmethod
    def _build(cls, found: Mapping[str, Any]) -> Self:
        """Return the parameters that a file holds."""
        raise NotImplementedError


def _rounded(value: object) -> object:
    if isinstance(value, float):
        return float(f'{value:.9g}')
    return tuple(map(_rounded, value)) if isinstance(value, tuple) else value


class FittedStage(SourcewiseTransformer):
    """Base of the stages with parameters that were fitted to a stream."""

    takes_sparse = False
    # True if the stage replaces missing values.
    fills_missing = False
    _parameters_class: ClassVar[Any]
    # Name of the function that fits the parameters.
    _fit: ClassVar[str]

    def __init__(self, data_stream: StreamLike, parameters: Any,
                 dtype: DTypeLike | None,
                 which_sources: Sequence[str] | str | None,
                 **kwargs: Unpack[StreamOptions]) -> None:
        if parameters is None:
            name = type(self).__name__
            raise TypeError(
                f'{name} needs parameters: fit them to the training stream '
                f'with parameters = {self._fit}(stream), then write '
                f'stream.apply({name}, parameters)')
        if not isinstance(parameters, self._parameters_class):
            parameters = self._parameters_class.load(parameters)
        self.parameters = parameters
        # None: the results have the dtype of the data.
        self.dtype = None if dtype is None else as_dtype(dtype)
        chosen = self._select(
            data_stream, (parameters.source,) if which_sources is None
            else which_sources)
        kwargs.setdefault('axis_labels', self._labels(data_stream, chosen))
        super().__init__(data_stream, data_stream.produces_examples,
                         which_sources=chosen, **kwargs)

    def _labels(self, data_stream: StreamLike, chosen: Sequence[str]) -> Any:
        """Return the axis labels of the results."""
        return labels_of(data_stream)

    def type_after(self, known: SourceType, source_name: str) -> SourceType:
        """Return the type of the results."""
        return known if self.dtype is None else known._replace(
            dtype=self.dtype)

    def transform_source_example(self, source_example: Any,
                                 source_name: str) -> Any:
        """Return an example, transformed with the parameters."""
        return row_of(self._transform_kept(
            self._as_array(source_example)[numpy.newaxis]), 0)

    def transform_source_batch(self, source_batch: Any,
                               source_name: str) -> Any:
        """Return a batch, transformed with the parameters."""
        return self._transform_kept(self._as_array(source_batch))

    def _as_array(self, data: Any) -> NDArray[Any]:
        """Return an example or a batch as an array."""
        return as_kept(data)

    def _transform_kept(self, batch: NDArray[Any]) -> Any:
        """Return a batch transformed, with its mask if it has one."""
        if not is_masked(batch):
            return self._transform(batch)
        return with_mask(self._transform(without_hidden(batch)),
                         self._mask_after(mask_of(batch)), batch)

    def _mask_after(self, mask: NDArray[Any]) -> NDArray[Any]:
        """Return the mask of the results, given the mask of the data."""
        return mask

    def _transform(self, batch: NDArray[Any]) -> NDArray[Any]:
        raise NotImplementedError


def chosen_source(source: str | None,
                  which_sources: Sequence[str] | str | None,
                  default: str) -> str:
    """Return the source to fit to, from `source` or `which_sources`."""
    if which_sources is None:
        return default if source is None else source
    names = as_tuple_of_names(which_sources)
    if source is not None or len(names) != 1:
        raise ValueError(
            'parameters are fitted to one source: name it with source=..., '
            f'got which_sources={which_sources!r} and source={source!r}')
    return str(names[0])
