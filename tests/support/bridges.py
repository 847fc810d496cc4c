"""Find the tests, modules and pages that need a bridge's library.

They are run by ``bin/test --with NAME``, and by no other run.
"""
import importlib.util
import os
import pkgutil
from pathlib import Path

import fuel

ROOT = Path(__file__).parents[2]


def read_bridges():
    """Return what ``bin/test --with`` knows of each bridge, by name."""
    spec = importlib.util.spec_from_file_location(
        '_bridges', ROOT / 'bin' / '_bridges.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.find_bridges(ROOT)


BRIDGES = read_bridges()


def of_module(name):
    """Return the bridge without whose extra a module cannot be imported.

    Returns
    -------
    str or None
    """
    parts = name.split('.')
    extra = parts[2] if parts[1:2] == ['interop'] and parts[2:] else None
    found = [bridge.name for bridge in BRIDGES.values()
             if extra in bridge.extras]
    # An environment may have the extras of others besides.
    return extra if extra in found else next(iter(found), None)


def modules(bridge=None):
    """Return the names of all modules that need a bridge, or that need none.

    Parameters
    ----------
    bridge : str, optional
        Default: modules that can be imported without any extra.

    Returns
    -------
    list of str
    """
    names = ['fuel', *_modules_below(fuel.__path__, 'fuel.')]
    return sorted(name for name in names if of_module(name) == bridge)


def _modules_below(folders, prefix):
    """Yield the names of modules, importing none, as walk_packages does."""
    for module in pkgutil.iter_modules(folders, prefix):
        yield module.name
        if module.ispkg:
            name = module.name.rpartition('.')[2]
            yield from _modules_below(
                [os.path.join(folder, name) for folder in folders],
                f'{module.name}.')


def pages(bridge=None):
    """Return the pages whose examples need a bridge, or that need none.

    Returns
    -------
    list of str
        Paths, relative to the checkout.
    """
    if bridge is not None:
        return BRIDGES[bridge].pages
    others = {page for one in BRIDGES.values() for page in one.pages}
    # Without what a build of the manual generates.
    paths = [ROOT / 'README.rst', *(ROOT / 'docs').glob('*.rst'),
             *(ROOT / 'docs' / 'api').glob('*.rst'),
             *(ROOT / 'docs' / 'format').glob('*.rst')]
    return sorted({path.relative_to(ROOT).as_posix() for path in paths}
                  - others)


def is_left_out(path, asked):
    """Return whether a run leaves out a file or folder of tests.

    Parameters
    ----------
    path : pathlib.Path
    asked : list of str
        The names after ``--with``.  With any, only their tests are run.

    Returns
    -------
    bool
    """
    folder = ROOT / 'tests' / 'interop'
    if folder not in path.parents:
        return False
    part = path.relative_to(folder).parts[0]
    if part in BRIDGES:
        return part not in asked
    has_examples = any(modules(bridge) or BRIDGES[bridge].pages
                       or BRIDGES[bridge].benchmarks for bridge in asked)
    return (not has_examples if part == 'test_documentation.py'
            else bool(asked))
