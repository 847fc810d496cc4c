"""The journal of a server: a file with its ledger, from which the next server
resumes.

A journal is a text file. Each line has eight digits of CRC-32, a space, and an
event in JSON. The server writes a line before it sends the message that the
line records, by one call and without a buffer. So the lines survive if the
process is killed. The server does not sync them to the disk, so a crash of the
host may lose some.
"""
from __future__ import annotations

import io
import json
import logging
import os
import socket
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path

from fuel.epochs.state_delta import Changes
from fuel.exceptions import ServerError
from fuel.server.ledger import SHARINGS, Account, Event, Ledger, Recorder
from fuel.typing import State
from fuel.utils.lockfile import NO_FOLLOW
from fuel.wire.header import WireError
from fuel.wire.index_sets import from_ranges
from fuel.utils.remote_errors import notes_of

log = logging.getLogger(__name__)

FORMAT = 1
SWITCH = ('journal=False, fuel-server --no-journal or the setting '
          'server_journal: off (FUEL_SERVER_JOURNAL)')

# The file is rewritten when it has more than `_SMALL` bytes, and more than
# `_GROWTH` times the bytes that it had after it was last rewritten.
_SMALL = 1 << 16
_GROWTH = 4
# A file of more bytes is not a journal.
_LARGEST = 1 << 28


def default_path(setting: str, host: str, port: int) -> Path | None:
    """Return the path of the journal of a server; None for no journal."""
    if setting == 'off' or not port:
        return None
    name = host.replace('*', 'all').replace(':', '-').replace('/', '-')
    return Path(setting) / f'{socket.gethostname()}-{name}-{port}.journal'


def pack(event: Event) -> bytes:
    """Return the line that records an event."""
    text = json.dumps(event, separators=(',', ':')).encode()
    return b'%08x %b\n' % (zlib.crc32(text), text)


def unpack(line: bytes) -> Event:
    """Return the event in a line; raise WireError if the line is damaged."""
    digits, _, text = line.partition(b' ')
    if line[-1:] != b'\n' or b'%08x' % zlib.crc32(text[:-1]) != digits:
        raise WireError('a line is damaged')
    try:
        event = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise WireError(f'a line is not JSON: {error}') from None
    if not isinstance(event, list) or not event:
        raise WireError('a line is not a valid event')
    return event


def read_events(lines: Iterable[bytes]) -> tuple[str, Ledger | None]:
    """Return the run in a journal's lines, and the ledger of its last
    epoch."""
    events: list[Event] = []
    broken: WireError | None = None
    for line in lines:
        if broken is not None:
            raise broken
        try:
            events.append(unpack(line))
        except WireError as error:
            broken = error
    if not events or events[0][:2] != ['run', FORMAT] \
            or len(events[0]) != 3 or not isinstance(events[0][2], str):
        raise WireError(f'not a journal of format {FORMAT}')
    ledger: Ledger | None = None
    try:
        for event in events[1:]:
            if event[0] == 'epoch':
                ledger = _begin(event, lambda event: None)
            elif ledger is None:
                raise WireError('an event before an epoch')
            else:
                _apply(ledger, event)
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        raise WireError(f'an event that no ledger records: {error}') from None
    return events[0][2], ledger


def _begin(event: Event, record: Recorder) -> Ledger:
    """Return the ledger of a new epoch, from the event that begins it."""
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


def _steps(value: object) -> Changes:
    if not isinstance(value, list) or not all(
            isinstance(step, list) and len(step) == 2
            and isinstance(step[0], list) for step in value):
        raise WireError('not a list of changes')
    return value


def _numbers(value: object) -> list[int]:
    if not isinstance(value, list):
        raise WireError('not a list of batches')
    return [_number(index) for index in value]


def _apply(ledger: Ledger, event: Event) -> None:
    """Check one event of a journal, and apply it to a ledger."""
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


# The method that applies each event, and the checks of its fields.
_EVENTS: dict[str, tuple[Callable[..., object], ...]] = {
    'join': (Ledger.join, _text, _rank, _text, from_ranges),
    'sent': (Ledger.send, _text, _number),
    'delivered': (Ledger.acknowledge, _text, _numbers),
    'returned': (Ledger.take_back, _text, from_ranges),
    # The server that resumes the epoch sets the deadline.
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


class Journal:
    """A file of events, which one server has open.

    `found`: the run and the epoch in the file of a former server; None after
        :meth:`begin` or :meth:`set_aside`.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.found: tuple[str, Ledger] | None = None
        self._run = ''
        self._descriptor = -1
        self._size = 0
        self._limit = _SMALL
        self._ledger: Ledger | None = None
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._open()
            self._read()
        except OSError as error:
            self.close()
            raise self._failure(error) from error

    def _open(self) -> None:
        self._descriptor = os.open(
            self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC,
            0o600)
        try:
            _lock(self._descriptor)
        except OSError as error:
            error.add_note('another server uses it')
            raise
        if not os.path.samestat(os.fstat(self._descriptor),
                                os.stat(self.path)):
            # Another server has replaced the file after it was opened, and
            # before it was locked.
            raise OSError('another server uses it')

    def _read(self) -> None:
        # Read the file through this descriptor: closing another descriptor of
        # the file would release the lock.
        size = os.fstat(self._descriptor).st_size
        if not size:
            return
        try:
            if size > _LARGEST:
                raise WireError(f'{size} bytes are too many')
            run, ledger = read_events(io.BytesIO(
                os.pread(self._descriptor, size, 0)))
        except WireError as error:
            log.warning('the journal %s cannot be continued: %s', self.path,
                        error)
            self.set_aside()
            return
        if ledger is not None and ledger.checkpoints:
            self.found = run, ledger

    def set_aside(self) -> None:
        """Rename the file of the former server, whose epoch is not resumed."""
        self.found = None
        aside = self.path.with_suffix('.old')
        log.warning('a new run begins; the journal of the former one is '
                    'now %s', aside)
        with suppress(FileNotFoundError):
            os.replace(self.path, aside)

    def begin(self, run: str, ledger: Ledger) -> None:
        """Replace the file's content by an epoch, and record its events from
        now on."""
        self.found = None
        self._run, self._ledger = run, ledger
        if ledger.checkpoints:
            ledger.record = self.record
        # Without states, no later server could resume.
        self._rewrite()

    def record(self, event: Event) -> None:
        """Append an event to the file."""
        line = pack(event)
        try:
            if os.write(self._descriptor, line) != len(line):
                raise OSError('the file took a part of a line only')
        except OSError as error:
            raise self._failure(error) from error
        self._size += len(line)
        if self._size > self._limit:
            self._rewrite()

    def _rewrite(self) -> None:
        """Replace the file, in one step, by one without outdated records."""
        assert self._ledger is not None
        lines = b''.join(map(pack, [
            ['run', FORMAT, self._run],
            *(self._ledger.snapshot() if self._ledger.checkpoints else ())
        ]))
        temporary = self.path.with_suffix('.new')
        try:
            descriptor = os.open(
                temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
                | os.O_CLOEXEC | NO_FOLLOW, 0o600)
            try:
                _lock(descriptor)
                if os.write(descriptor, lines) != len(lines):
                    raise OSError('the file took a part of the lines only')
                os.replace(temporary, self.path)
            except BaseException:
                os.close(descriptor)
                raise
        except OSError as error:
            raise self._failure(error) from error
        os.close(self._descriptor)
        self._descriptor = descriptor
        self._size = len(lines)
        self._limit = max(_SMALL, _GROWTH * self._size)

    def _failure(self, error: OSError) -> ServerError:
        notes = ''.join(f' ({note})' for note in notes_of(error))
        return ServerError(
            f'the journal {self.path} cannot be written: {error}{notes}. '
            'Without it a server that is killed would lose or repeat '
            'batches, so none is served. Put it elsewhere by journal=PATH, '
            f'or switch it off by {SWITCH}')

    def close(self) -> None:
        """Close the file, which remains for the next server."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _lock(descriptor: int) -> None:
    """Lock a file against other servers; OSError if another one has locked
    it."""
    # Windows has no such module, and Fuel's server does not run there.
    from fcntl import LOCK_EX, LOCK_NB, lockf
    lockf(descriptor, LOCK_EX | LOCK_NB)
