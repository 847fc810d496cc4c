"""Tests of a bridge run in an environment that has the other library."""
import importlib
import os
import sys
from pathlib import Path

import pytest
from support import bridges, stuck

from fuel.testing import ReplayProcess


def pytest_configure(config):
    """Prepare for the bridges that were asked for."""
    if 'keras' in config.getoption('bridges'):
        # On PyTorch, which is installed with it.
        os.environ.setdefault('KERAS_BACKEND', 'torch')
        # There it reads tensors in a way that NumPy is to give up.
        config.addinivalue_line(
            'filterwarnings', 'ignore:__array__ implementation')
    if 'augment' in config.getoption('bridges'):
        # It would ask the package index for a newer version.
        os.environ.setdefault('NO_ALBUMENTATIONS_UPDATE', '1')
        importlib.import_module('support.torchvision_operators')
    if 'trainers' in config.getoption('bridges'):
        import_trainers()
    if 'ray' in config.getoption('bridges'):
        # The processes of a cluster are forks, and live as long as it does.
        stuck.spare_forks()
        # Ray would keep a token in the home of the test that starts it first,
        # and ask what later tests start for it.
        os.environ.setdefault('RAY_AUTH_MODE', 'disabled')
        # Ray's own calls of what is deprecated.
        for filtered in ('FutureWarning:ray', 'DeprecationWarning:ray',
                         'ResourceWarning'):
            config.addinivalue_line('filterwarnings', f'ignore::{filtered}')


def import_trainers():
    """Import the trainers while no folder of the tests hides what they need.

    The tests of Fuel's transformers are in a folder of that name.
    """
    hidden = [path for path in sys.path
              if Path(path, 'transformers', 'test_mix.py').exists()]
    for path in hidden:
        sys.path.remove(path)
    for name in ('transformers', 'accelerate', 'lightning'):
        importlib.import_module(name)
    sys.path[:0] = hidden


def pytest_ignore_collect(collection_path, config):
    """Leave out the bridges that were not asked for by ``--with``."""
    return bridges.is_left_out(
        collection_path, config.getoption('bridges')) or None


def pytest_generate_tests(metafunc):
    """Give a test what the bridges asked for have to be run."""
    if 'runnable' in metafunc.fixturenames:
        metafunc.parametrize('runnable', [
            part for bridge in metafunc.config.getoption('bridges')
            for part in (*bridges.modules(bridge), *bridges.pages(bridge),
                         *bridges.BRIDGES[bridge].benchmarks)])


@pytest.fixture(scope='session')
def another_process():
    """Return the process in which contracts continue what they saved."""
    with ReplayProcess() as process:
        yield process
