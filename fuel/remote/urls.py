"""URLs of remote files, and the credentials in URLs and options."""
from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

#: Arguments of the fsspec file system for a URL.
StorageOptions: TypeAlias = Mapping[str, Any]

# A scheme has two letters or more, since a single letter is a drive of
# Windows. There may be chains of fsspec, such as simplecache::s3://
_URL = re.compile(r'(?:[A-Za-z][A-Za-z0-9+.-]+::)*[A-Za-z][A-Za-z0-9+.-]+://')
HIDDEN = '***'
# Schemes of URLs that never lead to a file of this computer, and the package
# of the file system for each; '' if Fuel's extra brings it.
SERVERS = {'abfs': 'adlfs', 'abfss': 'adlfs', 'az': 'adlfs', 'gcs': 'gcsfs',
           'gs': 'gcsfs', 'hf': 'huggingface_hub', 'http': '', 'https': '',
           's3': '', 's3a': ''}

# Options, and parameters of queries, whose values are not secrets.
_PUBLIC_OPTIONS = frozenset({
    'account_name', 'addressing_style', 'client_kwargs', 'config_kwargs',
    'consistency', 'default_block_size', 'endpoint_url', 'project',
    'protocol', 'region', 'region_name', 's3', 'signature_version',
    'skip_instance_cache'})
_PUBLIC_QUERY = frozenset({
    'alt', 'dl', 'download', 'export', 'format', 'id', 'path', 'raw', 'ref',
    'rev', 'version', 'versionid'})
# Shorter texts are not hidden: they are parts of too many other words.
_SHORTEST_SECRET = 4


def is_url(path: object) -> bool:
    """Return whether a path is the URL of a remote file.

    Examples
    --------
    >>> is_url('s3://bucket/train.hdf5'), is_url('/data/train.hdf5')
    (True, False)

    """
    return isinstance(path, str) and _URL.match(path) is not None


def protocol_of(url: str) -> str:
    """Return the scheme of a URL; for a chain of URLs, the first one."""
    return url.partition('://')[0].partition('::')[0].lower()


def file_name(path: str) -> str:
    """Return the name of a file; for a URL, the last part of its path."""
    if not is_url(path):
        return os.path.basename(path)
    # Imported only for a URL, since most data sets are local files.
    from urllib.parse import unquote, urlsplit
    # A bucket without a key is not a file.
    parts = urlsplit(path.rpartition('::')[2])
    return os.path.basename(unquote(parts.path))


def shown(url: str) -> str:
    """Return a URL in which possible credentials are replaced by asterisks.

    Examples
    --------
    >>> shown('https://user:word@host/a.hdf5?X-Amz-Signature=12ab&raw=1')
    'https://***@host/a.hdf5?X-Amz-Signature=***&raw=1'

    """
    return _replaced(url, HIDDEN)


def without_secrets(url: str) -> str:
    """Return a URL without the parts that may be credentials."""
    return _replaced(url, None)


def _replaced(url: str, by: str | None) -> str:
    from urllib.parse import urlsplit, urlunsplit
    chain, _, last = url.rpartition('::')
    parts = urlsplit(last)
    user, _, host = parts.netloc.rpartition('@')
    if user and by is not None:
        host = f'{by}@{host}'
    query = []
    for field in parts.query.split('&') if parts.query else []:
        name, equals, _ = field.partition('=')
        if name.lower() in _PUBLIC_QUERY:
            query.append(field)
        elif by is not None:
            query.append(f'{name}={by}' if equals else by)
    return (f'{chain}::' if chain else '') + urlunsplit(
        (parts.scheme, host, parts.path, '&'.join(query), ''))


def public_options(options: StorageOptions) -> dict[str, Any]:
    """Return the options without those that may be credentials."""
    found: dict[str, Any] = {}
    for name, value in options.items():
        if isinstance(value, (bool, int, float)) or value is None:
            found[name] = value
        elif name in _PUBLIC_OPTIONS:
            if isinstance(value, Mapping):
                found[name] = public_options(value)
            elif isinstance(value, str):
                found[name] = without_secrets(value) if (
                    is_url(value)) else value
    return found


def is_spawning() -> bool:
    """Return whether this process is starting a child process.

    The child may get credentials, as a forked child has them.
    """
    # Not imported here: it is heavy, and starting a child imports it.
    context = sys.modules.get('multiprocessing.context')
    return context is not None and context.get_spawning_popen() is not None


class Secrets:
    """The credentials in a URL and its options, to be hidden in texts."""

    def __init__(self, url: str, options: StorageOptions) -> None:
        words = {*_secrets_of_url(url), *_secrets_of(options, False)}
        self._words = sorted(
            (word for word in words if len(word) >= _SHORTEST_SECRET),
            key=len, reverse=True)

    def hide(self, text: object) -> str:
        """Return a text in which the credentials are replaced."""
        hidden = str(text)
        for word in self._words:
            hidden = hidden.replace(word, HIDDEN)
        return hidden


def _secrets_of_url(url: str) -> Iterator[str]:
    from urllib.parse import parse_qsl, quote, unquote, urlsplit
    parts = urlsplit(url.rpartition('::')[2])
    user = parts.netloc.rpartition('@')[0]
    yield from (user, *user.split(':', 1))
    yield from map(unquote, user.split(':', 1))
    for name, value in parse_qsl(parts.query):
        if name.lower() not in _PUBLIC_QUERY:
            yield from (value, quote(value, safe=''))


def _secrets_of(value: object, is_public: bool) -> Iterator[str]:
    """Yield the texts in options that are not known to be public."""
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield from _secrets_of(part, name in _PUBLIC_OPTIONS)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for part in value:
            yield from _secrets_of(part, is_public)
    elif isinstance(value, bytes):
        yield from _secrets_of(value.decode('latin-1'), is_public)
    elif isinstance(value, str):
        if is_url(value):
            yield from _secrets_of_url(value)
        elif not is_public:
            yield value
            # An error may quote a single word, such as the last of 'Bearer
            # ...'.
            yield from value.split()
