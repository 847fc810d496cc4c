"""A stage that makes tensors, and copies them to a device in advance."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import torch

from fuel.epochs.epoch import Epoch
from fuel.epochs.runtime import runtime_of
from fuel.epochs.state import position_of
from fuel.interop.torch.devices import (
    DeviceCopier,
    check_pinning,
    checked_device,
)
from fuel.interop.torch.tensors import as_tensors
from fuel.transformers.agnostic import AgnosticTransformer
from fuel.transformers.base import Transformer
from fuel.transformers.source_names import as_names, check_known, labels_of
from fuel.typing import (
    Batch,
    EpochReader,
    Request,
    StreamLike,
    returns_epochs,
)

#: A type of tensors, or its name.
DType: TypeAlias = 'str | torch.dtype'
_NOTHING, _ITEM, _END, _ERROR = range(4)


def to_torch(stream: StreamLike,
             device: str | int | torch.device | None = None,
             pin_memory: bool = False,
             dtype: DType | Mapping[str, DType] | None = None,
             which_sources: Sequence[str] | None = None) -> ToTorch:
    """Return a stream whose data are tensors.

    Parameters
    ----------
    stream : AbstractDataStream
    device : str, int or torch.device, optional
        Where the tensors should be.  The next batch is copied there while
        this one is used.  Defaults to None: in memory.
    pin_memory : bool, optional
        Whether to use page-locked memory, from which a GPU copies by itself.
        Defaults to False.
    dtype : str, torch.dtype or dict, optional
        The type of floating numbers, such as ``'bfloat16'``; or a dict from
        names of sources to types, also for other numbers.  Defaults to None:
        the types of the arrays.
    which_sources : tuple of str, optional
        The sources to make tensors of; others stay as they are.  Defaults
        to all.

    Returns
    -------
    ToTorch
        A stage, whose epochs and states are those of any stream.

    Raises
    ------
    ValueError
        If the device is not there, memory cannot be page-locked, a type is
        not known, or the stream does not have the sources.

    Examples
    --------
    >>> import numpy
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.schemes import SequentialScheme
    >>> from fuel.streams import DataStream
    >>> dataset = IndexableDataset({
    ...     'features': numpy.ones((4, 2)), 'targets': numpy.arange(4)})
    >>> stream = to_torch(
    ...     DataStream(dataset, iteration_scheme=SequentialScheme(4, 2)),
    ...     dtype='bfloat16')
    >>> stream
    to_torch(DataStream, dtype='bfloat16')
    >>> for features, targets in stream.get_epoch_iterator():
    ...     print(features.shape, features.dtype, targets)
    torch.Size([2, 2]) torch.bfloat16 tensor([0, 1])
    torch.Size([2, 2]) torch.bfloat16 tensor([2, 3])
    """
    return ToTorch(stream, device, pin_memory, dtype, which_sources)


class ToTorch(AgnosticTransformer):
    """A stage that makes tensors of arrays, over the same memory.

    :func:`to_torch` makes it, with the same arguments.

    Attributes
    ----------
    device : torch.device or None
    pin_memory : bool
    dtype : str, dict of str or None
    which_sources : tuple of str or None

    Notes
    -----
    A state does not depend on the device: one saved beside a GPU is resumed
    without.  A batch that was copied in advance counts as not read.
    """

    _copier: DeviceCopier | None = None
    _held: tuple[int, Any] = (_NOTHING, None)
    _position: Any = None

    def __init__(self, data_stream: StreamLike,
                 device: str | int | torch.device | None = None,
                 pin_memory: bool = False,
                 dtype: DType | Mapping[str, DType] | None = None,
                 which_sources: Sequence[str] | None = None) -> None:
        super().__init__(data_stream, data_stream.produces_examples,
                         axis_labels=labels_of(data_stream))
        if which_sources is not None:
            which_sources = as_names('which_sources', which_sources)
            check_known('which_sources', which_sources, data_stream.sources)
        self.which_sources = which_sources
        self.device = None if device is None else checked_device(device)
        if pin_memory:
            check_pinning()
        self.pin_memory = bool(pin_memory)
        self.dtype = _names_of_types(dtype, data_stream.sources)
        if self.copies:
            self.epoch_attributes = (
                *Transformer.epoch_attributes, '_held', '_position')

    def __repr__(self) -> str:
        arguments = [type(self.data_stream).__name__, *[
            f'{name}={value!r}' for name, value in (
                ('device', self.device and str(self.device)),
                ('pin_memory', self.pin_memory), ('dtype', self.dtype),
                ('which_sources', self.which_sources)) if value]]
        return f'to_torch({", ".join(arguments)})'

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        state.pop('_copier', None)
        return state

    @property
    def copies(self) -> bool:
        """Whether batches are copied to a device in advance (bool)."""
        return self.device is not None and self.device.type != 'cpu'

    @property
    def one_to_one(self) -> bool:
        """Whether each item is made of one of the stream alone (bool)."""
        return self._is_stateless()

    @returns_epochs
    def get_epoch_iterator(self, as_dict: bool = False) -> Any:
        """Return an iterator over the tensors of a new epoch."""
        with runtime_of(self).lock:
            if self.copies:
                self._held, self._position = (_NOTHING, None), None
            return super().get_epoch_iterator(as_dict=as_dict)

    def open_reader(self, epoch: Epoch) -> EpochReader | None:
        """Return a reader that does what :meth:`get_data` does, or None."""
        return None if self.copies else super().open_reader(epoch)

    def transform_any(self, data: Batch) -> Batch:
        """Return the data of each source as a tensor in memory."""
        tensors = as_tensors(data, self, self.which_sources)
        if self.dtype is not None:
            tensors = tuple([
                self._cast(part, source) for part, source
                in zip(tensors, self.sources, strict=True)])
        if self.pin_memory and not self.copies:
            tensors = tuple([
                part.pin_memory() if isinstance(part, torch.Tensor) else part
                for part in tensors])
        return tensors

    def _cast(self, part: Any, source: str) -> Any:
        if not isinstance(part, torch.Tensor):
            return part
        if isinstance(self.dtype, str):
            return (part.to(getattr(torch, self.dtype))
                    if part.is_floating_point() else part)
        name = (self.dtype or {}).get(source)
        return part if name is None else part.to(getattr(torch, name))

    def get_data(self, request: Request = None) -> Any:
        """Return the next tensors, and start the copy of those that follow.

        See :meth:`~fuel.transformers.Transformer.get_data`.
        """
        if not self.copies:
            return super().get_data(request)
        if self._copier is None:
            assert self.device is not None
            self._copier = DeviceCopier(self.device, self.pin_memory)
        if self._held[0] == _NOTHING:
            self._read_next(request)
        kind, held = self._held
        if kind == _END:
            raise StopIteration
        self._held = _NOTHING, None
        if kind == _ERROR:
            raise held
        # The next copy must not be waited for.
        ready = self._copier.finish(held)
        self._read_next(request)
        return ready

    def _read_next(self, request: Request) -> None:
        """Start the copy of the next item, or keep why there is none."""
        self._position = position_of(self.child_epoch_iterator)
        try:
            assert self._copier is not None
            data = self._copier.start(super().get_data(request))
            self._held = _ITEM, data
        except StopIteration:
            self._held = _END, None
        except Exception as error:  # noqa: BLE001 - raised in its turn
            self._held = _ERROR, error

    def get_child_position(self) -> Any:
        """Return where the stream stood before what was copied in advance."""
        return None if self._held[0] == _NOTHING else self._position

    def get_leftover(self) -> None:
        """Return nothing: what was copied in advance is read again."""

    def set_leftover(self, leftover: Any) -> None:
        """Take up nothing."""


def _names_of_types(dtype: DType | Mapping[str, DType] | None,
                    sources: Sequence[str]) -> str | dict[str, str] | None:
    if dtype is None:
        return None
    if isinstance(dtype, Mapping):
        check_known('dtype', dtype, sources)
        return {source: _name_of_type(one) for source, one in dtype.items()}
    name = _name_of_type(dtype)
    if not getattr(torch, name).is_floating_point:
        raise ValueError(
            f'dtype must be a type of floating numbers, got {name!r}: for '
            'other sources pass a dict from their names to types')
    return name


def _name_of_type(dtype: DType) -> str:
    name = str(dtype).removeprefix('torch.')
    if not isinstance(getattr(torch, name, None), torch.dtype):
        raise ValueError(
            f'dtype must be a type of PyTorch, such as torch.bfloat16 or '
            f"'bfloat16', got {dtype!r}")
    return name
