"""Time and names of an import of ``fuel.utils``."""
import pkgutil
import subprocess
import sys

import pytest

import fuel.kernels
import fuel.transport
import fuel.utils
import fuel.wire

# Imports the modules of its arguments, each as the first of a process.
EACH_FIRST = """
import importlib, os, sys
import h5py, numpy, zmq
for name in sys.argv[1:]:
    child = os.fork()
    if not child:
        importlib.import_module(name)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        sys.exit(f'{name} cannot be imported first')
"""


def test_import_utils_loads_no_heavy_module():
    """Only NumPy and the standard library are needed."""
    code = ('import sys, fuel.utils; print(sorted({"zmq", "h5py",'
            ' "requests", "multiprocessing", "tarfile", "platformdirs"}'
            ' & set(sys.modules)))')
    result = subprocess.run([sys.executable, '-c', code], check=True,
                            capture_output=True, text=True, timeout=60)
    assert '[]' == result.stdout.strip()


def test_facade_lists_every_public_name():
    """``__all__`` is sorted and complete."""
    assert sorted(fuel.utils.__all__) == fuel.utils.__all__
    for name in fuel.utils.__all__:
        assert hasattr(fuel.utils, name)


@pytest.mark.parametrize('package', [
    fuel.kernels, fuel.transport, fuel.utils, fuel.wire],
    ids=lambda package: package.__name__)
def test_each_module_can_be_imported_first(package):
    """None relies on what another one has imported before."""
    names = [f'{package.__name__}.{module.name}'
             for module in pkgutil.iter_modules(package.__path__)]
    result = subprocess.run(
        [sys.executable, '-c', EACH_FIRST, package.__name__, *names],
        capture_output=True, text=True, timeout=100, check=False)
    assert result.returncode == 0, result.stderr
