"""A server, its clients, the network and the clock in one thread.

Scheduler, admission, ledger, journal, pipeline and the client's session are
the real ones.  Messages are kept in queues, so that a test decides which are
lost, and whoever is killed stops in the middle of what it does.
"""
import json

import numpy

from fuel.client.channel import Delivery, LostError
from fuel.client.session import ServerSession
from fuel.datasets import IndexableDataset
from fuel.schemes import ShuffledScheme
from fuel.server.connections import ClientConnection
from fuel.server.journal import Journal
from fuel.server.pipeline import Pipeline
from fuel.server.scheduler import Scheduler
from fuel.streams import DataStream
from fuel.transport.leases import Leases

HOLD = 30.0


class Killed(BaseException):
    """The process that runs this is gone."""


class Blocked(BaseException):
    """A client would wait for something that only others can bring."""


def build(num_examples):
    """Return the stream that is served: one example a batch."""
    return DataStream(IndexableDataset(list(range(num_examples))),
                      iteration_scheme=ShuffledScheme(num_examples, 1))


class World:
    """The surroundings of the processes: clock, files, network."""

    def __init__(self, path, num_batches=12, sharing='split',
                 num_clients=1, make_stream=None, hwm=3):
        self.path = path
        self.num_batches = num_batches
        self.sharing, self.num_clients = sharing, num_clients
        self.hwm = hwm
        self.now = 0.0
        self.make_stream = make_stream or (lambda: build(num_batches))
        self.clients = []
        self.server = None
        self.num_names = 0
        self.start_server()

    def start_server(self):
        """Start a server, after another was killed."""
        self.server = SimulatedServer(self)

    def kill_server(self, torn=b''):
        """Kill the server; perhaps in the middle of a line of its file."""
        server, self.server = self.server, None
        if server is not None and server.journal is not None:
            server.journal.close()
            if torn:
                with open(self.path, 'ab') as file:
                    file.write(torn)
        for client in self.clients:
            client.cut()

    def pass_time(self, seconds):
        """Let time pass; the server looks at its clients meanwhile."""
        self.now += seconds
        if self.server is not None:
            self.server.scheduler.expire()
            self.server.run()

    def add_client(self, saved=None, rank=None):
        """Start a client, which may continue a saved state."""
        client = Client(self, saved, rank)
        self.clients.append(client)
        return client


class SimulatedServer:
    """A server without sockets and threads."""

    def __init__(self, world):
        self.world = world
        self.connections = {}
        # Sends until it is killed: before the message, or after.
        self.sends_left = None
        self.pipeline = Pipeline(world.make_stream())
        self.scheduler = Scheduler(
            self.pipeline, self.connections, self.post, lambda: None,
            world.sharing, world.num_clients, HOLD, 1 << 20,
            clock=lambda: self.world.now)
        self.admission = self.scheduler.admission
        self.journal = None
        if world.path is not None:
            self.journal = Journal(world.path)
            self.scheduler.use_journal(self.journal)
        self.handlers = {
            'join': self.scheduler.on_join,
            'handed': self.scheduler.on_delivered,
            'leave': self.scheduler.on_leave,
            'give': self.scheduler.on_returned,
            'waiting': self.scheduler.on_waiting}

    def post(self, connection, fields, frames=()):
        """Send a message to a client."""
        if self.sends_left is not None:
            self.sends_left -= 1
            if self.sends_left <= 0:
                raise Killed
        client = connection.peer
        if client.is_alive and client.link is connection:
            client.inbox.append(
                (json.loads(json.dumps(fields)), [bytes(f) for f in frames]))

    def greet(self, client):
        """Take a client's connection."""
        connection = ClientConnection(
            client.client.encode(), {'client': client.client, 'sources': 1,
                                     'hwm': self.world.hwm,
                                     'rank': client.rank}, self.world.hwm,
            self.scheduler.clock)
        connection.peer = client
        self.connections[connection.identity] = connection
        return connection

    def lose(self, connection, has_left=False):
        """Forget a client, as when a connection was cut."""
        self.connections.pop(connection.identity, None)
        self.scheduler.remove(connection, has_left)

    def handle(self, connection, fields):
        """Take a message of a client."""
        if self.connections.get(connection.identity) is connection:
            self.handlers[fields['type']](
                connection, json.loads(json.dumps(fields)))

    def run(self):
        """Do all that can be done now; a kill ends the server."""
        try:
            for client in self.world.clients:
                client.flush()
            self.scheduler.advance()
            while self.pipeline.requests:
                self.scheduler.take(self.pipeline.make())
                self.scheduler.advance()
        except Killed:
            self.world.kill_server()


class Client:
    """A training process: a session, and what its user got.

    Attributes
    ----------
    history : list of (int, int)
        Number of the epoch and example that the user got, since the
        training began.

    """

    sources = ('x',)

    def __init__(self, world, saved=None, rank=None):
        self.world = world
        self.rank = rank
        world.num_names += 1
        # It stands for its connection, too.
        self.client = f'client {world.num_names}'
        self.leases = Leases(0)
        self.is_waiting = True
        self.is_alive = True
        self.link = None
        self.generation = self.join_number = 0
        self.inbox, self.outbox = [], []
        self.joined = self.measured = None
        state, history, self.has_ended = saved or (None, [], False)
        self.history = list(history)
        self.session = ServerSession(
            json.loads(json.dumps(state)), self.has_ended)

    # Interface of a session to its stream and connection.

    def _connection_for(self, session):
        return self

    def is_usable(self):
        """Return whether the connection is open."""
        return True

    def ask_measures(self, *, is_exact):
        """Ask nothing: it has no clock that says when."""

    def report(self, **fields):
        """Send a message; it is under way for a while."""
        self.outbox.append(fields)

    report_later = report

    def join(self, resume):
        """Connect, and ask for a place in an epoch."""
        if self.world.server is None:
            raise Blocked
        if self.link is None:
            self.generation += 1
            self.link = self.world.server.greet(self)
        self.join_number += 1
        self.joined = None
        self.inbox.clear()
        self.queue = ()
        self.report(type='join', join=self.join_number, resume=resume)
        self.pump()
        return {**(self.joined or {}), 'generation': self.generation}

    def take(self, generation):
        """Return the next message about the epoch."""
        if self.link is None or generation != self.generation:
            raise LostError
        self.read()
        if not self.queue:
            self.report(type='waiting', join=self.join_number)
            self.pump()
        return self.queue.pop(0)

    def pump(self):
        """Wait for a message."""
        server = self.world.server
        if server is not None:
            server.run()
            server = self.world.server
        if self.link is None or server is None:
            raise LostError
        self.read()
        if not self.queue and self.joined is None:
            self.is_waiting = False
            raise Blocked
        if not self.queue and self.session.generation:
            self.is_waiting = True
            raise Blocked

    queue = ()

    def read(self):
        """Read the messages that have come."""
        queue = list(self.queue)
        for fields, frames in self.inbox:
            if fields.get('join') != self.join_number:
                continue
            if fields['type'] == 'joined':
                self.joined = fields
            elif fields['type'] == 'revoke':
                given = [one.fields['index'] for one in queue
                         if 'index' in one.fields]
                queue = [one for one in queue if 'index' not in one.fields]
                self.report(type='give', join=self.join_number, indices=[
                    [index, index + 1] for index in sorted(given)])
            else:
                base = None if self.joined is None else self.joined['base']
                queue.append(Delivery(fields, frames, base, self.leases))
        self.inbox.clear()
        self.queue = queue

    def flush(self):
        """Let the server have what was sent."""
        while self.outbox and self.link is not None \
                and self.world.server is not None:
            self.world.server.handle(self.link, self.outbox.pop(0))

    def cut(self):
        """Lose the connection, with what is under way."""
        self.link = None
        self.joined = None
        self.queue = ()
        self.inbox.clear()
        self.outbox.clear()

    # Methods of the user.

    def next(self):
        """Return whether the user got a batch, or came to the end."""
        if self.has_ended:
            return False
        try:
            self.session.stream = lambda: self
            (data,) = self.session.read()
        except StopIteration:
            self.has_ended = True
            self.session.commit_delivered()
            return True
        except Blocked:
            return False
        self.session.commit_delivered()
        self.history.append((self.session.epoch, int(numpy.ravel(data)[0])))
        return True

    def next_epoch(self):
        """Go on to the epoch that follows."""
        assert self.has_ended
        self.session = ServerSession(self.session.last_state())
        self.has_ended = False

    def save(self):
        """Return what a checkpoint holds."""
        state = self.session.state()
        if self.has_ended and state is not None:
            state = {**state, 'over': True}
        return state, list(self.history), self.has_ended

    def close(self):
        """Close the stream, as when the process ends normally."""
        self.flush()
        self.is_alive = False
        self.world.clients.remove(self)
        self.world.server.lose(self.link, has_left=True)
        self.cut()

    def kill(self, received=0):
        """Kill the process; so many of its last messages still arrive."""
        link, server = self.link, self.world.server
        del self.outbox[received:]
        if server is not None:
            self.flush()
        self.is_alive = False
        self.world.clients.remove(self)
        if link is not None and self.world.server is not None:
            server.lose(link)
        self.cut()
