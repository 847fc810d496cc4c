"""Shared memory between processes of one host.

`outputs` lets the last stage of a pipeline write where the consumer reads.
"""
from fuel.transport._batches import dump, load
from fuel.transport._channel import Channel, ChannelClosed, Peer
from fuel.transport._leases import Leases
from fuel.transport._pool import BudgetError, Slot, SlotPool
from fuel.transport._segment import Segment

__all__ = [
    'BudgetError', 'Channel', 'ChannelClosed', 'Leases', 'Peer', 'Segment',
    'Slot', 'SlotPool', 'dump', 'load']
