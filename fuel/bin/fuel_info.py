"""The command ``fuel-info``."""
import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

import h5py

__all__ = ['main']

BLOCK = """
{title}
{rule}

The command used to generate this file is

    {command}

Relevant versions are

    H5PYDataset      {interface}
    fuel.converters  {converters}
"""


def _text(value: Any) -> str:
    """Return an attribute as text, however it was written."""
    if isinstance(value, bytes):
        return value.decode('utf8', 'replace')
    return str(value)


def provenance(path: str, attributes: Any) -> str:
    """Return the block that says how a file was made."""
    title = f'Metadata for {os.path.basename(path)}'
    values = [_text(attributes.get(name, 'unknown')) for name in (
        'fuel_convert_command', 'h5py_interface_version',
        'fuel_convert_version')]
    return BLOCK.format(title=title, rule='=' * len(title),
                        command=values[0], interface=values[1],
                        converters=values[2])


def main(args: Sequence[str] | None = None) -> int:
    """Print what is known about an HDF5 file.

    Parameters
    ----------
    args : sequence of str, optional
        The arguments of the command. Default ``sys.argv[1:]``.

    Returns
    -------
    int
        The exit status: 0 if the file could be read.
    """
    parser = argparse.ArgumentParser(
        prog='fuel-info',
        description='Tell how a converted file was made and what it holds.')
    parser.add_argument('filename', help='an HDF5 file')
    arguments = parser.parse_args(args)
    try:
        with h5py.File(arguments.filename, 'r') as h5file:
            print(provenance(arguments.filename, h5file.attrs))
    except OSError as error:
        parser.error(f'cannot read {arguments.filename!r}: {error}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
