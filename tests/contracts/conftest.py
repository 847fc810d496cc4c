"""Fixtures of the contract tests."""
import pytest
from support import pipelines

from fuel.testing import ReplayProcess


@pytest.fixture(scope='session')
def files(tmp_path_factory):
    """Return the folder of the files that the pipelines read.

    They only read, so that one folder serves every test.

    """
    folder = tmp_path_factory.mktemp('pipelines')
    pipelines.write_files(folder)
    return folder


@pytest.fixture(scope='module')
def another_process():
    """Return the process in which saved positions are continued."""
    with ReplayProcess() as process:
        yield process
