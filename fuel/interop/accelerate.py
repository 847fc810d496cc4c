"""Loaders over Fuel's streams for Accelerate, and the trainers on it."""
from __future__ import annotations

import warnings
from typing import Any

from fuel.sharding.pipeline import sharding_of
from fuel.utils.extras import from_extra

with from_extra('accelerate', 'accelerate', 'torch'):
    from accelerate import Accelerator
    from accelerate.data_loader import prepare_data_loader

    from fuel.interop.torch import StreamIterable

__all__ = ['prepare']


def prepare(accelerator: Accelerator, loader: Any) -> Any:
    """Return a loader of Accelerate that reads the part of this rank.

    It does what ``accelerator.prepare(loader)`` does, but share the batches:
    :func:`~fuel.interop.torch.as_iterable` has given each rank its part
    already.  ``accelerator.prepare`` leaves the loader as it is.

    Parameters
    ----------
    accelerator : accelerate.Accelerator
    loader : torch.utils.data.DataLoader
        Over `as_iterable`, with ``batch_size=None``.

    Returns
    -------
    accelerate.data_loader.DataLoaderShard

    Raises
    ------
    TypeError
        If the loader is one over something else.
    ValueError
        If Accelerate is to save the states of loaders, which it takes for
        those of batches that it shares.
    """
    if not isinstance(loader.dataset, StreamIterable):
        raise TypeError(
            'prepare takes a loader over as_iterable(stream), got one over '
            f'{type(loader.dataset).__name__}: pass it to '
            'accelerator.prepare()')
    if accelerator.use_stateful_dataloader:
        raise ValueError(
            'use_stateful_dataloader=True saves positions of batches that '
            'Accelerate shares: leave it out, and save '
            'as_iterable(...).state_after(count)')
    shard = sharding_of(loader.dataset.stream)
    if shard is not None and shard.num_shards > 1 and shard.uneven == 'pad':
        warnings.warn(
            "uneven='pad' repeats examples, which gather_for_metrics() counts "
            "again: evaluate with uneven='uneven' or 'drop', or leave out "
            'what the stage MarkPadding marks', UserWarning, stacklevel=2)
    prepared: Any = prepare_data_loader(
        loader, accelerator.device, num_processes=1, process_index=0,
        put_on_device=accelerator.device_placement, dispatch_batches=False,
        non_blocking=accelerator.non_blocking)
    # As accelerator.prepare() marks its own, which it then leaves alone.
    prepared._is_accelerate_prepared = True
    return accelerator.prepare_data_loader(prepared)
