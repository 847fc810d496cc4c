"""A data set over iterables, read in order."""
from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, Unpack

import numpy

from fuel.datasets.checks import as_named
from fuel.datasets.dataset import Dataset
from fuel.datasets.options import DatasetOptions
from fuel.datasets.rows import check_equal_lengths, only_in_order, own
from fuel.utils.checks import saved_count
from fuel.utils.masked import is_masked
from fuel.utils.sparse import iterate_rows

ENDLESS = (itertools.count, itertools.cycle, itertools.repeat)


class imap(Iterator[Any]):  # noqa: N801 (the manual prints this name)
    """The state of an :class:`IterableDataset`: the position of a reader.

    Nothing is read before the first example is requested. A pickle holds the
    position and the data set. An iterator cannot be started anew, so the
    pickle must hold the iterator itself.
    """

    def __init__(self, dataset: IterableDataset, position: int = 0) -> None:
        self.dataset = dataset
        self.position = position
        self._resumed = False
        self._rows: Iterator[Any] | None = None

    def _open(self, place: int, iterable: Any) -> Iterator[Any]:
        iterator = iter(iterate_rows(iterable) if is_masked(iterable)
                        else iterable)
        if iterator is not iterable:
            return islice(iterator, self.position, None)
        if self._resumed:
            # The unpickled iterator is already past the examples that were
            # read.
            return iterator  # type: ignore[no-any-return]
        self.dataset.claim(place)
        return islice(iterator, self.position, None)

    def __next__(self) -> tuple[Any, ...]:
        if self._rows is None:
            self._rows = zip(*[
                self._open(place, iterable) for place, iterable
                in enumerate(self.dataset.iterables)],
                strict=not any(isinstance(iterable, ENDLESS) for iterable
                               in self.dataset.iterables))
        try:
            row = next(self._rows)
        except ValueError as error:
            self._explain(error)
            raise
        self.position += 1
        return tuple([own(part) for part in row])

    def _explain(self, error: ValueError) -> None:
        """Raise an error if one iterable ended before another."""
        if str(error).startswith('zip() argument'):
            raise ValueError(
                'all sources must have the same number of examples, but '
                f'after {self.position} of them one ended before another; '
                f'of {tuple(self.dataset.provides_sources)}, '
                f'{str(error).removeprefix("zip() ")}') from None

    def __getstate__(self) -> dict[str, Any]:
        if self.position:
            self.dataset.check_order()
        return {**vars(self), '_rows': None,
                '_resumed': self._resumed or self._rows is not None}


class IterableDataset(Dataset):
    """A data set over iterables, read in order, one example at a time.

    Parameters
    ----------
    iterables : dict or iterable
        Maps source names to iterables, all of the same length.  A single
        iterable becomes the source ``'data'``.
    sources, axis_labels
        Arguments of :class:`Dataset`.

    Attributes
    ----------
    iterables : list
    num_examples : int or float
        NaN if no iterable has a length.

    Raises
    ------
    ValueError
        If something is not iterable, or the lengths differ.

    Notes
    -----
    An epoch iterates anew over each iterable.  An iterator or a generator can
    be read only once, so a second epoch over it is an error. The order of a
    set differs from process to process, so saving a position in a set is an
    error.

    Examples
    --------
    >>> dataset = IterableDataset({'x': [1, 2], 'y': 'ab'})
    >>> state = dataset.open()
    >>> dataset.get_data(state), dataset.get_data(state)
    ((1, 'a'), (2, 'b'))
    """

    example_iteration_scheme = None
    takes_requests = False
    unsaved_arguments = ('iterables',)

    def __init__(self, iterables: Any,
                 **kwargs: Unpack[DatasetOptions]) -> None:
        self.provides_sources, self.iterables = as_named(iterables)
        for source, iterable in zip(
                self.provides_sources, self.iterables, strict=True):
            if not isinstance(iterable, Iterable):
                raise ValueError(
                    f'source {source!r} must be an iterable, got '
                    f'{iterable!r} ({type(iterable).__name__})')
        check_equal_lengths(self.provides_sources, self.iterables)
        super().__init__(**kwargs)

    @property
    def num_examples(self) -> Any:
        """Number of examples (int), or NaN if it is not known."""
        for iterable in self.iterables:
            # Some classes have a method for the length that raises an error.
            with suppress(TypeError):
                return len(iterable)
        return float('nan')

    def known_length(self) -> int | None:
        """Return the length of an iterable that is a list, tuple, string,
        range or array; None without such an iterable."""
        return next((len(part) for part in self.iterables if isinstance(
            part, (list, tuple, str, range, numpy.ndarray))), None)

    def is_read_once(self) -> bool:
        """Return whether an iterable is an iterator, or a generator."""
        return any(isinstance(part, Iterator) for part in self.iterables)

    def claim(self, place: int) -> None:
        """Record that an iterable which can be read only once is being read.

        Parameters
        ----------
        place : int
            Number of the iterable among `iterables`.

        Raises
        ------
        ValueError
            If the iterable was read before.
        """
        # Subclasses may have skipped every __init__.
        claimed = vars(self).setdefault('_claimed', set())
        if place in claimed:
            source = self.provides_sources[place]
            raise ValueError(
                f'source {source!r} is an iterator '
                f'({type(self.iterables[place]).__name__}) and an earlier '
                'epoch has read it: pass a list, or an object whose '
                '__iter__ starts anew')
        claimed.add(place)

    def open(self) -> imap:
        """Return an iterator over the examples."""
        return imap(self)

    def get_position(self, state: imap) -> int:
        """Return the number of examples that were read."""
        if state.position:
            self.check_order()
        return state.position

    def check_order(self) -> None:
        """Raise a TypeError if the order differs from process to process."""
        for iterable in self.iterables:
            if isinstance(iterable, (set, frozenset)):
                raise TypeError(
                    f'{type(self).__name__} reads a set, {iterable!r:.80}, '
                    'whose order differs from process to process, so no '
                    'position in it can be saved: pass a list, such as '
                    'sorted(...)')

    def open_at(self, position: Any) -> imap:
        """Return an iterator that starts after a number of examples."""
        return imap(self, saved_count({'position': position}, 'position'))

    def get_data(self, state: Any = None, request: Any = None) -> Any:
        """Return the next example.

        Parameters
        ----------
        state : iterator
            The state that :meth:`open` returned.
        request : None
            An iterable takes no requests.

        Raises
        ------
        ValueError
            If there is no state, or a request.
        StopIteration
            If there are no more examples.
        """
        if state is None or request is not None:
            raise only_in_order(self, 'examples', state, request)
        return self.filter_sources(next(state))
