"""Read a data set of Fuel as a data source of Grain."""
from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from fuel.interop.examples_by_index import ExamplesByIndex
from fuel.typing import Batch, DatasetLike, NamedBatch
from fuel.utils.sparse import require_plain


def as_source(dataset: DatasetLike, as_dict: bool = False) -> GrainSource:
    """Return a data set of Fuel as a random-access data source of Grain.

    Parameters
    ----------
    dataset : Dataset
        A data set with `num_examples` that takes indices as requests.
    as_dict : bool, optional
        Whether examples are dicts from source names to data rather than
        tuples.  Defaults to False.

    Returns
    -------
    GrainSource
        A data source for `grain.MapDataset.source`, `grain.DataLoader` and
        similar functions.

    Raises
    ------
    TypeError
        If the data set has no number of examples.

    Examples
    --------
    This needs the extra ``jax``.

    >>> import grain, numpy
    >>> from fuel.datasets import IndexableDataset
    >>> source = as_source(IndexableDataset({
    ...     'features': numpy.arange(6.).reshape(3, 2),
    ...     'targets': numpy.array([0, 1, 0])}), as_dict=True)
    >>> source
    as_source(IndexableDataset of 3 examples, sources=('features', 'targets'))
    >>> for batch in grain.MapDataset.source(source).batch(2):
    ...     print(batch['features'].shape, batch['targets'])
    (2, 2) [0 1]
    (1, 2) [0]
    """
    return GrainSource(dataset, as_dict)


class GrainSource(ExamplesByIndex):
    """A random-access data source of Grain over a data set of Fuel.

    :func:`as_source` makes it.  Any thread and process may use it, also after
    pickling: each process opens the data set for itself.  Examples that Grain
    fetches together are read in one request.
    """

    function = 'as_source'
    instead = 'as_iter_dataset()'

    def __init__(self, dataset: DatasetLike, as_dict: bool = False) -> None:
        super().__init__(dataset, as_dict)
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        del state['_lock']
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())

    def _getitems(self, indices: Sequence[int]) -> list[Batch | NamedBatch]:
        """Return the examples of several indices; Grain calls this method."""
        return self.fetch(indices)

    def _read(self, request: object) -> Batch:
        # Grain reads in several threads at the same time.
        with self._lock:
            data = super()._read(request)
        for part, source in zip(data, self.dataset.sources, strict=True):
            require_plain(part, source, 'as_source', '.as_dataset()')
        return data
