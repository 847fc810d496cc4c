"""The connection of one client to the server, and the form in which the client
receives each batch."""
from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fuel.server.ledger import RANK
from fuel.transport.segment import HAS_MEMFD
from fuel.transport.slots import Slot, SlotPool, align, write_into
from fuel.typing import StreamLike
from fuel.wire.encoding import Buffers
from fuel.wire.header import VERSION, Fields, get_field
from fuel.wire.same_host import make_probe, prove


@dataclass(eq=False)
class Item:
    """One batch, or the error in its place.

    `index`: number of the batch in the epoch.
    `fields`: fields of its header that are the same for each client.
    `buffers`: its arrays, as :func:`fuel.wire.encode` returned them.
    `slot`: the slot of shared memory that contains it; None if it is not in
        shared memory.
    `extents`: offset and size of each array in the slot.
    """

    index: int
    fields: Fields
    buffers: Buffers
    slot: Slot | None = None
    extents: list[tuple[int, int]] = field(default_factory=list)


class ClientConnection:
    """The connection of one client.

    `clock`: returns the time in seconds.
    `key`: the client's public key, if connections are encrypted.
    `join`: number of the client's last request to join; 0 if it is not in an
        epoch and has not requested one.
    `is_local`: whether the client has proved that it is on this host.
    `gone_since`: time of the first message that could not be sent; 0 if there
        was none.
    `is_deaf`: whether sending failed because the client does not read its
        messages.
    `since`: time of the connection's start.
    `num_delivered`: number of batches that the client's user has received.
    `waits_since`: time since which the client's user waits for a batch; None
        if the user does not wait.
    """

    # Batches of at most so many bytes are sent without a slot.
    SMALL = 1 << 14

    def __init__(self, identity: bytes, fields: Fields,
                 hwm: int,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self.identity = identity
        self._clock = clock
        self.client = get_field(fields, 'client', str)[:64]
        self.hwm = max(1, min(hwm, get_field(fields, 'hwm', int)))
        self.rank = get_field(fields, 'rank', int, None)
        # The client chose these values; they are used only for display.
        self.host = get_field(fields, 'host', str, '')[:64]
        self.pid = get_field(fields, 'pid', int, 0)
        self.join = 0
        self.key = b''
        self.is_local = False
        self.gone_since = 0.0
        self.is_deaf = False
        self.since = clock()
        self.num_delivered = 0
        self.waits_since: float | None = None
        self._waited = 0.0
        self._wants_memory = bool(fields.get('shared_memory'))
        self._probe: Any = None
        self._secret = b''
        self._known: set[int] = set()
        self._lent: set[int] = set()

    def begin_wait(self) -> None:
        """Record that the client's user waits for a batch from now on."""
        if self.waits_since is None:
            self.waits_since = self._clock()

    def end_wait(self) -> None:
        """Record that the client's user does not wait for a batch any more."""
        self._waited, self.waits_since = self.waited(), None

    def waited(self) -> float:
        """Return the seconds that the client has waited for batches."""
        since = self.waits_since
        return self._waited + (
            0. if since is None else self._clock() - since)

    def connected(self) -> float:
        """Return the seconds since the client connected."""
        return self._clock() - self.since

    def check(self, fields: Fields, stream: StreamLike, sharing: str,
              num_clients: int) -> str:
        """Return the reason not to serve the client; empty if there is
        none."""
        version = get_field(fields, 'version', int)
        if version != VERSION:
            return (f'the server speaks version {VERSION} of the protocol, '
                    f'the client version {version}: use the same Fuel')
        wanted = get_field(fields, 'sources', int)
        names = list(stream.sources)
        if wanted != len(names):
            return (f'the client names {wanted} sources, but the server '
                    f'sends {len(names)}: {names}')
        examples = get_field(fields, 'examples', bool, None)
        if None not in (examples, produces_examples(stream)) \
                and examples != produces_examples(stream):
            kinds = {True: 'examples', False: 'batches'}
            return (f'the client expects {kinds[examples]}, but the server '
                    f'sends {kinds[not examples]}: leave '
                    'produces_examples out')
        if sharing == RANK and (self.rank is None
                                or not 0 <= self.rank < num_clients):
            return (f'the server shares by rank among {num_clients} clients, '
                    f'but the rank of this one is {self.rank}')
        return ''

    def make_probe(self) -> Any:
        """Return the description of a segment that only a client on this host
        can open; it is sent with the welcome."""
        if not self._wants_memory or not HAS_MEMFD:
            return None
        self._probe, self._secret = make_probe()
        return {'pid': os.getpid(), 'descriptor': self._probe.descriptor,
                'size': self._probe.size}

    def check_proof(self, proof: str) -> None:
        """Record whether the client has proved that it opened the probe."""
        self.is_local = self._probe is not None and secrets.compare_digest(
            proof.encode(), prove(self._secret, self.client).encode())
        self._probe = None

    def address(self, item: Item, fields: Fields, pool: SlotPool,
                is_shared: bool) -> tuple[Fields, list[Any], int]:
        """Return the header, the frames and the size of a batch for this
        client."""
        size = sum(align(extent[1]) for extent in item.extents) + sum(
            align(len(memoryview(buffer))) for buffer in item.buffers)
        if not self.is_local or size <= self.SMALL:
            if item.slot is not None:
                self._take_out(item, item.slot, pool)
            return fields, item.buffers, size
        slot, extents = item.slot, item.extents
        if slot is None:
            slot = pool.acquire(size)
            if slot is None:
                return fields, item.buffers, size
            extents = write_into(slot, item.buffers) or []
            if is_shared:
                self._lent.add(slot.number)
            else:
                item.slot, item.extents, item.buffers = slot, extents, []
        described: Fields = {
            'number': slot.number, 'segment': slot.segment_number,
            'extents': [[slot.offset + offset, length]
                        for offset, length in extents]}
        if slot.segment_number not in self._known:
            self._known.add(slot.segment_number)
            described['open'] = [
                os.getpid(), slot.segment.descriptor, slot.segment.size]
        return {**fields, 'slot': described}, [], size

    def _take_out(self, item: Item, slot: Slot, pool: SlotPool) -> None:
        """Copy a batch out of its slot, and release the slot."""
        item.buffers = [slot.bytes[offset:offset + size].copy()
                        for offset, size in item.extents]
        pool.release(slot.number)
        item.slot, item.extents = None, []

    def keep(self, item: Item) -> None:
        """Record that the client's user now holds a batch and its slot."""
        if item.slot is not None:
            self._lent.add(item.slot.number)
            item.slot = None

    def release(self, number: int, pool: SlotPool) -> None:
        """Take back a slot that the client has released."""
        if number in self._lent:
            self._lent.discard(number)
            pool.release(number)

    def close(self, pool: SlotPool) -> None:
        """Release the client's slots, but never reuse them, since the client
        may still read them."""
        for number in self._lent:
            pool.release(number, reuse=False)
        self._lent.clear()
        self._probe = None


def produces_examples(stream: StreamLike) -> bool | None:
    """Return whether a stream produces examples; None if unknown."""
    try:
        return bool(stream.produces_examples)
    except ValueError:
        return None
