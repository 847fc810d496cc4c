"""Hugging Face's package has the name of a folder of these tests."""
import importlib
import sys
from pathlib import Path

import pytest


def import_hugging_face():
    """Import the package `datasets` that is installed, for examples too."""
    tests = Path(__file__).parents[2]
    path = list(sys.path)
    sys.path[:] = [each for each in path if Path(each) != tests]
    try:
        return importlib.import_module('datasets')
    finally:
        sys.path[:] = path


HUGGING_FACE = import_hugging_face()


@pytest.fixture
def hugging_face():
    """Return Hugging Face's package."""
    return HUGGING_FACE
