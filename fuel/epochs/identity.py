"""Ids of the order of an epoch and of the data of a pipeline.

A saved state has both ids, which are computed once an epoch. They are made of
what the pipeline declares: no code is hashed, and no data are read.
"""
from __future__ import annotations

import copy
import json
import string
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from typing import Any

from fuel.epochs.fingerprint import encoded_fingerprint
from fuel.epochs.pipeline import datasets_of
from fuel.epochs.readers import (
    kept_checksums, known_length, known_types)
from fuel.epochs.stage import Stage, stage_of
from fuel.epochs.state import (
    RUNNING, Position, SchemeStart, as_text, available)
from fuel.schemes.iteration_scheme import seed_of
from fuel.typing import DatasetLike, State, StreamLike
from fuel.utils import rng_state

# Number of characters of each part of a data id: of names and sizes, of types
# and shapes, of checksums, and of the single data sets.
_PART = 5
# A part that is not known.
_UNKNOWN = '.' * _PART
# A character for each choice of some of several data sets, and most of these.
_TOLD = string.ascii_letters + string.digits + '-_'
_MOST_TOLD = 6


def _digest(text: str) -> str:
    """Return a digest of 20 characters."""
    # Needed only when a state is saved or loaded.
    from hashlib import blake2b
    return urlsafe_b64encode(
        blake2b(text.encode('utf-8', 'surrogatepass'), digest_size=15
                ).digest()).decode()


# --- the order ---------------------------------------------------------------

def order_id(stage: Stage, position: Position | State) -> str:
    """Return the id of the order of an epoch, of all ranks.

    It depends on the schemes, on the stages that change the order, and on
    what the generators of both were when the epoch began.

    `position`: the position of the epoch; if no epoch is running, the state
        without the fingerprint.
    """
    found: list[str] = []
    _add_parts(stage, position, found, False)
    return _digest('\n'.join(found))


def _add_parts(stage: Stage, position: Any, found: list[str],
               is_restarted: bool) -> None:
    """Add the parts of an order that a stage and its inputs decide.

    `is_restarted`: whether the stage may begin further epochs within the
        epoch. Then the seeds stand for the states of its generators.
    """
    owner = stage.state_owner
    if owner is None:
        found.append(stage.name)
        return
    stage = owner
    is_running = isinstance(position, Position)
    fields = position._asdict() if is_running else available(position)
    inputs = stage.inputs
    if len(inputs) != 1 or stage.depends_on_data:
        found.append(_order_text(stage))
        if is_restarted:
            found.append(repr(seed_of(stage.scheme)))
        else:
            found.append(_start_text(
                fields['start' if is_running else 'scheme']))
            if inputs and stage.draws == 'by_seed':
                found.append(_key_text(stage, fields, is_running))
        is_restarted = is_restarted or not stage.goes_back
    for child, part in zip(inputs, fields['children'], strict=True):
        _add_parts(stage_of(child), part, found, is_restarted)


def _order_text(stage: Stage) -> str:
    """Return what the fingerprint of a stage says, except about the data and
    the rank."""
    text, _ = encoded_fingerprint(stage, False, is_copied=False)
    return as_text({key: value for key, value in json.loads(text).items()
                    if not key.startswith('data set')
                    and key not in ('sources', 'shard')})


def _start_text(start: Any) -> str:
    """Return the state that a scheme had when the epoch began."""
    found = available(start) if isinstance(start, Exception) else start
    return found.encoded[0] if isinstance(found, SchemeStart) else (
        as_text(found))


def _key_text(stage: Stage, fields: Any, is_running: bool) -> str:
    """Return the key by which a stage draws in the epoch."""
    if is_running or fields['epoch'] == RUNNING:
        leftover = fields['leftover']
        return str(leftover.get('key') if isinstance(leftover, dict) else None)
    rng: Any = copy.deepcopy(stage.generator)
    rng_state.set_state(rng, fields['rng'])
    return str(int(rng.integers(2 ** 63)))


# --- the data ----------------------------------------------------------------

def data_id(stream: StreamLike) -> str:
    """Return the id of the data that a pipeline reads.

    Its parts belong to names and sizes, to types and shapes, to checksums
    that the files have, and to the single data sets. A part that is not known
    consists of dots.
    """
    return _id_of(datasets_of(stream))


def _id_of(datasets: Sequence[DatasetLike]) -> str:
    """Return the id of some data sets."""
    facts = list(map(_facts_of, datasets))
    return ''.join([_part([one[place] for one in facts])
                    for place in range(3)]) + _single(facts)


def _facts_of(dataset: Any) -> tuple[Any, Any, Any]:
    """Return the names and the size of a data set, the types of its sources,
    and the checksums of its files; None for facts that are not known."""
    return ([[*dataset.sources], known_length(dataset)], _types_of(dataset),
            _checksums_of(dataset))


def _part(facts: Sequence[Any]) -> str:
    """Return the part of an id for facts about all data sets.

    If only those of some data sets are known, it begins with a dot and a
    character that stands for these data sets.
    """
    known = [place for place, fact in enumerate(facts) if fact is not None]
    if not known or len(known) < len(facts) > _MOST_TOLD:
        return _UNKNOWN
    found = _digest(as_text([facts[place] for place in known]))
    return found[:_PART] if len(known) == len(facts) else (
        '.' + _TOLD[sum([1 << place for place in known])] + found)[:_PART]


def _differs(facts: Sequence[Any], saved: str) -> bool:
    """Return whether facts about data sets differ from those of a part of an
    id; facts that either lacks do not count."""
    if saved == _UNKNOWN:
        return False
    if saved.startswith('.'):
        told, saved = _TOLD.find(saved[1]), saved[2:]
        facts = [fact for place, fact in enumerate(facts) if told >> place & 1]
    return None not in facts and not _digest(as_text(facts)).startswith(saved)


def _single(facts: Sequence[tuple[Any, Any, Any]]) -> str:
    """Return the part of an id that tells data sets apart."""
    width = _PART // max(1, len(facts))
    return ''.join([_digest(as_text(one))[:width] for one in facts]).ljust(
        _PART, '.')


def _types_of(dataset: Any) -> Any:
    """Return the types and shapes of sources as plain data; None if they are
    not all known."""
    known: Any = known_types(dataset)
    found = []
    for name in dataset.sources:
        one = known.get(name)
        if one is None or one.dtype is None:
            return None
        # Byte orders differ between machines.
        dtype = one.dtype.newbyteorder('<')
        found.append([name, dtype.str if dtype.names is None else repr(dtype),
                      one.shape, one.is_sparse])
    return found


def _checksums_of(dataset: Any) -> list[str] | None:
    """Return the checksums that the files of a data set have; None if they
    have none."""
    return [*map(str, kept_checksums(dataset))] or None


def data_differences(datasets: Sequence[DatasetLike], saved: str) -> str:
    """Return a text about what differs from the data of an id; '' if nothing
    that is known differs."""
    differ = [name for place, name, find in (
        (_PART, 'types or shapes', _types_of),
        (2 * _PART, 'checksums', _checksums_of))
        if _differs(list(map(find, datasets)), saved[place:place + _PART])]
    if not differ:
        return ''
    facts = list(map(_facts_of, datasets))
    width = _PART // max(1, len(facts))
    single, before = _single(facts), saved[3 * _PART:]
    places = [place for place in range(len(facts)) if width and (
        single[place * width:(place + 1) * width]
        != before[place * width:(place + 1) * width])]
    return f'the {" and the ".join(differ)} of ' + (' and '.join([
        f'data set {place} ({type(datasets[place]).__name__})'
        for place in places]) or 'the data sets')
