"""Read data sources and data sets of Grain as data sets of Fuel."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import grain

from fuel.datasets import Dataset
from fuel.datasets.rows import only_in_order
from fuel.exceptions import StateMismatchError
from fuel.interop.indexed_dataset import (
    ExamplesDataset, Indexed, own_value, names_of_parts, parts_of)
from fuel.typing import AxisLabels, Sources


class GrainDataset(ExamplesDataset):
    """A data set that reads a data source or a `MapDataset` of Grain.

    Parameters
    ----------
    dataset : grain.sources.RandomAccessDataSource or grain.MapDataset
        Any object with ``__len__`` and ``__getitem__``.
    names, sources, axis_labels
        As for :class:`~fuel.interop.torch.TorchDataset`.  By default, the
        keys of examples that are dicts are the names of the sources.

    Attributes
    ----------
    dataset : object
    num_examples : int

    Raises
    ------
    TypeError
        If the data source has no length or takes no indices.
    ValueError
        If the data source is empty and `names` is not given, an example has
        other parts than the first, or Grain has filtered an example out.

    Examples
    --------
    This needs the extra ``jax``.

    >>> import grain
    >>> squares = grain.MapDataset.range(5).map(
    ...     lambda number: {'root': number, 'square': number ** 2})
    >>> dataset = GrainDataset(squares)
    >>> dataset.sources, dataset.num_examples
    (('root', 'square'), 5)
    >>> dataset.get_data(request=[3, 1])
    (array([3, 1]), array([9, 1]))
    """

    fetch_method = '_getitems'

    def __init__(self, dataset: Indexed, names: Sequence[str] | None = None,
                 sources: Sources | None = None,
                 axis_labels: AxisLabels | None = None) -> None:
        if isinstance(dataset, grain.IterDataset):
            raise TypeError(
                f'{type(dataset).__name__} cannot be indexed: use '
                'GrainIterable')
        super().__init__(dataset, names, sources, axis_labels)

    def parts(self, index: int, example: object) -> Sequence[Any]:
        """Return the parts of an example, in the order of the sources."""
        if example is None:
            raise ValueError(
                f'{type(self.dataset).__name__} has filtered out example '
                f'{index}: use GrainIterable(dataset.to_iter_dataset())')
        return super().parts(index, example)


class GrainReading(Iterator[Any]):
    """An iterator over an `IterDataset`; its pickle is a position.

    `position`: the state of Grain's iterator. Defaults to None: the start.
    """

    def __init__(self, dataset: Iterable[Any],
                 position: object = None) -> None:
        self.dataset = dataset
        self._start = position
        self._opened: Any = None
        if position is not None:
            self._open()

    def __next__(self) -> Any:
        return next(self._open())

    @property
    def position(self) -> Any:
        """The present state of Grain's iterator."""
        return self._open().get_state()

    def _open(self) -> Any:
        if self._opened is None:
            self._opened = iter(self.dataset)
            if self._start is not None:
                self._go_to(self._start)
        return self._opened

    def _go_to(self, position: object) -> None:
        try:
            self._opened.set_state(position)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise StateMismatchError(
                f'{type(self.dataset).__name__} does not take the position '
                f'{position!r:.200}: the state is damaged, or of another '
                f'data set ({error})') from error

    def close(self) -> None:
        """Close Grain's iterator."""
        if self._opened is not None:
            self._opened.close()

    def __getstate__(self) -> dict[str, Any]:
        start = self._start if self._opened is None else self.position
        return {**vars(self), '_start': start, '_opened': None}


class GrainIterable(Dataset):
    """A data set that reads an `IterDataset` of Grain, in its order.

    Parameters
    ----------
    dataset : grain.IterDataset
    names, sources, axis_labels
        As for :class:`GrainDataset`.

    Attributes
    ----------
    dataset : grain.IterDataset

    Raises
    ------
    TypeError
        If `dataset` is not an `IterDataset`.
    ValueError
        If `dataset` has no elements, or `names` do not fit the parts of an
        element.

    Notes
    -----
    Each element is an example.  Each epoch is a new iterator of Grain, and a
    state holds the result of the iterator's `get_state`.  If `names` is not
    given, the first element is read when the data set is made.

    Examples
    --------
    This needs the extra ``jax``.

    >>> import grain
    >>> from fuel.streams import DataStream
    >>> even = grain.MapDataset.range(7).filter(lambda number: not number % 2)
    >>> stream = DataStream(GrainIterable(even.to_iter_dataset()))
    >>> epoch = stream.get_epoch_iterator()
    >>> next(epoch), next(epoch)
    ((array(0),), (array(2),))
    >>> state = stream.state_dict()
    >>> restored = DataStream(GrainIterable(even.to_iter_dataset()))
    >>> restored.load_state_dict(state)
    >>> [int(number) for number, in restored.get_epoch_iterator()]
    [4, 6]
    """

    example_iteration_scheme = None
    takes_requests = False
    unsaved_arguments = ('dataset',)

    def __init__(self, dataset: object, names: Sequence[str] | None = None,
                 sources: Sources | None = None,
                 axis_labels: AxisLabels | None = None) -> None:
        if not isinstance(dataset, grain.IterDataset):
            raise TypeError(
                f'dataset must be a grain.IterDataset, got '
                f'{type(dataset).__name__}'
                + ': use GrainDataset' * isinstance(dataset, Indexed))
        self.dataset = dataset
        self.provides_sources = names_of_parts(
            type(dataset).__name__,
            self._first() if names is None else None, names)
        super().__init__(sources=sources, axis_labels=axis_labels)

    def __repr__(self) -> str:
        return (f'{type(self).__name__}({type(self.dataset).__name__}, '
                f'sources={self.sources})')

    def _first(self) -> Any:
        iterator = iter(self.dataset)
        try:
            return next(iterator)
        except StopIteration:
            raise ValueError(
                f'{type(self.dataset).__name__} has no elements') from None
        finally:
            iterator.close()

    def open(self) -> GrainReading:
        """Return a state whose position is before the first element."""
        return GrainReading(self.dataset)

    def close(self, state: GrainReading | None) -> None:
        """Close a state's iterator, with its threads and processes."""
        if state is not None:
            state.close()

    def get_position(self, state: GrainReading) -> Any:
        """Return the position of a state."""
        return state.position

    def open_at(self, position: object) -> GrainReading:
        """Return a state that resumes at a position.

        Raises
        ------
        StateMismatchError
            If Grain does not accept the position.
        """
        return GrainReading(self.dataset, position)

    def get_data(self, state: Any = None, request: Any = None) -> Any:
        """Return the next element.

        Parameters
        ----------
        state : object
            The state that :meth:`open` returned.
        request : None

        Returns
        -------
        tuple
            For each source an array, or another object.

        Raises
        ------
        ValueError
            If `state` is None, `request` is given, or an element lacks parts.
        StopIteration
            If there are no more elements.
        """
        if state is None or request is not None:
            raise only_in_order(self, 'elements', state, request)
        parts = parts_of(
            f'an element of {type(self.dataset).__name__}', next(state),
            self.provides_sources)
        return self.filter_sources([own_value(part) for part in parts])
