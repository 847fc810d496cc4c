"""Virtual environments in the checkout, made again when they are stale.

An environment holds the package as a user would install it: built and
copied. For work in the checkout it is linked instead, with the kernels built
in place. It remembers what it was made from (interpreter, requirements,
sources), so that a second run does only what changed. One with the extra
`test` also keeps the source distribution and the wheel that it was installed
from, which the tests inspect.
"""
import contextlib
import glob
import hashlib
import json
import operator
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OLDEST_PYTHON = (3, 11)
# Where a system has its own interpreter, though the path may not show it.
SYSTEM_FOLDERS = ('/usr/bin', '/usr/local/bin')
ASK_VERSION = ('import json, sys; '
               'print(json.dumps([sys.executable, *sys.version_info[:3]]))')
STAMP = 'fuel-environment.json'

# What a build needs. Some of it also decides which requirements an
# environment has.
REQUIREMENT_FILES = ['setup.cfg', 'setup.py', 'pyproject.toml']
BUILD_INPUTS = [*REQUIREMENT_FILES, 'MANIFEST.in', 'README.rst', 'LICENSE',
                'fuel']
# What the source distribution holds besides.
SOURCES = [*BUILD_INPUTS, 'CHANGELOG.rst', 'CITATION.cff',
           'CONTRIBUTING.rst', '.fuelrc.example', 'constraints-oldest.txt',
           'SECURITY.md', '.editorconfig', '.github',
           '.pre-commit-config.yaml', '.readthedocs.yaml',
           'docs', 'tests', 'examples', 'bin', 'benchmarks']
DISTRIBUTIONS = 'fuel-distributions'
# Seconds between signs of life of a command that prints nothing.
HEARTBEAT = 30
# The last three are of the manual.
GENERATED = ['*.c', '*.cpp', '*.so', '*.pyd', '*.pyc', '__pycache__',
             '_build', 'generated', 'tutorials']


def prepare(name, extras, constraints=None, fresh=False, before=(),
            interpreter=None, share_wheel=False, editable=False):
    """Make an environment with the package in it, or bring it up to date.

    Parameters
    ----------
    name : str
        The start of its directory's name; the version is added.
    extras : list of str
        The package's extras that are installed too.
    constraints : str, optional
        A file of pip constraints for all requirements.
    fresh : bool, optional
        Throw an environment of that name away first.
    before : list of str, optional
        What is installed before the package: the arguments of one ``pip
        install`` each.
    interpreter : str, optional
        The interpreter. Default: that of the environment variable PYTHON.
    share_wheel : bool, optional
        Install the wheel that another environment was made from, if there is
        one of these sources, rather than build it again.
    editable : bool, optional
        Link the checkout, with its kernels built in place, so that Python
        works from the checkout's root.

    Returns
    -------
    pathlib.Path
        The environment's interpreter.
    """
    base, version = find_python(
        interpreter or os.environ.get('PYTHON', 'python3'))
    suffix = '-' + Path(constraints).stem if constraints else ''
    directory = ROOT / f'{name}-{version}{suffix}'
    python = directory / (
        'Scripts/python.exe' if os.name == 'nt' else 'bin/python')
    files = [ROOT / name for name in REQUIREMENT_FILES]
    if constraints:
        files.append(Path(constraints).resolve())
    link = ['editable'] if editable else []
    stamp = {'requirements': digest(files, base, *extras, *before, *link),
             'package': digest(kernel_sources() if editable else
                               [ROOT / name for name in BUILD_INPUTS])}
    with contextlib.ExitStack() as stack:
        stack.enter_context(
            locked(directory.with_name(directory.name + '.lock')))
        if editable:  # environments share what is built in place
            stack.enter_context(locked(ROOT / '.venv-build.lock'))
        found = read_stamp(directory)
        wheel = find_wheel(directory, version, stamp) if share_wheel else None
        if fresh or found.get('requirements') != stamp['requirements']:
            say(f'Making {directory.name}: packages are fetched and kernels '
                'compiled (a few minutes) ...')
            shutil.rmtree(directory, ignore_errors=True)
            run(base, '-m', 'venv', str(directory))
            options = ['-c', str(files[-1])] if constraints else []
            for step in before:
                pip(python, 'install', *options, *shlex.split(step))
            install(python, options, extras, wheel, editable)
        elif found.get('package') != stamp['package'] or (
                editable and not built_in_place(version)):
            say(f'Installing the package again in {directory.name} ...')
            # A stamp without the package: if this is interrupted, the next
            # run installs it again.
            write_stamp(directory, {**stamp, 'package': None})
            install(python, ['--no-deps', '--force-reinstall'], extras,
                    wheel, editable)
        write_stamp(directory, stamp)
    return python


def prepare_tools(name, requirements):
    """Make an environment of tools, without the package, unless it is there;
    return its interpreter."""
    base, version = find_python(os.environ.get('PYTHON', 'python3'))
    directory = ROOT / f'{name}-{version}'
    python = directory / 'bin' / 'python'
    stamp = {'requirements': digest([], base, *requirements)}
    with locked(directory.with_name(directory.name + '.lock')):
        if read_stamp(directory) != stamp:
            say(f'Making {directory.name} ...')
            shutil.rmtree(directory, ignore_errors=True)
            run(base, '-m', 'venv', str(directory))
            pip(python, 'install', *requirements)
            write_stamp(directory, stamp)
    return python


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
    folders = dict.fromkeys([
        *os.environ['PATH'].split(os.pathsep), *SYSTEM_FOLDERS])
    found = [
        (numbers, path) for path, numbers in interpreters([
            *(os.path.join(folder, name) for folder in folders
              for name in (f'python{version}', 'python3')),
            *of_pyenv(version)])
        if numbers[:2] == OLDEST_PYTHON]
    if not found:
        return None
    numbers, path = min(found, key=operator.itemgetter(0))
    return path, '.'.join(map(str, numbers))


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


def find_wheel(directory, version, stamp):
    """Return a wheel of these sources that another environment has."""
    for folder in sorted(ROOT.glob(f'.venv*-{version}*/{DISTRIBUTIONS}')):
        found = read_stamp(folder.parent)
        if folder.parent != directory and (
                found.get('package') == stamp['package']):
            return next(folder.glob('*.whl'), None)
    return None


def kernel_sources():
    """Return the sources that are compiled."""
    return sorted(path for path in (ROOT / 'fuel').rglob('*.p*')
                  if path.suffix in ('.pyx', '.pxd'))


def built_in_place(version):
    """Return whether the checkout has each kernel, for a version of Python."""
    tag = version.replace('.', '')
    return all(any(path.parent.glob(f'{path.stem}.{pattern}{tag}-*'))
               for path in kernel_sources() if path.suffix == '.pyx'
               for pattern in ['cpython-' if os.name != 'nt' else 'cp'])


def install(python, options, extras, wheel=None, editable=False):
    """Install the package from a wheel, or build it away from the checkout,
    or, if it is editable, in the checkout."""
    # Older releases of pip would warn of requirements without pyproject.toml.
    options = ['--use-pep517', *options]
    if editable:
        pip(python, 'install', *options, '-e', f'{ROOT}[{",".join(extras)}]')
        return
    if wheel is not None:
        pip(python, 'install', *options, f'{wheel}[{",".join(extras)}]')
        return
    with tempfile.TemporaryDirectory(prefix='fuel-build-') as build:
        keep = 'test' in extras
        copy_sources(SOURCES if keep else BUILD_INPUTS, build)
        built = build_distributions(python, build) if keep else build
        wanted = f'{built}[{",".join(extras)}]' if extras else built
        pip(python, 'install', *options, wanted)


@contextlib.contextmanager
def source_tree():
    """Yield a folder with what the source distribution is made of."""
    with tempfile.TemporaryDirectory(prefix='fuel-build-') as build:
        copy_sources(SOURCES, build)
        yield build


def copy_sources(names, target):
    """Copy files and folders of the checkout, without what was generated."""
    for name in names:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, Path(target, name),
                            ignore=shutil.ignore_patterns(*GENERATED))
        else:
            shutil.copy(ROOT / name, target)


def build_distributions(python, source):
    """Build a source distribution, and a wheel from it alone.

    Returns
    -------
    pathlib.Path
        The wheel, in a folder of the environment.
    """
    folder = python.parents[1] / DISTRIBUTIONS
    shutil.rmtree(folder, ignore_errors=True)
    pip(python, 'install', 'build')
    run(python, '-m', 'build', '--quiet', '--outdir', folder, source)
    wheel, = folder.glob('*.whl')
    return wheel


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
    with start(command) as (process, interrupts):
        try:
            if interrupts:
                raise KeyboardInterrupt
            return wait(process) if quiet else process.wait()
        except BaseException:
            if os.name == 'nt':
                process.kill()
            else:
                os.killpg(process.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            raise


@contextlib.contextmanager
def start(command):
    """Start a command; give its process, and the Ctrl-C that came meanwhile.

    One that is raised while a process starts would leave it running.
    """
    interrupts = []
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler):
        signal.signal(signal.SIGINT, lambda *_: interrupts.append(True))
    try:
        process = subprocess.Popen(command, start_new_session=True)
    finally:
        if callable(handler):
            signal.signal(signal.SIGINT, handler)
    with process:
        yield process, interrupts


def wait(process):
    """Wait for a process that prints nothing, and return its status."""
    began = time.monotonic()
    while True:
        try:
            return process.wait(HEARTBEAT)
        except subprocess.TimeoutExpired:
            say(f'  ... still at it after '
                f'{round(time.monotonic() - began)} s')


def say(text):
    """Print progress, at once and in order with the output of commands."""
    print(text, flush=True)


def digest(paths, *texts):
    """Return a hash of texts, and of files with their names."""
    result = hashlib.sha256(json.dumps(texts).encode())
    for path in paths:
        for file in sorted(path.rglob('*')) if path.is_dir() else [path]:
            if file.is_file() and not any(
                    part.match(pattern) for pattern in GENERATED
                    for part in [file, *file.parents]):
                result.update(f'{file.relative_to(path.parent)}'.encode())
                result.update(hashlib.sha256(file.read_bytes()).digest())
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
def locked(path):
    """Let one process at a time change an environment.

    The file is removed by its last owner: nothing is left in the checkout.
    """
    if os.name == 'nt':
        yield
        return
    file = lock_file(path)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        file.close()


def lock_file(path):
    """Return a locked file that is still at its path: who had it before has
    removed the file, and another process may have made the next."""
    import fcntl
    while True:
        file = open(path, 'w')  # noqa: SIM115 (the caller closes it)
        fcntl.flock(file, fcntl.LOCK_EX)
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                return file
        file.close()


def prefer_checkout():
    """Import Fuel from the checkout, if its extensions are built there.

    Otherwise the installed package is used.
    """
    if any((ROOT / 'fuel' / 'kernels').glob('rows.*.so')) or any(
            (ROOT / 'fuel' / 'kernels').glob('rows.*.pyd')):
        sys.path.insert(0, str(ROOT))
