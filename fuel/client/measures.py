"""What a server says of the stages of its pipeline, checked."""
from __future__ import annotations

import dataclasses
from typing import Any

from fuel.describe.pipeline import MOST_STAGES
from fuel.profiling.measurements import Path, StageMeasurements
from fuel.wire import WireError
from fuel.wire.header import Fields, get_field

# Characters of a text about a stage, and numbers in a path.
_LONGEST, _DEEPEST = 1000, 10
# By annotation.
_KINDS: Any = {'str': str, 'int': int, 'float': float, 'Path': list}


def take_stages(measured: list[Any]) -> list[StageMeasurements]:
    """Return what the stages of the server took."""
    if len(measured) > MOST_STAGES:
        raise WireError(f'the server sent measures of {len(measured)} stages')
    return [_take_stage(fields) for fields in measured]


def take_took(fields: Fields) -> tuple[Path | None, float]:
    """Return which stage took most of a batch, and what the batch took."""
    took = get_field(fields, 'took', list, None)
    if took is None:
        return None, 0.
    if len(took) != 2 or not isinstance(took[0], list) or not isinstance(
            took[1], float):
        raise WireError(f'not what a batch took: {took!r:.80}')
    seconds = took[1]
    if not 0 <= seconds < float('inf'):
        raise WireError(f'a batch that took {seconds} seconds')
    return _take_path(took[0]), seconds


def _take_path(numbers: list[Any]) -> Path:
    if not 0 < len(numbers) <= _DEEPEST or not all(
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
        if isinstance(value, str) and not (
                len(value) < _LONGEST and value.isprintable()):
            raise WireError(f'not the text of a stage: {value[:80]!r}')
        if isinstance(value, float) and not 0 <= value < float('inf'):
            raise WireError(f'a stage that took {value} seconds')
    return StageMeasurements(**values)
