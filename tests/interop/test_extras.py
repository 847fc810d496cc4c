"""A package that is missing is reported with the extra that installs it."""
import importlib
import sys

import pytest
from support import bridges

from fuel.utils import extras
from fuel.utils.extras import from_extra, how_to_install


@pytest.mark.parametrize('name', sorted({
    module.split('.')[2] for name in bridges.BRIDGES
    for module in bridges.modules(name)}))
def test_bridge_without_its_library_names_the_extra(name, monkeypatch):
    """Whoever uses it learns what to install, and sees one error."""
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError) as caught:
        bridge = importlib.import_module(f'fuel.interop.{name}')
        # It may load its library on demand.
        for exported in bridge.__all__:
            getattr(bridge, exported)
    assert how_to_install(name) in str(caught.value)
    assert caught.value.__suppress_context__


@pytest.mark.parametrize('has_sources, command', [
    (True, "in the clone of Fuel, run pip install -e '.[sundial]'"),
    (False, "run pip install 'fuel[sundial]'")])
def test_extra_is_installed_as_fuel_was(
        tmp_path, monkeypatch, has_sources, command):
    """From the clone, or beside an installed wheel."""
    if has_sources:
        (tmp_path / 'setup.cfg').touch()
    monkeypatch.setattr(extras, '_ROOT', tmp_path)
    assert command == how_to_install('sundial')


def test_other_import_errors_pass():
    """An extra is named for its own packages only."""
    with pytest.raises(ModuleNotFoundError, match='no_such_module'):
        with from_extra('sundial', 'gnomon'):
            importlib.import_module('no_such_module')
    with pytest.raises(ImportError, match='cannot import name'):
        with from_extra('sundial', 'gnomon'):
            from math import gnomon  # noqa: F401
