"""Names of other projects that the manual refers to, for intersphinx.

The inventories that the projects publish need a network. Those written here
hold only the names in ``inventories.txt``, so that the manual is built without
one, and a wrong name fails the build.
"""
import builtins
import zlib
from pathlib import Path

HERE = Path(__file__).parent
EXCEPTIONS = [
    f'{name} py:exception 1 library/exceptions.html#$ -'
    for name, value in sorted(vars(builtins).items())
    if isinstance(value, type) and issubclass(value, BaseException)]


def write_inventories(folder):
    """Write one inventory for each project; return the mapping to them.

    Parameters
    ----------
    folder : pathlib.Path

    Returns
    -------
    dict
        For ``intersphinx_mapping``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    result = {}
    text = (HERE / 'inventories.txt').read_text('utf-8')
    for part in text.strip().split('\n\n'):
        head, *entries = part.splitlines()
        project, address = head.split()
        if project == 'python':
            entries += EXCEPTIONS
        path = folder / f'{project}.inv'
        path.write_bytes(
            f'# Sphinx inventory version 2\n# Project: {project}\n'
            '# Version: \n# The remainder of this file is compressed using '
            'zlib.\n'.encode()
            + zlib.compress('\n'.join([*entries, '']).encode()))
        result[project] = (address, str(path))
    return result
