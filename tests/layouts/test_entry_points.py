"""Installed packages add recognisers of their own."""
import sys

import h5py
import numpy
import pytest
from support.layouts import miniature_named

import fuel

MODULE = '''
from fuel.datasets import Rows
from fuel.layouts import Call


def spirals(seen):
    """Go by an attribute."""
    file = seen.files[0]
    if file.attribute('kind') != 'spirals':
        return None
    return Call({'arm': Rows('x')}, parts='spiral_*')


def eager(seen):
    """Take everything."""
    return Call({'mine': Rows(seen.files[0].arrays()[0].path)})


def raising(seen):
    """Fail."""
    raise RuntimeError('out of luck')


def misguided(seen):
    """Return a list, not a call."""
    return ['x']


def empty(seen):
    """Return no calls."""
    return []
'''


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Return what installs a package with entry points."""
    def add(**points):
        folder = tmp_path / 'site'
        facts = folder / 'spiral_layouts-1.0.dist-info'
        facts.mkdir(parents=True)
        (folder / 'spiral_layouts.py').write_text(MODULE)
        (facts / 'METADATA').write_text(
            'Metadata-Version: 2.1\nName: spiral-layouts\nVersion: 1.0\n')
        (facts / 'entry_points.txt').write_text('\n'.join([
            '[fuel.layouts]', *[f'{name} = {value}'
                                for name, value in points.items()]]))
        monkeypatch.syspath_prepend(str(folder))
    yield add
    sys.modules.pop('spiral_layouts', None)


@pytest.fixture
def spirals(tmp_path):
    """Return the path of a file that only the package knows."""
    path = str(tmp_path / 'spirals.h5')
    with h5py.File(path, 'w') as file:
        file.attrs['kind'] = 'spirals'
        for number, count in enumerate([3, 4]):
            file[f'spiral_{number}/x'] = numpy.arange(count)
    return path


@pytest.fixture
def plain(tmp_path):
    """Return the path of a file of arrays of one length."""
    path = str(tmp_path / 'plain.h5')
    with h5py.File(path, 'w') as file:
        file['x'], file['y'] = numpy.arange(5), numpy.arange(5.)
    return path


def test_recogniser_of_a_package_is_asked(install, spirals):
    """The recogniser is asked before arrays of one length are looked for."""
    with pytest.raises(ValueError, match='can be opened in several ways'):
        fuel.load(spirals)
    install(spirals='spiral_layouts:spirals')
    dataset = fuel.load(spirals)
    assert (('arm',), 7, [0, 3, 7]) == (
        dataset.sources, dataset.num_examples, dataset.runs.tolist())
    assert "parts='spiral_*'" in repr(dataset)
    assert 7 == fuel.load(spirals, layout='spirals').num_examples


def test_none_overrules_a_sure_sign(install, tmp_path, plain):
    """An entry point is asked if it is named, or if there is no sign."""
    install(eager='spiral_layouts:eager')
    for name in ('robomimic', 'D4RL', 'h5ad', 'netCDF'):
        miniature = miniature_named(name)
        written = miniature.write(tmp_path, numpy.random.default_rng(1))
        assert {*written.values} == {*fuel.load(written.files).sources}
    assert ('mine',) == fuel.load(written.files, layout='eager').sources
    assert ('mine',) == fuel.load(plain).sources
    assert ('x', 'y') == fuel.load(plain, layout='plain').sources


@pytest.mark.parametrize('value, text', [
    ('spiral_layouts:raising', 'RuntimeError: out of luck'),
    ('spiral_layouts:nothing', 'AttributeError'),
    ('no_such_module:spirals', 'ModuleNotFoundError'),
    ('spiral_layouts:misguided', 'should return a Call')])
def test_one_that_fails_is_named_and_passed_over(install, plain, value, text):
    """A warning names it; the files open as they did."""
    install(broken=value)
    with pytest.warns(UserWarning, match=text) as caught:
        dataset = fuel.load(plain)
    assert f"the recogniser 'broken' of files, {value}" in str(
        caught[0].message)
    assert ('x', 'y') == dataset.sources
    with pytest.warns(UserWarning, match=text), pytest.raises(
            ValueError, match="no layout 'broken'"):
        fuel.load(plain, layout='broken')


def test_no_calls_are_none(install, plain):
    """An empty list says that the layout is another one."""
    install(empty='spiral_layouts:empty')
    assert ('x', 'y') == fuel.load(plain).sources


def test_two_packages_that_fit_are_to_choose_from(install, plain):
    """The error lists their names, and one can be chosen by name."""
    install(one='spiral_layouts:eager', two='spiral_layouts:eager')
    with pytest.raises(fuel.exceptions.AmbiguousLayoutError,
                       match="the layouts 'one' and 'two'"):
        fuel.load(plain)
    assert ('mine',) == fuel.load(plain, layout='two').sources


def test_unknown_layouts_show_those_of_packages(install, plain):
    """The error suggests one of them."""
    install(spirals='spiral_layouts:spirals')
    with pytest.raises(ValueError, match="did you mean 'spirals'"):
        fuel.load(plain, layout='spiral')
