"""What importing ``fuel.utils`` costs and gives."""
import subprocess
import sys

import fuel.utils


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
