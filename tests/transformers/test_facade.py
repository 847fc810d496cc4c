"""Names and time of ``import fuel.transformers``."""
import pickle
import subprocess
import sys

import pytest

from fuel import transformers


@pytest.mark.parametrize('name', transformers.__all__)
def test_class_is_pickled_under_its_public_path(name):
    """The pickle does not name the file that the class is defined in."""
    cls = getattr(transformers, name)
    assert ('fuel.transformers', name) == (cls.__module__, cls.__qualname__)
    assert cls is pickle.loads(pickle.dumps(cls))
    assert b'transformers._' not in pickle.dumps(cls)


def test_unknown_name_raises():
    """Any module does so."""
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = transformers.Nothing


def test_import_is_cheap():
    """Neither processes nor images nor ZeroMQ are needed for it."""
    code = (
        'import fuel.transformers, fuel.transformers.defaults, sys\n'
        "print(sorted(set(sys.modules) & {'multiprocessing', 'zmq', 'PIL', "
        "'scipy', 'tables', 'requests'}))")
    output = subprocess.run(
        [sys.executable, '-c', code], capture_output=True, text=True,
        check=True, timeout=60)
    assert '[]\n' == output.stdout
