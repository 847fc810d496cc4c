"""Try small faults in copies of the package; see ``bin/mutants``."""
import argparse
import ast
import contextlib
import difflib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

from cosmic_ray.ast import Visitor, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

import fuel

ROOT = Path(__file__).parents[2]
SURVIVORS = ROOT / 'tests' / 'mutant_survivors.txt'
NEEDED = 0.9

#: Which tests concern a part of the core: the first match counts. The quick
#: ones come first, since one that fails ends the run.
TESTS = {
    'fuel/schemes': [
        'contracts/test_schemes.py', 'test_schemes.py',
        'test_compact_requests.py', 'test_computed_schemes.py',
        'compat/test_schemes_and_streams.py', 'test_sampling_schemes.py',
        'test_streams.py'],
    'fuel/epochs': [
        'test_streams.py', 'epochs', 'contracts/test_epochs.py',
        'transformers/test_base.py', 'transformers/test_origin.py',
        'transformers/test_one_to_one.py', 'datasets/test_hdf5_direct.py',
        'transport/test_changes.py', 'contracts/test_streams.py',
        'workers', 'transformers/test_multiprocessing.py',
        'contracts/test_details.py'],
    'fuel/streams': [
        'test_streams.py', 'compat/test_schemes_and_streams.py',
        'contracts/test_epochs.py', 'transformers/test_base.py',
        'contracts/test_streams.py', 'server/test_server.py'],
    'fuel/iterator.py': [
        'test_streams.py', 'transformers/test_base.py',
        'contracts/test_streams.py', 'transformers/test_multiprocessing.py'],
    'fuel/datasets': [
        'datasets', 'test_compact_requests.py', 'compat/test_datasets.py',
        'compat/test_hdf5.py', 'contracts/test_datasets.py',
        'storage/test_reader.py', 'contracts/test_streams.py'],
    'fuel/storage': [
        'storage', 'kernels/test_gather.py', 'kernels/test_direct.py',
        'kernels/test_filters.py', 'datasets/test_hdf5.py',
        'datasets/test_hdf5_direct.py', 'datasets/test_hdf5_properties.py',
        'datasets/test_hdf5_damage.py', 'datasets/test_hdf5_overwritten.py',
        'datasets/test_hdf5_processes.py', 'datasets/test_npy.py',
        'datasets/test_csv.py'],
    'fuel/transport': [
        'transport', 'workers', 'transformers/test_multiprocessing.py',
        'server/test_server.py', 'server/test_edges.py',
        'contracts/test_details.py'],
    'fuel/workers': [
        'workers', 'transformers/test_multiprocessing.py', 'transport',
        'utils/test_parallel.py', 'server/test_interruptions.py',
        'contracts/test_details.py', 'contracts/test_processes.py'],
    'fuel/wire': [
        'wire', 'server/test_server.py', 'server/test_interruptions.py',
        'server/test_edges.py'],
    'fuel/server': [
        'server/test_ledger.py', 'server/test_server.py',
        'server/test_edges.py', 'server/test_guarantee.py', 'server',
        'cli/test_server.py', 'wire', 'contracts/test_processes.py'],
    'fuel/client': [
        'server/test_server.py', 'server/test_edges.py', 'server', 'wire',
        'contracts/test_processes.py'],
}


class Mutant(NamedTuple):
    """One small fault: what it does where, and the text of the file."""

    path: str
    operator: str
    line: int
    before: str
    after: str
    code: str

    def __str__(self):
        return f'{self.path}:{self.line}: {self.before} -> {self.after}'

    @property
    def key(self):
        """What names the fault while lines move."""
        return f'{self.path}: {self.before} -> {self.after}'


class Positions(Visitor):
    """Collects where an operator can be applied."""

    def __init__(self, operator):
        self.operator = operator
        self.found = []

    def visit(self, node):
        """Add the places of one node."""
        self.found += [start for start, _ in
                       self.operator.mutation_positions(node)]
        return node


def core_files(only):
    """Return the files that faults are put into, below the package."""
    package = Path(fuel.__file__).parent
    return [path for path in sorted(package.rglob('*.py'))
            if tests_of(relative(path)) and relative(path).startswith(only)]


def relative(path):
    """Return a path as ``fuel/...``."""
    package = Path(fuel.__file__).parent
    return 'fuel/' + path.relative_to(package).as_posix()


def tests_of(path):
    """Return the tests that concern a file of the package."""
    return next((tests for part, tests in TESTS.items()
                 if path == part or path.startswith(part + '/')), [])


def draw(number, seed, only):
    """Return faults drawn at random: each place is as likely as any other.

    A place is drawn first, then one of the faults that are possible there.
    """
    operators = [(name, get_operator(name)) for name in operator_names()
                 if 'Variable' not in name]
    places = {}
    for path in core_files(only):
        tree, inert = get_ast(path.read_text('utf-8')), inert_lines(path)
        for name, operator in operators:
            positions = Positions(operator())
            positions.walk(tree)
            for occurrence, start in enumerate(positions.found):
                if start not in inert:
                    places.setdefault((path, start), []).append(
                        (name, occurrence))
    rng = random.Random(seed)
    chosen = list(places)
    rng.shuffle(chosen)
    for path, (line, _) in chosen:
        name, occurrence = rng.choice(places[path, (line, _)])
        mutant = make(path, line, name, occurrence)
        if mutant is not None:
            yield mutant
            number -= 1
        if not number:
            return


class Inert(set):
    """Ranges of a file in which a fault changes nothing that runs."""

    def __contains__(self, place):
        return any(start <= place < end for start, end in self)


def inert_lines(path):
    """Return the ranges of annotations and of what only type checkers see."""
    ranges = Inert()
    for node in ast.walk(ast.parse(path.read_text('utf-8'))):
        parts = [getattr(node, 'annotation', None),
                 getattr(node, 'returns', None)]
        if isinstance(node, ast.If) and 'TYPE_CHECKING' in ast.unparse(
                node.test):
            parts.append(node)
        if isinstance(node, ast.FunctionDef) and any(
                'overload' in ast.unparse(one)
                for one in node.decorator_list):
            parts.append(node)
        for part in filter(None, parts):
            ranges.add(((part.lineno, part.col_offset),
                        (part.end_lineno, part.end_col_offset)))
    return ranges


def make(path, line, name, occurrence):
    """Return a fault, or None if it makes no difference to the compiler."""
    code = path.read_text('utf-8')
    changed = mutate_code(code, get_operator(name)(), occurrence)
    try:
        if changed is None or ast.dump(ast.parse(code)) == ast.dump(
                ast.parse(changed)):
            return None
    except SyntaxError:
        return None
    before, after = (
        ' '.join(text[1:].strip() for text in difflib.unified_diff(
            code.splitlines(), changed.splitlines(), n=0, lineterm='')
            if text[0] == sign and text[:3] != 3 * sign) for sign in '-+')
    return Mutant(relative(path), name, line, before, after, changed)


class Copies:
    """Copies of the package and of its tests, one for each process."""

    def __init__(self, folder, count):
        self.free = SimpleQueue()
        # Some tests read files as another user.
        Path(folder).chmod(0o755)
        for number in range(count):
            copy = Path(folder, f'copy-{number}')
            shutil.copytree(
                Path(fuel.__file__).parent, copy / 'fuel',
                ignore=shutil.ignore_patterns('__pycache__', '*.c'))
            shutil.copytree(ROOT / 'tests', copy / 'tests',
                            ignore=shutil.ignore_patterns('__pycache__'))
            for name in ('pyproject.toml', 'bin', 'docs', 'benchmarks'):
                (copy / name).symlink_to(ROOT / name)
            self.free.put(copy)

    def attempt(self, mutant):
        """Return the fault, and the test that noticed it or None."""
        copy = self.free.get()
        file = copy / mutant.path
        original = file.read_text('utf-8')
        try:
            file.write_text(mutant.code, 'utf-8')
            return mutant, run_tests(copy, tests_of(mutant.path))
        finally:
            file.write_text(original, 'utf-8')
            self.free.put(copy)


def run_tests(copy, tests):
    """Return the first test that fails, or None if all pass."""
    existing = [test for test in tests if (copy / 'tests' / test).exists()]
    command = [
        sys.executable, '-P', '-B', '-m', 'pytest', '-c',
        copy / 'pyproject.toml', '--rootdir', copy, '-x', '-q', '--tb=no',
        '-p', 'no:cacheprovider', '--timeout=60', '-o', 'addopts=',
        '--import-mode=importlib', '-rfE', '-o',
        f'pythonpath={copy / "tests"}',
        *[copy / 'tests' / test for test in existing]]
    environment = {**os.environ, 'PYTHONPATH': str(copy),
                   'FUEL_TEST_SEED': '1'}
    with tempfile.TemporaryFile('w+') as output, subprocess.Popen(
            command, cwd=copy, env=environment, stdout=output,
            stderr=subprocess.STDOUT, start_new_session=True) as process:
        try:
            status = process.wait(600)
        except subprocess.TimeoutExpired:
            return 'a hang'
        finally:
            # Also what it started, and left behind.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        output.seek(0)
        text = output.read()
    if status == 0:
        return None
    failed = [line for line in text.splitlines()
              if line.startswith(('FAILED', 'ERROR'))]
    return failed[0] if failed else text[-300:].strip()


def read_reasons():
    """Return why faults may go unnoticed, by key."""
    if not SURVIVORS.exists():
        return {}
    blocks = SURVIVORS.read_text('utf-8').split('\n\n')
    pairs = [block.strip().split('\n', 1) for block in blocks
             if block.startswith('fuel/')]
    return {key: ' '.join(reason.split()) for key, reason in pairs}


def main(arguments):
    """Draw faults, try them, and report."""
    parser = argparse.ArgumentParser('bin/mutants')
    parser.add_argument('--number', type=int, default=200)
    parser.add_argument('--seed', type=int,
                        default=random.SystemRandom().randrange(10 ** 6))
    parser.add_argument('--processes', type=int, default=os.cpu_count())
    parser.add_argument('--only', default='fuel/')
    options = parser.parse_args(arguments)
    print(f'{options.number} faults, seed {options.seed}', flush=True)
    reasons, survived, harmless, tried = read_reasons(), [], 0, 0
    with tempfile.TemporaryDirectory(prefix='fuel-mutants-') as folder, \
            ThreadPoolExecutor(options.processes) as pool:
        copies = Copies(folder, options.processes)
        copy = copies.free.get()
        for tests in {tuple(tests_of(relative(path)))
                      for path in core_files(options.only)}:
            failed = run_tests(copy, tests)
            if failed:
                sys.exit(f'without any fault this fails: {failed}')
        copies.free.put(copy)
        print('the tests pass without a fault', flush=True)
        begun = time.monotonic()
        for mutant, noticed in pool.map(copies.attempt, draw(
                options.number, options.seed, options.only)):
            tried += 1
            reason = reasons.get(mutant.key)
            harmless += noticed is None and reason is not None
            if noticed is None:
                survived.append(mutant)
                print(f'NOT NOTICED {mutant} [{mutant.operator}]: '
                      f'{reason or "no reason is given"}', flush=True)
            else:
                print(f'noticed {mutant}: {noticed}', flush=True)
    seconds = time.monotonic() - begun
    counted = tried - harmless
    share = (tried - len(survived)) / counted if counted else 1
    print(f'{tried - len(survived)} of {tried} faults noticed; '
          f'{harmless} of the others are known to make no difference: '
          f'{share:.1%} in {seconds / 60:.0f} min')
    return 0 if share >= NEEDED else 1


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
