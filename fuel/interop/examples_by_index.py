"""Base of classes through which other libraries read examples by index."""
from __future__ import annotations

import operator
import os
from collections.abc import Sequence
from typing import Any

from fuel.epochs.readers import known_length
from fuel.typing import Batch, DatasetLike, Indices, NamedBatch
from fuel.utils.overrides import covers
from fuel.utils.sparse import iterate_rows


class ExamplesByIndex:
    """The examples of a data set of Fuel, by index.

    The object can be pickled and used in any process: each process opens the
    data set for itself.
    """

    # Names of the function that makes the object, and of the function for
    # data sets without indices.
    function = ''
    instead = ''

    def __init__(self, dataset: DatasetLike, as_dict: bool = False) -> None:
        if known_length(dataset) is None:
            raise TypeError(
                f'{type(dataset).__name__} has no number of examples, so '
                'none can be chosen by its index: use '
                f'{self.instead} of a stream')
        self.dataset: Any = dataset
        self.as_dict = as_dict
        self._opened: tuple[int, Any] | None = None

    def __repr__(self) -> str:
        return (f'{self.function}({type(self.dataset).__name__} of '
                f'{len(self)} examples, '
                f'sources={tuple(self.dataset.sources)})')

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), '_opened': None}

    def __len__(self) -> int:
        """Return the number of examples."""
        return int(self.dataset.num_examples)

    def __getitem__(self, index: int | Indices) -> Batch | NamedBatch:
        """Return an example, or several examples as a batch.

        Parameters
        ----------
        index : int, slice, or list or array of int
            Negative numbers count from the end.

        Returns
        -------
        tuple or dict
            An array for each source.

        Raises
        ------
        IndexError
            If there is no such example.
        """
        return self._named(self._read(self._as_request(index)))

    def fetch(self, indices: Sequence[int]) -> list[Batch | NamedBatch]:
        """Return several examples, read in one request if possible.

        If a subclass overrides ``__getitem__``, they are read one by one.
        """
        if not covers(self, 'fetch', ('__getitem__',)):
            return [self[index] for index in indices]
        if not len(indices):
            return []
        data = self._read(self._as_request(list(indices)))
        return [self._named(example)
                for example in zip(
                    *map(iterate_rows, data), strict=True)]

    def close(self) -> None:
        """Close the data set; reading another example opens it again."""
        if self._opened is not None and self._opened[0] == os.getpid():
            self.dataset.close(self._opened[1])
        self._opened = None

    def _read(self, request: object) -> Batch:
        if self._opened is None or self._opened[0] != os.getpid():
            self._opened = os.getpid(), self.dataset.open()
        data: Batch = self.dataset.get_data(self._opened[1], request)
        return data

    def _as_request(self, index: object) -> Any:
        if isinstance(index, slice):
            index = range(*index.indices(len(self)))
        if hasattr(index, 'tolist'):
            index = index.tolist()
        if isinstance(index, (list, tuple, range)):
            return [self._checked(one) for one in index]
        return self._checked(index)

    def _checked(self, index: Any) -> int:
        number = operator.index(index)
        if not -len(self) <= number < len(self):
            raise IndexError(
                f'there is no example {number}: '
                f'{type(self.dataset).__name__} has {len(self)}')
        return number % len(self)

    def _named(self, data: Batch) -> Batch | NamedBatch:
        if not self.as_dict:
            return data
        return dict(zip(self.dataset.sources, data, strict=True))
