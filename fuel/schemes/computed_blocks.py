"""A scheme that shuffles block by block, whose order is computed."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy
from numpy.typing import NDArray

from fuel.schemes.base import (BatchScheme, check_sized, epoch_state,
                               load_epoch_state)
from fuel.schemes.computed import (
    ComputedBatchRequests,
    ComputedShuffle,
    Permutation,
)
from fuel.schemes.requests import num_batches
from fuel.utils.checks import positive


class BlockPermutation:
    """Permutation of numbers that moves blocks, then mixes a few at a time.

    The blocks come in the order of one permutation, but for the last one if
    it is shorter, which comes last; so every window but the last has the
    same size. The numbers in each are permuted by a permutation of its own.
    """

    def __init__(self, size: int, block_size: int, window: int, seed: int,
                 epoch: int) -> None:
        self.size = size
        self.block_size = block_size
        self.window = window
        self.seed = seed
        self.epoch = epoch
        self._blocks = Permutation(size // block_size, seed, epoch)
        self._windows: dict[
            int, tuple[Permutation, NDArray[numpy.int64]]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), '_windows': {}}

    def __call__(self, start: int, stop: int) -> NDArray[numpy.int64]:
        """Return the images of ``start, ..., stop - 1``; less at the end."""
        step, stop = self.block_size * self.window, min(stop, self.size)
        parts = [numpy.empty(0, numpy.int64)]
        while start < stop:
            number = start // step
            end = min(stop, (number + 1) * step)
            parts.append(self._in_window(
                number, start - number * step, end - number * step))
            start = end
        return parts[-1] if len(parts) == 2 else numpy.concatenate(parts)

    def _in_window(self, number: int, start: int, stop: int
                   ) -> NDArray[numpy.int64]:
        """Return the images of some places of a window."""
        order, blocks = self._window(number)
        place, within = numpy.divmod(order(start, stop), self.block_size)
        return blocks[place] * self.block_size + within

    def _window(self, number: int
                ) -> tuple[Permutation, NDArray[numpy.int64]]:
        """Return a window's own permutation, and its blocks."""
        found = self._windows.get(number)
        if found is None:
            first, full = number * self.window, self._blocks.size
            blocks = self._blocks(first, first + self.window)
            if first + self.window > full:
                blocks = numpy.append(blocks, full)
            step = self.block_size * self.window
            found = Permutation(
                min(step, self.size - number * step), self.seed, self.epoch,
                number + 1), blocks
            # The window before may still be asked for.
            self._windows = {
                other: kept for other, kept in self._windows.items()
                if abs(other - number) == 1}
            self._windows[number] = found
        return found


class ComputedBlockShuffledScheme(ComputedShuffle, BatchScheme):
    """Batches in a random order that reads storage block by block.

    What :class:`BlockShuffledScheme` does for blocks of one size, in memory
    that does not depend on the number of examples: the order of the blocks
    is computed, and so is that of the examples in a window.

    Parameters
    ----------
    examples : int or sequence of int
        See :class:`BatchScheme`. Blocks are cut in the order given.
    batch_size : int
        See :class:`BatchScheme`.
    block_size : int
        How many examples are in a block. The last one may have fewer; it is
        in the last window.
    window : int, optional
        How many blocks are shuffled together. Defaults to 8.
    seed : int, optional
        Not negative. Defaults to ``config.default_seed``.
    drop_last : bool, optional
        Leave out a last batch of fewer examples; others in each epoch.
        Defaults to False.

    Attributes
    ----------
    epoch : int
        Number of the next epoch, from 0 on. The order depends on `seed` and
        on this alone.

    See Also
    --------
    measure_order : Says how random the order is, by the window.

    Examples
    --------
    >>> scheme = ComputedBlockShuffledScheme(
    ...     12, 4, block_size=3, window=2, seed=1)
    >>> for batch in scheme.get_request_iterator():
    ...     print(batch)
    [2, 4, 5, 0]
    [1, 3, 7, 11]
    [9, 8, 6, 10]
    >>> requests = ComputedBlockShuffledScheme(
    ...     10 ** 12, 3, block_size=1000, seed=1).get_request_iterator()
    >>> requests.advance(10 ** 11)
    >>> next(requests)
    [998236523116, 314016187025, 60273881151]

    """

    def __init__(self, examples: int | Iterable[Any], batch_size: int, *,
                 block_size: int, window: int = 8, seed: int | None = None,
                 drop_last: bool = False) -> None:
        super().__init__(examples, batch_size)
        self.drop_last = drop_last
        check_sized(self, examples)
        self.block_size = positive('block_size', block_size)
        self.window = positive('window', window)
        self.set_seed(seed)

    @property
    def num_blocks(self) -> int:
        """How many blocks there are (int)."""
        return num_batches(self.num_examples or 0, self.block_size)

    def get_request_iterator(self) -> Iterator[list[Any]]:
        """Return an iterator over the batches of a new epoch."""
        indices = self._sequence()
        order = BlockPermutation(len(indices), self.block_size, self.window,
                                 self.seed, self.epoch)
        self.epoch += 1
        return ComputedBatchRequests(
            indices, self.batch_size, order, self.drop_last)

    random_access = True
    state_dict = epoch_state
    load_state_dict = load_epoch_state
