"""The order of batches that split each step over ranks and rounds."""
from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy

from fuel.epochs.examples import SourceExamples, joined
from fuel.schemes.shard import BatchPart, Shard
from fuel.sharding.made import (
    DatasetRows, Made, Merged, example_ids, num_rows)
from fuel.sharding.order import ENDLESS, EpochOrder, ItemPart, RankOrder
from fuel.sharding.places import ItemPlace, places_in
from fuel.transformers.balanced.parts import (
    Lengths, Parts, balance, balance_within, costs_of)


class Splitting(NamedTuple):
    """The arguments by which a step is split.

    `size`: number of examples of a step, of all ranks.
    `rounds`: number of rounds of accumulation of a step.
    `cost`: returns the costs of lengths.
    `limit`: largest length of a batch, None for no limit.
    `is_alone`: whether an example beyond the limit is a batch of its own.
    """

    size: int
    rounds: int
    cost: Callable[[Lengths], Any]
    limit: int | None
    is_alone: bool


class RoundPlace(NamedTuple):
    """The place of an item: its step, its round in it, and its rank."""

    step: int
    round: int
    rank: int


class SplitStep(NamedTuple):
    """A step of all ranks.

    `number`: number of the step.
    `places`: numbers of its examples in the order below.
    `made`: the rows of these examples.
    `parts`: for each round and rank, the places in `places`.
    `tokens`: sum of the lengths, or of the numbers of trained tokens.
    """

    number: int
    places: Sequence[int]
    made: Sequence[Made]
    parts: Parts
    tokens: int


class BalancedOrder(EpochOrder):
    """Order of batches that split each step over ranks and rounds.

    `splitting`: the arguments by which a step is split.
    `shard`: any rank's share.
    `lengths`, `trained`: lengths and numbers of trained tokens of the rows, by
        the numbers of the data sets.
    `counts_tokens`: whether the rows of an item have the tokens of their step
        beside them.
    """

    _last: SplitStep | None = None

    def __init__(self, below: EpochOrder, splitting: Splitting, shard: Shard,
                 lengths: Mapping[int, Lengths],
                 trained: Mapping[int, Lengths],
                 counts_tokens: bool = False) -> None:
        self.inputs = below,
        self.splitting = splitting
        self.shard = shard
        self.lengths = lengths
        self.trained = trained
        self.counts_tokens = counts_tokens

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), '_last': None}

    def with_inputs(self, inputs: Sequence[EpochOrder]) -> EpochOrder:
        """Return the same order over other inputs."""
        ours = super().with_inputs(inputs)
        for name in ('total', '_last'):
            vars(ours).pop(name, None)
        return ours

    def share(self, shard: Shard, begin: int = 0) -> EpochOrder:
        """Return the order of a rank's share."""
        check_share(self.splitting, shard)
        whole = BalancedOrder(self.inputs[0], self.splitting, shard,
                              self.lengths, self.trained, self.counts_tokens)
        whole.takes_share = True
        return RankOrder(whole, shard, begin)

    @functools.cached_property
    def total(self) -> int:
        """The number of examples."""
        return len(self.inputs[0])

    @property
    def rounds_of_step(self) -> int:  # type: ignore[override]
        """The number of rounds of a full step."""
        return self.splitting.rounds

    @property
    def items_per_step(self) -> int:
        """The number of items of a full step."""
        return self.shard.num_shards * self.splitting.rounds

    @property
    def num_items(self) -> int:
        """The number of items."""
        return count_items(self.total, self.splitting, self.shard)

    def locate(self, item: int) -> RoundPlace:
        """Return the place of an item; after the last item, that of a step
        after the last one."""
        if item >= self.num_items:
            return RoundPlace(-(-self.total // self.splitting.size), 0, 0)
        step, rest = divmod(item, self.items_per_step)
        return RoundPlace(step, *divmod(rest, self.shard.num_shards))

    def first_example(self, step: int) -> int:
        """Return the number of the first example of a step."""
        return min(step * self.splitting.size, self.total)

    def split_step(self, number: int) -> SplitStep:
        """Return a step."""
        last = self._last
        if last is None or last.number != number:
            last = self._last = self._split(number)
        return last

    def _split(self, number: int) -> SplitStep:
        """Split a step."""
        size, rounds, cost, limit, is_alone = self.splitting
        ranks = self.shard.num_shards
        start = self.first_example(number)
        real = range(start, self.first_example(number + 1))
        places: Sequence[int] = real
        if len(real) < size and self.shard.uneven == 'pad':
            places = [*real, *[place % self.total for place in range(
                size - len(real))]]
        below = self.inputs[0]
        made = below.make_all(real) + below.make_all(places[len(real):])
        examples = [one for each in made for one in example_ids(each)]
        lengths = _looked_up(self.lengths, examples)
        tokens = lengths if not self.trained else _looked_up(
            self.trained, examples)
        count, rounds = _rounds_of(len(places), ranks, rounds)
        costs = costs_of(cost, lengths)
        if limit is None:
            parts: Parts | None = balance(costs, count, rounds)
        else:
            if not is_alone:
                self._check_longest(number, lengths, examples)
            parts = balance_within(
                costs, lengths.tolist(), limit, count, rounds)
        if parts is None:
            raise ValueError(
                f'the {len(places)} examples of step {number} have '
                f'{int(lengths.sum())} tokens, and no way was found to put '
                f'them into {rounds} rounds of {count} ranks with at most '
                f'{limit} tokens for each: raise limit or accumulate, or '
                'lower batch_size')
        return SplitStep(number, places, made, parts, int(tokens.sum()))

    def _check_longest(self, number: int, lengths: Lengths,
                       examples: Sequence[tuple[int, Any]]) -> None:
        """Raise ValueError if an example is longer than the limit."""
        limit = self.splitting.limit
        place = int(lengths.argmax())
        if limit is not None and lengths[place] > limit:
            dataset, row = examples[place]
            of = '' if len(self.lengths) == 1 else f' number {dataset}'
            raise ValueError(
                f'example {row} of the data set{of}, in step {number}, has '
                f'the length {lengths[place]}, and limit is {limit}: raise '
                "limit, pass too_long='alone' to make such an example a "
                'batch of its own, or leave it out of the scheme')

    def rows_of(self, item: int) -> BatchPart:
        """Return the rows of the step that an item has."""
        place = self.locate(item)
        step = self.split_step(place.step)
        start = self.first_example(place.step)
        return BatchPart(
            step.parts[item - place.step * self.items_per_step],
            len(step.places), self.first_example(place.step + 1) - start)

    def places(self, item: int) -> list[int]:
        """Return the numbers of an item's examples in the order below."""
        places = self.split_step(self.locate(item).step).places
        return [places[row] for row in self.rows_of(item).places]

    def parts(self, item: int) -> list[ItemPart]:
        """Return the examples of an item."""
        return [ItemPart(0, self.places(item))]

    def make(self, item: int) -> Made:
        """Return the rows of an item."""
        made = self.split_step(self.locate(item).step).made
        found = self.joined([made[row] for row in self.rows_of(item).places])
        return with_tokens(found, self.tokens(item)) if (
            self.counts_tokens) else found

    def tokens(self, item: int) -> int:
        """Return the number of tokens of the step of an item."""
        return self.split_step(self.locate(item).step).tokens

    def size(self, item: int) -> int:
        """Return the number of examples of an item."""
        return len(self.rows_of(item).places)

    def places_of(self, dataset: int, row: object, stop: int = ENDLESS,
                  ) -> Iterator[ItemPlace]:
        """Yield the places at which an example comes, in order."""
        below, count = self.inputs[0], self.items_per_step
        if below.unsized:
            # An example may be made of several rows.
            yield from super().places_of(dataset, row, stop)
            return
        full = self.total // self.splitting.size
        last = min(full, -(-stop // count))
        for number, found in itertools.groupby(
                below.places_of(dataset, row, min(
                    ENDLESS, last * self.splitting.size)),
                lambda place: place.item // self.splitting.size):
            if number >= last:
                break
            offsets = {place.item % self.splitting.size for place in found}
            for item, part in enumerate(
                    self.split_step(number).parts, number * count):
                for offset, place in enumerate(part):
                    if place in offsets:
                        yield ItemPlace(item, offset)
        for item in range(full * count, min(stop, self.num_items)):
            # The last step may have examples of the start again.
            yield from places_in(self.make(item), item, dataset, row)


def with_tokens(made: Made, tokens: int) -> Made:
    """Return the rows of a batch, with the tokens of its step beside each."""
    return Merged((made, DatasetRows(None, [tokens] * num_rows(made))),
                  'tokens')


def _rounds_of(count: int, ranks: int, rounds: int) -> tuple[int, int]:
    """Return the number of ranks that get examples of a step, and of
    rounds, given the number of examples.

    If there are too few, there are fewer rounds; then only one round, in
    which ranks without an example get nothing.
    """
    return min(ranks, count), min(rounds, max(1, count // ranks))


def count_items(total: int, splitting: Splitting, shard: Shard) -> int:
    """Return the number of items of all ranks.

    `total`: number of examples.
    """
    steps, rest = divmod(total, splitting.size)
    if rest and shard.uneven == 'pad':
        steps, rest = steps + 1, 0
    count = steps * shard.num_shards * splitting.rounds
    if rest and shard.uneven == 'uneven':
        ranks, rounds = _rounds_of(
            rest, shard.num_shards, splitting.rounds)
        count += ranks * rounds
    return min(count, ENDLESS)


def _looked_up(tables: Mapping[int, Lengths],
               examples: Sequence[tuple[int, Any]]) -> Lengths:
    """Return the lengths of examples."""
    try:
        rows = numpy.array([row for _, row in examples])
        if rows.dtype.kind not in 'iu':
            raise TypeError
        found: Lengths
        if len(tables) == 1:
            found = next(iter(tables.values()))[rows]
            return found
        found = numpy.empty(len(rows), numpy.int64)
        datasets = numpy.array([dataset for dataset, _ in examples])
        for dataset in set(datasets.tolist()):
            chosen = datasets == dataset
            found[chosen] = tables[dataset][rows[chosen]]
        return found
    except (IndexError, TypeError, ValueError) as error:
        counts = [len(table) for table in tables.values()]
        raise ValueError(
            'the lengths of a step cannot be found by the rows of its '
            f'examples, {[row for _, row in examples][:4]!r:.100}...: there '
            f'are lengths of {counts} rows, and a row must be the number of '
            'one') from error


def check_share(splitting: Splitting, shard: Shard) -> None:
    """Raise ValueError if a step cannot be split over ranks."""
    if shard.splits:
        raise ValueError(
            "BalancedBatches splits each step over the ranks itself, so "
            "by='example' cannot split its batches: use by='batch'")
    least = shard.num_shards * splitting.rounds
    if splitting.size < least:
        raise ValueError(
            f'batch_size is the number of examples of a step of all ranks, '
            f'and {splitting.size} are too few for {shard.num_shards} ranks '
            f'with accumulate={splitting.rounds}: use batch_size={least} or '
            'more, or fewer ranks')


def counted(kept: Sequence[tuple[Any, SourceExamples | None]], tokens: int,
            ) -> SourceExamples | None:
    """Return the examples of a batch, with the tokens of its step; None if
    they are not known."""
    found = joined([one for _, one in kept], are_single=True)
    return found and SourceExamples(
        with_tokens(found.made, tokens), found.in_order, found.stage)
