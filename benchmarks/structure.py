"""Size of the core and of the data side, and number of their ideas.

Counted in the sources alone. A line of code is one that is not blank, a
comment or part of a docstring. Classes that were doubled are known by their
names: one that takes their place is to be looked for by a reader.
"""
import ast
import io
import re
import tokenize
from pathlib import Path

import measure

import fuel

ROOT = Path(fuel.__file__).parent

# The stages that are not about images, values or sequences.
GENERAL = [f'transformers/{name}.py' for name in (
    'base', 'batch', 'cache', 'filter', 'leftovers', 'mapping',
    'multiprocessing', 'multithreading', 'options', 'seeded',
    'sequence_stage', 'several', 'shuffling', 'sourcewise', 'worker_stage')]
CORE = ['epochs', 'sharding', 'core', 'streams', 'schemes', 'iterator.py',
        'typing.py', 'workers', 'profiling', 'transformers/mixture',
        'transformers/expand.py', *GENERAL]
DATA = ['datasets', 'storage', 'remote', 'layouts', 'interop/arrow',
        'interop/zarr', 'loading.py']
ASKED = ('epochs', 'schemes', 'sharding', 'core')

DEALERS = {'ShardedRequests', 'ShardedIndexRequests', 'SplitRequests',
           'PlannedReader', 'ShareReader', 'Dealer'}
# Beside the dict that `state_dict` returns.
POSITIONS = {'Position', 'Identified', 'Encoded', 'SchemeStart',
             'Unavailable', 'Standing', 'Checkpoint', 'ShareState', 'Receipt',
             'Changes'}


def files(places):
    """Return the modules of packages and modules, those there are.

    Parameters
    ----------
    places : list of str
        Paths below the package.

    Returns
    -------
    list of Path

    """
    found = []
    for place in places:
        path = ROOT / place
        found += (sorted(path.rglob('*.py')) if path.is_dir()
                  else [path] if path.exists() else [])
    return found


def parsed(path):
    """Return the syntax tree of a module."""
    return ast.parse(path.read_text('utf-8'))


def lines_of_code(path):
    """Return how many lines of code a module has."""
    documented = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef,
                             ast.AsyncFunctionDef)) and ast.get_docstring(
                                 node, clean=False) is not None:
            text = node.body[0]
            documented.update(range(text.lineno, text.end_lineno + 1))
    lines = set()
    ignored = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE,
               tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    for token in tokenize.generate_tokens(
            io.StringIO(path.read_text('utf-8')).readline):
        if token.type not in ignored:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - documented)


def classes():
    """Return the names of the bases of each class, and the files that
    define it.

    Returns
    -------
    bases, places : dict

    """
    bases, places = {}, {}
    for path in files(['.']):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef):
                bases[node.name] = [re.sub(r'.*\.|\[.*', '', ast.unparse(base))
                                    for base in node.bases]
                places[node.name] = path.relative_to(ROOT).as_posix()
    return bases, places


def forms_of_a_position():
    """Return the types that are forms of a position, as often as a module
    defines one."""
    found = []
    for path in files(['.']):
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef):
                found.append(node.name)
            elif isinstance(node, ast.AnnAssign):
                found.append(ast.unparse(node.target))
    return [name for name in found if name in POSITIONS]


def is_derived(name, base, bases):
    """Return whether a class is derived from another."""
    return any(one == base or (one != name and is_derived(one, base, bases))
               for one in bases.get(name, ()))


def contract(path, name):
    """Return the public members of a class that others may override.

    Parameters
    ----------
    path : Path
    name : str
        Of the class; one that is marked by ``final`` does not count.

    Returns
    -------
    set of str

    """
    body = next(node.body for node in parsed(path).body
                if isinstance(node, ast.ClassDef) and node.name == name)
    found = {node.name for node in body if isinstance(node, ast.FunctionDef)
             and 'final' not in map(ast.unparse, node.decorator_list)}
    for node in body:
        targets = (node.targets if isinstance(node, ast.Assign) else
                   [node.target] if isinstance(node, ast.AnnAssign) else [])
        found.update(target.id for target in targets
                     if isinstance(target, ast.Name))
    return {member for member in found if not member.startswith('_')}


def names_asked_for(places):
    """Return how often ``hasattr`` and ``getattr`` ask for a constant."""
    return sum(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        and node.func.id in ('hasattr', 'getattr') and len(node.args) > 1
        and isinstance(node.args[1], ast.Constant)
        for path in files(places) for node in ast.walk(parsed(path)))


def rows():
    """Return the rows of the table."""
    bases, places = classes()
    readers = {name for name in bases if is_derived(name, 'Reader', bases)}
    others = {name for name in bases
              if 'Reader' in name and name != 'Reader'} - readers
    counted = [
        ('members of the contract of a stage',
         len(contract(ROOT / places['Stage'], 'Stage')), 16),
        ('classes that deal shares', len(DEALERS & bases.keys()), 1),
        ('forms of a position, with the state dict',
         1 + len(forms_of_a_position()), 4),
        ('core: lines of code', sum(map(lines_of_code, files(CORE))), 10_400),
        ('core: modules', len(files(CORE)), 66),
        ('core: names asked for by string', names_asked_for(ASKED), 25),
        ('data: subclasses of storage.Reader', len(readers), 22),
        ('data: other classes called Reader', len(others), 3),
        ('data: lines of code', sum(map(lines_of_code, files(DATA))), 16_450),
        ('data: modules', len(files(DATA)), 115)]
    return [(what, count, f'at most {most}', 'yes' if count <= most else 'no')
            for what, count, most in counted]


if __name__ == '__main__':
    measure.parser(__doc__).parse_args()
    measure.print_table(rows(), ('structure', 'counted', 'wanted', 'met'))
    print('Some of it can only be read: it may be at least as large as this.')
