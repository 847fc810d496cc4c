"""Read batches into the slots through which loaders receive them."""
from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy
import torch
from numpy.typing import NDArray

from fuel.epochs.pipeline import child_streams
from fuel.interop.torch.slot_tensors import (
    LentSlot,
    SlotSender,
    SlotTensor,
    ValueTensor,
)
from fuel.kernels.memory import address_of
from fuel.kernels.outputs import Outputs, placed
from fuel.transport.batches import SMALL
from fuel.typing import Batch, EpochIterator, StreamLike


class SlotOutputs(Outputs):
    """Slots that are offered to the stages that make a batch.

    `sizes`: sizes of the arrays that are expected, in bytes.
    """

    def __init__(self, sender: SlotSender, sizes: Sequence[int],
                 takes_rows: bool) -> None:
        self._sender = sender
        self._sizes = list(sizes)
        self.takes_rows = takes_rows
        # A dict from the address of the memory to each slot that stages use.
        self._given: dict[int, LentSlot] = {}

    def give(self, nbytes: int) -> NDArray[numpy.uint8] | None:
        """Return the memory of a slot; None if the size is not expected or no
        slot is free."""
        if nbytes not in self._sizes:
            return None
        self._sizes.remove(nbytes)
        lent = self._sender.lend(nbytes)
        if lent is None:
            return None
        memory = lent.open()
        self._given[address_of(memory)] = lent
        return memory

    def take(self, parts: list[Any], place: int) -> None:
        """Replace an array that fills the memory of a slot by a tensor.

        The tensor uses the memory of the slot. If a stage still uses the slot,
        the array is copied instead. An array that fills only a part of the
        memory is left unchanged.
        """
        array = parts[place]
        lent = self._given.get(address_of(array))
        if lent is None or lent.nbytes != array.nbytes:
            return
        del self._given[address_of(array)]
        dtype, shape = array.dtype, array.shape
        parts[place] = None
        del array
        if lent.placement.is_free():
            tensor = torch.from_numpy(lent.open().view(dtype).reshape(
                shape)).as_subclass(SlotTensor)
            tensor.sender, tensor.lent = self._sender, lent
            parts[place] = tensor
        else:
            parts[place] = lent.slot.bytes[:lent.nbytes].copy().view(
                dtype).reshape(shape)

    def unused(self) -> set[int]:
        """Return the sizes of slots that stages used, but not for outputs."""
        return {lent.nbytes for lent in self._given.values()}


class SharedBatches:
    """Reads the batches of a stream in a worker of a loader.

    `chosen`: the sources that become tensors.
    `read_next`: function that returns the next data of an epoch.
    """

    def __init__(self, stream: StreamLike, chosen: Collection[str],
                 sender: SlotSender,
                 read_next: Callable[[EpochIterator[Batch]], Batch] = next
                 ) -> None:
        self._read_next = read_next
        self._chosen = [source in chosen for source in stream.sources]
        self._takes_rows = not child_streams(stream)
        self._sender = sender
        # Sizes of the large arrays of the last batch, in bytes.
        self.expected: list[int] = []
        # Sizes of slots that stages used, but not for outputs, in bytes.
        self._unused: set[int] = set()

    def read(self, iterator: EpochIterator[Batch]) -> Batch:
        """Return the next batch.

        Arrays that can be sent without a further copy become tensors.
        """
        outputs = SlotOutputs(
            self._sender, self.expected, self._takes_rows)
        with placed(outputs):
            parts = list(self._read_next(iterator))
        sizes = []
        for place, is_chosen in enumerate(self._chosen):
            if not is_chosen or not _is_plain(parts[place]):
                continue
            size = parts[place].nbytes
            if size < SMALL:
                parts[place] = torch.from_numpy(
                    parts[place]).as_subclass(ValueTensor)
                continue
            sizes.append(size)
            outputs.take(parts, place)
        self._unused |= outputs.unused()
        self.expected = [size for size in sizes
                         if size not in self._unused]
        return tuple(parts)


def _is_plain(part: object) -> bool:
    """Return whether data are a plain array of numbers.

    Plain arrays are writable, aligned, C-contiguous and of native byte order.
    Long doubles are not plain.
    """
    return (type(part) is numpy.ndarray and part.flags.carray
            and part.dtype.kind in 'biufc' and part.dtype.isnative
            and part.dtype.char not in 'gG')
