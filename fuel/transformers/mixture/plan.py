"""The plan of a mixture: any item of it, from indices alone."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from fuel.epochs.planned import ItemPlan, Standing, seek, source_of
from fuel.epochs.state import position_of
from fuel.transformers.cache import join_batches
from fuel.transformers.mixture.position import Mixture
from fuel.transformers.mixture.reader import Finish, MixtureReader
from fuel.transformers.plans import RowPlan
from fuel.typing import Batch


class MixturePlan(ItemPlan):
    """Items of a mixture of streams that can be sought."""

    def __init__(self, mixture: Mixture, reader: MixtureReader,
                 iterators: list[Any], finish: Finish | None,
                 num_items: int) -> None:
        self.mixture = mixture
        self.reader = reader
        self.iterators = iterators
        self.num_items = num_items
        self._finish = finish
        self._rows: dict[int, RowPlan] = {}
        # The batch found last, its stream and its number there.
        self._found = -1, -1, -1

    def _find(self, item: int) -> tuple[int, int, RowPlan]:
        """Return the stream of a batch, its number there, and the plan of
        that stream's rows."""
        if self._found[0] != item:
            place = self.reader.find(item)
            child = self.iterators[place]
            self._found = item, place, child.epoch.requested
            if place not in self._rows or (
                    self._rows[place].child is not child):
                self._rows[place] = _rows_of(child)
        _, place, number = self._found
        return place, number, self._rows[place]

    def rows(self, item: int) -> int:
        """Return how many examples an item has."""
        _, number, plan = self._find(item)
        return plan.rows(number)

    def full_size(self, item: int) -> int:
        """Return how many examples a batch of its stream has."""
        return self._find(item)[2].size

    def read(self, item: int) -> Batch:
        """Return an item."""
        return self.reader.read_at(item)

    def read_rows(self, item: int, rows: slice, padding: int) -> Batch:
        """Return rows of a batch, padded from the start of its stream."""
        place, number, plan = self._find(item)
        self.mixture.taken[place] += 1
        try:
            batch = plan.read_rows(number, rows, padding)
        finally:
            # Back from the start, if it was padded.
            seek(plan.child, number + 1)
        return batch if self._finish is None else self._finish(batch, place)

    def finish(self) -> None:
        """Go to the end of the epoch, where the next one may go on."""
        self.reader.skip_to(self.num_items)

    def standing(self, item: int) -> Standing:
        """Return where the mixture stands before an item."""
        self.reader.skip_to(item)
        return Standing(
            self.mixture.state(), list(map(position_of, self.iterators)))


def _rows_of(child: Any) -> RowPlan:
    """Return the plan of the rows of a stream's batches."""
    requests: Any = source_of(child).request_iterator
    sources = child.data_stream.sources

    def make(batches: Sequence[Batch]) -> Batch:
        # Only where it is padded, there are several.
        return batches[0] if len(batches) == 1 else join_batches(
            batches, sources)

    size = requests.batch_size
    return RowPlan(child, size, math.inf, size, 0, make)
