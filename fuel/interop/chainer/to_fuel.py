"""Chainer's data sets as data sets of Fuel."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fuel.datasets import Dataset
from fuel.datasets.rows import as_rows, own
from fuel.interop.chainer.examples import Example, ExampleSet, read_examples
from fuel.schemes import SequentialExampleScheme
from fuel.transformers.ragged import as_batch as stack


class ChainerDataset(Dataset):
    """A data set of Chainer as a data set of Fuel.

    Parameters
    ----------
    dataset : indexable
        Anything with a length whose examples are arrays or numbers, or
        tuples or dicts of them.
    names : tuple of str, optional
        The sources: names for the parts of a tuple, or for the one array.
        Defaults to the keys of a dict, to ``data_0``, ``data_1`` and so on
        for a tuple, and to ``data``.
    **kwargs
        Arguments of :class:`~fuel.datasets.Dataset`, `sources` and
        `axis_labels`.

    Attributes
    ----------
    num_examples : int

    Raises
    ------
    TypeError
        If the data set has no length or no examples by index.
    ValueError
        If there are more or fewer names than parts; if the data set is empty
        and `names` is not given.

    Notes
    -----
    The data set may be used by several streams, threads and worker
    processes; it should be stateless, as Chainer's are.

    Examples
    --------
    >>> from fuel.interop.chainer import TupleDataset
    >>> import numpy
    >>> pairs = TupleDataset(numpy.arange(6).reshape(3, 2), [7, 8, 9])
    >>> dataset = ChainerDataset(pairs, names=('features', 'targets'))
    >>> dataset.get_data(None, [2, 0])
    (array([[4, 5],
           [0, 1]]), array([9, 7]))
    """

    def __init__(self, dataset: ExampleSet,
                 names: Sequence[str] | None = None, **kwargs: Any) -> None:
        if not hasattr(dataset, '__len__') or not hasattr(
                dataset, '__getitem__'):
            raise TypeError(
                'dataset must have a length and take indices in brackets, '
                f'got {type(dataset).__name__}')
        self.dataset = dataset
        if not len(dataset) and names is None:
            raise ValueError(
                'the data set is empty, so its sources are not known: pass '
                "names=('features', 'targets') or the like")
        first = dataset[0] if len(dataset) else tuple(names or ())
        found = _names_of(first)
        self._keys = tuple(first) if isinstance(first, dict) else None
        if names is None:
            names = found
        elif isinstance(names, str) or len(names) != len(found) or (
                self._keys is not None and set(names) != set(self._keys)):
            raise ValueError(
                f'names must be a tuple of names for the {len(found)} parts '
                f'of an example {found}, got {names!r}')
        self.provides_sources = tuple(names)
        self._is_single = not isinstance(first, (tuple, dict))
        super().__init__(**kwargs)
        self.example_iteration_scheme = SequentialExampleScheme(
            self.num_examples)

    @property
    def num_examples(self) -> int:
        """Number of examples (int)."""
        return len(self.dataset)

    def get_data(self, state: object = None, request: Any = None,
                 ) -> tuple[Any, ...]:
        """Return the examples of a request.

        Parameters
        ----------
        state : None
        request : int, slice, list of int or integer numpy.ndarray

        Returns
        -------
        tuple
            For each source an array; for an integer one example.

        Raises
        ------
        ValueError
            If the request is of another kind, empty or out of range, or an
            example has other parts than the first.
        """
        rows = as_rows(request, self.num_examples)
        if isinstance(rows, int):
            return self.filter_sources(
                own(self._parts(rows, self.dataset[rows])))
        indices = (range(*rows.indices(self.num_examples))
                   if isinstance(rows, slice) else rows.tolist())
        examples = [self._parts(index, example) for index, example in zip(
            indices, read_examples(self.dataset, indices), strict=True)]
        return tuple([
            own(batch) if batch.dtype.hasobject else batch for batch in map(
                stack, self.filter_sources(zip(*examples, strict=True)))])

    def _parts(self, index: int, example: Example) -> tuple[Any, ...]:
        """Return the parts of an example in the order of the sources."""
        if self._is_single:
            return (example,)
        if self._keys is not None and isinstance(example, dict) \
                and example.keys() == set(self._keys):
            return tuple([example[key] for key in self.provides_sources])
        if self._keys is None and isinstance(example, tuple) \
                and len(example) == len(self.provides_sources):
            return example
        raise ValueError(
            f'example {index} must have the parts of the first, '
            f'{self.provides_sources}, got {example!r:.200}')


def _names_of(example: Example) -> tuple[str, ...]:
    """Return names for the parts of an example."""
    if isinstance(example, dict):
        return tuple(map(str, example))
    if isinstance(example, tuple):
        return tuple([f'data_{place}' for place in range(len(example))])
    return ('data',)
