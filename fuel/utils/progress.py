"""A progress bar on a terminal, perhaps two lines anywhere else."""
from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


# Seconds after which a task that is only shown if it is long is shown.
DELAY = 2.


class Bar:
    """The progress of a long task, drawn by `bar` unless that is None; may
    be shared by threads. `maxval` is None if the last value is unknown."""

    def __init__(self, bar: Any, maxval: int | None) -> None:
        self.value = 0
        self.maxval = maxval
        self._bar = bar
        self._lock = threading.Lock()
        self._cancelled = False

    def update(self, value: int) -> None:
        """Show `value`, cut at the maximum, which a server may have stated
        wrongly."""
        with self._lock:
            if self._cancelled:
                raise InterruptedError('cancelled')
            if self.maxval is not None:
                value = min(value, self.maxval)
            self.value = value
            if self._bar is not None:
                self._bar.update(value)

    def cancel(self) -> None:
        """Make the threads that share this fail when they go on."""
        with self._lock:
            self._cancelled = True

    def advance(self, steps: int) -> None:
        """Show `steps` more than before."""
        self.update(self.value + steps)


class _Screen:
    """Standard output, or error, as it is now.

    The drawing library takes ``sys.stdout`` itself for the one that there
    was when the library was imported, and would write to that.
    """

    def __init__(self, name: str = 'stdout') -> None:
        self._stream = getattr(sys, name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> None:
        """Write, if there is something to write to."""
        if self._stream is not None:
            self._stream.write(text)

    def flush(self) -> None:
        """Flush, if there is something to write to."""
        if self._stream is not None:
            self._stream.flush()

    def is_notebook(self) -> bool:
        """Return whether this is the output of a cell of a notebook."""
        return type(self._stream).__module__.startswith('ipykernel.')

    def is_drawn_on(self) -> bool:
        """Return whether a bar is shown here, as opposed to lines."""
        return self._stream is not None and (
            self.is_notebook() or bool(self._stream.isatty()))


def _draw(label: str, maxval: int | None, in_bytes: bool,
          screen: _Screen) -> Any:
    import progressbar
    pb: Any = progressbar  # only partly annotated
    speed = (pb.FileTransferSpeed() if in_bytes else
             pb.FileTransferSpeed(unit='', prefixes=('', 'k', 'M', 'G')))
    if maxval is None:
        widgets = [f'{label}: ', pb.Timer(), ' ', pb.DataSize(), ' ', speed]
    else:
        widgets = [f'{label}: ', pb.Percentage(), ' ',
                   pb.Bar(marker='=', left='[', right=']'), ' ', pb.ETA(),
                   ' ', speed]
    return pb.ProgressBar(
        widgets=widgets, fd=screen, **(
            {'is_terminal': True, 'line_breaks': False}
            if screen.is_notebook() else {}),
        max_value=pb.UnknownLength if maxval is None else maxval).start()


class _Lines:
    """A line at the start and one at the end, in the place of a bar."""

    def __init__(self, label: str, bar: Bar, unit: str,
                 screen: _Screen) -> None:
        self._label, self._bar, self._unit = label, bar, unit
        self._screen = screen
        self._start = time.monotonic()
        self._report('')

    def _report(self, what: str, end: str = '') -> None:
        of = '' if self._bar.maxval is None else f' of {self._bar.maxval}'
        self._screen.write(
            f'{self._label}: {what}{self._bar.value}{of}{self._unit}{end}\n')
        self._screen.flush()

    def finish(self, dirty: bool = False) -> None:
        """Print the last line; `dirty`: the task was not finished."""
        if dirty:
            self._report('stopped at ')
        else:
            self._report('', f' in {time.monotonic() - self._start:.1f} s')


class _LateBar(Bar):
    """A bar that is drawn when a task turns out to take long."""

    def __init__(self, maxval: int | None,
                 start: Callable[[Bar], _Lines | None]) -> None:
        super().__init__(None, maxval)
        self._start = start
        self._due = time.monotonic() + DELAY
        self.lines: _Lines | None = None

    def update(self, value: int) -> None:
        """Show `value`, if it is time to show something."""
        super().update(value)
        if self._bar is None and self.lines is None and (
                time.monotonic() >= self._due):
            self.lines = self._start(self)

    def draw(self, drawn: Any) -> None:
        """Take a drawn bar."""
        self._bar = drawn

    def finish(self, dirty: bool = False) -> None:
        """End what is shown, if anything is."""
        shown = self._bar or self.lines
        if shown is not None:
            shown.finish(dirty=dirty)


@contextmanager
def progress(label: str, maxval: object = None,
             in_bytes: bool = False, in_lines: bool = False,
             delay: bool = False) -> Iterator[Bar]:
    """Show how far a task has come while the context is entered.

    `maxval`: number of steps, or of bytes. Anything but a positive integer
        means that it is not known.
    `in_lines`: whether to print two lines where there is no terminal: when the
        context is entered and when it is left. Default False.
    `delay`: whether to show nothing of a task that takes less than `DELAY`
        seconds, and to show others on the standard error, in a bar or in
        lines. For functions that most programs call on small data.
    """
    if isinstance(maxval, bool) or not isinstance(maxval, int) or maxval < 1:
        maxval = None
    unit = ' bytes' if in_bytes else ''
    screen = _Screen('stderr' if delay else 'stdout')
    bar: Any
    shown: Any
    if delay:
        def start(bar: Any) -> _Lines | None:
            if not screen.is_drawn_on():
                return _Lines(label, bar, unit, screen)
            bar.draw(_draw(label, maxval, in_bytes, screen))
            return None

        bar = shown = _LateBar(maxval, start)
    elif screen.is_drawn_on():
        shown = _draw(label, maxval, in_bytes, screen)
        bar = Bar(shown, maxval)
    else:
        bar = Bar(None, maxval)
        shown = _Lines(label, bar, unit, screen) if in_lines else None
    try:
        yield bar
    except BaseException:
        if shown is not None:
            shown.finish(dirty=True)
        raise
    if shown is not None:
        shown.finish()
