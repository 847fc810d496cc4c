"""Virtual environments in the checkout, made again when they are stale.

An environment holds the package as a user would install it: built and
copied. For work in the checkout it is linked instead, with the kernels built
in place. It remembers what it was made from (interpreter, requirements,
sources), so that a second run does only what changed. It also keeps the
source distribution and the wheel that it was installed from, which the tests
inspect. All environments share the kernels that were compiled: `setup.py`
takes them from one folder.
"""
import contextlib
import glob
import hashlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OLDEST_PYTHON = (3, 11)
# Folders of the system's own interpreter, which `PATH` may not name.
SYSTEM_FOLDERS = ('/usr/bin', '/usr/local/bin')
# That of a virtual environment is the one that it was made with.
ASK_VERSION = ('import json, os, sys; print(json.dumps(['
               'os.path.realpath(sys._base_executable), '
               '*sys.version_info[:3]]))')
STAMP = 'fuel-environment.json'

# They decide which requirements an environment has.
REQUIREMENT_FILES = ['setup.cfg', 'setup.py', 'pyproject.toml']
BUILD_INPUTS = [*REQUIREMENT_FILES, 'MANIFEST.in', 'README.rst', 'LICENSE',
                'fuel']
GENERATED = ['.c', '.cpp', '.so', '.pyd', '.pyc']
DISTRIBUTIONS = 'fuel-distributions'
KERNELS = '.venv-kernels'
# Of each some 150 kB, the last used: a dozen states of the sources.
MOST_KERNELS = 500
# Seconds between signs of life of a command that prints nothing.
HEARTBEAT = 30


def prepare(name, extras, constraints=None, fresh=False, before=(),
            interpreter=None, editable=False, sources=()):
    """Make an environment with the package and some of its extras, or bring
    it up to date; return its interpreter.

    `name` is the start of its directory's name, to which the version is
    added. `constraints` names a file of pip constraints for all requirements;
    `before` has the arguments of each ``pip install`` that comes before the
    package; `sources` names packages whose source distributions are kept. The
    environment is made anew if it is to be `fresh`, and with an `interpreter`
    other than that of the environment variable PYTHON if one is named. One
    that is `editable` links the checkout, with its kernels built in place.
    One with None as its extras has no package.
    """
    base, version = find_python(
        interpreter or os.environ.get('PYTHON', 'python3'))
    suffix = '-' + Path(constraints).stem if constraints else ''
    directory = ROOT / f'{name}-{version}{suffix}'
    python = directory / (
        'Scripts/python.exe' if os.name == 'nt' else 'bin/python')
    bounds = ['-c', os.path.abspath(constraints)] if constraints else []
    files, inputs = [*REQUIREMENT_FILES, *bounds[1:]], BUILD_INPUTS
    if editable:
        inputs = kernel_sources()
    elif extras is None:
        files = inputs = []
    stamp = {'requirements': digest(files, base, extras, [*before, *sources],
                                    editable),
             'package': digest(inputs)}
    with locked(directory):
        found = read_stamp(directory)
        if fresh or found.get('requirements') != stamp['requirements']:
            say(f'Making {directory.name}: packages are fetched' + (
                ' ...' if extras is None else
                ' and kernels compiled (a few minutes) ...'))
            run(base, '-m', 'venv', '--clear', directory)
            for step in before:
                pip(python, 'install', *bounds, *shlex.split(step))
            if sources:
                pip(python, 'download', '--no-deps', '--no-binary', ':all:',
                    '--dest', directory / 'sources', *sources)
            if extras is not None:
                install(python, base, bounds, extras, editable)
        elif found.get('package') != stamp['package'] or (
                editable and not built_in_place(version)):
            say(f'Installing the package again in {directory.name} ...')
            # A stamp without the package: if this is interrupted, the next
            # run installs it again.
            write_stamp(directory, {**stamp, 'package': None})
            install(python, base, ['--no-deps', '--force-reinstall'], extras,
                    editable)
        write_stamp(directory, stamp)
    return python


def prepare_tools(name, requirements, interpreter=None):
    """Make an environment of tools, without the package, unless it is there;
    return its interpreter."""
    return prepare(name, None, before=[shlex.join(requirements)],
                   interpreter=interpreter)


def find_python(command):
    """Return the path and the ``major.minor`` of an interpreter.

    A command such as ``python3.13`` that is not on the path is also looked
    for among the versions that pyenv installed.
    """
    version = Path(command).name.removeprefix('python')
    for path, numbers in interpreters([command, *of_pyenv(version)]):
        if numbers < OLDEST_PYTHON:
            sys.exit(f'{command} is Python {numbers[0]}.{numbers[1]}, '
                     f'but Fuel needs 3.11 or later: name one in the '
                     f'environment variable PYTHON')
        return path, f'{numbers[0]}.{numbers[1]}'
    sys.exit(f'cannot run {command!r}: name a Python interpreter in the '
             f'environment variable PYTHON')


def find_lowest_python():
    """Return the path and the version of the lowest patch release of the
    oldest Python that Fuel runs on, None if none is found.

    It is looked for on the path, where the system has its own, and among
    the versions that pyenv installed.
    """
    version = '.'.join(map(str, OLDEST_PYTHON))
    commands = [os.path.join(folder, name) for folder in (
        *os.environ['PATH'].split(os.pathsep), *SYSTEM_FOLDERS)
        for name in (f'python{version}', 'python3')]
    found = min(((numbers, path) for path, numbers in interpreters(
        dict.fromkeys([*commands, *of_pyenv(version)]))
        if numbers[:2] == OLDEST_PYTHON), default=None)
    return found and (found[1], '.'.join(map(str, found[0])))


def of_pyenv(version):
    """Return the interpreters of a version that pyenv installed."""
    root = os.environ.get('PYENV_ROOT', os.path.expanduser('~/.pyenv'))
    return sorted(glob.glob(f'{root}/versions/{version}.*/bin/python'))


def interpreters(commands):
    """Yield path and version, as numbers, of the commands that run."""
    for command in commands:
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            path, *numbers = json.loads(subprocess.run(
                [command, '-c', ASK_VERSION], check=True,
                capture_output=True, text=True).stdout)
            yield path, tuple(numbers)


def kernel_sources():
    """Return the files that are compiled, or included in them."""
    return sorted(path for path in (ROOT / 'fuel').rglob('*.p*')
                  if path.suffix in ('.pyx', '.pxd', '.pxi'))


def built_in_place(version):
    """Return whether the checkout has each kernel, for a version of Python."""
    tag = version.replace('.', '')
    return all(any(path.parent.glob(f'{path.stem}.cp*{tag}-*'))
               for path in kernel_sources() if path.suffix == '.pyx')


def install(python, base, options, extras, editable):
    """Install the package from its wheel, or link the checkout; compile the
    kernels that have not been."""
    # Older releases of pip would warn of requirements without pyproject.toml.
    command = ['install', '--use-pep517', *options]
    names, kernels = ','.join(extras), ROOT / KERNELS
    with locked(kernels), variables(FUEL_KEPT_KERNELS=str(kernels)):
        if editable:
            pip(python, *command, '-e', f'{ROOT}[{names}]')
        else:
            wheel = build(base, python.parents[1] / DISTRIBUTIONS)
        for path in sorted(kernels.iterdir(), key=os.path.getmtime)[
                :-MOST_KERNELS]:
            path.unlink()
    if not editable:
        pip(python, *command, f'{wheel}[{names}]')


def build(base, folder):
    """Build a source distribution in a folder, and a wheel from it alone;
    return the wheel."""
    needed = tomllib.loads((ROOT / 'pyproject.toml').read_text('utf-8'))
    tools = prepare_tools(
        '.venv-build', ['build', *needed['build-system']['requires']], base)
    shutil.rmtree(folder, ignore_errors=True)
    with source_tree() as source:
        run(tools, '-m', 'build', '--quiet', '--no-isolation', '--outdir',
            folder, source)
    wheel, = folder.glob('*.whl')
    return wheel


def forget_kernels():
    """Let the next build compile all kernels."""
    with locked(ROOT / KERNELS):
        for path in (ROOT / KERNELS).iterdir():
            path.unlink()


@contextlib.contextmanager
def source_tree():
    """Yield a folder of links to the checkout: building a distribution there
    leaves the checkout as it is."""
    with tempfile.TemporaryDirectory(prefix='fuel-build-') as folder:
        for path in ROOT.iterdir():
            # Setuptools adds to an older list of sources.
            if path.suffix != '.egg-info':
                Path(folder, path.name).symlink_to(path)
        yield folder


@contextlib.contextmanager
def variables(**values):
    """Set environment variables for what is run meanwhile."""
    before = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def pip(python, *arguments):
    """Run pip in an environment."""
    run(python, '-m', 'pip', '--quiet', '--disable-pip-version-check',
        *arguments)


def run(*command):
    """Run a quiet command; end with its status if it fails."""
    if call([str(part) for part in command], quiet=True):
        sys.exit(f'failed: {" ".join(map(str, command))}')


def call(command, quiet=False):
    """Run a command and return its status.

    One that is quiet is reported now and then while it runs. Ctrl-C ends it
    with all that it started, and without their tracebacks: it is in a session
    of its own, which the terminal does not interrupt.
    """
    # One that is raised while a process starts would leave it running.
    interrupts = []
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler):
        signal.signal(signal.SIGINT, lambda *_: interrupts.append(True))
    try:
        process = subprocess.Popen(command, start_new_session=True)
    finally:
        if callable(handler):
            signal.signal(signal.SIGINT, handler)
    began = time.monotonic()
    with process:
        try:
            if interrupts:
                raise KeyboardInterrupt
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    return process.wait(HEARTBEAT if quiet else None)
                say(f'  ... still at it after '
                    f'{round(time.monotonic() - began)} s')
        except BaseException:
            if os.name == 'nt':
                process.kill()
            else:
                os.killpg(process.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            raise


def attend(command, **options):
    """Run a command in the foreground and return its status; leave it time
    after Ctrl-C, which the terminal sends to it as well."""
    with subprocess.Popen(command, **options) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.terminate()
            raise


def say(text):
    """Print progress, at once and in order with the output of commands."""
    print(text, flush=True)


def digest(paths, *texts):
    """Return a hash of texts, and of files with their names."""
    result = hashlib.sha256(json.dumps(texts).encode())
    for top in map(ROOT.joinpath, paths):
        for path in sorted(top.rglob('*')) if top.is_dir() else [top]:
            if path.suffix not in GENERATED and path.is_file():
                result.update(os.path.relpath(path, ROOT).encode())
                result.update(hashlib.sha256(path.read_bytes()).digest())
    return result.hexdigest()


def read_stamp(directory):
    """Return what an environment was made from, nothing if unknown."""
    try:
        return json.loads((directory / STAMP).read_text())
    except (OSError, ValueError):
        return {}


def write_stamp(directory, stamp):
    """Remember what an environment was made from, in one step."""
    temporary = directory / (STAMP + '.new')
    temporary.write_text(json.dumps(stamp))
    temporary.replace(directory / STAMP)


@contextlib.contextmanager
def locked(folder):
    """Let one process at a time change a folder, which is made if missing."""
    folder.mkdir(exist_ok=True)
    if os.name == 'nt':
        yield
        return
    import fcntl
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def prefer_checkout():
    """Import Fuel from the checkout, if its extensions are built there.

    Otherwise the installed package is used.
    """
    if any((ROOT / 'fuel' / 'kernels').glob('rows.*.so')) or any(
            (ROOT / 'fuel' / 'kernels').glob('rows.*.pyd')):
        sys.path.insert(0, str(ROOT))
