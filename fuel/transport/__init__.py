"""Shared memory between processes of one host."""
from fuel.transport.batches import dump_batch, load_batch
from fuel.transport.channel import Channel, ChannelClosed, Peer
from fuel.transport.leases import Leases
from fuel.transport.segment import Segment
from fuel.transport.slots import BudgetError, Slot, SlotPool

__all__ = [
    'BudgetError', 'Channel', 'ChannelClosed', 'Leases', 'Peer', 'Segment',
    'Slot', 'SlotPool', 'dump_batch', 'load_batch']
