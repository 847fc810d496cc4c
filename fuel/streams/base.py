"""The base of all streams: their arguments, data and epochs."""
from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from typing import Any, Never

from fuel.epochs.epoch import Epoch
from fuel.epochs.pipeline import child_iterators, skip
from fuel.epochs.runtime import runtime_of
from fuel.epochs.sharding import begin_sharded
from fuel.iterator import DataIterator
from fuel.schemes.iteration_scheme import num_requests_of, scheme_state
from fuel.schemes.iterator_requests import as_requests
from fuel.streams.arguments import check_scheme
from fuel.streams.protocols import StreamProtocols
from fuel.streams.sharding import Shardable
from fuel.streams.states import Resumable, set_generators
from fuel.streams.views import Viewable
from fuel.typing import AxisLabels, SchemeLike, returns_epochs
from fuel.utils.arguments import NamedArguments, unknown_argument


class AbstractDataStream(Resumable, StreamProtocols, Shardable, Viewable,
                         NamedArguments):
    """A stream of examples or batches, separated into epochs.

    Subclasses implement :meth:`get_data` or :meth:`get_epoch_iterator`,
    without which they cannot be constructed.

    Parameters
    ----------
    iteration_scheme : IterationScheme, optional
        Which requests to make.  Some data sets and stages need one, others
        do not take any.
    axis_labels : dict, optional
        Maps source names to tuples of strings, one for each axis.  Defaults
        to None: nothing is known.

    Attributes
    ----------
    iteration_scheme : IterationScheme or None
    sources : tuple of str
        Names of the data, in the order in which they come.
    produces_examples : bool
        Whether single examples come (as opposed to batches).
    epoch_attributes : tuple of str
        Class attribute: names of the attributes that belong to an epoch.
        Each epoch iterator has its own values, present while `get_data`
        runs.
    one_to_one : bool
        Whether each item is made of one request, or one item of the stream
        that is read, and of no other, so that items can be skipped and
        several workers can share an epoch.

    Notes
    -----
    A stream may have several epoch iterators at once, in one thread or in
    several.  A pickled stream keeps its data set, its scheme and the states
    of generators, and starts with a new epoch; a pickled epoch iterator
    goes on where it stood.
    """

    must_override = ('get_data', 'get_epoch_iterator')
    epoch_attributes: tuple[str, ...] = ()
    one_to_one: Any = False
    iteration_scheme: Any = None
    axis_labels: Any = None
    _produces_examples: bool | None = None
    unsaved_arguments: tuple[str, ...] = (
        'axis_labels', 'data_stream', 'data_streams', 'dataset',
        'iteration_scheme', 'produces_examples', 'sources')

    def __init__(self, iteration_scheme: SchemeLike | None = None,
                 axis_labels: AxisLabels | None = None,
                 **unknown: Never) -> None:
        if unknown:
            raise unknown_argument(type(self), unknown)
        check_scheme(self, iteration_scheme)
        self.iteration_scheme = iteration_scheme
        self.axis_labels = axis_labels

    @property
    def sources(self) -> Any:
        """Names of the data, in the order in which they come (tuple)."""
        if '_sources' in vars(self):
            return self._sources
        return self._get_sources()

    @sources.setter
    def sources(self, value: Any) -> None:
        self._sources = value

    def _get_sources(self) -> Any:
        """Return the sources that the stream has if none are assigned."""
        # Some pickles of Fuel 0.2.0 hold them so.
        if 'sources' in vars(self):
            return vars(self)['sources']
        raise AttributeError(f'{type(self).__name__} has no sources')

    @property
    def produces_examples(self) -> Any:
        """Whether single examples come, as opposed to batches (bool)."""
        if self.iteration_scheme is not None:
            return self.iteration_scheme.requests_examples
        if self._produces_examples is None:
            raise ValueError(
                f'{type(self).__name__} has no iteration scheme, so it must '
                'be told whether it produces examples: set '
                'produces_examples')
        return self._produces_examples

    @produces_examples.setter
    def produces_examples(self, value: bool) -> None:
        if self.iteration_scheme is not None:
            raise ValueError(
                'produces_examples follows from the iteration scheme '
                f'({type(self.iteration_scheme).__name__}) and cannot be '
                'set')
        self._produces_examples = value

    def get_data(self, request: Any = None) -> Any:
        """Return the data of one request.

        Parameters
        ----------
        request : object, optional
            What the request iterator gave.

        Returns
        -------
        tuple
            The data of each source.

        Raises
        ------
        StopIteration
            If the epoch is over.
        """
        raise NotImplementedError(
            f'{type(self).__name__} must implement get_data')

    def reset(self) -> None:
        """Start afresh."""

    def close(self) -> None:
        """Let go of files and the like."""

    def next_epoch(self) -> None:
        """Switch to the next epoch."""

    def _length(self) -> int | None:
        """Return the length of an epoch, or None if it is not known."""
        scheme = self.iteration_scheme
        return None if scheme is None else num_requests_of(scheme)

    @returns_epochs
    def get_epoch_iterator(self, as_dict: bool = False) -> Any:
        """Return an iterator over the data of a new epoch.

        Parameters
        ----------
        as_dict : bool, optional
            Whether to return a dict from source names to data instead of a
            tuple.  Defaults to False.

        Returns
        -------
        DataIterator
            After :meth:`load_state_dict`, the one that goes on where the
            state was saved.
        """
        with runtime_of(self).lock:
            self._start_epoch()
            return DataIterator(self, self._get_requests(), as_dict)

    def _start_epoch(self) -> None:
        """Set what belongs to a new epoch."""

    def iterate_epochs(self, as_dict: bool = False) -> Iterator[Any]:
        """Return an iterator over the epoch iterators, without end.

        Parameters
        ----------
        as_dict : bool, optional
            See :meth:`get_epoch_iterator`.
        """
        while True:
            yield self.get_epoch_iterator(as_dict=as_dict)

    def _get_requests(self) -> Iterator[Any] | None:
        """Return the requests of a new epoch, or of the one taken up."""
        runtime = runtime_of(self)
        scheme = self.iteration_scheme
        if scheme is None:
            return None
        resumed = self._pending_running()
        if resumed:
            scheme.load_state_dict(resumed['scheme'])
        try:
            runtime.start = scheme_state(scheme)
        except TypeError as error:
            runtime.start = error
        requests: Iterator[Any] = scheme.get_request_iterator()
        if not hasattr(requests, '__next__'):
            raise TypeError(
                f'get_request_iterator() of {type(scheme).__name__} must '
                f'return an iterator, got {type(requests).__name__}: return '
                'iter(...) of it')
        if resumed:
            requests = as_requests(requests)
            requests.advance(resumed['requested'])
        return requests

    def _begin_epoch(self, epoch: Epoch) -> None:
        """Give a new epoch what belongs to it."""
        runtime = runtime_of(self)
        with runtime.lock:
            resumed = self._pending_running()
            epoch.start, runtime.start = runtime.start, None
            if epoch.request_iterator is not None and epoch.start is None:
                # Whoever built the iterator chose the requests.
                epoch.has_own_requests = True
                epoch.start = TypeError(
                    'the position among requests that were passed to '
                    'DataIterator cannot be saved nor taken up as plain '
                    f'data: let {type(self).__name__}.get_epoch_iterator() '
                    'make the iterator, or pickle the epoch iterator')
                if resumed:
                    raise epoch.start
            if resumed:
                epoch.go_to(resumed['position'], resumed['requested'],
                            resumed['failed'])
                if resumed['leftover'] is not None:
                    self._take_leftover(resumed['leftover'])
                # A scheme that has the same generator drew an order since.
                set_generators(self, resumed)
            runtime.pending = None
            epoch.unbind(self)
            begin_sharded(self, epoch)

    def _adopt_epoch(self, epoch: Epoch, iterator: DataIterator) -> None:
        """Take an epoch, new or unpickled, for the one made last."""
        runtime = runtime_of(self)
        with runtime.lock:
            runtime.epoch = epoch
            runtime.iterator = weakref.ref(iterator)
            epoch.bind(self)

    def _release_children(self) -> None:
        """Let go of the children's iterators if nobody reads this stream.

        Called before new ones are made: a child whose iterator is gone goes
        on to its next epoch, instead of running two at a time.
        """
        runtime = runtime_of(self)
        if runtime.is_left():
            runtime.epoch = None
            for name in ('child_epoch_iterator', 'child_epoch_iterators'):
                vars(self).pop(name, None)

    def skip(self, count: int) -> None:
        """Skip items of the epoch without making them.

        A hook for one-to-one stages that count their items; requests are
        counted already. They call this method too, which skips items of the
        streams that are read.
        """
        for iterator in child_iterators(self):
            skip(iterator, count)

    def source_examples(self, requests: Sequence[Any]) -> Any:
        """Return the examples of the data set that the last items came from.

        A hook for stages that know, so that errors and logs name them.

        Parameters
        ----------
        requests : sequence
            The requests of these items, or their numbers in the epoch if
            there is no iteration scheme.

        Returns
        -------
        fuel.epochs.pipeline.SourceExamples or None
            None, the default, if they are not known.
        """
        return None
