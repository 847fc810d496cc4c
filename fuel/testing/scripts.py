"""Import the script that calls the checks into another process.

A script without ``if __name__ == '__main__':`` calls its checks whenever it is
run. The other process needs the functions and classes that the script defines.
So it runs the script up to the check that the first process is making, and
stops there.
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

    `path`: path of the script; None if the program is not a script.
    `num_checks`: number of checks that the program has begun.
    """

    path: str | None
    num_checks: int


class _Reached(BaseException):
    """Ends the import of a script at the check that the caller is making."""


class _State(threading.local):
    """Checks that a thread has begun.

    `num_checks`: number of checks that the thread has begun.
    `depth`: number of checks that are running, one inside the other.
    `last`: number of the check at which the import of a script ends; None
        if no script is being imported.
    """

    num_checks = depth = 0
    last: int | None = None


_state = _State()


@contextmanager
def checking() -> Iterator[bool]:
    """Count a check, unless another check calls it.

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
    """Run a script as a module, up to the check that its process is making.

    Returns: whether the run ended at that check, before the end of the
        script.
    """
    if main.path is None:
        return False
    try:
        code = compile(Path(main.path).read_bytes(), main.path, 'exec')
    except OSError:
        # The script is in an archive, or was typed at a prompt.
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
