"""Errors of files that are in order: of filters, and of other versions."""
from __future__ import annotations

import h5py

from fuel.exceptions import DamagedFileError
from fuel.storage.layout import ChunkFilter
from fuel.storage.plugin_filters import DECODERS, codes
from fuel.utils.extras import how_to_install
from fuel.utils.hdf5_errors import is_lack_of_descriptors, with_advice


def raise_lack(error: BaseException, path: str, name: str,
               filters: tuple[ChunkFilter, ...]) -> None:
    """Raise an error if what failed to read does not mean damage."""
    if is_lack_of_descriptors(error):
        raise with_advice(error, path) from error
    for one in filters:
        if not h5py.h5z.filter_avail(one.code):
            fast = (
                f'{how_to_install("codecs")}, which decodes them on all '
                'cores, or '
                if one.code in DECODERS and not codes()
                else 'for most filters: ')
            raise OSError(
                f'{path}, source {name!r}: its chunks went through the '
                f'filter {one.code} ({one.name}), which HDF5 does not have '
                f'here; {fast}pip install hdf5plugin, and import hdf5plugin '
                f'first') from error


def other_version(path: str) -> DamagedFileError:
    """Return the error that an epoch has read another version of a file."""
    return DamagedFileError(
        f'{path} was changed or replaced while an epoch read it, so old and '
        f'new rows would be mixed: begin another epoch, which reads the new '
        f'one')
