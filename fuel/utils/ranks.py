"""Read the rank and the world size."""
from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple


class FoundRank(NamedTuple):
    """Rank of this process, number of ranks, and the source of both."""

    rank: int
    num_ranks: int
    source: str

    @property
    def is_known(self) -> bool:
        """Whether a launcher or a library has set the rank (bool)."""
        return self.source != _NOBODY


_NOBODY = 'nobody, so this is the only rank'

# The variables of each launcher: its name, the rank, the number of ranks.
# SLURM sets the number of tasks (SLURM_NTASKS) in a batch script, too,
# although the script is the only process there. In a step, SLURM also sets the
# number of the step's tasks (SLURM_STEP_NUM_TASKS).
LAUNCHERS = (
    ('torchrun', 'RANK', 'WORLD_SIZE'),
    ('MPI', 'OMPI_COMM_WORLD_RANK', 'OMPI_COMM_WORLD_SIZE'),
    ('MPI', 'PMI_RANK', 'PMI_SIZE'),
    ('MPI', 'MV2_COMM_WORLD_RANK', 'MV2_COMM_WORLD_SIZE'),
    ('SLURM', 'SLURM_PROCID', 'SLURM_STEP_NUM_TASKS'),
    ('SLURM', 'SLURM_PROCID', 'SLURM_NTASKS'))


def find_rank(starts_jax: bool = True) -> FoundRank:
    """Return the rank of this process, and the number of ranks (world size).

    They come from the first of these that is there: a process group of
    `torch.distributed`; environment variables of torchrun, MPI or SLURM; Ray
    Train, if it is imported; JAX, if it is imported. Otherwise this process is
    the only rank.

    Parameters
    ----------
    starts_jax : bool, optional
        Whether finding the rank may start the backends of JAX.  They have
        threads, and after their start `jax.distributed.initialize` fails.
        Defaults to True.  With False, JAX is used only if its backends have
        started.

    Raises
    ------
    ValueError
        If a variable is not a number, or if the rank is out of range.
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
    """Return the module `torch.distributed` if it is initialised, else
    None."""
    module: Any = sys.modules.get('torch.distributed')
    return (module if module is not None and module.is_available()
            and module.is_initialized() else None)


def store_of_group() -> Any:
    """Return the store of PyTorch's process group, None if there is none."""
    module = getattr(process_group(), 'distributed_c10d', None)
    find = getattr(module, '_get_default_store', None)
    return None if find is None else find()


def ranks_wait(num_ranks: int) -> bool:
    """Return whether ranks are known to wait for each other in each step.

    The ranks of `torch.distributed` and of JAX do, if their number is
    `num_ranks`.
    """
    group = process_group()
    if group is not None:
        return bool(group.get_world_size() == num_ranks)
    jax = sys.modules.get('jax')
    if jax is not None and _has_started_jax() and (
            jax.process_count() == num_ranks):
        return True
    # A program that torchrun starts initialises a process group later.
    return 'RANK' in os.environ and (
        os.environ.get('WORLD_SIZE') == str(num_ranks))


def _has_started_jax() -> bool:
    """Return whether JAX has started its backends, by a private function."""
    bridge = sys.modules.get('jax._src.xla_bridge')
    started = getattr(bridge, 'backends_are_initialized', None)
    return started is not None and bool(started())


def _found_in_ray_train() -> FoundRank | None:
    """Return the rank of this worker of Ray Train; None if this process is not
    a worker."""
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
