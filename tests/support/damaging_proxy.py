"""A proxy between a server and its client that damages what they send."""
import contextlib
import random
import select
import socket
import threading

import zmq


class Damage:
    """Changes bytes at random, of about one message in so many.

    `every`: how many messages of any size, or kilobytes of a connection.
    """

    def __init__(self, seed, every):
        self.rng = random.Random(seed)
        self.every = every
        self.count = 0

    def __call__(self, content):
        """Return bytes, perhaps a few of them other ones."""
        rng, content = self.rng, bytearray(content)
        if not content or rng.randrange(self.every):
            return bytes(content)
        self.count += 1
        for _ in range(rng.choice((1, 1, 2, 8))):
            self._damage(content)
        return bytes(content)

    def _damage(self, content):
        """Change one place."""
        rng = self.rng
        kinds = [b'0123456789', b'0123456789',
                 b'abcdefghijklmnopqrstuvwxyz<>"{}[],:']
        kind = rng.choice([*kinds, None, None])
        places = [place for place, byte in enumerate(content[:4096])
                  if kind is not None and byte in kind]
        if places:
            # Of a header, which may stay one.
            content[rng.choice(places)] = rng.choice(kind)
            return
        place = rng.randrange(len(content) + 1)
        if rng.random() < .5:
            content[place:place + 1] = bytes(
                byte ^ 1 << rng.randrange(8)
                for byte in content[place:place + 1])
        else:
            content[place:place + rng.randrange(4)] = rng.randbytes(
                rng.randrange(4))


def relay_frames(port, damage, ends):
    """Damage single frames of messages, whose lengths fit."""
    context = zmq.Context()
    ours, theirs = context.socket(zmq.DEALER), context.socket(zmq.DEALER)
    for side in (ours, theirs):
        side.linger = 0
    number = ours.bind_to_random_port('tcp://127.0.0.1')
    theirs.connect(f'tcp://127.0.0.1:{port}')

    def run():
        poller = zmq.Poller()
        for side in (ours, theirs):
            poller.register(side, zmq.POLLIN)
        while not ends.is_set():
            ready = dict(poller.poll(20))
            for source, target in ((ours, theirs), (theirs, ours)):
                if source in ready:
                    frames = list(map(damage, source.recv_multipart()))
                    # To nobody, once the client is gone.
                    with contextlib.suppress(zmq.Again):
                        target.send_multipart(frames, zmq.NOBLOCK)
        context.destroy(0)

    return number, run


def relay_bytes(port, damage, ends):
    """Damage the bytes of connections, with all that ZeroMQ sends."""
    listener = socket.create_server(('127.0.0.1', 0))
    listener.settimeout(0.02)

    def run():
        pairs = []
        with contextlib.ExitStack() as stack:
            stack.enter_context(listener)
            while not ends.is_set():
                with contextlib.suppress(TimeoutError):
                    client, _ = listener.accept()
                    server = socket.create_connection(('127.0.0.1', port), 5)
                    pairs += [(stack.enter_context(client),
                               stack.enter_context(server)),
                              (server, client)]
                others = dict(pairs)
                for source in select.select(
                        list(others), [], [], 0.01)[0] if others else ():
                    try:
                        content = source.recv(1024)
                        if not content:
                            raise ConnectionError
                        others[source].sendall(damage(content))
                    except OSError:
                        pairs = [pair for pair in pairs if source not in pair]
                        for side in (source, others[source]):
                            side.close()
                        break

    return listener.getsockname()[1], run


RELAYS = {'frames': relay_frames, 'bytes': relay_bytes}


@contextlib.contextmanager
def damaging_proxy(port, how, damage):
    """Yield the port of a proxy for a server's."""
    ends = threading.Event()
    number, run = RELAYS[how](port, damage, ends)
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield number
    finally:
        ends.set()
        thread.join(10)
    assert not thread.is_alive()
