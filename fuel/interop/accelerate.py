"""Prepare loaders over streams for Accelerate and trainers that use it."""
from __future__ import annotations

import warnings
import weakref
from typing import Any

from fuel.sharding.shard_pipeline import sharding_of
from fuel.utils.extras import from_extra

with from_extra('accelerate', 'accelerate', 'torch'):
    from accelerate import Accelerator
    from accelerate.data_loader import prepare_data_loader

    from fuel.interop.torch import Loader, StreamIterable
    from fuel.interop.torch.progress import Delivered

__all__ = ['prepare']


def prepare(accelerator: Accelerator, loader: Any) -> Any:
    """Return a loader of Accelerate that reads this rank's part of a stream.

    The function does what ``accelerator.prepare(loader)`` does, but does not
    share the batches between the ranks: a
    :class:`~fuel.interop.torch.Loader` and
    :func:`~fuel.interop.torch.as_iterable` have given each rank its part
    already.  A later ``accelerator.prepare`` does not change the loader that
    is returned.

    Parameters
    ----------
    accelerator : accelerate.Accelerator
    loader : Loader or torch.utils.data.DataLoader
        A `Loader`, or a `DataLoader` over a result of `as_iterable` with
        ``batch_size=None``.

    Returns
    -------
    accelerate.data_loader.DataLoaderShard
        If `loader` is a `Loader`, its `state_dict` returns the position after
        the batch that the program received last, and its `load_state_dict`
        resumes there.

    Raises
    ------
    TypeError
        If the loader reads another kind of data set.
    ValueError
        If Accelerate is set to save the states of loaders
        (``use_stateful_dataloader``).  These states would count the batches
        that Accelerate shares between ranks.
    """
    if not isinstance(loader.dataset, StreamIterable):
        raise TypeError(
            'prepare takes a Loader(stream), or a loader over '
            'as_iterable(stream), got one over '
            f'{type(loader.dataset).__name__}: pass it to '
            'accelerator.prepare()')
    if accelerator.use_stateful_dataloader:
        raise ValueError(
            'use_stateful_dataloader=True saves positions of batches that '
            'Accelerate shares: leave it out, and save the state_dict() of '
            'the prepared Loader, or as_iterable(...).state_after(count)')
    shard = sharding_of(loader.dataset.stream)
    if shard is not None and shard.num_shards > 1 and shard.uneven == 'pad':
        warnings.warn(
            "uneven='pad' repeats examples, which gather_for_metrics() counts "
            "again: evaluate with uneven='uneven' or 'drop', or leave out "
            'the examples that the stage MarkPadding marks', UserWarning,
            stacklevel=2)
    prepared: Any = prepare_data_loader(
        loader, accelerator.device, num_processes=1, process_index=0,
        put_on_device=accelerator.device_placement, dispatch_batches=False,
        non_blocking=accelerator.non_blocking)
    if isinstance(loader, Loader):
        _read_ahead(prepared, loader)
    # accelerator.prepare() leaves a loader with this mark unchanged.
    prepared._is_accelerate_prepared = True
    return accelerator.prepare_data_loader(prepared)


class _ShardProgress:
    """The progress of a program that reads a `DataLoaderShard` of Accelerate.

    The `DataLoaderShard` reads one batch ahead, to find the end of an epoch.

    `shard`: the `DataLoaderShard`.
    """

    def __init__(self, shard: Any) -> None:
        self._find_shard = weakref.ref(shard)
        self._number = 0

    def begin(self) -> None:
        """Record the number of the pass that begins."""
        self._number = self._num_passes

    def look(self) -> None:
        """Do nothing: the `DataLoaderShard` counts only whole passes."""

    def used(self, running: Delivered) -> int | None:
        """Return the number of batches that the program received in a pass.

        The result is None after the program has read the pass to its end.
        """
        if not running.is_over:
            return max(0, running.delivered - 1)
        return (running.delivered if self._num_passes == self._number
                else None)

    @property
    def _num_passes(self) -> int:
        """Number of passes that the program has read to their end (int)."""
        shard = self._find_shard()
        return -1 if shard is None else int(shard.iteration)


def _read_ahead(prepared: Any, loader: Loader) -> None:
    """Make a `DataLoaderShard` read a loader, and set the loader's progress.

    `prepared`: the `DataLoaderShard`. Before the call, it reads a
        `DataLoader` of PyTorch over the same data set.
    """
    prepared.base_dataloader = loader
    loader.set_progress(_ShardProgress(prepared))
    # Accelerate's own method would save a state for each batch.
    prepared._update_state_dict = _save_nothing
    prepared.state_dict = loader.state_dict


def _save_nothing() -> None:
    """Do nothing: a state is made when the program calls `state_dict`."""
