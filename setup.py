"""Build the extension modules; everything else is in ``setup.cfg``."""
import hashlib
import os
import shutil
import sys
from pathlib import Path
from threading import Lock

import Cython
import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

# FUEL_CHECKED_KERNELS=1 builds the kernels with every check on: an index
# outside an array raises instead of reading whatever lies there.
CHECKED = os.environ.get('FUEL_CHECKED_KERNELS', '0') not in ('', '0')
# A folder of built kernels, from which bin/test and its like take those of
# the same sources.
KEPT = os.environ.get('FUEL_KEPT_KERNELS')

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


def digest(extension):
    """Return a hash of all that an extension is built from and with."""
    result = hashlib.sha256(repr([
        extension.name, CHECKED, sys.version, Cython.__version__,
        numpy.__version__, *map(os.environ.get, ('CC', 'CFLAGS', 'LDFLAGS')),
        ]).encode())
    for path in [__file__, *extension.sources,
                 *sorted(Path('fuel').rglob('*.px[di]'))]:
        result.update(hashlib.sha256(Path(path).read_bytes()).digest())
    return result.hexdigest()


class BuildKernels(build_ext):
    """Translate and compile extensions, or take those that were kept."""

    # Cython runs in one thread; meanwhile the others compile.
    translation = Lock()

    def build_extension(self, ext):
        """Build an extension, in one of several threads."""
        built = Path(self.get_ext_fullpath(ext.name))
        kept = KEPT and Path(KEPT, f'{digest(ext)}-{built.name}')
        if kept and kept.exists():
            kept.touch()
            built.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(kept, built)
            return
        with self.translation:
            translated, = cythonize([ext], compiler_directives=DIRECTIVES)
        ext.sources, ext.depends = translated.sources, translated.depends
        super().build_extension(ext)
        if kept:
            # In one step, so that what is kept is whole.
            shutil.copy(built, kept.with_suffix('.new'))
            kept.with_suffix('.new').replace(kept)


setup(ext_modules=extensions(), cmdclass={'build_ext': BuildKernels},
      options={'build_ext': {'parallel': os.cpu_count()}})
