"""Find the sources that all stages pass on unchanged."""
from __future__ import annotations

from typing import Any

from fuel.epochs.pipeline import child_streams
from fuel.epochs.stage import stage_of
from fuel.transformers.casting import Cast, ForceFloatX
from fuel.transformers.mapping import Mapping
from fuel.transformers.rename import FilterSources, Rename
from fuel.transformers.source_names import as_tuple_of_names
from fuel.transformers.sourcewise import SourcewiseTransformer
from fuel.transformers.to_dense import ToDense
from fuel.typing import StreamLike


def unchanged_sources(stream: StreamLike) -> dict[str, str]:
    """Return the sources whose numbers are those of a data set.

    Stages may rename these sources, cast their numbers or make them dense, but
    not compute other numbers.

    Returns: dict from the names of these sources in the stream to their names
        in the data set.
    """
    children = child_streams(stream)
    if not children:
        return {source: source for source in stream.sources}
    if len(children) > 1:
        return {}
    below = unchanged_sources(children[0])
    return {source: below[name] for source, name
            in _handed_on(stream, tuple(children[0].sources)).items()
            if name in below}


def _handed_on(stream: Any, sources: tuple[str, ...]) -> dict[str, str]:
    """Return a mapping from the sources whose numbers a stage keeps to their
    names upstream.

    `sources`: sources of the stream that the stage reads.
    """
    same = dict(zip(sources, sources, strict=True))
    # A class that is derived from these stages may change the data.
    kind = type(stream)
    if kind is Rename:
        return dict(zip(stream.sources, sources, strict=True))
    if kind is FilterSources:
        return {source: source for source in stream.sources}
    if kind is ToDense or stage_of(stream).passes_items_on or (
            kind in (Cast, ForceFloatX) and stream.dtype.kind in 'if'):
        return same
    if isinstance(stream, SourcewiseTransformer):
        chosen = as_tuple_of_names(stream.which_sources)
        return {source: source for source in sources
                if source not in chosen}
    return same if isinstance(stream, Mapping) and stream.add_sources else {}
