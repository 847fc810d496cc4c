"""Peers that no client of ours would be, most of them over plain sockets."""
import contextlib
import random
import socket
import struct
import time
from concurrent.futures import ThreadPoolExecutor

import zmq

from fuel.wire import pack_header
from fuel.wire.curve import protect_client
from fuel.wire.header import VERSION

GREETING = (b'\xff' + bytes(8) + b'\x7f\x03\x01' + b'NULL'.ljust(20, b'\0')
            + bytes(32))
HELLO = pack_header({'type': 'hello', 'version': VERSION, 'client': 'raw',
                     'sources': 1, 'hwm': 10})


def frame(body, flags=0):
    """Return a frame of ZMTP: flag 1 is "more follow", 4 a command."""
    if len(body) < 256:
        return struct.pack('>BB', flags, len(body)) + body
    return struct.pack('>BQ', flags | 2, len(body)) + body


def ping(ttl=10):
    """Return a sign of life, valid for so many tenths of a second."""
    return frame(b'\x04PING' + struct.pack('>H', ttl), 4)


def ready(identity=b''):
    """Return the end of a handshake, with the name a peer gives itself."""
    fields = (b'Socket-Type', b'DEALER'), (b'Identity', identity)
    return frame(b'\x05READY' + b''.join(
        struct.pack('>B', len(name)) + name + struct.pack('>I', len(value))
        + value for name, value in fields), 4)


def connect(port, identity=b''):
    """Return a socket that has shaken hands with a server, as a DEALER."""
    peer = socket.create_connection(('127.0.0.1', port), 5)
    peer.sendall(GREETING + ready(identity))
    peer.settimeout(0.5)
    return peer


def cut(peer):
    """Cut a connection at once, whatever is under way."""
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                    struct.pack('ii', 1, 0))
    peer.close()


@contextlib.contextmanager
def connected(port, identity=b''):
    """Yield a peer, which is cut then."""
    peer = connect(port, identity)
    try:
        yield peer
    finally:
        cut(peer)


def greet(port):
    """Greet 400 times."""
    with connected(port) as peer:
        peer.sendall(frame(HELLO) * 400)


def send_bytes(port):
    """Send 300 messages of a byte."""
    with connected(port) as peer:
        peer.sendall(frame(b'x') * 300)
        time.sleep(0.02)


def send_pings(port):
    """Send messages, and then signs of life."""
    with connected(port) as peer:
        peer.sendall(frame(b'x') * 400 + ping() * 20)
        time.sleep(0.05)
        peer.sendall(ping() * 20)


def take_a_name(port):
    """Send as much as is taken, under a name that others have as well."""
    with connected(port, b'the same name') as peer:
        for _ in range(40):
            peer.sendall(frame(b'x' * 2000) * 50)


def send_much(port):
    """Send 20 MB in messages of 100 KB."""
    with connected(port) as peer:
        for _ in range(200):
            peer.sendall(frame(b'x' * 100_000))


def send_no_end(port):
    """Send 20 MB of one message that does not end."""
    with connected(port) as peer:
        for _ in range(200):
            peer.sendall(frame(b'x' * 50_000, 1) * 2)


def say_nothing(port):
    """Keep 50 connections for a while; a half of them shake hands."""
    with contextlib.ExitStack() as stack:
        for place in range(50):
            stack.enter_context(
                connect(port) if place % 2 else
                socket.create_connection(('127.0.0.1', port), 5))
        time.sleep(0.5)


BURSTS = {burst.__name__: burst for burst in (
    greet, send_bytes, send_pings, take_a_name, send_much, send_no_end,
    say_nothing)}


def send_encrypted(port, keys, rng):
    """Send messages with a key that the server admits, and go."""
    body = rng.choice([b'x', b'x', HELLO, b'x' * 100_000])
    with zmq.Context() as context, context.socket(zmq.DEALER) as peer:
        peer.linger, peer.sndhwm, peer.heartbeat_ivl = 0, 0, 50
        protect_client(peer, keys)
        peer.connect(f'tcp://127.0.0.1:{port}')
        peer.send(pack_header({'type': 'status'}))
        peer.poll(2000)
        for _ in range(rng.randrange(1, 6)):
            for _ in range(100 if len(body) > 1000 else 300):
                peer.send(body)
            time.sleep(0.1)


def send_bursts(port, kind, rng, keys, end):
    """Send bursts of a kind until a time; the server may cut them off."""
    while time.time() < end:
        with contextlib.suppress(OSError):
            if keys:
                send_encrypted(port, keys, rng)
            else:
                BURSTS[kind](int(port))
        time.sleep(rng.random() / 20)


def disturb(port, kinds, seed, keys, end):
    """Send bursts of several kinds at a time; raise what a thread raises."""
    with ThreadPoolExecutor(32) as pool:
        done = [pool.submit(send_bursts, port, kind,
                            random.Random(f'{kind} {place} {seed}'), keys, end)
                for place, kind in enumerate(kinds.split(','))]
    for future in done:
        future.result()
