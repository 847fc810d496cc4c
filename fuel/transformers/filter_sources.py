"""A stage that keeps some of the sources."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fuel.describe.source_types import SourceTypes, types_of
from fuel.epochs.epoch import Epoch
from fuel.transformers.agnostic import AgnosticTransformer
from fuel.transformers.base import Transformation, check_count
from fuel.transformers.source_names import as_names, check_known, labels_of
from fuel.typing import Batch, StreamLike
from fuel.utils.old_pickles import pickled_sources
from fuel.utils.overrides import calls


class FilterSources(AgnosticTransformer):
    """Keeps some of the sources.

    Parameters
    ----------
    sources : tuple of str
        Those to keep. Their order does not matter: they come in that of
        `data_stream`.
    **kwargs
        See :mod:`fuel.transformers`.

    Raises
    ------
    ValueError
        If `data_stream` has no source of one of the names.

    Examples
    --------
    >>> from fuel.datasets import IterableDataset
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IterableDataset({'x': [1, 2], 'y': [3, 4]}))
    >>> list(FilterSources(stream, sources=('y',)).get_epoch_iterator())
    [(3,), (4,)]
    """

    pure = True
    keeps_rows = True

    def __init__(self, data_stream: StreamLike, sources: Sequence[str],
                 **kwargs: Any) -> None:
        self._kept = frozenset(as_names('sources', sources))
        check_known('sources', sorted(self._kept), data_stream.sources)
        labels = labels_of(data_stream)
        if labels is not None:
            kwargs.setdefault('axis_labels', {
                source: part for source, part in labels.items()
                if source in self._kept})
        super().__init__(
            data_stream, data_stream.produces_examples, **kwargs)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if '_kept' not in state:
            self._kept = frozenset(pickled_sources(self))

    def _get_sources(self) -> tuple[str, ...]:
        return tuple([source for source in self.data_stream.sources
                      if source in self._kept])

    def known_types(self) -> SourceTypes:
        """Return what is known of the sources that are kept."""
        kept = self.sources
        return {source: known for source, known
                in types_of(self.data_stream).items() if source in kept}

    def transform_any(self, data: Batch) -> Any:
        """Return the data of the sources that are kept."""
        return self._transformation(None)(self, data)

    @calls()
    def _transformation(self, epoch: Epoch | None) -> Transformation:
        sources = tuple(self.data_stream.sources)
        places = [place for place, source in enumerate(sources)
                  if source in self._kept]

        def pick(stage: object, data: Batch) -> Batch:
            if len(data) < len(sources):
                check_count(data, sources)
            return tuple([data[place] for place in places])

        return pick
