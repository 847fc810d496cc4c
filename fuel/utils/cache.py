"""Public import path of the functions that copy files to local disks."""
from fuel.remote.local_copies import (
    cache_dataset, cache_file, copy_from_server_to_local)

__all__ = ['cache_dataset', 'cache_file', 'copy_from_server_to_local']

for _copier in (cache_dataset, cache_file, copy_from_server_to_local):
    # Pickles and the manual name the public path.
    _copier.__module__ = __name__
del _copier
