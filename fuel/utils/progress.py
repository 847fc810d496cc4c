"""Show progress: in a bar on a terminal, or in two lines elsewhere."""
from __future__ import annotations

import io
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


# Seconds after which the progress of a task with `delay` is shown.
DELAY = 2.


class Bar:
    """Progress of a long task, which threads may share.

    `maxval`: the last value, None if it is unknown.
    `start`: returns the object that shows the progress, None if it is not
        shown.
    `delay`: seconds before the progress is shown. By default it is shown from
        the beginning.
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
        """Show a value, at most the maximum.

        A value may be larger, since a server may report a wrong maximum.
        """
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
        """Let the next update raise InterruptedError, in all threads that
        share this object."""
        with self._lock:
            self._cancelled = True

    def advance(self, steps: int) -> None:
        """Add `steps` to the value that is shown."""
        self.update(self.value + steps)

    def finish(self, dirty: bool = False) -> None:
        """End the display.

        `dirty`: whether the task was not finished.
        """
        if self._shown is not None:
            self._shown.finish(dirty=dirty)


class _Screen:
    """The present standard output or standard error; some programs have none.

    If the drawing library is given ``sys.stdout`` itself, it writes to the
    stream that was there when the library was imported.
    """

    def __init__(self, name: str) -> None:
        self._stream = getattr(sys, name) or io.StringIO()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def is_notebook(self) -> bool:
        """Return whether this is the output of a cell of a notebook."""
        return type(self._stream).__module__.startswith('ipykernel.')

    def is_drawn_on(self) -> bool:
        """Return whether progress is shown in a bar here, not in lines."""
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
    """Return a context that shows the progress of a task.

    `label`: name of the task.
    `maxval`: number of steps, or of bytes. Any value other than a positive
        integer means that the number is not known.
    `in_bytes`: whether the steps are bytes.
    `in_lines`: whether to print two lines if there is no terminal: when the
        context is entered and when it is left. Defaults to False.
    `delay`: whether to show the progress only of tasks that take `DELAY`
        seconds or more, on the standard error, in a bar or in lines. For
        functions that most programs call on small data.
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
