"""The order of a data set that is read in order."""
from __future__ import annotations

from collections.abc import Iterator

from fuel.schemes.inverse import as_index
from fuel.sharding.made import DatasetRows, Made
from fuel.sharding.order import ENDLESS, EpochOrder
from fuel.sharding.places import ItemPlace


class GivenOrder(EpochOrder):
    """Order of a data set that is read in order, example by example."""

    is_single = True
    dataset: int

    def __init__(self, dataset: int, num_items: int | None) -> None:
        self.dataset = dataset
        self.num_items = num_items

    @property
    def has_fixed_length(self) -> bool:
        """Whether all epochs have the same number of items (bool)."""
        return self.num_items is not None

    def make(self, item: int) -> Made:
        """Return the row of the data set with the number of the item."""
        return DatasetRows(self.dataset, item)

    def count_to(self, stop: int) -> int:
        """Return the number of items; `stop` if it is not known."""
        return stop if self.num_items is None else len(self)

    def places_of(self, dataset: int, row: object, stop: int = ENDLESS,
                  ) -> Iterator[ItemPlace]:
        """Yield the item whose number is that of the row."""
        item, count = as_index(row), self.num_items
        if dataset == self.dataset and isinstance(item, int) and (
                0 <= item and (count is None or item < count)):
            yield ItemPlace(item, 0)

    @property
    def ends(self) -> bool:
        """True if the number of items is known."""
        return self.num_items is not None
