"""Chainer's data sets as data sets of Fuel."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fuel.datasets.rows import own
from fuel.interop.chainer.examples import Example, read_examples
from fuel.interop.indexed_dataset import ExamplesDataset
from fuel.transformers.ragged import as_batch
from fuel.typing import Sources
from fuel.utils.checks import in_order


class ChainerDataset(ExamplesDataset):
    """A data set of Chainer as a data set of Fuel.

    Parameters
    ----------
    dataset : indexable
        Any object with a length and examples by index. An example is an array
        or a number, or a tuple or a dict of these.
    names : tuple of str, optional
        Names of the sources: one for each part of an example. Defaults to
        the keys of a dict, to ``data_0``, ``data_1`` and so on for a tuple,
        and to ``data`` for a single array.
    sources, axis_labels
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
        If there are more or fewer names than parts, or if the data set is
        empty and `names` is not given.

    Notes
    -----
    The data set may be used by several streams, threads and worker
    processes; it should be stateless, as Chainer's own data sets are.

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

    def find_names(self, names: Sequence[str] | None) -> Sources:
        """Return the names of the parts of the first example."""
        first = self.dataset[0] if len(self.dataset) else tuple(names or ())
        found = _names_of(first)
        self._keys: tuple[Any, ...] | None = (
            tuple(first) if isinstance(first, dict) else None)
        self._is_single = not isinstance(first, (tuple, dict))
        if names is None:
            return found
        in_order('names', names)
        if isinstance(names, str) or len(names) != len(found) or (
                self._keys is not None and set(names) != set(self._keys)):
            raise ValueError(
                f'names must be a tuple of names for the {len(found)} parts '
                f'of an example {found}, got {names!r}')
        return tuple(names)

    def fetch(self, indices: list[int]) -> Sequence[Example]:
        """Return the examples of several indices."""
        return read_examples(self.dataset, indices)

    def parts(self, index: int, example: Example) -> Sequence[Any]:
        """Return the parts of an example, in the order of the sources."""
        if self._is_single:
            return (example,)
        if self._keys is not None and isinstance(example, dict) \
                and example.keys() == set(self._keys):
            return [example[key] for key in self.provides_sources]
        if self._keys is None and isinstance(example, tuple) \
                and len(example) == len(self.provides_sources):
            return example
        raise ValueError(
            f'example {index} must have the parts of the first, '
            f'{self.provides_sources}, got {example!r:.200}')

    def as_array(self, value: object) -> Any:
        """Return a part of an example; copy it if it is an array."""
        return own(value)

    def as_column(self, values: Sequence[Any]) -> Any:
        """Return the same part of several examples as one array.

        It is an array of objects if shapes differ.
        """
        batch = as_batch(values)
        return own(batch) if batch.dtype.hasobject else batch


def _names_of(example: Example) -> tuple[str, ...]:
    """Return the default names of the parts of an example."""
    if isinstance(example, dict):
        return tuple(map(str, example))
    if isinstance(example, tuple):
        return tuple([f'data_{place}' for place in range(len(example))])
    return ('data',)
