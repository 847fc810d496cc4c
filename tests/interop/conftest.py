"""Tests of a bridge run in an environment that has the other library."""
import os

import pytest
from support import bridges

from fuel.testing import ReplayProcess


def pytest_configure(config):
    """Let Keras run on PyTorch, which is installed with it."""
    if 'keras' in config.getoption('bridges'):
        os.environ.setdefault('KERAS_BACKEND', 'torch')
        # On PyTorch it reads tensors in a way that NumPy is to give up.
        config.addinivalue_line(
            'filterwarnings', 'ignore:__array__ implementation')


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
