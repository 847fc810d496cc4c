"""The examples of data sets from which items were made."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from fuel.sharding.made import (
    DatasetRows, Joined, Made, Merged, Packed, batch_of, cut_rows,
    example_ids, join_parts, single_row)


class SourceExamples:
    """The examples of data sets from which an item, or several items, were
    made.

    `made`: their rows. The `dataset` of a part is a data set, not a number;
        None if the stream has only one.
    `in_order`: whether every stage has kept the order of the examples.
    `stage`: name of the stage that has not, if known.
    """

    def __init__(self, indices: Made | Sequence[Any], in_order: bool = True,
                 stage: str = '') -> None:
        self.made: Made = (
            indices if isinstance(
                indices, (DatasetRows, Joined, Merged, Packed))
            else DatasetRows(None, indices))
        self.in_order = in_order
        self.stage = stage

    @property
    def indices(self) -> list[Any]:
        """The rows of the data sets (list)."""
        return [row for _, row in example_ids(self.made)]

    def unordered(self, stage: str) -> SourceExamples:
        """Return the same examples; a stage may have changed their order or
        number.

        `stage`: name of the stage.
        """
        return SourceExamples(self.made, False, self.stage or stage)

    def rows(self, rows: slice) -> SourceExamples:
        """Return the examples of consecutive rows of a batch.

        If it is not known which these are, all are returned.
        """
        return SourceExamples(
            cut_rows(self.made, rows)) if self.in_order else self

    def row(self, number: int) -> SourceExamples:
        """Return the example of one row of a batch, as a single example."""
        return SourceExamples(
            single_row(self.made, number)) if self.in_order else self

    def pick(self, rows: slice | Sequence[int]) -> SourceExamples:
        """Return the examples of some rows of a batch, in their order."""
        if isinstance(rows, slice):
            return self.rows(rows)
        return SourceExamples(batch_of([
            single_row(self.made, row) for row in rows]), self.in_order,
            self.stage)


class Asked:
    """Record of a stage that moves rows from one item to another.

    It exists only if a stage above asks for the examples of each item.

    `last`: the examples of the item that was made last, if known.
    """

    last: SourceExamples | None = None


def joined(parts: Sequence[SourceExamples | None], are_single: bool = False,
           ) -> SourceExamples | None:
    """Return the examples of an item that is made of several items, or parts
    of items; None if those of a part are not known.

    `are_single`: whether the parts are single examples, and make a batch.
    """
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or not parts:
        return None
    made = [part.made for part in known]
    return SourceExamples(
        batch_of(made) if are_single else join_parts(made),
        all(part.in_order for part in known),
        next(filter(None, [part.stage for part in known]), ''))


def merged(parts: Sequence[SourceExamples | None],
           kind: Literal['streams', 'mixed'] = 'streams',
           ) -> SourceExamples | None:
    """Return the examples of an item whose sources come from several items
    side by side; None if those of one are not known.

    `kind`: whether they are mixed; see :class:`~fuel.sharding.made.Merged`.
    """
    found = joined(parts)
    return found and SourceExamples(Merged(
        tuple([part.made for part in parts if part is not None]), kind),
        found.in_order, found.stage)


def packed_examples(
        parts: Sequence[SourceExamples | None]) -> SourceExamples | None:
    """Return the examples of a row into which several are packed; None if one
    of them is not known."""
    found = joined(parts)
    return found and SourceExamples(
        Packed(tuple([part.made for part in parts if part is not None])),
        found.in_order, found.stage)
