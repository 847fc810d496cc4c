"""What a server sent, as data or as an exception."""
from __future__ import annotations

import dataclasses
from typing import Any

from fuel.client.channel import Delivery
from fuel.describe.pipeline import MOST_STAGES
from fuel.exceptions import ServerError
from fuel.profiling.report import StageProfile
from fuel.transport.leases import Leases
from fuel.typing import Batch
from fuel.wire import WireError, decode
from fuel.wire.header import Fields, get_field
from fuel.workers.remote_errors import ErrorReport

# Characters of a text about a stage.
_LONGEST = 1000
# By annotation.
_KINDS: Any = {'str': str, 'int': int, 'float': float}


def take_data(delivery: Delivery, num_sources: int) -> Batch:
    """Return the data of a batch; its arrays are the user's own."""
    items = delivery.fields.get('items')
    slot = get_field(delivery.fields, 'slot', dict, None)
    data = (decode(items, delivery.frames) if slot is None
            else _take_from_slot(slot, items, delivery.leases))
    if len(data) != num_sources:
        raise WireError(f'the server sent {len(data)} items for '
                        f'{num_sources} sources')
    return data


def _take_from_slot(slot: Fields, items: object, leases: Leases) -> Batch:
    extents = get_field(slot, 'extents', list)
    segment = get_field(slot, 'segment', int)
    if not leases.has_segment(segment) or not extents or not all(
            isinstance(extent, list) and len(extent) == 2
            and all(type(part) is int and part >= 0 for part in extent)
            for extent in extents):
        raise WireError('a batch in memory that is not known')
    try:
        batch: Batch = leases.lend(
            get_field(slot, 'number', int), segment,
            [(offset, size) for offset, size in extents],
            lambda buffers: decode(items, buffers))
        return batch
    except (ValueError, OverflowError) as error:
        raise WireError(f'a batch outside its memory: {error}') from error


def take_stages(measured: list[Any]) -> list[StageProfile]:
    """Return what the stages of the server took."""
    if len(measured) > MOST_STAGES:
        raise WireError(f'the server sent measures of {len(measured)} stages')
    return [_take_stage(fields) for fields in measured]


def _take_stage(fields: object) -> StageProfile:
    if not isinstance(fields, dict):
        raise WireError('the measures of a stage are an object, got '
                        f'{type(fields).__name__}')
    values = {field.name: get_field(fields, field.name, _KINDS[field.type])
              for field in dataclasses.fields(StageProfile)}
    for value in values.values():
        if isinstance(value, str) and not (
                len(value) < _LONGEST and value.isprintable()):
            raise WireError(f'not the text of a stage: {value[:80]!r}')
        if isinstance(value, float) and value < 0:
            raise WireError(f'a stage that took {value} seconds')
    return StageProfile(**values)


def as_exception(described: Fields) -> Exception:
    """Return an error of the server's pipeline as one of ours."""
    return ErrorReport(
        get_field(described, 'kind', str, None),
        get_field(described, 'summary', str, ''),
        get_field(described, 'text', str, ''),
        [str(note) for note in get_field(described, 'notes', list, [])],
        get_field(described, 'traceback', str, ''),
    ).rebuild(ServerError, 'the pipeline of the server raised ')
