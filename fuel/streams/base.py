"""The base of all streams: epochs, positions and states."""
from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from typing import Any, Never

from fuel.epochs.epoch import Epoch
from fuel.epochs.pipeline import child_iterators, child_streams, skip
from fuel.epochs.runtime import Runtime, runtime_of
from fuel.epochs.sealing import Identified, identified, sealed, sealed_epoch
from fuel.epochs.sharding import begin_sharded, take_leftover
from fuel.epochs.state import (FINISHED, NOT_STARTED, RUNNING, as_state,
                               position_of, state_between_epochs)
from fuel.epochs.state_check import DAMAGE, check_state
from fuel.exceptions import StateMismatchError
from fuel.iterator import DataIterator
from fuel.schemes.iteration_scheme import num_requests_of, scheme_state
from fuel.schemes.iterator_requests import as_requests
from fuel.streams.arguments import check_scheme
from fuel.streams.protocols import StreamProtocols
from fuel.streams.sharding import Shardable
from fuel.streams.views import Viewable
from fuel.typing import AxisLabels, SchemeLike, State, returns_epochs
from fuel.utils import rng_state
from fuel.utils.arguments import unknown_argument
from fuel.utils.old_pickles import add_new_arguments
from fuel.utils.overrides import is_own


class AbstractDataStream(StreamProtocols, Shardable, Viewable):
    """A stream of examples or batches, separated into epochs.

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

    epoch_attributes: tuple[str, ...] = ()
    one_to_one: Any = False
    iteration_scheme: Any = None
    axis_labels: Any = None
    sources: Any
    _produces_examples: bool | None = None

    def __init__(self, iteration_scheme: SchemeLike | None = None,
                 axis_labels: AxisLabels | None = None,
                 **unknown: Never) -> None:
        if unknown:
            raise unknown_argument(type(self), unknown)
        check_scheme(self, iteration_scheme)
        self.iteration_scheme = iteration_scheme
        self.axis_labels = axis_labels

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
            return DataIterator(self, self._get_requests(), as_dict)

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

    def _pending_running(self) -> dict[str, Any] | None:
        pending = runtime_of(self).pending
        if pending is not None and pending['epoch'] == RUNNING:
            return pending
        return None

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
            runtime.pending = None
            epoch.unbind(self)
            begin_sharded(self, epoch)

    def _take_leftover(self, leftover: Any) -> None:
        try:
            take_leftover(self, leftover)
        except StateMismatchError:
            raise
        except DAMAGE as error:
            raise StateMismatchError(
                f"the field 'leftover' of the state of stage "
                f'{type(self).__name__} cannot be taken up: {error!r:.300}'
                ) from error

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

    def state_dict(self) -> dict[str, Any]:
        """Return where the stream stands, as plain data ready for JSON.

        That is the position of the epoch iterator made last: counts and
        states of generators, a few kilobytes, never data.

        Raises
        ------
        TypeError
            If some part of the pipeline cannot tell its position; the text
            names it and the hooks it lacks.

        Examples
        --------
        >>> from fuel.datasets import IndexableDataset
        >>> from fuel.schemes import ShuffledScheme
        >>> def build():
        ...     return DataStream(IndexableDataset(list(range(6))),
        ...                       iteration_scheme=ShuffledScheme(6, 2))
        >>> stream = build()
        >>> epoch = stream.get_epoch_iterator()
        >>> next(epoch)
        ([2, 1],)
        >>> restored = build()
        >>> restored.load_state_dict(stream.state_dict())
        >>> list(restored.get_epoch_iterator()) == list(epoch)
        True
        """
        runtime = runtime_of(self)
        with runtime.lock:
            if runtime.pending is None and runtime.epoch is not None:
                return sealed_epoch(self, runtime.epoch)
            return sealed(self, self._state())

    def _state(self) -> State:
        """Return the state as the pipeline itself carries it: without what
        identifies it."""
        runtime = runtime_of(self)
        with runtime.lock:
            if runtime.pending is not None:
                return runtime.pending
            if runtime.epoch is None:
                self._check_not_started()
                return self._state_between_epochs(NOT_STARTED)
            return self._state_of(runtime.epoch)

    def _identified(self, state: State) -> Identified:
        """Return a copy of a state, with what it is a state of."""
        return identified(self, state)

    def _check_not_started(self) -> None:
        """Refuse to call an epoch not started that nothing is known of."""
        overrides = any('get_epoch_iterator' in vars(cls) and not is_own(cls)
                        for cls in type(self).__mro__)
        if overrides and any(
                isinstance(child, AbstractDataStream)
                and runtime_of(child).epoch is not None
                for child in child_streams(self)):
            raise TypeError(
                f'{type(self).__name__} overrides get_epoch_iterator() with '
                'one that makes no DataIterator, so its position cannot be '
                'told: let it return super().get_epoch_iterator()')

    def _state_of(self, epoch: Epoch) -> dict[str, Any]:
        if epoch.finished:
            return self._state_between_epochs(FINISHED)
        return as_state(epoch.get_position(self))

    def _state_between_epochs(self, epoch: str) -> dict[str, Any]:
        """Return the state while no epoch is running."""
        return state_between_epochs(self, epoch)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where another stream, built in the same way, stood.

        The next epoch iterator takes up the state; those made before are
        not disturbed.

        Parameters
        ----------
        state : dict
            What :meth:`state_dict` returned.

        Raises
        ------
        fuel.exceptions.StateMismatchError
            If the state is of another format, or was saved by a pipeline
            of other stages, sources, numbers of examples or batch sizes.
        """
        self._load_checked(self._check_state(state))

    def _check_state(self, state: object) -> State:
        """Return a checked copy of the state of the whole pipeline."""
        with runtime_of(self).lock:
            return check_state(self, state)

    def _load_checked(self, state: dict[str, Any]) -> None:
        for child, part in zip(
                child_streams(self), state['children'], strict=True):
            if hasattr(child, '_load_checked'):
                child._load_checked(part)
            else:
                child.load_state_dict(part)
        runtime = runtime_of(self)
        with runtime.lock:
            runtime.pending = state
            if state['rng'] is not None:
                rng_state.set_state(vars(self)['rng'], state['rng'])
            if state['epoch'] != RUNNING and state['scheme'] is not None:
                self.iteration_scheme.load_state_dict(state['scheme'])

    def get_leftover(self) -> Any:
        """Return what the stage has kept of its child's last batch.

        A hook for stages that do not deliver all of a child's batch at
        once.

        Returns
        -------
        object
            Counts and the like, ready for JSON, never data; None if there
            is nothing.
        """
        return None

    def set_leftover(self, leftover: Any) -> None:
        """Take up what :meth:`get_leftover` returned.

        Called when the child's iterator has been put back to where it stood
        *before* the batch that the left-overs came from.
        """
        raise NotImplementedError(
            f'{type(self).__name__} has get_leftover() but no '
            'set_leftover()')

    def get_child_position(self) -> Any:
        """Return the position of the child that a state should hold.

        A hook for stages with left-overs, which return the position they took
        before the batch that the left-overs came from.

        Returns
        -------
        object
            What ``child_epoch_iterator.get_position()`` returned.  None, the
            default, means the child's present position.
        """
        return None

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

    def _only_counts(self, epoch: Epoch) -> bool:
        """Return whether nothing but counts changes in the stage's state."""
        kept = epoch.attributes
        return (not kept.keys() - {'child_epoch_iterator', 'data_state'}
                and kept.get('data_state') is None
                and not rng_state.is_generator(getattr(self, 'rng', None))
                and not any(
                    getattr(type(self), hook)
                    is not getattr(AbstractDataStream, hook)
                    for hook in ('get_leftover', 'get_child_position',
                                 '_child_positions', '_state_of')))

    def _child_positions(self) -> list[Any]:
        position = self.get_child_position()
        if position is not None:
            return [position]
        return [position_of(iterator) for iterator in child_iterators(self)]

    def __getstate__(self) -> dict[str, Any]:
        # What belongs to an epoch goes with its iterator.
        state = {name: value for name, value in vars(self).items()
                 if name not in self.epoch_attributes}
        if '_runtime' in state:
            # A copy that shares it would tell the position of the other.
            state['_runtime'] = Runtime(runtime_of(self).pending)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        add_new_arguments(self)
