"""One epoch of a server, as far as a client is concerned."""
from __future__ import annotations

from typing import TYPE_CHECKING

from fuel.client.connection import Connection, Delivery, LostError
from fuel.client.received import as_exception, take_data
from fuel.epochs.checkpoints import Checkpoint
from fuel.exceptions import ServerError
from fuel.kernels.prefetch_buffer import PendingItem
from fuel.typing import Batch, State
from fuel.wire import WireError
from fuel.wire.header import Fields, get_field
from fuel.wire.index_sets import IndexSet, from_ranges

if TYPE_CHECKING:
    from fuel.client.stream import ServerDataStream


class ServerEpoch(PendingItem):
    """One epoch of a server, as far as this client is concerned.

    Parameters
    ----------
    resume : dict, optional
        The position to continue from; with `over`, that of the epoch that
        this one follows.

    Attributes
    ----------
    finished : bool
        Whether the server has ended the epoch.
    left : bool
        Whether nobody reads it any more.

    """

    def __init__(self, resume: State | None = None) -> None:
        self.resume = resume
        self.connection: Connection | None = None
        self.finished = False
        self.left = False
        self._final: State | None = None
        self._run = ''
        self._epoch = 0
        # The name under which the server has what was delivered here.
        self._client = ''
        self._delivered = IndexSet()
        # All batches below it were delivered by some client.
        self._floor = 0
        # Before which batches the state of the pipeline is known.
        self._checkpoints: list[Checkpoint] = []
        self._generation = 0

    def get(self, stream: ServerDataStream) -> Batch:
        """Return the next batch."""
        try:
            if self.finished:
                raise StopIteration
            if self.held is None or self.left:
                self._receive(stream)
        except StopIteration:
            if not self.is_asked:
                self.is_over = True
            raise
        assert self.held is not None
        data, error, _ = self.held
        if not self.is_asked:
            self.claim()
        if error is not None:
            raise error
        batch: Batch = data
        return batch

    def _receive(self, stream: ServerDataStream) -> None:
        """Hold the next batch, or error; Ctrl-C does not lose it."""
        self._count_delivered()
        while self.held is None or self.left:
            if self.left:
                raise ServerError(
                    'this epoch was left by reset() or close(): make a new '
                    'epoch iterator')
            connection = None
            try:
                connection = self._connect(stream)
                self._open(connection, connection.take(self._generation),
                           len(stream.sources))
            except LostError:
                # Ask its successor for what was not delivered.
                self._generation = 0
            except BaseException:
                # Ctrl-C, say, when a batch had come and was not yet held: it
                # is asked for again.
                if connection is None or not connection.is_resting:
                    self._generation = 0
                raise

    def _connect(self, stream: ServerDataStream) -> Connection:
        if self.connection is None or not self.connection.is_usable():
            self._generation = 0
            self.connection = stream._connection_for(self)
        connection = self.connection
        if not self._generation:
            joined = connection.join(self.position())
            self._generation = joined['generation']
            if 'epoch' in joined:
                self._on_joined(connection, joined)
        return connection

    def _on_joined(self, connection: Connection, joined: Fields) -> None:
        """Take over where the server stands, and what it knows of us."""
        run = get_field(joined, 'run', str)
        epoch = get_field(joined, 'epoch', int)
        start = get_field(joined, 'start', int)
        base = get_field(joined, 'base', dict, None)
        if (run, epoch) != (self._run, self._epoch) or base is None:
            self._checkpoints = []
        if base is not None:
            self._checkpoints.append(Checkpoint(start, base, []))
        self._run, self._epoch = run, epoch
        self._client = connection.client
        self._floor = get_field(joined, 'floor', int, 0)
        self._delivered = from_ranges(joined.get('done', []))

    def _open(self, connection: Connection, delivery: Delivery,
              num_sources: int) -> None:
        """Hold the batch or the error of a message."""
        fields = delivery.fields
        kind = fields['type']
        if kind == 'end':
            self.finished = True
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
        self.held = data, error, (fields, delivery.base)
        connection.tell(
            type='handed', join=connection.join_number,
            indices=[get_field(fields, 'index', int)],
            release=[slot for slot, reuse in connection.leases.returned()
                     if reuse])

    def _count_delivered(self) -> None:
        """Count what the user has got since the last time."""
        if self.receipt is None:
            return
        fields, base = self.receipt
        index = get_field(fields, 'index', int)
        self._floor = get_field(fields, 'floor', int, 0)
        self._delivered.add(index)
        steps = fields.get('changes')
        if base is not None and steps is not None:
            self._checkpoints.append(Checkpoint(index + 1, base, steps))
        best = self._best_checkpoint()
        if best is not None:
            # The first, too: what is known to be delivered may become less.
            self._checkpoints = [
                self._checkpoints[0], best, *(
                    one for one in self._checkpoints
                    if one.index > best.index)]
        self.receipt = None

    def _best_checkpoint(self) -> Checkpoint | None:
        """Return the last state before which all batches are delivered."""
        front = self._delivered.first_missing(self._floor)
        return max((one for one in self._checkpoints if one.index <= front),
                   key=lambda one: one.index, default=None)

    def position(self) -> State | None:
        """Return where another client, or another server, may continue."""
        if not self._epoch:
            return self.resume
        self._count_delivered()
        saved: State = {
            'run': self._run, 'epoch': self._epoch, 'client': self._client,
            'over': self.is_over,
            # For people who read it: servers do not believe it.
            'floor': self._delivered.first_missing(self._floor),
            'index': 0, 'state': None, 'done': []}
        if self.is_over:
            return {**saved, 'state': self._final}
        best = self._best_checkpoint()
        if best is not None:
            saved.update(index=best.index, state=best.state())
        return {**saved, 'done': self._delivered.ranges()}

    def follower(self) -> State | None:
        """Return the position that the epoch after this one follows."""
        position = self.position()
        return None if position is None else {**position, 'over': True}

    def leave(self) -> None:
        """Tell the server that nobody reads this epoch any more."""
        if self.left or self.finished:
            return
        self.left = True
        connection = self.connection
        if connection is not None and connection.is_usable() \
                and self._generation:
            connection.mention(type='leave', join=connection.join_number)

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (self.position(), self.finished)


def _restored(resume: State | None, finished: bool) -> ServerEpoch:
    epoch = ServerEpoch(resume)
    epoch.finished = finished
    return epoch
