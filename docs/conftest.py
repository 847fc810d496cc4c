"""Pages that are run by themselves write their files elsewhere.

``pytest --doctest-glob='*.rst' docs/extending.rst`` runs one of them.
"""
from pathlib import Path

import numpy
import pytest

# What is written into a folder of its own.
FOLDERS = {'Minari': 'minari', 'The Well': 'fluid',
           'MultimodalUniverse': 'sky'}


@pytest.fixture(autouse=True)
def own_folder(request, tmp_path, monkeypatch):
    """Run each page in a folder of its own, with the files that it shows."""
    monkeypatch.chdir(tmp_path)
    if request.node.name == 'layouts.rst':
        from tests.support.layouts import MINIATURES
        for miniature in MINIATURES:
            folder = Path(FOLDERS.get(miniature.name, ''))
            folder.mkdir(exist_ok=True)
            miniature.write(folder, numpy.random.default_rng(1))
