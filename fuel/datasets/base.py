"""The interface to data, and data sets over objects in memory."""
from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import numpy

from fuel._nearest import did_you_mean
from fuel._wanted import wanted_types
from fuel.datasets._rows import (
    as_position,
    check_equal_lengths,
    check_range,
    get_rows,
    own,
)
from fuel.schemes import SequentialExampleScheme
from fuel.streams import DataStream

__all__ = ['Dataset', 'IndexableDataset', 'IterableDataset']


class Dataset:
    """A data set: the interface to some data.

    Data sets hold no position: what iterates over them (a stream) keeps the
    state that :meth:`open` returns and hands it back.  So one data set may
    serve several streams at once.

    Parameters
    ----------
    sources : tuple of str, optional
        Which sources to return, in which order.  Defaults to all of
        `provides_sources`.
    axis_labels : dict, optional
        Maps source names to tuples of strings, one for each axis.  Defaults
        to None: nothing is known.

    Attributes
    ----------
    provides_sources : tuple of str
        All sources there are.  Subclasses set it on the class, or before
        they call this constructor.
    sources : tuple of str
        The sources that :meth:`get_data` returns.
    axis_labels : dict or None
    default_transformers : tuple
        The usual stages for these data, as tuples of a
        :class:`~fuel.transformers.Transformer` class, a list of arguments
        and a dict of keyword arguments.

    Raises
    ------
    ValueError
        If the class provides no sources, or not those asked for.

    Notes
    -----
    A data set whose state is not None may offer two hooks, which let a
    stream save its position as plain data: ``get_position(state)`` returns
    it, ready for JSON, and ``open_at(position)`` returns a state that goes
    on from there.

    Examples
    --------
    >>> import numpy
    >>> class Squares(Dataset):
    ...     provides_sources = ('roots', 'squares')
    ...     def get_data(self, state=None, request=None):
    ...         roots = numpy.array(request)
    ...         return self.filter_sources((roots, roots ** 2))
    >>> Squares(sources=('squares',)).get_data(request=[3, 4])
    (array([ 9, 16]),)

    """

    provides_sources: Any = None
    default_transformers: Any = ()
    axis_labels: Any = None

    def __init__(self, sources: Any = None, axis_labels: Any = None) -> None:
        if not self.provides_sources:
            raise ValueError(
                f'{type(self).__name__} must set provides_sources to the '
                'names of its sources')
        if sources is not None:
            check_sources(sources, self.provides_sources)
            self.sources = sources
        self.axis_labels = axis_labels

    @property
    def sources(self) -> Any:
        """The sources that are returned, in order (tuple of str)."""
        if '_sources' in vars(self):
            return self._sources
        return self.provides_sources

    @sources.setter
    def sources(self, sources: Any) -> None:
        self._sources = sources

    @property
    def example_iteration_scheme(self) -> Any:
        """The scheme that visits single examples (IterationScheme or None).

        Raises AttributeError if the data set names none.
        """
        if not hasattr(self, '_example_iteration_scheme'):
            raise AttributeError(
                f'{type(self).__name__} does not provide an example '
                'iteration scheme')
        return self._example_iteration_scheme

    @example_iteration_scheme.setter
    def example_iteration_scheme(self, scheme: Any) -> None:
        self._example_iteration_scheme = scheme

    def get_example_stream(self) -> DataStream:
        """Return a stream of single examples.

        Returns
        -------
        DataStream

        """
        return DataStream(
            self, iteration_scheme=self.example_iteration_scheme)

    def apply_default_transformers(self, stream: Any) -> Any:
        """Return a stream with the default transformers on top.

        Parameters
        ----------
        stream : AbstractDataStream

        Returns
        -------
        AbstractDataStream

        """
        for cls, args, kwargs in self.default_transformers:
            stream = cls(stream, *args, **self._restrict(kwargs, stream))
        return stream

    def _restrict(self, kwargs: Any, stream: Any) -> Any:
        """Return arguments without the sources that were not asked for.

        The default transformers are for all that there are.
        """
        which = kwargs.get('which_sources')
        if not isinstance(which, (tuple, list)):
            return kwargs
        return {**kwargs, 'which_sources': tuple([
            source for source in which if source in stream.sources
            or source not in self.provides_sources])}

    def open(self) -> Any:
        """Return a state: what reading needs to remember, or None."""
        return None

    def next_epoch(self, state: Any) -> Any:
        """Return the state for the next epoch.

        Parameters
        ----------
        state : object

        Returns
        -------
        object
            By default what :meth:`reset` returns.

        """
        return self.reset(state)

    def reset(self, state: Any) -> Any:
        """Close a state and return a fresh one.

        Parameters
        ----------
        state : object

        Returns
        -------
        object

        """
        self.close(state)
        return self.open()

    def close(self, state: Any) -> None:
        """Close a state, such as an open file.

        Parameters
        ----------
        state : object

        """

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.close(None)

    def get_data(self, state: Any = None, request: Any = None) -> Any:
        """Return the data of a request.

        Parameters
        ----------
        state : object, optional
            What :meth:`open` returned.
        request : object, optional
            Which examples, in a form that the data set understands.

        Returns
        -------
        tuple
            One item for each of `sources`.

        Raises
        ------
        StopIteration
            If data are read in order and there are no more.

        """
        raise NotImplementedError(
            f'{type(self).__name__} must implement get_data')

    def filter_sources(self, data: Any) -> tuple[Any, ...]:
        """Return, out of the data of all sources, those asked for.

        Parameters
        ----------
        data : sequence
            One item for each of `provides_sources`.

        Returns
        -------
        tuple
            One item for each of `sources`, in that order.

        """
        named = dict(zip(self.provides_sources, data, strict=True))
        try:
            return tuple([named[source] for source in self.sources])
        except KeyError:
            check_sources(self.sources, self.provides_sources)
            raise


def check_sources(sources: Any, provided: Any) -> None:
    """Refuse names of sources that are not provided.

    Parameters
    ----------
    sources : iterable of str
    provided : iterable of str

    Raises
    ------
    ValueError
        Naming the unknown source and the nearest known one.

    """
    if isinstance(sources, str):
        raise ValueError(
            f'sources must be a tuple of names, got the string {sources!r}: '
            f'write ({sources!r},)')
    if not sources:
        raise ValueError('sources must name at least one source, got '
                         f'{sources!r}; available are {tuple(provided)}')
    for source in sources:
        if source not in provided:
            hint = did_you_mean(source, provided, '{} ')
            raise ValueError(
                f'there is no source {source!r}: {hint}available are '
                f'{tuple(provided)}')


# What has no end may stand beside what has one, as in zip(count(), rows).
ENDLESS = (itertools.count, itertools.cycle, itertools.repeat)


def _as_named(collections: Any) -> tuple[tuple[Any, ...], list[Any]]:
    """Return names of sources and their data, from a dict or one of them."""
    if isinstance(collections, Mapping):
        return tuple(collections), list(collections.values())
    return ('data',), [collections]


class imap(Iterator[Any]):  # noqa: N801 (the manual prints this name)
    """The state of an :class:`IterableDataset`: where reading stands.

    Parameters
    ----------
    dataset : IterableDataset
    position : int, optional
        How many examples to leave out.

    Notes
    -----
    Nothing is read before the first example is asked for.  Pickled, it is a
    position; only an iterator that cannot be started anew goes into the
    pickle itself.

    """

    def __init__(self, dataset: IterableDataset, position: int = 0) -> None:
        self.dataset = dataset
        self.position = position
        self._resumed = False
        self._rows: Iterator[Any] | None = None

    def _open(self, place: int, iterable: Any) -> Iterator[Any]:
        iterator = iter(iterable)
        if iterator is not iterable:
            return islice(iterator, self.position, None)
        if self._resumed:
            # What was read before the pickle was made is gone from it.
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
        """Say in our words that one iterable ended before another."""
        if str(error).startswith('zip() argument'):
            raise ValueError(
                'all sources must have the same number of examples, but '
                f'after {self.position} of them one ended before another; '
                f'of {tuple(self.dataset.provides_sources)}, '
                f'{str(error).removeprefix("zip() ")}') from None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), '_rows': None,
                '_resumed': self._resumed or self._rows is not None}


class IterableDataset(Dataset):
    """A data set over iterables, read in order, one example at a time.

    Parameters
    ----------
    iterables : dict or iterable
        Maps source names to iterables, all of the same length.  A single
        iterable becomes the source ``'data'``.
    **kwargs
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
    An epoch iterates anew over each iterable.  An iterator or a generator
    can be read only once, so the second epoch over one is an error.

    Examples
    --------
    >>> dataset = IterableDataset({'x': [1, 2], 'y': 'ab'})
    >>> state = dataset.open()
    >>> dataset.get_data(state), dataset.get_data(state)
    ((1, 'a'), (2, 'b'))

    """

    example_iteration_scheme = None

    def __init__(self, iterables: Any, **kwargs: Any) -> None:
        self.provides_sources, self.iterables = _as_named(iterables)
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
            if hasattr(iterable, '__len__'):
                return len(iterable)
        return float('nan')

    def claim(self, place: int) -> None:
        """Note that an iterable which can be read only once is being read.

        Parameters
        ----------
        place : int
            Its number among `iterables`.

        Raises
        ------
        ValueError
            If it was read before.

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
        """Return how many examples were read."""
        return state.position

    def open_at(self, position: Any) -> imap:
        """Return an iterator that leaves out as many examples."""
        return imap(self, as_position(position))

    def get_data(self, state: Any = None, request: Any = None) -> Any:
        """Return the next example.

        Parameters
        ----------
        state : iterator
            What :meth:`open` returned.
        request : None
            An iterable takes no requests.

        Returns
        -------
        tuple

        Raises
        ------
        ValueError
            If there is no state, or a request.
        StopIteration
            If there are no more examples.

        """
        if state is None or request is not None:
            raise ValueError(
                f'{type(self).__name__} reads examples in order: get_data '
                'takes the state that open() returned and no request, got '
                f'state {state!r} and request {request!r}')
        return self.filter_sources(next(state))


class IndexableDataset(Dataset):
    """A data set over objects that can be indexed, such as arrays.

    Parameters
    ----------
    indexables : dict or indexable
        Maps source names to indexables, all of the same length.  A single
        indexable becomes the source ``'data'``.
    start, stop : int, optional
        Use only the examples from `start` to before `stop`.
    **kwargs
        Arguments of :class:`Dataset`.

    Attributes
    ----------
    indexables : list
        Those of `sources`, in that order, from `start` to `stop`.
    num_examples : int

    Raises
    ------
    ValueError
        If something cannot be indexed, the lengths differ, or `start` and
        `stop` do not lie within them.

    Notes
    -----
    The indexables are attributes too, under the names of their sources.
    They are pickled with the data set; see
    :func:`~fuel.utils.do_not_pickle_attributes` for large ones.

    Examples
    --------
    >>> import numpy
    >>> dataset = IndexableDataset({'x': numpy.arange(4) ** 2, 'y': 'abcd'})
    >>> dataset.get_data(request=[2, 0])
    (array([4, 0]), ['c', 'a'])

    """

    indexables: list[Any]
    # Batches may be asked for by arrays: who wrote an indexable of another
    # kind sees a list all the same.
    takes_arrays = True
    # What will be cast may come in the new type at once.
    gives_types = True

    def __init__(self, indexables: Any, start: int | None = None,
                 stop: int | None = None, **kwargs: Any) -> None:
        self.provides_sources, collections = _as_named(indexables)
        for source, part in zip(
                self.provides_sources, collections, strict=True):
            if not hasattr(part, '__getitem__'):
                raise ValueError(
                    f'source {source!r} must take indices in brackets, as '
                    f'arrays and lists do, got {part!r} '
                    f'({type(part).__name__})')
        check_equal_lengths(self.provides_sources, collections)
        if start is not None or stop is not None:
            check_range(start, stop, len(collections[0]))
            collections = [part[start:stop] for part in collections]
        super().__init__(**kwargs)
        named = dict(zip(self.provides_sources, collections, strict=True))
        self.indexables = [named[source] for source in self.sources]
        self._names = tuple(self.sources)
        self.start, self.stop = start, stop

    def __getattr__(self, name: str) -> Any:
        if name in (vars(self).get('_names') or ()):
            return self._get_indexable(name)
        raise AttributeError(
            f'{type(self).__name__!r} object has no attribute {name!r}')

    def _get_indexable(self, source: str) -> Any:
        """Return the indexable of a source, in whatever order they are."""
        names = vars(self).get('_names')
        if names is None:
            # A subclass has set `indexables` itself: those of `sources`.
            names = tuple(self.sources)
        if source not in names:
            check_sources((source,), names)
        return self.indexables[names.index(source)]

    @property
    def example_iteration_scheme(self) -> Any:
        """The scheme that visits single examples, in order unless set."""
        if hasattr(self, '_example_iteration_scheme'):
            return self._example_iteration_scheme
        return SequentialExampleScheme(self.num_examples)

    @example_iteration_scheme.setter
    def example_iteration_scheme(self, scheme: Any) -> None:
        self._example_iteration_scheme = scheme

    @property
    def num_examples(self) -> int:
        """Number of examples (int)."""
        return len(self.indexables[0])

    @property
    def rows_are_examples(self) -> bool:
        """Whether the rows of a batch are the single examples (bool).

        They are for arrays and lists; what other objects make of a list of
        indices is their affair.  A stream of examples then reads several of
        them at a time.
        """
        return all(type(part) in (numpy.ndarray, list, tuple)
                   for part in self.indexables)

    def get_data(self, state: Any = None, request: Any = None) -> Any:
        """Return the examples of a request.

        Parameters
        ----------
        state : None
        request : int, slice, list of int or integer numpy.ndarray
            An integer gives a single example.

        Returns
        -------
        tuple
            For each source new arrays (lists, where the data are a list).

        Raises
        ------
        ValueError
            If there is a state, or the request is missing, of another kind,
            empty or out of range.

        """
        if state is not None or request is None:
            raise ValueError(
                f'{type(self).__name__} needs a request and has no state, '
                f'got state {state!r} and request {request!r}')
        dtypes = wanted_types(self)
        return tuple([
            get_rows(self._get_indexable(source), request, dtypes.get(source))
            for source in self.sources])
