"""The epochs with which a stage begins that begins its inputs anew."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fuel.epochs.stage import stage_of
from fuel.epochs.state import (
    Position, SchemeStart, position_of, without_frames)
from fuel.kernels.epoch_iterator import EpochIterator
from fuel.schemes.iteration_scheme import (
    keeps_generator_before, scheme_state)
from fuel.sharding.draws import whole_scheme
from fuel.typing import State, StreamLike
from fuel.utils import rng_state


class FirstEpochs:
    """The epochs of its inputs with which a stage began one of its own, of
    a stage that begins inputs anew.

    `given`: how many items each input had given before; empty as long as
        none of them has begun anew. Of that which ended first, without the
        number of items of its epoch.
    `ended`: the place of that one.
    `ends`: where the epochs were left; None of an input that has not begun
        anew.
    `standing`: from where the streams drew as the first input began anew:
        of each the start of its scheme, and its generator, if it has them.
    """

    given: Sequence[int] = ()
    ended = 0
    ends: Sequence[Position | State | Exception | None] = ()
    standing: Sequence[Position] = ()

    def record(self, iterators: Sequence[Any], taken: Sequence[int],
               place: int) -> None:
        """Record that an input begins anew.

        `iterators`: the present epochs of all of them.
        `taken`: how many items of each the epoch of the stage has had.
        """
        if not self.given:
            if not all(isinstance(one, EpochIterator) for one in iterators):
                # They have no order.
                return
            # Whoever finds that there are no more may have made a request.
            self.given = [
                (0 if place == other else one.epoch.requested) - count
                for other, (one, count) in enumerate(zip(
                    iterators, taken, strict=True))]
            self.ended = place
            standing: list[Position] = []
            for iterator in iterators:
                _add_standing(iterator.data_stream, standing)
            self.standing = standing
            self.ends = [None] * len(iterators)
        if self.ends[place] is None:
            self.ends = [
                position_of(iterator) if place == other else end
                for other, (iterator, end) in enumerate(zip(
                    iterators, self.ends, strict=True))]


def _add_standing(stream: StreamLike, found: list[Position]) -> None:
    """Add from where the streams of a pipeline draw."""
    stage = stage_of(stream)
    scheme, rng = whole_scheme(stage.scheme), stage.generator
    if scheme is not None or rng is not None:
        found.append(Position(
            stream, 0, 0, None if scheme is None else _start_of(scheme), None,
            None if rng is None else rng_state.take_snapshot(rng), None, (),
            []))
    for child in stage.inputs:
        _add_standing(child, found)


def _start_of(scheme: Any) -> SchemeStart | Exception:
    """Return the state from which a scheme draws, taken cheaply."""
    if keeps_generator_before(scheme):
        return SchemeStart(rng_state.take_snapshot(scheme.rng))
    try:
        return SchemeStart(scheme_state(scheme))
    except Exception as error:  # noqa: BLE001 - raised if it is wanted
        return without_frames(error)
