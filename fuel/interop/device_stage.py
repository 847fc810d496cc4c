"""The base of stages that copy batches to a device in advance."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from fuel.describe.pipeline import stream_text
from fuel.epochs.epoch import Epoch, asking
from fuel.epochs.pipeline import length_of, source_examples
from fuel.epochs.state import position_of
from fuel.transformers.sourcewise import AgnosticTransformer
from fuel.transformers.base import Transformer
from fuel.transformers.source_names import as_names, check_known, labels_of
from fuel.typing import (
    Batch,
    EpochReader,
    Request,
    StreamLike,
)

_NOTHING, _ITEM, _END, _ERROR = range(4)


class Copier(Protocol):
    """Starts copies of batches to a device, and waits for them."""

    def start(self, batch: Batch) -> Batch:
        """Return the batch on the device; the copy may not be finished yet."""

    def finish(self, batch: Batch) -> Batch:
        """Return a batch that `start` returned, ready to be used."""


class LateEpoch(Iterator[Any]):
    """An iterator that begins an epoch when its first item is requested.

    Some trainers make an iterator only to check that they can, and drop it.
    Such an iterator does not begin an epoch.

    `open_epoch`: function that returns the epoch iterator.
    """

    def __init__(self, open_epoch: Callable[[], Iterator[Any]]) -> None:
        self._open_epoch = open_epoch
        self._epoch: Iterator[Any] | None = None

    def __next__(self) -> Any:
        if self._epoch is None:
            self._epoch = self._open_epoch()
        return next(self._epoch)


class DeviceStage(AgnosticTransformer):
    """A stage that copies the next batch to a device in advance.

    The copy runs while the program uses the present batch. Subclasses
    implement :meth:`transform_any`, which makes the data to copy, and
    :meth:`make_copier`. A batch that was copied in advance counts as not
    read: a state holds the position before the batch. If the stream raises an
    error, it is raised when the program requests the batch that failed.

    `copies`: whether batches are copied in advance.
    `which_sources`: the sources that are converted. Defaults to all.
    """

    takes_masked = False
    _copier: Copier | None = None
    _held: tuple[int, Any] = (_NOTHING, None)
    _position: Any = None
    # The examples of the item read last, and those of the item delivered
    # last; None unless a stage above asks for them.
    _found: tuple[Any, Any] | None = None
    dtype: str | dict[str, str] | None = None
    unsaved_arguments: tuple[str, ...] = ('copies',)

    def __init__(self, data_stream: StreamLike, copies: bool,
                 which_sources: Sequence[str] | None = None) -> None:
        super().__init__(data_stream, data_stream.produces_examples,
                         axis_labels=labels_of(data_stream))
        if which_sources is not None:
            which_sources = as_names('which_sources', which_sources)
            check_known('which_sources', which_sources, data_stream.sources)
        self.which_sources = which_sources
        self.copies = copies
        if copies:
            # transform_any() makes batches that are not on the device yet.
            self.pure = False
            self.epoch_attributes = (
                *Transformer.epoch_attributes, '_held', '_position',
                '_found')

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        state.pop('_copier', None)
        return state

    def __iter__(self) -> Iterator[Any]:
        """Return an iterator, which begins a new epoch with its first item."""
        return LateEpoch(self.get_epoch_iterator)

    def __str__(self) -> str:
        return stream_text(self)

    def num_items(self) -> int | None:
        """Return the number of items in an epoch; None if it is not known."""
        return length_of(self.data_stream)

    def make_copier(self) -> Copier:
        """Return a copier of batches to the device, for this process."""
        raise NotImplementedError

    def described(self, function: str, **options: object) -> str:
        """Return the text of the function call that makes this stage.

        `options`: the arguments; only those with a true value are shown.
        """
        arguments = [type(self.data_stream).__name__, *[
            f'{name}={value!r}' for name, value in options.items() if value]]
        return f'{function}({", ".join(arguments)})'

    def type_of(self, source: str, is_floating: bool) -> str | None:
        """Return the type to which `dtype` converts a source's numbers.

        The result is None if the numbers keep their type.
        """
        if isinstance(self.dtype, str):
            return self.dtype if is_floating else None
        return (self.dtype or {}).get(source)

    @property
    def __fuel_passes_on__(self) -> bool:
        # If items are copied in advance, states hold the position of the
        # stream, which does not depend on the rank.
        return self.copies

    @property
    def one_to_one(self) -> bool:
        """Whether each item is made of a single input item (bool)."""
        return self._is_stateless()

    def start_epoch(self) -> None:
        """Set the attributes that belong to a new epoch."""
        if self.copies:
            self._held, self._position = (_NOTHING, None), None
            self._found = (None, None) if asking.examples else None
        super().start_epoch()

    def open_reader(self, epoch: Epoch) -> EpochReader | None:
        """Return a reader that replaces :meth:`get_data`, or None."""
        return None if self.copies else super().open_reader(epoch)

    def get_data(self, request: Request = None) -> Any:
        """Return the next data, and start to copy the data after them.

        See :meth:`~fuel.transformers.Transformer.get_data`.
        """
        if not self.copies:
            return super().get_data(request)
        if self._copier is None:
            self._copier = self.make_copier()
        if self._held[0] == _NOTHING:
            self._read_next(request)
        kind, held = self._held
        if kind == _END:
            raise StopIteration
        self._held = _NOTHING, None
        if kind == _ERROR:
            raise held
        # Finish this copy before the next one starts: afterwards this would
        # wait for both.
        ready = self._copier.finish(held)
        if self._found is not None:
            self._found = None, self._found[0]
        self._read_next(request)
        return ready

    def _read_next(self, request: Request) -> None:
        """Start to copy the next item, or record the error or the end."""
        self._position = position_of(self.child_epoch_iterator)
        try:
            assert self._copier is not None
            data = self._copier.start(super().get_data(request))
            self._held = _ITEM, data
            if self._found is not None:
                self._found = source_examples(
                    self.child_epoch_iterator, 1), self._found[1]
        except StopIteration:
            self._held = _END, None
        except Exception as error:  # noqa: BLE001 - raised in its turn
            self._held = _ERROR, error

    def source_examples(self, requests: Sequence[Any]) -> Any:
        """Return the examples of the last item."""
        if self.copies:
            return self._found and self._found[1]
        return super().source_examples(requests)

    def get_child_position(self) -> Any:
        """Return the position of the stream before the batch copied in
        advance."""
        return None if self._held[0] == _NOTHING else self._position

    def get_leftover(self) -> None:
        """Return nothing: batches copied in advance are read again."""

    def set_leftover(self, leftover: object) -> None:
        """Restore nothing."""


def names_of_types(dtype: object, sources: Sequence[str],
                   name_of: Callable[[Any], str],
                   is_floating: Callable[[str], bool],
                   ) -> str | dict[str, str] | None:
    """Return the argument `dtype` of a device stage as names of types.

    `name_of`: returns the name of a type; raises ValueError for other
        objects.
    `is_floating`: returns whether a name is that of a floating-point type.
    """
    if dtype is None:
        return None
    if isinstance(dtype, Mapping):
        check_known('dtype', dtype, sources)
        return {source: name_of(one) for source, one in dtype.items()}
    name = name_of(dtype)
    if not is_floating(name):
        raise ValueError(
            f'dtype must be a type of floating numbers, got {name!r}: for '
            'other sources pass a dict from their names to types')
    return name
