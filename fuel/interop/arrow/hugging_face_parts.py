"""The pipeline of an ``IterableDataset`` of Hugging Face, and its state."""
from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol, TypeGuard

import numpy

from fuel.typing import State

# The first release, and what a pipeline is made of, whose states say exactly
# where reading stands.
FIRST_EXACT = 5, 2
EXACT = frozenset({
    'ArrowExamplesIterable', 'CyclingMultiSourcesExamplesIterable',
    'ExamplesIterable', 'FilteredExamplesIterable',
    'FormattedExamplesIterable',
    'HorizontallyConcatenatedMultiSourcesExamplesIterable',
    'InterleavedShardsExamplesIterable', 'IterableDataset',
    'MappedExamplesIterable', 'RandomlyCyclingMultiSourcesExamplesIterable',
    'RebatchedArrowExamplesIterable', 'RepeatExamplesIterable',
    'SelectColumnsIterable', 'SkipExamplesIterable', 'StepExamplesIterable',
    'TakeExamplesIterable',
    'VerticallyConcatenatedMultiSourcesExamplesIterable'})


class HuggingFaceStream(Protocol):
    """What is used of an ``IterableDataset`` of Hugging Face."""

    epoch: int

    def iter(self, batch_size: int) -> Iterator[Mapping[str, Any]]:
        """Iterate over dicts of columns."""

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of the next iteration."""

    def state_dict(self) -> State:
        """Return where the last iteration stands."""

    def load_state_dict(self, state_dict: State) -> None:
        """Let the next iteration begin there."""


def _is_part(value: object) -> TypeGuard[Any]:
    """Return whether an object is a part of a pipeline of Hugging Face."""
    return type(value).__module__ == 'datasets.iterable_dataset' and (
        'iterable' in type(value).__name__.lower())


def _below(part: object) -> Iterator[tuple[str, Any]]:
    """Iterate over the parts that a part reads, alone or in lists."""
    for name, value in vars(part).items():
        if _is_part(value) or (
                isinstance(value, list) and value
                and all(map(_is_part, value))):
            yield name, value


def parts_of_pipeline(part: object) -> Iterator[object]:
    """Iterate over a part and all below it."""
    yield part
    for _, found in _below(part):
        for each in found if isinstance(found, list) else [found]:
            yield from parts_of_pipeline(each)


def own_pipeline(part: Any) -> Any:
    """Return a pipeline whose reading no other disturbs.

    Theirs keep where reading stands in their parts, which several data sets
    and epochs share; their copies share it too.
    """
    copied = object.__new__(type(part))
    vars(copied).update(vars(part))
    for name, found in _below(part):
        vars(copied)[name] = (
            [own_pipeline(each) for each in found] if isinstance(found, list)
            else own_pipeline(found))
    if '_epoch' in vars(copied):
        # A tensor in shared memory, if PyTorch is there.
        vars(copied)['_epoch'] = int(copied.epoch)
    return copied


def has_exact_states(parts: Iterable[object]) -> bool:
    """Return whether the state of a pipeline says exactly where reading
    stands.

    Earlier releases hold back examples that their states do not have.
    """
    release = importlib.metadata.version('datasets').split('.')
    return tuple(map(int, release[:2])) >= FIRST_EXACT and all(
        map(_is_exact, parts))


def _is_exact(part: object) -> bool:
    members = vars(part)
    if type(part).__name__ == 'BufferShuffledExamplesIterable':
        # It holds nothing back.
        return bool(members['buffer_size'] == 1)
    return type(part).__name__ in EXACT and not (
        # They may leave out what a function made of a batch.
        members.get('batched') and members.get('formatting'))


def part_order(part: object) -> list[Any]:
    """Return what decides the order of a part: its numbers, generators, and
    the rank."""
    return [type(part).__name__, *(
        (name, value.bit_generator.state if isinstance(
            value, numpy.random.Generator) else value)
        for name, value in sorted(vars(part).items())
        if (name != '_epoch' and isinstance(
            value, (int, numpy.random.Generator)))
        or type(value).__name__ == 'DistributedConfig')]


def is_plain(value: object) -> bool:
    """Return whether a value is plain data, its numbers not negative."""
    if isinstance(value, dict):
        return all(isinstance(key, str) and is_plain(each)
                   for key, each in value.items())
    if isinstance(value, list):
        return all(map(is_plain, value))
    return isinstance(value, (str, type(None))) or (
        isinstance(value, int) and 0 <= value < 2 ** 128)


def fits_state(saved: object, fresh: object) -> bool:
    """Return whether a state has the form of a fresh one."""
    if isinstance(fresh, dict):
        return isinstance(saved, dict) and saved.keys() == fresh.keys() and (
            all(fits_state(saved[key], (
                fresh['examples_iterable'] if key == 'previous_state'
                and saved[key] is not None else value))
                for key, value in fresh.items()))
    if isinstance(fresh, list):
        # Data sets one after the other are their shards in later epochs, in
        # another order.
        return isinstance(saved, list) and all(
            any(fits_state(each, other) for other in fresh) for each in saved)
    if fresh is None:
        # What is read of several is known once it is read.
        return saved is None or isinstance(saved, dict)
    return type(saved) is type(fresh) and (
        saved == fresh or not isinstance(saved, str))
