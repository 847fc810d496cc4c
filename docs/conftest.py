"""Pages that are run by themselves write their files elsewhere.

``pytest --doctest-glob='*.rst' docs/extending.rst`` runs one of them.
"""
import pytest


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """Run each page in a folder of its own."""
    monkeypatch.chdir(tmp_path)
