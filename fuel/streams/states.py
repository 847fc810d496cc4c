"""The states of a stream: where it stands, saved and taken up again."""
from __future__ import annotations

from typing import Any

from fuel.epochs.epoch import Epoch
from fuel.epochs.pipeline import child_iterators, child_streams
from fuel.epochs.runtime import Runtime, runtime_of
from fuel.epochs.sealing import Identified, identified, sealed, sealed_epoch
from fuel.epochs.sharding import take_leftover
from fuel.epochs.state import (
    FINISHED,
    NOT_STARTED,
    RUNNING,
    as_state,
    position_of,
    state_between_epochs,
)
from fuel.epochs.state_check import DAMAGE, check_state
from fuel.exceptions import StateMismatchError
from fuel.typing import State
from fuel.utils import rng_state
from fuel.utils.old_pickles import add_new_arguments
from fuel.utils.overrides import is_own


def set_generators(stream: Any, state: State) -> None:
    """Put the generators of a stage, and of the stages below, where they
    were, but for those that went on since to make left-overs anew."""
    if hasattr(stream, '_epoch_position'):
        # The state is that of the stream which workers run, and load.
        return
    if state['leftover'] is None:
        for child, part in zip(
                child_streams(stream), state['children'], strict=True):
            set_generators(child, part)
    if state['rng'] is not None:
        rng_state.set_state(vars(stream)['rng'], state['rng'])


class Resumable:
    """Base of the streams whose position is saved as plain data."""

    epoch_attributes: tuple[str, ...]
    iteration_scheme: Any

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
        >>> from fuel.streams import DataStream
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
                isinstance(child, Resumable)
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

    def _pending_running(self) -> dict[str, Any] | None:
        pending = runtime_of(self).pending
        if pending is not None and pending['epoch'] == RUNNING:
            return pending
        return None

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
        *before* the batch that the left-overs came from. It reads that
        again, so that the child stands where it stood: if no item follows,
        the child's next epoch may go on there.
        """
        raise NotImplementedError(
            f'{type(self).__name__} has get_leftover() but no '
            'set_leftover()')

    def _keeps_leftovers(self) -> bool:
        return type(self).set_leftover is not Resumable.set_leftover

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

    def _child_positions(self) -> list[Any]:
        position = self.get_child_position()
        if position is not None:
            return [position]
        return [position_of(iterator) for iterator in child_iterators(self)]

    def _only_counts(self, epoch: Epoch) -> bool:
        """Return whether nothing but counts changes in the stage's state."""
        kept = epoch.attributes
        return (not kept.keys() - {'child_epoch_iterator', 'data_state'}
                and kept.get('data_state') is None
                and not rng_state.is_generator(getattr(self, 'rng', None))
                and not any(
                    getattr(type(self), hook)
                    is not getattr(Resumable, hook)
                    for hook in ('get_leftover', 'get_child_position',
                                 '_child_positions', '_state_of')))

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
