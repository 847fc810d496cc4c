"""Send tensors of loader workers through reused slots of shared memory.

For each tensor, PyTorch makes new shared memory, and a connection to send the
descriptor of that memory. Both take longer than copying the tensor. Slots are
mapped once. The worker and the process of the loader share a byte for each
slot, in which the loader's process reports that it no longer uses the slot.
"""
from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from multiprocessing import reduction
from typing import Any, SupportsIndex, TypeAlias

import numpy
import torch
from numpy.typing import NDArray
from torch.multiprocessing.reductions import reduce_tensor

from fuel.interop.torch.epoch_register import is_alive
from fuel.kernels.memory import address_of
from fuel.kernels.outputs import Placement
from fuel.transport.leases import Leases
from fuel.transport.segment import Segment
from fuel.transport.slots import Slot, SlotPool

# Bytes of the control segment: one for each slot, one for each data segment
# (whether the segment is mapped), and one for the control segment itself.
_NUM_SLOTS = _NUM_SEGMENTS = 2048
_SIZE = 4097
# Values of the byte of a slot.
_IN_USE, _FREE, _LOST = range(3)

#: Process identifier and name of a sender.
Key: TypeAlias = 'tuple[int, str]'
#: A descriptor that is sent to another process; None if that process has it.
Handle: TypeAlias = Any


class LentSlot:
    """A slot that was lent to the stages that make a batch.

    `sent`: whether the slot was sent. Then the loader's process frees it.
    """

    def __init__(self, slot: Slot, nbytes: int) -> None:
        self.slot = slot
        self.nbytes = nbytes
        self.sent = False
        self.placement = Placement(slot.bytes, ())

    def open(self) -> NDArray[numpy.uint8]:
        """Return the memory of the slot, which no other array uses."""
        self.placement = Placement(self.slot.bytes, [(0, self.nbytes)])
        memory = self.placement.give(self.nbytes)
        assert memory is not None
        return memory

    def is_whole(self, tensor: torch.Tensor) -> bool:
        """Return whether a tensor fills all bytes that were lent, in C
        order."""
        return bool(
            tensor.data_ptr() == address_of(self.slot.bytes)
            and tensor.numel() * tensor.element_size() == self.nbytes
            and tensor.is_contiguous())


class SlotSender:
    """The slots of a worker, which sends tensors in them.

    `budget`: most bytes that all slots may have.
    """

    def __init__(self, budget: int) -> None:
        self._pool = SlotPool(budget)
        self._limit = budget // 2
        self._control = Segment.create(_SIZE)
        self._flags = numpy.frombuffer(self._control.memory, numpy.uint8)
        self._key = os.getpid(), secrets.token_hex(8)
        self._lent: list[LentSlot] = []

    def lend(self, nbytes: int) -> LentSlot | None:
        """Return a slot of at least `nbytes` bytes; None if there is none."""
        self._collect()
        try:
            slot = self._pool.acquire(nbytes)
        except OSError:
            # The process has too many open descriptors, or too little memory.
            return None
        if slot is None:
            return None
        if slot.number >= _NUM_SLOTS or slot.segment_number >= _NUM_SEGMENTS:
            self._pool.release(slot.number)
            return None
        self._flags[slot.number] = _IN_USE
        lent = LentSlot(slot, nbytes)
        self._lent.append(lent)
        return lent

    def _collect(self) -> None:
        """Give slots that are no longer used back to the pool."""
        kept = []
        for lent in self._lent:
            number = lent.slot.number
            # Check this before `sent`: another thread sends a tensor before
            # it drops the tensor.
            is_free = lent.placement.is_free()
            if lent.sent and self._flags[number] == _FREE:
                self._pool.put_back(lent.slot, lent.placement)
            elif lent.sent and self._flags[number] == _LOST:
                self._pool.release(number, reuse=False)
            elif not lent.sent and is_free:
                self._pool.release(number)
            else:
                kept.append(lent)
        self._lent = kept

    def describe(self, lent: LentSlot) -> tuple[Any, ...]:
        """Return the arguments of :func:`receive`, without type and shape."""
        lent.sent = True
        slot = lent.slot
        dropped = tuple(self._pool.retired_segments)
        del self._pool.retired_segments[:len(dropped)]
        return (self._key, self._handle(self._control, _SIZE - 1),
                self._limit, dropped, slot.segment_number, self._handle(
                    slot.segment, _NUM_SLOTS + slot.segment_number),
                slot.segment.size, slot.number, slot.offset, lent.nbytes)

    def _handle(self, segment: Segment, place: int) -> Handle:
        """Return the descriptor of a segment; None if it is mapped already."""
        if self._flags[place]:
            return None
        assert segment.descriptor is not None
        return reduction.DupFd(segment.descriptor)


def make_sender(budget: int) -> SlotSender | None:
    """Return the slots of this worker; None if it cannot send descriptors."""
    return SlotSender(budget) if reduction.HAVE_SEND_HANDLE else None


class WorkerTensor(torch.Tensor):
    """A tensor that a loader's queue sends in a faster way.

    In every other respect it is an ordinary tensor. Receiving it, copying it,
    pickling it and computing with it give ordinary tensors. If a function of
    the user changed more than the values, the tensor is sent as an ordinary
    tensor.
    """

    __torch_function__ = torch._C._disabled_torch_function_impl

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        return self.as_subclass(torch.Tensor).__reduce_ex__(protocol)

    def __deepcopy__(self, memo: dict[int, Any]) -> torch.Tensor:
        return self.detach().clone().requires_grad_(self.requires_grad)


class ValueTensor(WorkerTensor):
    """A small tensor, sent by value."""


class SlotTensor(WorkerTensor):
    """A tensor in a slot, which is lent to the receiver."""

    sender: SlotSender
    lent: LentSlot


def _send_value(tensor: ValueTensor) -> Any:
    if tensor.requires_grad:
        return reduce_tensor(tensor)
    return torch.from_numpy, (tensor.as_subclass(torch.Tensor).numpy(),)


def _send_slot(tensor: SlotTensor) -> Any:
    lent = tensor.lent
    if lent.sent or tensor.requires_grad or not lent.is_whole(tensor):
        return reduce_tensor(tensor)
    array = tensor.as_subclass(torch.Tensor).numpy()
    return receive, (*tensor.sender.describe(lent), array.dtype.str,
                     array.shape)


reduction.ForkingPickler.register(ValueTensor, _send_value)
reduction.ForkingPickler.register(SlotTensor, _send_slot)


class Received:
    """The slots of a worker, on the side of the loader's process."""

    def __init__(self, control: Handle, limit: int) -> None:
        segment = Segment(control.detach(), _SIZE)
        segment.close_descriptor()
        self.leases = Leases(limit)
        self.flags = numpy.frombuffer(segment.memory, numpy.uint8)
        self.flags[_SIZE - 1] = 1

    def free(self) -> None:
        """Report to the worker the slots that are no longer used."""
        for number, is_reusable in self.leases.returned():
            self.flags[number] = _FREE if is_reusable else _LOST

    def add(self, number: int, handle: Handle, size: int) -> None:
        """Map a segment of the worker, unless it is mapped already."""
        if handle is None:
            return
        descriptor = handle.detach()
        if self.leases.has_segment(number):
            os.close(descriptor)
            return
        self.leases.add_segment(number, Segment(descriptor, size))
        self.flags[_NUM_SLOTS + number] = 1


_received: dict[Key, Received] = {}


def receive(key: Key, control: Handle, limit: int, dropped: Sequence[int],
            segment: int, handle: Handle, size: int, slot: int, offset: int,
            nbytes: int, dtype: str, shape: tuple[int, ...]) -> torch.Tensor:
    """Return a tensor over a slot, which is lent to the tensor."""
    if key not in _received:
        # Iterate over a copy, since other threads may change the dict:
        # loaders that pin memory receive in threads of their own.
        for other in list(_received):
            if not is_alive(other[0]):
                _received.pop(other, None)
        _received[key] = Received(control, limit)
    elif control is not None:
        os.close(control.detach())
    received = _received[key]
    for number in dropped:
        received.leases.drop_segment(number)
    received.add(segment, handle, size)
    received.free()
    tensor: torch.Tensor = received.leases.lend(
        slot, segment, [(offset, nbytes)],
        lambda parts: torch.from_numpy(
            numpy.frombuffer(parts[0], dtype).reshape(shape)))
    # If too much is lent already, the tensor is a copy: report the free slot.
    received.free()
    return tensor
