"""The data set of a :class:`~fuel.interop.torch.Loader`."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fuel.epochs.epoch import reading_again
from fuel.epochs.state import of_stream
from fuel.interop.torch import callers
from fuel.interop.torch.epoch_register import Session, items_left
from fuel.interop.torch.examples import count_examples
from fuel.interop.torch.integers import INT64
from fuel.interop.torch.share import Share
from fuel.interop.torch.stream_iterable import StreamIterable
from fuel.typing import State, StreamLike

# The options of a loader that belong to its data set, with their defaults.
_DEFAULTS = {'as_dict': False, 'targets': INT64, 'which_sources': None,
             'shard': 'auto', 'by': 'batch', 'uneven': None,
             'load_options': None}


class LoaderDataset(StreamIterable):
    """The data set of a :class:`~fuel.interop.torch.Loader`.

    Its length is the number of examples of all ranks, as for data sets of
    PyTorch. But if another library makes a loader over it, the length of that
    loader is the number of batches.
    """

    # In a worker: the token of the loader's workers.
    _token: int | None = None
    _is_read_by_loader = False

    @classmethod
    def over(cls, iterable: StreamIterable) -> LoaderDataset:
        """Return a loader's data set over a result of `as_iterable`."""
        if isinstance(iterable, cls):
            return iterable
        made = cls.__new__(cls)
        # Both share the number of the epoch and the position in it.
        made.__dict__.update(iterable.__dict__)
        return made

    def refuse_other_options(self, **options: Any) -> None:
        """Raise TypeError if a loader's options differ from those set here."""
        rank = self._rank
        shard = None if rank.shard is None else tuple(rank.shard[:2])
        made = {'as_dict': self.as_dict, 'targets': self.targets,
                'which_sources': self.which_sources, 'by': rank.by,
                'uneven': rank.uneven, 'shard': shard,
                'load_options': self.load_options}
        for name, value in options.items():
            given = tuple(value) if isinstance(value, list) else value
            if given not in (_DEFAULTS[name], made[name]):
                raise TypeError(
                    f'Loader got {name}={value!r}, but as_iterable() has '
                    f'made the data set with {name}={made[name]!r}: pass '
                    f'{name} to as_iterable(), or give the stream itself to '
                    'Loader')

    def __len__(self) -> int:
        """Return the number of examples.

        If a loader of PyTorch computes its own length, the result is the
        number of batches.
        """
        if callers.is_len_of_loader():
            return len(self.stream)
        count = count_examples(self._rank.whole)
        if count is None:
            raise TypeError(
                'how many examples an epoch of '
                f'{type(self._rank.whole).__name__} has is not known before '
                'it is over')
        return count

    @property
    def whole(self) -> StreamLike:
        """The stream that the ranks share (AbstractDataStream)."""
        return self._rank.whole

    @contextmanager
    def read_by_loader(self, token: int | None = None) -> Iterator[None]:
        """Mark that the loader itself begins an iteration, within a block.

        `token`: identifies the loader's workers.
        """
        self._token, self._is_read_by_loader = token, True
        try:
            yield
        finally:
            self._token, self._is_read_by_loader = None, False

    def session_of_worker(self) -> Session:
        """Return the session that the workers of this pass share."""
        if self._token is None:
            return super().session_of_worker()
        return Session(self._token, self._begun)

    def _check_position(self) -> None:
        if not self._is_read_by_loader:
            super()._check_position()

    def leave(self, count: int | None) -> None:
        """Record how many items of the last epoch were delivered; None for
        all."""
        self._register.leave(count)

    def begin_session(self, session: Session) -> tuple[State, int | None]:
        """Begin the next epoch before its workers start.

        Returns: the state from which the epoch starts, and the number of its
            batches, or None if that is not known.
        """
        self._rank.check_world()
        iterator, state = self._register.begin_session(self.stream, session)
        return state, items_left(iterator)

    def open_here(self, holds_back: bool) -> Share:
        """Begin the epoch of the last iteration, which this process reads.

        `holds_back`: whether the program receives a batch later than it is
            read.
        """
        assert self._share is not None
        self.reader_holds_back = holds_back
        # Reading the property opens the epoch.
        _ = self._share.iterator
        return self._share

    def is_named(self) -> bool:
        """Return whether the number of the next epoch is known."""
        return self._register.is_named()

    def next_start(self) -> State | None:
        """Return the state that was set as the start of the next iteration.

        `load_state_dict` and `set_epoch` set it. The result is None if the
        next iteration just follows the last one.
        """
        return self._register.next_start()

    def count_next(self) -> int:
        """Return the number of batches of the next iteration.

        Raises: TypeError if the number is not known.
        """
        start = self.next_start()
        count = None if start is None else self._count_from(start)
        # The length of a stream raises TypeError if it is not known.
        return len(self.stream) if count is None else count

    def _count_from(self, start: State) -> int | None:
        """Return the number of items left after a state; None if unknown.

        The state stays the start of the next epoch.
        """
        self.stream.load_state_dict(start)
        count = items_left(self.stream.get_epoch_iterator())
        self.stream.load_state_dict(start)
        return count

    def leave_empty_rest(self) -> None:
        """Skip to the next epoch if the resumed epoch has no items left."""
        start = self.next_start()
        if start is not None and self._count_from(start) == 0:
            self.restore(self.state_from(start, None))

    def state_before(self) -> State:
        """Return the state of a loader that has read no batch yet.

        Raises: RuntimeError if another loader reads the data set.
        """
        start = self.next_start()
        if start is not None:
            return of_stream(start)
        if self._share is not None or self._register.last is not None:
            raise RuntimeError(
                'another loader reads the data set of this one, which may be '
                'ahead of what the program has: with Accelerate, prepare '
                'this loader by fuel.interop.accelerate.prepare(accelerator, '
                'loader), and save the state_dict() of what that returns; '
                'elsewhere save loader.dataset.state_after(count), with the '
                'number of batches that the pass has delivered')
        return of_stream(self.stream.state_dict())

    def step_from(self, start: State, count: int | None,
                  accumulate: int) -> int:
        """Return the step of the last of `count` batches after a state.

        `count`: see :meth:`state_from`.
        """
        with reading_again():
            # While the iterator exists, its epoch is that of the stream.
            iterator = self._iterator_after(start, count)
            step: int = self.stream.current_step(accumulate)
            del iterator
        return step

    def state_from(self, start: State, count: int | None) -> State:
        """Return the state `count` batches after the state `start`.

        `count`: None for the state after the end of the epoch.
        """
        return of_stream(self._advanced(start, count))
