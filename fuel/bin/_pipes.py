"""Commands whose output somebody stops reading, or that are interrupted."""
import functools
import os
import sys
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ['pipe_friendly']

F = TypeVar('F', bound=Callable[..., Any])
# What a shell says of a program that a signal has ended.
CLOSED_PIPE = 128 + 13
INTERRUPTED = 128 + 2


def pipe_friendly(main: F) -> F:
    """Make a command end quietly if its output is a pipe that somebody
    closed, as ``head`` does, and with one line if it is interrupted."""
    @functools.wraps(main)
    def quiet(*args: Any, **kwargs: Any) -> Any:
        try:
            try:
                return main(*args, **kwargs)
            finally:
                if sys.stdout is not None:
                    sys.stdout.flush()
        except BrokenPipeError:
            # The interpreter flushes again when it ends.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)
            sys.exit(CLOSED_PIPE)
        except KeyboardInterrupt:
            print('interrupted', file=sys.stderr)
            sys.exit(INTERRUPTED)
    return quiet  # type: ignore[return-value]
