"""Events of a ledger, applied as they come from the file of a journal."""
from __future__ import annotations

from collections.abc import Callable
from functools import partial

from fuel.server.checkpoints import Steps
from fuel.server.ledger import SHARINGS, Account, Event, Ledger, Recorder
from fuel.typing import State
from fuel.wire.header import WireError
from fuel.wire.index_sets import from_ranges


def begin(event: Event, record: Recorder) -> Ledger:
    """Return the ledger that an event of a new epoch begins."""
    kind, number, sharing, num_ranks, is_adopted = event
    if kind != 'epoch' or sharing not in SHARINGS:
        raise WireError('an epoch was expected')
    return Ledger(_number(number), str(sharing), max(1, _number(num_ranks)),
                  bool(is_adopted), record)


def _text(value: object) -> str:
    if not isinstance(value, str) or len(value) > 64:
        raise WireError(f'not a name: {str(value)[:40]!r}')
    return value


def _number(value: object) -> int:
    if type(value) is not int or not 0 <= value < 2 ** 48:
        raise WireError(f'not a count: {str(value)[:40]!r}')
    return value


def _rank(value: object) -> int | None:
    return None if value is None else _number(value)


def _state(value: object) -> State:
    if not isinstance(value, dict):
        raise WireError('not a state')
    return value


def _state_or_none(value: object) -> State | None:
    return None if value is None else _state(value)


def _steps(value: object) -> Steps:
    if not isinstance(value, list) or not all(
            isinstance(step, list) and len(step) == 2
            and isinstance(step[0], list) for step in value):
        raise WireError('not a list of changes')
    return value


def _numbers(value: object) -> list[int]:
    if not isinstance(value, list):
        raise WireError('not a list of batches')
    return [_number(index) for index in value]


def apply(ledger: Ledger, event: Event) -> None:
    """Apply one event, checked: it comes from a file."""
    kind, *fields = event
    if not isinstance(kind, str) or kind not in _EVENTS:
        raise WireError(f'unknown event {str(kind)[:20]!r}')
    method, *checks = _EVENTS[kind]
    checked = [check(field)
               for check, field in zip(checks, fields, strict=True)]
    record, ledger.record = ledger.record, lambda event: None
    try:
        method(ledger, *checked)
    finally:
        ledger.record = record


# What applies an event, and what checks each of its fields.
_EVENTS: dict[str, tuple[Callable[..., object], ...]] = {
    'join': (Ledger.join, _text, _rank, _text, from_ranges),
    'sent': (Ledger.send, _text, _number),
    'delivered': (Ledger.acknowledge, _text, _numbers),
    'returned': (Ledger.take_back, _text, from_ranges),
    # Until when, the server that continues decides.
    'lost': (partial(Ledger.lose, deadline=float('inf')), _text),
    'left': (partial(Ledger.end, how='left'), _text),
    'gone': (partial(Ledger.end, how='gone'), _text),
    'end': (Ledger.end_pipeline, _number, _state_or_none),
    'base': (Ledger.begin_at, _number, _state),
    'checkpoint': (partial(Ledger.add_checkpoint, is_recorded=False),
                   _number, _steps),
    'rebase': (lambda ledger, state: ledger.checkpoints.rebase(state),
               _state),
    'account': (lambda ledger, client, *fields: ledger.accounts.update(
        {client: Account(client, *fields)}), _text, _rank, _text,
        from_ranges, from_ranges, from_ranges, bool, bool),
    'proven': (lambda ledger, delivered: setattr(
        ledger, 'delivered', delivered), from_ranges)}
