"""Commands that are interrupted, whose pipe is closed, or misconfigured."""
import functools
import os
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from fuel.exceptions import ConfigurationError

F = TypeVar('F', bound=Callable[..., Any])
# What a shell says of a program that a signal has ended.
CLOSED_PIPE = 128 + 13
INTERRUPTED = 128 + 2
USAGE = 2


def pipe_friendly(program: str) -> Callable[[F], F]:
    """Make a command end silently if its output is a pipe that was closed,
    and with one line if it is interrupted or a setting is invalid."""
    def decorate(main: F) -> F:
        @functools.wraps(main)
        def quiet(*args: object, **kwargs: object) -> object:
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
            except ConfigurationError as error:
                print(f'{program}:', *str(error).split(), file=sys.stderr)
                sys.exit(USAGE)
            except KeyboardInterrupt:
                print('interrupted', file=sys.stderr)
                sys.exit(INTERRUPTED)
        # The decorated function keeps its signature.
        return quiet  # type: ignore[return-value]
    return decorate
