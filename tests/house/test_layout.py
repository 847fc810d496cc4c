"""The sources are laid out as the page on developing Fuel says."""
from support import sources

# Bounds that only go down: lower one as soon as less is reached.
MOST_CIRCLES = 0
MOST_LINES = {'.py': 400, '.pyi': 400, '.pyx': 600, '.pxd': 600}
MOST_LINES_OF_A_CLASS = 900
LOOSE_SHARE = 0.08


def test_root_of_the_package_shows_concepts():
    """No module there is private: private ones belong to a package."""
    private = [name for name in sources.modules()
               if name.count('.') == 1
               and sources.is_private(name.rpartition('.')[2])]
    assert [] == private


def test_no_private_module_is_imported_from_another_package():
    """What another package needs has a public name."""
    assert [] == sources.private_imports()


def test_imports_point_one_way():
    """No module imports, however late, what imports it."""
    assert len(sources.circles()) <= MOST_CIRCLES, sources.circles()


def test_utils_import_nothing_that_is_built_on_them():
    """But for modules that only keep an old import path."""
    above = sorted(
        f'{name} imports {module}' for name, tree in sources.modules().items()
        if name.startswith('fuel.utils.') and not sources.is_facade(tree)
        for module, _ in sources.imports(name)
        if module.startswith(('fuel.remote', 'fuel.workers', 'fuel.server',
                              'fuel.client')))
    assert [] == above


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
