"""Run the tests on copies of the package, with a fault and without."""
import contextlib
import importlib.util
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from queue import SimpleQueue

import fuel

ROOT = Path(__file__).parents[2]

#: Seconds without any output after which a run hangs. A test that hangs ends
#: long before, by its own limit; this is for what hangs while it is imported.
STALLED = 900

#: Seconds that a test may take; the machine may be busy.
LIMIT = 300


class Copies:
    """Copies of the package and of its tests, one for each process."""

    def __init__(self, folder, count):
        self.free = SimpleQueue()
        # Tests that fail without a fault, here and now.
        self.failing = set()
        # Some tests read files as another user.
        Path(folder).chmod(0o755)
        for number in range(count):
            copy = Path(folder, f'copy-{number}')
            shutil.copytree(
                Path(fuel.__file__).parent, copy / 'fuel',
                ignore=shutil.ignore_patterns('__pycache__', '*.c'))
            shutil.copytree(ROOT / 'tests', copy / 'tests',
                            ignore=shutil.ignore_patterns('__pycache__'))
            for name in ('pyproject.toml', 'bin', 'docs', 'benchmarks',
                         'examples'):
                (copy / name).symlink_to(ROOT / name)
            self.free.put(copy)

    def attempt(self, path, code, tests):
        """Return the test that notices other code in a file, or None."""
        copy = self.free.get()
        try:
            return self._first_notice(copy, copy / path, code, tests)
        finally:
            self.free.put(copy)

    def _first_notice(self, copy, file, code, tests):
        """Return the first test that fails, does so again alone, and passes
        without the fault.

        So a test that fails because the machine is busy notices nothing, and
        the tests behind it are tried.
        """
        ignored = set(self.failing)
        while True:
            with changed(file, code):
                failed = run_closest_first(copy, tests, ignored)
                if failed is None or '::' not in failed:
                    # Nothing failed; or a file cannot be imported, or the
                    # run itself ended, which happens again if it is right.
                    return failed and run_tests(copy, tests, ignored)
                again = run_tests(copy, [failed])
            if again is not None:
                if run_tests(copy, [failed]) is None:
                    return failed
                self.failing.add(failed)
                print(f'{failed} fails without a fault', flush=True)
            ignored.add(failed)
            # Those before it have passed.
            place = failed.partition('::')[0].removeprefix('tests/')
            tests = tests[tests.index(place):]


@contextlib.contextmanager
def changed(file, code):
    """Put other code into a file for a while."""
    original = file.read_text('utf-8')
    compiled = Path(importlib.util.cache_from_source(file))
    try:
        # Its size and its time may be the same.
        compiled.unlink(missing_ok=True)
        file.write_text(code, 'utf-8')
        yield
    finally:
        file.write_text(original, 'utf-8')
        compiled.unlink(missing_ok=True)


def run_closest_first(copy, tests, ignored):
    """Return what fails first, or None if all tests pass.

    Most faults are noticed by the closest files, and to collect all of them
    takes longer than to run these.
    """
    for start, stop in itertools.pairwise((0, 2, 8, max(8, len(tests)))):
        failed = tests[start:stop] and run_tests(
            copy, tests[start:stop], ignored)
        if failed:
            return failed
    return None


def run_tests(copy, tests, ignored=()):
    """Return what fails first, or None if all tests pass.

    That is the id of a test or of a file, or else the end of what was printed.
    """
    cache = copy / 'cache'
    shutil.rmtree(cache, ignore_errors=True)
    command = [
        sys.executable, '-P', '-m', 'pytest', '-c', copy / 'pyproject.toml',
        '--rootdir', copy, '-x', '-q', '--tb=no', '-o', 'addopts=', '-o',
        f'cache_dir={cache}', '--import-mode=importlib', '-o',
        f'pythonpath={copy / "tests"}', '-o', f'timeout={LIMIT}',
        *[f'--deselect={test}' for test in sorted(ignored)],
        *[f'{copy}/tests/{test.removeprefix("tests/")}' for test in tests]]
    environment = {**os.environ, 'PYTHONPATH': str(copy),
                   'FUEL_TEST_SEED': '1'}
    with tempfile.TemporaryFile('w+') as output, subprocess.Popen(
            command, cwd=copy, env=environment, stdout=output,
            stderr=subprocess.STDOUT, start_new_session=True) as process:
        try:
            status = wait(process, output)
        finally:
            # End its children, too, which it may have left behind.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        output.seek(0)
        text = output.read()
    # 5: what would have been tried has been deselected.
    if status in (0, 5):
        return None
    record = cache / 'v' / 'cache' / 'lastfailed'
    failed = json.loads(record.read_text('utf-8')) if record.exists() else ()
    return next(iter(failed), f'the run ended: {text[-300:].strip()}')


def wait(process, output):
    """Return the status of a process; end one that prints nothing more."""
    size = -1
    while size != (size := os.fstat(output.fileno()).st_size):
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(STALLED)
    return -1
