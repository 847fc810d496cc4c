"""A run tries some pipelines, which its seed draws, and each kind of them."""
import shutil
from pathlib import Path

import pytest
from support import drawing, pipelines, processes

TESTS = Path(__file__).parents[1]
PROBE = """
import pytest
@pytest.mark.pipelines
def test_probe(pipeline):
    assert pipeline != 'Rename'
"""


@pytest.fixture(scope='module')
def classes(files):
    """Return the classes of what each pipeline is built of, by its name."""
    return {name: {cls for cls, *_ in pipelines.built_with(name, files)[1]}
            for name in pipelines.PIPELINES}


def test_every_class_is_drawn_by_any_seed(classes):
    """Of data sets, schemes and stages; and less than half of pipelines."""
    every = set().union(*classes.values())
    assert len(every) > 80
    for seed in range(200):
        drawn = drawing.draw(seed)
        assert every == set().union(*(classes[name] for name in drawn)), seed
        assert len(drawn) < len(classes) / 2
        assert set(drawing.NAMED) <= drawn


def test_every_pipeline_is_drawn_by_some_seeds():
    """The same by each process."""
    drawn = [drawing.draw(seed) for seed in range(100)]
    assert set(pipelines.PIPELINES) == set().union(*drawn)
    assert len(set(map(frozenset, drawn))) == 100
    assert drawing.draw(7) == drawn[7]


def test_pipelines_that_are_left_out_are_not_drawn():
    """Though a regression test names them."""
    left_out = {drawing.NAMED[0], *list(
        pipelines.PIPELINES)[:20]}
    for seed in range(30):
        drawn = drawing.draw(seed, left_out)
        assert not drawn & left_out
        assert drawn > set(drawing.NAMED) - left_out


def test_a_third_of_some_names_is_drawn():
    """Each by some seeds."""
    drawn = [drawing.draw_some('abcdefg', f'{seed} test')
             for seed in range(30)]
    assert {2} == set(map(len, drawn))
    assert set('abcdefg') == set().union(*drawn)


@pytest.mark.parametrize('options', [
    ('-n', '0'), pytest.param(('-n', '2', '--full'), marks=pytest.mark.full)])
def test_failure_names_the_pipeline_and_the_seed(tmp_path, options):
    """In each process of a run."""
    shutil.copy(TESTS / 'conftest.py', tmp_path)
    (tmp_path / 'test_probe.py').write_text(PROBE)
    (tmp_path / 'pytest.ini').write_text(
        f'[pytest]\nmarkers = full\n    pipelines\npythonpath = {TESTS}\n'
        'timeout = 60\n')
    status, output, _ = processes.run_python(
        '-m', 'pytest', '-q', '-p', 'no:cacheprovider', *options,
        str(tmp_path), FUEL_TEST_SEED='7')
    assert 1 == status, output.decode()
    assert b"'Rename' is drawn by FUEL_TEST_SEED=7" in output
    passed = len(pipelines.PIPELINES if '--full' in options
                 else drawing.draw('7 test_probe')) - 1
    assert f'1 failed, {passed} passed'.encode() in output
