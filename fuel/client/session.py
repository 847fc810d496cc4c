"""One epoch of a server, from the view of one client."""
from __future__ import annotations

from typing import Protocol

from fuel.client.channel import Delivery, LostError
from fuel.client.connection import Connection
from fuel.client.measures import take_took
from fuel.epochs.state import available
from fuel.epochs.state_delta import Receipt
from fuel.exceptions import ServerError
from fuel.kernels.epoch_iterator import Waiting, take_note
from fuel.transport.leases import Leases
from fuel.typing import Batch, Sources, State
from fuel.utils.seams import fault_point
from fuel.wire import WireError, decode
from fuel.wire.header import Fields, get_field
from fuel.wire.index_sets import IndexSet, from_ranges
from fuel.utils.remote_errors import ErrorReport
from fuel.workers.remote_stream import RemoteSession


class Connector(Protocol):
    """A stream that provides the connection of a session."""

    @property
    def sources(self) -> Sources:
        """The names of the sources that the server sends (tuple of str)."""
        ...

    def _connection_for(self, session: ServerSession) -> Connection:
        """Return a connection that no other running epoch uses."""
        ...


class ServerSession(RemoteSession[Connector]):
    """One epoch of a server, from the view of this client.

    `epoch`: the server's number of the epoch; 0 before the client has joined.
    `generation`: number of the connection over which the client has joined the
        epoch; 0 if it has to join.
    `is_exact`: whether the server times each item.
    """

    is_exact = False

    def __init__(self, resume: State | None = None,
                 finished: bool = False) -> None:
        super().__init__(resume, finished)
        self.connection: Connection | None = None
        self._final: State | None = None
        self._run = ''
        self.epoch = 0
        # The name under which the server records the batches delivered here.
        self._client = ''
        self._delivered = IndexSet()
        self._num_ranks: int | None = None
        # All batches with a lower index were delivered by some client.
        self._floor = 0
        self._first: tuple[int, State | None] = 0, None
        self.generation = 0
        # The known states of the pipeline: maps the number of batches before a
        # state to that state.
        self._known: dict[int, Receipt] = {}

    def receive(self, stream: Connector | None) -> None:
        """Receive the next batch, or error, into `held`; Ctrl-C does not lose
        it."""
        assert stream is not None
        while True:
            if self.left:
                raise ServerError(
                    'this epoch was left by reset() or close(): make a new '
                    'epoch iterator')
            connection = None
            try:
                connection = self._connect(stream)
                with Waiting():
                    delivery = connection.take(self.generation)
                self._open(connection, delivery, len(stream.sources))
                connection.ask_measures(is_exact=self.is_exact)
                return
            except LostError:
                # Request the undelivered batches from the server's successor.
                self.generation = 0
            except BaseException as error:
                # Ctrl-C, for example, after a batch was received and before it
                # was held: the batch is requested again.
                if connection is None or not connection.is_waiting:
                    self.generation = 0
                if connection is not None and isinstance(error, WireError):
                    raise ServerError(
                        f'the server at {connection.options.address} sent '
                        f'an invalid message: {error}') from error
                raise

    def _connect(self, stream: Connector) -> Connection:
        if self.connection is None or not self.connection.is_usable():
            self.generation = 0
            self.connection = stream._connection_for(self)
        connection = self.connection
        if not self.generation:
            joined = connection.join(self.state())
            self.generation = joined['generation']
            if 'epoch' in joined:
                self._on_joined(connection, joined)
            connection.ask_measures(is_exact=self.is_exact)
        return connection

    def _on_joined(self, connection: Connection, joined: Fields) -> None:
        """Adopt the server's position, and its record of the batches that this
        client delivered."""
        run = get_field(joined, 'run', str)
        epoch = get_field(joined, 'epoch', int)
        start = get_field(joined, 'start', int)
        base = get_field(joined, 'base', dict, None)
        if (run, epoch) != (self._run, self.epoch) or base is None:
            self._known.clear()
            self._first = start, base
        if base is not None:
            self._known[start] = Receipt(base)
        self._run, self.epoch = run, epoch
        self._client = connection.client
        self._floor = get_field(joined, 'floor', int, 0)
        self._num_ranks = get_field(joined, 'num_ranks', int, None)
        self._delivered = from_ranges(joined.get('done', []))

    def _open(self, connection: Connection, delivery: Delivery,
              num_sources: int) -> None:
        """Put the batch or the error of a message into `held`, and acknowledge
        it."""
        fields = delivery.fields
        kind = fields['type']
        if kind == 'end':
            take_note(self._run, None, 0., connection.measured)
            self._final = get_field(fields, 'state', dict, None)
            raise StopIteration
        if kind == 'broken':
            self.left = True
            raise as_exception(get_field(fields, 'error', dict))
        if kind not in ('batch', 'failure'):
            raise WireError(f'unknown message {kind[:20]!r}')
        error = data = None
        if kind == 'failure':
            error = as_exception(get_field(fields, 'error', dict))
        else:
            data = take_data(delivery, num_sources)
            # The last received measurements may be those of earlier items.
            take_note(self._run, *take_took(fields), connection.measured)
        self.held = data, error, (fields, delivery.base)
        connection.report(
            type='handed', join=connection.join_number,
            indices=[get_field(fields, 'index', int)],
            release=[slot for slot, reuse in connection.leases.returned()
                     if reuse])

    @fault_point('client count')
    def count(self, receipt: tuple[Fields, State | None]) -> None:
        """Count a batch, or error, that the user has received."""
        fields, base = receipt
        index = get_field(fields, 'index', int)
        self._floor = get_field(fields, 'floor', int, 0)
        self._delivered.add(index)
        changes = fields.get('changes')
        if base is not None and changes is not None:
            self._known[index + 1] = Receipt(base, changes)
            latest = self._latest_known()
            self._known = {number: known for number, known
                           in self._known.items() if number >= latest}

    def _front(self) -> int:
        """Return the index of the first batch that is not known to be
        delivered."""
        return self._delivered.first_missing(self._floor)

    def _latest_known(self) -> int:
        """Return the greatest number of delivered batches after which the
        pipeline's state is known."""
        front = self._front()
        return max((number for number in self._known if number <= front),
                   default=0)

    def state(self) -> State | None:
        """Return a state from which another client, or another server,
        resumes."""
        if not self.epoch:
            resume: State | None = self.resume
            return resume
        self.commit_delivered()
        saved: State = {
            'run': self._run, 'epoch': self.epoch, 'client': self._client,
            'over': self.is_over, 'num_ranks': self._num_ranks,
            # 'floor' is for people who read the state: servers do not use it.
            'floor': self._front(), 'index': 0, 'state': None, 'done': []}
        if self.is_over:
            return {**saved, 'state': self._final}
        index = self._latest_known()
        receipt = self._known.get(index)
        state: State | None = None
        if receipt is not None:
            state = available(receipt.state())
        elif self._first[0] <= self._front():
            # The epoch had advanced further before: since then, a client has
            # returned to an earlier state.
            index, state = self._first
        return {**saved, 'index': index, 'state': state,
                'done': self._delivered.ranges()}

    def last_state(self) -> State | None:
        """Return the position after which the next epoch begins."""
        state = self.state()
        return None if state is None else {**state, 'over': True}

    @property
    def is_waiting(self) -> bool:
        """Whether the session waits for a batch of the server (bool)."""
        return self.connection is not None and self.connection.is_waiting

    def leave(self) -> None:
        """Report to the server that this client leaves the epoch."""
        if self.left or self.finished:
            return
        self.left = True
        connection = self.connection
        if connection is not None and connection.is_usable() \
                and self.generation:
            connection.report_later(type='leave', join=connection.join_number)


def take_data(delivery: Delivery, num_sources: int) -> Batch:
    """Return the data of a batch, in arrays that the user may keep."""
    items = delivery.fields.get('items')
    slot = get_field(delivery.fields, 'slot', dict, None)
    data = (decode(items, delivery.frames) if slot is None
            else _take_from_slot(slot, items, delivery.leases))
    if len(data) != num_sources:
        raise WireError(f'the server sent {len(data)} items for '
                        f'{num_sources} sources')
    return data


def _take_from_slot(slot: Fields, items: object, leases: Leases) -> Batch:
    extents = get_field(slot, 'extents', list)
    segment = get_field(slot, 'segment', int)
    if not leases.has_segment(segment) or not extents or not all(
            isinstance(extent, list) and len(extent) == 2
            and all(type(part) is int and part >= 0 for part in extent)
            for extent in extents):
        raise WireError('a batch in memory that is not known')
    try:
        batch: Batch = leases.lend(
            get_field(slot, 'number', int), segment,
            [(offset, size) for offset, size in extents],
            lambda buffers: decode(items, buffers))
        return batch
    except WireError:
        raise
    except (ValueError, OverflowError) as error:
        raise WireError(f'a batch outside its memory: {error}') from error


def as_exception(described: Fields) -> Exception:
    """Return an exception, to be raised in this process, for an error of the
    server's pipeline."""
    return ErrorReport(
        get_field(described, 'kind', str, None),
        get_field(described, 'summary', str, ''),
        get_field(described, 'text', str, ''),
        [str(note) for note in get_field(described, 'notes', list, [])],
        get_field(described, 'traceback', str, ''),
    ).rebuild(ServerError, 'the pipeline of the server raised ')
