"""A progress bar on a terminal, perhaps two lines anywhere else."""
from __future__ import annotations

import io
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


# Seconds after which a task that is only shown if it is long is shown.
DELAY = 2.


class Bar:
    """The progress of a long task; may be shared by threads.

    `maxval`: None if the last value is unknown.
    `start`: returns what shows the progress, None if nothing does.
    `delay`: seconds after which the next progress is shown. Default: what
        shows it is there from the beginning.
    """

    def __init__(self, maxval: int | None, start: Callable[[Bar], Any],
                 delay: float | None = None) -> None:
        self.value = 0
        self.maxval = maxval
        self._start = start
        self._shown: Any = None
        self._due = float('inf')
        self._lock = threading.Lock()
        self._cancelled = False
        if delay is None:
            self._shown = start(self)
        else:
            self._due = time.monotonic() + delay

    def update(self, value: int) -> None:
        """Show `value`, cut at the maximum, which a server may have stated
        wrongly."""
        with self._lock:
            if self._cancelled:
                raise InterruptedError('cancelled')
            if self.maxval is not None:
                value = min(value, self.maxval)
            self.value = value
            if time.monotonic() >= self._due:
                self._due = float('inf')
                self._shown = self._start(self)
            if self._shown is not None:
                self._shown.update(value)

    def cancel(self) -> None:
        """Make the threads that share this fail when they go on."""
        with self._lock:
            self._cancelled = True

    def advance(self, steps: int) -> None:
        """Show `steps` more than before."""
        self.update(self.value + steps)

    def finish(self, dirty: bool = False) -> None:
        """End the display; `dirty`: the task was not finished."""
        if self._shown is not None:
            self._shown.finish(dirty=dirty)


class _Screen:
    """Standard output, or error, as it is now; some programs have none.

    The drawing library takes ``sys.stdout`` itself for the one that there
    was when the library was imported, and would write to that.
    """

    def __init__(self, name: str) -> None:
        self._stream = getattr(sys, name) or io.StringIO()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def is_notebook(self) -> bool:
        """Return whether this is the output of a cell of a notebook."""
        return type(self._stream).__module__.startswith('ipykernel.')

    def is_drawn_on(self) -> bool:
        """Return whether a bar is shown here, as opposed to lines."""
        return self.is_notebook() or bool(self._stream.isatty())


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
    """A line at the start and one at the end, instead of a bar."""

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

    def update(self, value: int) -> None:
        """Print nothing between the two lines."""

    def finish(self, dirty: bool) -> None:
        """Print the last line."""
        if dirty:
            self._report('stopped at ')
        else:
            self._report('', f' in {time.monotonic() - self._start:.1f} s')


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
    screen = _Screen('stderr' if delay else 'stdout')

    def start(bar: Bar) -> Any:
        if screen.is_drawn_on():
            return _draw(label, maxval, in_bytes, screen)
        return _Lines(label, bar, ' bytes' if in_bytes else '', screen) if (
            in_lines or delay) else None

    bar = Bar(maxval, start, DELAY if delay else None)
    try:
        yield bar
    except BaseException:
        bar.finish(dirty=True)
        raise
    bar.finish()
