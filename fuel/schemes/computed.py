"""Shuffled schemes whose order is computed from a key, not stored."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy
from numpy.typing import NDArray

from fuel import config
from fuel.kernels.permutation import ROUNDS, permute, unpermute
from fuel.schemes.iteration_scheme import (
    BatchScheme, IndexScheme, check_sized, epoch_state, load_epoch_state)
from fuel.schemes.requests import (
    Order, PermutedBatches, PermutedExamples, num_batches)
from fuel.utils.checks import not_negative, positive

# Up to here the whole permutation is drawn, which takes half a megabyte:
# each order is then equally likely, also of very few examples.
STORED_SIZE = 2 ** 16


class Bijection(Order):
    """An order that has each place once, and can be computed backwards."""

    def place_of(self, numbers: NDArray[numpy.int64]) -> NDArray[numpy.int64]:
        """Return the numbers whose images are given."""
        raise NotImplementedError

    def positions_of(self, place: int) -> list[int]:
        """Return where a place is in the order."""
        found: list[int] = self.place_of(
            numpy.array([place], numpy.int64)).tolist()
        return found


class Permutation(Bijection):
    """A permutation of the numbers below `size`, given by seed and epoch.

    `part`: number of a part of the epoch, from 1 on; 0 for the whole epoch.
        The permutations of different parts are independent.
    """

    def __init__(self, size: int, seed: int, epoch: int,
                 part: int = 0) -> None:
        self.size = size
        self.seed = seed
        self.epoch = epoch
        self.part = part
        self._load()

    def _load(self) -> None:
        entropy = numpy.random.SeedSequence(
            (self.seed, self.epoch, *([self.part] if self.part else [])))
        self._stored: NDArray[numpy.int64] | None = None
        self._stored_places: NDArray[numpy.int64] | None = None
        self._keys: list[int] = []
        if self.size <= STORED_SIZE:
            rng = numpy.random.Generator(numpy.random.PCG64(entropy))
            self._stored = rng.permutation(self.size)
        else:
            self._keys = entropy.generate_state(
                ROUNDS, numpy.uint64).tolist()

    def __getstate__(self) -> dict[str, int]:
        return {'size': self.size, 'seed': self.seed, 'epoch': self.epoch,
                'part': self.part}

    def __setstate__(self, state: dict[str, int]) -> None:
        vars(self).update(state)
        self._load()

    def __call__(self, start: int, stop: int) -> NDArray[numpy.int64]:
        """Return the images of ``start`` to ``stop - 1``, fewer at the end."""
        if self._stored is not None:
            return self._stored[start:stop]
        numbers = numpy.arange(start, min(stop, self.size), dtype=numpy.int64)
        permute(numbers, self.size, self._keys)
        return numbers

    def place_of(self, numbers: NDArray[numpy.int64]) -> NDArray[numpy.int64]:
        """Return the numbers whose images are given."""
        if self._stored is None:
            found = numpy.array(numbers)
            unpermute(found, self.size, self._keys)
            return found
        if self._stored_places is None:
            self._stored_places = numpy.empty_like(self._stored)
            self._stored_places[self._stored] = numpy.arange(self.size)
        return self._stored_places[numbers]


class ComputedShuffle:
    """Base class of schemes that compute an order from seed and epoch."""

    seed: int
    epoch: int

    def set_seed(self, seed: int | None) -> None:
        """Check and set the seed, and begin with the first epoch."""
        self.seed = not_negative(
            'seed', config.default_seed if seed is None else seed)
        self.epoch = 0

    def _next_order(self, size: int) -> Order:
        order = self._order(size)
        self.epoch += 1
        return order

    def _order(self, size: int) -> Order:
        """Return the order of the present epoch."""
        return Permutation(size, self.seed, self.epoch)


class ComputedBatches(ComputedShuffle, BatchScheme):
    """Base of the schemes whose batches come in a computed order."""

    def get_request_iterator(self) -> Iterator[list[Any]]:
        """Return an iterator over the batches of a new epoch."""
        indices = self._sequence()
        return PermutedBatches(
            indices, self.batch_size, self._next_order(len(indices)),
            self.drop_last)

    random_access = True
    state_dict = epoch_state
    load_state_dict = load_epoch_state


class ComputedShuffledScheme(ComputedBatches):
    """Batches in a random order that takes no memory, however many there are.

    :class:`ShuffledScheme` stores the order of an epoch; this scheme computes
    each part of the order when it is needed, from a key of 64 bytes.  So
    10^12 examples take no more memory than ten thousand, an epoch starts at
    once, and any position is reached in constant time.

    Parameters
    ----------
    examples : int or sequence of int
        See :class:`BatchScheme`.
    batch_size : int
        See :class:`BatchScheme`.
    seed : int, optional
        Not negative.  Defaults to ``config.default_seed``.
    drop_last : bool, optional
        Leave out a last batch of fewer examples.  Each epoch leaves out
        other examples.  Defaults to False.

    Attributes
    ----------
    epoch : int
        Number of the next epoch, from 0 on.  The order depends only
        on `seed` and on this number.

    Raises
    ------
    TypeError
        If `examples` is an iterator or `seed` is not an integer.
    ValueError
        If `seed` is negative.

    Notes
    -----
    For up to 65,536 examples every order is equally likely.  For more, the
    order is a keyed bijection (a Feistel network of eight rounds over the
    numbers below the number of examples): it passes the same statistical tests
    as a drawn order, but of ``n!`` orders at most ``2 ** 512`` can come out.

    Examples
    --------
    >>> scheme = ComputedShuffledScheme(6, 4, seed=1)
    >>> list(scheme.get_request_iterator())
    [[4, 0, 2, 1], [5, 3]]
    >>> requests = ComputedShuffledScheme(
    ...     10 ** 12, 3, seed=1).get_request_iterator()
    >>> requests.advance(10 ** 11)
    >>> next(requests)
    [49216777294, 536511286517, 983231508528]
    """

    def __init__(self, examples: int | Iterable[Any], batch_size: int, *,
                 seed: int | None = None, drop_last: bool = False) -> None:
        super().__init__(examples, batch_size)
        check_sized(self, examples)
        self.drop_last = drop_last
        self.set_seed(seed)


class ComputedShuffledExampleScheme(ComputedShuffle, IndexScheme):
    """Single examples in a random order that takes no memory.

    Parameters
    ----------
    examples : int or sequence of int
        See :class:`IndexScheme`.
    seed : int, optional
        See :class:`ComputedShuffledScheme`.

    Examples
    --------
    >>> scheme = ComputedShuffledExampleScheme(6, seed=1)
    >>> list(scheme.get_request_iterator())
    [4, 0, 2, 1, 5, 3]
    """

    def __init__(self, examples: int | Iterable[Any], *,
                 seed: int | None = None) -> None:
        super().__init__(examples)
        check_sized(self, examples)
        self.set_seed(seed)

    def get_request_iterator(self) -> Iterator[Any]:
        """Return an iterator over the indices of a new epoch."""
        indices = self._sequence()
        return PermutedExamples(
            indices, self._next_order(len(indices)))

    random_access = True
    state_dict = epoch_state
    load_state_dict = load_epoch_state


class BlockPermutation(Bijection):
    """Permutation that shuffles blocks, then the numbers of a few blocks.

    One permutation orders the blocks. A shorter last block stays last, so
    every window but the last has the same size. The numbers of each window
    are permuted by a permutation of its own.
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
        """Return the images of ``start`` to ``stop - 1``, fewer at the end."""
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

    def place_of(self, numbers: NDArray[numpy.int64]) -> NDArray[numpy.int64]:
        """Return the numbers whose images are given."""
        turns, within = numpy.divmod(numbers, self.block_size)
        # A shorter last block stays last.
        is_full = turns < self._blocks.size
        turns[is_full] = self._blocks.place_of(turns[is_full])
        windows, turns = numpy.divmod(turns, self.window)
        found = turns * self.block_size + within
        for number in numpy.unique(windows).tolist():
            chosen, (order, _) = windows == number, self._window(number)
            found[chosen] = order.place_of(found[chosen]) + (
                number * self.window * self.block_size)
        return found

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
            # The numbers of a neighbouring window may be needed again.
            self._windows = {
                other: kept for other, kept in self._windows.items()
                if abs(other - number) == 1}
            self._windows[number] = found
        return found


class ComputedBlockShuffledScheme(ComputedBatches):
    """Batches in a random order that reads storage block by block.

    It shuffles as :class:`BlockShuffledScheme` does with blocks of one size,
    but in memory that does not depend on the number of examples: the order
    of the blocks, and of the examples in a window, is computed.

    Parameters
    ----------
    examples : int or sequence of int
        See :class:`BatchScheme`. Blocks are cut in the order given.
    batch_size : int
        See :class:`BatchScheme`.
    block_size : int
        Number of examples in a block. The last one may have fewer; it is
        in the last window.
    window : int, optional
        Number of blocks that are shuffled together. Defaults to 8.
    seed : int, optional
        Not negative. Defaults to ``config.default_seed``.
    drop_last : bool, optional
        Leave out a last batch of fewer examples.  Each epoch leaves out
        other examples.  Defaults to False.

    Attributes
    ----------
    epoch : int
        Number of the next epoch, from 0 on. The order depends only
        on `seed` and on this number.

    See Also
    --------
    measure_order : Measures how random the order is for a given window.

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
        """Number of blocks (int)."""
        return num_batches(self.num_examples or 0, self.block_size)

    def _order(self, size: int) -> Order:
        return BlockPermutation(
            size, self.block_size, self.window, self.seed, self.epoch)
