"""The sources are laid out as the page on developing Fuel says."""
import ast

import pytest
from support import sources

# Bounds that only go down: lower one as soon as less is reached.
MOST_CIRCLES = 0
MOST_LINES = {'.py': 600, '.pyi': 600, '.pyx': 600, '.pxd': 600}
MOST_LINES_OF_A_CLASS = 900
LOOSE_SHARE = 0.06
LOOSE_SHARE_OF_EPOCHS = 0.07
MOST_NAMES_ASKED_FOR = 140
MOST_NAMES_ASKED_OF_STREAMS = 16
MOST_NAMES_ASKED_IN_CORE = 25

# Packages that ask streams; `stage_of` alone asks for names.
OF_STREAMS = ('fuel.epochs', 'fuel.sharding', 'fuel.iterator', 'fuel.streams',
              'fuel.workers', 'fuel.server')
STAGE_OF = 'fuel.epochs.stage'
# The parts that a user's class is asked by; `benchmarks/structure.py` too.
CORE = 'fuel.epochs', 'fuel.schemes', 'fuel.sharding'


pytestmark = pytest.mark.usefixtures('trees')


def test_root_of_the_package_shows_concepts():
    """No module there is private: private ones belong to a package."""
    private = [name for name in sources.modules()
               if name.count('.') == 1
               and sources.is_private(name.rpartition('.')[2])]
    assert [] == private


def test_no_private_module_is_imported_from_another_package():
    """A name that another package needs is public."""
    assert [] == sources.private_imports()


def test_imports_point_one_way():
    """No module imports, however late, what imports it."""
    assert len(sources.circles()) <= MOST_CIRCLES, sources.circles()


def test_utils_import_nothing_that_is_built_on_them():
    """The exceptions are modules that only keep an old import path."""
    above = sorted(
        f'{name} imports {module}' for name, tree in sources.modules().items()
        if name.startswith('fuel.utils.') and not sources.is_facade(tree)
        for module, _ in sources.imports(name)
        if module.startswith(('fuel.remote', 'fuel.workers', 'fuel.server',
                              'fuel.client')))
    assert [] == above


def test_h5pys_class_of_files_is_taken_from_one_place():
    """A program may put another in the place of ``h5py.File``."""
    found = []
    for name, tree in sources.modules().items():
        annotations = {
            id(part) for node in ast.walk(tree)
            for one in (getattr(node, 'annotation', None),
                        getattr(node, 'returns', None)) if one is not None
            for part in ast.walk(one)}
        found += [f'{name}, line {node.lineno}' for node in ast.walk(tree)
                  if isinstance(node, ast.Attribute)
                  and id(node) not in annotations
                  and 'h5py.File' == ast.unparse(node)]
    assert [] == found, 'take it from fuel.utils.h5py_file'


def test_files_are_short():
    """A file holds one idea: one class, or several small things."""
    classes = sources.files_of_one_class()
    long = {path: count for path, count in sources.line_counts().items()
            if count > (MOST_LINES_OF_A_CLASS if path in classes
                        else MOST_LINES[path[path.rindex('.'):]])}
    assert {} == long


def test_parameters_say_what_they_take():
    """Few parameters take any object."""
    loose, total = sources.loose_parameters()
    assert len(loose) <= LOOSE_SHARE * total, (
        f'{len(loose) / total:.1%} of {total} parameters take anything: '
        f'{loose}')


def test_parameters_of_epochs_say_what_they_take():
    """Streams and epochs have types."""
    parts = 'fuel.epochs', 'fuel.sharding'
    loose, total = sources.loose_parameters(parts)
    assert len(loose) <= LOOSE_SHARE_OF_EPOCHS * total, loose


def test_few_names_are_asked_for():
    """Optional attributes of objects are asked for in one place."""
    asked = sources.names_asked_for()
    assert sum(map(len, asked.values())) <= MOST_NAMES_ASKED_FOR
    of_streams = {name: names for name, names in asked.items()
                  if sources.folder_of(name) in OF_STREAMS
                  and name != STAGE_OF and names}
    assert sum(map(len, of_streams.values())) <= MOST_NAMES_ASKED_OF_STREAMS, (
        of_streams)
    in_core = [name for module, names in asked.items() for name in names
               if sources.folder_of(module) in CORE]
    assert len(in_core) <= MOST_NAMES_ASKED_IN_CORE, in_core


def test_no_private_attribute_is_taken_from_another_package():
    """An attribute that another package needs is public."""
    assert [] == sources.private_attributes_taken()


def test_no_modules_name_each_other():
    """Imports for type checkers alone count, too."""
    assert [] == sources.pairs()


def test_a_public_name_has_one_meaning():
    """The same name in two packages means the same thing."""
    assert [] == sources.homonyms()
