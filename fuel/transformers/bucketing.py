"""A stage that makes batches of sequences of similar lengths."""
from __future__ import annotations

from collections.abc import Sized
from typing import Any, Unpack

import numpy

from fuel.epochs.examples import joined
from fuel.epochs.pipeline import source_examples
from fuel.epochs.state import position_of
from fuel.transformers.base import check_count
from fuel.transformers.leftovers import Leftover, LeftoverStage
from fuel.transformers.options import StreamOptions
from fuel.transformers.ragged import as_batch
from fuel.transformers.seeded import SeededTransformer
from fuel.transformers.source_names import check_known, labels_of_batches
from fuel.typing import Request, StreamLike
from fuel.utils.checks import positive, saved_count
from fuel.utils.sparse import require_dense


class BucketBatch(LeftoverStage, SeededTransformer):
    """Makes batches of examples of similar lengths, of limited size.

    So a batch needs little padding, and all batches have about the same
    size in memory. The stage reads a pool of examples, sorts them by length,
    cuts them into batches and returns the batches in random order.

    Parameters
    ----------
    data_stream : AbstractDataStream
        Produces examples.
    token_budget : int
        Largest number of items of a batch after padding: the length of
        its longest sequence times the number of sequences.
    length_source : str, optional
        The source whose length is measured. Defaults to the first source.
    pool_size : int, optional
        Number of examples that are sorted together. Defaults to 1000.
    shuffle : bool, optional
        Whether the batches of a pool come in random order, as opposed to
        the shortest first. Defaults to True.
    seed : int, optional
        Default is ``config.default_seed``.
    iteration_scheme, axis_labels
        See :class:`~fuel.transformers.Transformer`. The axis labels default
        to those of `data_stream`, with ``'batch'`` in front.

    Raises
    ------
    ValueError
        If `data_stream` produces batches, or an argument is invalid; when
        data are requested, if a single sequence is longer than the budget.

    Notes
    -----
    A state holds the number of the pool, and the number of batches of the
    pool that were returned. Restoring a state reads the pool again.

    Examples
    --------
    >>> from fuel.datasets import IterableDataset
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IterableDataset(
    ...     [[1], [2, 2, 2, 2], [3, 3], [4], [5, 5, 5]]))
    >>> batches = BucketBatch(stream, token_budget=8, shuffle=False)
    >>> for batch, in batches.get_epoch_iterator():
    ...     print(batch)
    [list([1]) list([4]) list([3, 3])]
    [list([5, 5, 5]) list([2, 2, 2, 2])]
    """

    epoch_attributes = (*LeftoverStage.epoch_attributes, '_num_pools')
    _kept: tuple[Leftover, ...] = ()
    # The number of pools that were read.
    _num_pools = 0

    def __init__(self, data_stream: StreamLike, token_budget: int,
                 length_source: str | None = None, pool_size: int = 1000,
                 shuffle: bool = True, *, seed: int | None = None,
                 **kwargs: Unpack[StreamOptions]) -> None:
        if not data_stream.produces_examples:
            raise ValueError(
                'BucketBatch makes batches of examples, but its data stream '
                f'({type(data_stream).__name__}) produces batches: put '
                'Unpack between them')
        if length_source is None:
            length_source = data_stream.sources[0]
        check_known('length_source', (length_source,), data_stream.sources)
        kwargs.setdefault('axis_labels', labels_of_batches(data_stream))
        super().__init__(
            data_stream, False, seed=seed, draws='item', **kwargs)
        self.token_budget = positive('token_budget', token_budget)
        self.pool_size = positive('pool_size', pool_size)
        self.length_source = length_source
        self.shuffle = shuffle

    def start_epoch(self) -> None:
        """Set the attributes that belong to a new epoch."""
        self._num_pools = 0
        super().start_epoch()

    def get_data(self, request: Request = None) -> tuple[Any, ...]:
        """Return the next batch.

        See :meth:`~fuel.transformers.Transformer.get_data`.
        """
        self._refuse(request)
        if not self._kept:
            self._keep_next()
        pool, = self._kept
        examples = pool.parts[pool.used]
        if self._asked is not None:
            self._asked.last = joined(
                pool.examples[pool.used], are_single=True)
        pool.used += 1
        if not pool.is_left():
            self._kept = ()
        self._item += 1
        return tuple([as_batch(part) for part in zip(*examples, strict=True)])

    def _keep_next(self) -> None:
        """Read the next pool."""
        position = position_of(self.child_epoch_iterator)
        examples: list[Any] = []
        found: list[Any] = []
        while len(examples) < self.pool_size:
            try:
                examples.append(tuple(next(self.child_epoch_iterator)))
            except StopIteration:
                break
            check_count(examples[-1], self.data_stream.sources)
            if self._asked is not None:
                found.append(source_examples(self.child_epoch_iterator, 1))
        if not examples:
            raise StopIteration
        batches = self._cut(examples)
        if self.shuffle:
            order = numpy.random.default_rng(
                [self._key, self._num_pools]).permutation(len(batches))
            batches = [batches[i] for i in order]
        self._kept = (Leftover(position, [
            [examples[i] for i in batch] for batch in batches],
            len(batches)),)
        if self._asked is not None:
            self._kept[0].examples = [
                [found[i] for i in batch] for batch in batches]
        self._num_pools += 1

    def _cut(self, examples: list[Any]) -> list[list[int]]:
        """Return the places of the examples in batches, the shortest
        first."""
        place = list(self.data_stream.sources).index(self.length_source)
        lengths = [self._measure(example[place]) for example in examples]
        batches: list[list[int]] = []
        for i in sorted(range(len(examples)), key=lengths.__getitem__):
            if lengths[i] > self.token_budget:
                raise ValueError(
                    f'a sequence of {self.length_source!r} has the length '
                    f'{lengths[i]}, more than token_budget '
                    f'{self.token_budget} (example {i} of pool '
                    f'{self._num_pools}): raise the budget, or leave such '
                    'sequences out with Filter')
            # The sequence is the longest of any batch that it joins.
            if batches and lengths[i] * (
                    len(batches[-1]) + 1) <= self.token_budget:
                batches[-1].append(i)
            else:
                batches.append([i])
        return batches

    def _measure(self, sequence: Sized) -> int:
        require_dense(sequence, self.length_source, type(self).__name__)
        try:
            return len(sequence)
        except TypeError as error:
            raise ValueError(
                f'{self.length_source!r} must hold sequences, got '
                f'{sequence!r:.60} ({type(sequence).__name__}): name the '
                'source that holds sequences as length_source') from error

    def num_items(self) -> None:
        """Return the number of items of an epoch, None if it is not known."""
        # The lengths of the sequences decide how many batches they make.
        return

    def get_leftover(self) -> dict[str, Any]:
        """Return the pool's number, and how many of its batches were used.

        If no pool is in use, they are the number of the next pool and None.
        """
        pools: Any = self._kept
        return {**self.inherited_leftover(),
                'number': self._num_pools - len(pools),
                'used': pools[0].used if pools else None}

    def set_leftover(self, leftover: dict[str, Any]) -> None:
        """Read the pool again, and skip the batches that were returned."""
        self.resume_plan(leftover)
        self._num_pools = saved_count(leftover, 'number')
        if leftover['used'] is not None:
            self._keep_next()
            pool, = self._kept
            pool.used = saved_count(leftover, 'used')
            if not pool.is_left():
                raise ValueError(
                    f'used is {pool.used}, but the pool has '
                    f'{pool.size} batches')
