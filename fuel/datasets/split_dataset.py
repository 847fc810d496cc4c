"""The base of the data sets whose rows are chosen by splits."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fuel.datasets.dataset import Dataset
from fuel.datasets.row_orders import length, pick
from fuel.datasets.rows import as_rows, check_request
from fuel.datasets.splits import order_of_splits
from fuel.schemes import SequentialExampleScheme
from fuel.typing import Request


class SplitDataset(Dataset):
    """Base of the data sets over rows, of which splits use some.

    Subclasses have a method `_read`.

    Parameters
    ----------
    num_rows : int
        How many rows there are.
    which_sets : tuple of str or None
        The splits to use, concatenated in this order; None for all rows.
    splits : dict or None
        Maps names of splits to ``(start, stop)`` or to a list or array of
        rows, in any order.
    **kwargs
        Arguments of :class:`Dataset`.

    Attributes
    ----------
    num_examples : int
    """

    takes_requests = True
    instead_of: Mapping[str, str] = {
        'subset': "name the rows as a split, {}(..., splits={{'part': rows}}, "
                  "which_sets=('part',))"}

    def __init__(self, num_rows: int, which_sets: Sequence[str] | None,
                 splits: Mapping[str, Any] | None, **kwargs: Any) -> None:
        self.which_sets = which_sets
        self._order = order_of_splits(splits, which_sets, num_rows)
        super().__init__(**kwargs)
        self.example_iteration_scheme = SequentialExampleScheme(
            self.num_examples)

    @property
    def num_examples(self) -> int:
        """Number of examples (int)."""
        return length(self._order)

    def known_length(self) -> int | None:
        """Return the number of examples."""
        return self.num_examples

    def details(self) -> Sequence[str]:
        """Return the splits."""
        splits = self.which_sets
        return [f'splits {", ".join(splits)}'] if splits else []

    def get_data(self, state: Any = None, request: Request = None,
                 ) -> tuple[Any, ...]:
        """Return the examples of a request.

        Raises
        ------
        ValueError
            If there is a state, or the request is missing, of another kind,
            empty, negative or out of range, or a row is not as expected.
        DamagedFileError
            If a file was changed while in use.
        """
        check_request(self, state, request)
        return self._read(pick(
            self._order, as_rows(request, self.num_examples)))

    def _read(self, rows: Any) -> tuple[Any, ...]:
        """Return one row, or those of a slice or an array, of each source."""
        raise NotImplementedError
