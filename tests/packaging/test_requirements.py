"""Fuel requires the promised packages and those that its modules import.
Nothing here asks a package index."""
import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest
from support.requirements import (
    IMPORTED_AS,
    brought_by,
    direct,
    extras,
    names_of,
)

ROOT = Path(__file__).parents[2]
# Fuel is a reimplementation with these packages; each stays declared.
CARD = {'cython', 'h5py', 'numpy', 'picklable-itertools', 'pillow',
        'progressbar2', 'pytest', 'pyyaml', 'pyzmq', 'requests', 'scipy',
        'six', 'tables'}
# A plain installation brings these, and what they need.
DIRECT = {'deflate', 'h5py', 'numpy', 'picklable-itertools', 'pillow',
          'platformdirs', 'progressbar2', 'pyyaml', 'pyzmq', 'requests',
          'scipy', 'six', 'urllib3'}
# Programs for 0.2.0 import them, Fuel itself does not.
FOR_USERS = {'picklable-itertools', 'six'}
# Extras for work on Fuel itself.
OF_DEVELOPERS = {'dev', 'docs', 'mutants', 'test'}


def test_each_package_of_the_card_is_declared():
    """To build, to run, to test, or by an extra."""
    with open(ROOT / 'pyproject.toml', 'rb') as file:
        build = tomllib.load(file)['build-system']['requires']
    everything = names_of([*build, *direct(), *sum(extras().values(), [])])
    assert set() == CARD - everything


def test_direct_requirements_are_the_list():
    """A new one is a decision; one less leaves with a major release."""
    assert DIRECT == names_of(direct())
    assert len(DIRECT) == len(direct())


def test_extras_of_old_programs_have_what_these_need():
    """PyTables, and a setuptools with the module that picklable-itertools
    imports; the tests need both packages of users as well."""
    assert ['tables'] == sorted(names_of(extras()['pytables']))
    assert {'setuptools<82', *extras()['pytables']} == set(extras()['compat'])
    tested = extras()['test']
    assert {'tables', 'setuptools', *FOR_USERS} <= names_of(tested)
    assert any(re.fullmatch(r'setuptools\b.*<82', line) for line in tested)


def test_extra_all_has_each_extra_of_users():
    """With the same versions."""
    found = extras()
    assert set(found['all']) == {
        line for name, lines in found.items()
        if name not in OF_DEVELOPERS | {'all'} for line in lines}


def test_package_has_one_bound_wherever_it_is_required():
    """The lowest version of a package is the same in all extras."""
    bounds = {}
    for line in [*direct(), *sum(extras().values(), [])]:
        name, bound = re.fullmatch(
            r'([\w.-]+)(?:\[[\w,]+\])?(.*)', line).groups()
        lowest = re.search(r'>=[\d.]+', bound)
        if lowest:
            bounds.setdefault(name, set()).add(lowest[0])
    assert [] == [name for name, found in bounds.items() if len(found) > 1]


def test_oldest_versions_are_those_that_are_required():
    """The constraints name each direct requirement, and PyTables."""
    oldest = dict(re.findall(r'^([\w-]+)==([\d.]+)$', (
        ROOT / 'constraints-oldest.txt').read_text('utf-8'), re.MULTILINE))
    for line in [*direct(), *extras()['pytables']]:
        name, version = line.split('>=')
        assert f'{oldest[name]}.'.startswith(f'{version}.'), name


def test_installation_page_has_each_extra():
    """In one table, with what it is for and what it brings."""
    page = (ROOT / 'docs' / 'installation.rst').read_text('utf-8')
    first = page.partition('\nSeveral are named at once')[0]
    assert sorted(extras()) == sorted(
        re.findall(r'  ``([\w-]+)``  ', first))
    assert len(page.partition('In a clone\n')[0].splitlines()) <= 45


def named_on_an_index(text):
    """Return what asks an index for Fuel, which may have another release
    under the name."""
    return re.findall(
        r"""\bfuel\[\w[^]\n]*\]|\bpip[\d.]* +install[^`\n]*?"""
        r"""[ '"]fuel(?![-./\w])[^`\n]*""", text)


@pytest.mark.parametrize('text, found', [
    ("pip install 'fuel[torch]'", True), ('pip install fuel', True),
    ('pip3 install -U "fuel==1.0"', True), ("run 'fuel[arrow]'", True),
    ('pip install ./fuel', False), ('pip install -e ".[torch]"', False),
    ('pip install fuel-1.0.0-cp312.whl[torch]', False),
    ('pip install . and `import fuel`', False),
    ('pip install dist/fuel-*.whl', False)])
def test_commands_that_ask_an_index_are_found(text, found):
    """With options, versions and extras, and not names of files."""
    assert found == bool(named_on_an_index(text))


def test_no_page_asks_an_index_for_fuel():
    """Code, benchmarks and examples do not, either: it may have only 0.2.0."""
    paths = [ROOT / 'README.rst', ROOT / 'CONTRIBUTING.rst']
    for folder in ('fuel', 'docs', 'benchmarks', 'examples'):
        paths += [path for path in sorted((ROOT / folder).rglob('*'))
                  if path.suffix in ('.py', '.pyx', '.rst', '.inc', '.txt')
                  and not {'_build', 'generated', 'tutorials'} & set(
                      path.parts)]
    wrong = {str(path.relative_to(ROOT)): found for path in paths
             if (found := named_on_an_index(path.read_text('utf-8')))}
    assert {} == wrong


def imports(body):
    """Yield the packages that statements import when a module is loaded."""
    for node in body:
        if isinstance(node, ast.Import):
            yield from (name.name.partition('.')[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module.partition('.')[0]
        elif isinstance(node, ast.If) and (
                'TYPE_CHECKING' in ast.unparse(node.test)):
            yield from imports(node.orelse)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for part in ('body', 'handlers', 'orelse', 'finalbody'):
                yield from imports(getattr(node, part, []))


def imported_by(path):
    """Return the packages, by the names that are required, that a module or
    a kernel imports when it is loaded."""
    text = path.read_text('utf-8')
    if path.suffix == '.py':
        found = set(imports(ast.parse(text).body))
    else:
        found = set(re.findall(r'^(?:c?import|from) (\w+)', text, re.M)) - {
            'cpython', 'cython', 'libc'}
    return {IMPORTED_AS.get(name, name.replace('_', '-')) for name in found
            if name != 'fuel' and name not in sys.stdlib_module_names}


def modules():
    """Return the sources of the package, with the extra of a bridge."""
    for path in sorted((ROOT / 'fuel').rglob('*.py*')):
        if path.suffix in ('.py', '.pyx', '.pxd'):
            parts = path.relative_to(ROOT / 'fuel').with_suffix('').parts
            name = parts[1] if parts[:1] == ('interop',) else None
            yield path, name if name in extras() else None


def test_modules_import_only_what_is_required():
    """Those of a bridge what its extra brings besides."""
    found = extras()
    wrong = {
        str(path.relative_to(ROOT)): more for path, extra in modules()
        if (more := imported_by(path) - DIRECT - names_of(
            found.get(extra, []))) - brought_by(extra)}
    assert {} == wrong


def test_each_direct_requirement_is_imported_or_promised():
    """At some place, perhaps by the function that uses it."""
    imported = set()
    for path, _ in modules():
        text = path.read_text('utf-8')
        imported |= set(re.findall(r'^ *(?:from|import) (\w+)', text, re.M))
    names = {IMPORTED_AS.get(name, name) for name in imported}
    assert set() == DIRECT - names - FOR_USERS
    assert set() == FOR_USERS & {name.replace('_', '-') for name in names}


@pytest.mark.parametrize('source, found', [
    ('import a.b, c', {'a', 'c'}),
    ('try:\n    import a\nexcept ImportError:\n    import b', {'a', 'b'}),
    ('def f():\n    import a', set()),
    ('with from_extra():\n    from a.b import c', {'a'}),
    ('if TYPE_CHECKING:\n    import a\nelse:\n    import b', {'b'}),
    ('class A:\n    import a\n    def f(self):\n        import b', {'a'}),
    ('from . import a', set())])
def test_imports_when_a_module_is_loaded_are_found(source, found):
    """Wherever they stand, and not those of functions."""
    assert found == set(imports(ast.parse(source).body))
