"""Copy tensors to a device while the batch before them is used."""
from __future__ import annotations

from typing import Any

import torch

from fuel.typing import Batch


def checked_device(device: str | int | torch.device) -> torch.device:
    """Return a device that is there; refuse others."""
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
    """Return the names of the devices that PyTorch finds here."""
    names = ['cpu', *(f'cuda:{number}'
                      for number in range(torch.cuda.device_count()))]
    if torch.backends.mps.is_available():
        names.append('mps')
    return names


def check_pinning() -> None:
    """Refuse page-locked memory where there is none."""
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

    On CUDA they run in a stream of their own, beside the kernels of the
    model.
    """

    def __init__(self, device: torch.device, pin_memory: bool) -> None:
        self.device = device
        self.pin_memory = pin_memory
        self._stream = (torch.cuda.Stream(device)
                        if device.type == 'cuda' else None)

    def start(self, batch: Batch) -> Batch:
        """Return a batch on the device, whose copy may still run."""
        if self._stream is None:
            return self._copied(batch)
        with torch.cuda.stream(self._stream):
            return self._copied(batch)

    def _copied(self, batch: Batch) -> Batch:
        return tuple([self._copy(part) if isinstance(part, torch.Tensor)
                      else part for part in batch])

    def _copy(self, tensor: torch.Tensor) -> Any:
        if self.pin_memory and tensor.device.type == 'cpu':
            tensor = tensor.pin_memory()
        return tensor.to(self.device, non_blocking=self.pin_memory)

    def finish(self, batch: Batch) -> Batch:
        """Let the kernels that follow wait for the copy of a batch."""
        if self._stream is not None:
            current = torch.cuda.current_stream(self.device)
            current.wait_stream(self._stream)
            for part in batch:
                if isinstance(part, torch.Tensor):
                    # Its memory is not to be used again before they end.
                    part.record_stream(current)
        return batch
