"""A progress bar on a terminal, and nothing anywhere else."""
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Bar:
    """Tells how far a long task has come; may be shared by threads.

    Parameters
    ----------
    bar : progressbar.ProgressBar or None
        What draws. None draws nothing.
    maxval : int or None
        The last value. None means that it is unknown.

    """

    def __init__(self, bar: Any, maxval: int | None) -> None:
        self.value = 0
        self.maxval = maxval
        self._bar = bar
        self._lock = threading.Lock()
        self._cancelled = False

    def update(self, value: int) -> None:
        """Show `value`, cut at the maximum: a server's word about a length
        is no reason to fail."""
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
def progress(label: str, maxval: Any = None,
             in_bytes: bool = False) -> Iterator[Bar]:
    """Show how far a task has come while the context is entered.

    Parameters
    ----------
    label : str
        What the line begins with.
    maxval : int, optional
        Number of steps, or of bytes. Anything but a positive integer means
        that it is not known.
    in_bytes : bool, optional
        Whether steps are bytes. Default False.

    Yields
    ------
    Bar
        Draws on standard output if that is a terminal.

    """
    if isinstance(maxval, bool) or not isinstance(maxval, int) or maxval < 1:
        maxval = None
    drawn = None
    if sys.stdout is not None and sys.stdout.isatty():
        drawn = _draw(label, maxval, in_bytes)
    bar = Bar(drawn, maxval)
    try:
        yield bar
    except BaseException:
        if drawn is not None:
            drawn.finish(dirty=True)
        raise
    if drawn is not None:
        drawn.finish()
