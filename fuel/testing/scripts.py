"""The program that calls the checks, imported by another process.

A script without ``if __name__ == '__main__':`` calls a check wherever it is
run. So the other process, which needs what the script defines, runs it up to
the call at which the first process stands, and no further.
"""
from __future__ import annotations

import sys
import threading
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple


class Main(NamedTuple):
    """The program of a process.

    `path`: of the script; None if there is none.
    `num_checks`: number of checks that it has begun.
    """

    path: str | None
    num_checks: int


class _Reached(BaseException):
    """The script has come to the check that is to be continued."""


class _State(threading.local):
    """State of a thread.

    `num_checks`: number of checks that it has begun.
    `depth`: number of them that run inside each other.
    `last`: the check at which a script is left that is imported.
    """

    num_checks = depth = 0
    last: int | None = None


_state = _State()


@contextmanager
def checking() -> Iterator[bool]:
    """Count a check, unless it is part of another.

    Yields: whether to make the check; False while a script is imported.
    """
    if not _state.depth:
        _state.num_checks += 1
        if _state.last is not None:
            if _state.num_checks >= _state.last:
                raise _Reached
            yield False
            return
    _state.depth += 1
    try:
        yield True
    finally:
        _state.depth -= 1


def find_main() -> Main:
    """Return the program of this process."""
    main = vars(sys.modules['__main__'])
    is_script = main.get('__spec__') is None
    return Main(main.get('__file__') if is_script else None,
                _state.num_checks)


@contextmanager
def hiding_main(main: Main) -> Iterator[None]:
    """Hide the script from processes that are spawned within a block."""
    shown = sys.modules['__main__']
    if main.path is not None:
        sys.modules['__main__'] = types.ModuleType('__main__')
    try:
        yield
    finally:
        sys.modules['__main__'] = shown


def import_main(main: Main) -> bool:
    """Run a script up to the check that it has come to, as a module.

    Returns: whether it came to a check, so that what follows was not run.
    """
    if main.path is None:
        return False
    try:
        code = compile(Path(main.path).read_bytes(), main.path, 'exec')
    except OSError:
        # It is in an archive, or was typed.
        return False
    module = types.ModuleType('__mp_main__')
    module.__file__ = main.path
    sys.modules['__main__'] = sys.modules['__mp_main__'] = module
    _state.num_checks, _state.last = 0, main.num_checks
    try:
        exec(code, vars(module))  # noqa: S102 - the script of the user
    except _Reached:
        return True
    finally:
        _state.last = None
    return False
