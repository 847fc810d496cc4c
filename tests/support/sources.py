"""Measures of how the sources of Fuel are laid out."""
import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
FACADE_FUNCTIONS = {'__getattr__', '__dir__'}


@cache
def modules():
    """Return the syntax trees of all modules, by name."""
    found = {}
    for path in sorted((ROOT / 'fuel').rglob('*.py')):
        parts = path.relative_to(ROOT).with_suffix('').parts
        name = '.'.join(parts[:-1] if parts[-1] == '__init__' else parts)
        found[name] = ast.parse(path.read_text('utf-8'), str(path))
    return found


def is_package(name):
    """Return whether a module is a package."""
    return (ROOT / Path(*name.split('.')) / '__init__.py').exists()


def line_counts():
    """Return the number of lines of each source file, by path."""
    return {path.relative_to(ROOT).as_posix():
            len(path.read_text('utf-8').splitlines())
            for path in sorted((ROOT / 'fuel').rglob('*'))
            if path.suffix in ('.py', '.pyx', '.pxd', '.pyi')}


def files_of_one_class():
    """Return the paths of the modules that define one public class alone."""
    found = set()
    for name, tree in modules().items():
        kinds = [type(node) for node in tree.body
                 if isinstance(node, (ast.ClassDef, ast.FunctionDef))
                 and not is_private(node.name)]
        if kinds == [ast.ClassDef]:
            found.add(name.replace('.', '/') + '.py')
    return found


def imports(name):
    """Yield the modules that a module imports, late imports included.

    What it imports for the type checker alone is left out.

    Yields
    ------
    tuple of (str, str)
        A module, and the name imported from it ('' for all of it).

    """
    tree = modules()[name]
    package = name if is_package(name) else name.rpartition('.')[0]
    ignored = {id(node) for guard in ast.walk(tree)
               if isinstance(guard, ast.If)
               and 'TYPE_CHECKING' in ast.unparse(guard.test)
               for node in ast.walk(guard)}
    if is_facade(tree):
        ignored |= {id(node) for function in tree.body
                    if isinstance(function, ast.FunctionDef)
                    for node in ast.walk(function)}
    for node in ast.walk(tree):
        if id(node) in ignored:
            continue
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition('.')[0] == 'fuel':
                    yield alias.name, ''
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ''
            if node.level:
                above = package.split('.')
                above = above[:len(above) - node.level + 1]
                base = '.'.join([*above, *filter(None, [node.module])])
            if base.partition('.')[0] == 'fuel':
                for alias in node.names:
                    whole = f'{base}.{alias.name}'
                    if whole in modules():
                        yield whole, ''
                    else:
                        yield base, alias.name


def is_facade(tree):
    """Return whether a module only lists names, some loaded on demand."""
    return all(
        isinstance(node, (ast.Import, ast.ImportFrom, ast.Assign, ast.Expr,
                          ast.AnnAssign, ast.Delete, ast.For, ast.If))
        or (isinstance(node, ast.FunctionDef)
             and node.name in FACADE_FUNCTIONS)
        for node in tree.body)


def private_imports():
    """Return what modules import from private modules of other packages.

    A module under an underscore, or in a package under one, is private to the
    package that holds it.
    """
    found = []
    for name in modules():
        package = name if is_package(name) else name.rpartition('.')[0]
        for module, imported in imports(name):
            parts = module.split('.')
            private = next((place for place, part in enumerate(parts)
                            if is_private(part)), None)
            if private is None:
                continue
            owner = '.'.join(parts[:private])
            if not (package + '.').startswith(owner + '.') or (
                    owner == 'fuel' != package):
                found.append(f'{name} imports {imported or "all"} '
                             f'of {module}')
    return sorted(set(found))


def is_private(part):
    """Return whether one part of a module's name is under an underscore."""
    return part.startswith('_') and not part.startswith('__')


def circles():
    """Return the groups of modules that import each other."""
    edges = {name: {module for module, _ in imports(name)
                    if module in modules() and module != name}
             for name in modules()}
    reached = {name: reachable(name, edges) for name in edges}
    groups = {frozenset([name, *(other for other in reached[name]
                                 if name in reached[other])])
              for name in edges}
    return sorted(sorted(group) for group in groups if len(group) > 1)


def reachable(start, edges):
    """Return all modules that are imported, directly or not."""
    found, waiting = set(), [start]
    while waiting:
        for name in edges[waiting.pop()] - found:
            found.add(name)
            waiting.append(name)
    return found


def loose_parameters():
    """Return the parameters that take anything, and the number of all.

    Those are annotated ``Any``, alone, optional or under another name, or not
    at all.

    Returns
    -------
    loose : list of str
        Where each is.
    total : int

    """
    loose, total = [], 0
    names = aliases_of_any()
    for module, tree in modules().items():
        for function in ast.walk(tree):
            if not isinstance(
                    function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            given = function.args
            for parameter in (*given.posonlyargs, *given.args,
                              *given.kwonlyargs):
                if parameter.arg in ('self', 'cls'):
                    continue
                total += 1
                if takes_anything(parameter.annotation, names):
                    loose.append(f'{module}.{function.name}({parameter.arg})')
    return loose, total


def aliases_of_any():
    """Return the names that stand for ``Any`` in some module."""
    names = {'Any'}
    for tree in modules().values():
        for node in tree.body:
            if isinstance(node, ast.Assign):
                target, value = node.targets[0], node.value
            elif isinstance(node, ast.AnnAssign) and node.value is not None:
                target, value = node.target, node.value
            else:
                continue
            if isinstance(target, ast.Name) and ast.unparse(value) == 'Any':
                names.add(target.id)
    return names


def takes_anything(annotation, names):
    """Return whether an annotation says nothing about the parameter."""
    if annotation is None:
        return True
    text = ast.unparse(annotation).strip('\'"')
    text = re.sub(r'^Optional\[(.*)\]$|^(.*) \| None$',
                  lambda match: match.group(1) or match.group(2), text)
    return text in names
