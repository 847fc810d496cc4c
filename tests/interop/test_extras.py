"""A package that is missing is reported with the extra that installs it."""
import importlib
import sys
from importlib import metadata

import pytest
from support import bridges

from fuel.utils import extras
from fuel.utils.extras import from_extra, how_to_install


@pytest.mark.parametrize('name', sorted({
    module.split('.')[2] for name in bridges.BRIDGES
    for module in bridges.modules(name)}))
def test_bridge_without_its_library_names_the_extra(name, monkeypatch):
    """The error says what to install, and is the only one."""
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError) as caught:
        bridge = importlib.import_module(f'fuel.interop.{name}')
        # It may load its library on demand.
        for exported in bridge.__all__:
            getattr(bridge, exported)
    assert how_to_install(name) in str(caught.value)
    assert caught.value.__suppress_context__


# As setuptools writes them, and as older releases of wheel did.
REQUIREMENTS = [
    'numpy>=1.23', 'gnomon>=2; extra == "sundial"',
    'stick[long,thin]>=1.4; extra == "sundial"',
    "shadow (>=3) ; (python_version < '4') and extra == 'sundial'",
    'stars>=5; extra == "sextant"']


@pytest.mark.parametrize('has_sources, command', [
    (True, "in the clone of Fuel, run pip install -e '.[sundial]'"),
    (False, ("for Fuel's extra 'sundial', run pip install 'gnomon>=2' "
             "'stick[long,thin]>=1.4' 'shadow (>=3)'"))])
def test_extra_is_installed_as_fuel_was(
        tmp_path, monkeypatch, has_sources, command):
    """A clone installs it from the clone; a wheel installs the extra's
    packages: an index may have another release under the name of Fuel."""
    if has_sources:
        (tmp_path / 'setup.cfg').touch()
    monkeypatch.setattr(extras, '_ROOT', tmp_path)
    monkeypatch.setattr(metadata, 'requires', {'fuel': REQUIREMENTS}.get)
    assert command == how_to_install('sundial')


def missing_metadata(name):
    """Fail as where a package was copied and not installed."""
    raise metadata.PackageNotFoundError(name)


@pytest.mark.parametrize('requires', [
    missing_metadata, lambda name: None, lambda name: REQUIREMENTS])
def test_extra_of_unknown_packages_is_named(tmp_path, monkeypatch, requires):
    """The installation has no metadata, or is of a release that lacks the
    extra."""
    monkeypatch.setattr(extras, '_ROOT', tmp_path)
    monkeypatch.setattr(metadata, 'requires', requires)
    assert "install Fuel again, with its extra 'telescope'" == (
        how_to_install('telescope'))


def test_other_import_errors_pass():
    """An extra is named for its own packages only."""
    with pytest.raises(ModuleNotFoundError, match='no_such_module'):
        with from_extra('sundial', 'gnomon'):
            importlib.import_module('no_such_module')
    with pytest.raises(ImportError, match='cannot import name'):
        with from_extra('sundial', 'gnomon'):
            from math import gnomon  # noqa: F401
