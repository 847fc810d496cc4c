"""Build the extension modules; everything else is in ``setup.cfg``."""
import os
import sys
from pathlib import Path

import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup

# FUEL_CHECKED_KERNELS=1 builds the kernels with every check on: an index
# outside an array raises instead of reading whatever lies there.
CHECKED = os.environ.get('FUEL_CHECKED_KERNELS', '0') not in ('', '0')

DIRECTIVES = {
    'language_level': 3,
    'boundscheck': CHECKED,
    'wraparound': False,
    'initializedcheck': CHECKED,
    'cdivision': True,
}


def compile_arguments():
    """Return the compiler's flags.

    No fused multiply-add, so that a kernel rounds where NumPy rounds. Debug
    information only where somebody looks for a fault: with it a build takes
    half as long again, and a module is eight times as large.
    """
    if os.name == 'nt':
        return []
    return ['-O3', '-ffp-contract=off', '-g' if CHECKED else '-g0']


def extensions():
    """Return one extension for each ``.pyx`` below ``fuel``."""
    return [
        Extension(
            '.'.join(path.with_suffix('').parts), [str(path)],
            include_dirs=[numpy.get_include()],
            define_macros=[
                ('NPY_NO_DEPRECATED_API', 'NPY_1_7_API_VERSION'),
                # Built with NumPy 2, a module also runs with 1.23.
                ('NPY_TARGET_VERSION', 'NPY_1_23_API_VERSION')],
            extra_compile_args=compile_arguments())
        for path in sorted(Path('fuel').rglob('*.pyx'))]


def only_lists_sources():
    """Return whether nothing is compiled: translating to C takes a while."""
    return sys.argv[1:2] in (['egg_info'], ['dist_info'], ['sdist']) and (
        not any(argument.startswith(('b', 'develop', 'editable', 'install'))
                for argument in sys.argv[2:]))


setup(ext_modules=extensions() if only_lists_sources() else cythonize(
          extensions(), compiler_directives=DIRECTIVES),
      options={'build_ext': {'parallel': os.cpu_count()}})
