"""Explain why compiled modules cannot be imported."""
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

__all__ = ['explain_missing']

MODULE = Path('fuel', 'kernels', 'rows')


def explain_missing(error: ImportError) -> str:
    """Return a text that explains why compiled modules cannot be imported.

    The reason is a checkout that is not built, which may hide an installed
    Fuel, or a broken installation.
    """
    root = Path(__file__).parents[2]
    version = '{}.{}'.format(*sys.version_info)
    if not (root / MODULE).with_suffix('.pyx').exists() or is_built(root):
        return (f'the compiled parts of Fuel in {root / "fuel"} cannot be '
                f'imported ({error}): install Fuel again, or in a checkout '
                'build them again with "python setup.py build_ext --inplace"')
    remedy = (f'build it with "{sys.executable} -m pip install -e {root}", or '
              'where its requirements are installed with "python setup.py '
              'build_ext --inplace"')
    installed = hidden_by(root)
    if installed is None:
        return (f'Fuel is imported from the checkout {root}, which is not '
                f'built for Python {version} ({error}): {remedy}')
    return (f'the checkout {root} hides the Fuel that is installed in '
            f'{installed}: Python found {root / "fuel"} first, and that is '
            f'not built for Python {version} ({error}). Run Python in '
            f'another folder or with -P, or {remedy}')


def is_built(root: Path) -> bool:
    """Return whether a folder has compiled modules for this interpreter."""
    return any((root / f'{MODULE}{suffix}').exists()
               for suffix in EXTENSION_SUFFIXES)


def hidden_by(root: Path) -> Path | None:
    """Return the folder of another, built Fuel on ``sys.path``, or None."""
    for entry in sys.path:
        folder = Path(entry or '.').resolve()
        if folder != root.resolve() and is_built(folder):
            return folder
    return None
