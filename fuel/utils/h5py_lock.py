"""A fork finds h5py's lock free, whichever h5py it is.

Recent ones take the lock for the time of a fork. With others, a child that
is forked while a thread reads a file waits for that thread, which it does
not have, for ever.
"""
import os

from h5py import _objects

if (hasattr(os, 'register_at_fork')
        and not hasattr(_objects, '_phil_before_fork')):
    os.register_at_fork(before=_objects.phil.acquire,
                        after_in_parent=_objects.phil.release,
                        after_in_child=_objects.phil.release)
