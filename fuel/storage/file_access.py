"""The former module of `FileAccess` and `RemoteAccess`, which pickles name."""
from fuel.storage.open_files import FileAccess, RemoteAccess  # noqa: F401
