"""A page about a server, which is updated every second."""
from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from typing import NamedTuple, TextIO

from fuel.client.measures import ServerStatus, take_status
from fuel.exceptions import ServerError
from fuel.profiling.measurements import StageMeasurements
from fuel.wire import WireError
from fuel.wire.messages import ClientStatus, ask_status

# Seconds between two pages, and seconds within which a server must answer.
_PAGE_SECONDS, _STATUS_SECONDS = 1., 2.
# Names of colours of lines, and their escape sequences.
HEAD, SLOW, PALE = 'head', 'slow', 'pale'
_COLOURS = {HEAD: '\x1b[1m', SLOW: '\x1b[33m', PALE: '\x1b[2m'}
# Names and widths of columns; the first column gets the rest of the line.
_STAGES = {'stage': 25, 'runs in': 13, 'items': 9, 'work': 7, 'stalls': 7,
           'room': 7, 'ready': 11}
_CLIENTS = {'client': 22, 'rank': 6, 'batches': 10, 'rate': 10, 'lag': 10,
            'now': 9, 'since': 10}
# These columns are text, aligned at the left.
_LEFT = ('stage', 'runs in', 'client')


class Line(NamedTuple):
    """A line of a page, and the name of its colour."""

    text: str
    look: str = ''


class TimedStatus(NamedTuple):
    """A status of a server, and the time of its receipt, in seconds."""

    status: ServerStatus
    time: float


def page(now: TimedStatus, before: TimedStatus | None, width: int = 80,
         height: int = 1000) -> list[Line]:
    """Return the lines of a page about a server.

    `before`: the status on the previous page; None for the first page, which
        is about the whole time since the server began.
    """
    seconds = 0. if before is None else now.time - before.time
    stages = list(_since(now, before))
    slowest = max(stages, key=lambda stage: stage.stall_seconds, default=None)
    if slowest is not None and not slowest.stall_seconds:
        slowest = None
    processes = {stage.path: stage.processes for stage in stages}
    rows = [(_row_of_stage(stage, processes.get(stage.path[:-1], 1), seconds),
             stage is slowest) for stage in stages]
    clients = now.status.clients
    known = {} if before is None else {
        one.client: one for one in before.status.clients}
    # The lines above the clients, and the line with the cursor, need room.
    room = height - len(rows) - 8
    room = max(1, room - (len(clients) > room))
    lines = [*_head(now, before, seconds, slowest), Line(''),
             *_table(_STAGES, rows, width), Line(''),
             *_table(_CLIENTS, [
                 (_row_of_client(one, known.get(one.client), now, seconds),
                  False) for one in clients[:room]], width)]
    if len(clients) > room:
        lines.append(Line(f'and {len(clients) - room} more clients', PALE))
    return [Line(_fit(line.text, width), line.look)
            for line in lines[:max(1, height - 1)]]


def _since(now: TimedStatus, before: TimedStatus | None,
           ) -> Iterator[StageMeasurements]:
    """Yield the measurements of the stages since an earlier status, or since
    the server began."""
    known = {} if before is None else {
        (stage.path, stage.name): stage for stage in before.status.stages}
    for stage in now.status.stages:
        last = known.get((stage.path, stage.name))
        yield stage if last is None else stage - last


def _head(now: TimedStatus, before: TimedStatus | None, seconds: float,
          slowest: StageMeasurements | None) -> list[Line]:
    numbers = now.status.numbers
    clock = time.strftime('%H:%M:%S', time.localtime(now.time))
    head = f'{numbers.get("address", "")}   pid {numbers.get("pid", "")}'
    lines = [Line(f'{head:<71} {clock}', HEAD), Line(
        f'epoch {numbers.get("epoch", 0)}, {numbers.get("batches", 0)} '
        f'batches, {_size(numbers.get("bytes", 0))}, '
        f'{numbers.get("errors", 0)} errors')]
    waits = str(numbers.get('waits for clients', 'no'))
    if waits != 'no':
        lines.append(Line(waits, SLOW))
    elif before is None:
        lines.append(Line('Since the server began:'))
    else:
        made = _growth(now, before, 'batches') / seconds
        sent = _growth(now, before, 'bytes') / seconds
        waited = sum(stage.stall_seconds
                     for stage in _since(now, before)) / seconds
        lines.append(Line(
            f'{made:.0f} batches/s, {_size(sent)}/s; the sender waits '
            f'{min(1., waited):.0%}' + (
                '' if slowest is None else f', most for {slowest.name}')))
    return lines


def _growth(now: TimedStatus, before: TimedStatus, name: str) -> float:
    values = [timed.status.numbers.get(name, 0) for timed in (now, before)]
    first, last = (0 if isinstance(value, str) else value
                   for value in values)
    return max(0., first - last)


def _size(count: float | str) -> str:
    number = 0. if isinstance(count, str) else float(count)
    for unit in ('B', 'kB', 'MB', 'GB'):
        if number < 1000:
            return f'{number:.3g} {unit}'
        number /= 1000
    return f'{number:.1f} TB'


def _row_of_stage(stage: StageMeasurements, processes: int,
                  seconds: float) -> list[str]:
    """Return the cells of a stage, with times as shares of `seconds`."""
    def share(part: float) -> str:
        return f'{part / seconds:.0%}' if seconds else f'{part:.1f} s'
    rate = f'{stage.items / seconds:.0f}/s' if seconds else str(stage.items)
    ready = (f'{stage.queue_items} of {stage.queue_size}'
             if stage.queue_size else '')
    return ['  ' * min(stage.depth, 8) + stage.name, stage.runs_in, rate,
            share(stage.work_seconds / max(1, processes)),
            share(stage.stall_seconds),
            share(stage.room_seconds / max(1, processes)), ready]


def _row_of_client(client: ClientStatus, before: ClientStatus | None,
                   now: TimedStatus, seconds: float) -> list[str]:
    rate = '' if before is None or not seconds else (
        f'{max(0, client.batches - before.batches) / seconds:.1f}/s')
    begun = time.localtime(now.time - client.seconds)
    since = time.strftime(
        '%H:%M:%S' if client.seconds < 86400 else '%d %b', begun)
    state = ('waits' if client.is_waiting else
             'is busy' if client.lag >= client.hwm else '')
    return [client.client, '' if client.rank is None else str(client.rank),
            str(client.batches), rate, f'{client.lag} of {client.hwm}',
            state, since]


def _table(columns: Mapping[str, int], rows: list[tuple[list[str], bool]],
           width: int) -> Iterator[Line]:
    """Yield the lines of a table.

    `columns`: a mapping from the names of columns to their widths.
    `rows`: cells of each row, and whether to highlight it.
    """
    first, *others = columns.values()
    widths = [max(first, width - sum(others) - 1), *others]
    for cells, look in [(list(columns), HEAD), *(
            (cells, SLOW if is_slow else '') for cells, is_slow in rows)]:
        yield Line(''.join(
            f'{_fit(cell, room - 1):{"<" if name in _LEFT else ">"}{room}}'
            for name, cell, room in zip(columns, cells, widths, strict=True)
            ).rstrip(), look)


def _fit(text: str, width: int) -> str:
    """Return a text in ASCII, cut to a number of columns."""
    # Characters outside of ASCII may occupy two columns, or none.
    text = text.encode('ascii', 'backslashreplace').decode()
    return text if len(text) <= width else (text[:width - 2] + '..')[:width]


class Screen:
    """Shows one page after another.

    In a terminal, each page replaces the one before, in colours unless
    NO_COLOR is set. In a file, in a pipe and in a dumb terminal, the pages
    follow each other.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._is_terminal = file.isatty() and os.environ.get(
            'TERM') != 'dumb'
        self._has_colours = self._is_terminal and not os.environ.get(
            'NO_COLOR')
        self._is_first = True

    @property
    def size(self) -> tuple[int, int]:
        """Number of characters in a line, and of lines on a page (int,
        int)."""
        if not self._is_terminal:
            return 80, 1000
        return shutil.get_terminal_size()

    def show(self, lines: list[Line]) -> None:
        """Show a page."""
        text = '\n'.join(self._draw(line) for line in lines)
        if self._is_terminal:
            # The page is drawn over the last one, so that nothing flickers.
            clear = '\x1b[2J' if self._is_first else ''
            self._file.write(f'{clear}\x1b[H{text}\x1b[J\n')
        else:
            self._file.write(f'{text}\n\n')
        self._file.flush()
        self._is_first = False

    def _draw(self, line: Line) -> str:
        text = line.text
        if self._has_colours and line.look:
            text = f'{_COLOURS[line.look]}{text}\x1b[0m'
        return text + ('\x1b[K' if self._is_terminal else '')


def watch(address: str, curve: str | None = None) -> int:
    """Show a page about a server, updated until Ctrl-C; return the exit
    status."""
    screen = Screen(sys.stdout)
    before: TimedStatus | None = None
    gone_since, note = 0., ''
    try:
        while True:
            begin = time.monotonic()
            width, height = screen.size
            try:
                now = TimedStatus(take_status(ask_status(
                    address, _STATUS_SECONDS, curve)), time.time())
            except (ServerError, WireError) as error:
                if before is None:
                    print(error, file=sys.stderr)
                    return 1
                gone_since = gone_since or before.time
                screen.show([
                    Line(_fit(f'No answer since {_clock(gone_since)}: '
                              f'{error}', width), SLOW),
                    *(Line(line.text, PALE)
                      for line in page(before, None, width, height))])
            else:
                if gone_since:
                    note = (f'It did not answer from {_clock(gone_since)} to '
                            f'{_clock(now.time)}.')
                    gone_since = 0.
                if before is not None and (
                        before.status.numbers.get('pid')
                        != now.status.numbers.get('pid')):
                    before = None
                lines = page(now, before, width, height - bool(note))
                screen.show([*lines, *([Line(note, PALE)] * bool(note))])
                before = now
            time.sleep(max(0., begin + _PAGE_SECONDS - time.monotonic()))
    except KeyboardInterrupt:
        # Ctrl-C is the way to end it.
        return 0


def _clock(seconds: float) -> str:
    return time.strftime('%H:%M:%S', time.localtime(seconds))
