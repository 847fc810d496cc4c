"""Fixtures and options of all tests: each test has its own home and settings.
Properties are tried briefly unless ``--full`` is given."""
import copy
import faulthandler
import gc
import os
import random
import signal
import tempfile
from pathlib import Path

import numpy
import pytest
from hypothesis import HealthCheck, settings
from support import stuck

import fuel

settings.register_profile(
    'short', max_examples=25, deadline=None, print_blob=True,
    suppress_health_check=[HealthCheck.too_slow])
settings.register_profile(
    'full', settings.get_profile('short'), max_examples=500)

# Each test starts with this seed in the global generators; the header
# prints it, and FUEL_TEST_SEED repeats a run.
SEED = int(os.environ.get('FUEL_TEST_SEED', '0')) or random.SystemRandom(
    ).randrange(1, 2 ** 32)

# Their tests share what takes long to make, or the port that the manual's
# programs name, so one process runs them all.
ONE_PROCESS = ('tests/docs/test_parallel.py', 'tests/house/',
               'tests/interop/ray/', 'tests/packaging/test_distributions.py',
               'tests/typing/')

# Times the limit of a test that a test may take with --full.
LONGER = 5

STDERR = pytest.StashKey[int]()


def pytest_addoption(parser):
    """Add ``--full`` and ``--with``."""
    parser.addoption('--full', action='store_true',
                     help='also run the long forms of heavy tests')
    parser.addoption('--with', action='append', default=[], dest='bridges',
                     metavar='NAME', help=(
                         'run the tests of the bridge to another library, '
                         'which is installed here'))


def pytest_configure(config):
    """Choose how many examples each property is tried with."""
    settings.load_profile('full' if config.getoption('full') else 'short')
    # All processes of a run use one seed.
    global SEED
    SEED = getattr(config, 'workerinput', {}).get('seed', SEED)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # So a shell starts what runs in the background.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Tests capture their own; this one is shown at once.
    config.stash[STDERR] = os.dup(2)
    stuck.arm_forks()


def pytest_collection_finish():
    """Take what was collected away from the collector.

    It is many objects that live to the end: a test that calls gc.collect()
    would wait a second for each look at them.
    """
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Give each process the next test, or all of one of `ONE_PROCESS`."""
    from support.scheduling import schedule_by
    return schedule_by(ONE_PROCESS, config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    """Send the seed to a process of pytest-xdist."""
    node.workerinput['seed'] = SEED


def pytest_unconfigure(config):
    """Close the copy of the standard error."""
    os.close(config.stash[STDERR])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """End the run, with all stacks, if a test cannot even be timed out.

    pytest-timeout prints the stacks and ends the test before, unless
    something holds the interpreter's lock for ever.
    """
    marker = item.get_closest_marker('timeout')
    limit = float(marker.args[0] if marker is not None
                  else item.config.getini('timeout'))
    faulthandler.dump_traceback_later(
        limit + 20, file=item.config.stash[STDERR], exit=True)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


def pytest_report_header(config):
    """Say which Fuel is tested, and with which seed."""
    return [f'fuel {fuel.__version__} from {os.path.dirname(fuel.__file__)}',
            f'random seed: {SEED} (FUEL_TEST_SEED={SEED} repeats it)']


def pytest_collection_modifyitems(config, items):
    """Leave out the long forms, unless asked for; then allow more time."""
    long_forms = {item for item in items if item.get_closest_marker('full')}
    if config.getoption('full'):
        # Tests that have no long form may try more, too.
        for item in items:
            if item.get_closest_marker('timeout') is None:
                item.add_marker(pytest.mark.timeout(
                    LONGER * float(config.getini('timeout'))))
    elif long_forms:
        config.hook.pytest_deselected(items=long_forms)
        items[:] = [item for item in items if item not in long_forms]


def pytest_generate_tests(metafunc):
    """Leave a `pipeline` that the seed does not draw to ``--full``.

    Each test draws its own. The marker ``pipelines`` names those that it
    draws from; by default, all that are not named by `besides`.
    """
    marker = metafunc.definition.get_closest_marker('pipelines')
    if marker is not None:
        from support import drawing
        seed = f'{SEED} {metafunc.function.__name__}'
        besides = marker.kwargs.get('besides', ())
        drawn = (drawing.draw_some(marker.args, seed) if marker.args
                 else drawing.draw(seed, besides))
        metafunc.parametrize('pipeline', [
            pytest.param(name, marks=() if name in drawn else pytest.mark.full)
            for name in marker.args or drawing.PIPELINES
            if name not in besides])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """Say which seed draws the `pipeline` of a test that fails."""
    report = yield
    if report.failed and item.get_closest_marker('pipelines'):
        report.sections.append(('pipeline', (
            f'{item.callspec.params["pipeline"]!r} is drawn by '
            f'FUEL_TEST_SEED={SEED}, and all are by --full')))
    return report


@pytest.fixture(scope='session')
def homes(tmp_path_factory):
    """Return where the homes are: a numbered directory for each would take
    longer the more there are."""
    return tmp_path_factory.mktemp('homes')


@pytest.fixture(autouse=True)
def own_home(homes, monkeypatch):
    """Keep a test away from the user's files and settings.

    Returns
    -------
    pathlib.Path
        The home directory of the test, empty at first; ``data`` in it is
        the only directory of ``config.data_path``.

    """
    home = Path(tempfile.mkdtemp(dir=homes))
    for name in list(os.environ):
        if name.startswith(('FUEL_', 'XDG_')):
            monkeypatch.delenv(name)
    for name in ('HOME', 'USERPROFILE', 'LOCALAPPDATA'):
        monkeypatch.setenv(name, str(home))
    (home / 'data').mkdir()
    monkeypatch.setenv('FUEL_DATA_PATH', str(home / 'data'))
    return home


@pytest.fixture(autouse=True)
def own_settings(own_home):
    """Give each test unread, unassigned settings; undo what it assigns."""
    state = fuel.config.__dict__
    before = {**state, '_settings': copy.deepcopy(state['_settings'])}
    state['_must_load'] = True
    yield
    state.clear()
    state.update(before)


@pytest.fixture(autouse=True)
def own_seed():
    """Start the global random generators from the seed of the run."""
    numpy.random.seed(SEED)
    random.seed(SEED)


@pytest.fixture(scope='module')
def trees():
    """Forget the syntax trees of Fuel after the tests of a module.

    They are a million objects, which each later collection of garbage would
    look at.
    """
    from support import sources
    yield
    sources.modules.cache_clear()
