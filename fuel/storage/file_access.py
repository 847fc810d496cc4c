"""Pickles name the classes of access to a file in this module."""
from fuel.storage.open_files import FileAccess, RemoteAccess  # noqa: F401
