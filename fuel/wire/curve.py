"""Encrypted connections between servers and clients that have keys.

The files of keys are pyzmq's certificates.  A server's directory has
``server.key_secret`` and, in ``clients``, the public keys of the clients that
may connect.  A client's directory has ``client.key_secret`` and
``server.key``.
"""
from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import zmq
import zmq.auth
from zmq.auth.thread import ThreadAuthenticator


def make_keys(directory: str | os.PathLike[str],
              clients: Sequence[str]) -> list[Path]:
    """Make the keys of a server and of its clients."""
    root = Path(directory)
    server = root / 'server'
    for name in clients:
        if not name.replace('-', '').replace('_', '').isalnum() \
                or name == 'server' or (root / name).exists():
            raise ValueError(
                f'the client name {name!r} is taken, or does not consist of '
                "letters, digits, '-' and '_'")
    _make_private(server / 'clients')
    if not (server / 'server.key_secret').exists():
        zmq.auth.create_certificates(server, 'server')
        _hide(server / 'server.key_secret')
    made = []
    for name in clients:
        _make_private(root / name)
        zmq.auth.create_certificates(root / name, 'client')
        _hide(root / name / 'client.key_secret')
        (root / name / 'client.key').rename(
            server / 'clients' / f'{name}.key')
        shutil.copy(server / 'server.key', root / name / 'server.key')
        made.append(root / name)
    return made


def _make_private(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    directory.chmod(0o700)


def _hide(path: Path) -> None:
    os.chmod(path, 0o600)


def _load(path: Path, secret: bool) -> tuple[bytes, Any]:
    """Return the public and the secret key in a file."""
    try:
        public, private = zmq.auth.load_certificate(path)
    except (OSError, ValueError) as error:
        raise OSError(
            f'no keys in {path} ({error}): make them with fuel-server keys'
        ) from None
    if secret and private is None:
        raise OSError(f'{path} has no secret key')
    return public, private


class ClientKeys:
    """The public keys of clients, from the files in a directory.  The files
    may change at any time."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._seen: tuple[tuple[str, int, int], ...] = ()
        self._keys: frozenset[bytes] = frozenset()

    def current(self) -> frozenset[bytes]:
        """Return the public keys that are in the directory now."""
        try:
            paths = sorted(self._directory.glob('*.key'))
            seen = tuple((path.name, stat.st_mtime_ns, stat.st_ino)
                         for path in paths for stat in [path.stat()])
        except OSError:
            # A key is being removed; the next call finds the remaining ones.
            return self._keys
        if seen != self._seen:
            keys = []
            for path in paths:
                with suppress(OSError, ValueError):
                    keys.append(zmq.auth.load_certificate(path)[0])
            self._seen, self._keys = seen, frozenset(keys)
        return self._keys

    def callback(self, domain: str, key: bytes) -> bool:
        """Return whether a client with this public key may connect."""
        return key in self.current()


class ServerKeys:
    """The keys of a server, and of the clients that may connect to it."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        root = Path(directory)
        self._public, self._secret = _load(
            root / 'server.key_secret', secret=True)
        if not (root / 'clients').is_dir():
            raise OSError(f'no directory {root / "clients"} with the keys of '
                          'clients: make them with fuel-server keys')
        self.clients = ClientKeys(root / 'clients')
        self._authenticator: ThreadAuthenticator | None = None

    def protect(self, context: zmq.Context[Any],
                socket: zmq.Socket[Any]) -> None:
        """Encrypt a socket's connections, and let only clients with known keys
        connect."""
        self._authenticator = ThreadAuthenticator(context)
        self._authenticator.start()
        self._authenticator.configure_curve_callback(
            domain='*', credentials_provider=self.clients)
        socket.curve_publickey = self._public
        socket.curve_secretkey = self._secret
        socket.curve_server = True

    def stop(self) -> None:
        """End the thread that checks keys."""
        if self._authenticator is not None:
            self._authenticator.stop()
            self._authenticator = None


def protect_client(socket: zmq.Socket[Any],
                   directory: str | os.PathLike[str]) -> None:
    """Set a client's keys on a socket that is not yet connected."""
    root = Path(directory)
    public, secret = _load(root / 'client.key_secret', secret=True)
    server, _ = _load(root / 'server.key', secret=False)
    socket.curve_publickey, socket.curve_secretkey = public, secret
    socket.curve_serverkey = server
