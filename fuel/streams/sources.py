"""The sources of streams, kept until an attribute is assigned."""
from __future__ import annotations

from typing import Any

from fuel.epochs.runtime import KnownSources
from fuel.epochs.stage import Stage, stage_of
from fuel.utils.arguments import is_dataset
from fuel.utils.overrides import cached


def keep_found_sources(stream: Any, stage: Stage, base: Any) -> Any:
    """Return a stream's sources; keep them if it notices a new input.

    `base`: the base class of Fuel's streams.
    """
    changes, inputs = stage.changes, stage.inputs
    # The stages of the inputs that notice when sources are assigned.
    below: dict[int, Stage] = {}
    for child in inputs:
        if isinstance(child, base) and (
                type(child).sources is base.sources):
            below[id(child)] = stage_of(child)
    if below:
        stage.depend_on(below.values())
    found = stream._get_sources()
    if type(found) is not tuple or not _are_assigned(type(stream)) or (
            # A list of streams may be changed in place.
            type(vars(stream).get('data_streams')) is list):
        return found
    origins: list[tuple[Any, Any]] = []
    dataset: Any = stage.dataset
    if dataset is not None and is_dataset(dataset):
        origins.append((dataset, tuple(dataset.sources)))
    for child in inputs:
        one = below.get(id(child))
        if one is not None and one.known_sources is not None:
            origins += one.known_sources.origins
        elif one is None or type(vars(child).get('_sources')) is not tuple:
            # The sources of this input are compared at each use.
            origins.append((child, tuple(child.sources)))
    if inputs or origins:
        stage.keep_sources(KnownSources(found, tuple(origins)), changes)
    return found


# The attributes that hold what a stream reads.
_READ = frozenset({'data_stream', 'data_streams', 'dataset'})


@cached
def _are_assigned(cls: Any) -> bool:
    """Return whether streams of a class notice that an input is replaced."""
    # Not if it belongs to an epoch, or is a class attribute or a property.
    return _READ.isdisjoint(cls.epoch_attributes) and all(
        _READ.isdisjoint(vars(base)) for base in cls.__mro__)
