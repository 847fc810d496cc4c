"""Hugging Face's package has the name of a folder of these tests."""
import importlib
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope='session')
def hugging_face():
    """Return the package `datasets` that is installed."""
    tests = Path(__file__).parents[2]
    path = list(sys.path)
    sys.path[:] = [each for each in path if Path(each) != tests]
    try:
        return importlib.import_module('datasets')
    finally:
        sys.path[:] = path
