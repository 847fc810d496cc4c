"""Pages that are run by themselves write their files elsewhere.

``pytest --doctest-glob='*.rst' docs/extending.rst`` runs one of them.
"""
import pytest

@pytest.fixture(autouse=True)
def own_folder(request, tmp_path, monkeypatch):
    """Run each page in a folder of its own, with the files that it shows."""
    monkeypatch.chdir(tmp_path)
    if request.node.name == 'hdf5_layouts.rst':
        from support.layouts import write_all
        write_all()
