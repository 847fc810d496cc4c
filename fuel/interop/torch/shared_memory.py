"""Read batches into the shared memory in which loaders receive them.

PyTorch moves the tensors of a worker into shared memory, by a copy into new
pages and a connection for each of them. Here large arrays are made there at
once, and small ones are sent by value.
"""
from __future__ import annotations

import weakref
from collections.abc import Collection, Sequence
from typing import Any

import numpy
import torch
from numpy.typing import NDArray

from fuel.epochs.pipeline import child_streams
from fuel.kernels.memory import address_of
from fuel.kernels.outputs import Outputs, placed
from fuel.typing import Batch, EpochIterator, StreamLike

# Tensors of up to so many bytes are sent by value.
_SMALL = 1 << 15


class SmallTensor(torch.Tensor):
    """A tensor that is pickled by value; loaded, it is an ordinary one."""

    # What is computed of it is an ordinary tensor, too.
    __torch_function__ = torch._C._disabled_torch_function_impl

    def __reduce_ex__(self, protocol: Any) -> Any:
        return torch.from_numpy, (self.numpy(),)


class SharedOutputs(Outputs):
    """Shared memory that is offered to the stages of one batch.

    `sizes`: of the arrays that are expected, in bytes.
    """

    def __init__(self, sizes: Sequence[int], takes_rows: bool) -> None:
        self._sizes = list(sizes)
        self.takes_rows = takes_rows
        # By address: the memory, and a reference to the array over it.
        self._given: dict[int, tuple[torch.Tensor, Any]] = {}

    def give(self, nbytes: int) -> NDArray[numpy.uint8] | None:
        """Return new shared memory of a size that is expected."""
        if nbytes not in self._sizes:
            return None
        self._sizes.remove(nbytes)
        try:
            storage = torch.UntypedStorage._new_shared(nbytes)
        except RuntimeError:
            # There is no room; PyTorch reports it when it moves the batch.
            return None
        memory = torch.empty(0, dtype=torch.uint8).set_(storage)
        array: NDArray[numpy.uint8] = memory.numpy()
        self._given[memory.data_ptr()] = memory, weakref.ref(array)
        return array

    def take(self, parts: list[Any], place: int) -> torch.Tensor | None:
        """Return an array of a batch as a tensor in shared memory.

        `parts`: arrays that are in shared memory are taken out, so that it
            shows whether others hold them.

        Returns: None if the array is elsewhere.
        """
        array = parts[place]
        memory, reference = self._given.pop(
            address_of(array), (None, lambda: None))
        if memory is None:
            return None
        tensor = torch.from_numpy(array)
        shape, dtype = tensor.shape, tensor.dtype
        parts[place] = None
        del array, tensor
        shared: torch.Tensor = memory.view(dtype).view(shape)
        # A stage that keeps its array would see what the consumer writes.
        return shared if reference() is None else shared.clone()

    def unused(self) -> set[int]:
        """Return the sizes of what was given, and not taken since."""
        return {memory.nbytes for memory, _ in self._given.values()}


class SharedBatches:
    """Reads the batches of a stream in a worker of a loader.

    `chosen`: sources that become tensors.
    """

    def __init__(self, stream: StreamLike, chosen: Collection[str]) -> None:
        self._chosen = [source in chosen for source in stream.sources]
        self._takes_rows = not child_streams(stream)
        # Sizes of the large arrays of the last batch, in bytes.
        self.expected: list[int] = []
        # Of arrays that stages use between others only.
        self._unused: set[int] = set()

    def read(self, iterator: EpochIterator[Batch]) -> Batch:
        """Return the next batch, tensors where arrays can be sent at once."""
        outputs = SharedOutputs(self.expected, self._takes_rows)
        with placed(outputs):
            parts = list(next(iterator))
        sizes = []
        for place, is_chosen in enumerate(self._chosen):
            if not is_chosen or not _is_plain(parts[place]):
                continue
            size = parts[place].nbytes
            if size <= _SMALL:
                parts[place] = torch.from_numpy(
                    parts[place]).as_subclass(SmallTensor)
                continue
            sizes.append(size)
            tensor = outputs.take(parts, place)
            if tensor is not None:
                parts[place] = tensor
        self._unused |= outputs.unused()
        self.expected = [size for size in sizes
                         if size not in self._unused]
        return tuple(parts)


def _is_plain(part: Any) -> bool:
    """Return whether an array is one of numbers, laid out as Fuel's are."""
    return (type(part) is numpy.ndarray and part.flags.carray
            and part.dtype.kind in 'biufc' and part.dtype.isnative
            and part.dtype.char not in 'gG')
