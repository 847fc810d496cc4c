"""States to be saved: with what they are states of, and a checksum.

A state may be saved after each batch, so what stays as it is within an epoch
is encoded once. Each state has lists and dicts of its own all the same.
"""
from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

from fuel.epochs.counters import count, find_counters
from fuel.epochs.encoded import Encoded, as_text
from fuel.epochs.fingerprint import FORMAT, encoded_fingerprint
from fuel.epochs.pipeline import child_streams
from fuel.epochs.runtime import runtime_of
from fuel.epochs.state import RUNNING
from fuel.typing import State

if TYPE_CHECKING:
    from fuel.epochs.epoch import Epoch


class Identified(NamedTuple):
    """A state that says what it is a state of, and its JSON text."""

    state: State
    text: str


def sealed(stream: Any, state: State) -> State:
    """Return a copy of a state to be saved: with what it is a state of, and
    its checksum."""
    return _with_checksum(stream._identified(state))


def sealed_epoch(stream: Any, epoch: Epoch) -> State:
    """Return the state of an epoch of a stream, to be saved."""
    counts = None if epoch.counters is None else count(epoch.counters)
    if epoch.counters is None or counts is None or epoch.finished:
        state = sealed(stream, stream._state_of(epoch))
        # Now it is known that there is a state.
        epoch.counters = None if epoch.finished else find_counters(
            stream, epoch)
        return state
    children: list[Identified] = []
    for counter, counted in zip(
            reversed(epoch.counters), reversed(counts), strict=True):
        children = [_joined(
            counter.stream, RUNNING, *counted, counter.epoch.start,
            [(None, 'null'), ([], '[]'), (None, 'null'), (None, 'null')],
            children)]
    return _with_checksum(children[0])


def _with_checksum(saved: Identified) -> State:
    saved.state['crc'] = checksum(saved.text)
    return saved.state


def checksum(text: str) -> int:
    """Return the checksum of a state's text."""
    return zlib.crc32(text.encode())


def identified(stream: Any, state: State) -> Identified:
    """Return a copy of a state, with the fingerprint of each stage of its
    pipeline."""
    streams = child_streams(stream)
    if len(streams) != len(state['children']):
        raise TypeError(
            f'{type(stream).__name__} reads {len(streams)} data streams, but '
            f'has {len(state["children"])} epoch iterators of them, so its '
            'position cannot be told: keep them in child_epoch_iterator or '
            'child_epoch_iterators')
    return _joined(
        stream, state['epoch'], state['position'], state['requested'],
        state['scheme'], [
            _copied(state[field])
            for field in ('dataset', 'failed', 'leftover', 'rng')],
        [_identified_child(child, part) for child, part in zip(
            streams, state['children'], strict=True)])


def _identified_child(child: Any, state: State) -> Identified:
    if hasattr(child, '_identified'):
        found: Identified = child._identified(state)
        return found
    return Identified(*_copied(state))


def _joined(stream: Any, epoch: str, position: int, requested: int,
            scheme: Any, others: list[tuple[Any, str]],
            children: list[Identified]) -> Identified:
    """Join the parts of a stage's state, and of its text.

    `others`: copies and texts of `dataset`, `failed`, `leftover` and `rng`.
    """
    described = encoded_fingerprint(stream)
    start = None if scheme is None else _encoded_scheme(stream, scheme)
    ((dataset, dataset_text), (failed, failed_text),
     (leftover, leftover_text), (rng, rng_text)) = others
    # In the order of the keys, as the checksum is made when it is checked.
    text = (
        f'{{"children":[{",".join([child.text for child in children])}],'
        f'"dataset":{dataset_text},"epoch":"{epoch}","failed":{failed_text},'
        f'"format":{FORMAT},"leftover":{leftover_text},'
        f'"position":{position},"requested":{requested},"rng":{rng_text},'
        f'"scheme":{"null" if start is None else start.text},'
        f'"stream":{described.text}}}')
    return Identified({
        'format': FORMAT, 'stream': described.copy(), 'epoch': epoch,
        'position': position, 'requested': requested,
        'scheme': None if start is None else start.copy(),
        'dataset': dataset, 'rng': rng, 'leftover': leftover,
        'failed': failed, 'children': [child.state for child in children],
    }, text)


def _copied(value: Any) -> tuple[Any, str]:
    """Return a copy of what may differ from batch to batch, and its text."""
    if value is None:
        return None, 'null'
    if value == []:
        return [], '[]'
    text = as_text(value)
    return json.loads(text), text


def _encoded_scheme(stream: Any, state: Any) -> Encoded:
    """Return the state that a scheme had when the epoch began."""
    runtime = runtime_of(stream)
    known = runtime.encoded_scheme
    if known is None or known.source is not state:
        known = runtime.encoded_scheme = Encoded(state)
    return known
