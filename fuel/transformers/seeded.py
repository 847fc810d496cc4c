"""A base for random stages: one random generator for each item of an epoch,
or for each example.

The generator depends on the seed, the epoch and the number of the item in
it, or the example, and not on earlier draws. So the draws can be repeated
anywhere: after a restart, in another process, or in any order.
"""
from __future__ import annotations

import functools
import math
import zlib
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy
from numpy.typing import NDArray

from fuel.config_parser import config
from fuel.epochs.epoch import asking, asking_examples
from fuel.epochs.pipeline import length_of
from fuel.epochs.stage import stage_of
from fuel.iterator import DataIterator
from fuel.kernels import draws
from fuel.schemes.shard import BatchPart
from fuel.sharding.shard_pipeline import refuse_split, sharding_of
from fuel.sharding.planned import numbers_read, rows_at
from fuel.transformers.base import Transformer, refuse_unset
from fuel.transformers.example_ids import ExampleIds, require_known_rows
from fuel.typing import RandomGenerator
from fuel.utils.checks import not_negative, saved_count

#: Takes a generator and a number of rows, and returns an array of that length.
Draw: TypeAlias = 'Callable[[numpy.random.Generator, int], Any]'


class SeededTransformer(Transformer):
    """A stage that draws at random, from a seed.

    Subclasses implement :meth:`transform_example`, :meth:`transform_batch`
    or both, and draw from :meth:`generator`.

    Parameters
    ----------
    data_stream, produces_examples, iteration_scheme, axis_labels
        See :class:`Transformer`. A class that has another base too, such as
        :class:`SourcewiseTransformer`, takes the arguments of that base.
    seed : int, optional
        Default is ``config.default_seed``. Stages of different classes draw
        independently even with equal seeds. Two stages of one class need
        different seeds to draw independently.
    draws : {'item', 'example'}, optional
        What the draws belong to. With ``'item'``, the default, the draws for
        an item, such as a batch, depend on the number of the item in the
        epoch. With ``'example'`` those for each row depend on the example of
        the data set instead: in an epoch, an example gets the same draws in
        a batch of any size, and in any order; see :doc:`/random_by_example`.

    Attributes
    ----------
    seed : int
    rng : numpy.random.Generator
        Draws a key for each epoch.

    Raises
    ------
    fuel.exceptions.UnknownOrderError
        If `draws` is ``'example'`` and a stage below hides the examples of
        the rows; the error names it.

    Notes
    -----
    The draws depend only on the seed, the epoch, and the number of the item
    or the example. So the stage resumes exactly, and several workers may
    share it.

    Your methods need not know `draws`. With ``'example'``,
    :meth:`generator` is that of the example in :meth:`transform_example`,
    and :meth:`draw_rows` and :meth:`generators` draw for each row of a batch
    by its example. Only :meth:`generator` of a whole batch is refused.

    Each call of :meth:`generator` returns a new generator. The generators of
    two calls for one item give the same numbers. To get different numbers,
    draw several times from one generator, or pass a different number in each
    call, as in ``generator(1)``. In a method that is called for each source,
    such as those of :class:`SourcewiseTransformer`, pass the place of the
    source.

    Examples
    --------
    >>> import numpy
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.schemes import SequentialScheme
    >>> from fuel.streams import DataStream
    >>> class Mask(SeededTransformer):
    ...     def transform_batch(self, batch):
    ...         mask = self.generator().random(batch[0].shape) < .5
    ...         return (batch[0] * mask,)
    >>> stream = DataStream(IndexableDataset(numpy.ones((4, 3))),
    ...                     iteration_scheme=SequentialScheme(4, 2))
    >>> def total(stage):
    ...     return sum(batch.sum() for batch, in stage.get_epoch_iterator())
    >>> bool(total(Mask(stream, False, seed=5)) == total(
    ...     Mask(stream, False, seed=5)))
    True
    """

    epoch_attributes = (
        *Transformer.epoch_attributes, '_key', '_number', '_item', '_ids')
    _key = 0
    # The examples of rows, if draws belong to them.
    _ids: ExampleIds | None = None
    _by_example = False
    # None if draws belong to items: states of releases without this argument
    # say nothing of it.
    draws: str | None = None
    # Numbers of the current item and of the next one.
    _number = _item = 0
    # All ranks together advance by `_step` items; this rank has the one at
    # `_offset`.
    _step = 1
    _offset = 0
    _splits = False
    draws_by_seed = True

    def __init__(self, *args: Any, seed: int | None = None,
                 draws: str = 'item', **kwargs: Any) -> None:
        check_kind_of_draws(draws)
        if draws == 'example':
            self.draws, self._by_example = draws, True
        self.seed: int | None = (
            config.default_seed if seed is None
            else not_negative('seed', seed))
        self.rng: Any = self._first_generator()
        super().__init__(*args, **kwargs)
        refuse_split(self, sharding_of(self.data_stream))
        if self._by_example:
            require_known_rows(self._asker, self.data_stream)

    @property
    def _asker(self) -> str:
        """The name of the stage, for errors about examples (str)."""
        return f"{type(self).__name__}(draws='example')"

    def _first_generator(self) -> numpy.random.Generator:
        """Return the generator as it is before the first epoch."""
        kind = zlib.crc32(type(self).__name__.encode())
        seeds: Any = [self.seed, kind]
        return numpy.random.default_rng(seeds)

    def start_epoch(self) -> None:
        """Set the attributes that belong to a new epoch."""
        # A restored epoch has a key already, which this generator has
        # drawn.
        if self.draws_by_seed and stage_of(self).resumed() is None:
            try:
                rng = self.rng
            except AttributeError as error:
                refuse_unset(self, error)
            self._key = int(rng.integers(2 ** 63))
        self._number = self._item = 0
        shard = sharding_of(self.data_stream)
        if shard is not None:
            self._step, self._offset = shard.step, shard.offset
            self._splits = shard.splits
        if self._by_example:
            self._ids = ExampleIds(self._asker, self.data_stream)
        with asking_examples(self._by_example or asking.examples):
            super().start_epoch()

    def _pull(self) -> Any:
        """Return the next data of `data_stream`, and count them."""
        try:
            data = super()._pull()
        except StopIteration:
            raise
        except Exception:
            # Other ranks and workers count the item even if it fails here.
            self._count()
            raise
        self._count()
        return data

    def _count(self, count: int = 1) -> None:
        """Advance the numbers of the current item and of the next one.

        If ranks split each batch, the numbers come from the child's epoch.
        """
        child = self.child_epoch_iterator
        found = None
        if isinstance(child, DataIterator):
            if self._splits:
                found = numbers_read(child)
            elif self.makes_pieces:
                # The child has left out the items in between.
                left_out = (child.epoch.requested - self._item - 1
                            ) // self._step
                number = self._item + max(0, left_out) * self._step
                found = number, number + self._step
        self._number, self._item = found or (
            self._item, self._item + count * self._step)

    @property
    def __fuel_draws_by_seed__(self) -> bool:
        return self.draws_by_seed

    @property
    def one_to_one(self) -> bool:
        """Whether an item is made of exactly one item of the input (bool)."""
        return self.draws_by_seed and set(self.epoch_attributes) <= {
            *SeededTransformer.epoch_attributes}

    order_items = Transformer.order_items

    def skip(self, count: int) -> None:
        """Skip items, and their draws."""
        super().skip(count)
        self._count(count)

    def num_items(self) -> int | None:
        """Return the number of items of an epoch, None if it is not known."""
        if self.iteration_scheme is not None:
            return None
        return length_of(self.data_stream)

    def generator(self, *more: int) -> numpy.random.Generator:
        """Return a random generator of the current item.

        Parameters
        ----------
        *more : int
            Numbers that select another generator of the item, such as the
            place of a source.

        Returns
        -------
        numpy.random.Generator
            A new generator at each call. All calls for one item with the same
            `more` return generators that give the same numbers. To get
            different numbers, draw several times from one generator.
        """
        if self._by_example:
            if not self.data_stream.produces_examples:
                raise NotImplementedError(
                    f'the stage {self._asker} draws by generator() for a '
                    'whole batch: draw for each row, by draw_rows() or '
                    "generators(), or use draws='item'")
            return next(self._generators_of(1, *more))
        if self._splits and not self.produces_examples:
            raise NotImplementedError(
                f'the stage {type(self).__name__} draws by generator(), but '
                f'the batch is split over ranks, so each would draw something '
                f"else: draw by draw_rows(), or use by='batch'")
        return self._generator(*more)

    def _generator(self, *more: int) -> numpy.random.Generator:
        return numpy.random.default_rng([*self._item_place(), *more])

    def _place(self) -> list[int]:
        """Return the numbers that seed the draws of the current item."""
        if self._by_example:
            # Those of a single example; negative rows count from the end.
            return [self._key, *[number % 2 ** 64 for number
                                 in self._examples(1)[0].tolist()]]
        return self._item_place()

    def _item_place(self) -> list[int]:
        """Return the numbers that seed the draws of an item."""
        return [self._key, self._number + self._offset]

    def _examples(self, count: int) -> NDArray[numpy.int64]:
        """Return the examples of the rows of the current item.

        `count`: number of rows that came.
        """
        assert self._ids is not None
        return self._ids.of_last(self.child_epoch_iterator, count)[0]

    def _generators_of(self, count: int, *more: int,
                       ) -> Iterator[numpy.random.Generator]:
        """Yield the generator of each row's example."""
        register_words()
        for words in draws.example_words(
                self._key, self._examples(count), more):
            # The stubs of NumPy do not know other seed sequences.
            seeds: Any = GivenWords(words)
            yield numpy.random.Generator(numpy.random.SFC64(seeds))

    def _draw_shares(self, count: int, *shape: int) -> NDArray[numpy.float64]:
        """Draw numbers from 0 to below 1, an array of a shape for each row of
        the current item."""
        if self._by_example:
            return draws.example_shares(
                self._key, self._examples(count), math.prod(shape)).reshape(
                    count, *shape)
        drawn: NDArray[numpy.float64] = self.draw_rows(
            count, lambda generator, total: generator.random((total, *shape)))
        return drawn

    def draw_rows(self, count: int, draw: Draw, *more: int) -> Any:
        """Draw values for the rows of the current batch.

        If a batch is split over ranks, values are drawn for the whole batch,
        and the values for the rows of this rank are returned. So the values
        do not depend on the number of ranks.

        Parameters
        ----------
        count : int
            Number of rows that the stage received.
        draw : callable
            Takes a generator and a number of rows, and returns an array of
            that length. With ``draws='example'`` it is called for each row,
            with the generator of the row's example and the number 1.
        *more : int
            See :meth:`generator`.

        Examples
        --------
        >>> from fuel.datasets import IndexableDataset
        >>> from fuel.streams import DataStream
        >>> class Numbered(SeededTransformer):
        ...     def transform_batch(self, batch):
        ...         drawn = self.draw_rows(len(batch[0]), lambda generator, n:
        ...                                generator.permutation(n))
        ...         return (drawn.tolist(),)
        >>> stream = Numbered(DataStream(
        ...     IndexableDataset([0] * 4), batch_size=4), False)
        >>> whole, = next(iter(stream))[0],
        >>> parts = [next(iter(stream.shard(rank, 2, by='example')))[0]
        ...          for rank in range(2)]
        >>> len(whole), sorted(parts[0] + parts[1])
        (4, [0, 1, 2, 3])
        """
        if self._by_example and count:
            return numpy.concatenate([
                draw(generator, 1)
                for generator in self._generators_of(count, *more)])
        rows = self._rows(count)
        if rows is None:
            return draw(self._generator(*more), count)
        return draw(self._generator(*more), rows.total)[rows.rows]

    def generators(self, count: int, *more: int,
                   ) -> Iterator[numpy.random.Generator]:
        """Yield a generator for each row of the current batch.

        Parameters
        ----------
        count : int
            Number of rows that the stage received.
        *more : int
            See :meth:`generator`.
        """
        if self._by_example:
            yield from self._generators_of(count, *more)
            return
        rows = self._rows(count)
        places = range(count) if rows is None else rows.places
        for place in places:
            yield self._generator(*more, place)

    def _rows(self, count: int) -> BatchPart | None:
        """Return which rows of the whole batch came; None if all came."""
        if self.produces_examples:
            return None
        child = self.child_epoch_iterator
        rows = (rows_at(child, self._number)
                if isinstance(child, DataIterator) else None)
        if rows is None and self._splits:
            raise NotImplementedError(
                f'the stage {type(self).__name__} cannot know which rows of '
                'a batch that is split over ranks came: put it before the '
                'stage that makes batches in other processes')
        if rows is None or len(rows.places) == count:
            return rows
        if self._splits:
            raise ValueError(
                f'the stage {type(self).__name__} draws for each row of a '
                f'batch that is split over ranks, but {count} rows came of '
                f'{len(rows.places)}: put it before the '
                'stage that changes their number')
        # A stage upstream has made other rows after examples were left out.
        return None

    def get_leftover(self) -> Any:
        """Return the epoch's key and the number of the next item."""
        if not self.draws_by_seed:
            return None
        return {'key': self._key, 'item': self._item}

    def set_leftover(self, leftover: dict[str, Any]) -> None:
        """Restore an epoch's key and the number of the next item."""
        self._key = not_negative('key', leftover['key'])
        self._number = self._item = saved_count(leftover, 'item')


class GivenWords:
    """The words from which a bit generator starts; a seed sequence of
    NumPy's."""

    def __init__(self, words: NDArray[numpy.uint64]) -> None:
        self.words = words

    def generate_state(self, n_words: int, dtype: Any = numpy.uint32) -> Any:
        """Return the words; an SFC64 generator needs three of 64 bits."""
        return self.words


@functools.cache
def register_words() -> None:
    """Let bit generators take :class:`GivenWords`; it is not derived, since
    most programs do without numpy.random."""
    from numpy.random.bit_generator import ISeedSequence
    ISeedSequence.register(GivenWords)


def check_kind_of_draws(draws: object) -> None:
    """Raise ValueError for a wrong value of the argument `draws`."""
    if draws not in ('item', 'example'):
        raise ValueError(f"draws must be 'item' or 'example', got {draws!r}")


class RandomTransformer(SeededTransformer):
    """Base of the stages that draw from an `rng` or by a `seed`.

    With an `rng` they draw as in Fuel 0.2.0.
    """

    draws_by_seed = False

    def __init__(self, *args: Any, rng: RandomGenerator | None = None,
                 seed: int | None = None, draws: str = 'item',
                 **kwargs: Any) -> None:
        by_seed = seed is not None or draws == 'example'
        if rng is not None and by_seed:
            raise ValueError(
                f'{type(self).__name__} takes rng, which draws as Fuel 0.2.0 '
                'did, or seed, which workers and ranks can share, and which '
                "draws='example' needs: pass one of them")
        super().__init__(*args, seed=seed, draws=draws, **kwargs)
        self.draws_by_seed = by_seed
        if not by_seed:
            self.seed = None
            self.rng = numpy.random.RandomState(
                config.default_seed) if rng is None else rng


def draw_integers(rng: Any, slack: int,
                  count: int | None = None) -> Any:
    """Draw integers from 0 to `slack`, as the stages of Fuel 0.2.0 did."""
    if type(rng) is numpy.random.RandomState and count is not None:
        return draws.draw_integers(rng._bit_generator, slack, count)
    if isinstance(rng, numpy.random.Generator):
        return rng.integers(0, slack + 1, count)
    if _takes_shapes(rng):
        return rng.randint(0, slack + 1, count)
    if count is None:
        return rng.randrange(slack + 1)
    return numpy.array([rng.randrange(slack + 1) for _ in range(count)], int)


def draw_uniform(rng: Any, most: float, count: int) -> Any:
    """Draw numbers from ``-most`` to `most`; see :func:`draw_integers`."""
    if isinstance(rng, numpy.random.Generator) or _takes_shapes(rng):
        return rng.uniform(-most, most, count)
    return numpy.array([rng.uniform(-most, most) for _ in range(count)])


def _takes_shapes(rng: object) -> bool:
    """Return whether a generator has the methods of NumPy's RandomState."""
    return hasattr(rng, 'get_state')
