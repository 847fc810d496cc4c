"""States to be saved: with the fingerprint of their pipeline and a checksum.

A state may be saved after each batch, so the parts that do not change within
an epoch are encoded once. Each state still has lists and dicts of its own.

A signal handler runs between any two steps of Python. It may request the
state of a stream while this thread is making an item of that stream: this
request raises an error.
"""
from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from fuel.epochs.accepted import Accepted
from fuel.epochs.identity import data_id, order_id
from fuel.epochs.omitted import Omitted
from fuel.epochs.past import Past, with_epoch
from fuel.epochs.state import (
    FINISHED, RUNNING, Position, SchemeStart, as_state, as_text, available,
    copied_with_text)
from fuel.epochs.epoch import Counter, Epoch
from fuel.epochs.fingerprint import FORMAT, encoded_fingerprint
from fuel.epochs.stage import Stage, stage_of
from fuel.kernels.epoch_iterator import EpochIterator, meters_in_use
from fuel.kernels.stage_reader import StageReader
from fuel.schemes.shard import Shard
from fuel.typing import State, StreamLike

ADVICE = ('a signal handler must not save a state: let it set a flag, and '
          'save in the loop, after the batch (see "Before a job is ended" in '
          'the manual, on the page about resuming)')


class EpochFacts(NamedTuple):
    """Facts about an epoch that the state of the last stage has.

    `past`: the epochs that were begun before; None if they are not known.
    `omitted`: the items that are left out of epochs.
    `accepted`: the differences that were accepted when states were loaded.
    `ids`: the ids of the order and of the data.
    `shard`: the share of a rank; None if the stream has none.
    """

    past: Past
    omitted: Omitted
    accepted: Accepted
    ids: tuple[str, str] | None
    shard: Shard | None


def refuse_midway(stage: Stage, epoch: Any) -> None:
    """Raise RuntimeError if a state is requested while an epoch begins, while
    a state is loaded or while the next item is being made.

    While a stage waits for an item from workers or a server, its state is
    known. So are the states of stages downstream that keep nothing between
    items.

    `epoch`: the epoch whose state is requested; None if there is none.
    """
    if stage.changing:
        raise RuntimeError(
            f'the state of {stage.name} was asked for while an epoch begins '
            f'or a state is loaded: {ADVICE}')
    meters, below = meters_in_use(), stage
    while meters and below.meter in meters:
        if below.is_remote:
            if below.is_waiting:
                return
            break
        child = None if epoch is None else epoch.attributes.get(
            'child_epoch_iterator')
        if not isinstance(child, EpochIterator) or not isinstance(
                epoch.reader, StageReader) or not below.only_counts(epoch):
            break
        below, epoch = stage_of(child.data_stream), child.epoch
        if below.meter not in meters:
            break
    else:
        return
    raise RuntimeError(
        f'the state of {stage.name} was asked for while its next item is '
        f'being made: {ADVICE}')


def find_counters(stage: Stage, epoch: Epoch) -> list[Counter] | None:
    """Return the stages of a pipeline, the last one first; None if more than
    two numbers of a stage's state change within an epoch.

    In most pipelines no stage keeps data from one batch to the next, and no
    stage draws at random.  Then two numbers per stage are its position: the
    numbers of its items and of its requests.
    """
    counters: list[Counter] = []
    only_counts = stage.only_counts(epoch)
    while only_counts:
        child = epoch.attributes.get('child_epoch_iterator')
        counters.append((stage, epoch, child))
        if child is None:
            return counters
        if not isinstance(child, EpochIterator):
            return None
        only_counts = child.only_counts()
        stage, epoch = stage_of(child.data_stream), child.epoch
    return None


def count(counters: Sequence[Counter]) -> list[tuple[int, int]] | None:
    """Return each stage's numbers of items and of requests; None if anything
    else in their states has changed."""
    counts: list[tuple[int, int]] = []
    for _, epoch, child in counters:
        if epoch.failed or epoch.skipped or epoch.left_out.count or (
                not epoch.finished and epoch.attributes.get(
                    'child_epoch_iterator') is not child):
            return None
        counts.append((epoch.position, epoch.requested))
    return counts


def sealed(stream: StreamLike, state: State) -> State:
    """Return a copy of a state to be saved, with fingerprints and a
    checksum."""
    stage = stage_of(stream)
    facts = EpochFacts(
        stage.past_epochs(state['epoch'] == FINISHED), stage.omitted,
        stage.accepted, ids_between(stage, state), stage.shard)
    return _with_checksum(*identified(stage, state, facts=facts))


def ids_between(stage: Stage, state: State) -> tuple[str, str]:
    """Return the ids of the order and of the data for a state of a stream
    whose next epoch has not begun."""
    saved = state.get('order_id') if state['epoch'] == RUNNING else None
    return saved or order_id(stage, state), data_id(stage.stream)


def present_ids(stream: StreamLike) -> tuple[str, str]:
    """Return the ids of the order and of the data of the epoch that is
    running, or that the next iterator begins."""
    stage = stage_of(stream)
    with stage.lock:
        epoch = stage.epoch
        if epoch is None or stage.pending is not None or epoch.finished:
            return ids_between(stage, stage.state())
        return ids_of(stage, epoch, _position(stage, epoch))


def _position(stage: Stage, epoch: Epoch) -> Position | State | Exception:
    """Return the position of an epoch, or the state where others make the
    items or where it is finished."""
    return stage.state_of(epoch) if (
        epoch.finished or stage.is_remote) else stage.position(epoch)


def ids_of(stage: Stage, epoch: Epoch,
           position: Position | State | Exception) -> tuple[str, str]:
    """Return the ids of the order and of the data of a running epoch.

    `position`: its position.
    """
    if epoch.ids is None:
        epoch.ids = (epoch.order_id or order_id(stage, available(position)),
                     data_id(stage.stream))
    return epoch.ids


def sealed_epoch(stage: Stage, epoch: Epoch) -> State:
    """Return the state of an epoch of a stage, to be saved."""
    counters = counts = None
    if epoch.counters is not None:
        child, below = epoch.counters
        counters = [(stage, epoch, child), *below]
        counts = count(counters)
    if counters is None or counts is None or epoch.finished:
        position = _position(stage, epoch)
        plain, shard = as_state(position), stage.shard
        state = _with_checksum(*identified(
            stage, plain, shard is not None, EpochFacts(
                with_epoch(epoch.past, None) if epoch.finished
                else epoch.past, stage.omitted, stage.accepted,
                ids_between(stage, plain) if epoch.finished
                else ids_of(stage, epoch, position), shard)))
        # Now it is known that the epoch has a state.
        found = None if epoch.finished else find_counters(stage, epoch)
        # Without this epoch and its stage, which holds it: no cycle.
        epoch.counters = None if found is None else (found[0][2], found[1:])
        return state
    children: list[tuple[State, str]] = []
    for (below, running, _), counted in zip(
            reversed(counters), reversed(counts), strict=True):
        start = running.start
        # Its state was saved before.
        assert not isinstance(start, Exception)
        children = [_joined(
            below, RUNNING, *counted, start,
            [(None, 'null'), ([], '[]'), (None, 'null'), (None, 'null')],
            children, is_sharded=False,
            facts=EpochFacts(epoch.past, stage.omitted, stage.accepted,
                             epoch.ids, epoch.shard)
            if running is epoch else None)]
    return _with_checksum(*children[0])


def _with_checksum(state: State, text: str) -> State:
    state['crc'] = checksum(text)
    return state


def checksum(text: str) -> int:
    """Return the checksum of a state's text."""
    return zlib.crc32(text.encode())


def identified(stage: Stage, state: State, is_sharded: bool = True,
               facts: EpochFacts | None = None) -> tuple[State, str]:
    """Return a copy of a state with the fingerprint of each stage, and the
    text of this copy.

    `is_sharded`: whether the pipeline may take a rank's share.
    `facts`: the facts about the epoch of the last stage; None for others.
    """
    owner = stage.state_owner
    if owner is None:
        return copied_with_text(state)
    asked, stage, streams = stage, owner, owner.inputs
    if len(streams) != len(state['children']):
        raise TypeError(
            f'{stage.name} reads {len(streams)} data streams, but '
            f'has {len(state["children"])} epoch iterators of them, so its '
            'position is not known: keep them in child_epoch_iterator or '
            'child_epoch_iterators')
    scheme = state['scheme']
    others: list[tuple[Any, str]] = []
    for field in ('dataset', 'failed', 'leftover', 'rng'):
        part = state[field]
        # Nearly always a field is empty.
        others.append((None, 'null') if part is None else ([], '[]')
                      if part == [] else copied_with_text(part))
    is_sharded = is_sharded and stage.own_shard is None
    children = list(map(stage_of, streams))
    for child in children if owner is asked else (owner, *children):
        if child.omitted:
            raise TypeError(
                f'the state of {asked.name} would not name the steps that a '
                'stream below it leaves out: let leave_out(stream, ...) take '
                'the last stage of the pipeline')
    return _joined(
        stage, state['epoch'], state['position'], state['requested'],
        None if scheme is None else _start_of(stage, scheme), others,
        [identified(child, part, is_sharded) for child, part in zip(
            children, state['children'], strict=True)],
        is_sharded, state.get('skipped'), facts)


def _joined(stage: Stage, epoch: str, position: int, requested: int,
            start: SchemeStart | None, others: list[tuple[Any, str]],
            children: list[tuple[State, str]], is_sharded: bool,
            skipped: object = None, facts: EpochFacts | None = None,
            ) -> tuple[State, str]:
    """Return a stage's state and its text, joined from their parts.

    `others`: copies and texts of `dataset`, `failed`, `leftover` and `rng`.
    `is_sharded`: whether streams that are read may take a rank's share.
    `skipped`: field of the skipped examples; None if no example was skipped.
    `facts`: the facts about the epoch of the last stage; None for others.
    """
    described_text, copy_described = encoded_fingerprint(stage, is_sharded)
    start_text, copy_start = (
        ('null', None) if start is None else start.encoded)
    states, texts = zip(*children, strict=True) if children else ((), ())
    ((dataset, dataset_text), (failed, failed_text),
     (leftover, leftover_text), (rng, rng_text)) = others
    more: State = {}
    accepted_text = data_text = past_text = ranks_text = skipped_text = ''
    if facts is not None:
        past, omitted, accepted, ids, shard = facts
        if past is not None:
            more['past'] = past
            past_text = f'"past":"{past}",'
        if ids is not None:
            more['order_id'], more['data_id'] = ids
            data_text = f'"data_id":"{ids[1]}",'
            past_text = f'"order_id":"{ids[0]}",{past_text}'
        if omitted:
            more['omitted'] = list(map(list, omitted))
            past_text = f'"omitted":{as_text(omitted)},{past_text}'
        if accepted:
            more['accepted'] = list(map(list, accepted))
            accepted_text = f'"accepted":{as_text(accepted)},'
        if shard is not None:
            more['ranks'] = list(shard[1:])
            ranks_text = f'"ranks":{as_text(shard[1:])},'
    if skipped is not None:
        more['skipped'], skipped_text = copied_with_text(skipped)
        skipped_text = f'"skipped":{skipped_text},'
    # With sorted keys, as in the text from which the check makes a checksum.
    text = (
        f'{{{accepted_text}"children":[{",".join(texts)}],{data_text}'
        f'"dataset":{dataset_text},"epoch":"{epoch}","failed":{failed_text},'
        f'"format":{FORMAT},"leftover":{leftover_text},{past_text}'
        f'"position":{position},{ranks_text}"requested":{requested},'
        f'"rng":{rng_text},"scheme":{start_text},'
        f'{skipped_text}"stream":{described_text}}}')
    return {
        'format': FORMAT, 'stream': copy_described(), 'epoch': epoch,
        'position': position, 'requested': requested,
        'scheme': None if copy_start is None else copy_start(),
        'dataset': dataset, 'rng': rng, 'leftover': leftover,
        'failed': failed, 'children': list(states),
        **more}, text


def _start_of(stage: Stage, state: object) -> SchemeStart:
    """Return the `SchemeStart` of a scheme's state.

    If the epoch made last began with this state, the `SchemeStart` of that
    epoch is returned, since it is encoded only once.
    """
    start = None if stage.epoch is None else stage.epoch.start
    return start if isinstance(start, SchemeStart) and (
        start.source is state) else SchemeStart(state)
