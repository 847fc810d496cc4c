"""Stages that choose among the sources, or give them other names."""
from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from fuel.describe.source_types import SourceTypes, types_of
from fuel.epochs.epoch import Epoch
from fuel.streams.arguments import StreamOptions
from fuel.transformers.base import Transformation, check_count
from fuel.transformers.source_names import as_names, check_known, labels_of
from fuel.transformers.sourcewise import AgnosticTransformer
from fuel.typing import Batch, StreamLike
from fuel.utils.old_pickles import pickled_sources
from fuel.utils.overrides import calls
from fuel.utils.warn import warn_user


class FilterSources(AgnosticTransformer):
    """Keeps some of the sources.

    Parameters
    ----------
    sources : tuple of str
        The sources to keep, in the order of `data_stream`. A tuple or list
        with another order gives a warning; a set does not.
    iteration_scheme, axis_labels
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
                 **kwargs: Unpack[StreamOptions]) -> None:
        self._kept = frozenset(as_names('sources', sources))
        check_known('sources', sorted(self._kept), data_stream.sources)
        order = [name for name in data_stream.sources if name in self._kept]
        if isinstance(sources, (list, tuple)) and list(sources) != order:
            warn_user(
                f'FilterSources leaves sources in the order of its stream, '
                f'{tuple(order)}, not in that of {tuple(sources)}: name them '
                f'in this order')
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
        """Return the known types of the sources that are kept."""
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


logger = logging.getLogger(__name__)


class Rename(AgnosticTransformer):
    """Gives sources other names.

    Parameters
    ----------
    names : dict
        Maps current names to new names. Names may be swapped.
    on_non_existent : {'raise', 'ignore', 'warn'}, optional
        What to do about a name that no source has: raise KeyError (the
        default), ignore it, or ignore it and log a warning.
    iteration_scheme, axis_labels
        See :class:`~fuel.transformers.Transformer`. The axis labels default
        to those of `data_stream`, under the new names.

    Raises
    ------
    KeyError
        If a name is missing, or two sources would have the same name.
    ValueError
        If `on_non_existent` has another value.

    Examples
    --------
    >>> from fuel.datasets import IterableDataset
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IterableDataset({'x': [1, 2], 'y': [3, 4]}))
    >>> Rename(stream, {'x': 'features'}).sources
    ('features', 'y')
    """

    pure = True
    keeps_rows = True
    # An argument that is not kept.
    made_into_others = ('on_non_existent',)

    def __init__(self, data_stream: StreamLike, names: dict[str, str],
                 on_non_existent: str = 'raise',
                 **kwargs: Unpack[StreamOptions]) -> None:
        if on_non_existent not in ('raise', 'ignore', 'warn'):
            raise ValueError(
                "on_non_existent must be 'raise', 'ignore' or 'warn', got "
                f'{on_non_existent!r}')
        if not isinstance(names, Mapping):
            raise TypeError(
                f'names must be a dict from present names to new ones, such '
                f'as {{{next(iter(data_stream.sources))!r}: "new"}}, got '
                f'{names!r:.80}')
        self._names = _existing(data_stream.sources, names, on_non_existent)
        _check_unique(data_stream.sources, self._names)
        labels = labels_of(data_stream)
        if labels is not None:
            kwargs.setdefault('axis_labels', {
                self._names.get(source, source): part
                for source, part in labels.items()})
        super().__init__(
            data_stream, data_stream.produces_examples, **kwargs)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if '_names' not in state:
            self._names = dict(zip(self.data_stream.sources,
                                   pickled_sources(self), strict=True))

    def _get_sources(self) -> tuple[str, ...]:
        return tuple([self._names.get(source, source)
                      for source in self.data_stream.sources])

    def known_types(self) -> SourceTypes:
        """Return a mapping from the new names to the known types."""
        return {self._names.get(source, source): known for source, known
                in types_of(self.data_stream).items()}

    def transform_any(self, data: Batch) -> Any:
        """Return the data unchanged."""
        return data


def _existing(sources: Sequence[str], names: dict[str, str],
              on_non_existent: str) -> dict[str, str]:
    """Return `names` without the sources that do not exist."""
    if on_non_existent == 'raise':
        check_known('names', names, sources, KeyError)
    existing = {}
    for source, name in names.items():
        if source in sources:
            existing[source] = name
        elif on_non_existent == 'warn':
            logger.warning(
                'the source %r, to be renamed to %r, does not exist: the '
                'stream has %s', source, name, tuple(sources))
    return existing


def _check_unique(sources: Sequence[str], names: dict[str, str]) -> None:
    renamed: dict[str, str] = {}
    for source in sources:
        name = names.get(source, source)
        if name in renamed:
            raise KeyError(
                f'the sources {renamed[name]!r} and {source!r} would both be '
                f'called {name!r}: rename one of them to something else')
        renamed[name] = source
