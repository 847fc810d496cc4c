"""Events of a ledger, applied as they come from the file of a journal."""
from __future__ import annotations

from collections.abc import Callable

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


def _steps(value: object) -> Steps:
    if not isinstance(value, list) or not all(
            isinstance(step, list) and len(step) == 2
            and isinstance(step[0], list) for step in value):
        raise WireError('not a list of changes')
    return value


def apply(ledger: Ledger, event: Event) -> None:
    """Apply one event, checked: it comes from a file."""
    kind, *fields = event
    handler = _HANDLERS.get(kind if isinstance(kind, str) else '')
    if handler is None:
        raise WireError(f'unknown event {str(kind)[:20]!r}')
    record, ledger.record = ledger.record, lambda event: None
    try:
        handler(ledger, *fields)
    finally:
        ledger.record = record


def _apply_join(ledger: Ledger, client: object, rank: object, before: object,
                claims: object) -> None:
    ledger.join(_text(client), _rank(rank), _text(before),
              from_ranges(claims))


def _apply_sent(ledger: Ledger, client: object, index: object) -> None:
    ledger.send(_text(client), _number(index))


def _apply_delivered(ledger: Ledger, client: object, indices: object) -> None:
    if not isinstance(indices, list):
        raise WireError('not a list of batches')
    ledger.acknowledge(_text(client), map(_number, indices))


def _apply_returned(ledger: Ledger, client: object, ranges: object) -> None:
    ledger.take_back(_text(client), from_ranges(ranges))


def _apply_lost(ledger: Ledger, client: object) -> None:
    # Until when, the server that continues decides.
    ledger.lose(_text(client), float('inf'))


def _apply_left(ledger: Ledger, client: object) -> None:
    ledger.end(_text(client), 'left')


def _apply_gone(ledger: Ledger, client: object) -> None:
    ledger.end(_text(client), 'gone')


def _apply_end(ledger: Ledger, length: object, state: object) -> None:
    ledger.end_pipeline(
        _number(length), None if state is None else _state(state))


def _apply_base(ledger: Ledger, index: object, state: object) -> None:
    ledger.begin_at(_number(index), _state(state))


def _apply_checkpoint(ledger: Ledger, index: object, steps: object) -> None:
    ledger.checkpoints.add(_number(index), _steps(steps))


def _apply_rebase(ledger: Ledger, state: object) -> None:
    ledger.checkpoints.rebase(_state(state))


def _apply_account(ledger: Ledger, client: object, rank: object,
                   before: object, sent: object, delivered: object,
                   pending: object, is_present: object,
                   has_left: object) -> None:
    account = Account(_text(client), _rank(rank), _text(before))
    account.sent = from_ranges(sent)
    account.delivered = from_ranges(delivered)
    account.pending = from_ranges(pending)
    account.is_present = bool(is_present)
    account.has_left = bool(has_left)
    ledger.accounts[account.client] = account


def _apply_proven(ledger: Ledger, ranges: object) -> None:
    ledger.delivered = from_ranges(ranges)


_HANDLERS: dict[str, Callable[..., None]] = {
    'join': _apply_join, 'sent': _apply_sent,
    'delivered': _apply_delivered,
    'returned': _apply_returned, 'lost': _apply_lost,
    'left': _apply_left,
    'gone': _apply_gone, 'end': _apply_end,
    'base': _apply_base, 'checkpoint': _apply_checkpoint,
    'rebase': _apply_rebase, 'account': _apply_account,
    'proven': _apply_proven}
