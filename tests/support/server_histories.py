"""Histories of a simulated server: steps, and what must hold at the end."""
from collections import Counter

from support.simulated_server import HOLD, World

from fuel.exceptions import StateMismatchError


class History:
    """Steps that may come in any order; `check` ends a history.

    Attributes
    ----------
    lost : set
        What the guarantee allows: batches that a client delivered after its
        last saved state and died, without a successor that makes up for
        them; batches delivered whose acknowledgement was lost, when the
        successor came too late.

    """

    def __init__(self, path, num_batches=12, sharing='split',
                 num_clients=1):
        self.sharing, self.num_clients = sharing, num_clients
        self.world = World(path, num_batches, sharing, num_clients)
        self.saved = {}
        self.dead = []
        self.lost, self.repeated = set(), set()
        self.is_late = False
        self.has_begun = False
        # A client that was just started began the next epoch when the
        # others had finished: a row of the guarantee of its own.
        self.has_moved_on = False
        for place in range(num_clients):
            self.start(place)
        while sharing != 'split' and not all(
                client.session.epoch for client in self.world.clients):
            for client in self.world.clients:
                self.advance(client)

    # Steps.

    def start(self, rank=0):
        """Start a client, which has saved nothing."""
        self.world.add_client(rank=rank)

    def can_start(self):
        """Return whether another client would join the epoch."""
        return (self.sharing == 'split' and len(self.world.clients) < 4
                and self.world.server is not None
                and any(client.link is not None and client.history
                        and not client.has_ended
                        for client in self.world.clients))

    def pick(self, number):
        """Return one of the living clients."""
        clients = self.world.clients
        return clients[number % len(clients)] if clients else None

    def read(self, number):
        """Let a client read a batch."""
        client = self.pick(number)
        if client is not None:
            self.advance(client)

    def advance(self, client):
        """Return whether a client read a batch, or came to the end.

        A new client must not be the only one that the server knows to be
        alive: a new epoch, or run, would begin.
        """
        if client.session.state() is None and self.has_begun and not any(
                other.link is not None and other.session.epoch == 1
                and not other.has_ended for other in self.world.clients):
            return False
        try:
            result = client.next()
        except StateMismatchError:
            # The others have gone back to an older epoch.
            assert self.has_moved_on
            client.has_ended = result = True
        self.has_begun = self.has_begun or client.session.epoch > 0
        server = self.world.server
        epoch = server and server.admission.epoch
        self.has_moved_on |= bool(epoch) and epoch.ledger.number > 1
        return result

    def save(self, number):
        """Let a client save its state."""
        client = self.pick(number)
        if client is not None and client.session.epoch:
            self.saved[client] = client.save()

    def kill(self, number, received):
        """Kill a client with what it has sent, or a part of that."""
        client = self.pick(number)
        if client is None or not client.session.epoch:
            return
        # One that never saved a state is a test of its own.
        self.saved.setdefault(client, client.save())
        unsent = {index for fields in client.outbox[received:]
                  for index in fields.get('indices', ())
                  if fields['type'] == 'handed'}
        client.kill(received)
        saved = self.saved.pop(client)
        self.dead.append((client, saved, unsent))

    def resume(self, number):
        """Start the successor of a client that was killed."""
        if not self.dead:
            return
        client, saved, _ = self.dead.pop(number % len(self.dead))
        successor = self.world.add_client(saved, client.rank)
        self.saved[successor] = saved

    def kill_server(self, torn, sends=None):
        """Kill the server, at once or at one of its next messages."""
        server = self.world.server
        if server is not None and sends is not None:
            server.sends_left = sends
        elif server is not None:
            self.world.kill_server(torn)

    def start_server(self):
        """Start the server that follows."""
        if self.world.server is None:
            self.world.start_server()

    def pass_time(self, seconds):
        """Let time pass, which may be too long for a successor."""
        self.world.pass_time(seconds)
        if seconds > HOLD / 4 and self.dead:
            self.is_late = True

    # The end.

    def finish(self):
        """Let everybody come to the end of the epoch."""
        self.start_server()
        if self.world.server is not None:
            self.world.server.sends_left = None
        while self.dead:
            self.resume(0)
        idle = 0
        while idle < 2 * HOLD and not all(
                client.has_ended for client in self.world.clients):
            self.start_server()
            if not any(client.session.epoch or client.session.resume
                       for client in self.world.clients):
                self.has_begun = False
            moved = [self.advance(client) for client in self.world.clients]
            if any(moved):
                idle = 0
            else:
                idle += 1
                self.world.pass_time(1)
        for client in self.world.clients:
            # One that would begin the next epoch is not part of this.
            assert client.has_ended or client.session.state() is None

    def check(self):
        """Count every batch."""
        try:
            self.finish()
        except AssertionError:
            if not self.has_moved_on:
                raise
        if self.has_moved_on:
            return
        count = self.world.num_batches
        if self.sharing == 'all':
            for client in self.world.clients:
                self.compare(client.history, count)
        else:
            self.compare([one for client in self.world.clients
                          for one in client.history], count)

    def compare(self, history, count):
        """Hold what came against what the guarantee says."""
        seen = Counter(history)
        lost = {one for one in ((1, i) for i in range(count))
                if one not in seen}
        assert lost <= self.lost, (lost, self.lost)
        twice = {one for one, number in seen.items() if number > 1}
        assert self.is_late or not twice, twice
        assert set(seen) <= {(1, i) for i in range(count)}
