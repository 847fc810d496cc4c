"""Encrypted connections: who has a key may connect, nobody reads along.

The keys are those of pyzmq's own certificates.  A server's directory holds
``server.key_secret`` and, in ``clients``, the public keys of those who may
connect; a client's holds ``client.key_secret`` and ``server.key``.
"""
from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import zmq.auth
from zmq.auth.thread import ThreadAuthenticator


def make_keys(directory: Any, clients: Sequence[str]) -> list[Path]:
    """Make the keys of a server and of its clients.

    Parameters
    ----------
    directory : str or path
        Where the directories ``server`` and one for each client go.  The
        keys of a server that is there already are kept, and clients added.

    Returns
    -------
    list of pathlib.Path
        The directories made for the clients, to be copied to their hosts.

    Raises
    ------
    ValueError
        If a name is not a plain file name, or taken.

    """
    root = Path(directory)
    server = root / 'server'
    for name in clients:
        if not name.replace('-', '').replace('_', '').isalnum() \
                or name == 'server' or (root / name).exists():
            raise ValueError(
                f'the client name {name!r} is taken, or more than letters, '
                "digits, '-' and '_'")
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
    """Return the keys in a file.

    Raises
    ------
    OSError
        If there are none; the text says how they are made.

    """
    try:
        public, private = zmq.auth.load_certificate(path)
    except (OSError, ValueError) as error:
        raise OSError(
            f'no keys in {path} ({error}): make them with fuel-server keys'
        ) from None
    if secret and private is None:
        raise OSError(f'{path} has no secret key')
    return public, private


def protect_server(context: Any, socket: Any, directory: Any) -> Any:
    """Let only clients with known keys connect to a socket."""
    root = Path(directory)
    public, secret = _load(root / 'server.key_secret', secret=True)
    authenticator = ThreadAuthenticator(context)
    authenticator.start()
    authenticator.configure_curve(domain='*', location=str(root / 'clients'))
    socket.curve_publickey, socket.curve_secretkey = public, secret
    socket.curve_server = True
    return authenticator


def protect_client(socket: Any, directory: Any) -> None:
    """Use a client's keys for a socket that is not yet connected."""
    root = Path(directory)
    public, secret = _load(root / 'client.key_secret', secret=True)
    server, _ = _load(root / 'server.key', secret=False)
    socket.curve_publickey, socket.curve_secretkey = public, secret
    socket.curve_serverkey = server
