"""A stage that leaves out data."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fuel.transformers.base import ALL
from fuel.transformers.base import Transformer
from fuel.typing import Request, StreamLike


class Filter(Transformer):
    """Keeps the examples or batches that fulfil a condition.

    Parameters
    ----------
    predicate : callable
        Takes a tuple with the data of each source, and returns whether to
        keep them.
    **kwargs
        See :mod:`fuel.transformers`.

    Examples
    --------
    >>> from fuel.datasets import IterableDataset
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IterableDataset([1, 2, 3, 4]))
    >>> even = Filter(stream, lambda data: data[0] % 2 == 0)
    >>> list(even.get_epoch_iterator())
    [(2,), (4,)]
    """

    one_to_one = False
    keeps = ALL

    def __init__(self, data_stream: StreamLike,
                 predicate: Callable[[Any], Any], **kwargs: Any) -> None:
        super().__init__(
            data_stream, data_stream.produces_examples, **kwargs)
        self.predicate = predicate

    def get_data(self, request: Request = None) -> Any:
        """Return the next data that fulfil the condition.

        See :meth:`~fuel.transformers.Transformer.get_data`.
        """
        self._refuse(request)
        while True:
            data = self._pull()
            try:
                is_kept = self.predicate(data)
            except StopIteration as error:
                raise self._explained(
                    error, self.child_epoch_iterator, data,
                    'the predicate') from error
            if is_kept:
                return data
