"""Try small faults in copies of the package; see ``bin/mutants``."""
import argparse
import ast
import difflib
import hashlib
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

from cosmic_ray.ast import Visitor, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

import fuel
from support.mutant_runs import ROOT, Copies
from support.mutant_tests import check_parts, choose_tests

SURVIVORS = ROOT / 'tests' / 'mutant_survivors.txt'
NEEDED = 0.9


class Mutant(NamedTuple):
    """One small fault: what it does where, and the text of the file.

    `draw`: what names it in a log: the same seed draws it again, also where
    other lines of the file have changed since.
    """

    draw: str
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
        """A name of the fault that stays while lines move."""
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
            if relative(path).startswith(only)
            and choose_tests(relative(path))]


def relative(path):
    """Return a path as ``fuel/...``."""
    package = Path(fuel.__file__).parent
    return 'fuel/' + path.relative_to(package).as_posix()


def digest(*values):
    """Return a number drawn from some values, as text."""
    return hashlib.sha256(repr(values).encode()).hexdigest()[:16]


def draw(number, seed, only):
    """Yield faults drawn at random: each place is as likely as any other.

    A place is drawn first, then one of the faults that are possible there.
    What is drawn in a line depends on the seed and on that line alone, so
    that few draws change when the code does.
    """
    operators = {name: get_operator(name)() for name in operator_names()
                 if 'Variable' not in name}
    places = {}
    for path in core_files(only):
        text = path.read_text('utf-8')
        tree, inert, lines = get_ast(text), inert_lines(text), Counter()
        names = {}
        for number_of_line, line in enumerate(text.splitlines(), 1):
            lines[line] += 1
            names[number_of_line] = (relative(path), line, lines[line])
        for name, operator in operators.items():
            positions = Positions(operator)
            positions.walk(tree)
            for occurrence, (line, column) in enumerate(positions.found):
                if (line, column) not in inert:
                    place = digest(seed, *names[line], column)
                    places.setdefault(place, []).append(
                        (path, line, name, occurrence))
    for place in sorted(places):
        chosen = min(places[place], key=lambda fault: digest(
            place, fault[2], fault[3] - places[place][0][3]))
        mutant = make(place, *chosen)
        if mutant is not None:
            yield mutant
            number -= 1
        if not number:
            return


class Inert(set):
    """Ranges of a file in which a fault changes nothing that runs."""

    def __contains__(self, place):
        return any(start <= place < end for start, end in self)


def inert_lines(text):
    """Return the ranges of annotations and of what only type checkers see."""
    ranges = Inert()
    for node in ast.walk(ast.parse(text)):
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


def make(place, path, line, name, occurrence):
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
    return Mutant(place, relative(path), name, line, before, after, changed)


class Log:
    """Remembers the results of earlier runs, one JSON object a line."""

    def __init__(self, path, seed):
        self.path = path
        self.seed = seed
        self.results = {}
        if path is not None and path.exists():
            for line in path.read_text('utf-8').splitlines():
                result = json.loads(line)
                self.results[result['seed'], result['draw']] = (
                    result['noticed_by'])

    @classmethod
    def seed_of(cls, path):
        """Return the seed of the last run of a log, or None."""
        seeds = [] if path is None else [
            seed for seed, _ in cls(path, None).results]
        return seeds[-1] if seeds else None

    def __contains__(self, mutant):
        return (self.seed, mutant.draw) in self.results

    def __getitem__(self, mutant):
        return self.results[self.seed, mutant.draw]

    def add(self, mutant, noticed_by, seconds):
        """Remember a result."""
        self.results[self.seed, mutant.draw] = noticed_by
        if self.path is not None:
            fields = {'seed': self.seed, **mutant._asdict(),
                      'noticed_by': noticed_by, 'seconds': round(seconds)}
            del fields['code']
            with self.path.open('a', encoding='utf-8') as file:
                file.write(json.dumps(fields) + '\n')


def read_reasons():
    """Return why faults may go unnoticed, by key."""
    if not SURVIVORS.exists():
        return {}
    blocks = SURVIVORS.read_text('utf-8').split('\n\n')
    pairs = [block.strip().split('\n', 1) for block in blocks
             if block.startswith('fuel/')]
    return {key: ' '.join(reason.split()) for key, reason in pairs}


def attempt(copies, mutant):
    """Return a fault, the test that notices it or None, and the seconds."""
    begun = time.monotonic()
    noticed_by = copies.attempt(
        mutant.path, mutant.code, choose_tests(mutant.path))
    return mutant, noticed_by, time.monotonic() - begun


def report(mutants, log, reasons):
    """Print what was not noticed, and return the share that was."""
    tried = [mutant for mutant in mutants if mutant in log]
    survived = [mutant for mutant in tried if log[mutant] is None]
    harmless = sum(mutant.key in reasons for mutant in survived)
    for mutant in survived:
        print(f'NOT NOTICED {mutant} [{mutant.operator}]: '
              f'{reasons.get(mutant.key, "no reason is given")}')
    noticed, counted = len(tried) - len(survived), len(tried) - harmless
    share = noticed / counted if counted else 1
    print(f'{noticed} of {len(tried)} faults noticed; {harmless} of the '
          f'others are known to make no difference: {share:.1%}')
    return share


def main(arguments):
    """Draw faults, try those that are not in the log, and report."""
    parser = argparse.ArgumentParser('bin/mutants')
    parser.add_argument('--number', type=int, default=200)
    parser.add_argument('--seed', type=int)
    parser.add_argument('--processes', type=int, default=os.cpu_count())
    parser.add_argument('--only', default='fuel/')
    parser.add_argument('--log', type=Path)
    parser.add_argument('--again', action='store_true')
    parser.add_argument('--report', action='store_true')
    options = parser.parse_args(arguments)
    check_parts()
    seed = next(seed for seed in (
        options.seed, Log.seed_of(options.log),
        random.SystemRandom().randrange(10 ** 6)) if seed is not None)
    log, reasons = Log(options.log, seed), read_reasons()
    print(f'{options.number} faults, seed {seed}', flush=True)
    mutants = list(draw(options.number, seed, options.only))
    pending = [] if options.report else [
        mutant for mutant in mutants if mutant not in log or (
            options.again and log[mutant] is None
            and mutant.key not in reasons)]
    print(f'{len(pending)} of them are to be tried', flush=True)
    with tempfile.TemporaryDirectory(prefix='fuel-mutants-') as folder, \
            ThreadPoolExecutor(options.processes) as pool:
        copies = Copies(folder, options.processes) if pending else None
        # As they end, so that a run that is ended has logged them.
        for future in as_completed([
                pool.submit(attempt, copies, mutant) for mutant in pending]):
            mutant, noticed_by, seconds = future.result()
            log.add(mutant, noticed_by, seconds)
            print(f'{mutant}: noticed by {noticed_by}' if noticed_by else
                  f'NOT NOTICED {mutant} [{mutant.operator}]', flush=True)
    return 0 if report(mutants, log, reasons) >= NEEDED else 1


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
