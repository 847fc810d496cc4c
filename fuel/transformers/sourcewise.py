"""Base classes of stages that treat examples and batches alike, or that
transform sources one by one."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, Unpack

from numpy import dtype, ndarray

from fuel.describe.source_types import SourceType, SourceTypes, types_of
from fuel.epochs.epoch import Epoch
from fuel.epochs.stage import stage_of
from fuel.streams.arguments import StreamOptions
from fuel.transformers.base import (
    Transformation, Transformer, check_count, missing)
from fuel.transformers.source_names import (
    as_names, as_tuple_of_names, check_known)
from fuel.typing import Batch, StreamLike
from fuel.utils.masked import require_unmasked
from fuel.utils.overrides import calls
from fuel.utils.sparse import require_dense

OBJECT = dtype(object)


class AgnosticTransformer(Transformer):
    """A stage that treats examples and batches alike.

    Subclasses implement :meth:`transform_any`.

    Parameters
    ----------
    produces_examples, iteration_scheme, axis_labels
        See :class:`Transformer`.

    Examples
    --------
    >>> from fuel.datasets import IterableDataset
    >>> from fuel.streams import DataStream
    >>> class Reverser(AgnosticTransformer):
    ...     def transform_any(self, data):
    ...         return data[::-1]
    >>> stream = DataStream(IterableDataset({'x': [1, 2], 'y': [3, 4]}))
    >>> list(Reverser(stream, stream.produces_examples).get_epoch_iterator())
    [(3, 1), (4, 2)]
    """

    def transform_any(self, data: Batch) -> Any:
        """Return an example or a batch, transformed.

        Parameters
        ----------
        data : tuple
            The data of each source.
        """
        raise NotImplementedError(missing(self, 'transform_any'))

    @calls('transform_any')
    def _transformation(self, epoch: Epoch) -> Transformation:
        return type(self).transform_any

    def transform_example(self, example: Batch) -> Any:
        """Return :meth:`transform_any` of an example."""
        return self.transform_any(example)

    def transform_batch(self, batch: Batch) -> Any:
        """Return :meth:`transform_any` of a batch."""
        return self.transform_any(batch)


#: Places of sources among the data, and their names.
Places: TypeAlias = 'Sequence[tuple[int, str]]'


class SourcewiseTransformer(Transformer):
    """A stage that transforms sources one by one.

    Subclasses implement :meth:`transform_source_example`,
    :meth:`transform_source_batch` or both.

    Parameters
    ----------
    produces_examples : bool
        See :class:`Transformer`.
    which_sources : tuple of str or str, optional
        The sources of `data_stream` to transform; the others pass through.
        A bare string is the name of one source. Defaults to all.
    iteration_scheme, axis_labels
        See :class:`Transformer`.

    Attributes
    ----------
    which_sources : tuple of str

    Raises
    ------
    ValueError
        If `data_stream` has no source of a name in `which_sources`.

    Examples
    --------
    >>> from fuel.datasets import IterableDataset
    >>> from fuel.streams import DataStream
    >>> class Upper(SourcewiseTransformer):
    ...     def transform_source_example(self, text, source):
    ...         return text.upper()
    >>> stream = DataStream(IterableDataset({'x': 'ab', 'y': 'cd'}))
    >>> upper = Upper(stream, produces_examples=True, which_sources=('x',))
    >>> list(upper.get_epoch_iterator())
    [('A', 'c'), ('B', 'd')]
    """

    which_sources: Any = None
    #: True if the methods accept sparse data; if False, sparse data raise an
    #: error (bool).
    takes_sparse = True

    def __init__(self, data_stream: StreamLike, produces_examples: bool,
                 which_sources: Sequence[str] | str | None = None,
                 **kwargs: Unpack[StreamOptions]) -> None:
        super().__init__(data_stream, produces_examples, **kwargs)
        self.which_sources = self._select(data_stream, which_sources)

    @classmethod
    def _select(cls, data_stream: StreamLike,
                which_sources: Sequence[str] | str | None) -> Any:
        """Return `which_sources` as a checked tuple of names."""
        if which_sources is None:
            return data_stream.sources
        names = as_names('which_sources', as_tuple_of_names(which_sources))
        check_known('which_sources', names, data_stream.sources)
        return names

    def known_types(self) -> SourceTypes:
        """Return the known types; see :meth:`type_after`."""
        chosen = {name for _, name in self._chosen_places()[1]}
        found = {}
        for source, known in types_of(self.data_stream).items():
            after = self.type_after(known, source) if (
                source in chosen) else known
            if after is not None:
                found[source] = after
        return found

    def type_after(self, known: SourceType,
                   source_name: str) -> SourceType | None:
        """Return the type and shape of a source after the stage.

        A hook for descriptions.

        Parameters
        ----------
        known : SourceType
            The type and shape of the source before the stage.
        source_name : str

        Returns
        -------
        SourceType or None
            By default, the properties in `keeps`. None if nothing is known.
        """
        return known.kept(stage_of(self).keeps)

    def transform_source_example(self, source_example: Any,
                                 source_name: str) -> Any:
        """Return one source of an example, transformed."""
        raise NotImplementedError(missing(self, 'transform_source_example'))

    def transform_source_batch(self, source_batch: Any,
                               source_name: str) -> Any:
        """Return one source of a batch, transformed."""
        raise NotImplementedError(missing(self, 'transform_source_batch'))

    def transform_example(self, example: Batch) -> Any:
        """Return an example with the chosen sources transformed."""
        return self._transform_sources(example, self.transform_source_example)

    def transform_batch(self, batch: Batch) -> Any:
        """Return a batch with the chosen sources transformed."""
        return self._transform_sources(batch, self.transform_source_batch)

    def _transform_sources(self, data: Batch,
                           transform: Callable[[Any, str], Any]) -> Any:
        return transform_chosen(
            self, data, *self._chosen_places(), transform)

    def _chosen_places(self) -> tuple[Sequence[str], Places]:
        """Return the names of all sources, and places of chosen sources."""
        sources = tuple(self.data_stream.sources)
        chosen = sources if self.which_sources is None else (
            as_tuple_of_names(self.which_sources))
        return sources, [(place, source) for place, source
                         in enumerate(sources) if source in chosen]

    @calls('transform_source_example', 'transform_source_batch')
    def _transformation(self, epoch: Epoch) -> Transformation:
        sources, places = self._chosen_places()
        examples = self.produces_examples

        def transform(stage: SourcewiseTransformer, data: Batch) -> Batch:
            return transform_chosen(
                stage, data, sources, places, stage.transform_source_example
                if examples else stage.transform_source_batch)

        return transform


def transform_chosen(stage: SourcewiseTransformer, data: Batch,
                     sources: Sequence[str], places: Places,
                     transform: Callable[[Any, str], Any]) -> Batch:
    """Return data with the sources at `places` transformed."""
    parts = list(data)
    if len(parts) < len(sources):
        check_count(parts, sources)
    for place, source in places:
        try:
            part = parts[place]
            if type(part) is not ndarray or part.dtype is OBJECT:
                _refuse_kinds(stage, part, source)
            parts[place] = transform(part, source)
        except Exception as error:
            error.add_note(f'in source {source!r}')
            raise
    return tuple(parts)


def _refuse_kinds(stage: SourcewiseTransformer, part: Any,
                  source: str) -> None:
    """Raise an error for sparse or masked data that a stage does not take."""
    name = type(stage).__name__
    if not stage.takes_sparse:
        require_dense(part, source, name)
    if not stage.takes_masked:
        require_unmasked(part, source, name)


class AgnosticSourcewiseTransformer(AgnosticTransformer,
                                    SourcewiseTransformer):
    """A stage that transforms sources one by one, in examples and batches.

    Subclasses implement :meth:`transform_any_source`.

    Parameters
    ----------
    produces_examples, which_sources, iteration_scheme, axis_labels
        See :class:`SourcewiseTransformer`.

    Examples
    --------
    >>> from fuel.datasets import IterableDataset
    >>> from fuel.streams import DataStream
    >>> class Doubler(AgnosticSourcewiseTransformer):
    ...     def transform_any_source(self, data, source):
    ...         return 2 * data
    >>> stream = DataStream(IterableDataset({'x': [1, 2], 'y': [3, 4]}))
    >>> doubler = Doubler(stream, stream.produces_examples,
    ...                   which_sources=('y',))
    >>> list(doubler.get_epoch_iterator())
    [(1, 6), (2, 8)]
    """

    def transform_any_source(self, source_data: Any,
                             source_name: str) -> Any:
        """Return one source of an example or a batch, transformed."""
        raise NotImplementedError(missing(self, 'transform_any_source'))

    @calls('transform_any_source')
    def _transformation(self, epoch: Epoch) -> Transformation:
        sources, places = self._chosen_places()

        def transform(stage: AgnosticSourcewiseTransformer,
                      data: Batch) -> Batch:
            return transform_chosen(
                stage, data, sources, places, stage.transform_any_source)

        return transform

    def transform_any(self, data: Batch) -> Any:
        """Return data with the chosen sources transformed."""
        return self._transform_sources(data, self.transform_any_source)

    def transform_source_example(self, source_example: Any,
                                 source_name: str) -> Any:
        """Return :meth:`transform_any_source` of an example's source."""
        return self.transform_any_source(source_example, source_name)

    def transform_source_batch(self, source_batch: Any,
                               source_name: str) -> Any:
        """Return :meth:`transform_any_source` of a batch's source."""
        return self.transform_any_source(source_batch, source_name)
