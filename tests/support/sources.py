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


def loose_parameters(packages=None):
    """Return the parameters that take anything, and the number of all.

    Those are annotated ``Any``, alone, optional or under another name, or not
    at all.

    Parameters
    ----------
    packages : sequence of str, optional
        Look at these packages. Defaults to None: all.

    Returns
    -------
    loose : list of str
        Where each is.
    total : int

    """
    loose, total = [], 0
    names = aliases_of_any()
    for module, tree in modules().items():
        if packages is not None and folder_of(module) not in packages:
            continue
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


def folder_of(module):
    """Return the package, or module, of Fuel that a module belongs to."""
    return '.'.join(module.split('.')[:2])


def names_asked_for():
    """Return the questions for an attribute by its name, by module.

    Those are calls of ``hasattr`` and ``getattr`` with a name as it stands.
    """
    return {name: [
        node.args[1].value for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        and node.func.id in ('hasattr', 'getattr')
        and isinstance(node.args[1], ast.Constant)]
        for name, tree in modules().items()}


def private_attributes_taken():
    """Return the private attributes that a package takes of others' objects.

    What a class of the package itself has too is none.
    """
    taken, owners = [], {}
    for module, tree in modules().items():
        for node in ast.walk(tree):
            for name in names_bound(node):
                owners.setdefault(name, set()).add(folder_of(module))
    for module, tree in modules().items():
        taken += [
            f'{module} takes {node.attr}' for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and is_private(node.attr)
            and node.attr not in NAMEDTUPLE_METHODS
            and not is_own_object(node.value)
            and folder_of(module) not in owners.get(
                node.attr, {folder_of(module)})]
    return sorted(set(taken))


NAMEDTUPLE_METHODS = {'_replace', '_asdict', '_make', '_fields'}


def names_bound(node):
    """Return the names that a node of a syntax tree defines or assigns."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        return [node.attr]
    targets = (node.targets if isinstance(node, ast.Assign) else
               [node.target] if isinstance(node, ast.AnnAssign) else [])
    return [target.id for target in targets if isinstance(target, ast.Name)]


def is_own_object(value):
    """Return whether an expression is ``self``, ``cls`` or ``super()``."""
    return ((isinstance(value, ast.Name) and value.id in ('self', 'cls'))
            or (isinstance(value, ast.Call)
            and ast.unparse(value.func) == 'super'))


def pairs():
    """Return the modules that name each other, for type checkers too."""
    named = {}
    for module, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    whole = f'{node.module}.{alias.name}'
                    found = whole if whole in modules() else node.module
                    named.setdefault(module, set()).add(found)
    return sorted({tuple(sorted([one, other]))
                   for one, others in named.items() for other in others
                   if one != other and one in named.get(other, ())})


def homonyms():
    """Return the public classes and functions of one name that several
    packages define; data sets each have their own."""
    found = {}
    for module, tree in modules().items():
        for node in tree.body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)) \
                    and not node.name.startswith('_'):
                found.setdefault(node.name, set()).add(folder_of(module))
    apart = {'fuel.converters', 'fuel.downloaders', 'fuel.bin'}
    return sorted(name for name, folders in found.items()
                  if len(folders) > 1 and len(folders - apart) > 1)
