"""Read the rank and the world size."""
from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple


class FoundRank(NamedTuple):
    """Rank of this process, world size, and their source."""

    rank: int
    num_ranks: int
    source: str

    @property
    def is_known(self) -> bool:
        """Whether a launcher or a library gave the rank (bool)."""
        return self.source != _NOBODY


_NOBODY = 'nobody, so this is the only rank'

# The variables of each launcher: its name, the rank, the number of ranks.
# SLURM sets the number of tasks in a batch script too, where the script is
# the only process; in a step it also sets the number of the step's tasks.
LAUNCHERS = (
    ('torchrun', 'RANK', 'WORLD_SIZE'),
    ('MPI', 'OMPI_COMM_WORLD_RANK', 'OMPI_COMM_WORLD_SIZE'),
    ('MPI', 'PMI_RANK', 'PMI_SIZE'),
    ('MPI', 'MV2_COMM_WORLD_RANK', 'MV2_COMM_WORLD_SIZE'),
    ('SLURM', 'SLURM_PROCID', 'SLURM_STEP_NUM_TASKS'),
    ('SLURM', 'SLURM_PROCID', 'SLURM_NTASKS'))


def find_rank(starts_jax: bool = True) -> FoundRank:
    """Return the rank of this process, and the world size.

    They come from the first of these: a process group of `torch.distributed`;
    the variables of torchrun, MPI or SLURM; Ray Train, if it is imported; JAX,
    if it is imported. Otherwise this is the only process.

    Parameters
    ----------
    starts_jax : bool, optional
        Whether JAX, where it is imported and asked, may start its backends,
        which have threads and end `jax.distributed.initialize`.  Defaults to
        True; with False, it is asked where they have started.

    Raises
    ------
    ValueError
        If a variable is not a number, or a number outside the range.
    """
    group = process_group()
    if group is not None:
        return _checked(group.get_rank(), group.get_world_size(),
                        'torch.distributed')
    for launcher, rank, count in LAUNCHERS:
        if rank in os.environ and count in os.environ:
            return _checked(_number(rank), _number(count),
                            f'{launcher} ({rank}, {count})')
    found = _found_in_ray_train()
    if found is not None:
        return found
    jax = sys.modules.get('jax')
    if jax is not None and hasattr(jax, 'process_index') and (
            starts_jax or _has_started_jax()):
        index: Callable[[], int] = jax.process_index
        total: Callable[[], int] = jax.process_count
        return _checked(index(), total(), 'jax.process_index()')
    return FoundRank(0, 1, _NOBODY)


def process_group() -> Any:
    """Return the module `torch.distributed` if it is initialised."""
    module: Any = sys.modules.get('torch.distributed')
    return (module if module is not None and module.is_available()
            and module.is_initialized() else None)


def store_of_group() -> Any:
    """Return the store of PyTorch's process group, None if there is none."""
    module = getattr(process_group(), 'distributed_c10d', None)
    find = getattr(module, '_get_default_store', None)
    return None if find is None else find()


def ranks_wait(num_ranks: int) -> bool:
    """Return whether as many ranks are known to wait for each other in each
    step, as those of `torch.distributed` and JAX do."""
    group = process_group()
    if group is not None:
        return bool(group.get_world_size() == num_ranks)
    jax = sys.modules.get('jax')
    if jax is not None and _has_started_jax() and (
            jax.process_count() == num_ranks):
        return True
    # torchrun starts what initialises a process group later.
    return 'RANK' in os.environ and (
        os.environ.get('WORLD_SIZE') == str(num_ranks))


def _has_started_jax() -> bool:
    """Return whether JAX has backends, which it does not say in public."""
    bridge = sys.modules.get('jax._src.xla_bridge')
    started = getattr(bridge, 'backends_are_initialized', None)
    return started is not None and bool(started())


def _found_in_ray_train() -> FoundRank | None:
    """Return the number of this worker of Ray Train, None if it is none."""
    train = sys.modules.get('ray.train')
    if train is None or not hasattr(train, 'get_context'):
        return None
    try:
        context = train.get_context()
        rank, count = context.get_world_rank(), context.get_world_size()
    except RuntimeError:
        # Only a training loop has a context.
        return None
    if rank is None or count is None:
        return None
    return _checked(rank, count, 'ray.train.get_context()')


def _number(variable: str) -> int:
    text = os.environ[variable]
    try:
        return int(text)
    except ValueError:
        raise ValueError(
            f'the environment variable {variable} must be an integer, got '
            f"{text!r}: pass shard=(rank, num_shards) instead of 'auto', or "
            'unset it') from None


def _checked(rank: int, num_ranks: int, source: str) -> FoundRank:
    if not 0 <= rank < num_ranks:
        raise ValueError(
            f'{source} gives rank {rank} of {num_ranks}, which is outside '
            'the range: pass shard=(rank, num_shards) instead')
    return FoundRank(rank, num_ranks, source)
