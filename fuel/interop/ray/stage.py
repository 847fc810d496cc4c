"""Prefetching of batches in actors of a Ray cluster."""
from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Unpack

import ray
from ray import cloudpickle

from fuel.epochs.pipeline import require_one_to_one
from fuel.interop.ray.actor import PipelineActor
from fuel.interop.ray.actor_worker import ActorWorker
from fuel.interop.ray.object_leases import ObjectLeases
from fuel.transformers.options import WorkerOptions
from fuel.transformers.worker_stage import (
    TeamStage, WorkerStage, team_stage)
from fuel.typing import StreamLike
from fuel.utils.checks import not_negative, positive
from fuel.workers.team import Team

# Resources for which Ray has an argument of its own.
_ARGUMENTS = {'CPU': 'num_cpus', 'GPU': 'num_gpus', 'memory': 'memory'}


class ActorTeam(Team):
    """Actors that make the batches of an epoch in turn.

    `start`: function that starts a worker.
    `max_batches`, `max_bytes`: limits of prefetching, for all actors together.
    """

    # The next epoch may have other actors, whose streams are not at the end
    # of the last epoch.
    continues = False

    def __init__(self, actors: Sequence[ActorWorker],
                 start: Callable[[], ActorWorker], max_batches: int,
                 max_bytes: int) -> None:
        super().__init__(actors)
        self.actors = list(actors)
        self.max_batches = max_batches
        self.max_bytes = max_bytes
        self._start = start
        for actor in self.actors:
            actor.max_batches = -(-max_batches // len(self.actors))
            actor.max_bytes = max_bytes // len(self.actors)

    def resized(self, count: int) -> ActorTeam:
        """Return a team of `count` workers, which keeps as many of the present
        workers as possible."""
        for actor in self.actors[count:]:
            actor.retire()
        kept = self.actors[:count]
        new = [self._start() for _ in range(count - len(kept))]
        return ActorTeam([*kept, *new], self._start, self.max_batches,
                         self.max_bytes)


class ActorStage(TeamStage):
    """A stage whose epochs are made by a team of actors of variable size."""

    __slots__ = ()

    def get_team(self) -> ActorTeam:
        """Return the running team, with the number of actors that is set;
        start it if there is none."""
        team = super().get_team()
        assert isinstance(team, ActorTeam)
        if len(team.actors) != self.stream.num_workers:
            self.team = team = team.resized(self.stream.num_workers)
        return team


class RayWorkers(WorkerStage):
    """Prefetches batches in actors on the nodes of a Ray cluster.

    This stage does on a cluster what
    :class:`~fuel.transformers.MultiProcessing` does on one host.  Batches are
    sent through Ray's object store.  Batches of an actor on the node of your
    program are not copied.

    Parameters
    ----------
    data_stream : AbstractDataStream
        The stream to run in the actors.  It is pickled once, so the files
        that it reads must exist on every node, or be at a URL.  Functions of
        your script and lambdas can be pickled too.
    num_workers : int, optional
        Number of actors that share the work.  Defaults to 1.  The values are
        the same, bit for bit, for any number.  For several actors each stage
        must be one-to-one, and its random numbers must not depend on earlier
        items.
    resources : dict, optional
        A dict from names of resources to the amount that each actor needs:
        ``'CPU'``, ``'GPU'``, ``'memory'`` in bytes, or a resource of your own.
        Defaults to ``{'CPU': 1}``.
    max_store : int, optional
        Number of batches that may be prefetched.  Defaults to 100.
    max_bytes : int, optional
        Bytes of the object store that batches may use: one half for
        prefetched batches, the other half for delivered batches.  Each actor
        may make one batch, even if it is larger.  Defaults to
        ``config.shared_memory_bytes``, 1 GiB.
    timeout : float, optional
        Seconds without a new batch after which an actor counts as stalled.
        Defaults to ``config.stall_timeout``, 600; ``math.inf`` waits as
        long as the actor lives.
    max_restarts : int, optional
        How often in a row an actor may be replaced without a new batch.
        Defaults to 3.
    produces_examples, iteration_scheme, axis_labels
        Arguments of :class:`~fuel.transformers.Transformer`.

    Attributes
    ----------
    num_restarts : int
    worker_nodes : list of str

    Raises
    ------
    ValueError
        If several actors cannot share the stream, or an amount is negative.
    fuel.exceptions.WorkerError
        By the epoch iterator, if actors die repeatedly, or an actor stalls or
        does not get its resources.  An error of the pipeline itself is raised
        here too, with the actor's traceback.

    Notes
    -----
    The actors start with the first epoch iterator, on the cluster that
    :func:`ray.init` connected to.  They end with :meth:`close`, with the
    stream, or with this process.  They are spread over the nodes.

    If an actor or its node dies, a new actor continues after the last batch
    that was received.  No batch is lost or repeated.

    Order, values and states are those of the wrapped stream, for any number
    of workers.  Arrays are writable and belong to the caller; on systems
    other than Linux they are copies.

    In the first actor, the global random generators `numpy.random` and
    `random` have the state that they have in this process when the actors
    start.  Each other actor, also one that replaces a dead actor, has
    generators of its own, whose states are derived from these.

    Examples
    --------
    This needs the extra ``ray``.

    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.schemes import SequentialScheme
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IndexableDataset([1, 2, 3]),
    ...                     iteration_scheme=SequentialScheme(3, 2))
    >>> with RayWorkers(stream, num_workers=2) as parallel:
    ...     list(parallel.get_epoch_iterator())
    [([1, 2],), ([3],)]
    """

    __fuel_stage__ = ActorStage

    def __init__(self, data_stream: StreamLike, num_workers: int = 1, *,
                 resources: Mapping[str, float] | None = None,
                 max_store: int = 100, max_bytes: int | None = None,
                 timeout: float | None = None, max_restarts: int = 3,
                 **kwargs: Unpack[WorkerOptions]) -> None:
        not_negative('max_restarts', max_restarts)
        self.resources = _checked({'CPU': 1} if resources is None
                                  else resources)
        super().__init__(data_stream, num_workers, max_store, max_bytes,
                         timeout, **kwargs)
        self.max_restarts = max_restarts

    @property
    def runs_in(self) -> str:
        """Text that says where the stage runs: number of actors (str)."""
        return ('1 Ray actor' if self.num_workers == 1
                else f'{self.num_workers} Ray actors')

    @property
    def num_restarts(self) -> int:
        """Number of actors that were replaced since the first epoch (int)."""
        return sum(actor.restarts for actor in self._actors())

    @property
    def worker_nodes(self) -> list[str]:
        """Identifiers of the nodes of the actors that have started."""
        locations = [actor.location for actor in self._actors()]
        return [location[0] for location in locations if location is not None]

    def _actors(self) -> list[ActorWorker]:
        team = team_stage(self).team
        return team.actors if isinstance(team, ActorTeam) else []

    def scale(self, num_workers: int) -> None:
        """Set the number of actors that share the following epochs.

        Actors are started or ended when the next epoch begins.  An epoch that
        is still being read continues with the actors that stay.

        Parameters
        ----------
        num_workers : int

        Raises
        ------
        ValueError
            If several actors cannot share the stream.
        """
        if positive('num_workers', num_workers) > 1:
            require_one_to_one(self.data_stream)
        self.num_workers = num_workers
        team_stage(self).upcoming = None

    def _start_team(self) -> ActorTeam:
        options = _options(self.resources)
        # This call starts Ray or connects to a cluster, if necessary.
        pickled = ray.put(cloudpickle.dumps(self.data_stream))
        actor: Any = ray.remote(PipelineActor).options(**options)
        generators = self._generators
        leases = ObjectLeases(self.max_bytes // 2)
        start = functools.partial(
            ActorWorker, type(self.data_stream).__name__,
            lambda: actor.remote(pickled, generators.next()),
            leases, stalled=self.timeout, max_restarts=self.max_restarts,
            needs=', '.join(f'{amount:g} {name}' for name, amount
                            in self.resources.items()) or 'nothing')
        return ActorTeam([start() for _ in range(self.num_workers)], start,
                         self.max_store, self.max_bytes // 2)


def _checked(resources: Mapping[str, float]) -> dict[str, float]:
    """Return resources; raise ValueError if an amount is not a finite number
    from 0 on."""
    for name, amount in resources.items():
        if (not isinstance(amount, (int, float)) or isinstance(amount, bool)
                or not 0 <= amount < math.inf):
            raise ValueError(
                f'resources must be amounts by name, such as {{"CPU": 1}}; '
                f'the amount of {name!r} is {amount!r}')
    return dict(resources)


def _options(resources: Mapping[str, float]) -> dict[str, Any]:
    """Return the options of an actor that needs resources."""
    options: dict[str, Any] = {
        'num_cpus': 0, 'max_restarts': 0, 'max_task_retries': 0,
        'scheduling_strategy': 'SPREAD'}
    others = {}
    for name, amount in resources.items():
        if name in _ARGUMENTS:
            options[_ARGUMENTS[name]] = amount
        else:
            others[name] = amount
    return {**options, 'resources': others}
