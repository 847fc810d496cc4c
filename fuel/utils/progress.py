"""A progress bar on a terminal, perhaps two lines anywhere else."""
from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any


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
    """Standard output as it is now.

    The drawing library takes ``sys.stdout`` itself for the one that there
    was when the library was imported, and would write to that.
    """

    def __init__(self) -> None:
        self._stream = sys.stdout

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _draw(label: str, maxval: int | None, in_bytes: bool) -> Any:
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
        widgets=widgets, fd=_Screen(),
        max_value=pb.UnknownLength if maxval is None else maxval).start()


@contextmanager
def _lines(label: str, bar: Bar, unit: str) -> Iterator[None]:
    """Print a line at the start and one at the end."""
    def report(what: str, end: str = '') -> None:
        if sys.stdout is not None:
            of = '' if bar.maxval is None else f' of {bar.maxval}'
            sys.stdout.write(f'{label}: {what}{bar.value}{of}{unit}{end}\n')
            sys.stdout.flush()

    start = time.monotonic()
    report('')
    try:
        yield
    except BaseException:
        report('stopped at ')
        raise
    report('', f' in {time.monotonic() - start:.1f} s')


@contextmanager
def progress(label: str, maxval: object = None,
             in_bytes: bool = False, in_lines: bool = False
             ) -> Iterator[Bar]:
    """Show how far a task has come while the context is entered.

    `maxval`: number of steps, or of bytes. Anything but a positive integer
        means that it is not known.
    `in_lines`: whether to print two lines where there is no terminal: when the
        context is entered and when it is left. Default False.
    """
    if isinstance(maxval, bool) or not isinstance(maxval, int) or maxval < 1:
        maxval = None
    if sys.stdout is None or not sys.stdout.isatty():
        bar = Bar(None, maxval)
        with (_lines(label, bar, ' bytes' if in_bytes else '')
              if in_lines else nullcontext()):
            yield bar
        return
    drawn = _draw(label, maxval, in_bytes)
    bar = Bar(drawn, maxval)
    try:
        yield bar
    except BaseException:
        drawn.finish(dirty=True)
        raise
    drawn.finish()
