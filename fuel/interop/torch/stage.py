"""A stage that makes tensors and copies them to a device in advance."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import torch

from fuel.epochs.epoch import Epoch
from fuel.epochs.stage import stage_of
from fuel.interop.device_stage import DeviceStage, names_of_types
from fuel.interop.torch.callers import refuse_state_ahead, refuse_to_restart
from fuel.interop.torch.integers import (
    AS_STORED, INT64, as_int64, checked_targets, num_axes, request_int64)
from fuel.interop.torch.tensors import as_pinned, as_tensors, dense_parts
from fuel.kernels.stage_reader import OfPlainArrays
from fuel.transformers.base import Transformation
from fuel.typing import Batch, State, StreamLike
from fuel.utils.overrides import calls

#: A type of tensors, or its name.
DType: TypeAlias = 'str | torch.dtype'


def to_torch(stream: StreamLike,
             device: str | int | torch.device | None = None,
             pin_memory: bool = False,
             dtype: DType | Mapping[str, DType] | None = None,
             which_sources: Sequence[str] | None = None,
             targets: str = INT64) -> ToTorch:
    """Return a stream whose data are tensors.

    Parameters
    ----------
    stream : AbstractDataStream
    device : str, int or torch.device, optional
        The device of the tensors.  The next batch is copied there while the
        program uses the present batch.  Defaults to None: memory of the host.
    pin_memory : bool, optional
        Whether to use page-locked memory, from which a GPU copies without
        the CPU.  Defaults to False.
    dtype : str, torch.dtype or dict, optional
        The type to which floating-point numbers are cast, such as
        ``'bfloat16'``; or a dict from names of sources to types, which casts
        other numbers too.  Defaults to None: no cast.
    which_sources : tuple of str, optional
        The sources that become tensors; other sources stay as they are.
        Defaults to all.
    targets : {'int64', 'as stored'}, optional
        The type of sources with one integer per example, such as classes.
        ``'int64'``, the default, is the type that losses of PyTorch require;
        ``'as stored'`` keeps the type of the arrays.  Truth values, uint64
        and integers of any other shape keep their type in both cases.

    Returns
    -------
    ToTorch
        A stage, with epochs and states like those of any stream.

    Raises
    ------
    ValueError
        If the device does not exist, memory cannot be page-locked, a type is
        not known, or the stream does not have the sources.

    Examples
    --------
    This needs the extra ``torch``.

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
    return ToTorch(stream, device, pin_memory, dtype, which_sources, targets)


class ToTorch(DeviceStage):
    """A stage that makes tensors that share the memory of the arrays.

    :func:`to_torch` makes it, with the same arguments.

    Attributes
    ----------
    device : torch.device or None
    pin_memory : bool
    dtype : str, dict of str or None
    which_sources : tuple of str or None
    targets : str

    Notes
    -----
    A sparse batch becomes a tensor of `torch.sparse_csr_tensor`.

    A state does not depend on the device: a state saved with a GPU can be
    resumed without one.  A batch that was copied in advance counts as not
    read.
    """

    pure = True
    keeps_rows = True
    unsaved_arguments = ('device', 'pin_memory', 'targets')
    # Pickles of earlier versions lack this attribute.
    targets = AS_STORED

    def __init__(self, data_stream: StreamLike,
                 device: str | int | torch.device | None = None,
                 pin_memory: bool = False,
                 dtype: DType | Mapping[str, DType] | None = None,
                 which_sources: Sequence[str] | None = None,
                 targets: str = INT64) -> None:
        self.targets = checked_targets(targets)
        self.device = None if device is None else checked_device(device)
        super().__init__(
            data_stream, copies=self.device is not None
            and self.device.type != 'cpu', which_sources=which_sources)
        if pin_memory:
            check_pinning()
        self.pin_memory = bool(pin_memory)
        self.dtype = names_of_types(
            dtype, data_stream.sources, _name_of_type,
            lambda name: bool(getattr(torch, name).is_floating_point))

    def __repr__(self) -> str:
        return self.described(
            'to_torch', device=self.device and str(self.device),
            pin_memory=self.pin_memory, dtype=self.dtype,
            which_sources=self.which_sources,
            targets=self.targets if self.targets != INT64 else None)

    def __iter__(self) -> Iterator[Any]:
        """Return an iterator, which begins a new epoch with its first item."""
        stage = stage_of(self)
        is_resumed = stage.pending is not None
        refuse_to_restart(
            self, is_resumed or stage.epoch is not None, is_resumed)
        return super().__iter__()

    def state_dict(self) -> State:
        """Return the state of the stream, as plain data ready for JSON.

        See :meth:`~fuel.streams.AbstractDataStream.state_dict`.
        """
        refuse_state_ahead(self)
        return super().state_dict()

    def make_copier(self) -> DeviceCopier:
        """Return a copier of batches to the device, for this process."""
        assert self.device is not None
        return DeviceCopier(self.device, self.pin_memory)

    @calls()
    def _transformation(self, epoch: Epoch) -> Transformation:
        transform = type(self).transform_any
        wanted = self._sources_of_targets()
        if wanted:
            request_int64(epoch.attributes['child_epoch_iterator'],
                          self.data_stream, wanted)
        if self.dtype or self.pin_memory or self.which_sources is not None:
            return transform
        return OfPlainArrays(
            torch.from_numpy, transform,
            bool(wanted) and not self.produces_examples)

    def _sources_of_targets(self) -> tuple[str, ...]:
        """Return the sources whose integer targets become int64."""
        if self.targets != INT64:
            return ()
        sources: tuple[str, ...] = tuple(self.sources)
        return tuple([
            source for source in sources
            if self.type_of(source, False) is None
            and (self.which_sources is None or source in self.which_sources)])

    def transform_any(self, data: Batch) -> Batch:
        """Return the data of each source as a tensor in the host's memory."""
        wanted = self._sources_of_targets()
        if wanted:
            data = as_int64(data, num_axes(self), [
                source in wanted for source in self.sources])
        tensors = as_tensors(data, self, self.which_sources)
        if self.dtype is not None:
            tensors = tuple([
                self._cast(part, source) for part, source
                in zip(tensors, self.sources, strict=True)])
        if self.pin_memory and not self.copies:
            tensors = tuple([
                as_pinned(part) if isinstance(part, torch.Tensor) else part
                for part in tensors])
        return tensors

    def _cast(self, part: object, source: str) -> Any:
        if not isinstance(part, torch.Tensor):
            return part
        name = self.type_of(source, part.is_floating_point())
        return part if name is None else part.to(getattr(torch, name))


def _name_of_type(dtype: DType) -> str:
    name = str(dtype).removeprefix('torch.')
    if not isinstance(getattr(torch, name, None), torch.dtype):
        raise ValueError(
            f'dtype must be a type of PyTorch, such as torch.bfloat16 or '
            f"'bfloat16', got {dtype!r}")
    return name


def checked_device(device: str | int | torch.device) -> torch.device:
    """Return a device of PyTorch; raise ValueError if it does not exist."""
    try:
        found = torch.device(device)
        torch.empty(0, device=found)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).partition('\n')[0]
        raise ValueError(
            f'device must be one that is there ({", ".join(_present())}), '
            f'got {str(device)!r}: {reason:.200}') from None
    return found


def _present() -> list[str]:
    """Return the names of the devices that exist, for errors."""
    names = ['cpu', *(f'cuda:{number}'
                      for number in range(torch.cuda.device_count()))]
    if torch.backends.mps.is_available():
        names.append('mps')
    return names


def check_pinning() -> None:
    """Raise ValueError if PyTorch cannot page-lock memory here."""
    try:
        pinned = torch.empty(1).pin_memory().is_pinned()
    except (RuntimeError, AssertionError, NotImplementedError):
        pinned = False
    if not pinned:
        raise ValueError(
            'pin_memory=True needs an accelerator such as a GPU, for which '
            'memory is page-locked, and PyTorch finds none here: leave it '
            'out')


class DeviceCopier:
    """Starts copies of batches to a device, and waits for them.

    On CUDA the copies run in a stream of their own, in parallel with the
    kernels of the model.
    """

    def __init__(self, device: torch.device, pin_memory: bool) -> None:
        self.device = device
        self.pin_memory = pin_memory
        self._stream = (torch.cuda.Stream(device)
                        if device.type == 'cuda' else None)

    def start(self, batch: Batch) -> Batch:
        """Return the batch on the device; the copy may not be finished yet."""
        if self._stream is None:
            return self._copied(batch)
        with torch.cuda.stream(self._stream):
            return self._copied(batch)

    def _copied(self, batch: Batch) -> Batch:
        return tuple([self._copy(part) if isinstance(part, torch.Tensor)
                      else part for part in batch])

    def _copy(self, tensor: torch.Tensor) -> Any:
        if self.pin_memory and tensor.device.type == 'cpu':
            tensor = as_pinned(tensor)
        return tensor.to(self.device, non_blocking=self.pin_memory)

    def finish(self, batch: Batch) -> Batch:
        """Return a batch after making later kernels wait for its copy."""
        if self._stream is not None:
            current = torch.cuda.current_stream(self.device)
            current.wait_stream(self._stream)
            for part in batch:
                if isinstance(part, torch.Tensor):
                    # Do not reuse the tensor's memory before these kernels
                    # end.
                    for tensor in dense_parts(part):
                        tensor.record_stream(current)
        return batch
