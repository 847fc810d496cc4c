"""Teams of actors on a cluster."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from fuel.epochs.pipeline import skip
from fuel.interop.ray.actor_worker import ActorWorker
from fuel.workers.team import Team


class ActorTeam(Team):
    """Actors that each make one batch of several.

    `start`: starts one worker.
    `max_batches`, `max_bytes`: how much all of them may prefetch.
    """

    # An actor may be another one by then.
    continues = False

    def __init__(self, actors: Sequence[ActorWorker],
                 start: Callable[[], ActorWorker], max_batches: int,
                 max_bytes: int) -> None:
        super().__init__(actors, skip)
        self.actors = list(actors)
        self.max_batches = max_batches
        self.max_bytes = max_bytes
        self._start = start
        for actor in self.actors:
            actor.max_batches = -(-max_batches // len(self.actors))
            actor.max_bytes = max_bytes // len(self.actors)

    def resized(self, count: int) -> ActorTeam:
        """Return a team of `count` workers: as many of these as it needs."""
        for actor in self.actors[count:]:
            actor.retire()
        kept = self.actors[:count]
        new = [self._start() for _ in range(count - len(kept))]
        return ActorTeam([*kept, *new], self._start, self.max_batches,
                         self.max_bytes)
