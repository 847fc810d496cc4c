"""Check the measurements and the status that a server sends."""
from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

from fuel.describe.pipeline import MOST_STAGES
from fuel.profiling.measurements import Path, StageMeasurements
from fuel.wire import WireError
from fuel.wire.header import Fields, get_field
from fuel.wire.messages import ClientStatus

# Limits of the number of characters in a text about a stage, and of the number
# of integers in a path.
_MOST_CHARACTERS, _MOST_LEVELS = 1000, 10
# Limits of the number of clients of a server, and of the number of its other
# values.
_MOST_CLIENTS, _MOST_NUMBERS = 10_000, 100
# Types of the fields of StageMeasurements, by annotation.
_KINDS: Any = {'str': str, 'int': int, 'float': float, 'Path': list}


def take_stages(measured: list[Any]) -> list[StageMeasurements]:
    """Return the checked measurements of the server's stages."""
    if len(measured) > MOST_STAGES:
        raise WireError(f'the server sent measures of {len(measured)} stages')
    return [_take_stage(fields) for fields in measured]


def take_took(fields: Fields) -> tuple[Path | None, float]:
    """Return the path of the stage that took most of a batch's time, and the
    seconds that the batch took."""
    took = get_field(fields, 'took', list, None)
    if took is None:
        return None, 0.
    if len(took) != 2 or not isinstance(took[0], list) or not isinstance(
            took[1], float):
        raise WireError(f'not the time of a batch: {took!r:.80}')
    seconds = took[1]
    if not 0 <= seconds < float('inf'):
        raise WireError(f'a batch that took {seconds} seconds')
    return _take_path(took[0]), seconds


def _take_path(numbers: list[Any]) -> Path:
    if not 0 < len(numbers) <= _MOST_LEVELS or not all(
            type(number) is int and 0 <= number < MOST_STAGES
            for number in numbers):
        raise WireError(f'not the place of a stage: {numbers!r:.80}')
    return tuple(numbers)


def _take_stage(fields: object) -> StageMeasurements:
    if not isinstance(fields, dict):
        raise WireError('the measures of a stage are an object, got '
                        f'{type(fields).__name__}')
    values = {field.name: get_field(fields, field.name, _KINDS[field.type])
              for field in dataclasses.fields(StageMeasurements)}
    values['path'] = _take_path(values['path'])
    if values['depth'] >= MOST_STAGES:
        raise WireError(f'a stage at the depth {values["depth"]}')
    for value in values.values():
        if isinstance(value, str) and not _is_text(value):
            raise WireError(f'not the text of a stage: {value[:80]!r}')
        if isinstance(value, float) and not 0 <= value < float('inf'):
            raise WireError(f'a stage that took {value} seconds')
    return StageMeasurements(**values)


class ServerStatus(NamedTuple):
    """The status of a server, checked.

    `numbers`: counts, times and texts, by name.
    """

    numbers: dict[str, int | float | str]
    stages: list[StageMeasurements]
    clients: list[ClientStatus]


def take_status(status: Mapping[str, Any]) -> ServerStatus:
    """Return the checked status of a server."""
    numbers = {name: value for name, value in status.items()
               if name not in ('stages', 'connections')}
    if len(numbers) > _MOST_NUMBERS:
        raise WireError(f'the server sent {len(numbers)} numbers')
    for name, value in numbers.items():
        if type(value) not in (int, float, str) or not (
                _is_text(name) and _is_text(str(value))):
            raise WireError(f'not a number of a server: {name!r:.80}, '
                            f'{value!r:.80}')
    clients = get_field(dict(status), 'connections', list, [])
    if len(clients) > _MOST_CLIENTS:
        raise WireError(f'the server sent {len(clients)} clients')
    return ServerStatus(
        numbers, take_stages(get_field(dict(status), 'stages', list, [])),
        [_take_client(fields) for fields in clients])


def _is_text(text: str) -> bool:
    return len(text) < _MOST_CHARACTERS and text.isprintable()


def _take_client(fields: object) -> ClientStatus:
    if not isinstance(fields, dict):
        raise WireError(f'a client is an object, got {type(fields).__name__}')
    found = ClientStatus(
        # The client chose its name, and the server does not check it.
        ''.join(letter if letter.isprintable() else '?' for letter
                in get_field(fields, 'client', str)[:_MOST_CHARACTERS]),
        get_field(fields, 'rank', int, None),
        get_field(fields, 'is_local', bool),
        get_field(fields, 'seconds', float),
        get_field(fields, 'batches', int), get_field(fields, 'lag', int),
        get_field(fields, 'hwm', int),
        get_field(fields, 'is_waiting', bool),
        # The client chose this text, too.
        ''.join(letter if letter.isprintable() else '?' for letter
                in get_field(fields, 'host', str, '')[:_MOST_CHARACTERS]),
        get_field(fields, 'pid', int, 0),
        get_field(fields, 'waited', float, 0.))
    if not (0 <= found.seconds < float('inf')
            and 0 <= found.waited < float('inf')):
        raise WireError(f'a client for {found.seconds} seconds')
    return found
