"""The interface to data, in memory or on disk."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Never

from fuel.datasets.reading import Readable
from fuel.epochs.read_options import ReadOptions
from fuel.epochs.readers import RequestReader
from fuel.schemes.iterator_requests import as_requests
from fuel.schemes.requests import RequestIterator
from fuel.streams import DataStream
from fuel.suggestions import did_you_mean
from fuel.typing import EpochReader
from fuel.utils.arguments import NamedArguments, unknown_argument
from fuel.utils.checks import in_order
from fuel.utils.overrides import covers


class Dataset(Readable, NamedArguments):
    """A data set: the interface to some data.

    ``len(dataset)`` is the number of examples, ``dataset[3]`` and
    ``dataset[2:5]`` are copies of some, and a loop over a data set visits
    all in order.  Data sets hold no position: what iterates over them (a
    stream) keeps the state that :meth:`open` returns and passes it back.  So
    one data set may serve several streams at once.

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
    num_examples : int, float or None
        Number of examples, where it is known.
    takes_requests : bool or None
        Class attribute: whether :meth:`get_data` needs a request, so that
        it is an error to read the data set without an iteration scheme, or
        refuses one.  Defaults to None: not known.
    class_names : tuple of str or None
        Names of the classes, so that ``class_names[number]`` is that of a
        class, where they are known.
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

    # What a reader made by `make_reader` stands in for.
    read_hooks: tuple[str, ...] = ('get_data',)
    provides_sources: Any = None
    default_transformers: Any = ()
    axis_labels: Any = None
    unsaved_arguments: tuple[str, ...] = ('axis_labels', 'sources')

    def __init__(self, sources: Any = None, axis_labels: Any = None,
                 **unknown: Never) -> None:
        if unknown:
            raise unknown_argument(type(self), unknown)
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
        self._use_sources()

    def _use_sources(self) -> None:
        """Let what depends on the sources follow their change: a hook."""

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
        """Return a stream of single examples."""
        return DataStream(
            self, iteration_scheme=self.example_iteration_scheme)

    def apply_default_transformers(self, stream: Any) -> Any:
        """Return a stream with the default transformers on top."""
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

        Returns
        -------
        object
            By default what :meth:`reset` returns.
        """
        return self.reset(state)

    def reset(self, state: Any) -> Any:
        """Close a state and return a fresh one."""
        self.close(state)
        return self.open()

    def close(self, state: Any) -> None:
        """Close a state, such as an open file."""

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

    def open_epoch(self, requests: Iterator[Any] | None,
                   options: ReadOptions | None = None,
                   state: Any = None) -> EpochReader:
        """Return a reader of the data of one epoch.

        A stream asks for it once an epoch.  The reader calls
        :meth:`get_data` for each request, or does the same in less time: if
        the class has a :meth:`make_reader` and no subclass overrides one of
        the methods that `read_hooks` names.

        Parameters
        ----------
        requests : iterator or None
            The requests of the epoch.  A reader looks at their position
            before each read.  None if the data set takes no requests.
        options : ReadOptions, optional
            Wishes of the stages that read the stream.
        state : object, optional
            What :meth:`open` returned.

        Examples
        --------
        >>> from fuel.datasets import IndexableDataset
        >>> reader = IndexableDataset([5, 6, 7]).open_epoch(iter([[2, 0]]))
        >>> reader.read()
        ([7, 5],)
        """
        if requests is not None:
            requests = as_requests(requests)
        reader: EpochReader | None = None
        if covers(self, 'make_reader', self.read_hooks):
            reader = self.make_reader(
                requests, options or ReadOptions(), state)
        return reader or RequestReader(self, requests, state)

    def make_reader(self, requests: RequestIterator | None,
                    options: ReadOptions, state: Any) -> EpochReader | None:
        """Return a reader that is faster than calling `get_data`, or None.

        A hook for :meth:`open_epoch`, with the same arguments.
        """
        return None

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
    """Refuse names of sources that are not provided."""
    if isinstance(sources, str):
        raise ValueError(
            f'sources must be a tuple of names, got the string {sources!r}: '
            f'write ({sources!r},)')
    in_order('sources', sources)
    if not sources:
        raise ValueError('sources must name at least one source, got '
                         f'{sources!r}; available are {tuple(provided)}')
    for source in sources:
        if source not in provided:
            hint = did_you_mean(source, provided, '{} ')
            raise ValueError(
                f'there is no source {source!r}: {hint}available are '
                f'{tuple(provided)}')


def as_named(collections: Any) -> tuple[tuple[Any, ...], list[Any]]:
    """Return names of sources and their data, from a dict or one of them."""
    if isinstance(collections, Mapping):
        return tuple(collections), list(collections.values())
    return ('data',), [collections]
