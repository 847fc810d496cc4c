"""Data streams: a data set read in the order of an iteration scheme."""
from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

from fuel import _generators
from fuel._epoch import (
    FINISHED,
    NOT_STARTED,
    READ_AHEAD,
    RUNNING,
    Epoch,
    Runtime,
    as_state,
    check_fingerprint,
    child_iterators,
    child_streams,
    is_own,
    mark_of,
    rows_are_examples,
    runtime_of,
    scheme_state,
    state_between_epochs,
)
from fuel._requests import IndexRequests, advance
from fuel.iterator import DataIterator

__all__ = [
    'AbstractDataStream', 'DataStream',
    'ServerDataStream']  # noqa: F822 (made by __getattr__)


def __getattr__(name: str) -> Any:
    # The client needs ZeroMQ, which most programs do not.
    if name == 'ServerDataStream':
        from fuel._client import ServerDataStream
        return ServerDataStream
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')


class AbstractDataStream:
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

    Notes
    -----
    A stream may have several epoch iterators at once, in one thread or in
    several.  A pickled stream keeps its data set, its scheme and the states
    of generators, and starts with a new epoch; a pickled epoch iterator
    goes on where it stood.

    """

    epoch_attributes: tuple[str, ...] = ()
    iteration_scheme: Any = None
    axis_labels: Any = None
    sources: Any
    _produces_examples: bool | None = None

    def __init__(self, iteration_scheme: Any = None,
                 axis_labels: Any = None) -> None:
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

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __bool__(self) -> bool:
        # A stream without batches is a stream all the same.
        return True

    def __len__(self) -> int:
        """Return the number of batches or examples of an epoch."""
        length = self._length()
        if length is None:
            raise TypeError(
                f'the length of an epoch of {type(self).__name__} is not '
                'known before it is over')
        return length

    def _length(self) -> int | None:
        """Return the length of an epoch, or None if it is not known."""
        return getattr(self.iteration_scheme, 'num_requests', None)

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

        Yields
        ------
        DataIterator

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
            advance(requests, resumed['requested'])
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
                epoch.start = TypeError(
                    'the position among requests that were passed to '
                    'DataIterator cannot be saved nor taken up as plain '
                    f'data: let {type(self).__name__}.get_epoch_iterator() '
                    'make the iterator, or pickle the epoch iterator')
                if resumed:
                    raise epoch.start
            if resumed:
                epoch.position = resumed['position']
                epoch.requested = resumed['requested']
                if resumed['leftover'] is not None:
                    self.set_leftover(resumed['leftover'])
            runtime.pending = None
            epoch.capture(self)

    def _adopt_epoch(self, epoch: Epoch, iterator: DataIterator) -> None:
        """Take an epoch, new or unpickled, for the one made last."""
        runtime = runtime_of(self)
        with runtime.lock:
            runtime.epoch = epoch
            runtime.iterator = weakref.ref(iterator)
            epoch.install(self)

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

        Returns
        -------
        dict

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
            if runtime.pending is not None:
                return runtime.pending
            if runtime.epoch is None:
                self._check_not_started()
                return self._state_between_epochs(NOT_STARTED)
            return self._state_of(runtime.epoch)

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
        return as_state(epoch.mark(self))

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
        self._check_state(state)
        self._load_checked(state)

    def _check_state(self, state: dict[str, Any]) -> None:
        """Check the state of the whole pipeline before any is loaded."""
        check_fingerprint(self, state)
        for child, part in zip(
                child_streams(self), state['children'], strict=True):
            if hasattr(child, '_check_state'):
                child._check_state(part)

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
                _generators.set_state(vars(self)['rng'], state['rng'])
            if state['epoch'] != RUNNING and state['scheme'] is not None:
                self.iteration_scheme.load_state_dict(state['scheme'])

    def get_leftover(self) -> Any:
        """Return what the stage has kept of its child's last batch.

        A hook for stages that do not hand out all of a child's batch at
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

        Parameters
        ----------
        leftover : object

        """
        raise NotImplementedError(
            f'{type(self).__name__} has get_leftover() but no '
            'set_leftover()')

    def get_child_mark(self) -> Any:
        """Return the position of the child that a state should hold.

        A hook for stages with left-overs, which return the mark they took
        before the batch that the left-overs came from.

        Returns
        -------
        object
            What ``child_epoch_iterator.mark()`` returned.  None, the
            default, means the child's present position.

        """
        return None

    def _child_marks(self) -> list[Any]:
        mark = self.get_child_mark()
        if mark is not None:
            return [mark]
        return [mark_of(iterator) for iterator in child_iterators(self)]

    def __getstate__(self) -> dict[str, Any]:
        # What belongs to an epoch goes with its iterator.
        state = {name: value for name, value in vars(self).items()
                 if name not in self.epoch_attributes}
        if '_runtime' in state:
            # A copy that shares it would tell the position of the other.
            state['_runtime'] = Runtime(runtime_of(self).pending)
        return state


class DataStream(AbstractDataStream):
    """A stream of data from a data set.

    Parameters
    ----------
    dataset : Dataset
        Where the data come from.
    **kwargs
        Arguments of :class:`AbstractDataStream`.  The axis labels default
        to the data set's.

    Examples
    --------
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.schemes import SequentialScheme
    >>> stream = DataStream(IndexableDataset([1, 2, 3]),
    ...                     iteration_scheme=SequentialScheme(3, 2))
    >>> list(stream.get_epoch_iterator())
    [([1, 2],), ([3],)]

    """

    epoch_attributes = ('data_state',)
    data_state: Any

    def __init__(self, dataset: Any, **kwargs: Any) -> None:
        if not (hasattr(dataset, 'open') and hasattr(dataset, 'get_data')):
            raise TypeError(
                'dataset must be a Dataset, or have its open() and '
                f'get_data(), got {type(dataset).__name__}: put arrays and '
                'lists into an IndexableDataset')
        axis_labels = getattr(dataset, 'axis_labels', None)
        if axis_labels:
            kwargs.setdefault('axis_labels', axis_labels.copy())
        super().__init__(**kwargs)
        if self.iteration_scheme is None:
            self.produces_examples = True
        if self.axis_labels and self.produces_examples:
            self.axis_labels = {
                source: without_batch(labels)
                for source, labels in self.axis_labels.items()}
        self.dataset = dataset
        self.data_state = dataset.open()
        self._fresh_state = True

    @property
    def sources(self) -> Any:
        """Names of the data, in the order in which they come (tuple)."""
        if '_sources' in vars(self):
            return self._sources
        return self.dataset.sources

    @sources.setter
    def sources(self, value: Any) -> None:
        self._sources = value

    @classmethod
    def default_stream(cls, dataset: Any, **kwargs: Any) -> Any:
        """Return a stream with the data set's default transformers.

        Parameters
        ----------
        dataset : Dataset
        **kwargs
            Arguments of the stream.

        Returns
        -------
        AbstractDataStream

        """
        return dataset.apply_default_transformers(cls(dataset, **kwargs))

    def get_data(self, request: Any = None) -> Any:
        """Return the data of one request from the data set."""
        if 'data_state' not in vars(self):
            self.data_state = self.dataset.open()
        return self.dataset.get_data(self.data_state, request)

    def _length(self) -> int | None:
        if self.iteration_scheme is not None:
            return super()._length()
        count = getattr(self.dataset, 'num_examples', None)
        return count if isinstance(count, int) else None

    def get_epoch_iterator(self, as_dict: bool = False) -> Any:
        """Return an iterator over the data of a new epoch.

        See :meth:`AbstractDataStream.get_epoch_iterator`.
        """
        with runtime_of(self).lock:
            self.data_state = self._get_state_for_epoch()
            return super().get_epoch_iterator(as_dict=as_dict)

    def _get_state_for_epoch(self) -> Any:
        """Return a state of the data set that no other epoch uses."""
        idle = self._take_idle_states()
        is_fresh = vars(self).pop('_fresh_state', False)
        if is_fresh and 'data_state' in vars(self) and not self._is_held():
            idle = [state for state in idle if state is not self.data_state]
            idle.append(self.data_state)
        else:
            is_fresh = False
        pending = runtime_of(self).pending
        if pending is not None and pending['dataset'] is not None:
            idle.append(self.dataset.open_at(pending['dataset']))
            is_fresh = pending['epoch'] == RUNNING
        elif (not is_fresh and pending is not None
                and pending['epoch'] == NOT_STARTED):
            idle.append(self.dataset.open())
            is_fresh = True
        if not idle:
            return self.dataset.open()
        self._close_others(idle[:-1], idle[-1])
        return idle[-1] if is_fresh else self.dataset.next_epoch(idle[-1])

    def _close_others(self, states: list[Any], chosen: Any) -> None:
        """Close the states that no epoch uses any more, each once.

        By identity: a data set may return the same from each ``open()``.
        """
        used = {id(chosen)} | {
            id(epoch.attributes.get('data_state'))
            for _, epoch in runtime_of(self).holders}
        for state in states:
            if id(state) not in used:
                used.add(id(state))
                self._close_state(state)

    def _take_idle_states(self) -> list[Any]:
        """Return the states of finished and abandoned epochs."""
        runtime = runtime_of(self)
        running, left = [], []
        for reference, epoch in runtime.holders:
            if epoch.finished or reference() is None:
                left.append(epoch)
            else:
                running.append((reference, epoch))
        runtime.holders = running
        return [epoch.attributes['data_state'] for epoch in left
                if 'data_state' in epoch.attributes]

    def _is_held(self) -> bool:
        """Tell whether a running epoch uses the present state."""
        return self.data_state is not None and any(
            epoch.attributes.get('data_state') is self.data_state
            for _, epoch in runtime_of(self).holders)

    def _close_state(self, state: Any) -> None:
        if hasattr(self.dataset, 'close'):
            self.dataset.close(state)

    def _adopt_epoch(self, epoch: Epoch, iterator: DataIterator) -> None:
        super()._adopt_epoch(epoch, iterator)
        runtime_of(self).holders.append((weakref.ref(iterator), epoch))
        epoch.direct = (
            type(self).get_data is DataStream.get_data
            and 'get_data' not in vars(self)
            and 'data_state' in epoch.attributes)
        epoch.is_dict = iterator.as_dict
        if (epoch.direct and not iterator.as_dict
                and isinstance(epoch.request_iterator, IndexRequests)
                and rows_are_examples(self.dataset)):
            epoch.read_ahead = 1
        elif (epoch.direct and not iterator.as_dict
                and epoch.request_iterator is None
                and getattr(self.dataset, 'reads_ahead', False)):
            # Its state answers peek(count) and advance(count).
            epoch.read_ahead = READ_AHEAD

    def _replace_state(self, state: Any) -> None:
        """Show another state, here and in the epochs that had the old."""
        old = vars(self).get('data_state')
        for _, epoch in runtime_of(self).holders:
            if epoch.attributes.get('data_state') is old:
                epoch.forget_ahead()
                epoch.attributes['data_state'] = state
        self.data_state = state

    def reset(self) -> None:
        """Put the state of the data set back to its beginning."""
        with runtime_of(self).lock:
            if 'data_state' in vars(self):
                self._replace_state(self.dataset.reset(self.data_state))
                self._fresh_state = True

    def next_epoch(self) -> None:
        """Switch the state of the data set to the next epoch."""
        with runtime_of(self).lock:
            if 'data_state' in vars(self):
                self._replace_state(self.dataset.next_epoch(self.data_state))

    def close(self) -> None:
        """Close the states of the data set; closing again does nothing."""
        runtime = runtime_of(self)
        with runtime.lock:
            shown = [vars(self)] + [
                epoch.attributes for _, epoch in runtime.holders]
            # By identity: several epochs may share one state.
            states = {id(attributes['data_state']): attributes['data_state']
                      for attributes in shown if 'data_state' in attributes}
            for state in states.values():
                self._close_state(state)
            runtime.holders = []
            vars(self).pop('data_state', None)
            vars(self).pop('_fresh_state', None)


def without_batch(labels: Any) -> Any:
    """Return axis labels of a batch as those of an example.

    Parameters
    ----------
    labels : tuple of str, str or None

    Returns
    -------
    tuple of str, str or None

    """
    if labels is None or isinstance(labels, str):
        return labels
    return tuple(label for label in labels if label != 'batch')
